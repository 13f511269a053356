// SPDX-License-Identifier: GPL-2.0
/*
 * The tests create a buffer with an AUX area, and an event that writes one, again and again. The
 * first allocation fails, then the second, and so on, until none is left to fail. After each
 * failure no memory is left behind, and the producer's free has undone each successful setup.
 */

#include "pmuk_aux.h"
#include "pmuk_fail.h"
#include "pmuk_itrace.h"
#include "pmuk_suite.h"

/* A failed setup is not undone. A successful one is undone as soon as its buffer is destroyed. */
static void expect_balance(struct pmuk_test_producer *p, struct pmuk_buffer *b,
			   unsigned int setups)
{
	KUNIT_EXPECT_EQ(p->test, p->setups, setups + !IS_ERR(b));
	KUNIT_EXPECT_EQ(p->test, p->frees, setups);
	pmuk_buffer_destroy(b);
	KUNIT_EXPECT_EQ(p->test, p->frees, p->setups);
	KUNIT_EXPECT_EQ(p->test, pmuk_nr_buffers(), 0);
}

/*
 * A buffer with an AUX area makes at least these allocations: the buffer and its control page; for
 * the data and for the area each a list of pages, the pages, and their mapping; the area's state;
 * and the list of pages for the producer.
 */
static const struct area {
	const char *name;
	struct pmuk_aux_attr aux;
	unsigned int fewest;		/* least number of allocations */
	bool smaller;			/* failed pieces are replaced by smaller ones */
} areas[] = {
	{ "pages", { .nr_pages = 8 }, 2 + 4 + 10 + 1 + 1 },
	{ "pieces", { .nr_pages = 8, .order = 1 }, 2 + 4 + 6 + 1 + 1 },
	{ "smaller pieces", { .nr_pages = 8, .order = 1, .prefer = true }, 2 + 4 + 2 + 1 + 1,
	  true },
};

/* With @aux->prefer, a create succeeds although the allocation of a larger piece has failed. */
static void each_allocation_of_a_buffer_fails(struct kunit *test)
{
	const struct area *area = test->param_value;
	struct pmuk_sweep s = pmuk_new_sweep(test);
	struct pmuk_test_producer *p = pmuk_test_new_producer(test);
	struct pmuk_buffer_attr attr = { .nr_pages = 2, .aux = area->aux };
	unsigned int split = 0, setups;
	struct pmuk_buffer *b;

	attr.aux.ops = &pmuk_test_ops;
	attr.aux.data = p;
	pmuk_let_any_page_fail(test);
	do {
		setups = p->setups;
		pmuk_fail_nth(s.nth);
		b = pmuk_buffer_create(&attr, cpumask_first(cpu_online_mask));
		s.left = pmuk_fail_left();
		if (IS_ERR(b))
			KUNIT_EXPECT_EQ(test, PTR_ERR(b), -ENOMEM);
		else
			split += p->pieces > area->aux.nr_pages >> area->aux.order;
		expect_balance(p, b, setups);
	} while (pmuk_sweep_on(&s, PTR_ERR_OR_ZERO(b)));
	pmuk_sweep_end(&s, area->fewest);
	KUNIT_EXPECT_EQ(test, split > 0, area->smaller);
}

KUNIT_ARRAY_PARAM_DESC(areas, areas, name);

KUNIT_DEFINE_ACTION_WRAPPER(put_itrace, pmuk_itrace_destroy, struct pmuk_itrace *);

/* Creates and destroys an event that writes @b's area, while one of its allocations fails. */
static int attach_failing(struct pmuk_sweep *s, struct pmuk_itrace *it, struct pmuk_buffer *b)
{
	const struct pmuk_attr attr = { .type = pmuk_itrace_type(it),
					.config = PMUK_ITRACE_ALIGN_MIN, .buffer = b };
	struct pmuk_counter *c;
	int ret;

	pmuk_fail_nth(s->nth);
	c = pmuk_counter_create(&attr, cpumask_first(cpu_online_mask), NULL);
	s->left = pmuk_fail_left();
	ret = PTR_ERR_OR_ZERO(c);
	KUNIT_EXPECT_EQ(s->test, pmuk_itrace_areas(it), !ret);
	pmuk_counter_destroy(c);
	KUNIT_EXPECT_EQ(s->test, pmuk_itrace_areas(it), 0);
	KUNIT_EXPECT_EQ(s->test, pmuk_nr_counters(), 0);
	return ret;
}

/*
 * An event makes at least these allocations: the counter, its perf event, the list of pages for the
 * driver, and the driver's own data. The list of pages stays with the buffer, so each attempt takes
 * a new buffer.
 */
static void each_allocation_of_an_event_fails(struct kunit *test)
{
	const struct pmuk_buffer_attr attr = { .nr_pages = 1, .aux.nr_pages = 1 };
	struct pmuk_sweep s = pmuk_new_sweep(test);
	struct pmuk_itrace *it = pmuk_itrace_create("pmuk_itrace", 0);
	struct pmuk_buffer *b;
	int ret;

	KUNIT_ASSERT_FALSE(test, IS_ERR(it));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_itrace, it), 0);
	do {
		b = pmuk_test_new_buffer(test, &attr, cpumask_first(cpu_online_mask));
		ret = attach_failing(&s, it, b);
		kunit_release_action(test, pmuk_test_end_buffer, b);
	} while (pmuk_sweep_on(&s, ret));
	pmuk_sweep_end(&s, 4);
}

static struct kunit_case pmuk_aux_fail_cases[] = {
	KUNIT_CASE_PARAM(each_allocation_of_a_buffer_fails, areas_gen_params),
	KUNIT_CASE(each_allocation_of_an_event_fails),
	{}
};

PMUK_SUITE(pmuk_aux_fail, pmuk_test_init, "KUnit tests of pmuk's AUX areas when memory is short");
