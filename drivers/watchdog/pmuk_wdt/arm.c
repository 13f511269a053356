// SPDX-License-Identifier: GPL-2.0
/*
 * Arms and disarms the watchdog: when the module is loaded, when the threshold or the kernel's
 * settings change, and when the machine is suspended.
 */
#define pr_fmt(fmt) "pmuk_wdt: " fmt

#include <linux/cpufeature.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
#include <linux/nmi.h>
#include <linux/printk.h>
#include <linux/workqueue.h>
#include <linux/sched/isolation.h>

#include "wdt.h"

#define PMUK_WDT_THRESHOLD	10000	/* milliseconds, if the kernel has no watchdog_thresh */

static unsigned int threshold_ms;
module_param(threshold_ms, uint, 0444);
MODULE_PARM_DESC(threshold_ms, "Milliseconds without interrupts after which a CPU is stuck, 200 to 60000 (default: kernel.watchdog_thresh); change it in the device's directory in sysfs");

/* ---- settings ---- */

static void pmuk_wdt_find_isolated(struct pmuk_wdt *w) __must_hold(&w->lock)
{
	int cpu;

	cpumask_clear(&w->isolated);
	for_each_possible_cpu(cpu) {
		if (pmuk_wdt_is_isolated(cpu))
			cpumask_set_cpu(cpu, &w->isolated);
	}
}

/*
 * The watchdog device needs at least one online CPU that beats at the full rate. If all watched
 * CPUs are isolated, housekeeping CPUs beat as well. If no housekeeping CPU is online either, the
 * isolated CPUs beat at the full rate.
 */
static void pmuk_wdt_choose_beats(struct pmuk_wdt *w) __must_hold(&w->lock)
{
	int cpu;

	pmuk_wdt_find_isolated(w);
	cpumask_copy(&w->beating, &w->wanted);
	if (!pmuk_wdt_has_unisolated(&w->beating))
		cpumask_or(&w->beating, &w->wanted, housekeeping_cpumask(HK_TYPE_TIMER));
	if (!pmuk_wdt_has_unisolated(&w->beating))
		cpumask_clear(&w->isolated);
	for_each_possible_cpu(cpu)
		pmuk_wdt_of(cpu)->times = cpumask_test_cpu(cpu, &w->isolated) ?
					  &w->isolated_times : &w->times;
}

static void pmuk_wdt_use_threshold(struct pmuk_wdt *w, u64 threshold) __must_hold(&w->lock)
{
	w->times = pmuk_wdt_times_of(threshold);
	w->isolated_times = pmuk_wdt_isolated_times(threshold);
	threshold_ms = div_u64(threshold, NSEC_PER_MSEC);
}

/*
 * Stores watchdog_thresh in ->next_thresh, and the CPUs to watch in ->wanted. If the kernel has no
 * settings for modules, ->next_thresh is -errno. A task that changes the settings keeps their lock
 * until a worker has run on each CPU, which a real-time task may prevent for ever. So between
 * disarming and arming, no code may call this function.
 */
static void pmuk_wdt_read_settings(struct pmuk_wdt *w) __must_hold(&w->lock)
{
	w->next_thresh = hardlockup_settings(&w->wanted);
	if (w->next_thresh < 0)
		cpumask_copy(&w->wanted, housekeeping_cpumask(HK_TYPE_TIMER));
	if (!w->next_thresh)
		cpumask_clear(&w->wanted);
}

/* Returns the threshold for watchdog_thresh, which has no limit on the kernel's command line. */
static u64 pmuk_wdt_threshold_of(int thresh)
{
	u64 threshold = (u64)thresh * NSEC_PER_SEC;

	if (threshold <= PMUK_WDT_THRESHOLD_MAX)
		return threshold;
	pr_notice("watchdog_thresh of %d s is too long: 60 s\n", thresh);
	return PMUK_WDT_THRESHOLD_MAX;
}

/*
 * Takes over the settings that were read last, while the watchdog is disarmed. A threshold that was
 * written to threshold_ms stays in use until watchdog_thresh changes.
 */
static void pmuk_wdt_apply_settings(struct pmuk_wdt *w) __must_hold(&w->lock)
{
	int thresh = w->next_thresh;

	if (thresh > 0 && thresh != w->thresh)
		pmuk_wdt_use_threshold(w, pmuk_wdt_threshold_of(thresh));
	w->thresh = thresh;
	cpumask_copy(&w->cpus, &w->wanted);
	pmuk_wdt_choose_beats(w);
}

/* ---- the log: how each CPU is watched ---- */

/* Returns whether an NMI can make another CPU print its stack while that CPU has interrupts off. */
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

/* Returns NULL for a CPU that has come online and has not had its first NMI yet. */
static const char *pmuk_wdt_level_reason(const struct pmuk_wdt_cpu *c, enum pmuk_wdt_levels level)
{
	if (level == PMUK_WDT_NONE)
		return "no other CPU is watched";
	return READ_ONCE(c->lost_reason);
}

/* Logs each change of the level once. */
static void pmuk_wdt_log_level(int cpu) __must_hold(&pmuk_wdt.lock)
{
	struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);
	enum pmuk_wdt_levels level = pmuk_wdt_level(cpu);
	const char *reason = pmuk_wdt_level_reason(c, level);

	if (level == c->reported_level || (level < c->reported_level && !reason))
		return;
	if (!cpumask_test_cpu(cpu, &pmuk_wdt.watched))	/* the CPU has just gone offline */
		return;
	if (level < c->reported_level)
		pr_warn("CPU %d: watched by %s, no longer by %s: %s\n", cpu,
			pmuk_wdt_level_name(level), pmuk_wdt_level_name(c->reported_level), reason);
	else
		pr_info("CPU %d: watched by %s\n", cpu, pmuk_wdt_level_name(level));
	c->reported_level = level;
}

/* Logs changed levels of CPUs that are online: nobody expects offline CPUs to be watched. */
static void pmuk_wdt_log_levels(void)
	__must_hold(&pmuk_wdt.lock)
{
	int cpu;

	for_each_cpu_and(cpu, &pmuk_wdt.watched, &pmuk_wdt.cpus)
		pmuk_wdt_log_level(cpu);
}

/* Logs in one line how many CPUs have each level, when the watchdog is armed. */
static void pmuk_wdt_log_summary(const struct pmuk_wdt *w) __must_hold(&pmuk_wdt.lock)
{
	unsigned int nr[PMUK_WDT_LEVELS] = {};
	int cpu;

	for_each_cpu_and(cpu, &w->watched, &w->cpus) {
		pmuk_wdt_of(cpu)->reported_level = pmuk_wdt_level(cpu);
		nr[pmuk_wdt_of(cpu)->reported_level]++;
	}
	pr_info("threshold %u ms; CPUs watched by own-nmi: %u, timer-nmi: %u, neighbour-nmi: %u, neighbour: %u, none: %u\n",
		threshold_ms, nr[PMUK_WDT_OWN_NMI], nr[PMUK_WDT_TIMER_NMI],
		nr[PMUK_WDT_NEIGHBOUR_NMI], nr[PMUK_WDT_NEIGHBOUR], nr[PMUK_WDT_NONE]);
}

/* ---- counters ---- */

/* Returns whether a CPU is stuck: arming interrupts each CPU, and would wait for that one. */
static bool pmuk_wdt_is_any_stuck(const struct pmuk_wdt *w)
{
	int cpu;

	for_each_cpu(cpu, &w->watched) {
		if (atomic_read(&pmuk_wdt_of(cpu)->reported))
			return true;
	}
	return false;
}

static void pmuk_wdt_start_counters(struct pmuk_wdt *w) __must_hold(&w->lock)
{
	int ret = pmuk_wdt_counters_start(w);

	w->unplaced = ret == -ENODEV;
	if (ret)
		pr_notice("no cycle counters (%d): CPUs watch each other\n", ret);
	pmuk_wdt_counters_test(w);
}

/*
 * Returns whether a CPU to watch is online, and none was when the counters were to start. Starting
 * them would wait for a CPU that is stuck, reported or not.
 */
static bool pmuk_wdt_lacks_counters(const struct pmuk_wdt *w) __must_hold(&w->lock)
{
	int cpu;

	if (!w->unplaced || pmuk_wdt_is_any_stuck(w))
		return false;
	for_each_cpu_and(cpu, &w->watched, &w->cpus) {
		if (!pmuk_wdt_beats(cpu))
			return false;
	}
	return cpumask_intersects(&w->watched, &w->cpus);
}

/*
 * Beats queue this work. pmuk_wdt_disarm_all() waits for this work with ->lock held, so this work
 * must not wait for ->lock.
 */
void pmuk_wdt_manage(struct work_struct *work)
{
	struct pmuk_wdt *w = container_of(work, struct pmuk_wdt, manage);

	if (!mutex_trylock(&w->lock))
		return;
	lockdep_assert_held(&pmuk_wdt.lock);	/* for the levels; @w is &pmuk_wdt */
	if (w->armed) {
		pmuk_wdt_counters_judge(w);
		pmuk_wdt_log_levels();
		pmuk_wdt_counters_retry(w);
		if (pmuk_wdt_lacks_counters(w))
			pmuk_wdt_start_counters(w);
	}
	mutex_unlock(&w->lock);
}

/* ---- arm and disarm ---- */

#define PMUK_WDT_RETRY_DELAY		HZ	/* a stuck CPU may recover before the next try */

static void pmuk_wdt_forget(struct pmuk_wdt_cpu *c)
{
	WRITE_ONCE(c->clock.rate, 0);
	WRITE_ONCE(c->clock.top, 0);
	WRITE_ONCE(c->armed_ns, 0);
}

static int pmuk_wdt_arm_all(struct pmuk_wdt *w) __must_hold(&w->lock)
{
	int cpu, ret;

	lockdep_assert_held(&pmuk_wdt.lock);
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
	if (!cpumask_empty(&w->cpus))
		pmuk_wdt_start_counters(w);
	w->armed = true;
	/* CPUs may have gone offline after pmuk_wdt_choose_beats() chose them. */
	if (!pmuk_wdt_has_unisolated(&w->watched))
		queue_delayed_work(system_dfl_wq, &w->configure, PMUK_WDT_RETRY_DELAY);
	pmuk_wdt_log_summary(w);
	return 0;
}

/*
 * A CPU that gets stuck now keeps pmuk_wdt_counters_stop() waiting. Meanwhile, the beats of all
 * CPUs still check that CPU and the device, so beats stop last.
 */
void pmuk_wdt_disarm_all(struct pmuk_wdt *w) __must_hold(&w->lock)
{
	if (!w->armed)
		return;
	w->armed = false;
	pmuk_wdt_counters_stop(w);
	pmuk_wdt_beats_stop(w);
	cancel_work_sync(&w->manage);
}

/* Arms the watchdog with a new threshold in nanoseconds; its self-test runs again. */
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
	if (w->suspended)
		return 0;
	/* The settings may have changed while the watchdog was disarmed. */
	mod_delayed_work(system_dfl_wq, &w->configure, 0);
	return pmuk_wdt_arm_all(w);
}

/* The parameter threshold_ms goes before the threshold of the kernel's own detectors. */
int pmuk_wdt_first_threshold(struct pmuk_wdt *w)
{
	int ret;

	scoped_guard(mutex, &w->lock) {
		pmuk_wdt_read_settings(w);
		w->thresh = w->next_thresh;
		if (!threshold_ms)
			threshold_ms = w->thresh > 0 ? div_u64(pmuk_wdt_threshold_of(w->thresh),
							       NSEC_PER_MSEC) :
						       PMUK_WDT_THRESHOLD;
	}
	ret = pmuk_wdt_set_threshold(threshold_ms * NSEC_PER_MSEC);
	if (ret == -ERANGE)
		pr_err("threshold_ms of %u is not from 200 to 60000: no CPU is watched\n",
		       threshold_ms);
	return ret;
}

/*
 * Returns whether the kernel's settings differ from those in use, or the last CPU that beat at the
 * full rate has gone offline.
 */
static bool pmuk_wdt_is_changed(struct pmuk_wdt *w) __must_hold(&w->lock)
{
	pmuk_wdt_read_settings(w);
	return w->next_thresh != w->thresh || !cpumask_equal(&w->wanted, &w->cpus) ||
	       !pmuk_wdt_has_unisolated(&w->watched);
}

void pmuk_wdt_configure(struct work_struct *work)
{
	struct pmuk_wdt *w = container_of(to_delayed_work(work), struct pmuk_wdt, configure);

	guard(mutex)(&w->lock);
	if (!w->armed || !pmuk_wdt_is_changed(w))
		return;
	if (pmuk_wdt_is_any_stuck(w)) {
		queue_delayed_work(system_dfl_wq, &w->configure, PMUK_WDT_RETRY_DELAY);
		return;
	}
	pmuk_wdt_disarm_all(w);
	pmuk_wdt_arm_all(w);
}

/* Returns 0, or -EBUSY while a CPU is reported as stuck. */
int pmuk_wdt_suspend(struct pmuk_wdt *w)
{
	guard(mutex)(&w->lock);
	if (pmuk_wdt_is_any_stuck(w)) {
		pr_notice("no suspend while a CPU is stuck\n");
		return -EBUSY;
	}
	w->suspended = true;
	pmuk_wdt_disarm_all(w);
	/* While disarming waited for a CPU, beats of other CPUs have checked the device. */
	pmuk_wdt_device_suspend(&w->dev);
	return 0;
}

void pmuk_wdt_resume(struct pmuk_wdt *w)
{
	pmuk_wdt_device_resume(&w->dev);
	guard(mutex)(&w->lock);
	w->suspended = false;
	if (!w->armed)
		pmuk_wdt_arm_all(w);
	/* The settings may have changed meanwhile. */
	mod_delayed_work(system_dfl_wq, &w->configure, 0);
}
