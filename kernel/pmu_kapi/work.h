/* SPDX-License-Identifier: GPL-2.0 */
/* The workqueues of pmuk. */
#ifndef _PMU_KAPI_WORK_H
#define _PMU_KAPI_WORK_H

#include <linux/workqueue.h>

extern struct workqueue_struct *pmuk_wq;	/* destruction, hotplug, the watch */
extern struct workqueue_struct *pmuk_turns_wq;	/* runs a CPU's part of a call */

int pmuk_work_init(void);
void pmuk_work_exit(void);

#endif /* _PMU_KAPI_WORK_H */
