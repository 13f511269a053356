// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check the effects of an overflow of a context's counter: records and their content,
 * periods, peers, and stopping until a restart. Each record is in the buffer, or is counted as
 * lost.
 */
#include <linux/perf_local.h>
#include <linux/sched/clock.h>

#include "../../kernel/pmu_kapi/counter.h"
#include "pmuk_parse.h"
#include "pmuk_place.h"
#include "pmuk_suite.h"

#define PERIOD	100

#define MANY	8

static const struct pmuk_context_attr buffered = { .buffer = { .nr_pages = 1 } };
static const struct pmuk_context_attr masking = { .flags = PMUK_CTX_MASK,
						  .buffer = { .nr_pages = 1 } };
static const struct pmuk_pmd plain = { .short_reset = PERIOD };
static const struct pmuk_pmd notify = { .short_reset = PERIOD, .flags = PMUK_PMD_NOTIFY };
static const struct pmuk_pmd notify1 = { .num = 1, .short_reset = PERIOD,
					 .flags = PMUK_PMD_NOTIFY };

/*
 * Holds a context on the test's CPU or on all CPUs, the format of its records, and the latest
 * samples.
 */
struct sampler {
	struct pmuk_sim *sim;
	struct pmuk_context *ctx;
	struct pmuk_perf_format format;
	struct pmuk_parsed p[MANY];
	int cpu;
	u64 restarts;
};

/* Returns a context on @sim. Each record holds @type, and values as @read_format says. */
static struct sampler *new_sampler_on(struct kunit *test, struct pmuk_sim *sim,
				      struct pmuk_context_attr attr, u64 type, u64 read_format)
{
	struct sampler *s = pmuk_test_zalloc(test, sizeof(*s));

	s->cpu = pmuk_test_pin_first(test);
	s->sim = sim;
	s->format.sample_type = type;
	s->format.read_format = read_format;
	attr.format_arg = &s->format;
	attr.format_arg_size = sizeof(s->format);
	s->ctx = pmuk_ctx_create(test, &attr);
	return s;
}

static struct sampler *new_sampler(struct kunit *test, struct pmuk_context_attr attr, u64 type,
				   u64 read_format)
{
	return new_sampler_on(test, pmuk_test_sim(test, 4, 32), attr, type, read_format);
}

/* Starts @nr counters, of which number @num counts event @num. @pmd is for counter 0. */
static void start_sampler(struct kunit *test, struct sampler *s, unsigned int nr,
			  const struct pmuk_pmd *pmd)
{
	unsigned int num;

	for (num = 0; num < nr; num++)
		pmuk_ctx_add(test, s->ctx, s->sim, 0, num, num, PMUK_NO_THROTTLE);
	pmuk_ctx_write_pmd(test, s->ctx, pmd);
	pmuk_ctx_run(test, s->ctx, s->cpu);
}

static void feed(struct kunit *test, struct sampler *s, u64 config, u64 n)
{
	KUNIT_EXPECT_EQ(test, pmuk_ctx_feed(s->sim, s->cpu, config, n), n);
}

static void expect_count(struct kunit *test, struct sampler *s, u16 num, u64 count)
{
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, s->ctx, 0, num, -1), count);
}

/* Returns the number of overflows that were reported since the last call. */
static u64 told(struct sampler *s)
{
	return pmuk_ctx_told(s->ctx, PMUK_MSG_OVERFLOW);
}

/* Reads all samples, and keeps the last MANY of them. Returns how many there were. */
static unsigned int take(struct kunit *test, struct sampler *s, int cpu, u64 *lost)
{
	return pmuk_parse_buffer(test, pmuk_context_buffer(s->ctx, cpu), &s->format, s->p, MANY,
				 lost);
}

static void expect_records(struct kunit *test, struct sampler *s, unsigned int n)
{
	KUNIT_ASSERT_EQ(test, take(test, s, s->cpu, NULL), n);
}

/* Each record has the count of its counter at the overflow, and the counter's cookie. */
static void records_hold_what_was_asked_for(struct kunit *test)
{
	const struct pmuk_pmd pmd = { .short_reset = PERIOD, .cookie = 0x1234567890abcdef };
	struct sampler *s = new_sampler(test, buffered, PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
					PERF_SAMPLE_TIME | PERF_SAMPLE_READ |
					PMUK_SAMPLE_COOKIE, 0);
	u64 before = local_clock();
	unsigned int i;

	start_sampler(test, s, 1, &pmd);
	feed(test, s, 0, 3 * PERIOD + 50);
	expect_records(test, s, 3);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, s->p[i].cpu, s->cpu);
		KUNIT_EXPECT_EQ(test, s->p[i].period, PERIOD);
		KUNIT_EXPECT_EQ(test, s->p[i].values[0], (i + 1) * PERIOD);
		KUNIT_EXPECT_GE(test, s->p[i].time, before);
		KUNIT_EXPECT_LE(test, s->p[i].time, local_clock());
		KUNIT_EXPECT_EQ(test, s->p[i].cookie, pmd.cookie);
		before = s->p[i].time;
	}
}

/*
 * Values in records go on over a stop, as counts do. A new cookie is in the records after it is
 * set.
 */
static void records_go_on_after_a_stop(struct kunit *test)
{
	struct pmuk_pmd pmd = { .short_reset = PERIOD, .cookie = 1 };
	struct sampler *s = new_sampler(test, buffered, PERF_SAMPLE_READ | PMUK_SAMPLE_COOKIE, 0);

	start_sampler(test, s, 1, &pmd);
	feed(test, s, 0, PERIOD + 60);
	KUNIT_EXPECT_EQ(test, pmuk_stop(s->ctx), 0);
	pmuk_ctx_start(test, s->ctx);
	/* A new start begins a new period. */
	feed(test, s, 0, PERIOD - 1);
	expect_records(test, s, 1);
	feed(test, s, 0, 1);
	expect_records(test, s, 1);
	KUNIT_EXPECT_EQ(test, s->p[0].values[0], 2 * PERIOD + 60);
	KUNIT_EXPECT_EQ(test, s->p[0].cookie, 1);

	KUNIT_EXPECT_EQ(test, pmuk_stop(s->ctx), 0);
	pmd = (struct pmuk_pmd){ .short_reset = 10, .cookie = 2 };
	pmuk_ctx_write_pmd(test, s->ctx, &pmd);
	pmuk_ctx_start(test, s->ctx);
	feed(test, s, 0, 10);
	expect_records(test, s, 1);
	KUNIT_EXPECT_EQ(test, s->p[0].values[0], 10);
	KUNIT_EXPECT_EQ(test, s->p[0].cookie, 2);
}

#define GROUP	(PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED)

/* The record has the counts of the named peers, in the order of the peers' numbers. */
static void sample_peers_are_in_records(struct kunit *test)
{
	const struct pmuk_pmd pmd = { .short_reset = PERIOD, .sample_peers = BIT(3) | BIT(1) };
	static const u64 values[][3] = { { PERIOD, 7, 9 }, { 2 * PERIOD, 7, 109 } };
	struct sampler *s = new_sampler(test, buffered, PERF_SAMPLE_READ | PERF_SAMPLE_CPU, GROUP);
	unsigned int i;

	start_sampler(test, s, 4, &pmd);
	feed(test, s, 1, 7);
	feed(test, s, 2, 8);
	feed(test, s, 3, 9);
	feed(test, s, 0, PERIOD);
	feed(test, s, 3, 100);
	feed(test, s, 0, PERIOD);
	expect_records(test, s, ARRAY_SIZE(values));
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		KUNIT_ASSERT_EQ(test, s->p[i].nr, ARRAY_SIZE(values[i]));
		KUNIT_EXPECT_MEMEQ(test, s->p[i].values, values[i], sizeof(values[i]));
	}
	KUNIT_EXPECT_NE(test, s->p[0].ids[1], s->p[0].ids[2]);
	KUNIT_EXPECT_EQ(test, s->p[0].cpu, s->cpu);
}

/* Peers' counts are left out of records that have no room for them. */
static void sample_peers_need_a_group(struct kunit *test)
{
	const struct pmuk_pmd pmd = { .short_reset = PERIOD, .sample_peers = BIT(3) | BIT(1) };
	static const u64 types[] = { PERF_SAMPLE_READ | PERF_SAMPLE_CPU, PERF_SAMPLE_CPU };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct sampler *s = new_sampler(test, buffered, types[i], i ? GROUP : 0);

		start_sampler(test, s, 4, &pmd);
		feed(test, s, 0, 5 * PERIOD);
		expect_records(test, s, 5);
		KUNIT_EXPECT_EQ(test, s->p[4].cpu, s->cpu);
		KUNIT_EXPECT_EQ(test, s->p[4].values[0], i ? 0 : 5 * PERIOD);
		kunit_release_action(test, pmuk_ctx_put, s->ctx);
		kunit_release_action(test, pmuk_test_put_sim, s->sim);
	}
}

/*
 * A peer with a period begins a new one, though its period was nearly over. A peer without a period
 * counts on.
 */
static void reset_peers_begin_again(struct kunit *test)
{
	struct sampler *s = new_sampler(test, buffered, 0, 0);
	const struct pmuk_pmd pmd = { .short_reset = PERIOD, .reset_peers = BIT(1) | BIT(3) };
	const struct pmuk_pmd other = { .num = 2, .short_reset = PERIOD, .flags = PMUK_PMD_NOTIFY };

	pmuk_ctx_write_pmd(test, s->ctx, &notify1);
	pmuk_ctx_write_pmd(test, s->ctx, &other);
	start_sampler(test, s, 4, &pmd);
	feed(test, s, 1, PERIOD - 1);
	feed(test, s, 2, PERIOD - 1);
	feed(test, s, 3, 5);
	feed(test, s, 0, PERIOD);
	feed(test, s, 1, PERIOD - 1);
	KUNIT_EXPECT_EQ(test, told(s), 0);
	feed(test, s, 1, 1);
	KUNIT_EXPECT_EQ(test, told(s), 1);
	feed(test, s, 2, 1);
	KUNIT_EXPECT_EQ(test, told(s), 1);
	feed(test, s, 3, 5);
	expect_count(test, s, 1, 2 * PERIOD - 1);
	expect_count(test, s, 3, 10);
}

/*
 * Two counters share the PMU's only register. A peer whose new period begins while it waits for the
 * register has not overflowed.
 */
static void reset_peers_that_wait_have_not_overflowed(struct kunit *test)
{
	const struct pmuk_pmd pmd = { .short_reset = PERIOD, .reset_peers = BIT(1) };
	const struct pmuk_pmd peer = { .num = 1, .short_reset = PERIOD };
	struct sampler *s = new_sampler_on(test, pmuk_test_sim(test, 1, 32), buffered, 0, 0);
	unsigned int i;

	pmuk_ctx_add_set(test, s->ctx, 1, 0);
	pmuk_ctx_write_pmd(test, s->ctx, &peer);
	start_sampler(test, s, 2, &pmd);
	for (i = 0; i < 20; i++) {
		KUNIT_ASSERT_EQ(test, pmuk_ctx_feed(s->sim, s->cpu, 0, PERIOD), PERIOD);
		KUNIT_ASSERT_EQ(test, pmuk_switch_evtset(s->ctx, 1), 0);
		KUNIT_ASSERT_EQ(test, pmuk_switch_evtset(s->ctx, 0), 0);
	}
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(s->ctx, 0, s->cpu).replayed, 0);
	expect_count(test, s, 1, 0);
}

/*
 * The overflow stops all counters at once. After the restart comes one long period, and then short
 * ones.
 */
static void masked_until_restart(struct kunit *test)
{
	const struct pmuk_pmd pmd = { .short_reset = PERIOD, .long_reset = 3 * PERIOD,
				      .flags = PMUK_PMD_NOTIFY };
	struct sampler *s = new_sampler(test, masking, PERF_SAMPLE_PERIOD, 0);
	static const u64 periods[] = { PERIOD, 3 * PERIOD, 3 * PERIOD };
	u64 sum = 0;
	unsigned int i;

	start_sampler(test, s, 2, &pmd);
	for (i = 0; i < ARRAY_SIZE(periods); i++) {
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 1, 5), 5);
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 0, 10 * PERIOD), periods[i]);
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 0, PERIOD), 0);
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 1, 5), 0);
		sum += periods[i];
		expect_count(test, s, 0, sum);
		expect_count(test, s, 1, (i + 1) * 5);
		KUNIT_EXPECT_EQ(test, told(s), 1);
		expect_records(test, s, 1);
		KUNIT_EXPECT_EQ(test, s->p[0].period, periods[i]);
		KUNIT_EXPECT_EQ(test, pmuk_restart(s->ctx), 0);
	}
}

#define CLOCK_PERIOD	(20 * NSEC_PER_MSEC)

/*
 * The next overflow comes a period after @since, and is reported once its record is there. The
 * clock of the timer and the clock of records differ a little.
 */
static void expect_whole_period(struct kunit *test, struct sampler *s, u64 since, u64 period)
{
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(told(s)));
	expect_records(test, s, 1);
	KUNIT_EXPECT_GE(test, s->p[0].time - since, period - period / 10);
}

/* perf core counts cpu-clock's periods by a timer. No period ends early, not even the first one. */
static void clock_periods_are_whole(struct kunit *test)
{
	const struct pmuk_pmd pmd = { .short_reset = CLOCK_PERIOD, .long_reset = 2 * CLOCK_PERIOD,
				      .flags = PMUK_PMD_NOTIFY };
	struct pmuk_pmc pmc = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK };
	struct sampler *s = new_sampler(test, masking, PERF_SAMPLE_TIME, 0);
	unsigned int i;
	u64 since;

	KUNIT_ASSERT_EQ(test, pmuk_write_pmcs(s->ctx, &pmc, 1), 1);
	pmuk_ctx_write_pmd(test, s->ctx, &pmd);
	pmuk_ctx_load(test, s->ctx, s->cpu);
	for (i = 0; i < 3; i++) {
		since = local_clock();
		pmuk_ctx_start(test, s->ctx);
		expect_whole_period(test, s, since, CLOCK_PERIOD);
		since = local_clock();
		KUNIT_EXPECT_EQ(test, pmuk_restart(s->ctx), 0);
		expect_whole_period(test, s, since, 2 * CLOCK_PERIOD);
		KUNIT_EXPECT_EQ(test, pmuk_stop(s->ctx), 0);
	}
}

/*
 * A counter that does not notify does not mask. Its period goes on over the restart of another
 * counter.
 */
static void masked_by_those_that_notify(struct kunit *test)
{
	const struct pmuk_pmd other = { .num = 1, .short_reset = PERIOD };
	struct sampler *s = new_sampler(test, masking, PERF_SAMPLE_CPU, 0);

	pmuk_ctx_write_pmd(test, s->ctx, &other);
	start_sampler(test, s, 2, &notify);
	feed(test, s, 1, 2 * PERIOD + 60);
	expect_records(test, s, 2);
	KUNIT_EXPECT_EQ(test, told(s), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 0, 2 * PERIOD), PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 1, 5), 0);
	expect_records(test, s, 1);
	KUNIT_EXPECT_EQ(test, pmuk_restart(s->ctx), 0);
	feed(test, s, 1, 39);
	expect_records(test, s, 0);
	feed(test, s, 1, 1);
	expect_records(test, s, 1);
	expect_count(test, s, 1, 3 * PERIOD);
}

/*
 * Two counters overflow at once. The overflow that comes together with the masking one is not lost.
 */
static void masked_with_another_overflow(struct kunit *test)
{
	struct sampler *s = new_sampler(test, masking, PERF_SAMPLE_CPU, 0);

	pmuk_ctx_write_pmd(test, s->ctx, &notify1);
	start_sampler(test, s, 2, &notify);
	KUNIT_EXPECT_EQ(test, pmuk_sim_advance(s->sim, 1, PERIOD + 30), PERIOD + 30);
	KUNIT_EXPECT_EQ(test, pmuk_sim_advance(s->sim, 0, PERIOD), PERIOD);
	pmuk_sim_interrupt(s->sim);
	KUNIT_EXPECT_EQ(test, told(s), 2);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(s->ctx, 0, s->cpu).overflowed, BIT(0) | BIT(1));
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_restart(s->ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 1, 1), 1);
	KUNIT_EXPECT_EQ(test, told(s), 0);
	expect_records(test, s, 2);
	expect_count(test, s, 0, PERIOD);
	expect_count(test, s, 1, PERIOD + 31);
}

/* On @cpu, of @n events, so many are counted. */
static void expect_counted_on(struct kunit *test, struct sampler *s, int cpu, u64 n, u64 counted)
{
	KUNIT_EXPECT_EQ_MSG(test, pmuk_sim_count_on(s->sim, cpu, 0, n), counted, "CPU %d", cpu);
}

struct filling {
	struct pmuk_buffer *b;
	bool fits;
};

static void output_here(void *data)
{
	struct filling *f = data;

	f->fits = pmuk_test_output(f->b, PERF_RECORD_SAMPLE, 64);
}

/* Returns whether the buffer of @cpu takes a record. */
static bool fits_on(struct kunit *test, struct sampler *s, int cpu)
{
	struct filling f = { .b = pmuk_context_buffer(s->ctx, cpu) };

	KUNIT_EXPECT_EQ(test, smp_call_function_single(cpu, output_here, &f, true), 0);
	return f.fits;
}

/* Lets a buffer stop, and takes all its records. */
static void stop_buffer(struct kunit *test, struct sampler *s, int cpu)
{
	while (fits_on(test, s, cpu))
		;
	pmuk_test_consume(test, pmuk_context_buffer(s->ctx, cpu), PERF_RECORD_SAMPLE);
	KUNIT_EXPECT_FALSE(test, fits_on(test, s, cpu));
}

/* Each CPU is masked, and its buffer has stopped. One CPU goes on, and the other one does not. */
static void restart_of_one_cpu(struct kunit *test)
{
	const struct pmuk_context_attr attr = {
		.flags = PMUK_CTX_MASK,
		.buffer = { .nr_pages = 1, .mode = PMUK_BUFFER_STOP } };
	struct sampler *s = new_sampler(test, attr, PERF_SAMPLE_CPU, 0);
	int here = s->cpu, other = pmuk_test_other_cpu(test, s->cpu);

	s->cpu = -1;
	start_sampler(test, s, 1, &notify);
	stop_buffer(test, s, here);
	stop_buffer(test, s, other);
	expect_counted_on(test, s, here, 2 * PERIOD, PERIOD);
	expect_counted_on(test, s, other, 2 * PERIOD, PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_restart_cpu(s->ctx, other), 0);
	KUNIT_EXPECT_FALSE(test, fits_on(test, s, here));
	KUNIT_EXPECT_TRUE(test, fits_on(test, s, other));
	expect_counted_on(test, s, here, 5, 0);
	expect_counted_on(test, s, other, 2 * PERIOD, PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_restart_cpu(s->ctx, here), 0);
	KUNIT_EXPECT_TRUE(test, fits_on(test, s, here));
	expect_counted_on(test, s, here, 2 * PERIOD, PERIOD);
	expect_counted_on(test, s, other, 5, 0);
	KUNIT_EXPECT_EQ(test, told(s), 4);
}

#define POLLED	1000

/* Restarts the context from another CPU as soon as the overflow is reported. */
static void restart_when_told(void *data)
{
	struct sampler *s = data;
	struct pmuk_msg msg;

	if (pmuk_read(s->ctx, &msg, true) != 1)
		return;
	s->restarts += msg.kind == PMUK_MSG_OVERFLOW ? msg.count : 0;
	pmuk_restart(s->ctx);
}

/* Feeds many periods to the counter, which counts all of them, while another CPU calls @fn. */
static struct sampler *feed_while_called(struct kunit *test, void (*fn)(void *data))
{
	struct sampler *s = new_sampler(test, masking, 0, 0);
	int other = pmuk_test_other_cpu(test, s->cpu);
	struct pmuk_loop *loop;
	unsigned int i;

	start_sampler(test, s, 1, &notify);
	loop = pmuk_loop_start(test, other, fn, s);
	for (i = 0; i < POLLED; i++) {
		if (pmuk_ctx_feed(s->sim, s->cpu, 0, PERIOD) != PERIOD)
			break;
	}
	pmuk_loop_stop(test, loop);
	KUNIT_EXPECT_EQ(test, i, POLLED);
	return s;
}

/*
 * The number of reported overflows agrees with the count. Paused counters miss events, which are in
 * neither, see pmuk_counter_pause().
 */
static void expect_all_told(struct kunit *test, struct sampler *s)
{
	s->restarts += told(s);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, s->ctx, 0, 0, -1) / PERIOD, s->restarts);
}

/* An overflow masks before it is reported, so a restart after the message is never too early. */
static void masked_before_it_is_told(struct kunit *test)
{
	expect_all_told(test, feed_while_called(test, restart_when_told));
}

static void restart_all_the_time(void *data)
{
	struct sampler *s = data;

	pmuk_restart(s->ctx);
}

/* A restart comes before an overflow or after it, as a whole. So no counter counts while masked. */
static void restart_meets_overflows(struct kunit *test)
{
	expect_all_told(test, feed_while_called(test, restart_all_the_time));
}

/* A stop and a start also end the masking, but begin with the short period. */
static void masked_until_started_again(struct kunit *test)
{
	const struct pmuk_pmd pmd = { .short_reset = PERIOD, .long_reset = 3 * PERIOD,
				      .flags = PMUK_PMD_NOTIFY };
	struct sampler *s = new_sampler(test, masking, 0, 0);

	start_sampler(test, s, 2, &pmd);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 0, 10 * PERIOD), PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_stop(s->ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_restart(s->ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 0, 5), 0);
	expect_count(test, s, 0, PERIOD);
	pmuk_ctx_start(test, s->ctx);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 1, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 0, 10 * PERIOD), PERIOD);
	expect_count(test, s, 0, 2 * PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(s->ctx), 0);
	expect_count(test, s, 0, 2 * PERIOD);
	expect_count(test, s, 1, 5);
}

/* Other CPUs count on while one CPU is masked. */
static void masked_one_cpu_at_a_time(struct kunit *test)
{
	struct sampler *s = new_sampler(test, masking, 0, 0);
	int cpu = s->cpu, other = pmuk_test_other_cpu(test, cpu);

	s->cpu = -1;
	start_sampler(test, s, 2, &notify);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(s->sim, other, 0, 2 * PERIOD), PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(s->sim, cpu, 1, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(s->sim, other, 1, 5), 0);
	pmuk_ctx_expect_msg(test, s->ctx, PMUK_MSG_OVERFLOW, other, 0, 1);
	KUNIT_EXPECT_EQ(test, pmuk_restart(s->ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(s->sim, other, 1, 5), 5);
}

/* An NMI of one PMU comes while another PMU is being programmed. */
struct meddler {
	struct pmuk_sim *sim, *other;
	struct sampler *s;
	struct pmuk_sim_hook hook;
	struct pmu *busy;
	unsigned int nr;
	u64 counted;
	int ret;
};

static void overflow_here(void *data)
{
	struct meddler *m = data;

	m->counted = pmuk_sim_count(m->sim, 0, 2 * PERIOD);
}

static void meddle(struct pmuk_sim *sim, enum pmuk_sim_point point, void *data)
{
	struct meddler *m = data;

	if (point == PMUK_SIM_RELOADING && !in_nmi() && !m->nr++)
		m->ret = pmuk_irq_run(PMUK_IRQ_NMI, overflow_here, m);
}

/* Returns a second PMU, and a context that an overflow of the first PMU masks. */
static struct meddler *new_meddler(struct kunit *test, u64 type)
{
	const struct pmuk_sim_config config = {
		.name = "pmuk_sim_other", .nr_counters = 4, .width = 32 };
	struct meddler *m = pmuk_test_zalloc(test, sizeof(*m));

	pmuk_test_need_nmi(test);
	m->other = pmuk_test_sim_config(test, &config);
	m->s = new_sampler(test, masking, type, 0);
	m->sim = m->s->sim;
	m->hook.fn = meddle;
	m->hook.data = m;
	return m;
}

/* The NMI has come, and its overflow was reported. */
static void expect_meddled(struct kunit *test, struct meddler *m)
{
	KUNIT_EXPECT_EQ(test, m->ret, 0);
	KUNIT_EXPECT_EQ(test, m->counted, PERIOD);
	KUNIT_EXPECT_EQ(test, told(m->s), 1);
}

/*
 * The overflow in the NMI masks the context. The counter of the other PMU is paused as soon as that
 * PMU has been programmed. The PMU serves the counter's own pending overflow before that, without a
 * report, because the context is masked already.
 */
static void masked_before_another_pmu_is_paused(struct kunit *test)
{
	struct meddler *m = new_meddler(test, PERF_SAMPLE_CPU);
	const struct pmuk_attr attr = { .type = pmuk_sim_type(m->other), .config = 1 };
	struct sampler *s = m->s;

	/* Pinned, the counter stays on the PMU when an event that is not pinned comes. */
	pmuk_ctx_add(test, s->ctx, m->other, 0, 1, 0,
		     PMUK_PINNED | PMUK_PRIVATE | PMUK_NO_THROTTLE);
	pmuk_ctx_write_pmd(test, s->ctx, &notify1);
	start_sampler(test, s, 1, &notify);
	KUNIT_EXPECT_EQ(test, pmuk_sim_advance(m->other, 0, PERIOD), PERIOD);

	pmuk_sim_set_hook(m->other, &m->hook);
	pmuk_test_enabled(test, &attr, s->cpu, NULL);
	pmuk_sim_set_hook(m->other, NULL);
	expect_meddled(test, m);
	expect_records(test, s, 1);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(m->other, 0, 5), 0);
	expect_count(test, s, 1, PERIOD);

	KUNIT_EXPECT_EQ(test, pmuk_restart(s->ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(m->other, 0, 2 * PERIOD), PERIOD);
	KUNIT_EXPECT_EQ(test, told(s), 1);
	expect_count(test, s, 0, PERIOD + 5);
	expect_count(test, s, 1, 2 * PERIOD);
}

/*
 * The NMI of one PMU masks the task's context while the other PMU is being reprogrammed. The task
 * then leaves the CPU before the irq_work that would pause the other PMU's counter: interrupts
 * stay off until another task runs.
 */
static void mask_and_leave(struct pmuk_place *p)
{
	struct meddler *m = p->data;

	local_irq_disable();
	perf_pmu_disabled(m->busy)++;
	m->ret = pmuk_irq_run(PMUK_IRQ_NMI, overflow_here, m);
	perf_pmu_disabled(m->busy)--;
	__set_current_state(TASK_UNINTERRUPTIBLE);
	schedule_timeout(1);
}

/* Returns whether counter @num counts an event of the task. */
static bool counts_in_task(struct kunit *test, struct sampler *s, struct pmuk_place *p, u16 num)
{
	u64 before = pmuk_ctx_count(test, s->ctx, 0, num, -1);

	pmuk_place_by_tasks(p, num, 1, pmuk_place_count_here);
	return pmuk_ctx_count(test, s->ctx, 0, num, -1) != before;
}

/* The irq_work finds that the task has left the CPU. Then a worker stops the counter. */
static void mask_reaches_a_task_that_has_left(struct kunit *test)
{
	struct meddler *m = new_meddler(test, 0);
	const struct pmuk_attr attr = { .type = pmuk_sim_type(m->other) };
	struct pmuk_place *p = pmuk_new_place(test, m->other, PMUK_TARGET_TASK);
	struct sampler *s = m->s;

	p->data = m;
	m->busy = pmuk_test_counter(test, &attr, s->cpu, NULL)->event->pmu;
	pmuk_ctx_add_pmd(test, s->ctx, s->sim, 0, &notify);
	pmuk_ctx_add(test, s->ctx, m->other, 0, 1, 1, PMUK_NO_THROTTLE);
	pmuk_place_run(p, s->ctx);
	pmuk_place_tell(p, mask_and_leave);
	expect_meddled(test, m);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(!counts_in_task(test, s, p, 1)));

	KUNIT_EXPECT_EQ(test, pmuk_restart(s->ctx), 0);
	KUNIT_EXPECT_TRUE(test, counts_in_task(test, s, p, 1));
}

#define RANDOM_MASK	0x3f

static void expect_random(struct kunit *test, u64 period)
{
	KUNIT_EXPECT_GE(test, period, PERIOD);
	KUNIT_EXPECT_LE(test, period, PERIOD + RANDOM_MASK);
}

/* The seed determines the periods. They stay within the mask, and add up to the count. */
static void random_periods(struct kunit *test)
{
	const struct pmuk_pmd pmd = { .short_reset = PERIOD, .random_mask = RANDOM_MASK,
				      .random_seed = 42, .flags = PMUK_PMD_NOTIFY };
	struct sampler *s = new_sampler(test, buffered, PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ, 0);
	unsigned int i, n, different = 0;
	u64 sum = 0;

	start_sampler(test, s, 1, &pmd);
	feed(test, s, 0, 5 * (PERIOD + RANDOM_MASK));
	n = take(test, s, s->cpu, NULL);
	KUNIT_ASSERT_GE(test, n, 5);
	KUNIT_ASSERT_LE(test, n, MANY);
	for (i = 0; i < n; i++) {
		sum += s->p[i].period;
		expect_random(test, s->p[i].period);
		KUNIT_EXPECT_EQ(test, s->p[i].values[0], sum);
		different += s->p[i].period != s->p[0].period;
	}
	KUNIT_EXPECT_GT(test, different, 0);
	KUNIT_EXPECT_EQ(test, told(s), n);
}

#define SEQUENCE	5		/* number of compared periods, at most MANY */

/* Returns a context with random periods of counter 0, to be loaded on @p. */
static struct sampler *new_random(struct pmuk_place *p, u64 seed)
{
	const struct pmuk_pmd pmd = { .short_reset = PERIOD, .random_mask = RANDOM_MASK,
				      .random_seed = seed };
	struct sampler *s = new_sampler_on(p->test, p->sim, buffered, PERF_SAMPLE_PERIOD, 0);

	pmuk_ctx_add_pmd(p->test, s->ctx, p->sim, 0, &pmd);
	return s;
}

/* Returns how many periods on @cpu equal those in @wanted. The first CPU fills @wanted. */
static unsigned int compare_periods(struct pmuk_place *p, struct sampler *s, int cpu, u64 *wanted)
{
	unsigned int i, same = 0, n = take(p->test, s, cpu, NULL);

	KUNIT_EXPECT_GE(p->test, n, SEQUENCE);
	KUNIT_EXPECT_LE(p->test, n, MANY);
	for (i = 0; i < SEQUENCE; i++) {
		wanted[i] = wanted[i] ?: s->p[i].period;
		same += s->p[i].period == wanted[i];
		expect_random(p->test, s->p[i].period);
	}
	return same;
}

/*
 * Loads, runs and unloads the context. Returns how many periods agree with @wanted on the first
 * CPU, or 0 if another CPU has a different number.
 */
static unsigned int run_random(struct pmuk_place *p, struct sampler *s, u64 *wanted)
{
	unsigned int same;
	int cpu;

	pmuk_place_run(p, s->ctx);
	pmuk_place_feed(p, 0, SEQUENCE * (PERIOD + RANDOM_MASK));
	KUNIT_EXPECT_EQ(p->test, pmuk_unload_context(s->ctx), 0);
	same = compare_periods(p, s, p->cpu, wanted);
	if (p->target.type != PMUK_TARGET_CPUS)
		return same;
	for_each_online_cpu(cpu) {
		if (cpu != p->cpu && compare_periods(p, s, cpu, wanted) != same)
			return 0;
	}
	return same;
}

/*
 * Each of two contexts with the same seed runs twice, with an unload in between. Each run has the
 * same periods.
 */
static void seed_makes_periods(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	u64 wanted[SEQUENCE] = {}, others[SEQUENCE] = {};
	struct sampler *s;
	unsigned int i;

	if (p->target.type == PMUK_TARGET_TREE)
		kunit_skip(test, "children's periods are not random");
	for (i = 0; i < 4; i++) {
		if (i % 2 == 0)
			s = new_random(p, 42);
		KUNIT_EXPECT_EQ(test, run_random(p, s, wanted), SEQUENCE);
		if (i % 2)
			kunit_release_action(test, pmuk_ctx_put, s->ctx);
	}
	s = new_random(p, 43);
	KUNIT_EXPECT_EQ(test, run_random(p, s, others), SEQUENCE);
	KUNIT_EXPECT_NE(test, memcmp(wanted, others, sizeof(wanted)), 0);
	kunit_release_action(test, pmuk_ctx_put, s->ctx);
}

/* ---- nothing is lost uncounted ---- */

/*
 * Each CPU gets another number of records, more than fit. A record that was not read is counted as
 * lost.
 */
static void overflows_are_records_or_lost(struct kunit *test)
{
	struct sampler *s = new_sampler(test, buffered, PERF_SAMPLE_CPU | PERF_SAMPLE_TIME |
					PERF_SAMPLE_ID | PERF_SAMPLE_PERIOD, 0);
	struct pmuk_buffer_stat stat;
	u64 all = 0, lost, nr;
	unsigned int got;
	int cpu;

	s->cpu = -1;
	start_sampler(test, s, 1, &notify);
	for_each_online_cpu(cpu) {
		nr = PAGE_SIZE / 40 + 30 * (cpu + 1);
		KUNIT_EXPECT_EQ(test, pmuk_ctx_feed(s->sim, cpu, 0, nr * PERIOD), nr * PERIOD);
		got = take(test, s, cpu, NULL);
		KUNIT_EXPECT_EQ(test, s->p[0].cpu, cpu);
		KUNIT_EXPECT_EQ(test, pmuk_ctx_feed(s->sim, cpu, 0, PERIOD), PERIOD);
		all += nr + 1;
		lost = 0;
		got += take(test, s, cpu, &lost);
		stat = pmuk_ctx_stat(test, s->ctx, cpu);
		KUNIT_EXPECT_EQ(test, stat.lost, lost);
		KUNIT_EXPECT_EQ(test, stat.discarded, 0);
		KUNIT_EXPECT_EQ(test, got + lost, nr + 1);
		KUNIT_EXPECT_GT(test, lost, 0);
	}
	KUNIT_EXPECT_EQ(test, told(s), all);
	expect_count(test, s, 0, all * PERIOD);
}

/* A buffer that stops when it is full takes records again after a restart, and counts go on. */
static void restart_restarts_buffers(struct kunit *test)
{
	const struct pmuk_context_attr stopping = {
		.buffer = { .nr_pages = 1, .mode = PMUK_BUFFER_STOP } };
	struct sampler *s = new_sampler(test, stopping, PERF_SAMPLE_TIME, 0);
	unsigned int fits = PAGE_SIZE / 16;
	u64 lost = 0;

	start_sampler(test, s, 1, &plain);
	feed(test, s, 0, (fits + 10) * PERIOD);
	expect_records(test, s, fits);
	feed(test, s, 0, 5 * PERIOD);
	expect_records(test, s, 0);
	KUNIT_EXPECT_EQ(test, pmuk_restart(s->ctx), 0);
	feed(test, s, 0, 5 * PERIOD);
	KUNIT_EXPECT_EQ(test, take(test, s, s->cpu, &lost), 5);
	KUNIT_EXPECT_EQ(test, lost, 15);
	expect_count(test, s, 0, (fits + 20) * PERIOD);
}

/* Records stay when the context is unloaded, and more are added when it is loaded again. */
static void buffers_stay_while_unloaded(struct kunit *test)
{
	struct sampler *s = new_sampler(test, buffered, PERF_SAMPLE_CPU, 0);
	struct pmuk_buffer *b;

	start_sampler(test, s, 1, &plain);
	b = pmuk_context_buffer(s->ctx, s->cpu);
	feed(test, s, 0, 3 * PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(s->ctx), 0);
	KUNIT_EXPECT_PTR_EQ(test, pmuk_context_buffer(s->ctx, s->cpu), b);
	pmuk_ctx_run(test, s->ctx, -1);
	KUNIT_EXPECT_PTR_EQ(test, pmuk_context_buffer(s->ctx, s->cpu), b);
	feed(test, s, 0, 2 * PERIOD);
	expect_records(test, s, 5);
}

KUNIT_ARRAY_PARAM_DESC(places, pmuk_place_kinds, name);

static struct kunit_case pmuk_context_overflow_cases[] = {
	KUNIT_CASE(records_hold_what_was_asked_for),
	KUNIT_CASE(records_go_on_after_a_stop),
	KUNIT_CASE(sample_peers_are_in_records),
	KUNIT_CASE(sample_peers_need_a_group),
	KUNIT_CASE(reset_peers_begin_again),
	KUNIT_CASE(reset_peers_that_wait_have_not_overflowed),
	KUNIT_CASE(masked_until_restart),
	KUNIT_CASE(clock_periods_are_whole),
	KUNIT_CASE(masked_by_those_that_notify),
	KUNIT_CASE(masked_with_another_overflow),
	KUNIT_CASE_SLOW(masked_before_it_is_told),
	KUNIT_CASE_SLOW(restart_meets_overflows),
	KUNIT_CASE(masked_until_started_again),
	KUNIT_CASE(masked_one_cpu_at_a_time),
	KUNIT_CASE(masked_before_another_pmu_is_paused),
	KUNIT_CASE(mask_reaches_a_task_that_has_left),
	KUNIT_CASE(random_periods),
	KUNIT_CASE_PARAM(seed_makes_periods, places_gen_params),
	KUNIT_CASE(overflows_are_records_or_lost),
	KUNIT_CASE(restart_restarts_buffers),
	KUNIT_CASE(restart_of_one_cpu),
	KUNIT_CASE(buffers_stay_while_unloaded),
	{}
};

PMUK_SUITE(pmuk_context_overflow, pmuk_test_init,
	   "KUnit tests of pmuk's contexts: overflows and records");
