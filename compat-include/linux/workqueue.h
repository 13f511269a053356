/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PMUK_COMPAT_LINUX_WORKQUEUE_H
#define _PMUK_COMPAT_LINUX_WORKQUEUE_H

#include_next <linux/workqueue.h>
#include <linux/version.h>

/* 6.17 wants one of WQ_PERCPU and WQ_UNBOUND; before that, workqueues are per CPU unless said. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define WQ_PERCPU	0
/* 6.17 renamed it. */
#define system_dfl_wq	system_unbound_wq
#endif

#endif /* _PMUK_COMPAT_LINUX_WORKQUEUE_H */
