// SPDX-License-Identifier: GPL-2.0
/*
 * A CPU goes offline and comes back. Its counters are gone for good, their state and reads tell
 * that, and their counts stay. Counters of other CPUs and of tasks go on.
 */
#include <linux/cpu.h>
#include <linux/kthread.h>

#include "pmuk_counters.h"
#include "pmuk_suite.h"

struct plug {
	struct pmuk_sim *sim;
	struct pmuk_attr attr;
	int cpu, stays;
};

static int hotplug_init(struct kunit *test)
{
	struct plug *p = pmuk_test_zalloc(test, sizeof(*p));

	pmuk_test_init(test);
	test->priv = p;
	p->stays = pmuk_test_pin_first(test);
	p->cpu = pmuk_test_other_cpu(test, p->stays);
	p->sim = pmuk_test_sim(test, 1, 16);
	p->attr.type = pmuk_sim_type(p->sim);
	pmuk_test_keep_online(test, p->cpu);

	pmuk_test_expect_offline(test, p->cpu, remove_cpu(p->cpu));
	return add_cpu(p->cpu);
}

static void create_refuses_offline_cpu(struct kunit *test)
{
	struct plug *p = test->priv;
	u32 fits;

	KUNIT_ASSERT_EQ(test, remove_cpu(p->cpu), 0);
	KUNIT_EXPECT_EQ(test, pmuk_room(&p->attr, 1, p->cpu, &fits), -ENODEV);
	pmuk_test_refused(test, &p->attr, p->cpu, NULL, -ENODEV, "flexible");
	p->attr.flags = PMUK_PINNED;
	pmuk_test_refused(test, &p->attr, p->cpu, NULL, -ENODEV, "pinned");
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(p->sim), 0);
}

static void offline_keeps_the_count(struct kunit *test)
{
	struct plug *p = test->priv;
	struct pmuk_counter *c = pmuk_test_enabled(test, &p->attr, p->cpu, NULL);

	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(p->sim, p->cpu, 0, 100003), 100003);
	KUNIT_ASSERT_EQ(test, remove_cpu(p->cpu), 0);
	pmuk_test_expect_gone(test, c, -ENODEV, 100003);
	KUNIT_ASSERT_EQ(test, add_cpu(p->cpu), 0);
	pmuk_test_expect_gone(test, c, -ENODEV, 100003);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(p->sim, p->cpu, 0, 10), 0);
	pmuk_test_expect_gone(test, c, -ENODEV, 100003);
}

/* A register that has gone with its CPU is not shared by counters that come later. */
static void shared_register_comes_back(struct kunit *test)
{
	struct plug *p = test->priv;
	struct pmuk_counter *before, *after;

	p->attr.flags = PMUK_PINNED;
	before = pmuk_test_enabled(test, &p->attr, p->cpu, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(p->sim, p->cpu, 0, 77), 77);
	KUNIT_ASSERT_EQ(test, remove_cpu(p->cpu), 0);
	pmuk_test_expect_gone(test, before, -ENODEV, 77);
	KUNIT_ASSERT_EQ(test, add_cpu(p->cpu), 0);
	after = pmuk_test_enabled(test, &p->attr, p->cpu, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(p->sim, p->cpu, 0, 10), 10);
	KUNIT_EXPECT_EQ(test, pmuk_test_count(test, after), 10);
	pmuk_test_expect_gone(test, before, -ENODEV, 77);
}

static void offline_of_disabled(struct kunit *test)
{
	struct plug *p = test->priv;
	struct pmuk_counter *c = pmuk_test_enabled(test, &p->attr, p->cpu, NULL);

	pmuk_sim_count_on(p->sim, p->cpu, 0, 77);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	KUNIT_ASSERT_EQ(test, remove_cpu(p->cpu), 0);
	pmuk_test_expect_gone(test, c, -ENODEV, 77);
}

static void pause_there(void *data)
{
	pmuk_counter_pause(data);
}

static void offline_of_paused(struct kunit *test)
{
	struct plug *p = test->priv;
	struct pmuk_counter *c = pmuk_test_enabled(test, &p->attr, p->cpu, NULL);

	pmuk_sim_count_on(p->sim, p->cpu, 0, 77);
	smp_call_function_single(p->cpu, pause_there, c, true);
	KUNIT_ASSERT_EQ(test, remove_cpu(p->cpu), 0);
	pmuk_test_expect_gone(test, c, -ENODEV, 77);
}

static void other_cpus_count_on(struct kunit *test)
{
	struct plug *p = test->priv;
	struct pmuk_counter *c = pmuk_test_enabled(test, &p->attr, p->stays, NULL);

	pmuk_sim_count(p->sim, 0, 10);
	KUNIT_ASSERT_EQ(test, remove_cpu(p->cpu), 0);
	pmuk_sim_count(p->sim, 0, 10);
	KUNIT_ASSERT_EQ(test, add_cpu(p->cpu), 0);
	pmuk_sim_count(p->sim, 0, 10);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, c), 30);
}

static void new_counter_after_online(struct kunit *test)
{
	struct plug *p = test->priv;
	struct pmuk_counter *c;

	KUNIT_ASSERT_EQ(test, remove_cpu(p->cpu), 0);
	KUNIT_ASSERT_EQ(test, add_cpu(p->cpu), 0);
	c = pmuk_test_enabled(test, &p->attr, p->cpu, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(p->sim, p->cpu, 0, 5), 5);
	pmuk_test_expect_value(test, c, 0, 5);
}

struct runner {
	struct plug *p;
	struct pmuk_counter *c;
	u64 total, wrong;
};

static int count_all_the_time(void *data)
{
	struct runner *r = data;
	u64 count;

	while (!kthread_should_stop()) {
		/*
		 * While the task leaves a CPU that goes offline, a step may find the counter on no
		 * CPU.
		 */
		WRITE_ONCE(r->total, r->total + pmuk_sim_count(r->p->sim, 0, 10));
		if (pmuk_counter_read_local(r->c, &count) || count != r->total)
			WRITE_ONCE(r->wrong, r->wrong + 1);
		cond_resched();
	}
	return 0;
}

/* A task that runs on the CPU moves to another CPU, and its counter counts on there. */
static void task_counter_survives(struct kunit *test)
{
	struct plug *p = test->priv;
	struct runner r = { .p = p };
	struct task_struct *task = kthread_create(count_all_the_time, &r, "pmuk_runner");
	unsigned int i, ret = 0;
	u64 before;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	r.c = pmuk_counter_create(&p->attr, -1, task);
	if (!IS_ERR(r.c))
		ret |= pmuk_counter_enable(r.c);
	wake_up_process(task);
	for (i = 0; i < 2; i++) {
		before = READ_ONCE(r.total);
		ret |= remove_cpu(p->cpu);
		ret |= add_cpu(p->cpu);
		/* A thread that had to leave its CPU gets all CPUs again. */
		set_cpus_allowed_ptr(task, cpu_possible_mask);
		while (READ_ONCE(r.total) == before && !READ_ONCE(r.wrong))
			schedule_timeout_uninterruptible(1);
	}
	get_task_struct(task);
	kthread_stop(task);
	put_task_struct(task);

	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_EQ(test, r.wrong, 0);
	KUNIT_EXPECT_GT(test, r.total, 0);
	pmuk_test_expect_value(test, r.c, -ESRCH, r.total);
	pmuk_counter_destroy(r.c);
}

/*
 * Counters are created, read and destroyed while the CPU comes and goes. No error but -ENODEV
 * comes.
 */
static void churn(void *data)
{
	struct runner *r = data;
	struct pmuk_value value;
	struct pmuk_counter *c;
	int ret;

	r->p->attr.flags ^= PMUK_PINNED;
	c = pmuk_counter_create(&r->p->attr, r->p->cpu, NULL);
	ret = PTR_ERR_OR_ZERO(c) ?: pmuk_counter_enable(c) ?: pmuk_counter_read(c, &value);
	pmuk_counter_destroy(c);
	if (ret && ret != -ENODEV)
		r->wrong++;
}

static void create_races_with_hotplug(struct kunit *test)
{
	struct plug *p = test->priv;
	struct runner r = { .p = p };
	struct pmuk_loop *loop = pmuk_loop_start(test, -1, churn, &r);
	unsigned int i, ret = 0;

	for (i = 0; i < 3; i++) {
		ret |= remove_cpu(p->cpu);
		ret |= add_cpu(p->cpu);
	}
	while (READ_ONCE(loop->turns) < 100)
		schedule_timeout_uninterruptible(1);
	pmuk_loop_stop(test, loop);
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_EQ(test, r.wrong, 0);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(p->sim), 0);
}

static struct kunit_case pmuk_counter_hotplug_cases[] = {
	KUNIT_CASE(create_refuses_offline_cpu),
	KUNIT_CASE(offline_keeps_the_count),
	KUNIT_CASE(shared_register_comes_back),
	KUNIT_CASE(offline_of_disabled),
	KUNIT_CASE(offline_of_paused),
	KUNIT_CASE(other_cpus_count_on),
	KUNIT_CASE(new_counter_after_online),
	KUNIT_CASE(task_counter_survives),
	KUNIT_CASE_SLOW(create_races_with_hotplug),
	{}
};

PMUK_SUITE(pmuk_counter_hotplug, hotplug_init, "KUnit tests of pmuk's counters and CPU hotplug");
