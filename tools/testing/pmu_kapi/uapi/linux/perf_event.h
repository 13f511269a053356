/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/perf_event.h>
