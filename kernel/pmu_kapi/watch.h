/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The watch of a running context looks for what perf core reports to nobody: a task that has
 * exited or lost its counters, a counter that was pushed off its PMU, a PMU that has gone. It also
 * reports losses that no wakeup has reported, and tries again to place counters where there was no
 * room.
 *
 * While the watch finds nothing, the pause between two checks doubles, so that an idle machine is
 * seldom woken. The pause is short again when something has happened that makes a loss likely.
 */
#ifndef _PMU_KAPI_WATCH_H
#define _PMU_KAPI_WATCH_H

#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/workqueue.h>

#include "context.h"
#include "work.h"

/* The longest pause is rounded to a whole second, where other timers are, so it may be 1.75 s. */
#define PMUK_WATCH_MIN	(HZ / 10UL)
#define PMUK_WATCH_MAX	(1UL * HZ)

/* Let the watch check soon. May be called in interrupts. */
static inline void pmuk_watch_soon(struct pmuk_context *ctx)
{
	if (xchg(&ctx->watch_pause, 0) > PMUK_WATCH_MIN)
		mod_delayed_work(pmuk_wq, &ctx->watch, PMUK_WATCH_MIN);
}

void pmuk_watch_work(struct work_struct *work);

#endif /* _PMU_KAPI_WATCH_H */
