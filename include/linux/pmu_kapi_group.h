/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Inline reads of several counters of one CPU, for consumers whose reads must cost little. Other
 * consumers call pmuk_read_local(), which also reads counters that this file cannot read.
 *
 * While a reader has preemption off, only an interrupt can take a counter off its register or
 * change the counter's fields. pmuk_counter_read_local() compares the fields afterwards. A group
 * read instead checks for all counters together whether an interrupt came. This also shows that all
 * counters were read in one instant. arm64 counts all interrupts, NMIs too, in one number, and
 * reading this number takes less time than masking interrupts. x86 has a number for each kind of
 * interrupt and no sum of all, so the reader masks interrupts and watches the number of NMIs.
 */
#ifndef _LINUX_PMU_KAPI_GROUP_H
#define _LINUX_PMU_KAPI_GROUP_H

#include <linux/build_bug.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/percpu.h>
#include <linux/perf_local.h>
#include <linux/pmu_kapi.h>

/* pmuk_group_read() reads at most this many counters, so that all values fit into registers. */
#define PMUK_GROUP_FAST	4

/* The counters of an event set, on one CPU. */
struct pmuk_group {
	unsigned long fast_tick;	/* owner: the tick whose reads are fast; may be none */
	struct pmuk_counter *counters[];	/* inst->lock, RCU: NULL while offline; at least
						 * PMUK_GROUP_FAST entries
						 */
};

struct pmuk_group * __percpu *pmuk_groups(struct pmuk_context *ctx);

#ifdef perf_arch_read_on

/* With a struct pmuk_quiet, a reader detects interrupts that may move a counter. */
#ifdef perf_arch_irqs

struct pmuk_quiet {
	const unsigned long *irqs;
	unsigned long before;
};

static __always_inline void pmuk_quiet_begin(struct pmuk_quiet *quiet, bool masked)
{
	quiet->irqs = perf_arch_irqs();
	quiet->before = READ_ONCE(*quiet->irqs);
	barrier();	/* an interrupt from here on is counted, or comes after all is read */
}

static __always_inline bool pmuk_is_quiet(const struct pmuk_quiet *quiet)
{
	barrier();
	return likely(READ_ONCE(*quiet->irqs) == quiet->before);
}

static __always_inline void pmuk_quiet_end(const struct pmuk_quiet *quiet, bool masked) { }

#else

struct pmuk_quiet {
	unsigned long flags;
	unsigned long before;
};

static __always_inline void pmuk_quiet_begin(struct pmuk_quiet *quiet, bool masked)
{
	if (!masked)
		local_irq_save(quiet->flags);
	quiet->before = perf_arch_nmis();
	barrier();	/* an NMI from here on is counted, or comes after all is read */
}

static __always_inline bool pmuk_is_quiet(const struct pmuk_quiet *quiet)
{
	barrier();
	return likely(perf_arch_nmis() == quiet->before);
}

static __always_inline void pmuk_quiet_end(const struct pmuk_quiet *quiet, bool masked)
{
	if (!masked)
		local_irq_restore(quiet->flags);
}

#endif

/* A counter that is being read. */
struct pmuk_group_one {
	struct pmuk_counter_fast *c;
	u64 now;
};

/* Reads counter @i if it is one of @n, which is a constant. */
static __always_inline bool pmuk_group_take(const struct pmuk_group *group, unsigned int i,
					    unsigned int n, struct pmuk_group_one *one)
{
	if (i >= n)
		return true;
	one->c = (struct pmuk_counter_fast *)READ_ONCE(group->counters[i]);
	return likely(one->c && perf_local_read_undisturbed(one->c->event, one->c->mask,
							    &one->now));
}

/*
 * Call this only after pmuk_is_quiet() has confirmed the count. An NMI that interrupts perf core's
 * update of the counter reads at least ->last, so a wrong ->last could raise that count.
 */
static __always_inline void pmuk_group_keep(const struct pmuk_group_one *one, unsigned int i,
					    unsigned int n, u64 *counts)
{
	if (i >= n)
		return;
	one->c->last = one->now;
	counts[i] = one->now + one->c->offset;
}

/*
 * An interrupt between the first check and the stores may read later counts, and the stores then
 * move ->last back. The second check detects that interrupt, and the slow path sets ->last again.
 * With interrupts off, there is no second check, because an NMI does not write ->last.
 */
static __always_inline bool pmuk_group_read_in(const struct pmuk_group *group, u64 *counts,
					       unsigned int n, const struct pmuk_quiet *quiet,
					       bool masked)
{
	struct pmuk_group_one a, b, c, d;

	if (!pmuk_group_take(group, 0, n, &a) || !pmuk_group_take(group, 1, n, &b) ||
	    !pmuk_group_take(group, 2, n, &c) || !pmuk_group_take(group, 3, n, &d) ||
	    !pmuk_is_quiet(quiet))
		return false;
	pmuk_group_keep(&a, 0, n, counts);
	pmuk_group_keep(&b, 1, n, counts);
	pmuk_group_keep(&c, 2, n, counts);
	pmuk_group_keep(&d, 3, n, counts);
	return masked || pmuk_is_quiet(quiet);
}

/**
 * pmuk_group_read() - read counters of the active set, in line
 * @shown: this CPU's element of what pmuk_groups() returns
 * @counts: where to put the counts, in the order of the counters' numbers
 * @n: read the first @n counters; a constant, at most PMUK_GROUP_FAST
 * @masked: interrupts are off; a constant
 *
 * Reads the same counts as pmuk_read_local(), in a few instructions, if the counters are in
 * registers that perf_arch_read_on() reads. In each tick, reads are fast after one
 * pmuk_read_local() of all counters of the set, outside of NMI.
 *
 * An NMI between the load of the group and pmuk_quiet_begin() may mask the context and leave the
 * hardware running. The test of ->fast_tick detects this. Preemption is off, so that counters which
 * are retired meanwhile are freed later.
 *
 * Context: Not NMI, because an NMI may have interrupted an update of a counter; preemption off.
 * Return: true if all @n counters were read in one instant; false: call pmuk_read_local(), and
 * @counts is not defined.
 */
static __always_inline bool pmuk_group_read(struct pmuk_group *const *shown, u64 *counts,
					    unsigned int n, bool masked)
{
	const struct pmuk_group *group = READ_ONCE(*shown);
	struct pmuk_quiet quiet;
	bool done;

	BUILD_BUG_ON(n > PMUK_GROUP_FAST);
	if (unlikely(!group))
		return false;
	pmuk_quiet_begin(&quiet, masked);
	done = likely(!(READ_ONCE(group->fast_tick) ^ jiffies)) &&
	       pmuk_group_read_in(group, counts, n, &quiet, masked);
	pmuk_quiet_end(&quiet, masked);
	return done;
}

#else

static __always_inline bool pmuk_group_read(struct pmuk_group *const *shown, u64 *counts,
					    unsigned int n, bool masked)
{
	return false;
}

#endif

#endif /* _LINUX_PMU_KAPI_GROUP_H */
