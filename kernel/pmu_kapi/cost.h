/* SPDX-License-Identifier: GPL-2.0 */
/* The cost of a context's overflows. */
#ifndef _PMU_KAPI_COST_H
#define _PMU_KAPI_COST_H

#include <linux/jump_label.h>

#include "context.h"

DECLARE_STATIC_KEY_FALSE(pmuk_measures);

/* Returns true if the context has a limit, or a user has asked debugfs to measure all contexts. */
static inline bool pmuk_inst_is_measured(const struct pmuk_inst *inst)
{
	return static_branch_unlikely(&pmuk_measures) || inst->ctx->limit_ns;
}

bool pmuk_inst_charge(struct pmuk_inst *inst, u64 start);

#endif /* _PMU_KAPI_COST_H */
