// SPDX-License-Identifier: GPL-2.0
/*
 * The files in sysfs: those about all CPUs are in the directory of the watchdog device, those about
 * one CPU are in the directory of that CPU. Documentation/ABI/testing/sysfs-driver-pmuk-wdt lists
 * them.
 */
#include <linux/atomic.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/kstrtox.h>
#include <linux/math64.h>
#include <linux/sysfs.h>

#include "wdt.h"

/* ---- the device ---- */

static ssize_t threshold_ms_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", div_u64(READ_ONCE(pmuk_wdt.times.threshold),
						 NSEC_PER_MSEC));
}

static ssize_t threshold_ms_store(struct device *dev, struct device_attribute *attr,
				  const char *buf, size_t count)
{
	unsigned int ms;
	int ret = kstrtouint(buf, 0, &ms);

	if (!ret)
		ret = pmuk_wdt_set_threshold(ms * NSEC_PER_MSEC);
	return ret ?: count;
}
static DEVICE_ATTR_RW(threshold_ms);

static ssize_t reports_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", atomic_read(&pmuk_wdt.reports));
}
static DEVICE_ATTR_RO(reports);

static struct attribute *pmuk_wdt_attrs[] = {
	&dev_attr_threshold_ms.attr,
	&dev_attr_reports.attr,
	NULL,
};

static const struct attribute_group pmuk_wdt_group = {
	.name	= "pmuk_wdt",
	.attrs	= pmuk_wdt_attrs,
};

const struct attribute_group *pmuk_wdt_groups[] = { &pmuk_wdt_group, NULL };

/* ---- each CPU ---- */

static ssize_t level_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", pmuk_wdt_level_name(pmuk_wdt_level(dev->id)));
}
static DEVICE_ATTR_RO(level);

static ssize_t clock_khz_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	const struct pmuk_wdt_cpu *c = pmuk_wdt_of(dev->id);

	return sysfs_emit(buf, "%llu\n", pmuk_wdt_khz(READ_ONCE(c->clock.rate)));
}
static DEVICE_ATTR_RO(clock_khz);

static ssize_t stuck_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", atomic_read(&pmuk_wdt_of(dev->id)->reported));
}
static DEVICE_ATTR_RO(stuck);

static struct attribute *pmuk_wdt_cpu_attrs[] = {
	&dev_attr_level.attr,
	&dev_attr_clock_khz.attr,
	&dev_attr_stuck.attr,
	NULL,
};

static const struct attribute_group pmuk_wdt_cpu_group = {
	.name	= "pmuk_wdt",
	.attrs	= pmuk_wdt_cpu_attrs,
};

/*
 * The CPUs that have these files. A CPU that is added after the module was loaded has no files, and
 * is watched nevertheless.
 */
static struct cpumask pmuk_wdt_shown;

void pmuk_wdt_sysfs_init(void)
{
	struct device *dev;
	int cpu;

	for_each_possible_cpu(cpu) {
		dev = get_cpu_device(cpu);
		if (!dev)
			continue;
		if (sysfs_create_group(&dev->kobj, &pmuk_wdt_cpu_group))
			dev_warn(dev, "pmuk_wdt: no files in sysfs\n");
		else
			cpumask_set_cpu(cpu, &pmuk_wdt_shown);
	}
}

void pmuk_wdt_sysfs_exit(void)
{
	struct device *dev;
	int cpu;

	for_each_cpu(cpu, &pmuk_wdt_shown) {
		dev = get_cpu_device(cpu);
		if (dev)
			sysfs_remove_group(&dev->kobj, &pmuk_wdt_cpu_group);
	}
	cpumask_clear(&pmuk_wdt_shown);
}
