// SPDX-License-Identifier: GPL-2.0
/*
 * Each allocation that creating a counter makes fails once: the first, the
 * second, … until none is left to fail. The answer is -ENOMEM, and nothing stays.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched/task.h>

#include "pmuk_fail.h"
#include "pmuk_test.h"

#ifdef PMUK_CAN_FAIL

/* The counter, when its @nth allocation fails; *@left is 0 if that one was made. */
static struct pmuk_counter *create_failing(const struct pmuk_attr *attr, int cpu,
					   struct task_struct *task, unsigned int nth,
					   unsigned int *left)
{
	struct pmuk_counter *c;

	current->fail_nth = nth;
	c = pmuk_counter_create(attr, cpu, task);
	*left = current->fail_nth;
	current->fail_nth = 0;
	return c;
}

static int wait_for_stop(void *unused)
{
	while (!kthread_should_stop())
		schedule_timeout_interruptible(HZ);
	return 0;
}

/* A task that nobody has counted on yet: its contexts are to be allocated, too. */
static struct task_struct *fresh_task(struct kunit *test)
{
	struct task_struct *task = kthread_run(wait_for_stop, NULL, "pmuk_fresh");

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	return task;
}

/*
 * A failure that creation survives may have been somebody else's, such as a
 * debugging facility's which refills its pool now and then: the same @nth is tried
 * again before it is the next one's turn.
 */
static void sweep(struct kunit *test, u32 flags, bool on_task, unsigned int fewest)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = {
		.type = pmuk_sim_type(sim),
		.period = 1000,
		.flags = flags,
	};
	int cpu = on_task ? -1 : pmuk_test_pin_first(test);
	unsigned int nth = 1, left = 0, failed = 0, survived = 0, tries;

	pmuk_let_any_allocation_fail(test);
	for (tries = 0; !left && tries < 200; tries++) {
		struct task_struct *task = on_task ? fresh_task(test) : NULL;
		struct pmuk_counter *c = create_failing(&attr, cpu, task, nth, &left);

		if (IS_ERR(c)) {
			KUNIT_EXPECT_EQ_MSG(test, left, 0, "failed without a reason");
			KUNIT_EXPECT_EQ(test, PTR_ERR(c), -ENOMEM);
			failed++;
			nth++;
		} else {
			KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
			nth += !left && ++survived % 4 == 0;
		}
		pmuk_counter_destroy(c);
		KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
		KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(sim), 0);
		if (task)
			kthread_stop(task);
	}
	KUNIT_EXPECT_GT_MSG(test, left, 0, "never succeeded");
	KUNIT_EXPECT_GE(test, failed, fewest);
	kunit_info(test, "%u allocations failed", failed);
}

#else /* no failslab */

static void sweep(struct kunit *test, u32 flags, bool on_task, unsigned int fewest)
{
	kunit_skip(test, "needs FAILSLAB and FAULT_INJECTION_DEBUG_FS");
}

#endif

/* At least: the counter and its perf event. */
static void fail_on_cpu(struct kunit *test)
{
	sweep(test, 0, false, 2);
}

static void fail_pinned_on_cpu(struct kunit *test)
{
	sweep(test, PMUK_PINNED, false, 2);
}

/* And the contexts of task and PMU. */
static void fail_on_task(struct kunit *test)
{
	sweep(test, 0, true, 4);
}

static void fail_inherited(struct kunit *test)
{
	sweep(test, PMUK_INHERIT, true, 4);
}

static struct kunit_case pmuk_counter_fail_cases[] = {
	KUNIT_CASE(fail_on_cpu),
	KUNIT_CASE(fail_pinned_on_cpu),
	KUNIT_CASE(fail_on_task),
	KUNIT_CASE(fail_inherited),
	{}
};

static struct kunit_suite pmuk_counter_fail_suite = {
	.name = "pmuk_counter_fail",
	.init = pmuk_test_init,
	.test_cases = pmuk_counter_fail_cases,
};

kunit_test_suite(pmuk_counter_fail_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of pmuk's counters when memory is short");
