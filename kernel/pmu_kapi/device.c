// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/pmuk: user space reads the buffers of contexts with PMUK_CTX_EXPORT, by the contexts' names.
 * uapi/linux/pmu_kapi.h describes the calls.
 *
 * The private data of an open file are its buffer, or NULL before PMUK_BUFFER_OPEN. The file holds
 * a reference of the buffer and none of the context, so a close does not wait for files: a file
 * looks the context up by its id when it needs the context, and then finds none. The buffer holds
 * nothing of the context's owner, whose module may be unloaded while the file is open.
 */
#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/xarray.h>

#include <uapi/linux/pmu_kapi.h>

#include "buffer.h"
#include "context.h"
#include "contexts.h"
#include "device.h"
#include "slot.h"

static_assert(PMUK_DEV_NAME_LEN == PMUK_NAME_LEN);
static_assert(sizeof(struct perf_event_attr) <= PMUK_DEV_ATTR_LEN);
static_assert(sizeof(struct pmuk_dev_event) == 24 + PMUK_DEV_ATTR_LEN);

/* Returns the file's buffer, which exists until the file is released, or NULL. */
static struct pmuk_buffer *pmuk_device_buffer(struct file *file)
{
	/* pairs with pmuk_device_take() */
	return smp_load_acquire((struct pmuk_buffer **)&file->private_data);
}

/* Takes the buffer of a context for a file. While the context is viewed, its buffers stay. */
static struct pmuk_buffer *pmuk_device_get(struct pmuk_context *ctx, int cpu)
{
	struct pmuk_buffer *b = pmuk_context_buffer(ctx, cpu);

	if (!b)
		return ERR_PTR(-ENODEV);
	if (atomic_xchg(&b->opened, 1))
		return ERR_PTR(-EBUSY);
	pmuk_buffer_get(b);
	return b;
}

static void pmuk_device_put(struct pmuk_buffer *b)
{
	atomic_set_release(&b->opened, 0);	/* pairs with pmuk_device_get() */
	pmuk_buffer_put(b);
}

static long pmuk_device_take(struct file *file, struct pmuk_buffer *b)
{
	if (IS_ERR(b))
		return PTR_ERR(b);
	if (!cmpxchg_release(&file->private_data, NULL, b))
		return 0;
	pmuk_device_put(b);
	return -EBUSY;
}

static long pmuk_device_begin(struct file *file, const void __user *from)
{
	struct pmuk_dev_buffer req;
	struct pmuk_context *ctx;
	long ret;

	if (copy_from_user(&req, from, sizeof(req)))
		return -EFAULT;
	if (req.flags || strnlen(req.name, sizeof(req.name)) == sizeof(req.name))
		return -EINVAL;
	if (pmuk_device_buffer(file))
		return -EBUSY;
	ctx = pmuk_view_exported(req.name);
	if (!ctx)
		return -ENOENT;
	ret = pmuk_device_take(file, pmuk_device_get(ctx, req.cpu));
	pmuk_unview(ctx);
	return ret;
}

/* Returns the @index'th counter whose id the context's records may have, or NULL. */
static const struct pmuk_def *pmuk_device_def(struct pmuk_context *ctx, u32 index, u32 *set_id)
	__must_hold(&ctx->lock)
{
	const struct pmuk_def *def;
	struct pmuk_set *set;
	unsigned long id;

	xa_for_each(&ctx->sets, id, set) {
		*set_id = id;
		for (def = set->defs; def; def = def->next) {
			if (!(set->defined & BIT(def->num)) || !pmuk_def_is_recorded(ctx, def))
				continue;
			if (!index--)
				return def;
		}
	}
	return NULL;
}

/* The consumer may be in a call on the context that takes long, so a signal ends the wait. */
static int pmuk_device_describe(struct pmuk_context *ctx, int cpu, struct pmuk_dev_event *event)
{
	const struct pmuk_def *def;

	if (mutex_lock_interruptible(&ctx->lock))
		return -EINTR;
	def = pmuk_device_def(ctx, event->index, &event->set);
	if (def) {
		cpu = pmuk_target_is_task(ctx) ? -1 : cpu;
		event->num = def->num;
		event->id = pmuk_record_id(ctx, event->set, def->num, cpu);
		event->attr = pmuk_def_event_attr(ctx, def);
	}
	mutex_unlock(&ctx->lock);
	return def ? 0 : -ENOENT;
}

static long pmuk_device_event(const struct pmuk_buffer *b, struct pmuk_dev_event __user *user)
{
	struct pmuk_dev_event event = {};
	struct pmuk_context *ctx;
	int ret;

	if (get_user(event.index, &user->index))
		return -EFAULT;
	ctx = pmuk_view_from(b->context);
	if (!ctx)
		return -ENODEV;
	ret = ctx->id == b->context ? pmuk_device_describe(ctx, b->cpu, &event) : -ENODEV;
	pmuk_unview(ctx);
	if (ret)
		return ret;
	return copy_to_user(user, &event, sizeof(event)) ? -EFAULT : 0;
}

static long pmuk_device_stat(struct pmuk_buffer *b, void __user *to)
{
	struct pmuk_buffer_stat stat;
	struct pmuk_dev_stat out = {};

	pmuk_buffer_get_stat(b, &stat);
	out.lost = stat.lost;
	out.discarded = stat.discarded;
	out.head = stat.head;
	return copy_to_user(to, &out, sizeof(out)) ? -EFAULT : 0;
}

static long pmuk_device_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct pmuk_buffer *b = pmuk_device_buffer(file);

	switch (cmd) {
	case PMUK_BUFFER_OPEN:
		return pmuk_device_begin(file, (void __user *)arg);
	case PMUK_BUFFER_EVENT:
		return b ? pmuk_device_event(b, (void __user *)arg) : -ENODEV;
	case PMUK_BUFFER_STAT:
		return b ? pmuk_device_stat(b, (void __user *)arg) : -ENODEV;
	default:
		return -ENOTTY;
	}
}

static int pmuk_device_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct pmuk_buffer *b = pmuk_device_buffer(file);

	return b ? pmuk_buffer_mmap(b, vma) : -ENODEV;
}

/* The check comes after poll_wait(): a close after the check finds the poller, and wakes it. */
static __poll_t pmuk_device_poll(struct file *file, poll_table *wait)
{
	struct pmuk_buffer *b = pmuk_device_buffer(file);
	__poll_t events = pmuk_buffer_poll(b, file, wait);

	if (b && smp_load_acquire(&b->ended))	/* pairs with pmuk_buffer_hang_up() */
		events |= EPOLLHUP;
	return events;
}

/* misc_open() leaves the device in the private data. */
static int pmuk_device_open(struct inode *inode, struct file *file)
{
	file->private_data = NULL;
	return perfmon_capable() ? 0 : -EACCES;
}

static int pmuk_device_release(struct inode *inode, struct file *file)
{
	struct pmuk_buffer *b = pmuk_device_buffer(file);

	if (b)
		pmuk_device_put(b);
	return 0;
}

static const struct file_operations pmuk_device_fops = {
	.owner		= THIS_MODULE,
	.open		= pmuk_device_open,
	.release	= pmuk_device_release,
	.unlocked_ioctl	= pmuk_device_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.mmap		= pmuk_device_mmap,
	.poll		= pmuk_device_poll,
};

struct miscdevice pmuk_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "pmuk",
	.mode	= 0666,		/* the open asks for CAP_PERFMON */
	.fops	= &pmuk_device_fops,
};
