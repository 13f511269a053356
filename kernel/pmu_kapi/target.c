// SPDX-License-Identifier: GPL-2.0
/* Loads a context on a CPU, on many, or on a task, and unloads the context. */
#define pr_fmt(fmt) "pmuk: " fmt

#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/limits.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/sched/task.h>

#include <trace/events/pmu_kapi.h>

#include "buffer.h"
#include "context.h"
#include "hotplug.h"
#include "instance.h"
#include "rank.h"
#include "registry.h"
#include "reserve.h"
#include "sets.h"
#include "storage.h"

static void pmuk_context_drop_insts(struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	struct pmuk_inst *inst, *dropped = NULL;

	pmuk_context_unreserve(ctx);
	pmuk_insts_call(ctx, pmuk_inst_retire);
	pmuk_pmds_keep(ctx);
	pmuk_for_each_inst(inst, ctx) {
		WRITE_ONCE(ctx->insts[max(inst->cpu, 0)], NULL);
		inst->next = dropped;
		dropped = inst;
	}
	/* A close frees the buffers: this grace period is for their writers, too. */
	if (atomic_read(&ctx->doomed))
		pmuk_buffers_kill(ctx->buffers, nr_cpu_ids);
	synchronize_rcu();	/* overflows, and who reads locally or from elsewhere */
	while (dropped) {
		inst = dropped;
		lockdep_assert_held(&inst->ctx->lock);
		dropped = inst->next;
		pmuk_inst_finish(inst);
		pmuk_inst_free(inst);
	}
}

static const char *pmuk_target_fault(const struct pmuk_target *target)
{
	switch (target->type) {
	case PMUK_TARGET_CPU:
		return target->cpu < 0 || target->cpu >= nr_cpu_ids || !cpu_possible(target->cpu) ?
			"no such CPU" : NULL;
	case PMUK_TARGET_CPUS:
		return target->cpus && !cpumask_intersects(target->cpus, cpu_possible_mask) ?
			"no CPUs" : NULL;
	case PMUK_TARGET_TASK:
	case PMUK_TARGET_TREE:
		return IS_ERR_OR_NULL(target->task) ? "no task" : NULL;
	default:
		return "no such type";
	}
}

/* A child's event has one fixed period, and pmuk can neither change it nor read the event. */
static bool pmuk_pmd_fits_tree(const struct pmuk_pmd *pmd)
{
	return !pmd->random_mask && !pmd->freq && !pmd->long_reset && !pmd->reset_peers &&
	       !pmd->sample_peers;
}

static bool pmuk_set_fits_tree(const struct pmuk_set *set)
{
	const struct pmuk_def *def;

	for (def = set->defs; def; def = def->next) {
		if ((set->defined & BIT(def->num)) && !pmuk_pmd_fits_tree(&def->pmd))
			return false;
	}
	return true;
}

/*
 * Returns what the context asks for that perf core cannot do with the events of children, or NULL.
 */
static const char *pmuk_tree_lacks(struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	const struct pmuk_perf_format *perf = ctx->format_arg;
	struct pmuk_set *set;
	unsigned long id, nr = 0;

	if (ctx->flags & PMUK_CTX_MASK)
		return "a task's children cannot be masked";
	if (ctx->limit_ns)
		return "a task's children cannot be paused at a limit";
	if (pmuk_format_is_perf(ctx->format) && perf && (perf->sample_type & PERF_SAMPLE_READ))
		return "a task's children have no values for records";
	xa_for_each(&ctx->sets, id, set) {
		if (nr++)
			return "a task's children cannot take turns";
		if (!pmuk_set_fits_tree(set))
			return "a task's children have one fixed period, and no peers";
	}
	return NULL;
}

/* Returns what cannot be done on such a target, or NULL. */
static const char *pmuk_target_lacks(struct pmuk_context *ctx, enum pmuk_target_type type)
	__must_hold(&ctx->lock)
{
	if ((ctx->flags & (PMUK_CTX_YIELD | PMUK_CTX_RESERVE)) && type >= PMUK_TARGET_TASK)
		return "contexts on tasks do not yield, and reserve nothing";
	return type == PMUK_TARGET_TREE ? pmuk_tree_lacks(ctx) : NULL;
}

static void pmuk_context_set_target(struct pmuk_context *ctx, const struct pmuk_target *target)
	__must_hold(&ctx->lock)
{
	WRITE_ONCE(ctx->target, target->type);	/* for pmuk_snapshot() */
	cpumask_clear(ctx->cpus);
	if (pmuk_target_is_task(ctx))
		WRITE_ONCE(ctx->task, get_task_struct(target->task));	/* for pmuk_read_local() */
	else if (target->type == PMUK_TARGET_CPU)
		cpumask_set_cpu(target->cpu, ctx->cpus);
	else
		cpumask_and(ctx->cpus, target->cpus ?: cpu_possible_mask, cpu_possible_mask);
}

/*
 * Publish the instance first, and then see whether its CPU is online. So no hotplug callback is
 * missed: the callback finds the instance, or this function finds what it has written to ->online.
 */
static int pmuk_context_add_inst(struct pmuk_context *ctx, int cpu, struct pmuk_target *target)
	__must_hold(&ctx->lock)
{
	struct pmuk_inst *inst = pmuk_inst_alloc(ctx, pmuk_target_is_task(ctx) ? -1 : cpu);
	int ret;

	if (!inst)
		return -ENOMEM;
	lockdep_assert_held(&inst->ctx->lock);
	smp_store_release(&ctx->insts[cpu], inst);	/* pairs with pmuk_snapshot() */
	smp_mb();	/* pairs with pmuk_cpu_online() and pmuk_cpu_offline() */
	if (!pmuk_target_is_task(ctx) && !cpumask_test_cpu(cpu, ctx->online))
		return 0;
	ret = pmuk_rank_place(inst, pmuk_inst_place);
	/* If the CPU has gone offline meanwhile, pmuk_hotplug_work() places the counters later. */
	if (ret == -ENODEV && atomic_read(&inst->stale))
		return 0;
	if (ret)
		pmuk_inst_tell_failed(inst, target);
	return ret;
}

static int pmuk_context_place_cpus(struct pmuk_context *ctx, struct pmuk_target *target)
	__must_hold(&ctx->lock)
{
	int cpu, ret;

	ret = pmuk_hotplug_add(ctx);
	if (ret)
		return ret;
	if (!cpumask_intersects(ctx->cpus, ctx->online))
		ret = -ENODEV;
	for_each_cpu(cpu, ctx->cpus) {
		if (!ret)
			ret = pmuk_context_add_inst(ctx, cpu, target);
	}
	if (ret)
		pmuk_hotplug_remove(ctx);
	return ret;
}

static int pmuk_context_place(struct pmuk_context *ctx, struct pmuk_target *target)
	__must_hold(&ctx->lock)
{
	int ret = pmuk_context_make_storage(ctx);

	if (ret)
		return ret;
	if (pmuk_target_is_task(ctx))
		ret = pmuk_context_add_inst(ctx, 0, target);
	else
		ret = pmuk_context_place_cpus(ctx, target);
	if (ret)
		pmuk_context_drop_insts(ctx);
	return ret;
}

static void pmuk_context_put_task(struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	struct task_struct *task = ctx->task;

	WRITE_ONCE(ctx->task, NULL);
	if (task)
		put_task_struct(task);
}

static int pmuk_context_load(struct pmuk_context *ctx, struct pmuk_target *target)
	__must_hold(&ctx->lock)
{
	const char *lacks = pmuk_target_lacks(ctx, target->type);
	enum pmuk_target_type before = ctx->target;
	unsigned long id = 0;
	int ret;

	if (ctx->loaded)
		return -EBUSY;
	if (xa_empty(&ctx->sets))
		return -EINVAL;
	if (lacks) {
		pr_debug("load: %s\n", lacks);
		return -EOPNOTSUPP;
	}
	pmuk_context_set_target(ctx, target);
	ret = pmuk_context_place(ctx, target);
	if (ret) {
		WRITE_ONCE(ctx->target, before);	/* records that are there have its ids */
		pmuk_context_put_task(ctx);
		return ret;
	}
	xa_find(&ctx->sets, &id, ULONG_MAX, XA_PRESENT);
	ctx->start_set = id;
	WRITE_ONCE(ctx->loaded, true);
	pmuk_context_reserve(ctx);
	return 0;
}

/**
 * pmuk_load_context() - choose where a context counts
 * @ctx: the context
 * @target: where; its failed_* say which counter could not be placed
 *
 * Creates all counters, stopped, on each CPU of the target that is online, or on the task. After an
 * error there are none. Pinned counters are placed once, as a trial whether those of a set fit
 * together. If the task that runs on the CPU has pinned events of its own on the same PMU, which
 * the trial could push out, there is no trial: pmuk_start() reports then what does not fit. CPUs
 * that come online later join. The counts of a CPU stay when it goes offline. Counts go on where
 * they were when the context was unloaded. Follows pfmk_load_context(), which knew CPUs only.
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @ctx or @target is NULL or an ERR_PTR(), or the target is impossible,
 * or there is no event set, or a PMU has an event on another CPU than the target's, or the driver
 * of the CPU's PMU refuses a &pmuk_pmd.long_reset; -EBUSY if @ctx is loaded, or with
 * PMUK_TARGET_TREE the task has forked meanwhile; -EOPNOTSUPP for PMUK_CTX_YIELD and
 * PMUK_CTX_RESERVE on a task, and for what cannot be done with a task's children: several sets,
 * PMUK_CTX_MASK, a limit, periods that are random, long or adapted (&pmuk_pmd.freq), peers,
 * PERF_SAMPLE_READ in records; -ENODEV if no CPU of the target is online; -ENOMEM; as
 * pmuk_counter_create(); and what &pmuk_format.init says.
 */
int pmuk_load_context(struct pmuk_context *ctx, struct pmuk_target *target)
{
	const char *fault;
	int ret;

	if (IS_ERR_OR_NULL(ctx) || IS_ERR_OR_NULL(target))
		return -EINVAL;
	fault = pmuk_target_fault(target);
	if (fault) {
		pr_debug("load: %s\n", fault);
		return -EINVAL;
	}
	guard(mutex)(&ctx->lock);
	ret = pmuk_context_load(ctx, target);
	trace_pmuk_context_load(ctx->id, ret);
	return ret;
}
EXPORT_SYMBOL_GPL(pmuk_load_context);

/**
 * pmuk_unload_context() - take a context away from where it counts
 * @ctx: the context
 *
 * The context is stopped first. Its counts and buffers stay. Follows pfmk_unload_context().
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @ctx is NULL or an ERR_PTR(); -ENODEV if it is not loaded.
 */
int pmuk_unload_context(struct pmuk_context *ctx)
{
	if (IS_ERR_OR_NULL(ctx))
		return -EINVAL;
	guard(mutex)(&ctx->lock);
	if (!ctx->loaded)
		return -ENODEV;
	WRITE_ONCE(ctx->loaded, false);
	if (!pmuk_target_is_task(ctx))
		pmuk_hotplug_remove(ctx);
	if (ctx->running) {
		pmuk_context_halt(ctx);
		pmuk_rank_recall(ctx);
	}
	pmuk_context_drop_insts(ctx);	/* waits for a grace period */
	if (!atomic_read(&ctx->doomed))	/* else nobody reads them, see pmuk_mail_end() */
		pmuk_context_report_lost(ctx);
	pmuk_context_put_task(ctx);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_unload_context);
