// SPDX-License-Identifier: GPL-2.0
/*
 * A buffer's life, its wakeups, and its consumer in the kernel. Records are
 * written and read in ring.c; user space gets at them through mmap.c.
 */
#define pr_fmt(fmt) "pmuk: " fmt

#include <kunit/visibility.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/topology.h>

#include "buffer.h"

static_assert(offsetof(struct pmuk_buffer, ring) == 0);

static atomic_t pmuk_buffers = ATOMIC_INIT(0);

/**
 * pmuk_nr_buffers() - how many buffers exist
 *
 * Lets tests assert that they have left nothing behind. A buffer exists as long as
 * its creator, a counter or a map has it.
 *
 * Context: Any.
 * Return: Buffers created and not gone yet.
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

/*
 * The ring wakes its consumer for the first of many lost records. Wake the consumer for the others.
 * The caller holds cpus_read_lock().
 */
void pmuk_buffer_report_lost(struct pmuk_buffer *b)
{
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
	if (cpu == -1 && attr->nr_pages)
		return "data pages need a CPU that writes them";
	if (cpu != -1 && (cpu < 0 || cpu >= nr_cpu_ids || !cpu_possible(cpu)))
		return "no such CPU";
	if (attr->watermark && attr->wakeup_events)
		return "watermark and wakeup_events";
	if (attr->mode == PMUK_BUFFER_OVERWRITE && (attr->flags & PMUK_BUFFER_USER_TAIL))
		return "overwriting and user space giving records back";
	return pmuk_aux_fault(attr, cpu);
}

/* At most half the buffer: a consumer that is woken when the buffer is full is woken too late. */
u32 pmuk_buffer_watermark(const struct pmuk_buffer *b, u64 size)
{
	return min_t(u64, b->watermark ?: PAGE_SIZE, size / 2);
}

static void pmuk_buffer_init_ring(struct pmuk_buffer *b, const struct pmuk_buffer_attr *attr)
{
	struct perf_event_mmap_page *page = page_address(b->control);
	const struct pmuk_ring_config config = {
		.page		= page,
		.data		= b->data.map,
		.size		= (u64)b->data.nr * PAGE_SIZE,
		.mode		= attr->mode,
		.watermark	= pmuk_buffer_watermark(b, (u64)b->data.nr * PAGE_SIZE),
		.wakeup_events	= attr->wakeup_events,
		.user_tail	= b->user_tail,
		.wake		= pmuk_buffer_wake,
	};

	page->size = offsetof(struct perf_event_mmap_page, __reserved);
	page->cap_bit0_is_deprecated = 1;
	page->data_offset = PAGE_SIZE;
	page->data_size = config.size;
	pmuk_ring_init(&b->ring, &config);
}

static void pmuk_buffer_free(struct pmuk_buffer *b)
{
	pmuk_aux_free(b);
	pmuk_pages_free(&b->data);
	if (b->control)
		__free_page(b->control);
	kfree(b);
}

static int pmuk_buffer_alloc_pages(struct pmuk_buffer *b, const struct pmuk_buffer_attr *attr,
				   gfp_t gfp, int node)
{
	b->control = alloc_pages_node(node, gfp | __GFP_ZERO, 0);
	return b->control ? pmuk_pages_alloc(&b->data, attr->nr_pages, gfp, node) : -ENOMEM;
}

static void pmuk_buffer_last_put(struct kref *ref)
{
	pmuk_buffer_free(container_of(ref, struct pmuk_buffer, ref));
	atomic_dec(&pmuk_buffers);
	module_put(THIS_MODULE);
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
	b->own_nr = attr->nr_pages;
	b->watermark = attr->watermark;
	b->completion = attr->completion;
	mutex_init(&b->lock);
	init_irq_work(&b->wake_work, pmuk_buffer_wake_up);
	init_waitqueue_head(&b->own_waitq);
	b->waitq = attr->waitq ?: &b->own_waitq;
	kref_init(&b->ref);
	b->release = pmuk_buffer_last_put;

	ret = pmuk_buffer_alloc_pages(b, attr, gfp, node);
	if (!ret) {
		pmuk_buffer_init_ring(b, attr);
		ret = pmuk_aux_alloc(b, attr, gfp, node);
	}
	if (!ret)
		return b;
	pmuk_buffer_free(b);
	return ERR_PTR(ret);
}

/**
 * pmuk_buffer_create() - create a buffer that one CPU writes
 * @attr: what it is to be like; copied
 * @cpu: the CPU that writes it, or -1 for a control page only, for a task counter
 *
 * Counters that are created with the buffer as &pmuk_attr.buffer write their records to it. Other
 * code may write to it by pmuk_output_begin(). The layout is perf's, see perf_event_open(2): a
 * control page, then data pages, which hold the records. Follows the sampling buffer of perfmon2's
 * KAPI of 2006 and the output ABI of 2009.
 *
 * Context: May sleep.
 * Return: The buffer, or an ERR_PTR(): -EINVAL for a NULL @attr, attributes that
 * contradict each other, or an impossible CPU; -ENOMEM; what setting up the AUX area
 * has failed with, see &struct pmuk_aux_ops.
 */
struct pmuk_buffer *pmuk_buffer_create(const struct pmuk_buffer_attr *attr, int cpu)
{
	const char *fault = attr ? pmuk_buffer_fault(attr, cpu) : "no attributes";
	struct pmuk_buffer *b;

	if (fault) {
		pr_debug("buffer: %s\n", fault);
		return ERR_PTR(-EINVAL);
	}
	b = pmuk_buffer_alloc(attr, cpu);
	if (IS_ERR(b))
		return b;
	__module_get(THIS_MODULE);
	atomic_inc(&pmuk_buffers);
	return b;
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

/* Writers of records have preemption off: those from before the kill end in a grace period. */
static void pmuk_buffer_kill(struct pmuk_buffer *b)
{
	if (b->killed)
		return;
	pmuk_ring_kill(&b->ring);
	pmuk_aux_kill(b);
	b->grace = get_state_synchronize_rcu();
	b->killed = true;
}

/*
 * Let buffers, some of which may be NULL, take no more records and no more AUX data. This may wait
 * for the writer of an AUX area, as pmuk_buffer_destroy() says. If the caller waits for a grace
 * period anyway before it destroys the buffers, pmuk_buffers_destroy() waits for none.
 */
void pmuk_buffers_kill(struct pmuk_buffer **buffers, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (buffers[i])
			pmuk_buffer_kill(buffers[i]);
	}
}

/* Destroy buffers, some of which may be NULL. All of them share one grace period. */
void pmuk_buffers_destroy(struct pmuk_buffer **buffers, unsigned int nr)
{
	unsigned int i;

	pmuk_buffers_kill(buffers, nr);
	for (i = 0; i < nr; i++) {
		if (!buffers[i])
			continue;
		cond_synchronize_rcu(buffers[i]->grace);
		irq_work_sync(&buffers[i]->wake_work);
		pmuk_buffer_put(buffers[i]);
	}
}

/**
 * pmuk_buffer_control() - the control page of a buffer
 * @b: the buffer
 *
 * data_head tells how far records have been written, and data_tail how far the
 * kernel's consumer had come when it last released the buffer. In a PMUK_BUFFER_OVERWRITE
 * buffer data_tail is where the oldest record begins: when the buffer has been paused and its
 * writers have ended, it has whole records from there to data_head. ::lock, ::index, ::offset,
 * ::time_enabled and ::time_running describe the first counter of the buffer.
 * User space that may write its map can write anything here, so kernel code
 * that needs to rely on what it reads calls pmuk_buffer_get_stat().
 *
 * Context: Any, NMI too.
 * Return: The page, until @b is destroyed; NULL if @b is NULL or an ERR_PTR().
 */
const struct perf_event_mmap_page *pmuk_buffer_control(struct pmuk_buffer *b)
{
	return IS_ERR_OR_NULL(b) ? NULL : b->ring.page;
}
EXPORT_SYMBOL_GPL(pmuk_buffer_control);

/**
 * pmuk_buffer_data() - the data pages of a buffer
 * @b: the buffer
 * @size: where to put their size in bytes; may be NULL
 *
 * What lies at position p of the ring is at offset p modulo the size; the pages are
 * mapped twice in a row, so that each record that begins in them is contiguous.
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
 * pmuk_buffer_get_stat() - what became of the records of a buffer
 * @b: the buffer
 * @stat: where to put it
 *
 * Exact when nobody is writing or reading.
 *
 * Context: Any, NMI too; from any CPU.
 * Return: 0; -EINVAL if @b or @stat is NULL or an ERR_PTR().
 */
int pmuk_buffer_get_stat(struct pmuk_buffer *b, struct pmuk_buffer_stat *stat)
{
	if (IS_ERR_OR_NULL(b) || IS_ERR_OR_NULL(stat))
		return -EINVAL;
	pmuk_ring_stat(&b->ring, stat);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_buffer_get_stat);

/**
 * pmuk_buffer_pause() - refuse records from now on
 * @b: the buffer
 *
 * Refused records are counted as discarded. Records that are being written are finished. When
 * something has gone wrong, this freezes a flight recorder, which can be read later.
 *
 * Context: Any, NMI too; from any CPU.
 * Return: 0; -EINVAL if @b is NULL or an ERR_PTR().
 */
int pmuk_buffer_pause(struct pmuk_buffer *b)
{
	if (IS_ERR_OR_NULL(b))
		return -EINVAL;
	pmuk_ring_pause(&b->ring);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_buffer_pause);

/**
 * pmuk_buffer_resume() - take records again, after pmuk_buffer_pause()
 * @b: the buffer
 *
 * Context: Any, NMI too; from any CPU.
 * Return: 0; -EINVAL if @b is NULL or an ERR_PTR(), -EBUSY if it overwrites and has a
 * reader.
 */
int pmuk_buffer_resume(struct pmuk_buffer *b)
{
	return IS_ERR_OR_NULL(b) ? -EINVAL : pmuk_ring_resume(&b->ring);
}
EXPORT_SYMBOL_GPL(pmuk_buffer_resume);

/**
 * pmuk_buffer_restart() - take records again, after a PMUK_BUFFER_STOP buffer was full
 * @b: the buffer
 *
 * A PERF_RECORD_LOST before the next record reports the records that were lost. If there is no
 * room for these two records, the buffer stops again. Follows pfmk_restart() of perfmon2's KAPI.
 *
 * Context: Any, NMI too; from any CPU.
 * Return: 0; -EINVAL if @b is NULL or an ERR_PTR().
 */
int pmuk_buffer_restart(struct pmuk_buffer *b)
{
	if (IS_ERR_OR_NULL(b))
		return -EINVAL;
	pmuk_ring_restart(&b->ring);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_buffer_restart);

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
 * Return: 0; -EINVAL if @b or @r is NULL or an ERR_PTR(), -EPERM if user space reads
 * the buffer, -EBUSY if there is a reader already, or if the buffer overwrites and
 * is not paused.
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
		/* Writers have preemption off: those from before the pause end now. */
		synchronize_rcu();
		pmuk_ring_rewind(r);
	}
	return ret;
}
EXPORT_SYMBOL_GPL(pmuk_buffer_claim);

/**
 * pmuk_buffer_peek() - the oldest record that was not consumed
 * @r: the reader
 *
 * Context: Any; the reader's.
 * Return: The record, in place and whole, until it is consumed; or NULL if there is
 * none.
 */
const struct perf_event_header *pmuk_buffer_peek(struct pmuk_reader *r)
{
	return pmuk_ring_peek(r);
}
EXPORT_SYMBOL_GPL(pmuk_buffer_peek);

/**
 * pmuk_buffer_consume() - give back the record that was peeked at
 * @r: the reader
 *
 * The record's room is free from now on. Without a pmuk_buffer_peek() before, this does nothing.
 *
 * Context: Any; the reader's.
 */
void pmuk_buffer_consume(struct pmuk_reader *r)
{
	pmuk_ring_consume(r);
}
EXPORT_SYMBOL_GPL(pmuk_buffer_consume);

/**
 * pmuk_buffer_release() - end reading
 * @r: the reader
 *
 * Records that were not consumed are for the next reader.
 *
 * Context: Any; the reader's.
 */
void pmuk_buffer_release(struct pmuk_reader *r)
{
	pmuk_ring_release(r);
}
EXPORT_SYMBOL_GPL(pmuk_buffer_release);

/**
 * pmuk_buffer_revoke() - end reading for a reader that will not do so itself
 * @b: the buffer
 *
 * Call this for a reader that has died, or has lost its struct pmuk_reader. Records that it had not
 * consumed are for the next reader. The caller makes sure that the old reader makes no call any
 * more, and uses no record.
 *
 * Context: Any, NMI too.
 * Return: 0, also when there is no reader; -EINVAL if @b is NULL or an ERR_PTR().
 */
int pmuk_buffer_revoke(struct pmuk_buffer *b)
{
	if (IS_ERR_OR_NULL(b))
		return -EINVAL;
	pmuk_ring_revoke(&b->ring);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_buffer_revoke);

/**
 * pmuk_output_skip() - give up a reserved record
 * @b: the buffer
 * @rec: what pmuk_output_begin() has returned
 *
 * Called in place of pmuk_output_end(). The record is counted as discarded. If other records have
 * been written behind it, readers find a PERF_RECORD_LOST_SAMPLES of 0 in its place.
 *
 * Context: As pmuk_output_begin().
 */
void pmuk_output_skip(struct pmuk_buffer *b, struct perf_event_header *rec)
{
	pmuk_ring_skip(&b->ring, rec);
}
EXPORT_SYMBOL_GPL(pmuk_output_skip);
