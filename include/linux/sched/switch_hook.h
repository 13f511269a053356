/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A hook that the scheduler calls at each switch from one task to another, for code that counts
 * there: a direct call is cheaper than a tracepoint and its probe. While no function is set, the
 * hook costs a static key.
 */
#ifndef _LINUX_SCHED_SWITCH_HOOK_H
#define _LINUX_SCHED_SWITCH_HOOK_H

#include <linux/sched.h>
#include <linux/sched/deadline.h>
#include <linux/types.h>

#ifndef sched_switch_throttled
/* True if the scheduling class of @p is the fair one. */
static inline bool sched_switch_is_fair(const struct task_struct *p)
{
#ifdef CONFIG_SCHED_CLASS_EXT
	if (p->scx.flags & SCX_TASK_QUEUED)
		return false;
#endif
	return p->prio >= MAX_RT_PRIO;
}

/*
 * True if @p, which is runnable, must not run: the quota of its cgroup, or its SCHED_DEADLINE
 * budget, is used up. A quota holds in the fair class only. A task that gets another class keeps
 * the flag of the old one.
 */
static inline bool sched_switch_throttled(const struct task_struct *p)
{
#ifdef CONFIG_CFS_BANDWIDTH
	if (p->throttled && sched_switch_is_fair(p))
		return true;
#endif
	return p->dl.dl_throttled && p->prio < MAX_DL_PRIO;
}
#endif

/**
 * typedef sched_switch_hook_t - function to call at a switch
 * @preempt: the switch is a preemption
 * @prev: the task that leaves the CPU
 * @next: the task that gets the CPU
 * @prev_state: state of @prev, which is runnable if this is 0 or @preempt is true
 * @clock: nanoseconds, see sched_switch_clock()
 *
 * Context: Interrupts are off, and the run queue is locked.
 */
typedef void (*sched_switch_hook_t)(bool preempt, struct task_struct *prev,
				    struct task_struct *next, unsigned int prev_state, u64 clock);

#ifdef CONFIG_SCHED_SWITCH_HOOK

#include <linux/jump_label.h>
#include <linux/static_call.h>
#include <asm/barrier.h>

DECLARE_STATIC_KEY_FALSE(sched_switch_hooked);
DECLARE_STATIC_CALL(sched_switch_call, *(sched_switch_hook_t)NULL);

int sched_switch_hook_set(sched_switch_hook_t fn);
void sched_switch_hook_clear(void);
u64 sched_switch_clock(void);

/*
 * Each task has a pointer for the owner of the hook. The pointer is NULL in a new task. Before the
 * owner frees the object behind the pointer, it sets the pointer to NULL, unless the task itself is
 * being freed.
 */
static __always_inline void *sched_switch_data(const struct task_struct *p)
{
	return READ_ONCE(p->switch_data);
}

static inline void sched_switch_set_data(struct task_struct *p, void *data)
{
	smp_store_release(&p->switch_data, data);	/* readers depend on the address */
}

/* The scheduler tests this first, so as not to compute the clock while no function is set. */
static __always_inline bool sched_switch_is_hooked(void)
{
	return static_branch_unlikely(&sched_switch_hooked);
}

static __always_inline void sched_switch_hook(bool preempt, struct task_struct *prev,
					      struct task_struct *next, unsigned int prev_state,
					      u64 clock)
{
	static_call(sched_switch_call)(preempt, prev, next, prev_state, clock);
}

#else

#include <linux/kernel_stat.h>

static inline bool sched_switch_is_hooked(void)
{
	return false;
}

static inline void sched_switch_hook(bool preempt, struct task_struct *prev,
				     struct task_struct *next, unsigned int prev_state,
				     u64 clock) { }

static inline void sched_switch_set_data(struct task_struct *p, void *data) { }

/*
 * The clock as of the latest update of @p's exec_start. Call on the CPU of @p, with interrupts off.
 * With CONFIG_IRQ_TIME_ACCOUNTING, exec_start excludes the time of interrupts, so that is added: to
 * the nanosecond, or in ticks on a machine whose sched_clock() is unstable.
 */
static inline u64 sched_switch_clock_of(const struct task_struct *p)
{
	u64 irq = 0;

	if (IS_ENABLED(CONFIG_IRQ_TIME_ACCOUNTING))
		irq = kcpustat_this_cpu->cpustat[CPUTIME_IRQ] +
		      kcpustat_this_cpu->cpustat[CPUTIME_SOFTIRQ];
	return p->se.exec_start + irq;
}

static inline u64 sched_switch_clock(void)
{
	return sched_switch_clock_of(current);
}

#endif

#endif /* _LINUX_SCHED_SWITCH_HOOK_H */
