// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the counters of a set, on this CPU or of this task, in one instant, if the inline functions
 * of linux/pmu_kapi_group.h do not.
 */
#include <linux/build_bug.h>
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/minmax.h>
#include <linux/preempt.h>
#include <linux/smp.h>

#include "context.h"
#include "cost.h"
#include "share.h"

static_assert(!offsetof(struct pmuk_context, fast));

/* A context has this group on CPUs where it has no fast reads: each read takes the slow path. */
static struct pmuk_group pmuk_group_none __ro_after_init = { .fast_tick = PMUK_GROUP_SLOW };

/*
 * The plan of a set with few counters refers to this event in the entries that are left. The event
 * is in no register, so a read of more counters than the set has takes the slow path.
 */
static struct perf_event pmuk_event_none __ro_after_init = PERF_LOCAL_NONE;

/* The fast path needs counters whose registers are all read directly. */
static bool pmuk_turn_is_direct(const struct pmuk_turn *turn)
{
	unsigned int i;

	for (i = 0; i < turn->nr; i++) {
		if (!turn->counters[i]->mask)
			return false;
	}
	return true;
}

int pmuk_groups_alloc(struct pmuk_context *ctx)
{
	int cpu;

	ctx->fast.groups = alloc_percpu(struct pmuk_group *);
	if (!ctx->fast.groups)
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		WRITE_ONCE(*per_cpu_ptr(ctx->fast.groups, cpu), &pmuk_group_none);
	return 0;
}

/* Plans reads of the turn's counters, which are new, so that no group read has read them. */
void pmuk_group_plan(struct pmuk_turn *turn)
{
	struct pmuk_group *group = &turn->group;
	unsigned int i;

	for (i = 0; i < PMUK_GROUP_FAST; i++) {
		struct pmuk_counter *c = i < turn->nr ? turn->counters[i] : NULL;

		group->events[i] = &pmuk_event_none;
		if (!c)
			continue;
		group->events[i] = c->hw_event;
		group->masks[i] = c->mask;
		group->last[i] = c->last;
		group->offsets[i] = 0;
		if (c->host) {
			group->shared = true;
			WRITE_ONCE(c->host->group_ticks[c->seat], &group->fast_tick);
		}
		c->last_group = &group->last[i];
	}
}

/* Let the fast path of pmuk_read_local() find the counters of the active turn, or hide them. */
void pmuk_inst_show_group(struct pmuk_inst *inst, bool on)
{
	/* In an overflow, the turn does not end before this CPU takes interrupts. */
	struct pmuk_turn *turn = context_unsafe(inst->active);
	struct pmuk_group **shown;

	if (inst->cpu < 0)
		return;
	shown = per_cpu_ptr(pmuk_groups(inst->ctx), inst->cpu);
	on = on && turn->nr && pmuk_turn_is_direct(turn);
	WRITE_ONCE(turn->group.fast_tick, PMUK_GROUP_SLOW);
	/* The plan comes before the pointer. Pairs with the reader's address dependency. */
	smp_store_release(shown, on ? &turn->group : &pmuk_group_none);
	smp_mb();	/* pairs with pmuk_inst_mask(), which hides the group or is seen here */
	if (on && atomic_read(&inst->masked))
		WRITE_ONCE(*shown, &pmuk_group_none);
}

static struct pmuk_inst *pmuk_context_own(struct pmuk_context *ctx)
{
	/* The pointer is only compared, as its task may be gone. */
	struct task_struct *task = context_unsafe(READ_ONCE(ctx->task));

	if (task)
		return task == current ? READ_ONCE(ctx->insts[0]) : NULL;
	return READ_ONCE(ctx->insts[raw_smp_processor_id()]);
}

/*
 * Returns true if each counter's own reads are fast, with the offset that the group has. A format's
 * handler may have paused a counter.
 */
static bool pmuk_group_has_offsets(const struct pmuk_turn *turn)
{
	unsigned int i;

	for (i = 0; i < min(turn->nr, PMUK_GROUP_FAST); i++) {
		if (READ_ONCE(turn->counters[i]->state) >= PMUK_COUNTING ||
		    turn->counters[i]->offset != turn->group.offsets[i])
			return false;
	}
	return true;
}

/*
 * Let reads of the group be fast for the rest of this tick, unless the instance is masked: a masked
 * instance may show its group for a moment, see pmuk_inst_show_group(). An NMI may mask the
 * instance at any point in here, so check ->masked afterwards.
 */
static void pmuk_group_allow_fast(const struct pmuk_inst *inst, struct pmuk_turn *turn)
{
	struct pmuk_group *group = &turn->group;
	unsigned int i;

	if (group->shared) {
		for (i = 0; i < min(turn->nr, PMUK_GROUP_FAST); i++)
			group->offsets[i] = turn->counters[i]->offset;
	}
	WRITE_ONCE(group->fast_tick, jiffies);
	barrier();
	if (atomic_read(&inst->masked) || !pmuk_group_has_offsets(turn))
		WRITE_ONCE(group->fast_tick, PMUK_GROUP_SLOW);
}

/*
 * Reads @n counters, and publishes those that this tick has not published yet. A read of all the
 * set's counters, outside of NMI, makes the tick's other reads fast; while debugfs measures, all
 * are slow, and are counted here.
 */
static noinline int pmuk_read_local_slow(struct pmuk_context *ctx, u64 *counts, unsigned int n)
{
	struct pmuk_inst *inst;
	struct pmuk_turn *turn;
	int ret;

	guard(irqsave)();
	inst = pmuk_context_own(ctx);
	if (!inst)
		return -EINVAL;
	/* RCU keeps the turns. If this one ends right now, its counters return -EBUSY. */
	turn = context_unsafe(READ_ONCE(inst->active));
	if (!turn)
		return -EBUSY;
	if (n > turn->nr)
		return -EINVAL;
	ret = pmuk_counters_read_local(turn->counters, counts, n);
	if (static_branch_unlikely(&pmuk_measures))
		atomic64_inc(&inst->reads);
	else if (!ret && n == turn->nr && !in_nmi())
		pmuk_group_allow_fast(inst, turn);
	return ret;
}

static u64 pmuk_counter_since(const struct pmuk_counter *c)
{
	return max(READ_ONCE(c->since), c->host ? READ_ONCE(c->host->since) : 0);
}

/**
 * pmuk_local_since() - since when the active set's counters have missed nothing here
 * @ctx: the context
 *
 * A local read does not tell whether the counters were away since the read before: counters that
 * give way to others, or are pushed out, may come back soon, and their counts go on from the old
 * ones. A consumer that needs complete counts calls this after each pmuk_read_local(), with
 * interrupts off from before the read. If the result is that of the read before, no counter was
 * off its PMU in between. After reads by pmuk_group_read() the result is the same as before, so a
 * consumer need not ask for it.
 *
 * The result need not change after a pause, when perf core throttles a counter, when perf core lets
 * counters without PMUK_PINNED take turns, or after a guest has had the PMU for itself.
 *
 * Context: Any, NMI too; on a CPU of the target, or in its task.
 * Return: the time by ktime_get_ns() when the latest of the active set's counters was enabled;
 * 0 if @ctx is NULL, stopped, or does not count here.
 */
u64 pmuk_local_since(struct pmuk_context *ctx)
{
	struct pmuk_inst *inst;
	struct pmuk_turn *turn;
	u64 since = 0;
	unsigned int i;

	if (!ctx)
		return 0;
	guard(irqsave)();
	inst = pmuk_context_own(ctx);
	/* RCU keeps the turns, and their counters. */
	turn = inst ? context_unsafe(READ_ONCE(inst->active)) : NULL;
	for (i = 0; turn && i < turn->nr; i++) {
		struct pmuk_counter *c = READ_ONCE(turn->counters[i]);

		since = max(since, c ? pmuk_counter_since(c) : 0);
	}
	return since;
}
EXPORT_SYMBOL_GPL(pmuk_local_since);

/* Pass the number of counters as a constant, so that the compiler unrolls the loop over them. */
static __always_inline bool pmuk_group_read_any(const struct pmuk_context *ctx, u64 *counts,
						unsigned int n)
{
	struct pmuk_group *const *shown = raw_cpu_ptr(pmuk_groups(ctx));

	if (likely(n == 2))
		return pmuk_group_read(shown, counts, 2, false);
	if (likely(n == 4))
		return pmuk_group_read(shown, counts, 4, false);
	if (n == 1)
		return pmuk_group_read(shown, counts, 1, false);
	return n == 3 && pmuk_group_read(shown, counts, 3, false);
}

/**
 * __pmuk_read_local() - the part of pmuk_read_local() that is not inline
 * @ctx: the context
 * @counts: where to put the counts
 * @n: read the first @n counters
 *
 * Nothing but pmuk_read_local() calls this: if its caller is preemptible or in NMI, if the compiler
 * does not know @n, or if the inline read has failed.
 *
 * Context: As pmuk_read_local().
 * Return: As pmuk_read_local().
 */
int __pmuk_read_local(struct pmuk_context *ctx, u64 *counts, unsigned int n)
{
	if (unlikely(!ctx || !counts))
		return -EINVAL;
	guard(preempt_notrace)();
	if (likely(!in_nmi() && pmuk_group_read_any(ctx, counts, n)))
		return 0;
	return pmuk_read_local_slow(ctx, counts, n);
}
EXPORT_SYMBOL_GPL(__pmuk_read_local);
