// SPDX-License-Identifier: GPL-2.0
/*
 * The fourteen calls of perfmon2's KAPI of 2006 each have one test, which runs on each kind of
 * target.
 */
#include "pmuk_place.h"
#include "pmuk_suite.h"

#define PERIOD	100

static const struct pmuk_pmd notify = { .num = 3, .short_reset = PERIOD,
					.flags = PMUK_PMD_NOTIFY };

static struct pmuk_context *new_ctx(struct pmuk_place *p, const struct pmuk_context_attr *attr)
{
	struct pmuk_context *ctx = pmuk_ctx_create(p->test, attr);

	pmuk_ctx_add(p->test, ctx, p->sim, 0, 0, 0, PMUK_NO_THROTTLE);
	pmuk_ctx_add(p->test, ctx, p->sim, 0, 3, 1, PMUK_NO_THROTTLE);
	return ctx;
}

static void put_ctx(struct pmuk_place *p, struct pmuk_context *ctx)
{
	kunit_release_action(p->test, pmuk_ctx_put, ctx);
	pmuk_ctx_expect_gone(p->test, p->sim);
}

/* Expects that the summed counts of both counters are @p->nr times @first and @second. */
static void expect_counts(struct pmuk_place *p, struct pmuk_context *ctx, u64 first, u64 second)
{
	KUNIT_EXPECT_EQ(p->test, pmuk_ctx_count(p->test, ctx, 0, 0, -1), p->nr * first);
	KUNIT_EXPECT_EQ(p->test, pmuk_ctx_count(p->test, ctx, 0, 3, -1), p->nr * second);
}

/* Lets @n more events of counter 0 happen in each place, and expects @count. */
static void expect_to_reach(struct pmuk_place *p, struct pmuk_context *ctx, u64 n, u64 count)
{
	pmuk_place_count(p, 0, n);
	expect_counts(p, ctx, count, 0);
}

/* A context is on no CPU before it is loaded. Then it has its counters and buffers. */
static void create_context(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	const struct pmuk_context_attr attr = { .buffer = { .nr_pages = 1 } };
	struct pmuk_context *ctx = new_ctx(p, &attr);
	struct pmuk_msg msg;
	int cpu;

	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
	KUNIT_EXPECT_EQ(test, pmuk_nr_buffers(), 0);
	KUNIT_EXPECT_EQ(test, pmuk_read(ctx, &msg, true), -EAGAIN);
	expect_to_reach(p, ctx, 5, 0);

	pmuk_place_load(p, ctx);
	for_each_possible_cpu(cpu)
		KUNIT_EXPECT_EQ(test, !!pmuk_context_buffer(ctx, cpu),
				p->target.type != PMUK_TARGET_CPU || cpu == p->cpu);
	pmuk_ctx_start(test, ctx);
	expect_to_reach(p, ctx, 5, 5);
	put_ctx(p, ctx);
}

/* Each counter counts its own event. The entry that fails has the error in ret. */
static void write_pmcs(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	u32 type = pmuk_sim_type(p->sim);
	struct pmuk_pmc pmcs[] = {
		{ .num = 0, .type = type, .config = 7, .ret = 1 },
		{ .num = 3, .type = type, .config = 5, .ret = 1 },
		{ .num = 31, .type = type, .config = 7, .ret = 1 },
		{ .num = 32, .type = type, .ret = 1 },
		{ .num = 4, .type = type, .ret = 1 },
	};

	KUNIT_EXPECT_EQ(test, pmuk_write_pmcs(ctx, pmcs, ARRAY_SIZE(pmcs)), 3);
	pmuk_ctx_expect_rets(test, &pmcs[0].ret, sizeof(*pmcs), ARRAY_SIZE(pmcs), 3, -EINVAL);
	pmcs[0].config = 2;
	KUNIT_EXPECT_EQ(test, pmuk_write_pmcs(ctx, pmcs, 1), 1);

	pmuk_place_load(p, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_write_pmcs(ctx, pmcs, 1), -EBUSY);
	pmuk_ctx_start(test, ctx);
	pmuk_place_count(p, 2, 20);
	pmuk_place_count(p, 5, 50);
	pmuk_place_count(p, 7, 70);
	expect_counts(p, ctx, 20, 50);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 31, -1), p->nr * 70);
	put_ctx(p, ctx);
}

/* Reads all messages. Returns the sum of their overflows. */
static u64 overflows_told(struct pmuk_place *p, struct pmuk_context *ctx)
{
	struct pmuk_msg msg;
	u64 sum = 0;

	while (pmuk_read(ctx, &msg, true) == 1) {
		KUNIT_EXPECT_EQ(p->test, msg.kind, PMUK_MSG_OVERFLOW);
		KUNIT_EXPECT_EQ(p->test, msg.counters, BIT(3));
		KUNIT_EXPECT_EQ(p->test, msg.set, 0);
		sum += msg.count;
	}
	return sum;
}

/*
 * A counter goes on from its value, and overflows after its period. The entry that fails has the
 * error.
 */
static void write_pmds(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	struct pmuk_context *ctx = new_ctx(p, NULL);
	struct pmuk_pmd pmds[] = {
		{ .num = 0, .value = 7, .ret = 1 },
		{ .num = 3, .value = 1000, .short_reset = PERIOD, .flags = PMUK_PMD_NOTIFY,
		  .ret = 1 },
		{ .num = 3, .flags = ~0, .ret = 1 },
		{ .num = 4, .ret = 1 },
	};

	KUNIT_EXPECT_EQ(test, pmuk_write_pmds(ctx, pmds, ARRAY_SIZE(pmds)), 2);
	pmuk_ctx_expect_rets(test, &pmds[0].ret, sizeof(*pmds), ARRAY_SIZE(pmds), 2, -EINVAL);

	pmuk_place_run(p, ctx);
	pmuk_place_count(p, 0, 10);
	pmuk_place_feed(p, 1, 5 * PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_write_pmds(ctx, pmds, 1), -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
	KUNIT_EXPECT_EQ(test, overflows_told(p, ctx), p->nr * 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), 7 + p->nr * 10);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 3, -1),
			1000 + p->nr * 5 * PERIOD);

	pmds[0].value = 1;
	KUNIT_EXPECT_EQ(test, pmuk_write_pmds(ctx, pmds, 1), 1);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), 1);
	pmuk_ctx_start(test, ctx);
	pmuk_place_count(p, 0, 10);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), 1 + p->nr * 10);
	put_ctx(p, ctx);
}

/*
 * Expects @n events of counter 3 on each CPU of the target, and an error on other CPUs and for
 * tasks.
 */
static void expect_counts_by_cpu(struct pmuk_place *p, struct pmuk_context *ctx, u64 n)
{
	struct pmuk_pmd_read read = { .num = 3 };
	int cpu;

	for_each_online_cpu(cpu) {
		bool has = p->target.type == PMUK_TARGET_CPUS ||
			   (p->target.type == PMUK_TARGET_CPU && cpu == p->cpu);

		read.cpu = cpu;
		KUNIT_EXPECT_EQ(p->test, pmuk_read_pmds(ctx, &read, 1), has);
		KUNIT_EXPECT_EQ(p->test, read.ret, has ? 0 : -ENODEV);
		if (has)
			KUNIT_EXPECT_EQ(p->test, read.count, n);
	}
}

/* A read gives counts with their times, of one CPU or summed over all. */
static void read_pmds(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	struct pmuk_context *ctx = new_ctx(p, NULL);
	struct pmuk_pmd_read read[] = {
		{ .num = 0, .cpu = -1, .ret = 1 },
		{ .num = 3, .cpu = -1, .ret = 1 },
		{ .num = 1, .cpu = -1, .ret = 1 },
		{ .num = 0, .cpu = -1, .ret = 1 },
	};

	pmuk_place_run(p, ctx);
	pmuk_place_count(p, 0, 100003);
	pmuk_place_count(p, 1, 30);
	KUNIT_EXPECT_EQ(test, pmuk_read_pmds(ctx, read, ARRAY_SIZE(read)), 2);
	pmuk_ctx_expect_rets(test, &read[0].ret, sizeof(*read), ARRAY_SIZE(read), 2, -ENOENT);
	KUNIT_EXPECT_EQ(test, read[0].count, p->nr * 100003);
	KUNIT_EXPECT_EQ(test, read[1].count, p->nr * 30);
	KUNIT_EXPECT_GT(test, read[1].time_running, 0);
	KUNIT_EXPECT_LE(test, read[1].time_running, read[1].time_enabled);
	expect_counts_by_cpu(p, ctx, 30);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
	expect_counts(p, ctx, 100003, 30);
	put_ctx(p, ctx);
}

/* Events before the start do not count. A second start changes nothing. */
static void start(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	struct pmuk_context *ctx = new_ctx(p, NULL);

	KUNIT_EXPECT_EQ(test, pmuk_start(ctx, NULL), -ENODEV);
	pmuk_place_load(p, ctx);
	expect_to_reach(p, ctx, 1000, 0);
	KUNIT_EXPECT_EQ(test, pmuk_start(ctx, &p->target), 0);
	expect_counts(p, ctx, 0, 0);
	expect_to_reach(p, ctx, 10, 10);
	KUNIT_EXPECT_EQ(test, pmuk_start(ctx, NULL), 0);
	expect_to_reach(p, ctx, 10, 20);
	put_ctx(p, ctx);
}

/* Events while the context is stopped are left out, exactly. */
static void stop(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	struct pmuk_context *ctx = new_ctx(p, NULL);
	unsigned int i;

	KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), -ENODEV);
	pmuk_place_load(p, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
	for (i = 1; i <= 5; i++) {
		pmuk_ctx_start(test, ctx);
		pmuk_place_count(p, 0, 10);
		KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
		expect_counts(p, ctx, i * 10, 0);
		pmuk_place_count(p, 0, 1000);
		pmuk_place_count(p, 1, 1000);
		expect_counts(p, ctx, i * 10, 0);
		KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
	}
	put_ctx(p, ctx);
}

/*
 * An overflow stops all counters of its CPU or task. Children's events cannot be stopped. perf core
 * exchanges their events with their parent's, so the rest of a period is not exact.
 */
static void restart(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	bool tree = p->target.type == PMUK_TARGET_TREE;
	const struct pmuk_context_attr attr = { .flags = tree ? 0 : PMUK_CTX_MASK };
	struct pmuk_context *ctx = new_ctx(p, &attr);
	u64 last = tree ? 2 * PERIOD : PERIOD, first = tree ? 9 : 0;

	pmuk_ctx_write_pmd(test, ctx, &notify);
	KUNIT_EXPECT_EQ(test, pmuk_restart(ctx), -ENODEV);
	pmuk_place_load(p, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_restart(ctx), 0);
	pmuk_ctx_start(test, ctx);
	if (tree)
		pmuk_place_feed(p, 1, 2 * PERIOD);
	else
		pmuk_place_count(p, 1, 2 * PERIOD);
	pmuk_place_count(p, 0, 9);
	expect_counts(p, ctx, first, last);
	KUNIT_EXPECT_EQ(test, pmuk_restart(ctx), 0);
	expect_counts(p, ctx, first, last);
	pmuk_place_count(p, 0, 9);
	pmuk_place_count(p, 1, 10);
	expect_counts(p, ctx, first + 9, last + 10);
	KUNIT_EXPECT_EQ(test, overflows_told(p, ctx), p->nr * (last / PERIOD));
	put_ctx(p, ctx);
}

/*
 * A loaded context counts on its target only, and cannot be loaded twice. After an unload it can be
 * loaded again, and its counts go on.
 */
static void load_context(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	struct pmuk_context *ctx = new_ctx(p, NULL);
	int elsewhere = cpumask_any_but(cpu_online_mask, p->cpu);

	pmuk_place_load(p, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &p->target), -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(),
			2 * (p->target.type == PMUK_TARGET_CPUS ? num_online_cpus() : 1));
	pmuk_ctx_start(test, ctx);
	pmuk_place_count(p, 0, 10);
	if (pmuk_place_is_task(p))
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(p->sim, 0, 5), 0);
	else if (p->target.type == PMUK_TARGET_CPU && elsewhere < nr_cpu_ids)
		KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(p->sim, elsewhere, 0, 5), 0);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);

	pmuk_place_count(p, 0, 1000);
	pmuk_place_load(p, ctx);
	expect_counts(p, ctx, 10, 0);
	pmuk_place_count(p, 0, 1000);
	pmuk_ctx_start(test, ctx);
	expect_to_reach(p, ctx, 10, 20);
	put_ctx(p, ctx);
}

/* An unload removes the counters, whether the context was stopped or not, and the counts stay. */
static void unload_context(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	struct pmuk_context *ctx = new_ctx(p, NULL);
	unsigned int i;

	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), -ENODEV);
	for (i = 1; i <= 3; i++) {
		pmuk_place_run(p, ctx);
		pmuk_place_count(p, 0, 10);
		if (i & 1)
			KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
		KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
		pmuk_ctx_expect_gone(test, p->sim);
		KUNIT_EXPECT_EQ(test, pmuk_place_count(p, 0, 1000), 0);
		expect_counts(p, ctx, i * 10, 0);
		KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), -ENODEV);
		KUNIT_EXPECT_EQ(test, pmuk_start(ctx, NULL), -ENODEV);
	}
	put_ctx(p, ctx);
}

/* A second set has its turn when pmuk_switch_evtset() names it. A tree has one set only. */
static void create_evtsets(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	struct pmuk_context *ctx = new_ctx(p, NULL);
	struct pmuk_set_desc sets[] = {
		{ .id = 4, .ret = 1 }, { .id = 9, .timeout = 1, .ret = 1 }, { .id = 5, .ret = 1 } };

	KUNIT_EXPECT_EQ(test, pmuk_create_evtsets(ctx, sets, ARRAY_SIZE(sets)), 1);
	pmuk_ctx_expect_rets(test, &sets[0].ret, sizeof(*sets), ARRAY_SIZE(sets), 1, -EINVAL);
	pmuk_ctx_add(test, ctx, p->sim, 4, 0, 0, 0);
	if (p->target.type == PMUK_TARGET_TREE) {
		KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &p->target), -EOPNOTSUPP);
		put_ctx(p, ctx);
		return;
	}
	pmuk_place_load(p, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_create_evtsets(ctx, sets, 1), -EBUSY);
	pmuk_ctx_start(test, ctx);
	pmuk_place_count(p, 0, 10);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(ctx, 4), 0);
	pmuk_place_count(p, 0, 7);
	pmuk_place_count(p, 1, 7);
	expect_counts(p, ctx, 10, 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 4, 0, -1), p->nr * 7);
	put_ctx(p, ctx);
}

/* A deleted set takes its counters and their counts with it. */
static void delete_evtsets(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	struct pmuk_context *ctx = new_ctx(p, NULL);
	struct pmuk_set_desc sets[] = { { .id = 0, .ret = 1 }, { .id = 0, .ret = 1 } };

	pmuk_place_run(p, ctx);
	pmuk_place_count(p, 0, 10);
	KUNIT_EXPECT_EQ(test, pmuk_delete_evtsets(ctx, sets, 1), -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_delete_evtsets(ctx, sets, 2), 1);
	pmuk_ctx_expect_rets(test, &sets[0].ret, sizeof(*sets), ARRAY_SIZE(sets), 1, -ENOENT);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &p->target), -EINVAL);
	pmuk_ctx_expect_pmd(test, ctx, 0, -1, -ENOENT, 0);

	pmuk_ctx_add_set(test, ctx, 6, 0);
	pmuk_ctx_add(test, ctx, p->sim, 6, 0, 0, 0);
	pmuk_place_run(p, ctx);
	pmuk_place_count(p, 0, 3);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 6, 0, -1), p->nr * 3);
	put_ctx(p, ctx);
}

/* The runs and times of a set agree with the time between the start and the stop. */
static void getinfo_evtsets(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	unsigned int i, insts = p->target.type == PMUK_TARGET_CPUS ? p->nr : 1;
	struct pmuk_context *ctx = new_ctx(p, NULL);
	const struct pmuk_pmd pmd = { .num = 3, .short_reset = PERIOD };
	struct pmuk_set_info info[] = { { .cpu = -1, .ret = 1 }, { .id = 1, .cpu = -1, .ret = 1 } };
	u64 begun = ktime_get_ns();

	pmuk_ctx_write_pmd(test, ctx, &pmd);
	pmuk_place_load(p, ctx);
	for (i = 0; i < 3; i++) {
		pmuk_ctx_start(test, ctx);
		pmuk_place_count(p, 1, PERIOD);
		KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
	}
	KUNIT_EXPECT_EQ(test, pmuk_getinfo_evtsets(ctx, info, 2), 1);
	pmuk_ctx_expect_rets(test, &info[0].ret, sizeof(*info), ARRAY_SIZE(info), 1, -ENOENT);
	KUNIT_EXPECT_EQ(test, info[0].runs, 3 * insts);
	KUNIT_EXPECT_GT(test, info[0].active_duration, 0);
	KUNIT_EXPECT_LE(test, info[0].active_duration, insts * (ktime_get_ns() - begun));
	KUNIT_EXPECT_EQ(test, info[0].replayed, 0);
	KUNIT_EXPECT_EQ(test, info[0].overflowed, BIT(3));
	put_ctx(p, ctx);
}

/* A context can be closed in any state, and nothing of it is left. */
static void close(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	const struct pmuk_context_attr attr = { .buffer = { .nr_pages = 1 } };
	struct pmuk_context *ctx;
	unsigned int state;

	for (state = 0; state < 4; state++) {
		ctx = pmuk_create_context(&attr);
		KUNIT_ASSERT_FALSE(test, IS_ERR(ctx));
		pmuk_ctx_add_pmd(test, ctx, p->sim, 1, &notify);
		if (state > 0)
			KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &p->target), 0);
		if (state > 1)
			KUNIT_EXPECT_EQ(test, pmuk_start(ctx, NULL), 0);
		pmuk_place_count(p, 1, 3 * PERIOD);
		if (state > 2)
			KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
		KUNIT_EXPECT_EQ(test, pmuk_close(ctx), 0);
		pmuk_ctx_expect_gone(test, p->sim);
		KUNIT_EXPECT_EQ(test, pmuk_place_count(p, 1, 3 * PERIOD), 0);
	}
}

/* Each CPU of the target has one message, with one completion and the CPU's number of overflows. */
static void read(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	struct completion *done = pmuk_ctx_completion(test);
	const struct pmuk_context_attr attr = { .completion = done };
	unsigned int piles = p->target.type == PMUK_TARGET_CPUS ? p->nr : 1;
	struct pmuk_context *ctx = new_ctx(p, &attr);
	struct pmuk_msg msg;
	u64 sum = 0;

	pmuk_ctx_write_pmd(test, ctx, &notify);
	pmuk_place_run(p, ctx);
	pmuk_place_feed(p, 1, 3 * PERIOD + 1);
	while (piles--) {
		KUNIT_ASSERT_EQ(test, pmuk_read_timeout(ctx, &msg, PMUK_CTX_PATIENCE), 1);
		KUNIT_EXPECT_EQ(test, msg.kind, PMUK_MSG_OVERFLOW);
		KUNIT_EXPECT_EQ(test, msg.counters, BIT(3));
		sum += msg.count;
	}
	KUNIT_EXPECT_EQ(test, sum, p->nr * 3);
	KUNIT_EXPECT_EQ(test, pmuk_read(ctx, &msg, true), -EAGAIN);
	KUNIT_EXPECT_FALSE(test, try_wait_for_completion(done));
	complete(done);
	KUNIT_EXPECT_EQ(test, pmuk_read(ctx, &msg, false), 0);
	put_ctx(p, ctx);
}

KUNIT_ARRAY_PARAM_DESC(places, pmuk_place_kinds, name);

static struct kunit_case pmuk_kapi_cases[] = {
	KUNIT_CASE_PARAM(create_context, places_gen_params),
	KUNIT_CASE_PARAM(write_pmcs, places_gen_params),
	KUNIT_CASE_PARAM(write_pmds, places_gen_params),
	KUNIT_CASE_PARAM(read_pmds, places_gen_params),
	KUNIT_CASE_PARAM(start, places_gen_params),
	KUNIT_CASE_PARAM(stop, places_gen_params),
	KUNIT_CASE_PARAM(restart, places_gen_params),
	KUNIT_CASE_PARAM(load_context, places_gen_params),
	KUNIT_CASE_PARAM(unload_context, places_gen_params),
	KUNIT_CASE_PARAM(create_evtsets, places_gen_params),
	KUNIT_CASE_PARAM(delete_evtsets, places_gen_params),
	KUNIT_CASE_PARAM(getinfo_evtsets, places_gen_params),
	KUNIT_CASE_PARAM(close, places_gen_params),
	KUNIT_CASE_PARAM(read, places_gen_params),
	{}
};

PMUK_SUITE(pmuk_kapi, pmuk_test_init,
	   "KUnit tests of pmuk's contexts: each call on each kind of target");
