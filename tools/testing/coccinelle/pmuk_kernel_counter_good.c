// SPDX-License-Identifier: GPL-2.0
/* Read by spatch, never compiled: what pmuk_kernel_counter.cocci must not report. */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <linux/pmu_kapi.h>

static struct pmuk_counter *has_pmuk_already(const struct pmuk_attr *attr, int cpu)
{
	return pmuk_counter_create(attr, cpu, NULL);
}

static struct perf_event *has_a_breakpoint(struct perf_event_attr *attr, struct task_struct *task)
{
	return register_user_hw_breakpoint(attr, NULL, NULL, task);
}

static u64 has_an_event_of_user_space(struct file *file, u64 *enabled, u64 *running)
{
	struct perf_event *event = file->private_data;

	return perf_event_read_value(event, enabled, running);
}

/* perf_event_create_kernel_counter() in a comment is none. */
static void only_says_so(void)
{
	pr_debug("perf_event_create_kernel_counter() has failed\n");
}
