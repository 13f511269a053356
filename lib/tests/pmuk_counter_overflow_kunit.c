// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check overflow callbacks: there are as many as periods have elapsed, their samples are
 * right, and none comes after the counter is destroyed.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/sched/clock.h>

#include "pmuk_counters.h"
#include "pmuk_suite.h"

#define NR_PERIODS	64

/* Holds a counter on the test's CPU, and the overflows that it has reported. */
struct overflows {
	struct pmuk_sim *sim;
	struct pmuk_attr attr;
	struct pmuk_counter *c;
	int cpu;
	struct pmuk_sample first, last;
	unsigned int nr;
	u64 periods[NR_PERIODS];	/* from samples */
	u64 counts[NR_PERIODS];		/* from samples with PERF_SAMPLE_READ */
	u64 local;			/* read by the callback */
	int ret;			/* result of the callback's own calls */
	struct completion done;		/* complete once the deferred destruction has ended */
};

static void note_overflow(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct overflows *o = data;

	if (!o->nr)
		o->first = *sample;
	o->last = *sample;
	if (o->nr < NR_PERIODS) {
		o->periods[o->nr] = sample->period;
		o->counts[o->nr] = sample->value.count;
	}
	o->nr++;
}

/*
 * The counter is never throttled: on a slow machine, perf core may have lowered its limit too far
 * for the tests.
 */
static struct overflows *new_overflows_of(struct kunit *test, struct pmuk_sim *sim, u64 period)
{
	struct overflows *o = pmuk_test_zalloc(test, sizeof(*o));

	o->sim = sim;
	o->cpu = pmuk_test_pin_first(test);
	o->attr = (struct pmuk_attr) {
		.type = pmuk_sim_type(sim),
		.period = period,
		.flags = PMUK_NO_THROTTLE,
		.overflow = note_overflow,
		.data = o,
	};
	return o;
}

static struct overflows *new_overflows(struct kunit *test, u64 period)
{
	return new_overflows_of(test, pmuk_test_sim(test, 1, 16), period);
}

static void start(struct kunit *test, struct overflows *o)
{
	o->nr = 0;
	o->c = pmuk_test_enabled(test, &o->attr, o->cpu, NULL);
}

static void stop(struct kunit *test, struct overflows *o)
{
	kunit_release_action(test, pmuk_test_put_counter, o->c);
}

static struct overflows *new_started(struct kunit *test, u64 period)
{
	struct overflows *o = new_overflows(test, period);

	start(test, o);
	return o;
}

/* Lets @n events happen. Since its start, the counter has then had @nr overflows. */
static void expect_overflows(struct kunit *test, struct overflows *o, u64 n, unsigned int nr)
{
	pmuk_sim_count(o->sim, 0, n);
	KUNIT_ASSERT_EQ_MSG(test, o->nr, nr, "after %llu events", n);
}

/* There are floor(total / period) callbacks, however large the steps are that make up the total. */
static void overflow_comes_each_period(struct kunit *test)
{
	static const u64 periods[] = { 1, 2, 7, 1000, 32767, 32768, 65536, 100003 };
	static const u64 steps[] = { 1, 999, 12345, 70000 };
	struct overflows *o = new_overflows(test, 0);
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(periods); i++) {
		u64 total = 0;

		o->attr.period = periods[i];
		start(test, o);
		for (j = 0; j < 4 * ARRAY_SIZE(steps); j++) {
			total += pmuk_sim_count(o->sim, 0, steps[j % ARRAY_SIZE(steps)]);
			KUNIT_ASSERT_EQ(test, o->nr, div64_u64(total, periods[i]));
		}
		KUNIT_EXPECT_EQ(test, total, 4 * (1 + 999 + 12345 + 70000));
		stop(test, o);
	}
}

/* A counter that is off the PMU or paused loses no part of its period, and gains none. */
static void period_goes_on_where_it_stopped(struct kunit *test)
{
	struct overflows *o = new_started(test, 1000);
	unsigned int i;

	for (i = 0; i < 100; i++) {
		pmuk_sim_count(o->sim, 0, 150);
		KUNIT_EXPECT_EQ(test, pmuk_counter_disable(o->c), 0);
		KUNIT_EXPECT_EQ(test, pmuk_counter_enable(o->c), 0);
		pmuk_sim_count(o->sim, 0, 150);
		KUNIT_EXPECT_EQ(test, pmuk_counter_pause(o->c), 0);
		KUNIT_EXPECT_EQ(test, pmuk_counter_resume(o->c), 0);
		KUNIT_ASSERT_EQ(test, o->nr, (i + 1) * 300 / 1000);
	}
}

static void no_overflow_while_paused(struct kunit *test)
{
	struct overflows *o = new_started(test, 10);

	expect_overflows(test, o, 25, 2);
	KUNIT_EXPECT_EQ(test, pmuk_counter_pause(o->c), 0);
	/*
	 * perf core starts the paused event again. The event overflows without a callback, until
	 * pmuk stops it because that comes too often.
	 */
	KUNIT_EXPECT_EQ(test, pmuk_sim_steal(o->sim, o->cpu, 0), 0);
	KUNIT_EXPECT_GE(test, pmuk_sim_count(o->sim, 0, 1000), 5);
	KUNIT_EXPECT_EQ(test, o->nr, 2);
	KUNIT_EXPECT_EQ(test, pmuk_counter_resume(o->c), 0);
	expect_overflows(test, o, 30, 5);
}

/* Each sample has IP, PERIOD and REGS_INTR without being asked for them. */
static void sample_has_what_is_free(struct kunit *test)
{
	struct overflows *o = new_started(test, 100);

	expect_overflows(test, o, 100, 1);
	KUNIT_EXPECT_EQ(test, o->last.valid,
			PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_INTR);
	KUNIT_EXPECT_NE(test, o->last.ip, 0);
	KUNIT_EXPECT_NOT_NULL(test, o->last.regs);
	KUNIT_EXPECT_EQ(test, o->last.period, 100);
}

static struct overflows *new_overflows_with(struct kunit *test, u64 addr, u64 weight)
{
	return new_overflows_of(test, pmuk_test_sim_config(test, &(struct pmuk_sim_config){
		.name = "pmuk_sim", .nr_counters = 1, .width = 16, .addr = addr,
		.weight = weight }), 100);
}

/* A sample's optional field is valid if and only if sample_type asks for the field. */
static void sample_has_what_is_asked(struct kunit *test)
{
	static const u64 fields[] = {
		PERF_SAMPLE_ADDR, PERF_SAMPLE_WEIGHT, PERF_SAMPLE_TIME, PERF_SAMPLE_READ,
	};
	const u64 all = PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_TIME |
			PERF_SAMPLE_READ;
	struct overflows *o = new_overflows_with(test, 0xabcdef, 77);
	u64 before, after;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		o->attr.sample_type = fields[i];
		start(test, o);
		before = local_clock();
		expect_overflows(test, o, 100, 1);
		after = local_clock();
		KUNIT_EXPECT_EQ(test, o->last.valid & all, fields[i]);
		if (fields[i] == PERF_SAMPLE_ADDR)
			KUNIT_EXPECT_EQ(test, o->last.addr, 0xabcdef);
		if (fields[i] == PERF_SAMPLE_WEIGHT)
			KUNIT_EXPECT_EQ(test, o->last.weight, 77);
		if (fields[i] == PERF_SAMPLE_TIME) {
			KUNIT_EXPECT_GE(test, o->last.time, before);
			KUNIT_EXPECT_LE(test, o->last.time, after);
		}
		if (fields[i] == PERF_SAMPLE_READ)
			KUNIT_EXPECT_EQ(test, o->last.value.count, 100);
		stop(test, o);
	}
}

/* A sample does not claim fields that the PMU does not give. */
static void sample_lacks_what_the_pmu_lacks(struct kunit *test)
{
	struct overflows *o = new_overflows_with(test, 0, 0);

	o->attr.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT;
	start(test, o);
	expect_overflows(test, o, 100, 1);
	KUNIT_EXPECT_EQ(test, o->last.valid & (PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT), 0);
}

static void sample_value_is_exact(struct kunit *test)
{
	struct overflows *o = new_overflows(test, 1000);
	unsigned int i;

	o->attr.sample_type = PERF_SAMPLE_READ;
	start(test, o);
	expect_overflows(test, o, NR_PERIODS * 1000, NR_PERIODS);
	for (i = 0; i < NR_PERIODS; i++)
		KUNIT_EXPECT_EQ(test, o->counts[i], (i + 1) * 1000);
	KUNIT_EXPECT_GT(test, o->last.value.time_running, o->first.value.time_running);
	KUNIT_EXPECT_EQ(test, o->last.value.time_running, o->last.value.time_enabled);
}

static void read_inside(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct overflows *o = data;

	o->ret = pmuk_counter_read_local(c, &o->local);
	note_overflow(c, sample, data);
}

static void callback_reads_exactly(struct kunit *test)
{
	struct overflows *o = new_overflows(test, 1000);
	unsigned int i;

	o->attr.overflow = read_inside;
	start(test, o);
	for (i = 1; i <= 200; i++) {
		expect_overflows(test, o, 1000, i);
		KUNIT_ASSERT_EQ(test, o->ret, 0);
		KUNIT_ASSERT_EQ(test, o->local, i * 1000);
	}
}

/* An overflow publishes the count, with a callback and without one. */
static void overflow_publishes(struct kunit *test)
{
	struct overflows *o = new_overflows(test, 1000);

	o->attr.overflow = NULL;
	start(test, o);
	pmuk_sim_count(o->sim, 0, 999);
	KUNIT_EXPECT_EQ(test, pmuk_test_snapshot(test, o->c), 0);
	pmuk_sim_count(o->sim, 0, 1500);
	KUNIT_EXPECT_EQ(test, pmuk_test_snapshot(test, o->c), 2000);
	KUNIT_EXPECT_EQ(test, o->nr, 0);
}

/* Returns the overflows of periods that follow from @seed. */
static struct overflows *run_random(struct kunit *test, struct pmuk_sim *sim, u64 seed)
{
	struct overflows *o = new_overflows_of(test, sim, 1000);

	o->attr.random_mask = 0x3ff;
	o->attr.random_seed = seed;
	o->attr.sample_type = PERF_SAMPLE_READ;
	start(test, o);
	pmuk_sim_count(o->sim, 0, NR_PERIODS * (1000 + 0x3ff));
	KUNIT_EXPECT_GE(test, o->nr, NR_PERIODS);
	stop(test, o);
	return o;
}

/* Random periods stay within their bounds, agree with the counts, and follow from the seed. */
static void random_period_follows_its_seed(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 16);
	const struct overflows *o = run_random(test, sim, 1);
	const struct overflows *again = run_random(test, sim, 1);
	const struct overflows *other = run_random(test, sim, 2);
	unsigned int i, same = 0, distinct = 0;
	u64 period, total = 0;

	for (i = 0; i < NR_PERIODS; i++) {
		period = o->periods[i];
		KUNIT_EXPECT_GE(test, period, 1000);
		KUNIT_EXPECT_LE(test, period, 1000 + 0x3ff);
		total += period;
		KUNIT_EXPECT_EQ(test, o->counts[i], total);
		KUNIT_EXPECT_EQ(test, again->periods[i], period);
		same += other->periods[i] == period;
		distinct += i && period != o->periods[i - 1];
	}
	KUNIT_EXPECT_LT(test, same, NR_PERIODS / 4);
	KUNIT_EXPECT_GT(test, distinct, NR_PERIODS * 3 / 4);
}

static void set_period_starts_a_new_one(struct kunit *test)
{
	struct overflows *o = new_started(test, 1000);

	expect_overflows(test, o, 1500, 1);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(o->c, 300), 0);
	expect_overflows(test, o, 299, 1);
	expect_overflows(test, o, 1, 2);
	KUNIT_EXPECT_EQ(test, o->last.period, 300);
	expect_overflows(test, o, 600, 4);

	/* The new period is longer than the register is wide. */
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(o->c, 200000), 0);
	expect_overflows(test, o, 199999, 4);
	expect_overflows(test, o, 1, 5);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, o->c), 1500 + 300 + 600 + 200000);
}

static void set_period_while_disabled(struct kunit *test)
{
	struct overflows *o = new_overflows(test, 1000);

	o->c = pmuk_test_counter(test, &o->attr, o->cpu, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(o->c, 50), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(o->c), 0);
	expect_overflows(test, o, 49, 0);
	expect_overflows(test, o, 51, 2);
}

/* The pause ends after the new period is set. The period begins with the next event that counts. */
static void set_period_while_paused(struct kunit *test)
{
	struct overflows *o = new_started(test, 1000);

	pmuk_sim_count(o->sim, 0, 10);
	KUNIT_EXPECT_EQ(test, pmuk_counter_pause(o->c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(o->c, 50), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(o->sim, 0, 60), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_resume(o->c), 0);
	expect_overflows(test, o, 49, 0);
	expect_overflows(test, o, 1, 1);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, o->c), 60);
}

/* The PMU treats periods as drivers/perf/arm_spe_pmu.c does. */
static struct overflows *new_interval(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim_config(test, &(struct pmuk_sim_config){
		.name = "pmuk_spe", .nr_counters = 1, .width = 32, .interval = true });
	struct overflows *o = new_overflows_of(test, sim, 1000);

	start(test, o);
	return o;
}

/*
 * The PMU's events are in perf's software context, and still have a register: a new period is
 * loaded into it at once.
 */
static void set_period_of_an_interval(struct kunit *test)
{
	struct overflows *o = new_interval(test);

	pmuk_sim_count(o->sim, 0, 300);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(o->c, 50), 0);
	expect_overflows(test, o, 49, 0);
	expect_overflows(test, o, 51, 2);

	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(o->c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(o->c, 20), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(o->c), 0);
	expect_overflows(test, o, 19, 2);
	expect_overflows(test, o, 1, 3);
}

static void pause_stops_an_interval(struct kunit *test)
{
	struct overflows *o = new_interval(test);

	KUNIT_EXPECT_EQ(test, pmuk_counter_pause(o->c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(o->sim, 0, 10), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_resume(o->c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(o->sim, 0, 1000), 1000);
	KUNIT_EXPECT_EQ(test, o->nr, 1);
}

static void lengthen(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct overflows *o = data;

	note_overflow(c, sample, data);
	o->ret |= pmuk_counter_set_period(c, 100 * (o->nr + 1));
}

static void callback_sets_the_period(struct kunit *test)
{
	struct overflows *o = new_overflows(test, 100);
	unsigned int i;

	o->attr.overflow = lengthen;
	o->attr.sample_type = PERF_SAMPLE_READ;
	start(test, o);
	expect_overflows(test, o, 100 * NR_PERIODS * (NR_PERIODS + 1) / 2, NR_PERIODS);
	KUNIT_EXPECT_EQ(test, o->ret, 0);
	for (i = 0; i < NR_PERIODS; i++) {
		KUNIT_ASSERT_EQ(test, o->periods[i], 100 * (i + 1));
		KUNIT_ASSERT_EQ(test, o->counts[i], 100 * (i + 1) * (i + 2) / 2);
	}
}

static void reprogram_inside(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct overflows *o = data;

	note_overflow(c, sample, data);
	o->ret |= pmuk_counter_set_period(c, 100);
	o->ret |= pmuk_counter_pause(c);
	o->ret |= pmuk_counter_resume(c);
	o->local += pmuk_sim_count(o->sim, 1, 5);
}

/* A PMU stays stopped in its own interrupt, whatever the callback does to the PMU's counters. */
static void callback_does_not_start_the_pmu(struct kunit *test)
{
	struct overflows *o = new_overflows_of(test, pmuk_test_sim(test, 2, 16), 100);
	const struct pmuk_attr other = { .type = o->attr.type, .config = 1 };

	o->attr.overflow = reprogram_inside;
	start(test, o);
	pmuk_test_enabled(test, &other, o->cpu, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(o->sim, 0, 1000), 1000);
	KUNIT_EXPECT_EQ(test, o->nr, 10);
	KUNIT_EXPECT_EQ(test, o->ret, 0);
	KUNIT_EXPECT_EQ(test, o->local, 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(o->sim, 1, 5), 5);
}

static void pause_inside(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct overflows *o = data;

	note_overflow(c, sample, data);
	o->ret |= pmuk_counter_pause(c);
}

static void callback_pauses(struct kunit *test)
{
	struct overflows *o = new_overflows(test, 100);
	unsigned int i;

	o->attr.overflow = pause_inside;
	start(test, o);
	for (i = 1; i <= 50; i++) {
		/* The counter is stopped when the rest of the 250 events happens. */
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(o->sim, 0, 250), 100);
		KUNIT_ASSERT_EQ(test, o->nr, i);
		KUNIT_ASSERT_EQ(test, pmuk_test_local(test, o->c), i * 100);
		KUNIT_EXPECT_EQ(test, pmuk_counter_resume(o->c), 0);
	}
	KUNIT_EXPECT_EQ(test, o->ret, 0);
}

/*
 * A storm of so many overflows exceeds perf core's limit for one tick, however far perf core has
 * lowered the limit.
 */
#define MORE_THAN_A_TICK	(2 * DIV_ROUND_UP(100000, HZ))

static void need_throttling(struct kunit *test)
{
	if (IS_MODULE(CONFIG_PMUK_SIM))
		kunit_skip(test, "perf_event_overflow() is not exported: no throttling");
}

/* Returns whether the counter counts again. perf core restarts a throttled counter at a tick. */
static bool counts_again(struct pmuk_sim *sim)
{
	unsigned long end = jiffies + 60 * HZ;

	while (time_before(jiffies, end)) {
		if (pmuk_sim_count(sim, 0, 1))
			return true;
		mdelay(1);
	}
	return false;
}

static u64 storm_in_one_tick(struct kunit *test, struct overflows *o, u32 flags)
{
	u64 counted;

	o->attr.flags = flags;
	start(test, o);
	local_irq_disable();
	counted = pmuk_sim_count(o->sim, 0, MORE_THAN_A_TICK);
	local_irq_enable();
	KUNIT_EXPECT_EQ(test, counted, o->nr);

	KUNIT_EXPECT_TRUE(test, counts_again(o->sim));
	KUNIT_EXPECT_EQ(test, o->nr, counted + 1);
	stop(test, o);
	return counted;
}

static void throttling_can_be_refused(struct kunit *test)
{
	struct overflows *o = new_overflows(test, 1);

	KUNIT_EXPECT_EQ(test, storm_in_one_tick(test, o, PMUK_NO_THROTTLE), MORE_THAN_A_TICK);
	need_throttling(test);
	KUNIT_EXPECT_LT(test, storm_in_one_tick(test, o, 0), MORE_THAN_A_TICK);
}

/*
 * Interrupts are off. Each overflow reaches perf core's limit, as it does when perf core has
 * lowered the limit to one overflow in a tick because interrupts were slow.
 */
static void throttling_is_undone_at_once(struct kunit *test)
{
	struct overflows *o = new_started(test, 100);
	unsigned int i;
	u64 count;

	need_throttling(test);
	local_irq_disable();
	for (i = 1; i <= 50; i++) {
		o->c->event->hw.interrupts = MORE_THAN_A_TICK;
		if (pmuk_sim_count(o->sim, 0, 100) != 100 || o->nr != i ||
		    pmuk_counter_read_local(o->c, &count) || count != i * 100)
			break;
	}
	local_irq_enable();
	KUNIT_EXPECT_EQ(test, i, 51);
}

/* A throttled counter still has the exact count, and a pause and resume do not start it. */
static void throttled_counter_pauses(struct kunit *test)
{
	struct overflows *o = new_overflows(test, 1);
	u64 counted, more, count;

	need_throttling(test);
	o->attr.flags = 0;
	start(test, o);
	local_irq_disable();
	counted = pmuk_sim_count(o->sim, 0, MORE_THAN_A_TICK);
	pmuk_counter_read_local(o->c, &count);
	pmuk_counter_pause(o->c);
	pmuk_counter_resume(o->c);
	more = pmuk_sim_count(o->sim, 0, 1);
	local_irq_enable();
	KUNIT_EXPECT_LT(test, counted, MORE_THAN_A_TICK);
	KUNIT_EXPECT_EQ(test, count, counted);
	KUNIT_EXPECT_EQ(test, more, 0);

	/* The pause comes before the tick at which perf core restarts the counter. */
	local_irq_disable();
	counted += pmuk_sim_count(o->sim, 0, MORE_THAN_A_TICK);
	pmuk_counter_pause(o->c);
	local_irq_enable();
	KUNIT_EXPECT_TRUE(test, counts_again(o->sim));
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, o->c), counted);
	KUNIT_EXPECT_EQ(test, pmuk_counter_resume(o->c), 0);
	KUNIT_EXPECT_TRUE(test, counts_again(o->sim));
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, o->c), counted + 1);
}

static void shorten(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct overflows *o = data;

	note_overflow(c, sample, data);
	if (c->event->hw.interrupts == U64_MAX)
		o->ret |= pmuk_counter_set_period(c, 10);
}

/* The period is set by the callback or by the task. */
static const struct pmuk_test_value setters[] = { { "task", false }, { "callback", true } };

KUNIT_ARRAY_PARAM_DESC(setters, setters, name);

/*
 * An overflow reaches perf core's limit, and a shorter period is set. perf core then restarts the
 * counter without PERF_EF_RELOAD. If interrupts were slow, the very first overflow reaches the
 * limit.
 */
static void set_period_while_throttled(struct kunit *test)
{
	bool inside = pmuk_test_param(test);
	struct pmuk_sim *sim = pmuk_test_sim_config(test, &(struct pmuk_sim_config){
		.name = "pmuk_sim", .nr_counters = 1, .width = 16, .keeps = true });
	struct overflows *o = new_overflows_of(test, sim, 1000);
	bool throttled;
	unsigned int nr;

	need_throttling(test);
	o->attr.flags = 0;
	if (inside)
		o->attr.overflow = shorten;
	start(test, o);
	local_irq_disable();
	pmuk_sim_count(o->sim, 0, 1000);
	if (o->c->event->hw.interrupts != U64_MAX) {
		o->c->event->hw.interrupts = MORE_THAN_A_TICK;
		pmuk_sim_count(o->sim, 0, 1000);
	}
	nr = o->nr;
	throttled = !pmuk_sim_count(o->sim, 0, 1);
	if (!inside)
		o->ret = pmuk_counter_set_period(o->c, 10);
	local_irq_enable();
	KUNIT_EXPECT_TRUE(test, throttled);
	KUNIT_EXPECT_EQ(test, o->ret, 0);

	KUNIT_EXPECT_TRUE(test, counts_again(o->sim));
	expect_overflows(test, o, 8, nr);
	expect_overflows(test, o, 1, nr + 1);
}

static const struct pmuk_test_value ways[] = {
	{ "destroy", false }, { "destroy_deferred", true },
};

KUNIT_ARRAY_PARAM_DESC(ways, ways, name);

/* Counters are destroyed one after the other while they overflow. */
static void destroy_ends_callbacks(struct kunit *test)
{
	bool deferred = pmuk_test_param(test);
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 16);
	const struct pmuk_attr attr = { .type = pmuk_sim_type(sim), .period = 1,
					.flags = PMUK_NO_THROTTLE };
	int other = pmuk_test_other_cpu(test, pmuk_test_pin_first(test));

	pmuk_test_victims(test, &attr, other, pmuk_test_storm, sim, 80, deferred);
}

static void die_at_tenth(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct overflows *o = data;

	note_overflow(c, sample, data);
	if (o->nr == 10)
		o->ret = pmuk_counter_destroy_deferred(c, &o->done);
}

/* The callback destroys its own counter while more overflows follow. */
static void callback_destroys_deferred(struct kunit *test)
{
	struct overflows *o = new_overflows(test, 3);
	unsigned int i;

	o->attr.overflow = die_at_tenth;
	for (i = 0; i < 100; i++) {
		init_completion(&o->done);
		o->nr = 0;
		o->c = pmuk_counter_create(&o->attr, o->cpu, NULL);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, o->c);
		KUNIT_EXPECT_EQ(test, pmuk_counter_enable(o->c), 0);
		pmuk_sim_count(o->sim, 0, 300);
		KUNIT_ASSERT_EQ(test, o->ret, 0);
		KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&o->done, 10 * HZ), 0);
		KUNIT_ASSERT_EQ(test, pmuk_nr_counters(), 0);
		KUNIT_ASSERT_EQ(test, pmuk_sim_nr_events(o->sim), 0);
		KUNIT_ASSERT_EQ(test, o->nr, 10);
	}
}

/*
 * A create places a pinned counter on the PMU for a moment. Overflows in that moment are not
 * reported.
 */
static void creation_calls_nobody(struct kunit *test)
{
	struct overflows *o = new_overflows(test, 1);
	int other = pmuk_test_other_cpu(test, o->cpu);
	struct pmuk_loop *storm = pmuk_loop_start(test, other, pmuk_test_storm, o->sim);
	unsigned int i;

	o->attr.flags |= PMUK_PINNED;
	for (i = 0; i < 100; i++) {
		struct pmuk_counter *c = pmuk_counter_create(&o->attr, other, NULL);
		struct pmuk_value value = { .count = U64_MAX };
		struct pmuk_value snapshot = { .count = U64_MAX };

		pmuk_counter_read(c, &value);
		pmuk_counter_snapshot(c, &snapshot);
		pmuk_counter_destroy(c);
		KUNIT_EXPECT_EQ(test, value.count, 0);
		KUNIT_EXPECT_EQ(test, value.time_running, 0);
		KUNIT_EXPECT_EQ(test, value.time_enabled, 0);
		KUNIT_EXPECT_EQ(test, snapshot.count, 0);
	}
	pmuk_loop_stop(test, storm);
	KUNIT_EXPECT_EQ(test, o->nr, 0);
	KUNIT_EXPECT_GT_MSG(test, pmuk_sim_counted(o->sim, 0), 0, "nothing happened meanwhile");
}

static struct kunit_case pmuk_counter_overflow_cases[] = {
	KUNIT_CASE_SLOW(overflow_comes_each_period),
	KUNIT_CASE(period_goes_on_where_it_stopped),
	KUNIT_CASE(no_overflow_while_paused),
	KUNIT_CASE(sample_has_what_is_free),
	KUNIT_CASE(sample_has_what_is_asked),
	KUNIT_CASE(sample_lacks_what_the_pmu_lacks),
	KUNIT_CASE(sample_value_is_exact),
	KUNIT_CASE(callback_reads_exactly),
	KUNIT_CASE(overflow_publishes),
	KUNIT_CASE(random_period_follows_its_seed),
	KUNIT_CASE(set_period_starts_a_new_one),
	KUNIT_CASE(set_period_while_disabled),
	KUNIT_CASE(set_period_while_paused),
	KUNIT_CASE(set_period_of_an_interval),
	KUNIT_CASE(pause_stops_an_interval),
	KUNIT_CASE(callback_sets_the_period),
	KUNIT_CASE(callback_does_not_start_the_pmu),
	KUNIT_CASE(callback_pauses),
	KUNIT_CASE(throttling_can_be_refused),
	KUNIT_CASE(throttling_is_undone_at_once),
	KUNIT_CASE(throttled_counter_pauses),
	KUNIT_CASE_PARAM(set_period_while_throttled, setters_gen_params),
	KUNIT_CASE_PARAM_ATTR(destroy_ends_callbacks, ways_gen_params,
			      { .speed = KUNIT_SPEED_SLOW }),
	KUNIT_CASE(callback_destroys_deferred),
	KUNIT_CASE_SLOW(creation_calls_nobody),
	{}
};

PMUK_SUITE(pmuk_counter_overflow, pmuk_test_init, "KUnit tests of pmuk's overflow callbacks");
