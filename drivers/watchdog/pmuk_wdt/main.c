// SPDX-License-Identifier: GPL-2.0
/*
 * The NMI hard-lockup watchdog: a CPU that is stuck with interrupts off is noticed by its own
 * cycle counter, or by its neighbour, within 1.25 times a threshold, and within 2.6 times if it
 * is isolated; and a watchdog device
 * restarts the machine when user space has gone, even if no CPU takes interrupts any more.
 *
 * This file arms and disarms it: when it is loaded, its threshold changes, or the machine is
 * suspended. See Documentation/watchdog/pmuk-wdt.rst.
 */
#define pr_fmt(fmt) "pmuk_wdt: " fmt

#include <linux/atomic.h>
#include <linux/cpufeature.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/irq_work.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/nmi.h>
#include <linux/panic_notifier.h>
#include <linux/pmu_kapi.h>
#include <linux/printk.h>
#include <linux/sched/isolation.h>
#include <linux/suspend.h>
#include <linux/sysfs.h>
#include <linux/workqueue.h>

#include "timer_nmi.h"
#include "wdt.h"

#define PMUK_WDT_THRESHOLD	10000	/* milliseconds, where the kernel names none */

struct pmuk_wdt pmuk_wdt = {
	.lock	= __MUTEX_INITIALIZER(pmuk_wdt.lock),
};

DEFINE_PER_CPU(struct pmuk_wdt_cpu, pmuk_wdt_cpus);

static bool pmuk_wdt_panic;
module_param_named(panic, pmuk_wdt_panic, bool, 0644);
MODULE_PARM_DESC(panic, "Panic when a CPU is stuck, also without kernel.hardlockup_panic (default 0)");

static bool pmuk_wdt_all_backtraces;
module_param_named(all_cpu_backtrace, pmuk_wdt_all_backtraces, bool, 0644);
MODULE_PARM_DESC(all_cpu_backtrace, "Show the stacks of all CPUs with a report, also without kernel.hardlockup_all_cpu_backtrace (default 0)");

static unsigned int threshold_ms;
module_param(threshold_ms, uint, 0444);
MODULE_PARM_DESC(threshold_ms, "A CPU is stuck after so many milliseconds, 200 to 60000 (default: kernel.watchdog_thresh); to be changed in the device's directory in sysfs");

static bool timer_nmi;
module_param(timer_nmi, bool, 0444);
MODULE_PARM_DESC(timer_nmi, "Have a timer that Linux does not use notice lockups by NMI, on arm64 (default 0: a hypervisor may lack it)");

/* ---- CPUs that are isolated ---- */

/* From load balancing or from timers, for which cpusets and the command line have masks. */
bool pmuk_wdt_is_isolated(int cpu)
{
	guard(rcu)();	/* cpusets replace the mask of HK_TYPE_DOMAIN */
	return !housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN) ||
	       !housekeeping_test_cpu(cpu, HK_TYPE_TIMER);
}

/* Whether any of these CPUs beats often. Beats of the others are too few for the device. */
bool pmuk_wdt_is_lively(const struct cpumask *cpus)
{
	int cpu;

	for_each_cpu_and(cpu, cpus, cpu_online_mask) {
		if (!cpumask_test_cpu(cpu, &pmuk_wdt.isolated))
			return true;
	}
	return false;
}

static void pmuk_wdt_find_isolated(struct pmuk_wdt *w)
{
	int cpu;

	cpumask_clear(&w->isolated);
	for_each_possible_cpu(cpu) {
		if (pmuk_wdt_is_isolated(cpu))
			cpumask_set_cpu(cpu, &w->isolated);
	}
}

/* The device needs a CPU that beats often: another CPU than those to watch, or an isolated one. */
static void pmuk_wdt_choose_beats(struct pmuk_wdt *w)
{
	int cpu;

	pmuk_wdt_find_isolated(w);
	cpumask_copy(&w->beating, w->wanted);
	if (!pmuk_wdt_is_lively(&w->beating))
		cpumask_or(&w->beating, w->wanted, housekeeping_cpumask(HK_TYPE_TIMER));
	if (!pmuk_wdt_is_lively(&w->beating))
		cpumask_clear(&w->isolated);
	for_each_possible_cpu(cpu)
		pmuk_wdt_of(cpu)->times = cpumask_test_cpu(cpu, &w->isolated) ?
					  &w->isolated_times : &w->times;
}

/* ---- what the kernel's settings say as well ---- */

bool pmuk_wdt_wants_panic(void)
{
	return READ_ONCE(pmuk_wdt_panic) || hardlockup_wants_panic();
}

bool pmuk_wdt_wants_backtraces(void)
{
	return READ_ONCE(pmuk_wdt_all_backtraces) || hardlockup_wants_backtraces();
}

static void pmuk_wdt_use_threshold(struct pmuk_wdt *w, u64 threshold)
{
	w->times = pmuk_wdt_times(threshold);
	w->isolated_times = pmuk_wdt_isolated_times(threshold);
	threshold_ms = div_u64(threshold, NSEC_PER_MSEC);
}

/* Fills ->wanted. Returns watchdog_thresh, or -errno of a kernel that tells modules no settings. */
static int pmuk_wdt_ask_settings(struct pmuk_wdt *w)
{
	int thresh = hardlockup_settings(w->wanted);

	if (thresh < 0)
		cpumask_copy(w->wanted, housekeeping_cpumask(HK_TYPE_TIMER));
	if (!thresh)
		cpumask_clear(w->wanted);
	return thresh;
}

/* The watchdog is disarmed. A threshold written to it stays until watchdog_thresh changes. */
static void pmuk_wdt_apply_settings(struct pmuk_wdt *w)
{
	int thresh = pmuk_wdt_ask_settings(w);

	if (thresh > 0 && thresh != w->thresh)
		pmuk_wdt_use_threshold(w, thresh * NSEC_PER_SEC);
	w->thresh = thresh;
	cpumask_copy(&w->cpus, w->wanted);
	pmuk_wdt_choose_beats(w);
}

/* The driver begins with its parameter, or with what the kernel's own detectors have. */
static int pmuk_wdt_first_threshold(struct pmuk_wdt *w)
{
	w->thresh = pmuk_wdt_ask_settings(w);
	if (!threshold_ms)
		threshold_ms = w->thresh > 0 ? w->thresh * MSEC_PER_SEC : PMUK_WDT_THRESHOLD;
	return pmuk_wdt_set_threshold(threshold_ms * NSEC_PER_MSEC);
}

/* ---- rungs ---- */

static const char *const pmuk_wdt_rung_names[] = {
	[PMUK_WDT_NONE]			= "none",
	[PMUK_WDT_NEIGHBOUR]		= "neighbour",
	[PMUK_WDT_NEIGHBOUR_NMI]	= "neighbour-nmi",
	[PMUK_WDT_TIMER_NMI]		= "timer-nmi",
	[PMUK_WDT_OWN_NMI]		= "own-nmi",
};

static_assert(ARRAY_SIZE(pmuk_wdt_rung_names) == PMUK_WDT_RUNGS);

const char *pmuk_wdt_rung_name(enum pmuk_wdt_rung rung)
{
	return pmuk_wdt_rung_names[rung];
}

/* From anywhere. */
enum pmuk_wdt_rung pmuk_wdt_rung(int cpu)
{
	if (!cpumask_test_cpu(cpu, &pmuk_wdt.watched) || !cpumask_test_cpu(cpu, &pmuk_wdt.cpus))
		return PMUK_WDT_NONE;
	if (READ_ONCE(pmuk_wdt_of(cpu)->own))
		return PMUK_WDT_OWN_NMI;
	if (READ_ONCE(pmuk_wdt_of(cpu)->timer))
		return PMUK_WDT_TIMER_NMI;
	if (cpumask_weight(&pmuk_wdt.watched) < 2)
		return PMUK_WDT_NONE;
	return READ_ONCE(pmuk_wdt.backtraces) ? PMUK_WDT_NEIGHBOUR_NMI : PMUK_WDT_NEIGHBOUR;
}

/* Whether others can be asked for their stacks while they have interrupts off. */
static bool pmuk_wdt_can_backtrace(void)
{
#if !defined(arch_trigger_cpumask_backtrace)
	return false;
#elif defined(CONFIG_ARM64)
	return system_uses_irq_prio_masking();
#else
	return IS_ENABLED(CONFIG_X86);
#endif
}

/* NULL for a CPU that has come online, and whose NMI is still to come. */
static const char *pmuk_wdt_why(const struct pmuk_wdt_cpu *c, enum pmuk_wdt_rung rung)
{
	if (rung == PMUK_WDT_NONE)
		return "no other CPU is watched";
	return READ_ONCE(c->lost);
}

/* Each change is told once. */
static void pmuk_wdt_tell_rung(int cpu)
{
	struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);
	enum pmuk_wdt_rung rung = pmuk_wdt_rung(cpu);
	const char *why = pmuk_wdt_why(c, rung);

	if (rung == c->told || (rung < c->told && !why))
		return;
	if (rung < c->told)
		pr_warn("CPU %d: watched by %s, no longer by %s: %s\n", cpu,
			pmuk_wdt_rung_name(rung), pmuk_wdt_rung_name(c->told), why);
	else
		pr_info("CPU %d: watched by %s\n", cpu, pmuk_wdt_rung_name(rung));
	c->told = rung;
}

/* One that is offline is not watched, and that is no news. */
static void pmuk_wdt_tell_rungs(void)
{
	int cpu;

	for_each_cpu_and(cpu, &pmuk_wdt.watched, &pmuk_wdt.cpus)
		pmuk_wdt_tell_rung(cpu);
}

/* Of all CPUs in a line, when they are armed. */
static void pmuk_wdt_tell_summary(const struct pmuk_wdt *w)
{
	unsigned int nr[PMUK_WDT_RUNGS] = {};
	int cpu;

	for_each_cpu_and(cpu, &w->watched, &w->cpus) {
		pmuk_wdt_of(cpu)->told = pmuk_wdt_rung(cpu);
		nr[pmuk_wdt_of(cpu)->told]++;
	}
	pr_info("threshold %u ms; CPUs watched by own-nmi: %u, timer-nmi: %u, neighbour-nmi: %u, neighbour: %u, none: %u\n",
		threshold_ms, nr[PMUK_WDT_OWN_NMI], nr[PMUK_WDT_TIMER_NMI],
		nr[PMUK_WDT_NEIGHBOUR_NMI], nr[PMUK_WDT_NEIGHBOUR], nr[PMUK_WDT_NONE]);
}

/* Beats start it. Whoever disarms waits for this, so it does not wait for them. */
static void pmuk_wdt_manage(struct work_struct *work)
{
	struct pmuk_wdt *w = container_of(work, struct pmuk_wdt, manage);

	if (!mutex_trylock(&w->lock))
		return;
	if (w->armed) {
		pmuk_wdt_counters_judge(w);
		pmuk_wdt_tell_rungs();
		pmuk_wdt_counters_retry(w);
	}
	mutex_unlock(&w->lock);
}

/* ---- arm and disarm; ->lock is held ---- */

#define PMUK_WDT_AGAIN		HZ	/* until a CPU that is stuck may have recovered */

static void pmuk_wdt_forget(struct pmuk_wdt_cpu *c)
{
	WRITE_ONCE(c->clock.rate, 0);
	WRITE_ONCE(c->clock.top, 0);
	WRITE_ONCE(c->armed_ns, 0);
}

static int pmuk_wdt_arm_all(struct pmuk_wdt *w)
{
	int cpu, ret;

	pmuk_wdt_apply_settings(w);
	for_each_possible_cpu(cpu)
		pmuk_wdt_forget(pmuk_wdt_of(cpu));
	if (hrtimer_resolution > w->times.beat / 4)
		pr_notice("timers are too coarse for this threshold: reports may be false\n");
	WRITE_ONCE(w->backtraces, pmuk_wdt_can_backtrace());
	ret = pmuk_wdt_beats_start(w);
	if (ret) {
		pr_err("not armed: %d\n", ret);
		return ret;
	}
	ret = cpumask_empty(&w->cpus) ? 0 : pmuk_wdt_counters_start(w);
	if (ret)
		pr_notice("no cycle counters (%d): CPUs watch each other\n", ret);
	pmuk_wdt_counters_test(w);
	w->armed = true;
	/* CPUs may have gone offline between their choice and their start. */
	if (!pmuk_wdt_is_lively(&w->watched))
		schedule_delayed_work(&w->configure, PMUK_WDT_AGAIN);
	pmuk_wdt_tell_summary(w);
	return 0;
}

static void pmuk_wdt_disarm_all(struct pmuk_wdt *w)
{
	if (!w->armed)
		return;
	w->armed = false;
	pmuk_wdt_counters_stop(w);
	pmuk_wdt_beats_stop(w);
	cancel_work_sync(&w->manage);
}

/* To be disarmed, a CPU has to answer. */
static bool pmuk_wdt_is_any_stuck(const struct pmuk_wdt *w)
{
	int cpu;

	for_each_cpu(cpu, &w->watched) {
		if (atomic_read(&pmuk_wdt_of(cpu)->reported))
			return true;
	}
	return false;
}

/* The new threshold, in nanoseconds, is tested as the first one was. */
int pmuk_wdt_set_threshold(u64 threshold)
{
	struct pmuk_wdt *w = &pmuk_wdt;

	if (threshold < PMUK_WDT_THRESHOLD_MIN || threshold > PMUK_WDT_THRESHOLD_MAX) {
		pr_debug("no threshold of %llu ns: 200 ms to 60 s\n", threshold);
		return -ERANGE;
	}
	guard(mutex)(&w->lock);
	if (pmuk_wdt_is_any_stuck(w)) {
		pr_debug("no new threshold while a CPU is stuck\n");
		return -EBUSY;
	}
	pmuk_wdt_disarm_all(w);
	pmuk_wdt_use_threshold(w, threshold);
	return w->suspended ? 0 : pmuk_wdt_arm_all(w);
}

/* The settings ask for what is not so, or the last CPU that did beat often has gone offline. */
static bool pmuk_wdt_is_changed(struct pmuk_wdt *w)
{
	return pmuk_wdt_ask_settings(w) != w->thresh || !cpumask_equal(w->wanted, &w->cpus) ||
	       !pmuk_wdt_is_lively(&w->watched);
}

static void pmuk_wdt_configure(struct work_struct *work)
{
	struct pmuk_wdt *w = container_of(to_delayed_work(work), struct pmuk_wdt, configure);

	guard(mutex)(&w->lock);
	if (!w->armed || !pmuk_wdt_is_changed(w))
		return;
	if (pmuk_wdt_is_any_stuck(w)) {
		schedule_delayed_work(&w->configure, PMUK_WDT_AGAIN);
		return;
	}
	pmuk_wdt_disarm_all(w);
	pmuk_wdt_arm_all(w);
}

/* A mutex of the settings' is held here, so the work is left to a worker. */
static int pmuk_wdt_settings_change(struct notifier_block *nb, unsigned long code, void *data)
{
	mod_delayed_work(system_highpri_wq, &pmuk_wdt.configure, 0);
	return NOTIFY_DONE;
}

static struct notifier_block pmuk_wdt_settings_nb = {
	.notifier_call = pmuk_wdt_settings_change,
};

/* ---- suspend and panic ---- */

static void pmuk_wdt_suspend(struct pmuk_wdt *w)
{
	pmuk_wdt_device_suspend(&w->dev);
	guard(mutex)(&w->lock);
	w->suspended = true;
	pmuk_wdt_disarm_all(w);
}

static void pmuk_wdt_resume(struct pmuk_wdt *w)
{
	pmuk_wdt_device_resume(&w->dev);
	guard(mutex)(&w->lock);
	w->suspended = false;
	if (!w->armed)
		pmuk_wdt_arm_all(w);
}

static int pmuk_wdt_pm(struct notifier_block *nb, unsigned long mode, void *data)
{
	switch (mode) {
	case PM_HIBERNATION_PREPARE:
	case PM_RESTORE_PREPARE:
	case PM_SUSPEND_PREPARE:
		pmuk_wdt_suspend(&pmuk_wdt);
		break;
	case PM_POST_HIBERNATION:
	case PM_POST_RESTORE:
	case PM_POST_SUSPEND:
		pmuk_wdt_resume(&pmuk_wdt);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block pmuk_wdt_pm_nb = {
	.notifier_call = pmuk_wdt_pm,
};

/* Other CPUs are stopped now: that they are silent is no news. */
static int pmuk_wdt_panics(struct notifier_block *nb, unsigned long code, void *data)
{
	WRITE_ONCE(pmuk_wdt.panicking, true);
	return NOTIFY_DONE;
}

static struct notifier_block pmuk_wdt_panic_nb = {
	.notifier_call	= pmuk_wdt_panics,
	.priority	= INT_MAX,
};

/* ---- load and unload ---- */

static void pmuk_wdt_timers_request(struct pmuk_wdt *w)
{
	int ret = timer_nmi ? pmuk_timer_nmi_request(pmuk_wdt_timer_nmi) : -ENODEV;

	w->timers = !ret;
	if (timer_nmi && ret)
		pr_notice("no timer's NMI (%d)\n", ret);
}

static void pmuk_wdt_timers_free(struct pmuk_wdt *w)
{
	if (w->timers)
		pmuk_timer_nmi_free();
}

static int pmuk_wdt_setup(struct pmuk_wdt *w)
{
	int ret;

	INIT_WORK(&w->manage, pmuk_wdt_manage);
	INIT_DELAYED_WORK(&w->configure, pmuk_wdt_configure);
	if (!zalloc_cpumask_var(&w->counted, GFP_KERNEL))
		return -ENOMEM;
	ret = -ENOMEM;
	if (!zalloc_cpumask_var(&w->wanted, GFP_KERNEL))
		goto err_counted;
	ret = pmuk_wdt_counters_init();
	if (ret)
		goto err_wanted;
	pmuk_wdt_timers_request(w);
	ret = pmuk_wdt_first_threshold(w);
	if (ret)
		goto err_counters;
	ret = pmuk_wdt_device_init(&w->dev);
	if (ret)
		goto err_armed;
	return 0;

err_armed:
	scoped_guard(mutex, &w->lock)
		pmuk_wdt_disarm_all(w);
err_counters:
	cancel_delayed_work_sync(&w->configure);
	pmuk_wdt_timers_free(w);
	pmuk_wdt_counters_exit();
err_wanted:
	free_cpumask_var(w->wanted);
err_counted:
	free_cpumask_var(w->counted);
	return ret;
}

static int __init pmuk_wdt_init(void)
{
	int ret = pmuk_wdt_setup(&pmuk_wdt);

	if (ret)
		return ret;
	register_pm_notifier(&pmuk_wdt_pm_nb);
	hardlockup_settings_register(&pmuk_wdt_settings_nb);
	/* The settings may have changed since they were read for arming. */
	pmuk_wdt_settings_change(&pmuk_wdt_settings_nb, 0, NULL);
	atomic_notifier_chain_register(&panic_notifier_list, &pmuk_wdt_panic_nb);
	pmuk_wdt_sysfs_init();
	pmuk_wdt_debugfs_init();
	return 0;
}
late_initcall(pmuk_wdt_init);	/* PMUs are there by then */

static void __exit pmuk_wdt_exit(void)
{
	pmuk_wdt_debugfs_exit();
	pmuk_wdt_sysfs_exit();
	atomic_notifier_chain_unregister(&panic_notifier_list, &pmuk_wdt_panic_nb);
	hardlockup_settings_unregister(&pmuk_wdt_settings_nb);
	unregister_pm_notifier(&pmuk_wdt_pm_nb);
	pmuk_wdt_device_exit(&pmuk_wdt.dev);
	scoped_guard(mutex, &pmuk_wdt.lock)
		pmuk_wdt_disarm_all(&pmuk_wdt);
	cancel_delayed_work_sync(&pmuk_wdt.configure);
	irq_work_sync(&pmuk_wdt.dev.notify);	/* which the last beats may have queued */
	pmuk_wdt_timers_free(&pmuk_wdt);
	pmuk_wdt_counters_exit();
	free_cpumask_var(pmuk_wdt.wanted);
	free_cpumask_var(pmuk_wdt.counted);
}
module_exit(pmuk_wdt_exit);

MODULE_DESCRIPTION("NMI hard-lockup watchdog");
MODULE_LICENSE("GPL");
