/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The AUX area of a pmuk buffer: a stream of bytes beside the records, in a format of its
 * producer's own. Consumers include linux/pmu_kapi.h, which includes this header. The top of
 * kernel/pmu_kapi/aux.c explains how the area works.
 */
#ifndef _LINUX_PMU_KAPI_AUX_H
#define _LINUX_PMU_KAPI_AUX_H

#include <linux/types.h>
#include <uapi/linux/perf_event.h>

struct module;
struct perf_event;
struct pmuk_area;
struct pmuk_buffer;

/**
 * struct pmuk_aux_ops - what a producer does when its AUX area comes and goes
 * @setup: gets the area's pages, and returns what pmuk_aux_output_begin() is to return. If it
 *	returns NULL or an ERR_PTR(), pmuk_buffer_create() fails. @pages has the addresses of the
 *	pages, in order, and stays until @free. The first page of a piece that is contiguous in
 *	memory has PagePrivate(), and the piece's order in page_private(), as in perf. May sleep
 * @free: called once for each area that was set up, with what @setup has returned, when nobody
 *	writes the area any more; may be NULL. May sleep. User space may go on reading what it has
 *	mapped. pmuk_buffer_destroy() calls @free; if the area is being written then, a worker
 *	does when the writer has ended
 * @owner: THIS_MODULE, the module of @free. pmuk_buffer_destroy() takes a reference, which is
 *	dropped when @free has returned. There is none for a module that is being unloaded: then
 *	pmuk_buffer_destroy() waits until the area is no longer written. So an exit function first
 *	ends what it writes, and then destroys the buffer. NULL in code that is built in
 */
struct pmuk_aux_ops {
	void *(*setup)(void *data, int cpu, void **pages, unsigned int nr_pages, bool overwrite);
	void (*free)(void *private);
	struct module *owner;
};

/**
 * struct pmuk_aux_attr - what the AUX area of a buffer is to be like
 * @nr_pages: number of pages: a power of two up to 2^19, or 0 for no AUX area
 * @order: the area consists of pieces of 2^@order pages that are contiguous in memory; a piece is
 *	at most the whole area
 * @prefer: take smaller pieces where no pieces of @order are free
 * @overwrite: newer bytes replace the oldest ones (a flight recorder). To be read, the area is
 *	paused
 * @watermark: wake the consumer each time that so many bytes were written; 0: half of the area,
 *	which is also the maximum. The consumer is also woken when there is no room, and when
 *	bytes are truncated
 * @least: bytes that the producer needs to begin: with less room than this, the area is full. At
 *	most the size of the area; 0 means 1
 * @ops: the producer's callbacks, or NULL. Must outlive the buffer
 * @data: passed to @ops
 */
struct pmuk_aux_attr {
	u32 nr_pages;
	u8 order;
	bool prefer;
	bool overwrite;
	u32 watermark;
	u32 least;
	const struct pmuk_aux_ops *ops;
	void *data;
};

/**
 * struct pmuk_aux_handle - a part of an AUX area that is being written
 * @head: position at which it begins: bytes since the buffer was created
 * @size: bytes that may be written from there on
 * @data: where @head is, as kernel code writes it: @size bytes in a row
 *
 * Belongs to the producer; filled by pmuk_aux_output_begin().
 */
struct pmuk_aux_handle {
	u64 head;
	u64 size;
	void *data;

	/* private: */
	struct pmuk_area *area;
	u64 flags;		/* PERF_AUX_FLAG_* */
};

/**
 * struct pmuk_aux_reader - the reader of an AUX area; there is one at a time
 *
 * Filled by pmuk_aux_claim().
 */
struct pmuk_aux_reader {
	/* private: */
	struct pmuk_area *area;
	u64 pos;		/* consumed up to here */
	u64 end;		/* peeked at up to here */
};

/**
 * struct pmuk_aux_span - bytes of an AUX area, in place
 * @data: the oldest of them
 * @size: how many follow, in a row
 * @head: the position of @data: what &struct pmuk_aux_handle.head was
 * @flags: PERF_AUX_FLAG_TRUNCATED, _PARTIAL and _COLLISION of any part that has bytes in this
 *	span, and maybe of parts that follow it. Each peek returns them until those bytes were
 *	consumed. The buffer's PERF_RECORD_AUX say where exactly something is missing
 */
struct pmuk_aux_span {
	const void *data;
	u64 size;
	u64 head;
	u64 flags;
};

/**
 * struct pmuk_aux_stat - what became of the bytes of an AUX area
 * @head: bytes written or skipped since the buffer was created
 * @tail: bytes that were given back, or overwritten
 * @truncated: bytes that did not fit, as the producer has reported
 * @truncations: how often bytes were truncated: a part with PERF_AUX_FLAG_TRUNCATED was written,
 *	or pmuk_aux_output_lose() was called
 * @full: how often pmuk_aux_output_begin() was refused because there was not enough room
 * @nested: how often pmuk_aux_output_begin() was refused because the area was being written, or
 *	copied into a record
 * @discarded: how often pmuk_aux_output_begin() was refused because the area was paused
 * @wakeups: how often the consumer was due to be woken for the AUX area
 */
struct pmuk_aux_stat {
	u64 head;
	u64 tail;
	u64 truncated;
	u64 truncations;
	u64 full;
	u64 nested;
	u64 discarded;
	u64 wakeups;
};

void *pmuk_aux_output_begin(struct pmuk_aux_handle *handle, struct pmuk_buffer *b);
void pmuk_aux_output_end(struct pmuk_aux_handle *handle, u64 size);
int pmuk_aux_output_skip(struct pmuk_aux_handle *handle, u64 size);
void pmuk_aux_output_flag(struct pmuk_aux_handle *handle, u64 flags);
void pmuk_aux_output_lose(struct pmuk_buffer *b, u64 bytes);
void *pmuk_get_aux(struct pmuk_aux_handle *handle);
struct pmuk_buffer *pmuk_event_buffer(struct perf_event *event);

const void *pmuk_aux_data(struct pmuk_buffer *b, size_t *size);
int pmuk_aux_get_stat(struct pmuk_buffer *b, struct pmuk_aux_stat *stat);
int pmuk_aux_pause(struct pmuk_buffer *b);
int pmuk_aux_resume(struct pmuk_buffer *b);
int pmuk_aux_claim(struct pmuk_buffer *b, struct pmuk_aux_reader *r);
bool pmuk_aux_peek(struct pmuk_aux_reader *r, struct pmuk_aux_span *span);
void pmuk_aux_consume(struct pmuk_aux_reader *r, u64 bytes);
void pmuk_aux_release(struct pmuk_aux_reader *r);

#endif /* _LINUX_PMU_KAPI_AUX_H */
