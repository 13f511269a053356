/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rules of an AUX area let a writer and a reader take turns. Each rule is a table of steps. A
 * step says how it changes the area's counts; all other counts stay. Between steps, the area has
 * the bytes that were written, and there is as much room as was given back.
 */
#ifndef _PMUK_AUX_RULES_H
#define _PMUK_AUX_RULES_H

#include "pmuk_rules.h"

#define TRUNCATED	PERF_AUX_FLAG_TRUNCATED
#define PARTIAL		PERF_AUX_FLAG_PARTIAL
#define COLLISION	PERF_AUX_FLAG_COLLISION
#define OVERWRITE	PERF_AUX_FLAG_OVERWRITE
#define FORMAT		(0x11ULL << 8)	/* an AUX format of the PMU */
#define TOLD		(TRUNCATED | PARTIAL | COLLISION)	/* flags for readers of bytes */

#define AREA		(2 * SIZE)	/* two pages: parts cross a page boundary */
#define AUX_PERIOD	251	/* a prime: bytes that are a power of two apart differ */

struct aux_rig;

struct aux_step {
	void (*op)(struct aux_rig *rig, const struct aux_step *s);	/* see "steps" below */
	u64 arg;
	u64 n;
	u64 flags;
	/*
	 * Each step adds these to the area's counts, and to the losses that records have reported.
	 */
	u64 full;
	u64 nested;
	u64 discarded;
	u64 truncated;
	u64 truncations;
	u64 lost;
	u64 wakes;	/* ignored unless the rule sets a watermark */
};

struct aux_rig {
	struct kunit *test;
	struct pmuk_buffer *b;
	struct pmuk_ring *ring;
	const struct pmuk_buffer_attr *attr;
	const u8 *data;
	bool failed;
	unsigned int at;	/* index of the step */
	struct pmuk_aux_handle handle;
	u64 base;		/* positions in steps are from here on */
	u64 head;
	u64 given;		/* the reader has given back all bytes before this */
	u64 refused;
	u64 told;		/* sum over the PERF_RECORD_LOST that were read */
	u64 others;		/* records of other writers that were read */
	struct pmuk_aux_reader readers[2];
	u64 shown[2];		/* each reader has peeked at all bytes before this */
	u8 pattern[AREA + AUX_PERIOD];
	u8 model[AREA];	/* expected content of the area */
};

struct aux_rule {
	const char *name;
	struct pmuk_buffer_attr attr;
	unsigned int times;
	const struct aux_step *steps;
	unsigned int nr_steps;
	void (*run)(struct aux_rig *rig);	/* if set, replaces the steps */
};

struct aux_record {
	struct perf_event_header header;
	u64 offset;
	u64 size;
	u64 flags;
};

static inline struct pmuk_aux_stat aux_stat(struct aux_rig *rig)
{
	struct pmuk_aux_stat stat = {};

	RULE_EQ(rig, pmuk_aux_get_stat(rig->b, &stat), 0);
	return stat;
}

static bool aux_has_user_tail(const struct aux_rig *rig)
{
	return rig->attr->flags & PMUK_BUFFER_USER_TAIL;
}

/* Returns the position of the oldest byte that can be read. */
static u64 aux_oldest(const struct aux_rig *rig)
{
	bool gone = rig->attr->aux.overwrite && rig->head - rig->given > AREA;

	return gone ? rig->head - AREA : rig->given;
}

static u64 aux_room(const struct aux_rig *rig)
{
	u64 tail = aux_has_user_tail(rig) ? rig->ring->page->aux_tail : rig->given;
	u64 used = rig->head - tail;

	if (rig->attr->aux.overwrite)
		return AREA;
	return used <= AREA ? AREA - used : 0;
}

/* ---- the writer ---- */

static bool aux_begin(struct aux_rig *rig)
{
	struct pmuk_aux_handle *h = &rig->handle;
	const void *begun;

	rule_enter();
	begun = pmuk_aux_output_begin(h, rig->b);
	rule_leave();
	RULE_EXPECT(rig, pmuk_get_aux(h) == begun);
	if (!begun) {
		rig->refused++;
		return false;
	}
	RULE_EQ(rig, h->head, rig->head);
	RULE_EQ(rig, h->size, aux_room(rig));
	RULE_EXPECT(rig, h->data == rig->data + h->head % AREA);
	return true;
}

/* Writes the bytes that fit. */
static void aux_write(struct aux_rig *rig, u64 size)
{
	const u8 *bytes = rig->pattern + rig->head % AUX_PERIOD;
	u64 at = rig->head % AREA, first = min_t(u64, size, AREA - at);

	memcpy(rig->handle.data, bytes, size);
	memcpy(rig->model + at, bytes, first);
	memcpy(rig->model, bytes + first, size - first);
	rig->head += size;
}

static void aux_end(struct aux_rig *rig, u64 size)
{
	struct pmuk_aux_handle *h = &rig->handle;

	aux_write(rig, min_t(u64, size, h->size));
	rule_enter();
	pmuk_aux_output_end(h, size);
	rule_leave();
	RULE_EXPECT(rig, !pmuk_get_aux(h));
}

static bool aux_put(struct aux_rig *rig, u64 size, u64 flags)
{
	if (!aux_begin(rig))
		return false;
	pmuk_aux_output_flag(&rig->handle, flags);
	aux_end(rig, size);
	return true;
}

static void aux_skip(struct aux_rig *rig, u64 size, int wanted)
{
	struct pmuk_aux_handle *h = &rig->handle, before = *h;

	rule_enter();
	RULE_EQ(rig, pmuk_aux_output_skip(h, size), wanted);
	rule_leave();
	if (wanted)
		size = 0;
	rig->head += size;
	RULE_EQ(rig, h->head, before.head + size);
	RULE_EQ(rig, h->size, before.size - size);
	if (size)
		RULE_EXPECT(rig, h->data == rig->data + rig->head % AREA);
}

/* ---- the reader ---- */

static bool aux_claim(struct aux_rig *rig, unsigned int reader, int wanted)
{
	RULE_EQ(rig, pmuk_aux_claim(rig->b, &rig->readers[reader]), wanted);
	if (!wanted)
		rig->shown[reader] = rig->given;
	return !rig->failed;
}

/* Returns how many bytes can be read: all that were written and not given back. */
static u64 aux_peek(struct aux_rig *rig, unsigned int reader, u64 flags)
{
	u64 oldest = aux_oldest(rig), at = oldest % AREA, first;
	struct pmuk_aux_span span;

	RULE_EQ(rig, pmuk_aux_peek(&rig->readers[reader], &span), rig->head != oldest);
	RULE_EQ(rig, span.head, oldest);
	RULE_EQ(rig, span.size, rig->head - oldest);
	RULE_COUNT(rig, span.flags, flags);
	RULE_EXPECT(rig, span.data == rig->data + at);
	if (rig->failed)
		return 0;
	first = min_t(u64, span.size, AREA - at);
	RULE_EXPECT(rig, !memcmp(span.data, rig->model + at, first));
	RULE_EXPECT(rig, !memcmp(span.data + first, rig->model, span.size - first));
	rig->shown[reader] = rig->head;
	return span.size;
}

/* Consumes only bytes that a peek has shown. */
static void aux_consume(struct aux_rig *rig, unsigned int reader, u64 bytes)
{
	u64 from = max_t(u64, rig->given, min_t(u64, aux_oldest(rig), rig->shown[reader]));

	pmuk_aux_consume(&rig->readers[reader], bytes);
	bytes = min_t(u64, bytes, rig->shown[reader] - from);
	if (bytes)
		rig->given = from + bytes;
}

static void aux_get(struct aux_rig *rig, u64 bytes, u64 flags)
{
	if (!aux_claim(rig, 1, 0))
		return;
	aux_peek(rig, 1, flags);
	aux_consume(rig, 1, bytes);
	pmuk_aux_release(&rig->readers[1]);
}

/* Reads up to the next PERF_RECORD_AUX, and returns whether there was one. */
static bool aux_next_record(struct aux_rig *rig, struct aux_record *record)
{
	const struct perf_event_header *rec;
	struct pmuk_reader r;
	bool found = false;

	RULE_EQ(rig, pmuk_buffer_claim(rig->b, &r), 0);
	if (rig->failed)
		return false;
	while (!found && (rec = pmuk_buffer_peek(&r))) {
		found = rec->type == PERF_RECORD_AUX;
		if (found)
			*record = *(const struct aux_record *)rec;
		if (rec->type == PERF_RECORD_LOST)
			rig->told += ((const struct aux_record *)rec)->size;
		rig->others += rec->type == RULE_RECORD;
		pmuk_buffer_consume(&r);
	}
	pmuk_buffer_release(&r);
	return found;
}

/* Writes a record that is not about the area. */
static void aux_other(struct aux_rig *rig, u32 size)
{
	struct perf_event_header *rec;

	rule_enter();
	rec = pmuk_output_begin(rig->b, RULE_RECORD, size);
	RULE_EXPECT(rig, rec);
	if (rec)
		pmuk_output_end(rig->b, rec);
	rule_leave();
}

/* ---- what holds after each step ---- */

static void aux_check(struct aux_rig *rig)
{
	struct pmuk_aux_stat s = aux_stat(rig);
	struct pmuk_buffer_stat records = {};

	RULE_EQ(rig, s.head, rig->head);
	RULE_EQ(rig, rig->ring->page->aux_head, rig->head);
	RULE_EQ(rig, s.full + s.nested + s.discarded, rig->refused);
	RULE_EXPECT(rig, !memcmp(rig->data, rig->model, AREA));
	rule_check_wakes(rig);
	if (!aux_has_user_tail(rig)) {
		RULE_EQ(rig, s.tail, aux_oldest(rig));
		RULE_EQ(rig, rig->ring->page->aux_tail, rig->given);
	}
	RULE_EQ(rig, pmuk_buffer_get_stat(rig->b, &records), 0);
	if (!rig->attr->nr_pages)
		RULE_EQ(rig, records.head + records.lost + records.discarded, 0);
}

/* ---- steps ---- */

#define AUX_OP(name, what) \
	static void name(struct aux_rig *rig, const struct aux_step *s) { what; }

/* Returns whether the step says that the area refuses its writer. */
static bool aux_refuses(const struct aux_step *s)
{
	return s->full || s->nested || s->discarded;
}

/* Write @arg bytes with @flags, @n times (or once). */
static void put(struct aux_rig *rig, const struct aux_step *s)
{
	u64 n;

	for (n = 0; n < (s->n ?: 1); n++)
		RULE_EQ(rig, aux_put(rig, s->arg, s->flags), !aux_refuses(s));
}

/* Begins a part, or is refused if the step says so. */
AUX_OP(begin, RULE_EQ(rig, aux_begin(rig), !aux_refuses(s)))
/* Ends the part with @arg bytes. */
AUX_OP(end, aux_end(rig, s->arg))

/* While a part is open, no other begins, and a handle that was not begun ends nothing. */
static void begin_inside(struct aux_rig *rig, const struct aux_step *s)
{
	struct pmuk_aux_handle inner;

	memset(&inner, 0xff, sizeof(inner));
	rule_enter();
	RULE_EXPECT(rig, !pmuk_aux_output_begin(&inner, rig->b));
	RULE_EXPECT(rig, !pmuk_get_aux(&inner));
	pmuk_aux_output_flag(&inner, TRUNCATED);
	RULE_EQ(rig, pmuk_aux_output_skip(&inner, 1), -EINVAL);
	pmuk_aux_output_end(&inner, 100);
	rule_leave();
	rig->refused++;
}

/* Skips @arg bytes. The call returns @n. */
AUX_OP(skip, aux_skip(rig, s->arg, s->n))
AUX_OP(flag, pmuk_aux_output_flag(&rig->handle, s->flags))

/* Lose @arg bytes. */
static void lose(struct aux_rig *rig, const struct aux_step *s)
{
	rule_enter();
	pmuk_aux_output_lose(rig->b, s->arg);
	rule_leave();
}

/* Claim, peek, give back up to @arg bytes, and release. The bytes have @flags. */
AUX_OP(get, aux_get(rig, s->arg, s->flags))

/* Pause, get and resume. */
static void snapshot(struct aux_rig *rig, const struct aux_step *s)
{
	RULE_EQ(rig, pmuk_aux_pause(rig->b), 0);
	aux_get(rig, s->arg, s->flags);
	RULE_EQ(rig, pmuk_aux_resume(rig->b), 0);
}

/* Reader @arg claims the area. The call returns @n. */
AUX_OP(claim, aux_claim(rig, s->arg, s->n))
/* Reader @arg finds @n bytes with @flags. */
AUX_OP(peek, RULE_EQ(rig, aux_peek(rig, s->arg, s->flags), s->n))
/* Reader @arg gives back up to @n bytes. */
AUX_OP(consume, aux_consume(rig, s->arg, s->n))
AUX_OP(release, pmuk_aux_release(&rig->readers[s->arg]))
AUX_OP(pause, RULE_EQ(rig, pmuk_aux_pause(rig->b), 0))
/* Resumes the area. The call returns @n. */
AUX_OP(resume, RULE_EQ(rig, pmuk_aux_resume(rig->b), s->n))

/* The next PERF_RECORD_AUX reports @n bytes at @arg, with @flags. */
static void record(struct aux_rig *rig, const struct aux_step *s)
{
	struct aux_record rec = {};

	RULE_EXPECT(rig, aux_next_record(rig, &rec));
	RULE_EQ(rig, rec.header.size, sizeof(rec));
	RULE_EQ(rig, rec.header.misc, 0);
	RULE_EQ(rig, rec.offset - rig->base, s->arg);
	RULE_EQ(rig, rec.size, s->n);
	RULE_EQ(rig, rec.flags, s->flags);
}

/* There is no PERF_RECORD_AUX. This step empties the ring. */
static void no_record(struct aux_rig *rig, const struct aux_step *s)
{
	struct aux_record rec;

	RULE_EXPECT(rig, !aux_next_record(rig, &rec));
}

/* The ring has no PERF_RECORD_AUX, but @n other records. */
static void others_only(struct aux_rig *rig, const struct aux_step *s)
{
	u64 before = rig->others;

	no_record(rig, s);
	RULE_EQ(rig, rig->others - before, s->n);
}

/* Writes @n records (or one) of @arg bytes that are not about the area. */
static void other(struct aux_rig *rig, const struct aux_step *s)
{
	u64 n;

	for (n = 0; n < (s->n ?: 1); n++)
		aux_other(rig, s->arg);
}

AUX_OP(pause_ring, RULE_EQ(rig, pmuk_buffer_pause(rig->b), 0))
AUX_OP(resume_ring, RULE_EQ(rig, pmuk_buffer_resume(rig->b), 0))

#define FILL_RING	{ other, SIZE }		/* no other record fits */

/* ---- tables: writing ---- */

static const struct aux_step aux_full[] = {
	{ begin }, { end, AREA - 1 }, { begin }, { end, 0 }, { begin }, { end, 1 },
	{ begin, .full = 1 }, { get, 7 },
	{ begin }, { end, 7 }, { begin, .full = 1 }, { get, ALL },
	{ record, 0, AREA - 1 }, { record, AREA - 1, 1 }, { record, AREA, 7 }, { no_record },
};

/* A room that is smaller than the producer can use counts as full. */
static const struct aux_step aux_least[] = {
	{ put, AREA - 64, .wakes = 1 }, { begin }, { end, 1 },
	{ put, 1, .full = 1, .wakes = 1 }, { get, 1 }, { begin }, { end, 0 },
};

/* A part takes all of the area, at each offset. */
static const struct aux_step aux_whole_area[] = {
	{ put, AREA }, { put, 1, .full = 1 }, { get, ALL }, { record, 0, AREA },
	{ put, 61 }, { get, ALL }, { record, AREA, 61 },
};

/* The reader sees nothing of a part before it ends. */
static const struct aux_step aux_open[] = {
	{ begin }, { get, ALL }, { no_record }, { end, 64 }, { record, 0, 64 }, { get, ALL },
	{ put, 0 }, { begin }, { end, 0 }, { no_record },
};

/*
 * The record of a part that follows a loss does not report that loss again. Skipped bytes leave no
 * room, either.
 */
static const struct aux_step aux_overrun[] = {
	{ put, AREA - 100 }, { record, 0, AREA - 100 },
	{ put, 150, .truncated = 50, .truncations = 1 }, { record, AREA - 100, 100, TRUNCATED },
	{ get, ALL, .flags = TRUNCATED },
	{ put, 10 }, { record, AREA, 10 }, { get, ALL },
	{ begin }, { skip, AREA - 8 }, { end, AREA, .truncated = AREA - 8, .truncations = 1 },
	{ record, 2 * AREA + 2, 8, TRUNCATED }, { begin, .full = 1 },
	{ get, ALL, .flags = TRUNCATED },
	{ put, ALL, .truncated = ALL - AREA, .truncations = 1 },
	{ record, 2 * AREA + 10, AREA, TRUNCATED }, { get, ALL, .flags = TRUNCATED },
};

/* Skipped bytes are published at once, and no record reports them. */
static const struct aux_step aux_skip_rule[] = {
	{ skip, 1, -EINVAL },
	{ begin }, { skip, AREA + 1, -ENOSPC }, { skip, -1ULL, -ENOSPC }, { skip, 0 }, { skip, 16 },
	{ get, ALL }, { end, 100 }, { record, 16, 100 },
	{ begin }, { skip, 50 }, { end, 0 }, { no_record }, { get, ALL },
	{ begin }, { skip, AREA }, { skip, 1, -ENOSPC }, { skip, 0 }, { end, 0 },
	{ begin, .full = 1 }, { skip, 0, -EINVAL }, { no_record }, { get, ALL },
};

static const struct aux_step aux_flag[] = {
	{ flag, .flags = TRUNCATED },
	{ put, 8, .flags = COLLISION | FORMAT }, { record, 0, 8, COLLISION | FORMAT },
	{ flag, .flags = PARTIAL },	/* no part is open any more */
	{ put, 8, .flags = OVERWRITE | BIT(20) | BIT(63) }, { record, 8, 8 },
	{ put, 0 }, { no_record },
	{ put, 0, .flags = PARTIAL }, { record, 16, 0, PARTIAL },
	{ put, 8, .flags = TRUNCATED, .truncations = 1 }, { record, 16, 8, TRUNCATED },
	/* The format is in records only. */
	{ get, 8, .flags = TOLD }, { get, ALL, .flags = TOLD }, { get, ALL },
	{ put, 8, .flags = ALL, .truncations = 1 },
	{ record, 24, 8, TOLD | PERF_AUX_FLAG_PMU_FORMAT_TYPE_MASK }, { get, ALL, .flags = TOLD },
};

static const struct aux_step aux_flag_once[] = {
	{ put, 10, .flags = TRUNCATED, .truncations = 1 }, { record, 0, 10, TRUNCATED },
	{ get, ALL, .flags = TRUNCATED }, { put, 10 }, { record, 10, 10 }, { get, ALL },
	{ put, 10, .flags = PARTIAL }, { record, 20, 10, PARTIAL },
	{ get, ALL, .flags = PARTIAL }, { put, 10 }, { record, 30, 10 }, { get, ALL },
	{ put, 10, .flags = COLLISION }, { record, 40, 10, COLLISION },
	{ get, ALL, .flags = COLLISION }, { put, 10 }, { record, 50, 10 }, { get, ALL },
	{ put, 10, .flags = FORMAT }, { record, 60, 10, FORMAT },
	{ get, ALL }, { put, 10 }, { record, 70, 10 }, { get, ALL },
};

/* The next record reports the loss, once, whether the area was open or not. */
static const struct aux_step aux_lose[] = {
	{ lose, 5, .truncated = 5, .truncations = 1 }, { no_record },
	{ put, 8 }, { record, 0, 8, TRUNCATED }, { put, 8 }, { record, 8, 8 },
	{ get, ALL, .flags = TRUNCATED },
	{ begin }, { lose, 6, .truncated = 6, .truncations = 1 }, { end, 0 },
	{ record, 16, 0, TRUNCATED },
	{ get, ALL, .flags = TRUNCATED },	/* flags of no bytes stay until bytes are read */
	{ put, 1 }, { get, ALL, .flags = TRUNCATED }, { put, 1 }, { get, ALL },
	{ record, 16, 1 }, { record, 17, 1 },
	{ lose, 5, .truncated = 5, .truncations = 1 },
	{ begin }, { lose, 6, .truncated = 6, .truncations = 1 }, { end, 8 },
	{ record, 18, 8, TRUNCATED }, { get, ALL, .flags = TRUNCATED },
};

/* A loss wakes the reader if no record reports an earlier loss yet, or no reader has seen one. */
static const struct aux_step aux_lose_records[] = {
	{ lose, 5, .truncated = 5, .truncations = 1, .wakes = 1 },
	{ lose, 5, .truncated = 5, .truncations = 1 }, { put, 1 },
};

static const struct aux_step aux_lose_bytes[] = {
	{ lose, 5, .truncated = 5, .truncations = 1, .wakes = 1 },
	{ lose, 5, .truncated = 5, .truncations = 1 }, { get, ALL, .flags = TRUNCATED },
};

static const struct aux_step aux_nested[] = {
	{ begin }, { begin_inside, .nested = 1 }, { begin_inside, .nested = 1 }, { end, 16 },
	{ record, 0, 16 }, { get, ALL },
};

/* ---- tables: records, and what is there without them ---- */

/* Other records may be written and read between a begin and its end. */
static const struct aux_step aux_records[] = {
	{ begin }, { other, 16, 5 }, { other, 88, 5 }, { others_only, .n = 10 },
	{ other, 24, 10 }, { others_only, .n = 10 }, { end, 40 }, { record, 0, 40 }, { get, ALL },
};

/* The next record reports all parts that no record has reported, even if its own part is empty. */
static const struct aux_step aux_ring_full[] = {
	FILL_RING, { put, 100 }, { put, 50, 18 }, { get, 30 }, { no_record },
	{ put, 8 }, { record, 0, 1008, .lost = 19 }, { put, 8 }, { record, 1008, 8 }, { get, ALL },
	FILL_RING, { put, 33 }, { no_record }, { put, 0 }, { record, 1016, 33, .lost = 1 },
	{ get, ALL },
};

/* A gap in the first part, or between the parts, makes the whole report partial. */
static const struct aux_step aux_ring_full_partial[] = {
	FILL_RING, { put, 100, .flags = TRUNCATED, .truncations = 1 }, { no_record },
	{ put, 8 }, { record, 0, 108, TRUNCATED | PARTIAL, .lost = 1 },
	FILL_RING, { put, 8 }, { no_record }, { begin }, { skip, 16 }, { end, 8 },
	{ record, 108, 32, PARTIAL, .lost = 1 },
	FILL_RING, { put, 8 }, { no_record }, { lose, 1, .truncated = 1, .truncations = 1 },
	{ put, 8 }, { record, 140, 16, TRUNCATED | PARTIAL, .lost = 1 },
	/*
	 * No byte of the next two parts is missing, so their record is not PARTIAL: the first part
	 * has a format, the loss came before both parts, and the second part has a collision.
	 */
	FILL_RING, { lose, 1, .truncated = 1, .truncations = 1 }, { put, 8, .flags = FORMAT },
	{ no_record },
	{ put, 8, .flags = COLLISION }, { record, 156, 16, TRUNCATED | COLLISION, .lost = 1 },
	{ put, 8 }, { record, 172, 8 }, { get, ALL, .flags = TRUNCATED | COLLISION },
	/* Flags of one of three parts make the report partial. */
	FILL_RING, { put, 10, .flags = COLLISION }, { put, 10 }, { no_record },
	{ put, 10, .flags = FORMAT },
	{ record, 180, 30, COLLISION | FORMAT | PARTIAL, .lost = 2 },
	{ get, ALL, .flags = COLLISION },
};

static const struct aux_step aux_gap[] = {
	FILL_RING, { begin }, { skip, 16 }, { end, 10 }, { no_record },
	{ begin }, { skip, 6 }, { end, 10 }, { record, 16, 26, PARTIAL, .lost = 1 },
	{ begin }, { skip, 8 }, { end, 10 }, { record, 50, 10 }, { get, ALL },
	/* A gap before the first part is not counted as one. */
	FILL_RING, { begin }, { skip, 16 }, { end, 10 }, { put, 10 }, { no_record },
	{ put, 10 }, { record, 76, 30, .lost = 2 }, { get, ALL },
};

static const struct aux_step aux_ring_paused[] = {
	{ pause_ring }, { put, 10, 2 }, { get, ALL }, { resume_ring },
	{ put, 10 }, { record, 0, 30 }, { get, ALL },
};

/*
 * A reader that goes by records gives nothing back before a record reports the bytes. So a full
 * area tries to write that record again, once the reader has made room in the ring. The record that
 * was lost counts once.
 */
static const struct aux_step aux_full_untold[] = {
	FILL_RING, { put, AREA, .flags = COLLISION }, { put, 1, .full = 1 }, { no_record },
	{ put, 1, .full = 1 }, { record, 0, AREA, COLLISION | PARTIAL, .lost = 1 },
	{ put, 1, .full = 1 }, { no_record }, { get, ALL, .flags = COLLISION },
	{ put, 1 }, { record, AREA, 1 }, { get, ALL },
};

/* A reader that goes by records sleeps until a record reports bytes. So that record wakes it. */
static const struct aux_step aux_full_told_late[] = {
	FILL_RING, { put, AREA, .wakes = 1 },
	{ put, 1, .full = 1, .wakes = 1 }, { put, 1, .full = 1 }, { no_record },
	{ put, 1, .full = 1, .wakes = 1 }, { put, 1, .full = 1 }, { record, 0, AREA, .lost = 1 },
};

static const struct aux_step aux_no_ring[] = {
	{ put, 100 }, { get, ALL },
	{ put, 33, .flags = COLLISION }, { get, ALL, .flags = COLLISION },
};

/* Bytes that are published at once wake once, however many watermarks they pass. */
static const struct aux_step aux_watermark[] = {
	{ put, 48, 5 }, { put, 48, .wakes = 1 }, { put, 48, 4 }, { put, 48, .wakes = 1 },
	{ put, 48, 4 }, { put, 48, .wakes = 1 }, { get, ALL },
	{ put, 1024, .wakes = 1 },
	{ begin }, { skip, 255 }, { skip, 1, .wakes = 1 }, { end, 255 }, { put, 1, .wakes = 1 },
	{ get, ALL },
};

/* The reader is woken each time that the area gets full, and not for each refusal. */
static const struct aux_step aux_full_wakes[] = {
	{ put, AREA, .wakes = 1 }, { put, 1, .full = 1, .wakes = 1 }, { put, 1, .full = 1 },
	{ get, 1 }, { put, 1 }, { put, 1, .full = 1, .wakes = 1 }, { put, 1, .full = 1 },
	{ get, ALL }, { record, 0, AREA }, { record, AREA, 1 }, { put, AREA - 1, .wakes = 1 },
	{ get, ALL }, { record, AREA + 1, AREA - 1 },
};

/* ---- tables: overwriting ---- */

static const struct aux_step aux_overwrite[] = {
	{ put, 100 }, { record, 0, 100, OVERWRITE },
	{ pause }, { claim, 0 }, { peek, 0, 100 }, { release, 0 }, { resume },
	{ put, AREA }, { record, 100, AREA, OVERWRITE },
	{ put, 10 }, { record, AREA + 100, 10, OVERWRITE }, { put, 0 }, { no_record },
	{ put, AREA + 3, .truncated = 3, .truncations = 1 },
	{ record, AREA + 110, AREA, OVERWRITE | TRUNCATED },
	/* The next snapshot begins behind the bytes that were given back. */
	{ pause }, { claim, 0 }, { peek, 0, AREA, TRUNCATED }, { consume, 0, 96 },
	{ peek, 0, AREA - 96, TRUNCATED }, { release, 0 }, { resume },
	{ snapshot, ALL, .flags = TRUNCATED },
};

/* Flags go when their bytes are overwritten, though nobody has given these bytes back. */
static const struct aux_step aux_overwrite_flags[] = {
	{ put, AREA / 4, .flags = COLLISION }, { snapshot, 0, .flags = COLLISION },
	{ put, AREA / 4 }, { snapshot, 0, .flags = COLLISION },
	{ put, AREA / 2 }, { snapshot, 0, .flags = COLLISION },
	{ put, AREA / 4 - 1 }, { snapshot, 0, .flags = COLLISION },
	{ put, 1 }, { snapshot, 0 },
	/* Flags of no bytes come with the next bytes. */
	{ snapshot, ALL }, { put, 0, .flags = COLLISION },
	{ put, 1 }, { snapshot, 0, .flags = COLLISION }, { put, AREA }, { snapshot, 0 },
};

/* No record can report bytes that were overwritten before the record was written. */
static const struct aux_step aux_overwrite_ring_full[] = {
	FILL_RING, { put, AREA / 4, 5 }, { no_record },
	{ put, 10 }, { record, AREA / 4 + 10, AREA, OVERWRITE, .lost = 5 },
};

/*
 * An area that overwrites is read only while it is paused and closed, and not resumed while it is
 * read.
 */
static const struct aux_step aux_overwrite_claim[] = {
	{ claim, 0, -EBUSY }, { begin }, { claim, 0, -EBUSY }, { pause }, { claim, 0, -EBUSY },
	{ end, 100 }, { claim, 0 }, { claim, 1, -EBUSY }, { resume, .n = -EBUSY },
	{ put, 1, .discarded = 1 }, { release, 0 }, { put, 1, .discarded = 1 },
	{ resume }, { claim, 0, -EBUSY }, { put, 1 }, { snapshot, ALL },
};

/* ---- tables: the reader ---- */

/* A reader gives back no bytes that it has not seen. */
static const struct aux_step aux_claim_rule[] = {
	{ claim, 0 }, { claim, 1, -EBUSY }, { peek, 0, 0 }, { consume, 0, 100 },
	{ put, 100 }, { consume, 0, 100 }, { peek, 0, 100 }, { put, 100 },
	{ consume, 0, 60 }, { consume, 0, 0 }, { consume, 0, ALL }, { consume, 0, 1 },
	{ release, 0 }, { claim, 1 }, { peek, 1, 100 }, { release, 1 }, { get, ALL },
};

/* Each peek shows all bytes in one row, beyond the end of the area, too. */
static const struct aux_step aux_peek_again[] = {
	{ put, AREA - 96 }, { get, ALL }, { claim, 0 }, { peek, 0, 0 },
	{ put, 40 }, { peek, 0, 40 }, { put, 40 }, { peek, 0, 80 }, { put, 100 }, { peek, 0, 180 },
	{ release, 0 }, { get, ALL },
};

/* A reader is released: the next reader finds all that was not given back, with its flags. */
static const struct aux_step aux_released[] = {
	{ put, 100 }, { claim, 0 }, { peek, 0, 100 }, { consume, 0, 40 },
	{ put, 100, .flags = COLLISION }, { peek, 0, 160, COLLISION }, { claim, 1, -EBUSY },
	{ release, 0 },
	{ get, 20, .flags = COLLISION }, { get, ALL, .flags = COLLISION }, { get, ALL },
	{ put, 1 }, { get, ALL },
};

/* Bytes that nobody has consumed keep their flags when the reader changes. */
static const struct aux_step aux_release[] = {
	{ put, 100, .flags = COLLISION },
	{ get, 0, .flags = COLLISION }, { get, 0, .flags = COLLISION },
	{ put, 100, .flags = PARTIAL },
	{ get, 1, .flags = COLLISION | PARTIAL }, { get, ALL, .flags = COLLISION | PARTIAL },
	{ get, 0 },
};

/* Flags that have come after a peek stay when the bytes of that peek are given back. */
static const struct aux_step aux_flags_shown[] = {
	{ claim, 0 }, { put, 10, .flags = COLLISION },
	{ peek, 0, 10, COLLISION }, { peek, 0, 10, COLLISION }, { put, 10, .flags = PARTIAL },
	{ consume, 0, 10 }, { peek, 0, 10, PARTIAL }, { release, 0 },
	{ get, ALL, .flags = PARTIAL },
};

/* A pause lets the open part go on to its end. The area can be resumed while it is read. */
static const struct aux_step aux_pause[] = {
	{ begin }, { pause }, { pause }, { end, 100 }, { record, 0, 100 },
	{ put, 1, .discarded = 1 }, { put, 1, .discarded = 1 }, { other, 16 }, { get, 50 },
	{ claim, 0 }, { resume }, { put, 1 }, { release, 0 }, { resume }, { record, 100, 1 },
	{ get, ALL },
};

/* ---- what is no table ---- */

/* Parts and gaps have random sizes. An area that overwrites is paused to be read. */
static void aux_random(struct aux_rig *rig)
{
	bool overwrite = rig->attr->aux.overwrite;
	u64 random = 5, n;

	for (n = 0; n < 3000 && !rig->failed; n++) {
		if (aux_begin(rig)) {
			if (rule_random(&random) % 4 == 0)
				aux_skip(rig, rule_random(&random) % (rig->handle.size + 1), 0);
			aux_end(rig, rule_random(&random) % 1500);
		}
		aux_check(rig);
		rule_rest();
		if (rule_random(&random) % 3)
			continue;
		if (overwrite)
			pmuk_aux_pause(rig->b);
		aux_get(rig, rule_random(&random) % 2 ? ALL : 700, ANY);
		if (overwrite)
			pmuk_aux_resume(rig->b);
	}
	RULE_EXPECT(rig, rig->head > 100 * AREA);
	RULE_EXPECT(rig, overwrite ? !aux_stat(rig).full : aux_stat(rig).full > 100);
}

/* Writes the tail as user space does. */
static void aux_tell_tail(struct aux_rig *rig, u64 tail)
{
	WRITE_ONCE(rig->ring->page->aux_tail, tail);
}

/* Reads as user space does that has the pages mapped and keeps to the rules. */
static void aux_user_tail(struct aux_rig *rig)
{
	u64 pos = 0, head, n = 0;

	while (pos < 20 * AREA && !rig->failed) {
		while (!rig->failed && aux_put(rig, n++ * 37 % 500, 0))
			rule_rest();
		/* The acquire keeps the reads of bytes from going before the read of head. */
		head = smp_load_acquire(&rig->ring->page->aux_head);
		RULE_EQ(rig, head - pos, AREA);
		aux_check(rig);
		pos += 1 + n * 97 % AREA;
		aux_tell_tail(rig, pos);
		RULE_EQ(rig, aux_stat(rig).tail, pos);
	}
}

/* The writer gets no byte that a reader with this tail might still read. */
static void aux_defy(struct aux_rig *rig, u64 tail, u64 size)
{
	aux_tell_tail(rig, tail);
	RULE_EQ(rig, !!aux_room(rig), aux_begin(rig));
	if (!pmuk_get_aux(&rig->handle))
		return;
	if (size & 1 && size / 2 <= rig->handle.size)
		aux_skip(rig, size / 2, 0);
	aux_end(rig, size);
	RULE_EXPECT(rig, rig->head - tail <= AREA);
}

static void aux_hostile_tail(struct aux_rig *rig)
{
	static const u64 around[] = { 0, 1ULL << 31, 1ULL << 32, 1ULL << 62, 1ULL << 63, -1ULL };
	u64 random = 1, n, i;
	s64 delta;

	for (n = 0; n < 4 && !rig->failed; n++) {
		for (i = 0; i < ARRAY_SIZE(around); i++)
			for (delta = -24; delta <= 24; delta++)
				aux_defy(rig, around[i] + delta, n * 1000);
		for (delta = -3 * (s64)AREA; delta <= 3 * (s64)AREA; delta += 1 + n * 8)
			aux_defy(rig, rig->head + delta, 64 + n);
		aux_defy(rig, rig->head, ALL);
		aux_check(rig);
		rule_rest();
	}
	for (n = 0; n < RULE_DOSE / 5 && !rig->failed; n++) {
		rule_random(&random);
		aux_defy(rig, n % 3 ? rig->head - (random >> 32) % (2 * AREA) : random,
			 random >> 56);
	}
	RULE_EXPECT(rig, aux_stat(rig).full > 1000 && aux_stat(rig).truncated > 1000);
}

/* The room follows from user space's tail. Nothing else does that user space writes to the page. */
static void aux_scribble(struct aux_rig *rig, u64 value)
{
	struct perf_event_mmap_page *page = rig->ring->page;

	page->aux_head = value;
	page->aux_tail = value;
	page->aux_offset = value;
	page->aux_size = value;
}

static void aux_hostile_page(struct aux_rig *rig)
{
	u64 n;

	for (n = 0; n < 300 && !rig->failed; n++) {
		aux_scribble(rig, n);
		aux_tell_tail(rig, rig->head);
		RULE_EXPECT(rig, aux_begin(rig));
		aux_scribble(rig, ~0ULL - n);
		aux_end(rig, 99);
		aux_check(rig);
	}
}

/* ---- all of it ---- */

#define AUX_ATTR(nr, the_flags, ...)							\
	{ .nr_pages = nr, .flags = the_flags, .aux = { .nr_pages = AREA / PAGE_SIZE, __VA_ARGS__ } }
#define AUX_STEPS(the_name, table, times, nr, ...)					\
	{ the_name, AUX_ATTR(nr, 0, __VA_ARGS__), times, aux_##table, ARRAY_SIZE(aux_##table), \
	  NULL }
#define AUX_RUN(the_name, run, the_flags, ...)						\
	{ the_name, AUX_ATTR(1, the_flags, __VA_ARGS__), 1, NULL, 0, aux_##run }

static const struct aux_rule aux_rules[] = {
	AUX_STEPS("full", full, 10, 1),
	AUX_STEPS("least", least, 1, 1, .watermark = AREA / 2, .least = 64),
	AUX_STEPS("whole_area", whole_area, 8192, 1),
	AUX_STEPS("open", open, 10, 1),
	AUX_STEPS("overrun", overrun, 10, 1),
	AUX_STEPS("skip", skip_rule, 10, 1),
	AUX_STEPS("flag", flag, 10, 1),
	AUX_STEPS("flag_once", flag_once, 10, 1),
	AUX_STEPS("lose", lose, 10, 1),
	AUX_STEPS("lose_wakes_records", lose_records, 5, 1, .watermark = AREA / 2),
	AUX_STEPS("lose_wakes_bytes", lose_bytes, 5, 1, .watermark = AREA / 2),
	AUX_STEPS("lose_wakes_no_ring", lose_bytes, 5, 0, .watermark = AREA / 2),
	AUX_STEPS("nested", nested, 10, 1),
	AUX_STEPS("records", records, 100, 1),
	AUX_STEPS("ring_full", ring_full, 10, 1),
	AUX_STEPS("ring_full_partial", ring_full_partial, 10, 1),
	AUX_STEPS("ring_full_gap", gap, 10, 1),
	AUX_STEPS("ring_paused", ring_paused, 10, 1),
	AUX_STEPS("full_untold", full_untold, 10, 1),
	AUX_STEPS("full_told_late", full_told_late, 1, 1, .watermark = AREA / 2),
	AUX_STEPS("no_ring", no_ring, 500, 0),
	AUX_STEPS("watermark", watermark, 50, 0, .watermark = 256),
	AUX_STEPS("full_wakes", full_wakes, 5, 1, .watermark = AREA / 2),
	AUX_STEPS("overwrite", overwrite, 10, 1, .overwrite = true),
	AUX_STEPS("overwrite_flags", overwrite_flags, 1, 1, .overwrite = true),
	AUX_STEPS("overwrite_ring_full", overwrite_ring_full, 10, 1, .overwrite = true),
	AUX_STEPS("overwrite_claim", overwrite_claim, 10, 1, .overwrite = true),
	AUX_STEPS("claim", claim_rule, 10, 1),
	AUX_STEPS("peek_again", peek_again, 1, 1),
	AUX_STEPS("released", released, 10, 1),
	AUX_STEPS("release", release, 10, 1),
	AUX_STEPS("flags_shown", flags_shown, 10, 1),
	AUX_STEPS("pause", pause, 10, 1),
	AUX_RUN("random", random, 0),
	AUX_RUN("random_overwrite", random, 0, .overwrite = true),
	AUX_RUN("user_tail", user_tail, PMUK_BUFFER_USER_TAIL),
	AUX_RUN("hostile_tail", hostile_tail, PMUK_BUFFER_USER_TAIL),
	AUX_RUN("hostile_page", hostile_page, PMUK_BUFFER_USER_TAIL),
};

static void aux_do_step(struct aux_rig *rig, const struct aux_step *s)
{
	struct pmuk_aux_stat before = aux_stat(rig), after;
	u64 told = rig->told;

	s->op(rig, s);
	after = aux_stat(rig);
	RULE_COUNT(rig, after.full - before.full, s->full);
	RULE_COUNT(rig, after.nested - before.nested, s->nested);
	RULE_COUNT(rig, after.discarded - before.discarded, s->discarded);
	RULE_COUNT(rig, after.truncated - before.truncated, s->truncated);
	RULE_COUNT(rig, after.truncations - before.truncations, s->truncations);
	RULE_COUNT(rig, rig->told - told, s->lost);
	if (rig->attr->aux.watermark)
		RULE_COUNT(rig, after.wakeups - before.wakeups, s->wakes);
	aux_check(rig);
}

static void aux_steps(struct aux_rig *rig, const struct aux_rule *rule)
{
	unsigned int n;

	for (n = 0; n < rule->times && !rig->failed; n++) {
		rig->base = rig->head;
		for (rig->at = 0; rig->at < rule->nr_steps && !rig->failed; rig->at++)
			aux_do_step(rig, &rule->steps[rig->at]);
		rule_rest();
	}
}

/* @test is KUnit's, or NULL in user space. */
static void aux_run(struct kunit *test, const struct aux_rule *rule)
{
	static struct aux_rig rig;
	u64 random = 8, n;

	memset(&rig, 0, sizeof(rig));
	rig.test = test;
	rig.attr = &rule->attr;
	for (n = 0; n < sizeof(rig.pattern); n++)
		rig.pattern[n] = rule_random(&random);
	rig.b = pmuk_buffer_create(&rule->attr, rule_cpu(&rig));
	RULE_EQ(&rig, PTR_ERR_OR_ZERO(rig.b), 0);
	if (rig.failed)
		return;
	rig.ring = pmuk_buffer_ring(rig.b);
	rig.data = pmuk_aux_data(rig.b, NULL);
	if (rule->run)
		rule->run(&rig);
	else
		aux_steps(&rig, rule);
	if (pmuk_get_aux(&rig.handle))
		aux_end(&rig, 0);
	pmuk_buffer_destroy(rig.b);
}

#endif /* _PMUK_AUX_RULES_H */
