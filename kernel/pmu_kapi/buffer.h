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
	const struct pmuk_aux_ops *ops;	/* set once it is set up; NULL again when that is freed */
	struct pmuk_buffer *b;		/* const */
	u64 least;			/* const: ->area's, but for the writer's */
	struct pmuk_counter *writer;	/* ->b's ->lock: whose PMU has set the area up, or NULL */
	pid_t session;			/* const: by which a PMU knows what belongs together */
	u32 swaps_seen;			/* owner: ->area's ->swaps when what follows was true */
	u64 told_id;			/* owner: of the event of the last ITRACE_START, or 0 */
	u64 hw_id;			/* owner: the last that the PMU's driver has said ... */
	bool has_hw_id;			/* ... if it has ... */
	bool hw_id_due;			/* ... and no record tells of it */
	unsigned int maps;		/* ->b's ->lock: how many maps there are */
	unsigned long pgoff;		/* the same: where, while there are any */
	u64 wakeups_told;		/* ->b's ->wake_work: of what ->notify has told */
	u64 lost_told;			/* the same */
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
	struct pmuk_pages data;		/* ->lock; const unless ->user_tail */
	struct pmuk_aux *aux;		/* const: NULL without an AUX area */
	struct mutex lock;		/* what is mapped, and its size */
	unsigned int maps;		/* ->lock: how many maps there are */
	bool dropped;			/* ->lock: ->data went with the last of them */
	bool reads;			/* ->lock: whoever maps the page may read registers */

	struct irq_work wake_work;	/* from the writer's context to where one may wake */
	wait_queue_head_t *waitq;	/* const: who polls; the caller's, or ... */
	wait_queue_head_t own_waitq;	/* ... this */
	void (*notify)(struct pmuk_buffer *b);	/* const: a context's, at each wakeup */
	void *notify_data;		/* const */
	u64 lost_told;			/* ->wake_work: of what ->notify has told */
	u64 marks_told;			/* the same: watermarks passed */
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
int pmuk_pages_alloc(struct pmuk_pages *p, unsigned int nr, gfp_t gfp, int node);
int pmuk_pages_alloc_pieces(struct pmuk_pages *p, unsigned int nr, gfp_t gfp, int node,
			    unsigned int order, bool prefer);
void pmuk_pages_free(struct pmuk_pages *p);

/* mmap.c */
void pmuk_map_put(struct pmuk_map *m, struct mm_struct *mm);
int pmuk_mmap_make(struct pmuk_buffer *b, struct vm_area_struct *vma,
		   int (*insert)(struct pmuk_map *m, struct vm_area_struct *vma),
		   const struct vm_operations_struct *ops);
int pmuk_mmap_insert(struct vm_area_struct *vma, unsigned long at, struct page *page);
vm_fault_t pmuk_mmap_mkwrite(struct vm_fault *vmf);
int pmuk_mmap_may_split(struct vm_area_struct *vma, unsigned long addr);

/* aux_mmap.c */
void pmuk_aux_announce(struct pmuk_buffer *b);
bool pmuk_aux_is_mapped_in(const struct pmuk_buffer *b, unsigned long nr);
int pmuk_aux_mmap(struct pmuk_buffer *b, struct vm_area_struct *vma);

/* aux_pmu.c */
pid_t pmuk_aux_new_session(void);

/* aux_area.c */
const char *pmuk_aux_fault(const struct pmuk_buffer_attr *attr, int cpu);
int pmuk_aux_alloc(struct pmuk_buffer *b, const struct pmuk_buffer_attr *attr, gfp_t gfp, int node);
void pmuk_aux_free(struct pmuk_buffer *b);
void pmuk_aux_kill(struct pmuk_buffer *b);
int pmuk_aux_list_pages(struct pmuk_aux *aux);

#endif /* _PMU_KAPI_BUFFER_H */
