// SPDX-License-Identifier: GPL-2.0
/*
 * Overflow callbacks: as many as periods have elapsed, told what is true, and
 * none after destruction.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/sched/clock.h>

#include "pmuk_counters.h"
#include "pmuk_suite.h"

#define NR_PERIODS	64

struct overflows {
	struct pmuk_sim *sim;
	struct pmuk_sample first, last;
	unsigned int nr;
	u64 periods[NR_PERIODS];	/* as told */
	u64 counts[NR_PERIODS];		/* as told, with PERF_SAMPLE_READ */
	u64 local;			/* as read from inside */
	int ret;			/* of what was called from inside */
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

static struct overflows *new_overflows(struct kunit *test, struct pmuk_sim *sim)
{
	struct overflows *o = pmuk_test_zalloc(test, sizeof(*o));

	o->sim = sim;
	return o;
}

/* perf core may have lowered its limit far, on a slow machine: keep it out. */
static struct pmuk_attr overflow_attr(struct overflows *o, u64 period)
{
	return (struct pmuk_attr) {
		.type = pmuk_sim_type(o->sim),
		.period = period,
		.flags = PMUK_NO_THROTTLE,
		.overflow = note_overflow,
		.data = o,
	};
}

/* floor(total / period) callbacks, whichever way the total comes about. */
static void overflow_comes_each_period(struct kunit *test)
{
	static const u64 periods[] = { 1, 2, 7, 1000, 32767, 32768, 65536, 100003 };
	static const u64 steps[] = { 1, 999, 12345, 70000 };
	struct overflows *o = new_overflows(test, pmuk_test_sim(test, 1, 16));
	int cpu = pmuk_test_pin_first(test);
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(periods); i++) {
		struct pmuk_attr attr = overflow_attr(o, periods[i]);
		struct pmuk_counter *c;
		u64 total = 0;

		c = pmuk_test_enabled(test, &attr, cpu, NULL);
		o->nr = 0;
		for (j = 0; j < 4 * ARRAY_SIZE(steps); j++) {
			total += pmuk_sim_count(o->sim, 0, steps[j % ARRAY_SIZE(steps)]);
			KUNIT_ASSERT_EQ(test, o->nr, div64_u64(total, periods[i]));
		}
		KUNIT_EXPECT_EQ(test, total, 4 * (1 + 999 + 12345 + 70000));
		kunit_release_action(test, pmuk_test_put_counter, c);
	}
}

/* Being off the PMU, or paused, neither loses nor makes part of a period. */
static void period_goes_on_where_it_stopped(struct kunit *test)
{
	struct overflows *o = new_overflows(test, pmuk_test_sim(test, 1, 16));
	struct pmuk_attr attr = overflow_attr(o, 1000);
	struct pmuk_counter *c = pmuk_test_enabled(test, &attr, pmuk_test_pin_first(test), NULL);
	unsigned int i;

	for (i = 0; i < 100; i++) {
		pmuk_sim_count(o->sim, 0, 150);
		KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
		KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
		pmuk_sim_count(o->sim, 0, 150);
		KUNIT_EXPECT_EQ(test, pmuk_counter_pause(c), 0);
		KUNIT_EXPECT_EQ(test, pmuk_counter_resume(c), 0);
		KUNIT_ASSERT_EQ(test, o->nr, (i + 1) * 300 / 1000);
	}
}

static void no_overflow_while_paused(struct kunit *test)
{
	struct overflows *o = new_overflows(test, pmuk_test_sim(test, 1, 16));
	struct pmuk_attr attr = overflow_attr(o, 10);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *c = pmuk_test_enabled(test, &attr, cpu, NULL);

	pmuk_sim_count(o->sim, 0, 25);
	KUNIT_EXPECT_EQ(test, o->nr, 2);
	KUNIT_EXPECT_EQ(test, pmuk_counter_pause(c), 0);
	/* perf core starts it again, and it does overflow, until that is too often. */
	KUNIT_EXPECT_EQ(test, pmuk_sim_steal(o->sim, cpu, 0), 0);
	KUNIT_EXPECT_GE(test, pmuk_sim_count(o->sim, 0, 1000), 5);
	KUNIT_EXPECT_EQ(test, o->nr, 2);
	KUNIT_EXPECT_EQ(test, pmuk_counter_resume(c), 0);
	pmuk_sim_count(o->sim, 0, 30);
	KUNIT_EXPECT_EQ(test, o->nr, 5);
}

/* IP, PERIOD and REGS_INTR come unasked, and agree. */
static void sample_has_what_is_free(struct kunit *test)
{
	struct overflows *o = new_overflows(test, pmuk_test_sim(test, 1, 16));
	struct pmuk_attr attr = overflow_attr(o, 100);

	pmuk_test_enabled(test, &attr, pmuk_test_pin_first(test), NULL);
	pmuk_sim_count(o->sim, 0, 100);
	KUNIT_ASSERT_EQ(test, o->nr, 1);
	KUNIT_EXPECT_EQ(test, o->last.valid,
			PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_INTR);
	KUNIT_EXPECT_NE(test, o->last.ip, 0);
	KUNIT_EXPECT_NOT_NULL(test, o->last.regs);
	KUNIT_EXPECT_EQ(test, o->last.period, 100);
}

static struct pmuk_sim *sim_with_samples(struct kunit *test, u64 addr, u64 weight)
{
	const struct pmuk_sim_config config = {
		.name = "pmuk_sim",
		.nr_counters = 1,
		.width = 16,
		.addr = addr,
		.weight = weight,
	};

	return pmuk_test_sim_config(test, &config);
}

/* Each field on its own: valid when asked for, and only then. */
static void sample_has_what_is_asked(struct kunit *test)
{
	static const u64 fields[] = {
		PERF_SAMPLE_ADDR, PERF_SAMPLE_WEIGHT, PERF_SAMPLE_TIME, PERF_SAMPLE_READ,
	};
	const u64 all = PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_TIME |
			PERF_SAMPLE_READ;
	struct overflows *o = new_overflows(test, sim_with_samples(test, 0xabcdef, 77));
	int cpu = pmuk_test_pin_first(test);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		struct pmuk_attr attr = overflow_attr(o, 100);
		struct pmuk_counter *c;
		u64 before, after;

		attr.sample_type = fields[i];
		c = pmuk_test_enabled(test, &attr, cpu, NULL);
		before = local_clock();
		pmuk_sim_count(o->sim, 0, 100);
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
		kunit_release_action(test, pmuk_test_put_counter, c);
	}
	KUNIT_EXPECT_EQ(test, o->nr, ARRAY_SIZE(fields));
}

/* What the PMU does not give is not claimed. */
static void sample_lacks_what_the_pmu_lacks(struct kunit *test)
{
	struct overflows *o = new_overflows(test, sim_with_samples(test, 0, 0));
	struct pmuk_attr attr = overflow_attr(o, 100);

	attr.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT;
	pmuk_test_enabled(test, &attr, pmuk_test_pin_first(test), NULL);
	pmuk_sim_count(o->sim, 0, 100);
	KUNIT_ASSERT_EQ(test, o->nr, 1);
	KUNIT_EXPECT_EQ(test, o->last.valid & (PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT), 0);
}

static void sample_value_is_exact(struct kunit *test)
{
	struct overflows *o = new_overflows(test, pmuk_test_sim(test, 1, 16));
	struct pmuk_attr attr = overflow_attr(o, 1000);
	unsigned int i;

	attr.sample_type = PERF_SAMPLE_READ;
	pmuk_test_enabled(test, &attr, pmuk_test_pin_first(test), NULL);
	pmuk_sim_count(o->sim, 0, NR_PERIODS * 1000);
	KUNIT_ASSERT_EQ(test, o->nr, NR_PERIODS);
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
	struct overflows *o = new_overflows(test, pmuk_test_sim(test, 1, 16));
	struct pmuk_attr attr = overflow_attr(o, 1000);
	unsigned int i;

	attr.overflow = read_inside;
	pmuk_test_enabled(test, &attr, pmuk_test_pin_first(test), NULL);
	for (i = 1; i <= 200; i++) {
		pmuk_sim_count(o->sim, 0, 1000);
		KUNIT_ASSERT_EQ(test, o->nr, i);
		KUNIT_ASSERT_EQ(test, o->ret, 0);
		KUNIT_ASSERT_EQ(test, o->local, i * 1000);
	}
}

/* The overflow publishes, with a callback and without. */
static void overflow_publishes(struct kunit *test)
{
	struct overflows *o = new_overflows(test, pmuk_test_sim(test, 1, 16));
	struct pmuk_attr attr = overflow_attr(o, 1000);
	struct pmuk_value value;
	struct pmuk_counter *c;

	attr.overflow = NULL;
	c = pmuk_test_enabled(test, &attr, pmuk_test_pin_first(test), NULL);
	pmuk_sim_count(o->sim, 0, 999);
	KUNIT_EXPECT_EQ(test, pmuk_counter_snapshot(c, &value), 0);
	KUNIT_EXPECT_EQ(test, value.count, 0);
	pmuk_sim_count(o->sim, 0, 1500);
	KUNIT_EXPECT_EQ(test, pmuk_counter_snapshot(c, &value), 0);
	KUNIT_EXPECT_EQ(test, value.count, 2000);
	KUNIT_EXPECT_EQ(test, o->nr, 0);
}

static void run_random(struct kunit *test, struct overflows *o, u64 seed)
{
	struct pmuk_attr attr = overflow_attr(o, 1000);
	struct pmuk_counter *c;

	attr.random_mask = 0x3ff;
	attr.random_seed = seed;
	attr.sample_type = PERF_SAMPLE_READ;
	c = pmuk_test_enabled(test, &attr, raw_smp_processor_id(), NULL);
	o->nr = 0;
	pmuk_sim_count(o->sim, 0, NR_PERIODS * (1000 + 0x3ff));
	KUNIT_EXPECT_GE(test, o->nr, NR_PERIODS);
	kunit_release_action(test, pmuk_test_put_counter, c);
}

/* Within its bounds, as told, and the sequence of its seed. */
static void random_period_follows_its_seed(struct kunit *test)
{
	struct overflows *o = pmuk_test_zalloc(test, 3 * sizeof(*o));
	unsigned int i, same = 0, distinct = 0;
	u64 total = 0;

	pmuk_test_pin_first(test);
	o[0].sim = pmuk_test_sim(test, 1, 16);
	o[1].sim = o[0].sim;
	o[2].sim = o[0].sim;
	run_random(test, &o[0], 1);
	run_random(test, &o[1], 1);
	run_random(test, &o[2], 2);

	for (i = 0; i < NR_PERIODS; i++) {
		u64 period = o[0].periods[i];

		KUNIT_EXPECT_GE(test, period, 1000);
		KUNIT_EXPECT_LE(test, period, 1000 + 0x3ff);
		total += period;
		KUNIT_EXPECT_EQ(test, o[0].counts[i], total);
		KUNIT_EXPECT_EQ(test, o[1].periods[i], period);
		same += o[2].periods[i] == period;
		distinct += i && period != o[0].periods[i - 1];
	}
	KUNIT_EXPECT_LT(test, same, NR_PERIODS / 4);
	KUNIT_EXPECT_GT(test, distinct, NR_PERIODS * 3 / 4);
}

static void set_period_starts_a_new_one(struct kunit *test)
{
	struct overflows *o = new_overflows(test, pmuk_test_sim(test, 1, 16));
	struct pmuk_attr attr = overflow_attr(o, 1000);
	struct pmuk_counter *c;

	c = pmuk_test_enabled(test, &attr, pmuk_test_pin_first(test), NULL);
	pmuk_sim_count(o->sim, 0, 1500);
	KUNIT_EXPECT_EQ(test, o->nr, 1);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(c, 300), 0);
	pmuk_sim_count(o->sim, 0, 299);
	KUNIT_EXPECT_EQ(test, o->nr, 1);
	pmuk_sim_count(o->sim, 0, 1);
	KUNIT_EXPECT_EQ(test, o->nr, 2);
	KUNIT_EXPECT_EQ(test, o->last.period, 300);
	pmuk_sim_count(o->sim, 0, 600);
	KUNIT_EXPECT_EQ(test, o->nr, 4);

	/* Longer than the register is wide. */
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(c, 200000), 0);
	pmuk_sim_count(o->sim, 0, 199999);
	KUNIT_EXPECT_EQ(test, o->nr, 4);
	pmuk_sim_count(o->sim, 0, 1);
	KUNIT_EXPECT_EQ(test, o->nr, 5);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, c), 1500 + 300 + 600 + 200000);
}

static void set_period_while_disabled(struct kunit *test)
{
	struct overflows *o = new_overflows(test, pmuk_test_sim(test, 1, 16));
	struct pmuk_attr attr = overflow_attr(o, 1000);
	struct pmuk_counter *c;

	c = pmuk_test_counter(test, &attr, pmuk_test_pin_first(test), NULL);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(c, 50), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
	pmuk_sim_count(o->sim, 0, 49);
	KUNIT_EXPECT_EQ(test, o->nr, 0);
	pmuk_sim_count(o->sim, 0, 51);
	KUNIT_EXPECT_EQ(test, o->nr, 2);
}

/* Paused meanwhile: the new period begins with the next event that counts. */
static void set_period_while_paused(struct kunit *test)
{
	struct overflows *o = new_overflows(test, pmuk_test_sim(test, 1, 16));
	struct pmuk_attr attr = overflow_attr(o, 1000);
	struct pmuk_counter *c;

	c = pmuk_test_enabled(test, &attr, pmuk_test_pin_first(test), NULL);
	pmuk_sim_count(o->sim, 0, 10);
	KUNIT_EXPECT_EQ(test, pmuk_counter_pause(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(c, 50), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(o->sim, 0, 60), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_resume(c), 0);
	pmuk_sim_count(o->sim, 0, 49);
	KUNIT_EXPECT_EQ(test, o->nr, 0);
	pmuk_sim_count(o->sim, 0, 1);
	KUNIT_EXPECT_EQ(test, o->nr, 1);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, c), 60);
}

/* A PMU with the habits of drivers/perf/arm_spe_pmu.c. */
static struct overflows *new_interval_overflows(struct kunit *test)
{
	static const struct pmuk_sim_config config = {
		.name = "pmuk_spe", .nr_counters = 1, .width = 32, .interval = true,
	};

	return new_overflows(test, pmuk_test_sim_config(test, &config));
}

/* Hardware whose events are in perf's software context is hardware: it takes what is left. */
static void set_period_of_an_interval(struct kunit *test)
{
	struct overflows *o = new_interval_overflows(test);
	struct pmuk_attr attr = overflow_attr(o, 1000);
	struct pmuk_counter *c;

	c = pmuk_test_enabled(test, &attr, pmuk_test_pin_first(test), NULL);
	pmuk_sim_count(o->sim, 0, 300);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(c, 50), 0);
	pmuk_sim_count(o->sim, 0, 49);
	KUNIT_EXPECT_EQ(test, o->nr, 0);
	pmuk_sim_count(o->sim, 0, 51);
	KUNIT_EXPECT_EQ(test, o->nr, 2);

	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(c, 20), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
	pmuk_sim_count(o->sim, 0, 19);
	KUNIT_EXPECT_EQ(test, o->nr, 2);
	pmuk_sim_count(o->sim, 0, 1);
	KUNIT_EXPECT_EQ(test, o->nr, 3);
}

static void pause_stops_an_interval(struct kunit *test)
{
	struct overflows *o = new_interval_overflows(test);
	struct pmuk_attr attr = overflow_attr(o, 1000);
	struct pmuk_counter *c;

	c = pmuk_test_enabled(test, &attr, pmuk_test_pin_first(test), NULL);
	KUNIT_EXPECT_EQ(test, pmuk_counter_pause(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(o->sim, 0, 10), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_resume(c), 0);
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
	struct overflows *o = new_overflows(test, pmuk_test_sim(test, 1, 16));
	struct pmuk_attr attr = overflow_attr(o, 100);
	unsigned int i;

	attr.overflow = lengthen;
	attr.sample_type = PERF_SAMPLE_READ;
	pmuk_test_enabled(test, &attr, pmuk_test_pin_first(test), NULL);
	pmuk_sim_count(o->sim, 0, 100 * NR_PERIODS * (NR_PERIODS + 1) / 2);
	KUNIT_ASSERT_EQ(test, o->nr, NR_PERIODS);
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

/* In its own interrupt a PMU stays stopped, whatever is done to its counters there. */
static void callback_does_not_start_the_pmu(struct kunit *test)
{
	struct overflows *o = new_overflows(test, pmuk_test_sim(test, 2, 16));
	struct pmuk_attr attr = overflow_attr(o, 100);
	int cpu = pmuk_test_pin_first(test);

	attr.overflow = reprogram_inside;
	pmuk_test_enabled(test, &attr, cpu, NULL);
	attr = (struct pmuk_attr){ .type = attr.type, .config = 1 };
	pmuk_test_enabled(test, &attr, cpu, NULL);
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
	struct overflows *o = new_overflows(test, pmuk_test_sim(test, 1, 16));
	struct pmuk_attr attr = overflow_attr(o, 100);
	struct pmuk_counter *c;
	unsigned int i;

	attr.overflow = pause_inside;
	c = pmuk_test_enabled(test, &attr, pmuk_test_pin_first(test), NULL);
	for (i = 1; i <= 50; i++) {
		/* The rest of the 250 finds the counter stopped. */
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(o->sim, 0, 250), 100);
		KUNIT_ASSERT_EQ(test, o->nr, i);
		KUNIT_ASSERT_EQ(test, pmuk_test_local(test, c), i * 100);
		KUNIT_EXPECT_EQ(test, pmuk_counter_resume(c), 0);
	}
	KUNIT_EXPECT_EQ(test, o->ret, 0);
}

/* perf core's limit for one tick, and nothing that it could be lowered to is more. */
#define MORE_THAN_A_TICK	(2 * DIV_ROUND_UP(100000, HZ))

static void need_throttling(struct kunit *test)
{
	if (IS_MODULE(CONFIG_PMUK_SIM))
		kunit_skip(test, "perf_event_overflow() is not exported: no throttling");
}

/* At a tick perf core lets a throttled counter go on. */
static bool counts_again(struct pmuk_sim *sim)
{
	unsigned long end = jiffies + HZ;

	while (time_before(jiffies, end)) {
		if (pmuk_sim_count(sim, 0, 1))
			return true;
		mdelay(1);
	}
	return false;
}

static u64 storm_in_one_tick(struct kunit *test, struct overflows *o, u32 flags)
{
	struct pmuk_attr attr = overflow_attr(o, 1);
	struct pmuk_counter *c;
	u64 counted;

	attr.flags = flags;
	c = pmuk_test_enabled(test, &attr, raw_smp_processor_id(), NULL);
	o->nr = 0;
	local_irq_disable();
	counted = pmuk_sim_count(o->sim, 0, MORE_THAN_A_TICK);
	local_irq_enable();
	KUNIT_EXPECT_EQ(test, counted, o->nr);

	KUNIT_EXPECT_TRUE(test, counts_again(o->sim));
	KUNIT_EXPECT_EQ(test, o->nr, counted + 1);
	kunit_release_action(test, pmuk_test_put_counter, c);
	return counted;
}

static void throttling_can_be_refused(struct kunit *test)
{
	struct overflows *o = new_overflows(test, pmuk_test_sim(test, 1, 16));

	pmuk_test_pin_first(test);
	KUNIT_EXPECT_EQ(test, storm_in_one_tick(test, o, PMUK_NO_THROTTLE), MORE_THAN_A_TICK);
	need_throttling(test);
	KUNIT_EXPECT_LT(test, storm_in_one_tick(test, o, 0), MORE_THAN_A_TICK);
}

/*
 * With interrupts off, while each overflow but the first reaches perf core's limit, as when
 * interrupts were so slow that it allows one in a tick.
 */
static void throttling_is_undone_at_once(struct kunit *test)
{
	struct overflows *o = new_overflows(test, pmuk_test_sim(test, 1, 16));
	struct pmuk_attr attr = overflow_attr(o, 100);
	struct pmuk_counter *c;
	unsigned int i;
	u64 count;

	need_throttling(test);
	c = pmuk_test_enabled(test, &attr, pmuk_test_pin_first(test), NULL);
	local_irq_disable();
	for (i = 1; i <= 50; i++) {
		c->event->hw.interrupts = MORE_THAN_A_TICK;
		if (pmuk_sim_count(o->sim, 0, 100) != 100 || o->nr != i ||
		    pmuk_counter_read_local(c, &count) || count != i * 100)
			break;
	}
	local_irq_enable();
	KUNIT_EXPECT_EQ(test, i, 51);
}

/* While perf core has it stopped, it is still exact, and pause does not start it. */
static void throttled_counter_pauses(struct kunit *test)
{
	struct overflows *o = new_overflows(test, pmuk_test_sim(test, 1, 16));
	struct pmuk_attr attr = overflow_attr(o, 1);
	struct pmuk_counter *c;
	u64 counted, more, count;

	need_throttling(test);
	attr.flags = 0;
	c = pmuk_test_enabled(test, &attr, pmuk_test_pin_first(test), NULL);
	local_irq_disable();
	counted = pmuk_sim_count(o->sim, 0, MORE_THAN_A_TICK);
	pmuk_counter_read_local(c, &count);
	pmuk_counter_pause(c);
	pmuk_counter_resume(c);
	more = pmuk_sim_count(o->sim, 0, 1);
	local_irq_enable();
	KUNIT_EXPECT_LT(test, counted, MORE_THAN_A_TICK);
	KUNIT_EXPECT_EQ(test, count, counted);
	KUNIT_EXPECT_EQ(test, more, 0);

	/* Paused before the tick at which perf core starts it again. */
	local_irq_disable();
	counted += pmuk_sim_count(o->sim, 0, MORE_THAN_A_TICK);
	pmuk_counter_pause(c);
	local_irq_enable();
	KUNIT_EXPECT_TRUE(test, counts_again(o->sim));
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, c), counted);
	KUNIT_EXPECT_EQ(test, pmuk_counter_resume(c), 0);
	KUNIT_EXPECT_TRUE(test, counts_again(o->sim));
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, c), counted + 1);
}

static void shorten(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct overflows *o = data;

	note_overflow(c, sample, data);
	if (c->event->hw.interrupts == U64_MAX)
		o->ret |= pmuk_counter_set_period(c, 10);
}

/* The callback sets the period, or the task does. */
static const struct setter {
	const char *name;
	bool inside;
} setters[] = { { "task", false }, { "callback", true } };

KUNIT_ARRAY_PARAM_DESC(setters, setters, name);

/*
 * One overflow that reaches perf core's limit, and a shorter period from then on. perf core starts
 * the counter again without PERF_EF_RELOAD. Where interrupts were slow, the first one reaches it.
 */
static void set_period_while_throttled(struct kunit *test)
{
	bool inside = ((const struct setter *)test->param_value)->inside;
	static const struct pmuk_sim_config config = {
		.name = "pmuk_sim", .nr_counters = 1, .width = 16, .keeps = true,
	};
	struct overflows *o = new_overflows(test, pmuk_test_sim_config(test, &config));
	struct pmuk_attr attr = overflow_attr(o, 1000);
	struct pmuk_counter *c;
	bool throttled;
	unsigned int nr;

	need_throttling(test);
	attr.flags = 0;
	if (inside)
		attr.overflow = shorten;
	c = pmuk_test_enabled(test, &attr, pmuk_test_pin_first(test), NULL);
	local_irq_disable();
	pmuk_sim_count(o->sim, 0, 1000);
	if (c->event->hw.interrupts != U64_MAX) {
		c->event->hw.interrupts = MORE_THAN_A_TICK;
		pmuk_sim_count(o->sim, 0, 1000);
	}
	nr = o->nr;
	throttled = !pmuk_sim_count(o->sim, 0, 1);
	if (!inside)
		o->ret = pmuk_counter_set_period(c, 10);
	local_irq_enable();
	KUNIT_EXPECT_TRUE(test, throttled);
	KUNIT_EXPECT_EQ(test, o->ret, 0);

	KUNIT_EXPECT_TRUE(test, counts_again(o->sim));
	pmuk_sim_count(o->sim, 0, 8);
	KUNIT_EXPECT_EQ(test, o->nr, nr);
	pmuk_sim_count(o->sim, 0, 1);
	KUNIT_EXPECT_EQ(test, o->nr, nr + 1);
}

static const struct way {
	const char *name;
	bool deferred;
} ways[] = { { "destroy", false }, { "destroy_deferred", true } };

KUNIT_ARRAY_PARAM_DESC(ways, ways, name);

/* One counter after the other, each destroyed in the midst of its overflows. */
static void destroy_ends_callbacks(struct kunit *test)
{
	const struct way *way = test->param_value;
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 16);
	const struct pmuk_attr attr = { .type = pmuk_sim_type(sim), .period = 1,
					.flags = PMUK_NO_THROTTLE };
	int other = pmuk_test_other_cpu(test, pmuk_test_pin_first(test));

	pmuk_test_victims(test, &attr, other, pmuk_test_storm, sim, 200, way->deferred);
}

struct suicide {
	struct completion done;
	atomic_t calls;
	int ret;
};

static void die_at_tenth(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct suicide *s = data;

	if (atomic_inc_return(&s->calls) == 10)
		s->ret = pmuk_counter_destroy_deferred(c, &s->done);
}

/* From its own callback, with more overflows on the heels. */
static void callback_destroys_deferred(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 16);
	struct suicide *s = pmuk_test_zalloc(test, sizeof(*s));
	struct pmuk_attr attr = {
		.type = pmuk_sim_type(sim),
		.period = 3,
		.flags = PMUK_NO_THROTTLE,
		.overflow = die_at_tenth,
		.data = s,
	};
	int cpu = pmuk_test_pin_first(test);
	unsigned int i;

	for (i = 0; i < 100; i++) {
		struct pmuk_counter *c;

		init_completion(&s->done);
		atomic_set(&s->calls, 0);
		c = pmuk_counter_create(&attr, cpu, NULL);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, c);
		KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
		pmuk_sim_count(sim, 0, 300);
		KUNIT_ASSERT_EQ(test, s->ret, 0);
		KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&s->done, 10 * HZ), 0);
		KUNIT_ASSERT_EQ(test, pmuk_nr_counters(), 0);
		KUNIT_ASSERT_EQ(test, pmuk_sim_nr_events(sim), 0);
		KUNIT_ASSERT_EQ(test, atomic_read(&s->calls), 10);
	}
}

/* A counter that is only tried, at creation, reports nothing. */
static void creation_calls_nobody(struct kunit *test)
{
	struct overflows *o = new_overflows(test, pmuk_test_sim(test, 1, 16));
	struct pmuk_attr attr = overflow_attr(o, 1);
	int cpu = pmuk_test_pin_first(test);
	int other = pmuk_test_other_cpu(test, cpu);
	struct task_struct *task;
	unsigned int i;

	attr.flags |= PMUK_PINNED;
	task = pmuk_test_thread(test, other, pmuk_test_storm, o->sim);
	for (i = 0; i < 300; i++) {
		struct pmuk_counter *c = pmuk_counter_create(&attr, other, NULL);
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
	kthread_stop(task);
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
