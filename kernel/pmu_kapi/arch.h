/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The bare register read of a counter that is on this CPU's PMU.
 *
 * pmuk_arch_mask() says once, when a counter is created on a core PMU, whether
 * its register may be read directly, and how wide it is; pmuk_arch_read() is the
 * read. pmuk_arch_place() says which register the counter is in, for pmuk_arch_read_at();
 * pmuk_arch_is_moved() tells afterwards whether the PMU driver has moved the counter to
 * another register meanwhile, without perf core knowing. perf core stays the only one that
 * writes these registers. Counters that are not read directly go through pmu->read().
 */
#ifndef _PMU_KAPI_ARCH_H
#define _PMU_KAPI_ARCH_H

#include <linux/perf_event.h>

/*
 * Only perf's own types name the core PMU for certain: a dynamic type may be
 * any driver's, and the register numbers of those mean something else.
 */
static inline bool pmuk_arch_core_event(const struct perf_event *event)
{
	switch (event->attr.type) {
	case PERF_TYPE_HARDWARE:
	case PERF_TYPE_HW_CACHE:
	case PERF_TYPE_RAW:
		return event->pmu->task_ctx_nr == perf_hw_context;
	default:
		return false;
	}
}

#if defined(CONFIG_ARM64) && IS_ENABLED(CONFIG_ARM_PMUV3)

#include <linux/kernel_stat.h>
#include <linux/perf/arm_pmu.h>
#include <linux/perf/arm_pmuv3.h>
#include <asm/arm_pmuv3.h>

static inline u64 pmuk_arch_mask(const struct perf_event *event)
{
	const struct arm_pmu *pmu;

	/* Core PMUs that are not PMUv3 have registers of their own kind. */
	pmu = to_arm_pmu(event->pmu);
	if (!pmu->pmuver || !pmuv3_implemented(pmu->pmuver))
		return 0;

	if (event->hw.flags & (ARMPMU_EVT_47BIT | ARMPMU_EVT_63BIT))
		return 0;
	if (!(event->hw.flags & ARMPMU_EVT_64BIT))
		return GENMASK_ULL(31, 0);

	/* Before PMUv3p5 a 64-bit event may be two registers, chained. */
	return is_pmuv3p5(pmu->pmuver) ? GENMASK_ULL(63, 0) : 0;
}

#define PMUK_READ_PMEVCNTRN(n)			\
	do {					\
		*raw = read_sysreg(pmevcntr##n##_el0);	\
		return true;			\
	} while (0)

/*
 * As read_pmevcntrn(), in line and without its warning: a jump table keeps the
 * reader free of calls. False if the counter is in no register.
 */
static __always_inline bool pmuk_arch_read_on(const struct perf_event *event, u64 *raw)
{
	int idx = READ_ONCE(event->hw.idx);

	if (likely(idx == ARMV8_PMU_CYCLE_IDX)) {
		*raw = read_pmccntr();
		return true;
	}

	switch (idx) {
	PMEVN_CASE(0, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(1, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(2, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(3, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(4, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(5, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(6, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(7, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(8, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(9, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(10, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(11, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(12, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(13, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(14, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(15, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(16, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(17, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(18, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(19, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(20, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(21, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(22, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(23, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(24, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(25, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(26, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(27, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(28, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(29, PMUK_READ_PMEVCNTRN);
	PMEVN_CASE(30, PMUK_READ_PMEVCNTRN);
#ifdef SYS_PMICNTR_EL0
	case ARMV8_PMU_INSTR_IDX:
		*raw = read_sysreg_s(SYS_PMICNTR_EL0);
		return true;
#endif
	}
	return false;
}

#define pmuk_arch_read_on	pmuk_arch_read_on

static __always_inline u64 pmuk_arch_read(const struct perf_event *event)
{
	u64 raw;

	return pmuk_arch_read_on(event, &raw) ? raw : 0;
}

/* All of them, on this CPU: timers, IPIs, and pseudo-NMIs, too. */
#define pmuk_arch_irqs()	((const unsigned long *)raw_cpu_ptr(&kstat.irqs_sum))
#define pmuk_arch_nmis()	READ_ONCE(*pmuk_arch_irqs())

#elif defined(CONFIG_X86)

#include <linux/processor.h>
#include <asm/cpuid/api.h>
#include <asm/hardirq.h>
#include <asm/msr.h>
#include <asm/perf_event.h>

/* As the drivers have it, who do not tell modules. 0: a PMU of another kind. */
static inline unsigned int pmuk_x86_width(void)
{
	union cpuid10_eax eax;

	switch (boot_cpu_data.x86_vendor) {
	case X86_VENDOR_AMD:
	case X86_VENDOR_HYGON:
		return 48;
	case X86_VENDOR_INTEL:
		if (!boot_cpu_has(X86_FEATURE_ARCH_PERFMON))
			return 0;
		eax.full = cpuid_eax(10);
		return eax.split.bit_width;
	default:
		return 0;
	}
}

static inline u64 pmuk_arch_mask(const struct perf_event *event)
{
	unsigned int width = pmuk_x86_width();
	u64 config = event->attr.config;

	/* Slots and topdown metrics: not counters, but fractions of one. */
	if (event->attr.type == PERF_TYPE_RAW && !(config & 0xff) && (config & 0xff00) >= 0x0400)
		return 0;

	/* config2 can have the hardware reload the counter by itself. */
	if (event->attr.config2)
		return 0;

	return width ? GENMASK_ULL(width - 1, 0) : 0;
}

/*
 * rdpmc() has a tracepoint, whose call would make the reader save registers. A kernel that may run
 * under Xen without hardware help has to ask Xen.
 */
static __always_inline u64 pmuk_x86_rdpmc(int reg)
{
#ifdef CONFIG_PARAVIRT_XXL
	return rdpmc(reg);
#else
	u64 value;

	asm volatile("rdpmc; shl $32, %%rdx; or %%rdx, %%rax"
		     : "=a" (value) : "c" (reg) : "rdx", "cc");
	return value;
#endif
}

static __always_inline u64 pmuk_arch_read(const struct perf_event *event)
{
	return pmuk_x86_rdpmc(event->hw.event_base_rdpmc);
}

/*
 * hw.state tells whether the counter is stopped or off its PMU. hw.idx does not: it keeps its last
 * value.
 */
static __always_inline bool pmuk_arch_read_on(const struct perf_event *event, u64 *raw)
{
	/* The caller finds out whether an NMI may have changed the state. */
	if (unlikely(data_race(event->hw.state)))
		return false;
	*raw = pmuk_arch_read(event);
	return true;
}

#define pmuk_arch_read_on	pmuk_arch_read_on

/* On this CPU. */
#ifndef pmuk_arch_nmis
#define pmuk_arch_nmis()	raw_cpu_read(irq_stat.counts[IRQ_COUNT_NMI])
#endif

/*
 * Returns @was ^ @now as u64: not 0 if @now has changed. The asm compares with memory in one
 * instruction; compilers load a volatile variable first.
 */
#define pmuk_arch_changed(was, now)					\
({									\
	typeof(now) *now_ = &(now);					\
	u64 changed_ = (was);						\
									\
	if (sizeof(*now_) == sizeof(u32))				\
		asm volatile("xorl %1, %k0" : "+r" (changed_) : "m" (*now_));	\
	else								\
		asm volatile("xorq %1, %0" : "+r" (changed_) : "m" (*now_));	\
	changed_;							\
})
#define pmuk_arch_count_changed(was, now)	pmuk_arch_changed(was, now)

/*
 * To make room for other counters, the driver moves a counter to another register and gives it a
 * new last_tag.
 */
struct pmuk_arch_place {
	u64 tag;
	u32 reg;
};

static __always_inline struct pmuk_arch_place pmuk_arch_place(const struct perf_event *event)
{
	return (struct pmuk_arch_place){
		.tag = READ_ONCE(event->hw.last_tag),
		.reg = READ_ONCE(event->hw.event_base_rdpmc),
	};
}

static __always_inline u64 pmuk_arch_read_at(const struct perf_event *event,
					     const struct pmuk_arch_place *place)
{
	return pmuk_x86_rdpmc(place->reg);
}

static __always_inline u64 pmuk_arch_is_moved(const struct perf_event *event,
					      const struct pmuk_arch_place *place)
{
	return pmuk_arch_changed(place->tag, event->hw.last_tag) |
	       pmuk_arch_changed(place->reg, event->hw.event_base_rdpmc);
}

#define pmuk_arch_is_moved	pmuk_arch_is_moved

/*
 * When several counters have overflowed, the callback of one may pause the others. If that takes an
 * overflowed counter off, AMD's driver for PerfMonV2 warns of an overflow of an inactive counter.
 */
#define pmuk_arch_stops_after_nmi()	boot_cpu_has(X86_FEATURE_PERFMON_V2)

#else

static inline u64 pmuk_arch_mask(const struct perf_event *event)
{
	return 0;
}

static __always_inline u64 pmuk_arch_read(const struct perf_event *event)
{
	return 0;
}

#endif

/* The caller has read @was from @now. Returns not 0 if @now has changed since. */
#ifndef pmuk_arch_changed
#define pmuk_arch_changed(was, now)		((was) ^ READ_ONCE(now))
#define pmuk_arch_count_changed(was, now)	((was) ^ local64_read(&(now)))
#endif

#ifndef pmuk_arch_stops_after_nmi
#define pmuk_arch_stops_after_nmi()	false
#endif

/* The driver keeps a counter where it is for as long as it is on the PMU. */
#ifndef pmuk_arch_is_moved
struct pmuk_arch_place { };
#define pmuk_arch_place(event)			((void)(event), (struct pmuk_arch_place){ })
#define pmuk_arch_read_at(event, place)		((void)(place), pmuk_arch_read(event))
#define pmuk_arch_is_moved(event, place)	((void)(event), (void)(place), 0)
#endif

/* Where NMIs are not counted, who reads several counters cannot tell whether one came between. */
#ifndef pmuk_arch_nmis
#define pmuk_arch_nmis()	0
#endif

/*
 * Kernel versions differ in where perf core keeps these. The forms here are
 * those of the reference kernel; compat-include/ has those of older ones.
 */
#ifndef pmuk_ctx_offset
/* Add to local_clock() for the time of a perf context that is scheduled in. */
#define pmuk_ctx_offset(ctx)	READ_ONCE((ctx)->time.offset)
#endif

#ifndef pmuk_ctx_guest_time
/* The part of a perf context's time for which guests had the PMU for themselves. */
#define pmuk_ctx_guest_time(ctx)	READ_ONCE((ctx)->timeguest.time)
#endif

#ifndef pmuk_pmu_disabled
/* How many are reprogramming @pmu on this CPU, one in the middle of the other. */
#define pmuk_pmu_disabled(pmu)	((*this_cpu_ptr((pmu)->cpu_pmu_context))->pmu_disable_count)
#endif

#endif /* _PMU_KAPI_ARCH_H */
