// SPDX-License-Identifier: GPL-2.0
/*
 * Calls a function in task, softirq, hardirq or NMI context for tests, before it returns.
 *
 * Softirq and hardirq come from a tasklet and an irq_work. On x86 the NMI is an IPI to the same
 * CPU. Elsewhere it is the interrupt of the CPU's own PMU, if that is an NMI: as long as a test
 * holds pmuk_irq_get_nmi(), each CPU has a cycle counter, and a call makes it overflow.
 */
#define pr_fmt(fmt) "pmuk_irq: " fmt

#include <linux/cleanup.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/preempt.h>
#include <linux/smp.h>

#include "pmuk_irq.h"

/* No interrupt is later than this, even on an emulated machine. */
#define IRQ_TIMEOUT_US	(2 * USEC_PER_SEC)

/* A call is made and awaited on one CPU, so ->done needs program order only. */
struct irq_call {
	pmuk_irq_fn_t fn;
	void *data;
	bool done;
	struct irq_work irq_work;
	struct tasklet_struct tasklet;
};

/* The next NMI of this CPU makes this call. */
static DEFINE_PER_CPU(struct irq_call *, irq_nmi_call);

static DEFINE_MUTEX(irq_nmi_lock);
static unsigned int irq_nmi_users;	/* irq_nmi_lock */
static bool irq_no_nmi;			/* irq_nmi_lock: a try found none */

static void irq_call_now(struct irq_call *call)
{
	call->fn(call->data);
	barrier();	/* for readers of ->done: @fn has been called before */
	WRITE_ONCE(call->done, true);
}

static int irq_wait(const struct irq_call *call)
{
	unsigned long us;

	for (us = 0; us < IRQ_TIMEOUT_US; us++) {
		if (READ_ONCE(call->done))
			return 0;
		if (us % 100 == 99)
			pmuk_irq_nudge();
		udelay(1);
	}
	return -ETIMEDOUT;
}

static void irq_tasklet_fn(struct tasklet_struct *tasklet)
{
	irq_call_now(container_of(tasklet, struct irq_call, tasklet));
}

/*
 * Enabling softirqs runs pending ones, the high-priority tasklet first. If other softirqs have run
 * for too long, the rest is left to a thread. Then enable softirqs again.
 */
static int irq_run_soft(struct irq_call *call)
{
	if (irqs_disabled() || in_interrupt())
		return -EBUSY;

	tasklet_setup(&call->tasklet, irq_tasklet_fn);
	local_bh_disable();
	tasklet_hi_schedule(&call->tasklet);
	local_bh_enable();
	while (!READ_ONCE(call->done)) {
		local_bh_disable();
		local_bh_enable();
	}
	tasklet_unlock_spin_wait(&call->tasklet);
	return 0;
}

static void irq_work_fn(struct irq_work *irq_work)
{
	irq_call_now(container_of(irq_work, struct irq_call, irq_work));
}

static int irq_run_hard(struct irq_call *call)
{
	if (irqs_disabled() || in_hardirq())
		return -EBUSY;

	call->irq_work = IRQ_WORK_INIT_HARD(irq_work_fn);
	guard(preempt)();
	irq_work_queue(&call->irq_work);
	while (irq_work_is_busy(&call->irq_work))
		cpu_relax();
	return 0;
}

/* Makes the call that waits for an NMI on this CPU. Returns whether there was one. */
static bool irq_handle_nmi(void)
{
	struct irq_call *call = this_cpu_xchg(irq_nmi_call, NULL);

	if (!call)
		return false;
	irq_call_now(call);
	return true;
}

#ifdef CONFIG_X86_LOCAL_APIC

#include <asm/apic.h>
#include <linux/nmi.h>

/*
 * The flag says that this CPU has raised an NMI. Another NMI, such as that of an overflow, may have
 * made the call first. Then no other handler knows the raised one.
 */
static DEFINE_PER_CPU(bool, irq_nmi_raised);

static int irq_nmi_handler(unsigned int type, struct pt_regs *regs)
{
	return irq_handle_nmi() ? NMI_HANDLED : NMI_DONE;
}

static int irq_nmi_late(unsigned int type, struct pt_regs *regs)
{
	return this_cpu_xchg(irq_nmi_raised, false) ? NMI_HANDLED : NMI_DONE;
}

static void irq_nmi_stop(void)
{
	unregister_nmi_handler(NMI_UNKNOWN, "pmuk_irq");
	unregister_nmi_handler(NMI_LOCAL, "pmuk_irq");
}

static int irq_nmi_start(void)
{
	int ret = register_nmi_handler(NMI_LOCAL, irq_nmi_handler, 0, "pmuk_irq");

	if (ret)
		return ret;
	ret = register_nmi_handler(NMI_UNKNOWN, irq_nmi_late, 0, "pmuk_irq");
	if (ret)
		unregister_nmi_handler(NMI_LOCAL, "pmuk_irq");
	return ret;
}

static bool irq_nmi_raise(void)
{
	this_cpu_write(irq_nmi_raised, true);
	apic->send_IPI(smp_processor_id(), NMI_VECTOR);
	return true;
}

#else /* !CONFIG_X86_LOCAL_APIC */

/* The counters also overflow by themselves, a thousand times a second, wherever the CPU is then. */
#define IRQ_NMI_CYCLES	1000000

static DEFINE_PER_CPU(struct perf_event *, irq_nmi_event);

static void irq_nmi_overflow(struct perf_event *event, struct perf_sample_data *data,
			     struct pt_regs *regs)
{
	pmuk_irq_unthrottle(event);
	if (in_nmi())
		irq_handle_nmi();
}

static void irq_nmi_stop(void)
{
	struct perf_event *event;
	int cpu;

	for_each_possible_cpu(cpu) {
		event = xchg(per_cpu_ptr(&irq_nmi_event, cpu), NULL);
		if (event)
			perf_event_release_kernel(event);
	}
}

static int irq_nmi_start(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.sample_period = IRQ_NMI_CYCLES,
		.pinned = 1,
	};
	struct perf_event *event;
	int cpu;

	for_each_online_cpu(cpu) {
		event = perf_event_create_kernel_counter(&attr, cpu, NULL, irq_nmi_overflow, NULL);
		if (IS_ERR(event)) {
			irq_nmi_stop();
			return -EOPNOTSUPP;
		}
		per_cpu(irq_nmi_event, cpu) = event;
	}
	return 0;
}

/*
 * The counter overflows one cycle after its start. QEMU notices that at once if the counter is
 * read, and otherwise when its main thread gets a CPU.
 */
static bool irq_nmi_raise(void)
{
	struct perf_event *event = this_cpu_read(irq_nmi_event);

	if (!event || READ_ONCE(event->oncpu) < 0)
		return false;
	event->pmu->stop(event, PERF_EF_UPDATE);
	local64_set(&event->hw.period_left, 1);
	event->pmu->start(event, PERF_EF_RELOAD);
	event->pmu->read(event);
	return true;
}

#endif /* !CONFIG_X86_LOCAL_APIC */

static int irq_run_nmi(struct irq_call *call)
{
	int ret;

	if (in_nmi())
		return -EBUSY;

	guard(irqsave)();
	this_cpu_write(irq_nmi_call, call);
	ret = irq_nmi_raise() ? irq_wait(call) : -EOPNOTSUPP;
	/* The NMI may have come right after the timeout. */
	return ret && this_cpu_xchg(irq_nmi_call, NULL) ? ret : 0;
}

static void irq_nothing(void *data)
{
}

static int irq_try_nmi(void)
{
	struct irq_call call = { .fn = irq_nothing };
	int ret;

	if (irq_no_nmi)
		return -EOPNOTSUPP;

	ret = irq_nmi_start();
	if (!ret && irq_run_nmi(&call)) {
		irq_nmi_stop();
		ret = -EOPNOTSUPP;
	}
	irq_no_nmi = ret == -EOPNOTSUPP;
	return ret;
}

/**
 * pmuk_irq_get_nmi() - make PMUK_IRQ_NMI available on the CPUs that are online
 *
 * Context: May sleep.
 * Return: 0; -EOPNOTSUPP if this machine has no NMI that tests can raise.
 */
int pmuk_irq_get_nmi(void)
{
	int ret;

	guard(mutex)(&irq_nmi_lock);
	ret = irq_nmi_users ? 0 : irq_try_nmi();
	if (!ret)
		irq_nmi_users++;
	return ret;
}
EXPORT_SYMBOL_GPL(pmuk_irq_get_nmi);

/**
 * pmuk_irq_put_nmi() - undo one pmuk_irq_get_nmi()
 *
 * Context: May sleep.
 */
void pmuk_irq_put_nmi(void)
{
	guard(mutex)(&irq_nmi_lock);
	if (!--irq_nmi_users)
		irq_nmi_stop();
}
EXPORT_SYMBOL_GPL(pmuk_irq_put_nmi);

/**
 * pmuk_irq_run() - call a function in a context, on this CPU
 * @level: the context
 * @fn: the function
 * @data: its argument
 *
 * Context: One that @level can interrupt. An NMI can interrupt any context but an NMI, also with
 * interrupts off. A caller that needs @fn on a certain CPU stays on that CPU.
 * Return: 0 when @fn has returned; -EBUSY if @level cannot interrupt the caller,
 * -EOPNOTSUPP without pmuk_irq_get_nmi(), or if the CPU was offline at that call or since;
 * -ETIMEDOUT if no NMI came; -EINVAL.
 */
int pmuk_irq_run(enum pmuk_irq_level level, pmuk_irq_fn_t fn, void *data)
{
	struct irq_call call = { .fn = fn, .data = data };

	switch (level) {
	case PMUK_IRQ_TASK:
		fn(data);
		return 0;
	case PMUK_IRQ_SOFT:
		return irq_run_soft(&call);
	case PMUK_IRQ_HARD:
		return irq_run_hard(&call);
	case PMUK_IRQ_NMI:
		return READ_ONCE(irq_nmi_users) ? irq_run_nmi(&call) : -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
}
EXPORT_SYMBOL_GPL(pmuk_irq_run);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Run a function in any context, for testing pmuk");
