// SPDX-License-Identifier: GPL-2.0
/*
 * A loaded context counts: pmuk_start(), pmuk_stop(), pmuk_restart(), pmuk_switch_evtset(), and the
 * watch of a running context, which finds what perf core reports to nobody.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/workqueue.h>

#include "context.h"
#include "control.h"
#include "hotplug.h"
#include "instance.h"
#include "sets.h"
#include "storage.h"
#include "turn.h"
#include "work.h"

/* How often the watch checks whether a task has exited, or a counter was pushed off its PMU. */
#define PMUK_WATCH_JIFFIES	(HZ / 10)

/* The caller waits for a grace period if overflows go on, and then reports losses. */
void pmuk_context_halt(struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	struct pmuk_inst *inst;
	unsigned int cpu;

	for (cpu = 0; (inst = pmuk_inst_from(ctx, &cpu)); cpu++)
		pmuk_inst_stop(inst);
	ctx->running = false;
}

static void pmuk_context_stop(struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	pmuk_context_halt(ctx);
	if (ctx->target == PMUK_TARGET_TREE)
		synchronize_rcu();	/* a tree's overflows go on, and are dropped from now on */
	pmuk_context_report_lost(ctx);
}

static int pmuk_context_start(struct pmuk_context *ctx, struct pmuk_target *failed)
	__must_hold(&ctx->lock)
{
	struct pmuk_inst *inst;
	unsigned int cpu;
	int ret = 0;

	for (cpu = 0; (inst = pmuk_inst_from(ctx, &cpu)); cpu++) {
		if (!ret)
			ret = pmuk_inst_start(inst, ctx->start_set, failed);
	}
	if (ret) {
		pmuk_context_stop(ctx);
		return ret;
	}
	ctx->running = true;
	queue_delayed_work(pmuk_wq, &ctx->watch, PMUK_WATCH_JIFFIES);
	return 0;
}

/**
 * pmuk_start() - let a context count
 * @ctx: the context, loaded
 * @failed: its failed_* say which counter could not be placed; may be NULL
 *
 * The context counts on all of its target, or nowhere. If a counter fails, the others are stopped
 * again, and what they have counted until then stays. The first turn is that of the event set with
 * the lowest id, or of the set that pmuk_switch_evtset() was last called for. Starting a started
 * context does nothing. Follows pfmk_start().
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @ctx is NULL or an ERR_PTR(); -ENODEV if it is not loaded; and
 * as pmuk_counter_enable().
 */
int pmuk_start(struct pmuk_context *ctx, struct pmuk_target *failed)
{
	if (IS_ERR_OR_NULL(ctx))
		return -EINVAL;
	guard(mutex)(&ctx->lock);
	if (!ctx->loaded)
		return -ENODEV;
	return ctx->running ? 0 : pmuk_context_start(ctx, failed);
}
EXPORT_SYMBOL_GPL(pmuk_start);

/**
 * pmuk_stop() - let a context count no more, for now
 * @ctx: the context, loaded
 *
 * If an overflow is pending, its events are counted, and no format handles it. Stopping a stopped
 * context does nothing. Follows pfmk_stop().
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @ctx is NULL or an ERR_PTR(); -ENODEV if it is not loaded.
 */
int pmuk_stop(struct pmuk_context *ctx)
{
	if (IS_ERR_OR_NULL(ctx))
		return -EINVAL;
	guard(mutex)(&ctx->lock);
	if (!ctx->loaded)
		return -ENODEV;
	pmuk_context_stop(ctx);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_stop);

/**
 * pmuk_restart() - go on after overflows that have stopped counters
 * @ctx: the context, loaded
 *
 * Where an overflow has masked all counters, or was not reset, the counters that have overflowed
 * begin their long period, and all count again. Buffers with PMUK_BUFFER_STOP take records again.
 * If an overflow comes during this call, the call restarts its counter, or the overflow masks after
 * the call. The overflow's message is posted in both cases. Follows pfmk_restart().
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @ctx is NULL or an ERR_PTR(); -ENODEV if it is not loaded.
 */
int pmuk_restart(struct pmuk_context *ctx)
{
	struct pmuk_inst *inst;
	unsigned int cpu;

	if (IS_ERR_OR_NULL(ctx))
		return -EINVAL;
	guard(mutex)(&ctx->lock);
	if (!ctx->loaded)
		return -ENODEV;
	pmuk_context_restart_storage(ctx);
	for (cpu = 0; (inst = pmuk_inst_from(ctx, &cpu)); cpu++)
		pmuk_inst_restart(inst);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_restart);

/**
 * pmuk_switch_evtset() - begin the turn of an event set
 * @ctx: the context, loaded
 * @id: the set
 *
 * The turn begins on all CPUs of the target at about the same time. If the context is stopped, it
 * begins when the context is started; where the context is masked, soon after pmuk_restart().
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @ctx is NULL or an ERR_PTR(); -ENODEV if it is not loaded; -ENOENT
 * if there is no such set.
 */
int pmuk_switch_evtset(struct pmuk_context *ctx, u16 id)
{
	struct pmuk_inst *inst;
	unsigned int cpu;

	if (IS_ERR_OR_NULL(ctx))
		return -EINVAL;
	guard(mutex)(&ctx->lock);
	if (!ctx->loaded)
		return -ENODEV;
	if (!pmuk_set_find(ctx, id))
		return -ENOENT;
	ctx->start_set = id;
	for (cpu = 0; (inst = pmuk_inst_from(ctx, &cpu)); cpu++)
		pmuk_inst_want(inst, id);
	for (cpu = 0; (inst = pmuk_inst_from(ctx, &cpu)); cpu++)
		pmuk_inst_wait(inst);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_switch_evtset);

/* The watch of a context runs every PMUK_WATCH_JIFFIES while the context is started. */
void pmuk_watch_work(struct work_struct *work)
{
	struct pmuk_context *ctx = container_of(to_delayed_work(work), struct pmuk_context, watch);
	struct pmuk_inst *inst;
	unsigned int cpu;

	guard(mutex)(&ctx->lock);
	if (!ctx->running)
		return;
	for (cpu = 0; (inst = pmuk_inst_from(ctx, &cpu)); cpu++)
		pmuk_inst_watch(inst);
	pmuk_hotplug_retry(ctx);
	pmuk_context_report_lost(ctx);
	queue_delayed_work(pmuk_wq, &ctx->watch, PMUK_WATCH_JIFFIES);
}
