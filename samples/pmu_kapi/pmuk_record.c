// SPDX-License-Identifier: GPL-2.0
/*
 * Samples all CPUs into buffers that user space reads through /dev/pmuk by the name "profile", as
 * "pmuk record --buffer profile" does: the callchain, 1000 times a second.
 */
#include <linux/module.h>
#include <linux/pmu_kapi.h>
#include <linux/pmu_kapi_context.h>

static struct pmuk_context *ctx;

static uint freq = 1000;
module_param(freq, uint, 0444);
MODULE_PARM_DESC(freq, "records per second of each CPU that is not idle");

static struct pmuk_context *create(void)
{
	const struct pmuk_perf_format fields = {
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
			       PERF_SAMPLE_CALLCHAIN,
	};
	const struct pmuk_context_attr attr = {
		.name = "profile",
		.flags = PMUK_CTX_EXPORT,
		.buffer = { .nr_pages = 16, .flags = PMUK_BUFFER_USER_TAIL },
		.format_arg = &fields,
		.format_arg_size = sizeof(fields),
	};

	return pmuk_create_context(&attr);
}

static int load(u32 type)
{
	struct pmuk_pmc what = { .type = type };	/* event 0: cycles, or cpu-clock */
	struct pmuk_pmd how = { .short_reset = 10000, .freq = freq };
	struct pmuk_target machine = { .type = PMUK_TARGET_CPUS };

	if (pmuk_write_pmcs(ctx, &what, 1) != 1)
		return what.ret;
	if (pmuk_write_pmds(ctx, &how, 1) != 1)
		return how.ret;
	return pmuk_load_context(ctx, &machine);
}

static int __init pmuk_record_init(void)
{
	int ret;

	if (!freq)
		return -EINVAL;
	ctx = create();
	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	ret = load(PERF_TYPE_HARDWARE);
	if (ret == -ENOENT)	/* most VMs have no PMU */
		ret = load(PERF_TYPE_SOFTWARE);
	ret = ret ?: pmuk_start(ctx, NULL);
	if (ret)
		pmuk_close(ctx);
	return ret;
}
module_init(pmuk_record_init);

/* A file of /dev/pmuk that has a buffer keeps it, and learns that the context was closed. */
static void __exit pmuk_record_exit(void)
{
	pmuk_close(ctx);
}
module_exit(pmuk_record_exit);
MODULE_DESCRIPTION("pmuk sample: records for user space");
MODULE_LICENSE("GPL");
