// SPDX-License-Identifier: GPL-2.0
/*
 * The counters of a set together: those of this CPU in one instant, or of the whole target
 * as they were last seen.
 */

#include <linux/err.h>
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "context.h"

static struct pmuk_inst *pmuk_context_own(struct pmuk_context *ctx)
{
	struct task_struct *task = READ_ONCE(ctx->task);

	if (task)
		return task == current ? READ_ONCE(ctx->insts[0]) : NULL;
	return READ_ONCE(ctx->insts[raw_smp_processor_id()]);
}

/*
 * For the rest of this tick; but not while masked, though a restart that is masked again before it
 * ends shows the group for a moment. An NMI may mask at any point in here, hence the look after.
 */
static void pmuk_group_allow_fast(const struct pmuk_inst *inst, struct pmuk_group *group)
{
	WRITE_ONCE(group->fast_tick, jiffies);
	barrier();
	if (atomic_read(&inst->masked))
		WRITE_ONCE(group->fast_tick, PMUK_NEVER);
}

/* Once in each tick all are published; until the next one, reads of the group are fast. */
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

static noinline int pmuk_read_local_preemptible(struct pmuk_context *ctx, u64 *counts,
						unsigned int n)
{
	bool done;

	preempt_disable_notrace();
	done = pmuk_group_read(ctx->groups, counts, n);
	preempt_enable_notrace();
	return done ? 0 : pmuk_read_local_slow(ctx, counts, n);
}

/**
 * pmuk_read_local() - all counters of the set whose turn it is, here, in one instant
 * @ctx: the context
 * @counts: where to put their counts, in the order of their numbers
 * @n: how many are wanted: the first @n
 *
 * No interrupt comes between them, nor, on x86 and arm64, an NMI. Each is as
 * pmuk_counter_read_local() has it.
 *
 * Context: Any, NMI too; on a CPU of the target, or in its task. Where more than one event
 * set takes turns, with preemption off, or the turn may end.
 * Return: 0; -EINVAL if @ctx or @counts is NULL, this is no CPU of the target or not its task,
 * or the set has fewer than @n counters; -EBUSY if the context is stopped, a counter is not on
 * the PMU now, or NMIs came between them again and again; -EOPNOTSUPP with PMUK_TARGET_TREE.
 * @counts is not defined after an error.
 */
int pmuk_read_local(struct pmuk_context *ctx, u64 *counts, unsigned int n)
{
	unsigned int preempt = preempt_count();

	if (unlikely(!ctx || !counts))
		return -EINVAL;
	if (unlikely(!preempt))
		return pmuk_read_local_preemptible(ctx, counts, n);
	if (likely(!(preempt & NMI_MASK) && pmuk_group_read(ctx->groups, counts, n)))
		return 0;
	return pmuk_read_local_slow(ctx, counts, n);
}
EXPORT_SYMBOL_GPL(pmuk_read_local);

static int pmuk_turn_snapshot(const struct pmuk_turn *turn, struct pmuk_value *values,
			      unsigned int n)
{
	unsigned int i;

	if (!turn || n > turn->nr)
		return -EINVAL;
	for (i = 0; i < n; i++)
		pmuk_slot_snapshot(&turn->slots[i], &values[i]);
	return 0;
}

/**
 * pmuk_snapshot() - last published values of a set's counters, of the whole target
 * @ctx: the context
 * @set: the event set
 * @values: where to put them, in the order of their numbers
 * @n: how many are wanted: the first @n
 *
 * Never an IPI, never a wait: the sum of what pmuk_counter_snapshot() knows, since the
 * context was loaded; the age is that of the oldest.
 *
 * Context: Any, NMI too; from any CPU.
 * Return: 0; -EINVAL if @ctx or @values is NULL or an ERR_PTR(), or there is no such set, or
 * it has fewer than @n counters; -ENODEV if @ctx is not loaded; -EOPNOTSUPP with
 * PMUK_TARGET_TREE.
 */
int pmuk_snapshot(struct pmuk_context *ctx, u16 set, struct pmuk_value *values, unsigned int n)
{
	struct pmuk_inst *inst;
	unsigned int cpu;
	int ret = -ENODEV;

	if (IS_ERR_OR_NULL(ctx) || IS_ERR_OR_NULL(values))
		return -EINVAL;
	if (READ_ONCE(ctx->loaded) && READ_ONCE(ctx->target) == PMUK_TARGET_TREE)
		return -EOPNOTSUPP;
	memset(values, 0, n * sizeof(*values));
	guard(rcu)();
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		inst = smp_load_acquire(&ctx->insts[cpu]);	/* whole */
		if (!inst)
			continue;
		ret = pmuk_turn_snapshot(pmuk_inst_turn(inst, set), values, n);
		if (ret)
			break;
	}
	return ret;
}
EXPORT_SYMBOL_GPL(pmuk_snapshot);
