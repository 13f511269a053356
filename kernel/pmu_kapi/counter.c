// SPDX-License-Identifier: GPL-2.0
/*
 * A counter on one CPU or task, over perf core, which owns the hardware: its creation and its end.
 * pmuk_counter_enable() is here, too: an overflow may destroy the counter meanwhile, and then this
 * call ends the counter.
 */
#define pr_fmt(fmt) "pmuk: " fmt

#include <kunit/visibility.h>
#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/cleanup.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/topology.h>

#include "buffer.h"
#include "event.h"
#include "format.h"
#include "hw.h"
#include "share.h"
#include "work.h"

/* The fields of both structs are the same, in the same order. */
static_assert(offsetof(struct pmuk_counter, state) == offsetof(struct pmuk_counter_fast, state));
static_assert(offsetof(struct pmuk_counter, published) ==
	      offsetof(struct pmuk_counter_fast, published));
static_assert(offsetof(struct pmuk_counter, last_group) == sizeof(struct pmuk_counter_fast));
/* Without peers, a counter is one object of kmalloc-512. */
static_assert(IS_ENABLED(CONFIG_LOCKDEP) || sizeof(struct pmuk_counter) <= 512);

static atomic_t pmuk_counters = ATOMIC_INIT(0);

/*
 * Tests check with this number of counters that they leave none behind. If a destroyed counter is a
 * peer of another one, it is included until the other one is destroyed, too.
 */
int pmuk_nr_counters(void)
{
	return atomic_read(&pmuk_counters);
}
EXPORT_SYMBOL_IF_KUNIT(pmuk_nr_counters);

/* The peers of a context's counter may change while the context is stopped. */
static unsigned int pmuk_peers_most(const struct pmuk_attr *attr, bool in_context)
{
	if (!in_context)
		return attr->nr_peers;
	return pmuk_reads_group(attr->sample_type, attr->read_format) ? PMUK_PEERS_MAX : 0;
}

static struct pmuk_counter_attr pmuk_attr_kept(const struct pmuk_attr *attr)
{
	return (struct pmuk_counter_attr){
		.type		= attr->type,
		.flags		= attr->flags,
		.config		= attr->config,
		.period		= attr->period,
		.random_mask	= attr->random_mask,
		.freq		= attr->freq,
		.sample_type	= attr->sample_type,
		.read_format	= attr->read_format,
		.overflow	= attr->overflow,
		.data		= attr->data,
		.buffer		= attr->buffer,
		.cookie		= attr->cookie,
	};
}

static struct pmuk_counter *pmuk_counter_alloc(const struct pmuk_attr *attr, int node,
					       bool in_context)
{
	struct pmuk_counter *c;

	c = kzalloc_node(struct_size(c, peers, pmuk_peers_most(attr, in_context)), GFP_KERNEL,
			 node);
	if (!c)
		return NULL;

	c->attr = pmuk_attr_kept(attr);
	if (attr->freq && pmuk_hw_is_clock(c))
		c->attr.period = NSEC_PER_SEC / attr->freq;
	c->state = PMUK_COUNTING;
	c->published = (u32)jiffies - 1;
	c->quiet = true;
	c->rank = PMUK_RANK_CRITICAL;
	if (!in_context)	/* see pmuk_slot_make() */
		pmuk_counter_set_age(c, ktime_get_mono_fast_ns());
	seqcount_latch_init(&c->latch);
	c->max_ips = min_not_zero(attr->max_stack, PMUK_CALLCHAIN_MAX);
	c->max_slice = attr->aux_sample_size;
	if (attr->random_mask)
		prandom_seed_state(&c->rnd, attr->random_seed);
	kref_init(&c->ref);
	refcount_set(&c->users, 1);
	return c;
}

/* The buffer and the peers that records need live as long as this counter. */
static void pmuk_counter_take_others(struct pmuk_counter *c, const struct pmuk_attr *attr)
{
	unsigned int i;

	c->nr_peers = attr->nr_peers;
	for (i = 0; i < c->nr_peers; i++) {
		c->peers[i] = attr->peers[i];
		kref_get(&c->peers[i]->ref);
	}

	if (!c->attr.buffer)
		return;
	pmuk_buffer_get(c->attr.buffer);
	pmuk_page_attach(c);
	if (!c->attr.period || c->attr.buffer->cpu == -1)
		return;
	c->record_size = pmuk_format_size(c);
	c->handler = pmuk_format_record;
}

static void pmuk_counter_free(struct kref *ref)
{
	struct pmuk_counter *c = container_of(ref, struct pmuk_counter, ref);

	kfree(c);
	atomic_dec(&pmuk_counters);
	module_put(THIS_MODULE);
}

/*
 * The caller has released the event. A peer exists before the counter that refers to it, so no
 * cycle of references can keep these counters.
 */
static void pmuk_counter_put_others(struct pmuk_counter *c)
{
	unsigned int i;

	for (i = 0; i < c->nr_peers; i++)
		kref_put(&c->peers[i]->ref, pmuk_counter_free);
	if (!c->attr.buffer)
		return;
	pmuk_page_detach(c);
	pmuk_buffer_put(c->attr.buffer);
}

/* The event of a rider needs its type and flags only: the host's event has the rest. */
static struct perf_event *pmuk_counter_event(struct pmuk_counter *c, const struct pmuk_attr *attr,
					     struct task_struct *task)
{
	const struct pmuk_attr rider = { .type = pmuk_rider_pmu.type, .flags = attr->flags };
	struct perf_event_attr pa = pmuk_event_attr(c->host ? &rider : attr);
	struct perf_event *event;

	pa.sample_period = attr->period ? pmuk_next_period(c) : 0;
	event = pmuk_event_create(&pa, c->host ? 0 : attr->precise_ip, c->cpu, task, pmuk_overflow,
				  c);
	/* The driver may have moved the event to another CPU, for which the handler has no data. */
	if (!IS_ERR(event) && (attr->buffer || c->handler) && perf_local_cpu(event) != c->cpu) {
		perf_event_release_kernel(event);
		return ERR_PTR(-EINVAL);
	}
	return event;
}

/**
 * pmuk_counter_id() - the id in a counter's records
 * @c: the counter
 *
 * Context: Any, NMI too.
 * Return: perf's id of the counter, which is never 0 and never used again; 0 if @c is NULL or an
 * ERR_PTR(). A context gives its counters ids of its own, by set, number and CPU, which stay when a
 * CPU goes offline.
 */
u64 pmuk_counter_id(struct pmuk_counter *c)
{
	return IS_ERR_OR_NULL(c) ? 0 : c->id;
}
EXPORT_SYMBOL_GPL(pmuk_counter_id);

/* Destroy a counter that pmuk_counter_make() has made, including one that belongs to a context. */
static void pmuk_counter_unmake(struct pmuk_counter *c)
{
	/*
	 * perf core removes an event by interrupting its CPU. Overflows of a core PMU are handled
	 * with interrupts off, so none is left after that. perf core may have interrupted the
	 * handling of another PMU's overflow, which then still calls pmuk_overflow(): wait for it.
	 */
	pmuk_counter_end(c);
	if (c->attr.period && !c->core)
		synchronize_rcu();
	pmuk_counter_finish(c);
}

/* After pmuk_counter_destroy_deferred() the last user ends the counter. */
static void pmuk_counter_put(struct pmuk_counter *c)
{
	struct completion *done;

	if (!refcount_dec_and_test(&c->users))
		return;
	done = c->done;
	pmuk_counter_destroy(c);
	if (done)
		complete(done);
}

static void pmuk_destroy_work(struct work_struct *work)
{
	struct pmuk_counter *c = container_of(work, struct pmuk_counter, work);

	irq_work_sync(&c->irq_work);
	pmuk_counter_put(c);
}

static void pmuk_destroy_irq_work(struct irq_work *irq_work)
{
	struct pmuk_counter *c = container_of(irq_work, struct pmuk_counter, irq_work);

	queue_work(pmuk_wq, &c->work);
}

static bool pmuk_counter_can_interrupt(const struct pmuk_counter *c)
{
	return c->host ? c->host->marks : !perf_local_pmu_can(c->event, PERF_PMU_CAP_NO_INTERRUPT);
}

/*
 * Most drivers write hw.state at each start, which removes a mark. Drivers without interrupts, such
 * as x86's msr, leave hw.state alone. Drivers of trace units may compare it as a whole.
 */
static bool pmuk_counter_can_mark(const struct pmuk_counter *c)
{
	return !pmuk_hw_is_software(c) && !c->traces && pmuk_counter_can_interrupt(c);
}

/*
 * Asks the event's PMU, which may be unregistered at any time. Returns -ENODEV if it has been, and
 * -EOPNOTSUPP if it never interrupts at the end of a period.
 */
static int pmuk_counter_ask_pmu(struct pmuk_counter *c)
{
	guard(mutex)(perf_local_pmu_lock(c->event));
	if (perf_local_is_pmu_gone(c->event))
		return -ENODEV;
	if (c->attr.period && !pmuk_counter_can_interrupt(c))
		return -EOPNOTSUPP;
	c->core = c->host ? c->host->core : perf_arch_core_event(c->event);
	c->traces = has_aux(c->event);
	c->marks = pmuk_counter_can_mark(c);
	return 0;
}

/*
 * The event exists: fill in the rest. From here on pmuk_counter_unmake() destroys the counter, also
 * if this function returns an error.
 */
static int pmuk_counter_adopt(struct pmuk_counter *c, const struct pmuk_attr *attr)
{
	int ret = pmuk_counter_ask_pmu(c);

	c->mask = c->host ? c->host->mask : pmuk_hw_mask(c);
	c->bar = pmuk_hw_bar(c);
	c->last_group = &c->last;
	c->settle = IRQ_WORK_INIT_HARD(pmuk_settle_irq_work);
	if (!c->slot) {
		init_irq_work(&c->irq_work, pmuk_destroy_irq_work);
		INIT_WORK(&c->work, pmuk_destroy_work);
	}
	c->id = c->event->id;
	pmuk_counter_take_others(c, attr);
	__module_get(THIS_MODULE);
	atomic_inc(&pmuk_counters);
	return ret;
}

/*
 * perf core may take a counter that is not pinned off its PMU, and moves a task's with the task, so
 * others could not rely on the register of either.
 */
static bool pmuk_counter_may_share(const struct pmuk_counter *c)
{
	return (c->attr.flags & (PMUK_PINNED | PMUK_PRIVATE)) == PMUK_PINNED;
}

/* Creates the counter's event, and gives the counter a host if it is to share one. */
static int pmuk_counter_place(struct pmuk_counter *c, const struct pmuk_attr *attr,
			      struct task_struct *task)
{
	int ret = 0;

	if (!task && pmuk_counter_may_share(c))
		ret = pmuk_host_join(c, attr);
	if (ret && ret != -EOPNOTSUPP)
		return ret;
	c->event = pmuk_counter_event(c, attr, task);
	if (!c->host)
		c->hw_event = c->event;
	else if (IS_ERR(c->event))
		pmuk_host_leave(c);
	return PTR_ERR_OR_ZERO(c->event);
}

/* Drivers that trace have their events in perf's software context. Trace events do not overflow. */
static bool pmuk_counter_can_adapt(const struct pmuk_counter *c)
{
	return !pmuk_hw_adapts(c) || !is_software_event(c->event) || pmuk_hw_is_software(c);
}

/* The caller has checked @attr. @slot and @buffers are for @handler. All three may be NULL. */
struct pmuk_counter *pmuk_counter_make(const struct pmuk_attr *attr, int cpu,
				       struct task_struct *task, pmuk_handler_t handler,
				       void *slot, struct pmuk_buffer **buffers)
{
	struct pmuk_counter *c;
	int ret;

	if (!task && !cpu_online(cpu))
		return ERR_PTR(-ENODEV);

	c = pmuk_counter_alloc(attr, task ? NUMA_NO_NODE : cpu_to_node(cpu), slot);
	if (!c)
		return ERR_PTR(-ENOMEM);

	c->cpu = cpu;
	c->handler = handler;
	c->slot = slot;
	c->buffers = buffers;
	c->away = !!slot;
	ret = pmuk_counter_place(c, attr, task);
	if (ret) {
		pr_debug("create: CPU %d, type %u config %#llx precise_ip %u sample_type %#llx branch_sample_type %#llx sample_regs_intr %#llx sample_regs_user %#llx max_stack %u: %s: %d\n",
			 cpu, attr->type, attr->config, attr->precise_ip, attr->sample_type,
			 attr->branch_sample_type, attr->sample_regs_intr, attr->sample_regs_user,
			 attr->max_stack,
			 ret == -ENOENT ? "no PMU there knows it" : "perf says", ret);
		kfree(c);
		return ERR_PTR(ret);
	}
	ret = pmuk_counter_adopt(c, attr);
	if (!ret && !pmuk_counter_can_adapt(c))
		ret = -EOPNOTSUPP;
	if (!ret && c->traces)
		ret = pmuk_aux_attach(c);
	if (ret) {
		pr_debug("create: type %u config %#llx: %s: %d\n", attr->type, attr->config,
			 ret == -ENODEV ? "its PMU has gone" :
			 ret == -EOPNOTSUPP ? "no AUX area, no freq or no interrupts" :
			 ret == -EBUSY || ret == -EINVAL ? "no AUX area for it" :
			 "perf says", ret);
		pmuk_counter_unmake(c);
		return ERR_PTR(ret);
	}
	WRITE_ONCE(c->quiet, false);
	return c;
}

/**
 * pmuk_counter_create() - create a counter on a CPU or a task
 * @attr: what to count; copied
 * @cpu: the CPU to count on, or -1 with @task
 * @task: the task to count wherever it runs, or NULL with @cpu
 *
 * The counter is disabled until pmuk_counter_enable(). perf core is asked once whether
 * a pinned CPU counter fits on its PMU, unless the task that runs on @cpu
 * has pinned events of its own there: the trial could push these out for good.
 * pmuk_counter_enable() then reports whether the counter fits. Follows pfmk_create_context() and
 * pfmk_load_context() of perfmon2's KAPI of 2006 for one counter.
 *
 * Context: May sleep. A callback of CPU hotplug must not create a counter of a task, a tracepoint,
 * a probe or a software event other than the clocks, or with @attr->branch_sample_type: perf core
 * takes CPU hotplug's lock.
 * Return: The counter, or an ERR_PTR(): -EINVAL for a NULL @attr, attributes that contradict each
 * other, or an impossible CPU; -EACCES if the sysctl perf_event_paranoid keeps the calling process
 * from counting on @cpu; -ENODEV if @cpu is offline, or the PMU has just gone; -ESRCH if @task is
 * exiting; -ENOENT if no PMU knows the event; -ENOSPC if the trial finds that the counter does not
 * fit; -EOVERFLOW if @attr->max_stack, with PMUK_CALLCHAIN_USER, is above the sysctl
 * perf_event_max_stack; -EOPNOTSUPP if the PMU lacks a capability asked for, such as interrupts for
 * a period, or @attr->freq is for an event that traces, or @attr->sample_type asks for a field that
 * callbacks do not get, or that this kernel does not support; -EBUSY if the PMU cannot have events
 * of CPUs and of tasks at the same time, as Intel PT, and has some of the other kind; -ENOMEM. A
 * PMU's own errors are passed on as they are.
 *
 * With a CPU's buffer, the fields are those of records: -EOPNOTSUPP if records do not have what
 * @attr->sample_type or @attr->read_format asks for. Also -EINVAL if the PMU's driver has all its
 * events on another CPU. With an AUX area that the PMU would write, also -EOPNOTSUPP on stock
 * kernels; -EINVAL if the area overwrites and is in pieces, and the PMU needs one piece; -EBUSY if
 * the area has a producer. With PERF_SAMPLE_AUX, also -EINVAL if the buffer has no AUX area, and
 * -EOPNOTSUPP if a PMU is to write an area that overwrites, and its driver cannot copy from it.
 */
struct pmuk_counter *pmuk_counter_create(const struct pmuk_attr *attr, int cpu,
					 struct task_struct *task)
{
	int ret = pmuk_check_attr(attr, cpu, task);
	struct pmuk_counter *c;

	if (ret)
		return ERR_PTR(ret);
	c = pmuk_counter_make(attr, cpu, task, NULL, NULL, NULL);
	if (IS_ERR(c))
		return c;
	ret = pmuk_counter_try(c, attr);
	if (!ret)
		return c;
	pr_debug("create: type %u config %#llx: %s: %d\n", attr->type, attr->config,
		 ret == -ENOSPC ? "its PMU is full" : "perf says", ret);
	pmuk_counter_unmake(c);
	return ERR_PTR(ret);
}
EXPORT_SYMBOL_GPL(pmuk_counter_create);

/**
 * pmuk_counter_destroy() - end a counter
 * @c: the counter; NULL and an ERR_PTR() are fine. A context's counter is left to its context
 *
 * On return no overflow callback runs or will run. If @c is not on the CPU's own PMU, and has a
 * period or is the last that shares its register, this call waits for an RCU grace period: perf
 * core may handle such overflows with interrupts on. The caller makes sure that no other call on @c
 * is under way.
 *
 * Context: May sleep. Not from the overflow callback.
 */
void pmuk_counter_destroy(struct pmuk_counter *c)
{
	if (!IS_ERR_OR_NULL(c) && !c->slot)
		pmuk_counter_unmake(c);
}
EXPORT_SYMBOL_GPL(pmuk_counter_destroy);

/* The first half of destroying a counter: its overflows are dropped from now on. */
void pmuk_counter_end(struct pmuk_counter *c)
{
	/* A disable publishes the last value. Counters with @c as a peer go on recording it. */
	if (kref_read(&c->ref) > 1 || c->host)
		pmuk_counter_disable(c);
	WRITE_ONCE(c->quiet, true);
	perf_event_release_kernel(c->event);
}

/* The second half of destroying a counter. The caller knows that no overflow callback is left. */
void pmuk_counter_finish(struct pmuk_counter *c)
{
	/* No overflow can queue ->settle any more. If it is queued, it finds ->quiet set. */
	irq_work_sync(&c->settle);
	pmuk_aux_detach(c);
	pmuk_counter_put_others(c);
	if (c->host)
		pmuk_host_leave(c);
	kref_put(&c->ref, pmuk_counter_free);
}

/**
 * pmuk_counter_destroy_deferred() - end a counter from anywhere
 * @c: the counter
 * @done: completed when no overflow callback runs or will run, and @c is destroyed; may be NULL
 *
 * From now on overflows are dropped, and @c may not be used any more. A call of
 * pmuk_counter_enable() that is under way goes on, and @c is freed after it, so the first overflow
 * may destroy its counter. A module that passes NULL must not be unloaded before its callback is
 * known to have ended. perfmon2's KAPI of 2006 could not close from an interrupt.
 *
 * Context: Any, NMI too, the overflow callback too.
 * Return: 0; -EINVAL if @c is NULL, an ERR_PTR() or a context's, as a format's handler sees it;
 * -EBUSY if @c is being destroyed already. @done is completed only after 0.
 */
int pmuk_counter_destroy_deferred(struct pmuk_counter *c, struct completion *done)
{
	if (IS_ERR_OR_NULL(c) || c->slot)
		return -EINVAL;
	if (atomic_xchg(&c->doomed, 1))
		return -EBUSY;

	WRITE_ONCE(c->quiet, true);
	c->done = done;
	irq_work_queue(&c->irq_work);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_counter_destroy_deferred);

/**
 * pmuk_counter_enable() - let a counter count
 * @c: the counter
 *
 * Follows pfmk_start() of perfmon2's KAPI. Enabling an enabled counter does nothing. A counter in
 * PMUK_COUNTER_ERROR is placed again if a new event finds room, so that no younger event loses its
 * register; a task's and one that traces are placed without that check. After an error the counter
 * does not count until a later call succeeds. If a pinned counter that was off finds no register,
 * younger pinned events of that PMU on that CPU are in error, too. This call returns 0 even if the
 * AUX area of a counter that traces is full or paused. Such a counter becomes PMUK_COUNTER_OFF at
 * once, and a task's when the task next runs.
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @c is NULL or an ERR_PTR(); -ENOSPC if the counter is pinned and its PMU is
 * full; -ENODEV if its CPU or PMU has gone; -ESRCH if its task has; -EBUSY with PMUK_INHERIT if the
 * task has children born since the creation, as these would not be counted: enable before the task
 * forks. If @c is in error, or shares an event that is off, pmuk creates a new event to find out
 * whether there is room: what pmuk_counter_create() returns if that fails, such as -ENOMEM, but
 * never -EACCES for a lack of rights. If the task forks during this call, children born meanwhile
 * may count until @c is destroyed. A pinned task counter is placed when its task next runs: check
 * pmuk_counter_state() then.
 */
int pmuk_counter_enable(struct pmuk_counter *c)
{
	int ret;

	if (IS_ERR_OR_NULL(c))
		return -EINVAL;

	refcount_inc(&c->users);	/* an overflow may destroy the counter before this ends */
	ret = pmuk_counter_try_enable(c);
	pmuk_counter_put(c);
	return ret;
}
EXPORT_SYMBOL_GPL(pmuk_counter_enable);
