/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arithmetic of the watchdog: when a CPU is stuck, how long to let its counter run, what
 * its clock is, and what is credited. No state of the kernel, no clock but what is passed in,
 * so that tests run it on a simulated clock.
 *
 * All is derived from the threshold T. A beat comes each T/16, and may be late by T/32 without
 * a lockup. So a CPU whose latest beat was at b has been stuck for T at b + T + T * 3/32, or
 * for less than T * 3/32 longer. An NMI looks then, and another one T/128 later: where the
 * machine has stood still, the first one may come before a beat that is due, too. From b + T +
 * T * 3/32 to 1.25 T are 20/128 of T: 16 are slack for a clock that is slower than it was, 3 for
 * the second look at such a clock, and one for what NMIs and printing take.
 *
 * A lockup begins anywhere between the latest beat and the first one that is missing, so reports
 * differ in how late they are by the time between two beats. Reports from 1.0 to 1.15 T leave
 * 0.15 T for that, for late beats, and for the second look: so seven beats in T are the least
 * that any detector can do with, and 16 leave as much again for late ones and for printing.
 *
 * An isolated CPU is to be disturbed no more than by the kernel's own detectors, which have five
 * timer interrupts in 2 T, and an NMI in T at a nominal clock: 3.5 in T. An isolated CPU has a
 * beat each T/2, and a slack of T, which makes less than 1.5 NMIs in T. Its lockups are reported
 * after 1.0 to 1.6 T.
 *
 * A counter that is to overflow after some time does so after three times that if its clock
 * drops to a third. So while there is time @left until a deadline, it is armed for a third of
 * @left and slack together, and for all of @left only when that is half the slack: either way
 * three times that is not beyond deadline and slack. What is left and the slack shrink by a
 * third each time, which makes two or three NMIs in a threshold, and never more than four.
 */
#ifndef _PMUK_WDT_MATH_H
#define _PMUK_WDT_MATH_H

#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

/* Of a threshold, in nanoseconds. */
#define PMUK_WDT_THRESHOLD_MIN	(200ULL * NSEC_PER_MSEC)
#define PMUK_WDT_THRESHOLD_MAX	(60ULL * NSEC_PER_SEC)

/* A clock may be slower than it was, by this factor, and reports are not late. */
#define PMUK_WDT_SLOWER		3

/* A CPU that seems to be slower than its clock by this factor has not run all the time. */
#define PMUK_WDT_STOPPED	4

/* What a clock is measured in: events in so many nanoseconds, about a million. */
#define PMUK_WDT_RATE_SHIFT	20
#define PMUK_WDT_RATE_MAX	BIT_ULL(24)	/* 16 GHz */

/* Fewer events than these are not worth an NMI. */
#define PMUK_WDT_EVENTS_MIN	BIT_ULL(16)

/* So many take minutes: where an overflow is no NMI. */
#define PMUK_WDT_EVENTS_UNUSED	BIT_ULL(40)

struct pmuk_wdt_times {
	u64 threshold;
	u64 beat;		/* from one beat to the next */
	u64 grace;		/* what a beat may be late by */
	u64 slack;		/* what an NMI may be late by, if the clock is slower than it was */
	u64 look;		/* from one that sees a lockup to one that is sure of it */
	u64 wait;		/* from the latest beat until a CPU is stuck */
};

static inline struct pmuk_wdt_times __pmuk_wdt_times(u64 threshold, u64 beat, u64 slack)
{
	u64 grace = threshold / 32;

	return (struct pmuk_wdt_times){
		.threshold	= threshold,
		.beat		= beat,
		.grace		= grace,
		.slack		= slack,
		.look		= threshold / 128,
		.wait		= threshold + beat + grace,
	};
}

static inline struct pmuk_wdt_times pmuk_wdt_times(u64 threshold)
{
	return __pmuk_wdt_times(threshold, threshold / 16, threshold / 8);
}

/* Of a CPU that is isolated. */
static inline struct pmuk_wdt_times pmuk_wdt_isolated_times(u64 threshold)
{
	return __pmuk_wdt_times(threshold, threshold / 2, threshold);
}

/* ---- how long to let a counter run ---- */

/* For how long, when there is so much time left. The last time it is to end after, not before. */
static inline u64 pmuk_wdt_next(u64 left, u64 slack)
{
	if (left <= slack / 2)
		return left + left / 64;
	return (left + slack) / PMUK_WDT_SLOWER;
}

/* How long until @deadline. */
static inline u64 pmuk_wdt_left(u64 deadline, u64 now)
{
	return deadline > now ? deadline - now : 0;
}

/* ---- the clock ---- */

/* Both are in events for each 2^PMUK_WDT_RATE_SHIFT nanoseconds; 0: not known yet. */
struct pmuk_wdt_clock {
	u64 rate;		/* the latest, with idle time, in which counters stand still */
	u64 top;		/* the highest in the latest dozen or so */
};

static inline u64 pmuk_wdt_rate(u64 events, u64 ns)
{
	u64 rate = div64_u64(min(events, U64_MAX >> PMUK_WDT_RATE_SHIFT) << PMUK_WDT_RATE_SHIFT,
			     max(ns, 1ULL));

	return clamp(rate, 1ULL, PMUK_WDT_RATE_MAX);
}

/*
 * Believed at once, be it faster or slower. Slower may mean idle: then the next NMI comes early,
 * and that is noticed by that NMI. It never comes late for this.
 */
static inline void pmuk_wdt_learn(struct pmuk_wdt_clock *clock, u64 events, u64 ns)
{
	WRITE_ONCE(clock->rate, pmuk_wdt_rate(events, ns));
	WRITE_ONCE(clock->top, max(clock->rate, clock->top - clock->top / 16));
}

/* How many events take so long. */
static inline u64 pmuk_wdt_events(const struct pmuk_wdt_clock *clock, u64 ns)
{
	return max((ns * clock->rate) >> PMUK_WDT_RATE_SHIFT, PMUK_WDT_EVENTS_MIN);
}

/* For how long a CPU has run at most that has counted so many. */
static inline u64 pmuk_wdt_ran(const struct pmuk_wdt_clock *clock, u64 events)
{
	return div64_u64(min(events, U64_MAX >> PMUK_WDT_RATE_SHIFT) << PMUK_WDT_RATE_SHIFT,
			 max(clock->top / PMUK_WDT_STOPPED, 1ULL));
}

/* In kHz, for people. */
static inline u64 pmuk_wdt_khz(u64 rate)
{
	return (rate * NSEC_PER_MSEC) >> PMUK_WDT_RATE_SHIFT;
}

/* ---- whether a CPU is stuck ---- */

/* Of one CPU, since its latest beat. */
struct pmuk_wdt_watch {
	u64 since;		/* nothing was heard of it since */
	u64 due_at;		/* first seen to be stuck; 0: not yet */
	bool stopped;		/* it was given the time in which it did not run */
};

/* ->since first: an NMI in between finds a CPU that was heard of, whatever the rest says. */
static inline void pmuk_wdt_watch_anew(struct pmuk_wdt_watch *w, u64 now)
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

/* Of the time that has passed, it has run for @ran at most. Once: a CPU may be slow for good. */
static inline void pmuk_wdt_credit_stop(struct pmuk_wdt_watch *w, u64 now, u64 ran)
{
	if (w->stopped || now <= w->since || ran >= now - w->since)
		return;
	w->stopped = true;
	w->since = now - ran;
	w->due_at = 0;
}

/* The CPU was heard of at @heard, otherwise than by a beat: the watch begins anew there. */
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

/* Whether this is the second look at a CPU that is due. */
static inline bool pmuk_wdt_is_sure(struct pmuk_wdt_watch *w, const struct pmuk_wdt_times *t,
				    u64 now)
{
	if (!w->due_at)
		w->due_at = now;
	return now - w->due_at >= t->look;
}

/* How long until the next look that decides. */
static inline u64 pmuk_wdt_until_look(const struct pmuk_wdt_watch *w,
				      const struct pmuk_wdt_times *t, u64 now)
{
	return pmuk_wdt_left(w->due_at ? w->due_at + t->look : pmuk_wdt_deadline(w, t), now);
}

/* ---- whether a neighbour is stuck ---- */

/* In what a CPU has missed beats of its own: it was stopped, and maybe all were. */
struct pmuk_wdt_gaps {
	u64 end;		/* of the latest one */
	u64 ns;			/* how long they were, with those shortly before */
};

static inline bool pmuk_wdt_is_gap(u64 latest, u64 now, const struct pmuk_wdt_times *t)
{
	return now > latest && now - latest > t->beat + 4 * t->grace;
}

/*
 * All CPUs together have been silent for so long: it may be the machine that stood still. What has
 * to do with the device goes by this one, for its time may be less than a threshold.
 */
static inline bool pmuk_wdt_is_stop(u64 latest, u64 now, const struct pmuk_wdt_times *t)
{
	return now > latest && now - latest > t->beat + t->grace;
}

/* A CPU that does beat looks after those that follow it. */
static inline bool pmuk_wdt_is_beating(u64 beat, u64 now, const struct pmuk_wdt_times *t)
{
	return now <= beat + t->beat + t->grace;
}

/* A beat comes now, and the one before came at @latest. */
static inline void pmuk_wdt_note_beat(struct pmuk_wdt_gaps *gaps, u64 latest, u64 now,
				      const struct pmuk_wdt_times *t)
{
	if (!pmuk_wdt_is_gap(latest, now, t))
		return;
	if (latest > gaps->end + t->wait)
		gaps->ns = 0;	/* else, of those before, what is still of interest */
	gaps->ns = min(gaps->ns, t->wait) + now - latest;
	gaps->end = now;
}

/* The CPU that is looked at has beaten at @beat: what was missed before is of no interest now. */
static inline void pmuk_wdt_forget_gaps(struct pmuk_wdt_gaps *gaps, u64 beat)
{
	gaps->ns = min(gaps->ns, gaps->end > beat ? gaps->end - beat : 0);
}

/* Since when a CPU was silent, as one has it that has itself had gaps since that CPU's beat. */
static inline u64 pmuk_wdt_silent_since(u64 beat, const struct pmuk_wdt_gaps *gaps)
{
	return max(beat, min(beat + gaps->ns, gaps->end));
}

/* When the CPU's own NMI would look if its last beat was at @beat. @heard: see above, or 0. */
static inline u64 pmuk_wdt_silent_at(u64 beat, const struct pmuk_wdt_gaps *gaps, u64 heard,
				     const struct pmuk_wdt_times *t)
{
	return max(pmuk_wdt_silent_since(beat, gaps), heard) + t->wait;
}

/*
 * Whether its own NMI, which was armed for @armed at @nmi, is no longer to be waited for. If that
 * was long, the next beat may be too late to ask again.
 */
static inline bool pmuk_wdt_is_own_due(u64 nmi, u64 armed, u64 now, const struct pmuk_wdt_times *t)
{
	return now + min(t->beat, armed) >= nmi + PMUK_WDT_SLOWER * armed;
}

#endif /* _PMUK_WDT_MATH_H */
