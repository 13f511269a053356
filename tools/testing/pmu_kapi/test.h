/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the test programs: results as KTAP, rings in memory, records that can be checked. */
#ifndef _PMUK_TEST_H
#define _PMUK_TEST_H

#include <stdio.h>

#include "../../../kernel/pmu_kapi/ring.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

struct test {
	const char *name;
	void (*run)(void);
	const void *rule;	/* the test's data, if many tests have one function */
};

extern const struct test *running_test;

/*
 * @argv: the suite's name for the results, and a glob of the tests to run; or --list. If
 * skip_tests is set, all tests are skipped for that reason.
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
 * A stress test runs until each goal's count has reached its least value, or until it has made so
 * many attempts that some goal will never be reached. An empty goal ends a list.
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

/* Runs up to MOST_THREADS functions at the same time, each to its end. NULL ends a shorter list. */
#define MOST_THREADS	4
void run_threads(void *(*const functions[MOST_THREADS])(void *));

/* The arguments of init_ring(). @user_tail: user space consumes, by the page's data_tail. */
struct ring_config {
	struct perf_event_mmap_page *page;
	u8 *data;
	u64 size;
	enum pmuk_buffer_mode mode;
	u32 watermark;
	u32 wakeup_events;
	bool user_tail;
	void (*wake)(struct pmuk_ring *ring);
};

static inline void init_ring(struct pmuk_ring *ring, const struct ring_config *config)
{
	*ring = (struct pmuk_ring){
		.page = config->page,
		.mode = config->mode,
		.wakeup_events = config->wakeup_events,
		.wake = config->wake,
	};
	pmuk_ring_init(ring, config->user_tail);
	pmuk_ring_reset(ring, config->data, config->size, config->watermark);
}

/* Maps a ring's memory, with pages that fault on all sides. Sets only these fields of @config. */
void map_ring(struct ring_config *config);
void unmap_ring(const struct ring_config *config);

/* Maps the same memory twice in a row, with pages that fault on both sides. */
u8 *map_area(size_t size);
void unmap_area(u8 *area, size_t size);

#define TEST_RECORD	PERF_RECORD_SAMPLE
#define TEST_FILLED	8	/* filled words at a record's start; the last word is, too */

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

/* Large records are filled only at both ends, which saves time. */
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

/* Writes a record. Returns false if there was no room. */
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
