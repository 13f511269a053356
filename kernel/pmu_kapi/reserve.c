// SPDX-License-Identifier: GPL-2.0
/*
 * Reservations: while a context with PMUK_CTX_RESERVE is loaded and stopped, counters that nobody
 * reads keep on each of its CPUs the registers that its start will need.
 *
 * If a context of another rank finds no room, a reservation lends it registers, one by one: the
 * counters there end. When the context of the reservation starts, contexts of lower rank give way
 * to it, so the start does not depend on the loan. A worker makes the counters anew when there is
 * room again. A counter that counts the same as a reserved one shares its register, whatever the
 * rank. Apart from that, contexts of the same rank, counters without a context, and perf's users
 * get reserved registers only for counters that are older than those of the reservation: perf core
 * serves the older of two pinned counters first.
 */
#include <kunit/visibility.h>
#include <linux/atomic.h>
#include <linux/cleanup.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/init.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/perf_local_state.h>
#include <linux/rcupdate.h>
#include <linux/sched/isolation.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "instance.h"
#include "reserve.h"
#include "share.h"
#include "turn.h"
#include "work.h"

/* The pause between two tries to get back registers that were lent, or lost to older counters. */
#define PMUK_RESERVE_RETRY	(10UL * HZ)

/* A register that the start will need. The CPU's lock guards ->counter and ->traces. */
struct pmuk_kept {
	struct pmuk_attr attr;		/* const */
	struct pmuk_counter *counter;	/* keeps the register; NULL: it is lent, or lost */
	bool traces;			/* the event is a trace unit's, and needs no register */
};

struct pmuk_reserve {
	struct list_head node;		/* in pmuk_reserves of the CPU, whose lock guards it */
	const struct pmuk_context *ctx;	/* const */
	int cpu;			/* const */
	unsigned int nr;		/* const */
	struct pmuk_kept kept[];
};

struct pmuk_reserves {
	struct mutex lock;		/* guards the list, and what its comments say */
	struct list_head list;		/* the latest first */
};

static DEFINE_PER_CPU(struct pmuk_reserves, pmuk_reserves);
static atomic_t pmuk_nr_reserves = ATOMIC_INIT(0);

static struct pmuk_reserves *pmuk_reserves_of(int cpu)
{
	return per_cpu_ptr(&pmuk_reserves, cpu);
}

static void pmuk_kept_drop(struct pmuk_kept *kept)
{
	pmuk_counter_destroy(kept->counter);
	kept->counter = NULL;
}

static bool pmuk_kept_is_lent(const struct pmuk_kept *kept)
{
	return !kept->counter && !kept->traces;
}

static unsigned int pmuk_reserve_lacks(const struct pmuk_reserve *r)
{
	unsigned int i, n = 0;

	for (i = 0; i < r->nr; i++)
		n += pmuk_kept_is_lent(&r->kept[i]);
	return n;
}

/*
 * Creates a counter and enables it. Any task may make this call, for reservations of others, too.
 * The task needs no right to count, as the context has its counters by right: perf core has checked
 * the task that loaded it, and workers create the counters of CPUs that come online later. If the
 * task that runs on the CPU has pinned events on this PMU, the counter goes again, as it could push
 * these events out for good. A counter that traces goes, too, as it needs no register.
 */
static void pmuk_kept_take(struct pmuk_kept *kept, const struct pmuk_reserve *r)
{
	struct pmuk_counter *c;

	scoped_with_kernel_creds()
		c = pmuk_counter_create(&kept->attr, r->cpu, NULL);
	if (IS_ERR(c))
		return;
	c->rank = r->ctx->rank;
	c->kept = true;
	kept->traces = c->traces;
	if (c->traces || perf_local_task_has_pinned(c->hw_event) || pmuk_counter_enable(c))
		pmuk_counter_destroy(c);
	else
		kept->counter = c;
}

/* Takes as many of the registers as there are. */
static void pmuk_reserve_fill(struct pmuk_reserve *r)
{
	unsigned int i;

	if (!pmuk_reserve_lacks(r))
		return;
	guard(mutex)(pmuk_trial_lock(r->cpu));
	for (i = 0; i < r->nr; i++) {
		if (pmuk_kept_is_lent(&r->kept[i]))
			pmuk_kept_take(&r->kept[i], r);
	}
}

/* Drops counters that were pushed out by older ones. */
static void pmuk_reserve_drop_lost(struct pmuk_reserve *r)
{
	unsigned int i;
	int state;

	for (i = 0; i < r->nr; i++) {
		state = pmuk_counter_state(r->kept[i].counter);
		if (state == PMUK_COUNTER_ERROR || state == PMUK_COUNTER_GONE)
			pmuk_kept_drop(&r->kept[i]);
	}
}

/* ---- registers come back ---- */

static long pmuk_reserves_retry(void *data)
{
	struct pmuk_reserves *all = data;
	struct pmuk_reserve *r;

	guard(mutex)(&all->lock);
	list_for_each_entry(r, &all->list, node) {
		pmuk_reserve_drop_lost(r);
		pmuk_reserve_fill(r);
	}
	return 0;
}

static bool pmuk_reserves_there(int cpu)
{
	struct pmuk_reserves *all = pmuk_reserves_of(cpu);

	guard(mutex)(&all->lock);
	return !list_empty(&all->list);
}

/* Returns another online CPU than @cpu, rather one that is not isolated; or @cpu if it is alone. */
static int pmuk_other_cpu(int cpu)
{
	unsigned int other;

	guard(rcu)();	/* cpusets may isolate CPUs meanwhile */
	for_each_cpu_and(other, housekeeping_cpumask(HK_TYPE_DOMAIN), cpu_online_mask) {
		if (other != cpu && housekeeping_test_cpu(other, HK_TYPE_TIMER))
			return other;
	}
	other = cpumask_any_but(cpu_online_mask, cpu);
	return other < nr_cpu_ids ? other : cpu;
}

/*
 * A worker cannot see the events of the task that it has preempted. So a worker on another CPU
 * asks, if there is one. A worker with migration disabled must not: CPU hotplug would wait for it,
 * while the owner of a lock that the worker waits for may wait for CPU hotplug.
 */
static void pmuk_reserve_work(struct work_struct *work)
{
	int cpu;

	for_each_online_cpu(cpu) {
		if (pmuk_reserves_there(cpu))
			work_on_cpu(pmuk_other_cpu(cpu), pmuk_reserves_retry,
				    pmuk_reserves_of(cpu));
	}
	if (atomic_read(&pmuk_nr_reserves))
		queue_delayed_work(pmuk_wq, to_delayed_work(work), PMUK_RESERVE_RETRY);
}

static DECLARE_DELAYED_WORK(pmuk_reserve_retry_work, pmuk_reserve_work);

/* Registers may be free now, so reservations get back what they have lent. */
void pmuk_reserve_recall(void)
{
	if (atomic_read(&pmuk_nr_reserves))
		mod_delayed_work(pmuk_wq, &pmuk_reserve_retry_work, 0);
}

/* Waits until reservations have tried to get back what they have lent. */
void pmuk_reserve_flush(void)
{
	flush_delayed_work(&pmuk_reserve_retry_work);
}
EXPORT_SYMBOL_IF_KUNIT(pmuk_reserve_flush);

/* Counters were enabled on the CPU, and may be older than those of reservations. */
void pmuk_reserve_placed(int cpu)
{
	struct pmuk_reserves *all = pmuk_reserves_of(cpu);
	struct pmuk_reserve *r;

	if (!atomic_read(&pmuk_nr_reserves))
		return;
	guard(mutex)(&all->lock);
	list_for_each_entry(r, &all->list, node)
		pmuk_reserve_drop_lost(r);
}

static void pmuk_reserves_prefer(struct pmuk_reserves *all, enum pmuk_rank rank)
{
	struct pmuk_reserve *r;

	lockdep_assert_held(&all->lock);
	list_for_each_entry(r, &all->list, node) {
		if (r->ctx->rank == rank)
			pmuk_reserve_fill(r);
	}
}

/* A context of this rank is about to try: reservations of the same rank come first. */
void pmuk_reserve_prefer(int cpu, enum pmuk_rank rank)
{
	struct pmuk_reserves *all = pmuk_reserves_of(cpu);

	if (!atomic_read(&pmuk_nr_reserves))
		return;
	guard(mutex)(&all->lock);
	pmuk_reserves_prefer(all, rank);
}

/* ---- reservations come and go ---- */

/*
 * A kept counter records nothing, so the start's counter may need a register of its own where the
 * kept one would share another. The start has no counter yet if the CPU was offline at the load, or
 * if the context has given way.
 */
static struct pmuk_attr pmuk_kept_attr(const struct pmuk_slot *slot)
{
	const struct pmuk_pmc *pmc = &slot->def->pmc;
	const struct pmuk_counter *c = *pmuk_slot_counter(slot);
	struct pmuk_attr attr = {
		.type		= pmc->type,
		.config		= pmc->config,
		.config1	= pmc->config1,
		.config2	= pmc->config2,
		.config3	= pmc->config3,
		.flags		= (pmc->flags & PMUK_EXCLUDES) | PMUK_PINNED,
	};

	if (!c || !c->host || !pmuk_host_serves(c->host, &attr, slot->inst->cpu))
		attr.flags |= PMUK_PRIVATE;
	return attr;
}

/* Returns a reservation for the pinned counters of the set whose turn comes first, or NULL. */
static struct pmuk_reserve *pmuk_reserve_make(struct pmuk_inst *inst)
{
	const struct pmuk_turn *turn = pmuk_inst_first(inst);
	const struct pmuk_slot *slot;
	struct pmuk_reserve *r;

	r = kzalloc_node(struct_size(r, kept, turn->nr), GFP_KERNEL, cpu_to_node(inst->cpu));
	if (!r)
		return NULL;
	r->ctx = inst->ctx;
	r->cpu = inst->cpu;
	pmuk_for_each_slot(slot, turn) {
		if (slot->def->pmc.flags & PMUK_PINNED)
			r->kept[r->nr++].attr = pmuk_kept_attr(slot);
	}
	return r;
}

/*
 * Keeps the registers that the instance, which is stopped, will need at its start. Those that it
 * does not get count as lent. Without memory, there is no reservation, and the start may fail.
 */
void pmuk_inst_reserve(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	struct pmuk_reserves *all;

	if (!(inst->ctx->flags & PMUK_CTX_RESERVE) || inst->reserve || !cpu_online(inst->cpu))
		return;
	inst->reserve = pmuk_reserve_make(inst);
	if (!inst->reserve)
		return;
	if (atomic_inc_return(&pmuk_nr_reserves) == 1)
		mod_delayed_work(pmuk_wq, &pmuk_reserve_retry_work, PMUK_RESERVE_RETRY);
	all = pmuk_reserves_of(inst->cpu);
	guard(mutex)(&all->lock);
	list_add(&inst->reserve->node, &all->list);
	pmuk_reserve_fill(inst->reserve);
}

/* The instance is about to start, or to go. */
void pmuk_inst_unreserve(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock)
{
	struct pmuk_reserve *r = inst->reserve;
	unsigned int i;

	if (!r)
		return;
	inst->reserve = NULL;
	scoped_guard(mutex, &pmuk_reserves_of(r->cpu)->lock) {
		list_del(&r->node);
		for (i = 0; i < r->nr; i++)
			pmuk_kept_drop(&r->kept[i]);
	}
	atomic_dec(&pmuk_nr_reserves);
	kfree(r);
}

/* The context is loaded and stopped. */
void pmuk_context_reserve(struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	struct pmuk_inst *inst;

	pmuk_for_each_inst(inst, ctx)
		pmuk_inst_reserve(inst);
}

void pmuk_context_unreserve(struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	struct pmuk_inst *inst;

	pmuk_for_each_inst(inst, ctx)
		pmuk_inst_unreserve(inst);
}

/*
 * Returns true if @to lacks a register of the counter's PMU, and all counters that have this
 * register belong to reservations whose ranks differ from the rank of @to's context.
 */
static bool pmuk_kept_can_be_lent(const struct pmuk_kept *kept, const struct pmuk_inst *to)
{
	struct pmuk_counter *c = kept->counter;

	return c && c->hw_event->pmu == to->lacks && pmuk_sharers_are_kept(c) &&
	       pmuk_sharers_give_way(c, to->ctx->rank);
}

/*
 * Returns such a register, or NULL. The trial lock keeps out trials, whose counters may share the
 * register for a moment.
 */
static struct pmuk_kept *pmuk_reserve_find(struct pmuk_reserve *r, const struct pmuk_inst *to)
{
	unsigned int i;

	guard(mutex)(pmuk_trial_lock(r->cpu));
	for (i = 0; i < r->nr; i++) {
		if (pmuk_kept_can_be_lent(&r->kept[i], to))
			return &r->kept[i];
	}
	return NULL;
}

/*
 * Ends one counter that keeps a register which @to can borrow, of the latest reservation that has
 * such a counter. If reservations share the register, the caller calls again until it is free.
 * Reservations of the rank of @to then take what is free before @to does. Returns false if no
 * reservation has such a counter, or if the search of @to has ended PMUK_LOANS_MAX.
 */
bool pmuk_reserve_lend(struct pmuk_inst *to) __must_hold(&to->ctx->lock)
{
	struct pmuk_reserves *all = pmuk_reserves_of(to->cpu);
	struct pmuk_reserve *r;
	struct pmuk_kept *kept;

	if (!to->loans)
		return false;
	guard(mutex)(&all->lock);
	list_for_each_entry(r, &all->list, node) {
		kept = pmuk_reserve_find(r, to);
		if (!kept)
			continue;
		to->loans--;
		pmuk_kept_drop(kept);
		pmuk_reserves_prefer(all, to->ctx->rank);
		return true;
	}
	return false;
}

/* Prints what is reserved on the CPU, for debugfs. */
void pmuk_reserve_show(struct seq_file *m, struct pmuk_inst *inst, const char *rank)
	__must_hold(&inst->ctx->lock)
{
	const struct pmuk_reserve *r = inst->reserve;

	if (!r)
		return;
	guard(mutex)(&pmuk_reserves_of(r->cpu)->lock);
	seq_printf(m, "  reserves %llu name %s rank %s counters %u lent %u\n", r->ctx->id,
		   r->ctx->name, rank, r->nr, pmuk_reserve_lacks(r));
}

void __init pmuk_reserve_init(void)
{
	struct pmuk_reserves *all;
	int cpu;

	for_each_possible_cpu(cpu) {
		all = pmuk_reserves_of(cpu);
		mutex_init(&all->lock);
		INIT_LIST_HEAD(&all->list);
	}
}

void pmuk_reserve_exit(void)
{
	cancel_delayed_work_sync(&pmuk_reserve_retry_work);
}
