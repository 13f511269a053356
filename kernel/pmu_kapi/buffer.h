/* SPDX-License-Identifier: GPL-2.0 */
/* A buffer: a ring, its pages, and whom it wakes. */
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

/* Pages, mapped twice in a row. */
struct pmuk_pages {
	struct page **pages;
	unsigned int nr;
	gfp_t gfp;
	u8 *map;
};

/* The AUX area of a buffer. */
struct pmuk_aux {
	struct pmuk_area area;
	struct pmuk_pages pages;	/* const */
	void **addresses;		/* of ->pages, for ->ops or a PMU; NULL without */
	const struct pmuk_aux_ops *ops;	/* set after ->setup(); NULL again before ->free() */
	struct pmuk_buffer *b;		/* const */
	u64 least;			/* const: ->area.least, while no PMU uses the area */
	struct pmuk_counter *writer;	/* ->b->lock: its PMU has set the area up; or NULL */
	pid_t session;			/* const: equal for areas that belong together */
	u32 swaps_seen;			/* owner: ->area.swaps for which what follows is true */
	u64 reported_id;		/* owner: id of the last ITRACE_START's event, or 0 */
	u64 hw_id;			/* owner: the last that the PMU's driver reported ... */
	bool has_hw_id;			/* ... if it has ... */
	bool hw_id_due;			/* ... and no record has it yet */
	unsigned int maps;		/* ->b->lock: how many maps there are */
	unsigned long pgoff;		/* the same: offset of these maps, if there are any */
	u64 wakeups_reported;		/* ->b->wake_work: ->area.wakeups at the last ->notify */
	u64 lost_reported;			/* the same: ->area.truncations */
	struct irq_work gone_irq;	/* from the last writer, in NMI too, ... */
	struct work_struct gone_work;	/* ... to where the buffer may be let go of */
	bool held;			/* const once killed: the module of ->ops is held */
	struct completion gone;		/* no writer is left, and ->ops are called no more */
};

/* A map in user space, and what it is charged for. mremap(2) moves it. */
struct pmuk_map {
	struct pmuk_buffer *b;		/* const */
	struct user_struct *user;	/* const */
	unsigned long locked;		/* const: pages of ->user, of perf_event_mlock_kb */
	unsigned long pinned;		/* const: pages of the mm, under RLIMIT_MEMLOCK */
	bool reads;			/* const once mapped: the mm may read registers */
	refcount_t vmas;
	struct pmuk_pages data;		/* of the buffer whose last map this was, ... */
	struct rcu_work late;		/* ... freed when nobody writes into them any more */
};

struct pmuk_buffer {
	struct pmuk_ring ring;		/* first, see pmuk_buffer_ring() */
	int cpu;			/* const: the owner, or -1: control page only */
	bool user_tail;			/* const */
	unsigned int own_nr;		/* const: data pages until somebody maps them */
	u32 watermark;			/* const: as asked for */
	struct completion *completion;	/* const: the caller's */
	struct page *control;		/* const */
	struct pmuk_aux *aux;		/* const: NULL without an AUX area */
	struct mutex lock;		/* what is mapped, and its size */
	struct pmuk_pages data;		/* ->lock; const unless ->user_tail */
	unsigned int maps __guarded_by(&lock);	/* how many maps there are */
	bool dropped __guarded_by(&lock);	/* ->data went with the last map */
	bool reads __guarded_by(&lock);	/* processes that map the page may read registers */

	struct irq_work wake_work;	/* wakes the consumer, as a writer may be in NMI */
	wait_queue_head_t *waitq;	/* const: for poll(): the caller's, or ... */
	wait_queue_head_t own_waitq;	/* ... this */
	void (*notify)(struct pmuk_buffer *b);	/* const: a context's, at each wakeup */
	void *notify_data;		/* const */
	u64 lost_reported;			/* ->wake_work: ->ring.lost at the last ->notify */
	u64 marks_reported;			/* the same: ->ring.marks */
	atomic_t unseen;		/* poll() has not reported the last wakeup yet */
	struct pmuk_counter *self;	/* first counter to set it: on the control page */
	bool killed;			/* the creator: nothing is written from ... */
	unsigned long grace;		/* ... the end of this grace period on */
	struct kref ref;		/* the creator, counters, maps, the AUX area's writer */
	void (*release)(struct kref *ref);	/* const */
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
u32 pmuk_buffer_watermark(const struct pmuk_buffer *b, u64 size);
int pmuk_nr_buffers(void);

/* pages.c */
bool pmuk_pages_nr_ok(unsigned long nr);
int pmuk_pages_alloc(struct pmuk_pages *p, unsigned int nr, gfp_t gfp, int node);
int pmuk_pages_alloc_pieces(struct pmuk_pages *p, unsigned int nr, gfp_t gfp, int node,
			    unsigned int order, bool prefer);
void pmuk_pages_free(struct pmuk_pages *p);

/* aux_area.c */
pid_t pmuk_aux_new_session(void);
void pmuk_aux_announce(struct pmuk_buffer *b);
const char *pmuk_aux_fault(const struct pmuk_buffer_attr *attr, int cpu);
int pmuk_aux_alloc(struct pmuk_buffer *b, const struct pmuk_buffer_attr *attr, gfp_t gfp, int node);
void pmuk_aux_free(struct pmuk_buffer *b);
void pmuk_aux_kill(struct pmuk_buffer *b);
int pmuk_aux_list_pages(struct pmuk_aux *aux);

#endif /* _PMU_KAPI_BUFFER_H */
