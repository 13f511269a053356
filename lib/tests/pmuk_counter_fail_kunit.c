// SPDX-License-Identifier: GPL-2.0
/*
 * The tests create a counter again and again. The first allocation fails, then the second, and so
 * on, until none is left to fail. A failed create returns -ENOMEM and leaks nothing.
 */
#include <linux/kthread.h>

#include "pmuk_fail.h"
#include "pmuk_suite.h"
#include "pmuk_test.h"

static int wait_for_stop(void *unused)
{
	return pmuk_test_wait_for_stop();
}

/* Returns a new task. perf core has no context for it yet, and has to allocate one, too. */
static struct task_struct *fresh_task(struct kunit *test)
{
	struct task_struct *task = kthread_run(wait_for_stop, NULL, "pmuk_fresh");

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	return task;
}

static const struct made {
	const char *name;
	u32 flags;
	bool on_task;
	unsigned int fewest;		/* least number of allocations */
} made[] = {
	/* A counter on a CPU allocates itself and its perf event. */
	{ "on a CPU", 0, false, 2 },
	{ "pinned on a CPU", PMUK_PINNED, false, 2 },
	/* A counter on a task also allocates the contexts of the task and of the PMU. */
	{ "on a task", 0, true, 4 },
	{ "inherited", PMUK_INHERIT, true, 4 },
};

static void each_allocation_fails(struct kunit *test)
{
	const struct made *m = test->param_value;
	struct pmuk_sweep s = pmuk_new_sweep(test);
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = { .type = pmuk_sim_type(sim), .period = 1000, .flags = m->flags };
	int ret, cpu = m->on_task ? -1 : pmuk_test_pin_first(test);

	do {
		struct task_struct *task = m->on_task ? fresh_task(test) : NULL;
		struct pmuk_counter *c;

		pmuk_fail_nth(s.nth);
		c = pmuk_counter_create(&attr, cpu, task);
		s.left = pmuk_fail_left();
		ret = PTR_ERR_OR_ZERO(c);
		if (ret)
			KUNIT_EXPECT_EQ(test, ret, -ENOMEM);
		else
			KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
		pmuk_counter_destroy(c);
		KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
		KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(sim), 0);
		if (task)
			kthread_stop(task);
	} while (pmuk_sweep_on(&s, ret));
	pmuk_sweep_end(&s, m->fewest);
}

KUNIT_ARRAY_PARAM_DESC(made, made, name);

static struct kunit_case pmuk_counter_fail_cases[] = {
	KUNIT_CASE_PARAM(each_allocation_fails, made_gen_params),
	{}
};

PMUK_SUITE(pmuk_counter_fail, pmuk_test_init,
	   "KUnit tests of pmuk's counters when memory is short");
