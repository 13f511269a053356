// SPDX-License-Identifier: GPL-2.0
/* The list of all contexts, for callers that look for one, and for contexts that need room. */
#define pr_fmt(fmt) "pmuk: " fmt

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <linux/wait_bit.h>

#include "contexts.h"

static DEFINE_MUTEX(pmuk_contexts_lock);
static LIST_HEAD(pmuk_contexts);	/* ids rise along the list */
static u64 pmuk_context_ids __guarded_by(&pmuk_contexts_lock);

/* A context that is being closed has given up its name. */
bool pmuk_context_is_exported(const struct pmuk_context *ctx)
{
	return (ctx->flags & PMUK_CTX_EXPORT) && !atomic_read(&ctx->doomed);
}

static struct pmuk_context *pmuk_find_exported(const char *name)
	__must_hold(&pmuk_contexts_lock)
{
	struct pmuk_context *ctx;

	list_for_each_entry(ctx, &pmuk_contexts, all) {
		if (pmuk_context_is_exported(ctx) && !strcmp(ctx->name, name))
			return ctx;
	}
	return NULL;
}

/* Returns -EEXIST if @ctx is to be exported by a name that an exported context has. */
int pmuk_contexts_add(struct pmuk_context *ctx)
{
	guard(mutex)(&pmuk_contexts_lock);
	if ((ctx->flags & PMUK_CTX_EXPORT) && pmuk_find_exported(ctx->name)) {
		pr_debug("context: another exported context has the name %s\n", ctx->name);
		return -EEXIST;
	}
	pmuk_context_ids = pmuk_next_context_id(pmuk_context_ids);
	ctx->id = pmuk_context_ids;
	list_add_tail(&ctx->all, &pmuk_contexts);
	return 0;
}

/* Waits for all pmuk_unview() of the context, whose lock must not be held. */
void pmuk_contexts_remove(struct pmuk_context *ctx)
{
	scoped_guard(mutex, &pmuk_contexts_lock)
		list_del(&ctx->all);
	wait_var_event(&ctx->viewers, !atomic_read(&ctx->viewers));
}

/*
 * Returns the first context whose id is @id or higher, or NULL. The context is not closed before
 * pmuk_unview(). The list is not locked meanwhile: a call on one context may take long, and must
 * not block the others.
 */
struct pmuk_context *pmuk_view_from(u64 id)
{
	struct pmuk_context *ctx;

	guard(mutex)(&pmuk_contexts_lock);
	list_for_each_entry(ctx, &pmuk_contexts, all) {
		if (ctx->id < id)
			continue;
		atomic_inc(&ctx->viewers);
		return ctx;
	}
	return NULL;
}

/* Returns the last context of @rank whose id is below @id, or NULL. See pmuk_view_from(). */
struct pmuk_context *pmuk_view_before(u64 id, enum pmuk_rank rank)
{
	struct pmuk_context *ctx;

	guard(mutex)(&pmuk_contexts_lock);
	list_for_each_entry_reverse(ctx, &pmuk_contexts, all) {
		if (ctx->id >= id || ctx->rank != rank)
			continue;
		atomic_inc(&ctx->viewers);
		return ctx;
	}
	return NULL;
}

/* Returns the exported context of that name, or NULL. See pmuk_view_from(). */
struct pmuk_context *pmuk_view_exported(const char *name)
{
	struct pmuk_context *ctx;

	guard(mutex)(&pmuk_contexts_lock);
	ctx = pmuk_find_exported(name);
	if (ctx)
		atomic_inc(&ctx->viewers);
	return ctx;
}

void pmuk_unview(struct pmuk_context *ctx)
{
	if (atomic_dec_and_test(&ctx->viewers))
		wake_up_var(&ctx->viewers);
}
