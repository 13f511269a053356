// SPDX-License-Identifier: GPL-2.0
/*
 * The tests let contexts of different ranks want more registers than the simulated PMU has: the
 * lowest give way, are told by whom, keep their counts, and come back.
 */
#include <linux/workqueue.h>

#include "../../kernel/pmu_kapi/context.h"
#include "pmuk_counters.h"
#include "pmuk_ctx.h"
#include "pmuk_suite.h"

#define LOW	PMUK_RANK_BACKGROUND
#define NORMAL	PMUK_RANK_NORMAL
#define HIGH	PMUK_RANK_CRITICAL

/* Returns a context of @nr counters, of events 0 to @nr - 1. */
static struct pmuk_context *ranked_with(struct kunit *test, struct pmuk_sim *sim,
					enum pmuk_rank rank, unsigned int nr, u32 flags)
{
	const struct pmuk_context_attr attr = { .rank = rank };
	struct pmuk_context *ctx = pmuk_ctx_create(test, &attr);
	unsigned int i;

	for (i = 0; i < nr; i++)
		pmuk_ctx_add(test, ctx, sim, 0, i, i, flags);
	return ctx;
}

static struct pmuk_context *ranked(struct kunit *test, struct pmuk_sim *sim, enum pmuk_rank rank,
				   unsigned int nr)
{
	return ranked_with(test, sim, rank, nr, PMUK_PINNED);
}

/* Returns such a context that counts on @cpu, or on all CPUs if @cpu is -1. */
static struct pmuk_context *running(struct kunit *test, struct pmuk_sim *sim, enum pmuk_rank rank,
				    unsigned int nr, int cpu)
{
	struct pmuk_context *ctx = ranked(test, sim, rank, nr);

	pmuk_ctx_run(test, ctx, cpu);
	return ctx;
}

/*
 * Reads all messages. Returns the CPUs on which @ctx has given way. If the load and the start of
 * @to are far apart, @ctx comes back in between.
 */
static unsigned long gave_way(struct kunit *test, struct pmuk_context *ctx, u32 counters,
			      const struct pmuk_context *to)
{
	unsigned long cpus = 0;
	struct pmuk_msg msg;

	while (pmuk_read(ctx, &msg, true) == 1) {
		if (msg.kind == PMUK_MSG_CPU_ONLINE)
			continue;
		KUNIT_EXPECT_EQ(test, msg.kind, PMUK_MSG_COUNTER_LOST);
		KUNIT_EXPECT_EQ(test, msg.counters, counters);
		KUNIT_EXPECT_EQ(test, msg.by, to->id);
		cpus |= BIT(msg.cpu);
	}
	return cpus;
}

static void expect_gave_way(struct kunit *test, struct pmuk_context *ctx, u32 counters, int cpu,
			    const struct pmuk_context *to)
{
	unsigned long here = BIT(cpu);

	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(gave_way(test, ctx, counters, to) == here));
}

/* Expects that @ctx gives way, and comes back. */
static void expect_tried(struct kunit *test, struct pmuk_context *ctx, int cpu,
			 const struct pmuk_context *by)
{
	struct pmuk_msg msg = pmuk_ctx_next(test, ctx);

	KUNIT_EXPECT_EQ(test, msg.kind, PMUK_MSG_COUNTER_LOST);
	KUNIT_EXPECT_EQ(test, msg.cpu, cpu);
	KUNIT_EXPECT_EQ(test, msg.by, by->id);
	msg = pmuk_ctx_next(test, ctx);
	KUNIT_EXPECT_EQ(test, msg.kind, PMUK_MSG_CPU_ONLINE);
	KUNIT_EXPECT_EQ(test, msg.cpu, cpu);
}

static void expect_back(struct kunit *test, struct pmuk_context *ctx, int cpu)
{
	struct pmuk_msg msg = pmuk_ctx_next(test, ctx);

	KUNIT_EXPECT_EQ(test, msg.kind, PMUK_MSG_CPU_ONLINE);
	KUNIT_EXPECT_EQ(test, msg.cpu, cpu);
	KUNIT_EXPECT_EQ(test, msg.by, 0);
}

static void expect_waits(struct kunit *test, struct pmuk_context *ctx, int cpu, u64 count)
{
	pmuk_ctx_expect_pmd(test, ctx, 0, cpu, -EBUSY, count);
}

static const struct pair {
	const char *name;
	enum pmuk_rank low, high;
} pairs[] = {
	{ "background to normal", LOW, NORMAL },
	{ "background to critical", LOW, HIGH },
	{ "normal to critical", NORMAL, HIGH },
};

KUNIT_ARRAY_PARAM_DESC(pairs, pairs, name);

static void lower_gives_way(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	const struct pair *pair = test->param_value;
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *low = running(test, sim, pair->low, 2, cpu), *high;

	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	high = running(test, sim, pair->high, 1, cpu);
	expect_gave_way(test, low, 3, cpu, high);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 7), 7);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 1, 7), 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, high, 0, 0, cpu), 7);
	expect_waits(test, low, cpu, 5);

	KUNIT_EXPECT_EQ(test, pmuk_stop(high), 0);
	expect_back(test, low, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 11), 11);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, low, 0, 0, cpu), 16);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, high, 0, 0, cpu), 7);
	pmuk_ctx_silent(test, high);
	pmuk_ctx_silent(test, low);
}

static const struct pair others[] = {
	{ "background, background", LOW, LOW },
	{ "normal, normal", NORMAL, NORMAL },
	{ "critical, critical", HIGH, HIGH },
	{ "background, normal", LOW, NORMAL },
	{ "normal, critical", NORMAL, HIGH },
};

KUNIT_ARRAY_PARAM_DESC(others, others, name);

/* A context of equal or lower rank gets -ENOSPC from a load, and from a start after a load. */
static void others_do_not_give_way(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	const struct pair *pair = test->param_value;
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *holder = running(test, sim, pair->high, 1, cpu);
	struct pmuk_context *ctx = ranked(test, sim, pair->low, 1);

	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(ctx, cpu), -ENOSPC);
	KUNIT_EXPECT_EQ(test, pmuk_stop(holder), 0);
	pmuk_ctx_load(test, ctx, cpu);
	pmuk_ctx_start(test, holder);
	KUNIT_EXPECT_EQ(test, pmuk_start(ctx, NULL), -ENOSPC);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, holder, 0, 0, cpu), 5);
	pmuk_ctx_silent(test, holder);
	pmuk_ctx_silent(test, ctx);
}

/* The lowest rank gives way first, and of one rank the latest context, and no more than needed. */
static void lowest_and_latest_go_first(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 4, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *early = running(test, sim, LOW, 1, cpu);
	struct pmuk_context *normal = running(test, sim, NORMAL, 1, cpu);
	struct pmuk_context *late = running(test, sim, LOW, 1, cpu);
	struct pmuk_context *equal = running(test, sim, HIGH, 1, cpu);
	struct pmuk_context *one, *more;

	one = running(test, sim, HIGH, 1, cpu);
	expect_gave_way(test, late, 1, cpu, one);
	pmuk_ctx_silent(test, early);
	more = running(test, sim, HIGH, 2, cpu);
	expect_gave_way(test, early, 1, cpu, more);
	expect_gave_way(test, normal, 1, cpu, more);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 15);
	pmuk_ctx_silent(test, equal);

	KUNIT_EXPECT_EQ(test, pmuk_unload_context(more), 0);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(one), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_sim_count(sim, 0, 5) == 20));
}

/* Two lower contexts give way to a higher one, and the smaller of them fits beside it. */
static void comes_back_beside(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 3, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *large, *high;

	running(test, sim, LOW, 1, cpu);
	large = running(test, sim, NORMAL, 2, cpu);
	high = running(test, sim, HIGH, 2, cpu);
	expect_gave_way(test, large, 3, cpu, high);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_sim_count(sim, 0, 5) == 10));
	expect_waits(test, large, cpu, 0);
	pmuk_ctx_silent(test, high);
}

/* A load only tries whether there is room. */
static void load_keeps_none_away(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *low = running(test, sim, LOW, 1, cpu);
	struct pmuk_context *high = ranked(test, sim, HIGH, 1);

	pmuk_ctx_load(test, high, cpu);
	expect_tried(test, low, cpu, high);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	pmuk_ctx_start(test, high);
	expect_gave_way(test, low, 1, cpu, high);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, high, 0, 0, cpu), 5);
}

/* The load of the higher context finds room, which the lower one has taken when it starts. */
static void start_takes_room(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *low = ranked(test, sim, LOW, 1);
	struct pmuk_context *high = ranked(test, sim, HIGH, 1);

	pmuk_ctx_load(test, low, cpu);
	pmuk_ctx_load(test, high, cpu);
	pmuk_ctx_start(test, low);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	pmuk_ctx_start(test, high);
	expect_gave_way(test, low, 1, cpu, high);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 7), 7);
	expect_waits(test, low, cpu, 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, high, 0, 0, cpu), 7);
}

/* The higher context wants more registers than the PMU has. The lower one comes back. */
static void giving_way_in_vain(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *low = running(test, sim, LOW, 1, cpu);
	struct pmuk_context *high = ranked(test, sim, HIGH, 3);

	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(high, cpu), -ENOSPC);
	expect_tried(test, low, cpu, high);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, low, 0, 0, cpu), 5);
}

/* A context gives way only if it counts, pinned, on this PMU and this CPU. */
static void only_holders_give_way(struct kunit *test)
{
	const struct pmuk_sim_config config = { .name = "pmuk_sim2", .nr_counters = 1,
						.width = 32 };
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_sim *sim2 = pmuk_test_sim_config(test, &config);
	int cpu = pmuk_test_pin_first(test), other = pmuk_test_other_cpu(test, cpu);
	struct pmuk_attr attr = { .type = pmuk_sim_type(sim), .flags = PMUK_PINNED };
	struct pmuk_context *low[4], *high = ranked(test, sim, HIGH, 1);
	unsigned int i;

	low[0] = running(test, sim2, LOW, 1, cpu);
	low[1] = running(test, sim, LOW, 1, other);
	low[2] = ranked_with(test, sim, LOW, 1, 0);
	pmuk_ctx_run(test, low[2], cpu);
	low[3] = ranked(test, sim, LOW, 1);
	pmuk_ctx_load(test, low[3], cpu);	/* loaded, and stopped */
	pmuk_test_enabled(test, &attr, cpu, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(high, cpu), -ENOSPC);
	for (i = 0; i < ARRAY_SIZE(low); i++)
		pmuk_ctx_silent(test, low[i]);
}

static void each_cpu_gives_way(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int here = pmuk_test_pin_first(test), cpu;
	struct pmuk_context *low = running(test, sim, LOW, 1, -1);
	struct pmuk_context *high = running(test, sim, HIGH, 1, here);

	expect_gave_way(test, low, 1, here, high);
	for_each_online_cpu(cpu)
		KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(sim, cpu, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, high, 0, 0, -1), 5);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(high), 0);
	expect_back(test, low, here);
	pmuk_ctx_run(test, high, -1);
	KUNIT_EXPECT_EQ(test, gave_way(test, low, 1, high), *cpumask_bits(cpu_online_mask));
	pmuk_ctx_silent(test, low);
}

/*
 * perf core serves pinned counters in the order of their creation. So the lower context, which was
 * loaded first, pushes the higher one out when it starts. The watch of the higher one mends that.
 */
static void older_counters_give_way(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *low = ranked(test, sim, LOW, 1), *high;

	pmuk_ctx_load(test, low, cpu);
	high = running(test, sim, HIGH, 1, cpu);
	pmuk_ctx_start(test, low);
	expect_gave_way(test, low, 1, cpu, high);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_next(test, high).kind, PMUK_MSG_COUNTER_LOST);
	expect_back(test, high, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, high, 0, 0, cpu), 5);
	expect_waits(test, low, cpu, 0);
}

/* The lower context has stopped by the time that the watch of the higher one checks. */
static void older_counters_that_stopped(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *low = ranked(test, sim, LOW, 1), *high;

	pmuk_ctx_load(test, low, cpu);
	high = running(test, sim, HIGH, 1, cpu);
	disable_delayed_work_sync(&high->watch);
	pmuk_ctx_start(test, low);
	KUNIT_EXPECT_EQ(test, pmuk_stop(low), 0);
	enable_delayed_work(&high->watch);
	high->watch.work.func(&high->watch.work);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_next(test, high).kind, PMUK_MSG_COUNTER_LOST);
	expect_back(test, high, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, high, 0, 0, cpu), 5);
	pmuk_ctx_silent(test, low);
}

/* The lower context has pushed out two, and gives way to the first that notices. */
static void older_counters_of_two(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *low = ranked(test, sim, LOW, 2), *normal, *high;

	pmuk_ctx_load(test, low, cpu);
	normal = running(test, sim, NORMAL, 1, cpu);
	high = running(test, sim, HIGH, 1, cpu);
	pmuk_ctx_start(test, low);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_sim_count(sim, 0, 5) == 10));
	KUNIT_EXPECT_GE(test, pmuk_ctx_told(high, PMUK_MSG_COUNTER_LOST), 1);
	KUNIT_EXPECT_GE(test, pmuk_ctx_told(normal, PMUK_MSG_COUNTER_LOST), 1);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_told(low, PMUK_MSG_COUNTER_LOST), 1);
}

/* A context that has lost a counter to others, of another PMU, keeps the counters that it has. */
static void other_losses_stay(struct kunit *test)
{
	const struct pmuk_sim_config config = { .name = "pmuk_sim2", .nr_counters = 1,
						.width = 32 };
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct pmuk_sim *sim2 = pmuk_test_sim_config(test, &config);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *low = ranked(test, sim, LOW, 1);
	struct pmuk_msg msg;

	pmuk_ctx_add(test, low, sim2, 0, 1, 0, PMUK_PINNED);
	pmuk_ctx_run(test, low, cpu);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim2, cpu, 1), 0);
	msg = pmuk_ctx_next(test, low);
	KUNIT_EXPECT_EQ(test, msg.kind, PMUK_MSG_COUNTER_LOST);
	KUNIT_EXPECT_EQ(test, msg.counters, BIT(1));
	KUNIT_EXPECT_EQ(test, msg.by, 0);
	running(test, sim, HIGH, 1, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 10);
	pmuk_ctx_silent(test, low);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim2, cpu, 0), 0);
}

/* The higher context has lost its counter to another user, who has left. */
static void counters_taken_back_push_out(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *high = running(test, sim, HIGH, 1, cpu), *low;

	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_next(test, high).kind, PMUK_MSG_COUNTER_LOST);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 0), 0);
	low = running(test, sim, LOW, 1, cpu);
	expect_back(test, high, cpu);
	expect_gave_way(test, low, 1, cpu, high);
	KUNIT_EXPECT_EQ(test, pmuk_stop(high), 0);
	expect_back(test, low, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
}

/*
 * The normal context waits, and tries again some times a second. It is no use that the low context
 * gives way, so that one does so only once.
 */
static void vain_tries_are_rare(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 4, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *low = running(test, sim, LOW, 1, cpu);
	struct pmuk_context *normal = running(test, sim, NORMAL, 3, cpu);

	running(test, sim, HIGH, 2, cpu);
	expect_waits(test, normal, cpu, 0);
	pmuk_ctx_told(low, PMUK_MSG_COUNTER_LOST);
	msleep(2000);
	KUNIT_EXPECT_LE(test, pmuk_ctx_told(low, PMUK_MSG_COUNTER_LOST), 1);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_sim_count(sim, 0, 5) == 10));
}

static bool was_taken(struct pmuk_context *ctx, const struct pmuk_context *by)
{
	struct pmuk_msg msg;

	return pmuk_read(ctx, &msg, true) == 1 && msg.by == by->id;
}

/* A lower context fits beside set 0 of the higher one, and gives way to set 1, which is larger. */
static void turns_push_out(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *high = ranked(test, sim, HIGH, 1), *low;

	pmuk_ctx_add_set(test, high, 1, 0);
	pmuk_ctx_add(test, high, sim, 1, 0, 0, PMUK_PINNED);
	pmuk_ctx_add(test, high, sim, 1, 1, 1, PMUK_PINNED);
	pmuk_ctx_run(test, high, cpu);
	low = running(test, sim, LOW, 1, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 10);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(high, 1), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(was_taken(low, high)));
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 1, 5), 5);
	pmuk_ctx_silent(test, high);
	KUNIT_EXPECT_EQ(test, pmuk_stop(high), 0);
	expect_back(test, low, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, low, 0, 0, cpu), 10);
}

/* A context that waits gets one message, and no room. It may be stopped, started and closed. */
static void waits_in_peace(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *low = running(test, sim, LOW, 1, cpu);
	struct pmuk_context *high = running(test, sim, HIGH, 1, cpu);

	expect_gave_way(test, low, 1, cpu, high);
	msleep(500);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	pmuk_ctx_silent(test, low);
	pmuk_ctx_silent(test, high);
	KUNIT_EXPECT_EQ(test, pmuk_stop(low), 0);
	KUNIT_EXPECT_EQ(test, pmuk_start(low, NULL), 0);
	expect_waits(test, low, cpu, 0);
	kunit_release_action(test, pmuk_ctx_put, high);
	expect_back(test, low, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	kunit_release_action(test, pmuk_ctx_put, low);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
}

static void no_such_rank(struct kunit *test)
{
	const struct pmuk_context_attr attrs[] = { { .rank = LOW - 1 }, { .rank = HIGH + 1 } };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(attrs); i++)
		KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(pmuk_create_context(&attrs[i])), -EINVAL);
}

static struct kunit_case pmuk_rank_cases[] = {
	KUNIT_CASE_PARAM(lower_gives_way, pairs_gen_params),
	KUNIT_CASE_PARAM(others_do_not_give_way, others_gen_params),
	KUNIT_CASE(lowest_and_latest_go_first),
	KUNIT_CASE(comes_back_beside),
	KUNIT_CASE(load_keeps_none_away),
	KUNIT_CASE(start_takes_room),
	KUNIT_CASE(giving_way_in_vain),
	KUNIT_CASE(only_holders_give_way),
	KUNIT_CASE(each_cpu_gives_way),
	KUNIT_CASE(older_counters_give_way),
	KUNIT_CASE(older_counters_that_stopped),
	KUNIT_CASE(older_counters_of_two),
	KUNIT_CASE(other_losses_stay),
	KUNIT_CASE(counters_taken_back_push_out),
	KUNIT_CASE(vain_tries_are_rare),
	KUNIT_CASE(turns_push_out),
	KUNIT_CASE(waits_in_peace),
	KUNIT_CASE(no_such_rank),
	{}
};

PMUK_SUITE(pmuk_rank, pmuk_test_init, "Tests of pmuk: contexts of lower rank give way");
