// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check the record ring of a buffer: by the rules that also run in user space, and then
 * what only a buffer in the kernel has.
 */
#include <kunit/test.h>

#include "pmuk_ring_rules.h"
#include "pmuk_suite.h"

KUNIT_ARRAY_PARAM_DESC(ring_rules, ring_rules, name);

static void rules(struct kunit *test)
{
	ring_run(test, test->param_value);
}

static void fresh_buffer_is_empty(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_setup_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1 });
	size_t size;

	KUNIT_EXPECT_NOT_NULL(test, pmuk_buffer_data(tb->b, &size));
	KUNIT_EXPECT_EQ(test, size, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, pmuk_test_drain(tb), 0);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_control(tb->b)->data_offset, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_control(tb->b)->data_size, PAGE_SIZE);
}

static void watermark_is_a_page_by_default(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_setup_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 4 });
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		pmuk_test_write(tb, 256);
		KUNIT_ASSERT_EQ(test, pmuk_test_stat(tb).wakeups, (i + 1) * 256 / PAGE_SIZE);
		pmuk_test_drain(tb);
	}
}

/* The watermark is at most half of the data, as a wakeup at a full buffer comes too late. */
static void watermark_is_at_most_half(struct kunit *test)
{
	static const u32 watermarks[] = { 0, PAGE_SIZE / 2 + 8, U32_MAX };
	struct pmuk_test_buffer *tb;
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(watermarks); i++) {
		tb = pmuk_test_setup_buffer(test, &(struct pmuk_buffer_attr){
			.nr_pages = 1, .watermark = watermarks[i] });
		for (n = 0; n < PAGE_SIZE / 64; n++)
			pmuk_test_write(tb, 64);
		KUNIT_EXPECT_EQ(test, pmuk_test_stat(tb).wakeups, 2);
		pmuk_test_drain(tb);
	}
}

struct rival {
	struct pmuk_buffer *b;
	int claimed, resumed;
};

static void rival_tries(void *data)
{
	struct rival *rival = data;
	struct pmuk_reader r;

	rival->claimed = pmuk_buffer_claim(rival->b, &r);
	rival->resumed = pmuk_buffer_resume(rival->b);
}

static void readers_of_other_tasks_wait(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_setup_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .mode = PMUK_BUFFER_OVERWRITE });
	struct rival *rival = pmuk_test_zalloc(test, sizeof(*rival));
	struct pmuk_reader r;

	rival->b = tb->b;
	pmuk_test_write(tb, 64);
	pmuk_buffer_pause(tb->b);
	KUNIT_ASSERT_EQ(test, pmuk_buffer_claim(tb->b, &r), 0);
	pmuk_job_end(test, pmuk_job_start(test, rival_tries, rival));
	pmuk_buffer_release(&r);
	KUNIT_EXPECT_EQ(test, rival->claimed, -EBUSY);
	KUNIT_EXPECT_EQ(test, rival->resumed, -EBUSY);
}

static struct kunit_case pmuk_ring_cases[] = {
	KUNIT_CASE_PARAM(rules, ring_rules_gen_params),
	KUNIT_CASE(fresh_buffer_is_empty),
	KUNIT_CASE(watermark_is_a_page_by_default),
	KUNIT_CASE(watermark_is_at_most_half),
	KUNIT_CASE(readers_of_other_tasks_wait),
	{}
};

PMUK_SUITE(pmuk_ring, pmuk_test_init, "KUnit tests for pmuk's record ring");
