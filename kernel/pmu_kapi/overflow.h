/* SPDX-License-Identifier: GPL-2.0 */
/* Overflows of a context's counters. */
#ifndef _PMU_KAPI_OVERFLOW_H
#define _PMU_KAPI_OVERFLOW_H

#include "context.h"

/* Returns the first period after a start, or, with @restart, after a restart. */
static inline u64 pmuk_slot_period(const struct pmuk_slot *slot, bool restart)
{
	const struct pmuk_pmd *pmd = &slot->def->pmd;

	if (!pmd->short_reset || (restart && pmd->long_reset))
		return pmd->long_reset;
	return pmd->short_reset;
}

void pmuk_slot_overflow(struct pmuk_counter *c, const struct pmuk_sample *sample,
			const struct perf_sample_data *data);
void pmuk_slot_handle(struct pmuk_slot *slot, struct pmuk_counter *c,
		      const struct pmuk_sample *sample, const struct perf_sample_data *data);
void pmuk_inst_pause(struct pmuk_inst *inst);
void pmuk_inst_note_due(struct pmuk_inst *inst, int why);

#endif /* _PMU_KAPI_OVERFLOW_H */
