/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A context, and its parts on one CPU or task:
 *
 * - an instance (struct pmuk_inst) is the part of a context on one CPU, or on its task;
 * - a turn (struct pmuk_turn) is an event set in an instance. The turns of an instance count one
 *   after the other, so "the turn of a set" also is the time for which the set counts;
 * - a slot (struct pmuk_slot) is one counter of a turn.
 *
 * Lock order: pmuk_context::lock, those of contexts of lower rank after it, the CPU's lock of
 * reservations, pmuk_inst::lock, the CPU's lock of trials. Overflows take none of them: an overflow
 * finds its slot by its counter. The comments of the fields that overflows write say so.
 *
 * Each field has an annotation or a comment that says who may write it. "const": nobody, once the
 * struct is set up. "owner": the CPU or the task of the instance.
 */
#ifndef _PMU_KAPI_CONTEXT_H
#define _PMU_KAPI_CONTEXT_H

#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "counter.h"

/*
 * The definition of one counter of a set: pmuk_write_pmcs() and pmuk_write_pmds() make and write
 * it. Slots point to it, so it stays where it is until the set is deleted.
 */
struct pmuk_def {
	struct pmuk_def *next;		/* the definition of the next higher number, or NULL */
	u16 num;			/* const */
	struct pmuk_pmc pmc;
	struct pmuk_pmd pmd;
	struct pmuk_value kept;		/* the sum of what it has counted on earlier targets */
};

/* An event set, as the consumer has defined it. Writers hold the context's lock. */
struct pmuk_set {
	u16 id;
	u64 timeout;			/* nanoseconds of a turn; 0: no limit */
	u32 defined;			/* a bit for each counter that is defined */
	struct pmuk_def *defs;		/* in the order of their numbers, or NULL */
};

/* A pile: the messages of one kind and CPU that nobody has read yet, added up. */
struct pmuk_pile {
	atomic64_t count;		/* how often it happened */
	atomic_t counters;		/* a bit for each counter concerned */
	u32 set;			/* the set of the latest message */
	u64 by;				/* the context that caused the latest message, or 0 */
};

struct pmuk_mailbox {
	struct pmuk_pile *piles;	/* const: PMUK_MSG_KINDS piles for each CPU */
	unsigned long *full;		/* atomic: a bit for each pile with something to read */
	unsigned int nr;		/* const: the number of piles */
	raw_spinlock_t lock;		/* readers, which may be in interrupts */
	unsigned int next __guarded_by(&lock);	/* the pile at which the next search begins */
	struct completion *completion;	/* const: the consumer's, or NULL */
	atomic_t owed;			/* how often ->irq_work has to complete ->completion */
	atomic64_t posted;		/* messages since the context was created */
	struct irq_work irq_work;
};

struct pmuk_context {
	struct pmuk_context_fast fast;	/* the first field */
	u32 flags;			/* const */
	enum pmuk_rank rank;		/* const */
	u64 limit_ns;			/* const: of overflows in a second; 0: no limit */
	struct pmuk_buffer_attr battr;	/* const */
	struct pmuk_format *format;	/* const; the context holds the format's module */
	void *format_arg;		/* const: a copy of &pmuk_context_attr.format_arg */
	size_t format_arg_size;		/* const */
	u64 id;				/* const: shown in debugfs and tracepoints */
	char name[PMUK_NAME_LEN];	/* const: shown in debugfs */
	pid_t session;			/* const: as &pmuk_aux.session, for all AUX areas */

	struct mutex lock;		/* each call that sleeps takes it */
	struct xarray sets __guarded_by(&lock);	/* struct pmuk_set by id */
	unsigned int nr_sets __guarded_by(&lock);
	/* The target of the latest load. ->target and ->task do not change while loaded. */
	enum pmuk_target_type target __guarded_by(&lock);
	struct task_struct *task __guarded_by(&lock);	/* holds a reference; NULL: no task */
	cpumask_var_t cpus __guarded_by(&lock);	/* empty if the target is a task */
	bool loaded __guarded_by(&lock);
	bool running __guarded_by(&lock);	/* was started, and not stopped */
	u16 start_set __guarded_by(&lock);	/* the set whose turn comes first after a start */

	cpumask_var_t online;		/* CPU hotplug callbacks write: CPUs that are online */
	struct hlist_node node;		/* in the list of CPU hotplug, while loaded on CPUs */
	struct work_struct hotplug;	/* follows CPUs that came or went */
	struct delayed_work watch;	/* looks for counters that were lost, while started */
	/* atomic: jiffies from one check of the watch to the next; 0: check soon */
	unsigned long watch_pause;
	/* pmuk_watch_runs() of the task at the watch's latest check */
	u64 watch_ran __guarded_by(&lock);

	/* Arrays with an entry for each CPU. ->lock guards writes to their entries. */
	struct pmuk_inst **insts;	/* RCU guards reads; a task's instance is in entry 0 */
	struct pmuk_buffer **buffers;	/* a buffer stays until the context is closed */
	void **areas;			/* areas of ->format, which stay as long */

	struct pmuk_mailbox mail;
	struct list_head all;		/* contexts.c writes: in the list of all contexts */
	atomic_t viewers;		/* users of the context that a close waits for */
	atomic_t doomed;		/* the caller that changes it to 1 closes the context */
	struct irq_work close_irq_work;	/* a close from NMI: leaves NMI ... */
	struct work_struct close_work;	/* ... and then interrupt context */
	struct completion *done;	/* the caller that has set ->doomed writes */
};

/* The counters of all slots are side by side in one array, to be read together. */
struct pmuk_turn {
	const struct pmuk_set *set;	/* const */
	unsigned int nr;		/* const: how many slots */
	struct pmuk_slot *slots;	/* const: in the order of the counters' numbers */
	struct pmuk_group group;	/* the plan by which inline reads read the counters */
	/*
	 * An array behind ->slots, with an entry for each slot: NULL while the CPU is offline. The
	 * instance's lock guards writes, and RCU guards reads without that lock.
	 */
	struct pmuk_counter **counters;
	/* The instance's lock guards the next five fields. */
	/*
	 * The value of inst->starts when pmuk_slot_prepare() was last called: equals inst->starts
	 * if this turn has begun since the latest start.
	 */
	unsigned long prepared;
	/* inst->starts when pmuk_turn_enable() was last called: not for a turn that began masked */
	unsigned long enabled;
	u64 runs;			/* turns of this set that have begun */
	u64 duration;			/* nanoseconds of the turns that have ended */
	u64 replayed;			/* pending overflows that the next turn has handled */
	atomic_t overflowed;		/* bits of counters that overflowed in the latest turn */
};

struct pmuk_inst {
	struct pmuk_context *ctx;	/* const */
	/* While the context is unloaded: the next instance to free. */
	struct pmuk_inst *next __guarded_by(&ctx->lock);
	int cpu;			/* const; -1: the instance of a task */
	unsigned int nr_turns;		/* const */

	struct mutex lock;		/* held to start, stop, exchange sets and read */
	bool live __guarded_by(&lock, &ctx->lock);	/* has counters; a write takes both locks */
	/* pmuk_inst_finish() has to free the counters when the grace period ->grace has ended. */
	bool retired __guarded_by(&lock, &ctx->lock);
	unsigned long grace __guarded_by(&lock, &ctx->lock);
	bool running __guarded_by(&lock);	/* was started, and not stopped */
	unsigned long starts __guarded_by(&lock);	/* how often it was started */
	bool exited __guarded_by(&lock);	/* a PMUK_MSG_EXIT was posted */
	u64 since __guarded_by(&lock);	/* time until which ->duration of turns is complete */
	u64 switch_ns __guarded_by(&lock);	/* the time that all exchanges of sets have taken */
	u64 switch_max_ns __guarded_by(&lock);	/* the time of the longest exchange */
	u64 switch_last_ns __guarded_by(&lock);	/* the time of the latest exchange */
	u64 late_max_ns __guarded_by(&lock);	/* longest time from ->due_at to an exchange */
	u64 switches __guarded_by(&lock);	/* the number of exchanges */
	struct pmuk_turn *active __guarded_by(&lock);	/* the turn that counts; NULL: stopped */
	/* The turn that pmuk_switch_evtset() has asked for and that has not begun; or NULL. */
	struct pmuk_turn *wanted __guarded_by(&lock);

	/* pmuk_insts_call() calls ->call for the instance, in a worker of the CPU if ->asked. */
	void (*call)(struct pmuk_inst *inst) __guarded_by(&ctx->lock);
	bool asked __guarded_by(&ctx->lock);
	struct work_struct call_work;	/* calls ->call; the caller holds ctx->lock meanwhile */
	int ret;			/* the start returned this */
	/* ctx->lock guards: the slot that could not be placed or started at the latest failure */
	const struct pmuk_slot *failed;

	const struct pmu *lacks;	/* ctx->lock guards: had no room at the latest failure */
	/* the turn that pmuk_inst_has_lost() has checked last */
	struct pmuk_turn *lost __guarded_by(&ctx->lock);
	/* pmuk_ways() at the latest try to find room: how often contexts have given way there */
	int ways __guarded_by(&ctx->lock);
	unsigned int loans __guarded_by(&ctx->lock);	/* registers that the search may borrow */
	/* Contexts gave way in vain, and none is to do so for this one before that time. */
	unsigned long vain_until __guarded_by(&ctx->lock);
	unsigned long vain_pause __guarded_by(&ctx->lock);	/* jiffies; 0: not in vain */
	/* The CPU is online, but had no room for the counters at the latest try. */
	bool missed __guarded_by(&ctx->lock);
	unsigned long retry_at __guarded_by(&ctx->lock);	/* jiffies of the next try */
	unsigned long retry_pause __guarded_by(&ctx->lock);	/* jiffies between these tries */
	/*
	 * The pause in jiffies before the next try after counters were pushed out. It doubles with
	 * each loss since the start. 0: none yet
	 */
	unsigned long lost_pause __guarded_by(&ctx->lock);
	struct pmuk_reserve *reserve __guarded_by(&ctx->lock);	/* while stopped, or NULL */
	/* The owner sets it to pmuk_ways() + 1 when events of others wait for a register. */
	atomic_t others_wait;
	struct irq_work wait_irq_work;	/* lets the watch check soon after that */
	bool others_waited __guarded_by(&ctx->lock);	/* at the latest check of the watch */
	/*
	 * The instance has yielded to events of others for ->yield_pause, and if ->yielded it has
	 * not come back. It stays away until ->yield_until, and notes there when it comes back.
	 */
	bool yielded __guarded_by(&ctx->lock);
	unsigned long yield_pause __guarded_by(&ctx->lock);
	unsigned long yield_until __guarded_by(&ctx->lock);
	atomic_t stale;			/* the CPU went offline, and the counters are still there */
	atomic_t masked;		/* an overflow has stopped all counters until a restart */
	atomic_t due;			/* why the next turn is due: PMUK_DUE_* */
	u64 due_at;			/* since when; written before ->due changes from 0 */
	struct hrtimer timer;		/* ends the turn after the timeout of its set */
	struct irq_work irq_work;	/* an overflow ends the turn: leaves NMI ... */
	struct work_struct work;	/* ... and exchanges the sets */

	atomic64_t overflows;		/* overflows that the format has handled */
	atomic64_t unwritten;		/* overflows of which perf's format wrote no record */
	/* cost.c writes. With a limit, and while debugfs measures: */
	atomic64_t cost_ns;		/* the time that overflows have taken */
	u64 second;			/* when the present second began, by local_clock() */
	u64 second_cost;		/* ->cost_ns at that time */
	atomic64_t limited;		/* how often the limit was exceeded */
	atomic64_t reads;		/* calls of pmuk_read_local(), while debugfs measures */
	/* const: in the order of the ids of their sets */
	struct pmuk_turn turns[] __counted_by(nr_turns);
};

#define PMUK_DUE_TIME		BIT(0)
#define PMUK_DUE_OVERFLOWS	BIT(1)

/* pmuk_snapshot() adds the base to the value that the counter last published. */
struct pmuk_shown {
	struct pmuk_counter *counter;	/* freed a grace period after it was replaced here */
	struct pmuk_value base;
};

struct pmuk_slot {
	struct pmuk_inst *inst;		/* const */
	struct pmuk_turn *turn;		/* const */
	const struct pmuk_def *def;	/* const; the definition may change while stopped */
	struct pmuk_counter *ended __guarded_by(&inst->lock);	/* retired, and not freed yet */
	bool reported __guarded_by(&inst->lock);	/* a message has reported the loss */
	/* The counter overflowed at the end of a turn, and the format has not handled that yet. */
	bool pending __guarded_by(&inst->lock);
	/*
	 * The counter waits for a restart. An overflow sets this; a restart, and the first turn
	 * after a start, clear it.
	 */
	bool hit;
	/*
	 * The counter has its long period. A restart sets this; overflows of the counter and of its
	 * peers, and the first turn after a start, clear it.
	 */
	bool longer;
	u32 overflows;			/* owner: overflows in this turn */
	/* The slot's value is the counter's value plus this: what earlier counters have counted. */
	struct pmuk_value base __guarded_by(&inst->lock);
	struct pmuk_value held __guarded_by(&inst->lock);	/* a tree's value while stopped */
	seqcount_latch_t latch;		/* says which of shown[] readers may use */
	struct pmuk_shown shown[2];	/* written under inst->lock, read under ->latch */
};

static inline bool pmuk_target_is_task(const struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	return ctx->target == PMUK_TARGET_TASK || ctx->target == PMUK_TARGET_TREE;
}

static inline bool pmuk_inst_is_tree(const struct pmuk_inst *inst)
{
	/* While there is an instance, its context is loaded, and the target does not change. */
	return context_unsafe(inst->ctx->target) == PMUK_TARGET_TREE;
}

static inline struct pmuk_counter **pmuk_slot_counter(const struct pmuk_slot *slot)
{
	return &slot->turn->counters[slot - slot->turn->slots];
}

static inline struct pmuk_slot *pmuk_turn_slot(const struct pmuk_turn *turn, unsigned int i)
{
	return i < turn->nr ? &turn->slots[i] : NULL;
}

#define pmuk_for_each_slot(slot, turn)	\
	for (unsigned int __i = 0; (slot = pmuk_turn_slot(turn, __i)); __i++)

/* control.c */
void pmuk_context_halt(struct pmuk_context *ctx) __must_hold(&ctx->lock);

/* group.c */
int pmuk_groups_alloc(struct pmuk_context *ctx);
void pmuk_group_plan(struct pmuk_turn *turn);
void pmuk_inst_show_group(struct pmuk_inst *inst, bool on);

#endif /* _PMU_KAPI_CONTEXT_H */
