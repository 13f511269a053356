/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One function that is called at each switch from one task to another, for who counts there:
 * without what a tracepoint does before its probe. While there is none, it costs a static key.
 */
#ifndef _LINUX_SCHED_SWITCH_HOOK_H
#define _LINUX_SCHED_SWITCH_HOOK_H

#include <linux/types.h>

struct task_struct;

/**
 * typedef sched_switch_hook_t - called at a switch, as a probe of sched_switch is
 * @data: NULL
 * @preempt: the switch is a preemption
 * @prev: who goes
 * @next: who comes
 * @prev_state: of @prev; 0: it could go on
 *
 * Context: The scheduler's: interrupts off, run queue locked.
 */
typedef void (*sched_switch_hook_t)(void *data, bool preempt, struct task_struct *prev,
				    struct task_struct *next, unsigned int prev_state);

#ifdef CONFIG_SCHED_SWITCH_HOOK

#include <linux/jump_label.h>

DECLARE_STATIC_KEY_FALSE(sched_switch_hooked);
extern sched_switch_hook_t sched_switch_hook_fn;

int sched_switch_hook_set(sched_switch_hook_t fn);
void sched_switch_hook_clear(void);

static __always_inline void sched_switch_hook(bool preempt, struct task_struct *prev,
					      struct task_struct *next, unsigned int prev_state)
{
	if (static_branch_unlikely(&sched_switch_hooked))
		sched_switch_hook_fn(NULL, preempt, prev, next, prev_state);
}

#else

static inline void sched_switch_hook(bool preempt, struct task_struct *prev,
				     struct task_struct *next, unsigned int prev_state) { }

#endif

#endif /* _LINUX_SCHED_SWITCH_HOOK_H */
