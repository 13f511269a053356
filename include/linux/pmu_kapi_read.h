/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The inline read of one counter. linux/pmu_kapi.h includes this file.
 *
 * The read leaves interrupts on, as masking them can cost more than all the rest. An interrupt may
 * come between any two loads, and perf_local_read_changed() finds it afterwards. NMI, paused
 * counters and everything else that is rare go to __pmuk_counter_read_local().
 */
#ifndef _LINUX_PMU_KAPI_READ_H
#define _LINUX_PMU_KAPI_READ_H

#include <linux/jiffies.h>
#include <linux/perf_local.h>
#include <linux/pmu_kapi.h>
#include <linux/preempt.h>

/*
 * Returns nonzero where the fast path is closed: in NMI, for a counter whose ->mask is 0, and for a
 * reader of a task counter who may be moved to another CPU between the check of the event's CPU and
 * the read. That CPU may be of another kind, and lack the register.
 */
static __always_inline u32 pmuk_read_is_barred(const struct pmuk_counter_fast *fast)
{
	return ((u32)preempt_count() - fast->bar) & (u32)(NMI_MASK | PMUK_BARRED);
}

/*
 * The register may be read if the counter is on this CPU and the fast path is not barred. ->state
 * is the tick in which reads are fast; a slow read sets it. A pause by an NMI that leaves the
 * hardware running changes ->state. A resume after the read of the register changes the count,
 * which perf_local_read_changed() detects, as it comes after the read of ->state.
 *
 * ->offset is 0 unless the counter shares its register. It changes only while ->state is not a
 * tick. If an interrupt or another task changes it in the middle of a read and lets reads be fast
 * again, the event's hw.prev_count has moved, too, which perf_local_read_changed() detects. An NMI
 * may change the count by a resume, and never lets such reads be fast again. So the register is
 * read first, then ->offset, and ->state last.
 */
static __always_inline bool pmuk_read_fast(struct pmuk_counter *c, u64 *count)
{
	struct pmuk_counter_fast *fast = (struct pmuk_counter_fast *)c;
	const struct perf_event *event = fast->hw_event;
	struct perf_local_read read = perf_local_read_begin(event);
	u64 offset, tick, late, now;

	if (unlikely(perf_local_read_where(event) | pmuk_read_is_barred(fast)))
		return false;
	if (unlikely(!perf_local_read_register(event, &read)))
		return false;
	offset = READ_ONCE(fast->offset);
	tick = READ_ONCE(fast->state);
	now = perf_local_read_value(&read, fast->mask) + offset;
	late = perf_arch_changed(tick, jiffies);
	if (unlikely(perf_local_read_changed(event, &read) | late))
		return false;

	WRITE_ONCE(fast->last, now);
	*count = now;
	return true;
}

int __pmuk_counter_read_local(struct pmuk_counter *c, u64 *count);

/**
 * pmuk_counter_read_local() - read a counter on its own CPU, exactly and fast
 * @c: the counter
 * @count: where to put the number of events since the counter was created
 *
 * On x86 and arm64 this is one read of the counter's register and the loads to
 * make 64 bits of it; no call, no lock, no interrupts masked, and nothing written that
 * perf core or another CPU uses. The first read in each tick also publishes the
 * value for pmuk_counter_snapshot(). A paused counter reads as it was when paused.
 *
 * A task counter is read with interrupts masked if its reader could be preempted:
 * a preempted reader may continue on another CPU, which need not have the same registers.
 *
 * Counts of one counter do not go back. If an NMI interrupts perf core while it updates this very
 * counter, a read in that NMI may lack the events that the update has in flight, but returns no
 * less than the read outside of NMI that ended last. A read in an interrupt ends before the read
 * that it has interrupted, and may have returned more.
 *
 * Context: Any, NMI too; on the counter's CPU, and not free to leave it (bound,
 * or with migration, preemption or interrupts off), or in the context of its
 * task.
 * Return: 0; -EINVAL if @c or @count is NULL or @c does not belong to this CPU or task;
 * -EOPNOTSUPP with PMUK_INHERIT; -EBUSY if the counter is not on the PMU now (see
 * pmuk_counter_state()), if the caller is an NMI that has interrupted a change of the counter or
 * of its PMU, or if the PMU cannot count for tasks, as an uncore PMU, and the caller is an NMI
 * that is not the PMU's own: drivers of such PMUs may take locks. @count is written on success
 * only.
 */
static __always_inline int pmuk_counter_read_local(struct pmuk_counter *c, u64 *count)
{
	/* With CONFIG_DEBUG_PREEMPT, the other function warns of callers that may migrate. */
	if (!IS_ENABLED(CONFIG_DEBUG_PREEMPT) && likely(c && count) &&
	    likely(pmuk_read_fast(c, count)))
		return 0;
	return __pmuk_counter_read_local(c, count);
}

#endif /* _LINUX_PMU_KAPI_READ_H */
