/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pmuk's KUnit suites share these helpers: objects that go away with the test case, and a check
 * that nothing else is left.
 */
#ifndef _PMUK_TEST_H
#define _PMUK_TEST_H

#include <kunit/test.h>
#include <linux/cleanup.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/pmu_kapi.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "../../kernel/pmu_kapi/buffer.h"
#include "../../kernel/pmu_kapi/counter.h"
#include "pmuk_irq.h"
#include "pmuk_sim.h"

/* Keeps this CPU busy until @cond is true, because its counters may stop while it waits. */
#define pmuk_test_spin_until(cond)					\
({									\
	unsigned long __end = jiffies + 60 * HZ;			\
	bool __came;							\
									\
	while (!(__came = (cond)) && time_before(jiffies, __end))	\
		cpu_relax();						\
	__came;								\
})

/*
 * Sleeps between two polls: *@us, which is 0 at first, says how long. Most waits are short. In a
 * long one the sleeps get longer, as each timer of a VM wakes several threads of its host.
 */
static inline void pmuk_test_pause(unsigned int *us)
{
	*us = clamp(2 * *us, 50U, 1000U);
	usleep_range(*us, 2 * *us);
}

/*
 * Returns whether all buffers are freed in time. A buffer that was destroyed while its AUX area was
 * being written is freed by a work.
 */
static inline bool pmuk_test_no_buffers(void)
{
	unsigned long end = jiffies + 10 * HZ;
	unsigned int us = 0;

	while (pmuk_nr_buffers() && time_before(jiffies, end))
		pmuk_test_pause(&us);
	return !pmuk_nr_buffers();
}

static inline void pmuk_test_residue(void *data)
{
	struct kunit *test = data;

	pmuk_test_no_buffers();
	KUNIT_EXPECT_EQ_MSG(test, pmuk_nr_counters(), 0, "counters left behind");
	KUNIT_EXPECT_EQ_MSG(test, pmuk_nr_buffers(), 0, "buffers left behind");
}

/*
 * Checks after each case that nothing is left. The action is added first, so it runs after all
 * others. For kunit_suite::init.
 */
static inline int pmuk_test_init(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_residue, test), 0);
	return 0;
}

/*
 * Returns memory that stays until the case is over, and so outlives what is created after it. A
 * failed assertion ends the thread at once, so memory that a callback may still write to must not
 * be on its stack.
 */
static inline void *pmuk_test_zalloc(struct kunit *test, size_t size)
{
	void *p = kunit_kzalloc(test, size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	return p;
}

KUNIT_DEFINE_ACTION_WRAPPER(pmuk_test_put_sim, pmuk_sim_destroy, struct pmuk_sim *);

static inline struct pmuk_sim *pmuk_test_sim_config(struct kunit *test,
						    const struct pmuk_sim_config *config)
{
	struct pmuk_sim *sim = pmuk_sim_create(config);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, sim);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_put_sim, sim), 0);
	return sim;
}

/* Returns a simulated PMU for the time of a test case. */
static inline struct pmuk_sim *pmuk_test_sim(struct kunit *test, unsigned int nr_counters,
					     unsigned int width)
{
	const struct pmuk_sim_config config = {
		.name = "pmuk_sim",
		.nr_counters = nr_counters,
		.width = width,
		.mux_ms = 1,
	};

	return pmuk_test_sim_config(test, &config);
}

KUNIT_DEFINE_ACTION_WRAPPER(pmuk_test_put_counter, pmuk_counter_destroy, struct pmuk_counter *);

/* Returns a disabled counter for the time of a test case. */
static inline struct pmuk_counter *pmuk_test_counter(struct kunit *test,
						     const struct pmuk_attr *attr, int cpu,
						     struct task_struct *task)
{
	struct pmuk_counter *c = pmuk_counter_create(attr, cpu, task);

	KUNIT_ASSERT_FALSE_MSG(test, IS_ERR(c), "create: %pe", c);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_put_counter, c), 0);
	return c;
}

/* Returns an enabled counter for the time of a test case. */
static inline struct pmuk_counter *pmuk_test_enabled(struct kunit *test,
						     const struct pmuk_attr *attr, int cpu,
						     struct task_struct *task)
{
	struct pmuk_counter *c = pmuk_test_counter(test, attr, cpu, task);

	KUNIT_ASSERT_EQ(test, pmuk_counter_enable(c), 0);
	return c;
}

/* Expects that the counter cannot be created, because of @error. @what describes the attempt. */
static inline void pmuk_test_refused(struct kunit *test, const struct pmuk_attr *attr, int cpu,
				     struct task_struct *task, int error, const char *what)
{
	struct pmuk_counter *c = pmuk_counter_create(attr, cpu, task);

	KUNIT_EXPECT_PTR_EQ_MSG(test, c, (struct pmuk_counter *)ERR_PTR(error), "%s", what);
	pmuk_counter_destroy(c);
}

static inline void pmuk_test_refused_buffer(struct kunit *test,
					    const struct pmuk_buffer_attr *attr, int cpu,
					    const char *what)
{
	struct pmuk_buffer *b = pmuk_buffer_create(attr, cpu);

	KUNIT_EXPECT_EQ_MSG(test, PTR_ERR_OR_ZERO(b), -EINVAL, "%s", what);
	pmuk_buffer_destroy(b);
}

KUNIT_DEFINE_ACTION_WRAPPER(pmuk_test_end_buffer, pmuk_buffer_destroy, struct pmuk_buffer *);

/* Returns a buffer for the time of a test case. */
static inline struct pmuk_buffer *pmuk_test_new_buffer(struct kunit *test,
						       const struct pmuk_buffer_attr *attr,
						       int cpu)
{
	struct pmuk_buffer *b = pmuk_buffer_create(attr, cpu);

	KUNIT_ASSERT_FALSE_MSG(test, IS_ERR(b), "create: %pe", b);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_end_buffer, b), 0);
	return b;
}

static inline struct pmuk_buffer_stat pmuk_test_buffer_stat(struct kunit *test,
							    struct pmuk_buffer *b)
{
	struct pmuk_buffer_stat stat = {};

	KUNIT_EXPECT_EQ(test, pmuk_buffer_get_stat(b, &stat), 0);
	return stat;
}

static inline struct pmuk_aux_stat pmuk_test_area_stat(struct kunit *test, struct pmuk_buffer *b)
{
	struct pmuk_aux_stat stat = {};

	KUNIT_EXPECT_EQ(test, pmuk_aux_get_stat(b, &stat), 0);
	return stat;
}

/* Writes a record of @size bytes. Returns whether there was room for it. */
static inline bool pmuk_test_output(struct pmuk_buffer *b, u32 type, u32 size)
{
	struct perf_event_header *rec;

	guard(preempt)();
	rec = pmuk_output_begin(b, type, size);
	if (!rec)
		return false;
	memset(rec + 1, 0, size - sizeof(*rec));
	pmuk_output_end(b, rec);
	return true;
}

/* Consumes all records of @b. Returns how many of them have @type. */
static inline unsigned int pmuk_test_consume(struct kunit *test, struct pmuk_buffer *b, u32 type)
{
	const struct perf_event_header *rec;
	struct pmuk_reader r;
	unsigned int n = 0;

	KUNIT_ASSERT_EQ(test, pmuk_buffer_claim(b, &r), 0);
	pmuk_for_each_record(rec, &r)
		n += rec->type == type;
	pmuk_buffer_release(&r);
	return n;
}

/* Returns a thread on @cpu. End it with kthread_stop(). */
static inline struct task_struct *pmuk_test_thread(struct kunit *test, int cpu,
						   int (*fn)(void *data), void *data)
{
	struct task_struct *task = kthread_create(fn, data, "pmuk_test");

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	kthread_bind(task, cpu);
	wake_up_process(task);
	return task;
}

/* A thread that has done its work returns from here when it is stopped. */
static inline int pmuk_test_wait_for_stop(void)
{
	unsigned int us = 0;

	while (!kthread_should_stop())
		pmuk_test_pause(&us);
	return 0;
}

/* Holds the state of pmuk_test_goes_on(), and is zero at first. */
struct pmuk_test_progress {
	u64 latest;
	unsigned long end;
};

/*
 * Returns whether @now has changed in the last minute. A loop with this condition ends when it is
 * stuck, and not when the machine is slow.
 */
static inline bool pmuk_test_goes_on(struct pmuk_test_progress *p, u64 now)
{
	if (!p->end || now != p->latest)
		p->end = jiffies + 60 * HZ;
	p->latest = now;
	return time_before(jiffies, p->end);
}

/* The thread makes one call, which a signal can interrupt, and then ends. */
struct pmuk_job {
	void (*fn)(void *data);
	void *data;
	struct task_struct *task;
	struct completion ended;
};

static inline int pmuk_job_thread(void *data)
{
	struct pmuk_job *job = data;

	allow_signal(SIGKILL);
	allow_signal(SIGINT);
	job->fn(job->data);
	flush_signals(current);
	kthread_complete_and_exit(&job->ended, 0);
}

static inline void pmuk_job_wait(struct pmuk_job *job)
{
	wait_for_completion(&job->ended);
	put_task_struct(job->task);
}

/* Ends the job by a signal, if an assertion has ended the test case. */
static inline void pmuk_job_kill(void *data)
{
	struct pmuk_job *job = data;

	send_sig(SIGKILL, job->task, 1);
	pmuk_job_wait(job);
}

static inline struct pmuk_job *pmuk_job_start(struct kunit *test, void (*fn)(void *data),
					      void *data)
{
	struct pmuk_job *job = pmuk_test_zalloc(test, sizeof(*job));
	struct task_struct *task = kthread_create(pmuk_job_thread, job, "pmuk_job");

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	job->fn = fn;
	job->data = data;
	job->task = get_task_struct(task);
	init_completion(&job->ended);
	wake_up_process(task);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_job_kill, job), 0);
	return job;
}

/* Waits until the call returns. KUnit itself ends a case that takes too long, and names it. */
static inline void pmuk_job_end(struct kunit *test, struct pmuk_job *job)
{
	pmuk_job_wait(job);
	kunit_remove_action(test, pmuk_job_kill, job);
}

/* The thread makes a call again and again, until pmuk_loop_stop() or the end of the test case. */
struct pmuk_loop {
	void (*fn)(void *data);
	void *data;
	unsigned int turns;
	struct task_struct *task;
};

static inline int pmuk_loop_thread(void *data)
{
	struct pmuk_loop *loop = data;

	while (!kthread_should_stop()) {
		loop->fn(loop->data);
		WRITE_ONCE(loop->turns, loop->turns + 1);
		cond_resched();
	}
	return 0;
}

static inline void pmuk_loop_put(void *data)
{
	struct pmuk_loop *loop = data;

	kthread_stop(loop->task);
}

/* @cpu is the thread's only CPU, or -1. */
static inline struct pmuk_loop *pmuk_loop_start(struct kunit *test, int cpu,
						void (*fn)(void *data), void *data)
{
	struct pmuk_loop *loop = pmuk_test_zalloc(test, sizeof(*loop));

	loop->fn = fn;
	loop->data = data;
	loop->task = kthread_create(pmuk_loop_thread, loop, "pmuk_loop");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, loop->task);
	if (cpu != -1)
		kthread_bind(loop->task, cpu);
	wake_up_process(loop->task);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_loop_put, loop), 0);
	return loop;
}

static inline void pmuk_loop_stop(struct kunit *test, struct pmuk_loop *loop)
{
	kunit_release_action(test, pmuk_loop_put, loop);
}

/* Returns how often @more is completed. The wakeup is an interrupt, so this waits for late ones. */
static inline unsigned int pmuk_test_completions(struct completion *more)
{
	unsigned int n = 0;

	while (wait_for_completion_timeout(more, msecs_to_jiffies(50)))
		n++;
	return n;
}

static inline void pmuk_test_put_nmi(void *unused)
{
	pmuk_irq_put_nmi();
}

/* Makes PMUK_IRQ_NMI usable until the test case ends. Returns false on a machine without NMIs. */
static inline bool pmuk_test_try_nmi(struct kunit *test)
{
	if (pmuk_irq_get_nmi())
		return false;
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_put_nmi, NULL), 0);
	return true;
}

/* Binds the test to a CPU. Each case has a thread of its own, so no case has to undo this. */
static inline int pmuk_test_pin(struct kunit *test, int cpu)
{
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(cpu)), 0);
	KUNIT_ASSERT_EQ(test, raw_smp_processor_id(), cpu);
	return cpu;
}

static inline int pmuk_test_pin_first(struct kunit *test)
{
	return pmuk_test_pin(test, cpumask_first(cpu_online_mask));
}

/* Returns an enabled counter of the first CPU, and binds the test to that CPU. */
static inline struct pmuk_counter *pmuk_test_here(struct kunit *test, const struct pmuk_attr *attr)
{
	return pmuk_test_enabled(test, attr, pmuk_test_pin_first(test), NULL);
}

/* Returns an online CPU other than @cpu, or skips the test. */
static inline int pmuk_test_other_cpu(struct kunit *test, int cpu)
{
	int other = cpumask_any_but(cpu_online_mask, cpu);

	if (other >= nr_cpu_ids)
		kunit_skip(test, "needs two CPUs");
	return other;
}

static inline int pmuk_test_next_cpu(int cpu)
{
	int next = cpumask_next(cpu, cpu_online_mask);

	return next < nr_cpu_ids ? next : cpumask_first(cpu_online_mask);
}

/* Keeps the CPU busy, because a CPU that waits may stop its counters. */
static inline void pmuk_test_spin(u64 ns)
{
	u64 end = ktime_get_ns() + ns;

	while (ktime_get_ns() < end)
		cpu_relax();
}

static inline void pmuk_test_need_nmi(struct kunit *test)
{
	if (!pmuk_test_try_nmi(test))
		kunit_skip(test, "no NMI to be had on this machine");
}

static inline void pmuk_test_need_level(struct kunit *test, enum pmuk_irq_level level)
{
	if (level == PMUK_IRQ_NMI)
		pmuk_test_need_nmi(test);
}

/* The parameter is a number, for KUNIT_ARRAY_PARAM_DESC(). */
struct pmuk_test_value {
	const char *name;
	u64 value;
};

/* Returns the number that is the case's parameter. */
static inline u64 pmuk_test_param(struct kunit *test)
{
	const struct pmuk_test_value *param = test->param_value;

	return param->value;
}

/* Defines a case, named @fn_@level, that runs @fn in one context. */
#define PMUK_LEVEL_CASE(fn, level) \
	{ .run_case = fn, .name = #fn "_" #level, .module_name = KBUILD_MODNAME, \
	  .attr = { .speed = KUNIT_SPEED_SLOW } }

/* Returns the context that the case is named after. */
static inline enum pmuk_irq_level pmuk_test_level_case(struct kunit *test)
{
	static const char *const names[PMUK_IRQ_LEVELS] = { "task", "softirq", "hardirq", "nmi" };
	int level = match_string(names, PMUK_IRQ_LEVELS, strrchr(test->name, '_') + 1);

	KUNIT_ASSERT_GE(test, level, 0);
	pmuk_test_need_level(test, level);
	return level;
}

#endif /* _PMUK_TEST_H */
