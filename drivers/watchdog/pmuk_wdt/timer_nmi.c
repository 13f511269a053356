// SPDX-License-Identifier: GPL-2.0
/*
 * The timer of each CPU that Linux has no use for, as an NMI, on arm64 with pseudo-NMI.
 *
 * A kernel that was booted at EL1 keeps time by the virtual timer, and leaves the physical one to
 * others. That timer goes on in WFE, in which cycles may not be counted. Where Linux has EL2, the
 * host or its guests use the timers that could be had here.
 *
 * Built into the kernel, for the calls that request an NMI are not exported.
 */
#include <linux/export.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/of.h>
#include <linux/of_irq.h>
#include <linux/percpu.h>
#include <linux/time64.h>

#include <asm/irq_regs.h>
#include <asm/sysreg.h>
#include <asm/virt.h>
#include <clocksource/arm_arch_timer.h>

#include "timer_nmi.h"

/* The interrupt's index in the node of the timers, where that has no names. */
#define PMUK_TIMER_PHYS		1
#define PMUK_TIMER_VIRT		2

static int pmuk_timer_irq;
static void (*pmuk_timer_handler)(struct pt_regs *regs);
static DEFINE_PER_CPU(int, pmuk_timer_id);	/* names the request */

static void pmuk_timer_stop(void)
{
	write_sysreg(ARCH_TIMER_CTRL_IT_MASK, cntp_ctl_el0);
	isb();
}

/* The interrupt is asserted until the timer is stopped or set. */
static irqreturn_t pmuk_timer_interrupt(int irq, void *id)
{
	pmuk_timer_stop();
	pmuk_timer_handler(get_irq_regs());
	return IRQ_HANDLED;
}

static int pmuk_timer_irq_of(struct device_node *np, const char *name, int index)
{
	if (of_property_present(np, "interrupt-names"))
		return of_irq_get_byname(np, name);
	return of_irq_get(np, index);
}

/* Linux itself uses the physical timer where it is told of no virtual one. */
static int pmuk_timer_find(void)
{
	struct device_node *np __free(device_node) =
		of_find_compatible_node(NULL, NULL, "arm,armv8-timer");

	if (!np || is_hyp_mode_available() ||
	    pmuk_timer_irq_of(np, "virt", PMUK_TIMER_VIRT) <= 0)
		return -ENODEV;
	return pmuk_timer_irq_of(np, "phys", PMUK_TIMER_PHYS);
}

/**
 * pmuk_timer_nmi_request() - take the timer of all CPUs
 * @handler: is called in NMI, on the CPU whose timer is over
 *
 * A hypervisor that lacks the physical timer may answer an access to it by an exception, and no
 * rule of the architecture or of booting tells beforehand. So ask for it only where it is there.
 *
 * Context: May sleep. One user at a time.
 * Return: 0, or -errno where there is no such timer, or its interrupt is no NMI.
 */
int pmuk_timer_nmi_request(void (*handler)(struct pt_regs *regs))
{
	int irq = pmuk_timer_find(), ret;

	if (irq <= 0)
		return irq ?: -ENODEV;
	pmuk_timer_handler = handler;
	ret = request_percpu_nmi(irq, pmuk_timer_interrupt, "pmuk-timer", NULL, &pmuk_timer_id);
	if (!ret)
		pmuk_timer_irq = irq;
	return ret;
}
EXPORT_SYMBOL_GPL(pmuk_timer_nmi_request);

/**
 * pmuk_timer_nmi_free() - give the timers back
 *
 * Context: May sleep. They are disabled on all CPUs.
 */
void pmuk_timer_nmi_free(void)
{
	free_percpu_nmi(pmuk_timer_irq, &pmuk_timer_id);
}
EXPORT_SYMBOL_GPL(pmuk_timer_nmi_free);

/**
 * pmuk_timer_nmi_enable() - let the timer of this CPU interrupt
 *
 * Context: Preemption is off.
 * Return: 0 or -errno.
 */
int pmuk_timer_nmi_enable(void)
{
	int ret;

	pmuk_timer_stop();
	ret = prepare_percpu_nmi(pmuk_timer_irq);
	if (!ret)
		enable_percpu_nmi(pmuk_timer_irq, IRQ_TYPE_NONE);
	return ret;
}
EXPORT_SYMBOL_GPL(pmuk_timer_nmi_enable);

/**
 * pmuk_timer_nmi_disable() - stop the timer of this CPU
 *
 * Context: Preemption is off. The timer was enabled.
 */
void pmuk_timer_nmi_disable(void)
{
	disable_percpu_nmi(pmuk_timer_irq);	/* or a last NMI might set the timer again */
	pmuk_timer_stop();
	teardown_percpu_nmi(pmuk_timer_irq);
}
EXPORT_SYMBOL_GPL(pmuk_timer_nmi_disable);

/**
 * pmuk_timer_nmi_set() - set the timer of this CPU
 * @ns: until its NMI. The timer has 31 bits: what is longer than these ends early
 *
 * Context: Any, NMI too. The timer is enabled.
 */
void pmuk_timer_nmi_set(u64 ns)
{
	u64 ticks = mul_u64_u32_div(ns, arch_timer_get_rate(), NSEC_PER_SEC);

	write_sysreg(min_t(u64, ticks, S32_MAX), cntp_tval_el0);
	write_sysreg(ARCH_TIMER_CTRL_ENABLE, cntp_ctl_el0);
	isb();
}
EXPORT_SYMBOL_GPL(pmuk_timer_nmi_set);
