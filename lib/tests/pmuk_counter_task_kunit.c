// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check that a task's counter counts that task and nothing else, on any CPU, until the
 * task exits.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>

#include "pmuk_counters.h"
#include "pmuk_exec.h"
#include "pmuk_place.h"
#include "pmuk_suite.h"

/* Holds a task that runs functions for the test, and the counter of its events. */
struct worker {
	struct pmuk_place *p;
	struct pmuk_sim *sim;
	struct pmuk_attr attr;		/* attributes of the counter */
	struct pmuk_counter *c;
	u64 n, count;
	int ret, state;
	unsigned int nr;
};

static struct pmuk_attr task_attr(const struct pmuk_sim *sim)
{
	return (struct pmuk_attr) { .type = pmuk_sim_type(sim), .flags = PMUK_NO_THROTTLE };
}

/* Returns a worker on the test's CPU, without a counter. */
static struct worker *new_worker(struct kunit *test, struct pmuk_sim *sim)
{
	struct worker *w = pmuk_test_zalloc(test, sizeof(*w));

	w->sim = sim;
	w->attr = task_attr(sim);
	w->p = pmuk_new_place(test, sim, PMUK_TARGET_TASK);
	w->p->data = w;
	return w;
}

/* The worker may exit before its counter is destroyed. */
static void start_counter(struct worker *w)
{
	w->c = pmuk_test_enabled(w->p->test, &w->attr, -1, w->p->task);
}

static struct worker *counted_worker(struct kunit *test, struct pmuk_sim *sim)
{
	struct worker *w = new_worker(test, sim);

	start_counter(w);
	return w;
}

static void work(struct pmuk_place *p)
{
	struct worker *w = p->data;

	pmuk_sim_count(w->sim, 0, w->n);
	w->state = pmuk_counter_state(w->c);
	w->ret = pmuk_counter_read_local(w->c, &w->count);
}

static void work_elsewhere(struct pmuk_place *p)
{
	pmuk_place_move_on(p);
	work(p);
}

/* The worker calls @fn, after which its counter reads @count. */
static void expect_work(struct kunit *test, struct worker *w, void (*fn)(struct pmuk_place *p),
			u64 count)
{
	pmuk_place_tell(w->p, fn);
	KUNIT_ASSERT_EQ(test, w->ret, 0);
	KUNIT_ASSERT_EQ(test, w->count, count);
}

static void task_counts_alone(struct kunit *test)
{
	struct worker *w = counted_worker(test, pmuk_test_sim(test, 1, 32));
	unsigned int i;

	w->n = 100;
	for (i = 1; i <= 100; i++) {
		expect_work(test, w, work, i * 100);
		KUNIT_ASSERT_EQ(test, pmuk_sim_count(w->sim, 0, 50), 0);
	}
	pmuk_test_expect_value(test, w->c, 0, 100 * 100);
	KUNIT_EXPECT_EQ(test, pmuk_sim_counted(w->sim, 0), 100 * 100);
}

static void task_state_follows_its_turns(struct kunit *test)
{
	struct worker *w = counted_worker(test, pmuk_test_sim(test, 1, 32));
	struct pmuk_value value;

	pmuk_place_tell(w->p, work);
	KUNIT_EXPECT_EQ(test, w->state, PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(w->c), PMUK_COUNTER_WAITING);
	KUNIT_EXPECT_EQ(test, pmuk_counter_read(w->c, &value), 0);
	KUNIT_EXPECT_GT(test, value.time_enabled, 0);
	KUNIT_EXPECT_EQ(test, value.time_running, value.time_enabled);
}

/* Each CPU has one register, which the tasks use in turn. */
static void tasks_do_not_mix(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 16);
	struct worker *w[4];
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(w); i++) {
		w[i] = counted_worker(test, sim);
		w[i]->n = 1000 * (i + 1);
	}
	for (j = 1; j <= 100; j++) {
		for (i = 0; i < ARRAY_SIZE(w); i++)
			expect_work(test, w[i], work, j * w[i]->n);
	}
	for (i = 0; i < ARRAY_SIZE(w); i++)
		pmuk_test_expect_value(test, w[i]->c, 0, 100 * w[i]->n);
}

#define MIGRATIONS	1000

/* The count goes along with the task from CPU to CPU, while another task reads it all the time. */
static void task_migrates(struct kunit *test)
{
	struct worker *w = counted_worker(test, pmuk_test_sim(test, 1, 12));
	struct pmuk_value value, last = {};
	unsigned int i, moved = 0;
	int cpu;

	pmuk_test_other_cpu(test, 0);
	w->n = 1234;
	for (i = 1; i <= MIGRATIONS; i++) {
		cpu = w->p->cpu;
		w->p->fn = work_elsewhere;
		complete(&w->p->told);
		do {
			KUNIT_ASSERT_EQ(test, pmuk_counter_read(w->c, &value), 0);
			KUNIT_ASSERT_GE(test, value.count, last.count);
			KUNIT_ASSERT_LE(test, value.count, i * 1234);
			KUNIT_ASSERT_LE(test, value.time_running, value.time_enabled);
			last = value;
			usleep_range(10, 20);
		} while (!try_wait_for_completion(&w->p->did));
		KUNIT_ASSERT_EQ(test, w->ret, 0);
		KUNIT_ASSERT_EQ(test, w->count, i * 1234);
		moved += w->p->cpu != cpu;
	}
	KUNIT_EXPECT_GE(test, moved, MIGRATIONS - 1);
	pmuk_test_expect_value(test, w->c, 0, MIGRATIONS * 1234);
}

/*
 * A CPU of another kind has another PMU. There the counter waits, as its state and its times tell.
 */
static void task_counts_on_one_kind(struct kunit *test)
{
	static struct cpumask big;
	static const struct pmuk_sim_config config = {
		.name = "pmuk_big", .nr_counters = 1, .width = 32, .cpus = &big,
	};
	int first = pmuk_test_pin_first(test);
	struct pmuk_value value;
	struct worker *w;

	pmuk_test_other_cpu(test, first);
	cpumask_copy(&big, cpumask_of(first));
	w = counted_worker(test, pmuk_test_sim_config(test, &config));
	w->n = 100;
	pmuk_place_tell(w->p, work);
	KUNIT_EXPECT_EQ(test, w->state, PMUK_COUNTER_ACTIVE);
	pmuk_place_tell(w->p, work_elsewhere);
	while (w->p->cpu != first) {
		KUNIT_EXPECT_EQ(test, w->state, PMUK_COUNTER_WAITING);
		KUNIT_EXPECT_EQ(test, w->ret, -EBUSY);
		pmuk_test_expect_value(test, w->c, 0, 100);
		pmuk_place_tell(w->p, work_elsewhere);
	}
	KUNIT_EXPECT_EQ(test, w->ret, 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_read(w->c, &value), 0);
	KUNIT_EXPECT_EQ(test, value.count, 200);
	KUNIT_EXPECT_LT(test, value.time_running, value.time_enabled);
}

static void note_overflow(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct worker *w = data;

	w->nr++;
	w->ret |= current != w->p->task;
}

/*
 * Returns a worker with attributes of a counter that overflows. The counter is still to be created.
 */
static struct worker *overflowing_worker(struct kunit *test, u64 period)
{
	struct worker *w = new_worker(test, pmuk_test_sim(test, 1, 16));

	w->attr.period = period;
	w->attr.overflow = note_overflow;
	w->attr.data = w;
	return w;
}

static void period_migrates(struct kunit *test)
{
	struct worker *w = overflowing_worker(test, 1000);
	unsigned int i;

	start_counter(w);
	w->n = 300;
	for (i = 1; i <= 200; i++) {
		pmuk_place_tell(w->p, work_elsewhere);
		KUNIT_ASSERT_EQ(test, w->ret, 0);
		KUNIT_ASSERT_EQ(test, w->nr, i * 300 / 1000);
	}
}

static void work_paused(struct pmuk_place *p)
{
	struct worker *w = p->data;
	int ret = pmuk_counter_pause(w->c);

	pmuk_sim_count(w->sim, 0, 77);
	pmuk_place_move_on(p);
	schedule_timeout_uninterruptible(1);
	pmuk_sim_count(w->sim, 0, 77);
	ret |= pmuk_counter_resume(w->c);
	work(p);
	w->ret |= ret;
}

/* A task that moves to another CPU takes the pause along. */
static void pause_migrates(struct kunit *test)
{
	struct worker *w = counted_worker(test, pmuk_test_sim(test, 1, 16));
	unsigned int i;

	w->n = 10;
	for (i = 1; i <= 20; i++)
		expect_work(test, w, work_paused, i * 10);
	pmuk_test_expect_value(test, w->c, 0, 20 * 10);
}

static const struct pmuk_test_value ends[] = { { "enabled", false }, { "disabled", true } };

KUNIT_ARRAY_PARAM_DESC(ends, ends, name);

static void exit_keeps_the_count(struct kunit *test)
{
	bool disabled = pmuk_test_param(test);
	struct worker *w = counted_worker(test, pmuk_test_sim(test, 1, 16));

	w->n = 100003;
	pmuk_place_tell(w->p, work);
	if (disabled)
		KUNIT_EXPECT_EQ(test, pmuk_counter_disable(w->c), 0);
	pmuk_place_dismiss(w->p);
	pmuk_test_expect_gone(test, w->c, -ESRCH, 100003);
}

/* A pinned counter of the CPU takes the register from a task's pinned counter. */
static void pinned_task_pushed_out(struct kunit *test)
{
	struct worker *w = new_worker(test, pmuk_test_sim(test, 1, 32));
	struct pmuk_counter *taker;

	w->attr.flags |= PMUK_PINNED;
	start_counter(w);
	w->n = 10;
	expect_work(test, w, work, 10);

	taker = pmuk_test_enabled(test, &w->attr, w->p->cpu, NULL);
	pmuk_place_tell(w->p, work);
	KUNIT_EXPECT_EQ(test, w->ret, -EBUSY);
	KUNIT_EXPECT_EQ(test, w->state, PMUK_COUNTER_ERROR);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(w->c), PMUK_COUNTER_ERROR);
	pmuk_test_expect_value(test, w->c, -EBUSY, 10);

	kunit_release_action(test, pmuk_test_put_counter, taker);
	pmuk_place_tell(w->p, work);
	KUNIT_EXPECT_EQ(test, w->ret, -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(w->c), 0);
	expect_work(test, w, work, 20);
}

static void destroy_while_running(struct pmuk_place *p)
{
	struct worker *w = p->data;

	while (w->n--) {
		struct pmuk_counter *c = pmuk_counter_create(&w->attr, -1, current);

		w->ret |= PTR_ERR_OR_ZERO(c) ?: pmuk_counter_enable(c);
		pmuk_sim_count(w->sim, 0, 10);
		pmuk_counter_destroy(c);
		w->state += pmuk_sim_count(w->sim, 0, 10);
	}
}

static void task_destroys_its_own(struct kunit *test)
{
	struct worker *w = overflowing_worker(test, 3);

	w->n = 200;
	pmuk_place_tell(w->p, destroy_while_running);
	KUNIT_EXPECT_EQ(test, w->ret, 0);
	KUNIT_EXPECT_EQ(test, w->state, 0);
	KUNIT_EXPECT_EQ(test, w->nr, 200 * 3);
}

struct child {
	struct pmuk_sim *sim;
	struct completion counted, exit;
	struct pmuk_sample sample;
	unsigned int nr;
	pid_t pid;
};

static int child_thread(void *data)
{
	struct child *child = data;

	pmuk_sim_count(child->sim, 0, 1000);
	complete(&child->counted);
	wait_for_completion(&child->exit);
	pmuk_sim_count(child->sim, 0, 234);
	pmuk_exit_child();
	return 0;
}

/* Forks a child of this thread, and returns after the child has counted 1000 events. */
static void fork_child(struct kunit *test, struct child *child)
{
	pmuk_need_fork(test);
	init_completion(&child->counted);
	init_completion(&child->exit);
	child->pid = pmuk_fork(child_thread, child);
	KUNIT_ASSERT_GT(test, child->pid, 0);
	wait_for_completion(&child->counted);
}

/* Lets the child count 234 more events and exit, and returns after that. */
static void reap_child(struct kunit *test, struct child *child)
{
	complete(&child->exit);
	KUNIT_EXPECT_TRUE(test, pmuk_reap(child->pid));
}

static void note_child_overflow(struct pmuk_counter *c, const struct pmuk_sample *sample,
				void *data)
{
	struct child *child = data;

	child->sample = *sample;
	child->nr++;
}

/*
 * Returns a counter of this task on one CPU. With PMUK_INHERIT it counts the task's children, too.
 */
static struct pmuk_counter *new_parent(struct kunit *test, struct pmuk_attr attr, u32 flags)
{
	pmuk_test_pin_first(test);
	attr.flags |= flags;
	return pmuk_test_counter(test, &attr, -1, current);
}

static struct pmuk_counter *start_parent(struct kunit *test, struct pmuk_attr attr, u32 flags)
{
	struct pmuk_counter *c = new_parent(test, attr, flags);

	KUNIT_ASSERT_EQ(test, pmuk_counter_enable(c), 0);
	return c;
}

static void own_task_counts(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_counter *c = start_parent(test, task_attr(sim), 0);

	pmuk_sim_count(sim, 0, 123);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, c), 123);
}

/* An inherited counter sums up its children, those that live and those that have exited. */
static void inherit_sums_children(struct kunit *test)
{
	struct child child[3] = {};
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_counter *c = start_parent(test, task_attr(sim), PMUK_INHERIT);
	unsigned int i;

	pmuk_sim_count(sim, 0, 5);
	for (i = 0; i < ARRAY_SIZE(child); i++) {
		child[i].sim = sim;
		fork_child(test, &child[i]);
		pmuk_test_expect_value(test, c, 0, 5 + (i + 1) * 1000);
	}
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(sim), 1 + ARRAY_SIZE(child));
	for (i = 0; i < ARRAY_SIZE(child); i++) {
		reap_child(test, &child[i]);
		pmuk_test_expect_value(test, c, 0, 5 + ARRAY_SIZE(child) * 1000 + (i + 1) * 234);
	}
	/* perf core may have exchanged this task's event with a child's. */
	KUNIT_EXPECT_LE(test, pmuk_sim_nr_events(sim), 2);
	pmuk_sim_count(sim, 0, 5);
	pmuk_test_expect_value(test, c, 0, 10 + ARRAY_SIZE(child) * 1234);
}

/*
 * A child that is born before the counter is enabled has a disabled event that no call can enable.
 */
static void inherit_must_be_enabled_before_a_fork(struct kunit *test)
{
	struct child child = { .sim = pmuk_test_sim(test, 1, 32) };
	struct pmuk_attr attr = task_attr(child.sim);
	struct pmuk_counter *early = start_parent(test, attr, PMUK_INHERIT);
	struct pmuk_counter *late = new_parent(test, attr, PMUK_INHERIT);

	fork_child(test, &child);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(early), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(late), -EBUSY);
	reap_child(test, &child);
	pmuk_test_expect_value(test, early, 0, 1234);
	pmuk_test_expect_value(test, late, 0, 0);
}

/* A fork meets an enable: both wait for perf core's lock, and the fork gets it first. */
struct meeting {
	struct pmuk_counter *c;
	struct task_struct *forks;
	struct completion held, enabled;
	bool forking, enabling;
	int ret;
};

static int enable_meanwhile(void *data)
{
	struct meeting *m = data;

	WRITE_ONCE(m->enabling, true);
	m->ret = pmuk_counter_enable(m->c);
	complete(&m->enabled);
	return 0;
}

/* Returns when @task has set @begun, and waits for the lock that the caller holds. */
static void wait_until_it_waits(const struct task_struct *task, const bool *begun)
{
	unsigned long end = jiffies + 10 * HZ;

	while (time_before(jiffies, end) &&
	       !(READ_ONCE(*begun) && READ_ONCE(task->__state) == TASK_UNINTERRUPTIBLE))
		usleep_range(500, 1000);
}

static int let_the_fork_come_first(void *data)
{
	struct meeting *m = data;
	struct mutex *lock = &m->c->event->ctx->mutex;
	struct task_struct *enables;

	mutex_lock(lock);
	complete(&m->held);
	wait_until_it_waits(m->forks, &m->forking);
	enables = kthread_run(enable_meanwhile, m, "pmuk_enable");
	if (!IS_ERR(enables))
		wait_until_it_waits(enables, &m->enabling);
	else
		complete(&m->enabled);
	mutex_unlock(lock);
	return 0;
}

/* A child that is born while the counter is being enabled counts, or else the enable fails. */
static void inherit_meets_a_fork(struct kunit *test)
{
	struct child child = { .sim = pmuk_test_sim(test, 1, 32) };
	struct meeting m = { .forks = current, .ret = 1 };
	struct task_struct *task;

	pmuk_need_fork(test);
	m.c = new_parent(test, task_attr(child.sim), PMUK_INHERIT);
	init_completion(&m.held);
	init_completion(&m.enabled);
	task = kthread_run(let_the_fork_come_first, &m, "pmuk_meeting");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	wait_for_completion(&m.held);
	WRITE_ONCE(m.forking, true);
	fork_child(test, &child);
	wait_for_completion(&m.enabled);
	KUNIT_EXPECT_EQ(test, m.ret, -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(m.c), PMUK_COUNTER_OFF);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(m.c), -EBUSY);
	/* perf core had enabled the event for a moment, so the count can be anything. */
	reap_child(test, &child);
}

/* Destroying the counter also removes its children's events, and ends their callbacks. */
static void inherit_ends_when_destroyed(struct kunit *test)
{
	struct child *child = pmuk_test_zalloc(test, sizeof(*child));
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = task_attr(sim);
	struct pmuk_counter *c;

	attr.period = 100;
	attr.overflow = note_child_overflow;
	attr.data = child;
	c = start_parent(test, attr, PMUK_INHERIT);
	child->sim = sim;
	fork_child(test, child);
	KUNIT_EXPECT_EQ(test, child->nr, 10);
	kunit_release_action(test, pmuk_test_put_counter, c);
	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(sim), 0);
	reap_child(test, child);
	KUNIT_EXPECT_EQ(test, child->nr, 10);
	KUNIT_EXPECT_EQ(test, pmuk_sim_counted(sim, 0), 1000);
}

static void without_inherit_children_are_left_out(struct kunit *test)
{
	struct child child = { .sim = pmuk_test_sim(test, 1, 32) };
	struct pmuk_counter *c = start_parent(test, task_attr(child.sim), 0);

	pmuk_sim_count(child.sim, 0, 5);
	fork_child(test, &child);
	pmuk_test_expect_value(test, c, 0, 5);
	reap_child(test, &child);
	pmuk_test_expect_value(test, c, 0, 5);
}

/* A child's overflow calls back, but the sample has no value of the counter. */
static void inherit_tells_childrens_overflows(struct kunit *test)
{
	struct child child = { .sim = pmuk_test_sim(test, 1, 16) };
	struct pmuk_attr attr = task_attr(child.sim);

	attr.period = 400;
	attr.sample_type = PERF_SAMPLE_READ;
	attr.overflow = note_child_overflow;
	attr.data = &child;
	start_parent(test, attr, PMUK_INHERIT);
	fork_child(test, &child);
	KUNIT_EXPECT_EQ(test, child.nr, 2);
	KUNIT_EXPECT_EQ(test, child.sample.valid & PERF_SAMPLE_READ, 0);
	reap_child(test, &child);
	/*
	 * perf core may exchange the events of parent and child when it switches between them. The
	 * child then goes on with the rest of the parent's period.
	 */
	KUNIT_EXPECT_GE(test, child.nr, 2);
	KUNIT_EXPECT_LE(test, child.nr, 3);
}

/* ---- a task that executes a privileged program ---- */

/* The task that executes a program has a counter. */
struct privileged {
	struct pmuk_program program;
	struct pmuk_sim *sim;
	struct pmuk_attr attr;
	struct pmuk_counter *c;
};

static int count_program(void *data)
{
	struct privileged *p = data;
	int ret;

	p->c = pmuk_counter_create(&p->attr, -1, current);
	ret = PTR_ERR_OR_ZERO(p->c) ?: pmuk_counter_enable(p->c);
	pmuk_sim_count(p->sim, 0, 5);
	return ret;
}

static void end_counter(void *data)
{
	pmuk_counter_destroy(((struct privileged *)data)->c);
}

static const struct pmuk_test_value heirs[] = { { "alone", 0 }, { "inherit", PMUK_INHERIT } };

KUNIT_ARRAY_PARAM_DESC(heirs, heirs, name);

/* perf core takes the counter away from the task, which lives. */
static void privileged_program_is_not_counted(struct kunit *test)
{
	struct privileged *p = pmuk_test_zalloc(test, sizeof(*p));

	p->sim = pmuk_test_sim(test, 1, 32);
	p->attr = task_attr(p->sim);
	p->attr.flags |= pmuk_test_param(test);
	p->program = (struct pmuk_program){ .begin = count_program, .data = p };
	KUNIT_ASSERT_EQ(test, kunit_add_action(test, end_counter, p), 0);
	pmuk_program_exec(test, &p->program);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(p->c), PMUK_COUNTER_GONE);
	pmuk_test_expect_value(test, p->c, -ESRCH, 5);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(p->c), -ESRCH);
}

static struct kunit_case pmuk_counter_task_cases[] = {
	KUNIT_CASE(task_counts_alone),
	KUNIT_CASE(task_state_follows_its_turns),
	KUNIT_CASE(own_task_counts),
	KUNIT_CASE(tasks_do_not_mix),
	KUNIT_CASE_SLOW(task_migrates),
	KUNIT_CASE(task_counts_on_one_kind),
	KUNIT_CASE(period_migrates),
	KUNIT_CASE(pause_migrates),
	KUNIT_CASE_PARAM(exit_keeps_the_count, ends_gen_params),
	KUNIT_CASE(pinned_task_pushed_out),
	KUNIT_CASE(task_destroys_its_own),
	KUNIT_CASE(inherit_sums_children),
	KUNIT_CASE(without_inherit_children_are_left_out),
	KUNIT_CASE(inherit_tells_childrens_overflows),
	KUNIT_CASE(inherit_must_be_enabled_before_a_fork),
	KUNIT_CASE(inherit_meets_a_fork),
	KUNIT_CASE(inherit_ends_when_destroyed),
	KUNIT_CASE_PARAM(privileged_program_is_not_counted, heirs_gen_params),
	{}
};

PMUK_SUITE(pmuk_counter_task, pmuk_test_init, "KUnit tests of pmuk's task counters");
