// SPDX-License-Identifier: GPL-2.0
/*
 * Event sets, and whose turn it is.
 *
 * Sets take turns in the order of their ids, on each CPU by itself. A turn ends by
 * time, by a counter's overflows, or by call. What ends it - a timer, an NMI - only asks;
 * the counters are exchanged by a worker on that CPU, as perf core may sleep in that, and
 * not so often that it does nothing else. One turn lasts until the next one begins, so that
 * durations add up to the time that the context ran; what the exchange has taken of it is told
 * apart, see pmuk_inst::switch_ns.
 */
#define pr_fmt(fmt) "pmuk: " fmt

#include <linux/export.h>
#include <linux/minmax.h>
#include <linux/sched/clock.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>

#include <trace/events/pmu_kapi.h>

#include "context.h"

/* ---- the sets of a context ---- */

struct pmuk_set *pmuk_set_find(struct pmuk_context *ctx, u16 id)
{
	return xa_load(&ctx->sets, id);
}

u16 pmuk_set_first(struct pmuk_context *ctx)
{
	unsigned long id = 0;

	xa_find(&ctx->sets, &id, ULONG_MAX, XA_PRESENT);
	return id;
}

int pmuk_set_add(struct pmuk_context *ctx, u16 id, u64 timeout)
{
	struct pmuk_set *set = pmuk_set_find(ctx, id);
	int ret;

	if (timeout && timeout < PMUK_SET_TIMEOUT_MIN)
		return -EINVAL;
	if (timeout > S64_MAX)
		return -EINVAL;
	if (set) {	/* as in 2006: it is changed */
		set->timeout = timeout;
		return 0;
	}
	set = kzalloc(sizeof(*set), GFP_KERNEL);
	if (!set)
		return -ENOMEM;
	set->id = id;
	set->timeout = timeout;
	ret = xa_err(xa_store(&ctx->sets, id, set, GFP_KERNEL));
	if (ret)
		kfree(set);
	return ret;
}

static void pmuk_set_free(struct pmuk_set *set)
{
	kvfree(set->defs);
	kfree(set);
}

void pmuk_sets_free(struct pmuk_context *ctx)
{
	struct pmuk_set *set;
	unsigned long id;

	xa_for_each(&ctx->sets, id, set)
		pmuk_set_free(set);
	xa_destroy(&ctx->sets);
}

/**
 * pmuk_create_evtsets() - add event sets to a context, or change their timeouts
 * @ctx: the context, not loaded
 * @req: the sets; each one's ret is written
 * @count: how many
 *
 * A context begins with set 0. Follows pfmk_create_evtsets().
 *
 * Context: May sleep.
 * Return: @count, or how many were done before one failed; -EINVAL if @ctx is NULL or an
 * ERR_PTR(), or @count is negative or @req is NULL; -EBUSY if @ctx is loaded. An entry
 * fails with -EINVAL for a bad timeout, or -ENOMEM.
 */
int pmuk_create_evtsets(struct pmuk_context *ctx, struct pmuk_set_desc *req, int count)
{
	int i;

	if (IS_ERR_OR_NULL(ctx) || count < 0 || (count && !req))
		return -EINVAL;
	guard(mutex)(&ctx->lock);
	if (ctx->loaded)
		return -EBUSY;
	for (i = 0; i < count; i++) {
		req[i].ret = pmuk_set_add(ctx, req[i].id, req[i].timeout);
		if (req[i].ret)
			break;
	}
	return i;
}
EXPORT_SYMBOL_GPL(pmuk_create_evtsets);

/**
 * pmuk_delete_evtsets() - remove event sets from a context
 * @ctx: the context, not loaded
 * @req: the sets, by id; each one's ret is written
 * @count: how many
 *
 * Set 0 can be deleted, too; a context without sets cannot be loaded. Follows
 * pfmk_delete_evtsets().
 *
 * Context: May sleep.
 * Return: @count, or how many were done before one failed; -EINVAL if @ctx is NULL or an
 * ERR_PTR(), or @count is negative or @req is NULL; -EBUSY if @ctx is loaded. An entry
 * fails with -ENOENT if there is no such set.
 */
int pmuk_delete_evtsets(struct pmuk_context *ctx, struct pmuk_set_desc *req, int count)
{
	struct pmuk_set *set;
	int i;

	if (IS_ERR_OR_NULL(ctx) || count < 0 || (count && !req))
		return -EINVAL;
	guard(mutex)(&ctx->lock);
	if (ctx->loaded)
		return -EBUSY;
	for (i = 0; i < count; i++) {
		set = xa_erase(&ctx->sets, req[i].id);
		req[i].ret = set ? 0 : -ENOENT;
		if (!set)
			break;
		pmuk_set_free(set);
	}
	return i;
}
EXPORT_SYMBOL_GPL(pmuk_delete_evtsets);

static void pmuk_turn_info(struct pmuk_inst *inst, struct pmuk_set_info *info)
{
	struct pmuk_turn *turn;

	guard(mutex)(&inst->lock);
	turn = pmuk_inst_turn(inst, info->id);
	if (!turn)
		return;
	info->runs += turn->runs;
	info->active_duration += turn->duration;
	if (inst->active == turn)
		info->active_duration += ktime_get_ns() - inst->since;
	info->replayed += turn->replayed;
	info->overflowed |= atomic_read(&turn->overflowed);
	info->switch_max = max(info->switch_max, inst->switch_max_ns);
	info->late_max = max(info->late_max, inst->late_max_ns);
}

static int pmuk_set_getinfo(struct pmuk_context *ctx, struct pmuk_set_info *info)
{
	unsigned int cpu;

	if (!pmuk_set_find(ctx, info->id))
		return -ENOENT;
	if (info->cpu < -1 || info->cpu >= (int)nr_cpu_ids)
		return -EINVAL;
	if (info->cpu >= 0 && (!ctx->loaded || pmuk_target_is_task(ctx) || !ctx->insts[info->cpu]))
		return -ENODEV;
	info->runs = 0;
	info->active_duration = 0;
	info->replayed = 0;
	info->overflowed = 0;
	info->switch_max = 0;
	info->late_max = 0;
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		if (ctx->insts[cpu] && (info->cpu == -1 || info->cpu == cpu))
			pmuk_turn_info(ctx->insts[cpu], info);
	}
	return 0;
}

/**
 * pmuk_getinfo_evtsets() - how event sets have done
 * @ctx: the context
 * @req: the sets, by id and CPU; the rest is written
 * @count: how many
 *
 * Follows pfmk_getinfo_evtsets(). The times of all sets of a CPU add up to the time for
 * which the context ran there.
 *
 * Context: May sleep.
 * Return: @count, or how many were done before one failed; -EINVAL if @ctx is NULL or an
 * ERR_PTR(), or @count is negative or @req is NULL. An entry fails with -ENOENT if there
 * is no such set, -EINVAL for an impossible CPU, -ENODEV for one that is not of the target.
 */
int pmuk_getinfo_evtsets(struct pmuk_context *ctx, struct pmuk_set_info *req, int count)
{
	int i;

	if (IS_ERR_OR_NULL(ctx) || count < 0 || (count && !req))
		return -EINVAL;
	guard(mutex)(&ctx->lock);
	for (i = 0; i < count; i++) {
		req[i].ret = pmuk_set_getinfo(ctx, &req[i]);
		if (req[i].ret)
			break;
	}
	return i;
}
EXPORT_SYMBOL_GPL(pmuk_getinfo_evtsets);

/* ---- turns ---- */

/* True on the instance's CPU, or in its task: overflows are handled there. */
static bool pmuk_inst_is_here(const struct pmuk_inst *inst)
{
	return inst->cpu < 0 ? current == inst->ctx->task : inst->cpu == smp_processor_id();
}

/*
 * A worker runs on another CPU if its own has gone offline. The overflow is then dropped, as
 * pmuk_stop() drops it: a buffer is written by its own CPU only. A task's worker may run anywhere.
 */
static void pmuk_slot_replay(struct pmuk_slot *slot)
{
	struct pmuk_counter *c = slot->turn->counters[slot - slot->turn->slots];
	const struct perf_sample_data none = {};
	struct pmuk_sample sample;

	if (!slot->pending)
		return;
	slot->pending = false;
	guard(irqsave)();
	if (slot->inst->cpu >= 0 && !pmuk_inst_is_here(slot->inst))
		return;
	slot->turn->replayed++;
	pmuk_counter_late_sample(c, &sample);
	pmuk_slot_handle(slot, c, &sample, &none);
}

static void pmuk_turn_replay(struct pmuk_turn *turn)
{
	unsigned int i;

	for (i = 0; i < turn->nr; i++)
		pmuk_slot_replay(&turn->slots[i]);
}

/* A turn lasts so many times what the exchange before it took: that shall not be all there is. */
#define PMUK_TURN_LEAST		8
#define PMUK_TURN_LEAST_MAX	(100 * NSEC_PER_MSEC)

static u64 pmuk_turn_least(const struct pmuk_inst *inst)
{
	return min_t(u64, PMUK_TURN_LEAST * inst->switch_last_ns, PMUK_TURN_LEAST_MAX);
}

/* What the latest turn has left; to no counter of @turn anything happens now. */
static void pmuk_turn_reset(struct pmuk_turn *turn)
{
	unsigned int i;

	atomic_set(&turn->overflowed, 0);
	for (i = 0; i < turn->nr; i++)
		turn->slots[i].overflows = 0;
}

static void pmuk_inst_start_timer(struct pmuk_inst *inst, u64 ns)
{
	hrtimer_start(&inst->timer, ns_to_ktime(ns),
		      inst->cpu < 0 ? HRTIMER_MODE_REL : HRTIMER_MODE_REL_PINNED);
}

/* pmuk_inst_arm_timer() holds inst->lock until this has returned, so ->active stays. */
static void pmuk_inst_arm_here(void *data)
{
	struct pmuk_inst *inst = data;

	pmuk_inst_start_timer(inst, max(inst->active->set->timeout, pmuk_turn_least(inst)));
}

/*
 * A CPU's turn is ended by that CPU's own timer: no CPU serves the timers of others, and a turn
 * does not wait for another CPU that has its interrupts off. A CPU that is offline needs none.
 */
static void pmuk_inst_arm_timer(struct pmuk_inst *inst)
{
	if (!inst->active->set->timeout || inst->nr_turns < 2 || inst->exited)
		return;
	if (inst->cpu < 0)
		pmuk_inst_arm_here(inst);
	else
		smp_call_function_single(inst->cpu, pmuk_inst_arm_here, inst, true);
}

/* Whether it is too early for the next turn; then the timer asks again. */
static bool pmuk_turn_is_young(struct pmuk_inst *inst)
{
	u64 age = ktime_get_ns() - inst->since, least = pmuk_turn_least(inst);

	if (age >= least)
		return false;
	pmuk_inst_start_timer(inst, least - age);
	return true;
}

/* Only registers that are read directly have a fast path. */
static bool pmuk_turn_is_direct(const struct pmuk_turn *turn)
{
	unsigned int i;

	for (i = 0; i < turn->nr; i++) {
		if (!turn->counters[i]->mask)
			return false;
	}
	return true;
}

/* Let pmuk_read_local() find the counters of the active turn, or not. */
void pmuk_inst_show_group(struct pmuk_inst *inst, bool on)
{
	struct pmuk_turn *turn = inst->active;

	if (inst->cpu < 0)
		return;
	on = on && turn->nr && pmuk_turn_is_direct(turn);
	WRITE_ONCE(turn->group->fast_tick, PMUK_NEVER);
	WRITE_ONCE(inst->ctx->groups[inst->cpu], on ? turn->group : NULL);
	smp_mb();	/* pairs with pmuk_inst_mask(): that hides it, or is seen here */
	if (on && atomic_read(&inst->masked))
		WRITE_ONCE(inst->ctx->groups[inst->cpu], NULL);
}

/* Those of a tree are enabled when it is not their turn, too. */
static void pmuk_turn_call(struct pmuk_turn *turn, bool away)
{
	unsigned int i;

	for (i = 0; i < turn->nr; i++) {
		if (turn->counters[i])
			WRITE_ONCE(turn->counters[i]->away, away);
	}
}

/*
 * inst->lock is held. What was pending is handled first: then it is as if it came now. One
 * counter that cannot be placed keeps no other from counting; @failed is the first such.
 * While masked, none counts before pmuk_inst_restart().
 */
int pmuk_turn_begin(struct pmuk_inst *inst, struct pmuk_turn *turn, struct pmuk_slot **failed)
{
	unsigned int i;
	int err, ret = 0;

	pmuk_turn_reset(turn);
	inst->wanted = NULL;
	WRITE_ONCE(inst->active, turn);
	pmuk_turn_call(turn, false);
	turn->runs++;
	pmuk_turn_replay(turn);
	if (atomic_read(&inst->masked))
		return 0;
	/* A tree's are enabled already, unless their task has exited. */
	for (i = 0; i < turn->nr; i++) {
		err = pmuk_counter_enable(turn->counters[i]);
		if (err && !ret) {
			*failed = &turn->slots[i];
			ret = err;
		}
	}
	pmuk_inst_show_group(inst, !ret);
	pmuk_inst_arm_timer(inst);
	return ret;
}

/* inst->lock is held. */
void pmuk_turn_end(struct pmuk_inst *inst)
{
	struct pmuk_turn *turn = inst->active;
	unsigned int i;
	u64 now;

	hrtimer_cancel(&inst->timer);
	pmuk_inst_show_group(inst, false);
	for (i = 0; i < turn->nr; i++) {
		if (pmuk_counter_disable(turn->counters[i]))
			continue;
		turn->slots[i].pending = pmuk_counter_take_pending(turn->counters[i]);
	}
	now = ktime_get_ns();
	turn->duration += now - inst->since;
	inst->since = now;
	pmuk_turn_call(turn, true);
	WRITE_ONCE(inst->active, NULL);
}

/* On its CPU, as overflows are, if that is online. Returns why the turn has ended. */
static int pmuk_turn_exchange(struct pmuk_inst *inst, struct pmuk_turn *in)
{
	u64 start = ktime_get_ns(), ns;
	u16 from = inst->active->set->id;
	struct pmuk_slot *failed;
	int due;

	pmuk_turn_end(inst);
	/* All that was asked for until now was the end of this turn. */
	due = atomic_xchg(&inst->due, 0);
	/* One that is lost, the watch tells of. */
	pmuk_turn_begin(inst, in, &failed);
	ns = ktime_get_ns() - start;
	trace_pmuk_switch(inst->ctx->id, inst->cpu, from, in->set->id, ns);
	inst->switches++;
	inst->switch_ns += ns;
	inst->switch_last_ns = ns;
	inst->switch_max_ns = max(inst->switch_max_ns, ns);
	return due;
}

static struct pmuk_turn *pmuk_turn_next(struct pmuk_inst *inst)
{
	unsigned int nr = inst->active - inst->turns + 1;

	return &inst->turns[nr < inst->nr_turns ? nr : 0];
}

static void pmuk_inst_take_turn(struct pmuk_inst *inst)
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
static void pmuk_inst_stop_unpaused(struct pmuk_inst *inst)
{
	struct pmuk_turn *turn = inst->active;
	unsigned int i;

	for (i = 0; i < turn->nr; i++) {
		if (READ_ONCE(turn->counters[i]->frozen) == PMUK_RUNNING)
			pmuk_counter_disable(turn->counters[i]);
	}
}

/* While masked, the turn stays, and pmuk_inst_restart() sees to the rest. */
static void pmuk_inst_work(struct work_struct *work)
{
	struct pmuk_inst *inst = container_of(work, struct pmuk_inst, work);

	guard(mutex)(&inst->lock);
	if (!inst->running)
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

/* A restart: what was asked for while masked is done now. */
void pmuk_inst_go_on(struct pmuk_inst *inst)
{
	pmuk_inst_arm_timer(inst);
	if (inst->wanted || atomic_read(&inst->due))
		pmuk_inst_queue(inst);
}

/*
 * Overflows queue this irq_work, which so runs on their CPU. If the instance's task has left that
 * CPU since, the worker stops what was to be paused, see pmuk_inst_stop_unpaused().
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

static void pmuk_inst_note_due(struct pmuk_inst *inst, int why)
{
	if (!atomic_read(&inst->due))
		WRITE_ONCE(inst->due_at, ktime_get_mono_fast_ns());
	atomic_fetch_or(why, &inst->due);	/* orders: pmuk_inst_take_turn() sees ->due_at */
}

/* Any CPU may run this: the timer of a CPU that goes offline moves to another one. */
static enum hrtimer_restart pmuk_inst_timer(struct hrtimer *timer)
{
	struct pmuk_inst *inst = container_of(timer, struct pmuk_inst, timer);

	pmuk_inst_note_due(inst, PMUK_DUE_TIME);
	pmuk_inst_queue(inst);
	return HRTIMER_NORESTART;
}

/* Overflows call this, on the instance's CPU or in its task, from any context, NMI too. */
void pmuk_inst_ask(struct pmuk_inst *inst, int why)
{
	if (inst->nr_turns < 2)
		return;
	pmuk_inst_note_due(inst, why);
	irq_work_queue(&inst->irq_work);
}

void pmuk_inst_init_switch(struct pmuk_inst *inst)
{
	hrtimer_setup(&inst->timer, pmuk_inst_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	init_irq_work(&inst->irq_work, pmuk_inst_irq_work);
	INIT_WORK(&inst->work, pmuk_inst_work);
}

/* @set's turn has begun when this returns, or begins with a restart if masked. */
int pmuk_inst_switch(struct pmuk_inst *inst, u16 set)
{
	struct pmuk_turn *turn;

	scoped_guard(mutex, &inst->lock) {
		turn = pmuk_inst_turn(inst, set);
		if (!turn)
			return -ENOENT;
		inst->wanted = inst->running && turn != inst->active ? turn : NULL;
		if (!inst->wanted)
			return 0;
	}
	pmuk_inst_queue(inst);
	flush_work(&inst->work);
	return 0;
}
