// SPDX-License-Identifier: GPL-2.0
/* Counts the cycles of a section of code on its own CPU, and watches the count from another CPU. */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/pmu_kapi.h>
#include <linux/random.h>
#include <linux/sched.h>

static struct pmuk_counter *counter;
static const char *unit = "cycles";
static u8 from[4096], to[4096];
static u64 copies, cycles;
static DECLARE_COMPLETION(ended);

/* Local calls are for the counter's own CPU, to which this thread is bound. NMIs may make them. */
static int copy(void *unused)
{
	unsigned long end = jiffies + HZ;
	u64 before, after;

	if (pmuk_counter_read_local(counter, &before)) {
		pr_info("no counts: state %d\n", pmuk_counter_state(counter));	/* PMUK_COUNTER_* */
		kthread_complete_and_exit(&ended, 0);
	}
	for (; time_before(jiffies, end); copies++) {
		pmuk_counter_pause(counter);	/* count the copy, and not what prepares it */
		get_random_bytes(from, sizeof(from));
		cond_resched();
		pmuk_counter_resume(counter);
		memcpy(to, from, sizeof(to));
	}
	if (!pmuk_counter_read_local(counter, &after))
		cycles = after - before;
	kthread_complete_and_exit(&ended, 0);
}

/* A snapshot does not interrupt the counter's CPU: it has what was published there, and its age. */
static void watch(void)
{
	struct pmuk_value seen;

	while (!wait_for_completion_timeout(&ended, HZ / 4)) {
		pmuk_counter_snapshot(counter, &seen);
		pr_info("%llu %s until %llu us ago\n", seen.count, unit, seen.age / NSEC_PER_USEC);
	}
	if (copies)
		pr_info("%llu copies of %zu bytes, %llu %s each\n", copies, sizeof(to),
			cycles / copies, unit);
}

static int __init pmuk_section_init(void)
{
	int cpu = cpumask_last(cpu_online_mask), ret;
	struct pmuk_attr attr = { .type = PERF_TYPE_HARDWARE };		/* event 0: cycles */
	struct task_struct *thread;

	counter = pmuk_counter_create(&attr, cpu, NULL);
	if (counter == ERR_PTR(-ENOENT)) {	/* most VMs have no PMU */
		attr.type = PERF_TYPE_SOFTWARE;	/* event 0: cpu-clock */
		unit = "ns";
		counter = pmuk_counter_create(&attr, cpu, NULL);
	}
	ret = IS_ERR(counter) ? PTR_ERR(counter) : pmuk_counter_enable(counter);
	if (!ret) {
		thread = kthread_run_on_cpu(copy, NULL, cpu, "pmuk_section/%u");
		ret = PTR_ERR_OR_ZERO(thread);
	}
	if (!ret)
		watch();
	pmuk_counter_destroy(counter);
	return ret;
}
module_init(pmuk_section_init);

static void __exit pmuk_section_exit(void) { }
module_exit(pmuk_section_exit);
MODULE_DESCRIPTION("pmuk sample: the cycles of a section of code, and of nothing around it");
MODULE_LICENSE("GPL");
