/* SPDX-License-Identifier: GPL-2.0 */
/* perf's event of a counter, and how it is created and enabled. */
#ifndef _PMU_KAPI_EVENT_H
#define _PMU_KAPI_EVENT_H

#include <linux/perf_event.h>
#include <linux/pmu_kapi.h>

/* Tells perf core what to count. The caller adds the period. */
struct perf_event_attr pmuk_event_attr(const struct pmuk_attr *attr);

/* Returns the fields that are asked of the driver and perf core. */
u64 pmuk_event_sample_type(const struct pmuk_attr *attr);

/* Returns the limit of perf core's callchains, and of branches. */
u32 pmuk_event_max_stack(const struct pmuk_attr *attr);

/* @precise: 0 to 3, or PMUK_PRECISE_BEST. Sets @pa->precise_ip and @pa->wakeup_events. */
struct perf_event *pmuk_event_create(struct perf_event_attr *pa, unsigned int precise, int cpu,
				     struct task_struct *task, perf_overflow_handler_t handler,
				     void *context);

bool pmuk_event_takes_register(u32 type);
int pmuk_event_end_trial(struct perf_event *event);

/* Enables an event that is off or was pushed out, and writes the time to *@since. */
void pmuk_event_enable(struct perf_event *event, u64 *since);

#endif /* _PMU_KAPI_EVENT_H */
