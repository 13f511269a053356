// SPDX-License-Identifier: GPL-2.0
/*
 * A writer and readers use a ring at the same time, under sanitizers. The contents of records are
 * written and read by plain accesses, so only the ring's own ordering keeps these accesses apart. A
 * test fails if the ring never wrapped, was never full, or was never empty.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

#define SIZE		16384
#define ENOUGH		1000	/* the least count of most goals */
#define TOO_MANY	20000000

static struct pmuk_ring ring;
static struct ring_config config;
static const struct goal *goals;	/* the running test's */
static int busy;		/* the writer is in the ring */

/* Each test begins with zeros here. */
static struct {
	u64 attempts;		/* by the writer; also the next record's id */
	u64 written, bytes;	/* by the writer */
	bool written_all;
	u64 next, seen, reported, empty;	/* by the readers, which take turns */
	u64 snapshots;
	int woken;		/* the ring has woken the reader */
} our;

static void wake(struct pmuk_ring *r)
{
	__atomic_store_n(&our.woken, 1, __ATOMIC_RELEASE);
}

static void set_up(enum pmuk_buffer_mode mode, bool user_tail)
{
	config = (struct ring_config) {
		.mode = mode, .size = SIZE, .user_tail = user_tail, .watermark = SIZE / 4,
		.wake = wake,
	};
	map_ring(&config);
	init_ring(&ring, &config);
	memset(&our, 0, sizeof(our));
}

static void put(void)
{
	u32 size = 16 + our.attempts * 40 % 504;

	if (test_put(&ring, our.attempts++, size)) {
		our.written++;
		our.bytes += size;
	}
}

/* Writes in bursts: the ring becomes full during a burst, and empty between two. */
static void *writer(void *arg)
{
	u64 n;

	for (n = 1; n <= TOO_MANY && !goals_are_met(goals) && !failed(); n++) {
		put();
		if (n % 256 == 0)
			usleep(50);
	}
	__atomic_store_n(&our.written_all, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool no_more(void)
{
	return failed() || __atomic_load_n(&our.written_all, __ATOMIC_ACQUIRE);
}

static void look_at(const struct perf_event_header *rec)
{
	const struct test_lost_record *lost = (const void *)rec;

	if (rec->type == PERF_RECORD_LOST) {
		SAW(our.reported, lost->lost);
		our.next += lost->lost;
		return;
	}
	EXPECT(test_whole(rec));
	EXPECT_EQ(((const struct test_record *)rec)->id, our.next);
	our.next++;
	our.seen++;
}

static void relax(void)
{
	SAW(our.empty, 1);
	usleep(10);
}

/* Reads up to @nr records as the kernel's consumer does, unless another reader has the ring. */
static u64 take_turn(u64 nr)
{
	const struct perf_event_header *rec;
	struct pmuk_reader r;
	u64 n = 0;

	if (pmuk_ring_claim(&ring, &r))
		return nr;
	for (n = 0; n < nr; n++) {
		rec = pmuk_buffer_peek(&r);
		if (!rec)
			break;
		look_at(rec);
		pmuk_buffer_consume(&r);
	}
	SAW(our.empty, n < nr);
	pmuk_buffer_release(&r);
	return n;
}

static void *reader(void *arg)
{
	bool last;
	u64 n;

	do {
		last = no_more();
		n = take_turn(64);
		if (!n)
			usleep(10);
	} while (!last || n);
	return NULL;
}

/* Reads as user space does with the pages mapped. */
static void *mapped_reader(void *arg)
{
	u64 pos = 0, head;
	bool last;

	do {
		last = no_more();
		/* acquire: the records that are read next are as new as this head */
		head = smp_load_acquire(&config.page->data_head);
		if (pos == head)
			relax();
		while (pos != head && !failed()) {
			struct perf_event_header *rec;

			rec = (void *)(config.data + (pos & (SIZE - 1)));
			look_at(rec);
			pos += rec->size;
			/* release: the record was read before its place is given back */
			smp_store_release(&config.page->data_tail, pos);
		}
	} while (!last || pos != head);
	return NULL;
}

static void *hostile_reader(void *arg)
{
	u64 random = 1;

	while (!no_more()) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		WRITE_ONCE(config.page->data_tail, random & 1 ? random :
			   READ_ONCE(config.page->data_head) - (random >> 40) % SIZE);
	}
	return NULL;
}

/* Checks that counts never go back while others change them. */
static void *watcher(void *arg)
{
	struct pmuk_buffer_stat s, before = {};

	while (!no_more()) {
		pmuk_buffer_get_stat(test_buffer(&ring), &s);
		EXPECT(s.consumed >= before.consumed && s.lost >= before.lost &&
		       s.head >= before.head && s.overwritten >= before.overwritten &&
		       s.wakeups >= before.wakeups && s.discarded >= before.discarded);
		before = s;
		usleep(100);
	}
	return NULL;
}

static void conserve(struct pmuk_buffer_stat *s)
{
	u64 lost_records, there = 0, pos;

	pmuk_buffer_get_stat(test_buffer(&ring), s);
	lost_records = (s->head - our.bytes) / sizeof(struct test_lost_record);
	EXPECT_EQ((s->head - our.bytes) % sizeof(struct test_lost_record), 0);
	EXPECT_EQ(our.attempts, our.written + s->lost + s->discarded);
	if (config.user_tail)
		return;
	for (pos = s->tail; pos < s->head; there++)
		pos += ((struct perf_event_header *)(config.data + (pos & (SIZE - 1))))->size;
	EXPECT_EQ(s->consumed + s->overwritten + there, our.written + lost_records);
}

static void check_drop(void)
{
	struct pmuk_buffer_stat s;

	conserve(&s);
	EXPECT_EQ(our.seen, our.written);
	EXPECT_EQ(our.reported + ring.pending, s.lost);
	EXPECT_EQ(our.next + ring.pending, our.attempts);
	EXPECT_EQ(s.discarded, 0);
}

/* Waits until the ring wakes the reader or the writer has ended. */
static bool wait_until_woken(void)
{
	int patience;

	for (patience = 0; patience < 500000; patience++) {
		if (__atomic_exchange_n(&our.woken, 0, __ATOMIC_ACQUIRE) || no_more())
			return true;
		usleep(10);
	}
	FAIL("nobody has woken the reader");
	return false;
}

static void *restarting_reader(void *arg)
{
	bool last;

	do {
		last = no_more();
		if (!wait_until_woken())
			break;
		while (take_turn(64))
			;
		pmuk_buffer_restart(test_buffer(&ring));
	} while (!last);
	return NULL;
}

static void check_hostile(void)
{
	struct pmuk_buffer_stat s;

	conserve(&s);
}

/* Sets busy while it writes. In the kernel, a grace period tells a reader the same. */
static void *overwriter(void *arg)
{
	u64 n;

	for (n = 1; !no_more(); n++) {
		__atomic_store_n(&busy, 1, __ATOMIC_RELAXED);
		smp_mb();	/* orders busy before the ring; pairs with snapshots() */
		put();
		__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
		if (n % 1024 == 0)
			usleep(50);
	}
	return NULL;
}

/* Reads all records, oldest first. Ids are missing only where the paused ring refused a record. */
static u64 read_snapshot(struct pmuk_reader *r, u64 *latest)
{
	const struct perf_event_header *rec;
	u64 n, id;

	for (n = 0; (rec = pmuk_buffer_peek(r)); n++) {
		id = ((struct test_record *)rec)->id;
		EXPECT(test_whole(rec));
		EXPECT(id >= *latest);
		*latest = id + 1;
		pmuk_buffer_consume(r);
		if (failed())
			break;
	}
	return n;
}

/* If the writer seldom runs beside this thread, the goals take more snapshots, up to a limit. */
static void *snapshots(void *arg)
{
	struct pmuk_reader r;
	u64 latest = 0, n;

	for (n = 0; n < 400 * ENOUGH && !goals_are_met(goals) && !failed(); n++) {
		SAW(our.snapshots, 1);
		pmuk_buffer_pause(test_buffer(&ring));
		smp_mb();	/* orders the pause before busy; pairs with overwriter() */
		while (__atomic_load_n(&busy, __ATOMIC_ACQUIRE))
			;
		EXPECT_EQ(pmuk_ring_claim(&ring, &r), 0);
		our.seen += read_snapshot(&r, &latest);
		pmuk_buffer_release(&r);
		EXPECT_EQ(pmuk_buffer_resume(test_buffer(&ring)), 0);
		usleep(n % 64);
	}
	__atomic_store_n(&our.written_all, true, __ATOMIC_RELEASE);
	return NULL;
}

static void check_snapshots(void)
{
	struct pmuk_buffer_stat s;

	conserve(&s);
	EXPECT_EQ(our.seen, s.consumed);
	EXPECT_EQ(s.lost, 0);
}

/* On a busy host a reader seldom finds the ring empty, so that goal is lower. */
#define DROP_GOALS							\
	{ GOAL(our.attempts, 200 * ENOUGH), GOAL(ring.head, ENOUGH * SIZE), \
	  GOAL(ring.lost, ENOUGH), GOAL(ring.wakeups, ENOUGH),		\
	  GOAL(our.reported, ENOUGH), GOAL(our.empty, ENOUGH / 10) }

/* The functions of a race use one ring at the same time. @check runs when all have ended. */
static const struct race {
	const char *name;
	enum pmuk_buffer_mode mode;
	bool user_tail;
	void *(*functions[MOST_THREADS])(void *arg);
	void (*check)(void);
	struct goal goals[MOST_GOALS];
} races[] = {
	{ "drop", PMUK_BUFFER_DROP, false, { writer, reader, watcher }, check_drop, DROP_GOALS },
	{ "turns", PMUK_BUFFER_DROP, false, { writer, reader, reader }, check_drop, DROP_GOALS },
	{ "mapped", PMUK_BUFFER_DROP, true, { writer, mapped_reader, watcher }, check_drop,
	  DROP_GOALS },
	{ "stops", PMUK_BUFFER_STOP, false, { writer, restarting_reader, watcher }, check_drop,
	  DROP_GOALS },
	{ "hostile", PMUK_BUFFER_DROP, true, { writer, hostile_reader }, check_hostile,
	  { GOAL(our.attempts, 200 * ENOUGH), GOAL(ring.head, ENOUGH * SIZE),
	    GOAL(ring.lost, ENOUGH) } },
	{ "snapshots", PMUK_BUFFER_OVERWRITE, false, { overwriter, snapshots, watcher },
	  check_snapshots,
	  { GOAL(our.snapshots, 2 * ENOUGH), GOAL(ring.head, ENOUGH * SIZE),
	    GOAL(ring.consumed, ENOUGH), GOAL(ring.overwritten, ENOUGH),
	    GOAL(ring.discarded, ENOUGH) } },
};

static void run(void)
{
	const struct race *race = running_test->rule;

	goals = race->goals;
	set_up(race->mode, race->user_tail);
	run_threads(race->functions);
	race->check();
	expect_goals(goals);
	unmap_ring(&config);
}

int main(int argc, char **argv)
{
	struct test tests[ARRAY_SIZE(races)];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(races); i++)
		tests[i] = (struct test){ races[i].name, run, &races[i] };
	return run_tests(tests, ARRAY_SIZE(tests), argc, argv);
}
