// SPDX-License-Identifier: GPL-2.0
/* Read by spatch, never compiled: what pmuk_kernel_counter.cocci must report. */
#include <linux/perf_event.h>

static DEFINE_PER_CPU(struct perf_event *, events);

static int each_cpu(struct perf_event_attr *attr, perf_overflow_handler_t overflow)
{
	struct perf_event *event;
	int cpu;

	for_each_online_cpu(cpu) {
		event = perf_event_create_kernel_counter(attr, cpu, NULL, /* report: each_cpu() */
							 overflow, NULL);
		if (IS_ERR(event))
			return PTR_ERR(event);
		per_cpu(events, cpu) = event;
	}
	return 0;
}

static struct perf_event *returned(struct perf_event_attr *attr)
{
	return perf_event_create_kernel_counter(attr, 0, NULL, NULL, NULL); /* report: returned() */
}

static int d(struct perf_event_attr *attr, u64 *count)
{
	struct perf_event *event =
		perf_event_create_kernel_counter(attr, -1, current, NULL, NULL); /* report: d() */
	u64 enabled, running;

	if (IS_ERR(event))
		return PTR_ERR(event);
	*count = perf_event_read_value(event, &enabled, &running);
	return perf_event_release_kernel(event);
}

static int s(struct probe *probe)
{
	struct perf_event_attr *attr = &probe->attr;

	probe->event =
		perf_event_create_kernel_counter(attr, 0, NULL, NULL, probe); /* report: in s() */
	return PTR_ERR_OR_ZERO(probe->event);
}
