// SPDX-License-Identifier: GPL-2.0
/*
 * The NMI hard-lockup watchdog: the NMI of a CPU's own cycle counter, or a neighbour, reports a CPU
 * that is stuck with interrupts off. The report comes within 1.05 times a threshold: within 1.25
 * times if the CPU's clock has changed or the CPU is halted, within 2.6 times if it is isolated. A
 * watchdog device restarts the machine when user space stops pinging, even if no CPU takes
 * interrupts any more.
 *
 * This file has the load and unload of the module, and the notifiers for suspend, panic and changed
 * settings. See Documentation/watchdog/pmuk-wdt.rst.
 */
#define pr_fmt(fmt) "pmuk_wdt: " fmt

#include <linux/init.h>
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/nmi.h>
#include <linux/panic_notifier.h>
#include <linux/printk.h>
#include <linux/suspend.h>
#include <linux/workqueue.h>

#include "timer_nmi.h"
#include "wdt.h"

static bool timer_nmi;
module_param(timer_nmi, bool, 0444);
MODULE_PARM_DESC(timer_nmi, "Detect lockups by the NMI of a timer that Linux does not use, on arm64 (default 0: a hypervisor may lack the timer)");

/* ---- suspend, panic, and settings ---- */

/*
 * The caller holds the mutex of the settings, which arming takes too, so a worker does the work. An
 * unbound worker can leave a CPU on which a real-time task preempts it.
 */
static int pmuk_wdt_settings_change(struct notifier_block *nb, unsigned long code, void *data)
{
	mod_delayed_work(system_dfl_wq, &pmuk_wdt.configure, 0);
	return NOTIFY_DONE;
}

static struct notifier_block pmuk_wdt_settings_nb = {
	.notifier_call = pmuk_wdt_settings_change,
};

static int pmuk_wdt_pm(struct notifier_block *nb, unsigned long mode, void *data)
{
	switch (mode) {
	case PM_HIBERNATION_PREPARE:
	case PM_RESTORE_PREPARE:
	case PM_SUSPEND_PREPARE:
		return notifier_from_errno(pmuk_wdt_suspend(&pmuk_wdt));
	case PM_POST_HIBERNATION:
	case PM_POST_RESTORE:
	case PM_POST_SUSPEND:
		pmuk_wdt_resume(&pmuk_wdt);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block pmuk_wdt_pm_nb = {
	.notifier_call = pmuk_wdt_pm,
};

/* A panic stops the other CPUs, so their silence is no lockup. */
static int pmuk_wdt_panics(struct notifier_block *nb, unsigned long code, void *data)
{
	WRITE_ONCE(pmuk_wdt.panicking, true);
	return NOTIFY_DONE;
}

static struct notifier_block pmuk_wdt_panic_nb = {
	.notifier_call	= pmuk_wdt_panics,
	.priority	= INT_MAX,
};

/* ---- load and unload ---- */

static void pmuk_wdt_timers_request(struct pmuk_wdt *w)
{
	int ret = timer_nmi ? pmuk_timer_nmi_request(pmuk_wdt_timer_nmi) : -ENODEV;

	w->timers = !ret;
	if (timer_nmi && ret)
		pr_notice("no timer's NMI (%d)\n", ret);
}

static void pmuk_wdt_timers_free(struct pmuk_wdt *w)
{
	if (w->timers)
		pmuk_timer_nmi_free();
}

static int pmuk_wdt_setup(struct pmuk_wdt *w)
{
	int ret;

	INIT_WORK(&w->manage, pmuk_wdt_manage);
	INIT_DELAYED_WORK(&w->configure, pmuk_wdt_configure);
	ret = pmuk_wdt_counters_init();
	if (ret)
		return ret;
	pmuk_wdt_timers_request(w);
	ret = pmuk_wdt_first_threshold(w);
	if (ret)
		goto err_counters;
	ret = pmuk_wdt_device_init(&w->dev, pmuk_wdt_groups);
	if (ret)
		goto err_armed;
	return 0;

err_armed:
	scoped_guard(mutex, &w->lock)
		pmuk_wdt_disarm_all(w);
err_counters:
	cancel_delayed_work_sync(&w->configure);
	pmuk_wdt_timers_free(w);
	pmuk_wdt_counters_exit();
	return ret;
}

static int __init pmuk_wdt_init(void)
{
	int ret = pmuk_wdt_setup(&pmuk_wdt);

	if (ret)
		return ret;
	register_pm_notifier(&pmuk_wdt_pm_nb);
	hardlockup_settings_register(&pmuk_wdt_settings_nb);
	/* The settings may have changed since they were read for arming. */
	pmuk_wdt_settings_change(&pmuk_wdt_settings_nb, 0, NULL);
	atomic_notifier_chain_register(&panic_notifier_list, &pmuk_wdt_panic_nb);
	pmuk_wdt_sysfs_init();
	pmuk_wdt_debugfs_init();
	return 0;
}
late_initcall(pmuk_wdt_init);	/* after the PMU drivers */

static void __exit pmuk_wdt_exit(void)
{
	pmuk_wdt_debugfs_exit();
	pmuk_wdt_sysfs_exit();
	atomic_notifier_chain_unregister(&panic_notifier_list, &pmuk_wdt_panic_nb);
	hardlockup_settings_unregister(&pmuk_wdt_settings_nb);
	unregister_pm_notifier(&pmuk_wdt_pm_nb);
	pmuk_wdt_device_exit(&pmuk_wdt.dev);
	scoped_guard(mutex, &pmuk_wdt.lock)
		pmuk_wdt_disarm_all(&pmuk_wdt);
	cancel_delayed_work_sync(&pmuk_wdt.configure);
	irq_work_sync(&pmuk_wdt.dev.notify);	/* the last beats may have queued it */
	pmuk_wdt_timers_free(&pmuk_wdt);
	pmuk_wdt_counters_exit();
}
module_exit(pmuk_wdt_exit);

MODULE_DESCRIPTION("NMI hard-lockup watchdog");
MODULE_LICENSE("GPL");
