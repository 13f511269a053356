// SPDX-License-Identifier: GPL-2.0
/*
 * A counter's own CPU reads it here, if linux/pmu_kapi_read.h does not. Everything in this file may
 * run in NMI: no lock, no allocation, no sleep.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "hw.h"

static bool pmuk_is_throttled(const struct pmuk_counter *c)
{
	return perf_local_is_throttled(c->event) || perf_local_is_throttled(c->hw_event);
}

/* Returns the rider's count less its host's, which is const until the rider stops. */
static u64 pmuk_find_offset(const struct pmuk_counter *c)
{
	u64 host;

	return perf_local_count(c->event, 0, &host) - host;
}

/*
 * An NMI may have interrupted an update of the rider, whose count then lacks events, so an NMI
 * leaves ->offset alone. A mark on the host would keep group reads slow. See pmuk_host_loads().
 */
static bool pmuk_take_offset(struct pmuk_counter *c)
{
	if (in_nmi())
		return false;
	perf_local_unmark(c->hw_event);
	WRITE_ONCE(c->offset, pmuk_find_offset(c));
	return true;
}

/*
 * Let local reads take the fast path for the rest of this tick; the first read after it publishes.
 * Reads of paused counters, and of counters on other PMUs, are always slow. So are reads of
 * throttled counters: x86's driver may move such a counter to a register that the driver does not
 * load (6.12). An NMI may throttle the counter, or move ->offset, at any point in here, so check
 * again.
 */
static void pmuk_allow_fast(struct pmuk_counter *c)
{
	if (!c->mask || pmuk_is_throttled(c))
		return;
	if (c->host && !pmuk_take_offset(c))
		return;
	pmuk_state_open(&c->state, jiffies);
	if (pmuk_is_throttled(c) || (c->host && c->offset != pmuk_find_offset(c)))
		pmuk_state_close(&c->state);
}

void pmuk_publish_local(struct pmuk_counter *c, u64 count)
{
	struct pmuk_value value = { .count = count };

	pmuk_hw_times(c, &value);
	pmuk_publish(c, &value);
}

/*
 * An NMI may land inside perf core's update of this counter, after prev_count has moved and before
 * the count has. A read then lacks the events in flight, and may be below 0 right after a resume
 * has subtracted those of a pause. Return no less than the latest read, so that the count does not
 * go back.
 */
u64 pmuk_not_less(struct pmuk_counter *c, u64 count)
{
	if (!in_nmi()) {
		WRITE_ONCE(c->last, count);
		return count;
	}
	count = max_t(s64, count, READ_ONCE(c->last));
	count = max_t(s64, count, c->last_nmi);
	c->last_nmi = max_t(s64, count, READ_ONCE(*c->last_group));
	return c->last_nmi;
}

/* Returns 0 if the calls below make sense on this counter, on this CPU or in this task. */
int pmuk_check_own(const struct pmuk_counter *c)
{
	const struct task_struct *task = perf_local_task(c->event);
	int cpu = perf_local_cpu(c->event);

	if (c->attr.flags & PMUK_INHERIT)
		return -EOPNOTSUPP;
	if ((task && task != current) || (cpu != -1 && cpu != smp_processor_id()))
		return -EINVAL;
	return pmuk_counter_is_moved(c) ? -EINVAL : 0;
}

/*
 * An NMI in the middle may pause the counter, and the hardware may count on: ->frozen is the count
 * then. Or the NMI may resume the counter, and subtract what the hardware has counted during the
 * pause: then ->resumes has changed, and this function reads again. Returns true if @count is
 * ->frozen.
 */
static bool pmuk_count_or_frozen(const struct pmuk_counter *c, u64 *count)
{
	u64 resumes, raw;
	bool frozen;

	do {
		resumes = READ_ONCE(c->resumes);
		*count = perf_local_count(c->event, pmuk_counter_mask(c), &raw);
		frozen = pmuk_counter_is_frozen(c, count);
	} while (unlikely(READ_ONCE(c->resumes) != resumes));
	return frozen;
}

/* Returns 1 if @count is ->frozen, 0 if it is perf core's count, or -EBUSY. */
static int pmuk_count_any(const struct pmuk_counter *c, u64 *count)
{
	if (pmuk_counter_is_frozen(c, count))
		return 1;
	if (READ_ONCE(c->state) == PMUK_STOPPING || pmuk_hw_is_out_of_reach(c))
		return -EBUSY;
	return pmuk_count_or_frozen(c, count);
}

/*
 * Does the reads that pmuk_read_fast() does not: the first in each tick, which publishes, those in
 * NMI, and those of counters that are paused, throttled or without a ->mask. Also returns errors.
 */
static int pmuk_read_slow(struct pmuk_counter *c, u64 *count)
{
	int ret;

	ret = pmuk_check_own(c);
	if (ret)
		return ret;
	if (!pmuk_hw_is_on(c))
		return -EBUSY;
	ret = pmuk_count_any(c, count);
	/* If an NMI has paused the counter, ->frozen may be incomplete until ->settle has run. */
	if (ret > 0 && !in_nmi() && irq_work_is_pending(&c->settle)) {
		c->settle.func(&c->settle);
		ret = pmuk_count_any(c, count);
	}
	if (ret)
		return ret > 0 ? 0 : ret;

	*count = pmuk_not_less(c, *count);
	if (READ_ONCE(c->published) != (u32)jiffies) {
		WRITE_ONCE(c->published, (u32)jiffies);
		pmuk_publish_local(c, *count);
	}
	pmuk_allow_fast(c);
	return 0;
}

/**
 * __pmuk_counter_read_local() - the slow path of pmuk_counter_read_local()
 * @c: the counter
 * @count: where to put the count
 *
 * Nothing but pmuk_counter_read_local() calls this: where the inline read has failed, and always
 * with CONFIG_DEBUG_PREEMPT. arm64 reads counters in registers 8 and up here, as few CPUs have so
 * many.
 *
 * Context: As pmuk_counter_read_local().
 * Return: As pmuk_counter_read_local().
 */
int __pmuk_counter_read_local(struct pmuk_counter *c, u64 *count)
{
	unsigned long flags;
	int ret;

	if (unlikely(!c || !count))
		return -EINVAL;

	/* Warn if the caller may migrate: on another CPU, the register has another counter. */
	if (IS_ENABLED(CONFIG_DEBUG_PREEMPT) && !perf_local_task(c->event) &&
	    current->nr_cpus_allowed > 1)
		(void)smp_processor_id();
	if (IS_ENABLED(CONFIG_DEBUG_PREEMPT) && pmuk_read_fast(c, count))
		return 0;

	local_irq_save(flags);
	ret = pmuk_read_slow(c, count);
	local_irq_restore(flags);
	return ret;
}
EXPORT_SYMBOL_GPL(__pmuk_counter_read_local);

/* A context that is unloaded meanwhile leaves NULL in the places of the counters. */
static int pmuk_counters_read_once(struct pmuk_counter *const *counters, u64 *counts,
				   unsigned int n)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < n; i++) {
		struct pmuk_counter *c = READ_ONCE(counters[i]);

		if (unlikely(!c))
			ret = -EBUSY;
		else if (unlikely(!pmuk_read_fast(c, &counts[i])))
			ret = pmuk_read_slow(c, &counts[i]);
		if (unlikely(ret))
			return ret;
	}
	return 0;
}

/* When an NMI comes between the reads, they are tried again, so many times in all. */
#define PMUK_READ_TRIES	8

/* Reads counters of this CPU in one instant: neither an interrupt nor an NMI comes in between. */
int pmuk_counters_read_local(struct pmuk_counter *const *counters, u64 *counts, unsigned int n)
{
	unsigned int tries = PMUK_READ_TRIES;
	unsigned long flags, nmis;
	int ret;

	local_irq_save(flags);
	do {
		nmis = perf_arch_nmis();
		barrier();
		ret = pmuk_counters_read_once(counters, counts, n);
		barrier();
	} while (!ret && perf_arch_nmis() != nmis && --tries);
	local_irq_restore(flags);
	return tries ? ret : -EBUSY;
}
