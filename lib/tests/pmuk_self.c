// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/pmuk_self is a consumer. Each task that opens it can read its own cycles from the control
 * page that it maps, and by read(2) for comparison.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pmu_kapi.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

struct self {
	struct pmuk_buffer *page;
	struct pmuk_counter *cycles;
};

static void self_free(struct self *self)
{
	pmuk_counter_destroy(self->cycles);
	pmuk_buffer_destroy(self->page);
	kfree(self);
}

static int self_start(struct self *self)
{
	const struct pmuk_buffer_attr page_only = {};
	struct pmuk_attr attr = {
		.type		= PERF_TYPE_HARDWARE,
		.config		= PERF_COUNT_HW_CPU_CYCLES,
		.config1	= IS_ENABLED(CONFIG_ARM64) ? BIT(1) : 0,	/* user access */
	};

	self->page = pmuk_buffer_create(&page_only, -1);
	if (IS_ERR(self->page))
		return PTR_ERR(self->page);
	attr.buffer = self->page;
	self->cycles = pmuk_counter_create(&attr, -1, current);
	if (IS_ERR(self->cycles))
		return PTR_ERR(self->cycles);
	return pmuk_counter_enable(self->cycles);
}

static int self_open(struct inode *inode, struct file *file)
{
	struct self *self = kzalloc(sizeof(*self), GFP_KERNEL);
	int ret;

	if (!self)
		return -ENOMEM;
	ret = self_start(self);
	if (ret)
		self_free(self);
	else
		file->private_data = self;
	return ret;
}

static int self_release(struct inode *inode, struct file *file)
{
	self_free(file->private_data);
	return 0;
}

static int self_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct self *self = file->private_data;

	return pmuk_buffer_mmap(self->page, vma);
}

static ssize_t self_read(struct file *file, char __user *to, size_t size, loff_t *pos)
{
	struct self *self = file->private_data;
	struct pmuk_value value;
	int ret;

	if (size != sizeof(value.count))
		return -EINVAL;
	ret = pmuk_counter_read(self->cycles, &value);
	if (ret)
		return ret;
	return copy_to_user(to, &value.count, size) ? -EFAULT : size;
}

static const struct file_operations self_fops = {
	.owner		= THIS_MODULE,
	.open		= self_open,
	.release	= self_release,
	.mmap		= self_mmap,
	.read		= self_read,
};

static struct miscdevice self_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "pmuk_self",
	.mode	= 0600,
	.fops	= &self_fops,
};
module_misc_device(self_device);

MODULE_DESCRIPTION("pmuk test: a task reads its own counter");
MODULE_LICENSE("GPL");
