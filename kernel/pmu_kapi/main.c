// SPDX-License-Identifier: GPL-2.0
/* Loading and unloading pmuk. */
#include <linux/init.h>
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "debugfs.h"
#include "device.h"
#include "hotplug.h"
#include "reserve.h"
#include "share.h"
#include "work.h"

static int __init pmuk_init(void)
{
	int ret = pmuk_work_init();

	if (ret)
		return ret;
	pmuk_trial_init();
	pmuk_reserve_init();
	ret = perf_pmu_register(&pmuk_rider_pmu, "pmuk", -1);
	if (ret)
		goto fail_share;
	ret = pmuk_hotplug_init();
	if (ret)
		goto fail_hotplug;
	ret = misc_register(&pmuk_device);
	if (ret)
		goto fail_device;
	pmuk_debugfs_init();
	return 0;

fail_device:
	pmuk_hotplug_exit();
fail_hotplug:
	perf_pmu_unregister(&pmuk_rider_pmu);
fail_share:
	pmuk_work_exit();
	return ret;
}
fs_initcall(pmuk_init);	/* after misc_init() */

/*
 * Each object that a consumer has created, and each open file, holds the module. Some work may
 * still be about to return, and memory may be waiting for a grace period before it is freed.
 */
static void __exit pmuk_exit(void)
{
	pmuk_debugfs_exit();
	misc_deregister(&pmuk_device);
	pmuk_hotplug_exit();
	pmuk_reserve_exit();
	rcu_barrier();
	perf_pmu_unregister(&pmuk_rider_pmu);
	pmuk_work_exit();
}
module_exit(pmuk_exit);

MODULE_DESCRIPTION("Performance counters for kernel code");
MODULE_LICENSE("GPL");
