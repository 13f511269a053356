/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What perf core keeps elsewhere in older kernels; kernel/pmu_kapi/arch.h has
 * the names and their current forms.
 */
#ifndef _PMUK_COMPAT_LINUX_PERF_EVENT_H
#define _PMUK_COMPAT_LINUX_PERF_EVENT_H

#include_next <linux/perf_event.h>
#include <linux/version.h>

/* 7.0 put a context's clock into struct perf_time_ctx, and has another one for guests. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define pmuk_ctx_offset(ctx)	READ_ONCE((ctx)->timeoffset)
#define pmuk_ctx_guest_time(ctx)	0ULL
#endif

/* 6.15 moved pmu_disable_count into what a PMU has for each CPU. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
#define pmuk_pmu_disabled(pmu)	(*this_cpu_ptr((pmu)->pmu_disable_count))
#define pmuk_cpu_pmu_context(pmu, cpu)	per_cpu_ptr((pmu)->cpu_pmu_context, cpu)
#endif

/* 7.3 has x86 count NMIs beside its other interrupts. */
#if defined(CONFIG_X86) && LINUX_VERSION_CODE < KERNEL_VERSION(7, 3, 0)
#define pmuk_arch_nmis()	raw_cpu_read(irq_stat.__nmi_count)
#endif

/* Needs a change to perf core, patches/7.3/0001-*: without it user space reads no registers. */
static inline bool perf_event_set_kernel_page(struct perf_event *event,
					      struct perf_event_mmap_page *page)
{
	return false;
}

static inline void perf_allow_user_reads(struct mm_struct *mm) { }
static inline void perf_forbid_user_reads(struct mm_struct *mm) { }

/* The same, patches/7.3/0002-*: without it PMUs that trace have nowhere to write to. */
struct perf_event_aux_ops {
	void *(*begin)(struct perf_output_handle *handle, struct perf_event *event);
	void (*end)(struct perf_output_handle *handle, unsigned long size);
	int (*skip)(struct perf_output_handle *handle, unsigned long size);
	void *(*get)(struct perf_output_handle *handle);
	void (*hw_id)(struct perf_event *event, u64 hw_id);
};

static inline bool perf_event_set_aux_ops(struct perf_event *event,
					  const struct perf_event_aux_ops *ops)
{
	return false;
}

static inline void perf_event_set_aux_session(struct perf_event *event, pid_t session) { }

static inline pid_t perf_event_aux_session(struct perf_event *event)
{
	return 0;
}

static inline void perf_event_enable_family(struct perf_event *event) { }
static inline void perf_event_disable_family(struct perf_event *event) { }

/* The same, patches/7.3/0003-*: without it all that user space maps is under RLIMIT_MEMLOCK. */
struct user_struct;
static inline unsigned long perf_mlock_charge(struct user_struct *user, unsigned long nr)
{
	return 0;
}

static inline void perf_mlock_uncharge(struct user_struct *user, unsigned long nr) { }

/*
 * Needs patches/7.3/0004-*: without it modules cannot ask where a sample was taken, and
 * take a guest's for the host's at its entry to the guest.
 */
#define pmuk_sample_misc(event, regs)	\
	(user_mode(regs) ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_KERNEL)
#define pmuk_sample_ip(event, regs)	\
	((event)->attr.exclude_kernel && !user_mode(regs) ? 0 : instruction_pointer(regs))
#define PMUK_SEES_GUESTS		false

#endif /* _PMUK_COMPAT_LINUX_PERF_EVENT_H */
