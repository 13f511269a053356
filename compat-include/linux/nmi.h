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
#define trigger_allbutcpu_cpu_backtrace(cpu)	((void)(cpu))
#endif

/*
 * Needs a change to the kernel, patches/7.3/0026-*. Without that change touches are not seen, the
 * settings of the kernel's own detectors do not hold, and reports have only what modules can show.
 */
#ifndef nmi_watchdog_touches
struct notifier_block;

static inline unsigned int nmi_watchdog_touches(int cpu)
{
	return 0;
}

static inline bool nmi_watchdog_sees_touches(void)
{
	return false;
}

static inline int hardlockup_settings(struct cpumask *cpus)
{
	return -EOPNOTSUPP;
}

static inline bool hardlockup_report_begin(int cpu)
{
	return true;
}

static inline bool hardlockup_report_show(struct pt_regs *regs)
{
	return false;
}

static inline bool hardlockup_wants_backtraces(void)
{
	return false;
}

static inline bool hardlockup_wants_panic(void)
{
	return false;
}

static inline void hardlockup_settings_register(struct notifier_block *nb) { }
static inline void hardlockup_settings_unregister(struct notifier_block *nb) { }
static inline void hardlockup_report_end(void) { }
#endif

#endif /* _PMUK_COMPAT_LINUX_NMI_H */
