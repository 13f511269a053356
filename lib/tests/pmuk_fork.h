/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A test's task forks and reaps children by these calls. kernel_thread() is not exported, so tests
 * in modules cannot fork.
 */
#ifndef _PMUK_FORK_H
#define _PMUK_FORK_H

#include <kunit/test.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#ifdef MODULE
#define PMUK_CAN_FORK	0
#else
#define PMUK_CAN_FORK	1
#endif

static inline void pmuk_need_fork(struct kunit *test)
{
	if (!PMUK_CAN_FORK)
		kunit_skip(test, "kernel_thread() is not exported: a module cannot fork");
}

/* Forks a child of this task that runs @fn. Returns its pid or an error. */
static inline pid_t pmuk_fork(int (*fn)(void *data), void *data)
{
	if (!PMUK_CAN_FORK)
		return -EOPNOTSUPP;
	kernel_sigaction(SIGCHLD, SIG_DFL);
	return kernel_thread(fn, data, "pmuk_child", CLONE_FS | CLONE_FILES | SIGCHLD);
}

/* Waits for @pid to exit. Returns whether it was a child of this task. */
static inline bool pmuk_reap(pid_t pid)
{
	return PMUK_CAN_FORK && pid > 0 && kernel_wait(pid, NULL) == pid;
}

/* A child ends by this call. */
static inline void pmuk_exit_child(void)
{
	if (PMUK_CAN_FORK)
		do_exit(0);
}

#endif /* _PMUK_FORK_H */
