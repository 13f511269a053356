// SPDX-License-Identifier: GPL-2.0
/*
 * Locks up a CPU for an exact time, and prints when, for tests and measurements of watchdogs. Write
 * "HOW CPU NANOSECONDS" to pmuk_lockup in debugfs. HOW is one of
 *	spin	the CPU spins with interrupts off
 *	halt	the CPU spins with interrupts off, and its counters stop, as a halted CPU's do
 *	halts	all CPUs do what "halt" does, at once
 *	mute	the CPU goes on, but its counters do not interrupt
 *	print	the CPU writes to a slow console with interrupts off
 *	tasks	the CPU writes SysRq-T's list of all tasks to the slow console, with interrupts off
 *	fifo	the CPU takes interrupts, and runs a real-time task
 * "halt", "halts" and "mute" need a PMU with a register that stops all counters: arm64's, Intel's,
 * or AMD's of version 2.
 */
#define pr_fmt(fmt) "pmuk_lockup: " fmt

#include <linux/console.h>
#include <linux/cpufeature.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/sysrq.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#ifdef CONFIG_ARM64
#include <asm/sysreg.h>
#elif defined(CONFIG_X86)
#include <asm/apic.h>
#include <asm/msr.h>
#endif

#define LOCKUP_MAX_NS	(600ULL * NSEC_PER_SEC)

struct lockup {
	unsigned int how;
	unsigned int cpu;
	u64 ns;
};

enum {
	LOCKUP_SPIN, LOCKUP_HALT, LOCKUP_HALTS, LOCKUP_MUTE, LOCKUP_PRINT, LOCKUP_TASKS,
	LOCKUP_FIFO,
};

static const char *const lockup_names[] = { "spin", "halt", "halts", "mute", "print", "tasks",
					   "fifo" };

#ifdef CONFIG_ARM64
#define PMCR_E			1	/* enables the counters */

static bool has_counters(void) { return true; }

static u64 stop_counters(void)
{
	u64 pmcr = read_sysreg(pmcr_el0);

	write_sysreg(pmcr & ~PMCR_E, pmcr_el0);
	isb();
	return pmcr;
}

static void start_counters(u64 pmcr)
{
	write_sysreg(pmcr, pmcr_el0);
	isb();
}

static u64 mute(void)
{
	u64 enabled = read_sysreg(pmintenset_el1);

	write_sysreg(enabled, pmintenclr_el1);
	isb();
	return enabled;
}

static void unmute(u64 enabled)
{
	write_sysreg(enabled, pmintenset_el1);
	isb();
}
#elif defined(CONFIG_X86)
/* Returns the register that enables all counters of this CPU, or 0 if there is none. */
static u32 global_control(void)
{
	if (boot_cpu_has(X86_FEATURE_PERFMON_V2))
		return MSR_AMD64_PERF_CNTR_GLOBAL_CTL;
	return boot_cpu_has(X86_FEATURE_ARCH_PERFMON) ? MSR_CORE_PERF_GLOBAL_CTRL : 0;
}

static bool has_counters(void) { return global_control(); }

static u64 stop_counters(void)
{
	u32 low, high;

	native_rdmsr(global_control(), low, high);
	native_wrmsr(global_control(), 0, 0);
	return (u64)high << 32 | low;
}

static void start_counters(u64 enabled)
{
	native_wrmsr(global_control(), (u32)enabled, enabled >> 32);
}

static u64 mute(void)
{
	u32 entry = apic->read(APIC_LVTPC);

	apic->write(APIC_LVTPC, entry | APIC_LVT_MASKED);
	return entry;
}

static void unmute(u64 entry)
{
	apic->write(APIC_LVTPC, entry);
}
#else
static bool has_counters(void) { return false; }
static u64 stop_counters(void) { return 0; }
static void start_counters(u64 state) { }
static u64 mute(void) { return 0; }
static void unmute(u64 state) { }
#endif

static void spin(u64 ns)
{
	u64 end = ktime_get_mono_fast_ns() + ns;

	while (ktime_get_mono_fast_ns() < end)
		cpu_relax();
}

/*
 * Runs on the CPU that locks up. A busy machine may print a message late, but its timestamp is
 * right.
 */
static long lock_up(void *data)
{
	const struct lockup *lockup = data;
	unsigned long flags;
	u64 state = 0;

	pr_info("CPU %u begins\n", lockup->cpu);
	local_irq_save(flags);
	if (lockup->how == LOCKUP_HALT)
		state = stop_counters();
	spin(lockup->ns);
	if (lockup->how == LOCKUP_HALT)
		start_counters(state);
	local_irq_restore(flags);
	pr_info("CPU %u ends\n", lockup->cpu);
	return 0;
}

static void halt_here(void *data)
{
	const struct lockup *lockup = data;
	u64 state = stop_counters();

	spin(lockup->ns);
	start_counters(state);
}

static long halt_all(void *data)
{
	struct lockup *lockup = data;

	pr_info("CPU %u begins\n", lockup->cpu);
	on_each_cpu(halt_here, lockup, true);
	pr_info("CPU %u ends\n", lockup->cpu);
	return 0;
}

static long be_mute(void *data)
{
	const struct lockup *lockup = data;
	u64 state = mute();

	pr_info("CPU %u is silent\n", lockup->cpu);
	msleep(div_u64(lockup->ns, NSEC_PER_MSEC));
	unmute(state);
	pr_info("CPU %u is heard\n", lockup->cpu);
	return 0;
}

/* The console is as slow as a serial line of 115200 baud or less. After slow_until it is fast. */
static u64 slow_char_ns = 86800;
static u64 slow_until;

static void slow_write(struct console *console, const char *text, unsigned int length)
{
	while (length-- && (!slow_until || ktime_get_mono_fast_ns() < slow_until))
		spin(slow_char_ns);
}

static struct console slow_console = {
	.name	= "pmuk_slow",
	.write	= slow_write,
	.index	= -1,
};

/* Calls @fn with interrupts off, which prints. Returns how long that took, in nanoseconds. */
static u64 print_slowly(const struct lockup *lockup, void (*fn)(u64 until))
{
	unsigned long flags;
	u64 begin;

	slow_console.flags = CON_ENABLED;	/* cleared by unregister_console() */
	register_console(&slow_console);
	pr_info("CPU %u begins\n", lockup->cpu);
	local_irq_save(flags);
	begin = ktime_get_mono_fast_ns();
	fn(begin + lockup->ns);
	begin = ktime_get_mono_fast_ns() - begin;
	local_irq_restore(flags);
	unregister_console(&slow_console);
	return begin;
}

static void print_until(u64 until)
{
	while (ktime_get_mono_fast_ns() < until)
		pr_info("printed with interrupts off\n");
}

static long print(void *data)
{
	const struct lockup *lockup = data;

	print_slowly(lockup, print_until);
	pr_info("CPU %u ends\n", lockup->cpu);
	return 0;
}

/*
 * SysRq-T takes about a second for each task, and touches the watchdog after it. After @until the
 * console is fast.
 */
static void print_tasks(u64 until)
{
	slow_char_ns = NSEC_PER_MSEC;
	slow_until = until;
	handle_sysrq('t');
	slow_char_ns = 86800;
	slow_until = 0;
}

static long show_tasks(void *data)
{
	const struct lockup *lockup = data;
	u64 ns = print_slowly(lockup, print_tasks);

	pr_info("CPU %u has shown tasks for %llu ms\n", lockup->cpu, div_u64(ns, NSEC_PER_MSEC));
	return 0;
}

/* Other tasks run on the CPU only if the fair server has a runtime there. */
static long run_fifo(void *data)
{
	const struct lockup *lockup = data;

	sched_set_fifo(current);
	pr_info("CPU %u runs a real-time task\n", lockup->cpu);
	spin(lockup->ns);
	sched_set_normal(current, 0);
	return 0;
}

static long (*const lockup_fns[])(void *data) = {
	[LOCKUP_SPIN]	= lock_up,
	[LOCKUP_HALT]	= lock_up,
	[LOCKUP_HALTS]	= halt_all,
	[LOCKUP_MUTE]	= be_mute,
	[LOCKUP_PRINT]	= print,
	[LOCKUP_TASKS]	= show_tasks,
	[LOCKUP_FIFO]	= run_fifo,
};

static int parse(char *text, struct lockup *lockup)
{
	char name[8];
	int how;

	if (sscanf(text, "%7s %u %llu", name, &lockup->cpu, &lockup->ns) != 3)
		return -EINVAL;
	how = match_string(lockup_names, ARRAY_SIZE(lockup_names), name);
	if (how < 0 || lockup->cpu >= nr_cpu_ids || lockup->ns > LOCKUP_MAX_NS)
		return -EINVAL;
	if (!cpu_online(lockup->cpu))
		return -ENODEV;
	if ((how == LOCKUP_HALT || how == LOCKUP_HALTS || how == LOCKUP_MUTE) && !has_counters())
		return -EOPNOTSUPP;
	lockup->how = how;
	return 0;
}

static ssize_t lockup_write(struct file *file, const char __user *user, size_t count,
			    loff_t *ppos)
{
	struct lockup lockup;
	char text[64] = {};
	int ret;

	if (count >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, user, count))
		return -EFAULT;
	ret = parse(text, &lockup);
	if (ret)
		return ret;
	ret = work_on_cpu(lockup.cpu, lockup_fns[lockup.how], &lockup);
	return ret ?: count;
}

static const struct file_operations lockup_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.write	= lockup_write,
};

static struct dentry *lockup_file;

static int __init lockup_init(void)
{
	lockup_file = debugfs_create_file("pmuk_lockup", 0200, NULL, NULL, &lockup_fops);
	return 0;
}
module_init(lockup_init);

static void __exit lockup_exit(void)
{
	debugfs_remove(lockup_file);
}
module_exit(lockup_exit);

MODULE_DESCRIPTION("CPUs that lock up for an exact time");
MODULE_LICENSE("GPL");
