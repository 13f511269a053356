/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites of contexts share: contexts that go away with the test case, and their
 * counters on the simulated PMU.
 */
#ifndef _PMUK_CTX_H
#define _PMUK_CTX_H

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>

#include "pmuk_test.h"

/* Longer than anything that is waited for can take, even on an emulated machine. */
#define PMUK_CTX_PATIENCE	(10 * HZ)

/* Whether @cond comes true; what it waits for has no other way to tell. */
#define pmuk_ctx_comes(cond)						\
({									\
	unsigned long __end = jiffies + PMUK_CTX_PATIENCE;		\
	bool __came;							\
									\
	while (!(__came = (cond)) && time_before(jiffies, __end))	\
		usleep_range(50, 100);					\
	__came;								\
})

static inline void pmuk_ctx_put(void *data)
{
	pmuk_close(data);
}

/* For the time of a test case; kunit_release_action() with pmuk_ctx_put() ends it before that. */
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

/* Counts @config of @sim; how is for pmuk_ctx_write_pmd() to say. */
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

static inline void pmuk_ctx_load(struct kunit *test, struct pmuk_context *ctx, int cpu)
{
	struct pmuk_target target = { .type = PMUK_TARGET_CPU, .cpu = cpu };

	if (cpu == -1)
		target.type = PMUK_TARGET_CPUS;
	KUNIT_ASSERT_EQ(test, pmuk_load_context(ctx, &target), 0);
}

static inline void pmuk_ctx_start(struct kunit *test, struct pmuk_context *ctx)
{
	KUNIT_ASSERT_EQ(test, pmuk_start(ctx, NULL), 0);
}

static inline u64 pmuk_ctx_count(struct kunit *test, struct pmuk_context *ctx, u16 set, u16 num,
				 int cpu)
{
	struct pmuk_pmd_read read = { .set = set, .num = num, .cpu = cpu };

	KUNIT_EXPECT_EQ(test, pmuk_read_pmds(ctx, &read, 1), 1);
	KUNIT_EXPECT_EQ(test, read.ret, 0);
	return read.count;
}

static inline struct pmuk_set_info pmuk_ctx_info(struct pmuk_context *ctx, u16 set, int cpu)
{
	struct pmuk_set_info info = { .id = set, .cpu = cpu };

	pmuk_getinfo_evtsets(ctx, &info, 1);
	return info;
}

/* Whether a set's turn comes for the @n-th time. */
static inline bool pmuk_ctx_runs(struct pmuk_context *ctx, u16 set, int cpu, u64 n)
{
	return pmuk_ctx_comes(pmuk_ctx_info(ctx, set, cpu).runs >= n);
}

/*
 * One counter counts all of @n on @cpu, however often that overflows: this waits while it is
 * stopped, be it masked until somebody restarts it, or throttled until perf core's next tick.
 */
static inline bool pmuk_ctx_feed_some(struct pmuk_sim *sim, int cpu, u64 config, u64 *left)
{
	*left -= min(*left, pmuk_sim_count_on(sim, cpu, config, *left));
	return !*left;
}

static inline u64 pmuk_ctx_feed(struct pmuk_sim *sim, int cpu, u64 config, u64 n)
{
	u64 left = n;

	(void)pmuk_ctx_comes(pmuk_ctx_feed_some(sim, cpu, config, &left));
	return n - left;
}

static inline void pmuk_ctx_silent(struct kunit *test, struct pmuk_context *ctx)
{
	struct pmuk_msg msg;

	KUNIT_EXPECT_EQ(test, pmuk_read(ctx, &msg, true), -EAGAIN);
}

/* The next message, which has been posted, or is about to be. */
static inline struct pmuk_msg pmuk_ctx_next(struct kunit *test, struct pmuk_context *ctx)
{
	struct pmuk_msg msg = { .kind = PMUK_MSG_KINDS };

	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_read(ctx, &msg, true) == 1));
	return msg;
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

/* Ends a context from some context of execution, and waits until it has ended. */
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

static inline void pmuk_ctx_put_format(void *format)
{
	pmuk_unregister_format(format);
}

/* A format for the time of a test case. */
static inline void pmuk_ctx_format(struct kunit *test, struct pmuk_format *format)
{
	KUNIT_ASSERT_EQ(test, pmuk_register_format(format), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_ctx_put_format, format), 0);
}

#endif /* _PMUK_CTX_H */
