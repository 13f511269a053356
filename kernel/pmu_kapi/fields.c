// SPDX-License-Identifier: GPL-2.0
/*
 * The fields of a sample that the PMU's driver or perf core knows: checks which are asked for, and
 * fills them in.
 */
#include <linux/cgroup.h>
#include <linux/cleanup.h>
#include <linux/kconfig.h>
#include <linux/perf_event.h>
#include <linux/pmu_kapi.h>
#include <linux/rcupdate.h>

#include "fields.h"

/* Returns those bits of @sample_type that are not in @fields, or not supported by this kernel. */
u64 pmuk_unsupported_fields(u64 sample_type, u64 fields)
{
	u64 lacks = PMUK_SAMPLE_UNSUPPORTED;

	if (!IS_ENABLED(CONFIG_CGROUP_PERF))
		lacks |= PERF_SAMPLE_CGROUP;
	return sample_type & (lacks | ~fields);
}

/*
 * Returns the bits of those fields that these attributes ask for, and that need more of perf core
 * than this kernel exports.
 */
u64 pmuk_unsupported_extras(u64 regs_intr, u64 regs_user, u32 flags)
{
	if (!PMUK_SAMPLE_UNSUPPORTED)
		return 0;
	return (regs_intr ? PERF_SAMPLE_REGS_INTR : 0) | (regs_user ? PERF_SAMPLE_REGS_USER : 0) |
	       (flags & PMUK_CALLCHAIN_USER ? PERF_SAMPLE_CALLCHAIN : 0);
}

/* Returns what is wrong with these fields, or NULL. */
const char *pmuk_fields_fault(u64 sample_type)
{
	if (!(~sample_type & PERF_SAMPLE_WEIGHT_TYPE))
		return "both WEIGHT and WEIGHT_STRUCT";
	return NULL;
}

/* Branches at a level that the counter excludes would leak its addresses. */
static u64 pmuk_levels_excluded(u32 flags)
{
	return (flags & PMUK_EXCLUDE_USER ? PERF_SAMPLE_BRANCH_USER : 0) |
	       (flags & PMUK_EXCLUDE_KERNEL ? PERF_SAMPLE_BRANCH_KERNEL : 0) |
	       (flags & PMUK_EXCLUDE_HV ? PERF_SAMPLE_BRANCH_HV : 0);
}

/* Returns what is wrong with this choice of branches for a counter with these @flags, or NULL. */
const char *pmuk_branches_fault(u64 branch_sample_type, u32 flags)
{
	if (branch_sample_type & (~(PERF_SAMPLE_BRANCH_MAX - 1ULL) | PERF_SAMPLE_BRANCH_COUNTERS))
		return "unknown PERF_SAMPLE_BRANCH_* bit, or COUNTERS";
	if (branch_sample_type && !(branch_sample_type & ~(u64)PERF_SAMPLE_BRANCH_PLM_ALL))
		return "branch_sample_type names privilege levels only";
	if (branch_sample_type & pmuk_levels_excluded(flags))
		return "branches of a level that the counter excludes";
	return NULL;
}

/* Returns what is wrong with these masks of registers, and this depth of callchains, or NULL. */
const char *pmuk_extras_fault(u64 regs_intr, u64 regs_user, u32 max_stack, u32 flags)
{
	if ((regs_intr && pmuk_reg_validate(regs_intr)) ||
	    (regs_user && pmuk_reg_validate(regs_user)))
		return "sample_regs_* name registers that this CPU does not have";
	if (max_stack > (flags & PMUK_CALLCHAIN_USER ? PMUK_MAX_STACK_MAX : PMUK_CALLCHAIN_MAX))
		return "max_stack too large";
	return NULL;
}

/* Returns what is wrong with the size of a record's slice of the AUX area, or NULL. */
const char *pmuk_slice_fault(u32 aux_sample_size)
{
	return aux_sample_size > PMUK_RECORD_MAX ? "aux_sample_size too large" : NULL;
}

/* perf core sets the flag of a field also if it has found nothing. Returns the bits of these. */
static u64 pmuk_core_found_none(const struct perf_sample_data *data, u64 found)
{
	u64 none = 0;

	if ((found & PERF_SAMPLE_PHYS_ADDR) && !data->phys_addr)
		none |= PERF_SAMPLE_PHYS_ADDR;
	if ((found & PERF_SAMPLE_DATA_PAGE_SIZE) && !data->data_page_size)
		none |= PERF_SAMPLE_DATA_PAGE_SIZE;
	if ((found & PERF_SAMPLE_CODE_PAGE_SIZE) && !data->code_page_size)
		none |= PERF_SAMPLE_CODE_PAGE_SIZE;
	if ((found & PERF_SAMPLE_CALLCHAIN) && !data->callchain->nr)
		none |= PERF_SAMPLE_CALLCHAIN;
	if ((found & PERF_SAMPLE_REGS_USER) && !data->regs_user.regs)
		none |= PERF_SAMPLE_REGS_USER;
	if ((found & PERF_SAMPLE_REGS_INTR) && !data->regs_intr.regs)
		none |= PERF_SAMPLE_REGS_INTR;
	return none;
}

/*
 * Lets perf core find what the driver has left out. Returns the bits of PMUK_SAMPLE_CORE that have
 * a value. Other counters, or perf's own events, may use @data after this, so leave ->sample_flags
 * and ->dyn_size as the driver has set them.
 */
static u64 pmuk_found_by_core(struct perf_sample_data *data, struct perf_event *event,
			      struct pt_regs *regs)
{
	u64 flags = data->sample_flags, size = data->dyn_size, found;

	/*
	 * RCU guards the memory of the callchain. perf core writes the next one there if code on
	 * this CPU hits another event, as callbacks may: ->handler runs before them.
	 */
	guard(rcu)();
	pmuk_sample_prepare(data, event, regs);
	found = data->sample_flags & PMUK_SAMPLE_CORE;
	data->sample_flags = flags;
	data->dyn_size = size;
	return found & ~pmuk_core_found_none(data, found);
}

/*
 * Returns true if the sample was taken in a guest. perf core would look up a guest's address in the
 * host's page tables, and give the host's registers and callchain.
 */
static bool pmuk_sample_is_guest(const struct pmuk_sample *sample)
{
	unsigned int mode = sample->misc & PERF_RECORD_MISC_CPUMODE_MASK;

	return mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER;
}

static void pmuk_fields_fill_by_core(struct pmuk_sample *sample, u64 has,
				     const struct perf_sample_data *data)
{
	if (has & PERF_SAMPLE_PHYS_ADDR)
		sample->phys_addr = data->phys_addr;
	if (has & PERF_SAMPLE_DATA_PAGE_SIZE)
		sample->data_page_size = data->data_page_size;
	if (has & PERF_SAMPLE_CODE_PAGE_SIZE)
		sample->code_page_size = data->code_page_size;
	if (has & PERF_SAMPLE_CALLCHAIN)
		sample->callchain = data->callchain;
	if (has & PERF_SAMPLE_REGS_USER) {
		sample->regs_user = data->regs_user.regs;
		sample->regs_user_abi = data->regs_user.abi;
	}
	if (has & PERF_SAMPLE_REGS_INTR)
		sample->regs_abi = data->regs_intr.abi;
}

/*
 * Fills in those fields of @wanted that the driver or perf core gives, and returns their bits.
 * @event has the register, and its attributes tell perf core what to find.
 */
u64 pmuk_fields_fill(struct pmuk_sample *sample, struct perf_event *event, u64 wanted,
		     struct perf_sample_data *data, struct pt_regs *regs)
{
	u64 has = data->sample_flags & PMUK_SAMPLE_DRIVER;

	if (regs && (wanted & event->attr.sample_type & PMUK_SAMPLE_CORE) &&
	    !pmuk_sample_is_guest(sample))
		has |= pmuk_found_by_core(data, event, regs);
	has &= wanted;
	pmuk_fields_fill_by_core(sample, has, data);
	if (has & PERF_SAMPLE_ADDR)
		sample->addr = data->addr;
	if (has & PERF_SAMPLE_WEIGHT_TYPE)
		sample->weight = data->weight.full;
	if (has & PERF_SAMPLE_DATA_SRC)
		sample->data_src = data->data_src.val;
	if (has & PERF_SAMPLE_TRANSACTION)
		sample->txn = data->txn;
	if (has & PERF_SAMPLE_BRANCH_STACK)
		sample->branches = data->br_stack;
	return has;
}

/*
 * Overflow handlers are RCU readers, so the task's css_set stays valid, even if another CPU moves
 * the task to another cgroup. lockdep does not see that.
 */
u64 pmuk_current_cgroup(void)
{
#ifdef CONFIG_CGROUP_PERF
	return cgroup_id(task_css_check(current, perf_event_cgrp_id, true)->cgroup);
#else
	return 0;
#endif
}
