/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The PMU traces into AUX areas, for tests. Like drivers of such hardware, its driver uses perf's
 * interface for PMUs and nothing else.
 */
#ifndef _PMUK_ITRACE_H
#define _PMUK_ITRACE_H

#include <linux/err.h>
#include <linux/types.h>

/*
 * perf_event_attr::config says that each part begins at a multiple of 2^config bytes. It is from 3
 * to 12.
 */
#define PMUK_ITRACE_ALIGN_MIN	3
#define PMUK_ITRACE_ALIGN_MAX	12

/* Each start writes a PERF_RECORD_AUX_OUTPUT_HW_ID with this plus the CPU. */
#define PMUK_ITRACE_HW_ID	0x1000

struct pmuk_itrace;

/**
 * struct pmuk_itrace_hooks - what a test does in the PMU's driver
 * @copying: called in each copy of what the PMU has traced, or NULL
 * @opening: called when a part has just begun, and the hardware is not programmed yet; or NULL
 * @data: passed to both
 */
struct pmuk_itrace_hooks {
	void (*copying)(void *data);
	void (*opening)(void *data);
	void *data;
};

struct pmuk_itrace *pmuk_itrace_create(const char *name, int capabilities);
void pmuk_itrace_destroy(struct pmuk_itrace *it);
u32 pmuk_itrace_type(const struct pmuk_itrace *it);
u64 pmuk_itrace_branch(struct pmuk_itrace *it, u64 branches);
u64 pmuk_itrace_branch_inside(struct pmuk_itrace *it, u64 branches);
void pmuk_itrace_let_copy(struct pmuk_itrace *it, const struct pmuk_itrace_hooks *hooks);
int pmuk_itrace_parts(struct pmuk_itrace *it, unsigned int n, u64 size);
int pmuk_itrace_areas(const struct pmuk_itrace *it);
unsigned int pmuk_itrace_misled(const struct pmuk_itrace *it);
unsigned int pmuk_itrace_starts(const struct pmuk_itrace *it);
void pmuk_itrace_fail(struct pmuk_itrace *it, int nr);

#endif /* _PMUK_ITRACE_H */
