// SPDX-License-Identifier: GPL-2.0
/*
 * Asks perf core whether a new pinned counter finds a register. Loads, reservations, turns and
 * pmuk_room() hold a lock of the CPU meanwhile. pmuk_counter_create(), and pmuk_counter_enable()
 * outside of a turn, take no lock.
 */
#include <kunit/visibility.h>
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/init.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/perf_local.h>

#include "event.h"
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

/* Overflows of a trial are nobody's. */
static void pmuk_trial_overflow(struct perf_event *event, struct perf_sample_data *data,
				struct pt_regs *regs)
{
}

/*
 * Tries an event like the counter's own. perf core serves the older of two pinned events first, and
 * a trial of the counter's own event could push out events that were created since. The creation of
 * the counter has taken the right to count on the CPU. The trial takes none, as its count is read
 * by no task.
 */
static int pmuk_event_try(const struct pmuk_counter *c, struct perf_event_attr pa,
			  unsigned int precise)
{
	struct perf_event *event;

	pa.disabled = 0;
	scoped_with_kernel_creds()
		event = pmuk_event_create(&pa, precise, c->cpu, NULL, pmuk_trial_overflow, NULL);
	return pmuk_event_end_trial(event);
}

static int pmuk_attr_try(const struct pmuk_counter *c, const struct pmuk_attr *attr)
{
	struct perf_event_attr pa = pmuk_event_attr(attr);

	pa.sample_period = attr->period;
	return pmuk_event_try(c, pa, attr->precise_ip);
}

/*
 * Returns -ENOSPC if the counter, which is in error, would find no register, or the error of the
 * trial; 0 if the counter was enabled meanwhile. perf core and drivers may have changed type,
 * config and period in the event's attributes, so the trial takes these from the counter.
 */
int pmuk_counter_try_again(const struct pmuk_counter *c)
{
	struct perf_event_attr pa = c->event->attr;
	int ret;

	pa.type = c->attr.type;
	pa.config = c->attr.config;
	if (!c->attr.period)
		pa.sample_period = 0;
	ret = pmuk_event_try(c, pa, pa.precise_ip);
	return perf_local_state(c->event) > PERF_EVENT_STATE_OFF ? 0 : ret;
}

/*
 * Returns -ENOSPC if a new pinned counter of a CPU finds no register, or the error of the trial.
 * Most PMUs that trace take one event only, so an event that traces is not tried.
 *
 * A counter that is enabled may push a running task's pinned event out for good. A counter that is
 * only tried must not. A task that begins to run before the trial has ended can still lose a pinned
 * event: the trial takes some microseconds, and longer if its caller is preempted on that CPU.
 */
int pmuk_counter_try(struct pmuk_counter *c, const struct pmuk_attr *attr)
{
	int ret;

	if (!(c->attr.flags & PMUK_PINNED) || c->cpu < 0 || c->traces ||
	    !pmuk_event_takes_register(c->attr.type) || perf_local_task_has_pinned(c->hw_event))
		return 0;
	atomic_inc(per_cpu_ptr(&pmuk_trials, c->cpu));
	ret = c->host ? pmuk_host_try(c) : pmuk_attr_try(c, attr);
	atomic_dec(per_cpu_ptr(&pmuk_trials, c->cpu));
	return ret;
}
