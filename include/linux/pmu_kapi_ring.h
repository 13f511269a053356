/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The producer's fast path into a pmuk buffer. Included by linux/pmu_kapi.h, which is
 * what consumers include; how it works is told at the top of kernel/pmu_kapi/ring.c.
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

struct pmuk_buffer;

/**
 * enum pmuk_buffer_mode - what becomes of a record for which there is no room
 * @PMUK_BUFFER_DROP: it is lost, and counted; a PERF_RECORD_LOST is written when
 *	there is room again
 * @PMUK_BUFFER_OVERWRITE: it replaces the oldest ones (a flight recorder). To be
 *	read, the buffer is paused. The oldest record begins at the control page's data_tail,
 *	for user space that has mapped the buffer, too
 * @PMUK_BUFFER_STOP: as PMUK_BUFFER_DROP, and all that follow are lost too, until
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
 * @wakeups: how often the consumer was due to be woken. When two are due before
 *	interrupts are on again, it is woken once
 * @head: bytes written since the buffer was created, whole records only
 * @tail: bytes that were given back or overwritten
 *
 * @head and @tail begin again at 0 when user space, which reads the buffer, has decided on
 * another size of it, or maps it again after it has unmapped it.
 *
 * What producers have attempted is the sum of the first four and of the records between
 * @tail and @head, less those of the ring's own making: each PERF_RECORD_LOST, and each
 * PERF_RECORD_LOST_SAMPLES of 0 in the place of a record given up.
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
 * Not for consumers, and in a header for the fast path only. "Owner" is the CPU
 * that writes the ring, in any nesting of its contexts.
 */
struct pmuk_ring {
	u64 head;		/* owner: reserved up to here */
	u64 limit;		/* owner, or pause with 0: up to here there is room */
	u64 commit;		/* owner: published up to here; odd: being published */
	u64 wake_at;		/* owner: publishing this much wakes the consumer */
	u8 *data;		/* const while written: the data pages, twice in a row */
	u64 mask;		/* const while written: size of the data - 1 */
	struct perf_event_mmap_page *page;	/* const; owner writes ->data_head */

	u64 size;		/* const while written: bytes of data, 0 or a power of two */
	u64 *tail_of;		/* const: ->tail, or ->page's: see pmuk_ring_init() */
	enum pmuk_buffer_mode mode;	/* const */
	u32 watermark;		/* const while written: bytes between wakeups; 0: none */
	u32 wakeup_events;	/* const: records between wakeups; 0: by bytes */
	void (*wake)(struct pmuk_ring *ring);	/* const; called in NMI, too */

	u64 events;		/* owner: records reserved, with ->wakeup_events */
	u64 events_done;	/* owner: ->events / ->wakeup_events at the latest wakeup */
	u64 pending;		/* owner: lost, and no PERF_RECORD_LOST tells so yet */
	u64 lost;		/* owner */
	u64 discarded;		/* owner */
	u64 overwritten;	/* owner */
	u64 marks;		/* owner: how often the watermark was passed; never goes back */
	u64 wakeups;		/* owner */

	atomic_t state ____cacheline_aligned;	/* anybody: PMUK_RING_* in ring.c */
	u64 tail;		/* reader: given back up to here */
	u64 consumed;		/* reader */
};

/**
 * struct pmuk_reader - who reads a buffer; there is one at a time
 *
 * Filled by pmuk_buffer_claim().
 */
struct pmuk_reader {
	/* private: */
	struct pmuk_ring *ring;
	u64 pos;		/* of the oldest record that was not consumed */
	u64 end;		/* of that one, if it was peeked at, or else its beginning */
	u64 head;		/* records are whole up to here */
};

#if IS_ENABLED(CONFIG_PMU_KAPI)
struct perf_event_header *__pmuk_output_begin(struct pmuk_ring *ring, u32 type, u32 size);
void __pmuk_output_again(struct pmuk_ring *ring);
void __pmuk_output_wake(struct pmuk_ring *ring);
#else
static inline struct perf_event_header *
__pmuk_output_begin(struct pmuk_ring *ring, u32 type, u32 size)
{
	return NULL;
}

static inline void __pmuk_output_again(struct pmuk_ring *ring) { }
static inline void __pmuk_output_wake(struct pmuk_ring *ring) { }
#endif

#define PMUK_RECORD_ALIGN	8
#define PMUK_RECORD_MIN		16	/* a given up one is a PERF_RECORD_LOST_SAMPLES */
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

/**
 * pmuk_output_begin() - reserve a record in a buffer
 * @b: the buffer
 * @type: perf_event_header::type, PERF_RECORD_*
 * @size: bytes with the header: 16 … 65528, a multiple of 8
 *
 * The header is filled in, with ::misc 0; the rest is the caller's to write, in
 * place and contiguous, and has what was there before. Each reserved record is
 * ended by pmuk_output_end() or pmuk_output_skip(), in the context that reserved it,
 * the latest first. Until then the caller stays on its CPU. Nothing after it is
 * seen by readers before that: be quick.
 *
 * Context: Any, NMI too; on the buffer's CPU, with preemption off.
 * Return: The record, or NULL: then it has been counted as lost or as discarded.
 */
static __always_inline struct perf_event_header *
pmuk_output_begin(struct pmuk_buffer *b, u32 type, u32 size)
{
	const struct perf_event_header header = { .type = type, .size = size };
	struct pmuk_ring *ring = pmuk_buffer_ring(b);
	u64 head = READ_ONCE(ring->head), next;
	struct perf_event_header *rec;

	do {
		next = head + size;
		if (unlikely(!pmuk_record_size_ok(size) ||
			     (s64)(READ_ONCE(ring->limit) - next) < 0))
			return __pmuk_output_begin(ring, type, size);
	} while (unlikely(!try_cmpxchg_local(&ring->head, &head, next)));

	rec = (struct perf_event_header *)(ring->data + (head & ring->mask));
	if (!rec)
		__builtin_unreachable();	/* so that callers need not check here */
	*rec = header;
	return rec;
}

/**
 * pmuk_output_end() - publish a record
 * @b: the buffer
 * @rec: what pmuk_output_begin() has returned, written
 *
 * Readers see it when all records reserved before it have been published, too:
 * inside of another producer's, on the same CPU, that is when that one ends.
 *
 * Context: As pmuk_output_begin().
 */
static __always_inline void pmuk_output_end(struct pmuk_buffer *b, struct perf_event_header *rec)
{
	struct pmuk_ring *ring = pmuk_buffer_ring(b);
	u64 head;

	/* What this one interrupted publishes both; ->commit is odd while it does. */
	if ((u64)((u8 *)rec - ring->data) != (READ_ONCE(ring->commit) & ring->mask))
		return;

	head = READ_ONCE(ring->head);
	smp_store_release(&ring->page->data_head, head);	/* LMM(pmuk_output_end:A) */
	smp_store_release(&ring->commit, head);			/* LMM(pmuk_output_end:B) */
	barrier();	/* an NMI from here on publishes itself */
	if (unlikely(READ_ONCE(ring->head) != head))
		__pmuk_output_again(ring);
	if (unlikely((s64)(head - READ_ONCE(ring->wake_at)) >= 0))
		__pmuk_output_wake(ring);
}

#endif /* _LINUX_PMU_KAPI_RING_H */
