/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Scheduler statistics: what the files of pmuk_sched share.
 *
 * "Owner" is the CPU on which a task runs, or ran last: it writes with interrupts off, in
 * the switch, and takes no lock. What others read of that is marked. All that is not on the
 * way of a switch is under pmuk_sched.lock: who is known, and the sums of what has ended.
 */
#ifndef _KERNEL_SCHED_PMUK_STATS_H
#define _KERNEL_SCHED_PMUK_STATS_H

#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/pmu_kapi.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <uapi/linux/pmuk_sched.h>

struct cgroup;

#define PMUK_SCHED_EVENTS	4

/*
 * Reasons for which a task leaves its CPU. Each task counts the first three, PMUK_SCHED_VOLUNTARY,
 * _SAME and _OTHER: there is no room for more in its cache line. CPUs count the rest, too.
 */
#define PMUK_SCHED_HOWS		3
#define PMUK_SCHED_REASONS	(PMUK_SCHED_MIGRATED + 1)
#define PMUK_SCHED_RESTS	(PMUK_SCHED_REASONS - PMUK_SCHED_HOWS)

static_assert(PMUK_SCHED_OTHER + 1 == PMUK_SCHED_HOWS);
static_assert(PMUK_SCHED_MIGRATED <= PMUK_SCHED_CLASS_MASK);

/*
 * A flag in &pmuk_sched_task.delay: the task was throttled when it left its CPU, and has not
 * finished a slice since then.
 */
#define PMUK_SCHED_HELD		BIT_ULL(63)

/* &pmuk_sched_task.key: the task_struct, and flags */
#define PMUK_SCHED_INVALID_BIT	0	/* some slice was not counted */
#define PMUK_SCHED_GROUPED_BIT	1	/* has a struct pmuk_sched_group */
#define PMUK_SCHED_FLAGS	7UL

/*
 * What a task has had. 64 bytes with two events; found by its task_struct, which does not know
 * of it. In a chain, it is there for as long as that, so that whoever runs is known, and whoever
 * is known can be asked for its name. Freed by RCU: who walks its chain needs the first two fields.
 */
struct pmuk_sched_task {
	struct pmuk_sched_task __rcu *next;	/* ->lock writes: in its chain */
	unsigned long key;		/* const, but for the flags, which are atomic */
	union {
		struct {
			u64 run;	/* owner: nanoseconds */
			u64 delay;	/* owner: what of the task's run_delay is no wait; or, with
					 * PMUK_SCHED_HELD, its wait until it was throttled
					 */
		};
		struct rcu_head rcu;	/* when it is in no chain */
	};
	u32 left[PMUK_SCHED_HOWS];	/* owner: how often, and how */
	u32 cgroup;			/* ->lock writes: &pmuk_sched_cgroup.id */
	u64 counts[];			/* owner: of each event */
};

static_assert(sizeof(struct pmuk_sched_task) + 2 * sizeof(u64) == 64);

/* ->lock is held, and @t is or was just in a chain; NULL: it is a CPU's own. */
static inline struct task_struct *pmuk_sched_task_of(const struct pmuk_sched_task *t)
{
	return (struct task_struct *)(t->key & ~PMUK_SCHED_FLAGS);
}

#ifdef CONFIG_SCHED_INFO
/* Nanoseconds that a task has waited for CPUs since it was forked. The scheduler writes it. */
static __always_inline u64 pmuk_sched_delay(const struct task_struct *p)
{
	return READ_ONCE(p->sched_info.run_delay);
}
#else
static __always_inline u64 pmuk_sched_delay(const struct task_struct *p)
{
	return 0;
}
#endif

/*
 * Nanoseconds that a task has waited while it could run. run_delay goes on while the task is
 * throttled, and is written when the task runs again: from when it is throttled until the next
 * slice has ended, its wait is kept as it was.
 */
static __always_inline u64 pmuk_sched_wait(const struct pmuk_sched_task *t,
					   const struct task_struct *p)
{
	u64 delay = READ_ONCE(t->delay);

	return delay & PMUK_SCHED_HELD ? delay & ~PMUK_SCHED_HELD : pmuk_sched_delay(p) - delay;
}

static inline bool pmuk_sched_is_invalid(const struct pmuk_sched_task *t)
{
	return test_bit(PMUK_SCHED_INVALID_BIT, &t->key);
}

/* Sums, of more than one task or of what has ended. */
struct pmuk_sched_totals {
	u64 run;
	u64 wait;
	u64 left[PMUK_SCHED_HOWS];
	u64 counts[PMUK_SCHED_EVENTS];
	bool invalid;
};

/* A process that has, or had, more threads than one. All is under ->lock. */
struct pmuk_sched_group {
	struct pmuk_sched_group *next;
	const struct signal_struct *signal;	/* which it is found by; as long as it has tasks */
	u32 tgid;
	u32 threads;			/* tasks that are in it */
	u64 serial;			/* of the reading that ->sum and ->copied belong to */
	bool copied;
	struct pmuk_sched_totals ended;	/* those that have exited */
	struct pmuk_sched_totals sum;	/* of one reading: with those that are there */
};

/*
 * A cgroup of the default hierarchy. What it has had is ->ended and what its tasks have: so
 * when one moves, what it has had so far is added where it was and taken off where it comes to,
 * and a switch need not know. Depth is for who reads. All is under ->lock.
 */
struct pmuk_sched_cgroup {
	struct pmuk_sched_cgroup *next;
	struct pmuk_sched_cgroup *parent;	/* is referred to */
	u32 id;				/* low half of ->full_id; no other has it meanwhile */
	u32 refs;			/* tasks, cgroups below, and 1 until it is removed */
	u64 full_id;
	u64 parent_id;			/* of ->parent, when it ends during a reading */
	u64 serial;			/* the reading of ->own, ->tree and ->copied */
	bool copied;
	struct pmuk_sched_totals ended;	/* own tasks that have exited or moved, signed */
	struct pmuk_sched_totals below;	/* cgroups below it that are no more */
	struct pmuk_sched_totals own;	/* of one reading */
	struct pmuk_sched_totals tree;	/* of one reading: ->below, as it was */
	char path[];
};

/* A task, as one reading has found it: with its name, as it may be gone when it is shown. */
struct pmuk_sched_known {
	u32 pid, tgid;
	u64 cgroup;
	char comm[TASK_COMM_LEN];
	struct pmuk_sched_totals had;
};

/* A cgroup, as one reading has found it. */
struct pmuk_sched_line {
	u64 id, parent;
	struct pmuk_sched_totals own, tree;
	struct pmuk_sched_line *above;	/* the parent's; NULL: none */
	unsigned int pending;	/* lines below that have not been added to ->tree */
	bool gone;		/* it was removed meanwhile, and is part of those above only */
	char *path;
};

/*
 * A reading of all tasks or all cgroups, in stretches: ->lock is not held from beginning to end.
 * Chains before ->next have been read, the rest is ahead. Nothing is missed or counted twice when
 * a task, group or cgroup ends or moves meanwhile: while there is a reading, who adds to ->ended
 * of a group or cgroup has it touched before, which gives it sums of this reading; and what a task
 * that is ahead takes with it is added to these sums, too.
 */
struct pmuk_sched_reading {
	u32 next;			/* ->lock: the chain that comes next */
	unsigned int nr_events;
	bool full;			/* there are more than there is room for */
	struct pmuk_sched_totals exited;	/* ->lock */
	struct pmuk_sched_totals strays;
	struct pmuk_sched_known *tasks;
	unsigned int nr, room;
	struct pmuk_sched_group *groups;
	unsigned int nr_groups, room_groups;
	struct pmuk_sched_line *lines;
	unsigned int nr_lines, room_lines;
	struct pmuk_sched_group *dead_groups;	/* ->lock: ended meanwhile */
	struct pmuk_sched_cgroup *dead_cgroups;	/* ->lock: likewise */
};

/*
 * With interrupts off, so many tasks, groups or cgroups are looked at, and so many chains, and then
 * the chain is finished: some ten microseconds.
 */
#define PMUK_SCHED_STRETCH		64
#define PMUK_SCHED_STRETCH_CHAINS	256

#define PMUK_SCHED_GROUP_BITS		12
#define PMUK_SCHED_GROUP_CHAINS		BIT(PMUK_SCHED_GROUP_BITS)
#define PMUK_SCHED_CGROUP_BITS		10
#define PMUK_SCHED_CGROUP_CHAINS	BIT(PMUK_SCHED_CGROUP_BITS)

/* Buckets of histograms, by powers of two: as many as 64 bits have, and one for nothing. */
#define PMUK_SCHED_BUCKETS	65

/* And as they are shown, the last with all that is more. */
#define PMUK_SCHED_TIMES	40
#define PMUK_SCHED_IPCS		16

/* Where the records of a CPU's switches go, or their packets. */
struct pmuk_sched_sink {
	struct pmuk_buffer *buffer;	/* const */
	bool raw;			/* const: packets, in parts of the AUX area */
	u64 switches;			/* owner: since it is there */

	/* Raw. Owner: */
	struct pmuk_aux_handle part;	/* the one that is open */
	u8 *at;				/* packets go there; NULL: none is open */
	u8 *end;			/* and up to here */
	u64 size;			/* const: of the area */
	u64 time;			/* of the latest packet */
	u32 pid;			/* who runs since */
	bool marked;			/* there is one in this part */
	u64 lost;			/* switches for which there was no room */
};

/* What a packet is made of. */
struct pmuk_sched_slice {
	u64 time;			/* its end */
	u64 run;
	u64 wait;
	u64 counts[2];
	u32 prev_pid;
	u32 next_pid;
	u8 misc;
};

/* Of a slice. */
enum {
	PMUK_SCHED_UNCOUNTED,		/* counters are lost */
	PMUK_SCHED_RESUMED,		/* they are back since its end: ->base holds from here on */
	PMUK_SCHED_COUNTED,
};

/* What is known of a CPU. Owner: that CPU, with interrupts off. */
struct pmuk_sched_cpu {
	struct pmuk_sched_task *task;	/* owner: who runs; NULL: not begun, or between two */
	u64 start;			/* owner: the CPU's clock at the latest switch, or look */
	unsigned long idle_since;	/* owner: jiffies when the idle task came */
	u64 idle_told;			/* ->on_lock: of idle's time, the most that was told */
	u64 delay;			/* owner: run_delay of who runs, before it ran */
	u8 counted;			/* owner: whether the slice that has ended was */
	bool fresh;			/* owner: began while idle, whose stamp is old */
	bool torn;			/* owner: not counted when this slice was looked at */
	bool lapsed;			/* owner: there was such a slice */
	bool plain;			/* owner: this slice is accounted in the short way */
	u64 base[PMUK_SCHED_EVENTS];	/* owner: counts then */
	u64 slice[PMUK_SCHED_EVENTS];	/* owner: of the slice that ends, while it is accounted */
	struct pmuk_sched_sink __rcu *sink;	/* stream.c writes */

	u64 part;			/* owner: what looks have taken off this slice */
	u64 parts[PMUK_SCHED_EVENTS];
	u64 first;			/* owner: ->start less this is what was accounted */
	u64 firsts[PMUK_SCHED_EVENTS];	/* owner: and ->base less these */
	u64 wait;			/* owner: of slices here, what was waited here */
	u64 strays;			/* owner: slices of tasks that are not known */
	u64 slow;			/* owner: switches that were accounted in the long way */
	u64 slices[PMUK_SCHED_HOWS + 1][PMUK_SCHED_BUCKETS];	/* owner: the last for the rest */
	u64 rest[PMUK_SCHED_RESTS];	/* owner: how often for which of the other reasons */
	u64 waits[PMUK_SCHED_BUCKETS];	/* owner */
	u64 ipcs[PMUK_SCHED_BUCKETS];	/* owner */

	/* As of tasks: counts follow their end. */
	u64 idle[DIV_ROUND_UP(sizeof(struct pmuk_sched_task), 8) + PMUK_SCHED_EVENTS];
	u64 stray[DIV_ROUND_UP(sizeof(struct pmuk_sched_task), 8) + PMUK_SCHED_EVENTS];
};

static_assert(sizeof(struct pmuk_sched_cpu) <= 4096);

static inline struct pmuk_sched_task *pmuk_sched_idle(struct pmuk_sched_cpu *c)
{
	return (struct pmuk_sched_task *)c->idle;
}

static inline struct pmuk_sched_task *pmuk_sched_stray(struct pmuk_sched_cpu *c)
{
	return (struct pmuk_sched_task *)c->stray;
}

/* An event, as it was asked for. */
struct pmuk_sched_event {
	char name[32];
	u32 type;
	u64 config;
	int missing;			/* 0, or -errno: it could not be had */
};

struct pmuk_sched {
	/* For switches; const while they are traced. */
	struct pmuk_sched_task __rcu **chains;	/* their links are under ->lock */
	u32 mask;			/* how many chains, less one */
	unsigned int nr;		/* how many events count */
	bool ipc;			/* the first two are cycles, or so, and instructions */
	struct pmuk_context *ctx;	/* with these; NULL: none */

	spinlock_t lock;		/* with interrupts off, as some tracepoints are */
	unsigned int nr_tasks;		/* ->lock */
	struct pmuk_sched_group **groups;	/* ->lock, as are those below */
	struct pmuk_sched_cgroup **cgroups;
	struct pmuk_sched_totals exited;	/* whole processes */
	unsigned int nr_groups, nr_cgroups;	/* ->lock */
	struct pmuk_sched_reading *reading;	/* ->lock; NULL: none */
	u64 serial;			/* ->lock: of the latest reading */
	u64 unknown;			/* cgroups and groups for which there was no memory */
	bool unmoved;			/* ->lock: tasks have changed their cgroup, see
					 * pmuk_sched_move_rest()
					 */
	unsigned int stretch;		/* ->lock: most that were looked at in a row, */
	unsigned int stretch_ns;	/* ->lock: and the longest time that took */

	struct mutex on_lock;		/* on, off, and what is between */
	bool on;			/* ->on_lock */
	bool begun;			/* ->on_lock writes: CPUs that come online begin */
	u64 strays;			/* ->on_lock: when last looked for */
	u64 since;			/* ->on_lock: CLOCK_MONOTONIC */
	bool lost;			/* ->on_lock: counters, and nobody has tried since */
	unsigned int retry_after;	/* ->on_lock: seconds from one try to the next */
	unsigned int retry_in;		/* ->on_lock: seconds until the next */
	unsigned int nr_asked;		/* ->on_lock */
	struct pmuk_sched_event asked[PMUK_SCHED_EVENTS];	/* ->on_lock */
	u8 order[PMUK_SCHED_EVENTS];	/* ->on_lock: which of these count, in order */
	int cpuhp;			/* const: the state */
	struct delayed_work watch;
	struct work_struct move;
};

extern struct pmuk_sched pmuk_sched;
DECLARE_PER_CPU(struct pmuk_sched_cpu, pmuk_sched_cpus);
DECLARE_PER_CPU(bool, pmuk_sched_up);	/* owner: it is online, and not about to go */

/* Bucket 0: nothing; bucket i: from 2^(i - 1) nanoseconds on. */
static __always_inline unsigned int pmuk_sched_time_bucket(u64 ns)
{
	return fls64(ns);
}

/* Bucket i: from 2^(i - 9) instructions per cycle on; 0: less than all these. */
static __always_inline unsigned int pmuk_sched_ipc_bucket(u64 cycles, u64 insns)
{
	return fls64((insns << 8) / (cycles ?: 1));
}

/* task_structs are some KiB: neighbours are in chains of their own. */
static __always_inline u32 pmuk_sched_chain(const struct task_struct *p)
{
	return ((unsigned long)p >> 12) & pmuk_sched.mask;
}

/* NULL: not known. In RCU's care. */
static __always_inline struct pmuk_sched_task *pmuk_sched_find(const struct task_struct *p)
{
	struct pmuk_sched_task *t = rcu_dereference_sched(pmuk_sched.chains[pmuk_sched_chain(p)]);

	while (t && ((READ_ONCE(t->key) ^ (unsigned long)p) & ~PMUK_SCHED_FLAGS))
		t = rcu_dereference_sched(t->next);
	return t;
}

/* ->lock is held. The reading that is under way has not come to @p yet. */
static inline bool pmuk_sched_is_ahead(const struct task_struct *p)
{
	return pmuk_sched.reading && pmuk_sched_chain(p) >= pmuk_sched.reading->next;
}

/* switch.c */
void pmuk_sched_switch(void *data, bool preempt, struct task_struct *prev,
		       struct task_struct *next, unsigned int prev_state, u64 clock);
void pmuk_sched_switch_probe(void *data, bool preempt, struct task_struct *prev,
			     struct task_struct *next, unsigned int prev_state);
void pmuk_sched_begin(void *data);
void pmuk_sched_end(void *data);
void pmuk_sched_look(void *data);
void pmuk_sched_look_all(void);
bool pmuk_sched_is_idle(int cpu);
bool pmuk_sched_is_isolated(int cpu);
u64 pmuk_sched_idle_so_far(const struct pmuk_sched_cpu *c);
u64 pmuk_sched_nr_strays(void);
u64 pmuk_sched_nr_slow(void);
void pmuk_sched_cpu_totals(struct pmuk_sched_cpu *c, struct pmuk_sched_totals *sum);

/* totals.c */
void pmuk_sched_add_task(struct pmuk_sched_totals *sum, const struct pmuk_sched_task *t);
void pmuk_sched_add(struct pmuk_sched_totals *sum, const struct pmuk_sched_totals *other);

/* tasks.c */
int pmuk_sched_tasks_init(void);
void pmuk_sched_tasks_exit(void);
void pmuk_sched_tasks_seed(void);
void pmuk_sched_newtask(void *data, struct task_struct *p, u64 clone_flags);
void pmuk_sched_free(void *data, struct task_struct *p);
size_t pmuk_sched_task_size(void);
struct pmuk_sched_group *pmuk_sched_group_find(const struct task_struct *p);

/* cgroups.c */
int pmuk_sched_cgroups_init(void);
void pmuk_sched_cgroups_exit(void);
void pmuk_sched_cgroups_seed(void);
void pmuk_sched_cgroup_mkdir(void *data, struct cgroup *cgrp, const char *path);
void pmuk_sched_cgroup_rmdir(void *data, struct cgroup *cgrp, const char *path);
void pmuk_sched_cgroup_attach(void *data, struct cgroup *dst, const char *path,
			      struct task_struct *leader, bool threadgroup);
struct pmuk_sched_cgroup *pmuk_sched_cgroup_find(u32 id);
u32 pmuk_sched_cgroup_join(struct task_struct *p);
void pmuk_sched_cgroup_leave(const struct pmuk_sched_task *t);
void pmuk_sched_cgroup_move(struct task_struct *p);

/* counters.c */
int pmuk_sched_parse(const char *names, struct pmuk_sched_event *events);
int pmuk_sched_counters_start(struct pmuk_sched *s);
void pmuk_sched_counters_stop(struct pmuk_sched *s);

/* reading.c */
int pmuk_sched_read_tasks(struct pmuk_sched_reading *r);
int pmuk_sched_read_cgroups(struct pmuk_sched_reading *r);
void pmuk_sched_reading_free(struct pmuk_sched_reading *r);
void pmuk_sched_note_stretch(unsigned int seen, u64 began);
void pmuk_sched_move_rest(void);
void pmuk_sched_touch_group(struct pmuk_sched_group *g);
void pmuk_sched_touch_cgroup(struct pmuk_sched_cgroup *g);

/* show.c */
int pmuk_sched_show_init(void);
void pmuk_sched_show_exit(void);

/* raw.c */
void pmuk_sched_raw_switch(struct pmuk_sched_sink *sink, const struct pmuk_sched_slice *s);
void pmuk_sched_raw_end(struct pmuk_sched_sink *sink);
void pmuk_sched_raw_flush(struct pmuk_sched_sink *sink);

/* stream.c */
int pmuk_sched_stream_init(void);
void pmuk_sched_stream_exit(void);

#endif /* _KERNEL_SCHED_PMUK_STATS_H */
