// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check counters of software events, which pmuk offers on a machine without a PMU, too.
 */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/sched/clock.h>

#include "pmuk_counters.h"
#include "pmuk_levels.h"
#include "pmuk_suite.h"

static const struct pmuk_attr clock_attr = {
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_CPU_CLOCK,
	.flags = PMUK_NO_THROTTLE,
};

static const struct pmuk_attr switches_attr = {
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_CONTEXT_SWITCHES,
	.flags = PMUK_NO_THROTTLE,
};

/* cpu-clock counts nanoseconds of perf's clock. */
static void clock_counts_nanoseconds(struct kunit *test)
{
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *c = pmuk_test_counter(test, &clock_attr, cpu, NULL);
	u64 outer, inner, count;

	outer = local_clock();
	KUNIT_ASSERT_EQ(test, pmuk_counter_enable(c), 0);
	inner = local_clock();
	mdelay(5);
	inner = local_clock() - inner;
	count = pmuk_test_local(test, c);
	outer = local_clock() - outer;
	KUNIT_EXPECT_GE(test, count, inner);
	KUNIT_EXPECT_LE(test, count, outer);
	KUNIT_EXPECT_GT(test, pmuk_test_count(test, c), count);
}

static void clock_never_goes_back(struct kunit *test)
{
	struct pmuk_counter *c = pmuk_test_here(test, &clock_attr);
	u64 count, last = 0;
	unsigned int i;

	for (i = 0; i < 5000; i++) {
		count = i % 10 ? pmuk_test_local(test, c) : pmuk_test_count(test, c);
		KUNIT_ASSERT_GE(test, count, last);
		last = count;
	}
}

struct look {
	struct pmuk_counter *c;
	u64 count;
	int ret;
};

static void read_there(void *data)
{
	struct look *look = data;

	look->ret = pmuk_counter_read_local(look->c, &look->count);
}

static void clock_is_read(struct kunit *test)
{
	enum pmuk_irq_level level = pmuk_test_level(test);
	int cpu = pmuk_test_pin_first(test);
	struct look there = {};
	u64 last = 0, count;
	unsigned int i;

	there.c = pmuk_test_enabled(test, &clock_attr, cpu, NULL);
	for (i = 0; i < 1000; i++) {
		KUNIT_ASSERT_EQ(test, pmuk_irq_run(level, read_there, &there), 0);
		KUNIT_ASSERT_EQ(test, there.ret, 0);
		KUNIT_ASSERT_GE(test, there.count, last);
		count = pmuk_test_local(test, there.c);
		KUNIT_ASSERT_GE(test, count, there.count);
		last = count;
	}
}

static void pause_leaves_time_out(struct kunit *test)
{
	struct pmuk_counter *c = pmuk_test_here(test, &clock_attr);
	u64 begin = local_clock(), paused = 0, stop, count;
	unsigned int i;

	begin -= pmuk_test_local(test, c);
	for (i = 0; i < 20; i++) {
		KUNIT_ASSERT_EQ(test, pmuk_counter_pause(c), 0);
		stop = local_clock();
		count = pmuk_test_local(test, c);
		pmuk_test_spin(500 * NSEC_PER_USEC);
		pmuk_test_expect_count(test, c, count);
		KUNIT_ASSERT_EQ(test, pmuk_test_snapshot(test, c), count);
		paused += local_clock() - stop;
		KUNIT_ASSERT_EQ(test, pmuk_counter_resume(c), 0);
	}
	KUNIT_EXPECT_LE(test, pmuk_test_local(test, c), local_clock() - begin - paused);
	KUNIT_EXPECT_GE(test, paused, 20 * 500 * NSEC_PER_USEC);
}

static void disable_keeps_the_count(struct kunit *test)
{
	struct pmuk_counter *c = pmuk_test_here(test, &clock_attr);
	u64 count;

	pmuk_test_spin(100 * NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	count = pmuk_test_count(test, c);
	KUNIT_EXPECT_GE(test, count, 100 * NSEC_PER_USEC);
	pmuk_test_spin(100 * NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, pmuk_test_count(test, c), count);
	KUNIT_EXPECT_EQ(test, pmuk_test_snapshot(test, c), count);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
	KUNIT_EXPECT_GE(test, pmuk_test_local(test, c), count);
}

struct overflows {
	unsigned int nr, elsewhere;
	u64 last;
	unsigned int wrong;
	u64 period;	/* the callback sets this period next; 0: none */
};

static void note_overflow(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct overflows *o = data;
	u64 count;

	o->nr++;
	o->elsewhere += !in_hardirq();
	if (pmuk_counter_read_local(c, &count) || count < o->last)
		o->wrong++;
	o->last = count;
	if (o->period && pmuk_counter_set_period(c, o->period))
		o->wrong++;
}

/* Returns whether *@nr reaches @wanted. */
static bool comes_to(const unsigned int *nr, unsigned int wanted)
{
	return pmuk_test_spin_until(READ_ONCE(*nr) >= wanted);
}

/* Returns a counter of the test's CPU's clock, or of this task's switches. */
static struct pmuk_counter *overflowing(struct kunit *test, struct pmuk_attr attr, u64 period,
					pmuk_overflow_t overflow, void *data)
{
	attr.period = period;
	attr.overflow = overflow;
	attr.data = data;
	if (attr.config == PERF_COUNT_SW_CONTEXT_SWITCHES)
		return pmuk_test_enabled(test, &attr, -1, current);
	return pmuk_test_here(test, &attr);
}

/* A timer's overflows may be late, but are never more than the time allows. */
static void clock_overflows(struct kunit *test)
{
	struct overflows *o = pmuk_test_zalloc(test, sizeof(*o));
	struct pmuk_counter *c = overflowing(test, clock_attr, NSEC_PER_MSEC, note_overflow, o);
	u64 count;

	KUNIT_EXPECT_TRUE(test, comes_to(&o->nr, 20));
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	count = pmuk_test_count(test, c);
	KUNIT_EXPECT_LE(test, o->nr, div64_u64(count, NSEC_PER_MSEC) + 1);
	KUNIT_EXPECT_EQ(test, o->wrong, 0);
	KUNIT_EXPECT_EQ_MSG(test, o->elsewhere, 0, "not in hardirq");
	o->nr = 0;
	mdelay(3);
	KUNIT_EXPECT_EQ(test, o->nr, 0);
}

static void callback_sets_the_period(struct kunit *test)
{
	struct overflows *o = pmuk_test_zalloc(test, sizeof(*o));
	struct pmuk_counter *c;
	unsigned int nr;
	u64 begin;

	o->period = 5 * NSEC_PER_MSEC;
	c = overflowing(test, clock_attr, NSEC_PER_MSEC / 5, note_overflow, o);
	KUNIT_EXPECT_TRUE(test, comes_to(&o->nr, 2));
	/* Begin between two overflows. The host may take the CPU away for longer than a period. */
	do {
		nr = READ_ONCE(o->nr);
		begin = pmuk_test_local(test, c);
	} while (READ_ONCE(o->nr) != nr);
	KUNIT_EXPECT_TRUE(test, comes_to(&o->nr, nr + 4));
	/* Four periods of 5 ms have passed. The first one may have begun before the loop ended. */
	KUNIT_EXPECT_GE(test, pmuk_test_local(test, c) - begin, 15 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, o->wrong, 0);
}

static void paused_clock_does_not_overflow(struct kunit *test)
{
	struct overflows *o = pmuk_test_zalloc(test, sizeof(*o));
	struct pmuk_counter *c = overflowing(test, clock_attr, NSEC_PER_MSEC / 5, note_overflow, o);
	unsigned int nr;

	KUNIT_EXPECT_TRUE(test, comes_to(&o->nr, 5));
	KUNIT_EXPECT_EQ(test, pmuk_counter_pause(c), 0);
	nr = o->nr;
	mdelay(3);
	KUNIT_EXPECT_EQ(test, o->nr, nr);
	KUNIT_EXPECT_EQ(test, pmuk_counter_resume(c), 0);
	KUNIT_EXPECT_TRUE(test, comes_to(&o->nr, nr + 5));
}

#define CLOCK_PERIOD	(20 * NSEC_PER_MSEC)

/*
 * Holds the expiry times of the timer at a clock's first two overflows. Late interrupts do not
 * change these times.
 */
struct expiries {
	unsigned int nr, started;
	u64 at[2];
	u64 period;	/* the period of the latest sample */
	int (*fn)(struct pmuk_counter *c);	/* called by the first callback */
	int ret;
};

static void note_expiry(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct hrtimer *timer = &c->event->hw.hrtimer;
	struct expiries *e = data;

	if (e->nr < ARRAY_SIZE(e->at)) {
		e->at[e->nr] = ktime_to_ns(hrtimer_get_expires(timer));
		e->period = sample->period;
	}
	if (!e->nr)
		e->ret = e->fn(c);
	e->started += hrtimer_is_queued(timer);
	WRITE_ONCE(e->nr, e->nr + 1);
}

/* Returns the first two overflows. The callback of the first one calls @fn. */
static struct expiries *two_expiries(struct kunit *test, int (*fn)(struct pmuk_counter *c),
				     bool resume)
{
	struct expiries *e = pmuk_test_zalloc(test, sizeof(*e));
	struct pmuk_counter *c;

	e->fn = fn;
	c = overflowing(test, clock_attr, CLOCK_PERIOD, note_expiry, e);
	KUNIT_ASSERT_TRUE(test, comes_to(&e->nr, 1));
	if (resume)
		KUNIT_EXPECT_EQ(test, pmuk_counter_resume(c), 0);
	KUNIT_ASSERT_TRUE(test, comes_to(&e->nr, 2));
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	KUNIT_EXPECT_EQ(test, e->ret, 0);
	KUNIT_EXPECT_EQ(test, e->started, 0);
	return e;
}

/*
 * A clock is paused in the callback at the end of a period. It does not overflow again right after
 * the resume.
 */
static void clock_paused_in_its_callback(struct kunit *test)
{
	struct expiries *e = two_expiries(test, pmuk_counter_pause, true);

	KUNIT_EXPECT_GE(test, e->at[1] - e->at[0], CLOCK_PERIOD / 2);
}

static int triple_period(struct pmuk_counter *c)
{
	return pmuk_counter_set_period(c, 3 * CLOCK_PERIOD);
}

/* perf core starts the timer after the callback has returned, with the new period. */
static void clock_period_set_in_its_callback(struct kunit *test)
{
	struct expiries *e = two_expiries(test, triple_period, false);

	KUNIT_EXPECT_GE(test, e->at[1] - e->at[0], 3 * CLOCK_PERIOD);
	KUNIT_EXPECT_EQ(test, e->period, 3 * CLOCK_PERIOD);
}

/* The scheduler counts the task's switches, too. */
static unsigned long scheduler_count(void)
{
	return current->nvcsw + current->nivcsw;
}

static void switches_are_counted(struct kunit *test)
{
	struct pmuk_counter *c = pmuk_test_enabled(test, &switches_attr, -1, current);
	struct pmuk_test_progress progress = {};
	u64 count, before, switched;

	preempt_disable();
	before = scheduler_count() - pmuk_test_local(test, c);
	preempt_enable();
	do {
		schedule_timeout_uninterruptible(1);
		preempt_disable();
		count = pmuk_test_local(test, c);
		switched = scheduler_count() - before;
		preempt_enable();
		KUNIT_ASSERT_EQ(test, count, switched);
	} while (count < 20 && pmuk_test_goes_on(&progress, count));
	KUNIT_EXPECT_GE(test, count, 20);
}

static void note_switch(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct overflows *o = data;

	o->nr++;
}

/* The scheduler itself runs the callback, once for each switch. */
static void switches_overflow(struct kunit *test)
{
	struct overflows *o = pmuk_test_zalloc(test, sizeof(*o));
	struct pmuk_counter *c;

	c = overflowing(test, switches_attr, 1, note_switch, o);
	while (pmuk_test_local(test, c) < 20)
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	KUNIT_EXPECT_GE(test, o->nr, 20);
	KUNIT_EXPECT_EQ(test, pmuk_test_count(test, c), o->nr);
}

static void set_period_of_switches(struct kunit *test)
{
	struct overflows *o = pmuk_test_zalloc(test, sizeof(*o));
	struct pmuk_counter *c;
	u64 before;

	c = overflowing(test, switches_attr, 1000000, note_switch, o);
	usleep_range(50, 100);
	KUNIT_EXPECT_EQ(test, o->nr, 0);
	preempt_disable();
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(c, 3), 0);
	before = pmuk_test_local(test, c);
	preempt_enable();
	while (pmuk_test_local(test, c) < before + 30)
		usleep_range(50, 100);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	KUNIT_EXPECT_EQ(test, o->nr, div64_u64(pmuk_test_count(test, c) - before, 3));
}

static void switch_tasks(void *unused)
{
	usleep_range(1, 5);
}

static const struct storm {
	const char *name;
	const struct pmuk_attr *attr;
	u64 period;
	bool deferred;
} storms[] = {
	{ "of a clock", &clock_attr, 20000, false },
	{ "of switches", &switches_attr, 1, false },
	{ "of switches, deferred", &switches_attr, 1, true },
};

KUNIT_ARRAY_PARAM_DESC(storms, storms, name);

/*
 * Counters on the other CPU are destroyed while it switches tasks, or takes its timer's interrupts.
 * Another such counter exists all the time: perf core patches the scheduler's code for the first
 * and the last one, which some emulators get wrong while the code runs.
 */
static void destroy_in_storm(struct kunit *test)
{
	const struct storm *storm = test->param_value;
	int other = pmuk_test_other_cpu(test, pmuk_test_pin_first(test));
	struct pmuk_attr attr = *storm->attr;

	pmuk_test_enabled(test, &attr, other, NULL);
	attr.period = storm->period;
	pmuk_test_victims(test, &attr, other, switch_tasks, NULL, 20, storm->deferred);
}

struct meeting {
	struct pmuk_counter *c;
	unsigned int nr, open;
};

static void note_interrupts(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct meeting *m = data;

	m->nr++;
	m->open += !irqs_disabled();
}

static const struct pmuk_attr rare_attr = {
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_ALIGNMENT_FAULTS,
	.flags = PMUK_NO_THROTTLE,
	.period = 1,
	.overflow = note_interrupts,
};

/*
 * Calls the handler as perf core of Linux 6.12 does at last: interrupts are on, and the event may
 * have been disabled after perf core has found it.
 */
static void overflow_as_6_12(struct meeting *m)
{
	struct perf_event *event = m->c->event;
	struct perf_sample_data data = { .period = 1 };
	struct pt_regs regs = {};

	perf_fetch_caller_regs(&regs);
	guard(preempt)();
	event->overflow_handler(event, &data, &regs);
}

static struct meeting *new_meeting(struct kunit *test)
{
	struct meeting *m = pmuk_test_zalloc(test, sizeof(*m));
	struct pmuk_attr attr = rare_attr;

	attr.data = m;
	m->c = pmuk_test_here(test, &attr);
	return m;
}

/* The callback runs with interrupts off. So a disable, which interrupts the CPU, waits for it. */
static void callback_keeps_interrupts_off(struct kunit *test)
{
	struct meeting *m = new_meeting(test);

	overflow_as_6_12(m);
	KUNIT_EXPECT_EQ(test, m->nr, 1);
	KUNIT_EXPECT_EQ(test, m->open, 0);
}

/*
 * The counter is disabled after perf core has begun to handle an overflow. The overflow is dropped.
 */
static void overflow_after_disable_is_dropped(struct kunit *test)
{
	struct meeting *m = new_meeting(test);

	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(m->c), 0);
	overflow_as_6_12(m);
	KUNIT_EXPECT_EQ(test, m->nr, 0);
}

/* A switch has no value of these fields. */
#define UNKNOWN	(PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION)

/* perf core may have no callchain of user space for modules. */
#define CHAIN	(PERF_SAMPLE_CALLCHAIN & ~PMUK_SAMPLE_UNSUPPORTED)

static struct perf_callchain_entry others_chain;

/* Leaves in @data what perf core finds for an event that asks for these fields, and for a clock. */
static void fill_for_another(struct perf_event *event, struct perf_sample_data *data,
			     struct pt_regs *regs)
{
	data->weight.full = 1;
	data->data_src.val = 1;
	data->txn = 1;
	data->time = 1;
	data->callchain = &others_chain;
	data->sample_flags |= UNKNOWN | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
}

static void other_event(struct kunit *test, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
		.size = sizeof(attr), .sample_period = 1,
	};
	struct perf_event *event;

	event = perf_event_create_kernel_counter(&attr, cpu, NULL, fill_for_another, NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, event);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_put_event, event), 0);
}

struct switched {
	unsigned int nr, foreign;
	u64 valid, since;
};

static void note_fields(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct switched *s = data;

	s->valid |= sample->valid;
	s->foreign += sample->time < s->since || sample->callchain == &others_chain;
	WRITE_ONCE(s->nr, s->nr + 1);
}

/*
 * perf core handles the latest event on a CPU first, unless it has scheduled the events again since
 * then. So other events are there before the counter's and after it: one of them precedes it.
 */
static void samples_have_no_fields_of_others(struct kunit *test)
{
	struct switched *s = pmuk_test_zalloc(test, sizeof(*s));
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_attr attr = switches_attr;

	attr.sample_type = UNKNOWN | PERF_SAMPLE_TIME | CHAIN;
	attr.flags |= CHAIN ? PMUK_CALLCHAIN_USER : 0;
	attr.period = 1;
	attr.overflow = note_fields;
	attr.data = s;
	s->since = local_clock();
	other_event(test, cpu);
	pmuk_test_enabled(test, &attr, cpu, NULL);
	other_event(test, cpu);
	while (READ_ONCE(s->nr) < 20)
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, s->valid & UNKNOWN, 0);
	KUNIT_EXPECT_TRUE(test, s->valid & PERF_SAMPLE_TIME);
	KUNIT_EXPECT_EQ(test, s->foreign, 0);
}

/* A dummy event counts nothing, and its counter accepts all calls. */
static void dummy_takes_all_calls(struct kunit *test)
{
	const struct pmuk_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.flags = PMUK_PINNED,
		.period = 1000,
	};
	struct pmuk_counter *c = pmuk_test_here(test, &attr);

	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(c, 10), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_pause(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_resume(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_count(test, c), 0);
}

static struct kunit_case pmuk_counter_sw_cases[] = {
	KUNIT_CASE(clock_counts_nanoseconds),
	KUNIT_CASE(clock_never_goes_back),
	KUNIT_CASE_PARAM(clock_is_read, levels_gen_params),
	PMUK_NMI_CASE(clock_is_read),
	KUNIT_CASE(pause_leaves_time_out),
	KUNIT_CASE(disable_keeps_the_count),
	KUNIT_CASE(clock_overflows),
	KUNIT_CASE(callback_sets_the_period),
	KUNIT_CASE(paused_clock_does_not_overflow),
	KUNIT_CASE(clock_paused_in_its_callback),
	KUNIT_CASE(clock_period_set_in_its_callback),
	KUNIT_CASE(switches_are_counted),
	KUNIT_CASE(switches_overflow),
	KUNIT_CASE(set_period_of_switches),
	KUNIT_CASE_PARAM_ATTR(destroy_in_storm, storms_gen_params, { .speed = KUNIT_SPEED_SLOW }),
	KUNIT_CASE(callback_keeps_interrupts_off),
	KUNIT_CASE(overflow_after_disable_is_dropped),
	KUNIT_CASE(samples_have_no_fields_of_others),
	KUNIT_CASE(dummy_takes_all_calls),
	{}
};

PMUK_SUITE(pmuk_counter_sw, pmuk_test_init, "KUnit tests of pmuk's counters of software events");
