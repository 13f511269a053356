// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check that counts are exact. On a simulated PMU, every way to read a counter gives what
 * the PMU itself has counted, whatever happens to the counter in between.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/perf_local_core.h>
#include <linux/prandom.h>
#include <linux/sched/clock.h>

#include "pmuk_counters.h"
#include "pmuk_suite.h"

static struct pmuk_attr sim_attr(const struct pmuk_sim *sim, u64 config)
{
	return (struct pmuk_attr) { .type = pmuk_sim_type(sim), .config = config };
}

static struct pmuk_counter *sim_enabled(struct kunit *test, const struct pmuk_sim *sim,
					u64 config, int cpu)
{
	struct pmuk_attr attr = sim_attr(sim, config);

	return pmuk_test_enabled(test, &attr, cpu, NULL);
}

/* Holds a PMU, and a counter of event 0 on the test's CPU. */
struct rig {
	struct pmuk_sim *sim;
	struct pmuk_attr attr;		/* attributes of the counter */
	struct pmuk_counter *c;
	int cpu;
};

/* Returns a rig whose counter is still to be created. */
static struct rig bare_rig(struct kunit *test, struct pmuk_sim *sim, u32 flags)
{
	struct rig r = { .sim = sim, .attr = sim_attr(sim, 0), .cpu = pmuk_test_pin_first(test) };

	r.attr.flags = flags;
	return r;
}

static struct pmuk_counter *rig_counter(struct kunit *test, const struct rig *r)
{
	return pmuk_test_counter(test, &r->attr, r->cpu, NULL);
}

static struct pmuk_counter *rig_enabled(struct kunit *test, const struct rig *r)
{
	return pmuk_test_enabled(test, &r->attr, r->cpu, NULL);
}

/* Returns a rig whose counter is enabled. */
static struct rig new_rig(struct kunit *test, unsigned int nr_counters, unsigned int width,
			  u32 flags)
{
	struct rig r = bare_rig(test, pmuk_test_sim(test, nr_counters, width), flags);

	r.c = rig_enabled(test, &r);
	return r;
}

static const struct pmuk_test_value widths[] = {
	{ "16 bits", 16 }, { "32 bits", 32 }, { "48 bits", 48 },
};

KUNIT_ARRAY_PARAM_DESC(widths, widths, name);

/* Steps cross the register's top several times. Some steps end exactly there. */
static void count_is_exact_over_wraps(struct kunit *test)
{
	unsigned int width = pmuk_test_param(test);
	struct rig r = new_rig(test, 1, width, 0);
	u64 step[] = { 1, 1000, BIT_ULL(width - 1) - 1, BIT_ULL(width - 1), BIT_ULL(width), 12345 };
	u64 total = 0;
	unsigned int i;

	for (i = 0; i < 10 * ARRAY_SIZE(step); i++) {
		u64 n = step[i % ARRAY_SIZE(step)];

		KUNIT_ASSERT_EQ(test, pmuk_sim_count(r.sim, 0, n), n);
		total += n;
		pmuk_test_expect_count(test, r.c, total);
	}
	KUNIT_EXPECT_GE(test, total, 10 * BIT_ULL(width));
	KUNIT_EXPECT_EQ(test, pmuk_sim_counted(r.sim, 0), total);
}

/* The register has wrapped, and its interrupt is still pending. */
static void count_is_exact_before_the_interrupt(struct kunit *test)
{
	struct rig r = new_rig(test, 1, 16, 0);
	unsigned int i;
	u64 total = 0;

	for (i = 0; i < 1000; i++) {
		total += pmuk_sim_advance(r.sim, 0, 20011);
		KUNIT_ASSERT_EQ(test, pmuk_test_local(test, r.c), total);
		if (i % 3 == 0)
			continue;
		pmuk_sim_interrupt(r.sim);
		KUNIT_ASSERT_EQ(test, pmuk_test_local(test, r.c), total);
	}
	KUNIT_EXPECT_EQ(test, total, 1000 * 20011);
	KUNIT_EXPECT_EQ(test, pmuk_test_count(test, r.c), total);
}

static void counters_do_not_mix(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 3, 32);
	struct pmuk_counter *zero, *one, *one_again;
	int cpu = pmuk_test_pin_first(test);
	unsigned int i;

	zero = sim_enabled(test, sim, 0, cpu);
	one = sim_enabled(test, sim, 1, cpu);
	one_again = sim_enabled(test, sim, 1, cpu);
	for (i = 0; i < 100; i++) {
		pmuk_sim_count(sim, 0, 3);
		pmuk_sim_count(sim, 1, 5);
		pmuk_sim_count(sim, 2, 7);
	}
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, zero), 300);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, one), 500);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, one_again), 500);
}

/* A counter gives the same count on its own CPU and on others. */
static void cpus_do_not_mix(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_counter **c;
	int cpu, on;

	c = pmuk_test_zalloc(test, nr_cpu_ids * sizeof(*c));
	for_each_online_cpu(cpu)
		c[cpu] = sim_enabled(test, sim, 0, cpu);
	for_each_online_cpu(cpu)
		KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(sim, cpu, 0, 1000 + cpu), 1000 + cpu);

	for_each_online_cpu(on) {
		pmuk_test_pin(test, on);
		KUNIT_EXPECT_EQ(test, pmuk_test_local(test, c[on]), 1000 + on);
		for_each_online_cpu(cpu)
			KUNIT_EXPECT_EQ(test, pmuk_test_count(test, c[cpu]), 1000 + cpu);
	}
}

static void disable_keeps_the_count(struct kunit *test)
{
	struct rig r = new_rig(test, 1, 16, 0);
	unsigned int i;

	for (i = 1; i <= 100; i++) {
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(r.sim, 0, 1001), 1001);
		KUNIT_EXPECT_EQ(test, pmuk_counter_disable(r.c), 0);
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(r.sim, 0, 1001), 0);
		KUNIT_ASSERT_EQ(test, pmuk_test_count(test, r.c), i * 1001);
		KUNIT_EXPECT_EQ(test, pmuk_counter_enable(r.c), 0);
		KUNIT_ASSERT_EQ(test, pmuk_test_local(test, r.c), i * 1001);
	}
}

static void pause_stops_the_pmu(struct kunit *test)
{
	struct rig r = new_rig(test, 1, 16, 0);
	unsigned int i;

	for (i = 1; i <= 100; i++) {
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(r.sim, 0, 999), 999);
		KUNIT_EXPECT_EQ(test, pmuk_counter_pause(r.c), 0);
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(r.sim, 0, 999), 0);
		pmuk_test_expect_count(test, r.c, i * 999);
		KUNIT_ASSERT_EQ(test, pmuk_test_snapshot(test, r.c), i * 999);
		KUNIT_EXPECT_EQ(test, pmuk_counter_resume(r.c), 0);
		KUNIT_ASSERT_EQ(test, pmuk_test_local(test, r.c), i * 999);
	}
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(r.sim, 0, 1), 1);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, r.c), 100 * 999 + 1);
}

/*
 * perf core restarts the register of a paused counter when it reschedules. The counter does not
 * count that.
 */
static void pause_lasts_over_rescheduling(struct kunit *test)
{
	struct rig r = new_rig(test, 1, 16, 0);
	u64 hidden = 0, total = 0;
	unsigned int i;

	for (i = 0; i < 20; i++) {
		total += pmuk_sim_count(r.sim, 0, 100);
		KUNIT_EXPECT_EQ(test, pmuk_counter_pause(r.c), 0);
		KUNIT_EXPECT_EQ(test, pmuk_sim_steal(r.sim, r.cpu, 0), 0);
		hidden += pmuk_sim_count(r.sim, 0, 77);
		pmuk_test_expect_count(test, r.c, total);
		KUNIT_EXPECT_EQ(test, pmuk_counter_resume(r.c), 0);
		pmuk_test_expect_count(test, r.c, total);
	}
	KUNIT_EXPECT_EQ(test, total, 20 * 100);
	KUNIT_EXPECT_EQ(test, hidden, 20 * 77);
}

/* A pause goes on while the counter is off the PMU, and may begin and end there. */
static void pause_lasts_over_disabling(struct kunit *test)
{
	struct rig r = new_rig(test, 1, 16, 0);

	pmuk_sim_count(r.sim, 0, 10);
	KUNIT_EXPECT_EQ(test, pmuk_counter_pause(r.c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(r.c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(r.c), 0);
	pmuk_sim_count(r.sim, 0, 5);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, r.c), 10);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(r.c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_resume(r.c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_count(test, r.c), 10);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(r.c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(r.sim, 0, 3), 3);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, r.c), 13);

	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(r.c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_pause(r.c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(r.c), 0);
	pmuk_sim_count(r.sim, 0, 5);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, r.c), 13);
	KUNIT_EXPECT_EQ(test, pmuk_counter_resume(r.c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(r.sim, 0, 4), 4);
	KUNIT_EXPECT_EQ(test, pmuk_test_count(test, r.c), 17);
}

/* Calls and events come in random order. A single number says what the count must be. */
static void count_survives_anything(struct kunit *test)
{
	static int (*const calls[])(struct pmuk_counter *c) = {
		pmuk_counter_pause, pmuk_counter_resume, pmuk_counter_disable, pmuk_counter_enable,
	};
	struct rig r = bare_rig(test, pmuk_test_sim(test, 1, 12), 0);
	bool enabled = true, paused = false;
	unsigned int did[8] = {}, i;
	struct rnd_state rnd;
	u64 n, model = 0;

	r.attr.period = 700;
	r.c = rig_enabled(test, &r);
	prandom_seed_state(&rnd, 4711);
	for (i = 0; i < 4000; i++) {
		unsigned int what = prandom_u32_state(&rnd) % ARRAY_SIZE(did);

		did[what]++;
		if (what < ARRAY_SIZE(calls)) {
			KUNIT_ASSERT_EQ(test, calls[what](r.c), 0);
			paused = what < 2 ? what == 0 : paused;
			enabled = what < 2 ? enabled : what == 3;
		} else if (what == 4) {
			n = 1 + prandom_u32_state(&rnd) % 10000;
			KUNIT_ASSERT_EQ(test, pmuk_counter_set_period(r.c, n), 0);
		} else if (what == 5) {
			KUNIT_ASSERT_EQ(test, pmuk_sim_steal(r.sim, r.cpu, 0), 0);
		} else {
			n = pmuk_sim_count(r.sim, 0, prandom_u32_state(&rnd) % 3000);
			model += paused ? 0 : n;
		}
		KUNIT_ASSERT_EQ(test, pmuk_test_count(test, r.c), model);
		if (enabled)
			KUNIT_ASSERT_EQ(test, pmuk_test_local(test, r.c), model);
	}
	for (i = 0; i < ARRAY_SIZE(did); i++)
		KUNIT_EXPECT_GT(test, did[i], 300);
	KUNIT_EXPECT_GT(test, model, 100000);
}

/*
 * There are more counters than registers. The counters take turns, and their times account for each
 * turn.
 */
static void multiplexed_value_says_so(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	unsigned int waited[2] = {}, ran[2] = {}, i;
	struct pmuk_test_progress progress = {};
	struct pmuk_counter *c[2];
	struct pmuk_value value;
	u64 count, running = 0;
	int cpu = pmuk_test_pin_first(test);

	for (i = 0; i < 2; i++)
		c[i] = sim_enabled(test, sim, i, cpu);

	while (min(ran[0], ran[1]) < 20 && pmuk_test_goes_on(&progress, min(ran[0], ran[1]))) {
		usleep_range(200, 400);
		for (i = 0; i < 2; i++) {
			int ret, state;

			pmuk_sim_count(sim, i, 10);
			local_irq_disable();
			ret = pmuk_counter_read_local(c[i], &count);
			state = pmuk_counter_state(c[i]);
			local_irq_enable();
			KUNIT_ASSERT_EQ(test, ret, state == PMUK_COUNTER_ACTIVE ? 0 : -EBUSY);
			if (!ret) {
				KUNIT_ASSERT_EQ(test, count, pmuk_sim_counted(sim, i));
				ran[i]++;
			} else {
				KUNIT_ASSERT_EQ(test, state, PMUK_COUNTER_WAITING);
				waited[i]++;
			}
		}
	}
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_GE(test, ran[i], 20);
		KUNIT_EXPECT_GT(test, waited[i], 0);
		KUNIT_EXPECT_EQ(test, pmuk_counter_read(c[i], &value), 0);
		KUNIT_EXPECT_EQ(test, value.count, pmuk_sim_counted(sim, i));
		KUNIT_EXPECT_GT(test, value.count, 0);
		KUNIT_EXPECT_GT(test, value.time_running, 0);
		KUNIT_EXPECT_LT(test, value.time_running, value.time_enabled);
		running += value.time_running;
	}
	/*
	 * There is one register, so the running times add up to the whole time, but for the
	 * switches.
	 */
	KUNIT_EXPECT_LE(test, running, value.time_enabled + value.time_enabled / 4);
	KUNIT_EXPECT_GE(test, running, value.time_enabled / 2);
}

static void times_are_true(struct kunit *test)
{
	struct rig r = bare_rig(test, pmuk_test_sim(test, 1, 32), PMUK_PINNED);
	struct pmuk_counter *c = rig_counter(test, &r);
	struct pmuk_value value, local;
	u64 before, outer, inner, after, count;

	KUNIT_EXPECT_EQ(test, pmuk_counter_read(c, &value), 0);
	KUNIT_EXPECT_EQ(test, value.count, 0);
	KUNIT_EXPECT_EQ(test, value.time_enabled, 0);
	KUNIT_EXPECT_EQ(test, value.time_running, 0);

	outer = local_clock();
	KUNIT_ASSERT_EQ(test, pmuk_counter_enable(c), 0);
	before = local_clock();
	mdelay(10);
	inner = local_clock() - before;
	/* The first read in a tick publishes. */
	KUNIT_EXPECT_EQ(test, pmuk_counter_read_local(c, &count), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_snapshot(c, &local), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_read(c, &value), 0);
	after = local_clock();

	KUNIT_EXPECT_EQ(test, value.time_enabled, value.time_running);
	KUNIT_EXPECT_GE(test, value.time_enabled, inner);
	KUNIT_EXPECT_LE(test, value.time_enabled, after - outer);
	KUNIT_EXPECT_EQ(test, value.age, 0);
	KUNIT_EXPECT_EQ(test, local.time_enabled, local.time_running);
	KUNIT_EXPECT_GE(test, local.time_enabled, inner);
	KUNIT_EXPECT_LE(test, local.time_enabled, value.time_enabled);
	KUNIT_EXPECT_LE(test, local.age, after - before);
}

#ifdef CONFIG_PERF_GUEST_MEDIATED_PMU

static struct pmuk_sim *mediated_sim(struct kunit *test, unsigned int nr_counters)
{
	return pmuk_test_sim_config(test, &(struct pmuk_sim_config){
		.name = "pmuk_mediated", .nr_counters = nr_counters, .width = 32,
		.capabilities = PERF_PMU_CAP_MEDIATED_VPMU });
}

/* KVM calls this around a vCPU that has the PMU for itself. */
static void run_guest(u64 ns)
{
	guard(irqsave)();
	perf_load_guest_context();
	pmuk_test_spin(ns);
	perf_put_guest_context();
}

/*
 * A counter that excludes guests stands still while a guest has the PMU, and so do its times. The
 * published times lie between those of two full reads, before and after.
 */
static void times_stand_still_in_guests(struct kunit *test)
{
	struct rig r = bare_rig(test, mediated_sim(test, 1), PMUK_EXCLUDE_GUEST);
	struct pmuk_counter *c = rig_enabled(test, &r);
	struct pmuk_value before, local, after;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		run_guest(5 * NSEC_PER_MSEC);
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(r.sim, 0, 10), 10);
		schedule_timeout_uninterruptible(2);	/* the first read in a tick publishes */
		KUNIT_ASSERT_EQ(test, pmuk_counter_read(c, &before), 0);
		KUNIT_EXPECT_EQ(test, pmuk_test_local(test, c), 10 * (i + 1));
		KUNIT_ASSERT_EQ(test, pmuk_counter_snapshot(c, &local), 0);
		KUNIT_ASSERT_EQ(test, pmuk_counter_read(c, &after), 0);
		KUNIT_EXPECT_GE(test, local.time_enabled, before.time_enabled);
		KUNIT_EXPECT_LE(test, local.time_enabled, after.time_enabled);
		KUNIT_EXPECT_GE(test, local.time_running, before.time_running);
		KUNIT_EXPECT_LE(test, local.time_running, after.time_running);
	}
}

#if IS_BUILTIN(CONFIG_PMU_KAPI_KUNIT_TEST)	/* modules other than KVM create no guests */

/* Expects that an event of perf's own that counts guests can be created, or is refused. */
static void expect_event(struct kunit *test, const struct rig *r, int expected)
{
	struct perf_event_attr attr = { .type = r->attr.type, .size = sizeof(attr), .disabled = 1 };
	struct perf_event *event;

	event = perf_event_create_kernel_counter(&attr, r->cpu, NULL, NULL, NULL);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(event), expected);
	if (!IS_ERR(event))
		perf_event_release_kernel(event);
}

static const u32 guest_flags[] = { 0, PMUK_PINNED | PMUK_PRIVATE, PMUK_PINNED };

static void enable_guest_counters(struct kunit *test, struct rig *r, struct pmuk_counter **c)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(guest_flags); i++) {
		r->attr.flags = guest_flags[i];
		c[i] = rig_enabled(test, r);
	}
}

/* Expects that the counter missed what the PMU counted for a guest, and says so. */
static void expect_missed_guest(struct kunit *test, struct pmuk_counter *c)
{
	struct pmuk_value before, after;
	u64 enabled, running;

	KUNIT_EXPECT_EQ(test, pmuk_counter_read(c, &before), 0);
	run_guest(5 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, pmuk_counter_read(c, &after), 0);
	enabled = after.time_enabled - before.time_enabled;
	running = after.time_running - before.time_running;
	KUNIT_EXPECT_GE(test, enabled, running + 5 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, after.count, before.count);
}

static void end_guests(void *unused)
{
	perf_release_mediated_pmu();
}

/*
 * A counter that counts guests keeps no guest away, and can be created while there are guests. perf
 * core refuses other events as ever.
 */
static void counters_yield_to_guests(struct kunit *test)
{
	struct pmuk_counter *c[2 * ARRAY_SIZE(guest_flags)];
	struct rig r = bare_rig(test, mediated_sim(test, ARRAY_SIZE(c)), 0);
	unsigned int i;

	expect_event(test, &r, 0);
	enable_guest_counters(test, &r, c);
	KUNIT_ASSERT_EQ(test, perf_create_mediated_pmu(), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, end_guests, NULL), 0);
	expect_event(test, &r, -EOPNOTSUPP);
	enable_guest_counters(test, &r, c + ARRAY_SIZE(guest_flags));
	for (i = 0; i < ARRAY_SIZE(c); i++)
		expect_missed_guest(test, c[i]);
	pmuk_sim_count(r.sim, 0, 10);
	for (i = 0; i < ARRAY_SIZE(c); i++)
		pmuk_test_expect_count(test, c[i], 10);
}

#else

static void counters_yield_to_guests(struct kunit *test)
{
	kunit_skip(test, "modules cannot create guests that have the PMU for themselves");
}

#endif

#else /* !CONFIG_PERF_GUEST_MEDIATED_PMU */

static void times_stand_still_in_guests(struct kunit *test)
{
	kunit_skip(test, "guests of this kernel do not have the PMU for themselves");
}

static void counters_yield_to_guests(struct kunit *test)
{
	kunit_skip(test, "guests of this kernel do not have the PMU for themselves");
}

#endif /* CONFIG_PERF_GUEST_MEDIATED_PMU */

static const struct pmuk_test_value without_interrupts[] = {
	{ "private", PMUK_PINNED | PMUK_PRIVATE }, { "shared", PMUK_PINNED }, { "flexible", 0 },
};

KUNIT_ARRAY_PARAM_DESC(without_interrupts, without_interrupts, name);

/* perf_event_open(2) refuses a period, too, on a PMU that never interrupts. */
static void periods_need_interrupts(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim_config(test, &(struct pmuk_sim_config){
		.name = "pmuk_mute", .nr_counters = 1, .width = 32,
		.capabilities = PERF_PMU_CAP_NO_INTERRUPT });
	struct rig r = bare_rig(test, sim, pmuk_test_param(test));

	r.attr.period = 1000;
	pmuk_test_refused(test, &r.attr, r.cpu, NULL, -EOPNOTSUPP, "a period");
	r.attr.period = 0;
	rig_enabled(test, &r);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
}

static void pinned_refused_when_full(struct kunit *test)
{
	struct rig r = new_rig(test, 1, 32, PMUK_PINNED | PMUK_PRIVATE);

	pmuk_sim_count(r.sim, 0, 5);
	pmuk_test_refused(test, &r.attr, r.cpu, NULL, -ENOSPC, "one more");
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 1);
	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(r.sim), 1);

	/* The first counter counts on. */
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(r.c), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(r.sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, r.c), 10);
}

static void pinned_refused_at_enable(struct kunit *test)
{
	struct rig r = bare_rig(test, pmuk_test_sim(test, 1, 32), PMUK_PINNED | PMUK_PRIVATE);
	struct pmuk_counter *first = rig_counter(test, &r), *second = rig_counter(test, &r);

	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(first), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(second), -ENOSPC);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(second), PMUK_COUNTER_ERROR);
	pmuk_test_expect_no_local(test, second, -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(second), -ENOSPC);

	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(first), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(second), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(second), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(r.sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, second), 5);
}

/* Enables a counter while the driver is asked for the second event: that of the trial. */
struct intruder {
	struct pmuk_attr attr;
	int cpu;
	unsigned int events;
	struct pmuk_counter *c;
	int ret;
};

static int intrude(const struct perf_event_attr *attr, void *data)
{
	struct intruder *in = data;

	if (in->events++ == 1) {
		in->c = pmuk_counter_create(&in->attr, in->cpu, NULL);
		in->ret = PTR_ERR_OR_ZERO(in->c) ?: pmuk_counter_enable(in->c);
	}
	return 0;
}

/* A counter that is enabled between the creation and the trial of another keeps its register. */
static void trial_pushes_no_counter_out(struct kunit *test)
{
	struct intruder *in = pmuk_test_zalloc(test, sizeof(*in));
	struct pmuk_sim *sim = pmuk_test_sim_config(test, &(struct pmuk_sim_config){
		.name = "pmuk_sim", .nr_counters = 1, .width = 32, .event_init = intrude,
		.data = in });

	in->attr = (struct pmuk_attr){ .type = pmuk_sim_type(sim),
				       .flags = PMUK_PINNED | PMUK_PRIVATE };
	in->cpu = pmuk_test_pin_first(test);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(pmuk_counter_create(&in->attr, in->cpu, NULL)),
			-ENOSPC);
	KUNIT_EXPECT_EQ(test, in->ret, 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(in->c), PMUK_COUNTER_ACTIVE);
	pmuk_counter_destroy(in->c);
}

/*
 * perf core places a CPU's pinned events before a task's. So enabling a counter may push a task's
 * event off the PMU. The try at creation does not.
 */
static void trial_pushes_no_task_out(struct kunit *test)
{
	struct rig r = bare_rig(test, pmuk_test_sim(test, 1, 32), PMUK_PINNED);
	struct perf_event *event = pmuk_test_pinned_event(test, r.sim, 1);
	struct pmuk_counter *c;

	KUNIT_ASSERT_EQ(test, event->state, PERF_EVENT_STATE_ACTIVE);
	c = rig_counter(test, &r);
	KUNIT_EXPECT_EQ(test, event->state, PERF_EVENT_STATE_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(r.sim, 1, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, event->state, PERF_EVENT_STATE_ERROR);
}

/*
 * perf_events_enable() may place an event without rescheduling its PMU. It must not if perf core
 * has not linked the task's events of that PMU to the CPU: a trial finds the task's events by that
 * link. The link is missing here. The dummy event keeps the task's context active, and perf core
 * adds a disabled event to an active context without the link. perf core adds the link when the
 * task is scheduled in, so one round may prove nothing. The CPU needs an event, too: its first one
 * reschedules the PMU.
 */
static void trial_sees_events_enabled_together(struct kunit *test)
{
	struct perf_event_attr dummy = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(dummy),
					 .config = PERF_COUNT_SW_DUMMY };
	struct rig r = bare_rig(test, pmuk_test_sim(test, 1, 32), PMUK_PINNED);
	struct perf_event_attr attr = { .type = pmuk_sim_type(r.sim), .size = sizeof(attr),
					.config = 1, .pinned = 1, .disabled = 1 };
	struct perf_event *event;
	unsigned int i;

	pmuk_test_task_event(test, current, &dummy);
	rig_counter(test, &r);
	for (i = 0; i < 20; i++) {
		event = pmuk_test_task_event(test, current, &attr);
		perf_events_enable(&event, 1);
		KUNIT_ASSERT_EQ(test, event->state, PERF_EVENT_STATE_ACTIVE);
		rig_counter(test, &r);
		KUNIT_EXPECT_EQ(test, event->state, PERF_EVENT_STATE_ACTIVE);
		kunit_release_action(test, pmuk_test_put_event, event);
	}
}

/* Other events take all registers of the PMU while the pinned counter counts. */
static void pinned_pushed_out_says_so(struct kunit *test)
{
	struct rig r = new_rig(test, 2, 32, PMUK_PINNED);

	pmuk_sim_count(r.sim, 0, 100);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(r.sim, r.cpu, 2), 0);

	KUNIT_EXPECT_EQ(test, pmuk_counter_state(r.c), PMUK_COUNTER_ERROR);
	pmuk_test_expect_no_local(test, r.c, -EBUSY);
	pmuk_test_expect_value(test, r.c, -EBUSY, 100);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(r.c), -ENOSPC);

	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(r.sim, r.cpu, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(r.c), PMUK_COUNTER_ERROR);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(r.c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(r.c), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(r.sim, 0, 10), 10);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, r.c), 110);
}

/* A counter that is not pinned waits for a register, and its state and reads tell that. */
static void flexible_pushed_out_waits(struct kunit *test)
{
	struct rig r = new_rig(test, 1, 32, 0);

	pmuk_sim_count(r.sim, 0, 100);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(r.sim, r.cpu, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(r.c), PMUK_COUNTER_WAITING);
	pmuk_test_expect_no_local(test, r.c, -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_test_count(test, r.c), 100);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(r.sim, r.cpu, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(r.c), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, r.c), 100);
}

static void exclude_flags_reach_the_pmu(struct kunit *test)
{
	struct rig r = new_rig(test, 2, 32, PMUK_EXCLUDE_KERNEL);
	struct pmuk_counter *kernel;

	r.attr.flags = PMUK_EXCLUDE_USER | PMUK_EXCLUDE_IDLE | PMUK_EXCLUDE_HV | PMUK_EXCLUDE_GUEST;
	kernel = rig_enabled(test, &r);
	pmuk_sim_count(r.sim, 0, 5);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, r.c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, kernel), 5);
}

static void snapshot_is_what_was_read(struct kunit *test)
{
	struct rig r = new_rig(test, 1, 32, 0);
	struct pmuk_value value;
	unsigned int i;
	u64 earlier, before;
	unsigned long tick;

	KUNIT_EXPECT_EQ(test, pmuk_test_snapshot(test, r.c), 0);
	for (i = 1; i <= 5; i++) {
		pmuk_sim_count(r.sim, 0, 100);
		/* No read has published this step yet. */
		KUNIT_EXPECT_EQ(test, pmuk_test_snapshot(test, r.c), (i - 1) * 100);
		/* The first read in a tick publishes. */
		for (tick = jiffies; time_before(jiffies, tick + 2);)
			cpu_relax();
		before = local_clock();
		KUNIT_EXPECT_EQ(test, pmuk_test_local(test, r.c), i * 100);
		KUNIT_EXPECT_EQ(test, pmuk_counter_snapshot(r.c, &value), 0);
		KUNIT_EXPECT_EQ(test, value.count, i * 100);
		KUNIT_EXPECT_LE(test, value.age, local_clock() - before);
	}
	earlier = value.age;
	mdelay(1);
	KUNIT_EXPECT_EQ(test, pmuk_counter_snapshot(r.c, &value), 0);
	KUNIT_EXPECT_GE(test, value.age, earlier + 1000 * NSEC_PER_USEC);
}

static void snapshot_is_final_when_disabled(struct kunit *test)
{
	struct rig r = new_rig(test, 1, 32, 0);

	pmuk_sim_count(r.sim, 0, 123);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(r.c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_snapshot(test, r.c), 123);
}

struct deaf_cpu {
	struct pmuk_sim *sim;
	struct pmuk_counter *c;
	atomic_t deaf;
	atomic_t heard;
	bool done;
};

/* Keeps interrupts off until @d->done is set. Before that, counts and publishes. */
static int be_deaf(void *data)
{
	struct deaf_cpu *d = data;
	unsigned long flags;
	u64 count;

	local_irq_save(flags);
	pmuk_sim_count(d->sim, 0, 100);
	pmuk_counter_read_local(d->c, &count);
	atomic_set(&d->deaf, 1);
	while (!READ_ONCE(d->done))
		cpu_relax();
	atomic_set(&d->deaf, 0);
	local_irq_restore(flags);
	return pmuk_test_wait_for_stop();
}

static void hear(void *data)
{
	struct deaf_cpu *d = data;

	atomic_inc(&d->heard);
}

/* A snapshot does not need the counter's CPU to take an interrupt. */
static void snapshot_needs_no_interrupt(struct kunit *test)
{
	struct deaf_cpu d = { .sim = pmuk_test_sim(test, 1, 32) };
	call_single_data_t csd = CSD_INIT(hear, &d);
	int cpu = pmuk_test_pin_first(test);
	int other = pmuk_test_other_cpu(test, cpu);
	struct task_struct *task;
	struct pmuk_value value;
	int ret, i;

	d.c = sim_enabled(test, d.sim, 0, other);
	task = pmuk_test_thread(test, other, be_deaf, &d);
	while (!atomic_read(&d.deaf))
		cpu_relax();

	/* The CPU has interrupts off indeed: this IPI stays pending until they are on again. */
	smp_call_function_single_async(other, &csd);
	for (i = 0, ret = 0; i < 1000 && !ret; i++)
		ret = pmuk_counter_snapshot(d.c, &value);
	KUNIT_EXPECT_EQ(test, atomic_read(&d.heard), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&d.deaf), 1);
	WRITE_ONCE(d.done, true);
	kthread_stop(task);
	while (!atomic_read(&d.heard))
		cpu_relax();

	KUNIT_EXPECT_EQ(test, i, 1000);
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_EQ(test, value.count, 100);
}

struct snapshot_race {
	struct pmuk_sim *sim;
	struct pmuk_counter *c;
	struct pmuk_value last;		/* latest value that was read */
	unsigned int bad, changes, reads;
};

/*
 * A period is a number of whole steps, so the register wraps between two steps and never within
 * one.
 */
#define RACE_STEP	4096

static void publish(void *data)
{
	struct snapshot_race *race = data;
	u64 count;

	pmuk_sim_count(race->sim, 0, RACE_STEP);
	pmuk_counter_read_local(race->c, &count);
	pmuk_counter_pause(race->c);
	pmuk_counter_resume(race->c);
	/* An emulator that runs one CPU at a time may go on with another CPU here. */
	cpu_relax();
}

static struct pmuk_loop *start_race(struct kunit *test, struct snapshot_race *race,
				    unsigned int width)
{
	int other = pmuk_test_other_cpu(test, pmuk_test_pin_first(test));
	struct pmuk_attr attr;

	race->sim = pmuk_test_sim(test, 1, width);
	attr = sim_attr(race->sim, 0);
	attr.period = 4 * RACE_STEP;
	race->c = pmuk_test_enabled(test, &attr, other, NULL);
	return pmuk_loop_start(test, other, publish, race);
}

/* Compares a value with the one that was read before it. */
static void look_at(struct snapshot_race *race, int ret, const struct pmuk_value *value)
{
	race->bad += ret || value->count % RACE_STEP || value->count < race->last.count ||
		     value->time_running < race->last.time_running;
	race->changes += value->count != race->last.count;
	race->last = *value;
	race->reads++;
}

/* Snapshots from another CPU never mix two values, and never go back. */
static void snapshot_is_whole(struct kunit *test)
{
	struct snapshot_race race = {};
	struct pmuk_loop *loop = start_race(test, &race, 32);
	struct pmuk_test_progress progress = {};
	struct pmuk_value value;
	unsigned int partial = 0;

	while (race.changes < 1000 && pmuk_test_goes_on(&progress, race.changes)) {
		look_at(&race, pmuk_counter_snapshot(race.c, &value), &value);
		partial += value.time_running > value.time_enabled;
	}
	pmuk_loop_stop(test, loop);
	KUNIT_EXPECT_EQ(test, race.bad, 0);
	KUNIT_EXPECT_EQ(test, partial, 0);
	KUNIT_EXPECT_GE(test, race.changes, 1000);
	KUNIT_EXPECT_GE(test, loop->turns, 1000);
	kunit_info(test, "%u snapshots of %u", race.reads, loop->turns);
}

/*
 * A read that interrupts the owner gets one value, too, whatever the owner is doing. An emulator
 * that runs one CPU at a time may deliver an interrupt to the other CPU half a second late. So
 * fewer reads than above will do.
 */
static void remote_read_is_whole(struct kunit *test)
{
	struct snapshot_race race = {};
	struct pmuk_loop *loop = start_race(test, &race, 16);
	struct pmuk_test_progress progress = {};
	struct pmuk_value value;

	while (race.changes < 300 && pmuk_test_goes_on(&progress, race.changes))
		look_at(&race, pmuk_counter_read(race.c, &value), &value);
	pmuk_loop_stop(test, loop);
	KUNIT_EXPECT_EQ(test, race.bad, 0);
	KUNIT_EXPECT_GE(test, race.changes, 300);
	kunit_info(test, "%u reads of %u", race.reads, loop->turns);
	KUNIT_EXPECT_EQ(test, pmuk_test_count(test, race.c), pmuk_sim_counted(race.sim, 0));
}

/* The PMU's driver is unloaded while the counter exists. */
static void unplugged_pmu_is_gone(struct kunit *test)
{
	struct rig r = bare_rig(test, pmuk_test_sim(test, 1, 32), 0);

	r.attr.period = 1000;
	r.c = rig_enabled(test, &r);
	pmuk_sim_count(r.sim, 0, 100);
	if (pmuk_sim_unplug(r.sim))
		kunit_skip(test, "this kernel cannot take events off a PMU that goes away");
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(r.c), PMUK_COUNTER_GONE);
	pmuk_test_expect_value(test, r.c, -ENODEV, 100);
	pmuk_test_expect_no_local(test, r.c, -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(r.c), -ENODEV);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(r.c, 10), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_pause(r.c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_resume(r.c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(r.c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_snapshot(test, r.c), 100);
}

static struct kunit_case pmuk_counter_sim_cases[] = {
	KUNIT_CASE_PARAM(count_is_exact_over_wraps, widths_gen_params),
	KUNIT_CASE(count_is_exact_before_the_interrupt),
	KUNIT_CASE(counters_do_not_mix),
	KUNIT_CASE(cpus_do_not_mix),
	KUNIT_CASE(disable_keeps_the_count),
	KUNIT_CASE(pause_stops_the_pmu),
	KUNIT_CASE(pause_lasts_over_rescheduling),
	KUNIT_CASE(pause_lasts_over_disabling),
	KUNIT_CASE_SLOW(count_survives_anything),
	KUNIT_CASE(multiplexed_value_says_so),
	KUNIT_CASE(times_are_true),
	KUNIT_CASE(times_stand_still_in_guests),
	KUNIT_CASE(counters_yield_to_guests),
	KUNIT_CASE_PARAM(periods_need_interrupts, without_interrupts_gen_params),
	KUNIT_CASE(pinned_refused_when_full),
	KUNIT_CASE(pinned_refused_at_enable),
	KUNIT_CASE(trial_pushes_no_counter_out),
	KUNIT_CASE(trial_pushes_no_task_out),
	KUNIT_CASE(trial_sees_events_enabled_together),
	KUNIT_CASE(pinned_pushed_out_says_so),
	KUNIT_CASE(flexible_pushed_out_waits),
	KUNIT_CASE(exclude_flags_reach_the_pmu),
	KUNIT_CASE(snapshot_is_what_was_read),
	KUNIT_CASE(snapshot_is_final_when_disabled),
	KUNIT_CASE(snapshot_needs_no_interrupt),
	KUNIT_CASE_SLOW(snapshot_is_whole),
	KUNIT_CASE_SLOW(remote_read_is_whole),
	KUNIT_CASE(unplugged_pmu_is_gone),
	{}
};

PMUK_SUITE(pmuk_counter_sim, pmuk_test_init, "KUnit tests of pmuk's counters on a simulated PMU");
