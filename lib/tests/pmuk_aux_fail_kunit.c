// SPDX-License-Identifier: GPL-2.0
/*
 * Each allocation that creating a buffer with an AUX area makes fails once: the first, the
 * second, … until none is left to fail; and each that an event makes which is to write one.
 * Nothing stays, and the producer has an end for each beginning.
 */
#include <linux/module.h>

#include "pmuk_aux.h"
#include "pmuk_itrace.h"
#include "pmuk_fail.h"

#ifdef PMUK_CAN_FAIL_PAGES

/* The buffer, when its @nth allocation fails; *@left is 0 if that one was made. */
static struct pmuk_buffer *create_failing(const struct pmuk_buffer_attr *attr, unsigned int nth,
					  unsigned int *left)
{
	struct pmuk_buffer *b;

	current->fail_nth = nth;
	b = pmuk_buffer_create(attr, cpumask_first(cpu_online_mask));
	*left = current->fail_nth;
	current->fail_nth = 0;
	return b;
}

/* A failed setup has no end; one that was made has one, as soon as its buffer goes. */
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
 * A failure that creation survives may have been somebody else's: the same @nth is tried again
 * before it is the next one's turn. With @aux->prefer, it may have been that of a larger piece.
 */
static void sweep(struct kunit *test, const struct pmuk_aux_attr *aux, unsigned int fewest,
		  bool smaller)
{
	struct pmuk_test_producer *p = pmuk_test_producer(test);
	struct pmuk_buffer_attr attr = { .nr_pages = 2, .aux = *aux };
	unsigned int nth = 1, left = 0, failed = 0, survived = 0, split = 0, tries, setups;

	attr.aux.ops = &pmuk_test_ops;
	attr.aux.data = p;
	pmuk_let_any_allocation_fail(test);
	pmuk_let_any_page_fail(test);
	for (tries = 0; !left && tries < 400; tries++) {
		struct pmuk_buffer *b;

		setups = p->setups;
		b = create_failing(&attr, nth, &left);
		if (IS_ERR(b)) {
			KUNIT_EXPECT_EQ_MSG(test, left, 0, "failed without a reason");
			KUNIT_EXPECT_EQ(test, PTR_ERR(b), -ENOMEM);
			failed++;
			nth++;
		} else {
			split += p->pieces > aux->nr_pages >> aux->order;
			nth += !left && ++survived % 4 == 0;
		}
		expect_balance(p, b, setups);
	}
	KUNIT_EXPECT_GT_MSG(test, left, 0, "never succeeded");
	KUNIT_EXPECT_GE(test, failed, fewest);
	KUNIT_EXPECT_EQ(test, split > 0, smaller);
	kunit_info(test, "%u allocations failed, %u areas of smaller pieces", failed, split);
}

static void put_itrace(void *data)
{
	pmuk_itrace_destroy(data);
}

static void put_buffer(void *data)
{
	pmuk_buffer_destroy(data);
}

/* An event that is to write @b's area, made and ended, when its @nth allocation fails. */
static int attach_failing(struct kunit *test, struct pmuk_itrace *it, struct pmuk_buffer *b,
			  unsigned int nth, unsigned int *left)
{
	const struct pmuk_attr attr = { .type = pmuk_itrace_type(it),
					.config = PMUK_ITRACE_ALIGN_MIN, .buffer = b };
	struct pmuk_counter *c;
	int ret;

	current->fail_nth = nth;
	c = pmuk_counter_create(&attr, cpumask_first(cpu_online_mask), NULL);
	*left = current->fail_nth;
	current->fail_nth = 0;
	ret = PTR_ERR_OR_ZERO(c);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_areas(it), !ret);
	pmuk_counter_destroy(c);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_areas(it), 0);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
	return ret;
}

/* One of the list of pages stays with its buffer, so each time there is another one. */
static void sweep_events(struct kunit *test, unsigned int fewest)
{
	const struct pmuk_buffer_attr attr = { .nr_pages = 1, .aux.nr_pages = 1 };
	struct pmuk_itrace *it = pmuk_itrace_create("pmuk_itrace", 0);
	unsigned int nth = 1, left = 0, failed = 0, survived = 0, tries;
	struct pmuk_buffer *b;

	KUNIT_ASSERT_FALSE(test, IS_ERR(it));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_itrace, it), 0);
	pmuk_let_any_allocation_fail(test);
	for (tries = 0; !left && tries < 200; tries++) {
		b = pmuk_buffer_create(&attr, cpumask_first(cpu_online_mask));
		KUNIT_ASSERT_FALSE(test, IS_ERR(b));
		KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_buffer, b), 0);
		if (attach_failing(test, it, b, nth, &left)) {
			KUNIT_EXPECT_EQ_MSG(test, left, 0, "failed without a reason");
			failed++;
			nth++;
		} else {
			nth += !left && ++survived % 4 == 0;
		}
		kunit_release_action(test, put_buffer, b);
	}
	KUNIT_EXPECT_GT_MSG(test, left, 0, "never succeeded");
	KUNIT_EXPECT_GE(test, failed, fewest);
	kunit_info(test, "%u allocations failed", failed);
}

#else

static void sweep_events(struct kunit *test, unsigned int fewest)
{
	kunit_skip(test, "needs FAILSLAB, FAIL_PAGE_ALLOC and FAULT_INJECTION_DEBUG_FS");
}

static void sweep(struct kunit *test, const struct pmuk_aux_attr *aux, unsigned int fewest,
		  bool smaller)
{
	kunit_skip(test, "needs FAILSLAB, FAIL_PAGE_ALLOC and FAULT_INJECTION_DEBUG_FS");
}

#endif

/*
 * At least: the buffer, its control page, and for each of data and area a list of pages, these,
 * and where they are mapped; the area; and the list for the producer.
 */
static void fail_with_pages(struct kunit *test)
{
	sweep(test, &(struct pmuk_aux_attr){ .nr_pages = 8 }, 2 + 4 + 10 + 1 + 1, false);
}

static void fail_with_pieces(struct kunit *test)
{
	sweep(test, &(struct pmuk_aux_attr){ .nr_pages = 8, .order = 1 }, 2 + 4 + 6 + 1 + 1,
	      false);
}

/* Pieces that are not to be had are made smaller, one by one. */
static void fail_with_smaller_pieces(struct kunit *test)
{
	sweep(test, &(struct pmuk_aux_attr){ .nr_pages = 8, .order = 1, .prefer = true },
	      2 + 4 + 2 + 1 + 1, true);
}

/* At least: the counter, its perf event, the list of pages for its driver, and what that has. */
static void fail_with_event(struct kunit *test)
{
	sweep_events(test, 4);
}

static struct kunit_case pmuk_aux_fail_cases[] = {
	KUNIT_CASE(fail_with_pages),
	KUNIT_CASE(fail_with_pieces),
	KUNIT_CASE(fail_with_smaller_pieces),
	KUNIT_CASE(fail_with_event),
	{}
};

static struct kunit_suite pmuk_aux_fail_suite = {
	.name = "pmuk_aux_fail",
	.init = pmuk_test_init,
	.test_cases = pmuk_aux_fail_cases,
};

kunit_test_suite(pmuk_aux_fail_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of pmuk's AUX areas when memory is short");
