// SPDX-License-Identifier: GPL-2.0
/*
 * Threads write an AUX area, read it, and pause, release or kill it, all at the same time, under
 * sanitizers. The bytes are written and read by plain accesses, so only the area's own ordering
 * keeps these accesses apart. A test fails if it has not reached its goals.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aux_test.h"

#define SIZE		16384
#define RING		4096
#define ENOUGH		4000	/* the least count of most goals */
#define TOO_MANY	20000000
#define ROUNDS		1500	/* areas to make and to kill */
#define TRUNCATED	PERF_AUX_FLAG_TRUNCATED

static struct pmuk_ring ring;
static struct pmuk_area area;
static struct ring_config ring_config;
static struct pmuk_area config;
static const struct goal *goals;	/* the running test's */

/* Each test begins with zeros here. */
static struct {
	/* written by the writer */
	u64 attempts, parts, given_up, lost_bytes, losses, skipped;
	bool written_all;
	/* written by the readers, which take turns */
	u64 next, stale, turns, empty, spans_truncated, records, records_truncated;
	bool dead;		/* a reader has ended without a release */
	u64 buried, pauses, snapshots, in_snapshots;
	/* areas made and killed: numbers of the latest one, and counts */
	u64 born, will;		/* the killer sets will before the kill */
	u64 life, let_go_of, by_writer, by_killer;
} our;

static void wake(struct pmuk_ring *r)
{
}

static void gone(struct pmuk_area *a)
{
	FAIL("an area has ended that was not killed");
}

static void set_up(bool overwrite, bool user_tail, void (*on_gone)(struct pmuk_area *a))
{
	ring_config = (struct ring_config){
		.size = RING, .user_tail = user_tail, .watermark = RING / 4, .wake = wake,
	};
	map_ring(&ring_config);
	init_ring(&ring, &ring_config);
	config = (struct pmuk_area){
		.ring = &ring, .data = map_area(SIZE), .size = SIZE, .watermark = SIZE / 4,
		.least = 1, .overwrite = overwrite, .records = true, .private = &area,
		.gone = on_gone,
	};
	area = config;
	pmuk_area_init(&area, user_tail);
	memset(&our, 0, sizeof(our));
}

static void tear_down(void)
{
	unmap_area(config.data, SIZE);
	unmap_ring(&ring_config);
}

/* ---- the writer ---- */

static void lose(u64 bytes)
{
	SAW(our.losses, 1);
	our.lost_bytes += bytes;
	pmuk_area_lose(&area, bytes);
}

/* Writes as hardware does that begins at multiples of 16, and whose data do not always fit. */
static void put(void)
{
	u64 size = 8 + our.attempts++ * 24 % 800, pad;
	struct pmuk_aux_handle handle;

	if (!pmuk_area_begin(&area, &handle)) {
		our.given_up++;
		if (our.attempts % 8 == 0)
			lose(size);
		return;
	}
	pad = config.overwrite ? 0 : handle.head & 8;
	if (pad) {
		EXPECT(!pmuk_aux_output_skip(&handle, pad));
		SAW(our.skipped, pad);
	}
	if (size > handle.size) {
		lose(size - handle.size);
		size = handle.size;
	}
	test_aux_fill(handle.data, handle.head, size);
	/* other records make the ring full at times, before the area is full */
	test_put(&ring, our.attempts, 96);
	our.parts++;
	pmuk_aux_output_end(&handle, size);
}

static bool no_more(void)
{
	return failed() || __atomic_load_n(&our.written_all, __ATOMIC_ACQUIRE);
}

/* Writes in bursts: the area becomes full during a burst, and empty between two. */
static void *writer(void *arg)
{
	u64 n;

	for (n = 1; n <= TOO_MANY && !goals_are_met(goals) && !failed(); n++) {
		put();
		if (n % 64 == 0)
			usleep(50);
	}
	__atomic_store_n(&our.written_all, true, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- readers ---- */

/* A part that ends at no multiple of 16 is followed by a skipped word, which still has old data. */
static void look_at(u64 pos, u64 size)
{
	u64 end = pos + size, age;

	for (; pos < end && !failed(); pos += 8) {
		age = test_aux_age(config.data, SIZE, pos);
		if (!age)
			continue;
		EXPECT(pos & 8);
		/* the skipped word is from an earlier lap, or still 0 */
		EXPECT(age % SIZE == 0 || age == pos - TEST_AUX_WORD);
		SAW(our.stale, 8);
	}
}

static void take_turn(struct pmuk_aux_reader *r)
{
	struct pmuk_aux_span span;
	u64 bytes;

	SAW(our.turns, 1);
	if (!pmuk_aux_peek(r, &span)) {
		SAW(our.empty, 1);
		return;
	}
	EXPECT_EQ(span.head, our.next);
	bytes = our.turns % 3 ? span.size : span.size / 16 * 8;
	look_at(span.head, bytes);
	our.next += bytes;
	SAW(our.spans_truncated, !!(span.flags & TRUNCATED));
	pmuk_aux_consume(r, bytes);
}

/* The meddler releases this reader if its thread has stopped without a release. */
static struct pmuk_aux_reader the_reader;

/* The reader leaves the area, at times without a release. */
static void leave(struct pmuk_aux_reader *r)
{
	if (our.turns % 16)
		pmuk_aux_release(r);
	else
		__atomic_store_n(&our.dead, true, __ATOMIC_RELEASE);
}

static void *reader(void *arg)
{
	while (!no_more()) {
		if (!pmuk_area_claim(&area, &the_reader)) {
			take_turn(&the_reader);
			leave(&the_reader);
		}
		usleep(10);
	}
	return NULL;
}

/* Revokes the claims of readers that ended without a release, and now and then pauses the area. */
static void *meddler(void *arg)
{
	while (!no_more()) {
		if (__atomic_load_n(&our.dead, __ATOMIC_ACQUIRE)) {
			__atomic_store_n(&our.dead, false, __ATOMIC_RELAXED);
			SAW(our.buried, 1);
			pmuk_aux_release(&the_reader);
		}
		if (our.buried % 4 == 0) {
			pmuk_area_pause(&area);
			usleep(20);
			EXPECT(!pmuk_area_resume(&area));
			SAW(our.pauses, 1);
		}
		usleep(20);
	}
	return NULL;
}

/* Checks that counts never go back while others change them. */
static void *watcher(void *arg)
{
	struct pmuk_aux_stat s, before = {};

	while (!no_more()) {
		pmuk_area_stat(&area, &s);
		EXPECT(s.head >= before.head && s.full >= before.full &&
		       s.wakeups >= before.wakeups && s.truncated >= before.truncated &&
		       s.discarded >= before.discarded);
		before = s;
		usleep(100);
	}
	return NULL;
}

/* The bytes that a record reports are there, without a look at the head of the area. */
static void look_at_record(const struct test_aux_record *rec, struct pmuk_aux_reader *r)
{
	struct pmuk_aux_span span;

	EXPECT(rec->offset >= our.next);
	look_at(rec->offset, rec->size);
	SAW(our.records, 1);
	SAW(our.records_truncated, !!(rec->flags & TRUNCATED));
	EXPECT(pmuk_aux_peek(r, &span) || !rec->size);
	EXPECT_EQ(span.head, our.next);
	our.next = rec->offset + rec->size;
	EXPECT(our.next <= span.head + span.size);
	pmuk_aux_consume(r, our.next - span.head);
}

static void read_records(struct pmuk_aux_reader *r)
{
	const struct perf_event_header *rec;
	struct pmuk_reader records_of;
	u64 n = 0;

	EXPECT(!pmuk_ring_claim(&ring, &records_of));
	for (; (rec = pmuk_buffer_peek(&records_of)) && !failed(); n++) {
		if (rec->type == PERF_RECORD_AUX)
			look_at_record((struct test_aux_record *)rec, r);
		else
			EXPECT(rec->type == PERF_RECORD_LOST || test_whole(rec));
		pmuk_buffer_consume(&records_of);
	}
	SAW(our.empty, !n);
	pmuk_buffer_release(&records_of);
}

static void *record_reader(void *arg)
{
	struct pmuk_aux_reader r;
	bool last;

	EXPECT(!pmuk_area_claim(&area, &r));
	do {
		last = no_more();
		read_records(&r);
		usleep(10);
	} while (!last);
	pmuk_aux_release(&r);
	return NULL;
}

/* Reads as user space does with the pages mapped. */
static void *mapped_reader(void *arg)
{
	struct perf_event_mmap_page *page = ring_config.page;
	u64 head;
	bool last;

	do {
		last = no_more();
		/* acquire: the bytes that are read next are as new as this head */
		head = smp_load_acquire(&page->aux_head);
		SAW(our.empty, head == our.next);
		EXPECT(head - our.next <= SIZE);
		look_at(our.next, head - our.next);
		our.next = head;
		/* release: the bytes were read before their place is given back */
		smp_store_release(&page->aux_tail, head);
		/* this reader skips the ring's records */
		smp_store_release(&page->data_tail, READ_ONCE(page->data_head));
		usleep(10);
	} while (!last);
	return NULL;
}

/* ---- the tests ---- */

static void conserve(struct pmuk_aux_stat *s)
{
	pmuk_area_stat(&area, s);
	EXPECT_EQ(our.attempts, our.parts + our.given_up);
	EXPECT_EQ(our.given_up, s->full + s->discarded);
	EXPECT_EQ(s->nested, 0);
	EXPECT_EQ(s->truncated, our.lost_bytes);
	EXPECT_EQ(s->truncations, our.losses);
	EXPECT_EQ(s->head, ring_config.page->aux_head);
}

/* The readers have read all but the bytes that this function checks. */
static void check_stream(void)
{
	struct pmuk_aux_stat s;

	conserve(&s);
	EXPECT_EQ(s.tail, our.next);
	look_at(our.next, s.head - our.next);
}

static void check_spans(void)
{
	check_stream();
	EXPECT_EQ(our.stale, our.skipped);
}

/* Records include the skipped bytes within a record, but not those between two records. */
static void check_records(void)
{
	check_stream();
	EXPECT(our.stale < our.skipped);
}

static void *overwriter(void *arg)
{
	u64 n;

	for (n = 1; !no_more(); n++) {
		put();
		if (n % 256 == 0)
			usleep(20);
	}
	return NULL;
}

/* Takes a snapshot: pauses the area, and claims it once the writer has closed it. */
static void snapshot(void)
{
	struct pmuk_aux_reader r;
	struct pmuk_aux_span span;

	pmuk_area_pause(&area);
	while (pmuk_area_claim(&area, &r) && !failed())
		;
	if (pmuk_aux_peek(&r, &span)) {
		EXPECT(span.head >= our.next && span.size <= SIZE);
		look_at(span.head, span.size);
		EXPECT_EQ(our.stale, 0);
		our.next = span.head + span.size;
		our.in_snapshots += span.size;
		pmuk_aux_consume(&r, span.size);
	}
	pmuk_aux_release(&r);
	EXPECT(!pmuk_area_resume(&area));
}

static void *snapshots(void *arg)
{
	u64 n;

	for (n = 0; n < 100 * ENOUGH && !goals_are_met(goals) && !failed(); n++) {
		SAW(our.snapshots, 1);
		snapshot();
		usleep(n % 64);
	}
	__atomic_store_n(&our.written_all, true, __ATOMIC_RELEASE);
	return NULL;
}

static void check_snapshots(void)
{
	struct pmuk_aux_stat s;

	conserve(&s);
	EXPECT_EQ(s.full, 0);
	EXPECT(s.head > our.in_snapshots);
}

/* ---- areas that are killed ---- */

static pthread_barrier_t in_step;	/* writer and killer meet after each area's end */

/* Overwrites the area as its memory's next user would do: the writer must not touch it any more. */
static void let_go(void)
{
	EXPECT_EQ(our.will, our.life);
	memset(config.data, 0, 1024);
	area.head = 0;
	our.let_go_of++;
}

static void gone_at_last(struct pmuk_area *a)
{
	EXPECT(a == &area);
	SAW(our.by_writer, 1);
	let_go();
}

static void wait_a_bit(u64 loops)
{
	while (loops--)
		barrier();
}

/* The area is open for about half of the time. */
static void write_until_killed(void)
{
	while (test_aux_put(&area, 1024))
		wait_a_bit(1000);
}

/* Both threads call this function between the same two barriers, so the results agree. */
static bool is_last(u64 lives)
{
	return lives >= ROUNDS && (goals_are_met(goals) || lives >= 100 * ROUNDS);
}

static void *mortal_writer(void *arg)
{
	do {
		our.life++;
		init_ring(&ring, &ring_config);
		area = config;
		pmuk_area_init(&area, ring_config.user_tail);
		__atomic_store_n(&our.born, our.life, __ATOMIC_RELEASE);
		write_until_killed();
		pthread_barrier_wait(&in_step);
		EXPECT_EQ(our.let_go_of, our.life);
		EXPECT_EQ(area.nested, 0);
	} while (!is_last(our.life));
	return NULL;
}

static void *killer(void *arg)
{
	u64 lives = 0;

	do {
		lives++;
		while (__atomic_load_n(&our.born, __ATOMIC_ACQUIRE) != lives)
			sched_yield();
		wait_a_bit(lives * 37 % 4096);
		our.will = lives;
		if (!pmuk_area_kill(&area)) {
			SAW(our.by_killer, 1);
			let_go();
		}
		pthread_barrier_wait(&in_step);
	} while (!is_last(lives));
	return NULL;
}

/* On a busy host readers seldom find the area empty, so that goal is lower. */
#define STREAM_GOALS(...)						\
	{ GOAL(area.head, ENOUGH * SIZE), GOAL(area.full, ENOUGH),	\
	  GOAL(area.wakeups, ENOUGH), GOAL(our.losses, ENOUGH),		\
	  GOAL(our.skipped, ENOUGH), GOAL(our.empty, ENOUGH / 50), __VA_ARGS__ }

/* The functions of a race use one area at the same time. @check runs when all have ended. */
static const struct race {
	const char *name;
	bool overwrite, user_tail;
	void *(*functions[MOST_THREADS])(void *arg);
	void (*check)(void);
	void (*gone)(struct pmuk_area *a);
	struct goal goals[MOST_GOALS];
} races[] = {
	{ "stream", false, false, { writer, reader, reader, meddler }, check_spans, gone,
	  STREAM_GOALS(GOAL(our.turns, ENOUGH), GOAL(our.spans_truncated, ENOUGH / 10),
		       GOAL(our.buried, ENOUGH / 25), GOAL(our.pauses, ENOUGH / 25),
		       GOAL(area.discarded, ENOUGH / 50)) },
	{ "records", false, false, { writer, record_reader, watcher }, check_records, gone,
	  STREAM_GOALS(GOAL(our.records, ENOUGH), GOAL(our.records_truncated, ENOUGH / 10),
		       GOAL(our.stale, 1), GOAL(ring.lost, ENOUGH / 10)) },
	{ "mapped", false, true, { writer, mapped_reader, watcher }, check_spans, gone,
	  STREAM_GOALS() },
	{ "snapshots", true, false, { overwriter, snapshots, watcher }, check_snapshots, gone,
	  { GOAL(area.head, ENOUGH * SIZE / 20), GOAL(area.discarded, ENOUGH / 20),
	    GOAL(our.snapshots, ENOUGH / 2) } },
	{ "kill", true, false, { mortal_writer, killer }, NULL, gone_at_last,
	  { GOAL(our.by_writer, ROUNDS / 50), GOAL(our.by_killer, ROUNDS / 50) } },
};

static void run(void)
{
	const struct race *race = running_test->rule;

	goals = race->goals;
	set_up(race->overwrite, race->user_tail, race->gone);
	pthread_barrier_init(&in_step, NULL, 2);
	run_threads(race->functions);
	pthread_barrier_destroy(&in_step);
	if (race->check)
		race->check();
	expect_goals(goals);
	tear_down();
}

int main(int argc, char **argv)
{
	struct test tests[ARRAY_SIZE(races)];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(races); i++)
		tests[i] = (struct test){ races[i].name, run, &races[i] };
	return run_tests(tests, ARRAY_SIZE(tests), argc, argv);
}
