// SPDX-License-Identifier: GPL-2.0
/*
 * Lets the creator of an event read, stop and start the event on the event's own CPU, from any
 * context. See include/linux/perf_local.h.
 *
 * perf core moves an event with interrupts off, on the CPU where the event is. So with interrupts
 * off, only NMIs are left: an NMI may land inside one of these functions, or one of them may run in
 * an NMI that has landed inside perf core. An NMI ends before the interrupted code goes on, so
 * reading twice and comparing finds the first case. perf_pmu_disabled(), and the PMU whose
 * interrupt is being served, identify the second case.
 */
#include <linux/export.h>
#include <linux/lockdep.h>
#include <linux/percpu.h>
#include <linux/perf_local.h>
#include <linux/preempt.h>
#include <linux/sched/clock.h>

/*
 * The PMU whose own NMI runs on this CPU. A PMU's own NMI seldom lands where that PMU is being
 * reprogrammed, only if the NMI was under way when the PMU stopped. Any other NMI may at any time.
 * An exception that is entered as an NMI inside this NMI, such as a machine check, is taken for
 * the PMU's own: the driver has stopped the PMU, and programs nothing while the handler runs.
 */
static DEFINE_PER_CPU(struct pmu *, perf_nmi_pmu);

/* The PMU whose interrupt, which is no NMI, runs on this CPU. */
static DEFINE_PER_CPU(struct pmu *, perf_irq_pmu);

/* ---- whose interrupt this is ---- */

static struct pmu * __percpu *perf_local_serving(void)
{
	return in_nmi() ? &perf_nmi_pmu : &perf_irq_pmu;
}

/**
 * perf_local_serve() - an overflow handler begins
 * @event: the event that has overflowed
 *
 * Until perf_local_served(), the calls of this file know that the driver of @event's PMU has
 * stopped the PMU and starts it again at the end of its interrupt handler.
 *
 * Context: The overflow handler of @event, interrupts off or NMI.
 * Return: the PMU that was being served before, for perf_local_served().
 */
struct pmu *perf_local_serve(const struct perf_event *event)
{
	struct pmu *outer = __this_cpu_read(*perf_local_serving());

	__this_cpu_write(*perf_local_serving(), event->pmu);
	return outer;
}
EXPORT_SYMBOL_GPL(perf_local_serve);

/**
 * perf_local_served() - an overflow handler ends
 * @outer: from perf_local_serve()
 *
 * Context: As perf_local_serve().
 */
void perf_local_served(struct pmu *outer)
{
	__this_cpu_write(*perf_local_serving(), outer);
}
EXPORT_SYMBOL_GPL(perf_local_served);

/**
 * perf_local_is_foreign_nmi() - may this NMI have interrupted the PMU's driver?
 * @event: the event
 *
 * Context: Any, NMI too; the caller cannot leave the CPU.
 * Return: true in an NMI that is not that of @event's PMU. Such an NMI must not program the PMU.
 */
bool perf_local_is_foreign_nmi(const struct perf_event *event)
{
	return in_nmi() && __this_cpu_read(perf_nmi_pmu) != event->pmu;
}
EXPORT_SYMBOL_GPL(perf_local_is_foreign_nmi);

/*
 * perf core itself reads PMUs that count for tasks in any NMI, when a sample has the values of a
 * group. The drivers of other PMUs, such as x86's uncore PMUs on PCI, may take locks to read, so
 * only a PMU's own NMI reads those.
 */
static bool perf_local_reads_in_nmi(const struct perf_event *event)
{
	return event->pmu->task_ctx_nr != perf_invalid_context || !perf_local_is_foreign_nmi(event);
}

/* Returns whether the code that this NMI has interrupted programs @pmu. */
static bool perf_local_is_held(struct pmu *pmu)
{
	/* The interrupted code is on this CPU, so it changes nothing meanwhile. */
	return data_race(perf_pmu_disabled(pmu));
}

/**
 * perf_local_is_out_of_reach() - must this NMI leave the event alone?
 * @event: the event
 *
 * Context: Any, NMI too; interrupts off.
 * Return: true if @event is on this CPU and this NMI has interrupted code that programs @event's
 * PMU, or may hold its locks.
 */
bool perf_local_is_out_of_reach(const struct perf_event *event)
{
	return in_nmi() && perf_local_is_on(event) &&
	       (perf_local_is_held(event->pmu) || !perf_local_reads_in_nmi(event));
}
EXPORT_SYMBOL_GPL(perf_local_is_out_of_reach);

/* ---- read ---- */

/*
 * Returns perf core's count plus the events that only the register has yet. An overflow in the
 * middle moves the count, or prev_count, or both, and so does a stop and start. If neither has
 * moved, the count, prev_count and the register's value belong together.
 */
static __always_inline u64 perf_local_count_direct(const struct perf_event *event, u64 mask,
						   u64 *raw)
{
	u64 base, prev;

	do {
		base = local64_read(&event->count);
		prev = local64_read(&event->hw.prev_count);
		*raw = perf_arch_read(event);
	} while (unlikely((local64_read(&event->hw.prev_count) != prev) |
			  (local64_read(&event->count) != base)));

	return base + ((*raw - prev) & mask);
}

/* Returns perf core's count. The register had the value @raw at perf core's latest update. */
static u64 perf_local_count_updated(const struct perf_event *event, u64 *raw)
{
	u64 count;

	do {
		*raw = local64_read(&event->hw.prev_count);
		count = local64_read(&event->count);
	} while (unlikely(local64_read(&event->hw.prev_count) != *raw));
	return count;
}

/**
 * perf_local_count() - exact count of an event that is on this CPU, or off its PMU
 * @event: the event
 * @mask: the bits of its register, from perf_arch_mask(); 0 to read through the PMU's driver
 * @raw: where to put the value of the register, or of hw.prev_count, to which the count belongs
 *
 * An NMI may have interrupted an update of @event, in which perf core has moved hw.prev_count and
 * not yet added to the count. In that NMI the count lacks the events that the update has in flight.
 *
 * Context: Any, NMI too, unless perf_local_is_out_of_reach(); interrupts off.
 * Return: the number of events since @event was created.
 */
u64 perf_local_count(struct perf_event *event, u64 mask, u64 *raw)
{
	if (perf_local_is_on(event)) {
		if (mask && !(perf_local_peek(event->hw.state) & PERF_HES_UPTODATE))
			return perf_local_count_direct(event, mask, raw);
		if (!mask)
			event->pmu->read(event);
	}
	return perf_local_count_updated(event, raw);
}
EXPORT_SYMBOL_GPL(perf_local_count);

/* The time of an event that excludes guests stands still while a guest has the PMU. */
static u64 perf_local_host_time(const struct perf_event *event, u64 time)
{
	return event->attr.exclude_guest ? time - perf_ctx_guest_time(event->ctx) : time;
}

/**
 * perf_local_now() - the time of an event's context now
 * @event: the event
 *
 * Only an NMI in a guest that has the PMU sees that guest's time so far included.
 *
 * Context: Any, NMI too; interrupts off, on the CPU where @event is or was.
 * Return: the time in nanoseconds, as perf core's stamps.
 */
u64 perf_local_now(const struct perf_event *event)
{
	return perf_local_host_time(event, local_clock() + perf_ctx_offset(event->ctx));
}
EXPORT_SYMBOL_GPL(perf_local_now);

/**
 * perf_local_stamp() - the time with which perf core stamps an event
 * @event: the event
 *
 * While perf core puts events on PMUs, takes them off and reads them, their context has one time.
 *
 * Context: Not NMI; interrupts off, on the CPU where @event is or was.
 * Return: the time in nanoseconds; no event of the context has a later stamp.
 */
u64 perf_local_stamp(const struct perf_event *event)
{
	return perf_local_host_time(event, perf_ctx_time(event->ctx));
}
EXPORT_SYMBOL_GPL(perf_local_stamp);

/**
 * perf_local_times() - for how long an event was enabled, and on its PMU
 * @event: the event
 * @now: perf_local_now() or perf_local_stamp() of @event, or of another event of its context that
 *	excludes guests if @event does
 * @enabled: where to put the nanoseconds for which @event was enabled
 * @running: where to put the nanoseconds of these for which it was on its PMU
 *
 * Context: Any, NMI too; interrupts off, on the CPU where @event is or was.
 */
void perf_local_times(const struct perf_event *event, u64 now, u64 *enabled, u64 *running)
{
	u64 delta = now - perf_local_peek(event->tstamp);
	enum perf_event_state state = perf_local_peek(event->state);

	*enabled = perf_local_peek(event->total_time_enabled);
	*running = perf_local_peek(event->total_time_running);
	if (state >= PERF_EVENT_STATE_INACTIVE)
		*enabled += delta;
	if (state >= PERF_EVENT_STATE_ACTIVE)
		*running += delta;
}
EXPORT_SYMBOL_GPL(perf_local_times);

/**
 * perf_local_last_value() - count and times of a disabled event
 * @event: an event without inheritance, which the caller has disabled
 * @enabled: as for perf_local_times()
 * @running: as for perf_local_times()
 *
 * Takes no lock, unlike perf_event_read_value(). If another task enables @event meanwhile, the
 * three values may be of different moments.
 *
 * Context: Any, NMI too; on any CPU.
 * Return: the number of events since @event was created.
 */
u64 perf_local_last_value(const struct perf_event *event, u64 *enabled, u64 *running)
{
	*enabled = data_race(event->total_time_enabled);	/* see above: enabled meanwhile */
	*running = data_race(event->total_time_running);	/* as this one */
	return local64_read(&event->count);
}
EXPORT_SYMBOL_GPL(perf_local_last_value);

/* ---- stop, and go on ---- */

static bool perf_local_is_stopped(const struct perf_event *event)
{
	return event->hw.state & PERF_HES_STOPPED;
}

/*
 * Stop the event, and bring its count up to date. perf core stops a throttled event without
 * PERF_EF_UPDATE, and so leaves the event's count behind the register; a second stop() brings the
 * count up to date. Drivers of uncore PMUs warn of any other second stop().
 */
static void perf_local_update(struct perf_event *event)
{
	if (!(event->hw.state & PERF_HES_UPTODATE))
		event->pmu->stop(event, PERF_EF_UPDATE);
}

/* Drivers load a register only if the count is up to date. */
static void perf_local_restart(struct perf_event *event)
{
	perf_local_update(event);
	event->pmu->start(event, PERF_EF_RELOAD);
}

/*
 * Load the register with what is left of the period, and leave it stopped. perf core starts a
 * throttled event without PERF_EF_RELOAD, and x86's register would go on with the old period.
 */
static void perf_local_reload(struct perf_event *event)
{
	perf_local_restart(event);
	perf_local_update(event);
}

/*
 * Does what perf_pmu_disable() does. While an event is being programmed, its register and
 * hw.prev_count do not belong together, and an NMI must not read them. In its own interrupt a PMU
 * is stopped already; its driver starts it at the end of the interrupt handler.
 */
static void perf_local_hold(struct pmu *pmu)
{
	if (in_nmi())
		return;
	lockdep_assert_irqs_disabled();
	if (!perf_pmu_disabled(pmu)++ && __this_cpu_read(perf_irq_pmu) != pmu)
		pmu->pmu_disable(pmu);
}

static void perf_local_release(struct pmu *pmu)
{
	if (in_nmi())
		return;
	if (!--perf_pmu_disabled(pmu) && __this_cpu_read(perf_irq_pmu) != pmu)
		pmu->pmu_enable(pmu);
}

/**
 * perf_local_stop() - stop an event at once
 * @event: an event of a PMU in hardware
 *
 * The count is up to date then. perf core starts the event if it reschedules the event.
 *
 * Context: Interrupts off, or the PMU's own NMI; on the CPU where @event is.
 * Return: true if @event has counted until now, so that the caller has to start it again.
 */
bool perf_local_stop(struct perf_event *event)
{
	bool counted;

	perf_local_hold(event->pmu);
	counted = !perf_local_is_stopped(event);
	perf_local_update(event);
	perf_local_release(event->pmu);
	return counted;
}
EXPORT_SYMBOL_GPL(perf_local_stop);

/**
 * perf_local_start() - let an event go on that perf_local_stop() has stopped
 * @event: the event
 * @held: perf_local_stop() has returned true, and the event was not started since
 *
 * Loads the register with what is left of the period. perf core starts a throttled event at its
 * next tick, so that event's register is only loaded here.
 *
 * Context: As perf_local_stop().
 */
void perf_local_start(struct perf_event *event, bool held)
{
	perf_local_hold(event->pmu);
	if (perf_local_is_stopped(event) && perf_local_is_throttled(event))
		perf_local_reload(event);
	else if (perf_local_is_stopped(event) && held)
		perf_local_restart(event);
	perf_local_release(event->pmu);
}
EXPORT_SYMBOL_GPL(perf_local_start);

/**
 * perf_local_unthrottle() - do now what perf core does at its next tick
 * @event: an event that perf core has throttled
 *
 * Context: As perf_local_stop().
 */
void perf_local_unthrottle(struct perf_event *event)
{
	struct pmu *pmu = event->pmu;

	perf_local_hold(pmu);
	event->hw.interrupts = 0;
	pmu->start(event, 0);
	perf_local_release(pmu);
}
EXPORT_SYMBOL_GPL(perf_local_unthrottle);

/**
 * perf_local_never_throttle() - keep perf core from throttling an event
 * @event: the event, or an inherited one of it
 * @held: the caller has stopped @event, which is to stay stopped
 * @may_start: @event's PMU can be started from its own interrupt
 *
 * Zeroing hw.interrupts at each overflow keeps it below the limit at which perf core throttles.
 * perf core lowers that limit to 1 after a slow interrupt; then this very overflow has throttled
 * the event. If perf core has already stopped the event, the event is started again here, as
 * interrupts may stay off for long.
 *
 * Context: The overflow handler of @event, interrupts off or NMI.
 * Return: false if perf core has throttled @event and the caller has to call
 * perf_local_unthrottle() after the interrupt: @may_start is false, or the driver has yet to stop
 * the event.
 */
bool perf_local_never_throttle(struct perf_event *event, bool held, bool may_start)
{
	if (!perf_local_is_throttled(event) || held)
		event->hw.interrupts = 0;
	else if (perf_local_is_stopped(event) && may_start)
		perf_local_unthrottle(event);
	else
		return false;
	return true;
}
EXPORT_SYMBOL_GPL(perf_local_never_throttle);

/*
 * The PMU is held. An interrupt that was under way when the PMU stopped may still land in here, and
 * move prev_count: then update the page again.
 */
static void perf_local_update_page(struct perf_event *event)
{
	u64 prev;

	do {
		prev = local64_read(&event->hw.prev_count);
		perf_event_update_userpage(event);
	} while (local64_read(&event->hw.prev_count) != prev);
}

/* A start mends prev_count, if the driver's updates leave a value that is wrong for the page. */
static bool perf_local_page_wants_start(const struct perf_event *event)
{
	return perf_arch_page_wants_start() && perf_local_is_on(event) &&
	       !perf_local_is_stopped(event);
}

/**
 * perf_local_refresh_page() - show user space a count that perf_local_subtract() has changed
 * @event: an event with a user page
 *
 * In the PMU's interrupt perf core updates the page, too, by plain increments of the page's lock.
 * If both updates nested, readers could find the same lock value for two contents. So this call
 * holds the PMU, which then raises no new interrupt.
 *
 * Context: Interrupts off, or the PMU's own NMI; @event is on this CPU, or off its PMU.
 */
void perf_local_refresh_page(struct perf_event *event)
{
	bool on = perf_local_is_on(event);

	if (on)
		perf_local_hold(event->pmu);
	if (perf_local_page_wants_start(event))
		perf_local_restart(event);
	else
		perf_local_update_page(event);
	if (on)
		perf_local_release(event->pmu);
}
EXPORT_SYMBOL_GPL(perf_local_refresh_page);

/* ---- was the overflow served? ---- */

/**
 * perf_local_stops_after_nmi() - must the event run until this NMI ends?
 * @event: an event that is on this CPU, and has a period
 * @mask: the bits of its register, from perf_arch_mask(); not 0
 *
 * Context: Any, NMI too; interrupts off.
 * Return: true if this NMI is that of @event's PMU, the driver has yet to serve an overflow of
 * @event, and the driver warns if it finds that event stopped.
 */
bool perf_local_stops_after_nmi(const struct perf_event *event, u64 mask)
{
	u64 since, raw;

	if (!in_nmi() || !perf_arch_stops_after_nmi() || perf_local_is_foreign_nmi(event) ||
	    perf_local_is_stopped(event))
		return false;
	since = perf_local_count_direct(event, mask, &raw) - local64_read(&event->count);
	return (s64)since >= local64_read(&event->hw.period_left);
}
EXPORT_SYMBOL_GPL(perf_local_stops_after_nmi);

/**
 * perf_local_take_overflow() - handle an overflow whose interrupt was lost
 * @event: a disabled event with perf_local_has_overflowed()
 *
 * Leaves the events counted beyond the period to the next period. If these are a whole period or
 * more, they are dropped, as drivers drop them. perf_local_last_period() is still the period that
 * has ended, until perf_local_end_taken().
 *
 * Context: Any; @event is disabled.
 */
void perf_local_take_overflow(struct perf_event *event)
{
	struct hw_perf_event *hwc = &event->hw;
	s64 left = local64_read(&hwc->period_left) + hwc->sample_period;

	/* With 0, the event would look overflowed again until a driver starts it. */
	local64_set(&hwc->period_left, left > 0 ? left : (s64)hwc->sample_period);
}
EXPORT_SYMBOL_GPL(perf_local_take_overflow);
