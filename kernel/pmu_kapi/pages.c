// SPDX-License-Identifier: GPL-2.0
/*
 * The data pages of a buffer, mapped twice in a row: what begins in the first half
 * is contiguous however far it goes.
 */
#include <linux/bits.h>
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "buffer.h"

/* 2 GiB with pages of 4 KiB: positions are 64 bits wide, sizes are not to be silly. */
#define PMUK_PAGES_MAX	BIT(19)

bool pmuk_pages_nr_ok(unsigned long nr)
{
	return !nr || (is_power_of_2(nr) && nr <= PMUK_PAGES_MAX);
}

/* Whoever asks for more than there is gets nothing, and nobody is killed for it. */
static int pmuk_pages_fill(struct pmuk_pages *p, int node)
{
	const gfp_t gfp = GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;
	unsigned int i;

	if (si_mem_available() < p->nr)
		return -ENOMEM;
	for (i = 0; i < p->nr; i++) {
		p->pages[i] = alloc_pages_node(node, gfp, 0);
		if (!p->pages[i])
			return -ENOMEM;
		p->pages[p->nr + i] = p->pages[i];
	}
	p->map = vmap(p->pages, 2 * p->nr, VM_MAP, PAGE_KERNEL);
	return p->map ? 0 : -ENOMEM;
}

/* Near @node, or anywhere with NUMA_NO_NODE. Returns 0 or -ENOMEM. */
int pmuk_pages_alloc(struct pmuk_pages *p, unsigned int nr, int node)
{
	int ret;

	*p = (struct pmuk_pages){ .nr = nr };
	if (!nr)
		return 0;
	p->pages = kvcalloc(2 * nr, sizeof(*p->pages), GFP_KERNEL | __GFP_NOWARN);
	ret = p->pages ? pmuk_pages_fill(p, node) : -ENOMEM;
	if (ret)
		pmuk_pages_free(p);
	return ret;
}

void pmuk_pages_free(struct pmuk_pages *p)
{
	unsigned int i;

	vunmap(p->map);
	for (i = 0; p->pages && i < p->nr && p->pages[i]; i++)
		__free_page(p->pages[i]);
	kvfree(p->pages);
	*p = (struct pmuk_pages){};
}
