// SPDX-License-Identifier: GPL-2.0
/* The time that a context's overflows take, and the limit of that time. */
#include <linux/jump_label.h>
#include <linux/sched/clock.h>
#include <linux/smp.h>
#include <linux/time64.h>

#include <trace/events/pmu_kapi.h>

#include "context.h"
#include "cost.h"

/*
 * A user sets this in debugfs. It is off by default: it makes each overflow read the clock twice,
 * and each local read slow.
 */
DEFINE_STATIC_KEY_FALSE(pmuk_measures);

/*
 * Begins a second if the last one is over. Returns true, and counts that, if the overflows of this
 * second have exceeded the limit. A restart begins no second, as a consumer may restart at each
 * overflow. The time of an overflow that is handled inside of another one is added twice, and then
 * a second may begin twice.
 */
static bool pmuk_inst_is_over(struct pmuk_inst *inst, u64 start, u64 ns, u64 cost)
{
	if ((s64)(start - READ_ONCE(inst->second)) >= (s64)NSEC_PER_SEC) {
		WRITE_ONCE(inst->second, start);
		WRITE_ONCE(inst->second_cost, cost - ns);
	}
	if (cost - READ_ONCE(inst->second_cost) <= inst->ctx->limit_ns)
		return false;
	atomic64_inc(&inst->limited);
	return true;
}

/*
 * Adds the time since @start, a value of local_clock(), to the instance's cost. Returns true if the
 * caller has to pause the counters, as this second's overflows have exceeded the limit.
 */
bool pmuk_inst_charge(struct pmuk_inst *inst, u64 start)
{
	u64 ns = local_clock() - start, cost = atomic64_add_return(ns, &inst->cost_ns);
	bool over = inst->ctx->limit_ns && pmuk_inst_is_over(inst, start, ns, cost);

	trace_pmuk_cost(inst->ctx->id, smp_processor_id(), ns, over);
	return over;
}
