// SPDX-License-Identifier: GPL-2.0
/*
 * A buffer's life, and its wakeups. Records are written and read in ring.c; user space gets at them
 * through mmap.c.
 */
#define pr_fmt(fmt) "pmuk: " fmt

#include <kunit/visibility.h>
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/topology.h>

#include "buffer.h"

static_assert(offsetof(struct pmuk_buffer, ring) == 0);

static atomic_t pmuk_buffers = ATOMIC_INIT(0);

/*
 * Tests check with this number of buffers that they leave none behind. A buffer is included as long
 * as its creator, a counter, a map or the writer of its AUX area refers to it.
 */
int pmuk_nr_buffers(void)
{
	return atomic_read(&pmuk_buffers);
}
EXPORT_SYMBOL_IF_KUNIT(pmuk_nr_buffers);

/* Wake the consumer. The writer queues this irq_work, as it may be in NMI, where it cannot wake. */
static void pmuk_buffer_wake_up(struct irq_work *work)
{
	struct pmuk_buffer *b = container_of(work, struct pmuk_buffer, wake_work);

	if (b->completion)
		complete(b->completion);
	if (b->notify)
		b->notify(b);
	atomic_set(&b->unseen, 1);
	wake_up_interruptible_all(b->waitq);
}

static void pmuk_buffer_wake(struct pmuk_ring *ring)
{
	irq_work_queue(&container_of(ring, struct pmuk_buffer, ring)->wake_work);
}

static void pmuk_buffer_wake_here(void *data)
{
	pmuk_buffer_wake(data);
}

/* The ring wakes its consumer for the first of many lost records. Wake it for the others, too. */
void pmuk_buffer_report_lost(struct pmuk_buffer *b)
{
	lockdep_assert_cpus_held();
	if (smp_call_function_single(b->cpu, pmuk_buffer_wake_here, &b->ring, true))
		pmuk_buffer_wake(&b->ring);	/* the CPU is offline */
	irq_work_sync(&b->wake_work);
}

const char *pmuk_buffer_fault(const struct pmuk_buffer_attr *attr, int cpu)
{
	if (attr->flags & ~(PMUK_BUFFER_USER_TAIL | PMUK_BUFFER_ACCOUNT))
		return "unknown flags";
	if (attr->mode > PMUK_BUFFER_STOP)
		return "unknown mode";
	if (!pmuk_pages_nr_ok(attr->nr_pages))
		return "nr_pages is neither 0 nor a power of two";
	if (cpu == -1 && (attr->nr_pages || (attr->flags & PMUK_BUFFER_USER_TAIL)))
		return "records need a CPU that writes them";
	if (cpu != -1 && (cpu < 0 || cpu >= nr_cpu_ids || !cpu_possible(cpu)))
		return "no such CPU";
	if (attr->watermark && attr->wakeup_events)
		return "both watermark and wakeup_events";
	if (attr->mode == PMUK_BUFFER_OVERWRITE && (attr->flags & PMUK_BUFFER_USER_TAIL))
		return "user space cannot give back records that are overwritten";
	return pmuk_aux_fault(attr, cpu);
}

/* At most half the buffer: a consumer that is woken when the buffer is full is woken too late. */
u32 pmuk_buffer_watermark(const struct pmuk_buffer *b, u64 size)
{
	return min_t(u64, b->watermark ?: PAGE_SIZE, size / 2);
}

/*
 * Clears what user space, or an earlier counter, may have left in the fields about a counter. The
 * present one's count and times are its own to write.
 */
void pmuk_buffer_clean_header(struct pmuk_buffer *b) __must_hold(&b->lock)
{
	struct perf_event_mmap_page *page = page_address(b->control);
	size_t from = offsetof(struct perf_event_mmap_page, capabilities);

	memset((u8 *)page + from, 0, offsetof(struct perf_event_mmap_page, __reserved) - from);
	page->cap_bit0_is_deprecated = 1;
	page->size = offsetof(struct perf_event_mmap_page, __reserved);
	page->version = 0;
	page->compat_version = 0;
	WRITE_ONCE(page->index, 0);
	if (b->self)
		return;
	page->lock = 0;
	page->offset = 0;
	page->time_enabled = 0;
	page->time_running = 0;
}

/*
 * Writes what the control page says about the data, and clears what user space may have left there
 * while the page was mapped.
 */
void pmuk_buffer_describe(struct pmuk_buffer *b) __must_hold(&b->lock)
{
	struct perf_event_mmap_page *page = page_address(b->control);

	memset(page->__reserved, 0, sizeof(page->__reserved));
	memset(page + 1, 0, PAGE_SIZE - sizeof(*page));
	if (!b->aux)
		memset_startat(page, 0, aux_head);
	pmuk_buffer_clean_header(b);
	page->data_offset = PAGE_SIZE;
	page->data_size = (u64)b->data.nr * PAGE_SIZE;
}

static void pmuk_buffer_free(struct kref *ref)
{
	struct pmuk_buffer *b = container_of(ref, struct pmuk_buffer, ref);

	pmuk_aux_free(b);
	scoped_guard(mutex, &b->lock)
		pmuk_pages_free(&b->data);
	if (b->control)
		__free_page(b->control);
	kfree(b);
	atomic_dec(&pmuk_buffers);
	module_put(THIS_MODULE);
}

static int pmuk_buffer_alloc_ring(struct pmuk_buffer *b, const struct pmuk_buffer_attr *attr,
				  gfp_t gfp, int node)
{
	u64 size = (u64)attr->nr_pages * PAGE_SIZE;
	int ret;

	b->control = alloc_pages_node(node, gfp | __GFP_ZERO, 0);
	if (!b->control)
		return -ENOMEM;
	guard(mutex)(&b->lock);
	ret = pmuk_pages_alloc(&b->data, attr->nr_pages, gfp, node, 0, false);
	if (ret)
		return ret;
	pmuk_buffer_describe(b);
	b->ring.page = page_address(b->control);
	b->ring.mode = attr->mode;
	b->ring.wakeup_events = attr->wakeup_events;
	b->ring.wake = pmuk_buffer_wake;
	pmuk_ring_init(&b->ring, b->user_tail);
	pmuk_ring_reset(&b->ring, b->data.map, size, pmuk_buffer_watermark(b, size));
	return 0;
}

static struct pmuk_buffer *pmuk_buffer_alloc(const struct pmuk_buffer_attr *attr, int cpu)
{
	gfp_t gfp = attr->flags & PMUK_BUFFER_ACCOUNT ? GFP_KERNEL_ACCOUNT : GFP_KERNEL;
	int node = cpu == -1 ? NUMA_NO_NODE : cpu_to_node(cpu), ret;
	struct pmuk_buffer *b = kzalloc_node(sizeof(*b), gfp, node);

	if (!b)
		return ERR_PTR(-ENOMEM);
	b->cpu = cpu;
	b->user_tail = attr->flags & PMUK_BUFFER_USER_TAIL;
	b->watermark = attr->watermark;
	b->completion = attr->completion;
	mutex_init(&b->map_lock);
	mutex_init(&b->lock);
	init_irq_work(&b->wake_work, pmuk_buffer_wake_up);
	init_waitqueue_head(&b->own_waitq);
	b->waitq = attr->waitq ?: &b->own_waitq;
	kref_init(&b->ref);
	b->release = pmuk_buffer_free;
	__module_get(THIS_MODULE);
	atomic_inc(&pmuk_buffers);

	ret = pmuk_buffer_alloc_ring(b, attr, gfp, node) ?: pmuk_aux_alloc(b, attr, gfp, node);
	if (!ret)
		return b;
	pmuk_buffer_put(b);
	return ERR_PTR(ret);
}

/**
 * pmuk_buffer_create() - create a buffer that one CPU writes
 * @attr: the attributes; copied
 * @cpu: the CPU that writes it, or -1 for a control page only, for a task counter
 *
 * Counters that are created with the buffer as &pmuk_attr.buffer write their records to it. Other
 * code may write to it by pmuk_output_begin(). The layout is perf's, see perf_event_open(2): a
 * control page, then data pages, which hold the records. Follows the sampling buffer of perfmon2's
 * KAPI of 2006 and the output ABI of 2009.
 *
 * Context: May sleep.
 * Return: The buffer, or an ERR_PTR(): -EINVAL for a NULL @attr, attributes that
 * contradict each other, or an impossible CPU; -ENOMEM; the error of the AUX
 * area's setup, see &struct pmuk_aux_ops.
 */
struct pmuk_buffer *pmuk_buffer_create(const struct pmuk_buffer_attr *attr, int cpu)
{
	const char *fault = attr ? pmuk_buffer_fault(attr, cpu) : "no attributes";

	if (fault) {
		pr_debug("buffer: %s\n", fault);
		return ERR_PTR(-EINVAL);
	}
	return pmuk_buffer_alloc(attr, cpu);
}
EXPORT_SYMBOL_GPL(pmuk_buffer_create);

/**
 * pmuk_buffer_destroy() - end a buffer
 * @b: the buffer; NULL and an ERR_PTR() are fine
 *
 * When this has returned, nothing is written, and neither the completion nor the wait queue of the
 * attributes is touched any more. Counters that are still there count on, and their records are
 * discarded. Maps stay readable until they are unmapped. The caller makes sure that there is no
 * reader, no other call on @b under way, and nobody who has polled @b and still waits: a consumer
 * whose file can be polled destroys its buffer when that file is released.
 *
 * If an AUX area is being written, its memory stays until the writer ends, and so does the module
 * of its &struct pmuk_aux_ops. A module that is being unloaded cannot be held any more: then this
 * waits until the writer has called pmuk_aux_output_end(), so the caller must hold nothing that the
 * writer waits for.
 *
 * Context: May sleep. Waits for an RCU grace period, and may wait for the writer of an AUX area.
 */
void pmuk_buffer_destroy(struct pmuk_buffer *b)
{
	if (!IS_ERR_OR_NULL(b))
		pmuk_buffers_destroy(&b, 1);
}
EXPORT_SYMBOL_GPL(pmuk_buffer_destroy);

/* Writers have preemption off, so a grace period after the kill the buffer has no writers. */
static void pmuk_buffer_kill(struct pmuk_buffer *b)
{
	if (!b || b->killed)
		return;
	pmuk_ring_kill(&b->ring);
	pmuk_aux_kill(b);
	b->grace = get_state_synchronize_rcu();
	b->killed = true;
}

/*
 * Let buffers, some of which may be NULL, take no more records and no more AUX data. This waits for
 * nobody. If the caller waits for a grace period anyway before it destroys the buffers,
 * pmuk_buffers_destroy() waits for none.
 */
void pmuk_buffers_kill(struct pmuk_buffer **buffers, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		pmuk_buffer_kill(buffers[i]);
}

/*
 * A file of /dev/pmuk may have the buffer, and outlive the creator's reference. Whoever polls on a
 * wait queue of the consumer's own has ended by now, see pmuk_buffer_destroy().
 */
static void pmuk_buffer_hang_up(struct pmuk_buffer *b)
{
	smp_store_release(&b->ended, true);	/* pairs with pmuk_device_poll() */
	wake_up_interruptible_all(&b->own_waitq);
}

/*
 * Destroy buffers, some of which may be NULL. All of them share one grace period. This may wait for
 * the writer of an AUX area, as pmuk_buffer_destroy() says.
 */
void pmuk_buffers_destroy(struct pmuk_buffer **buffers, unsigned int nr)
{
	unsigned int i;

	pmuk_buffers_kill(buffers, nr);
	for (i = 0; i < nr; i++) {
		if (!buffers[i])
			continue;
		cond_synchronize_rcu(buffers[i]->grace);
		pmuk_aux_end(buffers[i]);
		irq_work_sync(&buffers[i]->wake_work);
		pmuk_buffer_hang_up(buffers[i]);
		pmuk_buffer_put(buffers[i]);
	}
}

/**
 * pmuk_buffer_data() - the data pages of a buffer
 * @b: the buffer
 * @size: where to put their size in bytes; may be NULL
 *
 * The byte at position p of the ring is at offset p modulo the size. The pages are mapped twice in
 * a row, so each record that begins in them is contiguous.
 *
 * Context: Any, NMI too.
 * Return: The data, until @b is destroyed; NULL if @b is NULL or an ERR_PTR(), has no
 * data pages, or is one whose size user space decides.
 */
const void *pmuk_buffer_data(struct pmuk_buffer *b, size_t *size)
{
	bool has = !IS_ERR_OR_NULL(b) && !b->user_tail && b->ring.size;

	if (size)
		*size = has ? b->ring.size : 0;
	return has ? b->ring.data : NULL;
}
EXPORT_SYMBOL_GPL(pmuk_buffer_data);

/**
 * pmuk_buffer_claim() - become the reader of a buffer
 * @b: the buffer
 * @r: the reader; the caller's, until pmuk_buffer_release()
 *
 * The caller first pauses a buffer that overwrites. The reader reads it from its oldest record to
 * its newest. The buffer cannot be resumed before the release.
 *
 * Context: May sleep if the buffer overwrites, as it then waits for an RCU grace
 * period; any but NMI otherwise.
 * Return: 0; -EINVAL if @b or @r is NULL or an ERR_PTR(), -EPERM if user space reads the buffer,
 * -EBUSY if there is a reader already, or if the buffer overwrites and is not paused.
 */
int pmuk_buffer_claim(struct pmuk_buffer *b, struct pmuk_reader *r)
{
	int ret;

	if (IS_ERR_OR_NULL(b) || IS_ERR_OR_NULL(r))
		return -EINVAL;
	if (b->user_tail)
		return -EPERM;

	ret = pmuk_ring_claim(&b->ring, r);
	if (!ret && b->ring.mode == PMUK_BUFFER_OVERWRITE) {
		/* Writers have preemption off, so the writers from before the pause end. */
		synchronize_rcu();
		pmuk_ring_rewind(r);
	}
	return ret;
}
EXPORT_SYMBOL_GPL(pmuk_buffer_claim);
