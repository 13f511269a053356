// SPDX-License-Identifier: GPL-2.0
/*
 * What people are told of a CPU that is stuck, by itself in NMI or by another one's beat.
 *
 * printk() may be called in NMI, but consoles that need a lock lag behind until somebody prints
 * outside of it: the next beat of any CPU does. Reports take turns where that is to be had
 * soon, and are printed in a muddle rather than not at all.
 *
 * CPUs that get stuck together make one report: the first of them lists those that are
 * silent, and each adds its registers and its stack when its own time comes.
 */
#define pr_fmt(fmt) "pmuk_wdt: " fmt

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/debug_locks.h>
#include <linux/hardirq.h>
#include <linux/kernel.h>
#include <linux/nmi.h>
#include <linux/panic.h>
#include <linux/printk.h>
#include <linux/processor.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/stacktrace.h>
#include <linux/string.h>
#include <linux/timekeeping.h>

#include "wdt.h"

/* Of a report that lists CPUs: more than these are only counted. */
#define PMUK_WDT_LISTED		16

/* ---- stacks and registers ---- */

/* Of this CPU, with what the NMI has interrupted at its end. */
unsigned int pmuk_wdt_trace(struct pmuk_wdt_cpu *c)
{
	return stack_trace_save(c->trace, PMUK_WDT_FRAMES, 1);
}

/* Names that stacks have which write to a console: the core's, and those of UARTs that are slow. */
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

/* Where the stack of what was interrupted begins; above that is the NMI's. */
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

/* In NMI, on the CPU that it is about. A kernel that does not help modules has us do it. */
void pmuk_wdt_show_here(struct pmuk_wdt_cpu *c, struct pt_regs *regs)
{
	if (!regs || !hardlockup_report_show(regs))
		pmuk_wdt_show_stack(c, regs);
	debug_show_held_locks(current);
}

/* ---- turns at printing ---- */

/* Of waiting for another CPU that prints: some milliseconds. */
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

/* ---- by a beat: consoles may take long, also of what others have printed ---- */

/* A CPU that prints is not suspected for a minute: serial lines have taken more than half of it. */
bool pmuk_wdt_is_telling(const struct pmuk_wdt_cpu *c, u64 now)
{
	u64 since = READ_ONCE(c->telling_at);

	return since && now < since + PMUK_WDT_TELLING_NS;
}

/* The kernel's own detectors are told as well. */
static void pmuk_wdt_tell(struct pmuk_wdt_cpu *self)
{
	touch_nmi_watchdog();
	WRITE_ONCE(self->telling_at, ktime_get_mono_fast_ns());
}

static void pmuk_wdt_told(struct pmuk_wdt_cpu *self)
{
	u64 now = ktime_get_mono_fast_ns();

	touch_nmi_watchdog();
	pmuk_wdt_watch_anew(&self->watch, now);
	WRITE_ONCE(self->touches, nmi_watchdog_touches(smp_processor_id()));
	WRITE_ONCE(self->beat_at, now);
	WRITE_ONCE(self->telling_at, 0);
}

/* ---- reports ---- */

void pmuk_wdt_die(struct pt_regs *regs, const char *why)
{
	if (in_nmi())
		nmi_panic(regs, why);
	else
		panic("%s", why);
}

static u64 pmuk_wdt_ms(u64 now, u64 since)
{
	return now > since ? div_u64(now - since, NSEC_PER_MSEC) : 0;
}

/* Whether this begins a report; if not, it belongs to one that another CPU has begun. */
static bool pmuk_wdt_is_first(u64 now)
{
	u64 was = atomic64_read(&pmuk_wdt.report_at);

	if (was && now < was + pmuk_wdt.times.threshold)
		return false;
	return atomic64_cmpxchg(&pmuk_wdt.report_at, was, now) == was;
}

/* How late, at least: the lockup may have begun when the next beat was due. */
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

/* Those that are likely to be of the same report. */
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

/* Longer than this no CPU takes to answer an NMI. */
#define PMUK_WDT_ANSWER		NSEC_PER_SEC

/* The architecture waits, for ten seconds if need be: one that waits so long is not asked again. */
static void pmuk_wdt_judge_answers(u64 start)
{
	if (ktime_get_mono_fast_ns() - start <= PMUK_WDT_ANSWER)
		return;
	WRITE_ONCE(pmuk_wdt.backtraces, false);
	pr_warn("CPUs do not answer NMIs: not asked again\n");
}

static void pmuk_wdt_ask(int cpu)
{
	u64 start = ktime_get_mono_fast_ns();

	if (READ_ONCE(pmuk_wdt.backtraces)) {
		trigger_single_cpu_backtrace(cpu);
		pmuk_wdt_judge_answers(start);
	}
}

/* The CPU @culprit has shown its stack, and is left out; -1: none is. */
static void pmuk_wdt_ask_all(int culprit)
{
	u64 start = ktime_get_mono_fast_ns();

	if (!READ_ONCE(pmuk_wdt.backtraces)) {
		pr_info("CPUs cannot be asked for their stacks here\n");
		return;
	}
	trigger_allbutcpu_cpu_backtrace(culprit);
	pmuk_wdt_judge_answers(start);
}

/* Reports have ended. Lines of the watchdog device, which this follows too, are no report. */
static void pmuk_wdt_end_reports(void)
{
	int reports = atomic_read(&pmuk_wdt.reports);

	if (atomic_xchg(&pmuk_wdt.ended, reports) != reports)
		hardlockup_report_end();
}

/*
 * The end of a report, from NMI or a beat. Nothing comes after a panic, so the stacks of the others
 * are shown before it, by the first CPU that is to panic; without a panic a beat shows them.
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
	if (all && atomic_xchg(&pmuk_wdt.dying, 1))
		return;
	if (all)
		pmuk_wdt_ask_all(culprit);
	pmuk_wdt_end_reports();
	pmuk_wdt_die(regs, "Hard LOCKUP");
}

/* A BPF scheduler may be the reason. The CPU has another threshold while sched_ext aborts it. */
static bool pmuk_wdt_is_put_off(struct pmuk_wdt_cpu *c, int cpu)
{
	if (hardlockup_report_begin(cpu))
		return false;
	WRITE_ONCE(c->touched_at, ktime_get_mono_fast_ns());
	atomic_set(&c->reported, 0);
	return true;
}

/* In NMI. */
void pmuk_wdt_report_own(struct pmuk_wdt_cpu *c, struct pt_regs *regs, u64 now)
{
	int cpu = smp_processor_id();
	bool first, mine;

	if (atomic_cmpxchg(&c->reported, 0, 1) || pmuk_wdt_is_put_off(c, cpu))
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

/* By another CPU's beat. What was looked at before it was claimed may be of before a recovery. */
void pmuk_wdt_report_other(struct pmuk_wdt_cpu *self, int cpu, u64 now)
{
	struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);
	bool first, mine;

	if (atomic_cmpxchg(&c->reported, 0, 1))	/* LMM(pmuk_wdt_report_other:A) */
		return;
	if (now <= READ_ONCE(c->beat_at) + pmuk_wdt.times.threshold) {
		WRITE_ONCE(c->stuck_since, 0);
		atomic_set(&c->reported, 0);
		return;
	}
	if (pmuk_wdt_is_put_off(c, cpu))
		return;
	pmuk_wdt_note_report(c, now);
	first = pmuk_wdt_is_first(now);
	pmuk_wdt_tell(self);
	mine = pmuk_wdt_print_begin();
	pr_emerg("CPU%d: Watchdog detected hard LOCKUP on cpu %d: it is stuck or halted with interrupts off for %llu ms%s\n",
		 smp_processor_id(), cpu, pmuk_wdt_ms(now, c->stuck_since), first ? "" : ", too");
	pmuk_wdt_show_last(c, now);
	if (first)
		pmuk_wdt_list_others(cpu, now);
	hardlockup_report_show(NULL);
	pmuk_wdt_print_end(mine);
	pmuk_wdt_ask(cpu);
	pmuk_wdt_conclude(NULL, cpu, first);
	pmuk_wdt_told(self);
}

/* By its own beat. A neighbour may have been about to report it, and does not now. */
void pmuk_wdt_recovered(struct pmuk_wdt_cpu *self, u64 now)
{
	u64 since = self->stuck_since;

	if (since) {
		pmuk_wdt_tell(self);
		pr_warn("CPU %d has recovered after %llu ms\n", smp_processor_id(),
			pmuk_wdt_ms(now, since));
		pmuk_wdt_told(self);
		WRITE_ONCE(self->stuck_since, 0);
	}
	atomic_set_release(&self->reported, 0);	/* LMM(pmuk_wdt_recovered:A) */
}

/* By a beat: what was left by a report from NMI. */
void pmuk_wdt_flush(struct pmuk_wdt_cpu *self)
{
	bool lines = atomic_read(&pmuk_wdt.unflushed) && atomic_xchg(&pmuk_wdt.unflushed, 0);
	bool all = atomic_read(&pmuk_wdt.all_wanted) && atomic_xchg(&pmuk_wdt.all_wanted, 0);

	if (!lines && !all)
		return;
	pmuk_wdt_tell(self);
	if (lines)
		pr_info("the report above was printed in NMI\n");
	if (all)
		pmuk_wdt_ask_all(-1);
	pmuk_wdt_end_reports();
	pmuk_wdt_told(self);
}
