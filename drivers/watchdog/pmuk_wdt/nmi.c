// SPDX-License-Identifier: GPL-2.0
/*
 * What the overflow of a CPU's cycle counter does: it looks whether beats still come, learns the
 * clock from how long the counter has taken, and arms it for as long as may be. And what the NMI
 * of a CPU's timer does, where there is one: the same, with a clock that is known. Each beat sets
 * the timer anew, so its NMI comes only where beats do not.
 *
 * Runs in NMI; where the PMU interrupts by plain interrupts it sees no lockup, and is not used.
 * Takes no lock, waits for nobody, and its loops are short.
 */
#include <linux/atomic.h>
#include <linux/hardirq.h>
#include <linux/kernel.h>
#include <linux/kgdb.h>
#include <linux/minmax.h>
#include <linux/nmi.h>
#include <linux/panic.h>
#include <linux/pmu_kapi.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>

#include "timer_nmi.h"
#include "wdt.h"

bool pmuk_wdt_is_in_kgdb(void)
{
#ifdef CONFIG_KGDB
	return atomic_read(&kgdb_active) != -1;
#else
	return false;
#endif
}

/* All CPUs are silent, and that is meant to be, in a machine that is halted, too. */
bool pmuk_wdt_is_quiet(void)
{
	return READ_ONCE(pmuk_wdt.panicking) || panic_in_progress() || pmuk_wdt_is_in_kgdb() ||
	       READ_ONCE(system_state) > SYSTEM_RUNNING;
}

/*
 * A CPU that does not beat may have been touched since the latest look. Drivers of consoles do not
 * all touch, so a CPU that writes to one is taken to have been touched, for a minute.
 */
static void pmuk_wdt_look_for_touches(struct pmuk_wdt_cpu *c, u64 now)
{
	if (pmuk_wdt_is_beating(c->beat_at, now, c->times))
		return;
	if (now < c->beat_at + PMUK_WDT_TELLING_NS && pmuk_wdt_is_printing(c, pmuk_wdt_trace(c)))
		WRITE_ONCE(c->touched_at, now);
	pmuk_wdt_watch_from(&c->watch, pmuk_wdt_touched_at(c, smp_processor_id()));
}

/*
 * What is credited is looked at only when it decides. @counts: this is the counter's NMI. A CPU
 * whose counter stands still does not get one, and is not credited for that.
 */
static void pmuk_wdt_judge(struct pmuk_wdt_cpu *c, struct pt_regs *regs, bool counts, u64 now)
{
	const struct pmuk_wdt_times *t = c->times;
	struct pmuk_wdt_watch *watch = &c->watch;

	if (atomic_read(&c->reported))
		return;
	pmuk_wdt_look_for_touches(c, now);
	if (!pmuk_wdt_is_due(watch, t, now))
		return;
	if (counts && c->counted)
		pmuk_wdt_credit_stop(watch, now,
				     pmuk_wdt_ran(&c->clock, c->nmi_count - c->beat_count));
	if (pmuk_wdt_is_due(watch, t, now) && pmuk_wdt_is_sure(watch, t, now))
		pmuk_wdt_report_own(c, regs, now);
}

/*
 * While somebody beats, that one sees to the device. After a stop of the machine nobody has for
 * long; so it is not enough to see that once, and there is time for a beat until the second look.
 */
static void pmuk_wdt_judge_device(struct pmuk_wdt_cpu *c, struct pt_regs *regs, u64 now)
{
	const struct pmuk_wdt_times *t = &pmuk_wdt.times;
	u64 alive = atomic64_read(&pmuk_wdt.alive_at);

	if (now <= alive + t->beat + 2 * t->grace)
		return;
	if (c->silent_at <= alive)
		c->silent_at = now;
	else if (now - c->silent_at >= t->beat)
		pmuk_wdt_device_check(&pmuk_wdt.dev, now, regs);
}

/* A CPU that was reported stays watched, for the device; there is no hurry. */
static u64 pmuk_wdt_own_left(const struct pmuk_wdt_cpu *c, u64 now)
{
	if (atomic_read(&c->reported))
		return c->times->wait;
	return pmuk_wdt_until_look(&c->watch, c->times, now);
}

/* A time that is over is looked at twice. An isolated CPU leaves the device to others. */
static u64 pmuk_wdt_device_look(const struct pmuk_wdt_cpu *c, u64 now)
{
	const struct pmuk_wdt_times *t = &pmuk_wdt.times;

	if (c->times != t)
		return U64_MAX;
	return max(pmuk_wdt_device_next(&pmuk_wdt.dev, now, t->threshold), t->beat + t->beat / 64);
}

static void pmuk_wdt_arm(struct pmuk_wdt_cpu *c, struct pmuk_counter *counter, u64 now)
{
	u64 own = pmuk_wdt_next(pmuk_wdt_own_left(c, now), c->times->slack);
	u64 next = min(own, pmuk_wdt_device_look(c, now));
	u64 events = pmuk_wdt_events(&c->clock, next);

	if (pmuk_counter_set_period(counter, events))
		return;
	c->armed_events = events;
	WRITE_ONCE(c->armed_ns, next);
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

/* The first one only says when it was, and that NMIs do come. */
static void pmuk_wdt_first(struct pmuk_wdt_cpu *c, const struct pmuk_sample *sample, u64 now)
{
	pmuk_wdt_expect(c, sample->value.count);
	WRITE_ONCE(c->armed_ns, 0);
	WRITE_ONCE(c->nmi_at, now);
}

/*
 * Nothing is to be said of this CPU now, nor of it when this ends before its next beat. A CPU that
 * beats for the device alone has no counter, but a timer.
 */
static bool pmuk_wdt_is_excused(const struct pmuk_wdt_cpu *c, int cpu, u64 now)
{
	return pmuk_wdt_is_quiet() || pmuk_wdt_is_telling(c, now) ||
	       !cpumask_test_cpu(cpu, &pmuk_wdt.watched) || !cpumask_test_cpu(cpu, &pmuk_wdt.cpus);
}

static void pmuk_wdt_look(struct pmuk_wdt_cpu *c, struct pt_regs *regs, bool counts, u64 now)
{
	if (pmuk_wdt_is_excused(c, smp_processor_id(), now))
		pmuk_wdt_watch_anew(&c->watch, now);
	else
		pmuk_wdt_judge(c, regs, counts, now);
	if (pmuk_wdt_is_in_kgdb())
		pmuk_wdt_say_alive(now);
	else
		pmuk_wdt_judge_device(c, regs, now);
}

static void pmuk_wdt_overflow(struct pmuk_wdt_cpu *c, const struct pmuk_format_event *event,
			      u64 now)
{
	pmuk_wdt_note(c, event->sample, now);
	pmuk_wdt_look(c, event->sample->regs, true, now);
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

/* The format's handler. */
u32 pmuk_wdt_nmi(const struct pmuk_format_event *event)
{
	struct pmuk_wdt_cpu *c = this_cpu_ptr(&pmuk_wdt_cpus);
	u64 now = ktime_get_mono_fast_ns();

	if (!in_nmi() || !(event->sample->valid & PERF_SAMPLE_READ)) {
		WRITE_ONCE(pmuk_wdt.plain, true);
		pmuk_counter_set_period(event->counter, PMUK_WDT_EVENTS_UNUSED);
		return PMUK_FORMAT_RESET;
	}
	if (!c->own) {
		WRITE_ONCE(c->lost, NULL);
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
 * Until the next look, and a little longer: the clock that @now is read from may be adjusted by
 * half a thousandth. A beat that comes before sets the timer anew.
 */
void pmuk_wdt_timer_set(struct pmuk_wdt_cpu *c, u64 now)
{
	u64 next = min(pmuk_wdt_own_left(c, now), pmuk_wdt_device_look(c, now));

	next = max(next + next / 1024, c->times->look / 8);
	WRITE_ONCE(c->timer_at, now + next);
	pmuk_timer_nmi_set(next);
}

/* The first one only says that NMIs do come. */
void pmuk_wdt_timer_nmi(struct pt_regs *regs)
{
	struct pmuk_wdt_cpu *c = this_cpu_ptr(&pmuk_wdt_cpus);
	u64 now = ktime_get_mono_fast_ns();

	if (!in_nmi())
		return;
	WRITE_ONCE(c->timer_nmis, c->timer_nmis + 1);
	if (c->timer)
		pmuk_wdt_look(c, regs, false, now);
	WRITE_ONCE(c->timer, true);
	pmuk_wdt_timer_set(c, now);
}
