// SPDX-License-Identifier: GPL-2.0
/* Creates and enables perf's events: tells perf core what a counter counts and samples. */
#include <linux/compiler.h>
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/perf_local_state.h>
#include <linux/timekeeping.h>

#include "event.h"
#include "fields.h"

/*
 * If the caller names no privilege levels, record branches of the levels that the counter counts.
 * perf_event_open(2) does the same, but perf core does not do it for kernel counters.
 */
static u64 pmuk_event_branches(const struct pmuk_attr *attr)
{
	u64 type = attr->branch_sample_type;

	if (!type || (type & PERF_SAMPLE_BRANCH_PLM_ALL))
		return type;
	type |= attr->flags & PMUK_EXCLUDE_USER ? 0 : PERF_SAMPLE_BRANCH_USER;
	type |= attr->flags & PMUK_EXCLUDE_KERNEL ? 0 : PERF_SAMPLE_BRANCH_KERNEL;
	type |= attr->flags & PMUK_EXCLUDE_HV ? 0 : PERF_SAMPLE_BRANCH_HV;
	return type;
}

/*
 * The fields that the counter does without, although sample_type has them. Callbacks get the
 * interrupted registers without a mask, and pmuk unwinds the kernel's stack itself. A context's
 * counter may have no branches or registers although the format has them.
 */
static u64 pmuk_event_left_out(const struct pmuk_attr *attr)
{
	return (attr->branch_sample_type ? 0 : PERF_SAMPLE_BRANCH_STACK) |
	       (attr->sample_regs_intr ? 0 : PERF_SAMPLE_REGS_INTR) |
	       (attr->sample_regs_user ? 0 : PERF_SAMPLE_REGS_USER) |
	       (attr->flags & PMUK_CALLCHAIN_USER ? 0 : PERF_SAMPLE_CALLCHAIN);
}

/*
 * perf core derives PHYS_ADDR and DATA_PAGE_SIZE from the address, which some drivers give only if
 * sample_type has PERF_SAMPLE_ADDR.
 */
u64 pmuk_event_sample_type(const struct pmuk_attr *attr)
{
	u64 type = attr->sample_type & PMUK_SAMPLE_HARDWARE;

	if (type & (PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE))
		type |= PERF_SAMPLE_ADDR;
	return type & ~pmuk_event_left_out(attr);
}

/* perf core's limit is for branches, too, so it is not the limit of pmuk's own callchains. */
u32 pmuk_event_max_stack(const struct pmuk_attr *attr)
{
	if (!(pmuk_event_sample_type(attr) & PERF_SAMPLE_CALLCHAIN))
		return PERF_MAX_STACK_DEPTH;
	return attr->max_stack ?: min(PERF_MAX_STACK_DEPTH, READ_ONCE(sysctl_perf_event_max_stack));
}

struct perf_event_attr pmuk_event_attr(const struct pmuk_attr *attr)
{
	return (struct perf_event_attr){
		.type		= attr->type,
		.size		= sizeof(struct perf_event_attr),
		.config		= attr->config,
		.config1	= attr->config1,
		.config2	= attr->config2,
		.config3	= attr->config3,
		.sample_type	= pmuk_event_sample_type(attr),
		.branch_sample_type = pmuk_event_branches(attr),
		.sample_regs_intr = attr->sample_regs_intr,
		.sample_regs_user = attr->sample_regs_user,
		.sample_max_stack = pmuk_event_max_stack(attr),	/* limits branches, too */
		.disabled	= 1,
		.inherit	= !!(attr->flags & PMUK_INHERIT),
		.pinned		= !!(attr->flags & PMUK_PINNED),
		.exclude_user	= !!(attr->flags & PMUK_EXCLUDE_USER),
		.exclude_kernel	= !!(attr->flags & PMUK_EXCLUDE_KERNEL),
		.exclude_hv	= !!(attr->flags & PMUK_EXCLUDE_HV),
		.exclude_idle	= !!(attr->flags & PMUK_EXCLUDE_IDLE),
		.exclude_guest	= !!(attr->flags & PMUK_EXCLUDE_GUEST),
		.exclude_callchain_kernel = !!(attr->flags & PMUK_EXCLUDE_KERNEL),
	};
}

/*
 * Drivers return one of these if the PMU is not that precise: AMD's -ENOENT, if IBS does not have
 * the event. Drivers return them for other reasons, too; then each lower precise_ip fails likewise.
 */
static bool pmuk_event_is_refused(const struct perf_event *event)
{
	return event == ERR_PTR(-EOPNOTSUPP) || event == ERR_PTR(-EINVAL) ||
	       event == ERR_PTR(-ENOENT);
}

/*
 * This function takes PMUK_PRECISE_BEST as 3, and lowers precise_ip until the driver accepts it.
 * ->wakeup_events makes x86's driver interrupt for each sample. Otherwise its PMU might write
 * several samples before it interrupts: perf core would call @handler for the last of them only,
 * and the PMU would reload the same period for all of them.
 */
struct perf_event *pmuk_event_create(struct perf_event_attr *pa, unsigned int precise, int cpu,
				     struct task_struct *task, perf_overflow_handler_t handler,
				     void *context)
{
	unsigned int least = precise == PMUK_PRECISE_BEST ? 0 : precise;
	struct perf_event *event;

	pa->precise_ip = min(precise, 3U);
	pa->wakeup_events = !!precise;
	for (;;) {
		event = perf_event_create_yielding_counter(pa, cpu, task, handler, context);
		if (!pmuk_event_is_refused(event) || pa->precise_ip == least)
			return event;
		pa->precise_ip--;
	}
}

/* perf core's own events take no register of a PMU that others may have taken. */
bool pmuk_event_takes_register(u32 type)
{
	return type != PERF_TYPE_SOFTWARE && type != PERF_TYPE_TRACEPOINT &&
	       type != PERF_TYPE_BREAKPOINT;
}

/*
 * Releases a pinned event, which perf core has enabled when it created it, so that the event is
 * younger than all others. Returns -ENOSPC if the event found no register, or its ERR_PTR().
 */
int pmuk_event_end_trial(struct perf_event *event)
{
	int ret;

	if (IS_ERR(event))
		return PTR_ERR(event);
	ret = perf_local_state(event) == PERF_EVENT_STATE_ERROR ? -ENOSPC : 0;
	perf_event_release_kernel(event);
	return ret;
}

/* The time comes first, so that a local read of the event finds the new time. */
void pmuk_event_enable(struct perf_event *event, u64 *since)
{
	if (perf_local_state(event) > PERF_EVENT_STATE_OFF)
		return;
	WRITE_ONCE(*since, ktime_get_ns());
	perf_event_enable(event);
}
