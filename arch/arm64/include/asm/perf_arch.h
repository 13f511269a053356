/* SPDX-License-Identifier: GPL-2.0 */
/* Reads the registers of events on PMUv3. See include/asm-generic/perf_arch.h. */
#ifndef __ASM_PERF_ARCH_H
#define __ASM_PERF_ARCH_H

#if IS_ENABLED(CONFIG_ARM_PMUV3)

#include <linux/kernel_stat.h>
#include <linux/perf/arm_pmu.h>
#include <linux/perf/arm_pmuv3.h>
#include <asm/arm_pmuv3.h>

static inline u64 perf_arch_mask(const struct perf_event *event)
{
	const struct arm_pmu *pmu;

	/* Core PMUs other than PMUv3 have other registers. */
	pmu = to_arm_pmu(event->pmu);
	if (!pmu->pmuver || !pmuv3_implemented(pmu->pmuver))
		return 0;

	if (event->hw.flags & (ARMPMU_EVT_47BIT | ARMPMU_EVT_63BIT))
		return 0;
	if (!(event->hw.flags & ARMPMU_EVT_64BIT))
		return GENMASK_ULL(31, 0);

	/* A 64-bit event may be a chain of two registers before PMUv3p5. */
	return is_pmuv3p5(pmu->pmuver) ? GENMASK_ULL(63, 0) : 0;
}

#define perf_arch_mask	perf_arch_mask

/* Bit 0 of @idx selects one of two counters' registers. */
#define PERF_READ_PAIR(idx, even, odd)						\
	((idx) & 1 ? read_sysreg(pmevcntr##odd##_el0) : read_sysreg(pmevcntr##even##_el0))

/* Reads one of the counters 1 to 7. A few tests take less than a jump table. */
static __always_inline u64 perf_arch_read_low(unsigned int idx)
{
	if (likely(idx == 1))
		return read_sysreg(pmevcntr1_el0);
	if (idx & 4)
		return idx & 2 ? PERF_READ_PAIR(idx, 6, 7) : PERF_READ_PAIR(idx, 4, 5);
	return PERF_READ_PAIR(idx, 2, 3);
}

/*
 * Reads the counter of cycles or of instructions, or one of the first eight counters; most CPUs
 * have six. The driver takes the lowest free counter, so the low ones are tested first. Returns
 * false if the event is in no register, or in one that this function does not read.
 */
static __always_inline bool perf_arch_read_on(const struct perf_event *event, u64 *raw)
{
	unsigned int idx = READ_ONCE(event->hw.idx);

	if (likely(idx == ARMV8_PMU_CYCLE_IDX))
		*raw = read_pmccntr();
	else if (likely(!idx))
		*raw = read_sysreg(pmevcntr0_el0);
	else if (likely(idx < 8))
		*raw = perf_arch_read_low(idx);
	else if (idx == ARMV8_PMU_INSTR_IDX)
		*raw = read_sysreg_s(SYS_PMICNTR_EL0);
	else
		return false;
	return true;
}

#define perf_arch_read_on	perf_arch_read_on

/* Reads the first @n - 1 event counters into raw[1] and so on. */
static __always_inline void perf_arch_read_from_0(unsigned int n, u64 *raw)
{
	raw[1] = read_sysreg(pmevcntr0_el0);
	if (n > 2)
		raw[2] = read_sysreg(pmevcntr1_el0);
	if (n > 3)
		raw[3] = read_sysreg(pmevcntr2_el0);
}

/* Reads the same number of event counters from the second one on: another event has the first. */
static __always_inline void perf_arch_read_from_1(unsigned int n, u64 *raw)
{
	raw[1] = read_sysreg(pmevcntr1_el0);
	if (n > 2)
		raw[2] = read_sysreg(pmevcntr2_el0);
	if (n > 3)
		raw[3] = read_sysreg(pmevcntr3_el0);
}

/*
 * Reads @n events, which is a constant from 1 to 4, in one go if they are in registers where the
 * driver puts events that come together: the first one in the counter of cycles or in counter 0,
 * the others in a row from counter 0 or 1 on. Otherwise returns false.
 */
static __always_inline bool perf_arch_read_row(const struct perf_event *const *events,
					       unsigned int n, u64 *raw)
{
	unsigned int a = READ_ONCE(events[0]->hw.idx);
	unsigned int b = n > 1 ? READ_ONCE(events[1]->hw.idx) : 0;
	unsigned int c = n > 2 ? READ_ONCE(events[2]->hw.idx) : b + 1;
	unsigned int d = n > 3 ? READ_ONCE(events[3]->hw.idx) : b + 2;

	c -= b;
	d -= b;
	if (likely(a == ARMV8_PMU_CYCLE_IDX && c == 1 && d == 2))
		raw[0] = read_pmccntr();
	else if (!a && c == 1 && d == 2)
		raw[0] = read_sysreg(pmevcntr0_el0);
	else
		return false;
	if (n == 1)
		return true;
	if (likely(!b))
		perf_arch_read_from_0(n, raw);
	else if (b == 1)
		perf_arch_read_from_1(n, raw);
	else
		return false;
	return true;
}

/* Reads @n events, which is a constant from 1 to 4, from any registers of perf_arch_read_on(). */
static __always_inline bool perf_arch_read_all(const struct perf_event *const *events,
					       unsigned int n, u64 *raw)
{
	return likely(perf_arch_read_row(events, n, raw)) ||
	       (perf_arch_read_on(events[0], &raw[0]) &&
		(n < 2 || perf_arch_read_on(events[1], &raw[1])) &&
		(n < 3 || perf_arch_read_on(events[2], &raw[2])) &&
		(n < 4 || perf_arch_read_on(events[3], &raw[3])));
}

#define perf_arch_read_all	perf_arch_read_all

/*
 * Reads any counter register of PMUv3 in line. If the event is in no register, returns 0, and does
 * not warn as read_pmevcntrn() does. A jump table keeps the reader free of calls.
 */
static __always_inline u64 perf_arch_read(const struct perf_event *event)
{
	unsigned int idx;
	u64 raw;

	if (likely(perf_arch_read_on(event, &raw)))
		return raw;

	idx = READ_ONCE(event->hw.idx);
	switch (idx / 2) {
	case 4:
		return PERF_READ_PAIR(idx, 8, 9);
	case 5:
		return PERF_READ_PAIR(idx, 10, 11);
	case 6:
		return PERF_READ_PAIR(idx, 12, 13);
	case 7:
		return PERF_READ_PAIR(idx, 14, 15);
	case 8:
		return PERF_READ_PAIR(idx, 16, 17);
	case 9:
		return PERF_READ_PAIR(idx, 18, 19);
	case 10:
		return PERF_READ_PAIR(idx, 20, 21);
	case 11:
		return PERF_READ_PAIR(idx, 22, 23);
	case 12:
		return PERF_READ_PAIR(idx, 24, 25);
	case 13:
		return PERF_READ_PAIR(idx, 26, 27);
	case 14:
		return PERF_READ_PAIR(idx, 28, 29);
	default:
		return idx == 30 ? read_sysreg(pmevcntr30_el0) : 0;
	}
}

/* The kernel's count of all interrupts of this CPU: timers, IPIs, and pseudo-NMIs, too. */
#define perf_arch_irqs()	((const unsigned long *)raw_cpu_ptr(&kstat.irqs_sum))
#define perf_arch_nmis()	READ_ONCE(*perf_arch_irqs())

#endif /* CONFIG_ARM_PMUV3 */

#include <asm-generic/perf_arch.h>

#endif /* __ASM_PERF_ARCH_H */
