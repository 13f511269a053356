// SPDX-License-Identifier: GPL-2.0
/*
 * Task counters: they count their task and nothing else, wherever it runs, until
 * it exits.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/sched/task.h>

#include "pmuk_counters.h"
#include "pmuk_fork.h"
#include "pmuk_suite.h"

/* A thread that does what it is told, and waits otherwise. */
struct worker {
	struct task_struct *task;
	struct completion told, did;
	void (*fn)(struct worker *w);
	struct pmuk_sim *sim;
	struct pmuk_counter *c;
	u64 n, count;
	int cpu, ret, state;
	unsigned int nr;
	bool dismissed;
};

static int count_where_told(void *data)
{
	struct worker *w = data;

	/* Here, as a kthread's own start undoes what others have set. */
	set_cpus_allowed_ptr(current, cpumask_of(w->cpu));
	for (;;) {
		wait_for_completion(&w->told);
		if (!w->fn)
			return 0;
		w->fn(w);
		complete(&w->did);
	}
}

static void tell(struct worker *w, void (*fn)(struct worker *w))
{
	w->fn = fn;
	complete(&w->told);
	wait_for_completion(&w->did);
}

/* Ends the thread; its task_struct stays until the test case ends. */
static void dismiss(struct worker *w)
{
	if (w->dismissed)
		return;
	w->dismissed = true;
	w->fn = NULL;
	complete(&w->told);
	kthread_stop(w->task);
}

static void put_worker(void *data)
{
	struct worker *w = data;

	dismiss(w);
	put_task_struct(w->task);
}

static void get_worker(struct kunit *test, struct worker *w, struct pmuk_sim *sim, int cpu)
{
	struct task_struct *task = kthread_create(count_where_told, w, "pmuk_worker");

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	w->task = get_task_struct(task);
	w->sim = sim;
	w->cpu = cpu;
	init_completion(&w->told);
	init_completion(&w->did);
	wake_up_process(task);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_worker, w), 0);
}

static struct worker *new_worker(struct kunit *test, struct pmuk_sim *sim, int cpu)
{
	struct worker *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	get_worker(test, w, sim, cpu);
	return w;
}

static struct pmuk_attr task_attr(const struct pmuk_sim *sim)
{
	return (struct pmuk_attr) { .type = pmuk_sim_type(sim), .flags = PMUK_NO_THROTTLE };
}

/* A worker on the test's CPU and its counter, which lasts longer than it. */
static struct worker *counted_worker(struct kunit *test, struct pmuk_sim *sim)
{
	struct pmuk_attr attr = task_attr(sim);
	struct worker *w = new_worker(test, sim, pmuk_test_pin_first(test));

	w->c = pmuk_test_enabled(test, &attr, -1, w->task);
	return w;
}

static void work(struct worker *w)
{
	pmuk_sim_count(w->sim, 0, w->n);
	w->state = pmuk_counter_state(w->c);
	w->ret = pmuk_counter_read_local(w->c, &w->count);
}

static void work_elsewhere(struct worker *w)
{
	w->cpu = pmuk_test_next_cpu(w->cpu);
	set_cpus_allowed_ptr(current, cpumask_of(w->cpu));
	work(w);
}

static void expect_value(struct kunit *test, struct pmuk_counter *c, int ret, u64 count)
{
	struct pmuk_value value = { .count = U64_MAX };

	KUNIT_EXPECT_EQ(test, pmuk_counter_read(c, &value), ret);
	KUNIT_EXPECT_EQ(test, value.count, count);
}

static void task_counts_alone(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct worker *w = counted_worker(test, sim);
	unsigned int i;

	w->n = 100;
	for (i = 1; i <= 100; i++) {
		tell(w, work);
		KUNIT_ASSERT_EQ(test, w->ret, 0);
		KUNIT_ASSERT_EQ(test, w->count, i * 100);
		KUNIT_ASSERT_EQ(test, pmuk_sim_count(sim, 0, 50), 0);
	}
	expect_value(test, w->c, 0, 100 * 100);
	KUNIT_EXPECT_EQ(test, pmuk_sim_counted(sim, 0), 100 * 100);
}

static void task_state_follows_its_turns(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct worker *w = counted_worker(test, sim);
	struct pmuk_value value;

	tell(w, work);
	KUNIT_EXPECT_EQ(test, w->state, PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(w->c), PMUK_COUNTER_WAITING);
	KUNIT_EXPECT_EQ(test, pmuk_counter_read(w->c, &value), 0);
	KUNIT_EXPECT_GT(test, value.time_enabled, 0);
	KUNIT_EXPECT_EQ(test, value.time_running, value.time_enabled);
}

static void own_task_counts(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = task_attr(sim);
	struct pmuk_counter *c = pmuk_test_enabled(test, &attr, -1, current);

	pmuk_sim_count(sim, 0, 123);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, c), 123);
}

/* One register per CPU, and each task has its turn with it. */
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
		for (i = 0; i < ARRAY_SIZE(w); i++) {
			tell(w[i], work);
			KUNIT_ASSERT_EQ(test, w[i]->count, j * w[i]->n);
		}
	}
	for (i = 0; i < ARRAY_SIZE(w); i++)
		expect_value(test, w[i]->c, 0, 100 * w[i]->n);
}

#define MIGRATIONS	1000

/* It takes its count along, and somebody looks on all the time. */
static void task_migrates(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 12);
	struct worker *w = counted_worker(test, sim);
	struct pmuk_value value, last = {};
	unsigned int i, moved = 0;
	int cpu;

	pmuk_test_other_cpu(test, 0);
	w->n = 1234;
	for (i = 1; i <= MIGRATIONS; i++) {
		cpu = w->cpu;
		w->fn = work_elsewhere;
		complete(&w->told);
		do {
			KUNIT_ASSERT_EQ(test, pmuk_counter_read(w->c, &value), 0);
			KUNIT_ASSERT_GE(test, value.count, last.count);
			KUNIT_ASSERT_LE(test, value.count, i * 1234);
			KUNIT_ASSERT_LE(test, value.time_running, value.time_enabled);
			last = value;
			usleep_range(10, 20);
		} while (!try_wait_for_completion(&w->did));
		KUNIT_ASSERT_EQ(test, w->ret, 0);
		KUNIT_ASSERT_EQ(test, w->count, i * 1234);
		moved += w->cpu != cpu;
	}
	KUNIT_EXPECT_GE(test, moved, MIGRATIONS - 1);
	expect_value(test, w->c, 0, MIGRATIONS * 1234);
}

/* On CPUs of another kind, which have another PMU, the counter waits, and its times say so. */
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
	tell(w, work);
	KUNIT_EXPECT_EQ(test, w->state, PMUK_COUNTER_ACTIVE);
	for (tell(w, work_elsewhere); w->cpu != first; tell(w, work_elsewhere)) {
		KUNIT_EXPECT_EQ(test, w->state, PMUK_COUNTER_WAITING);
		KUNIT_EXPECT_EQ(test, w->ret, -EBUSY);
		expect_value(test, w->c, 0, 100);
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
	w->ret |= current != w->task;
}

static void period_migrates(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 16);
	struct worker *w = new_worker(test, sim, pmuk_test_pin_first(test));
	struct pmuk_attr attr = task_attr(sim);
	unsigned int i;

	attr.period = 1000;
	attr.overflow = note_overflow;
	attr.data = w;
	w->c = pmuk_test_enabled(test, &attr, -1, w->task);
	w->n = 300;
	for (i = 1; i <= 200; i++) {
		tell(w, work_elsewhere);
		KUNIT_ASSERT_EQ(test, w->ret, 0);
		KUNIT_ASSERT_EQ(test, w->nr, i * 300 / 1000);
	}
}

static void work_paused(struct worker *w)
{
	w->ret = pmuk_counter_pause(w->c);
	pmuk_sim_count(w->sim, 0, 77);
	w->cpu = pmuk_test_next_cpu(w->cpu);
	set_cpus_allowed_ptr(current, cpumask_of(w->cpu));
	schedule_timeout_uninterruptible(1);
	pmuk_sim_count(w->sim, 0, 77);
	w->ret |= pmuk_counter_resume(w->c);
	work(w);
}

/* A pause goes along with its task. */
static void pause_migrates(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 16);
	struct worker *w = counted_worker(test, sim);
	unsigned int i;

	w->n = 10;
	for (i = 1; i <= 20; i++) {
		tell(w, work_paused);
		KUNIT_ASSERT_EQ(test, w->ret, 0);
		KUNIT_ASSERT_EQ(test, w->count, i * 10);
	}
	expect_value(test, w->c, 0, 20 * 10);
}

static void expect_gone(struct kunit *test, struct pmuk_counter *c, u64 count)
{
	u64 local;

	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_GONE);
	expect_value(test, c, -ESRCH, count);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), -ESRCH);
	KUNIT_EXPECT_EQ(test, pmuk_counter_read_local(c, &local), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	expect_value(test, c, -ESRCH, count);
}

static const struct end {
	const char *name;
	bool disabled;
} ends[] = { { "enabled", false }, { "disabled", true } };

KUNIT_ARRAY_PARAM_DESC(ends, ends, name);

static void exit_keeps_the_count(struct kunit *test)
{
	const struct end *end = test->param_value;
	struct worker *w = counted_worker(test, pmuk_test_sim(test, 1, 16));

	w->n = 100003;
	tell(w, work);
	if (end->disabled)
		KUNIT_EXPECT_EQ(test, pmuk_counter_disable(w->c), 0);
	dismiss(w);
	expect_gone(test, w->c, 100003);
}

/* A pinned task counter loses its place to one that is pinned to the CPU. */
static void pinned_task_pushed_out(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	int cpu = pmuk_test_pin_first(test);
	struct worker *w = new_worker(test, sim, cpu);
	struct pmuk_attr attr = task_attr(sim);
	struct pmuk_counter *taker;

	attr.flags |= PMUK_PINNED;
	w->c = pmuk_test_enabled(test, &attr, -1, w->task);
	w->n = 10;
	tell(w, work);
	KUNIT_EXPECT_EQ(test, w->ret, 0);
	KUNIT_EXPECT_EQ(test, w->count, 10);

	taker = pmuk_test_enabled(test, &attr, cpu, NULL);
	tell(w, work);
	KUNIT_EXPECT_EQ(test, w->ret, -EBUSY);
	KUNIT_EXPECT_EQ(test, w->state, PMUK_COUNTER_ERROR);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(w->c), PMUK_COUNTER_ERROR);
	expect_value(test, w->c, -EBUSY, 10);

	kunit_release_action(test, pmuk_test_put_counter, taker);
	tell(w, work);
	KUNIT_EXPECT_EQ(test, w->ret, -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(w->c), 0);
	tell(w, work);
	KUNIT_EXPECT_EQ(test, w->ret, 0);
	KUNIT_EXPECT_EQ(test, w->count, 20);
}

static void destroy_while_running(struct worker *w)
{
	struct pmuk_attr attr = task_attr(w->sim);

	attr.period = 3;
	attr.overflow = note_overflow;
	attr.data = w;
	while (w->n--) {
		struct pmuk_counter *c = pmuk_counter_create(&attr, -1, current);

		w->ret |= PTR_ERR_OR_ZERO(c) ?: pmuk_counter_enable(c);
		pmuk_sim_count(w->sim, 0, 10);
		pmuk_counter_destroy(c);
		w->state += pmuk_sim_count(w->sim, 0, 10);
	}
}

static void task_destroys_its_own(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 16);
	struct worker *w = new_worker(test, sim, pmuk_test_pin_first(test));

	w->n = 200;
	tell(w, destroy_while_running);
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

/* A child of this thread, which has counted 1000 when this returns. */
static void fork_child(struct kunit *test, struct child *child)
{
	pmuk_need_fork(test);
	init_completion(&child->counted);
	init_completion(&child->exit);
	child->pid = pmuk_fork(child_thread, child);
	KUNIT_ASSERT_GT(test, child->pid, 0);
	wait_for_completion(&child->counted);
}

/* It counts another 234, and has exited when this returns. */
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

/* Sums up its children, those that are alive and those that have exited. */
static void inherit_sums_children(struct kunit *test)
{
	struct child child[3] = {};
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = task_attr(sim);
	struct pmuk_counter *c;
	unsigned int i;

	pmuk_test_pin_first(test);
	attr.flags |= PMUK_INHERIT;
	c = pmuk_test_enabled(test, &attr, -1, current);
	pmuk_sim_count(sim, 0, 5);
	for (i = 0; i < ARRAY_SIZE(child); i++) {
		child[i].sim = sim;
		fork_child(test, &child[i]);
		expect_value(test, c, 0, 5 + (i + 1) * 1000);
	}
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(sim), 1 + ARRAY_SIZE(child));
	for (i = 0; i < ARRAY_SIZE(child); i++) {
		reap_child(test, &child[i]);
		expect_value(test, c, 0, 5 + ARRAY_SIZE(child) * 1000 + (i + 1) * 234);
	}
	/* Of the children, one's event may have become this task's own. */
	KUNIT_EXPECT_LE(test, pmuk_sim_nr_events(sim), 2);
	pmuk_sim_count(sim, 0, 5);
	expect_value(test, c, 0, 10 + ARRAY_SIZE(child) * 1234);
}

/* Children born before the counter is enabled have events that nobody can reach. */
static void inherit_must_be_enabled_before_a_fork(struct kunit *test)
{
	struct child child = { .sim = pmuk_test_sim(test, 1, 32) };
	struct pmuk_attr attr = task_attr(child.sim);
	struct pmuk_counter *early, *late;

	pmuk_test_pin_first(test);
	attr.flags |= PMUK_INHERIT;
	early = pmuk_test_enabled(test, &attr, -1, current);
	late = pmuk_test_counter(test, &attr, -1, current);
	fork_child(test, &child);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(early), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(late), -EBUSY);
	reap_child(test, &child);
	expect_value(test, early, 0, 1234);
	expect_value(test, late, 0, 0);
}

/* A fork and an enable that meet: both wait for perf core's lock, and the fork comes first. */
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

/* Returns when @task has begun, and waits for the lock that is held here. */
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

/* A child that is born while the counter is being enabled counts, or the call fails. */
static void inherit_meets_a_fork(struct kunit *test)
{
	struct child child = { .sim = pmuk_test_sim(test, 1, 32) };
	struct pmuk_attr attr = task_attr(child.sim);
	struct meeting m = { .forks = current, .ret = 1 };
	struct task_struct *task;

	pmuk_need_fork(test);
	pmuk_test_pin_first(test);
	attr.flags |= PMUK_INHERIT;
	m.c = pmuk_test_counter(test, &attr, -1, current);
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
	/* The event was enabled for a moment, so the count may be anything. */
	reap_child(test, &child);
}

/* With it the children's events go, and their callbacks. */
static void inherit_ends_when_destroyed(struct kunit *test)
{
	struct child *child = pmuk_test_zalloc(test, sizeof(*child));
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = task_attr(sim);
	struct pmuk_counter *c;

	pmuk_test_pin_first(test);
	attr.flags |= PMUK_INHERIT;
	attr.period = 100;
	attr.overflow = note_child_overflow;
	attr.data = child;
	c = pmuk_test_enabled(test, &attr, -1, current);
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
	struct pmuk_attr attr = task_attr(child.sim);
	struct pmuk_counter *c;

	pmuk_test_pin_first(test);
	c = pmuk_test_enabled(test, &attr, -1, current);
	pmuk_sim_count(child.sim, 0, 5);
	fork_child(test, &child);
	expect_value(test, c, 0, 5);
	reap_child(test, &child);
	expect_value(test, c, 0, 5);
}

/* A child's overflow is told, but not as a value of the counter. */
static void inherit_tells_childrens_overflows(struct kunit *test)
{
	struct child child = { .sim = pmuk_test_sim(test, 1, 16) };
	struct pmuk_attr attr = task_attr(child.sim);

	pmuk_test_pin_first(test);
	attr.flags |= PMUK_INHERIT;
	attr.period = 400;
	attr.sample_type = PERF_SAMPLE_READ;
	attr.overflow = note_child_overflow;
	attr.data = &child;
	pmuk_test_enabled(test, &attr, -1, current);
	fork_child(test, &child);
	KUNIT_EXPECT_EQ(test, child.nr, 2);
	KUNIT_EXPECT_EQ(test, child.sample.valid & PERF_SAMPLE_READ, 0);
	reap_child(test, &child);
	/* Swapped with its parent's at a switch, its event has another remainder. */
	KUNIT_EXPECT_GE(test, child.nr, 2);
	KUNIT_EXPECT_LE(test, child.nr, 3);
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
	{}
};

PMUK_SUITE(pmuk_counter_task, pmuk_test_init, "KUnit tests of pmuk's task counters");
