/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Let allocations of a test fail: any of its task, by current->fail_nth.
 */
#ifndef _PMUK_FAIL_H
#define _PMUK_FAIL_H

#if defined(CONFIG_FAILSLAB) && defined(CONFIG_FAULT_INJECTION_DEBUG_FS)

#define PMUK_CAN_FAIL	1

#include <linux/dcache.h>
#include <linux/debugfs.h>

#include "pmuk_test.h"

/* A knob in debugfs/failslab is a variable that its inode points to. */
struct pmuk_knobs {
	struct dentry *dir, *ignore_dentry, *verbose_dentry;
	bool *ignore_gfp_wait, was_ignoring;
	unsigned long *verbose, was_verbose;
};

static inline void pmuk_put_knobs(void *data)
{
	struct pmuk_knobs *k = data;

	if (k->ignore_gfp_wait)
		WRITE_ONCE(*k->ignore_gfp_wait, k->was_ignoring);
	if (k->verbose)
		WRITE_ONCE(*k->verbose, k->was_verbose);
	dput(k->ignore_dentry);
	dput(k->verbose_dentry);
	dput(k->dir);
}

static inline void *pmuk_knob(struct kunit *test, struct dentry *dentry)
{
	KUNIT_ASSERT_NOT_NULL(test, dentry);
	KUNIT_ASSERT_NOT_NULL(test, d_inode(dentry)->i_private);
	return d_inode(dentry)->i_private;
}

/* By default only atomic allocations fail, and each says so at length. */
static inline void pmuk_let_any_allocation_fail(struct kunit *test)
{
	struct pmuk_knobs *k = kunit_kzalloc(test, sizeof(*k), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, k);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_put_knobs, k), 0);
	k->dir = debugfs_lookup("failslab", NULL);
	KUNIT_ASSERT_NOT_NULL(test, k->dir);
	k->ignore_dentry = debugfs_lookup("ignore-gfp-wait", k->dir);
	k->verbose_dentry = debugfs_lookup("verbose", k->dir);
	k->ignore_gfp_wait = pmuk_knob(test, k->ignore_dentry);
	k->was_ignoring = READ_ONCE(*k->ignore_gfp_wait);
	k->verbose = pmuk_knob(test, k->verbose_dentry);
	k->was_verbose = READ_ONCE(*k->verbose);
	WRITE_ONCE(*k->ignore_gfp_wait, false);
	WRITE_ONCE(*k->verbose, 0);
}

#endif /* FAILSLAB */

#endif /* _PMUK_FAIL_H */
