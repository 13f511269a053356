/* SPDX-License-Identifier: GPL-2.0 */
/* The engine of AUX areas, see aux.c, for aux_area.c, aux_pmu.c and mmap.c. */
#ifndef _PMU_KAPI_AUX_H
#define _PMU_KAPI_AUX_H

#include <linux/cache.h>
#include <linux/pmu_kapi_aux.h>
#include <linux/types.h>

#include "ring.h"

/*
 * The stream in an AUX area. "Owner" is the CPU that writes, as with the ring. "Writer" is the code
 * that has the area open; there is one writer at a time. The creator sets the fields that are
 * const, but for ->tail_of, and then calls pmuk_area_init().
 */
struct pmuk_area {
	struct pmuk_ring *ring;	/* const: PERF_RECORD_AUX go there, and its consumer is woken */
	u8 *data;		/* const: the pages, mapped twice in a row */
	u64 size;		/* const: bytes, a power of two */
	u64 watermark;		/* const: bytes between wakeups; not 0 */
	u64 least;		/* const while a writer can begin: with less room than these
				 * bytes, of which there is one at least, the area is full
				 */
	const u64 *tail_of;	/* const: ->tail, or the control page's aux_tail */
	void *private;		/* const while a writer can begin: pmuk_area_begin() returns it */
	bool overwrite;		/* const: newer bytes replace the oldest ones */
	bool records;		/* const: the ring has data for PERF_RECORD_AUX, or may get some */
	void (*gone)(struct pmuk_area *area);	/* const: the writer calls this, in NMI too, when
						 * it ends after pmuk_area_kill() returned true
						 */

	u64 head;		/* writer: published up to here */
	u64 reported;		/* writer, interrupts read: records cover all bytes before it */
	u32 swaps_seen;		/* writer: ->swaps when ->reported was true */
	u64 wake_at;		/* writer: publishing up to here wakes the consumer */
	u64 full_at;		/* writer, others read: ->head when lack of room last woke the
				 * reader
				 */
	u64 due;		/* owner: PERF_AUX_FLAG_* that are in no record yet */
	u64 flagged;		/* owner: ->flags are about bytes before this position */
	u64 truncated;		/* owner */
	u64 truncations;	/* owner */
	u64 full;		/* owner */
	u64 nested;		/* owner */
	u64 discarded;		/* owner */
	u64 wakeups;		/* owner */

	atomic_t state ____cacheline_aligned;	/* anybody: PMUK_AREA_* in aux.c */
	atomic_t flags;		/* PERF_AUX_FLAG_*: writers set, the reader takes */
	u32 swaps;		/* while the ring is held: how often it got other data */
	u64 tail;		/* reader: given back up to here */
	u64 taken;		/* reader: taken from ->flags, for bytes not given back yet */
	u64 taken_to;		/* reader: ->taken is about bytes before this position */
};

void pmuk_area_init(struct pmuk_area *area, bool user_tail);
void *pmuk_area_begin(struct pmuk_area *area, struct pmuk_aux_handle *handle);
void pmuk_area_lose(struct pmuk_area *area, u64 bytes);
bool pmuk_area_freeze(struct pmuk_area *area);
void pmuk_area_thaw(struct pmuk_area *area);
u64 pmuk_area_newest(const struct pmuk_area *area, bool frozen, u64 most);
void pmuk_area_copy(const struct pmuk_area *area, void *to, u64 size);

void pmuk_area_swap(struct pmuk_area *area);
bool pmuk_area_awaits_reader(const struct pmuk_area *area);
void pmuk_area_pause(struct pmuk_area *area);
int pmuk_area_resume(struct pmuk_area *area);
bool pmuk_area_kill(struct pmuk_area *area);
void pmuk_area_stat(const struct pmuk_area *area, struct pmuk_aux_stat *stat);

int pmuk_area_claim(struct pmuk_area *area, struct pmuk_aux_reader *r);

#endif /* _PMU_KAPI_AUX_H */
