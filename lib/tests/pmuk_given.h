/* SPDX-License-Identifier: GPL-2.0 */
/* The driver of a simulated PMU fills in all fields that a driver can, with these values. */
#ifndef _PMUK_GIVEN_H
#define _PMUK_GIVEN_H

#include <linux/perf_event.h>

#define PMUK_GIVEN_ADDR		0xabcdef0123ULL
#define PMUK_GIVEN_PHYS_ADDR	0x876543210ULL
#define PMUK_GIVEN_WEIGHT	0x4400330022ULL
#define PMUK_GIVEN_TXN		(PERF_TXN_SYNC | (7ULL << PERF_TXN_ABORT_SHIFT))
#define PMUK_GIVEN_DATA_SRC	(PERF_MEM_S(OP, LOAD) | PERF_MEM_S(LVL, HIT) | PERF_MEM_S(TLB, L2))
#define PMUK_GIVEN_BRANCHES	3U
#define PMUK_GIVEN_INDEX	17

#define PMUK_GIVEN		(PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT_TYPE |		\
				 PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |	\
				 PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_BRANCH_STACK)

struct pmuk_given_branches {
	struct perf_branch_stack stack;
	struct perf_branch_entry entries[PMUK_GIVEN_BRANCHES];
};

static const struct pmuk_given_branches pmuk_given_branches = {
	.stack = { .nr = PMUK_GIVEN_BRANCHES, .hw_idx = PMUK_GIVEN_INDEX },
	.entries = {
		{ .from = 0x1000, .to = 0x2000, .mispred = 1, .cycles = 5 },
		{ .from = 0x2010, .to = 0x3000, .predicted = 1, .cycles = 6 },
		{ .from = 0x3010, .to = 0x1010, .predicted = 1, .cycles = 7 },
	},
};

/* perf core may change the branches that it gets. */
static struct pmuk_given_branches pmuk_given_copy;

/* A driver's &pmuk_sim_config.fill */
static inline void pmuk_given_fill(struct perf_event *event, struct perf_sample_data *sample,
				   void *data)
{
	sample->addr = PMUK_GIVEN_ADDR;
	sample->phys_addr = PMUK_GIVEN_PHYS_ADDR;
	sample->weight.full = PMUK_GIVEN_WEIGHT;
	sample->txn = PMUK_GIVEN_TXN;
	sample->data_src.val = PMUK_GIVEN_DATA_SRC;
	sample->sample_flags |= PMUK_GIVEN & ~(u64)PERF_SAMPLE_BRANCH_STACK;
	if (!has_branch_stack(event))
		return;
	pmuk_given_copy = pmuk_given_branches;
	perf_sample_save_brstack(sample, event, &pmuk_given_copy.stack, NULL);
}

#endif /* _PMUK_GIVEN_H */
