// SPDX-License-Identifier: GPL-2.0
/*
 * The NMIs of a CPU. The overflow of the cycle counter checks whether beats still come, measures
 * the clock by the time that the counter has taken, and arms the counter for as long as possible.
 * The NMI of the CPU's timer, if there is one, makes the same checks, and has no clock to measure.
 * Each beat sets the timer again, so the timer's NMI comes only when beats cease.
 *
 * This code runs in NMI: it takes no lock, waits for nothing, and its loops are short. If overflows
 * come as ordinary interrupts, they cannot find a lockup, so the counters are not used.
 */
#include <linux/atomic.h>
#include <linux/hardirq.h>
#include <linux/minmax.h>
#include <linux/pmu_kapi.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>

#include "timer_nmi.h"
#include "wdt.h"

/*
 * Restarts the watch of a CPU that does not beat if touch_nmi_watchdog() was called there since the
 * latest check. Some console drivers do not call touch_nmi_watchdog(), so a CPU that writes to a
 * console counts as touched for a minute.
 */
static void pmuk_wdt_check_touches(struct pmuk_wdt_cpu *c, u64 now)
{
	if (pmuk_wdt_is_beating(c->beat_at, now, c->times))
		return;
	if (now < c->beat_at + PMUK_WDT_PRINT_NS && pmuk_wdt_is_printing(c, pmuk_wdt_trace(c)))
		WRITE_ONCE(c->touched_at, now);
	pmuk_wdt_watch_from(&c->watch, pmuk_wdt_touched_at(c, smp_processor_id()));
}

/*
 * Credits a stop of the machine only if that decides whether the CPU is stuck. @counts: this is the
 * counter's NMI. The timer's NMI also comes while the counter stands still, so there the count does
 * not tell for how long the CPU has run.
 */
static void pmuk_wdt_judge(struct pmuk_wdt_cpu *c, struct pt_regs *regs, bool counts, u64 now)
{
	const struct pmuk_wdt_times *t = c->times;
	struct pmuk_wdt_watch *watch = &c->watch;

	if (atomic_read(&c->reported))
		return;
	pmuk_wdt_check_touches(c, now);
	if (!pmuk_wdt_is_due(watch, t, now))
		return;
	if (counts && c->counted)
		pmuk_wdt_credit_stop(watch, now,
				     pmuk_wdt_ran(&c->clock, c->nmi_count - c->beat_count));
	if (pmuk_wdt_is_due(watch, t, now) && pmuk_wdt_is_sure(watch, t, now))
		pmuk_wdt_report_own(c, regs, now);
}

/* An NMI may check the device this long after the first NMI that found no CPU beating. */
static u64 pmuk_wdt_device_recheck(const struct pmuk_wdt_times *t)
{
	return t->threshold / 16;
}

/*
 * Beats check the device as long as any CPU beats. After a stop of the machine no CPU has beaten
 * for long either. So the first NMI that finds no CPU beating only records the time. An NMI that
 * comes some beats later, and finds none either, checks the device.
 */
static void pmuk_wdt_judge_device(struct pmuk_wdt_cpu *c, struct pt_regs *regs, u64 now)
{
	const struct pmuk_wdt_times *t = &pmuk_wdt.times;
	u64 alive = atomic64_read(&pmuk_wdt.alive_at);

	if (now <= alive + t->threshold / 8)
		return;
	if (c->silent_at <= alive)
		c->silent_at = now;
	else if (now - c->silent_at >= pmuk_wdt_device_recheck(t))
		pmuk_wdt_device_check(&pmuk_wdt.dev, now, regs);
}

/* Returns the time to the next check. A CPU that was reported has NMIs for the device only. */
static u64 pmuk_wdt_own_left(const struct pmuk_wdt_cpu *c, u64 now)
{
	if (atomic_read(&c->reported))
		return c->times->wait;
	return pmuk_wdt_until_check(&c->watch, c->times, now);
}

/*
 * Returns the time to the next check of the device. pmuk_wdt_judge_device() needs a second NMI that
 * comes pmuk_wdt_device_recheck() after the first, so the time is a little longer than that at
 * least. Isolated CPUs do not check the device.
 */
static u64 pmuk_wdt_until_device_check(const struct pmuk_wdt_cpu *c, u64 now)
{
	const struct pmuk_wdt_times *t = &pmuk_wdt.times;
	u64 least = pmuk_wdt_device_recheck(t);

	if (c->times != t)
		return U64_MAX;
	return max(pmuk_wdt_device_next(&pmuk_wdt.dev, now, t->threshold), least + least / 64);
}

static void pmuk_wdt_arm(struct pmuk_wdt_cpu *c, struct pmuk_counter *counter, u64 now)
{
	u64 own = pmuk_wdt_next(pmuk_wdt_own_left(c, now), c->times->slack);
	u64 next = min(own, pmuk_wdt_until_device_check(c, now));
	u64 events = pmuk_wdt_events(&c->clock, next);

	if (pmuk_counter_set_period(counter, events))
		return;
	c->armed_events = events;
	WRITE_ONCE(c->armed_ns, next);
}

/* The counter may still be armed as before the CPU went offline: allow for the longest period. */
void pmuk_wdt_expect(struct pmuk_wdt_cpu *c, u64 count)
{
	c->nmi_count = count;
	c->armed_events = 4 * PMUK_WDT_TEST_EVENTS +
			  pmuk_wdt_events(&c->clock, c->times->wait / 2 + c->times->slack / 2);
}

static void pmuk_wdt_note(struct pmuk_wdt_cpu *c, const struct pmuk_sample *sample, u64 now)
{
	if (sample->value.count > c->nmi_count)
		pmuk_wdt_learn(&c->clock, sample->value.count - c->nmi_count, now - c->nmi_at);
	WRITE_ONCE(c->nmi_at, now);
	c->nmi_count = sample->value.count;
	if (sample->valid & PERF_SAMPLE_IP)
		WRITE_ONCE(c->nmi_ip, sample->ip);
}

/* The first NMI has no earlier NMI to measure the clock from, so it only records time and count. */
static void pmuk_wdt_first(struct pmuk_wdt_cpu *c, const struct pmuk_sample *sample, u64 now)
{
	pmuk_wdt_expect(c, sample->value.count);
	WRITE_ONCE(c->armed_ns, 0);
	WRITE_ONCE(c->nmi_at, now);
}

/*
 * Returns whether the CPU must not be reported now. The caller restarts the watch then, so the
 * excused time does not count later either. A CPU that beats only for the device has no counter,
 * but may get the timer's NMI.
 */
static bool pmuk_wdt_is_excused(const struct pmuk_wdt_cpu *c, int cpu, u64 now)
{
	return pmuk_wdt_is_quiet() || pmuk_wdt_is_reporting(c, now) ||
	       !cpumask_test_cpu(cpu, &pmuk_wdt.watched) || !cpumask_test_cpu(cpu, &pmuk_wdt.cpus);
}

static void pmuk_wdt_check(struct pmuk_wdt_cpu *c, struct pt_regs *regs, bool counts, u64 now)
{
	if (pmuk_wdt_is_excused(c, smp_processor_id(), now))
		pmuk_wdt_watch_restart(&c->watch, now);
	else
		pmuk_wdt_judge(c, regs, counts, now);
	if (pmuk_wdt_is_in_kgdb())
		pmuk_wdt_mark_kgdb(now);
	else
		pmuk_wdt_judge_device(c, regs, now);
}

static void pmuk_wdt_overflow(struct pmuk_wdt_cpu *c, const struct pmuk_format_event *event,
			      u64 now)
{
	pmuk_wdt_note(c, event->sample, now);
	c->branches = event->sample->branches;
	pmuk_wdt_check(c, event->sample->regs, true, now);
	c->branches = NULL;
	pmuk_wdt_arm(c, event->counter, now);
}

static void pmuk_wdt_note_cost(struct pmuk_wdt_cpu *c, u64 now)
{
	u64 cost = ktime_get_mono_fast_ns() - now;

	WRITE_ONCE(c->nmis, c->nmis + 1);
	WRITE_ONCE(c->cost_ns, c->cost_ns + cost);
	if (cost > c->cost_max_ns)
		WRITE_ONCE(c->cost_max_ns, cost);
}

/* Handles the overflow of the cycle counter, for the format that counters.c registers. */
u32 pmuk_wdt_nmi(const struct pmuk_format_event *event)
{
	struct pmuk_wdt_cpu *c = this_cpu_ptr(&pmuk_wdt_cpus);
	u64 now = ktime_get_mono_fast_ns();

	if (!in_nmi()) {
		WRITE_ONCE(pmuk_wdt.no_nmi, true);
		pmuk_counter_set_period(event->counter, PMUK_WDT_EVENTS_UNUSED);
		return PMUK_FORMAT_RESET;
	}
	if (!c->own) {
		WRITE_ONCE(c->lost_reason, NULL);
		WRITE_ONCE(c->own, true);
	}
	if (c->nmi_at)
		pmuk_wdt_overflow(c, event, now);
	else
		pmuk_wdt_first(c, event->sample, now);
	pmuk_wdt_note_cost(c, now);
	return PMUK_FORMAT_RESET;
}

/* ---- the timer ---- */

/*
 * Sets the timer to the next check, and a little later: NTP may adjust the clock that @now is read
 * from by half a thousandth, but not the timer. A beat before that sets the timer again.
 */
void pmuk_wdt_timer_set(struct pmuk_wdt_cpu *c, u64 now)
{
	u64 next = min(pmuk_wdt_own_left(c, now), pmuk_wdt_until_device_check(c, now));

	next = max(next + next / 1024, c->times->recheck / 8);
	WRITE_ONCE(c->timer_at, now + next);
	pmuk_timer_nmi_set(next);
}

/* The first NMI after the CPU came online only proves that the timer's interrupt is an NMI. */
void pmuk_wdt_timer_nmi(struct pt_regs *regs)
{
	struct pmuk_wdt_cpu *c = this_cpu_ptr(&pmuk_wdt_cpus);
	u64 now = ktime_get_mono_fast_ns();

	if (!in_nmi())
		return;
	WRITE_ONCE(c->timer_nmis, c->timer_nmis + 1);
	if (c->timer)
		pmuk_wdt_check(c, regs, false, now);
	WRITE_ONCE(c->timer, true);
	pmuk_wdt_timer_set(c, now);
}
