// SPDX-License-Identifier: GPL-2.0
/*
 * The driver of pmuk's own PMU, whose events are riders: each counts what its host counts. The
 * driver keeps the struct hw_perf_event of riders. perf core and pmuk call its functions, except
 * pmuk_rider_init(), on the rider's CPU with interrupts off, or in the NMI of the host's PMU. Any
 * NMI may call pmuk_rider_read().
 */
#include <linux/atomic.h>
#include <linux/export.h>
#include <linux/minmax.h>
#include <linux/perf_event.h>
#include <linux/perf_local.h>
#include <linux/preempt.h>
#include <asm/local64.h>

#include "hw.h"
#include "share.h"

/* ---- the host's register ---- */

/*
 * pmuk_host_load() changes the register and the count in several steps, and only an NMI can read in
 * between. The NMI gets ->frozen, the count before the load, and @raw keeps its old value.
 * pmuk_counted_since() ignores the old @raw, as pmuk_host_loads() changes after the load.
 */
static u64 pmuk_host_count(struct pmuk_host *host, u64 mask, u64 *raw)
{
	if (READ_ONCE(host->moving))
		return host->frozen;
	return perf_local_count(host->event, mask, raw);
}

/*
 * Makes the driver update the count of a running host, and returns the count. The update moves the
 * host's hw.prev_count, so a fast read under way detects that a rider's ->offset may have changed.
 */
static u64 pmuk_host_update(struct pmuk_host *host, u64 *raw)
{
	return pmuk_host_count(host, perf_local_runs(host->event) ? 0 : host->mask, raw);
}

static void pmuk_host_set_left(struct pmuk_host *host, u64 deadline)
{
	perf_local_set_left(host->event, max_t(s64, deadline - perf_local_updated(host->event), 1));
}

/* The host's next overflow comes at @deadline, and later ones after a period each. */
static void pmuk_host_load(struct pmuk_host *host, u64 deadline)
{
	bool held;
	u64 raw;

	host->frozen = pmuk_host_count(host, host->mask, &raw);
	WRITE_ONCE(host->moving, true);
	barrier();	/* an NMI that finds the register between two values sees ->moving */
	held = perf_local_stop(host->event);
	pmuk_host_set_left(host, deadline);
	perf_local_start(host->event, held);
	barrier();	/* as above */
	WRITE_ONCE(host->moving, false);
	perf_local_unmark(host->event);	/* an NMI may have set a mark before ->moving fell */
}

/*
 * Returns the period for the driver to load at the nearest deadline. The period ends at the next
 * deadline of any rider, or two events after the nearest one: on x86, a period of 1 may mean BTS,
 * which has no register.
 */
static u64 pmuk_host_period(const struct pmuk_host *host, unsigned int seat, u64 nearest,
			    u64 second)
{
	u64 period = READ_ONCE(host->counters[seat]->event->hw.sample_period);

	return max(min(period, second - nearest), 2);
}

/*
 * The host has to overflow at the nearest deadline. If it overflows earlier, it is aimed again
 * then. If perf core restarts the host when an interrupt is due, the interrupt is lost, and the
 * driver begins the period that is set here: riders whose deadline has passed overflow at its end.
 */
static void pmuk_host_aim_once(struct pmuk_host *host)
{
	unsigned int seat = 0;
	u64 second, nearest = pmuk_riders_nearest(&host->riders, &seat, &second);

	if (nearest == PMUK_NEVER) {
		perf_local_set_next_period(host->event, PMUK_PERIOD_MAX);
		return;
	}
	perf_local_set_next_period(host->event, pmuk_host_period(host, seat, nearest, second));
	if (!perf_local_is_on(host->event))
		pmuk_host_set_left(host, nearest);
	else if (nearest < perf_local_end(host->event))
		pmuk_host_load(host, nearest);
}

/* Returns true to the caller who has to call pmuk_host_release(). */
bool pmuk_host_claim(struct pmuk_host *host)
{
	return atomic_inc_return(&host->asks) == 1;
}

/*
 * Aims the host at the nearest deadline. If an NMI changes deadlines meanwhile, the NMI does not
 * aim, and the loop here aims again.
 */
void pmuk_host_release(struct pmuk_host *host)
{
	int asks;

	do {
		asks = atomic_read(&host->asks);
		pmuk_host_aim_once(host);
	} while (atomic_cmpxchg(&host->asks, asks, 0) != asks);
}

/* ---- the rider's event ---- */

static struct pmuk_counter *pmuk_rider_counter(const struct perf_event *event)
{
	return event->overflow_handler_context;
}

/* Ends fast reads of the rider, and of its group, until the next slow read. */
void pmuk_rider_close(struct pmuk_counter *c)
{
	unsigned long *group_tick = READ_ONCE(c->host->group_ticks[c->seat]);

	pmuk_state_close(&c->state);
	if (group_tick)
		WRITE_ONCE(*group_tick, PMUK_GROUP_SLOW);
}

/*
 * Adds to the rider's count what the host has counted since the rider's latest update, and returns
 * the host's count. An NMI that moves the rider's hw.prev_count after @raw was written makes this
 * function go round again.
 */
static u64 pmuk_rider_update(struct perf_event *event)
{
	struct pmuk_host *host = pmuk_rider_counter(event)->host;
	struct hw_perf_event *hwc = &event->hw;
	u64 *raw = &host->raw[pmuk_rider_counter(event)->seat];
	u64 prev, now;

	do {
		prev = local64_read(&hwc->prev_count);
		now = pmuk_host_count(host, host->mask, raw);
	} while (local64_cmpxchg(&hwc->prev_count, prev, now) != prev);
	local64_add(now - prev, &event->count);
	return now;
}

/* Notes the rider's time_running, but not in NMI, where the host's times may be half updated. */
static void pmuk_rider_note_ran(struct perf_event *event)
{
	struct pmuk_counter *c = pmuk_rider_counter(event);

	if (!in_nmi())
		WRITE_ONCE(c->host_ran, pmuk_hw_ran_of_host(c, perf_local_stamp(event)));
}

static void pmuk_rider_read(struct perf_event *event)
{
	if (!(event->hw.state & PERF_HES_STOPPED))
		pmuk_rider_update(event);
	pmuk_rider_note_ran(event);
}

static void pmuk_rider_start(struct perf_event *event, int flags)
{
	struct pmuk_counter *c = pmuk_rider_counter(event);
	struct pmuk_host *host = c->host;
	struct hw_perf_event *hwc = &event->hw;
	u64 now = pmuk_host_update(host, &host->raw[c->seat]);

	local64_set(&hwc->prev_count, now);
	pmuk_rider_close(c);
	hwc->state = 0;
	if (!is_sampling_event(event))
		return;
	pmuk_riders_begin(&host->riders, c->seat, now, local64_read(&hwc->period_left),
			  hwc->sample_period);
	if (pmuk_host_claim(host))
		pmuk_host_release(host);
}

/* The stop does not aim the host again: the host may overflow at the old deadline, for no rider. */
static void pmuk_rider_stop(struct perf_event *event, int flags)
{
	struct pmuk_counter *c = pmuk_rider_counter(event);
	struct hw_perf_event *hwc = &event->hw;
	u64 deadline, now, raw;

	if (hwc->state & PERF_HES_STOPPED)
		return;
	deadline = pmuk_riders_end(&c->host->riders, c->seat);
	pmuk_host_update(c->host, &raw);	/* moves prev_count: fast reads under way retry */
	now = pmuk_rider_update(event);
	if (deadline != PMUK_NEVER)
		local64_set(&hwc->period_left, deadline - now);
	hwc->state |= PERF_HES_STOPPED | PERF_HES_UPTODATE;
	pmuk_rider_close(c);
}

static int pmuk_rider_add(struct perf_event *event, int flags)
{
	struct pmuk_counter *c = pmuk_rider_counter(event);
	struct pmuk_host *host = c->host;
	u64 enabled, running;

	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	perf_local_times(host->event, perf_local_stamp(event), &enabled, &running);
	c->host_ahead = c->host_ran - running;
	barrier();	/* an NMI that finds the rider on sees ->host_ahead */
	WRITE_ONCE(c->rides, true);
	WRITE_ONCE(host->counters[c->seat], c);
	if (flags & PERF_EF_START)
		pmuk_rider_start(event, PERF_EF_RELOAD);
	return 0;
}

static void pmuk_rider_del(struct perf_event *event, int flags)
{
	struct pmuk_counter *c = pmuk_rider_counter(event);

	pmuk_rider_stop(event, PERF_EF_UPDATE);
	pmuk_rider_note_ran(event);
	barrier();	/* an NMI that finds the rider off sees ->host_ran */
	WRITE_ONCE(c->rides, false);
	WRITE_ONCE(c->host->counters[c->seat], NULL);
}

/* User space and other counters find this PMU, too. Only a counter with a host is a rider. */
static int pmuk_rider_init(struct perf_event *event)
{
	if (event->attr.type != event->pmu->type ||
	    !perf_local_is_handled_by(event, pmuk_overflow) || !pmuk_rider_counter(event)->host)
		return -ENOENT;
	event->hw.idx = -1;
	return 0;
}

/* A module cannot call perf_event_overflow(), so perf core throttles its hosts, not its riders. */
static void pmuk_rider_report(struct perf_event *event, struct perf_sample_data *data,
			      struct pt_regs *regs)
{
#ifdef MODULE
	pmuk_overflow(event, data, regs);
#else
	perf_event_overflow(event, data, regs);
#endif
}

/*
 * The host has overflowed, and perf core's count has reached the rider's deadline. If an NMI gets
 * the count before a load, the deadline is still ahead: the host is aimed at it again.
 */
void pmuk_rider_overflow(struct pmuk_counter *c, struct perf_sample_data *data,
			 struct pt_regs *regs)
{
	struct pmuk_riders *riders = &c->host->riders;
	struct hw_perf_event *hwc = &c->event->hw;
	u64 now = pmuk_rider_update(c->event);
	s64 left = pmuk_riders_deadline(riders, c->seat) - now;

	if (left > 0)
		return;
	data->period = hwc->last_period;
	hwc->last_period = hwc->sample_period;
	pmuk_riders_begin(riders, c->seat, now, left, hwc->sample_period);
	pmuk_rider_report(c->event, data, regs);
}

/*
 * With perf_hw_context, all NMIs may read riders, as they may read hosts. A guest that has the PMU
 * for itself takes riders off their PMU together with their hosts, so the times of both agree.
 */
struct pmu pmuk_rider_pmu = {
	.module		= THIS_MODULE,
	.capabilities	= PERF_PMU_CAP_MEDIATED_VPMU,
	.task_ctx_nr	= perf_hw_context,
	.event_init	= pmuk_rider_init,
	.add		= pmuk_rider_add,
	.del		= pmuk_rider_del,
	.start		= pmuk_rider_start,
	.stop		= pmuk_rider_stop,
	.read		= pmuk_rider_read,
};
