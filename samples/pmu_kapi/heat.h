/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hot pages, found by sampled data addresses. One context samples on all CPUs and writes the
 * physical addresses into its buffers. The consumer counts these per page whenever it likes, and
 * lets the pages cool down. Accesses that a cache has served do not reach memory, and do not make
 * the page hot. pmuk_heat.c uses this, and the suite pmuk_heat tests it.
 */
#ifndef _PMUK_HEAT_H
#define _PMUK_HEAT_H

#include <linux/cpumask.h>
#include <linux/log2.h>
#include <linux/pfn.h>
#include <linux/pmu_kapi.h>
#include <linux/sched.h>
#include <linux/xarray.h>

/* Each sample adds so much to its page. After a single sample, the 8th cooling forgets the page. */
#define PMUK_HEAT_SAMPLE	128

/**
 * struct pmuk_heat - the hot pages of the machine; its user serialises all calls
 * @ctx: the context that samples
 * @pages: page frame number -> heat
 * @samples: samples that have made a page hotter, also one that is forgotten since
 * @cached: samples of accesses that a cache has served
 * @unknown: samples without a physical address
 * @lost: samples that the buffers or @pages had no room for
 */
struct pmuk_heat {
	struct pmuk_context *ctx;
	struct xarray pages;
	u64 samples;
	u64 cached;
	u64 unknown;
	u64 lost;
};

struct pmuk_heat_page {
	unsigned long pfn;
	unsigned long heat;
};

/*
 * Samples every @period'th event of @pmc on all CPUs, and completes @more when a buffer should be
 * read. A period of 16 or more gets up to an eighth longer at random. Without that, a loop whose
 * length divides the period would always be sampled at the same access.
 */
static int pmuk_heat_start(struct pmuk_heat *h, struct pmuk_pmc pmc, u64 period,
			   struct completion *more)
{
	const struct pmuk_perf_format fields = {
		.sample_type = PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_PHYS_ADDR,
	};
	const struct pmuk_context_attr attr = {
		.name = "pmuk_heat",
		.rank = PMUK_RANK_BACKGROUND,
		.buffer.nr_pages = 16,
		.format_arg = &fields,
		.format_arg_size = sizeof(fields),
		.completion = more,
	};
	struct pmuk_pmd pmd = { .short_reset = period, .random_seed = 1 };
	struct pmuk_target machine = { .type = PMUK_TARGET_CPUS };
	struct pmuk_context *ctx __free(pmuk_context) = pmuk_create_context(&attr);
	int ret;

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	if (!period)
		return -EINVAL;
	if (period >= 16)
		pmd.random_mask = rounddown_pow_of_two(min(period, U32_MAX)) / 8 - 1;
	if (pmuk_write_pmcs(ctx, &pmc, 1) != 1 || pmuk_write_pmds(ctx, &pmd, 1) != 1)
		return pmc.ret ?: pmd.ret;
	ret = pmuk_load_context(ctx, &machine) ?: pmuk_start(ctx, NULL);
	if (ret)
		return ret;
	*h = (struct pmuk_heat){ .ctx = no_free_ptr(ctx) };
	xa_init(&h->pages);
	return 0;
}

static void pmuk_heat_stop(struct pmuk_heat *h)
{
	pmuk_close(h->ctx);
	xa_destroy(&h->pages);
}

/* A PMU names the level in mem_lvl, in mem_lvl_num, or in both. Remote caches count as memory. */
static bool pmuk_heat_is_cached(union perf_mem_data_src src)
{
	u64 caches = PERF_MEM_LVL_L1 | PERF_MEM_LVL_LFB | PERF_MEM_LVL_L2 | PERF_MEM_LVL_L3;

	if ((src.mem_lvl & PERF_MEM_LVL_HIT) && (src.mem_lvl & caches))
		return true;
	if (src.mem_lvl_num >= PERF_MEM_LVLNUM_L1 && src.mem_lvl_num <= PERF_MEM_LVLNUM_L4)
		return true;
	return src.mem_lvl_num == PERF_MEM_LVLNUM_ANY_CACHE ||
	       src.mem_lvl_num == PERF_MEM_LVLNUM_LFB;
}

static void pmuk_heat_add(struct pmuk_heat *h, u64 data_src, u64 phys_addr)
{
	unsigned long pfn = PFN_DOWN(phys_addr);
	unsigned long heat = xa_to_value(xa_load(&h->pages, pfn)) + PMUK_HEAT_SAMPLE;
	union perf_mem_data_src src = { .val = data_src };

	if (pmuk_heat_is_cached(src))
		h->cached++;
	else if (!phys_addr)
		h->unknown++;
	else if (xa_err(xa_store(&h->pages, pfn, xa_mk_value(heat), GFP_KERNEL)))
		h->lost++;
	else
		h->samples++;
}

static void pmuk_heat_collect_from(struct pmuk_heat *h, struct pmuk_buffer *b)
{
	const struct perf_event_header *rec;
	struct pmuk_reader r;
	const u64 *fields;

	if (pmuk_buffer_claim(b, &r))
		return;	/* the CPU was never online */
	pmuk_for_each_record(rec, &r) {
		fields = (const u64 *)(rec + 1);
		if (rec->type == PERF_RECORD_SAMPLE)
			pmuk_heat_add(h, fields[0], fields[1]);
		else if (rec->type == PERF_RECORD_LOST)
			h->lost += fields[1];
		cond_resched();
	}
	pmuk_buffer_release(&r);
}

/* Counts what the buffers have. May sleep. */
static void pmuk_heat_collect(struct pmuk_heat *h)
{
	int cpu;

	for_each_possible_cpu(cpu)
		pmuk_heat_collect_from(h, pmuk_context_buffer(h->ctx, cpu));
}

/* Halves the heat of all pages, and forgets the cold ones. May sleep. */
static void pmuk_heat_cool(struct pmuk_heat *h)
{
	unsigned long pfn;
	void *entry;

	xa_for_each(&h->pages, pfn, entry) {
		unsigned long heat = xa_to_value(entry) / 2;

		xa_store(&h->pages, pfn, heat ? xa_mk_value(heat) : NULL, GFP_KERNEL);
		cond_resched();
	}
}

/* Writes the hottest pages to @top, the hottest first, and returns how many it wrote. May sleep. */
static int pmuk_heat_top(struct pmuk_heat *h, struct pmuk_heat_page *top, int size)
{
	unsigned long pfn;
	int i, nr = 0;
	void *entry;

	xa_for_each(&h->pages, pfn, entry) {
		unsigned long heat = xa_to_value(entry);

		cond_resched();
		if (nr == size && top[size - 1].heat >= heat)
			continue;
		nr = min(nr + 1, size);
		for (i = nr - 1; i && top[i - 1].heat < heat; i--)
			top[i] = top[i - 1];
		top[i] = (struct pmuk_heat_page){ pfn, heat };
	}
	return nr;
}

#endif /* _PMUK_HEAT_H */
