// SPDX-License-Identifier: GPL-2.0
/*
 * A context's life: created, with its buffers and areas, started, stopped, and closed.
 */
#define pr_fmt(fmt) "pmuk: " fmt

#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/topology.h>
#include <linux/wait_bit.h>

#define CREATE_TRACE_POINTS
#include <trace/events/pmu_kapi.h>

#include "buffer.h"
#include "context.h"

/* A task may exit, or a counter be pushed off its PMU: looked at so often. */
#define PMUK_WATCH_JIFFIES	(HZ / 10)

struct workqueue_struct *pmuk_turns_wq;

/* For people: what is live. */
DEFINE_MUTEX(pmuk_contexts_lock);
LIST_HEAD(pmuk_contexts);		/* pmuk_contexts_lock */
static u64 pmuk_context_ids;		/* the same */

/* ---- create and close ---- */

static void pmuk_context_free(struct pmuk_context *ctx)
{
	unsigned int cpu;

	if (ctx->buffers && ctx->battr.nr_pages)
		pmuk_buffers_destroy(ctx->buffers, nr_cpu_ids);
	for (cpu = 0; ctx->areas && cpu < nr_cpu_ids; cpu++) {
		if (ctx->areas[cpu] && ctx->format->exit)
			ctx->format->exit(ctx->areas[cpu], cpu);
		kvfree(ctx->areas[cpu]);
	}
	pmuk_mail_end(&ctx->mail);
	pmuk_sets_free(ctx);
	pmuk_format_put(ctx->entry);
	kfree(ctx->format_arg);
	free_cpumask_var(ctx->cpus);
	free_cpumask_var(ctx->online);
	kfree(ctx->buffers);
	kfree(ctx->areas);
	kfree(ctx->groups);
	kfree(ctx->insts);
	kfree(ctx);
}

static void pmuk_context_close(struct pmuk_context *ctx)
{
	trace_pmuk_context_close(ctx->id, 0);
	scoped_guard(mutex, &pmuk_contexts_lock)
		list_del(&ctx->all);
	wait_var_event(&ctx->viewers, !atomic_read(&ctx->viewers));
	pmuk_unload_context(ctx);
	cancel_work_sync(&ctx->hotplug);
	cancel_delayed_work_sync(&ctx->watch);
	pmuk_context_free(ctx);
	module_put(THIS_MODULE);
}

static void pmuk_close_work(struct work_struct *work)
{
	struct pmuk_context *ctx = container_of(work, struct pmuk_context, close_work);
	struct completion *done = ctx->done;

	irq_work_sync(&ctx->close_irq_work);
	pmuk_context_close(ctx);
	if (done)
		complete(done);
}

static void pmuk_close_irq_work(struct irq_work *irq_work)
{
	struct pmuk_context *ctx = container_of(irq_work, struct pmuk_context, close_irq_work);

	queue_work(pmuk_wq, &ctx->close_work);
}

/* True for the first who closes @ctx: from then on its format may leave. Any context, NMI too. */
static bool pmuk_context_doom(struct pmuk_context *ctx)
{
	if (atomic_xchg(&ctx->doomed, 1))
		return false;
	pmuk_format_let_go(ctx->entry);
	return true;
}

/**
 * pmuk_close() - end a context
 * @ctx: the context
 *
 * On return no format handles anything any more, its buffers are gone, and the completion
 * is not touched. The caller sees to it that no other call on @ctx is under way. Follows
 * pfmk_close().
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @ctx is NULL or an ERR_PTR(), -EBUSY if it is being closed already.
 */
int pmuk_close(struct pmuk_context *ctx)
{
	if (IS_ERR_OR_NULL(ctx))
		return -EINVAL;
	if (!pmuk_context_doom(ctx))
		return -EBUSY;
	pmuk_context_close(ctx);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_close);

/**
 * pmuk_close_deferred() - end a context from anywhere
 * @ctx: the context, which may not be used any more
 * @done: completed when what pmuk_close() promises holds; may be NULL
 *
 * A format without &pmuk_format.owner must not go before that: with a NULL @done,
 * pmuk_unregister_format() waits for it.
 * With a sampling buffer, perfmon2's KAPI of 2006 could not do this.
 *
 * Context: Any, NMI too, a format's handler too.
 * Return: As pmuk_close(). @done is completed only after 0.
 */
int pmuk_close_deferred(struct pmuk_context *ctx, struct completion *done)
{
	if (IS_ERR_OR_NULL(ctx))
		return -EINVAL;
	if (!pmuk_context_doom(ctx))
		return -EBUSY;
	ctx->done = done;
	irq_work_queue(&ctx->close_irq_work);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_close_deferred);

static const char *pmuk_context_fault(const struct pmuk_context_attr *attr)
{
	if (attr->flags & ~PMUK_CTX_MASK)
		return "unknown flags";
	if (attr->buffer.completion)
		return "a buffer with a completion: there are messages";
	if (!attr->format_arg != !attr->format_arg_size)
		return "an argument for the format without its size, or the reverse";
	if (attr->buffer.aux.nr_pages && !attr->buffer.nr_pages)
		return "an AUX area, and no data pages for its records";
	return pmuk_buffer_fault(&attr->buffer, attr->buffer.nr_pages ? 0 : -1);
}

static int pmuk_context_set_format(struct pmuk_context *ctx, const struct pmuk_context_attr *attr)
{
	const struct pmuk_format *format;

	ctx->format = pmuk_format_find(attr->format, &ctx->entry);
	format = ctx->format;
	if (!format)
		return -ENOENT;
	if (format->validate) {
		int ret = format->validate(attr->format_arg, attr->format_arg_size, attr);

		if (ret)
			return ret;
	} else if (attr->format_arg_size) {
		return -EINVAL;
	}
	if (!attr->format_arg_size)
		return 0;
	ctx->format_arg = kmemdup(attr->format_arg, attr->format_arg_size, GFP_KERNEL);
	ctx->format_arg_size = attr->format_arg_size;
	return ctx->format_arg ? 0 : -ENOMEM;
}

static int pmuk_context_alloc_arrays(struct pmuk_context *ctx)
{
	ctx->insts = kcalloc(nr_cpu_ids, sizeof(*ctx->insts), GFP_KERNEL);
	ctx->buffers = kcalloc(nr_cpu_ids, sizeof(*ctx->buffers), GFP_KERNEL);
	ctx->areas = kcalloc(nr_cpu_ids, sizeof(*ctx->areas), GFP_KERNEL);
	ctx->groups = kcalloc(nr_cpu_ids, sizeof(*ctx->groups), GFP_KERNEL);
	if (!ctx->insts || !ctx->buffers || !ctx->areas || !ctx->groups)
		return -ENOMEM;
	if (!zalloc_cpumask_var(&ctx->cpus, GFP_KERNEL))
		return -ENOMEM;
	return zalloc_cpumask_var(&ctx->online, GFP_KERNEL) ? 0 : -ENOMEM;
}

static void pmuk_watch_work(struct work_struct *work);

static int pmuk_context_init(struct pmuk_context *ctx, const struct pmuk_context_attr *attr)
{
	int ret;

	ctx->flags = attr->flags;
	ctx->battr = attr->buffer;
	mutex_init(&ctx->lock);
	xa_init(&ctx->sets);
	INIT_WORK(&ctx->hotplug, pmuk_hotplug_work);
	INIT_DELAYED_WORK(&ctx->watch, pmuk_watch_work);
	INIT_WORK(&ctx->close_work, pmuk_close_work);
	init_irq_work(&ctx->close_irq_work, pmuk_close_irq_work);
	ctx->session = pmuk_aux_new_session();
	ret = pmuk_mail_init(&ctx->mail, attr->completion);
	if (!ret)
		ret = pmuk_context_alloc_arrays(ctx);
	if (!ret)
		ret = pmuk_set_add(ctx, 0, 0);
	return ret ?: pmuk_context_set_format(ctx, attr);
}

/**
 * pmuk_create_context() - create a context
 * @attr: what it is to be like; copied
 *
 * It has event set 0, with no counters yet, and counts nowhere before pmuk_load_context()
 * and pmuk_start(). Follows pfmk_create_context().
 *
 * Context: May sleep.
 * Return: The context, or an ERR_PTR(): -EINVAL for a NULL @attr or attributes that
 * contradict each other; -ENOENT if there is no such format; -ENOMEM. What a format
 * says of its argument is passed on as it is.
 */
struct pmuk_context *pmuk_create_context(const struct pmuk_context_attr *attr)
{
	const char *fault = attr ? pmuk_context_fault(attr) : "no attributes";
	struct pmuk_context *ctx;
	int ret;

	if (fault) {
		pr_debug("context: %s\n", fault);
		return ERR_PTR(-EINVAL);
	}
	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL);
	if (!ctx)
		return ERR_PTR(-ENOMEM);
	ret = pmuk_context_init(ctx, attr);
	if (ret) {
		pmuk_context_doom(ctx);
		pmuk_context_free(ctx);
		return ERR_PTR(ret);
	}
	__module_get(THIS_MODULE);
	guard(mutex)(&pmuk_contexts_lock);
	ctx->id = ++pmuk_context_ids;
	list_add_tail(&ctx->all, &pmuk_contexts);
	trace_pmuk_context_create(ctx->id, ctx->flags);
	return ctx;
}
EXPORT_SYMBOL_GPL(pmuk_create_context);

/* ---- buffers and areas ---- */

static void pmuk_context_notified_aux(struct pmuk_context *ctx, struct pmuk_aux *aux, int cpu)
{
	u64 wakeups = READ_ONCE(aux->area.wakeups), lost = READ_ONCE(aux->area.truncations);

	if (wakeups != aux->wakeups_told)
		pmuk_post(ctx, PMUK_MSG_AUX, cpu, 1, 0, 0);
	aux->wakeups_told = wakeups;
	if (lost != aux->lost_told)
		pmuk_post(ctx, PMUK_MSG_AUX_LOST, cpu, lost - aux->lost_told, 0, 0);
	WRITE_ONCE(aux->lost_told, lost);
}

/* Where waking is allowed, for all that was to wake since. */
static void pmuk_context_notified(struct pmuk_buffer *b)
{
	u64 lost = READ_ONCE(b->ring.lost), more = lost - b->lost_told;
	struct pmuk_context *ctx = b->notify_data;
	u64 marks = READ_ONCE(b->ring.marks);

	if (marks != b->marks_told)
		pmuk_post(ctx, PMUK_MSG_WATERMARK, b->cpu, 1, 0, 0);
	b->marks_told = marks;
	if (b->aux)
		pmuk_context_notified_aux(ctx, b->aux, b->cpu);
	if (!more)
		return;
	WRITE_ONCE(b->lost_told, lost);
	trace_pmuk_lost(ctx->id, b->cpu, more);
	pmuk_post(ctx, PMUK_MSG_LOST, b->cpu, more, 0, 0);
}

static int pmuk_context_make_buffer(struct pmuk_context *ctx, int cpu)
{
	struct pmuk_buffer *b;

	if (!ctx->battr.nr_pages || ctx->buffers[cpu])
		return 0;
	b = pmuk_buffer_create(&ctx->battr, cpu);
	if (IS_ERR(b))
		return PTR_ERR(b);
	b->notify_data = ctx;
	if (b->aux)
		b->aux->session = ctx->session;
	b->notify = pmuk_context_notified;
	smp_store_release(&ctx->buffers[cpu], b);	/* pairs with pmuk_buffer() */
	return 0;
}

static int pmuk_context_make_area(struct pmuk_context *ctx, int cpu)
{
	const struct pmuk_format *format = ctx->format;
	size_t size = 0;
	void *area;
	int ret;

	if (format->getsize && !ctx->areas[cpu])
		size = format->getsize(ctx->format_arg, ctx->format_arg_size);
	if (!size)
		return 0;
	area = kvzalloc_node(size, GFP_KERNEL | __GFP_NOWARN, cpu_to_node(cpu));
	if (!area)
		return -ENOMEM;
	ret = format->init ? format->init(area, cpu, ctx->format_arg, ctx->format_arg_size) : 0;
	if (ret) {
		kvfree(area);
		return ret;
	}
	smp_store_release(&ctx->areas[cpu], area);	/* pairs with pmuk_format_area() */
	return 0;
}

/* On each CPU that may write: a task's may be any. */
int pmuk_context_make_storage(struct pmuk_context *ctx)
{
	const struct cpumask *cpus = pmuk_target_is_task(ctx) ? cpu_possible_mask : ctx->cpus;
	int cpu, ret = 0;

	for_each_cpu(cpu, cpus) {
		ret = pmuk_context_make_buffer(ctx, cpu);
		if (!ret)
			ret = pmuk_context_make_area(ctx, cpu);
		if (ret)
			break;
	}
	return ret;
}

/**
 * pmuk_buffer() - a CPU's buffer
 * @ctx: the context
 * @cpu: the CPU
 *
 * Context: Any, NMI too.
 * Return: The buffer, until @ctx is closed; NULL if there is none: @ctx is NULL or an
 * ERR_PTR(), was created without data pages, or was never to be loaded on @cpu.
 */
struct pmuk_buffer *pmuk_buffer(struct pmuk_context *ctx, int cpu)
{
	if (IS_ERR_OR_NULL(ctx) || cpu < 0 || cpu >= nr_cpu_ids)
		return NULL;
	return smp_load_acquire(&ctx->buffers[cpu]);	/* pairs with pmuk_context_make_buffer() */
}
EXPORT_SYMBOL_GPL(pmuk_buffer);

/**
 * pmuk_format_area() - what a format keeps of a CPU
 * @ctx: the context
 * @cpu: the CPU
 *
 * Context: Any, NMI too.
 * Return: The area, until @ctx is closed; NULL as for pmuk_buffer(), or if the format
 * has none.
 */
void *pmuk_format_area(struct pmuk_context *ctx, int cpu)
{
	if (IS_ERR_OR_NULL(ctx) || cpu < 0 || cpu >= nr_cpu_ids)
		return NULL;
	return smp_load_acquire(&ctx->areas[cpu]);	/* pairs with pmuk_context_make_area() */
}
EXPORT_SYMBOL_GPL(pmuk_format_area);

/* ---- start, stop, restart, switch ---- */

/* The first instance from @cpu on, which is moved there; NULL if there is none. */
struct pmuk_inst *pmuk_inst_from(struct pmuk_context *ctx, unsigned int *cpu)
{
	for (; *cpu < nr_cpu_ids; (*cpu)++) {
		if (ctx->insts[*cpu])
			return ctx->insts[*cpu];
	}
	return NULL;
}

static bool pmuk_context_is_lost_untold(const struct pmuk_buffer *b)
{
	if (READ_ONCE(b->ring.lost) != READ_ONCE(b->lost_told))
		return true;
	return b->aux && READ_ONCE(b->aux->area.truncations) != READ_ONCE(b->aux->lost_told);
}

/* Of what was lost since a buffer woke for the last time. */
static void pmuk_context_tell_lost(struct pmuk_context *ctx)
{
	struct pmuk_buffer *b;
	unsigned int cpu;

	if (!ctx->battr.nr_pages)
		return;
	guard(cpus_read_lock)();
	for_each_possible_cpu(cpu) {
		b = ctx->buffers[cpu];
		if (b && pmuk_context_is_lost_untold(b))
			pmuk_buffer_tell(b);
	}
}

void pmuk_context_stop(struct pmuk_context *ctx)
{
	struct pmuk_inst *inst;
	unsigned int cpu;

	for (cpu = 0; (inst = pmuk_inst_from(ctx, &cpu)); cpu++)
		pmuk_inst_stop(inst);
	if (ctx->target == PMUK_TARGET_TREE)
		synchronize_rcu();	/* its overflows are not stopped, but dropped from now on */
	pmuk_context_tell_lost(ctx);
	ctx->running = false;
}

static int pmuk_context_start(struct pmuk_context *ctx, struct pmuk_target *failed)
{
	struct pmuk_inst *inst;
	unsigned int cpu;
	int ret = 0;

	for (cpu = 0; (inst = pmuk_inst_from(ctx, &cpu)); cpu++) {
		if (!ret)
			ret = pmuk_inst_start(inst, ctx->start_set, failed);
	}
	if (ret) {
		pmuk_context_stop(ctx);
		return ret;
	}
	ctx->running = true;
	queue_delayed_work(pmuk_wq, &ctx->watch, PMUK_WATCH_JIFFIES);
	return 0;
}

/**
 * pmuk_start() - let a context count
 * @ctx: the context, loaded
 * @failed: its failed_* tell which counter could not be placed; may be NULL
 *
 * On all of the target, or nowhere: what some have counted before one failed stays. The first
 * event set's turn is the lowest one's, or what pmuk_switch_evtset() has said. Starting a
 * started context does nothing. Follows pfmk_start().
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @ctx is NULL or an ERR_PTR(); -ENODEV if it is not loaded; and
 * as pmuk_counter_enable().
 */
int pmuk_start(struct pmuk_context *ctx, struct pmuk_target *failed)
{
	if (IS_ERR_OR_NULL(ctx))
		return -EINVAL;
	guard(mutex)(&ctx->lock);
	if (!ctx->loaded)
		return -ENODEV;
	return ctx->running ? 0 : pmuk_context_start(ctx, failed);
}
EXPORT_SYMBOL_GPL(pmuk_start);

/**
 * pmuk_stop() - let a context count no more, for now
 * @ctx: the context, loaded
 *
 * An overflow that is pending then is counted, and not handled. Follows pfmk_stop(). Stopping a
 * stopped context does nothing.
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @ctx is NULL or an ERR_PTR(); -ENODEV if it is not loaded.
 */
int pmuk_stop(struct pmuk_context *ctx)
{
	if (IS_ERR_OR_NULL(ctx))
		return -EINVAL;
	guard(mutex)(&ctx->lock);
	if (!ctx->loaded)
		return -ENODEV;
	pmuk_context_stop(ctx);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_stop);

/**
 * pmuk_restart() - go on after overflows that have stopped counters
 * @ctx: the context, loaded
 *
 * Where an overflow has masked all counters, or was not reset, those that have overflowed
 * begin their long period, and all count again. Buffers with PMUK_BUFFER_STOP
 * take records again. An overflow that meets this call is restarted by it, or masks
 * after it: it is told in both cases. Follows pfmk_restart().
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @ctx is NULL or an ERR_PTR(); -ENODEV if it is not loaded.
 */
int pmuk_restart(struct pmuk_context *ctx)
{
	struct pmuk_inst *inst;
	unsigned int cpu;

	if (IS_ERR_OR_NULL(ctx))
		return -EINVAL;
	guard(mutex)(&ctx->lock);
	if (!ctx->loaded)
		return -ENODEV;
	for_each_possible_cpu(cpu) {
		if (ctx->areas[cpu] && ctx->format->restart)
			ctx->format->restart(ctx->areas[cpu], cpu);
		if (ctx->buffers[cpu])
			pmuk_buffer_restart(ctx->buffers[cpu]);
	}
	for (cpu = 0; (inst = pmuk_inst_from(ctx, &cpu)); cpu++)
		pmuk_inst_restart(inst);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_restart);

/**
 * pmuk_switch_evtset() - let it be an event set's turn
 * @ctx: the context, loaded
 * @id: the set
 *
 * On all of the target, one CPU after the other; or, while the context is stopped, when
 * it is started. Where it is masked, soon after pmuk_restart().
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @ctx is NULL or an ERR_PTR(); -ENODEV if it is not loaded; -ENOENT
 * if there is no such set.
 */
int pmuk_switch_evtset(struct pmuk_context *ctx, u16 id)
{
	struct pmuk_inst *inst;
	unsigned int cpu;

	if (IS_ERR_OR_NULL(ctx))
		return -EINVAL;
	guard(mutex)(&ctx->lock);
	if (!ctx->loaded)
		return -ENODEV;
	if (!pmuk_set_find(ctx, id))
		return -ENOENT;
	ctx->start_set = id;
	for (cpu = 0; (inst = pmuk_inst_from(ctx, &cpu)); cpu++)
		pmuk_inst_switch(inst, id);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_switch_evtset);

static void pmuk_watch_work(struct work_struct *work)
{
	struct pmuk_context *ctx = container_of(to_delayed_work(work), struct pmuk_context, watch);
	struct pmuk_inst *inst;
	unsigned int cpu;

	guard(mutex)(&ctx->lock);
	if (!ctx->running)
		return;
	for (cpu = 0; (inst = pmuk_inst_from(ctx, &cpu)); cpu++)
		pmuk_inst_watch(inst);
	pmuk_hotplug_retry(ctx);
	pmuk_context_tell_lost(ctx);
	queue_delayed_work(pmuk_wq, &ctx->watch, PMUK_WATCH_JIFFIES);
}

int __init pmuk_contexts_init(void)
{
	int ret;

	pmuk_turns_wq = alloc_workqueue("pmuk_turns", WQ_HIGHPRI | WQ_PERCPU, 0);
	if (!pmuk_turns_wq)
		return -ENOMEM;
	ret = pmuk_hotplug_init();
	if (ret)
		destroy_workqueue(pmuk_turns_wq);
	return ret;
}

void pmuk_contexts_exit(void)
{
	pmuk_hotplug_exit();
	destroy_workqueue(pmuk_turns_wq);
}
