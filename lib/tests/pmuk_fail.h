/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Let allocations of a test fail: any of its task, by current->fail_nth.
 */
#ifndef _PMUK_FAIL_H
#define _PMUK_FAIL_H

#if defined(CONFIG_FAILSLAB) && defined(CONFIG_FAULT_INJECTION_DEBUG_FS)

#define PMUK_CAN_FAIL	1

#ifdef CONFIG_FAIL_PAGE_ALLOC
#define PMUK_CAN_FAIL_PAGES	1
#endif

#include <linux/dcache.h>
#include <linux/debugfs.h>

#include "pmuk_test.h"

/* A knob in debugfs is a variable that its inode points to. */
struct pmuk_knob {
	const char *dir, *name;
	unsigned long wanted;
	size_t size;
	void *at;
	unsigned long was;
};

static inline unsigned long pmuk_knob_get(const struct pmuk_knob *k)
{
	switch (k->size) {
	case sizeof(bool):
		return READ_ONCE(*(bool *)k->at);
	case sizeof(u32):
		return READ_ONCE(*(u32 *)k->at);
	default:
		return READ_ONCE(*(unsigned long *)k->at);
	}
}

static inline void pmuk_knob_set(const struct pmuk_knob *k, unsigned long value)
{
	switch (k->size) {
	case sizeof(bool):
		WRITE_ONCE(*(bool *)k->at, value);
		break;
	case sizeof(u32):
		WRITE_ONCE(*(u32 *)k->at, value);
		break;
	default:
		WRITE_ONCE(*(unsigned long *)k->at, value);
	}
}

static inline void pmuk_knob_put(void *data)
{
	const struct pmuk_knob *k = data;

	pmuk_knob_set(k, k->was);
}

static inline void pmuk_knob_turn(struct kunit *test, struct pmuk_knob *k)
{
	struct dentry *dir = debugfs_lookup(k->dir, NULL), *dentry;

	KUNIT_ASSERT_NOT_NULL(test, dir);
	dentry = debugfs_lookup(k->name, dir);
	dput(dir);
	KUNIT_ASSERT_NOT_NULL(test, dentry);
	k->at = d_inode(dentry)->i_private;
	dput(dentry);
	KUNIT_ASSERT_NOT_NULL(test, k->at);
	k->was = pmuk_knob_get(k);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_knob_put, k), 0);
	pmuk_knob_set(k, k->wanted);
}

/* By default only atomic allocations fail, and each says so at length. */
static inline void pmuk_let_any_allocation_fail(struct kunit *test)
{
	static struct pmuk_knob knobs[] = {
		{ "failslab", "ignore-gfp-wait", false, sizeof(bool) },
		{ "failslab", "verbose", 0, sizeof(unsigned long) },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(knobs); i++)
		pmuk_knob_turn(test, &knobs[i]);
}

/* The same for pages, of which single ones never do. */
static inline void pmuk_let_any_page_fail(struct kunit *test)
{
	static struct pmuk_knob knobs[] = {
		{ "fail_page_alloc", "ignore-gfp-wait", false, sizeof(bool) },
		{ "fail_page_alloc", "ignore-gfp-highmem", false, sizeof(bool) },
		{ "fail_page_alloc", "min-order", 0, sizeof(u32) },
		{ "fail_page_alloc", "verbose", 0, sizeof(unsigned long) },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(knobs); i++)
		pmuk_knob_turn(test, &knobs[i]);
}

#endif /* FAILSLAB */

#endif /* _PMUK_FAIL_H */
