// SPDX-License-Identifier: GPL-2.0
/*
 * The handlers of the tests are slow. The tests compare the cost with the times that they take
 * inside and outside of the overflows, so no result depends on how fast the machine is.
 */
#include <linux/sched/clock.h>

#include "../../kernel/pmu_kapi/context.h"
#include "../../kernel/pmu_kapi/cost.h"
#include "pmuk_counters.h"
#include "pmuk_ctx.h"
#include "pmuk_hw.h"
#include "pmuk_suite.h"

#define PERIOD		100
#define LIMIT		(50 * NSEC_PER_MSEC)
#define DELAY		(15 * NSEC_PER_MSEC)	/* an overflow takes this long */
#define OVERFLOWS	1000			/* more than any test should need */

/* The times that overflows have taken: no less than ->inside, and no more than ->outside. */
static struct times {
	u64 inside, outside;
	u64 begun;
} times;

static u32 slow_handler(const struct pmuk_format_event *event)
{
	u64 start = local_clock(), now = start;

	for (; now - start < DELAY; now = local_clock())
		cpu_relax();
	times.inside += now - start;
	return PMUK_FORMAT_RESET;
}

static struct pmuk_format slow_format = {
	.name		= "slow",
	.uuid		= UUID_INIT(0x510, 0x1234, 0x5678, 1, 2, 3, 4, 5, 6, 7, 8),
	.owner		= THIS_MODULE,
	.handler	= slow_handler,
};

/*
 * Counter 0 of the context counts event 0, and overflows after each PERIOD of them. Counter 1
 * counts event 1.
 */
struct limited {
	struct pmuk_sim *sim;
	struct pmuk_context *ctx;
	int cpu;
};

static struct pmuk_context *new_context(struct kunit *test, struct pmuk_sim *sim, u64 limit)
{
	const struct pmuk_context_attr attr = { .format = &slow_format.uuid, .limit_ns = limit };
	const struct pmuk_pmd pmd = { .short_reset = PERIOD };
	struct pmuk_context *ctx = pmuk_ctx_create(test, &attr);

	pmuk_ctx_add_pmd(test, ctx, sim, 0, &pmd);
	pmuk_ctx_add(test, ctx, sim, 0, 1, 1, 0);
	return ctx;
}

static struct limited *new_limited(struct kunit *test, u64 limit)
{
	struct limited *l = pmuk_test_zalloc(test, sizeof(*l));

	pmuk_ctx_format(test, &slow_format);
	l->cpu = pmuk_test_pin_first(test);
	l->sim = pmuk_test_sim(test, 2, 32);
	l->ctx = new_context(test, l->sim, limit);
	return l;
}

static void begin_times(void)
{
	times = (struct times){ .begun = local_clock() };
}

/* Lets the context overflow once. */
static void overflow(struct limited *l)
{
	u64 start = local_clock();

	pmuk_sim_count(l->sim, 0, PERIOD);
	times.outside += local_clock() - start;
}

static bool is_paused(const struct limited *l)
{
	return !pmuk_sim_count(l->sim, 1, 1);
}

static void expect_told(struct kunit *test, struct limited *l, int cpu)
{
	KUNIT_EXPECT_EQ(test, pmuk_ctx_expect_msg(test, l->ctx, PMUK_MSG_LIMIT, cpu, 0, 1), BIT(0));
	pmuk_ctx_silent(test, l->ctx);
}

/*
 * Expects what the times prove: a context is not paused if ->outside is within the limit, and is
 * paused if ->inside has exceeded it in one second. Returns whether the context is paused.
 */
static bool expect_as_timed(struct kunit *test, struct limited *l)
{
	bool paused = is_paused(l), is_one_second = local_clock() - times.begun < NSEC_PER_SEC;

	if (times.outside <= LIMIT)
		KUNIT_EXPECT_FALSE(test, paused);
	if (times.inside > LIMIT && is_one_second)
		KUNIT_EXPECT_TRUE(test, paused);
	return paused;
}

/* Lets the context overflow until it is paused. */
static void exceed_limit(struct kunit *test, struct limited *l)
{
	unsigned int i;

	for (i = 0; i < OVERFLOWS; i++) {
		overflow(l);
		if (expect_as_timed(test, l))
			return;
		pmuk_ctx_silent(test, l->ctx);
	}
	KUNIT_FAIL(test, "not paused");
}

/*
 * The counters are paused, keep their counts, and count again after a restart. In the same second,
 * the next overflow pauses them again.
 */
static void overflows_pause_at_the_limit(struct kunit *test)
{
	struct limited *l = new_limited(test, LIMIT);
	unsigned int i;

	pmuk_ctx_run(test, l->ctx, l->cpu);
	begin_times();
	for (i = 0; i < 3; i++) {
		exceed_limit(test, l);
		expect_told(test, l, l->cpu);
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(l->sim, 0, PERIOD), 0);
		KUNIT_EXPECT_EQ(test, atomic64_read(&l->ctx->insts[l->cpu]->limited), i + 1);
		pmuk_ctx_expect_pmd(test, l->ctx, 0, l->cpu, 0, pmuk_sim_counted(l->sim, 0));
		pmuk_ctx_expect_pmd(test, l->ctx, 1, l->cpu, 0, pmuk_sim_counted(l->sim, 1));
		KUNIT_ASSERT_EQ(test, pmuk_restart(l->ctx), 0);
		KUNIT_EXPECT_FALSE(test, is_paused(l));
	}
}

/* In each of two seconds, overflows take less than the limit, and in both together more. */
static bool two_seconds_are_apart(struct kunit *test, struct limited *l)
{
	unsigned int second;
	bool paused = false;

	for (second = 0; second < 2 && !paused; second++) {
		begin_times();
		while (times.outside < LIMIT / 2)
			overflow(l);
		paused = expect_as_timed(test, l);
		msleep(MSEC_PER_SEC);
	}
	return !paused;
}

/* On a busy machine, two overflows may take longer than the limit: then the test tries again. */
static void each_second_is_for_itself(struct kunit *test)
{
	struct limited *l = new_limited(test, LIMIT);
	unsigned int i;

	pmuk_ctx_run(test, l->ctx, l->cpu);
	for (i = 0; i < 10 && !two_seconds_are_apart(test, l); i++)
		KUNIT_ASSERT_EQ(test, pmuk_restart(l->ctx), 0);
	KUNIT_EXPECT_LT(test, i, 10);
}

static void each_cpu_has_its_limit(struct kunit *test)
{
	struct limited *l = new_limited(test, LIMIT);
	int other = cpumask_next(l->cpu, cpu_online_mask);

	if (other >= nr_cpu_ids)
		kunit_skip(test, "needs two CPUs");
	pmuk_ctx_run(test, l->ctx, -1);
	begin_times();
	exceed_limit(test, l);
	expect_told(test, l, l->cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(l->sim, other, 1, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_restart_cpu(l->ctx, l->cpu), 0);
	KUNIT_EXPECT_FALSE(test, is_paused(l));
}

static void without_a_limit_nothing_pauses(struct kunit *test)
{
	struct limited *l = new_limited(test, 0);
	unsigned int i;

	pmuk_ctx_run(test, l->ctx, l->cpu);
	for (i = 0; i < 10; i++)
		overflow(l);
	KUNIT_EXPECT_FALSE(test, is_paused(l));
	KUNIT_EXPECT_EQ(test, atomic64_read(&l->ctx->insts[l->cpu]->cost_ns), 0);
	pmuk_ctx_silent(test, l->ctx);
}

/* The cost is no less than the times inside of the handler, and no more than those outside. */
static void cost_is_the_time_of_overflows(struct kunit *test)
{
	struct limited *l = new_limited(test, NSEC_PER_SEC);
	unsigned int i;
	u64 cost;

	pmuk_ctx_run(test, l->ctx, l->cpu);
	begin_times();
	for (i = 0; i < 5; i++)
		overflow(l);
	cost = atomic64_read(&l->ctx->insts[l->cpu]->cost_ns);
	KUNIT_EXPECT_GE(test, cost, times.inside);
	KUNIT_EXPECT_LE(test, cost, times.outside);
}

#define RECORDS	(PAGE_SIZE / PMUK_RECORD_MIN)	/* the smallest buffer has room for so many */

/* Returns a context of perf's format that has overflowed 10 times after its buffer was full. */
static struct pmuk_context *write_records(struct kunit *test, unsigned int nr_pages, int cpu)
{
	const struct pmuk_context_attr attr = { .buffer.nr_pages = nr_pages };
	const struct pmuk_pmd pmd = { .short_reset = PERIOD };
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_context *ctx = pmuk_ctx_create(test, &attr);
	unsigned int i;

	pmuk_ctx_add_pmd(test, ctx, sim, 0, &pmd);
	pmuk_ctx_run(test, ctx, cpu);
	for (i = 0; i < RECORDS + 10; i++)
		pmuk_sim_count(sim, 0, PERIOD);
	return ctx;
}

/* Records are the overflows of which perf's format has written one. */
static void records_are_counted(struct kunit *test)
{
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = write_records(test, 1, cpu);
	struct pmuk_buffer_stat stat = pmuk_ctx_stat(test, ctx, cpu);

	KUNIT_EXPECT_EQ(test, stat.head, RECORDS * PMUK_RECORD_MIN);
	KUNIT_EXPECT_EQ(test, stat.lost, 10);
	KUNIT_EXPECT_EQ(test, pmuk_inst_records(ctx->insts[cpu]), RECORDS);
	KUNIT_EXPECT_EQ(test, atomic64_read(&ctx->insts[cpu]->overflows), RECORDS + 10);
}

static void no_buffer_has_records(struct kunit *test)
{
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = write_records(test, 0, cpu);

	KUNIT_EXPECT_EQ(test, pmuk_inst_records(ctx->insts[cpu]), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&ctx->insts[cpu]->overflows), RECORDS + 10);
}

static void limits_are_refused(struct kunit *test)
{
	const struct pmuk_context_attr attr = { .limit_ns = NSEC_PER_SEC + 1 };
	const struct pmuk_target tree = { .type = PMUK_TARGET_TREE, .task = current };
	struct limited *l = new_limited(test, LIMIT);
	struct pmuk_target target = tree;

	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(pmuk_create_context(&attr)), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(l->ctx, &target), -EOPNOTSUPP);
	target = tree;
	l->ctx = new_context(test, l->sim, 0);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(l->ctx, &target), 0);
}

/* Only counters of the machine's PMU have a fast read in line. */
static struct pmuk_context *new_cycles(struct kunit *test, int cpu)
{
	const struct pmuk_attr attr = PMUK_HW_CYCLES;
	struct pmuk_pmc pmc = { .type = attr.type, .config = attr.config, .flags = PMUK_PINNED };
	struct pmuk_context *ctx;

	if (pmuk_hw_try(cpu))
		kunit_skip(test, "no PMU counts cycles");
	ctx = pmuk_ctx_create(test, NULL);
	KUNIT_ASSERT_EQ(test, pmuk_write_pmcs(ctx, &pmc, 1), 1);
	pmuk_ctx_run(test, ctx, cpu);
	return ctx;
}

/* Reads 100 times, and expects that pmuk has counted @counted reads in all. */
static void read_often(struct kunit *test, struct pmuk_context *ctx, int cpu, u64 counted)
{
	unsigned int i;
	u64 count;

	for (i = 0; i < 100; i++) {
		guard(preempt)();
		KUNIT_EXPECT_EQ(test, pmuk_read_local(ctx, &count, 1), 0);
	}
	KUNIT_EXPECT_EQ(test, atomic64_read(&ctx->insts[cpu]->reads), counted);
}

static void measure_no_more(void *unused)
{
	static_branch_disable(&pmuk_measures);
}

/* Reads in line are not counted. From the next tick on, reads are slow, and are counted. */
static void reads_are_counted_if_measured(struct kunit *test)
{
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx;
	unsigned long tick;

	if (__is_defined(MODULE))
		kunit_skip(test, "the static key is not exported");
	ctx = new_cycles(test, cpu);
	read_often(test, ctx, cpu, 0);
	static_branch_enable(&pmuk_measures);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, measure_no_more, NULL), 0);
	tick = jiffies;
	while (!time_after(jiffies, tick))
		cpu_relax();
	read_often(test, ctx, cpu, 100);
	read_often(test, ctx, cpu, 200);
	kunit_release_action(test, measure_no_more, NULL);
	read_often(test, ctx, cpu, 200);
}

static struct kunit_case pmuk_cost_cases[] = {
	KUNIT_CASE(overflows_pause_at_the_limit),
	KUNIT_CASE(each_second_is_for_itself),
	KUNIT_CASE(each_cpu_has_its_limit),
	KUNIT_CASE(without_a_limit_nothing_pauses),
	KUNIT_CASE(cost_is_the_time_of_overflows),
	KUNIT_CASE(records_are_counted),
	KUNIT_CASE(no_buffer_has_records),
	KUNIT_CASE(limits_are_refused),
	KUNIT_CASE(reads_are_counted_if_measured),
	{}
};

PMUK_SUITE(pmuk_cost, pmuk_test_init, "Tests of pmuk: what overflows cost, and their limit");
