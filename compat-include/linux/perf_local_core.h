/* SPDX-License-Identifier: GPL-2.0 */
/* Older kernels keep parts of perf core's state elsewhere. */
#ifndef _PMUK_COMPAT_LINUX_PERF_LOCAL_CORE_H
#define _PMUK_COMPAT_LINUX_PERF_LOCAL_CORE_H

#include_next <linux/perf_local_core.h>
#include <linux/perf_local_state.h>
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

/* Without patches/7.3/0008-*, perf core enables and disables events one by one. */
static inline void pmuk_compat_events_enable(struct perf_event **events, unsigned int nr)
{
	for (; nr--; events++) {
		if (perf_local_state(*events) == PERF_EVENT_STATE_OFF)
			perf_event_enable(*events);
	}
}

#define perf_events_enable		pmuk_compat_events_enable

/* The caller disables each counter by pmuk_counter_disable() after this. */
#define perf_events_disable(events, nr)	((void)(events), (void)(nr))

#endif /* _PMUK_COMPAT_LINUX_PERF_LOCAL_CORE_H */
