// SPDX-License-Identifier: GPL-2.0
/*
 * The beat of each CPU: a timer interrupt that says that interrupts arrive, looks after its
 * neighbours, and sees to it that its own NMI does come.
 *
 * A CPU looks at the one after it, and goes on from there while what it sees does not beat. So of
 * several in a row that are stuck, be it one after the other, as they all come to want the lock
 * that the first one holds, each is found by the last one before them that is not; and a CPU that
 * is found by nobody is one whose own NMI has to do.
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
 * Beats of other CPUs are read without a lock, and are a moment old. What must not be is that one
 * of before a CPU was offline, or stuck, is taken for its latest. "If A reads from B" means: if it
 * sees the value that B has stored.
 *
 * LMM(pmuk_wdt_next_cpu:A) / LMM(pmuk_wdt_online:A)
 *	If next_cpu:A reads from online:A, the beat that is read then is of that time online, or
 *	later. A full barrier to a read barrier. wdt-online.litmus
 * LMM(pmuk_wdt_report_other:A) / LMM(pmuk_wdt_recovered:A)
 *	If report_other:A reads from recovered:A, the beat that is read then is the one that ended
 *	the lockup, or later. Release to a full barrier. wdt-recover.litmus
 * LMM(pmuk_wdt_touched_at:A) / LMM(pmuk_wdt_touched_at:B)
 *	If touched_at:A reads from touched_at:B, the time that is read then is when that touch was
 *	seen, or later. Release to acquire. wdt-touch.litmus
 *
 * A CPU that goes offline leaves the mask at the end. The time that its beat is compared with was
 * taken before the mask was read, so it is not old then.
 */

/* ---- the CPU's own NMI ---- */

/* So many beats in which the counter is gone, or in which it is silent, are no accident. */
#define PMUK_WDT_BLIND_GONE	4
#define PMUK_WDT_BLIND_SILENT	2

/* One that has come online may have to wait for its counter, which a worker makes. */
#define PMUK_WDT_ONLINE_NS	NSEC_PER_SEC

/* How long it takes a timer to show that its interrupt is an NMI. */
#define PMUK_WDT_TIMER_TEST_NS	(100 * NSEC_PER_USEC)

/* ->own last: an NMI in between changes nothing, and one after it finds what it has to undo. */
static void pmuk_wdt_lose_own(struct pmuk_wdt_cpu *c, const char *why)
{
	WRITE_ONCE(c->lost, why);
	barrier();
	WRITE_ONCE(c->own, false);
	c->blind = 0;
}

/* A counter overflows after what it was armed for, whatever its clock is; but for NMIs held up. */
static bool pmuk_wdt_is_overdue(const struct pmuk_wdt_cpu *c, u64 count)
{
	s64 events = c->armed_events + c->armed_events / 8 + PMUK_WDT_EVENTS_MIN;

	return (s64)(count - c->nmi_count) > events;
}

/* It may still be armed as it was before the CPU went offline. */
void pmuk_wdt_expect(struct pmuk_wdt_cpu *c, u64 count)
{
	c->nmi_count = count;
	c->armed_events = 4 * PMUK_WDT_TEST_EVENTS +
			  pmuk_wdt_events(&c->clock, c->times->wait / 2 + c->times->slack / 2);
}

static unsigned int pmuk_wdt_patience(const struct pmuk_wdt_cpu *c, int err)
{
	const struct pmuk_wdt_times *t = c->times;

	if (!c->own)
		return DIV64_U64_ROUND_UP(max(t->threshold / 2, PMUK_WDT_ONLINE_NS), t->beat);
	return err ? PMUK_WDT_BLIND_GONE : PMUK_WDT_BLIND_SILENT;
}

/* A CPU that is idle does not count, and its NMI stays away; that is no loss. */
static void pmuk_wdt_check_own(struct pmuk_wdt_cpu *c, int err, u64 count)
{
	if (!c->own && c->lost)
		return;
	if (!err && !c->armed_events)
		pmuk_wdt_expect(c, count);	/* is the first to find a counter */
	if (!err && !pmuk_wdt_is_overdue(c, count))
		c->blind = 0;
	else if (++c->blind >= pmuk_wdt_patience(c, err))
		pmuk_wdt_lose_own(c, err ? "it has no counter" : "it counts, and no NMI comes");
}

static void pmuk_wdt_count(struct pmuk_wdt_cpu *c)
{
	struct pmuk_context *ctx = READ_ONCE(pmuk_wdt.ctx);
	u64 count = 0;
	int err = ctx ? pmuk_read_local(ctx, &count, 1) : -ENODEV;

	c->counted = false;
	barrier();	/* an NMI in between goes by no count at all */
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
 * Returns when a CPU was last seen to have been touched. The CPU's own NMI and its neighbours'
 * beats share what they have seen.
 */
u64 pmuk_wdt_touched_at(struct pmuk_wdt_cpu *c, int cpu)
{
	unsigned int touches = nmi_watchdog_touches(cpu);

	if (touches != smp_load_acquire(&c->touches)) {	/* LMM(pmuk_wdt_touched_at:A) */
		WRITE_ONCE(c->touched_at, ktime_get_mono_fast_ns());
		smp_store_release(&c->touches, touches);	/* LMM(pmuk_wdt_touched_at:B) */
	}
	return READ_ONCE(c->touched_at);
}

/*
 * Returns when a CPU that does not beat was last heard of. Where touches are not seen, it may be
 * this CPU that writes to a console, if anybody does. A vCPU that the hypervisor has taken off
 * has one more threshold: the hypervisor may say that of a vCPU that has halted, too.
 */
static u64 pmuk_wdt_heard_at(struct pmuk_wdt_cpu *c, int cpu, u64 beat, u64 now)
{
	u64 heard = pmuk_wdt_touched_at(c, cpu);

	if (vcpu_is_preempted(cpu))
		heard = max(heard, beat + pmuk_wdt.times.threshold);
	if (!nmi_watchdog_sees_touches() && is_console_locked())
		heard = max(heard, min(now, beat + PMUK_WDT_TELLING_NS));
	return heard;
}

/* When a CPU will have been silent for too long. */
static u64 pmuk_wdt_cpu_silent_at(const struct pmuk_wdt_cpu *self, int cpu, u64 now)
{
	struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);
	u64 beat = READ_ONCE(c->beat_at);

	return pmuk_wdt_silent_at(beat, &self->gaps, pmuk_wdt_heard_at(c, cpu, beat, now),
				  c->times);
}

/* Where an NMI of its own will tell, and tell more, that is waited for. */
static bool pmuk_wdt_is_mine_to_report(const struct pmuk_wdt_cpu *self, int cpu, u64 now)
{
	const struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);

	if (!cpumask_test_cpu(cpu, &pmuk_wdt.cpus) || pmuk_wdt_is_telling(c, now))
		return false;
	if (READ_ONCE(c->timer) && now < READ_ONCE(c->timer_at) + c->times->slack)
		return false;
	return !READ_ONCE(c->own) ||
	       pmuk_wdt_is_own_due(READ_ONCE(c->nmi_at), READ_ONCE(c->armed_ns), now, self->times);
}

/* Returns when this CPU is to look at one that does not beat. */
static u64 pmuk_wdt_check_silent(struct pmuk_wdt_cpu *self, int cpu, u64 now)
{
	u64 at = pmuk_wdt_cpu_silent_at(self, cpu, now);

	if (now < at)
		return at;
	if (pmuk_wdt_is_mine_to_report(self, cpu, now))
		pmuk_wdt_report_other(self, cpu, now);
	return U64_MAX;
}

/*
 * A CPU that is isolated beats, and looks after others, too seldom to be relied on for those that
 * follow it. Returns when this CPU is to look again, if that is before its next beat.
 */
static u64 pmuk_wdt_check_neighbours(struct pmuk_wdt_cpu *self, u64 now)
{
	u64 beat, oldest = U64_MAX, look = U64_MAX;
	int self_cpu = smp_processor_id(), cpu = self_cpu;
	unsigned int left;

	for (left = nr_cpu_ids; left; left--) {
		cpu = pmuk_wdt_next_cpu(cpu);
		if (cpu >= nr_cpu_ids || cpu == self_cpu)
			break;
		smp_rmb();	/* pairs with pmuk_wdt_online() */
		beat = READ_ONCE(pmuk_wdt_of(cpu)->beat_at);
		oldest = min(oldest, beat);
		if (!pmuk_wdt_is_beating(beat, now, pmuk_wdt_of(cpu)->times))
			look = min(look, pmuk_wdt_check_silent(self, cpu, now));
		else if (!cpumask_test_cpu(cpu, &pmuk_wdt.isolated))
			break;
	}
	pmuk_wdt_forget_gaps(&self->gaps, oldest);
	return look;
}

/* ---- the beat ---- */

/* The latest beat of any CPU. When all were late together, it was the machine that stood still. */
void pmuk_wdt_say_alive(u64 now)
{
	u64 was = atomic64_xchg(&pmuk_wdt.alive_at, now);
	bool kgdb = pmuk_wdt_is_in_kgdb();

	if (kgdb ? now > was : pmuk_wdt_is_stop(was, now, &pmuk_wdt.times))
		pmuk_wdt_device_credit(&pmuk_wdt.dev, now - was, kgdb);
}

/* A CPU that beats is one that can work, so the worker is not left to one that is stuck. */
static void pmuk_wdt_let_manage(u64 now)
{
	u64 when = atomic64_read(&pmuk_wdt.manage_at);

	if (now < when)
		return;
	if (atomic64_cmpxchg(&pmuk_wdt.manage_at, when, now + pmuk_wdt.times.threshold / 4) == when)
		schedule_work(&pmuk_wdt.manage);
}

static void pmuk_wdt_restart_watch(struct pmuk_wdt_cpu *c, u64 now)
{
	pmuk_wdt_watch_anew(&c->watch, now);
	WRITE_ONCE(c->touches, nmi_watchdog_touches(smp_processor_id()));
}

/* Returns up to when the machine has run for certain: it may have stood still since then. */
static u64 pmuk_wdt_own_beat(struct pmuk_wdt_cpu *c, u64 now)
{
	u64 latest = c->beat_at;

	pmuk_wdt_note_beat(&c->gaps, latest, now, c->times);
	pmuk_wdt_restart_watch(c, now);
	WRITE_ONCE(c->beat_at, now);
	pmuk_wdt_count(c);
	if (atomic_read(&c->reported))
		pmuk_wdt_recovered(c, now);
	return pmuk_wdt_is_stop(latest, now, c->times) ? latest : now;
}

/* The next beat comes early to report a CPU that is silent in time. */
static void pmuk_wdt_next_beat(struct pmuk_wdt_cpu *c, u64 look)
{
	hrtimer_forward(&c->beat, ktime_get(), ns_to_ktime(c->times->beat));
	if (look < (u64)ktime_to_ns(hrtimer_get_expires(&c->beat)))
		hrtimer_set_expires(&c->beat, ns_to_ktime(look));
}

static enum hrtimer_restart pmuk_wdt_beat(struct hrtimer *timer)
{
	struct pmuk_wdt_cpu *c = container_of(timer, struct pmuk_wdt_cpu, beat);
	u64 now = ktime_get_mono_fast_ns(), look = U64_MAX, ran;

	pmuk_wdt_say_alive(now);
	ran = pmuk_wdt_own_beat(c, now);	/* may print, which takes its time */
	if (!pmuk_wdt_is_quiet())
		look = pmuk_wdt_check_neighbours(c, now);
	pmuk_wdt_device_check(&pmuk_wdt.dev, ran, NULL);
	pmuk_wdt_device_pay(&pmuk_wdt.dev);
	pmuk_wdt_flush(c);
	pmuk_wdt_let_manage(now);
	pmuk_wdt_next_beat(c, look);
	if (c->timer)
		pmuk_wdt_timer_set(c, ktime_get_mono_fast_ns());
	return HRTIMER_RESTART;
}

/* ---- CPUs come and go ---- */

/* The timer is tried at once, and believed in when its NMI has come. */
static void pmuk_wdt_timer_start(struct pmuk_wdt_cpu *c)
{
	if (!pmuk_wdt.timers)
		return;
	guard(preempt)();
	c->timer_on = !pmuk_timer_nmi_enable();
	if (c->timer_on)
		pmuk_timer_nmi_set(PMUK_WDT_TIMER_TEST_NS);
}

static void pmuk_wdt_timer_stop(struct pmuk_wdt_cpu *c)
{
	if (!c->timer_on)
		return;
	guard(preempt)();
	pmuk_timer_nmi_disable();
	c->timer_on = false;
	WRITE_ONCE(c->timer, false);
}

/* Both on the CPU itself. */
static int pmuk_wdt_online(unsigned int cpu)
{
	struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);
	u64 now = ktime_get_mono_fast_ns();

	if (!cpumask_test_cpu(cpu, &pmuk_wdt.beating) ||
	    cpumask_test_cpu(cpu, &pmuk_wdt.watched))
		return 0;
	WRITE_ONCE(c->own, false);
	WRITE_ONCE(c->lost, NULL);
	WRITE_ONCE(c->timer, false);
	c->blind = 0;
	c->counted = false;
	c->gaps = (struct pmuk_wdt_gaps){ .end = now };
	c->armed_events = 0;
	atomic_set(&c->reported, 0);
	WRITE_ONCE(c->stuck_since, 0);
	pmuk_wdt_restart_watch(c, now);
	WRITE_ONCE(c->nmi_at, 0);
	WRITE_ONCE(c->beat_at, now);
	smp_mb__before_atomic();	/* pairs with pmuk_wdt_check_neighbours() */
	cpumask_set_cpu(cpu, &pmuk_wdt.watched);	/* LMM(pmuk_wdt_online:A) */

	hrtimer_setup(&c->beat, pmuk_wdt_beat, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	hrtimer_start(&c->beat, ns_to_ktime(c->times->beat), HRTIMER_MODE_REL_PINNED_HARD);
	pmuk_wdt_timer_start(c);
	return 0;
}

static int pmuk_wdt_offline(unsigned int cpu)
{
	struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);

	if (!cpumask_test_cpu(cpu, &pmuk_wdt.watched))
		return 0;
	cpumask_clear_cpu(cpu, &pmuk_wdt.watched);
	hrtimer_cancel(&c->beat);
	pmuk_wdt_timer_stop(c);
	WRITE_ONCE(c->own, false);
	if (!pmuk_wdt_is_lively(&pmuk_wdt.watched))	/* the device needs a beat */
		schedule_delayed_work(&pmuk_wdt.configure, 0);
	return 0;
}

static long pmuk_wdt_begin(void *unused)
{
	return pmuk_wdt_online(smp_processor_id());
}

static long pmuk_wdt_end(void *unused)
{
	return pmuk_wdt_offline(smp_processor_id());
}

/*
 * All CPUs of ->beating that are online beat when this returns. CPU hotplug is not asked to call
 * back for CPUs that are online, as it does so for all of them, isolated ones too.
 */
int pmuk_wdt_beats_start(struct pmuk_wdt *w)
{
	int state, cpu;

	atomic64_set(&w->alive_at, ktime_get_mono_fast_ns());
	atomic64_set(&w->manage_at, 0);
	guard(cpus_read_lock)();
	state = cpuhp_setup_state_nocalls_cpuslocked(CPUHP_AP_ONLINE_DYN, "watchdog/pmuk:online",
						     pmuk_wdt_online, pmuk_wdt_offline);
	if (state < 0)
		return state;
	w->hotplug = state;
	for_each_cpu_and(cpu, &w->beating, cpu_online_mask)
		work_on_cpu(cpu, pmuk_wdt_begin, NULL);
	return 0;
}

void pmuk_wdt_beats_stop(struct pmuk_wdt *w)
{
	int cpu;

	guard(cpus_read_lock)();
	cpuhp_remove_state_nocalls_cpuslocked(w->hotplug);
	for_each_cpu_and(cpu, &w->beating, cpu_online_mask)
		work_on_cpu(cpu, pmuk_wdt_end, NULL);
}
