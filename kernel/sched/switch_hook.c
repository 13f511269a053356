// SPDX-License-Identifier: GPL-2.0
/*
 * Who is called at each switch, see linux/sched/switch_hook.h.
 */
#include <linux/export.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched/switch_hook.h>

DEFINE_STATIC_KEY_FALSE(sched_switch_hooked);

static void sched_switch_no_hook(void *data, bool preempt, struct task_struct *prev,
				 struct task_struct *next, unsigned int prev_state)
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
