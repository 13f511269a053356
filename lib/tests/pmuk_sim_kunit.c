// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check the simulated PMU itself, with perf's calls only: perf reports what the PMU has
 * counted. The other suites rely on that.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>

#include "pmuk_counters.h"
#include "pmuk_levels.h"
#include "pmuk_suite.h"
#include "pmuk_wait.h"

struct perf_overflows {
	unsigned int nr;
	u64 counted_inside;
	struct pmuk_sim *sim;
};

static void perf_overflow(struct perf_event *event, struct perf_sample_data *data,
			  struct pt_regs *regs)
{
	struct perf_overflows *overflows = event->overflow_handler_context;

	pmuk_irq_unthrottle(event);
	overflows->nr++;
	overflows->counted_inside += pmuk_sim_count(overflows->sim, event->attr.config, 1);
}

static struct perf_event *get_event(struct kunit *test, struct perf_event_attr attr,
				    struct perf_overflows *overflows)
{
	int cpu = pmuk_test_pin_first(test);
	struct perf_event *event;

	attr.size = sizeof(attr);
	event = perf_event_create_kernel_counter(&attr, cpu, NULL,
						 overflows ? perf_overflow : NULL, overflows);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, event);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_put_event, event), 0);
	return event;
}

/* Returns an event that counts and does not overflow. */
static struct perf_event *get_counting(struct kunit *test, struct pmuk_sim *sim, u64 config)
{
	return get_event(test, (struct perf_event_attr){
		.type = pmuk_sim_type(sim), .config = config }, NULL);
}

static struct perf_event *get_overflowing(struct kunit *test, struct perf_overflows *overflows)
{
	return get_event(test, (struct perf_event_attr){
		.type = pmuk_sim_type(overflows->sim), .sample_period = 1000 }, overflows);
}

static u64 value_of(struct perf_event *event)
{
	u64 enabled, running;

	return perf_event_read_value(event, &enabled, &running);
}

static void sim_refuses_bad_config(struct kunit *test)
{
	static const struct pmuk_sim_config bad[] = {
		{ .nr_counters = 1, .width = 32 },
		{ .name = "pmuk_sim", .nr_counters = 0, .width = 32 },
		{ .name = "pmuk_sim", .nr_counters = PMUK_SIM_COUNTERS + 1, .width = 32 },
		{ .name = "pmuk_sim", .nr_counters = 1, .width = 7 },
		{ .name = "pmuk_sim", .nr_counters = 1, .width = 63 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(pmuk_sim_create(&bad[i])), -EINVAL);
}

static void sim_knows_its_events(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct perf_event_attr attr = {
		.type = pmuk_sim_type(sim),
		.size = sizeof(attr),
		.config = PMUK_SIM_EVENTS,
	};
	struct perf_event *event;

	event = perf_event_create_kernel_counter(&attr, 0, NULL, NULL, NULL);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(event), -ENOENT);
	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(sim), 0);
}

static void sim_keeps_account_of_events(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct perf_event *event = get_counting(test, sim, 0);

	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(sim), 1);
	kunit_release_action(test, pmuk_test_put_event, event);
	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(sim), 0);
}

/* Each event number has its own counts, and a counter counts no other number. */
static void sim_counts_what_happens(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct perf_event *zero = get_counting(test, sim, 0), *one = get_counting(test, sim, 1);

	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 12345), 12345);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 1, 7), 7);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 2, 99), 0);
	KUNIT_EXPECT_EQ(test, value_of(zero), 12345);
	KUNIT_EXPECT_EQ(test, value_of(one), 7);
	KUNIT_EXPECT_EQ(test, pmuk_sim_counted(sim, 0), 12345);
	KUNIT_EXPECT_EQ(test, pmuk_sim_counted(sim, 1), 7);
	KUNIT_EXPECT_EQ(test, pmuk_sim_counted(sim, 2), 0);
}

static void sim_counts_on_other_cpus(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	int other = pmuk_test_other_cpu(test, cpu);
	struct perf_event *event = get_counting(test, sim, 0);

	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(sim, other, 0, 10), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(sim, cpu, 0, 10), 10);
	pmuk_test_pin(test, other);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(sim, cpu, 0, 10), 10);
	KUNIT_EXPECT_EQ(test, value_of(event), 20);
}

static void sim_wraps(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 8);
	struct perf_event *event = get_counting(test, sim, 0);
	unsigned int i;

	for (i = 1; i <= 1000; i++) {
		pmuk_sim_count(sim, 0, i);
		KUNIT_ASSERT_EQ(test, value_of(event), i * (i + 1) / 2);
	}
}

/* Lets all @n events happen on this CPU, however often perf core throttles the event. */
static u64 count_all(struct pmuk_sim *sim, u64 n)
{
	return pmuk_ctx_feed(sim, raw_smp_processor_id(), 0, n);
}

static void sim_overflows(struct kunit *test)
{
	struct perf_overflows overflows = { .sim = pmuk_test_sim(test, 1, 16) };
	struct perf_event *event = get_overflowing(test, &overflows);

	KUNIT_EXPECT_EQ(test, pmuk_sim_count(overflows.sim, 0, 999), 999);
	KUNIT_EXPECT_EQ(test, overflows.nr, 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(overflows.sim, 0, 1), 1);
	KUNIT_EXPECT_EQ(test, overflows.nr, 1);
	KUNIT_EXPECT_EQ(test, count_all(overflows.sim, 9500), 9500);
	KUNIT_EXPECT_EQ(test, overflows.nr, 10);
	KUNIT_EXPECT_EQ(test, value_of(event), 10500);
	KUNIT_EXPECT_EQ_MSG(test, overflows.counted_inside, 0, "counts while interrupting");
}

/* Hardware counts on between the wrap and the interrupt. */
static void sim_interrupts_late(struct kunit *test)
{
	struct perf_overflows overflows = { .sim = pmuk_test_sim(test, 1, 16) };
	struct perf_event *event = get_overflowing(test, &overflows);

	pmuk_sim_advance(overflows.sim, 0, 1030);
	KUNIT_EXPECT_EQ(test, overflows.nr, 0);
	pmuk_sim_interrupt(overflows.sim);
	KUNIT_EXPECT_EQ(test, overflows.nr, 1);
	KUNIT_EXPECT_EQ(test, value_of(event), 1030);
	pmuk_sim_interrupt(overflows.sim);
	KUNIT_EXPECT_EQ(test, overflows.nr, 1);

	/* The next period ends as if the interrupt had not been late. */
	count_all(overflows.sim, 969);
	KUNIT_EXPECT_EQ(test, overflows.nr, 1);
	count_all(overflows.sim, 1);
	KUNIT_EXPECT_EQ(test, overflows.nr, 2);
}

static void sim_can_be_full(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	const struct perf_event_attr attr = { .type = pmuk_sim_type(sim), .pinned = 1 };
	struct perf_event *event[3];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(event); i++)
		event[i] = get_event(test, attr, NULL);
	KUNIT_EXPECT_EQ(test, event[0]->state, PERF_EVENT_STATE_ACTIVE);
	KUNIT_EXPECT_EQ(test, event[1]->state, PERF_EVENT_STATE_ACTIVE);
	KUNIT_EXPECT_EQ(test, event[2]->state, PERF_EVENT_STATE_ERROR);
}

static void sim_counters_can_be_stolen(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct perf_event *event = get_counting(test, sim, 0);

	KUNIT_EXPECT_EQ(test, pmuk_sim_steal(sim, cpu, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 1), 1);
	KUNIT_EXPECT_EQ(test, pmuk_sim_steal(sim, cpu, 2), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 1), 0);
	KUNIT_EXPECT_EQ(test, event->state, PERF_EVENT_STATE_INACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_sim_steal(sim, cpu, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 1), 1);
	KUNIT_EXPECT_EQ(test, value_of(event), 2);
	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(sim), 1);
}

static void sim_is_multiplexed(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct perf_event *zero = get_counting(test, sim, 0), *one = get_counting(test, sim, 1);
	unsigned long end = jiffies + 60 * HZ;
	u64 counted;

	while (time_before(jiffies, end) &&
	       !(pmuk_sim_counted(sim, 0) && pmuk_sim_counted(sim, 1))) {
		local_irq_disable();
		counted = pmuk_sim_count(sim, 0, 1) + pmuk_sim_count(sim, 1, 1);
		local_irq_enable();
		KUNIT_EXPECT_EQ(test, counted, 1);
		usleep_range(100, 200);
	}
	KUNIT_EXPECT_GT(test, pmuk_sim_counted(sim, 0), 0);
	KUNIT_EXPECT_GT(test, pmuk_sim_counted(sim, 1), 0);
	KUNIT_EXPECT_EQ(test, value_of(zero), pmuk_sim_counted(sim, 0));
	KUNIT_EXPECT_EQ(test, value_of(one), pmuk_sim_counted(sim, 1));
}

static void sim_counts_in_the_kernel_only(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);

	get_event(test, (struct perf_event_attr){
		.type = pmuk_sim_type(sim), .exclude_kernel = 1 }, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 0);
	get_event(test, (struct perf_event_attr){
		.type = pmuk_sim_type(sim), .exclude_user = 1, .exclude_idle = 1 }, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
}

/* Checks that the steps of pmu->read() come in order, each once. */
static void note_point(struct pmuk_sim *sim, enum pmuk_sim_point point, void *data)
{
	unsigned int *next = data;

	*next = *next == point ? point + 1 : PMUK_SIM_POINTS + 1;
}

static void sim_calls_the_hook(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct perf_event *event = get_counting(test, sim, 0);
	unsigned int next = 0;
	const struct pmuk_sim_hook hook = { .fn = note_point, .data = &next };

	pmuk_sim_set_hook(sim, &hook);
	value_of(event);
	pmuk_sim_set_hook(sim, NULL);
	KUNIT_EXPECT_EQ(test, next, PMUK_SIM_DONE + 1);
}

struct where {
	int hardirq, softirq, nmi;
	int cpu;
	int again;
};

static void look_around(void *data)
{
	struct where *where = data;

	where->hardirq = !!in_hardirq();
	where->softirq = !!in_serving_softirq();
	where->nmi = !!in_nmi();
	where->cpu = raw_smp_processor_id();
	if (in_nmi())
		where->again = pmuk_irq_run(PMUK_IRQ_NMI, look_around, NULL);
	else if (in_hardirq())
		where->again = pmuk_irq_run(PMUK_IRQ_HARD, look_around, NULL);
	else if (in_serving_softirq())
		where->again = pmuk_irq_run(PMUK_IRQ_SOFT, look_around, NULL);
}

static void irq_runs_there(struct kunit *test)
{
	enum pmuk_irq_level level = pmuk_test_level(test);
	struct where where = { .cpu = -1 };
	int cpu = pmuk_test_pin_first(test);

	KUNIT_ASSERT_EQ(test, pmuk_irq_run(level, look_around, &where), 0);
	KUNIT_EXPECT_EQ(test, where.cpu, cpu);
	KUNIT_EXPECT_EQ(test, where.nmi, level == PMUK_IRQ_NMI);
	if (level != PMUK_IRQ_NMI)
		KUNIT_EXPECT_EQ(test, where.hardirq, level == PMUK_IRQ_HARD);
	if (level < PMUK_IRQ_HARD)
		KUNIT_EXPECT_EQ(test, where.softirq, level == PMUK_IRQ_SOFT);
	KUNIT_EXPECT_EQ(test, where.again, level == PMUK_IRQ_TASK ? 0 : -EBUSY);
}

static void irq_refuses_what_it_cannot(struct kunit *test)
{
	struct where where;

	KUNIT_EXPECT_EQ(test, pmuk_irq_run(PMUK_IRQ_NMI, look_around, &where), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, pmuk_irq_run(PMUK_IRQ_LEVELS, look_around, &where), -EINVAL);
}

static struct kunit_case pmuk_sim_cases[] = {
	KUNIT_CASE(sim_refuses_bad_config),
	KUNIT_CASE(sim_knows_its_events),
	KUNIT_CASE(sim_keeps_account_of_events),
	KUNIT_CASE(sim_counts_what_happens),
	KUNIT_CASE(sim_counts_on_other_cpus),
	KUNIT_CASE(sim_counts_in_the_kernel_only),
	KUNIT_CASE(sim_wraps),
	KUNIT_CASE(sim_overflows),
	KUNIT_CASE(sim_interrupts_late),
	KUNIT_CASE(sim_can_be_full),
	KUNIT_CASE(sim_counters_can_be_stolen),
	KUNIT_CASE(sim_is_multiplexed),
	KUNIT_CASE(sim_calls_the_hook),
	KUNIT_CASE_PARAM(irq_runs_there, levels_gen_params),
	PMUK_NMI_CASE(irq_runs_there),
	KUNIT_CASE(irq_refuses_what_it_cannot),
	{}
};

PMUK_SUITE(pmuk_sim, pmuk_test_init, "KUnit tests of pmuk's simulated PMU");
