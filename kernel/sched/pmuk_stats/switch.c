// SPDX-License-Identifier: GPL-2.0
/*
 * What happens at each switch: one read of the CPU's counters, and additions. No lock, no
 * allocation, no wakeup, and no clock is read: the scheduler has just updated the CPU's clock, and
 * knows how long who goes had waited before it ran. Interrupts are part of that time, as they are
 * part of what is counted meanwhile; what a hypervisor took is not.
 */
#include <asm/syscall.h>
#include <asm/unistd.h>
#include <linux/compat.h>
#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
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

DEFINE_PER_CPU_ALIGNED(struct pmuk_sched_cpu, pmuk_sched_cpus);
DEFINE_PER_CPU(bool, pmuk_sched_up);

/* Only the owner writes, others read. */
static __always_inline void pmuk_sched_sum(u64 *sum, u64 n)
{
	WRITE_ONCE(*sum, *sum + n);
}

static __always_inline struct pmuk_sched_task *
pmuk_sched_who(struct pmuk_sched_cpu *c, const struct task_struct *p)
{
	struct pmuk_sched_task *t;

	if (!p->pid) {
		WRITE_ONCE(c->idle_since, jiffies);
		return pmuk_sched_idle(c);
	}
	t = pmuk_sched_find(p);
	if (likely(t))
		return t;
	pmuk_sched_sum(&c->strays, 1);
	return pmuk_sched_stray(c);
}

static __always_inline u64 pmuk_sched_count_one(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t,
						unsigned int i, u64 now)
{
	u64 delta = now - c->base[i];

	WRITE_ONCE(c->base[i], now);
	pmuk_sched_sum(&t->counts[i], delta);
	return delta;
}

/* The next slice can be accounted in the short way: two counters, which count. */
static void pmuk_sched_set_plain(struct pmuk_sched_cpu *c)
{
	c->plain = pmuk_sched.nr == 2 && pmuk_sched.ipc && c->counted == PMUK_SCHED_COUNTED;
}

/* Nobody's: what was counted between when counters were lost and when they are back. */
static void pmuk_sched_skip_one(struct pmuk_sched_cpu *c, unsigned int i, const u64 *now)
{
	WRITE_ONCE(c->firsts[i], c->firsts[i] + now[i] - c->base[i]);
	WRITE_ONCE(c->base[i], now[i]);
}

/* This slice is not counted, or not as a whole. @now: from here on they count again; or NULL. */
static void pmuk_sched_skip(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t, const u64 *now)
{
	unsigned int i;

	set_bit(PMUK_SCHED_INVALID_BIT, &t->key);
	WRITE_ONCE(c->lapsed, true);
	WRITE_ONCE(c->counted, now ? PMUK_SCHED_RESUMED : PMUK_SCHED_UNCOUNTED);
	for (i = 0; i < pmuk_sched.nr; i++) {
		c->slice[i] = 0;
		if (now)
			pmuk_sched_skip_one(c, i, now);
	}
}

/* Whatever there is to count, and however it is; ->slice says what. */
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
	if (c->counted == PMUK_SCHED_UNCOUNTED) {
		pmuk_sched_skip(c, t, now);
		return;
	}
	WRITE_ONCE(c->counted, PMUK_SCHED_COUNTED);
	for (i = 0; i < pmuk_sched.nr; i++)
		c->slice[i] = pmuk_sched_count_one(c, t, i, now[i]);	/* the rest stays 0 */
}

/*
 * Accounts to @t the time since the CPU's latest switch or look, and returns that. The clock is the
 * run queue's, which never goes back. Through the tracepoint, the clock is the next task's stamp
 * instead: a class that does not stamp leaves an old one there, and the next slice gets this time.
 */
static __always_inline u64
pmuk_sched_time(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t, u64 now)
{
	u64 run = now - c->start;

	if (unlikely((s64)run < 0))
		return 0;
	WRITE_ONCE(c->start, now);
	pmuk_sched_sum(&t->run, run);
	return run;
}

/*
 * A thread of the kernel that could go on and is not preempted has called schedule(). A user's task
 * is in sched_yield(2), or else it was to be preempted on its way out of the kernel.
 */
static bool pmuk_sched_is_yielding(const struct task_struct *prev)
{
	int yield = in_compat_syscall() ? PMUK_SCHED_COMPAT_YIELD : __NR_sched_yield;

	return prev->flags & PF_KTHREAD ||
	       syscall_get_nr((struct task_struct *)prev,
			      task_pt_regs((struct task_struct *)prev)) == yield;
}

/* The stopper: the thread of the CPU that comes before all others. */
static bool pmuk_sched_is_stopper(const struct task_struct *p)
{
	return !p->prio && p->flags & PF_KTHREAD && p->nr_cpus_allowed == 1;
}

/* Why @prev, which could go on, does not. */
static unsigned int
pmuk_sched_why(bool preempt, const struct pmuk_sched_task *t, const struct pmuk_sched_task *n,
	       const struct task_struct *prev, const struct task_struct *next)
{
	if (sched_switch_throttled(prev))
		return PMUK_SCHED_THROTTLED;
	if (pmuk_sched_is_stopper(next))
		return cpumask_test_cpu(smp_processor_id(), prev->cpus_ptr) ?
		       PMUK_SCHED_STOPPED : PMUK_SCHED_MIGRATED;
	if (!preempt && pmuk_sched_is_yielding(prev))
		return PMUK_SCHED_YIELDED;
	if (is_idle_task(next))		/* nobody was put in its place */
		return PMUK_SCHED_STOPPED;
	return READ_ONCE(t->cgroup) == READ_ONCE(n->cgroup) ? PMUK_SCHED_SAME : PMUK_SCHED_OTHER;
}

/* From here until the end of its next slice, what is added to @prev's run_delay is no wait. */
static void pmuk_sched_hold(struct pmuk_sched_task *t, const struct task_struct *prev)
{
	if (pmuk_sched_task_of(t) == prev)
		WRITE_ONCE(t->delay, PMUK_SCHED_HELD | pmuk_sched_wait(t, prev));
}

/* @prev was throttled before the slice that ends: it had not waited for that one. */
static noinline u64 pmuk_sched_release(struct pmuk_sched_task *t, const struct task_struct *prev)
{
	WRITE_ONCE(t->delay, pmuk_sched_delay(prev) - (t->delay & ~PMUK_SCHED_HELD));
	return 0;
}

/* The idle task is never preempted: it runs because nobody else could. */
static noinline unsigned int
pmuk_sched_leave_unblocked(struct pmuk_sched_cpu *c, bool preempt, struct pmuk_sched_task *t,
			   const struct pmuk_sched_task *n, const struct task_struct *prev,
			   const struct task_struct *next)
{
	unsigned int how = is_idle_task(prev) ? PMUK_SCHED_VOLUNTARY :
						pmuk_sched_why(preempt, t, n, prev, next);

	if (how < PMUK_SCHED_HOWS)
		WRITE_ONCE(t->left[how], t->left[how] + 1);
	else
		pmuk_sched_sum(&c->rest[how - PMUK_SCHED_HOWS], 1);
	if (how == PMUK_SCHED_THROTTLED)
		pmuk_sched_hold(t, prev);
	return how;
}

/* The row of ->slices. */
static __always_inline unsigned int pmuk_sched_row(unsigned int how)
{
	return min(how, PMUK_SCHED_HOWS);
}

/* A switch without its counts is known by these. */
struct pmuk_sched_left {
	u64 run;
	u64 wait;
	unsigned int how;
};

/* Tasks' own waits are what the scheduler has of them, see pmuk_sched_add_task(). */
static __always_inline void
pmuk_sched_sliced(struct pmuk_sched_cpu *c, const struct pmuk_sched_left *left)
{
	pmuk_sched_sum(&c->slices[pmuk_sched_row(left->how)][pmuk_sched_time_bucket(left->run)], 1);
	pmuk_sched_sum(&c->wait, left->wait);
	pmuk_sched_sum(&c->waits[pmuk_sched_time_bucket(left->wait)], 1);
}

static __always_inline u32 pmuk_sched_saturate(u64 ns)
{
	return min_t(u64, ns, U32_MAX);
}

/* Packets are told apart here, where somebody streams, and not at each switch. */
static noinline void
pmuk_sched_record_raw(struct pmuk_sched_sink *sink, const struct pmuk_sched_cpu *c,
		      const struct task_struct *prev, const struct task_struct *next, u16 misc,
		      u64 run, u64 wait, u64 cycles, u64 insns)
{
	const struct pmuk_sched_slice s = {
		.time		= c->start,
		.run		= run,
		.wait		= wait,
		.counts		= { cycles, insns },
		.prev_pid	= prev->pid,
		.next_pid	= next->pid,
		.misc		= misc,
	};

	pmuk_sched_raw_switch(sink, &s);
}

/* Of what has just been accounted. What cannot be written is counted by the ring. */
static __always_inline void
pmuk_sched_record(struct pmuk_sched_sink *sink, const struct pmuk_sched_cpu *c,
		  const struct task_struct *prev, const struct task_struct *next, u16 misc,
		  u64 run, u64 wait, u64 cycles, u64 insns)
{
	struct pmuk_sched_switch *rec;

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
	rec->time = c->start;
	rec->prev_pid = prev->pid;
	rec->next_pid = next->pid;
	rec->run = pmuk_sched_saturate(run);
	rec->wait = pmuk_sched_saturate(wait);
	rec->counts[0] = cycles;
	rec->counts[1] = insns;
	pmuk_output_end(sink->buffer, &rec->header);
}

static __always_inline void pmuk_sched_bought(struct pmuk_sched_cpu *c, u64 cycles, u64 insns)
{
	pmuk_sched_sum(&c->ipcs[pmuk_sched_ipc_bucket(cycles, insns)], 1);
}

/* Whatever there is to count, of a slice that may have been looked at; ->slice says what. */
static void pmuk_sched_count_whole(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t)
{
	unsigned int i;

	pmuk_sched_count_slow(c, t);
	for (i = 0; i < pmuk_sched.nr; i++) {
		c->slice[i] += c->parts[i];
		c->parts[i] = 0;
	}
}

/* For how long the idle task has run, which runs now: by ticks, and less than it is. */
u64 pmuk_sched_idle_so_far(const struct pmuk_sched_cpu *c)
{
	unsigned long ticks = jiffies - READ_ONCE(c->idle_since);

	return ticks > 1 && ticks < LONG_MAX ? (u64)(ticks - 1) * TICK_NSEC : 0;
}

/* Idle that began before we did, with an old clock: what readers were told of it holds. */
static u64 pmuk_sched_correct(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t, u64 run)
{
	u64 real = min(pmuk_sched_idle_so_far(c), run);

	c->fresh = false;
	WRITE_ONCE(t->run, t->run - run + real);
	WRITE_ONCE(c->first, c->first + run - real);
	return real;
}

/* What is not the rule: other than two counters, or lost ones; a slice that was looked at. */
static void pmuk_sched_finish(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t,
			      const struct task_struct *prev, const struct task_struct *next,
			      unsigned int how, u64 run, u64 wait)
{
	struct pmuk_sched_sink *sink = rcu_dereference_sched(c->sink);
	bool whole;

	if (unlikely(c->fresh))
		run = pmuk_sched_correct(c, t, run);
	pmuk_sched_count_whole(c, t);
	whole = c->counted == PMUK_SCHED_COUNTED && !c->torn;
	run += c->part;
	c->part = 0;
	c->torn = false;
	if (t != pmuk_sched_idle(c)) {
		pmuk_sched_sliced(c, &(const struct pmuk_sched_left){ run, wait, how });
		if (pmuk_sched.ipc && whole)
			pmuk_sched_bought(c, c->slice[0], c->slice[1]);
	}
	if (sink)
		pmuk_sched_record(sink, c, prev, next,
				  how | (pmuk_sched.nr && !whole ? PMUK_SCHED_INVALID : 0),
				  run, wait, c->slice[0], c->slice[1]);
	pmuk_sched_set_plain(c);
}

static __always_inline struct pmuk_sched_left
pmuk_sched_leave(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t,
		 const struct pmuk_sched_task *n, bool preempt, struct task_struct *prev,
		 struct task_struct *next, unsigned int prev_state, u64 clock)
{
	struct pmuk_sched_left left = { .how = PMUK_SCHED_VOLUNTARY };

	left.run = pmuk_sched_time(c, t, clock);
	left.wait = pmuk_sched_delay(prev) - c->delay;
	if (unlikely(t->delay & PMUK_SCHED_HELD))
		left.wait = pmuk_sched_release(t, prev);
	if (likely(prev_state && !preempt))
		WRITE_ONCE(t->left[PMUK_SCHED_VOLUNTARY], t->left[PMUK_SCHED_VOLUNTARY] + 1);
	else
		left.how = pmuk_sched_leave_unblocked(c, preempt, t, n, prev, next);
	c->delay = pmuk_sched_delay(next);
	return left;
}

/*
 * While ->task is the idle task, others read what is known of the CPU without asking it: they see
 * that it is not idle any more before they see anything of what follows.
 */
static __always_inline void pmuk_sched_change(struct pmuk_sched_cpu *c)
{
	WRITE_ONCE(c->task, NULL);
	smp_wmb();	/* pairs with pmuk_sched_copy_quiet() */
}

static noinline void pmuk_sched_switch_slow(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t,
					    bool preempt, struct task_struct *prev,
					    struct task_struct *next, unsigned int prev_state,
					    u64 clock)
{
	struct pmuk_sched_task *n;
	struct pmuk_sched_left left;

	pmuk_sched_change(c);
	pmuk_sched_sum(&c->slow, 1);
	n = pmuk_sched_who(c, next);
	left = pmuk_sched_leave(c, t, n, preempt, prev, next, prev_state, clock);
	pmuk_sched_finish(c, t, prev, next, left.how, left.run, left.wait);
	smp_store_release(&c->task, n);	/* pairs with pmuk_sched_copy_quiet() */
}

/* @idle: the idle task leaves: it has no slices, and no IPC. @now: what has been counted. */
static __always_inline void
pmuk_sched_switch_short(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t, bool idle,
			bool preempt, struct task_struct *prev, struct task_struct *next,
			unsigned int prev_state, u64 clock, u64 now[2])
{
	struct pmuk_sched_sink *sink;
	struct pmuk_sched_left left;
	struct pmuk_sched_task *n;

	if (idle)
		pmuk_sched_change(c);
	n = pmuk_sched_who(c, next);
	left = pmuk_sched_leave(c, t, n, preempt, prev, next, prev_state, clock);
	if (!idle)
		pmuk_sched_sliced(c, &left);
	now[0] = pmuk_sched_count_one(c, t, 0, now[0]);
	now[1] = pmuk_sched_count_one(c, t, 1, now[1]);
	if (!idle)
		pmuk_sched_bought(c, now[0], now[1]);
	sink = rcu_dereference_sched(c->sink);
	if (unlikely(sink))
		pmuk_sched_record(sink, c, prev, next, left.how, left.run, left.wait, now[0],
				  now[1]);
	smp_store_release(&c->task, n);	/* pairs with pmuk_sched_copy_quiet() */
}

/* Apart, so that other switches need not ask twice. */
static noinline void pmuk_sched_switch_idle(struct pmuk_sched_cpu *c, struct pmuk_sched_task *t,
					    struct task_struct *prev, struct task_struct *next,
					    u64 clock, u64 now[2])
{
	pmuk_sched_switch_short(c, t, true, false, prev, next, 0, clock, now);
}

/*
 * Interrupts are off, and the CPU's run queue is locked. @clock: the CPU's, with interrupts and
 * without what a hypervisor took.
 */
void pmuk_sched_switch(void *data, bool preempt, struct task_struct *prev,
		       struct task_struct *next, unsigned int prev_state, u64 clock)
{
	struct pmuk_sched_cpu *c = this_cpu_ptr(&pmuk_sched_cpus);
	struct pmuk_sched_task *t = c->task;
	u64 now[2];

	if (unlikely(!t))
		return;
	if (unlikely(!c->plain || pmuk_read_local(pmuk_sched.ctx, now, 2)))
		pmuk_sched_switch_slow(c, t, preempt, prev, next, prev_state, clock);
	else if (t == pmuk_sched_idle(c))
		pmuk_sched_switch_idle(c, t, prev, next, clock, now);
	else
		pmuk_sched_switch_short(c, t, false, preempt, prev, next, prev_state, clock, now);
}

#ifndef CONFIG_SCHED_SWITCH_HOOK
/* The probe of sched_switch, which has no clock: who comes was stamped with it. */
void pmuk_sched_switch_probe(void *data, bool preempt, struct task_struct *prev,
			     struct task_struct *next, unsigned int prev_state)
{
	pmuk_sched_switch(data, preempt, prev, next, prev_state, sched_switch_clock_of(next));
}
#endif

/*
 * What the task that runs now has had so far, for who wants to know. Its time is as of the
 * latest tick, or of when the scheduler last had a look.
 */
void pmuk_sched_look(void *data)
{
	struct pmuk_sched_cpu *c = this_cpu_ptr(&pmuk_sched_cpus);
	unsigned long flags;
	unsigned int i;

	local_irq_save(flags);
	if (c->task) {
		pmuk_sched_count_slow(c, c->task);
		c->part += pmuk_sched_time(c, c->task, sched_switch_clock());
		for (i = 0; i < pmuk_sched.nr; i++)
			c->parts[i] += c->slice[i];
		c->torn |= c->counted != PMUK_SCHED_COUNTED;
		c->plain = false;
	}
	local_irq_restore(flags);
}

bool pmuk_sched_is_idle(int cpu)
{
	struct pmuk_sched_cpu *c = per_cpu_ptr(&pmuk_sched_cpus, cpu);

	return READ_ONCE(c->task) == pmuk_sched_idle(c);
}

/* Readers do not disturb an isolated CPU. Cpusets replace the mask of these, and RCU frees it. */
bool pmuk_sched_is_isolated(int cpu)
{
	guard(rcu)();
	return cpu_is_isolated(cpu) || tick_nohz_full_cpu(cpu);
}

static bool pmuk_sched_can_be_asked(int cpu, void *data)
{
	return !pmuk_sched_is_idle(cpu) && !pmuk_sched_is_isolated(cpu);
}

/* All tasks that run have their counts, but for those of isolated CPUs. */
void pmuk_sched_look_all(void)
{
	on_each_cpu_cond(pmuk_sched_can_be_asked, pmuk_sched_look, NULL, true);
}

/* Nothing follows for a while, or for ever: what was written is not to wait for it. */
void pmuk_sched_end(void *data)
{
	struct pmuk_sched_cpu *c = this_cpu_ptr(&pmuk_sched_cpus);
	struct pmuk_sched_sink *sink = rcu_dereference_sched(c->sink);

	WRITE_ONCE(c->task, NULL);
	if (sink)
		pmuk_sched_raw_end(sink);
}

/* From here on, on a CPU that others cannot take us from. Of what was before, the sums are kept. */
void pmuk_sched_begin(void *data)
{
	struct pmuk_sched_cpu *c = this_cpu_ptr(&pmuk_sched_cpus);
	u64 now, counts[PMUK_SCHED_EVENTS];
	unsigned long flags;
	unsigned int i;

	if (!__this_cpu_read(pmuk_sched_up))
		return;
	local_irq_save(flags);
	now = sched_switch_clock();
	WRITE_ONCE(c->first, c->first + now - c->start);
	WRITE_ONCE(c->start, now);
	c->fresh = is_idle_task(current);
	c->part = 0;
	c->torn = false;
	memset(c->parts, 0, sizeof(c->parts));
	WRITE_ONCE(c->counted, PMUK_SCHED_UNCOUNTED);
	if (pmuk_sched.nr && !pmuk_read_local(pmuk_sched.ctx, counts, pmuk_sched.nr)) {
		WRITE_ONCE(c->counted, PMUK_SCHED_COUNTED);
		for (i = 0; i < pmuk_sched.nr; i++)
			pmuk_sched_skip_one(c, i, counts);
	}
	c->plain = false;	/* the first one is looked at */
	c->delay = pmuk_sched_delay(current);
	smp_store_release(&c->task, pmuk_sched_who(c, current));	/* as in a switch */
	local_irq_restore(flags);
}

/* How many slices were of tasks that are not known. */
u64 pmuk_sched_nr_strays(void)
{
	u64 strays = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		strays += READ_ONCE(per_cpu(pmuk_sched_cpus, cpu).strays);
	return strays;
}

/* How many switches did not take the short way, see pmuk_sched_switch(). */
u64 pmuk_sched_nr_slow(void)
{
	u64 slow = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		slow += READ_ONCE(per_cpu(pmuk_sched_cpus, cpu).slow);
	return slow;
}

/* What tasks have had: all that was accounted, less what idle has had. */
void pmuk_sched_cpu_totals(struct pmuk_sched_cpu *c, struct pmuk_sched_totals *sum)
{
	const struct pmuk_sched_task *idle = pmuk_sched_idle(c);
	unsigned int i, how;

	*sum = (struct pmuk_sched_totals){};
	sum->run = READ_ONCE(c->start) - READ_ONCE(c->first) - READ_ONCE(idle->run);
	sum->wait = READ_ONCE(c->wait);
	for (how = 0; how < PMUK_SCHED_HOWS; how++) {
		for (i = 0; i < PMUK_SCHED_BUCKETS; i++)
			sum->left[how] += READ_ONCE(c->slices[how][i]);
	}
	for (i = 0; i < pmuk_sched.nr; i++)
		sum->counts[i] = READ_ONCE(c->base[i]) - READ_ONCE(c->firsts[i]) -
				 READ_ONCE(idle->counts[i]);
	sum->invalid = READ_ONCE(c->lapsed);
}
