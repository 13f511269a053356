// SPDX-License-Identifier: GPL-2.0
/* The tracepoints of pmuk, which files of all levels call. */
#define CREATE_TRACE_POINTS
#include <trace/events/pmu_kapi.h>
