// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts of lower rank give way: if the pinned counters of a context find no room on a CPU,
 * contexts that rank lower and have pinned counters of the same PMU there lose theirs, one by one,
 * until there is room. The lowest rank comes first, and of one rank the latest context.
 *
 * A context that has given way on a CPU waits for room there. Its watch tries again each
 * PMUK_RETRY_MAX, and at once when the higher context has found room or has stopped. Contexts of
 * one rank never give way to each other, so no two contexts displace each other in turn. If
 * contexts gave way and the higher context still found no room, pmuk makes no context give way to
 * that higher context again for a while.
 *
 * A caller holds its own context's lock, and takes locks of contexts of lower rank after it.
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/limits.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/mutex.h>

#include <trace/events/pmu_kapi.h>

#include "contexts.h"
#include "instance.h"
#include "message.h"
#include "rank.h"
#include "reserve.h"
#include "slot.h"
#include "watch.h"

/*
 * The most counters of reservations that a search ends: the search of another rank may fill
 * reservations again meanwhile. Up to 32 reservations share a register.
 */
#define PMUK_LOANS_MAX		64

/* A try costs as much as a load, so the pause between two tries doubles. */
#define PMUK_RETRY_MIN	(HZ / 10UL)
#define PMUK_RETRY_MAX	(10UL * HZ)

/* The longest pause after contexts gave way in vain, or to events of others again and again */
#define PMUK_VAIN_MAX	(60UL * HZ)

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
 * If @fn is NULL, any instance will do.
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
			done = inst && (!fn || fn(inst, than));
			mutex_unlock(&ctx->lock);
		}
	}
	return done;
}

/*
 * Takes the counters of @inst, which counts, away for the context @to, or for PMUK_BY_PERF. Then
 * @inst waits for room.
 */
static void pmuk_inst_give_way(struct pmuk_inst *inst, u64 to) __must_hold(&inst->ctx->lock)
{
	const struct pmuk_set *set;

	scoped_guard(mutex, &inst->lock)
		set = inst->active->set;
	trace_pmuk_give_way(inst->ctx->id, inst->cpu, to);
	pmuk_inst_retire(inst);
	atomic_inc(pmuk_ways(inst->cpu));
	inst->retry_pause = PMUK_RETRY_MAX;
	pmuk_inst_set_missed(inst, true);
	pmuk_post_by(inst->ctx, PMUK_MSG_COUNTER_LOST, inst->cpu, 1, set->defined, set->id, to);
}

/*
 * Makes @inst give way if it has a register of the PMU that @to lacks, and all counters that share
 * the register give way to the rank of @to, see pmuk_sharers_give_way(). Returns true if @to has to
 * try again: @inst has given way now, or any context has given way on this CPU after the latest try
 * of @to, perhaps to a third context.
 */
static bool pmuk_inst_give_way_if_it_helps(struct pmuk_inst *inst, struct pmuk_inst *to)
	__must_hold(&inst->ctx->lock)
{
	lockdep_assert_held(&to->ctx->lock);
	if (atomic_read(pmuk_ways(to->cpu)) != to->ways)
		return true;
	if (!pmuk_inst_has_pinned(inst, to->lacks, to->ctx->rank))
		return false;
	pmuk_inst_give_way(inst, to->ctx->id);
	return true;
}

/*
 * Makes @inst try again soon if it waits for room, and not for events of others. Returns false, and
 * the walk goes on.
 */
static bool pmuk_inst_recall(struct pmuk_inst *inst, struct pmuk_inst *by)
	__must_hold(&inst->ctx->lock)
{
	if (inst->missed && (!inst->yield_pause || time_after_eq(jiffies, inst->yield_until))) {
		inst->retry_pause = 0;
		inst->retry_at = jiffies;
		pmuk_watch_soon(inst->ctx);
	}
	return false;
}

/*
 * Makes @inst give way if a counter was pushed out, and @to has enabled counters of that PMU. A
 * third context may have stopped since, so @inst tries again soon, and later after each further
 * loss: the sets of @to may push it out in turn. Returns false, and the walk goes on.
 */
static bool pmuk_inst_give_way_if_lost(struct pmuk_inst *inst, struct pmuk_inst *to)
	__must_hold(&inst->ctx->lock)
{
	if (pmuk_inst_has_lost(inst) && pmuk_inst_has_used(to, inst->lacks)) {
		pmuk_inst_give_way(inst, to->ctx->id);
		inst->lost_pause = clamp(2 * inst->lost_pause, PMUK_RETRY_MIN, PMUK_RETRY_MAX);
		inst->retry_pause = inst->lost_pause;
		inst->retry_at = jiffies + inst->lost_pause;
	}
	return false;
}

/* Contexts on tasks neither give way nor make others do so. */
static bool pmuk_inst_can_displace(const struct pmuk_inst *inst)
{
	return inst->cpu >= 0 && inst->ctx->rank > PMUK_RANK_BACKGROUND;
}

static bool pmuk_inst_counts(struct pmuk_inst *inst)
{
	guard(mutex)(&inst->lock);
	return inst->active;
}

/*
 * Called when @inst counts, and when it could not be started. perf core serves pinned counters in
 * the order of their creation, and once one has found no register, it places no younger one of that
 * PMU. So when the counters of @inst are enabled, they may push out younger ones, even if they then
 * fail: those of reservations, and those of contexts of lower rank, which give way and come back
 * with new ones.
 */
void pmuk_rank_placed(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	if (inst->cpu >= 0)
		pmuk_reserve_placed(inst->cpu);
	if (pmuk_inst_can_displace(inst))
		pmuk_rank_any_below(inst, pmuk_inst_give_way_if_lost);
}

/*
 * Ends the search for room, and sets the pause after a search in vain. If contexts gave way, those
 * that wait for room try again, as some may fit beside @inst.
 */
static void pmuk_rank_searched(struct pmuk_inst *inst, bool took, bool found)
	__must_hold(&inst->ctx->lock)
{
	unsigned long least = took ? PMUK_RETRY_MAX : PMUK_RETRY_MIN;

	inst->vain_pause = found ? 0 : clamp(2 * inst->vain_pause, least, PMUK_VAIN_MAX);
	inst->vain_until = jiffies + inst->vain_pause;
	pmuk_rank_placed(inst);
	if (took)
		pmuk_rank_any_below(inst, pmuk_inst_recall);
}

/*
 * Calls @place until @place finds room, or until no reservation lends what @inst lacks, and if
 * @displaces, no context of lower rank has it either. Reservations lend a register that they shared
 * with a context after the context has given way. A context of lower rank may hold registers for a
 * trial during the search. The search takes the lock of that context, and so waits until the trial
 * has ended. So @place is called once more after the search.
 */
static int pmuk_rank_search(struct pmuk_inst *inst, int (*place)(struct pmuk_inst *inst),
			    bool displaces)
	__must_hold(&inst->ctx->lock)
{
	bool took = false, last = !displaces;
	int ret;

	for (;;) {
		inst->ways = atomic_read(pmuk_ways(inst->cpu));
		ret = place(inst);
		if (ret != -ENOSPC)
			break;
		if (pmuk_reserve_lend(inst))
			continue;
		if (last)
			break;
		last = !pmuk_rank_any_below(inst, pmuk_inst_give_way_if_it_helps);
		took |= !last;
		pmuk_reserve_prefer(inst->cpu, inst->ctx->rank);
	}
	pmuk_rank_searched(inst, took, !ret);
	return ret;
}

/*
 * Looks for room: @inst borrows reserved registers, then contexts of lower rank give way. Returns
 * what @place has returned; or -ENOSPC if no reservation lends and no context of lower rank has
 * counters there, or during the pause after a search in vain. If @inst does not count after the
 * search, a worker reserves again what @inst has borrowed.
 */
int pmuk_rank_make_room(struct pmuk_inst *inst, int (*place)(struct pmuk_inst *inst))
	__must_hold(&inst->ctx->lock)
{
	int ret = -ENOSPC;
	bool displaces;

	if (inst->cpu < 0 || (inst->vain_pause && time_before(jiffies, inst->vain_until)))
		return -ENOSPC;
	inst->loans = PMUK_LOANS_MAX;
	displaces = pmuk_inst_can_displace(inst) && pmuk_rank_any_below(inst, NULL);
	if (displaces || pmuk_reserve_lend(inst))
		ret = pmuk_rank_search(inst, place, displaces);
	if (ret || !pmuk_inst_counts(inst))
		pmuk_reserve_recall();
	return ret;
}

/* Calls @place, which places @inst, starts it, or both. */
int pmuk_rank_place(struct pmuk_inst *inst, int (*place)(struct pmuk_inst *inst))
	__must_hold(&inst->ctx->lock)
{
	int ret;

	if (inst->cpu >= 0)
		pmuk_reserve_prefer(inst->cpu, inst->ctx->rank);
	ret = place(inst);
	if (ret == -ENOSPC)
		return pmuk_rank_make_room(inst, place);
	if (!ret)
		pmuk_rank_placed(inst);
	return ret;
}

/*
 * The watch calls this. A context of lower rank that was loaded before @inst and has started later
 * may have pushed out counters of @inst, see pmuk_rank_placed(). @inst takes them back. When @inst
 * exchanges sets, its counters may push out counters of a context of lower rank, which gives way.
 */
void pmuk_rank_recover(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	if (!pmuk_inst_can_displace(inst))
		return;
	if (inst->nr_turns > 1)
		pmuk_rank_placed(inst);
	if (!pmuk_inst_has_lost(inst) || pmuk_rank_make_room(inst, pmuk_inst_reclaim))
		return;
	pmuk_reserve_recall();	/* @inst may not have needed what it borrowed */
	pmuk_post(inst->ctx, PMUK_MSG_CPU_ONLINE, inst->cpu, 1, 0, 0);
}

/*
 * Returns whether an event of others has waited since the latest check, and at that check, too.
 * perf core calls pmuk_slot_others_wait() again and again while an event waits, but only once if
 * the event finds room soon.
 */
static bool pmuk_inst_others_wait(struct pmuk_inst *inst, int *waited)
	__must_hold(&inst->ctx->lock)
{
	bool before = inst->others_waited;

	*waited = atomic_xchg(&inst->others_wait, 0);
	inst->others_waited = *waited && pmuk_inst_counts(inst);
	if (inst->others_waited)
		pmuk_watch_soon(inst->ctx);
	return before && inst->others_waited;
}

/* The CPUs on which a context yields at this moment */
static struct cpumask pmuk_yielding;

/*
 * If the instance has to give way again before it has counted for as long as the latest pause, the
 * next pause is twice as long.
 */
static void pmuk_inst_yield(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	unsigned long pause = inst->yield_pause;

	if (time_after(jiffies, inst->yield_until + pause))
		pause = 0;
	inst->yield_pause = clamp(2 * pause, PMUK_RETRY_MAX, PMUK_VAIN_MAX);
	inst->yield_until = jiffies + inst->yield_pause;
	inst->yielded = true;
	pmuk_inst_give_way(inst, PMUK_BY_PERF);
	inst->retry_at = inst->yield_until;
}

/*
 * The watch calls this. If events of others wait for room, an instance that yields gives way.
 *
 * Only one context yields at a time. If another context has given way on this CPU after perf core's
 * latest call, or yields now, @inst keeps its counters for now. If an event still waits, perf core
 * calls again.
 */
void pmuk_rank_yield(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	int waited;

	if (!pmuk_inst_others_wait(inst, &waited))
		return;
	inst->others_waited = false;	/* two more checks have to find that events wait */
	if (test_and_set_bit_lock(inst->cpu, cpumask_bits(&pmuk_yielding)))
		return;
	if (atomic_read(pmuk_ways(inst->cpu)) == waited - 1)
		pmuk_inst_yield(inst);
	clear_bit_unlock(inst->cpu, cpumask_bits(&pmuk_yielding));
}

/* The instance has its counters back. If it had yielded, its pause has lasted until now. */
void pmuk_rank_came_back(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	if (inst->yielded)
		inst->yield_until = jiffies;
	inst->yielded = false;
}

/* The context has stopped: contexts that may have given way to it try again. */
void pmuk_rank_recall(struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	struct pmuk_inst *inst;

	pmuk_for_each_inst(inst, ctx) {
		if (pmuk_inst_can_displace(inst))
			pmuk_rank_any_below(inst, pmuk_inst_recall);
	}
	pmuk_reserve_recall();
}
