/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PMUK_COMPAT_LINUX_SCHED_H
#define _PMUK_COMPAT_LINUX_SCHED_H

#include_next <linux/sched.h>
#include <linux/sched/deadline.h>
#include <linux/version.h>

/*
 * Kernels before 6.18 throttle a cgroup as a whole: the tasks stay on the cgroup's run queue, which
 * is taken off the run queue above.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define sched_switch_throttled sched_switch_throttled
static inline bool sched_switch_throttled(const struct task_struct *p)
{
#ifdef CONFIG_FAIR_GROUP_SCHED
	const struct sched_entity *se = &p->se;

	while (se->on_rq && se->parent)
		se = se->parent;
	if (!se->on_rq && se != &p->se)
		return true;
#endif
	return p->dl.dl_throttled && p->prio < MAX_DL_PRIO;
}
#endif

#endif /* _PMUK_COMPAT_LINUX_SCHED_H */
