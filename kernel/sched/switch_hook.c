// SPDX-License-Identifier: GPL-2.0
/* The hook that the scheduler calls at each switch, see linux/sched/switch_hook.h. */
#include <linux/export.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched/switch_hook.h>
#include <linux/static_call.h>

#include "sched.h"

DEFINE_STATIC_KEY_FALSE(sched_switch_hooked);

static void sched_switch_no_hook(bool preempt, struct task_struct *prev, struct task_struct *next,
				 unsigned int prev_state, u64 clock)
{
}

/*
 * The key is a variable without CONFIG_JUMP_LABEL. A CPU may then see the key on before it sees the
 * new function, so there is always a function to call.
 */
DEFINE_STATIC_CALL(sched_switch_call, sched_switch_no_hook);

static DEFINE_MUTEX(sched_switch_hook_lock);

/**
 * sched_switch_hook_set() - set the function that the scheduler calls at each switch
 * @fn: the function
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @fn is NULL, -EBUSY if a function is already set.
 */
int sched_switch_hook_set(sched_switch_hook_t fn)
{
	if (!fn)
		return -EINVAL;
	guard(mutex)(&sched_switch_hook_lock);
	if (static_key_enabled(&sched_switch_hooked))
		return -EBUSY;
	static_call_update(sched_switch_call, fn);
	static_branch_enable(&sched_switch_hooked);
	return 0;
}
EXPORT_SYMBOL_GPL(sched_switch_hook_set);

/**
 * sched_switch_hook_clear() - remove the function that sched_switch_hook_set() has set
 *
 * When this returns, the function no longer runs on any CPU.
 *
 * Context: May sleep.
 */
void sched_switch_hook_clear(void)
{
	guard(mutex)(&sched_switch_hook_lock);
	static_branch_disable(&sched_switch_hooked);
	static_call_update(sched_switch_call, sched_switch_no_hook);
	synchronize_rcu();
}
EXPORT_SYMBOL_GPL(sched_switch_hook_clear);

/**
 * sched_switch_clock() - read the clock of switches as of the scheduler's latest update
 *
 * The clock advances while the CPU runs tasks, its idle task or interrupts. It stands still while a
 * hypervisor has taken the CPU (steal time), as counters do.
 *
 * Context: Interrupts are off.
 * Return: Nanoseconds on this CPU's clock.
 */
u64 sched_switch_clock(void)
{
	struct rq *rq = this_rq();
	u64 clock = READ_ONCE(rq->clock_task);

#ifdef CONFIG_IRQ_TIME_ACCOUNTING
	/* If another CPU updates both meanwhile, the sum is between the old and the new clock. */
	clock += READ_ONCE(rq->prev_irq_time);
#endif
	return clock;
}
EXPORT_SYMBOL_GPL(sched_switch_clock);
