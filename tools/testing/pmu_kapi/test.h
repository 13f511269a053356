/* SPDX-License-Identifier: GPL-2.0 */
/* The programs here share these: results as KTAP, rings in memory, records that can be checked. */
#ifndef _PMUK_TEST_H
#define _PMUK_TEST_H

#include <stdio.h>

#include "../../../kernel/pmu_kapi/ring.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

struct test {
	const char *name;
	void (*run)(void);
	const void *rule;	/* where many tests have one function */
};

extern const struct test *running_test;

/*
 * argv: suite's name as the results are to show it, and a glob of the tests to run; or --list.
 * With a reason in @skip_tests, they are skipped.
 */
extern const char *skip_tests;
int run_tests(const struct test *tests, size_t nr, int argc, char **argv);

/* Notes a failure of the running test, from any thread. */
void fail(const char *file, int line, const char *format, ...);
bool failed(void);

#define FAIL(...)	fail(__FILE__, __LINE__, __VA_ARGS__)

#define EXPECT(condition)						\
	do {								\
		if (!(condition))					\
			FAIL("%s", #condition);				\
	} while (0)

#define EXPECT_EQ(got, wanted)						\
	do {								\
		unsigned long long __got = (got), __wanted = (wanted);	\
									\
		if (__got != __wanted)					\
			FAIL("%s is %llu, not %s = %llu", #got, __got,	\
			     #wanted, __wanted);			\
	} while (0)

/*
 * How often a stress test has to see something. The test goes on until all its goals are met, or
 * until it has tried so often that they never will be. Lists of goals end with an empty one.
 */
struct goal {
	const u64 *count;
	u64 least;
	const char *name;
};

#define MOST_GOALS	16

#define GOAL(what, nr)	{ .count = &(what), .least = nr, .name = #what }

/* Adds to a goal's count, which another thread may read. */
#define SAW(count, nr)	((void)__atomic_add_fetch(&(count), nr, __ATOMIC_RELAXED))

bool goals_are_met(const struct goal *goals);

/* Notes each goal that has not been met as a failure. */
void expect_goals(const struct goal *goals);

/* Runs functions at the same time, each to its end. NULL follows the last if there are fewer. */
#define MOST_THREADS	4
void run_threads(void *(*const functions[MOST_THREADS])(void *));

/* Maps a ring's memory, with pages that fault on all sides. Zeroes nothing of @config but these. */
void map_ring(struct pmuk_ring_config *config);
void unmap_ring(const struct pmuk_ring_config *config);

/* Maps the same memory twice in a row, with pages that fault on both sides. */
u8 *map_area(size_t size);
void unmap_area(u8 *area, size_t size);

#define TEST_RECORD	PERF_RECORD_SAMPLE
#define TEST_FILLED	8	/* words of a record that are filled, besides the last */

struct test_record {
	struct perf_event_header header;
	u64 id;
	u64 words[];
};

struct test_lost_record {
	struct perf_event_header header;
	u64 id;
	u64 lost;
};

static inline struct pmuk_buffer *test_buffer(struct pmuk_ring *ring)
{
	return (struct pmuk_buffer *)ring;
}

static inline u64 test_word(u64 id, u64 n)
{
	return (id ^ n) * 0x9e3779b97f4a7c15ULL;
}

/* Large records are filled at both ends only, to be quick. */
static inline void test_fill(struct perf_event_header *rec, u64 id, u32 size)
{
	struct test_record *r = (struct test_record *)rec;
	u64 n, words = size / 8 - 2;

	r->id = id;
	for (n = 0; n < words && n < TEST_FILLED; n++)
		r->words[n] = test_word(id, n);
	if (words)
		r->words[words - 1] = test_word(id, words - 1);
}

/* Writes a record. False: there was no room. */
static inline bool test_put(struct pmuk_ring *ring, u64 id, u32 size)
{
	struct perf_event_header *rec = pmuk_output_begin(test_buffer(ring), TEST_RECORD, size);

	if (rec) {
		test_fill(rec, id, size);
		pmuk_output_end(test_buffer(ring), rec);
	}
	return rec;
}

static inline bool test_whole(const struct perf_event_header *rec)
{
	const struct test_record *r = (const struct test_record *)rec;
	u64 n, words;

	if (!pmuk_record_size_ok(rec->size) || rec->type != TEST_RECORD || rec->misc)
		return false;
	words = rec->size / 8 - 2;
	for (n = 0; n < words && n < TEST_FILLED; n++)
		if (r->words[n] != test_word(r->id, n))
			return false;
	return !words || r->words[words - 1] == test_word(r->id, words - 1);
}

#endif /* _PMUK_TEST_H */
