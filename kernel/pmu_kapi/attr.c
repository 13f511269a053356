// SPDX-License-Identifier: GPL-2.0
/* Checks what callers ask of a new counter. */
#define pr_fmt(fmt) "pmuk: " fmt

#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/printk.h>

#include "counter.h"
#include "format.h"
#include "freq.h"

#define PMUK_ATTR_FLAGS	(PMUK_EXCLUDES | PMUK_PINNED | PMUK_NO_THROTTLE | PMUK_INHERIT |	\
			 PMUK_PRIVATE | PMUK_CALLCHAIN_USER)

/* Callbacks get the interrupted registers without a mask, too. */
static const char *pmuk_attr_extras_fault(const struct pmuk_attr *attr)
{
	bool chain = attr->sample_type & PERF_SAMPLE_CALLCHAIN;

	if (attr->sample_regs_intr && !(attr->sample_type & PERF_SAMPLE_REGS_INTR))
		return "sample_regs_intr without PERF_SAMPLE_REGS_INTR";
	if (!attr->sample_regs_user != !(attr->sample_type & PERF_SAMPLE_REGS_USER))
		return "sample_regs_user without PERF_SAMPLE_REGS_USER, or the reverse";
	if (!attr->aux_sample_size != !(attr->sample_type & PERF_SAMPLE_AUX))
		return "aux_sample_size without PERF_SAMPLE_AUX, or the reverse";
	if (!chain && (attr->max_stack || (attr->flags & PMUK_CALLCHAIN_USER)))
		return "max_stack or PMUK_CALLCHAIN_USER without PERF_SAMPLE_CALLCHAIN";
	return pmuk_slice_fault(attr->aux_sample_size) ?:
	       pmuk_extras_fault(attr->sample_regs_intr, attr->sample_regs_user, attr->max_stack,
				 attr->flags);
}

static const char *pmuk_attr_samples_fault(const struct pmuk_attr *attr)
{
	bool branches = attr->sample_type & PERF_SAMPLE_BRANCH_STACK;

	if (attr->precise_ip > PMUK_PRECISE_BEST)
		return "no such precise_ip";
	if (attr->precise_ip && !attr->period)
		return "precise_ip without a period";
	if (branches && !attr->branch_sample_type)
		return "PERF_SAMPLE_BRANCH_STACK without branch_sample_type";
	if (!branches && attr->branch_sample_type)
		return "branch_sample_type without PERF_SAMPLE_BRANCH_STACK";
	return pmuk_fields_fault(attr->sample_type) ?:
	       pmuk_branches_fault(attr->branch_sample_type, attr->flags) ?:
	       pmuk_attr_extras_fault(attr);
}

static const char *pmuk_attr_fault(const struct pmuk_attr *attr, int cpu,
				   const struct task_struct *task)
{
	if (!task && (cpu < 0 || cpu >= nr_cpu_ids || !cpu_possible(cpu)))
		return "no such CPU";
	if (task && cpu != -1)
		return "a task counter follows its task: cpu must be -1";
	if (attr->flags & ~PMUK_ATTR_FLAGS)
		return "unknown flags";
	if ((attr->flags & PMUK_INHERIT) && (!task || attr->random_mask || attr->freq))
		return "PMUK_INHERIT needs a task and a fixed period";
	if (attr->overflow && !attr->period)
		return "overflow callback without a period";
	if (attr->random_mask && !attr->period)
		return "random_mask without a period";
	if (attr->freq && (attr->period < 2 || attr->period > PMUK_FREQ_LONGEST))
		return "freq needs a period from 2 to 2^48";
	if (attr->freq && attr->random_mask)
		return "freq and random_mask";
	if (attr->freq > PMUK_FREQ_MAX)
		return "freq too high";
	if (attr->period > PMUK_PERIOD_MAX - attr->random_mask)
		return "period too long";
	return pmuk_attr_samples_fault(attr);
}

/* Returns the bits of fields that a callback's sample, or with a buffer a record, cannot have. */
static u64 pmuk_attr_unsupported(const struct pmuk_attr *attr, int cpu)
{
	u64 chain = attr->flags & PMUK_CALLCHAIN_USER ? 0 : PERF_SAMPLE_CALLCHAIN;
	u64 unsupported = pmuk_unsupported_extras(attr->sample_regs_intr, attr->sample_regs_user,
						  attr->flags);

	if (attr->buffer && cpu != -1)
		return unsupported | pmuk_unsupported_record_fields(attr->sample_type);
	return unsupported | pmuk_unsupported_fields(attr->sample_type, PMUK_SAMPLE_TYPE & ~chain);
}

/* Returns 0, or the error of pmuk_counter_create(). */
int pmuk_check_attr(const struct pmuk_attr *attr, int cpu, const struct task_struct *task)
{
	const char *fault;
	u64 unknown;

	fault = attr ? pmuk_attr_fault(attr, cpu, task) : "no attributes";
	if (!fault)
		fault = pmuk_format_fault(attr, cpu);
	if (fault) {
		pr_debug("create: %s\n", fault);
		return -EINVAL;
	}
	unknown = pmuk_attr_unsupported(attr, cpu);
	if (unknown || pmuk_unsupported_read_format(attr->read_format)) {
		pr_debug("create: fields %#llx of sample_type, or read_format %#llx, not supported\n",
			 unknown, attr->read_format);
		return -EOPNOTSUPP;
	}
	return 0;
}
