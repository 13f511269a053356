// SPDX-License-Identifier: GPL-2.0
/*
 * The tests call pmuk_read_local() on the machine's own PMU. A read gets all counters of the active
 * event set at one instant, and no count goes back, whatever happens to the counters meanwhile.
 *
 * If group reads have a fast path, each test checks that reads have used it: every other read
 * hides the pointer from which the slow path starts, so that only the fast path succeeds.
 */
#include <linux/hrtimer.h>
#include <linux/timekeeping.h>

#include "../../kernel/pmu_kapi/context.h"
#include "pmuk_ctx.h"
#include "pmuk_hw.h"
#include "pmuk_suite.h"

/*
 * Each set has so many counters, all for cycles. x86 has five registers for cycles: the test's own
 * observer takes one, and the kernel's watchdog may take one.
 */
#define NR	3
#define SETS	2

static const struct pmuk_attr cycles = PMUK_HW_CYCLES;

#ifdef perf_arch_read_all
#define HAS_FAST	true
#else
#define HAS_FAST	false
#endif

/* Holds the latest counts that were read of a set. */
struct seen {
	u64 task[NR];
	u64 nmi[NR];
};

struct reads {
	unsigned int nr, busy, failed, wrong;
	unsigned int fast;		/* succeeded by the fast path alone */
	unsigned int changes;		/* from success to -EBUSY, and back */
	bool was_busy;
};

struct hw {
	struct kunit *test;
	struct pmuk_context *ctx;
	int cpu;
	struct seen seen[SETS];
	struct pmuk_hw_guard guard;
	struct pmuk_hw_pace pace;	/* pace of start_looking()'s overflows */
	u64 counts[NR];			/* latest read of the task */
	struct reads task;		/* reads by the task */
	struct reads nmi;		/* reads by its interrupts */
	bool has_nmi;			/* pmuk_irq_run() can make NMIs */
	unsigned int troubles;
	u64 left;			/* smallest result of all_left(), ... */
	unsigned long end;		/* ... and until when to wait for a smaller one */
	struct perf_event *others[8];
	u64 sums[SETS][NR];		/* sums over all CPUs */
};

static struct hw *new_hw(struct kunit *test, const struct pmuk_context_attr *attr)
{
	struct hw *hw = pmuk_test_zalloc(test, sizeof(*hw));

	hw->test = test;
	hw->cpu = pmuk_test_pin_first(test);
	hw->ctx = pmuk_ctx_create(test, attr);
	return hw;
}

#define PERIOD_MASK	0xffff

/* Adds NR counters to set @set, which exists. */
static void add_counters(struct hw *hw, u16 set, const struct pmuk_attr *attr, u64 period)
{
	unsigned int num;

	for (num = 0; num < NR; num++) {
		struct pmuk_pmc pmc = { .set = set, .num = num, .type = attr->type,
					.config = attr->config, .flags = attr->flags };
		/*
		 * Periods differ, so that counters overflow apart from each other. Periods are
		 * random, because an update by x86's driver detects an NMI in its middle by a
		 * changed prev_count. If the host takes the CPU away, the NMI can be a period late,
		 * and fixed periods would all begin at the same prev_count.
		 */
		struct pmuk_pmd pmd = { .set = set, .num = num,
					.short_reset = period ? period + 1009 * num : 0,
					.random_mask = period > PERIOD_MASK ? PERIOD_MASK : 0,
					.random_seed = num,
					.flags = period ? PMUK_PMD_NOTIFY : 0 };

		KUNIT_ASSERT_EQ(hw->test, pmuk_write_pmcs(hw->ctx, &pmc, 1), 1);
		pmuk_ctx_write_pmd(hw->test, hw->ctx, &pmd);
	}
}

static void begin(struct hw *hw)
{
	pmuk_ctx_run(hw->test, hw->ctx, hw->cpu);
}

static struct pmuk_inst *inst_of(const struct hw *hw)
{
	return READ_ONCE(hw->ctx->insts[hw->cpu]);
}

/* Returns the index of the active set on this CPU, or -1. */
static int set_of(const struct hw *hw)
{
	const struct pmuk_inst *inst = inst_of(hw);
	const struct pmuk_turn *turn = inst ? READ_ONCE(inst->active) : NULL;

	return turn ? turn - inst->turns : -1;
}

/* Returns 0 if the fast path has read @n counts. The slow path cannot: it finds no instance. */
static int read_some_fast(struct hw *hw, u64 *counts, unsigned int n)
{
	struct pmuk_inst *inst;
	int ret;

	guard(preempt)();
	inst = inst_of(hw);
	WRITE_ONCE(hw->ctx->insts[hw->cpu], NULL);
	barrier();	/* for interrupts, which read the pointer */
	ret = pmuk_read_local(hw->ctx, counts, n);
	barrier();
	WRITE_ONCE(hw->ctx->insts[hw->cpu], inst);
	return ret;
}

static int read_fast_alone(struct hw *hw, u64 *counts)
{
	return read_some_fast(hw, counts, NR);
}

/* Tries the fast path alone every other time. All other reads use the usual call. */
static int read_either(struct hw *hw, u64 *counts)
{
	if (hw->task.nr++ % 2 && !read_fast_alone(hw, counts)) {
		hw->task.fast++;
		return 0;
	}
	return pmuk_read_local(hw->ctx, counts, NR);
}

/*
 * If the emulator has lost the counters since there were @losses, the counts that were read until
 * now say nothing about later ones.
 */
static void forget_what_was_lost(struct hw *hw, unsigned int losses, u64 *counts, u64 *least)
{
	if (pmuk_hw_losses(&hw->guard) == losses)
		return;
	memset(hw->seen, 0, sizeof(hw->seen));
	memset(counts, 0, NR * sizeof(*counts));
	memset(least, 0, NR * sizeof(*least));
}

static void note(struct reads *reads, int ret, const u64 *counts, const u64 *least)
{
	unsigned int i;

	reads->changes += reads->was_busy != (ret == -EBUSY);
	reads->was_busy = ret == -EBUSY;
	reads->busy += ret == -EBUSY;
	reads->failed += ret && ret != -EBUSY;
	for (i = 0; !ret && i < NR; i++)
		reads->wrong += counts[i] < least[i];
}

/* Checks that no count is less than one that this task or its interrupts have read before. */
static void look(struct hw *hw)
{
	unsigned int i, losses = READ_ONCE(hw->guard.losses);
	u64 least[NR] = {};
	struct seen *seen;
	int set, ret;

	guard(preempt)();	/* keeps the turn from ending */
	set = set_of(hw);
	if (set < 0)
		return;
	seen = &hw->seen[set];
	for (i = 0; i < NR; i++)
		least[i] = max(seen->task[i], READ_ONCE(seen->nmi[i]));
	ret = read_either(hw, hw->counts);
	forget_what_was_lost(hw, losses, hw->counts, least);
	note(&hw->task, ret, hw->counts, least);
	for (i = 0; !ret && i < NR; i++)
		WRITE_ONCE(seen->task[i], hw->counts[i]);
	/* An interrupt may have found a loss after the check above. */
	if (READ_ONCE(hw->guard.losses) != losses)
		memset(seen->task, 0, sizeof(seen->task));
}

/*
 * Runs at any instruction of the task. There is nothing to read while the task hides the instance,
 * or between two turns.
 */
static void look_from_nmi(void *data)
{
	struct hw *hw = data;
	unsigned int i, losses = READ_ONCE(hw->guard.losses);
	u64 counts[NR], least[NR];
	struct seen *seen;
	int ret, set = set_of(hw);

	if (set < 0)
		return;
	seen = &hw->seen[set];
	for (i = 0; i < NR; i++)
		least[i] = max(READ_ONCE(seen->task[i]), seen->nmi[i]);
	ret = pmuk_read_local(hw->ctx, counts, NR);
	hw->nmi.nr++;
	forget_what_was_lost(hw, losses, counts, least);
	note(&hw->nmi, ret, counts, least);
	for (i = 0; !ret && i < NR; i++)
		WRITE_ONCE(seen->nmi[i], counts[i]);
}

static void look_from_overflow(struct pmuk_counter *c, const struct pmuk_sample *sample,
			       void *data)
{
	struct hw *hw = data;

	pmuk_hw_keep_pace(&hw->pace, c, READ_ONCE(hw->task.nr), 256);
	look_from_nmi(hw);
}

/*
 * Returns a counter that overflows all the time, and reads the set in its callback. The counter is
 * pinned, so that other events do not push it out.
 */
static struct pmuk_counter *start_looking(struct hw *hw)
{
	struct pmuk_attr attr = PMUK_HW_CYCLES;

	attr.flags |= PMUK_PINNED;
	attr.period = 50000;
	hw->pace.period = attr.period;
	attr.random_mask = 0xfff;
	attr.overflow = look_from_overflow;
	attr.data = hw;
	return pmuk_test_enabled(hw->test, &attr, hw->cpu, NULL);
}

/* ---- never back ---- */

struct trouble {
	const char *name;
	u32 flags;			/* flags of the context */
	unsigned int sets;
	u64 timeout;			/* length of each set's turn */
	u64 period;			/* long, as each of three counters overflows */
	unsigned int fast;		/* least number of successful and of fast reads; 0: 1000 */
	void (*begin)(struct hw *hw);
	void (*make)(struct hw *hw);
	u64 (*left)(const struct hw *hw);	/* counts what must still happen besides reads */
};

static u64 missing(u64 happened, u64 wanted)
{
	return happened < wanted ? wanted - happened : 0;
}

#define LEFT(what, left) \
	static u64 what##_left(const struct hw *hw) { return left; }

LEFT(troubles, missing(hw->troubles, 100))
LEFT(overflows, missing(atomic64_read(&inst_of(hw)->overflows), 500))
LEFT(changes, missing(hw->task.changes, 20))
LEFT(switches, troubles_left(hw) + missing(inst_of(hw)->switches, 200))

/* Returns how many reads, interrupts and other events must still happen before the test may end. */
static u64 all_left(const struct hw *hw, const struct trouble *t)
{
	u64 fast = t->fast ?: 1000, left = t->left(hw);

	if (HAS_FAST)
		left += missing(hw->task.fast, fast);
	return left + missing(hw->nmi.nr, 200) + missing(hw->task.nr, 5000) +
	       missing(hw->task.nr - hw->task.busy, fast);
}

/* The host may be slow. So a test goes on as long as all_left() decreases now and then. */
static bool goes_on(struct hw *hw, const struct trouble *t)
{
	u64 left = all_left(hw, t);

	if (left < hw->left) {
		hw->left = left;
		hw->end = jiffies + 6 * PMUK_CTX_PATIENCE;
	}
	return left && time_before(jiffies, hw->end);
}

/* Returns an event that does not belong to the context, on this CPU. */
static struct perf_event *new_other(struct hw *hw)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
	};
	struct perf_event *event;

	event = perf_event_create_kernel_counter(&attr, hw->cpu, NULL, NULL, NULL);
	KUNIT_EXPECT_FALSE(hw->test, IS_ERR(event));
	return event;
}

static void put_other(struct hw *hw, unsigned int i)
{
	if (!IS_ERR_OR_NULL(hw->others[i]))
		perf_event_release_kernel(hw->others[i]);
	hw->others[i] = NULL;
}

static void put_others(void *data)
{
	struct hw *hw = data;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(hw->others); i++)
		put_other(hw, i);
}

static void get_ready_for_others(struct hw *hw)
{
	KUNIT_ASSERT_EQ(hw->test, kunit_add_action_or_reset(hw->test, put_others, hw), 0);
}

/*
 * The crowd has one event more than the PMU has counters, so perf core rotates the events. With
 * still more events the context's counters might never be on the PMU together, as rotation could
 * separate them while they are being created.
 */
static void begin_crowd(struct hw *hw)
{
	unsigned int i;

	get_ready_for_others(hw);
	for (i = 0; i < ARRAY_SIZE(hw->others); i++) {
		hw->others[i] = new_other(hw);
		if (!IS_ERR(hw->others[i]) && READ_ONCE(hw->others[i]->oncpu) < 0)
			return;
	}
}

/* Pinned events come and go, one or two at a time. They may find room or not. */
static void come_and_go(struct hw *hw)
{
	unsigned int i = hw->troubles++ % 3;

	if (hw->others[i])
		put_other(hw, i);
	else
		hw->others[i] = new_other(hw);
}

static void switch_sets(struct hw *hw)
{
	KUNIT_EXPECT_EQ(hw->test, pmuk_switch_evtset(hw->ctx, hw->troubles++ % SETS), 0);
}

/* After a reload, the counts of the CPU begin at 0. The sums over all CPUs go on. */
static void reload(struct hw *hw)
{
	struct kunit *test = hw->test;
	unsigned int num;
	u64 sum;

	KUNIT_EXPECT_EQ(test, pmuk_unload_context(hw->ctx), 0);
	memset(hw->seen, 0, sizeof(hw->seen));
	for (num = 0; num < NR; num++) {
		sum = pmuk_ctx_count(test, hw->ctx, 0, num, -1);
		KUNIT_EXPECT_GE(test, sum, hw->sums[0][num] + hw->counts[num]);
		hw->sums[0][num] = sum;
	}
	begin(hw);
	hw->troubles++;
}

static void restart(struct hw *hw)
{
	if (!atomic_read(&inst_of(hw)->masked))
		return;
	KUNIT_EXPECT_EQ(hw->test, pmuk_restart(hw->ctx), 0);
	hw->troubles++;
}

static void make_all(struct hw *hw)
{
	switch (hw->task.nr / 50 % 3) {
	case 0:
		return come_and_go(hw);
	case 1:
		return switch_sets(hw);
	case 2:
		return restart(hw);
	}
}

static struct hw *begin_trouble(struct kunit *test, const struct trouble *t)
{
	const struct pmuk_context_attr attr = { .flags = t->flags };
	struct hw *hw = new_hw(test, &attr);
	unsigned int set;

	hw->left = U64_MAX;
	hw->has_nmi = !pmuk_irq_get_nmi();
	if (hw->has_nmi)
		KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_put_nmi, NULL), 0);
	for (set = 0; set < t->sets; set++) {
		pmuk_ctx_add_set(test, hw->ctx, set, t->timeout);
		add_counters(hw, set, &cycles, t->period);
	}
	begin(hw);
	pmuk_hw_guard_start(test, &hw->guard, hw->cpu);
	if (t->begin)
		t->begin(hw);
	return hw;
}

static const struct trouble troubles[] = {
	{ "a storm", .sets = 1, .period = 1000000, .left = overflows_left },
	{ "perf rotates", .sets = 1, .period = 1000000, .begin = begin_crowd,
	  .left = changes_left },
	{ "others come and go", .sets = 1, .period = 1000000, .begin = get_ready_for_others,
	  .make = come_and_go, .left = troubles_left },
	{ "sets take turns", .sets = SETS, .period = 1000000, .timeout = NSEC_PER_MSEC,
	  .make = switch_sets, .left = switches_left },
	{ "reloads", .sets = 1, .period = 1000000, .make = reload, .left = troubles_left },
	{ "masks", .flags = PMUK_CTX_MASK, .sets = 1, .period = 1000000, .make = restart,
	  .left = troubles_left },
	{ "all of that", .flags = PMUK_CTX_MASK, .sets = SETS, .period = 5000000,
	  .timeout = 2 * NSEC_PER_MSEC, .fast = 200, .begin = get_ready_for_others,
	  .make = make_all, .left = switches_left },
};

KUNIT_ARRAY_PARAM_DESC(troubles, troubles, name);

static void reads_grow(struct kunit *test)
{
	const struct trouble *t = test->param_value;
	struct hw *hw = begin_trouble(test, t);
	struct pmuk_counter *ticker = start_looking(hw);
	unsigned int i;

	while (goes_on(hw, t)) {
		for (i = 0; i < 50; i++)
			look(hw);
		pmuk_irq_nudge();
		if (hw->has_nmi)
			KUNIT_ASSERT_EQ(test, pmuk_irq_run(PMUK_IRQ_NMI, look_from_nmi, hw), 0);
		if (t->make)
			t->make(hw);
	}
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(ticker), 0);
	KUNIT_EXPECT_EQ(test, all_left(hw, t), 0);
	KUNIT_EXPECT_EQ(test, hw->task.wrong, 0);
	KUNIT_EXPECT_EQ(test, hw->task.failed, 0);
	KUNIT_EXPECT_EQ(test, hw->nmi.wrong, 0);
	KUNIT_EXPECT_EQ(test, hw->nmi.failed, 0);
	kunit_info(test, "%u reads, %u fast, %u busy; %u in overflows, %u busy; %u troubles, %u losses",
		   hw->task.nr, hw->task.fast, hw->task.busy, hw->nmi.nr, hw->nmi.busy,
		   hw->troubles, hw->guard.losses);
}

/* ---- one instant ---- */

/* The value of a full read lies between those of the local reads before and after it. */
static void agree_with_full_reads(struct kunit *test)
{
	struct hw *hw = new_hw(test, NULL);
	struct pmuk_value value;
	u64 before[NR], count;
	unsigned int i, num;

	add_counters(hw, 0, &cycles, 200000);
	begin(hw);
	for (i = 0; i < 1000; i++) {
		num = i % NR;
		KUNIT_ASSERT_EQ(test, read_either(hw, before), 0);
		count = pmuk_ctx_count(test, hw->ctx, 0, num, hw->cpu);
		KUNIT_ASSERT_EQ(test, read_either(hw, hw->counts), 0);
		KUNIT_ASSERT_GT(test, count, before[num]);
		KUNIT_ASSERT_LT(test, count, hw->counts[num]);
		KUNIT_ASSERT_EQ(test, pmuk_counter_read(inst_of(hw)->turns[0].counters[num],
							&value), 0);
		KUNIT_ASSERT_EQ(test, read_either(hw, before), 0);
		KUNIT_ASSERT_GT(test, value.count, hw->counts[num]);
		KUNIT_ASSERT_LT(test, value.count, before[num]);
	}
	KUNIT_EXPECT_GE(test, hw->task.fast, HAS_FAST ? i / 2 : 0);
}

struct moment {
	u64 before, after;	/* by ktime_get_ns() */
	u64 counts[NR];
};

/* Uses the fast path if there is one, as that path succeeds only if nothing has interrupted it. */
static void take_moment(struct hw *hw, struct moment *m)
{
	int ret;

	do {
		KUNIT_ASSERT_EQ(hw->test, pmuk_read_local(hw->ctx, m->counts, NR), 0);
		m->before = ktime_get_ns();
		ret = HAS_FAST ? read_fast_alone(hw, m->counts) :
				 pmuk_read_local(hw->ctx, m->counts, NR);
		m->after = ktime_get_ns();
	} while (ret);
}

/*
 * On an emulator each count grows by the time that has passed, or by less if the counters were
 * stopped meanwhile. With -icount, all counts of an arm64 CPU grow by the same number.
 */
static void intervals_are_equal(struct kunit *test)
{
	bool exact = pmuk_hw_on_emulator() && pmuk_hw_counts_instructions();
	struct hw *hw = new_hw(test, NULL);
	bool ns = pmuk_hw_cycles_are_ns();
	u64 passed, least, most, slack;
	struct moment from, to;
	unsigned int i, num, stops;

	add_counters(hw, 0, &cycles, 0);
	begin(hw);
	for (i = 0; i < 200; i++) {
		stops = pmuk_hw_stops();
		take_moment(hw, &from);
		pmuk_test_spin(100 * NSEC_PER_USEC);
		take_moment(hw, &to);
		/* The clock advances in steps of 16 ns, or less. */
		slack = 16 + (to.after - from.before) * PMUK_HW_CLOCK_PPM / 1000000;
		least = pmuk_hw_stops() == stops ? to.before - from.after - slack : 0;
		most = to.after - from.before + slack;
		for (num = 0; num < NR; num++) {
			passed = to.counts[num] - from.counts[num];
			if (exact)
				KUNIT_ASSERT_EQ(test, passed, to.counts[0] - from.counts[0]);
			if (!ns)
				continue;
			KUNIT_ASSERT_GE(test, passed, least);
			KUNIT_ASSERT_LE(test, passed, most);
		}
	}
}

static const struct pmuk_attr made = PMUK_HW_MADE;

/* The timer's interrupts make events, at any instruction of the task. */
struct maker {
	struct hrtimer timer;
	u64 intent, done;	/* events about to be made, and made */
	bool armed;
};

/* Each interrupt makes one event, so a read that it interrupts counts one more at most. */
static enum hrtimer_restart make_from_timer(struct hrtimer *timer)
{
	struct maker *m = container_of(timer, struct maker, timer);

	WRITE_ONCE(m->intent, m->intent + 1);
	pmuk_hw_make_event();
	WRITE_ONCE(m->done, m->intent);
	WRITE_ONCE(m->armed, false);
	return HRTIMER_NORESTART;
}

static void stop_maker(void *data)
{
	struct maker *m = data;

	hrtimer_cancel(&m->timer);
}

static struct maker *new_maker(struct kunit *test)
{
	struct maker *m = pmuk_test_zalloc(test, sizeof(*m));

	hrtimer_setup(&m->timer, make_from_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, stop_maker, m), 0);
	return m;
}

/* The next interrupt comes soon, each time after another number of steps. */
static void arm_maker(struct maker *m)
{
	u64 ns = 10000 + 97 * (m->done % 64);

	if (READ_ONCE(m->armed))
		return;
	WRITE_ONCE(m->armed, true);
	hrtimer_start(&m->timer, ns_to_ktime(ns), HRTIMER_MODE_REL_PINNED_HARD);
}

/* Returns whether all counts are equal, and of a moment during the read. */
static bool is_one_instant(const u64 *counts, u64 least, u64 most)
{
	unsigned int i;

	for (i = 0; i < NR; i++) {
		if (counts[i] != counts[0] || counts[i] < least || counts[i] > most)
			return false;
	}
	return true;
}

static void read_among_made_events(struct kunit *test, u64 period)
{
	struct pmuk_test_progress progress = {};
	struct hw *hw = new_hw(test, NULL);
	struct maker *m;
	unsigned int num;
	u64 least;

	pmuk_hw_need_made_events(test);
	add_counters(hw, 0, &made, period);
	begin(hw);
	m = new_maker(test);
	while ((READ_ONCE(m->done) < 5000 || hw->task.nr < 20000) &&
	       pmuk_test_goes_on(&progress, min(READ_ONCE(m->done), 5000) +
					    min(hw->task.nr, 20000))) {
		arm_maker(m);
		least = READ_ONCE(m->done);
		KUNIT_ASSERT_EQ(test, read_either(hw, hw->counts), 0);
		if (!is_one_instant(hw->counts, least, READ_ONCE(m->intent)))
			hw->task.wrong++;
	}
	stop_maker(m);
	KUNIT_EXPECT_EQ(test, hw->task.wrong, 0);
	KUNIT_EXPECT_GE(test, m->done, 5000);
	KUNIT_EXPECT_GE(test, hw->task.nr, 20000);
	KUNIT_EXPECT_GE(test, hw->task.fast, HAS_FAST ? 5000 : 0);
	KUNIT_ASSERT_EQ(test, pmuk_read_local(hw->ctx, hw->counts, NR), 0);
	for (num = 0; num < NR; num++) {
		KUNIT_EXPECT_EQ(test, hw->counts[num], m->done);
		KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, hw->ctx, 0, num, -1), m->done);
	}
	kunit_info(test, "%u reads, %u fast; %llu events", hw->task.nr, hw->task.fast, m->done);
}

static void made_events_in_one_instant(struct kunit *test)
{
	read_among_made_events(test, 0);
}

/* An overflow that interrupts the read also moves events from the register to the event's count. */
static void made_events_in_one_instant_with_overflows(struct kunit *test)
{
	read_among_made_events(test, 3);
}

static void expect_made(struct hw *hw, u64 count)
{
	unsigned int num;

	KUNIT_ASSERT_EQ(hw->test, pmuk_read_local(hw->ctx, hw->counts, NR), 0);
	for (num = 0; num < NR; num++) {
		KUNIT_ASSERT_EQ(hw->test, hw->counts[num], count);
		KUNIT_ASSERT_EQ(hw->test, pmuk_ctx_count(hw->test, hw->ctx, 0, num, -1), count);
	}
}

/* Returns whether two reads succeed in one tick, the second one by the fast path. */
static bool gets_fast(struct hw *hw)
{
	return !pmuk_read_local(hw->ctx, hw->counts, NR) && !read_fast_alone(hw, hw->counts);
}

/*
 * Calls gets_fast() on masked counters that fast reads can find. If an overflow masks before a
 * restart has ended, fast reads can find the counters for a moment.
 */
static bool gets_fast_if_shown(struct hw *hw)
{
	struct pmuk_group **group = per_cpu_ptr(pmuk_groups(hw->ctx), hw->cpu), *none = *group;
	bool fast;

	WRITE_ONCE(*group, &inst_of(hw)->active->group);
	fast = gets_fast(hw);
	WRITE_ONCE(*group, none);
	return fast;
}

#define MASK_PERIOD	100

/* Masked counts stay as they were at the overflow until a restart, and go on from there. */
static void masked_counts_are_frozen(struct kunit *test)
{
	const struct pmuk_context_attr attr = { .flags = PMUK_CTX_MASK };
	const struct pmuk_pmd pmd = { .short_reset = MASK_PERIOD, .flags = PMUK_PMD_NOTIFY };
	struct hw *hw = new_hw(test, &attr);
	unsigned int i;

	pmuk_hw_need_made_events(test);
	add_counters(hw, 0, &made, 0);
	pmuk_ctx_write_pmd(test, hw->ctx, &pmd);
	begin(hw);
	for (i = 1; i <= 50; i++) {
		KUNIT_ASSERT_EQ(test, !HAS_FAST || pmuk_ctx_comes(gets_fast(hw)), true);
		pmuk_hw_make_events(MASK_PERIOD - 1);
		expect_made(hw, i * MASK_PERIOD - 1);
		pmuk_hw_make_event();
		KUNIT_ASSERT_TRUE(test, pmuk_ctx_comes(atomic_read(&inst_of(hw)->masked)));
		expect_made(hw, i * MASK_PERIOD);
		KUNIT_ASSERT_NE(test, read_fast_alone(hw, hw->counts), 0);
		pmuk_hw_make_events(i);
		expect_made(hw, i * MASK_PERIOD);
		KUNIT_ASSERT_NE(test, read_fast_alone(hw, hw->counts), 0);
		KUNIT_ASSERT_FALSE(test, gets_fast_if_shown(hw));
		KUNIT_ASSERT_EQ(test, pmuk_restart(hw->ctx), 0);
		expect_made(hw, i * MASK_PERIOD);
	}
}

static u32 pause_at_overflow(const struct pmuk_format_event *event)
{
	pmuk_counter_pause(event->counter);
	return PMUK_FORMAT_RESET;
}

static struct pmuk_format pausing = {
	.name		= "pausing",
	.uuid		= UUID_INIT(0xfa57, 0x1234, 0x5678, 1, 2, 3, 4, 5, 6, 7, 8),
	.owner		= THIS_MODULE,
	.handler	= pause_at_overflow,
};

/* Lets reads be fast in the tick of the overflow that pauses @c. */
static bool is_paused(struct hw *hw, const struct pmuk_counter *c)
{
	gets_fast(hw);
	return pmuk_state_is_frozen(READ_ONCE(c->state));
}

/* perf core puts the event of @c on the PMU anew, and starts it. All reads still get ->frozen. */
static void expect_frozen(struct hw *hw, const struct pmuk_counter *c)
{
	unsigned int i;

	perf_event_disable(c->event);
	perf_event_enable(c->event);
	KUNIT_ASSERT_NE(hw->test, read_fast_alone(hw, hw->counts), 0);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(hw->test, pmuk_read_local(hw->ctx, hw->counts, NR), 0);
		KUNIT_ASSERT_EQ(hw->test, hw->counts[0], c->frozen);
		KUNIT_ASSERT_NE(hw->test, read_fast_alone(hw, hw->counts), 0);
	}
}

/* A handler pauses its counter, and no other. */
static void counts_paused_by_a_handler_are_frozen(struct kunit *test)
{
	const struct pmuk_context_attr attr = { .format = &pausing.uuid };
	const struct pmuk_pmd pmd = { .short_reset = 200000 };
	const struct pmuk_counter *c;
	struct hw *hw;
	unsigned int i;

	pmuk_ctx_format(test, &pausing);
	hw = new_hw(test, &attr);
	add_counters(hw, 0, &cycles, 0);
	pmuk_ctx_write_pmd(test, hw->ctx, &pmd);
	pmuk_ctx_load(test, hw->ctx, hw->cpu);
	c = inst_of(hw)->turns[0].counters[0];
	for (i = 0; i < 50; i++) {
		pmuk_ctx_start(test, hw->ctx);
		KUNIT_ASSERT_TRUE(test, pmuk_test_spin_until(is_paused(hw, c)));
		expect_frozen(hw, c);
		KUNIT_ASSERT_EQ(test, pmuk_stop(hw->ctx), 0);
	}
}

/* ---- which register is whose ---- */

/* Each of four counters counts the events that the test makes, with two exceptions. */
struct told_apart {
	bool cycles_first;	/* the first counter counts cycles instead */
	unsigned int idle;	/* mask of counters that exclude the kernel, and so stay at 0 */
};

#define MADE	100

static void add_told_apart(struct hw *hw, const struct told_apart *told)
{
	unsigned int num;

	for (num = 0; num < PMUK_GROUP_FAST; num++) {
		const struct pmuk_attr *attr = told->cycles_first && !num ? &cycles : &made;
		struct pmuk_pmc pmc = { .num = num, .type = attr->type, .config = attr->config,
					.flags = attr->flags };

		if (told->idle & BIT(num))
			pmc.flags |= PMUK_EXCLUDE_KERNEL;
		KUNIT_ASSERT_EQ(hw->test, pmuk_write_pmcs(hw->ctx, &pmc, 1), 1);
	}
}

/* Reads all counters, so that the next reads in this tick are fast, and then the first @n. */
static bool read_then_fast(struct hw *hw, u64 *counts, unsigned int n)
{
	return !pmuk_read_local(hw->ctx, counts, PMUK_GROUP_FAST) &&
	       (!HAS_FAST || !read_some_fast(hw, counts, n));
}

static void expect_told_apart(struct hw *hw, const struct told_apart *told, unsigned int n)
{
	u64 counts[PMUK_GROUP_FAST] = {};
	unsigned int num;

	KUNIT_ASSERT_TRUE(hw->test, pmuk_ctx_comes(read_then_fast(hw, counts, n)));
	for (num = told->cycles_first; num < n; num++)
		KUNIT_EXPECT_EQ_MSG(hw->test, counts[num], told->idle & BIT(num) ? 0 : MADE,
				    "%u of %u, %s first, idle %#x", num, n,
				    told->cycles_first ? "cycles" : "none", told->idle);
}

static void tell_apart(struct kunit *test, const struct told_apart *told)
{
	struct hw *hw = new_hw(test, NULL);
	unsigned int n;

	add_told_apart(hw, told);
	begin(hw);
	pmuk_hw_make_events(MADE);
	for (n = 1; n <= PMUK_GROUP_FAST; n++)
		expect_told_apart(hw, told, n);
	pmuk_unload_context(hw->ctx);
}

/* Each counter's count comes from its own register, wherever the counters are. */
static void registers_are_told_apart(struct kunit *test)
{
	struct pmuk_attr other = PMUK_HW_MADE;
	struct told_apart told;
	unsigned int others;

	pmuk_hw_need_made_events(test);
	other.flags |= PMUK_PINNED;
	for (others = 0; others < 3; others++) {
		for (told.idle = 0; told.idle < BIT(PMUK_GROUP_FAST); told.idle++) {
			told.cycles_first = false;
			tell_apart(test, &told);
			told.cycles_first = true;
			tell_apart(test, &told);
		}
		pmuk_test_enabled(test, &other, raw_smp_processor_id(), NULL);
	}
}

static int read_more(struct hw *hw)
{
	u64 counts[PMUK_GROUP_FAST];

	guard(preempt)();
	return read_some_fast(hw, counts, PMUK_GROUP_FAST) ?
	       pmuk_read_local(hw->ctx, counts, PMUK_GROUP_FAST) : 0;
}

/* The fast path refuses to read more counters than the set has. */
static void more_than_the_set_has(struct kunit *test)
{
	struct hw *hw = new_hw(test, NULL);
	unsigned int i;

	add_counters(hw, 0, &cycles, 0);
	begin(hw);
	for (i = 0; i < 100; i++) {
		KUNIT_ASSERT_TRUE(test, !HAS_FAST || pmuk_ctx_comes(gets_fast(hw)));
		KUNIT_ASSERT_EQ(test, read_more(hw), -EINVAL);
	}
}

/* ---- what the driver refuses ---- */

static int try_periods(struct hw *hw, u64 short_reset, u64 long_reset)
{
	struct pmuk_pmd pmd = { .short_reset = short_reset, .long_reset = long_reset };

	return pmuk_write_pmds(hw->ctx, &pmd, 1) == 1 ? 0 : pmd.ret;
}

/*
 * The driver sees the long period before the load, and each new period while the context is loaded.
 * A period that the counter has already is not new.
 */
static void refused_periods_are_not_begun(struct kunit *test)
{
	const u64 good = PMUK_HW_PICKY, bad = PMUK_HW_PICKY - 1;
	struct hw *hw = new_hw(test, NULL);

	pmuk_hw_picky_begin(test, pmuk_test_counter(test, &cycles, hw->cpu, NULL)->event->pmu);
	add_counters(hw, 0, &cycles, 0);
	KUNIT_EXPECT_EQ(test, try_periods(hw, good, bad), 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(hw->ctx, hw->cpu), -EINVAL);
	KUNIT_EXPECT_EQ(test, try_periods(hw, bad, good), 0);
	pmuk_ctx_load(test, hw->ctx, hw->cpu);
	KUNIT_EXPECT_EQ(test, try_periods(hw, bad, good + 1), 0);
	KUNIT_EXPECT_EQ(test, try_periods(hw, good, 0), 0);
	KUNIT_EXPECT_EQ(test, try_periods(hw, bad, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, try_periods(hw, good, bad), -EINVAL);
	KUNIT_EXPECT_EQ(test, try_periods(hw, good, good), 0);
}

static struct kunit_case pmuk_context_hw_cases[] = {
	KUNIT_CASE_PARAM_ATTR(reads_grow, troubles_gen_params, { .speed = KUNIT_SPEED_SLOW }),
	KUNIT_CASE(agree_with_full_reads),
	KUNIT_CASE(intervals_are_equal),
	KUNIT_CASE(made_events_in_one_instant),
	KUNIT_CASE(made_events_in_one_instant_with_overflows),
	KUNIT_CASE(masked_counts_are_frozen),
	KUNIT_CASE(counts_paused_by_a_handler_are_frozen),
	KUNIT_CASE(registers_are_told_apart),
	KUNIT_CASE(more_than_the_set_has),
	KUNIT_CASE(refused_periods_are_not_begun),
	{}
};

PMUK_SUITE(pmuk_context_hw, pmuk_hw_init, "KUnit tests of pmuk's contexts on the machine's PMU");
