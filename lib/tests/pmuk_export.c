// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/pmuk_export is a consumer whose file hands its buffer to user space. Each open file has one
 * buffer, which ioctl(2) creates, writes and destroys, see pmuk_export.h.
 */
#include <linux/cleanup.h>
#include <linux/fs.h>
#include <linux/irq_work.h>
#include <linux/math.h>
#include <linux/miscdevice.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pmu_kapi.h>
#include <linux/preempt.h>
#include <linux/rwsem.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/uaccess.h>

#include "../../kernel/pmu_kapi/buffer.h"
#include "../../kernel/pmu_kapi/counter.h"
#include "pmuk_export.h"

#define EXPORT_AT_ONCE	64	/* records that one interrupt writes */

struct export {
	struct rw_semaphore sem;	/* write: to set or clear ->buffer */
	struct pmuk_buffer *buffer;	/* ->sem */
	struct pmuk_counter *counter;	/* set before ->buffer */
	int cpu;			/* set before ->buffer */
	bool polled;			/* ->sem for reading: never cleared */
	u64 seq[PMUK_EXPORT_CONTEXTS];	/* the buffer's CPU, per context */
	struct mutex irq_lock;		/* one task at a time lets interrupts write */
};

struct export_job {
	struct export *export;
	struct pmuk_export_write what;
	struct irq_work irq_work;
	u32 nr;				/* records for the next interrupt */
	u32 written;
};

static bool export_one(struct export *e, u32 context, u32 size)
{
	struct pmuk_export_record *rec;
	u64 seq = e->seq[context]++;
	u32 i;

	rec = (struct pmuk_export_record *)pmuk_output_begin(e->buffer, PMUK_EXPORT_RECORD, size);
	if (!rec)
		return false;
	rec->context = context;
	rec->pad = 0;
	rec->seq = seq;
	for (i = 0; i < (size - sizeof(*rec)) / sizeof(rec->fill[0]); i++)
		rec->fill[i] = pmuk_export_fill(seq, i);
	pmuk_output_end(e->buffer, &rec->header);
	return true;
}

static void export_irq(struct irq_work *irq_work)
{
	struct export_job *job = container_of(irq_work, struct export_job, irq_work);

	while (job->nr--)
		job->written += export_one(job->export, PMUK_EXPORT_IRQ, job->what.size);
}

/* Returns false if the caller is not on the buffer's CPU. */
static bool export_from_irq(struct export_job *job)
{
	u32 left = job->what.nr;

	guard(mutex)(&job->export->irq_lock);
	while (left && !fatal_signal_pending(current)) {
		job->nr = min_t(u32, left, EXPORT_AT_ONCE);
		left -= job->nr;
		scoped_guard(preempt) {
			if (smp_processor_id() != job->export->cpu)
				return false;
			irq_work_queue(&job->irq_work);
		}
		irq_work_sync(&job->irq_work);
	}
	return true;
}

/* Returns false if the caller is not on the buffer's CPU. */
static bool export_from_task(struct export_job *job)
{
	u32 left;

	for (left = job->what.nr; left && !fatal_signal_pending(current); left--) {
		scoped_guard(preempt) {
			if (smp_processor_id() != job->export->cpu)
				return false;
			job->written += export_one(job->export, PMUK_EXPORT_TASK, job->what.size);
		}
		cond_resched();
	}
	return true;
}

static long export_write(struct export *e, void __user *from)
{
	struct export_job job = { .export = e };
	bool there;

	if (copy_from_user(&job.what, from, sizeof(job.what)))
		return -EFAULT;
	if (job.what.context >= PMUK_EXPORT_CONTEXTS || job.what.nr > S32_MAX ||
	    job.what.size < sizeof(struct pmuk_export_record))
		return -EINVAL;

	init_irq_work(&job.irq_work, export_irq);
	guard(rwsem_read)(&e->sem);
	if (!e->buffer)
		return -ENODEV;
	if (job.what.context == PMUK_EXPORT_IRQ)
		there = export_from_irq(&job);
	else
		there = export_from_task(&job);
	return there ? job.written : -EXDEV;
}

/* Writes a piece, or as much of it as has room, and returns the size. The rest is lost. */
static u64 export_aux_piece(struct export *e, u64 bytes)
{
	struct pmuk_aux_handle handle;
	u64 i, size = 0;

	if (pmuk_aux_output_begin(&handle, e->buffer)) {
		size = round_down(min(bytes, handle.size), sizeof(u64));
		for (i = 0; i < size; i += sizeof(u64))
			*(u64 *)(handle.data + i) = pmuk_export_fill(handle.head + i, 0);
		pmuk_aux_output_end(&handle, size);
	}
	if (size < bytes)
		pmuk_aux_output_lose(e->buffer, bytes - size);
	return size;
}

static bool export_aux_pieces(struct export *e, struct pmuk_export_aux *what)
{
	u64 left = what->bytes, piece;

	for (; left && !fatal_signal_pending(current); left -= piece) {
		piece = min(left, what->piece);
		scoped_guard(preempt) {
			if (smp_processor_id() != e->cpu)
				return false;
			what->written += export_aux_piece(e, piece);
		}
		cond_resched();
	}
	return true;
}

static long export_aux_write(struct export *e, void __user *user)
{
	struct pmuk_export_aux what;

	if (copy_from_user(&what, user, sizeof(what)))
		return -EFAULT;
	if (what.bytes % sizeof(u64) || what.piece % sizeof(u64) || !what.piece)
		return -EINVAL;
	what.written = 0;
	scoped_guard(rwsem_read, &e->sem) {
		if (!e->buffer)
			return -ENODEV;
		if (!export_aux_pieces(e, &what))
			return -EXDEV;
	}
	return copy_to_user(user, &what, sizeof(what)) ? -EFAULT : 0;
}

static long export_aux_stat(struct export *e, void __user *to)
{
	struct pmuk_export_aux_stat out = {};
	struct pmuk_aux_stat stat;
	int ret;

	scoped_guard(rwsem_read, &e->sem)
		ret = e->buffer ? pmuk_aux_get_stat(e->buffer, &stat) : -ENODEV;
	if (ret)
		return ret;
	out.head = stat.head;
	out.truncated = stat.truncated;
	out.full = stat.full;
	out.wakeups = stat.wakeups;
	return copy_to_user(to, &out, sizeof(out)) ? -EFAULT : 0;
}

static struct pmuk_counter *export_counter(const struct pmuk_export_attr *what,
					   struct pmuk_buffer *buffer)
{
	bool clock = what->event == PMUK_EXPORT_CLOCK;
	const struct pmuk_attr attr = {
		.type		= clock ? PERF_TYPE_SOFTWARE : PERF_TYPE_HARDWARE,
		.config		= clock ? (u64)PERF_COUNT_SW_CPU_CLOCK :
					  (u64)PERF_COUNT_HW_CPU_CYCLES,
		.period		= what->period,
		.sample_type	= what->period ? PERF_SAMPLE_IP | PERF_SAMPLE_TIME : 0,
		.buffer		= buffer,
	};
	struct pmuk_counter *c __free(pmuk_counter) = pmuk_counter_create(&attr, what->cpu, NULL);
	int ret = IS_ERR(c) ? PTR_ERR(c) : pmuk_counter_enable(c);

	return ret ? ERR_PTR(ret) : no_free_ptr(c);
}

static long export_create(struct export *e, void __user *from)
{
	struct pmuk_buffer *buffer __free(pmuk_buffer) = NULL;
	struct pmuk_counter *counter __free(pmuk_counter) = NULL;
	struct pmuk_export_attr what;
	struct pmuk_buffer_attr attr;

	if (copy_from_user(&what, from, sizeof(what)))
		return -EFAULT;
	attr = (struct pmuk_buffer_attr){
		.nr_pages	= what.nr_pages,
		.mode		= what.mode,
		.watermark	= what.watermark,
		.wakeup_events	= what.wakeup_events,
		.flags		= what.flags,
		.aux = {
			.nr_pages	= what.aux_pages,
			.overwrite	= what.aux_overwrite,
			.watermark	= what.aux_watermark,
		},
	};
	buffer = pmuk_buffer_create(&attr, what.cpu);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	if (what.event != PMUK_EXPORT_NOTHING) {
		counter = export_counter(&what, buffer);
		if (IS_ERR(counter))
			return PTR_ERR(counter);
	}

	guard(rwsem_write)(&e->sem);
	if (e->cpu != -2)
		return -EBUSY;
	e->cpu = what.cpu;
	e->counter = no_free_ptr(counter);
	e->buffer = no_free_ptr(buffer);
	return 0;
}

/*
 * A task that polls stays on the buffer's wait queue until poll(2) returns, which is before its
 * file is released. So a buffer that was ever polled is destroyed at the release, and not here.
 */
static long export_destroy(struct export *e)
{
	struct pmuk_buffer *buffer;

	scoped_guard(rwsem_write, &e->sem) {
		if (!e->buffer)
			return -ENODEV;
		if (e->polled)
			return -EBUSY;
		buffer = e->buffer;
		e->buffer = NULL;
	}
	pmuk_buffer_destroy(buffer);
	return 0;
}

static long export_stat(struct export *e, void __user *to)
{
	struct pmuk_export_stat out = {};
	struct pmuk_buffer_stat stat;

	scoped_guard(rwsem_read, &e->sem) {
		if (!e->buffer)
			return -ENODEV;
		pmuk_buffer_get_stat(e->buffer, &stat);
	}
	out.lost = stat.lost;
	out.discarded = stat.discarded;
	out.wakeups = stat.wakeups;
	out.head = stat.head;
	return copy_to_user(to, &out, sizeof(out)) ? -EFAULT : 0;
}

/*
 * A counter, once created, stays until the file's release, so the caller may use it without the
 * lock.
 */
static struct pmuk_counter *export_counter_of(struct export *e)
{
	guard(rwsem_read)(&e->sem);
	return e->counter;
}

static long export_read(struct export *e, void __user *to)
{
	struct pmuk_export_value out = {};
	struct pmuk_value value;
	int ret = pmuk_counter_read(export_counter_of(e), &value);

	if (ret)
		return ret;
	out.count = value.count;
	out.time_enabled = value.time_enabled;
	out.time_running = value.time_running;
	return copy_to_user(to, &out, sizeof(out)) ? -EFAULT : 0;
}

static long export_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct export *e = file->private_data;

	switch (cmd) {
	case PMUK_EXPORT_CREATE:
		return export_create(e, (void __user *)arg);
	case PMUK_EXPORT_WRITE:
		return export_write(e, (void __user *)arg);
	case PMUK_EXPORT_STAT:
		return export_stat(e, (void __user *)arg);
	case PMUK_EXPORT_READ:
		return export_read(e, (void __user *)arg);
	case PMUK_EXPORT_DISABLE:
		return pmuk_counter_disable(export_counter_of(e));
	case PMUK_EXPORT_DESTROY:
		return export_destroy(e);
	case PMUK_EXPORT_NR_BUFFERS:
		return pmuk_nr_buffers();
	case PMUK_EXPORT_AUX_WRITE:
		return export_aux_write(e, (void __user *)arg);
	case PMUK_EXPORT_AUX_STAT:
		return export_aux_stat(e, (void __user *)arg);
	default:
		return -ENOTTY;
	}
}

static int export_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct export *e = file->private_data;

	guard(rwsem_read)(&e->sem);
	return e->buffer ? pmuk_buffer_mmap(e->buffer, vma) : -ENODEV;
}

static __poll_t export_poll(struct file *file, poll_table *wait)
{
	struct export *e = file->private_data;

	guard(rwsem_read)(&e->sem);
	WRITE_ONCE(e->polled, true);
	return e->buffer ? pmuk_buffer_poll(e->buffer, file, wait) : EPOLLERR;
}

static int export_open(struct inode *inode, struct file *file)
{
	struct export *e = kzalloc(sizeof(*e), GFP_KERNEL);

	if (!e)
		return -ENOMEM;
	init_rwsem(&e->sem);
	mutex_init(&e->irq_lock);
	e->cpu = -2;	/* not -1: there was no buffer yet */
	file->private_data = e;
	return 0;
}

static int export_release(struct inode *inode, struct file *file)
{
	struct export *e = file->private_data;

	pmuk_counter_destroy(e->counter);
	pmuk_buffer_destroy(e->buffer);
	kfree(e);
	return 0;
}

static const struct file_operations export_fops = {
	.owner		= THIS_MODULE,
	.open		= export_open,
	.release	= export_release,
	.unlocked_ioctl	= export_ioctl,
	.mmap		= export_mmap,
	.poll		= export_poll,
};

static struct miscdevice export_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "pmuk_export",
	.mode	= 0600,
	.fops	= &export_fops,
};
module_misc_device(export_device);

MODULE_DESCRIPTION("pmuk test: a buffer handed to user space");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
