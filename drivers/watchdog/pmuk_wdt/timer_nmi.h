/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A timer of each CPU whose interrupt is an NMI; see timer_nmi.c.
 */
#ifndef _PMUK_WDT_TIMER_NMI_H
#define _PMUK_WDT_TIMER_NMI_H

#include <linux/errno.h>
#include <linux/types.h>

struct pt_regs;

#ifdef CONFIG_PMUK_WATCHDOG_TIMER
int pmuk_timer_nmi_request(void (*handler)(struct pt_regs *regs));
void pmuk_timer_nmi_free(void);
int pmuk_timer_nmi_enable(void);
void pmuk_timer_nmi_disable(void);
void pmuk_timer_nmi_set(u64 ns);
#else
static inline int pmuk_timer_nmi_request(void (*handler)(struct pt_regs *regs))
{
	return -EOPNOTSUPP;
}

static inline void pmuk_timer_nmi_free(void) { }

static inline int pmuk_timer_nmi_enable(void)
{
	return -EOPNOTSUPP;
}

static inline void pmuk_timer_nmi_disable(void) { }
static inline void pmuk_timer_nmi_set(u64 ns) { }
#endif

#endif /* _PMUK_WDT_TIMER_NMI_H */
