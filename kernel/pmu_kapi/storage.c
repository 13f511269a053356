// SPDX-License-Identifier: GPL-2.0
/*
 * The buffers of a context, and the areas of its format. Each CPU that may write them has one of
 * each, made when the context is first loaded on that CPU. They stay until the context is closed.
 */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include <trace/events/pmu_kapi.h>

#include "buffer.h"
#include "context.h"
#include "message.h"
#include "storage.h"
#include "watch.h"

static void pmuk_context_notified_aux(struct pmuk_context *ctx, struct pmuk_aux *aux, int cpu)
{
	u64 wakeups = READ_ONCE(aux->area.wakeups), lost = READ_ONCE(aux->area.truncations);

	if (wakeups != aux->wakeups_reported)
		pmuk_post(ctx, PMUK_MSG_AUX, cpu, 1, 0, 0);
	aux->wakeups_reported = wakeups;
	if (lost == aux->lost_reported)
		return;
	pmuk_post(ctx, PMUK_MSG_AUX_LOST, cpu, lost - aux->lost_reported, 0, 0);
	WRITE_ONCE(aux->lost_reported, lost);
	pmuk_watch_soon(ctx);
}

/* The buffer's irq_work calls this, once for all wakeups of the buffer since the last call. */
static void pmuk_context_notified(struct pmuk_buffer *b)
{
	u64 lost = READ_ONCE(b->ring.lost), more = lost - b->lost_reported;
	struct pmuk_context *ctx = b->notify_data;
	u64 marks = READ_ONCE(b->ring.marks);

	if (marks != b->marks_reported)
		pmuk_post(ctx, PMUK_MSG_WATERMARK, b->cpu, 1, 0, 0);
	b->marks_reported = marks;
	if (b->aux)
		pmuk_context_notified_aux(ctx, b->aux, b->cpu);
	if (!more)
		return;
	WRITE_ONCE(b->lost_reported, lost);
	trace_pmuk_lost(ctx->id, b->cpu, more);
	pmuk_post(ctx, PMUK_MSG_LOST, b->cpu, more, 0, 0);
	pmuk_watch_soon(ctx);	/* the next losses wake nobody */
}

static int pmuk_context_make_buffer(struct pmuk_context *ctx, int cpu) __must_hold(&ctx->lock)
{
	struct pmuk_buffer *b;

	if (!ctx->battr.nr_pages || ctx->buffers[cpu])
		return 0;
	b = pmuk_buffer_create(&ctx->battr, cpu);
	if (IS_ERR(b))
		return PTR_ERR(b);
	b->notify_data = ctx;
	b->context = ctx->id;
	if (b->aux)
		b->aux->session = ctx->session;
	b->notify = pmuk_context_notified;
	smp_store_release(&ctx->buffers[cpu], b);	/* pairs with pmuk_context_buffer() */
	return 0;
}

static int pmuk_context_make_area(struct pmuk_context *ctx, int cpu) __must_hold(&ctx->lock)
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

/*
 * Make a buffer and an area for each CPU that may write them. A task may run on any CPU, also on
 * one that comes online later. The buffer cannot be made then: an allocation that fails cannot keep
 * a CPU from coming online, and an overflow on that CPU, in NMI, would find no buffer.
 */
int pmuk_context_make_storage(struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	const struct cpumask *cpus = pmuk_target_is_task(ctx) ? cpu_possible_mask : ctx->cpus;
	int cpu, ret;

	for_each_cpu(cpu, cpus) {
		ret = pmuk_context_make_buffer(ctx, cpu) ?: pmuk_context_make_area(ctx, cpu);
		if (ret)
			return ret;
	}
	return 0;
}

/* Free buffers and areas: no counter writes them any more, and no code can find the context. */
void pmuk_context_free_storage(struct pmuk_context *ctx)
{
	unsigned int cpu;

	if (ctx->buffers)
		pmuk_buffers_destroy(ctx->buffers, nr_cpu_ids);
	for (cpu = 0; ctx->areas && cpu < nr_cpu_ids; cpu++) {
		if (ctx->areas[cpu] && ctx->format->exit)
			ctx->format->exit(ctx->areas[cpu], cpu);
		kvfree(ctx->areas[cpu]);
	}
	kfree(ctx->buffers);
	kfree(ctx->areas);
}

/* Call the format's restart for the CPU's area, and let a buffer with PMUK_BUFFER_STOP go on. */
void pmuk_context_restart_storage(struct pmuk_context *ctx, int cpu) __must_hold(&ctx->lock)
{
	if (ctx->areas[cpu] && ctx->format->restart)
		ctx->format->restart(ctx->areas[cpu], cpu);
	if (ctx->buffers[cpu])
		pmuk_buffer_restart(ctx->buffers[cpu]);
}

/**
 * pmuk_context_buffer() - a CPU's buffer
 * @ctx: the context
 * @cpu: the CPU
 *
 * Context: Any, NMI too.
 * Return: The buffer, until @ctx is closed; NULL if there is none: @ctx is NULL or an
 * ERR_PTR(), was created without data pages, or was never to be loaded on @cpu.
 */
struct pmuk_buffer *pmuk_context_buffer(struct pmuk_context *ctx, int cpu)
{
	if (IS_ERR_OR_NULL(ctx) || cpu < 0 || cpu >= nr_cpu_ids)
		return NULL;
	return smp_load_acquire(&ctx->buffers[cpu]);	/* pairs with pmuk_context_make_buffer() */
}
EXPORT_SYMBOL_GPL(pmuk_context_buffer);

/**
 * pmuk_format_area() - the area that a format has for a CPU
 * @ctx: the context
 * @cpu: the CPU
 *
 * Context: Any, NMI too.
 * Return: The area, until @ctx is closed; NULL as for pmuk_context_buffer(), or if the format
 * has none.
 */
void *pmuk_format_area(struct pmuk_context *ctx, int cpu)
{
	if (IS_ERR_OR_NULL(ctx) || cpu < 0 || cpu >= nr_cpu_ids)
		return NULL;
	return smp_load_acquire(&ctx->areas[cpu]);	/* pairs with pmuk_context_make_area() */
}
EXPORT_SYMBOL_GPL(pmuk_format_area);

static bool pmuk_buffer_has_unreported_loss(const struct pmuk_buffer *b)
{
	if (READ_ONCE(b->ring.lost) != READ_ONCE(b->lost_reported))
		return true;
	return b->aux && READ_ONCE(b->aux->area.truncations) != READ_ONCE(b->aux->lost_reported);
}

/* Report the losses of all buffers that no message has reported yet. */
void pmuk_context_report_lost(struct pmuk_context *ctx)
{
	struct pmuk_buffer *b;
	unsigned int cpu;

	if (!ctx->battr.nr_pages)
		return;
	guard(cpus_read_lock)();
	for_each_possible_cpu(cpu) {
		b = ctx->buffers[cpu];
		if (b && pmuk_buffer_has_unreported_loss(b))
			pmuk_buffer_report_lost(b);
	}
}
