// SPDX-License-Identifier: GPL-2.0
/*
 * An instance is the part of a context that is on one CPU, or on its task. Instances are placed,
 * started, stopped, restarted, watched and retired here.
 */
#define pr_fmt(fmt) "pmuk: " fmt

#include <kunit/visibility.h>
#include <linux/err.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/isolation.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/tick.h>
#include <linux/timekeeping.h>
#include <linux/topology.h>

#include "context.h"
#include "instance.h"
#include "message.h"
#include "overflow.h"
#include "share.h"
#include "slot.h"
#include "turn.h"
#include "watch.h"
#include "work.h"

/* ---- counters come and go ---- */

static void pmuk_turn_retire(struct pmuk_turn *turn)
{
	unsigned int i;

	/* Disable all counters first, as records of one may have the values of others. */
	for (i = 0; i < turn->nr; i++)
		pmuk_counter_disable(turn->counters[i]);
	for (i = 0; i < turn->nr; i++)
		pmuk_slot_retire(&turn->slots[i]);
}

/* The turn was retired a grace period ago, so no code on any CPU uses its counters any more. */
static void pmuk_turn_finish(struct pmuk_turn *turn)
{
	struct pmuk_slot *slot;

	pmuk_for_each_slot(slot, turn) {
		lockdep_assert_held(&slot->inst->lock);
		if (slot->ended)
			pmuk_counter_finish(slot->ended);
		slot->ended = NULL;
	}
}

/* Frees the counters of an instance that was retired a grace period ago. */
void pmuk_inst_finish(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	unsigned int i;

	guard(mutex)(&inst->lock);
	for (i = 0; i < inst->nr_turns; i++)
		pmuk_turn_finish(&inst->turns[i]);
	inst->retired = false;
}

/* The counts stay. The counters are freed later, so that many instances share a grace period. */
static void pmuk_inst_retire_locked(struct pmuk_inst *inst)
	__must_hold(&inst->lock) __must_hold(&inst->ctx->lock)
{
	unsigned int i;

	for (i = 0; i < inst->nr_turns; i++)
		pmuk_turn_retire(&inst->turns[i]);
	inst->live = false;
	inst->retired = true;
	inst->grace = get_state_synchronize_rcu();
}

static int pmuk_turn_place(struct pmuk_inst *inst, struct pmuk_turn *turn, struct pmuk_attr *attr,
			   u64 now, struct pmuk_slot **failed)
	__must_hold(&inst->ctx->lock)
{
	struct pmuk_slot *slot;
	struct pmuk_counter *c;

	pmuk_for_each_slot(slot, turn) {
		*failed = slot;
		c = pmuk_slot_make(slot, attr, now);
		if (IS_ERR(c))
			return PTR_ERR(c);
		WRITE_ONCE(*pmuk_slot_counter(slot), c);
		/* A CPU that comes back is not kept away by what was written meanwhile. */
		if (!inst->ctx->loaded &&
		    !pmuk_slot_takes(slot, slot->def->pmd.long_reset, attr->period)) {
			pr_debug("load: set %u, counter %u: its PMU refuses long_reset\n",
				 turn->set->id, slot->def->num);
			return -EINVAL;
		}
	}
	return 0;
}

/*
 * Returns whether pmuk_turn_try() enables the counter. A counter that writes AUX areas is left out,
 * as it would begin to write.
 */
static bool pmuk_slot_is_tried(const struct pmuk_slot *slot)
{
	return (pmuk_inst_is_tree(slot->inst) || (slot->def->pmc.flags & PMUK_PINNED)) &&
	       !(*pmuk_slot_counter(slot))->writes_aux;
}

/*
 * Returns the first counter whose trial could push out a pinned event of the task that runs there,
 * or NULL.
 */
static struct pmuk_slot *pmuk_turn_pushes_out(struct pmuk_turn *turn)
{
	struct pmuk_slot *slot;

	pmuk_for_each_slot(slot, turn) {
		if (slot->inst->cpu >= 0 && pmuk_slot_is_tried(slot) &&
		    perf_local_task_has_pinned((*pmuk_slot_counter(slot))->hw_event))
			return slot;
	}
	return NULL;
}

/*
 * Only enabling all pinned counters together shows whether a set fits. The counters of a tree stay
 * enabled: children that are forked before an event is enabled would not count.
 */
static int pmuk_turn_try(struct pmuk_inst *inst, struct pmuk_turn *turn, struct pmuk_slot **failed)
	__must_hold(&inst->ctx->lock)
{
	bool tried = pmuk_inst_is_tree(inst);
	struct pmuk_slot *slot;
	int ret = 0;

	pmuk_for_each_slot(slot, turn)
		tried |= slot->def->pmc.flags & PMUK_PINNED;
	if (!tried)
		return 0;
	slot = pmuk_turn_pushes_out(turn);
	/* A load leaves this to pmuk_start(). A CPU that has come back tries again later. */
	if (slot) {
		*failed = slot;
		return inst->ctx->loaded ? -EAGAIN : 0;
	}
	pmuk_for_each_slot(slot, turn) {
		*failed = slot;
		if (pmuk_slot_is_tried(slot))
			ret = pmuk_counter_enable(*pmuk_slot_counter(slot));
		if (ret)
			break;
	}
	if (!ret && pmuk_inst_is_tree(inst))
		return 0;
	pmuk_for_each_slot(slot, turn) {
		if (!pmuk_slot_is_tried(slot))
			continue;
		lockdep_assert_held(&slot->inst->lock);
		pmuk_counter_disable(*pmuk_slot_counter(slot));
		pmuk_slot_rebase(slot, &slot->held);
	}
	return ret;
}

static const struct pmu *pmuk_slot_pmu(const struct pmuk_slot *slot)
{
	const struct pmuk_counter *c = *pmuk_slot_counter(slot);

	return c ? c->hw_event->pmu : NULL;
}

static void pmuk_say_failed(struct pmuk_inst *inst, const struct pmuk_slot *slot, int ret)
{
	inst->failed = slot;
	inst->lacks = pmuk_slot_pmu(slot);
	pr_debug("context: CPU %d, set %u, counter %u: %d\n", inst->cpu, slot->turn->set->id,
		 slot->def->num, ret);
}

/* The instance was not placed, or not started: tells the caller which counter has failed. */
void pmuk_inst_tell_failed(const struct pmuk_inst *inst, struct pmuk_target *target)
{
	target->failed_cpu = inst->cpu;
	target->failed_set = inst->failed->turn->set->id;
	target->failed_num = inst->failed->def->num;
}

static int pmuk_turns_place(struct pmuk_inst *inst, struct pmuk_slot **failed)
	__must_hold(&inst->lock) __must_hold(&inst->ctx->lock)
{
	struct mutex *lock = pmuk_trial_lock(max(inst->cpu, 0));	/* any, on a task */
	struct pmuk_attr attr = pmuk_slots_attr(inst->ctx);
	u64 now = ktime_get_mono_fast_ns();
	unsigned int i;
	int ret = 0;

	guard(mutex)(lock);
	for (i = 0; i < inst->nr_turns && !ret; i++)
		ret = pmuk_turn_place(inst, &inst->turns[i], &attr, now, failed);
	for (i = 0; i < inst->nr_turns && !ret; i++)
		ret = pmuk_turn_try(inst, &inst->turns[i], failed);
	return ret;
}

/*
 * Place all counters of all sets, or none. If this fails, the instance is retired. The counters
 * that were placed by then stay until the next try, or until pmuk_inst_finish(): so a try does not
 * wait for the counters of its own.
 */
int pmuk_inst_place(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	struct pmuk_slot *slot = NULL;
	unsigned int i;
	int ret;

	if (inst->retired) {
		cond_synchronize_rcu(inst->grace);
		pmuk_inst_finish(inst);
	}
	guard(mutex)(&inst->lock);
	ret = pmuk_turns_place(inst, &slot);
	if (ret) {
		pmuk_say_failed(inst, slot, ret);
		pmuk_inst_retire_locked(inst);
		return ret;
	}
	inst->live = true;
	for (i = 0; i < inst->nr_turns; i++) {
		pmuk_for_each_slot(slot, &inst->turns[i])
			pmuk_slot_show(slot);
		pmuk_group_plan(&inst->turns[i]);
	}
	return 0;
}

void pmuk_inst_retire(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	pmuk_inst_stop(inst);
	guard(mutex)(&inst->lock);
	if (inst->live)
		pmuk_inst_retire_locked(inst);
}

static int pmuk_inst_node(int cpu)
{
	return cpu < 0 ? NUMA_NO_NODE : cpu_to_node(cpu);
}

static int pmuk_turn_init(struct pmuk_inst *inst, struct pmuk_turn *turn,
			  const struct pmuk_set *set)
{
	const struct pmuk_def *def;
	struct pmuk_slot *slot;
	unsigned int i = 0;

	turn->set = set;
	turn->nr = hweight32(set->defined);
	turn->slots = kcalloc_node(turn->nr, sizeof(*turn->slots) + sizeof(*turn->counters),
				   GFP_KERNEL, pmuk_inst_node(inst->cpu));
	if (!turn->slots)
		return -ENOMEM;
	turn->counters = (struct pmuk_counter **)(turn->slots + turn->nr);
	turn->group.fast_tick = PMUK_GROUP_SLOW;
	for (def = set->defs; def; def = def->next) {
		if (!(set->defined & BIT(def->num)))
			continue;
		slot = &turn->slots[i++];
		slot->inst = inst;
		slot->turn = turn;
		slot->def = def;
		seqcount_latch_init(&slot->latch);
	}
	return 0;
}

static void pmuk_inst_call_work(struct work_struct *work)
{
	struct pmuk_inst *inst = container_of(work, struct pmuk_inst, call_work);

	/* The task that waits for this worker holds ctx->lock. */
	context_unsafe(inst->call(inst));
}

static void pmuk_inst_wait_irq_work(struct irq_work *irq_work)
{
	pmuk_watch_soon(container_of(irq_work, struct pmuk_inst, wait_irq_work)->ctx);
}

/* The instance gets the event sets that the context has now. It has no counters yet. */
struct pmuk_inst *pmuk_inst_alloc(struct pmuk_context *ctx, int cpu) __must_hold(&ctx->lock)
{
	struct pmuk_inst *inst;
	struct pmuk_set *set;
	unsigned long id;

	inst = kvzalloc_node(struct_size(inst, turns, ctx->nr_sets), GFP_KERNEL,
			     pmuk_inst_node(cpu));
	if (!inst)
		return NULL;
	inst->ctx = ctx;
	inst->cpu = cpu;
	mutex_init(&inst->lock);
	INIT_WORK(&inst->call_work, pmuk_inst_call_work);
	inst->wait_irq_work = IRQ_WORK_INIT_HARD(pmuk_inst_wait_irq_work);
	pmuk_inst_init_switch(inst);
	xa_for_each(&ctx->sets, id, set) {
		inst->nr_turns++;
		if (pmuk_turn_init(inst, &inst->turns[inst->nr_turns - 1], set)) {
			pmuk_inst_free(inst);
			return NULL;
		}
		/* The xarray would search all its entries for another set. */
		if (inst->nr_turns == ctx->nr_sets)
			break;
	}
	return inst;
}

/* The instance was retired, or never placed, and no other code can find it. */
void pmuk_inst_free(struct pmuk_inst *inst)
{
	unsigned int i;

	hrtimer_cancel(&inst->timer);
	irq_work_sync(&inst->irq_work);
	irq_work_sync(&inst->wait_irq_work);
	cancel_work_sync(&inst->work);
	for (i = 0; i < inst->nr_turns; i++)
		kfree(inst->turns[i].slots);
	kvfree(inst);
}

/* Sets *@inst to the first instance from *@cpu on, and *@cpu to its index; false: there is none. */
bool pmuk_inst_from(struct pmuk_context *ctx, unsigned int *cpu, struct pmuk_inst **inst)
	__must_hold(&ctx->lock)
{
	lockdep_assert_held(&ctx->lock);
	for (; *cpu < nr_cpu_ids; (*cpu)++) {
		*inst = ctx->insts[*cpu];
		if (*inst)
			return true;
	}
	return false;
}

/* ---- calls on all CPUs at once ---- */

/* A worker would disturb an isolated CPU more than the interrupts that perf core sends. */
bool pmuk_cpu_is_isolated(int cpu)
{
	guard(rcu)();	/* cpusets replace the mask of isolated CPUs */
	return cpu_is_isolated(cpu) || tick_nohz_full_cpu(cpu);
}

/*
 * Queue the call on the CPU of the instance, if that CPU is online, not isolated, and not the
 * caller's. Returns false if the caller is to call by itself.
 *
 * Trace units of several CPUs may write to one sink, and the last one that stops copies the sink's
 * data. Drivers find out which is the last one before they count down, so of two that stop at the
 * same time, none copies. CPUs of a context with AUX areas are called one after the other.
 */
static bool pmuk_inst_ask_to_call(struct pmuk_inst *inst, int here)
	__must_hold(&inst->ctx->lock)
{
	if (!inst->live || inst->cpu < 0 || inst->cpu == here || pmuk_cpu_is_isolated(inst->cpu) ||
	    atomic_read(&inst->stale) || inst->ctx->target == PMUK_TARGET_CPU ||
	    inst->ctx->battr.aux.nr_pages)
		return false;
	return queue_work_on(inst->cpu, pmuk_turns_wq, &inst->call_work);
}

/*
 * Waits for the call. If the worker has not begun, the caller calls by itself, and perf core
 * interrupts the CPU: a real-time task may keep the worker from running for as long as it likes. If
 * such a task preempts a worker that has begun, the caller waits for that task.
 */
static void pmuk_inst_await_call(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	if (cancel_work(&inst->call_work))
		inst->call(inst);
	else
		flush_work(&inst->call_work);
}

/*
 * Calls @fn for each instance. CPUs call at the same time: perf core works on the CPU that a
 * counter belongs to, and a single caller would wait for one CPU after the other. The other CPUs
 * are asked first. @fn may run on any CPU.
 */
void pmuk_insts_call(struct pmuk_context *ctx, void (*fn)(struct pmuk_inst *inst))
	__must_hold(&ctx->lock)
{
	int here = raw_smp_processor_id();
	struct pmuk_inst *inst;

	pmuk_for_each_inst(inst, ctx) {
		inst->call = fn;
		inst->asked = pmuk_inst_ask_to_call(inst, here);
	}
	pmuk_for_each_inst(inst, ctx) {
		if (!inst->asked)
			fn(inst);
	}
	pmuk_for_each_inst(inst, ctx) {
		if (inst->asked)
			pmuk_inst_await_call(inst);
	}
}

/* ---- start and stop ---- */

/* The irq_work of a mask must not pause counters after the next start. */
static void pmuk_inst_end(struct pmuk_inst *inst) __must_hold(&inst->lock)
{
	pmuk_turn_end(inst);
	irq_work_sync(&inst->irq_work);
	inst->running = false;
}

int pmuk_inst_start(struct pmuk_inst *inst)
{
	struct pmuk_turn *turn = pmuk_inst_first(inst);
	struct pmuk_slot *slot = NULL;
	int ret;

	guard(mutex)(&inst->lock);
	if (inst->running || !inst->live)
		return 0;
	inst->starts++;
	atomic_set(&inst->masked, 0);
	atomic_set(&inst->due, 0);
	atomic_set(&inst->others_wait, 0);	/* an event that waited before the latest stop */
	/* ctx->lock is held: by this task, or by a task that waits in pmuk_insts_call(). */
	context_unsafe(inst->others_waited = false);
	inst->running = true;
	inst->since = ktime_get_ns();
	ret = pmuk_turn_begin(inst, turn, &slot);
	if (!ret)
		return 0;
	pmuk_inst_end(inst);
	/* The CPU goes offline. The instance is started when the CPU comes back. */
	if (ret == -ENODEV && atomic_read(&inst->stale))
		return 0;
	pmuk_say_failed(inst, slot, ret);
	return ret;
}

/* Keep the values of a tree's slots, whose counters count on: the next start goes on from these. */
static void pmuk_inst_hold(struct pmuk_inst *inst) __must_hold(&inst->lock)
{
	struct pmuk_slot *slot;

	pmuk_for_each_slot(slot, inst->active) {
		lockdep_assert_held(&slot->inst->lock);
		pmuk_slot_read(slot, &slot->held);
	}
}

void pmuk_inst_stop(struct pmuk_inst *inst)
{
	guard(mutex)(&inst->lock);
	if (!inst->running)
		return;
	if (pmuk_inst_is_tree(inst))
		pmuk_inst_hold(inst);
	pmuk_inst_end(inst);
}

/* ---- restart, and watch ---- */

/* A counter that can be enabled is on the PMU: report its next loss. */
static int pmuk_turn_resume(struct pmuk_inst *inst, struct pmuk_turn *turn)
	__must_hold(&inst->lock)
{
	struct pmuk_slot *slot, *failed;
	int state, ret = pmuk_turn_enable(inst, turn, &failed);

	pmuk_for_each_slot(slot, turn) {
		lockdep_assert_held(&slot->inst->lock);
		state = pmuk_counter_state(*pmuk_slot_counter(slot));
		if (state != PMUK_COUNTER_ERROR && state != PMUK_COUNTER_GONE)
			slot->reported = false;
	}
	pmuk_inst_show_group(inst, !ret);
	return ret;
}

/* A turn that has not begun since the start awaits no restart. */
static void pmuk_turn_restart(struct pmuk_inst *inst, struct pmuk_turn *turn)
	__must_hold(&inst->lock)
{
	unsigned int i;

	for (i = 0; turn->prepared == inst->starts && i < turn->nr; i++) {
		if (pmuk_slot_awaits_restart(&turn->slots[i]))
			pmuk_slot_restart(&turn->slots[i]);
	}
}

/*
 * While all counters are disabled, no overflow can mask, or queue the irq_work that pauses busy
 * counters. So ->masked and the counters change together. Restart each counter, also if only the
 * irq_work has paused it.
 */
static void pmuk_turn_unmask(struct pmuk_inst *inst, struct pmuk_turn *turn)
	__must_hold(&inst->lock)
{
	unsigned int i;

	pmuk_counters_disable(turn->counters, turn->nr);
	for (i = 0; i < turn->nr; i++)
		pmuk_counter_disable(turn->counters[i]);
	irq_work_sync(&inst->irq_work);
	atomic_set(&inst->masked, 0);
	for (i = 0; i < turn->nr; i++)
		pmuk_slot_restart(&turn->slots[i]);
}

/*
 * Restart the counters that were masked, and those that wait for a restart, also if their turn has
 * ended since. An overflow may mask the context meanwhile, so read ->masked last.
 */
void pmuk_inst_restart(struct pmuk_inst *inst)
{
	bool masked;
	unsigned int i;

	guard(mutex)(&inst->lock);
	if (!inst->running || pmuk_inst_is_tree(inst))
		return;
	/* A counter may leave its register, and group reads take each counter to be in one. */
	pmuk_inst_show_group(inst, false);
	for (i = 0; i < inst->nr_turns; i++)
		pmuk_turn_restart(inst, &inst->turns[i]);
	masked = atomic_read(&inst->masked);
	if (masked)
		pmuk_turn_unmask(inst, inst->active);
	pmuk_turn_resume(inst, inst->active);
	if (masked)
		pmuk_inst_go_on(inst);
}

/* perf core takes counters away from a task that executes a program which others may not watch. */
static bool pmuk_turn_has_lost_task(const struct pmuk_turn *turn)
{
	struct pmuk_counter *c;
	unsigned int i;

	for (i = 0; i < turn->nr; i++) {
		c = turn->counters[i];
		if (pmuk_counter_is_gone(c) && !perf_local_is_pmu_gone(c->hw_event))
			return true;
	}
	return false;
}

/* Report once that the task's counters count no more. Its event sets take no turns any more. */
static void pmuk_inst_watch_exit(struct pmuk_inst *inst)
	__must_hold(&inst->lock) __must_hold(&inst->ctx->lock)
{
	const struct task_struct *task = inst->ctx->task;

	if (!task || inst->exited)
		return;
	/* The counters of an exiting task may still count, until it has an exit_state. */
	if (!perf_local_peek(task->exit_state) &&
	    ((perf_local_peek(task->flags) & PF_EXITING) || !pmuk_turn_has_lost_task(inst->active)))
		return;
	inst->exited = true;
	hrtimer_cancel(&inst->timer);
	pmuk_post(inst->ctx, PMUK_MSG_EXIT, 0, 1, inst->active->set->defined,
		  inst->active->set->id);
}

/* perf core does not report when a counter is pushed out, or its task or PMU goes: look for it. */
void pmuk_inst_watch(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	guard(mutex)(&inst->lock);
	if (!inst->active)
		return;
	pmuk_inst_watch_exit(inst);
	pmuk_turn_watch(inst->active);
}

/* ---- ranks ---- */

static bool pmuk_turn_has_pinned(const struct pmuk_turn *turn, const struct pmu *pmu, int rank)
{
	struct pmuk_slot *slot;

	pmuk_for_each_slot(slot, turn) {
		if ((slot->def->pmc.flags & PMUK_PINNED) && pmuk_slot_pmu(slot) == pmu &&
		    pmuk_counter_state(*pmuk_slot_counter(slot)) != PMUK_COUNTER_ERROR &&
		    pmuk_sharers_give_way(*pmuk_slot_counter(slot), rank))
			return true;
	}
	return false;
}

/*
 * Returns whether the instance counts, and has pinned counters of @pmu in any of its turns that
 * were not pushed out, and whose registers get free for @rank: all that share them give way, too.
 * The trials that share them for a moment do not matter.
 */
bool pmuk_inst_has_pinned(struct pmuk_inst *inst, const struct pmu *pmu, int rank)
{
	unsigned int i;

	guard(mutex)(&inst->lock);
	guard(mutex)(pmuk_trial_lock(inst->cpu));
	for (i = 0; inst->active && i < inst->nr_turns; i++) {
		if (pmuk_turn_has_pinned(&inst->turns[i], pmu, rank))
			return true;
	}
	return false;
}

static bool pmuk_turn_uses(const struct pmuk_turn *turn, const struct pmu *pmu)
{
	struct pmuk_slot *slot;

	pmuk_for_each_slot(slot, turn) {
		if ((slot->def->pmc.flags & PMUK_PINNED) && pmuk_slot_pmu(slot) == pmu)
			return true;
	}
	return false;
}

/* Returns whether pinned counters of @pmu were enabled since the load, even if they then failed. */
bool pmuk_inst_has_used(struct pmuk_inst *inst, const struct pmu *pmu)
{
	unsigned int i;

	guard(mutex)(&inst->lock);
	for (i = 0; i < inst->nr_turns; i++) {
		if (inst->turns[i].enabled && pmuk_turn_uses(&inst->turns[i], pmu))
			return true;
	}
	return false;
}

/* Returns whether a counter of the turn was pushed out, and stores its PMU in ->lacks. */
static bool pmuk_turn_has_lost(struct pmuk_inst *inst, struct pmuk_turn *turn)
	__must_hold(&inst->lock) __must_hold(&inst->ctx->lock)
{
	struct pmuk_slot *slot;

	pmuk_for_each_slot(slot, turn) {
		if (pmuk_counter_state(*pmuk_slot_counter(slot)) != PMUK_COUNTER_ERROR)
			continue;
		inst->lacks = pmuk_slot_pmu(slot);
		return true;
	}
	return false;
}

/*
 * Returns whether a counter of the active turn was pushed out, and stores that turn in ->lost in
 * any case. Returns false for a masked instance, whose restart enables all counters.
 */
bool pmuk_inst_has_lost(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	guard(mutex)(&inst->lock);
	if (!inst->active || atomic_read(&inst->masked))
		return false;
	inst->lost = inst->active;
	return pmuk_turn_has_lost(inst, inst->lost);
}
EXPORT_SYMBOL_IF_KUNIT(pmuk_inst_has_lost);

/*
 * Enables the counters of the turn in ->lost. Returns -ENOSPC if some have found no room, -EAGAIN
 * if the turn has ended or the instance is masked, or the error of a trial.
 */
int pmuk_inst_reclaim(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	int ret;

	guard(mutex)(&inst->lock);
	if (inst->active != inst->lost || atomic_read(&inst->masked))
		return -EAGAIN;
	/* Group reads take each counter to be in a register. */
	pmuk_inst_show_group(inst, false);
	ret = pmuk_turn_resume(inst, inst->lost);
	return pmuk_turn_has_lost(inst, inst->lost) ? ret ?: -ENOSPC : 0;
}
EXPORT_SYMBOL_IF_KUNIT(pmuk_inst_reclaim);
