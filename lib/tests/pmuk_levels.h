/* SPDX-License-Identifier: GPL-2.0 */
/* The cases run once in each context of execution. */
#ifndef _PMUK_LEVELS_H
#define _PMUK_LEVELS_H

#include "pmuk_test.h"

/* Each machine has these contexts. They are the parameters of one case. */
static const struct pmuk_test_level {
	enum pmuk_irq_level level;
	const char *name;
} pmuk_test_levels[] = {
	{ PMUK_IRQ_TASK, "task" },
	{ PMUK_IRQ_SOFT, "softirq" },
	{ PMUK_IRQ_HARD, "hardirq" },
};

KUNIT_ARRAY_PARAM_DESC(levels, pmuk_test_levels, name);

/* The NMI is a case of its own, which is skipped on machines without NMIs. */
#define PMUK_NMI_CASE(fn) \
	{ .run_case = fn, .name = #fn "_nmi", .module_name = KBUILD_MODNAME }

/* Returns the context in which the case is to run its function. */
static inline enum pmuk_irq_level pmuk_test_level(struct kunit *test)
{
	const struct pmuk_test_level *param = test->param_value;

	if (param)
		return param->level;
	pmuk_test_need_nmi(test);
	return PMUK_IRQ_NMI;
}

#endif /* _PMUK_LEVELS_H */
