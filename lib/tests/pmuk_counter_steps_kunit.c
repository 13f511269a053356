// SPDX-License-Identifier: GPL-2.0
/*
 * The tests disturb a local read between any two of its steps.
 *
 * The sources of local reads are compiled a second time, with registers that are memory. Each
 * access to what an interrupt may change is a step. Each disturbance is made before each step, and
 * each two before each two steps. The count must have been true at some time during the
 * read. So it is no less than before the read, and no more than after it; if nothing was counted
 * meanwhile, it is exact.
 */
/* The headers that come first must not include these two, whose code is instrumented below. */
#define _LINUX_PMU_KAPI_GROUP_H
#define _LINUX_PMU_KAPI_READ_H

#include <kunit/test.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/perf_event.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/seqlock.h>
#include <linux/timekeeping.h>

#include "pmuk_suite.h"
#include "pmuk_test.h"

#define STEPS_REGS	2
#define STEPS_PERIOD	1000
#define STEPS_MAX	40	/* more steps than an undisturbed read has */

struct disturbance {
	const char *name;
	void (*fn)(void);
	bool by_interrupt;	/* an interrupt can do this, an NMI cannot */
};

/* Holds the counter under test, its PMU, and the disturbances with their steps. */
static struct {
	struct perf_event event;
	struct perf_event_context ctx;
	struct pmu pmu;
	int pmu_disabled;
	u64 regs[STEPS_REGS];
	int reg_cpu[STEPS_REGS];	/* the only CPU with this register, if ->roams */
	bool roams;
	unsigned int faults;	/* reads of another CPU's register */
	u64 true_count;		/* events while not paused */
	unsigned int step;
	unsigned int when[2];
	const struct disturbance *what[2];
	bool after;		/* disturb after the load, and not before it */
	bool disturbing;
	bool masked;		/* interrupts are off */
	bool nmi;
	unsigned long *group_tick;	/* the group's ->fast_tick, if a group is read */
	unsigned int disturbed;
	unsigned long irqs;	/* number of disturbances */
	struct pmuk_counter c;
} steps;

static void disturb_at(unsigned int now)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(steps.when); i++) {
		const struct disturbance *what = steps.what[i];

		if (steps.when[i] != now || (steps.masked && what->by_interrupt))
			continue;
		steps.disturbing = true;
		steps.irqs++;
		what->fn();
		steps.disturbing = false;
		steps.disturbed++;
	}
}

/* Counts a step, and makes a disturbance that is due. A disturbance has no steps. */
static void step(void)
{
	if (steps.disturbing)
		return;
	steps.step++;
	if (!steps.after)
		disturb_at(steps.step - 1);
}

/* The step has loaded its value. */
static void stepped(void)
{
	if (!steps.disturbing && steps.after)
		disturb_at(steps.step - 1);
}

/* The register has been chosen. */
static u64 steps_read_reg(int idx)
{
	step();
	if (steps.roams && steps.reg_cpu[idx] != raw_smp_processor_id())
		steps.faults++;
	return steps.regs[idx];
}

static u64 steps_arch_read(const struct perf_event *event)
{
	return steps_read_reg(event->hw.idx);
}

#include "pmuk_steps.h"
#undef _LINUX_PMU_KAPI_READ_H
#include <linux/pmu_kapi_read.h>
#include "../../kernel/events/local.c"
#include "../../kernel/pmu_kapi/hw.c"
#include "../../kernel/pmu_kapi/snapshot.c"

/* The counter has no fields in its samples. */
static u64 pmuk_fields_fill(struct pmuk_sample *sample, struct perf_event *event, u64 wanted,
			    struct perf_sample_data *data, struct pt_regs *regs)
{
	return 0;
}

static u64 pmuk_current_cgroup(void)
{
	return 0;
}

#include "../../kernel/pmu_kapi/sample.c"
#include "../../kernel/pmu_kapi/local.c"
#include "../../kernel/pmu_kapi/pause.c"

/* Group reads are instrumented in the same way. */
#undef _LINUX_PMU_KAPI_GROUP_H
#include <linux/pmu_kapi_group.h>

#undef local_irq_save
#define local_irq_save(flags)		raw_local_irq_save(flags)
#undef local_irq_restore
#define local_irq_restore(flags)	raw_local_irq_restore(flags)

/* The next functions do what a PMU's driver does for one counter. */
static u64 *steps_reg(void)
{
	return &steps.regs[steps.event.hw.idx];
}

static void steps_update(void)
{
	struct perf_event *event = &steps.event;
	u64 delta = (*steps_reg() - local64_read(&event->hw.prev_count)) & steps.c.mask;

	local64_set(&event->hw.prev_count, *steps_reg());
	local64_add(delta, &event->count);
	local64_sub(delta, &event->hw.period_left);
}

static void steps_reload(void)
{
	struct hw_perf_event *hwc = &steps.event.hw;
	s64 left = local64_read(&hwc->period_left);

	if (left <= 0)
		left = left <= -(s64)hwc->sample_period ? hwc->sample_period
							: left + hwc->sample_period;
	local64_set(&hwc->period_left, left);
	local64_set(&hwc->prev_count, (u64)-left);
	*steps_reg() = (u64)-left & steps.c.mask;
}

static void steps_pmu_nothing(struct pmu *pmu)
{
}

static void steps_pmu_stop(struct perf_event *event, int flags)
{
	steps_update();
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static void steps_pmu_start(struct perf_event *event, int flags)
{
	event->hw.state = 0;
	steps_reload();
}

static void steps_happen(u64 n)
{
	*steps_reg() = (*steps_reg() + n) & steps.c.mask;
	if (!pmuk_state_is_frozen(steps.c.state))
		steps.true_count += n;
}

/* The next functions are the disturbances. */
static void disturb_count(void)
{
	steps_happen(7);
}

static void disturb_fold(void)
{
	steps_happen(7);
	steps_update();
}

/* The register reaches the end of the period, so prev_count is the same as before. */
static void disturb_overflow_exact(void)
{
	struct hw_perf_event *hwc = &steps.event.hw;
	u64 since = (*steps_reg() - local64_read(&hwc->prev_count)) & steps.c.mask;

	if (local64_read(&hwc->period_left) > (s64)since)
		steps_happen(local64_read(&hwc->period_left) - since);
	steps_update();
	steps_reload();
}

static void disturb_overflow_late(void)
{
	steps_happen(local64_read(&steps.event.hw.period_left) + 3);
	steps_update();
	steps_reload();
}

/*
 * The interrupt comes a period late. The driver begins a new period, and prev_count is the same as
 * before.
 */
static void disturb_overflow_period_late(void)
{
	steps_happen(local64_read(&steps.event.hw.period_left) + STEPS_PERIOD);
	steps_update();
	steps_reload();
}

/* The counter is restarted without a new event, so the count is the same as before. */
static void disturb_restart(void)
{
	steps_update();
	local64_set(&steps.event.hw.period_left, 0);
	steps_reload();
}

/* The counter moves to another register, which held something else before. */
static void disturb_move(void)
{
	steps_update();
	*steps_reg() = 0xdead & steps.c.mask;
	steps.event.hw.idx ^= 1;
	steps.event.hw.last_tag++;
	steps_reload();
}

static void disturb_period(void)
{
	steps_set_period(&steps.c, STEPS_PERIOD + 11);
}

static void disturb_pause_resume(void)
{
	steps_pause(&steps.c);
	steps_resume(&steps.c);
}

/*
 * perf core reschedules the paused event, and so starts it. Events until the resume must not count.
 */
static void disturb_pause_leak(void)
{
	steps_pause(&steps.c);
	steps.event.tstamp++;
	steps_pmu_start(&steps.event, 0);
	steps_happen(5);
	steps_resume(&steps.c);
}

/*
 * An NMI of another source cannot stop the hardware, which counts on. A context that masks in an
 * NMI also closes the fast path of its group.
 */
static void disturb_pause_by_nmi(void)
{
	if (steps.group_tick)
		*steps.group_tick = PMUK_GROUP_SLOW;
	steps.nmi = true;
	steps_pause(&steps.c);
	steps.nmi = false;
	steps_happen(5);
}

static void disturb_resume_by_nmi(void)
{
	steps.nmi = true;
	steps_resume(&steps.c);
	steps.nmi = false;
}

static const struct disturbance disturbances[] = {
	{ "count", disturb_count },
	{ "fold", disturb_fold },
	{ "overflow, exact", disturb_overflow_exact },
	{ "overflow, late", disturb_overflow_late },
	{ "overflow, a period late", disturb_overflow_period_late },
	{ "restart", disturb_restart },
	{ "move", disturb_move, true },
	{ "set_period", disturb_period },
	{ "pause, resume", disturb_pause_resume },
	{ "pause, leak, resume", disturb_pause_leak, true },
	{ "pause by NMI", disturb_pause_by_nmi },
	{ "resume by NMI", disturb_resume_by_nmi },
};

static void steps_reset(unsigned int width, u64 before)
{
	struct pmuk_counter *c = &steps.c;

	memset(&steps, 0, sizeof(steps));
	steps.when[0] = UINT_MAX;
	steps.when[1] = UINT_MAX;
	steps.pmu.pmu_disable = steps_pmu_nothing;
	steps.pmu.pmu_enable = steps_pmu_nothing;
	steps.pmu.stop = steps_pmu_stop;
	steps.pmu.start = steps_pmu_start;
	steps.event.pmu = &steps.pmu;
	steps.event.ctx = &steps.ctx;
	steps.event.state = PERF_EVENT_STATE_ACTIVE;
	steps.event.cpu = raw_smp_processor_id();
	steps.event.oncpu = raw_smp_processor_id();
	steps.event.hw.sample_period = STEPS_PERIOD;
	c->event = &steps.event;
	c->hw_event = &steps.event;
	c->last_group = &c->last;
	c->mask = GENMASK_ULL(width - 1, 0);
	c->state = PMUK_COUNTING;
	c->attr.period = STEPS_PERIOD;
	seqcount_latch_init(&c->latch);
	steps_reload();
	steps_happen(before);
}

/*
 * Reads by the fast or the slow path, with the arranged disturbances. Returns the number of steps.
 */
static unsigned int steps_check(struct kunit *test, bool fast, const char *what)
{
	u64 before = steps.true_count, count = 0;
	unsigned long flags;
	int ret;

	local_irq_save(flags);		/* keeps this CPU's tick out */
	if (steps.c.state <= PMUK_COUNTING)
		steps.c.state = fast ? jiffies : PMUK_COUNTING;
	steps.step = 0;
	ret = steps_read_local(&steps.c, &count);
	steps.when[0] = UINT_MAX;
	steps.when[1] = UINT_MAX;
	local_irq_restore(flags);

	if (ret || count < before || count > steps.true_count)
		KUNIT_FAIL(test, "%s, %s: %d, %llu is not in %llu...%llu", what,
			   fast ? "fast" : "slow", ret, count, before, steps.true_count);
	return steps.step;
}

static void steps_undisturbed(struct kunit *test, bool fast)
{
	unsigned int taken = steps_check(test, fast, "nothing");

	KUNIT_EXPECT_GE(test, taken, 5);
	KUNIT_EXPECT_LT(test, taken, STEPS_MAX);
}

/* Without a disturbance both paths give the count, at each width and across its wrap. */
static void steps_exact(struct kunit *test)
{
	static const unsigned int widths[] = { 16, 32, 48, 64 };
	unsigned int i, n;

	migrate_disable();
	for (i = 0; i < ARRAY_SIZE(widths); i++) {
		for (n = 0; n < 2 * STEPS_PERIOD; n += 13) {
			steps_reset(widths[i], n);
			steps_undisturbed(test, true);
			steps_undisturbed(test, false);
		}
	}
	migrate_enable();
}

static void steps_disturb(struct kunit *test, bool fast, unsigned int first, unsigned int second)
{
	unsigned int i, j, when = first;

	for (i = 0; i < ARRAY_SIZE(disturbances); i++) {
		for (j = 0; j < (second ? ARRAY_SIZE(disturbances) : 1); j++) {
			steps_reset(32, second ? 0 : 21);
			steps.when[0] = when;
			steps.what[0] = &disturbances[i];
			if (second) {
				steps.when[1] = second;
				steps.what[1] = &disturbances[j];
			}
			steps_check(test, fast, disturbances[i].name);
			/* The reads after a disturbed one must be right, too. */
			steps_check(test, fast, "after it");
			steps_check(test, false, "after it");
		}
	}
}

static void steps_one(struct kunit *test)
{
	unsigned int when;

	migrate_disable();
	for (when = 0; when < STEPS_MAX; when++) {
		steps_disturb(test, true, when, 0);
		steps_disturb(test, false, when, 0);
	}
	migrate_enable();
}

static void steps_two(struct kunit *test)
{
	unsigned int first, second, disturbed = 0;

	migrate_disable();
	for (first = 0; first < STEPS_MAX; first++) {
		for (second = first + 1; second < STEPS_MAX; second++) {
			steps_disturb(test, true, first, second);
			disturbed += steps.disturbed;
			steps_disturb(test, false, first, second);
			disturbed += steps.disturbed;
		}
	}
	migrate_enable();
	KUNIT_EXPECT_GT(test, disturbed, STEPS_MAX);
}

/* The counter leaves the PMU, and its register gets another content. */
static void disturb_off(void)
{
	if (perf_local_is_off(&steps.event))
		return;
	steps_pmu_stop(&steps.event, PERF_EF_UPDATE);
	steps.event.oncpu = -1;
	steps.event.tstamp++;
	*steps_reg() = 0xdead & steps.c.mask;
}

/*
 * The counter comes back to its register. Its tag is the same, as x86's driver knows nothing of
 * KVM and others that write a free register.
 */
static void disturb_on(void)
{
	if (!perf_local_is_off(&steps.event))
		return;
	steps.event.oncpu = raw_smp_processor_id();
	steps.event.tstamp++;
	steps_pmu_start(&steps.event, PERF_EF_RELOAD);
}

static const struct disturbance off = { "off", disturb_off, true };
static const struct disturbance on = { "on", disturb_on, true };

static unsigned int steps_off_at(struct kunit *test, bool fast, unsigned int first,
				 unsigned int second)
{
	unsigned long flags;
	u64 count = 0;
	int ret;

	steps_reset(32, 0);	/* the start then loads what the register had */
	steps.when[0] = first;
	steps.what[0] = &off;
	steps.when[1] = second;
	steps.what[1] = &on;
	local_irq_save(flags);		/* keeps this CPU's tick out */
	steps.c.state = fast ? jiffies : PMUK_COUNTING;
	ret = steps_read_local(&steps.c, &count);
	local_irq_restore(flags);
	if (ret ? ret != -EBUSY || !steps.disturbed : count)
		KUNIT_FAIL(test, "%s, off at step %u, on at %u: %d, %llu is not 0",
			   fast ? "fast" : "slow", first, second, ret, count);
	return steps.disturbed;
}

static void steps_off(struct kunit *test)
{
	unsigned int first, second, disturbed = 0;

	migrate_disable();
	for (first = 0; first < STEPS_MAX; first++) {
		for (second = first + 1; second <= STEPS_MAX; second++)
			disturbed += steps_off_at(test, true, first, second) +
				     steps_off_at(test, false, first, second);
	}
	migrate_enable();
	KUNIT_EXPECT_GT(test, disturbed, STEPS_MAX);
}

/* Another task preempts this one, which then continues on a CPU with other registers. */
static void disturb_migrate(void)
{
	if (!preemptible())
		return;
	set_cpus_allowed_ptr(current, cpumask_of(pmuk_test_next_cpu(raw_smp_processor_id())));
	disturb_move();
	steps.event.oncpu = raw_smp_processor_id();
}

static const struct disturbance migration = { "migrate", disturb_migrate, true };

static unsigned int steps_migrate_at(struct kunit *test, unsigned int when)
{
	u64 count = U64_MAX;
	int cpu = pmuk_test_pin_first(test);

	steps_reset(32, 21);
	steps.roams = true;
	steps.reg_cpu[0] = cpu;
	steps.reg_cpu[1] = pmuk_test_next_cpu(cpu);
	steps.event.cpu = -1;
	steps.event.hw.target = current;
	steps.c.bar = 1;
	steps.when[0] = when;
	steps.what[0] = &migration;
	steps.c.state = jiffies;
	KUNIT_EXPECT_EQ_MSG(test, steps_read_local(&steps.c, &count), 0, "at step %u", when);
	KUNIT_EXPECT_EQ_MSG(test, count, 21, "at step %u", when);
	KUNIT_EXPECT_EQ_MSG(test, steps.faults, 0, "at step %u: no such register here", when);
	return steps.disturbed;
}

/* A task reads its counter with preemption on, where CPUs differ in their registers. */
static void steps_migrate(struct kunit *test)
{
	unsigned int when, disturbed = 0;

	pmuk_test_other_cpu(test, pmuk_test_pin_first(test));
	for (when = 0; when < STEPS_MAX; when++)
		disturbed += steps_migrate_at(test, when);
	if (IS_ENABLED(CONFIG_PREEMPT_COUNT))
		KUNIT_EXPECT_GT(test, disturbed, 0);
}

static void read_inside(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	u64 count;

	steps_read_local(c, &count);
}

/*
 * perf core throttles an event before it calls the handler. It stops the event then (7.3), or after
 * the handler has returned (6.12).
 */
static void steps_throttle(void)
{
	struct perf_event *event = &steps.event;
	struct perf_sample_data data;

	perf_sample_data_init(&data, 0, STEPS_PERIOD);
	disturb_overflow_exact();
	event->hw.interrupts = PERF_LOCAL_THROTTLED;
	event->overflow_handler_context = &steps.c;
	steps_overflow(event, &data, NULL);
	event->hw.state = PERF_HES_STOPPED;
}

/* x86's driver on 6.12 moves a stopped counter like this, and does not load the new register. */
static void steps_move_stopped(void)
{
	steps_update();
	steps.event.hw.state |= PERF_HES_UPTODATE;
	steps.event.hw.idx ^= 1;
	*steps_reg() = 0xdead & steps.c.mask;
}

static void steps_moved_while_throttled(struct kunit *test, bool read_again)
{
	unsigned long flags;
	u64 count = 0;

	steps_reset(32, 21);
	steps.c.attr.overflow = read_inside;
	local_irq_save(flags);
	steps.c.state = jiffies;
	steps_throttle();
	if (read_again)
		steps_read_local(&steps.c, &count);
	steps_move_stopped();
	KUNIT_EXPECT_EQ(test, steps_read_local(&steps.c, &count), 0);
	local_irq_restore(flags);
	KUNIT_EXPECT_EQ(test, count, steps.true_count);
}

static void steps_throttled(struct kunit *test)
{
	migrate_disable();
	steps_moved_while_throttled(test, false);
	steps_moved_while_throttled(test, true);
	migrate_enable();
}

static int steps_check_period(struct perf_event *event, u64 period)
{
	return period < 10 ? -EINVAL : 0;
}

/*
 * pmuk asks the PMU's driver about a period, as perf core does. x86's drivers refuse some periods,
 * such as those that need BTS.
 */
static void steps_period_is_checked(struct kunit *test)
{
	migrate_disable();
	steps_reset(32, 21);
	steps.c.core = true;
	steps.pmu.check_period = steps_check_period;
	KUNIT_EXPECT_EQ(test, steps_set_period(&steps.c, 9), -EINVAL);
	KUNIT_EXPECT_EQ(test, steps.c.attr.period, STEPS_PERIOD);
	KUNIT_EXPECT_EQ(test, steps_set_period(&steps.c, 10), 0);
	KUNIT_EXPECT_EQ(test, steps.c.attr.period, 10);
	migrate_enable();
}

static DEFINE_PER_CPU(struct pmuk_group *, steps_groups);

static __always_inline bool steps_group_read(u64 *counts, unsigned int n, bool masked)
{
	struct pmuk_group *const *shown = raw_cpu_ptr(&steps_groups);

	switch (n) {
	case 1:	return pmuk_group_read(shown, counts, 1, masked);
	case 2:	return pmuk_group_read(shown, counts, 2, masked);
	case 3:	return pmuk_group_read(shown, counts, 3, masked);
	default: return pmuk_group_read(shown, counts, PMUK_GROUP_FAST, masked);
	}
}

/* Says how to read one counter @n times, as a group. @masked means with interrupts off. */
struct steps_group {
	struct pmuk_group *group;
	unsigned int n;
	bool masked;
};

/* The counts are all of one instant, or else the fast path gives up. */
static bool steps_check_group(struct kunit *test, const struct steps_group *g, const char *what)
{
	u64 before = steps.true_count, counts[PMUK_GROUP_FAST] = {};
	unsigned long flags;
	unsigned int i;
	bool done;

	local_irq_save(flags);		/* keeps this CPU's tick out */
	g->group->fast_tick = jiffies;
	memset(g->group->last, 0, sizeof(g->group->last));
	steps.group_tick = &g->group->fast_tick;
	steps.step = 0;
	steps.masked = g->masked;
	done = g->masked ? steps_group_read(counts, g->n, true) :
			   steps_group_read(counts, g->n, false);
	steps.masked = false;
	local_irq_restore(flags);

	for (i = 0; done && i < g->n; i++) {
		if (counts[i] != counts[0] || counts[i] < before || counts[i] > steps.true_count)
			KUNIT_FAIL(test, "%s: %llu and %llu differ, or not in %llu...%llu", what,
				   counts[0], counts[i], before, steps.true_count);
	}
	/* The next NMI reads no less than ->last, so ->last must not exceed the true count. */
	for (i = 0; i < g->n; i++) {
		if (g->group->last[i] > steps.true_count)
			KUNIT_FAIL(test, "%s: leaves %llu, more than %llu", what,
				   g->group->last[i], steps.true_count);
	}
	return done;
}

/*
 * An undisturbed group read succeeds, unless another CPU advances jiffies during the read, and so
 * begins another tick.
 */
static bool steps_group_is_read(struct kunit *test, const struct steps_group *g)
{
	unsigned long tick;

	do {
		tick = jiffies;
		steps_reset(32, 21);
		if (steps_check_group(test, g, "nothing"))
			return true;
	} while (time_after(jiffies, tick));
	return false;
}

static void steps_in_group_of(struct kunit *test, const struct steps_group *g)
{
	unsigned int i, when, disturbed = 0;

	KUNIT_EXPECT_TRUE(test, steps_group_is_read(test, g));
	KUNIT_EXPECT_EQ(test, g->group->last[g->n - 1], 21);
	for (when = 0; when < g->n * STEPS_MAX; when++) {
		for (i = 0; i < ARRAY_SIZE(disturbances); i++) {
			steps_reset(32, 21);
			steps.when[0] = when;
			steps.what[0] = &disturbances[i];
			steps_check_group(test, g, disturbances[i].name);
			disturbed += steps.disturbed;
			steps.when[0] = UINT_MAX;
			steps_check(test, false, "after it");
		}
	}
	KUNIT_EXPECT_GT(test, disturbed, STEPS_MAX);
}

/* An NMI reads while perf core's update has set prev_count, but has not added to the count yet. */
static void steps_expect_no_less(struct kunit *test)
{
	u64 count = 0;

	local64_set(&steps.event.hw.prev_count, *steps_reg());
	steps.c.state = PMUK_COUNTING;
	steps.nmi = true;
	KUNIT_EXPECT_EQ(test, steps_read_local(&steps.c, &count), 0);
	steps.nmi = false;
	KUNIT_EXPECT_EQ(test, count, 21);
}

static void steps_nmi_reads_no_less(struct kunit *test)
{
	struct steps_group g = { .n = 1 };

	g.group = pmuk_test_zalloc(test, sizeof(*g.group));
	g.group->events[0] = &steps.event;
	g.group->masks[0] = GENMASK_ULL(31, 0);
	migrate_disable();
	steps_reset(32, 21);
	steps_undisturbed(test, true);
	steps_expect_no_less(test);

	raw_cpu_write(steps_groups, g.group);
	KUNIT_EXPECT_TRUE(test, steps_group_is_read(test, &g));
	steps.c.last_group = &g.group->last[0];
	steps_expect_no_less(test);
	raw_cpu_write(steps_groups, NULL);
	migrate_enable();
}

/* The count that a group read in an interrupt has returned. */
static u64 steps_read_inside;

/* An interrupt reads the same group. */
static void disturb_read(void)
{
	u64 counts[PMUK_GROUP_FAST];

	steps_happen(7);
	if (steps_group_read(counts, 1, false))
		steps_read_inside = counts[0];
}

static const struct disturbance reading = { "read", disturb_read, true };

/*
 * The interrupt has read more than the read that it has interrupted. If that read succeeds
 * nevertheless, it leaves what the interrupt has read. If not, the caller reads again.
 */
static bool steps_read_at(struct kunit *test, struct steps_group *g, unsigned int when)
{
	bool done;

	steps_reset(32, 21);
	steps.after = true;
	steps.when[0] = when;
	steps.what[0] = &reading;
	steps_read_inside = 0;
	done = steps_check_group(test, g, "an interrupt that reads");
	if (done)
		KUNIT_EXPECT_GE_MSG(test, g->group->last[0], steps_read_inside, "step %u", when);
	return !done && steps_read_inside;
}

/*
 * The latest count of a group is not replaced by an older one. On x86, interrupts are off during a
 * group read, so none of them can come between.
 */
static void steps_keep_the_latest(struct kunit *test)
{
	struct steps_group g = { .n = 1 };
	unsigned int when, again = 0;

	g.group = pmuk_test_zalloc(test, sizeof(*g.group));
	g.group->events[0] = &steps.event;
	g.group->masks[0] = GENMASK_ULL(31, 0);
	migrate_disable();
	raw_cpu_write(steps_groups, g.group);
	for (when = 0; when < STEPS_MAX; when++)
		again += steps_read_at(test, &g, when);
	raw_cpu_write(steps_groups, NULL);
	migrate_enable();
	if (!IS_ENABLED(CONFIG_X86))
		KUNIT_EXPECT_GT(test, again, 0);
}

/* The fast path has separate code for each number of counters. */
static void steps_in_group(struct kunit *test)
{
	struct steps_group g = {};

	g.group = pmuk_test_zalloc(test, sizeof(*g.group));
	migrate_disable();
	raw_cpu_write(steps_groups, g.group);
	for (g.n = 1; g.n <= PMUK_GROUP_FAST; g.n++) {
		g.group->events[g.n - 1] = &steps.event;
		g.group->masks[g.n - 1] = GENMASK_ULL(31, 0);
		g.masked = false;
		steps_in_group_of(test, &g);
		g.masked = true;
		steps_in_group_of(test, &g);
	}
	raw_cpu_write(steps_groups, NULL);
	migrate_enable();
}

static struct kunit_case pmuk_counter_steps_cases[] = {
	KUNIT_CASE(steps_exact),
	KUNIT_CASE(steps_one),
	KUNIT_CASE(steps_two),
	KUNIT_CASE(steps_off),
	KUNIT_CASE(steps_migrate),
	KUNIT_CASE(steps_throttled),
	KUNIT_CASE(steps_period_is_checked),
	KUNIT_CASE(steps_in_group),
	KUNIT_CASE(steps_nmi_reads_no_less),
	KUNIT_CASE(steps_keep_the_latest),
	{}
};

PMUK_SUITE(pmuk_counter_steps, NULL, "KUnit: what can come in the middle of a local read");
