/* SPDX-License-Identifier: GPL-2.0 */
/* A counter of a set, on one CPU or task. */
#ifndef _PMU_KAPI_SLOT_H
#define _PMU_KAPI_SLOT_H

#include <linux/atomic.h>
#include <linux/percpu.h>

#include "context.h"

DECLARE_PER_CPU(atomic_t, pmuk_ways_of);

/* Counts how often contexts have given way on the CPU. */
static inline atomic_t *pmuk_ways(int cpu)
{
	return per_cpu_ptr(&pmuk_ways_of, cpu);
}

u64 pmuk_record_id(const struct pmuk_context *ctx, u16 set, u16 num, int cpu);
struct pmuk_attr pmuk_slots_attr(const struct pmuk_context *ctx) __must_hold(&ctx->lock);
bool pmuk_def_is_recorded(const struct pmuk_context *ctx, const struct pmuk_def *def)
	__must_hold(&ctx->lock);
struct perf_event_attr pmuk_def_event_attr(const struct pmuk_context *ctx,
					   const struct pmuk_def *def) __must_hold(&ctx->lock);
struct pmuk_counter *pmuk_slot_make(struct pmuk_slot *slot, struct pmuk_attr *attr, u64 now);
bool pmuk_slot_takes(const struct pmuk_slot *slot, u64 period, u64 taken);
void pmuk_slot_show(struct pmuk_slot *slot);
void pmuk_slot_snapshot(const struct pmuk_slot *slot, struct pmuk_value *sum);
void pmuk_slot_rebase(struct pmuk_slot *slot, const struct pmuk_value *had);
int pmuk_slot_read(struct pmuk_slot *slot, struct pmuk_value *value);
void pmuk_slot_prepare(struct pmuk_slot *slot);
void pmuk_slot_restart(struct pmuk_slot *slot);
bool pmuk_slot_awaits_restart(const struct pmuk_slot *slot);
void pmuk_slot_watch(struct pmuk_slot *slot);
void pmuk_slot_retire(struct pmuk_slot *slot);

#endif /* _PMU_KAPI_SLOT_H */
