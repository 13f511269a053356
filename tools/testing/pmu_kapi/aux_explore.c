// SPDX-License-Identifier: GPL-2.0
/*
 * Explores interruptions of an AUX area's writer. The writer (begin, skip, write, lose, end) runs
 * instruction by instruction. At each instruction, everything that can come there is tried: an
 * interrupt that also writes, and is interrupted itself; or a reader, a pause or a kill on another
 * CPU, which stops at each of its own instructions. The explorer saves the state before that,
 * checks the result, and restores the state. A writer also comes at each instruction of a copy of
 * the newest bytes, and a copy at each instruction of a writer.
 *
 * At each instruction, the bytes that a reader could see have to be whole, and only such bytes are
 * reported.
 */
#include <string.h>

#include "aux_test.h"
#include "interleave.h"

#define SIZE		4096	/* bytes of the area, and of the ring */
#define WRITES		4	/* the outermost, two that interrupt, and one at the end */
#define RECORD		sizeof(struct test_aux_record)
#define LOG_MAX		16
#define SLICE		8	/* words that are copied */
#define TRUNCATED	PERF_AUX_FLAG_TRUNCATED
#define PARTIAL		PERF_AUX_FLAG_PARTIAL
#define COLLISION	PERF_AUX_FLAG_COLLISION

/* An attempt to write the area, and its result. */
struct write {
	u32 skip;
	u32 size;
	u32 lose;		/* bytes reported as lost, also if the write is refused */
	u32 record;		/* bytes of a record, written in between or in place of data */
	u64 flags;
	bool tried;
	bool opened;
	bool ended;
	bool expect_nested;
	u64 room;
	u64 from;		/* the position where it begins, skipped bytes included */
	u64 skipped;
	u64 written;
	u64 owes;		/* flags that its bytes have to get */
	bool lost;		/* has called pmuk_area_lose() */
};

/* The start of a scenario. */
struct scenario {
	const char *name;
	bool overwrite;
	bool user_tail;
	u64 watermark;
	struct write writes[WRITES - 1];
	u64 before;		/* bytes that were written and consumed */
	u64 free;		/* bytes of the area */
	u64 ring_free;		/* bytes of the ring; fewer than 16 are none */
	u64 unreported;		/* bytes that no record reports */
};

/* The explorer saves and restores this, and the memory of the ring and the area. */
static struct live {
	struct pmuk_ring ring;
	struct pmuk_area area;
	struct write writes[WRITES];
	u64 wakes;
	u64 seen_head;		/* the area's head at the last check_view() */
	u64 gone;
	bool paused;		/* the area was paused, and not resumed */
	u64 kills;
	u64 killed;		/* kills after which the writer has to call gone() */
	/* set by the reader */
	struct pmuk_aux_reader reader;
	struct pmuk_reader ring_reader;
	bool reading;
	u64 claims;
	u64 read;		/* bytes before this position were read */
	u64 flags;		/* all flags that the reader has got */
	u64 wrong;
	struct test_aux_record log[LOG_MAX];
	u64 logged;
	u64 slice[SLICE];	/* the latest copy of the newest bytes, ... */
	u64 sliced;		/* ... and their number */
	u64 early;		/* records of bytes past the head */
} live;

/* The state at the start. */
static struct {
	struct pmuk_area area;
	struct pmuk_ring ring;
} old;

static struct ring_config ring_config;
static struct pmuk_area config;
static const struct scenario *scenario;
static u64 refusals, unreported, deaths, read_beside, copies;

static bool is_open(void)
{
	return atomic_read(&live.area.state) & 1;
}

static bool is_paused(void)
{
	return atomic_read(&live.area.state) & 2;
}

static bool is_dead(void)
{
	return live.kills;
}

/* ---- functions that run as machines: no library, no floating point ---- */

static void wake(struct pmuk_ring *ring)
{
	live.wakes++;
}

static void gone(struct pmuk_area *area)
{
	live.gone++;
}

static void lose(struct write *w)
{
	if (w->lose) {
		w->lost = true;
		pmuk_area_lose(&live.area, w->lose);
	}
	if (w->record)
		test_put(&live.ring, 1, w->record);
}

static void write_and_end(struct write *w, struct pmuk_aux_handle *handle)
{
	if (w->skip && !pmuk_aux_output_skip(handle, w->skip))
		w->skipped = w->skip;
	w->written = w->size < handle->size ? w->size : handle->size;
	test_aux_fill(handle->data, handle->head, w->written);
	lose(w);
	pmuk_aux_output_flag(handle, w->flags);
	w->owes = w->flags | (w->written < w->size ? TRUNCATED : 0);
	pmuk_aux_output_end(handle, w->size);
	w->ended = true;
}

static void run_write(void *arg)
{
	struct pmuk_aux_handle handle;
	struct write *w = arg;

	w->tried = true;
	if (!pmuk_area_begin(&live.area, &handle)) {
		lose(w);
		return;
	}
	w->from = handle.head;
	w->room = handle.size;
	w->opened = true;
	write_and_end(w, &handle);
}

static void run_copy(void *arg)
{
	bool frozen = pmuk_area_freeze(&live.area);

	live.sliced = pmuk_area_newest(&live.area, frozen, sizeof(live.slice));
	pmuk_area_copy(&live.area, live.slice, live.sliced);
	if (frozen)
		pmuk_area_thaw(&live.area);
}

static void run_pause(void *arg)
{
	pmuk_area_pause(arg);
	live.paused = true;
}

static void run_resume(void *arg)
{
	pmuk_area_pause(arg);
	pmuk_area_resume(arg);
}

static void run_kill(void *arg)
{
	bool open = pmuk_area_kill(arg);

	live.kills++;
	live.killed += open;
}

/* Skipped bytes keep the data of the lap before. */
static bool is_skipped_by(const struct write *w, u64 pos)
{
	return w->opened && pos - w->from < w->skip;
}

/* Runs in the machine, so it takes few instructions: each of them is explored. */
static bool word_looks_right(u64 pos)
{
	u64 age = test_aux_age(config.data, SIZE, pos);

	return !age || (age == SIZE && (is_skipped_by(&live.writes[0], pos) ||
					is_skipped_by(&live.writes[1], pos)));
}

/*
 * If the span has new bytes of the outermost write, it has the flags of these bytes, too. No other
 * write comes when a reader does.
 */
static bool flags_look_right(u64 from, u64 to, u64 flags)
{
	const struct write *w = &live.writes[0];

	return !w->written || w->from + w->skipped - from >= to - from || !(w->owes & ~flags);
}

static void look_at_span(const struct pmuk_aux_span *span)
{
	u64 last = span->head + span->size - 8;

	live.wrong += !word_looks_right(span->head) || !word_looks_right(last) ||
		      !word_looks_right(last - 8) || !word_looks_right(last - 16);
	live.wrong += span->data != config.data + (span->head & (SIZE - 1));
}

static void read_area(void)
{
	u64 shown = live.reader.end, bytes;
	struct pmuk_aux_span span;

	while (pmuk_aux_peek(&live.reader, &span)) {
		/* check only new bytes: flags go with the first bytes that are consumed */
		live.wrong += !flags_look_right(shown, span.head + span.size, span.flags);
		shown = span.head + span.size;
		live.wrong += scenario->overwrite ? span.size > SIZE : span.head != live.read;
		look_at_span(&span);
		live.flags |= span.flags;
		bytes = span.size > 8 && live.claims & 1 ? 8 : span.size;	/* in two steps */
		live.claims++;
		pmuk_aux_consume(&live.reader, bytes);
		live.read = span.head + bytes;
	}
	live.flags |= span.flags;
}

static void run_reader(void *arg)
{
	live.reading = !pmuk_area_claim(&live.area, &live.reader);
	if (!live.reading)
		return;
	read_area();
	live.reading = false;
	pmuk_aux_release(&live.reader);
}

/* Logs the records of AUX data, and counts those of bytes that are not in the area yet. */
static void run_ring_reader(void *arg)
{
	const struct perf_event_header *rec;
	struct test_aux_record *aux;

	if (pmuk_ring_claim(&live.ring, &live.ring_reader))
		return;
	while ((rec = pmuk_buffer_peek(&live.ring_reader))) {
		aux = (struct test_aux_record *)rec;
		if (rec->type == PERF_RECORD_AUX && live.logged < LOG_MAX) {
			live.early += aux->offset + aux->size > READ_ONCE(live.area.head);
			live.log[live.logged++] = *aux;
		}
		pmuk_buffer_consume(&live.ring_reader);
	}
	pmuk_buffer_release(&live.ring_reader);
}

/* Reads a flight recorder. The claim fails while the writer is in the area. */
static void run_snapshot(void *arg)
{
	pmuk_area_pause(&live.area);
	run_reader(arg);
	pmuk_area_resume(&live.area);
}

/* ---- checks of the area ---- */

static bool is_skipped(u64 pos)
{
	int i;

	for (i = 0; i < WRITES; i++)
		if (is_skipped_by(&live.writes[i], pos))
			return true;
	return false;
}

static bool word_is_right(u64 pos)
{
	return test_aux_age(config.data, SIZE, pos) == (is_skipped(pos) ? SIZE : 0);
}

static u64 begins(void)
{
	if (scenario->overwrite)
		return live.area.head - SIZE;
	return live.area.tail;
}

static const char *look_at_words(void)
{
	u64 pos;

	/* The tail of an area that overwrites is unknown until the area is closed. */
	if (scenario->user_tail || (scenario->overwrite && is_open()))
		return NULL;
	for (pos = begins(); pos < live.area.head; pos += 8)
		if (!word_is_right(pos))
			return "bytes that were not written";
	return NULL;
}

/* Checks what holds at any instruction. */
static const char *look(void)
{
	const struct perf_event_mmap_page *page = ring_config.page;
	const struct pmuk_area *area = &live.area;

	if (page->aux_head > area->head)
		return "aux_head beyond the head";
	if (area->head < live.seen_head)
		return "the head going back";
	if (!scenario->user_tail && !scenario->overwrite && area->head - area->tail > SIZE)
		return "more than there is room for";
	if (live.early)
		return "a record of bytes that are not there";
	if (live.wrong)
		return "a reader that was shown something else";
	return look_at_words();
}

static void check_view(void)
{
	const char *wrong = look();

	if (wrong)
		FAIL("%s: %s", scenario->name, wrong);
	live.seen_head = live.area.head;
}

/* A summary of all records, read and unread. */
struct reported {
	u64 up_to;
	u64 flags;
	u64 records;
	const char *wrong;
};

/* Returns true if all bytes were skipped, so that no record need report them. */
static bool all_skipped(u64 from, u64 to)
{
	for (; from < to; from += 8)
		if (!is_skipped(from))
			return false;
	return true;
}

static u64 owed(u64 from, u64 to)
{
	u64 flags = 0, first;
	int i;

	for (i = 0; i < WRITES; i++) {
		first = live.writes[i].from + live.writes[i].skipped;
		if (live.writes[i].ended && live.writes[i].written && first >= from && first < to)
			flags |= live.writes[i].owes;
	}
	return flags;
}

static bool any_skipped(u64 from, u64 to)
{
	for (; from < to; from += 8)
		if (is_skipped(from))
			return true;
	return false;
}

static void look_at_record(const struct test_aux_record *rec, struct reported *reported)
{
	u64 end = rec->offset + rec->size;

	if (rec->header.size != RECORD || rec->header.misc)
		reported->wrong = "a bad record";
	if (end > live.area.head)
		reported->wrong = "a record of what was not published";
	if (rec->offset < reported->up_to)
		reported->wrong = "bytes that are reported twice";
	if (!scenario->overwrite && !all_skipped(reported->up_to, rec->offset))
		reported->wrong = "bytes that are not reported";
	if (any_skipped(rec->offset, end) && !(rec->flags & PARTIAL))
		reported->wrong = "a gap that is not partial";
	if (owed(rec->offset, end) & ~rec->flags)
		reported->wrong = "flags that are not reported";
	if (!!(rec->flags & PERF_AUX_FLAG_OVERWRITE) != scenario->overwrite)
		reported->wrong = "overwritten, or not";
	reported->up_to = end;
	reported->flags |= rec->flags & ~(u64)PERF_AUX_FLAG_OVERWRITE;
	reported->records++;
}

static struct reported look_at_records(void)
{
	u64 pos = live.ring.tail, i;
	struct reported reported = { .up_to = old.area.reported };
	struct perf_event_header *rec;

	for (i = 0; i < live.logged; i++)
		look_at_record(&live.log[i], &reported);
	for (; pos < live.ring.head; pos += rec->size) {
		rec = (struct perf_event_header *)(ring_config.data + (pos & (SIZE - 1)));
		if (!pmuk_record_size_ok(rec->size)) {
			reported.wrong = "a record of a bad size";
			break;
		}
		if (rec->type == PERF_RECORD_AUX)
			look_at_record((struct test_aux_record *)rec, &reported);
		else if (rec->type == TEST_RECORD && !test_whole(rec))
			reported.wrong = "a record that is not whole";
	}
	if (!reported.wrong && (reported.up_to > live.area.reported ||
				!all_skipped(reported.up_to, live.area.reported)))
		reported.wrong = "records that do not agree with area->reported";
	return reported;
}

/* The area has exactly the bytes that the writers have written or skipped. */
static void check_bytes(void)
{
	u64 bytes = 0, pos = old.area.head;
	const struct write *w;
	int i, n;

	for (i = 0; i < WRITES; i++)
		bytes += live.writes[i].skipped + live.writes[i].written;
	EXPECT_EQ(live.area.head - old.area.head, bytes);
	/* The writers run one after the other. */
	for (n = 0; n < WRITES; n++) {
		for (i = 0; i < WRITES; i++) {
			w = &live.writes[i];
			if (w->opened && w->from == pos && w->skipped + w->written)
				pos += w->skipped + w->written;
		}
	}
	EXPECT_EQ(pos, live.area.head);
	EXPECT_EQ(ring_config.page->aux_head, live.area.head);
	if (!scenario->user_tail) {
		EXPECT_EQ(live.area.tail, live.read);
		EXPECT_EQ(ring_config.page->aux_tail, live.read);
	}
}

static void check_counts(void)
{
	const struct pmuk_area *area = &live.area;
	u64 refused = 0, truncated = 0, truncations = 0;
	const struct write *w;
	int i;

	for (i = 0; i < WRITES; i++) {
		w = &live.writes[i];
		refused += w->tried && !w->opened;
		truncated += w->opened ? w->size - w->written : 0;
		truncated += w->lost ? w->lose : 0;
		truncations += w->lost + !!(w->owes & TRUNCATED);
		EXPECT_EQ(w->opened, w->ended);
		EXPECT(!w->expect_nested || !w->opened);
	}
	refusals += refused;
	EXPECT_EQ(area->full + area->nested + area->discarded -
		  old.area.full - old.area.nested - old.area.discarded, refused);
	EXPECT_EQ(area->truncated - old.area.truncated, truncated);
	EXPECT_EQ(area->truncations - old.area.truncations, truncations);
}

/* Returns the flags of all writes. Each flag was read, or can still be read. */
static u64 all_flags(void)
{
	u64 flags = 0;
	int i;

	for (i = 0; i < WRITES; i++)
		flags |= live.writes[i].owes | (live.writes[i].lost ? TRUNCATED : 0);
	return flags;
}

static void check_flags(const struct reported *reported)
{
	u64 flags = all_flags(), due = reported->flags | live.area.due;
	bool may_be_partial = live.ring.lost || live.ring.discarded || is_dead();

	EXPECT_EQ(live.flags | live.area.taken | (u64)atomic_read(&live.area.flags), flags);
	EXPECT_EQ(due & ~(u64)PARTIAL, flags & ~(u64)PARTIAL);
	/* A loss between two reports counts as a gap, too: the record may be partial. */
	EXPECT(!(due & PARTIAL) || may_be_partial || flags & (PARTIAL | TRUNCATED));
}

static void check_wakeups(void)
{
	u64 from = old.area.head / config.watermark, to = live.area.head / config.watermark;
	u64 wakeups = live.area.wakeups - old.area.wakeups, full = live.area.full - old.area.full;
	u64 truncations = live.area.truncations - old.area.truncations, due = to - from + full;

	EXPECT(live.wakes <= wakeups + live.ring.wakeups - old.ring.wakeups);
	if (!is_dead())
		EXPECT_EQ(live.wakes, wakeups + live.ring.wakeups - old.ring.wakeups);
	/* Only the first loss wakes the reader, until a record reports it. */
	EXPECT(wakeups <= due + truncations);
	EXPECT(wakeups || !due);
	EXPECT(wakeups || !truncations || old.area.due & TRUNCATED);
	EXPECT(live.area.wake_at > live.area.head);
	EXPECT(live.area.wake_at - live.area.head <= config.watermark);
}

/* Checks the area after all writes have ended. */
static void check(void)
{
	struct reported reported = look_at_records();
	const char *wrong = reported.wrong ?: look();
	bool lost = live.ring.lost || live.ring.discarded;

	if (wrong)
		FAIL("%s: %s", scenario->name, wrong);
	EXPECT(!is_open());
	EXPECT_EQ(is_paused(), live.paused);
	EXPECT(live.area.reported <= live.area.head);
	if (!lost)
		EXPECT_EQ(live.area.reported, live.area.head);
	EXPECT_EQ(live.ring.commit, live.ring.head);
	EXPECT_EQ(live.gone, live.killed);
	check_bytes();
	check_counts();
	check_flags(&reported);
	check_wakeups();
	unreported += live.area.reported != live.area.head;
	deaths += live.gone;
}

static void read_all(void)
{
	if (scenario->overwrite)
		run_snapshot(NULL);
	else
		run_reader(NULL);
	run_ring_reader(NULL);
}

/* Reads all bytes and writes one more part: nothing is left unreported. */
static void check_after(void)
{
	struct write *w = &live.writes[WRITES - 1];
	struct reported reported;

	explored++;
	if (is_dead()) {
		run_write(w);
		EXPECT(!w->opened && live.gone == live.killed);
		return;
	}
	if (scenario->user_tail)
		return;
	EXPECT_EQ(pmuk_area_resume(&live.area), 0);
	read_all();
	if (!scenario->overwrite)
		EXPECT_EQ(live.read, live.area.head);
	w->size = 16;
	run_write(w);
	EXPECT(w->ended);
	run_ring_reader(NULL);
	read_all();
	reported = look_at_records();
	if (reported.wrong)
		FAIL("%s: in the end %s", scenario->name, reported.wrong);
	EXPECT_EQ(live.area.reported, live.area.head);
	EXPECT_EQ(reported.up_to, live.area.head);
	EXPECT_EQ(live.area.due, 0);
	EXPECT_EQ(reported.flags & ~(u64)PARTIAL, all_flags() & ~(u64)PARTIAL);
	EXPECT_EQ(live.flags, all_flags());
	EXPECT(!live.wrong && !live.early);
}

/* ---- the start of a scenario ---- */

/* Writes at least a lap, so that the age of each word is known. */
static void put_before(void)
{
	u64 left = scenario->before, size;

	for (; left; left -= size) {
		size = left < SIZE / 2 ? left : SIZE / 2;
		test_aux_put(&live.area, size);
		run_ring_reader(NULL);
		if (!scenario->overwrite)
			run_reader(NULL);
		if (scenario->user_tail)
			ring_config.page->aux_tail = live.area.head;
	}
}

/* Fills the ring. make_room() consumes the first record, of @ring_free bytes. */
static void fill_ring(void)
{
	u64 room = scenario->ring_free, size;

	if (room >= 16)
		test_put(&live.ring, 1, room);
	for (room = SIZE - (room >= 16 ? room : 0); room; room -= size) {
		size = room < 2048 ? room : 1024;
		test_put(&live.ring, 1, size);
	}
}

static void make_room(void)
{
	struct pmuk_reader r;

	if (scenario->ring_free < 16)
		return;
	pmuk_ring_claim(&live.ring, &r);
	pmuk_buffer_peek(&r);
	pmuk_buffer_consume(&r);
	pmuk_buffer_release(&r);
}

static void start(const struct scenario *s)
{
	int i;

	scenario = s;
	memset(&live, 0, sizeof(live));
	memset(ring_config.data, 0xee, SIZE);
	memset(config.data, 0xee, SIZE);
	memset(ring_config.page, 0, sizeof(*ring_config.page));
	ring_config.wake = wake;
	init_ring(&live.ring, &ring_config);
	config.overwrite = s->overwrite;
	config.records = true;
	config.watermark = s->watermark ?: SIZE / 2;
	config.least = 1;
	live.area = config;
	pmuk_area_init(&live.area, s->user_tail);

	put_before();
	if (!s->overwrite && SIZE - s->free > s->unreported)
		test_aux_put(&live.area, SIZE - s->free - s->unreported);
	run_ring_reader(NULL);
	fill_ring();
	if (s->unreported)
		test_aux_put(&live.area, s->unreported);
	make_room();
	EXPECT_EQ(live.area.head - live.area.reported, s->unreported);
	EXPECT(!live.wrong);

	live.read = live.area.tail;
	live.logged = 0;
	live.flags = 0;
	live.wakes = 0;
	for (i = 0; i < WRITES - 1; i++)
		live.writes[i] = s->writes[i];
	old.area = live.area;
	old.ring = live.ring;
}

/* ---- exploring ---- */

/* Runs an instruction. After gone(), the writer must not write to the area. */
bool step(struct machine *m)
{
	struct pmuk_area before = live.area;
	bool was_gone = live.gone;
	bool more = machine_step(m);

	if (was_gone && memcmp(&before, &live.area, sizeof(before)))
		FAIL("%s: the area is written after gone()", scenario->name);
	check_view();
	return more;
}

static void try(struct write *w)
{
	w->expect_nested = is_open();
	run_write(w);
}

/* A third writer comes, and then all run to their end. @arg: the second writer, if it runs. */
static void finish_interrupted(void *arg)
{
	try(&live.writes[2]);
	check_view();
	if (arg) {
		machine_finish(arg);
		check_view();
	}
	machine_finish(&outer);
	check();
	check_after();
}

/* A second writer interrupts the first, and is interrupted at each instruction. */
static void interrupt(void *arg)
{
	live.writes[1].expect_nested = is_open();
	explore_calls(&inner, run_write, &live.writes[1], finish_interrupted, &inner);
}

static void explore_nested(const struct scenario *s)
{
	start(s);
	explore_calls(&outer, run_write, &live.writes[0], interrupt, NULL);
	machine_finish(&outer);
	check();
}

/* After one interruption, another one comes at each instruction that is left. */
static void interrupt_again(void *arg)
{
	try(&live.writes[1]);
	check_view();
	at_each_step(&outer, finish_interrupted, NULL);
}

static void explore_twice(const struct scenario *s)
{
	start(s);
	explore_calls(&outer, run_write, &live.writes[0], interrupt_again, NULL);
}

/* An actor: a writer, or a function on another CPU. */
struct actor {
	void (*function)(void *arg);
	void *arg;
	u64 read;		/* live.read when it begins */
};

static bool is_reader(const struct actor *actor)
{
	return actor->function == run_reader || actor->function == run_snapshot;
}

static void finish_both(void *arg)
{
	const struct actor *other = arg;

	machine_finish(&outer);
	check_view();
	machine_finish(&inner);
	EXPECT(!live.reading);
	read_beside += live.read != other->read && is_reader(other);
	check();
	check_after();
}

/*
 * On two CPUs, the second actor begins at each instruction of the first. After each instruction of
 * the second, the first runs to its end.
 */
static void beside(void *arg)
{
	struct actor *other = arg;

	other->read = live.read;
	explore_calls(&inner, other->function, other->arg, finish_both, other);
}

static void explore_two(const struct scenario *s, const struct actor *a, struct actor *b)
{
	start(s);
	explore_calls(&outer, a->function, a->arg, beside, b);
}

/* The copy has words in a row, up to a head that the area has had since the start. */
static void check_copy(void)
{
	u64 from = live.slice[0] ^ TEST_AUX_WORD, to = from + live.sliced, n;

	for (n = 0; n < live.sliced / 8; n++)
		EXPECT_EQ(live.slice[n] ^ TEST_AUX_WORD, from + 8 * n);
	if (live.sliced)
		EXPECT(to >= old.area.head && to <= live.area.head);
	copies += !!live.sliced;
}

/*
 * A writer interrupts the copy. Either the copy has opened the area, and the writer is refused, or
 * the copy finds the writer's bytes.
 */
static void write_inside(void *arg)
{
	try(&live.writes[1]);
	check_view();
	machine_finish(&outer);
	check_copy();
	check();
	check_after();
}

static void copy_inside(void *arg)
{
	run_copy(NULL);
	check_copy();
	check_view();
	machine_finish(&outer);
	check();
	check_after();
}

static void done(u64 before)
{
	const struct scenario *s = scenario;

	EXPECT(failed() || explored - before > 50);
	if (failed())
		FAIL("%s: before %llu, free %llu, ring %llu, unreported %llu", s->name, s->before,
		     s->free, s->ring_free, s->unreported);
}

/* Explores both orders: the writer begins first, and the other actor does. */
static void explore_beside(const struct scenario *s, void (*function)(void *))
{
	struct actor writer = { run_write, &live.writes[0] };
	struct actor other = { function, &live.area };
	u64 before = explored;

	explore_two(s, &writer, &other);
	if (!failed())
		explore_two(s, &other, &writer);
	done(before);
}

static void explore(const struct scenario *s)
{
	u64 before = explored;

	if (!failed())
		explore_nested(s);
	if (!failed())
		explore_twice(s);
	done(before);
}

/* A writer interrupts the copy, while the other actor is at any of its instructions. */
static void write_and_finish_both(void *arg)
{
	try(&live.writes[1]);
	check_view();
	machine_finish(&outer);
	check_view();
	machine_finish(&inner);
	EXPECT(!live.reading);
	read_beside += live.read != old.area.tail;
	check_copy();
	check();
	check_after();
}

static void beside_copy(void *arg)
{
	explore_calls(&inner, arg, &live.area, write_and_finish_both, NULL);
}

/* @function runs on another CPU, and begins at each instruction of a copy. */
static void explore_beside_copy(const struct scenario *s, void (*function)(void *))
{
	u64 before = explored, copied = copies;

	start(s);
	explore_calls(&outer, run_copy, NULL, beside_copy, function);
	EXPECT(copies > copied);
	done(before);
}

static void explore_copies(const struct scenario *s)
{
	u64 before = explored, copied = copies;

	start(s);
	explore_calls(&outer, run_copy, NULL, write_inside, NULL);
	if (!failed()) {
		start(s);
		explore_calls(&outer, run_write, &live.writes[0], copy_inside, NULL);
	}
	EXPECT(copies > copied);
	done(before);
}

/* Explores only a second interruption after the first, without nesting. */
static void explore_quickly(const struct scenario *s)
{
	u64 before = explored;

	if (!failed())
		explore_twice(s);
	done(before);
}

/* ---- the tests ---- */

#define PARTS { { .size = 24 }, { .size = 16, .lose = 8 }, { .size = 8, .record = 16 } }

static void test_room(void)
{
	struct scenario s = { .name = "room", .writes = PARTS, .before = SIZE, .free = SIZE,
			      .ring_free = 1024 };

	s.writes[0].record = 16;
	explore(&s);
	s.before = 2 * SIZE - 16;	/* the data cross the area's end */
	s.writes[1].record = 16;
	s.writes[1].lose = 0;
	explore(&s);
}

/* The outermost write gets all room that is left, too little, or none. */
static void test_full(void)
{
	struct scenario s = { .name = "full", .writes = PARTS, .before = SIZE, .ring_free = 1024 };
	u64 before = refusals;

	s.free = 16;
	explore(&s);
	for (s.free = 0; s.free <= 32; s.free += 32)
		explore_quickly(&s);
	s.free = 0;
	s.unreported = 24;	/* the refused writer reports these bytes */
	s.ring_free = RECORD + 24;
	explore(&s);
	EXPECT(refusals > before);
}

/* The ring has no room for a record, with and without older bytes to report. */
static void test_ring_full(void)
{
	struct scenario s = { .name = "ring full", .writes = PARTS, .before = SIZE, .free = 2048 };
	u64 before = unreported;

	explore_quickly(&s);
	s.ring_free = RECORD;
	explore(&s);
	s.unreported = 40;
	explore_quickly(&s);
	s.ring_free = RECORD + 24;	/* also for the record of a loss before it */
	explore(&s);
	EXPECT(unreported > before);
}

static void test_skip(void)
{
	struct scenario s = { .name = "skip", .writes = PARTS, .before = SIZE, .free = 2048,
			      .ring_free = 1024 };

	s.writes[0].skip = 16;
	s.writes[1].skip = 8;
	explore(&s);
	s.unreported = 24;
	s.ring_free = 64;
	explore_quickly(&s);
}

static void test_lose(void)
{
	struct scenario s = { .name = "lose", .writes = PARTS, .before = SIZE, .free = 2048,
			      .ring_free = 1024 };

	s.writes[0].lose = 8;
	s.writes[2].lose = 8;
	explore(&s);
	s.writes[0].lose = 0;
	s.writes[0].flags = COLLISION;
	s.ring_free = RECORD;
	explore(&s);
}

static void test_watermark(void)
{
	struct scenario s = { .name = "watermark", .writes = PARTS, .free = 1024,
			      .ring_free = 1024, .watermark = 32 };

	s.writes[0].skip = 16;
	for (s.before = SIZE; s.before < SIZE + s.watermark; s.before += 16)
		explore_quickly(&s);
}

static void test_overwrite(void)
{
	struct scenario s = { .name = "overwrite", .writes = PARTS, .overwrite = true,
			      .before = 2 * SIZE - 16, .ring_free = 1024 };

	explore(&s);
	s.ring_free = RECORD;
	explore_quickly(&s);
}

static void test_reader(void)
{
	struct scenario s = { .name = "reader", .writes = PARTS, .before = SIZE,
			      .ring_free = 1024 };
	u64 before = read_beside;

	s.writes[0].flags = COLLISION;
	s.free = SIZE - 8;
	explore_beside(&s, run_reader);
	s.writes[0].skip = 8;
	s.free = 16;		/* less than the write needs, unless the reader frees more */
	explore_beside(&s, run_reader);
	EXPECT(read_beside > before);
}

static void test_records(void)
{
	struct scenario s = { .name = "records", .writes = PARTS, .before = SIZE, .free = SIZE };

	s.writes[0].flags = COLLISION;
	for (s.ring_free = 0; s.ring_free <= 2 * RECORD; s.ring_free += 2 * RECORD)
		explore_beside(&s, run_ring_reader);
}

static void test_snapshot(void)
{
	struct scenario s = { .name = "snapshot", .writes = PARTS, .overwrite = true,
			      .before = 2 * SIZE - 16, .ring_free = 1024 };
	u64 before = read_beside;

	explore_beside(&s, run_snapshot);
	EXPECT(read_beside > before);
}

static void test_pause(void)
{
	struct scenario s = { .name = "pause", .writes = PARTS, .before = SIZE, .free = 2048,
			      .ring_free = 1024 };

	s.writes[0].skip = 8;
	for (s.free = 0; s.free <= 32; s.free += 32) {
		explore_beside(&s, run_pause);
		explore_beside(&s, run_resume);
	}
	s.overwrite = true;
	explore_beside(&s, run_pause);
	explore_beside(&s, run_resume);
}

static void test_kill(void)
{
	struct scenario s = { .name = "kill", .writes = PARTS, .before = SIZE, .ring_free = 1024 };
	u64 before = deaths;

	s.writes[0].skip = 8;
	s.writes[0].lose = 8;
	for (s.free = 0; s.free <= 64; s.free += 32)
		explore_beside(&s, run_kill);
	s.ring_free = 0;
	explore_beside(&s, run_kill);
	EXPECT(deaths > before);
}

/* The writers would write over all that is copied, and over more. */
static void test_copy(void)
{
	struct scenario s = { .name = "copy", .writes = PARTS, .overwrite = true,
			      .before = 2 * SIZE - 16, .ring_free = 1024 };

	s.writes[0] = (struct write){ .size = SIZE };
	s.writes[1] = s.writes[0];
	explore_copies(&s);
	s.overwrite = false;
	for (s.free = SIZE / 2; s.free <= SIZE; s.free += SIZE / 2)
		explore_copies(&s);
}

static void test_copy_beside(void)
{
	struct scenario s = { .name = "copy beside", .writes = PARTS, .overwrite = true,
			      .before = 2 * SIZE - 16, .ring_free = 1024 };
	u64 died = deaths, read = read_beside;

	s.writes[1] = (struct write){ .size = SIZE };
	explore_beside_copy(&s, run_pause);
	explore_beside_copy(&s, run_resume);
	explore_beside_copy(&s, run_kill);
	explore_beside_copy(&s, run_snapshot);
	s.overwrite = false;
	s.free = SIZE / 2;
	explore_beside_copy(&s, run_pause);
	explore_beside_copy(&s, run_kill);
	explore_beside_copy(&s, run_reader);
	EXPECT(deaths > died && read_beside > read);
}

/* Returns the room that @tail leaves. A write uses one tail, never a mixture of two. */
static u64 room_of(u64 tail)
{
	u64 used = old.area.head - tail;

	return used <= SIZE ? SIZE - used : 0;
}

struct lie {
	u64 was, is;
};

/* User space changes the tail at each instruction of the writer. */
static void tell_lie(void *arg)
{
	const struct write *w = &live.writes[0];
	const struct lie *lie = arg;
	u64 got;

	ring_config.page->aux_tail = lie->is;
	machine_finish(&outer);
	got = w->opened ? w->room : 0;
	EXPECT(got == room_of(lie->was) || got == room_of(lie->is));
	EXPECT(w->written <= w->room);
	check();
	explored++;
}

static const s64 tails[] = {
	0, 8, -8, -16, -SIZE, 8 - SIZE, -8 - SIZE, -3 * SIZE, SIZE, 1LL << 62, -1LL - (1LL << 62),
};

/* A copy inside of the writer takes no more than the area, whatever the tail is. */
static void copy_all(void *arg)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tails); i++) {
		ring_config.page->aux_tail = live.area.head + tails[i];
		EXPECT(pmuk_area_newest(&live.area, false, ~0ULL) <= SIZE);
	}
	explored++;
}

static void hostile(const struct scenario *s, s64 was, s64 is)
{
	struct lie lie;

	start(s);
	lie = (struct lie){ old.area.head + was, old.area.head + is };
	ring_config.page->aux_tail = lie.was;
	explore_calls(&outer, run_write, &live.writes[0], tell_lie, &lie);
}

static void test_hostile(void)
{
	struct scenario s = { .name = "hostile", .writes = PARTS, .before = SIZE, .free = SIZE,
			      .ring_free = 1024, .user_tail = true };
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(tails); i++)
		for (j = 0; j < ARRAY_SIZE(tails) && !failed(); j++)
			hostile(&s, tails[i], tails[j]);
	start(&s);
	explore_calls(&outer, run_write, &live.writes[0], copy_all, NULL);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		TEST(room), TEST(full), TEST(ring_full), TEST(skip), TEST(lose), TEST(watermark),
		TEST(overwrite), TEST(reader), TEST(records), TEST(snapshot), TEST(pause),
		TEST(kill), TEST(copy), TEST(copy_beside), TEST(hostile),
	};

	ring_config.size = SIZE;
	map_ring(&ring_config);
	config.ring = &live.ring;
	config.data = map_area(SIZE);
	config.size = SIZE;
	config.private = &live;
	config.gone = gone;
	keep_memory(&live, sizeof(live));
	keep_memory(ring_config.data, SIZE);
	keep_memory(config.data, SIZE);
	keep_page(ring_config.page);
	return run_explorer(tests, ARRAY_SIZE(tests), argc, argv);
}
