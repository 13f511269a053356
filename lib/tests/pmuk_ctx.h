/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The suites of contexts share these helpers: contexts that are closed with the test case, their
 * counters on the simulated PMU, and their messages.
 */
#ifndef _PMUK_CTX_H
#define _PMUK_CTX_H

#include <linux/completion.h>
#include <linux/rcupdate.h>

#include "pmuk_test.h"
#include "pmuk_wait.h"

/* RCU exports this function to modules, and declares it for itself only. */
bool rcu_gp_is_expedited(void);

/* Expedited grace periods are no steps of the state that pmuk_ctx_grace() reads. */
static inline void pmuk_ctx_need_ordinary_grace(struct kunit *test)
{
	if (rcu_gp_is_expedited())
		kunit_skip(test, "grace periods are expedited");
}

/* RCU's states of two grace periods in a row differ by this. */
#define PMUK_GRACE_STEP		4

/*
 * A test measures at most this many times, until one measurement is clean. On a busy machine, most
 * measurements have grace periods of other code. Only a call that waits too often each time is
 * found.
 */
#define PMUK_GRACE_TRIES	50

/*
 * Returns how many whole grace periods pass while @fn runs. Other code may wait for grace periods
 * at the same time. So @fn waits for the least of several results.
 */
static inline unsigned long pmuk_ctx_grace(void (*fn)(void *data), void *data)
{
	unsigned long state = get_state_synchronize_rcu(), n = 0;

	fn(data);
	while (poll_state_synchronize_rcu(state + n * PMUK_GRACE_STEP))
		n++;
	return n;
}

/* Lets pmuk_ctx_grace() see one grace period pass. */
static inline void pmuk_ctx_wait_once(void *unused)
{
	synchronize_rcu();
}

KUNIT_DEFINE_ACTION_WRAPPER(pmuk_ctx_put, pmuk_close, struct pmuk_context *);

/*
 * Returns a context that is closed with the test case, or by kunit_release_action() of
 * pmuk_ctx_put().
 */
static inline struct pmuk_context *pmuk_ctx_create(struct kunit *test,
						   const struct pmuk_context_attr *attr)
{
	const struct pmuk_context_attr none = {};
	struct pmuk_context *ctx = pmuk_create_context(attr ?: &none);

	KUNIT_ASSERT_FALSE_MSG(test, IS_ERR(ctx), "create: %pe", ctx);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_ctx_put, ctx), 0);
	return ctx;
}

static inline void pmuk_ctx_add_set(struct kunit *test, struct pmuk_context *ctx, u16 id,
				    u64 timeout)
{
	struct pmuk_set_desc desc = { .id = id, .timeout = timeout, .ret = 1 };

	KUNIT_ASSERT_EQ(test, pmuk_create_evtsets(ctx, &desc, 1), 1);
	KUNIT_ASSERT_EQ(test, desc.ret, 0);
}

/* Adds a counter of event @config of @sim. pmuk_ctx_write_pmd() can set its period. */
static inline void pmuk_ctx_add(struct kunit *test, struct pmuk_context *ctx,
				struct pmuk_sim *sim, u16 set, u16 num, u64 config, u32 flags)
{
	struct pmuk_pmc pmc = { .set = set, .num = num, .type = pmuk_sim_type(sim),
				.config = config, .flags = flags };

	KUNIT_ASSERT_EQ(test, pmuk_write_pmcs(ctx, &pmc, 1), 1);
}

static inline void pmuk_ctx_write_pmd(struct kunit *test, struct pmuk_context *ctx,
				      const struct pmuk_pmd *pmd)
{
	struct pmuk_pmd copy = *pmd;

	KUNIT_ASSERT_EQ_MSG(test, pmuk_write_pmds(ctx, &copy, 1), 1, "%d", copy.ret);
}

/* Adds a counter of @config that is not throttled. @pmd has its set, number and period. */
static inline void pmuk_ctx_add_pmd(struct kunit *test, struct pmuk_context *ctx,
				    struct pmuk_sim *sim, u64 config, const struct pmuk_pmd *pmd)
{
	pmuk_ctx_add(test, ctx, sim, pmd->set, pmd->num, config, PMUK_NO_THROTTLE);
	pmuk_ctx_write_pmd(test, ctx, pmd);
}

/* @cpu is -1 for all CPUs. */
static inline int pmuk_ctx_try_load(struct pmuk_context *ctx, int cpu)
{
	struct pmuk_target target = { .type = PMUK_TARGET_CPU, .cpu = cpu };

	if (cpu == -1)
		target.type = PMUK_TARGET_CPUS;
	return pmuk_load_context(ctx, &target);
}

static inline void pmuk_ctx_load(struct kunit *test, struct pmuk_context *ctx, int cpu)
{
	KUNIT_ASSERT_EQ(test, pmuk_ctx_try_load(ctx, cpu), 0);
}

static inline void pmuk_ctx_start(struct kunit *test, struct pmuk_context *ctx)
{
	KUNIT_ASSERT_EQ(test, pmuk_start(ctx, NULL), 0);
}

/* Loads @ctx on @cpu, or on all CPUs if @cpu is -1, and starts it. */
static inline void pmuk_ctx_run(struct kunit *test, struct pmuk_context *ctx, int cpu)
{
	pmuk_ctx_load(test, ctx, cpu);
	pmuk_ctx_start(test, ctx);
}

static inline u64 pmuk_ctx_count(struct kunit *test, struct pmuk_context *ctx, u16 set, u16 num,
				 int cpu)
{
	struct pmuk_pmd_read read = { .set = set, .num = num, .cpu = cpu };

	KUNIT_EXPECT_EQ(test, pmuk_read_pmds(ctx, &read, 1), 1);
	KUNIT_EXPECT_EQ(test, read.ret, 0);
	return read.count;
}

/* Expects that a read of counter @num of set 0 returns @ret and gives @count. */
static inline void pmuk_ctx_expect_pmd(struct kunit *test, struct pmuk_context *ctx, u16 num,
				       int cpu, int ret, u64 count)
{
	struct pmuk_pmd_read read = { .num = num, .cpu = cpu };

	KUNIT_EXPECT_EQ_MSG(test, pmuk_read_pmds(ctx, &read, 1), !ret, "counter %u", num);
	KUNIT_EXPECT_EQ_MSG(test, read.ret, ret, "counter %u", num);
	KUNIT_EXPECT_EQ_MSG(test, read.count, count, "counter %u", num);
}

/* Expects that there is no counter and no buffer any more, and that @sim has no event. */
static inline void pmuk_ctx_expect_gone(struct kunit *test, struct pmuk_sim *sim)
{
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
	KUNIT_EXPECT_EQ(test, pmuk_nr_buffers(), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(sim), 0);
}

static inline struct pmuk_buffer_stat pmuk_ctx_stat(struct kunit *test, struct pmuk_context *ctx,
						    int cpu)
{
	return pmuk_test_buffer_stat(test, pmuk_context_buffer(ctx, cpu));
}

static inline struct pmuk_set_info pmuk_ctx_info(struct pmuk_context *ctx, u16 set, int cpu)
{
	struct pmuk_set_info info = { .id = set, .cpu = cpu };

	pmuk_getinfo_evtsets(ctx, &info, 1);
	return info;
}

/* Returns whether the set's turn has come @n times before the patience ends. */
static inline bool pmuk_ctx_runs(struct pmuk_context *ctx, u16 set, int cpu, u64 n)
{
	return pmuk_ctx_comes(pmuk_ctx_info(ctx, set, cpu).runs >= n);
}

static inline void pmuk_ctx_silent(struct kunit *test, struct pmuk_context *ctx)
{
	struct pmuk_msg msg;

	KUNIT_EXPECT_EQ(test, pmuk_read(ctx, &msg, true), -EAGAIN);
}

/* Returns the next message, which may still be about to be posted. */
static inline struct pmuk_msg pmuk_ctx_next(struct kunit *test, struct pmuk_context *ctx)
{
	struct pmuk_msg msg = { .kind = PMUK_MSG_KINDS };

	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_read(ctx, &msg, true) == 1));
	return msg;
}

/* Expects a message of this kind, CPU, set and count next. Returns the counters that it names. */
static inline u32 pmuk_ctx_expect_msg(struct kunit *test, struct pmuk_context *ctx,
				      enum pmuk_msg_kind kind, int cpu, u16 set, u64 count)
{
	struct pmuk_msg msg = pmuk_ctx_next(test, ctx);

	KUNIT_EXPECT_EQ(test, msg.kind, kind);
	KUNIT_EXPECT_EQ_MSG(test, msg.cpu, cpu, "message of kind %d", kind);
	KUNIT_EXPECT_EQ_MSG(test, msg.set, set, "message of kind %d", kind);
	KUNIT_EXPECT_EQ_MSG(test, msg.count, count, "message of kind %d", kind);
	return msg.counters;
}

/* Reads all messages. Returns the sum of the counts of those of @kind. */
static inline u64 pmuk_ctx_told(struct pmuk_context *ctx, enum pmuk_msg_kind kind)
{
	struct pmuk_msg msg;
	u64 sum = 0;

	while (pmuk_read(ctx, &msg, true) == 1)
		sum += msg.kind == kind ? msg.count : 0;
	return sum;
}

/*
 * Checks the results that a call has left in @nr entries of @size each, from @ret on: @good entries
 * were done, the next one failed, and the others are unchanged.
 */
static inline void pmuk_ctx_expect_rets(struct kunit *test, const int *ret, size_t size,
					unsigned int nr, unsigned int good, int error)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		KUNIT_EXPECT_EQ_MSG(test, *ret, i < good ? 0 : i == good ? error : 1,
				    "entry %u", i);
		ret = (const void *)ret + size;
	}
}

struct pmuk_ctx_closing {
	struct pmuk_context *ctx;
	struct completion done;
	int ret;
};

static inline void pmuk_ctx_close_here(void *data)
{
	struct pmuk_ctx_closing *c = data;

	c->ret = pmuk_close_deferred(c->ctx, &c->done);
}

/* Closes a context in the given context of execution, and waits until it is closed. */
static inline void pmuk_ctx_close_at(struct kunit *test, struct pmuk_context *ctx,
				     enum pmuk_irq_level level)
{
	struct pmuk_ctx_closing *c = pmuk_test_zalloc(test, sizeof(*c));

	c->ctx = ctx;
	init_completion(&c->done);
	kunit_remove_action(test, pmuk_ctx_put, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_irq_run(level, pmuk_ctx_close_here, c), 0);
	KUNIT_EXPECT_EQ(test, c->ret, 0);
	KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&c->done, PMUK_CTX_PATIENCE), 0);
}

KUNIT_DEFINE_ACTION_WRAPPER(pmuk_ctx_put_format, pmuk_unregister_format, struct pmuk_format *);

/* Registers a format for the time of a test case. */
static inline void pmuk_ctx_format(struct kunit *test, struct pmuk_format *format)
{
	KUNIT_ASSERT_EQ(test, pmuk_register_format(format), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_ctx_put_format, format), 0);
}

#endif /* _PMUK_CTX_H */
