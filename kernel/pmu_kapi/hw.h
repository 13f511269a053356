/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A counter's own CPU reads, stops and starts the counter's event. perf core touches the event's
 * hardware state, in linux/perf_local.h and kernel/events/local.c; pmuk decides by the counter's
 * attributes and state what perf core is to do. Reads that have to be fast are inline.
 */
#ifndef _PMU_KAPI_HW_H
#define _PMU_KAPI_HW_H

#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/perf_event.h>
#include <linux/perf_local.h>
#include <linux/preempt.h>

#include "counter.h"

/*
 * Returns nonzero where the fast path is closed: in NMI, and for a reader of a task counter who may
 * be moved to another CPU between the check of the event's CPU and the read. That CPU may be of
 * another kind, and lack the register.
 */
static __always_inline u32 pmuk_hw_is_barred(const struct pmuk_counter *c)
{
	return ((u32)preempt_count() - c->bar) & (u32)(NMI_MASK | PMUK_BARRED);
}

/*
 * The register may be read if the counter is on this CPU and the fast path is not barred. An
 * interrupt may come between any two steps, so compare afterwards. ->state says whether fast reads
 * are allowed; a pause by an NMI that leaves the hardware running changes it. ->state is read
 * before perf core compares: a later resume changes the count.
 */
static __always_inline bool pmuk_hw_read_fast(struct pmuk_counter *c, u64 *count)
{
	const struct perf_event *event = c->event;
	struct perf_local_read read;
	u64 tick, now;

	if (unlikely(pmuk_hw_is_barred(c) | perf_local_read_where(event, &read)))
		return false;

	perf_local_read_register(event, &read);
	tick = READ_ONCE(c->state);
	now = perf_local_read_value(&read, c->mask);
	if (unlikely(perf_arch_changed(tick, jiffies) | perf_local_read_changed(event, &read)))
		return false;

	c->last = now;
	*count = now;
	return true;
}

/* How a counter's register is read; const while the counter is enabled. */
u64 pmuk_hw_mask(const struct pmuk_counter *c);
u32 pmuk_hw_bar(const struct pmuk_counter *c);
bool pmuk_hw_is_software(const struct pmuk_counter *c);
bool pmuk_hw_is_clock(const struct pmuk_counter *c);

/* Read. */
u64 pmuk_hw_count(const struct pmuk_counter *c);
void pmuk_hw_times(const struct pmuk_counter *c, struct pmuk_value *value);

/* Go on. */
void pmuk_hw_refresh_page(const struct pmuk_counter *c);
bool pmuk_hw_never_throttle(const struct pmuk_counter *c, struct perf_event *event);

/* Periods. */
bool pmuk_hw_takes_period(const struct pmuk_counter *c, u64 period);
void pmuk_hw_begin_period(const struct pmuk_counter *c, u64 period);

/* Was the overflow served? */
bool pmuk_hw_has_overflowed(const struct pmuk_counter *c);
bool pmuk_hw_stops_after_nmi(const struct pmuk_counter *c);
bool pmuk_hw_take_overflow(const struct pmuk_counter *c);

#endif /* _PMU_KAPI_HW_H */
