// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/pmuk_live is a consumer. Its open file is a started context on the whole machine, whose
 * effects can be seen from outside: in debugfs, by tracepoints, over a suspend. See pmuk_live.h.
 */
#include <linux/cleanup.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pmu_kapi.h>
#include <linux/slab.h>
#include <linux/suspend.h>
#include <linux/uaccess.h>

#include "../../kernel/pmu_kapi/context.h"
#include "pmuk_live.h"

#define LIVE_SLEEP_MS	200
#define LIVE_WAKE_MAX	60000

struct live {
	struct mutex lock;		/* serializes calls */
	struct pmuk_context *ctx;	/* ->lock */
	bool created;			/* ->lock */
	u64 *told;			/* ->lock: messages of each CPU, by kind */
	struct task_struct *busy;	/* ->lock: holds ctx->lock; or NULL */
	struct completion has_lock;
	struct hrtimer wake;
	ktime_t wake_each;		/* ->lock; ->wake reads it */
};

/* ---- the context ---- */

static int live_describe(struct pmuk_context *ctx, const struct pmuk_live_attr *what)
{
	struct pmuk_set_desc sets[PMUK_LIVE_SETS] = {};
	struct pmuk_pmc pmcs[PMUK_LIVE_SETS] = {};
	struct pmuk_pmd pmds[PMUK_LIVE_SETS] = {};
	int i;

	for (i = 0; i < PMUK_LIVE_SETS; i++) {
		sets[i].id = i;
		sets[i].timeout = what->timeout;
		pmcs[i].set = i;
		pmcs[i].type = what->type;
		pmcs[i].config = what->config;
		pmcs[i].flags = what->flags & PMUK_CTX_RESERVE ? PMUK_PINNED : 0;
		pmds[i].set = i;
		pmds[i].short_reset = what->period;
	}
	if (pmuk_create_evtsets(ctx, sets, PMUK_LIVE_SETS) != PMUK_LIVE_SETS ||
	    pmuk_write_pmcs(ctx, pmcs, PMUK_LIVE_SETS) != PMUK_LIVE_SETS ||
	    pmuk_write_pmds(ctx, pmds, PMUK_LIVE_SETS) != PMUK_LIVE_SETS)
		return -EINVAL;
	return 0;
}

static int live_begin(struct pmuk_context *ctx, const struct pmuk_live_attr *what)
{
	struct pmuk_target machine = { .type = PMUK_TARGET_CPUS };
	int ret = live_describe(ctx, what);

	if (!ret)
		ret = pmuk_load_context(ctx, &machine);
	return ret ?: pmuk_start(ctx, NULL);
}

static long live_create(struct live *l, void __user *from)
{
	const u64 more = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_CPU |
			 PERF_SAMPLE_PERIOD | PMUK_SAMPLE_COOKIE;
	struct pmuk_perf_format format = { .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME };
	struct pmuk_live_attr what;
	struct pmuk_context_attr attr = {
		.name = "pmuk_live",
		.format_arg = &format,
		.format_arg_size = sizeof(format),
	};
	struct pmuk_context *ctx;
	int ret;

	if (copy_from_user(&what, from, sizeof(what)))
		return -EFAULT;
	if (l->created)
		return -EBUSY;
	attr.flags = what.flags;
	attr.buffer.nr_pages = what.nr_pages;
	if (what.flags & PMUK_CTX_EXPORT) {
		attr.buffer.flags = PMUK_BUFFER_USER_TAIL;
		format.sample_type |= more;
	} else {
		attr.buffer.aux.nr_pages = what.nr_pages;
	}
	ctx = pmuk_create_context(&attr);
	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	ret = live_begin(ctx, &what);
	if (ret) {
		pmuk_close(ctx);
		return ret;
	}
	l->ctx = ctx;
	l->created = true;
	return 0;
}

/* Holds the context's lock, as a slow call does. */
static int live_hold(void *data)
{
	struct live *l = data;

	guard(mutex)(&l->ctx->lock);
	complete(&l->has_lock);
	while (!kthread_should_stop())
		usleep_range(500, 1000);
	return 0;
}

static long live_busy(struct live *l, bool busy)
{
	struct task_struct *task;

	if (!l->ctx || busy == !!l->busy)
		return -EINVAL;
	if (!busy) {
		kthread_stop(l->busy);
		l->busy = NULL;
		return 0;
	}
	init_completion(&l->has_lock);
	task = kthread_run(live_hold, l, "pmuk_live");
	if (IS_ERR(task))
		return PTR_ERR(task);
	l->busy = task;
	wait_for_completion(&l->has_lock);
	return 0;
}

static long live_close(struct live *l, bool deferred)
{
	if (!l->ctx)
		return -ENODEV;
	if (l->busy)
		live_busy(l, false);
	if (deferred)
		pmuk_close_deferred(l->ctx, NULL);
	else
		pmuk_close(l->ctx);
	l->ctx = NULL;
	return 0;
}

static void live_listen(struct live *l)
{
	struct pmuk_msg msg;

	while (pmuk_read(l->ctx, &msg, true) == 1)
		l->told[msg.cpu * PMUK_MSG_KINDS + msg.kind] += msg.count;
}

static int live_look_at_set(struct live *l, struct pmuk_live_cpu *at, int set)
{
	struct pmuk_set_info info = { .id = set, .cpu = at->cpu };
	struct pmuk_pmd_read read = { .set = set, .cpu = at->cpu };

	if (pmuk_getinfo_evtsets(l->ctx, &info, 1) != 1)
		return info.ret ?: -EINVAL;
	if (pmuk_read_pmds(l->ctx, &read, 1) != 1)
		return read.ret ?: -EINVAL;
	at->counts[set] = read.count;
	at->time_running[set] = read.time_running;
	at->runs[set] = info.runs;
	at->duration[set] = info.active_duration;
	return 0;
}

static long live_look(struct live *l, void __user *arg)
{
	struct pmuk_live_cpu at;
	const u64 *told;
	int i, ret = 0;

	if (copy_from_user(&at, arg, sizeof(at)))
		return -EFAULT;
	if (at.cpu < 0 || at.cpu >= nr_cpu_ids)
		return -EINVAL;
	if (!l->ctx)
		return -ENODEV;
	for (i = 0; i < PMUK_LIVE_SETS && !ret; i++)
		ret = live_look_at_set(l, &at, i);
	if (ret)
		return ret;
	live_listen(l);
	told = l->told + at.cpu * PMUK_MSG_KINDS;
	at.online = told[PMUK_MSG_CPU_ONLINE];
	at.offline = told[PMUK_MSG_CPU_OFFLINE];
	at.counter_lost = told[PMUK_MSG_COUNTER_LOST];
	at.records_lost = told[PMUK_MSG_LOST];
	return copy_to_user(arg, &at, sizeof(at)) ? -EFAULT : 0;
}

/* ---- sleep ---- */

/* The kernel forgets a wakeup that comes before it freezes the tasks, so others follow. */
static enum hrtimer_restart live_wake(struct hrtimer *timer)
{
	const struct live *l = container_of(timer, struct live, wake);

	pm_system_wakeup();
	hrtimer_forward_now(timer, l->wake_each);
	return HRTIMER_RESTART;
}

static long live_wake_each(struct live *l, unsigned long ms)
{
	if (ms > LIVE_WAKE_MAX)
		return -EINVAL;
	hrtimer_cancel(&l->wake);
	l->wake_each = ms_to_ktime(ms);
	if (ms)
		hrtimer_start(&l->wake, l->wake_each, HRTIMER_MODE_REL);
	return 0;
}

/*
 * Sleeps as firmware does, but for a short time only, and wakes by itself. Interrupts are off, and
 * so are the other CPUs and the clock. Drivers were told that this CPU will lose its state.
 */
static int live_sleep(suspend_state_t state)
{
	mdelay(LIVE_SLEEP_MS);
	return 0;
}

static const struct platform_suspend_ops live_sleep_ops = {
	.valid = suspend_valid_only_mem,
	.enter = live_sleep,
};

static DEFINE_MUTEX(live_sleep_lock);
static bool live_sleep_lent;	/* live_sleep_lock */

/* Lets the machine suspend to memory if @lend. Returns whether it was let before. */
static long live_lend_sleep(bool lend)
{
	bool lent;

	guard(mutex)(&live_sleep_lock);
	lent = live_sleep_lent;
	if (!lend || lent)
		return lent;
	if (!IS_ENABLED(CONFIG_SUSPEND))
		return -EOPNOTSUPP;
	suspend_set_ops(&live_sleep_ops);
	live_sleep_lent = true;
	return 0;
}

/* ---- the file ---- */

static long live_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct live *l = file->private_data;

	guard(mutex)(&l->lock);
	switch (cmd) {
	case PMUK_LIVE_CREATE:
		return live_create(l, (void __user *)arg);
	case PMUK_LIVE_LOOK:
		return live_look(l, (void __user *)arg);
	case PMUK_LIVE_STOP:
		return l->ctx ? pmuk_stop(l->ctx) : -ENODEV;
	case PMUK_LIVE_CLOSE:
		return live_close(l, false);
	case PMUK_LIVE_CLOSE_LATER:
		return live_close(l, true);
	case PMUK_LIVE_WAKE:
		return live_wake_each(l, arg);
	case PMUK_LIVE_LEND_SLEEP:
		return live_lend_sleep(arg);
	case PMUK_LIVE_BUSY:
		return live_busy(l, arg);
	default:
		return -ENOTTY;
	}
}

static int live_open(struct inode *inode, struct file *file)
{
	struct live *l = kzalloc(sizeof(*l), GFP_KERNEL);

	if (!l)
		return -ENOMEM;
	l->told = kcalloc(nr_cpu_ids, PMUK_MSG_KINDS * sizeof(*l->told), GFP_KERNEL);
	if (!l->told) {
		kfree(l);
		return -ENOMEM;
	}
	mutex_init(&l->lock);
	hrtimer_setup(&l->wake, live_wake, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	file->private_data = l;
	return 0;
}

static int live_release(struct inode *inode, struct file *file)
{
	struct live *l = file->private_data;

	hrtimer_cancel(&l->wake);
	live_close(l, false);
	kfree(l->told);
	kfree(l);
	return 0;
}

static const struct file_operations live_fops = {
	.owner		= THIS_MODULE,
	.open		= live_open,
	.release	= live_release,
	.unlocked_ioctl	= live_ioctl,
};

static struct miscdevice live_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "pmuk_live",
	.mode	= 0600,
	.fops	= &live_fops,
};

static int __init live_init(void)
{
	return misc_register(&live_device);
}
module_init(live_init);

static void __exit live_exit(void)
{
	misc_deregister(&live_device);
	if (live_sleep_lent)
		suspend_set_ops(NULL);
}
module_exit(live_exit);

MODULE_DESCRIPTION("pmuk test: a context to be looked at from outside");
MODULE_LICENSE("GPL");
