// SPDX-License-Identifier: GPL-2.0
/* Two samplers count the cycles of one CPU, each with its own period, and share a register. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/pmu_kapi.h>
#include <linux/smp.h>

struct sampler {
	const u64 period;
	unsigned long samples;		/* the callback writes */
	struct pmuk_counter *c;
};

static struct sampler samplers[] = { { .period = 1000000 }, { .period = 300000 } };

static void sample(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	((struct sampler *)data)->samples++;	/* in NMI, where the PMU's interrupt is one */
}

static int start(struct sampler *s, int cpu)
{
	const struct pmuk_attr attr = {
		.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,
		.flags = PMUK_PINNED | PMUK_EXCLUDE_GUEST,
		.period = s->period, .overflow = sample, .data = s,
	};

	s->c = pmuk_counter_create(&attr, cpu, NULL);
	return IS_ERR(s->c) ? PTR_ERR(s->c) : pmuk_counter_enable(s->c);
}

/* Returns how many more registers there are for cycles, PERF_TYPE_HARDWARE's first event. */
static int room(int cpu)
{
	static const struct pmuk_attr cycles[] = { [0 ... 15] = { .flags = PMUK_PRIVATE } };
	u32 fits;

	return pmuk_room(cycles, ARRAY_SIZE(cycles), cpu, &fits);
}

static int run(int cpu)
{
	int i, before = room(cpu), ret = min(before, 0);
	u64 count;

	for (i = 0; i < ARRAY_SIZE(samplers) && !ret; i++)
		ret = start(&samplers[i], cpu);
	if (ret)
		return ret;
	pr_info("CPU %d has room for %d counters of cycles, with both samplers for %d\n", cpu,
		before, room(cpu));
	mdelay(500);
	for (i = 0; i < ARRAY_SIZE(samplers) && !ret; i++) {
		ret = pmuk_counter_read_local(samplers[i].c, &count);
		pr_info("a sample each %llu cycles: %lu samples in %llu cycles\n",
			samplers[i].period, samplers[i].samples, count);
	}
	return ret;
}

static int __init pmuk_share_init(void)
{
	int i, ret;

	migrate_disable();
	ret = run(smp_processor_id());
	migrate_enable();
	for (i = 0; i < ARRAY_SIZE(samplers); i++)
		pmuk_counter_destroy(samplers[i].c);
	return ret;
}
module_init(pmuk_share_init);

static void __exit pmuk_share_exit(void) { }
module_exit(pmuk_share_exit);
MODULE_DESCRIPTION("pmuk sample: two samplers share a register");
MODULE_LICENSE("GPL");
