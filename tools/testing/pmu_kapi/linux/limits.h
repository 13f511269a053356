/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TEST_LINUX_LIMITS_H
#define _TEST_LINUX_LIMITS_H

#include_next <linux/limits.h>

#define S64_MAX	((s64)(~0ULL >> 1))

#endif /* _TEST_LINUX_LIMITS_H */
