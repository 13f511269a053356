// SPDX-License-Identifier: GPL-2.0
/*
 * Each switch reads the CPU's counters once, and adds the differences to the task that leaves. The
 * run queue is locked then, so this file takes no lock, allocates no memory and wakes no task. To
 * keep switches cheap, it reads no clock: the scheduler has just updated the CPU's clock, and its
 * sched_info has the wait before the slice. The time of a slice includes interrupts, as the counts
 * do, and excludes steal time.
 */
#include <asm/syscall.h>
#include <asm/unistd.h>
#include <linux/compat.h>
#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/lockdep.h>
#include <linux/sched.h>
#include <linux/sched/isolation.h>
#include <linux/sched/switch_hook.h>
#include <linux/sched/task_stack.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/tick.h>

#include "stats.h"

/* The number of sched_yield(2) in the calls of 32-bit programs, both on arm and x86. */
#define PMUK_SCHED_COMPAT_YIELD	158

/* Reads of this group are never fast. */
static struct pmuk_group pmuk_sched_slow_group __ro_after_init = { .fast_tick = PMUK_GROUP_SLOW };
static struct pmuk_group *const pmuk_sched_no_group = &pmuk_sched_slow_group;

DEFINE_PER_CPU_ALIGNED(struct pmuk_sched_cpu, pmuk_sched_cpus);
DEFINE_PER_CPU(bool, pmuk_sched_up);

/*
 * Only the owner adds. Neither this access nor that of pmuk_sched_store() is volatile, so that a
 * compiler can add to memory with one instruction, or load or store two words with one.
 */
static __always_inline void pmuk_sched_sum(u64 *sum, u64 n)
{
	data_race(*sum += n);	/* readers on other CPUs see the sum old or new */
}

/* Returns the task's entry, or NULL if it has none, as an idle task. */
static __always_inline struct pmuk_sched_task *pmuk_sched_find_entry(const struct task_struct *p)
{
#ifdef CONFIG_SCHED_SWITCH_HOOK
	return sched_switch_data(p);
#else
	return p->pid ? pmuk_sched_find(p) : NULL;
#endif
}

static __always_inline struct pmuk_sched_task *
pmuk_sched_entry_of(struct pmuk_sched_cpu *c, const struct task_struct *p)
{
	struct pmuk_sched_task *t = pmuk_sched_find_entry(p);

	if (likely(t))
		return t;
	if (!p->pid) {
		WRITE_ONCE(c->idle_since, jiffies);
		return pmuk_sched_idle(c);
	}
	pmuk_sched_sum(&c->strays, 1);
	return pmuk_sched_stray(c);
}

static u64 pmuk_sched_count_one(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t,
				unsigned int i, u64 now)
{
	u64 delta = now - c->base[i];

	WRITE_ONCE(c->base[i], now);
	pmuk_sched_sum(&t->counts[i], delta);
	return delta;
}

/* Stores a word for readers on other CPUs, see pmuk_sched_sum(). */
static __always_inline void pmuk_sched_store(u64 *word, u64 value)
{
	data_race(*word = value);	/* readers on other CPUs see the word old or new */
}

/* Takes the values of the two counters, and returns the counts of the slice in their place. */
static __always_inline void pmuk_sched_count_two(struct pmuk_sched_cpu *c,
						 struct pmuk_sched_task *t, u64 *cycles, u64 *insns)
{
	u64 delta[] = { *cycles - c->base[0], *insns - c->base[1] };

	barrier();	/* both loads come before both stores, and may be one instruction */
	pmuk_sched_store(&c->base[0], *cycles);
	pmuk_sched_store(&c->base[1], *insns);
	barrier();	/* as for ->start in pmuk_sched_switch_blocked() */
	pmuk_sched_sum(&t->counts[0], delta[0]);
	pmuk_sched_sum(&t->counts[1], delta[1]);
	*cycles = delta[0];
	*insns = delta[1];
}

/* The fast path is for exactly two counters, cycles and instructions, which are both counting. */
static void pmuk_sched_set_fast(struct pmuk_sched_cpu *c)
{
	if (pmuk_sched.nr == 2 && pmuk_sched.ipc && c->counted == PMUK_SCHED_COUNTED)
		c->group = this_cpu_ptr(pmuk_sched.groups_shown);
	else
		c->group = &pmuk_sched_no_group;
}

static bool pmuk_sched_is_fast(const struct pmuk_sched_cpu *c)
{
	return c->group != &pmuk_sched_no_group;
}

/* Moves ->base to @now without accounting the difference to any task. */
static void pmuk_sched_skip_one(struct pmuk_sched_cpu *c, unsigned int i, const u64 *now)
{
	WRITE_ONCE(c->origins[i], c->origins[i] + now[i] - c->base[i]);
	WRITE_ONCE(c->base[i], now[i]);
}

/*
 * The counters missed this slice, or a part of it. @now: they are back, and counting continues from
 * these values; NULL: they are still lost.
 */
static void pmuk_sched_skip(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t, const u64 *now)
{
	unsigned int i;

	set_bit(PMUK_SCHED_INVALID_BIT, &t->key);
	WRITE_ONCE(c->invalid, true);
	WRITE_ONCE(c->counted, now ? PMUK_SCHED_RESUMED : PMUK_SCHED_UNCOUNTED);
	for (i = 0; i < pmuk_sched.nr; i++) {
		c->slice[i] = 0;
		if (now)
			pmuk_sched_skip_one(c, i, now);
	}
}

/*
 * Returns whether the counters were lost and came back since the latest read: pmuk may give them
 * back long before the next switch. The caller has just read them. Only slow reads are followed by
 * this check, as a loss ends fast reads.
 */
static bool pmuk_sched_came_back(const struct pmuk_sched_cpu *c)
{
	return pmuk_local_since(pmuk_sched.ctx) != c->since;
}

/* Reads any number of events in any state of the counters. The counts are left in ->slice. */
static noinline void pmuk_sched_count_slow(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t)
{
	u64 now[PMUK_SCHED_EVENTS];
	unsigned int i;

	if (!pmuk_sched.nr)
		return;
	if (pmuk_read_local(pmuk_sched.ctx, now, pmuk_sched.nr)) {
		pmuk_sched_skip(c, t, NULL);
		return;
	}
	if (c->counted == PMUK_SCHED_UNCOUNTED || pmuk_sched_came_back(c)) {
		c->since = pmuk_local_since(pmuk_sched.ctx);
		pmuk_sched_skip(c, t, now);
		return;
	}
	WRITE_ONCE(c->counted, PMUK_SCHED_COUNTED);
	for (i = 0; i < pmuk_sched.nr; i++)
		c->slice[i] = pmuk_sched_count_one(c, t, i, now[i]);	/* unused ones stay 0 */
}

/*
 * Accounts to @t the time since the CPU's latest switch or sync, and returns that time. @now must
 * not be before that switch or sync.
 */
static __always_inline u64
pmuk_sched_add_run(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t, u64 now)
{
	u64 run = now - c->start;

	WRITE_ONCE(c->start, now);
	pmuk_sched_sum(&t->run, run);
	return run;
}

/*
 * Returns @clock, or ->start if @clock is older. The run queue's clock never goes back. But without
 * the hook the clock is the exec_start of a task, and a class that does not update exec_start
 * leaves an old value there. Then this slice gets no time, and the next one gets the time of both.
 */
static u64 pmuk_sched_not_before(const struct pmuk_sched_cpu *c, u64 clock)
{
	return (s64)(clock - c->start) < 0 ? c->start : clock;
}

/*
 * Returns whether @p has the PF_* @flag, PF_KTHREAD or PF_IDLE. The kernel may have preempted @p
 * while @p stored other flags; such a store leaves @flag as it is.
 */
static bool pmuk_sched_has(const struct task_struct *p, unsigned int flag)
{
	return data_race(p->flags) & flag;	/* in the middle of such a store */
}

/*
 * Returns whether @prev, which is runnable and was not preempted in the kernel, has yielded. A
 * kernel thread has yielded, as it has called schedule() itself. A user task is either in
 * sched_yield(2), or it was preempted on its way back to user space.
 */
static bool pmuk_sched_is_yielding(const struct task_struct *prev)
{
	int yield = in_compat_syscall() ? PMUK_SCHED_COMPAT_YIELD : __NR_sched_yield;

	return pmuk_sched_has(prev, PF_KTHREAD) ||
	       syscall_get_nr((struct task_struct *)prev,
			      task_pt_regs((struct task_struct *)prev)) == yield;
}

/* Returns whether @p is the CPU's stopper thread: a bound kernel thread of priority 0. */
static bool pmuk_sched_is_stopper(const struct task_struct *p)
{
	return !p->prio && pmuk_sched_has(p, PF_KTHREAD) && p->nr_cpus_allowed == 1;
}

/*
 * The scheduler tells how a task leaves its CPU. A task that is runnable, and is not preempted in
 * the kernel, has called the scheduler, or returns to user space.
 */
enum pmuk_sched_departure {
	PMUK_SCHED_BLOCKS,
	PMUK_SCHED_RUNNABLE,
	PMUK_SCHED_PREEMPTED,
};

static __always_inline enum pmuk_sched_departure
pmuk_sched_departure_of(bool preempt, unsigned int prev_state)
{
	if (unlikely(preempt))
		return PMUK_SCHED_PREEMPTED;
	return likely(prev_state) ? PMUK_SCHED_BLOCKS : PMUK_SCHED_RUNNABLE;
}

/* Returns why @prev leaves although it is runnable. */
static unsigned int
pmuk_sched_reason(enum pmuk_sched_departure departure, const struct pmuk_sched_task *t,
		  const struct pmuk_sched_task *n, const struct task_struct *prev,
		  const struct task_struct *next)
{
	if (sched_switch_throttled(prev))
		return PMUK_SCHED_THROTTLED;
	if (pmuk_sched_is_stopper(next))
		return cpumask_test_cpu(smp_processor_id(), prev->cpus_ptr) ?
		       PMUK_SCHED_STOPPED : PMUK_SCHED_MIGRATED;
	if (departure == PMUK_SCHED_RUNNABLE && pmuk_sched_is_yielding(prev))
		return PMUK_SCHED_YIELDED;
	if (pmuk_sched_has(next, PF_IDLE))	/* no task replaces @prev */
		return PMUK_SCHED_STOPPED;
	/* If a task moves to another cgroup right now, either answer is right. */
	return context_unsafe(READ_ONCE(t->cgroup) == READ_ONCE(n->cgroup)) ?
	       PMUK_SCHED_SAME : PMUK_SCHED_OTHER;
}

/* Keeps the wait of @prev constant until the end of its next slice, see pmuk_sched_wait(). */
static void pmuk_sched_freeze_wait(struct pmuk_sched_task *t, const struct task_struct *prev)
{
	if (pmuk_sched_task_of(t) == prev)
		WRITE_ONCE(t->delay, PMUK_SCHED_WAIT_FROZEN | pmuk_sched_wait(t, prev));
}

/*
 * The wait of @prev was frozen before the slice that ends. Takes the run_delay since then out of
 * it, and returns the wait for this slice: none. A stray entry, which has no task, stays frozen.
 */
static noinline u64 pmuk_sched_thaw_wait(struct pmuk_sched_task *t, const struct task_struct *prev)
{
	if (pmuk_sched_task_of(t))
		WRITE_ONCE(t->delay, pmuk_sched_delay(prev) - (t->delay & ~PMUK_SCHED_WAIT_FROZEN));
	return 0;
}

/* Counts the departure of a runnable task. The idle task always counts as voluntary. */
static noinline unsigned int
pmuk_sched_leave_runnable(struct pmuk_sched_cpu *c, enum pmuk_sched_departure departure,
			  struct pmuk_sched_task *t, const struct pmuk_sched_task *n,
			  const struct task_struct *prev, const struct task_struct *next)
{
	unsigned int reason = PMUK_SCHED_VOLUNTARY;

	if (!pmuk_sched_has(prev, PF_IDLE))
		reason = pmuk_sched_reason(departure, t, n, prev, next);

	if (reason < PMUK_SCHED_TASK_REASONS)
		WRITE_ONCE(t->reasons[reason], t->reasons[reason] + 1);
	else
		pmuk_sched_sum(&c->other_reasons[reason - PMUK_SCHED_TASK_REASONS], 1);
	if (reason == PMUK_SCHED_THROTTLED)
		pmuk_sched_freeze_wait(t, prev);
	return reason;
}

/* Returns the row of ->slices for @reason. */
static __always_inline unsigned int pmuk_sched_row(unsigned int reason)
{
	return min(reason, PMUK_SCHED_TASK_REASONS);
}

/* The result of a finished slice, without its counts. */
struct pmuk_sched_slice_times {
	u64 run;
	u64 wait;
	unsigned int reason;
};

/*
 * Adds the slice to the totals of its CPU. There is no sum of a task's waits: readers take these
 * from the scheduler, see pmuk_sched_wait().
 */
static __always_inline void
pmuk_sched_add_slice(struct pmuk_sched_cpu *c, const struct pmuk_sched_slice_times *slice)
{
	u64 *row = c->slices[pmuk_sched_row(slice->reason)];

	pmuk_sched_sum(&row[pmuk_sched_time_bucket(slice->run)], 1);
	pmuk_sched_sum(&c->wait, slice->wait);
	pmuk_sched_sum(&c->waits[pmuk_sched_time_bucket(slice->wait)], 1);
}

static __always_inline u32 pmuk_sched_saturate(u64 ns)
{
	return min_t(u64, ns, U32_MAX);
}

static void
pmuk_sched_record_raw(struct pmuk_sched_sink *sink, const struct pmuk_sched_cpu *c,
		      const struct task_struct *prev, const struct task_struct *next, u16 misc,
		      u64 run, u64 wait, u64 cycles, u64 insns)
{
	const struct pmuk_sched_slice s = {
		.time		= c->start,
		.run		= run,
		.wait		= wait,
		.counts		= { cycles, insns },
		.prev_pid	= READ_ONCE(prev->pid),
		.next_pid	= READ_ONCE(next->pid),
		.misc		= misc,
	};

	pmuk_sched_raw_switch(sink, &s);
}

/* All loads come before the stores, so that the compiler can store two fields at once. */
static __always_inline void
pmuk_sched_fill_record(struct pmuk_sched_switch *rec, const struct pmuk_sched_cpu *c,
		       const struct task_struct *prev, const struct task_struct *next,
		       u64 run, u64 wait, u64 cycles, u64 insns)
{
	u32 prev_pid = READ_ONCE(prev->pid), next_pid = READ_ONCE(next->pid);

	rec->time = c->start;
	rec->prev_pid = prev_pid;
	rec->next_pid = next_pid;
	rec->run = pmuk_sched_saturate(run);
	rec->wait = pmuk_sched_saturate(wait);
	rec->counts[0] = cycles;
	rec->counts[1] = insns;
}

/* Writes the slice that has just been accounted. The ring counts records that find no room. */
static noinline void
pmuk_sched_record(const struct pmuk_sched_cpu *c, const struct task_struct *prev,
		  const struct task_struct *next, u16 misc, u64 run, u64 wait, u64 cycles,
		  u64 insns)
{
	struct pmuk_sched_sink *sink = rcu_dereference_sched(c->sink);
	struct pmuk_sched_switch *rec;

	if (!sink)
		return;
	WRITE_ONCE(sink->switches, sink->switches + 1);
	if (sink->raw) {
		pmuk_sched_record_raw(sink, c, prev, next, misc, run, wait, cycles, insns);
		return;
	}
	rec = (struct pmuk_sched_switch *)pmuk_output_begin(sink->buffer, PMUK_SCHED_RECORD_SWITCH,
							    sizeof(*rec));
	if (!rec)
		return;
	rec->header.misc = misc;
	pmuk_sched_fill_record(rec, c, prev, next, run, wait, cycles, insns);
	pmuk_output_end(sink->buffer, &rec->header);
}

static_assert(!PMUK_SCHED_VOLUNTARY);

/*
 * Does the work of pmuk_sched_record() for a task that blocks, and for the idle task. No value is
 * needed after a call in here, so the compiler need not save registers. Only switches write to the
 * buffer, with interrupts off, so pmuk_output_begin_alone() is allowed. The header's misc is
 * already PMUK_SCHED_VOLUNTARY.
 */
static __always_inline void
pmuk_sched_record_voluntary(struct pmuk_sched_sink *sink, const struct pmuk_sched_cpu *c,
			    const struct task_struct *prev, const struct task_struct *next,
			    u64 run, u64 wait, u64 cycles, u64 insns)
{
	struct pmuk_buffer *b = sink->buffer;
	struct pmuk_sched_switch *rec = NULL;

	if (likely(!sink->raw))
		rec = (struct pmuk_sched_switch *)
		      pmuk_output_begin_alone(b, PMUK_SCHED_RECORD_SWITCH, sizeof(*rec));
	if (unlikely(!rec)) {
		pmuk_sched_record(c, prev, next, PMUK_SCHED_VOLUNTARY, run, wait, cycles, insns);
		return;
	}
	WRITE_ONCE(sink->switches, sink->switches + 1);
	pmuk_sched_fill_record(rec, c, prev, next, run, wait, cycles, insns);
	pmuk_output_end_alone(b, sizeof(*rec));
}

static __always_inline void pmuk_sched_add_ipc(struct pmuk_sched_cpu *c, u64 cycles, u64 insns)
{
	pmuk_sched_sum(&c->ipcs[pmuk_sched_ipc_bucket(cycles, insns)], 1);
}

/* Does what pmuk_sched_count_slow() does, and adds the counts that syncs have accounted. */
static void pmuk_sched_count_slice(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t)
{
	unsigned int i;

	pmuk_sched_count_slow(c, t);
	for (i = 0; i < pmuk_sched.nr; i++) {
		c->slice[i] += c->synced_counts[i];
		c->synced_counts[i] = 0;
	}
}

/* Returns a lower limit, in nanoseconds, of the time that the idle task has run so far. */
u64 pmuk_sched_idle_so_far(const struct pmuk_sched_cpu *c)
{
	unsigned long ticks = jiffies - READ_ONCE(c->idle_since);

	return ticks > 1 && ticks < LONG_MAX ? (u64)(ticks - 1) * TICK_NSEC : 0;
}

/*
 * Accounting began while the CPU was idle, from an old value of the clock, so @run is too long. Use
 * the time by ticks instead, which readers have been shown meanwhile.
 */
static u64 pmuk_sched_correct_idle(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t, u64 run)
{
	u64 real = min(pmuk_sched_idle_so_far(c), run);

	c->began_idle = false;
	WRITE_ONCE(t->run, t->run - run + real);
	WRITE_ONCE(c->origin, c->origin + run - real);
	return real;
}

/*
 * Handles the rare cases: a number of counters other than two, lost counters, a slice that a sync
 * has partly accounted, and a slice of idle in which accounting began.
 */
static void pmuk_sched_finish_slow(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t,
				   const struct task_struct *prev, const struct task_struct *next,
				   unsigned int reason, u64 run, u64 wait)
{
	bool whole;

	if (unlikely(c->began_idle))
		run = pmuk_sched_correct_idle(c, t, run);
	pmuk_sched_count_slice(c, t);
	whole = c->counted == PMUK_SCHED_COUNTED && !c->partial;
	run += c->synced_run;
	c->synced_run = 0;
	c->partial = false;
	if (t != pmuk_sched_idle(c)) {
		pmuk_sched_add_slice(c, &(const struct pmuk_sched_slice_times){
				     run, wait, reason });
		if (pmuk_sched.ipc && whole)
			pmuk_sched_add_ipc(c, c->slice[0], c->slice[1]);
	}
	pmuk_sched_record(c, prev, next,
			  reason | (pmuk_sched.nr && !whole ? PMUK_SCHED_INVALID : 0),
			  run, wait, c->slice[0], c->slice[1]);
	pmuk_sched_set_fast(c);
}

/* Counts the departure of a task that blocks, or of the idle task. */
static __always_inline void pmuk_sched_leave(struct pmuk_sched_task *t)
{
	data_race(t->reasons[PMUK_SCHED_VOLUNTARY]++);	/* as in pmuk_sched_sum() */
}

static __always_inline struct pmuk_sched_slice_times
pmuk_sched_end_slice(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t,
		     const struct pmuk_sched_task *n, enum pmuk_sched_departure departure,
		     const struct task_struct *prev, const struct task_struct *next, u64 clock)
{
	struct pmuk_sched_slice_times slice = { .reason = PMUK_SCHED_VOLUNTARY };

	slice.run = pmuk_sched_add_run(c, t, clock);
	slice.wait = pmuk_sched_delay(prev) - c->delay;
	if (unlikely(t->delay & PMUK_SCHED_WAIT_FROZEN))
		slice.wait = pmuk_sched_thaw_wait(t, prev);
	if (departure == PMUK_SCHED_BLOCKS)
		pmuk_sched_leave(t);
	else
		slice.reason = pmuk_sched_leave_runnable(c, departure, t, n, prev, next);
	c->delay = pmuk_sched_delay(next);
	return slice;
}

/*
 * While ->task is the idle task, pmuk_sched_copy_quiet() on another CPU copies the sums without an
 * interrupt. Clear ->task before the sums change: a copy that has seen a later store then sees that
 * ->task has changed, too.
 */
static __always_inline void pmuk_sched_update_begin(struct pmuk_sched_cpu *c)
{
	WRITE_ONCE(c->task, NULL);
	smp_wmb();	/* pairs with pmuk_sched_copy_quiet() */
}

static noinline void pmuk_sched_switch_slow(struct pmuk_sched_cpu *c,
					    enum pmuk_sched_departure departure,
					    const struct task_struct *prev,
					    const struct task_struct *next, u64 clock)
{
	struct pmuk_sched_task *t = c->task, *n;
	struct pmuk_sched_slice_times slice;

	if (unlikely(!t))	/* the CPU is not accounted */
		return;
	pmuk_sched_update_begin(c);
	pmuk_sched_sum(&c->slow, 1);
	n = pmuk_sched_entry_of(c, next);
	slice = pmuk_sched_end_slice(c, t, n, departure, prev, next, clock);
	pmuk_sched_finish_slow(c, t, prev, next, slice.reason, slice.run, slice.wait);
	smp_store_release(&c->task, n);	/* pairs with pmuk_sched_copy_quiet() */
}

/*
 * The idle task leaves. It has no wait and is in no histogram. A slice with ->began_idle, and a
 * slice that a sync has partly accounted, go to the slow path and never come here.
 */
static __always_inline void
pmuk_sched_switch_idle(struct pmuk_sched_cpu *c, const struct task_struct *prev,
		       const struct task_struct *next, u64 clock, u64 cycles, u64 insns)
{
	struct pmuk_sched_sink *sink = rcu_dereference_sched(c->sink);
	struct pmuk_sched_task *t = pmuk_sched_idle(c), *n;
	u64 run;

	pmuk_sched_update_begin(c);
	n = pmuk_sched_entry_of(c, next);
	run = pmuk_sched_add_run(c, t, clock);
	pmuk_sched_leave(t);
	c->delay = pmuk_sched_delay(next);
	pmuk_sched_count_two(c, t, &cycles, &insns);
	smp_store_release(&c->task, n);	/* pairs with pmuk_sched_copy_quiet() */
	if (unlikely(sink))
		pmuk_sched_record_voluntary(sink, c, prev, next, run, 0, cycles, insns);
}

/*
 * Handles the switches with two counters for which the two faster paths are not. ->slice has the
 * values of the counters.
 */
static noinline void pmuk_sched_switch_general(struct pmuk_sched_cpu *c,
					       enum pmuk_sched_departure departure,
					       const struct task_struct *prev,
					       const struct task_struct *next, u64 clock)
{
	struct pmuk_sched_task *t = c->task, *n = pmuk_sched_entry_of(c, next);
	struct pmuk_sched_slice_times slice;
	u64 cycles, insns;

	slice = pmuk_sched_end_slice(c, t, n, departure, prev, next, clock);
	cycles = c->slice[0];
	insns = c->slice[1];
	pmuk_sched_count_two(c, t, &cycles, &insns);
	pmuk_sched_add_slice(c, &slice);
	pmuk_sched_add_ipc(c, cycles, insns);
	pmuk_sched_record(c, prev, next, slice.reason, slice.run, slice.wait, cycles, insns);
	smp_store_release(&c->task, n);	/* pairs with pmuk_sched_copy_quiet() */
}

/*
 * pmuk_group_read() succeeds only after one pmuk_read_local() in the same jiffy; this switch makes
 * that call. Switches in the slow path, whose group is never fast, come here, too.
 */
static noinline void pmuk_sched_switch_reading(struct pmuk_sched_cpu *c,
					       enum pmuk_sched_departure departure,
					       const struct task_struct *prev,
					       const struct task_struct *next, u64 clock)
{
	if (!pmuk_sched_is_fast(c) || pmuk_read_local(pmuk_sched.ctx, c->slice, pmuk_sched.nr) ||
	    pmuk_sched_came_back(c)) {
		pmuk_sched_switch_slow(c, departure, prev, next, clock);
		return;
	}
	pmuk_sched_sum(&c->slow_reads, 1);
	if (c->task == pmuk_sched_idle(c))
		pmuk_sched_switch_idle(c, prev, next, clock, c->slice[0], c->slice[1]);
	else
		pmuk_sched_switch_general(c, departure, prev, next, clock);
}

/*
 * @prev blocks. The only calls in here are at the end of a path, so that the compiler need not save
 * registers.
 */
static __always_inline void
pmuk_sched_switch_blocked(struct pmuk_sched_cpu *c, const struct task_struct *prev,
			  const struct task_struct *next, u64 clock, u64 cycles, u64 insns)
{
	struct pmuk_sched_sink *sink = rcu_dereference_sched(c->sink);
	struct pmuk_sched_task *t = c->task, *n = pmuk_sched_entry_of(c, next);
	u64 delay = pmuk_sched_delay(next);
	const struct pmuk_sched_slice_times slice = {
		.run	= clock - c->start,
		.wait	= pmuk_sched_delay(prev) - c->delay,
		.reason	= PMUK_SCHED_VOLUNTARY,
	};

	barrier();	/* lets one instruction store ->start and ->delay, see pmuk_sched_store() */
	pmuk_sched_store(&c->start, clock);
	c->delay = delay;
	barrier();	/* ->start changes before the sums: see pmuk_sched_copy_quiet() */
	pmuk_sched_sum(&t->run, slice.run);
	pmuk_sched_leave(t);
	pmuk_sched_count_two(c, t, &cycles, &insns);
	pmuk_sched_add_slice(c, &slice);
	pmuk_sched_add_ipc(c, cycles, insns);
	smp_store_release(&c->task, n);	/* pairs with pmuk_sched_copy_quiet() */
	if (unlikely(sink))
		pmuk_sched_record_voluntary(sink, c, prev, next, slice.run, slice.wait,
					    cycles, insns);
}

/* @prev does not block. Mostly it is the idle task. */
static noinline void pmuk_sched_switch_unblocked(struct pmuk_sched_cpu *c,
						 enum pmuk_sched_departure departure,
						 const struct task_struct *prev,
						 const struct task_struct *next, u64 clock)
{
	u64 now[2];

	if (unlikely(!pmuk_group_read(c->group, now, 2, true))) {
		pmuk_sched_switch_reading(c, departure, prev, next, clock);
	} else if (likely(c->task == pmuk_sched_idle(c))) {
		pmuk_sched_switch_idle(c, prev, next, clock, now[0], now[1]);
	} else {
		c->slice[0] = now[0];
		c->slice[1] = now[1];
		pmuk_sched_switch_general(c, departure, prev, next, clock);
	}
}

/* @clock: see sched_switch_clock(); includes the time of interrupts, but no steal time. */
static __always_inline void
pmuk_sched_do_switch(bool preempt, const struct task_struct *prev, const struct task_struct *next,
		     unsigned int prev_state, u64 clock)
{
	struct pmuk_sched_cpu *c = this_cpu_ptr(&pmuk_sched_cpus);
	enum pmuk_sched_departure departure = pmuk_sched_departure_of(preempt, prev_state);
	u64 now[2];

	if (departure != PMUK_SCHED_BLOCKS) {
		pmuk_sched_switch_unblocked(c, departure, prev, next, clock);
	} else if (unlikely(!pmuk_group_read(c->group, now, 2, true))) {
		pmuk_sched_switch_reading(c, departure, prev, next, clock);
	} else if (unlikely(c->task->delay & PMUK_SCHED_WAIT_FROZEN)) {
		c->slice[0] = now[0];
		c->slice[1] = now[1];
		pmuk_sched_switch_general(c, departure, prev, next, clock);
	} else {
		pmuk_sched_switch_blocked(c, prev, next, clock, now[0], now[1]);
	}
}

#ifdef CONFIG_SCHED_SWITCH_HOOK
/* Called with interrupts off and the CPU's run queue locked. */
void pmuk_sched_on_switch(bool preempt, struct task_struct *prev, struct task_struct *next,
			  unsigned int prev_state, u64 clock)
{
	pmuk_sched_do_switch(preempt, prev, next, prev_state, clock);
}
#else
/*
 * Called with interrupts off and the CPU's run queue locked. The tracepoint passes no clock. The
 * scheduler has just set the exec_start of @next to the run queue's clock.
 */
void pmuk_sched_switch_probe(void *data, bool preempt, struct task_struct *prev,
			     struct task_struct *next, unsigned int prev_state)
{
	pmuk_sched_do_switch(preempt, prev, next, prev_state,
			     pmuk_sched_not_before(this_cpu_ptr(&pmuk_sched_cpus),
						   sched_switch_clock_of(next)));
}
#endif

/* The time is as of the scheduler's latest clock update, usually the latest tick. */
static void pmuk_sched_sync_run(struct pmuk_sched_cpu *c)
{
	u64 clock = pmuk_sched_not_before(c, sched_switch_clock());

	c->synced_run += pmuk_sched_add_run(c, c->task, clock);
}

/*
 * Accounts, for a reader, the part of the running slice that is over. Counts are as of now. An idle
 * CPU keeps its time until the next switch, as readers add pmuk_sched_idle_so_far().
 */
void pmuk_sched_sync(void *data)
{
	struct pmuk_sched_cpu *c = this_cpu_ptr(&pmuk_sched_cpus);
	unsigned long flags;
	unsigned int i;

	local_irq_save(flags);
	if (c->task) {
		pmuk_sched_count_slow(c, c->task);
		if (c->task != pmuk_sched_idle(c))
			pmuk_sched_sync_run(c);
		for (i = 0; i < pmuk_sched.nr; i++)
			c->synced_counts[i] += c->slice[i];
		c->partial |= c->counted != PMUK_SCHED_COUNTED;
		c->group = &pmuk_sched_no_group;
	}
	local_irq_restore(flags);
}

bool pmuk_sched_is_idle(int cpu)
{
	struct pmuk_sched_cpu *c = per_cpu_ptr(&pmuk_sched_cpus, cpu);

	return READ_ONCE(c->task) == pmuk_sched_idle(c);
}

/*
 * Readers do not interrupt an isolated CPU. RCU, because cpusets replace the mask of isolated CPUs
 * at run time.
 */
bool pmuk_sched_is_isolated(int cpu)
{
	guard(rcu)();
	return cpu_is_isolated(cpu) || tick_nohz_full_cpu(cpu);
}

static bool pmuk_sched_can_sync(int cpu, void *data)
{
	return !pmuk_sched_is_idle(cpu) && !pmuk_sched_is_isolated(cpu);
}

/* Syncs all CPUs but idle and isolated ones, so that a reader sees the present slices. */
void pmuk_sched_sync_all(void)
{
	on_each_cpu_cond(pmuk_sched_can_sync, pmuk_sched_sync, NULL, true);
}

/*
 * All sums begin at 0. Nothing is accounted now, but a switch may read ->task, which is NULL, and
 * ->group. Kernel 6.12 does not relocate pointers in the initial values of a module's per-CPU data.
 * Readers cannot know the waits of tasks without an entry, so these waits are in no sum, see
 * pmuk_sched_thaw_wait().
 */
void pmuk_sched_reset_cpu(struct pmuk_sched_cpu *c)
{
	const size_t start = offsetof(struct pmuk_sched_cpu, start);

	WRITE_ONCE(c->group, &pmuk_sched_no_group);
	memset((void *)c + start, 0, offsetof(struct pmuk_sched_cpu, sink) - start);
	memset_after(c, 0, sink);
	pmuk_sched_stray(c)->delay = PMUK_SCHED_WAIT_FROZEN;
}

/*
 * Ends accounting on this CPU, perhaps for long. Ends the open part of the stream, too, so that its
 * reader gets the packets in it.
 */
void pmuk_sched_end(void *data)
{
	struct pmuk_sched_cpu *c = this_cpu_ptr(&pmuk_sched_cpus);
	struct pmuk_sched_sink *sink = rcu_dereference_sched(c->sink);

	c->group = &pmuk_sched_no_group;
	WRITE_ONCE(c->task, NULL);
	if (sink)
		pmuk_sched_raw_end(sink);
}

/*
 * Begins accounting on this CPU; the caller cannot migrate. Earlier sums stay: the origins move
 * along with ->start and ->base.
 */
void pmuk_sched_begin(void *data)
{
	struct pmuk_sched_cpu *c = this_cpu_ptr(&pmuk_sched_cpus);
	u64 now, counts[PMUK_SCHED_EVENTS];
	unsigned long flags;
	unsigned int i;

	lockdep_assert_preemption_disabled();
	if (!__this_cpu_read(pmuk_sched_up))
		return;
	local_irq_save(flags);
	now = sched_switch_clock();
	WRITE_ONCE(c->origin, c->origin + now - c->start);
	WRITE_ONCE(c->start, now);
	c->began_idle = is_idle_task(current);
	c->synced_run = 0;
	c->partial = false;
	memset(c->synced_counts, 0, sizeof(c->synced_counts));
	WRITE_ONCE(c->counted, PMUK_SCHED_UNCOUNTED);
	if (pmuk_sched.nr && !pmuk_read_local(pmuk_sched.ctx, counts, pmuk_sched.nr)) {
		WRITE_ONCE(c->counted, PMUK_SCHED_COUNTED);
		c->since = pmuk_local_since(pmuk_sched.ctx);
		for (i = 0; i < pmuk_sched.nr; i++)
			pmuk_sched_skip_one(c, i, counts);
	}
	c->group = &pmuk_sched_no_group;	/* see pmuk_sched_set_fast() and ->began_idle */
	c->delay = pmuk_sched_delay(current);
	/* pairs with pmuk_sched_copy_quiet() */
	smp_store_release(&c->task, pmuk_sched_entry_of(c, current));
	local_irq_restore(flags);
}

/* Returns the sum of a number that each CPU has. */
u64 pmuk_sched_sum_of(const u64 __percpu *number)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*per_cpu_ptr(number, cpu));
	return sum;
}

/* The totals of a CPU's tasks: all time and counts accounted on the CPU, without idle's. */
void pmuk_sched_cpu_totals(struct pmuk_sched_cpu *c, struct pmuk_sched_totals *sum)
{
	const struct pmuk_sched_task *idle = pmuk_sched_idle(c);
	unsigned int i, reason;

	*sum = (struct pmuk_sched_totals){};
	sum->run = READ_ONCE(c->start) - READ_ONCE(c->origin) - READ_ONCE(idle->run);
	sum->wait = READ_ONCE(c->wait);
	for (reason = 0; reason < PMUK_SCHED_TASK_REASONS; reason++) {
		for (i = 0; i < PMUK_SCHED_BUCKETS; i++)
			sum->reasons[reason] += READ_ONCE(c->slices[reason][i]);
	}
	for (i = 0; i < pmuk_sched.nr; i++)
		sum->counts[i] = READ_ONCE(c->base[i]) - READ_ONCE(c->origins[i]) -
				 READ_ONCE(idle->counts[i]);
	sum->invalid = READ_ONCE(c->invalid);
}
