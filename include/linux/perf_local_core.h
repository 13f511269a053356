/* SPDX-License-Identifier: GPL-2.0 */
/* perf_local.h reads perf core's state of contexts and PMUs by these names. */
#ifndef _LINUX_PERF_LOCAL_CORE_H
#define _LINUX_PERF_LOCAL_CORE_H

#include <linux/percpu.h>
#include <linux/perf_event.h>

/* The time of a perf context that is scheduled in is local_clock() plus this offset. */
#define perf_ctx_offset(ctx)	READ_ONCE((ctx)->time.offset)

/* The part of a perf context's time for which guests had the PMU for themselves. */
#define perf_ctx_guest_time(ctx)	READ_ONCE((ctx)->timeguest.time)

/* The contexts of @pmu on @cpu. */
#define perf_pmu_contexts(pmu, cpu)	(*per_cpu_ptr((pmu)->cpu_pmu_context, cpu))

/* How deep reprogramming of @pmu is nested on this CPU; 0: the PMU is not being reprogrammed. */
#define perf_pmu_disabled(pmu)	((*this_cpu_ptr((pmu)->cpu_pmu_context))->pmu_disable_count)

#endif /* _LINUX_PERF_LOCAL_CORE_H */
