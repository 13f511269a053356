/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Call a function in task, softirq, hardirq or NMI context, now, for tests.
 */
#ifndef _PMUK_IRQ_H
#define _PMUK_IRQ_H

#include <linux/types.h>

/**
 * enum pmuk_irq_level - what is interrupted by nothing below it
 * @PMUK_IRQ_TASK: the caller's own context
 * @PMUK_IRQ_SOFT: softirq
 * @PMUK_IRQ_HARD: hardirq
 * @PMUK_IRQ_NMI: NMI
 * @PMUK_IRQ_LEVELS: how many there are
 */
enum pmuk_irq_level {
	PMUK_IRQ_TASK,
	PMUK_IRQ_SOFT,
	PMUK_IRQ_HARD,
	PMUK_IRQ_NMI,
	PMUK_IRQ_LEVELS,
};

typedef void (*pmuk_irq_fn_t)(void *data);

int pmuk_irq_get_nmi(void);
void pmuk_irq_put_nmi(void);
int pmuk_irq_run(enum pmuk_irq_level level, pmuk_irq_fn_t fn, void *data);

#endif /* _PMUK_IRQ_H */
