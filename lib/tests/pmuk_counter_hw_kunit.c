// SPDX-License-Identifier: GPL-2.0
/*
 * The tests compare counters of the machine's own PMU with the clock and with each other. Where the
 * PMU has an event that software can make happen, counts have to be exact.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/timekeeping.h>

#include "pmuk_counters.h"
#include "pmuk_hw.h"
#include "pmuk_suite.h"

static const struct pmuk_attr cycles = PMUK_HW_CYCLES;

/* Reads count and time at one moment. Returns false if something came between the two. */
static bool count_and_time(struct kunit *test, struct pmuk_counter *c, u64 *count, u64 *ns)
{
	u64 before;

	local_irq_disable();
	before = ktime_get_ns();
	*count = pmuk_test_local(test, c);
	*ns = ktime_get_ns();
	local_irq_enable();
	return *ns - before < 20 * NSEC_PER_USEC;
}

/*
 * Compares in small steps. A step that takes long is left out: the host may have taken the CPU away
 * while perf core had the PMU stopped, as it does in ticks.
 */
static void cycles_agree_with_the_clock(struct kunit *test)
{
	struct pmuk_counter *c = pmuk_test_here(test, &cycles);
	u64 from = 0, to, begin = 0, end, counted = 0, passed = 0;
	struct pmuk_test_progress progress = {};
	bool was_sound = false, sound;

	while (passed < NSEC_PER_SEC / 2 && pmuk_test_goes_on(&progress, passed)) {
		sound = count_and_time(test, c, &to, &end);
		if (sound && was_sound && end - begin < 100 * NSEC_PER_USEC) {
			counted += to - from;
			passed += end - begin;
		}
		was_sound = sound;
		from = to;
		begin = end;
	}

	KUNIT_EXPECT_GE(test, passed, NSEC_PER_SEC / 2);
	KUNIT_EXPECT_GT(test, counted, 0);
	kunit_info(test, "%llu cycles in %llu ns", counted, passed);
	if (!pmuk_hw_cycles_are_ns())
		return;
	KUNIT_EXPECT_GE(test, counted * 100, passed * 98);
	KUNIT_EXPECT_LE(test, counted * 100, passed * 102);
}

/*
 * The count that the PMU's driver reads lies between those of the direct reads before and after it.
 */
static void reads_agree(struct kunit *test)
{
	struct pmuk_counter *c = pmuk_test_here(test, &cycles);
	struct pmuk_value value;
	u64 before, after;
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		before = pmuk_test_local(test, c);
		KUNIT_ASSERT_EQ(test, pmuk_counter_read(c, &value), 0);
		after = pmuk_test_local(test, c);
		KUNIT_ASSERT_GT(test, value.count, before);
		KUNIT_ASSERT_GT(test, after, value.count);
	}
}

#define FREQ	200
#define MET	16			/* periods in a row that have to be as long as wanted */

struct adapted {
	u64 period, wanted;
	unsigned int nr;
	unsigned int met;	/* latest periods, all about as long as wanted */
};

static void compare_period(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct adapted *a = data;

	if (a->met == MET)
		return;
	a->period = sample->period;
	a->wanted = mul_u64_u64_div_u64(sample->value.count, NSEC_PER_SEC / FREQ,
					sample->value.time_running);
	WRITE_ONCE(a->nr, a->nr + 1);
	if (a->period > a->wanted / 2 && a->period < a->wanted * 2)
		WRITE_ONCE(a->met, a->met + 1);
	else
		WRITE_ONCE(a->met, 0);
}

static void periods_meet_the_frequency(struct kunit *test)
{
	struct adapted *a = pmuk_test_zalloc(test, sizeof(*a));
	struct pmuk_test_progress progress = {};
	struct pmuk_attr attr = cycles;

	attr.flags |= PMUK_NO_THROTTLE;
	attr.period = 30000;
	attr.freq = FREQ;
	attr.sample_type = PERF_SAMPLE_READ;
	attr.overflow = compare_period;
	attr.data = a;
	pmuk_test_here(test, &attr);
	while (READ_ONCE(a->met) < MET && READ_ONCE(a->nr) < 2000 &&
	       pmuk_test_goes_on(&progress, a->nr))
		pmuk_test_spin(NSEC_PER_MSEC);
	kunit_info(test, "after %u overflows, periods are %llu, and %llu is wanted", a->nr,
		   a->period, a->wanted);
	KUNIT_EXPECT_EQ(test, a->met, MET);
}

struct storm {
	struct pmuk_hw_guard guard;
	struct pmuk_hw_pace pace;
	u64 reads;		/* number of reads by the task */
	u64 last_task;		/* latest count that the task has read */
	u64 last_irq;		/* latest count that the callback has read */
	u64 intent, done;	/* events about to be made, and made */
	unsigned int nr, nmis, wrong, busy;
	int ret;
};

/* Returns a counter of @attr on the test's CPU that calls @fn at each overflow. */
static struct pmuk_counter *new_storm(struct kunit *test, struct storm *storm,
				      const struct pmuk_attr *attr, u64 period,
				      pmuk_overflow_t fn)
{
	struct pmuk_attr own = *attr;

	own.period = period;
	own.overflow = fn;
	own.data = storm;
	storm->pace.period = period;
	return pmuk_test_enabled(test, &own, raw_smp_processor_id(), NULL);
}

static void read_in_callback(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct storm *storm = data;
	unsigned int losses = storm->guard.losses;
	u64 count = 0;
	int ret;

	storm->nr++;
	storm->nmis += !!in_nmi();
	pmuk_hw_keep_pace(&storm->pace, c, READ_ONCE(storm->reads), 8);
	ret = pmuk_counter_read_local(c, &count);
	if (ret == -EBUSY) {	/* the PMU was just being stopped */
		storm->busy++;
		return;
	}
	storm->ret |= ret;
	if (pmuk_hw_losses(&storm->guard) != losses) {
		WRITE_ONCE(storm->last_task, 0);
		count = 0;
	} else if (count < READ_ONCE(storm->last_task) || count < storm->last_irq) {
		storm->wrong++;
	}
	WRITE_ONCE(storm->last_irq, count);
}

/* Returns the progress of a storm, up to 20 000 calls and 2 000 overflows. */
static u64 storm_size(u64 done, const struct storm *storm)
{
	return min(done, 20000) + min(READ_ONCE(storm->nr), 2000);
}

/* Returns how many overflows have read the count. The PMU is just being stopped in the others. */
static unsigned int overflow_reads(const struct storm *storm)
{
	unsigned int busy = READ_ONCE(storm->busy);	/* first, as it must not exceed ->nr */

	return READ_ONCE(storm->nr) - busy;
}

/*
 * No count is less than an earlier one, whether the task or the callback has read either of them.
 * On a busy host, most NMIs may be so late that their callback cannot read.
 */
static void reads_grow_in_a_storm(struct kunit *test)
{
	struct storm *storm = pmuk_test_zalloc(test, sizeof(*storm));
	struct pmuk_test_progress progress = {};
	unsigned int wrong = 0, losses = 0;
	struct pmuk_counter *c;
	struct pmuk_value value;
	u64 count, least;
	int ret;

	pmuk_hw_guard_start(test, &storm->guard, raw_smp_processor_id());
	c = new_storm(test, storm, &cycles, 30000, read_in_callback);
	while ((READ_ONCE(storm->nr) < 2000 || overflow_reads(storm) < 1000 ||
		storm->reads < 20000) &&
	       pmuk_test_goes_on(&progress, storm_size(storm->reads, storm) +
					    min(overflow_reads(storm), 1000))) {
		losses = READ_ONCE(storm->guard.losses);
		least = max(READ_ONCE(storm->last_irq), storm->last_task);
		ret = pmuk_counter_read_local(c, &count);
		if (pmuk_hw_losses(&storm->guard) != losses) {
			WRITE_ONCE(storm->last_irq, 0);
			count = 0;
		} else if (ret || count < least) {
			wrong++;
		}
		WRITE_ONCE(storm->last_task, count);
		/* The callback may have found a loss after the check above. */
		if (READ_ONCE(storm->guard.losses) != losses)
			WRITE_ONCE(storm->last_task, 0);
		WRITE_ONCE(storm->reads, storm->reads + 1);
	}
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_read(c, &value), 0);
	least = max(storm->last_task, storm->last_irq);
	if (pmuk_hw_losses(&storm->guard) != losses)
		least = 0;

	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_EQ(test, storm->wrong, 0);
	KUNIT_EXPECT_EQ(test, storm->ret, 0);
	KUNIT_EXPECT_GE(test, overflow_reads(storm), 1000);
	KUNIT_EXPECT_GE(test, storm->nr, 2000);
	KUNIT_EXPECT_GE(test, storm->reads, 20000);
	KUNIT_EXPECT_EQ(test, storm->nmis, pmuk_hw_interrupts_as_nmi() ? storm->nr : 0);
	KUNIT_EXPECT_GE(test, value.count, least);
	/* Each overflow took at least one period. */
	KUNIT_EXPECT_GE(test, value.count, 30000ULL * storm->nr);
}

static void note_overflow(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct storm *storm = data;

	storm->nr++;
	storm->nmis += !!in_nmi();
}

static void overflow_takes_a_period(struct kunit *test)
{
	struct storm *storm = pmuk_test_zalloc(test, sizeof(*storm));
	struct pmuk_counter *c;
	u64 count;

	c = new_storm(test, storm, &cycles, 1000000, note_overflow);
	KUNIT_EXPECT_TRUE(test, pmuk_test_spin_until(READ_ONCE(storm->nr) >= 100));
	KUNIT_EXPECT_EQ(test, pmuk_counter_pause(c), 0);
	count = pmuk_test_local(test, c);
	/*
	 * A virtual CPU that has to wait misses some overflows: the PMU interrupts only once for
	 * them.
	 */
	KUNIT_EXPECT_LE(test, storm->nr, div64_u64(count, 1000000));
}

static void pause_stops_the_pmu(struct kunit *test)
{
	struct pmuk_counter *c = pmuk_test_here(test, &cycles);
	u64 paused, resumed;
	unsigned int i;

	for (i = 0; i < 100; i++) {
		KUNIT_ASSERT_EQ(test, pmuk_counter_pause(c), 0);
		paused = pmuk_test_local(test, c);
		pmuk_test_spin(10 * NSEC_PER_USEC);
		KUNIT_ASSERT_EQ(test, pmuk_test_local(test, c), paused);
		KUNIT_ASSERT_EQ(test, pmuk_counter_resume(c), 0);
		pmuk_test_spin(10 * NSEC_PER_USEC);
		resumed = pmuk_test_local(test, c);
		KUNIT_ASSERT_GT(test, resumed, paused);
	}
}

struct victim {
	u64 magic;
	struct pmuk_hw_pace pace;
	struct completion done;
	unsigned int nr, late;
	unsigned int last;		/* number of the overflow that ends the counter */
	bool suicide;
};

static void strike(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct victim *victim = data;

	pmuk_hw_keep_pace(&victim->pace, c, 0, 64);
	if (READ_ONCE(victim->magic) != PMUK_VICTIM_ALIVE)
		victim->late++;
	if (++victim->nr == victim->last && victim->suicide)
		pmuk_counter_destroy_deferred(c, &victim->done);
}

/*
 * The task destroys the counter, or an overflow does, perhaps before pmuk_counter_enable() returns.
 */
static void destroy_in_a_storm(struct kunit *test)
{
	struct pmuk_attr attr = cycles;
	struct victim *victim = pmuk_test_zalloc(test, sizeof(*victim));
	unsigned int i;

	attr.period = 10000;
	attr.overflow = strike;
	attr.data = victim;
	for (i = 0; i < 200; i++) {
		struct pmuk_counter *c;

		*victim = (struct victim) { .magic = PMUK_VICTIM_ALIVE, .pace.period = attr.period,
					    .suicide = i & 1, .last = i & 2 ? 1 : 3 };
		init_completion(&victim->done);
		c = pmuk_counter_create(&attr, raw_smp_processor_id(), NULL);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, c);
		pmuk_counter_enable(c);
		(void)pmuk_test_spin_until(READ_ONCE(victim->nr) >= victim->last);
		if (victim->suicide)
			wait_for_completion_timeout(&victim->done, 10 * HZ);
		else
			pmuk_counter_destroy(c);
		WRITE_ONCE(victim->magic, PMUK_VICTIM_DEAD);
		pmuk_test_spin(30 * NSEC_PER_USEC);
		KUNIT_ASSERT_GE(test, victim->nr, victim->last);
		KUNIT_ASSERT_EQ(test, victim->late, 0);
		KUNIT_ASSERT_EQ(test, pmuk_nr_counters(), 0);
	}
}

static const struct pmuk_attr sw_incr = PMUK_HW_MADE;

static void made_events_are_counted(struct kunit *test)
{
	struct pmuk_counter *c;
	unsigned int i;

	pmuk_hw_need_made_events(test);
	c = pmuk_test_enabled(test, &sw_incr, raw_smp_processor_id(), NULL);
	for (i = 1; i <= 1000; i++) {
		pmuk_hw_make_event();
		KUNIT_ASSERT_EQ(test, pmuk_test_local(test, c), i);
		if (i % 10)
			continue;
		KUNIT_ASSERT_EQ(test, pmuk_test_count(test, c), i);
		KUNIT_ASSERT_EQ(test, pmuk_test_local(test, c), i);
	}
}

/* Calls that stop and start the register neither lose nor invent an event. */
static void made_events_survive_anything(struct kunit *test)
{
	struct storm *storm = pmuk_test_zalloc(test, sizeof(*storm));
	struct pmuk_counter *c;
	unsigned int i;
	u64 total = 0;

	pmuk_hw_need_made_events(test);
	c = new_storm(test, storm, &sw_incr, 1000, note_overflow);
	for (i = 0; i < 2000; i++) {
		pmuk_hw_make_events(i % 17);
		total += i % 17;
		KUNIT_ASSERT_EQ(test, pmuk_test_local(test, c), total);
		switch (i % 5) {
		case 0:
			KUNIT_ASSERT_EQ(test, pmuk_counter_pause(c), 0);
			pmuk_hw_make_events(7);
			KUNIT_ASSERT_EQ(test, pmuk_test_local(test, c), total);
			KUNIT_ASSERT_EQ(test, pmuk_counter_resume(c), 0);
			break;
		case 1:
			KUNIT_ASSERT_EQ(test, pmuk_counter_disable(c), 0);
			pmuk_hw_make_events(7);
			KUNIT_ASSERT_EQ(test, pmuk_counter_enable(c), 0);
			break;
		case 2:
			KUNIT_ASSERT_EQ(test, pmuk_counter_set_period(c, 1 + i), 0);
			break;
		case 3:
			schedule_timeout_uninterruptible(i % 100 == 3);
			break;
		}
		KUNIT_ASSERT_EQ(test, pmuk_test_local(test, c), total);
	}
	KUNIT_EXPECT_GT(test, storm->nr, 0);
}

static void made_events_overflow(struct kunit *test)
{
	struct storm *storm = pmuk_test_zalloc(test, sizeof(*storm));
	struct pmuk_counter *c;
	unsigned int i;

	pmuk_hw_need_made_events(test);
	c = new_storm(test, storm, &sw_incr, 10, note_overflow);
	for (i = 1; i <= 1000; i++) {
		pmuk_hw_make_events(10);
		udelay(1);
		KUNIT_ASSERT_EQ(test, storm->nr, i);
		KUNIT_ASSERT_EQ(test, pmuk_test_local(test, c), i * 10);
	}
	KUNIT_EXPECT_EQ(test, storm->nmis, pmuk_hw_interrupts_as_nmi() ? storm->nr : 0);
}

struct watched {
	struct storm storm;
	struct pmuk_counter *c;
};

/*
 * Runs between any two instructions of the task, also in the middle of its reads and perf core's.
 */
static void watch(struct pmuk_counter *ticker, const struct pmuk_sample *sample, void *data)
{
	struct watched *w = data;
	u64 count;

	pmuk_hw_keep_pace(&w->storm.pace, ticker, READ_ONCE(w->storm.done), 8);
	w->storm.nr++;
	if (pmuk_counter_read_local(w->c, &count)) {
		w->storm.ret++;
		return;
	}
	if (count < READ_ONCE(w->storm.last_task) || count < w->storm.last_irq ||
	    count > READ_ONCE(w->storm.intent))
		w->storm.wrong++;
	w->storm.nmis += count >= READ_ONCE(w->storm.done);
	w->storm.last_irq = count;
}

/*
 * A counter overflows all the time. Its callback reads another counter, which the task uses
 * meanwhile. Each @read of the task is exact. So are the callback's reads, but for the few that
 * find perf core in the middle of an update.
 */
static void look_from_overflows(struct kunit *test,
				u64 (*read)(struct kunit *, struct pmuk_counter *))
{
	struct watched *w = pmuk_test_zalloc(test, sizeof(*w));
	struct pmuk_attr attr = sw_incr, tick = cycles;
	struct pmuk_test_progress progress = {};
	int cpu = raw_smp_processor_id();
	struct storm *storm = &w->storm;
	struct pmuk_counter *ticker;
	u64 count;

	pmuk_hw_need_made_events(test);
	pmuk_hw_need_sound_registers(test);
	attr.period = 37;
	w->c = pmuk_test_enabled(test, &attr, cpu, NULL);
	tick.period = 30000;
	tick.random_mask = 0xfff;
	tick.overflow = watch;
	tick.data = w;
	storm->pace.period = tick.period;
	ticker = pmuk_test_enabled(test, &tick, cpu, NULL);

	while ((storm->done < 20000 || READ_ONCE(storm->nr) < 2000) &&
	       pmuk_test_goes_on(&progress, storm_size(storm->done, storm))) {
		WRITE_ONCE(storm->intent, storm->intent + 1);
		pmuk_hw_make_event();
		WRITE_ONCE(storm->done, storm->intent);
		/* From here on the callback must not find less, whatever the task is doing. */
		WRITE_ONCE(storm->last_task, pmuk_test_local(test, w->c));
		count = read(test, w->c);
		KUNIT_ASSERT_EQ(test, count, storm->done);
	}
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(ticker), 0);
	KUNIT_EXPECT_EQ(test, storm->wrong, 0);
	KUNIT_EXPECT_EQ(test, storm->ret, 0);
	KUNIT_EXPECT_GE(test, storm->nr, 2000);
	KUNIT_EXPECT_GE(test, storm->done, 20000);
	KUNIT_EXPECT_GE(test, storm->nmis, storm->nr - storm->nr / 10);
	kunit_info(test, "%u looks, %u exact", storm->nr, storm->nmis);
}

static void made_events_read_among_overflows(struct kunit *test)
{
	look_from_overflows(test, pmuk_test_local);
}

static void made_events_fully_read_among_overflows(struct kunit *test)
{
	look_from_overflows(test, pmuk_test_count);
}

static void made_events_migrate(struct kunit *test)
{
	int cpu = raw_smp_processor_id();
	struct pmuk_counter *c;
	unsigned int i;

	pmuk_hw_need_made_events(test);
	pmuk_test_other_cpu(test, cpu);
	c = pmuk_test_enabled(test, &sw_incr, -1, current);
	for (i = 1; i <= 500; i++) {
		pmuk_hw_make_events(5);
		cpu = pmuk_test_pin(test, pmuk_test_next_cpu(cpu));
		pmuk_hw_make_events(5);
		KUNIT_ASSERT_EQ(test, pmuk_test_local(test, c), i * 10);
	}
}

/* The PMU takes as many pinned counters as it has registers, and not one more. */
static void pmu_gets_full(struct kunit *test)
{
	struct pmuk_attr attr = sw_incr;
	struct pmuk_counter *c[33];
	unsigned int nr, i, active = 0;
	int ret;

	pmuk_hw_need_made_events(test);
	attr.flags |= PMUK_PINNED | PMUK_PRIVATE;
	for (nr = 0; nr < ARRAY_SIZE(c); nr++) {
		c[nr] = pmuk_counter_create(&attr, raw_smp_processor_id(), NULL);
		if (IS_ERR(c[nr]))
			break;
		KUNIT_EXPECT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_put_counter,
								c[nr]), 0);
		KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c[nr]), 0);
	}
	KUNIT_ASSERT_LT(test, nr, ARRAY_SIZE(c));
	KUNIT_ASSERT_GT(test, nr, 0);
	KUNIT_EXPECT_EQ(test, PTR_ERR(c[nr]), -ENOSPC);
	pmuk_hw_make_events(100);
	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_EQ(test, pmuk_test_local(test, c[i]), 100);
	kunit_info(test, "%u counters", nr);

	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c[0]), 0);
	c[nr] = pmuk_test_enabled(test, &attr, raw_smp_processor_id(), NULL);
	pmuk_hw_make_events(10);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, c[nr]), 10);

	/* Now there is one counter too many. perf core chooses the counter that finds no room. */
	ret = pmuk_counter_enable(c[0]);
	KUNIT_EXPECT_EQ(test, ret, pmuk_counter_state(c[0]) == PMUK_COUNTER_ERROR ? -ENOSPC : 0);
	for (i = 0; i <= nr; i++)
		active += pmuk_counter_state(c[i]) == PMUK_COUNTER_ACTIVE;
	KUNIT_EXPECT_EQ(test, active, nr);
}

/*
 * x86 may count branches with a period of 1 by BTS, which has no register to read. A counter that
 * has a register keeps it: the driver refuses a new period with which it would use BTS.
 */
static void period_of_one_is_in_no_register(struct kunit *test)
{
	struct pmuk_attr attr = PMUK_HW_CYCLES;
	int cpu = raw_smp_processor_id();
	struct pmuk_counter *c;
	u64 mask;

	attr.period = 1000;
	c = pmuk_test_counter(test, &attr, cpu, NULL);
	if (!c->mask)
		kunit_skip(test, "registers of this PMU are not read directly");
	mask = c->mask;
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(c, 1), 0);
	KUNIT_EXPECT_EQ(test, c->mask, mask);

	attr.period = 1;
	c = pmuk_test_counter(test, &attr, cpu, NULL);
	KUNIT_EXPECT_EQ(test, c->mask, 0);
}

/* A counter whose period the driver may refuse has an event of its own, so the driver decides. */
static void refused_period_is_not_shared(struct kunit *test)
{
	struct pmuk_attr attr = PMUK_HW_CYCLES;
	int cpu = raw_smp_processor_id();
	struct pmuk_counter *c = pmuk_test_counter(test, &attr, cpu, NULL);

	pmuk_hw_picky_begin(test, c->event->pmu);
	attr.flags |= PMUK_PINNED;
	attr.period = PMUK_HW_PICKY;
	c = pmuk_test_counter(test, &attr, cpu, NULL);
	KUNIT_EXPECT_PTR_NE(test, c->event, c->hw_event);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(c, PMUK_HW_PICKY - 1), -EINVAL);
	attr.period = PMUK_HW_PICKY - 1;
	c = pmuk_test_counter(test, &attr, cpu, NULL);
	KUNIT_EXPECT_PTR_EQ(test, c->event, c->hw_event);
}

/*
 * A preemptible task may move to a CPU with other registers during a direct read, see
 * steps_migrate() in pmuk_counter_steps_kunit.c. So preemptible tasks do not read directly.
 */
static void preemptible_readers_are_barred(struct kunit *test)
{
	const struct pmuk_attr attr = PMUK_HW_CYCLES;
	struct pmuk_counter *c = pmuk_test_counter(test, &attr, -1, current);

	if (!c->mask)
		kunit_skip(test, "registers of this PMU are not read directly");
	KUNIT_EXPECT_EQ(test, c->bar, IS_ENABLED(CONFIG_PREEMPT_COUNT));
	c = pmuk_test_counter(test, &attr, raw_smp_processor_id(), NULL);
	KUNIT_EXPECT_EQ(test, c->bar, 0);
}

static struct kunit_case pmuk_counter_hw_cases[] = {
	KUNIT_CASE_SLOW(cycles_agree_with_the_clock),
	KUNIT_CASE(reads_agree),
	KUNIT_CASE_SLOW(reads_grow_in_a_storm),
	KUNIT_CASE(overflow_takes_a_period),
	KUNIT_CASE(periods_meet_the_frequency),
	KUNIT_CASE(pause_stops_the_pmu),
	KUNIT_CASE(destroy_in_a_storm),
	KUNIT_CASE(made_events_are_counted),
	KUNIT_CASE_SLOW(made_events_survive_anything),
	KUNIT_CASE(made_events_overflow),
	KUNIT_CASE(made_events_read_among_overflows),
	KUNIT_CASE(made_events_fully_read_among_overflows),
	KUNIT_CASE(made_events_migrate),
	KUNIT_CASE(pmu_gets_full),
	KUNIT_CASE(period_of_one_is_in_no_register),
	KUNIT_CASE(refused_period_is_not_shared),
	KUNIT_CASE(preemptible_readers_are_barred),
	{}
};

PMUK_SUITE(pmuk_counter_hw, pmuk_hw_init, "KUnit tests of pmuk's counters on the machine's PMU");
