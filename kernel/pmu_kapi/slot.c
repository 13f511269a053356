// SPDX-License-Identifier: GPL-2.0
/*
 * A slot is one counter of a set, on one CPU or task. Slots are made, prepared, read, restarted,
 * watched and retired here.
 *
 * A counter of a task with its children cannot be stopped, as perf core exports no call that stops
 * the events of children. The counter counts on: events that it counts while the context is stopped
 * are left out of the slot's count, and its overflows are dropped. A counter that writes AUX areas
 * can be stopped, see perf_event_disable_family().
 */
#define pr_fmt(fmt) "pmuk: " fmt

#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/printk.h>

#include "contexts.h"
#include "event.h"
#include "format.h"
#include "hw.h"
#include "message.h"
#include "overflow.h"
#include "registry.h"
#include "slot.h"

static_assert(CONFIG_NR_CPUS < BIT(14) && PMUK_SET_COUNTERS <= BIT(5));

/*
 * Returns the id that a counter has in records; @cpu is -1 for a task's counter. perf's id of the
 * event would be another one each time that the counter is made, and readers could not follow.
 * perf's ids count up from 1 and stay far below 2^35, where these begin.
 */
u64 pmuk_record_id(const struct pmuk_context *ctx, u16 set, u16 num, int cpu)
{
	return (ctx->id & PMUK_RECORDED_ID) << 35 | (u64)(cpu + 1) << 21 | set << 5 | num;
}

/* Returns what the counters of a context have in common, for pmuk_slot_make(). */
struct pmuk_attr pmuk_slots_attr(const struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	const struct pmuk_perf_format *perf = ctx->format_arg;
	struct pmuk_attr attr = {
		.sample_type	= ctx->format->sample_type,
	};

	if (pmuk_format_is_perf(ctx->format) && perf) {
		attr.sample_type = perf->sample_type;
		attr.read_format = perf->read_format;
	}
	return attr;
}

DEFINE_PER_CPU(atomic_t, pmuk_ways_of);

static const struct pmuk_slot *pmuk_event_slot(const struct perf_event *event)
{
	const struct pmuk_counter *c = event->overflow_handler_context;

	return perf_local_is_handled_by(event, pmuk_overflow) ? c->slot : NULL;
}

/*
 * perf core calls this on the slot's CPU, with interrupts off, as long as the counter is there. A
 * context yields to no event of its own, and contexts do not yield to each other: they have ranks.
 * A trial may be all that is in the event's way. If the event waits after that, perf core calls
 * again.
 */
static void pmuk_slot_others_wait(struct perf_event *event, struct perf_event *waiter)
{
	struct pmuk_inst *inst = pmuk_event_slot(event)->inst;
	int ways = atomic_read(pmuk_ways(inst->cpu)) + 1;

	if (pmuk_event_slot(waiter) || pmuk_trial_goes_on(inst->cpu))
		return;
	if (atomic_xchg(&inst->others_wait, ways) != ways)
		irq_work_queue(&inst->wait_irq_work);
}

/* Counters record branches and registers only if the samples of the format have them. */
static void pmuk_slot_set_event(struct pmuk_attr *attr, const struct pmuk_pmc *pmc)
{
	attr->type = pmc->type;
	attr->config = pmc->config;
	attr->config1 = pmc->config1;
	attr->config2 = pmc->config2;
	attr->config3 = pmc->config3;
	attr->precise_ip = pmc->precise_ip;
	attr->branch_sample_type = attr->sample_type & PERF_SAMPLE_BRANCH_STACK ?
				   pmc->branch_sample_type : 0;
	attr->sample_regs_intr = attr->sample_type & PERF_SAMPLE_REGS_INTR ?
				 pmc->sample_regs_intr : 0;
	attr->sample_regs_user = attr->sample_type & PERF_SAMPLE_REGS_USER ?
				 pmc->sample_regs_user : 0;
	attr->max_stack = pmc->max_stack;
	attr->aux_sample_size = pmc->aux_sample_size;
}

static u32 pmuk_slot_flags(const struct pmuk_context *ctx, const struct pmuk_pmc *pmc)
	__must_hold(&ctx->lock)
{
	return pmc->flags | (ctx->target == PMUK_TARGET_TREE ? PMUK_INHERIT : 0);
}

/* Returns whether records have the counter's id: its own records, or those with group values. */
bool pmuk_def_is_recorded(const struct pmuk_context *ctx, const struct pmuk_def *def)
	__must_hold(&ctx->lock)
{
	const u64 group = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	struct pmuk_attr attr = pmuk_slots_attr(ctx);

	return def->pmd.short_reset || def->pmd.long_reset ||
	       ((attr.sample_type & PERF_SAMPLE_READ) && (attr.read_format & group) == group);
}

/* Describes a counter to perf's tools: what it counts, and the fields of its records. */
struct perf_event_attr pmuk_def_event_attr(const struct pmuk_context *ctx,
					   const struct pmuk_def *def) __must_hold(&ctx->lock)
{
	struct pmuk_attr attr = pmuk_slots_attr(ctx);
	struct perf_event_attr pa;

	pmuk_slot_set_event(&attr, &def->pmc);
	attr.flags = pmuk_slot_flags(ctx, &def->pmc);
	pa = pmuk_event_attr(&attr);
	pa.sample_type = attr.sample_type & ~PMUK_SAMPLE_COOKIE;
	pa.read_format = attr.read_format;
	pa.freq = !!def->pmd.freq;
	pa.sample_period = def->pmd.freq ?: def->pmd.short_reset ?: def->pmd.long_reset;
	pa.precise_ip = min(attr.precise_ip, 3U);
	return pa;
}

/*
 * Makes the slot's counter, at the time @now. @attr has what the counters of the instance have in
 * common, and gets the rest, but for the cookie, see pmuk_slot_prepare(). If the CPU was offline
 * meanwhile, the counter goes on from the slot's count. A tree's counter does not, as it counts
 * while the context is stopped.
 */
struct pmuk_counter *pmuk_slot_make(struct pmuk_slot *slot, struct pmuk_attr *attr, u64 now)
{
	const struct pmuk_pmc *pmc = &slot->def->pmc;
	const struct pmuk_pmd *pmd = &slot->def->pmd;
	struct pmuk_context *ctx = slot->inst->ctx;
	struct pmuk_counter *c;

	lockdep_assert_held(&ctx->lock);
	lockdep_assert_held(&slot->inst->lock);
	pmuk_slot_set_event(attr, pmc);
	attr->period = pmuk_slot_period(slot, false);
	attr->freq = pmd->freq;
	attr->random_mask = pmd->random_mask;
	attr->random_seed = pmd->random_seed;
	attr->flags = pmuk_slot_flags(ctx, pmc);
	if (attr->precise_ip && !attr->period) {
		pr_debug("load: set %u, counter %u: precise_ip without a period\n", pmc->set,
			 pmc->num);
		return ERR_PTR(-EINVAL);
	}
	c = pmuk_counter_make(attr, slot->inst->cpu, ctx->task, pmuk_slot_overflow, slot,
			      ctx->buffers);
	slot->held = slot->base;
	if (IS_ERR(c))
		return c;
	c->rank = ctx->rank;
	c->id = pmuk_record_id(ctx, slot->turn->set->id, slot->def->num, slot->inst->cpu);
	if (ctx->flags & PMUK_CTX_YIELD)
		perf_event_set_others_wait(c->event, pmuk_slot_others_wait);
	pmuk_counter_set_age(c, now);
	if (slot->base.count && !pmuk_inst_is_tree(slot->inst)) {
		pmuk_counter_set_count(c, slot->base.count);
		slot->base.count = 0;
	}
	return c;
}

/*
 * Returns whether the slot's counter may begin @period later. The driver of the counter's PMU has
 * accepted @taken already, and may have chosen other hardware for it: x86 does for a period of 1.
 */
bool pmuk_slot_takes(const struct pmuk_slot *slot, u64 period, u64 taken)
{
	const struct pmuk_counter *c = *pmuk_slot_counter(slot);

	return !c || !period || period == taken || pmuk_hw_takes_period(c, period);
}

/* Let pmuk_slot_snapshot() see the slot's counter, or NULL, together with the base that fits it. */
void pmuk_slot_show(struct pmuk_slot *slot)
{
	struct pmuk_shown shown = { .counter = *pmuk_slot_counter(slot) };

	lockdep_assert_held(&slot->inst->lock);
	shown.base = slot->base;
	write_seqcount_latch_begin(&slot->latch);
	slot->shown[0] = shown;
	write_seqcount_latch(&slot->latch);
	slot->shown[1] = shown;
	write_seqcount_latch_end(&slot->latch);
}

/* Add the slot's last published value to @sum. Any CPU and context, NMI too, under RCU. */
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

/*
 * Set the slot's value to @had, whatever its counter has counted until now. The counter is
 * disabled, unless it is a tree's.
 */
void pmuk_slot_rebase(struct pmuk_slot *slot, const struct pmuk_value *had)
{
	struct pmuk_counter *c = *pmuk_slot_counter(slot);
	struct pmuk_value value = {};

	lockdep_assert_held(&slot->inst->lock);
	if (c && !pmuk_inst_is_tree(slot->inst))
		pmuk_counter_set_count(c, had->count);
	if (c)
		pmuk_counter_read(c, &value);
	slot->base.count = had->count - value.count;
	slot->base.time_enabled = had->time_enabled - value.time_enabled;
	slot->base.time_running = had->time_running - value.time_running;
	slot->held = *had;
	/* A counter that is still being placed is shown by pmuk_inst_place(). */
	if (slot->inst->live || !c)
		pmuk_slot_show(slot);
}

/* Reads the slot's count. Returns 0, or why its counter does not count now. */
int pmuk_slot_read(struct pmuk_slot *slot, struct pmuk_value *value)
{
	struct pmuk_counter *c = *pmuk_slot_counter(slot);
	int ret = 0;

	lockdep_assert_held(&slot->inst->lock);
	*value = (struct pmuk_value){};
	if (pmuk_inst_is_tree(slot->inst) && !slot->inst->running) {
		*value = slot->held;
		return 0;
	}
	if (c)
		ret = pmuk_counter_read(c, value);
	/* ctx->lock is held: by this task, or by a task that waits in pmuk_insts_call(). */
	if (!ret && context_unsafe(slot->inst->missed))
		ret = -EBUSY;
	value->count += slot->base.count;
	value->time_enabled += slot->base.time_enabled;
	value->time_running += slot->base.time_running;
	return ret;
}

void pmuk_slot_retire(struct pmuk_slot *slot)
{
	struct pmuk_counter **at = pmuk_slot_counter(slot), *c = *at;
	struct pmuk_value had;

	lockdep_assert_held(&slot->inst->lock);
	if (!c)
		return;
	pmuk_slot_read(slot, &had);
	c->nr_peers = 0;	/* pmuk_slot_set_peers() has taken no references to them */
	WRITE_ONCE(*at, NULL);
	pmuk_slot_rebase(slot, &had);
	pmuk_counter_end(c);
	slot->ended = c;
}

/* A counter's peers are in the order of their numbers. */
static void pmuk_slot_set_peers(struct pmuk_slot *slot, struct pmuk_counter *c)
{
	struct pmuk_turn *turn = slot->turn;
	unsigned int i;

	c->nr_peers = 0;
	if (!pmuk_reads_group(c->attr.sample_type, c->attr.read_format))
		return;
	for (i = 0; i < turn->nr && c->nr_peers < PMUK_PEERS_MAX; i++) {
		if (slot->def->pmd.sample_peers & BIT(turn->slots[i].def->num))
			c->peers[c->nr_peers++] = turn->counters[i];
	}
}

/* Resets the slot before its first turn since the start. */
void pmuk_slot_prepare(struct pmuk_slot *slot)
{
	struct pmuk_counter *c = *pmuk_slot_counter(slot);

	lockdep_assert_held(&slot->inst->lock);
	WRITE_ONCE(slot->hit, false);	/* a tree's overflow may still be on its way */
	WRITE_ONCE(slot->longer, false);
	slot->pending = false;
	slot->reported = false;
	pmuk_slot_set_peers(slot, c);
	c->attr.cookie = slot->def->pmd.cookie;
	c->record_size = pmuk_format_size(c);
	if (pmuk_inst_is_tree(slot->inst))
		pmuk_slot_rebase(slot, &slot->held);
	else
		pmuk_counter_rearm(c, pmuk_slot_period(slot, false));
}

void pmuk_slot_restart(struct pmuk_slot *slot)
{
	struct pmuk_counter *c = *pmuk_slot_counter(slot);
	u64 period = pmuk_slot_period(slot, true);
	bool hit;

	pmuk_counter_disable(c);
	hit = READ_ONCE(slot->hit);
	/* A period that adapts goes on: a new one would have the first length again. */
	pmuk_counter_rearm(c, hit && !c->attr.freq ? period : 0);
	if (hit)	/* after the period; pairs with pmuk_slot_shorten() */
		smp_store_release(&slot->longer, period != pmuk_slot_period(slot, false));
	WRITE_ONCE(slot->hit, false);
}

/*
 * Returns whether the slot's counter waits for pmuk_restart(). If an overflow masks the context
 * while sets are exchanged, counters of both sets are stopped, so a restart asks each slot. This
 * may miss an overflow that comes during the call. The slot then waits for the next restart; and if
 * that overflow masks, pmuk_inst_restart() finds the mask at its end.
 */
bool pmuk_slot_awaits_restart(const struct pmuk_slot *slot)
{
	return READ_ONCE(slot->hit) ||
	       pmuk_state_is_frozen(READ_ONCE((*pmuk_slot_counter(slot))->state));
}

/*
 * Report a counter that has lost its place or its PMU. CPU hotplug reports counters that go with
 * their CPU, and pmuk_inst_watch_exit() those that go with their task.
 */
void pmuk_slot_watch(struct pmuk_slot *slot)
{
	struct pmuk_counter *c = *pmuk_slot_counter(slot);
	int cpu = slot->inst->cpu < 0 ? 0 : slot->inst->cpu;
	enum pmuk_msg_kind kind = PMUK_MSG_COUNTER_LOST;
	int state = c ? pmuk_counter_state(c) : PMUK_COUNTER_OFF;

	lockdep_assert_held(&slot->inst->lock);
	if (state == PMUK_COUNTER_ACTIVE)
		slot->reported = false;
	if (state == PMUK_COUNTER_GONE && perf_local_is_pmu_gone(c->hw_event))
		kind = PMUK_MSG_PMU_GONE;
	else if (state != PMUK_COUNTER_ERROR)
		return;
	if (slot->reported)
		return;
	slot->reported = true;
	pmuk_post(slot->inst->ctx, kind, cpu, 1, BIT(slot->def->num), slot->turn->set->id);
}
