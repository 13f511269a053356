// SPDX-License-Identifier: GPL-2.0
/* Decides what may be done with a counter's event, see hw.h. */
#include <linux/kconfig.h>
#include <linux/minmax.h>

#include "hw.h"

/* ---- how a counter is read ---- */

/* x86 may count branches with a period of 1 by BTS, which has no register. */
u64 pmuk_hw_mask(const struct pmuk_counter *c)
{
	return c->core && c->attr.period != 1 ? perf_arch_mask(c->event) : 0;
}

/*
 * pmuk_read_is_barred() subtracts this from preempt_count(), and bars the fast path if the
 * difference has PMUK_BARRED set. With 1, a preempt_count() of 0 gives a difference with all bits
 * set, so a task counter's reader is barred while the reader can be preempted. With any other
 * preempt_count(), the difference has PMUK_BARRED clear.
 */
u32 pmuk_hw_bar(const struct pmuk_counter *c)
{
	if (!c->mask)
		return PMUK_BARRED;
	return IS_ENABLED(CONFIG_PREEMPT_COUNT) && perf_local_task(c->event);
}

/*
 * Returns true for perf core's own events, which no hardware counts. is_software_event() is also
 * true for PMUs whose events are in the perf context of software events, such as SPE, Intel PT and
 * CoreSight. The event's own type cannot be used: perf core gives each clock a PMU and a type of
 * its own.
 */
bool pmuk_hw_is_software(const struct pmuk_counter *c)
{
	if (perf_local_is_tracepoint(c->event))
		return true;
	return c->attr.type == PERF_TYPE_SOFTWARE || c->attr.type == PERF_TYPE_BREAKPOINT;
}

/* cpu-clock and task-clock: perf core runs their periods from a timer. */
bool pmuk_hw_is_clock(const struct pmuk_counter *c)
{
	return c->attr.type == PERF_TYPE_SOFTWARE && c->attr.config <= PERF_COUNT_SW_TASK_CLOCK;
}

/* Returns true for software events but clocks: perf core counts their period_left up to 0. */
bool pmuk_hw_counts_up(const struct pmuk_counter *c)
{
	return pmuk_hw_is_software(c) && !pmuk_hw_is_clock(c);
}

/* Returns true if each overflow adapts the period. A clock's period is a time, and stays. */
bool pmuk_hw_adapts(const struct pmuk_counter *c)
{
	return c->attr.freq && !pmuk_hw_is_clock(c);
}

/* Returns true if the counter is on this CPU's PMU, and so is its host. */
bool pmuk_hw_is_on(const struct pmuk_counter *c)
{
	return perf_local_is_on(c->event) && perf_local_is_on(c->hw_event);
}

/* Returns true if this NMI must leave the counter alone. */
bool pmuk_hw_is_out_of_reach(const struct pmuk_counter *c)
{
	return perf_local_is_out_of_reach(c->event) ||
	       (c->host && perf_local_is_out_of_reach(c->hw_event));
}

/*
 * Returns the time_running of a counter with a host. perf core's own time goes on while the host
 * has no register. So this function counts the host's time_running from the moment when perf core
 * puts the counter on. @now is of perf_local_now() or perf_local_stamp(). The caller is on the
 * counter's CPU, with interrupts off or in NMI.
 */
u64 pmuk_hw_ran_of_host(const struct pmuk_counter *c, u64 now)
{
	u64 enabled, running;

	if (!READ_ONCE(c->rides))
		return c->host_ran;
	perf_local_times(c->hw_event, now, &enabled, &running);
	return c->host_ahead + running;
}

void pmuk_hw_times(const struct pmuk_counter *c, struct pmuk_value *value)
{
	u64 now = perf_local_now(c->event);

	perf_local_times(c->event, now, &value->time_enabled, &value->time_running);
	if (c->host)
		value->time_running = min(pmuk_hw_ran_of_host(c, now), value->time_enabled);
}

/* ---- stop, and go on ---- */

/*
 * Keeps perf core from throttling the event. A counter that pmuk holds stays stopped. Returns false
 * if the caller has to start a throttled event after the interrupt: an event of software, whose
 * timer may be running this function, or an event that is being paused or stopped.
 */
bool pmuk_hw_never_throttle(const struct pmuk_counter *c, struct perf_event *event)
{
	unsigned long state = READ_ONCE(c->state);

	return perf_local_never_throttle(event, pmuk_state_is_held(state),
					 !pmuk_hw_is_software(c) && !pmuk_state_is_claimed(state));
}

/* pmuk has changed perf core's count, which may be on a page that perf core keeps up to date. */
void pmuk_hw_refresh_page(const struct pmuk_counter *c)
{
	if (c->live && !perf_local_is_foreign_nmi(c->event))
		perf_local_refresh_page(c->event);
}

/* ---- periods ---- */

/*
 * The driver of the CPU's own PMU refuses some periods. Other drivers are not asked: their PMU may
 * be unregistered at this moment, and a CPU's own PMU never is.
 */
bool pmuk_hw_takes_period(const struct pmuk_counter *c, u64 period)
{
	return !c->core || perf_local_takes_period(c->hw_event, period);
}

/*
 * The next start of the counter finds a whole period left. Software events count up to 0, except
 * the clocks: their timer is started with the period that is left.
 */
void pmuk_hw_begin_period(const struct pmuk_counter *c, u64 period)
{
	perf_local_set_period(c->event, period);
	perf_local_set_left(c->event, pmuk_hw_counts_up(c) ? -(s64)period : (s64)period);
}

/* ---- was the overflow served? ---- */

/*
 * Returns true if a stopped counter has overflowed, and the interrupt is still to be served. PMUs
 * that write AUX areas report no overflows, and keep other things in period_left.
 */
bool pmuk_hw_has_overflowed(const struct pmuk_counter *c)
{
	return c->attr.period && !pmuk_hw_is_software(c) && !c->traces &&
	       perf_local_has_overflowed(c->event);
}

/*
 * Returns true if the register has passed the end of the period in an NMI that must not stop the
 * counter. The overflow came before the NMI, and its interrupt is still to be served.
 */
bool pmuk_hw_is_overdue(const struct pmuk_counter *c)
{
	return c->attr.period && pmuk_counter_mask(c) && perf_local_is_on(c->event) &&
	       perf_local_is_foreign_nmi(c->event) && perf_local_is_overdue(c->event, c->mask);
}

/*
 * Returns true if this NMI is that of the counter's PMU, and the driver has to find the counter
 * running when it serves the counter's overflow.
 */
bool pmuk_hw_stops_after_nmi(const struct pmuk_counter *c)
{
	return c->attr.period && pmuk_counter_mask(c) && perf_local_is_on(c->event) &&
	       perf_local_stops_after_nmi(c->event, c->mask);
}
