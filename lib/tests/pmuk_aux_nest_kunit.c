// SPDX-License-Identifier: GPL-2.0
/*
 * Interrupts of each level come while an AUX area is open. They try to write, lose, skip, pause,
 * write records, read, and end parts that others have begun. Interrupts from another CPU come at
 * any instruction.
 */
#include <linux/smp.h>

#include "pmuk_aux.h"
#include "pmuk_suite.h"

#define NESTINGS	1000

struct nest {
	struct pmuk_test_aux *a;
	enum pmuk_irq_level level;
	void (*fn)(struct nest *n);	/* the interrupt calls this */
	struct pmuk_aux_handle h;	/* the interrupted writer's handle */
	struct rnd_state rnd;
	unsigned int interrupts;
	unsigned int misplaced;		/* interrupts in another context than expected */
	u64 refused;			/* number of begins that have returned NULL */
	u64 written;			/* bytes, by the task and by interrupts */
	u64 lost;			/* bytes that interrupts have lost */
	u64 losses;
	int ret;
	unsigned int wrong;		/* results that must not be */
};

static struct nest *nest_of(struct kunit *test, enum pmuk_irq_level level,
			    const struct pmuk_buffer_attr *attr)
{
	struct nest *n = pmuk_test_zalloc(test, sizeof(*n));

	pmuk_test_need_level(test, level);
	n->a = pmuk_test_new_aux(test, attr);
	n->level = level;
	prandom_seed_state(&n->rnd, 4711);
	return n;
}

static const struct pmuk_buffer_attr small = { .nr_pages = 1, .aux.nr_pages = 1 };

/* Returns a nest whose interrupts come in the context that the case is named after. */
static struct nest *new_nest(struct kunit *test)
{
	return nest_of(test, pmuk_test_level_case(test), &small);
}

/* Runs in the context that the case is named after. */
static void come(void *data)
{
	struct nest *n = data;

	n->interrupts++;
	n->misplaced += !pmuk_irq_is(n->level);
	n->fn(n);
}

/* Calls @fn in the context that the case is named after. */
static void interrupt(struct nest *n, void (*fn)(struct nest *n))
{
	n->fn = fn;
	KUNIT_ASSERT_EQ(n->a->test, pmuk_irq_run(n->level, come, n), 0);
}

static u64 some(struct nest *n, u64 most)
{
	return prandom_u32_state(&n->rnd) % (most + 1);
}

/* In NMI no KUnit expectation may be used, so errors are counted. */
static u64 published(struct nest *n)
{
	struct pmuk_aux_stat stat = {};

	n->wrong += pmuk_aux_get_stat(n->a->b, &stat) != 0;
	return stat.head;
}

/* The task writes half of a part before the interrupt, and the other half after it. */
static void write_around(struct nest *n, void (*fn)(struct nest *n))
{
	u64 size = some(n, min(n->h.size, 200)), half = size / 2;

	pmuk_test_aux_fill(n->a, n->h.data, n->h.head, half);
	interrupt(n, fn);
	pmuk_test_aux_fill(n->a, n->h.data + half, n->h.head + half, size - half);
	pmuk_test_aux_end(&n->h, size);
	n->written += size;
}

/* The next record reports the bytes written since @before, if there are any or if flags are set. */
static void expect_told(struct nest *n, u64 before, u64 flags)
{
	if (n->written != before || flags)
		KUNIT_ASSERT_TRUE(n->a->test, pmuk_test_aux_told(n->a, before,
								 n->written - before, flags));
}

static void judge(struct nest *n)
{
	struct kunit *test = n->a->test;
	struct pmuk_aux_stat stat = pmuk_test_aux_stat(n->a);

	KUNIT_EXPECT_EQ(test, n->wrong, 0);
	KUNIT_EXPECT_EQ(test, n->misplaced, 0);
	KUNIT_EXPECT_GE(test, n->interrupts, NESTINGS);
	KUNIT_EXPECT_EQ(test, stat.nested + stat.discarded + stat.full, n->refused);
	KUNIT_EXPECT_EQ(test, stat.head, n->written);
	KUNIT_EXPECT_EQ(test, stat.truncated, n->lost);
	KUNIT_EXPECT_EQ(test, stat.truncations, n->losses);
}

/* ---- writers ---- */

/* Begin fails, and so do calls with the handle that was not begun. */
static void try_to_write(struct nest *n)
{
	struct pmuk_aux_handle h;

	n->refused++;
	n->wrong += !!pmuk_aux_output_begin(&h, n->a->b);
	n->wrong += !!pmuk_get_aux(&h);
	n->wrong += pmuk_aux_output_skip(&h, 8) != -EINVAL;
	pmuk_aux_output_flag(&h, PERF_AUX_FLAG_COLLISION);
	pmuk_aux_output_end(&h, 8);
}

static void nested_writers_are_refused(struct kunit *test)
{
	struct nest *n = new_nest(test);
	unsigned int i;
	u64 before;

	for (i = 0; i < NESTINGS; i++) {
		before = n->written;
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(n->a, &n->h));
		write_around(n, try_to_write);
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_drain(n->a), n->written - before);
		expect_told(n, before, 0);
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_told_nothing(n->a));
	}
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(n->a).nested, NESTINGS);
	KUNIT_EXPECT_EQ(test, n->a->flags, 0);
	judge(n);
}

static void write_now(struct nest *n)
{
	u64 size = some(n, 200);

	if (pmuk_test_aux_write(n->a, size))
		n->written += size;
	else
		n->refused++;
}

/* Writers of all contexts take turns, as long as each begins after the last one's end. */
static void writers_of_any_context_take_turns(struct kunit *test)
{
	struct nest *n = new_nest(test);
	unsigned int i;

	for (i = 0; i < NESTINGS; i++) {
		interrupt(n, write_now);
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(n->a, &n->h));
		KUNIT_ASSERT_EQ(test, n->h.head, n->written);
		write_around(n, try_to_write);
		interrupt(n, write_now);
		pmuk_test_aux_drain(n->a);
		KUNIT_ASSERT_EQ(test, n->a->next, n->written);
	}
	judge(n);
}

static void begin_here(struct nest *n)
{
	n->wrong += !pmuk_test_aux_begin(n->a, &n->h);
}

static void end_here(struct nest *n)
{
	u64 size = some(n, min(n->h.size, 200));

	pmuk_test_aux_finish(n->a, &n->h, size);
	n->written += size;
}

/* A task begins a part, as it starts hardware, and an interrupt ends the part; or vice versa. */
static void what_begins_here_ends_there(struct kunit *test)
{
	struct nest *n = new_nest(test);
	unsigned int i;

	for (i = 0; i < NESTINGS; i++) {
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(n->a, &n->h));
		interrupt(n, end_here);
		KUNIT_ASSERT_NULL(test, pmuk_get_aux(&n->h));
		interrupt(n, begin_here);
		KUNIT_ASSERT_NOT_NULL(test, pmuk_get_aux(&n->h));
		interrupt(n, end_here);
		interrupt(n, begin_here);
		pmuk_test_aux_end(&n->h, 0);
		pmuk_test_aux_drain(n->a);
		KUNIT_ASSERT_EQ(test, n->a->next, n->written);
	}
	judge(n);
}

static void skip_here(struct nest *n)
{
	u64 pad = -n->h.head & 63;

	n->wrong += pmuk_aux_output_skip(&n->h, pad) != 0;
	n->wrong += n->h.head % 64 != 0;
	n->wrong += published(n) != n->h.head;
	pmuk_test_aux_fill(n->a, n->h.data, n->h.head, 40);
	n->written = n->h.head + 40;
}

/* The outer writer goes on behind the bytes that an interrupt has skipped. */
static void interrupts_skip_for_the_writer(struct kunit *test)
{
	struct nest *n = new_nest(test);
	unsigned int i;

	for (i = 0; i < NESTINGS; i++) {
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(n->a, &n->h));
		interrupt(n, skip_here);
		pmuk_test_aux_end(&n->h, 40);
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_has(n->a, 64 * i, 40));
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_told(n->a, 64 * i, 40, 0));
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_give_back(test, n->a->b));
	}
	judge(n);
}

static void lose_some(struct nest *n)
{
	u64 bytes = some(n, 1000);

	pmuk_aux_output_lose(n->a->b, bytes);
	n->lost += bytes;
	n->losses++;
}

/* The next record reports a loss, once. */
static void losses_of_interrupts_are_told(struct kunit *test)
{
	struct nest *n = new_nest(test);
	unsigned int i;

	for (i = 0; i < NESTINGS; i++) {
		u64 before = n->written;

		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(n->a, &n->h));
		write_around(n, lose_some);
		expect_told(n, before, PERF_AUX_FLAG_TRUNCATED);
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_write(n->a, 10));
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_told(n->a, n->written, 10, 0));
		n->written += 10;
		pmuk_test_aux_drain(n->a);
		KUNIT_ASSERT_EQ(test, n->a->flags, PERF_AUX_FLAG_TRUNCATED);
		n->a->flags = 0;
	}
	judge(n);
}

/* ---- pause ---- */

static void pause_here(struct nest *n)
{
	struct pmuk_aux_reader r;

	n->wrong += pmuk_aux_pause(n->a->b) != 0;
	n->wrong += pmuk_aux_claim(n->a->b, &r) != -EBUSY;
}

static void resume_here(struct nest *n)
{
	n->wrong += pmuk_aux_resume(n->a->b) != 0;
}

/*
 * The interrupted writer goes on to its end. Then any context, this one too, may take a snapshot.
 */
static void take_snapshot(struct nest *n)
{
	u64 head = published(n);

	n->a->next = max(n->a->next, head - min(head, n->a->size));
	pmuk_test_aux_drain(n->a);
	n->wrong += n->a->next != head;
}

static void interrupts_pause_and_read(struct kunit *test)
{
	struct nest *n = nest_of(test, pmuk_test_level_case(test), &(struct pmuk_buffer_attr){
		.aux = { .nr_pages = 1, .overwrite = true } });
	struct pmuk_aux_handle h;
	unsigned int i, j;

	for (i = 0; i < NESTINGS; i++) {
		for (j = some(n, 30); j; j--)
			write_now(n);
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(n->a, &n->h));
		write_around(n, pause_here);
		KUNIT_ASSERT_FALSE(test, pmuk_test_aux_begin(n->a, &h));
		n->refused++;
		interrupt(n, take_snapshot);
		KUNIT_ASSERT_FALSE(test, pmuk_test_aux_begin(n->a, &h));
		n->refused++;
		interrupt(n, resume_here);
	}
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(n->a).discarded, 2 * NESTINGS);
	judge(n);
}

/* ---- readers ---- */

/* The reader sees published bytes, and none of a part that is open. */
static void read_here(struct nest *n)
{
	pmuk_test_aux_drain(n->a);
	n->wrong += n->a->next != n->written;
}

static void interrupts_read(struct kunit *test)
{
	struct nest *n = new_nest(test);
	unsigned int i;

	for (i = 0; i < NESTINGS; i++) {
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_write(n->a, 100));
		n->written += 100;
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(n->a, &n->h));
		write_around(n, read_here);
		interrupt(n, read_here);
	}
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(n->a).tail, n->written);
	judge(n);
}

/* ---- records ---- */

static void write_record(struct nest *n)
{
	n->wrong += !pmuk_test_output(n->a->b, PMUK_AUX_OTHER, 16 + 8 * some(n, 10));
}

static void interrupts_write_records(struct kunit *test)
{
	struct nest *n = new_nest(test);
	unsigned int i;

	for (i = 0; i < NESTINGS; i++) {
		u64 before = n->written;

		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(n->a, &n->h));
		interrupt(n, write_record);
		write_around(n, write_record);
		KUNIT_ASSERT_EQ(test, pmuk_test_get_aux_record(n->a).header.type, PMUK_AUX_OTHER);
		KUNIT_ASSERT_EQ(test, pmuk_test_get_aux_record(n->a).header.type, PMUK_AUX_OTHER);
		expect_told(n, before, 0);
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_told_nothing(n->a));
		pmuk_test_aux_drain(n->a);
	}
	judge(n);
}

/* An interrupt writes a part while the task is in the middle of a record. */
static void part_inside(struct nest *n)
{
	struct perf_event_header *rec;

	guard(preempt)();
	rec = pmuk_output_begin(n->a->b, PMUK_AUX_OTHER, 64);
	if (!rec) {
		n->wrong++;
		return;
	}
	n->fn = write_now;
	n->ret = pmuk_irq_run(n->level, come, n);
	memset(rec + 1, 0, 64 - sizeof(*rec));
	pmuk_output_end(n->a->b, rec);
}

/* The part's bytes can be read at once. The record that reports them follows the open one. */
static void parts_inside_of_records_are_told(struct kunit *test)
{
	struct nest *n = new_nest(test);
	unsigned int i;

	for (i = 0; i < NESTINGS; i++) {
		u64 before = n->written;

		part_inside(n);
		KUNIT_ASSERT_EQ(test, n->ret, 0);
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_drain(n->a), n->written - before);
		KUNIT_ASSERT_EQ(test, pmuk_test_get_aux_record(n->a).header.type, PMUK_AUX_OTHER);
		expect_told(n, before, 0);
	}
	judge(n);
}

/* ---- the end ---- */

static void end_after_destroy(struct nest *n)
{
	pmuk_aux_output_flag(&n->h, PERF_AUX_FLAG_COLLISION);
	pmuk_test_aux_finish(n->a, &n->h, n->h.size);
}

/* An NMI, too, may end a part of a destroyed buffer, though an NMI must not free anything. */
static void interrupts_end_what_is_destroyed(struct kunit *test)
{
	enum pmuk_irq_level level = pmuk_test_level_case(test);
	struct pmuk_test_producer *p = pmuk_test_new_producer(test);
	const struct pmuk_buffer_attr attr = { .nr_pages = 1, .aux = {
		.nr_pages = 1, .ops = &pmuk_test_ops, .data = p } };
	unsigned int i;

	for (i = 1; i <= 20; i++) {
		struct nest *n = nest_of(test, level, &attr);

		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(n->a, &n->h));
		pmuk_test_aux_destroy(n->a);
		KUNIT_ASSERT_EQ(test, p->frees, i - 1);
		interrupt(n, end_after_destroy);
		KUNIT_ASSERT_EQ(test, n->misplaced, 0);
		KUNIT_ASSERT_TRUE(test, pmuk_test_no_buffers());
		KUNIT_ASSERT_EQ(test, p->frees, i);
	}
}

/* ---- at any instruction ---- */

struct storm {
	struct nest *n;
	int cpu;		/* the interrupted CPU */
	smp_call_func_t strike;	/* called by each interrupt */
};

/* Loses or writes bytes, in turn, at any instruction of the task. */
static void strike(void *data)
{
	struct storm *s = data;
	struct nest *n = s->n;
	u64 size = 1 + n->interrupts % 50;

	WRITE_ONCE(n->interrupts, n->interrupts + 1);
	if (n->interrupts % 3 == 0) {
		pmuk_aux_output_lose(n->a->b, size);
		n->lost += size;
		n->losses++;
	} else if (pmuk_test_aux_write(n->a, size)) {
		n->written += size;
	} else {
		n->refused++;
	}
	pmuk_test_output(n->a->b, PMUK_AUX_OTHER, 16);
}

static void strike_once(void *data)
{
	struct storm *s = data;

	smp_call_function_single(s->cpu, s->strike, s, true);
	pmuk_test_spin(20 * NSEC_PER_USEC);
}

/* Counts with interrupts off, because interrupts change the same counts. */
static void write_in_storm(struct nest *n, u64 size)
{
	u64 wrote = 0;

	if (pmuk_test_aux_begin(n->a, &n->h)) {
		wrote = min(n->h.size, size);
		pmuk_test_aux_finish(n->a, &n->h, wrote);
	}
	local_irq_disable();
	n->written += wrote;
	n->refused += !wrote;
	local_irq_enable();
	pmuk_test_aux_drain(n->a);
}

static void read_records(struct nest *n)
{
	const struct perf_event_header *rec;
	struct pmuk_reader r;

	n->wrong += pmuk_buffer_claim(n->a->b, &r) != 0;
	pmuk_for_each_record(rec, &r)
		n->wrong += rec->type != PERF_RECORD_AUX && rec->type != PMUK_AUX_OTHER &&
			    rec->type != PERF_RECORD_LOST;
	pmuk_buffer_release(&r);
}

#define NESTED		200	/* at least so many interrupts nest */

static u64 nr_met(struct nest *n)
{
	u64 nested = pmuk_test_aux_stat(n->a).nested;

	return min(READ_ONCE(n->interrupts), NESTINGS) + min(nested, NESTED);
}

static bool met_enough(struct nest *n)
{
	return nr_met(n) == NESTINGS + NESTED;
}

/* Returns a loop of another CPU, which interrupts this one with @fn until it is stopped. */
static struct pmuk_loop *begin_storm(struct kunit *test, struct nest *n, smp_call_func_t fn)
{
	struct storm *s = pmuk_test_zalloc(test, sizeof(*s));

	s->n = n;
	s->cpu = raw_smp_processor_id();
	s->strike = fn;
	return pmuk_loop_start(test, pmuk_test_other_cpu(test, s->cpu), strike_once, s);
}

static void storm_meets_each_instruction(struct kunit *test)
{
	struct nest *n = nest_of(test, PMUK_IRQ_HARD, &small);
	struct pmuk_loop *storm = begin_storm(test, n, strike);
	struct pmuk_test_progress progress = {};

	while (!met_enough(n) && pmuk_test_goes_on(&progress, nr_met(n))) {
		write_in_storm(n, some(n, 2000) + 1);
		read_records(n);
		cond_resched();
	}
	pmuk_loop_stop(test, storm);
	KUNIT_EXPECT_TRUE(test, met_enough(n));
	pmuk_test_aux_drain(n->a);
	KUNIT_EXPECT_EQ(test, n->a->next, n->written);
	judge(n);
}

static void lose_one(void *data)
{
	struct storm *s = data;
	struct nest *n = s->n;

	WRITE_ONCE(n->interrupts, n->interrupts + 1);
	pmuk_aux_output_lose(n->a->b, 1);
	n->lost++;
	n->losses++;
}

/*
 * An interrupt that loses bytes reads what the task is about to write: the position up to which
 * records have reported, and the published head. KCSAN watches one access in some hundreds, so
 * there have to be many interrupts at accesses of each kind.
 */
static void losses_meet_each_access(struct kunit *test)
{
	struct nest *n = nest_of(test, PMUK_IRQ_HARD, &small);
	struct pmuk_loop *storm = begin_storm(test, n, lose_one);
	struct pmuk_test_progress progress = {};
	unsigned int parts, interrupts = 0;

	for (parts = 0; parts < 3 * NESTINGS || interrupts < NESTINGS; parts++) {
		interrupts = min(READ_ONCE(n->interrupts), NESTINGS);
		if (!pmuk_test_goes_on(&progress, min(parts, 3 * NESTINGS) + interrupts) ||
		    !pmuk_test_aux_begin(n->a, &n->h))
			break;
		n->wrong += pmuk_aux_output_skip(&n->h, 8) != 0;
		pmuk_test_aux_finish(n->a, &n->h, 8);
		n->written += 16;
		pmuk_test_aux_drain(n->a);
		read_records(n);
	}
	pmuk_loop_stop(test, storm);
	KUNIT_EXPECT_GE(test, parts, 3 * NESTINGS);
	n->a->bad = 0;		/* skipped bytes have any value */
	judge(n);
}

static struct kunit_case pmuk_aux_nest_cases[] = {
	PMUK_LEVEL_CASE(nested_writers_are_refused, softirq),
	PMUK_LEVEL_CASE(nested_writers_are_refused, hardirq),
	PMUK_LEVEL_CASE(nested_writers_are_refused, nmi),
	PMUK_LEVEL_CASE(writers_of_any_context_take_turns, task),
	PMUK_LEVEL_CASE(writers_of_any_context_take_turns, softirq),
	PMUK_LEVEL_CASE(writers_of_any_context_take_turns, hardirq),
	PMUK_LEVEL_CASE(writers_of_any_context_take_turns, nmi),
	PMUK_LEVEL_CASE(what_begins_here_ends_there, softirq),
	PMUK_LEVEL_CASE(what_begins_here_ends_there, hardirq),
	PMUK_LEVEL_CASE(what_begins_here_ends_there, nmi),
	PMUK_LEVEL_CASE(interrupts_skip_for_the_writer, softirq),
	PMUK_LEVEL_CASE(interrupts_skip_for_the_writer, hardirq),
	PMUK_LEVEL_CASE(interrupts_skip_for_the_writer, nmi),
	PMUK_LEVEL_CASE(losses_of_interrupts_are_told, softirq),
	PMUK_LEVEL_CASE(losses_of_interrupts_are_told, hardirq),
	PMUK_LEVEL_CASE(losses_of_interrupts_are_told, nmi),
	PMUK_LEVEL_CASE(interrupts_pause_and_read, softirq),
	PMUK_LEVEL_CASE(interrupts_pause_and_read, hardirq),
	PMUK_LEVEL_CASE(interrupts_pause_and_read, nmi),
	PMUK_LEVEL_CASE(interrupts_read, softirq),
	PMUK_LEVEL_CASE(interrupts_read, hardirq),
	PMUK_LEVEL_CASE(interrupts_read, nmi),
	PMUK_LEVEL_CASE(interrupts_write_records, softirq),
	PMUK_LEVEL_CASE(interrupts_write_records, hardirq),
	PMUK_LEVEL_CASE(interrupts_write_records, nmi),
	PMUK_LEVEL_CASE(parts_inside_of_records_are_told, softirq),
	PMUK_LEVEL_CASE(parts_inside_of_records_are_told, hardirq),
	PMUK_LEVEL_CASE(parts_inside_of_records_are_told, nmi),
	PMUK_LEVEL_CASE(interrupts_end_what_is_destroyed, softirq),
	PMUK_LEVEL_CASE(interrupts_end_what_is_destroyed, hardirq),
	PMUK_LEVEL_CASE(interrupts_end_what_is_destroyed, nmi),
	KUNIT_CASE_SLOW(storm_meets_each_instruction),
	KUNIT_CASE_SLOW(losses_meet_each_access),
	{}
};

PMUK_SUITE(pmuk_aux_nest, pmuk_test_init, "KUnit tests of pmuk's AUX areas, interrupted");
