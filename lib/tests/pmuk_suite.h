/* SPDX-License-Identifier: GPL-2.0 */
/* The macro ends a test module. It defines a suite of that name, with all its cases. */
#ifndef _PMUK_SUITE_H
#define _PMUK_SUITE_H

#include <kunit/test.h>
#include <linux/module.h>

/* @init_fn is kunit_suite::init, or NULL. */
#define PMUK_SUITE(suite, init_fn, description)			\
	static struct kunit_suite suite##_suite = {			\
		.name = #suite,						\
		.init = init_fn,					\
		.test_cases = suite##_cases,				\
	};								\
	kunit_test_suite(suite##_suite);				\
	MODULE_LICENSE("GPL");						\
	MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");			\
	MODULE_DESCRIPTION(description)

#endif /* _PMUK_SUITE_H */
