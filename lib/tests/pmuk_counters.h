/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The suites of counters share these helpers: expectations about reads, CPUs that go offline, and
 * counters that are destroyed while they overflow.
 */
#ifndef _PMUK_COUNTERS_H
#define _PMUK_COUNTERS_H

#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/delay.h>

#include "pmuk_test.h"

static inline u64 pmuk_test_count(struct kunit *test, struct pmuk_counter *c)
{
	struct pmuk_value value = { .count = U64_MAX };

	KUNIT_EXPECT_EQ(test, pmuk_counter_read(c, &value), 0);
	return value.count;
}

static inline u64 pmuk_test_local(struct kunit *test, struct pmuk_counter *c)
{
	u64 count = U64_MAX;

	KUNIT_EXPECT_EQ(test, pmuk_counter_read_local(c, &count), 0);
	return count;
}

static inline u64 pmuk_test_snapshot(struct kunit *test, struct pmuk_counter *c)
{
	struct pmuk_value value = { .count = U64_MAX };

	KUNIT_EXPECT_EQ(test, pmuk_counter_snapshot(c, &value), 0);
	return value.count;
}

/* Expects that the owner's read and a full read give @count. */
static inline void pmuk_test_expect_count(struct kunit *test, struct pmuk_counter *c, u64 count)
{
	KUNIT_ASSERT_EQ(test, pmuk_test_local(test, c), count);
	KUNIT_ASSERT_EQ(test, pmuk_test_count(test, c), count);
}

/* Expects that a full read of @c returns @ret and gives @count. */
static inline void pmuk_test_expect_value(struct kunit *test, struct pmuk_counter *c, int ret,
					  u64 count)
{
	struct pmuk_value value = { .count = U64_MAX };

	KUNIT_EXPECT_EQ(test, pmuk_counter_read(c, &value), ret);
	KUNIT_EXPECT_EQ(test, value.count, count);
}

/* Expects that a local read is refused with @ret, and does not change the caller's variable. */
static inline void pmuk_test_expect_no_local(struct kunit *test, struct pmuk_counter *c, int ret)
{
	u64 count = 4711;

	KUNIT_EXPECT_EQ(test, pmuk_counter_read_local(c, &count), ret);
	KUNIT_EXPECT_EQ(test, count, 4711);
}

/* Expects that reads of @c return @error, as its task or CPU has gone, and still give the count. */
static inline void pmuk_test_expect_gone(struct kunit *test, struct pmuk_counter *c, int error,
					 u64 count)
{
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_GONE);
	pmuk_test_expect_value(test, c, error, count);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), error);
	pmuk_test_expect_no_local(test, c, -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	pmuk_test_expect_value(test, c, error, count);
	KUNIT_EXPECT_EQ(test, pmuk_test_snapshot(test, c), count);
}

/* Makes events of @sim. A loop calls this all the time. */
static inline void pmuk_test_storm(void *sim)
{
	pmuk_sim_count(sim, 0, 10);
}

static inline void pmuk_test_put_online(void *cpu)
{
	if (!cpu_online((long)cpu))
		add_cpu((long)cpu);
}

/* Brings @cpu back online after the test case, however it ends. */
static inline void pmuk_test_keep_online(struct kunit *test, int cpu)
{
	void *data = (void *)(long)cpu;

	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_put_online, data), 0);
}

/* Checks the result of remove_cpu(). @ret is what remove_cpu() has returned for @cpu. */
static inline void pmuk_test_expect_offline(struct kunit *test, int cpu, int ret)
{
	/* A machine that cannot take a CPU offline reports that only when it is tried. */
	if (ret == -EOPNOTSUPP || ret == -EPERM)
		kunit_skip(test, "CPU %d cannot go offline: %d", cpu, ret);
	KUNIT_ASSERT_EQ(test, ret, 0);
}

KUNIT_DEFINE_ACTION_WRAPPER(pmuk_test_put_event, perf_event_release_kernel, struct perf_event *);

/* Returns a perf event of @task, for the time of a test case. Its owner is not pmuk. */
static inline struct perf_event *pmuk_test_task_event(struct kunit *test, struct task_struct *task,
						      struct perf_event_attr *attr)
{
	struct perf_event *event;

	event = perf_event_create_kernel_counter(attr, -1, task, NULL, NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, event);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_put_event, event), 0);
	return event;
}

static inline struct perf_event *pmuk_test_pinned_event(struct kunit *test, struct pmuk_sim *sim,
							u64 config)
{
	struct perf_event_attr attr = { .type = pmuk_sim_type(sim), .size = sizeof(attr),
					.config = config, .pinned = 1 };

	return pmuk_test_task_event(test, current, &attr);
}

#define PMUK_VICTIM_ALIVE	0x600d600dULL
#define PMUK_VICTIM_DEAD	0xdeaddeadULL
#define PMUK_VICTIM_CALLS	5

/* Counts the calls of a counter's callback. The counter is destroyed while it overflows. */
struct pmuk_victim {
	u64 magic;
	atomic_t calls, late;
};

static inline void pmuk_victim_strike(struct pmuk_counter *c, const struct pmuk_sample *sample,
				      void *data)
{
	struct pmuk_victim *victim = data;
	u64 count;

	if (READ_ONCE(victim->magic) != PMUK_VICTIM_ALIVE)
		atomic_inc(&victim->late);
	atomic_inc(&victim->calls);
	pmuk_counter_read_local(c, &count);
	/* The delay lets the destruction often find the callback running. */
	udelay(2);
	if (READ_ONCE(victim->magic) != PMUK_VICTIM_ALIVE)
		atomic_inc(&victim->late);
}

/* Returns whether the counter was created, and has called back often enough before its end. */
static inline bool pmuk_victim_dies(struct pmuk_victim *victim, struct pmuk_attr attr, int cpu,
				    bool deferred)
{
	DECLARE_COMPLETION_ONSTACK(done);
	struct pmuk_counter *c;
	bool called;

	victim->magic = PMUK_VICTIM_ALIVE;
	attr.overflow = pmuk_victim_strike;
	attr.data = victim;
	c = pmuk_counter_create(&attr, cpu, NULL);
	if (IS_ERR(c))
		return false;
	pmuk_counter_enable(c);
	called = pmuk_test_spin_until(atomic_read(&victim->calls) >= PMUK_VICTIM_CALLS);
	if (deferred) {
		pmuk_counter_destroy_deferred(c, &done);
		wait_for_completion(&done);
	} else {
		pmuk_counter_destroy(c);
	}
	WRITE_ONCE(victim->magic, PMUK_VICTIM_DEAD);
	return called;
}

/*
 * Creates and destroys @nr counters on @cpu, one after the other. Calls of @fn make them overflow.
 */
static inline void pmuk_test_victims(struct kunit *test, const struct pmuk_attr *attr, int cpu,
				     void (*fn)(void *data), void *data, unsigned int nr,
				     bool deferred)
{
	struct pmuk_victim *victims = pmuk_test_zalloc(test, nr * sizeof(*victims));
	struct pmuk_loop *loop = pmuk_loop_start(test, cpu, fn, data);
	unsigned int i, late = 0;

	for (i = 0; i < nr; i++) {
		if (!pmuk_victim_dies(&victims[i], *attr, cpu, deferred))
			break;
	}
	pmuk_loop_stop(test, loop);
	KUNIT_EXPECT_EQ(test, i, nr);
	while (i--)
		late += atomic_read(&victims[i].late);
	KUNIT_EXPECT_EQ_MSG(test, late, 0, "callbacks after destruction");
}

#endif /* _PMUK_COUNTERS_H */
