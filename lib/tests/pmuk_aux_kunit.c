// SPDX-License-Identifier: GPL-2.0
/*
 * The AUX area of a buffer: what may be written, what is read and told of it, with and without
 * room, and whatever user space says; its memory, its producer's callbacks, and its end.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/workqueue.h>

#include "pmuk_aux.h"
#include "pmuk_ctx.h"
#include "pmuk_map.h"

#define FORMATTED	(0x11ULL << 8)	/* one of PERF_AUX_FLAG_PMU_FORMAT_TYPE_MASK */

static struct pmuk_test_aux *new_aux(struct kunit *test, u32 nr_pages)
{
	return pmuk_test_aux(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .aux.nr_pages = nr_pages });
}

static struct pmuk_test_aux *new_overwriting(struct kunit *test, u32 nr_pages)
{
	return pmuk_test_aux(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .aux.nr_pages = nr_pages, .aux.overwrite = true });
}

/* ---- begin and end ---- */

static void fresh_area_is_empty(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 4);
	struct pmuk_aux_stat stat = pmuk_test_aux_stat(a), none = {};

	KUNIT_EXPECT_EQ(test, memcmp(&stat, &none, sizeof(stat)), 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told_nothing(a));
	KUNIT_EXPECT_EQ(test, pmuk_buffer_control(a->b)->aux_head, 0);
	KUNIT_EXPECT_PTR_EQ(test, pmuk_aux_data(a->b, NULL), (const void *)a->data);
	KUNIT_EXPECT_NULL(test, memchr_inv(a->data, 0, 2 * a->size));
}

static void begin_says_what_may_be_written(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 2);
	struct pmuk_aux_handle h;

	guard(preempt)();
	KUNIT_EXPECT_PTR_EQ(test, pmuk_aux_output_begin(&h, a->b), (void *)a->data);
	KUNIT_EXPECT_PTR_EQ(test, pmuk_get_aux(&h), (void *)a->data);
	KUNIT_EXPECT_PTR_EQ(test, h.data, (void *)a->data);
	KUNIT_EXPECT_EQ(test, h.head, 0);
	KUNIT_EXPECT_EQ(test, h.size, a->size);
	pmuk_aux_output_end(&h, 100);
	KUNIT_EXPECT_NULL(test, pmuk_get_aux(&h));

	KUNIT_EXPECT_NOT_NULL(test, pmuk_aux_output_begin(&h, a->b));
	KUNIT_EXPECT_PTR_EQ(test, h.data, (void *)a->data + 100);
	KUNIT_EXPECT_EQ(test, h.head, 100);
	KUNIT_EXPECT_EQ(test, h.size, a->size - 100);
	pmuk_aux_output_end(&h, 0);
}

static void what_is_written_is_read_and_told(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 2);
	const struct perf_event_mmap_page *page = pmuk_buffer_control(a->b);
	u64 pos = 0, size;

	for (size = 1; size <= a->size; size = size * 3 / 2 + 1) {
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_write(a, size));
		KUNIT_ASSERT_EQ(test, page->aux_head, pos + size);
		KUNIT_ASSERT_EQ(test, page->aux_tail, pos);
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_told(a, pos, size, 0));
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_told_nothing(a));
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_drain(a), size);
		pos += size;
		KUNIT_ASSERT_EQ(test, page->aux_tail, pos);
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_stat(a).head, pos);
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_stat(a).tail, pos);
	}
	KUNIT_EXPECT_EQ(test, a->flags, 0);
}

/* Nothing is seen of it before it ends. */
static void what_is_open_is_not_read(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct pmuk_aux_handle h;

	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, &h));
	pmuk_test_aux_fill(a, h.data, h.head, 64);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told_nothing(a));
	pmuk_test_aux_end(&h, 64);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 64);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 0, 64, 0));
}

static void nothing_written_is_not_told(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct pmuk_aux_handle h;
	unsigned int i;

	for (i = 0; i < 10; i++)
		KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 0));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told_nothing(a));
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).head, 0);

	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, &h));
	pmuk_test_aux_end(&h, 0);
	pmuk_test_aux_end(&h, 100);	/* it has ended already */
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).head, 0);
}

/* Of whatever is written, given back and full. */
static void room_is_what_was_given_back(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 2);
	struct pmuk_aux_handle h;
	u64 left;

	for (left = a->size; left; left -= min(left, 1000)) {
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, &h));
		KUNIT_ASSERT_EQ(test, h.size, left);
		pmuk_test_aux_finish(a, &h, min(left, 1000));
	}
	KUNIT_EXPECT_FALSE(test, pmuk_test_aux_begin(a, &h));
	KUNIT_EXPECT_NULL(test, pmuk_get_aux(&h));
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).full, 1);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), a->size);
	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, &h));
	KUNIT_EXPECT_EQ(test, h.size, a->size);
	pmuk_test_aux_end(&h, 0);
}

static void all_of_it_fits_at_each_offset(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	u64 i;

	for (i = 0; i < a->size; i++) {
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_write(a, a->size));
		KUNIT_ASSERT_FALSE(test, pmuk_test_aux_write(a, 1));
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_drain(a), a->size);
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_told(a, i * (a->size + 1), a->size, 0));
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_write(a, 1));
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_drain(a), 1);
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_told(a, a->next - 1, 1, 0));
		KUNIT_ASSERT_EQ(test, a->bad, 0);
	}
	KUNIT_EXPECT_EQ(test, a->next, a->size * (a->size + 1));
}

/* What is not there yet is not touched, nor what was not given back. */
static void sections_stay_apart(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct rnd_state rnd;
	struct pmuk_aux_stat stat;
	unsigned int i;

	prandom_seed_state(&rnd, 5);
	for (i = 0; i < 5000; i++) {
		pmuk_test_aux_write(a, prandom_u32_state(&rnd) % 1500);
		stat = pmuk_test_aux_stat(a);
		KUNIT_ASSERT_LE(test, stat.head - stat.tail, a->size);
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_has(a, stat.tail, stat.head - stat.tail));
		if (prandom_u32_state(&rnd) % 3 == 0)
			pmuk_test_aux_drain(a);
	}
	KUNIT_EXPECT_GT(test, stat.head, 100 * a->size);
	KUNIT_EXPECT_GT(test, stat.full + stat.truncations, 0);
}

static void more_than_was_allowed_is_truncated(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	const u64 t = PERF_AUX_FLAG_TRUNCATED;

	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 96));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, a->size - 91));
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).truncated, 5);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).truncations, 1);
	KUNIT_ASSERT_EQ(test, pmuk_test_aux_drain(a), a->size);
	KUNIT_EXPECT_EQ(test, a->flags, t);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 0, 96, 0));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 96, a->size - 96, t));

	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, U64_MAX));
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).truncated, 5 + U64_MAX - a->size);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).truncations, 2);
	KUNIT_ASSERT_EQ(test, pmuk_test_aux_drain(a), a->size);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, a->size, a->size, t));
}

static void write_flagged(struct pmuk_test_aux *a, u64 size, u64 flags)
{
	struct pmuk_aux_handle h;

	KUNIT_ASSERT_TRUE(a->test, pmuk_test_aux_begin(a, &h));
	pmuk_aux_output_flag(&h, flags);
	pmuk_test_aux_finish(a, &h, size);
	pmuk_aux_output_flag(&h, PERF_AUX_FLAG_PARTIAL);	/* too late */
}

static void flags_are_told_once(struct kunit *test)
{
	static const u64 allowed[] = { PERF_AUX_FLAG_TRUNCATED, PERF_AUX_FLAG_PARTIAL,
				       PERF_AUX_FLAG_COLLISION, FORMATTED };
	struct pmuk_test_aux *a = new_aux(test, 1);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(allowed); i++) {
		write_flagged(a, 10, allowed[i]);
		KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 20 * i, 10, allowed[i]));
		KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 10);
		/* whose format it is only records tell */
		KUNIT_EXPECT_EQ(test, a->flags, allowed[i] & ~PERF_AUX_FLAG_PMU_FORMAT_TYPE_MASK);
		a->flags = 0;
		write_flagged(a, 10, 0);
		KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 20 * i + 10, 10, 0));
		KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 10);
		KUNIT_EXPECT_EQ(test, a->flags, 0);
	}
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).truncations, 1);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).truncated, 0);
}

static void flags_of_others_are_ignored(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	const u64 all = PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL |
			PERF_AUX_FLAG_COLLISION | PERF_AUX_FLAG_PMU_FORMAT_TYPE_MASK;

	write_flagged(a, 10, PERF_AUX_FLAG_OVERWRITE | BIT_ULL(20) | BIT_ULL(63));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 0, 10, 0));
	write_flagged(a, 10, U64_MAX);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 10, 10, all));
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 20);
	KUNIT_EXPECT_EQ(test, a->flags, all & ~PERF_AUX_FLAG_PMU_FORMAT_TYPE_MASK);
}

/* A producer that has lost all of it says so with nothing. */
static void flags_are_told_without_bytes(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);

	write_flagged(a, 0, PERF_AUX_FLAG_TRUNCATED);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 0, 0, PERF_AUX_FLAG_TRUNCATED));
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 10));
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 10);
	KUNIT_EXPECT_EQ(test, a->flags, PERF_AUX_FLAG_TRUNCATED);
}

static void lose(struct pmuk_test_aux *a, u64 bytes)
{
	guard(preempt)();
	pmuk_aux_output_lose(a->b, bytes);
}

static void losses_are_told_with_what_comes_next(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct pmuk_aux_handle h;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		lose(a, 100);
		KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told_nothing(a));
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, &h));
		lose(a, 11);
		pmuk_test_aux_finish(a, &h, 10);
		KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 10);
		KUNIT_EXPECT_EQ(test, a->flags, PERF_AUX_FLAG_TRUNCATED);
		a->flags = 0;
		KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 20 * i, 10,
							   PERF_AUX_FLAG_TRUNCATED));
		KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 10));
		KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 10);
		KUNIT_EXPECT_EQ(test, a->flags, 0);
		KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 20 * i + 10, 10, 0));
	}
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).truncated, 222);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).truncations, 4);
}

static void second_writer_is_refused(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct pmuk_aux_handle h, other;

	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, &h));
	KUNIT_EXPECT_FALSE(test, pmuk_test_aux_begin(a, &other));
	KUNIT_EXPECT_NULL(test, pmuk_get_aux(&other));
	pmuk_test_aux_end(&other, 100);
	KUNIT_EXPECT_FALSE(test, pmuk_test_aux_begin(a, &other));
	pmuk_test_aux_finish(a, &h, 64);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).nested, 2);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).full, 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 64);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_begin(a, &other));
	pmuk_test_aux_end(&other, 0);
}

/* Records of others go between a begin and its end, and are read before that. */
static void records_are_written_meanwhile(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct pmuk_aux_handle h;
	unsigned int i, j;

	for (i = 0; i < 100; i++) {
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, &h));
		for (j = 0; j < 10; j++)
			KUNIT_ASSERT_TRUE(test, pmuk_test_aux_other(a, 16 + 8 * j));
		for (j = 0; j < 5; j++)
			KUNIT_ASSERT_EQ(test, pmuk_test_aux_record(a).header.type,
					PMUK_AUX_OTHER);
		pmuk_test_aux_finish(a, &h, 40);
		for (j = 5; j < 10; j++)
			KUNIT_ASSERT_EQ(test, pmuk_test_aux_record(a).header.type,
					PMUK_AUX_OTHER);
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_told(a, 40 * i, 40, 0));
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_drain(a), 40);
	}
}

/* ---- skip ---- */

static int skip(struct pmuk_aux_handle *h, u64 size)
{
	guard(preempt)();
	return pmuk_aux_output_skip(h, size);
}

/* At the next multiple of @align, with an odd number of bytes. */
static void write_aligned(struct pmuk_test_aux *a, u64 align)
{
	struct kunit *test = a->test;
	struct pmuk_aux_handle h;
	u64 at, pad;

	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, &h));
	at = round_up(h.head, align);
	pad = at - h.head;
	KUNIT_ASSERT_EQ(test, skip(&h, pad), 0);
	KUNIT_ASSERT_EQ(test, h.head, at);
	KUNIT_ASSERT_EQ(test, h.size, a->size - pad);
	KUNIT_ASSERT_PTR_EQ(test, h.data, (void *)a->data + at % a->size);
	KUNIT_ASSERT_EQ(test, pmuk_test_aux_stat(a).head, at);
	pmuk_test_aux_finish(a, &h, 77);
	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_told(a, at, 77, 0));
	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_told_nothing(a));
	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_has(a, at, 77));
}

/* All of it, whatever it has. Returns where it ends. */
static u64 give_back(struct pmuk_test_aux *a)
{
	struct pmuk_aux_reader r;
	struct pmuk_aux_span span;

	KUNIT_ASSERT_EQ(a->test, pmuk_aux_claim(a->b, &r), 0);
	pmuk_aux_peek(&r, &span);
	pmuk_aux_consume(&r, span.size);
	pmuk_aux_release(&r);
	return span.head + span.size;
}

static void skipping_aligns(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 2);
	unsigned int i;
	u64 align;

	for (align = 1; align <= 4096; align *= 2) {
		for (i = 0; i < 10; i++) {
			write_aligned(a, align);
			KUNIT_ASSERT_EQ(test, give_back(a), pmuk_test_aux_stat(a).head);
		}
	}
}

/* It changes nothing if it cannot be done. */
static void skipping_refuses_what_is_not_there(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct pmuk_aux_handle h, other;

	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 96));
	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, &h));
	KUNIT_EXPECT_FALSE(test, pmuk_test_aux_begin(a, &other));
	KUNIT_EXPECT_EQ(test, skip(&other, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, skip(&h, a->size - 95), -ENOSPC);
	KUNIT_EXPECT_EQ(test, skip(&h, U64_MAX), -ENOSPC);
	KUNIT_EXPECT_EQ(test, h.head, 96);
	KUNIT_EXPECT_EQ(test, h.size, a->size - 96);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).head, 96);
	KUNIT_EXPECT_EQ(test, skip(&h, a->size - 96), 0);
	KUNIT_EXPECT_EQ(test, h.size, 0);
	KUNIT_EXPECT_EQ(test, skip(&h, 1), -ENOSPC);
	KUNIT_EXPECT_EQ(test, skip(&h, 0), 0);
	pmuk_test_aux_end(&h, 0);
	KUNIT_EXPECT_EQ(test, skip(&h, 1), -EINVAL);
	KUNIT_EXPECT_FALSE(test, pmuk_test_aux_begin(a, &h));
	KUNIT_EXPECT_EQ(test, skip(&h, 0), -EINVAL);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 0, 96, 0));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told_nothing(a));
	KUNIT_EXPECT_EQ(test, give_back(a), a->size);
}

static void skip_and_write(struct pmuk_test_aux *a, u64 gap, u64 size)
{
	struct pmuk_aux_handle h;

	KUNIT_ASSERT_TRUE(a->test, pmuk_test_aux_begin(a, &h));
	KUNIT_ASSERT_EQ(a->test, skip(&h, gap), 0);
	pmuk_test_aux_finish(a, &h, size);
}

/* ---- what records tell ---- */

/* One that leaves no room for any other. */
static void fill_ring(struct pmuk_test_aux *a)
{
	KUNIT_ASSERT_TRUE(a->test, pmuk_test_aux_other(a, PAGE_SIZE));
}

static void empty_ring(struct pmuk_test_aux *a)
{
	while (pmuk_test_aux_record(a).header.type)
		;
}

/* @n records, and no other, were lost. */
static bool lost(struct pmuk_test_aux *a, u64 n)
{
	struct pmuk_test_aux_record rec = pmuk_test_aux_record(a);

	return rec.header.type == PERF_RECORD_LOST && rec.size == n;
}

static void full_ring_has_the_next_record_tell(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	unsigned int n;
	u64 pos = 0;

	for (n = 1; n < 20; n++) {
		fill_ring(a);
		for (unsigned int i = 0; i < n; i++)
			KUNIT_ASSERT_TRUE(test, pmuk_test_aux_write(a, 33));
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_drain(a), 33 * n);
		empty_ring(a);
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_write(a, 10));
		KUNIT_ASSERT_TRUE(test, lost(a, n));
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_told(a, pos, 33 * n + 10, 0));
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_told_nothing(a));
		pos += 33 * n + 10;
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_drain(a), 10);
	}
}

/* Nothing has been written since, and it is told all the same. */
static void empty_part_tells_of_those_before(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);

	fill_ring(a);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 33));
	empty_ring(a);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 0));
	KUNIT_EXPECT_TRUE(test, lost(a, 1));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 0, 33, 0));
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 33);
}

/* What was said of one of two parts is now said of both, which is PARTIAL. */
static void full_ring_keeps_flags(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);

	fill_ring(a);
	write_flagged(a, 10, PERF_AUX_FLAG_COLLISION);
	write_flagged(a, 10, 0);
	empty_ring(a);
	write_flagged(a, 10, FORMATTED);
	KUNIT_EXPECT_TRUE(test, lost(a, 2));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 0, 30, PERF_AUX_FLAG_COLLISION | FORMATTED |
						   PERF_AUX_FLAG_PARTIAL));
	write_flagged(a, 10, 0);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 30, 10, 0));
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 40);
}

/* Bytes were lost before a part that could not be told, and are told with it. */
static void full_ring_keeps_losses(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);

	lose(a, 1);
	fill_ring(a);
	write_flagged(a, 10, 0);
	empty_ring(a);
	write_flagged(a, 10, 0);
	KUNIT_EXPECT_TRUE(test, lost(a, 1));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 0, 20, PERF_AUX_FLAG_TRUNCATED));
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 20);
}

static void gap_behind_what_is_untold_is_partial(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);

	fill_ring(a);
	skip_and_write(a, 16, 10);
	empty_ring(a);
	skip_and_write(a, 6, 10);
	KUNIT_EXPECT_TRUE(test, lost(a, 1));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 16, 26, PERF_AUX_FLAG_PARTIAL));
	skip_and_write(a, 8, 10);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 50, 10, 0));
	KUNIT_EXPECT_EQ(test, give_back(a), 60);
}

static void no_gap_is_not_partial(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);

	fill_ring(a);
	skip_and_write(a, 16, 10);
	skip_and_write(a, 0, 10);
	empty_ring(a);
	skip_and_write(a, 0, 10);
	KUNIT_EXPECT_TRUE(test, lost(a, 2));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 16, 30, 0));
	KUNIT_EXPECT_EQ(test, give_back(a), 46);
}

static void paused_ring_has_the_next_record_tell(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct pmuk_buffer_stat stat;

	KUNIT_EXPECT_EQ(test, pmuk_buffer_pause(a->b), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 10));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 10));
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 20);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_resume(a->b), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 10));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 0, 30, 0));
	KUNIT_EXPECT_EQ(test, pmuk_buffer_stat(a->b, &stat), 0);
	KUNIT_EXPECT_EQ(test, stat.discarded, 2);
	KUNIT_EXPECT_EQ(test, stat.lost, 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 10);
}

static void buffer_without_records_loses_none(struct kunit *test)
{
	struct pmuk_test_aux *a = pmuk_test_aux(test, &(struct pmuk_buffer_attr){
		.aux.nr_pages = 1 });
	struct pmuk_buffer_stat stat;
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		skip_and_write(a, 0, 33);
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_drain(a), 33);
	}
	write_flagged(a, 10, PERF_AUX_FLAG_COLLISION);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 10);
	KUNIT_EXPECT_EQ(test, a->flags, PERF_AUX_FLAG_COLLISION);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_stat(a->b, &stat), 0);
	KUNIT_EXPECT_EQ(test, stat.head, 0);
	KUNIT_EXPECT_EQ(test, stat.lost, 0);
	KUNIT_EXPECT_EQ(test, stat.discarded, 0);
}

/* ---- overwriting ---- */

/* What was not given back, of the newest bytes. */
static void expect_the_newest(struct pmuk_test_aux *a, u64 head)
{
	struct kunit *test = a->test;
	u64 oldest = max(a->next, head - min(head, a->size));

	KUNIT_ASSERT_EQ(test, pmuk_aux_pause(a->b), 0);
	KUNIT_ASSERT_EQ(test, pmuk_test_aux_stat(a).tail, oldest);
	a->next = oldest;
	KUNIT_ASSERT_EQ(test, pmuk_test_aux_drain(a), head - oldest);
	KUNIT_ASSERT_EQ(test, a->bad, 0);
	KUNIT_ASSERT_EQ(test, pmuk_aux_resume(a->b), 0);
}

static void overwriting_keeps_the_newest(struct kunit *test)
{
	struct pmuk_test_aux *a = new_overwriting(test, 1);
	struct pmuk_aux_handle h;
	struct rnd_state rnd;
	unsigned int i;
	u64 size;

	prandom_seed_state(&rnd, 6);
	for (i = 0; i < 2000; i++) {
		size = prandom_u32_state(&rnd) % (a->size + 1);
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, &h));
		KUNIT_ASSERT_EQ(test, h.size, a->size);
		KUNIT_ASSERT_EQ(test, h.head, pmuk_test_aux_stat(a).head);
		pmuk_test_aux_finish(a, &h, size);
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_stat(a).head, h.head + size);
		if (prandom_u32_state(&rnd) % 4 == 0)
			expect_the_newest(a, h.head + size);
	}
	KUNIT_EXPECT_GT(test, a->next, 500 * a->size);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).full, 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).truncated, 0);
}

static void overwriting_is_told(struct kunit *test)
{
	struct pmuk_test_aux *a = new_overwriting(test, 1);
	const u64 o = PERF_AUX_FLAG_OVERWRITE;
	unsigned int i;

	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 100));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 0, 100, o));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, a->size));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 100, a->size, o));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 0));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told_nothing(a));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, a->size + 3));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 100 + a->size, a->size,
						   o | PERF_AUX_FLAG_TRUNCATED));

	/* Of what could not be told in time, what is still there. */
	pmuk_buffer_pause(a->b);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, a->size / 4));
	pmuk_buffer_resume(a->b);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 7));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 107 + a->size / 4 * 9, a->size, o));
}

static void overwriting_is_paused_to_be_read(struct kunit *test)
{
	struct pmuk_test_aux *a = new_overwriting(test, 1);
	struct pmuk_aux_handle h, other;
	struct pmuk_aux_reader r;
	struct pmuk_aux_span span;

	KUNIT_EXPECT_EQ(test, pmuk_aux_claim(a->b, &r), -EBUSY);
	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, &h));
	KUNIT_EXPECT_EQ(test, pmuk_aux_claim(a->b, &r), -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_aux_pause(a->b), 0);
	KUNIT_EXPECT_EQ(test, pmuk_aux_claim(a->b, &r), -EBUSY);
	pmuk_test_aux_finish(a, &h, 50);

	KUNIT_ASSERT_EQ(test, pmuk_aux_claim(a->b, &r), 0);
	KUNIT_EXPECT_EQ(test, pmuk_aux_resume(a->b), -EBUSY);
	KUNIT_EXPECT_FALSE(test, pmuk_test_aux_begin(a, &other));
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).discarded, 1);
	KUNIT_EXPECT_TRUE(test, pmuk_aux_peek(&r, &span));
	KUNIT_EXPECT_EQ(test, span.size, 50);
	pmuk_aux_release(&r);
	KUNIT_EXPECT_FALSE(test, pmuk_test_aux_begin(a, &other));
	KUNIT_EXPECT_EQ(test, pmuk_aux_resume(a->b), 0);
	KUNIT_EXPECT_EQ(test, pmuk_aux_claim(a->b, &r), -EBUSY);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_begin(a, &other));
	pmuk_test_aux_end(&other, 0);
}

/* A part of a snapshot is given back, and the next one begins behind it. */
static void snapshot_goes_on_behind_what_was_given_back(struct kunit *test)
{
	struct pmuk_test_aux *a = new_overwriting(test, 1);
	struct pmuk_aux_reader r;
	struct pmuk_aux_span span;

	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, a->size));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 1000));
	KUNIT_EXPECT_EQ(test, pmuk_aux_pause(a->b), 0);
	KUNIT_ASSERT_EQ(test, pmuk_aux_claim(a->b, &r), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_aux_peek(&r, &span));
	KUNIT_EXPECT_EQ(test, span.head, 1000);
	KUNIT_EXPECT_EQ(test, span.size, a->size);
	pmuk_aux_consume(&r, 500);
	pmuk_aux_release(&r);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).tail, 1500);
	a->next = 1500;
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), a->size - 500);
}

/* ---- pause ---- */

static void paused_area_refuses_what_begins(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct pmuk_aux_handle h, other;
	unsigned int i;

	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, &h));
	KUNIT_EXPECT_EQ(test, pmuk_aux_pause(a->b), 0);
	KUNIT_EXPECT_EQ(test, pmuk_aux_pause(a->b), 0);
	pmuk_test_aux_finish(a, &h, 50);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told(a, 0, 50, 0));
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_FALSE(test, pmuk_test_aux_begin(a, &other));
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).discarded, 3);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).nested, 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 50);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_other(a, 16));

	KUNIT_EXPECT_EQ(test, pmuk_aux_resume(a->b), 0);
	KUNIT_EXPECT_EQ(test, pmuk_aux_resume(a->b), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 50));
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 50);
}

/* Where nothing overwrites, who reads is not in the way. */
static void resume_goes_by_no_reader(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct pmuk_aux_reader r;

	KUNIT_EXPECT_EQ(test, pmuk_aux_pause(a->b), 0);
	KUNIT_ASSERT_EQ(test, pmuk_aux_claim(a->b, &r), 0);
	KUNIT_EXPECT_EQ(test, pmuk_aux_resume(a->b), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 50));
	pmuk_aux_release(&r);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 50);
}

/* ---- hostile tails ---- */

static struct perf_event_mmap_page *user_page(struct pmuk_test_aux *a)
{
	return (struct perf_event_mmap_page *)pmuk_buffer_control(a->b);
}

static struct pmuk_test_aux *new_user_aux(struct kunit *test, u32 nr_pages)
{
	return pmuk_test_aux(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .flags = PMUK_BUFFER_USER_TAIL, .aux.nr_pages = nr_pages });
}

/* Either what is left up to it, or nothing; and what is taken is all of that. */
static void expect_room_for(struct pmuk_test_aux *a, u64 tail)
{
	struct kunit *test = a->test;
	u64 head = pmuk_test_aux_stat(a).head;
	bool sane = tail <= head && head - tail < a->size;
	struct pmuk_aux_handle h;

	WRITE_ONCE(user_page(a)->aux_tail, tail);
	KUNIT_ASSERT_EQ(test, pmuk_test_aux_begin(a, &h), sane);
	if (!sane)
		return;
	KUNIT_ASSERT_EQ(test, h.head, head);
	KUNIT_ASSERT_EQ(test, h.size, a->size - (head - tail));
	pmuk_test_aux_finish(a, &h, h.size);
	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_has(a, head, h.size));
}

static void hostile_tail_gives_no_room(struct kunit *test)
{
	struct pmuk_test_aux *a = new_user_aux(test, 2);
	const u64 far[] = { 0, 1, S64_MAX, 1ULL << 63, U64_MAX, U64_MAX - a->size, U32_MAX };
	const s64 near[] = { 1, -1, 8, -8, PAGE_SIZE, -PAGE_SIZE, a->size, -a->size,
			     a->size + 1, -a->size - 1, -a->size + 1, 0 };
	unsigned int i, j;

	for (i = 0; i < 200; i++) {
		expect_room_for(a, far[i % ARRAY_SIZE(far)]);
		for (j = 0; j < ARRAY_SIZE(near); j++)
			expect_room_for(a, pmuk_test_aux_stat(a).head + near[j]);
	}
	KUNIT_EXPECT_GT(test, pmuk_test_aux_stat(a).head, 100 * a->size);
	KUNIT_EXPECT_GT(test, pmuk_test_aux_stat(a).full, 1000);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).truncated, 0);
}

static void scribble(struct perf_event_mmap_page *page, u64 value)
{
	page->aux_head = value;
	page->aux_tail = value;
	page->aux_offset = value;
	page->aux_size = value;
}

/* Whatever is in the page, it decides on nothing but the room. */
static void hostile_page_moves_no_head(struct kunit *test)
{
	struct pmuk_test_aux *a = new_user_aux(test, 1);
	struct pmuk_aux_handle h;
	unsigned int i;
	u64 head = 0;

	for (i = 0; i < 300; i++) {
		scribble(user_page(a), i);
		user_page(a)->aux_tail = head;
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, &h));
		KUNIT_ASSERT_EQ(test, h.head, head);
		KUNIT_ASSERT_EQ(test, h.size, a->size);
		scribble(user_page(a), ~0ULL - i);
		pmuk_test_aux_finish(a, &h, 99);
		head += 99;
		KUNIT_ASSERT_EQ(test, user_page(a)->aux_head, head);
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_has(a, head - 99, 99));
	}
}

static void user_area_has_no_kernel_reader(struct kunit *test)
{
	struct pmuk_test_aux *a = new_user_aux(test, 1);
	struct pmuk_aux_reader r;

	KUNIT_EXPECT_EQ(test, pmuk_aux_claim(a->b, &r), -EPERM);
	KUNIT_EXPECT_EQ(test, pmuk_aux_revoke(a->b), 0);
	KUNIT_EXPECT_EQ(test, pmuk_aux_claim(a->b, &r), -EPERM);
}

/* ---- readers ---- */

static void one_reader_at_a_time(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct pmuk_aux_reader r, other;

	KUNIT_ASSERT_EQ(test, pmuk_aux_claim(a->b, &r), 0);
	KUNIT_EXPECT_EQ(test, pmuk_aux_claim(a->b, &other), -EBUSY);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 10));
	KUNIT_EXPECT_EQ(test, pmuk_aux_claim(a->b, &other), -EBUSY);
	pmuk_aux_release(&r);
	KUNIT_ASSERT_EQ(test, pmuk_aux_claim(a->b, &other), 0);
	pmuk_aux_release(&other);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 10);
}

/* What comes later is not given back by who has not seen it. */
static void no_more_is_given_back_than_was_shown(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct pmuk_aux_reader r;
	struct pmuk_aux_span span;

	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 100));
	KUNIT_ASSERT_EQ(test, pmuk_aux_claim(a->b, &r), 0);
	pmuk_aux_consume(&r, 100);	/* nothing was peeked at */
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).tail, 0);
	KUNIT_EXPECT_TRUE(test, pmuk_aux_peek(&r, &span));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 50));
	pmuk_aux_consume(&r, U64_MAX);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).tail, 100);
	pmuk_aux_consume(&r, 1);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).tail, 100);
	KUNIT_EXPECT_TRUE(test, pmuk_aux_peek(&r, &span));
	KUNIT_EXPECT_EQ(test, span.head, 100);
	KUNIT_EXPECT_EQ(test, span.size, 50);
	pmuk_aux_consume(&r, 20);
	pmuk_aux_consume(&r, 20);
	pmuk_aux_release(&r);
	a->next = 140;
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 10);
}

/* As long as it was not given back, in one row, and at the same place. */
static void peeking_again_shows_more(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct pmuk_aux_reader r;
	struct pmuk_aux_span span;
	unsigned int i;

	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 4000));
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 4000);
	KUNIT_ASSERT_EQ(test, pmuk_aux_claim(a->b, &r), 0);
	KUNIT_EXPECT_FALSE(test, pmuk_aux_peek(&r, &span));
	KUNIT_EXPECT_EQ(test, span.size, 0);
	for (i = 1; i <= 100; i++) {
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_write(a, 40));
		KUNIT_ASSERT_TRUE(test, pmuk_aux_peek(&r, &span));
		KUNIT_ASSERT_EQ(test, span.head, 4000);
		KUNIT_ASSERT_EQ(test, span.size, 40 * i);
		KUNIT_ASSERT_PTR_EQ(test, span.data, (const void *)a->data + 4000);
	}
	pmuk_aux_release(&r);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 4000);
}

/* Until something is given back: those of what has come after the peek are not. */
static void flags_stay_with_what_was_shown(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct pmuk_aux_reader r;
	struct pmuk_aux_span span;

	KUNIT_ASSERT_EQ(test, pmuk_aux_claim(a->b, &r), 0);
	write_flagged(a, 10, PERF_AUX_FLAG_COLLISION);
	KUNIT_EXPECT_TRUE(test, pmuk_aux_peek(&r, &span));
	KUNIT_EXPECT_EQ(test, span.flags, PERF_AUX_FLAG_COLLISION);
	KUNIT_EXPECT_TRUE(test, pmuk_aux_peek(&r, &span));
	KUNIT_EXPECT_EQ(test, span.flags, PERF_AUX_FLAG_COLLISION);
	write_flagged(a, 10, PERF_AUX_FLAG_PARTIAL);
	pmuk_aux_consume(&r, 10);
	KUNIT_EXPECT_TRUE(test, pmuk_aux_peek(&r, &span));
	KUNIT_EXPECT_EQ(test, span.flags, PERF_AUX_FLAG_PARTIAL);
	pmuk_aux_release(&r);

	a->next = 10;
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 10);
	KUNIT_EXPECT_EQ(test, a->flags, PERF_AUX_FLAG_PARTIAL);
}

/* It does not even say so. */
static void dead_reader_leaves_all_to_the_next(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct pmuk_aux_reader dead, r;
	struct pmuk_aux_span span;

	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 100));
	KUNIT_ASSERT_EQ(test, pmuk_aux_claim(a->b, &dead), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_aux_peek(&dead, &span));
	pmuk_aux_consume(&dead, 30);
	write_flagged(a, 100, PERF_AUX_FLAG_COLLISION);
	KUNIT_EXPECT_TRUE(test, pmuk_aux_peek(&dead, &span));
	KUNIT_EXPECT_EQ(test, pmuk_aux_claim(a->b, &r), -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_aux_revoke(a->b), 0);
	KUNIT_EXPECT_EQ(test, pmuk_aux_revoke(a->b), 0);

	a->next = 30;
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 170);
	KUNIT_EXPECT_EQ(test, a->flags, PERF_AUX_FLAG_COLLISION);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 100));
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 100);
}

/* ---- wakeups ---- */

/* The wakeup is an interrupt; give it its time. */
static unsigned int nr_completions(struct pmuk_test_aux *a)
{
	unsigned int n = 0;

	while (wait_for_completion_timeout(&a->more, msecs_to_jiffies(20)))
		n++;
	return n;
}

/* At each multiple of @mark, by parts of @part bytes. */
static void expect_mark(struct kunit *test, u32 nr_pages, u32 asked, u64 mark, u64 part)
{
	struct pmuk_test_aux *a = pmuk_test_aux(test, &(struct pmuk_buffer_attr){
		.aux = { .nr_pages = nr_pages, .watermark = asked } });
	unsigned int i, woken = 0;

	for (i = 1; i <= 200; i++) {
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_write(a, part));
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_stat(a).wakeups, i * part / mark);
		for (; woken < i * part / mark; woken++)
			KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&a->more, 10 * HZ), 0);
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_drain(a), part);
	}
	KUNIT_EXPECT_EQ(test, nr_completions(a), 0);
}

static void watermark_in_bytes(struct kunit *test)
{
	expect_mark(test, 1, 1000, 1000, 40);
	expect_mark(test, 1, 1, 1, 1);
	expect_mark(test, 1, PAGE_SIZE / 2, PAGE_SIZE / 2, 100);
}

static void watermark_is_half_by_default(struct kunit *test)
{
	expect_mark(test, 1, 0, PAGE_SIZE / 2, 100);
	expect_mark(test, 4, 0, 2 * PAGE_SIZE, 3000);
}

static void watermark_is_at_most_half(struct kunit *test)
{
	expect_mark(test, 1, PAGE_SIZE / 2 + 1, PAGE_SIZE / 2, 100);
	expect_mark(test, 4, U32_MAX, 2 * PAGE_SIZE, 3000);
}

static void watermarks_passed_at_once_wake_once(struct kunit *test)
{
	struct pmuk_test_aux *a = pmuk_test_aux(test, &(struct pmuk_buffer_attr){
		.aux = { .nr_pages = 1, .watermark = 100 } });
	unsigned int i;

	for (i = 1; i <= 100; i++) {
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_write(a, 350));
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_stat(a).wakeups, i);
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_drain(a), 350);
	}
}

static void skipping_passes_watermarks(struct kunit *test)
{
	struct pmuk_test_aux *a = pmuk_test_aux(test, &(struct pmuk_buffer_attr){
		.aux = { .nr_pages = 1, .watermark = 100 } });
	struct pmuk_aux_handle h;

	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, &h));
	KUNIT_EXPECT_EQ(test, skip(&h, 99), 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).wakeups, 0);
	KUNIT_EXPECT_EQ(test, skip(&h, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).wakeups, 1);
	pmuk_test_aux_end(&h, 0);
	KUNIT_EXPECT_EQ(test, nr_completions(a), 1);
}

/* A reader may wait for more than there is room for. */
static void full_area_wakes_once(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct pmuk_aux_reader r;
	struct pmuk_aux_span span;
	u64 i, wakeups;

	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, a->size));
	wakeups = pmuk_test_aux_stat(a).wakeups;
	KUNIT_ASSERT_EQ(test, pmuk_aux_claim(a->b, &r), 0);
	for (i = 1; i <= 10; i++) {
		nr_completions(a);
		KUNIT_EXPECT_FALSE(test, pmuk_test_aux_write(a, 1));
		KUNIT_EXPECT_FALSE(test, pmuk_test_aux_write(a, 1));
		KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).full, 2 * i);
		KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).wakeups, wakeups + i);
		KUNIT_EXPECT_EQ(test, nr_completions(a), 1);
		KUNIT_EXPECT_TRUE(test, pmuk_aux_peek(&r, &span));
		pmuk_aux_consume(&r, 1);
		KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 1));
	}
	pmuk_aux_release(&r);
}

/* ---- what is refused ---- */

static void expect_refused(struct kunit *test, const struct pmuk_buffer_attr *attr, int cpu,
			   const char *what)
{
	struct pmuk_buffer *b = pmuk_buffer_create(attr, cpu);

	KUNIT_EXPECT_EQ_MSG(test, PTR_ERR_OR_ZERO(b), -EINVAL, "%s", what);
	pmuk_buffer_destroy(b);
}

static const struct pmuk_aux_ops no_setup = { .free = pmuk_test_free };

static void create_refuses_bad_attributes(struct kunit *test)
{
	static const struct {
		struct pmuk_aux_attr aux;
		const char *what;
	} bad[] = {
		{ { .order = 1 }, "order without pages" },
		{ { .prefer = true }, "prefer without pages" },
		{ { .overwrite = true }, "overwrite without pages" },
		{ { .watermark = 1 }, "watermark without pages" },
		{ { .ops = &pmuk_test_ops }, "ops without pages" },
		{ { .data = (void *)bad }, "data without pages" },
		{ { .nr_pages = 3 }, "nr_pages" },
		{ { .nr_pages = 1 << 20 }, "nr_pages" },
		{ { .nr_pages = U32_MAX }, "nr_pages" },
		{ { .nr_pages = 1, .order = 1 }, "order" },
		{ { .nr_pages = 8, .order = 4, .prefer = true }, "order" },
		{ { .nr_pages = 1 << 19, .order = MAX_PAGE_ORDER + 1 }, "order" },
		{ { .nr_pages = 1 << 19, .order = U8_MAX, .prefer = true }, "order" },
		{ { .nr_pages = 1, .ops = &no_setup }, "ops without setup" },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct pmuk_buffer_attr attr = { .nr_pages = 1, .aux = bad[i].aux };

		expect_refused(test, &attr, 0, bad[i].what);
	}
}

static void create_refuses_what_does_not_go_together(struct kunit *test)
{
	const struct pmuk_buffer_attr no_cpu = { .aux.nr_pages = 1 };
	const struct pmuk_buffer_attr two_tails = {
		.nr_pages = 1,
		.flags = PMUK_BUFFER_USER_TAIL,
		.aux = { .nr_pages = 1, .overwrite = true },
	};

	expect_refused(test, &no_cpu, -1, "an area and no CPU");
	expect_refused(test, &two_tails, 0, "overwritten with a tail");
}

static void create_takes_good_attributes(struct kunit *test)
{
	static const struct pmuk_aux_attr good[] = {
		{ .nr_pages = 1 }, { .nr_pages = 64 },
		{ .nr_pages = 64, .order = 6 }, { .nr_pages = 64, .order = 3, .prefer = true },
		{ .nr_pages = 2, .overwrite = true, .watermark = U32_MAX },
		{ .nr_pages = 2, .data = (void *)good },
	};
	unsigned int i;
	size_t size;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		const struct pmuk_buffer_attr attr = { .aux = good[i] };
		struct pmuk_buffer *b = pmuk_buffer_create(&attr, 0);

		KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(b), 0);
		KUNIT_EXPECT_NOT_NULL(test, pmuk_aux_data(b, &size));
		KUNIT_EXPECT_EQ(test, size, good[i].nr_pages * PAGE_SIZE);
		pmuk_buffer_destroy(b);
		KUNIT_EXPECT_EQ(test, pmuk_nr_buffers(), 0);
	}
}

static void expect_errno(struct kunit *test, struct pmuk_buffer *b, int wanted)
{
	struct pmuk_aux_reader r;
	struct pmuk_aux_stat stat;
	size_t size = 1;

	KUNIT_EXPECT_NULL(test, pmuk_aux_data(b, &size));
	KUNIT_EXPECT_EQ(test, size, 0);
	KUNIT_EXPECT_NULL(test, pmuk_aux_data(b, NULL));
	KUNIT_EXPECT_EQ(test, pmuk_aux_stat(b, &stat), wanted);
	KUNIT_EXPECT_EQ(test, pmuk_aux_stat(b, NULL), wanted);
	KUNIT_EXPECT_EQ(test, pmuk_aux_pause(b), wanted);
	KUNIT_EXPECT_EQ(test, pmuk_aux_resume(b), wanted);
	KUNIT_EXPECT_EQ(test, pmuk_aux_claim(b, &r), wanted);
	KUNIT_EXPECT_EQ(test, pmuk_aux_revoke(b), wanted);
}

/* What was begun nowhere has no end, and does no harm. */
static void expect_nothing_begins(struct kunit *test, struct pmuk_buffer *b)
{
	struct pmuk_aux_handle h;

	guard(preempt)();
	memset(&h, 0xff, sizeof(h));
	KUNIT_EXPECT_NULL(test, pmuk_aux_output_begin(&h, b));
	KUNIT_EXPECT_NULL(test, pmuk_get_aux(&h));
	KUNIT_EXPECT_EQ(test, pmuk_aux_output_skip(&h, 0), -EINVAL);
	pmuk_aux_output_flag(&h, PERF_AUX_FLAG_TRUNCATED);
	pmuk_aux_output_end(&h, 1);
	pmuk_aux_output_lose(b, 1);
}

static void calls_refuse_no_buffer(struct kunit *test)
{
	struct pmuk_buffer *none[] = { NULL, ERR_PTR(-ENOMEM) };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(none); i++) {
		expect_errno(test, none[i], -EINVAL);
		expect_nothing_begins(test, none[i]);
	}
}

static void calls_refuse_no_area(struct kunit *test)
{
	const struct pmuk_buffer_attr attr = { .nr_pages = 1 };
	struct pmuk_buffer *b = pmuk_buffer_create(&attr, pmuk_test_pin_first(test));
	struct pmuk_buffer_stat stat;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, b);
	expect_errno(test, b, -ENOENT);
	expect_nothing_begins(test, b);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_stat(b, &stat), 0);
	KUNIT_EXPECT_EQ(test, stat.head, 0);
	pmuk_buffer_destroy(b);
}

static void calls_refuse_no_answer(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct pmuk_aux_reader r;

	KUNIT_EXPECT_EQ(test, pmuk_aux_stat(a->b, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_aux_stat(a->b, ERR_PTR(-ENOMEM)), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_aux_claim(a->b, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_aux_claim(a->b, ERR_PTR(-ENOMEM)), -EINVAL);
	KUNIT_ASSERT_EQ(test, pmuk_aux_claim(a->b, &r), 0);
	pmuk_aux_release(&r);
}

/* ---- the producer's callbacks ---- */

static void callbacks_are_called_once(struct kunit *test)
{
	struct pmuk_test_producer *p = pmuk_test_producer(test);
	struct pmuk_test_aux *a = pmuk_test_aux(test, &(struct pmuk_buffer_attr){
		.aux = { .nr_pages = 4, .overwrite = true, .ops = &pmuk_test_ops, .data = p } });
	struct pmuk_aux_handle h;

	KUNIT_EXPECT_EQ(test, p->setups, 1);
	KUNIT_EXPECT_EQ(test, p->cpu, raw_smp_processor_id());
	KUNIT_EXPECT_EQ(test, p->nr_pages, 4);
	KUNIT_EXPECT_TRUE(test, p->overwrite);
	KUNIT_EXPECT_EQ(test, p->pieces, 4);
	scoped_guard(preempt)
		KUNIT_EXPECT_PTR_EQ(test, pmuk_aux_output_begin(&h, a->b), (void *)p);
	KUNIT_EXPECT_PTR_EQ(test, pmuk_get_aux(&h), (void *)p);
	KUNIT_EXPECT_PTR_EQ(test, h.data, (void *)a->data);
	pmuk_test_aux_end(&h, 0);

	KUNIT_EXPECT_EQ(test, p->frees, 0);
	kunit_release_action(test, pmuk_test_put_aux, a);
	KUNIT_EXPECT_EQ(test, p->setups, 1);
	KUNIT_EXPECT_EQ(test, p->frees, 1);
}

/* What hardware writes by their addresses is what is read in a row, twice. */
static void setup_gets_the_pages_of_the_area(struct kunit *test)
{
	struct pmuk_test_producer *p = pmuk_test_producer(test);
	struct pmuk_test_aux *a = pmuk_test_aux(test, &(struct pmuk_buffer_attr){
		.aux = { .nr_pages = 8, .order = 1, .ops = &pmuk_test_ops, .data = p } });
	unsigned int i;

	KUNIT_EXPECT_FALSE(test, p->overwrite);
	for (i = 0; i < 8; i++)
		pmuk_test_aux_fill(a, p->pages[i], i * PAGE_SIZE, PAGE_SIZE);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_is(a, a->data, 0, a->size));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_is(a, a->data + a->size, 0, a->size));
}

static void expect_pieces(struct kunit *test, u32 nr_pages, u8 order, bool prefer)
{
	struct pmuk_test_producer *p = pmuk_test_producer(test);
	const struct pmuk_buffer_attr attr = { .aux = {
		.nr_pages = nr_pages, .order = order, .prefer = prefer,
		.ops = &pmuk_test_ops, .data = p } };
	struct pmuk_buffer *b = pmuk_buffer_create(&attr, 0);

	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(b), 0);
	KUNIT_EXPECT_EQ(test, p->order, order);
	if (!prefer)
		KUNIT_EXPECT_EQ(test, p->pieces, nr_pages >> order);
	pmuk_buffer_destroy(b);
	KUNIT_EXPECT_EQ(test, p->frees, 1);
}

static void pieces_are_contiguous(struct kunit *test)
{
	unsigned int order;

	for (order = 0; order <= 6; order++) {
		expect_pieces(test, 64, order, false);
		expect_pieces(test, 64, order, true);
	}
	expect_pieces(test, 1, 0, false);
	expect_pieces(test, 2, 1, false);
}

static void setup_may_fail(struct kunit *test)
{
	void *answers[] = { ERR_PTR(-EIO), ERR_PTR(-EBUSY), ERR_PTR(-ENODEV) };
	struct pmuk_test_producer *p = pmuk_test_producer(test);
	const struct pmuk_buffer_attr attr = { .nr_pages = 1, .aux = {
		.nr_pages = 4, .order = 1, .ops = &pmuk_test_ops, .data = p } };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(answers); i++) {
		p->answer = answers[i];
		KUNIT_EXPECT_PTR_EQ(test, (void *)pmuk_buffer_create(&attr, 0), answers[i]);
		KUNIT_EXPECT_EQ(test, p->setups, i + 1);
		KUNIT_EXPECT_EQ(test, p->frees, 0);
		KUNIT_EXPECT_EQ(test, pmuk_nr_buffers(), 0);
	}
}

static void *setup_nothing(void *data, int cpu, void **pages, unsigned int nr_pages,
			   bool overwrite)
{
	return NULL;
}

static void setup_of_nothing_is_no_memory(struct kunit *test)
{
	static const struct pmuk_aux_ops ops = { .setup = setup_nothing, .free = pmuk_test_free };
	const struct pmuk_buffer_attr attr = { .aux = { .nr_pages = 1, .ops = &ops } };
	struct pmuk_buffer *b = pmuk_buffer_create(&attr, 0);

	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(b), -ENOMEM);
	pmuk_buffer_destroy(b);
}

/* A module that is loaded, or is going, as far as its references are concerned. */
static struct module producers_module;

static const struct pmuk_aux_ops ops_of_module = {
	.setup = pmuk_test_setup,
	.free = pmuk_test_free,
	.owner = &producers_module,
};

/*
 * An area that a producer of that module is writing, and whose buffer is the caller's to destroy.
 */
static struct pmuk_test_aux *new_open(struct kunit *test, struct pmuk_test_producer *p,
				      struct pmuk_aux_handle *h, enum module_state state)
{
	struct pmuk_test_aux *a = pmuk_test_aux(test, &(struct pmuk_buffer_attr){
		.aux = { .nr_pages = 1, .ops = &ops_of_module, .data = p } });

	producers_module.state = state;
	atomic_set(&producers_module.refcnt, 1);
	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, h));
	return a;
}

/* Only from the destruction on: a module may destroy its buffers when it is unloaded. */
static void free_keeps_its_module(struct kunit *test)
{
	struct pmuk_test_producer *p = pmuk_test_producer(test);
	struct pmuk_aux_handle h;
	struct pmuk_test_aux *a = new_open(test, p, &h, MODULE_STATE_LIVE);

	KUNIT_EXPECT_EQ(test, module_refcount(&producers_module), 0);
	pmuk_buffer_destroy(a->b);
	a->b = NULL;
	KUNIT_EXPECT_EQ(test, p->frees, 0);
	KUNIT_EXPECT_EQ(test, module_refcount(&producers_module), 1);
	pmuk_test_aux_end(&h, 0);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(!module_refcount(&producers_module)));
	KUNIT_EXPECT_EQ(test, p->frees, 1);
}

struct late_end {
	struct delayed_work work;
	struct pmuk_aux_handle h;
};

static void end_late(struct work_struct *work)
{
	pmuk_test_aux_end(&container_of(work, struct late_end, work.work)->h, 0);
}

/* It cannot be kept, and is there until its exit function has returned. */
static void going_module_waits_for_free(struct kunit *test)
{
	struct pmuk_test_producer *p = pmuk_test_producer(test);
	struct late_end *late = pmuk_test_zalloc(test, sizeof(*late));
	struct pmuk_test_aux *a = new_open(test, p, &late->h, MODULE_STATE_GOING);

	INIT_DELAYED_WORK(&late->work, end_late);
	schedule_delayed_work_on(raw_smp_processor_id(), &late->work, HZ / 50);
	pmuk_buffer_destroy(a->b);
	a->b = NULL;
	KUNIT_EXPECT_EQ(test, p->frees, 1);
	KUNIT_EXPECT_EQ(test, module_refcount(&producers_module), 0);
	flush_delayed_work(&late->work);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(p->frees == 1));
}

/* Nobody writes what user space has mapped, so its producer need not stay for it. */
static void free_waits_for_no_map(struct kunit *test)
{
	struct pmuk_test_producer *p = pmuk_test_producer(test);
	struct pmuk_test_aux *a = pmuk_test_aux(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .aux.nr_pages = 1, .aux.ops = &pmuk_test_ops, .aux.data = p });
	unsigned long addr = pmuk_test_map(test, a->b, 2, 1, PROT_READ);
	u64 word;

	pmuk_test_aux_write(a, 16);
	pmuk_buffer_destroy(a->b);
	a->b = NULL;
	KUNIT_EXPECT_EQ(test, p->frees, 1);
	KUNIT_EXPECT_EQ(test, get_user(word, (u64 __user *)addr), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_is(a, &word, 0, sizeof(word)));
	pmuk_test_unmap(test, addr, 1);
	KUNIT_EXPECT_EQ(test, p->frees, 1);
}

static void producer_needs_no_free(struct kunit *test)
{
	static const struct pmuk_aux_ops ops = { .setup = pmuk_test_setup };
	struct pmuk_test_producer *p = pmuk_test_producer(test);
	struct pmuk_test_aux *a = pmuk_test_aux(test, &(struct pmuk_buffer_attr){
		.aux = { .nr_pages = 1, .ops = &ops, .data = p } });

	kunit_release_action(test, pmuk_test_put_aux, a);
	KUNIT_EXPECT_EQ(test, p->setups, 1);
	KUNIT_EXPECT_EQ(test, pmuk_nr_buffers(), 0);
}

/* ---- the end ---- */

static bool all_is_gone(void)
{
	unsigned long end = jiffies + 10 * HZ;

	while (pmuk_nr_buffers() && time_before(jiffies, end))
		usleep_range(50, 100);
	return !pmuk_nr_buffers();
}

static struct pmuk_test_aux *new_mortal(struct kunit *test, struct pmuk_test_producer **producer)
{
	struct pmuk_test_producer *p = pmuk_test_producer(test);

	*producer = p;
	return pmuk_test_aux(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .aux.nr_pages = 2, .aux.ops = &pmuk_test_ops, .aux.data = p });
}

static void destroy(struct pmuk_test_aux *a)
{
	struct pmuk_buffer *b = a->b;

	a->b = NULL;
	pmuk_buffer_destroy(b);
}

/* Memory and producer stay until the end, which then wakes nobody, and lets go of all. */
static void destroy_leaves_the_area_to_its_writer(struct kunit *test)
{
	struct pmuk_test_producer *p;
	struct pmuk_test_aux *a = new_mortal(test, &p);
	struct pmuk_aux_handle h;
	unsigned int woken;

	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, &h));
	destroy(a);
	woken = READ_ONCE(a->more.done);
	KUNIT_ASSERT_EQ(test, p->frees, 0);
	KUNIT_EXPECT_EQ(test, pmuk_nr_buffers(), 1);
	KUNIT_EXPECT_PTR_EQ(test, pmuk_get_aux(&h), (void *)p);
	KUNIT_EXPECT_EQ(test, skip(&h, 10), 0);
	pmuk_aux_output_flag(&h, PERF_AUX_FLAG_COLLISION);
	pmuk_test_aux_fill(a, h.data, h.head, h.size);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_has(a, 10, a->size - 10));
	KUNIT_EXPECT_EQ(test, p->frees, 0);

	pmuk_test_aux_end(&h, U64_MAX);
	KUNIT_EXPECT_TRUE(test, all_is_gone());
	KUNIT_EXPECT_EQ(test, p->frees, 1);
	pmuk_test_aux_end(&h, 1);
	KUNIT_EXPECT_EQ(test, skip(&h, 1), -EINVAL);
	usleep_range(5000, 6000);
	KUNIT_EXPECT_EQ(test, READ_ONCE(a->more.done), woken);
	KUNIT_EXPECT_EQ(test, p->frees, 1);
}

static void destroy_of_a_closed_area_leaves_nothing(struct kunit *test)
{
	struct pmuk_test_producer *p;
	struct pmuk_test_aux *a = new_mortal(test, &p);

	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, a->size));
	KUNIT_EXPECT_FALSE(test, pmuk_test_aux_write(a, 1));
	destroy(a);
	KUNIT_EXPECT_EQ(test, p->frees, 1);
	KUNIT_EXPECT_EQ(test, pmuk_nr_buffers(), 0);
}

/* A counter that has the buffer, too, is there for longer: its producer is not needed any more. */
static void destroyed_area_refuses_what_begins(struct kunit *test)
{
	struct pmuk_test_producer *p;
	struct pmuk_test_aux *a = new_mortal(test, &p);
	struct pmuk_buffer *b = a->b;
	struct pmuk_counter *c = pmuk_test_counter(test, &(struct pmuk_attr){
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .buffer = b,
		}, raw_smp_processor_id(), NULL);
	struct pmuk_aux_handle h;
	struct pmuk_aux_stat stat;

	destroy(a);
	guard(preempt)();
	KUNIT_EXPECT_NULL(test, pmuk_aux_output_begin(&h, b));
	KUNIT_EXPECT_EQ(test, pmuk_aux_stat(b, &stat), 0);
	KUNIT_EXPECT_EQ(test, stat.discarded, 1);
	KUNIT_EXPECT_EQ(test, pmuk_aux_resume(b), 0);
	KUNIT_EXPECT_NULL(test, pmuk_aux_output_begin(&h, b));
	KUNIT_EXPECT_NOT_NULL(test, c);
}

/* A writer on another CPU, whose end comes while somebody destroys. */
struct late {
	struct pmuk_test_aux *a;
	bool begun;
	u64 ns;
};

static int ends_late(void *data)
{
	struct late *late = data;
	struct pmuk_aux_handle h;

	if (!pmuk_test_aux_begin(late->a, &h))
		return -EBUSY;
	smp_store_release(&late->begun, true);	/* pairs with ends_and_destroys_meet() */
	pmuk_test_spin(late->ns);
	pmuk_test_aux_finish(late->a, &h, h.size);
	return 0;
}

static void ends_and_destroys_meet(struct kunit *test)
{
	int other = pmuk_test_other_cpu(test, pmuk_test_pin_first(test));
	struct late *late = pmuk_test_zalloc(test, sizeof(*late));
	struct pmuk_test_producer *p;
	struct task_struct *task;
	unsigned int i;

	for (i = 0; i < 50; i++) {
		late->a = new_mortal(test, &p);
		late->begun = false;
		late->ns = i * 500;
		task = kthread_create(ends_late, late, "pmuk_late");
		KUNIT_ASSERT_FALSE(test, IS_ERR(task));
		kthread_bind(task, other);
		get_task_struct(task);
		wake_up_process(task);
		/* pairs with ends_late() */
		while (!smp_load_acquire(&late->begun))
			cpu_relax();
		destroy(late->a);
		KUNIT_EXPECT_EQ(test, kthread_stop(task), 0);
		put_task_struct(task);
		KUNIT_ASSERT_TRUE(test, all_is_gone());
		KUNIT_ASSERT_EQ(test, p->frees, 1);
	}
}

/* ---- two CPUs ---- */

#define PASSED	(16ULL << 20)		/* bytes that go from one to the other */

struct pair {
	struct pmuk_test_aux *a;
	struct rnd_state rnd;
	struct pmuk_aux_reader r;	/* the consumer's */
	struct pmuk_reader records;	/* the same */
	unsigned int wrong;
	bool done;
};

static bool pair_goes_on(struct pair *pair)
{
	cond_resched();
	return READ_ONCE(pair->a->next) < PASSED && !kthread_should_stop();
}

static void pair_wait(struct pair *pair)
{
	WRITE_ONCE(pair->done, true);
	while (!kthread_should_stop())
		usleep_range(100, 200);
}

/* Some of what there is, again and again, whoever comes next. */
static int consume_spans(void *data)
{
	struct pair *pair = data;
	struct pmuk_test_aux *a = pair->a;
	struct pmuk_aux_span span;

	while (pair_goes_on(pair)) {
		pair->wrong += pmuk_aux_claim(a->b, &pair->r) != 0;
		if (pmuk_aux_peek(&pair->r, &span)) {
			span.size -= prandom_u32_state(&pair->rnd) % span.size;
			pmuk_test_aux_look(a, &span);
			pmuk_aux_consume(&pair->r, span.size);
		}
		pmuk_aux_release(&pair->r);
	}
	pair_wait(pair);
	return 0;
}

/* Of what a record tells, all is there. */
static void consume_told(struct pair *pair, const struct pmuk_test_aux_record *rec)
{
	struct pmuk_test_aux *a = pair->a;
	struct pmuk_aux_span span;

	if (rec->header.type != PERF_RECORD_AUX)
		return;
	pair->wrong += rec->offset != a->next || !pmuk_test_aux_has(a, rec->offset, rec->size);
	pair->wrong += !pmuk_aux_peek(&pair->r, &span) || span.size < rec->size;
	pmuk_aux_consume(&pair->r, rec->size);
	WRITE_ONCE(a->next, a->next + rec->size);
}

static int consume_records(void *data)
{
	struct pair *pair = data;
	const struct perf_event_header *rec;

	pair->wrong += pmuk_buffer_claim(pair->a->b, &pair->records) != 0;
	pair->wrong += pmuk_aux_claim(pair->a->b, &pair->r) != 0;
	while (pair_goes_on(pair)) {
		rec = pmuk_buffer_next(&pair->records);
		if (rec)
			consume_told(pair, (const struct pmuk_test_aux_record *)rec);
	}
	pmuk_aux_release(&pair->r);
	pmuk_buffer_release(&pair->records);
	pair_wait(pair);
	return 0;
}

/* As user space does: by head and tail of the control page. */
static int consume_as_a_user(void *data)
{
	struct pair *pair = data;
	struct pmuk_test_aux *a = pair->a;
	struct perf_event_mmap_page *page = user_page(a);
	u64 head;

	while (pair_goes_on(pair)) {
		head = smp_load_acquire(&page->aux_head);	/* pairs with the producer's */
		pair->wrong += !pmuk_test_aux_has(a, a->next, head - a->next);
		smp_mb();	/* as user space has it: reads, then gives back */
		WRITE_ONCE(page->aux_tail, head);
		WRITE_ONCE(a->next, head);
	}
	pair_wait(pair);
	return 0;
}

/* Sections of any size, until all is there; and whatever was not told yet is, in the end. */
static void pair_produce(struct pair *pair)
{
	unsigned long end = jiffies + 60 * HZ;
	struct pmuk_test_aux *a = pair->a;
	struct rnd_state rnd;
	struct pmuk_aux_handle h;

	prandom_seed_state(&rnd, 8);
	while (!READ_ONCE(pair->done) && time_before(jiffies, end)) {
		if (!pmuk_test_aux_begin(a, &h)) {
			usleep_range(10, 20);
			continue;
		}
		pmuk_test_aux_finish(a, &h, min3(h.size, PASSED - h.head,
						 prandom_u32_state(&rnd) % 9000ULL));
		if (h.head == PASSED)
			usleep_range(10, 20);
	}
}

static void passes(struct kunit *test, struct pmuk_test_aux *a,
		   void (*produce)(struct pair *pair), int (*consume)(void *data), u64 bytes)
{
	int other = pmuk_test_other_cpu(test, raw_smp_processor_id());
	struct pair *pair = pmuk_test_zalloc(test, sizeof(*pair));
	struct task_struct *task;

	pair->a = a;
	prandom_seed_state(&pair->rnd, 7);
	task = kthread_create(consume, pair, "pmuk_consumer");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	kthread_bind(task, other);
	wake_up_process(task);
	produce(pair);
	kthread_stop(task);
	KUNIT_EXPECT_EQ(test, a->next, bytes);
	KUNIT_EXPECT_EQ(test, pair->wrong, 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).tail, bytes);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).truncated, 0);
}

static void other_cpu_reads_spans(struct kunit *test)
{
	passes(test, new_aux(test, 16), pair_produce, consume_spans, PASSED);
}

static void other_cpu_goes_by_records(struct kunit *test)
{
	passes(test, new_aux(test, 16), pair_produce, consume_records, PASSED);
}

static void other_cpu_reads_as_a_user(struct kunit *test)
{
	passes(test, new_user_aux(test, 16), pair_produce, consume_as_a_user, PASSED);
}

#define PARTS	200000		/* of 16 bytes; each second one is flagged */

static bool has_flagged(const struct pmuk_aux_span *span)
{
	u64 first = span->head / 16, last = (span->head + span->size - 1) / 16;

	return last > first || first % 2;
}

/* Whether there was something. */
static bool consume_flagged(struct pair *pair)
{
	struct pmuk_aux_span span;

	if (!pmuk_aux_peek(&pair->r, &span))
		return false;
	pair->wrong += has_flagged(&span) && !(span.flags & PERF_AUX_FLAG_COLLISION);
	pmuk_aux_consume(&pair->r, span.size);
	pair->a->next = span.head + span.size;
	return true;
}

/* All there is, also when it is to stop. */
static int consume_flags(void *data)
{
	struct pair *pair = data;
	bool last;

	pair->wrong += pmuk_aux_claim(pair->a->b, &pair->r) != 0;
	do {
		last = kthread_should_stop();
		cond_resched();
		cpu_relax();
	} while (consume_flagged(pair) || !last);
	pmuk_aux_release(&pair->r);
	pair_wait(pair);
	return 0;
}

static void produce_flags(struct pair *pair)
{
	unsigned long end = jiffies + 60 * HZ;
	struct pmuk_aux_handle h = {};

	while (h.head < 16 * PARTS - 16 && time_before(jiffies, end)) {
		cond_resched();
		cpu_relax();
		if (!pmuk_test_aux_begin(pair->a, &h))
			continue;
		if (h.head / 16 % 2)
			pmuk_aux_output_flag(&h, PERF_AUX_FLAG_COLLISION);
		pmuk_test_aux_end(&h, 16);
	}
}

/* However soon they are seen: who reads has them when it has the bytes that they are of. */
static void flags_come_with_their_bytes(struct kunit *test)
{
	passes(test, pmuk_test_aux(test, &(struct pmuk_buffer_attr){ .aux.nr_pages = 1 }),
	       produce_flags, consume_flags, 16 * PARTS);
}

static struct kunit_case pmuk_aux_cases[] = {
	KUNIT_CASE(fresh_area_is_empty),
	KUNIT_CASE(begin_says_what_may_be_written),
	KUNIT_CASE(what_is_written_is_read_and_told),
	KUNIT_CASE(what_is_open_is_not_read),
	KUNIT_CASE(nothing_written_is_not_told),
	KUNIT_CASE(room_is_what_was_given_back),
	KUNIT_CASE(all_of_it_fits_at_each_offset),
	KUNIT_CASE(sections_stay_apart),
	KUNIT_CASE(more_than_was_allowed_is_truncated),
	KUNIT_CASE(flags_are_told_once),
	KUNIT_CASE(flags_of_others_are_ignored),
	KUNIT_CASE(flags_are_told_without_bytes),
	KUNIT_CASE(losses_are_told_with_what_comes_next),
	KUNIT_CASE(second_writer_is_refused),
	KUNIT_CASE(records_are_written_meanwhile),
	KUNIT_CASE(skipping_aligns),
	KUNIT_CASE(skipping_refuses_what_is_not_there),
	KUNIT_CASE(full_ring_has_the_next_record_tell),
	KUNIT_CASE(empty_part_tells_of_those_before),
	KUNIT_CASE(full_ring_keeps_flags),
	KUNIT_CASE(full_ring_keeps_losses),
	KUNIT_CASE(gap_behind_what_is_untold_is_partial),
	KUNIT_CASE(no_gap_is_not_partial),
	KUNIT_CASE(paused_ring_has_the_next_record_tell),
	KUNIT_CASE(buffer_without_records_loses_none),
	KUNIT_CASE(overwriting_keeps_the_newest),
	KUNIT_CASE(overwriting_is_told),
	KUNIT_CASE(overwriting_is_paused_to_be_read),
	KUNIT_CASE(snapshot_goes_on_behind_what_was_given_back),
	KUNIT_CASE(paused_area_refuses_what_begins),
	KUNIT_CASE(resume_goes_by_no_reader),
	KUNIT_CASE(hostile_tail_gives_no_room),
	KUNIT_CASE(hostile_page_moves_no_head),
	KUNIT_CASE(user_area_has_no_kernel_reader),
	KUNIT_CASE(one_reader_at_a_time),
	KUNIT_CASE(no_more_is_given_back_than_was_shown),
	KUNIT_CASE(peeking_again_shows_more),
	KUNIT_CASE(flags_stay_with_what_was_shown),
	KUNIT_CASE(dead_reader_leaves_all_to_the_next),
	KUNIT_CASE(watermark_in_bytes),
	KUNIT_CASE(watermark_is_half_by_default),
	KUNIT_CASE(watermark_is_at_most_half),
	KUNIT_CASE(watermarks_passed_at_once_wake_once),
	KUNIT_CASE(skipping_passes_watermarks),
	KUNIT_CASE(full_area_wakes_once),
	KUNIT_CASE(create_refuses_bad_attributes),
	KUNIT_CASE(create_refuses_what_does_not_go_together),
	KUNIT_CASE(create_takes_good_attributes),
	KUNIT_CASE(calls_refuse_no_buffer),
	KUNIT_CASE(calls_refuse_no_area),
	KUNIT_CASE(calls_refuse_no_answer),
	KUNIT_CASE(callbacks_are_called_once),
	KUNIT_CASE(setup_gets_the_pages_of_the_area),
	KUNIT_CASE(pieces_are_contiguous),
	KUNIT_CASE(setup_may_fail),
	KUNIT_CASE(setup_of_nothing_is_no_memory),
	KUNIT_CASE(producer_needs_no_free),
	KUNIT_CASE(free_keeps_its_module),
	KUNIT_CASE(going_module_waits_for_free),
	KUNIT_CASE(free_waits_for_no_map),
	KUNIT_CASE(destroy_leaves_the_area_to_its_writer),
	KUNIT_CASE(destroy_of_a_closed_area_leaves_nothing),
	KUNIT_CASE(destroyed_area_refuses_what_begins),
	KUNIT_CASE_SLOW(ends_and_destroys_meet),
	KUNIT_CASE_SLOW(other_cpu_reads_spans),
	KUNIT_CASE_SLOW(other_cpu_goes_by_records),
	KUNIT_CASE_SLOW(other_cpu_reads_as_a_user),
	KUNIT_CASE_SLOW(flags_come_with_their_bytes),
	{}
};

static struct kunit_suite pmuk_aux_suite = {
	.name = "pmuk_aux",
	.init = pmuk_test_init,
	.test_cases = pmuk_aux_cases,
};

kunit_test_suite(pmuk_aux_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of pmuk's AUX areas");
