// SPDX-License-Identifier: GPL-2.0
/* A profiler: each million cycles, a record of the instruction pointer. A thread reads in place. */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/pmu_kapi.h>

static DEFINE_PER_CPU(struct pmuk_buffer *, buffers);
static DEFINE_PER_CPU(struct pmuk_counter *, counters);
static DECLARE_COMPLETION(more);	/* by the buffers, and by pmuk_profile_init() at the end */
static DECLARE_COMPLETION(ended);
static bool ending;
static struct { char name[48]; u32 hits; } functions[1000];
static u32 samples, lost;

static void hit(u64 ip)
{
	char name[sizeof(functions[0].name)];
	int i;

	samples++;
	snprintf(name, sizeof(name), "%ps", (void *)ip);
	for (i = 0; i < ARRAY_SIZE(functions) - 1 && functions[i].hits; i++)
		if (!strcmp(functions[i].name, name))
			break;
	strscpy(functions[i].name, i < ARRAY_SIZE(functions) - 1 ? name : "(others)");
	functions[i].hits++;
}

static void walk(struct pmuk_buffer *b)
{
	const struct perf_event_header *rec;
	struct pmuk_reader r;

	if (pmuk_buffer_claim(b, &r))
		return;
	pmuk_for_each_record(rec, &r) {
		if (rec->type == PERF_RECORD_LOST)
			lost += ((const u64 *)rec)[2];
		else if (rec->misc == PERF_RECORD_MISC_KERNEL)	/* late ones may be in user space */
			hit(((const u64 *)rec)[1]);
	}
	pmuk_buffer_release(&r);
}

static int profile(void *unused)
{
	int cpu;

	while (!READ_ONCE(ending)) {
		wait_for_completion(&more);
		for_each_possible_cpu(cpu)
			walk(per_cpu(buffers, cpu));
	}
	kthread_complete_and_exit(&ended, 0);
}

static int start(int cpu)
{
	const struct pmuk_buffer_attr how = { .nr_pages = 4, .completion = &more };
	struct pmuk_buffer *b = per_cpu(buffers, cpu) = pmuk_buffer_create(&how, cpu);
	struct pmuk_attr what = {
		.type = PERF_TYPE_HARDWARE,	/* event 0: cycles, or cpu-clock of software */
		.period = 1000000, .flags = PMUK_EXCLUDE_USER,
		.sample_type = PERF_SAMPLE_IP, .buffer = b,
	};
	struct pmuk_counter *c;

	if (IS_ERR(b))
		return PTR_ERR(b);
	c = pmuk_counter_create(&what, cpu, NULL);
	what.type = PERF_TYPE_SOFTWARE;
	if (c == ERR_PTR(-ENOENT))	/* most VMs have no PMU: sample each millisecond */
		c = pmuk_counter_create(&what, cpu, NULL);
	per_cpu(counters, cpu) = c;
	return IS_ERR(c) ? PTR_ERR(c) : pmuk_counter_enable(c);
}

static void print_top(int top)
{
	u32 i, best;

	pr_info("%u samples, %u lost\n", samples, lost);
	for (; top; top--) {
		for (best = 0, i = 1; i < ARRAY_SIZE(functions); i++)
			best = functions[i].hits > functions[best].hits ? i : best;
		i = samples ? functions[best].hits * 100 / samples : 0;
		pr_info("%4u %%  %s\n", i, functions[best].name);
		functions[best].hits = 0;
	}
}

static int __init pmuk_profile_init(void)
{
	int cpu, ret = 0;

	if (IS_ERR(kthread_run(profile, NULL, "pmuk_profile")))
		return -ENOMEM;
	for_each_online_cpu(cpu)
		ret = ret ?: start(cpu);
	msleep(ret ? 0 : 2000);
	for_each_possible_cpu(cpu)
		pmuk_counter_destroy(per_cpu(counters, cpu));
	WRITE_ONCE(ending, true);
	complete(&more);
	wait_for_completion(&ended);
	for_each_possible_cpu(cpu) {
		walk(per_cpu(buffers, cpu));	/* records below the watermark wake nobody */
		pmuk_buffer_destroy(per_cpu(buffers, cpu));
	}
	print_top(10);
	return ret;
}
module_init(pmuk_profile_init);

static void __exit pmuk_profile_exit(void) { }
module_exit(pmuk_profile_exit);
MODULE_DESCRIPTION("pmuk sample: the ten hottest functions of the kernel");
MODULE_LICENSE("GPL");
