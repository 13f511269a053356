/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PMUK_COMPAT_LINUX_NMI_H
#define _PMUK_COMPAT_LINUX_NMI_H

#include_next <linux/nmi.h>
#include <linux/version.h>

/* 7.3 lets modules ask other CPUs for their stacks. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 3, 0)
#undef arch_trigger_cpumask_backtrace
#define trigger_all_cpu_backtrace()		((void)0)
#define trigger_single_cpu_backtrace(cpu)	((void)(cpu))
#endif

/* Needs a change to the kernel, patches/7.3/0011-*: without it touches are not seen. */
#ifndef nmi_watchdog_touches
static inline unsigned int nmi_watchdog_touches(int cpu)
{
	return 0;
}

static inline bool nmi_watchdog_sees_touches(void)
{
	return false;
}
#endif

#endif /* _PMUK_COMPAT_LINUX_NMI_H */
