// SPDX-License-Identifier: GPL-2.0
/*
 * Tests in user space use this simulated PMU. Its events happen when a task writes to a file, as
 * many as it writes, while the task is on its CPU. The files in <debugfs>/pmuk_pace are:
 *
 *	pmu	write "COUNTERS WIDTH": creates a PMU of so many counters of so many bits, and
 *		removes the one before, or fails with EBUSY while that one has perf events;
 *		"0": only removes it.
 *		Read "TYPE EVENTS": the type for perf_event_attr, and the number of perf events
 *	add	write "EVENT N ...": each EVENT happens N times on the writer's CPU, with no other
 *		task in between. ENODATA: no perf event has counted one of them
 *	add_on	write "CPU EVENT N ...": the events happen on that CPU, whatever runs there
 *	steal	write "CPU N": N counters of that CPU are out of reach; 0: none
 *	take	write "CPU N": a context of pmuk takes N counters of that CPU, and gives them back
 *	mutex	write "STEPS EVENT N ...": with a mutex held, does what "add" does STEPS times, and
 *		lets a millisecond pass each time
 *	soft	write "CPU PERCENT": so much of that CPU's time goes to softirqs; "0 0": none
 */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pmu_kapi.h>
#include <linux/preempt.h>
#include <linux/rwsem.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "pmuk_sim.h"

#define PACE_EVENTS	8
#define PACE_TEXT	256

/* Readers of this semaphore keep the PMU. */
static DECLARE_RWSEM(pace_sem);
static struct pmuk_sim *pace_sim;	/* NULL: none */

struct pace_event {
	u64 config;
	u64 n;
};

/* Reads up to PACE_EVENTS pairs. Returns how many pairs there were. */
static int pace_parse(const char *text, struct pace_event *events)
{
	int nr, len;

	for (nr = 0; nr < PACE_EVENTS; nr++) {
		if (sscanf(text, "%llu %llu%n", &events[nr].config, &events[nr].n, &len) != 2)
			break;
		text += len;
	}
	return nr && (!*text || *text == '\n') ? nr : -EINVAL;
}

static int pace_add(const struct pace_event *events, int nr)
{
	int i, ret = 0;

	guard(preempt)();
	for (i = 0; i < nr; i++) {
		if (!pmuk_sim_count(pace_sim, events[i].config, events[i].n) && events[i].n)
			ret = -ENODATA;
	}
	return ret;
}

static int pace_write_add(const char *text)
{
	struct pace_event events[PACE_EVENTS];
	int nr = pace_parse(text, events);

	return nr < 0 ? nr : pace_add(events, nr);
}

static int pace_write_add_on(const char *text)
{
	struct pace_event events[PACE_EVENTS];
	int cpu, len, nr, i, ret = 0;

	if (sscanf(text, "%d %n", &cpu, &len) != 1 || cpu < 0 || cpu >= nr_cpu_ids)
		return -EINVAL;
	nr = pace_parse(text + len, events);
	for (i = 0; i < nr; i++) {
		if (!pmuk_sim_count_on(pace_sim, cpu, events[i].config, events[i].n))
			ret = -ENODATA;
	}
	return nr < 0 ? nr : ret;
}

static int pace_write_steal(const char *text)
{
	unsigned int cpu, n;

	if (sscanf(text, "%u %u", &cpu, &n) != 2 || cpu >= nr_cpu_ids)
		return -EINVAL;
	return pmuk_sim_steal(pace_sim, cpu, n);
}

static int pace_take(struct pmuk_context *ctx, int cpu, unsigned int n)
{
	struct pmuk_target target = { .type = PMUK_TARGET_CPU, .cpu = cpu };
	struct pmuk_pmc pmc = { .type = pmuk_sim_type(pace_sim),
				.flags = PMUK_PINNED | PMUK_PRIVATE };

	for (; pmc.num < n; pmc.num++) {
		if (pmuk_write_pmcs(ctx, &pmc, 1) != 1)
			return -EINVAL;
	}
	return pmuk_load_context(ctx, &target) ?: pmuk_start(ctx, &target);
}

/* The context ranks above the scheduler statistics, which get their counters back by themselves. */
static int pace_write_take(const char *text)
{
	const struct pmuk_context_attr attr = { .name = "pmuk_pace", .rank = PMUK_RANK_NORMAL };
	struct pmuk_context *ctx;
	unsigned int cpu, n;
	int ret;

	if (sscanf(text, "%u %u", &cpu, &n) != 2 || cpu >= nr_cpu_ids)
		return -EINVAL;
	ctx = pmuk_create_context(&attr);
	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	ret = pace_take(ctx, cpu, n);
	pmuk_close(ctx);
	return ret;
}

static DEFINE_MUTEX(pace_mutex);

static int pace_write_mutex(const char *text)
{
	struct pace_event events[PACE_EVENTS];
	int steps, len, nr, ret = 0;

	if (sscanf(text, "%d %n", &steps, &len) != 1)
		return -EINVAL;
	nr = pace_parse(text + len, events);
	if (nr < 0)
		return nr;
	guard(mutex)(&pace_mutex);
	while (steps-- > 0 && !ret) {
		ret = pace_add(events, nr);
		mdelay(1);
		cond_resched();
	}
	return ret;
}

/* Removes the PMU if there is one. Fails while the PMU has perf events. */
static int pace_remove(void)
{
	if (pace_sim && pmuk_sim_nr_events(pace_sim))
		return -EBUSY;
	pmuk_sim_destroy(pace_sim);
	pace_sim = NULL;
	return 0;
}

static int pace_create(unsigned int counters, unsigned int width)
{
	const struct pmuk_sim_config config = {
		.name		= "pmuk_pace",
		.nr_counters	= counters,
		.width		= width,
	};
	struct pmuk_sim *sim = pmuk_sim_create(&config);

	if (IS_ERR(sim))
		return PTR_ERR(sim);
	pace_sim = sim;
	return 0;
}

static int pace_write_pmu(const char *text)
{
	unsigned int counters, width;
	int ret, nr = sscanf(text, "%u %u", &counters, &width);

	if (nr != 2 && (nr != 1 || counters))
		return -EINVAL;
	guard(rwsem_write)(&pace_sem);
	ret = pace_remove();
	return ret || !counters ? ret : pace_create(counters, width);
}

/* Each file gives the same answer, but only "pmu" has a mode that lets users read it. */
static ssize_t pace_read(struct file *file, char __user *user, size_t count, loff_t *ppos)
{
	char text[32];
	int len;

	guard(rwsem_read)(&pace_sem);
	if (!pace_sim)
		return -ENODEV;
	len = scnprintf(text, sizeof(text), "%u %d\n", pmuk_sim_type(pace_sim),
			pmuk_sim_nr_events(pace_sim));
	return simple_read_from_buffer(user, count, ppos, text, len);
}

/* ---- softirqs that take their time ---- */

#define PACE_SOFT_PERIOD	(10 * NSEC_PER_MSEC)

static struct hrtimer pace_soft_timer;
static unsigned int pace_soft_percent;	/* changed only while the timer is off */
static DEFINE_MUTEX(pace_soft_lock);

static enum hrtimer_restart pace_soft_tick(struct hrtimer *timer)
{
	u64 end = ktime_get_ns() + PACE_SOFT_PERIOD / 100 * pace_soft_percent;

	while (ktime_get_ns() < end)
		cpu_relax();
	hrtimer_forward_now(timer, ns_to_ktime(PACE_SOFT_PERIOD));
	return HRTIMER_RESTART;
}

static void pace_soft_start(void *data)
{
	hrtimer_start(&pace_soft_timer, ns_to_ktime(PACE_SOFT_PERIOD),
		      HRTIMER_MODE_REL_PINNED_SOFT);
}

static int pace_write_soft(const char *text)
{
	unsigned int cpu, percent;

	if (sscanf(text, "%u %u", &cpu, &percent) != 2 || cpu >= nr_cpu_ids || percent > 90)
		return -EINVAL;
	guard(mutex)(&pace_soft_lock);
	hrtimer_cancel(&pace_soft_timer);
	pace_soft_percent = percent;
	if (percent && smp_call_function_single(cpu, pace_soft_start, NULL, true))
		return -ENODEV;
	return 0;
}

/* ---- the files ---- */

static const struct pace_file {
	const char *name;
	umode_t mode;
	int (*write)(const char *text);
	bool on_pmu;			/* the call needs the PMU to stay */
} pace_files[] = {
	{ "pmu", 0600, pace_write_pmu },
	{ "add", 0200, pace_write_add, true },
	{ "add_on", 0200, pace_write_add_on, true },
	{ "steal", 0200, pace_write_steal, true },
	{ "take", 0200, pace_write_take, true },
	{ "mutex", 0200, pace_write_mutex, true },
	{ "soft", 0200, pace_write_soft },
};

static int pace_write_on_pmu(const struct pace_file *f, const char *text)
{
	guard(rwsem_read)(&pace_sem);
	return pace_sim ? f->write(text) : -ENODEV;
}

static ssize_t pace_write(struct file *file, const char __user *user, size_t count, loff_t *ppos)
{
	const struct pace_file *f = file->private_data;
	char text[PACE_TEXT] = {};
	int ret;

	if (count >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, user, count))
		return -EFAULT;
	ret = f->on_pmu ? pace_write_on_pmu(f, text) : f->write(text);
	return ret ?: count;
}

static const struct file_operations pace_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.read	= pace_read,
	.write	= pace_write,
};

static struct dentry *pace_dir;

static int __init pace_init(void)
{
	unsigned int i;

	hrtimer_setup(&pace_soft_timer, pace_soft_tick, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_PINNED_SOFT);
	pace_dir = debugfs_create_dir("pmuk_pace", NULL);
	for (i = 0; i < ARRAY_SIZE(pace_files); i++)
		debugfs_create_file(pace_files[i].name, pace_files[i].mode, pace_dir,
				    (void *)&pace_files[i], &pace_fops);
	return 0;
}
module_init(pace_init);

/*
 * perf events of the PMU hold the module pmuk_sim, but not this one. So close them before this
 * module is unloaded.
 */
static void __exit pace_exit(void)
{
	debugfs_remove(pace_dir);
	hrtimer_cancel(&pace_soft_timer);
	if (pace_remove())
		pr_warn("pmuk_pace: its PMU stays, as it has perf events\n");
}
module_exit(pace_exit);

MODULE_DESCRIPTION("pmuk test: events that happen when a task says so");
MODULE_LICENSE("GPL");
