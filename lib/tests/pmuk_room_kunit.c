// SPDX-License-Identifier: GPL-2.0
/*
 * The tests compare pmuk_room() with what happens when a consumer creates pinned counters until the
 * PMU is full, and check that other counters go on after the call.
 */
#include <linux/cpumask.h>

#include "pmuk_counters.h"
#include "pmuk_suite.h"

/* More counters than the simulated PMU has on a CPU. */
#define MANY	(PMUK_SIM_COUNTERS + 2)

struct want {
	struct pmuk_attr attrs[MANY];
	u32 fits;
};

/* Returns attributes of the simulated PMU's events, in turn. */
static struct want *new_want(struct kunit *test, const struct pmuk_sim *sim)
{
	struct want *want = pmuk_test_zalloc(test, sizeof(*want));
	unsigned int i;

	for (i = 0; i < MANY; i++) {
		want->attrs[i].type = pmuk_sim_type(sim);
		want->attrs[i].config = i % PMUK_SIM_EVENTS;
		want->attrs[i].flags = PMUK_PRIVATE;
	}
	return want;
}

/* Returns a counter that stays until the test case ends, or an ERR_PTR(). */
static struct pmuk_counter *try_counter(struct kunit *test, const struct pmuk_attr *attr, int cpu)
{
	struct pmuk_counter *c = pmuk_counter_create(attr, cpu, NULL);

	if (!IS_ERR(c))
		KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_put_counter, c), 0);
	return c;
}

/* Enables up to @most pinned counters on @cpu. Returns how many found a register. */
static unsigned int fill(struct kunit *test, const struct want *want, unsigned int most, int cpu)
{
	struct pmuk_attr attr;
	unsigned int i;

	for (i = 0; i < most; i++) {
		attr = want->attrs[i];
		attr.flags |= PMUK_PINNED;
		if (pmuk_counter_enable(try_counter(test, &attr, cpu)))
			break;
	}
	return i;
}

static void expect_room(struct kunit *test, struct want *want, int cpu, unsigned int room)
{
	unsigned int i, counters = pmuk_nr_counters();

	for (i = 1; i <= MANY; i++) {
		want->fits = ~0U;
		KUNIT_EXPECT_EQ(test, pmuk_room(want->attrs, i, cpu, &want->fits), min(i, room));
		KUNIT_EXPECT_EQ(test, want->fits, BIT(min(i, room)) - 1);
	}
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), counters);
}

/* The number of pinned counters differs between CPUs. */
static void agrees_with_a_probe(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, PMUK_SIM_COUNTERS, 32);
	struct want *want = new_want(test, sim);
	unsigned int pinned = 0, room;
	int cpu;

	for_each_online_cpu(cpu) {
		KUNIT_ASSERT_EQ(test, fill(test, want, pinned, cpu), pinned);
		room = PMUK_SIM_COUNTERS - pinned;
		expect_room(test, want, cpu, room);
		KUNIT_EXPECT_EQ(test, fill(test, want, MANY, cpu), room);
		expect_room(test, want, cpu, 0);
		pinned = (pinned + 3) % PMUK_SIM_COUNTERS;
	}
}

/* The registers of the machine's own PMU cannot count all events. */
static void agrees_on_the_machine(struct kunit *test)
{
	struct want *want = pmuk_test_zalloc(test, sizeof(*want));	/* cycles */
	int cpu = pmuk_test_pin_first(test), room;

	room = pmuk_room(want->attrs, MANY, cpu, &want->fits);
	if (room == -ENOENT || room == -EOPNOTSUPP)
		kunit_skip(test, "no PMU counts cycles");
	KUNIT_ASSERT_GE(test, room, 0);
	KUNIT_EXPECT_EQ(test, want->fits, BIT(room) - 1);
	KUNIT_EXPECT_EQ(test, fill(test, want, MANY, cpu), room);
	if (room < MANY)
		KUNIT_EXPECT_EQ(test, pmuk_room(want->attrs, 1, cpu, &want->fits), 0);
}

/* Later counters are tried, too, as they may be for another PMU. */
static void misfits_are_passed_over(struct kunit *test)
{
	const struct pmuk_sim_config config = { .name = "pmuk_sim2", .nr_counters = 1,
						.width = 32 };
	struct want *want = new_want(test, pmuk_test_sim(test, 1, 32));
	struct pmuk_sim *second = pmuk_test_sim_config(test, &config);
	int cpu = pmuk_test_pin_first(test);

	want->attrs[2].type = pmuk_sim_type(second);
	KUNIT_EXPECT_EQ(test, pmuk_room(want->attrs, 4, cpu, &want->fits), 2);
	KUNIT_EXPECT_EQ(test, want->fits, BIT(0) | BIT(2));
}

static int note_attr(const struct perf_event_attr *attr, void *data)
{
	*(struct perf_event_attr *)data = *attr;
	return 0;
}

/* The driver's answer may depend on all that says what is counted. */
static void event_is_the_one_wanted(struct kunit *test)
{
	struct perf_event_attr *seen = pmuk_test_zalloc(test, sizeof(*seen));
	const struct pmuk_sim_config config = { .name = "pmuk_sim", .nr_counters = 1, .width = 32,
						.event_init = note_attr, .data = seen };
	struct want *want = new_want(test, pmuk_test_sim_config(test, &config));
	struct pmuk_attr *attr = &want->attrs[0];

	attr->config = 3;
	attr->config1 = 0x10;
	attr->config2 = 0x20;
	attr->period = 1000;
	attr->flags |= PMUK_EXCLUDE_USER | PMUK_EXCLUDE_GUEST | PMUK_NO_THROTTLE;
	KUNIT_EXPECT_EQ(test, pmuk_room(attr, 1, pmuk_test_pin_first(test), &want->fits), 1);
	KUNIT_EXPECT_EQ(test, seen->config, 3);
	KUNIT_EXPECT_EQ(test, seen->config1, 0x10);
	KUNIT_EXPECT_EQ(test, seen->config2, 0x20);
	KUNIT_EXPECT_EQ(test, seen->sample_period, 1000);
	KUNIT_EXPECT_TRUE(test, seen->exclude_user && seen->exclude_guest && seen->pinned);
	KUNIT_EXPECT_FALSE(test, seen->exclude_kernel || seen->exclude_idle || seen->exclude_hv);
}

/*
 * Only records have raw data, and a question has no buffer. A counter with raw data shares no
 * register with a counter without.
 */
static void raw_data_are_no_matter(struct kunit *test)
{
	struct want *want = new_want(test, pmuk_test_sim(test, 1, 32));
	int cpu = pmuk_test_pin_first(test);

	want->attrs[0].flags = 0;
	want->attrs[0].period = 1000;
	want->attrs[1] = want->attrs[0];
	KUNIT_EXPECT_EQ(test, pmuk_room(want->attrs, 2, cpu, &want->fits), 2);
	want->attrs[0].sample_type = PERF_SAMPLE_RAW;
	KUNIT_EXPECT_EQ(test, pmuk_room(want->attrs, 2, cpu, &want->fits), 1);
	KUNIT_EXPECT_EQ(test, want->fits, BIT(0));
}

/* perf core lets counters that are not pinned take turns. */
static void others_take_no_room(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 3, 32);
	struct want *want = new_want(test, sim);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *c[5];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(c); i++)
		c[i] = pmuk_test_enabled(test, &want->attrs[i], cpu, NULL);
	expect_room(test, want, cpu, 3);
	for (i = 0; i < ARRAY_SIZE(c); i++)
		KUNIT_EXPECT_TRUE(test, pmuk_test_spin_until(pmuk_counter_state(c[i]) ==
							     PMUK_COUNTER_ACTIVE));
}

static void pinned_counters_go_on(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct want *want = new_want(test, sim);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_attr attr = want->attrs[0];
	struct pmuk_counter *c;

	attr.flags = PMUK_PINNED;
	c = pmuk_test_enabled(test, &attr, cpu, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	expect_room(test, want, cpu, 1);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 7), 7);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, c), 12);
}

/*
 * @old is off, and its host would serve the counter that is asked for. The host is older than
 * @young, which has the only register, and must not push it out.
 */
static void younger_counters_go_on(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = { .type = pmuk_sim_type(sim), .flags = PMUK_PINNED };
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *old = pmuk_test_counter(test, &attr, cpu, NULL), *young;
	u32 fits;

	attr.config = 1;
	young = pmuk_test_enabled(test, &attr, cpu, NULL);
	attr.config = 0;
	KUNIT_EXPECT_EQ(test, pmuk_room(&attr, 1, cpu, &fits), 0);
	pmuk_test_refused(test, &attr, cpu, NULL, -ENOSPC, "a counter that joins an old host");
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(young), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(old), 0);
	KUNIT_EXPECT_EQ(test, pmuk_room(&attr, 1, cpu, &fits), 1);
}

static void spin(void *data)
{
	cpu_relax();
}

/*
 * A busy task has a pinned event in the only register of another CPU. While pmuk_room()'s worker
 * runs, the event is off the PMU. It must come back: a running task's pinned event that finds no
 * register is lost. The scheduler owes the task time, and must not let the task preempt the worker.
 */
static void tasks_keep_theirs_beside(struct kunit *test, u32 flags, u64 period, bool together)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct perf_event_attr attr = { .type = pmuk_sim_type(sim), .size = sizeof(attr),
					.pinned = 1 };
	struct want *want = new_want(test, sim);
	int other = pmuk_test_other_cpu(test, pmuk_test_pin_first(test));
	struct pmuk_loop *loop = pmuk_loop_start(test, other, spin, NULL);
	struct perf_event *event = pmuk_test_task_event(test, loop->task, &attr);
	unsigned int i;

	for (i = 0; i < 2; i++) {
		want->attrs[i].flags = flags;
		want->attrs[i].period = period;
		if (together)
			want->attrs[i].config = 0;
	}
	set_user_nice(loop->task, MIN_NICE);
	for (i = 0; i < 50; i++) {
		KUNIT_ASSERT_TRUE(test, pmuk_test_spin_until(READ_ONCE(event->state) ==
							     PERF_EVENT_STATE_ACTIVE));
		KUNIT_EXPECT_EQ(test, pmuk_room(want->attrs, 2, other, &want->fits), 1 + together);
		KUNIT_ASSERT_NE(test, READ_ONCE(event->state), PERF_EVENT_STATE_ERROR);
	}
}

static void tasks_keep_theirs(struct kunit *test)
{
	tasks_keep_theirs_beside(test, PMUK_PRIVATE, 0, false);
}

/* The end of these counters waits for a grace period, in which the task runs. */
static void tasks_keep_theirs_during_grace_periods(struct kunit *test)
{
	tasks_keep_theirs_beside(test, PMUK_PRIVATE, 1000, false);
}

static void tasks_keep_theirs_beside_shared_registers(struct kunit *test)
{
	tasks_keep_theirs_beside(test, 0, 0, false);
}

/* The end of the first counter waits for a grace period, while the second one still counts. */
static void tasks_keep_theirs_beside_two_in_a_register(struct kunit *test)
{
	tasks_keep_theirs_beside(test, 0, 1000, true);
}

/* An event that the PMU does not know ends the call. Earlier counters are given back. */
static void faults_are_told(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 4, 32);
	struct want *want = new_want(test, sim);
	int cpu = pmuk_test_pin_first(test);

	want->fits = 77;
	KUNIT_EXPECT_EQ(test, pmuk_room(NULL, 1, cpu, &want->fits), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_room(want->attrs, 1, cpu, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_room(want->attrs, 0, cpu, &want->fits), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_room(want->attrs, PMUK_SET_COUNTERS + 1, cpu, &want->fits),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_room(want->attrs, 1, -1, &want->fits), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_room(want->attrs, 1, nr_cpu_ids, &want->fits), -EINVAL);
	want->attrs[2].config = PMUK_SIM_EVENTS;
	pmuk_test_refused(test, &want->attrs[2], cpu, NULL, -ENOENT, "no such event");
	KUNIT_EXPECT_EQ(test, pmuk_room(want->attrs, 4, cpu, &want->fits), -ENOENT);
	KUNIT_EXPECT_EQ(test, want->fits, 77);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(sim), 0);
}

static struct kunit_case pmuk_room_cases[] = {
	KUNIT_CASE(agrees_with_a_probe),
	KUNIT_CASE(agrees_on_the_machine),
	KUNIT_CASE(misfits_are_passed_over),
	KUNIT_CASE(event_is_the_one_wanted),
	KUNIT_CASE(raw_data_are_no_matter),
	KUNIT_CASE(others_take_no_room),
	KUNIT_CASE(pinned_counters_go_on),
	KUNIT_CASE(younger_counters_go_on),
	KUNIT_CASE(tasks_keep_theirs),
	KUNIT_CASE(tasks_keep_theirs_during_grace_periods),
	KUNIT_CASE(tasks_keep_theirs_beside_shared_registers),
	KUNIT_CASE(tasks_keep_theirs_beside_two_in_a_register),
	KUNIT_CASE(faults_are_told),
	{}
};

PMUK_SUITE(pmuk_room, pmuk_test_init, "Tests of pmuk: room on a PMU");
