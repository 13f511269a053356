// SPDX-License-Identifier: GPL-2.0
/*
 * A format without records: how many overflows came at which instructions. The handler adds
 * one to a bucket of its CPU's area, in whatever context the PMU interrupts, and the
 * consumer reads the areas whenever it likes.
 */
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/sizes.h>

#include "context.h"
#include "registry.h"

/* The largest area of one CPU, in bytes. */
#define PMUK_HISTOGRAM_MAX	SZ_16M

/* The last bucket may have fewer bytes. */
static u64 pmuk_histogram_nr(const struct pmuk_histogram_arg *arg)
{
	return ((arg->size - 1) >> arg->shift) + 1;
}

static size_t pmuk_histogram_bytes(const struct pmuk_histogram_arg *arg)
{
	return size_mul(pmuk_histogram_nr(arg), sizeof(atomic64_t));
}

static int pmuk_histogram_validate(const void *arg, size_t size,
				   const struct pmuk_context_attr *attr)
{
	const struct pmuk_histogram_arg *a = arg;

	if (size != sizeof(*a) || attr->buffer.nr_pages)
		return -EINVAL;
	if (!a->size || a->shift >= 64 || a->base + (a->size - 1) < a->base)
		return -EINVAL;
	return pmuk_histogram_bytes(a) <= PMUK_HISTOGRAM_MAX ? 0 : -E2BIG;
}

static size_t pmuk_histogram_getsize(const void *arg, size_t size)
{
	return sizeof(struct pmuk_histogram) + pmuk_histogram_bytes(arg);
}

static int pmuk_histogram_init(void *area, int cpu, const void *arg, size_t size)
{
	const struct pmuk_histogram_arg *a = arg;
	struct pmuk_histogram *h = area;

	h->base = a->base;
	h->size = a->size;
	h->shift = a->shift;
	h->nr = pmuk_histogram_nr(a);
	return 0;
}

static atomic64_t *pmuk_histogram_bucket(struct pmuk_histogram *h, const struct pmuk_sample *sample)
{
	u64 offset = sample->ip - h->base;

	if (!(sample->valid & PERF_SAMPLE_IP) || offset >= h->size)
		return &h->other;
	return &h->counts[offset >> h->shift];
}

static u32 pmuk_histogram_handler(const struct pmuk_format_event *event)
{
	u32 action = PMUK_FORMAT_RESET;

	if (event->area)
		atomic64_inc(pmuk_histogram_bucket(event->area, event->sample));
	if (event->notify)
		action |= PMUK_FORMAT_NOTIFY | (event->mask ? PMUK_FORMAT_MASK : 0);
	return action;
}

static struct pmuk_format pmuk_histogram = {
	.name		= "histogram",
	.owner		= THIS_MODULE,
	.validate	= pmuk_histogram_validate,
	.getsize	= pmuk_histogram_getsize,
	.init		= pmuk_histogram_init,
	.handler	= pmuk_histogram_handler,
};

int __init pmuk_histogram_register(void)
{
	pmuk_histogram.uuid = pmuk_format_histogram;
	return pmuk_register_format(&pmuk_histogram);
}

void pmuk_histogram_unregister(void)
{
	pmuk_unregister_format(&pmuk_histogram);
}
