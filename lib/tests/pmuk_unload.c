// SPDX-License-Identifier: GPL-2.0
/*
 * The module has a format of its own. It lets contexts overflow, closes them from interrupts, and
 * does not wait, for tests that unload it meanwhile. As long as its parameter hold is set, no close
 * completes. Without contexts=N it does nothing.
 */
#define pr_fmt(fmt) "pmuk_unload: " fmt

#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/perf_event.h>
#include <linux/pmu_kapi.h>
#include <linux/time64.h>
#include <linux/uuid.h>

#include "pmuk_irq.h"

#define PERIOD_NS	(200 * NSEC_PER_USEC)
#define OVERFLOWS	10	/* overflows of each context before it is closed */

static unsigned int contexts;
module_param(contexts, uint, 0444);
MODULE_PARM_DESC(contexts, "how many are closed while it may be unloaded");

static bool hold = true;
module_param(hold, bool, 0644);
MODULE_PARM_DESC(hold, "closing waits for this to be cleared");

static atomic_t areas, overflows;

static size_t unload_getsize(const void *arg, size_t size)
{
	return sizeof(u64);
}

static int unload_init_area(void *area, int cpu, const void *arg, size_t size)
{
	atomic_inc(&areas);
	return 0;
}

static u32 unload_handle(const struct pmuk_format_event *event)
{
	atomic_inc(&overflows);
	return PMUK_FORMAT_RESET | PMUK_FORMAT_NOTIFY;
}

static void unload_exit_area(void *area, int cpu)
{
	while (READ_ONCE(hold))
		usleep_range(500, 1000);
	atomic_dec(&areas);
}

static struct pmuk_format unload_format = {
	.name		= "unload",
	.uuid		= UUID_INIT(0x1f8e5cd0, 0x8f0e, 0x4e0b, 0x9c, 0x4d, 0x10, 0x3b, 0x57, 0x22,
				    0x5e, 0x03),
	.owner		= THIS_MODULE,
	.getsize	= unload_getsize,
	.init		= unload_init_area,
	.handler	= unload_handle,
	.exit		= unload_exit_area,
};

static int unload_start(struct pmuk_context *ctx)
{
	struct pmuk_pmc pmc = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK };
	struct pmuk_pmd pmd = { .short_reset = PERIOD_NS };
	struct pmuk_target target = { .type = PMUK_TARGET_CPUS };
	int ret;

	if (pmuk_write_pmcs(ctx, &pmc, 1) != 1 || pmuk_write_pmds(ctx, &pmd, 1) != 1)
		return -EINVAL;
	ret = pmuk_load_context(ctx, &target);
	return ret ?: pmuk_start(ctx, NULL);
}

static void unload_close(void *ctx)
{
	if (pmuk_close_deferred(ctx, NULL))
		pr_err("cannot close a context\n");
}

static int unload_once(enum pmuk_irq_level level)
{
	const struct pmuk_context_attr attr = { .format = &unload_format.uuid,
						.buffer.nr_pages = 1 };
	struct pmuk_context *ctx = pmuk_create_context(&attr);
	int ret, until = atomic_read(&overflows) + OVERFLOWS;

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	ret = unload_start(ctx);
	while (!ret && atomic_read(&overflows) - until < 0)
		usleep_range(50, 100);
	if (pmuk_irq_run(level, unload_close, ctx))
		pr_err("cannot close a context at level %d\n", level);
	return ret;
}

static int __init pmuk_unload_init(void)
{
	int ret = pmuk_register_format(&unload_format);
	unsigned int i;

	if (ret)
		return ret;
	for (i = 0; i < contexts && !ret; i++)
		ret = unload_once(i % PMUK_IRQ_NMI);
	/*
	 * An error here would free the module at once, and not wait for the contexts that are being
	 * closed.
	 */
	if (ret)
		pr_err("cannot use a context: %d\n", ret);
	return 0;
}
module_init(pmuk_unload_init);

static void __exit pmuk_unload_exit(void)
{
	int ret = pmuk_unregister_format(&unload_format);

	if (ret || atomic_read(&areas))
		pr_err("unloaded with %d areas: %d\n", atomic_read(&areas), ret);
}
module_exit(pmuk_unload_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A format that goes while its contexts are being closed, for testing pmuk");
