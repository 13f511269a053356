// SPDX-License-Identifier: GPL-2.0
/*
 * The EL1 physical timer of each CPU as an NMI, on arm64 with pseudo-NMI.
 *
 * A kernel that was booted at EL1 uses the virtual timer, so the physical timer is free. The
 * physical timer goes on in WFE, while the cycle counter may stand still. If Linux was booted at
 * EL2, the host or its guests use both timers, so this file uses neither.
 *
 * This file is always built in, as the functions that request an NMI are not exported to modules.
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

/* Indices of the interrupts in the device tree node of the timers, if the node has no names. */
#define PMUK_TIMER_PHYS		1
#define PMUK_TIMER_VIRT		2

static int pmuk_timer_irq;
static void (*pmuk_timer_handler)(struct pt_regs *regs);
static DEFINE_PER_CPU(int, pmuk_timer_id);	/* dev_id: only its address is used */

static void pmuk_timer_stop(void)
{
	write_sysreg(ARCH_TIMER_CTRL_IT_MASK, cntp_ctl_el0);
	isb();
}

/* The timer asserts its interrupt until the timer is stopped or set again, so stop it first. */
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

/* If the device tree has no virtual timer, Linux itself uses the physical timer. */
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
 * @handler: is called in NMI, on the CPU whose timer has expired
 *
 * A hypervisor without the physical timer may answer an access to the timer by an exception.
 * Neither the architecture nor the boot protocol lets the kernel find out beforehand. So call this
 * only if the user has asked for the timer.
 *
 * Context: May sleep. One user at a time.
 * Return: 0, or -errno if there is no such timer, or if its interrupt cannot be an NMI.
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
 * Context: May sleep. The timers of all CPUs are disabled.
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
	disable_percpu_nmi(pmuk_timer_irq);	/* first: an NMI would set the timer again */
	pmuk_timer_stop();
	teardown_percpu_nmi(pmuk_timer_irq);
}
EXPORT_SYMBOL_GPL(pmuk_timer_nmi_disable);

/**
 * pmuk_timer_nmi_set() - set the timer of this CPU
 * @ns: time until the NMI. The timer has 31 bits; a longer time is cut to that
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
