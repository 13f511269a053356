/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contexts: counters of a whole target - a CPU, many, a task - with a buffer on each CPU and
 * messages to one consumer. The counters are in event sets that count one after the other; the
 * time for which a set counts is its turn. Consumers include linux/pmu_kapi.h, which includes
 * this header.
 *
 * The calls keep the verbs of perfmon2's KAPI of 2006, pfmk_ being pmuk_ here.
 */
#ifndef _LINUX_PMU_KAPI_CONTEXT_H
#define _LINUX_PMU_KAPI_CONTEXT_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/types.h>
#include <linux/uuid.h>

struct completion;
struct cpumask;
struct module;
struct perf_sample_data;
struct pmuk_context;
struct pmuk_counter;
struct pmuk_sample;
struct pmuk_value;
struct task_struct;

/* Bytes of a context's name, with the 0 at its end. */
#define PMUK_NAME_LEN		32

/* An event set has at most this many counters. A counter's number in its set is below this. */
#define PMUK_SET_COUNTERS	32

/**
 * enum pmuk_context_flags - how a context behaves
 * @PMUK_CTX_MASK: when a counter with PMUK_PMD_NOTIFY overflows, all counters of the context on
 *	that CPU or task stop until pmuk_restart() or pmuk_restart_cpu(), or until that CPU goes
 *	offline and comes back, or the context gives way there and comes back. Not for
 *	PMUK_TARGET_TREE
 * @PMUK_CTX_YIELD: if flexible events wait for a register on a CPU, the context gives way to them
 *	there, as it would to a context of higher rank, and tries again 10 to 60 s later. The
 *	context does not give way like this to events of contexts. For PMUK_RANK_BACKGROUND, on
 *	CPUs; needs a change to perf core
 * @PMUK_CTX_RESERVE: while the context is loaded and stopped, it keeps the registers that the
 *	pinned counters of its next set will need. A context of another rank that finds no room may
 *	borrow these registers. A borrower of lower rank gives way when the reserving context
 *	starts; a borrower of higher rank does not. On CPUs; not with PMUK_CTX_YIELD
 * @PMUK_CTX_EXPORT: user space that has CAP_PERFMON may read the context's buffers through
 *	/dev/pmuk, by the context's name, see uapi/linux/pmu_kapi.h. The context has a name that no
 *	other exported context has, perf's records with PERF_SAMPLE_IDENTIFIER, TID and TIME, with
 *	PERF_SAMPLE_READ also PERF_FORMAT_ID, but without REGS_INTR, and buffers with data pages,
 *	PMUK_BUFFER_DROP and PMUK_BUFFER_USER_TAIL, without an AUX area and without a wait queue of
 *	the consumer's
 */
enum pmuk_context_flags {
	PMUK_CTX_MASK		= BIT(0),
	PMUK_CTX_YIELD		= BIT(1),
	PMUK_CTX_RESERVE	= BIT(2),
	PMUK_CTX_EXPORT		= BIT(3),
};

/**
 * enum pmuk_rank - which context gives way if the pinned counters of all do not fit on a CPU
 * @PMUK_RANK_BACKGROUND: the context gives way to normal and critical ones
 * @PMUK_RANK_NORMAL: the context gives way to critical ones
 * @PMUK_RANK_CRITICAL: the context gives way to none
 */
enum pmuk_rank {
	PMUK_RANK_BACKGROUND	= -1,
	PMUK_RANK_NORMAL	= 0,
	PMUK_RANK_CRITICAL	= 1,
};

/**
 * struct pmuk_context_attr - what a context is to be like
 * @name: the context's name for users: 1 to 31 printable ASCII characters without
 *	blanks; copied. NULL: "unnamed". Several contexts may have one name, but exported ones have
 *	different names
 * @flags: enum pmuk_context_flags
 * @rank: if pinned counters of this context find no room on a CPU, contexts of lower rank that hold
 *	pinned counters of the same PMU there give way, one by one, until there is room. They get a
 *	PMUK_MSG_COUNTER_LOST, keep their counts, and count again on that CPU when there is room.
 *	Contexts on tasks neither give way nor make others do so
 * @limit_ns: how many nanoseconds of a second the overflows of the context may take on a CPU, or in
 *	the task, at most NSEC_PER_SEC; 0: no limit. Not for PMUK_TARGET_TREE. A second begins with
 *	an overflow, and the first overflow after its end begins the next one. The time of an
 *	overflow is that of the format's handler, and of the action that the handler asks for, but
 *	not what perf core and the PMU's driver take before that. The overflow with which a second
 *	exceeds the limit pauses all counters of the context there, and posts a PMUK_MSG_LIMIT.
 *	The counters count again after any pmuk_restart(), after pmuk_start(), and when the CPU has
 *	been offline or the context has given way. If the second is not over then, the next
 *	overflow pauses them again
 * @buffer: what each CPU's buffer is to be like. Without data pages the context has no buffers.
 *	The completion in it must be NULL, as messages report wakeups. On a task, each possible CPU
 *	has a buffer, as the task may run on any of them
 * @format: the uuid of the format that handles overflows, see pmuk_register_format();
 *	NULL: perf's records
 * @format_arg: the format's argument, of a type that the format defines; copied. For perf's
 *	records a struct pmuk_perf_format
 * @format_arg_size: bytes of @format_arg
 * @completion: the caller's, completed for each message, or NULL. The caller initialises it. The
 *	caller or pmuk_read() waits for it; the caller may also complete it for reasons of its
 *	own. Must outlive the context
 */
struct pmuk_context_attr {
	const char *name;
	u32 flags;
	enum pmuk_rank rank;
	u64 limit_ns;
	struct pmuk_buffer_attr buffer;
	const uuid_t *format;
	const void *format_arg;
	size_t format_arg_size;
	struct completion *completion;
};

/**
 * struct pmuk_perf_format - what perf's records are to hold
 * @sample_type: as &pmuk_attr.sample_type with a buffer
 * @read_format: as &pmuk_attr.read_format. The count goes on when a CPU comes back online, or the
 *	context comes back after it gave way; the times begin at 0 again
 */
struct pmuk_perf_format {
	u64 sample_type;
	u64 read_format;
};

/**
 * enum pmuk_target_type - what a context can be loaded on
 * @PMUK_TARGET_CPU: one CPU
 * @PMUK_TARGET_CPUS: some CPUs, or all; CPUs that come online later join
 * @PMUK_TARGET_TASK: a task, wherever it runs
 * @PMUK_TARGET_TREE: a task, and all tasks that it forks from then on
 */
enum pmuk_target_type {
	PMUK_TARGET_CPU,
	PMUK_TARGET_CPUS,
	PMUK_TARGET_TASK,
	PMUK_TARGET_TREE,
};

/**
 * struct pmuk_target - where a context counts
 * @type: which kind
 * @cpu: the CPU of PMUK_TARGET_CPU
 * @cpus: the CPUs of PMUK_TARGET_CPUS, copied; NULL: all
 * @task: the task of PMUK_TARGET_TASK or PMUK_TARGET_TREE
 * @failed_cpu: written if pmuk_load_context() or pmuk_start() fails because a counter could not be
 *	placed: the CPU, or -1 for a task
 * @failed_set: written with @failed_cpu: the event set of that counter
 * @failed_num: written with @failed_cpu: the counter's number in that set
 */
struct pmuk_target {
	enum pmuk_target_type type;
	int cpu;
	const struct cpumask *cpus;
	struct task_struct *task;
	int failed_cpu;
	u16 failed_set;
	u16 failed_num;
};

/**
 * struct pmuk_pmc - which event a counter counts
 * @set: the event set
 * @num: the counter's number in it, below PMUK_SET_COUNTERS
 * @type: as &pmuk_attr.type
 * @config: as &pmuk_attr.config
 * @config1: as &pmuk_attr.config1
 * @config2: as &pmuk_attr.config2
 * @config3: as &pmuk_attr.config3
 * @precise_ip: as &pmuk_attr.precise_ip. Without a period, the load fails
 * @branch_sample_type: as &pmuk_attr.branch_sample_type, but without effect if the format's
 *	sample_type has no PERF_SAMPLE_BRANCH_STACK. If 0, samples of this counter have no branches,
 *	and its records no hw_idx
 * @sample_regs_intr: as &pmuk_attr.sample_regs_intr, but without effect if the format's sample_type
 *	has no PERF_SAMPLE_REGS_INTR. If 0, the records of this counter have no such registers, only
 *	PERF_SAMPLE_REGS_ABI_NONE
 * @sample_regs_user: as @sample_regs_intr, for PERF_SAMPLE_REGS_USER
 * @flags: as &pmuk_attr.flags, without PMUK_INHERIT: the target decides whether children count.
 *	PMUK_CALLCHAIN_USER has no effect if the format's sample_type has no PERF_SAMPLE_CALLCHAIN
 * @max_stack: as &pmuk_attr.max_stack, but without effect if the format's sample_type has no
 *	PERF_SAMPLE_CALLCHAIN
 * @aux_sample_size: as &pmuk_attr.aux_sample_size, but without effect if the format's sample_type
 *	has no PERF_SAMPLE_AUX. If 0, the slices of this counter's records are empty
 * @ret: 0, or -errno if this entry has failed
 */
struct pmuk_pmc {
	u16 set;
	u16 num;
	u32 type;
	u64 config;
	u64 config1;
	u64 config2;
	u64 config3;
	u64 branch_sample_type;
	u64 sample_regs_intr;
	u64 sample_regs_user;
	u32 flags;
	u32 precise_ip;
	u32 max_stack;
	u32 aux_sample_size;
	int ret;
};

/**
 * enum pmuk_pmd_flags - what an overflow of a counter does
 * @PMUK_PMD_NOTIFY: it posts a PMUK_MSG_OVERFLOW
 */
enum pmuk_pmd_flags {
	PMUK_PMD_NOTIFY		= BIT(0),
};

/**
 * struct pmuk_pmd - how a counter counts
 * @set: the event set
 * @num: the counter's number in it
 * @flags: enum pmuk_pmd_flags
 * @value: the counter's count, summed over all CPUs, goes on from this value
 * @short_reset: the period: events until the counter overflows; 0: as @long_reset. If both are 0,
 *	the counter does not overflow
 * @long_reset: the period that pmuk_restart() begins: the first overflow after a restart comes
 *	after so many events, and later ones after @short_reset. 0: as @short_reset. If the turn of
 *	a task's set ends while that first overflow is pending, see &pmuk_set_info.replayed, the
 *	period after the overflow is long, too
 * @freq: as &pmuk_attr.freq, with @short_reset as the first and shortest period: overflows per
 *	second of the counter's time on the PMU; 0: the period stays. Needs a @short_reset from 2 to
 *	2^48, and no @long_reset or @random_mask. Each CPU adapts its own period, from @short_reset
 *	on at each pmuk_start(). pmuk_restart() and @reset_peers of other counters leave the period
 *	alone. A counter that waits for pmuk_restart() and is not paused still interrupts at @freq,
 *	and these overflows are dropped. With PMUK_CTX_EXPORT, records need PERF_SAMPLE_PERIOD. Not
 *	for PMUK_TARGET_TREE
 * @random_mask: as &pmuk_attr.random_mask, for both periods
 * @random_seed: start of the random sequence. Each CPU has a sequence of its own
 * @reset_peers: a bit for each counter of the set that begins a new period when this counter
 *	overflows. If the overflow comes as an NMI of this counter's PMU, only peers of the same
 *	PMU do so. If it was pending at the end of a turn, a task's peers do not
 * @sample_peers: a bit for each counter of the set whose value this counter's records have, too,
 *	with PERF_SAMPLE_READ and PERF_FORMAT_GROUP; at most PMUK_PEERS_MAX, and not this counter
 * @switch_overflows: after this many overflows of this counter in a turn, the next set's turn
 *	comes; 0: the counter's overflows do not end the turn
 * @cookie: the consumer's own number, in records with PMUK_SAMPLE_COOKIE, and for formats
 * @ret: 0, or -errno if this entry has failed
 */
struct pmuk_pmd {
	u16 set;
	u16 num;
	u32 flags;
	u64 value;
	u64 short_reset;
	u64 long_reset;
	u32 freq;
	u32 random_mask;
	u64 random_seed;
	u32 reset_peers;
	u32 sample_peers;
	u32 switch_overflows;
	u64 cookie;
	int ret;
};

/**
 * struct pmuk_pmd_read - what a counter has counted
 * @set: the event set
 * @num: the counter's number in it
 * @cpu: read the count of this CPU; -1: the sum of all CPUs, and &pmuk_pmd.value
 * @count: events counted: with a CPU, since the context was loaded or the value was written; with
 *	-1, on earlier targets, too
 * @time_enabled: nanoseconds for which the counter was to count; with @cpu -1 the sum of all CPUs
 * @time_running: nanoseconds of these for which the counter was on the PMU
 * @ret: 0, or -errno if this entry has failed
 */
struct pmuk_pmd_read {
	u16 set;
	u16 num;
	int cpu;
	u64 count;
	u64 time_enabled;
	u64 time_running;
	int ret;
};

/**
 * struct pmuk_set_desc - an event set
 * @id: its id; sets take turns in this order
 * @timeout: nanoseconds after which its turn ends, at least PMUK_SET_TIMEOUT_MIN; 0: time does
 *	not end the turn
 * @ret: 0, or -errno if this entry has failed
 */
struct pmuk_set_desc {
	u16 id;
	u64 timeout;
	int ret;
};

#define PMUK_SET_TIMEOUT_MIN	100000

/**
 * struct pmuk_set_info - how an event set has done
 * @id: its id
 * @cpu: read about this CPU; -1: all CPUs together
 * @runs: how often its turn has come
 * @active_duration: nanoseconds that its turns have taken
 * @replayed: overflows that were pending when a turn ended, handled when the next began
 * @overflowed: a bit for each counter that has overflowed in the latest turn
 * @switch_max: nanoseconds that the longest exchange of event sets has taken there
 * @late_max: nanoseconds, the longest from when a turn was due until it had begun there
 * @ret: 0, or -errno if this entry has failed
 */
struct pmuk_set_info {
	u16 id;
	int cpu;
	u64 runs;
	u64 active_duration;
	u64 replayed;
	u32 overflowed;
	u64 switch_max;
	u64 late_max;
	int ret;
};

/**
 * enum pmuk_msg_kind - what a message reports
 * @PMUK_MSG_OVERFLOW: a counter with PMUK_PMD_NOTIFY has overflowed
 * @PMUK_MSG_WATERMARK: a buffer has passed its watermark
 * @PMUK_MSG_LOST: records were lost; the count is of records. The first of some is reported at
 *	once, and the others at the next watermark, at the stop, or, while the context is started, a
 *	tenth of a second later
 * @PMUK_MSG_SWITCH: a counter's overflows have ended a turn, and the next event set's has begun
 * @PMUK_MSG_COUNTER_LOST: (1) a pinned counter was pushed off its PMU less than two seconds ago.
 *	If contexts of lower rank are on that CPU, pmuk takes the counter back from them, and posts
 *	PMUK_MSG_CPU_ONLINE if it could. Or (2) the context has given way on a CPU. Or (3) a counter
 *	found no room on a CPU that came online. After (2) and (3), no counter of the context counts
 *	on that CPU before PMUK_MSG_CPU_ONLINE
 * @PMUK_MSG_CPU_ONLINE: a CPU of the target has come online, or has room again, and counts
 * @PMUK_MSG_CPU_OFFLINE: a CPU of the target goes offline. Its counts stay
 * @PMUK_MSG_EXIT: the target's task has exited, or it has executed a program that others may not
 *	watch, such as one that is set-user-ID: its counters count no more, but those of its
 *	children do. Reported less than two seconds later, but with PMUK_TARGET_TREE not for such a
 *	program if the task gets another event of perf before
 * @PMUK_MSG_PMU_GONE: the PMU of a counter was unregistered; reported less than two seconds later
 * @PMUK_MSG_AUX: an AUX area has passed its watermark, has no room, or was truncated
 * @PMUK_MSG_AUX_LOST: data for an AUX area were truncated; the count is of how often
 * @PMUK_MSG_LIMIT: in one second, overflows on a CPU or in the task have taken longer than
 *	&pmuk_context_attr.limit_ns, which says how long the counters there are paused
 * @PMUK_MSG_KINDS: the number of kinds
 */
enum pmuk_msg_kind {
	PMUK_MSG_OVERFLOW,
	PMUK_MSG_WATERMARK,
	PMUK_MSG_LOST,
	PMUK_MSG_SWITCH,
	PMUK_MSG_COUNTER_LOST,
	PMUK_MSG_CPU_ONLINE,
	PMUK_MSG_CPU_OFFLINE,
	PMUK_MSG_EXIT,
	PMUK_MSG_PMU_GONE,
	PMUK_MSG_AUX,
	PMUK_MSG_AUX_LOST,
	PMUK_MSG_LIMIT,
	PMUK_MSG_KINDS,
};

/* &pmuk_msg.by of a context with PMUK_CTX_YIELD that has given way to events of others */
#define PMUK_BY_PERF	U64_MAX

/**
 * struct pmuk_msg - something has happened
 * @kind: what has happened
 * @cpu: where
 * @count: how often, since the latest message of this kind and CPU was read
 * @counters: a bit for each counter to which this has happened. If a counter overflows while a
 *	message is read, its bit may be in that message and its overflow in the next @count
 * @set: the event set to which this has happened last
 * @by: the context to which this one has given way, by its id in debugfs, or PMUK_BY_PERF; if there
 *	are several, the latest. 0 if this context has not given way, and in messages of other kinds
 */
struct pmuk_msg {
	enum pmuk_msg_kind kind;
	int cpu;
	u64 count;
	u32 counters;
	u16 set;
	u64 by;
};

/**
 * enum pmuk_format_action - what is to become of an overflow
 * @PMUK_FORMAT_NOTIFY: post a PMUK_MSG_OVERFLOW
 * @PMUK_FORMAT_RESET: the counter goes on with its short reset. Without this, it does
 *	not overflow again before pmuk_restart()
 * @PMUK_FORMAT_MASK: all counters of the CPU or task stop until pmuk_restart()
 *
 * With PMUK_TARGET_TREE each overflow is reset, and none masks.
 */
enum pmuk_format_action {
	PMUK_FORMAT_NOTIFY	= BIT(0),
	PMUK_FORMAT_RESET	= BIT(1),
	PMUK_FORMAT_MASK	= BIT(2),
};

/**
 * struct pmuk_format_event - an overflow, as a format sees it
 * @buffer: this CPU's buffer, or NULL
 * @area: this CPU's area, of as many bytes as &pmuk_format.getsize has returned, or NULL
 * @cpu: this CPU
 * @set: the event set
 * @num: the counter's number in it
 * @cookie: &pmuk_pmd.cookie
 * @notify: the counter has PMUK_PMD_NOTIFY
 * @mask: the counter has PMUK_PMD_NOTIFY, and the context has PMUK_CTX_MASK
 * @sample: what is known of the overflow
 * @counter: the counter that has overflowed. The handler may make those calls on it that are
 *	allowed in NMI, but must not destroy it: the context does that. If the handler sets a
 *	period by pmuk_counter_set_period(), and returns PMUK_FORMAT_RESET, this CPU keeps that
 *	period until the context is started again, or the counter is reset as a peer. If a
 *	task's overflow was pending at the end of a turn, mostly another task calls the handler
 *	later. Local reads, pauses, resumes and new periods then return an error
 */
struct pmuk_format_event {
	struct pmuk_buffer *buffer;
	void *area;
	int cpu;
	u16 set;
	u16 num;
	u64 cookie;
	bool notify;
	bool mask;
	const struct pmuk_sample *sample;
	struct pmuk_counter *counter;
	/* private: for perf's records */
	const struct perf_sample_data *data;
};

/**
 * struct pmuk_format - what handles the overflows of a context
 * @name: its name, for people
 * @uuid: contexts choose the format by this
 * @owner: THIS_MODULE: the module stays loaded while a context uses the format. NULL if the same
 *	module creates the contexts, too: with THIS_MODULE, its contexts would keep it from being
 *	unloaded. Such a module closes its contexts and then calls pmuk_unregister_format(), which
 *	waits for them
 * @sample_type: what handlers want to find in each struct pmuk_sample, as
 *	&pmuk_attr.sample_type
 * @validate: checks the argument of a new context, and returns 0 or -errno. May be NULL if the
 *	format has no argument. May sleep
 * @getsize: returns how many bytes each CPU's area is to have; NULL: no area. May sleep
 * @init: initialises a CPU's zeroed area before the first overflow is handled on that CPU, and
 *	returns 0 or -errno. May sleep; may be NULL
 * @handler: handles an overflow, and returns enum pmuk_format_action. Runs in NMI where the PMU
 *	interrupts by NMI. Runs on one CPU at a time for each area, but may interrupt itself
 * @restart: called when pmuk_restart() or pmuk_restart_cpu() is about to restart a CPU. May
 *	sleep; may be NULL
 * @exit: called before a CPU's area is freed, after the last handler. May sleep; may be NULL
 */
struct pmuk_format {
	const char *name;
	uuid_t uuid;
	struct module *owner;
	u64 sample_type;
	int (*validate)(const void *arg, size_t size, const struct pmuk_context_attr *attr);
	size_t (*getsize)(const void *arg, size_t size);
	int (*init)(void *area, int cpu, const void *arg, size_t size);
	u32 (*handler)(const struct pmuk_format_event *event);
	void (*restart)(void *area, int cpu);
	void (*exit)(void *area, int cpu);

	/* private: */
	struct list_head node;	/* in the registry, whose lock is held to write ->leaving, too */
	atomic_t users;		/* contexts */
	atomic_t open;		/* contexts that are being created, or are not being closed */
	bool leaving;		/* takes no more contexts */
};

struct pmuk_context *pmuk_create_context(const struct pmuk_context_attr *attr);
int pmuk_close(struct pmuk_context *ctx);
int pmuk_close_deferred(struct pmuk_context *ctx, struct completion *done);
int pmuk_write_pmcs(struct pmuk_context *ctx, struct pmuk_pmc *req, int count);
int pmuk_write_pmds(struct pmuk_context *ctx, struct pmuk_pmd *req, int count);
int pmuk_read_pmds(struct pmuk_context *ctx, struct pmuk_pmd_read *req, int count);
int pmuk_load_context(struct pmuk_context *ctx, struct pmuk_target *target);
int pmuk_unload_context(struct pmuk_context *ctx);
int pmuk_start(struct pmuk_context *ctx, struct pmuk_target *failed);
int pmuk_stop(struct pmuk_context *ctx);
int pmuk_restart(struct pmuk_context *ctx);
int pmuk_restart_cpu(struct pmuk_context *ctx, int cpu);
int pmuk_create_evtsets(struct pmuk_context *ctx, struct pmuk_set_desc *req, int count);
int pmuk_delete_evtsets(struct pmuk_context *ctx, struct pmuk_set_desc *req, int count);
int pmuk_getinfo_evtsets(struct pmuk_context *ctx, struct pmuk_set_info *req, int count);
int pmuk_switch_evtset(struct pmuk_context *ctx, u16 id);
int pmuk_read(struct pmuk_context *ctx, struct pmuk_msg *msg, bool noblock);
int pmuk_read_timeout(struct pmuk_context *ctx, struct pmuk_msg *msg, unsigned long timeout);
int pmuk_snapshot(struct pmuk_context *ctx, u16 set, struct pmuk_value *values, unsigned int n);
struct pmuk_buffer *pmuk_context_buffer(struct pmuk_context *ctx, int cpu);
void *pmuk_format_area(struct pmuk_context *ctx, int cpu);
int pmuk_register_format(struct pmuk_format *format);
int pmuk_unregister_format(struct pmuk_format *format);

#endif /* _LINUX_PMU_KAPI_CONTEXT_H */
