// SPDX-License-Identifier: GPL-2.0
/*
 * The counters of an event set: which events they count (pmcs), with which periods (pmds), and what
 * they have counted. Calls take vectors of entries. The first entry that fails ends the call, which
 * returns how many were done.
 */
#define pr_fmt(fmt) "pmuk: " fmt

#include <linux/err.h>
#include <linux/export.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "context.h"
#include "freq.h"
#include "instance.h"
#include "sets.h"
#include "slot.h"
#include "turn.h"

#define PMUK_PMC_FLAGS	(PMUK_EXCLUDES | PMUK_PINNED | PMUK_NO_THROTTLE |	\
			 PMUK_PRIVATE | PMUK_CALLCHAIN_USER)

/* Returns where the pointer to the definition of counter @num is, or would be. */
static struct pmuk_def **pmuk_def_at(struct pmuk_set *set, u16 num)
{
	struct pmuk_def **at = &set->defs;

	while (*at && (*at)->num < num)
		at = &(*at)->next;
	return at;
}

/* Adds the definition of counter @num where pmuk_def_at() has found its place. */
static struct pmuk_def *pmuk_def_add(struct pmuk_def **at, u16 num)
{
	struct pmuk_def *def = kzalloc(sizeof(*def), GFP_KERNEL);

	if (!def)
		return ERR_PTR(-ENOMEM);
	def->num = num;
	def->next = *at;
	*at = def;
	return def;
}

/* Returns the definition, a new one if need be: a set takes memory for counters that it has. */
static struct pmuk_def *pmuk_def_get(struct pmuk_context *ctx, u16 id, u16 num)
	__must_hold(&ctx->lock)
{
	struct pmuk_set *set = xa_load(&ctx->sets, id);
	struct pmuk_def **at;

	if (!set)
		return ERR_PTR(-ENOENT);
	if (num >= PMUK_SET_COUNTERS)
		return ERR_PTR(-EINVAL);
	at = pmuk_def_at(set, num);
	if (*at && (*at)->num == num)
		return *at;
	return pmuk_def_add(at, num);
}

/* The fields of samples, the place on the PMU and throttling do not change what is counted. */
static bool pmuk_is_same_event(const struct pmuk_pmc *a, const struct pmuk_pmc *b)
{
	return a->type == b->type && a->config == b->config && a->config1 == b->config1 &&
	       a->config2 == b->config2 && a->config3 == b->config3 &&
	       a->precise_ip == b->precise_ip &&
	       (a->flags & PMUK_EXCLUDES) == (b->flags & PMUK_EXCLUDES);
}

static const char *pmuk_pmc_fault(const struct pmuk_pmc *pmc)
{
	if (pmc->flags & ~PMUK_PMC_FLAGS)
		return "unknown flags";
	if (pmc->precise_ip > PMUK_PRECISE_BEST)
		return "no such precise_ip";
	return pmuk_slice_fault(pmc->aux_sample_size) ?:
	       pmuk_branches_fault(pmc->branch_sample_type, pmc->flags) ?:
	       pmuk_extras_fault(pmc->sample_regs_intr, pmc->sample_regs_user, pmc->max_stack,
				 pmc->flags);
}

static int pmuk_pmc_check(const struct pmuk_pmc *pmc)
{
	const char *fault = pmuk_pmc_fault(pmc);
	u64 unsupported;

	if (fault) {
		pr_debug("write_pmcs: set %u, counter %u: %s\n", pmc->set, pmc->num, fault);
		return -EINVAL;
	}
	unsupported = pmuk_unsupported_extras(pmc->sample_regs_intr, pmc->sample_regs_user,
					      pmc->flags);
	if (!unsupported)
		return 0;
	pr_debug("write_pmcs: set %u, counter %u: fields %#llx of sample_type not supported\n",
		 pmc->set, pmc->num, unsupported);
	return -EOPNOTSUPP;
}

static int pmuk_write_pmc(struct pmuk_context *ctx, const struct pmuk_pmc *pmc)
	__must_hold(&ctx->lock)
{
	struct pmuk_def *def = pmuk_def_get(ctx, pmc->set, pmc->num);
	struct pmuk_set *set = xa_load(&ctx->sets, pmc->set);
	int ret;

	if (IS_ERR(def))
		return PTR_ERR(def);
	ret = pmuk_pmc_check(pmc);
	if (ret)
		return ret;
	if (!pmuk_is_same_event(&def->pmc, pmc))
		def->kept = (struct pmuk_value){};
	def->pmc = *pmc;
	set->defined |= BIT(pmc->num);
	return 0;
}

/**
 * pmuk_write_pmcs() - choose the events that counters count
 * @ctx: the context, not loaded
 * @req: an entry for each counter; each one's ret is written
 * @count: how many
 *
 * A counter keeps what it has counted unless its type, configs, precise_ip or PMUK_EXCLUDE_* flags
 * change. Follows pfmk_write_pmcs(), whose entries were values of the PMU's configuration
 * registers.
 *
 * Context: May sleep.
 * Return: @count, or how many were done before one failed; -EINVAL if @ctx is NULL or an ERR_PTR(),
 * or @count is negative or @req is NULL; -EBUSY if @ctx is loaded. An entry fails with -ENOENT if
 * there is no such event set, -EINVAL for an impossible number, unknown flags, precise_ip,
 * branches, registers, max_stack or aux_sample_size; -EOPNOTSUPP for registers or
 * PMUK_CALLCHAIN_USER if this kernel does not support them; -ENOMEM. pmuk_load_context() finds out
 * whether a PMU knows the event.
 */
int pmuk_write_pmcs(struct pmuk_context *ctx, struct pmuk_pmc *req, int count)
{
	return pmuk_vector_do(ctx, ctx->loaded, req, count, pmuk_write_pmc);
}
EXPORT_SYMBOL_GPL(pmuk_write_pmcs);

static bool pmuk_pmd_samples(const struct pmuk_pmd *pmd)
{
	return pmd->short_reset || pmd->long_reset;
}

static const char *pmuk_pmd_freq_fault(const struct pmuk_pmd *pmd)
{
	if (!pmd->freq)
		return NULL;
	if (pmd->freq > PMUK_FREQ_MAX)
		return "freq too high";
	if (pmd->short_reset < 2 || pmd->short_reset > PMUK_FREQ_LONGEST)
		return "freq needs a short_reset from 2 to 2^48";
	if (pmd->long_reset || pmd->random_mask)
		return "freq with a long_reset or a random_mask";
	return NULL;
}

static const char *pmuk_pmd_fault(const struct pmuk_pmd *pmd)
{
	u64 max = PMUK_PERIOD_MAX - pmd->random_mask;

	if (pmd->flags & ~PMUK_PMD_NOTIFY)
		return "unknown flags";
	if (pmd->short_reset > max || pmd->long_reset > max)
		return "period too long";
	if (!pmuk_pmd_samples(pmd) && (pmd->flags || pmd->random_mask || pmd->reset_peers ||
				       pmd->sample_peers || pmd->switch_overflows))
		return "actions for overflows, and no period";
	if (hweight32(pmd->sample_peers) > PMUK_PEERS_MAX || (pmd->sample_peers & BIT(pmd->num)))
		return "too many peers, or the counter itself";
	return pmuk_pmd_freq_fault(pmd);
}

/* Without its period, perf weighs a sample by the frequency: perf record -F asks for periods. */
static const char *pmuk_pmd_export_fault(const struct pmuk_context *ctx, const struct pmuk_pmd *pmd)
	__must_hold(&ctx->lock)
{
	const struct pmuk_perf_format *perf = ctx->format_arg;

	if (!pmd->freq || !(ctx->flags & PMUK_CTX_EXPORT) ||
	    (perf->sample_type & PERF_SAMPLE_PERIOD))
		return NULL;
	return "user space weighs records of a freq by PERF_SAMPLE_PERIOD";
}

/* Let the counter's slots on all CPUs, or on the task, start again from 0. */
static void pmuk_pmd_rebase(struct pmuk_context *ctx, const struct pmuk_pmd *pmd)
	__must_hold(&ctx->lock)
{
	const struct pmuk_value none = {};
	struct pmuk_inst *inst;

	pmuk_for_each_inst(inst, ctx) {
		struct pmuk_slot *slot = pmuk_inst_slot(inst, pmd->set, pmd->num);

		if (!slot)
			continue;
		guard(mutex)(&inst->lock);
		pmuk_slot_rebase(slot, &none);
	}
}

static bool pmuk_pmd_may_have(const struct pmuk_slot *slot, const struct pmuk_pmd *old, u64 period)
{
	return period == old->long_reset || pmuk_slot_takes(slot, period, old->short_reset);
}

/* Returns whether the drivers of the PMUs on which the counter is now accept its new periods. */
static bool pmuk_pmd_is_taken(struct pmuk_context *ctx, const struct pmuk_pmd *old,
			      const struct pmuk_pmd *pmd) __must_hold(&ctx->lock)
{
	struct pmuk_inst *inst;

	pmuk_for_each_inst(inst, ctx) {
		const struct pmuk_slot *slot = pmuk_inst_slot(inst, pmd->set, pmd->num);

		if (slot && (!pmuk_pmd_may_have(slot, old, pmd->short_reset) ||
			     !pmuk_pmd_may_have(slot, old, pmd->long_reset)))
			return false;
	}
	return true;
}

/*
 * Returns true if @pmd changes what is fixed while the context is loaded. Events are created with
 * or without a period, with a random sequence, and with the shortest period that freq may choose.
 * The events of a tree also keep their periods, and have no peers.
 */
static bool pmuk_pmd_is_fixed(const struct pmuk_context *ctx, const struct pmuk_pmd *old,
			      const struct pmuk_pmd *pmd) __must_hold(&ctx->lock)
{
	if (pmuk_pmd_samples(pmd) != pmuk_pmd_samples(old) ||
	    pmd->random_mask != old->random_mask || pmd->random_seed != old->random_seed ||
	    pmd->freq != old->freq || (pmd->freq && pmd->short_reset != old->short_reset))
		return true;
	return ctx->target == PMUK_TARGET_TREE &&
	       (pmd->short_reset != old->short_reset || pmd->long_reset != old->long_reset ||
		pmd->reset_peers != old->reset_peers || pmd->sample_peers != old->sample_peers);
}

static int pmuk_write_pmd(struct pmuk_context *ctx, const struct pmuk_pmd *pmd)
	__must_hold(&ctx->lock)
{
	struct pmuk_def *def = pmuk_def_get(ctx, pmd->set, pmd->num);
	const char *fault;

	if (IS_ERR(def))
		return PTR_ERR(def);
	fault = pmuk_pmd_fault(pmd) ?: pmuk_pmd_export_fault(ctx, pmd);
	if (fault) {
		pr_debug("write_pmds: set %u, counter %u: %s\n", pmd->set, pmd->num, fault);
		return -EINVAL;
	}
	if (ctx->loaded && pmuk_pmd_is_fixed(ctx, &def->pmd, pmd))
		return -EBUSY;
	if (!pmuk_pmd_is_taken(ctx, &def->pmd, pmd)) {
		pr_debug("write_pmds: set %u, counter %u: its PMU refuses a period\n", pmd->set,
			 pmd->num);
		return -EINVAL;
	}
	def->pmd = *pmd;
	def->kept = (struct pmuk_value){};
	pmuk_pmd_rebase(ctx, pmd);
	return 0;
}

/**
 * pmuk_write_pmds() - set the values, periods and overflow actions of counters
 * @ctx: the context, not started
 * @req: an entry for each counter; each one's ret is written
 * @count: how many
 *
 * Follows pfmk_write_pmds(). A period is the number of events until an overflow; in 2006 it was
 * the value from which the counter began.
 *
 * Context: May sleep.
 * Return: @count, or how many were done before one failed; -EINVAL if @ctx is NULL or an ERR_PTR(),
 * or @count is negative or @req is NULL; -EBUSY if @ctx was started. An entry fails with -ENOENT if
 * there is no such event set; -EINVAL for an impossible number, unknown flags, too long a period,
 * too high a freq, a freq that contradicts the periods, or with PMUK_CTX_EXPORT a freq without
 * PERF_SAMPLE_PERIOD in the records, or for too many sample_peers, or the counter itself among
 * them, or if it says what an overflow is to do and has no period, or if the context is loaded and
 * the driver of a PMU on which the counter is now refuses a new period; -EBUSY if the
 * context is loaded, and a counter without a period is to get one, or the reverse, or its periods
 * are to be randomized or adapted differently, or with PMUK_TARGET_TREE periods or peers are to
 * change; -ENOMEM.
 */
int pmuk_write_pmds(struct pmuk_context *ctx, struct pmuk_pmd *req, int count)
{
	return pmuk_vector_do(ctx, ctx->running, req, count, pmuk_write_pmd);
}
EXPORT_SYMBOL_GPL(pmuk_write_pmds);

static int pmuk_inst_add_up(struct pmuk_inst *inst, u16 set, u16 num, struct pmuk_value *sum)
{
	struct pmuk_slot *slot = pmuk_inst_slot(inst, set, num);
	struct pmuk_value value;
	int ret;

	guard(mutex)(&inst->lock);
	ret = pmuk_slot_read(slot, &value);
	sum->count += value.count;
	sum->time_enabled += value.time_enabled;
	sum->time_running += value.time_running;
	return ret == -ENODEV && atomic_read(&inst->stale) ? 0 : ret;
}

static int pmuk_pmd_sum(struct pmuk_context *ctx, u16 set, u16 num, struct pmuk_value *sum)
	__must_hold(&ctx->lock)
{
	struct pmuk_inst *inst;
	int ret = 0, err;

	pmuk_for_each_inst(inst, ctx) {
		err = pmuk_inst_add_up(inst, set, num, sum);
		ret = ret ?: err;
	}
	return ret;
}

static int pmuk_read_pmd(struct pmuk_context *ctx, struct pmuk_pmd_read *req)
	__must_hold(&ctx->lock)
{
	struct pmuk_set *set = xa_load(&ctx->sets, req->set);
	const struct pmuk_def *def;
	struct pmuk_value sum = {};
	int ret;

	if (req->num >= PMUK_SET_COUNTERS)
		return -EINVAL;
	if (!set || !(set->defined & BIT(req->num)))
		return -ENOENT;
	def = *pmuk_def_at(set, req->num);
	if (req->cpu < -1 || req->cpu >= (int)nr_cpu_ids)
		return -EINVAL;
	if (req->cpu != -1 && (!ctx->loaded || pmuk_target_is_task(ctx) || !ctx->insts[req->cpu]))
		return -ENODEV;
	if (req->cpu == -1) {
		sum = def->kept;
		sum.count += def->pmd.value;
		ret = pmuk_pmd_sum(ctx, req->set, req->num, &sum);
	} else {
		ret = pmuk_inst_add_up(ctx->insts[req->cpu], req->set, req->num, &sum);
	}
	req->count = sum.count;
	req->time_enabled = sum.time_enabled;
	req->time_running = sum.time_running;
	return ret;
}

/**
 * pmuk_read_pmds() - what counters have counted
 * @ctx: the context
 * @req: an entry for each counter and CPU; the rest of it is written
 * @count: how many
 *
 * Counts are exact, and never scaled. The counts of CPUs that went offline are kept. After
 * pmuk_unload_context() only the sums over all CPUs are kept. Follows pfmk_read_pmds().
 *
 * Context: May sleep.
 * Return: @count, or how many were done before one failed; -EINVAL if @ctx is NULL or an
 * ERR_PTR(), or @count is negative or @req is NULL. An entry fails with -ENOENT if there is no
 * such event set or counter, -EINVAL for an impossible number or CPU, -ENODEV if the context is
 * not loaded on that CPU; and, filled in nevertheless, as pmuk_counter_read() does for a
 * counter that has lost its place, task or PMU, or that found none on a CPU which came online.
 */
int pmuk_read_pmds(struct pmuk_context *ctx, struct pmuk_pmd_read *req, int count)
{
	return pmuk_vector_do(ctx, false, req, count, pmuk_read_pmd);
}
EXPORT_SYMBOL_GPL(pmuk_read_pmds);

/* Keep the sums of what the instances have counted, before the instances are freed. */
void pmuk_pmds_keep(struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	struct pmuk_def *def;
	struct pmuk_set *set;
	unsigned long id;

	xa_for_each(&ctx->sets, id, set) {
		for (def = set->defs; def; def = def->next) {
			if (set->defined & BIT(def->num))
				pmuk_pmd_sum(ctx, id, def->num, &def->kept);
		}
		cond_resched();
	}
}

static int pmuk_turn_snapshot(const struct pmuk_turn *turn, struct pmuk_value *values,
			      unsigned int n)
{
	unsigned int i;

	if (!turn || n > turn->nr)
		return -EINVAL;
	for (i = 0; i < n; i++)
		pmuk_slot_snapshot(&turn->slots[i], &values[i]);
	return 0;
}

/**
 * pmuk_snapshot() - last published values of a set's counters, of the whole target
 * @ctx: the context
 * @set: the event set
 * @values: where to put them, in the order of their numbers
 * @n: read the first @n counters
 *
 * This sends no IPI, and does not wait. A value is the sum of what pmuk_counter_snapshot() returns
 * for the counter on all CPUs, since the context was loaded. Its age is that of the oldest part.
 *
 * Context: Any, NMI too; from any CPU.
 * Return: 0; -EINVAL if @ctx or @values is NULL or an ERR_PTR(), or there is no such set, or it has
 * fewer than @n counters; -ENODEV if @ctx is not loaded; -EOPNOTSUPP with PMUK_TARGET_TREE.
 */
int pmuk_snapshot(struct pmuk_context *ctx, u16 set, struct pmuk_value *values, unsigned int n)
{
	struct pmuk_inst *inst;
	unsigned int cpu;
	int ret = -ENODEV;

	if (IS_ERR_OR_NULL(ctx) || IS_ERR_OR_NULL(values))
		return -EINVAL;
	memset(values, 0, n * sizeof(*values));
	guard(rcu)();
	/* A load or an unload may be under way: then this adds up the instances that it finds. */
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		inst = smp_load_acquire(&ctx->insts[cpu]);	/* see pmuk_context_add_inst() */
		if (!inst)
			continue;
		if (pmuk_inst_is_tree(inst))
			return -EOPNOTSUPP;
		ret = pmuk_turn_snapshot(pmuk_inst_turn(inst, set), values, n);
		if (ret)
			break;
	}
	return ret;
}
EXPORT_SYMBOL_GPL(pmuk_snapshot);
