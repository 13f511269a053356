/* SPDX-License-Identifier: GPL-2.0 */
/* The cost of a context's overflows. */
#ifndef _PMU_KAPI_COST_H
#define _PMU_KAPI_COST_H

#include <linux/jump_label.h>
#include <linux/minmax.h>

#include "context.h"

DECLARE_STATIC_KEY_FALSE(pmuk_measures);

/* Returns true if the context has a limit, or a user has asked debugfs to measure all contexts. */
static inline bool pmuk_inst_is_measured(const struct pmuk_inst *inst)
{
	return static_branch_unlikely(&pmuk_measures) || inst->ctx->limit_ns;
}

/*
 * Returns the number of records that perf's format has written. The caller knows that the context
 * has this format, as others do not count in ->unwritten. An overflow that is being handled is
 * taken for a record.
 */
static inline u64 pmuk_inst_records(const struct pmuk_inst *inst)
{
	s64 unwritten = atomic64_read(&inst->unwritten);

	/* Another CPU may see ->unwritten before ->overflows. */
	return max_t(s64, atomic64_read(&inst->overflows) - unwritten, 0);
}

bool pmuk_inst_charge(struct pmuk_inst *inst, u64 start);

#endif /* _PMU_KAPI_COST_H */
