// SPDX-License-Identifier: GPL-2.0
/* A context's life: pmuk_create_context(), pmuk_close() and pmuk_close_deferred(). */
#define pr_fmt(fmt) "pmuk: " fmt

#include <linux/completion.h>
#include <linux/ctype.h>
#include <linux/export.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <trace/events/pmu_kapi.h>

#include "buffer.h"
#include "context.h"
#include "contexts.h"
#include "hotplug.h"
#include "message.h"
#include "registry.h"
#include "sets.h"
#include "storage.h"
#include "watch.h"
#include "work.h"

static void pmuk_context_free(struct pmuk_context *ctx)
{
	pmuk_context_free_storage(ctx);
	pmuk_mail_end(&ctx->mail);
	scoped_guard(mutex, &ctx->lock) {
		pmuk_sets_free(ctx);
		free_cpumask_var(ctx->cpus);
	}
	pmuk_format_put(ctx->format);
	kfree(ctx->format_arg);
	free_cpumask_var(ctx->online);
	free_percpu(ctx->fast.groups);
	kfree(ctx->insts);
	kfree(ctx);
}

static void pmuk_context_close(struct pmuk_context *ctx)
{
	trace_pmuk_context_close(ctx->id, 0);
	pmuk_unload_context(ctx);
	pmuk_contexts_remove(ctx);	/* last, as others find its registers by the list */
	cancel_work_sync(&ctx->hotplug);
	/* A loss whose wakeup is still on its way cannot queue the watch again. */
	disable_delayed_work_sync(&ctx->watch);
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

/*
 * Returns true to the first caller that closes @ctx. From then on the format of @ctx may be
 * unregistered. May be called in any context, NMI too.
 */
static bool pmuk_context_doom(struct pmuk_context *ctx)
{
	if (atomic_xchg(&ctx->doomed, 1))
		return false;
	pmuk_format_let_go(ctx->format);
	return true;
}

/**
 * pmuk_close() - end a context
 * @ctx: the context
 *
 * When this returns, no format handles overflows of @ctx any more, the buffers of @ctx are gone,
 * and its completion is not touched. With PMUK_CTX_EXPORT, a file of /dev/pmuk keeps its buffer,
 * which is not written any more. The caller makes sure that no other call on @ctx is under way.
 * Follows pfmk_close().
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
 * @done: completed when @ctx has ended as pmuk_close() promises; may be NULL
 *
 * The message completion of @ctx, and a format without &pmuk_format.owner, must stay until @ctx
 * has ended. If @done is NULL, only pmuk_unregister_format() waits for the end of @ctx. No call
 * waits for the end of a context with perf's own format.
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

/* Files in debugfs separate words by blanks. */
static bool pmuk_is_name(const char *name)
{
	size_t len = strnlen(name, PMUK_NAME_LEN);
	size_t i;

	for (i = 0; i < len; i++) {
		if (!isascii(name[i]) || !isgraph(name[i]))
			return false;
	}
	return len && len < PMUK_NAME_LEN;
}

/* A file of /dev/pmuk may outlive the context, so it must need nothing of the context's owner. */
static const char *pmuk_export_fault(const struct pmuk_context_attr *attr)
{
	const u64 fields = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	const struct pmuk_perf_format *perf = attr->format_arg;

	if (!(attr->flags & PMUK_CTX_EXPORT))
		return NULL;
	if (!attr->name)
		return "user space finds no context without a name";
	if (!attr->buffer.nr_pages || attr->buffer.aux.nr_pages)
		return "user space reads data pages, and no AUX area";
	if (attr->buffer.mode != PMUK_BUFFER_DROP || !(attr->buffer.flags & PMUK_BUFFER_USER_TAIL))
		return "exported buffers need PMUK_BUFFER_DROP and PMUK_BUFFER_USER_TAIL";
	if (attr->buffer.waitq)
		return "readers may outlive the consumer's wait queue";
	if (attr->format || attr->format_arg_size != sizeof(*perf) || (~perf->sample_type & fields))
		return "user space reads perf's records with IDENTIFIER, TID and TIME";
	if (perf->sample_type & PERF_SAMPLE_REGS_INTR)	/* perf asks for more than CAP_PERFMON */
		return "user space may not see registers of the kernel";
	if ((perf->sample_type & PERF_SAMPLE_READ) && !(perf->read_format & PERF_FORMAT_ID))
		return "user space reads values with PERF_FORMAT_ID";
	return NULL;
}

static const char *pmuk_context_fault(const struct pmuk_context_attr *attr)
{
	if (attr->flags & ~(PMUK_CTX_MASK | PMUK_CTX_YIELD | PMUK_CTX_RESERVE | PMUK_CTX_EXPORT))
		return "unknown flags";
	if ((attr->flags & PMUK_CTX_YIELD) && attr->rank != PMUK_RANK_BACKGROUND)
		return "only background contexts yield";
	if ((attr->flags & PMUK_CTX_YIELD) && (attr->flags & PMUK_CTX_RESERVE))
		return "a context that yields reserves nothing";
	if (attr->rank < PMUK_RANK_BACKGROUND || attr->rank > PMUK_RANK_CRITICAL)
		return "no such rank";
	if (attr->limit_ns > NSEC_PER_SEC)
		return "a limit of more than a second in each second";
	if (attr->name && !pmuk_is_name(attr->name))
		return "a name that is empty, too long, or has characters that do not print";
	if (attr->buffer.completion)
		return "a buffer with a completion: there are messages";
	if (!attr->format_arg != !attr->format_arg_size)
		return "an argument for the format without its size, or the reverse";
	if (attr->buffer.aux.nr_pages && !attr->buffer.nr_pages)
		return "an AUX area, and no data pages for its records";
	return pmuk_export_fault(attr) ?:
	       pmuk_buffer_fault(&attr->buffer, attr->buffer.nr_pages ? 0 : -1);
}

static int pmuk_context_set_format(struct pmuk_context *ctx, const struct pmuk_context_attr *attr)
{
	const struct pmuk_format *format;

	ctx->format = pmuk_format_find(attr->format);
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

/* Makes the arrays, and event set 0. */
static int pmuk_context_alloc(struct pmuk_context *ctx)
{
	guard(mutex)(&ctx->lock);
	ctx->insts = kcalloc(nr_cpu_ids, sizeof(*ctx->insts), GFP_KERNEL);
	ctx->buffers = kcalloc(nr_cpu_ids, sizeof(*ctx->buffers), GFP_KERNEL);
	ctx->areas = kcalloc(nr_cpu_ids, sizeof(*ctx->areas), GFP_KERNEL);
	if (!ctx->insts || !ctx->buffers || !ctx->areas || pmuk_groups_alloc(ctx))
		return -ENOMEM;
	if (!zalloc_cpumask_var(&ctx->cpus, GFP_KERNEL) ||
	    !zalloc_cpumask_var(&ctx->online, GFP_KERNEL))
		return -ENOMEM;
	return pmuk_set_add(ctx, &(struct pmuk_set_desc){});
}

static int pmuk_context_init(struct pmuk_context *ctx, const struct pmuk_context_attr *attr)
{
	strscpy(ctx->name, attr->name ?: "unnamed", sizeof(ctx->name));
	ctx->flags = attr->flags;
	ctx->rank = attr->rank;
	ctx->limit_ns = attr->limit_ns;
	ctx->battr = attr->buffer;
	mutex_init(&ctx->lock);
	scoped_guard(mutex, &ctx->lock)
		xa_init(&ctx->sets);
	INIT_WORK(&ctx->hotplug, pmuk_hotplug_work);
	INIT_DELAYED_WORK(&ctx->watch, pmuk_watch_work);
	INIT_WORK(&ctx->close_work, pmuk_close_work);
	init_irq_work(&ctx->close_irq_work, pmuk_close_irq_work);
	ctx->session = pmuk_aux_new_session();
	return pmuk_mail_init(&ctx->mail, attr->completion) ?: pmuk_context_alloc(ctx) ?:
	       pmuk_context_set_format(ctx, attr);
}

/**
 * pmuk_create_context() - create a context
 * @attr: what it is to be like; copied
 *
 * The context has event set 0, with no counters yet, and counts nowhere before
 * pmuk_load_context() and pmuk_start(). Follows pfmk_create_context().
 *
 * Context: May sleep.
 * Return: The context, or an ERR_PTR(): -EINVAL for a NULL @attr, a bad name, or attributes that
 * contradict each other; -EOPNOTSUPP for PMUK_CTX_YIELD if the kernel's perf core lacks the change
 * for it; -ENOENT if there is no such format; -EEXIST for PMUK_CTX_EXPORT if another exported
 * context, which is not being closed, has the name; -ENOMEM; and what &pmuk_format.validate
 * returns.
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
	if ((attr->flags & PMUK_CTX_YIELD) && !PMUK_SEES_WAITERS) {
		pr_debug("context: perf core does not tell that others wait\n");
		return ERR_PTR(-EOPNOTSUPP);
	}
	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL);
	if (!ctx)
		return ERR_PTR(-ENOMEM);
	ret = pmuk_context_init(ctx, attr) ?: pmuk_contexts_add(ctx);
	if (ret) {
		pmuk_context_doom(ctx);
		pmuk_context_free(ctx);
		return ERR_PTR(ret);
	}
	__module_get(THIS_MODULE);
	trace_pmuk_context_create(ctx->id, ctx->flags);
	return ctx;
}
EXPORT_SYMBOL_GPL(pmuk_create_context);
