// SPDX-License-Identifier: GPL-2.0
/*
 * A counter of a context overflows: the context's format handles the overflow, and decides what
 * becomes of the counters.
 *
 * Everything here may run in NMI, on the instance's CPU or in its task, except where a comment says
 * otherwise.
 */
#include <linux/irqflags.h>
#include <linux/lockdep.h>
#include <linux/sched/clock.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>

#include <trace/events/pmu_kapi.h>

#include "context.h"
#include "cost.h"
#include "message.h"
#include "overflow.h"

/* Handles a counter that has overflowed together with the counter that masks. */
static void pmuk_slot_handle_overdue(struct pmuk_slot *slot)
{
	struct pmuk_counter *c = READ_ONCE(*pmuk_slot_counter(slot));
	const struct perf_sample_data none = {};
	struct pmuk_sample sample;

	if (!c || READ_ONCE(slot->hit) || !pmuk_state_take_overdue(&c->state))
		return;
	pmuk_counter_late_sample(c, &sample);
	sample.task = current;
	pmuk_slot_handle(slot, c, &sample, &none);
}

/*
 * Pause all counters of the active turn, on the instance's CPU or in its task, with interrupts off.
 * If the NMI of one PMU finds another PMU being reprogrammed, pausing returns -EBUSY, and the
 * irq_work pauses the counters of that PMU right after the NMI.
 */
void pmuk_inst_pause(struct pmuk_inst *inst)
{
	/* The turn does not end before this CPU takes interrupts. */
	struct pmuk_turn *turn = context_unsafe(inst->active);
	bool again = false;
	unsigned int i;

	lockdep_assert_irqs_disabled();
	if (!turn)
		return;
	for (i = 0; i < turn->nr; i++)
		again |= pmuk_counter_pause(turn->counters[i]) == -EBUSY;
	for (i = 0; i < turn->nr; i++)
		pmuk_slot_handle_overdue(&turn->slots[i]);
	if (again)
		irq_work_queue(&inst->irq_work);
}

static void pmuk_inst_mask(struct pmuk_inst *inst)
{
	if (atomic_xchg(&inst->masked, 1))	/* orders: see pmuk_inst_show_group() */
		return;
	pmuk_inst_show_group(inst, false);
	pmuk_inst_pause(inst);
}

/*
 * A restart on another CPU may make this peer's period long at the same time. This function clears
 * ->longer before it changes the period; pmuk_slot_restart() sets ->longer after it has changed the
 * period. So ->longer may be set while the period is short, which begins one short period too many,
 * but ->longer is never clear while the period is long.
 */
static void pmuk_slot_shorten(struct pmuk_slot *slot, struct pmuk_counter *c)
{
	bool was = xchg(&slot->longer, false);	/* orders; pairs with pmuk_slot_restart() */

	if (pmuk_counter_set_period(c, pmuk_slot_period(slot, false)) && was)
		WRITE_ONCE(slot->longer, true);
}

/* The long period has ended. If the format has set a period meanwhile, that one has begun. */
static void pmuk_slot_end_longer(struct pmuk_slot *slot)
{
	struct pmuk_counter *c = *pmuk_slot_counter(slot);

	if (READ_ONCE(c->attr.period) == pmuk_slot_period(slot, true))
		pmuk_slot_shorten(slot, c);
	else
		WRITE_ONCE(slot->longer, false);
}

/*
 * The driver has begun the next period already, as long as the last one. If that was the long
 * period, begin a short one. Begin a new period of the reset peers, too.
 */
static void pmuk_slot_reset(struct pmuk_slot *slot)
{
	u32 peers = slot->def->pmd.reset_peers;
	struct pmuk_slot *peer;

	if (READ_ONCE(slot->longer))
		pmuk_slot_end_longer(slot);
	if (!peers)
		return;
	pmuk_for_each_slot(peer, slot->turn) {
		if (peer != slot && (peers & BIT(peer->def->num)))
			pmuk_slot_shorten(peer, *pmuk_slot_counter(peer));
	}
}

void pmuk_inst_note_due(struct pmuk_inst *inst, int why)
{
	if (!atomic_read(&inst->due))
		WRITE_ONCE(inst->due_at, ktime_get_mono_fast_ns());
	atomic_fetch_or(why, &inst->due);	/* orders: pmuk_inst_take_turn() sees ->due_at */
}

/* Overflows call this, on the instance's CPU or in its task, from any context, NMI too. */
static void pmuk_slot_act(struct pmuk_slot *slot, u32 action)
{
	struct pmuk_inst *inst = slot->inst;
	u32 limit = slot->def->pmd.switch_overflows;

	if (action & PMUK_FORMAT_MASK) {
		WRITE_ONCE(slot->hit, true);
		pmuk_inst_mask(inst);
	} else if (action & PMUK_FORMAT_RESET) {
		pmuk_slot_reset(slot);
	} else {
		WRITE_ONCE(slot->hit, true);
		pmuk_counter_set_period(*pmuk_slot_counter(slot),
					PMUK_PERIOD_MAX - slot->def->pmd.random_mask);
	}
	if (!limit || ++slot->overflows < limit)
		return;
	slot->overflows = 0;
	if (inst->nr_turns < 2)
		return;
	pmuk_inst_note_due(inst, PMUK_DUE_OVERFLOWS);
	irq_work_queue(&inst->irq_work);
}

/*
 * The handler may have paused the counter, whose reads then get ->frozen, though perf core may
 * start the event again. So the group's reads are fast no longer. An overflow that was due before
 * the pause is dropped: pmuk_inst_pause() handles only the overdue overflows of its own pauses.
 */
static void pmuk_slot_note_pause(struct pmuk_slot *slot, struct pmuk_counter *c)
{
	if (!pmuk_state_is_frozen(READ_ONCE(c->state)))
		return;
	WRITE_ONCE(slot->turn->group.fast_tick, PMUK_GROUP_SLOW);
	pmuk_state_take_overdue(&c->state);
}

static void pmuk_slot_call_format(struct pmuk_slot *slot, struct pmuk_counter *c,
				  const struct pmuk_sample *sample,
				  const struct perf_sample_data *data)
{
	struct pmuk_inst *inst = slot->inst;
	struct pmuk_context *ctx = inst->ctx;
	const struct pmuk_pmd *pmd = &slot->def->pmd;
	int cpu = smp_processor_id();
	const struct pmuk_format_event event = {
		.buffer		= READ_ONCE(ctx->buffers[cpu]),
		.area		= READ_ONCE(ctx->areas[cpu]),
		.cpu		= cpu,
		.set		= slot->turn->set->id,
		.num		= slot->def->num,
		.cookie		= pmd->cookie,
		.notify		= pmd->flags & PMUK_PMD_NOTIFY,
		.mask		= (pmd->flags & PMUK_PMD_NOTIFY) && (ctx->flags & PMUK_CTX_MASK),
		.sample		= sample,
		.counter	= c,
		.data		= data,
	};
	u32 action;

	atomic64_inc(&inst->overflows);
	atomic_or(BIT(slot->def->num), &slot->turn->overflowed);
	action = ctx->format->handler(&event);
	pmuk_slot_note_pause(slot, c);
	trace_pmuk_overflow(ctx->id, cpu, event.set, event.num, action);
	/* A tree's events go on by themselves, and may overflow on several CPUs at once. */
	if (!pmuk_inst_is_tree(inst))
		pmuk_slot_act(slot, action);
	/* Post this last, as the reader of the message may restart what was stopped above. */
	if (action & PMUK_FORMAT_NOTIFY)
		pmuk_post(ctx, PMUK_MSG_OVERFLOW, cpu, 1, BIT(slot->def->num), event.set);
}

/*
 * Adds the overflow's time to the cost. If this second's overflows have exceeded the limit, pauses
 * all counters, and tells the consumer, also if another overflow has just paused them.
 */
static void pmuk_slot_keep_limit(struct pmuk_slot *slot, u64 start)
{
	struct pmuk_inst *inst = slot->inst;

	if (!pmuk_inst_charge(inst, start))
		return;
	pmuk_inst_mask(inst);
	pmuk_post(inst->ctx, PMUK_MSG_LIMIT, smp_processor_id(), 1, BIT(slot->def->num),
		  slot->turn->set->id);
}

/*
 * Handles an overflow now, or one that was pending, which comes without struct pt_regs and without
 * the PMU's data. The caller passes @c: a tree's counter may overflow after the slot has lost it.
 */
void pmuk_slot_handle(struct pmuk_slot *slot, struct pmuk_counter *c,
		      const struct pmuk_sample *sample, const struct perf_sample_data *data)
{
	u64 start;

	if (likely(!pmuk_inst_is_measured(slot->inst))) {
		pmuk_slot_call_format(slot, c, sample, data);
		return;
	}
	start = local_clock();
	pmuk_slot_call_format(slot, c, sample, data);
	pmuk_slot_keep_limit(slot, start);
}

/* Interrupts are off, so a disable of the counter waits: the turn does not end in the middle. */
void pmuk_slot_overflow(struct pmuk_counter *c, const struct pmuk_sample *sample,
			const struct perf_sample_data *data)
{
	struct pmuk_slot *slot = c->slot;
	struct pmuk_inst *inst = slot->inst;

	lockdep_assert_irqs_disabled();
	/*
	 * A tree's overflows go on after the turn has ended: these are dropped. They come on any
	 * CPU: the acquire pairs with pmuk_turn_begin().
	 */
	if (context_unsafe(smp_load_acquire(&inst->active)) != slot->turn ||
	    atomic_read(&inst->masked) || READ_ONCE(slot->hit))
		return;
	pmuk_slot_handle(slot, c, sample, data);
}
