// SPDX-License-Identifier: GPL-2.0
/*
 * Each allocation of a context's whole life fails once: the first, the second, and so on, until
 * none is left to fail. The call that needs the allocation returns -ENOMEM, changes nothing, and
 * can be repeated.
 */
#include <linux/uuid.h>

#include "pmuk_fail.h"
#include "pmuk_place.h"
#include "pmuk_suite.h"
#include "../../samples/pmu_kapi/histogram.h"

#define PERIOD	100

struct life {
	struct pmuk_place *p;
	const struct pmuk_context_attr *attr;
	struct pmuk_context *ctx;
	struct completion *done;
};

/* ---- a format whose areas have something of their own ---- */

static atomic_t nr_areas;

struct area {
	void *own;
};

static size_t area_size(const void *arg, size_t size)
{
	return sizeof(struct area);
}

static int area_init(void *data, int cpu, const void *arg, size_t size)
{
	struct area *area = data;

	area->own = kmalloc(16, GFP_KERNEL);
	if (!area->own)
		return -ENOMEM;
	atomic_inc(&nr_areas);
	return 0;
}

static void area_exit(void *data, int cpu)
{
	struct area *area = data;

	kfree(area->own);
	atomic_dec(&nr_areas);
}

static u32 area_handler(const struct pmuk_format_event *event)
{
	return PMUK_FORMAT_RESET | PMUK_FORMAT_NOTIFY;
}

static struct pmuk_format area_format = {
	.name		= "pmuk_fail",
	.uuid		= UUID_INIT(0xfa11ed, 0x1234, 0x5678, 1, 2, 3, 4, 5, 6, 7, 9),
	.owner		= THIS_MODULE,
	.getsize	= area_size,
	.init		= area_init,
	.handler	= area_handler,
	.exit		= area_exit,
};

static bool has_areas(const struct life *l)
{
	return l->attr->format == &area_format.uuid;
}

/* ---- the steps of a life ---- */

static int register_format(struct life *l)
{
	return has_areas(l) ? pmuk_register_format(&area_format) : 0;
}

static int create(struct life *l)
{
	l->ctx = pmuk_create_context(l->attr);
	return PTR_ERR_OR_ZERO(l->ctx);
}

static bool is_tree(const struct life *l)
{
	return l->p->target.type == PMUK_TARGET_TREE;
}

/* A tree has one event set only. */
static int create_sets(struct life *l)
{
	struct pmuk_set_desc set = { .id = 700 };

	if (is_tree(l))
		return 0;
	return pmuk_create_evtsets(l->ctx, &set, 1) == 1 ? 0 : set.ret;
}

/* The first pmuk_read_pmds() is for a counter that does not exist yet. */
static int read_first(struct life *l)
{
	struct pmuk_pmd_read read = { .cpu = -1 };

	KUNIT_EXPECT_EQ(l->p->test, pmuk_read_pmds(l->ctx, &read, 1), 0);
	return read.ret == -ENOENT ? 0 : read.ret;
}

static int write_first(struct life *l)
{
	struct pmuk_pmd pmd = { .set = is_tree(l) ? 0 : 700 };

	return pmuk_write_pmds(l->ctx, &pmd, 1) == 1 ? 0 : pmd.ret;
}

static int write_pmcs(struct life *l)
{
	u32 type = pmuk_sim_type(l->p->sim);
	struct pmuk_pmc pmcs[] = {
		{ .num = 0, .type = type, .flags = PMUK_NO_THROTTLE },
		{ .num = 1, .type = type, .config = 1, .flags = PMUK_PINNED },
		{ .num = 1, .type = type, .config = 1, .set = 700 },
	};
	int n = is_tree(l) ? 2 : 3;
	int done = pmuk_write_pmcs(l->ctx, pmcs, n);

	return done == n ? 0 : done < 0 ? done : pmcs[done].ret;
}

static int write_pmds(struct life *l)
{
	struct pmuk_pmd pmd = { .short_reset = PERIOD, .flags = PMUK_PMD_NOTIFY };

	return pmuk_write_pmds(l->ctx, &pmd, 1) == 1 ? 0 : pmd.ret;
}

static int load(struct life *l)
{
	int ret = pmuk_load_context(l->ctx, &l->p->target);

	if (ret)
		KUNIT_EXPECT_EQ(l->p->test, pmuk_nr_counters(), 0);
	return ret;
}

static int start(struct life *l)
{
	return pmuk_start(l->ctx, NULL);
}

static int restart(struct life *l)
{
	return pmuk_restart(l->ctx);
}

static int switch_set(struct life *l)
{
	return pmuk_switch_evtset(l->ctx, is_tree(l) ? 0 : 700);
}

static int read_pmds(struct life *l)
{
	struct pmuk_pmd_read read = { .cpu = -1 };

	return pmuk_read_pmds(l->ctx, &read, 1) == 1 ? 0 : read.ret;
}

static int getinfo(struct life *l)
{
	struct pmuk_set_info info = { .cpu = -1 };

	return pmuk_getinfo_evtsets(l->ctx, &info, 1) == 1 ? 0 : info.ret;
}

/* A tree's counters cannot be read locally. */
static int read_local(struct life *l)
{
	u64 count;
	int ret = pmuk_read_local(l->ctx, &count, 1);

	return is_tree(l) && ret == -EINVAL ? 0 : ret;
}

static int snapshot(struct life *l)
{
	struct pmuk_value value;
	int ret = pmuk_snapshot(l->ctx, 0, &value, 1);

	return is_tree(l) && ret == -EOPNOTSUPP ? 0 : ret;
}

/* No message is pending, so a read without waiting returns -EAGAIN. */
static int read(struct life *l)
{
	struct pmuk_msg msg;
	int ret = pmuk_read(l->ctx, &msg, true);

	return ret == -EAGAIN ? 0 : ret;
}

static int read_timeout(struct life *l)
{
	struct pmuk_msg msg;
	int ret = pmuk_read_timeout(l->ctx, &msg, 0);

	return ret == -EAGAIN ? 0 : ret;
}

static int stop(struct life *l)
{
	return pmuk_stop(l->ctx);
}

static int unload(struct life *l)
{
	return pmuk_unload_context(l->ctx);
}

static int delete_sets(struct life *l)
{
	struct pmuk_set_desc set = {};

	return pmuk_delete_evtsets(l->ctx, &set, 1) == 1 ? 0 : set.ret;
}

static int (*const steps[])(struct life *l) = {
	register_format, create, create_sets, read_first, write_first, write_pmcs, write_pmds,
	load, start, restart, read_local, switch_set, read_pmds, snapshot, getinfo, read,
	read_timeout, stop, unload, delete_sets,
};

#define LOAD	7	/* index in steps[]; failures before it do not prevent later steps */
#define UNLOAD	18	/* index in steps[]; nothing counts from here on */

/* Returns how many steps were done before a step failed with *@ret. */
static unsigned int live(struct life *l, int *ret)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		*ret = steps[i](l);
		if (*ret)
			break;
	}
	return i;
}

/* Repeats the failed step. Then the context counts as if nothing had failed. */
static void live_on(struct life *l, unsigned int from)
{
	struct kunit *test = l->p->test;

	KUNIT_EXPECT_EQ(test, steps[from](l), 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(l->ctx));
	if (from < LOAD || from >= UNLOAD)
		return;
	KUNIT_EXPECT_EQ(test, pmuk_start(l->ctx, NULL), 0);
	pmuk_place_count(l->p, 1, 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, l->ctx, 0, 1, -1), 5 * l->p->nr);
}

/* Ends the context by one of the two calls. Neither can fail. */
static int end(struct life *l, bool deferred)
{
	int ret;

	if (!l->ctx)
		return 0;
	if (!deferred)
		return pmuk_close(l->ctx);
	reinit_completion(l->done);
	ret = pmuk_close_deferred(l->ctx, l->done);
	if (!ret)
		wait_for_completion(l->done);
	return ret;
}

/* Checks that nothing is left of the context. */
static void expect_nothing(struct life *l)
{
	struct kunit *test = l->p->test;

	pmuk_ctx_expect_gone(test, l->p->sim);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_areas), 0);
	if (has_areas(l))
		KUNIT_EXPECT_EQ(test, pmuk_unregister_format(&area_format), 0);
}

/*
 * Returns whether the @nth allocation was made to fail. @survived says that no call has returned an
 * error.
 */
static bool live_failing(struct life *l, unsigned int nth, bool *survived)
{
	struct kunit *test = l->p->test;
	unsigned int done, left;
	int ret;

	pmuk_fail_nth(nth);
	done = live(l, &ret);
	left = pmuk_fail_left();
	*survived = !ret;
	if (ret) {
		KUNIT_EXPECT_EQ_MSG(test, left, 0, "step %u failed without a reason", done);
		KUNIT_EXPECT_EQ_MSG(test, ret, -ENOMEM, "step %u", done);
		live_on(l, done);
	}
	pmuk_fail_nth(left);
	ret = end(l, nth % 2);
	left = pmuk_fail_left();
	KUNIT_EXPECT_EQ(test, ret, 0);
	expect_nothing(l);
	return !left;
}

/* Two CPUs test as much as all CPUs, in less time. */
static void take_two(struct pmuk_place *p, struct cpumask *cpus)
{
	cpumask_copy(cpus, cpumask_of(p->cpu));
	cpumask_set_cpu(pmuk_test_other_cpu(p->test, p->cpu), cpus);
	p->target.cpus = cpus;
	p->nr = 2;
}

static const struct pmuk_perf_format perf = { .sample_type = PERF_SAMPLE_CPU };
static const struct pmuk_histogram_arg histogram = { .size = 4096, .shift = 4 };

/*
 * On a single CPU, or on a task without children, a context makes no further kinds of allocations.
 */
static const struct kind {
	const char *name;
	enum pmuk_target_type type;
	struct pmuk_context_attr attr;
} kinds[] = {
	{ "on CPUs", PMUK_TARGET_CPUS,
	  { .buffer.nr_pages = 1, .format_arg = &perf, .format_arg_size = sizeof(perf) } },
	{ "on a tree", PMUK_TARGET_TREE,
	  { .buffer.nr_pages = 1, .format_arg = &perf, .format_arg_size = sizeof(perf) } },
	/*
	 * The format is registered. It has an area on each CPU, for which its init allocates, too.
	 */
	{ "with areas", PMUK_TARGET_CPUS,
	  { .buffer.nr_pages = 1, .format = &area_format.uuid } },
	{ "with a histogram", PMUK_TARGET_CPUS,
	  { .format = &pmuk_histogram_format.uuid, .format_arg = &histogram,
	    .format_arg_size = sizeof(histogram) } },
};

/* Lives are long. So a failure that no call reports is tried twice only, not more often. */
static void each_allocation_fails(struct kunit *test)
{
	const struct kind *kind = test->param_value;
	struct completion *done = pmuk_ctx_completion(test);
	struct pmuk_sim *sim = pmuk_test_sim(test, 4, 32);
	static struct cpumask two;
	unsigned int nth = 1, tries, failed = 0, survivals = 0;
	bool made = true, survived;

	if (kind->attr.format == &pmuk_histogram_format.uuid)
		pmuk_ctx_format(test, &pmuk_histogram_format);
	pmuk_let_any_allocation_fail(test);
	for (tries = 0; made && tries < 500; tries++) {
		struct pmuk_place *p = pmuk_new_place(test, sim, kind->type);
		struct life l = { .p = p, .attr = &kind->attr, .done = done };

		if (kind->type == PMUK_TARGET_CPUS)
			take_two(p, &two);
		made = live_failing(&l, nth, &survived);
		failed += made && !survived;
		nth += made && (!survived || ++survivals % 2 == 0);
		if (p->task)
			kunit_release_action(test, pmuk_place_put, p);
	}
	KUNIT_EXPECT_FALSE_MSG(test, made, "never succeeded");
	KUNIT_EXPECT_GE(test, failed, 30);
	kunit_info(test, "%u allocations failed in %u tries", failed, tries);
}

KUNIT_ARRAY_PARAM_DESC(kinds, kinds, name);

static struct kunit_case pmuk_context_fail_cases[] = {
	KUNIT_CASE_PARAM_ATTR(each_allocation_fails, kinds_gen_params,
			      { .speed = KUNIT_SPEED_SLOW }),
	{}
};

PMUK_SUITE(pmuk_context_fail, pmuk_test_init,
	   "KUnit tests of pmuk's contexts when memory is short");
