/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The suites share this helper, which calls a test's function at a tracepoint of what is built in,
 * exported or not.
 */
#ifndef _PMUK_PROBE_H
#define _PMUK_PROBE_H

#include <linux/tracepoint.h>

#include "pmuk_test.h"

struct pmuk_probe {
	const char *name;
	struct tracepoint *tp;
	void *fn, *data;
};

static inline void pmuk_test_find_probe(struct tracepoint *tp, void *data)
{
	struct pmuk_probe *p = data;

	if (!strcmp(tp->name, p->name))
		p->tp = tp;
}

static inline void pmuk_test_end_probe(void *data)
{
	struct pmuk_probe *p = data;

	tracepoint_probe_unregister(p->tp, p->fn, p->data);
	tracepoint_synchronize_unregister();
}

/* Lets the tracepoint @name call @fn, with @data as first argument, until the test case ends. */
static inline void pmuk_test_probe(struct kunit *test, const char *name, void *fn, void *data)
{
	struct pmuk_probe *p = pmuk_test_zalloc(test, sizeof(*p));

	*p = (struct pmuk_probe){ .name = name, .fn = fn, .data = data };
	for_each_kernel_tracepoint(pmuk_test_find_probe, p);
	KUNIT_ASSERT_NOT_NULL(test, p->tp);
	KUNIT_ASSERT_EQ(test, tracepoint_probe_register(p->tp, fn, data), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_end_probe, p), 0);
}

#endif /* _PMUK_PROBE_H */
