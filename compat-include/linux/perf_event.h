/* SPDX-License-Identifier: GPL-2.0 */
/* Stands in for what patches/7.3 adds to perf core, in kernels without these patches. */
#ifndef _PMUK_COMPAT_LINUX_PERF_EVENT_H
#define _PMUK_COMPAT_LINUX_PERF_EVENT_H

#include_next <linux/perf_event.h>

/* Needs a change to perf core, patches/7.3/0003-*: without it user space reads no registers. */
static inline bool perf_event_set_kernel_page(struct perf_event *event,
					      struct perf_event_mmap_page *page)
{
	return false;
}

static inline void perf_allow_user_reads(struct mm_struct *mm) { }
static inline void perf_forbid_user_reads(struct mm_struct *mm) { }

/* Needs patches/7.3/0004-*, too: without it PMUs that trace have nowhere to write. */
struct perf_event_aux_ops {
	void *(*begin)(struct perf_output_handle *handle, struct perf_event *event);
	void (*end)(struct perf_output_handle *handle, unsigned long size);
	int (*skip)(struct perf_output_handle *handle, unsigned long size);
	void *(*get)(struct perf_output_handle *handle);
	long (*copy)(struct perf_output_handle *handle, struct perf_output_handle *out,
		     unsigned long from, unsigned long to);
	void (*hw_id)(struct perf_event *event, u64 hw_id);
};

static inline bool perf_event_set_aux_ops(struct perf_event *event,
					  const struct perf_event_aux_ops *ops)
{
	return false;
}

/* Not exported to modules; no event with perf_event_aux_ops needs a copy. */
#define perf_output_copy_aux(handle, out, from, to)	\
	((void)(handle), (void)(out), (void)(from), (void)(to), (long)-EOPNOTSUPP)

static inline void perf_event_set_aux_session(struct perf_event *event, pid_t session) { }

static inline pid_t perf_event_aux_session(struct perf_event *event)
{
	return 0;
}

static inline void perf_event_enable_family(struct perf_event *event) { }
static inline void perf_event_disable_family(struct perf_event *event) { }

/* Needs patches/7.3/0005-*, too: without it all that user space maps is under RLIMIT_MEMLOCK. */
struct user_struct;
static inline unsigned long perf_mlock_charge(struct user_struct *user, unsigned long nr)
{
	return 0;
}

static inline void perf_mlock_uncharge(struct user_struct *user, unsigned long nr) { }

/*
 * Needs patches/7.3/0006-*: without it modules cannot ask where a sample was taken, and
 * take a guest's for the host's at its entry to the guest. Nor can they ask for a page's size, for
 * single registers, or for what perf core knows of user space. Physical addresses are known here
 * only if the PMU's driver gives them.
 */
#ifdef CONFIG_X86
#define pmuk_misc_exact(regs)		\
	((regs)->flags & PERF_EFLAGS_EXACT ? PERF_RECORD_MISC_EXACT_IP : 0)
#else
#define pmuk_misc_exact(regs)		0
#endif

#define pmuk_sample_misc(event, regs)	\
	((user_mode(regs) ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_KERNEL) |	\
	 pmuk_misc_exact(regs))
#define pmuk_sample_ip(event, regs)	\
	((event)->attr.exclude_kernel && !user_mode(regs) ? 0 : instruction_pointer(regs))
#define PMUK_SEES_GUESTS		false
#define pmuk_sample_prepare(data, event, regs)	do { } while (0)
#define sysctl_perf_event_max_stack	((int){ PERF_MAX_STACK_DEPTH })
#define pmuk_reg_value(regs, bit)	((void)(regs), (void)(bit), 0ULL)
#define pmuk_reg_validate(mask)		((void)(mask), 0)
#define PMUK_SAMPLE_UNSUPPORTED	(PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE | \
				 PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER)

/* Kernels without this capability have no guests that have the PMU for themselves. */
#ifndef PERF_PMU_CAP_MEDIATED_VPMU
#define PERF_PMU_CAP_MEDIATED_VPMU	0
#endif

/* Needs patches/7.3/0009-*: without it a counter that counts guests may keep guests away. */
#define perf_event_create_yielding_counter	perf_event_create_kernel_counter

/* Needs patches/7.3/0010-*: without it nobody says that others wait for a register. */
typedef void (*perf_others_wait_t)(struct perf_event *event, struct perf_event *waiter);

static inline void perf_event_set_others_wait(struct perf_event *event,
					      perf_others_wait_t others_wait) { }

static inline perf_others_wait_t perf_event_others_wait(const struct perf_event *event)
{
	return NULL;
}

#define PMUK_SEES_WAITERS		false

#endif /* _PMUK_COMPAT_LINUX_PERF_EVENT_H */
