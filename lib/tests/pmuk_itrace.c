// SPDX-License-Identifier: GPL-2.0
/*
 * The PMU traces, to test what drivers of such hardware rely on. Its driver knows perf's interface,
 * and nothing of pmuk: setup_aux and free_aux, the calls for AUX output, one event at a time on
 * each CPU. A test plays the hardware, and lets branches happen, see pmuk_packets.h.
 */
#define pr_fmt(fmt) "pmuk_itrace: " fmt

#include <linux/atomic.h>
#include <linux/cleanup.h>
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "pmuk_itrace.h"
#include "pmuk_packets.h"

/* setup_aux returns this for an area. */
struct itrace_area {
	struct pmuk_itrace *it;
	void **pages;			/* belongs to perf */
	u64 size;
	bool overwrite;
};

/* Holds the state of one CPU's tracing hardware. */
struct itrace_cpu {
	struct perf_event *event;
	struct perf_output_handle handle;
	struct pmuk_packets_out out;
	u64 written;			/* bytes in the open part */
	u64 traced;			/* bytes since the event came to this CPU */
	u64 fifo[SZ_4K / sizeof(u64)];	/* bytes not yet in memory */
};

struct pmuk_itrace {
	struct pmu pmu;
	struct itrace_cpu __percpu *cpus;
	atomic_t areas;			/* set up and not freed */
	atomic_t fail;			/* setups until one fails; 0: none does */
	atomic_t misled;		/* no room, but a size in the handle; or a copy was asked
					 * for from no area, or from one that does not overwrite
					 */
	atomic_t starts;		/* starts of events by perf core */
	struct pmuk_itrace_hooks hooks;	/* const while there are events */
};

static struct pmuk_itrace *to_itrace(struct pmu *pmu)
{
	return container_of(pmu, struct pmuk_itrace, pmu);
}

static struct itrace_cpu *itrace_this_cpu(struct perf_event *event)
{
	return this_cpu_ptr(to_itrace(event->pmu)->cpus);
}

/* ---- areas ---- */

static void *itrace_setup_aux(struct perf_event *event, void **pages, int nr_pages, bool overwrite)
{
	struct pmuk_itrace *it = to_itrace(event->pmu);
	struct itrace_area *area;

	if (atomic_read(&it->fail) && atomic_dec_and_test(&it->fail))
		return NULL;
	area = kzalloc_node(sizeof(*area), GFP_KERNEL, NUMA_NO_NODE);
	if (!area)
		return NULL;
	area->it = it;
	area->pages = pages;
	area->size = (u64)nr_pages * PAGE_SIZE;
	area->overwrite = overwrite;
	atomic_inc(&it->areas);
	return area;
}

static void itrace_free_aux(void *aux)
{
	struct itrace_area *area = aux;

	atomic_dec(&area->it->areas);
	kfree(area);
}

static void itrace_store(const struct itrace_area *area, u64 at, const void *from, u64 size)
{
	u64 offset, n;

	for (; size; size -= n, at += n, from += n) {
		at &= area->size - 1;
		offset = at % PAGE_SIZE;
		n = min(size, PAGE_SIZE - offset);
		memcpy(area->pages[at / PAGE_SIZE] + offset, from, n);
	}
}

/* ---- a part of an area, from when it is opened until an interrupt, or the end ---- */

static u64 itrace_room(const struct itrace_cpu *cpu, const struct itrace_area *area)
{
	u64 size = area->overwrite ? U64_MAX : round_down(cpu->handle.size, sizeof(u64));

	return size - cpu->written;
}

static bool itrace_align(struct itrace_cpu *cpu)
{
	u64 align = BIT_ULL(cpu->event->attr.config);
	u64 pad = -(u64)cpu->handle.head & (align - 1);

	return !pad || !perf_aux_output_skip(&cpu->handle, pad);
}

/*
 * A driver may take a size of 0 for a lack of room, as arch/s390/kernel/perf_cpum_sf.c does. So
 * without room the handle must not have a size.
 */
static const struct itrace_area *itrace_begin(struct itrace_cpu *cpu)
{
	const struct itrace_area *area = perf_aux_output_begin(&cpu->handle, cpu->event);

	if (!area && cpu->handle.size)
		atomic_inc(&to_itrace(cpu->event->pmu)->misled);
	return area;
}

static void itrace_open(struct itrace_cpu *cpu)
{
	struct perf_event *event = cpu->event;
	const struct itrace_area *area = itrace_begin(cpu);

	event->hw.state = PERF_HES_STOPPED;
	cpu->written = 0;
	if (!area)
		return;
	if (area->it->hooks.opening)
		area->it->hooks.opening(area->it->hooks.data);
	if (!area->overwrite && !itrace_align(cpu)) {
		perf_aux_output_flag(&cpu->handle, PERF_AUX_FLAG_TRUNCATED);
		perf_aux_output_end(&cpu->handle, 0);
		return;
	}
	event->hw.state = 0;
}

static void itrace_close(struct itrace_cpu *cpu)
{
	const struct itrace_area *area = perf_get_aux(&cpu->handle);

	if (area->overwrite)
		cpu->handle.head = (cpu->handle.head + cpu->written) & (area->size - 1);
	perf_aux_output_end(&cpu->handle, cpu->written);
	cpu->event->hw.state = PERF_HES_STOPPED;
}

/* ---- perf's calls ---- */

static void itrace_start(struct perf_event *event, int flags)
{
	struct itrace_cpu *cpu = itrace_this_cpu(event);

	atomic_inc(&to_itrace(event->pmu)->starts);
	cpu->out.left = 0;
	itrace_open(cpu);
	perf_report_aux_output_id(event, PMUK_ITRACE_HW_ID + smp_processor_id());
}

static void itrace_stop(struct perf_event *event, int flags)
{
	if (!(event->hw.state & PERF_HES_STOPPED))
		itrace_close(itrace_this_cpu(event));
}

/*
 * Drivers refuse an event whose area has no room, and an event without an area. perf core tries the
 * latter again and again, by a timer that may outlive this PMU. So if the PMU has no area at all,
 * this adds the event, which then does not trace.
 */
static int itrace_add(struct perf_event *event, int flags)
{
	struct pmuk_itrace *it = to_itrace(event->pmu);
	struct itrace_cpu *cpu = itrace_this_cpu(event);

	if (cpu->event)
		return -EBUSY;
	cpu->event = event;
	cpu->traced = 0;
	event->hw.state = PERF_HES_STOPPED;
	if (!(flags & PERF_EF_START))
		return 0;
	itrace_start(event, PERF_EF_RELOAD);
	if (!(event->hw.state & PERF_HES_STOPPED) || !atomic_read(&it->areas))
		return 0;
	cpu->event = NULL;
	return -EINVAL;
}

static void itrace_del(struct perf_event *event, int flags)
{
	itrace_stop(event, PERF_EF_UPDATE);
	itrace_this_cpu(event)->event = NULL;
}

static void itrace_read(struct perf_event *event) { }

/* Copies the newest bytes, of earlier parts, too. */
static long itrace_snapshot_aux(struct perf_event *event, struct perf_output_handle *out,
				unsigned long size)
{
	struct pmuk_itrace *it = to_itrace(event->pmu);
	struct itrace_cpu *cpu = itrace_this_cpu(event);
	const struct itrace_area *area = perf_get_aux(&cpu->handle);
	u64 to = cpu->handle.head + cpu->written;

	if (it->hooks.copying)
		it->hooks.copying(it->hooks.data);
	if (!area || !area->overwrite)
		atomic_inc(&it->misled);
	if (!area)
		return 0;
	size = min_t(u64, size, cpu->traced);
	return size ? perf_output_copy_aux(&cpu->handle, out, to - size, to) : 0;
}

static int itrace_event_init(struct perf_event *event)
{
	u64 align = event->attr.config;

	if (event->attr.type != event->pmu->type)
		return -ENOENT;
	return align < PMUK_ITRACE_ALIGN_MIN || align > PMUK_ITRACE_ALIGN_MAX ? -EINVAL : 0;
}

/* ---- what happens to the CPU ---- */

/* Writes as many packets as there is room for. Returns how many branches are left. */
static u64 itrace_write(struct itrace_cpu *cpu, const struct itrace_area *area, u64 left)
{
	u64 some, size;

	do {
		some = min(left, ARRAY_SIZE(cpu->fifo) / 2);
		left -= some;
		size = pmuk_packets_write(&cpu->out, cpu->fifo,
					  min(sizeof(cpu->fifo), itrace_room(cpu, area)), &some);
		itrace_store(area, cpu->handle.head + cpu->written, cpu->fifo, size);
		cpu->written += size;
		cpu->traced += size;
	} while (left && !some);
	cpu->out.number += left;
	return left + some;
}

/*
 * Writes packets, and ends parts as an interrupt of real hardware would. Tracing stops when there
 * is no room.
 */
static u64 itrace_branch(struct itrace_cpu *cpu, u64 branches)
{
	u64 left;

	if (cpu->event->hw.state & PERF_HES_STOPPED) {
		cpu->out.number += branches;
		return 0;
	}
	left = itrace_write(cpu, perf_get_aux(&cpu->handle), branches);
	if (left) {
		perf_aux_output_flag(&cpu->handle, PERF_AUX_FLAG_TRUNCATED);
		cpu->out.left = 0;
	}
	itrace_close(cpu);
	if (!left)
		itrace_open(cpu);
	return branches - left;
}

/**
 * pmuk_itrace_branch() - let branches happen on this CPU
 * @it: the PMU
 * @branches: number of branches
 *
 * Context: Any, NMI too; does not nest.
 * Return: The number of branches that were written; 0 if no event of @it traces on this CPU.
 */
u64 pmuk_itrace_branch(struct pmuk_itrace *it, u64 branches)
{
	struct itrace_cpu *cpu;

	guard(irqsave)();
	cpu = this_cpu_ptr(it->cpus);
	return cpu->event ? itrace_branch(cpu, branches) : 0;
}
EXPORT_SYMBOL_GPL(pmuk_itrace_branch);

/**
 * pmuk_itrace_branch_inside() - let branches happen on this CPU inside of a part
 * @it: the PMU
 * @branches: number of branches
 *
 * The part that is being written goes on.
 *
 * Context: Any, NMI too; does not nest.
 * Return: The number of branches that were written; 0 if no event of @it traces on this CPU.
 */
u64 pmuk_itrace_branch_inside(struct pmuk_itrace *it, u64 branches)
{
	struct itrace_cpu *cpu;

	guard(irqsave)();
	cpu = this_cpu_ptr(it->cpus);
	if (!cpu->event || (cpu->event->hw.state & PERF_HES_STOPPED))
		return 0;
	return branches - itrace_write(cpu, perf_get_aux(&cpu->handle), branches);
}
EXPORT_SYMBOL_GPL(pmuk_itrace_branch_inside);

/**
 * pmuk_itrace_parts() - end a part and begin the next one, over and over
 * @it: the PMU
 * @n: number of parts
 * @size: bytes of each part. Their content is not written
 *
 * Context: Any, NMI too; does not nest.
 * Return: 0; -ENOSPC if there was no room, or no event of @it traces on this CPU.
 */
int pmuk_itrace_parts(struct pmuk_itrace *it, unsigned int n, u64 size)
{
	struct itrace_cpu *cpu;

	guard(irqsave)();
	cpu = this_cpu_ptr(it->cpus);
	if (!cpu->event || (cpu->event->hw.state & PERF_HES_STOPPED))
		return -ENOSPC;
	do {
		perf_aux_output_end(&cpu->handle, size);
		if (unlikely(!itrace_begin(cpu))) {
			cpu->event->hw.state = PERF_HES_STOPPED;
			return -ENOSPC;
		}
	} while (--n);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_itrace_parts);

/**
 * pmuk_itrace_areas() - count the areas that are set up
 * @it: the PMU
 *
 * Context: Any.
 * Return: The number of areas that were set up and not freed yet.
 */
int pmuk_itrace_areas(const struct pmuk_itrace *it)
{
	return atomic_read(&it->areas);
}
EXPORT_SYMBOL_GPL(pmuk_itrace_areas);

/**
 * pmuk_itrace_misled() - count what a driver may take amiss
 * @it: the PMU
 *
 * Context: Any.
 * Return: The number of refusals that left a size in the PMU's handle, and of calls of
 * pmu::snapshot_aux without an area that overwrites.
 */
unsigned int pmuk_itrace_misled(const struct pmuk_itrace *it)
{
	return atomic_read(&it->misled);
}
EXPORT_SYMBOL_GPL(pmuk_itrace_misled);

/**
 * pmuk_itrace_starts() - count the starts of the PMU's events by perf core
 * @it: the PMU
 *
 * Context: Any.
 * Return: The number of calls of pmu::start, and of pmu::add with PERF_EF_START.
 */
unsigned int pmuk_itrace_starts(const struct pmuk_itrace *it)
{
	return atomic_read(&it->starts);
}
EXPORT_SYMBOL_GPL(pmuk_itrace_starts);

/**
 * pmuk_itrace_fail() - let the setup of an area fail
 * @it: the PMU
 * @nr: number of the failing setup, counted from now on; 0: none fails
 *
 * Context: Any.
 */
void pmuk_itrace_fail(struct pmuk_itrace *it, int nr)
{
	atomic_set(&it->fail, nr);
}
EXPORT_SYMBOL_GPL(pmuk_itrace_fail);

/**
 * pmuk_itrace_let_copy() - let the driver copy what the PMU has traced into samples
 * @it: the PMU, without events
 * @hooks: copied
 *
 * Context: Any.
 */
void pmuk_itrace_let_copy(struct pmuk_itrace *it, const struct pmuk_itrace_hooks *hooks)
{
	it->hooks = *hooks;
	it->pmu.snapshot_aux = itrace_snapshot_aux;
}
EXPORT_SYMBOL_GPL(pmuk_itrace_let_copy);

/**
 * pmuk_itrace_type() - get perf_event_attr::type of the PMU's events
 * @it: the PMU
 *
 * Context: Any.
 * Return: The type.
 */
u32 pmuk_itrace_type(const struct pmuk_itrace *it)
{
	return it->pmu.type;
}
EXPORT_SYMBOL_GPL(pmuk_itrace_type);

/**
 * pmuk_itrace_create() - make a PMU that traces and register it with perf
 * @name: in /sys/bus/event_source/devices; must outlive the PMU
 * @capabilities: PERF_PMU_CAP_* that the PMU has besides its own
 *
 * Context: May sleep.
 * Return: The PMU; an ERR_PTR() of -ENOMEM, or of the error of perf_pmu_register().
 */
struct pmuk_itrace *pmuk_itrace_create(const char *name, int capabilities)
{
	struct pmuk_itrace *it = kzalloc_node(sizeof(*it), GFP_KERNEL, NUMA_NO_NODE);
	int ret = -ENOMEM;

	if (!it)
		return ERR_PTR(-ENOMEM);
	it->pmu = (struct pmu) {
		.module		= THIS_MODULE,
		.capabilities	= PERF_PMU_CAP_EXCLUSIVE | PERF_PMU_CAP_ITRACE | capabilities,
		.task_ctx_nr	= perf_sw_context,
		.event_init	= itrace_event_init,
		.add		= itrace_add,
		.del		= itrace_del,
		.start		= itrace_start,
		.stop		= itrace_stop,
		.read		= itrace_read,
		.setup_aux	= itrace_setup_aux,
		.free_aux	= itrace_free_aux,
	};
	it->cpus = alloc_percpu(struct itrace_cpu);
	if (it->cpus)
		ret = perf_pmu_register(&it->pmu, name, -1);
	if (!ret)
		return it;
	free_percpu(it->cpus);
	kfree(it);
	return ERR_PTR(ret);
}
EXPORT_SYMBOL_GPL(pmuk_itrace_create);

/**
 * pmuk_itrace_destroy() - unregister a PMU that has no events any more
 * @it: the PMU
 *
 * Context: May sleep.
 */
void pmuk_itrace_destroy(struct pmuk_itrace *it)
{
	perf_pmu_unregister(&it->pmu);
	free_percpu(it->cpus);
	kfree(it);
}
EXPORT_SYMBOL_GPL(pmuk_itrace_destroy);

MODULE_DESCRIPTION("A PMU that traces, for tests");
MODULE_LICENSE("GPL");
