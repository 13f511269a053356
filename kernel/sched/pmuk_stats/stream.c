// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/pmuk_sched: the switches of a CPU as records in a ring that user space maps, or as packets
 * in an AUX area beside the ring. An open file has the switches of one CPU, and a CPU has at most
 * one such file.
 */
#define pr_fmt(fmt) "pmuk_sched: " fmt

#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cleanup.h>
#include <linux/cpu.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/poll.h>
#include <linux/printk.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/topology.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "raw.h"
#include "stats.h"

static_assert(sizeof(struct pmuk_sched_switch) == 48);

/* The largest number of data pages of a stream. */
#define PMUK_SCHED_PAGES_MAX	(SZ_64M >> PAGE_SHIFT)

struct pmuk_sched_file {
	struct mutex lock;		/* held to make ->sink */
	struct pmuk_sched_sink *sink __guarded_by(&lock);	/* made once; NULL before */
	int cpu;			/* written before ->sink */
	wait_queue_head_t waitq;	/* poll() waits here, also before there is a ->sink */
};

static unsigned int pmuk_sched_stream_mb = 256;
module_param_named(stream_mb, pmuk_sched_stream_mb, uint, 0644);
MODULE_PARM_DESC(stream_mb, "Limit of the memory of all streams together, in MiB (default 256)");

/* The bytes of all streams together. */
static atomic64_t pmuk_sched_stream_bytes = ATOMIC64_INIT(0);

/* Held to attach a sink to its CPU, and to detach it: a CPU has one sink at most. */
static DEFINE_MUTEX(pmuk_sched_sinks);

/* The memory of a stream is pinned before any map of it is accounted: so limit the sum of all. */
static int pmuk_sched_charge(u64 bytes)
{
	unsigned int mb = READ_ONCE(pmuk_sched_stream_mb);

	if (atomic64_add_return(bytes, &pmuk_sched_stream_bytes) <= (s64)mb * SZ_1M)
		return 0;
	atomic64_sub(bytes, &pmuk_sched_stream_bytes);
	pr_notice_ratelimited("a stream of %llu KiB is refused: all would exceed stream_mb, %u MiB\n",
			      bytes / SZ_1K, mb);
	return -ENOBUFS;
}

static struct pmuk_buffer *pmuk_sched_ring(const struct pmuk_sched_stream *req,
					   wait_queue_head_t *waitq)
{
	const struct pmuk_buffer_attr attr = {
		.nr_pages	= req->nr_pages,
		.mode		= req->mode == PMUK_SCHED_OVERWRITE ? PMUK_BUFFER_OVERWRITE :
								       PMUK_BUFFER_DROP,
		.flags		= PMUK_BUFFER_ACCOUNT |
				  (req->mode == PMUK_SCHED_OVERWRITE ? 0 : PMUK_BUFFER_USER_TAIL),
		.watermark	= req->watermark,
		.waitq		= waitq,
	};

	return pmuk_buffer_create(&attr, req->cpu);
}

/*
 * The ring of one page has a PERF_RECORD_AUX for each part of the area. While the ring is full, the
 * next PERF_RECORD_AUX reports several parts together.
 */
static struct pmuk_buffer *pmuk_sched_area(const struct pmuk_sched_stream *req,
					   wait_queue_head_t *waitq)
{
	const struct pmuk_buffer_attr attr = {
		.nr_pages	= 1,
		.mode		= PMUK_BUFFER_DROP,
		.flags		= PMUK_BUFFER_USER_TAIL | PMUK_BUFFER_ACCOUNT,
		.waitq		= waitq,
		.aux		= { .nr_pages = req->nr_pages, .watermark = req->watermark,
				    .least = PMUK_SCHED_RAW_MAX },
	};

	return pmuk_buffer_create(&attr, req->cpu);
}

static void pmuk_sched_sink_free(struct pmuk_sched_sink *sink)
{
	pmuk_buffer_destroy(sink->buffer);
	atomic64_sub(sink->size, &pmuk_sched_stream_bytes);
	kfree(sink);
}

/* Allocates on the CPU's node, as the CPU writes its sink at each switch. */
static struct pmuk_sched_sink *pmuk_sched_sink_alloc(const struct pmuk_sched_stream *req)
{
	struct pmuk_sched_sink *sink = kzalloc_node(sizeof(*sink), GFP_KERNEL_ACCOUNT,
						    cpu_to_node(req->cpu));
	int ret;

	if (!sink)
		return ERR_PTR(-ENOMEM);
	sink->raw = req->mode == PMUK_SCHED_RAW;
	sink->size = (u64)req->nr_pages * PAGE_SIZE;
	ret = pmuk_sched_charge(sink->size);
	if (!ret)
		return sink;
	kfree(sink);
	return ERR_PTR(ret);
}

static struct pmuk_sched_sink *pmuk_sched_sink_make(const struct pmuk_sched_stream *req,
						    wait_queue_head_t *waitq)
{
	struct pmuk_sched_sink *sink = pmuk_sched_sink_alloc(req);
	void *err;

	if (IS_ERR(sink))
		return sink;
	sink->buffer = sink->raw ? pmuk_sched_area(req, waitq) : pmuk_sched_ring(req, waitq);
	if (!IS_ERR(sink->buffer))
		return sink;
	err = sink->buffer;
	pmuk_sched_sink_free(sink);
	return err;
}

static bool pmuk_sched_has_sink(int cpu)
{
	return rcu_access_pointer(per_cpu_ptr(&pmuk_sched_cpus, cpu)->sink);
}

static int pmuk_sched_sink_attach(struct pmuk_sched_sink *sink, int cpu)
{
	guard(mutex)(&pmuk_sched_sinks);
	if (pmuk_sched_has_sink(cpu))
		return -EBUSY;
	rcu_assign_pointer(per_cpu_ptr(&pmuk_sched_cpus, cpu)->sink, sink);
	return 0;
}

static void pmuk_sched_sink_detach(int cpu)
{
	guard(mutex)(&pmuk_sched_sinks);
	RCU_INIT_POINTER(per_cpu_ptr(&pmuk_sched_cpus, cpu)->sink, NULL);
}

static const char *pmuk_sched_stream_fault(const struct pmuk_sched_stream *req)
{
	if (req->mode > PMUK_SCHED_RAW)
		return "no such mode";
	if (!req->nr_pages || req->nr_pages > PMUK_SCHED_PAGES_MAX)
		return "1 page to 64 MiB, a power of two";
	return NULL;
}

static long pmuk_sched_stream_begin(struct pmuk_sched_file *f, void __user *from)
{
	struct pmuk_sched_stream req;
	struct pmuk_sched_sink *sink;
	const char *fault;
	int ret;

	if (copy_from_user(&req, from, sizeof(req)))
		return -EFAULT;
	fault = pmuk_sched_stream_fault(&req);
	if (fault) {
		pr_debug("stream: %s\n", fault);
		return -EINVAL;
	}
	if (req.cpu >= nr_cpu_ids || !cpu_possible(req.cpu))
		return -ENODEV;

	guard(mutex)(&f->lock);
	/* A CPU's second stream is refused before it takes memory that other streams may need. */
	if (f->sink || pmuk_sched_has_sink(req.cpu))
		return -EBUSY;
	sink = pmuk_sched_sink_make(&req, &f->waitq);
	if (IS_ERR(sink))
		return PTR_ERR(sink);
	ret = pmuk_sched_sink_attach(sink, req.cpu);
	if (ret) {
		pmuk_sched_sink_free(sink);
		return ret;
	}
	f->cpu = req.cpu;
	smp_store_release(&f->sink, sink);	/* after ->cpu; pairs with pmuk_sched_sink_of() */
	wake_up_interruptible_all(&f->waitq);	/* wakeups before this found no sink */
	return 0;
}

/* Returns the sink, which exists until the file is released, or NULL before PMUK_SCHED_STREAM. */
static struct pmuk_sched_sink *pmuk_sched_sink_of(struct file *file)
{
	struct pmuk_sched_file *f = file->private_data;

	/* pairs with pmuk_sched_stream_begin() */
	return context_unsafe(smp_load_acquire(&f->sink));
}

/* Held by the caller that writes the buffer of an offline CPU in place of that CPU. */
static DEFINE_MUTEX(pmuk_sched_offline);

/*
 * Calls @fn on the sink's CPU, with interrupts off and so between two switches. An offline CPU does
 * not switch: then the caller's CPU takes its place.
 */
static void pmuk_sched_call_on(int cpu, smp_call_func_t fn, void *data)
{
	guard(cpus_read_lock)();
	if (!smp_call_function_single(cpu, fn, data, true))
		return;
	guard(mutex)(&pmuk_sched_offline);
	guard(irqsave)();
	fn(data);
}

static void pmuk_sched_flush_here(void *sink)
{
	pmuk_sched_raw_flush(sink);
}

static void pmuk_sched_end_here(void *sink)
{
	pmuk_sched_raw_end(sink);
}

struct pmuk_sched_stat_job {
	struct pmuk_sched_sink *sink;
	struct pmuk_sched_stat stat;
};

static void pmuk_sched_stat_of_area(const struct pmuk_sched_sink *sink, struct pmuk_sched_stat *to)
{
	struct pmuk_aux_stat stat;

	pmuk_aux_get_stat(sink->buffer, &stat);
	to->lost = READ_ONCE(sink->lost);
	to->head = stat.head;
}

static void pmuk_sched_stat_of_ring(const struct pmuk_sched_sink *sink, struct pmuk_sched_stat *to)
{
	struct pmuk_buffer_stat stat;

	pmuk_buffer_get_stat(sink->buffer, &stat);
	to->lost = stat.lost;
	to->discarded = stat.discarded;
	to->head = stat.head;
}

static void pmuk_sched_stat_here(void *data)
{
	struct pmuk_sched_stat_job *job = data;

	pmuk_sched_raw_flush(job->sink);
	if (job->sink->raw)
		pmuk_sched_stat_of_area(job->sink, &job->stat);
	else
		pmuk_sched_stat_of_ring(job->sink, &job->stat);
	job->stat.switches = READ_ONCE(job->sink->switches);
}

static long pmuk_sched_stream_stat(struct pmuk_sched_sink *sink, int cpu, void __user *to)
{
	struct pmuk_sched_stat_job job = { .sink = sink };

	pmuk_sched_call_on(cpu, pmuk_sched_stat_here, &job);
	return copy_to_user(to, &job.stat, sizeof(job.stat)) ? -EFAULT : 0;
}

/*
 * Freezes the ring. A switch that was writing meanwhile may still overwrite old records. Only
 * switches of @cpu write, with interrupts off, so an interrupt there comes after that switch.
 * pmuk_sched_flush_here() does nothing to a ring.
 */
static int pmuk_sched_freeze(struct pmuk_sched_sink *sink, int cpu)
{
	int ret = pmuk_buffer_pause(sink->buffer);

	if (!ret)
		pmuk_sched_call_on(cpu, pmuk_sched_flush_here, sink);
	return ret;
}

static int pmuk_sched_pause(struct pmuk_sched_sink *sink, int cpu, bool on)
{
	if (sink->raw) {
		pr_debug("packets are not paused\n");
		return -EINVAL;
	}
	return on ? pmuk_sched_freeze(sink, cpu) : pmuk_buffer_resume(sink->buffer);
}

static long pmuk_sched_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct pmuk_sched_sink *sink = pmuk_sched_sink_of(file);
	struct pmuk_sched_file *f = file->private_data;

	if (cmd == PMUK_SCHED_STREAM)
		return pmuk_sched_stream_begin(f, (void __user *)arg);
	if (!sink)
		return -ENODEV;
	switch (cmd) {
	case PMUK_SCHED_STAT:
		return pmuk_sched_stream_stat(sink, f->cpu, (void __user *)arg);
	case PMUK_SCHED_PAUSE:
	case PMUK_SCHED_RESUME:
		return pmuk_sched_pause(sink, f->cpu, cmd == PMUK_SCHED_PAUSE);
	case PMUK_SCHED_FLUSH:
		pmuk_sched_call_on(f->cpu, pmuk_sched_flush_here, sink);
		return 0;
	default:
		return -ENOTTY;
	}
}

static int pmuk_sched_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct pmuk_sched_sink *sink = pmuk_sched_sink_of(file);

	if (!sink)
		return -ENODEV;
	if (vma_pages(vma) > 1 + PMUK_SCHED_PAGES_MAX)
		return -EINVAL;
	return pmuk_buffer_mmap(sink->buffer, vma);
}

static __poll_t pmuk_sched_poll(struct file *file, poll_table *wait)
{
	struct pmuk_sched_file *f = file->private_data;
	struct pmuk_sched_sink *sink;

	/* A process that polls before there is a stream waits where its buffer will wake it. */
	poll_wait(file, &f->waitq, wait);
	sink = pmuk_sched_sink_of(file);
	return sink ? pmuk_buffer_poll(sink->buffer, file, NULL) : 0;
}

static int pmuk_sched_file_make(struct file *file)
{
	struct pmuk_sched_file *f = kzalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);

	if (!f)
		return -ENOMEM;
	mutex_init(&f->lock);
	init_waitqueue_head(&f->waitq);
	file->private_data = f;
	return 0;
}

static int pmuk_sched_open(struct inode *inode, struct file *file)
{
	return perfmon_capable() ? pmuk_sched_file_make(file) : -EACCES;
}

/*
 * Each map holds a reference on the file, so none is left. synchronize_rcu() waits for switches
 * that still write to the sink. After that, only this function can end an open part.
 */
static int pmuk_sched_release(struct inode *inode, struct file *file)
{
	struct pmuk_sched_sink *sink = pmuk_sched_sink_of(file);
	struct pmuk_sched_file *f = file->private_data;

	if (sink) {
		pmuk_sched_sink_detach(f->cpu);
		synchronize_rcu();
		pmuk_sched_call_on(f->cpu, pmuk_sched_end_here, sink);
		pmuk_sched_sink_free(sink);
	}
	kfree(f);
	return 0;
}

static const struct file_operations pmuk_sched_fops = {
	.owner		= THIS_MODULE,
	.open		= pmuk_sched_open,
	.release	= pmuk_sched_release,
	.unlocked_ioctl	= pmuk_sched_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.mmap		= pmuk_sched_mmap,
	.poll		= pmuk_sched_poll,
};

static struct miscdevice pmuk_sched_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "pmuk_sched",
	.mode	= 0666,	/* see pmuk_sched_open() */
	.fops	= &pmuk_sched_fops,
};

int pmuk_sched_stream_init(void)
{
	return misc_register(&pmuk_sched_device);
}

void pmuk_sched_stream_exit(void)
{
	misc_deregister(&pmuk_sched_device);
}
