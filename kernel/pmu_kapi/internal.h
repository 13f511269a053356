/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of pmuk share, and who guards it.
 *
 * "Owner" below is the one place where a counter can be on a PMU: its CPU for
 * a CPU counter, whichever CPU runs the task for a task counter. Owner fields
 * are written there only, with interrupts off or from NMI.
 */
#ifndef _PMU_KAPI_INTERNAL_H
#define _PMU_KAPI_INTERNAL_H

#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/perf_event.h>
#include <linux/pmu_kapi.h>
#include <linux/prandom.h>
#include <linux/refcount.h>
#include <linux/seqlock.h>
#include <linux/workqueue.h>

/* pmuk_counter::frozen of a counter that is not paused. */
#define PMUK_RUNNING	U64_MAX

/* Not a jiffies value that any machine lives to see. */
#define PMUK_NEVER	ULONG_MAX

/* pmuk_counter::bar where the fast path is always closed. */
#define PMUK_BARRED	BIT(31)

/* Stay below 2^63: perf core keeps what is left of a period as s64. */
#define PMUK_PERIOD_MAX	((u64)S64_MAX)

/* What a struct pmuk_sample can have. */
#define PMUK_SAMPLE_TYPE	(PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_INTR | \
				 PERF_SAMPLE_TIME | PERF_SAMPLE_READ | PERF_SAMPLE_ADDR |	\
				 PERF_SAMPLE_WEIGHT)

/*
 * perf core knows where a sample was taken, in a guest maybe, and has 0 for addresses that must
 * not be told. compat-include/ has what is left of that where it does not tell modules.
 */
#ifndef pmuk_sample_ip
#define pmuk_sample_ip(event, regs)	perf_instruction_pointer(event, regs)
#define pmuk_sample_misc(event, regs)	perf_misc_flags(event, regs)
#define PMUK_SEES_GUESTS		true
#endif

struct pmuk_published {
	struct pmuk_value value;	/* ->age is not used */
	u64 stamp;			/* ktime_get_mono_fast_ns() */
};

/* As pmuk_overflow_t, and what perf's records need beside. */
typedef void (*pmuk_handler_t)(struct pmuk_counter *c, const struct pmuk_sample *sample,
			       const struct perf_sample_data *data);

struct pmuk_counter {
	/* What a local read touches, together. */
	struct perf_event *event;	/* const after create */
	unsigned long fast_tick;	/* owner: jiffies in which reads are fast, or PMUK_NEVER */
	u64 mask;			/* owner: width of the register, 0: not read directly */
	u64 last;			/* owner: latest count read outside of NMI */

	u64 last_nmi;			/* owner: latest count read in NMI */
	u64 frozen;			/* owner writes: the count while paused, or PMUK_RUNNING */
	u64 thaws;			/* owner writes: how often it was resumed */
	u32 published;			/* owner: jiffies of the latest local read that published */
	u32 bar;			/* owner: see pmuk_is_barred() */

	struct pmuk_attr attr;		/* const after create, but ->period: owner */
	int cpu;			/* const: where it was created; -1 for a task's */
	bool on_page;			/* const: publishes on its buffer's control page */
	u64 tried;			/* const: nanoseconds on the PMU while being created */
	struct rnd_state rnd;		/* owner */
	bool core;			/* const: on the CPU's own PMU */
	bool traces;			/* const: its PMU's driver can write AUX areas */
	bool begun;			/* sleeping calls: was enabled once */
	bool halted;			/* owner: pause has stopped the PMU, resume starts it */
	bool overdue;			/* owner: and found an overflow that was not served */
	bool quiet;			/* drop overflows: being created or destroyed */

	atomic_t publishing;		/* whoever moved it from 0 to 1 may write pub[] */
	seqcount_latch_t latch;		/* tells readers which of pub[] is whole */
	struct pmuk_published pub[2];	/* ->publishing to write, ->latch to read */

	pmuk_handler_t handler;		/* const: a context's, in place of attr.overflow */
	void *slot;			/* const: the context's */
	struct pmuk_buffer **buffers;	/* const: the context's, by CPU, in place of attr.buffer */
	bool away;			/* the context's turns write: it is not its set's */
	bool writes_aux;		/* const: its PMU does, in its buffers' AUX areas ... */
	struct module *aux_owner;	/* ... and that PMU's module, ... */
	void (*free_aux)(void *aux);	/* ... and what frees its part */
	u64 offset;			/* const while enabled: a context adds it to the count */

	u64 id;				/* const: perf's, in records */
	/* These are const while the counter is enabled. */
	unsigned int record_size;	/* of a record, without callchain and raw data */
	unsigned int nr_peers;
	struct pmuk_counter *peers[PMUK_PEERS_MAX];	/* each referred to, unless a context's */
	struct kref ref;		/* the creator, and whose peer it is */

	atomic_t doomed;		/* whoever moved it from 0 to 1 queues the destruction */
	refcount_t users;		/* the creator, and pmuk_counter_enable() */
	struct irq_work settle;		/* what the PMU must do when interrupts are on */
	struct irq_work irq_work;	/* deferred destroy: leaves NMI … */
	struct work_struct work;	/* … and then interrupt context */
	struct completion *done;	/* written by whoever set ->doomed */
};

/*
 * Drivers of PMUs that the machine or a socket has one of move their events to another CPU when
 * theirs goes offline. Neither the buffer nor the context's part of the old CPU is for that one.
 */
static inline bool pmuk_counter_is_moved(const struct pmuk_counter *c)
{
	return (c->attr.buffer || c->handler) && READ_ONCE(c->event->cpu) != c->cpu;
}

/* counter.c */
extern struct workqueue_struct *pmuk_wq;

struct pmuk_counter *pmuk_counter_make(const struct pmuk_attr *attr, int cpu,
				       struct task_struct *task, pmuk_handler_t handler,
				       void *slot, struct pmuk_buffer **buffers);
void pmuk_counter_end(struct pmuk_counter *c);
void pmuk_counter_finish(struct pmuk_counter *c);
bool pmuk_counter_is_pmu_gone(const struct pmuk_counter *c);

/* room.c */
bool pmuk_room_is_shared(const struct pmuk_counter *c);

/* local.c */
int pmuk_counters_read_local(struct pmuk_counter *const *counters, u64 *counts, unsigned int n);
void pmuk_counter_rearm(struct pmuk_counter *c, u64 period);
bool pmuk_counter_take_pending(struct pmuk_counter *c);
void pmuk_counter_late_sample(struct pmuk_counter *c, struct pmuk_sample *sample);
void pmuk_overflow(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs);
void pmuk_publish(struct pmuk_counter *c, const struct pmuk_value *value);
void pmuk_settle_irq_work(struct irq_work *irq_work);
u64 pmuk_next_period(struct pmuk_counter *c);

int pmuk_nr_counters(void);

/* context.c */
int pmuk_contexts_init(void);
void pmuk_contexts_exit(void);

/* histogram.c */
int pmuk_formats_init(void);
void pmuk_formats_exit(void);

/* debugfs.c */
void pmuk_debugfs_init(void);
void pmuk_debugfs_exit(void);

/* buffer.c */
int pmuk_nr_buffers(void);

/* format.c */
const char *pmuk_format_fault(const struct pmuk_attr *attr, int cpu);
unsigned int pmuk_format_size(const struct pmuk_counter *c);
bool pmuk_format_known(u64 sample_type, u64 read_format);
void pmuk_format_sample(struct pmuk_counter *c, struct pmuk_buffer *b,
			const struct pmuk_sample *sample, const struct perf_sample_data *data);

/* aux_pmu.c */
int pmuk_aux_attach(struct pmuk_counter *c);
void pmuk_aux_detach(struct pmuk_counter *c);

/* page.c */
void pmuk_page_attach(struct pmuk_counter *c);
void pmuk_page_detach(struct pmuk_counter *c);
void pmuk_page_publish(struct pmuk_counter *c, const struct pmuk_value *value);
void pmuk_page_refresh(struct pmuk_counter *c);

#endif /* _PMU_KAPI_INTERNAL_H */
