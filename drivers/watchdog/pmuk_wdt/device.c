// SPDX-License-Identifier: GPL-2.0
/*
 * The watchdog device: user space pings the device. When the pings cease, the machine restarts,
 * even if each CPU spins with interrupts off.
 *
 * Beats and NMIs compare the times of the timeout and the pretimeout with the clock, without a
 * lock. To act on a time that is over, a CPU first replaces that time by 0 with cmpxchg64(). So
 * only one CPU acts, and none does if a ping has changed the time. Beats check the times as long as
 * any CPU beats, and NMIs do when no CPU beats.
 *
 * Pretimeout governors must not be called in NMI: watchdog_notify_pretimeout() takes a spinlock
 * that the interrupted CPU may hold, and the panic governor panics with that spinlock held. So at
 * the pretimeout an NMI prints its registers and stack, and marks the notification as pending. The
 * next beat of any CPU queues an irq_work that calls the governor. When no CPU takes interrupts any
 * more, the governor is not called. With pretimeout_panic the NMI itself calls nmi_panic().
 */
#define pr_fmt(fmt) "pmuk_wdt: " fmt

#include <linux/atomic.h>
#include <linux/hardirq.h>
#include <linux/irq_work.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/panic.h>
#include <linux/printk.h>
#include <linux/reboot.h>
#include <linux/string.h>
#include <linux/timekeeping.h>

#include "wdt.h"

#define PMUK_WDT_TIMEOUT	60	/* seconds */
#define PMUK_WDT_TIMEOUT_MAX	65535

static unsigned int timeout = PMUK_WDT_TIMEOUT;
module_param(timeout, uint, 0444);
MODULE_PARM_DESC(timeout, "Seconds from a ping to the restart, 1 to 65535 (default 60)");

static unsigned int pretimeout;
module_param(pretimeout, uint, 0444);
MODULE_PARM_DESC(pretimeout, "Seconds before the restart at which a warning comes, below timeout; 0: none (default 0)");

static bool nowayout = WATCHDOG_NOWAYOUT;
module_param(nowayout, bool, 0444);
MODULE_PARM_DESC(nowayout, "The device cannot be stopped once it was started");

static bool pretimeout_panic;
module_param(pretimeout_panic, bool, 0644);
MODULE_PARM_DESC(pretimeout_panic, "Panic at the pretimeout, from NMI if need be (default 0)");

enum pmuk_wdt_action {
	PMUK_WDT_RESTART,
	PMUK_WDT_PANIC,
	PMUK_WDT_NOTHING,
};

static const char *const pmuk_wdt_actions[] = {
	[PMUK_WDT_RESTART]	= "restart",
	[PMUK_WDT_PANIC]	= "panic",
	[PMUK_WDT_NOTHING]	= "none",
};

static enum pmuk_wdt_action action = PMUK_WDT_RESTART;

static int pmuk_wdt_action_set(const char *value, const struct kernel_param *kp)
{
	int found = sysfs_match_string(pmuk_wdt_actions, value);

	if (found < 0)
		return found;
	WRITE_ONCE(action, found);
	return 0;
}

static int pmuk_wdt_action_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%s\n", pmuk_wdt_actions[READ_ONCE(action)]);
}

static const struct kernel_param_ops pmuk_wdt_action_ops = {
	.set = pmuk_wdt_action_set,
	.get = pmuk_wdt_action_get,
};

module_param_cb(action, &pmuk_wdt_action_ops, NULL, 0644);
MODULE_PARM_DESC(action, "When user space has not pinged in time: restart, panic or none (default restart)");

/* ---- timeout and pretimeout; in NMI, or in a beat ---- */

/* Returns a time of the device with its credit; 0 if there is none. */
static u64 pmuk_wdt_device_time(const struct pmuk_wdt_device *d, const u64 *when)
{
	u64 seen = READ_ONCE(*when);

	return seen ? seen + atomic64_read(&d->credit) : 0;
}

/* If a ping ends the credit between the two loads, it has changed *@when before. */
static bool pmuk_wdt_claim(const struct pmuk_wdt_device *d, u64 *when, u64 now)
{
	u64 seen = READ_ONCE(*when);

	if (!seen)
		return false;
	smp_rmb();	/* pairs with pmuk_wdt_device_end_credit() */
	return now >= seen + atomic64_read(&d->credit) && cmpxchg64(when, seen, 0) == seen;
}

static void pmuk_wdt_expire(struct pt_regs *regs)
{
	enum pmuk_wdt_action todo = READ_ONCE(action);

	pr_emerg("no ping in time: %s\n", pmuk_wdt_actions[todo]);
	if (todo == PMUK_WDT_NOTHING)
		return;
	/* If a panic has got stuck, a second panic does not help: restart. */
	if (todo == PMUK_WDT_PANIC && !pmuk_wdt_is_quiet())
		pmuk_wdt_do_panic(regs, "pmuk_wdt: no ping in time");
	emergency_restart();
}

static void pmuk_wdt_pretimeout(struct pmuk_wdt_device *d, struct pt_regs *regs)
{
	pr_emerg("no ping: pretimeout of %u s\n", READ_ONCE(d->wdd.pretimeout));
	atomic_set(&d->notify_pending, 1);
	if (in_nmi()) {
		pmuk_wdt_show_here(this_cpu_ptr(&pmuk_wdt_cpus), regs);
		atomic_set(&pmuk_wdt.unflushed, 1);
	}
	if (READ_ONCE(pretimeout_panic))
		pmuk_wdt_do_panic(regs, "pmuk_wdt: pretimeout");
}

/* Acts on times that are over. @regs: NULL in a beat; in NMI those of the interrupted code. */
void pmuk_wdt_device_check(struct pmuk_wdt_device *d, u64 now, struct pt_regs *regs)
{
	if (pmuk_wdt_claim(d, &d->pre_at, now) && !pmuk_wdt_is_quiet())
		pmuk_wdt_pretimeout(d, regs);
	if (pmuk_wdt_claim(d, &d->expires, now))
		pmuk_wdt_expire(regs);
}

static u64 pmuk_wdt_until(const struct pmuk_wdt_device *d, const u64 *when, u64 now)
{
	u64 time = pmuk_wdt_device_time(d, when);

	return time ? pmuk_wdt_left(time, now) : U64_MAX;
}

/*
 * Returns for how long a counter may be armed so that its NMI is in time for the device. The device
 * may be started after the counter was armed, so the time from a first ping to the pretimeout is a
 * limit even while the device does not run.
 */
u64 pmuk_wdt_device_next(const struct pmuk_wdt_device *d, u64 now, u64 threshold)
{
	u64 timeout_ns = READ_ONCE(d->wdd.timeout) * NSEC_PER_SEC;
	u64 pre_ns = READ_ONCE(d->wdd.pretimeout) * NSEC_PER_SEC;
	u64 left = pmuk_wdt_left(timeout_ns, pre_ns);

	left = min3(left, pmuk_wdt_until(d, &d->pre_at, now), pmuk_wdt_until(d, &d->expires, now));
	return pmuk_wdt_next(left, pmuk_wdt_times_of(min(threshold, timeout_ns)).slack);
}

static void pmuk_wdt_delay(u64 *when, u64 ns)
{
	u64 seen = READ_ONCE(*when);

	if (seen)
		cmpxchg64(when, seen, seen + ns);	/* fails if a ping has set a new time */
}

static void pmuk_wdt_device_delay(struct pmuk_wdt_device *d, u64 ns)
{
	pmuk_wdt_delay(&d->expires, ns);
	pmuk_wdt_delay(&d->pre_at, ns);
}

/*
 * No CPU has beaten for @ns, so the machine may have stood still: postpone the timeout and the
 * pretimeout, by one store. Between two pings only the longest such time counts, or a machine that
 * gets stuck again and again would never restart.
 */
static void pmuk_wdt_device_credit(struct pmuk_wdt_device *d, s64 ns)
{
	pmuk_wdt_raise(&d->credit, ns);
}

/*
 * Records the latest beat of any CPU. If no CPU had beaten for too long before, the machine may
 * have stood still, and the device gets more time. A CPU that sees this beat, and so gives no
 * credit itself, has to see the credit, too: this CPU may stand still again between the two. If a
 * CPU stands still here, other CPUs have recorded later beats, and this one must not replace them.
 */
void pmuk_wdt_mark_alive(u64 now)
{
	u64 was = atomic64_read_acquire(&pmuk_wdt.alive_at);

	if (pmuk_wdt_is_stop(was, now, &pmuk_wdt.times))
		pmuk_wdt_device_credit(&pmuk_wdt.dev, now - was);
	pmuk_wdt_raise(&pmuk_wdt.alive_at, now);	/* a full barrier, after the credit */
}

/* An NMI in kgdb, where no CPU beats, calls this. All time in kgdb counts. */
void pmuk_wdt_mark_kgdb(u64 now)
{
	s64 was = atomic64_read(&pmuk_wdt.alive_at);

	/* If another CPU has been here at a later time, that CPU has added this time, too. */
	while (was < (s64)now) {
		if (!atomic64_try_cmpxchg(&pmuk_wdt.alive_at, &was, now))
			continue;
		pmuk_wdt_device_delay(&pmuk_wdt.dev, now - was);
		break;
	}
}

static void pmuk_wdt_notify(struct irq_work *work)
{
	struct pmuk_wdt_device *d = container_of(work, struct pmuk_wdt_device, notify);

	watchdog_notify_pretimeout(&d->wdd);
}

/* Call from a beat, which proves that the irq_work can run. */
void pmuk_wdt_device_queue_notify(struct pmuk_wdt_device *d)
{
	if (atomic_read(&d->notify_pending) && atomic_xchg(&d->notify_pending, 0))
		irq_work_queue(&d->notify);
}

/* ---- calls from user space ---- */

/*
 * Sets the times of the timeout and the pretimeout; 0: none. A CPU that reads both between the two
 * stores sees one old and one new time, and each of them is valid on its own.
 */
static void pmuk_wdt_device_set(struct pmuk_wdt_device *d, u64 expires, u64 pre_at)
	__must_hold(&d->lock)
{
	WRITE_ONCE(d->pre_at, pre_at);
	WRITE_ONCE(d->expires, expires);
}

/*
 * The device is about to get new times, which have no credit. The old ones keep theirs until then.
 * A stop of the machine from here on counts for the new times: call this before you read the clock.
 */
static void pmuk_wdt_device_end_credit(struct pmuk_wdt_device *d) __must_hold(&d->lock)
{
	s64 credit = atomic64_read(&d->credit);

	pmuk_wdt_device_delay(d, credit);
	/* A full barrier, see pmuk_wdt_claim(). If this fails, a stop has just been credited. */
	atomic64_cmpxchg(&d->credit, credit, 0);
}

static void pmuk_wdt_device_ping(struct pmuk_wdt_device *d) __must_hold(&d->lock)
{
	u64 now, expires, pre_at;

	pmuk_wdt_device_end_credit(d);
	now = d->suspended ? 0 : ktime_get_mono_fast_ns();
	expires = now + d->wdd.timeout * NSEC_PER_SEC;
	pre_at = d->wdd.pretimeout ? expires - d->wdd.pretimeout * NSEC_PER_SEC : 0;
	if (d->suspended) {
		d->held = expires;
		d->pre_held = pre_at;
	} else {
		pmuk_wdt_device_set(d, expires, pre_at);
	}
}

static struct pmuk_wdt_device *pmuk_wdt_device_of(struct watchdog_device *wdd)
{
	return container_of(wdd, struct pmuk_wdt_device, wdd);
}

static int pmuk_wdt_ping_op(struct watchdog_device *wdd)
{
	struct pmuk_wdt_device *d = pmuk_wdt_device_of(wdd);

	guard(mutex)(&d->lock);
	pmuk_wdt_device_ping(d);
	return 0;
}

static int pmuk_wdt_stop_op(struct watchdog_device *wdd)
{
	struct pmuk_wdt_device *d = pmuk_wdt_device_of(wdd);

	guard(mutex)(&d->lock);
	d->held = 0;
	d->pre_held = 0;
	pmuk_wdt_device_set(d, 0, 0);
	return 0;
}

/* The watchdog core pings after this call if the device is active. */
static int pmuk_wdt_set_timeout_op(struct watchdog_device *wdd, unsigned int seconds)
{
	WRITE_ONCE(wdd->timeout, seconds);
	if (wdd->pretimeout >= seconds)
		WRITE_ONCE(wdd->pretimeout, 0);
	return 0;
}

/* The new pretimeout is in effect from the next ping on. */
static int pmuk_wdt_set_pretimeout_op(struct watchdog_device *wdd, unsigned int seconds)
{
	WRITE_ONCE(wdd->pretimeout, seconds);
	return 0;
}

static unsigned int pmuk_wdt_get_timeleft_op(struct watchdog_device *wdd)
{
	struct pmuk_wdt_device *d = pmuk_wdt_device_of(wdd);
	u64 left;

	guard(mutex)(&d->lock);
	left = d->suspended ? d->held :
	       pmuk_wdt_left(pmuk_wdt_device_time(d, &d->expires), ktime_get_mono_fast_ns());
	return div_u64(left + NSEC_PER_SEC - 1, NSEC_PER_SEC);
}

static const struct watchdog_info pmuk_wdt_info = {
	.identity	= "pmuk NMI watchdog",
	.options	= WDIOF_SETTIMEOUT | WDIOF_PRETIMEOUT | WDIOF_KEEPALIVEPING |
			  WDIOF_MAGICCLOSE,
};

static const struct watchdog_ops pmuk_wdt_ops = {
	.owner		= THIS_MODULE,
	.start		= pmuk_wdt_ping_op,
	.stop		= pmuk_wdt_stop_op,
	.ping		= pmuk_wdt_ping_op,
	.set_timeout	= pmuk_wdt_set_timeout_op,
	.set_pretimeout	= pmuk_wdt_set_pretimeout_op,
	.get_timeleft	= pmuk_wdt_get_timeleft_op,
};

/* ---- suspend: user space is frozen, so the device's time stands still ---- */

static u64 pmuk_wdt_hold(u64 when, u64 now)
{
	return when ? max(pmuk_wdt_left(when, now), 1ULL) : 0;
}

void pmuk_wdt_device_suspend(struct pmuk_wdt_device *d)
{
	u64 now = ktime_get_mono_fast_ns();

	guard(mutex)(&d->lock);
	if (d->suspended)
		return;
	d->held = pmuk_wdt_hold(pmuk_wdt_device_time(d, &d->expires), now);
	d->pre_held = pmuk_wdt_hold(pmuk_wdt_device_time(d, &d->pre_at), now);
	d->suspended = true;
	pmuk_wdt_device_set(d, 0, 0);
}

void pmuk_wdt_device_resume(struct pmuk_wdt_device *d)
{
	u64 now;

	guard(mutex)(&d->lock);
	if (!d->suspended)
		return;
	d->suspended = false;
	pmuk_wdt_device_end_credit(d);
	now = ktime_get_mono_fast_ns();
	pmuk_wdt_device_set(d, d->held ? now + d->held : 0, d->pre_held ? now + d->pre_held : 0);
	d->held = 0;
	d->pre_held = 0;
}

/* ---- registration ---- */

int pmuk_wdt_device_init(struct pmuk_wdt_device *d, const struct attribute_group **groups)
{
	struct watchdog_device *wdd = &d->wdd;

	mutex_init(&d->lock);
	init_irq_work(&d->notify, pmuk_wdt_notify);
	wdd->info = &pmuk_wdt_info;
	wdd->ops = &pmuk_wdt_ops;
	wdd->groups = groups;
	wdd->timeout = PMUK_WDT_TIMEOUT;
	wdd->min_timeout = 1;
	wdd->max_timeout = PMUK_WDT_TIMEOUT_MAX;
	watchdog_init_timeout(wdd, timeout, NULL);
	if (watchdog_pretimeout_invalid(wdd, pretimeout))
		pr_warn("pretimeout is not less than the timeout: ignored\n");
	else
		wdd->pretimeout = pretimeout;
	watchdog_set_nowayout(wdd, nowayout);
	return watchdog_register_device(wdd);
}

/* The watchdog core keeps the module while the device runs, so the device is stopped here. */
void pmuk_wdt_device_exit(struct pmuk_wdt_device *d)
{
	watchdog_unregister_device(&d->wdd);
}
