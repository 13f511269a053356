// SPDX-License-Identifier: GPL-2.0
/* A context's event sets: adding, changing and deleting them, and their statistics. */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "context.h"
#include "sets.h"
#include "turn.h"

int pmuk_set_add(struct pmuk_context *ctx, const struct pmuk_set_desc *desc)
	__must_hold(&ctx->lock)
{
	struct pmuk_set *set = xa_load(&ctx->sets, desc->id);
	int ret;

	if ((desc->timeout && desc->timeout < PMUK_SET_TIMEOUT_MIN) || desc->timeout > S64_MAX)
		return -EINVAL;
	if (set) {	/* as in 2006, a set that exists is changed */
		set->timeout = desc->timeout;
		return 0;
	}
	set = kzalloc(sizeof(*set), GFP_KERNEL);
	if (!set)
		return -ENOMEM;
	set->id = desc->id;
	set->timeout = desc->timeout;
	ret = xa_err(xa_store(&ctx->sets, desc->id, set, GFP_KERNEL));
	if (ret)
		kfree(set);
	else
		ctx->nr_sets++;
	return ret;
}

static void pmuk_set_free(struct pmuk_set *set)
{
	struct pmuk_def *def, *next;

	for (def = set->defs; def; def = next) {
		next = def->next;
		kfree(def);
	}
	kfree(set);
}

void pmuk_sets_free(struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	struct pmuk_set *set;
	unsigned long id;

	xa_for_each(&ctx->sets, id, set)
		pmuk_set_free(set);
	xa_destroy(&ctx->sets);
}

/**
 * pmuk_create_evtsets() - add event sets to a context, or change their timeouts
 * @ctx: the context, not loaded
 * @req: the sets; each one's ret is written
 * @count: how many
 *
 * A context begins with set 0. Follows pfmk_create_evtsets().
 *
 * Context: May sleep.
 * Return: @count, or how many were done before one failed; -EINVAL if @ctx is NULL or an ERR_PTR(),
 * or @count is negative or @req is NULL; -EBUSY if @ctx is loaded. An entry fails with -EINVAL for
 * a bad timeout, or -ENOMEM.
 */
int pmuk_create_evtsets(struct pmuk_context *ctx, struct pmuk_set_desc *req, int count)
{
	return pmuk_vector_do(ctx, ctx->loaded, req, count, pmuk_set_add);
}
EXPORT_SYMBOL_GPL(pmuk_create_evtsets);

static int pmuk_set_delete(struct pmuk_context *ctx, const struct pmuk_set_desc *desc)
	__must_hold(&ctx->lock)
{
	struct pmuk_set *set = xa_erase(&ctx->sets, desc->id);

	if (!set)
		return -ENOENT;
	ctx->nr_sets--;
	pmuk_set_free(set);
	return 0;
}

/**
 * pmuk_delete_evtsets() - remove event sets from a context
 * @ctx: the context, not loaded
 * @req: the sets, by id; each one's ret is written
 * @count: how many
 *
 * Set 0 can be deleted, too; a context without sets cannot be loaded. Follows
 * pfmk_delete_evtsets().
 *
 * Context: May sleep.
 * Return: @count, or how many were done before one failed; -EINVAL if @ctx is NULL or an ERR_PTR(),
 * or @count is negative or @req is NULL; -EBUSY if @ctx is loaded. An entry fails with -ENOENT if
 * there is no such set.
 */
int pmuk_delete_evtsets(struct pmuk_context *ctx, struct pmuk_set_desc *req, int count)
{
	return pmuk_vector_do(ctx, ctx->loaded, req, count, pmuk_set_delete);
}
EXPORT_SYMBOL_GPL(pmuk_delete_evtsets);

static void pmuk_turn_info(struct pmuk_inst *inst, struct pmuk_set_info *info)
{
	struct pmuk_turn *turn;

	guard(mutex)(&inst->lock);
	turn = pmuk_inst_turn(inst, info->id);
	if (!turn)
		return;
	info->runs += turn->runs;
	info->active_duration += turn->duration;
	if (inst->active == turn)
		info->active_duration += ktime_get_ns() - inst->since;
	info->replayed += turn->replayed;
	info->overflowed |= atomic_read(&turn->overflowed);
	info->switch_max = max(info->switch_max, inst->switch_max_ns);
	info->late_max = max(info->late_max, inst->late_max_ns);
}

static int pmuk_set_getinfo(struct pmuk_context *ctx, struct pmuk_set_info *info)
	__must_hold(&ctx->lock)
{
	unsigned int cpu;

	if (!xa_load(&ctx->sets, info->id))
		return -ENOENT;
	if (info->cpu < -1 || info->cpu >= (int)nr_cpu_ids)
		return -EINVAL;
	if (info->cpu >= 0 && (!ctx->loaded || pmuk_target_is_task(ctx) || !ctx->insts[info->cpu]))
		return -ENODEV;
	*info = (struct pmuk_set_info){ .id = info->id, .cpu = info->cpu };
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		if (ctx->insts[cpu] && (info->cpu == -1 || info->cpu == cpu))
			pmuk_turn_info(ctx->insts[cpu], info);
	}
	return 0;
}

/**
 * pmuk_getinfo_evtsets() - statistics of event sets: turns, times and overflows
 * @ctx: the context
 * @req: the sets, by id and CPU; all other fields are written
 * @count: how many
 *
 * Follows pfmk_getinfo_evtsets(). The times of all sets of a CPU add up to the time for
 * which the context ran there.
 *
 * Context: May sleep.
 * Return: @count, or how many were done before one failed; -EINVAL if @ctx is NULL or an ERR_PTR(),
 * or @count is negative or @req is NULL. An entry fails with -ENOENT if there is no such set,
 * -EINVAL for an impossible CPU, -ENODEV for a CPU that is not of the target.
 */
int pmuk_getinfo_evtsets(struct pmuk_context *ctx, struct pmuk_set_info *req, int count)
{
	return pmuk_vector_do(ctx, false, req, count, pmuk_set_getinfo);
}
EXPORT_SYMBOL_GPL(pmuk_getinfo_evtsets);
