// SPDX-License-Identifier: GPL-2.0
/*
 * Who is called at each switch, see linux/sched/switch_hook.h.
 */
#include <linux/export.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched/switch_hook.h>

#include "sched.h"

DEFINE_STATIC_KEY_FALSE(sched_switch_hooked);

static void sched_switch_no_hook(void *data, bool preempt, struct task_struct *prev,
				 struct task_struct *next, unsigned int prev_state, u64 clock)
{
}

/* Written while the key is off; where that is no code, some CPU may see the key first. */
sched_switch_hook_t sched_switch_hook_fn = sched_switch_no_hook;

static DEFINE_MUTEX(sched_switch_hook_lock);

/**
 * sched_switch_hook_set() - have a function called at each switch
 * @fn: the function
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @fn is NULL, -EBUSY if there is one.
 */
int sched_switch_hook_set(sched_switch_hook_t fn)
{
	if (!fn)
		return -EINVAL;
	guard(mutex)(&sched_switch_hook_lock);
	if (static_key_enabled(&sched_switch_hooked))
		return -EBUSY;
	WRITE_ONCE(sched_switch_hook_fn, fn);
	static_branch_enable(&sched_switch_hooked);
	return 0;
}
EXPORT_SYMBOL_GPL(sched_switch_hook_set);

/**
 * sched_switch_hook_clear() - have it called no more
 *
 * When this returns, it does not run on any CPU.
 *
 * Context: May sleep.
 */
void sched_switch_hook_clear(void)
{
	guard(mutex)(&sched_switch_hook_lock);
	static_branch_disable(&sched_switch_hooked);
	WRITE_ONCE(sched_switch_hook_fn, sched_switch_no_hook);
	synchronize_rcu();
}
EXPORT_SYMBOL_GPL(sched_switch_hook_clear);

/**
 * sched_switch_clock() - the clock of switches, when the scheduler last looked at it
 *
 * Goes on while the CPU runs tasks, its idle task or interrupts, and stands still while a
 * hypervisor has taken the CPU: as counters do.
 *
 * Context: Interrupts are off.
 * Return: Nanoseconds of this CPU.
 */
u64 sched_switch_clock(void)
{
	struct rq *rq = this_rq();
	u64 clock = READ_ONCE(rq->clock_task);

#ifdef CONFIG_IRQ_TIME_ACCOUNTING
	/* Another CPU may update both in between: then this is a moment before. */
	clock += READ_ONCE(rq->prev_irq_time);
#endif
	return clock;
}
EXPORT_SYMBOL_GPL(sched_switch_clock);
