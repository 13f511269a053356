// SPDX-License-Identifier: GPL-2.0
/*
 * PMUs that write AUX areas. pmuk_event_buffer() says which buffer an event writes. Drivers of
 * trace hardware know perf's AUX output calls only. perf core hands these calls on to
 * pmuk_perf_ops, which write the area as if it were a perf event's own. On stock kernels such a
 * driver cannot write an AUX area of pmuk.
 *
 * A driver's part of the area is set up when its counter is created, and freed when the counter's
 * event has gone.
 */
#define pr_fmt(fmt) "pmuk: " fmt

#include <linux/bits.h>
#include <linux/cleanup.h>
#include <linux/compiler.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "buffer.h"
#include "counter.h"

/* Returns the buffer of @cpu, which is the context's or the counter's own; or NULL. */
static struct pmuk_buffer *pmuk_counter_buffer(const struct pmuk_counter *c, int cpu)
{
	struct pmuk_buffer *b = c->buffers ? READ_ONCE(c->buffers[cpu]) : c->attr.buffer;

	return b && b->cpu == cpu ? b : NULL;
}

/**
 * pmuk_event_buffer() - the buffer that an event's data go to on this CPU
 * @event: perf's event, as a PMU's driver has it
 *
 * Drivers that write AUX areas by pmuk_aux_output_begin() call this; perf core need not be changed.
 * An event that a task has inherited has the buffer of its parent.
 *
 * Context: Any, NMI too; on the CPU where the event is, which its driver is called on.
 * Return: The buffer, as long as the event is on the PMU. NULL if the event is not pmuk's, or has
 * no buffer on this CPU, or is to write nothing now: it is being created, or its context is
 * stopped, which does not stop the events of a task with its children. So call this for each part.
 */
struct pmuk_buffer *pmuk_event_buffer(struct perf_event *event)
{
	struct pmuk_counter *c;

	if (!perf_local_is_handled_by(event, pmuk_overflow))
		return NULL;
	c = event->overflow_handler_context;
	if (READ_ONCE(c->away) || READ_ONCE(c->quiet))
		return NULL;
	return pmuk_counter_buffer(c, raw_smp_processor_id());
}
EXPORT_SYMBOL_GPL(pmuk_event_buffer);

/* ---- perf's AUX output, for a pmuk counter's event ---- */

static struct pmuk_aux *pmuk_counter_aux(const struct pmuk_counter *c, int cpu)
{
	struct pmuk_buffer *b = pmuk_counter_buffer(c, cpu);

	return b ? b->aux : NULL;
}

static struct pmuk_aux *pmuk_event_aux(struct perf_event *event)
{
	return pmuk_counter_aux(event->overflow_handler_context, raw_smp_processor_id());
}

/* Writes a record: a header and 8 bytes, @what. Returns false if there is no room for it. */
static bool pmuk_aux_note(struct pmuk_aux *aux, u32 type, const void *what)
{
	struct perf_event_header *rec;

	rec = pmuk_output_begin(aux->b, type, sizeof(*rec) + sizeof(u64));
	if (!rec)
		return false;
	memcpy(rec + 1, what, sizeof(u64));
	pmuk_output_end(aux->b, rec);
	return true;
}

/*
 * A PERF_RECORD_ITRACE_START says whose instructions follow, as perf core says with each event's
 * first part. The record is written again after other events, such as those of a task's children,
 * have been in the same area. If there is no room for the record, the next part writes it.
 */
static void pmuk_aux_report_itrace(struct pmuk_aux *aux, struct perf_event *event)
{
	const u32 ids[] = { task_tgid_nr(current), task_pid_nr(current) };

	if (!perf_local_pmu_can(event, PERF_PMU_CAP_ITRACE) || aux->reported_id == event->id)
		return;
	if (pmuk_aux_note(aux, PERF_RECORD_ITRACE_START, ids))
		aux->reported_id = event->id;
}

static void pmuk_aux_report_hw_id(struct pmuk_aux *aux)
{
	if (aux->hw_id_due && pmuk_aux_note(aux, PERF_RECORD_AUX_OUTPUT_HW_ID, &aux->hw_id))
		aux->hw_id_due = false;
}

/*
 * Hardware that mixes the trace of several CPUs in one stream marks each CPU's part with a hardware
 * id. A driver reports that id once, so the area keeps it until a record has it.
 */
static void pmuk_perf_hw_id(struct perf_event *event, u64 hw_id)
{
	struct pmuk_aux *aux = pmuk_event_aux(event);

	if (!aux)
		return;
	aux->hw_id = hw_id;
	aux->has_hw_id = true;
	aux->hw_id_due = true;
	pmuk_aux_report_hw_id(aux);
}

/*
 * Write the records that a reader needs before it can decode a part. If the ring has got other data
 * pages, its records are gone: write these records again.
 */
static void pmuk_aux_introduce(struct pmuk_aux *aux, struct perf_event *event)
{
	u32 swaps = READ_ONCE(aux->area.swaps);

	if (unlikely(aux->swaps_seen != swaps)) {
		aux->swaps_seen = swaps;
		aux->reported_id = 0;	/* no event has this id */
		aux->hw_id_due = aux->has_hw_id;
	}
	pmuk_aux_report_itrace(aux, event);
	pmuk_aux_report_hw_id(aux);
}

/* perf's drivers take a full area for an empty one, so one byte is always left over. */
#define PMUK_PERF_LEAST	2

static void pmuk_perf_fill(struct perf_output_handle *handle, const struct pmuk_aux_handle *h)
{
	handle->size = h->area->overwrite ? 0 : h->size - 1;
	handle->head = h->head;
	handle->wakeup = h->area->wake_at;
}

static void *pmuk_perf_begin(struct perf_output_handle *handle, struct perf_event *event)
{
	const struct pmuk_counter *c = event->overflow_handler_context;
	struct pmuk_aux *aux = pmuk_event_aux(event);
	struct pmuk_aux_handle h;
	void *private;

	handle->event = NULL;
	handle->size = 0;	/* s390's driver takes any other size for room */
	if (!aux)
		return NULL;
	if (READ_ONCE(c->away))	/* a child that was forked while the context is stopped */
		return ERR_PTR(-ENODEV);
	private = pmuk_area_begin(&aux->area, &h);
	if (!private) {
		pmuk_area_lose(&aux->area, 0);	/* how much is lost is not known */
		return ERR_PTR(-ENOSPC);
	}
	handle->event = event;
	handle->aux_flags = 0;
	pmuk_perf_fill(handle, &h);
	pmuk_aux_introduce(aux, event);
	barrier();	/* an NMI that sees ->tracer sees @handle, too */
	WRITE_ONCE(aux->tracer, event);
	return private;
}

/* Returns the area that the PMU's driver has open on this CPU, or NULL. */
static struct pmuk_aux *pmuk_perf_handle(const struct perf_output_handle *handle,
					 struct pmuk_aux_handle *h)
{
	struct pmuk_aux *aux = pmuk_event_aux(handle->event);

	if (!aux)
		return NULL;
	*h = (struct pmuk_aux_handle){ .area = &aux->area, .head = aux->area.head,
				       .size = handle->size };
	pmuk_aux_output_flag(h, handle->aux_flags);
	return aux;
}

/*
 * In overwrite mode a driver says at which offset it was in the end, in @handle->head, and how much
 * it has written, in @size. That may be more than once around.
 */
static u64 pmuk_perf_size(const struct perf_output_handle *handle, struct pmuk_aux_handle *h,
			  u64 size)
{
	u64 mask = h->area->size - 1, written;

	if (!h->area->overwrite)
		return size;
	written = (handle->head - h->head) & mask;
	if (size > written)
		written += round_up(size - written, mask + 1);
	h->size = written;
	return written;
}

static void pmuk_perf_end(struct perf_output_handle *handle, unsigned long size)
{
	struct pmuk_aux_handle h;
	struct pmuk_aux *aux = pmuk_perf_handle(handle, &h);

	if (aux) {
		WRITE_ONCE(aux->tracer, NULL);
		pmuk_aux_introduce(aux, handle->event);
		pmuk_aux_output_end(&h, pmuk_perf_size(handle, &h, size));
	}
	handle->event = NULL;
}

static int pmuk_perf_skip(struct perf_output_handle *handle, unsigned long size)
{
	struct pmuk_aux_handle h;
	int ret;

	if (!pmuk_perf_handle(handle, &h))
		return -EINVAL;
	ret = pmuk_aux_output_skip(&h, size);
	if (ret)
		return ret;
	h.size++;	/* as pmuk_perf_fill() takes it off */
	pmuk_perf_fill(handle, &h);
	return 0;
}

static void *pmuk_perf_get(struct perf_output_handle *handle)
{
	struct pmuk_aux *aux = pmuk_event_aux(handle->event);

	return aux ? aux->area.private : NULL;
}

/* Copies bytes from the offset @from to the offset @to; if these are equal, all bytes. */
static long pmuk_perf_copy(struct perf_output_handle *handle, struct perf_output_handle *out,
			   unsigned long from, unsigned long to)
{
	const struct pmuk_aux *aux = pmuk_event_aux(handle->event);
	unsigned long size;

	if (!aux)
		return -EINVAL;
	size = ((to - from - 1) & (aux->area.size - 1)) + 1;
	if (size > out->size)
		return -EFAULT;
	memcpy(out->addr, aux->area.data + (from & (aux->area.size - 1)), size);
	out->addr += size;
	out->size -= size;
	return size;
}

static const struct perf_event_aux_ops pmuk_perf_ops = {
	.begin	= pmuk_perf_begin,
	.end	= pmuk_perf_end,
	.skip	= pmuk_perf_skip,
	.get	= pmuk_perf_get,
	.copy	= pmuk_perf_copy,
	.hw_id	= pmuk_perf_hw_id,
};

/* ---- a driver's part of the areas of its counter ---- */

/* A PMU without scatter-gather needs an area that overwrites in one piece, as in perf core. */
static bool pmuk_aux_fits(const struct pmuk_aux *aux, const struct perf_event *event)
{
	struct page *first = aux->pages.pages[0];

	if (!perf_local_pmu_can(event, PERF_PMU_CAP_AUX_NO_SG) || !aux->area.overwrite)
		return true;
	return aux->pages.nr == 1 ||
	       (PagePrivate(first) && BIT(page_private(first)) == aux->pages.nr);
}

/* While the driver has an area open that overwrites, only the driver can copy a slice of it. */
static bool pmuk_aux_has_slices(const struct pmuk_aux *aux, const struct pmuk_counter *c)
{
	if (!(c->attr.sample_type & PERF_SAMPLE_AUX) || !aux->area.overwrite ||
	    perf_local_has_snapshot_aux(c->event))
		return true;
	pr_notice_ratelimited("%s cannot copy what it traces into records\n",
			      perf_local_pmu_name(c->event));
	return false;
}

static int pmuk_aux_attach_one(struct pmuk_counter *c, struct pmuk_aux *aux)
{
	void *private;

	guard(mutex)(&aux->b->lock);
	if (aux->ops || aux->writer)
		return -EBUSY;
	if (!pmuk_aux_fits(aux, c->event))
		return -EINVAL;
	if (!pmuk_aux_has_slices(aux, c))
		return -EOPNOTSUPP;
	if (!aux->addresses && pmuk_aux_list_pages(aux))
		return -ENOMEM;
	private = perf_local_setup_aux(c->event, aux->b->cpu, aux->session, aux->addresses,
				       aux->pages.nr, aux->area.overwrite);
	if (IS_ERR(private))
		return PTR_ERR(private);
	aux->writer = c;
	aux->area.private = private;
	WRITE_ONCE(aux->area.least, max_t(u64, aux->least, PMUK_PERF_LEAST));
	return 0;
}

static void pmuk_aux_detach_one(struct pmuk_counter *c, struct pmuk_aux *aux)
{
	if (!aux)
		return;
	guard(mutex)(&aux->b->lock);
	if (aux->writer != c)
		return;
	if (c->free_aux)
		c->free_aux(aux->area.private);
	aux->area.private = aux->pages.map;
	WRITE_ONCE(aux->area.least, aux->least);
	aux->has_hw_id = false;
	aux->hw_id_due = false;
	aux->writer = NULL;
}

static bool pmuk_counter_has_aux(const struct pmuk_counter *c)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		if (pmuk_counter_aux(c, cpu))
			return true;
	}
	return false;
}

/* A task's counter writes on any CPU. */
static int pmuk_aux_attach_all(struct pmuk_counter *c)
{
	int cpu, own = perf_local_cpu(c->event), ret = 0;

	for_each_possible_cpu(cpu) {
		struct pmuk_aux *aux = pmuk_counter_aux(c, cpu);

		if (aux && (own == -1 || own == cpu))
			ret = pmuk_aux_attach_one(c, aux);
		if (ret)
			break;
	}
	return ret;
}

/*
 * A counter whose PMU writes AUX areas has its buffers' areas to itself from now on. If this fails,
 * pmuk_aux_detach() undoes it all the same. Unregistering the PMU waits for the mutex.
 */
int pmuk_aux_attach(struct pmuk_counter *c)
{
	if (!pmuk_counter_has_aux(c))
		return 0;
	guard(mutex)(perf_local_pmu_lock(c->event));
	if (perf_local_is_pmu_gone(c->event))
		return -ENODEV;
	if (!perf_event_set_aux_ops(c->event, &pmuk_perf_ops)) {
		pr_notice_ratelimited("%s writes AUX areas, and this kernel's perf core has none for kernel counters\n",
				      perf_local_pmu_name(c->event));
		return -EOPNOTSUPP;
	}
	c->aux_owner = perf_local_get_driver(c->event, &c->free_aux);
	c->writes_aux = true;
	return pmuk_aux_attach_all(c);
}

/* The counter's event has gone: free the driver's parts of the areas. */
void pmuk_aux_detach(struct pmuk_counter *c)
{
	int cpu;

	if (!c->writes_aux)
		return;
	for_each_possible_cpu(cpu)
		pmuk_aux_detach_one(c, pmuk_counter_aux(c, cpu));
	module_put(c->aux_owner);
	c->writes_aux = false;
}
