// SPDX-License-Identifier: GPL-2.0
/* The rules of an AUX area, one writer and one reader taking turns: bytes and counts are exact. */
#include <errno.h>
#include <string.h>

#include "aux_test.h"

#define SIZE		4096	/* of the area, and of the ring */
#define TRUNCATED	PERF_AUX_FLAG_TRUNCATED
#define PARTIAL		PERF_AUX_FLAG_PARTIAL
#define COLLISION	PERF_AUX_FLAG_COLLISION
#define FORMAT		PERF_AUX_FLAG_CORESIGHT_FORMAT_RAW

struct rig {
	struct pmuk_ring ring;
	struct pmuk_area area;
	struct pmuk_ring_config ring_config;
	struct pmuk_area_config config;
	struct pmuk_aux_handle handle;
	u8 model[SIZE];		/* what the area is to have */
	u64 head;		/* where it is to be */
	u64 read;		/* the reader has come so far */
	u64 refused;
	u64 wakes;
	u64 gone;
};

static struct rig rig;

static void wake(struct pmuk_ring *ring)
{
	EXPECT(ring == &rig.ring);
	rig.wakes++;
}

static void gone(struct pmuk_area *area)
{
	EXPECT(area == &rig.area);
	EXPECT(!rig.handle.area);
	rig.gone++;
}

static void set_up_with(const struct pmuk_area_config *config, u64 ring_size)
{
	memset(&rig, 0, sizeof(rig));
	rig.ring_config = (struct pmuk_ring_config){
		.size = ring_size, .user_tail = config->user_tail, .wake = wake,
	};
	map_ring(&rig.ring_config);
	pmuk_ring_init(&rig.ring, &rig.ring_config);

	rig.config = *config;
	rig.config.ring = &rig.ring;
	rig.config.data = map_area(SIZE);
	rig.config.size = SIZE;
	rig.config.watermark = config->watermark ?: SIZE / 2;
	rig.config.least = config->least ?: 1;
	rig.config.records = ring_size;
	rig.config.private = &rig;
	rig.config.gone = gone;
	pmuk_area_init(&rig.area, &rig.config);
}

static void set_up(void)
{
	const struct pmuk_area_config config = {};

	set_up_with(&config, SIZE);
}

static void set_up_overwrite(void)
{
	const struct pmuk_area_config config = { .overwrite = true };

	set_up_with(&config, SIZE);
}

static struct pmuk_aux_stat stat(void)
{
	struct pmuk_aux_stat s;

	pmuk_area_stat(&rig.area, &s);
	return s;
}

/* What holds after each step. */
static void conserve(void)
{
	struct pmuk_aux_stat s = stat();

	EXPECT_EQ(s.head, rig.head);
	EXPECT_EQ(rig.ring_config.page->aux_head, rig.head);
	EXPECT_EQ(s.full + s.nested + s.discarded, rig.refused);
	EXPECT(!memcmp(rig.config.data, rig.model, SIZE));
	if (rig.config.user_tail)
		return;
	EXPECT_EQ(rig.ring_config.page->aux_tail, rig.area.tail);
	EXPECT(s.head - s.tail <= SIZE);
	if (!rig.config.overwrite)
		EXPECT_EQ(s.tail, rig.read);
}

static void tear_down(void)
{
	conserve();
	unmap_area(rig.config.data, SIZE);
	unmap_ring(&rig.ring_config);
}

static u8 byte_at(u64 pos)
{
	return ((pos + 1) * 0x9e3779b97f4a7c15ULL) >> 56;
}

/* Returns the room that there is; 0: refused. */
static u64 begin(void)
{
	struct pmuk_aux_handle *h = &rig.handle;

	if (!pmuk_area_begin(&rig.area, h)) {
		EXPECT(!h->area);
		rig.refused++;
		return 0;
	}
	EXPECT(h->area == &rig.area);
	EXPECT_EQ(h->head, rig.head);
	EXPECT(h->size && h->size <= SIZE);
	EXPECT(h->data == rig.config.data + h->head % SIZE);
	return h->size;
}

static void end(u64 size)
{
	struct pmuk_aux_handle *h = &rig.handle;
	u64 n, fits = size < h->size ? size : h->size;

	for (n = 0; n < fits; n++) {
		((u8 *)h->data)[n] = byte_at(h->head + n);
		rig.model[(h->head + n) % SIZE] = byte_at(h->head + n);
	}
	rig.head += fits;
	pmuk_area_end(h, size);
	EXPECT(!h->area);
	conserve();
}

static void skip(u64 size)
{
	EXPECT_EQ(pmuk_area_skip(&rig.handle, size), 0);
	rig.head += size;
	EXPECT_EQ(rig.handle.head, rig.head);
	EXPECT(rig.handle.data == rig.config.data + rig.head % SIZE);
	conserve();
}

static bool put(u64 size)
{
	if (!begin())
		return false;
	end(size);
	return true;
}

static bool put_flagged(u64 size, u64 flags)
{
	if (!begin())
		return false;
	pmuk_area_flag(&rig.handle, flags);
	end(size);
	return true;
}

static void claim(struct pmuk_aux_reader *r)
{
	EXPECT_EQ(pmuk_area_claim(&rig.area, r), 0);
}

/* What a span shows is what was written, or skipped, there; all of it. */
static void look(struct pmuk_aux_reader *r, struct pmuk_aux_span *span)
{
	u64 n;

	EXPECT_EQ(pmuk_area_peek(r, span), !!span->size);
	EXPECT_EQ(span->head + span->size, rig.head);
	EXPECT(span->size <= SIZE);
	if (!rig.config.overwrite)
		EXPECT_EQ(span->head, rig.read);
	for (n = 0; n < span->size; n++)
		if (((const u8 *)span->data)[n] != rig.model[(span->head + n) % SIZE])
			break;
	EXPECT_EQ(n, span->size);
}

/* Reads @bytes or all there are; returns the flags of what there was. */
static u64 get(u64 bytes)
{
	struct pmuk_aux_span span;
	struct pmuk_aux_reader r;

	claim(&r);
	look(&r, &span);
	if (bytes > span.size)
		bytes = span.size;
	pmuk_area_consume(&r, bytes);
	rig.read = span.head + bytes;
	pmuk_area_release(&r);
	conserve();
	return span.flags;
}

/* ---- records ---- */

static bool next_record(struct test_aux_record *record)
{
	struct perf_event_header *rec;
	struct pmuk_reader r;

	EXPECT_EQ(pmuk_ring_claim(&rig.ring, &r), 0);
	do {
		rec = pmuk_ring_peek(&r);
		if (rec && rec->type == PERF_RECORD_AUX) {
			EXPECT_EQ(rec->size, sizeof(*record));
			EXPECT_EQ(rec->misc, 0);
			*record = *(struct test_aux_record *)rec;
		}
		if (rec)
			pmuk_ring_consume(&r);
	} while (rec && rec->type != PERF_RECORD_AUX);
	pmuk_ring_release(&r);
	return rec;
}

static void expect_record(int line, u64 offset, u64 size, u64 flags)
{
	struct test_aux_record record = {};

	if (!next_record(&record))
		fail(__FILE__, line, "no PERF_RECORD_AUX");
	else if (record.offset != offset || record.size != size || record.flags != flags)
		fail(__FILE__, line, "told of %llu+%llu flags %llx, not of %llu+%llu flags %llx",
		     record.offset, record.size, record.flags, offset, size, flags);
}

#define EXPECT_RECORD(...)	expect_record(__LINE__, __VA_ARGS__)

static void expect_no_record(void)
{
	struct test_aux_record record;

	EXPECT(!next_record(&record));
}

/* Until nothing more fits. */
static void fill_ring(void)
{
	struct perf_event_header *rec;

	while ((rec = pmuk_output_begin(test_buffer(&rig.ring), TEST_RECORD, 16)))
		pmuk_output_end(test_buffer(&rig.ring), rec);
}

/* ---- writing ---- */

static void test_full(void)
{
	set_up();
	EXPECT_EQ(begin(), SIZE);
	end(SIZE - 1);
	EXPECT_EQ(begin(), 1);
	end(0);
	EXPECT_EQ(begin(), 1);
	end(1);
	EXPECT_EQ(begin(), 0);
	EXPECT_EQ(stat().full, 1);
	EXPECT_EQ(get(7), 0);
	EXPECT_EQ(begin(), 7);
	end(7);
	EXPECT_EQ(begin(), 0);
	EXPECT_EQ(stat().full, 2);
	get(-1);
	EXPECT_EQ(begin(), SIZE);
	end(0);
	tear_down();
}

/* Less than its producer can use is none. */
static void test_least(void)
{
	const struct pmuk_area_config config = { .least = 64 };
	u64 wakes;

	set_up_with(&config, SIZE);
	EXPECT(put(SIZE - 64));
	EXPECT_EQ(begin(), 64);
	end(1);
	wakes = rig.wakes;
	EXPECT_EQ(begin(), 0);
	EXPECT_EQ(stat().full, 1);
	EXPECT_EQ(rig.wakes, wakes + 1);
	get(1);
	EXPECT_EQ(begin(), 64);
	end(0);
	tear_down();
}

/* All sizes at all offsets: what is read is what was written, beyond the end, too. */
static void test_wrap(void)
{
	u64 n, size, laps = 0;

	set_up();
	for (n = 0; laps < 50 && !failed(); n++) {
		size = n * 7 % 611;
		EXPECT(put(size));
		laps += rig.head % SIZE < size;
		get(n % 3 ? -1ULL : size / 2);
	}
	tear_down();
}

/* One part is all of the area, at each offset that there is. */
static void test_whole_area(void)
{
	u64 offset;

	set_up();
	for (offset = 0; offset < SIZE && !failed(); offset += 61) {
		EXPECT(put(SIZE + offset - rig.head % SIZE > SIZE ?
			   offset - rig.head % SIZE : SIZE + offset - rig.head % SIZE));
		get(-1);
		EXPECT_EQ(begin(), SIZE);
		end(SIZE);
		EXPECT(!put(1));
		get(-1);
	}
	tear_down();
}

static void test_overrun(void)
{
	set_up();
	EXPECT(put(SIZE - 100));
	EXPECT_RECORD(0, SIZE - 100, 0);
	EXPECT_EQ(begin(), 100);
	end(150);
	EXPECT_EQ(stat().truncated, 50);
	EXPECT_EQ(stat().truncations, 1);
	EXPECT_RECORD(SIZE - 100, 100, TRUNCATED);
	EXPECT_EQ(get(-1), TRUNCATED);

	/* Nothing of it is left to what comes after it; and a skip is no room, either. */
	EXPECT(put(10));
	EXPECT_RECORD(SIZE, 10, 0);
	EXPECT_EQ(get(-1), 0);
	EXPECT_EQ(begin(), SIZE);
	skip(SIZE - 8);
	end(SIZE);
	EXPECT_RECORD(2 * SIZE + 2, 8, TRUNCATED);
	EXPECT_EQ(stat().truncated, 50 + SIZE - 8);
	EXPECT_EQ(begin(), 0);
	get(-1);
	EXPECT_EQ(begin(), SIZE);
	end(-1);
	EXPECT_EQ(stat().truncated, 50 + SIZE - 8 + ~0ULL - SIZE);
	EXPECT_EQ(stat().truncations, 3);
	tear_down();
}

static void test_skip(void)
{
	struct pmuk_aux_handle none = {};

	set_up();
	EXPECT_EQ(pmuk_area_skip(&none, 1), (u64)-EINVAL);
	EXPECT_EQ(begin(), SIZE);
	EXPECT_EQ(pmuk_area_skip(&rig.handle, SIZE + 1), (u64)-ENOSPC);
	EXPECT_EQ(pmuk_area_skip(&rig.handle, -1), (u64)-ENOSPC);
	EXPECT_EQ(rig.handle.size, SIZE);
	skip(0);
	skip(16);
	EXPECT_EQ(rig.handle.size, SIZE - 16);
	EXPECT_EQ(get(-1), 0);		/* published at once */
	EXPECT_EQ(rig.handle.size, SIZE - 16);
	end(100);
	EXPECT_RECORD(16, 100, 0);

	/* Only skipped: nothing to tell of. */
	EXPECT(begin());
	skip(50);
	end(0);
	expect_no_record();
	EXPECT_EQ(get(-1), 0);

	/* All of it. */
	EXPECT_EQ(begin(), SIZE);
	skip(SIZE);
	EXPECT_EQ(rig.handle.size, 0);
	EXPECT_EQ(pmuk_area_skip(&rig.handle, 1), (u64)-ENOSPC);
	end(0);
	EXPECT_EQ(begin(), 0);
	expect_no_record();
	EXPECT_EQ(pmuk_area_skip(&rig.handle, 1), (u64)-EINVAL);
	tear_down();
}

static void test_flag(void)
{
	struct pmuk_aux_handle none = {};

	set_up();
	pmuk_area_flag(&none, TRUNCATED);
	EXPECT_EQ(none.flags, 0);
	EXPECT(put_flagged(8, COLLISION | FORMAT));
	EXPECT_RECORD(0, 8, COLLISION | FORMAT);
	EXPECT(put_flagged(8, PERF_AUX_FLAG_OVERWRITE | ~0xffffULL));
	EXPECT_RECORD(8, 8, 0);
	EXPECT(put_flagged(0, 0));
	expect_no_record();
	EXPECT(put_flagged(0, PARTIAL));
	EXPECT_RECORD(16, 0, PARTIAL);
	EXPECT(put_flagged(8, TRUNCATED));
	EXPECT_RECORD(16, 8, TRUNCATED);
	EXPECT_EQ(stat().truncations, 1);
	EXPECT_EQ(stat().truncated, 0);
	/* whose format it is only records tell */
	EXPECT_EQ(get(8), COLLISION | PARTIAL | TRUNCATED);
	EXPECT_EQ(get(-1), COLLISION | PARTIAL | TRUNCATED);
	EXPECT_EQ(get(-1), 0);
	tear_down();
}

/* Whether it is open or not; the next part is told with it, once. */
static void test_lose(void)
{
	set_up();
	pmuk_area_lose(&rig.area, 5);
	EXPECT(put(8));
	EXPECT_RECORD(0, 8, TRUNCATED);
	EXPECT(put(8));
	EXPECT_RECORD(8, 8, 0);
	EXPECT_EQ(get(-1), TRUNCATED);

	EXPECT(begin());
	pmuk_area_lose(&rig.area, 6);
	end(0);
	EXPECT_RECORD(16, 0, TRUNCATED);
	EXPECT_EQ(get(-1), TRUNCATED);	/* of nothing, so it is there until something is read */
	EXPECT(put(1));
	EXPECT_EQ(get(-1), TRUNCATED);
	EXPECT(put(1));
	EXPECT_EQ(get(-1), 0);
	EXPECT_EQ(stat().truncated, 11);
	EXPECT_EQ(stat().truncations, 2);
	tear_down();
}

/* Only one at a time, however often it is tried. */
/* The first of some that is in no record, or that no reader has seen. */
static void expect_losses_wake(bool records)
{
	u64 n;

	for (n = 1; n <= 5; n++) {
		pmuk_area_lose(&rig.area, 5);
		EXPECT_EQ(rig.wakes, n);
		pmuk_area_lose(&rig.area, 5);
		EXPECT_EQ(rig.wakes, n);
		if (records)
			put(1);
		else
			get(-1);
	}
}

static void test_lose_wakes(void)
{
	const struct pmuk_area_config config = {};

	set_up();			/* a reader of records */
	expect_losses_wake(true);
	tear_down();
	set_up();			/* one of bytes, who leaves records alone */
	expect_losses_wake(false);
	tear_down();
	set_up_with(&config, 0);	/* there are none */
	expect_losses_wake(false);
	tear_down();
}

static void test_nested(void)
{
	struct pmuk_aux_handle inner;
	u64 n;

	set_up();
	for (n = 1; n <= 3; n++) {
		EXPECT_EQ(begin(), SIZE);
		memset(&inner, 0xff, sizeof(inner));
		EXPECT(!pmuk_area_begin(&rig.area, &inner));
		rig.refused++;
		EXPECT(!inner.area);
		EXPECT_EQ(stat().nested, n);
		pmuk_area_end(&inner, 100);	/* nothing */
		pmuk_area_flag(&inner, TRUNCATED);
		conserve();
		end(16);
		EXPECT_RECORD(16 * (n - 1), 16, 0);
		get(-1);
	}
	EXPECT_EQ(stat().nested, 3);
	tear_down();
}

/* ---- records, and what is there without them ---- */

/* Two parts for which there was no room are told with the third one, in one piece. */
static void test_ring_full(void)
{
	set_up();
	fill_ring();
	EXPECT(put(100));
	EXPECT(put(50));
	EXPECT(!get(30));
	expect_no_record();
	EXPECT(put(8));
	EXPECT_RECORD(0, 158, 0);
	EXPECT(put(8));
	EXPECT_RECORD(158, 8, 0);
	EXPECT_EQ(get(-1), 0);
	tear_down();
}

/* Whatever is missing in the first part, or between them, makes all of it partial. */
static void test_ring_full_partial(void)
{
	set_up();
	fill_ring();
	EXPECT(put_flagged(100, TRUNCATED));
	expect_no_record();
	EXPECT(put(8));
	EXPECT_RECORD(0, 108, TRUNCATED | PARTIAL);

	fill_ring();
	EXPECT(put(8));
	expect_no_record();
	EXPECT(begin());
	skip(16);
	end(8);
	EXPECT_RECORD(108, 32, PARTIAL);

	fill_ring();
	EXPECT(put(8));
	expect_no_record();
	pmuk_area_lose(&rig.area, 1);
	EXPECT(put(8));
	EXPECT_RECORD(140, 16, TRUNCATED | PARTIAL);

	/* A format is nothing that is missing; nor is a loss before them, or in the second. */
	fill_ring();
	pmuk_area_lose(&rig.area, 1);
	EXPECT(put_flagged(8, FORMAT));
	expect_no_record();
	EXPECT(put_flagged(8, COLLISION));
	EXPECT_RECORD(156, 16, TRUNCATED | COLLISION);
	EXPECT(put(8));
	EXPECT_RECORD(172, 8, 0);
	tear_down();
}

/* A reader that goes by records has to be told what fills the area, or it gives nothing back. */
static void test_full_untold(void)
{
	set_up();
	fill_ring();
	EXPECT(put_flagged(SIZE, COLLISION));
	EXPECT(!put(1));
	expect_no_record();
	EXPECT(!put(1));
	EXPECT_RECORD(0, SIZE, COLLISION | PARTIAL);
	EXPECT(!put(1));
	expect_no_record();
	EXPECT_EQ(stat().full, 3);
	EXPECT_EQ(get(-1), COLLISION);
	EXPECT(put(1));
	EXPECT_RECORD(SIZE, 1, 0);
	tear_down();
}

/* A reader that goes by records sleeps until it is told of something: it is woken for that. */
static void test_full_told_late(void)
{
	u64 wakes;

	set_up();
	fill_ring();
	EXPECT(put(SIZE));
	EXPECT(!put(1));
	EXPECT(!put(1));
	expect_no_record();		/* makes room */
	wakes = rig.wakes;
	EXPECT(!put(1));
	EXPECT_EQ(rig.wakes, wakes + 1);
	EXPECT(!put(1));
	EXPECT_EQ(rig.wakes, wakes + 1);
	EXPECT_RECORD(0, SIZE, 0);
	tear_down();
}

/* The same data again, which are empty: user space has unmapped them. */
static void swap_ring(void)
{
	pmuk_ring_hold(&rig.ring);
	EXPECT(put(8));
	pmuk_area_swap(&rig.area);
	pmuk_ring_reset(&rig.ring, rig.ring_config.data, rig.ring_config.size, 0);
}

/* Records that went with the ring's data are told again: all that no reader has given back. */
static void test_ring_swapped(void)
{
	set_up();
	EXPECT(put(100));
	swap_ring();
	expect_no_record();
	EXPECT(put(8));
	EXPECT_RECORD(0, 116, PARTIAL);
	EXPECT(put(8));
	EXPECT_RECORD(116, 8, 0);
	EXPECT(!get(30));
	swap_ring();
	EXPECT(put(8));
	EXPECT_RECORD(30, 110, PARTIAL);

	/* What was given back is told again only if no record has told of it. */
	EXPECT(!get(-1));
	swap_ring();
	EXPECT(!get(-1));
	EXPECT(put(8));
	EXPECT_RECORD(140, 16, 0);
	EXPECT(put(8));
	EXPECT_RECORD(156, 8, 0);
	tear_down();
}

/* A reader that goes by records would wait for ever, and so would the writer. */
static void test_ring_swapped_full(void)
{
	u64 wakes;

	set_up();
	EXPECT(put(SIZE - 8));
	EXPECT_RECORD(0, SIZE - 8, 0);
	swap_ring();
	EXPECT(!put(1));
	EXPECT_RECORD(0, SIZE, PARTIAL);
	wakes = rig.wakes;
	EXPECT(!put(1));
	expect_no_record();
	EXPECT_EQ(rig.wakes, wakes);
	EXPECT(!get(-1));
	EXPECT(put(8));
	EXPECT_RECORD(SIZE, 8, 0);
	tear_down();
}

static void test_no_ring(void)
{
	const struct pmuk_area_config config = {};
	u64 n;

	set_up_with(&config, 0);
	for (n = 0; n < 100; n++) {
		EXPECT(put_flagged(100, n & 1 ? COLLISION : 0));
		EXPECT_EQ(get(-1), n & 1 ? COLLISION : 0);
	}
	EXPECT_EQ(rig.ring.lost, 0);
	tear_down();
}

static void test_watermark(void)
{
	const struct pmuk_area_config config = { .watermark = 256 };
	u64 n;

	set_up_with(&config, 0);
	for (n = 1; n <= 640; n++) {
		EXPECT(put(48));
		EXPECT_EQ(rig.wakes, n * 48 / 256);
		get(-1);
	}
	n = rig.wakes;
	EXPECT(put(1024));	/* four at once are one */
	EXPECT_EQ(rig.wakes, n + 1);
	EXPECT(begin());
	skip(255);
	EXPECT_EQ(rig.wakes, n + 1);
	skip(1);
	EXPECT_EQ(rig.wakes, n + 2);
	end(255);
	EXPECT_EQ(rig.wakes, n + 2);
	EXPECT_EQ(stat().wakeups, n + 2);
	tear_down();
}

/* Each time that it gets full, its reader is told, and not for each that is refused then. */
static void test_full_wakes(void)
{
	u64 n, before;

	set_up();
	for (n = 0; n < 5; n++) {
		EXPECT(put(SIZE));
		before = rig.wakes;
		EXPECT(!put(1));
		EXPECT_EQ(rig.wakes, before + 1);
		EXPECT(!put(1));
		EXPECT_EQ(rig.wakes, before + 1);
		get(-1);
		next_record(&(struct test_aux_record){});
	}
	EXPECT_EQ(stat().wakeups, rig.wakes);
	tear_down();
}

/* ---- overwriting ---- */

static void test_overwrite(void)
{
	struct pmuk_aux_reader r;
	struct pmuk_aux_span span;

	set_up_overwrite();
	EXPECT(put(100));
	EXPECT_RECORD(0, 100, PERF_AUX_FLAG_OVERWRITE);
	pmuk_area_pause(&rig.area);
	claim(&r);
	look(&r, &span);
	EXPECT_EQ(span.size, 100);	/* no more than there ever was */
	pmuk_area_release(&r);
	EXPECT_EQ(pmuk_area_resume(&rig.area), 0);

	EXPECT_EQ(begin(), SIZE);
	end(SIZE);
	EXPECT_RECORD(100, SIZE, PERF_AUX_FLAG_OVERWRITE);
	EXPECT_EQ(begin(), SIZE);
	end(10);
	EXPECT_RECORD(SIZE + 100, 10, PERF_AUX_FLAG_OVERWRITE);
	EXPECT_EQ(stat().tail, 110);
	EXPECT_EQ(stat().full, 0);

	pmuk_area_pause(&rig.area);
	claim(&r);
	look(&r, &span);
	EXPECT_EQ(span.size, SIZE);
	pmuk_area_consume(&r, 96);
	look(&r, &span);
	EXPECT_EQ(span.size, SIZE - 96);
	pmuk_area_release(&r);
	EXPECT_EQ(stat().tail, 110 + 96);
	tear_down();
}

/* Of an area that overwrites, and goes on then. */
static u64 snapshot_flags(u64 consumed)
{
	struct pmuk_aux_span span;
	struct pmuk_aux_reader r;

	pmuk_area_pause(&rig.area);
	claim(&r);
	look(&r, &span);
	pmuk_area_consume(&r, consumed);
	pmuk_area_release(&r);
	EXPECT_EQ(pmuk_area_resume(&rig.area), 0);
	return span.flags;
}

/* Flags go with the bytes that they are of, though nobody has given these back. */
static void test_overwrite_flags(void)
{
	u64 n;

	set_up_overwrite();
	EXPECT(put_flagged(1000, COLLISION));
	for (n = 0; n <= 4; n++) {
		EXPECT_EQ(snapshot_flags(0), n < 4 ? COLLISION : 0);
		EXPECT(put(n == 3 ? 1096 : 1000));
	}
	/* those of no bytes come with the next ones */
	EXPECT_EQ(snapshot_flags(SIZE), 0);
	EXPECT(put_flagged(0, COLLISION));
	EXPECT(put(1));
	EXPECT_EQ(snapshot_flags(0), COLLISION);
	EXPECT(put(SIZE));
	EXPECT_EQ(snapshot_flags(0), 0);
	tear_down();
}

/* No record can tell of what was overwritten before it. */
static void test_overwrite_ring_full(void)
{
	u64 n;

	set_up_overwrite();
	fill_ring();
	for (n = 0; n < 5; n++)
		EXPECT(put(1000));
	expect_no_record();
	EXPECT(put(10));
	EXPECT_RECORD(5010 - SIZE, SIZE, PERF_AUX_FLAG_OVERWRITE);
	tear_down();
}

/* Read only while paused and closed, and not resumed while it is read. */
static void test_overwrite_claim(void)
{
	struct pmuk_aux_reader r, other;

	set_up_overwrite();
	EXPECT_EQ(pmuk_area_claim(&rig.area, &r), (u64)-EBUSY);
	EXPECT(begin());
	pmuk_area_pause(&rig.area);
	EXPECT_EQ(pmuk_area_claim(&rig.area, &r), (u64)-EBUSY);
	end(100);
	claim(&r);
	EXPECT_EQ(pmuk_area_claim(&rig.area, &other), (u64)-EBUSY);
	EXPECT_EQ(pmuk_area_resume(&rig.area), (u64)-EBUSY);
	EXPECT(!put(1));
	EXPECT_EQ(stat().discarded, 1);
	pmuk_area_release(&r);
	EXPECT_EQ(pmuk_area_resume(&rig.area), 0);
	EXPECT(put(1));
	tear_down();
}

/* ---- user space's tail ---- */

static void tell_tail(u64 tail)
{
	WRITE_ONCE(rig.ring_config.page->aux_tail, tail);
}

/* A reader that has the pages mapped, and behaves. */
static void test_user_tail(void)
{
	const struct pmuk_area_config config = { .user_tail = true };
	u64 pos = 0, head, n = 0;

	set_up_with(&config, 0);
	while (pos < 20 * SIZE && !failed()) {
		while (put(n++ * 37 % 500))
			;
		/* so that what is read is not older */
		head = smp_load_acquire(&rig.ring_config.page->aux_head);
		EXPECT_EQ(head - pos, SIZE);
		for (; pos < head && pos % 512 != n % 512; pos++)
			EXPECT_EQ(rig.config.data[pos % SIZE], byte_at(pos));
		tell_tail(pos);
		EXPECT_EQ(stat().tail, pos);
	}
	tear_down();
}

/* With this tail: what a reader who is sane would still read is not handed out. */
static void defy(u64 tail, u64 size)
{
	u64 used = rig.head - tail, room = used <= SIZE ? SIZE - used : 0;

	tell_tail(tail);
	EXPECT_EQ(begin(), room);
	if (!room)
		return;
	if (size & 1 && size / 2 <= room)
		skip(size / 2);
	end(size);
	EXPECT(rig.head - tail <= SIZE);
}

static void test_hostile_tail(void)
{
	static const u64 around[] = { 0, 1ULL << 31, 1ULL << 32, 1ULL << 62, 1ULL << 63, -1ULL };
	const struct pmuk_area_config config = { .user_tail = true };
	u64 random = 1, n, i;
	s64 delta;

	set_up_with(&config, 0);
	for (n = 0; n < 4; n++) {
		for (i = 0; i < ARRAY_SIZE(around); i++)
			for (delta = -24; delta <= 24; delta++)
				defy(around[i] + delta, n * 1000);
		for (delta = -3 * SIZE; delta <= 3 * SIZE; delta += 1 + n * 8)
			defy(rig.head + delta, 64 + n);
		defy(rig.head, -1);
	}
	for (n = 0; n < 200000 && !failed(); n++) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		defy(n % 3 ? rig.head - (random >> 32) % (2 * SIZE) : random, random >> 56);
	}
	EXPECT(stat().full > 1000 && rig.head / SIZE > 1000);
	EXPECT(stat().truncated > 1000);
	tear_down();
}

/* ---- the reader ---- */

static void test_claim(void)
{
	struct pmuk_aux_reader r, other;
	struct pmuk_aux_span span;

	set_up();
	claim(&r);
	EXPECT_EQ(pmuk_area_claim(&rig.area, &other), (u64)-EBUSY);
	EXPECT(!pmuk_area_peek(&r, &span));
	pmuk_area_consume(&r, 100);
	EXPECT(put(100));
	pmuk_area_consume(&r, 100);	/* not peeked at */
	EXPECT_EQ(stat().tail, 0);
	look(&r, &span);
	EXPECT(put(100));
	pmuk_area_consume(&r, 60);
	rig.read = 60;
	pmuk_area_consume(&r, 0);
	conserve();
	pmuk_area_consume(&r, -1);	/* what follows was not peeked at */
	rig.read = 100;
	conserve();
	pmuk_area_release(&r);
	EXPECT(!r.area);
	claim(&other);
	look(&other, &span);
	EXPECT_EQ(span.size, 100);
	pmuk_area_release(&other);
	tear_down();
}

/* One that has died in the middle: all that it had not given back is there, with its flags. */
static void test_revoke(void)
{
	struct pmuk_aux_reader dead;
	struct pmuk_aux_span span;

	set_up();
	EXPECT(put(100));
	claim(&dead);
	look(&dead, &span);
	pmuk_area_consume(&dead, 40);
	rig.read = 40;
	EXPECT(put_flagged(100, COLLISION));
	look(&dead, &span);
	EXPECT_EQ(span.flags, COLLISION);
	EXPECT_EQ(pmuk_area_claim(&rig.area, &(struct pmuk_aux_reader){}), (u64)-EBUSY);
	pmuk_area_revoke(&rig.area);
	EXPECT_EQ(get(20), COLLISION);
	EXPECT_EQ(get(-1), COLLISION);
	EXPECT_EQ(get(-1), 0);
	pmuk_area_revoke(&rig.area);	/* nobody there */
	EXPECT(put(1));
	EXPECT_EQ(get(-1), 0);
	tear_down();
}

/* What was not consumed keeps its flags, from reader to reader. */
static void test_release(void)
{
	set_up();
	EXPECT(put_flagged(100, COLLISION));
	EXPECT_EQ(get(0), COLLISION);
	EXPECT_EQ(get(0), COLLISION);
	EXPECT(put_flagged(100, PARTIAL));
	EXPECT_EQ(get(1), COLLISION | PARTIAL);
	EXPECT_EQ(get(-1), COLLISION | PARTIAL);
	EXPECT_EQ(get(0), 0);
	tear_down();
}

/* ---- anybody ---- */

static void test_pause(void)
{
	struct pmuk_aux_reader r;

	set_up();
	EXPECT(begin());
	pmuk_area_pause(&rig.area);
	pmuk_area_pause(&rig.area);
	end(100);			/* goes on to its end */
	EXPECT_RECORD(0, 100, 0);
	EXPECT(!put(1));
	EXPECT_EQ(stat().discarded, 1);
	claim(&r);
	EXPECT_EQ(pmuk_area_resume(&rig.area), 0);	/* its reader does not mind */
	EXPECT(put(1));
	pmuk_area_release(&r);
	EXPECT_EQ(pmuk_area_resume(&rig.area), 0);
	EXPECT_EQ(stat().discarded, 1);
	EXPECT_EQ(stat().full, 0);
	tear_down();
}

static void test_kill(void)
{
	set_up();
	EXPECT(put(10));
	EXPECT(!pmuk_area_kill(&rig.area));
	EXPECT_EQ(rig.gone, 0);
	EXPECT(!put(10));
	pmuk_area_pause(&rig.area);
	EXPECT_EQ(pmuk_area_resume(&rig.area), 0);
	EXPECT(!put(10));
	EXPECT_EQ(stat().discarded, 2);
	EXPECT_EQ(get(-1), 0);		/* what is there can be read */
	EXPECT_EQ(rig.gone, 0);
	tear_down();
}

/* Its writer goes on to its end, wakes nobody, and lets go of it once. */
static void test_kill_open(void)
{
	set_up();
	EXPECT(begin());
	EXPECT(pmuk_area_kill(&rig.area));
	EXPECT_EQ(rig.gone, 0);
	EXPECT(!pmuk_area_begin(&rig.area, &(struct pmuk_aux_handle){}));
	rig.refused++;
	EXPECT_EQ(rig.gone, 0);
	skip(SIZE / 2);
	end(SIZE / 2);
	EXPECT_EQ(rig.gone, 1);
	EXPECT_EQ(rig.wakes, 0);
	pmuk_area_end(&rig.handle, 100);
	EXPECT(!put(10));
	EXPECT_EQ(rig.gone, 1);
	EXPECT_EQ(stat().nested, 1);
	EXPECT_EQ(stat().discarded, 1);
	EXPECT_RECORD(SIZE / 2, SIZE / 2, 0);
	tear_down();
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "full", test_full },
		{ "least", test_least },
		{ "wrap", test_wrap },
		{ "whole_area", test_whole_area },
		{ "overrun", test_overrun },
		{ "skip", test_skip },
		{ "flag", test_flag },
		{ "lose", test_lose },
		{ "lose_wakes", test_lose_wakes },
		{ "nested", test_nested },
		{ "ring_full", test_ring_full },
		{ "ring_full_partial", test_ring_full_partial },
		{ "full_untold", test_full_untold },
		{ "full_told_late", test_full_told_late },
		{ "ring_swapped", test_ring_swapped },
		{ "ring_swapped_full", test_ring_swapped_full },
		{ "no_ring", test_no_ring },
		{ "watermark", test_watermark },
		{ "full_wakes", test_full_wakes },
		{ "overwrite", test_overwrite },
		{ "overwrite_flags", test_overwrite_flags },
		{ "overwrite_ring_full", test_overwrite_ring_full },
		{ "overwrite_claim", test_overwrite_claim },
		{ "user_tail", test_user_tail },
		{ "hostile_tail", test_hostile_tail },
		{ "claim", test_claim },
		{ "revoke", test_revoke },
		{ "release", test_release },
		{ "pause", test_pause },
		{ "kill", test_kill },
		{ "kill_open", test_kill_open },
	};

	return run_tests(tests, ARRAY_SIZE(tests), argc, argv);
}
