/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests share these helpers for a buffer. Its records are numbered, and each is filled with words
 * that follow from its number, so that a reader can check all that it reads.
 */
#ifndef _PMUK_RECORDS_H
#define _PMUK_RECORDS_H

#include <kunit/test.h>
#include <linux/cleanup.h>
#include <linux/pmu_kapi.h>
#include <linux/preempt.h>

#include "pmuk_test.h"

/* perf has no record of this type. */
#define PMUK_TEST_RECORD	0x7e57

struct pmuk_test_buffer {
	struct kunit *test;
	struct pmuk_buffer *b;
	u64 attempts;		/* records that the writer has tried to write */
	u64 number;		/* number of the next record to be filled */
	u64 next;		/* number that the reader expects */
	u64 seen_lost;		/* sum over the PERF_RECORD_LOST that were read */
	u64 seen_told;		/* number of PERF_RECORD_LOST that were read */
	u64 seen_dummies;	/* fillers for records that were given up */
	u64 bytes;		/* bytes that were read */
	u64 bad;		/* records with wrong content or number */
	bool gap_is_fine;	/* the next record may be any later one */
};

/* A writer that interrupts this one takes the next number. */
static inline void pmuk_test_number(struct pmuk_test_buffer *tb, struct perf_event_header *rec)
{
	*(u64 *)(rec + 1) = tb->number++;
}

/* Fills the words that follow from the number. */
static inline void pmuk_test_fill_rest(struct perf_event_header *rec)
{
	u64 *word = (u64 *)(rec + 1);
	unsigned int i;

	for (i = 1; i < rec->size / 8 - 1; i++)
		word[i] = word[0] + i * 0x9e3779b97f4a7c15ULL;
}

static inline void pmuk_test_fill(struct pmuk_test_buffer *tb, struct perf_event_header *rec)
{
	pmuk_test_number(tb, rec);
	pmuk_test_fill_rest(rec);
}

static inline bool pmuk_test_write(struct pmuk_test_buffer *tb, u32 size)
{
	struct perf_event_header *rec;

	guard(preempt)();
	tb->attempts++;
	rec = pmuk_output_begin(tb->b, PMUK_TEST_RECORD, size);
	if (!rec)
		return false;
	pmuk_test_fill(tb, rec);
	pmuk_output_end(tb->b, rec);
	return true;
}

static inline bool pmuk_test_is_whole(const struct perf_event_header *rec)
{
	const u64 *word = (const u64 *)(rec + 1);
	unsigned int i;

	for (i = 0; i < rec->size / 8 - 1; i++) {
		if (word[i] != word[0] + i * 0x9e3779b97f4a7c15ULL)
			return false;
	}
	return true;
}

/* Checks a record that was read. Returns whether it has the type PMUK_TEST_RECORD. */
static inline bool pmuk_test_look(struct pmuk_test_buffer *tb, const struct perf_event_header *rec)
{
	const u64 *word = (const u64 *)(rec + 1);

	tb->bytes += rec->size;
	switch (rec->type) {
	case PERF_RECORD_LOST:
		tb->bad += rec->size != 24 || word[0] || !word[1];
		tb->seen_lost += word[1];
		tb->seen_told++;
		return false;
	case PERF_RECORD_LOST_SAMPLES:
		tb->bad += word[0] != 0;
		tb->seen_dummies++;
		return false;
	case PMUK_TEST_RECORD:
		tb->bad += !pmuk_test_is_whole(rec);
		tb->bad += tb->gap_is_fine ? word[0] < tb->next : word[0] != tb->next;
		tb->gap_is_fine = false;
		tb->next = word[0] + 1;
		return true;
	default:
		tb->bad++;
		return false;
	}
}

static inline struct pmuk_buffer_stat pmuk_test_stat(struct pmuk_test_buffer *tb)
{
	return pmuk_test_buffer_stat(tb->test, tb->b);
}

/* Reads all records. Returns how many of them have the type PMUK_TEST_RECORD. */
static inline unsigned int pmuk_test_drain(struct pmuk_test_buffer *tb)
{
	const struct perf_event_header *rec;
	struct pmuk_reader r;
	unsigned int n = 0;

	KUNIT_ASSERT_EQ(tb->test, pmuk_buffer_claim(tb->b, &r), 0);
	pmuk_for_each_record(rec, &r)
		n += pmuk_test_look(tb, rec);
	pmuk_buffer_release(&r);
	return n;
}

/* Checks that each record is accounted for, pmuk's own records too, and destroys the buffer. */
static inline void pmuk_test_put_buffer(void *data)
{
	struct pmuk_test_buffer *tb = data;
	struct pmuk_buffer_stat stat;

	pmuk_buffer_pause(tb->b);
	tb->gap_is_fine = true;
	pmuk_test_drain(tb);
	stat = pmuk_test_stat(tb);
	KUNIT_EXPECT_EQ(tb->test, stat.head, stat.tail);
	KUNIT_EXPECT_EQ(tb->test, tb->bad, 0);
	/* pmuk's own records add to both sides. */
	KUNIT_EXPECT_EQ(tb->test, tb->attempts + tb->seen_told + tb->seen_dummies,
			stat.consumed + stat.overwritten + stat.lost + stat.discarded);
	pmuk_buffer_destroy(tb->b);
}

/*
 * Returns a buffer on the first CPU, for the time of a test case, and binds the test to that CPU.
 */
static inline struct pmuk_test_buffer *pmuk_test_setup_buffer(struct kunit *test,
							      const struct pmuk_buffer_attr *attr)
{
	struct pmuk_test_buffer *tb = pmuk_test_zalloc(test, sizeof(*tb));

	tb->test = test;
	tb->b = pmuk_buffer_create(attr, pmuk_test_pin_first(test));
	KUNIT_ASSERT_FALSE(test, IS_ERR(tb->b));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_put_buffer, tb), 0);
	return tb;
}

#endif /* _PMUK_RECORDS_H */
