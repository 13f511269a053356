// SPDX-License-Identifier: GPL-2.0
/*
 * The workqueues of pmuk. All work of pmuk is queued here, so destroying the workqueues waits for
 * whatever is still about to return when the module is unloaded.
 */
#include <linux/errno.h>
#include <linux/init.h>

#include "work.h"

struct workqueue_struct *pmuk_wq;
struct workqueue_struct *pmuk_turns_wq;

int __init pmuk_work_init(void)
{
	pmuk_wq = alloc_workqueue("pmuk", WQ_UNBOUND, 0);
	if (!pmuk_wq)
		return -ENOMEM;
	pmuk_turns_wq = alloc_workqueue("pmuk_turns", WQ_HIGHPRI | WQ_PERCPU | WQ_MEM_RECLAIM, 0);
	if (pmuk_turns_wq)
		return 0;
	destroy_workqueue(pmuk_wq);
	return -ENOMEM;
}

void pmuk_work_exit(void)
{
	destroy_workqueue(pmuk_turns_wq);
	destroy_workqueue(pmuk_wq);
}
