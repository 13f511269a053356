// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts of lower rank give way: if the pinned counters of a context find no room on a CPU,
 * contexts that rank lower and have pinned counters of the same PMU there lose theirs, one by one,
 * until there is room. The lowest rank comes first, and of one rank the latest context.
 *
 * A context that has given way on a CPU waits for room there. Its watch tries again each
 * PMUK_RETRY_MAX, and at once when the higher context has found room or has stopped. Contexts of
 * one rank never give way to each other, so no two contexts displace each other in turn.
 *
 * A caller holds its own context's lock, and takes locks of contexts of lower rank after it.
 */
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/limits.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>

#include <trace/events/pmu_kapi.h>

#include "contexts.h"
#include "instance.h"
#include "message.h"
#include "rank.h"
#include "watch.h"

/* A try costs as much as a load, so the pause between two tries doubles. */
#define PMUK_RETRY_MIN	(HZ / 10UL)
#define PMUK_RETRY_MAX	(10UL * HZ)

void pmuk_inst_set_missed(struct pmuk_inst *inst, bool missed) __must_hold(&inst->ctx->lock)
{
	unsigned long pause = clamp(2 * inst->retry_pause, PMUK_RETRY_MIN, PMUK_RETRY_MAX);

	if (missed && !inst->missed)
		pmuk_watch_soon(inst->ctx);
	inst->missed = missed;
	inst->retry_pause = missed ? pause : 0;
	inst->retry_at = jiffies + inst->retry_pause;
}

/*
 * Calls @fn for the instance of each context whose rank is below that of @than, on the CPU of
 * @than: the lowest rank first, and within a rank the latest context first. The locks of both
 * contexts are held. A call that returns true is the last. Returns whether there was such a call.
 */
static bool pmuk_rank_any_below(struct pmuk_inst *than,
				bool (*fn)(struct pmuk_inst *inst, struct pmuk_inst *than))
{
	struct pmuk_context *ctx;
	struct pmuk_inst *inst;
	bool done = false;
	int rank;
	u64 id;

	for (rank = PMUK_RANK_BACKGROUND; rank < than->ctx->rank && !done; rank++) {
		for (id = U64_MAX; !done && (ctx = pmuk_view_before(id, rank)); pmuk_unview(ctx)) {
			id = ctx->id;
			if (!READ_ONCE(ctx->insts[than->cpu]))
				continue;
			mutex_lock_nested(&ctx->lock, SINGLE_DEPTH_NESTING);
			inst = pmuk_target_is_task(ctx) ? NULL : ctx->insts[than->cpu];
			done = inst && fn(inst, than);
			mutex_unlock(&ctx->lock);
		}
	}
	return done;
}

/* Takes the counters of @inst, which counts, away for @to. Then @inst waits for room. */
static void pmuk_inst_give_way(struct pmuk_inst *inst, struct pmuk_inst *to)
	__must_hold(&inst->ctx->lock)
{
	const struct pmuk_set *set;

	scoped_guard(mutex, &inst->lock)
		set = inst->active->set;
	trace_pmuk_give_way(inst->ctx->id, inst->cpu, to->ctx->id);
	pmuk_inst_retire(inst);
	inst->retry_pause = PMUK_RETRY_MAX;
	pmuk_inst_set_missed(inst, true);
	pmuk_post_by(inst->ctx, PMUK_MSG_COUNTER_LOST, inst->cpu, 1, set->defined, set->id,
		     to->ctx->id);
}

static bool pmuk_inst_give_way_if_it_helps(struct pmuk_inst *inst, struct pmuk_inst *to)
	__must_hold(&inst->ctx->lock)
{
	if (!pmuk_inst_has_pinned(inst, to->lacks))
		return false;
	pmuk_inst_give_way(inst, to);
	return true;
}

/*
 * Makes @inst give way if a counter was pushed out, and @to has counters of that PMU. Returns
 * false, and the walk goes on.
 */
static bool pmuk_inst_give_way_if_lost(struct pmuk_inst *inst, struct pmuk_inst *to)
	__must_hold(&inst->ctx->lock)
{
	if (pmuk_inst_has_lost(inst) && pmuk_inst_has_pinned(to, inst->lacks))
		pmuk_inst_give_way(inst, to);
	return false;
}

/* Makes @inst try again soon if it waits for room. Returns false, and the walk goes on. */
static bool pmuk_inst_recall(struct pmuk_inst *inst, struct pmuk_inst *by)
	__must_hold(&inst->ctx->lock)
{
	if (inst->missed) {
		inst->retry_pause = 0;
		inst->retry_at = jiffies;
		pmuk_watch_soon(inst->ctx);
	}
	return false;
}

/* Contexts on tasks neither give way nor make others do so. */
static bool pmuk_inst_can_displace(const struct pmuk_inst *inst)
{
	return inst->cpu >= 0 && inst->ctx->rank > PMUK_RANK_BACKGROUND;
}

/* Makes one instance give way, if there is one that has what @inst lacks. */
static bool pmuk_rank_displace(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	return inst->lacks && pmuk_rank_any_below(inst, pmuk_inst_give_way_if_it_helps);
}

/*
 * The instance has found room, perhaps by pushing out counters of higher rank, or while a context
 * of higher rank waits. Lets contexts of higher rank check soon.
 */
static void pmuk_rank_challenge(struct pmuk_inst *inst)
{
	struct pmuk_context *ctx;
	struct pmuk_inst *above;
	u64 id;

	for (id = 0; (ctx = pmuk_view_from(id)); pmuk_unview(ctx)) {
		id = ctx->id + 1;
		guard(rcu)();
		above = READ_ONCE(ctx->insts[inst->cpu]);
		if (ctx->rank > inst->ctx->rank && above && !atomic_xchg(&above->challenged, 1))
			pmuk_watch_soon(ctx);
	}
}

/*
 * The instance counts. perf core serves pinned counters in the order of their creation. So when
 * @inst starts, its counters may push out younger ones of lower rank. The contexts of these give
 * way.
 */
void pmuk_rank_placed(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	if (inst->cpu < 0)
		return;
	if (inst->ctx->rank < PMUK_RANK_CRITICAL)
		pmuk_rank_challenge(inst);
	if (inst->ctx->rank > PMUK_RANK_BACKGROUND)
		pmuk_rank_any_below(inst, pmuk_inst_give_way_if_lost);
}

/*
 * Makes contexts of lower rank give way until @place finds room, or none has what @inst lacks. A
 * lower context may occupy registers for a trial at first. Its trial has ended when the search has
 * taken its lock, so a last call of @place may find room. Then each lower context that waits tries
 * again, as some may fit beside @inst.
 */
static int pmuk_rank_make_room(struct pmuk_inst *inst, struct pmuk_target *failed,
			       int (*place)(struct pmuk_inst *inst, struct pmuk_target *failed))
	__must_hold(&inst->ctx->lock)
{
	int ret = -ENOSPC;
	bool took = false;

	while (ret == -ENOSPC && pmuk_rank_displace(inst)) {
		took = true;
		ret = place(inst, failed);
	}
	if (ret == -ENOSPC)
		ret = place(inst, failed);
	if (took)
		pmuk_rank_any_below(inst, pmuk_inst_recall);
	return ret;
}

/*
 * Calls @place, which places @inst, starts it, or both. Contexts of lower rank have to give way for
 * the first try, and for a later one if another of them has started since: to do that each time
 * would be no use.
 */
int pmuk_rank_place(struct pmuk_inst *inst, struct pmuk_target *failed,
		    int (*place)(struct pmuk_inst *inst, struct pmuk_target *failed))
	__must_hold(&inst->ctx->lock)
{
	int ret = place(inst, failed);

	if (ret == -ENOSPC && pmuk_inst_can_displace(inst) &&
	    (atomic_xchg(&inst->challenged, 0) || !inst->missed))
		ret = pmuk_rank_make_room(inst, failed, place);
	if (!ret)
		pmuk_rank_placed(inst);
	return ret;
}

/*
 * The watch has found that a counter was pushed out, perhaps by a context of lower rank that was
 * loaded before this one and has started later, see pmuk_rank_placed(). One try for each loss gets
 * the counter back. If no context of lower rank is involved, the counter waits for a restart, so
 * that the consumer notices. The reverse can happen when @inst exchanges sets.
 */
void pmuk_rank_recover(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	bool challenged, lost, back, took = false;

	/* An instance that waits leaves ->challenged to pmuk_rank_place(). */
	if (!pmuk_inst_can_displace(inst) || inst->missed)
		return;
	if (inst->nr_turns > 1)
		pmuk_rank_any_below(inst, pmuk_inst_give_way_if_lost);
	challenged = atomic_xchg(&inst->challenged, 0);
	lost = pmuk_inst_take_lost(inst);
	if (!(challenged || lost) || !pmuk_inst_has_lost(inst))
		return;
	back = challenged && pmuk_inst_reclaim(inst);
	while (!back && pmuk_rank_displace(inst)) {
		took = true;
		back = pmuk_inst_reclaim(inst);
	}
	if (back)
		pmuk_post(inst->ctx, PMUK_MSG_CPU_ONLINE, inst->cpu, 1, 0, 0);
	if (took)
		pmuk_rank_any_below(inst, pmuk_inst_recall);
}

/* The context has stopped: contexts that may have given way to it try again. */
void pmuk_rank_recall(struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	struct pmuk_inst *inst;

	pmuk_for_each_inst(inst, ctx) {
		lockdep_assert_held(&inst->ctx->lock);
		if (pmuk_inst_can_displace(inst))
			pmuk_rank_any_below(inst, pmuk_inst_recall);
	}
}
