// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check event sets: what calls refuse, whose turn it is, when a turn ends, and that no
 * event and no overflow is lost or reported twice between two turns.
 */
#include <linux/bitops.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/sched/isolation.h>
#include <linux/tick.h>
#include <linux/uuid.h>

#include "../../kernel/pmu_kapi/context.h"
#include "pmuk_counters.h"
#include "pmuk_levels.h"
#include "pmuk_parse.h"
#include "pmuk_place.h"
#include "pmuk_suite.h"

#define PERIOD	100
#define SHORT	PMUK_SET_TIMEOUT_MIN

/* ---- sets come and go ---- */

static void calls_refuse_bad_arguments(struct kunit *test)
{
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct pmuk_context *bad[] = { NULL, ERR_PTR(-ENOMEM) };
	struct pmuk_set_desc desc = { .id = 1 };
	struct pmuk_set_info info = { .cpu = -1 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KUNIT_EXPECT_EQ(test, pmuk_create_evtsets(bad[i], &desc, 1), -EINVAL);
		KUNIT_EXPECT_EQ(test, pmuk_delete_evtsets(bad[i], &desc, 1), -EINVAL);
		KUNIT_EXPECT_EQ(test, pmuk_getinfo_evtsets(bad[i], &info, 1), -EINVAL);
		KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(bad[i], 0), -EINVAL);
	}
	KUNIT_EXPECT_EQ(test, pmuk_create_evtsets(ctx, &desc, -1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_delete_evtsets(ctx, &desc, -1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_getinfo_evtsets(ctx, &info, -1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_create_evtsets(ctx, NULL, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_delete_evtsets(ctx, NULL, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_getinfo_evtsets(ctx, NULL, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_create_evtsets(ctx, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_delete_evtsets(ctx, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_getinfo_evtsets(ctx, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(ctx, 0), -ENODEV);
}

static void timeout_is_checked(struct kunit *test)
{
	static const u64 good[] = { 0, SHORT, S64_MAX };
	static const u64 bad[] = { 1, SHORT - 1, (u64)S64_MAX + 1, U64_MAX };
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(good); i++)
		pmuk_ctx_add_set(test, ctx, 1, good[i]);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		struct pmuk_set_desc desc = { .id = 2, .timeout = bad[i] };

		KUNIT_EXPECT_EQ(test, pmuk_create_evtsets(ctx, &desc, 1), 0);
		KUNIT_EXPECT_EQ(test, desc.ret, -EINVAL);
	}
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 1, -1).ret, 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 2, -1).ret, -ENOENT);
}

/*
 * Each call returns how many entries were done. The next entry has the error, and the others are
 * unchanged.
 */
static void calls_say_how_far_they_got(struct kunit *test)
{
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct pmuk_set_desc add[] = { { .id = 9, .ret = 1 }, { .id = 8, .timeout = 1, .ret = 1 },
				       { .id = 7, .ret = 1 } };
	struct pmuk_set_info info[] = { { .id = 9, .cpu = -1, .ret = 1 },
					{ .id = 8, .cpu = -1, .ret = 1 },
					{ .id = 0, .cpu = -1, .ret = 1 } };
	struct pmuk_set_desc del[] = { { .id = 9, .ret = 1 }, { .id = 9, .ret = 1 },
				       { .id = 0, .ret = 1 } };

	KUNIT_EXPECT_EQ(test, pmuk_create_evtsets(ctx, add, 3), 1);
	pmuk_ctx_expect_rets(test, &add[0].ret, sizeof(*add), ARRAY_SIZE(add), 1, -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_getinfo_evtsets(ctx, info, 3), 1);
	pmuk_ctx_expect_rets(test, &info[0].ret, sizeof(*info), ARRAY_SIZE(info), 1, -ENOENT);
	KUNIT_EXPECT_EQ(test, pmuk_delete_evtsets(ctx, del, 3), 1);
	pmuk_ctx_expect_rets(test, &del[0].ret, sizeof(*del), ARRAY_SIZE(del), 1, -ENOENT);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 0, -1).ret, 0);
}

static void getinfo_knows_its_cpus(struct kunit *test)
{
	static const int impossible[] = { -2, INT_MAX, INT_MIN };
	int cpu = pmuk_test_pin_first(test), other = pmuk_test_other_cpu(test, cpu);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(impossible); i++)
		KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 0, impossible[i]).ret, -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 0, nr_cpu_ids).ret, -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 0, cpu).ret, -ENODEV);
	pmuk_ctx_load(test, ctx, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 0, cpu).ret, 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 0, -1).ret, 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 0, other).ret, -ENODEV);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 1, cpu).ret, -ENOENT);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 0, cpu).ret, -ENODEV);
}

static void sets_stay_while_loaded(struct kunit *test)
{
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct pmuk_set_desc desc = { .id = 1 };
	int cpu = pmuk_test_pin_first(test);

	pmuk_ctx_load(test, ctx, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_create_evtsets(ctx, &desc, 1), -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_delete_evtsets(ctx, &desc, 1), -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
	desc.id = 0;
	KUNIT_EXPECT_EQ(test, pmuk_delete_evtsets(ctx, &desc, 1), 1);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(ctx, cpu), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_create_evtsets(ctx, &desc, 1), 1);
	pmuk_ctx_load(test, ctx, cpu);
}

/* The test uses all possible ids. Where KASAN or KCSAN slows it down, it uses each 16th id. */
#define ID_STEP		(IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KCSAN) ? 16 : 1)
#define NR_IDS		(65536 / ID_STEP)

KUNIT_DEFINE_ACTION_WRAPPER(free_descs, kvfree, const void *);

/* Returns each id once, the last possible one too, in a mixed order. */
static struct pmuk_set_desc *all_ids(struct kunit *test)
{
	struct pmuk_set_desc *descs = kvcalloc(NR_IDS, sizeof(*descs), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, descs);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_descs, descs), 0);
	for (i = 0; i < NR_IDS; i++)
		descs[i].id = (i * 40503 % NR_IDS + 1) * ID_STEP - 1;
	return descs;
}

static void all_ids_are_sets(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct pmuk_set_desc *descs = all_ids(test);
	int cpu = pmuk_test_pin_first(test);

	KUNIT_EXPECT_EQ(test, pmuk_create_evtsets(ctx, descs, NR_IDS), NR_IDS);
	pmuk_ctx_add(test, ctx, sim, U16_MAX, 0, 0, 0);
	pmuk_ctx_run(test, ctx, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 0, cpu).runs, 1);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(ctx, U16_MAX), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(ctx, 0x7fff), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 0x7fff, cpu).runs, 1);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 0x7fef, cpu).runs, 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, U16_MAX, cpu).runs, 1);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_delete_evtsets(ctx, descs, NR_IDS), NR_IDS);
	KUNIT_EXPECT_EQ(test, pmuk_delete_evtsets(ctx, descs, 1), 0);
	KUNIT_EXPECT_EQ(test, descs[0].ret, -ENOENT);
}

/* A set takes memory for the counters that were written, each once, in whatever order. */
static void set_holds_what_was_written(struct kunit *test)
{
	static const u16 written[] = { 31, 0, 5, 31, 5 }, held[] = { 0, 5, 31 };
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct pmuk_def *def;
	struct pmuk_set *set;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(written); i++)
		pmuk_ctx_write_pmd(test, ctx, &(struct pmuk_pmd){ .num = written[i] });
	guard(mutex)(&ctx->lock);
	set = xa_load(&ctx->sets, 0);
	for (i = 0, def = set->defs; def; i++, def = def->next) {
		KUNIT_EXPECT_EQ(test, def->num, i < ARRAY_SIZE(held) ? held[i] : U16_MAX);
		KUNIT_EXPECT_LE(test, ksize(def), 2 * sizeof(*def));
	}
	KUNIT_EXPECT_EQ(test, i, ARRAY_SIZE(held));
}

/* ---- whose turn it is ---- */

/*
 * The tests use three sets. Each has counter 0, of event 0, and counter 5, of an event that only
 * that set counts.
 */
static const u16 ids[] = { 3, 7, 200 };

struct turns {
	struct kunit *test;
	struct pmuk_sim *sim;
	struct pmuk_context *ctx;
	int cpu;			/* -1: all CPUs */
};

static void add_sets(struct turns *t, const u64 *timeouts, struct pmuk_pmd pmd)
{
	static const unsigned int order[] = { 1, 2, 0 };
	struct pmuk_set_desc zero = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		unsigned int n = order[i];

		pmd.set = ids[n];
		pmuk_ctx_add_set(t->test, t->ctx, ids[n], timeouts[n]);
		pmuk_ctx_add_pmd(t->test, t->ctx, t->sim, 0, &pmd);
		pmuk_ctx_add(t->test, t->ctx, t->sim, ids[n], 5, n + 1, PMUK_NO_THROTTLE);
	}
	KUNIT_ASSERT_EQ(t->test, pmuk_delete_evtsets(t->ctx, &zero, 1), 1);
}

/* Returns turns that are loaded on @cpu, or on all CPUs if @cpu is -1, and not started. */
static struct turns *new_turns(struct kunit *test, int cpu, const u64 *timeouts, u32 flags,
			       const struct pmuk_pmd *pmd)
{
	const struct pmuk_context_attr attr = { .flags = flags };
	const struct pmuk_pmd plain = {};
	struct turns *t = pmuk_test_zalloc(test, sizeof(*t));

	t->test = test;
	t->cpu = cpu;
	t->sim = pmuk_test_sim(test, 2, 32);
	t->ctx = pmuk_ctx_create(test, &attr);
	add_sets(t, timeouts, pmd ? *pmd : plain);
	pmuk_ctx_load(test, t->ctx, cpu);
	return t;
}

/* Returns turns on the CPU of the test, which have started. */
static struct turns *started_turns(struct kunit *test, const u64 *timeouts, u32 flags,
				   const struct pmuk_pmd *pmd)
{
	struct turns *t = new_turns(test, pmuk_test_pin_first(test), timeouts, flags, pmd);

	pmuk_ctx_start(test, t->ctx);
	return t;
}

/* Expects that counter 0 of the n-th set has counted @count events. */
static void expect_counted(struct turns *t, unsigned int n, u64 count)
{
	KUNIT_EXPECT_EQ_MSG(t->test, pmuk_ctx_count(t->test, t->ctx, ids[n], 0, -1), count,
			    "set %u", ids[n]);
}

static const u64 by_call[ARRAY_SIZE(ids)], by_time[ARRAY_SIZE(ids)] = { SHORT, SHORT, SHORT };

static void switch_by_call(struct kunit *test)
{
	struct turns *t = new_turns(test, pmuk_test_pin_first(test), by_call, 0, NULL);
	unsigned int i, n;

	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, 0), -ENOENT);
	pmuk_ctx_start(test, t->ctx);
	for (i = 0; i < 9; i++) {
		KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[i % 3]), 0);
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 0, 10 + i), 10 + i);
		for (n = 0; n < 3; n++)
			KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, n + 1, 1), n == i % 3);
	}
	for (n = 0; n < 3; n++) {
		expect_counted(t, n, 39 + 3 * n);
		KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, t->ctx, ids[n], 5, t->cpu), 3);
		KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[n], -1).runs, 3);
	}
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[2]), 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[2], -1).runs, 3);
}

/* The call returns after the turn has begun on each CPU, not only on the caller's. */
static void switch_is_on_all_cpus(struct kunit *test)
{
	struct turns *t = new_turns(test, -1, by_call, 0, NULL);
	unsigned int i;
	int cpu;

	pmuk_test_pin_first(test);
	pmuk_ctx_start(test, t->ctx);
	for (i = 0; i < 30; i++) {
		KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[i % 3]), 0);
		for_each_online_cpu(cpu) {
			KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(t->sim, cpu, i % 3 + 1, 1), 1);
			KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(t->sim, cpu, (i + 1) % 3 + 1, 1),
					0);
		}
	}
}

/* When the call returns, each CPU counts, or no CPU does. */
static void start_is_on_all_cpus(struct kunit *test)
{
	struct turns *t = new_turns(test, -1, by_call, 0, NULL);
	unsigned int i;
	int cpu;

	for (i = 0; i < 30; i++) {
		pmuk_ctx_start(test, t->ctx);
		for_each_online_cpu(cpu)
			KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(t->sim, cpu, 1, 1), 1);
		KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
		for_each_online_cpu(cpu)
			KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(t->sim, cpu, 1, 1), 0);
	}
}

/* The first turn is that of the lowest set, or of the set that pmuk_switch_evtset() has named. */
static void first_turn_is_chosen(struct kunit *test)
{
	struct turns *t = started_turns(test, by_call, 0, NULL);

	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 1, 1), 1);
	KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[1]), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 2, 1), 0);
	pmuk_ctx_start(test, t->ctx);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 2, 1), 1);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(t->ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[1]), -ENODEV);
	pmuk_ctx_run(test, t->ctx, t->cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 1, 1), 1);
}

/*
 * Each CPU takes turns by itself, in the order of ids. So a set had as many turns as those before
 * it, or one less.
 */
static void expect_round_robin(struct kunit *test, struct turns *t, int cpu)
{
	u64 runs[3], i;

	for (i = 0; i < 3; i++)
		runs[i] = pmuk_ctx_info(t->ctx, ids[i], cpu).runs;
	KUNIT_EXPECT_GE(test, runs[0], runs[1]);
	KUNIT_EXPECT_GE(test, runs[1], runs[2]);
	KUNIT_EXPECT_LE(test, runs[0], runs[2] + 1);
	KUNIT_EXPECT_GE(test, runs[2], 10);
}

static void sets_take_turns_on_each_cpu(struct kunit *test)
{
	struct turns *t = new_turns(test, -1, by_time, 0, NULL);
	int cpu;

	pmuk_ctx_start(test, t->ctx);
	for_each_online_cpu(cpu)
		KUNIT_EXPECT_TRUE(test, pmuk_ctx_runs(t->ctx, ids[2], cpu, 10));
	KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
	for_each_online_cpu(cpu)
		expect_round_robin(test, t, cpu);
}

/* A turn of a set without a timeout does not end by time, nor does the turn of a single set. */
static void timeout_ends_a_turn_if_there_is_one(struct kunit *test)
{
	static const u64 first_only[] = { SHORT, 0, SHORT };
	struct turns *t = new_turns(test, pmuk_test_pin_first(test), first_only, 0, NULL);
	struct pmuk_context *single = pmuk_ctx_create(test, NULL);
	struct pmuk_set_info info;

	pmuk_ctx_add_set(test, single, 0, SHORT);
	pmuk_ctx_run(test, single, t->cpu);
	pmuk_ctx_start(test, t->ctx);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_runs(t->ctx, ids[1], t->cpu, 1));
	usleep_range(3000, 4000);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[0], t->cpu).runs, 1);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[1], t->cpu).runs, 1);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[2], t->cpu).runs, 0);
	info = pmuk_ctx_info(t->ctx, ids[0], t->cpu);
	KUNIT_EXPECT_GT(test, info.switch_max, 0);
	KUNIT_EXPECT_GT(test, info.late_max, 0);
	info = pmuk_ctx_info(single, 0, t->cpu);
	KUNIT_EXPECT_EQ(test, info.runs, 1);
	KUNIT_EXPECT_EQ(test, info.switch_max, 0);
	KUNIT_EXPECT_EQ(test, info.late_max, 0);
	KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 0, 1), 0);
}

/* Creating a set again changes its timeout, and keeps its counters. */
static void timeout_can_be_changed(struct kunit *test)
{
	struct turns *t = new_turns(test, pmuk_test_pin_first(test), by_call, 0, NULL);

	KUNIT_ASSERT_EQ(test, pmuk_unload_context(t->ctx), 0);
	pmuk_ctx_add_set(test, t->ctx, ids[0], SHORT);
	pmuk_ctx_run(test, t->ctx, t->cpu);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_runs(t->ctx, ids[1], t->cpu, 1));
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 2, 3), 3);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[0]), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_runs(t->ctx, ids[1], t->cpu, 2));
}

/* A set without counters has turns as others have. */
static void empty_set_has_its_turn(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	int cpu = pmuk_test_pin_first(test);
	u64 count;

	pmuk_ctx_add(test, ctx, sim, 0, 0, 0, 0);
	pmuk_ctx_add_set(test, ctx, 1, 0);
	pmuk_ctx_run(test, ctx, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 2), 2);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(ctx, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 2), 0);
	KUNIT_EXPECT_EQ(test, pmuk_read_local(ctx, &count, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_read_local(ctx, &count, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(ctx, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 2), 2);
	KUNIT_EXPECT_EQ(test, pmuk_read_local(ctx, &count, 1), 0);
	KUNIT_EXPECT_EQ(test, count, 4);
}

/* ---- by overflows ---- */

#define LIMIT	3

static const struct pmuk_pmd by_overflows = {
	.short_reset = PERIOD, .switch_overflows = LIMIT,
};

/* Holds the sums of all messages that were read, by kind. */
struct told {
	u64 counts[PMUK_MSG_KINDS];
	u32 counters[PMUK_MSG_KINDS];
};

static struct told hear(struct turns *t)
{
	struct told told = {};
	struct pmuk_msg msg;

	while (pmuk_read(t->ctx, &msg, true) == 1) {
		told.counts[msg.kind] += msg.count;
		told.counters[msg.kind] |= msg.counters;
	}
	return told;
}

static void expect_told(struct turns *t, u64 switches, u64 overflows)
{
	struct told told = hear(t);

	KUNIT_EXPECT_EQ(t->test, told.counts[PMUK_MSG_SWITCH], switches);
	KUNIT_EXPECT_EQ(t->test, told.counts[PMUK_MSG_OVERFLOW], overflows);
}

/* The last overflow requests the switch. The turn ends soon after that overflow, and not before. */
static void switch_by_overflows(struct kunit *test)
{
	struct turns *t = started_turns(test, by_call, 0, &by_overflows);
	unsigned int i, n;

	for (i = 1; i <= 9; i++) {
		pmuk_ctx_feed(t->sim, t->cpu, 0, LIMIT * PERIOD);
		KUNIT_ASSERT_TRUE(test, pmuk_ctx_runs(t->ctx, ids[i % 3], t->cpu, i / 3 + 1));
	}
	KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
	for (n = 0; n < 3; n++) {
		expect_counted(t, n, 3 * LIMIT * PERIOD);
		KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[n], -1).runs, 3 + !n);
	}
	expect_told(t, 9, 0);
}

/* Overflows of earlier turns do not count. */
static void overflows_are_counted_by_turn(struct kunit *test)
{
	struct turns *t = started_turns(test, by_call, 0, &by_overflows);

	pmuk_ctx_feed(t->sim, t->cpu, 0, (LIMIT - 1) * PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[1]), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[0]), 0);
	pmuk_ctx_feed(t->sim, t->cpu, 0, (LIMIT - 1) * PERIOD);
	usleep_range(2000, 3000);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[1], -1).runs, 1);
	pmuk_sim_count(t->sim, 0, PERIOD);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_runs(t->ctx, ids[1], t->cpu, 2));
	KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
	expect_told(t, 1, 0);
}

static void switch_message_names_the_set(struct kunit *test)
{
	struct turns *t = started_turns(test, by_call, 0, &by_overflows);

	pmuk_ctx_feed(t->sim, t->cpu, 0, LIMIT * PERIOD);
	pmuk_ctx_expect_msg(test, t->ctx, PMUK_MSG_SWITCH, t->cpu, ids[1], 1);
	pmuk_ctx_silent(test, t->ctx);
}

/* ---- what is pending ---- */

static const struct pmuk_pmd notify = { .short_reset = PERIOD, .flags = PMUK_PMD_NOTIFY };

/* Expects one message, of one overflow of counter 0 in the first set. */
static void expect_overflow(struct turns *t)
{
	u32 counters = pmuk_ctx_expect_msg(t->test, t->ctx, PMUK_MSG_OVERFLOW, t->cpu, ids[0], 1);

	KUNIT_EXPECT_EQ(t->test, counters, BIT(0));
	pmuk_ctx_silent(t->test, t->ctx);
}

/*
 * An overflow that was pending at the end of a turn is handled once, when the set's next turn
 * begins. The period goes on where it was.
 */
static void pending_overflow_is_replayed(struct kunit *test)
{
	struct turns *t = started_turns(test, by_call, 0, &notify);

	pmuk_sim_count(t->sim, 0, 50);
	KUNIT_EXPECT_EQ(test, pmuk_sim_advance(t->sim, 0, 70), 70);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[1]), 0);
	pmuk_ctx_silent(test, t->ctx);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[0], -1).replayed, 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[0], -1).overflowed, 0);

	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[0]), 0);
	expect_overflow(t);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[0], -1).replayed, 1);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[0], -1).overflowed, BIT(0));
	expect_counted(t, 0, 120);

	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[2]), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[0]), 0);
	pmuk_ctx_silent(test, t->ctx);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[0], -1).replayed, 1);
	pmuk_sim_count(t->sim, 0, 79);
	pmuk_ctx_silent(test, t->ctx);
	pmuk_sim_count(t->sim, 0, 1);
	expect_overflow(t);
	expect_counted(t, 0, 200);
}

/*
 * More than a period is counted after the pending overflow, and the counter finds no room in its
 * next turn. The overflow is not replayed in the turn after that, and a whole period begins.
 */
static void overflow_is_replayed_once_without_room(struct kunit *test)
{
	struct turns *t = started_turns(test, by_call, 0, &notify);

	KUNIT_EXPECT_EQ(test, pmuk_sim_advance(t->sim, 0, 2 * PERIOD), 2 * PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[1]), 0);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(t->sim, t->cpu, 2), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[0]), 0);
	expect_overflow(t);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 0, 5), 0);

	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[1]), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[0]), 0);
	pmuk_ctx_silent(test, t->ctx);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[0], -1).replayed, 1);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(t->sim, t->cpu, 0), 0);
	pmuk_sim_count(t->sim, 0, PERIOD - 1);
	pmuk_ctx_silent(test, t->ctx);
	pmuk_sim_count(t->sim, 0, 1);
	expect_overflow(t);
	expect_counted(t, 0, 3 * PERIOD);
}

#define RANDOM	63			/* mask; smaller than PERIOD */

static const struct pmuk_perf_format with_periods = { .sample_type = PERF_SAMPLE_PERIOD };

/* Returns the period in the record that the buffer has, or 0 if it has none. */
static u64 recorded_period(struct turns *t)
{
	struct pmuk_parsed last = {};

	pmuk_parse_buffer(t->test, pmuk_context_buffer(t->ctx, t->cpu), &with_periods, &last, 1,
			  NULL);
	return last.period;
}

/* Lets events happen until there is a record. Returns how many these are. */
static u64 count_to_record(struct turns *t, u64 *period)
{
	u64 n = 0;

	do {
		pmuk_sim_count(t->sim, 0, 1);
		*period = recorded_period(t);
	} while (++n < 10 * PERIOD && !*period);
	return n;
}

/*
 * Both the record of a replayed overflow and the next record have the period that has ended. With
 * this seed, two periods in a row differ.
 */
static void records_around_a_replay_have_their_periods(struct kunit *test)
{
	const struct pmuk_pmd random = { .short_reset = PERIOD, .random_mask = RANDOM,
					 .random_seed = 4711 };
	const struct pmuk_context_attr attr = { .buffer = { .nr_pages = 1 },
		.format_arg = &with_periods, .format_arg_size = sizeof(with_periods) };
	struct turns t = { .test = test, .sim = pmuk_test_sim(test, 2, 32),
			   .cpu = pmuk_test_pin_first(test) };
	u64 period, replayed;

	t.ctx = pmuk_ctx_create(test, &attr);
	add_sets(&t, by_call, random);
	pmuk_ctx_run(test, t.ctx, t.cpu);
	KUNIT_EXPECT_EQ(test, count_to_record(&t, &period), period);

	pmuk_sim_advance(t.sim, 0, PERIOD + RANDOM);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t.ctx, ids[1]), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t.ctx, ids[0]), 0);
	replayed = recorded_period(&t);
	KUNIT_EXPECT_EQ(test, replayed, period);	/* the driver has begun that one twice */
	KUNIT_EXPECT_EQ(test, PERIOD + RANDOM + count_to_record(&t, &period), replayed + period);
	KUNIT_EXPECT_NE(test, replayed, period);
}

static void advance_here(void *sim)
{
	pmuk_sim_advance(sim, 0, PERIOD + 1);
}

/* The overflow is handled on the CPU where it was pending, whichever CPU calls. */
static void replay_is_on_its_cpu(struct kunit *test)
{
	int here = pmuk_test_pin_first(test), other = pmuk_test_other_cpu(test, here);
	struct turns *t = new_turns(test, other, by_call, PMUK_CTX_MASK, &notify);

	pmuk_ctx_start(test, t->ctx);
	KUNIT_EXPECT_EQ(test, smp_call_function_single(other, advance_here, t->sim, true), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[1]), 0);
	pmuk_ctx_silent(test, t->ctx);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[0]), 0);
	expect_overflow(t);
	/* The overflow has masked that CPU, as a timely one would have. */
	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(t->sim, other, 1, 5), 0);
	KUNIT_EXPECT_EQ(test, pmuk_restart(t->ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(t->sim, other, 1, 5), 5);
}

static const struct pmuk_perf_format named = { .sample_type = PERF_SAMPLE_TID };

static void advance_place(struct pmuk_place *p)
{
	pmuk_sim_advance(p->sim, p->config, p->n);
}

/*
 * Lets an overflow be pending at the end of a turn. Returns whether it is handled in the next one:
 * if the task is switched out before the end, and in again, the driver has begun a new period.
 */
static bool replays(struct turns *t, struct pmuk_place *p)
{
	pmuk_place_by_all(p, 0, PERIOD, advance_place);
	KUNIT_EXPECT_EQ(t->test, pmuk_switch_evtset(t->ctx, ids[1]), 0);
	KUNIT_EXPECT_EQ(t->test, pmuk_switch_evtset(t->ctx, ids[0]), 0);
	return pmuk_ctx_info(t->ctx, ids[0], -1).replayed;
}

/* Expects that the record of a replayed overflow names @task, which does not exchange the sets. */
static void expect_named(struct kunit *test, struct pmuk_place *p, struct task_struct *task)
{
	const struct pmuk_context_attr attr = {
		.buffer = { .nr_pages = 1 },
		.format_arg = &named, .format_arg_size = sizeof(named),
	};
	struct turns t = { .test = test, .sim = p->sim, .cpu = p->target.cpu };
	struct pmuk_parsed last = {};

	t.ctx = pmuk_ctx_create(test, &attr);
	add_sets(&t, by_call, notify);
	pmuk_place_run(p, t.ctx);
	KUNIT_ASSERT_TRUE(test, pmuk_ctx_comes(replays(&t, p)));
	KUNIT_EXPECT_NE(test, pmuk_parse_buffer(test, pmuk_context_buffer(t.ctx, p->cpu), &named,
						&last, 1, NULL), 0);
	KUNIT_EXPECT_EQ(test, last.pid, task ? task_tgid_nr(task) : 0);
	KUNIT_EXPECT_EQ(test, last.tid, task ? task_pid_nr(task) : 0);
}

static void replay_names_the_contexts_task(struct kunit *test)
{
	struct pmuk_place *p = pmuk_new_place(test, pmuk_test_sim(test, 2, 32), PMUK_TARGET_TASK);

	expect_named(test, p, p->task);
}

/* The task that ran on the CPU at the overflow is not known any more. */
static void replay_on_a_cpu_names_no_task(struct kunit *test)
{
	expect_named(test, pmuk_new_place(test, pmuk_test_sim(test, 2, 32), PMUK_TARGET_CPU), NULL);
}

static void replay_counts_as_an_overflow_of_its_turn(struct kunit *test)
{
	static const struct pmuk_pmd one = { .short_reset = PERIOD, .switch_overflows = 1 };
	struct turns *t = started_turns(test, by_call, 0, &one);

	pmuk_sim_advance(t->sim, 0, PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[2]), 0);
	pmuk_ctx_silent(test, t->ctx);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[0]), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_runs(t->ctx, ids[1], t->cpu, 1));
	pmuk_ctx_expect_msg(test, t->ctx, PMUK_MSG_SWITCH, t->cpu, ids[1], 1);
}

/*
 * An overflow that was pending when pmuk_stop() ended a turn is not handled after the next start.
 */
static void stop_forgets_what_is_pending(struct kunit *test)
{
	struct turns *t = started_turns(test, by_call, 0, &notify);

	pmuk_sim_advance(t->sim, 0, PERIOD + 5);
	KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
	pmuk_ctx_start(test, t->ctx);
	pmuk_ctx_silent(test, t->ctx);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[0], -1).replayed, 0);
	expect_counted(t, 0, PERIOD + 5);
	pmuk_sim_count(t->sim, 0, PERIOD);
	expect_overflow(t);
}

/*
 * A set's turn has ended before the stop. The next start forgets that set's pending overflow, too,
 * and begins a new period.
 */
static void start_prepares_each_set(struct kunit *test)
{
	struct turns *t = started_turns(test, by_call, 0, &notify);

	pmuk_sim_advance(t->sim, 0, PERIOD + PERIOD / 2);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[1]), 0);
	KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
	pmuk_ctx_start(test, t->ctx);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[0]), 0);
	pmuk_sim_count(t->sim, 0, PERIOD - 1);
	pmuk_ctx_silent(test, t->ctx);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[0], -1).replayed, 0);
	pmuk_sim_count(t->sim, 0, 1);
	expect_overflow(t);
	expect_counted(t, 0, 2 * PERIOD + PERIOD / 2);
}

/* ---- CPUs work at the same time ---- */

/* Each CPU waits in the PMU's driver, at @point, until all CPUs are there. */
static struct meeting {
	enum pmuk_sim_point point;
	struct cpumask all, came;
	bool missed;			/* a CPU has waited in vain */
} meeting;

static void meet(struct pmuk_sim *sim, enum pmuk_sim_point point, void *data)
{
	u64 end = ktime_get_mono_fast_ns() + 20 * NSEC_PER_SEC;
	int cpu = smp_processor_id();

	if (point != meeting.point || !cpumask_test_cpu(cpu, &meeting.all) ||
	    cpumask_test_and_set_cpu(cpu, &meeting.came))
		return;
	/* CPUs come meanwhile, so look again and again. */
	while (!data_race(cpumask_subset(&meeting.all, &meeting.came)) &&
	       !READ_ONCE(meeting.missed)) {
		if (ktime_get_mono_fast_ns() > end)
			WRITE_ONCE(meeting.missed, true);
		cpu_relax();
	}
}

static void expect_at_once(struct turns *t, int ret, const char *call)
{
	pmuk_sim_set_hook(t->sim, NULL);
	KUNIT_EXPECT_EQ_MSG(t->test, ret, 0, "%s", call);
	KUNIT_EXPECT_TRUE_MSG(t->test, cpumask_equal(&meeting.all, &meeting.came), "%s", call);
	KUNIT_EXPECT_FALSE_MSG(t->test, meeting.missed, "%s", call);
}

static void expect_meeting(struct turns *t, enum pmuk_sim_point point)
{
	static const struct pmuk_sim_hook hook = { .fn = meet };

	meeting.point = point;
	meeting.missed = false;
	cpumask_clear(&meeting.came);
	pmuk_sim_set_hook(t->sim, &hook);
}

/* Workers leave isolated CPUs alone: the caller interrupts these, one after the other. */
static void calls_are_on_all_cpus_at_once(struct kunit *test)
{
	struct turns *t = new_turns(test, -1, by_call, PMUK_CTX_MASK, &notify);
	int cpu;

	pmuk_test_pin_first(test);
	cpumask_clear(&meeting.all);
	for_each_online_cpu(cpu) {
		if (!cpu_is_isolated(cpu) && !tick_nohz_full_cpu(cpu))
			cpumask_set_cpu(cpu, &meeting.all);
	}
	expect_meeting(t, PMUK_SIM_RELOADING);
	expect_at_once(t, pmuk_start(t->ctx, NULL), "pmuk_start()");
	expect_meeting(t, PMUK_SIM_RELOADING);
	expect_at_once(t, pmuk_switch_evtset(t->ctx, ids[1]), "pmuk_switch_evtset()");
	for_each_online_cpu(cpu)
		KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(t->sim, cpu, 0, PERIOD), PERIOD);
	expect_meeting(t, PMUK_SIM_RELOADING);
	expect_at_once(t, pmuk_restart(t->ctx), "pmuk_restart()");
	expect_meeting(t, PMUK_SIM_ENTERED);
	expect_at_once(t, pmuk_stop(t->ctx), "pmuk_stop()");
}

static void do_nothing(void *unused)
{
	cpu_relax();
}

/* The task that the interrupt or the worker finds, which loads a counter on @cpu. */
static struct {
	int cpu;
	struct task_struct *task;
} loader;

static void note_loader(struct pmuk_sim *sim, enum pmuk_sim_point point, void *data)
{
	if (point == PMUK_SIM_RELOADING && smp_processor_id() == loader.cpu)
		loader.task = current;
}

static void start_again(struct turns *t, unsigned int nr)
{
	KUNIT_EXPECT_EQ(t->test, pmuk_stop(t->ctx), 0);
	pmuk_ctx_start(t->test, t->ctx);
}

static void switch_again(struct turns *t, unsigned int nr)
{
	KUNIT_EXPECT_EQ(t->test, pmuk_switch_evtset(t->ctx, ids[(nr + 1) % 3]), 0);
}

/*
 * A real-time task occupies a CPU. The caller does not wait until a worker can run there. On a slow
 * machine the scheduler may let the worker run before the caller has come so far: try again then.
 */
static void waits_for_no_worker(struct kunit *test, void (*call)(struct turns *t, unsigned int nr))
{
	static const struct pmuk_sim_hook hook = { .fn = note_loader };
	struct turns *t = new_turns(test, -1, by_call, 0, NULL);
	struct pmuk_loop *loop;
	unsigned int i;

	loader.cpu = pmuk_test_other_cpu(test, pmuk_test_pin_first(test));
	loader.task = NULL;
	pmuk_ctx_start(test, t->ctx);
	loop = pmuk_loop_start(test, loader.cpu, do_nothing, NULL);
	sched_set_fifo(loop->task);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(READ_ONCE(loop->turns)));
	pmuk_sim_set_hook(t->sim, &hook);
	for (i = 0; i < 10 && loader.task != loop->task; i++)
		call(t, i);
	pmuk_sim_set_hook(t->sim, NULL);
	KUNIT_EXPECT_PTR_EQ(test, loader.task, loop->task);
	pmuk_loop_stop(test, loop);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(t->sim, loader.cpu, 0, 1), 1);
}

static void start_waits_for_no_worker(struct kunit *test)
{
	waits_for_no_worker(test, start_again);
}

static void switch_waits_for_no_worker(struct kunit *test)
{
	waits_for_no_worker(test, switch_again);
}

/* ---- beside other users of the PMU ---- */

/* Returns two loaded sets of two counters with @flags, on a PMU with @nr registers. */
static struct turns *two_sets(struct kunit *test, unsigned int nr, u32 flags)
{
	struct turns *t = pmuk_test_zalloc(test, sizeof(*t));
	unsigned int i;

	t->test = test;
	t->cpu = pmuk_test_pin_first(test);
	t->sim = pmuk_test_sim(test, nr, 32);
	t->ctx = pmuk_ctx_create(test, NULL);
	pmuk_ctx_add_set(test, t->ctx, 1, 0);
	for (i = 0; i < 4; i++)
		pmuk_ctx_add(test, t->ctx, t->sim, i / 2, i % 2, i, flags);
	pmuk_ctx_load(test, t->ctx, t->cpu);
	return t;
}

static void count_loads(struct pmuk_sim *sim, enum pmuk_sim_point point, void *data)
{
	if (point == PMUK_SIM_RELOADING)
		atomic_inc(data);
}

/*
 * If CONFIG_PERF_EVENTS_LOCAL is off, each enable reschedules the PMU, which loads the counters of
 * other users, too.
 */
static void expect_loads(struct kunit *test, const atomic_t *loads, int nr)
{
	KUNIT_EXPECT_GE(test, atomic_read(loads), nr);
	if (IS_ENABLED(CONFIG_PERF_EVENTS_LOCAL))
		KUNIT_EXPECT_EQ(test, atomic_read(loads), nr);
}

static const struct placing {
	const char *name;
	u32 flags;
} placings[] = { { "flexible", 0 }, { "pinned", PMUK_PINNED } };

KUNIT_ARRAY_PARAM_DESC(placings, placings, name);

/* A start loads each counter of the set once, and no counter of other users. */
static void start_leaves_others_alone(struct kunit *test)
{
	const struct placing *placing = test->param_value;
	struct turns *t = two_sets(test, 3, placing->flags);
	const struct pmuk_attr attr = { .type = pmuk_sim_type(t->sim), .config = 5 };
	struct pmuk_counter *other = pmuk_test_counter(test, &attr, t->cpu, NULL);
	static atomic_t loads;
	static const struct pmuk_sim_hook hook = { .fn = count_loads, .data = &loads };

	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(other), 0);
	atomic_set(&loads, 0);
	pmuk_sim_set_hook(t->sim, &hook);
	pmuk_ctx_start(test, t->ctx);
	expect_loads(test, &loads, 2);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, 1), 0);
	expect_loads(test, &loads, 4);
	KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
	expect_loads(test, &loads, 4);
	pmuk_sim_set_hook(t->sim, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 5, 7), 7);
	pmuk_test_expect_count(test, other, 7);
}

/*
 * A pinned set pushes out other users' counters that are not pinned. They return when perf core
 * reschedules next, as it does when one of them is enabled again.
 */
static void pinned_set_gets_its_room(struct kunit *test)
{
	struct turns *t = two_sets(test, 2, PMUK_PINNED);
	const struct pmuk_attr attr = { .type = pmuk_sim_type(t->sim), .config = 5 };
	struct pmuk_counter *other = pmuk_test_counter(test, &attr, t->cpu, NULL);

	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(other), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 5, 3), 3);
	pmuk_ctx_start(test, t->ctx);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 0, 4), 4);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 1, 4), 4);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 5, 3), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 2, 4), 4);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 3, 4), 4);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 5, 3), 0);
	KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(other), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(other), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 5, 3), 3);
	pmuk_test_expect_count(test, other, 6);
}

/*
 * A register is free, and another user's counter has waited for it longer. perf core places that
 * counter first, and the set, which is not pinned, waits.
 */
static void set_waits_behind_others(struct kunit *test)
{
	const struct pmuk_sim_config config = {
		.name = "pmuk_sim", .nr_counters = 3, .width = 32, .mux_ms = 100000,
	};
	struct pmuk_sim *sim = pmuk_test_sim_config(test, &config);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct pmuk_attr attr = { .type = pmuk_sim_type(sim) };
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *others[4];

	for (attr.config = 0; attr.config < ARRAY_SIZE(others); attr.config++) {
		others[attr.config] = pmuk_test_counter(test, &attr, cpu, NULL);
		KUNIT_EXPECT_EQ(test, pmuk_counter_enable(others[attr.config]), 0);
	}
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 3, 2), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(others[0]), 0);
	pmuk_ctx_add(test, ctx, sim, 0, 0, 5, 0);
	pmuk_ctx_run(test, ctx, cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 3, 2), 2);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 5, 2), 0);
}

/* ---- turns end on their own CPU ---- */

#define LONG_TURN	(1000 * NSEC_PER_SEC)

static enum hrtimer_restart nothing_happens(struct hrtimer *timer)
{
	return HRTIMER_NORESTART;
}

static void start_a_timer(void *timer)
{
	hrtimer_start(timer, ns_to_ktime(LONG_TURN), HRTIMER_MODE_REL_PINNED);
}

/* Returns what identifies the timer queue of @cpu, which the kernel stores in each timer. */
static const void *queue_of(struct kunit *test, int cpu)
{
	struct hrtimer *timer = pmuk_test_zalloc(test, sizeof(*timer));

	hrtimer_setup(timer, nothing_happens, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	smp_call_function_single(cpu, start_a_timer, timer, true);
	hrtimer_cancel(timer);
	return timer->base;
}

static void expect_timers_at_home(struct kunit *test, struct turns *t, const char *after)
{
	int cpu;

	for_each_online_cpu(cpu) {
		struct hrtimer *timer = &t->ctx->insts[cpu]->timer;

		KUNIT_EXPECT_TRUE_MSG(test, hrtimer_is_queued(timer), "after %s", after);
		KUNIT_EXPECT_PTR_EQ_MSG(test, (const void *)timer->base, queue_of(test, cpu),
					"CPU %d, after %s", cpu, after);
	}
}

/* Each CPU has the timer of its own turn, whichever CPU starts, restarts or switches. */
static void timers_are_on_their_cpus(struct kunit *test)
{
	static const u64 later[ARRAY_SIZE(ids)] = { LONG_TURN, LONG_TURN, LONG_TURN };
	int here = pmuk_test_pin_first(test), other = pmuk_test_other_cpu(test, here);
	struct turns *t = new_turns(test, -1, later, PMUK_CTX_MASK, &notify);

	pmuk_ctx_start(test, t->ctx);
	expect_timers_at_home(test, t, "pmuk_start()");
	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(t->sim, other, 0, PERIOD), PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_restart(t->ctx), 0);
	expect_timers_at_home(test, t, "pmuk_restart()");
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[1]), 0);
	expect_timers_at_home(test, t, "pmuk_switch_evtset()");
}

/*
 * Three counters overflow together. The first overflow masks, and the second one is handled slowly.
 */
#define TOGETHER	3
#define SOME_TURN	(50 * NSEC_PER_MSEC)

static struct {
	struct pmuk_context *ctx;
	int home;
	atomic_t handled, elsewhere;
} together;

/*
 * Waits until a timer on another CPU would have fired. A timer on this CPU cannot, as interrupts
 * are off.
 */
static void outlast_the_timer(void)
{
	struct hrtimer *timer = &together.ctx->insts[together.home]->timer;
	u64 end = ktime_to_ns(hrtimer_get_expires(timer)) + SOME_TURN;

	while (ktime_get_ns() < end && !atomic_read(&together.elsewhere))
		cpu_relax();
}

static u32 together_handler(const struct pmuk_format_event *event)
{
	if (event->cpu != together.home)
		atomic_inc(&together.elsewhere);
	switch (atomic_inc_return(&together.handled)) {
	case 1:
		return PMUK_FORMAT_MASK;
	case 2:
		outlast_the_timer();
		fallthrough;
	default:
		return PMUK_FORMAT_RESET;
	}
}

static struct pmuk_format together_format = {
	.name		= "pmuk_together",
	.uuid		= UUID_INIT(0x70637468, 0x1f2e, 0x4a4b, 1, 3, 5, 7, 9, 11, 13, 15),
	.owner		= THIS_MODULE,
	.handler	= together_handler,
};

static void add_counters_together(struct kunit *test, struct pmuk_sim *sim, u16 set)
{
	struct pmuk_pmd pmd = { .set = set, .short_reset = PERIOD };

	for (pmd.num = 0; pmd.num < TOGETHER; pmd.num++)
		pmuk_ctx_add_pmd(test, together.ctx, sim, 0, &pmd);
}

static void overflow_together(void *sim)
{
	pmuk_sim_advance(sim, 0, PERIOD);
	pmuk_sim_interrupt(sim);
}

/*
 * The turn's timeout passes while its CPU still handles the overflows that came with the masking
 * one. No other CPU may handle any of them.
 */
static void timer_leaves_overflows_alone(struct kunit *test)
{
	const struct pmuk_context_attr attr = { .format = &together_format.uuid };
	struct pmuk_sim *sim = pmuk_test_sim(test, TOGETHER, 32);
	int here = pmuk_test_pin_first(test), other = pmuk_test_other_cpu(test, here);
	u16 set;

	atomic_set(&together.handled, 0);
	atomic_set(&together.elsewhere, 0);
	together.home = other;
	pmuk_ctx_format(test, &together_format);
	together.ctx = pmuk_ctx_create(test, &attr);
	for (set = 0; set < 2; set++) {
		pmuk_ctx_add_set(test, together.ctx, set, SOME_TURN);
		add_counters_together(test, sim, set);
	}
	pmuk_ctx_run(test, together.ctx, other);
	KUNIT_EXPECT_EQ(test, smp_call_function_single(other, overflow_together, sim, true), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&together.handled), TOGETHER);
	KUNIT_EXPECT_EQ(test, atomic_read(&together.elsewhere), 0);
}

/* ---- what a set reports of its turns ---- */

static void overflowed_is_of_the_latest_turn(struct kunit *test)
{
	struct turns *t = started_turns(test, by_call, 0, &notify);

	pmuk_sim_count(t->sim, 0, PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[0], -1).overflowed, BIT(0));
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[1]), 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[0], -1).overflowed, BIT(0));
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[1], -1).overflowed, 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[0]), 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[0], -1).overflowed, 0);
}

/* Holds the outer and the inner bounds of the time that a context has run. */
struct span {
	u64 begun, began, ending, ended;
};

static void expect_durations(struct kunit *test, struct turns *t, int cpu, struct span *span)
{
	u64 sum = 0;
	unsigned int i;

	for (i = 0; i < 3; i++)
		sum += pmuk_ctx_info(t->ctx, ids[i], cpu).active_duration;
	KUNIT_EXPECT_GE(test, sum, span->ending - span->began);
	KUNIT_EXPECT_LE(test, sum, span->ended - span->begun);
}

/* The durations of all turns add up to the time that the context ran, to the nanosecond. */
static void durations_add_up(struct kunit *test)
{
	struct turns *t = new_turns(test, -1, by_time, 0, NULL);
	struct span span;
	u64 sum;
	int cpu;

	span.begun = ktime_get_ns();
	pmuk_ctx_start(test, t->ctx);
	span.began = ktime_get_ns();
	for_each_online_cpu(cpu)
		KUNIT_EXPECT_TRUE(test, pmuk_ctx_runs(t->ctx, ids[2], cpu, 8));
	span.ending = ktime_get_ns();
	span.ended = U64_MAX;
	for_each_online_cpu(cpu)
		expect_durations(test, t, cpu, &span);
	span.ending = ktime_get_ns();
	KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
	span.ended = ktime_get_ns();
	for_each_online_cpu(cpu)
		expect_durations(test, t, cpu, &span);

	sum = pmuk_ctx_info(t->ctx, ids[1], -1).active_duration;
	for_each_online_cpu(cpu)
		sum -= pmuk_ctx_info(t->ctx, ids[1], cpu).active_duration;
	KUNIT_EXPECT_EQ(test, sum, 0);
}

/* ---- a long run, measured from without ---- */

#define LONG_RUN	(NSEC_PER_SEC / 2)
#define TURNS		5		/* turns of each set, at least */
#define ATTEMPTS	20

/* Names a kind of target, and says what ends turns there. */
struct way {
	const char *name;
	enum pmuk_target_type type;
	u64 timeouts[ARRAY_SIZE(ids)];
	struct pmuk_pmd pmd;
	bool calls;
};

#define IN_TIME		.timeouts = { 1000000, 1500000, 2000000 }
#define WITH_OVERFLOWS	.pmd = { .short_reset = PERIOD, .switch_overflows = LIMIT }
#define ON_CALL		.calls = true

static const struct way ways[] = {
	{ "CPUS, in time", PMUK_TARGET_CPUS, IN_TIME },
	{ "CPUS, with overflows", PMUK_TARGET_CPUS, WITH_OVERFLOWS },
	{ "CPUS, on call", PMUK_TARGET_CPUS, ON_CALL },
	{ "TASK, in time", PMUK_TARGET_TASK, IN_TIME },
	{ "TASK, with overflows", PMUK_TARGET_TASK, WITH_OVERFLOWS },
	{ "TASK, on call", PMUK_TARGET_TASK, ON_CALL },
};

KUNIT_ARRAY_PARAM_DESC(ways, ways, name);

/* Holds a context that runs for long, and the bounds for its times. */
struct run {
	struct turns t;
	struct pmuk_place *p;
	const struct way *way;
	int *parts;			/* take turns apart: CPUs, or -1 for a task */
	unsigned int nr_parts;
	unsigned int calls;
	struct span span;
	struct perf_event *clock;	/* an event of the task, always enabled; or NULL */
	u64 busy;			/* how long ->clock ran */
};

/*
 * Returns how long perf core has had the task's events on a CPU, or 0 without a task. The
 * scheduler's time of the task would include switches of events, which take long on a busy host.
 */
static u64 task_ran(const struct run *r)
{
	u64 enabled, running = 0;

	if (r->clock)
		perf_event_read_value(r->clock, &enabled, &running);
	return running;
}

static void be_busy(struct pmuk_place *p)
{
	pmuk_sim_count(p->sim, 0, LIMIT * PERIOD);
	pmuk_test_spin(500000);
}

/*
 * Lets some events happen. The CPUs stay idle enough that the test's own task is soon back to stop
 * the run.
 */
static void go_on(struct run *r)
{
	int cpu;

	if (pmuk_place_is_task(r->p))
		pmuk_place_tell(r->p, be_busy);
	else
		for_each_online_cpu(cpu)
			pmuk_sim_count_on(r->t.sim, cpu, 0, LIMIT * PERIOD);
	usleep_range(200, 400);
	if (r->way->calls)
		pmuk_switch_evtset(r->t.ctx, ids[r->calls++ % ARRAY_SIZE(ids)]);
}

static bool all_had_turns(const struct run *r)
{
	unsigned int n;

	for (n = 0; n < r->nr_parts * ARRAY_SIZE(ids); n++) {
		int cpu = r->parts[n / ARRAY_SIZE(ids)];

		if (pmuk_ctx_info(r->t.ctx, ids[n % ARRAY_SIZE(ids)], cpu).runs < TURNS)
			return false;
	}
	return true;
}

/* If the start was interrupted, the run would take minutes. Such an attempt is given up. */
#define LONGEST_RUN	(8 * LONG_RUN)

/*
 * A longer start makes a longer run, so that the start is a small part of it. Returns false if the
 * run would have to be longer than @most.
 */
static bool run_for_long(struct kunit *test, struct run *r, u64 most)
{
	unsigned long patience = jiffies + 6 * PMUK_CTX_PATIENCE;
	struct span *s = &r->span;
	u64 least;

	s->begun = ktime_get_ns();
	pmuk_ctx_start(test, r->t.ctx);
	s->began = ktime_get_ns();
	least = max(LONG_RUN, 500 * (s->began - s->begun));
	r->busy = task_ran(r);
	do {
		go_on(r);
		s->ending = ktime_get_ns();
	} while ((s->ending - s->began < least || !all_had_turns(r)) && least <= most &&
		 time_before(jiffies, patience));
	r->busy = task_ran(r) - r->busy;
	s->ending = ktime_get_ns();
	KUNIT_EXPECT_EQ(test, pmuk_stop(r->t.ctx), 0);
	s->ended = ktime_get_ns();
	KUNIT_EXPECT_TRUE(test, least > most || all_had_turns(r));
	return least <= most;
}

/*
 * Returns whether both ends of the run are known to half a percent. They are not if the start or
 * the stop was interrupted.
 */
static bool is_exact(const struct span *s)
{
	u64 ran = s->ending - s->began;

	return (s->ended - s->begun - ran) * 200 <= ran;
}

struct sums {
	u64 active, enabled, running;
};

static struct sums sum_up(struct kunit *test, struct run *r, int cpu)
{
	struct sums sums = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		struct pmuk_set_info info = pmuk_ctx_info(r->t.ctx, ids[i], cpu);
		struct pmuk_pmd_read read = { .set = ids[i], .cpu = cpu };

		KUNIT_EXPECT_EQ(test, info.ret, 0);
		KUNIT_EXPECT_EQ(test, pmuk_read_pmds(r->t.ctx, &read, 1), 1);
		KUNIT_EXPECT_LE(test, read.time_running, read.time_enabled);
		sums.active += info.active_duration;
		sums.enabled += read.time_enabled;
		sums.running += read.time_running;
	}
	return sums;
}

/*
 * The duration of a turn includes the exchange of counters before it, during which no counter is
 * enabled. The instance sums up exchanges as switch_ns. A task's counters are enabled while the
 * task runs.
 */
static void expect_long_run(struct kunit *test, struct run *r, int cpu)
{
	const struct pmuk_inst *inst = r->t.ctx->insts[max(cpu, 0)];
	u64 ran = r->span.ending - r->span.began, percent = ran / 100;
	struct sums sums = sum_up(test, r, cpu);

	KUNIT_EXPECT_LE_MSG(test, abs_diff(sums.active, ran) * 100, ran, "CPU %d", cpu);
	KUNIT_EXPECT_LE_MSG(test, sums.enabled, sums.active + percent, "CPU %d", cpu);
	KUNIT_EXPECT_GE_MSG(test, sums.enabled + inst->switch_ns + percent,
			    pmuk_place_is_task(r->p) ? r->busy : sums.active, "CPU %d", cpu);
	KUNIT_EXPECT_EQ(test, sums.running, sums.enabled);
}

static struct run *new_run(struct kunit *test, const struct way *way)
{
	struct perf_event_attr dummy = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(dummy),
					 .config = PERF_COUNT_SW_DUMMY };
	struct run *r = pmuk_test_zalloc(test, sizeof(*r));
	int cpu;

	r->way = way;
	r->t.test = test;
	r->t.sim = pmuk_test_sim(test, 2, 32);
	r->p = pmuk_new_place(test, r->t.sim, way->type);
	r->parts = pmuk_test_zalloc(test, nr_cpu_ids * sizeof(*r->parts));
	if (r->p->task) {
		r->clock = pmuk_test_task_event(test, r->p->task, &dummy);
		r->parts[r->nr_parts++] = -1;
	} else {
		for_each_online_cpu(cpu)
			r->parts[r->nr_parts++] = cpu;
	}
	r->t.ctx = pmuk_ctx_create(test, NULL);
	add_sets(&r->t, way->timeouts, way->pmd);
	pmuk_place_load(r->p, r->t.ctx);
	return r;
}

static void durations_are_the_time(struct kunit *test)
{
	struct run *r;
	unsigned int i;

	for (i = 0; i < ATTEMPTS; i++) {
		r = new_run(test, test->param_value);
		if (run_for_long(test, r, i < ATTEMPTS / 2 ? LONGEST_RUN : U64_MAX) &&
		    is_exact(&r->span))
			break;
		kunit_release_action(test, pmuk_ctx_put, r->t.ctx);
		if (r->p->task) {
			kunit_release_action(test, pmuk_test_put_event, r->clock);
			kunit_release_action(test, pmuk_place_put, r->p);
		}
		kunit_release_action(test, pmuk_test_put_sim, r->t.sim);
	}
	KUNIT_ASSERT_LT_MSG(test, i, ATTEMPTS, "start and stop took too long each time");
	for (i = 0; i < r->nr_parts; i++)
		expect_long_run(test, r, r->parts[i]);
}

/* ---- masked ---- */

static void expect_stands_still(struct turns *t)
{
	unsigned int n;

	for (n = 0; n < 4; n++)
		KUNIT_EXPECT_EQ(t->test, pmuk_sim_count(t->sim, n, 7), 0);
}

static u64 all_runs(struct turns *t)
{
	u64 sum = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ids); i++)
		sum += pmuk_ctx_info(t->ctx, ids[i], -1).runs;
	return sum;
}

/* The wait is far longer than a turn, so a turn that wrongly comes would be seen. */
static void no_turn_while_masked(struct kunit *test)
{
	struct turns *t = started_turns(test, by_time, PMUK_CTX_MASK, &notify);
	struct pmuk_msg msg;
	u64 runs;

	KUNIT_EXPECT_TRUE(test, pmuk_ctx_runs(t->ctx, ids[2], t->cpu, 2));
	/* Events between two turns are not counted, so make events until a message comes. */
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_sim_count(t->sim, 0, PERIOD) &&
					       pmuk_read(t->ctx, &msg, true) == 1));
	expect_stands_still(t);
	runs = all_runs(t);
	usleep_range(20 * SHORT / NSEC_PER_USEC, 25 * SHORT / NSEC_PER_USEC);
	expect_stands_still(t);
	KUNIT_EXPECT_EQ(test, all_runs(t), runs);
	KUNIT_EXPECT_EQ(test, pmuk_restart(t->ctx), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(all_runs(t) > runs + 6));
}

/* Returns a context with two sets. The first has three counters of event 0, of which one masks. */
static struct pmuk_context *new_masked_by_one(struct kunit *test, struct pmuk_sim *sim, int cpu)
{
	const struct pmuk_context_attr attr = { .flags = PMUK_CTX_MASK };
	struct pmuk_context *ctx = pmuk_ctx_create(test, &attr);
	struct pmuk_pmd pmd = { .short_reset = PERIOD };

	for (pmd.num = 0; pmd.num < 3; pmd.num++) {
		pmd.flags = pmd.num == 1 ? PMUK_PMD_NOTIFY : 0;
		pmuk_ctx_add_pmd(test, ctx, sim, 0, &pmd);
	}
	pmuk_ctx_add_set(test, ctx, 1, 0);
	pmuk_ctx_run(test, ctx, cpu);
	return ctx;
}

/*
 * Three counters overflow together, and the mask comes before some of them are served. The mask
 * handles these. They find no room after the restart, and are not replayed in the next turn.
 */
static void overflow_that_a_mask_has_handled_is_not_replayed(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 3, 32);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_context *ctx = new_masked_by_one(test, sim, cpu);

	pmuk_sim_advance(sim, 0, PERIOD);
	pmuk_sim_interrupt(sim);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 0, -1).overflowed, 7);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 3), 0);
	KUNIT_EXPECT_EQ(test, pmuk_restart(ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(ctx, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(ctx, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 0, -1).replayed, 0);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, PERIOD - 1), 3 * (PERIOD - 1));
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 0, -1).overflowed, 0);
	pmuk_sim_advance(sim, 0, 1);
	pmuk_sim_interrupt(sim);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(ctx, 0, -1).overflowed, 7);
}

/* The overflow that masks also requests the next turn, which begins after the restart. */
static void masking_overflow_ends_its_turn(struct kunit *test)
{
	static const struct pmuk_pmd both = { .short_reset = PERIOD, .flags = PMUK_PMD_NOTIFY,
					      .switch_overflows = 1 };
	struct turns *t = started_turns(test, by_call, PMUK_CTX_MASK, &both);

	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 0, 2 * PERIOD), PERIOD);
	usleep_range(2000, 3000);
	KUNIT_EXPECT_EQ(test, all_runs(t), 1);
	KUNIT_EXPECT_EQ(test, pmuk_restart(t->ctx), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_runs(t->ctx, ids[1], t->cpu, 1));
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 2, 7), 7);
	expect_told(t, 1, 1);
}

static void call_waits_for_the_restart(struct kunit *test)
{
	struct turns *t = started_turns(test, by_call, PMUK_CTX_MASK, &notify);
	unsigned int n;

	pmuk_sim_count(t->sim, 0, PERIOD);
	for (n = 1; n < 3; n++) {
		KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[n]), 0);
		expect_stands_still(t);
	}
	KUNIT_EXPECT_EQ(test, all_runs(t), 1);
	KUNIT_EXPECT_EQ(test, pmuk_restart(t->ctx), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_runs(t->ctx, ids[2], t->cpu, 1));
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(t->ctx, ids[1], -1).runs, 0);
	/* Each counter of the masked set counts again at its next turn. */
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[0]), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 1, 5), 5);
	expect_counted(t, 0, PERIOD + 5);
}

/* A request is forgotten if another request names the active set, or if the context is stopped. */
static void call_can_be_taken_back(struct kunit *test)
{
	struct turns *t = new_turns(test, pmuk_test_pin_first(test), by_call, PMUK_CTX_MASK,
				    &notify);
	unsigned int i;

	for (i = 0; i < 2; i++) {
		pmuk_ctx_start(test, t->ctx);
		pmuk_sim_count(t->sim, 0, PERIOD);
		KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[1]), 0);
		KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[0]), 0);
		if (i)
			KUNIT_EXPECT_EQ(test, pmuk_restart(t->ctx), 0);
		else
			KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
	}
	usleep_range(2000, 3000);
	KUNIT_EXPECT_EQ(test, all_runs(t), 2);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 1, 5), 5);
}

/* ---- one that cannot be placed ---- */

static void lost_counter_keeps_no_other_from_counting(struct kunit *test)
{
	const struct pmuk_sim_config config = { .name = "pmuk_sim2", .nr_counters = 1,
						.width = 32 };
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_sim *full = pmuk_test_sim_config(test, &config);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	int cpu = pmuk_test_pin_first(test);

	pmuk_ctx_add(test, ctx, sim, 0, 0, 1, 0);
	pmuk_ctx_add_set(test, ctx, 1, 0);
	pmuk_ctx_add(test, ctx, full, 1, 0, 0, PMUK_PINNED);
	pmuk_ctx_add(test, ctx, sim, 1, 1, 0, 0);
	pmuk_ctx_run(test, ctx, cpu);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(full, cpu, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(ctx, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(full, 0, 5), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 5), 5);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(full, cpu, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(ctx, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(ctx, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(full, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 1, 0, -1), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 1, 1, -1), 5);
}

/* ---- under load ---- */

#define OFFERS	500

/* Makes events on one CPU, in the given context of execution, while turns come and go there. */
struct source {
	struct pmuk_sim *sim;
	struct pmuk_loop *loop;
	enum pmuk_irq_level level;
	u64 offered;
	unsigned int failed;
};

static void count_here(void *data)
{
	struct source *s = data;

	pmuk_sim_count(s->sim, s->offered % 4, 7);
	pmuk_sim_count(s->sim, 0, 13);
}

static void make_events(void *data)
{
	struct source *s = data;

	s->failed += !!pmuk_irq_run(s->level, count_here, s);
	WRITE_ONCE(s->offered, s->offered + 1);
}

static struct source *start_sources(struct turns *t, enum pmuk_irq_level level)
{
	struct source *sources = pmuk_test_zalloc(t->test, nr_cpu_ids * sizeof(*sources));
	int cpu;

	for_each_online_cpu(cpu) {
		struct source *s = &sources[cpu];

		s->sim = t->sim;
		s->level = level;
		s->loop = pmuk_loop_start(t->test, cpu, make_events, s);
	}
	return sources;
}

static void stop_sources(struct kunit *test, struct source *sources)
{
	int cpu;

	for_each_online_cpu(cpu) {
		pmuk_loop_stop(test, sources[cpu].loop);
		KUNIT_EXPECT_EQ(test, sources[cpu].failed, 0);
		KUNIT_EXPECT_GE(test, sources[cpu].offered, OFFERS);
	}
}

/* Each event that the PMU has counted is in the set whose turn it was, and in no other. */
static void expect_conserved(struct kunit *test, struct turns *t)
{
	u64 sum = 0;
	unsigned int n;

	for (n = 0; n < 3; n++) {
		u64 own = pmuk_ctx_count(test, t->ctx, ids[n], 5, -1);

		KUNIT_EXPECT_EQ(test, own, pmuk_sim_counted(t->sim, n + 1));
		KUNIT_EXPECT_GT(test, own, 0);
		sum += pmuk_ctx_count(test, t->ctx, ids[n], 0, -1);
	}
	KUNIT_EXPECT_EQ(test, sum, pmuk_sim_counted(t->sim, 0));
}

/* Ends the load after enough turns and events. Then each event is in exactly one count. */
static void end_load(struct kunit *test, struct turns *t, struct source *sources)
{
	int cpu;

	for_each_online_cpu(cpu) {
		KUNIT_EXPECT_TRUE(test, pmuk_ctx_runs(t->ctx, ids[2], cpu, 4));
		KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(READ_ONCE(sources[cpu].offered) >= OFFERS));
	}
	KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
	stop_sources(test, sources);
	expect_conserved(test, t);
}

/* Returns the number of whole periods in all counts. Each of them has been one overflow. */
static u64 periods(struct kunit *test, struct turns *t)
{
	unsigned int n;
	u64 sum = 0;
	int cpu;

	for_each_online_cpu(cpu) {
		for (n = 0; n < 3; n++)
			sum += div_u64(pmuk_ctx_count(test, t->ctx, ids[n], 0, cpu), PERIOD);
	}
	return sum;
}

static void storm_is_conserved(struct kunit *test)
{
	enum pmuk_irq_level level = pmuk_test_level(test);
	static const struct pmuk_pmd pmd = { .short_reset = PERIOD, .flags = PMUK_PMD_NOTIFY,
					     .switch_overflows = 20 };
	struct turns *t = new_turns(test, -1, by_time, 0, &pmd);
	struct told told;

	pmuk_ctx_start(test, t->ctx);
	end_load(test, t, start_sources(t, level));
	told = hear(t);
	KUNIT_EXPECT_EQ(test, told.counts[PMUK_MSG_OVERFLOW], periods(test, t));
	KUNIT_EXPECT_GT(test, told.counts[PMUK_MSG_OVERFLOW], 50);
	KUNIT_EXPECT_EQ(test, told.counters[PMUK_MSG_OVERFLOW], BIT(0));
	KUNIT_EXPECT_LE(test, told.counts[PMUK_MSG_SWITCH], all_runs(t));
}

/* Requests by call meet turns that end by time. No event is lost. */
static void calls_and_timers_mix(struct kunit *test)
{
	struct turns *t = new_turns(test, -1, by_time, 0, NULL);
	struct source *sources;
	unsigned int i;

	pmuk_ctx_start(test, t->ctx);
	sources = start_sources(t, PMUK_IRQ_TASK);
	for (i = 0; i < 24; i++)
		KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(t->ctx, ids[i % 3]), 0);
	end_load(test, t, sources);
}

/* ---- the end ---- */

static void stop_ends_turns(struct kunit *test)
{
	struct turns *t = new_turns(test, -1, by_time, 0, NULL);
	unsigned int i;
	u64 runs;

	for (i = 0; i < 10; i++) {
		runs = all_runs(t);
		pmuk_ctx_start(test, t->ctx);
		KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(all_runs(t) > runs + i));
		KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
		runs = all_runs(t);
		usleep_range(2 * SHORT / NSEC_PER_USEC, 3 * SHORT / NSEC_PER_USEC);
		KUNIT_EXPECT_EQ(test, all_runs(t), runs);
		expect_stands_still(t);
	}
}

static void unload_ends_turns(struct kunit *test)
{
	struct turns *t = new_turns(test, -1, by_time, 0, NULL);
	unsigned int i;

	for (i = 0; i < 6; i++) {
		pmuk_ctx_start(test, t->ctx);
		KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(all_runs(t) > num_online_cpus() + i));
		KUNIT_EXPECT_EQ(test, pmuk_unload_context(t->ctx), 0);
		KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
		KUNIT_EXPECT_EQ(test, all_runs(t), 0);
		pmuk_ctx_load(test, t->ctx, -1);
	}
}

/* Closing a context ends its timers and works. */
static void close_ends_turns(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 6; i++) {
		struct turns *t = new_turns(test, -1, by_time, 0, NULL);

		pmuk_ctx_start(test, t->ctx);
		KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(all_runs(t) > num_online_cpus() + i));
		if (i % 3)
			pmuk_ctx_close_at(test, t->ctx, i % 3);
		else
			kunit_release_action(test, pmuk_ctx_put, t->ctx);
		KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
		kunit_release_action(test, pmuk_test_put_sim, t->sim);
	}
}

/* ---- of a task ---- */

static void count_three(void *sim)
{
	pmuk_sim_count(sim, 0, 3);
}

/* The sets of a task take turns wherever the task runs, and count all its events. */
static void task_has_turns(struct kunit *test)
{
	struct turns t = { .test = test, .sim = pmuk_test_sim(test, 2, 32), .cpu = -1 };
	struct pmuk_target target = { .type = PMUK_TARGET_TASK };
	struct pmuk_loop *loop;
	u64 sum = 0;
	unsigned int i;

	t.ctx = pmuk_ctx_create(test, NULL);
	add_sets(&t, by_time, notify);
	loop = pmuk_loop_start(test, -1, count_three, t.sim);
	target.task = loop->task;
	KUNIT_EXPECT_EQ(test, pmuk_load_context(t.ctx, &target), 0);
	pmuk_ctx_start(test, t.ctx);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_runs(t.ctx, ids[2], t.cpu, 3));
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_sim_counted(t.sim, 0) > 3 * PERIOD));
	KUNIT_EXPECT_EQ(test, pmuk_stop(t.ctx), 0);
	for (i = 0; i < 3; i++)
		sum += pmuk_ctx_count(test, t.ctx, ids[i], 0, -1);
	pmuk_loop_stop(test, loop);
	KUNIT_EXPECT_EQ(test, sum, pmuk_sim_counted(t.sim, 0));
}

static struct kunit_case pmuk_evtset_cases[] = {
	KUNIT_CASE(calls_refuse_bad_arguments),
	KUNIT_CASE(timeout_is_checked),
	KUNIT_CASE(calls_say_how_far_they_got),
	KUNIT_CASE(getinfo_knows_its_cpus),
	KUNIT_CASE(sets_stay_while_loaded),
	KUNIT_CASE(set_holds_what_was_written),
	KUNIT_CASE(all_ids_are_sets),
	KUNIT_CASE(switch_by_call),
	KUNIT_CASE(switch_is_on_all_cpus),
	KUNIT_CASE(start_is_on_all_cpus),
	KUNIT_CASE(first_turn_is_chosen),
	KUNIT_CASE(sets_take_turns_on_each_cpu),
	KUNIT_CASE(timeout_ends_a_turn_if_there_is_one),
	KUNIT_CASE(timeout_can_be_changed),
	KUNIT_CASE(empty_set_has_its_turn),
	KUNIT_CASE(switch_by_overflows),
	KUNIT_CASE(overflows_are_counted_by_turn),
	KUNIT_CASE(switch_message_names_the_set),
	KUNIT_CASE(pending_overflow_is_replayed),
	KUNIT_CASE(overflow_is_replayed_once_without_room),
	KUNIT_CASE(records_around_a_replay_have_their_periods),
	KUNIT_CASE(replay_is_on_its_cpu),
	KUNIT_CASE(replay_names_the_contexts_task),
	KUNIT_CASE(replay_on_a_cpu_names_no_task),
	KUNIT_CASE(timers_are_on_their_cpus),
	KUNIT_CASE(timer_leaves_overflows_alone),
	KUNIT_CASE(replay_counts_as_an_overflow_of_its_turn),
	KUNIT_CASE(stop_forgets_what_is_pending),
	KUNIT_CASE(start_prepares_each_set),
	KUNIT_CASE(calls_are_on_all_cpus_at_once),
	KUNIT_CASE(start_waits_for_no_worker),
	KUNIT_CASE(switch_waits_for_no_worker),
	KUNIT_CASE_PARAM(start_leaves_others_alone, placings_gen_params),
	KUNIT_CASE(pinned_set_gets_its_room),
	KUNIT_CASE(set_waits_behind_others),
	KUNIT_CASE(overflowed_is_of_the_latest_turn),
	KUNIT_CASE(durations_add_up),
	KUNIT_CASE_PARAM_ATTR(durations_are_the_time, ways_gen_params,
			      { .speed = KUNIT_SPEED_SLOW }),
	KUNIT_CASE(no_turn_while_masked),
	KUNIT_CASE(overflow_that_a_mask_has_handled_is_not_replayed),
	KUNIT_CASE(masking_overflow_ends_its_turn),
	KUNIT_CASE(call_waits_for_the_restart),
	KUNIT_CASE(call_can_be_taken_back),
	KUNIT_CASE(lost_counter_keeps_no_other_from_counting),
	KUNIT_CASE_PARAM(storm_is_conserved, levels_gen_params),
	PMUK_NMI_CASE(storm_is_conserved),
	KUNIT_CASE(calls_and_timers_mix),
	KUNIT_CASE(stop_ends_turns),
	KUNIT_CASE(unload_ends_turns),
	KUNIT_CASE(close_ends_turns),
	KUNIT_CASE(task_has_turns),
	{}
};

PMUK_SUITE(pmuk_evtset, pmuk_test_init, "KUnit tests of pmuk's event sets");
