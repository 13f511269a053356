/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The AUX area of a pmuk buffer: a stream of bytes beside the records, whose format is its
 * producer's own. Included by linux/pmu_kapi.h, which is what consumers include; how it works
 * is told at the top of kernel/pmu_kapi/aux.c.
 */
#ifndef _LINUX_PMU_KAPI_AUX_H
#define _LINUX_PMU_KAPI_AUX_H

#include <linux/errno.h>
#include <linux/kconfig.h>
#include <linux/types.h>
#include <uapi/linux/perf_event.h>

struct module;
struct perf_event;
struct pmuk_area;
struct pmuk_buffer;

/**
 * struct pmuk_aux_ops - what a producer does when its AUX area comes and goes
 * @setup: given the area's pages, returns what pmuk_aux_output_begin() is to return, or an
 *	ERR_PTR() or NULL, with which pmuk_buffer_create() fails. @pages are their addresses, in
 *	order, and stay there until @free. Of pages that are contiguous in memory, the first one
 *	has PagePrivate(), and the order in page_private(), as with perf. May sleep
 * @free: called once for each that was set up, when nobody writes any more, with what @setup has
 *	returned; may be NULL. May sleep. User space may read on what it has mapped. It is called by
 *	pmuk_buffer_destroy(), or if the area is being written then, by a worker when that ends
 * @owner: THIS_MODULE, where @free is. It stays until @free has returned. A module that is being
 *	unloaded cannot be made to stay: then pmuk_buffer_destroy() waits until the area is no
 *	longer written. So an exit function first ends what it writes, and then destroys the
 *	buffer. NULL in code that is built in
 */
struct pmuk_aux_ops {
	void *(*setup)(void *data, int cpu, void **pages, unsigned int nr_pages, bool overwrite);
	void (*free)(void *private);
	struct module *owner;
};

/**
 * struct pmuk_aux_attr - what the AUX area of a buffer is to be like
 * @nr_pages: its pages: a power of two, or 0 for no AUX area
 * @order: it is to be contiguous in memory in pieces of 2^@order pages; at most all of it
 * @prefer: smaller pieces will do, where there are none of @order
 * @overwrite: newer bytes replace the oldest ones (a flight recorder). To be read, the area is
 *	paused
 * @watermark: wake the consumer each so many bytes; 0: each half of the area, which is also
 *	the most. It is also woken when there is no room, and when something is truncated
 * @least: bytes that its producer needs to begin with: with less room than that the area is full.
 *	At most all of it; 0: 1
 * @ops: the producer's, or NULL. Must outlive the buffer
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
 * The producer's; filled by pmuk_aux_output_begin().
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
 * struct pmuk_aux_reader - who reads an AUX area; there is one at a time
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
 *	span, and maybe of what follows it: they are told again until that was consumed. Where
 *	exactly something is missing is told by the buffer's PERF_RECORD_AUX
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
 * @truncated: bytes that did not fit, as their producer has told
 * @truncations: how often something was: a part with PERF_AUX_FLAG_TRUNCATED was written, or
 *	pmuk_aux_output_lose() was called
 * @full: how often there was not enough room to begin with
 * @nested: how often one was refused because another was being written
 * @discarded: how often one was refused because the area was paused
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

#if IS_ENABLED(CONFIG_PMU_KAPI)

void *pmuk_aux_output_begin(struct pmuk_aux_handle *handle, struct pmuk_buffer *b);
void pmuk_aux_output_end(struct pmuk_aux_handle *handle, u64 size);
int pmuk_aux_output_skip(struct pmuk_aux_handle *handle, u64 size);
void pmuk_aux_output_flag(struct pmuk_aux_handle *handle, u64 flags);
void pmuk_aux_output_lose(struct pmuk_buffer *b, u64 bytes);
void *pmuk_get_aux(struct pmuk_aux_handle *handle);
struct pmuk_buffer *pmuk_event_buffer(struct perf_event *event);

const void *pmuk_aux_data(struct pmuk_buffer *b, size_t *size);
int pmuk_aux_stat(struct pmuk_buffer *b, struct pmuk_aux_stat *stat);
int pmuk_aux_pause(struct pmuk_buffer *b);
int pmuk_aux_resume(struct pmuk_buffer *b);
int pmuk_aux_claim(struct pmuk_buffer *b, struct pmuk_aux_reader *r);
bool pmuk_aux_peek(struct pmuk_aux_reader *r, struct pmuk_aux_span *span);
void pmuk_aux_consume(struct pmuk_aux_reader *r, u64 bytes);
void pmuk_aux_release(struct pmuk_aux_reader *r);
int pmuk_aux_revoke(struct pmuk_buffer *b);

#else /* !CONFIG_PMU_KAPI */

static inline void *pmuk_aux_output_begin(struct pmuk_aux_handle *handle, struct pmuk_buffer *b)
{
	return NULL;
}

static inline void pmuk_aux_output_end(struct pmuk_aux_handle *handle, u64 size) { }

static inline int pmuk_aux_output_skip(struct pmuk_aux_handle *handle, u64 size)
{
	return -EOPNOTSUPP;
}

static inline void pmuk_aux_output_flag(struct pmuk_aux_handle *handle, u64 flags) { }
static inline void pmuk_aux_output_lose(struct pmuk_buffer *b, u64 bytes) { }

static inline void *pmuk_get_aux(struct pmuk_aux_handle *handle)
{
	return NULL;
}

static inline struct pmuk_buffer *pmuk_event_buffer(struct perf_event *event)
{
	return NULL;
}

static inline const void *pmuk_aux_data(struct pmuk_buffer *b, size_t *size)
{
	if (size)
		*size = 0;
	return NULL;
}

static inline int pmuk_aux_stat(struct pmuk_buffer *b, struct pmuk_aux_stat *stat)
{
	return -EOPNOTSUPP;
}

static inline int pmuk_aux_pause(struct pmuk_buffer *b)
{
	return -EOPNOTSUPP;
}

static inline int pmuk_aux_resume(struct pmuk_buffer *b)
{
	return -EOPNOTSUPP;
}

static inline int pmuk_aux_claim(struct pmuk_buffer *b, struct pmuk_aux_reader *r)
{
	return -EOPNOTSUPP;
}

static inline bool pmuk_aux_peek(struct pmuk_aux_reader *r, struct pmuk_aux_span *span)
{
	return false;
}

static inline void pmuk_aux_consume(struct pmuk_aux_reader *r, u64 bytes) { }
static inline void pmuk_aux_release(struct pmuk_aux_reader *r) { }

static inline int pmuk_aux_revoke(struct pmuk_buffer *b)
{
	return -EOPNOTSUPP;
}

#endif

#endif /* _LINUX_PMU_KAPI_AUX_H */
