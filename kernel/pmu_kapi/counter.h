/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A counter, and who guards each of its fields.
 *
 * "Owner" below is the only CPU on which a counter can be on a PMU: for a CPU counter its CPU, for
 * a task counter the CPU that runs the task. Only the owner writes owner fields, with interrupts
 * off or in NMI; but the inline read also writes ->last with interrupts on. While a counter is
 * disabled, pmuk_counter_rearm() writes ->rnd on any CPU.
 */
#ifndef _PMU_KAPI_COUNTER_H
#define _PMU_KAPI_COUNTER_H

#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/perf_event.h>
#include <linux/perf_local_state.h>
#include <linux/pmu_kapi.h>
#include <linux/prandom.h>
#include <linux/refcount.h>
#include <linux/seqlock.h>
#include <linux/workqueue.h>

#include "fields.h"
#include "state.h"

/* Stay below 2^63: perf core keeps what is left of a period as s64. */
#define PMUK_PERIOD_MAX	((u64)S64_MAX)

#define PMUK_EXCLUDES	(PMUK_EXCLUDE_USER | PMUK_EXCLUDE_KERNEL | PMUK_EXCLUDE_HV |	\
			 PMUK_EXCLUDE_IDLE | PMUK_EXCLUDE_GUEST)

/*
 * perf core knows whether a sample was taken in a guest, and returns 0 for an address that must not
 * be reported. On stock kernels, substitutes take guests for the host.
 */
#ifndef pmuk_sample_ip
#define pmuk_sample_ip(event, regs)	perf_instruction_pointer(event, regs)
#define pmuk_sample_misc(event, regs)	perf_misc_flags(event, regs)
#define PMUK_SEES_GUESTS		true
#endif

/* perf core calls who has set perf_event_set_others_wait(). */
#ifndef PMUK_SEES_WAITERS
#define PMUK_SEES_WAITERS		true
#endif

/*
 * A counter calls this at each overflow, before the callback of its attributes. The function also
 * gets perf's own sample data.
 */
typedef void (*pmuk_handler_t)(struct pmuk_counter *c, const struct pmuk_sample *sample,
			       const struct perf_sample_data *data);

/*
 * The attributes that a counter needs after its creation. Of the others, ->hw_event has config1 to
 * config3, precise_ip, branch_sample_type and the masks of registers, and ->rnd, ->peers and
 * ->max_ips come from the rest.
 */
struct pmuk_counter_attr {
	u32 type;
	u32 flags;
	u64 config;
	u64 period;
	u32 random_mask;
	u32 freq;
	u64 sample_type;
	u64 read_format;
	pmuk_overflow_t overflow;
	void *data;
	struct pmuk_buffer *buffer;
	u64 cookie;
};

struct pmuk_counter {
	/* The inline read uses these fields only. Their names are those in @fast. */
	union {
		struct pmuk_counter_fast fast;
		struct {
			struct perf_event *hw_event;
			u64 mask;
			unsigned long state;
			u64 last;
			u32 bar;
			u32 published;
			u64 offset;
		};
	};

	u64 *last_group;		/* const: the latest count of group reads, or &->last */
	struct perf_event *event;	/* const: perf's event of this counter; ->hw_event is the
					 * same, or that of ->host
					 */
	struct pmuk_host *host;		/* const: whose register the counter shares, or NULL */
	u64 last_nmi;			/* owner: latest count read in NMI */
	/* The claimant writes the next four fields, and ->paused_nmis. */
	u64 frozen;			/* the count while paused */
	u64 resumes;			/* the number of resumes */
	u64 paused_count;		/* perf's count at the pause; may lack some in flight */
	u64 paused_at;			/* the register's value at the pause */

	struct pmuk_counter_attr attr;	/* const after create; but the owner, or a rearm on any
					 * CPU, writes ->period, and a start writes ->cookie
					 */
	u64 since;			/* enablers write: when ->event was last enabled */
	union {
		struct rnd_state rnd;	/* owner, with a random_mask */
		u64 ran;		/* owner, with a freq: time_running when the period began;
					 * while paused, the time that the period took until then;
					 * U64_MAX: perf core has throttled the counter since
					 */
	};
	bool core;			/* const: on the CPU's own PMU */
	bool traces;			/* const: its PMU's driver can write AUX areas */
	bool marks;			/* const: a mark shows whether the driver has started it */
	bool begun;			/* sleeping calls: the counter was enabled once */
	bool on_page;			/* const: publishes on its buffer's control page, or ... */
	bool live;			/* ... const: perf core writes that page */
	u8 seat;			/* const: its number at ->host */
	bool founder;			/* const: ->host was created for it, and is as old */
	s8 rank;			/* const while enabled: enum pmuk_rank; without a context,
					 * PMUK_RANK_CRITICAL
					 */
	bool kept;			/* const while enabled: it is a reservation's */
	u8 max_ips;			/* const: addresses in callchains that pmuk unwinds */
	u16 max_slice;			/* const: bytes of the AUX area in a record */
	bool quiet;			/* drop overflows: counter is being created or destroyed */
	bool rides;			/* owner: perf core has put the counter on its host */

	atomic_t publishing;		/* a caller that moves it from 0 to 1 may write pub[] */
	seqcount_latch_t latch;		/* says which of pub[] readers may use */
	refcount_t users;		/* held by the creator, and by pmuk_counter_enable() */
	int cpu;			/* const: as passed to create; -1 for a task counter */
	struct pmuk_value pub[2];	/* written under ->publishing, read under ->latch; ->age is
					 * the time when that was, ktime_get_mono_fast_ns()
					 */

	pmuk_handler_t handler;		/* const: called at each overflow, or NULL */
	void *slot;			/* const: for ->handler, or NULL */
	u64 host_ran;			/* owner, with a host: time_running at perf core's latest
					 * read, or when perf core took the counter off
					 */
	u64 host_ahead;			/* owner: that of a counter that rides, less the host's */
	struct pmuk_buffer **buffers;	/* const: the context's, by CPU, in place of attr.buffer */
	bool away;			/* turns write: it is not its set's turn, or stopped */
	bool writes_aux;		/* const until destroyed: its PMU writes AUX areas ... */
	u32 paused_nmis;		/* the number of NMIs, if an NMI has paused it; else 0 */
	struct module *aux_owner;	/* ... with this module, ... */
	void (*free_aux)(void *aux);	/* ... which frees its part of an area with this */
	u64 id;				/* const: perf's id of the event, or pmuk_record_id() */
	/* The next three fields are const while the counter counts; a tree's, in its turn. */
	unsigned int record_size;	/* see pmuk_format_size() */
	unsigned int nr_peers;		/* peers in ->peers, where a context's counter has room */
	struct kref ref;		/* held by the creator, and by counters with this peer */

	atomic_t doomed;		/* a caller that moves it from 0 to 1 queues ->irq_work */
	struct irq_work settle;		/* ends what an NMI has begun, when interrupts are on */
	struct irq_work irq_work;	/* deferred destroy: leaves NMI … */
	struct work_struct work;	/* … and then interrupt context */
	struct completion *done;	/* written by the caller that set ->doomed */
	struct pmuk_counter *peers[];	/* as ->nr_peers; has a ->ref of each, but in a context */
};

/*
 * A PMU that exists once per machine or socket has its events on one CPU. Its driver moves them
 * when that CPU goes offline. The handler has the old CPU's data, which are not for the new CPU.
 */
static inline bool pmuk_counter_is_moved(const struct pmuk_counter *c)
{
	return (c->attr.buffer || c->handler) && perf_local_cpu(c->event) != c->cpu;
}

/* The bits of the register of ->event; 0 if the PMU's driver reads it, as that of a rider. */
static inline u64 pmuk_counter_mask(const struct pmuk_counter *c)
{
	return c->host ? 0 : c->mask;
}

/* Returns true, and the count as it was paused, if reads get that. */
static inline bool pmuk_counter_is_frozen(const struct pmuk_counter *c, u64 *count)
{
	if (!pmuk_state_is_frozen(smp_load_acquire(&c->state)))	/* pairs with pmuk_state_leave() */
		return false;
	*count = READ_ONCE(c->frozen);
	return true;
}

static inline u64 pmuk_next_period(struct pmuk_counter *c)
{
	u32 mask = c->attr.random_mask;

	return c->attr.period + (mask ? prandom_u32_state(&c->rnd) & mask : 0);
}

/* The time of the present period will say nothing about how fast events come. */
static inline void pmuk_forget_period(struct pmuk_counter *c)
{
	if (c->attr.freq)
		c->ran = U64_MAX;
}

/* The counter was made, has counted nothing by @now, and is not shown to anybody yet. */
static inline void pmuk_counter_set_age(struct pmuk_counter *c, u64 now)
{
	c->pub[0].age = now;
	c->pub[1].age = now;
}

/* counter.c */
struct pmuk_counter *pmuk_counter_make(const struct pmuk_attr *attr, int cpu,
				       struct task_struct *task, pmuk_handler_t handler,
				       void *slot, struct pmuk_buffer **buffers);
void pmuk_counter_end(struct pmuk_counter *c);
void pmuk_counter_finish(struct pmuk_counter *c);
int pmuk_nr_counters(void);

/* attr.c */
int pmuk_check_attr(const struct pmuk_attr *attr, int cpu, const struct task_struct *task);

/* trial.c */
struct mutex *pmuk_trial_lock(int cpu);
bool pmuk_trial_goes_on(int cpu);
void pmuk_trial_init(void);
int pmuk_counter_try(struct pmuk_counter *c, const struct pmuk_attr *attr);
int pmuk_counter_try_again(const struct pmuk_counter *c);

/* batch.c */
bool pmuk_counters_are_probed(struct pmuk_counter *const *counters, unsigned int nr, bool first);
void pmuk_counters_enable(struct pmuk_counter *const *counters, unsigned int nr);
void pmuk_counters_disable(struct pmuk_counter *const *counters, unsigned int nr);

/* enable.c */
bool pmuk_counter_is_gone(const struct pmuk_counter *c);
int pmuk_counter_try_enable(struct pmuk_counter *c);
void pmuk_counter_set_count(struct pmuk_counter *c, u64 count);

/* aux_pmu.c */
int pmuk_aux_attach(struct pmuk_counter *c);
void pmuk_aux_detach(struct pmuk_counter *c);

/* sample.c */
void pmuk_overflow(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs);
void pmuk_counter_late_sample(struct pmuk_counter *c, struct pmuk_sample *sample);

/* local.c */
int pmuk_check_own(const struct pmuk_counter *c);
u64 pmuk_not_less(struct pmuk_counter *c, u64 count);
void pmuk_publish_local(struct pmuk_counter *c, u64 count);
int pmuk_counters_read_local(struct pmuk_counter *const *counters, u64 *counts, unsigned int n);

/* pause.c */
void pmuk_counter_rearm(struct pmuk_counter *c, u64 period);
bool pmuk_counter_take_pending(struct pmuk_counter *c);
void pmuk_settle_irq_work(struct irq_work *irq_work);

/* snapshot.c */
bool pmuk_publish(struct pmuk_counter *c, const struct pmuk_value *value);
void pmuk_publish_again(struct pmuk_counter *c);

/* userpage.c */
void pmuk_page_attach(struct pmuk_counter *c);
void pmuk_page_detach(struct pmuk_counter *c);
void pmuk_page_publish(struct pmuk_counter *c, const struct pmuk_value *value);
void pmuk_page_restore(struct pmuk_counter *c, const struct pmuk_value *value);

#endif /* _PMU_KAPI_COUNTER_H */
