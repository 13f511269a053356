/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rules of the record ring let a writer and a reader take turns. Each rule is a table of steps.
 * A step says how it changes the ring's counts; all other counts stay. Between steps, every record
 * is whole and accounted for.
 */
#ifndef _PMUK_RING_RULES_H
#define _PMUK_RING_RULES_H

#include "pmuk_rules.h"

struct ring_rig;

struct ring_step {
	void (*op)(struct ring_rig *rig, const struct ring_step *s);	/* see "steps" below */
	u64 arg;
	u64 n;
	/*
	 * Each step adds these to the ring's counts, and to the losses that its records have
	 * reported.
	 */
	u64 lost;
	u64 discarded;
	u64 overwritten;
	u64 told;
	u64 wakes;	/* ignored unless the rule sets a watermark */
};

struct ring_rig {
	struct kunit *test;
	struct pmuk_buffer *b;
	struct pmuk_ring *ring;
	bool overwrites;
	bool failed;
	unsigned int at;	/* index of the step */
	u64 attempts;
	u64 id;			/* number of records written or lost before the next record */
	u64 written;		/* records since the ring was created, and their bytes */
	u64 bytes;
	u64 fillers;		/* written records that replace skipped ones */
	u64 varied;
	u64 next;		/* id that the reader expects */
	bool gap;		/* the reader's next record may be any later one */
	u64 told;		/* sum over the PERF_RECORD_LOST that were read */
	u64 sealed;		/* published bytes when the outermost record was reserved */
	unsigned int depth;
	struct perf_event_header *open[4];
	struct pmuk_reader readers[2];
	const struct perf_event_header *peeked[2];
};

struct ring_rule {
	const char *name;
	struct pmuk_buffer_attr attr;
	unsigned int times;
	const struct ring_step *steps;
	unsigned int nr_steps;
	void (*run)(struct ring_rig *rig);	/* if set, replaces the steps */
};

struct ring_lost_record {
	struct perf_event_header header;
	u64 id;
	u64 lost;
};

static inline struct pmuk_buffer_stat ring_stat(struct ring_rig *rig)
{
	struct pmuk_buffer_stat stat = {};

	RULE_EQ(rig, pmuk_buffer_get_stat(rig->b, &stat), 0);
	return stat;
}

/* ---- the writer ---- */

static void ring_check_reserved(struct ring_rig *rig, struct perf_event_header *rec, u32 size)
{
	RULE_EXPECT(rig, (u8 *)rec >= rig->ring->data);
	RULE_EXPECT(rig, (u8 *)rec < rig->ring->data + rig->ring->size);
	RULE_EQ(rig, rec->size, size);
	RULE_EQ(rig, rec->type, RULE_RECORD);
	RULE_EQ(rig, rec->misc, 0);
}

static bool ring_begin(struct ring_rig *rig, u32 size)
{
	u64 lost = ring_stat(rig).lost;
	struct perf_event_header *rec;

	rig->attempts++;
	rule_enter();
	rec = pmuk_output_begin(rig->b, RULE_RECORD, size);
	if (!rec) {
		rule_leave();
		rig->id += ring_stat(rig).lost - lost;
		return false;
	}
	ring_check_reserved(rig, rec, size);
	rule_fill(rec, rig->id++);
	if (!rig->depth)
		rig->sealed = ring_stat(rig).head;
	rig->open[rig->depth++] = rec;
	return true;
}

static void ring_account(struct ring_rig *rig, const struct perf_event_header *rec)
{
	rig->written++;
	rig->bytes += rec->size;
}

static void ring_end(struct ring_rig *rig)
{
	struct perf_event_header *rec = rig->open[--rig->depth];

	RULE_EXPECT(rig, rule_is_whole(rec));
	ring_account(rig, rec);
	pmuk_output_end(rig->b, rec);
	rule_leave();
}

/*
 * Writes a record by the fast path. Returns false if the fast path refuses, and then checks that
 * nothing has changed.
 */
static bool ring_put_alone(struct ring_rig *rig, u32 size)
{
	struct pmuk_buffer_stat before = ring_stat(rig), after;
	struct perf_event_header *rec;

	rule_enter();
	rec = pmuk_output_begin_alone(rig->b, RULE_RECORD, size);
	after = ring_stat(rig);
	RULE_EXPECT(rig, !memcmp(&before, &after, sizeof(before)));
	if (!rec) {
		rule_leave();
		return false;
	}
	ring_check_reserved(rig, rec, size);
	rule_fill(rec, rig->id++);
	RULE_EXPECT(rig, rule_is_whole(rec));
	rig->attempts++;
	ring_account(rig, rec);
	pmuk_output_end_alone(rig->b, size);
	rule_leave();
	return true;
}

/* Uses the fast path for every other record that does not interrupt another one. */
static bool ring_put(struct ring_rig *rig, u32 size)
{
	if (!rig->depth && rig->id % 2 && ring_put_alone(rig, size))
		return true;
	if (!ring_begin(rig, size))
		return false;
	ring_end(rig);
	return true;
}

/* ---- the reader ---- */

static void ring_look(struct ring_rig *rig, const struct perf_event_header *rec)
{
	const struct ring_lost_record *lost = (const struct ring_lost_record *)rec;
	u64 id = lost->id;

	if (rec->type == PERF_RECORD_LOST) {
		rig->told += lost->lost;
		rig->next += lost->lost;
		return;
	}
	if (rec->type == RULE_RECORD && rig->gap && id > rig->next)
		rig->next = id;
	if (rec->type == RULE_RECORD)
		RULE_EQ(rig, id, rig->next);
	rig->gap = false;
	rig->next++;
}

static void ring_claim(struct ring_rig *rig, unsigned int reader, int wanted)
{
	RULE_EQ(rig, pmuk_buffer_claim(rig->b, &rig->readers[reader]), wanted);
	if (wanted)
		return;
	rig->peeked[reader] = NULL;
}

/* Returns whether there is a record. */
static bool ring_peek(struct ring_rig *rig, unsigned int reader)
{
	struct pmuk_reader *r = &rig->readers[reader];

	rig->peeked[reader] = pmuk_buffer_peek(r);
	RULE_EXPECT(rig, pmuk_buffer_peek(r) == rig->peeked[reader]);
	return rig->peeked[reader];
}

static void ring_consume(struct ring_rig *rig, unsigned int reader)
{
	if (rig->peeked[reader])
		ring_look(rig, rig->peeked[reader]);
	rig->peeked[reader] = NULL;
	pmuk_buffer_consume(&rig->readers[reader]);
}

static void ring_release(struct ring_rig *rig, unsigned int reader)
{
	pmuk_buffer_release(&rig->readers[reader]);
	RULE_EQ(rig, rig->ring->page->data_tail, ring_stat(rig).tail);
}

/* Returns how many records were read. After all records, the reader knows how many are missing. */
static u64 ring_get(struct ring_rig *rig, u64 most)
{
	u64 n;

	ring_claim(rig, 1, 0);
	for (n = 0; n < most && !rig->failed && ring_peek(rig, 1); n++)
		ring_consume(rig, 1);
	ring_release(rig, 1);
	if (most == ALL && !rig->depth)
		RULE_EQ(rig, rig->next + rig->ring->pending, rig->id);
	return n;
}

/* Pauses the ring. The next reader misses the records that have been overwritten until then. */
static void ring_pause_writers(struct ring_rig *rig)
{
	RULE_EQ(rig, pmuk_buffer_pause(rig->b), 0);
	rig->gap = rig->overwrites;
}

/* ---- what holds after each step ---- */

static bool ring_is_whole(const struct perf_event_header *rec)
{
	const struct ring_lost_record *lost = (const struct ring_lost_record *)rec;

	if (rec->misc)
		return false;
	if (rec->type == PERF_RECORD_LOST)
		return rec->size == sizeof(*lost) && !lost->id && lost->lost;
	if (rec->type == PERF_RECORD_LOST_SAMPLES)
		return !lost->id;
	return rule_is_whole(rec);
}

/* Returns how many records there are from the tail to the head. */
static u64 ring_walk(struct ring_rig *rig, u64 tail, u64 head)
{
	const struct perf_event_header *rec;
	u64 n = 0;

	for (; tail < head; tail += rec->size, n++) {
		rec = (const void *)(rig->ring->data + (tail & rig->ring->mask));
		if (!ring_is_whole(rec)) {
			RULE_FAIL(rig, "a record at %llu is not whole", tail);
			return 0;
		}
	}
	RULE_EQ(rig, tail, head);
	return n;
}

/* The counts account for each record, and for each attempt to write one. */
static void ring_check_counts(struct ring_rig *rig, const struct pmuk_buffer_stat *s)
{
	u64 made = s->head - rig->bytes;	/* bytes of the PERF_RECORD_LOST */

	RULE_EQ(rig, made % sizeof(struct ring_lost_record), 0);
	made /= sizeof(struct ring_lost_record);
	RULE_EQ(rig, s->consumed + s->overwritten + ring_walk(rig, s->tail, s->head),
		rig->written + made);
	RULE_EQ(rig, rig->attempts, rig->written - rig->fillers + s->lost + s->discarded);
}

static void ring_check(struct ring_rig *rig)
{
	struct pmuk_buffer_stat s = ring_stat(rig);

	RULE_EXPECT(rig, s.head - s.tail <= rig->ring->size);
	RULE_EQ(rig, s.head, rig->ring->page->data_head);
	if (rig->overwrites)	/* user space begins to read there */
		RULE_EQ(rig, s.tail, rig->ring->page->data_tail);
	rule_check_wakes(rig);
	if (rig->depth) {
		RULE_EQ(rig, s.head, rig->sealed);
		return;
	}
	RULE_EQ(rig, s.head, rig->ring->head);
	ring_check_counts(rig, &s);
}

/* ---- steps ---- */

#define RING_OP(name, what) \
	static void name(struct ring_rig *rig, const struct ring_step *s) { what; }

static void ring_puts(struct ring_rig *rig, const struct ring_step *s, bool vary)
{
	u64 n, times = s->n ?: 1, fit = 0;

	for (n = 0; n < times; n++)
		fit += ring_put(rig, vary ? 16 + rig->varied++ * 7 % s->arg * 8 : s->arg);
	RULE_EQ(rig, fit, times - s->lost - s->discarded);
}

/*
 * Writes @n records (or one) of @arg bytes. Those that the step does not count as lost or discarded
 * fit.
 */
RING_OP(put, ring_puts(rig, s, false))
/* Writes records of changing sizes: 16 bytes, and less than 8 * @arg bytes more. */
RING_OP(vary, ring_puts(rig, s, true))
/* Reserves a record of @arg bytes. */
RING_OP(begin, RULE_EXPECT(rig, ring_begin(rig, s->arg)))
/* Publishes the latest reserved record. */
RING_OP(end, ring_end(rig))

/* Gives up the latest reserved record. Nothing of it remains. */
static void skip(struct ring_rig *rig, const struct ring_step *s)
{
	rig->id--;
	pmuk_output_skip(rig->b, rig->open[--rig->depth]);
	rule_leave();
}

/* Gives up a record that has a later one behind it. A filler takes its place. */
static void skip_behind(struct ring_rig *rig, const struct ring_step *s)
{
	struct perf_event_header *rec = rig->open[--rig->depth];

	rig->fillers++;
	ring_account(rig, rec);
	pmuk_output_skip(rig->b, rec);
	rule_leave();
}

/* Claims the ring, reads up to @arg records, of which there are @n, and releases it. */
RING_OP(get, RULE_COUNT(rig, ring_get(rig, s->arg), s->n))
/* Reader @arg claims the ring. The call returns @n. */
RING_OP(claim, ring_claim(rig, s->arg, s->n))
/* Reader @arg finds a record if @n is 1, and none if @n is 0. */
RING_OP(peek, RULE_EQ(rig, ring_peek(rig, s->arg), s->n))
RING_OP(consume, ring_consume(rig, s->arg))
RING_OP(release, ring_release(rig, s->arg))
RING_OP(pause, ring_pause_writers(rig))
/* Resumes the ring. The call returns @n. */
RING_OP(resume, RULE_EQ(rig, pmuk_buffer_resume(rig->b), s->n))
RING_OP(restart, RULE_EQ(rig, pmuk_buffer_restart(rig->b), 0))

/* The ring holds at least @arg bytes. */
static void holds(struct ring_rig *rig, const struct ring_step *s)
{
	struct pmuk_buffer_stat stat = ring_stat(rig);

	RULE_EXPECT(rig, stat.head - stat.tail >= s->arg);
}

/* ---- tables ---- */

/*
 * The newest records are lost. After a loss, a record needs room for the PERF_RECORD_LOST before
 * it, too.
 */
static const struct ring_step ring_drop[] = {
	{ put, 64, SIZE / 64 },
	{ put, 16, .lost = 1 }, { put, 64, .lost = 1 },
	{ get, 1, 1 },
	{ put, 48, .lost = 1 }, { put, 40 }, { holds, SIZE },
	{ get, ALL, SIZE / 64 + 1, .told = 3 },
	{ put, 64 }, { get, ALL, 1 },
};

/* A PERF_RECORD_LOST reports exactly the number of lost records, once, before any newer record. */
static const struct ring_step ring_loss_told[] = {
	{ put, 64, SIZE / 64 + 99, .lost = 99 },
	{ get, ALL, SIZE / 64 },
	{ put, 64, 2 }, { get, ALL, 3, .told = 99 },
	{ put, 64, 2 }, { get, ALL, 2 },
};

static const struct ring_step ring_wrap[] = {
	{ vary, 200 }, { get, ALL, 1 },
};

/* A record fills the whole ring. After a loss it is too large, because of the PERF_RECORD_LOST. */
static const struct ring_step ring_whole_ring[] = {
	{ put, SIZE }, { put, 16, .lost = 1 }, { get, ALL, 1 },
	{ put, SIZE, .lost = 1 }, { put, 16 }, { get, ALL, 2, .told = 2 },
};

static const struct ring_step ring_overwrite[] = {
	{ vary, 30, 1000, .overwritten = ANY }, { holds, 2 * (SIZE - SIZE / 8) },
	{ claim, 0, -EBUSY },
	{ pause }, { put, 64, .discarded = 1 },
	{ get, 3, 3 }, { get, ALL, ANY },
	{ resume },
};

static const struct ring_step ring_overwrite_all[] = {
	{ put, SIZE }, { put, SIZE, .overwritten = 1 }, { put, 16, .overwritten = 1 },
	{ pause }, { get, ALL, 1 }, { resume },
};

/* No record is overwritten while it is reserved, or while it is inside of a reserved one. */
static const struct ring_step ring_unfinished[] = {
	{ put, 64, SIZE / 64 },
	{ begin, SIZE / 4, .overwritten = ANY }, { put, SIZE / 4, 3, .overwritten = ANY },
	{ put, 16, .lost = 1 },
	{ end }, { put, 16, .overwritten = 1 },
	{ pause }, { get, ALL, 5, .told = 1 },
};

/* A record takes half of the room. Records inside of it have the other half. */
static const struct ring_step ring_inside[] = {
	{ begin, SIZE / 2 }, { put, 64, 100, .lost = 100 - SIZE / 128 }, { end },
	{ pause }, { get, ALL, 1 + SIZE / 128 },
};

/* The reader sees no inner record before the outer one ends. */
static const struct ring_step ring_nested[] = {
	{ begin, 64 }, { begin, 64 }, { begin, 64 },
	{ end }, { get, ALL, 0 }, { end }, { get, ALL, 0 }, { end }, { get, ALL, 3 },
};

static const struct ring_step ring_skip[] = {
	{ begin, 64 }, { skip, .discarded = 1 }, { put, 16 }, { get, ALL, 1 },
	/* The record behind the skipped one is read. */
	{ begin, 64 }, { put, 48 }, { get, ALL, 0 }, { skip_behind, .discarded = 1 },
	{ get, ALL, 2 },
	/* A record between two others is skipped, of the smallest size. */
	{ begin, 64 }, { begin, 16 }, { put, 16 }, { skip_behind, .discarded = 1 },
	{ get, ALL, 0 }, { end }, { get, ALL, 3 },
	/* The latest record is skipped, inside of another one. */
	{ begin, 64 }, { begin, 16 }, { skip, .discarded = 1 }, { end }, { get, ALL, 1 },
};

static const struct ring_step ring_stop[] = {
	{ put, 64, SIZE / 64 + 1, .lost = 1 },
	{ get, ALL, SIZE / 64 },
	{ put, 64, .lost = 1 }, { put, 16, .lost = 1 },
	{ restart }, { put, 64, 2 }, { get, ALL, 3, .told = 3 },
};

/* Each stop is a wakeup. Losses while the ring is stopped do not stop it again. */
static const struct ring_step ring_stop_wakes[] = {
	{ put, 64, SIZE / 64, .wakes = 2 },
	{ put, 64, .lost = 1, .wakes = 1 }, { put, 64, .lost = 1 },
	/* The ring has no room yet, and no record reports the losses. */
	{ restart }, { put, 64, .lost = 1, .wakes = 1 }, { put, 64, .lost = 1 },
	{ get, ALL, SIZE / 64 },
	{ restart }, { put, 64 }, { get, ALL, 2, .told = 4 },
};

/* Records that are published at once wake once, however many watermarks they pass. */
static const struct ring_step ring_watermark[] = {
	{ put, 48, 5 }, { put, 48, .wakes = 1 }, { put, 48, 4 }, { put, 48, .wakes = 1 },
	{ put, 48, 4 }, { put, 48, .wakes = 1 }, { get, ALL, 16 },
	{ put, 1024, .wakes = 1 }, { put, 240 }, { put, 16, .wakes = 1 }, { get, ALL, 3 },
	{ begin, 512 }, { put, 512 }, { get, ALL, 0 }, { end, .wakes = 1 }, { get, ALL, 2 },
};

/* No record ends at this watermark. */
static const struct ring_step ring_watermark_odd[] = {
	{ put, 40, 24 }, { put, 40, .wakes = 1 }, { get, ALL, 25 },
};

static const struct ring_step ring_wakeup_events[] = {
	{ vary, 9, 6 }, { get, ALL, 6 }, { vary, 9, .wakes = 1 }, { get, ALL, 1 },
};

/* A loss is a wakeup, so a watermark that cannot be reached does not leave the consumer asleep. */
static const struct ring_step ring_loss_wakes[] = {
	{ put, 64, SIZE / 64 }, { put, 64, .lost = 1, .wakes = 1 }, { put, 64, 99, .lost = 99 },
	{ get, ALL, SIZE / 64 },
	{ put, 64 }, { get, ALL, 2, .told = 100 },
};

static const struct ring_step ring_readers[] = {
	{ put, 64, 20 },
	{ get, 5, 5 },
	{ claim, 0 }, { claim, 1, -EBUSY }, { peek, 0, 1 }, { consume, 0 }, { peek, 0, 1 },
	{ release, 0 },
	{ claim, 0 }, { consume, 0 }, { release, 0 },	/* without a peek */
	{ get, ALL, 14 },
	{ claim, 0 }, { peek, 0, 0 }, { consume, 0 }, { release, 0 },
};

/* If a reader has peeked at a record when it is released, the next reader begins there. */
static const struct ring_step ring_released[] = {
	{ put, 64, SIZE / 64 },
	{ claim, 0 }, { peek, 0, 1 }, { consume, 0 }, { peek, 0, 1 }, { claim, 1, -EBUSY },
	{ release, 0 }, { get, ALL, SIZE / 64 - 1 },
};

static const struct ring_step ring_pause[] = {
	{ put, 64, 2 }, { claim, 0, -EBUSY },
	{ pause }, { put, 64, .discarded = 1 },
	{ claim, 0 }, { claim, 1, -EBUSY }, { resume, .n = -EBUSY }, { release, 0 },
	{ resume }, { put, 64, 2 }, { pause }, { get, ALL, 4 }, { resume },
};

/* A ring that drops can be resumed while it is read. */
static const struct ring_step ring_pause_drop[] = {
	{ claim, 0 }, { put, 64 },
	{ pause }, { put, 64, .discarded = 1 }, { resume }, { put, 64 },
	{ claim, 1, -EBUSY }, { release, 0 }, { get, ALL, 2 },
};

static const struct ring_step ring_bad_sizes[] = {
	{ put, 0, .discarded = 1 }, { put, 1, .discarded = 1 }, { put, 8, .discarded = 1 },
	{ put, 12, .discarded = 1 }, { put, 15, .discarded = 1 }, { put, 17, .discarded = 1 },
	{ put, 20, .discarded = 1 }, { put, 65529, .discarded = 1 },
	{ put, 65536, .discarded = 1 }, { put, 65544, .discarded = 1 },
	{ put, 1U << 31, .discarded = 1 }, { put, -8U, .discarded = 1 },
	{ put, -1U, .discarded = 1 },
	{ put, 16 }, { put, PMUK_RECORD_MAX }, { get, ALL, 2 },
};

/* A record that never fits is lost like any other. */
static const struct ring_step ring_too_large[] = {
	{ put, SIZE + 8, .lost = 1 }, { put, 16 }, { get, ALL, 2, .told = 1 },
};

static const struct ring_step ring_no_data[] = {
	{ put, 16, .lost = 1 }, { put, PMUK_RECORD_MAX, .lost = 1 },
};

/* ---- what is no table ---- */

/* Each record is accounted for after each step, in any mode. */
static void ring_random(struct ring_rig *rig)
{
	u64 random = 3, n;

	for (n = 0; n < 3000 && !rig->failed; n++) {
		ring_put(rig, rule_random(&random) % 300 & ~3);
		ring_check(rig);
		rule_rest();
		if (rule_random(&random) % 200)
			continue;
		ring_pause_writers(rig);
		ring_put(rig, 64);
		ring_get(rig, ALL);
		pmuk_buffer_resume(rig->b);
		pmuk_buffer_restart(rig->b);
	}
	RULE_EXPECT(rig, ring_stat(rig).consumed && ring_stat(rig).discarded);
	RULE_EXPECT(rig, rig->overwrites ? ring_stat(rig).overwritten : ring_stat(rig).lost);
}

/* Writes the tail as user space does. */
static void ring_tell_tail(struct ring_rig *rig, u64 tail)
{
	WRITE_ONCE(rig->ring->page->data_tail, tail);
}

/* Reads as user space does that has the pages mapped and keeps to the rules. */
static void ring_user_tail(struct ring_rig *rig)
{
	const struct perf_event_header *rec;
	u64 pos = 0, head;

	while (pos < 20 * SIZE && !rig->failed) {
		while (!rig->failed && ring_put(rig, 16 + rig->attempts * 8 % 256))
			rule_rest();
		/* The acquire keeps the reads of records from going before the read of head. */
		head = smp_load_acquire(&rig->ring->page->data_head);
		RULE_EXPECT(rig, head > pos && head - pos <= SIZE);
		for (; pos < head && !rig->failed; pos += rec->size) {
			rec = (const void *)(rig->ring->data + (pos & rig->ring->mask));
			RULE_EXPECT(rig, ring_is_whole(rec));
			ring_look(rig, rec);
		}
		ring_tell_tail(rig, pos);
	}
	RULE_EQ(rig, rig->told + rig->ring->pending, ring_stat(rig).lost);
}

/*
 * User space may see data_head before ->commit is stored, and write a tail beyond ->commit. No
 * record is lost because of that.
 */
static void ring_early_tail(struct ring_rig *rig)
{
	rig->ring->wake_at = S64_MAX;	/* only the tail bounds the limit */
	while (rig->attempts < SIZE / 64)
		RULE_EXPECT(rig, ring_put(rig, 64));
	ring_tell_tail(rig, 64);
	RULE_EXPECT(rig, ring_begin(rig, 64));
	ring_tell_tail(rig, SIZE + 64);
	RULE_EXPECT(rig, ring_begin(rig, 64));
	RULE_EQ(rig, rig->ring->limit, SIZE + SIZE);	/* reserved bytes stay the writer's */
	RULE_EQ(rig, rig->ring->lost, 0);
}

/* Returns ->commit without its flags. */
static u64 ring_commit(struct ring_rig *rig)
{
	return rig->ring->commit & ~7ULL;
}

/*
 * Writes one record with the given tail. The record is within a ring's size from commit, or is
 * lost.
 */
static void ring_defy(struct ring_rig *rig, u64 tail, u32 size)
{
	u64 commit = ring_commit(rig), lost = rig->ring->lost;
	struct pmuk_buffer_stat s;

	ring_tell_tail(rig, tail);
	if (!ring_put(rig, size))
		RULE_EQ(rig, rig->ring->lost, lost + 1);
	s = ring_stat(rig);
	RULE_EXPECT(rig, s.head >= commit);
	RULE_EXPECT(rig, s.head - commit <= size + sizeof(struct ring_lost_record));
	RULE_EQ(rig, rig->ring->head, s.head);
	RULE_EQ(rig, rig->ring->page->data_head, s.head);
	RULE_EQ(rig, s.discarded, 0);
	RULE_EQ(rig, rig->attempts, rig->written + s.lost);
	/* A tail out of reach makes no room. */
	if (commit - tail > SIZE && rig->ring->limit == 0)
		RULE_EQ(rig, s.head, commit);
}

static void ring_hostile_tail(struct ring_rig *rig)
{
	static const u64 around[] = { 0, 1ULL << 31, 1ULL << 32, 1ULL << 62, 1ULL << 63, -1ULL };
	u64 random = 1, n, i;
	s64 delta;

	for (n = 0; n < 40 && !rig->failed; n++) {
		for (i = 0; i < ARRAY_SIZE(around); i++)
			for (delta = -24; delta <= 24; delta++)
				ring_defy(rig, around[i] + delta, 16 + 8 * n);
		for (delta = -3 * (s64)SIZE; delta <= 3 * (s64)SIZE; delta += 1 + n * 8)
			ring_defy(rig, ring_commit(rig) + delta, 16 + 8 * n);
		ring_defy(rig, ring_commit(rig), SIZE);
		ring_defy(rig, ring_commit(rig) - SIZE, 16);
		rule_rest();
	}
	for (n = 0; n < RULE_DOSE && !rig->failed; n++) {
		rule_random(&random);
		ring_defy(rig, n % 3 ? random : ring_commit(rig) - (random >> 32) % (2 * SIZE),
			  16 + (n & 0xf8));
	}
	RULE_EXPECT(rig, rig->ring->lost > 1000 && rig->written > 1000);
}

/*
 * Sets a hostile tail while a record is reserved. No writer gets that record's bytes. The tail is
 * honest for the first @from inner records.
 */
static void ring_defy_nested(struct ring_rig *rig, u64 tail, u64 from)
{
	u64 commit, n;

	ring_tell_tail(rig, ring_commit(rig));
	if (!ring_begin(rig, 64))
		return;
	commit = ring_commit(rig);	/* behind a PERF_RECORD_LOST, if any */
	for (n = 0; n < SIZE / 48 + 1; n++) {
		if (n == from)
			ring_tell_tail(rig, tail);
		if (!ring_put(rig, 48))
			break;
	}
	RULE_EQ(rig, ring_commit(rig), commit);
	RULE_EXPECT(rig, rig->ring->head - commit <= SIZE);
	ring_end(rig);
	RULE_EQ(rig, ring_commit(rig), rig->ring->head);
	RULE_EQ(rig, rig->attempts, rig->written + ring_stat(rig).lost);
}

static void ring_hostile_tail_nested(struct ring_rig *rig)
{
	s64 delta;

	for (delta = -2 * (s64)SIZE; delta <= 2 * (s64)SIZE && !rig->failed; delta += 8) {
		ring_tell_tail(rig, ring_commit(rig));
		ring_put(rig, SIZE);	/* uses up the room that is known */
		ring_defy_nested(rig, ring_commit(rig) + delta, 0);
		ring_put(rig, SIZE);
		ring_defy_nested(rig, ring_commit(rig) + delta, SIZE / 96);
		rule_rest();
	}
	RULE_EXPECT(rig, rig->written > 1000);
}

/* ---- all of it ---- */

#define RING_ATTR(the_mode, ...)	{ .mode = PMUK_BUFFER_##the_mode, __VA_ARGS__ }
#define RING_STEPS(the_name, table, times, ...)						\
	{ the_name, RING_ATTR(__VA_ARGS__), times, ring_##table, ARRAY_SIZE(ring_##table), NULL }
#define RING_RUN(the_name, run, ...)							\
	{ the_name, RING_ATTR(__VA_ARGS__), 1, NULL, 0, ring_##run }

static const struct ring_rule ring_rules[] = {
	RING_STEPS("drop", drop, 100, DROP, .nr_pages = 1),
	RING_STEPS("loss_told", loss_told, 100, DROP, .nr_pages = 1),
	RING_STEPS("wrap", wrap, 3000, DROP, .nr_pages = 4),
	RING_STEPS("whole_ring", whole_ring, SIZE / 8, DROP, .nr_pages = 1),
	RING_STEPS("overwrite", overwrite, 20, OVERWRITE, .nr_pages = 2),
	RING_STEPS("overwrite_all", overwrite_all, 100, OVERWRITE, .nr_pages = 1),
	RING_STEPS("overwrite_unfinished", unfinished, 1, OVERWRITE, .nr_pages = 1),
	RING_STEPS("inside_drop", inside, 1, DROP, .nr_pages = 1),
	RING_STEPS("inside_overwrite", inside, 1, OVERWRITE, .nr_pages = 1),
	RING_STEPS("inside_stop", inside, 1, STOP, .nr_pages = 1),
	RING_STEPS("nested", nested, 500, DROP, .nr_pages = 1),
	RING_STEPS("skip", skip, 500, DROP, .nr_pages = 1),
	RING_STEPS("stop", stop, 100, STOP, .nr_pages = 1),
	RING_STEPS("stop_wakes", stop_wakes, 1, STOP, .nr_pages = 1, .watermark = SIZE / 2),
	RING_STEPS("watermark", watermark, 40, DROP, .nr_pages = 1, .watermark = 256),
	RING_STEPS("watermark_odd", watermark_odd, 40, DROP, .nr_pages = 4, .watermark = 1000),
	RING_STEPS("wakeup_events", wakeup_events, 143, DROP, .nr_pages = 1, .wakeup_events = 7),
	RING_STEPS("loss_wakes", loss_wakes, 10, DROP, .nr_pages = 1, .wakeup_events = 1 << 20),
	RING_STEPS("readers", readers, 10, DROP, .nr_pages = 1),
	RING_STEPS("released", released, 10, DROP, .nr_pages = 1),
	RING_STEPS("pause", pause, 10, OVERWRITE, .nr_pages = 1),
	RING_STEPS("pause_drop", pause_drop, 10, DROP, .nr_pages = 1),
	RING_STEPS("bad_sizes", bad_sizes, 10, DROP, .nr_pages = 32),
	RING_STEPS("too_large", too_large, 10, DROP, .nr_pages = 1),
	RING_STEPS("no_data_drop", no_data, 1, DROP),
	RING_STEPS("no_data_overwrite", no_data, 1, OVERWRITE),
	RING_STEPS("no_data_stop", no_data, 1, STOP),
	RING_RUN("random_drop", random, DROP, .nr_pages = 1),
	RING_RUN("random_overwrite", random, OVERWRITE, .nr_pages = 1),
	RING_RUN("random_stop", random, STOP, .nr_pages = 1),
	RING_RUN("user_tail", user_tail, DROP, .nr_pages = 1, .flags = PMUK_BUFFER_USER_TAIL),
	RING_RUN("early_tail", early_tail, DROP, .nr_pages = 1, .flags = PMUK_BUFFER_USER_TAIL),
	RING_RUN("hostile_tail", hostile_tail, DROP, .nr_pages = 1,
		 .flags = PMUK_BUFFER_USER_TAIL),
	RING_RUN("hostile_tail_nested", hostile_tail_nested, DROP, .nr_pages = 1,
		 .flags = PMUK_BUFFER_USER_TAIL),
};

static void ring_do_step(struct ring_rig *rig, const struct ring_rule *rule,
			 const struct ring_step *s)
{
	struct pmuk_buffer_stat before = ring_stat(rig), after;
	u64 told = rig->told;

	s->op(rig, s);
	after = ring_stat(rig);
	RULE_COUNT(rig, after.lost - before.lost, s->lost);
	RULE_COUNT(rig, after.discarded - before.discarded, s->discarded);
	RULE_COUNT(rig, after.overwritten - before.overwritten, s->overwritten);
	RULE_COUNT(rig, rig->told - told, s->told);
	if (rule->attr.watermark || rule->attr.wakeup_events)
		RULE_COUNT(rig, after.wakeups - before.wakeups, s->wakes);
	ring_check(rig);
}

static void ring_steps(struct ring_rig *rig, const struct ring_rule *rule)
{
	unsigned int n;

	for (n = 0; n < rule->times && !rig->failed; n++) {
		for (rig->at = 0; rig->at < rule->nr_steps && !rig->failed; rig->at++)
			ring_do_step(rig, rule, &rule->steps[rig->at]);
		rule_rest();
	}
}

/* @test is KUnit's, or NULL in user space. */
static void ring_run(struct kunit *test, const struct ring_rule *rule)
{
	static struct ring_rig rig;

	rig = (struct ring_rig){ .test = test,
				 .overwrites = rule->attr.mode == PMUK_BUFFER_OVERWRITE };
	rig.b = pmuk_buffer_create(&rule->attr, rule_cpu(&rig));
	RULE_EQ(&rig, PTR_ERR_OR_ZERO(rig.b), 0);
	if (rig.failed)
		return;
	rig.ring = pmuk_buffer_ring(rig.b);
	if (rule->run)
		rule->run(&rig);
	else
		ring_steps(&rig, rule);
	while (rig.depth)
		ring_end(&rig);
	pmuk_buffer_destroy(rig.b);
}

#endif /* _PMUK_RING_RULES_H */
