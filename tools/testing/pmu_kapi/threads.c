// SPDX-License-Identifier: GPL-2.0
/*
 * A writer and readers at the same time, for the sanitizers. What is in the records is written and
 * read by plain accesses: nothing but the ring's own ordering keeps them apart. A test that has not
 * seen the ring wrap, full, and empty fails.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

#define SIZE		16384
#define ENOUGH		1000	/* of what a stress test has to see */
#define TOO_MANY	20000000

static struct pmuk_ring ring;
static struct pmuk_ring_config config;
static const struct goal *goals;	/* of the test that runs */
static int busy;		/* the writer is in the ring */

/* Each test begins with all of this zero. */
static struct {
	u64 attempts;		/* the writer's, and its ids */
	u64 written, bytes;	/* the writer's */
	bool written_all;
	u64 next, seen, told, empty;	/* of the readers, one after the other */
	u64 snapshots;
	int woken;		/* the reader was told to have a look */
} our;

static void wake(struct pmuk_ring *r)
{
	__atomic_store_n(&our.woken, 1, __ATOMIC_RELEASE);
}

static void set_up(enum pmuk_buffer_mode mode, bool user_tail)
{
	config = (struct pmuk_ring_config) {
		.mode = mode, .size = SIZE, .user_tail = user_tail, .watermark = SIZE / 4,
		.wake = wake,
	};
	map_ring(&config);
	pmuk_ring_init(&ring, &config);
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

/* In bursts, to find the ring full and to leave it empty. */
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
		SAW(our.told, lost->lost);
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

/* Reads as the kernel's consumer does; others wait for their turn. */
static u64 take_turn(u64 nr)
{
	struct perf_event_header *rec;
	struct pmuk_reader r;
	u64 n = 0;

	if (pmuk_ring_claim(&ring, &r))
		return nr;
	for (n = 0; n < nr; n++) {
		rec = pmuk_ring_peek(&r);
		if (!rec)
			break;
		look_at(rec);
		pmuk_ring_consume(&r);
	}
	SAW(our.empty, n < nr);
	pmuk_ring_release(&r);
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
		/* so that what is read of records is not older */
		head = smp_load_acquire(&config.page->data_head);
		if (pos == head)
			relax();
		while (pos != head && !failed()) {
			struct perf_event_header *rec;

			rec = (void *)(config.data + (pos & (SIZE - 1)));
			look_at(rec);
			pos += rec->size;
			/* after the last look at it */
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

/* Somebody who looks at the counts while they move. */
static void *watcher(void *arg)
{
	struct pmuk_buffer_stat s, before = {};

	while (!no_more()) {
		pmuk_ring_stat(&ring, &s);
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

	pmuk_ring_stat(&ring, s);
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
	EXPECT_EQ(our.told + ring.pending, s.lost);
	EXPECT_EQ(our.next + ring.pending, our.attempts);
	EXPECT_EQ(s.discarded, 0);
}

/* Waits for wakeups and nothing else, as long as there is a writer. */
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
		pmuk_ring_restart(&ring);
	} while (!last);
	return NULL;
}

static void check_hostile(void)
{
	struct pmuk_buffer_stat s;

	conserve(&s);
}

/* Tells when it is in the ring, as the kernel knows from a context on another CPU. */
static void *overwriter(void *arg)
{
	u64 n;

	for (n = 1; !no_more(); n++) {
		__atomic_store_n(&busy, 1, __ATOMIC_RELAXED);
		smp_mb();	/* busy, then the ring; pairs with snapshots() */
		put();
		__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
		if (n % 1024 == 0)
			usleep(50);
	}
	return NULL;
}

/* All that is there, the newest last; between them only what was refused while paused. */
static u64 read_snapshot(struct pmuk_reader *r, u64 *latest)
{
	struct perf_event_header *rec;
	u64 n, id;

	for (n = 0; (rec = pmuk_ring_peek(r)); n++) {
		id = ((struct test_record *)rec)->id;
		EXPECT(test_whole(rec));
		EXPECT(id >= *latest);
		*latest = id + 1;
		pmuk_ring_consume(r);
		if (failed())
			break;
	}
	return n;
}

/* Where the writer seldom runs beside this thread, more snapshots are taken, but not for ever. */
static void *snapshots(void *arg)
{
	struct pmuk_reader r;
	u64 latest = 0, n;

	for (n = 0; n < 400 * ENOUGH && !goals_are_met(goals) && !failed(); n++) {
		SAW(our.snapshots, 1);
		pmuk_ring_pause(&ring);
		smp_mb();	/* the pause, then busy; pairs with overwriter() */
		while (__atomic_load_n(&busy, __ATOMIC_ACQUIRE))
			;
		EXPECT_EQ(pmuk_ring_claim(&ring, &r), 0);
		our.seen += read_snapshot(&r, &latest);
		pmuk_ring_release(&r);
		EXPECT_EQ(pmuk_ring_resume(&ring), 0);
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

/* On a busy host a reader seldom finds the ring empty, so fewer times are enough. */
#define DROP_GOALS							\
	{ GOAL(our.attempts, 200 * ENOUGH), GOAL(ring.head, ENOUGH * SIZE), \
	  GOAL(ring.lost, ENOUGH), GOAL(ring.wakeups, ENOUGH),		\
	  GOAL(our.told, ENOUGH), GOAL(our.empty, ENOUGH / 10) }

/* These functions use one ring at the same time; @check judges when all have ended. */
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
