/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A format without records: how many overflows came at which instructions. The handler adds one to
 * a bucket of its CPU's area, in whatever context the PMU interrupts, and the consumer reads the
 * areas whenever it likes. pmuk_histogram.c uses this format, and the KUnit tests of formats do.
 */
#ifndef _PMUK_HISTOGRAM_H
#define _PMUK_HISTOGRAM_H

#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/pmu_kapi.h>
#include <linux/sizes.h>

/* The uuid for &pmuk_context_attr.format. */
#define PMUK_HISTOGRAM_UUID	\
	UUID_INIT(0x2f0c5a6e, 0x7c0e, 0x4d0b, 0x9a, 0x51, 0x3e, 0x86, 0x1b, 0xd4, 0x77, 0xc2)

/* The largest area of one CPU, in bytes. */
#define PMUK_HISTOGRAM_MAX	SZ_16M

/**
 * struct pmuk_histogram_arg - format_arg of a context with the histogram
 * @base: first address of the range
 * @size: bytes of the range, not 0; it may end with the address space, and not go beyond
 * @shift: log2 of each bucket's bytes, below 64
 *
 * A context with more than 2^21 buckets is refused with -E2BIG. Other wrong values are refused
 * with -EINVAL, and so is a buffer, which would stay empty.
 */
struct pmuk_histogram_arg {
	u64 base;
	u64 size;
	u8 shift;
};

/**
 * struct pmuk_histogram - a CPU's area of a context with the histogram
 * @base: as &pmuk_histogram_arg.base
 * @size: as &pmuk_histogram_arg.size
 * @shift: as &pmuk_histogram_arg.shift
 * @nr: how many buckets there are
 * @other: overflows at addresses outside of the range, and at unknown addresses
 * @counts: overflows in each bucket. Address ip belongs to bucket (ip - @base) >> @shift
 *
 * Its CPU writes the area, in NMI too. Any CPU may read the counts with atomic64_read(). See
 * pmuk_format_area().
 */
struct pmuk_histogram {
	u64 base;
	u64 size;
	u8 shift;
	u64 nr;
	atomic64_t other;
	atomic64_t counts[];
};

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

static struct pmuk_format pmuk_histogram_format = {
	.name		= "histogram",
	.uuid		= PMUK_HISTOGRAM_UUID,
	.owner		= THIS_MODULE,
	.validate	= pmuk_histogram_validate,
	.getsize	= pmuk_histogram_getsize,
	.init		= pmuk_histogram_init,
	.handler	= pmuk_histogram_handler,
};

#endif /* _PMUK_HISTOGRAM_H */
