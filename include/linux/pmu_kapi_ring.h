/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The records of a pmuk buffer: the producer's fast path, and the reader's calls. Consumers include
 * linux/pmu_kapi.h, which includes this header. The top of kernel/pmu_kapi/ring.c says how the ring
 * works.
 */
#ifndef _LINUX_PMU_KAPI_RING_H
#define _LINUX_PMU_KAPI_RING_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/kconfig.h>
#include <linux/types.h>
#include <uapi/linux/perf_event.h>
#include <asm/barrier.h>
#include <asm/local64.h>

struct pmuk_buffer;

/**
 * enum pmuk_buffer_mode - what becomes of a record for which there is no room
 * @PMUK_BUFFER_DROP: the record is lost, and counted; a PERF_RECORD_LOST is written when
 *	there is room again
 * @PMUK_BUFFER_OVERWRITE: the record replaces the oldest ones (a flight recorder). Pause the
 *	buffer before you read it. The oldest record begins at the control page's data_tail,
 *	also for user space that has mapped the buffer
 * @PMUK_BUFFER_STOP: the record is lost and counted, and so are all later records, until
 *	pmuk_buffer_restart()
 */
enum pmuk_buffer_mode {
	PMUK_BUFFER_DROP,
	PMUK_BUFFER_OVERWRITE,
	PMUK_BUFFER_STOP,
};

/**
 * struct pmuk_buffer_stat - what became of the records of a buffer
 * @consumed: records that the kernel's consumer has given back
 * @overwritten: records that newer ones have replaced, unread
 * @lost: records for which there was no room
 * @discarded: records refused while paused, or after user space has unmapped the data, or of a
 *	bad size, or given up by pmuk_output_skip()
 * @wakeups: how often the consumer was due to be woken. When two wakeups are due before
 *	interrupts are on again, the consumer is woken once
 * @head: bytes of whole records written since the positions last began at 0
 * @tail: bytes that were given back or overwritten
 *
 * @head and @tail begin again at 0 when user space, which reads the buffer, maps another size
 * of the buffer, or maps the buffer again after it has unmapped it.
 *
 * If only the kernel reads the buffer, the number of records that producers have attempted is the
 * sum of the first four and of the records between @tail and @head, less the records that the ring
 * itself has written: each PERF_RECORD_LOST, and each PERF_RECORD_LOST_SAMPLES of 0 in the place of
 * a record given up. No field counts what user space has read, nor unread records that go with user
 * space's last map.
 */
struct pmuk_buffer_stat {
	u64 consumed;
	u64 overwritten;
	u64 lost;
	u64 discarded;
	u64 wakeups;
	u64 head;
	u64 tail;
};

/*
 * Consumers do not use these fields. The struct is in this header for the inline fast path only.
 * "Owner" is the CPU that writes the ring, in any nesting of its contexts.
 */
struct pmuk_ring {
	u64 commit;		/* owner: published up to here; low bits: flags, see ring.c */
	u64 head;		/* owner: reserved up to here; briefly too high, see ring.c */
	u64 limit;		/* owner writes, others write 0: the fast path may go up to here */
	u8 *data;		/* const while written: the data pages, twice in a row */
	u64 mask;		/* const while written: size of the data - 1 */
	u64 *head_of;		/* const: &->page->data_head, which the owner writes */

	u64 wake_at;		/* owner: wake the consumer when commit reaches this position */
	struct perf_event_mmap_page *page;	/* const */
	u64 size;		/* const while written: bytes of data, 0 or a power of two */
	u64 *tail_of;		/* const: &->tail, or &->page->data_tail: see pmuk_ring_init() */
	enum pmuk_buffer_mode mode;	/* const */
	u32 watermark;		/* const while written: bytes between wakeups; 0: none */
	u32 wakeup_events;	/* const: records between wakeups; 0: by bytes */
	void (*wake)(struct pmuk_ring *ring);	/* const; called in NMI, too */

	u64 events;		/* owner: records reserved, with ->wakeup_events */
	u64 events_done;	/* owner: ->events / ->wakeup_events at the latest wakeup */
	u64 pending;		/* owner: lost records that no PERF_RECORD_LOST reports yet */
	u64 lost;		/* owner */
	u64 discarded;		/* owner */
	u64 overwritten;	/* owner */
	u64 marks;		/* owner: wakeups due by bytes or records; never goes back */
	u64 wakeups;		/* owner */

	atomic_t state ____cacheline_aligned;	/* anybody: PMUK_RING_* in ring.c */
	u64 tail;		/* reader: given back up to here */
	u64 consumed;		/* reader */
};

/**
 * struct pmuk_reader - a buffer's reader; there is one at a time
 *
 * Filled by pmuk_buffer_claim().
 */
struct pmuk_reader {
	/* private: */
	struct pmuk_ring *ring;
	u64 pos;		/* where the oldest record begins that was not consumed */
	u64 end;		/* where that record ends if it was peeked at, or else ->pos */
	u64 head;		/* records are whole up to here */
};

int pmuk_buffer_get_stat(struct pmuk_buffer *b, struct pmuk_buffer_stat *stat);
int pmuk_buffer_pause(struct pmuk_buffer *b);
int pmuk_buffer_resume(struct pmuk_buffer *b);
int pmuk_buffer_restart(struct pmuk_buffer *b);
const struct perf_event_header *pmuk_buffer_peek(struct pmuk_reader *r);
void pmuk_buffer_consume(struct pmuk_reader *r);
void pmuk_buffer_release(struct pmuk_reader *r);
void pmuk_output_skip(struct pmuk_buffer *b, struct perf_event_header *rec);

struct perf_event_header *__pmuk_output_begin(struct pmuk_ring *ring, u32 type, u32 size);
struct perf_event_header *__pmuk_output_begin_moved(struct pmuk_ring *ring, u32 type, u32 size,
						    u64 pos);
void __pmuk_output_end(struct pmuk_ring *ring, struct perf_event_header *rec);
void __pmuk_output_again(struct pmuk_ring *ring);

#define PMUK_RECORD_ALIGN	8
#define PMUK_RECORD_MIN		16	/* a record given up becomes a PERF_RECORD_LOST_SAMPLES */
#define PMUK_RECORD_MAX		0xfff8	/* perf_event_header::size is 16 bits */

/* A buffer begins with its ring, see kernel/pmu_kapi/buffer.c. */
static __always_inline struct pmuk_ring *pmuk_buffer_ring(struct pmuk_buffer *b)
{
	return (struct pmuk_ring *)b;
}

static __always_inline bool pmuk_record_size_ok(u32 size)
{
	return size >= PMUK_RECORD_MIN && size <= PMUK_RECORD_MAX && size % PMUK_RECORD_ALIGN == 0;
}

/*
 * Adds @size to ->head, and returns the old ->head. No other CPU writes ->head while ->limit is not
 * 0, so the addition must be atomic only against this CPU's interrupts: x86 needs no lock prefix.
 * Elsewhere local64_add_return() would be a full barrier, and a relaxed atomic is cheaper.
 */
static __always_inline u64 pmuk_ring_advance(struct pmuk_ring *ring, u32 size)
{
	if (IS_ENABLED(CONFIG_X86))
		return local64_add_return(size, (local64_t *)&ring->head) - size;
	return atomic64_fetch_add_relaxed(size, (atomic64_t *)&ring->head);
}

/**
 * pmuk_output_begin() - reserve a record in a buffer
 * @b: the buffer
 * @type: perf_event_header::type, PERF_RECORD_*
 * @size: bytes with the header: 16 … 65528, a multiple of 8
 *
 * The header is filled in, with ::misc 0. The caller writes the rest of the record in place. The
 * rest is contiguous, and still has old data. pmuk_output_end() or pmuk_output_skip() ends each
 * reserved record, in the context that reserved it, the latest record first. Until then the caller
 * stays on its CPU, and readers see neither this record nor any later one: be quick.
 *
 * Context: Any, NMI too; on the buffer's CPU, with preemption off.
 * Return: The record; NULL if it was lost or discarded, and counted as such.
 */
static __always_inline struct perf_event_header *
pmuk_output_begin(struct pmuk_buffer *b, u32 type, u32 size)
{
	const struct perf_event_header header = { .type = type, .size = size };
	struct pmuk_ring *ring = pmuk_buffer_ring(b);
	/* Both loads may be one instruction. The test of pos finds changes of ->head. */
	u64 head = data_race(ring->head), end, pos;
	struct perf_event_header *rec;

	OPTIMIZER_HIDE_VAR(head);	/* the check and the comparison use the same ->head */
	end = head + size;
	OPTIMIZER_HIDE_VAR(end);	/* lets x86 compare with ->limit in memory */
	/* Check, then add: pmuk_ring_reset() on another CPU writes ->head while ->limit is 0. */
	if (unlikely(!pmuk_record_size_ok(size) || (s64)(data_race(ring->limit) - end) < 0))
		return __pmuk_output_begin(ring, type, size);
	pos = pmuk_ring_advance(ring, size);
	if (unlikely(pos != head))
		return __pmuk_output_begin_moved(ring, type, size, pos);
	barrier();	/* load ->data after ->limit: a reset changes it, and ->limit is 0 then */

	rec = (struct perf_event_header *)(ring->data + (pos & ring->mask));
	if (!rec)
		__builtin_unreachable();	/* lets compilers drop the callers' checks */
	*rec = header;
	return rec;
}

/**
 * pmuk_output_end() - publish a record
 * @b: the buffer
 * @rec: what pmuk_output_begin() has returned, written
 *
 * Readers see the record when all records reserved before it have been published, too. If this
 * producer has interrupted another one on its CPU, the other one publishes both when it ends.
 *
 * Context: As pmuk_output_begin().
 */
static __always_inline void pmuk_output_end(struct pmuk_buffer *b, struct perf_event_header *rec)
{
	struct pmuk_ring *ring = pmuk_buffer_ring(b);
	/* Only writers that interrupt this one change these, and each of them is found below. */
	u64 end = data_race(ring->commit) + rec->size;

	/*
	 * The fast path: @rec is all that is reserved, and it wakes nobody. The loads of ->commit
	 * and ->head may be one instruction. A writer that interrupts after them changes ->head.
	 */
	OPTIMIZER_HIDE_VAR(end);	/* load ->commit once */
	if (unlikely(data_race(ring->head) != end)) {
		__pmuk_output_end(ring, rec);
		return;
	}
	smp_store_release(ring->head_of, end);		/* LMM(pmuk_output_end:A) */
	smp_store_release(&ring->commit, end);		/* LMM(pmuk_output_end:B) */
	barrier();	/* a writer in an NMI from here on publishes its record itself */
	if (unlikely(data_race(ring->head) != end))
		__pmuk_output_again(ring);
}

/**
 * pmuk_output_begin_alone() - reserve a record in a buffer without other writers
 * @b: the buffer
 * @type: as for pmuk_output_begin()
 * @size: as for pmuk_output_begin()
 *
 * This costs less than pmuk_output_begin(), because nothing else writes to the buffer until
 * pmuk_output_end_alone(). The slow path is not in here, so that a caller need not save registers
 * for a function call: if this returns NULL, call pmuk_output_begin() and pmuk_output_end().
 * pmuk_output_skip() cannot give up the record, and need not: a record without an end was never
 * reserved.
 *
 * Context: On the buffer's CPU, with preemption off. Interrupts and NMIs of this CPU do not write
 * to the buffer, and no counter has the buffer as its output.
 * Return: The record; NULL if the fast path cannot reserve it: nothing is counted yet.
 */
static __always_inline struct perf_event_header *
pmuk_output_begin_alone(struct pmuk_buffer *b, u32 type, u32 size)
{
	const struct perf_event_header header = { .type = type, .size = size };
	struct pmuk_ring *ring = pmuk_buffer_ring(b);
	u64 head = READ_ONCE(ring->head);
	struct perf_event_header *rec;

	if (unlikely(!pmuk_record_size_ok(size) ||
		     (s64)(READ_ONCE(ring->limit) - (head + size)) < 0))
		return NULL;
	rec = (struct perf_event_header *)(ring->data + (head & ring->mask));
	if (!rec)
		__builtin_unreachable();	/* as in pmuk_output_begin() */
	*rec = header;
	return rec;
}

/**
 * pmuk_output_end_alone() - publish a record of pmuk_output_begin_alone()
 * @b: the buffer
 * @size: the size of the record
 *
 * Context: As pmuk_output_begin_alone().
 */
static __always_inline void pmuk_output_end_alone(struct pmuk_buffer *b, u32 size)
{
	struct pmuk_ring *ring = pmuk_buffer_ring(b);
	u64 head = ring->head + size;

	WRITE_ONCE(ring->head, head);
	/* These two are as in pmuk_output_end(). */
	smp_store_release(ring->head_of, head);		/* LMM(pmuk_output_end:A) */
	smp_store_release(&ring->commit, head);		/* LMM(pmuk_output_end:B) */
}

#endif /* _LINUX_PMU_KAPI_RING_H */
