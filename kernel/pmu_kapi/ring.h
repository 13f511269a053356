/* SPDX-License-Identifier: GPL-2.0 */
/* The record ring, for buffer.c. */
#ifndef _PMU_KAPI_RING_H
#define _PMU_KAPI_RING_H

#include <linux/pmu_kapi_ring.h>

/* A buffer begins with its ring, see pmuk_buffer_ring(). */
static inline struct pmuk_buffer *pmuk_ring_buffer(struct pmuk_ring *ring)
{
	return (struct pmuk_buffer *)ring;
}

/* Adds atomically against interrupts of this CPU only. Returns the old value. */
static inline u64 pmuk_ring_add(u64 *counter, u64 n)
{
	u64 old = READ_ONCE(*counter);

	while (!try_cmpxchg_local(counter, &old, old + n))
		;
	return old;
}

/* Sets a counter, or flags, to 0 likewise. Returns the old value. */
static inline u64 pmuk_ring_take(u64 *counter)
{
	u64 old = READ_ONCE(*counter);

	while (!try_cmpxchg_local(counter, &old, 0))
		;
	return old;
}

void pmuk_ring_init(struct pmuk_ring *ring, bool user_tail);
void pmuk_ring_kill(struct pmuk_ring *ring);
void pmuk_ring_hold(struct pmuk_ring *ring);
void pmuk_ring_reset(struct pmuk_ring *ring, u8 *data, u64 size, u32 watermark);
int pmuk_ring_claim(struct pmuk_ring *ring, struct pmuk_reader *r);
void pmuk_ring_rewind(struct pmuk_reader *r);
u32 pmuk_ring_record_max(const struct pmuk_ring *ring);
bool pmuk_ring_is_full(const struct pmuk_ring *ring);
bool pmuk_ring_has_room(const struct pmuk_ring *ring, u64 size);

#endif /* _PMU_KAPI_RING_H */
