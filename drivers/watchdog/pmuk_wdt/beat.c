// SPDX-License-Identifier: GPL-2.0
/*
 * The beat of each CPU: a timer interrupt that shows that the CPU takes interrupts, checks the
 * neighbours of the CPU, and checks that the CPU's own NMI still fires.
 *
 * Each CPU checks the next watched CPU, and goes on to the one after as long as the checked CPU
 * does not beat. So when several CPUs in a row get stuck, for example on a lock that the first of
 * them holds, the last CPU before them that still beats checks all of them. When no CPU is left
 * that beats, only a CPU's own NMI can report that CPU.
 */
#define pr_fmt(fmt) "pmuk_wdt: " fmt

#include <linux/atomic.h>
#include <linux/console.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/nmi.h>
#include <linux/pmu_kapi.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include "timer_nmi.h"
#include "wdt.h"

/**
 * DOC: pmuk_wdt ordering
 *
 * A CPU reads the beats of other CPUs without a lock, so these times may be a moment old. But a
 * CPU must not take a beat from before another CPU was offline, or stuck, for the latest beat of
 * that CPU. "If A reads from B" means: if A sees the value that B has stored.
 *
 * LMM(pmuk_wdt_next_cpu:A) / LMM(pmuk_wdt_online:A)
 *	If next_cpu:A reads from online:A, the beat that is read next is the first one after the
 *	CPU came online, or a later one. A full barrier to a read barrier. wdt-online.litmus
 * LMM(pmuk_wdt_report_other:A) / LMM(pmuk_wdt_recovered:A)
 *	If report_other:A reads from recovered:A, the beat that is read next is the one that ended
 *	the lockup, or a later one. Release to a full barrier. wdt-recover.litmus
 * LMM(pmuk_wdt_own_beat:A) / LMM(pmuk_wdt_report_other:A)
 *	A beat finds the report that has begun, or the CPU that begins to report sees the beat, and
 *	reports nothing. Two full barriers. wdt-beat.litmus
 * LMM(pmuk_wdt_touched_at:A) / LMM(pmuk_wdt_touched_at:B)
 *	If touched_at:A reads from touched_at:B, the time that is read next is when that touch was
 *	seen, or later. Release to acquire. wdt-touch.litmus
 *
 * A CPU that goes offline leaves ->watched before its beat stops. A checking CPU takes the time
 * before it reads ->watched. So if it still finds the other CPU in ->watched, that CPU did beat
 * until then, and its beat does not look old.
 */

/* ---- the CPU's own NMI ---- */

/*
 * A single beat may find the counter gone, or its NMI missing, by accident. The CPU has lost its
 * NMI when each beat of a quarter of a threshold finds no counter, or each beat of an eighth finds
 * no NMI. It takes two beats at least.
 */
#define PMUK_WDT_GONE		4
#define PMUK_WDT_SILENT		8
#define PMUK_WDT_CHECKS_MIN	2ULL

/* The time a CPU that has come online has to get its counter, which a worker creates. */
#define PMUK_WDT_ONLINE_NS	NSEC_PER_SEC

/* The test that shows whether the timer's interrupt is an NMI lets the timer run for this time. */
#define PMUK_WDT_TIMER_TEST_NS	(100 * NSEC_PER_USEC)

/*
 * Clears ->own last. An NMI before that store sees ->own set and changes neither field. A later NMI
 * sees ->own clear and resets both.
 */
static void pmuk_wdt_lose_own(struct pmuk_wdt_cpu *c, const char *reason)
{
	WRITE_ONCE(c->lost_reason, reason);
	barrier();
	WRITE_ONCE(c->own, false);
	c->failed_checks = 0;
}

/*
 * A counter overflows after the events it was armed for, at any clock: the count tells whether an
 * NMI is missing, and time does not. An eighth more allows for NMIs that are held up.
 */
static bool pmuk_wdt_is_overdue(const struct pmuk_wdt_cpu *c, u64 count)
{
	s64 events = c->armed_events + c->armed_events / 8 + PMUK_WDT_EVENTS_MIN;

	return (s64)(count - c->nmi_count) > events;
}

static unsigned int pmuk_wdt_max_failed_checks(const struct pmuk_wdt_cpu *c, int err)
{
	const struct pmuk_wdt_times *t = c->times;
	u64 ns = t->threshold / (err ? PMUK_WDT_GONE : PMUK_WDT_SILENT);

	if (!c->own)
		ns = max(t->threshold / 2, PMUK_WDT_ONLINE_NS);
	return max(DIV64_U64_ROUND_UP(ns, t->beat), PMUK_WDT_CHECKS_MIN);
}

/* The counter of an idle CPU stands still, so its NMI does not come, and is not missing. */
static void pmuk_wdt_check_own(struct pmuk_wdt_cpu *c, int err, u64 count)
{
	if (!c->own && c->lost_reason)
		return;
	if (!err && !c->armed_events)
		pmuk_wdt_expect(c, count);	/* the first beat with a counter */
	if (!err && !pmuk_wdt_is_overdue(c, count))
		c->failed_checks = 0;
	else if (++c->failed_checks >= pmuk_wdt_max_failed_checks(c, err))
		pmuk_wdt_lose_own(c, err ? "it has no counter" : "it counts, and no NMI comes");
}

static void pmuk_wdt_count(struct pmuk_wdt_cpu *c)
{
	/* pmuk_wdt_counters_stop() waits for beats before it closes the context. */
	struct pmuk_context *ctx = context_unsafe(READ_ONCE(pmuk_wdt.ctx));
	u64 count = 0;
	int err = ctx ? pmuk_read_local(ctx, &count, 1) : -ENODEV;

	c->counted = false;
	barrier();	/* an NMI until the last store ignores ->beat_count */
	c->beat_count = count;
	barrier();
	c->counted = !err;
	pmuk_wdt_check_own(c, err, count);
}

/* ---- the neighbours ---- */

static int pmuk_wdt_next_cpu(int cpu)
{
	int next = cpumask_next(cpu, &pmuk_wdt.watched);	/* LMM(pmuk_wdt_next_cpu:A) */

	return next < nr_cpu_ids ? next : cpumask_first(&pmuk_wdt.watched);
}

/*
 * Returns when a CPU that does not beat last gave another sign of life. If the kernel does not
 * count touches for this driver, the CPU may be the one that writes to the consoles, so it has a
 * minute while the console lock is taken. A preempted vCPU has one more threshold and no longer,
 * as hypervisors may also report a halted vCPU as preempted.
 */
static u64 pmuk_wdt_heard_at(struct pmuk_wdt_cpu *c, int cpu, u64 beat, u64 now)
{
	u64 heard = pmuk_wdt_touched_at(c, cpu);

	if (vcpu_is_preempted(cpu))
		heard = max(heard, beat + pmuk_wdt.times.threshold);
	if (!nmi_watchdog_sees_touches() && is_console_locked())
		heard = max(heard, min(now, beat + PMUK_WDT_PRINT_NS));
	return heard;
}

/* Returns when @cpu counts as stuck if it stays silent. */
static u64 pmuk_wdt_cpu_silent_at(const struct pmuk_wdt_cpu *self, int cpu, u64 now)
{
	struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);
	u64 beat = READ_ONCE(c->beat_at);

	return pmuk_wdt_silent_at(beat, &self->gaps, pmuk_wdt_heard_at(c, cpu, beat, now),
				  c->times);
}

/*
 * A report from an NMI on the stuck CPU itself has registers and stack. So do not report a CPU
 * whose timer or counter may still interrupt it.
 */
static bool pmuk_wdt_is_mine_to_report(const struct pmuk_wdt_cpu *self, int cpu, u64 silent_at,
				       u64 now)
{
	const struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);

	if (!cpumask_test_cpu(cpu, &pmuk_wdt.cpus) || pmuk_wdt_is_reporting(c, now))
		return false;
	if (READ_ONCE(c->timer) && now < READ_ONCE(c->timer_at) + c->times->slack)
		return false;
	return !READ_ONCE(c->own) ||
	       pmuk_wdt_is_own_due(READ_ONCE(c->nmi_at), READ_ONCE(c->armed_ns), silent_at, now,
				   self->times);
}

/* Returns when to check @cpu, which does not beat, again; U64_MAX if it was due now. */
static u64 pmuk_wdt_check_silent(struct pmuk_wdt_cpu *self, int cpu, u64 now)
{
	u64 at = pmuk_wdt_cpu_silent_at(self, cpu, now);

	if (now < at)
		return at;
	if (pmuk_wdt_is_mine_to_report(self, cpu, at, now))
		pmuk_wdt_report_other(self, cpu, now);
	return U64_MAX;
}

/*
 * Forgets the gaps that no watched CPU needs: one that is reported needs none. This beat may not
 * have come to all of these CPUs, but a later one may. If a time is a moment old, the gaps only
 * stay until the next beat.
 */
static void pmuk_wdt_forget_old_gaps(struct pmuk_wdt_cpu *self)
{
	u64 oldest = U64_MAX;
	int cpu;

	if (!self->gaps.ns)
		return;
	for_each_cpu(cpu, &pmuk_wdt.watched) {
		if (pmuk_wdt_of(cpu) != self && !atomic_read(&pmuk_wdt_of(cpu)->reported))
			oldest = min(oldest, READ_ONCE(pmuk_wdt_of(cpu)->beat_at));
	}
	pmuk_wdt_forget_gaps(&self->gaps, oldest);
}

/*
 * Checks the CPUs that follow this one, up to the first that beats and is not isolated. An isolated
 * CPU beats too rarely to be relied on for the CPUs that follow it. Returns when the next check is
 * due; U64_MAX if the next regular beat is early enough.
 */
static u64 pmuk_wdt_check_neighbours(struct pmuk_wdt_cpu *self, u64 now)
{
	u64 beat, next_check = U64_MAX;
	int self_cpu = smp_processor_id(), cpu = self_cpu;
	unsigned int left;

	for (left = nr_cpu_ids; left; left--) {
		cpu = pmuk_wdt_next_cpu(cpu);
		if (cpu >= nr_cpu_ids || cpu == self_cpu)
			break;
		smp_rmb();	/* pairs with pmuk_wdt_online() */
		beat = READ_ONCE(pmuk_wdt_of(cpu)->beat_at);
		if (!pmuk_wdt_is_beating(beat, now, pmuk_wdt_of(cpu)->times))
			next_check = min(next_check, pmuk_wdt_check_silent(self, cpu, now));
		else if (!cpumask_test_cpu(cpu, &pmuk_wdt.isolated))
			break;
	}
	pmuk_wdt_forget_old_gaps(self);
	return next_check;
}

/* ---- the beat ---- */

/*
 * A worker that is bound to this CPU would not run while a real-time task does, and would keep
 * ->lock if that task preempted the worker. Isolated CPUs wake no worker at all: at least one CPU
 * that is not isolated beats, see pmuk_wdt_choose_beats().
 */
static void pmuk_wdt_queue_manage(const struct pmuk_wdt_cpu *c, u64 now)
{
	u64 when = atomic64_read(&pmuk_wdt.manage_at);

	if (now < when || c->times != &pmuk_wdt.times)
		return;
	if (atomic64_cmpxchg(&pmuk_wdt.manage_at, when, now + pmuk_wdt.times.threshold / 4) == when)
		queue_work(system_dfl_wq, &pmuk_wdt.manage);
}

static void pmuk_wdt_restart_watch(struct pmuk_wdt_cpu *c, int cpu, u64 now)
{
	pmuk_wdt_watch_restart(&c->watch, now);
	WRITE_ONCE(c->touches, nmi_watchdog_touches(cpu));
}

/*
 * Returns the time until which the machine has certainly run: @now, or the previous beat if this
 * beat is so late that the machine may have stood still in between.
 */
static u64 pmuk_wdt_own_beat(struct pmuk_wdt_cpu *c, u64 now)
{
	u64 latest = c->beat_at;

	pmuk_wdt_note_beat(&c->gaps, latest, now, c->times);
	pmuk_wdt_restart_watch(c, smp_processor_id(), now);
	WRITE_ONCE(c->beat_at, now);
	smp_mb();	/* LMM(pmuk_wdt_own_beat:A) */
	pmuk_wdt_count(c);
	if (atomic_read(&c->reported))
		pmuk_wdt_recovered(c, now);
	return pmuk_wdt_is_stop(latest, now, c->times) ? latest : now;
}

/* Brings the next beat forward if a silent CPU has to be checked before that. */
static void pmuk_wdt_next_beat(struct pmuk_wdt_cpu *c, u64 next_check)
{
	hrtimer_forward(&c->beat, ktime_get(), ns_to_ktime(c->times->beat));
	if (next_check < (u64)ktime_to_ns(hrtimer_get_expires(&c->beat)))
		hrtimer_set_expires(&c->beat, ns_to_ktime(next_check));
}

static enum hrtimer_restart pmuk_wdt_beat(struct hrtimer *timer)
{
	struct pmuk_wdt_cpu *c = container_of(timer, struct pmuk_wdt_cpu, beat);
	u64 now = ktime_get_mono_fast_ns(), next_check = U64_MAX, ran;

	pmuk_wdt_mark_alive(now);
	ran = pmuk_wdt_own_beat(c, now);	/* may print, which takes time */
	if (!pmuk_wdt_is_quiet())
		next_check = pmuk_wdt_check_neighbours(c, now);
	pmuk_wdt_device_check(&pmuk_wdt.dev, ran, NULL);
	pmuk_wdt_device_queue_notify(&pmuk_wdt.dev);
	pmuk_wdt_flush(c);
	pmuk_wdt_queue_manage(c, now);
	pmuk_wdt_next_beat(c, next_check);
	if (c->timer)
		pmuk_wdt_timer_set(c, ktime_get_mono_fast_ns());
	return HRTIMER_RESTART;
}

/* ---- start and stop ---- */

/* Sets the timer for a test: only its first NMI proves that it works, and sets ->timer. */
static void pmuk_wdt_timer_start(struct pmuk_wdt_cpu *c)
{
	if (!pmuk_wdt.timers)
		return;
	guard(preempt)();
	c->timer_on = !pmuk_timer_nmi_enable();
	if (c->timer_on)
		pmuk_timer_nmi_set(PMUK_WDT_TIMER_TEST_NS);
}

/* The CPU itself calls this function and the next. */
static void pmuk_wdt_timer_stop(void *unused)
{
	struct pmuk_wdt_cpu *c = this_cpu_ptr(&pmuk_wdt_cpus);

	if (!c->timer_on)
		return;
	guard(preempt)();
	pmuk_timer_nmi_disable();
	c->timer_on = false;
	WRITE_ONCE(c->timer, false);
}

/* CPUs begin at the same time. Their first beats differ, or all CPUs would always beat at once. */
static void pmuk_wdt_begin(void *unused)
{
	struct pmuk_wdt_cpu *c = this_cpu_ptr(&pmuk_wdt_cpus);
	u64 first = mul_u64_u32_div(c->times->beat, smp_processor_id() + 1, nr_cpu_ids);

	hrtimer_start(&c->beat, ns_to_ktime(first), HRTIMER_MODE_REL_PINNED_HARD);
	pmuk_wdt_timer_start(c);
}

/* The neighbours watch @cpu from now on. The caller makes @cpu begin to beat. */
static void pmuk_wdt_online(int cpu)
{
	struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);
	u64 now = ktime_get_mono_fast_ns();

	hrtimer_setup(&c->beat, pmuk_wdt_beat, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	WRITE_ONCE(c->own, false);
	WRITE_ONCE(c->lost_reason, NULL);
	WRITE_ONCE(c->timer, false);
	c->failed_checks = 0;
	c->counted = false;
	c->gaps = (struct pmuk_wdt_gaps){ .end = now };
	c->armed_events = 0;
	atomic_set(&c->reported, 0);
	WRITE_ONCE(c->stuck_since, 0);
	pmuk_wdt_restart_watch(c, cpu, now);
	WRITE_ONCE(c->nmi_at, 0);
	WRITE_ONCE(c->beat_at, now);
	smp_mb__before_atomic();	/* pairs with pmuk_wdt_check_neighbours() */
	cpumask_set_cpu(cpu, &pmuk_wdt.watched);	/* LMM(pmuk_wdt_online:A) */
}

/* Any CPU may cancel the beat of @cpu, and waits at most for a beat that is under way. */
static void pmuk_wdt_offline(int cpu)
{
	struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);

	cpumask_clear_cpu(cpu, &pmuk_wdt.watched);
	hrtimer_cancel(&c->beat);
	WRITE_ONCE(c->own, false);
}

/* CPU hotplug calls this function and the next on @cpu itself. */
static int pmuk_wdt_cpu_online(unsigned int cpu)
{
	if (!cpumask_test_cpu(cpu, &pmuk_wdt.beating) ||
	    cpumask_test_cpu(cpu, &pmuk_wdt.watched))
		return 0;
	pmuk_wdt_online(cpu);
	pmuk_wdt_begin(NULL);
	return 0;
}

static int pmuk_wdt_cpu_offline(unsigned int cpu)
{
	if (!cpumask_test_cpu(cpu, &pmuk_wdt.watched))
		return 0;
	pmuk_wdt_offline(cpu);
	pmuk_wdt_timer_stop(NULL);
	if (!pmuk_wdt_has_unisolated(&pmuk_wdt.watched))	/* the device needs a beat */
		mod_delayed_work(system_dfl_wq, &pmuk_wdt.configure, 0);
	return 0;
}

/*
 * On return, all online CPUs of ->beating beat. The hotplug state is set up without calls, as those
 * would run on all online CPUs and disturb isolated CPUs that do not beat.
 *
 * An interrupt makes each CPU begin: a real-time task could keep a worker from running. A CPU that
 * is stuck keeps the caller waiting with preemption off, and the other CPUs, which beat meanwhile,
 * report that CPU.
 */
int pmuk_wdt_beats_start(struct pmuk_wdt *w) __must_hold(&w->lock)
{
	int state, cpu;

	atomic64_set(&w->alive_at, ktime_get_mono_fast_ns());
	atomic64_set(&w->manage_at, 0);
	guard(cpus_read_lock)();
	state = cpuhp_setup_state_nocalls_cpuslocked(CPUHP_AP_ONLINE_DYN, "watchdog/pmuk:online",
						     pmuk_wdt_cpu_online, pmuk_wdt_cpu_offline);
	if (state < 0)
		return state;
	w->hotplug = state;
	for_each_cpu_and(cpu, &w->beating, cpu_online_mask)
		pmuk_wdt_online(cpu);
	on_each_cpu_mask(&w->watched, pmuk_wdt_begin, NULL, true);
	return 0;
}

/*
 * A CPU must stop its timer itself. If that CPU is stuck, the caller waits while all CPUs beat and
 * are watched. Once beats stop, the caller waits for no CPU.
 */
void pmuk_wdt_beats_stop(struct pmuk_wdt *w) __must_hold(&w->lock)
{
	int cpu;

	guard(cpus_read_lock)();
	cpuhp_remove_state_nocalls_cpuslocked(w->hotplug);
	if (w->timers)
		on_each_cpu_mask(&w->watched, pmuk_wdt_timer_stop, NULL, true);
	for_each_cpu(cpu, &w->watched)
		pmuk_wdt_offline(cpu);
}
