/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kernel code that has created an event uses these calls on the event's own CPU, in any context,
 * NMI included. The calls read the event in a few instructions, stop it and let it go on, begin a
 * period, and tell whether an overflow was served. So consumers leave the event's fields to perf
 * core.
 *
 * Callers have interrupts off or are in NMI, and have found the event with perf_local_is_on(),
 * unless a call's comment asks for less. kernel/events/local.c has the calls that are not inline.
 */
#ifndef _LINUX_PERF_LOCAL_H
#define _LINUX_PERF_LOCAL_H

#include <linux/perf_event.h>
#include <linux/perf_local_core.h>
#include <linux/smp.h>
#include <asm/perf_arch.h>

struct task_struct;

/* ---- where an event is, and what perf core knows of it ---- */

/*
 * Only perf's own types name the core PMU for certain: a dynamic type may be any driver's, whose
 * register numbers mean something else.
 */
static inline bool perf_arch_core_event(const struct perf_event *event)
{
	switch (event->attr.type) {
	case PERF_TYPE_HARDWARE:
	case PERF_TYPE_HW_CACHE:
	case PERF_TYPE_RAW:
		return event->pmu->task_ctx_nr == perf_hw_context;
	default:
		return false;
	}
}

/* Returns true if @event is on this CPU's PMU now. The caller cannot leave the CPU. */
static inline bool perf_local_is_on(const struct perf_event *event)
{
	return READ_ONCE(event->oncpu) == raw_smp_processor_id();
}

/* Returns true if @event is on no PMU now, neither here nor on another CPU. */
static inline bool perf_local_is_off(const struct perf_event *event)
{
	return READ_ONCE(event->oncpu) < 0;
}

/* The task that @event counts, or NULL. Const while the event exists. */
static inline struct task_struct *perf_local_task(const struct perf_event *event)
{
	return event->hw.target;
}

/*
 * Returns perf core's count as of its latest update. In the overflow handler, which comes right
 * after an update, the event has counted no more.
 */
static inline u64 perf_local_updated(const struct perf_event *event)
{
	return local64_read(&event->count);
}

/* x86's driver lets user space read the registers of this event. Const while the event exists. */
static inline bool perf_local_may_user_read(const struct perf_event *event)
{
#ifdef PERF_EVENT_FLAG_USER_READ_CNT
	return event->hw.flags & PERF_EVENT_FLAG_USER_READ_CNT;
#else
	return false;
#endif
}

/* ---- fast reads ---- */

/* A read of an event, which is valid if perf_local_read_changed() returns 0. */
struct perf_local_read {
	u64 stamp;
	struct perf_arch_place place;
	u64 base;
	u64 prev;
	u64 raw;
};

/*
 * The first half looks where @event is. @event's register may be read if this returns 0. Interrupts
 * may be on. The caller cannot leave the CPU, or reads an event of its own task on a machine whose
 * CPUs all have that register.
 */
static __always_inline u64 perf_local_read_where(const struct perf_event *event,
						 struct perf_local_read *read)
{
	read->stamp = READ_ONCE(event->tstamp);
	read->place = perf_arch_where(event);
	return perf_arch_changed(raw_smp_processor_id(), event->oncpu);
}

static __always_inline void perf_local_read_register(const struct perf_event *event,
						     struct perf_local_read *read)
{
	read->base = local64_read(&event->count);
	read->prev = local64_read(&event->hw.prev_count);
	read->raw = perf_arch_read_at(event, &read->place);
}

static __always_inline u64 perf_local_read_value(const struct perf_local_read *read, u64 mask)
{
	return read->base + ((read->raw - read->prev) & mask);
}

/*
 * Returns nonzero if an interrupt has moved or updated @event in the middle. perf core stamps an
 * event when it puts the event on a PMU or takes it off, perf_arch_is_moved() finds moves by the
 * driver, and all other changes move the count or prev_count.
 *
 * The differences are or-ed, for one branch instead of many: nearly always all are 0.
 */
static __always_inline u64 perf_local_read_changed(const struct perf_event *event,
						   const struct perf_local_read *read)
{
	return perf_arch_count_changed(read->prev, event->hw.prev_count) |
	       perf_arch_count_changed(read->base, event->count) |
	       perf_arch_changed(read->stamp, event->tstamp) |
	       perf_arch_is_moved(event, &read->place);
}

#ifdef perf_arch_read_on

/*
 * Returns false if @event is in no register that perf_arch_read_on() reads. The caller checks
 * afterwards whether an interrupt came in between, which may have stopped the event; it cannot have
 * freed the event before this reader has gone on.
 */
static __always_inline bool perf_local_read_undisturbed(const struct perf_event *event, u64 mask,
							u64 *count)
{
	u64 raw;

	if (unlikely(!perf_arch_read_on(event, &raw)))
		return false;
	raw -= local64_read(&event->hw.prev_count);
	*count = local64_read(&event->count) + (raw & mask);
	return true;
}

#endif

u64 perf_local_count(struct perf_event *event, u64 mask);
void perf_local_times(const struct perf_event *event, u64 *enabled, u64 *running);

/* ---- whose interrupt this is ---- */

struct pmu *perf_local_serve(const struct perf_event *event);
void perf_local_served(struct pmu *outer);
bool perf_local_is_foreign_nmi(const struct perf_event *event);
bool perf_local_is_out_of_reach(const struct perf_event *event);

/* ---- stop, and go on ---- */

/* The value of hw.interrupts of an event that perf core has throttled. */
#define PERF_LOCAL_THROTTLED	U64_MAX

/* Returns true if perf core has stopped the event until a tick, or is about to stop it. */
static inline bool perf_local_is_throttled(const struct perf_event *event)
{
	return event->hw.interrupts == PERF_LOCAL_THROTTLED;
}

/* Takes back @extra events, which the hardware has counted and the caller does not want. */
static inline void perf_local_subtract(struct perf_event *event, u64 extra)
{
	local64_sub(extra, &event->count);
}

bool perf_local_stop(struct perf_event *event);
void perf_local_start(struct perf_event *event, bool held);
void perf_local_unthrottle(struct perf_event *event);
bool perf_local_never_throttle(struct perf_event *event, bool held, bool may_start);
void perf_local_refresh_page(struct perf_event *event);

/* ---- periods ---- */

/* The period after the one that the driver has just begun, or is about to begin. */
static inline void perf_local_set_next_period(struct perf_event *event, u64 period)
{
	event->hw.sample_period = period;
}

/*
 * The period that begins with @event's next start, or that a clock's timer begins when it expires.
 * perf core does not set a clock's ->last_period, but takes the period of samples from there.
 */
static inline void perf_local_set_period(struct perf_event *event, u64 period)
{
	event->hw.sample_period = period;
	event->hw.last_period = period;
}

static inline u64 perf_local_last_period(const struct perf_event *event)
{
	return event->hw.last_period;
}

/* The next start of @event finds @left of the period, or begins a whole one if @left is 0. */
static inline void perf_local_set_left(struct perf_event *event, s64 left)
{
	local64_set(&event->hw.period_left, left);
}

/* Returns true if @event, which is stopped, has reached the end of its period. */
static inline bool perf_local_has_overflowed(const struct perf_event *event)
{
	return local64_read(&event->hw.period_left) <= 0;
}

bool perf_local_stops_after_nmi(const struct perf_event *event, u64 mask);
void perf_local_take_overflow(struct perf_event *event);

#endif /* _LINUX_PERF_LOCAL_H */
