// SPDX-License-Identifier: GPL-2.0
/*
 * Tells the creator of an event what has become of the event, and acts on the event's PMU where the
 * event itself need not be on it. See include/linux/perf_local_state.h.
 */
#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/perf_local.h>
#include <linux/perf_local_core.h>
#include <linux/perf_local_state.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>

/* ---- the event ---- */

/*
 * perf core may swap the contexts of a parent and a child, and with them an inherited event. After
 * the child's exit, @event has exited, too, and the parent's context has a clone of @event, which
 * counts on. So an inherited event that has exited is gone only if its task has no context: perf
 * core took the context away when the task executed a privileged program. This cannot be seen any
 * more when the task gets another context, for another event.
 */
static bool perf_local_is_heir_gone(const struct perf_event *event, enum perf_event_state state)
{
	const struct task_struct *task = perf_local_task(event);

	return (perf_local_peek(task->flags) & PF_EXITING) ||
	       (state == PERF_EVENT_STATE_EXIT && !READ_ONCE(task->perf_event_ctxp));
}

/**
 * perf_local_is_gone() - will an event never count again?
 * @event: the event
 *
 * perf core takes a task's events away when the task executes a program that others may not watch,
 * such as one that is set-user-ID. For an event with inheritance, this function returns false again
 * if another event is created for that task later.
 *
 * Context: Any, NMI too.
 * Return: true if the event's PMU was unregistered, its CPU is offline, its task has exited, or
 * perf core has taken the event away from its task.
 */
bool perf_local_is_gone(const struct perf_event *event)
{
	enum perf_event_state state = perf_local_state(event);

	if (state < PERF_EVENT_STATE_EXIT)
		return true;
	if (event->attr.inherit)
		return perf_local_is_heir_gone(event, state);
	return state == PERF_EVENT_STATE_EXIT ||
	       !(perf_local_peek(event->attach_state) & PERF_ATTACH_CONTEXT);
}
EXPORT_SYMBOL_GPL(perf_local_is_gone);

/**
 * perf_local_has_child_off() - has a child inherited an event while the event was off?
 * @event: an event of a task, with inheritance
 *
 * If the parent's event is off at a fork, so is the child's, and perf_event_enable() of the
 * parent's event does not enable the child's.
 *
 * Context: May sleep.
 * Return: true if the event of a child is off.
 */
bool perf_local_has_child_off(struct perf_event *event)
{
	const struct perf_event *child;

	guard(mutex)(&event->child_mutex);
	list_for_each_entry(child, &event->child_list, child_list) {
		if (perf_local_state(child) == PERF_EVENT_STATE_OFF)
			return true;
	}
	return false;
}
EXPORT_SYMBOL_GPL(perf_local_has_child_off);

/* ---- the event's PMU ---- */

struct perf_local_pinned {
	const struct perf_event *event;
	bool found;
};

/* Runs on the event's CPU with interrupts off, so that the task there is not switched out. */
static void perf_local_find_pinned(void *data)
{
	struct perf_local_pinned *pinned = data;
	const struct perf_event_pmu_context *task;

	task = perf_pmu_contexts(pinned->event->pmu, smp_processor_id())->task_epc;
	pinned->found = task && !list_empty(&task->pinned_active);
}

/**
 * perf_local_task_has_pinned() - has the task that runs on an event's CPU pinned events?
 * @event: an event of a CPU
 *
 * perf core places the pinned events of a CPU before those of the task that runs there, and leaves
 * a task's pinned event that finds no counter in PERF_EVENT_STATE_ERROR, until the user enables
 * that event again. So enabling a pinned @event may push an event of that task out for good.
 *
 * Context: May sleep; interrupts the event's CPU.
 * Return: true if that task has pinned events on @event's PMU now, and the PMU is registered.
 */
bool perf_local_task_has_pinned(struct perf_event *event)
{
	struct perf_local_pinned pinned = { .event = event };

	guard(mutex)(perf_local_pmu_lock(event));
	if (!perf_local_is_pmu_gone(event))
		smp_call_function_single(perf_local_cpu(event), perf_local_find_pinned, &pinned,
					 true);
	return pinned.found;
}
EXPORT_SYMBOL_GPL(perf_local_task_has_pinned);

/**
 * perf_local_get_driver() - hold the module of a PMU that writes AUX areas
 * @event: an event of the PMU
 * @free_aux: where to put the function that frees what perf_local_setup_aux() returns; NULL if the
 *	driver has none
 *
 * perf core holds the module as long as @event exists. The caller may need @free_aux for longer.
 *
 * Context: The caller holds perf_local_pmu_lock(), and the PMU is not gone.
 * Return: the module, for module_put().
 */
struct module *perf_local_get_driver(const struct perf_event *event,
				     perf_local_free_aux_t *free_aux)
{
	__module_get(event->pmu->module);
	*free_aux = event->pmu->free_aux;
	return event->pmu->module;
}
EXPORT_SYMBOL_GPL(perf_local_get_driver);

/**
 * perf_local_setup_aux() - have a PMU's driver prepare an AUX area of one CPU
 * @event: an event of the PMU
 * @cpu: the CPU that writes the area
 * @session: for perf_event_aux_session()
 * @pages: the addresses of the area's pages
 * @nr_pages: how many
 * @overwrite: as of pmu::setup_aux()
 *
 * perf has an AUX area for an event of one CPU, or of a task without its children. An event of a
 * task, with its children, may have an area on each CPU. So each area is set up for an event of its
 * CPU: CoreSight's driver then lets all CPUs share what their hardware shares, and others choose
 * memory that is near. Only pmu::setup_aux() sees that event, and reads no other fields of it than
 * those that are set here.
 *
 * Context: May sleep; the caller holds perf_local_pmu_lock(), and the PMU is not gone.
 * Return: the driver's part of the area; or an ERR_PTR(): -ENOMEM.
 */
void *perf_local_setup_aux(const struct perf_event *event, int cpu, pid_t session, void **pages,
			   int nr_pages, bool overwrite)
{
	struct perf_event *one __free(kfree) = kzalloc_node(sizeof(*one), GFP_KERNEL, NUMA_NO_NODE);

	if (!one)
		return ERR_PTR(-ENOMEM);
	one->attr = event->attr;
	one->pmu = event->pmu;
	one->cpu = cpu;
	perf_event_set_aux_session(one, session);
	return one->pmu->setup_aux(one, pages, nr_pages, overwrite) ?: ERR_PTR(-ENOMEM);
}
EXPORT_SYMBOL_GPL(perf_local_setup_aux);

/**
 * perf_local_can_snapshot_aux() - can the driver copy what its hardware has traced, now?
 * @event: the event, whose AUX output has begun and not ended
 *
 * While perf core starts or stops the event, the driver may have its hardware half programmed.
 *
 * Context: Any, NMI too; on the event's CPU, with interrupts off.
 * Return: true if perf_local_snapshot_aux() can be called.
 */
bool perf_local_can_snapshot_aux(const struct perf_event *event)
{
	/* An NMI may have interrupted perf core while perf core changes this. */
	return perf_local_has_snapshot_aux(event) && !data_race(perf_pmu_disabled(event->pmu));
}
EXPORT_SYMBOL_GPL(perf_local_can_snapshot_aux);

/**
 * perf_local_snapshot_aux() - copy the newest of what a PMU has traced
 * @event: the event, for which perf_local_can_snapshot_aux() has returned true
 * @to: where to put the bytes
 * @size: number of bytes
 *
 * The driver copies what the hardware has written until now, and the hardware goes on. The caller
 * makes sure that this does not nest for one event.
 *
 * Context: Any, NMI too, on the event's CPU.
 * Return: The number of bytes that were copied, at most @size; or -errno.
 */
long perf_local_snapshot_aux(struct perf_event *event, void *to, unsigned long size)
{
	struct perf_output_handle out = { .addr = to, .size = size };

	guard(irqsave)();
	return event->pmu->snapshot_aux(event, &out, size);
}
EXPORT_SYMBOL_GPL(perf_local_snapshot_aux);
