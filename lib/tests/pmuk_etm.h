/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The PMU behaves like CoreSight's ETM with its sink ETR, see coresight-etm-perf.c and
 * coresight-tmc-etr.c in drivers/hwtracing/coresight. Each CPU has a tracer. All tracers write to
 * one sink, which belongs to one session at a time. Areas of one session that are set up for events
 * of a CPU share the sink's memory. Areas that are set up for an event of a task have memory of
 * their own. The last tracer of the session to stop copies all of that memory to its own area. Each
 * area gets the hardware's id of a tracer once. A test plays the hardware, by pmuk_etm_trace().
 */
#ifndef _PMUK_ETM_H
#define _PMUK_ETM_H

#include <kunit/test.h>
#include <linux/cleanup.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

/*
 * A tracer takes so long from the copy to its end. Of two tracers that stop at the same time, each
 * takes the other for the last, and none copies, as with CoreSight.
 */
#define PMUK_ETM_STOP_US	1000

/* A PERF_RECORD_AUX_OUTPUT_HW_ID has this plus the CPU. */
#define PMUK_ETM_HW_ID	0x2000

#define PMUK_ETM_WORDS	256	/* size of the sink's memory, less than that of an area */

/* Holds the sink's memory during one session. */
struct pmuk_etm_buf {
	struct list_head node;
	refcount_t areas;
	int session;
	unsigned int nr;
	u64 words[PMUK_ETM_WORDS];
};

struct pmuk_etm_area {
	struct pmuk_etm *etm;
	struct pmuk_etm_buf *buf;
	int cpu;			/* the event's CPU, or -1 */
	int session;
	void **pages;
	u64 size;
	cpumask_t identified;		/* CPUs whose id was reported */
};

struct pmuk_etm_cpu {
	struct perf_event *event;
	struct pmuk_etm_area *area;	/* NULL while it does not trace */
	struct perf_output_handle handle;
};

struct pmuk_etm {
	struct pmu pmu;
	struct pmuk_etm_cpu __percpu *cpus;
	struct mutex bufs_lock;		/* protects the list of ->bufs */
	struct list_head bufs;		/* ->bufs_lock */
	raw_spinlock_t lock;		/* the sink's lock */
	int session;			/* ->lock; -1: none */
	unsigned int tracers;		/* ->lock */
	struct pmuk_etm_buf *active;	/* ->lock */
	unsigned int mixed;		/* ->lock: updates with other memory than the first */
	unsigned int busy;		/* ->lock: the sink was another session's */
};

static inline struct pmuk_etm *pmuk_etm_of(struct pmu *pmu)
{
	return container_of(pmu, struct pmuk_etm, pmu);
}

static inline struct pmuk_etm_cpu *pmuk_etm_here(struct perf_event *event)
{
	return this_cpu_ptr(pmuk_etm_of(event->pmu)->cpus);
}

/* ---- areas, and the sink's memory ---- */

static inline struct pmuk_etm_buf *pmuk_etm_find_buf(struct pmuk_etm *etm, int session)
{
	struct pmuk_etm_buf *buf;

	list_for_each_entry(buf, &etm->bufs, node) {
		if (buf->session == session)
			return buf;
	}
	return NULL;
}

static inline struct pmuk_etm_buf *pmuk_etm_get_buf(struct pmuk_etm *etm, int cpu, int session)
{
	struct pmuk_etm_buf *buf;

	guard(mutex)(&etm->bufs_lock);
	buf = cpu == -1 ? NULL : pmuk_etm_find_buf(etm, session);
	if (buf) {
		refcount_inc(&buf->areas);
		return buf;
	}
	buf = kzalloc_node(sizeof(*buf), GFP_KERNEL, NUMA_NO_NODE);
	if (!buf)
		return NULL;
	refcount_set(&buf->areas, 1);
	buf->session = session;
	list_add(&buf->node, &etm->bufs);
	return buf;
}

static inline void pmuk_etm_put_buf(struct pmuk_etm *etm, struct pmuk_etm_buf *buf)
{
	guard(mutex)(&etm->bufs_lock);
	if (!refcount_dec_and_test(&buf->areas))
		return;
	list_del(&buf->node);
	kfree(buf);
}

static inline void *pmuk_etm_setup_aux(struct perf_event *event, void **pages, int nr_pages,
				       bool overwrite)
{
	struct pmuk_etm *etm = pmuk_etm_of(event->pmu);
	struct pmuk_etm_area *area = kzalloc_node(sizeof(*area), GFP_KERNEL, NUMA_NO_NODE);

	if (!area)
		return NULL;
	area->etm = etm;
	area->cpu = event->cpu;
	area->session = perf_event_aux_session(event);
	area->pages = pages;
	area->size = (u64)nr_pages * PAGE_SIZE;
	area->buf = pmuk_etm_get_buf(etm, area->cpu, area->session);
	if (area->buf)
		return area;
	kfree(area);
	return NULL;
}

static inline void pmuk_etm_free_aux(void *aux)
{
	struct pmuk_etm_area *area = aux;

	pmuk_etm_put_buf(area->etm, area->buf);
	kfree(area);
}

/* ---- the sink ---- */

static inline bool pmuk_etm_enable_sink(struct pmuk_etm *etm, struct pmuk_etm_area *area)
{
	guard(raw_spinlock_irqsave)(&etm->lock);
	if (etm->session != -1 && etm->session != area->session) {
		etm->busy++;
		return false;
	}
	etm->session = area->session;
	if (!etm->tracers++)
		etm->active = area->buf;
	return true;
}

static inline void pmuk_etm_disable_sink(struct pmuk_etm *etm)
{
	guard(raw_spinlock_irqsave)(&etm->lock);
	if (--etm->tracers)
		return;
	etm->session = -1;
	etm->active = NULL;
}

/*
 * Copies the sink's memory if @area's tracer is the last one. Returns how many bytes it has copied.
 */
static inline u64 pmuk_etm_update(struct pmuk_etm *etm, struct pmuk_etm_area *area,
				  struct perf_output_handle *handle)
{
	struct pmuk_etm_buf *buf;
	u64 at = handle->head;
	unsigned int i;

	guard(raw_spinlock_irqsave)(&etm->lock);
	if (etm->tracers != 1)
		return 0;
	buf = etm->active;
	if (buf != area->buf) {
		etm->mixed++;
		perf_aux_output_flag(handle, PERF_AUX_FLAG_TRUNCATED);
		return 0;
	}
	for (i = 0; i < buf->nr; i++, at += sizeof(u64)) {
		at &= area->size - 1;
		*(u64 *)(area->pages[at / PAGE_SIZE] + at % PAGE_SIZE) = buf->words[i];
	}
	buf->nr = 0;
	return i * sizeof(u64);
}

/* ---- perf's calls ---- */

static inline void pmuk_etm_say_id(struct perf_event *event, struct pmuk_etm_area *area)
{
	int cpu = smp_processor_id();

	if (!cpumask_test_and_set_cpu(cpu, &area->identified))
		perf_report_aux_output_id(event, PMUK_ETM_HW_ID + cpu);
}

static inline void pmuk_etm_start(struct perf_event *event, int flags)
{
	struct pmuk_etm_cpu *cpu = pmuk_etm_here(event);
	struct pmuk_etm_area *area = perf_aux_output_begin(&cpu->handle, event);

	event->hw.state = PERF_HES_STOPPED;
	if (!area)
		return;
	if (!pmuk_etm_enable_sink(area->etm, area)) {
		perf_aux_output_flag(&cpu->handle, PERF_AUX_FLAG_TRUNCATED);
		perf_aux_output_end(&cpu->handle, 0);
		return;
	}
	pmuk_etm_say_id(event, area);
	event->hw.state = 0;
	cpu->area = area;
}

static inline void pmuk_etm_stop(struct perf_event *event, int flags)
{
	struct pmuk_etm_cpu *cpu = pmuk_etm_here(event);
	struct pmuk_etm_area *area = cpu->area;

	/* CoreSight's driver compares the whole word, too. */
	if (event->hw.state == PERF_HES_STOPPED || WARN_ON_ONCE(!area))
		return;
	event->hw.state = PERF_HES_STOPPED;
	cpu->area = NULL;
	perf_aux_output_end(&cpu->handle, pmuk_etm_update(area->etm, area, &cpu->handle));
	udelay(PMUK_ETM_STOP_US);
	pmuk_etm_disable_sink(area->etm);
}

static inline int pmuk_etm_add(struct perf_event *event, int flags)
{
	struct pmuk_etm_cpu *cpu = pmuk_etm_here(event);

	if (cpu->event)
		return -EBUSY;
	cpu->event = event;
	event->hw.state = PERF_HES_STOPPED;
	if (flags & PERF_EF_START)
		pmuk_etm_start(event, PERF_EF_RELOAD);
	return 0;
}

static inline void pmuk_etm_del(struct perf_event *event, int flags)
{
	pmuk_etm_stop(event, PERF_EF_UPDATE);
	pmuk_etm_here(event)->event = NULL;
}

static inline void pmuk_etm_read(struct perf_event *event) { }

static inline int pmuk_etm_event_init(struct perf_event *event)
{
	return event->attr.type == event->pmu->type ? 0 : -ENOENT;
}

/* ---- what a test does ---- */

/* A word of trace has the session it belongs to, and the CPU that has written it. */
static inline u64 pmuk_etm_word(int session, int cpu)
{
	return (u64)session << 32 | cpu;
}

/* Lets this CPU's tracer write @n words. Returns the number of written words, which is @n or 0. */
static inline unsigned int pmuk_etm_trace(struct pmuk_etm *etm, unsigned int n)
{
	struct pmuk_etm_area *area;
	unsigned int i;

	guard(raw_spinlock_irqsave)(&etm->lock);
	area = this_cpu_ptr(etm->cpus)->area;
	if (!area || etm->active->nr + n > PMUK_ETM_WORDS)
		return 0;
	for (i = 0; i < n; i++)
		etm->active->words[etm->active->nr++] = pmuk_etm_word(area->session,
								      smp_processor_id());
	return n;
}

/* Returns how many CPUs write to the sink. */
static inline unsigned int pmuk_etm_tracers(struct pmuk_etm *etm)
{
	guard(raw_spinlock_irqsave)(&etm->lock);
	return etm->tracers;
}

static inline void pmuk_etm_put(void *data)
{
	struct pmuk_etm *etm = data;

	perf_pmu_unregister(&etm->pmu);
	free_percpu(etm->cpus);
}

/* Registers the PMU for the time of a test case. */
static inline struct pmuk_etm *pmuk_etm_get(struct kunit *test)
{
	struct pmuk_etm *etm = pmuk_test_zalloc(test, sizeof(*etm));

	etm->pmu = (struct pmu){
		.module		= THIS_MODULE,
		.capabilities	= PERF_PMU_CAP_EXCLUSIVE | PERF_PMU_CAP_ITRACE,
		.task_ctx_nr	= perf_sw_context,
		.event_init	= pmuk_etm_event_init,
		.add		= pmuk_etm_add,
		.del		= pmuk_etm_del,
		.start		= pmuk_etm_start,
		.stop		= pmuk_etm_stop,
		.read		= pmuk_etm_read,
		.setup_aux	= pmuk_etm_setup_aux,
		.free_aux	= pmuk_etm_free_aux,
	};
	mutex_init(&etm->bufs_lock);
	INIT_LIST_HEAD(&etm->bufs);
	raw_spin_lock_init(&etm->lock);
	etm->session = -1;
	etm->cpus = alloc_percpu(struct pmuk_etm_cpu);
	KUNIT_ASSERT_TRUE(test, !!etm->cpus);
	KUNIT_ASSERT_EQ(test, perf_pmu_register(&etm->pmu, "pmuk_etm", -1), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_etm_put, etm), 0);
	return etm;
}

#endif /* _PMUK_ETM_H */
