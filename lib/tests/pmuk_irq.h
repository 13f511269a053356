/* SPDX-License-Identifier: GPL-2.0 */
/* Calls a function in task, softirq, hardirq or NMI context for tests. */
#ifndef _PMUK_IRQ_H
#define _PMUK_IRQ_H

#include <linux/of.h>
#include <linux/perf_event.h>
#include <linux/preempt.h>
#include <linux/types.h>

#ifdef CONFIG_ARM64
#include <asm/sysreg.h>
#endif

/**
 * enum pmuk_irq_level - contexts of execution; a later one can interrupt an earlier one
 * @PMUK_IRQ_TASK: the caller's own context
 * @PMUK_IRQ_SOFT: softirq
 * @PMUK_IRQ_HARD: hardirq
 * @PMUK_IRQ_NMI: NMI
 * @PMUK_IRQ_LEVELS: number of levels
 */
enum pmuk_irq_level {
	PMUK_IRQ_TASK,
	PMUK_IRQ_SOFT,
	PMUK_IRQ_HARD,
	PMUK_IRQ_NMI,
	PMUK_IRQ_LEVELS,
};

typedef void (*pmuk_irq_fn_t)(void *data);

/* Returns whether the caller runs at @level. */
static inline bool pmuk_irq_is(enum pmuk_irq_level level)
{
	switch (level) {
	case PMUK_IRQ_NMI:
		return in_nmi();
	case PMUK_IRQ_HARD:
		return in_hardirq() && !in_nmi();
	case PMUK_IRQ_SOFT:
		return in_serving_softirq() && !in_hardirq() && !in_nmi();
	default:
		return !in_interrupt();
	}
}

/*
 * An overflow that comes while the PMU is stopped interrupts when the PMU goes on. If a handler has
 * stopped counters meanwhile, QEMU forgets that interrupt until the overflow flags are written. So
 * this writes them, without setting any.
 */
static inline void pmuk_irq_nudge(void)
{
#ifdef CONFIG_ARM64
	if (IS_ENABLED(CONFIG_OF) && of_machine_is_compatible("linux,dummy-virt"))
		write_sysreg(0, pmovsset_el0);
#endif
}

/*
 * Slow interrupts make perf core lower its limit, down to one overflow in a tick. The handler of an
 * event that perf core may throttle calls this.
 */
static inline void pmuk_irq_unthrottle(struct perf_event *event)
{
	bool throttled = event->hw.interrupts == U64_MAX;	/* perf core has stopped it */

	event->hw.interrupts = 0;
	if (throttled)
		event->pmu->start(event, 0);
}

int pmuk_irq_get_nmi(void);
void pmuk_irq_put_nmi(void);
int pmuk_irq_run(enum pmuk_irq_level level, pmuk_irq_fn_t fn, void *data);

#endif /* _PMUK_IRQ_H */
