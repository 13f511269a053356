// SPDX-License-Identifier: GPL-2.0
/*
 * A counter on one CPU or task, over perf core: its life, and the calls on it that sleep. The calls
 * that any context may make are in local.c.
 *
 * perf core owns the hardware. It is silent about a pinned counter that cannot be placed, and about
 * a CPU, task or PMU that has gone: pmuk reports these.
 */
#define pr_fmt(fmt) "pmuk: " fmt

#include <kunit/visibility.h>
#include <linux/build_bug.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/topology.h>

#include "buffer.h"
#include "event.h"
#include "format.h"
#include "freq.h"
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

#define PMUK_ATTR_FLAGS	(PMUK_EXCLUDES | PMUK_PINNED | PMUK_NO_THROTTLE | PMUK_INHERIT |	\
			 PMUK_PRIVATE | PMUK_CALLCHAIN_USER)

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

/* Callbacks get the interrupted registers without a mask, too. */
static const char *pmuk_attr_extras_fault(const struct pmuk_attr *attr)
{
	bool chain = attr->sample_type & PERF_SAMPLE_CALLCHAIN;

	if (attr->sample_regs_intr && !(attr->sample_type & PERF_SAMPLE_REGS_INTR))
		return "sample_regs_intr without PERF_SAMPLE_REGS_INTR";
	if (!attr->sample_regs_user != !(attr->sample_type & PERF_SAMPLE_REGS_USER))
		return "sample_regs_user without PERF_SAMPLE_REGS_USER, or the reverse";
	if (!attr->aux_sample_size != !(attr->sample_type & PERF_SAMPLE_AUX))
		return "aux_sample_size without PERF_SAMPLE_AUX, or the reverse";
	if (!chain && (attr->max_stack || (attr->flags & PMUK_CALLCHAIN_USER)))
		return "max_stack or PMUK_CALLCHAIN_USER without PERF_SAMPLE_CALLCHAIN";
	return pmuk_slice_fault(attr->aux_sample_size) ?:
	       pmuk_extras_fault(attr->sample_regs_intr, attr->sample_regs_user, attr->max_stack,
				 attr->flags);
}

static const char *pmuk_attr_samples_fault(const struct pmuk_attr *attr)
{
	bool branches = attr->sample_type & PERF_SAMPLE_BRANCH_STACK;

	if (attr->precise_ip > PMUK_PRECISE_BEST)
		return "no such precise_ip";
	if (attr->precise_ip && !attr->period)
		return "precise_ip without a period";
	if (branches && !attr->branch_sample_type)
		return "PERF_SAMPLE_BRANCH_STACK without branch_sample_type";
	if (!branches && attr->branch_sample_type)
		return "branch_sample_type without PERF_SAMPLE_BRANCH_STACK";
	return pmuk_fields_fault(attr->sample_type) ?:
	       pmuk_branches_fault(attr->branch_sample_type, attr->flags) ?:
	       pmuk_attr_extras_fault(attr);
}

static const char *pmuk_attr_fault(const struct pmuk_attr *attr, int cpu,
				   const struct task_struct *task)
{
	if (!task && (cpu < 0 || cpu >= nr_cpu_ids || !cpu_possible(cpu)))
		return "no such CPU";
	if (task && cpu != -1)
		return "a task counter follows its task: cpu must be -1";
	if (attr->flags & ~PMUK_ATTR_FLAGS)
		return "unknown flags";
	if ((attr->flags & PMUK_INHERIT) && (!task || attr->random_mask || attr->freq))
		return "PMUK_INHERIT needs a task and a fixed period";
	if (attr->overflow && !attr->period)
		return "overflow callback without a period";
	if (attr->random_mask && !attr->period)
		return "random_mask without a period";
	if (attr->freq && (attr->period < 2 || attr->period > PMUK_FREQ_LONGEST))
		return "freq needs a period from 2 to 2^48";
	if (attr->freq && attr->random_mask)
		return "freq and random_mask";
	if (attr->freq > PMUK_FREQ_MAX)
		return "freq too high";
	if (attr->period > PMUK_PERIOD_MAX - attr->random_mask)
		return "period too long";
	return pmuk_attr_samples_fault(attr);
}

/* Returns the bits of fields that a callback's sample, or with a buffer a record, cannot have. */
static u64 pmuk_attr_unsupported(const struct pmuk_attr *attr, int cpu)
{
	u64 chain = attr->flags & PMUK_CALLCHAIN_USER ? 0 : PERF_SAMPLE_CALLCHAIN;
	u64 unsupported = pmuk_unsupported_extras(attr->sample_regs_intr, attr->sample_regs_user,
						  attr->flags);

	if (attr->buffer && cpu != -1)
		return unsupported | pmuk_unsupported_record_fields(attr->sample_type);
	return unsupported | pmuk_unsupported_fields(attr->sample_type, PMUK_SAMPLE_TYPE & ~chain);
}

static int pmuk_check_attr(const struct pmuk_attr *attr, int cpu, const struct task_struct *task)
{
	const char *fault;
	u64 unknown;

	fault = attr ? pmuk_attr_fault(attr, cpu, task) : "no attributes";
	if (!fault)
		fault = pmuk_format_fault(attr, cpu);
	if (fault) {
		pr_debug("create: %s\n", fault);
		return -EINVAL;
	}
	unknown = pmuk_attr_unsupported(attr, cpu);
	if (unknown || pmuk_unsupported_read_format(attr->read_format)) {
		pr_debug("create: fields %#llx of sample_type, or read_format %#llx, not supported\n",
			 unknown, attr->read_format);
		return -EOPNOTSUPP;
	}
	return 0;
}

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

static struct perf_event *pmuk_counter_event(struct pmuk_counter *c, const struct pmuk_attr *attr,
					     struct task_struct *task)
{
	/* A rider's host has what else is asked of the hardware. */
	const struct pmuk_attr rider = { .type = pmuk_rider_pmu.type, .flags = attr->flags };
	const struct pmuk_attr *own = c->host ? &rider : attr;
	struct perf_event_attr pa = pmuk_event_attr(own);
	struct perf_event *event;

	pa.sample_period = attr->period ? pmuk_next_period(c) : 0;
	event = pmuk_event_create(&pa, own->precise_ip, c->cpu, task, pmuk_overflow, c);
	/* The driver may have moved the event to another CPU. Buffers and contexts are by CPU. */
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

/*
 * Most drivers write hw.state at each start, which removes a mark. Drivers without interrupts, such
 * as x86's msr, leave hw.state alone. Drivers of trace units may compare it as a whole.
 */
static bool pmuk_counter_can_mark(const struct pmuk_counter *c)
{
	return !pmuk_hw_is_software(c) && !c->traces &&
	       !perf_local_pmu_can(c->event, PERF_PMU_CAP_NO_INTERRUPT);
}

/* The event exists: fill in the rest. From here on pmuk_counter_unmake() destroys the counter. */
static void pmuk_counter_adopt(struct pmuk_counter *c, const struct pmuk_attr *attr)
{
	c->core = perf_arch_core_event(c->hw_event);
	c->traces = has_aux(c->event);
	c->marks = pmuk_counter_can_mark(c);
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
}

static DEFINE_PER_CPU(struct mutex, pmuk_trial_locks);
static DEFINE_PER_CPU(atomic_t, pmuk_trials);	/* trials of pmuk_counter_create() */

/*
 * Held from the creation of a CPU's counters to the end of their trial. perf core serves the older
 * of two pinned counters first: if others were created meanwhile, the trial could push them out for
 * good.
 */
struct mutex *pmuk_trial_lock(int cpu)
{
	return per_cpu_ptr(&pmuk_trial_locks, cpu);
}
EXPORT_SYMBOL_IF_KUNIT(pmuk_trial_lock);

/* Returns true if a trial may be in the way of an event. */
bool pmuk_trial_goes_on(int cpu)
{
	return mutex_is_locked(pmuk_trial_lock(cpu)) || atomic_read(per_cpu_ptr(&pmuk_trials, cpu));
}

void __init pmuk_trial_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		mutex_init(pmuk_trial_lock(cpu));
}

/*
 * Enables the event for a moment. Returns -ENOSPC if the event finds no register. The trial's count
 * and period are discarded, and ->tried will be left out of the counter's times.
 */
static int pmuk_event_try(struct pmuk_counter *c)
{
	struct perf_event *event = c->event;
	u64 enabled;

	perf_event_enable(event);
	if (perf_local_state(event) == PERF_EVENT_STATE_ERROR)
		return -ENOSPC;

	perf_event_pause(event, true);
	perf_event_read_value(event, &enabled, &c->tried);
	perf_local_set_left(c->event, 0);
	return 0;
}

/*
 * Returns -ENOSPC if a new pinned counter of a CPU finds no register: perf core is asked to place
 * the counter's event, or one in place of its host. A context's counter is not tried here, as
 * the context tries all counters of a set together. Trace data could not be discarded, so a counter
 * that writes AUX areas is not tried.
 *
 * A counter that is enabled may push a running task's pinned event out for good. A counter that is
 * only tried must not. A task that begins to run before the trial has ended can still lose a pinned
 * event: the trial takes some microseconds, and longer if its caller is preempted on that CPU.
 */
static int pmuk_counter_try(struct pmuk_counter *c)
{
	int ret;

	if (!(c->attr.flags & PMUK_PINNED) || c->cpu < 0 || c->writes_aux || c->slot ||
	    perf_local_task_has_pinned(c->hw_event))
		return 0;
	atomic_inc(per_cpu_ptr(&pmuk_trials, c->cpu));
	ret = c->host ? pmuk_host_try(c) : pmuk_event_try(c);
	atomic_dec(per_cpu_ptr(&pmuk_trials, c->cpu));
	return ret;
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
 * Context: May sleep.
 * Return: The counter, or an ERR_PTR(): -EINVAL for a NULL @attr, attributes that contradict each
 * other, or an impossible CPU; -EACCES if the sysctl perf_event_paranoid keeps the calling process
 * from counting on @cpu; -ENODEV if @cpu is offline, or the PMU has just gone; -ESRCH if @task is
 * exiting; -ENOENT if no PMU knows the event; -ENOSPC if the trial finds that the counter does not
 * fit; -EOVERFLOW if @attr->max_stack, with PMUK_CALLCHAIN_USER, is above the sysctl
 * perf_event_max_stack; -EOPNOTSUPP if the PMU lacks a capability asked for, or @attr->freq is for
 * an event that traces, or @attr->sample_type asks for a field that callbacks do not get, or that
 * this kernel does not support; -ENOMEM. A PMU's own errors are passed on as they are.
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

	return ret ? ERR_PTR(ret) : pmuk_counter_make(attr, cpu, task, NULL, NULL, NULL);
}
EXPORT_SYMBOL_GPL(pmuk_counter_create);

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

/* The caller has checked @attr. @handler, @slot and @buffers are a context's, or NULL. */
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
	pmuk_counter_adopt(c, attr);

	ret = pmuk_counter_can_adapt(c) ? 0 : -EOPNOTSUPP;
	if (!ret && c->traces)
		ret = pmuk_aux_attach(c);
	ret = ret ?: pmuk_counter_try(c);
	if (ret) {
		pr_debug("create: type %u config %#llx: %s: %d\n", attr->type, attr->config,
			 ret == -ENOSPC ? "its PMU is full" :
			 ret == -EOPNOTSUPP ? "it has no AUX area, or takes no freq" :
			 "no AUX area for it", ret);
		pmuk_counter_unmake(c);
		return ERR_PTR(ret);
	}
	WRITE_ONCE(c->quiet, false);
	return c;
}

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

static bool pmuk_counter_is_gone(const struct pmuk_counter *c)
{
	return perf_local_is_gone(c->event) || perf_local_is_gone(c->hw_event) ||
	       pmuk_counter_is_moved(c);
}

/* A rider that is enabled is where its host is. */
static enum perf_event_state pmuk_counter_event_state(const struct pmuk_counter *c)
{
	enum perf_event_state state = perf_local_state(c->event);

	if (pmuk_rider_is_refused(c))
		return PERF_EVENT_STATE_ERROR;
	return state > PERF_EVENT_STATE_OFF ? min(state, perf_local_state(c->hw_event)) : state;
}

static int pmuk_counter_find_state(const struct pmuk_counter *c)
{
	if (pmuk_counter_is_gone(c))
		return PMUK_COUNTER_GONE;

	switch (pmuk_counter_event_state(c)) {
	case PERF_EVENT_STATE_ACTIVE:
		return PMUK_COUNTER_ACTIVE;
	case PERF_EVENT_STATE_INACTIVE:
	case PERF_EVENT_STATE_EXIT:
		return PMUK_COUNTER_WAITING;
	case PERF_EVENT_STATE_OFF:
		return PMUK_COUNTER_OFF;
	default:
		return PMUK_COUNTER_ERROR;
	}
}

/*
 * A resume in the middle subtracts what the hardware has counted during the pause, and this read
 * may have included that: read again if ->resumes has moved. A resume stores the count, then
 * ->resumes, then ->state. So a reader that sees its ->state sees its ->resumes, and a reader that
 * sees its ->resumes sees the corrected count.
 */
static void pmuk_counter_value(struct pmuk_counter *c, struct pmuk_value *value, bool disabled)
{
	u64 *enabled = &value->time_enabled, *running = &value->time_running, resumes;

	do {
		resumes = smp_load_acquire(&c->resumes);	/* pairs with pmuk_thaw() */
		value->count = disabled ? perf_local_last_value(c->event, enabled, running) :
					  perf_event_read_value(c->event, enabled, running);
		if (c->host)	/* after the read, which has pmuk_rider_read() called */
			*running = READ_ONCE(c->host_ran);
		pmuk_counter_is_frozen(c, &value->count);
	} while (READ_ONCE(c->resumes) != resumes);

	value->time_enabled -= c->tried;
	value->time_running -= c->tried;
	/* perf core reads one time after the other, and the task may be switched in between. */
	value->time_running = min(value->time_running, value->time_enabled);
	value->age = 0;
}

/* Returns 0 unless the CPU, task or PMU is gone, or the pinned counter was pushed off its PMU. */
static int pmuk_counter_fault(const struct pmuk_counter *c)
{
	int state = pmuk_counter_find_state(c);

	if (state != PMUK_COUNTER_GONE)
		return state == PMUK_COUNTER_ERROR ? -EBUSY : 0;
	return perf_local_task(c->event) && !perf_local_is_pmu_gone(c->event) ? -ESRCH : -ENODEV;
}

/*
 * If the parent's event is disabled at a fork, so is the child's, and perf core has no call by
 * which modules could enable it later. A child's event that is off was born before its parent's
 * event was enabled.
 */
static bool pmuk_is_late(struct pmuk_counter *c)
{
	return !c->begun && (c->attr.flags & PMUK_INHERIT) && !c->writes_aux &&
	       perf_local_has_child_off(c->event);
}

/* The task may fork between the check of its children and the enabling, so check again. */
static int pmuk_enable_event(struct pmuk_counter *c)
{
	int ret = 0;

	if (pmuk_is_late(c))
		return -EBUSY;
	if (c->writes_aux)
		perf_event_enable_family(c->event);
	else if (c->host)
		ret = pmuk_rider_enable(c);
	else if (perf_local_state(c->event) <= PERF_EVENT_STATE_OFF)
		perf_event_enable(c->event);
	if (pmuk_is_late(c)) {
		perf_event_disable(c->event);
		return -EBUSY;
	}
	c->begun = true;
	return ret;
}

/* Returns why the counter, which was enabled just now, does not count, or 0. */
static int pmuk_enable_fault(struct pmuk_counter *c)
{
	int ret = pmuk_counter_fault(c);

	if (ret && c->host && !pmuk_rider_refuse(c) && ret == -EBUSY)
		ret = 0;
	return ret == -EBUSY ? -ENOSPC : ret;
}

static int pmuk_enable(struct pmuk_counter *c)
{
	/* perf core accepts an event that has lost its context, but never schedules it. */
	int ret = pmuk_counter_fault(c);

	if (!ret || ret == -EBUSY)
		ret = pmuk_enable_event(c) ?: pmuk_enable_fault(c);
	if (ret)
		pr_debug("enable: type %u config %#llx: %d\n", c->attr.type, c->attr.config, ret);
	return ret;
}

/**
 * pmuk_counter_enable() - let a counter count
 * @c: the counter
 *
 * Follows pfmk_start() of perfmon2's KAPI. Enabling an enabled counter does
 * nothing; enabling one in PMUK_COUNTER_ERROR tries to place it again. After an
 * error the counter does not count until a later call succeeds.
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @c is NULL or an ERR_PTR(); -ENOSPC if the counter is
 * pinned and its PMU is full; -ENOMEM if pmuk cannot find out whether it is; -ENODEV if its CPU or
 * PMU has gone; -ESRCH if its task has; -EBUSY with PMUK_INHERIT if the task has children born
 * since the creation, as these would not be counted: enable before the task forks. If the task
 * forks during this call, children born meanwhile may count until @c is destroyed. A pinned task
 * counter is placed when its task next runs: check pmuk_counter_state() then.
 */
int pmuk_counter_enable(struct pmuk_counter *c)
{
	int ret;

	if (IS_ERR_OR_NULL(c))
		return -EINVAL;

	refcount_inc(&c->users);	/* an overflow may destroy the counter before this ends */
	ret = pmuk_enable(c);
	pmuk_counter_put(c);
	return ret;
}
EXPORT_SYMBOL_GPL(pmuk_counter_enable);

/**
 * pmuk_counter_disable() - stop counting and take the counter off its PMU
 * @c: the counter
 *
 * On return the final value is published, no overflow callback runs, and none is
 * called until pmuk_counter_enable(). Follows pfmk_stop() of perfmon2's KAPI.
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @c is NULL or an ERR_PTR(); -EOPNOTSUPP with
 * PMUK_INHERIT, as perf core lets modules reach the task's own event only, and
 * not its children's, unless the PMU writes AUX areas.
 */
int pmuk_counter_disable(struct pmuk_counter *c)
{
	struct pmuk_value value;
	bool off;

	if (IS_ERR_OR_NULL(c))
		return -EINVAL;

	if ((c->attr.flags & PMUK_INHERIT) && !c->writes_aux)
		return -EOPNOTSUPP;

	if (c->writes_aux)
		perf_event_disable_family(c->event);
	else if (perf_local_state(c->event) > PERF_EVENT_STATE_OFF)
		perf_event_disable(c->event);
	if (c->host)
		pmuk_host_follow(c);
	/* Another caller may have enabled the counter since. */
	off = !(c->attr.flags & PMUK_INHERIT) && perf_local_state(c->event) == PERF_EVENT_STATE_OFF;
	pmuk_counter_value(c, &value, off);
	pmuk_publish(c, &value);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_counter_disable);

/*
 * Lets a disabled counter go on from @count. perf core's count changes, so that reads need not add
 * anything. No group read or NMI reads the counter now, so ->last may go back.
 */
void pmuk_counter_set_count(struct pmuk_counter *c, u64 count)
{
	struct pmuk_value value;
	u64 extra;

	pmuk_counter_value(c, &value, false);
	extra = value.count - count;
	perf_local_subtract(c->event, extra);
	c->paused_count -= extra;
	WRITE_ONCE(c->frozen, c->frozen - extra);
	c->last = count;
	*c->last_group = count;
	c->last_nmi = count;
	value.count = count;
	WRITE_ONCE(c->pub[0].count, 0);	/* pmuk_publish() replaces no greater count */
	pmuk_publish(c, &value);
}

/* Returns true if perf core can enable and disable the counter together with its set's others. */
static bool pmuk_counter_can_batch(const struct pmuk_counter *c)
{
	return c && !(c->attr.flags & PMUK_INHERIT) && !c->writes_aux && !pmuk_counter_is_gone(c);
}

/* Returns how many @events there are: those of the counters, or of their hosts that are off. */
static unsigned int pmuk_batch(struct pmuk_counter *const *counters, unsigned int nr, bool hosts,
			       struct perf_event **events)
{
	unsigned int i, n = 0;

	for (i = 0; i < nr; i++) {
		if (!pmuk_counter_can_batch(counters[i]))
			continue;
		if (!hosts)
			events[n++] = counters[i]->event;
		else if (counters[i]->host &&
			 perf_local_state(counters[i]->hw_event) == PERF_EVENT_STATE_OFF)
			events[n++] = counters[i]->hw_event;
	}
	return n;
}

/*
 * Returns true if any of the counters has to look for room, as pmuk_counter_enable() lets it do.
 * After the @first time, only a counter does that to which this was refused.
 */
bool pmuk_counters_are_probed(struct pmuk_counter *const *counters, unsigned int nr, bool first)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (counters[i] && pmuk_rider_is_probed(counters[i]) &&
		    (first || pmuk_rider_is_refused(counters[i])))
			return true;
	}
	return false;
}

/*
 * Enable the counters of a set by one interrupt of their CPU, and their hosts by another, as far as
 * perf core can. The caller then calls pmuk_counter_enable() for each counter, which enables the
 * others and returns errors.
 */
void pmuk_counters_enable(struct pmuk_counter *const *counters, unsigned int nr)
{
	struct perf_event *events[PMUK_SET_COUNTERS];

	/* The time of a rider runs from its start only if its host has a register then. */
	perf_events_enable(events, pmuk_batch(counters, nr, true, events));
	perf_events_enable(events, pmuk_batch(counters, nr, false, events));
}

/* Disables the counters of a set likewise. pmuk_counter_disable() then publishes the values. */
void pmuk_counters_disable(struct pmuk_counter *const *counters, unsigned int nr)
{
	struct perf_event *events[PMUK_SET_COUNTERS];

	perf_events_disable(events, pmuk_batch(counters, nr, false, events));
}

/**
 * pmuk_counter_read() - read a counter exactly, from any CPU
 * @c: the counter
 * @value: where to put count, time_enabled and time_running
 *
 * With PMUK_INHERIT, @value is the sum over the task and its children. Reading a counter
 * that is on another CPU's PMU interrupts that CPU. Follows pfmk_read_pmds().
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @c or @value is NULL; -EBUSY if the counter was pinned
 * and pushed out, -ENODEV if its CPU or PMU has gone, -ESRCH if its task has:
 * then @value holds the count until then.
 */
int pmuk_counter_read(struct pmuk_counter *c, struct pmuk_value *value)
{
	if (IS_ERR_OR_NULL(c) || !value)
		return -EINVAL;

	pmuk_counter_value(c, value, false);
	return pmuk_counter_fault(c);
}
EXPORT_SYMBOL_GPL(pmuk_counter_read);

/**
 * pmuk_counter_state() - whether a counter counts, and if not, why not
 * @c: the counter
 *
 * Context: Any, NMI too.
 * Return: enum pmuk_counter_states; -EINVAL if @c is NULL or an ERR_PTR().
 */
int pmuk_counter_state(struct pmuk_counter *c)
{
	return IS_ERR_OR_NULL(c) ? -EINVAL : pmuk_counter_find_state(c);
}
EXPORT_SYMBOL_GPL(pmuk_counter_state);
