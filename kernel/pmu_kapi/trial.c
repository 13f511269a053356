// SPDX-License-Identifier: GPL-2.0
/*
 * Asks perf core whether a new pinned counter finds a register. A lock for each CPU keeps others
 * from creating counters there meanwhile.
 */
#include <kunit/visibility.h>
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/init.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/perf_local.h>

#include "share.h"

static DEFINE_PER_CPU(struct mutex, pmuk_trial_locks);
static DEFINE_PER_CPU(atomic_t, pmuk_trials);	/* trials of pmuk_counter_create() */

/*
 * Held from the creation of a CPU's counters to the end of their trial. perf core serves the older
 * of two pinned counters first: if others were created meanwhile, the trial could push them out for
 * good.
 */
struct mutex *pmuk_trial_lock(int cpu)
{
	return per_cpu_ptr(&pmuk_trial_locks, cpu);
}
EXPORT_SYMBOL_IF_KUNIT(pmuk_trial_lock);

/* Returns true if a trial may be in the way of an event. */
bool pmuk_trial_goes_on(int cpu)
{
	return mutex_is_locked(pmuk_trial_lock(cpu)) || atomic_read(per_cpu_ptr(&pmuk_trials, cpu));
}

void __init pmuk_trial_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		mutex_init(pmuk_trial_lock(cpu));
}

/*
 * Enables the event for a moment. Returns -ENOSPC if the event finds no register. The trial's count
 * and period are discarded, and ->tried will be left out of the counter's times.
 */
static int pmuk_event_try(struct pmuk_counter *c)
{
	struct perf_event *event = c->event;
	u64 enabled;

	perf_event_enable(event);
	if (perf_local_state(event) == PERF_EVENT_STATE_ERROR)
		return -ENOSPC;

	perf_event_pause(event, true);
	perf_event_read_value(event, &enabled, &c->tried);
	perf_local_set_left(c->event, 0);
	return 0;
}

/*
 * Returns -ENOSPC if a new pinned counter of a CPU finds no register: perf core is asked to place
 * the counter's event, or one in place of its host. A context's counter is not tried here, as
 * the context tries all counters of a set together. Trace data could not be discarded, so a counter
 * that writes AUX areas is not tried.
 *
 * A counter that is enabled may push a running task's pinned event out for good. A counter that is
 * only tried must not. A task that begins to run before the trial has ended can still lose a pinned
 * event: the trial takes some microseconds, and longer if its caller is preempted on that CPU.
 */
int pmuk_counter_try(struct pmuk_counter *c)
{
	int ret;

	if (!(c->attr.flags & PMUK_PINNED) || c->cpu < 0 || c->writes_aux || c->slot ||
	    perf_local_task_has_pinned(c->hw_event))
		return 0;
	atomic_inc(per_cpu_ptr(&pmuk_trials, c->cpu));
	ret = c->host ? pmuk_host_try(c) : pmuk_event_try(c);
	atomic_dec(per_cpu_ptr(&pmuk_trials, c->cpu));
	return ret;
}
