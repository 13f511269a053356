/* SPDX-License-Identifier: GPL-2.0 */
/*
 * perf_local.h calls these functions to read the register of an event that is on this CPU's PMU. An
 * architecture whose registers can be read directly defines some of the functions before it
 * includes this file. This file defines those that are missing, but not perf_arch_read_on(),
 * perf_arch_read_all() and perf_arch_irqs(): where these are missing, perf_local.h and
 * pmu_kapi_group.h do without.
 *
 * perf_arch_mask() says whether the register of an event on a core PMU may be read directly, and
 * how wide the register is; perf_arch_read() reads it. perf_arch_where() says which register the
 * event is in, for perf_arch_read_at(); perf_arch_is_moved() says afterwards whether the PMU's
 * driver has moved the event to another register, which perf core does not notice. Nothing here
 * writes these registers. Events that are not read directly go through pmu->read().
 *
 * perf_arch_read_on() also reads the register. It returns false if it does not read that register,
 * or the event is in none. perf_arch_read_all() reads several events, or returns false for the same
 * reasons, and on x86 if one of them is stopped. perf_arch_nmis() is a number that each NMI of this
 * CPU changes; arm64's number includes interrupts, so callers have them off. perf_arch_irqs()
 * points to the number of all interrupts of this CPU. An architecture that defines it also defines
 * perf_arch_read_on().
 */
#ifndef _ASM_GENERIC_PERF_ARCH_H
#define _ASM_GENERIC_PERF_ARCH_H

#ifndef perf_arch_mask
static inline u64 perf_arch_mask(const struct perf_event *event)
{
	return 0;
}

static __always_inline u64 perf_arch_read(const struct perf_event *event)
{
	return 0;
}
#endif

/* Returns nonzero if @now, a variable that another context may change, differs from @was. */
#ifndef perf_arch_changed
#define perf_arch_changed(was, now)		((was) ^ READ_ONCE(now))
#define perf_arch_count_changed(was, now)	((was) ^ local64_read(&(now)))
#endif

#ifndef perf_arch_stops_after_nmi
#define perf_arch_stops_after_nmi()	false
#endif

/* Does a running event's user page become right only by a start of the event? */
#ifndef perf_arch_page_wants_start
#define perf_arch_page_wants_start()	false
#endif

/* Does pmu->read() of an event's PMU give the number of events? */
#ifndef perf_arch_is_counter
#define perf_arch_is_counter(event)	((void)(event), true)
#endif

/* Other drivers keep a counter in one register for as long as the counter is on the PMU. */
#ifndef perf_arch_is_moved
struct perf_arch_place { };
#define perf_arch_where(event)			((void)(event), (struct perf_arch_place){ })
#define perf_arch_read_at(event, place)		((void)(place), perf_arch_read(event))
#define perf_arch_is_moved(event, place)	((void)(event), (void)(place), 0)
#endif

/* Without a count of NMIs, a reader of several counters cannot detect an NMI in between. */
#ifndef perf_arch_nmis
#define perf_arch_nmis()	0
#endif

#endif /* _ASM_GENERIC_PERF_ARCH_H */
