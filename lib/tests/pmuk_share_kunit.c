// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check that counters which share a register count and overflow as if each had one. Most
 * give each shared counter a private twin, and compare the two.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "pmuk_counters.h"
#include "pmuk_ctx.h"
#include "pmuk_hw.h"
#include "pmuk_suite.h"
#include "../../kernel/pmu_kapi/share.h"

#define SHARED	(PMUK_PINNED | PMUK_NO_THROTTLE)

static struct pmuk_attr share_attr(const struct pmuk_sim *sim, u64 config, u64 period)
{
	return (struct pmuk_attr){ .type = pmuk_sim_type(sim), .config = config,
				   .period = period, .flags = SHARED };
}

/* ---- schedules ---- */

/* A callback takes notes, and may do more. */
enum reaction {
	REACT_NONE,
	REACT_PERIOD,
	REACT_PAUSE,
	REACT_ON_OTHER,			/* the shared counters only: pause or resume */
};

struct twin {
	struct pmuk_counter *c;
	struct twin *other;
	enum reaction reaction;
	u64 nr;				/* overflows */
	u64 notes;			/* a digest of all overflows */
};

struct twins {
	struct twin shared, private;
	bool enabled, paused;
};

static void take_note(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct twin *t = data;

	t->nr++;
	t->notes = t->notes * 31 + sample->period * 7 + sample->value.count;
	switch (t->reaction) {
	case REACT_PERIOD:
		pmuk_counter_set_period(c, 2 + t->nr % 4);
		break;
	case REACT_PAUSE:
		if (!(t->nr % 3))
			pmuk_counter_pause(c);
		break;
	case REACT_ON_OTHER:
		if (t->nr % 2)
			pmuk_counter_pause(t->other->c);
		else
			pmuk_counter_resume(t->other->c);
		break;
	default:
		break;
	}
}

static void make_twin(struct kunit *test, struct twin *t, struct pmuk_attr attr, int cpu,
		      enum reaction reaction)
{
	attr.overflow = take_note;
	attr.data = t;
	attr.sample_type = PERF_SAMPLE_READ;
	t->reaction = reaction;
	t->c = pmuk_test_counter(test, &attr, cpu, NULL);
}

static struct twins *make_twins(struct kunit *test, struct pmuk_attr attr, int cpu,
				enum reaction reaction)
{
	struct twins *two = pmuk_test_zalloc(test, sizeof(*two));

	make_twin(test, &two->shared, attr, cpu, reaction);
	attr.flags |= PMUK_PRIVATE;
	make_twin(test, &two->private, attr, cpu, reaction);
	return two;
}

/* A callback may have paused or resumed the counters: then the calls change nothing. */
static void toggle_pause(struct kunit *test, struct twins *two)
{
	two->paused = !two->paused;
	if (two->paused)
		KUNIT_EXPECT_EQ(test, pmuk_counter_pause(two->shared.c),
				pmuk_counter_pause(two->private.c));
	else
		KUNIT_EXPECT_EQ(test, pmuk_counter_resume(two->shared.c),
				pmuk_counter_resume(two->private.c));
}

static void toggle_enabled(struct kunit *test, struct twins *two)
{
	two->enabled = !two->enabled;
	if (two->enabled)
		KUNIT_EXPECT_EQ(test, pmuk_counter_enable(two->shared.c),
				pmuk_counter_enable(two->private.c));
	else
		KUNIT_EXPECT_EQ(test, pmuk_counter_disable(two->shared.c),
				pmuk_counter_disable(two->private.c));
}

static void set_period(struct kunit *test, struct twins *two, u64 period)
{
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(two->shared.c, period),
			pmuk_counter_set_period(two->private.c, period));
}

static bool counts_agree(struct kunit *test, struct twins *two)
{
	u64 shared = 0, private = 0;
	int ret = pmuk_counter_read_local(two->shared.c, &shared);

	KUNIT_EXPECT_EQ(test, ret, pmuk_counter_read_local(two->private.c, &private));
	KUNIT_EXPECT_EQ(test, shared, private);
	return !ret == two->enabled && shared == private &&
	       pmuk_test_count(test, two->shared.c) == pmuk_test_count(test, two->private.c);
}

static bool overflows_agree(struct kunit *test, struct twins *two)
{
	KUNIT_EXPECT_EQ(test, two->shared.nr, two->private.nr);
	return two->shared.nr == two->private.nr && two->shared.notes == two->private.notes;
}

static bool twins_agree(struct kunit *test, struct twins *two)
{
	return counts_agree(test, two) && overflows_agree(test, two);
}

#define NR_STEPS	10

static void take_step(struct kunit *test, struct pmuk_sim *sim, struct twins *const *two,
		      unsigned int step)
{
	switch (step) {
	case 0:
	case 1:
		pmuk_sim_count(sim, 0, 1 + 2 * step);
		break;
	case 2:
	case 3:
		toggle_pause(test, two[step - 2]);
		break;
	case 4:
	case 5:
		set_period(test, two[step - 4], 2);
		break;
	case 6:
	case 7:
		set_period(test, two[step - 6], 5);
		break;
	default:
		toggle_enabled(test, two[step - 8]);
		break;
	}
}

static const struct pmuk_test_value reactions[] = {
	{ "callbacks take notes", REACT_NONE },
	{ "callbacks set periods", REACT_PERIOD },
	{ "callbacks pause their counter", REACT_PAUSE },
};

KUNIT_ARRAY_PARAM_DESC(reactions, reactions, name);

/*
 * All schedules of so many steps. Each begins in the state in which the last one has ended. With
 * KASAN, schedules are shorter: they make the same accesses.
 */
#define SCHEDULE_STEPS	(IS_ENABLED(CONFIG_KASAN) ? 3 : 4)

static void schedules_match_private_counters(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 3, 16);
	int cpu = pmuk_test_pin_first(test);
	struct twins *two[2];
	unsigned int i, schedule, left, n = 1;

	two[0] = make_twins(test, share_attr(sim, 0, 3), cpu, pmuk_test_param(test));
	two[1] = make_twins(test, share_attr(sim, 0, 5), cpu, REACT_NONE);
	for (i = 0; i < SCHEDULE_STEPS; i++)
		n *= NR_STEPS;
	for (schedule = 0; schedule < n; schedule++) {
		for (i = 0, left = schedule; i < SCHEDULE_STEPS; i++, left /= NR_STEPS) {
			take_step(test, sim, two, left % NR_STEPS);
			if (!twins_agree(test, two[0]) || !twins_agree(test, two[1]))
				KUNIT_FAIL_AND_ABORT(test, "schedule %u, step %u", schedule, i);
		}
	}
	kunit_info(test, "%u schedules of %u steps, %llu and %llu overflows", n, SCHEDULE_STEPS,
		   two[0]->shared.nr, two[1]->shared.nr);
	KUNIT_EXPECT_GE(test, two[0]->shared.nr, n * SCHEDULE_STEPS / 80);
	KUNIT_EXPECT_GE(test, two[1]->shared.nr, n * SCHEDULE_STEPS / 80);
}

/* The callback of one counter lets the other count every other one of its periods. */
static void callbacks_change_others(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 16);
	int cpu = pmuk_test_pin_first(test);
	struct twin *t = pmuk_test_zalloc(test, 2 * sizeof(*t));
	unsigned int i;

	make_twin(test, &t[0], share_attr(sim, 0, 4), cpu, REACT_NONE);
	make_twin(test, &t[1], share_attr(sim, 0, 3), cpu, REACT_ON_OTHER);
	t[1].other = &t[0];
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, pmuk_counter_enable(t[i].c), 0);
	for (i = 0; i < 1200; i++)
		pmuk_sim_count(sim, 0, 1);
	pmuk_test_expect_count(test, t[1].c, 1200);
	pmuk_test_expect_count(test, t[0].c, 600);
	KUNIT_EXPECT_EQ(test, t[1].nr, 400);
	KUNIT_EXPECT_EQ(test, t[0].nr, 150);
}

/* ---- one register ---- */

static void many_take_one_register(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct pmuk_attr attr = share_attr(sim, 0, 0);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *c[64];	/* as many as two hosts have seats for */
	unsigned int i;
	u64 count;

	for (i = 0; i < 30; i++) {
		c[i] = pmuk_test_enabled(test, &attr, cpu, NULL);
		pmuk_sim_count(sim, 0, 10);
	}
	for (i = 0; i < 30; i++)
		pmuk_test_expect_count(test, c[i], (30 - i) * 10);

	/* The second register is free, for another event or for more counters of this one. */
	KUNIT_EXPECT_EQ(test, pmuk_room(&attr, 1, cpu, &(u32){ 0 }), 1);
	for (; i < 64; i++)
		c[i] = pmuk_test_enabled(test, &attr, cpu, NULL);
	pmuk_test_refused(test, &attr, cpu, NULL, -ENOSPC, "a third host");
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 10), 20);	/* both registers count */
	for (i = 30; i < 64; i++) {
		KUNIT_EXPECT_EQ(test, pmuk_counter_read_local(c[i], &count), 0);
		KUNIT_EXPECT_EQ(test, count, 10);
	}
}

/* The register is free while no counter that shares it is enabled. */
static void register_is_free_between(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = share_attr(sim, 0, 0), other = share_attr(sim, 1, 0);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *a = pmuk_test_enabled(test, &attr, cpu, NULL);
	struct pmuk_counter *b = pmuk_test_enabled(test, &attr, cpu, NULL);
	struct pmuk_counter *rival;

	pmuk_sim_count(sim, 0, 5);
	KUNIT_EXPECT_EQ(test, pmuk_room(&attr, 1, cpu, &(u32){ 0 }), 1);
	KUNIT_EXPECT_EQ(test, pmuk_room(&other, 1, cpu, &(u32){ 0 }), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(a), 0);
	pmuk_test_refused(test, &other, cpu, NULL, -ENOSPC, "one still counts");
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(b), 0);
	rival = pmuk_test_enabled(test, &other, cpu, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 7), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(rival), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(a), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 11), 11);
	pmuk_test_expect_count(test, a, 16);
	KUNIT_EXPECT_EQ(test, pmuk_test_count(test, b), 5);
}

/*
 * A context has enabled @c together with others, and pmuk_counter_enable() is still to come, when
 * the only other rider is disabled. The register stays.
 */
static void register_is_held_for_sets(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = share_attr(sim, 0, 0);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *other = pmuk_test_enabled(test, &attr, cpu, NULL);
	struct pmuk_counter *c = pmuk_test_counter(test, &attr, cpu, NULL);

	pmuk_counters_enable(&c, 1);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(other), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 7), 7);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 9), 0);	/* no rider is left */
}

static void no_callback(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
}

/* Counters that differ in what they count have a register each. */
static void others_do_not_share(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 8, 32);
	struct pmuk_attr attr = share_attr(sim, 0, 0);
	struct pmuk_attr differ[] = { attr, attr, attr, attr, attr, attr, attr };
	int cpu = pmuk_test_pin_first(test);
	unsigned int i;

	differ[0].config = 1;
	differ[1].config1 = 8;
	differ[2].config2 = 8;
	differ[3].flags |= PMUK_EXCLUDE_USER;
	differ[4].period = 100;
	differ[4].sample_type = PERF_SAMPLE_ADDR;
	differ[5].flags |= PMUK_PRIVATE;
	differ[6].config3 = 8;
	pmuk_test_enabled(test, &attr, cpu, NULL);
	for (i = 0; i < ARRAY_SIZE(differ); i++)
		pmuk_test_enabled(test, &differ[i], cpu, NULL);
	attr.config = 2;
	pmuk_test_refused(test, &attr, cpu, NULL, -ENOSPC, "eight registers");
	/* Periods, callbacks and fields that pmuk fills in make no difference. */
	attr.config = 0;
	attr.period = 1000;
	attr.overflow = no_callback;
	attr.sample_type = PERF_SAMPLE_TIME;
	pmuk_test_enabled(test, &attr, cpu, NULL);
}

/* Creates a counter while the driver is asked for the event of another counter's host. */
struct meanwhile {
	struct pmuk_attr attr;		/* ->type is 0 if no counter is to be created */
	int cpu;
	struct pmuk_counter *c;
};

static int create_meanwhile(const struct perf_event_attr *attr, void *data)
{
	struct meanwhile *m = data;
	struct pmuk_attr same = m->attr;

	m->attr.type = 0;
	if (same.type && pmuk_ctx_comes(!mutex_is_locked(&pmuk_hosts_lock)))
		m->c = pmuk_counter_create(&same, m->cpu, NULL);
	return 0;
}

/* Two counters that are created at the same time do not wait for each other, and share a host. */
static void hosts_are_created_without_lock(struct kunit *test)
{
	struct meanwhile *m = pmuk_test_zalloc(test, sizeof(*m));
	const struct pmuk_sim_config config = { .name = "pmuk_sim", .nr_counters = 1, .width = 32,
						.event_init = create_meanwhile, .data = m };
	struct pmuk_sim *sim = pmuk_test_sim_config(test, &config);
	struct pmuk_attr attr = share_attr(sim, 0, 0);
	struct pmuk_counter *c;

	m->cpu = pmuk_test_pin_first(test);
	m->attr = attr;
	c = pmuk_test_counter(test, &attr, m->cpu, NULL);
	KUNIT_EXPECT_FALSE(test, IS_ERR_OR_NULL(m->c));
	if (IS_ERR_OR_NULL(m->c))
		return;
	KUNIT_EXPECT_PTR_EQ(test, c->hw_event, m->c->hw_event);
	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(sim), 1);
	pmuk_counter_destroy(m->c);
}

static void cpus_share_nothing(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = share_attr(sim, 0, 0);
	int cpu = pmuk_test_pin_first(test), other = pmuk_test_other_cpu(test, cpu);
	struct pmuk_counter *here = pmuk_test_enabled(test, &attr, cpu, NULL);
	struct pmuk_counter *there = pmuk_test_enabled(test, &attr, other, NULL);

	pmuk_sim_count(sim, 0, 5);
	pmuk_sim_count_on(sim, other, 0, 9);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, here), 5);
	pmuk_test_expect_no_local(test, there, -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_test_count(test, there), 9);
}

/* A counter that takes turns with others, and a task's counter, have events of their own. */
static void only_pinned_cpu_counters_share(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct pmuk_attr attr = share_attr(sim, 0, 0);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *c = pmuk_test_enabled(test, &attr, cpu, NULL);

	KUNIT_EXPECT_PTR_NE(test, c->event, c->hw_event);
	c = pmuk_test_counter(test, &attr, -1, current);
	KUNIT_EXPECT_PTR_EQ(test, c->event, c->hw_event);
	attr.flags &= ~PMUK_PINNED;
	c = pmuk_test_enabled(test, &attr, cpu, NULL);
	KUNIT_EXPECT_PTR_EQ(test, c->event, c->hw_event);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 10);	/* both registers count */
	attr.config = PMUK_SIM_EVENTS;
	attr.flags = SHARED;
	pmuk_test_refused(test, &attr, cpu, NULL, -ENOENT, "no such event");
}

static void contexts_may_be_private(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = share_attr(sim, 0, 0);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *c = pmuk_test_enabled(test, &attr, cpu, NULL);

	pmuk_ctx_add(test, ctx, sim, 0, 0, 0, PMUK_PINNED | PMUK_PRIVATE);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(ctx, cpu), -ENOSPC);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	pmuk_ctx_run(test, ctx, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
}

/* Events of a PMU that is one for several CPUs, and of software, are private. */
static void others_have_their_own(struct kunit *test)
{
	const struct pmuk_sim_config uncore = { .name = "pmuk_sim2", .nr_counters = 2,
						.width = 32, .uncore = true };
	struct pmuk_sim *sim = pmuk_test_sim_config(test, &uncore);
	struct pmuk_attr attr = share_attr(sim, 0, 0);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *c;
	unsigned int i;

	for (i = 0; i < 2; i++)
		pmuk_test_enabled(test, &attr, cpu, NULL);
	pmuk_test_refused(test, &attr, cpu, NULL, -ENOSPC, "two registers");
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 10);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	c = pmuk_test_enabled(test, &attr, cpu, NULL);
	KUNIT_EXPECT_EQ(test, c->event->attr.type, c->hw_event->attr.type);
}

static void no_overflow(struct perf_event *event, struct perf_sample_data *data,
			struct pt_regs *regs)
{
}

/* pmuk's PMU is in sysfs. Events of others are refused, and so are pmuk's own without a host. */
static void pmu_is_for_riders_only(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = share_attr(sim, 0, 0);
	int cpu = pmuk_test_pin_first(test);
	struct perf_event_attr pa = { .size = sizeof(pa) };
	struct perf_event *event;

	pa.type = pmuk_test_enabled(test, &attr, cpu, NULL)->event->attr.type;
	KUNIT_ASSERT_NE(test, pa.type, attr.type);
	event = perf_event_create_kernel_counter(&pa, cpu, NULL, no_overflow, NULL);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(event), -ENOENT);
	if (!IS_ERR(event))
		perf_event_release_kernel(event);
	attr = (struct pmuk_attr){ .type = pa.type };
	pmuk_test_refused(test, &attr, cpu, NULL, -ENOENT, "a rider without a host");
	attr.flags = SHARED;
	pmuk_test_refused(test, &attr, cpu, NULL, -ENOENT, "a rider of a rider");
}

/* ---- losses ---- */

static void loss_is_told_to_all(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = share_attr(sim, 0, 0);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *c[3];
	unsigned int i;
	u64 count;

	for (i = 0; i < ARRAY_SIZE(c); i++)
		c[i] = pmuk_test_enabled(test, &attr, cpu, NULL);
	pmuk_sim_count(sim, 0, 5);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 1), 0);
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		KUNIT_EXPECT_EQ(test, pmuk_counter_state(c[i]), PMUK_COUNTER_ERROR);
		KUNIT_EXPECT_EQ(test, pmuk_counter_read_local(c[i], &count), -EBUSY);
	}
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 9), 0);
	pmuk_test_refused(test, &attr, cpu, NULL, -ENOSPC, "a counter that joins a lost register");
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c[0]), 0);
	pmuk_sim_count(sim, 0, 7);
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		KUNIT_EXPECT_EQ(test, pmuk_counter_state(c[i]), PMUK_COUNTER_ACTIVE);
		pmuk_test_expect_count(test, c[i], 12);
	}
}

static int fail_if_told(const struct perf_event_attr *attr, void *data)
{
	return READ_ONCE(*(int *)data);
}

/* The second counter looks for room before it is enabled, and that fails. */
static void failed_probe_is_told(struct kunit *test)
{
	int *error = pmuk_test_zalloc(test, sizeof(*error));
	const struct pmuk_sim_config config = { .name = "pmuk_sim", .nr_counters = 1, .width = 32,
						.event_init = fail_if_told, .data = error };
	struct pmuk_sim *sim = pmuk_test_sim_config(test, &config);
	struct pmuk_attr attr = share_attr(sim, 0, 0);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *c;

	pmuk_test_counter(test, &attr, cpu, NULL);
	c = pmuk_test_counter(test, &attr, cpu, NULL);
	WRITE_ONCE(*error, -ENOMEM);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), -ENOMEM);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_ERROR);
	WRITE_ONCE(*error, 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	pmuk_test_expect_count(test, c, 5);
}

/* The counter is in error though the register counts, and has counted so much. */
static void expect_refused(struct kunit *test, struct pmuk_counter *c, u64 count)
{
	struct pmuk_value value;

	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_ERROR);
	KUNIT_EXPECT_EQ(test, pmuk_counter_read_local(c, &value.count), -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_counter_read(c, &value), -EBUSY);
	KUNIT_EXPECT_EQ(test, value.count, count);
}

/* A counter whose enabling has failed does not count when others get the register. */
static void failed_enable_does_not_wait(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = share_attr(sim, 0, 0);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *c = pmuk_test_counter(test, &attr, cpu, NULL);
	struct pmuk_counter *other = pmuk_test_counter(test, &attr, cpu, NULL);

	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), -ENOSPC);
	expect_refused(test, c, 0);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(other), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	expect_refused(test, c, 0);
	pmuk_test_enabled(test, &attr, cpu, NULL);	/* perf core places all again */
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	expect_refused(test, c, 0);
	pmuk_test_expect_count(test, other, 10);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
	pmuk_sim_count(sim, 0, 3);
	pmuk_test_expect_count(test, c, 3);
	pmuk_test_expect_count(test, other, 13);
}

/* A counter that has lost the register, and was enabled in vain, stays in error. */
static void failed_retry_does_not_wait(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = share_attr(sim, 0, 0);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *c = pmuk_test_enabled(test, &attr, cpu, NULL);
	struct pmuk_counter *other = pmuk_test_enabled(test, &attr, cpu, NULL);
	struct pmuk_counter *waits = pmuk_test_enabled(test, &attr, cpu, NULL);

	pmuk_sim_count(sim, 0, 5);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), -ENOSPC);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(other), -ENOSPC);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(other), 0);
	pmuk_sim_count(sim, 0, 7);
	expect_refused(test, c, 5);
	pmuk_test_expect_count(test, other, 12);
	pmuk_test_expect_count(test, waits, 12);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(other), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(waits), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 9), 0);	/* no rider is left */
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
	pmuk_sim_count(sim, 0, 2);
	pmuk_test_expect_count(test, c, 7);
}

static const struct alone {
	const char *name;
	u32 flags;
} alones[] = {
	{ "may share", 0 },
	{ "private", PMUK_PRIVATE },
};

KUNIT_ARRAY_PARAM_DESC(alones, alones, name);

/*
 * The middle one of three counters was refused. When it is enabled again, the youngest one has the
 * register, and keeps it.
 */
static void retry_pushes_out_nobody(struct kunit *test)
{
	const struct alone *alone = test->param_value;
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *c[3];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(c); i++) {
		struct pmuk_attr attr = share_attr(sim, i, 0);

		attr.flags |= alone->flags;
		c[i] = pmuk_test_counter(test, &attr, cpu, NULL);
	}
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c[0]), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c[1]), -ENOSPC);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c[0]), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c[2]), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c[1]), -ENOSPC);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c[1]), PMUK_COUNTER_ERROR);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c[2]), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 2, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c[2]), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c[1]), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 1, 5), 5);
	pmuk_test_expect_count(test, c[1], 5);
}

static int count_calls(const struct perf_event_attr *attr, void *data)
{
	atomic_inc(data);
	return 0;
}

/* The sets have the same event. Only the first turn after a start creates an event to find room. */
static void exchanges_create_no_events(struct kunit *test)
{
	atomic_t *events = pmuk_test_zalloc(test, sizeof(*events));
	const struct pmuk_sim_config config = { .name = "pmuk_sim", .nr_counters = 1, .width = 32,
						.event_init = count_calls, .data = events };
	struct pmuk_sim *sim = pmuk_test_sim_config(test, &config);
	int cpu = pmuk_test_pin_first(test), i, before;
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);

	pmuk_ctx_add(test, ctx, sim, 0, 0, 0, PMUK_PINNED);
	pmuk_ctx_add_set(test, ctx, 1, 0);
	pmuk_ctx_add(test, ctx, sim, 1, 0, 0, PMUK_PINNED);
	pmuk_ctx_run(test, ctx, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(ctx, 1), 0);
	before = atomic_read(events);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(ctx, i % 2), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(events), before);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
}

struct times {
	struct pmuk_value sampled;
	u64 missed;			/* enabled without a register, in nanoseconds */
};

static u64 time_missed(const struct pmuk_value *value)
{
	return value->time_enabled - value->time_running;
}

static void keep_times(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct times *t = data;

	t->sampled = sample->value;
}

/* All readers agree to the nanosecond on what a counter has missed. */
static void expect_missed(struct kunit *test, struct pmuk_sim *sim, struct pmuk_counter *c,
			  const struct times *t)
{
	struct pmuk_value value;

	KUNIT_EXPECT_EQ(test, pmuk_counter_read(c, &value), 0);
	KUNIT_EXPECT_EQ(test, time_missed(&value), t->missed);
	pmuk_sim_count(sim, 0, 5);
	KUNIT_EXPECT_EQ(test, time_missed(&t->sampled), t->missed);
	KUNIT_EXPECT_EQ(test, pmuk_counter_snapshot(c, &value), 0);
	KUNIT_EXPECT_EQ(test, time_missed(&value), t->missed);
	KUNIT_EXPECT_EQ(test, value.time_running, t->sampled.time_running);
}

/*
 * When perf core enables a shared counter of another event, perf core takes all riders off their
 * PMU and puts them on again.
 */
static void miss_a_while(struct kunit *test, struct pmuk_counter *c, struct pmuk_counter *other,
			 struct times *t)
{
	struct pmuk_value before, after;

	KUNIT_EXPECT_EQ(test, pmuk_counter_read(c, &before), -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(other), -ENOSPC);
	mdelay(2);
	KUNIT_EXPECT_EQ(test, pmuk_counter_read(c, &after), -EBUSY);
	KUNIT_EXPECT_EQ(test, after.time_running, before.time_running);
	KUNIT_EXPECT_GE(test, after.time_enabled - before.time_enabled, 2 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_read(c, &after), 0);
	KUNIT_EXPECT_EQ(test, after.time_running, before.time_running);
	t->missed = time_missed(&after);
	KUNIT_EXPECT_GE(test, t->missed, 2 * NSEC_PER_MSEC);
}

/* The time_running of a counter stands still while nothing counts, and its time_enabled goes on. */
static void lost_time_is_missed(struct kunit *test)
{
	struct times *t = pmuk_test_zalloc(test, sizeof(*t));
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = share_attr(sim, 0, 5);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_attr another = share_attr(sim, 1, 5);
	struct pmuk_counter *c, *others[2];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(others); i++, another.config++)
		others[i] = pmuk_test_counter(test, &another, cpu, NULL);
	attr.overflow = keep_times;
	attr.data = t;
	attr.sample_type = PERF_SAMPLE_READ;
	c = pmuk_test_enabled(test, &attr, cpu, NULL);
	expect_missed(test, sim, c, t);
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 1), 0);
		miss_a_while(test, c, others[i], t);
		KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 0), 0);
		KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
		expect_missed(test, sim, c, t);
		mdelay(1);
		expect_missed(test, sim, c, t);
		mdelay(1);
		KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
		KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
		expect_missed(test, sim, c, t);
	}
}

static void pmu_that_goes_is_told(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = share_attr(sim, 0, 0);
	struct pmuk_counter *c = pmuk_test_here(test, &attr);

	pmuk_sim_count(sim, 0, 5);
	if (pmuk_sim_unplug(sim))
		kunit_skip(test, "this kernel waits for a PMU's events to go");
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_GONE);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), -ENODEV);
}

/*
 * After a late overflow, the next period begins at the count at which the overflow was due. If a
 * whole period has passed since then, the next period begins at the present count.
 */
static void late_overflows_begin_periods(struct kunit *test)
{
	static const u64 late[] = { 2, 9, 10, 25 };
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct twins *two = make_twins(test, share_attr(sim, 0, 10), cpu, REACT_NONE);
	unsigned int i, step;

	toggle_enabled(test, two);
	for (i = 0; i < ARRAY_SIZE(late); i++) {
		pmuk_sim_advance(sim, 0, 10 + late[i]);
		pmuk_sim_interrupt(sim);
		for (step = 0; step < 20; step++) {
			pmuk_sim_count(sim, 0, 1);
			KUNIT_ASSERT_TRUE(test, twins_agree(test, two));
		}
		set_period(test, two, 10);
	}
	KUNIT_EXPECT_EQ(test, two->shared.nr, 3 * ARRAY_SIZE(late));
}

/* ---- overflows while the host is aimed ---- */

/* Two counters, or three, of which the first is resumed. */
struct aim {
	unsigned int nr;
	u64 periods[3];
	struct twin t[3];
};

/*
 * The first counter has a period of 50. The host has overflowed at 50, for no counter, and its next
 * period ends at 100. Resuming the counter at 60 aims the host at 99, which loads the register.
 */
static void resume_with_hook(struct kunit *test, struct pmuk_sim *sim, struct aim *aim,
			     const struct pmuk_sim_hook *hook)
{
	int cpu = pmuk_test_pin_first(test);
	struct twin *t = aim->t;
	unsigned int i;

	for (i = 0; i < aim->nr; i++) {
		make_twin(test, &t[i], share_attr(sim, 0, aim->periods[i]), cpu, REACT_NONE);
		KUNIT_ASSERT_EQ(test, pmuk_counter_enable(t[i].c), 0);
	}
	pmuk_sim_count(sim, 0, 11);
	KUNIT_ASSERT_EQ(test, pmuk_counter_pause(t[0].c), 0);
	pmuk_sim_count(sim, 0, 60 - 11);
	pmuk_sim_set_hook(sim, hook);
	KUNIT_ASSERT_EQ(test, pmuk_counter_resume(t[0].c), 0);
	pmuk_sim_set_hook(sim, NULL);
}

static void end_aim(struct kunit *test, struct aim *aim)
{
	unsigned int i;

	for (i = 0; i < aim->nr; i++)
		kunit_release_action(test, pmuk_test_put_counter, aim->t[i].c);
}

/* Events come as in an NMI, right after an update of the count that follows @wait other updates. */
struct storm {
	unsigned int wait;
	bool rages, is_over;
	unsigned int interrupts;
};

static void break_out(struct pmuk_sim *sim, enum pmuk_sim_point point, void *data)
{
	struct storm *s = data;

	s->interrupts += s->rages && point == PMUK_SIM_RELOADING;
	if (s->rages || s->is_over || point != PMUK_SIM_DONE || s->wait--)
		return;
	s->rages = true;
	pmuk_sim_count(sim, 0, 1000);
	s->rages = false;
	s->is_over = true;
}

/* Other counters have the deadlines 100 and 101. */
static void resume_in_storm(struct kunit *test, struct pmuk_sim *sim, struct storm *s)
{
	struct aim aim = { .nr = 3, .periods = { 50, 100, 101 } };
	const struct pmuk_sim_hook hook = { break_out, s };
	unsigned int i;

	resume_with_hook(test, sim, &aim, &hook);
	pmuk_sim_count(sim, 0, 2);
	for (i = 0; i < aim.nr; i++)
		aim.t[i].nr = 0;
	pmuk_sim_count(sim, 0, 1010);
	for (i = 0; i < aim.nr; i++)
		KUNIT_EXPECT_GE(test, aim.t[i].nr, 9);
	end_aim(test, &aim);
}

/*
 * Few overflows come while the host is aimed, or the code that aims would never go on. About 40 of
 * the 60 are those of the counters.
 */
static void aim_ends_in_storm(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct storm s = { .is_over = true };
	unsigned int wait;

	for (wait = 0; s.is_over; wait++) {
		s = (struct storm){ .wait = wait };
		resume_in_storm(test, sim, &s);
		KUNIT_EXPECT_LE_MSG(test, s.interrupts, 60, "after update %u", wait);
	}
	KUNIT_EXPECT_GT(test, wait, 2);
}

/* Code sets the period of a counter at one of the driver's steps, as an NMI would. */
struct meddler {
	const struct twin *t;
	unsigned int at, step;
	bool is_done;
};

static void shorten(struct pmuk_sim *sim, enum pmuk_sim_point point, void *data)
{
	struct meddler *m = data;

	if (m->is_done || m->step++ != m->at)
		return;
	m->is_done = true;
	pmuk_counter_set_period(m->t->c, 5);
}

/* In the middle of the aim, another counter gets the deadline 65. */
static void meddle(struct kunit *test, struct pmuk_sim *sim, struct meddler *m)
{
	struct aim aim = { .nr = 2, .periods = { 50, 200 } };
	const struct pmuk_sim_hook hook = { shorten, m };

	m->t = &aim.t[1];
	resume_with_hook(test, sim, &aim, &hook);
	pmuk_sim_count(sim, 0, 5);
	KUNIT_EXPECT_EQ_MSG(test, aim.t[1].nr, m->is_done, "period set at step %u", m->at);
	end_aim(test, &aim);
}

static void aim_sees_nearer_deadlines(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct meddler m = { .is_done = true };
	unsigned int at;

	for (at = 0; m.is_done; at++) {
		m = (struct meddler){ .at = at };
		meddle(test, sim, &m);
	}
	KUNIT_EXPECT_GT(test, at, 2 * PMUK_SIM_POINTS);	/* the last points are in the aim */
}

/* ---- throttling ---- */

/*
 * A storm of so many overflows exceeds perf core's limit for one tick, however far perf core has
 * lowered the limit.
 */
#define MORE_THAN_A_TICK	(2 * DIV_ROUND_UP(100000, HZ))

/* Returns how many registers an enabled counter with these attributes takes, beside others. */
static int registers_taken(struct kunit *test, const struct pmuk_attr *attr, int cpu)
{
	struct pmuk_attr attrs[4] = {};
	int before;
	u32 fits;

	attrs[0].type = attr->type;
	attrs[0].flags = PMUK_PRIVATE;
	attrs[1] = attrs[0];
	attrs[2] = attrs[0];
	attrs[3] = attrs[0];
	before = pmuk_room(attrs, ARRAY_SIZE(attrs), cpu, &fits);
	pmuk_test_enabled(test, attr, cpu, NULL);
	return before - pmuk_room(attrs, ARRAY_SIZE(attrs), cpu, &fits);
}

/*
 * If pmuk is a module, perf core throttles a register. A counter without a period must not stop for
 * that, and a counter that perf core may throttle must not get around it.
 */
static void throttle_classes_are_apart(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 4, 32);
	struct pmuk_attr counts = share_attr(sim, 0, 0), samples = share_attr(sim, 0, 1000);
	struct pmuk_attr throttled = samples;
	int cpu = pmuk_test_pin_first(test);

	counts.flags &= ~PMUK_NO_THROTTLE;
	throttled.flags &= ~PMUK_NO_THROTTLE;
	KUNIT_EXPECT_EQ(test, registers_taken(test, &counts, cpu), 1);
	KUNIT_EXPECT_EQ(test, registers_taken(test, &samples, cpu), 0);
	KUNIT_EXPECT_EQ(test, registers_taken(test, &throttled, cpu), IS_MODULE(CONFIG_PMU_KAPI));
	KUNIT_EXPECT_EQ(test, registers_taken(test, &throttled, cpu), 0);
}

/* pmuk_room() says whether such a counter could share the only register. */
static void room_is_for_the_same_class(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr counts = share_attr(sim, 0, 0), samples = share_attr(sim, 0, 1000);
	int cpu = pmuk_test_pin_first(test);
	u32 fits;

	counts.flags &= ~PMUK_NO_THROTTLE;
	pmuk_test_enabled(test, &counts, cpu, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_room(&counts, 1, cpu, &fits), 1);
	KUNIT_EXPECT_EQ(test, pmuk_room(&samples, 1, cpu, &fits), 1);
	samples.flags &= ~PMUK_NO_THROTTLE;
	KUNIT_EXPECT_EQ(test, pmuk_room(&samples, 1, cpu, &fits), !IS_MODULE(CONFIG_PMU_KAPI));
}

/* A counter with a long period does not miss its overflow because of one that is throttled. */
static void throttling_is_of_one_only(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 3, 32);
	int cpu = pmuk_test_pin_first(test);
	struct twins *often, *seldom;
	struct perf_event *event;
	struct pmuk_attr attr;
	u64 before;

	if (IS_MODULE(CONFIG_PMU_KAPI))
		kunit_skip(test, "perf_event_overflow() is not exported: no throttling");
	attr = share_attr(sim, 0, 1);
	attr.flags &= ~PMUK_NO_THROTTLE;
	often = make_twins(test, attr, cpu, REACT_NONE);
	attr.period = MORE_THAN_A_TICK / 2;
	seldom = make_twins(test, attr, cpu, REACT_NONE);
	toggle_enabled(test, often);
	toggle_enabled(test, seldom);
	local_irq_disable();
	pmuk_sim_count(sim, 0, MORE_THAN_A_TICK);
	local_irq_enable();
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, seldom->shared.c), MORE_THAN_A_TICK);
	KUNIT_EXPECT_LT(test, often->shared.nr, MORE_THAN_A_TICK);
	KUNIT_EXPECT_EQ(test, seldom->shared.nr, 2);
	KUNIT_EXPECT_EQ(test, seldom->shared.nr, seldom->private.nr);
	event = often->shared.c->event;
	KUNIT_EXPECT_TRUE(test, pmuk_test_spin_until(!perf_local_is_throttled(event)));
	before = often->shared.nr;
	pmuk_sim_count(sim, 0, 1);
	KUNIT_EXPECT_EQ(test, often->shared.nr, before + 1);
}

/* ---- contexts ---- */

static struct pmuk_context *run_context(struct kunit *test, const struct pmuk_sim *sim, int cpu)
{
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct pmuk_pmc pmc = { .type = pmuk_sim_type(sim), .flags = SHARED };

	for (pmc.num = 0; pmc.num < 2; pmc.num++) {
		pmc.config = pmc.num;
		KUNIT_ASSERT_EQ(test, pmuk_write_pmcs(ctx, &pmc, 1), 1);
	}
	pmuk_ctx_run(test, ctx, cpu);
	return ctx;
}

static void expect_group(struct kunit *test, struct pmuk_context *ctx, u64 zero, u64 one)
{
	u64 counts[2] = {};

	preempt_disable();
	KUNIT_EXPECT_EQ(test, pmuk_read_local(ctx, counts, 2), 0);
	preempt_enable();
	KUNIT_EXPECT_EQ(test, counts[0], zero);
	KUNIT_EXPECT_EQ(test, counts[1], one);
}

static void contexts_share(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *a = run_context(test, sim, cpu), *b;

	pmuk_sim_count(sim, 0, 5);
	b = run_context(test, sim, cpu);
	pmuk_sim_count(sim, 0, 10);
	pmuk_sim_count(sim, 1, 20);
	expect_group(test, a, 15, 20);
	expect_group(test, b, 10, 20);
	KUNIT_EXPECT_EQ(test, pmuk_stop(a), 0);
	pmuk_sim_count(sim, 0, 100);
	expect_group(test, b, 110, 20);
	KUNIT_EXPECT_EQ(test, pmuk_start(a, NULL), 0);
	pmuk_sim_count(sim, 0, 1000);
	expect_group(test, a, 1015, 20);
	expect_group(test, b, 1110, 20);
	kunit_release_action(test, pmuk_ctx_put, a);
	pmuk_sim_count(sim, 1, 1);
	expect_group(test, b, 1110, 21);
}

/*
 * A register was lost, and another user of it brings it back. The context's counts go on, and
 * pmuk_local_since() tells that they missed events.
 */
static void return_is_told(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct pmuk_attr attr = share_attr(sim, 1, 0);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = run_context(test, sim, cpu);
	u64 counts[2], since = pmuk_local_since(ctx);
	struct pmuk_counter *other = pmuk_test_enabled(test, &attr, cpu, NULL);

	KUNIT_EXPECT_GT(test, since, 0);
	pmuk_sim_count(sim, 1, 5);
	expect_group(test, ctx, 0, 5);
	KUNIT_EXPECT_EQ(test, pmuk_local_since(ctx), since);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 1), 0);
	KUNIT_EXPECT_EQ(test, __pmuk_read_local(ctx, counts, 2), -EBUSY);
	pmuk_sim_count(sim, 1, 100);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 0), 0);
	KUNIT_ASSERT_EQ(test, pmuk_counter_enable(other), 0);
	pmuk_sim_count(sim, 1, 7);
	expect_group(test, ctx, 0, 12);
	KUNIT_EXPECT_GT(test, pmuk_local_since(ctx), since);
}

static void since_is_of_the_start(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = run_context(test, sim, cpu);
	u64 since = pmuk_local_since(ctx), then;

	KUNIT_EXPECT_EQ(test, pmuk_local_since(NULL), 0);
	KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_local_since(ctx), 0);
	then = ktime_get_ns();
	KUNIT_EXPECT_GE(test, then, since);
	KUNIT_EXPECT_EQ(test, pmuk_start(ctx, NULL), 0);
	since = pmuk_local_since(ctx);
	KUNIT_EXPECT_GE(test, since, then);
	KUNIT_EXPECT_LE(test, since, ktime_get_ns());
}

/* ---- the machine's PMU ---- */

struct machine;

struct sampler {
	const struct machine *m;
	struct pmuk_hw_pace pace;
	u64 nr;				/* overflows */
};

/* Two samplers whose deadlines come in all orders, and two counters that are compared. */
struct machine {
	struct pmuk_counter *a, *b;
	struct sampler samplers[2];
	u64 reads;
	s64 least, most;		/* bounds of how far @a is ahead of @b */
};

static void sample_machine(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct sampler *s = data;

	s->nr++;
	pmuk_hw_keep_pace(&s->pace, c, READ_ONCE(s->m->reads), 8);
}

static void start_sampler(struct kunit *test, struct machine *m, struct sampler *s,
			  struct pmuk_attr attr, int cpu)
{
	s->m = m;
	s->pace.period = attr.period;
	attr.overflow = sample_machine;
	attr.data = s;
	pmuk_test_enabled(test, &attr, cpu, NULL);
}

static struct machine *new_machine(struct kunit *test)
{
	static const u64 periods[] = { 100003, 70001 };
	struct machine *m = pmuk_test_zalloc(test, sizeof(*m));
	struct pmuk_attr attr = PMUK_HW_CYCLES;
	int cpu = pmuk_test_pin_first(test);
	unsigned int i;

	if (pmuk_hw_try(cpu))
		kunit_skip(test, "no PMU counts cycles");
	attr.flags = SHARED;
	m->a = pmuk_test_enabled(test, &attr, cpu, NULL);
	m->b = pmuk_test_enabled(test, &attr, cpu, NULL);
	for (i = 0; i < ARRAY_SIZE(periods); i++) {
		attr.period = periods[i];
		start_sampler(test, m, &m->samplers[i], attr, cpu);
	}
	m->least = S64_MIN;
	m->most = S64_MAX;
	return m;
}

/*
 * Narrows the bounds. Returns false if nothing is left between them. An emulator may lose the
 * register, so that @a goes back; @b is read from the same register.
 */
static bool bounds_hold(struct machine *m)
{
	u64 before, between, after;

	WRITE_ONCE(m->reads, m->reads + 1);
	if (pmuk_counter_read_local(m->a, &before) || pmuk_counter_read_local(m->b, &between) ||
	    pmuk_counter_read_local(m->a, &after))
		return false;
	if (after < before)
		return true;
	m->least = max_t(s64, m->least, before - between);
	m->most = min_t(s64, m->most, after - between);
	return m->least <= m->most;
}

static bool machine_has_run(const struct machine *m)
{
	return m->reads >= 100000 && READ_ONCE(m->samplers[0].nr) >= 3 &&
	       READ_ONCE(m->samplers[1].nr) >= 3;
}

/*
 * Counters of one register stay as far apart as they are while they run, whatever the register is
 * loaded with for others.
 */
static void reads_of_a_register_agree(struct kunit *test)
{
	struct machine *m = new_machine(test);
	struct pmuk_test_progress progress = {};

	while (!machine_has_run(m) && pmuk_test_goes_on(&progress, m->reads))
		KUNIT_ASSERT_TRUE(test, bounds_hold(m));
	KUNIT_EXPECT_TRUE(test, machine_has_run(m));
}

/*
 * An exact read before a fast one and after it bounds the fast one, also if the register was lost.
 */
static void expect_exact(struct kunit *test, struct pmuk_counter *c)
{
	u64 before = pmuk_test_count(test, c), count = pmuk_test_local(test, c);
	u64 after = pmuk_test_count(test, c);

	if (after < before)
		return;
	KUNIT_EXPECT_GE(test, count, before);
	KUNIT_EXPECT_LE(test, count, after);
}

static void stop_for_a_while(struct kunit *test, struct pmuk_counter *c, bool pause)
{
	u64 stopped;

	KUNIT_ASSERT_EQ(test, pause ? pmuk_counter_pause(c) : pmuk_counter_disable(c), 0);
	stopped = pmuk_test_count(test, c);
	pmuk_test_spin(20 * NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, pmuk_test_count(test, c), stopped);
	KUNIT_ASSERT_EQ(test, pause ? pmuk_counter_resume(c) : pmuk_counter_enable(c), 0);
}

static const struct pmuk_test_value stops[] = { { "disabled", false }, { "paused", true } };

KUNIT_ARRAY_PARAM_DESC(stops, stops, name);

/* Fast reads after a stop, in the same tick too, lack what the register has counted meanwhile. */
static void stopped_counter_falls_behind(struct kunit *test)
{
	struct machine *m = new_machine(test);
	unsigned int i;

	for (i = 0; i < 500; i++) {
		stop_for_a_while(test, m->b, pmuk_test_param(test));
		expect_exact(test, m->b);
		m->least = S64_MIN;
		m->most = S64_MAX;
		KUNIT_ASSERT_TRUE(test, bounds_hold(m) && bounds_hold(m));
	}
}

/* The second read is fast, if both are in one tick. */
static void read_group_twice(struct kunit *test, struct pmuk_context *ctx)
{
	unsigned int i;
	u64 count;

	for (i = 0; i < 2; i++) {
		guard(preempt)();
		KUNIT_EXPECT_EQ(test, pmuk_read_local(ctx, &count, 1), 0);
	}
}

/* A counter, the other rider of its register, and older counters that may take all registers. */
struct crowd {
	struct pmuk_counter *other, *older[32];
};

static void enable_often(struct kunit *test, const struct crowd *crowd)
{
	unsigned int i;

	for (i = 0; i < 10; i++) {
		KUNIT_ASSERT_EQ(test, pmuk_counter_enable(crowd->other), 0);
		KUNIT_ASSERT_EQ(test, pmuk_counter_disable(crowd->other), 0);
	}
}

/*
 * The older counters push the shared register out, unless the PMU has registers for all of them.
 * The other rider gets it back, after a tick or more where the PMU is slow.
 */
static void lose_and_find(struct kunit *test, const struct crowd *crowd)
{
	unsigned int nr = 0;

	while (nr < ARRAY_SIZE(crowd->older) && !pmuk_counter_enable(crowd->older[nr++]))
		;
	while (nr)
		pmuk_counter_disable(crowd->older[--nr]);
	KUNIT_ASSERT_EQ(test, pmuk_counter_enable(crowd->other), 0);
	KUNIT_ASSERT_EQ(test, pmuk_counter_disable(crowd->other), 0);
}

static const struct interruption {
	const char *name;
	void (*interrupt)(struct kunit *test, const struct crowd *crowd);
} interruptions[] = { { "others_come", enable_often }, { "register_is_lost", lose_and_find } };

KUNIT_ARRAY_PARAM_DESC(interruptions, interruptions, name);

static void new_crowd(struct kunit *test, struct crowd *crowd, struct pmuk_attr attr, int cpu)
{
	unsigned int i;

	attr.flags |= PMUK_PRIVATE;
	for (i = 0; i < ARRAY_SIZE(crowd->older); i++)
		crowd->older[i] = pmuk_test_counter(test, &attr, cpu, NULL);
}

/*
 * When a counter comes, perf core stops all riders of the CPU for a moment. When their register is
 * lost, it stops them until another rider gets the register back. Group reads that were fast before
 * that would be ahead of the counts by these moments.
 */
static void group_reads_miss_no_stop(struct kunit *test)
{
	const struct interruption *interruption = test->param_value;
	struct pmuk_attr attr = PMUK_HW_CYCLES;
	struct pmuk_pmc pmc = { .type = attr.type, .config = attr.config, .flags = SHARED };
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	int cpu = pmuk_test_pin_first(test);
	struct crowd crowd;
	u64 before, count, after;
	unsigned int i;

	if (pmuk_hw_try(cpu))
		kunit_skip(test, "no PMU counts cycles");
	attr.flags = SHARED;
	new_crowd(test, &crowd, attr, cpu);
	KUNIT_ASSERT_EQ(test, pmuk_write_pmcs(ctx, &pmc, 1), 1);
	pmuk_ctx_run(test, ctx, cpu);
	crowd.other = pmuk_test_counter(test, &attr, cpu, NULL);
	for (i = 0; i < 100; i++) {
		read_group_twice(test, ctx);
		interruption->interrupt(test, &crowd);
		before = pmuk_ctx_count(test, ctx, 0, 0, cpu);
		preempt_disable();
		KUNIT_EXPECT_EQ(test, pmuk_read_local(ctx, &count, 1), 0);
		preempt_enable();
		after = pmuk_ctx_count(test, ctx, 0, 0, cpu);
		if (after >= before) {	/* an emulator has not lost the register */
			KUNIT_EXPECT_GE(test, count, before);
			KUNIT_EXPECT_LE(test, count, after);
		}
	}
}

static struct kunit_case pmuk_share_cases[] = {
	KUNIT_CASE_PARAM(schedules_match_private_counters, reactions_gen_params),
	KUNIT_CASE(callbacks_change_others),
	KUNIT_CASE(many_take_one_register),
	KUNIT_CASE(register_is_free_between),
	KUNIT_CASE(register_is_held_for_sets),
	KUNIT_CASE(others_do_not_share),
	KUNIT_CASE(hosts_are_created_without_lock),
	KUNIT_CASE(cpus_share_nothing),
	KUNIT_CASE(only_pinned_cpu_counters_share),
	KUNIT_CASE(contexts_may_be_private),
	KUNIT_CASE(others_have_their_own),
	KUNIT_CASE(pmu_is_for_riders_only),
	KUNIT_CASE(loss_is_told_to_all),
	KUNIT_CASE(failed_probe_is_told),
	KUNIT_CASE(failed_enable_does_not_wait),
	KUNIT_CASE(failed_retry_does_not_wait),
	KUNIT_CASE_PARAM(retry_pushes_out_nobody, alones_gen_params),
	KUNIT_CASE(exchanges_create_no_events),
	KUNIT_CASE(lost_time_is_missed),
	KUNIT_CASE(pmu_that_goes_is_told),
	KUNIT_CASE(late_overflows_begin_periods),
	KUNIT_CASE(aim_ends_in_storm),
	KUNIT_CASE(aim_sees_nearer_deadlines),
	KUNIT_CASE(throttle_classes_are_apart),
	KUNIT_CASE(room_is_for_the_same_class),
	KUNIT_CASE(throttling_is_of_one_only),
	KUNIT_CASE(contexts_share),
	KUNIT_CASE(return_is_told),
	KUNIT_CASE(since_is_of_the_start),
	KUNIT_CASE(reads_of_a_register_agree),
	KUNIT_CASE_PARAM(stopped_counter_falls_behind, stops_gen_params),
	KUNIT_CASE_PARAM(group_reads_miss_no_stop, interruptions_gen_params),
	{}
};

PMUK_SUITE(pmuk_share, pmuk_test_init, "Tests of pmuk: counters that share a register");
