// SPDX-License-Identifier: GPL-2.0
/*
 * This file tells when a CPU's PMU may be tried for room.
 *
 * Only perf core can tell whether a pinned event fits, by placing the event. It places the pinned
 * events of a CPU before those of the task that runs there, and leaves a task's pinned event that
 * finds no counter in PERF_EVENT_STATE_ERROR, until the user enables that again. A counter that
 * is to count has this right. A counter that is only tried must not use it.
 */
#include <linux/cleanup.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/smp.h>

#include "internal.h"

/* compat-include/ has the form of older kernels. */
#ifndef pmuk_cpu_pmu_context
#define pmuk_cpu_pmu_context(pmu, cpu)	(*per_cpu_ptr((pmu)->cpu_pmu_context, cpu))
#endif

struct pmuk_room {
	const struct perf_event *event;
	bool shared;
};

/* On the CPU of the event, with interrupts off, so the task that runs there stays. */
static void pmuk_room_look(void *data)
{
	struct pmuk_room *room = data;
	const struct perf_event_pmu_context *task;

	task = pmuk_cpu_pmu_context(room->event->pmu, smp_processor_id())->task_epc;
	room->shared = task && !list_empty(&task->pinned_active);
}

/*
 * True if the task that runs on @c's CPU has pinned events on @c's PMU now. A task that begins to
 * run before the trial has ended can still lose one. The trial takes some microseconds, and longer
 * where its caller is preempted on that CPU. Unregistering
 * the PMU marks its events as revoked, then takes each one's mmap_mutex, and frees the PMU last:
 * so the PMU of an event that is not marked stays while the mutex is held.
 */
bool pmuk_room_is_shared(const struct pmuk_counter *c)
{
	struct pmuk_room room = { .event = c->event };

	guard(mutex)(&c->event->mmap_mutex);
	if (!pmuk_counter_is_pmu_gone(c))
		smp_call_function_single(c->event->cpu, pmuk_room_look, &room, true);
	return room.shared;
}
