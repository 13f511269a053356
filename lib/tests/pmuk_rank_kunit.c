// SPDX-License-Identifier: GPL-2.0
/*
 * The tests let contexts of different ranks want more registers than the simulated PMU has: the
 * lowest give way, are told by whom, keep their counts, and come back.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/workqueue.h>

#include <trace/events/pmu_kapi.h>

#include "../../kernel/pmu_kapi/context.h"
#include "../../kernel/pmu_kapi/instance.h"
#include "../../kernel/pmu_kapi/reserve.h"
#include "pmuk_counters.h"
#include "pmuk_ctx.h"
#include "pmuk_probe.h"
#include "pmuk_suite.h"

#define ALONE	(PMUK_PINNED | PMUK_PRIVATE)	/* the counter takes a register of its own */

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
	return ranked_with(test, sim, rank, nr, ALONE);
}

/* Returns a second PMU, of one register. */
static struct pmuk_sim *second_sim(struct kunit *test)
{
	const struct pmuk_sim_config config = { .name = "pmuk_sim2", .nr_counters = 1,
						.width = 32 };

	return pmuk_test_sim_config(test, &config);
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
	u64 since = pmuk_local_since(low);

	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	high = running(test, sim, pair->high, 1, cpu);
	expect_gave_way(test, low, 3, cpu, high);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 7), 7);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 1, 7), 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, high, 0, 0, cpu), 7);
	expect_waits(test, low, cpu, 5);

	KUNIT_EXPECT_EQ(test, pmuk_stop(high), 0);
	expect_back(test, low, cpu);
	KUNIT_EXPECT_GT(test, pmuk_local_since(low), since);
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

/* Returns a running context of one pinned counter, which is not private. */
static struct pmuk_context *sharing(struct kunit *test, struct pmuk_sim *sim, enum pmuk_rank rank,
				    u64 event, int cpu)
{
	const struct pmuk_context_attr attr = { .rank = rank };
	struct pmuk_context *ctx = pmuk_ctx_create(test, &attr);

	pmuk_ctx_add(test, ctx, sim, 0, 0, event, PMUK_PINNED);
	pmuk_ctx_run(test, ctx, cpu);
	return ctx;
}

/* Lets the context try again now. */
static void try_again(struct pmuk_context *ctx, int cpu)
{
	scoped_guard(mutex, &ctx->lock)
		ctx->insts[cpu]->retry_at = jiffies;
	ctx->watch.work.func(&ctx->watch.work);
}

/*
 * Both low contexts share a register with one whose rank is that of @high: none gives way to @high.
 * When that one has stopped, both low contexts give way. Their host is older than the counter of
 * @high, and must not push out that counter at their retry.
 */
static void sharers_give_way_together(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *low[] = { sharing(test, sim, LOW, 0, cpu),
				       sharing(test, sim, LOW, 0, cpu) };
	struct pmuk_context *equal = sharing(test, sim, NORMAL, 0, cpu);
	struct pmuk_context *high = pmuk_ctx_create(test, NULL);

	pmuk_ctx_add(test, high, sim, 0, 0, 1, PMUK_PINNED);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(high, cpu), -ENOSPC);
	pmuk_ctx_silent(test, low[0]);
	pmuk_ctx_silent(test, low[1]);

	KUNIT_EXPECT_EQ(test, pmuk_stop(equal), 0);
	pmuk_ctx_run(test, high, cpu);
	expect_gave_way(test, low[0], 1, cpu, high);
	expect_gave_way(test, low[1], 1, cpu, high);
	try_again(low[0], cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 1, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, high, 0, 0, cpu), 5);
	pmuk_ctx_silent(test, high);
	pmuk_ctx_silent(test, low[0]);

	KUNIT_EXPECT_EQ(test, pmuk_stop(high), 0);
	expect_back(test, low[0], cpu);
	expect_back(test, low[1], cpu);
}

/*
 * A context of the rank of @high shares one of the two registers of @low. The other register is
 * enough for @high, so @low gives way and loses both counters.
 */
static void partial_sharers_give_way(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *low = ranked_with(test, sim, LOW, 1, PMUK_PINNED), *high;

	pmuk_ctx_add(test, low, sim, 0, 1, 1, ALONE);
	pmuk_ctx_run(test, low, cpu);
	sharing(test, sim, NORMAL, 0, cpu);
	high = sharing(test, sim, NORMAL, 2, cpu);
	expect_gave_way(test, low, 3, cpu, high);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 2, 7), 7);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, high, 0, 0, cpu), 7);
}

/*
 * @late has joined the host of @first, which is stopped. The start of @late must not push out
 * @other, although the host is older than the counter of @other.
 */
static void joiners_push_out_nobody(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *first = ranked_with(test, sim, NORMAL, 1, PMUK_PINNED);
	struct pmuk_context *late = ranked_with(test, sim, NORMAL, 1, PMUK_PINNED), *other;

	pmuk_ctx_load(test, first, cpu);
	pmuk_ctx_load(test, late, cpu);
	other = running(test, sim, NORMAL, 1, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_start(late, NULL), -ENOSPC);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, other, 0, 0, cpu), 5);
	KUNIT_EXPECT_EQ(test, pmuk_stop(other), 0);
	KUNIT_EXPECT_EQ(test, pmuk_start(late, NULL), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 7), 7);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, late, 0, 0, cpu), 7);
}

/*
 * @late has joined the host of @first, which is stopped. Set 1 of @late takes the last register by
 * its first counter, so its second one is refused. A restart tries that one again, and must not
 * push out @other, although the host is older than the counter of @other.
 */
static void refused_counters_push_out_nobody(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *first = ranked_with(test, sim, NORMAL, 1, PMUK_PINNED);
	struct pmuk_context *late = ranked_with(test, sim, NORMAL, 1, 0), *other;
	struct pmuk_pmd_read read = { .set = 1, .num = 1, .cpu = cpu };

	pmuk_ctx_load(test, first, cpu);
	pmuk_ctx_add_set(test, late, 1, 0);
	pmuk_ctx_add(test, late, sim, 1, 0, 1, ALONE);
	pmuk_ctx_add(test, late, sim, 1, 1, 0, PMUK_PINNED);
	pmuk_ctx_load(test, late, cpu);
	other = running(test, sim, NORMAL, 1, cpu);
	pmuk_ctx_start(test, late);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(late, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_read_pmds(late, &read, 1), 0);
	KUNIT_EXPECT_EQ(test, read.ret, -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_restart(late), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, other, 0, 0, cpu), 5);
	pmuk_ctx_silent(test, other);
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

/* A load only tries whether there is room. Nothing has failed if it finds room after a while. */
static void load_keeps_none_away(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *low = running(test, sim, LOW, 1, cpu);
	struct pmuk_context *high = ranked(test, sim, HIGH, 1);
	struct pmuk_target target = { .cpu = cpu, .failed_cpu = 77 };

	KUNIT_ASSERT_EQ(test, pmuk_load_context(high, &target), 0);
	KUNIT_EXPECT_EQ(test, target.failed_cpu, 77);
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
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_sim *sim2 = second_sim(test);
	int cpu = pmuk_test_pin_first(test), other = pmuk_test_other_cpu(test, cpu);
	struct pmuk_attr attr = { .type = pmuk_sim_type(sim), .flags = ALONE };
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

/*
 * perf core places no counter that is younger than one that finds no register. So the start of the
 * higher context, which fails on each CPU, takes the register of the lower one there. The lower
 * one gets it back.
 */
static void older_counters_that_fail(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct pmuk_context *high = ranked(test, sim, NORMAL, 2);
	int cpu;

	pmuk_ctx_load(test, high, -1);
	running(test, sim, LOW, 1, -1);
	for_each_online_cpu(cpu) {
		KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 1), 0);
		KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(sim, cpu, 0, 5), 5);
	}
	KUNIT_EXPECT_EQ(test, pmuk_start(high, NULL), -ENOSPC);
	for_each_online_cpu(cpu)
		KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_sim_count_on(sim, cpu, 0, 5) == 5));
}

/*
 * The higher context's first counter pushes out that of the youngest context. The oldest context
 * gives way, so that the second counter finds room. Both report that they gave way.
 */
static void older_and_younger_give_way(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *old = ranked(test, sim, LOW, 1);
	struct pmuk_context *high = ranked(test, sim, HIGH, 2), *young;

	pmuk_ctx_load(test, old, cpu);
	pmuk_ctx_load(test, high, cpu);
	pmuk_ctx_start(test, old);
	young = running(test, sim, LOW, 1, cpu);
	disable_delayed_work_sync(&young->watch);
	pmuk_ctx_start(test, high);
	enable_delayed_work(&young->watch);
	expect_gave_way(test, old, 1, cpu, high);
	expect_gave_way(test, young, 1, cpu, high);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 1, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
}

/* A context that has lost a counter to others, of another PMU, keeps the counters that it has. */
static void other_losses_stay(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct pmuk_sim *sim2 = second_sim(test);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *low = ranked(test, sim, LOW, 1);
	struct pmuk_msg msg;

	pmuk_ctx_add(test, low, sim2, 0, 1, 0, ALONE);
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
static void counters_are_taken_back_by_rank(struct kunit *test)
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
 * The counter of @ctx, the youngest on @cpu, loses its register for a moment. The watch of @ctx
 * does not run meanwhile.
 */
static void lose_for_a_moment(struct kunit *test, struct pmuk_sim *sim, struct pmuk_context *ctx,
			      int cpu)
{
	disable_delayed_work_sync(&ctx->watch);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 1), 0);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 0), 0);
}

/* Expects that the watch of @ctx notices the loss, and takes the counter back. */
static void expect_recovers(struct kunit *test, struct pmuk_context *ctx, int cpu)
{
	enable_delayed_work(&ctx->watch);
	ctx->watch.work.func(&ctx->watch.work);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_next(test, ctx).kind, PMUK_MSG_COUNTER_LOST);
	expect_back(test, ctx, cpu);
}

/*
 * A counter without a context has taken the register that the higher context lost, and is the
 * youngest. It keeps the register: the context of lower rank gives way.
 */
static void counters_taken_back_are_of_lower_rank(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	const struct pmuk_attr attr = { .type = pmuk_sim_type(sim), .config = 2, .flags = ALONE };
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *low = running(test, sim, LOW, 1, cpu);
	struct pmuk_context *high = running(test, sim, HIGH, 1, cpu);
	struct pmuk_counter *c;

	lose_for_a_moment(test, sim, high, cpu);
	c = pmuk_test_enabled(test, &attr, cpu, NULL);
	expect_recovers(test, high, cpu);
	expect_gave_way(test, low, 1, cpu, high);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 2, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, high, 0, 0, cpu), 5);
}

/* While the watch looks for room, the set that has lost a counter is exchanged for another one. */
static void counters_of_a_past_turn_are_not_back(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = ranked(test, sim, HIGH, 1);
	struct pmuk_inst *inst;

	pmuk_ctx_add_set(test, ctx, 1, 0);
	pmuk_ctx_add(test, ctx, sim, 1, 0, 1, 0);
	pmuk_ctx_run(test, ctx, cpu);
	inst = ctx->insts[cpu];
	disable_delayed_work_sync(&ctx->watch);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 1), 0);
	scoped_guard(mutex, &ctx->lock) {
		KUNIT_EXPECT_TRUE(test, pmuk_inst_has_lost(inst));
		KUNIT_EXPECT_EQ(test, pmuk_inst_reclaim(inst), -ENOSPC);
	}
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(ctx, 1), 0);
	scoped_guard(mutex, &ctx->lock)
		KUNIT_EXPECT_EQ(test, pmuk_inst_reclaim(inst), -EAGAIN);
	enable_delayed_work(&ctx->watch);
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
	pmuk_ctx_add(test, high, sim, 1, 0, 0, ALONE);
	pmuk_ctx_add(test, high, sim, 1, 1, 1, ALONE);
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

/* Returns how many of the PMU's registers nobody has or has reserved. */
static int room(struct pmuk_sim *sim, int cpu)
{
	struct pmuk_attr attrs[8] = {};
	unsigned int i;
	u32 fits;

	for (i = 0; i < ARRAY_SIZE(attrs); i++) {
		attrs[i].type = pmuk_sim_type(sim);
		attrs[i].flags = PMUK_PRIVATE;
	}
	return pmuk_room(attrs, ARRAY_SIZE(attrs), cpu, &fits);
}

/* ---- events of others ---- */

static struct pmuk_context *yielding(struct kunit *test, struct pmuk_sim *sim, unsigned int nr,
				     u32 flags, int cpu)
{
	const struct pmuk_context_attr attr = { .rank = LOW, .flags = PMUK_CTX_YIELD };
	struct pmuk_context *ctx;
	unsigned int i;

	if (!PMUK_SEES_WAITERS)
		kunit_skip(test, "this kernel's perf core does not tell that others wait");
	ctx = pmuk_ctx_create(test, &attr);
	for (i = 0; i < nr; i++)
		pmuk_ctx_add(test, ctx, sim, 0, i, i, flags | PMUK_PINNED);
	pmuk_ctx_run(test, ctx, cpu);
	return ctx;
}

/* Returns an event that takes turns with others, of @cpu, or of this task if @cpu is -1. */
static struct pmuk_counter *flexible(struct kunit *test, struct pmuk_sim *sim, int cpu)
{
	const struct pmuk_attr attr = { .type = pmuk_sim_type(sim), .config = 7 };

	return pmuk_test_enabled(test, &attr, cpu, cpu < 0 ? current : NULL);
}

static void expect_yielded(struct kunit *test, struct pmuk_context *ctx, int cpu)
{
	struct pmuk_msg msg = pmuk_ctx_next(test, ctx);

	KUNIT_EXPECT_EQ(test, msg.kind, PMUK_MSG_COUNTER_LOST);
	KUNIT_EXPECT_EQ(test, msg.cpu, cpu);
	KUNIT_EXPECT_EQ(test, msg.by, PMUK_BY_PERF);
}

/* The event counts for as long as it is there, and the context counts again when it has gone. */
static void expect_yields_to(struct kunit *test, struct pmuk_sim *sim, struct pmuk_context *ctx,
			     int cpu, int event_cpu)
{
	struct pmuk_counter *event;

	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	event = flexible(test, sim, event_cpu);
	expect_yielded(test, ctx, cpu);
	expect_waits(test, ctx, cpu, 5);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_sim_count(sim, 7, 5) == 5));
	pmuk_test_expect_count(test, event, 5);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(event), 0);
	try_again(ctx, cpu);
	expect_back(test, ctx, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 7), 7);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, cpu), 12);
	pmuk_ctx_silent(test, ctx);
}

static void yields_to_events_of_a_cpu(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);

	expect_yields_to(test, sim, yielding(test, sim, 2, 0, cpu), cpu, cpu);
}

static void yields_to_events_of_a_task(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);

	expect_yields_to(test, sim, yielding(test, sim, 2, 0, cpu), cpu, -1);
}

/* The register gets free only if all that share it yield. */
static void yields_with_all_riders(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = yielding(test, sim, 1, 0, cpu);
	const struct pmuk_attr attr = { .type = pmuk_sim_type(sim),
					.flags = PMUK_PINNED };
	struct pmuk_counter *rider = pmuk_test_enabled(test, &attr, cpu, NULL), *event;

	event = flexible(test, sim, cpu);
	msleep(500);
	pmuk_ctx_silent(test, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(event), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(rider), 0);
	expect_yields_to(test, sim, ctx, cpu, cpu);
}

/* In the first call, the watches of other contexts have the time for several checks. */
static void yield_slowly(void *data, u64 id, int cpu, u64 to)
{
	if (to == PMUK_BY_PERF && !atomic_fetch_inc(data))
		mdelay(500);
}

/*
 * No more contexts give way than needed. The first one takes long, and perf core finds meanwhile
 * that the event still waits.
 */
static void one_yields_at_a_time(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 3, 32);
	int cpu = pmuk_test_pin_first(test);
	atomic_t *yields = pmuk_test_zalloc(test, sizeof(*yields));
	struct pmuk_context *ctx[3];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ctx); i++)
		ctx[i] = yielding(test, sim, 1, PMUK_PRIVATE, cpu);
	if (IS_MODULE(CONFIG_PMU_KAPI))
		kunit_skip(test, "a probe does not find the tracepoints of a module");
	check_trace_callback_type_pmuk_give_way(yield_slowly);
	pmuk_test_probe(test, "pmuk_give_way", yield_slowly, yields);
	flexible(test, sim, cpu);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_sim_count(sim, 7, 1) == 1));
	msleep(500);
	KUNIT_EXPECT_EQ(test, atomic_read(yields), 1);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 10);
}

/* A context that has come back too early tries less often. */
static void yields_for_longer(struct kunit *test)
{
	static const unsigned long pauses[] = { 10 * HZ, 20 * HZ, 40 * HZ, 60 * HZ, 60 * HZ };
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = yielding(test, sim, 1, 0, cpu);
	struct pmuk_counter *event = flexible(test, sim, cpu);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(pauses); i++) {
		if (i) {
			/* The pause has long ended, and all tries since then have failed. */
			scoped_guard(mutex, &ctx->lock)
				ctx->insts[cpu]->yield_until = jiffies - 1000 * HZ;
			try_again(ctx, cpu);
			expect_back(test, ctx, cpu);
		}
		expect_yielded(test, ctx, cpu);
		scoped_guard(mutex, &ctx->lock)
			KUNIT_EXPECT_EQ(test, ctx->insts[cpu]->yield_pause, pauses[i]);
	}
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_sim_count(sim, 7, 5) == 5));
	pmuk_test_expect_count(test, event, 5);
}

/* The context counts for long after its pause. It then gives way to another, which is no matter. */
static void yields_anew_after_long(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = yielding(test, sim, 1, 0, cpu), *high;
	struct pmuk_counter *event = flexible(test, sim, cpu);

	expect_yielded(test, ctx, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(event), 0);
	try_again(ctx, cpu);
	expect_back(test, ctx, cpu);
	scoped_guard(mutex, &ctx->lock)
		ctx->insts[cpu]->yield_until = jiffies - 1000 * HZ;
	high = running(test, sim, HIGH, 1, cpu);
	expect_gave_way(test, ctx, 1, cpu, high);
	KUNIT_EXPECT_EQ(test, pmuk_stop(high), 0);
	expect_back(test, ctx, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(event), 0);
	expect_yielded(test, ctx, cpu);
	scoped_guard(mutex, &ctx->lock)
		KUNIT_EXPECT_EQ(test, ctx->insts[cpu]->yield_pause, 10 * HZ);
}

/* A start and stop of a higher context do not bring back a context that has yielded. */
static void yields_through_recalls(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = yielding(test, sim, 2, 0, cpu), *high;

	flexible(test, sim, cpu);
	expect_yielded(test, ctx, cpu);
	high = running(test, sim, HIGH, 2, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_stop(high), 0);
	msleep(1000);
	pmuk_ctx_silent(test, ctx);
	expect_waits(test, ctx, cpu, 0);
}

/* Another CPU comes or goes, which makes no room on this CPU. */
static void yields_through_hotplug(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = yielding(test, sim, 2, 0, cpu);

	flexible(test, sim, cpu);
	expect_yielded(test, ctx, cpu);
	ctx->hotplug.func(&ctx->hotplug);
	pmuk_ctx_silent(test, ctx);
	expect_waits(test, ctx, cpu, 0);
}

/* The context does not yield before the trial has ended, however long the trial takes. */
static void yields_after_a_trial(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = yielding(test, sim, 1, 0, cpu);

	scoped_guard(mutex, pmuk_trial_lock(cpu)) {
		flexible(test, sim, cpu);
		msleep(500);
		pmuk_ctx_silent(test, ctx);
	}
	expect_yielded(test, ctx, cpu);
}

struct slow_trial {
	struct kunit *test;
	struct pmuk_sim *sim;
	struct pmuk_context *ctx;
	int cpu;
	u32 calls;
};

/* The driver takes long for the second event, which is the one that is tried. */
static int take_long(const struct perf_event_attr *attr, void *data)
{
	struct slow_trial *slow = data;

	if (!slow->ctx || ++slow->calls != 2)
		return 0;
	flexible(slow->test, slow->sim, slow->cpu);
	msleep(500);
	pmuk_ctx_silent(slow->test, slow->ctx);
	return 0;
}

/* pmuk_counter_create() tries a counter without pmuk_trial_lock(). */
static void yields_after_a_counters_trial(struct kunit *test)
{
	struct slow_trial *slow = pmuk_test_zalloc(test, sizeof(*slow));
	const struct pmuk_sim_config config = { .name = "pmuk_sim", .nr_counters = 1, .width = 32,
						.event_init = take_long, .data = slow };
	struct pmuk_sim *sim = pmuk_test_sim_config(test, &config);
	const struct pmuk_attr attr = { .type = pmuk_sim_type(sim), .config = 1,
					.flags = PMUK_PINNED };
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = yielding(test, sim, 1, 0, cpu);

	*slow = (struct slow_trial){ .test = test, .sim = sim, .ctx = ctx, .cpu = cpu };
	pmuk_test_refused(test, &attr, cpu, NULL, -ENOSPC, "a counter without room");
	KUNIT_EXPECT_GE(test, slow->calls, 3);
	expect_yielded(test, ctx, cpu);
}

/* Each counter takes the event's register for a moment, and the event has to wait until then. */
static void yields_to_no_moment(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = yielding(test, sim, 1, 0, cpu);
	const struct pmuk_attr attr = { .type = pmuk_sim_type(sim), .config = 1, .flags = ALONE };
	struct pmuk_counter *c = pmuk_test_counter(test, &attr, cpu, NULL);
	unsigned int i;

	flexible(test, sim, cpu);
	disable_delayed_work_sync(&ctx->watch);
	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
		KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
		KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_sim_count(sim, 7, 1) == 1));
		ctx->watch.work.func(&ctx->watch.work);
		ctx->watch.work.func(&ctx->watch.work);
	}
	enable_delayed_work(&ctx->watch);
	pmuk_ctx_silent(test, ctx);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_sim_count(sim, 7, 5) == 5));
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
}

/* Events of contexts, its own included, wait for no context. */
static void yields_to_no_context(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = yielding(test, sim, 1, 0, cpu), *other;

	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
	pmuk_ctx_add(test, ctx, sim, 0, 1, 1, 0);
	pmuk_ctx_run(test, ctx, cpu);
	other = ranked_with(test, sim, NORMAL, 1, 0);
	pmuk_ctx_run(test, other, cpu);
	msleep(500);
	pmuk_ctx_silent(test, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
}

/* A context without the flag keeps its counters, and events of others wait. */
static void others_do_not_yield(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *low = running(test, sim, LOW, 1, cpu);
	struct pmuk_counter *event = flexible(test, sim, cpu);

	msleep(500);
	pmuk_ctx_silent(test, low);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(event), PMUK_COUNTER_WAITING);
}

/* Only background contexts on CPUs yield, where perf core has what they need. */
static void yield_is_checked(struct kunit *test)
{
	struct pmuk_context_attr attr = { .flags = PMUK_CTX_YIELD, .rank = NORMAL };
	struct pmuk_target target = { .type = PMUK_TARGET_TASK, .task = current };
	struct pmuk_context *ctx = pmuk_create_context(&attr);

	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(ctx), -EINVAL);
	attr.rank = LOW;
	attr.flags |= PMUK_CTX_RESERVE;
	ctx = pmuk_create_context(&attr);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(ctx), -EINVAL);
	attr.flags = PMUK_CTX_YIELD;
	ctx = pmuk_create_context(&attr);
	if (!PMUK_SEES_WAITERS) {
		KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(ctx), -EOPNOTSUPP);
		return;
	}
	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &target), -EOPNOTSUPP);
	target.type = PMUK_TARGET_TREE;
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &target), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, pmuk_close(ctx), 0);
}

/* ---- reservations ---- */

/* Expects that @cond comes true before the worker of reservations runs by itself. */
#define EXPECT_SOON(test, cond)	\
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes_within(cond, PMUK_CTX_PATIENCE / 2))

static struct pmuk_context *reserving_with(struct kunit *test, struct pmuk_sim *sim,
					   enum pmuk_rank rank, unsigned int nr, u32 flags)
{
	const struct pmuk_context_attr attr = { .rank = rank, .flags = PMUK_CTX_RESERVE };
	struct pmuk_context *ctx = pmuk_ctx_create(test, &attr);
	unsigned int i;

	for (i = 0; i < nr; i++)
		pmuk_ctx_add(test, ctx, sim, 0, i, i, flags);
	return ctx;
}

/* Returns a context that is loaded, and has reserved @nr registers on @cpu; -1: on all CPUs. */
static struct pmuk_context *reserving(struct kunit *test, struct pmuk_sim *sim,
				      enum pmuk_rank rank, unsigned int nr, int cpu)
{
	struct pmuk_context *ctx = reserving_with(test, sim, rank, nr, ALONE);

	pmuk_ctx_load(test, ctx, cpu);
	return ctx;
}

/* Contexts of the same rank, counters without a context, and perf's users get what is left. */
static void reserved_room_is_kept(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 4, 32);
	struct pmuk_attr attr = { .type = pmuk_sim_type(sim), .flags = ALONE };
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = reserving(test, sim, NORMAL, 2, cpu);
	struct pmuk_context *equal = ranked(test, sim, NORMAL, 3);

	KUNIT_EXPECT_EQ(test, room(sim, cpu), 2);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(equal, cpu), -ENOSPC);
	running(test, sim, NORMAL, 1, cpu);
	pmuk_test_enabled(test, &attr, cpu, NULL);
	pmuk_test_refused(test, &attr, cpu, NULL, -ENOSPC, "a counter without a context");
	KUNIT_EXPECT_EQ(test, room(sim, cpu), 0);
	pmuk_ctx_start(test, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 1, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 1, cpu), 5);
	KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
	KUNIT_EXPECT_EQ(test, room(sim, cpu), 0);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
	KUNIT_EXPECT_EQ(test, room(sim, cpu), 2);
	pmuk_ctx_silent(test, ctx);
}

/* The context of higher rank borrows before it finds that its own register is free. */
static void recovery_returns_what_was_lent(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *high;

	reserving(test, sim, NORMAL, 1, cpu);
	high = running(test, sim, HIGH, 1, cpu);
	lose_for_a_moment(test, sim, high, cpu);
	expect_recovers(test, high, cpu);
	EXPECT_SOON(test, pmuk_nr_counters() == 3);
	KUNIT_EXPECT_EQ(test, room(sim, cpu), 0);
	pmuk_sim_count(sim, 0, 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, high, 0, 0, cpu), 5);
}

/* @second has lent its registers, and wants to reserve them again when @first stops. */
static void stopped_context_reserves_first(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 4, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *first = reserving(test, sim, NORMAL, 2, cpu);
	unsigned int i;

	pmuk_ctx_start(test, first);
	reserving(test, sim, NORMAL, 2, cpu);
	running(test, sim, HIGH, 2, cpu);
	for (i = 0; i < 20; i++) {
		KUNIT_EXPECT_EQ(test, pmuk_stop(first), 0);
		pmuk_reserve_flush();
		KUNIT_ASSERT_EQ(test, pmuk_start(first, NULL), 0);
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 1, 5), 10);
	}
}

static void lower_ranks_borrow(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	const struct pair *pair = test->param_value;
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *high = reserving(test, sim, pair->high, 2, cpu);
	struct pmuk_context *low = running(test, sim, pair->low, 2, cpu);

	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, low, 0, 0, cpu), 5);
	pmuk_ctx_start(test, high);
	expect_gave_way(test, low, 3, cpu, high);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 7), 7);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, high, 0, 0, cpu), 7);
	expect_waits(test, low, cpu, 5);
	KUNIT_EXPECT_EQ(test, pmuk_stop(high), 0);
	expect_back(test, low, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 11), 11);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, low, 0, 0, cpu), 16);
	pmuk_ctx_silent(test, high);
}

/* A higher context takes no more of what a lower one has reserved than it needs. */
static void higher_ranks_take(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	const struct pair *pair = test->param_value;
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *high;

	reserving(test, sim, pair->low, 2, cpu);
	high = running(test, sim, pair->high, 1, cpu);
	pmuk_sim_count(sim, 0, 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, high, 0, 0, cpu), 5);
	KUNIT_EXPECT_EQ(test, room(sim, cpu), 0);
	pmuk_ctx_silent(test, high);
}

/* A lower context has borrowed the registers, and a context of the same rank gets none of them. */
static void equals_get_nothing_lent(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = reserving(test, sim, NORMAL, 2, cpu);
	struct pmuk_context *low[2], *equal = ranked(test, sim, NORMAL, 1);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(low); i++)
		low[i] = running(test, sim, LOW, 1, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 10);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(equal, cpu), -ENOSPC);
	pmuk_ctx_start(test, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 1, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 1, cpu), 5);
	for (i = 0; i < ARRAY_SIZE(low); i++)
		expect_waits(test, low[i], cpu, 5);
}

/* Registers that a reservation has borrowed do not get to a context of the lender's rank. */
static void equals_get_nothing_lent_twice(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *equal = ranked(test, sim, NORMAL, 1);

	reserving(test, sim, NORMAL, 1, cpu);
	reserving(test, sim, HIGH, 1, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(equal, cpu), -ENOSPC);
	EXPECT_SOON(test, room(sim, cpu) == 0);
}

/* A load borrows registers for its trial. */
static void loads_borrow_for_a_moment(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *small = ranked(test, sim, LOW, 2), *large = ranked(test, sim, LOW, 3);

	reserving(test, sim, NORMAL, 2, cpu);
	pmuk_ctx_load(test, small, cpu);
	EXPECT_SOON(test, room(sim, cpu) == 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(large, cpu), -ENOSPC);
	EXPECT_SOON(test, room(sim, cpu) == 0);
}

/* Older counters come first. When they stop, the registers are reserved again. */
static void older_counters_get_reserved_room(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *older = ranked(test, sim, NORMAL, 1);

	pmuk_ctx_load(test, older, cpu);
	reserving(test, sim, NORMAL, 2, cpu);
	pmuk_ctx_start(test, older);
	pmuk_sim_count(sim, 0, 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, older, 0, 0, cpu), 5);
	EXPECT_SOON(test, pmuk_nr_counters() == 1 + 2 + 1);	/* contexts' own, and reserved */
	KUNIT_EXPECT_EQ(test, pmuk_stop(older), 0);
	EXPECT_SOON(test, room(sim, cpu) == 0);
}

/* A running task keeps its pinned event, and the reservation is made when it is not there. */
static void reserves_nothing_of_tasks(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct perf_event *event = pmuk_test_pinned_event(test, sim, 1);
	int cpu = pmuk_test_pin_first(test);

	reserving(test, sim, NORMAL, 1, cpu);
	KUNIT_EXPECT_EQ(test, event->state, PERF_EVENT_STATE_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 1, 5), 5);
}

/* When the borrower stops, nobody else gets what was lent. */
static void lent_room_comes_back(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *low;

	reserving(test, sim, NORMAL, 1, cpu);
	low = running(test, sim, LOW, 1, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	EXPECT_SOON(test, pmuk_nr_counters() == 2);
	KUNIT_EXPECT_EQ(test, pmuk_stop(low), 0);
	EXPECT_SOON(test, pmuk_nr_counters() == 3);
	KUNIT_EXPECT_EQ(test, room(sim, cpu), 0);
	pmuk_ctx_silent(test, low);
}

/* Only what the borrower lacks is lent. */
static void only_what_helps_is_lent(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct pmuk_sim *sim2 = second_sim(test);
	int cpu = pmuk_test_pin_first(test), other = pmuk_test_other_cpu(test, cpu);
	struct pmuk_context *low = ranked(test, sim, LOW, 1);

	reserving(test, sim, HIGH, 1, other);
	reserving(test, sim, HIGH, 1, cpu);
	reserving(test, sim, NORMAL, 1, cpu);
	reserving(test, sim2, HIGH, 1, cpu);
	pmuk_ctx_run(test, low, cpu);
	KUNIT_EXPECT_EQ(test, room(sim2, cpu), 0);
	KUNIT_EXPECT_EQ(test, room(sim, other), 1);
	KUNIT_EXPECT_EQ(test, room(sim, cpu), 0);
	EXPECT_SOON(test, pmuk_nr_counters() == 2 * 4);
}

/* Room is kept for the set whose turn comes first. */
static void reserves_for_the_next_set(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 4, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = reserving_with(test, sim, NORMAL, 1, ALONE);
	unsigned int i;

	pmuk_ctx_add(test, ctx, sim, 0, 1, 1, 0);	/* not pinned: needs no room */
	pmuk_ctx_add_set(test, ctx, 1, 0);
	for (i = 0; i < 3; i++)
		pmuk_ctx_add(test, ctx, sim, 1, i, i, ALONE);
	pmuk_ctx_load(test, ctx, cpu);
	KUNIT_EXPECT_EQ(test, room(sim, cpu), 3);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(ctx, 1), 0);
	KUNIT_EXPECT_EQ(test, room(sim, cpu), 1);
	pmuk_ctx_start(test, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(ctx, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
	KUNIT_EXPECT_EQ(test, room(sim, cpu), 3);
}

/* A reservation shares registers, too. */
static void reserves_a_shared_register(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	const struct pmuk_attr attr = { .type = pmuk_sim_type(sim),
					.flags = PMUK_PINNED };
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = reserving_with(test, sim, NORMAL, 1, PMUK_PINNED);
	struct pmuk_counter *c = pmuk_test_enabled(test, &attr, cpu, NULL);

	pmuk_ctx_load(test, ctx, cpu);
	KUNIT_EXPECT_EQ(test, room(sim, cpu), 1);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	KUNIT_EXPECT_EQ(test, room(sim, cpu), 1);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
	KUNIT_EXPECT_EQ(test, room(sim, cpu), 2);
}

/* The start's counter is precise, and cannot share with one that is not. */
static void reserves_what_the_start_needs(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	const struct pmuk_attr attr = { .type = pmuk_sim_type(sim), .flags = PMUK_PINNED };
	struct pmuk_pmc pmc = { .type = pmuk_sim_type(sim), .flags = PMUK_PINNED, .precise_ip = 1 };
	const struct pmuk_pmd pmd = { .short_reset = 1000, .long_reset = 1000 };
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = reserving_with(test, sim, NORMAL, 0, 0);

	pmuk_test_enabled(test, &attr, cpu, NULL);
	KUNIT_ASSERT_EQ(test, pmuk_write_pmcs(ctx, &pmc, 1), 1);
	pmuk_ctx_write_pmd(test, ctx, &pmd);
	pmuk_ctx_load(test, ctx, cpu);
	KUNIT_EXPECT_EQ(test, room(sim, cpu), 0);
	pmuk_ctx_start(test, ctx);
}

/* The context has no counters after it gave way, and reserves what its start will need. */
static void reserves_after_giving_way(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = reserving_with(test, sim, LOW, 1, PMUK_PINNED), *high;

	pmuk_ctx_run(test, ctx, cpu);
	high = running(test, sim, HIGH, 1, cpu);
	expect_gave_way(test, ctx, 1, cpu, high);
	KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_stop(high), 0);
	EXPECT_SOON(test, room(sim, cpu) == 0);
}

/*
 * The counter of @oldest is off, and belongs to the host that the reservation uses. The worker that
 * takes back what was lent must not push out the younger borrower.
 */
static void borrowers_keep_what_they_have(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *oldest = ranked_with(test, sim, NORMAL, 1, PMUK_PINNED);
	struct pmuk_context *ctx = reserving_with(test, sim, HIGH, 1, PMUK_PINNED), *low;

	pmuk_ctx_load(test, oldest, cpu);
	pmuk_ctx_load(test, ctx, cpu);
	low = sharing(test, sim, LOW, 1, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(ranked(test, sim, LOW, 1), cpu), -ENOSPC);
	pmuk_reserve_flush();	/* after such a failure, the worker runs */
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 1, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, low, 0, 0, cpu), 5);
	pmuk_ctx_silent(test, low);
}

/* A reservation does not lend a register that @low shares, as it would not get free. */
static void only_what_gets_free_is_lent(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = reserving_with(test, sim, HIGH, 2, PMUK_PINNED);
	struct pmuk_context *low = sharing(test, sim, LOW, 0, cpu);
	struct pmuk_context *normal = ranked_with(test, sim, NORMAL, 0, 0);

	pmuk_ctx_add(test, normal, sim, 0, 0, 2, PMUK_PINNED);
	pmuk_ctx_load(test, ctx, cpu);
	pmuk_ctx_load(test, normal, cpu);
	/* The contexts have four counters. After the trial, two registers are reserved again. */
	EXPECT_SOON(test, pmuk_nr_counters() == 4 + 2);
	pmuk_ctx_start(test, normal);
	EXPECT_SOON(test, pmuk_nr_counters() == 4 + 1);
	pmuk_ctx_silent(test, low);
}

/* Two reservations share a register, and both have to lend it. */
static void reservations_lend_together(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx[] = { reserving_with(test, sim, NORMAL, 1, PMUK_PINNED),
				       reserving_with(test, sim, HIGH, 1, PMUK_PINNED) };
	struct pmuk_context *equal = ranked(test, sim, NORMAL, 1), *low;

	pmuk_ctx_load(test, ctx[0], cpu);
	pmuk_ctx_load(test, ctx[1], cpu);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(equal, cpu), -ENOSPC);
	low = sharing(test, sim, LOW, 1, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 1, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, low, 0, 0, cpu), 5);
}

static const struct reserver {
	const char *name;
	enum pmuk_rank rank;
} reservers[] = {
	{ "background", LOW },
	{ "normal", NORMAL },
	{ "critical", HIGH },
};

KUNIT_ARRAY_PARAM_DESC(reservers, reservers, name);

/*
 * A context shares its register with a reservation. If the reservation has the rank of the context
 * that needs the register, giving way does not help. Otherwise the context gives way, and the
 * reservation lends the register.
 */
static void sharers_give_way_with_reservations(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	const struct reserver *reserver = test->param_value;
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *reserve = reserving_with(test, sim, reserver->rank, 1, PMUK_PINNED);
	struct pmuk_context *low = sharing(test, sim, LOW, 0, cpu);
	struct pmuk_context *ctx = ranked_with(test, sim, NORMAL, 1, ALONE);

	pmuk_ctx_load(test, reserve, cpu);
	if (reserver->rank == NORMAL) {
		KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(ctx, cpu), -ENOSPC);
	} else {
		pmuk_ctx_run(test, ctx, cpu);
		expect_gave_way(test, low, 1, cpu, ctx);
	}
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	pmuk_ctx_silent(test, low);
}

static void tasks_reserve_nothing(struct kunit *test)
{
	struct pmuk_context *ctx = reserving_with(test, pmuk_test_sim(test, 1, 32), NORMAL, 1, 0);
	struct pmuk_target target = { .type = PMUK_TARGET_TASK, .task = current };

	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &target), -EOPNOTSUPP);
}

/*
 * The counter of @high is older than that of @low, and pushes it out. When a context has stopped
 * that is no higher than @low, @low comes back soon.
 */
static void comes_back_after_an_equal(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *high = ranked(test, sim, HIGH, 1), *equal, *low;

	pmuk_ctx_load(test, high, cpu);
	equal = running(test, sim, LOW, 1, cpu);
	low = running(test, sim, LOW, 1, cpu);
	pmuk_ctx_start(test, high);
	expect_gave_way(test, low, 1, cpu, high);
	KUNIT_EXPECT_EQ(test, pmuk_stop(equal), 0);
	EXPECT_SOON(test, pmuk_sim_count(sim, 0, 5) == 10);
}

/* A context that is pushed out again and again comes back later each time. */
static void losses_make_pauses_longer(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *high = ranked(test, sim, HIGH, 1), *low;
	unsigned long pause;

	pmuk_ctx_load(test, high, cpu);
	low = running(test, sim, LOW, 1, cpu);
	for (pause = HZ / 10; pause < 10 * HZ; pause *= 2) {
		pmuk_ctx_start(test, high);
		expect_gave_way(test, low, 1, cpu, high);
		scoped_guard(mutex, &low->lock)
			KUNIT_EXPECT_EQ(test, low->insts[cpu]->lost_pause, pause);
		KUNIT_EXPECT_EQ(test, pmuk_stop(high), 0);
		expect_back(test, low, cpu);
	}
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
	KUNIT_CASE(sharers_give_way_together),
	KUNIT_CASE(partial_sharers_give_way),
	KUNIT_CASE(joiners_push_out_nobody),
	KUNIT_CASE(refused_counters_push_out_nobody),
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
	KUNIT_CASE(older_counters_that_fail),
	KUNIT_CASE(older_and_younger_give_way),
	KUNIT_CASE(other_losses_stay),
	KUNIT_CASE(counters_are_taken_back_by_rank),
	KUNIT_CASE(counters_taken_back_are_of_lower_rank),
	KUNIT_CASE(counters_of_a_past_turn_are_not_back),
	KUNIT_CASE(vain_tries_are_rare),
	KUNIT_CASE(turns_push_out),
	KUNIT_CASE(waits_in_peace),
	KUNIT_CASE(comes_back_after_an_equal),
	KUNIT_CASE(losses_make_pauses_longer),
	KUNIT_CASE(no_such_rank),
	KUNIT_CASE(yields_to_events_of_a_cpu),
	KUNIT_CASE(yields_to_events_of_a_task),
	KUNIT_CASE(yields_with_all_riders),
	KUNIT_CASE(one_yields_at_a_time),
	KUNIT_CASE(yields_for_longer),
	KUNIT_CASE(yields_anew_after_long),
	KUNIT_CASE(yields_through_recalls),
	KUNIT_CASE(yields_through_hotplug),
	KUNIT_CASE(yields_to_no_moment),
	KUNIT_CASE(yields_after_a_trial),
	KUNIT_CASE(yields_after_a_counters_trial),
	KUNIT_CASE(yields_to_no_context),
	KUNIT_CASE(others_do_not_yield),
	KUNIT_CASE(yield_is_checked),
	KUNIT_CASE(reserved_room_is_kept),
	KUNIT_CASE(recovery_returns_what_was_lent),
	KUNIT_CASE(stopped_context_reserves_first),
	KUNIT_CASE_PARAM(lower_ranks_borrow, pairs_gen_params),
	KUNIT_CASE_PARAM(higher_ranks_take, pairs_gen_params),
	KUNIT_CASE(lent_room_comes_back),
	KUNIT_CASE(equals_get_nothing_lent),
	KUNIT_CASE(equals_get_nothing_lent_twice),
	KUNIT_CASE(loads_borrow_for_a_moment),
	KUNIT_CASE(older_counters_get_reserved_room),
	KUNIT_CASE(reserves_nothing_of_tasks),
	KUNIT_CASE(only_what_helps_is_lent),
	KUNIT_CASE(reserves_for_the_next_set),
	KUNIT_CASE(reserves_a_shared_register),
	KUNIT_CASE(reserves_what_the_start_needs),
	KUNIT_CASE(reserves_after_giving_way),
	KUNIT_CASE(borrowers_keep_what_they_have),
	KUNIT_CASE(only_what_gets_free_is_lent),
	KUNIT_CASE(reservations_lend_together),
	KUNIT_CASE_PARAM(sharers_give_way_with_reservations, reservers_gen_params),
	KUNIT_CASE(tasks_reserve_nothing),
	{}
};

PMUK_SUITE(pmuk_rank, pmuk_test_init, "Tests of pmuk: contexts of lower rank give way");
