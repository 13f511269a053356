// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs come and go, and contexts follow.
 *
 * The callbacks only note what they see and leave the rest to a worker: perf core takes
 * the hotplug lock for some events, so counters are neither made nor ended under it.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>

#include "context.h"
#include "hotplug.h"
#include "instance.h"
#include "message.h"
#include "rank.h"
#include "reserve.h"
#include "work.h"

static int pmuk_hotplug_state;

static int pmuk_cpu_online(unsigned int cpu, struct hlist_node *node)
{
	struct pmuk_context *ctx = hlist_entry(node, struct pmuk_context, node);

	cpumask_set_cpu(cpu, ctx->online);
	smp_mb();	/* pairs with pmuk_context_add_inst() */
	if (READ_ONCE(ctx->insts[cpu]))
		queue_work(pmuk_wq, &ctx->hotplug);
	return 0;
}

static int pmuk_cpu_offline(unsigned int cpu, struct hlist_node *node)
{
	struct pmuk_context *ctx = hlist_entry(node, struct pmuk_context, node);
	struct pmuk_inst *inst;

	cpumask_clear_cpu(cpu, ctx->online);
	smp_mb();	/* pairs with pmuk_context_add_inst() and pmuk_hotplug_join() */
	guard(rcu)();
	inst = READ_ONCE(ctx->insts[cpu]);
	if (!inst)
		return 0;
	atomic_set(&inst->stale, 1);
	pmuk_post(ctx, PMUK_MSG_CPU_OFFLINE, cpu, 1, 0, 0);
	queue_work(pmuk_wq, &ctx->hotplug);
	return 0;
}

/* The caller of pmuk_start() needs no right to count, as a worker may make the same try. */
static int pmuk_inst_resume(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	int ret = 0;

	if (!inst->live) {
		scoped_with_kernel_creds()
			ret = pmuk_inst_place(inst);
	}
	if (ret || !inst->ctx->running)
		return ret;
	ret = pmuk_inst_start(inst);
	/* Counters that wait for long would be older than others, and push these out. */
	if (ret)
		pmuk_inst_retire(inst);
	return ret;
}

/*
 * The CPU is online again. If its counters find no place, a message reports that once, and the
 * watch tries again. Returns whether the instance was retired.
 */
static bool pmuk_inst_rejoin(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	int ret;

	pmuk_inst_unreserve(inst);
	ret = pmuk_rank_place(inst, pmuk_inst_resume);
	if (!ret) {
		pmuk_rank_came_back(inst);
		pmuk_post(inst->ctx, PMUK_MSG_CPU_ONLINE, inst->cpu, 1, 0, 0);
	} else if (!atomic_read(&inst->stale) && !inst->missed) {
		pmuk_post(inst->ctx, PMUK_MSG_COUNTER_LOST, inst->cpu, 1,
			  BIT(inst->failed->def->num), inst->failed->turn->set->id);
	}
	pmuk_inst_set_missed(inst, ret && !atomic_read(&inst->stale));
	if (!inst->ctx->running)
		pmuk_inst_reserve(inst);
	return !inst->live;
}

/* All instances that were retired share this grace period. */
static void pmuk_hotplug_finish(struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	struct pmuk_inst *inst;

	synchronize_rcu();
	pmuk_for_each_inst(inst, ctx) {
		if (inst->retired)
			pmuk_inst_finish(inst);
	}
}

/* The CPU went offline. Returns whether the instance waits for pmuk_hotplug_finish(). */
static bool pmuk_hotplug_leave(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	if (atomic_read(&inst->stale))
		pmuk_inst_unreserve(inst);
	if (inst->live && atomic_read(&inst->stale))
		pmuk_inst_retire(inst);
	return inst->retired;
}

/* The CPU was online all the time, and has no room. Its next try is pmuk_hotplug_retry()'s. */
static bool pmuk_hotplug_waits(const struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	return inst->missed && !atomic_read(&inst->stale) &&
	       cpumask_test_cpu(inst->cpu, inst->ctx->online);
}

/*
 * The CPU may have gone and come back several times since. If it is online now, its counters count
 * again. Returns whether the instance was retired.
 */
static bool pmuk_hotplug_join(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	if (inst->live || pmuk_hotplug_waits(inst))
		return false;
	atomic_set(&inst->stale, 0);
	smp_mb();	/* pairs with pmuk_cpu_offline(): see it offline, or ->stale is set again */
	if (cpumask_test_cpu(inst->cpu, inst->ctx->online))
		return pmuk_inst_rejoin(inst);
	pmuk_inst_set_missed(inst, false);
	return false;
}

static bool pmuk_hotplug_retry_inst(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	if (!inst->missed || atomic_read(&inst->stale) || time_before(jiffies, inst->retry_at))
		return false;
	return pmuk_inst_rejoin(inst);
}

/* Calls @fn for each instance. Returns whether it has returned true for one. */
static bool pmuk_hotplug_any(struct pmuk_context *ctx, bool (*fn)(struct pmuk_inst *inst))
	__must_hold(&ctx->lock)
{
	struct pmuk_inst *inst;
	bool any = false;

	pmuk_for_each_inst(inst, ctx)
		any |= fn(inst);
	return any;
}

/*
 * Try to place counters. The counters of a try that fails stay until the next try, and a grace
 * period begins now, so that the next try need not wait for one.
 */
static void pmuk_hotplug_try(struct pmuk_context *ctx, bool (*fn)(struct pmuk_inst *inst))
	__must_hold(&ctx->lock)
{
	if (pmuk_hotplug_any(ctx, fn))
		start_poll_synchronize_rcu();
}

/* pmuk_start() and the watch call this: a CPU that had no room may have some now. */
void pmuk_hotplug_retry(struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	pmuk_hotplug_try(ctx, pmuk_hotplug_retry_inst);
}

/* Returns in how many jiffies pmuk_hotplug_retry() has something to do, at most @pause. */
unsigned long pmuk_hotplug_retry_in(struct pmuk_context *ctx, unsigned long pause)
	__must_hold(&ctx->lock)
{
	struct pmuk_inst *inst;
	long left;

	pmuk_for_each_inst(inst, ctx) {
		left = inst->retry_at - jiffies;
		if (inst->missed)
			pause = clamp_t(long, left, 1, pause);
	}
	return pause;
}

void pmuk_hotplug_work(struct work_struct *work)
{
	struct pmuk_context *ctx = container_of(work, struct pmuk_context, hotplug);

	guard(mutex)(&ctx->lock);
	if (!ctx->loaded || pmuk_target_is_task(ctx))
		return;
	if (pmuk_hotplug_any(ctx, pmuk_hotplug_leave))
		pmuk_hotplug_finish(ctx);
	pmuk_hotplug_try(ctx, pmuk_hotplug_join);
}

/*
 * Let CPU hotplug not call back for the CPUs that are online now: it would wake a thread on each of
 * them, also on isolated CPUs, and on CPUs that are not of the target.
 */
int pmuk_hotplug_add(struct pmuk_context *ctx)
{
	int ret = cpuhp_state_add_instance_nocalls(pmuk_hotplug_state, &ctx->node);

	if (ret)
		return ret;
	guard(cpus_read_lock)();	/* no callback runs meanwhile */
	cpumask_copy(ctx->online, cpu_online_mask);
	return 0;
}

void pmuk_hotplug_remove(struct pmuk_context *ctx)
{
	cpuhp_state_remove_instance_nocalls(pmuk_hotplug_state, &ctx->node);
}

int __init pmuk_hotplug_init(void)
{
	pmuk_hotplug_state = cpuhp_setup_state_multi(CPUHP_AP_ONLINE_DYN, "pmuk:online",
						     pmuk_cpu_online, pmuk_cpu_offline);
	return min(pmuk_hotplug_state, 0);
}

void pmuk_hotplug_exit(void)
{
	cpuhp_remove_multi_state(pmuk_hotplug_state);
}
