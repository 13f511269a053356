/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One function that is called at each switch from one task to another, for who counts there:
 * without what a tracepoint does before its probe. While there is none, it costs a static key.
 */
#ifndef _LINUX_SCHED_SWITCH_HOOK_H
#define _LINUX_SCHED_SWITCH_HOOK_H

#include <linux/sched.h>
#include <linux/types.h>

#ifndef sched_switch_throttled
/* A cgroup, or SCHED_DEADLINE, keeps @p from running when the quota is used up. */
static inline bool sched_switch_throttled(const struct task_struct *p)
{
#ifdef CONFIG_CFS_BANDWIDTH
	if (p->throttled)
		return true;
#endif
	return p->dl.dl_throttled;
}
#endif

/**
 * typedef sched_switch_hook_t - called at a switch, as a probe of sched_switch is
 * @data: NULL
 * @preempt: the switch is a preemption
 * @prev: who goes
 * @next: who comes
 * @prev_state: of @prev; 0: it could go on
 * @clock: nanoseconds of the CPU, see sched_switch_clock()
 *
 * Context: The scheduler's: interrupts off, run queue locked.
 */
typedef void (*sched_switch_hook_t)(void *data, bool preempt, struct task_struct *prev,
				    struct task_struct *next, unsigned int prev_state, u64 clock);

#ifdef CONFIG_SCHED_SWITCH_HOOK

#include <linux/jump_label.h>

DECLARE_STATIC_KEY_FALSE(sched_switch_hooked);
extern sched_switch_hook_t sched_switch_hook_fn;

int sched_switch_hook_set(sched_switch_hook_t fn);
void sched_switch_hook_clear(void);
u64 sched_switch_clock(void);

/* The scheduler asks first: without a function to call, the clock is not even read. */
static __always_inline bool sched_switch_is_hooked(void)
{
	return static_branch_unlikely(&sched_switch_hooked);
}

static __always_inline void sched_switch_hook(bool preempt, struct task_struct *prev,
					      struct task_struct *next, unsigned int prev_state,
					      u64 clock)
{
	sched_switch_hook_fn(NULL, preempt, prev, next, prev_state, clock);
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

/*
 * The clock as of when @p was stamped, on its CPU, with interrupts off. Where the scheduler leaves
 * interrupts out of that, their time is known to the nanosecond; but for a machine whose
 * sched_clock() is unstable, which knows it by ticks.
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
