/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Names for the fields of perf's contexts and PMUs that kernel/events/local.c reads, and two calls
 * that enable or disable several events.
 */
#ifndef _LINUX_PERF_LOCAL_CORE_H
#define _LINUX_PERF_LOCAL_CORE_H

#include <linux/percpu.h>
#include <linux/perf_event.h>

/* The time of a perf context that is scheduled in is local_clock() plus this offset. */
#define perf_ctx_offset(ctx)	READ_ONCE((ctx)->time.offset)

/*
 * The time of a perf context when perf core has last updated it. Another CPU that reads an event of
 * the context may update it meanwhile.
 */
#define perf_ctx_time(ctx)		data_race((ctx)->time.time)

/* The part of a perf context's time for which guests had the PMU for themselves. */
#define perf_ctx_guest_time(ctx)	READ_ONCE((ctx)->timeguest.time)

/* The contexts of @pmu on @cpu. */
#define perf_pmu_contexts(pmu, cpu)	(*per_cpu_ptr((pmu)->cpu_pmu_context, cpu))

/* The nesting depth of @pmu's reprogramming on this CPU; 0: the PMU is not being reprogrammed. */
#define perf_pmu_disabled(pmu)	((*this_cpu_ptr((pmu)->cpu_pmu_context))->pmu_disable_count)

/* Unlike the calls of perf_local.h, these may sleep. See kernel/events/core.c. */
void perf_events_enable(struct perf_event **events, unsigned int nr);
void perf_events_disable(struct perf_event **events, unsigned int nr);

#endif /* _LINUX_PERF_LOCAL_CORE_H */
