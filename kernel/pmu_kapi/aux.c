// SPDX-License-Identifier: GPL-2.0
/*
 * The stream in an AUX area: a writer begins, ends and skips parts; a reader gets spans. This file
 * calls neither perf core nor the scheduler, and builds for user space as well, see
 * tools/testing/pmu_kapi.
 */
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "aux.h"

/**
 * DOC: The AUX area
 *
 * A single CPU writes, as in the record ring. There is one writer at a time: hardware, or code that
 * keeps to the same rules. A writer opens the area with begin, which says how much may be written,
 * and closes it with end, which says how much was written. Between the two the area stays open for
 * as long as that takes, over interrupts, and over records that interrupts write to the ring. One
 * reader at a time reads, on any CPU. Reader and writer do not wait for each other.
 *
 * Positions are bytes since the area was made, and never wrap; position & (size - 1) is an
 * offset into the area, since its size is a power of two, and so divides 2^64. The pages are
 * mapped twice in a row, so that bytes that begin in the first half are contiguous. In order::
 *
 *	tail <= head <= tail + size
 *
 *	tail .. head		the reader's
 *	head .. tail + size	the writer's, while it is open
 *
 * **Nested writers are refused**, and counted. A writer that interrupts another one finds the area
 * open. So the writer that has the area open is the only code on its CPU that changes head and
 * the writer's other fields, and need not do so atomically. Counters, and the flags that are due,
 * also change without an open area, or from an interrupt: they are atomic against interrupts.
 *
 * **Published bytes are reported**: the writer stores the data, then head, then a PERF_RECORD_AUX
 * in the ring. So a reader that finds the record finds the data. If the ring has no room, the next
 * record reports both parts. That record is PARTIAL, if there is a gap between the parts, or
 * something is missing in the first part. Nothing of that is lost with the record. If the area is
 * full, there is no next part: then a begin that is refused for that writes the record.
 *
 * **Other data in the ring**: user space that unmaps the ring, or maps another size of it, throws
 * its records away, and with them what they have reported. pmuk_area_swap() counts this in
 * ->swaps while the ring is held. The first PERF_RECORD_AUX of the new data reports all bytes that
 * no reader has given back, as PARTIAL.
 *
 * **Overwrite mode** has no tail: a writer may write all of the area each time. A reader needs the
 * area to be paused, and not open. Head goes on growing, and the area has the last bytes before
 * head, as many as its size.
 *
 * **A hostile tail**, in a page that user space writes, is believed only if it is within size
 * below head; if not, there is no room.
 *
 * **Copies of the newest bytes** are made by overflows on the owner. A copy opens the area, also if
 * it is paused, so no writer changes the bytes meanwhile: a writer that interrupts the copy is
 * refused as nested. If the overflow has interrupted a writer, the copy has only bytes that this
 * writer leaves alone.
 *
 * **Killed while open**, the area belongs to the writer until the writer ends. Kill and close
 * change the same word: the one that comes second lets go of the area.
 *
 * Between CPUs, "If A reads from B" means: if A sees the value that B has stored.
 *
 * LMM(pmuk_aux_peek:A) / LMM(pmuk_area_publish:A)
 *	If peek:A reads from publish:A, the reader sees all bytes up to that position. Release to
 *	acquire. aux-publish.litmus
 * user space / LMM(pmuk_area_publish:B)
 *	User space sees the same bytes: it loads aux_head, then orders its loads of data after
 *	that. aux-publish-user.litmus
 * LMM(pmuk_aux_peek:B) / LMM(pmuk_area_note:A)
 *	If peek:A reads from publish:A, this peek or an earlier one takes the flags that note:A
 *	has set before that. Release to acquire, of head. aux-flags.litmus
 *	A reader whose peek:B takes flags sees up to which byte they apply. Release to
 *	acquire, of the flags. aux-flagged.litmus
 * LMM(pmuk_buffer_peek:A) / LMM(pmuk_output_end:B)
 *	If a reader of records sees the PERF_RECORD_AUX of a part, it sees a head that covers it,
 *	and its bytes. Release to acquire, in the ring. aux-record.litmus
 * user space / LMM(pmuk_output_end:A)
 *	User space sees the same, and finds the record by data_head. aux-record-user.litmus
 * LMM(pmuk_area_room:A) / LMM(pmuk_aux_consume:A)
 *	If room:A reads from consume:A, the reader of bytes that were given back does not see what
 *	is written over them. Release to acquire. aux-room.litmus
 * LMM(pmuk_area_room:A) / user space
 *	User space is in the place of the reader: smp_mb(), then aux_tail. aux-room-user.litmus
 * LMM(pmuk_area_claim:A) / LMM(pmuk_aux_release:A)
 *	If claim:A reads from release:A, the new reader sees how far the old reader has come, and
 *	the flags that the old reader leaves. Release to acquire. aux-claim.litmus
 *	The old reader does not see what is written over bytes that the new reader gives back.
 *	aux-claim-room.litmus
 *	Both hold as well if claim:A reads from a later change of the state, by a writer or
 *	anybody, as each change reads and writes the state at once. aux-claim-hops.litmus
 * LMM(pmuk_area_claim:A) / LMM(pmuk_area_close:A)
 *	If claim:A reads from close:A, as it does in overwrite mode, the reader sees what that
 *	writer has written. A full barrier to acquire. aux-snapshot.litmus
 * LMM(pmuk_area_open:A) / LMM(pmuk_area_resume:A)
 *	If open:A reads from resume:A, code that has read the area before resume:A, on the same
 *	CPU, does not see what is written after open:A. Release to acquire. aux-resume.litmus
 *	Nor does a reader on a third CPU that ended with release:A before resume:A.
 *	aux-resume-reader.litmus
 * LMM(pmuk_area_kill:A) / LMM(pmuk_area_close:A)
 *	The killer or the writer sees the other's store, and lets go of the area, after all that
 *	the writer has written, and after the kill. Full barriers on both sides. aux-kill.litmus
 * LMM(pmuk_area_wake:A) / LMM(pmuk_area_kill:A)
 *	When a grace period has passed since kill:A, nobody is woken any more, though the area may
 *	be open still: between wake:A and the wakeup preemption is off. aux-wake.litmus
 */

/* pmuk_area::state */
#define PMUK_AREA_OPEN		BIT(0)	/* has a writer */
#define PMUK_AREA_PAUSED	BIT(1)	/* refuse writers: discarded */
#define PMUK_AREA_DEAD		BIT(2)	/* refuse writers for ever: discarded */
#define PMUK_AREA_READING	BIT(3)	/* has a reader */
#define PMUK_AREA_REFUSE	(PMUK_AREA_PAUSED | PMUK_AREA_DEAD)

/* A producer may set these flags. An area that overwrites sets PERF_AUX_FLAG_OVERWRITE itself. */
#define PMUK_AREA_FLAGS		(PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL | \
				 PERF_AUX_FLAG_COLLISION | PERF_AUX_FLAG_PMU_FORMAT_TYPE_MASK)

/* Each flag here reports an event. A record of several parts has the flags of all of them. */
#define PMUK_AREA_EVENTS	(PMUK_AREA_FLAGS & ~PERF_AUX_FLAG_PMU_FORMAT_TYPE_MASK)

/* No area ever reaches this position. */
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

/* Wake the consumer. A dead area has no consumer any more. */
static void pmuk_area_wake(struct pmuk_area *area)
{
	pmuk_ring_add(&area->wakeups, 1);
	if (!(atomic_read(&area->state) & PMUK_AREA_DEAD))	/* LMM(pmuk_area_wake:A) */
		area->ring->wake(area->ring);
}

/* ---- open and closed ---- */

/* Returns 0, or the bits of the state that refuse a writer. */
static int pmuk_area_open(struct pmuk_area *area)
{
	int state = atomic_read(&area->state);

	do {
		if (unlikely(state & (PMUK_AREA_OPEN | PMUK_AREA_REFUSE)))
			return state & (PMUK_AREA_OPEN | PMUK_AREA_REFUSE);
	} while (!atomic_try_cmpxchg_acquire(&area->state, &state,	/* LMM(pmuk_area_open:A) */
					     state | PMUK_AREA_OPEN));
	return 0;
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
 * Let the reader have @flags until it has consumed the bytes before position @to. Returns the flags
 * of earlier calls that the reader has not taken yet.
 */
static u64 pmuk_area_note(struct pmuk_area *area, u64 flags, u64 to)
{
	u64 old = READ_ONCE(area->flagged);

	while ((s64)(to - old) > 0 && !try_cmpxchg_local(&area->flagged, &old, to))
		;
	/* LMM(pmuk_area_note:A) */
	return atomic_fetch_or_release(flags & PMUK_AREA_EVENTS, &area->flags);
}

/* From now on the reader may read up to @head. */
static void pmuk_area_publish(struct pmuk_area *area, u64 head)
{
	smp_store_release(&area->head, head);			/* LMM(pmuk_area_publish:A) */
	smp_store_release(&area->ring->page->aux_head, head);	/* LMM(pmuk_area_publish:B) */
}

/*
 * Returns how many bytes no record in the ring's present data reports. A hostile tail makes this
 * the whole area.
 */
static u64 pmuk_area_unreported(const struct pmuk_area *area)
{
	u64 unreported = area->head - area->reported, used;

	if (likely(READ_ONCE(area->swaps) == area->swaps_seen))
		return unreported;
	used = area->head - READ_ONCE(*area->tail_of);
	return max_t(u64, unreported, min_t(u64, used, area->size));
}

/* Report at most the whole area: if nobody has read records for long, more bytes are unreported. */
static void pmuk_area_fill(struct pmuk_area *area, struct pmuk_aux_record *rec, u64 flags)
{
	u64 size = pmuk_area_unreported(area);

	if (area->overwrite)
		flags |= PERF_AUX_FLAG_OVERWRITE;
	else if (size > area->size || size > area->head - area->reported)
		flags |= PERF_AUX_FLAG_PARTIAL;
	rec->aux_size = min_t(u64, size, area->size);
	rec->aux_offset = area->head - rec->aux_size;
	rec->flags = flags | pmuk_ring_take(&area->due);
	/* The record is in the ring's present data: ->swaps counts the swap that brought them. */
	area->swaps_seen = READ_ONCE(area->swaps);
	WRITE_ONCE(area->reported, area->head);	/* pmuk_area_lose() reads this in interrupts */
}

/* Write a record of what was published since the last one. Returns whether it was written. */
static bool pmuk_area_report(struct pmuk_area *area, u64 flags)
{
	struct pmuk_buffer *b = pmuk_ring_buffer(area->ring);
	struct pmuk_aux_record *rec;

	if (!area->records || (!pmuk_area_unreported(area) && !(flags & PMUK_AREA_EVENTS) &&
			       !READ_ONCE(area->due)))
		return false;
	rec = (struct pmuk_aux_record *)pmuk_output_begin(b, PERF_RECORD_AUX, sizeof(*rec));
	if (!rec) {
		flags &= PMUK_AREA_EVENTS;
		pmuk_area_or(&area->due, flags | (flags ? PERF_AUX_FLAG_PARTIAL : 0));
		return false;
	}
	pmuk_area_fill(area, rec, flags);
	pmuk_output_end(b, &rec->header);
	return true;
}

/*
 * The reader may be waiting for more bytes than there is room for: wake it, once for this head. A
 * reader that goes by records gives no bytes back before a record reports them. So if the ring has
 * room now, try to write the record that was lost, and wake the reader if it was written.
 */
static void pmuk_area_is_full(struct pmuk_area *area)
{
	bool reported = pmuk_area_unreported(area) &&
			pmuk_ring_has_room(area->ring, sizeof(struct pmuk_aux_record)) &&
			pmuk_area_report(area, 0);

	pmuk_ring_add(&area->full, 1);
	if (area->full_at == area->head && !reported)
		return;
	WRITE_ONCE(area->full_at, area->head);	/* pmuk_area_awaits_reader() reads this */
	pmuk_area_wake(area);
}

/* Returns NULL when refused, and then it has been counted as full, nested or discarded. */
void *pmuk_area_begin(struct pmuk_area *area, struct pmuk_aux_handle *handle)
{
	int refused;
	u64 room;

	handle->area = NULL;
	refused = pmuk_area_open(area);
	if (unlikely(refused)) {
		pmuk_ring_add(refused & PMUK_AREA_OPEN ? &area->nested : &area->discarded, 1);
		return NULL;
	}
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

/* A producer that has written more than it was allowed to loses the excess: flag and count it. */
static u64 pmuk_area_fit(struct pmuk_area *area, struct pmuk_aux_handle *handle, u64 size)
{
	if (likely(size <= handle->size))
		return size;
	pmuk_ring_add(&area->truncated, size - handle->size);
	pmuk_area_or(&handle->flags, PERF_AUX_FLAG_TRUNCATED);
	return handle->size;
}

/**
 * pmuk_aux_output_end() - end what pmuk_aux_output_begin() has begun
 * @handle: the handle that pmuk_aux_output_begin() has filled
 * @size: bytes that were written, from &pmuk_aux_handle.head on
 *
 * Publishes the bytes, so other CPUs must be able to see them already, and reports them by a
 * PERF_RECORD_AUX in the buffer, with aux_offset, aux_size and flags. If the buffer is full, the
 * next PERF_RECORD_AUX reports these bytes, too. Bytes beyond &pmuk_aux_handle.size are counted as
 * truncated. Does nothing after a begin that has returned NULL.
 *
 * Context: Any, NMI too; on the buffer's CPU, with preemption off.
 */
void pmuk_aux_output_end(struct pmuk_aux_handle *handle, u64 size)
{
	struct pmuk_area *area = handle->area;
	u64 flags;

	if (!area)
		return;
	size = pmuk_area_fit(area, handle, size);
	flags = READ_ONCE(handle->flags);
	if (unlikely(flags & PMUK_AREA_EVENTS))	/* without bytes, they go with the next byte */
		pmuk_area_note(area, flags, handle->head + (size ?: 1));
	if (unlikely(flags & PERF_AUX_FLAG_TRUNCATED))
		pmuk_ring_add(&area->truncations, 1);
	pmuk_area_publish(area, handle->head + size);
	pmuk_area_report(area, flags);
	if (pmuk_area_passes_watermark(area) || (flags & PERF_AUX_FLAG_TRUNCATED))
		pmuk_area_wake(area);
	handle->area = NULL;
	pmuk_area_close(area);
}
EXPORT_SYMBOL_GPL(pmuk_aux_output_end);

/**
 * pmuk_aux_output_skip() - leave some bytes out
 * @handle: the handle that pmuk_aux_output_begin() has filled
 * @size: bytes to skip, from &pmuk_aux_handle.head on
 *
 * Some hardware can begin to write at aligned positions only. The skipped bytes are published
 * at once, with the content that was there before. &pmuk_aux_handle.head, &pmuk_aux_handle.size and
 * &pmuk_aux_handle.data then describe what follows them. No PERF_RECORD_AUX reports skipped bytes,
 * unless bytes before them are still to be reported: then one record reports all of these, with
 * PERF_AUX_FLAG_PARTIAL.
 *
 * Context: Any, NMI too; on the buffer's CPU, with preemption off.
 * Return: 0; -ENOSPC if there is less room than @size, -EINVAL if no part was begun.
 */
int pmuk_aux_output_skip(struct pmuk_aux_handle *handle, u64 size)
{
	struct pmuk_area *area = handle->area;

	if (!area)
		return -EINVAL;
	if (size > handle->size)
		return -ENOSPC;
	if (area->reported == area->head)
		WRITE_ONCE(area->reported, area->reported + size);
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
EXPORT_SYMBOL_GPL(pmuk_aux_output_skip);

/**
 * pmuk_aux_output_flag() - set flags of what is being written
 * @handle: the handle that pmuk_aux_output_begin() has filled
 * @flags: PERF_AUX_FLAG_TRUNCATED, _PARTIAL, _COLLISION or a PMU's format type; others are ignored
 *
 * pmuk_aux_output_end() reports the flags together with the bytes.
 *
 * Context: Any, NMI too; on the buffer's CPU.
 */
void pmuk_aux_output_flag(struct pmuk_aux_handle *handle, u64 flags)
{
	if (handle->area)
		pmuk_area_or(&handle->flags, flags & PMUK_AREA_FLAGS);
}
EXPORT_SYMBOL_GPL(pmuk_aux_output_flag);

/*
 * Let the next record report the loss. If bytes from before the loss are still to be reported, that
 * record has a gap. Wake the reader at the first loss that no record reports yet, or that no reader
 * has seen.
 */
void pmuk_area_lose(struct pmuk_area *area, u64 bytes)
{
	u64 head = READ_ONCE(area->head), flags = PERF_AUX_FLAG_TRUNCATED, pending;

	if (READ_ONCE(area->reported) != head)
		flags |= PERF_AUX_FLAG_PARTIAL;
	pmuk_ring_add(&area->truncated, bytes);
	pmuk_ring_add(&area->truncations, 1);
	pending = pmuk_area_note(area, PERF_AUX_FLAG_TRUNCATED, head + 1);
	pending &= pmuk_area_or(&area->due, flags);
	if (!(pending & PERF_AUX_FLAG_TRUNCATED))
		pmuk_area_wake(area);
}

/* ---- copies of the newest bytes, on the owner with interrupts off or in NMI ---- */

/*
 * Opens the area for a copy, so that no writer in an NMI changes the bytes before pmuk_area_thaw().
 * Returns false if the caller has interrupted a writer or another copy, or if the area is dead.
 */
bool pmuk_area_freeze(struct pmuk_area *area)
{
	int state = atomic_read(&area->state);

	do {
		if (state & (PMUK_AREA_OPEN | PMUK_AREA_DEAD))
			return false;
	} while (!atomic_try_cmpxchg_acquire(&area->state, &state, state | PMUK_AREA_OPEN));
	return true;
}

void pmuk_area_thaw(struct pmuk_area *area)
{
	pmuk_area_close(area);
}

/*
 * Returns how many of the newest bytes can be copied, at most @most. An interrupted writer may be
 * writing over bytes that were given back, and if the area overwrites, over any byte. A hostile
 * tail leaves none.
 */
u64 pmuk_area_newest(const struct pmuk_area *area, bool frozen, u64 most)
{
	u64 there = min(area->head, area->size), kept;

	if (frozen)
		return min(most, there);
	kept = area->head - READ_ONCE(*area->tail_of);
	return area->overwrite || kept > there ? 0 : min(most, kept);
}

void pmuk_area_copy(const struct pmuk_area *area, void *to, u64 size)
{
	memcpy(to, area->data + ((area->head - size) & (area->size - 1)), size);
}

/* ---- anybody ---- */

/*
 * Returns true if a writer has found too little room, and the reader has not made enough since.
 * Until it has, no writer wakes the reader again.
 */
bool pmuk_area_awaits_reader(const struct pmuk_area *area)
{
	u64 head = READ_ONCE(area->head), used = head - READ_ONCE(*area->tail_of);

	return READ_ONCE(area->full_at) == head &&
	       (used > area->size || area->size - used < READ_ONCE(area->least));
}

/*
 * The ring gets other data pages: its records are gone, and so is what they have reported. The
 * caller holds the ring, whose writers have ended. pmuk_ring_reset() lets writers in again after
 * this.
 */
void pmuk_area_swap(struct pmuk_area *area)
{
	WRITE_ONCE(area->swaps, area->swaps + 1);
}

/* A producer that has the area open goes on to its end. */
void pmuk_area_pause(struct pmuk_area *area)
{
	atomic_or(PMUK_AREA_PAUSED, &area->state);
}

/* In overwrite mode, the area may not change under its reader. */
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

/* Returns whether a writer has the area open. That writer then calls ->gone at its end. */
bool pmuk_area_kill(struct pmuk_area *area)
{
	/* LMM(pmuk_area_kill:A) pairs with pmuk_area_close:A and pmuk_area_wake:A */
	return atomic_fetch_or(PMUK_AREA_DEAD, &area->state) & PMUK_AREA_OPEN;
}

/* Returns the position of the oldest byte that is still there, and was not given back. */
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
 * The flags that a reader has taken stay for it, and for the next reader, until the bytes that they
 * are about are consumed or overwritten.
 */
static u64 pmuk_area_take_flags(struct pmuk_area *area, u64 pos)
{
	if (atomic_read(&area->flags)) {
		area->taken |= atomic_xchg_acquire(&area->flags, 0);	/* LMM(pmuk_aux_peek:B) */
		area->taken_to = READ_ONCE(area->flagged);
	}
	if (area->overwrite && (s64)(pos - area->taken_to) >= 0)
		area->taken = 0;
	return area->taken;
}

/**
 * pmuk_aux_peek() - the bytes that were not consumed
 * @r: the reader
 * @span: where to put them
 *
 * @span has all of these bytes, in place and in a row. They stay until they are consumed. A later
 * call may find more bytes behind them. If the area overwrites, @span has the newest bytes that
 * are there, at most as many as the area's size.
 *
 * Context: Any, NMI too; the reader's.
 * Return: Whether there are any.
 */
bool pmuk_aux_peek(struct pmuk_aux_reader *r, struct pmuk_aux_span *span)
{
	struct pmuk_area *area = r->area;
	/* Load head before the flags: the span has all flags of its bytes, and maybe more. */
	u64 head = smp_load_acquire(&area->head);	/* LMM(pmuk_aux_peek:A) */

	if (area->overwrite && head - r->pos > area->size)
		r->pos = head - area->size;
	r->end = head;
	span->data = area->data + (r->pos & (area->size - 1));
	span->size = head - r->pos;
	span->head = r->pos;
	span->flags = pmuk_area_take_flags(area, r->pos);
	return span->size;
}
EXPORT_SYMBOL_GPL(pmuk_aux_peek);

/**
 * pmuk_aux_consume() - give bytes back
 * @r: the reader
 * @bytes: how many of those that pmuk_aux_peek() has shown, from the oldest one on
 *
 * Their room is free from now on: aux_tail moves. If @bytes is more than pmuk_aux_peek() has shown,
 * only the bytes that it has shown are given back.
 *
 * Context: Any, NMI too; the reader's.
 */
void pmuk_aux_consume(struct pmuk_aux_reader *r, u64 bytes)
{
	struct pmuk_area *area = r->area;

	bytes = min_t(u64, bytes, r->end - r->pos);
	if (!bytes)
		return;
	r->pos += bytes;
	if ((s64)(r->pos - area->taken_to) >= 0)
		area->taken = 0;
	smp_store_release(&area->tail, r->pos);		/* LMM(pmuk_aux_consume:A) */
	WRITE_ONCE(area->ring->page->aux_tail, r->pos);
}
EXPORT_SYMBOL_GPL(pmuk_aux_consume);

/**
 * pmuk_aux_release() - end reading
 * @r: the reader
 *
 * Bytes that were not consumed are for the next reader. If the reader's thread has died, other code
 * that has @r releases it. That code makes sure that the thread uses none of the bytes any more.
 *
 * Context: Any, NMI too; the reader's.
 */
void pmuk_aux_release(struct pmuk_aux_reader *r)
{
	struct pmuk_area *area = r->area;

	r->area = NULL;
	/* LMM(pmuk_aux_release:A) */
	atomic_fetch_andnot_release(PMUK_AREA_READING, &area->state);
}
EXPORT_SYMBOL_GPL(pmuk_aux_release);

/* If @user_tail, user space consumes, and gives bytes back by the control page's aux_tail. */
void pmuk_area_init(struct pmuk_area *area, bool user_tail)
{
	area->wake_at = area->watermark;
	area->full_at = PMUK_AREA_NEVER;
	area->tail_of = user_tail ? (u64 *)&area->ring->page->aux_tail : &area->tail;
}
