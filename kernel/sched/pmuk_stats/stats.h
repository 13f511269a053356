/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Scheduler statistics: the data that the files of pmuk_sched share.
 *
 * A field that a comment marks with "owner" is written by the CPU on which the task runs or ran
 * last. That CPU writes at a switch, with interrupts off and without a lock, and marks each store
 * that another CPU may read: WRITE_ONCE(), or pmuk_sched_store() for two words at once. A lock
 * guards all other fields that change: pmuk_sched.lock guards the tables of tasks, processes and
 * cgroups, and the sums of those that have ended.
 */
#ifndef _KERNEL_SCHED_PMUK_STATS_H
#define _KERNEL_SCHED_PMUK_STATS_H

#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/hash.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/pmu_kapi.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <uapi/linux/pmuk_sched.h>

struct cgroup;

#define PMUK_SCHED_EVENTS	4

/*
 * Each task counts the first three reasons for leaving a CPU, PMUK_SCHED_VOLUNTARY, _SAME and
 * _OTHER: its cache line has no room for more. CPUs count the other reasons.
 */
#define PMUK_SCHED_TASK_REASONS	3
#define PMUK_SCHED_REASONS	(PMUK_SCHED_MIGRATED + 1)
#define PMUK_SCHED_CPU_REASONS	(PMUK_SCHED_REASONS - PMUK_SCHED_TASK_REASONS)

static_assert(PMUK_SCHED_OTHER + 1 == PMUK_SCHED_TASK_REASONS);
static_assert(PMUK_SCHED_MIGRATED <= PMUK_SCHED_CLASS_MASK);

/* Sums over several tasks, or over tasks that have exited. */
struct pmuk_sched_totals {
	u64 run;			/* nanoseconds */
	u64 wait;			/* nanoseconds, see pmuk_sched_wait() */
	u64 reasons[PMUK_SCHED_TASK_REASONS];
	u64 counts[PMUK_SCHED_EVENTS];
	bool invalid;			/* the counters missed a slice of one of these tasks */
};

/*
 * Returns the number of departures to show for @n, one of ->reasons. Tasks count departures modulo
 * 2^32. If a task's number wraps after the task has moved to another cgroup, more is subtracted
 * there than is added. The difference is negative, and right modulo 2^32.
 */
static inline u64 pmuk_sched_departures(u64 n)
{
	return (s64)n < 0 ? n & U32_MAX : n;
}

/* An event of the parameter "events". */
struct pmuk_sched_event {
	char name[32];
	u32 type;
	u64 config;
	int missing;			/* 0, or the -errno with which it could not be opened */
};

struct pmuk_sched {
	/* Switches read these fields, which are const while switches are accounted. */
	struct pmuk_sched_task __rcu **chains;	/* the entries of tasks; ->lock writes the links */
	u32 mask;			/* the number of chains, less 1 */
	unsigned int nr;		/* the number of events that are counted */
	bool ipc;			/* the first two requested events are counted */
	struct pmuk_context *ctx;	/* counts these events; NULL: there are none */
	struct pmuk_group * __percpu *groups_shown;	/* pmuk_groups() of ->ctx */

	spinlock_t lock;		/* taken with interrupts off, as some probes run so */
	unsigned int nr_tasks __guarded_by(&lock);	/* tasks that have an entry */
	bool shown __guarded_by(&lock);	/* tasks point to their entries */
	struct pmuk_sched_group **groups __guarded_by(&lock);
	struct pmuk_sched_cgroup **cgroups __guarded_by(&lock);
	struct pmuk_sched_totals exited __guarded_by(&lock);	/* the sum of ended processes */
	unsigned int nr_groups __guarded_by(&lock);
	unsigned int nr_cgroups __guarded_by(&lock);
	size_t path_bytes __guarded_by(&lock);	/* the sizes of all cgroups' paths */
	struct pmuk_sched_reading *reading __guarded_by(&lock);	/* the current one, or NULL */
	u64 serial __guarded_by(&lock);	/* number of the latest reading */
	u64 unknown __guarded_by(&lock);	/* number of groups and cgroups without memory */
	/* Some entries still name an old cgroup, see pmuk_sched_move_rest(). */
	bool move_pending __guarded_by(&lock);
	unsigned int stretch;		/* ->lock writes: most entries of a stretch */
	unsigned int stretch_ns;	/* ->lock writes: longest time of a stretch */

	struct mutex on_lock;		/* taken to turn on or off, and to read */
	bool on __guarded_by(&on_lock);
	bool begun __guarded_by(&on_lock);	/* a CPU that comes online begins to account */
	u64 strays __guarded_by(&on_lock);	/* sum of the CPUs' ->strays, a second ago */
	u64 since __guarded_by(&on_lock);	/* when accounting began, CLOCK_MONOTONIC */
	bool lost __guarded_by(&on_lock);	/* counters were lost after the latest retry */
	unsigned int retry_after __guarded_by(&on_lock);	/* seconds between two retries */
	unsigned int retry_in __guarded_by(&on_lock);	/* seconds until the next retry */
	unsigned int nr_requested __guarded_by(&on_lock);
	struct pmuk_sched_event requested[PMUK_SCHED_EVENTS] __guarded_by(&on_lock);
	/* For each counter, the index of its event in ->requested. */
	u8 order[PMUK_SCHED_EVENTS] __guarded_by(&on_lock);
	int cpuhp;			/* const: the state of CPU hotplug */
	struct delayed_work watch;	/* runs once a second while ->on */
	struct work_struct move;	/* completes moves of tasks between cgroups */
};

extern struct pmuk_sched pmuk_sched;

/*
 * A flag in &pmuk_sched_task.delay: the task was throttled when it left its CPU, or was
 * runnable when it got its entry, and has not finished a slice since then.
 */
#define PMUK_SCHED_WAIT_FROZEN	BIT_ULL(63)

/* &pmuk_sched_task.key holds the address of the task_struct, and these flags in its low bits. */
#define PMUK_SCHED_INVALID_BIT	0	/* the counters missed some slice */
#define PMUK_SCHED_GROUPED_BIT	1	/* the task's process has a struct pmuk_sched_group */
#define PMUK_SCHED_FLAGS	7UL

/*
 * The entry of a task: its totals, in 64 bytes with two events. With the hook, the task_struct
 * points to the entry. Without it, a switch finds the entry by the address of the task_struct.
 * sched_process_free unlinks the entry before the task_struct is freed: so under ->lock, the
 * task_struct of an entry in a chain exists, and its name can be read. A switch may still walk over
 * an unlinked entry until RCU has freed it, and needs the first two fields: so the rcu_head takes
 * the place of the next two.
 */
struct pmuk_sched_task {
	struct pmuk_sched_task __rcu *next;	/* ->lock writes: the next entry of the chain */
	unsigned long key;		/* the address is const, flags change atomically */
	union {
		struct {
			u64 run;	/* owner: nanoseconds */
			/*
			 * Owner: the part of run_delay that is no wait. With
			 * PMUK_SCHED_WAIT_FROZEN, the wait until it was frozen.
			 */
			u64 delay;
		};
		struct rcu_head rcu;	/* in use once the entry has left its chain */
	};
	u32 reasons[PMUK_SCHED_TASK_REASONS];	/* owner: departures, by reason */
	u32 cgroup __guarded_by(&pmuk_sched.lock);	/* &pmuk_sched_cgroup.id */
	u64 counts[];			/* owner: counts, by event */
};

static_assert(sizeof(struct pmuk_sched_task) + 2 * sizeof(u64) == 64);

/*
 * Returns the task of an entry: NULL for the idle and stray entries of a CPU. A caller that follows
 * the pointer holds ->lock, and @t is in a chain, or the caller has just unlinked @t.
 */
static inline struct task_struct *pmuk_sched_task_of(const struct pmuk_sched_task *t)
{
	return (struct task_struct *)(t->key & ~PMUK_SCHED_FLAGS);
}

#ifdef CONFIG_SCHED_INFO
/* Returns the nanoseconds that the task has waited for CPUs since its fork, by the scheduler. */
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
 * Returns the nanoseconds that the task has waited although it could run. run_delay also grows
 * while the task is throttled, and the scheduler updates run_delay only when the task runs again.
 * The wait is therefore frozen from the throttling to the end of the task's next slice.
 */
static __always_inline u64 pmuk_sched_wait(const struct pmuk_sched_task *t,
					   const struct task_struct *p)
{
	u64 delay = READ_ONCE(t->delay);

	return delay & PMUK_SCHED_WAIT_FROZEN ? delay & ~PMUK_SCHED_WAIT_FROZEN :
						pmuk_sched_delay(p) - delay;
}

/*
 * Returns the first value of &pmuk_sched_task.delay. A wait that is under way began before the
 * totals did, and the scheduler adds it to run_delay as a whole, when it ends. So the wait begins
 * frozen, at 0. A sleeping task may still be on its run queue, and does not wait.
 */
static inline u64 pmuk_sched_first_delay(const struct task_struct *p)
{
	/* The scheduler stores sched_delayed plainly, and each value is right. */
	bool delayed = data_race(p->se.sched_delayed);
	bool waits = READ_ONCE(p->on_rq) && !delayed;

	return waits ? PMUK_SCHED_WAIT_FROZEN : pmuk_sched_delay(p);
}

static inline bool pmuk_sched_is_invalid(const struct pmuk_sched_task *t)
{
	return test_bit(PMUK_SCHED_INVALID_BIT, &t->key);
}

/*
 * A process that has, or had, more than one thread. ->lock guards all fields. A reading has copies
 * of groups, which need no lock.
 */
struct pmuk_sched_group {
	struct pmuk_sched_group *next;
	const struct signal_struct *signal;	/* key; exists as long as ->threads > 0 */
	u32 tgid;
	u32 threads;			/* tasks whose entries have PMUK_SCHED_GROUPED_BIT */
	u64 serial;			/* the reading for which ->sum and both flags are valid */
	bool shown;			/* the reading has a line of one of the threads */
	bool copied;			/* the reading has copied this group */
	struct pmuk_sched_totals ended;	/* the sum of threads that have exited */
	struct pmuk_sched_totals sum;	/* ->ended, and the threads that the reading has seen */
};

/*
 * A cgroup of the default hierarchy. Its totals are ->ended plus the totals of its present tasks.
 * When a task moves, its totals so far are added to the old cgroup's ->ended and subtracted from
 * the new one's: so a switch need not touch a cgroup. Readers sum up the hierarchy.
 */
struct pmuk_sched_cgroup {
	struct pmuk_sched_cgroup *next;	/* ->lock writes: the next cgroup of the chain */
	u32 id;				/* const: low half of ->full_id, see pmuk_sched_task */
	u64 full_id;			/* const */
	/* A cgroup holds one of its parent's references. */
	struct pmuk_sched_cgroup *parent __guarded_by(&pmuk_sched.lock);
	/* Tasks, cgroups below, and rmdir, which is still to come, hold one reference each. */
	u32 refs __guarded_by(&pmuk_sched.lock);
	/* The id of the parent, if the cgroup has ended during a reading, and ->parent is NULL. */
	u64 parent_id __guarded_by(&pmuk_sched.lock);
	/* The sum of its own tasks that have exited or moved, modulo 2^64. */
	struct pmuk_sched_totals ended __guarded_by(&pmuk_sched.lock);
	/* The sum of cgroups below that were removed. */
	struct pmuk_sched_totals removed __guarded_by(&pmuk_sched.lock);
	/* The next three fields are for the reading of this number. */
	u64 serial __guarded_by(&pmuk_sched.lock);
	bool copied __guarded_by(&pmuk_sched.lock);	/* the reading has copied this cgroup */
	/* ->ended, and the tasks that the reading has seen. */
	struct pmuk_sched_totals own __guarded_by(&pmuk_sched.lock);
	/* The value of ->removed when the reading first touched the cgroup. */
	struct pmuk_sched_totals tree __guarded_by(&pmuk_sched.lock);
	char path[];			/* const */
};

/* A copy of a task in one reading, and of its name, as the task may exit before it is shown. */
struct pmuk_sched_task_copy {
	u32 pid, tgid;
	u64 cgroup;
	char comm[TASK_COMM_LEN];
	struct pmuk_sched_totals totals;
};

/* A copy of a cgroup in one reading. */
struct pmuk_sched_line {
	u64 id, parent;
	struct pmuk_sched_totals own, tree;
	struct pmuk_sched_line *parent_line;	/* ->tree is to be added there; NULL: no more */
	unsigned int pending;	/* child lines that have not been added to ->tree yet */
	bool gone;		/* removed during the reading: only its ancestors show its totals */
	const char *path;	/* in &pmuk_sched_reading.paths */
};

/*
 * A reading of all tasks or all cgroups. The walk drops ->lock again and again, so that interrupts
 * are never off for long: chains below ->next have been read, the others are ahead. The result must
 * not miss or double anything when a task, group or cgroup ends or moves meanwhile. Therefore,
 * before ->ended of a group or cgroup changes during a reading, pmuk_sched_touch_group() or
 * pmuk_sched_touch_cgroup() starts its sums of this reading from the old ->ended. If the walk has
 * not come to a task that leaves, the task's totals are added to these sums, too.
 */
struct pmuk_sched_reading {
	u32 next __guarded_by(&pmuk_sched.lock);	/* the next chain of tasks to read */
	unsigned int nr_events;		/* the number of valid counts in all totals */
	bool full;			/* a table below has too few entries: read again */
	/* The sum of tasks that exited, or had been reaped, before the walk came to them. */
	struct pmuk_sched_totals exited __guarded_by(&pmuk_sched.lock);
	struct pmuk_sched_totals strays;	/* the sum of the stray entries of all CPUs */
	struct pmuk_sched_task_copy *tasks;
	unsigned int nr, room;		/* entries of ->tasks in use, and allocated */
	struct pmuk_sched_group *groups;
	unsigned int nr_groups, room_groups;
	struct pmuk_sched_line *lines;
	unsigned int nr_lines, room_lines;
	char *paths;			/* the paths of ->lines, one after the other */
	size_t used_paths, room_paths;	/* bytes of ->paths in use, and allocated */
	/* Groups and cgroups that have ended during the reading. */
	struct pmuk_sched_group *dead_groups __guarded_by(&pmuk_sched.lock);
	struct pmuk_sched_cgroup *dead_cgroups __guarded_by(&pmuk_sched.lock);
};

/* Copies @path into ->paths. Returns the copy, or NULL if there is no room. */
static inline const char *pmuk_sched_copy_path(struct pmuk_sched_reading *r, const char *path)
{
	size_t size = strlen(path) + 1;
	char *copy = r->paths + r->used_paths;

	if (size > r->room_paths - r->used_paths)
		return NULL;
	r->used_paths += size;
	return memcpy(copy, path, size);
}

/*
 * A stretch is the work that is done without releasing ->lock, some ten microseconds: the walk
 * releases ->lock after the chain in which it reaches this number of tasks, groups or cgroups, or
 * after this number of chains.
 */
#define PMUK_SCHED_STRETCH		64
#define PMUK_SCHED_STRETCH_CHAINS	256

#define PMUK_SCHED_GROUP_BITS		12
#define PMUK_SCHED_GROUP_CHAINS		BIT(PMUK_SCHED_GROUP_BITS)
#define PMUK_SCHED_CGROUP_BITS		15
#define PMUK_SCHED_CGROUP_CHAINS	BIT(PMUK_SCHED_CGROUP_BITS)

/*
 * A fork or an exit walks a chain with interrupts off, and any user may create cgroups: so the
 * table is large enough for chains to stay short.
 */
static inline u32 pmuk_sched_cgroup_chain(u32 id)
{
	return hash_32(id, PMUK_SCHED_CGROUP_BITS);
}

/* Histograms have a bucket for 0, and a bucket for each power of two in 64 bits. */
#define PMUK_SCHED_BUCKETS	65
#define PMUK_SCHED_ZERO		63	/* see pmuk_sched_time_bucket() */

/* User space sees only this many buckets. The last shown bucket includes all higher ones. */
#define PMUK_SCHED_TIMES	40
#define PMUK_SCHED_IPCS		16

/* The stream of one CPU: its switches go to ->buffer, as records or as packets. */
struct pmuk_sched_sink {
	struct pmuk_buffer *buffer;	/* const */
	bool raw;			/* const: packets in the AUX area, not records */
	u64 switches;			/* owner: switches since the stream began */

	/* Only packets use these fields. The owner writes them, but for ->size. */
	struct pmuk_aux_handle part;	/* the open part of the AUX area */
	u8 *at;				/* the place of the next packet; NULL: no part is open */
	u8 *end;			/* the end of the part */
	u64 size;			/* const: bytes of the ring or of the AUX area */
	u64 time;			/* the end of the slice in the latest packet */
	u32 pid;			/* the task that has run since then */
	bool marked;			/* the open part already has its first mark */
	u64 lost;			/* switches for which there was no room */
};

/* A finished slice, from which raw.c makes a packet. */
struct pmuk_sched_slice {
	u64 time;			/* the end of the slice */
	u64 run;
	u64 wait;
	u64 counts[2];
	u32 prev_pid;
	u32 next_pid;
	u8 misc;
};

/* &pmuk_sched_cpu.counted: the state of the CPU's counters when they were last read. */
enum {
	PMUK_SCHED_UNCOUNTED,		/* the counters are lost */
	PMUK_SCHED_RESUMED,		/* the counters are back, but missed a part of this slice */
	PMUK_SCHED_COUNTED,		/* the counters count */
};

/* The state of a CPU. Owner: that CPU, with interrupts off. */
struct pmuk_sched_cpu {
	struct pmuk_sched_task *task;	/* owner: the running task; NULL: off, or in a switch */
	/*
	 * Owner: the counters that a switch reads together (struct pmuk_group; no relation to
	 * struct pmuk_sched_group, a process). If this slice must not end in the fast path, and
	 * while ->task is NULL, it is a group whose reads are never fast.
	 */
	struct pmuk_group *const *group;
	u64 start;			/* owner: the CPU's clock at the latest switch or sync */
	u64 delay;			/* owner: run_delay of ->task before it got the CPU */
	u64 base[PMUK_SCHED_EVENTS];	/* owner: counts at ->start */
	unsigned long idle_since;	/* owner: jiffies when the idle task came */
	u64 idle_reported __guarded_by(&pmuk_sched.on_lock);	/* longest idle time shown so far */
	u8 counted;			/* owner: PMUK_SCHED_UNCOUNTED etc. */
	/*
	 * Owner: accounting began while this CPU was idle. The run queue's clock is rarely updated
	 * in idle, so ->start is the time of an older update.
	 */
	bool began_idle;
	bool partial;			/* owner: a sync in this slice found the counters lost */
	bool invalid;			/* owner: the counters missed some slice */
	/* Owner: the counts of the slice that ends; in the fast path first the counters' values. */
	u64 slice[PMUK_SCHED_EVENTS];
	struct pmuk_sched_sink __rcu *sink;	/* stream.c writes, under pmuk_sched_sinks */

	u64 synced_run;			/* owner: time of this slice that syncs have accounted */
	u64 synced_counts[PMUK_SCHED_EVENTS];	/* owner: counts that they have accounted */
	u64 origin;			/* owner: ->start - ->origin is all accounted time */
	u64 origins[PMUK_SCHED_EVENTS];	/* owner: ->base - ->origins are all accounted counts */
	u64 wait;			/* owner: the sum of the waits before slices on this CPU */
	u64 strays;			/* owner: slices of tasks that have no entry */
	u64 slow;			/* owner: switches in the slow path */
	u64 slow_reads;			/* owner: other switches that were not read in line */
	/* Owner: a histogram for each reason that tasks count, and one for all other reasons. */
	u64 slices[PMUK_SCHED_TASK_REASONS + 1][PMUK_SCHED_BUCKETS];
	/* Owner: departures for the reasons that tasks do not count. */
	u64 other_reasons[PMUK_SCHED_CPU_REASONS];
	u64 waits[PMUK_SCHED_BUCKETS];	/* owner: histogram of the waits before slices */
	u64 ipcs[PMUK_SCHED_BUCKETS];	/* owner: histogram of slices by instructions per cycle */

	/* Two struct pmuk_sched_task, each followed by the counts of its events. */
	u64 idle[DIV_ROUND_UP(sizeof(struct pmuk_sched_task), 8) + PMUK_SCHED_EVENTS];
	u64 stray[DIV_ROUND_UP(sizeof(struct pmuk_sched_task), 8) + PMUK_SCHED_EVENTS];

	u64 since;			/* owner: pmuk_local_since() at the latest read */
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

DECLARE_PER_CPU(struct pmuk_sched_cpu, pmuk_sched_cpus);
DECLARE_PER_CPU(bool, pmuk_sched_up);	/* owner: from pmuk_sched_online() to _offline() */

/*
 * The index of a time's bucket is its number of leading zeros. An index that rises with the time
 * would take two more instructions. The bucket of 0 ns is PMUK_SCHED_ZERO; PMUK_SCHED_ZERO - i
 * begins at 2^(i - 1) nanoseconds. @ns is below 2^63.
 */
static __always_inline unsigned int pmuk_sched_time_bucket(u64 ns)
{
	return __builtin_clzll(ns << 1 | 1);
}

/*
 * Bucket i begins at 2^(i - 9) instructions per cycle; bucket 0 is for less than 2^-8. Instead of a
 * division: a quotient has as many bits as its dividend has more than its divisor, or one more.
 */
static __always_inline unsigned int pmuk_sched_ipc_bucket(u64 cycles, u64 insns)
{
	u64 dividend = insns << 8, divisor = cycles + !cycles;
	int more = __fls(dividend | 1) - __fls(divisor);

	if (unlikely(more < 0))
		return 0;
	return more + (dividend >> more >= divisor);
}

/* A task_struct has some KiB: shifted by 12, neighbouring addresses fall into different chains. */
static __always_inline u32 pmuk_sched_chain(const struct task_struct *p)
{
	return ((unsigned long)p >> 12) & pmuk_sched.mask;
}

/*
 * Returns the entry of @p, or NULL if it has none. The caller holds ->lock, or has preemption off
 * for RCU.
 */
static __always_inline struct pmuk_sched_task *pmuk_sched_find(const struct task_struct *p)
{
	struct pmuk_sched_task *t = rcu_dereference_sched(pmuk_sched.chains[pmuk_sched_chain(p)]);

	while (t && ((READ_ONCE(t->key) ^ (unsigned long)p) & ~PMUK_SCHED_FLAGS))
		t = rcu_dereference_sched(t->next);
	return t;
}

/* Returns whether there is a reading that has not come to @p yet. */
static inline bool pmuk_sched_is_ahead(const struct task_struct *p) __must_hold(&pmuk_sched.lock)
{
	return pmuk_sched.reading && pmuk_sched_chain(p) >= pmuk_sched.reading->next;
}

/* switch.c */
void pmuk_sched_on_switch(bool preempt, struct task_struct *prev, struct task_struct *next,
			  unsigned int prev_state, u64 clock);
void pmuk_sched_switch_probe(void *data, bool preempt, struct task_struct *prev,
			     struct task_struct *next, unsigned int prev_state);
void pmuk_sched_reset_cpu(struct pmuk_sched_cpu *c);
void pmuk_sched_begin(void *data);
void pmuk_sched_end(void *data);
void pmuk_sched_sync(void *data);
void pmuk_sched_sync_all(void);
bool pmuk_sched_is_idle(int cpu);
bool pmuk_sched_is_isolated(int cpu);
u64 pmuk_sched_idle_so_far(const struct pmuk_sched_cpu *c);
u64 pmuk_sched_sum_of(const u64 __percpu *number);
void pmuk_sched_cpu_totals(struct pmuk_sched_cpu *c, struct pmuk_sched_totals *sum);

/* state.c */
void pmuk_sched_note_stretch(unsigned int seen, u64 began) __must_hold(&pmuk_sched.lock);
void pmuk_sched_touch_group(struct pmuk_sched_group *g) __must_hold(&pmuk_sched.lock);
void pmuk_sched_touch_cgroup(struct pmuk_sched_cgroup *g) __must_hold(&pmuk_sched.lock);

/* totals.c */
void pmuk_sched_add_task(struct pmuk_sched_totals *sum, const struct pmuk_sched_task *t);
void pmuk_sched_add(struct pmuk_sched_totals *sum, const struct pmuk_sched_totals *other);

/* tasks.c */
int pmuk_sched_tasks_init(void);
void pmuk_sched_tasks_exit(void);
void pmuk_sched_tasks_seed(void);
void pmuk_sched_tasks_hide(void);
void pmuk_sched_newtask(void *data, struct task_struct *p, u64 clone_flags);
void pmuk_sched_free(void *data, struct task_struct *p);
size_t pmuk_sched_task_size(void);
struct pmuk_sched_group *pmuk_sched_group_find(const struct task_struct *p)
	__must_hold(&pmuk_sched.lock);

/* cgroups.c */
int pmuk_sched_cgroups_init(void);
void pmuk_sched_cgroups_exit(void);
void pmuk_sched_cgroups_seed(void);
void pmuk_sched_cgroup_mkdir(void *data, struct cgroup *cgrp, const char *path);
void pmuk_sched_cgroup_rmdir(void *data, struct cgroup *cgrp, const char *path);
void pmuk_sched_cgroup_attach(void *data, struct cgroup *dst, const char *path,
			      struct task_struct *leader, bool threadgroup);
struct pmuk_sched_cgroup *pmuk_sched_cgroup_find(u32 id) __must_hold(&pmuk_sched.lock);
u32 pmuk_sched_cgroup_join(struct task_struct *p) __must_hold(&pmuk_sched.lock);
void pmuk_sched_cgroup_leave(const struct pmuk_sched_task *t) __must_hold(&pmuk_sched.lock);
void pmuk_sched_cgroup_move(struct task_struct *p) __must_hold(&pmuk_sched.lock);

/* counters.c */
int pmuk_sched_parse(const char *names, struct pmuk_sched_event *events);
int pmuk_sched_counters_start(struct pmuk_sched *s) __must_hold(&s->on_lock);
void pmuk_sched_counters_stop(struct pmuk_sched *s) __must_hold(&s->on_lock);

/* reading.c */
int pmuk_sched_read_tasks(struct pmuk_sched_reading *r) __must_hold(&pmuk_sched.on_lock);
int pmuk_sched_read_cgroups(struct pmuk_sched_reading *r) __must_hold(&pmuk_sched.on_lock);
void pmuk_sched_reading_free(struct pmuk_sched_reading *r);
void pmuk_sched_move_rest(struct pmuk_sched *s) __must_hold(&s->on_lock);

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
