// SPDX-License-Identifier: GPL-2.0
/*
 * Explores all interleavings of nested writers. A write (begin, fill, end) runs instruction by
 * instruction. At each instruction, everything that can interrupt the write there is tried: the
 * explorer saves the state, runs the interruption and the rest of the write, checks the result, and
 * restores the state.
 *
 * At each instruction, the records that a reader could see have to be whole.
 */
#include <string.h>

#include "interleave.h"

#define SIZE		4096
#define WRITES		4
#define OLD_ID		1000	/* the first id of records that were there before */
#define READ_MAX	128

/* A write, and its result. */
struct write {
	u64 id;
	u32 size;
	bool skip;
	bool tried;
	bool reserved;		/* the stepped write has moved the head */
	bool ended;
	struct perf_event_header *rec;
	bool seen;		/* by look() */
};

/* The start of a scenario. */
struct scenario {
	const char *name;
	enum pmuk_buffer_mode mode;
	u32 watermark;
	u32 wakeup_events;
	u32 sizes[WRITES - 1];	/* sizes of the outermost write and of its interruptions */
	bool skip;		/* the outermost write gives up its record */
	u32 before;		/* bytes written and consumed before: the position in the ring */
	u32 free;		/* bytes of data that hold no old record */
	u32 pending;		/* losses that no record reports yet */
	u32 old;		/* bytes of an old record, 0: 256 */
	bool slow;		/* the limit is 0, so that the write takes the slow path */
	bool may_lose;
};

/* The explorer saves and restores this, and the ring's memory. */
static struct live {
	struct pmuk_ring ring;
	struct write writes[WRITES];
	u64 wakes;
	u64 early;		/* wakeups before their watermark was published */
	u64 start;		/* head before the first write */
	u64 committed;		/* commit at the last check_view() */
	u64 records;		/* old ones, written before the start */
	struct pmuk_reader reader;
	u64 read[READ_MAX];	/* ids that the reader has read */
	u64 reads;
	u64 partial;
} live;

static struct ring_config config;
static const struct scenario *scenario;

static struct perf_event_header *at(u64 pos)
{
	return (struct perf_event_header *)(config.data + (pos & (SIZE - 1)));
}

static void wake(struct pmuk_ring *ring)
{
	u64 commit = ring->commit & ~7ULL;

	live.wakes++;
	if (scenario->watermark && commit / scenario->watermark * scenario->watermark < live.start)
		live.early++;
}

/* ---- functions that run as machines: no library, no floating point ---- */

static void run_write(void *arg)
{
	struct write *w = arg;
	struct perf_event_header *rec;

	rec = pmuk_output_begin(test_buffer(&live.ring), TEST_RECORD, w->size);
	w->rec = rec;
	if (!rec)
		return;
	test_fill(rec, w->id, w->size);
	if (w->skip)
		pmuk_output_skip(test_buffer(&live.ring), rec);
	else
		pmuk_output_end(test_buffer(&live.ring), rec);
}

/* Runs the rest of a write that was interrupted right after it had published its record. */
static void run_again(void *arg)
{
	__pmuk_output_again(&live.ring);
}

static void run_pause(void *arg)
{
	pmuk_buffer_pause(arg);
}

static void run_restart(void *arg)
{
	pmuk_buffer_restart(arg);
}

static void run_reader(void *arg)
{
	struct pmuk_reader *r = arg;
	const struct perf_event_header *rec;

	while ((rec = pmuk_buffer_peek(r)) && pmuk_record_size_ok(rec->size)) {
		if (rec->type == TEST_RECORD && live.reads < READ_MAX) {
			live.read[live.reads++] = ((struct test_record *)rec)->id;
			live.partial += !test_whole(rec);
		}
		pmuk_buffer_consume(r);
	}
}

/* ---- looking at the ring ---- */

static bool overwrites(void)
{
	return scenario->mode == PMUK_BUFFER_OVERWRITE;
}

static u64 begins(void)
{
	return overwrites() ? config.page->data_tail : live.ring.tail;
}

/* The findings of look(). */
struct found {
	u64 records;
	u64 lost_records;	/* since the start */
	u64 reported;		/* losses that these records report */
	u64 fillers;
	const char *wrong;
};

static struct write *write_of(u64 id)
{
	return id && id <= WRITES ? &live.writes[id - 1] : NULL;
}

/* Checks a record. @old: the id of the latest old record, 0 before the first. */
static const char *look_at(u64 pos, struct found *found, u64 *old)
{
	struct perf_event_header *rec = at(pos);
	u64 id = ((struct test_record *)rec)->id;
	struct write *w = write_of(id);

	if (rec->type == PERF_RECORD_LOST) {
		if (rec->size != sizeof(struct test_lost_record) || id)
			return "a bad PERF_RECORD_LOST";
		if (pos >= live.start) {
			found->lost_records++;
			found->reported += ((struct test_lost_record *)rec)->lost;
		}
		return NULL;
	}
	if (rec->type == PERF_RECORD_LOST_SAMPLES) {
		found->fillers++;
		return id || pos < live.start ? "a bad filler" : NULL;
	}
	if (!test_whole(rec))
		return "a record that is not whole";
	if (!w) {
		if (id < OLD_ID || pos >= live.start || (*old && id != *old + 1))
			return "an old record out of order";
		*old = id;
		return NULL;
	}
	if (w->seen || pos < live.start || rec->size != w->size)
		return "a new record that is not where it should be";
	w->seen = true;
	return NULL;
}

/* Checks all records that a reader sees, up to @head. */
static struct found look(u64 head)
{
	struct found found = {};
	u64 pos = begins(), old = 0;
	int i;

	for (i = 0; i < WRITES; i++)
		live.writes[i].seen = false;
	for (; !found.wrong && (s64)(head - pos) > 0; pos += at(pos)->size) {
		found.records++;
		found.wrong = look_at(pos, &found, &old);
		if (!pmuk_record_size_ok(at(pos)->size))
			found.wrong = "a bad size";
	}
	if (!found.wrong && pos != head && head > begins())
		found.wrong = "the last record ends elsewhere";
	return found;
}

static void check_view(void)
{
	u64 commit = live.ring.commit & ~7ULL;
	const char *wrong = look(commit).wrong;

	if (!wrong)
		wrong = look(config.page->data_head).wrong;
	if (!wrong && config.page->data_head < commit)
		wrong = "data_head is behind commit";
	if (!wrong && commit < live.committed)
		wrong = "commit going back";
	live.committed = commit;
	if (wrong)
		FAIL("%s: a reader sees %s", scenario->name, wrong);
}

static void check_counts(const struct found *found)
{
	u64 bytes = live.ring.head - live.start, written = 0, refused = 0, skipped = 0;
	bool complete = begins() <= live.start || !overwrites();
	u64 there, i, lost_records;
	struct write *w;

	for (i = 0; i < WRITES; i++) {
		w = &live.writes[i];
		refused += w->tried && !w->rec;
		skipped += w->tried && w->rec && w->skip;
		if (!w->tried || !w->rec || w->skip) {
			EXPECT(!w->seen);
			continue;
		}
		written++;
		bytes -= w->size;
		EXPECT(w->seen || !complete || live.ring.tail > live.start);
	}
	bytes -= found->fillers * live.writes[0].size;
	EXPECT_EQ(bytes % sizeof(struct test_lost_record), 0);
	lost_records = bytes / sizeof(struct test_lost_record);
	EXPECT(found->fillers <= skipped);

	there = live.ring.consumed + live.ring.overwritten + found->records;
	EXPECT_EQ(there, live.records + written + found->fillers + lost_records);
	EXPECT_EQ(live.ring.discarded + live.ring.lost,
		  skipped + refused + scenario->pending);
	if (!scenario->may_lose)
		EXPECT_EQ(live.ring.lost, scenario->pending);
	if (complete && live.ring.tail <= live.start) {
		EXPECT_EQ(found->lost_records, lost_records);
		EXPECT_EQ(found->reported + live.ring.pending, live.ring.lost);
	}
}

static void check_wakeups(void)
{
	u64 losses = live.ring.lost - scenario->pending;
	u64 head = live.ring.head, crossed, events = 0;
	int i;

	EXPECT_EQ(live.wakes, live.ring.wakeups);
	EXPECT_EQ(live.early, 0);
	if (scenario->watermark) {
		crossed = head / scenario->watermark - live.start / scenario->watermark;
		EXPECT(live.wakes <= crossed + losses && !live.wakes == !(crossed + losses));
		EXPECT(live.ring.wake_at > head);
		EXPECT(live.ring.limit < live.ring.wake_at);
	}
	if (scenario->wakeup_events) {
		for (i = 0; i < WRITES; i++)
			events += !!live.writes[i].rec;
		EXPECT_EQ(live.ring.events, events);
		EXPECT(live.wakes <= events / scenario->wakeup_events + losses);
		if (!scenario->skip && !losses)
			EXPECT_EQ(live.ring.events_done, events / scenario->wakeup_events);
	}
}

/* Checks the ring after all writes have ended. */
static void check(void)
{
	struct found found = look(live.ring.head);
	u64 limit = live.ring.limit;

	if (found.wrong)
		FAIL("%s: %s", scenario->name, found.wrong);
	EXPECT_EQ(live.ring.commit & ~7ULL, live.ring.head);
	EXPECT_EQ(config.page->data_head, live.ring.head);
	EXPECT(live.ring.head - begins() <= SIZE);
	EXPECT(limit <= begins() + SIZE);
	if (live.ring.pending)
		EXPECT_EQ(limit, 0);
	check_counts(&found);
	check_wakeups();
}

static void try(int i)
{
	live.writes[i].tried = true;
	run_write(&live.writes[i]);
}

/* Reads all records and writes one more: it fits, and no loss is left unreported. */
static void check_after(bool paused)
{
	bool complete = !overwrites() && live.ring.tail <= live.start;
	struct found found;
	struct pmuk_reader r;

	if (overwrites())
		pmuk_buffer_pause(test_buffer(&live.ring));
	if (paused) {
		EXPECT_EQ(live.ring.limit, 0);
		EXPECT(!pmuk_output_begin(test_buffer(&live.ring), TEST_RECORD, 16));
		EXPECT_EQ(live.ring.limit, 0);
	}
	live.reads = 0;
	found = look(live.ring.head);
	EXPECT_EQ(pmuk_ring_claim(&live.ring, &r), 0);
	run_reader(&r);
	EXPECT(!live.partial);
	EXPECT_EQ(begins(), live.ring.head);
	pmuk_buffer_release(&r);
	EXPECT_EQ(pmuk_buffer_resume(test_buffer(&live.ring)), 0);
	pmuk_buffer_restart(test_buffer(&live.ring));
	try(WRITES - 1);
	EXPECT(live.writes[WRITES - 1].rec);
	EXPECT_EQ(live.ring.pending, 0);
	found.reported += look(live.ring.head).reported;
	if (complete)
		EXPECT_EQ(found.reported, live.ring.lost);
	explored++;
}

/* ---- the start of a scenario ---- */

static void put_old(u32 size)
{
	if (test_put(&live.ring, OLD_ID + live.records, size))
		live.records++;
}

static void put_all(u32 bytes)
{
	u32 old = scenario->old ?: 256, size;

	for (; bytes; bytes -= size) {
		size = bytes < 2 * old ? bytes : old;
		put_old(size);
	}
}

static void consume(u64 nr)
{
	struct pmuk_reader r;

	pmuk_ring_claim(&live.ring, &r);
	for (; nr && pmuk_buffer_peek(&r); nr--)
		pmuk_buffer_consume(&r);
	pmuk_buffer_release(&r);
}

static void start(const struct scenario *s)
{
	u32 n;

	scenario = s;
	memset(&live, 0, sizeof(live));
	memset(config.data, 0xee, SIZE);
	config.mode = s->mode;
	config.watermark = s->watermark;
	config.wakeup_events = s->wakeup_events;
	config.wake = wake;
	init_ring(&live.ring, &config);

	if (overwrites()) {
		put_all(s->before);
	} else {
		put_all(s->before / 16 * 8);
		consume(-1);
		put_all(s->before - s->before / 16 * 8);
		consume(-1);
	}
	/* Losses need a full ring. Consuming one record then gives the wanted free space. */
	if (s->pending) {
		if (s->free)
			put_old(s->free);
		put_all(SIZE - s->free);
		for (n = 0; n < s->pending; n++)
			put_old(64);
		if (s->free)
			consume(1);
	} else {
		put_all(SIZE - s->free);
	}
	if (s->slow)
		live.ring.limit = 0;

	for (n = 0; n < WRITES; n++) {
		live.writes[n].id = n + 1;
		live.writes[n].size = n < WRITES - 1 ? s->sizes[n] : 32;
	}
	live.writes[0].skip = s->skip;
	EXPECT_EQ(live.ring.lost, s->pending);
	EXPECT_EQ(live.ring.pending, s->pending);
	live.start = live.ring.head;
	live.wakes = 0;
	live.ring.wakeups = 0;
	live.ring.events = 0;
	live.ring.events_done = 0;
}

/* ---- exploring ---- */

/*
 * Runs an instruction. Notes whether it has reserved the record of the machine's write, or has
 * taken the reservation back.
 */
bool step(struct machine *m)
{
	struct write *w = &live.writes[m == &inner];
	u64 head = live.ring.head;
	bool more = machine_step(m);

	if (live.ring.head == head + w->size)
		w->reserved = true;
	if (live.ring.head == head - w->size)
		w->reserved = false;
	check_view();
	return more;
}

static u64 pos_of(const struct write *w)
{
	u64 head = live.ring.head;

	return head - 1 - ((head - 1 - ((u8 *)w->rec - config.data)) & (SIZE - 1));
}

/* @later interrupted @earlier, which had (@reserved) or had not reserved its record then. */
static void check_order(const struct write *earlier, const struct write *later, bool reserved)
{
	if (!earlier->rec || !later->rec || earlier->skip || !earlier->seen || !later->seen)
		return;
	EXPECT_EQ(pos_of(earlier) < pos_of(later), reserved);
}

/* A third write interrupts the second one, which has interrupted the first. */
static void nest(void *arg)
{
	const struct write *w = live.writes;

	try(2);
	check_view();
	machine_finish(&inner);
	check_view();
	machine_finish(&outer);
	check();
	check_order(&w[0], &w[1], w[0].reserved);
	check_order(&w[0], &w[2], w[0].reserved);
	check_order(&w[1], &w[2], w[1].reserved);
	check_after(false);
}

/* A second write interrupts the first, and is interrupted at each instruction. */
static void interrupt(void *arg)
{
	live.writes[1].tried = true;
	explore_calls(&inner, run_write, &live.writes[1], nest, NULL);
}

static void explore_nested(const struct scenario *s)
{
	start(s);
	live.writes[0].tried = true;
	explore_calls(&outer, run_write, &live.writes[0], interrupt, NULL);
	machine_finish(&outer);
	check();
}

/* The state when the first of two interruptions came. */
struct once {
	bool reserved;		/* the outermost's record */
	bool stopped;		/* the ring had stopped by then */
};

static bool is_stopped(void)
{
	return atomic_read(&live.ring.state);
}

/* Stops of a ring that has room for both interrupting writes, of which it loses the second one. */
static u64 early_stops;

/* A second interruption comes after the first has ended. */
static void interrupt_twice(void *arg)
{
	const struct once *once = arg;
	const struct write *w = live.writes;
	bool was_stopped = is_stopped(), stops;

	try(2);
	EXPECT(!once->stopped || !w[2].rec);
	stops = !was_stopped && is_stopped();
	check_view();
	machine_finish(&outer);
	check();
	if (scenario->mode == PMUK_BUFFER_STOP)
		EXPECT_EQ(is_stopped(), live.ring.lost != scenario->pending);
	if (stops && !w[0].rec && w[1].rec && w[1].size + w[2].size <= scenario->free)
		early_stops++;
	check_order(&w[0], &w[1], once->reserved);
	check_order(&w[0], &w[2], w[0].reserved);
	check_order(&w[1], &w[2], true);
	check_after(false);
}

/* After one interruption, another one comes at each instruction that is left. */
static void interrupt_again(void *drain)
{
	struct once once = { .reserved = live.writes[0].reserved };

	try(1);
	if (*(bool *)drain)
		consume(-1);
	check_view();
	once.stopped = scenario->mode == PMUK_BUFFER_STOP && !live.writes[1].rec;
	at_each_step(&outer, interrupt_twice, &once);
}

static void explore_twice(const struct scenario *s, void (*function)(void *), bool drain)
{
	start(s);
	live.writes[0].tried = function == run_write;
	explore_calls(&outer, function, &live.writes[0], interrupt_again, &drain);
}

/* A function that runs on another CPU. */
struct other {
	void (*function)(void *arg);
	void *arg;
};

static void check_beside(void *arg)
{
	const struct other *other = arg;

	machine_finish(&outer);
	check_view();
	machine_finish(&inner);
	if (other->function == run_reader)
		run_reader(other->arg);
	check();
	if (other->function == run_restart)
		EXPECT_EQ(atomic_read(&live.ring.state), 0);
	EXPECT(!live.partial);
	if (live.reader.ring)
		pmuk_buffer_release(&live.reader);
	check_after(other->function == run_pause);
}

/*
 * Another CPU's function begins at each instruction of a write. After each instruction of that
 * function, the rest of the write runs.
 */
static void beside(void *arg)
{
	const struct other *other = arg;

	explore_calls(&inner, other->function, other->arg, check_beside, arg);
}

static void explore_beside(const struct scenario *s, void (*function)(void *))
{
	struct other other = { function, &live.ring };

	start(s);
	if (function == run_reader) {
		other.arg = &live.reader;
		EXPECT_EQ(pmuk_ring_claim(&live.ring, &live.reader), 0);
	}
	live.writes[0].tried = true;
	explore_calls(&outer, run_write, &live.writes[0], beside, &other);
}

static void explore(const struct scenario *s)
{
	u64 before = explored;

	if (!failed())
		explore_nested(s);
	if (!failed())
		explore_twice(s, run_write, false);
	if (!failed() && !overwrites() && !s->may_lose)
		explore_twice(s, run_write, true);
	EXPECT(failed() || explored - before > 100);
	if (failed())
		FAIL("%s: before %u, free %u, pending %u, watermark %u, slow %d, sizes %u %u %u",
		     s->name, s->before, s->free, s->pending, s->watermark, s->slow,
		     s->sizes[0], s->sizes[1], s->sizes[2]);
}

/*
 * Another CPU gives the held ring new data. The writer begins after the grace period that the other
 * CPU has waited for: its record is in the new data, or is discarded.
 */
static void run_reset(void *arg)
{
	pmuk_ring_reset(arg, config.data, SIZE, 0);
}

static void check_reset(void *arg)
{
	const struct write *w = &live.writes[0];
	u64 head;

	machine_finish(&outer);
	machine_finish(&inner);
	head = w->rec ? w->size : 0;
	EXPECT_EQ(live.ring.head, head);
	EXPECT_EQ(live.ring.commit & ~7ULL, head);
	EXPECT_EQ(config.page->data_head, head);
	EXPECT_EQ(live.ring.discarded, !w->rec);
	explored++;
}

static void beside_reset(void *arg)
{
	explore_calls(&inner, run_reset, &live.ring, check_reset, NULL);
}

/* ---- the tests ---- */

#define SIZES	{ 64, 48, 40 }

static void test_room(void)
{
	struct scenario s = { .name = "room", .sizes = SIZES, .before = 4096, .free = 2048 };

	explore(&s);
	s.slow = true;
	explore(&s);
	s.before = 2048 - 24;	/* the outermost record crosses the end of the data */
	explore(&s);
	s.before = 2048 - 80;	/* the second record does */
	s.slow = false;
	explore(&s);
}

static void test_again(void)
{
	struct scenario s = {
		.name = "again", .sizes = SIZES, .before = 4096, .free = 1024, .watermark = 64,
	};

	for (s.before = 4096; s.before < 4096 + s.watermark; s.before += 16) {
		explore_twice(&s, run_again, false);
		explore_twice(&s, run_again, true);
	}
	s.watermark = 0;
	s.free = 48;	/* one record fits: the writer has to see what the reader gives back */
	explore_twice(&s, run_again, true);
	s.mode = PMUK_BUFFER_OVERWRITE;
	s.free = 0;
	explore_twice(&s, run_again, false);
}

static void test_full(void)
{
	struct scenario s = { .name = "full", .sizes = SIZES, .before = 4000, .may_lose = true };

	for (s.free = 0; s.free <= 160; s.free += 16) {
		s.slow = s.free % 48 == 0;
		explore(&s);
	}
}

/*
 * A writer that finds room is interrupted by a writer whose record is too large. That loss must be
 * reported before the next record, so the first writer must not raise the limit after it.
 */
static void test_larger_inside(void)
{
	struct scenario s = {
		.name = "larger_inside", .sizes = { 40, 1024, 48 }, .before = 4000, .slow = true,
		.may_lose = true,
	};

	for (s.free = 64; s.free <= 512; s.free += 64)
		explore(&s);
	s.mode = PMUK_BUFFER_STOP;
	explore(&s);
}

static void test_lost(void)
{
	struct scenario s = {
		.name = "lost", .sizes = SIZES, .before = 4000, .pending = 2, .may_lose = true,
	};

	for (s.free = 0; s.free <= 224; s.free += 32)
		explore(&s);
	s.free = 2048;
	s.may_lose = false;
	explore(&s);
}

static void test_stop(void)
{
	struct scenario s = {
		.name = "stop", .mode = PMUK_BUFFER_STOP, .sizes = SIZES, .may_lose = true,
	};

	for (s.free = 0; s.free <= 176; s.free += 16)
		explore(&s);
	/* The second record is too large and stops the ring. The third would fit but is refused. */
	s.sizes[0] = 40;
	s.sizes[1] = 64;
	s.sizes[2] = 32;
	s.slow = true;
	for (s.free = 40; s.free <= 88; s.free += 16)
		explore(&s);
}

/*
 * A reservation that does not fit is about to be taken back. A writer that interrupts then would
 * fit, but is lost, and the ring stops. The stop is a stop as any other: all that is lost is
 * counted, nothing is written before a restart, and a restart finds the room.
 */
static void test_stop_early(void)
{
	struct scenario s = {
		.name = "stop early", .mode = PMUK_BUFFER_STOP, .sizes = SIZES, .may_lose = true,
		.before = 4000,
	};

	for (s.free = 88; s.free < 64 + 48 && !failed(); s.free += 8) {
		early_stops = 0;
		explore(&s);
		EXPECT(failed() || early_stops);
	}
}

static void test_overwrite(void)
{
	struct scenario s = {
		.name = "overwrite", .mode = PMUK_BUFFER_OVERWRITE, .sizes = SIZES, .old = 64,
	};

	for (s.before = 4096; s.before <= 4416; s.before += 80) {
		s.slow = false;
		explore(&s);
		s.slow = true;
		explore(&s);
	}
}

/* The outermost record leaves so little of the ring that the others just fit, or are lost. */
static void test_overwrite_full(void)
{
	struct scenario s = {
		.name = "overwrite full", .mode = PMUK_BUFFER_OVERWRITE, .sizes = SIZES,
		.before = 4096, .may_lose = true, .old = 1024,
	};

	for (s.sizes[0] = SIZE; s.sizes[0] >= SIZE - 96; s.sizes[0] -= 32)
		explore(&s);
}

static void test_skip(void)
{
	struct scenario s = { .name = "skip", .sizes = SIZES, .before = 4096, .skip = true };

	s.free = 2048;
	explore(&s);
	s.slow = true;
	explore(&s);
	s.may_lose = true;
	for (s.free = 16; s.free <= 160; s.free += 48)
		explore(&s);
	s.pending = 1;
	for (s.free = 32; s.free <= 176; s.free += 48)
		explore(&s);
	s.mode = PMUK_BUFFER_OVERWRITE;
	s.pending = 0;
	s.free = 0;
	for (s.before = 4096; s.before <= 4416; s.before += 128)
		explore(&s);
}

static void test_watermark(void)
{
	struct scenario s = { .name = "watermark", .sizes = SIZES, .free = 1024 };

	for (s.watermark = 64; s.watermark <= 128; s.watermark *= 2)
		for (s.before = 4096; s.before < 4096 + s.watermark; s.before += 16)
			explore(&s);
	s.watermark = 100;
	explore(&s);
	/* A record that is given up wakes nobody, and leaves the wakeup to a later one. */
	s.skip = true;
	for (s.before = 4096; s.before < 4096 + s.watermark; s.before += 16)
		explore(&s);
}

static void test_wakeup_events(void)
{
	struct scenario s = { .name = "wakeup events", .sizes = SIZES, .free = 1024 };

	s.before = 4096;
	for (s.wakeup_events = 1; s.wakeup_events <= 3; s.wakeup_events++)
		explore(&s);
}

static void test_pause(void)
{
	struct scenario s = { .name = "pause", .sizes = SIZES, .before = 4096, .free = 2048 };
	int slow;

	for (slow = 0; slow <= 1 && !failed(); slow++) {
		s.may_lose = true;
		s.slow = slow;
		s.mode = PMUK_BUFFER_DROP;
		s.free = 2048;
		explore_beside(&s, run_pause);
		s.pending = 1;
		explore_beside(&s, run_pause);
		s.pending = 0;
		s.mode = PMUK_BUFFER_OVERWRITE;
		s.free = 0;
		explore_beside(&s, run_pause);
		s.skip = true;
		explore_beside(&s, run_pause);
		s.skip = false;
	}
}

/* The ring has room, so no write beside a restart may stop it again. */
static void test_restart(void)
{
	struct scenario s = { .name = "restart", .sizes = SIZES, .before = 4096, .free = 1024,
			      .mode = PMUK_BUFFER_STOP, .may_lose = true };

	for (s.pending = 1; s.pending <= 2; s.pending++)
		explore_beside(&s, run_restart);
}

static void test_reader(void)
{
	struct scenario s = { .name = "reader", .sizes = SIZES, .before = 4096,
			      .may_lose = true, .old = 1024 };

	for (s.free = 0; s.free <= 192 && !failed(); s.free += 96) {
		s.slow = false;
		explore_beside(&s, run_reader);
		s.slow = true;
		explore_beside(&s, run_reader);
	}
	s.free = SIZE - 192;
	explore_beside(&s, run_reader);
	s.watermark = 64;
	explore_beside(&s, run_reader);
	s.watermark = 0;
	s.skip = true;
	explore_beside(&s, run_reader);
	s.pending = 3;
	explore_beside(&s, run_reader);
}

static void test_reset(void)
{
	static const struct scenario s = { .name = "reset", .sizes = SIZES, .free = SIZE };

	start(&s);
	pmuk_ring_hold(&live.ring);
	live.writes[0].tried = true;
	explore_calls(&outer, run_write, &live.writes[0], beside_reset, NULL);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		TEST(room), TEST(again), TEST(full), TEST(larger_inside), TEST(lost), TEST(stop),
		TEST(stop_early), TEST(overwrite), TEST(overwrite_full), TEST(skip),
		TEST(watermark), TEST(wakeup_events), TEST(pause), TEST(restart), TEST(reader),
		TEST(reset),
	};

	config.size = SIZE;
	map_ring(&config);
	keep_memory(&live, sizeof(live));
	keep_memory(config.data, SIZE);
	keep_page(config.page);
	return run_explorer(tests, ARRAY_SIZE(tests), argc, argv);
}
