/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A context, and what of it is on one CPU or task. Below it are counters, buffers and
 * messages, which know nothing of it.
 *
 * ->lock of a context is taken before that of an instance, and that before none. Overflows take
 * neither: they find their slot by their counter, and what they write is marked "owner".
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

#include "group.h"
#include "internal.h"

/* What was written about one counter of a set. */
struct pmuk_def {
	struct pmuk_pmc pmc;
	struct pmuk_pmd pmd;
	struct pmuk_value kept;		/* counted where it was loaded before */
};

/* An event set, as it was described. All is under the context's lock. */
struct pmuk_set {
	u16 id;
	u64 timeout;
	u32 defined;			/* by number: which there are */
	struct pmuk_def *defs;		/* PMUK_SET_COUNTERS; NULL before the first */
};

/* What pmuk_snapshot() adds up. */
struct pmuk_shown {
	struct pmuk_counter *counter;	/* freed a grace period after it is shown no more */
	struct pmuk_value base;
};

/* One counter of a set, on one CPU or task. */
struct pmuk_slot {
	struct pmuk_inst *inst;		/* const */
	struct pmuk_turn *turn;		/* const */
	const struct pmuk_def *def;	/* const; written while stopped */
	u16 num;			/* const */
	struct pmuk_counter *ended;	/* inst->lock: retired, and not freed yet */
	bool told;			/* watch: that it was lost */
	bool pending;			/* inst->lock: an overflow was not handled */
	bool hit;			/* overflow, or who disabled: awaits its long period */
	bool longer;			/* these, and peers' overflows: has that period */
	u32 overflows;			/* owner: in this turn */
	struct pmuk_value base;		/* inst->lock: add to what the counter has */
	struct pmuk_value held;		/* inst->lock: while stopped, where perf cannot stop it */
	seqcount_latch_t latch;		/* tells readers which of shown[] is whole */
	struct pmuk_shown shown[2];	/* inst->lock to write, ->latch to read */
};

/* One event set, on one CPU or task. The slots' counters side by side, to be read together. */
struct pmuk_turn {
	const struct pmuk_set *set;	/* const */
	unsigned int nr;		/* const: how many slots */
	struct pmuk_slot *slots;	/* const: by number */
	struct pmuk_group *group;	/* const */
	struct pmuk_counter **counters;	/* const: the group's, each slot's */
	u64 runs;			/* inst->lock */
	u64 duration;			/* inst->lock: nanoseconds, of turns that have ended */
	u64 replayed;			/* inst->lock */
	atomic_t overflowed;		/* by number: in the latest turn */
};

/* What of a context is on one CPU, or its task. */
struct pmuk_inst {
	struct pmuk_context *ctx;	/* const */
	struct pmuk_inst *next;		/* ctx->lock: while being unloaded */
	int cpu;			/* const; -1: the task's */
	unsigned int nr_turns;		/* const */
	struct pmuk_turn *turns;	/* const: in the order of ids */

	struct mutex lock;		/* starting, stopping, switching, reading */
	bool live;			/* ->lock: has counters */
	bool running;			/* ->lock: was started, and not stopped */
	bool exited;			/* ->lock: its task has, and that was told */
	u64 since;			/* ->lock: when the turn began, or what is counted of it */
	u64 switch_ns;			/* ->lock: between turns, all together, and the longest */
	u64 switch_max_ns;
	u64 switch_last_ns;		/* the latest */
	u64 late_max_ns;		/* ->lock: from when it was due to when it was done */
	u64 switches;			/* ->lock */
	struct pmuk_turn *active;	/* ->lock writes: whose turn it is; NULL: stopped */
	struct pmuk_turn *wanted;	/* ->lock: whose turn is called for, or NULL */

	bool missed;			/* ctx->lock: its CPU is online, and has no room ... */
	unsigned long retry_at;		/* ... which is tried again at this time, ... */
	unsigned long retry_pause;	/* ... so many jiffies after the latest try */
	atomic_t stale;			/* its CPU went offline */
	atomic_t masked;		/* stopped until a restart */
	atomic_t due;			/* who asks for the next turn: PMUK_DUE_* */
	u64 due_at;			/* whoever moved ->due from 0 */
	struct hrtimer timer;
	struct irq_work irq_work;	/* leaves NMI … */
	struct work_struct work;	/* … and takes the next turn */

	atomic64_t overflows;		/* handled */
	atomic64_t cost_ns;		/* in that, while somebody measures */
};

#define PMUK_DUE_TIME		BIT(0)
#define PMUK_DUE_OVERFLOWS	BIT(1)

/* Messages of one kind and CPU. */
struct pmuk_pile {
	atomic64_t count;
	atomic_t counters;
	u32 set;
};

struct pmuk_mailbox {
	struct pmuk_pile *piles;	/* const: PMUK_MSG_KINDS of each CPU */
	unsigned long *full;		/* atomic: piles with something to read */
	unsigned int nr;		/* const: of piles */
	unsigned int next;		/* ->lock: where to look first */
	raw_spinlock_t lock;		/* readers, in interrupts too */
	struct completion *completion;	/* const: the caller's, or NULL */
	atomic_t owed;			/* completions, for messages that nobody knows of */
	atomic64_t posted;
	struct irq_work irq_work;
};

struct pmuk_context {
	u32 flags;			/* const */
	struct pmuk_buffer_attr battr;	/* const */
	struct pmuk_format *format;	/* const; its module is held */
	struct pmuk_registered *entry;	/* const: of ->format in the registry; NULL: perf's, none */
	void *format_arg;		/* const: a copy */
	size_t format_arg_size;		/* const */
	u64 id;				/* const: for people */
	pid_t session;			/* const: of all its AUX areas, for PMUs that trace */

	struct mutex lock;		/* each call that sleeps */
	struct xarray sets;		/* ->lock: by id */
	enum pmuk_target_type target;	/* ->lock, while loaded */
	struct task_struct *task;	/* the same; referred to */
	cpumask_var_t cpus;		/* the same */
	bool loaded;			/* ->lock */
	bool running;			/* ->lock: was started, and not stopped */
	u16 start_set;			/* ->lock: whose turn is first */

	cpumask_var_t online;		/* CPU hotplug: which take part */
	struct hlist_node node;		/* CPU hotplug's, while loaded on CPUs */
	struct work_struct hotplug;
	struct delayed_work watch;

	struct pmuk_inst **insts;	/* ->lock writes, RCU reads: by CPU; [0] is a task's */
	struct pmuk_group **groups;	/* inst->lock writes, owner reads: by CPU, active */
	struct pmuk_buffer **buffers;	/* ->lock writes: by CPU; stay until close */
	void **areas;			/* the same, the format's */

	struct pmuk_mailbox mail;
	struct list_head all;		/* pmuk_contexts_lock */
	atomic_t viewers;		/* pmuk_contexts_lock raises; a close waits for 0 */
	atomic_t doomed;		/* whoever moved it from 0 to 1 closes it */
	struct irq_work close_irq_work;
	struct work_struct close_work;
	struct completion *done;	/* written by whoever set ->doomed */
};

static inline bool pmuk_target_is_task(const struct pmuk_context *ctx)
{
	return ctx->target == PMUK_TARGET_TASK || ctx->target == PMUK_TARGET_TREE;
}

/* context.c */
extern struct workqueue_struct *pmuk_turns_wq;
extern struct mutex pmuk_contexts_lock;
extern struct list_head pmuk_contexts;

struct pmuk_inst *pmuk_inst_from(struct pmuk_context *ctx, unsigned int *cpu);
int pmuk_context_make_storage(struct pmuk_context *ctx);
void pmuk_context_stop(struct pmuk_context *ctx);

/* hotplug.c */
void pmuk_hotplug_work(struct work_struct *work);
void pmuk_hotplug_retry(struct pmuk_context *ctx);
int pmuk_hotplug_add(struct pmuk_context *ctx);
void pmuk_hotplug_remove(struct pmuk_context *ctx);
int pmuk_hotplug_init(void);
void pmuk_hotplug_exit(void);

/* debugfs.c */
DECLARE_STATIC_KEY_FALSE(pmuk_measures);

/* pmd.c */
void pmuk_pmds_keep(struct pmuk_context *ctx);

/* instance.c */
struct pmuk_inst *pmuk_inst_alloc(struct pmuk_context *ctx, int cpu);
void pmuk_inst_free(struct pmuk_inst *inst);
int pmuk_inst_place(struct pmuk_inst *inst, struct pmuk_target *failed);
void pmuk_inst_retire(struct pmuk_inst *inst);
void pmuk_inst_finish(struct pmuk_inst *inst);
int pmuk_inst_start(struct pmuk_inst *inst, u16 set, struct pmuk_target *failed);
void pmuk_inst_stop(struct pmuk_inst *inst);
void pmuk_inst_restart(struct pmuk_inst *inst);
void pmuk_inst_watch(struct pmuk_inst *inst);
void pmuk_inst_pause(struct pmuk_inst *inst);
void pmuk_slot_handle(struct pmuk_slot *slot, struct pmuk_counter *c,
		      const struct pmuk_sample *sample, const struct perf_sample_data *data);
void pmuk_slot_rebase(struct pmuk_slot *slot, const struct pmuk_value *had);
int pmuk_slot_read(struct pmuk_slot *slot, struct pmuk_value *value);
void pmuk_slot_snapshot(const struct pmuk_slot *slot, struct pmuk_value *sum);
struct pmuk_slot *pmuk_inst_slot(struct pmuk_inst *inst, u16 set, u16 num);
struct pmuk_turn *pmuk_inst_turn(struct pmuk_inst *inst, u16 set);

/* evtset.c */
struct pmuk_set *pmuk_set_find(struct pmuk_context *ctx, u16 id);
u16 pmuk_set_first(struct pmuk_context *ctx);
int pmuk_set_add(struct pmuk_context *ctx, u16 id, u64 timeout);
void pmuk_sets_free(struct pmuk_context *ctx);
int pmuk_turn_begin(struct pmuk_inst *inst, struct pmuk_turn *turn, struct pmuk_slot **failed);
void pmuk_turn_end(struct pmuk_inst *inst);
void pmuk_inst_ask(struct pmuk_inst *inst, int why);
void pmuk_inst_show_group(struct pmuk_inst *inst, bool on);
void pmuk_inst_init_switch(struct pmuk_inst *inst);
int pmuk_inst_switch(struct pmuk_inst *inst, u16 set);
void pmuk_inst_go_on(struct pmuk_inst *inst);

/* message.c */
int pmuk_mail_init(struct pmuk_mailbox *mail, struct completion *completion);
void pmuk_mail_end(struct pmuk_mailbox *mail);
void pmuk_post(struct pmuk_context *ctx, enum pmuk_msg_kind kind, int cpu, u64 count,
	       u32 counters, u16 set);

/* registry.c */
bool pmuk_format_is_perf(const struct pmuk_format *format);
struct pmuk_format *pmuk_format_find(const uuid_t *uuid, struct pmuk_registered **entry);
void pmuk_format_let_go(struct pmuk_registered *r);
void pmuk_format_put(struct pmuk_registered *r);

#endif /* _PMU_KAPI_CONTEXT_H */
