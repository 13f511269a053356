// SPDX-License-Identifier: GPL-2.0
/* The smallest useful consumer of pmuk: counts on each CPU for a second and prints a table. */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/pmu_kapi.h>

struct pair { struct pmuk_counter *c[2]; };
static DEFINE_PER_CPU(struct pair, counters);

static struct pmuk_counter *start(int cpu, u32 type, u64 config)
{
	const struct pmuk_attr attr = { .type = type, .config = config };
	struct pmuk_counter *c __free(pmuk_counter) = pmuk_counter_create(&attr, cpu, NULL);
	int ret = IS_ERR(c) ? PTR_ERR(c) : pmuk_counter_enable(c);

	return ret ? ERR_PTR(ret) : no_free_ptr(c);
}

static int print_and_free(int cpu)
{
	struct pmuk_counter *a __free(pmuk_counter) = per_cpu_ptr(&counters, cpu)->c[0];
	struct pmuk_counter *b __free(pmuk_counter) = per_cpu_ptr(&counters, cpu)->c[1];
	struct pmuk_value va, vb;

	if (pmuk_counter_read(a, &va))
		return PTR_ERR_OR_ZERO(a);	/* 0 if the CPU was offline or is offline now */
	if (pmuk_counter_read(b, &vb) || !va.count)
		pr_info("%3d %15llu %15s %6s\n", cpu, va.count, "-", "-");
	else
		pr_info("%3d %15llu %15llu %3llu.%02llu\n", cpu, va.count, vb.count,
			vb.count / va.count, vb.count % va.count * 100 / va.count);
	return 0;
}

static int __init pmuk_count_init(void)
{
	int cpu, ret = 0, software = 0;

	for_each_online_cpu(cpu) {
		struct pmuk_counter **c = per_cpu_ptr(&counters, cpu)->c;

		c[0] = start(cpu, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
		c[1] = start(cpu, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
		software = c[0] == ERR_PTR(-ENOENT);
		if (software)	/* most VMs have no PMU */
			c[0] = start(cpu, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	}
	msleep(1000);	/* a halted CPU counts no cycles: an idle CPU has few */
	pr_info("CPU %15s    instructions %6s\n", software ? "cpu-clock (ns)" : "cycles",
		software ? "no PMU" : "IPC");
	for_each_possible_cpu(cpu)
		ret = print_and_free(cpu) ?: ret;
	return ret;
}
module_init(pmuk_count_init);

static void __exit pmuk_count_exit(void) { }
module_exit(pmuk_count_exit);
MODULE_DESCRIPTION("pmuk sample: cycles and instructions of each CPU for a second");
MODULE_LICENSE("GPL");
