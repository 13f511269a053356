// SPDX-License-Identifier: GPL-2.0
/*
 * Says when a CPU's PMU may be tried for room.
 *
 * Only perf core can tell whether a pinned event fits, by placing the event. perf core places the
 * pinned events of a CPU before those of the task that runs there, and leaves a task's pinned event
 * that finds no counter in PERF_EVENT_STATE_ERROR, until the user enables that event again. A
 * counter that is enabled may push a task's event out like this. A counter that is only tried must
 * not.
 */
#include <linux/cleanup.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/perf_local_core.h>
#include <linux/smp.h>

#include "counter.h"

struct pmuk_room {
	const struct perf_event *event;
	bool shared;
};

/* Runs on the event's CPU with interrupts off, so that the task there is not switched out. */
static void pmuk_room_check(void *data)
{
	struct pmuk_room *room = data;
	const struct perf_event_pmu_context *task;

	task = perf_pmu_contexts(room->event->pmu, smp_processor_id())->task_epc;
	room->shared = task && !list_empty(&task->pinned_active);
}

/*
 * Returns true if the task that runs on @c's CPU has pinned events on @c's PMU now. A task that
 * begins to run before the trial has ended can still lose a pinned event. The trial takes some
 * microseconds, and longer if its caller is preempted on that CPU.
 *
 * Unregistering a PMU marks its events as revoked, then takes each event's mmap_mutex, and frees
 * the PMU last. So while the mutex is held, the PMU of an event that is not marked stays.
 */
bool pmuk_room_is_shared(const struct pmuk_counter *c)
{
	struct pmuk_room room = { .event = c->event };

	guard(mutex)(&c->event->mmap_mutex);
	if (!pmuk_counter_is_pmu_gone(c))
		smp_call_function_single(c->event->cpu, pmuk_room_check, &room, true);
	return room.shared;
}
