// SPDX-License-Identifier: GPL-2.0
/*
 * What of a context is on one CPU, or on its task: counters come and go, start and
 * stop, overflow and are restarted.
 *
 * A counter of a task with its children cannot be stopped, as perf core stops children's
 * events for nobody outside. It counts on, what it counts meanwhile is left out of the
 * slot's count, and its overflows are dropped. One that writes AUX areas can be, see
 * perf_event_disable_family() of patches/7.3/0002.
 */
#define pr_fmt(fmt) "pmuk: " fmt

#include <linux/bsearch.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/jump_label.h>
#include <linux/rcupdate.h>
#include <linux/sched/clock.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/topology.h>

#include <trace/events/pmu_kapi.h>

#include "context.h"

static bool pmuk_is_tree(const struct pmuk_inst *inst)
{
	return inst->ctx->target == PMUK_TARGET_TREE;
}

static int pmuk_turn_cmp(const void *set, const void *turn)
{
	return *(const u16 *)set - ((const struct pmuk_turn *)turn)->set->id;
}

struct pmuk_turn *pmuk_inst_turn(struct pmuk_inst *inst, u16 set)
{
	return bsearch(&set, inst->turns, inst->nr_turns, sizeof(*inst->turns), pmuk_turn_cmp);
}

struct pmuk_slot *pmuk_inst_slot(struct pmuk_inst *inst, u16 set, u16 num)
{
	struct pmuk_turn *turn = pmuk_inst_turn(inst, set);
	unsigned int i;

	for (i = 0; turn && i < turn->nr; i++) {
		if (turn->slots[i].num == num)
			return &turn->slots[i];
	}
	return NULL;
}

static struct pmuk_counter **pmuk_slot_counter(const struct pmuk_slot *slot)
{
	return &slot->turn->counters[slot - slot->turn->slots];
}

/* What pmuk_start() begins with, and what a restart does. */
static u64 pmuk_slot_period(const struct pmuk_slot *slot, bool restart)
{
	const struct pmuk_pmd *pmd = &slot->def->pmd;

	if (!pmd->short_reset || (restart && pmd->long_reset))
		return pmd->long_reset;
	return pmd->short_reset;
}

/* ---- overflows ---- */

/* One that has overflowed together with the one that masks. */
static void pmuk_slot_handle_overdue(struct pmuk_slot *slot)
{
	struct pmuk_counter *c = READ_ONCE(*pmuk_slot_counter(slot));
	const struct perf_sample_data none = {};
	struct pmuk_sample sample;

	if (!c || !c->overdue || READ_ONCE(slot->hit))
		return;
	c->overdue = false;
	pmuk_counter_late_sample(c, &sample);
	pmuk_slot_handle(slot, c, &sample, &none);
}

/*
 * On its own CPU or in its task, with interrupts off. Where the NMI of one PMU finds another being
 * reprogrammed, -EBUSY, that one's counters are paused right after it.
 */
void pmuk_inst_pause(struct pmuk_inst *inst)
{
	struct pmuk_turn *turn = inst->active;
	bool again = false;
	unsigned int i;

	if (!turn)
		return;
	for (i = 0; i < turn->nr; i++)
		again |= pmuk_counter_pause(turn->counters[i]) == -EBUSY;
	for (i = 0; i < turn->nr; i++)
		pmuk_slot_handle_overdue(&turn->slots[i]);
	if (again)
		irq_work_queue(&inst->irq_work);
}

static void pmuk_inst_mask(struct pmuk_inst *inst)
{
	if (atomic_xchg(&inst->masked, 1))	/* orders: see pmuk_inst_show_group() */
		return;
	pmuk_inst_show_group(inst, false);
	pmuk_inst_pause(inst);
}

/*
 * A restart on another CPU may make this peer's period long at the same time. This function clears
 * ->longer before it changes the period; pmuk_slot_restart() sets ->longer after it has changed the
 * period. So ->longer may be set while the period is short, which begins one short period too many,
 * but ->longer is never clear while the period is long.
 */
static void pmuk_slot_shorten(struct pmuk_slot *slot, struct pmuk_counter *c)
{
	bool was = xchg(&slot->longer, false);	/* orders; pairs with pmuk_slot_restart() */

	if (pmuk_counter_set_period(c, pmuk_slot_period(slot, false)) && was)
		WRITE_ONCE(slot->longer, true);
}

/* The driver has begun the next period, with the one that was. */
static void pmuk_slot_reset(struct pmuk_slot *slot)
{
	u32 peers = slot->def->pmd.reset_peers;
	unsigned int i;

	if (READ_ONCE(slot->longer))
		pmuk_slot_shorten(slot, *pmuk_slot_counter(slot));
	for (i = 0; peers && i < slot->turn->nr; i++) {
		struct pmuk_slot *peer = &slot->turn->slots[i];

		if (peer != slot && (peers & BIT(peer->num)))
			pmuk_slot_shorten(peer, slot->turn->counters[i]);
	}
}

static void pmuk_slot_act(struct pmuk_slot *slot, u32 action)
{
	struct pmuk_inst *inst = slot->inst;
	u32 limit = slot->def->pmd.switch_overflows;

	if (action & PMUK_FORMAT_MASK) {
		WRITE_ONCE(slot->hit, true);
		pmuk_inst_mask(inst);
	} else if (action & PMUK_FORMAT_RESET) {
		pmuk_slot_reset(slot);
	} else {
		WRITE_ONCE(slot->hit, true);
		pmuk_counter_set_period(*pmuk_slot_counter(slot),
					PMUK_PERIOD_MAX - slot->def->pmd.random_mask);
	}
	if (limit && ++slot->overflows >= limit) {
		slot->overflows = 0;
		pmuk_inst_ask(inst, PMUK_DUE_OVERFLOWS);
	}
}

/*
 * Also for one that was pending, with no registers and no data then. @c is the slot's counter,
 * which one of a tree, as it is not stopped, may have lost meanwhile.
 */
void pmuk_slot_handle(struct pmuk_slot *slot, struct pmuk_counter *c,
		      const struct pmuk_sample *sample, const struct perf_sample_data *data)
{
	struct pmuk_inst *inst = slot->inst;
	struct pmuk_context *ctx = inst->ctx;
	const struct pmuk_pmd *pmd = &slot->def->pmd;
	int cpu = smp_processor_id();
	const struct pmuk_format_event event = {
		.buffer		= READ_ONCE(ctx->buffers[cpu]),
		.area		= READ_ONCE(ctx->areas[cpu]),
		.cpu		= cpu,
		.set		= slot->turn->set->id,
		.num		= slot->num,
		.cookie		= pmd->cookie,
		.notify		= pmd->flags & PMUK_PMD_NOTIFY,
		.mask		= (pmd->flags & PMUK_PMD_NOTIFY) && (ctx->flags & PMUK_CTX_MASK),
		.sample		= sample,
		.counter	= c,
		.data		= data,
	};
	u32 action;

	atomic64_inc(&inst->overflows);
	atomic_or(BIT(slot->num), &slot->turn->overflowed);
	action = ctx->format->handler(&event);
	trace_pmuk_overflow(ctx->id, cpu, event.set, event.num, action);
	/* A child's event goes on by itself, and others of its kind overflow elsewhere. */
	if (!pmuk_is_tree(inst))
		pmuk_slot_act(slot, action);
	/* Last: whoever reads this may restart what is done above. */
	if (action & PMUK_FORMAT_NOTIFY)
		pmuk_post(ctx, PMUK_MSG_OVERFLOW, cpu, 1, BIT(slot->num), event.set);
}

static void pmuk_slot_handle_measured(struct pmuk_slot *slot, struct pmuk_counter *c,
				      const struct pmuk_sample *sample,
				      const struct perf_sample_data *data)
{
	u64 start = local_clock();

	pmuk_slot_handle(slot, c, sample, data);
	atomic64_add(local_clock() - start, &slot->inst->cost_ns);
}

/* Interrupts are off, so a disable of the counter waits: the turn does not end in the middle. */
static void pmuk_slot_overflow(struct pmuk_counter *c, const struct pmuk_sample *sample,
			       const struct perf_sample_data *data)
{
	struct pmuk_slot *slot = c->slot;
	struct pmuk_inst *inst = slot->inst;

	if (READ_ONCE(inst->active) != slot->turn || atomic_read(&inst->masked) ||
	    READ_ONCE(slot->hit))
		return;
	if (static_branch_unlikely(&pmuk_measures))
		pmuk_slot_handle_measured(slot, c, sample, data);
	else
		pmuk_slot_handle(slot, c, sample, data);
}

/* ---- counters come and go ---- */

static struct pmuk_counter *pmuk_slot_make(struct pmuk_slot *slot)
{
	const struct pmuk_pmc *pmc = &slot->def->pmc;
	const struct pmuk_pmd *pmd = &slot->def->pmd;
	struct pmuk_context *ctx = slot->inst->ctx;
	struct pmuk_attr attr = {
		.type		= pmc->type,
		.config		= pmc->config,
		.config1	= pmc->config1,
		.config2	= pmc->config2,
		.period		= pmuk_slot_period(slot, false),
		.random_mask	= pmd->random_mask,
		.random_seed	= pmd->random_seed,
		.flags		= pmc->flags,
		.sample_type	= ctx->format->sample_type,
		.cookie		= pmd->cookie,
	};
	const struct pmuk_perf_format *perf = ctx->format_arg;

	if (pmuk_format_is_perf(ctx->format) && perf) {
		attr.sample_type = perf->sample_type;
		attr.read_format = perf->read_format;
	}
	if (pmuk_is_tree(slot->inst))
		attr.flags |= PMUK_INHERIT;
	return pmuk_counter_make(&attr, slot->inst->cpu, ctx->task, pmuk_slot_overflow, slot,
				 ctx->buffers);
}

/* Let pmuk_slot_snapshot() see the counter, or that there is none, and its base as one. */
static void pmuk_slot_show(struct pmuk_slot *slot)
{
	const struct pmuk_shown shown = {
		.counter	= *pmuk_slot_counter(slot),
		.base		= slot->base,
	};

	write_seqcount_latch_begin(&slot->latch);
	slot->shown[0] = shown;
	write_seqcount_latch(&slot->latch);
	slot->shown[1] = shown;
	write_seqcount_latch_end(&slot->latch);
}

/* From anywhere, under RCU. */
void pmuk_slot_snapshot(const struct pmuk_slot *slot, struct pmuk_value *sum)
{
	struct pmuk_value value = {};
	struct pmuk_shown shown;
	unsigned int seq;

	do {
		seq = read_seqcount_latch(&slot->latch);
		shown = slot->shown[seq & 1];
	} while (read_seqcount_latch_retry(&slot->latch, seq));

	if (shown.counter)
		pmuk_counter_snapshot(shown.counter, &value);
	sum->count += value.count + shown.base.count;
	sum->time_enabled += value.time_enabled + shown.base.time_enabled;
	sum->time_running += value.time_running + shown.base.time_running;
	sum->age = max(sum->age, value.age);
}

/* What the counter has now is what the slot has had before. */
void pmuk_slot_rebase(struct pmuk_slot *slot, const struct pmuk_value *had)
{
	struct pmuk_counter *c = *pmuk_slot_counter(slot);
	struct pmuk_value value = {};

	if (c)
		pmuk_counter_read(c, &value);
	slot->base.count = had->count - value.count;
	slot->base.time_enabled = had->time_enabled - value.time_enabled;
	slot->base.time_running = had->time_running - value.time_running;
	slot->held = *had;
	if (c)
		c->offset = slot->base.count;
	if (slot->inst->live)
		pmuk_slot_show(slot);
}

/* The slot's, and 0 or why its counter does not count; inst->lock is held. */
int pmuk_slot_read(struct pmuk_slot *slot, struct pmuk_value *value)
{
	struct pmuk_counter *c = *pmuk_slot_counter(slot);
	int ret = 0;

	*value = (struct pmuk_value){};
	if (pmuk_is_tree(slot->inst) && !slot->inst->running) {
		*value = slot->held;
		return 0;
	}
	if (c)
		ret = pmuk_counter_read(c, value);
	if (!ret && slot->inst->missed)
		ret = -EBUSY;
	value->count += slot->base.count;
	value->time_enabled += slot->base.time_enabled;
	value->time_running += slot->base.time_running;
	return ret;
}

static void pmuk_slot_retire(struct pmuk_slot *slot)
{
	struct pmuk_counter **at = pmuk_slot_counter(slot), *c = *at;
	struct pmuk_value had;

	if (!c)
		return;
	pmuk_slot_read(slot, &had);
	c->nr_peers = 0;	/* not referred to */
	WRITE_ONCE(*at, NULL);
	pmuk_slot_rebase(slot, &had);
	pmuk_counter_end(c);
	slot->ended = c;
}

static void pmuk_turn_retire(struct pmuk_turn *turn)
{
	unsigned int i;

	/* Records of one have values of others. */
	for (i = 0; i < turn->nr; i++) {
		if (turn->counters[i])
			pmuk_counter_disable(turn->counters[i]);
	}
	for (i = 0; i < turn->nr; i++)
		pmuk_slot_retire(&turn->slots[i]);
}

/* A grace period after they were retired: nobody reads them from elsewhere, either. */
static void pmuk_turn_finish(struct pmuk_turn *turn)
{
	unsigned int i;

	for (i = 0; i < turn->nr; i++) {
		if (turn->slots[i].ended)
			pmuk_counter_finish(turn->slots[i].ended);
		turn->slots[i].ended = NULL;
	}
}

void pmuk_inst_finish(struct pmuk_inst *inst)
{
	unsigned int i;

	guard(mutex)(&inst->lock);
	for (i = 0; i < inst->nr_turns; i++)
		pmuk_turn_finish(&inst->turns[i]);
}

/* The counts stay; pmuk_inst_finish() comes after a grace period. inst->lock is held. */
static void pmuk_inst_retire_locked(struct pmuk_inst *inst)
{
	unsigned int i;

	for (i = 0; i < inst->nr_turns; i++)
		pmuk_turn_retire(&inst->turns[i]);
	inst->live = false;
}

static int pmuk_turn_place(struct pmuk_turn *turn, struct pmuk_slot **failed)
{
	struct pmuk_counter *c;
	unsigned int i;

	for (i = 0; i < turn->nr; i++) {
		struct pmuk_value had = turn->slots[i].base;

		*failed = &turn->slots[i];
		c = pmuk_slot_make(&turn->slots[i]);
		if (IS_ERR(c))
			return PTR_ERR(c);
		WRITE_ONCE(turn->counters[i], c);
		pmuk_slot_rebase(&turn->slots[i], &had);
	}
	return 0;
}

/* One that traces would do so from now on. */
static bool pmuk_slot_is_tried(const struct pmuk_slot *slot)
{
	return (pmuk_is_tree(slot->inst) || (slot->def->pmc.flags & PMUK_PINNED)) &&
	       !(*pmuk_slot_counter(slot))->writes_aux;
}

/* The first counter whose trial could push a running task's events out, or NULL. */
static struct pmuk_slot *pmuk_turn_shares(struct pmuk_turn *turn)
{
	unsigned int i;

	for (i = 0; i < turn->nr; i++) {
		struct pmuk_slot *slot = &turn->slots[i];

		if (slot->inst->cpu >= 0 && pmuk_slot_is_tried(slot) &&
		    pmuk_room_is_shared(turn->counters[i]))
			return slot;
	}
	return NULL;
}

/*
 * Only a trial of all counters tells whether a set fits. The counters of children are enabled
 * from here on: an event that is enabled later would not count.
 */
static int pmuk_turn_try(struct pmuk_turn *turn, struct pmuk_slot **failed)
{
	bool tree = turn->nr && pmuk_is_tree(turn->slots[0].inst);
	unsigned int i;
	struct pmuk_slot *shares = pmuk_turn_shares(turn);
	int ret = 0;

	/* pmuk_start() tells whether they fit. A CPU that has come back waits. */
	if (shares) {
		*failed = shares;
		return shares->inst->ctx->loaded ? -EAGAIN : 0;
	}
	for (i = 0; i < turn->nr && !ret; i++) {
		*failed = &turn->slots[i];
		if (pmuk_slot_is_tried(&turn->slots[i]))
			ret = pmuk_counter_enable(turn->counters[i]);
	}
	if (!ret && tree)
		return 0;
	for (i = 0; i < turn->nr; i++) {
		struct pmuk_value had = turn->slots[i].held;

		pmuk_counter_disable(turn->counters[i]);
		pmuk_slot_rebase(&turn->slots[i], &had);
	}
	return ret;
}

static void pmuk_say_failed(struct pmuk_inst *inst, const struct pmuk_slot *slot,
			    struct pmuk_target *failed, int ret)
{
	pr_debug("context: CPU %d, set %u, counter %u: %d\n", inst->cpu, slot->turn->set->id,
		 slot->num, ret);
	if (!failed)
		return;
	failed->failed_cpu = inst->cpu;
	failed->failed_set = slot->turn->set->id;
	failed->failed_num = slot->num;
}

/* All counters of all sets, or none. */
static int pmuk_inst_place_locked(struct pmuk_inst *inst, struct pmuk_target *failed)
{
	struct pmuk_slot *slot = NULL;
	unsigned int i, j;
	int ret = 0;

	for (i = 0; i < inst->nr_turns && !ret; i++)
		ret = pmuk_turn_place(&inst->turns[i], &slot);
	for (i = 0; i < inst->nr_turns && !ret; i++)
		ret = pmuk_turn_try(&inst->turns[i], &slot);
	if (ret) {
		pmuk_say_failed(inst, slot, failed, ret);
		pmuk_inst_retire_locked(inst);
		return ret;
	}
	inst->live = true;
	for (i = 0; i < inst->nr_turns; i++) {
		for (j = 0; j < inst->turns[i].nr; j++)
			pmuk_slot_show(&inst->turns[i].slots[j]);
	}
	return 0;
}

/* If this fails, pmuk_inst_finish() comes after a grace period. */
int pmuk_inst_place(struct pmuk_inst *inst, struct pmuk_target *failed)
{
	guard(mutex)(&inst->lock);
	return pmuk_inst_place_locked(inst, failed);
}

/* pmuk_inst_finish() comes after a grace period. */
void pmuk_inst_retire(struct pmuk_inst *inst)
{
	pmuk_inst_stop(inst);
	guard(mutex)(&inst->lock);
	pmuk_inst_retire_locked(inst);
}

static int pmuk_turn_init(struct pmuk_inst *inst, struct pmuk_turn *turn,
			  const struct pmuk_set *set)
{
	unsigned int num, i = 0;

	turn->set = set;
	turn->nr = hweight32(set->defined);
	turn->slots = kcalloc(turn->nr, sizeof(*turn->slots), GFP_KERNEL);
	turn->group = kzalloc(struct_size(turn->group, counters, turn->nr), GFP_KERNEL);
	if (!turn->slots || !turn->group)
		return -ENOMEM;
	turn->group->nr = turn->nr;
	turn->group->fast_tick = PMUK_NEVER;
	turn->counters = turn->group->counters;
	for (num = 0; num < PMUK_SET_COUNTERS; num++) {
		if (!(set->defined & BIT(num)))
			continue;
		turn->slots[i] = (struct pmuk_slot){
			.inst = inst, .turn = turn, .def = &set->defs[num], .num = num };
		seqcount_latch_init(&turn->slots[i++].latch);
	}
	return 0;
}

/* Of the sets that there are now, without counters. */
struct pmuk_inst *pmuk_inst_alloc(struct pmuk_context *ctx, int cpu)
{
	struct pmuk_inst *inst;
	struct pmuk_set *set;
	unsigned long id, nr = 0;

	inst = kzalloc_node(sizeof(*inst), GFP_KERNEL, cpu < 0 ? NUMA_NO_NODE : cpu_to_node(cpu));
	if (!inst)
		return NULL;
	inst->ctx = ctx;
	inst->cpu = cpu;
	mutex_init(&inst->lock);
	pmuk_inst_init_switch(inst);
	xa_for_each(&ctx->sets, id, set)
		nr++;
	inst->turns = kvcalloc(nr, sizeof(*inst->turns), GFP_KERNEL);
	if (!inst->turns)
		goto out_free;
	inst->nr_turns = nr;
	nr = 0;
	xa_for_each(&ctx->sets, id, set) {
		if (pmuk_turn_init(inst, &inst->turns[nr++], set))
			goto out_free;
	}
	return inst;

out_free:
	pmuk_inst_free(inst);
	return NULL;
}

/* Retired, or never placed; and nobody finds it any more. */
void pmuk_inst_free(struct pmuk_inst *inst)
{
	unsigned int i;

	if (!inst)
		return;
	hrtimer_cancel(&inst->timer);
	irq_work_sync(&inst->irq_work);
	cancel_work_sync(&inst->work);
	for (i = 0; i < inst->nr_turns; i++) {
		kfree(inst->turns[i].slots);
		kfree(inst->turns[i].group);
	}
	kvfree(inst->turns);
	kfree(inst);
}

/* ---- start and stop ---- */

/* The counters' own peers are in the order of numbers, too. */
static void pmuk_slot_set_peers(struct pmuk_slot *slot, struct pmuk_counter *c)
{
	struct pmuk_turn *turn = slot->turn;
	unsigned int i;

	c->nr_peers = 0;
	if (!(c->attr.sample_type & PERF_SAMPLE_READ) ||
	    !(c->attr.read_format & PERF_FORMAT_GROUP))
		return;
	for (i = 0; i < turn->nr && c->nr_peers < PMUK_PEERS_MAX; i++) {
		if (slot->def->pmd.sample_peers & BIT(turn->slots[i].num))
			c->peers[c->nr_peers++] = turn->counters[i];
	}
}

/* What its records hold, and how large they are. */
static void pmuk_slot_set_records(struct pmuk_slot *slot)
{
	struct pmuk_counter *c = *pmuk_slot_counter(slot);

	pmuk_slot_set_peers(slot, c);
	c->attr.cookie = slot->def->pmd.cookie;
	c->record_size = pmuk_format_size(c);
}

static void pmuk_turn_prepare(struct pmuk_turn *turn)
{
	unsigned int i;

	for (i = 0; i < turn->nr; i++) {
		struct pmuk_slot *slot = &turn->slots[i];
		struct pmuk_value had = slot->base;

		WRITE_ONCE(slot->hit, false);	/* a tree's overflow may still be on its way */
		WRITE_ONCE(slot->longer, false);
		slot->pending = false;
		slot->overflows = 0;
		slot->told = false;
		pmuk_slot_set_records(slot);
		if (pmuk_is_tree(slot->inst)) {
			had = slot->held;
			pmuk_slot_rebase(slot, &had);
			continue;
		}
		pmuk_counter_rearm(turn->counters[i], pmuk_slot_period(slot, false));
	}
}

/* The first set's turn is @set's. */
int pmuk_inst_start(struct pmuk_inst *inst, u16 set, struct pmuk_target *failed)
{
	struct pmuk_turn *turn = pmuk_inst_turn(inst, set);
	struct pmuk_slot *slot = NULL;
	unsigned int i;
	int ret;

	guard(mutex)(&inst->lock);
	if (inst->running || !inst->live)
		return 0;
	for (i = 0; i < inst->nr_turns; i++)
		pmuk_turn_prepare(&inst->turns[i]);
	atomic_set(&inst->masked, 0);
	atomic_set(&inst->due, 0);
	inst->running = true;
	inst->since = ktime_get_ns();
	ret = pmuk_turn_begin(inst, turn, &slot);
	if (!ret)
		return 0;
	pmuk_turn_end(inst);
	inst->running = false;
	/* Its CPU goes offline: it is started when that comes back. */
	if (ret == -ENODEV && atomic_read(&inst->stale))
		return 0;
	pmuk_say_failed(inst, slot, failed, ret);
	return ret;
}

/* As the counter is now, it is when it is started again. */
static void pmuk_inst_hold(struct pmuk_inst *inst)
{
	struct pmuk_turn *turn = inst->active;
	unsigned int i;

	for (i = 0; i < turn->nr; i++)
		pmuk_slot_read(&turn->slots[i], &turn->slots[i].held);
}

void pmuk_inst_stop(struct pmuk_inst *inst)
{
	guard(mutex)(&inst->lock);
	if (!inst->running)
		return;
	if (pmuk_is_tree(inst))
		pmuk_inst_hold(inst);
	pmuk_turn_end(inst);
	inst->running = false;
}

/* ---- restart, and watch ---- */

static void pmuk_slot_restart(struct pmuk_slot *slot)
{
	struct pmuk_counter *c = *pmuk_slot_counter(slot);
	u64 period = pmuk_slot_period(slot, true);
	bool hit;

	pmuk_counter_disable(c);
	hit = READ_ONCE(slot->hit);
	pmuk_counter_rearm(c, hit ? period : 0);
	if (hit)	/* after the period; pairs with pmuk_slot_shorten() */
		smp_store_release(&slot->longer, period != pmuk_slot_period(slot, false));
	WRITE_ONCE(slot->hit, false);
}

/*
 * An overflow that masks the context while sets are exchanged stops counters of both sets, so the
 * restart asks each slot. This function may miss an overflow that comes just now: the slot then
 * waits for the next restart. If that overflow masks, pmuk_inst_restart() sees the mask at its end.
 */
static bool pmuk_slot_awaits_restart(const struct pmuk_slot *slot)
{
	return READ_ONCE(slot->hit) ||
	       READ_ONCE((*pmuk_slot_counter(slot))->frozen) != PMUK_RUNNING;
}

/* One that has its place again may lose it again. */
static void pmuk_turn_resume(struct pmuk_inst *inst, struct pmuk_turn *turn)
{
	bool all = true;
	unsigned int i;

	for (i = 0; i < turn->nr; i++) {
		if (pmuk_counter_enable(turn->counters[i]))
			all = false;
		else
			turn->slots[i].told = false;
	}
	pmuk_inst_show_group(inst, all);
}

static void pmuk_turn_restart(struct pmuk_turn *turn)
{
	unsigned int i;

	for (i = 0; i < turn->nr; i++) {
		if (pmuk_slot_awaits_restart(&turn->slots[i]))
			pmuk_slot_restart(&turn->slots[i]);
	}
}

/*
 * While all counters are disabled no overflow can mask, and nobody queues the irq_work that pauses
 * what was busy. So ->masked and the counters change together. Each counter is restarted, also one
 * that only the irq_work has paused.
 */
static void pmuk_turn_unmask(struct pmuk_inst *inst, struct pmuk_turn *turn)
{
	unsigned int i;

	for (i = 0; i < turn->nr; i++)
		pmuk_counter_disable(turn->counters[i]);
	irq_work_sync(&inst->irq_work);
	atomic_set(&inst->masked, 0);
	for (i = 0; i < turn->nr; i++)
		pmuk_slot_restart(&turn->slots[i]);
}

/*
 * Counters that were masked are restarted, and counters that were not reset, also those of a turn
 * that has ended since. An overflow may mask meanwhile: so ->masked is looked at last.
 */
void pmuk_inst_restart(struct pmuk_inst *inst)
{
	bool masked;
	unsigned int i;

	guard(mutex)(&inst->lock);
	if (!inst->running || pmuk_is_tree(inst))
		return;
	/* A counter may leave its register, and group reads take each counter to be in one. */
	pmuk_inst_show_group(inst, false);
	for (i = 0; i < inst->nr_turns; i++)
		pmuk_turn_restart(&inst->turns[i]);
	masked = atomic_read(&inst->masked);
	if (masked)
		pmuk_turn_unmask(inst, inst->active);
	pmuk_turn_resume(inst, inst->active);
	if (masked)
		pmuk_inst_go_on(inst);
}

/* One that goes with its CPU, CPU hotplug tells of, and with its task, pmuk_inst_watch_exit(). */
static void pmuk_slot_watch(struct pmuk_slot *slot)
{
	struct pmuk_counter *c = *pmuk_slot_counter(slot);
	int cpu = slot->inst->cpu < 0 ? 0 : slot->inst->cpu;
	enum pmuk_msg_kind kind = PMUK_MSG_COUNTER_LOST;
	int state = c ? pmuk_counter_state(c) : PMUK_COUNTER_OFF;

	if (state == PMUK_COUNTER_ACTIVE)
		slot->told = false;
	if (state == PMUK_COUNTER_GONE && pmuk_counter_is_pmu_gone(c))
		kind = PMUK_MSG_PMU_GONE;
	else if (state != PMUK_COUNTER_ERROR)
		return;
	if (slot->told)
		return;
	slot->told = true;
	pmuk_post(slot->inst->ctx, kind, cpu, 1, BIT(slot->num), slot->turn->set->id);
}

/* One task, one message; and no more turns. */
static void pmuk_inst_watch_exit(struct pmuk_inst *inst)
{
	const struct task_struct *task = inst->ctx->task;

	if (!task || inst->exited || !READ_ONCE(task->exit_state))
		return;
	inst->exited = true;
	hrtimer_cancel(&inst->timer);
	pmuk_post(inst->ctx, PMUK_MSG_EXIT, 0, 1, inst->active->set->defined,
		  inst->active->set->id);
}

/* perf core tells nobody when a counter is pushed out, or its task or PMU goes. */
void pmuk_inst_watch(struct pmuk_inst *inst)
{
	unsigned int i;

	guard(mutex)(&inst->lock);
	if (!inst->active)
		return;
	pmuk_inst_watch_exit(inst);
	for (i = 0; i < inst->active->nr; i++)
		pmuk_slot_watch(&inst->active->slots[i]);
}
