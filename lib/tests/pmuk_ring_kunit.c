// SPDX-License-Identifier: GPL-2.0
/*
 * What becomes of records: in each mode, with and without room, given up, read. All are
 * of one shape, numbered, so that a reader knows what it has missed.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/prandom.h>

#include "pmuk_test.h"
#include "pmuk_records.h"

static void fresh_buffer_is_empty(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1 });
	size_t size;

	KUNIT_EXPECT_NOT_NULL(test, pmuk_buffer_data(tb->b, &size));
	KUNIT_EXPECT_EQ(test, size, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, pmuk_test_drain(tb), 0);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_control(tb->b)->data_offset, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_control(tb->b)->data_size, PAGE_SIZE);
}

/* As many as fit, and not one more; then it says how many were lost, and goes on. */
static void drop_loses_the_newest(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1 });
	unsigned int i, fit = PAGE_SIZE / 64, round;

	for (round = 0; round < 100; round++) {
		/* From the second round on, a PERF_RECORD_LOST takes the room of one. */
		for (i = 0; i < fit + 7; i++)
			KUNIT_ASSERT_EQ(test, pmuk_test_write(tb, 64), i < fit - !!round);
		pmuk_test_drain(tb);
	}
	KUNIT_EXPECT_EQ(test, tb->seen_lost, pmuk_test_stat(tb).lost - 8);
	KUNIT_EXPECT_GT(test, tb->bytes, 50 * PAGE_SIZE);
}

/* Until one is lost. */
static void write_until_full(struct pmuk_test_buffer *tb, u32 size)
{
	unsigned int i;

	for (i = 0; pmuk_test_write(tb, size); i++)
		KUNIT_ASSERT_LT_MSG(tb->test, i, PAGE_SIZE / size, "never full");
}

/* Exactly what was lost, once, and before anything newer. */
static void loss_is_told_before_the_next_record(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1 });
	const struct perf_event_header *rec;
	struct pmuk_reader r;
	unsigned int lost, i;

	for (lost = 1; lost < 100; lost++) {
		write_until_full(tb, 64);
		for (i = 1; i < lost; i++)
			KUNIT_ASSERT_FALSE(test, pmuk_test_write(tb, 64));
		pmuk_test_drain(tb);
		KUNIT_ASSERT_TRUE(test, pmuk_test_write(tb, 64));
		KUNIT_ASSERT_TRUE(test, pmuk_test_write(tb, 64));

		KUNIT_ASSERT_EQ(test, pmuk_buffer_claim(tb->b, &r), 0);
		rec = pmuk_buffer_next(&r);
		KUNIT_ASSERT_EQ(test, rec->type, PERF_RECORD_LOST);
		KUNIT_ASSERT_EQ(test, ((const u64 *)rec)[2], lost);
		pmuk_test_look(tb, rec);
		for (i = 0; i < 2; i++) {
			rec = pmuk_buffer_next(&r);
			KUNIT_ASSERT_TRUE(test, rec && pmuk_test_look(tb, rec));
		}
		KUNIT_ASSERT_NULL(test, pmuk_buffer_next(&r));
		pmuk_buffer_release(&r);
	}
	KUNIT_EXPECT_EQ(test, tb->seen_lost, pmuk_test_stat(tb).lost);
	KUNIT_EXPECT_EQ(test, tb->seen_told, 99);
}

static void stop_waits_for_restart(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .mode = PMUK_BUFFER_STOP });

	write_until_full(tb, 128);
	pmuk_test_drain(tb);
	KUNIT_EXPECT_FALSE(test, pmuk_test_write(tb, 128));
	KUNIT_EXPECT_EQ(test, pmuk_test_stat(tb).lost, 2);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_restart(tb->b), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_test_write(tb, 128));
	KUNIT_EXPECT_EQ(test, pmuk_test_drain(tb), 1);
	KUNIT_EXPECT_EQ(test, tb->seen_lost, 2);
}

/* How many records user space finds that has the buffer mapped: from data_tail to data_head. */
static unsigned int records_by_the_page(struct pmuk_test_buffer *tb)
{
	const struct perf_event_mmap_page *page = pmuk_buffer_control(tb->b);
	const struct perf_event_header *rec;
	u64 pos = page->data_tail;
	unsigned int n = 0;
	const void *data;
	size_t size;

	data = pmuk_buffer_data(tb->b, &size);
	for (; pos < page->data_head; pos += rec->size) {
		rec = data + pos % size;
		KUNIT_ASSERT_GE(tb->test, rec->size, PMUK_RECORD_MIN);
		KUNIT_ASSERT_TRUE(tb->test, pmuk_test_is_whole(rec));
		n++;
	}
	KUNIT_EXPECT_EQ(tb->test, pos, page->data_head);
	return n;
}

/* The newest are there, whole and without a gap; what they have replaced is counted. */
static void overwrite_keeps_the_newest(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 2, .mode = PMUK_BUFFER_OVERWRITE });
	struct pmuk_reader r;
	unsigned int i, n, mapped, round;

	for (round = 0; round < 20; round++) {
		for (i = 0; i < 1000; i++)
			KUNIT_ASSERT_TRUE(test, pmuk_test_write(tb, 16 + 8 * (i % 23)));
		KUNIT_EXPECT_EQ(test, pmuk_buffer_claim(tb->b, &r), -EBUSY);
		KUNIT_EXPECT_EQ(test, pmuk_buffer_pause(tb->b), 0);
		KUNIT_EXPECT_FALSE(test, pmuk_test_write(tb, 64));
		tb->gap_is_fine = true;
		mapped = records_by_the_page(tb);
		n = pmuk_test_drain(tb);
		KUNIT_EXPECT_EQ(test, mapped, n);
		KUNIT_EXPECT_EQ(test, tb->next, tb->number);
		KUNIT_EXPECT_GT(test, n, 2 * PAGE_SIZE * 15 / 16 / 200);
		KUNIT_EXPECT_EQ(test, pmuk_buffer_resume(tb->b), 0);
	}
	KUNIT_EXPECT_EQ(test, pmuk_test_stat(tb).discarded, 20);
	KUNIT_EXPECT_EQ(test, pmuk_test_stat(tb).lost, 0);
	KUNIT_EXPECT_GT(test, pmuk_test_stat(tb).overwritten, 10000);
}

/* Records of ours from tail to head, without taking any. */
static unsigned int records_left(struct pmuk_test_buffer *tb)
{
	struct pmuk_buffer_stat stat = pmuk_test_stat(tb);
	const struct perf_event_header *rec;
	unsigned int n = 0;
	const void *data;
	size_t size;

	data = pmuk_buffer_data(tb->b, &size);
	for (; stat.tail < stat.head; stat.tail += rec->size) {
		rec = data + stat.tail % size;
		KUNIT_ASSERT_GE(tb->test, rec->size, PMUK_RECORD_MIN);
		n += rec->type == PMUK_TEST_RECORD;
	}
	KUNIT_EXPECT_EQ(tb->test, stat.tail, stat.head);
	return n;
}

/* At any time, in any mode, whatever was done. */
static void nothing_is_unaccounted(struct kunit *test)
{
	static const enum pmuk_buffer_mode modes[] = {
		PMUK_BUFFER_DROP, PMUK_BUFFER_OVERWRITE, PMUK_BUFFER_STOP };
	struct rnd_state rnd;
	unsigned int i, j;

	prandom_seed_state(&rnd, 3);
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
			.nr_pages = 1, .mode = modes[i] });
		struct pmuk_buffer_stat stat;

		for (j = 0; j < 3000; j++) {
			pmuk_test_write(tb, prandom_u32_state(&rnd) % 300 & ~3);
			if (prandom_u32_state(&rnd) % 200 == 0) {
				pmuk_buffer_pause(tb->b);
				tb->gap_is_fine = true;
				pmuk_test_write(tb, 64);
				pmuk_test_drain(tb);
				pmuk_buffer_resume(tb->b);
				pmuk_buffer_restart(tb->b);
			}
			stat = pmuk_test_stat(tb);
			KUNIT_ASSERT_EQ(test, tb->attempts + tb->seen_told,
					stat.consumed + stat.overwritten + stat.lost +
					stat.discarded + records_left(tb));
		}
		KUNIT_EXPECT_GT(test, stat.consumed, 0);
		KUNIT_EXPECT_GT(test, stat.discarded, 0);
		KUNIT_EXPECT_GT(test, modes[i] == PMUK_BUFFER_OVERWRITE ? stat.overwritten :
				      stat.lost, 0);
	}
}

static void bad_sizes_are_discarded(struct kunit *test)
{
	static const u32 sizes[] = { 0, 1, 7, 8, 12, 17, 65529, 65536, 1 << 20, U32_MAX };
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 32 });
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		KUNIT_EXPECT_FALSE(test, pmuk_test_write(tb, sizes[i]));
	KUNIT_EXPECT_EQ(test, pmuk_test_stat(tb).discarded, ARRAY_SIZE(sizes));
	KUNIT_EXPECT_TRUE(test, pmuk_test_write(tb, 16));
	KUNIT_EXPECT_TRUE(test, pmuk_test_write(tb, 65528));
	KUNIT_EXPECT_EQ(test, pmuk_test_drain(tb), 2);
}

/* A record as large as all the room there is, at each offset. */
static void largest_record_fits(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1 });
	unsigned int i;

	for (i = 0; i < PAGE_SIZE / 8; i++) {
		KUNIT_ASSERT_TRUE(test, pmuk_test_write(tb, PAGE_SIZE));
		KUNIT_ASSERT_EQ(test, pmuk_test_drain(tb), 1);
		KUNIT_ASSERT_TRUE(test, pmuk_test_write(tb, 16 + 8 * (i % 5)));
		KUNIT_ASSERT_EQ(test, pmuk_test_drain(tb), 1);
	}
	KUNIT_EXPECT_FALSE(test, pmuk_test_write(tb, PAGE_SIZE + 8));
}

static void given_up_records_are_not_seen(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1 });
	struct perf_event_header *outer, *inner;
	unsigned int i;

	for (i = 0; i < 500; i++) {
		scoped_guard(preempt) {
			outer = pmuk_output_begin(tb->b, PMUK_TEST_RECORD, 48);
			pmuk_output_skip(tb->b, outer);

			outer = pmuk_output_begin(tb->b, PMUK_TEST_RECORD, 48);
			inner = pmuk_output_begin(tb->b, PMUK_TEST_RECORD, 64);
			pmuk_test_fill(tb, inner);
			pmuk_output_end(tb->b, inner);
			pmuk_output_skip(tb->b, outer);
		}
		tb->attempts += 3;
		KUNIT_ASSERT_EQ(test, pmuk_test_drain(tb), 1);
	}
	KUNIT_EXPECT_EQ(test, pmuk_test_stat(tb).discarded, 1000);
}

/* Nothing is seen of a record, or of those inside of it, before it ends. */
static void inner_records_wait_for_the_outer(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1 });
	struct perf_event_header *rec[3];
	int i;

	preempt_disable();
	for (i = 0; i < 3; i++) {
		rec[i] = pmuk_output_begin(tb->b, PMUK_TEST_RECORD, 64);
		pmuk_test_fill(tb, rec[i]);
	}
	tb->attempts += 3;
	for (i = 2; i > 0; i--) {
		pmuk_output_end(tb->b, rec[i]);
		KUNIT_EXPECT_EQ(test, pmuk_test_drain(tb), 0);
	}
	pmuk_output_end(tb->b, rec[0]);
	preempt_enable();
	KUNIT_EXPECT_EQ(test, pmuk_test_drain(tb), 3);
}

/* A writer that has taken all the room: what interrupts it is lost, and counted. */
static void inner_records_never_take_the_outer(struct kunit *test)
{
	static const enum pmuk_buffer_mode modes[] = {
		PMUK_BUFFER_DROP, PMUK_BUFFER_OVERWRITE, PMUK_BUFFER_STOP };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
			.nr_pages = 1, .mode = modes[i] });
		struct perf_event_header *outer;

		preempt_disable();
		outer = pmuk_output_begin(tb->b, PMUK_TEST_RECORD, PAGE_SIZE / 2);
		tb->attempts++;
		pmuk_test_fill(tb, outer);
		for (j = 0; j < 100; j++)
			pmuk_test_write(tb, 64);
		pmuk_output_end(tb->b, outer);
		preempt_enable();
		pmuk_buffer_pause(tb->b);
		KUNIT_EXPECT_EQ(test, pmuk_test_drain(tb), 1 + PAGE_SIZE / 2 / 64);
		KUNIT_EXPECT_EQ(test, pmuk_test_stat(tb).lost, 100 - PAGE_SIZE / 2 / 64);
	}
}

static void watermark_in_bytes(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 4, .watermark = 1000 });
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		pmuk_test_write(tb, 40);
		KUNIT_ASSERT_EQ(test, pmuk_test_stat(tb).wakeups, (i + 1) * 40 / 1000);
		if (i % 50 == 0)
			pmuk_test_drain(tb);
	}
	pmuk_test_drain(tb);
}

static void watermark_is_a_page_by_default(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 4 });
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		pmuk_test_write(tb, 256);
		KUNIT_ASSERT_EQ(test, pmuk_test_stat(tb).wakeups, (i + 1) * 256 / PAGE_SIZE);
		pmuk_test_drain(tb);
	}
}

/* And not more than half of the data: a full buffer is too late. */
static void watermark_is_at_most_half(struct kunit *test)
{
	static const u32 watermarks[] = { 0, PAGE_SIZE / 2 + 8, U32_MAX };
	struct pmuk_test_buffer *tb;
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(watermarks); i++) {
		tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
			.nr_pages = 1, .watermark = watermarks[i] });
		for (n = 0; n < PAGE_SIZE / 64; n++)
			pmuk_test_write(tb, 64);
		KUNIT_EXPECT_EQ(test, pmuk_test_stat(tb).wakeups, 2);
		pmuk_test_drain(tb);
	}
}

static void watermark_in_records(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 4, .wakeup_events = 7 });
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		pmuk_test_write(tb, 16 + 8 * (i % 9));
		KUNIT_ASSERT_EQ(test, pmuk_test_stat(tb).wakeups, (i + 1) / 7);
		pmuk_test_drain(tb);
	}
}

/* What is published at once wakes once, however many watermarks it passes. */
static void watermarks_passed_at_once(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .watermark = 128 });
	struct perf_event_header *outer;
	unsigned int i;

	for (i = 1; i <= 100; i++) {
		scoped_guard(preempt) {
			outer = pmuk_output_begin(tb->b, PMUK_TEST_RECORD, 512);
			KUNIT_EXPECT_NOT_NULL(test, outer);
			pmuk_test_fill(tb, outer);
			pmuk_test_write(tb, 512);
			KUNIT_EXPECT_EQ(test, pmuk_test_stat(tb).wakeups, i - 1);
			pmuk_output_end(tb->b, outer);
		}
		tb->attempts++;
		KUNIT_ASSERT_EQ(test, pmuk_test_stat(tb).wakeups, i);
		pmuk_test_drain(tb);
	}
}

/* A watermark that cannot be reached does not leave the consumer asleep. */
static void loss_wakes_once(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .wakeup_events = 1 << 20 });
	unsigned int i;

	for (i = 0; i < 200; i++)
		pmuk_test_write(tb, 64);
	KUNIT_EXPECT_EQ(test, pmuk_test_stat(tb).wakeups, 1);
	pmuk_test_drain(tb);
	for (i = 0; i < 200; i++)
		pmuk_test_write(tb, 64);
	KUNIT_EXPECT_EQ(test, pmuk_test_stat(tb).wakeups, 2);
	pmuk_test_drain(tb);
}

static void one_reader_at_a_time(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .mode = PMUK_BUFFER_OVERWRITE });
	const struct perf_event_header *rec;
	struct pmuk_reader r, other;

	pmuk_test_write(tb, 64);
	pmuk_test_write(tb, 64);
	pmuk_buffer_pause(tb->b);
	KUNIT_ASSERT_EQ(test, pmuk_buffer_claim(tb->b, &r), 0);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_claim(tb->b, &other), -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_resume(tb->b), -EBUSY);
	pmuk_buffer_consume(&r);	/* nothing was peeked at */
	rec = pmuk_buffer_peek(&r);
	KUNIT_EXPECT_PTR_EQ(test, pmuk_buffer_peek(&r), rec);
	pmuk_buffer_release(&r);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_resume(tb->b), 0);
	pmuk_buffer_pause(tb->b);
	KUNIT_EXPECT_EQ(test, pmuk_test_drain(tb), 2);
}

struct rival {
	struct pmuk_buffer *b;
	struct completion done;
	int claimed, resumed;
};

static int rival_tries(void *data)
{
	struct rival *rival = data;
	struct pmuk_reader r;

	rival->claimed = pmuk_buffer_claim(rival->b, &r);
	rival->resumed = pmuk_buffer_resume(rival->b);
	complete(&rival->done);
	return 0;
}

static void readers_of_other_tasks_wait(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .mode = PMUK_BUFFER_OVERWRITE });
	struct rival *rival = pmuk_test_zalloc(test, sizeof(*rival));
	struct pmuk_reader r;

	rival->b = tb->b;
	init_completion(&rival->done);
	pmuk_test_write(tb, 64);
	pmuk_buffer_pause(tb->b);
	KUNIT_ASSERT_EQ(test, pmuk_buffer_claim(tb->b, &r), 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(rival_tries, rival, "pmuk_rival")));
	wait_for_completion(&rival->done);
	pmuk_buffer_release(&r);
	KUNIT_EXPECT_EQ(test, rival->claimed, -EBUSY);
	KUNIT_EXPECT_EQ(test, rival->resumed, -EBUSY);
}

/* It reads some, peeks at one, and is gone: the next one goes on with that. */
static void next_reader_goes_on(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1 });
	const struct perf_event_header *rec;
	struct pmuk_reader r;
	unsigned int i, n = 0;

	for (i = 0; i < 20; i++)
		pmuk_test_write(tb, 64);
	KUNIT_ASSERT_EQ(test, pmuk_buffer_claim(tb->b, &r), 0);
	pmuk_for_each_record(rec, &r) {
		if (n++ == 5)
			break;
		pmuk_test_look(tb, rec);
	}
	pmuk_buffer_release(&r);
	KUNIT_EXPECT_EQ(test, pmuk_test_drain(tb), 15);
	KUNIT_EXPECT_EQ(test, pmuk_test_stat(tb).consumed, 20);
}

/* It does not even say so. */
static void dead_reader_costs_nothing_else(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1 });
	struct pmuk_reader dead, r;
	unsigned int i;

	for (i = 0; i < 100; i++)
		pmuk_test_write(tb, 64);
	KUNIT_ASSERT_EQ(test, pmuk_buffer_claim(tb->b, &dead), 0);
	pmuk_test_look(tb, pmuk_buffer_peek(&dead));
	pmuk_test_look(tb, pmuk_buffer_next(&dead));
	pmuk_buffer_consume(&dead);
	pmuk_buffer_peek(&dead);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_claim(tb->b, &r), -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_revoke(tb->b), 0);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_revoke(tb->b), 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_drain(tb), PAGE_SIZE / 64 - 2);
	KUNIT_EXPECT_EQ(test, pmuk_test_stat(tb).consumed, PAGE_SIZE / 64);
	KUNIT_EXPECT_EQ(test, pmuk_test_stat(tb).lost, 100 - PAGE_SIZE / 64);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_revoke(NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_revoke(ERR_PTR(-ENOMEM)), -EINVAL);
}

static struct kunit_case pmuk_ring_cases[] = {
	KUNIT_CASE(fresh_buffer_is_empty),
	KUNIT_CASE(drop_loses_the_newest),
	KUNIT_CASE(loss_is_told_before_the_next_record),
	KUNIT_CASE(stop_waits_for_restart),
	KUNIT_CASE(overwrite_keeps_the_newest),
	KUNIT_CASE(nothing_is_unaccounted),
	KUNIT_CASE(bad_sizes_are_discarded),
	KUNIT_CASE(largest_record_fits),
	KUNIT_CASE(given_up_records_are_not_seen),
	KUNIT_CASE(inner_records_wait_for_the_outer),
	KUNIT_CASE(inner_records_never_take_the_outer),
	KUNIT_CASE(watermark_in_bytes),
	KUNIT_CASE(watermark_is_a_page_by_default),
	KUNIT_CASE(watermark_is_at_most_half),
	KUNIT_CASE(watermark_in_records),
	KUNIT_CASE(watermarks_passed_at_once),
	KUNIT_CASE(loss_wakes_once),
	KUNIT_CASE(one_reader_at_a_time),
	KUNIT_CASE(readers_of_other_tasks_wait),
	KUNIT_CASE(next_reader_goes_on),
	KUNIT_CASE(dead_reader_costs_nothing_else),
	{}
};

static struct kunit_suite pmuk_ring_suite = {
	.name = "pmuk_ring",
	.init = pmuk_test_init,
	.test_cases = pmuk_ring_cases,
};

kunit_test_suite(pmuk_ring_suite);

MODULE_DESCRIPTION("KUnit tests for pmuk's record ring");
MODULE_LICENSE("GPL");
