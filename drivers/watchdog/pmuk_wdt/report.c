// SPDX-License-Identifier: GPL-2.0
/*
 * Prints the report of a stuck CPU, on that CPU in NMI or from another CPU's beat.
 *
 * printk() may be called in NMI, but consoles that need a lock lag behind until a CPU prints
 * outside of NMI: the next beat of any CPU does that. CPUs take turns at printing. A CPU that has
 * waited too long for its turn prints anyway: mixed lines are better than no report.
 *
 * CPUs that get stuck together make one report: the first of them lists the silent CPUs, and each
 * of these adds its registers and its stack when its own lockup is due.
 */
#define pr_fmt(fmt) "pmuk_wdt: " fmt

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/debug_locks.h>
#include <linux/hardirq.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/nmi.h>
#include <linux/panic.h>
#include <linux/perf_event.h>
#include <linux/printk.h>
#include <linux/processor.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/stacktrace.h>
#include <linux/string.h>
#include <linux/timekeeping.h>

#include "wdt.h"

/* The number of silent CPUs that a report lists at most. It only counts the others. */
#define PMUK_WDT_LISTED		16

/* ---- stacks and registers ---- */

/* Saves the stack of this CPU in ->trace; returns the number of frames. */
unsigned int pmuk_wdt_trace(struct pmuk_wdt_cpu *c)
{
	return stack_trace_save(c->trace, PMUK_WDT_FRAMES, 1);
}

/* Prefixes of the functions that write to consoles: printk's own, and those of slow UARTs. */
static const char *const pmuk_wdt_printers[] = {
	"console_", "nbcon_", "vprintk_emit", "serial8250_console_", "pl011_console_",
};

static bool pmuk_wdt_is_printer(unsigned long ip)
{
	unsigned int i;
	char name[64];

	snprintf(name, sizeof(name), "%ps", (void *)ip);
	for (i = 0; i < ARRAY_SIZE(pmuk_wdt_printers); i++) {
		if (str_has_prefix(name, pmuk_wdt_printers[i]))
			return true;
	}
	return false;
}

bool pmuk_wdt_is_printing(const struct pmuk_wdt_cpu *c, unsigned int frames)
{
	unsigned int i;

	for (i = 0; i < frames; i++) {
		if (pmuk_wdt_is_printer(c->trace[i]))
			return true;
	}
	return false;
}

#if defined(CONFIG_ARM64)
static void pmuk_wdt_show_regs(const struct pt_regs *regs)
{
	unsigned int i;

	pr_crit("pc %pS lr %pS\n", (void *)regs->pc, (void *)regs->regs[30]);
	pr_crit("sp %016llx pstate %08llx\n", regs->sp, regs->pstate);
	for (i = 0; i < 30; i += 3)
		pr_crit("x%-2u %016llx x%-2u %016llx x%-2u %016llx\n", i, regs->regs[i],
			i + 1, regs->regs[i + 1], i + 2, regs->regs[i + 2]);
}
#elif defined(CONFIG_X86_64)
static void pmuk_wdt_show_regs(const struct pt_regs *regs)
{
	pr_crit("ip %pS flags %08lx\n", (void *)regs->ip, regs->flags);
	pr_crit("sp %016lx bp %016lx ax %016lx\n", regs->sp, regs->bp, regs->ax);
	pr_crit("bx %016lx cx %016lx dx %016lx\n", regs->bx, regs->cx, regs->dx);
	pr_crit("si %016lx di %016lx r8 %016lx\n", regs->si, regs->di, regs->r8);
	pr_crit("r9 %016lx r10 %016lx r11 %016lx\n", regs->r9, regs->r10, regs->r11);
	pr_crit("r12 %016lx r13 %016lx r14 %016lx\n", regs->r12, regs->r13, regs->r14);
	pr_crit("r15 %016lx\n", regs->r15);
}
#else
static void pmuk_wdt_show_regs(const struct pt_regs *regs)
{
	pr_crit("ip %pS\n", (void *)instruction_pointer((struct pt_regs *)regs));
}
#endif

/* Returns the frame of the interrupted code: the frames before that belong to the NMI. */
static unsigned int pmuk_wdt_first_frame(const struct pmuk_wdt_cpu *c, unsigned int frames,
					 struct pt_regs *regs)
{
	unsigned int i;

	for (i = 0; regs && i < frames; i++) {
		if (c->trace[i] == instruction_pointer(regs))
			return i;
	}
	return 0;
}

static void pmuk_wdt_show_stack(struct pmuk_wdt_cpu *c, struct pt_regs *regs)
{
	unsigned int i, frames = pmuk_wdt_trace(c);

	if (regs)
		pmuk_wdt_show_regs(regs);
	pr_crit("Stack:\n");
	for (i = pmuk_wdt_first_frame(c, frames, regs); i < frames; i++)
		pr_crit(" %pS\n", (void *)c->trace[i]);
}

/* PMUs record 32 branches, or fewer; some record 64. */
#define PMUK_WDT_BRANCHES	32ULL

static void pmuk_wdt_show_branches(const struct perf_branch_stack *branches)
{
	const struct perf_branch_entry *entry = branches->entries;
	u64 left;

	pr_crit("Latest branches, the last one first:\n");
	for (left = min(branches->nr, PMUK_WDT_BRANCHES); left; left--, entry++)
		pr_crit(" %pS -> %pS\n", (void *)(unsigned long)entry->from,
			(void *)(unsigned long)entry->to);
}

/*
 * Shows the registers and the stack of this CPU, in NMI. If the kernel does not show them on behalf
 * of modules, the driver prints both itself.
 */
void pmuk_wdt_show_here(struct pmuk_wdt_cpu *c, struct pt_regs *regs)
{
	if (!regs || !hardlockup_report_show(regs))
		pmuk_wdt_show_stack(c, regs);
	if (c->branches && c->branches->nr)
		pmuk_wdt_show_branches(c->branches);
	debug_show_held_locks(current);
}

/* ---- turns at printing ---- */

/* The number of tries for a turn at printing. Together they take some milliseconds. */
#define PMUK_WDT_PRINT_TRIES	50000

static bool pmuk_wdt_print_begin(void)
{
	unsigned int tries;

	for (tries = 0; tries < PMUK_WDT_PRINT_TRIES; tries++) {
		if (__printk_cpu_sync_try_get())
			return true;
		cpu_relax();
	}
	return false;
}

static void pmuk_wdt_print_end(bool mine)
{
	if (mine)
		__printk_cpu_sync_put();
}

/* ---- long prints from a beat: consoles may print what other CPUs have logged, too ---- */

/* A CPU may print for a minute before it counts as stuck: serial lines have taken over 30 s. */
bool pmuk_wdt_is_reporting(const struct pmuk_wdt_cpu *c, u64 now)
{
	u64 since = READ_ONCE(c->reporting_since);

	return since && now < since + PMUK_WDT_PRINT_NS;
}

/* The touch keeps the kernel's own detectors from reporting this CPU while it prints. */
static void pmuk_wdt_reporting_begin(struct pmuk_wdt_cpu *self)
{
	touch_nmi_watchdog();
	WRITE_ONCE(self->reporting_since, ktime_get_mono_fast_ns());
}

static void pmuk_wdt_reporting_end(struct pmuk_wdt_cpu *self)
{
	u64 now = ktime_get_mono_fast_ns();

	touch_nmi_watchdog();
	pmuk_wdt_watch_restart(&self->watch, now);
	WRITE_ONCE(self->touches, nmi_watchdog_touches(smp_processor_id()));
	WRITE_ONCE(self->beat_at, now);
	WRITE_ONCE(self->reporting_since, 0);
}

/* ---- reports ---- */

void pmuk_wdt_do_panic(struct pt_regs *regs, const char *message)
{
	if (in_nmi())
		nmi_panic(regs, message);
	else
		panic("%s", message);
}

static u64 pmuk_wdt_ms(u64 now, u64 since)
{
	return now > since ? div_u64(now - since, NSEC_PER_MSEC) : 0;
}

/*
 * Returns whether this CPU begins a report. If not, the CPU adds to the report that another one
 * began.
 */
static bool pmuk_wdt_is_first(u64 now)
{
	u64 was = atomic64_read(&pmuk_wdt.report_at);

	if (was && now < was + pmuk_wdt.times.threshold)
		return false;
	return atomic64_cmpxchg(&pmuk_wdt.report_at, was, now) == was;
}

/* Records how late the report is. The lockup began at the latest when the next beat was due. */
static void pmuk_wdt_note_report(struct pmuk_wdt_cpu *c, u64 now)
{
	const struct pmuk_wdt_times *t = c->times;
	u64 beat = READ_ONCE(c->beat_at), begin = beat + t->beat + t->threshold;
	u64 late = div64_u64(now > begin ? now - begin : 0, t->threshold / 32);

	WRITE_ONCE(c->stuck_since, beat);
	atomic_inc(&c->late[min_t(u64, late, PMUK_WDT_BUCKETS - 1)]);
	atomic_inc(&c->reports);
	atomic_inc(&pmuk_wdt.reports);
}

/* Lists CPUs that are likely to be part of the same lockup. */
static void pmuk_wdt_list_others(int culprit, u64 now)
{
	unsigned int more = 0, listed = 0;
	int cpu;

	for_each_cpu_and(cpu, &pmuk_wdt.watched, &pmuk_wdt.cpus) {
		const struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);
		u64 beat = READ_ONCE(c->beat_at);

		if (cpu == culprit || now <= beat + c->times->wait / 2)
			continue;
		if (listed++ < PMUK_WDT_LISTED)
			pr_crit("CPU %d is silent for %llu ms, too\n", cpu, pmuk_wdt_ms(now, beat));
		else
			more++;
	}
	if (more)
		pr_crit("and %u more CPUs\n", more);
}

/* The backtrace calls wait for ten seconds if a CPU does not answer. Slow consoles take seconds. */
#define PMUK_WDT_ANSWER_NS		(9 * NSEC_PER_SEC)

/*
 * If a CPU did not answer in time, make no more backtrace calls, which would hold up this CPU each
 * time.
 */
static void pmuk_wdt_check_answer_time(u64 start)
{
	if (ktime_get_mono_fast_ns() - start <= PMUK_WDT_ANSWER_NS)
		return;
	WRITE_ONCE(pmuk_wdt.backtraces, false);
	pr_warn("CPUs do not answer NMIs: not asked again\n");
}

static void pmuk_wdt_backtrace_cpu(int cpu)
{
	u64 start = ktime_get_mono_fast_ns();

	if (READ_ONCE(pmuk_wdt.backtraces)) {
		trigger_single_cpu_backtrace(cpu);
		pmuk_wdt_check_answer_time(start);
	}
}

/* Makes all CPUs show their stacks. @culprit: the CPU that has shown its own already, or -1. */
static void pmuk_wdt_backtrace_all(int culprit)
{
	u64 start = ktime_get_mono_fast_ns();

	if (!READ_ONCE(pmuk_wdt.backtraces)) {
		pr_info("CPUs cannot be asked for their stacks here\n");
		return;
	}
	trigger_allbutcpu_cpu_backtrace(culprit);
	pmuk_wdt_check_answer_time(start);
}

/*
 * Tells the kernel once that reports have ended. Callers may have printed only lines of the
 * watchdog device. These are no report, so compare the number of reports.
 */
static void pmuk_wdt_end_reports(void)
{
	int reports = atomic_read(&pmuk_wdt.reports);

	if (atomic_xchg(&pmuk_wdt.ended, reports) != reports)
		hardlockup_report_end();
}

/*
 * Ends a report, in NMI or in a beat. Nothing can be shown after a panic, so the first CPU that is
 * about to panic has the other CPUs show their stacks first. Without a panic, a beat does that.
 */
static void pmuk_wdt_conclude(struct pt_regs *regs, int culprit, bool first)
{
	bool all = pmuk_wdt_wants_backtraces();

	if (!pmuk_wdt_wants_panic()) {
		if (first && all)
			atomic_set(&pmuk_wdt.all_wanted, 1);
		else if (!in_nmi())
			pmuk_wdt_end_reports();
		return;
	}
	if (all && atomic_xchg(&pmuk_wdt.panic_claimed, 1))
		return;
	if (all)
		pmuk_wdt_backtrace_all(culprit);
	pmuk_wdt_end_reports();
	pmuk_wdt_do_panic(regs, "Hard LOCKUP");
}

/*
 * Asks sched_ext to abort its scheduler, and notes when it did. Returns false if another CPU is
 * asking: the answer that CPU gets is not noted yet.
 */
static bool pmuk_wdt_ask_sched_ext(int cpu, u64 now)
{
	static atomic_t asking;

	if (atomic_xchg(&asking, 1))
		return false;
	if (!hardlockup_report_begin(cpu))
		atomic64_set(&pmuk_wdt.aborted_at, now);
	atomic_set_release(&asking, 0);
	return true;
}

/*
 * A BPF scheduler may be the reason for the lockup. If sched_ext aborts that scheduler now, the CPU
 * has another threshold to recover before the report. sched_ext aborts a scheduler once, at the
 * first stuck CPU. For a threshold from then on, the first report of each other stuck CPU is
 * deferred, too. While another CPU asks sched_ext, the report waits for the next NMI or beat.
 */
static bool pmuk_wdt_is_deferred(struct pmuk_wdt_cpu *c, int cpu)
{
	u64 now = ktime_get_mono_fast_ns(), aborted;

	if (!pmuk_wdt_ask_sched_ext(cpu, now)) {
		atomic_set(&c->reported, 0);
		return true;
	}
	aborted = atomic64_read(&pmuk_wdt.aborted_at);
	if (!aborted || now >= aborted + pmuk_wdt.times.threshold ||
	    READ_ONCE(c->touched_at) >= aborted)
		return false;
	WRITE_ONCE(c->touched_at, now);
	atomic_set(&c->reported, 0);
	return true;
}

/* Reports this CPU; called in NMI. */
void pmuk_wdt_report_own(struct pmuk_wdt_cpu *c, struct pt_regs *regs, u64 now)
{
	int cpu = smp_processor_id();
	bool first, mine;

	if (atomic_cmpxchg(&c->reported, 0, 1) || pmuk_wdt_is_deferred(c, cpu))
		return;
	pmuk_wdt_note_report(c, now);
	first = pmuk_wdt_is_first(now);
	mine = pmuk_wdt_print_begin();
	pr_emerg("CPU%d: Watchdog detected hard LOCKUP on cpu %d: interrupts are off for %llu ms%s, in %s[%d]\n",
		 cpu, cpu, pmuk_wdt_ms(now, c->beat_at), first ? "" : ", too", current->comm,
		 task_pid_nr(current));
	if (first)
		pmuk_wdt_list_others(cpu, now);
	pmuk_wdt_show_here(c, regs);
	pmuk_wdt_print_end(mine);
	atomic_set(&pmuk_wdt.unflushed, 1);
	pmuk_wdt_conclude(regs, cpu, first);
}

static void pmuk_wdt_show_last(const struct pmuk_wdt_cpu *c, u64 now)
{
	u64 nmi = READ_ONCE(c->nmi_at);

	if (nmi)
		pr_crit("Its latest NMI was %llu ms ago, at %pS\n", pmuk_wdt_ms(now, nmi),
			(void *)READ_ONCE(c->nmi_ip));
	else
		pr_crit("It has no NMI of its own\n");
}

/*
 * Reports @cpu from another CPU's beat. The CPU may have recovered after that beat checked it, so
 * check again once ->reported is set.
 */
void pmuk_wdt_report_other(struct pmuk_wdt_cpu *self, int cpu, u64 now)
{
	struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);
	bool first, mine;

	if (atomic_cmpxchg(&c->reported, 0, 1))	/* LMM(pmuk_wdt_report_other:A) */
		return;
	if (now <= READ_ONCE(c->beat_at) + pmuk_wdt.times.threshold) {
		atomic_set(&c->reported, 0);
		return;
	}
	if (pmuk_wdt_is_deferred(c, cpu))
		return;
	pmuk_wdt_note_report(c, now);
	first = pmuk_wdt_is_first(now);
	pmuk_wdt_reporting_begin(self);
	mine = pmuk_wdt_print_begin();
	pr_emerg("CPU%d: Watchdog detected hard LOCKUP on cpu %d: it is stuck or halted with interrupts off for %llu ms%s\n",
		 smp_processor_id(), cpu, pmuk_wdt_ms(now, c->stuck_since), first ? "" : ", too");
	pmuk_wdt_show_last(c, now);
	if (first)
		pmuk_wdt_list_others(cpu, now);
	hardlockup_report_show(NULL);
	pmuk_wdt_print_end(mine);
	pmuk_wdt_backtrace_cpu(cpu);
	pmuk_wdt_conclude(NULL, cpu, first);
	pmuk_wdt_reporting_end(self);
}

/*
 * Ends the lockup of this CPU, from its own beat. If ->stuck_since is 0, a neighbour has set
 * ->reported but has not reported the CPU yet. Then the neighbour sees this beat and reports
 * nothing, or else the next beat finds the report.
 */
void pmuk_wdt_recovered(struct pmuk_wdt_cpu *self, u64 now)
{
	u64 since = READ_ONCE(self->stuck_since);

	if (!since)
		return;
	pmuk_wdt_reporting_begin(self);
	pr_warn("CPU %d has recovered after %llu ms\n", smp_processor_id(),
		pmuk_wdt_ms(now, since));
	pmuk_wdt_reporting_end(self);
	WRITE_ONCE(self->stuck_since, 0);
	atomic_set_release(&self->reported, 0);	/* LMM(pmuk_wdt_recovered:A) */
}

/* Finishes reports that were printed in NMI; called from a beat. */
void pmuk_wdt_flush(struct pmuk_wdt_cpu *self)
{
	bool lines = atomic_read(&pmuk_wdt.unflushed) && atomic_xchg(&pmuk_wdt.unflushed, 0);
	bool all = atomic_read(&pmuk_wdt.all_wanted) && atomic_xchg(&pmuk_wdt.all_wanted, 0);

	if (!lines && !all)
		return;
	pmuk_wdt_reporting_begin(self);
	if (lines)
		pr_info("the report above was printed in NMI\n");
	if (all)
		pmuk_wdt_backtrace_all(-1);
	pmuk_wdt_end_reports();
	pmuk_wdt_reporting_end(self);
}
