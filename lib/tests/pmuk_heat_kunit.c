// SPDX-License-Identifier: GPL-2.0
/*
 * The tests make the simulated PMU count memory accesses, and check which pages
 * samples/pmu_kapi/heat.h finds hot. A small cache serves some of the accesses.
 */
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/rbtree.h>

#include "../../samples/pmu_kapi/heat.h"
#include "pmuk_ctx.h"
#include "pmuk_suite.h"
#include "pmuk_test.h"

/* Short periods have no random part, so the tests know which accesses are sampled. */
#define PERIOD		7

#define PAGES		256
#define ITEM_SIZE	256
#define ITEMS		(PAGES * (PAGE_SIZE / ITEM_SIZE))

/* Four of five lookups are of one of this many keys. The keys change from phase to phase. */
#define WANTED		16
#define PHASES		4
#define PHASE		40000		/* accesses */

/* The cache has so many items, and a place for each. */
#define CACHED		16

/* A page is hot if it has more than 1/HOT_SHARE of all accesses that no cache has served. */
#define HOT_SHARE	200

struct item {
	struct rb_node node;
	u32 key;
};

/* Pages of items, and accesses to them. */
struct trace {
	struct pmuk_sim_config config;
	struct pmuk_sim *sim;
	struct pmuk_heat heat_by_samples;
	void *pages;
	const void *address;		/* the PMU counts an access to this, ... */
	union perf_mem_data_src source;	/* ... and this has served it */
	unsigned int overflows[2];	/* by event */
	const void *cache[CACHED];
	unsigned long heat[PAGES];	/* by all accesses, not by samples only */
	unsigned int nr_accesses;
	struct rb_root tree;
};

typedef void (*fill_t)(struct perf_event *event, struct perf_sample_data *sample, void *data);

static void fill_address(struct perf_event *event, struct perf_sample_data *sample, void *data)
{
	struct trace *t = data;

	sample->data_src = t->source;
	sample->phys_addr = virt_to_phys((void *)t->address);
	sample->sample_flags |= PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_PHYS_ADDR;
	t->overflows[event->attr.config]++;
}

static struct pmuk_pmc event_of(const struct trace *t)
{
	return (struct pmuk_pmc){ .type = pmuk_sim_type(t->sim), .flags = PMUK_NO_THROTTLE };
}

KUNIT_DEFINE_ACTION_WRAPPER(put_heat, pmuk_heat_stop, struct pmuk_heat *);

static void put_pages(void *pages)
{
	free_pages_exact(pages, PAGES * PAGE_SIZE);
}

/* Returns a trace without accesses, on a PMU that fills in addresses if @fill does. */
static struct trace *new_trace(struct kunit *test, fill_t fill)
{
	struct trace *t = pmuk_test_zalloc(test, sizeof(*t));

	t->config = (struct pmuk_sim_config){
		.name = "pmuk_sim", .nr_counters = 2, .width = 32, .fill = fill, .data = t,
	};
	t->sim = pmuk_test_sim_config(test, &t->config);
	pmuk_test_pin_first(test);
	t->pages = alloc_pages_exact(PAGES * PAGE_SIZE, GFP_KERNEL | __GFP_ZERO);
	KUNIT_ASSERT_NOT_NULL(test, t->pages);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_pages, t->pages), 0);
	t->address = t->pages;
	t->source.val = PERF_MEM_NA;
	KUNIT_ASSERT_EQ(test, pmuk_heat_start(&t->heat_by_samples, event_of(t), PERIOD, NULL), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_heat, &t->heat_by_samples), 0);
	return t;
}

static unsigned int page_of(const struct trace *t, const void *address)
{
	return (address - t->pages) / PAGE_SIZE;
}

static unsigned long pfn_of(const struct trace *t, unsigned int page)
{
	return PFN_DOWN(virt_to_phys(t->pages)) + page;
}

/* Makes the PMU take @samples samples of accesses to @page, and collects them. */
static void sample_page(struct trace *t, unsigned int page, u64 samples)
{
	t->address = t->pages + page * PAGE_SIZE;
	pmuk_sim_count(t->sim, 0, samples * PERIOD);
	pmuk_heat_collect(&t->heat_by_samples);
}

/* ---- accesses of a real algorithm: the nodes that rb_find() visits ---- */

struct lookup {
	struct trace *trace;
	u32 key;
};

/* An access to @item, by the cache if that has the item already. */
static void access_item(struct trace *t, const struct item *item)
{
	const void **place = &t->cache[((void *)item - t->pages) / ITEM_SIZE % CACHED];

	t->address = item;
	if (*place == item) {
		t->source.val = PERF_MEM_S(OP, LOAD) | PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVL, L1);
	} else {
		t->source.val = PERF_MEM_S(OP, LOAD) | PERF_MEM_S(LVL, HIT) |
				PERF_MEM_S(LVL, LOC_RAM);
		t->heat[page_of(t, item)] += PMUK_HEAT_SAMPLE;
		*place = item;
	}
	pmuk_sim_count(t->sim, 0, 1);
	if (!(++t->nr_accesses % 10000))
		pmuk_heat_collect(&t->heat_by_samples);
}

static int visit(const void *key, const struct rb_node *node)
{
	const struct item *item = rb_entry(node, struct item, node);
	const struct lookup *look = key;

	access_item(look->trace, item);
	return look->key < item->key ? -1 : look->key > item->key;
}

static bool less(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct item, node)->key < rb_entry(b, struct item, node)->key;
}

/* Plants a tree of items with the keys 0 ... ITEMS - 1, which are in the pages in no order. */
static void plant(struct trace *t, struct rnd_state *rnd)
{
	u32 i, other;

	for (i = 0; i < ITEMS; i++) {
		struct item *item = t->pages + i * ITEM_SIZE, *swapped;

		other = prandom_u32_state(rnd) % (i + 1);
		swapped = t->pages + other * ITEM_SIZE;
		item->key = swapped->key;
		swapped->key = i;
	}
	for (i = 0; i < ITEMS; i++) {
		struct item *item = t->pages + i * ITEM_SIZE;

		rb_add(&item->node, &t->tree, less);
	}
}

/* Looks up random keys. Four of five are from @first on. */
static void look_up(struct kunit *test, struct trace *t, struct rnd_state *rnd, u32 first)
{
	unsigned int end = t->nr_accesses + PHASE;
	struct lookup look = { .trace = t };

	while (t->nr_accesses < end) {
		bool wanted = prandom_u32_state(rnd) % 5;

		look.key = wanted ? first + prandom_u32_state(rnd) % WANTED :
				    prandom_u32_state(rnd) % ITEMS;
		KUNIT_ASSERT_NOT_NULL(test, rb_find(&look, &t->tree, visit));
		cond_resched();
	}
	pmuk_heat_collect(&t->heat_by_samples);
}

struct found {
	unsigned int hot;	/* pages hot by all accesses, */
	unsigned int found;	/* ... by samples, */
	unsigned int both;	/* ... and by both */
};

static unsigned long sampled_heat(struct trace *t, unsigned int page)
{
	return xa_to_value(xa_load(&t->heat_by_samples.pages, pfn_of(t, page)));
}

/* Compares the pages that are hot by samples with those that are hot by all accesses. */
static void find_hot_pages(struct trace *t, struct found *f)
{
	unsigned long by_accesses = 0, by_samples = 0;
	unsigned int page;

	for (page = 0; page < PAGES; page++) {
		by_accesses += t->heat[page];
		by_samples += sampled_heat(t, page);
	}
	for (page = 0; page < PAGES; page++) {
		bool is_hot = t->heat[page] > by_accesses / HOT_SHARE;
		bool is_found = sampled_heat(t, page) > by_samples / HOT_SHARE;

		f->hot += is_hot;
		f->found += is_found;
		f->both += is_hot && is_found;
	}
}

static void cool(struct trace *t)
{
	unsigned int page;

	pmuk_heat_cool(&t->heat_by_samples);
	for (page = 0; page < PAGES; page++)
		t->heat[page] /= 2;
}

static void hot_pages_are_found(struct kunit *test)
{
	struct trace *t = new_trace(test, fill_address);
	struct rnd_state rnd;
	struct found f = {};
	int i;

	prandom_seed_state(&rnd, 1);
	plant(t, &rnd);
	for (i = 0; i < PHASES; i++) {
		cool(t);
		look_up(test, t, &rnd, i * ITEMS / PHASES);
		find_hot_pages(t, &f);
	}
	KUNIT_EXPECT_EQ(test, t->heat_by_samples.samples + t->heat_by_samples.cached,
			t->nr_accesses / PERIOD);
	KUNIT_EXPECT_GT(test, t->heat_by_samples.cached, 0);
	KUNIT_EXPECT_EQ(test, t->heat_by_samples.lost, 0);
	kunit_info(test, "%u pages hot by accesses, %u by samples, %u by both", f.hot, f.found,
		   f.both);
	KUNIT_EXPECT_GE(test, f.hot, PHASES * PAGES / 16);
	KUNIT_EXPECT_LE(test, f.hot, PHASES * PAGES / 4);
	KUNIT_EXPECT_GE_MSG(test, f.both * 10, f.found * 9, "precision");
	KUNIT_EXPECT_GE_MSG(test, f.both * 10, f.hot * 9, "recall");
}

/* ---- heat ---- */

static void expect_page(struct kunit *test, struct trace *t, const struct pmuk_heat_page *top,
			unsigned int page, unsigned long heat)
{
	KUNIT_EXPECT_EQ(test, top->pfn, pfn_of(t, page));
	KUNIT_EXPECT_EQ(test, top->heat, heat);
}

static void hottest_pages_come_first(struct kunit *test)
{
	struct trace *t = new_trace(test, fill_address);
	struct pmuk_heat_page top[3];

	KUNIT_EXPECT_EQ(test, pmuk_heat_top(&t->heat_by_samples, top, 3), 0);
	sample_page(t, 1, 2);
	sample_page(t, 0, 4);
	KUNIT_EXPECT_EQ(test, pmuk_heat_top(&t->heat_by_samples, top, 3), 2);
	expect_page(test, t, &top[0], 0, 4 * PMUK_HEAT_SAMPLE);
	expect_page(test, t, &top[1], 1, 2 * PMUK_HEAT_SAMPLE);
	sample_page(t, 2, 1);
	sample_page(t, 3, 3);
	KUNIT_EXPECT_EQ(test, pmuk_heat_top(&t->heat_by_samples, top, 3), 3);
	expect_page(test, t, &top[0], 0, 4 * PMUK_HEAT_SAMPLE);
	expect_page(test, t, &top[1], 3, 3 * PMUK_HEAT_SAMPLE);
	expect_page(test, t, &top[2], 1, 2 * PMUK_HEAT_SAMPLE);
}

static void pages_cool_down(struct kunit *test)
{
	struct trace *t = new_trace(test, fill_address);
	struct pmuk_heat_page top[2];
	int i;

	sample_page(t, 0, 16);
	pmuk_heat_cool(&t->heat_by_samples);
	pmuk_heat_cool(&t->heat_by_samples);
	sample_page(t, 1, 5);
	KUNIT_EXPECT_EQ(test, pmuk_heat_top(&t->heat_by_samples, top, 2), 2);
	expect_page(test, t, &top[0], 1, 5 * PMUK_HEAT_SAMPLE);
	expect_page(test, t, &top[1], 0, 4 * PMUK_HEAT_SAMPLE);
	for (i = 0; i < 11; i++)
		pmuk_heat_cool(&t->heat_by_samples);
	KUNIT_EXPECT_TRUE(test, xa_empty(&t->heat_by_samples.pages));
}

/* ---- samples without a page ---- */

static void samples_without_address_are_counted(struct kunit *test)
{
	struct trace *t = new_trace(test, NULL);

	sample_page(t, 0, 3);
	KUNIT_EXPECT_EQ(test, t->heat_by_samples.unknown, 3);
	KUNIT_EXPECT_EQ(test, t->heat_by_samples.samples, 0);
	KUNIT_EXPECT_TRUE(test, xa_empty(&t->heat_by_samples.pages));
}

/* The next record says how many were lost before it. */
static void lost_samples_are_counted(struct kunit *test)
{
	struct trace *t = new_trace(test, fill_address);
	u32 fit = 16 * PAGE_SIZE / 24, n = fit + 100;

	sample_page(t, 0, n);
	sample_page(t, 0, 1);
	KUNIT_EXPECT_EQ(test, t->heat_by_samples.samples + t->heat_by_samples.lost, n + 1);
	KUNIT_EXPECT_GE(test, t->heat_by_samples.lost, 100);
	KUNIT_EXPECT_LE(test, t->heat_by_samples.samples, fit + 1);
}

/* A cache's name is its level's bit, its level's number, or both. */
static void accesses_to_caches_heat_nothing(struct kunit *test)
{
	static const u64 caches[] = {
		PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVL, L1),
		PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVL, LFB),
		PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVL, L3),
		PERF_MEM_S(LVLNUM, L2),
		PERF_MEM_S(LVL, NA) | PERF_MEM_S(LVLNUM, L1), PERF_MEM_S(LVLNUM, L4),
		PERF_MEM_S(LVLNUM, ANY_CACHE), PERF_MEM_S(LVLNUM, LFB),
	};
	static const u64 others[] = {
		PERF_MEM_NA, PERF_MEM_S(LVL, MISS) | PERF_MEM_S(LVL, L3), PERF_MEM_S(LVLNUM, RAM),
		PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVL, LOC_RAM), PERF_MEM_S(LVLNUM, CXL),
	};
	struct trace *t = new_trace(test, fill_address);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(caches); i++) {
		t->source.val = caches[i];
		sample_page(t, 0, 1);
	}
	KUNIT_EXPECT_EQ(test, t->heat_by_samples.cached, ARRAY_SIZE(caches));
	KUNIT_EXPECT_TRUE(test, xa_empty(&t->heat_by_samples.pages));
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		t->source.val = others[i];
		sample_page(t, 0, 1);
	}
	KUNIT_EXPECT_EQ(test, t->heat_by_samples.samples, ARRAY_SIZE(others));
}

static void all_cpus_are_sampled(struct kunit *test)
{
	struct trace *t = new_trace(test, fill_address);
	int cpu;

	for_each_online_cpu(cpu)
		KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(t->sim, cpu, 0, PERIOD), PERIOD);
	pmuk_heat_collect(&t->heat_by_samples);
	KUNIT_EXPECT_EQ(test, t->heat_by_samples.samples, num_online_cpus());
}

/* ---- starts ---- */

static void start_says_why_it_fails(struct kunit *test)
{
	struct trace *t = new_trace(test, fill_address);
	struct pmuk_pmc pmc = event_of(t);
	struct pmuk_heat none;

	KUNIT_EXPECT_EQ(test, pmuk_heat_start(&none, pmc, 0, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_heat_start(&none, pmc, U64_MAX, NULL), -EINVAL);
	pmc.config = PMUK_SIM_EVENTS;
	KUNIT_EXPECT_EQ(test, pmuk_heat_start(&none, pmc, PERIOD, NULL), -ENOENT);
}

/* Makes events until the next sample, and returns their number. */
static u32 next_period(struct trace *t)
{
	u32 before = t->overflows[1], n;

	for (n = 0; t->overflows[1] == before && n < 10000; n++)
		pmuk_sim_count(t->sim, 1, 1);
	return n;
}

/* A long period differs from sample to sample, by less than an eighth. */
static void long_periods_are_random(struct kunit *test)
{
	struct trace *t = new_trace(test, fill_address);
	struct pmuk_pmc pmc = event_of(t);
	u32 i, long_ones = 0;
	struct pmuk_heat other;

	pmc.config = 1;
	KUNIT_ASSERT_EQ(test, pmuk_heat_start(&other, pmc, 1024, NULL), 0);
	for (i = 0; i < 64; i++) {
		u32 period = next_period(t);

		KUNIT_EXPECT_GE(test, period, 1024);
		KUNIT_EXPECT_LT(test, period, 1024 + 128);
		long_ones += period >= 1024 + 64;
	}
	KUNIT_EXPECT_GT(test, long_ones, 16);
	KUNIT_EXPECT_LT(test, long_ones, 48);
	pmuk_heat_stop(&other);
}

static struct kunit_case pmuk_heat_cases[] = {
	KUNIT_CASE(hot_pages_are_found),
	KUNIT_CASE(hottest_pages_come_first),
	KUNIT_CASE(pages_cool_down),
	KUNIT_CASE(samples_without_address_are_counted),
	KUNIT_CASE(lost_samples_are_counted),
	KUNIT_CASE(accesses_to_caches_heat_nothing),
	KUNIT_CASE(all_cpus_are_sampled),
	KUNIT_CASE(start_says_why_it_fails),
	KUNIT_CASE(long_periods_are_random),
	{}
};

PMUK_SUITE(pmuk_heat, pmuk_test_init, "KUnit tests of samples/pmu_kapi/heat.h");
