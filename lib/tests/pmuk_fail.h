/* SPDX-License-Identifier: GPL-2.0 */
/* Lets allocations of a test's task fail, by current->fail_nth. */
#ifndef _PMUK_FAIL_H
#define _PMUK_FAIL_H

#include "pmuk_test.h"

#if defined(CONFIG_FAILSLAB) && defined(CONFIG_FAULT_INJECTION_DEBUG_FS)

#define PMUK_CAN_FAIL	1

#include <linux/dcache.h>
#include <linux/debugfs.h>

/* A knob in debugfs is a variable. The inode of its file points to that variable. */
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

/*
 * Lets any allocation fail, without a report. By default only atomic ones do, with a long report
 * each.
 */
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

/* Lets the @nth allocation of this task from now on fail. */
static inline void pmuk_fail_nth(unsigned int nth)
{
	current->fail_nth = nth;
}

/*
 * Ends pmuk_fail_nth(). Returns how many allocations were left until the failing one; 0: it has
 * failed.
 */
static inline unsigned int pmuk_fail_left(void)
{
	unsigned int left = current->fail_nth;

	current->fail_nth = 0;
	return left;
}

#else

static inline void pmuk_let_any_allocation_fail(struct kunit *test)
{
	kunit_skip(test, "needs FAILSLAB and FAULT_INJECTION_DEBUG_FS");
}

static inline void pmuk_fail_nth(unsigned int nth) { }

static inline unsigned int pmuk_fail_left(void)
{
	return 0;
}

#endif

/* Lets any allocation of pages fail, also of single pages, which by default never do. */
static inline void pmuk_let_any_page_fail(struct kunit *test)
{
#if defined(PMUK_CAN_FAIL) && defined(CONFIG_FAIL_PAGE_ALLOC)
	static struct pmuk_knob knobs[] = {
		{ "fail_page_alloc", "ignore-gfp-wait", false, sizeof(bool) },
		{ "fail_page_alloc", "ignore-gfp-highmem", false, sizeof(bool) },
		{ "fail_page_alloc", "min-order", 0, sizeof(u32) },
		{ "fail_page_alloc", "verbose", 0, sizeof(unsigned long) },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(knobs); i++)
		pmuk_knob_turn(test, &knobs[i]);
#else
	kunit_skip(test, "needs FAIL_PAGE_ALLOC and FAULT_INJECTION_DEBUG_FS");
#endif
}

/*
 * The first allocation fails, then the second, until none is left to fail. If a call succeeds
 * although an allocation has failed, that allocation may have been none of the call's: debugging
 * facilities refill their pools now and then. So the same number is tried again before the next
 * one.
 */
struct pmuk_sweep {
	struct kunit *test;
	unsigned int nth;		/* number of the failing allocation */
	unsigned int left;		/* 0: it has failed */
	unsigned int failed, survived, tries;
};

static inline struct pmuk_sweep pmuk_new_sweep(struct kunit *test)
{
	pmuk_let_any_allocation_fail(test);
	return (struct pmuk_sweep){ .test = test, .nth = 1 };
}

/* Returns whether there is another try after one that has returned @ret. */
static inline bool pmuk_sweep_on(struct pmuk_sweep *s, int ret)
{
	if (ret) {
		KUNIT_EXPECT_EQ_MSG(s->test, s->left, 0, "failed without a reason");
		s->failed++;
		s->nth++;
	} else {
		s->nth += !s->left && ++s->survived % 4 == 0;
	}
	return !s->left && ++s->tries < 400;
}

static inline void pmuk_sweep_end(struct pmuk_sweep *s, unsigned int fewest)
{
	KUNIT_EXPECT_GT_MSG(s->test, s->left, 0, "never succeeded");
	KUNIT_EXPECT_GE(s->test, s->failed, fewest);
	kunit_info(s->test, "%u allocations failed", s->failed);
}

#endif /* _PMUK_FAIL_H */
