/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A context, and its parts on one CPU or task:
 *
 * - an instance (struct pmuk_inst) is the part of a context on one CPU, or on its task;
 * - a turn (struct pmuk_turn) is an event set in an instance. The turns of an instance count one
 *   after the other, so "the turn of a set" also is the time for which the set counts;
 * - a slot (struct pmuk_slot) is one counter of a turn.
 *
 * Lock order: pmuk_context::lock, pmuk_inst::lock. Overflows take neither: an overflow finds its
 * slot by its counter. The comments of the fields that overflows write say so; "owner" is the CPU
 * or the task of the instance.
 */
#ifndef _PMU_KAPI_CONTEXT_H
#define _PMU_KAPI_CONTEXT_H

#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "counter.h"

/* The definition of one counter of a set: pmuk_write_pmcs() and pmuk_write_pmds() write it. */
struct pmuk_def {
	struct pmuk_pmc pmc;
	struct pmuk_pmd pmd;
	struct pmuk_value kept;		/* counted on earlier targets */
};

/* An event set, as the consumer has defined it. The context's lock is held to write this. */
struct pmuk_set {
	u16 id;
	u64 timeout;
	u32 defined;			/* a bit for each counter that is defined */
	struct pmuk_def *defs;		/* PMUK_SET_COUNTERS of them; NULL before the first */
};

/* pmuk_snapshot() adds up the counter's last published value and the base. */
struct pmuk_shown {
	struct pmuk_counter *counter;	/* freed a grace period after it is shown no more */
	struct pmuk_value base;
};

/* A slot: one counter of a set, on one CPU or task. */
struct pmuk_slot {
	struct pmuk_inst *inst;		/* const */
	struct pmuk_turn *turn;		/* const */
	const struct pmuk_def *def;	/* const; written while stopped */
	u16 num;			/* const */
	struct pmuk_counter *ended;	/* inst->lock: retired, and not freed yet */
	bool reported;			/* inst->lock: a message has reported the counter lost */
	bool pending;			/* inst->lock: an overflow was not handled */
	bool hit;			/* overflow sets; first turn and restart clear: is to be
					 * restarted
					 */
	bool longer;			/* these, and peers' overflows: has its long period */
	u32 overflows;			/* owner: in this turn */
	struct pmuk_value base;		/* inst->lock: slot's value minus counter's value */
	struct pmuk_value held;		/* inst->lock: value of a tree's slot while stopped */
	seqcount_latch_t latch;		/* tells readers which of shown[] is whole */
	struct pmuk_shown shown[2];	/* inst->lock to write, ->latch to read */
};

/*
 * A turn: an event set, on one CPU or task. The counters of all slots are side by side in one
 * array, to be read together.
 */
struct pmuk_turn {
	const struct pmuk_set *set;	/* const */
	unsigned int nr;		/* const: how many slots */
	struct pmuk_slot *slots;	/* const: in the order of the counters' numbers */
	struct pmuk_group group;	/* how to read the counters in line */
	struct pmuk_counter **counters;	/* const: behind ->slots, an entry for each slot;
					 * inst->lock, RCU: NULL while offline
					 */
	unsigned long prepared;		/* inst->lock: ->starts of the instance at the time */
	u64 runs;			/* inst->lock */
	u64 duration;			/* inst->lock: nanoseconds, of turns that have ended */
	u64 replayed;			/* inst->lock */
	atomic_t overflowed;		/* bits of counters that overflowed in the latest turn */
};

/* An instance: the part of a context that is on one CPU, or on its task. */
struct pmuk_inst {
	struct pmuk_context *ctx;	/* const */
	struct pmuk_inst *next;		/* ctx->lock: while being unloaded */
	int cpu;			/* const; -1: the task's */
	unsigned int nr_turns;		/* const */
	struct pmuk_turn *turns;	/* const: in the order of ids */

	struct mutex lock;		/* starting, stopping, switching, reading */
	bool live;			/* ctx->lock and ->lock write: has counters */
	bool running __guarded_by(&lock);	/* was started, and not stopped */
	unsigned long starts __guarded_by(&lock);	/* how often it was started */
	bool exited __guarded_by(&lock);	/* the task has exited, and a message says so */
	u64 since __guarded_by(&lock);	/* when the turn began, or ->duration was last added to */
	u64 switch_ns __guarded_by(&lock);	/* of all exchanges of sets ... */
	u64 switch_max_ns __guarded_by(&lock);	/* ... of the longest ... */
	u64 switch_last_ns __guarded_by(&lock);	/* ... and of the latest */
	u64 late_max_ns __guarded_by(&lock);	/* from when an exchange was due to its end */
	u64 switches __guarded_by(&lock);
	struct pmuk_turn *active;	/* ->lock writes: the turn that counts; NULL: stopped */
	struct pmuk_turn *wanted __guarded_by(&lock);	/* pmuk_switch_evtset() asks, or NULL */

	bool missed;			/* ctx->lock: its CPU is online, and has no room ... */
	unsigned long retry_at;		/* ... which is tried again at this time, ... */
	unsigned long retry_pause;	/* ... so many jiffies after the latest try */
	atomic_t stale;			/* its CPU went offline */
	atomic_t masked;		/* stopped until a restart */
	atomic_t due;			/* why the next turn is due: PMUK_DUE_* */
	u64 due_at;			/* time; written before ->due changes from 0 */
	struct hrtimer timer;
	struct irq_work irq_work;	/* leaves NMI ... */
	struct work_struct work;	/* ... and begins the next turn */

	atomic64_t overflows;		/* that the format has handled */
	atomic64_t cost_ns;		/* time in the handler, if debugfs measures */
};

#define PMUK_DUE_TIME		BIT(0)
#define PMUK_DUE_OVERFLOWS	BIT(1)

/* A pile: the messages of one kind and CPU that nobody has read yet, added up. */
struct pmuk_pile {
	atomic64_t count;
	atomic_t counters;
	u32 set;
};

struct pmuk_mailbox {
	struct pmuk_pile *piles;	/* const: PMUK_MSG_KINDS of each CPU */
	unsigned long *full;		/* atomic: piles with something to read */
	unsigned int nr;		/* const: of piles */
	raw_spinlock_t lock;		/* readers, in interrupts too */
	unsigned int next __guarded_by(&lock);	/* where the next search begins */
	struct completion *completion;	/* const: the caller's, or NULL */
	atomic_t owed;			/* completions that ->irq_work has to give */
	atomic64_t posted;
	struct irq_work irq_work;
};

struct pmuk_context {
	struct pmuk_context_fast fast;	/* the first field */
	u32 flags;			/* const */
	struct pmuk_buffer_attr battr;	/* const */
	struct pmuk_format *format;	/* const; its module is held */
	struct pmuk_registered *entry;	/* const: of ->format in the registry; NULL: perf's, none */
	void *format_arg;		/* const: a copy */
	size_t format_arg_size;		/* const */
	u64 id;				/* const: for people */
	pid_t session;			/* const: of all its AUX areas, for PMUs that trace */

	struct mutex lock;		/* each call that sleeps */
	struct xarray sets __guarded_by(&lock);	/* by id */
	unsigned int nr_sets __guarded_by(&lock);
	enum pmuk_target_type target;	/* ->lock, while loaded */
	struct task_struct *task;	/* the same; referred to */
	cpumask_var_t cpus;		/* the same */
	bool loaded;			/* ->lock */
	bool running __guarded_by(&lock);	/* was started, and not stopped */
	u16 start_set __guarded_by(&lock);	/* the set whose turn is first */

	cpumask_var_t online;		/* CPU hotplug: CPUs that are online */
	struct hlist_node node;		/* CPU hotplug's, while loaded on CPUs */
	struct work_struct hotplug;
	struct delayed_work watch;

	struct pmuk_inst **insts;	/* ->lock writes, RCU reads: by CPU; [0] is a task's */
	struct pmuk_buffer **buffers;	/* ->lock writes: by CPU; stay until close */
	void **areas;			/* the same: areas of ->format */

	struct pmuk_mailbox mail;
	struct list_head all;		/* pmuk_contexts_lock */
	atomic_t viewers;		/* raised with pmuk_contexts_lock; a close waits for 0 */
	atomic_t doomed;		/* the caller that changes it to 1 closes the context */
	struct irq_work close_irq_work;
	struct work_struct close_work;
	struct completion *done;	/* written by the caller that has set ->doomed */
};

static inline bool pmuk_target_is_task(const struct pmuk_context *ctx)
{
	return ctx->target == PMUK_TARGET_TASK || ctx->target == PMUK_TARGET_TREE;
}

static inline bool pmuk_inst_is_tree(const struct pmuk_inst *inst)
{
	return inst->ctx->target == PMUK_TARGET_TREE;
}

static inline struct pmuk_counter **pmuk_slot_counter(const struct pmuk_slot *slot)
{
	return &slot->turn->counters[slot - slot->turn->slots];
}

/* context.c */
extern struct mutex pmuk_contexts_lock;
extern struct list_head pmuk_contexts __guarded_by(&pmuk_contexts_lock);

/* group.c */
int pmuk_groups_alloc(struct pmuk_context *ctx);
void pmuk_group_plan(struct pmuk_turn *turn);
void pmuk_inst_show_group(struct pmuk_inst *inst, bool on);

#endif /* _PMU_KAPI_CONTEXT_H */
