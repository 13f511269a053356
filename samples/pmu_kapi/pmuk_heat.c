// SPDX-License-Identifier: GPL-2.0
/*
 * Shows the hottest pages of the machine in <debugfs>/pmuk_heat. Their heat halves each second.
 *
 * Load the module with an event of the CPU that samples data addresses: on Intel's Skylake,
 * "type=4 config=0x1cd config1=3 precise=2 period=1009" samples loads. The default, minor faults,
 * shows pages that many processes map as hot. On stock kernels perf core finds no physical
 * addresses, so only events whose driver gives them, such as those of AMD's IBS, show pages.
 */
#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>

#include "heat.h"

static struct pmuk_pmc event = {
	.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS_MIN,
};
module_param_named(type, event.type, uint, 0444);
MODULE_PARM_DESC(type, "Type of the event, as in perf_event_attr (default: software)");
module_param_named(config, event.config, ullong, 0444);
MODULE_PARM_DESC(config, "The event (default: minor faults)");
module_param_named(config1, event.config1, ullong, 0444);
MODULE_PARM_DESC(config1, "More of the event (default 0)");
module_param_named(precise, event.precise_ip, uint, 0444);
MODULE_PARM_DESC(precise, "precise_ip of the event: 0 to 3, or 4: the best there is (default 0)");

static u64 period = 1;
module_param(period, ullong, 0444);
MODULE_PARM_DESC(period, "About how many events lie between two samples (default 1)");

static DEFINE_MUTEX(lock);
static struct pmuk_heat heat;		/* under lock while the thread runs; ->ctx is const then */
static DECLARE_COMPLETION(more);
static struct task_struct *thread;
static struct dentry *file;

static int watch(void *unused)
{
	unsigned long cool_at = jiffies + HZ;
	struct pmuk_msg msg;

	while (!kthread_should_stop()) {
		pmuk_read_timeout(heat.ctx, &msg, HZ / 10);
		guard(mutex)(&lock);
		pmuk_heat_collect(&heat);
		if (time_before(jiffies, cool_at))
			continue;
		pmuk_heat_cool(&heat);
		cool_at += HZ;
	}
	return 0;
}

static int top_show(struct seq_file *m, void *unused)
{
	struct pmuk_heat_page top[20];
	int i, nr;

	guard(mutex)(&lock);
	nr = pmuk_heat_top(&heat, top, ARRAY_SIZE(top));
	seq_printf(m, "%llu samples of pages, %llu of caches, %llu without an address, %llu lost\n",
		   heat.samples, heat.cached, heat.unknown, heat.lost);
	seq_puts(m, "          page      heat\n");
	for (i = 0; i < nr; i++)
		seq_printf(m, "%#14llx %9lu\n", (u64)PFN_PHYS(top[i].pfn), top[i].heat);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(top);

static int __init pmuk_heat_init(void)
{
	int ret;

	if (event.type == PERF_TYPE_SOFTWARE)
		event.flags = PMUK_NO_THROTTLE;	/* perf core would throttle bursts of faults */
	ret = pmuk_heat_start(&heat, event, period, &more);
	if (ret)
		return ret;
	thread = kthread_run(watch, NULL, "pmuk_heat");
	if (IS_ERR(thread)) {
		pmuk_heat_stop(&heat);
		return PTR_ERR(thread);
	}
	file = debugfs_create_file("pmuk_heat", 0400, NULL, NULL, &top_fops);
	return 0;
}
module_init(pmuk_heat_init);

static void __exit pmuk_heat_exit(void)
{
	debugfs_remove(file);
	kthread_stop(thread);
	pmuk_heat_stop(&heat);
}
module_exit(pmuk_heat_exit);
MODULE_DESCRIPTION("pmuk sample: the hottest pages of the machine");
MODULE_LICENSE("GPL");
