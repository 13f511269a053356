// SPDX-License-Identifier: GPL-2.0
/*
 * The pages of a buffer, mapped twice in a row: what begins in the first half is contiguous however
 * far it goes.
 */
#include <linux/bits.h>
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "buffer.h"

/* 2 GiB with pages of 4 KiB. Positions would allow more, but such a size must be a mistake. */
#define PMUK_PAGES_MAX	BIT(19)

bool pmuk_pages_nr_ok(unsigned long nr)
{
	return !nr || (is_power_of_2(nr) && nr <= PMUK_PAGES_MAX);
}

/* The first page of a contiguous piece has the piece's order, as in perf's AUX areas. */
static int pmuk_pages_add(struct pmuk_pages *p, unsigned int at, int node, unsigned int order,
			  bool prefer)
{
	gfp_t gfp = p->gfp | __GFP_ZERO | __GFP_NOWARN;
	struct page *page;
	unsigned int i;

	gfp |= order && prefer ? __GFP_NORETRY : __GFP_RETRY_MAYFAIL;
	page = alloc_pages_node(node, gfp, order);
	if (!page)
		return -ENOMEM;
	if (order) {
		split_page(page, order);
		SetPagePrivate(page);
		set_page_private(page, order);
	}
	for (i = 0; i < BIT(order); i++) {
		p->pages[at + i] = page + i;
		p->pages[p->nr + at + i] = page + i;
	}
	return 0;
}

/* A request for more memory than there is fails, and no process is killed for it. */
static int pmuk_pages_fill(struct pmuk_pages *p, int node, unsigned int order, bool prefer)
{
	unsigned int at;

	if (si_mem_available() < p->nr)
		return -ENOMEM;
	for (at = 0; at < p->nr; at += BIT(order)) {
		while (pmuk_pages_add(p, at, node, order, prefer)) {
			if (!prefer || !order)
				return -ENOMEM;
			order--;
		}
	}
	p->map = vmap(p->pages, 2 * p->nr, VM_MAP, PAGE_KERNEL);
	return p->map ? 0 : -ENOMEM;
}

/*
 * @gfp is GFP_KERNEL, or GFP_KERNEL_ACCOUNT to charge the memory cgroup of the caller. The pages
 * are near @node, or anywhere with NUMA_NO_NODE. They are contiguous in memory in pieces of @order;
 * with @prefer, pieces are smaller once there are no more of @order. Returns 0 or -ENOMEM.
 */
int pmuk_pages_alloc(struct pmuk_pages *p, unsigned int nr, gfp_t gfp, int node,
		     unsigned int order, bool prefer)
{
	int ret;

	*p = (struct pmuk_pages){ .nr = nr, .gfp = gfp };
	if (!nr)
		return 0;
	p->pages = kvcalloc(2 * nr, sizeof(*p->pages), gfp | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	ret = p->pages ? pmuk_pages_fill(p, node, order, prefer) : -ENOMEM;
	if (ret)
		pmuk_pages_free(p);
	return ret;
}

static void pmuk_pages_drop(struct page *page)
{
	if (PagePrivate(page)) {
		ClearPagePrivate(page);
		set_page_private(page, 0);
	}
	__free_page(page);
}

void pmuk_pages_free(struct pmuk_pages *p)
{
	unsigned int i;

	vunmap(p->map);
	for (i = 0; p->pages && i < p->nr && p->pages[i]; i++)
		pmuk_pages_drop(p->pages[i]);
	kvfree(p->pages);
	*p = (struct pmuk_pages){};
}
