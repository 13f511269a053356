// SPDX-License-Identifier: GPL-2.0
/* pmuk_read_local() reads the counters of a set, on this CPU or of this task, in one instant. */
#include <linux/build_bug.h>
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/smp.h>

#include "context.h"

static_assert(offsetof(struct pmuk_counter, mask) == offsetof(struct pmuk_counter_fast, mask));
static_assert(offsetof(struct pmuk_counter, last) == offsetof(struct pmuk_counter_fast, last));
static_assert(offsetof(struct pmuk_counter, offset) == offsetof(struct pmuk_counter_fast, offset));

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

/* Let the fast path of pmuk_read_local() find the counters of the active turn, or hide them. */
void pmuk_inst_show_group(struct pmuk_inst *inst, bool on)
{
	struct pmuk_turn *turn = inst->active;
	struct pmuk_group **shown;

	if (inst->cpu < 0)
		return;
	shown = per_cpu_ptr(inst->ctx->groups, inst->cpu);
	on = on && turn->nr && pmuk_turn_is_direct(turn);
	WRITE_ONCE(turn->group->fast_tick, PMUK_COUNTING);
	WRITE_ONCE(*shown, on ? turn->group : NULL);
	smp_mb();	/* pairs with pmuk_inst_mask(), which hides the group or is seen here */
	if (on && atomic_read(&inst->masked))
		WRITE_ONCE(*shown, NULL);
}

static struct pmuk_inst *pmuk_context_own(struct pmuk_context *ctx)
{
	struct task_struct *task = READ_ONCE(ctx->task);

	if (task)
		return task == current ? READ_ONCE(ctx->insts[0]) : NULL;
	return READ_ONCE(ctx->insts[raw_smp_processor_id()]);
}

/*
 * Let reads of the group be fast for the rest of this tick, unless the context is masked. A restart
 * that is masked again before it ends shows the group for a moment even then. An NMI may mask at
 * any point in here, so check ->masked afterwards.
 */
static void pmuk_group_allow_fast(const struct pmuk_inst *inst, struct pmuk_group *group)
{
	WRITE_ONCE(group->fast_tick, jiffies);
	barrier();
	if (atomic_read(&inst->masked))
		WRITE_ONCE(group->fast_tick, PMUK_COUNTING);
}

/*
 * Reads @n counters, and publishes those that this tick has not published yet. A read of all the
 * set's counters, outside of NMI, makes the tick's other reads fast.
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
	turn = READ_ONCE(inst->active);
	if (!turn)
		return -EBUSY;
	if (n > turn->nr)
		return -EINVAL;
	ret = pmuk_counters_read_local(turn->counters, counts, n);
	if (!ret && n == turn->nr && !in_nmi())
		pmuk_group_allow_fast(inst, turn->group);
	return ret;
}

/* Each number of counters has its code in line, without a loop. */
static __always_inline bool pmuk_group_read_any(const struct pmuk_context *ctx, u64 *counts,
						unsigned int n)
{
	struct pmuk_group *const *shown = raw_cpu_ptr(ctx->groups);

	if (likely(n == 2))
		return pmuk_group_read(shown, counts, 2, false);
	if (likely(n == 4))
		return pmuk_group_read(shown, counts, 4, false);
	if (n == 1)
		return pmuk_group_read(shown, counts, 1, false);
	return n == 3 && pmuk_group_read(shown, counts, 3, false);
}

static noinline int pmuk_read_local_preemptible(struct pmuk_context *ctx, u64 *counts,
						unsigned int n)
{
	guard(preempt_notrace)();
	if (likely(pmuk_group_read_any(ctx, counts, n)))
		return 0;
	return pmuk_read_local_slow(ctx, counts, n);
}

/**
 * pmuk_read_local() - read the active set's counters on this CPU or task in one instant
 * @ctx: the context
 * @counts: where to put the counts, in the order of the counters' numbers
 * @n: read the first @n counters
 *
 * No interrupt comes between the reads, nor, on x86 and arm64, an NMI. Each count is as
 * pmuk_counter_read_local() returns it.
 *
 * Context: Any, NMI too; on a CPU of the target, or in its task. Where more than one event
 * set takes turns, with preemption off, or the turn may end.
 * Return: 0; -EINVAL if @ctx or @counts is NULL, this is no CPU of the target or not its task,
 * or the set has fewer than @n counters; -EBUSY if the context is stopped, a counter is not on
 * the PMU now, or NMIs came between the reads again and again; -EOPNOTSUPP with PMUK_TARGET_TREE.
 * @counts is not defined after an error.
 */
int pmuk_read_local(struct pmuk_context *ctx, u64 *counts, unsigned int n)
{
	unsigned int preempt = preempt_count();

	if (unlikely(!ctx || !counts))
		return -EINVAL;
	if (unlikely(!preempt))
		return pmuk_read_local_preemptible(ctx, counts, n);
	if (likely(!(preempt & NMI_MASK) && pmuk_group_read_any(ctx, counts, n)))
		return 0;
	return pmuk_read_local_slow(ctx, counts, n);
}
EXPORT_SYMBOL_GPL(pmuk_read_local);

/**
 * pmuk_groups() - where pmuk_group_read() finds the counters of each CPU
 * @ctx: the context
 *
 * Context: Any.
 * Return: an array by CPU, whose elements are arguments of pmuk_group_read() until pmuk_close().
 */
struct pmuk_group * __percpu *pmuk_groups(struct pmuk_context *ctx)
{
	return ctx->groups;
}
EXPORT_SYMBOL_GPL(pmuk_groups);
