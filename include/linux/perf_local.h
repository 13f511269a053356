/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kernel code that has created an event uses these calls on the event's own CPU, in any context,
 * NMI included. The calls read the event in a few instructions, stop it and let it go on, begin a
 * period, and tell whether an overflow was served. So consumers leave the event's fields to perf
 * core.
 *
 * Callers have interrupts off or are in NMI, and perf_local_is_on() is true for the event, unless a
 * call's comment asks for less. The calls for periods are also for an event that is off its PMU.
 * kernel/events/local.c has the calls that are not inline.
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

/* Returns true if the driver lets user space read @event's register. Const while @event exists. */
static inline bool perf_local_may_user_read(const struct perf_event *event)
{
#ifdef PERF_EVENT_FLAG_USER_READ_CNT
	return event->hw.flags & PERF_EVENT_FLAG_USER_READ_CNT;
#else
	return false;
#endif
}

/* ---- fast reads ---- */

/*
 * A read of an event that has a perf_arch_mask(). perf_local_read_where() returns 0 if the event is
 * on this CPU's PMU, and perf_local_read_changed() returns 0 if no interrupt has changed the event
 * in the middle. Interrupts may be on. The caller cannot leave the CPU.
 */
struct perf_local_read {
#ifdef perf_arch_irqs
	const unsigned long *irqs;
	unsigned long irqs_before;
#else
	u64 stamp;
	struct perf_arch_place place;
#endif
	u64 base;
	u64 prev;
	u64 raw;
};

static __always_inline u64 perf_local_read_value(const struct perf_local_read *read, u64 mask)
{
	return read->base + ((read->raw - read->prev) & mask);
}

#ifdef perf_arch_irqs

static __always_inline u64 perf_local_read_where(const struct perf_event *event,
						 struct perf_local_read *read)
{
	read->irqs = perf_arch_irqs();
	read->irqs_before = READ_ONCE(*read->irqs);
	barrier();	/* an interrupt from here on is counted, or comes after all is read */
	return perf_arch_changed(raw_smp_processor_id(), event->oncpu);
}

/* Returns false if perf_arch_read_on() does not read @event's register. */
static __always_inline bool perf_local_read_register(const struct perf_event *event,
						     struct perf_local_read *read)
{
	if (unlikely(!perf_arch_read_on(event, &read->raw)))
		return false;
	read->prev = local64_read(&event->hw.prev_count);
	read->base = local64_read(&event->count);
	return true;
}

/*
 * Returns nonzero if an interrupt came: nothing else moves or updates @event while the caller is on
 * this CPU. Breakpoints, kprobes and other debug exceptions, and SDEI events, do not add to that
 * number. If one of them comes during the read, its overflow callback must not change @event.
 */
static __always_inline u64 perf_local_read_changed(const struct perf_event *event,
						   const struct perf_local_read *read)
{
	barrier();
	return read->irqs_before ^ READ_ONCE(*read->irqs);
}

#else

static __always_inline u64 perf_local_read_where(const struct perf_event *event,
						 struct perf_local_read *read)
{
	read->stamp = READ_ONCE(event->tstamp);
	read->place = perf_arch_where(event);
	return perf_arch_changed(raw_smp_processor_id(), event->oncpu);
}

static __always_inline bool perf_local_read_register(const struct perf_event *event,
						     struct perf_local_read *read)
{
	read->base = local64_read(&event->count);
	read->prev = local64_read(&event->hw.prev_count);
	read->raw = perf_arch_read_at(event, &read->place);
	return true;
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

#endif

/*
 * Sets @base to perf core's count of @event, and returns @raw, the register's value, less the value
 * that the register had at that count. The caller masks out the bits that the register lacks, and
 * checks whether an interrupt came since it read the register, which may have stopped the event.
 * The event is not freed while the caller has preemption off.
 */
static __always_inline u64 perf_local_undisturbed(const struct perf_event *event, u64 raw,
						  u64 *base)
{
	*base = local64_read(&event->count);
	return raw - local64_read(&event->hw.prev_count);
}

u64 perf_local_count(struct perf_event *event, u64 mask);
void perf_local_times(const struct perf_event *event, u64 *enabled, u64 *running);
u64 perf_local_last_value(const struct perf_event *event, u64 *enabled, u64 *running);

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

/*
 * Sets the period that the driver begins next. If the driver has begun a period before it called
 * the overflow handler, that period stays as it is.
 */
static inline void perf_local_set_next_period(struct perf_event *event, u64 period)
{
	event->hw.sample_period = period;
}

/*
 * Sets the period that begins with @event's next start, or, for cpu-clock and task-clock, when
 * their timer expires next. perf core does not update ->last_period of these two, but takes the
 * period of their samples from there.
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
