// SPDX-License-Identifier: GPL-2.0
/* A format of its own, in histogram.h: counts for a second where the kernel spends its cycles. */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/pmu_kapi.h>
#include <linux/sched.h>

#include "histogram.h"

#define SHIFT	18	/* a bucket is 256 KiB of the kernel's text */
#define NR	128

static int load(struct pmuk_context *ctx)
{
	struct pmuk_target machine = { .type = PMUK_TARGET_CPUS };
	struct pmuk_pmd pmd = { .short_reset = 1000000 };
	struct pmuk_pmc pmc = {
		.type = PERF_TYPE_HARDWARE,	/* event 0: cycles, or cpu-clock of software */
		.flags = PMUK_EXCLUDE_USER,
	};
	int ret;

	pmuk_write_pmcs(ctx, &pmc, 1);
	pmuk_write_pmds(ctx, &pmd, 1);
	ret = pmuk_load_context(ctx, &machine);
	if (ret != -ENOENT)
		return ret;
	pmc.type = PERF_TYPE_SOFTWARE;	/* most VMs have no PMU: sample each millisecond */
	pmuk_write_pmcs(ctx, &pmc, 1);
	return pmuk_load_context(ctx, &machine);
}

static void print_buckets(struct pmuk_context *ctx, u64 base)
{
	struct pmuk_histogram *h;
	u64 hits, other = 0;
	int cpu, i;

	for (i = 0; i < NR; i++) {
		hits = 0;
		for_each_possible_cpu(cpu) {
			h = pmuk_format_area(ctx, cpu);	/* NULL if the CPU was never online */
			hits += h ? atomic64_read(&h->counts[i]) : 0;
			other += h && !i ? atomic64_read(&h->other) : 0;
		}
		if (hits)
			pr_info("%8llu overflows from %ps on\n", hits,
				(void *)(unsigned long)(base + ((u64)i << SHIFT)));
	}
	pr_info("%8llu overflows elsewhere\n", other);
}

static int count(void)
{
	const struct pmuk_histogram_arg text = {	/* 16 MiB on each side of schedule() */
		.base = round_down((unsigned long)schedule, BIT(SHIFT)) - (NR / 2 << SHIFT),
		.size = (u64)NR << SHIFT,
		.shift = SHIFT,
	};
	const struct pmuk_context_attr attr = {
		.name = "pmuk_histogram",
		.format = &pmuk_histogram_format.uuid,
		.format_arg = &text,
		.format_arg_size = sizeof(text),
	};
	struct pmuk_context *ctx __free(pmuk_context) = pmuk_create_context(&attr);
	int ret = IS_ERR(ctx) ? PTR_ERR(ctx) : load(ctx) ?: pmuk_start(ctx, NULL);

	if (ret)
		return ret;
	msleep(1000);
	pmuk_stop(ctx);
	print_buckets(ctx, text.base);
	return 0;
}

static int __init pmuk_histogram_begin(void)
{
	int ret = pmuk_register_format(&pmuk_histogram_format);

	if (ret)
		return ret;
	ret = count();
	if (ret)
		pmuk_unregister_format(&pmuk_histogram_format);
	return ret;
}
module_init(pmuk_histogram_begin);

/* Other modules may use the format, too. Their contexts hold this module, which is not unloaded. */
static void __exit pmuk_histogram_end(void)
{
	pmuk_unregister_format(&pmuk_histogram_format);
}
module_exit(pmuk_histogram_end);
MODULE_DESCRIPTION("pmuk sample: a format, and where the kernel spends its cycles");
MODULE_LICENSE("GPL");
