/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine of AUX areas, see aux.c, for aux_area.c, aux_pmu.c and mmap.c. It calls neither perf
 * core nor the scheduler, as aux.c builds for user space, too.
 */
#ifndef _PMU_KAPI_AUX_H
#define _PMU_KAPI_AUX_H

#include <linux/cache.h>
#include <linux/pmu_kapi_aux.h>
#include <linux/types.h>

#include "ring.h"

/*
 * The stream in an AUX area. "Owner" is the CPU that writes, as with the ring. "Writer" is the code
 * that has the area open; there is one writer at a time.
 */
struct pmuk_area {
	struct pmuk_ring *ring;	/* const: where PERF_RECORD_AUX go, and who is woken */
	u8 *data;		/* const: the pages, twice in a row */
	u64 size;		/* const: bytes, a power of two */
	u64 watermark;		/* const: bytes between wakeups */
	u64 least;		/* bytes of room to begin with; const while a writer may come */
	const u64 *tail_of;	/* const: ->tail, or what user space writes */
	void *private;		/* what begin returns; const while a writer may come */
	bool overwrite;		/* const */
	bool records;		/* const: PERF_RECORD_AUX are written */
	void (*gone)(struct pmuk_area *area);	/* const: killed while open, and now closed */

	u64 head;		/* writer: published up to here */
	u64 reported;		/* writer, interrupts read: records cover all bytes before it */
	u32 swaps_seen;		/* writer: ->swaps when ->reported was true */
	u64 wake_at;		/* writer: publishing up to here wakes the consumer */
	u64 full_at;		/* writer: ->head when lack of room last woke the reader */
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

/**
 * struct pmuk_area_config - what an AUX area is made of
 * @ring: the ring of its buffer
 * @data: its pages, mapped twice in a row
 * @size: bytes, a power of two
 * @watermark: bytes between wakeups; not 0
 * @least: with less room than this, in bytes, the area is full; not 0
 * @overwrite: newer bytes replace the oldest ones
 * @records: PERF_RECORD_AUX are written: the ring has data pages, or may get some
 * @user_tail: user space consumes, and gives bytes back by the control page's aux_tail
 * @private: what pmuk_area_begin() returns
 * @gone: the writer calls this, in NMI too, when it ends after pmuk_area_kill() has returned true
 */
struct pmuk_area_config {
	struct pmuk_ring *ring;
	u8 *data;
	u64 size;
	u64 watermark;
	u64 least;
	bool overwrite;
	bool records;
	bool user_tail;
	void *private;
	void (*gone)(struct pmuk_area *area);
};

void pmuk_area_init(struct pmuk_area *area, const struct pmuk_area_config *config);
void *pmuk_area_begin(struct pmuk_area *area, struct pmuk_aux_handle *handle);
void pmuk_area_end(struct pmuk_aux_handle *handle, u64 size);
int pmuk_area_skip(struct pmuk_aux_handle *handle, u64 size);
void pmuk_area_flag(struct pmuk_aux_handle *handle, u64 flags);
void pmuk_area_lose(struct pmuk_area *area, u64 bytes);

void pmuk_area_swap(struct pmuk_area *area);
void pmuk_area_pause(struct pmuk_area *area);
int pmuk_area_resume(struct pmuk_area *area);
bool pmuk_area_kill(struct pmuk_area *area);
void pmuk_area_stat(const struct pmuk_area *area, struct pmuk_aux_stat *stat);

int pmuk_area_claim(struct pmuk_area *area, struct pmuk_aux_reader *r);
bool pmuk_area_peek(struct pmuk_aux_reader *r, struct pmuk_aux_span *span);
void pmuk_area_consume(struct pmuk_aux_reader *r, u64 bytes);
void pmuk_area_release(struct pmuk_aux_reader *r);
void pmuk_area_revoke(struct pmuk_area *area);

#endif /* _PMU_KAPI_AUX_H */
