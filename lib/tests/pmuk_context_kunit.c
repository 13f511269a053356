// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check what contexts refuse, that loads and starts are all or nothing, what happens when
 * a target or a PMU goes, and which calls can be made in any context.
 */
#include <linux/irqflags.h>
#include <linux/uuid.h>

#include "../../kernel/pmu_kapi/contexts.h"
#include "../../kernel/pmu_kapi/watch.h"
#include "pmuk_counters.h"
#include "pmuk_levels.h"
#include "pmuk_parse.h"
#include "pmuk_place.h"
#include "pmuk_suite.h"

#define PERIOD	100

/* ---- what is refused ---- */

static void expect_create(struct kunit *test, const struct pmuk_context_attr *attr, int error)
{
	struct pmuk_context *ctx = pmuk_create_context(attr);

	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(ctx), error);
	pmuk_close(ctx);
}

static void create_refuses_bad_attributes(struct kunit *test)
{
	const struct pmuk_perf_format stack = { .sample_type = PERF_SAMPLE_STACK_USER };
	const struct pmuk_perf_format lost = { .read_format = PERF_FORMAT_LOST };
	const uuid_t uuid = UUID_INIT(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
	const struct {
		struct pmuk_context_attr attr;
		int error;
	} bad[] = {
		{ { .flags = PMUK_CTX_MASK << 1 }, -EINVAL },
		{ { .buffer = { .nr_pages = 3 } }, -EINVAL },
		{ { .buffer = { .nr_pages = 1, .flags = ~0 } }, -EINVAL },
		{ { .buffer = { .nr_pages = 1, .mode = PMUK_BUFFER_STOP + 1 } }, -EINVAL },
		{ { .buffer = { .nr_pages = 1, .watermark = 8, .wakeup_events = 1 } }, -EINVAL },
		{ { .buffer = { .nr_pages = 1, .completion = pmuk_ctx_completion(test) } },
		  -EINVAL },
		{ { .format_arg = test }, -EINVAL },
		{ { .format_arg_size = 8 }, -EINVAL },
		{ { .format_arg = test, .format_arg_size = sizeof(stack) + 1 }, -EINVAL },
		{ { .format_arg = &stack, .format_arg_size = sizeof(stack) }, -EOPNOTSUPP },
		{ { .format_arg = &lost, .format_arg_size = sizeof(lost) }, -EOPNOTSUPP },
		{ { .format = &uuid }, -ENOENT },
	};
	unsigned int i;

	expect_create(test, NULL, -EINVAL);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		expect_create(test, &bad[i].attr, bad[i].error);
}

static struct pmuk_context_attr exported(const struct pmuk_perf_format *fields)
{
	return (struct pmuk_context_attr){
		.name = "exported", .flags = PMUK_CTX_EXPORT,
		.buffer = { .nr_pages = 1, .flags = PMUK_BUFFER_USER_TAIL },
		.format_arg = fields, .format_arg_size = sizeof(*fields),
	};
}

/* Each attribute but one is as /dev/pmuk needs it. */
static void create_checks_what_is_exported(struct kunit *test)
{
	enum { NAME, PAGES, AUX, MODE, TAIL, WAITQ, FORMAT, ID, TID, TIME, VALUES, REGS, SIZE, NR };
	const u64 all = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	const struct pmuk_perf_format good = { all | PERF_SAMPLE_READ, PERF_FORMAT_ID };
	const struct pmuk_perf_format bad[] = {
		{ all & ~PERF_SAMPLE_IDENTIFIER }, { all & ~PERF_SAMPLE_TID },
		{ all & ~PERF_SAMPLE_TIME }, { all | PERF_SAMPLE_READ },
		{ all | PERF_SAMPLE_REGS_INTR },
	};
	const uuid_t uuid = UUID_INIT(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
	DECLARE_WAIT_QUEUE_HEAD_ONSTACK(waitq);
	static struct pmuk_context_attr attrs[NR + 1];
	unsigned int i;

	for (i = 0; i <= NR; i++)
		attrs[i] = exported(&good);
	attrs[NAME].name = NULL;
	attrs[PAGES].buffer.nr_pages = 0;
	attrs[AUX].buffer.aux.nr_pages = 1;
	attrs[MODE].buffer.mode = PMUK_BUFFER_STOP;
	attrs[TAIL].buffer.flags = 0;
	attrs[WAITQ].buffer.waitq = &waitq;
	attrs[FORMAT].format = &uuid;
	for (i = ID; i <= REGS; i++)
		attrs[i].format_arg = &bad[i - ID];
	attrs[SIZE].format_arg = NULL;
	attrs[SIZE].format_arg_size = 0;
	for (i = 0; i < NR; i++)
		expect_create(test, &attrs[i], -EINVAL);
	expect_create(test, &attrs[NR], 0);
}

struct successor {
	struct kunit *test;
	const struct pmuk_context_attr *attr;
};

static void succeed(void *data)
{
	const struct successor *s = data;

	expect_create(s->test, s->attr, 0);
}

/*
 * The close waits for the context's lock. The viewer keeps the lock in memory until its unlock.
 * Another thread creates the successor, as lockdep takes the locks of two contexts for one.
 */
static void close_while_busy(struct kunit *test, struct pmuk_context *ctx,
			     const struct pmuk_context_attr *attr)
{
	struct successor successor = { test, attr };
	DECLARE_COMPLETION_ONSTACK(done);

	atomic_inc(&ctx->viewers);
	scoped_guard(mutex, &ctx->lock) {
		KUNIT_EXPECT_EQ(test, pmuk_close_deferred(ctx, &done), 0);
		pmuk_job_end(test, pmuk_job_start(test, succeed, &successor));
	}
	if (atomic_dec_and_test(&ctx->viewers))
		wake_up_var(&ctx->viewers);
	wait_for_completion(&done);
}

/* A context has its name until it is being closed. */
static void exported_names_differ(struct kunit *test)
{
	const struct pmuk_perf_format fields = {
		PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME
	};
	struct pmuk_context_attr same = exported(&fields), other = same, hidden = same;
	struct pmuk_context *ctx = pmuk_create_context(&same);

	KUNIT_ASSERT_FALSE(test, IS_ERR(ctx));
	expect_create(test, &same, -EEXIST);
	other.name = "exported_2";
	expect_create(test, &other, 0);
	hidden.flags = 0;
	expect_create(test, &hidden, 0);
	close_while_busy(test, ctx, &same);
}

static void names_are_printable_words(struct kunit *test)
{
	static const char *const bad[] = {
		"", "two words", "line\n", "caf\xc3\xa9", "32_characters_have_no_room_for_0",
	};
	static const char *const good[] = { NULL, "a", "31_characters_are_not_too_many_" };
	struct pmuk_context_attr attr = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		attr.name = bad[i];
		expect_create(test, &attr, -EINVAL);
	}
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		attr.name = good[i];
		KUNIT_EXPECT_STREQ(test, pmuk_ctx_create(test, &attr)->name,
				   attr.name ?: "unnamed");
	}
}

static void expect_refuses_context(struct kunit *test, struct pmuk_context *bad)
{
	struct pmuk_target target = {};
	struct pmuk_value value;
	struct pmuk_msg msg;

	KUNIT_EXPECT_EQ(test, pmuk_write_pmcs(bad, NULL, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_write_pmds(bad, NULL, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_read_pmds(bad, NULL, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(bad, &target), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(bad), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_start(bad, &target), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_stop(bad), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_restart(bad), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_restart_cpu(bad, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_read(bad, &msg, true), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_read_timeout(bad, &msg, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_snapshot(bad, 0, &value, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_close(bad), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_close_deferred(bad, NULL), -EINVAL);
	KUNIT_EXPECT_NULL(test, pmuk_context_buffer(bad, 0));
	KUNIT_EXPECT_NULL(test, pmuk_format_area(bad, 0));
}

static void calls_refuse_no_context(struct kunit *test)
{
	u64 count;

	KUNIT_EXPECT_EQ(test, pmuk_read_local(NULL, &count, 1), -EINVAL);
	expect_refuses_context(test, NULL);
	expect_refuses_context(test, ERR_PTR(-ENOMEM));
}

static void calls_refuse_bad_vectors(struct kunit *test)
{
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct pmuk_pmd_read read = {};
	struct pmuk_value value;
	struct pmuk_pmc pmc = {};
	struct pmuk_pmd pmd = {};
	u64 count;

	KUNIT_EXPECT_EQ(test, pmuk_write_pmcs(ctx, &pmc, -1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_write_pmds(ctx, &pmd, -1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_read_pmds(ctx, &read, -1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_write_pmcs(ctx, NULL, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_write_pmds(ctx, NULL, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_read_pmds(ctx, NULL, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_write_pmcs(ctx, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_write_pmds(ctx, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_read_pmds(ctx, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_read(ctx, NULL, true), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_read(ctx, ERR_PTR(-ENOMEM), false), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_read_local(ctx, NULL, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_read_local(ctx, &count, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_snapshot(ctx, 0, NULL, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_snapshot(ctx, 0, ERR_PTR(-ENOMEM), 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_snapshot(ctx, 0, &value, 1), -ENODEV);
	KUNIT_EXPECT_NULL(test, pmuk_context_buffer(ctx, -1));
	KUNIT_EXPECT_NULL(test, pmuk_context_buffer(ctx, nr_cpu_ids));
	KUNIT_EXPECT_NULL(test, pmuk_format_area(ctx, -1));
	KUNIT_EXPECT_NULL(test, pmuk_format_area(ctx, nr_cpu_ids));
}

/* A read refuses to wait if the context has no completion. */
static void read_refuses_to_wait_for_nothing(struct kunit *test)
{
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct pmuk_msg msg;

	KUNIT_EXPECT_EQ(test, pmuk_read(ctx, &msg, false), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_read_timeout(ctx, &msg, 1), -EINVAL);
	pmuk_ctx_silent(test, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_read_timeout(ctx, &msg, 0), -EAGAIN);
}

static void write_pmcs_checks_entries(struct kunit *test)
{
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct pmuk_pmc of_no_set = { .set = 1 };
	static const struct {
		struct pmuk_pmc pmc;
		int ret;
	} cases[] = {
		{ { .num = PMUK_SET_COUNTERS }, -EINVAL },
		{ { .num = U16_MAX }, -EINVAL },
		{ { .flags = PMUK_INHERIT }, -EINVAL },
		{ { .flags = BIT(31) }, -EINVAL },
		{ { .num = 31, .flags = PMUK_PINNED | PMUK_EXCLUDE_IDLE, .type = ~0 }, 0 },
	};
	unsigned int i;

	KUNIT_EXPECT_EQ(test, pmuk_write_pmcs(ctx, &of_no_set, 1), 0);
	KUNIT_EXPECT_EQ(test, of_no_set.ret, -ENOENT);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pmuk_pmc pmc = cases[i].pmc;

		KUNIT_EXPECT_EQ(test, pmuk_write_pmcs(ctx, &pmc, 1), !cases[i].ret);
		KUNIT_EXPECT_EQ(test, pmc.ret, cases[i].ret);
	}
}

static void write_pmds_checks_entries(struct kunit *test)
{
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	static const struct {
		struct pmuk_pmd pmd;
		int ret;
	} cases[] = {
		{ { .set = 1 }, -ENOENT },
		{ { .num = PMUK_SET_COUNTERS }, -EINVAL },
		{ { .short_reset = 1, .flags = PMUK_PMD_NOTIFY << 1 }, -EINVAL },
		{ { .short_reset = (u64)S64_MAX + 1 }, -EINVAL },
		{ { .short_reset = 1, .long_reset = (u64)S64_MAX + 1 }, -EINVAL },
		{ { .short_reset = S64_MAX, .random_mask = 1 }, -EINVAL },
		{ { .flags = PMUK_PMD_NOTIFY }, -EINVAL },
		{ { .random_mask = 1 }, -EINVAL },
		{ { .reset_peers = 1 }, -EINVAL },
		{ { .sample_peers = 2 }, -EINVAL },
		{ { .switch_overflows = 1 }, -EINVAL },
		{ { .num = 1, .short_reset = 1, .sample_peers = BIT(1) }, -EINVAL },
		{ { .num = 31, .short_reset = 1, .sample_peers = GENMASK(16, 0) }, -EINVAL },
		{ { .num = 31, .short_reset = 1, .sample_peers = GENMASK(15, 0) }, 0 },
		{ { .short_reset = S64_MAX - 1, .random_mask = 1, .random_seed = 1 }, 0 },
		{ { .value = U64_MAX, .cookie = U64_MAX }, 0 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pmuk_pmd pmd = cases[i].pmd;

		KUNIT_EXPECT_EQ_MSG(test, pmuk_write_pmds(ctx, &pmd, 1), !cases[i].ret, "%u", i);
		KUNIT_EXPECT_EQ_MSG(test, pmd.ret, cases[i].ret, "%u", i);
	}
}

static void expect_write_pmd(struct kunit *test, struct pmuk_context *ctx,
			     const struct pmuk_pmd *pmd, int ret)
{
	struct pmuk_pmd copy = *pmd;

	KUNIT_EXPECT_EQ(test, pmuk_write_pmds(ctx, &copy, 1), !ret);
	KUNIT_EXPECT_EQ(test, copy.ret, ret);
}

/*
 * perf core learns at the load whether a counter has a period, and its random mask. Later writes
 * cannot change these two.
 */
static void write_pmds_while_loaded(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	int cpu = pmuk_test_pin_first(test);
	const struct pmuk_pmd plain = {}, sampling = { .num = 1, .short_reset = PERIOD };
	const struct pmuk_pmd samples = { .short_reset = 1 }, stops = { .num = 1 };
	const struct pmuk_pmd shorter = { .num = 1, .short_reset = 10, .flags = PMUK_PMD_NOTIFY };
	const struct pmuk_pmd random = { .num = 1, .short_reset = 10, .random_mask = 1 };

	pmuk_ctx_add(test, ctx, sim, 0, 0, 0, 0);
	pmuk_ctx_add(test, ctx, sim, 0, 1, 1, PMUK_NO_THROTTLE);
	expect_write_pmd(test, ctx, &sampling, 0);
	pmuk_ctx_load(test, ctx, cpu);
	expect_write_pmd(test, ctx, &plain, 0);
	expect_write_pmd(test, ctx, &samples, -EBUSY);
	expect_write_pmd(test, ctx, &stops, -EBUSY);
	expect_write_pmd(test, ctx, &random, -EBUSY);
	expect_write_pmd(test, ctx, &shorter, 0);
	pmuk_ctx_start(test, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_feed(sim, cpu, 1, 35), 35);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_next(test, ctx).count, 3);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
	expect_write_pmd(test, ctx, &stops, 0);
	expect_write_pmd(test, ctx, &samples, 0);
}

static void expect_read_pmd(struct kunit *test, struct pmuk_context *ctx, u16 set, u16 num,
			    int cpu, int ret)
{
	struct pmuk_pmd_read read = { .set = set, .num = num, .cpu = cpu };

	KUNIT_EXPECT_EQ(test, pmuk_read_pmds(ctx, &read, 1), !ret);
	KUNIT_EXPECT_EQ(test, read.ret, ret);
}

static void read_pmds_checks_entries(struct kunit *test)
{
	int cpu = pmuk_test_pin_first(test), other = pmuk_test_other_cpu(test, cpu);
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);

	pmuk_ctx_add(test, ctx, sim, 0, 1, 0, 0);
	expect_read_pmd(test, ctx, 0, 1, -1, 0);
	expect_read_pmd(test, ctx, 0, 1, cpu, -ENODEV);
	pmuk_ctx_load(test, ctx, cpu);
	expect_read_pmd(test, ctx, 0, 1, cpu, 0);
	expect_read_pmd(test, ctx, 0, 1, -1, 0);
	expect_read_pmd(test, ctx, 1, 1, -1, -ENOENT);
	expect_read_pmd(test, ctx, 0, 0, -1, -ENOENT);
	expect_read_pmd(test, ctx, 0, PMUK_SET_COUNTERS, -1, -EINVAL);
	expect_read_pmd(test, ctx, 0, 1, -2, -EINVAL);
	expect_read_pmd(test, ctx, 0, 1, INT_MIN, -EINVAL);
	expect_read_pmd(test, ctx, 0, 1, nr_cpu_ids, -EINVAL);
	expect_read_pmd(test, ctx, 0, 1, INT_MAX, -EINVAL);
	expect_read_pmd(test, ctx, 0, 1, other, -ENODEV);
}

static void expect_load(struct kunit *test, struct pmuk_context *ctx, struct pmuk_target target,
			int ret)
{
	target.failed_cpu = 77;
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &target), ret);
	KUNIT_EXPECT_EQ(test, target.failed_cpu, 77);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
}

static void load_refuses_bad_targets(struct kunit *test)
{
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct pmuk_target target = {};
	static struct cpumask none;
	unsigned int i;
	const struct pmuk_target bad[] = {
		{ .type = PMUK_TARGET_TREE + 1, .cpu = 0 },
		{ .type = PMUK_TARGET_CPU, .cpu = -1 },
		{ .type = PMUK_TARGET_CPU, .cpu = nr_cpu_ids },
		{ .type = PMUK_TARGET_CPU, .cpu = INT_MIN },
		{ .type = PMUK_TARGET_CPUS, .cpus = &none },
		{ .type = PMUK_TARGET_TASK },
		{ .type = PMUK_TARGET_TREE },
		{ .type = PMUK_TARGET_TASK, .task = ERR_PTR(-ESRCH) },
	};

	pmuk_ctx_add(test, ctx, pmuk_test_sim(test, 1, 32), 0, 0, 0, 0);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		expect_load(test, ctx, bad[i], -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, ERR_PTR(-ENOMEM)), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &target), 0);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &target), -EBUSY);
}

/* The load refuses what perf core cannot do with children's events. Without that, it succeeds. */
static void load_refuses_what_trees_lack(struct kunit *test)
{
	const struct pmuk_perf_format values = { .sample_type = PERF_SAMPLE_READ };
	const struct pmuk_context_attr masks = { .flags = PMUK_CTX_MASK };
	const struct pmuk_context_attr reads = {
		.format_arg = &values, .format_arg_size = sizeof(values) };
	const struct pmuk_pmd lacks[] = {
		{ .short_reset = PERIOD, .random_mask = 7 },
		{ .short_reset = PERIOD, .long_reset = 2 * PERIOD },
		{ .short_reset = PERIOD, .reset_peers = 2 },
		{ .short_reset = PERIOD, .sample_peers = 2 },
	};
	struct pmuk_target target = { .type = PMUK_TARGET_TREE, .task = current };
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_set_desc set = { .id = 1 };
	struct pmuk_context *ctx;
	unsigned int i;

	expect_load(test, pmuk_ctx_create(test, &masks), target, -EOPNOTSUPP);
	expect_load(test, pmuk_ctx_create(test, &reads), target, -EOPNOTSUPP);
	ctx = pmuk_ctx_create(test, NULL);
	for (i = 0; i < ARRAY_SIZE(lacks); i++) {
		expect_write_pmd(test, ctx, &lacks[i], 0);
		pmuk_ctx_add(test, ctx, sim, 0, 0, 0, 0);
		expect_load(test, ctx, target, -EOPNOTSUPP);
		kunit_release_action(test, pmuk_ctx_put, ctx);
		ctx = pmuk_ctx_create(test, NULL);
	}
	pmuk_ctx_add_set(test, ctx, 1, 0);
	expect_load(test, ctx, target, -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, pmuk_delete_evtsets(ctx, &set, 1), 1);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &target), 0);
}

static void load_refuses_unknown_events(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct pmuk_target target = { .cpu = pmuk_test_pin_first(test), .failed_cpu = -1 };

	pmuk_ctx_add(test, ctx, sim, 0, 5, 0, 0);
	pmuk_ctx_add_set(test, ctx, 3, 0);
	pmuk_ctx_add(test, ctx, sim, 3, 8, PMUK_SIM_EVENTS, 0);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &target), -ENOENT);
	KUNIT_EXPECT_EQ(test, target.failed_cpu, target.cpu);
	KUNIT_EXPECT_EQ(test, target.failed_set, 3);
	KUNIT_EXPECT_EQ(test, target.failed_num, 8);
	pmuk_ctx_expect_gone(test, sim);
	KUNIT_EXPECT_EQ(test, pmuk_start(ctx, NULL), -ENODEV);
	pmuk_ctx_add(test, ctx, sim, 3, 8, 1, 0);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &target), 0);
}

static const struct pmuk_place_kind tasks[] = {
	{ PMUK_TARGET_TASK, "a task" }, { PMUK_TARGET_TREE, "a tree" },
};

KUNIT_ARRAY_PARAM_DESC(tasks, tasks, name);

/* Records that were written before have ids of the target where they were written. */
static void failed_load_keeps_the_target(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct pmuk_target target = { .type = PMUK_TARGET_CPU, .cpu = p->cpu };

	pmuk_ctx_add(test, ctx, p->sim, 0, 6, 0, 0);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &target), 0);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
	pmuk_place_dismiss(p);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &p->target), -ESRCH);
	scoped_guard(mutex, &ctx->lock)
		KUNIT_EXPECT_EQ(test, ctx->target, PMUK_TARGET_CPU);
}

static void load_refuses_an_exited_task(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);

	pmuk_ctx_add(test, ctx, p->sim, 0, 6, 0, 0);
	pmuk_place_dismiss(p);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &p->target), -ESRCH);
	KUNIT_EXPECT_EQ(test, p->target.failed_cpu, -1);
	KUNIT_EXPECT_EQ(test, p->target.failed_num, 6);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
}

/* ---- all or nothing ---- */

/* Returns a context with buffers and two sets of pinned counters. */
static struct pmuk_context *pinned_ctx(struct kunit *test, struct pmuk_sim *sim)
{
	const struct pmuk_context_attr attr = { .buffer = { .nr_pages = 1 } };
	struct pmuk_context *ctx = pmuk_ctx_create(test, &attr);

	pmuk_ctx_add_set(test, ctx, 5, 0);
	pmuk_ctx_add(test, ctx, sim, 0, 0, 0, PMUK_PINNED);
	pmuk_ctx_add(test, ctx, sim, 5, 2, 0, PMUK_PINNED);
	pmuk_ctx_add(test, ctx, sim, 5, 9, 1, PMUK_PINNED);
	return ctx;
}

static void expect_no_room(struct kunit *test, struct pmuk_sim *sim, struct pmuk_context *ctx,
			   int cpu, u16 set, u16 num)
{
	struct pmuk_target target = { .type = PMUK_TARGET_CPUS };

	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &target), -ENOSPC);
	KUNIT_EXPECT_EQ(test, target.failed_cpu, cpu);
	KUNIT_EXPECT_EQ(test, target.failed_set, set);
	KUNIT_EXPECT_EQ(test, target.failed_num, num);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(sim), 0);
	KUNIT_EXPECT_EQ(test, pmuk_start(ctx, NULL), -ENODEV);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), -ENODEV);
}

static void expect_counted_everywhere(struct kunit *test, struct pmuk_sim *sim, u64 config,
				      u64 counted)
{
	int cpu;

	for_each_online_cpu(cpu)
		KUNIT_EXPECT_EQ_MSG(test, pmuk_sim_count_on(sim, cpu, config, 5), counted,
				    "CPU %d", cpu);
}

/*
 * First, on one CPU, the counters of the second set fit singly but not together. Then not even the
 * first set's counter fits.
 */
static void load_is_all_or_nothing(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int last = pmuk_test_other_cpu(test, pmuk_test_pin_first(test));
	struct pmuk_context *ctx = pinned_ctx(test, sim);

	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, last, 1), 0);
	expect_no_room(test, sim, ctx, last, 5, 9);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, last, 2), 0);
	expect_no_room(test, sim, ctx, last, 0, 0);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, last, 0), 0);
	pmuk_ctx_load(test, ctx, -1);
	expect_counted_everywhere(test, sim, 0, 0);
	pmuk_ctx_start(test, ctx);
	expect_counted_everywhere(test, sim, 0, 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), 5 * num_online_cpus());
}

/*
 * Two pinned events of this task are on the PMU. The load leaves them there, and only the start may
 * push them out.
 */
static void load_pushes_no_task_out(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	int cpu = pmuk_test_pin_first(test);
	struct perf_event *events[2];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		events[i] = pmuk_test_pinned_event(test, sim, 2);
		pmuk_ctx_add(test, ctx, sim, 0, i, 0, PMUK_PINNED | PMUK_PRIVATE);
	}
	pmuk_ctx_load(test, ctx, cpu);
	for (i = 0; i < ARRAY_SIZE(events); i++)
		KUNIT_EXPECT_EQ(test, events[i]->state, PERF_EVENT_STATE_ACTIVE);
	pmuk_ctx_start(test, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 10);
}

/* Counters that are not pinned take turns on the PMU. Their running times tell for how long. */
static void load_shares_what_is_not_pinned(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct pmuk_pmd_read read = { .num = 1, .cpu = -1 };
	int cpu = pmuk_test_pin_first(test);

	pmuk_ctx_add(test, ctx, sim, 0, 0, 0, 0);
	pmuk_ctx_add(test, ctx, sim, 0, 1, 1, 0);
	pmuk_ctx_run(test, ctx, cpu);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_sim_count(sim, 1, 5)));
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_sim_count(sim, 0, 5)));
	KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_read_pmds(ctx, &read, 1), 1);
	KUNIT_EXPECT_EQ(test, read.count, 5);
	KUNIT_EXPECT_GT(test, read.time_running, 0);
	KUNIT_EXPECT_LT(test, read.time_running, read.time_enabled);
}

/* A driver that moves all events to one CPU would count each event once for each CPU. */
static void load_refuses_what_counts_elsewhere(struct kunit *test)
{
	static const struct pmuk_sim_config config = {
		.name = "pmuk_uncore", .nr_counters = 1, .width = 32, .uncore = true,
	};
	struct pmuk_sim *sim = pmuk_test_sim_config(test, &config);
	struct pmuk_target target = { .type = PMUK_TARGET_CPUS };
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	int cpu = pmuk_test_pin_first(test), other = pmuk_test_other_cpu(test, cpu);

	pmuk_ctx_add(test, ctx, sim, 0, 3, 0, 0);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &target), -EINVAL);
	KUNIT_EXPECT_EQ(test, target.failed_cpu, other);
	KUNIT_EXPECT_EQ(test, target.failed_num, 3);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
	pmuk_ctx_run(test, ctx, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 3, -1), 5);
}

/*
 * A counter that gets another event counts from 0. With the same event again, it keeps its count,
 * also if it gets another place or other samples.
 */
static void another_event_counts_from_nothing(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct pmuk_pmc branches = { .branch_sample_type = PERF_SAMPLE_BRANCH_ANY };
	int cpu = pmuk_test_pin_first(test);
	u64 config;

	for (config = 0; config < 2; config++) {
		pmuk_ctx_add(test, ctx, sim, 0, 0, config, 0);
		pmuk_ctx_run(test, ctx, cpu);
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, config, 5), 5);
		KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
		KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), 5);
		pmuk_ctx_add(test, ctx, sim, 0, 0, config, 0);
		KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), 5);
		pmuk_ctx_add(test, ctx, sim, 0, 0, config, PMUK_PINNED | PMUK_NO_THROTTLE);
		KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), 5);
		branches.type = pmuk_sim_type(sim);
		branches.config = config;
		KUNIT_EXPECT_EQ(test, pmuk_write_pmcs(ctx, &branches, 1), 1);
		KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), 5);
		pmuk_ctx_add(test, ctx, sim, 0, 0, config, PMUK_EXCLUDE_USER);
		KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), 0);
	}
}

/* Records have 29 bits of a context's id. With 0, they would have ids that perf uses itself. */
static void ids_in_records_are_never_perfs(struct kunit *test)
{
	const u64 last[] = { 0, 1, BIT_ULL(29) - 2, BIT_ULL(29) - 1, BIT_ULL(29), BIT_ULL(40) - 1 };
	unsigned int i;
	u64 id;

	for (i = 0; i < ARRAY_SIZE(last); i++) {
		id = pmuk_next_context_id(last[i]);
		KUNIT_EXPECT_GT(test, id, last[i]);
		KUNIT_EXPECT_LE(test, id, last[i] + 2);
		KUNIT_EXPECT_NE(test, id % BIT_ULL(29), 0);
	}
}

/* The room that the load has found is gone on one CPU, so the start starts no CPU. */
static void start_is_all_or_nothing(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int last = pmuk_test_other_cpu(test, pmuk_test_pin_first(test));
	struct pmuk_context *ctx = pinned_ctx(test, sim);
	struct pmuk_target failed = {};

	pmuk_ctx_load(test, ctx, -1);
	KUNIT_ASSERT_EQ(test, pmuk_switch_evtset(ctx, 5), 0);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, last, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_start(ctx, &failed), -ENOSPC);
	KUNIT_EXPECT_EQ(test, failed.failed_cpu, last);
	KUNIT_EXPECT_EQ(test, failed.failed_set, 5);
	KUNIT_EXPECT_EQ(test, failed.failed_num, 9);
	KUNIT_EXPECT_EQ(test, pmuk_start(ctx, NULL), -ENOSPC);
	expect_counted_everywhere(test, sim, 0, 0);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, last, 0), 0);
	pmuk_ctx_start(test, ctx);
	expect_counted_everywhere(test, sim, 1, 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 5, 9, last), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 5, 2, -1), 0);
}

/* A context is loaded on one target after the other, and its counts go on. */
static void counts_go_from_target_to_target(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	const struct pmuk_pmd pmd = { .value = 1000 };
	struct pmuk_pmd_read read = { .cpu = -1 };
	u64 sum = 1000, enabled = 0;
	unsigned int i;

	pmuk_ctx_add(test, ctx, sim, 0, 0, 0, 0);
	pmuk_ctx_write_pmd(test, ctx, &pmd);
	for (i = 0; i < 2 * PMUK_PLACE_KINDS; i++) {
		struct pmuk_place *p = pmuk_new_place(test, sim, i % PMUK_PLACE_KINDS);

		pmuk_place_run(p, ctx);
		sum += pmuk_place_count(p, 0, i + 1);
		KUNIT_EXPECT_EQ(test, pmuk_read_pmds(ctx, &read, 1), 1);
		KUNIT_EXPECT_EQ(test, read.count, sum);
		KUNIT_EXPECT_GT(test, read.time_enabled, enabled);
		KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
		KUNIT_EXPECT_EQ(test, pmuk_read_pmds(ctx, &read, 1), 1);
		KUNIT_EXPECT_EQ(test, read.count, sum);
		enabled = read.time_enabled;
	}
	pmuk_ctx_write_pmd(test, ctx, &pmd);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), 1000);
}

/* Two contexts on one CPU count independently of each other. */
static void contexts_do_not_mix(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct pmuk_context *ctx[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		ctx[i] = pmuk_ctx_create(test, NULL);
		pmuk_ctx_add(test, ctx[i], sim, 0, 0, 0, 0);
		pmuk_ctx_run(test, ctx[i], pmuk_test_pin_first(test));
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5 * (i + 1));
	}
	KUNIT_EXPECT_EQ(test, pmuk_stop(ctx[0]), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx[0], 0, 0, -1), 10);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx[1], 0, 0, -1), 10);
}

/* ---- targets and counters that go ---- */

/* The exit makes one message, for any waiter, and the counts stay. */
static void exit_is_told(struct kunit *test)
{
	const struct pmuk_context_attr attr = { .completion = pmuk_ctx_completion(test) };
	struct pmuk_place *p = pmuk_place_of(test);
	struct pmuk_context *ctx = pmuk_ctx_create(test, &attr);
	struct pmuk_msg msg;

	pmuk_ctx_add(test, ctx, p->sim, 0, 0, 0, 0);
	pmuk_ctx_add(test, ctx, p->sim, 0, 1, 1, 0);
	pmuk_place_run(p, ctx);
	pmuk_place_tell(p, pmuk_place_count_here);
	p->n = 100003;
	pmuk_place_tell(p, pmuk_place_count_here);
	pmuk_place_dismiss(p);
	KUNIT_EXPECT_EQ(test, pmuk_read_timeout(ctx, &msg, PMUK_CTX_PATIENCE), 1);
	KUNIT_EXPECT_EQ(test, msg.kind, PMUK_MSG_EXIT);
	KUNIT_EXPECT_EQ(test, msg.count, 1);
	pmuk_ctx_expect_pmd(test, ctx, 0, -1, -ESRCH, 100003);
	KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_start(ctx, &p->target), -ESRCH);
	KUNIT_EXPECT_EQ(test, p->target.failed_cpu, -1);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
	pmuk_ctx_expect_pmd(test, ctx, 0, -1, 0, 100003);
	pmuk_ctx_silent(test, ctx);
}

/* Each counter of the PMU is reported once. */
static void pmu_that_goes_is_told(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct pmuk_msg msg;

	pmuk_ctx_add(test, ctx, sim, 0, 3, 0, 0);
	pmuk_ctx_add(test, ctx, sim, 0, 4, 0, 0);
	pmuk_ctx_run(test, ctx, pmuk_test_pin_first(test));
	pmuk_sim_count(sim, 0, 77);
	if (pmuk_sim_unplug(sim))
		kunit_skip(test, "this perf core does not let PMUs with events go");
	msg = pmuk_ctx_next(test, ctx);
	KUNIT_EXPECT_EQ(test, msg.kind, PMUK_MSG_PMU_GONE);
	if (msg.counters != (BIT(3) | BIT(4)))
		msg.counters |= pmuk_ctx_next(test, ctx).counters;
	KUNIT_EXPECT_EQ(test, msg.counters, BIT(3) | BIT(4));
	pmuk_ctx_expect_pmd(test, ctx, 4, -1, -ENODEV, 77);
	KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_start(ctx, NULL), -ENODEV);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 3, -1), 77);
	pmuk_ctx_silent(test, ctx);
}

/* A pinned counter that is pushed out is reported once each time. A restart tries it again. */
static void pinned_counter_pushed_out_is_told(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	int cpu = pmuk_test_pin_first(test);
	unsigned int i;
	u32 lost;

	pmuk_ctx_add(test, ctx, sim, 0, 2, 0, PMUK_PINNED);
	pmuk_ctx_run(test, ctx, cpu);
	for (i = 1; i <= 2; i++) {
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 10), 10);
		KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 1), 0);
		lost = pmuk_ctx_expect_msg(test, ctx, PMUK_MSG_COUNTER_LOST, cpu, 0, 1);
		KUNIT_EXPECT_EQ(test, lost, BIT(2));
		pmuk_ctx_expect_pmd(test, ctx, 2, cpu, -EBUSY, i * 10);
		KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 0), 0);
		KUNIT_EXPECT_EQ(test, pmuk_restart(ctx), 0);
		pmuk_ctx_silent(test, ctx);
	}
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 10), 10);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 2, cpu), 30);
}

static void expect_pause(struct kunit *test, struct pmuk_context *ctx, unsigned long pause)
{
	KUNIT_EXPECT_EQ(test, READ_ONCE(ctx->watch_pause), pause);
}

/* A watch that finds nothing checks ever more rarely, and soon after a restart. */
static void watch_rests_while_nothing_changes(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct work_struct *watch = &ctx->watch.work;
	int cpu = pmuk_test_pin_first(test);
	unsigned long pause, before;

	pmuk_ctx_add(test, ctx, sim, 0, 2, 0, PMUK_PINNED);
	pmuk_ctx_run(test, ctx, cpu);
	disable_delayed_work_sync(&ctx->watch);
	WRITE_ONCE(ctx->watch_pause, PMUK_WATCH_MIN);
	for (pause = PMUK_WATCH_MIN; pause < PMUK_WATCH_MAX; pause *= 2) {
		expect_pause(test, ctx, pause);
		watch->func(watch);
	}
	expect_pause(test, ctx, PMUK_WATCH_MAX);
	KUNIT_EXPECT_EQ(test, pmuk_restart(ctx), 0);
	expect_pause(test, ctx, 0);
	WRITE_ONCE(ctx->watch_pause, PMUK_WATCH_MAX);
	enable_delayed_work(&ctx->watch);
	before = jiffies;
	watch->func(watch);
	KUNIT_EXPECT_GE(test, ctx->watch.timer.expires - before, PMUK_WATCH_MAX * 3 / 4);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 1), 0);
	pmuk_ctx_expect_msg(test, ctx, PMUK_MSG_COUNTER_LOST, cpu, 0, 1);
}

static bool rests(struct pmuk_context *ctx)
{
	struct work_struct *watch = &ctx->watch.work;

	watch->func(watch);
	return READ_ONCE(ctx->watch_pause) > 2 * PMUK_WATCH_MIN;
}

/* The watch finds that the task has run once the task has left its CPU. */
static bool notices(struct pmuk_context *ctx)
{
	struct work_struct *watch = &ctx->watch.work;

	watch->func(watch);
	return READ_ONCE(ctx->watch_pause) == PMUK_WATCH_MIN;
}

/* A task that runs may exit soon, and one that sleeps does not. */
static void watch_rests_while_the_task_sleeps(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_place *p = pmuk_new_place(test, sim, PMUK_TARGET_TASK);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);

	pmuk_ctx_add(test, ctx, sim, 0, 0, 0, 0);
	pmuk_place_run(p, ctx);
	disable_delayed_work_sync(&ctx->watch);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(rests(ctx)));
	pmuk_place_count(p, 0, 5);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(notices(ctx)));
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(rests(ctx)));
	enable_delayed_work(&ctx->watch);
}

/* With IRQ_TIME_ACCOUNTING, the scheduler may charge all of a short run to interrupts. */
static void watch_sees_runs_without_run_time(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_place *p = pmuk_new_place(test, sim, PMUK_TARGET_TASK);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	u64 ran;

	pmuk_ctx_add(test, ctx, sim, 0, 0, 0, 0);
	pmuk_place_run(p, ctx);
	disable_delayed_work_sync(&ctx->watch);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(rests(ctx)));
	ran = p->task->se.sum_exec_runtime;
	pmuk_place_count(p, 0, 5);
	/* The test is bound to the task's CPU. Off the run queue, nothing adds to the run time. */
	KUNIT_ASSERT_TRUE(test, pmuk_ctx_comes(!READ_ONCE(p->task->on_rq)));
	p->task->se.sum_exec_runtime = ran;
	KUNIT_EXPECT_TRUE(test, notices(ctx));
	enable_delayed_work(&ctx->watch);
}

/* ---- a task and its children ---- */

/*
 * A child of the target's task runs on a CPU of its own. It counts when it is born and when it is
 * let go, and then ends.
 */
struct kin {
	struct pmuk_place *p;
	struct completion go, counted;
	int cpu;
	u64 n;
	bool is_counted;
	pid_t pid;
};

static void kin_count(const struct kin *kin)
{
	if (kin->is_counted)
		pmuk_place_feed_here(kin->p, 0, kin->n);
	else
		pmuk_sim_count(kin->p->sim, 0, kin->n);
}

static int kin_thread(void *data)
{
	struct kin *kin = data;
	unsigned int i;

	set_cpus_allowed_ptr(current, cpumask_of(kin->cpu));
	for (i = 0; i < 2; i++) {
		kin_count(kin);
		complete(&kin->counted);
		wait_for_completion(&kin->go);
	}
	pmuk_exit_child();
	return 0;
}

static void fork_kin(struct pmuk_place *p)
{
	struct kin *kin = p->data;

	kin->pid = pmuk_fork(kin_thread, kin);
	if (kin->pid > 0)
		wait_for_completion(&kin->counted);
}

static void reap_kin(struct pmuk_place *p)
{
	struct kin *kin = p->data;

	complete(&kin->go);
	pmuk_reap(kin->pid);
}

/*
 * Returns a child that has counted @n events. The test calls kin_counts() and put_kin() once each.
 */
static struct kin *new_kin(struct kunit *test, struct pmuk_place *p, int cpu, u64 n)
{
	struct kin *kin = pmuk_test_zalloc(test, sizeof(*kin));

	kin->p = p;
	kin->cpu = cpu;
	kin->n = n;
	kin->is_counted = p->target.type == PMUK_TARGET_TREE;
	init_completion(&kin->go);
	init_completion(&kin->counted);
	p->data = kin;
	pmuk_place_tell(p, fork_kin);
	KUNIT_ASSERT_GT(test, kin->pid, 0);
	return kin;
}

static void kin_counts(struct kin *kin)
{
	complete(&kin->go);
	wait_for_completion(&kin->counted);
}

static void put_kin(struct kin *kin)
{
	kin->p->data = kin;
	pmuk_place_tell(kin->p, reap_kin);
}

static const struct pmuk_perf_format tree_format = {
	.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
		       PMUK_SAMPLE_COOKIE,
};

static unsigned int read_samples(struct kunit *test, struct pmuk_context *ctx, int cpu,
				 struct pmuk_parsed *last)
{
	return pmuk_parse_buffer(test, pmuk_context_buffer(ctx, cpu), &tree_format, last, 1, NULL);
}

/* Returns a started context with buffers, on a task that can fork and on its children. */
static struct pmuk_context *tree_ctx(struct kunit *test, struct pmuk_place **place)
{
	const struct pmuk_context_attr attr = {
		.buffer = { .nr_pages = 2 },
		.format_arg = &tree_format,
		.format_arg_size = sizeof(tree_format),
	};
	const struct pmuk_pmd pmd = { .short_reset = PERIOD, .cookie = 0xc00c1e };
	struct pmuk_place *p = pmuk_new_place(test, pmuk_test_sim(test, 1, 32), PMUK_TARGET_TREE);
	struct pmuk_context *ctx;

	pmuk_need_fork(test);
	ctx = pmuk_ctx_create(test, &attr);
	pmuk_ctx_add_pmd(test, ctx, p->sim, 0, &pmd);
	pmuk_place_run(p, ctx);
	*place = p;
	return ctx;
}

/* A child writes the buffer of the CPU where it runs. */
static void children_write_the_buffers_of_their_cpus(struct kunit *test)
{
	int cpu = pmuk_test_pin_first(test), other = pmuk_test_other_cpu(test, cpu);
	struct pmuk_parsed sample = {};
	struct pmuk_place *p;
	struct pmuk_context *ctx = tree_ctx(test, &p);
	struct kin *kin = new_kin(test, p, other, 3 * PERIOD);

	p->n = 2 * PERIOD;
	pmuk_place_tell(p, pmuk_place_feed_task);
	KUNIT_EXPECT_EQ(test, read_samples(test, ctx, cpu, &sample), 2);
	KUNIT_EXPECT_EQ(test, sample.cpu, cpu);
	KUNIT_EXPECT_EQ(test, sample.tid, task_pid_nr(p->task));
	KUNIT_EXPECT_EQ(test, read_samples(test, ctx, other, &sample), 3);
	KUNIT_EXPECT_EQ(test, sample.cpu, other);
	KUNIT_EXPECT_EQ(test, sample.tid, kin->pid);
	KUNIT_EXPECT_EQ(test, sample.period, PERIOD);
	KUNIT_EXPECT_EQ(test, sample.cookie, 0xc00c1e);
	kin_counts(kin);
	put_kin(kin);
	KUNIT_EXPECT_EQ(test, read_samples(test, ctx, other, &sample), 3);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), 8 * PERIOD);
}

/*
 * Live children are counted, and so are children that have exited. Events while the context is
 * stopped are left out.
 */
static void children_are_counted_while_started(struct kunit *test)
{
	struct pmuk_place *p;
	struct pmuk_context *ctx = tree_ctx(test, &p);
	struct pmuk_parsed sample;
	struct kin *kin[2];

	kin[0] = new_kin(test, p, p->cpu, PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
	kin_counts(kin[0]);
	kin[1] = new_kin(test, p, p->cpu, 2 * PERIOD);
	pmuk_place_feed(p, 0, 10 * PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), PERIOD);

	pmuk_ctx_start(test, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), PERIOD);
	kin_counts(kin[1]);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), 3 * PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
	put_kin(kin[0]);
	put_kin(kin[1]);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), 3 * PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), 3 * PERIOD);
	/* Overflows while stopped were dropped. */
	KUNIT_EXPECT_EQ(test, read_samples(test, ctx, p->cpu, &sample), 3);
}

/* The context is unloaded while its children count. No callback comes after that. */
static void children_outlive_the_context(struct kunit *test)
{
	struct pmuk_place *p;
	struct pmuk_context *ctx = tree_ctx(test, &p);
	struct kin *kin = new_kin(test, p, p->cpu, 3 * PERIOD);

	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(p->sim), 0);
	kin->is_counted = false;
	kin_counts(kin);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), 3 * PERIOD);
	kunit_release_action(test, pmuk_ctx_put, ctx);
	put_kin(kin);
}

/* perf core cannot change the periods of children's events. */
static void periods_of_a_tree_stay_while_loaded(struct kunit *test)
{
	struct pmuk_place *p = pmuk_new_place(test, pmuk_test_sim(test, 1, 32), PMUK_TARGET_TREE);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	const struct pmuk_pmd pmd = { .short_reset = PERIOD };
	const struct pmuk_pmd longer = { .short_reset = 2 * PERIOD };
	const struct pmuk_pmd notify = { .short_reset = PERIOD, .flags = PMUK_PMD_NOTIFY };

	pmuk_ctx_add_pmd(test, ctx, p->sim, 0, &pmd);
	pmuk_place_load(p, ctx);
	expect_write_pmd(test, ctx, &longer, -EBUSY);
	expect_write_pmd(test, ctx, &notify, 0);
	pmuk_ctx_start(test, ctx);
	pmuk_place_feed(p, 0, 3 * PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_next(test, ctx).count, 3 * p->nr);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
	expect_write_pmd(test, ctx, &longer, 0);
}

/* A task's context counts that task and no child of it. */
static void children_of_a_task_are_left_out(struct kunit *test)
{
	struct pmuk_place *p = pmuk_new_place(test, pmuk_test_sim(test, 1, 32), PMUK_TARGET_TASK);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct kin *kin;

	pmuk_need_fork(test);
	pmuk_ctx_add(test, ctx, p->sim, 0, 0, 0, 0);
	pmuk_place_run(p, ctx);
	pmuk_place_count(p, 0, 5);
	kin = new_kin(test, p, p->cpu, 1000);
	kin_counts(kin);
	put_kin(kin);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 0, -1), 5);
}

/* ---- what may be called anywhere ---- */

struct local {
	struct kunit *test;
	struct pmuk_sim *sim;
	struct pmuk_context *ctx;
	struct pmuk_place *p;
	enum pmuk_irq_level level;
	unsigned int n;
	u64 counts[3];
	struct pmuk_value values[3];
	int ret;
	unsigned int snapshots, refused;	/* by an unload */
};

static void read_local(void *data)
{
	struct local *l = data;

	l->ret = pmuk_read_local(l->ctx, l->counts, l->n);
}

static void snapshot(void *data)
{
	struct local *l = data;

	l->ret = pmuk_snapshot(l->ctx, 0, l->values, l->n);
}

/* Returns two counters on a target of @type. Their PMU is @sim, or a new one if @sim is NULL. */
static struct local *new_local(struct kunit *test, struct pmuk_sim *sim,
			       enum pmuk_target_type type)
{
	struct local *l = pmuk_test_zalloc(test, sizeof(*l));

	l->test = test;
	l->sim = sim ?: pmuk_test_sim(test, 2, 32);
	l->p = pmuk_new_place(test, l->sim, type);
	l->p->data = l;
	l->n = 2;
	l->ctx = pmuk_ctx_create(test, NULL);
	pmuk_ctx_add(test, l->ctx, l->sim, 0, 7, 1, 0);
	pmuk_ctx_add(test, l->ctx, l->sim, 0, 2, 0, 0);
	pmuk_place_load(l->p, l->ctx);
	return l;
}

static struct local *started_local(struct kunit *test, struct pmuk_sim *sim,
				   enum pmuk_target_type type)
{
	struct local *l = new_local(test, sim, type);

	pmuk_ctx_start(test, l->ctx);
	return l;
}

/* A read of @n counters returns @ret. Entries that the read does not fill keep U64_MAX. */
static void expect_local(struct local *l, enum pmuk_irq_level level, unsigned int n, int ret)
{
	l->n = n;
	memset(l->counts, 0xff, sizeof(l->counts));
	KUNIT_EXPECT_EQ(l->test, pmuk_irq_run(level, read_local, l), 0);
	KUNIT_EXPECT_EQ(l->test, l->ret, ret);
}

static void expect_snapshot(struct local *l, enum pmuk_irq_level level, unsigned int n, int ret)
{
	l->n = n;
	KUNIT_EXPECT_EQ(l->test, pmuk_irq_run(level, snapshot, l), 0);
	KUNIT_EXPECT_EQ(l->test, l->ret, ret);
}

static void expect_local_counts(struct local *l, u64 first, u64 second)
{
	KUNIT_EXPECT_EQ(l->test, l->counts[0], first);
	KUNIT_EXPECT_EQ(l->test, l->counts[1], second);
}

/*
 * The counts come in the order of the counters' numbers, and no more than the caller asks for are
 * written.
 */
static void read_local_at(struct kunit *test)
{
	enum pmuk_irq_level level = pmuk_test_level(test);
	struct local *l = new_local(test, NULL, PMUK_TARGET_CPU);

	expect_local(l, level, 2, -EBUSY);
	pmuk_ctx_start(test, l->ctx);
	pmuk_sim_count(l->sim, 0, 100003);
	pmuk_sim_count(l->sim, 1, 9);
	expect_local(l, level, 3, -EINVAL);
	expect_local(l, level, 0, 0);
	KUNIT_EXPECT_EQ(test, l->counts[0], U64_MAX);
	expect_local(l, level, 1, 0);
	expect_local_counts(l, 100003, U64_MAX);
	expect_local(l, level, 2, 0);
	expect_local_counts(l, 100003, 9);
	KUNIT_EXPECT_EQ(test, pmuk_stop(l->ctx), 0);
	expect_local(l, level, 1, -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(l->ctx), 0);
	expect_local(l, level, 1, -EINVAL);
}

/*
 * Local reads begin at 0 after pmuk_write_pmds(), also in NMI, where a read returns at least the
 * latest count.
 */
static void read_local_from_0(struct kunit *test)
{
	enum pmuk_irq_level level = pmuk_test_level(test);
	struct local *l = started_local(test, NULL, PMUK_TARGET_CPU);
	struct pmuk_pmd from_0 = { .num = 2 };

	pmuk_sim_count(l->sim, 0, 1000);
	pmuk_sim_count(l->sim, 1, 9);
	expect_local(l, PMUK_IRQ_TASK, 2, 0);
	expect_local(l, level, 2, 0);
	expect_local_counts(l, 1000, 9);
	KUNIT_EXPECT_EQ(test, pmuk_stop(l->ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_write_pmds(l->ctx, &from_0, 1), 1);
	pmuk_ctx_start(test, l->ctx);
	pmuk_sim_count(l->sim, 0, 3);
	expect_local(l, level, 2, 0);
	expect_local_counts(l, 3, 9);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, l->ctx, 0, 2, -1), 3);
	KUNIT_EXPECT_EQ(test, pmuk_stop(l->ctx), 0);
	expect_snapshot(l, level, 2, 0);
	KUNIT_EXPECT_EQ(test, l->values[0].count, 3);
}

/* Counters cannot be read on a CPU outside of the target, nor in another task. */
static void read_local_elsewhere(struct kunit *test)
{
	struct local *l = started_local(test, NULL, PMUK_TARGET_CPU);

	pmuk_test_pin(test, pmuk_test_other_cpu(test, l->p->cpu));
	expect_local(l, PMUK_IRQ_TASK, 1, -EINVAL);
	expect_local(l, PMUK_IRQ_HARD, 1, -EINVAL);
	expect_local(started_local(test, l->sim, PMUK_TARGET_TASK), PMUK_IRQ_TASK, 1, -EINVAL);
}

static void read_local_by_task(struct pmuk_place *p)
{
	struct local *l = p->data;

	pmuk_sim_count(p->sim, 0, 5);
	l->ret = pmuk_irq_run(l->level, read_local, l) ?: l->ret;
}

static void read_local_in_its_task(struct kunit *test)
{
	struct local *l = started_local(test, NULL, PMUK_TARGET_TASK);

	for (l->level = PMUK_IRQ_TASK; l->level < PMUK_IRQ_NMI; l->level++) {
		pmuk_place_tell(l->p, read_local_by_task);
		KUNIT_EXPECT_EQ(test, l->ret, 0);
		expect_local_counts(l, 5 * (l->level + 1), 0);
	}
}

static void snapshot_in_driver(struct pmuk_sim *sim, enum pmuk_sim_point point, void *data)
{
	struct local *l = data;

	snapshot(l);
	l->snapshots++;
	l->refused += l->ret == -EOPNOTSUPP;
}

/* The task's events are on the PMU, so an unload by the task calls the PMU's driver. */
static void unload_by_task(struct pmuk_place *p)
{
	struct local *l = p->data;
	const struct pmuk_sim_hook hook = { snapshot_in_driver, l };

	l->n = 1;
	pmuk_sim_set_hook(p->sim, &hook);
	KUNIT_EXPECT_EQ(l->test, pmuk_unload_context(l->ctx), 0);
	pmuk_sim_set_hook(p->sim, NULL);
}

static void trees_have_no_local_values(struct kunit *test)
{
	struct local *l = started_local(test, NULL, PMUK_TARGET_TREE);

	pmuk_place_tell(l->p, read_local_by_task);
	KUNIT_EXPECT_EQ(test, l->ret, -EOPNOTSUPP);
	snapshot(l);
	KUNIT_EXPECT_EQ(test, l->ret, -EOPNOTSUPP);
	pmuk_place_tell(l->p, unload_by_task);
	KUNIT_EXPECT_GT(test, l->snapshots, 0);
	KUNIT_EXPECT_EQ(test, l->refused, l->snapshots);
}

/*
 * An NMI comes right after the read of the first counter, and lets both counters count. It comes in
 * the first @passes passes of the read.
 */
struct intruder {
	struct pmuk_sim_hook hook;
	struct pmuk_sim *sim;
	unsigned int passes;	/* number of disturbed passes */
	unsigned int reads;	/* reads that the PMU has done */
	unsigned int counted;
	int ret;
};

static void count_both(void *data)
{
	struct intruder *i = data;

	i->counted++;
	pmuk_sim_count(i->sim, 0, 5);
	pmuk_sim_count(i->sim, 1, 5);
}

/* The PMU reads two counters in each pass. The NMI comes after the first of them. */
static void intrude(struct pmuk_sim *sim, enum pmuk_sim_point point, void *data)
{
	struct intruder *i = data;

	if (point != PMUK_SIM_DONE || in_nmi() || i->reads++ % 2 || i->counted >= i->passes)
		return;
	i->ret |= pmuk_irq_run(PMUK_IRQ_NMI, count_both, i);
}

static void intrude_on(struct local *l, unsigned int passes)
{
	struct intruder *i = pmuk_test_zalloc(l->test, sizeof(*i));

	*i = (struct intruder){ .sim = l->sim, .passes = passes, .hook = { intrude, i } };
	pmuk_sim_set_hook(l->sim, &i->hook);
	read_local(l);
	pmuk_sim_set_hook(l->sim, NULL);
	KUNIT_EXPECT_EQ(l->test, i->ret, 0);
	KUNIT_EXPECT_GE(l->test, i->counted, 1);
}

/*
 * The counts are both of the time before the NMI, or both of the time after it. If NMIs do not end,
 * the read returns -EBUSY.
 */
static void read_local_is_one_instant(struct kunit *test)
{
	unsigned int passes;
	struct local *l;

	pmuk_test_need_nmi(test);
	l = started_local(test, NULL, PMUK_TARGET_CPU);
	for (passes = 1; passes <= 3; passes++) {
		intrude_on(l, passes);
		if (passes == 1)
			KUNIT_EXPECT_EQ(test, l->ret, 0);
		if (!l->ret)
			KUNIT_EXPECT_EQ(test, l->counts[0], l->counts[1]);
		else
			KUNIT_EXPECT_EQ(test, l->ret, -EBUSY);
		expect_local(l, PMUK_IRQ_TASK, 2, 0);
		KUNIT_EXPECT_EQ(test, l->counts[0], l->counts[1]);
	}
	intrude_on(l, UINT_MAX);
	KUNIT_EXPECT_EQ(test, l->ret, -EBUSY);
}

/*
 * The reader runs on the CPU where the context is loaded, and goes on until the unload has begun.
 */
struct reader {
	struct pmuk_context *ctx;
	struct completion reads;
	int cpu;
	bool done;
};

static int read_while_unloaded(void *data)
{
	struct reader *r = data;
	struct pmuk_inst *inst;

	preempt_disable();
	inst = READ_ONCE(r->ctx->insts[r->cpu]);
	complete(&r->reads);
	while (READ_ONCE(r->ctx->insts[r->cpu]) == inst)
		cpu_relax();
	/* The instance that the reader has found stays until the read has ended. */
	pmuk_test_spin(20 * NSEC_PER_MSEC);
	smp_store_release(&r->done, true);	/* pairs with unload_waits_for_who_reads() */
	preempt_enable();
	return pmuk_test_wait_for_stop();
}

static void unload_waits_for_who_reads(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	int cpu = pmuk_test_pin_first(test), other = pmuk_test_other_cpu(test, cpu);
	struct reader *r = pmuk_test_zalloc(test, sizeof(*r));
	struct task_struct *task;

	r->ctx = pmuk_ctx_create(test, NULL);
	r->cpu = other;
	init_completion(&r->reads);
	pmuk_ctx_add(test, r->ctx, sim, 0, 0, 0, 0);
	pmuk_ctx_load(test, r->ctx, other);
	task = pmuk_test_thread(test, other, read_while_unloaded, r);
	wait_for_completion(&r->reads);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(r->ctx), 0);
	/* pairs with read_while_unloaded() */
	KUNIT_EXPECT_TRUE(test, smp_load_acquire(&r->done));
	kthread_stop(task);
}

struct waiting {
	struct kunit *test;
	struct pmuk_context *ctx;
};

static void wait_for_load(void *data)
{
	struct waiting *w = data;

	pmuk_ctx_load(w->test, w->ctx, -1);
}

static void wait_for_unload(void *data)
{
	struct waiting *w = data;

	KUNIT_EXPECT_EQ(w->test, pmuk_unload_context(w->ctx), 0);
}

static void wait_for_close(void *data)
{
	struct waiting *w = data;

	kunit_release_action(w->test, pmuk_ctx_put, w->ctx);
}

/* On all CPUs, with buffers: a load waits for no grace period, an unload and a close for one. */
static void calls_share_a_grace_period(struct kunit *test)
{
	const struct pmuk_context_attr attr = { .buffer = { .nr_pages = 1 } };
	unsigned long one = ULONG_MAX, load = ULONG_MAX, unload = ULONG_MAX, close = ULONG_MAX;
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct waiting w = { .test = test };
	unsigned int i;

	pmuk_ctx_need_ordinary_grace(test);
	for (i = 0; i < PMUK_GRACE_TRIES && (one != 1 || load || unload != 1 || close != 1); i++) {
		w.ctx = pmuk_ctx_create(test, &attr);
		pmuk_ctx_add(test, w.ctx, sim, 0, 0, 0, 0);
		one = min(one, pmuk_ctx_grace(pmuk_ctx_wait_once, NULL));
		load = min(load, pmuk_ctx_grace(wait_for_load, &w));
		pmuk_ctx_start(test, w.ctx);
		unload = min(unload, pmuk_ctx_grace(wait_for_unload, &w));
		pmuk_ctx_run(test, w.ctx, -1);
		close = min(close, pmuk_ctx_grace(wait_for_close, &w));
	}
	KUNIT_EXPECT_EQ(test, one, 1);
	KUNIT_EXPECT_EQ(test, load, 0);
	KUNIT_EXPECT_EQ(test, unload, 1);
	KUNIT_EXPECT_EQ(test, close, 1);
}

/* The snapshot sums what each CPU has published. A stop publishes all counts. */
static void snapshot_at(struct kunit *test)
{
	enum pmuk_irq_level level = pmuk_test_level(test);
	struct local *l = new_local(test, NULL, PMUK_TARGET_CPUS);
	struct pmuk_place *p = l->p;

	expect_snapshot(l, level, 3, -EINVAL);
	expect_snapshot(l, level, 2, 0);
	KUNIT_EXPECT_EQ(test, l->values[0].count, 0);
	pmuk_ctx_start(test, l->ctx);
	pmuk_place_count(p, 0, 1000);
	pmuk_place_count(p, 1, 10);
	expect_snapshot(l, level, 2, 0);
	KUNIT_EXPECT_LE(test, l->values[0].count, 1000 * p->nr);
	KUNIT_EXPECT_EQ(test, pmuk_stop(l->ctx), 0);
	expect_snapshot(l, level, 2, 0);
	KUNIT_EXPECT_EQ(test, l->values[0].count, 1000 * p->nr);
	KUNIT_EXPECT_EQ(test, l->values[1].count, 10 * p->nr);
	KUNIT_EXPECT_GT(test, l->values[0].time_running, 0);
	KUNIT_EXPECT_LE(test, l->values[0].time_running, l->values[0].time_enabled);
	expect_snapshot(l, level, 1, 0);
	KUNIT_EXPECT_EQ(test, pmuk_snapshot(l->ctx, 1, l->values, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(l->ctx), 0);
	expect_snapshot(l, level, 1, -ENODEV);
}

/* ---- ending from anywhere ---- */

struct ending {
	struct pmuk_context *ctx;
	struct completion done;
	int ret, again, third;
};

/* With interrupts off, the context is only about to be closed, and the later calls find it so. */
static void end_it(void *data)
{
	struct ending *e = data;

	guard(irqsave)();
	e->ret = pmuk_close_deferred(e->ctx, &e->done);
	e->again = pmuk_close_deferred(e->ctx, NULL);
	e->third = pmuk_close(e->ctx);
}

/* Returns a context whose counter overflows as @pmd says. end_it() closes the context. */
static struct ending *new_ending(struct kunit *test, const struct pmuk_context_attr *attr,
				 struct pmuk_sim *sim, const struct pmuk_pmd *pmd)
{
	struct ending *e = pmuk_test_zalloc(test, sizeof(*e));

	init_completion(&e->done);
	e->ctx = pmuk_create_context(attr);
	KUNIT_ASSERT_FALSE(test, IS_ERR(e->ctx));
	pmuk_ctx_add_pmd(test, e->ctx, sim, 0, pmd);
	return e;
}

static void expect_ended(struct kunit *test, struct ending *e, struct pmuk_sim *sim)
{
	KUNIT_EXPECT_EQ(test, e->ret, 0);
	KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&e->done, PMUK_CTX_PATIENCE), 0);
	pmuk_ctx_expect_gone(test, sim);
}

/* A context with buffers is closed while its counters overflow. */
static void close_deferred_at(struct kunit *test)
{
	enum pmuk_irq_level level = pmuk_test_level(test);
	const struct pmuk_context_attr attr = { .buffer = { .nr_pages = 1 } };
	const struct pmuk_pmd pmd = { .short_reset = 10, .flags = PMUK_PMD_NOTIFY };
	enum pmuk_target_type type;

	for (type = 0; type < PMUK_PLACE_KINDS; type++) {
		struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
		struct pmuk_place *p = pmuk_new_place(test, sim, type);
		struct ending *e = new_ending(test, &attr, sim, &pmd);

		pmuk_place_run(p, e->ctx);
		pmuk_place_count(p, 0, 200);
		KUNIT_EXPECT_EQ(test, pmuk_irq_run(level, end_it, e), 0);
		KUNIT_EXPECT_EQ(test, e->again, -EBUSY);
		KUNIT_EXPECT_EQ(test, e->third, -EBUSY);
		pmuk_place_count(p, 0, 200);
		expect_ended(test, e, sim);
		KUNIT_EXPECT_EQ(test, pmuk_place_count(p, 0, 200), 0);
		/* The next PMU has the same name. */
		kunit_release_action(test, pmuk_test_put_sim, sim);
	}
}

/* The handler closes its context from the very overflow that it handles. */
static struct {
	struct ending *ending;
	unsigned int handled;
} ender;

static u32 ender_handler(const struct pmuk_format_event *event)
{
	if (!ender.handled++)
		end_it(ender.ending);
	return PMUK_FORMAT_RESET | PMUK_FORMAT_NOTIFY;
}

static struct pmuk_format ender_format = {
	.name		= "pmuk_ender",
	.uuid		= UUID_INIT(0x3f2c1d4e, 0x88a1, 0x4b5a, 1, 2, 3, 4, 5, 6, 7, 8),
	.owner		= THIS_MODULE,
	.handler	= ender_handler,
};

static void close_deferred_in_handler(struct kunit *test)
{
	const struct pmuk_context_attr attr = { .format = &ender_format.uuid,
						.buffer = { .nr_pages = 1 } };
	const struct pmuk_pmd pmd = { .short_reset = PERIOD };
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct ending *e;

	pmuk_ctx_format(test, &ender_format);
	e = new_ending(test, &attr, sim, &pmd);
	ender.ending = e;
	ender.handled = 0;
	pmuk_test_pin_first(test);
	pmuk_ctx_run(test, e->ctx, -1);
	pmuk_sim_count(sim, 0, 2 * PERIOD);
	expect_ended(test, e, sim);
	KUNIT_EXPECT_EQ(test, e->again, -EBUSY);
	KUNIT_EXPECT_GE(test, ender.handled, 1);
	KUNIT_EXPECT_EQ(test, pmuk_unregister_format(&ender_format), 0);
}

static struct kunit_case pmuk_context_cases[] = {
	KUNIT_CASE(create_refuses_bad_attributes),
	KUNIT_CASE(create_checks_what_is_exported),
	KUNIT_CASE(exported_names_differ),
	KUNIT_CASE(names_are_printable_words),
	KUNIT_CASE(calls_refuse_no_context),
	KUNIT_CASE(calls_refuse_bad_vectors),
	KUNIT_CASE(read_refuses_to_wait_for_nothing),
	KUNIT_CASE(write_pmcs_checks_entries),
	KUNIT_CASE(write_pmds_checks_entries),
	KUNIT_CASE(write_pmds_while_loaded),
	KUNIT_CASE(read_pmds_checks_entries),
	KUNIT_CASE(load_refuses_bad_targets),
	KUNIT_CASE(load_refuses_what_trees_lack),
	KUNIT_CASE(load_refuses_unknown_events),
	KUNIT_CASE_PARAM(load_refuses_an_exited_task, tasks_gen_params),
	KUNIT_CASE_PARAM(failed_load_keeps_the_target, tasks_gen_params),
	KUNIT_CASE(load_is_all_or_nothing),
	KUNIT_CASE(load_pushes_no_task_out),
	KUNIT_CASE(load_shares_what_is_not_pinned),
	KUNIT_CASE(load_refuses_what_counts_elsewhere),
	KUNIT_CASE(another_event_counts_from_nothing),
	KUNIT_CASE(ids_in_records_are_never_perfs),
	KUNIT_CASE(start_is_all_or_nothing),
	KUNIT_CASE(counts_go_from_target_to_target),
	KUNIT_CASE(contexts_do_not_mix),
	KUNIT_CASE_PARAM(exit_is_told, tasks_gen_params),
	KUNIT_CASE(pmu_that_goes_is_told),
	KUNIT_CASE(pinned_counter_pushed_out_is_told),
	KUNIT_CASE(watch_rests_while_nothing_changes),
	KUNIT_CASE(watch_rests_while_the_task_sleeps),
	KUNIT_CASE(watch_sees_runs_without_run_time),
	KUNIT_CASE(children_write_the_buffers_of_their_cpus),
	KUNIT_CASE(children_are_counted_while_started),
	KUNIT_CASE(children_outlive_the_context),
	KUNIT_CASE(periods_of_a_tree_stay_while_loaded),
	KUNIT_CASE(children_of_a_task_are_left_out),
	KUNIT_CASE_PARAM(read_local_at, levels_gen_params),
	PMUK_NMI_CASE(read_local_at),
	KUNIT_CASE_PARAM(read_local_from_0, levels_gen_params),
	PMUK_NMI_CASE(read_local_from_0),
	KUNIT_CASE(read_local_elsewhere),
	KUNIT_CASE(read_local_in_its_task),
	KUNIT_CASE(trees_have_no_local_values),
	KUNIT_CASE(read_local_is_one_instant),
	KUNIT_CASE(unload_waits_for_who_reads),
	KUNIT_CASE_SLOW(calls_share_a_grace_period),
	KUNIT_CASE_PARAM(snapshot_at, levels_gen_params),
	PMUK_NMI_CASE(snapshot_at),
	KUNIT_CASE_PARAM(close_deferred_at, levels_gen_params),
	PMUK_NMI_CASE(close_deferred_at),
	KUNIT_CASE(close_deferred_in_handler),
	{}
};

PMUK_SUITE(pmuk_context, pmuk_test_init, "KUnit tests of pmuk's contexts");
