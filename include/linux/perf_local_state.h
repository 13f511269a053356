/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kernel code that has created an event learns from these calls what has become of the event, and
 * what the event's PMU can do. The calls may be made on any CPU. kernel/events/local_state.c has
 * those that are not inline, and linux/perf_local.h those for the event's own CPU.
 */
#ifndef _LINUX_PERF_LOCAL_STATE_H
#define _LINUX_PERF_LOCAL_STATE_H

#include <linux/compiler.h>
#include <linux/perf_event.h>
#include <linux/types.h>

struct module;
struct mutex;

/*
 * Reads a field that perf core, or the task whose field it is, stores plainly. A plain store of an
 * aligned word does not tear, so the reader sees the old word or the new one.
 */
#ifndef perf_local_peek		/* a test may define it */
#define perf_local_peek(field)	data_race(READ_ONCE(field))
#endif

/* ---- the event ---- */

/**
 * perf_local_cpu() - the CPU that an event counts
 * @event: the event
 *
 * The driver of a PMU that exists once for several CPUs moves the PMU's events to another CPU when
 * their CPU goes offline.
 *
 * Context: Any, NMI too.
 * Return: the CPU; -1 for an event that follows its task.
 */
static inline int perf_local_cpu(const struct perf_event *event)
{
	return perf_local_peek(event->cpu);
}

/**
 * perf_local_state() - the state of an event
 * @event: the event
 *
 * If perf core swaps the contexts of a parent and a child, and with them an inherited event, the
 * state may tell of the child.
 *
 * Context: Any, NMI too.
 * Return: the state, which may change at any time.
 */
static inline enum perf_event_state perf_local_state(const struct perf_event *event)
{
	return perf_local_peek(event->state);
}

/**
 * perf_local_is_pmu_gone() - was an event's PMU unregistered?
 * @event: the event
 *
 * Context: Any, NMI too.
 * Return: true if the PMU was unregistered, and must not be touched. While the caller holds
 * perf_local_pmu_lock(), false means that the PMU stays.
 */
static inline bool perf_local_is_pmu_gone(const struct perf_event *event)
{
	return perf_local_state(event) < PERF_EVENT_STATE_EXIT;
}

/**
 * perf_local_is_handled_by() - is this function the overflow handler of an event?
 * @event: the event, which may be another creator's
 * @handler: the function
 *
 * Context: Any, NMI too.
 * Return: true if perf core calls @handler at overflows of @event.
 */
static inline bool perf_local_is_handled_by(const struct perf_event *event,
					    perf_overflow_handler_t handler)
{
	return READ_ONCE(event->overflow_handler) == handler;
}

bool perf_local_is_gone(const struct perf_event *event);
bool perf_local_has_child_off(struct perf_event *event);

/* ---- the event's PMU ---- */

/**
 * perf_local_pmu_lock() - the mutex that keeps an event's PMU from being freed
 * @event: the event
 *
 * Unregistering a PMU marks the PMU's events as revoked, then takes each event's mutex, and frees
 * the PMU last. So while the mutex is held, the PMU of an event that is not revoked stays. This
 * holds for a new event, too: its PMU may be unregistered before the creator has used it.
 *
 * Context: Any; to hold the mutex, a caller must be able to sleep.
 * Return: the mutex.
 */
static inline struct mutex *perf_local_pmu_lock(struct perf_event *event)
{
	return &event->mmap_mutex;
}

/**
 * perf_local_pmu_name() - the name of an event's PMU
 * @event: the event
 *
 * Context: Any; @event is on its PMU, or the caller holds perf_local_pmu_lock().
 * Return: the name, as in sysfs.
 */
static inline const char *perf_local_pmu_name(const struct perf_event *event)
{
	return event->pmu->name;
}

/**
 * perf_local_pmu_can() - has an event's PMU this capability?
 * @event: the event
 * @capability: PERF_PMU_CAP_*
 *
 * Context: Any, NMI too; @event is on its PMU, or the caller holds perf_local_pmu_lock().
 * Return: true if the PMU has @capability.
 */
static inline bool perf_local_pmu_can(const struct perf_event *event, int capability)
{
	return event->pmu->capabilities & capability;
}

/**
 * perf_local_counts_tasks() - is an event on hardware that can count a task?
 * @event: the event
 *
 * Context: Any; @event is on its PMU, or the caller holds perf_local_pmu_lock().
 * Return: true if so, as for the CPU's own PMU; false for uncore PMUs and software events.
 */
static inline bool perf_local_counts_tasks(const struct perf_event *event)
{
	return event->pmu->task_ctx_nr == perf_hw_context;
}

/**
 * perf_local_has_snapshot_aux() - can the driver copy what its hardware has traced?
 * @event: the event, of a PMU that traces
 *
 * Context: Any; @event is on its PMU, or the caller holds perf_local_pmu_lock().
 * Return: true if so, see perf_local_can_snapshot_aux().
 */
static inline bool perf_local_has_snapshot_aux(const struct perf_event *event)
{
	return event->pmu->snapshot_aux;
}

bool perf_local_can_snapshot_aux(const struct perf_event *event);
long perf_local_snapshot_aux(struct perf_event *event, void *to, unsigned long size);

/* Frees what perf_local_setup_aux() has returned. */
typedef void (*perf_local_free_aux_t)(void *aux);

bool perf_local_task_has_pinned(struct perf_event *event);
struct module *perf_local_get_driver(const struct perf_event *event,
				     perf_local_free_aux_t *free_aux);
void *perf_local_setup_aux(const struct perf_event *event, int cpu, pid_t session, void **pages,
			   int nr_pages, bool overwrite);

#endif /* _LINUX_PERF_LOCAL_STATE_H */
