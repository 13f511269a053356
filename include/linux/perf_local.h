/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kernel code that has created an event uses these calls on the event's own CPU, in any context,
 * NMI included. The calls read the event in a few instructions, stop it and let it go on, begin a
 * period, and tell whether an overflow was served. So consumers leave the event's fields to perf
 * core.
 *
 * "On its CPU" below means: the caller has interrupts off or is in NMI, and perf_local_is_on() is
 * true for the event. kernel/events/local.c has the calls that are not inline.
 * linux/perf_local_state.h has those that tell what has become of an event.
 */
#ifndef _LINUX_PERF_LOCAL_H
#define _LINUX_PERF_LOCAL_H

#include <linux/perf_event.h>
#include <linux/perf_local_core.h>
#include <linux/perf_local_state.h>
#include <linux/smp.h>
#include <asm/perf_arch.h>

struct task_struct;

/*
 * The initializer of a struct perf_event that is in no register: readers of registers leave it to
 * their slow path.
 */
#define PERF_LOCAL_NONE	{ .hw = { .idx = -1, .state = PERF_HES_STOPPED } }

/* ---- where an event is, and what perf core knows of it ---- */

/**
 * perf_arch_core_event() - does the CPU's own PMU count this event?
 * @event: the event
 *
 * Only perf's own types name the core PMU for certain: a dynamic type may be any driver's, whose
 * register numbers mean something else.
 *
 * Context: Any, NMI too.
 * Return: true if perf_arch_mask() may be asked about @event. Const while @event exists.
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

/**
 * perf_local_is_on() - is an event on this CPU's PMU now?
 * @event: the event
 *
 * Context: Any, NMI too; the caller cannot leave the CPU.
 * Return: true if @event is on this CPU's PMU.
 */
static inline bool perf_local_is_on(const struct perf_event *event)
{
	return perf_local_peek(event->oncpu) == raw_smp_processor_id();
}

/**
 * perf_local_runs() - does an event count now?
 * @event: the event
 *
 * Context: Any, NMI too; the caller cannot leave the CPU.
 * Return: true if @event is on this CPU's PMU, and started.
 */
static inline bool perf_local_runs(const struct perf_event *event)
{
	return perf_local_is_on(event) && !(perf_local_peek(event->hw.state) & PERF_HES_STOPPED);
}

/**
 * perf_local_is_off() - is an event on no PMU now?
 * @event: the event
 *
 * Context: Any, NMI too.
 * Return: true if @event is on no PMU, neither here nor on another CPU.
 */
static inline bool perf_local_is_off(const struct perf_event *event)
{
	return perf_local_peek(event->oncpu) < 0;
}

/**
 * perf_local_task() - the task that an event counts
 * @event: the event
 *
 * Context: Any, NMI too.
 * Return: the task, or NULL for an event of a CPU. Const while @event exists.
 */
static inline struct task_struct *perf_local_task(const struct perf_event *event)
{
	return event->hw.target;
}

/**
 * perf_local_is_tracepoint() - is an event a tracepoint, kprobe or uprobe?
 * @event: the event
 *
 * Context: Any, NMI too.
 * Return: true if a tracepoint or a probe counts @event. Const while @event exists.
 */
static inline bool perf_local_is_tracepoint(const struct perf_event *event)
{
#ifdef CONFIG_EVENT_TRACING
	return event->tp_event;
#else
	return false;
#endif
}

/**
 * perf_local_updated() - perf core's count as of its latest update
 * @event: the event
 *
 * In the overflow handler, which comes right after an update, the event has counted no more.
 *
 * Context: Any, NMI too.
 * Return: the number of events since @event was created, without those that only the register has.
 */
static inline u64 perf_local_updated(const struct perf_event *event)
{
	return local64_read(&event->count);
}

/*
 * Most drivers do not know this bit of hw.state, and clear it when they start or place an event.
 * See pmuk_counter_can_mark() for the others.
 */
#define PERF_LOCAL_MARK		0x100

static inline void perf_local_set_mark(struct perf_event *event, int mark)
{
	int was = perf_local_peek(event->hw.state);

	/* An NMI may change hw.state meanwhile. */
	while (!try_cmpxchg(&event->hw.state, &was, (was & ~PERF_LOCAL_MARK) | mark))
		;
}

/**
 * perf_local_mark() - mark an event; its next start clears the mark
 * @event: an event of a PMU in hardware that has interrupts and traces nothing
 *
 * Context: Any, NMI too; on its CPU.
 */
static inline void perf_local_mark(struct perf_event *event)
{
	perf_local_set_mark(event, PERF_LOCAL_MARK);
}

/**
 * perf_local_unmark() - remove the mark of perf_local_mark()
 * @event: the event
 *
 * Context: As perf_local_mark().
 */
static inline void perf_local_unmark(struct perf_event *event)
{
	perf_local_set_mark(event, 0);
}

/**
 * perf_local_is_marked() - has nobody started an event since it was marked?
 * @event: the event
 *
 * Context: Any, NMI too; on its CPU.
 * Return: true if @event is marked, and its driver has neither started it nor placed it on the PMU
 * since. Only an overflow may have loaded its register.
 */
static inline bool perf_local_is_marked(const struct perf_event *event)
{
	return perf_local_peek(event->hw.state) & PERF_LOCAL_MARK;
}

/**
 * perf_local_may_user_read() - may user space read an event's register?
 * @event: the event
 *
 * Context: Any, NMI too.
 * Return: true if the PMU's driver lets user space read the register. Const while @event exists.
 */
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
 * A read of an event that has a perf_arch_mask() takes perf_local_read_begin(),
 * perf_local_read_where(), perf_local_read_register(), perf_local_read_value() and
 * perf_local_read_changed(), in this order. Interrupts may be on. Where the architecture counts the
 * interrupts of a CPU, the first variant of these functions uses that number.
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

/**
 * perf_local_read_where() - is the event of a read elsewhere?
 * @event: an event that has a perf_arch_mask()
 *
 * Context: Any, NMI too; the caller cannot leave the CPU.
 * Return: 0 if @event is on this CPU's PMU.
 */
static __always_inline u64 perf_local_read_where(const struct perf_event *event)
{
	return perf_arch_changed(raw_smp_processor_id(), event->oncpu);
}

/**
 * perf_local_read_value() - the count that a read has found
 * @read: the read, after perf_local_read_register()
 * @mask: the bits of the register, from perf_arch_mask()
 *
 * Context: Any, NMI too; the caller cannot leave the CPU.
 * Return: the number of events since the event was created, if perf_local_read_changed() then
 * returns 0.
 */
static __always_inline u64 perf_local_read_value(const struct perf_local_read *read, u64 mask)
{
	return read->base + ((read->raw - read->prev) & mask);
}

#ifdef perf_arch_irqs

/**
 * perf_local_read_begin() - begin a read
 * @event: an event that has a perf_arch_mask()
 *
 * Context: Any, NMI too; the caller cannot leave the CPU.
 * Return: the read. The caller initializes its variable with this: with CONFIG_INIT_STACK_ALL_ZERO,
 * the compiler would clear a struct without an initializer, which takes ten instructions.
 */
static __always_inline struct perf_local_read perf_local_read_begin(const struct perf_event *event)
{
	const unsigned long *irqs = perf_arch_irqs();
	struct perf_local_read read = { .irqs = irqs, .irqs_before = READ_ONCE(*irqs) };

	barrier();	/* an interrupt from here on is counted, or comes after all is read */
	return read;
}

/**
 * perf_local_read_register() - read an event's register, and perf core's count
 * @event: the event
 * @read: the read, from perf_local_read_begin(); perf_local_read_where() has returned 0
 *
 * Context: Any, NMI too; the caller cannot leave the CPU.
 * Return: false if perf_arch_read_on() does not read @event's register.
 */
static __always_inline bool perf_local_read_register(const struct perf_event *event,
						     struct perf_local_read *read)
{
	if (unlikely(!perf_arch_read_on(event, &read->raw)))
		return false;
	read->prev = local64_read(&event->hw.prev_count);
	read->base = local64_read(&event->count);
	return true;
}

/**
 * perf_local_read_changed() - has an interrupt changed the event in the middle of a read?
 * @event: the event
 * @read: the read, after perf_local_read_register()
 *
 * With a number of interrupts, any interrupt counts as a change: nothing else moves or updates
 * @event while the caller is on this CPU. Breakpoints, kprobes and other debug exceptions, and SDEI
 * events, do not add to that number. If one of them comes during the read, its overflow callback
 * must not change @event.
 *
 * Context: Any, NMI too; the caller cannot leave the CPU.
 * Return: 0 if no interrupt has changed @event.
 */
static __always_inline u64 perf_local_read_changed(const struct perf_event *event,
						   const struct perf_local_read *read)
{
	barrier();
	return read->irqs_before ^ READ_ONCE(*read->irqs);
}

#else

static __always_inline struct perf_local_read perf_local_read_begin(const struct perf_event *event)
{
	return (struct perf_local_read){
		.stamp = perf_local_peek(event->tstamp), .place = perf_arch_where(event) };
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
 * perf core stamps an event when it puts the event on a PMU or takes it off, perf_arch_is_moved()
 * finds moves by the driver, and all other changes move the count or prev_count.
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

/**
 * perf_local_prev() - the value that perf core has last seen in an event's register
 * @event: the event; it is not freed while the caller has preemption off
 *
 * The count is perf_local_base(), plus what the register has counted since this value. The caller
 * checks whether an interrupt came since it read the register, which may have stopped @event.
 * Neither this load nor that of perf_local_base() is volatile, so each can be an operand in memory.
 *
 * Context: Not NMI; preemption off, on the CPU where @event is.
 * Return: the value; it may have more bits than the register.
 */
static __always_inline u64 perf_local_prev(const struct perf_event *event)
{
	/* The caller detects that an interrupt has changed this. */
	return data_race(*(const u64 *)&event->hw.prev_count);
}

/**
 * perf_local_base() - the count of an event at perf_local_prev()
 * @event: as for perf_local_prev()
 *
 * Context: As perf_local_prev().
 * Return: the number of events.
 */
static __always_inline u64 perf_local_base(const struct perf_event *event)
{
	/* The caller detects that an interrupt has changed this. */
	return data_race(*(const u64 *)&event->count);
}

u64 perf_local_count(struct perf_event *event, u64 mask, u64 *raw);
u64 perf_local_now(const struct perf_event *event);
u64 perf_local_stamp(const struct perf_event *event);
void perf_local_times(const struct perf_event *event, u64 now, u64 *enabled, u64 *running);
u64 perf_local_last_value(const struct perf_event *event, u64 *enabled, u64 *running);

/* ---- whose interrupt this is ---- */

struct pmu *perf_local_serve(const struct perf_event *event);
void perf_local_served(struct pmu *outer);
bool perf_local_is_foreign_nmi(const struct perf_event *event);
bool perf_local_is_out_of_reach(const struct perf_event *event);

/* ---- stop, and go on ---- */

/* The value of hw.interrupts of an event that perf core has throttled. */
#define PERF_LOCAL_THROTTLED	U64_MAX

/**
 * perf_local_is_throttled() - has perf core throttled an event?
 * @event: the event
 *
 * Context: Any, NMI too; on its CPU.
 * Return: true if perf core has stopped @event until a tick, or is about to stop it.
 */
static inline bool perf_local_is_throttled(const struct perf_event *event)
{
	return perf_local_peek(event->hw.interrupts) == PERF_LOCAL_THROTTLED;
}

/**
 * perf_local_subtract() - take events off a count
 * @event: the event
 * @extra: how many events the hardware has counted and the caller does not want
 *
 * Context: Any, NMI too; on its CPU, or @event is off its PMU.
 */
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

/**
 * perf_local_takes_period() - ask the PMU's driver whether it accepts a period
 * @event: an event of a PMU that cannot be unregistered now
 * @period: the period
 *
 * Context: Any, NMI too.
 * Return: true if @event may have @period.
 */
static inline bool perf_local_takes_period(struct perf_event *event, u64 period)
{
	return !event->pmu->check_period(event, period);
}

/**
 * perf_local_set_next_period() - set the period that the driver begins next
 * @event: the event
 * @period: the period
 *
 * If the driver has begun a period before it called the overflow handler, that period stays as it
 * is.
 *
 * Context: Any, NMI too; on its CPU, or @event is off its PMU.
 */
static inline void perf_local_set_next_period(struct perf_event *event, u64 period)
{
	/* If the driver's NMI comes now, it reads the old period or the new one. */
	WRITE_ONCE(event->hw.sample_period, period);
}

/**
 * perf_local_set_period() - set the period that begins with an event's next start
 * @event: the event
 * @period: the period
 *
 * The period of cpu-clock and task-clock begins when their timer expires next. perf core does not
 * update hw.last_period of these two, but takes the period of their samples from there.
 *
 * Context: Any, NMI too; on its CPU, or @event is off its PMU.
 */
static inline void perf_local_set_period(struct perf_event *event, u64 period)
{
	perf_local_set_next_period(event, period);
	event->hw.last_period = period;
}

/**
 * perf_local_last_period() - the period in the sample of an event's latest overflow
 * @event: the event
 *
 * Context: Any, NMI too; on its CPU, or @event is off its PMU.
 * Return: the period, in events.
 */
static inline u64 perf_local_last_period(const struct perf_event *event)
{
	return event->hw.last_period;
}

/**
 * perf_local_end_taken() - the sample of an overflow that was taken is complete
 * @event: an event on which perf_local_take_overflow() was called, and which was not started since
 *
 * The next sample has the period that perf_local_take_overflow() has begun. The driver does not
 * begin that period again, so it does not set hw.last_period.
 *
 * Context: Any, NMI too; @event is disabled.
 */
static inline void perf_local_end_taken(struct perf_event *event)
{
	event->hw.last_period = event->hw.sample_period;
}

/**
 * perf_local_set_left() - set what the next start of an event finds left of the period
 * @event: the event
 * @left: the number of events until the overflow; 0 to begin a whole period
 *
 * Context: Any, NMI too; on its CPU and stopped, or @event is off its PMU.
 */
static inline void perf_local_set_left(struct perf_event *event, s64 left)
{
	local64_set(&event->hw.period_left, left);
}

/**
 * perf_local_passes_end() - does a software event reach the end of its period?
 * @event: an event whose period counts up to 0, that has just overflowed
 * @events: the period in the overflow's sample
 *
 * perf core reports events that come at once as several overflows of @events each, and has begun
 * the next period before the first of them. If the handler has made that period longer, the other
 * overflows may be part of the period. This function then adds the events of one of them.
 *
 * Context: Any, NMI too; on its CPU.
 * Return: true if the period ends: then perf_local_change_begun() is to follow.
 */
static inline bool perf_local_passes_end(struct perf_event *event, u64 events)
{
	if (local64_read(&event->hw.period_left) + (s64)events >= 0)
		return true;
	local64_add(events, &event->hw.period_left);
	return false;
}

/**
 * perf_local_change_begun() - change the period that a software event has begun at an overflow
 * @event: an event for which perf_local_passes_end() has returned true
 * @events: the period in the overflow's sample
 * @period: the new period
 *
 * Context: Any, NMI too; on its CPU.
 */
static inline void perf_local_change_begun(struct perf_event *event, u64 events, u64 period)
{
	perf_local_set_period(event, period);
	local64_add(events - period, &event->hw.period_left);
}

/**
 * perf_local_end() - the count at which the period of an event ends
 * @event: the event
 *
 * Context: Any, NMI too; on its CPU, or @event is off its PMU.
 * Return: perf core's count at the next overflow, or what it has to be.
 */
static inline u64 perf_local_end(const struct perf_event *event)
{
	return local64_read(&event->count) + local64_read(&event->hw.period_left);
}

/**
 * perf_local_has_overflowed() - has a stopped event reached the end of its period?
 * @event: the event
 *
 * Context: Any, NMI too; on its CPU and stopped, or @event is off its PMU.
 * Return: true if no event is left of the period.
 */
static inline bool perf_local_has_overflowed(const struct perf_event *event)
{
	return local64_read(&event->hw.period_left) <= 0;
}

/**
 * perf_local_is_overdue() - has an event's register passed the end of the period?
 * @event: an event of a PMU in hardware
 * @mask: the bits of its register, from perf_arch_mask(); not 0
 *
 * In the middle of an update of @event, the answer may lack events that the update has in flight.
 *
 * Context: Any, NMI too; on its CPU, and @event is on its PMU.
 * Return: true if the driver has yet to serve an overflow of @event.
 */
static inline bool perf_local_is_overdue(const struct perf_event *event, u64 mask)
{
	u64 since = (perf_arch_read(event) - local64_read(&event->hw.prev_count)) & mask;

	return local64_read(&event->hw.period_left) <= (s64)since;
}

bool perf_local_stops_after_nmi(const struct perf_event *event, u64 mask);
void perf_local_take_overflow(struct perf_event *event);

#endif /* _LINUX_PERF_LOCAL_H */
