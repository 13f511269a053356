// SPDX-License-Identifier: GPL-2.0
/* The time that a context's overflows take, and the limit of that time. */
#include <linux/jump_label.h>
#include <linux/sched/clock.h>
#include <linux/smp.h>
#include <linux/time64.h>

#include <trace/events/pmu_kapi.h>

#include "context.h"
#include "cost.h"

/* debugfs turns this on: reading the clock twice for each overflow costs something. */
DEFINE_STATIC_KEY_FALSE(pmuk_measures);

/*
 * Returns true if the instance has exceeded the limit of this second. The first overflow after a
 * second begins the next one; a restart does not, as a consumer may restart at each overflow. If an
 * overflow interrupts another one, its time counts for both, and a second may begin twice.
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
 * Adds the time of an overflow that has begun at @start by local_clock(). Returns true if
 * the caller has to pause the counters, as overflows of this second have exceeded the limit.
 */
bool pmuk_inst_charge(struct pmuk_inst *inst, u64 start)
{
	u64 ns = local_clock() - start, cost = atomic64_add_return(ns, &inst->cost_ns);
	bool over = inst->ctx->limit_ns && pmuk_inst_is_over(inst, start, ns, cost);

	trace_pmuk_cost(inst->ctx->id, smp_processor_id(), ns, over);
	return over;
}
