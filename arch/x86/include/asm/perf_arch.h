/* SPDX-License-Identifier: GPL-2.0 */
/* Reads the registers of events with rdpmc. See include/asm-generic/perf_arch.h. */
#ifndef _ASM_X86_PERF_ARCH_H
#define _ASM_X86_PERF_ARCH_H

#include <linux/processor.h>
#include <linux/string.h>
#include <asm/cpuid/api.h>
#include <asm/hardirq.h>
#include <asm/perf_event.h>

/* Returns the width of counters, which the drivers do not export; 0 if the vendor is unknown. */
static inline unsigned int perf_x86_width(void)
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

static inline u64 perf_arch_mask(const struct perf_event *event)
{
	unsigned int width = perf_x86_width();
	u64 config = event->attr.config;

	/* The driver resets slots when it reads topdown metrics, which are fractions of these. */
	if (event->attr.type == PERF_TYPE_RAW && !(config & 0xff) && (config & 0xff00) >= 0x0400)
		return 0;

	/* With either of these, the hardware may reload the counter by itself. */
	if (event->attr.config2 || event->attr.precise_ip)
		return 0;

	/* Under Xen without hardware help, a kernel has to ask Xen, as the driver does. */
	if (cpu_feature_enabled(X86_FEATURE_XENPV))
		return 0;

	return width ? GENMASK_ULL(width - 1, 0) : 0;
}

#define perf_arch_mask	perf_arch_mask

/* rdpmc() has a tracepoint, whose call would make the reader save registers. */
static __always_inline u64 perf_x86_rdpmc(int reg)
{
	u64 low, high, value;

	asm volatile("rdpmc; shl $32, %%rdx" : "=a" (low), "=d" (high) : "c" (reg) : "cc");
	/* Add now, before another rdpmc: lea then puts the sum into a third register. */
	value = low + high;
	OPTIMIZER_HIDE_VAR(value);
	return value;
}

static __always_inline u64 perf_arch_read(const struct perf_event *event)
{
	return perf_x86_rdpmc(event->hw.event_base_rdpmc);
}

/*
 * Reads @n events, which is a constant from 1 to 4, with one test for all. hw.state says whether an
 * event is stopped or off its PMU. hw.idx does not, as it keeps its last value.
 */
static __always_inline bool perf_arch_read_all(const struct perf_event *const *events,
					       unsigned int n, u64 *raw)
{
	/* The caller checks afterwards whether an NMI may have changed a state. */
	if (unlikely(data_race(events[0]->hw.state |
			       (n > 1 ? events[1]->hw.state : 0) |
			       (n > 2 ? events[2]->hw.state : 0) |
			       (n > 3 ? events[3]->hw.state : 0))))
		return false;
	raw[0] = perf_arch_read(events[0]);
	if (n > 1)
		raw[1] = perf_arch_read(events[1]);
	if (n > 2)
		raw[2] = perf_arch_read(events[2]);
	if (n > 3)
		raw[3] = perf_arch_read(events[3]);
	return true;
}

#define perf_arch_read_all	perf_arch_read_all

/* The kernel's count of NMIs of this CPU. */
#define perf_arch_nmis()	raw_cpu_read(irq_stat.counts[IRQ_COUNT_NMI])

/*
 * Returns @was ^ @now as u64: not 0 if @now has changed. The asm compares with memory in one
 * instruction; compilers load a volatile variable first.
 */
#define perf_arch_changed(was, now)					\
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
#define perf_arch_count_changed(was, now)	perf_arch_changed(was, now)

/*
 * The driver may move a counter to another register to make room for other counters. The counter
 * then gets a new last_tag.
 */
struct perf_arch_place {
	u64 tag;
	u32 reg;
};

static __always_inline struct perf_arch_place perf_arch_where(const struct perf_event *event)
{
	return (struct perf_arch_place){
		.tag = READ_ONCE(event->hw.last_tag),
		.reg = READ_ONCE(event->hw.event_base_rdpmc),
	};
}

static __always_inline u64 perf_arch_read_at(const struct perf_event *event,
					     const struct perf_arch_place *place)
{
	return perf_x86_rdpmc(place->reg);
}

static __always_inline u64 perf_arch_is_moved(const struct perf_event *event,
					      const struct perf_arch_place *place)
{
	return perf_arch_changed(place->tag, event->hw.last_tag) |
	       perf_arch_changed(place->reg, event->hw.event_base_rdpmc);
}

#define perf_arch_is_moved	perf_arch_is_moved

/*
 * When several counters have overflowed, the callback of one may pause the others. If that takes an
 * overflowed counter off, AMD's driver for PerfMonV2 warns of an overflow of an inactive counter.
 */
#define perf_arch_stops_after_nmi()	boot_cpu_has(X86_FEATURE_PERFMON_V2)

/*
 * Each update of a count leaves the register's bare content in prev_count. Readers of the user page
 * extend the register's sign, so a page made from that prev_count would be wrong. A start of the
 * event sets prev_count right, and refreshes the page.
 */
#define perf_arch_page_wants_start()	true

/* AMD's IBS reports samples. Its driver counts none of what comes in between, and loads late. */
#define perf_arch_is_counter(event)	strncmp((event)->pmu->name, "ibs_", 4)

#include <asm-generic/perf_arch.h>

#endif /* _ASM_X86_PERF_ARCH_H */
