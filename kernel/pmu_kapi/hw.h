/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A counter's own CPU reads, stops and starts the counter's event. perf core touches the event's
 * hardware state, in linux/perf_local.h and kernel/events/local.c; pmuk decides by the counter's
 * attributes and state what perf core is to do. A counter that shares a register is a rider, and
 * the event that has the register is of its host, see share.h.
 */
#ifndef _PMU_KAPI_HW_H
#define _PMU_KAPI_HW_H

#include <linux/perf_event.h>
#include <linux/perf_local.h>

#include "counter.h"

/* The way to read a counter's register; const while the counter is enabled. */
u64 pmuk_hw_mask(const struct pmuk_counter *c);
u32 pmuk_hw_bar(const struct pmuk_counter *c);
bool pmuk_hw_is_software(const struct pmuk_counter *c);
bool pmuk_hw_is_clock(const struct pmuk_counter *c);
bool pmuk_hw_counts_up(const struct pmuk_counter *c);
bool pmuk_hw_adapts(const struct pmuk_counter *c);

/* Read. */
bool pmuk_hw_is_on(const struct pmuk_counter *c);
bool pmuk_hw_is_out_of_reach(const struct pmuk_counter *c);
void pmuk_hw_times(const struct pmuk_counter *c, struct pmuk_value *value);
u64 pmuk_hw_ran_of_host(const struct pmuk_counter *c, u64 now);

/* Start, and keep running. */
void pmuk_hw_refresh_page(const struct pmuk_counter *c);
bool pmuk_hw_never_throttle(const struct pmuk_counter *c, struct perf_event *event);

/* Periods. */
bool pmuk_hw_takes_period(const struct pmuk_counter *c, u64 period);
void pmuk_hw_begin_period(const struct pmuk_counter *c, u64 period);

/* Overflows that nobody has handled yet. */
bool pmuk_hw_has_overflowed(const struct pmuk_counter *c);
bool pmuk_hw_is_overdue(const struct pmuk_counter *c);
bool pmuk_hw_stops_after_nmi(const struct pmuk_counter *c);

#endif /* _PMU_KAPI_HW_H */
