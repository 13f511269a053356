/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The suites on the machine's own PMU share these helpers: whether there is a PMU, what an
 * emulator's PMU does, and events that software can make happen.
 */
#ifndef _PMUK_HW_H
#define _PMUK_HW_H

#include <linux/of.h>
#include <linux/perf_local.h>
#include <linux/processor.h>
#include <linux/string.h>
#include <linux/timekeeping.h>

#include "pmuk_test.h"

#define PMUK_HW_CYCLES {			\
	.type = PERF_TYPE_HARDWARE,		\
	.config = PERF_COUNT_HW_CPU_CYCLES,	\
	.flags = PMUK_NO_THROTTLE,		\
}

static inline int pmuk_hw_try_event(u64 config, int cpu)
{
	const struct pmuk_attr attr = { .type = PERF_TYPE_HARDWARE, .config = config };
	struct pmuk_counter *c = pmuk_counter_create(&attr, cpu, NULL);

	pmuk_counter_destroy(c);
	return PTR_ERR_OR_ZERO(c);
}

/* Returns 0 if a PMU counts cycles on this CPU, or the error of creating such a counter. */
static inline int pmuk_hw_try(int cpu)
{
	return pmuk_hw_try_event(PERF_COUNT_HW_CPU_CYCLES, cpu);
}

/* Skips the test where no PMU counts cycles. For kunit_suite::init. */
static inline int pmuk_hw_init(struct kunit *test)
{
	int ret;

	pmuk_test_init(test);
	ret = pmuk_hw_try(pmuk_test_pin_first(test));
	if (ret)
		kunit_skip(test, "no PMU that counts cycles: %pe", ERR_PTR(ret));
	return 0;
}

/* The emulator's cycle counter runs at 1 GHz, whatever the host's clock is. */
static inline bool pmuk_hw_on_emulator(void)
{
	return IS_ENABLED(CONFIG_OF) && of_machine_is_compatible("linux,dummy-virt");
}

/*
 * The emulator has an event for instructions only with -icount. Each instruction then takes a
 * nanosecond.
 */
static inline bool pmuk_hw_counts_instructions(void)
{
	return !pmuk_hw_try_event(PERF_COUNT_HW_INSTRUCTIONS, raw_smp_processor_id());
}

static inline bool pmuk_hw_interrupts_as_nmi(void)
{
#ifdef CONFIG_ARM64
	return IS_ENABLED(CONFIG_ARM64_PSEUDO_NMI) && system_uses_irq_prio_masking();
#else
	return IS_ENABLED(CONFIG_X86);
#endif
}

/*
 * QEMU's timer thread updates all counters of a CPU when one of them is about to overflow. The CPU
 * itself updates them at each change of exception level. If both happen at once, each register
 * restarts near 0. Most counts are then ahead by the rest of a period, and one that has just
 * overflowed goes back. About one overflow in fifty is hit; with -icount, none. Sometimes all
 * registers soon recover, and the counts go back by their lead.
 *
 * A guard is a counter that is seconds away from its overflow. When registers are lost, the guard
 * jumps ahead of the clock by these seconds. When registers recover, it falls behind again.
 */
struct pmuk_hw_guard {
	struct pmuk_counter *c;		/* NULL: counters are never lost here */
	s64 least, most;		/* bounds of its lead at the latest check */
	unsigned int losses;		/* number of jumps and falls */
};

static inline void pmuk_hw_guard_start(struct kunit *test, struct pmuk_hw_guard *guard, int cpu)
{
	struct pmuk_attr attr = PMUK_HW_CYCLES;

	if (!pmuk_hw_on_emulator() || pmuk_hw_counts_instructions())
		return;
	attr.flags |= PMUK_PINNED;
	guard->least = S64_MIN / 2;
	guard->most = S64_MAX / 2;
	guard->c = pmuk_test_enabled(test, &attr, cpu, NULL);
}

/*
 * Returns the number of losses until now. Without a loss, a guard never jumps ahead of the clock,
 * and falls behind it only while its PMU is stopped, which is a moment.
 */
static inline unsigned int pmuk_hw_losses(struct pmuk_hw_guard *guard)
{
	u64 count, before = ktime_get_mono_fast_ns();
	s64 least, most;

	if (!guard->c || pmuk_counter_read_local(guard->c, &count))
		return READ_ONCE(guard->losses);
	most = count - before;
	least = count - ktime_get_mono_fast_ns();
	if (least > READ_ONCE(guard->most) + (s64)(10 * NSEC_PER_USEC) ||
	    most < READ_ONCE(guard->least) - (s64)NSEC_PER_MSEC)
		WRITE_ONCE(guard->losses, guard->losses + 1);
	WRITE_ONCE(guard->least, least);
	WRITE_ONCE(guard->most, most);
	return READ_ONCE(guard->losses);
}

/*
 * On a slow emulator, an overflow may take longer than its period. Then the interrupted code gets
 * no time, and nothing throttles the overflows. So each overflow of a test's storm calls
 * pmuk_hw_keep_pace(). If the interrupted code has made no progress in @patience overflows, the
 * period doubles.
 */
struct pmuk_hw_pace {
	u64 period;
	u64 done;		/* progress at the latest overflow */
	unsigned int idle;	/* overflows without progress */
};

static inline void pmuk_hw_keep_pace(struct pmuk_hw_pace *pace, struct pmuk_counter *c, u64 done,
				     unsigned int patience)
{
	if (done != pace->done)
		pace->idle = 0;
	pace->done = done;
	if (++pace->idle % patience)
		return;
	pace->period *= 2;
	pmuk_counter_set_period(c, pace->period);
}

#define PMUK_HW_PICKY	1000000

static struct pmuk_hw_picky {
	struct pmu *pmu;
	int (*check_period)(struct perf_event *event, u64 period);
} pmuk_hw_picky;

static inline int pmuk_hw_picky_check(struct perf_event *event, u64 period)
{
	return period < PMUK_HW_PICKY ? -EINVAL : pmuk_hw_picky.check_period(event, period);
}

static inline void pmuk_hw_picky_end(void *unused)
{
	WRITE_ONCE(pmuk_hw_picky.pmu->check_period, pmuk_hw_picky.check_period);
}

/*
 * For the time of a test case, the core PMU's driver accepts no new period below PMUK_HW_PICKY, as
 * x86's do for some events.
 */
static inline void pmuk_hw_picky_begin(struct kunit *test, struct pmu *pmu)
{
	pmuk_hw_picky = (struct pmuk_hw_picky){ .pmu = pmu, .check_period = pmu->check_period };
	KUNIT_ASSERT_EQ(test, kunit_add_action(test, pmuk_hw_picky_end, NULL), 0);
	WRITE_ONCE(pmu->check_period, pmuk_hw_picky_check);
}

#ifdef CONFIG_X86

/*
 * The kernel measures the frequency of its clock at boot, and accepts measurements that differ by
 * one percent. The tests allow two.
 */
#define PMUK_HW_CLOCK_PPM	20000

/* QEMU's emulated x86 CPUs have this signature. With a PMU, they have a cycle each nanosecond. */
static inline bool pmuk_hw_cycles_are_ns(void)
{
	u32 eax, signature[3];

	cpuid(0x40000000, &eax, &signature[0], &signature[1], &signature[2]);
	return !memcmp(signature, "TCGTCGTCGTCG", sizeof(signature));
}

/*
 * Returns a number that changes when this CPU's counters may have been stopped for a moment: the
 * handler of a PMU's interrupt stops all of them, whichever has overflowed.
 */
static inline unsigned int pmuk_hw_stops(void)
{
	return perf_arch_nmis();
}

#else /* !CONFIG_X86 */

#define PMUK_HW_CLOCK_PPM	0

static inline bool pmuk_hw_cycles_are_ns(void)
{
	return pmuk_hw_on_emulator();
}

static inline unsigned int pmuk_hw_stops(void)
{
	return 0;
}

#endif /* !CONFIG_X86 */

#ifdef CONFIG_ARM64

#include <asm/sysreg.h>

/* PMUv3's event SW_INCR counts writes to a register. */
#define PMUK_HW_MADE {				\
	.type = PERF_TYPE_RAW,			\
	.config = 0,				\
	.flags = PMUK_NO_THROTTLE,		\
}

static inline void pmuk_hw_make_event(void)
{
	write_sysreg(GENMASK(30, 0), pmswinc_el0);
	isb();
}

static inline void pmuk_hw_need_made_events(struct kunit *test)
{
	const struct pmuk_attr attr = PMUK_HW_MADE;
	struct pmuk_counter *c = pmuk_counter_create(&attr, raw_smp_processor_id(), NULL);
	u64 count = 0;

	if (!IS_ERR(c) && !pmuk_counter_enable(c)) {
		pmuk_hw_make_event();
		pmuk_counter_read_local(c, &count);
	}
	pmuk_counter_destroy(c);
	if (!count)
		kunit_skip(test, "this PMU does not count SW_INCR");
}

#else /* !CONFIG_ARM64 */

#define PMUK_HW_MADE	PMUK_HW_CYCLES

static inline void pmuk_hw_make_event(void) { }

static inline void pmuk_hw_need_made_events(struct kunit *test)
{
	kunit_skip(test, "no event that software can make happen");
}

#endif /* !CONFIG_ARM64 */

static inline void pmuk_hw_make_events(unsigned int n)
{
	while (n--)
		pmuk_hw_make_event();
}

/*
 * QEMU's timer thread updates all registers of a CPU when a cycle counter is about to overflow, and
 * does not wait for an instruction that is writing one. So a write is lost or done twice now and
 * then. With -icount, the thread and the CPU take turns.
 */
static inline void pmuk_hw_need_sound_registers(struct kunit *test)
{
	if (pmuk_hw_on_emulator() && !pmuk_hw_counts_instructions())
		kunit_skip(test, "QEMU's registers are sound with -icount only");
}

#endif /* _PMUK_HW_H */
