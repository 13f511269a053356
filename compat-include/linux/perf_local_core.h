/* SPDX-License-Identifier: GPL-2.0 */
/* Older kernels keep parts of perf core's state elsewhere. */
#ifndef _PMUK_COMPAT_LINUX_PERF_LOCAL_CORE_H
#define _PMUK_COMPAT_LINUX_PERF_LOCAL_CORE_H

#include_next <linux/perf_local_core.h>
#include <linux/version.h>

/* 7.0 put a context's clock into struct perf_time_ctx, and has another one for guests. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#undef perf_ctx_offset
#define perf_ctx_offset(ctx)		READ_ONCE((ctx)->timeoffset)
#undef perf_ctx_time
/* Another CPU that reads an event of the context may update it meanwhile. */
#define perf_ctx_time(ctx)		data_race((ctx)->time)
#undef perf_ctx_guest_time
#define perf_ctx_guest_time(ctx)	0ULL
#endif

/* 6.15 moved pmu_disable_count into what a PMU has for each CPU. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
#undef perf_pmu_contexts
#define perf_pmu_contexts(pmu, cpu)	per_cpu_ptr((pmu)->cpu_pmu_context, cpu)
#undef perf_pmu_disabled
#define perf_pmu_disabled(pmu)		(*this_cpu_ptr((pmu)->pmu_disable_count))
#endif

/* Need patches/7.3/0006-*: without it counters are enabled and disabled one by one. */
#define perf_events_enable(events, nr)	((void)(events), (void)(nr))
#define perf_events_disable(events, nr)	((void)(events), (void)(nr))

#endif /* _PMUK_COMPAT_LINUX_PERF_LOCAL_CORE_H */
