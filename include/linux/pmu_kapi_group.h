/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Inline reads of several counters of one CPU. linux/pmu_kapi.h includes this file. A consumer
 * whose reads must cost little may call pmuk_group_read() by itself, which does not check its
 * arguments.
 *
 * While a reader has preemption off, only an interrupt can take a counter off its register or
 * change the counter's fields. A group read checks for all counters together whether an interrupt
 * came. This also shows that all counters were read in one instant. arm64 counts all interrupts,
 * NMIs too, in one number, and reading this number takes less time than masking interrupts. x86 has
 * a number for each kind of interrupt and no sum of all, so the reader masks interrupts and watches
 * the number of NMIs.
 */
#ifndef _LINUX_PMU_KAPI_GROUP_H
#define _LINUX_PMU_KAPI_GROUP_H

#include <linux/build_bug.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/percpu.h>
#include <linux/perf_local.h>
#include <linux/preempt.h>

struct pmuk_context;

/* pmuk_group_read() reads at most this many counters, so that all values fit into registers. */
#define PMUK_GROUP_FAST	4

/* The value of ->fast_tick if no reads are fast. jiffies does not get there. */
#define PMUK_GROUP_SLOW	ULONG_MAX

/*
 * A plan to read the first counters of an event set, on one CPU. Each field of all counters is an
 * array, for instructions that load or store two words. A group whose ->fast_tick is
 * PMUK_GROUP_SLOW need not have counters.
 */
struct pmuk_group {
	unsigned long fast_tick;	/* the tick whose reads are fast, or PMUK_GROUP_SLOW; the
					 * owner writes the tick
					 */
	struct perf_event *events[PMUK_GROUP_FAST];	/* const while shown, RCU */
	u64 masks[PMUK_GROUP_FAST];	/* const while shown: see perf_arch_mask() */
	u64 last[PMUK_GROUP_FAST];	/* owner: the latest counts that a group read has read */
	bool shared;			/* const while shown: ->offsets is not always 0 */
	u64 offsets[PMUK_GROUP_FAST];	/* owner: as &pmuk_counter_fast.offset; const while fast */
};

/* Each struct pmuk_context begins with this field. */
struct pmuk_context_fast {
	struct pmuk_group * __percpu *groups;	/* const; the owner reads: the active set's group */
};

/**
 * pmuk_groups() - where pmuk_group_read() finds the counters of each CPU
 * @ctx: the context
 *
 * Context: Any.
 * Return: an array by CPU, whose elements are arguments of pmuk_group_read() until pmuk_close().
 */
static inline struct pmuk_group * __percpu *pmuk_groups(const struct pmuk_context *ctx)
{
	return ((const struct pmuk_context_fast *)ctx)->groups;
}

#ifdef perf_arch_read_all

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

static __always_inline bool pmuk_is_quiet_still(const struct pmuk_quiet *quiet, bool masked)
{
	return masked || pmuk_is_quiet(quiet);
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

static __always_inline bool pmuk_is_quiet_still(const struct pmuk_quiet *quiet, bool masked)
{
	return true;
}

static __always_inline void pmuk_quiet_end(const struct pmuk_quiet *quiet, bool masked)
{
	if (!masked)
		local_irq_restore(quiet->flags);
}

#endif

static __always_inline void pmuk_group_store(u64 *to, const u64 *now, unsigned int n)
{
	data_race(to[0] = now[0]);	/* an NMI reads the old word or the new one */
	if (n > 1)
		data_race(to[1] = now[1]);	/* as the first */
	if (n > 2)
		data_race(to[2] = now[2]);	/* as the first */
	if (n > 3)
		data_race(to[3] = now[3]);	/* as the first */
}

/*
 * Turns the values of the registers into counts. The barriers keep the loads of masks together, so
 * that one instruction can load two.
 */
static __always_inline void pmuk_group_counts(const struct pmuk_group *group,
					      const struct perf_event *const *events,
					      unsigned int n, u64 *raw)
{
	raw[0] -= perf_local_prev(events[0]);
	raw[1] -= n > 1 ? perf_local_prev(events[1]) : 0;
	raw[2] -= n > 2 ? perf_local_prev(events[2]) : 0;
	raw[3] -= n > 3 ? perf_local_prev(events[3]) : 0;
	barrier();
	raw[0] &= group->masks[0];
	raw[1] &= group->masks[1];
	raw[2] &= group->masks[2];
	raw[3] &= group->masks[3];
	barrier();
	raw[0] += perf_local_base(events[0]);
	raw[1] += n > 1 ? perf_local_base(events[1]) : 0;
	raw[2] += n > 2 ? perf_local_base(events[2]) : 0;
	raw[3] += n > 3 ? perf_local_base(events[3]) : 0;
}

static __always_inline void pmuk_group_add_offsets(const struct pmuk_group *group, unsigned int n,
						   u64 *now)
{
	now[0] += group->offsets[0];
	now[1] += n > 1 ? group->offsets[1] : 0;
	now[2] += n > 2 ? group->offsets[2] : 0;
	now[3] += n > 3 ? group->offsets[3] : 0;
}

/*
 * An interrupt between the first check and the stores may read later counts, and the stores then
 * move ->last back. The second check detects that interrupt, and the caller's pmuk_read_local()
 * then writes the group's ->last, or the counters' ->last, again. With interrupts masked, there is
 * no second check, because only NMIs are left, and an NMI writes neither.
 */
static __always_inline bool pmuk_group_read_in(struct pmuk_group *group, u64 *counts,
					       unsigned int n, const struct pmuk_quiet *quiet,
					       bool masked)
{
	const struct perf_event *const events[] = {
		group->events[0], group->events[1], group->events[2], group->events[3] };
	u64 now[PMUK_GROUP_FAST] = {};

	if (unlikely(!perf_arch_read_all(events, n, now)))
		return false;
	pmuk_group_counts(group, events, n, now);
	if (unlikely(group->shared))
		pmuk_group_add_offsets(group, n, now);
	/*
	 * Only counts that are confirmed become ->last: an NMI that interrupts perf core's update
	 * of a counter reads at least that.
	 */
	if (!pmuk_is_quiet(quiet))
		return false;
	pmuk_group_store(group->last, now, n);
	pmuk_group_store(counts, now, n);
	return pmuk_is_quiet_still(quiet, masked);
}

/**
 * pmuk_group_read() - read counters of the active set, in line
 * @shown: this CPU's element of what pmuk_groups() returns
 * @counts: where to put the counts, in the order of the counters' numbers
 * @n: read the first @n counters; a constant, at most PMUK_GROUP_FAST
 * @masked: interrupts are off; a constant
 *
 * Reads the same counts as pmuk_read_local(), in a few instructions, if the context counts CPUs and
 * the counters are in registers that perf_arch_read_all() reads. In each tick, reads are fast after
 * one pmuk_read_local() of all counters of the set, outside of NMI.
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
	struct pmuk_group *group = READ_ONCE(*shown);
	struct pmuk_quiet quiet;
	bool done;

	BUILD_BUG_ON(!n || n > PMUK_GROUP_FAST);
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

int __pmuk_read_local(struct pmuk_context *ctx, u64 *counts, unsigned int n);
u64 pmuk_local_since(struct pmuk_context *ctx);

/**
 * pmuk_read_local() - read the active set's counters on this CPU or task in one instant
 * @ctx: the context
 * @counts: where to put the counts, in the order of the counters' numbers
 * @n: read the first @n counters
 *
 * No interrupt comes between the reads, nor, on x86 and arm64, an NMI. Each count is what
 * pmuk_counter_read_local() returns. After a CPU was offline, or its counters were lost for a
 * while, its counts go on from the old ones: see pmuk_local_since().
 * If the context counts CPUs, @n is a constant up to PMUK_GROUP_FAST and preemption is off, most
 * reads need no call. Each read of a task's context calls __pmuk_read_local().
 *
 * Context: Any, NMI too; on a CPU of the target, or in its task. If event sets take turns, another
 * set may be active at the next call; on a CPU this does not happen while preemption is off.
 * Return: 0; -EINVAL if @ctx or @counts is NULL, this is no CPU of the target or not its task,
 * or the set has fewer than @n counters; -EBUSY if the context is stopped, a counter is not on
 * the PMU now, or NMIs came between the reads again and again; -EOPNOTSUPP with PMUK_TARGET_TREE.
 * @counts is not defined after an error.
 */
static __always_inline int pmuk_read_local(struct pmuk_context *ctx, u64 *counts, unsigned int n)
{
	/* Kernels without CONFIG_PREEMPT_COUNT do not preempt; preempt_count() may be 0. */
	unsigned int preempt = preempt_count() - IS_ENABLED(CONFIG_PREEMPT_COUNT);

	BUILD_BUG_ON(NMI_OFFSET <= HARDIRQ_MASK);	/* no other bit is above those of NMIs */
	if (__builtin_constant_p(n) && n && n <= PMUK_GROUP_FAST &&
	    likely(ctx && counts && preempt < NMI_OFFSET - 1) &&
	    likely(pmuk_group_read(raw_cpu_ptr(pmuk_groups(ctx)), counts, n, false)))
		return 0;
	return __pmuk_read_local(ctx, counts, n);
}

#endif /* _LINUX_PMU_KAPI_GROUP_H */
