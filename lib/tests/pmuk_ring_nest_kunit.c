// SPDX-License-Identifier: GPL-2.0
/*
 * Each writer is interrupted between reserving and publishing its record, by writers of higher
 * contexts, which are interrupted themselves. Readers on another CPU read meanwhile, stall, or end
 * half way.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/prandom.h>

#include "pmuk_records.h"
#include "pmuk_suite.h"

#define NESTINGS	1000
#define DEPTHS		PMUK_IRQ_LEVELS

struct nest {
	struct pmuk_test_buffer *tb;
	struct kunit *test;
	const enum pmuk_irq_level *levels;	/* from the outermost to the innermost */
	unsigned int nr_levels;
	const u8 *data;
	size_t size;
	struct rnd_state rnd;
	bool overwrites;

	unsigned int depth;		/* index of the running writer's level */
	unsigned int open;		/* records reserved and not published */
	u64 sealed;			/* published head when the outermost record was reserved */
	struct pmuk_reader *reader;	/* a reader that has read all, or NULL */
	bool big;			/* inner records have no room this time */

	unsigned int nested[DEPTHS];	/* records inside of others, by depth */
	unsigned int watched;		/* runs with a reader that checks */
	unsigned int wrapped;		/* records that wrap around the end of the data */
	u64 refused;
	u64 untold;			/* refused since the latest record */
	u64 told;			/* PERF_RECORD_LOST that were written */
	unsigned int wrong;		/* number of failed checks */
};

static u32 nest_size(struct nest *n)
{
	if (n->big)
		return n->depth ? n->size / 2 : n->size / 4 * 3;
	return PMUK_RECORD_MIN + 8 * (prandom_u32_state(&n->rnd) % 24);
}

/* Returns the published head, which statistics and control page must agree on. */
static u64 nest_seen(struct nest *n)
{
	struct pmuk_buffer_stat stat;

	pmuk_buffer_get_stat(n->tb->b, &stat);
	n->wrong += pmuk_buffer_control(n->tb->b)->data_head != stat.head;
	return stat.head;
}

static struct perf_event_header *nest_begin(struct nest *n)
{
	u32 size = nest_size(n);
	struct perf_event_header *rec = pmuk_output_begin(n->tb->b, PMUK_TEST_RECORD, size);

	n->tb->attempts++;
	if (!rec) {
		n->refused++;
		n->untold++;
		return NULL;
	}
	n->told += n->untold != 0;
	n->untold = 0;
	n->wrapped += (u8 *)rec + size > n->data + n->size;
	pmuk_test_number(n->tb, rec);
	if (!n->open++)
		n->sealed = nest_seen(n);
	return rec;
}

/*
 * Publishes a record. The end of the outermost record publishes all, and no other end publishes
 * anything.
 */
static void nest_end(struct nest *n, struct perf_event_header *rec)
{
	bool inside = n->open > 1;

	pmuk_test_fill_rest(rec);
	n->wrong += nest_seen(n) != n->sealed;
	n->nested[n->depth] += inside;
	pmuk_output_end(n->tb->b, rec);
	n->open--;
	if (inside)
		n->wrong += nest_seen(n) != n->sealed;
	else
		n->wrong += nest_seen(n) < n->sealed + rec->size;
	if (n->reader)
		n->wrong += inside == !!pmuk_buffer_peek(n->reader);
}

static void nest_write(void *data)
{
	struct nest *n = data;
	struct perf_event_header *rec = nest_begin(n);
	unsigned int times = n->depth + 1 < n->nr_levels ? 1 + prandom_u32_state(&n->rnd) % 2 : 0;

	n->depth++;
	while (times--)
		n->wrong += pmuk_irq_run(n->levels[n->depth], nest_write, n) != 0;
	n->depth--;
	if (rec)
		nest_end(n, rec);
}

static void nest_once(struct nest *n)
{
	n->big = prandom_u32_state(&n->rnd) % 8 == 0;
	guard(preempt)();
	nest_write(n);
}

static struct nest *new_nest(struct kunit *test, enum pmuk_buffer_mode mode,
			     const enum pmuk_irq_level *levels, unsigned int nr_levels)
{
	const struct pmuk_buffer_attr attr = { .nr_pages = 1, .mode = mode };
	struct nest *n = pmuk_test_zalloc(test, sizeof(*n));

	pmuk_test_need_level(test, levels[nr_levels - 1]);
	n->test = test;
	n->levels = levels;
	n->nr_levels = nr_levels;
	n->overwrites = mode == PMUK_BUFFER_OVERWRITE;
	n->tb = pmuk_test_setup_buffer(test, &attr);
	n->data = pmuk_buffer_data(n->tb->b, &n->size);
	prandom_seed_state(&n->rnd, 4711);
	return n;
}

/* Returns how often writers have nested. Each level counts up to NESTINGS. */
static u64 nest_times(const struct nest *n)
{
	unsigned int i;
	u64 times = 0;

	for (i = 1; i < n->nr_levels; i++)
		times += min(n->nested[i], NESTINGS);
	return times;
}

static bool nest_enough(const struct nest *n)
{
	return nest_times(n) == (n->nr_levels - 1) * NESTINGS;
}

/* Reads up to the latest record. A gap is allowed only where records may have been overwritten. */
static void nest_drain(struct nest *n)
{
	if (n->overwrites)
		pmuk_buffer_pause(n->tb->b);
	n->tb->gap_is_fine = n->overwrites;
	pmuk_test_drain(n->tb);
	KUNIT_EXPECT_EQ(n->test, n->tb->next, n->tb->number);
	if (n->overwrites)
		KUNIT_EXPECT_EQ(n->test, pmuk_buffer_resume(n->tb->b), 0);
}

/*
 * Nests once with a reader that has read all records. A record before that reports earlier losses.
 */
static void nest_watched(struct nest *n)
{
	struct pmuk_reader r;

	n->big = false;
	scoped_guard(preempt)
		nest_end(n, nest_begin(n));
	nest_drain(n);
	KUNIT_ASSERT_EQ(n->test, pmuk_buffer_claim(n->tb->b, &r), 0);
	n->reader = &r;
	nest_once(n);
	n->reader = NULL;
	pmuk_buffer_release(&r);
	n->watched++;
}

static void nest_often(struct nest *n)
{
	unsigned int i;

	for (i = 0; i < 50 * NESTINGS && !nest_enough(n); i++) {
		nest_once(n);
		if (prandom_u32_state(&n->rnd) % 8)
			continue;
		nest_drain(n);
		if (!n->overwrites)
			nest_watched(n);
		cond_resched();
	}
}

/*
 * Checks that writers have nested at all, and that pmuk's counts and records agree with the test's.
 */
static void nest_judge(struct nest *n)
{
	struct kunit *test = n->test;
	struct pmuk_buffer_stat stat = pmuk_test_stat(n->tb);

	KUNIT_EXPECT_EQ(test, n->wrong, 0);
	KUNIT_EXPECT_EQ(test, n->tb->bad, 0);
	KUNIT_EXPECT_TRUE_MSG(test, nest_enough(n), "too seldom: %u %u %u",
			      n->nested[1], n->nested[2], n->nested[3]);
	KUNIT_EXPECT_GT_MSG(test, n->wrapped, 0, "never wrapped");
	KUNIT_EXPECT_GT_MSG(test, n->refused, 0, "never full");
	KUNIT_EXPECT_GT_MSG(test, n->tb->seen_told, 0, "no loss was told");
	KUNIT_EXPECT_EQ(test, stat.lost, n->refused);
	KUNIT_EXPECT_EQ(test, stat.discarded, 0);
	KUNIT_EXPECT_EQ(test, stat.overwritten > 0, n->overwrites);
	if (!n->overwrites) {
		KUNIT_EXPECT_EQ(test, n->tb->seen_told, n->told);
		KUNIT_EXPECT_EQ(test, n->tb->seen_lost + n->untold, n->refused);
	}
	/* A record of pmuk's own may have been overwritten unread. */
	n->tb->seen_told = n->told;
}

static void run_nest(struct kunit *test, enum pmuk_buffer_mode mode,
		     const enum pmuk_irq_level *levels, unsigned int nr_levels)
{
	struct nest *n = new_nest(test, mode, levels, nr_levels);

	nest_often(n);
	KUNIT_EXPECT_EQ(test, n->watched > 10, !n->overwrites);
	nest_drain(n);
	nest_judge(n);
}

/* Each combination of contexts is a case for each of two modes. */
#define NEST_CASES(name, ...)								\
	static const enum pmuk_irq_level name##_levels[] = { PMUK_IRQ_TASK, __VA_ARGS__ };	\
	static void name##_drop(struct kunit *test)					\
	{										\
		run_nest(test, PMUK_BUFFER_DROP, name##_levels, ARRAY_SIZE(name##_levels));	\
	}										\
	static void name##_overwrite(struct kunit *test)				\
	{										\
		run_nest(test, PMUK_BUFFER_OVERWRITE, name##_levels, ARRAY_SIZE(name##_levels)); \
	}

NEST_CASES(in_softirq, PMUK_IRQ_SOFT)
NEST_CASES(in_hardirq, PMUK_IRQ_HARD)
NEST_CASES(in_nmi, PMUK_IRQ_NMI)
NEST_CASES(in_hardirq_in_softirq, PMUK_IRQ_SOFT, PMUK_IRQ_HARD)
NEST_CASES(in_nmi_in_softirq, PMUK_IRQ_SOFT, PMUK_IRQ_NMI)
NEST_CASES(in_nmi_in_hardirq, PMUK_IRQ_HARD, PMUK_IRQ_NMI)
NEST_CASES(in_all, PMUK_IRQ_SOFT, PMUK_IRQ_HARD, PMUK_IRQ_NMI)

/* Returns a nest that is as deep as this machine allows. */
static struct nest *new_deepest(struct kunit *test)
{
	return new_nest(test, PMUK_BUFFER_DROP, in_all_levels,
			ARRAY_SIZE(in_all_levels) - !pmuk_test_try_nmi(test));
}

struct readers {
	struct nest *nest;
	unsigned int read;	/* records read while others were written */
	unsigned int stalls;	/* stalls with a record held */
	unsigned int ends;	/* readers that ended before the last record */
	unsigned int wrong;
};

/* A record that the reader holds does not change, whatever writers do meanwhile. */
static void reader_stall(struct readers *rs, const struct perf_event_header *rec)
{
	u64 lost = pmuk_test_stat(rs->nest->tb).lost;
	unsigned int ms;

	for (ms = 0; ms < 1000 && !kthread_should_stop(); ms++) {
		usleep_range(500, 1000);
		if (pmuk_test_stat(rs->nest->tb).lost != lost)
			break;
	}
	rs->wrong += rec->type == PMUK_TEST_RECORD && !pmuk_test_is_whole(rec);
	WRITE_ONCE(rs->stalls, rs->stalls + (pmuk_test_stat(rs->nest->tb).lost != lost));
}

/*
 * Reads up to @most records, and stalls at the last one if @stall. The record after it is not
 * consumed.
 */
static void reader_read(struct readers *rs, unsigned int most, bool stall)
{
	const struct perf_event_header *rec;
	struct pmuk_reader r;

	if (pmuk_buffer_claim(rs->nest->tb->b, &r)) {
		rs->wrong++;
		return;
	}
	pmuk_for_each_record(rec, &r) {
		if (!most--) {
			WRITE_ONCE(rs->ends, rs->ends + 1);
			break;
		}
		if (!most && stall)
			reader_stall(rs, rec);
		if (pmuk_test_look(rs->nest->tb, rec))
			WRITE_ONCE(rs->read, rs->read + 1);
	}
	pmuk_buffer_release(&r);
}

static void reader_reads(void *data)
{
	reader_read(data, UINT_MAX, false);
}

static void reader_stalls(void *data)
{
	reader_read(data, 20, true);
}

/* Ends before the last record. Other readers come after it. */
static int reader_dies(void *data)
{
	reader_read(data, 7, false);
	return pmuk_test_wait_for_stop();
}

/* Returns another CPU if there is one, or else this CPU. */
static int reader_cpu(void)
{
	return pmuk_test_next_cpu(raw_smp_processor_id());
}

static struct readers *new_readers(struct kunit *test)
{
	struct readers *rs = pmuk_test_zalloc(test, sizeof(*rs));

	rs->nest = new_deepest(test);
	return rs;
}

static void readers_judge(struct readers *rs)
{
	KUNIT_EXPECT_EQ(rs->nest->test, rs->wrong, 0);
	nest_drain(rs->nest);
	nest_judge(rs->nest);
}

#define ENOUGH_READ	5000
#define ENOUGH_STALLS	20
#define ENOUGH_ENDS	100

/* Writes while another CPU calls @fn, until *@seen is @enough, or nothing goes on. */
static void write_until(struct readers *rs, void (*fn)(void *data), const unsigned int *seen,
			unsigned int enough)
{
	struct pmuk_loop *loop = pmuk_loop_start(rs->nest->test, reader_cpu(), fn, rs);
	struct pmuk_test_progress progress = {};
	unsigned int now = 0;

	while ((now < enough || !nest_enough(rs->nest)) &&
	       pmuk_test_goes_on(&progress, now + nest_times(rs->nest))) {
		now = min(READ_ONCE(*seen), enough);
		nest_once(rs->nest);
		cond_resched();
	}
	pmuk_loop_stop(rs->nest->test, loop);
	KUNIT_EXPECT_GE(rs->nest->test, *seen, enough);
	readers_judge(rs);
}

static void reads_and_nests(struct kunit *test)
{
	struct readers *rs = new_readers(test);

	write_until(rs, reader_reads, &rs->read, ENOUGH_READ);
}

static void stalled_reader_keeps_its_record(struct kunit *test)
{
	struct readers *rs = new_readers(test);

	write_until(rs, reader_stalls, &rs->stalls, ENOUGH_STALLS);
}

static void next_reader_goes_on(struct kunit *test)
{
	struct readers *rs = new_readers(test);
	struct task_struct *task;
	unsigned int i;

	for (i = 0; i < 10 * ENOUGH_ENDS && rs->ends < ENOUGH_ENDS; i++) {
		unsigned int before = rs->ends;
		unsigned long end = jiffies + HZ;

		task = pmuk_test_thread(test, reader_cpu(), reader_dies, rs);
		do {
			nest_once(rs->nest);
			cond_resched();
		} while (READ_ONCE(rs->ends) == before && time_before(jiffies, end));
		kthread_stop(task);
	}
	nest_often(rs->nest);
	KUNIT_EXPECT_GE(test, rs->ends, ENOUGH_ENDS);
	readers_judge(rs);
}

static struct kunit_case pmuk_ring_nest_cases[] = {
	KUNIT_CASE_SLOW(in_softirq_drop),
	KUNIT_CASE_SLOW(in_softirq_overwrite),
	KUNIT_CASE_SLOW(in_hardirq_drop),
	KUNIT_CASE_SLOW(in_hardirq_overwrite),
	KUNIT_CASE_SLOW(in_nmi_drop),
	KUNIT_CASE_SLOW(in_nmi_overwrite),
	KUNIT_CASE_SLOW(in_hardirq_in_softirq_drop),
	KUNIT_CASE_SLOW(in_hardirq_in_softirq_overwrite),
	KUNIT_CASE_SLOW(in_nmi_in_softirq_drop),
	KUNIT_CASE_SLOW(in_nmi_in_softirq_overwrite),
	KUNIT_CASE_SLOW(in_nmi_in_hardirq_drop),
	KUNIT_CASE_SLOW(in_nmi_in_hardirq_overwrite),
	KUNIT_CASE_SLOW(in_all_drop),
	KUNIT_CASE_SLOW(in_all_overwrite),
	KUNIT_CASE_SLOW(reads_and_nests),
	KUNIT_CASE_SLOW(stalled_reader_keeps_its_record),
	KUNIT_CASE_SLOW(next_reader_goes_on),
	{}
};

PMUK_SUITE(pmuk_ring_nest, pmuk_test_init, "KUnit tests of pmuk's record ring, in any nesting");
