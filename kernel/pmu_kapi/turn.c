// SPDX-License-Identifier: GPL-2.0
/*
 * Turns: one event set at a time counts on a CPU or task, and is exchanged for the next one.
 *
 * Sets take turns in the order of their ids, on each CPU by itself. A turn ends by time, by a
 * counter's overflows, or by pmuk_switch_evtset(). A timer or an NMI only asks for the next turn,
 * as perf core may sleep when counters are exchanged: a worker exchanges them, on that CPU, or
 * for a task on any CPU. Such turns have a minimum length, so that exchanges do not take most of
 * the time. pmuk_switch_evtset() exchanges at once, see pmuk_insts_call(). A turn lasts until the
 * next one begins, so that durations add up to the time that the context ran. pmuk_inst::switch_ns
 * is the part of that time which the exchanges took.
 */
#include <linux/bsearch.h>
#include <linux/cleanup.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/perf_local.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>

#include <trace/events/pmu_kapi.h>

#include "context.h"
#include "message.h"
#include "overflow.h"
#include "slot.h"
#include "turn.h"
#include "work.h"

static int pmuk_turn_cmp(const void *set, const void *turn)
{
	return *(const u16 *)set - ((const struct pmuk_turn *)turn)->set->id;
}

struct pmuk_turn *pmuk_inst_turn(struct pmuk_inst *inst, u16 set)
{
	return bsearch(&set, inst->turns, inst->nr_turns, sizeof(*inst->turns), pmuk_turn_cmp);
}

/* Returns the turn with which a start begins. */
struct pmuk_turn *pmuk_inst_first(struct pmuk_inst *inst)
{
	/* ctx->lock is held: by this task, or by a task that waits in pmuk_insts_call(). */
	return pmuk_inst_turn(inst, context_unsafe(inst->ctx->start_set));
}

struct pmuk_slot *pmuk_inst_slot(struct pmuk_inst *inst, u16 set, u16 num)
{
	struct pmuk_turn *turn = pmuk_inst_turn(inst, set);
	unsigned int i;

	for (i = 0; turn && i < turn->nr; i++) {
		if (turn->slots[i].def->num == num)
			return &turn->slots[i];
	}
	return NULL;
}

/* True on the instance's CPU, or in its task: overflows are handled there. */
static bool pmuk_inst_is_here(const struct pmuk_inst *inst)
{
	/* ->task is const while the context is loaded. */
	return inst->cpu < 0 ? current == context_unsafe(inst->ctx->task) :
			       inst->cpu == smp_processor_id();
}

static void pmuk_slot_replay(struct pmuk_slot *slot)
{
	struct pmuk_counter *c = *pmuk_slot_counter(slot);
	const struct perf_sample_data none = {};
	struct pmuk_sample sample;

	/* The task that waits in pmuk_turn_replay() holds the instance's lock. */
	if (!context_unsafe(xchg(&slot->pending, false)))
		return;
	slot->turn->replayed++;
	pmuk_counter_late_sample(c, &sample);
	perf_local_end_taken(c->event);
	pmuk_slot_handle(slot, c, &sample, &none);
}

static void pmuk_turn_replay_here(void *data)
{
	struct pmuk_turn *turn = data;
	unsigned int i;

	guard(irqsave)();
	for (i = 0; i < turn->nr; i++)
		pmuk_slot_replay(&turn->slots[i]);
}

/*
 * Handles the overflows that were pending when the set's last turn ended. A buffer is written by
 * its own CPU only, so that CPU handles them, whoever exchanges the sets. If it is offline, they
 * are dropped, as pmuk_stop() drops them. A task's worker may run anywhere.
 */
static void pmuk_turn_replay(struct pmuk_inst *inst, struct pmuk_turn *turn)
	__must_hold(&inst->lock)
{
	struct pmuk_slot *slot;
	bool pending = false;

	pmuk_for_each_slot(slot, turn) {
		lockdep_assert_held(&slot->inst->lock);
		pending |= slot->pending;
	}
	if (!pending)
		return;
	if (inst->cpu < 0)
		pmuk_turn_replay_here(turn);
	else
		smp_call_function_single(inst->cpu, pmuk_turn_replay_here, turn, true);
}

/* A turn lasts at least so many times as long as the exchange before it, up to a limit. */
#define PMUK_TURN_LEAST		8
#define PMUK_TURN_LEAST_MAX	(100 * NSEC_PER_MSEC)

static u64 pmuk_turn_least(const struct pmuk_inst *inst) __must_hold(&inst->lock)
{
	return min_t(u64, PMUK_TURN_LEAST * inst->switch_last_ns, PMUK_TURN_LEAST_MAX);
}

/*
 * The first turn after a start prepares the set's counters, so that a start costs no more with many
 * sets than with few.
 */
static void pmuk_turn_prepare(struct pmuk_inst *inst, struct pmuk_turn *turn)
	__must_hold(&inst->lock)
{
	unsigned int i;

	if (turn->prepared == inst->starts)
		return;
	turn->prepared = inst->starts;
	for (i = 0; i < turn->nr; i++)
		pmuk_slot_prepare(&turn->slots[i]);
}

struct pmuk_arm {
	struct pmuk_inst *inst;
	u64 ns;
};

static void pmuk_inst_arm_here(void *data)
{
	const struct pmuk_arm *arm = data;

	hrtimer_start(&arm->inst->timer, ns_to_ktime(arm->ns),
		      arm->inst->cpu < 0 ? HRTIMER_MODE_REL : HRTIMER_MODE_REL_PINNED);
}

/*
 * A CPU's turn is ended by that CPU's own timer: no CPU serves the timers of others, and a turn
 * does not wait for another CPU that has its interrupts off. An offline CPU needs no timer.
 */
static void pmuk_inst_arm_timer(struct pmuk_inst *inst) __must_hold(&inst->lock)
{
	u64 timeout = inst->active->set->timeout;
	struct pmuk_arm arm = { .inst = inst, .ns = max(timeout, pmuk_turn_least(inst)) };

	if (!timeout || inst->nr_turns < 2 || inst->exited)
		return;
	if (inst->cpu < 0)
		pmuk_inst_arm_here(&arm);
	else
		smp_call_function_single(inst->cpu, pmuk_inst_arm_here, &arm, true);
}

/* Returns whether it is too early for the next turn. If so, the timer asks for that turn again. */
static bool pmuk_turn_is_young(struct pmuk_inst *inst) __must_hold(&inst->lock)
{
	u64 age = ktime_get_ns() - inst->since, least = pmuk_turn_least(inst);

	if (age >= least)
		return false;
	pmuk_inst_arm_here(&(struct pmuk_arm){ .inst = inst, .ns = least - age });
	return true;
}

/* Mark the counters as in their turn, or @away. A tree's counters stay enabled while @away. */
static void pmuk_turn_set_away(struct pmuk_turn *turn, bool away)
{
	unsigned int i;

	for (i = 0; i < turn->nr; i++)
		WRITE_ONCE(turn->counters[i]->away, away);
}

/* Enables all counters, and returns the first error. @first as in pmuk_counters_are_probed(). */
static int pmuk_turn_enable_all(struct pmuk_turn *turn, bool first, struct pmuk_slot **failed)
{
	unsigned int i;
	int err, ret = 0;

	if (!pmuk_counters_are_probed(turn->counters, turn->nr, first))
		pmuk_counters_enable(turn->counters, turn->nr);
	/* A tree's counters are enabled already, unless they write AUX or their task has exited. */
	for (i = 0; i < turn->nr; i++) {
		err = pmuk_counter_enable(turn->counters[i]);
		if (err && !ret) {
			*failed = &turn->slots[i];
			ret = err;
		}
	}
	return ret;
}

/*
 * Enables the counters of a turn. Once after each start, a new event is tried before a counter that
 * shares a host older than itself is enabled. A counter in error is tried so at each turn, see
 * pmuk_counter_is_probed(). The CPU's trial lock keeps other trials from taking the register
 * meanwhile.
 */
int pmuk_turn_enable(struct pmuk_inst *inst, struct pmuk_turn *turn, struct pmuk_slot **failed)
	__must_hold(&inst->lock)
{
	bool first = turn->enabled != inst->starts;

	turn->enabled = inst->starts;
	if (inst->cpu < 0 || (!first && !pmuk_counters_are_probed(turn->counters, turn->nr, false)))
		return pmuk_turn_enable_all(turn, false, failed);
	guard(mutex)(pmuk_trial_lock(inst->cpu));
	return pmuk_turn_enable_all(turn, first, failed);
}

/*
 * Begin @turn. Overflows that were pending when the set's last turn ended are handled first, as if
 * they came now. A counter that cannot be placed does not keep others from counting; @failed is the
 * first such counter. While the instance is masked, no counter counts before pmuk_inst_restart().
 */
int pmuk_turn_begin(struct pmuk_inst *inst, struct pmuk_turn *turn, struct pmuk_slot **failed)
	__must_hold(&inst->lock)
{
	unsigned int i;
	int ret;

	pmuk_turn_prepare(inst, turn);
	/*
	 * Clear what the latest turn of the set has left. No overflow changes these fields now: the
	 * counters are disabled, and overflows of a tree are dropped until @turn is active.
	 */
	atomic_set(&turn->overflowed, 0);
	for (i = 0; i < turn->nr; i++)
		turn->slots[i].overflows = 0;
	inst->wanted = NULL;
	/* A tree's overflow that finds @turn sees its slots: pairs with pmuk_slot_overflow(). */
	smp_store_release(&inst->active, turn);
	pmuk_turn_set_away(turn, false);
	turn->runs++;
	pmuk_turn_replay(inst, turn);
	if (atomic_read(&inst->masked))
		return 0;
	ret = pmuk_turn_enable(inst, turn, failed);
	pmuk_inst_show_group(inst, !ret);
	pmuk_inst_arm_timer(inst);
	return ret;
}

void pmuk_turn_end(struct pmuk_inst *inst) __must_hold(&inst->lock)
{
	struct pmuk_turn *turn = inst->active;
	struct pmuk_slot *slot;
	u64 now;

	hrtimer_cancel(&inst->timer);
	pmuk_inst_show_group(inst, false);
	pmuk_counters_disable(turn->counters, turn->nr);
	pmuk_for_each_slot(slot, turn) {
		struct pmuk_counter *c = *pmuk_slot_counter(slot);

		lockdep_assert_held(&slot->inst->lock);
		/*
		 * Overflows are dropped while the counter waits for a restart. A driver's start,
		 * or that restart, begins the next period.
		 */
		if (!pmuk_counter_disable(c))
			slot->pending = !READ_ONCE(slot->hit) && pmuk_counter_take_pending(c);
	}
	now = ktime_get_ns();
	turn->duration += now - inst->since;
	inst->since = now;
	pmuk_turn_set_away(turn, true);
	WRITE_ONCE(inst->active, NULL);
}

void pmuk_turn_watch(struct pmuk_turn *turn)
{
	unsigned int i;

	for (i = 0; i < turn->nr; i++)
		pmuk_slot_watch(&turn->slots[i]);
}

/*
 * Returns the PMUK_DUE_* that were asked for during the turn: 0 if only pmuk_switch_evtset() has
 * ended it.
 */
static int pmuk_turn_exchange(struct pmuk_inst *inst, struct pmuk_turn *in) __must_hold(&inst->lock)
{
	u64 start = ktime_get_ns(), ns;
	u16 from = inst->active->set->id;
	struct pmuk_slot *failed;
	int due;

	pmuk_turn_end(inst);
	/* All requests until now were for the end of the turn that has just ended. */
	due = atomic_xchg(&inst->due, 0);
	if (pmuk_turn_begin(inst, in, &failed))
		pmuk_turn_watch(in);	/* the turn may be over at the watch's next check */
	ns = ktime_get_ns() - start;
	trace_pmuk_switch(inst->ctx->id, inst->cpu, from, in->set->id, ns);
	inst->switches++;
	inst->switch_ns += ns;
	inst->switch_last_ns = ns;
	inst->switch_max_ns = max(inst->switch_max_ns, ns);
	return due;
}

static struct pmuk_turn *pmuk_turn_next(struct pmuk_inst *inst) __must_hold(&inst->lock)
{
	unsigned int nr = inst->active - inst->turns + 1;

	return &inst->turns[nr < inst->nr_turns ? nr : 0];
}

static void pmuk_inst_take_turn(struct pmuk_inst *inst) __must_hold(&inst->lock)
{
	int due, cpu = inst->cpu < 0 ? 0 : inst->cpu;
	u64 due_at;

	smp_rmb();	/* ->due before ->due_at, see pmuk_inst_note_due() */
	due_at = READ_ONCE(inst->due_at);
	due = pmuk_turn_exchange(inst, pmuk_turn_next(inst));
	inst->late_max_ns = max(inst->late_max_ns, ktime_get_mono_fast_ns() - due_at);
	if (due & PMUK_DUE_OVERFLOWS)
		pmuk_post(inst->ctx, PMUK_MSG_SWITCH, cpu, 1, 0, inst->active->set->id);
}

/*
 * The context is masked. A task may be switched out before pmuk_inst_irq_work() has paused the
 * counters that pmuk_inst_mask() found busy. Such counters are disabled here, which works from
 * anywhere. pmuk_inst_restart() enables all counters of the turn.
 */
static void pmuk_inst_stop_unpaused(struct pmuk_inst *inst) __must_hold(&inst->lock)
{
	struct pmuk_turn *turn = inst->active;
	unsigned int i;

	for (i = 0; i < turn->nr; i++) {
		if (!pmuk_state_is_frozen(READ_ONCE(turn->counters[i]->state)))
			pmuk_counter_disable(turn->counters[i]);
	}
}

/*
 * While the instance is masked, its turn does not end. pmuk_inst_restart() queues this again. If
 * the CPU goes offline meanwhile, its worker is on another CPU, and its turn ends with the
 * instance.
 */
static void pmuk_inst_work(struct work_struct *work)
{
	struct pmuk_inst *inst = container_of(work, struct pmuk_inst, work);

	guard(mutex)(&inst->lock);
	if (!inst->running || atomic_read(&inst->stale))
		return;
	if (atomic_read(&inst->masked)) {
		if (inst->cpu < 0)
			pmuk_inst_stop_unpaused(inst);
		return;
	}
	if (inst->wanted)
		pmuk_turn_exchange(inst, inst->wanted);
	else if (atomic_read(&inst->due) && !pmuk_turn_is_young(inst))
		pmuk_inst_take_turn(inst);
}

static void pmuk_inst_queue(struct pmuk_inst *inst)
{
	if (inst->cpu < 0)
		queue_work(pmuk_turns_wq, &inst->work);
	else
		queue_work_on(inst->cpu, pmuk_turns_wq, &inst->work);
}

/* The instance was restarted: a turn that was asked for while it was masked begins now. */
void pmuk_inst_go_on(struct pmuk_inst *inst) __must_hold(&inst->lock)
{
	pmuk_inst_arm_timer(inst);
	if (inst->wanted || atomic_read(&inst->due))
		pmuk_inst_queue(inst);
}

/*
 * Overflows queue this irq_work, so it runs on the CPU of the overflow. If the instance's task has
 * left that CPU since, the worker stops the counters that were to be paused, see
 * pmuk_inst_stop_unpaused().
 */
static void pmuk_inst_irq_work(struct irq_work *irq_work)
{
	struct pmuk_inst *inst = container_of(irq_work, struct pmuk_inst, irq_work);

	scoped_guard(irqsave) {
		if (atomic_read(&inst->masked) && pmuk_inst_is_here(inst))
			pmuk_inst_pause(inst);
	}
	pmuk_inst_queue(inst);
}

/* Any CPU may run this: the timer of a CPU that goes offline moves to another one. */
static enum hrtimer_restart pmuk_inst_timer(struct hrtimer *timer)
{
	struct pmuk_inst *inst = container_of(timer, struct pmuk_inst, timer);

	pmuk_inst_note_due(inst, PMUK_DUE_TIME);
	pmuk_inst_queue(inst);
	return HRTIMER_NORESTART;
}

void pmuk_inst_init_switch(struct pmuk_inst *inst)
{
	hrtimer_setup(&inst->timer, pmuk_inst_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	inst->irq_work = IRQ_WORK_INIT_HARD(pmuk_inst_irq_work);
	INIT_WORK(&inst->work, pmuk_inst_work);
}

/*
 * Begins the turn of the set that pmuk_switch_evtset() was called for. If the instance is masked, a
 * restart begins it.
 */
void pmuk_inst_switch(struct pmuk_inst *inst)
{
	struct pmuk_turn *turn = pmuk_inst_first(inst);

	guard(mutex)(&inst->lock);
	inst->wanted = inst->running && turn != inst->active ? turn : NULL;
	if (inst->wanted && !atomic_read(&inst->masked))
		pmuk_turn_exchange(inst, turn);
}
