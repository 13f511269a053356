/* SPDX-License-Identifier: GPL-2.0 */
/* The suites share these helpers, which wait for what an interrupt or another CPU will do. */
#ifndef _PMUK_WAIT_H
#define _PMUK_WAIT_H

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>

#include "pmuk_test.h"

/* No wait takes longer than this, even on an emulated machine, unless its host is busy. */
#define PMUK_CTX_PATIENCE	(10 * HZ)

/*
 * Polls @cond, and returns whether it comes true within so many jiffies. A host may let its VM wait
 * for seconds, so this does not end before it has polled as often as a machine does that runs.
 */
#define pmuk_ctx_comes_within(cond, patience)				\
({									\
	unsigned long __wait = (patience), __end = jiffies + __wait;	\
	unsigned int __us = 0, __polls = jiffies_to_msecs(__wait) / 4;	\
	bool __came;							\
									\
	while (!(__came = (cond)) &&					\
	       (__polls || time_before(jiffies, __end))) {		\
		__polls -= !!__polls;					\
		pmuk_test_pause(&__us);					\
	}								\
	__came;								\
})

#define pmuk_ctx_comes(cond)	pmuk_ctx_comes_within(cond, PMUK_CTX_PATIENCE)

/* Returns an initialised completion that stays until the test case ends. */
static inline struct completion *pmuk_ctx_completion(struct kunit *test)
{
	struct completion *done = pmuk_test_zalloc(test, sizeof(*done));

	init_completion(done);
	return done;
}

/*
 * Lets @n events happen on @cpu. While the counter is stopped, this waits: the counter may be
 * masked until a restart, or throttled until perf core's next tick.
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

#endif /* _PMUK_WAIT_H */
