/* SPDX-License-Identifier: GPL-2.0 */
/* A task executes a program that others may not watch, and lives until the end of the test case. */
#ifndef _PMUK_EXEC_H
#define _PMUK_EXEC_H

#include <kunit/test.h>
#include <linux/cred.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/umh.h>

struct pmuk_program {
	int (*begin)(void *data);	/* the task calls this before it executes the program */
	void *data;
	struct task_struct *task;
};

/* The task's group IDs differ, as those of a set-group-ID program do. */
static inline int pmuk_program_init(struct subprocess_info *info, struct cred *new)
{
	struct pmuk_program *p = info->data;

	new->gid = KGIDT_INIT(1);
	p->task = get_task_struct(current);
	return p->begin(p->data);
}

static inline void pmuk_program_end(void *data)
{
	struct pmuk_program *p = data;

	if (!p->task)
		return;
	send_sig(SIGKILL, p->task, 1);
	put_task_struct(p->task);
}

static inline int pmuk_program_try(struct pmuk_program *p)
{
	char *argv[3] = { "sleep", "1000000" }, *envp[1] = {};
	struct subprocess_info *info;

	info = call_usermodehelper_setup("/bin/busybox", argv, envp, GFP_KERNEL,
					 pmuk_program_init, NULL, p);
	return info ? call_usermodehelper_exec(info, UMH_WAIT_EXEC) : -ENOMEM;
}

/* Returns when the task has executed the program. */
static inline void pmuk_program_exec(struct kunit *test, struct pmuk_program *p)
{
	int ret;

	KUNIT_ASSERT_EQ(test, kunit_add_action(test, pmuk_program_end, p), 0);
	ret = pmuk_program_try(p);
	if (ret == -ENOENT)
		kunit_skip(test, "no /bin/busybox");
	KUNIT_ASSERT_EQ(test, ret, 0);
}

#endif /* _PMUK_EXEC_H */
