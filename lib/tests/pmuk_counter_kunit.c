// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check which arguments the calls on counters accept, and with which errno they refuse
 * others. Other suites check that counters count right.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/sched/task.h>

#include "pmuk_counters.h"
#include "pmuk_suite.h"
#include "pmuk_wait.h"

static void no_overflow(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
}

/* Holds a PMU and valid attributes. Each case makes one of them invalid. */
struct counter_test {
	struct pmuk_sim *sim;
	struct pmuk_attr attr;
	struct perf_event_attr seen;	/* attributes that the PMU's driver saw last */
	int refuse;			/* return value of the PMU's driver */
	int cpu;
};

static int note_attr(const struct perf_event_attr *attr, void *data)
{
	struct counter_test *t = data;

	t->seen = *attr;
	return t->refuse;
}

static int counter_init(struct kunit *test)
{
	struct counter_test *t = pmuk_test_zalloc(test, sizeof(*t));
	const struct pmuk_sim_config config = {
		.name = "pmuk_sim", .nr_counters = 2, .width = 32,
		.event_init = note_attr, .data = t,
	};

	pmuk_test_init(test);
	test->priv = t;
	t->sim = pmuk_test_sim_config(test, &config);
	t->attr.type = pmuk_sim_type(t->sim);
	t->cpu = pmuk_test_pin_first(test);
	return 0;
}

/* Returns a counter of the attributes, on the test's CPU. */
static struct pmuk_counter *new_counter(struct kunit *test)
{
	struct counter_test *t = test->priv;

	return pmuk_test_counter(test, &t->attr, t->cpu, NULL);
}

static struct pmuk_counter *new_enabled(struct kunit *test)
{
	struct counter_test *t = test->priv;

	return pmuk_test_enabled(test, &t->attr, t->cpu, NULL);
}

/* Creates a counter. A counter that is refused leaves no perf event. */
static long create(struct kunit *test, int cpu, struct task_struct *task)
{
	struct counter_test *t = test->priv;
	struct pmuk_counter *c = pmuk_counter_create(&t->attr, cpu, task);

	KUNIT_EXPECT_NOT_NULL(test, c);
	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(t->sim), IS_ERR(c) ? 0 : 1);
	pmuk_counter_destroy(c);
	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(t->sim), 0);
	return PTR_ERR_OR_ZERO(c);
}

/* A counter's place is the test's CPU, or this task, or both, which is refused. */
enum where {
	HERE,
	SELF,
	BOTH,
};

/* Lists attributes, and the result of a create with them. */
static const struct creation {
	const char *name;
	long ret;
	enum where where;
	struct pmuk_attr attr;		/* .type 0 is the simulated PMU */
} creations[] = {
	{ "of a CPU", 0, HERE },
	{ "of a task", 0, SELF },
	{ "of a CPU and a task", -EINVAL, BOTH },
	{ "period", 0, HERE, { .period = 1 } },
	{ "callback", 0, HERE, { .period = 1, .overflow = no_overflow } },
	{ "callback without period", -EINVAL, HERE, { .overflow = no_overflow } },
	{ "random period", 0, HERE, { .period = 1, .random_mask = 0xff } },
	{ "random without period", -EINVAL, HERE, { .random_mask = 0xff } },
	{ "frequency", 0, HERE, { .period = 2, .freq = 1000 } },
	{ "highest frequency", 0, HERE, { .period = 2, .freq = 100000 } },
	{ "too high a frequency", -EINVAL, HERE, { .period = 2, .freq = 100001 } },
	{ "frequency from a period of 1", -EINVAL, HERE, { .period = 1, .freq = 1000 } },
	{ "frequency from the longest period", 0, HERE, { .period = 1ULL << 48, .freq = 1000 } },
	{ "frequency from too long a period", -EINVAL, HERE,
	  { .period = (1ULL << 48) + 1, .freq = 1000 } },
	{ "frequency without period", -EINVAL, HERE, { .freq = 1000 } },
	{ "frequency of random periods", -EINVAL, HERE,
	  { .period = 2, .random_mask = 1, .freq = 1000 } },
	{ "longest period", 0, HERE, { .period = S64_MAX } },
	{ "too long a period", -EINVAL, HERE, { .period = (u64)S64_MAX + 1 } },
	{ "far too long a period", -EINVAL, HERE, { .period = U64_MAX } },
	{ "longest random period", 0, HERE, { .period = S64_MAX - 0xff, .random_mask = 0xff } },
	{ "too long a random period", -EINVAL, HERE, { .period = S64_MAX, .random_mask = 0xff } },
	{ "far too random a period", -EINVAL, HERE,
	  { .period = S64_MAX - 0xff, .random_mask = U32_MAX } },
	{ "unknown PMU", -ENOENT, HERE, { .type = INT_MAX } },
	{ "unknown PMU of a task", -ENOENT, SELF, { .type = INT_MAX } },
	{ "highest PMU", -ENOENT, HERE, { .type = U32_MAX } },
	{ "unknown event", -ENOENT, HERE, { .config = PMUK_SIM_EVENTS } },
	{ "unknown event of a task", -ENOENT, SELF, { .config = PMUK_SIM_EVENTS } },
	{ "unknown software event", -ENOENT, HERE,
	  { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_MAX } },
	{ "inherited", 0, SELF, { .flags = PMUK_INHERIT } },
	{ "pinned", 0, HERE, { .flags = PMUK_PINNED } },
	{ "pinned, of a task", 0, SELF, { .flags = PMUK_PINNED } },
	{ "private", 0, HERE, { .flags = PMUK_PINNED | PMUK_PRIVATE } },
	{ "private, not pinned", 0, HERE, { .flags = PMUK_PRIVATE } },
	{ "private, of a task", 0, SELF, { .flags = PMUK_PINNED | PMUK_PRIVATE } },
	{ "inherited by no task", -EINVAL, HERE, { .flags = PMUK_INHERIT } },
	{ "inherited period", 0, SELF, { .flags = PMUK_INHERIT, .period = 1000 } },
	{ "inherited random period", -EINVAL, SELF,
	  { .flags = PMUK_INHERIT, .period = 1000, .random_mask = 0xff } },
	{ "inherited frequency", -EINVAL, SELF,
	  { .flags = PMUK_INHERIT, .period = 1000, .freq = 1000 } },
};

KUNIT_ARRAY_PARAM_DESC(creations, creations, name);

static void create_checks_attributes(struct kunit *test)
{
	const struct creation *c = test->param_value;
	struct counter_test *t = test->priv;
	u32 type = t->attr.type;

	t->attr = c->attr;
	t->attr.type = c->attr.type ?: type;
	KUNIT_EXPECT_EQ(test, create(test, c->where == SELF ? -1 : t->cpu,
				     c->where == HERE ? NULL : current), c->ret);
}

static void create_refuses_null_attr(struct kunit *test)
{
	struct counter_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, PTR_ERR(pmuk_counter_create(NULL, t->cpu, NULL)), -EINVAL);
}

static void create_refuses_impossible_cpu(struct kunit *test)
{
	const int impossible[] = { -1, -2, nr_cpu_ids, INT_MAX, INT_MIN };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(impossible); i++)
		KUNIT_EXPECT_EQ_MSG(test, create(test, impossible[i], NULL), -EINVAL, "CPU %d",
				    impossible[i]);
	KUNIT_EXPECT_EQ(test, create(test, -2, current), -EINVAL);
}

static int do_nothing(void *unused)
{
	return 0;
}

static void create_refuses_dead_task(struct kunit *test)
{
	struct task_struct *task = kthread_create(do_nothing, NULL, "pmuk_dead");
	long ret;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	get_task_struct(task);
	kthread_stop(task);
	ret = create(test, -1, task);
	put_task_struct(task);
	KUNIT_EXPECT_EQ(test, ret, -ESRCH);
}

static void create_refuses_unknown_flags(struct kunit *test)
{
	struct counter_test *t = test->priv;
	unsigned int bit;

	for (bit = ilog2(PMUK_CALLCHAIN_USER) + 1; bit < 32; bit++) {
		t->attr.flags = BIT(bit);
		KUNIT_EXPECT_EQ(test, create(test, t->cpu, NULL), -EINVAL);
		t->attr.flags |= PMUK_PINNED;
		KUNIT_EXPECT_EQ(test, create(test, t->cpu, NULL), -EINVAL);
	}
}

static void create_refuses_unsupported_samples(struct kunit *test)
{
	const u64 supported = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT |
			      PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC |
			      PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_PHYS_ADDR |
			      PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ |
			      PERF_SAMPLE_REGS_INTR;
	/* Other suites check fields that need more, or are not in all kernels. */
	const u64 others = PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_CGROUP |
			   PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE |
			   PERF_SAMPLE_AUX;
	struct counter_test *t = test->priv;
	unsigned int bit;

	t->attr.period = 1000;
	for (bit = 0; bit < 64; bit++) {
		t->attr.sample_type = BIT_ULL(bit);
		if (t->attr.sample_type & others)
			continue;
		KUNIT_EXPECT_EQ_MSG(test, create(test, t->cpu, NULL),
				    supported & BIT_ULL(bit) ? 0 : -EOPNOTSUPP,
				    "sample_type bit %u", bit);
	}
}

static void create_passes_on_what_the_pmu_says(struct kunit *test)
{
	static const int says[] = { -EOPNOTSUPP, -EACCES, -EBUSY, -EINVAL, -ENODEV };
	struct counter_test *t = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(says); i++) {
		t->refuse = says[i];
		KUNIT_EXPECT_EQ(test, create(test, t->cpu, NULL), says[i]);
	}
}

/* Each flag sets its own bit in perf's attributes, and no other. */
static void create_tells_the_pmu_flags(struct kunit *test)
{
	struct counter_test *t = test->priv;
	unsigned int bit;

	for (bit = 0; bit <= ilog2(PMUK_INHERIT); bit++) {
		u32 flag = BIT(bit);

		t->attr.flags = flag;
		KUNIT_ASSERT_EQ(test, create(test, -1, current), 0);
		KUNIT_EXPECT_EQ(test, !!t->seen.exclude_user, flag == PMUK_EXCLUDE_USER);
		KUNIT_EXPECT_EQ(test, !!t->seen.exclude_kernel, flag == PMUK_EXCLUDE_KERNEL);
		KUNIT_EXPECT_EQ(test, !!t->seen.exclude_hv, flag == PMUK_EXCLUDE_HV);
		KUNIT_EXPECT_EQ(test, !!t->seen.exclude_idle, flag == PMUK_EXCLUDE_IDLE);
		KUNIT_EXPECT_EQ(test, !!t->seen.exclude_guest, flag == PMUK_EXCLUDE_GUEST);
		KUNIT_EXPECT_EQ(test, !!t->seen.pinned, flag == PMUK_PINNED);
		KUNIT_EXPECT_EQ(test, !!t->seen.inherit, flag == PMUK_INHERIT);
	}
}

static void create_tells_the_pmu_what_to_count(struct kunit *test)
{
	struct counter_test *t = test->priv;

	t->attr = (struct pmuk_attr){
		.type = t->attr.type, .config = 3, .config1 = 0x1122334455667788,
		.config2 = 0x99aabbccddeeff00, .config3 = 0x13579bdf02468ace,
		.period = 0x123456789,
		.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_TIME,
	};
	KUNIT_ASSERT_EQ(test, create(test, t->cpu, NULL), 0);
	KUNIT_EXPECT_EQ(test, t->seen.type, t->attr.type);
	KUNIT_EXPECT_EQ(test, t->seen.config, t->attr.config);
	KUNIT_EXPECT_EQ(test, t->seen.config1, t->attr.config1);
	KUNIT_EXPECT_EQ(test, t->seen.config2, t->attr.config2);
	KUNIT_EXPECT_EQ(test, t->seen.config3, t->attr.config3);
	KUNIT_EXPECT_FALSE(test, t->seen.precise_ip);
	KUNIT_EXPECT_EQ(test, t->seen.sample_period, t->attr.period);
	KUNIT_EXPECT_TRUE(test, t->seen.sample_type & PERF_SAMPLE_ADDR);
	KUNIT_EXPECT_TRUE(test, t->seen.sample_type & PERF_SAMPLE_WEIGHT);
}

static void create_copies_attributes(struct kunit *test)
{
	struct pmuk_counter *c = new_counter(test);
	struct counter_test *t = test->priv;

	memset(&t->attr, 0xff, sizeof(t->attr));
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
	pmuk_sim_count(t->sim, 0, 5);
	KUNIT_EXPECT_EQ(test, pmuk_test_local(test, c), 5);
}

static void calls_refuse_null_counter(struct kunit *test)
{
	struct pmuk_counter *bad[] = { NULL, ERR_PTR(-ENOENT) };
	DECLARE_COMPLETION_ONSTACK(done);
	struct pmuk_value value;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KUNIT_EXPECT_EQ(test, pmuk_counter_enable(bad[i]), -EINVAL);
		KUNIT_EXPECT_EQ(test, pmuk_counter_disable(bad[i]), -EINVAL);
		KUNIT_EXPECT_EQ(test, pmuk_counter_pause(bad[i]), -EINVAL);
		KUNIT_EXPECT_EQ(test, pmuk_counter_resume(bad[i]), -EINVAL);
		KUNIT_EXPECT_EQ(test, pmuk_counter_read(bad[i], &value), -EINVAL);
		KUNIT_EXPECT_EQ(test, pmuk_counter_snapshot(bad[i], &value), -EINVAL);
		KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(bad[i], 1), -EINVAL);
		KUNIT_EXPECT_EQ(test, pmuk_counter_state(bad[i]), -EINVAL);
		KUNIT_EXPECT_EQ(test, pmuk_counter_destroy_deferred(bad[i], &done), -EINVAL);
		pmuk_counter_destroy(bad[i]);
	}
	KUNIT_EXPECT_FALSE(test, completion_done(&done));
}

static void read_local_refuses_null(struct kunit *test)
{
	u64 count;

	KUNIT_EXPECT_EQ(test, pmuk_counter_read_local(NULL, &count), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_counter_read_local(new_enabled(test), NULL), -EINVAL);
}

static void reads_refuse_null_value(struct kunit *test)
{
	struct pmuk_counter *c = new_enabled(test);

	KUNIT_EXPECT_EQ(test, pmuk_counter_read(c, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_counter_snapshot(c, NULL), -EINVAL);
}

/* Only the owner may make these calls. Elsewhere they fail, and do not write their results. */
static void expect_not_owner(struct kunit *test, struct pmuk_counter *c, int error)
{
	pmuk_test_expect_no_local(test, c, error);
	KUNIT_EXPECT_EQ(test, pmuk_counter_pause(c), error);
	KUNIT_EXPECT_EQ(test, pmuk_counter_resume(c), error);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(c, 10), error);
}

static void local_calls_refuse_other_cpu(struct kunit *test)
{
	struct counter_test *t = test->priv;

	t->cpu = pmuk_test_other_cpu(test, t->cpu);
	t->attr.period = 1000;
	expect_not_owner(test, new_enabled(test), -EINVAL);
}

static void local_calls_refuse_other_task(struct kunit *test)
{
	struct counter_test *t = test->priv;
	struct task_struct *task = kthread_create(do_nothing, NULL, "pmuk_other");
	struct pmuk_counter *c;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	t->attr.period = 1000;
	c = pmuk_counter_create(&t->attr, -1, task);
	if (!IS_ERR(c))
		expect_not_owner(test, c, -EINVAL);
	pmuk_counter_destroy(c);
	kthread_stop(task);
	KUNIT_EXPECT_FALSE(test, IS_ERR(c));
}

static void local_calls_refuse_inherit(struct kunit *test)
{
	struct counter_test *t = test->priv;
	struct pmuk_value value;
	struct pmuk_counter *c;

	t->attr.flags = PMUK_INHERIT;
	t->attr.period = 1000;
	c = pmuk_test_enabled(test, &t->attr, -1, current);
	expect_not_owner(test, c, -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, pmuk_counter_snapshot(c, &value), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_counter_read(c, &value), 0);
}

static void read_local_refuses_disabled(struct kunit *test)
{
	struct pmuk_counter *c = new_counter(test);

	pmuk_test_expect_no_local(test, c, -EBUSY);
	KUNIT_ASSERT_EQ(test, pmuk_counter_enable(c), 0);
	KUNIT_ASSERT_EQ(test, pmuk_counter_disable(c), 0);
	pmuk_test_expect_no_local(test, c, -EBUSY);
}

static void set_period_refuses_out_of_range(struct kunit *test)
{
	struct counter_test *t = test->priv;
	struct pmuk_counter *c;

	t->attr.period = 1000;
	t->attr.random_mask = 0xff;
	c = new_enabled(test);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(c, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(c, (u64)S64_MAX + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(c, S64_MAX), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(c, S64_MAX - 0xff), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(c, 1), 0);
}

static void set_period_refuses_plain_counter(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(new_enabled(test), 1000), -EINVAL);
}

static void state_follows_calls(struct kunit *test)
{
	struct pmuk_counter *c = new_counter(test);

	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_OFF);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_counter_pause(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_OFF);
}

static void expect_harmless_twice(struct kunit *test, struct pmuk_counter *c,
				  int (*call)(struct pmuk_counter *c))
{
	KUNIT_EXPECT_EQ_MSG(test, call(c), 0, "%ps", call);
	KUNIT_EXPECT_EQ_MSG(test, call(c), 0, "%ps again", call);
}

/* A call that asks for the present state is no error, and changes nothing. */
static void calls_repeat_harmlessly(struct kunit *test)
{
	struct pmuk_counter *c = new_counter(test);
	struct counter_test *t = test->priv;

	expect_harmless_twice(test, c, pmuk_counter_disable);
	expect_harmless_twice(test, c, pmuk_counter_enable);
	pmuk_sim_count(t->sim, 0, 1);
	expect_harmless_twice(test, c, pmuk_counter_pause);
	expect_harmless_twice(test, c, pmuk_counter_resume);
	pmuk_sim_count(t->sim, 0, 1);
	expect_harmless_twice(test, c, pmuk_counter_disable);
	pmuk_test_expect_value(test, c, 0, 2);
}

/* With interrupts off, nothing can have freed the counter after the first call. */
static void destroy_deferred_refuses_second(struct kunit *test)
{
	struct counter_test *t = test->priv;
	DECLARE_COMPLETION_ONSTACK(done);
	DECLARE_COMPLETION_ONSTACK(never);
	struct pmuk_counter *c;
	int first, second;

	c = pmuk_counter_create(&t->attr, t->cpu, NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, c);
	local_irq_disable();
	first = pmuk_counter_destroy_deferred(c, &done);
	second = pmuk_counter_destroy_deferred(c, &never);
	local_irq_enable();
	KUNIT_EXPECT_EQ(test, first, 0);
	KUNIT_EXPECT_EQ(test, second, -EBUSY);
	KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&done, 10 * HZ), 0);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
	KUNIT_EXPECT_FALSE(test, completion_done(&never));
}

static void destroy_deferred_takes_no_completion(struct kunit *test)
{
	struct counter_test *t = test->priv;
	struct pmuk_counter *c = pmuk_counter_create(&t->attr, t->cpu, NULL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, c);
	KUNIT_EXPECT_EQ(test, pmuk_counter_destroy_deferred(c, NULL), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(!pmuk_nr_counters()));
	KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(t->sim), 0);
}

static void scope_destroys(struct kunit *test)
{
	struct counter_test *t = test->priv;

	{
		struct pmuk_counter *c __free(pmuk_counter) =
			pmuk_counter_create(&t->attr, t->cpu, NULL);

		KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 1);
	}
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
	{
		struct pmuk_counter *c __free(pmuk_counter) = ERR_PTR(-ENOENT);
		struct pmuk_counter *none __free(pmuk_counter) = NULL;
	}
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
}

static struct kunit_case pmuk_counter_cases[] = {
	KUNIT_CASE_PARAM(create_checks_attributes, creations_gen_params),
	KUNIT_CASE(create_refuses_null_attr),
	KUNIT_CASE(create_refuses_impossible_cpu),
	KUNIT_CASE(create_refuses_dead_task),
	KUNIT_CASE(create_refuses_unknown_flags),
	KUNIT_CASE(create_refuses_unsupported_samples),
	KUNIT_CASE(create_passes_on_what_the_pmu_says),
	KUNIT_CASE(create_tells_the_pmu_flags),
	KUNIT_CASE(create_tells_the_pmu_what_to_count),
	KUNIT_CASE(create_copies_attributes),
	KUNIT_CASE(calls_refuse_null_counter),
	KUNIT_CASE(read_local_refuses_null),
	KUNIT_CASE(reads_refuse_null_value),
	KUNIT_CASE(local_calls_refuse_other_cpu),
	KUNIT_CASE(local_calls_refuse_other_task),
	KUNIT_CASE(local_calls_refuse_inherit),
	KUNIT_CASE(read_local_refuses_disabled),
	KUNIT_CASE(set_period_refuses_out_of_range),
	KUNIT_CASE(set_period_refuses_plain_counter),
	KUNIT_CASE(state_follows_calls),
	KUNIT_CASE(calls_repeat_harmlessly),
	KUNIT_CASE(destroy_deferred_refuses_second),
	KUNIT_CASE(destroy_deferred_takes_no_completion),
	KUNIT_CASE(scope_destroys),
	{}
};

PMUK_SUITE(pmuk_counter, counter_init, "KUnit tests of pmuk's counter calls and their errors");
