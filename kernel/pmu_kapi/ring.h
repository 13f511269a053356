/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The record ring, for buffer.c. There are no perf calls and no scheduler calls: ring.c builds for
 * user space, too.
 */
#ifndef _PMU_KAPI_RING_H
#define _PMU_KAPI_RING_H

#include <linux/pmu_kapi_ring.h>

/**
 * struct pmuk_ring_config - what a ring is made of
 * @page: control page
 * @data: the data pages, mapped twice in a row; NULL with @size 0
 * @size: bytes of data, 0 or a power of two
 * @mode: what to do when full
 * @watermark: bytes between wakeups; 0: none
 * @wakeup_events: records between wakeups; 0: by @watermark
 * @user_tail: user space consumes, and stores its position in @page->data_tail
 * @wake: wakes the consumer, also when something is lost; called by the owner, in NMI too
 */
struct pmuk_ring_config {
	struct perf_event_mmap_page *page;
	u8 *data;
	u64 size;
	enum pmuk_buffer_mode mode;
	u32 watermark;
	u32 wakeup_events;
	bool user_tail;
	void (*wake)(struct pmuk_ring *ring);
};

/* Adds atomically against interrupts of this CPU only. Returns the old value. */
static inline u64 pmuk_ring_add(u64 *counter, u64 n)
{
	u64 old = READ_ONCE(*counter);

	while (!try_cmpxchg_local(counter, &old, old + n))
		;
	return old;
}

void pmuk_ring_init(struct pmuk_ring *ring, const struct pmuk_ring_config *config);
void pmuk_ring_skip(struct pmuk_ring *ring, struct perf_event_header *rec);
void pmuk_ring_pause(struct pmuk_ring *ring);
int pmuk_ring_resume(struct pmuk_ring *ring);
void pmuk_ring_restart(struct pmuk_ring *ring);
void pmuk_ring_kill(struct pmuk_ring *ring);
void pmuk_ring_hold(struct pmuk_ring *ring);
void pmuk_ring_reset(struct pmuk_ring *ring, u8 *data, u64 size, u32 watermark);
void pmuk_ring_stat(const struct pmuk_ring *ring, struct pmuk_buffer_stat *stat);

int pmuk_ring_claim(struct pmuk_ring *ring, struct pmuk_reader *r);
void pmuk_ring_rewind(struct pmuk_reader *r);
struct perf_event_header *pmuk_ring_peek(struct pmuk_reader *r);
void pmuk_ring_consume(struct pmuk_reader *r);
void pmuk_ring_release(struct pmuk_reader *r);
void pmuk_ring_revoke(struct pmuk_ring *ring);

#endif /* _PMU_KAPI_RING_H */
