/* SPDX-License-Identifier: GPL-2.0 */
/* Newer kernels have a scope in which a task acts for the kernel itself. Can go with 6.12. */
#ifndef _PMUK_COMPAT_LINUX_CRED_H
#define _PMUK_COMPAT_LINUX_CRED_H

#include <linux/cleanup.h>
#include <linux/sched/task.h>	/* init_task */
#include_next <linux/cred.h>

#ifndef scoped_with_kernel_creds
DEFINE_LOCK_GUARD_0(pmuk_kernel_creds,
		    _T->old = override_creds(rcu_dereference_raw(init_task.cred)),
		    revert_creds(_T->old), const struct cred *old)
#define scoped_with_kernel_creds()	scoped_guard(pmuk_kernel_creds)
#endif

#endif /* _PMUK_COMPAT_LINUX_CRED_H */
