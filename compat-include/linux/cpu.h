/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PMUK_COMPAT_LINUX_CPU_H
#define _PMUK_COMPAT_LINUX_CPU_H

#include_next <linux/cpu.h>
#include <linux/version.h>

/* 6.12 does not export this function, and 7.3 does. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 3, 0)
#define lockdep_assert_cpus_held()	((void)0)
#endif

#endif /* _PMUK_COMPAT_LINUX_CPU_H */
