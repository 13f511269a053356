/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arithmetic of the watchdog: when a CPU is stuck, how long to let its counter run, how fast
 * its clock is, and how much time to credit after a stop of the machine. These functions use no
 * state of the kernel and no clock but the times passed in, so tests run them on a simulated clock.
 *
 * All times are derived from the threshold T. A beat comes each T/64, and may be late by T/64
 * without a lockup. So at b + T + T/32, a CPU whose latest beat was at b has been stuck for T at
 * least, and for T + T/32 at most. An NMI checks the CPU then, and another NMI checks it again
 * T/128 later: after a stop of the machine, the first NMI may come even before a beat that is due.
 *
 * At a steady clock the NMI comes less than T/512 after that time. A lockup begins anywhere between
 * the latest beat and the first one that is missing, so reports come after 1.0 to 1.045 T. A
 * detector that reports all lockups after 1.0 to 1.05 T needs at least twenty beats in T, if no
 * beat is ever late and nothing takes time. 64 beats leave T/64 for late beats, and as much for the
 * second check and for the time that NMIs take.
 *
 * From b + T + T/32 to 1.25 T are 28/128 of T: 24 are slack for a clock that is slower than it was,
 * 3 for the second check at such a clock, and one for the time that NMIs and printing take.
 *
 * An isolated CPU must not be disturbed more than by the kernel's own detectors, which have five
 * timer interrupts in 2 T, and an NMI in T at a nominal clock: 3.5 interrupts in T. An isolated CPU
 * has a beat each T/2, and a slack of T, which makes less than 1.5 NMIs in T. Its lockups are
 * reported after 1.0 to 1.6 T.
 *
 * If the clock drops to a third, a counter overflows after three times the time it was armed for.
 * While there is time @left until a deadline, the counter is armed for a third of @left and
 * slack together. Only when @left is at most half the slack, the counter is armed for all of @left.
 * In both cases three times the armed time is no longer than @left and slack together, but for a
 * few percent. While beats come, @left is about T at each NMI, so there are five NMIs in 2 T. In a
 * lockup, the sum of @left and slack shrinks by a third with each NMI, which makes four NMIs in T.
 */
#ifndef _PMUK_WDT_MATH_H
#define _PMUK_WDT_MATH_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

/* The range of thresholds, in nanoseconds. */
#define PMUK_WDT_THRESHOLD_MIN	(200ULL * NSEC_PER_MSEC)
#define PMUK_WDT_THRESHOLD_MAX	(60ULL * NSEC_PER_SEC)

/* If the clock gets slower by no more than this factor, reports are in time. */
#define PMUK_WDT_SLOWER		3

/* If a CPU counts this much slower than its clock, the CPU has not run all the time. */
#define PMUK_WDT_STOPPED	4

/* The unit of a clock's rate: events in 2^20 nanoseconds, about a millisecond. */
#define PMUK_WDT_RATE_SHIFT	20
#define PMUK_WDT_RATE_MAX	BIT_ULL(24)	/* 16 GHz */

/* The shortest period: NMIs after fewer events cost too much. */
#define PMUK_WDT_EVENTS_MIN	BIT_ULL(16)

/* A period of minutes, for a counter that is of no use as its overflow is not an NMI. */
#define PMUK_WDT_EVENTS_UNUSED	BIT_ULL(40)

struct pmuk_wdt_times {
	u64 threshold;
	u64 beat;		/* time between two beats */
	u64 grace;		/* how late a beat may be without a lockup */
	u64 slack;		/* how late an NMI may be, if the clock got slower */
	u64 recheck;		/* time from the first check that finds a lockup to the second */
	u64 wait;		/* time without a beat after which a CPU is stuck */
};

static inline struct pmuk_wdt_times __pmuk_wdt_times(u64 threshold, u64 beat, u64 grace, u64 slack)
{
	return (struct pmuk_wdt_times){
		.threshold	= threshold,
		.beat		= beat,
		.grace		= grace,
		.slack		= slack,
		.recheck		= threshold / 128,
		.wait		= threshold + beat + grace,
	};
}

static inline struct pmuk_wdt_times pmuk_wdt_times_of(u64 threshold)
{
	return __pmuk_wdt_times(threshold, threshold / 64, threshold / 64, threshold * 3 / 16);
}

/* Isolated CPUs have fewer beats and fewer NMIs. */
static inline struct pmuk_wdt_times pmuk_wdt_isolated_times(u64 threshold)
{
	return __pmuk_wdt_times(threshold, threshold / 2, threshold / 32, threshold);
}

/* ---- how long to let a counter run ---- */

/*
 * Returns for how long to arm a counter when time @left remains until the deadline. The last period
 * is a little longer than @left, so that the counter overflows after the deadline and not before.
 */
static inline u64 pmuk_wdt_next(u64 left, u64 slack)
{
	if (left <= slack / 2)
		return left + left / 64;
	return (left + slack) / PMUK_WDT_SLOWER;
}

/* Returns the time until @deadline, or 0 if the deadline has passed. */
static inline u64 pmuk_wdt_left(u64 deadline, u64 now)
{
	return deadline > now ? deadline - now : 0;
}

/* ---- the clock ---- */

/* Rates are events in 2^PMUK_WDT_RATE_SHIFT nanoseconds; 0: not known yet. */
struct pmuk_wdt_clock {
	u64 rate;		/* the latest rate; idle time lowers it, as counters stand still */
	u64 top;		/* the highest recent rate: it drops by 1/16 with each NMI */
};

static inline u64 pmuk_wdt_rate(u64 events, u64 ns)
{
	u64 rate = div64_u64(min(events, U64_MAX >> PMUK_WDT_RATE_SHIFT) << PMUK_WDT_RATE_SHIFT,
			     max(ns, 1ULL));

	return clamp(rate, 1ULL, PMUK_WDT_RATE_MAX);
}

/*
 * Takes over each new rate at once. A low rate may come from idle time rather than from a slow
 * clock; then the next NMI comes early and learns a new rate, but never comes late.
 */
static inline void pmuk_wdt_learn(struct pmuk_wdt_clock *clock, u64 events, u64 ns)
{
	WRITE_ONCE(clock->rate, pmuk_wdt_rate(events, ns));
	WRITE_ONCE(clock->top, max(clock->rate, clock->top - clock->top / 16));
}

/* Returns how many events the clock makes in @ns. */
static inline u64 pmuk_wdt_events(const struct pmuk_wdt_clock *clock, u64 ns)
{
	return max((ns * clock->rate) >> PMUK_WDT_RATE_SHIFT, PMUK_WDT_EVENTS_MIN);
}

/* Returns the longest time that a CPU can have run if it has counted @events. */
static inline u64 pmuk_wdt_ran(const struct pmuk_wdt_clock *clock, u64 events)
{
	return div64_u64(min(events, U64_MAX >> PMUK_WDT_RATE_SHIFT) << PMUK_WDT_RATE_SHIFT,
			 max(clock->top / PMUK_WDT_STOPPED, 1ULL));
}

static inline u64 pmuk_wdt_khz(u64 rate)
{
	return (rate * NSEC_PER_MSEC) >> PMUK_WDT_RATE_SHIFT;
}

/* ---- whether a CPU is stuck ---- */

/* The state of a CPU's NMI since the CPU's latest beat. */
struct pmuk_wdt_watch {
	u64 since;		/* no sign of life of the CPU since then */
	u64 due_at;		/* time of the first check that found the CPU stuck; 0: none yet */
	bool stopped;		/* a stop of the machine has been credited */
};

/*
 * Stores ->since first: an NMI between the stores then finds that the CPU is not due, whatever the
 * other fields say.
 */
static inline void pmuk_wdt_watch_restart(struct pmuk_wdt_watch *w, u64 now)
{
	WRITE_ONCE(w->since, now);
	barrier();
	WRITE_ONCE(w->due_at, 0);
	WRITE_ONCE(w->stopped, false);
}

static inline u64 pmuk_wdt_deadline(const struct pmuk_wdt_watch *w, const struct pmuk_wdt_times *t)
{
	return w->since + t->wait;
}

/*
 * Takes the time in which the CPU did not run out of the CPU's silence: of the time since ->since,
 * the CPU has run for @ran at most. This is done once between two beats, as the CPU may also have
 * become slow for good.
 */
static inline void pmuk_wdt_credit_stop(struct pmuk_wdt_watch *w, u64 now, u64 ran)
{
	if (w->stopped || now <= w->since || ran >= now - w->since)
		return;
	w->stopped = true;
	w->since = now - ran;
	w->due_at = 0;
}

/* Restarts the watch at @heard, when the CPU gave a sign of life other than a beat. */
static inline void pmuk_wdt_watch_from(struct pmuk_wdt_watch *w, u64 heard)
{
	if (heard <= w->since)
		return;
	w->since = heard;
	w->due_at = 0;
}

static inline bool pmuk_wdt_is_due(const struct pmuk_wdt_watch *w, const struct pmuk_wdt_times *t,
				   u64 now)
{
	return now >= pmuk_wdt_deadline(w, t);
}

/* Returns whether this is the second check that finds the CPU stuck; records the first one. */
static inline bool pmuk_wdt_is_sure(struct pmuk_wdt_watch *w, const struct pmuk_wdt_times *t,
				    u64 now)
{
	if (!w->due_at)
		w->due_at = now;
	return now - w->due_at >= t->recheck;
}

/* Returns the time until the next check that can find the CPU stuck. */
static inline u64 pmuk_wdt_until_check(const struct pmuk_wdt_watch *w,
				       const struct pmuk_wdt_times *t, u64 now)
{
	return pmuk_wdt_left(w->due_at ? w->due_at + t->recheck : pmuk_wdt_deadline(w, t), now);
}

/* ---- what any CPU may record ---- */

/* Stores @to if *@value is lower. A store is a full barrier. */
static inline void pmuk_wdt_raise(atomic64_t *value, s64 to)
{
	s64 was = atomic64_read(value);

	while (was < to && !atomic64_try_cmpxchg(value, &was, to))
		;
}

/* ---- whether a neighbour is stuck ---- */

/* Times in which a CPU missed its own beats: it was stopped, and maybe the whole machine was. */
struct pmuk_wdt_gaps {
	u64 end;		/* end of the latest gap */
	u64 ns;			/* length of the latest gap and of those shortly before it */
};

static inline bool pmuk_wdt_is_gap(u64 latest, u64 now, const struct pmuk_wdt_times *t)
{
	return now > latest && now - latest > t->beat + t->threshold / 8;
}

/*
 * Returns whether the time between two beats is so long that the machine may have stood still. The
 * device uses this limit, which is lower than that of pmuk_wdt_is_gap(), as its timeout may be
 * shorter than a threshold.
 */
static inline bool pmuk_wdt_is_stop(u64 latest, u64 now, const struct pmuk_wdt_times *t)
{
	return now > latest && now - latest > t->beat + t->grace;
}

/* Returns whether a CPU still beats; if so, it checks the CPUs that follow it. */
static inline bool pmuk_wdt_is_beating(u64 beat, u64 now, const struct pmuk_wdt_times *t)
{
	return now <= beat + t->beat + t->grace;
}

/* Records a gap if this beat comes too late after the previous one at @latest. */
static inline void pmuk_wdt_note_beat(struct pmuk_wdt_gaps *gaps, u64 latest, u64 now,
				      const struct pmuk_wdt_times *t)
{
	if (!pmuk_wdt_is_gap(latest, now, t))
		return;
	if (latest > gaps->end + t->wait)
		gaps->ns = 0;	/* older gaps no longer matter */
	gaps->ns = min(gaps->ns, t->wait) + now - latest;
	gaps->end = now;
}

/*
 * Drops gaps before @beat: they no longer matter. @beat is the oldest of the latest beats of all
 * CPUs that this CPU may have to check.
 */
static inline void pmuk_wdt_forget_gaps(struct pmuk_wdt_gaps *gaps, u64 beat)
{
	gaps->ns = min(gaps->ns, gaps->end > beat ? gaps->end - beat : 0);
}

/*
 * Returns since when a CPU is silent whose latest beat was at @beat. Time in which the checking CPU
 * did not beat itself is no silence of the other CPU.
 */
static inline u64 pmuk_wdt_silent_since(u64 beat, const struct pmuk_wdt_gaps *gaps)
{
	return max(beat, min(beat + gaps->ns, gaps->end));
}

/* Returns when the CPU counts as stuck. @heard: its latest sign of life other than a beat, or 0. */
static inline u64 pmuk_wdt_silent_at(u64 beat, const struct pmuk_wdt_gaps *gaps, u64 heard,
				     const struct pmuk_wdt_times *t)
{
	return max(pmuk_wdt_silent_since(beat, gaps), heard) + t->wait;
}

/*
 * Returns whether a neighbour stops waiting for the NMI of a CPU that counts as stuck since
 * @silent_at. The CPU's counter was armed for @armed at @nmi. If the CPU's clock got slower, its
 * NMI comes PMUK_WDT_SLOWER times @armed after @nmi at the latest. Stop waiting a little earlier
 * than that, as the neighbour's next beat, see @t, may be too late. At any clock, something may
 * hold an NMI up: wait until 1/32 of the threshold after it was due, but no longer than until 3/16
 * of the threshold after @silent_at. These are two beats, and the slack, of CPUs that are not
 * isolated. Isolated neighbours beat more rarely, and wait no longer.
 */
static inline bool pmuk_wdt_is_own_due(u64 nmi, u64 armed, u64 silent_at, u64 now,
				       const struct pmuk_wdt_times *t)
{
	u64 slow_until = nmi + PMUK_WDT_SLOWER * armed - min(t->beat, armed);
	u64 held_up_until = min(nmi + armed + t->threshold / 32,
				silent_at + t->threshold * 3 / 16);

	return now >= max(slow_until, held_up_until);
}

#endif /* _PMUK_WDT_MATH_H */
