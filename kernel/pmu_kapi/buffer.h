/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A buffer: a ring of records, its pages, its AUX area, and the consumer that it wakes.
 *
 * Each field has an annotation or a comment that says who may write it. "const": nobody, once the
 * struct is set up. "owner": the CPU of the buffer.
 */
#ifndef _PMU_KAPI_BUFFER_H
#define _PMU_KAPI_BUFFER_H

#include <linux/completion.h>
#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pmu_kapi.h>
#include <linux/refcount.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "aux.h"
#include "ring.h"

/* Pages that ->map maps twice in a row, so that nothing in them wraps for a kernel reader. */
struct pmuk_pages {
	struct page **pages;
	unsigned int nr;
	gfp_t gfp;
	u8 *map;
};

struct pmuk_buffer {
	struct pmuk_ring ring;		/* the first field, see pmuk_buffer_ring() */
	int cpu;			/* const: the owner; -1: there are no data pages */
	bool user_tail;			/* const: user space is the reader */
	u32 watermark;			/* const: bytes that the creator asked for, or 0 */
	struct completion *completion;	/* const: the consumer's, or NULL */
	struct page *control;		/* const */
	struct pmuk_aux *aux;		/* const: NULL without an AUX area */
	/* Calls of mmap(2) take it before ->lock. Kernel callers do not wait for these. */
	struct mutex map_lock;
	struct mutex lock;		/* held briefly, also to create and destroy counters */
	struct pmuk_pages data __guarded_by(&lock);	/* const unless ->user_tail */
	unsigned int maps __guarded_by(&lock);	/* maps of the control page and the data */
	bool dropped __guarded_by(&lock);	/* the last map took the data pages with it */
	unsigned int aux_maps __guarded_by(&lock);	/* maps of the AUX area */
	unsigned long aux_pgoff __guarded_by(&lock);	/* the offset of all these maps */
	struct pmuk_counter *self __guarded_by(&lock);	/* the counter on the control page */
	/* perf core keeps the page up to date; processes that map it may read registers */
	bool reads __guarded_by(&lock);

	struct irq_work wake_work;	/* wakes the consumer, as a writer may be in NMI */
	wait_queue_head_t *waitq;	/* const: poll() waits here: the consumer's, or ... */
	wait_queue_head_t own_waitq;	/* ... this one */
	void (*notify)(struct pmuk_buffer *b);	/* const: ->wake_work calls this; or NULL */
	void *notify_data;		/* const: the context, for ->notify */
	u64 lost_reported;		/* ->notify writes: ->ring.lost at its latest call */
	u64 marks_reported;		/* ->notify writes: ->ring.marks at its latest call */
	atomic_t unseen;		/* no poll() has reported the latest wakeup yet */
	bool killed;			/* the creator writes: takes no records any more, and ... */
	unsigned long grace;		/* ... has no writers after this RCU grace period */
	bool ended;			/* the creator writes: has no writers */
	u64 context;			/* const: the id of the context, or 0 */
	atomic_t opened;		/* a file of /dev/pmuk has the buffer */
	struct kref ref;		/* held by creator, counters, maps, the AUX area's writer */
	void (*release)(struct kref *ref);	/* const */
};

/* The AUX area of a buffer. */
struct pmuk_aux {
	struct pmuk_area area;
	struct pmuk_pages pages;	/* const */
	void **addresses;		/* addresses of ->pages, for ->ops or a driver; or NULL */
	const struct pmuk_aux_ops *ops;	/* const from its ->setup() to its ->free(), else NULL */
	struct pmuk_buffer *b;		/* const */
	u64 least;			/* const: the value of ->area.least without a ->writer */
	/* The counter whose PMU's driver has set the area up, and writes it; or NULL. */
	struct pmuk_counter *writer __guarded_by(&b->lock);
	pid_t session;			/* const: equal for areas that belong together */
	struct perf_event *tracer;	/* owner: its PMU has the area open; or NULL */
	bool slicing;			/* owner: an overflow takes a slice by the driver */
	u32 swaps_seen;			/* owner: ->area.swaps when the next fields were written */
	u64 reported_id;		/* owner: event id in the latest ITRACE_START, or 0 */
	u64 hw_id;			/* owner: the hardware id that the driver reported last */
	bool has_hw_id;			/* owner: the driver has reported one */
	bool hw_id_due;			/* owner: no record has that id yet */
	u64 wakeups_reported;		/* ->b->notify writes: ->area.wakeups at its latest call */
	u64 lost_reported;		/* ->b->notify writes: likewise ->area.truncations */
	struct irq_work gone_irq;	/* the last writer has ended: leaves NMI ... */
	struct work_struct gone_work;	/* ... and lets go of the buffer, which may sleep */
	bool held;			/* const once killed: the area holds the module of ->ops */
	bool left;			/* const once killed: a writer had the area open then */
	struct completion gone;		/* no writer is left, and ->ops are called no more */
};

/* A map in user space, and the pages that its user is charged for. mremap(2) moves it. */
struct pmuk_map {
	struct pmuk_buffer *b;		/* const */
	struct user_struct *user;	/* const */
	unsigned long locked;		/* const: pages under the user's perf_event_mlock_kb */
	unsigned long pinned;		/* const: other pages, under the mm's RLIMIT_MEMLOCK */
	bool reads;			/* const once mapped: the mm may read registers */
	bool of_aux;			/* const: of the AUX area, and not of the data */
	bool first;			/* const once mapped: the data had no other map */
	refcount_t vmas;		/* two while mremap(2) moves the map */
	struct pmuk_pages data;		/* the last map takes the buffer's data pages, ... */
	struct rcu_work late;		/* ... and frees them once no writer uses them */
};

static inline void pmuk_buffer_get(struct pmuk_buffer *b)
{
	kref_get(&b->ref);
}

static inline void pmuk_buffer_put(struct pmuk_buffer *b)
{
	kref_put(&b->ref, b->release);
}

/* buffer.c */
void pmuk_buffer_report_lost(struct pmuk_buffer *b);
void pmuk_buffers_kill(struct pmuk_buffer **buffers, unsigned int nr);
void pmuk_buffers_destroy(struct pmuk_buffer **buffers, unsigned int nr);
const char *pmuk_buffer_fault(const struct pmuk_buffer_attr *attr, int cpu);
void pmuk_buffer_clean_header(struct pmuk_buffer *b) __must_hold(&b->lock);
void pmuk_buffer_describe(struct pmuk_buffer *b) __must_hold(&b->lock);
u32 pmuk_buffer_watermark(const struct pmuk_buffer *b, u64 size);
int pmuk_nr_buffers(void);

/* pages.c */
bool pmuk_pages_nr_ok(unsigned long nr);
int pmuk_pages_alloc(struct pmuk_pages *p, unsigned int nr, gfp_t gfp, int node,
		     unsigned int order, bool prefer);
void pmuk_pages_free(struct pmuk_pages *p);

/* A slice of the AUX area, from pmuk_slice_begin() to pmuk_slice_end(). */
struct pmuk_slice {
	unsigned int size;
	bool frozen;			/* no writer changes the area meanwhile */
	struct perf_event *event;	/* the event whose driver copies the slice; or NULL */
};

/* aux_slice.c */
void pmuk_slice_begin(struct pmuk_slice *s, struct pmuk_buffer *b, unsigned int most);
void pmuk_slice_copy(const struct pmuk_slice *s, struct pmuk_buffer *b, void *to);
void pmuk_slice_end(const struct pmuk_slice *s, struct pmuk_buffer *b);

/* aux_area.c */
pid_t pmuk_aux_new_session(void);
void pmuk_aux_announce(struct pmuk_buffer *b) __must_hold(&b->lock);
void pmuk_aux_swap(struct pmuk_buffer *b) __must_hold(&b->lock);
const char *pmuk_aux_fault(const struct pmuk_buffer_attr *attr, int cpu);
int pmuk_aux_alloc(struct pmuk_buffer *b, const struct pmuk_buffer_attr *attr, gfp_t gfp, int node);
void pmuk_aux_free(struct pmuk_buffer *b);
void pmuk_aux_kill(struct pmuk_buffer *b);
void pmuk_aux_end(struct pmuk_buffer *b);
int pmuk_aux_list_pages(struct pmuk_aux *aux);

#endif /* _PMU_KAPI_BUFFER_H */
