// SPDX-License-Identifier: GPL-2.0
/* The tests check that pmuk adapts periods to reach a frequency of overflows. */
#include <linux/delay.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/trace_events.h>

#include "../../kernel/pmu_kapi/freq.h"
#include "pmuk_ctx.h"
#include "pmuk_itrace.h"
#include "pmuk_suite.h"
#include "pmuk_test.h"

/* ---- one step ---- */

#define KHZ	1000

static const struct step {
	const char *name;
	u64 begun, ns;
	u32 freq;
	u64 shortest, next;
} steps[] = {
	{ "as long as wanted", 4096, NSEC_PER_MSEC, KHZ, 2, 4096 },
	{ "half as long", 4096, NSEC_PER_MSEC / 2, KHZ, 2, 4096 + 384 },
	{ "1 ns", 4096, 1, KHZ, 2, 4096 + 768 },
	{ "twice as long", 4096, 2 * NSEC_PER_MSEC, KHZ, 2, 3449 },
	{ "5 times as long", 4096, 5 * NSEC_PER_MSEC, KHZ, 2, 2048 },
	{ "9 times as long", 4096, 9 * NSEC_PER_MSEC, KHZ, 2, 1024 },
	{ "41 times as long", 1 << 20, 41 * NSEC_PER_MSEC, KHZ, 2, 1 << 10 },
	{ "1000 times as long", 1 << 20, NSEC_PER_SEC, KHZ, 2, 1 << 10 },
	{ "U64_MAX ns", 1 << 20, U64_MAX, KHZ, 2, 1 << 10 },
	{ "shortest period", 256, NSEC_PER_SEC, KHZ, 256, 256 },
	{ "a short period, a little too early", 16, NSEC_PER_MSEC * 9 / 10, KHZ, 2, 17 },
	{ "a short period, a little too late", 16, NSEC_PER_MSEC * 11 / 10, KHZ, 2, 15 },
	{ "highest frequency", 4096, 10 * NSEC_PER_USEC, PMUK_FREQ_MAX, 2, 4096 },
	{ "lowest frequency", 4096, NSEC_PER_SEC, 1, 2, 4096 },
	{ "longest period", PMUK_FREQ_LONGEST, 1, KHZ, 2, PMUK_FREQ_LONGEST },
};

KUNIT_ARRAY_PARAM_DESC(steps, steps, name);

static void next_period_is_longer_or_shorter(struct kunit *test)
{
	const struct step *s = test->param_value;

	KUNIT_EXPECT_EQ(test, pmuk_freq_next(s->begun, s->ns, s->freq, s->shortest), s->next);
}

/* ---- many steps ---- */

#define SHORTEST	256

/* Events come at @rate for @busy nanoseconds of each @cycle. */
static const struct load {
	const char *name;
	u64 rate;
	u32 freq, busy, cycle;
	u32 per_mille;		/* reachable with the shortest period */
} loads[] = {
	{ "10^9 events per second, frequency 1", NSEC_PER_SEC, 1, 1, 1, 1000 },
	{ "10^9 events per second, frequency 100", NSEC_PER_SEC, 100, 1, 1, 1000 },
	{ "10^9 events per second, frequency 10^5", NSEC_PER_SEC, PMUK_FREQ_MAX, 1, 1, 1000 },
	{ "10^6 events per second, frequency 1000", 1000000, KHZ, 1, 1, 1000 },
	{ "10^5 events per second, frequency 1000", 100000, KHZ, 1, 1, 391 },
	{ "a half of the time, frequency 1000", NSEC_PER_SEC, KHZ, 5000000, 10000000, 1000 },
	{ "a tenth of the time, frequency 1000", NSEC_PER_SEC, KHZ, 1000000, 10000000, 1000 },
	{ "a twentieth of the time, frequency 1000", NSEC_PER_SEC, KHZ, 1000000, 20000000, 1000 },
};

KUNIT_ARRAY_PARAM_DESC(loads, loads, name);

/* A driver's periods: a period that an overflow sets begins at the next overflow. */
struct driver {
	u64 now;		/* ns */
	u64 period, next;
};

/* Returns when @events more have come. */
static u64 after_events(const struct load *l, u64 now, u64 events)
{
	u64 left = mul_u64_u64_div_u64(events, NSEC_PER_SEC, l->rate);
	u64 offset = now % l->cycle, room;

	if (l->busy == l->cycle)
		return now + left;
	room = offset < l->busy ? l->busy - offset : 0;
	if (left <= room)
		return now + left;
	left -= room;
	now += l->cycle - offset;
	return now + (left - 1) / l->busy * l->cycle + (left - 1) % l->busy + 1;
}

static void let_overflow(struct driver *d, const struct load *l)
{
	u64 begun = d->now;

	d->now = after_events(l, d->now, d->period);
	d->period = d->next;
	d->next = pmuk_freq_next(d->next, d->now - begun, l->freq, SHORTEST);
}

static void expect_frequency(struct kunit *test, struct driver *d, const struct load *l)
{
	u64 begin, mhz;		/* thousandths of overflows per second */
	int i;

	for (i = 0; i < 500; i++)
		let_overflow(d, l);
	begin = d->now;
	for (i = 0; i < 2000; i++)
		let_overflow(d, l);
	mhz = div64_u64(2000ULL * 1000 * NSEC_PER_SEC, d->now - begin);
	KUNIT_EXPECT_GE(test, mhz, l->freq * (u64)l->per_mille * 95 / 100);
	KUNIT_EXPECT_LE(test, mhz, l->freq * (u64)l->per_mille * 105 / 100);
}

/* Frequencies are met from a short and from a long period, and again when the rate has changed. */
static void frequencies_are_met(struct kunit *test)
{
	const struct load *l = test->param_value;
	struct load faster = *l;
	struct driver d = { .period = 1000, .next = 1000 };

	expect_frequency(test, &d, l);
	d = (struct driver){ .period = 1ULL << 34, .next = 1ULL << 34 };
	expect_frequency(test, &d, l);
	if (l->per_mille < 1000)
		return;
	faster.rate *= 64;
	expect_frequency(test, &d, &faster);
	expect_frequency(test, &d, l);
}

/* ---- counters ---- */

#define FIRST	48
#define FREQ	100
#define MANY	40

static struct {
	unsigned int nr;
	u64 periods[MANY];
	u64 ran[MANY];		/* time_running */
	u64 counts[MANY];
} overflows;

static void note_overflow(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	if (overflows.nr >= MANY)
		return;
	overflows.periods[overflows.nr] = sample->period;
	overflows.ran[overflows.nr] = sample->value.time_running;
	overflows.counts[overflows.nr] = sample->value.count;
	WRITE_ONCE(overflows.nr, overflows.nr + 1);
}

static struct pmuk_attr attr_of(const struct pmuk_sim *sim, u32 flags)
{
	overflows.nr = 0;
	return (struct pmuk_attr){
		.type = pmuk_sim_type(sim), .flags = PMUK_NO_THROTTLE | flags, .period = FIRST,
		.freq = FREQ, .sample_type = PERF_SAMPLE_READ, .overflow = note_overflow,
	};
}

static void let_events_happen(struct pmuk_sim *sim, unsigned int overflows_wanted)
{
	unsigned int n;

	for (n = 0; overflows.nr < overflows_wanted && n < 10000000; n++)
		pmuk_sim_count(sim, 0, 1);
}

/*
 * Period i follows from period i - 1, which the driver had begun, and from the time of period
 * i - 2, which had just ended. The times of periods before period @timed are not known. The
 * simulated PMU is not the CPU's own, so periods are multiples of 16.
 */
static void expect_adapted(struct kunit *test, int timed)
{
	u64 next = FIRST, before = timed ? overflows.ran[timed - 1] : 0, longest = FIRST;
	int i;

	KUNIT_ASSERT_EQ(test, overflows.nr, MANY);
	for (i = 0; i < timed + 2; i++)
		KUNIT_EXPECT_EQ(test, overflows.periods[i], FIRST);
	for (; i < MANY; i++) {
		next = pmuk_freq_next(next, overflows.ran[i - 2] - before, FREQ, FIRST);
		before = overflows.ran[i - 2];
		KUNIT_EXPECT_EQ(test, overflows.periods[i], round_up(next, 16));
		longest = max(longest, next);
	}
	KUNIT_EXPECT_GT(test, longest, FIRST);
}

/*
 * If the periods did not become longer, none would be so long. A host that takes the CPU away makes
 * the next period shorter, so the last one may be short.
 */
static void expect_long_periods(struct kunit *test)
{
	u64 longest = 0;
	int i;

	KUNIT_ASSERT_EQ(test, overflows.nr, MANY);
	for (i = 0; i < MANY; i++)
		longest = max(longest, overflows.periods[i]);
	KUNIT_EXPECT_GT(test, longest, 2 * FIRST);
}

static void overflows_adapt_the_period(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	const struct pmuk_attr attr = attr_of(sim, 0);

	pmuk_test_here(test, &attr);
	let_events_happen(sim, MANY);
	expect_adapted(test, 0);
}

/* Two counters in one register have a frequency each. */
static void sharers_adapt_their_own_periods(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = attr_of(sim, PMUK_PINNED), other = attr;

	other.freq = FREQ / 2;
	other.overflow = NULL;
	pmuk_test_here(test, &other);
	pmuk_test_here(test, &attr);
	let_events_happen(sim, MANY);
	expect_adapted(test, 0);
}

/*
 * time_running goes on in a pause, but not the time of a period. So the periods become longer,
 * although there is a long pause in each.
 */
static void pauses_are_left_out(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	const struct pmuk_attr attr = attr_of(sim, 0);
	struct pmuk_counter *c = pmuk_test_here(test, &attr);
	unsigned int i;

	for (i = 1; i <= MANY; i++) {
		let_events_happen(sim, i);
		KUNIT_EXPECT_EQ(test, pmuk_counter_pause(c), 0);
		pmuk_test_spin(NSEC_PER_SEC / FREQ * 2);
		KUNIT_EXPECT_EQ(test, pmuk_counter_resume(c), 0);
	}
	expect_long_periods(test);
}

/* At this frequency, all periods take too long. */
static void first_period_is_the_shortest(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_attr attr = attr_of(sim, 0);
	int i;

	attr.freq = PMUK_FREQ_MAX;
	pmuk_test_here(test, &attr);
	for (i = 0; i < MANY; i++) {
		pmuk_test_spin(2 * NSEC_PER_SEC / PMUK_FREQ_MAX);
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, FIRST), FIRST);
		KUNIT_EXPECT_EQ(test, overflows.nr, i + 1);
	}
}

static void adapted_periods_are_not_set(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	const struct pmuk_attr attr = attr_of(sim, 0);

	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(pmuk_test_here(test, &attr), 1000),
			-EOPNOTSUPP);
}

/* ---- contexts ---- */

/* Counter 1 only masks, and is not noted. */
static u32 note_event(const struct pmuk_format_event *event)
{
	if (event->num == 0)
		note_overflow(event->counter, event->sample, NULL);
	return event->mask ? PMUK_FORMAT_MASK : PMUK_FORMAT_RESET;
}

static struct pmuk_format note_format = {
	.name = "pmuk_freq",
	.uuid = UUID_INIT(0x66726571, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
	.sample_type = PERF_SAMPLE_READ,
	.handler = note_event,
};

static const struct pmuk_pmd adapts = { .short_reset = FIRST, .freq = FREQ };

/* Returns a context with a counter of @sim that adapts its period. */
static struct pmuk_context *adapting(struct kunit *test, struct pmuk_sim *sim)
{
	const struct pmuk_context_attr attr = { .format = &note_format.uuid };
	struct pmuk_context *ctx;

	overflows.nr = 0;
	pmuk_ctx_format(test, &note_format);
	ctx = pmuk_ctx_create(test, &attr);
	pmuk_ctx_add_pmd(test, ctx, sim, 0, &adapts);
	pmuk_ctx_load(test, ctx, pmuk_test_pin_first(test));
	return ctx;
}

/* Each start begins with the first period, and with a new clock for the periods. */
static void contexts_adapt_periods(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_context *ctx = adapting(test, sim);
	int i;

	for (i = 0; i < 2; i++) {
		overflows.nr = 0;
		pmuk_ctx_start(test, ctx);
		let_events_happen(sim, MANY);
		KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
		expect_adapted(test, 1);
	}
}

/* Returns a context whose counters of @sim mask it at each overflow if @pmds say so. */
static struct pmuk_context *masking(struct kunit *test, struct pmuk_sim *sim,
				    const struct pmuk_pmd *pmds, unsigned int nr)
{
	const struct pmuk_context_attr attr = {
		.format = &note_format.uuid, .flags = PMUK_CTX_MASK,
	};
	struct pmuk_context *ctx;
	unsigned int i;

	overflows.nr = 0;
	pmuk_ctx_format(test, &note_format);
	ctx = pmuk_ctx_create(test, &attr);
	for (i = 0; i < nr; i++)
		pmuk_ctx_add_pmd(test, ctx, sim, i, &pmds[i]);
	pmuk_ctx_run(test, ctx, pmuk_test_pin_first(test));
	return ctx;
}

/* Each overflow masks. Restarts begin no new period, and the pauses before them do not count. */
static void restarts_keep_the_period(struct kunit *test)
{
	const struct pmuk_pmd pmd = { .short_reset = FIRST, .freq = FREQ,
				      .flags = PMUK_PMD_NOTIFY };
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_context *ctx = masking(test, sim, &pmd, 1);
	unsigned int i;

	for (i = 1; i <= MANY; i++) {
		let_events_happen(sim, i);
		pmuk_test_spin(NSEC_PER_SEC / FREQ * 2);
		KUNIT_ASSERT_EQ(test, pmuk_restart(ctx), 0);
	}
	expect_long_periods(test);
}

/* Another counter masks several times in each period. */
static void restarts_for_others_keep_the_clock(struct kunit *test)
{
	const struct pmuk_pmd pmds[] = {
		{ .num = 0, .short_reset = FIRST, .freq = FREQ },
		{ .num = 1, .short_reset = FIRST / 4, .flags = PMUK_PMD_NOTIFY },
	};
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct pmuk_context *ctx = masking(test, sim, pmds, ARRAY_SIZE(pmds));
	unsigned int i;

	for (i = 0; READ_ONCE(overflows.nr) < MANY && i < 1000000; i++) {
		pmuk_sim_count(sim, 0, FIRST / 4);
		pmuk_sim_count(sim, 1, FIRST / 4);
		KUNIT_ASSERT_EQ(test, pmuk_restart(ctx), 0);
	}
	expect_long_periods(test);
}

static void expect_pmd(struct kunit *test, struct pmuk_context *ctx, struct pmuk_pmd pmd,
		       int error)
{
	KUNIT_EXPECT_EQ(test, pmuk_write_pmds(ctx, &pmd, 1), error ? 0 : 1);
	KUNIT_EXPECT_EQ(test, pmd.ret, error);
}

static void frequencies_stay_while_loaded(struct kunit *test)
{
	struct pmuk_context *ctx = adapting(test, pmuk_test_sim(test, 1, 32));

	expect_pmd(test, ctx, (struct pmuk_pmd){ .short_reset = FIRST, .freq = 2 * FREQ }, -EBUSY);
	expect_pmd(test, ctx, (struct pmuk_pmd){ .short_reset = FIRST }, -EBUSY);
	expect_pmd(test, ctx, (struct pmuk_pmd){ .short_reset = 64, .freq = FREQ }, -EBUSY);
	expect_pmd(test, ctx, adapts, 0);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
	expect_pmd(test, ctx, (struct pmuk_pmd){ .short_reset = 64, .freq = 2 * FREQ }, 0);
}

static void frequencies_contradict_periods(struct kunit *test)
{
	const struct pmuk_pmd bad[] = {
		{ .freq = FREQ },
		{ .freq = FREQ, .short_reset = 1 },
		{ .freq = FREQ, .short_reset = PMUK_FREQ_LONGEST + 1 },
		{ .freq = FREQ, .short_reset = FIRST, .long_reset = FIRST },
		{ .freq = FREQ, .short_reset = FIRST, .random_mask = 1 },
		{ .freq = PMUK_FREQ_MAX + 1, .short_reset = FIRST },
	};
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	struct pmuk_target tree = { .type = PMUK_TARGET_TREE, .task = current };
	unsigned int i;

	pmuk_ctx_add(test, ctx, pmuk_test_sim(test, 1, 32), 0, 0, 0, 0);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		expect_pmd(test, ctx, bad[i], -EINVAL);
	expect_pmd(test, ctx, adapts, 0);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &tree), -EOPNOTSUPP);
}

/* perf would weigh each record by the frequency. A fixed period needs no record of its length. */
static void exported_records_have_their_periods(struct kunit *test)
{
	struct pmuk_perf_format fields = {
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
	};
	struct pmuk_context_attr attr = {
		.name = "pmuk_freq", .flags = PMUK_CTX_EXPORT,
		.buffer = { .nr_pages = 1, .flags = PMUK_BUFFER_USER_TAIL },
		.format_arg = &fields, .format_arg_size = sizeof(fields),
	};
	struct pmuk_context *ctx = pmuk_ctx_create(test, &attr);

	expect_pmd(test, ctx, adapts, -EINVAL);
	expect_pmd(test, ctx, (struct pmuk_pmd){ .short_reset = FIRST }, 0);
	fields.sample_type |= PERF_SAMPLE_PERIOD;
	attr.name = "pmuk_freq_2";
	expect_pmd(test, pmuk_ctx_create(test, &attr), adapts, 0);
	fields.sample_type &= ~(u64)PERF_SAMPLE_PERIOD;
	attr.flags = 0;
	expect_pmd(test, pmuk_ctx_create(test, &attr), adapts, 0);
}

/* A clock's period follows from its frequency, also after the start, which begins a period. */
static void clocks_of_contexts_have_a_fixed_period(struct kunit *test)
{
	struct pmuk_pmc clock = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
				  .flags = PMUK_NO_THROTTLE };
	const struct pmuk_context_attr attr = { .format = &note_format.uuid };
	struct pmuk_test_progress progress = {};
	struct pmuk_context *ctx;
	int i;

	overflows.nr = 0;
	pmuk_ctx_format(test, &note_format);
	ctx = pmuk_ctx_create(test, &attr);
	KUNIT_ASSERT_EQ(test, pmuk_write_pmcs(ctx, &clock, 1), 1);
	pmuk_ctx_write_pmd(test, ctx, &(struct pmuk_pmd){ .short_reset = 2, .freq = 500 });
	pmuk_ctx_run(test, ctx, pmuk_test_pin_first(test));
	while (READ_ONCE(overflows.nr) < MANY && pmuk_test_goes_on(&progress, overflows.nr))
		pmuk_test_spin(NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
	KUNIT_ASSERT_EQ(test, overflows.nr, MANY);
	for (i = 0; i < MANY; i++)
		KUNIT_EXPECT_EQ(test, overflows.periods[i], 2 * NSEC_PER_MSEC);
}

/* ---- events of software ---- */

#define SOFT_FIRST	2

static const struct pmuk_attr soft_attr = {
	.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
	.flags = PMUK_NO_THROTTLE, .period = SOFT_FIRST, .freq = FREQ, .overflow = note_overflow,
};

static const struct pmuk_pmd adapts_soft = { .short_reset = SOFT_FIRST, .freq = FREQ };

static void switch_tasks_until(unsigned int overflows_wanted)
{
	struct pmuk_test_progress progress = {};

	while (READ_ONCE(overflows.nr) < overflows_wanted &&
	       pmuk_test_goes_on(&progress, overflows.nr))
		usleep_range(1, 5);
}

/*
 * perf core counts these events, so each period has the length that the overflow before it has set.
 * The periods are all events. The times of periods before period @timed are not known.
 */
static void expect_soft_adapted(struct kunit *test, int timed)
{
	u64 next = SOFT_FIRST, before = timed ? overflows.ran[timed - 1] : 0;
	u64 longest = 0, events = overflows.counts[0] - SOFT_FIRST;
	int i;

	KUNIT_ASSERT_EQ(test, overflows.nr, MANY);
	for (i = 0; i < MANY; i++) {
		if (i > timed) {
			next = pmuk_freq_next(next, overflows.ran[i - 1] - before, FREQ,
					      SOFT_FIRST);
			before = overflows.ran[i - 1];
		}
		KUNIT_EXPECT_EQ(test, overflows.periods[i], next);
		events += overflows.periods[i];
		KUNIT_EXPECT_EQ(test, overflows.counts[i], events);
		longest = max(longest, next);
	}
	KUNIT_EXPECT_GT(test, longest, SOFT_FIRST);
}

static void switches_adapt_the_period(struct kunit *test)
{
	struct pmuk_counter *c;

	overflows.nr = 0;
	c = pmuk_test_here(test, &soft_attr);
	switch_tasks_until(MANY);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	expect_soft_adapted(test, 0);
}

/* Each start begins with the first period, also of these events. */
static void switches_adapt_in_contexts(struct kunit *test)
{
	struct pmuk_pmc switches = { .type = PERF_TYPE_SOFTWARE, .flags = PMUK_NO_THROTTLE,
				     .config = PERF_COUNT_SW_CONTEXT_SWITCHES };
	const struct pmuk_context_attr attr = { .format = &note_format.uuid };
	struct pmuk_context *ctx;
	int i;

	pmuk_ctx_format(test, &note_format);
	ctx = pmuk_ctx_create(test, &attr);
	KUNIT_ASSERT_EQ(test, pmuk_write_pmcs(ctx, &switches, 1), 1);
	pmuk_ctx_write_pmd(test, ctx, &adapts_soft);
	pmuk_ctx_load(test, ctx, pmuk_test_pin_first(test));
	for (i = 0; i < 2; i++) {
		overflows.nr = 0;
		pmuk_ctx_start(test, ctx);
		switch_tasks_until(MANY);
		KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
		expect_soft_adapted(test, 1);
	}
}

/* Returns the number of perf's event that counts the nanoseconds for which tasks have run. */
static u64 runtime_config(struct kunit *test)
{
#ifndef CONFIG_EVENT_TRACING
	kunit_skip(test, "no tracepoints");
#else
	struct trace_event_file *file = trace_get_event_file(NULL, "sched", "sched_stat_runtime");
	u64 config;

	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	config = file->event_call->event.type;
	trace_put_event_file(file);
	return config;
#endif
}

/*
 * A tick counts as many events as a hundred periods and more have. perf core then reports that many
 * overflows, although the first ones make the period longer. The periods still have all the events
 * that have come, and no more.
 */
static void bursts_are_cut_into_adapted_periods(struct kunit *test)
{
	struct pmuk_test_progress progress = {};
	struct pmuk_attr attr = soft_attr;
	unsigned int i, bursts = 0;
	struct pmuk_counter *c;
	u64 events = 0, longest = 0;

	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = runtime_config(test);
	attr.period = 10 * NSEC_PER_USEC;
	overflows.nr = 0;
	c = pmuk_test_here(test, &attr);
	while (READ_ONCE(overflows.nr) < MANY && pmuk_test_goes_on(&progress, overflows.nr))
		pmuk_test_spin(NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	KUNIT_ASSERT_EQ(test, overflows.nr, MANY);
	for (i = 0; i < MANY; i++) {
		longest = max(longest, overflows.periods[i]);
		if (i && overflows.counts[i] == overflows.counts[i - 1])
			bursts++;
		else if (i)
			KUNIT_EXPECT_GT(test, events + longest, overflows.counts[i - 1]);
		events += overflows.periods[i];
		KUNIT_EXPECT_LE(test, events, overflows.counts[i]);
	}
	KUNIT_EXPECT_GT(test, bursts, 0);
}

/* ---- other events ---- */

static void clocks_have_a_fixed_period(struct kunit *test)
{
	struct pmuk_test_progress progress = {};
	const struct pmuk_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
		.flags = PMUK_NO_THROTTLE, .period = 2, .freq = 500, .overflow = note_overflow,
	};
	struct pmuk_counter *c;
	int i;

	overflows.nr = 0;
	c = pmuk_test_here(test, &attr);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(c, 1000000), -EOPNOTSUPP);
	while (READ_ONCE(overflows.nr) < MANY && pmuk_test_goes_on(&progress, overflows.nr))
		pmuk_test_spin(NSEC_PER_MSEC);
	KUNIT_ASSERT_EQ(test, overflows.nr, MANY);
	for (i = 0; i < MANY; i++)
		KUNIT_EXPECT_EQ(test, overflows.periods[i], 2 * NSEC_PER_MSEC);
}

static void expect_refused(struct kunit *test, u32 type, u64 config, const char *what)
{
	const struct pmuk_attr attr = {
		.type = type, .config = config, .period = 2, .freq = FREQ,
	};

	pmuk_test_refused(test, &attr, pmuk_test_pin_first(test), NULL, -EOPNOTSUPP, what);
}

KUNIT_DEFINE_ACTION_WRAPPER(put_itrace, pmuk_itrace_destroy, struct pmuk_itrace *);

static void other_events_have_no_frequency(struct kunit *test)
{
	const struct pmuk_sim_config spe = {
		.name = "pmuk_spe", .nr_counters = 1, .width = 32, .interval = true,
	};
	struct pmuk_sim *sim = pmuk_test_sim_config(test, &spe);
	struct pmuk_itrace *it = pmuk_itrace_create("pmuk_itrace", 0);

	KUNIT_ASSERT_FALSE(test, IS_ERR(it));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_itrace, it), 0);
	expect_refused(test, pmuk_sim_type(sim), 0, "events in perf's software context");
	expect_refused(test, pmuk_itrace_type(it), PMUK_ITRACE_ALIGN_MIN, "trace");
}

static struct kunit_case pmuk_freq_cases[] = {
	KUNIT_CASE_PARAM(next_period_is_longer_or_shorter, steps_gen_params),
	KUNIT_CASE_PARAM(frequencies_are_met, loads_gen_params),
	KUNIT_CASE(overflows_adapt_the_period),
	KUNIT_CASE(sharers_adapt_their_own_periods),
	KUNIT_CASE(pauses_are_left_out),
	KUNIT_CASE(first_period_is_the_shortest),
	KUNIT_CASE(adapted_periods_are_not_set),
	KUNIT_CASE(contexts_adapt_periods),
	KUNIT_CASE(restarts_keep_the_period),
	KUNIT_CASE(restarts_for_others_keep_the_clock),
	KUNIT_CASE(frequencies_stay_while_loaded),
	KUNIT_CASE(frequencies_contradict_periods),
	KUNIT_CASE(exported_records_have_their_periods),
	KUNIT_CASE(clocks_of_contexts_have_a_fixed_period),
	KUNIT_CASE(switches_adapt_the_period),
	KUNIT_CASE(switches_adapt_in_contexts),
	KUNIT_CASE(bursts_are_cut_into_adapted_periods),
	KUNIT_CASE(clocks_have_a_fixed_period),
	KUNIT_CASE(other_events_have_no_frequency),
	{}
};

PMUK_SUITE(pmuk_freq, pmuk_test_init, "KUnit tests of pmuk's frequencies");
