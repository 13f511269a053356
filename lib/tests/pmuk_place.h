/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A context can be loaded on these kinds of target. For each kind there is a way to let events
 * happen on all of the target: on its CPUs, or by its task, and for a tree by a child as well.
 */
#ifndef _PMUK_PLACE_H
#define _PMUK_PLACE_H

#include <linux/cpumask.h>
#include <linux/sched/task.h>
#include <linux/smp.h>

#include "pmuk_ctx.h"
#include "pmuk_fork.h"

#define PMUK_PLACE_KINDS	(PMUK_TARGET_TREE + 1)

static const struct pmuk_place_kind {
	enum pmuk_target_type type;
	const char *name;
} pmuk_place_kinds[PMUK_PLACE_KINDS] __maybe_unused = {
	{ PMUK_TARGET_CPU, "CPU" },
	{ PMUK_TARGET_CPUS, "CPUS" },
	{ PMUK_TARGET_TASK, "TASK" },
	{ PMUK_TARGET_TREE, "TREE" },
};

struct pmuk_place {
	struct kunit *test;
	struct pmuk_sim *sim;
	struct pmuk_target target;
	unsigned int nr;		/* number of places where each event happens */
	int cpu;			/* the place's CPU, or one of them */
	u64 config, n;			/* event, and how often it happens */
	u64 counted;			/* sum of what the PMU has counted */

	struct task_struct *task;	/* waits for ->told, and calls ->fn */
	struct completion told, did;
	void (*fn)(struct pmuk_place *p);	/* function for the task */
	void (*by)(struct pmuk_place *p);	/* function that lets events happen */
	void *data;
	bool dismissed;
};

static inline bool pmuk_place_is_task(const struct pmuk_place *p)
{
	return p->target.type == PMUK_TARGET_TASK || p->target.type == PMUK_TARGET_TREE;
}

static inline int pmuk_place_thread(void *data)
{
	struct pmuk_place *p = data;

	/* The task binds itself, as the start of a kthread undoes a binding by others. */
	set_cpus_allowed_ptr(current, cpumask_of(p->cpu));
	for (;;) {
		complete(&p->did);
		wait_for_completion(&p->told);
		if (!p->fn)
			return 0;
		p->fn(p);
	}
}

/* Lets the task of @p call @fn, and waits until it has returned. */
static inline void pmuk_place_tell(struct pmuk_place *p, void (*fn)(struct pmuk_place *p))
{
	p->fn = fn;
	complete(&p->told);
	wait_for_completion(&p->did);
}

/* Lets the task exit. Its task_struct stays until the test case ends. */
static inline void pmuk_place_dismiss(struct pmuk_place *p)
{
	if (!p->task || p->dismissed)
		return;
	p->dismissed = true;
	p->fn = NULL;
	complete(&p->told);
	kthread_stop(p->task);
}

static inline void pmuk_place_put(void *data)
{
	struct pmuk_place *p = data;

	pmuk_place_dismiss(p);
	put_task_struct(p->task);
}

/* Creates the task, and returns when it is on its CPU. */
static inline void pmuk_place_get_task(struct pmuk_place *p)
{
	struct task_struct *task = kthread_create(pmuk_place_thread, p, "pmuk_place");

	KUNIT_ASSERT_NOT_ERR_OR_NULL(p->test, task);
	p->task = get_task_struct(task);
	p->target.task = task;
	init_completion(&p->told);
	init_completion(&p->did);
	wake_up_process(task);
	wait_for_completion(&p->did);
	KUNIT_ASSERT_EQ(p->test, kunit_add_action_or_reset(p->test, pmuk_place_put, p), 0);
}

/* Returns a place of the given kind. If the place is one CPU, the test is bound to that CPU. */
static inline struct pmuk_place *pmuk_new_place(struct kunit *test, struct pmuk_sim *sim,
						enum pmuk_target_type type)
{
	struct pmuk_place *p = pmuk_test_zalloc(test, sizeof(*p));

	p->test = test;
	p->sim = sim;
	p->target.type = type;
	p->cpu = pmuk_test_pin_first(test);
	p->target.cpu = type == PMUK_TARGET_CPU ? p->cpu : -1;
	p->nr = type == PMUK_TARGET_CPUS ? num_online_cpus() : 1;
	if (type == PMUK_TARGET_TREE)
		p->nr += PMUK_CAN_FORK;
	if (pmuk_place_is_task(p))
		pmuk_place_get_task(p);
	return p;
}

static inline void pmuk_place_count_here(struct pmuk_place *p)
{
	p->counted += pmuk_sim_count(p->sim, p->config, p->n);
}

/* Does what pmuk_ctx_feed() does, in this task. */
static inline u64 pmuk_place_feed_here(struct pmuk_place *p, u64 config, u64 n)
{
	u64 left = n;

	(void)pmuk_ctx_comes(!(left -= min(left, pmuk_sim_count(p->sim, config, left))));
	return n - left;
}

static inline void pmuk_place_feed_task(struct pmuk_place *p)
{
	p->counted += pmuk_place_feed_here(p, p->config, p->n);
}

static inline int pmuk_place_child(void *data)
{
	struct pmuk_place *p = data;

	p->by(p);
	pmuk_exit_child();
	return 0;
}

/* Calls ->by in this task, and then in a child of it, which has exited when this returns. */
static inline void pmuk_place_by_both(struct pmuk_place *p)
{
	p->by(p);
	if (PMUK_CAN_FORK && !pmuk_reap(pmuk_fork(pmuk_place_child, p)))
		p->counted = U64_MAX;
}

static inline u64 pmuk_place_by_tasks(struct pmuk_place *p, u64 config, u64 n,
				      void (*by)(struct pmuk_place *p))
{
	p->config = config;
	p->n = n;
	p->counted = 0;
	p->by = by;
	pmuk_place_tell(p, p->target.type == PMUK_TARGET_TREE ? pmuk_place_by_both : by);
	return p->counted;
}

static inline void pmuk_place_by_ipi(void *data)
{
	struct pmuk_place *p = data;

	p->by(p);
}

/* Calls @by in each of the places, to let @n events happen. Returns how many were counted. */
static inline u64 pmuk_place_by_all(struct pmuk_place *p, u64 config, u64 n,
				    void (*by)(struct pmuk_place *p))
{
	int cpu;

	if (pmuk_place_is_task(p))
		return pmuk_place_by_tasks(p, config, n, by);
	p->config = config;
	p->n = n;
	p->counted = 0;
	p->by = by;
	for_each_online_cpu(cpu) {
		if (p->target.type == PMUK_TARGET_CPUS || cpu == p->cpu)
			smp_call_function_single(cpu, pmuk_place_by_ipi, p, true);
	}
	return p->counted;
}

/*
 * Lets @n events happen in each of the places. Returns how many were counted: pmuk_place::nr times
 * @n, unless counters are stopped, or overflow. For counters that overflow there is
 * pmuk_place_feed().
 */
static inline u64 pmuk_place_count(struct pmuk_place *p, u64 config, u64 n)
{
	return pmuk_place_by_all(p, config, n, pmuk_place_count_here);
}

/* Moves a child to another CPU than its parent's. */
static inline void pmuk_place_apart(struct pmuk_place *p)
{
	if (current != p->task)
		set_cpus_allowed_ptr(current, cpumask_of(pmuk_test_next_cpu(p->cpu)));
}

/* Moves the task to the next CPU. */
static inline void pmuk_place_move_on(struct pmuk_place *p)
{
	p->cpu = pmuk_test_next_cpu(p->cpu);
	set_cpus_allowed_ptr(current, cpumask_of(p->cpu));
}

/* Does what pmuk_place_count() does for a counter that overflows, and lets it count all events. */
static inline u64 pmuk_place_feed(struct pmuk_place *p, u64 config, u64 n)
{
	u64 counted = 0;
	int cpu;

	if (pmuk_place_is_task(p))
		return pmuk_place_by_tasks(p, config, n, pmuk_place_feed_task);
	if (p->target.type == PMUK_TARGET_CPU)
		return pmuk_ctx_feed(p->sim, p->cpu, config, n);
	for_each_online_cpu(cpu)
		counted += pmuk_ctx_feed(p->sim, cpu, config, n);
	return counted;
}

static inline void pmuk_place_load(struct pmuk_place *p, struct pmuk_context *ctx)
{
	KUNIT_ASSERT_EQ(p->test, pmuk_load_context(ctx, &p->target), 0);
}

static inline void pmuk_place_run(struct pmuk_place *p, struct pmuk_context *ctx)
{
	pmuk_place_load(p, ctx);
	pmuk_ctx_start(p->test, ctx);
}

/* Returns the place of a case whose parameter is from pmuk_place_kinds, with a PMU of its own. */
static inline struct pmuk_place *pmuk_place_of(struct kunit *test)
{
	const struct pmuk_place_kind *kind = test->param_value;

	return pmuk_new_place(test, pmuk_test_sim(test, 4, 32), kind->type);
}

#endif /* _PMUK_PLACE_H */
