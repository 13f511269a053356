/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pmuk: performance counters for kernel code.
 *
 * A consumer includes this header and no other. The calls are documented where
 * they are defined, in kernel/pmu_kapi/. Documentation/core-api/pmu-kapi.rst
 * renders both, and has a table of the calls that may run at the same time.
 */
#ifndef _LINUX_PMU_KAPI_H
#define _LINUX_PMU_KAPI_H

#include <linux/bits.h>
#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/pmu_kapi_buffer.h>
#include <linux/types.h>
#include <uapi/linux/perf_event.h>

struct completion;
struct perf_branch_stack;
struct perf_callchain_entry;
struct pt_regs;
struct task_struct;

struct pmuk_counter;

/* The value of ->bar if the fast path is always closed. */
#define PMUK_BARRED	BIT(31)

/* Each struct pmuk_counter begins with these fields, which linux/pmu_kapi_read.h reads. */
struct pmuk_counter_fast {
	struct perf_event *hw_event;	/* const: the event that has the register */
	u64 mask;			/* const while enabled: bits of the register; 0: none */
	unsigned long state;		/* see kernel/pmu_kapi/state.h */
	u64 last;			/* owner: latest count read outside of NMI */
	u32 bar;			/* const while enabled: see pmuk_hw_bar() */
	u32 published;			/* owner: jiffies of the latest local read that published */
	u64 offset;			/* owner: what is added to the count of ->hw_event */
};

/**
 * enum pmuk_attr_flags - what a counter does not count, and how it is scheduled
 * @PMUK_EXCLUDE_USER: do not count user space
 * @PMUK_EXCLUDE_KERNEL: do not count the kernel
 * @PMUK_EXCLUDE_HV: do not count the hypervisor
 * @PMUK_EXCLUDE_IDLE: do not count while the idle task runs
 * @PMUK_EXCLUDE_GUEST: do not count guests. A counter without this flag misses guests that have the
 *	PMU for themselves; &pmuk_value.time_running stands still meanwhile
 * @PMUK_PINNED: always on the PMU or in error: never multiplexed
 * @PMUK_NO_THROTTLE: perf core must not throttle this counter's overflows. The
 *	consumer answers for the interrupt load
 * @PMUK_INHERIT: also count the children that the task forks while the counter is
 *	enabled, until the counter is destroyed. Such a counter is read with
 *	pmuk_counter_read() only
 * @PMUK_PRIVATE: take a register of its own. Without this flag, up to 32 pinned counters of a CPU
 *	take one register together if they agree in the event, precise_ip, the PMUK_EXCLUDE_* flags,
 *	PMUK_CALLCHAIN_USER, the fields of samples that only hardware or perf core fills in,
 *	branch_sample_type, sample_regs_intr, sample_regs_user and max_stack. If pmu_kapi is a
 *	module, counters that perf core may throttle share only with each other, and are throttled
 *	together. Counters of tasks, counters that are not pinned, events of software, of uncore
 *	PMUs and of AMD's IBS, events that trace, and counters whose period is too short for the
 *	CPU's PMU are always private
 * @PMUK_CALLCHAIN_USER: perf core makes the callchain of PERF_SAMPLE_CALLCHAIN, which then has a
 *	part in user space, too, and callbacks get the callchain, too. Not on stock kernels
 */
enum pmuk_attr_flags {
	PMUK_EXCLUDE_USER	= BIT(0),
	PMUK_EXCLUDE_KERNEL	= BIT(1),
	PMUK_EXCLUDE_HV		= BIT(2),
	PMUK_EXCLUDE_IDLE	= BIT(3),
	PMUK_EXCLUDE_GUEST	= BIT(4),
	PMUK_PINNED		= BIT(5),
	PMUK_NO_THROTTLE	= BIT(6),
	PMUK_INHERIT		= BIT(7),
	PMUK_PRIVATE		= BIT(8),
	PMUK_CALLCHAIN_USER	= BIT(9),
};

/**
 * struct pmuk_value - a count and the times that qualify it
 * @count: events counted since the counter was created, paused spans left out
 * @time_enabled: nanoseconds for which the counter was enabled (for a task
 *	counter: while the task ran)
 * @time_running: nanoseconds of @time_enabled for which the counter was on the PMU.
 *	Smaller than @time_enabled if the counter is multiplexed: pmuk never scales,
 *	the consumer may
 * @age: nanoseconds since the value was published; 0 from pmuk_counter_read()
 */
struct pmuk_value {
	u64 count;
	u64 time_enabled;
	u64 time_running;
	u64 age;
};

/**
 * struct pmuk_sample - what an overflow callback is told
 * @valid: PERF_SAMPLE_* bits of the fields below that are filled in
 * @ip: PERF_SAMPLE_IP, instruction pointer that the PMU or the interrupt saw
 * @addr: PERF_SAMPLE_ADDR, data address, from PMUs that give one
 * @weight: PERF_SAMPLE_WEIGHT or PERF_SAMPLE_WEIGHT_STRUCT, hardware's cost of the event, from
 *	PMUs that give one; the latter is a union perf_sample_weight
 * @data_src: PERF_SAMPLE_DATA_SRC, kind of access and level of memory, a union
 *	perf_mem_data_src, from PMUs that give one
 * @txn: PERF_SAMPLE_TRANSACTION, PERF_TXN_* bits, from PMUs that give them
 * @phys_addr: PERF_SAMPLE_PHYS_ADDR, physical address of @addr, from the PMU's driver, or else
 *	from perf core. On stock kernels only from drivers that give it
 * @data_page_size: PERF_SAMPLE_DATA_PAGE_SIZE, bytes of the page or huge page of @addr
 * @code_page_size: PERF_SAMPLE_CODE_PAGE_SIZE, bytes of the page or huge page of @ip
 * @branches: PERF_SAMPLE_BRANCH_STACK, the latest branches, from PMUs that record them
 * @callchain: PERF_SAMPLE_CALLCHAIN with PMUK_CALLCHAIN_USER, addresses from the innermost function
 *	outwards, with PERF_CONTEXT_KERNEL before the kernel's and PERF_CONTEXT_USER before those of
 *	user space. If the callback hits an event of perf, as by a tracepoint, perf core may
 *	write another callchain there
 * @cgroup: PERF_SAMPLE_CGROUP, id of the current task's cgroup of perf's hierarchy
 * @time: PERF_SAMPLE_TIME, nanoseconds on perf's clock, local_clock()
 * @period: PERF_SAMPLE_PERIOD, the period that has just ended, in events
 * @value: PERF_SAMPLE_READ, the counter at its overflow; not with PMUK_INHERIT. In a context, the
 *	count goes on when a CPU comes back online, or the context comes back after it gave way; the
 *	times begin at 0 again
 * @regs: PERF_SAMPLE_REGS_INTR, the interrupted registers, of the host; or NULL
 * @regs_user: PERF_SAMPLE_REGS_USER, the current task's registers in user space; or NULL. If an NMI
 *	has interrupted the kernel, x86 knows only some of them, and the others are ~0
 * @regs_abi: PERF_SAMPLE_REGS_ABI_* of @regs; PERF_SAMPLE_REGS_ABI_NONE if
 *	&pmuk_attr.sample_regs_intr is 0, or a guest was interrupted
 * @regs_user_abi: PERF_SAMPLE_REGS_ABI_* of @regs_user
 * @misc: PERF_RECORD_MISC_* of the interrupted code: user space, the kernel, or a guest's
 *
 * IP, PERIOD and REGS_INTR are filled in whenever they are known, the others
 * if &pmuk_attr.sample_type asks for them. The sample is valid during the callback only.
 *
 * The PMU's interrupt comes late. If it finds the kernel, and the counter has
 * PMUK_EXCLUDE_KERNEL, there is neither an address (IP, ADDR, PHYS_ADDR), nor the size of its
 * page, nor are there interrupted registers, and the callchain has no part in the kernel.
 */
struct pmuk_sample {
	u64 valid;
	u64 ip;
	u64 addr;
	u64 weight;
	u64 data_src;
	u64 txn;
	u64 phys_addr;
	u64 data_page_size;
	u64 code_page_size;
	u64 cgroup;
	const struct perf_branch_stack *branches;
	const struct perf_callchain_entry *callchain;
	u64 time;
	u64 period;
	struct pmuk_value value;
	struct pt_regs *regs;
	struct pt_regs *regs_user;
	u16 regs_abi;
	u16 regs_user_abi;
	u16 misc;
	/* private: the task that a record names, or NULL */
	struct task_struct *task;
};

/**
 * typedef pmuk_overflow_t - called when a counter's period has elapsed
 * @c: the counter. Calls marked "any, NMI too" may be made on it
 * @sample: the overflow
 * @data: &pmuk_attr.data
 *
 * Context: the PMU's interrupt: NMI where that is an NMI (x86, arm64 with
 * pseudo-NMI), hardirq elsewhere; a software event overflows in the context in which the
 * event happened. Interrupts are off. Must not sleep, and must not take locks that are taken
 * outside of NMI.
 */
typedef void (*pmuk_overflow_t)(struct pmuk_counter *c,
				const struct pmuk_sample *sample, void *data);

/**
 * struct pmuk_attr - what a counter is to count
 * @type: PERF_TYPE_*, or the type of a PMU registered with perf
 * @config: the event, in perf's encoding for @type
 * @config1: more of the event, in perf's encoding
 * @config2: more of the event, in perf's encoding
 * @config3: more of the event, in perf's encoding
 * @period: overflow each so many events; 0: count only. At most 2^63 - 1
 * @random_mask: each period is @period plus those bits of a random number that are set in this
 *	mask. pmuk draws the number for the next period at an overflow, or for the period after
 *	that if the PMU's driver has begun the next period before the callback. 0: each period is
 *	@period
 * @random_seed: start of the random sequence: one seed gives one sequence
 * @freq: the wanted number of overflows per second in which the counter counts, at most 100000.
 *	pmuk adapts the period; 0: the period stays. @period is the first period and the shortest,
 *	from 2 to 2^48. The driver has begun the next period when the PMU interrupts, so an overflow
 *	sets the period after that; an overflow of software events sets the next period. pmuk
 *	notices a lower rate of events only when the period ends. A period in which perf core
 *	throttles the counter adapts nothing. Adapted periods of PMUs in hardware other than the
 *	CPU's are multiples of 16, and all are at most 2^48. A clock's period is always 1/@freq,
 *	whatever @period is. Not with @random_mask or PMUK_INHERIT, nor with events that trace
 * @flags: enum pmuk_attr_flags
 * @sample_type: PERF_SAMPLE_* bits of the fields that @overflow wants beyond those that
 *	every sample has: ADDR, WEIGHT or WEIGHT_STRUCT, DATA_SRC, TRANSACTION, PHYS_ADDR,
 *	DATA_PAGE_SIZE, CODE_PAGE_SIZE, CGROUP, BRANCH_STACK, TIME, READ, REGS_USER, and with
 *	PMUK_CALLCHAIN_USER CALLCHAIN. CGROUP needs CONFIG_CGROUP_PERF. On stock kernels, asking
 *	for DATA_PAGE_SIZE, CODE_PAGE_SIZE or REGS_USER is -EOPNOTSUPP. With @buffer, the fields of
 *	its records: these and IDENTIFIER, IP, TID, ID, STREAM_ID, CPU, PERIOD, REGS_INTR (not on
 *	stock kernels), CALLCHAIN (without PMUK_CALLCHAIN_USER the kernel's), RAW (data of the
 *	PMU), AUX (a slice of the buffer's AUX area), and PMUK_SAMPLE_COOKIE
 * @read_format: PERF_FORMAT_* bits, the layout of PERF_SAMPLE_READ in records:
 *	TOTAL_TIME_ENABLED, TOTAL_TIME_RUNNING, ID, GROUP
 * @overflow: called at each overflow, or NULL
 * @data: passed to @overflow
 * @buffer: each overflow writes a PERF_RECORD_SAMPLE into this buffer, before @overflow is
 *	called; or NULL. A CPU counter needs a buffer of that CPU, and other counters may
 *	share the buffer. A task counter needs a buffer that has no CPU, and only a control
 *	page: no records are written. A buffer's control page describes its first counter
 * @peers: counters on the same CPU. Records also hold the values of these, as the other
 *	members of a PERF_FORMAT_GROUP. If a peer is not on the PMU, its value is the one last
 *	published. If a peer is destroyed, records keep its last value
 * @nr_peers: the number of @peers, at most PMUK_PEERS_MAX
 * @precise_ip: as perf's: 0: the address may be that of any later instruction; 1: it is later by
 *	the same distance each time; 2: it is requested to be that of the instruction that made the
 *	event; 3: it is required to be that. PMUK_PRECISE_BEST: the highest of these that the
 *	PMU's driver accepts for this event and period. Needs a period. Not all drivers refuse
 *	what their PMU cannot do. On x86, exact samples have PERF_RECORD_MISC_EXACT_IP in
 *	&pmuk_sample.misc
 * @branch_sample_type: PERF_SAMPLE_BRANCH_* bits, with PERF_SAMPLE_BRANCH_STACK, else 0. It names
 *	at least one kind of branch. If it names no privilege level, branches are those of the
 *	levels that the counter counts. It may not name a level that the counter excludes, nor
 *	COUNTERS
 * @sample_regs_intr: with PERF_SAMPLE_REGS_INTR, bits PERF_REG_* of the architecture: PMUs that
 *	record registers themselves, such as PEBS, are asked for these registers; else 0. Callbacks
 *	get all registers, and need no bits. Not on stock kernels. Records have the registers of
 *	the bits, and need at least one
 * @sample_regs_user: with PERF_SAMPLE_REGS_USER, at least one bit PERF_REG_*; else 0. Callbacks
 *	get all registers. Records have those of the bits
 * @cookie: a number of the consumer's own, in this counter's records with PMUK_SAMPLE_COOKIE
 * @max_stack: with PERF_SAMPLE_CALLCHAIN, the largest number of addresses in a callchain, perf's
 *	marks not counted; else 0. With PMUK_CALLCHAIN_USER, 0 means 127, or the sysctl
 *	kernel.perf_event_max_stack if that is less, the largest value is the less of the sysctl and
 *	4096, and branches are limited, too, as with perf. Without the flag, in records, 0 means 64,
 *	which is the largest value
 * @aux_sample_size: with PERF_SAMPLE_AUX, the most bytes of the AUX area that a record gets, up to
 *	65528; else 0. They are the newest ones, a multiple of 8, and fewer if the area has fewer,
 *	or the record has less room. If the PMU's driver has copied fewer bytes, zeroes follow
 *
 * pmuk_counter_create() copies the struct, which need not outlive the call.
 */
struct pmuk_attr {
	u32 type;
	u32 flags;
	u64 config;
	u64 config1;
	u64 config2;
	u64 config3;
	u64 period;
	u32 random_mask;
	u32 nr_peers;
	u32 precise_ip;
	u32 freq;
	u64 branch_sample_type;
	u64 sample_regs_intr;
	u64 sample_regs_user;
	u64 random_seed;
	u64 sample_type;
	u64 read_format;
	pmuk_overflow_t overflow;
	void *data;
	struct pmuk_buffer *buffer;
	struct pmuk_counter *const *peers;
	u64 cookie;
	u32 max_stack;
	u32 aux_sample_size;
};

#define PMUK_PEERS_MAX	16
#define PMUK_PRECISE_BEST	4

/*
 * A bit of sample_type beside perf's bits: the consumer's cookie is the last 8 bytes of each
 * record, behind all fields of perf's sample_type. perf's decoders are told the sample_type without
 * this bit, and ignore those 8 bytes.
 */
#define PMUK_SAMPLE_COOKIE	BIT_ULL(62)

/**
 * enum pmuk_counter_states - whether a counter counts, and if not, why not
 * @PMUK_COUNTER_OFF: disabled, or not enabled yet
 * @PMUK_COUNTER_WAITING: enabled, but its task is not running, or the PMU is full
 *	and the counter waits for its turn
 * @PMUK_COUNTER_ACTIVE: on the PMU, counting unless paused
 * @PMUK_COUNTER_ERROR: pinned, and could not be placed or was pushed off the PMU.
 *	pmuk_counter_enable() tries again
 * @PMUK_COUNTER_GONE: its CPU went offline, its task exited or its PMU was
 *	unregistered. The counter will not count again. This holds, too, if its task has executed a
 *	program that others may not watch, such as one that is set-user-ID. A counter with a buffer
 *	is also gone if the PMU's driver moved it to another CPU when its own CPU went offline: such
 *	a counter writes no records any more
 */
enum pmuk_counter_states {
	PMUK_COUNTER_OFF,
	PMUK_COUNTER_WAITING,
	PMUK_COUNTER_ACTIVE,
	PMUK_COUNTER_ERROR,
	PMUK_COUNTER_GONE,
};

#include <linux/pmu_kapi_context.h>

struct pmuk_counter *pmuk_counter_create(const struct pmuk_attr *attr, int cpu,
					 struct task_struct *task);
int pmuk_room(const struct pmuk_attr *attrs, unsigned int n, int cpu, u32 *fits);
void pmuk_counter_destroy(struct pmuk_counter *c);
int pmuk_counter_destroy_deferred(struct pmuk_counter *c, struct completion *done);
int pmuk_counter_enable(struct pmuk_counter *c);
int pmuk_counter_disable(struct pmuk_counter *c);
int pmuk_counter_pause(struct pmuk_counter *c);
int pmuk_counter_resume(struct pmuk_counter *c);
int pmuk_counter_read(struct pmuk_counter *c, struct pmuk_value *value);
int pmuk_counter_snapshot(struct pmuk_counter *c, struct pmuk_value *value);
int pmuk_counter_set_period(struct pmuk_counter *c, u64 period);
int pmuk_counter_state(struct pmuk_counter *c);
u64 pmuk_counter_id(struct pmuk_counter *c);

DEFINE_FREE(pmuk_context, struct pmuk_context *, pmuk_close(_T))
DEFINE_FREE(pmuk_counter, struct pmuk_counter *, if (!IS_ERR_OR_NULL(_T)) pmuk_counter_destroy(_T))

#include <linux/pmu_kapi_group.h>
#include <linux/pmu_kapi_read.h>

#endif /* _LINUX_PMU_KAPI_H */
