// SPDX-License-Identifier: GPL-2.0
/*
 * The tests run the watchdog's arithmetic on a simulated clock and counter. Reports come in time at
 * any clock rate, NMIs are few, lockups that are too short are not reported, and credit is limited.
 */
#include <kunit/test.h>

#include "../../drivers/watchdog/pmuk_wdt/math.h"
#include "pmuk_suite.h"

/* Simulations begin at this time, in nanoseconds. It is arbitrary, but not near 0. */
#define START	(1000ULL * NSEC_PER_SEC)

static const u64 thresholds[] = {
	PMUK_WDT_THRESHOLD_MIN, 1 * NSEC_PER_SEC, 2 * NSEC_PER_SEC, 10ULL * NSEC_PER_SEC,
	PMUK_WDT_THRESHOLD_MAX,
};

/* The clock changes to these rates, in 1/60 of the learnt rate. */
static const unsigned int factors[] = { 20, 25, 30, 45, 60, 80, 90, 120, 150, 180 };

/* Holds a CPU, its counter, and what the watchdog knows of it. */
struct sim {
	struct pmuk_wdt_times t;
	struct pmuk_wdt_clock clock;
	struct pmuk_wdt_watch watch;
	u64 now;
	u64 rate;			/* the counter's rate, in units of pmuk_wdt_clock */
	unsigned int nmis;
};

static const u64 rates[] = { 100000, 1048576, 5000000 };	/* 0.1, 1 and 5 GHz */

#define RATE	1048576ULL

static struct sim sim_with(struct pmuk_wdt_times t, u64 rate)
{
	return (struct sim){
		.t = t,
		.clock = { .rate = rate, .top = rate },
		.watch = { .since = START },
		.now = START,
		.rate = rate,
	};
}

/* Returns a CPU of about 1 GHz with a threshold of one second. */
static struct sim new_sim(void)
{
	return sim_with(pmuk_wdt_times_of(NSEC_PER_SEC), RATE);
}

/*
 * Sets up the n-th pair of a threshold and a factor. The counter runs at that factor of the learnt
 * rate. Returns whether there is such a pair.
 */
static bool sim_of_pair(struct sim *s, unsigned int n)
{
	unsigned int threshold = n / ARRAY_SIZE(factors);

	if (threshold >= ARRAY_SIZE(thresholds))
		return false;
	*s = sim_with(pmuk_wdt_times_of(thresholds[threshold]), RATE);
	s->rate = RATE * factors[n % ARRAY_SIZE(factors)] / 60;
	return true;
}

/* Lets the counter run until it overflows. The NMI learns the rate. */
static void sim_nmi(struct sim *s)
{
	u64 left = pmuk_wdt_until_check(&s->watch, &s->t, s->now);
	u64 events = pmuk_wdt_events(&s->clock, pmuk_wdt_next(left, s->t.slack));
	u64 ns = max(div64_u64(events << PMUK_WDT_RATE_SHIFT, s->rate), 1ULL);

	s->now += ns;
	s->nmis++;
	pmuk_wdt_learn(&s->clock, events, ns);
}

static bool sim_reports(struct sim *s)
{
	return pmuk_wdt_is_due(&s->watch, &s->t, s->now) &&
	       pmuk_wdt_is_sure(&s->watch, &s->t, s->now);
}

/* Runs until the lockup is reported. The clock changes to @rate after @change NMIs. */
static u64 sim_lockup(struct sim *s, u64 rate, unsigned int change)
{
	unsigned int nmis = 0;

	do {
		if (nmis++ == change)
			s->rate = rate;
		sim_nmi(s);
	} while (!sim_reports(s) && nmis < 1000);
	return s->now;
}

/* Beats come on time. An NMI at s->now sees the latest one. */
static void sim_beats(struct sim *s)
{
	u64 passed = s->now - START;

	s->watch.since = START + passed - passed % s->t.beat;
}

/* ---- times ---- */

/* Most tests have a threshold of one second. */
static struct pmuk_wdt_times t;

static int wdt_init(struct kunit *test)
{
	t = pmuk_wdt_times_of(NSEC_PER_SEC);
	return 0;
}

static void times_fit_in_a_quarter(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(thresholds); i++) {
		t = pmuk_wdt_times_of(thresholds[i]);
		KUNIT_EXPECT_EQ(test, t.wait, t.threshold + t.beat + t.grace);
		KUNIT_EXPECT_LE(test, t.beat + t.grace + t.slack + PMUK_WDT_SLOWER * t.recheck +
				t.threshold / 128, t.threshold / 4);
		KUNIT_EXPECT_GT(test, t.beat, 0ULL);
	}
}

static void next_is_in_time_at_a_third_of_the_clock(struct kunit *test)
{
	u64 left, next;

	for (left = 0; left < 2 * t.threshold; left += t.threshold / 1000) {
		next = pmuk_wdt_next(left, t.slack);
		KUNIT_EXPECT_LE(test, PMUK_WDT_SLOWER * next,
				left + t.slack + PMUK_WDT_SLOWER * t.slack / 128);
		KUNIT_EXPECT_GE(test, next, min(left, t.slack / 3));
	}
}

static void next_is_the_rest_at_last(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, pmuk_wdt_next(0, t.slack), 0ULL);
	KUNIT_EXPECT_GE(test, pmuk_wdt_next(t.slack / 2, t.slack), t.slack / 2);
	KUNIT_EXPECT_LT(test, pmuk_wdt_next(t.slack, t.slack), t.slack);
}

/* ---- lockups ---- */

/* The lockup begins @phase after the latest beat, and right after an NMI. */
static void check_lockup(struct kunit *test, struct sim *s, u64 rate, unsigned int change,
			 u64 phase)
{
	u64 begin = START + phase, end, threshold = s->t.threshold;

	s->now = begin;
	end = sim_lockup(s, rate, change);
	KUNIT_EXPECT_GE_MSG(test, end - begin, threshold, "threshold %llu rate %llu to %llu at %u",
			    threshold, s->clock.top, rate, change);
	KUNIT_EXPECT_LE_MSG(test, end - begin, threshold + threshold / 4,
			    "threshold %llu rate %llu to %llu at %u", threshold, s->clock.top,
			    rate, change);
}

static void check_lockups(struct kunit *test, u64 threshold, u64 rate, u64 changed)
{
	unsigned int change, phase;
	struct sim s;

	for (change = 0; change < 6; change++) {
		for (phase = 0; phase < 8; phase++) {
			s = sim_with(pmuk_wdt_times_of(threshold), rate);
			check_lockup(test, &s, changed, change, s.t.beat * phase / 8);
		}
	}
}

static void lockups_are_reported_in_time(struct kunit *test)
{
	unsigned int i, j, k;

	for (i = 0; i < ARRAY_SIZE(thresholds); i++) {
		for (j = 0; j < ARRAY_SIZE(rates); j++) {
			for (k = 0; k < ARRAY_SIZE(factors); k++)
				check_lockups(test, thresholds[i], rates[j],
					      rates[j] * factors[k] / 60);
		}
	}
}

/*
 * Lets a lockup begin @after_beat after a beat and @after_nmi after an NMI. Returns how long after
 * its begin the lockup is reported.
 */
static u64 sim_steady_lockup(struct sim *s, u64 after_beat, u64 after_nmi)
{
	u64 begin = START + 10 * s->t.threshold + after_beat;

	s->now = begin - after_nmi;
	sim_beats(s);
	sim_nmi(s);
	s->watch.since = begin - after_beat;
	return sim_lockup(s, s->rate, 0) - begin;
}

static void check_steady_lockups(struct kunit *test, u64 threshold, u64 rate)
{
	struct pmuk_wdt_times times = pmuk_wdt_times_of(threshold);
	u64 beat, nmi, took;
	struct sim s;

	for (beat = 0; beat < times.beat; beat += times.beat / 8) {
		for (nmi = 0; nmi < threshold * 2 / 5; nmi += threshold / 80) {
			s = sim_with(times, rate);
			took = sim_steady_lockup(&s, beat, nmi);
			KUNIT_EXPECT_GE_MSG(test, took, threshold, "rate %llu beat %llu nmi %llu",
					    rate, beat, nmi);
			KUNIT_EXPECT_LE_MSG(test, took, threshold + threshold / 20,
					    "rate %llu beat %llu nmi %llu", rate, beat, nmi);
		}
	}
}

static void lockups_at_a_steady_clock_are_reported_early(struct kunit *test)
{
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(thresholds); i++) {
		for (j = 0; j < ARRAY_SIZE(rates); j++)
			check_steady_lockups(test, thresholds[i], rates[j]);
	}
}

/* The counter of an idle CPU counts little, so the learnt rate is far too low. */
static void lockups_after_idle_are_reported_in_time(struct kunit *test)
{
	unsigned int i, idle;
	struct sim s;

	for (i = 0; i < ARRAY_SIZE(thresholds); i++) {
		for (idle = 2; idle < 5000; idle *= 3) {
			s = sim_with(pmuk_wdt_times_of(thresholds[i]), RATE);
			s.clock.rate /= idle;
			check_lockup(test, &s, RATE, 0, s.t.beat / 2);
		}
	}
}

static void short_lockups_are_not_reported(struct kunit *test)
{
	unsigned int i;
	struct sim s;
	u64 begin;

	for (i = 0; sim_of_pair(&s, i); i++) {
		begin = START + s.t.beat + s.t.grace;
		for (s.now = begin; s.now < begin + s.t.threshold * 99 / 100; sim_nmi(&s))
			KUNIT_ASSERT_FALSE(test, pmuk_wdt_is_due(&s.watch, &s.t, s.now));
	}
}

/* ---- NMIs are few ---- */

static void nmi_and_beats(struct sim *s)
{
	sim_nmi(s);
	sim_beats(s);
}

static void nmis_are_few_while_all_is_well(struct kunit *test)
{
	unsigned int i;
	struct sim s;

	for (i = 0; sim_of_pair(&s, i); i++) {
		while (s.now < START + s.t.threshold)
			nmi_and_beats(&s);
		KUNIT_EXPECT_LE(test, s.nmis - 1, 3U);	/* the last one was later */
	}
}

/* The clock rate changes by a factor of three, up and down, again and again. */
static void nmis_are_few_on_average(struct kunit *test)
{
	const unsigned int turns = 100;
	struct sim s = new_sim();

	while (s.now < START + turns * s.t.threshold) {
		s.rate = s.nmis & 1 ? RATE : 3 * RATE;
		nmi_and_beats(&s);
	}
	KUNIT_EXPECT_LE(test, s.nmis, 3 * turns);
}

static void nmis_are_few_in_a_lockup(struct kunit *test)
{
	unsigned int i;
	struct sim s;

	for (i = 0; sim_of_pair(&s, i); i++) {
		while (s.now <= START + s.t.threshold)
			sim_nmi(&s);
		KUNIT_EXPECT_LE(test, s.nmis - 1, 4U);
	}
}

/* ---- CPUs that are isolated ---- */

/*
 * The kernel's own detectors have five timer interrupts in two thresholds, and one NMI in each
 * threshold.
 */
static void isolated_cpus_have_few_interrupts(struct kunit *test)
{
	const unsigned int nr = 100;
	struct sim s;
	unsigned int i;
	u64 beats;

	for (i = 0; i < ARRAY_SIZE(thresholds); i++) {
		s = sim_with(pmuk_wdt_isolated_times(thresholds[i]), RATE);
		while (s.now < START + nr * s.t.threshold)
			nmi_and_beats(&s);
		beats = div64_u64(nr * s.t.threshold, s.t.beat);
		KUNIT_EXPECT_LE(test, beats, nr * 5ULL / 2);
		KUNIT_EXPECT_LE(test, beats + s.nmis, nr * 7ULL / 2);
	}
}

/* An isolated CPU is reported later than others, but never too early. */
static void isolated_cpus_are_reported(struct kunit *test)
{
	unsigned int i, phase;
	struct sim s;
	u64 took;

	for (i = 0; i < ARRAY_SIZE(thresholds); i++) {
		for (phase = 0; phase < 8; phase++) {
			s = sim_with(pmuk_wdt_isolated_times(thresholds[i]), RATE);
			s.now += s.t.beat * phase / 8;
			took = sim_lockup(&s, s.rate, 0) - START - s.t.beat * phase / 8;
			KUNIT_EXPECT_GE(test, took, s.t.threshold);
			KUNIT_EXPECT_LE(test, took, s.t.threshold * 8 / 5);
		}
	}
}

/* ---- the clock ---- */

static void clock_is_learnt(struct kunit *test)
{
	struct pmuk_wdt_clock clock = {};

	pmuk_wdt_learn(&clock, 1000000000, NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, clock.rate, 1ULL << PMUK_WDT_RATE_SHIFT);
	KUNIT_EXPECT_EQ(test, clock.top, clock.rate);
	KUNIT_EXPECT_EQ(test, pmuk_wdt_khz(clock.rate), 1000000ULL);
	KUNIT_EXPECT_EQ(test, pmuk_wdt_events(&clock, NSEC_PER_SEC), 1000000000ULL);
}

static void clock_is_followed_at_once(struct kunit *test)
{
	struct pmuk_wdt_clock clock = {};

	pmuk_wdt_learn(&clock, 1000000000, NSEC_PER_SEC);
	pmuk_wdt_learn(&clock, 300000000, NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, pmuk_wdt_khz(clock.rate + 1), 300000ULL);
	pmuk_wdt_learn(&clock, 3000000000ULL, NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, pmuk_wdt_khz(clock.rate), 3000000ULL);
}

static void top_of_the_clock_decays(struct kunit *test)
{
	struct pmuk_wdt_clock clock = {};
	unsigned int i;

	pmuk_wdt_learn(&clock, 1000000000, NSEC_PER_SEC);
	pmuk_wdt_learn(&clock, 1000000, NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, clock.top, (1ULL << PMUK_WDT_RATE_SHIFT) * 15 / 16);
	for (i = 0; i < 200; i++)
		pmuk_wdt_learn(&clock, 1000000, NSEC_PER_SEC);
	KUNIT_EXPECT_LT(test, clock.top, 1ULL << (PMUK_WDT_RATE_SHIFT - 4));
	KUNIT_EXPECT_GE(test, clock.top, clock.rate);
}

static void clock_has_bounds(struct kunit *test)
{
	struct pmuk_wdt_clock clock = {};

	pmuk_wdt_learn(&clock, 0, NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, clock.rate, 1ULL);
	KUNIT_EXPECT_EQ(test, pmuk_wdt_events(&clock, 1), PMUK_WDT_EVENTS_MIN);
	pmuk_wdt_learn(&clock, U64_MAX, 0);
	KUNIT_EXPECT_EQ(test, clock.rate, PMUK_WDT_RATE_MAX);
	KUNIT_EXPECT_EQ(test, pmuk_wdt_events(&clock, PMUK_WDT_THRESHOLD_MAX),
			PMUK_WDT_THRESHOLD_MAX << 4);
}

/* ---- credit ---- */

/*
 * After a stop of the machine, an NMI may come before the beat that is due. So one check does not
 * report.
 */
static void one_look_is_not_enough(struct kunit *test)
{
	struct sim s = new_sim();
	u64 end;

	s.now = START + 30ULL * NSEC_PER_SEC;
	KUNIT_EXPECT_FALSE(test, sim_reports(&s));
	KUNIT_EXPECT_EQ(test, pmuk_wdt_until_check(&s.watch, &s.t, s.now), s.t.recheck);
	end = s.now + s.t.recheck;
	s.now = end - 1;
	KUNIT_EXPECT_FALSE(test, sim_reports(&s));
	s.now = end;
	KUNIT_EXPECT_TRUE(test, sim_reports(&s));
	pmuk_wdt_watch_restart(&s.watch, s.now);
	KUNIT_EXPECT_EQ(test, s.watch.due_at, 0ULL);
	KUNIT_EXPECT_FALSE(test, sim_reports(&s));
}

/* A credit gives the CPU a whole new time. */
static void credit_is_looked_at_anew(struct kunit *test)
{
	struct sim s = new_sim();

	s.now = START + s.t.wait;
	KUNIT_EXPECT_FALSE(test, sim_reports(&s));
	pmuk_wdt_watch_from(&s.watch, s.now);
	s.now += s.t.wait;
	KUNIT_EXPECT_FALSE(test, sim_reports(&s));
	s.now += s.t.recheck;
	KUNIT_EXPECT_TRUE(test, sim_reports(&s));
}

/* SysRq-T touches the watchdog after each task, for as long as its console takes. */
static void each_touch_restarts_the_watch(struct kunit *test)
{
	struct sim s = new_sim();
	u64 last;

	for (last = START; last < START + 30ULL * NSEC_PER_SEC; last = s.now) {
		sim_nmi(&s);
		KUNIT_ASSERT_FALSE(test, sim_reports(&s));
		pmuk_wdt_watch_from(&s.watch, s.now);
	}
	KUNIT_EXPECT_EQ(test, pmuk_wdt_deadline(&s.watch, &s.t), last + s.t.wait);
	while (!sim_reports(&s))
		sim_nmi(&s);
	KUNIT_EXPECT_GE(test, s.now - last, s.t.threshold);
	KUNIT_EXPECT_LE(test, s.now - last, s.t.threshold + s.t.threshold / 4);
}

static void old_touches_do_not_count(struct kunit *test)
{
	struct sim s = new_sim();

	s.watch.due_at = START + s.t.wait;
	pmuk_wdt_watch_from(&s.watch, START - 1);
	KUNIT_EXPECT_EQ(test, s.watch.since, START);
	KUNIT_EXPECT_EQ(test, s.watch.due_at, START + s.t.wait);
}

/* The machine stands still for 30 s. Its clock goes on meanwhile, and its counters do not. */
static void stops_are_credited(struct kunit *test)
{
	struct sim s = sim_with(t, 1 << PMUK_WDT_RATE_SHIFT);
	u64 ran = NSEC_PER_SEC / 10, events = 100000000;

	s.now = START + 30ULL * NSEC_PER_SEC + ran;
	KUNIT_EXPECT_TRUE(test, pmuk_wdt_is_due(&s.watch, &s.t, s.now));
	pmuk_wdt_credit_stop(&s.watch, s.now, pmuk_wdt_ran(&s.clock, events));
	KUNIT_EXPECT_FALSE(test, pmuk_wdt_is_due(&s.watch, &s.t, s.now));
	KUNIT_EXPECT_EQ(test, s.watch.since, s.now - PMUK_WDT_STOPPED * ran);
}

static void stops_are_credited_once(struct kunit *test)
{
	struct sim s = new_sim();
	u64 since;

	pmuk_wdt_credit_stop(&s.watch, START + 30ULL * NSEC_PER_SEC, 0);
	since = s.watch.since;
	pmuk_wdt_credit_stop(&s.watch, START + 60ULL * NSEC_PER_SEC, 0);
	KUNIT_EXPECT_EQ(test, s.watch.since, since);
}

/*
 * A CPU that spins at a third of the clock rate or more gets no credit, so its report is not late.
 */
static void slow_clocks_are_not_credited(struct kunit *test)
{
	u64 ns = 2ULL * NSEC_PER_SEC, events;
	unsigned int k;
	struct sim s;

	for (k = 0; k < ARRAY_SIZE(factors); k++) {
		s = new_sim();
		events = ns / 60 * factors[k] * RATE / (1 << PMUK_WDT_RATE_SHIFT);
		pmuk_wdt_credit_stop(&s.watch, START + ns, pmuk_wdt_ran(&s.clock, events));
		KUNIT_EXPECT_FALSE(test, s.watch.stopped);
		KUNIT_EXPECT_EQ(test, s.watch.since, START);
	}
}

static void stops_of_the_future_are_not_credited(struct kunit *test)
{
	struct sim s = new_sim();

	pmuk_wdt_credit_stop(&s.watch, START - 1, 0);
	KUNIT_EXPECT_FALSE(test, s.watch.stopped);
}

/* ---- neighbours ---- */

static const struct pmuk_wdt_gaps no_gaps;

static bool is_silent(u64 beat, const struct pmuk_wdt_gaps *gaps, u64 heard, u64 now)
{
	return now >= pmuk_wdt_silent_at(beat, gaps, heard, &t);
}

/*
 * Expects that a CPU with its latest beat at @beat counts as silent from @end on, and not earlier.
 */
static void expect_silent(struct kunit *test, u64 beat, const struct pmuk_wdt_gaps *gaps,
			  u64 heard, u64 end)
{
	KUNIT_EXPECT_FALSE(test, is_silent(beat, gaps, heard, end - 1));
	KUNIT_EXPECT_TRUE(test, is_silent(beat, gaps, heard, end));
}

static void neighbours_are_silent_after_a_while(struct kunit *test)
{
	const u64 heard = START + 100ULL * t.threshold;

	expect_silent(test, START, &no_gaps, 0, START + t.wait);
	expect_silent(test, START, &no_gaps, heard, heard + t.wait);
}

/*
 * A neighbour is not blamed for the time of a stop of the machine. Its time before and after the
 * stop counts.
 */
static void neighbours_are_not_judged_by_who_was_stopped(struct kunit *test)
{
	const u64 stop = 30ULL * NSEC_PER_SEC, before = t.threshold / 2;
	struct pmuk_wdt_gaps gaps = {};
	u64 now = START + before;

	pmuk_wdt_note_beat(&gaps, now - t.beat - t.threshold / 8, now, &t);
	KUNIT_EXPECT_EQ(test, gaps.ns, 0ULL);
	pmuk_wdt_note_beat(&gaps, now, now + stop, &t);
	now += stop;
	KUNIT_EXPECT_FALSE(test, is_silent(START, &gaps, 0, now));
	expect_silent(test, START, &gaps, 0, START + stop + t.wait);
	/* A CPU that has beaten after the stop gets no credit for it. */
	KUNIT_EXPECT_TRUE(test, is_silent(now, &gaps, 0, now + t.wait));
}

/*
 * A CPU that runs half of the time sees its neighbour's lockup later, but sees it, however long its
 * gaps already are.
 */
static void neighbours_with_gaps_see_it_later(struct kunit *test)
{
	const u64 gap = t.threshold / 4;
	struct pmuk_wdt_gaps gaps = { .end = START, .ns = 100 * t.threshold };
	u64 now = START;

	while (!is_silent(START, &gaps, 0, now) && now < START + 10 * t.threshold) {
		pmuk_wdt_note_beat(&gaps, now, now + gap, &t);
		now += 2 * gap;		/* the CPU runs, and beats, half of the time */
	}
	KUNIT_EXPECT_GE(test, now - START, 2 * t.threshold);
	KUNIT_EXPECT_LE(test, now - START, 5 * t.threshold);
}

/* A gap that was long ago is forgotten. */
static void gaps_are_forgotten(struct kunit *test)
{
	const u64 gap = t.threshold / 4;
	struct pmuk_wdt_gaps gaps = {};

	pmuk_wdt_note_beat(&gaps, START, START + 10 * t.threshold, &t);
	pmuk_wdt_note_beat(&gaps, START + 20 * t.threshold, START + 20 * t.threshold + gap, &t);
	KUNIT_EXPECT_EQ(test, gaps.ns, gap);
}

/*
 * The watching CPU was stuck until a moment before its neighbour's latest beat. Only its gaps after
 * that beat give the neighbour more time.
 */
static void gaps_before_a_beat_do_not_count(struct kunit *test)
{
	const u64 gap = t.threshold / 4, beat = START + t.threshold / 8;
	struct pmuk_wdt_gaps gaps = {};
	u64 late = beat + t.threshold - gap;

	pmuk_wdt_note_beat(&gaps, START - 2 * t.threshold, START, &t);
	pmuk_wdt_forget_gaps(&gaps, beat);
	pmuk_wdt_note_beat(&gaps, late, late + gap, &t);
	expect_silent(test, beat, &gaps, 0, beat + gap + t.wait);
}

/* If a neighbour's beat came during a gap, only the rest of the gap counts. */
static void gaps_count_from_a_beat(struct kunit *test)
{
	const u64 beat = START + t.threshold / 2, end = START + t.threshold;
	struct pmuk_wdt_gaps gaps = {};

	pmuk_wdt_note_beat(&gaps, START, end, &t);
	pmuk_wdt_forget_gaps(&gaps, beat);
	KUNIT_EXPECT_EQ(test, gaps.ns, end - beat);
	pmuk_wdt_forget_gaps(&gaps, end);
	KUNIT_EXPECT_EQ(test, gaps.ns, 0ULL);
}

/*
 * Neighbours in a row do not beat. The last CPU before them checks all of them, and reports in
 * time.
 */
static void silent_neighbours_are_looked_past(struct kunit *test)
{
	u64 stuck, now;

	KUNIT_EXPECT_TRUE(test, pmuk_wdt_is_beating(START, START + t.beat + t.grace, &t));
	/* The neighbour in between gets stuck at any time before it would have reported. */
	for (stuck = START; stuck <= START + t.wait; stuck += t.beat) {
		now = START;
		while (pmuk_wdt_is_beating(stuck, now, &t) || !is_silent(START, &no_gaps, 0, now))
			now += t.beat;
		KUNIT_EXPECT_GE(test, now - START, t.threshold);
		KUNIT_EXPECT_LE(test, now - START, t.threshold + t.threshold / 4);
	}
}

/* A CPU that stood still may record its beat after a later beat of another CPU. */
static void beats_of_others_are_not_replaced(struct kunit *test)
{
	s64 first = START + t.beat, later = first + t.beat;
	atomic64_t alive_at = ATOMIC64_INIT(0);

	pmuk_wdt_raise(&alive_at, later);
	KUNIT_EXPECT_EQ(test, atomic64_read(&alive_at), later);
	pmuk_wdt_raise(&alive_at, first);
	KUNIT_EXPECT_EQ(test, atomic64_read(&alive_at), later);
}

/* A stop that is short beside the threshold may be long for the watchdog device. */
static void short_stops_are_stops(struct kunit *test)
{
	t = pmuk_wdt_times_of(60ULL * NSEC_PER_SEC);
	KUNIT_EXPECT_FALSE(test, pmuk_wdt_is_stop(START, START + t.beat, &t));
	KUNIT_EXPECT_FALSE(test, pmuk_wdt_is_stop(START + 1, START, &t));
	KUNIT_EXPECT_TRUE(test, pmuk_wdt_is_stop(START, START + 6ULL * NSEC_PER_SEC, &t));
}

static void own_nmis_are_waited_for(struct kunit *test)
{
	u64 armed, last, end = START + 10 * t.threshold;

	for (armed = t.recheck; armed < t.threshold; armed += t.recheck) {
		last = START + max(3 * armed - min(t.beat, armed), armed + 2 * t.beat);
		KUNIT_EXPECT_FALSE(test, pmuk_wdt_is_own_due(START, armed, end, last - 1, &t));
		KUNIT_EXPECT_TRUE(test, pmuk_wdt_is_own_due(START, armed, end, last, &t));
	}
}

/* A CPU halts, and only isolated CPUs, which beat rarely, are left to report it. */
static void isolated_neighbours_wait_no_longer(struct kunit *test)
{
	const struct pmuk_wdt_times isolated = pmuk_wdt_isolated_times(t.threshold);
	const u64 silent_at = START + t.wait;
	u64 armed = pmuk_wdt_next(t.wait, t.slack);

	KUNIT_EXPECT_TRUE(test, pmuk_wdt_is_own_due(START, armed, silent_at, silent_at, &isolated));
	KUNIT_EXPECT_TRUE(test, pmuk_wdt_is_own_due(silent_at, t.recheck, silent_at,
						    silent_at + t.slack, &isolated));
}

/*
 * The NMIs that find the CPU stuck come after short times. The code that they interrupt, or the
 * host of a virtual machine, may hold each of them up for a beat, and a neighbour still waits.
 */
static void own_nmis_may_be_held_up(struct kunit *test)
{
	const u64 silent_at = START + t.wait;
	u64 armed;

	for (armed = 0; armed <= t.recheck; armed += t.recheck / 16)
		KUNIT_EXPECT_FALSE(test, pmuk_wdt_is_own_due(silent_at - armed, armed, silent_at,
							     silent_at + t.beat, &t));
	KUNIT_EXPECT_FALSE(test, pmuk_wdt_is_own_due(silent_at + t.beat, t.recheck, silent_at,
						     silent_at + 2 * t.beat + t.recheck, &t));
	/* At a third of the clock, the report would be late. */
	KUNIT_EXPECT_TRUE(test, pmuk_wdt_is_own_due(silent_at + t.slack, t.recheck, silent_at,
						    silent_at + t.slack + 2 * t.recheck, &t));
}

/*
 * Returns when a neighbour, which beats at @phase, reports a CPU that halted after its NMI at @nmi.
 */
static u64 neighbour_reports(u64 nmi, u64 phase)
{
	u64 armed = pmuk_wdt_next(START + t.wait - nmi, t.slack);
	u64 now = START + phase;

	while (!is_silent(START, &no_gaps, 0, now) ||
	       !pmuk_wdt_is_own_due(nmi, armed, START + t.wait, now, &t))
		now += t.beat;
	return now;
}

/* A CPU that watches itself is halted with interrupts off, right after one of its NMIs. */
static void halted_cpus_are_reported_in_time(struct kunit *test)
{
	u64 phase, nmi, end;

	for (nmi = START; nmi < START + t.wait; nmi += t.recheck) {
		for (phase = 0; phase < t.beat; phase += t.beat / 8) {
			end = neighbour_reports(nmi, phase);
			KUNIT_EXPECT_GE(test, end - START, t.threshold + t.beat);
			KUNIT_EXPECT_LE(test, end - START, t.threshold + t.threshold / 4);
		}
	}
}

static struct kunit_case pmuk_wdt_cases[] = {
	KUNIT_CASE(times_fit_in_a_quarter),
	KUNIT_CASE(next_is_in_time_at_a_third_of_the_clock),
	KUNIT_CASE(next_is_the_rest_at_last),
	KUNIT_CASE(lockups_are_reported_in_time),
	KUNIT_CASE(lockups_at_a_steady_clock_are_reported_early),
	KUNIT_CASE(lockups_after_idle_are_reported_in_time),
	KUNIT_CASE(short_lockups_are_not_reported),
	KUNIT_CASE(nmis_are_few_while_all_is_well),
	KUNIT_CASE(nmis_are_few_on_average),
	KUNIT_CASE(nmis_are_few_in_a_lockup),
	KUNIT_CASE(isolated_cpus_have_few_interrupts),
	KUNIT_CASE(isolated_cpus_are_reported),
	KUNIT_CASE(clock_is_learnt),
	KUNIT_CASE(clock_is_followed_at_once),
	KUNIT_CASE(top_of_the_clock_decays),
	KUNIT_CASE(clock_has_bounds),
	KUNIT_CASE(one_look_is_not_enough),
	KUNIT_CASE(credit_is_looked_at_anew),
	KUNIT_CASE(each_touch_restarts_the_watch),
	KUNIT_CASE(old_touches_do_not_count),
	KUNIT_CASE(stops_are_credited),
	KUNIT_CASE(stops_are_credited_once),
	KUNIT_CASE(slow_clocks_are_not_credited),
	KUNIT_CASE(stops_of_the_future_are_not_credited),
	KUNIT_CASE(neighbours_are_silent_after_a_while),
	KUNIT_CASE(neighbours_are_not_judged_by_who_was_stopped),
	KUNIT_CASE(neighbours_with_gaps_see_it_later),
	KUNIT_CASE(gaps_are_forgotten),
	KUNIT_CASE(gaps_before_a_beat_do_not_count),
	KUNIT_CASE(gaps_count_from_a_beat),
	KUNIT_CASE(silent_neighbours_are_looked_past),
	KUNIT_CASE(beats_of_others_are_not_replaced),
	KUNIT_CASE(short_stops_are_stops),
	KUNIT_CASE(own_nmis_are_waited_for),
	KUNIT_CASE(own_nmis_may_be_held_up),
	KUNIT_CASE(isolated_neighbours_wait_no_longer),
	KUNIT_CASE(halted_cpus_are_reported_in_time),
	{}
};

PMUK_SUITE(pmuk_wdt, wdt_init, "KUnit tests of the watchdog's arithmetic");
