// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check the order of steps in the watchdog's reports. sched_ext is asked first, because a
 * BPF scheduler may be the reason for a lockup. A CPU that sched_ext tries to help is not reported.
 * Reports by a CPU's own NMI have the branches that the PMU has recorded. A CPU that has not beaten
 * since a stop of the machine is not reported for the time of the stop.
 *
 * The sources of reports, NMIs and beats are compiled here with a log in place of the kernel's
 * calls. The tests therefore need no sched_ext and no PMU that records branches, and print nothing.
 */
#include <kunit/test.h>
#include <linux/console.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/debug_locks.h>
#include <linux/nmi.h>
#include <linux/panic.h>
#include <linux/perf_event.h>
#include <linux/pmu_kapi.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include "pmuk_suite.h"

/* The driver may be built in, too, so its names are changed here. */
#define pmuk_wdt		report_wdt
#define pmuk_wdt_beats_start	report_beats_start
#define pmuk_wdt_beats_stop	report_beats_stop
#define pmuk_wdt_cpus		report_cpus
#define pmuk_wdt_device_check	report_device_check
#define pmuk_wdt_device_next	report_device_next
#define pmuk_wdt_device_queue_notify	report_device_queue_notify
#define pmuk_wdt_do_panic	report_do_panic
#define pmuk_wdt_expect		report_expect
#define pmuk_wdt_flush		report_flush
#define pmuk_wdt_has_unisolated	report_has_unisolated
#define pmuk_wdt_is_in_kgdb	report_is_in_kgdb
#define pmuk_wdt_is_printing	report_is_printing
#define pmuk_wdt_is_quiet	report_is_quiet
#define pmuk_wdt_is_reporting	report_is_reporting
#define pmuk_wdt_mark_alive	report_mark_alive
#define pmuk_wdt_mark_kgdb	report_mark_kgdb
#define pmuk_wdt_nmi		report_nmi
#define pmuk_wdt_recovered	report_recovered
#define pmuk_wdt_report_other	report_report_other
#define pmuk_wdt_report_own	report_report_own
#define pmuk_wdt_show_here	report_show_here
#define pmuk_wdt_timer_nmi	report_timer_nmi
#define pmuk_wdt_timer_set	report_timer_set
#define pmuk_wdt_touched_at	report_touched_at
#define pmuk_wdt_trace		report_trace
#define pmuk_wdt_wants_backtraces	report_wants_backtraces
#define pmuk_wdt_wants_panic	report_wants_panic

#include "../../drivers/watchdog/pmuk_wdt/timer_nmi.h"
#include "../../drivers/watchdog/pmuk_wdt/wdt.h"

/*
 * The log has a letter for each step: asked sched_ext, printed, shown, a branch, ended, panicked
 * (!).
 */
static char done[8];
static bool aborts;		/* sched_ext has a scheduler to abort */
static struct pmuk_wdt_cpu *asks_too;	/* reports itself while sched_ext is asked; or NULL */

/* Adds a step to the log, unless the last step was the same. */
static void note(char what)
{
	size_t length = strlen(done);

	if (length + 1 < sizeof(done) && (!length || done[length - 1] != what))
		done[length] = what;
}

/* The lines of branches: their number, and the first. */
static struct {
	unsigned int nr;
	char first[200];
} branch_lines;

static __printf(1, 2) void note_line(const char *fmt, ...)
{
	char line[sizeof(branch_lines.first)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	note(strstr(line, " -> ") ? 'b' : 'p');
	if (strstr(line, " -> ") && !branch_lines.nr++)
		strscpy(branch_lines.first, line);
}

static bool ask_sched_ext(int cpu)
{
	struct pmuk_wdt_cpu *other = asks_too;
	bool helps = aborts;

	note('a');
	aborts = false;
	asks_too = NULL;
	if (other)
		pmuk_wdt_report_own(other, NULL, ktime_get_mono_fast_ns());
	return !helps;
}

static bool show(struct pt_regs *regs)
{
	note('s');
	return true;
}

struct pmuk_wdt pmuk_wdt;
DEFINE_PER_CPU(struct pmuk_wdt_cpu, pmuk_wdt_cpus);

bool pmuk_wdt_wants_panic(void)
{
	return true;
}

bool pmuk_wdt_wants_backtraces(void)
{
	return false;
}

/* The device, kgdb, touches and the timer play no part here. */
void pmuk_wdt_device_check(struct pmuk_wdt_device *d, u64 now, struct pt_regs *regs) { }
void pmuk_wdt_device_queue_notify(struct pmuk_wdt_device *d) { }
void pmuk_wdt_mark_alive(u64 now) { }
void pmuk_wdt_mark_kgdb(u64 now) { }

bool pmuk_wdt_has_unisolated(const struct cpumask *cpus)
{
	return true;
}

u64 pmuk_wdt_device_next(const struct pmuk_wdt_device *d, u64 now, u64 threshold)
{
	return U64_MAX;
}

bool pmuk_wdt_is_quiet(void)
{
	return false;
}

bool pmuk_wdt_is_in_kgdb(void)
{
	return false;
}

u64 pmuk_wdt_touched_at(struct pmuk_wdt_cpu *c, int cpu)
{
	return 0;
}

#undef debug_show_held_locks
#undef nmi_panic
#undef panic
#undef pr_crit
#undef pr_emerg
#undef pr_fmt
#undef pr_info
#undef pr_warn
#define debug_show_held_locks(task)	((void)(task))
#define hardlockup_report_begin(cpu)	ask_sched_ext(cpu)
#define hardlockup_report_end()		note('e')
#define hardlockup_report_show(regs)	show(regs)
#define nmi_panic(regs, why)		do { (void)(regs); (void)(why); note('!'); } while (0)
#define panic(fmt, why)			do { no_printk(fmt, why); note('!'); } while (0)
#define pr_crit(fmt, ...)		note_line(fmt, ##__VA_ARGS__)
#define pr_emerg(fmt, ...)		(no_printk(fmt, ##__VA_ARGS__), note('p'))
#define pr_info(fmt, ...)		(no_printk(fmt, ##__VA_ARGS__), note('p'))
#define pr_warn(fmt, ...)		(no_printk(fmt, ##__VA_ARGS__), note('p'))

#include "../../drivers/watchdog/pmuk_wdt/report.c"

#undef in_nmi
#define in_nmi()			true
#define pmuk_timer_nmi_disable()	((void)0)
#define pmuk_timer_nmi_enable()		(-ENODEV)
#define pmuk_timer_nmi_set(ns)		((void)(ns))

#include "../../drivers/watchdog/pmuk_wdt/nmi.c"
#include "../../drivers/watchdog/pmuk_wdt/beat.c"

/* Begins a lockup of @cpu with a threshold of 1 s. Returns the time of its report. */
static u64 begin(int cpu, bool scheduler)
{
	struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);

	memset(done, 0, sizeof(done));
	aborts = scheduler;
	cpumask_clear(&pmuk_wdt.watched);
	cpumask_clear(&pmuk_wdt.cpus);
	pmuk_wdt.times = pmuk_wdt_times_of(NSEC_PER_SEC);
	atomic_set(&pmuk_wdt.reports, 0);
	atomic_set(&pmuk_wdt.ended, 0);
	atomic64_set(&pmuk_wdt.report_at, 0);
	atomic64_set(&pmuk_wdt.aborted_at, 0);
	memset(c, 0, sizeof(*c));
	c->times = &pmuk_wdt.times;
	c->beat_at = ktime_get_mono_fast_ns();
	return c->beat_at + pmuk_wdt.times.wait;
}

/* Lets the CPU report itself, or another CPU report it; the other one is this CPU, too. */
static void report(int cpu, bool own, u64 now)
{
	struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);

	if (own)
		pmuk_wdt_report_own(c, NULL, now);
	else
		pmuk_wdt_report_other(c, cpu, now);
}

/* Expects no report, no panic and no count at first, and a report after another threshold. */
static void check_put_off(struct kunit *test, int cpu, bool own)
{
	struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);
	u64 now = begin(cpu, true);

	report(cpu, own, now);
	KUNIT_EXPECT_STREQ(test, done, "a");
	KUNIT_EXPECT_EQ(test, atomic_read(&pmuk_wdt.reports), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->reported), 0);
	KUNIT_EXPECT_GE(test, c->touched_at, c->beat_at);
	memset(done, 0, sizeof(done));
	report(cpu, own, now + pmuk_wdt.times.wait);
	KUNIT_EXPECT_EQ(test, done[0], 'a');
	KUNIT_EXPECT_EQ(test, atomic_read(&pmuk_wdt.reports), 1);
}

static void check_report(struct kunit *test, int cpu, bool own, const char *order)
{
	report(cpu, own, begin(cpu, false));
	KUNIT_EXPECT_STREQ(test, done, order);
	KUNIT_EXPECT_EQ(test, atomic_read(&pmuk_wdt.reports), 1);
}

static void own_reports_wait_for_sched_ext(struct kunit *test)
{
	check_put_off(test, get_cpu(), true);
	put_cpu();
}

static void reports_of_others_wait_for_sched_ext(struct kunit *test)
{
	check_put_off(test, get_cpu(), false);
	put_cpu();
}

static void sched_ext_is_asked_first(struct kunit *test)
{
	int cpu = get_cpu();

	check_report(test, cpu, true, "ape!");
	check_report(test, cpu, false, "apse!");
	put_cpu();
}

/*
 * sched_ext aborts a scheduler only once. If the scheduler has locked up two CPUs, the second one
 * has another threshold, too, and no more than one.
 */
static void all_stuck_cpus_wait_for_sched_ext(struct kunit *test)
{
	int cpu = get_cpu();
	struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);
	u64 now = begin(cpu, false);

	pmuk_wdt.times = pmuk_wdt_times_of(PMUK_WDT_THRESHOLD_MAX);	/* the host may be slow */
	atomic64_set(&pmuk_wdt.aborted_at, ktime_get_mono_fast_ns());
	report(cpu, true, now);
	KUNIT_EXPECT_STREQ(test, done, "a");
	KUNIT_EXPECT_EQ(test, atomic_read(&c->reported), 0);
	report(cpu, true, now + pmuk_wdt.times.wait);
	KUNIT_EXPECT_EQ(test, atomic_read(&pmuk_wdt.reports), 1);
	put_cpu();
}

/*
 * Two stuck CPUs report themselves at the same moment. The scheduler is aborted for one of them.
 * The other one waits too, though the abort is not noted when it wants to report.
 */
static void stuck_cpus_ask_sched_ext_in_turn(struct kunit *test)
{
	static struct pmuk_wdt_cpu other;
	int cpu = get_cpu();
	u64 now = begin(cpu, true);

	pmuk_wdt.times = pmuk_wdt_times_of(PMUK_WDT_THRESHOLD_MAX);	/* the host may be slow */
	other = *pmuk_wdt_of(cpu);
	asks_too = &other;
	report(cpu, true, now);
	KUNIT_EXPECT_NULL(test, asks_too);
	KUNIT_EXPECT_EQ(test, atomic_read(&other.reported), 0);
	pmuk_wdt_report_own(&other, NULL, now);
	KUNIT_EXPECT_EQ(test, atomic_read(&pmuk_wdt.reports), 0);
	put_cpu();
}

static void old_aborts_defer_no_report(struct kunit *test)
{
	int cpu = get_cpu();
	u64 now = begin(cpu, false);

	atomic64_set(&pmuk_wdt.aborted_at, ktime_get_mono_fast_ns() - pmuk_wdt.times.threshold);
	report(cpu, true, now);
	KUNIT_EXPECT_EQ(test, atomic_read(&pmuk_wdt.reports), 1);
	put_cpu();
}

/*
 * A neighbour has set ->reported, and has yet to look at the beat again: the beat leaves
 * ->reported to the neighbour. Once the neighbour has reported, the next beat ends the lockup.
 */
static void recovery_leaves_a_report_to_its_cpu(struct kunit *test)
{
	int cpu = get_cpu();
	struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);
	u64 now = begin(cpu, false);

	atomic_set(&c->reported, 1);
	pmuk_wdt_recovered(c, now);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->reported), 1);
	KUNIT_EXPECT_STREQ(test, done, "");
	pmuk_wdt_note_report(c, now);
	pmuk_wdt_recovered(c, now);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->reported), 0);
	KUNIT_EXPECT_EQ(test, c->stuck_since, 0ULL);
	KUNIT_EXPECT_STREQ(test, done, "p");
	put_cpu();
}

/* A call for a backtrace takes @seconds. Returns whether there will be more of these calls. */
static bool asks_again(unsigned int seconds)
{
	pmuk_wdt.backtraces = true;
	pmuk_wdt_check_answer_time(ktime_get_mono_fast_ns() - seconds * NSEC_PER_SEC);
	return pmuk_wdt.backtraces;
}

/* A console takes some seconds for a stack. A call that gets no answer takes ten. */
static void slow_consoles_do_not_end_backtraces(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, asks_again(3));
	KUNIT_EXPECT_FALSE(test, asks_again(10));
}

#define NR_BRANCHES	40U

static struct {
	struct perf_branch_stack stack;
	struct perf_branch_entry entries[NR_BRANCHES];
} recorded = {
	.stack = { .nr = NR_BRANCHES },
};

/* Lets the NMI of this CPU, which does not beat, come every 50 us until the CPU is reported. */
static void report_by_nmi(struct kunit *test, struct pmuk_wdt_cpu *c,
			  const struct perf_branch_stack *branches)
{
	static struct pt_regs regs;
	struct pmuk_sample sample = { .valid = PERF_SAMPLE_READ, .branches = branches,
				      .regs = &regs };
	const struct pmuk_format_event event = { .sample = &sample };
	u64 end = c->beat_at + NSEC_PER_SEC, next = 0;

	memset(&branch_lines, 0, sizeof(branch_lines));
	while (!atomic_read(&c->reported) && ktime_get_mono_fast_ns() < end) {
		if (ktime_get_mono_fast_ns() < next)
			continue;
		next = ktime_get_mono_fast_ns() + 50 * NSEC_PER_USEC;
		sample.value.count += 50000;
		KUNIT_EXPECT_EQ(test, pmuk_wdt_nmi(&event), PMUK_FORMAT_RESET);
	}
	KUNIT_EXPECT_STREQ(test, done, branches ? "apspbe!" : "apse!");
	KUNIT_EXPECT_NULL(test, c->branches);
}

/* Begins a lockup of this CPU, with a threshold of 1 ms. */
static struct pmuk_wdt_cpu *begin_short(int cpu)
{
	struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);

	begin(cpu, false);
	pmuk_wdt.times = pmuk_wdt_times_of(NSEC_PER_MSEC);
	cpumask_set_cpu(cpu, &pmuk_wdt.watched);
	cpumask_set_cpu(cpu, &pmuk_wdt.cpus);
	c->watch.since = c->beat_at;
	return c;
}

static void own_reports_have_branches(struct kunit *test)
{
	char wanted[sizeof(branch_lines.first)];
	int cpu = get_cpu();

	recorded.entries[0].from = (unsigned long)schedule + 8;
	recorded.entries[0].to = (unsigned long)strlen;
	snprintf(wanted, sizeof(wanted), " %pS -> %pS\n",
		 (void *)(unsigned long)recorded.entries[0].from,
		 (void *)(unsigned long)recorded.entries[0].to);
	report_by_nmi(test, begin_short(cpu), &recorded.stack);
	KUNIT_EXPECT_EQ(test, branch_lines.nr, 32);
	KUNIT_EXPECT_STREQ(test, branch_lines.first, wanted);

	recorded.stack.nr = 2;
	report_by_nmi(test, begin_short(cpu), &recorded.stack);
	KUNIT_EXPECT_EQ(test, branch_lines.nr, 2);
	recorded.stack.nr = NR_BRANCHES;
	put_cpu();
}

static void own_reports_may_have_no_branches(struct kunit *test)
{
	int cpu = get_cpu();

	report_by_nmi(test, begin_short(cpu), NULL);
	KUNIT_EXPECT_EQ(test, branch_lines.nr, 0);
	put_cpu();
}

/* Lets three CPUs watch each other: this one, and two that follow it. They have just beaten. */
static void begin_three(struct pmuk_wdt_cpu *c[3])
{
	int cpus[3] = { smp_processor_id() };
	unsigned int i;

	cpumask_copy(&pmuk_wdt.watched, cpu_possible_mask);
	cpus[1] = pmuk_wdt_next_cpu(cpus[0]);
	cpus[2] = pmuk_wdt_next_cpu(cpus[1]);
	for (i = 0; i < 3; i++) {
		begin(cpus[i], false);
		c[i] = pmuk_wdt_of(cpus[i]);
		c[i]->beat_at = c[0]->beat_at;
	}
	for (i = 0; i < 3; i++) {
		cpumask_set_cpu(cpus[i], &pmuk_wdt.watched);
		cpumask_set_cpu(cpus[i], &pmuk_wdt.cpus);
	}
}

/* Lets this CPU beat, and check the CPUs that follow it. */
static void beat(struct pmuk_wdt_cpu *self, u64 now)
{
	pmuk_wdt_note_beat(&self->gaps, self->beat_at, now, self->times);
	self->beat_at = now;
	pmuk_wdt_check_neighbours(self, now);
}

/*
 * After a stop of the machine, this CPU finds the second CPU beating. When the second CPU is silent
 * later, this CPU checks the third one, which has not beaten since the stop.
 */
static void stops_are_remembered_until_all_have_beaten(struct kunit *test)
{
	const u64 stop = 5ULL * NSEC_PER_SEC;
	struct pmuk_wdt_cpu *c[3];
	u64 now;

	if (num_possible_cpus() < 3)
		kunit_skip(test, "needs three CPUs");
	get_cpu();
	begin_three(c);
	now = c[0]->beat_at + stop;
	beat(c[0], now);
	c[1]->beat_at = now + 1;
	beat(c[0], now + c[0]->times->beat);
	KUNIT_EXPECT_EQ(test, c[0]->gaps.ns, stop);
	now += 4 * c[0]->times->beat;
	beat(c[0], now);
	KUNIT_EXPECT_EQ(test, atomic_read(&pmuk_wdt.reports), 0);
	c[1]->beat_at = now;
	c[2]->beat_at = now;
	beat(c[0], now);
	KUNIT_EXPECT_EQ(test, c[0]->gaps.ns, 0ULL);
	put_cpu();
}

static struct kunit_case pmuk_wdt_report_cases[] = {
	KUNIT_CASE(own_reports_wait_for_sched_ext),
	KUNIT_CASE(reports_of_others_wait_for_sched_ext),
	KUNIT_CASE(sched_ext_is_asked_first),
	KUNIT_CASE(all_stuck_cpus_wait_for_sched_ext),
	KUNIT_CASE(stuck_cpus_ask_sched_ext_in_turn),
	KUNIT_CASE(old_aborts_defer_no_report),
	KUNIT_CASE(recovery_leaves_a_report_to_its_cpu),
	KUNIT_CASE(slow_consoles_do_not_end_backtraces),
	KUNIT_CASE(own_reports_have_branches),
	KUNIT_CASE(own_reports_may_have_no_branches),
	KUNIT_CASE(stops_are_remembered_until_all_have_beaten),
	{}
};

PMUK_SUITE(pmuk_wdt_report, NULL, "KUnit tests of the watchdog's reports");
