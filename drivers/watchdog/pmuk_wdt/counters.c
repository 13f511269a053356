// SPDX-License-Identifier: GPL-2.0
/*
 * The context with a cycle counter on each CPU. A CPU without a free counter is left out until the
 * watchdog is armed again. When a CPU loses its counter later, the driver tries to get it back from
 * time to time. If overflows do not come as NMIs, the driver frees all counters.
 */
#define pr_fmt(fmt) "pmuk_wdt: " fmt

#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/pmu_kapi.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include "wdt.h"

static bool branches;
module_param(branches, bool, 0444);
MODULE_PARM_DESC(branches, "Reports have the latest branches of the stuck CPU, where the PMU records branches (default 0: this costs at each context switch, and takes the records from other users)");

/*
 * An idle CPU does not count cycles. So for the self-test a worker keeps each CPU busy until its
 * NMI comes, for PMUK_WDT_RUN_NS at most.
 */
#define PMUK_WDT_RUN_NS		(40 * NSEC_PER_MSEC)
#define PMUK_WDT_RUN_WAIT	HZ

static const uuid_t pmuk_wdt_uuid =
	UUID_INIT(0x6d3b9a01, 0x52ce, 0x4b7f, 0x9c, 0x18, 0x70, 0xe4, 0x2f, 0xa6, 0x0d, 0x5b);

static struct pmuk_format pmuk_wdt_format = {
	.name		= "pmuk_wdt",
	.sample_type	= PERF_SAMPLE_READ,
	.handler	= pmuk_wdt_nmi,
};

static void pmuk_wdt_run(struct work_struct *work);

int pmuk_wdt_counters_init(void)
{
	int cpu;

	scoped_guard(mutex, &pmuk_wdt.lock) {
		for_each_possible_cpu(cpu)
			INIT_WORK(&pmuk_wdt_of(cpu)->run, pmuk_wdt_run);
	}
	pmuk_wdt_format.uuid = pmuk_wdt_uuid;
	if (branches)
		pmuk_wdt_format.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	return pmuk_register_format(&pmuk_wdt_format);
}

void pmuk_wdt_counters_exit(void)
{
	int cpu;

	scoped_guard(mutex, &pmuk_wdt.lock) {
		for_each_possible_cpu(cpu)
			cancel_work_sync(&pmuk_wdt_of(cpu)->run);
	}
	pmuk_unregister_format(&pmuk_wdt_format);
}

/* A CPU that is stuck with interrupts off runs the kernel, so record no branches of user space. */
static int pmuk_wdt_describe(struct pmuk_context *ctx, u32 flags, bool record)
{
	struct pmuk_pmc pmc = {
		.type	= PERF_TYPE_HARDWARE,
		.config	= PERF_COUNT_HW_CPU_CYCLES,
		.flags	= PMUK_PINNED | PMUK_NO_THROTTLE | flags,
		.branch_sample_type = record ? PERF_SAMPLE_BRANCH_ANY |
					       PERF_SAMPLE_BRANCH_KERNEL : 0,
	};
	struct pmuk_pmd pmd = { .short_reset = PMUK_WDT_TEST_EVENTS };

	if (pmuk_write_pmcs(ctx, &pmc, 1) != 1)
		return pmc.ret ?: -EBUSY;
	return pmuk_write_pmds(ctx, &pmd, 1) == 1 ? 0 : pmd.ret ?: -EBUSY;
}

/* Starts the counters on all CPUs of the mask, or on none. */
static int pmuk_wdt_try(struct pmuk_context *ctx, const struct cpumask *cpus, int *failed_cpu)
{
	struct pmuk_target target = {
		.type		= PMUK_TARGET_CPUS,
		.cpus		= cpus,
		.failed_cpu	= -1,
	};
	int ret = pmuk_load_context(ctx, &target);

	if (!ret) {
		ret = pmuk_start(ctx, &target);
		if (ret)
			pmuk_unload_context(ctx);
	}
	*failed_cpu = target.failed_cpu;
	return ret;
}

/* Starts the counters, and leaves out CPUs that have no free counter, one after the other. */
static int pmuk_wdt_place(struct pmuk_context *ctx, struct cpumask *cpus)
{
	int cpu, ret;

	cpumask_copy(cpus, &pmuk_wdt.cpus);
	do {
		ret = pmuk_wdt_try(ctx, cpus, &cpu);
		if (ret != -ENOSPC || cpu < 0)
			return ret;
		cpumask_clear_cpu(cpu, cpus);
	} while (cpumask_intersects(cpus, cpu_online_mask));
	return ret;
}

/*
 * Leave guests out: the driver looks for lockups of the host only. Without the patch that lets
 * counters yield, a counter that counts guests keeps KVM from giving the PMU to a guest. A PMU
 * without support for exclusion returns -EINVAL. Such a PMU is not given to guests, so count
 * without exclusion there.
 */
static int pmuk_wdt_place_counters(struct pmuk_context *ctx, struct cpumask *cpus)
{
	int ret = pmuk_wdt_describe(ctx, PMUK_EXCLUDE_GUEST, false);

	if (!ret)
		ret = pmuk_wdt_place(ctx, cpus);
	if (ret != -EINVAL)
		return ret;
	ret = pmuk_wdt_describe(ctx, 0, false);
	return ret ?: pmuk_wdt_place(ctx, cpus);
}

/* Places counters that record branches, on all CPUs or on none. Branches are an extra. */
static int pmuk_wdt_place_recorders(struct pmuk_context *ctx, struct cpumask *cpus)
{
	int ret = pmuk_wdt_describe(ctx, PMUK_EXCLUDE_GUEST, true);

	if (!ret)
		ret = pmuk_wdt_place(ctx, cpus);
	if (!ret && !cpumask_equal(cpus, &pmuk_wdt.cpus)) {
		pmuk_unload_context(ctx);
		ret = -ENOSPC;
	}
	if (ret && ret != -ENODEV)	/* no CPU is online yet */
		pr_notice_once("not all CPUs can record branches (%d): reports have none\n", ret);
	return ret;
}

/* Starts the counters, after pmuk_wdt_beats_start() has cleared the records of earlier NMIs. */
int pmuk_wdt_counters_start(struct pmuk_wdt *w) __must_hold(&w->lock)
{
	const struct pmuk_context_attr attr = {
		.name	= "pmuk_wdt",
		.rank	= PMUK_RANK_CRITICAL,
		.format	= &pmuk_wdt_uuid,
	};
	struct pmuk_context *ctx = pmuk_create_context(&attr);
	int ret;

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	WRITE_ONCE(w->no_nmi, false);
	ret = branches ? pmuk_wdt_place_recorders(ctx, &w->counted) : -EOPNOTSUPP;
	if (ret)
		ret = pmuk_wdt_place_counters(ctx, &w->counted);
	if (ret) {
		cpumask_clear(&w->counted);
		pmuk_close(ctx);
		return ret;
	}
	WRITE_ONCE(w->ctx, ctx);
	return 0;
}

/*
 * A beat that is under way may still use the context. Beats run with interrupts off, so
 * synchronize_rcu() waits for them.
 */
void pmuk_wdt_counters_stop(struct pmuk_wdt *w) __must_hold(&w->lock)
{
	struct pmuk_context *ctx = w->ctx;
	int cpu;

	if (!ctx)
		return;
	WRITE_ONCE(w->ctx, NULL);
	synchronize_rcu();
	pmuk_close(ctx);
	for_each_cpu(cpu, &w->counted)
		WRITE_ONCE(pmuk_wdt_of(cpu)->own, false);
	cpumask_clear(&w->counted);
}

/* ---- the self-test ---- */

/*
 * Keeps the CPU busy until its first overflow: an NMI sets ->own, an ordinary interrupt sets
 * ->no_nmi. Interrupts stay on, and other tasks may preempt this work.
 */
static void pmuk_wdt_run(struct work_struct *work)
{
	const struct pmuk_wdt_cpu *c = container_of(work, struct pmuk_wdt_cpu, run);
	u64 end = ktime_get_mono_fast_ns() + PMUK_WDT_RUN_NS;

	while (!READ_ONCE(c->own) && !READ_ONCE(pmuk_wdt.no_nmi) && ktime_get_mono_fast_ns() < end)
		cond_resched();
}

static bool pmuk_wdt_has_own(void)
{
	int cpu;

	for_each_online_cpu(cpu) {
		if (READ_ONCE(pmuk_wdt_of(cpu)->own))
			return true;
	}
	return false;
}

/* A real-time task may keep the worker from running for ever, so do not wait beyond @end. */
static void pmuk_wdt_wait_for_run(struct work_struct *run, unsigned long end)
{
	while (work_busy(run) && time_before(jiffies, end))
		usleep_range(500, 1000);
	cancel_work(run);
}

/*
 * Tests all CPUs at the same time. Isolated CPUs are not disturbed: a counter there overflows when
 * its CPU has run for some milliseconds, and the NMI sets ->own then.
 */
void pmuk_wdt_counters_test(struct pmuk_wdt *w) __must_hold(&w->lock)
{
	unsigned long end = jiffies + PMUK_WDT_RUN_WAIT;
	int cpu;

	if (!w->ctx)
		return;
	lockdep_assert_held(&pmuk_wdt.lock);	/* guards ->run; @w is &pmuk_wdt */
	guard(cpus_read_lock)();
	for_each_cpu_and(cpu, &w->counted, cpu_online_mask) {
		if (!pmuk_wdt_is_isolated(cpu))
			queue_work_on(cpu, system_highpri_wq, &pmuk_wdt_of(cpu)->run);
	}
	for_each_cpu_and(cpu, &w->counted, cpu_online_mask)
		pmuk_wdt_wait_for_run(&pmuk_wdt_of(cpu)->run, end);
}

/* ---- while armed ---- */

/* A CPU that has been stuck for less than a beat still seems to beat. */
bool pmuk_wdt_beats(int cpu)
{
	const struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);

	return pmuk_wdt_is_beating(READ_ONCE(c->beat_at), ktime_get_mono_fast_ns(), c->times);
}

/*
 * Returns whether the CPU has lost its NMI, and beats. pmuk_restart_cpu() would wait for a CPU that
 * is stuck, reported or not.
 */
static bool pmuk_wdt_has_lost(int cpu)
{
	const struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);

	return READ_ONCE(c->lost_reason) && !READ_ONCE(c->own) && !atomic_read(&c->reported) &&
	       pmuk_wdt_beats(cpu);
}

/*
 * Frees the counters if the PMU has no NMIs. A missing NMI proves little on a busy machine. An
 * overflow that came as an ordinary interrupt proves that overflows are not NMIs.
 */
void pmuk_wdt_counters_judge(struct pmuk_wdt *w) __must_hold(&w->lock)
{
	if (!w->ctx || !READ_ONCE(w->no_nmi) || pmuk_wdt_has_own())
		return;
	pr_notice("counters interrupt, but not by NMI: they are given back\n");
	pmuk_wdt_counters_stop(w);
}

/*
 * A counter that another user of the PMU took may be free again, so try each counter again that is
 * not on its PMU.
 */
void pmuk_wdt_counters_retry(struct pmuk_wdt *w) __must_hold(&w->lock)
{
	int cpu;

	if (!w->ctx)
		return;
	for_each_cpu_and(cpu, &w->watched, &w->counted) {
		if (pmuk_wdt_has_lost(cpu))
			pmuk_restart_cpu(w->ctx, cpu);
	}
}
