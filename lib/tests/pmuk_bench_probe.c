// SPDX-License-Identifier: GPL-2.0
/*
 * A probe of the tracepoint sched_switch that does nothing. The probe is registered while a process
 * has <debugfs>/pmuk_bench_probe/run open. The selftest pmuk_sched/bench_switch.c measures how
 * much longer a context switch then takes: that is what accounting pays for the tracepoint.
 */
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <trace/events/sched.h>

#include "pmuk_bench.h"

static void empty_probe(void *data, bool preempt, struct task_struct *prev,
			struct task_struct *next, unsigned int prev_state)
{
}

static void find_switch(struct tracepoint *tp, void *found)
{
	if (!strcmp(tp->name, "sched_switch"))
		*(struct tracepoint **)found = tp;
}

static int run_open(struct inode *inode, struct file *file)
{
	struct tracepoint *tp = NULL;

	check_trace_callback_type_sched_switch(empty_probe);
	/* The tracepoint is not exported. */
	for_each_kernel_tracepoint(find_switch, &tp);
	file->private_data = tp;
	return tp ? tracepoint_probe_register(tp, empty_probe, NULL) : -ENOENT;
}

static int run_release(struct inode *inode, struct file *file)
{
	tracepoint_probe_unregister(file->private_data, empty_probe, NULL);
	tracepoint_synchronize_unregister();
	return 0;
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE,
	.open = run_open,
	.release = run_release,
};

BENCH_MODULE(pmuk_bench_probe, 0400, "What a probe of the tracepoint sched_switch costs");
