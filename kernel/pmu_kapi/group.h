/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fast path of pmuk_read_local(): counters of one CPU, read together.
 *
 * Only what interrupts this CPU moves a counter of this CPU. pmuk_counter_read_local() looks at
 * each counter twice for that reason. This path looks once at whether anything has interrupted,
 * which also tells that all counters were read in one instant. arm64 counts all interrupts, NMIs
 * too, in one place, and a look there takes less than masking. x86 counts NMIs only, so this path
 * masks the other interrupts.
 */
#ifndef _PMU_KAPI_GROUP_H
#define _PMU_KAPI_GROUP_H

#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/preempt.h>
#include <linux/smp.h>

#include "arch.h"
#include "internal.h"

/* Those of an event set, on one CPU. */
struct pmuk_group {
	unsigned long fast_tick;	/* owner: jiffies in which reads are fast, or PMUK_NEVER */
	unsigned int nr;		/* const */
	struct pmuk_counter *counters[];	/* inst->lock, RCU: NULL while offline */
};

#ifdef pmuk_arch_read_on

/* struct pmuk_quiet: whether anything that may move a counter has come since pmuk_quiet_begin(). */
#ifdef pmuk_arch_irqs

struct pmuk_quiet {
	const unsigned long *irqs;
	unsigned long before;
};

static __always_inline void pmuk_quiet_begin(struct pmuk_quiet *quiet)
{
	quiet->irqs = pmuk_arch_irqs();
	quiet->before = READ_ONCE(*quiet->irqs);
	barrier();	/* what comes from here on is counted, or comes after all is read */
}

static __always_inline bool pmuk_is_quiet(const struct pmuk_quiet *quiet)
{
	barrier();
	return likely(READ_ONCE(*quiet->irqs) == quiet->before);
}

static __always_inline void pmuk_quiet_end(const struct pmuk_quiet *quiet) { }

#else

struct pmuk_quiet {
	unsigned long flags;
	unsigned long before;
};

static __always_inline void pmuk_quiet_begin(struct pmuk_quiet *quiet)
{
	local_irq_save(quiet->flags);
	quiet->before = pmuk_arch_nmis();
	barrier();	/* an NMI from here on is counted, or comes after all is read */
}

static __always_inline bool pmuk_is_quiet(const struct pmuk_quiet *quiet)
{
	barrier();
	return likely(pmuk_arch_nmis() == quiet->before);
}

static __always_inline void pmuk_quiet_end(const struct pmuk_quiet *quiet)
{
	local_irq_restore(quiet->flags);
}

#endif

/* Who interrupts may stop the counters, and end them before this goes on. */
static __always_inline bool pmuk_group_read_one(struct pmuk_counter *c, u64 *count)
{
	const struct perf_event *event;
	u64 raw;

	if (unlikely(!c))
		return false;
	event = c->event;
	if (unlikely(!pmuk_arch_read_on(event, &raw)))
		return false;
	raw -= local64_read(&event->hw.prev_count);
	*count = local64_read(&event->count) + (raw & c->mask);
	return true;
}

/* What is now known to be right: NMIs that land in the middle of an update go by ->last. */
static __always_inline bool pmuk_group_keep_one(struct pmuk_counter *c, u64 *count)
{
	if (unlikely(!c))
		return false;
	c->last = *count;
	*count += c->offset;
	return true;
}

static __always_inline bool pmuk_group_read_each(struct pmuk_group *group, u64 *counts,
						 unsigned int n, const struct pmuk_quiet *quiet)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (unlikely(!pmuk_group_read_one(READ_ONCE(group->counters[i]), &counts[i])))
			return false;
	}
	if (!pmuk_is_quiet(quiet))
		return false;
	for (i = 0; i < n; i++) {
		if (unlikely(!pmuk_group_keep_one(READ_ONCE(group->counters[i]), &counts[i])))
			return false;
	}
	return pmuk_is_quiet(quiet);	/* if an NMI came, ->last may have gone back */
}

/* The same for two, which is what most want: nothing is looked up twice. */
static __always_inline bool pmuk_group_read_two(struct pmuk_group *group, u64 *counts,
						const struct pmuk_quiet *quiet)
{
	struct pmuk_counter *c = READ_ONCE(group->counters[0]);
	struct pmuk_counter *d = READ_ONCE(group->counters[1]);
	u64 count_c, count_d;

	if (unlikely(!pmuk_group_read_one(c, &count_c) || !pmuk_group_read_one(d, &count_d)))
		return false;
	if (!pmuk_is_quiet(quiet))
		return false;
	pmuk_group_keep_one(c, &count_c);
	pmuk_group_keep_one(d, &count_d);
	counts[0] = count_c;
	counts[1] = count_d;
	return pmuk_is_quiet(quiet);
}

/*
 * An NMI before pmuk_quiet_begin() may mask the context and leave the hardware running: ->fast_tick
 * tells.
 */
static __always_inline bool pmuk_group_read_in(struct pmuk_group *group, u64 *counts,
					       unsigned int n, const struct pmuk_quiet *quiet)
{
	if (unlikely(READ_ONCE(group->fast_tick) ^ jiffies))
		return false;
	if (likely(n == 2))
		return pmuk_group_read_two(group, counts, quiet);
	return pmuk_group_read_each(group, counts, n, quiet);
}

/*
 * Returns whether the fast path has read all @n counters. @groups is by CPU. The caller is in no
 * NMI, as an NMI may have interrupted an update of a counter. Preemption is off, so that counters
 * which are retired meanwhile are freed later.
 */
static __always_inline bool pmuk_group_read(struct pmuk_group *const *groups, u64 *counts,
					    unsigned int n)
{
	struct pmuk_group *group = READ_ONCE(groups[raw_smp_processor_id()]);
	struct pmuk_quiet quiet;
	bool done;

	if (unlikely(!group || n > group->nr))
		return false;
	pmuk_quiet_begin(&quiet);
	done = pmuk_group_read_in(group, counts, n, &quiet);
	pmuk_quiet_end(&quiet);
	return done;
}

#else

static __always_inline bool pmuk_group_read(struct pmuk_group *const *groups, u64 *counts,
					    unsigned int n)
{
	return false;
}

#endif

#endif /* _PMU_KAPI_GROUP_H */
