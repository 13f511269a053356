// SPDX-License-Identifier: GPL-2.0
/*
 * Enables, disables, sets and reads a counter, from any CPU, and says what has become of it.
 *
 * perf core is silent about a pinned counter that cannot be placed, and about a CPU, task or PMU
 * that has gone: pmuk reports these.
 */
#define pr_fmt(fmt) "pmuk: " fmt

#include <linux/err.h>
#include <linux/export.h>
#include <linux/minmax.h>
#include <linux/perf_local.h>
#include <linux/printk.h>
#include <linux/processor.h>

#include "event.h"
#include "share.h"

bool pmuk_counter_is_gone(const struct pmuk_counter *c)
{
	return perf_local_is_gone(c->event) || perf_local_is_gone(c->hw_event) ||
	       pmuk_counter_is_moved(c);
}

/* A rider that is enabled is where its host is. */
static enum perf_event_state pmuk_counter_event_state(const struct pmuk_counter *c)
{
	enum perf_event_state state = perf_local_state(c->event);

	if (pmuk_rider_is_refused(c))
		return PERF_EVENT_STATE_ERROR;
	return state > PERF_EVENT_STATE_OFF ? min(state, perf_local_state(c->hw_event)) : state;
}

static int pmuk_counter_find_state(const struct pmuk_counter *c)
{
	if (pmuk_counter_is_gone(c))
		return PMUK_COUNTER_GONE;

	switch (pmuk_counter_event_state(c)) {
	case PERF_EVENT_STATE_ACTIVE:
		return PMUK_COUNTER_ACTIVE;
	case PERF_EVENT_STATE_INACTIVE:
	case PERF_EVENT_STATE_EXIT:
		return PMUK_COUNTER_WAITING;
	case PERF_EVENT_STATE_OFF:
		return PMUK_COUNTER_OFF;
	default:
		return PMUK_COUNTER_ERROR;
	}
}

/*
 * A resume in the middle subtracts what the hardware has counted during the pause, and this read
 * may have included that: read again if ->resumes has moved. A resume stores the count, then
 * ->resumes, then ->state. So a reader that sees its ->state sees its ->resumes, and a reader that
 * sees its ->resumes sees the corrected count.
 */
static void pmuk_counter_value(struct pmuk_counter *c, struct pmuk_value *value, bool disabled)
{
	u64 *enabled = &value->time_enabled, *running = &value->time_running, resumes;

	do {
		resumes = smp_load_acquire(&c->resumes);	/* pairs with pmuk_thaw() */
		value->count = disabled ? perf_local_last_value(c->event, enabled, running) :
					  perf_event_read_value(c->event, enabled, running);
		if (c->host)	/* after the read, which has pmuk_rider_read() called */
			*running = READ_ONCE(c->host_ran);
		pmuk_counter_is_frozen(c, &value->count);
	} while (READ_ONCE(c->resumes) != resumes);

	/* perf core reads one time after the other, and the task may be switched in between. */
	value->time_running = min(value->time_running, value->time_enabled);
	value->age = 0;
}

/* Returns 0 unless the CPU, task or PMU is gone, or the pinned counter was pushed off its PMU. */
static int pmuk_counter_fault(const struct pmuk_counter *c)
{
	int state = pmuk_counter_find_state(c);

	if (state != PMUK_COUNTER_GONE)
		return state == PMUK_COUNTER_ERROR ? -EBUSY : 0;
	return perf_local_task(c->event) && !perf_local_is_pmu_gone(c->event) ? -ESRCH : -ENODEV;
}

/*
 * If the parent's event is disabled at a fork, so is the child's, and perf core has no call by
 * which modules could enable it later. A child's event that is off was born before its parent's
 * event was enabled.
 */
static bool pmuk_is_late(struct pmuk_counter *c)
{
	return !c->begun && (c->attr.flags & PMUK_INHERIT) && !c->writes_aux &&
	       perf_local_has_child_off(c->event);
}

/* If the counter is in error, it is enabled only if there is room. */
static int pmuk_enable_private(struct pmuk_counter *c)
{
	int ret = pmuk_counter_is_probed(c) ? pmuk_counter_try_again(c) : 0;

	if (!ret)
		pmuk_event_enable(c->event, &c->since);
	return ret;
}

/* The task may fork between the check of its children and the enabling, so check again. */
static int pmuk_enable_event(struct pmuk_counter *c)
{
	int ret = 0;

	if (pmuk_is_late(c))
		return -EBUSY;
	if (c->writes_aux)
		perf_event_enable_family(c->event);
	else if (c->host)
		ret = pmuk_rider_enable(c);
	else
		ret = pmuk_enable_private(c);
	if (pmuk_is_late(c)) {
		perf_event_disable(c->event);
		return -EBUSY;
	}
	c->begun = true;
	return ret;
}

/* Returns why the counter, which was enabled just now, does not count, or 0. */
static int pmuk_enable_fault(struct pmuk_counter *c)
{
	int ret = pmuk_counter_fault(c);

	if (ret && c->host && !pmuk_rider_refuse(c) && ret == -EBUSY)
		ret = 0;
	return ret == -EBUSY ? -ENOSPC : ret;
}

/* Enables the counter for pmuk_counter_enable(), which is a user of the counter meanwhile. */
int pmuk_counter_try_enable(struct pmuk_counter *c)
{
	/* perf core accepts an event that has lost its context, but never schedules it. */
	int ret = pmuk_counter_fault(c);

	if (!ret || ret == -EBUSY)
		ret = pmuk_enable_event(c) ?: pmuk_enable_fault(c);
	if (ret)
		pr_debug("enable: type %u config %#llx: %d\n", c->attr.type, c->attr.config, ret);
	return ret;
}

/**
 * pmuk_counter_disable() - stop counting and take the counter off its PMU
 * @c: the counter
 *
 * On return the final value is published, no overflow callback runs, and none is
 * called until pmuk_counter_enable(). Follows pfmk_stop() of perfmon2's KAPI.
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @c is NULL or an ERR_PTR(); -EOPNOTSUPP with
 * PMUK_INHERIT, as perf core lets modules reach the task's own event only, and
 * not its children's, unless the PMU writes AUX areas.
 */
int pmuk_counter_disable(struct pmuk_counter *c)
{
	struct pmuk_value value;
	bool off;

	if (IS_ERR_OR_NULL(c))
		return -EINVAL;

	if ((c->attr.flags & PMUK_INHERIT) && !c->writes_aux)
		return -EOPNOTSUPP;

	if (c->writes_aux)
		perf_event_disable_family(c->event);
	else if (perf_local_state(c->event) > PERF_EVENT_STATE_OFF)
		perf_event_disable(c->event);
	if (c->host)
		pmuk_host_follow(c);
	/* Another caller may have enabled the counter since. */
	off = !(c->attr.flags & PMUK_INHERIT) && perf_local_state(c->event) == PERF_EVENT_STATE_OFF;
	pmuk_counter_value(c, &value, off);
	/* A caller on another CPU may be publishing an older value. */
	while (!pmuk_publish(c, &value))
		cpu_relax();
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_counter_disable);

/*
 * Lets a disabled counter go on from @count. perf core's count changes, so that reads need not add
 * anything. No group read or NMI reads the counter now, so ->last may go back.
 */
void pmuk_counter_set_count(struct pmuk_counter *c, u64 count)
{
	struct pmuk_value value;
	u64 extra;

	pmuk_counter_value(c, &value, false);
	extra = value.count - count;
	perf_local_subtract(c->event, extra);
	c->paused_count -= extra;
	WRITE_ONCE(c->frozen, c->frozen - extra);
	c->last = count;
	*c->last_group = count;
	c->last_nmi = count;
	value.count = count;
	WRITE_ONCE(c->pub[0].count, 0);	/* pmuk_publish() replaces no greater count */
	pmuk_publish(c, &value);
}

/**
 * pmuk_counter_read() - read a counter exactly, from any CPU
 * @c: the counter
 * @value: where to put count, time_enabled and time_running
 *
 * With PMUK_INHERIT, @value is the sum over the task and its children. Reading a counter
 * that is on another CPU's PMU interrupts that CPU. Follows pfmk_read_pmds().
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @c or @value is NULL; -EBUSY if the counter was pinned
 * and pushed out, -ENODEV if its CPU or PMU has gone, -ESRCH if its task has:
 * then @value holds the count until then.
 */
int pmuk_counter_read(struct pmuk_counter *c, struct pmuk_value *value)
{
	if (IS_ERR_OR_NULL(c) || !value)
		return -EINVAL;

	pmuk_counter_value(c, value, false);
	return pmuk_counter_fault(c);
}
EXPORT_SYMBOL_GPL(pmuk_counter_read);

/**
 * pmuk_counter_state() - whether a counter counts, and if not, why not
 * @c: the counter
 *
 * Context: Any, NMI too.
 * Return: enum pmuk_counter_states; -EINVAL if @c is NULL or an ERR_PTR().
 */
int pmuk_counter_state(struct pmuk_counter *c)
{
	return IS_ERR_OR_NULL(c) ? -EINVAL : pmuk_counter_find_state(c);
}
EXPORT_SYMBOL_GPL(pmuk_counter_state);
