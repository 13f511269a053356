// SPDX-License-Identifier: GPL-2.0
/*
 * A counter's own CPU pauses it, resumes it and sets its period here. Everything in this file may
 * run in NMI: no lock, no allocation, no sleep.
 *
 * Each call claims the counter, changes it, and leaves it in the next state. state.h has the
 * states, and what an NMI finds in between.
 */
#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/irq_work.h>
#include <linux/limits.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/smp.h>

#include "hw.h"
#include "share.h"

/* Returns what pmuk_check_own() does, or -EBUSY in an NMI that interrupted the PMU's driver. */
static int pmuk_check_local(const struct pmuk_counter *c)
{
	return pmuk_check_own(c) ?: pmuk_hw_is_out_of_reach(c) ? -EBUSY : 0;
}

/* Software events have no hardware to stop, and their stop() may wait for a timer. */
static bool pmuk_can_hold(const struct pmuk_counter *c)
{
	return perf_local_is_on(c->event) && !pmuk_hw_is_software(c);
}

/*
 * Stops the hardware, and returns whether pmuk holds it now. perf core stops a PMU in the PMU's own
 * NMI, too. Any other NMI may have interrupted the PMU's driver, so ->settle does this when
 * interrupts are on again.
 */
static bool pmuk_hold(struct pmuk_counter *c, bool held)
{
	if (!pmuk_can_hold(c))
		return held;
	if (!perf_local_is_foreign_nmi(c->hw_event))
		return perf_local_stop(c->event) || held;
	irq_work_queue(&c->settle);
	return held;
}

/*
 * Starts the hardware. Returns whether pmuk still holds it: then ->settle does this. ->settle also
 * starts a counter that perf core has throttled, if the counter's creator wants no throttling.
 */
static bool pmuk_let_go(struct pmuk_counter *c, bool held)
{
	if (!pmuk_can_hold(c))
		return false;	/* perf core starts it when it puts the counter on the PMU */
	if (perf_local_is_foreign_nmi(c->hw_event)) {
		irq_work_queue(&c->settle);
		return held;
	}
	perf_local_start(c->event, held);
	if ((c->attr.flags & PMUK_NO_THROTTLE) && perf_local_is_throttled(c->event))
		irq_work_queue(&c->settle);
	return false;
}

/*
 * Holds the counter for a pause. With AMD's PerfMonV2, the hardware has to run until the end of an
 * NMI that is to serve an overflow of the counter; then ->settle stops it.
 */
static bool pmuk_hold_paused(struct pmuk_counter *c, bool held)
{
	if (!pmuk_hw_stops_after_nmi(c))
		return pmuk_hold(c, held);
	irq_work_queue(&c->settle);
	return held;
}

/* ---- the events of a pause ---- */

/* The host's mark belongs to its CPU. A rider that is off has no event in flight. */
static bool pmuk_host_is_marked(const struct pmuk_counter *c)
{
	return perf_local_is_on(c->event) &&
	       pmuk_host_loads(c->host) == c->host->paused_loads[c->seat];
}

/* Returns true if neither the counter nor its host was started since the pause. */
static bool pmuk_is_marked(const struct pmuk_counter *c)
{
	return perf_local_is_marked(c->event) && (!c->host || pmuk_host_is_marked(c));
}

/*
 * Sets @since to what the register has counted between the pause and its value @raw. Returns false
 * if that is not known, because the register was loaded since. The driver loads the register at an
 * overflow before it reports the overflow; then the difference has the sign of an old value.
 */
static bool pmuk_counted_since(const struct pmuk_counter *c, u64 raw, u64 *since)
{
	u64 mask = c->mask ?: U64_MAX;

	*since = (raw - c->paused_at) & mask;
	return pmuk_is_marked(c) && *since <= mask >> 1;
}

/* Returns the count, and the value of the register to which it belongs. */
static u64 pmuk_count_with_register(const struct pmuk_counter *c, u64 *raw)
{
	u64 count, prev;

	if (!c->host)
		return perf_local_count(c->event, c->mask, raw);
	do {
		count = perf_local_count(c->event, 0, &prev);
		*raw = READ_ONCE(c->host->raw[c->seat]);
	} while (perf_local_prev(c->event) != prev);
	return count;
}

/*
 * time_running goes on in a pause, but the time of a period does not. Turns ->ran from when the
 * period began into how long it took so far, and back.
 */
static void pmuk_turn_clock(struct pmuk_counter *c)
{
	struct pmuk_value value;

	if (!c->attr.freq || c->ran == U64_MAX)
		return;
	pmuk_hw_times(c, &value);
	c->ran = value.time_running - c->ran;
}

static void pmuk_freeze(struct pmuk_counter *c)
{
	u64 count;

	pmuk_turn_clock(c);
	if (c->marks)
		perf_local_mark(c->event);
	if (c->host && perf_local_is_on(c->event))
		c->host->paused_loads[c->seat] = pmuk_host_loads(c->host);
	count = pmuk_count_with_register(c, &c->paused_at);
	c->paused_count = count;
	c->paused_nmis = in_nmi() ? perf_arch_nmis() : 0;
	WRITE_ONCE(c->frozen, pmuk_not_less(c, count));
}

/*
 * An NMI that pauses the counter may have interrupted an update of the count. Then ->frozen lacks
 * the events that the update had in flight. After the NMI the count is complete: subtract from it
 * what the register has counted since the pause. If perf core has loaded the register meanwhile,
 * ->frozen stays as it is.
 */
static void pmuk_complete_frozen(struct pmuk_counter *c)
{
	u64 raw, since, count = pmuk_count_with_register(c, &raw);

	c->paused_nmis = 0;
	if (!pmuk_counted_since(c, raw, &since) || since >= count - c->frozen)
		return;
	WRITE_ONCE(c->frozen, count - since);
	pmuk_publish_local(c, c->frozen);
}

/*
 * Returns true in the NMI that has paused the counter: the same events are in flight as then. Where
 * NMIs are not counted, that is not known.
 */
static bool pmuk_is_pausing_nmi(const struct pmuk_counter *c)
{
	return in_nmi() && c->paused_nmis && c->paused_nmis == (u32)perf_arch_nmis();
}

/*
 * Returns the events of the pause, which perf core's count has and the counter's must not have. In
 * an NMI, the count and ->frozen may lack different events that were in flight; the register does
 * not.
 */
static u64 pmuk_hidden(struct pmuk_counter *c)
{
	u64 raw, since, count;

	if (!in_nmi())
		pmuk_complete_frozen(c);
	count = pmuk_count_with_register(c, &raw);
	if (pmuk_is_pausing_nmi(c))
		return count - c->paused_count;
	if (in_nmi() && pmuk_counted_since(c, raw, &since))
		return since;
	return count - c->frozen;
}

/*
 * Returns true if an NMI cannot know the events of the pause. ->settle resumes a CPU's counter
 * after the NMI. A task's counter may have moved to another CPU by then, so it is resumed in the
 * NMI, and may be wrong by what an update has in flight. Trace units count nothing.
 */
static bool pmuk_resumes_later(const struct pmuk_counter *c)
{
	return in_nmi() && pmuk_can_hold(c) && !c->traces && !perf_local_task(c->event) &&
	       !pmuk_is_marked(c) && !pmuk_is_pausing_nmi(c);
}

/* ---- from one state to the next ---- */

/*
 * Each of the next functions changes a counter that the caller has claimed in the state @was, and
 * returns the next state.
 */

static unsigned long pmuk_pause(struct pmuk_counter *c, unsigned long was)
{
	bool overdue = pmuk_hw_stops_after_nmi(c) || pmuk_hw_is_overdue(c);
	bool held = pmuk_hold_paused(c, pmuk_state_is_held(was));

	if (pmuk_state_is_frozen(was))
		return pmuk_state_paused(held, false);	/* the resume has not begun */
	pmuk_freeze(c);
	pmuk_publish_local(c, c->frozen);
	if (in_nmi())
		irq_work_queue(&c->settle);
	return pmuk_state_paused(held, overdue || (held && pmuk_hw_has_overflowed(c)));
}

/*
 * The hardware may have counted during the pause: perf core starts it when it reschedules the
 * counter. Subtract those events from the count. Nested reads return ->frozen until the count is
 * right. The hardware starts after that, in a state in which its overflows are reported.
 */
static unsigned long pmuk_thaw(struct pmuk_counter *c, bool held)
{
	perf_local_subtract(c->event, pmuk_hidden(c));
	pmuk_turn_clock(c);
	smp_store_release(&c->resumes, c->resumes + 1);	/* pairs with pmuk_counter_value() */
	pmuk_state_leave(&c->state, PMUK_STOPPING);
	held = pmuk_let_go(c, held);
	pmuk_hw_refresh_page(c);
	return held ? PMUK_COUNTING_HELD : PMUK_COUNTING;
}

static unsigned long pmuk_resume(struct pmuk_counter *c, unsigned long was)
{
	if (pmuk_resumes_later(c)) {
		irq_work_queue(&c->settle);
		return PMUK_PAUSED_ENDING;
	}
	return pmuk_thaw(c, pmuk_state_is_held(was));
}

/* The counter is disabled. perf core starts the hardware when it enables the counter. */
static unsigned long pmuk_rearm(struct pmuk_counter *c, unsigned long was)
{
	if (pmuk_state_is_frozen(was))
		pmuk_thaw(c, pmuk_state_is_held(was));
	return PMUK_COUNTING;
}

/*
 * The hardware stops even if the counter is paused: perf core may have started it, and only a start
 * loads the register with the new period. perf core starts a throttled counter without loading the
 * register, so that register is loaded here.
 */
static unsigned long pmuk_set_paused_period(struct pmuk_counter *c, unsigned long was)
{
	bool unserved = pmuk_hw_stops_after_nmi(c);
	bool held = pmuk_hold_paused(c, pmuk_state_is_held(was));

	pmuk_hw_begin_period(c, pmuk_next_period(c));
	if (!unserved && perf_local_is_throttled(c->event)) {
		if (!in_nmi())
			pmuk_complete_frozen(c);
		perf_local_start(c->event, false);
	}
	if (was == PMUK_PAUSED_ENDING)
		return was;
	return pmuk_state_paused(held, pmuk_state_is_overdue(was));
}

static unsigned long pmuk_set_hardware_period(struct pmuk_counter *c, unsigned long was)
{
	bool held;

	if (pmuk_state_is_frozen(was))
		return pmuk_set_paused_period(c, was);
	held = pmuk_hold(c, pmuk_state_is_held(was));
	pmuk_freeze(c);
	pmuk_state_leave(&c->state, PMUK_RESUMING);
	pmuk_hw_begin_period(c, pmuk_next_period(c));
	return pmuk_thaw(c, held);
}

/* Does what an NMI had to leave, see pmuk_hold(), pmuk_let_go() and pmuk_resumes_later(). */
static unsigned long pmuk_settle(struct pmuk_counter *c, unsigned long was)
{
	bool held = pmuk_state_is_held(was);

	if (was == PMUK_PAUSED_ENDING)
		return pmuk_thaw(c, held);
	if (pmuk_state_is_frozen(was)) {
		held = pmuk_hold(c, held);
		pmuk_complete_frozen(c);
		return pmuk_state_paused(held, pmuk_state_is_overdue(was));
	}
	if ((c->attr.flags & PMUK_NO_THROTTLE) && perf_local_is_throttled(c->event) &&
	    perf_local_is_on(c->event))
		perf_local_unthrottle(c->event);
	else
		pmuk_let_go(c, held);
	return PMUK_COUNTING;
}

/* Returns 0, or -EBUSY if this call has interrupted another one that has claimed the counter. */
static int pmuk_change(struct pmuk_counter *c, unsigned long from,
		       unsigned long (*change)(struct pmuk_counter *c, unsigned long was))
{
	unsigned long was;
	int ret;

	ret = pmuk_state_claim(&c->state, &was, from);
	if (!ret)
		pmuk_state_leave(&c->state, change(c, was));
	return ret == -EALREADY ? 0 : ret;
}

/*
 * Runs when interrupts are on again. A task's counter may have left this CPU: then perf core starts
 * it, and its new CPU may be changing it.
 */
void pmuk_settle_irq_work(struct irq_work *irq_work)
{
	struct pmuk_counter *c = container_of(irq_work, struct pmuk_counter, settle);

	/* The counter is being destroyed, and its event may have been released. */
	if (READ_ONCE(c->quiet))
		return;
	if (perf_local_is_on(c->event) || perf_local_cpu(c->event) == smp_processor_id())
		pmuk_change(c, PMUK_FROM_ANY, pmuk_settle);
	else
		pmuk_state_settle_off(&c->state);
}

static int pmuk_change_local(struct pmuk_counter *c, unsigned long from,
			     unsigned long (*change)(struct pmuk_counter *c, unsigned long was))
{
	unsigned long flags;
	int ret;

	if (IS_ERR_OR_NULL(c))
		return -EINVAL;

	local_irq_save(flags);
	ret = pmuk_check_local(c) ?: pmuk_change(c, from, change);
	local_irq_restore(flags);
	return ret;
}

/**
 * pmuk_counter_pause() - stop counting at once
 * @c: the counter
 *
 * Hardware counters are stopped, and perf core's time_enabled and time_running go on. Overflows are
 * not reported, not even one whose interrupt was due before the pause. Events that the hardware
 * still counts until pmuk_counter_resume() are left out of every value. The hardware counts on if
 * perf core reschedules the counter, and until the end of an NMI that is not the PMU's own or, with
 * AMD's PerfMonV2, has an overflow of @c to serve. User space that reads the register by the
 * control page then sees these events until the resume. Pausing a paused counter does nothing.
 *
 * An NMI may interrupt perf core while it updates the count. If that NMI pauses the counter,
 * reads get the exact count after the NMI, and until then may lack the events in flight. They lack
 * these events for good if the counter overflows, or perf core reschedules it, right after the NMI,
 * or if the PMU has no interrupts.
 *
 * Context: Any, NMI too; on the counter's CPU, or in the context of its task.
 * Return: 0; -EINVAL if @c is NULL or does not belong to this CPU or task,
 * -EBUSY if an NMI found the PMU being reprogrammed, or @c being changed by another of these calls
 * or by pmuk itself, or the NMI is not the PMU's own and the PMU counts for no task, as uncore
 * PMUs; -EOPNOTSUPP with PMUK_INHERIT.
 */
int pmuk_counter_pause(struct pmuk_counter *c)
{
	return pmuk_change_local(c, PMUK_FROM_COUNTING | PMUK_FROM_ENDING, pmuk_pause);
}
EXPORT_SYMBOL_GPL(pmuk_counter_pause);

/**
 * pmuk_counter_resume() - go on counting where pmuk_counter_pause() stopped
 * @c: the counter
 *
 * In an NMI that is not the PMU's own, the hardware starts right after the NMI. If perf core has
 * started the counter during the pause, as when perf core reschedules, or if the PMU has no
 * interrupts, a resume in any NMI takes effect right after the NMI. Resuming a counter that is not
 * paused does nothing.
 *
 * Context: Any, NMI too; on the counter's CPU, or in the context of its task.
 * Return: As pmuk_counter_pause().
 */
int pmuk_counter_resume(struct pmuk_counter *c)
{
	return pmuk_change_local(c, PMUK_FROM_PAUSED, pmuk_resume);
}
EXPORT_SYMBOL_GPL(pmuk_counter_resume);

/* ---- periods ---- */

/*
 * The period becomes 1, with which the counter may be in no register when it is enabled next, see
 * pmuk_hw_mask(). So it is not read directly. The counter is disabled now.
 * pmuk_counter_set_period() does not need this: the driver's check_period()
 * refuses a period with which a running counter would have to leave its register.
 */
static void pmuk_leave_register(struct pmuk_counter *c)
{
	c->mask = 0;
	c->bar = PMUK_BARRED;
	pmuk_state_close(&c->state);
}

/*
 * A counter that is off its PMU is not claimed: a restart on another CPU may be about to resume it.
 * If the claim fails, the call that this NMI has interrupted goes on with the period that it knows.
 */
static int pmuk_set_period(struct pmuk_counter *c, u64 period)
{
	u64 before = c->attr.period;
	int ret = 0;

	c->attr.period = period;
	if (pmuk_hw_is_clock(c))
		perf_local_set_period(c->event, pmuk_next_period(c));
	else if (!pmuk_hw_is_software(c) && perf_local_is_on(c->event))
		ret = pmuk_change(c, PMUK_FROM_ANY, pmuk_set_hardware_period);
	else
		pmuk_hw_begin_period(c, pmuk_next_period(c));
	if (ret)
		c->attr.period = before;
	return ret;
}

/**
 * pmuk_counter_set_period() - start a new period
 * @c: a counter that was created with a period
 * @period: in events, 1 … 2^63 - 1 - &pmuk_attr.random_mask
 *
 * The next overflow comes @period events from now, and so does each one after
 * it. A counter that is off its PMU starts the new period when it comes back. The clocks,
 * PERF_COUNT_SW_CPU_CLOCK and _TASK_CLOCK, start the new period at their next overflow.
 *
 * Context: Any, NMI too, the overflow callback too; on the counter's CPU, or in
 * the context of its task.
 * Return: 0; -EINVAL if @c is NULL, has no period or does not belong to this CPU or task, or
 * @period is out of range, or too short for the CPU's PMU; -EBUSY if an NMI that is not the PMU's
 * own found the counter on the PMU, or an NMI found @c being changed by another of these calls or
 * by pmuk itself; -EOPNOTSUPP with PMUK_INHERIT, or if @c has a &pmuk_attr.freq.
 */
int pmuk_counter_set_period(struct pmuk_counter *c, u64 period)
{
	unsigned long flags;
	int ret;

	if (IS_ERR_OR_NULL(c) || !c->attr.period)
		return -EINVAL;
	if (!period || period > PMUK_PERIOD_MAX - c->attr.random_mask)
		return -EINVAL;
	if (c->attr.freq)
		return -EOPNOTSUPP;

	local_irq_save(flags);
	ret = pmuk_check_local(c);
	if (!ret && perf_local_is_on(c->event) && perf_local_is_foreign_nmi(c->hw_event))
		ret = -EBUSY;
	if (!ret && !pmuk_hw_takes_period(c, period))
		ret = -EINVAL;
	if (!ret)
		ret = pmuk_set_period(c, period);
	local_irq_restore(flags);
	return ret;
}
EXPORT_SYMBOL_GPL(pmuk_counter_set_period);

static bool pmuk_rearm_disabled(struct pmuk_counter *c)
{
	guard(irqsave)();
	return !pmuk_change(c, PMUK_FROM_ANY, pmuk_rearm);
}

/* Begins the next period of a disabled counter, whose overflow was handled or is dropped. */
static void pmuk_end_overflow(struct pmuk_counter *c)
{
	if (!pmuk_hw_has_overflowed(c))
		return;
	perf_local_take_overflow(c->event);
	perf_local_end_taken(c->event);
	pmuk_forget_period(c);
}

/*
 * Ends the pause of a disabled counter, and begins a new period if @period is not 0. If @period is
 * 0, the present period goes on, or the next one begins if it has ended. An overflow that masks may
 * pause a disabled counter on its own CPU at this moment, in a few instructions.
 */
void pmuk_counter_rearm(struct pmuk_counter *c, u64 period)
{
	while (!pmuk_rearm_disabled(c))
		cpu_relax();
	if (!period) {
		pmuk_end_overflow(c);
		return;
	}
	pmuk_forget_period(c);
	if (!c->attr.freq || pmuk_hw_adapts(c))	/* a clock with a frequency keeps its period */
		c->attr.period = period;
	if (period == 1 && !c->host)
		pmuk_leave_register(c);
	pmuk_hw_begin_period(c, pmuk_next_period(c));
}

/*
 * Returns true if a disabled counter has overflowed and its interrupt was not served. Taking the
 * counter off its PMU drops that interrupt, but keeps the events counted beyond the period. Returns
 * false for a paused counter: a mask that pauses counters has handled their overflows, and those of
 * other paused counters are dropped.
 */
bool pmuk_counter_take_pending(struct pmuk_counter *c)
{
	if (pmuk_state_is_frozen(READ_ONCE(c->state)) || !pmuk_hw_has_overflowed(c))
		return false;
	perf_local_take_overflow(c->event);
	return true;
}
