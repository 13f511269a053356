// SPDX-License-Identifier: GPL-2.0
/*
 * The stream in an AUX area: begin, end, skip; spans of it. Knows nothing of perf events, and
 * builds for user space as well, see tools/testing/pmu_kapi.
 */
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "aux.h"

/**
 * DOC: The AUX area
 *
 * One CPU writes, as with the record ring, and one writer at a time: hardware, or what goes by
 * its rules. It opens the area with begin, which says how much may be written, and closes
 * it with end, which says how much was. Between the two the area stays open for as long as
 * that takes, over interrupts, and over records that they write to the ring. One reader at
 * a time reads, anywhere. Neither waits for the other.
 *
 * Positions are bytes since the area was made, and never wrap; position & (size - 1) is an
 * offset into the area, since its size is a power of two, and so divides 2^64. The pages are
 * mapped twice in a row, so that what begins in the first half is contiguous. In order::
 *
 *	tail <= head <= tail + size
 *
 *	tail .. head		the reader's
 *	head .. tail + size	the writer's, while it is open
 *
 * **Nested writers are refused**, and counted. One that interrupts another finds the area open, and
 * whoever has it open is alone on its CPU in what it writes to it: head, and all that is
 * the writer's, need no more than that. What may happen outside of it, or from an interrupt of it,
 * is atomic against interrupts: counters, and the flags that are due.
 *
 * **What is published is told**: the data, then head, then a PERF_RECORD_AUX in the ring, so
 * that whoever finds the record finds the data. Without room in the ring the next record tells
 * of both parts; if they have a gap between them, or something is missing in the first one, it is
 * PARTIAL. Nothing of that is lost with the record. If there is no next one, for the area is full,
 * whoever is refused for that says it.
 *
 * **Other data in the ring**: user space that unmaps the ring, or maps another size of it, throws
 * its records away, and with them what they have told. The ring's owner counts such swaps in
 * ->swaps while the ring is held. The first PERF_RECORD_AUX of the new data tells of all that no
 * reader has given back, as PARTIAL.
 *
 * **Overwrite mode** has no tail: all of the area may be written each time. To be read, it is
 * paused, and nobody has it open. Head goes on growing, and what is less than a size before it
 * is there.
 *
 * **A hostile tail**, in a page that user space writes, is believed only if it is within size
 * below head; if not, there is no room.
 *
 * **Killed while open**, the area is the writer's until it ends. Of "killed" and "closed",
 * which change one word, whichever comes second is the one to let go of it.
 *
 * Between CPUs, "If A reads from B" means: if it sees the value that B has stored.
 *
 * LMM(pmuk_area_peek:A) / LMM(pmuk_area_publish:A)
 *	If peek:A reads from publish:A, the reader sees all bytes up to that position. Release to
 *	acquire. aux-publish.litmus
 * user space / LMM(pmuk_area_publish:B)
 *	The same for user space, which loads aux_head, then orders its loads of data after
 *	that. aux-publish-user.litmus
 * LMM(pmuk_area_peek:B) / LMM(pmuk_area_note:A)
 *	If peek:A reads from publish:A, this peek or an earlier one takes the flags that note:A
 *	has set before that. Release to acquire, of head. aux-flags.litmus
 *	And if peek:B takes flags, the reader sees up to where they are to be told. Release to
 *	acquire, of the flags. aux-flagged.litmus
 * LMM(pmuk_ring_peek:A) / LMM(pmuk_output_end:B)
 *	If a reader of records sees the PERF_RECORD_AUX of a part, it sees a head that covers it,
 *	and its bytes. Release to acquire, in the ring. aux-record.litmus
 * user space / LMM(pmuk_output_end:A)
 *	The same for user space, which finds the record by data_head. aux-record-user.litmus
 * LMM(pmuk_area_room:A) / LMM(pmuk_area_consume:A)
 *	If room:A reads from consume:A, what is written over bytes that were given back is not
 *	seen by their reader. Release to acquire. aux-room.litmus
 * LMM(pmuk_area_room:A) / user space
 *	The same for user space, which has smp_mb() before it stores aux_tail.
 *	aux-room-user.litmus
 * LMM(pmuk_area_claim:A) / LMM(pmuk_area_revoke:A)
 *	If claim:A reads from revoke:A, a reader sees how far the one before it has come, and the
 *	flags that it leaves. Release to acquire. aux-claim.litmus
 *	And what is written over bytes that this reader gives back is not seen by the one before
 *	it, either. aux-claim-room.litmus
 *	The same if it reads from what a writer, or anybody, has made of the state since: all of
 *	them read and write it at once. aux-claim-hops.litmus
 * LMM(pmuk_area_claim:A) / LMM(pmuk_area_close:A)
 *	If claim:A reads from close:A, as it does in overwrite mode, the reader sees what that
 *	writer has written. A full barrier to acquire. aux-snapshot.litmus
 * LMM(pmuk_area_open:A) / LMM(pmuk_area_resume:A)
 *	If open:A reads from resume:A, what is written is not seen by who has read before that.
 *	Release to acquire. aux-resume.litmus
 *	Nor by a reader on a third CPU, from revoke:A on. aux-resume-reader.litmus
 * LMM(pmuk_area_kill:A) / LMM(pmuk_area_close:A)
 *	One of the two sees what the other has stored; and whoever lets go of the area does so
 *	after all that the writer has written, and after it was killed. Full barriers on both
 *	sides. aux-kill.litmus
 * LMM(pmuk_area_wake:A) / LMM(pmuk_area_kill:A)
 *	When a grace period has passed since kill:A, nobody is woken any more, though the area may
 *	be open still: between wake:A and the wakeup preemption is off. aux-wake.litmus
 */

/* pmuk_area::state */
#define PMUK_AREA_OPEN		BIT(0)	/* has a writer */
#define PMUK_AREA_PAUSED	BIT(1)	/* refuse writers: discarded */
#define PMUK_AREA_DEAD		BIT(2)	/* the same, for ever */
#define PMUK_AREA_READING	BIT(3)	/* has a reader */
#define PMUK_AREA_REFUSE	(PMUK_AREA_PAUSED | PMUK_AREA_DEAD)

/* Those that a producer may set; what an area that overwrites has always is not for it. */
#define PMUK_AREA_FLAGS		(PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL | \
				 PERF_AUX_FLAG_COLLISION | PERF_AUX_FLAG_PMU_FORMAT_TYPE_MASK)

/* Those that say what has happened, and so of several parts together what has to one of them. */
#define PMUK_AREA_EVENTS	(PMUK_AREA_FLAGS & ~PERF_AUX_FLAG_PMU_FORMAT_TYPE_MASK)

/* Not a position that is ever reached. */
#define PMUK_AREA_NEVER		(~0ULL)

struct pmuk_aux_record {
	struct perf_event_header header;
	u64 aux_offset;
	u64 aux_size;
	u64 flags;
};

static u64 pmuk_area_or(u64 *flags, u64 more)
{
	u64 old = READ_ONCE(*flags);

	while (!try_cmpxchg_local(flags, &old, old | more))
		;
	return old;
}

static u64 pmuk_area_take(u64 *flags)
{
	u64 old = READ_ONCE(*flags);

	while (!try_cmpxchg_local(flags, &old, 0))
		;
	return old;
}

/* Once it is dead, there is nobody to be woken any more. */
static void pmuk_area_wake(struct pmuk_area *area)
{
	pmuk_ring_add(&area->wakeups, 1);
	if (!(atomic_read(&area->state) & PMUK_AREA_DEAD))	/* LMM(pmuk_area_wake:A) */
		area->ring->wake(area->ring);
}

/* ---- open and closed ---- */

static bool pmuk_area_open(struct pmuk_area *area)
{
	int state = atomic_read(&area->state);

	do {
		if (unlikely(state & PMUK_AREA_OPEN)) {
			pmuk_ring_add(&area->nested, 1);
			return false;
		}
		if (unlikely(state & PMUK_AREA_REFUSE)) {
			pmuk_ring_add(&area->discarded, 1);
			return false;
		}
	} while (!atomic_try_cmpxchg_acquire(&area->state, &state,	/* LMM(pmuk_area_open:A) */
					     state | PMUK_AREA_OPEN));
	return true;
}

static void pmuk_area_close(struct pmuk_area *area)
{
	/* LMM(pmuk_area_close:A) pairs with pmuk_area_kill:A and pmuk_area_claim:A */
	if (unlikely(atomic_fetch_andnot(PMUK_AREA_OPEN, &area->state) & PMUK_AREA_DEAD))
		area->gone(area);
}

/* ---- the writer ---- */

static u64 pmuk_area_room(const struct pmuk_area *area)
{
	u64 used;

	if (area->overwrite)
		return area->size;
	used = area->head - smp_load_acquire(area->tail_of);	/* LMM(pmuk_area_room:A) */
	return used <= area->size ? area->size - used : 0;
}

/*
 * For the reader: they are to be told until it has consumed what is before @to. Returns those that
 * it has not taken yet.
 */
static u64 pmuk_area_note(struct pmuk_area *area, u64 flags, u64 to)
{
	u64 old = READ_ONCE(area->flagged);

	while ((s64)(to - old) > 0 && !try_cmpxchg_local(&area->flagged, &old, to))
		;
	/* LMM(pmuk_area_note:A) */
	return atomic_fetch_or_release(flags & PMUK_AREA_EVENTS, &area->flags);
}

/* What is written up to @head is the reader's from now on. */
static void pmuk_area_publish(struct pmuk_area *area, u64 head)
{
	smp_store_release(&area->head, head);			/* LMM(pmuk_area_publish:A) */
	smp_store_release(&area->ring->page->aux_head, head);	/* LMM(pmuk_area_publish:B) */
}

/* A buffer begins with its ring. */
static struct pmuk_buffer *pmuk_area_buffer(const struct pmuk_area *area)
{
	return (struct pmuk_buffer *)area->ring;
}

/*
 * Bytes of which no record in the ring's present data tells. A hostile tail makes it all of them.
 */
static u64 pmuk_area_untold(const struct pmuk_area *area)
{
	u64 untold = area->head - area->told, used;

	if (likely(READ_ONCE(area->swaps) == area->swaps_seen))
		return untold;
	used = area->head - READ_ONCE(*area->tail_of);
	return max_t(u64, untold, min_t(u64, used, area->size));
}

/* No more than there is; so much may be untold when nobody has read records for long. */
static void pmuk_area_fill(struct pmuk_area *area, struct pmuk_aux_record *rec, u64 flags)
{
	u64 size = pmuk_area_untold(area);

	if (area->overwrite)
		flags |= PERF_AUX_FLAG_OVERWRITE;
	else if (size > area->size || size > area->head - area->told)
		flags |= PERF_AUX_FLAG_PARTIAL;
	rec->aux_size = min_t(u64, size, area->size);
	rec->aux_offset = area->head - rec->aux_size;
	rec->flags = flags | pmuk_area_take(&area->due);
	/* This record's room is in the new data, so the swap that has made them is seen here. */
	area->swaps_seen = READ_ONCE(area->swaps);
	WRITE_ONCE(area->told, area->head);	/* an interrupt that loses something looks */
}

/* Say what was published since it was last said. Returns whether the ring had room for that. */
static bool pmuk_area_tell(struct pmuk_area *area, u64 flags)
{
	struct pmuk_aux_record *rec;

	if (!area->records || (!pmuk_area_untold(area) && !(flags & PMUK_AREA_EVENTS) &&
			       !READ_ONCE(area->due)))
		return false;
	rec = (struct pmuk_aux_record *)pmuk_output_begin(pmuk_area_buffer(area), PERF_RECORD_AUX,
							  sizeof(*rec));
	if (!rec) {
		flags &= PMUK_AREA_EVENTS;
		pmuk_area_or(&area->due, flags | (flags ? PERF_AUX_FLAG_PARTIAL : 0));
		return false;
	}
	pmuk_area_fill(area, rec, flags);
	pmuk_output_end(pmuk_area_buffer(area), &rec->header);
	return true;
}

/*
 * A reader may be waiting for more than there is room for: it is woken, once. One that goes by
 * records gives nothing back before it is told of it, so that is tried again; and it is woken when
 * it was.
 */
static void pmuk_area_is_full(struct pmuk_area *area)
{
	bool told = pmuk_area_untold(area) && pmuk_area_tell(area, 0);

	pmuk_ring_add(&area->full, 1);
	if (area->full_at == area->head && !told)
		return;
	area->full_at = area->head;
	pmuk_area_wake(area);
}

/* Returns NULL when refused, and then it has been counted as full, nested or discarded. */
void *pmuk_area_begin(struct pmuk_area *area, struct pmuk_aux_handle *handle)
{
	u64 room;

	handle->area = NULL;
	if (!pmuk_area_open(area))
		return NULL;
	room = pmuk_area_room(area);
	if (unlikely(room < area->least)) {
		pmuk_area_is_full(area);
		pmuk_area_close(area);
		return NULL;
	}
	handle->area = area;
	handle->head = area->head;
	handle->size = room;
	handle->data = area->data + (area->head & (area->size - 1));
	handle->flags = 0;
	return area->private;
}

static bool pmuk_area_passes_watermark(struct pmuk_area *area)
{
	if (likely((s64)(area->head - area->wake_at) < 0))
		return false;
	area->wake_at = area->head - area->head % area->watermark + area->watermark;
	return true;
}

/* A producer that has written more than it was allowed to has lost that, and the flags say so. */
static u64 pmuk_area_fit(struct pmuk_area *area, struct pmuk_aux_handle *handle, u64 size)
{
	if (likely(size <= handle->size))
		return size;
	pmuk_ring_add(&area->truncated, size - handle->size);
	pmuk_area_or(&handle->flags, PERF_AUX_FLAG_TRUNCATED);
	return handle->size;
}

void pmuk_area_end(struct pmuk_aux_handle *handle, u64 size)
{
	struct pmuk_area *area = handle->area;
	u64 flags;

	if (!area)
		return;
	size = pmuk_area_fit(area, handle, size);
	flags = READ_ONCE(handle->flags);
	if (unlikely(flags & PMUK_AREA_EVENTS))	/* those of no bytes come with the next one */
		pmuk_area_note(area, flags, handle->head + (size ?: 1));
	if (unlikely(flags & PERF_AUX_FLAG_TRUNCATED))
		pmuk_ring_add(&area->truncations, 1);
	pmuk_area_publish(area, handle->head + size);
	pmuk_area_tell(area, flags);
	if (pmuk_area_passes_watermark(area) || (flags & PERF_AUX_FLAG_TRUNCATED))
		pmuk_area_wake(area);
	handle->area = NULL;
	pmuk_area_close(area);
}

/*
 * What is skipped is published, and no record tells of it: it has what was there before. If there
 * is something before it that is still to be told, that and what follows have a gap.
 */
int pmuk_area_skip(struct pmuk_aux_handle *handle, u64 size)
{
	struct pmuk_area *area = handle->area;

	if (!area)
		return -EINVAL;
	if (size > handle->size)
		return -ENOSPC;
	if (area->told == area->head)
		WRITE_ONCE(area->told, area->told + size);
	else if (size)
		pmuk_area_or(&area->due, PERF_AUX_FLAG_PARTIAL);
	handle->head += size;
	handle->size -= size;
	handle->data = area->data + (handle->head & (area->size - 1));
	pmuk_area_publish(area, handle->head);
	if (pmuk_area_passes_watermark(area))
		pmuk_area_wake(area);
	return 0;
}

void pmuk_area_flag(struct pmuk_aux_handle *handle, u64 flags)
{
	if (handle->area)
		pmuk_area_or(&handle->flags, flags & PMUK_AREA_FLAGS);
}

/*
 * Whatever is told next is preceded by a loss; and has a gap, if something that is still to be told
 * comes before that. The first one that is in no record yet wakes, or that no reader has seen.
 */
void pmuk_area_lose(struct pmuk_area *area, u64 bytes)
{
	u64 head = READ_ONCE(area->head), flags = PERF_AUX_FLAG_TRUNCATED, pending;

	if (READ_ONCE(area->told) != head)
		flags |= PERF_AUX_FLAG_PARTIAL;
	pmuk_ring_add(&area->truncated, bytes);
	pmuk_ring_add(&area->truncations, 1);
	pending = pmuk_area_note(area, PERF_AUX_FLAG_TRUNCATED, head + 1);
	pending &= pmuk_area_or(&area->due, flags);
	if (!(pending & PERF_AUX_FLAG_TRUNCATED))
		pmuk_area_wake(area);
}

/* ---- anybody ---- */

/*
 * The ring is to have other data: what its records have told is gone with them. The caller holds
 * the ring, whose writers have ended, and pmuk_ring_reset() lets them in again after this.
 */
void pmuk_area_swap(struct pmuk_area *area)
{
	WRITE_ONCE(area->swaps, area->swaps + 1);
}

/* Whoever has it open goes on to its end. */
void pmuk_area_pause(struct pmuk_area *area)
{
	atomic_or(PMUK_AREA_PAUSED, &area->state);
}

/* What a reader reads in overwrite mode may not change under it. */
int pmuk_area_resume(struct pmuk_area *area)
{
	int state = atomic_read(&area->state);

	do {
		if (area->overwrite && (state & PMUK_AREA_READING))
			return -EBUSY;
		/* LMM(pmuk_area_resume:A) */
	} while (!atomic_try_cmpxchg_release(&area->state, &state, state & ~PMUK_AREA_PAUSED));
	return 0;
}

/* Whether somebody has it open, who will call ->gone at its end. */
bool pmuk_area_kill(struct pmuk_area *area)
{
	/* LMM(pmuk_area_kill:A) pairs with pmuk_area_close:A and pmuk_area_wake:A */
	return atomic_fetch_or(PMUK_AREA_DEAD, &area->state) & PMUK_AREA_OPEN;
}

/* Where the oldest byte is that is still there, and was not given back. */
static u64 pmuk_area_begins(const struct pmuk_area *area, u64 head)
{
	u64 tail = READ_ONCE(*area->tail_of);

	return area->overwrite && head - tail > area->size ? head - area->size : tail;
}

void pmuk_area_stat(const struct pmuk_area *area, struct pmuk_aux_stat *stat)
{
	stat->head = READ_ONCE(area->head);
	stat->tail = pmuk_area_begins(area, stat->head);
	stat->truncated = READ_ONCE(area->truncated);
	stat->truncations = READ_ONCE(area->truncations);
	stat->full = READ_ONCE(area->full);
	stat->nested = READ_ONCE(area->nested);
	stat->discarded = READ_ONCE(area->discarded);
	stat->wakeups = READ_ONCE(area->wakeups);
}

/* ---- the reader ---- */

static bool pmuk_area_may_claim(const struct pmuk_area *area, int state)
{
	if (state & PMUK_AREA_READING)
		return false;
	if (!area->overwrite)
		return true;
	return (state & (PMUK_AREA_PAUSED | PMUK_AREA_OPEN)) == PMUK_AREA_PAUSED;
}

int pmuk_area_claim(struct pmuk_area *area, struct pmuk_aux_reader *r)
{
	int state = atomic_read(&area->state);

	do {
		if (!pmuk_area_may_claim(area, state))
			return -EBUSY;
	} while (!atomic_try_cmpxchg_acquire(&area->state, &state,	/* LMM(pmuk_area_claim:A) */
					     state | PMUK_AREA_READING));
	*r = (struct pmuk_aux_reader){ .area = area, .pos = area->tail, .end = area->tail };
	return 0;
}

/*
 * What is taken stays the reader's, whoever that is, until it has consumed what it is of, or that
 * has been overwritten.
 */
static u64 pmuk_area_take_flags(struct pmuk_area *area, u64 pos)
{
	if (atomic_read(&area->flags)) {
		area->taken |= atomic_xchg_acquire(&area->flags, 0);	/* LMM(pmuk_area_peek:B) */
		area->taken_to = READ_ONCE(area->flagged);
	}
	if (area->overwrite && (s64)(pos - area->taken_to) >= 0)
		area->taken = 0;
	return area->taken;
}

/* Head first: flags of what is seen are there then, and maybe some of what follows it. */
bool pmuk_area_peek(struct pmuk_aux_reader *r, struct pmuk_aux_span *span)
{
	struct pmuk_area *area = r->area;
	u64 head = smp_load_acquire(&area->head);	/* LMM(pmuk_area_peek:A) */

	if (area->overwrite && head - r->pos > area->size)
		r->pos = head - area->size;
	r->end = head;
	span->data = area->data + (r->pos & (area->size - 1));
	span->size = head - r->pos;
	span->head = r->pos;
	span->flags = pmuk_area_take_flags(area, r->pos);
	return span->size;
}

/* No more than was peeked at. */
void pmuk_area_consume(struct pmuk_aux_reader *r, u64 bytes)
{
	struct pmuk_area *area = r->area;

	bytes = min_t(u64, bytes, r->end - r->pos);
	if (!bytes)
		return;
	r->pos += bytes;
	if ((s64)(r->pos - area->taken_to) >= 0)
		area->taken = 0;
	smp_store_release(&area->tail, r->pos);		/* LMM(pmuk_area_consume:A) */
	WRITE_ONCE(area->ring->page->aux_tail, r->pos);
}

/* For one that has died: the caller knows that it is not in here. */
void pmuk_area_revoke(struct pmuk_area *area)
{
	/* LMM(pmuk_area_revoke:A) */
	atomic_fetch_andnot_release(PMUK_AREA_READING, &area->state);
}

void pmuk_area_release(struct pmuk_aux_reader *r)
{
	pmuk_area_revoke(r->area);
	r->area = NULL;
}

void pmuk_area_init(struct pmuk_area *area, const struct pmuk_area_config *config)
{
	*area = (struct pmuk_area){
		.ring		= config->ring,
		.data		= config->data,
		.size		= config->size,
		.watermark	= config->watermark,
		.least		= config->least,
		.wake_at	= config->watermark,
		.overwrite	= config->overwrite,
		.records	= config->records,
		.private	= config->private,
		.gone		= config->gone,
		.full_at	= PMUK_AREA_NEVER,
	};
	area->tail_of = config->user_tail ? (u64 *)&config->ring->page->aux_tail : &area->tail;
}
