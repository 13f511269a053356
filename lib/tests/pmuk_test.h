/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What pmuk's KUnit suites share: objects that go away with the test case, and
 * the check that nothing else is left behind.
 */
#ifndef _PMUK_TEST_H
#define _PMUK_TEST_H

#include <kunit/test.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/pmu_kapi.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "../../kernel/pmu_kapi/internal.h"
#include "pmuk_irq.h"
#include "pmuk_sim.h"

/* A buffer whose AUX area was being written when it was destroyed is freed later, by work. */
static inline void pmuk_test_residue(void *data)
{
	unsigned long end = jiffies + 10 * HZ;
	struct kunit *test = data;

	while (pmuk_nr_buffers() && time_before(jiffies, end))
		usleep_range(50, 100);
	KUNIT_EXPECT_EQ_MSG(test, pmuk_nr_counters(), 0, "counters left behind");
	KUNIT_EXPECT_EQ_MSG(test, pmuk_nr_buffers(), 0, "buffers left behind");
}

/* For kunit_suite::init. Registered first, so it looks when all else is gone. */
static inline int pmuk_test_init(struct kunit *test)
{
	return kunit_add_action_or_reset(test, pmuk_test_residue, test);
}

/*
 * Memory that stays until the case is over, and so longer than what is created
 * after it. A failed assertion ends the thread at once: what callbacks may still
 * write to must not be on its stack.
 */
static inline void *pmuk_test_zalloc(struct kunit *test, size_t size)
{
	void *p = kunit_kzalloc(test, size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	return p;
}

static inline void pmuk_test_put_sim(void *data)
{
	pmuk_sim_destroy(data);
}

static inline struct pmuk_sim *pmuk_test_sim_config(struct kunit *test,
						    const struct pmuk_sim_config *config)
{
	struct pmuk_sim *sim = pmuk_sim_create(config);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, sim);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_put_sim, sim), 0);
	return sim;
}

/* A simulated PMU for the time of a test case. */
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

static inline void pmuk_test_put_counter(void *data)
{
	pmuk_counter_destroy(data);
}

/* A counter for the time of a test case, disabled. */
static inline struct pmuk_counter *pmuk_test_counter(struct kunit *test,
						     const struct pmuk_attr *attr, int cpu,
						     struct task_struct *task)
{
	struct pmuk_counter *c = pmuk_counter_create(attr, cpu, task);

	KUNIT_ASSERT_FALSE_MSG(test, IS_ERR(c), "create: %pe", c);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_put_counter, c), 0);
	return c;
}

/* The same, enabled. */
static inline struct pmuk_counter *pmuk_test_enabled(struct kunit *test,
						     const struct pmuk_attr *attr, int cpu,
						     struct task_struct *task)
{
	struct pmuk_counter *c = pmuk_test_counter(test, attr, cpu, task);

	KUNIT_ASSERT_EQ(test, pmuk_counter_enable(c), 0);
	return c;
}

/* Stay on a CPU: each case has a thread of its own, so nobody has to undo it. */
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

/* A CPU that is online and not @cpu, or skip. */
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

/* Busy all the time, as a CPU that waits may stop its counters. */
static inline void pmuk_test_spin(u64 ns)
{
	u64 end = ktime_get_ns() + ns;

	while (ktime_get_ns() < end)
		cpu_relax();
}

static inline void pmuk_test_put_nmi(void *unused)
{
	pmuk_irq_put_nmi();
}

static inline void pmuk_test_need_nmi(struct kunit *test)
{
	if (pmuk_irq_get_nmi())
		kunit_skip(test, "no NMI to be had on this machine");
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_put_nmi, NULL), 0);
}

static inline void pmuk_test_need_level(struct kunit *test, enum pmuk_irq_level level)
{
	if (level == PMUK_IRQ_NMI)
		pmuk_test_need_nmi(test);
}

/* A case of its own for each context that a test function is given. */
#define PMUK_LEVEL_CASE(fn, name, level) \
	static void fn##_##name(struct kunit *test) { fn(test, level); }

#endif /* _PMUK_TEST_H */
