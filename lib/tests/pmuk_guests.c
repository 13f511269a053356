// SPDX-License-Identifier: GPL-2.0
/*
 * Counts the events that include guests, as perf core does for mediated vPMUs. While there is such
 * an event, perf_create_mediated_pmu() returns -EBUSY, and no vCPU can be created. Only machines
 * with KVM on x86 have such a vPMU, so this module stands in for perf core on the PMU that counts
 * cycles, and counts events that yield to guests, too. Write 1 to pmuk_guests in debugfs to begin,
 * and 0 to end. Read it for the number of events that were created since then and include guests.
 */
#include <linux/atomic.h>
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>

static DEFINE_MUTEX(guests_lock);
static struct pmu *guests_pmu;			/* guests_lock; NULL: off */
static int (*guests_real_init)(struct perf_event *event);
static atomic_t guests_included;

static int guests_event_init(struct perf_event *event)
{
	int ret = guests_real_init(event);

	if (!ret && !event->attr.exclude_guest)
		atomic_inc(&guests_included);
	return ret;
}

static struct pmu *guests_find_pmu(void)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_HARDWARE,
		.size		= sizeof(attr),
		.config		= PERF_COUNT_HW_CPU_CYCLES,
		.disabled	= 1,
		.exclude_guest	= 1,
	};
	struct perf_event *event;
	struct pmu *pmu;

	event = perf_event_create_kernel_counter(&attr, 0, NULL, NULL, NULL);
	if (IS_ERR(event))
		return ERR_CAST(event);
	pmu = event->pmu;
	perf_event_release_kernel(event);
	return pmu;
}

static int guests_begin(void)
{
	struct pmu *pmu = guests_find_pmu();

	if (IS_ERR(pmu))
		return PTR_ERR(pmu);
	atomic_set(&guests_included, 0);
	guests_real_init = pmu->event_init;
	guests_pmu = pmu;
	WRITE_ONCE(pmu->event_init, guests_event_init);
	return 0;
}

static void guests_end(void)
{
	WRITE_ONCE(guests_pmu->event_init, guests_real_init);
	guests_pmu = NULL;
}

static int guests_get(void *data, u64 *value)
{
	*value = atomic_read(&guests_included);
	return 0;
}

static int guests_set(void *data, u64 value)
{
	guard(mutex)(&guests_lock);
	if (value && !guests_pmu)
		return guests_begin();
	if (!value && guests_pmu)
		guests_end();
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(guests_fops, guests_get, guests_set, "%llu\n");

static struct dentry *guests_file;

static int __init guests_init(void)
{
	guests_file = debugfs_create_file_unsafe("pmuk_guests", 0600, NULL, NULL, &guests_fops);
	return 0;
}
module_init(guests_init);

static void __exit guests_exit(void)
{
	debugfs_remove(guests_file);
	guests_set(NULL, 0);
}
module_exit(guests_exit);

MODULE_DESCRIPTION("Events that keep guests from having the PMU");
MODULE_LICENSE("GPL");
