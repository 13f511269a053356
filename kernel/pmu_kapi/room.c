// SPDX-License-Identifier: GPL-2.0
/*
 * Finds out which counters would get a register of a CPU now, beside the counters that are pinned
 * there. Only perf core and the PMU's driver know, so the counters are created for a moment.
 */
#define pr_fmt(fmt) "pmuk: " fmt

#include <linux/err.h>
#include <linux/export.h>
#include <linux/mutex.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "counter.h"
#include "work.h"

#define PMUK_ROOM_FLAGS	(PMUK_EXCLUDES | PMUK_NO_THROTTLE | PMUK_PRIVATE | PMUK_CALLCHAIN_USER)

/* The arguments of a call of pmuk_room(), and its result. */
struct pmuk_question {
	struct work_struct work;
	const struct pmuk_attr *attrs;
	unsigned int n;
	int cpu;
	u32 fits;
	int ret;
	unsigned int nr;		/* number of ->counters */
	struct pmuk_counter *counters[PMUK_SET_COUNTERS];	/* misfits, too */
};

/* The calls wait here, so that at most one worker waits for a trial to end. */
static DEFINE_MUTEX(pmuk_room_lock);

static struct pmuk_counter *pmuk_room_make(const struct pmuk_attr *wanted, int cpu)
{
	struct pmuk_attr attr = {
		.type		= wanted->type,
		.config		= wanted->config,
		.config1	= wanted->config1,
		.config2	= wanted->config2,
		.config3	= wanted->config3,
		.period		= wanted->period,
		.sample_type	= wanted->sample_type & PMUK_SAMPLE_HARDWARE & ~PERF_SAMPLE_RAW,
		.precise_ip	= wanted->precise_ip,
		.branch_sample_type = wanted->branch_sample_type,
		.sample_regs_intr = wanted->sample_regs_intr,
		.sample_regs_user = wanted->sample_regs_user,
		.max_stack	= wanted->max_stack,
		.flags		= (wanted->flags & PMUK_ROOM_FLAGS) | PMUK_PINNED,
	};
	int ret;

	if (!(attr.flags & PMUK_CALLCHAIN_USER)) {	/* pmuk unwinds, and for records only */
		attr.sample_type &= ~(u64)PERF_SAMPLE_CALLCHAIN;
		attr.max_stack = 0;
	}
	ret = pmuk_check_attr(&attr, cpu, NULL);
	if (ret)
		return ERR_PTR(ret);
	attr.sample_type |= wanted->sample_type & PERF_SAMPLE_RAW;	/* only records have it */
	return pmuk_counter_make(&attr, cpu, NULL, NULL, NULL, NULL);
}

/*
 * perf core serves the older of two pinned counters first. So a counter is created right before it
 * is enabled: if made earlier, it would push out counters that were enabled meanwhile.
 */
static int pmuk_room_take(struct pmuk_question *q, unsigned int i)
{
	struct pmuk_counter *c = pmuk_room_make(&q->attrs[i], q->cpu);
	int ret;

	if (IS_ERR(c))
		return PTR_ERR(c);
	q->counters[q->nr++] = c;
	ret = pmuk_counter_enable(c);
	if (!ret)
		q->fits |= BIT(i);
	return ret == -ENOSPC ? 0 : ret;
}

/*
 * All registers are given back before the first counter is destroyed, which may sleep: a task that
 * ran meanwhile would not find its registers.
 */
static int pmuk_room_try(struct pmuk_question *q)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < q->n && !ret; i++)
		ret = pmuk_room_take(q, i);
	for (i = 0; i < q->nr; i++)
		pmuk_counter_disable(q->counters[i]);
	for (i = 0; i < q->nr; i++)
		pmuk_counter_destroy(q->counters[i]);
	return ret ?: hweight32(q->fits);
}

/*
 * A running task whose pinned counters find no register loses them for good. So a worker on the CPU
 * makes the trial, as workers usually have no counters, and no ordinary task preempts the worker
 * meanwhile. If the CPU has gone offline, the worker is on another CPU.
 */
static void pmuk_room_work(struct work_struct *work)
{
	struct pmuk_question *q = container_of(work, struct pmuk_question, work);
	int nice = task_nice(current);

	guard(mutex)(pmuk_trial_lock(q->cpu));
	sched_set_fifo_low(current);
	q->ret = raw_smp_processor_id() == q->cpu ? pmuk_room_try(q) : -ENODEV;
	sched_set_normal(current, nice);
}

/**
 * pmuk_room() - which counters would fit on a CPU now
 * @attrs: the counters, which the call tries as pinned ones. Without PMUK_PRIVATE, a counter fits
 *	if it can share the register of a counter on the CPU, or of an earlier one of @attrs. The
 *	call uses the event (type, config to config3, precise_ip and branch_sample_type), the
 *	period, the fields of samples that the driver or perf core fills in, with their registers
 *	and max_stack, the PMUK_EXCLUDE_* flags, PMUK_NO_THROTTLE, PMUK_PRIVATE and
 *	PMUK_CALLCHAIN_USER; nothing else
 * @n: how many, 1 … PMUK_SET_COUNTERS
 * @cpu: the CPU
 * @fits: bit i is set if @attrs[i] fits beside the pinned counters of the CPU, pmuk's and others,
 *	and beside those of the earlier @attrs that fit. Written unless the call fails
 *
 * Counters that are not pinned take no room, as perf core lets them take turns; nor do pinned
 * counters of tasks, as perf core places a CPU's pinned counters first. The call tries @attrs in a
 * worker on @cpu. Counters that are not pinned may be off that CPU's PMU until perf core's next
 * rotation, some milliseconds later. The CPU's pinned counters keep their registers. During the
 * trial, a pinned counter that another caller enables on @cpu may find no register, or may lose the
 * one that it has found, and a real-time or deadline task that preempts the worker may lose its
 * pinned counters for good. The answer may be outdated when the call returns.
 *
 * Context: May sleep; waits for a worker of @cpu, and for other calls and loads. Not with CPU
 * hotplug locked.
 * Return: The number of @attrs that fit; -EINVAL if @attrs or @fits is NULL, @n is out of range, or
 * @cpu is no CPU; -ENODEV if @cpu is offline; and what pmuk_counter_create() and
 * pmuk_counter_enable() return for one of @attrs, other than -ENOSPC and -EACCES.
 */
int pmuk_room(const struct pmuk_attr *attrs, unsigned int n, int cpu, u32 *fits)
{
	struct pmuk_question q = { .attrs = attrs, .n = n, .cpu = cpu };

	if (!attrs || !fits || !n || n > PMUK_SET_COUNTERS || cpu < 0 || cpu >= nr_cpu_ids ||
	    !cpu_possible(cpu)) {
		pr_debug("room: %u counters on CPU %d, or a NULL pointer\n", n, cpu);
		return -EINVAL;
	}
	if (!cpu_online(cpu))
		return -ENODEV;
	guard(mutex)(&pmuk_room_lock);
	INIT_WORK_ONSTACK(&q.work, pmuk_room_work);
	queue_work_on(cpu, pmuk_turns_wq, &q.work);
	flush_work(&q.work);
	destroy_work_on_stack(&q.work);
	if (q.ret >= 0)
		*fits = q.fits;
	return q.ret;
}
EXPORT_SYMBOL_GPL(pmuk_room);
