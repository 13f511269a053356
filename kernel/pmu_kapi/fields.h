/* SPDX-License-Identifier: GPL-2.0 */
/* The fields that a sample can have, by who fills them in. */
#ifndef _PMU_KAPI_FIELDS_H
#define _PMU_KAPI_FIELDS_H

#include <linux/perf_event.h>
#include <linux/pmu_kapi.h>
#include <linux/types.h>

/* A PMU's driver may fill in these fields. */
#define PMUK_SAMPLE_DRIVER	(PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT_TYPE |		\
				 PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |	\
				 PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_BRANCH_STACK)

/* perf core fills in these fields, unless the driver has done so. */
#define PMUK_SAMPLE_CORE	(PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE |	\
				 PERF_SAMPLE_CODE_PAGE_SIZE | PERF_SAMPLE_CALLCHAIN |	\
				 PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR)

/* Drivers and perf core see in perf_event_attr::sample_type that these fields are wanted. */
#define PMUK_SAMPLE_HARDWARE	(PMUK_SAMPLE_DRIVER | PMUK_SAMPLE_CORE | PERF_SAMPLE_RAW)

/* A struct pmuk_sample can have these fields, except those that this kernel does not support. */
#define PMUK_SAMPLE_TYPE	(PMUK_SAMPLE_DRIVER | PMUK_SAMPLE_CORE | PERF_SAMPLE_IP |	\
				 PERF_SAMPLE_PERIOD |						\
				 PERF_SAMPLE_TIME | PERF_SAMPLE_READ | PERF_SAMPLE_CGROUP)

/*
 * perf core fills in PMUK_SAMPLE_CORE, and knows the registers of a mask. Kernels that do not
 * export these functions do not support PMUK_SAMPLE_UNSUPPORTED.
 */
#ifndef pmuk_sample_prepare
#define pmuk_sample_prepare(data, event, regs)	perf_prepare_sample(data, event, regs)
#define pmuk_reg_value(regs, bit)		perf_sample_reg(regs, bit)
#define pmuk_reg_validate(mask)			perf_sample_regs_validate(mask)
#define PMUK_SAMPLE_UNSUPPORTED	0ULL
#endif

/* pmuk collects a callchain on the overflow's stack, which may be an NMI's: limit its depth. */
#define PMUK_CALLCHAIN_MAX	64
/* If perf core unwinds, limit the depth so that a record stays below PMUK_RECORD_MAX. */
#define PMUK_MAX_STACK_MAX	4096

/* Returns true if records with these fields have the values of the counter's peers. */
static inline bool pmuk_reads_group(u64 sample_type, u64 read_format)
{
	return (sample_type & PERF_SAMPLE_READ) && (read_format & PERF_FORMAT_GROUP);
}

/* fields.c */
u64 pmuk_unsupported_fields(u64 sample_type, u64 fields);
u64 pmuk_unsupported_extras(u64 regs_intr, u64 regs_user, u32 flags);
const char *pmuk_fields_fault(u64 sample_type);
const char *pmuk_extras_fault(u64 regs_intr, u64 regs_user, u32 max_stack, u32 flags);
const char *pmuk_slice_fault(u32 aux_sample_size);
const char *pmuk_branches_fault(u64 branch_sample_type, u32 flags);
u64 pmuk_fields_fill(struct pmuk_sample *sample, struct perf_event *event, u64 wanted,
		     struct perf_sample_data *data, struct pt_regs *regs);
u64 pmuk_current_cgroup(void);

#endif /* _PMU_KAPI_FIELDS_H */
