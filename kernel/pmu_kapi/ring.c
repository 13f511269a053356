// SPDX-License-Identifier: GPL-2.0
/*
 * The record ring: reserve, commit, consume. This file calls neither perf core nor the
 * scheduler, and builds for user space as well, see tools/testing/pmu_kapi.
 */
#include <linux/bits.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/limits.h>
#include <linux/minmax.h>

#include "ring.h"

/**
 * DOC: The record ring
 *
 * A single CPU, the ring's owner, writes from any nesting of task (preemption off), softirq,
 * hardirq and NMI. There is one reader at a time, on any CPU. Neither waits for the other.
 *
 * Positions are bytes since the ring was made or last reset, multiples of 8, and do not
 * wrap; position & mask is an offset into the data. The data are mapped twice in a row, so
 * a record that begins in the first half is contiguous. limit is at most tail + size, and
 * may be below head. In order::
 *
 *	oldest or tail <= commit <= head <= tail + size
 *
 *	tail .. commit		whole records, the reader's
 *	commit .. head		reserved: the outermost writer's first, then those of
 *				writers that have interrupted it, finished or not
 *	head .. limit		known to be free
 *
 * **Writers nest.** A writer that interrupts another runs to its end before the other goes on, and
 * both are on one CPU. So reserving is an addition to head that need be atomic against interrupts
 * only. A writer W checks that its record ends below limit, then adds. If another writer reserves
 * between W's load of head and W's addition, W's record may end beyond limit. W then subtracts its
 * size again, and goes to the slow path. If by then a third writer has reserved a record after W's,
 * W cannot subtract. W need not: the third writer has found room up to the end of its own record,
 * which is after W's. So W keeps its record. Until W subtracts, head is too high, perhaps beyond
 * tail + size: a writer that interrupts W then may lose its record, though there is room for it.
 * With PMUK_BUFFER_STOP that loss stops the ring, as any loss does: earlier than need be, and W,
 * which finds the ring stopped, loses its record, too.
 *
 * The outermost writer is the one whose record begins at commit: when it ends, all
 * records up to head are whole, and it publishes them. Inner writers publish nothing. A
 * record is the only one if it is as long as all that is reserved, from commit to head.
 * An inner writer may still come between the outermost writer's reading of head and its
 * store to commit; hence the outermost writer reads head again afterwards. While it
 * publishes again, commit is odd, which is no record's position.
 *
 * **A writer that nothing interrupts**, pmuk_output_begin_alone(), writes its record beyond
 * head, below limit, while head equals commit. Its end moves head, and publishes at once.
 * No other writer comes in between, so neither has to compare.
 *
 * **limit** caches where the room ends, so that the fast path touches nothing that another CPU
 * writes. limit may be too low, down to 0: then the slow path finds out why. A pause, on any CPU,
 * writes the state, then sets limit to 0. The owner raises limit, then reads the state, and sets
 * limit to 0 again if it finds a pause. If the owner and a pauser race, the later of them sets
 * limit to 0. A writer that interrupts the owner while it is about to raise limit, and loses a
 * record, sets limit to 0 as well. So the owner stores PMUK_RING_RAISING, then raises limit from
 * that by compare-and-exchange. A writer that has interrupted it has left another value there.
 *
 * **Wakeups** cost the fast path nothing: limit ends below the next wakeup that no reserved record
 * has reached, so the slow path reserves the record that reaches it. The slow path then sets a flag
 * in commit, and raises limit up to the wakeup after that. commit does not move until the record
 * ends. The flag sends the outermost writer's end to the slow path, which publishes, then wakes.
 * The outermost writer may have read commit before an inner writer sets the flag, and then clears
 * it. But the inner writer's record moves head, which takes the outermost writer to the slow path,
 * too. A writer that gives up a record sets limit to 0 first, as the record may be the one that
 * reaches wake_at. The flag may outlive it; then nobody is woken.
 *
 * **Overwrite mode** moves oldest over whole records before new ones are reserved in their place,
 * and never beyond commit: a record that an interrupted writer has reserved stays, and a record
 * that would overwrite it is lost, as in the other modes. oldest is the control page's data_tail,
 * which user space may not write in this mode: a reader that has the pages mapped begins there.
 *
 * **A hostile tail**, in a page that user space writes, can only change how much room the owner
 * finds. A tail up to size below commit is believed. A tail between commit and head counts as
 * commit: user space sees data_head before commit moves. With any other tail there is no room.
 *
 * Between CPUs, "If A reads from B" means: if A sees the value that B has stored.
 *
 * LMM(pmuk_buffer_peek:A) / LMM(pmuk_output_end:B)
 *	If peek:A reads from end:B, the reader sees all records up to that position
 *	whole. Release to acquire. ring-publish.litmus
 * user space / LMM(pmuk_output_end:A)
 *	The same for a reader that has the pages mapped, which loads data_head, then
 *	orders its loads of data after that. ring-publish-user.litmus
 * LMM(pmuk_ring_room:A) / LMM(pmuk_buffer_consume:A)
 *	If room:A reads from consume:A, the reader of a record that was given back does not
 *	see what the owner writes over it. Release to acquire, and all that the owner
 *	writes later is after room:A. ring-room.litmus
 * LMM(pmuk_ring_raise:A) / LMM(pmuk_ring_forbid:A)
 *	Of "limit, then state" here and "state, then limit" there, at least one sees
 *	the other's store, so limit ends at 0, or the state is seen. Full barriers
 *	on both sides. ring-pause.litmus
 *	And when a grace period has passed since forbid:A, no writer uses an old
 *	limit any more. ring-freeze.litmus
 * LMM(pmuk_ring_claim:A) / LMM(pmuk_buffer_release:A)
 *	If claim:A reads from release:A, a reader sees how far the one before it has
 *	come. Release to acquire. ring-claim.litmus
 * LMM(__pmuk_output_begin:A) / LMM(pmuk_buffer_resume:A)
 *	If begin:A reads from resume:A, a reader from before the resume does not see what is
 *	written now. Release to acquire. ring-resume.litmus
 * LMM(__pmuk_output_begin:A) / LMM(pmuk_buffer_restart:A)
 *	If begin:A reads from restart:A, the owner finds the room that was given back before the
 *	restart, so that the ring does not stop again. Release to acquire. ring-restart.litmus
 * LMM(__pmuk_output_begin:A) / LMM(pmuk_ring_reset:A)
 *	If begin:A reads from reset:A, the owner sees where the data are now. Release to acquire;
 *	and no writer is left from before the reset, whose caller has waited for all of them.
 *	Writers that begin meanwhile find limit 0, and store nothing to head. ring-reset.litmus
 */

/* pmuk_ring::state */
#define PMUK_RING_PAUSED	BIT(0)	/* refuse records: discarded */
#define PMUK_RING_DEAD		BIT(1)	/* refuse records for ever: discarded */
#define PMUK_RING_STOPPED	BIT(2)	/* refuse records: lost */
#define PMUK_RING_READING	BIT(3)	/* has a reader */
#define PMUK_RING_HELD		BIT(4)	/* refuse records: discarded, for pmuk_ring_reset() */
#define PMUK_RING_DISCARD	(PMUK_RING_PAUSED | PMUK_RING_DEAD | PMUK_RING_HELD)
#define PMUK_RING_REFUSE	(PMUK_RING_DISCARD | PMUK_RING_STOPPED)

/* pmuk_ring::limit: there is no room, as with 0, but a writer is about to raise the limit */
#define PMUK_RING_RAISING	1

/* pmuk_ring::commit: flags below a position, which is a multiple of 8 */
#define PMUK_COMMIT_AGAIN	1ULL	/* the outermost writer publishes again */
#define PMUK_COMMIT_DUE		2ULL	/* a reserved record is to wake the consumer */
#define PMUK_COMMIT_FLAGS	7ULL

/* Overwrite mode frees at most so many bytes more than a record needs, as it may run in NMI. */
#define PMUK_RING_AHEAD		4096

/* No ring ever reaches this position. */
#define PMUK_RING_NEVER		((u64)S64_MAX)

struct pmuk_lost_record {
	struct perf_event_header header;
	u64 id;		/* 0: records of any writer were lost, not those of one event */
	u64 lost;
};

static u64 pmuk_ring_committed(const struct pmuk_ring *ring)
{
	return READ_ONCE(ring->commit) & ~PMUK_COMMIT_FLAGS;
}

static struct perf_event_header *pmuk_ring_at(const struct pmuk_ring *ring, u64 pos)
{
	return (struct perf_event_header *)(ring->data + (pos & ring->mask));
}

/*
 * Counts in @n the records from @oldest on that begin below @to, and returns where the last of them
 * ends. A writer that interrupts this one moves the tail before it overwrites anything. Then the
 * size that may have been read from an overwritten header is not used.
 */
static u64 pmuk_ring_skim(const struct pmuk_ring *ring, u64 oldest, u64 to, u64 *n)
{
	u64 pos = oldest;
	u16 size;

	for (*n = 0; (s64)(to - pos) > 0; pos += size, ++*n) {
		size = READ_ONCE(pmuk_ring_at(ring, pos)->size);
		if (READ_ONCE(*ring->tail_of) != oldest)
			break;
	}
	return pos;
}

/*
 * Makes room up to @end in overwrite mode, and somewhat more, so that not every record has to make
 * room. If a writer that interrupts this one has moved the tail, this one begins again from there.
 */
static void pmuk_ring_forget(struct pmuk_ring *ring, u64 end, u64 commit)
{
	u64 oldest = READ_ONCE(*ring->tail_of), pos, to, n;

	if ((s64)(end - oldest) <= (s64)ring->size)
		return;
	end += min_t(u64, ring->size / 16, PMUK_RING_AHEAD);
	to = min_t(s64, end - ring->size, commit);
	do {
		pos = pmuk_ring_skim(ring, oldest, to, &n);
	} while (!try_cmpxchg_local(ring->tail_of, &oldest, pos));
	pmuk_ring_add(&ring->overwritten, n);
}

/* Returns the position of the first wakeup above @head. @from is the position of an earlier one. */
static u64 pmuk_ring_next_wakeup(const struct pmuk_ring *ring, u64 from, u64 head)
{
	return from + (head - from) / ring->watermark * ring->watermark + ring->watermark;
}

/*
 * The caller has reserved a record, which is published after this. Until then, writers that
 * interrupt the caller store to ->commit only here. So setting the flag need not be atomic.
 */
static void pmuk_ring_mark_due(struct pmuk_ring *ring)
{
	smp_store_release(&ring->commit,			/* LMM(pmuk_output_end:B) */
			  READ_ONCE(ring->commit) | PMUK_COMMIT_DUE);
}

/*
 * The caller has reserved a record up to @end. Marks the record if it reaches ->wake_at. Returns
 * the position of the first wakeup above @end, which a later record will reach.
 */
static u64 pmuk_ring_check_due(struct pmuk_ring *ring, u64 end)
{
	u64 at = READ_ONCE(ring->wake_at);

	if ((s64)(end - at) < 0)
		return at;
	pmuk_ring_mark_due(ring);
	return pmuk_ring_next_wakeup(ring, at, end);
}

/*
 * The caller has reserved a record up to @end, and knows that there is room up to @limit. The limit
 * is a position, so it is not PMUK_RING_RAISING.
 */
static void pmuk_ring_raise(struct pmuk_ring *ring, u64 end, u64 limit)
{
	u64 raising = PMUK_RING_RAISING;

	/* The fast path does not count records, so ->wakeup_events keeps it closed. */
	if (ring->wakeup_events)
		return;
	limit = min_t(u64, limit, (pmuk_ring_check_due(ring, end) - 1) & ~PMUK_COMMIT_FLAGS);
	WRITE_ONCE(ring->limit, PMUK_RING_RAISING);
	barrier();	/* a writer that interrupts and loses a record is seen below, or stores 0 */
	if (READ_ONCE(ring->pending) || (atomic_read(&ring->state) & PMUK_RING_STOPPED)) {
		WRITE_ONCE(ring->limit, 0);
		return;
	}
	if (!try_cmpxchg_local(&ring->limit, &raising, limit))
		return;
	smp_mb();	/* LMM(pmuk_ring_raise:A) pairs with pmuk_ring_forbid:A */
	if (atomic_read(&ring->state) & PMUK_RING_REFUSE)
		WRITE_ONCE(ring->limit, 0);
}

/* Returns up to where there is room, at least up to @end, or 0. */
static u64 pmuk_ring_room(struct pmuk_ring *ring, u64 end)
{
	u64 commit = pmuk_ring_committed(ring);
	u64 tail;

	if (end - commit > ring->size)
		return 0;
	if (ring->mode == PMUK_BUFFER_OVERWRITE) {
		pmuk_ring_forget(ring, end, commit);
		return READ_ONCE(*ring->tail_of) + ring->size;
	}
	tail = smp_load_acquire(ring->tail_of);	/* LMM(pmuk_ring_room:A) */
	/* A process that has the pages mapped may see what is published before ->commit says so. */
	if (tail - commit <= READ_ONCE(ring->head) - commit)
		tail = commit;
	if (commit - tail > ring->size || end - tail > ring->size)
		return 0;
	return tail + ring->size;
}

static struct perf_event_header *pmuk_ring_fill(const struct pmuk_ring *ring, u64 pos, u32 type,
						u32 size)
{
	struct perf_event_header *rec = pmuk_ring_at(ring, pos);

	*rec = (struct perf_event_header){ .type = type, .size = size };
	return rec;
}

static struct perf_event_header *pmuk_ring_reserve(struct pmuk_ring *ring, u32 type, u32 size,
						   u32 more)
{
	u64 head, limit;

	/* If ->head has moved while there seemed to be no room, try again. */
	for (;;) {
		head = READ_ONCE(ring->head);
		limit = pmuk_ring_room(ring, head + size + more);
		if (limit) {
			if (try_cmpxchg_local(&ring->head, &head, head + size))
				break;
		} else if (READ_ONCE(ring->head) == head) {
			return NULL;
		}
	}

	pmuk_ring_raise(ring, head + size, limit);
	return pmuk_ring_fill(ring, head, type, size);
}

/* With ->wakeup_events, each so many records wake the consumer. */
static void pmuk_ring_count_event(struct pmuk_ring *ring)
{
	if ((pmuk_ring_add(&ring->events, 1) + 1) % ring->wakeup_events == 0)
		pmuk_ring_mark_due(ring);
}

static void pmuk_ring_wake(struct pmuk_ring *ring)
{
	pmuk_ring_add(&ring->wakeups, 1);
	ring->wake(ring);
}

/* Returns the size of the largest record that fits into an empty ring after a PERF_RECORD_LOST. */
u32 pmuk_ring_record_max(const struct pmuk_ring *ring)
{
	u64 size = READ_ONCE(ring->size);

	size -= min_t(u64, size, sizeof(struct pmuk_lost_record));
	return min_t(u64, size, PMUK_RECORD_MAX);
}

/* Returns whether a record of @size fits now, after a PERF_RECORD_LOST. */
bool pmuk_ring_has_room(const struct pmuk_ring *ring, u64 size)
{
	u64 used = READ_ONCE(ring->head) - READ_ONCE(*ring->tail_of), all = READ_ONCE(ring->size);

	size += sizeof(struct pmuk_lost_record);
	return ring->mode == PMUK_BUFFER_OVERWRITE || (used <= all && all - used >= size);
}

/*
 * Returns true if the ring has lost records that no record reports yet, and the consumer has not
 * given back all records. Further losses then wake nobody, unless they stop the ring. In overwrite
 * mode the consumer cannot make room. While the ring is held, its positions change.
 */
bool pmuk_ring_is_full(const struct pmuk_ring *ring)
{
	return ring->mode != PMUK_BUFFER_OVERWRITE && READ_ONCE(ring->pending) &&
	       !(atomic_read(&ring->state) & PMUK_RING_HELD) &&
	       pmuk_ring_committed(ring) != READ_ONCE(*ring->tail_of);
}

/*
 * Wake the consumer at the first loss that no record reports yet, as the consumer may be waiting
 * for more than there is room for. Wake it at each stop, too. A record that is lost because the
 * ring is stopped does not stop the ring again, which may have been restarted since.
 */
static struct perf_event_header *pmuk_ring_lose(struct pmuk_ring *ring, int state)
{
	bool tell = !pmuk_ring_add(&ring->pending, 1);

	pmuk_ring_add(&ring->lost, 1);
	if (ring->mode == PMUK_BUFFER_STOP && !(state & PMUK_RING_STOPPED))
		tell |= !(atomic_fetch_or(PMUK_RING_STOPPED, &ring->state) & PMUK_RING_STOPPED);
	if (tell)
		pmuk_ring_wake(ring);
	WRITE_ONCE(ring->limit, 0);
	return NULL;
}

static struct perf_event_header *pmuk_ring_discard(struct pmuk_ring *ring)
{
	pmuk_ring_add(&ring->discarded, 1);
	return NULL;
}

/* Report the records lost, if there is room for the report and for a record of @size. */
static bool pmuk_ring_report_lost(struct pmuk_ring *ring, u32 size)
{
	struct pmuk_lost_record *lost;

	if (!READ_ONCE(ring->pending))
		return true;
	lost = (struct pmuk_lost_record *)pmuk_ring_reserve(ring, PERF_RECORD_LOST,
							    sizeof(*lost), size);
	if (!lost)
		return false;
	lost->id = 0;
	lost->lost = pmuk_ring_take(&ring->pending);
	pmuk_output_end(pmuk_ring_buffer(ring), &lost->header);
	return true;
}

/**
 * __pmuk_output_begin() - the slow path of pmuk_output_begin()
 * @ring: the buffer's ring
 * @type: perf_event_header::type
 * @size: bytes with the header
 *
 * Nothing but pmuk_output_begin() calls this.
 *
 * Context: As pmuk_output_begin().
 * Return: As pmuk_output_begin().
 */
struct perf_event_header *__pmuk_output_begin(struct pmuk_ring *ring, u32 type, u32 size)
{
	int state = atomic_read_acquire(&ring->state);	/* LMM(__pmuk_output_begin:A) */
	struct perf_event_header *rec;

	if (!pmuk_record_size_ok(size) || (state & PMUK_RING_DISCARD))
		return pmuk_ring_discard(ring);
	if ((state & PMUK_RING_STOPPED) || !pmuk_ring_report_lost(ring, size))
		return pmuk_ring_lose(ring, state);
	rec = pmuk_ring_reserve(ring, type, size, 0);
	if (!rec)
		return pmuk_ring_lose(ring, state);
	if (ring->wakeup_events)
		pmuk_ring_count_event(ring);
	return rec;
}
EXPORT_SYMBOL_GPL(__pmuk_output_begin);

/**
 * __pmuk_output_begin_moved() - the slow path of pmuk_output_begin() if others have moved ->head
 * @ring: the buffer's ring
 * @type: perf_event_header::type
 * @size: bytes with the header
 * @pos: what ->head was before the caller added @size to it; the record begins there if it stays
 *
 * Only pmuk_output_begin() calls this: another writer has moved ->head after the caller had loaded
 * it. The caller's check of ->limit was for another position, so this function checks again.
 *
 * Context: As pmuk_output_begin().
 * Return: As pmuk_output_begin().
 */
struct perf_event_header *__pmuk_output_begin_moved(struct pmuk_ring *ring, u32 type, u32 size,
						    u64 pos)
{
	u64 head = pos + size;

	if ((s64)(READ_ONCE(ring->limit) - head) < 0 && try_cmpxchg_local(&ring->head, &head, pos))
		return __pmuk_output_begin(ring, type, size);
	/* There is room: ->limit says so, or another writer has reserved a record behind this. */
	return pmuk_ring_fill(ring, pos, type, size);
}
EXPORT_SYMBOL_GPL(__pmuk_output_begin_moved);

/* If several writers are here at once, one of them moves ->wake_at over @head. */
static bool pmuk_ring_passes_watermark(struct pmuk_ring *ring, u64 head)
{
	u64 at = READ_ONCE(ring->wake_at), next;

	do {
		if ((s64)(head - at) < 0)
			return false;
		next = pmuk_ring_next_wakeup(ring, at, head);
	} while (!try_cmpxchg_local(&ring->wake_at, &at, next));
	return true;
}

/*
 * If several writers are here at once, one of them moves ->events_done. The slow path has counted
 * the records in ->events.
 */
static bool pmuk_ring_passes_events(struct pmuk_ring *ring)
{
	u64 due = READ_ONCE(ring->events) / ring->wakeup_events;
	u64 done = READ_ONCE(ring->events_done);

	do {
		if (due <= done)
			return false;
	} while (!try_cmpxchg_local(&ring->events_done, &done, due));
	return true;
}

/* Wake the consumer, if it is time. */
static void pmuk_ring_wake_if_due(struct pmuk_ring *ring)
{
	if (ring->wakeup_events ? !pmuk_ring_passes_events(ring) :
				  !pmuk_ring_passes_watermark(ring, pmuk_ring_committed(ring)))
		return;
	pmuk_ring_add(&ring->marks, 1);
	pmuk_ring_wake(ring);
}

/**
 * __pmuk_output_again() - publish all records, and wake the consumer if it is time
 * @ring: the buffer's ring
 *
 * Only pmuk_output_end() and __pmuk_output_end() call this, in the outermost writer. Records may
 * have come in while pmuk_output_end() has published others.
 *
 * Context: As pmuk_output_begin().
 */
void __pmuk_output_again(struct pmuk_ring *ring)
{
	u64 commit, head;

	do {
		/*
		 * Writers that find ->commit odd leave publishing to this one. Keep what others
		 * have published until then, as a reader may have given it back.
		 */
		commit = READ_ONCE(ring->commit);
		while (!try_cmpxchg_release(&ring->commit, &commit,	/* LMM(pmuk_output_end:B) */
					    commit | PMUK_COMMIT_AGAIN))
			;
		barrier();	/* the compiler must not load ->head before ->commit is odd */
		head = READ_ONCE(ring->head);
		smp_store_release(ring->head_of, head);			/* LMM(pmuk_output_end:A) */
		smp_store_release(&ring->commit, head);			/* LMM(pmuk_output_end:B) */
		barrier();	/* a writer in an NMI from here on publishes its record itself */
	} while (READ_ONCE(ring->head) != head);

	if ((s64)(head - READ_ONCE(ring->wake_at)) >= 0)
		pmuk_ring_wake_if_due(ring);
}
EXPORT_SYMBOL_GPL(__pmuk_output_again);

/**
 * __pmuk_output_end() - the slow path of pmuk_output_end()
 * @ring: the buffer's ring
 * @rec: the record that ends
 *
 * If this writer has interrupted another one, that one publishes both records. ->commit is odd
 * while it does.
 *
 * Context: As pmuk_output_begin().
 */
void __pmuk_output_end(struct pmuk_ring *ring, struct perf_event_header *rec)
{
	if (pmuk_ring_at(ring, READ_ONCE(ring->commit) & ~PMUK_COMMIT_DUE) == rec)
		__pmuk_output_again(ring);
}
EXPORT_SYMBOL_GPL(__pmuk_output_end);

/**
 * pmuk_output_skip() - give up a reserved record
 * @b: the buffer
 * @rec: what pmuk_output_begin() has returned
 *
 * Called in place of pmuk_output_end(). The record is counted as discarded. If other records have
 * been written behind it, readers find a PERF_RECORD_LOST_SAMPLES of 0 in its place.
 *
 * Context: As pmuk_output_begin().
 */
void pmuk_output_skip(struct pmuk_buffer *b, struct perf_event_header *rec)
{
	struct pmuk_ring *ring = pmuk_buffer_ring(b);
	u64 head = READ_ONCE(ring->head);
	u64 start = head - rec->size;

	pmuk_ring_add(&ring->discarded, 1);
	/*
	 * If @rec was to wake the consumer, ->limit is beyond ->wake_at. Close the fast path, so
	 * that the slow path marks a later record that reaches ->wake_at.
	 */
	WRITE_ONCE(ring->limit, 0);
	barrier();	/* a writer that raises the limit after this has moved ->head */
	if (pmuk_ring_at(ring, start) == rec && try_cmpxchg_local(&ring->head, &head, start))
		return;
	rec->type = PERF_RECORD_LOST_SAMPLES;
	rec->misc = 0;
	*(u64 *)(rec + 1) = 0;
	pmuk_output_end(b, rec);
}
EXPORT_SYMBOL_GPL(pmuk_output_skip);

static void pmuk_ring_forbid(struct pmuk_ring *ring, int state)
{
	atomic_or(state, &ring->state);
	smp_mb__after_atomic();	/* LMM(pmuk_ring_forbid:A) pairs with pmuk_ring_raise:A */
	WRITE_ONCE(ring->limit, 0);
}

/**
 * pmuk_buffer_pause() - refuse records from now on
 * @b: the buffer
 *
 * Refused records are counted as discarded. Records that are being written are finished. When
 * something has gone wrong, this freezes a flight recorder, which can be read later.
 *
 * Context: Any, NMI too; from any CPU.
 * Return: 0; -EINVAL if @b is NULL or an ERR_PTR().
 */
int pmuk_buffer_pause(struct pmuk_buffer *b)
{
	if (IS_ERR_OR_NULL(b))
		return -EINVAL;
	pmuk_ring_forbid(pmuk_buffer_ring(b), PMUK_RING_PAUSED);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_buffer_pause);

/**
 * pmuk_buffer_resume() - take records again, after pmuk_buffer_pause()
 * @b: the buffer
 *
 * Context: Any, NMI too; from any CPU.
 * Return: 0; -EINVAL if @b is NULL or an ERR_PTR(), -EBUSY if it overwrites and has a reader.
 */
int pmuk_buffer_resume(struct pmuk_buffer *b)
{
	struct pmuk_ring *ring = pmuk_buffer_ring(b);
	int state;

	if (IS_ERR_OR_NULL(b))
		return -EINVAL;
	state = atomic_read(&ring->state);
	do {
		/* In overwrite mode, the records may not move under their reader. */
		if (ring->mode == PMUK_BUFFER_OVERWRITE && (state & PMUK_RING_READING))
			return -EBUSY;
		/* LMM(pmuk_buffer_resume:A) */
	} while (!atomic_try_cmpxchg_release(&ring->state, &state, state & ~PMUK_RING_PAUSED));
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_buffer_resume);

/**
 * pmuk_buffer_restart() - take records again, after a PMUK_BUFFER_STOP buffer was full
 * @b: the buffer
 *
 * A PERF_RECORD_LOST before the next record reports the records that were lost. If there is no
 * room for these two records, the buffer stops again. Follows pfmk_restart() of perfmon2's KAPI.
 *
 * Context: Any, NMI too; from any CPU.
 * Return: 0; -EINVAL if @b is NULL or an ERR_PTR().
 */
int pmuk_buffer_restart(struct pmuk_buffer *b)
{
	if (IS_ERR_OR_NULL(b))
		return -EINVAL;
	/* LMM(pmuk_buffer_restart:A) */
	atomic_fetch_andnot_release(PMUK_RING_STOPPED, &pmuk_buffer_ring(b)->state);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_buffer_restart);

void pmuk_ring_kill(struct pmuk_ring *ring)
{
	pmuk_ring_forbid(ring, PMUK_RING_DEAD);
}

void pmuk_ring_hold(struct pmuk_ring *ring)
{
	pmuk_ring_forbid(ring, PMUK_RING_HELD);
}

/* Give the ring other data pages. The caller holds the ring, and has waited for its writers. */
void pmuk_ring_reset(struct pmuk_ring *ring, u8 *data, u64 size, u32 watermark)
{
	ring->watermark = watermark;
	ring->data = data;
	ring->mask = size ? size - 1 : 0;
	/* Overflows, poll() and statistics may read these now, but use no records. */
	WRITE_ONCE(ring->size, size);
	WRITE_ONCE(ring->head, 0);
	WRITE_ONCE(ring->limit, 0);
	WRITE_ONCE(ring->commit, 0);
	WRITE_ONCE(ring->tail, 0);
	if (!ring->wakeup_events)
		ring->wake_at = watermark ?: PMUK_RING_NEVER;
	ring->page->data_head = 0;
	WRITE_ONCE(ring->page->data_tail, 0);
	atomic_fetch_andnot_release(PMUK_RING_HELD, &ring->state);	/* LMM(pmuk_ring_reset:A) */
}

/**
 * pmuk_buffer_get_stat() - what became of the records of a buffer
 * @b: the buffer
 * @stat: where to put it
 *
 * Exact when nobody is writing or reading.
 *
 * Context: Any, NMI too; from any CPU.
 * Return: 0; -EINVAL if @b or @stat is NULL or an ERR_PTR().
 */
int pmuk_buffer_get_stat(struct pmuk_buffer *b, struct pmuk_buffer_stat *stat)
{
	const struct pmuk_ring *ring = pmuk_buffer_ring(b);

	if (IS_ERR_OR_NULL(b) || IS_ERR_OR_NULL(stat))
		return -EINVAL;
	stat->consumed = READ_ONCE(ring->consumed);
	stat->overwritten = READ_ONCE(ring->overwritten);
	stat->lost = READ_ONCE(ring->lost);
	stat->discarded = READ_ONCE(ring->discarded);
	stat->wakeups = READ_ONCE(ring->wakeups);
	stat->head = pmuk_ring_committed(ring);
	stat->tail = READ_ONCE(*ring->tail_of);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_buffer_get_stat);

/* Begin again at the oldest record. The caller has waited for writers from before the pause. */
void pmuk_ring_rewind(struct pmuk_reader *r)
{
	r->pos = READ_ONCE(*r->ring->tail_of);
	r->end = r->pos;
	r->head = r->pos;
}

/* In overwrite mode, writers from before the pause may go on for a while after this. */
int pmuk_ring_claim(struct pmuk_ring *ring, struct pmuk_reader *r)
{
	int state = atomic_read(&ring->state);

	do {
		if (state & PMUK_RING_READING)
			return -EBUSY;
		if (ring->mode == PMUK_BUFFER_OVERWRITE && !(state & PMUK_RING_PAUSED))
			return -EBUSY;
	} while (!atomic_try_cmpxchg_acquire(&ring->state, &state,	/* LMM(pmuk_ring_claim:A) */
					     state | PMUK_RING_READING));

	r->ring = ring;
	pmuk_ring_rewind(r);
	return 0;
}

/**
 * pmuk_buffer_peek() - the oldest record that was not consumed
 * @r: the reader
 *
 * Context: Any; the reader's.
 * Return: The record, in place and whole, until it is consumed; or NULL if there is none.
 */
const struct perf_event_header *pmuk_buffer_peek(struct pmuk_reader *r)
{
	struct pmuk_ring *ring = r->ring;
	struct perf_event_header *rec;
	u64 head;

	if (r->pos == r->head) {
		head = smp_load_acquire(&ring->commit);	/* LMM(pmuk_buffer_peek:A) */
		head &= ~PMUK_COMMIT_FLAGS;
		if ((s64)(head - r->pos) <= 0)
			return NULL;
		r->head = head;
	}
	rec = pmuk_ring_at(ring, r->pos);
	r->end = r->pos + rec->size;
	return rec;
}
EXPORT_SYMBOL_GPL(pmuk_buffer_peek);

/**
 * pmuk_buffer_consume() - give back the record that was peeked at
 * @r: the reader
 *
 * The record's room is free from now on. Without a pmuk_buffer_peek() before, this does nothing.
 *
 * Context: Any; the reader's.
 */
void pmuk_buffer_consume(struct pmuk_reader *r)
{
	struct pmuk_ring *ring = r->ring;

	if (r->pos == r->end)
		return;
	r->pos = r->end;
	WRITE_ONCE(ring->consumed, ring->consumed + 1);
	smp_store_release(ring->tail_of, r->pos);	/* LMM(pmuk_buffer_consume:A) */
}
EXPORT_SYMBOL_GPL(pmuk_buffer_consume);

/**
 * pmuk_buffer_release() - end reading
 * @r: the reader
 *
 * Records that were not consumed are for the next reader. If the reader's thread has died, other
 * code that has @r releases it. That code makes sure that the thread uses no record any more.
 *
 * Context: Any; the reader's.
 */
void pmuk_buffer_release(struct pmuk_reader *r)
{
	struct pmuk_ring *ring = r->ring;

	WRITE_ONCE(ring->page->data_tail, r->pos);
	r->ring = NULL;
	/* LMM(pmuk_buffer_release:A) */
	atomic_fetch_andnot_release(PMUK_RING_READING, &ring->state);
}
EXPORT_SYMBOL_GPL(pmuk_buffer_release);

/*
 * The creator has set ->page, ->mode, ->wakeup_events and ->wake, and calls pmuk_ring_reset() next.
 * If @user_tail, user space consumes, and stores its position in the control page's data_tail.
 */
void pmuk_ring_init(struct pmuk_ring *ring, bool user_tail)
{
	bool on_page = user_tail || ring->mode == PMUK_BUFFER_OVERWRITE;

	ring->head_of = (u64 *)&ring->page->data_head;
	ring->tail_of = on_page ? (u64 *)&ring->page->data_tail : &ring->tail;
}
