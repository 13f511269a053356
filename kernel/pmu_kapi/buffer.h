/* SPDX-License-Identifier: GPL-2.0 */
/* A buffer: a ring, its pages, and whom it wakes. */
#ifndef _PMU_KAPI_BUFFER_H
#define _PMU_KAPI_BUFFER_H

#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/pmu_kapi.h>
#include <linux/wait.h>

#include "ring.h"

/* Data pages, mapped twice in a row. */
struct pmuk_pages {
	struct page **pages;
	unsigned int nr;
	u8 *map;
};

struct pmuk_buffer {
	struct pmuk_ring ring;		/* first, see pmuk_buffer_ring() */
	int cpu;			/* const: the owner, or -1: control page only */
	bool user_tail;			/* const */
	unsigned int own_nr;		/* const: data pages while nobody maps them */
	u32 watermark;			/* const: as asked for */
	struct completion *completion;	/* const: the caller's */
	struct page *control;		/* const */
	struct pmuk_pages data;		/* ->lock; const unless ->user_tail */
	struct mutex lock;		/* what is mapped, and its size */
	unsigned int maps;		/* ->lock: how many maps there are */

	struct irq_work wake_work;	/* from the writer's context to where one may wake */
	wait_queue_head_t waitq;	/* who polls */
	void (*notify)(struct pmuk_buffer *b);	/* const: a context's, at each wakeup */
	void *notify_data;		/* const */
	u64 lost_told;			/* ->wake_work: of what ->notify has told */
	u64 mark_told;			/* the same: where the watermark was then */
	atomic_t unseen;		/* a wakeup that poll has not told of */
	struct pmuk_counter *self;	/* first to move it from NULL: on the control page */
	struct kref ref;		/* the creator, counters, maps */
};

/* buffer.c */
void pmuk_buffer_tell(struct pmuk_buffer *b);
void pmuk_buffers_destroy(struct pmuk_buffer **buffers, unsigned int nr);
const char *pmuk_buffer_fault(const struct pmuk_buffer_attr *attr, int cpu);
u32 pmuk_buffer_watermark(const struct pmuk_buffer *b, u64 size);
void pmuk_buffer_get(struct pmuk_buffer *b);
void pmuk_buffer_put(struct pmuk_buffer *b);

/* pages.c */
bool pmuk_pages_nr_ok(unsigned long nr);
int pmuk_pages_alloc(struct pmuk_pages *p, unsigned int nr, int node);
void pmuk_pages_free(struct pmuk_pages *p);

#endif /* _PMU_KAPI_BUFFER_H */
