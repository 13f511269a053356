// SPDX-License-Identifier: GPL-2.0
/*
 * A loaded context counts: pmuk_start(), pmuk_stop(), pmuk_restart(), pmuk_restart_cpu(),
 * pmuk_switch_evtset(), and the watch of a running context, which finds what perf core reports to
 * nobody.
 */
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include "context.h"
#include "hotplug.h"
#include "instance.h"
#include "rank.h"
#include "reserve.h"
#include "storage.h"
#include "turn.h"
#include "watch.h"
#include "work.h"

/*
 * A tree's overflows cannot be stopped, and are dropped from now on: the caller waits for a grace
 * period then, and reports losses after that.
 */
void pmuk_context_halt(struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	if (!ctx->running)
		return;
	pmuk_insts_call(ctx, pmuk_inst_stop);
	ctx->running = false;
}

static void pmuk_context_stop(struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	bool ran = ctx->running;

	pmuk_context_halt(ctx);
	if (ctx->target == PMUK_TARGET_TREE)
		synchronize_rcu();
	pmuk_context_report_lost(ctx);
	/* Reserve first: contexts that are recalled, and other reservations, take what is free. */
	pmuk_context_reserve(ctx);
	if (ran)
		pmuk_rank_recall(ctx);
}

/* Starts the instance in the registers that were reserved for it. */
static void pmuk_inst_start_reserved(struct pmuk_inst *inst)
{
	/* ctx->lock is held: by this task, or by a task that waits in pmuk_insts_call(). */
	context_unsafe(pmuk_inst_unreserve(inst));
	inst->ret = pmuk_inst_start(inst);
}

/*
 * Returns 0, or the error of the first CPU on which the start has failed. A CPU that waits for room
 * may fail.
 */
static int pmuk_context_start_insts(struct pmuk_context *ctx, struct pmuk_target *failed)
	__must_hold(&ctx->lock)
{
	struct pmuk_inst *inst, *first = NULL;

	pmuk_for_each_inst(inst, ctx) {
		if (inst->cpu >= 0)
			pmuk_reserve_prefer(inst->cpu, ctx->rank);
	}
	pmuk_insts_call(ctx, pmuk_inst_start_reserved);
	pmuk_for_each_inst(inst, ctx) {
		inst->vain_pause = 0;		/* the caller wants a try ... */
		inst->lost_pause = 0;
		inst->retry_at = jiffies;	/* ... and does not wait for the watch */
		if (inst->ret == -ENOSPC && !first)
			inst->ret = pmuk_rank_make_room(inst, pmuk_inst_start);
		else if (!inst->missed)
			pmuk_rank_placed(inst);
		if (inst->ret && !inst->missed && !first)
			first = inst;
	}
	if (first && failed)
		pmuk_inst_tell_failed(first, failed);
	return first ? first->ret : 0;
}

static int pmuk_context_start(struct pmuk_context *ctx, struct pmuk_target *failed)
	__must_hold(&ctx->lock)
{
	int ret = pmuk_context_start_insts(ctx, failed);

	ctx->running = true;
	if (ret) {
		pmuk_context_stop(ctx);
		return ret;
	}
	pmuk_hotplug_retry(ctx);
	WRITE_ONCE(ctx->watch_pause, PMUK_WATCH_MIN);
	mod_delayed_work(pmuk_wq, &ctx->watch, PMUK_WATCH_MIN);
	return 0;
}

/**
 * pmuk_start() - let a context count
 * @ctx: the context, loaded
 * @failed: its failed_* say which counter could not be placed; may be NULL
 *
 * The context counts on all of its target, or nowhere; counters that trace may find no room, as in
 * pmuk_counter_enable(). If a counter fails, the others are stopped again, and what they have
 * counted until then stays. The first turn is that of the event set with the lowest id, or of the
 * set that pmuk_switch_evtset() was last called for. Starting a started context does nothing. A CPU
 * that came online without room for its counters is tried again, and does not keep the others from
 * counting. Follows pfmk_start().
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
	for_each_possible_cpu(cpu)
		pmuk_context_restart_storage(ctx, cpu);
	if (!ctx->running)
		return 0;
	pmuk_insts_call(ctx, pmuk_inst_restart);
	pmuk_for_each_inst(inst, ctx)
		pmuk_rank_placed(inst);
	pmuk_watch_soon(ctx);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_restart);

/**
 * pmuk_restart_cpu() - go on after overflows that have stopped counters of one CPU
 * @ctx: the context, loaded on that CPU
 * @cpu: the CPU
 *
 * Does what pmuk_restart() does, for one CPU: no other CPU is disturbed, and what is stopped there
 * stays so. &pmuk_msg.cpu says which CPU's overflow a message reports. A consumer that handles the
 * messages of many CPUs one by one calls this for each: pmuk_restart() restarts all CPUs each time.
 *
 * Context: May sleep.
 * Return: 0, also if @cpu is offline; -EINVAL if @ctx is NULL or an ERR_PTR(), or @cpu is
 * impossible; -ENODEV if @ctx is not loaded on CPUs, or not on this one.
 */
int pmuk_restart_cpu(struct pmuk_context *ctx, int cpu)
{
	struct pmuk_inst *inst;

	if (IS_ERR_OR_NULL(ctx) || cpu < 0 || cpu >= nr_cpu_ids || !cpu_possible(cpu))
		return -EINVAL;
	guard(mutex)(&ctx->lock);
	if (!ctx->loaded || pmuk_target_is_task(ctx) || !ctx->insts[cpu])
		return -ENODEV;
	pmuk_context_restart_storage(ctx, cpu);
	if (!ctx->running)
		return 0;
	inst = ctx->insts[cpu];
	lockdep_assert_held(&inst->ctx->lock);
	pmuk_inst_restart(inst);
	pmuk_rank_placed(inst);
	pmuk_watch_soon(ctx);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_restart_cpu);

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
	if (IS_ERR_OR_NULL(ctx))
		return -EINVAL;
	guard(mutex)(&ctx->lock);
	if (!ctx->loaded)
		return -ENODEV;
	if (!xa_load(&ctx->sets, id))
		return -ENOENT;
	ctx->start_set = id;
	if (!ctx->running)
		pmuk_context_unreserve(ctx);
	pmuk_insts_call(ctx, pmuk_inst_switch);
	if (!ctx->running)
		pmuk_context_reserve(ctx);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_switch_evtset);

/*
 * Returns a number that has changed if the task has run. The run time alone may stay the same, as
 * the scheduler may charge a short run to interrupts. So add the task's switches, which grow when
 * the task leaves its CPU.
 */
static u64 pmuk_watch_runs(const struct task_struct *task)
{
	/* The task's CPU may be adding to these: the next check sees the rest. */
	return data_race(task->se.sum_exec_runtime + task->nvcsw + task->nivcsw);
}

/* Returns whether the task has run since the latest check: a task runs before it exits. */
static bool pmuk_watch_task_ran(struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	u64 before = ctx->watch_ran;

	ctx->watch_ran = ctx->task ? pmuk_watch_runs(ctx->task) : 0;
	return ctx->watch_ran != before;
}

/* @found: the check has found something, or something is likely to happen soon. */
static void pmuk_watch_again(struct pmuk_context *ctx, bool found) __must_hold(&ctx->lock)
{
	unsigned long was = READ_ONCE(ctx->watch_pause), pause = min(2 * was, PMUK_WATCH_MAX);

	if (found || !was)
		pause = PMUK_WATCH_MIN;
	if (cmpxchg(&ctx->watch_pause, was, pause) != was)
		pause = PMUK_WATCH_MIN;	/* pmuk_watch_soon() was called just now */
	if (pause == PMUK_WATCH_MAX)
		pause = round_jiffies_relative(pause);
	queue_delayed_work(pmuk_wq, &ctx->watch, pmuk_hotplug_retry_in(ctx, pause));
}

void pmuk_watch_work(struct work_struct *work)
{
	struct pmuk_context *ctx = container_of(to_delayed_work(work), struct pmuk_context, watch);
	u64 posted = atomic64_read(&ctx->mail.posted);
	struct pmuk_inst *inst;

	guard(mutex)(&ctx->lock);
	if (!ctx->running)
		return;
	pmuk_for_each_inst(inst, ctx) {
		pmuk_inst_watch(inst);
		pmuk_rank_recover(inst);
		pmuk_rank_yield(inst);
	}
	pmuk_hotplug_retry(ctx);
	pmuk_context_report_lost(ctx);
	pmuk_watch_again(ctx, pmuk_watch_task_ran(ctx) ||
			 atomic64_read(&ctx->mail.posted) != posted);
}
