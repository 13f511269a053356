// SPDX-License-Identifier: GPL-2.0
/*
 * The tests let overflows take slices of AUX areas into records: of what a producer has published,
 * and of what a PMU is tracing.
 */
#include <kunit/test.h>
#include <linux/cleanup.h>
#include <linux/kthread.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "pmuk_aux.h"
#include "pmuk_ctx.h"
#include "pmuk_itrace.h"
#include "pmuk_levels.h"
#include "pmuk_packets.h"
#include "pmuk_parse.h"
#include "pmuk_place.h"
#include "pmuk_suite.h"
#include "pmuk_test.h"

#define PERIOD		100
#define COOKIE		0x5115e5115e5115eULL
#define TYPE		(PERF_SAMPLE_IP | PERF_SAMPLE_AUX | PMUK_SAMPLE_COOKIE)

/* A counter that writes records with slices, and its latest record. */
struct slicer {
	struct kunit *test;
	struct pmuk_test_aux *a;
	struct pmuk_sim *sim;
	struct pmuk_attr attr;
	u64 head;			/* bytes that were written to the area */
	struct pmuk_parsed parsed;
	unsigned int size;		/* bytes of the record */
};

static struct slicer *new_slicer_in(struct kunit *test, const struct pmuk_buffer_attr *battr)
{
	struct slicer *s = pmuk_test_zalloc(test, sizeof(*s));

	s->test = test;
	s->a = pmuk_test_new_aux(test, battr);
	s->sim = pmuk_test_sim(test, 1, 32);
	s->attr = (struct pmuk_attr){
		.type = pmuk_sim_type(s->sim), .period = PERIOD, .flags = PMUK_NO_THROTTLE,
		.buffer = s->a->b, .sample_type = TYPE, .cookie = COOKIE,
	};
	return s;
}

static struct slicer *new_slicer(struct kunit *test, const struct pmuk_aux_attr *aux)
{
	return new_slicer_in(test, &(struct pmuk_buffer_attr){ .nr_pages = 32, .aux = *aux });
}

static struct pmuk_counter *start(struct slicer *s, u32 aux_sample_size)
{
	s->attr.aux_sample_size = aux_sample_size;
	return pmuk_test_enabled(s->test, &s->attr, s->a->b->cpu, NULL);
}

static void write_area(struct slicer *s, u64 size)
{
	KUNIT_EXPECT_TRUE(s->test, pmuk_test_aux_write(s->a, size));
	s->head += size;
}

/* Fills the ring's memory with ones, which a record has to write over. */
static void soil(struct kunit *test, struct pmuk_buffer *b)
{
	struct perf_event_header *rec;
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		scoped_guard(preempt) {
			rec = pmuk_output_begin(b, PERF_RECORD_SAMPLE, 64);
			if (rec)
				memset(rec + 1, 0xff, 64 - sizeof(*rec));
			pmuk_output_end(b, rec);
		}
		KUNIT_EXPECT_EQ(test, pmuk_test_consume(test, b, PERF_RECORD_SAMPLE), 1);
	}
}

/* Parses the only sample in @b, and leaves out the records that report parts of the area. */
static unsigned int parse_samples(struct kunit *test, struct pmuk_buffer *b, u64 type,
				  struct pmuk_parsed *p, unsigned int *size)
{
	const struct perf_event_header *rec;
	struct pmuk_reader r;
	unsigned int n = 0;

	KUNIT_ASSERT_EQ(test, pmuk_buffer_claim(b, &r), 0);
	pmuk_for_each_record(rec, &r) {
		if (rec->type != PERF_RECORD_SAMPLE)
			continue;
		KUNIT_EXPECT_EQ(test, pmuk_parse_sample(rec, type, 0, p), 0);
		*size = rec->size;
		n++;
	}
	pmuk_buffer_release(&r);
	return n;
}

/* Expects the newest @size bytes of the area in the only record. */
static void check_slice(struct slicer *s, u64 size)
{
	KUNIT_ASSERT_EQ(s->test, parse_samples(s->test, s->a->b, s->attr.sample_type, &s->parsed,
					       &s->size), 1);
	KUNIT_EXPECT_NE(s->test, s->parsed.ip, 0);
	KUNIT_EXPECT_EQ(s->test, s->parsed.cookie, COOKIE);
	KUNIT_ASSERT_EQ(s->test, s->parsed.aux_size, size);
	KUNIT_EXPECT_TRUE(s->test, pmuk_test_aux_is(s->a, s->parsed.aux, s->head - size, size));
}

/* Lets the counter overflow, and checks its record. */
static void expect_slice(struct slicer *s, u64 size)
{
	KUNIT_EXPECT_EQ(s->test, pmuk_sim_count(s->sim, 0, PERIOD), PERIOD);
	check_slice(s, size);
}

/* ---- what a producer has published ---- */

static const struct slice_param {
	const char *name;
	u32 size;			/* bytes that are asked for */
	bool overwrite;
} slice_params[] = {
	{ "8_bytes", 8 }, { "100_bytes", 100 }, { "a_page", 4096 }, { "the_most", 65528 },
	{ "overwriting", 1000, .overwrite = true },
	{ "overwriting_most", 65528, .overwrite = true },
};

KUNIT_ARRAY_PARAM_DESC(slices, slice_params, name);

/* The area wraps, and the reader gives bytes back. Slices have bytes that were given back, too. */
static void newest_bytes_are_sampled(struct kunit *test)
{
	const struct slice_param *param = test->param_value;
	struct slicer *s = new_slicer(test, &(struct pmuk_aux_attr){
		.nr_pages = 2, .overwrite = param->overwrite });
	unsigned int i;

	start(s, param->size);
	expect_slice(s, 0);
	for (i = 1; i <= 300; i++) {
		write_area(s, i % 7 * 31 + i % 8);
		if (!param->overwrite && i % 5 == 0)
			pmuk_test_aux_drain(s->a);
		expect_slice(s, round_down(min3((u64)param->size, s->head, (u64)s->a->size), 8));
	}
}

static void overflow_here(void *data)
{
	struct slicer *s = data;

	pmuk_sim_count(s->sim, 0, PERIOD);
}

static void overflows_of_any_context_have_slices(struct kunit *test)
{
	struct slicer *s = new_slicer(test, &(struct pmuk_aux_attr){
		.nr_pages = 1, .overwrite = true });
	enum pmuk_irq_level level = pmuk_test_level(test);
	unsigned int i;

	start(s, 1024);
	for (i = 0; i < 50; i++) {
		write_area(s, 1031);
		KUNIT_EXPECT_EQ(test, pmuk_irq_run(level, overflow_here, s), 0);
		check_slice(s, 1024);
	}
}

/* The slice comes after all fields of perf, and before the cookie. */
static void slice_is_perfs_last_field(struct kunit *test)
{
	static const u64 fields[] = {
		PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_RAW, PERF_SAMPLE_READ, PERF_SAMPLE_WEIGHT,
		PERF_SAMPLE_DATA_SRC, PERF_SAMPLE_PHYS_ADDR, PERF_SAMPLE_TRANSACTION,
	};
	struct slicer *s = new_slicer(test, &(struct pmuk_aux_attr){ .nr_pages = 1 });
	struct pmuk_counter *c;
	u64 all = TYPE;
	unsigned int i;

	write_area(s, 200);
	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		all |= fields[i];
		s->attr.sample_type = TYPE | fields[i];
		c = start(s, 128);
		expect_slice(s, 128);
		kunit_release_action(test, pmuk_test_put_counter, c);
	}
	s->attr.sample_type = all;
	start(s, 128);
	expect_slice(s, 128);
}

/* While a writer has the area open, it may be writing over bytes that were given back. */
static void open_area_has_what_was_not_given_back(struct kunit *test)
{
	struct slicer *s = new_slicer(test, &(struct pmuk_aux_attr){ .nr_pages = 1 });
	struct pmuk_aux_handle h;

	start(s, 512);
	write_area(s, 96);
	pmuk_test_aux_drain(s->a);
	write_area(s, 64);
	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(s->a, &h));
	expect_slice(s, 64);
	pmuk_test_aux_drain(s->a);
	expect_slice(s, 0);
	pmuk_test_aux_finish(s->a, &h, 32);
	s->head += 32;
	expect_slice(s, 192);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(s->a).nested, 0);
}

/* An open writer may be anywhere in an area that overwrites. */
static void open_area_that_overwrites_has_nothing(struct kunit *test)
{
	struct slicer *s = new_slicer(test, &(struct pmuk_aux_attr){
		.nr_pages = 1, .overwrite = true });
	struct pmuk_aux_handle h;

	start(s, 512);
	write_area(s, 640);
	expect_slice(s, 512);
	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(s->a, &h));
	expect_slice(s, 0);
	pmuk_test_aux_finish(s->a, &h, 8);
	s->head += 8;
	expect_slice(s, 512);
}

/* A paused area takes no new bytes, and has those that it had. A reader is not disturbed. */
static void paused_area_has_what_it_had(struct kunit *test)
{
	struct slicer *s = new_slicer(test, &(struct pmuk_aux_attr){
		.nr_pages = 1, .overwrite = true });
	struct pmuk_aux_reader r;

	start(s, 256);
	write_area(s, 1000);
	KUNIT_EXPECT_EQ(test, pmuk_aux_pause(s->a->b), 0);
	expect_slice(s, 256);
	KUNIT_ASSERT_EQ(test, pmuk_aux_claim(s->a->b, &r), 0);
	expect_slice(s, 256);
	pmuk_aux_release(&r);
	KUNIT_EXPECT_EQ(test, pmuk_aux_resume(s->a->b), 0);
	write_area(s, 8);
	expect_slice(s, 256);
}

/* perf_event_header::size has 16 bits: the slice gets what the other fields leave. */
static void slice_fits_into_the_record(struct kunit *test)
{
	struct slicer *s = new_slicer(test, &(struct pmuk_aux_attr){ .nr_pages = 16 });
	/* ip, the size of the slice, cookie */
	u64 others = sizeof(struct perf_event_header) + 3 * sizeof(u64);

	start(s, PMUK_RECORD_MAX);
	write_area(s, s->a->size - 16);
	expect_slice(s, min_t(u64, PMUK_RECORD_MAX - others, s->a->size - 16));
	if (s->a->size >= PMUK_RECORD_MAX)
		KUNIT_EXPECT_EQ(test, s->size, PMUK_RECORD_MAX);
}

/* A slice leaves room for the other fields, and for a PERF_RECORD_LOST before the record. */
static void slice_fits_into_the_buffer(struct kunit *test)
{
	struct slicer *s = new_slicer_in(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .aux = { .nr_pages = 2 },
	});
	u64 most = min_t(u64, PAGE_SIZE - 3 * sizeof(u64), PMUK_RECORD_MAX);

	start(s, PMUK_RECORD_MAX);
	write_area(s, 2 * PAGE_SIZE - 16);
	/* This record has no room beside the PERF_RECORD_AUX, and is reported as lost. */
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 0, PERIOD), PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_test_consume(test, s->a->b, PERF_RECORD_AUX), 1);
	expect_slice(s, most - sizeof(struct perf_event_header) - 3 * sizeof(u64));
	KUNIT_EXPECT_EQ(test, s->size, most);
}

/* A record that has no room is lost with its slice, and the area can be written after that. */
static void lost_records_leave_the_area_alone(struct kunit *test)
{
	struct slicer *s = new_slicer(test, &(struct pmuk_aux_attr){ .nr_pages = 16 });
	struct pmuk_buffer_stat stat = {};
	unsigned int i;

	start(s, 32768);
	write_area(s, 40000);
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 0, PERIOD), PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_get_stat(s->a->b, &stat), 0);
	KUNIT_EXPECT_GT(test, stat.lost, 0);
	KUNIT_EXPECT_LT(test, stat.lost, 8);
	write_area(s, 100);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(s->a).nested, 0);
}

/* ---- what another CPU does meanwhile ---- */

/* Another CPU pauses the area, reads it if it is closed, and resumes it, over and over. */
struct meddler {
	struct pmuk_test_aux *a;
	unsigned int spans;
	unsigned int wrong;
};

static void read_paused(struct meddler *m)
{
	struct pmuk_aux_reader r;
	struct pmuk_aux_span span;

	if (pmuk_aux_claim(m->a->b, &r))
		return;
	if (pmuk_aux_peek(&r, &span)) {
		m->wrong += !pmuk_test_aux_is(m->a, span.data, span.head, span.size);
		WRITE_ONCE(m->spans, m->spans + 1);
	}
	pmuk_aux_release(&r);
}

static int meddle(void *data)
{
	struct meddler *m = data;

	while (!kthread_should_stop()) {
		m->wrong += pmuk_aux_pause(m->a->b) != 0;
		read_paused(m);
		m->wrong += pmuk_aux_resume(m->a->b) != 0;
		cond_resched();
	}
	return 0;
}

/* A copy never waits for a reader, and no pause gets lost in it. */
static void others_pause_and_read_meanwhile(struct kunit *test)
{
	int other = pmuk_test_other_cpu(test, pmuk_test_pin_first(test));
	struct slicer *s = new_slicer(test, &(struct pmuk_aux_attr){
		.nr_pages = 1, .overwrite = true });
	struct meddler *m = pmuk_test_zalloc(test, sizeof(*m));
	struct pmuk_test_progress progress = {};
	struct task_struct *task;
	unsigned int discarded;

	start(s, 1024);
	write_area(s, 2000);
	m->a = s->a;
	task = pmuk_test_thread(test, other, meddle, m);
	do {
		if (pmuk_test_aux_write(s->a, 1031))
			s->head += 1031;
		expect_slice(s, 1024);
		discarded = pmuk_test_aux_stat(s->a).discarded;
	} while ((READ_ONCE(m->spans) < 200 || discarded < 200) &&
		 pmuk_test_goes_on(&progress, READ_ONCE(m->spans) + discarded));
	kthread_stop(task);
	KUNIT_EXPECT_GE(test, m->spans, 200);
	KUNIT_EXPECT_GE(test, discarded, 200);
	KUNIT_EXPECT_EQ(test, m->wrong, 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(s->a).nested, 0);
}

/* ---- areas of each CPU ---- */

#define RECORD	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_AUX)

static const struct pmuk_perf_format record_format = { .sample_type = RECORD };

/* The counter's records have slices. */
static void add_sampler(struct kunit *test, struct pmuk_context *ctx, struct pmuk_sim *sim,
			u16 num, u32 aux_sample_size)
{
	struct pmuk_pmc pmc = { .num = num, .type = pmuk_sim_type(sim), .flags = PMUK_NO_THROTTLE,
				.aux_sample_size = aux_sample_size };

	KUNIT_ASSERT_EQ(test, pmuk_write_pmcs(ctx, &pmc, 1), 1);
	pmuk_ctx_write_pmd(test, ctx, &(struct pmuk_pmd){ .num = num, .short_reset = PERIOD });
}

static struct pmuk_context *new_context(struct kunit *test, unsigned int nr_pages,
					const struct pmuk_aux_attr *aux)
{
	return pmuk_ctx_create(test, &(struct pmuk_context_attr){
		.buffer = { .nr_pages = nr_pages, .aux = *aux },
		.format_arg = &record_format, .format_arg_size = sizeof(record_format) });
}

#define SLICE	64

/* Fills a part of this CPU's area with the CPU's number. */
static void publish_here(void *data)
{
	int cpu = smp_processor_id();
	struct pmuk_buffer *b = pmuk_context_buffer(data, cpu);
	struct pmuk_aux_handle h;

	if (b && pmuk_aux_output_begin(&h, b)) {
		memset(h.data, cpu + 1, SLICE);
		pmuk_aux_output_end(&h, SLICE);
	}
}

/* Expects a record of each place in the CPU's buffer, with a slice of that CPU's area. */
static void expect_own_slices(struct pmuk_place *p, struct pmuk_context *ctx)
{
	struct pmuk_parsed parsed = {};
	unsigned int size;

	KUNIT_EXPECT_EQ(p->test, pmuk_place_count(p, 0, PERIOD), PERIOD * p->nr);
	KUNIT_ASSERT_EQ(p->test, parse_samples(p->test, pmuk_context_buffer(ctx, p->cpu), RECORD,
					       &parsed, &size), p->nr);
	KUNIT_ASSERT_EQ(p->test, parsed.aux_size, SLICE);
	KUNIT_EXPECT_PTR_EQ(p->test, memchr_inv(parsed.aux, p->cpu + 1, SLICE), NULL);
}

static const struct task_param {
	const char *name;
	enum pmuk_target_type type;
} task_params[] = {
	{ "a_task", PMUK_TARGET_TASK }, { "a_task_and_its_child", PMUK_TARGET_TREE },
};

KUNIT_ARRAY_PARAM_DESC(tasks, task_params, name);

/* Wherever a task or its child overflows, the slice is of the area of that CPU. */
static void tasks_have_slices_of_their_cpus(struct kunit *test)
{
	const struct task_param *param = test->param_value;
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_place *p = pmuk_new_place(test, sim, param->type);
	struct pmuk_context *ctx;
	unsigned int i;

	ctx = new_context(test, 1, &(struct pmuk_aux_attr){ .nr_pages = 1, .overwrite = true });
	add_sampler(test, ctx, sim, 0, SLICE);
	pmuk_place_run(p, ctx);
	on_each_cpu(publish_here, ctx, true);
	for (i = 0; i < 2 * num_online_cpus(); i++) {
		expect_own_slices(p, ctx);
		pmuk_place_tell(p, pmuk_place_move_on);
	}
}

/* ---- what a PMU is tracing ---- */

/* A context traces by counter 0, and samples by counter 1, whose records have slices. */
struct tracing {
	struct kunit *test;
	struct pmuk_itrace *it;
	struct pmuk_sim *sim, *inner;
	struct pmuk_context *ctx;
	struct pmuk_buffer *b;
	unsigned int copies;
};

KUNIT_DEFINE_ACTION_WRAPPER(put_itrace, pmuk_itrace_destroy, struct pmuk_itrace *);

static void note_copy(void *data)
{
	struct tracing *t = data;

	t->copies++;
	if (t->inner)
		pmuk_sim_count(t->inner, 0, PERIOD);
}

static struct tracing *new_tracing(struct kunit *test)
{
	struct tracing *t = pmuk_test_zalloc(test, sizeof(*t));

	if (!perf_event_set_aux_ops(pmuk_test_zalloc(test, sizeof(struct perf_event)), NULL))
		kunit_skip(test, "this kernel's perf core has no AUX output of kernel counters");
	t->test = test;
	t->it = pmuk_itrace_create("pmuk_itrace", 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(t->it));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_itrace, t->it), 0);
	t->sim = pmuk_test_sim(test, 1, 32);
	return t;
}

static void new_tracing_context(struct tracing *t, u32 aux_sample_size, bool overwrite)
{
	struct pmuk_pmc tracer = { .type = pmuk_itrace_type(t->it),
				   .config = PMUK_ITRACE_ALIGN_MIN };

	t->ctx = new_context(t->test, 4, &(struct pmuk_aux_attr){
		.nr_pages = 2, .overwrite = overwrite });
	KUNIT_ASSERT_EQ(t->test, pmuk_write_pmcs(t->ctx, &tracer, 1), 1);
	add_sampler(t->test, t->ctx, t->sim, 1, aux_sample_size);
}

/* The driver copies what it traces. The context is not loaded yet. */
static struct tracing *new_copying(struct kunit *test, u32 aux_sample_size, bool overwrite,
				   void (*opening)(void *data))
{
	struct tracing *t = new_tracing(test);

	pmuk_itrace_let_copy(t->it, &(struct pmuk_itrace_hooks){
		.copying = note_copy, .opening = opening, .data = t });
	new_tracing_context(t, aux_sample_size, overwrite);
	return t;
}

static void run(struct tracing *t)
{
	int cpu = pmuk_test_pin_first(t->test);

	pmuk_ctx_run(t->test, t->ctx, cpu);
	t->b = pmuk_context_buffer(t->ctx, cpu);
}

/* Lets counter 1 overflow, and expects the packets of the branches before @number in its record. */
static void expect_packets(struct tracing *t, u64 number, unsigned int nr)
{
	struct pmuk_parsed p = {};
	unsigned int size, i;
	const u64 *packets;

	KUNIT_EXPECT_EQ(t->test, pmuk_sim_count(t->sim, 0, PERIOD), PERIOD);
	KUNIT_ASSERT_EQ(t->test, parse_samples(t->test, t->b, RECORD, &p, &size), 1);
	KUNIT_ASSERT_EQ(t->test, p.aux_size, nr * sizeof(u64));
	packets = p.aux;
	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_EQ(t->test, packets[i], pmuk_packet_branch(number - nr + i));
}

/* The slice has what the part that is being written has by now. It may begin in an earlier part. */
static void driver_copies_what_it_traces(struct kunit *test)
{
	struct tracing *t = new_copying(test, 256, true, NULL);
	u64 number = 0;
	unsigned int i;

	run(t);
	number += pmuk_itrace_branch_inside(t->it, 100);
	KUNIT_EXPECT_EQ(test, number, 100);
	for (i = 1; i <= 40; i++) {
		/* No mark, which comes each PMUK_PACKETS_SYNC branches, is in the slices. */
		number += pmuk_itrace_branch(t->it, PMUK_PACKETS_SYNC - 10);
		number += pmuk_itrace_branch_inside(t->it, 10);
		expect_packets(t, number, 32);
		KUNIT_EXPECT_EQ(test, t->copies, i);
	}
}

/* The driver copies less than the record has room for: zeroes follow. */
static void zeroes_follow_what_the_driver_has(struct kunit *test)
{
	struct tracing *t = new_copying(test, 64, true, NULL);
	struct pmuk_parsed p = {};
	unsigned int size, i;
	const u64 *packets;

	run(t);
	soil(test, t->b);
	pmuk_itrace_branch_inside(t->it, 3);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 0, PERIOD), PERIOD);
	KUNIT_ASSERT_EQ(test, parse_samples(test, t->b, RECORD, &p, &size), 1);
	KUNIT_ASSERT_EQ(test, p.aux_size, 64);
	packets = p.aux;
	KUNIT_EXPECT_EQ(test, packets[0], PMUK_PACKET_MARK);
	KUNIT_EXPECT_EQ(test, packets[1], PMUK_PACKET_NUMBER);
	for (i = 2; i < 5; i++)
		KUNIT_EXPECT_EQ(test, packets[i], pmuk_packet_branch(i - 2));
	for (; i < 8; i++)
		KUNIT_EXPECT_EQ(test, packets[i], 0);
}

/* An overflow in the middle of a copy gets no slice, as the driver's copies do not nest. */
static void copies_do_not_nest(struct kunit *test)
{
	struct tracing *t = new_copying(test, 64, true, NULL);
	const struct perf_event_header *rec;
	struct pmuk_parsed p = {};
	unsigned int sizes = 0, n = 0;
	struct pmuk_reader r;

	t->inner = pmuk_test_sim_config(test, &(struct pmuk_sim_config){
		.name = "pmuk_inner", .nr_counters = 1, .width = 32 });
	add_sampler(test, t->ctx, t->inner, 2, 64);
	run(t);
	pmuk_itrace_branch_inside(t->it, 100);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(t->sim, 0, PERIOD), PERIOD);
	KUNIT_ASSERT_EQ(test, pmuk_buffer_claim(t->b, &r), 0);
	pmuk_for_each_record(rec, &r) {
		if (rec->type != PERF_RECORD_SAMPLE)
			continue;
		KUNIT_EXPECT_EQ(test, pmuk_parse_sample(rec, RECORD, 0, &p), 0);
		sizes += p.aux_size;
		n++;
	}
	pmuk_buffer_release(&r);
	KUNIT_EXPECT_EQ(test, n, 2);
	KUNIT_EXPECT_EQ(test, sizes, 64);
	KUNIT_EXPECT_EQ(test, t->copies, 1);
}

/* A driver that cannot copy has the area open all the time, and may be anywhere in it. */
static void driver_that_cannot_copy_is_refused(struct kunit *test)
{
	struct tracing *t = new_tracing(test);

	new_tracing_context(t, 64, true);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(t->ctx, pmuk_test_pin_first(test)), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_areas(t->it), 0);
}

/* If the area does not overwrite, the slice has what was published and not given back. */
static void drivers_copy_from_flight_recorders_only(struct kunit *test)
{
	struct tracing *t = new_copying(test, 64, false, NULL);
	u64 number;

	run(t);
	number = pmuk_itrace_branch(t->it, 100);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_branch_inside(t->it, 10), 10);
	expect_packets(t, number, 8);
	KUNIT_EXPECT_EQ(test, t->copies, 0);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_misled(t->it), 0);
}

static void overflow_in_opening(void *data)
{
	struct tracing *t = data;

	pmuk_sim_count(t->sim, 0, PERIOD);
}

/* While perf core starts the tracer, the hardware is not ready for a copy. */
static void driver_that_starts_is_not_asked(struct kunit *test)
{
	struct tracing *t = new_copying(test, 64, true, overflow_in_opening);
	struct pmuk_parsed p = {};
	unsigned int size;

	run(t);
	KUNIT_EXPECT_EQ(test, parse_samples(test, t->b, RECORD, &p, &size), 1);
	KUNIT_EXPECT_EQ(test, p.aux_size, 0);
	KUNIT_EXPECT_EQ(test, t->copies, 0);
}

/* The area is paused, so tracing stops at the end of the part. The slice has what was published. */
static void stopped_driver_is_not_asked(struct kunit *test)
{
	struct tracing *t = new_copying(test, 64, true, NULL);
	u64 number;

	run(t);
	number = pmuk_itrace_branch(t->it, 100);
	KUNIT_EXPECT_EQ(test, pmuk_aux_pause(t->b), 0);
	number += pmuk_itrace_branch(t->it, 1);
	KUNIT_EXPECT_EQ(test, number, 101);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_branch_inside(t->it, 1), 0);
	expect_packets(t, number, 8);
	KUNIT_EXPECT_EQ(test, t->copies, 0);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_misled(t->it), 0);
}

/* ---- attributes ---- */

static void counters_of_contexts_may_have_no_slices(struct kunit *test)
{
	struct tracing *t = pmuk_test_zalloc(test, sizeof(*t));
	struct pmuk_aux_handle part;

	t->test = test;
	t->sim = pmuk_test_sim(test, 1, 32);
	t->ctx = new_context(test, 1, &(struct pmuk_aux_attr){ .nr_pages = 1 });
	add_sampler(test, t->ctx, t->sim, 0, 0);
	run(t);
	scoped_guard(preempt) {
		KUNIT_EXPECT_NOT_NULL(test, pmuk_aux_output_begin(&part, t->b));
		pmuk_aux_output_end(&part, 64);
	}
	expect_packets(t, 0, 0);
}

static void bad_slices_are_refused(struct kunit *test)
{
	struct slicer *s = new_slicer(test, &(struct pmuk_aux_attr){ .nr_pages = 1 });
	struct pmuk_attr *attr = &s->attr;
	int cpu = s->a->b->cpu;

	pmuk_test_refused(test, attr, cpu, NULL, -EINVAL, "no aux_sample_size");
	attr->aux_sample_size = PMUK_RECORD_MAX + 1;
	pmuk_test_refused(test, attr, cpu, NULL, -EINVAL, "aux_sample_size too large");
	attr->aux_sample_size = 8;
	attr->sample_type = PERF_SAMPLE_IP;
	pmuk_test_refused(test, attr, cpu, NULL, -EINVAL, "no PERF_SAMPLE_AUX");
	attr->sample_type = TYPE;
	attr->buffer = pmuk_test_new_buffer(test, &(struct pmuk_buffer_attr){ .nr_pages = 1 }, cpu);
	pmuk_test_refused(test, attr, cpu, NULL, -EINVAL, "no AUX area");
	attr->sample_type = PERF_SAMPLE_AUX;
	attr->buffer = NULL;
	pmuk_test_refused(test, attr, cpu, NULL, -EOPNOTSUPP, "a callback");
	attr->buffer = pmuk_test_new_buffer(test, &(struct pmuk_buffer_attr){}, -1);
	pmuk_test_refused(test, attr, -1, current, -EOPNOTSUPP, "a task's page");
}

static void bad_slices_of_contexts_are_refused(struct kunit *test)
{
	const struct pmuk_perf_format format = { .sample_type = RECORD };
	struct pmuk_pmc pmc = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY,
				.aux_sample_size = PMUK_RECORD_MAX + 1 };
	struct pmuk_context *ctx = pmuk_create_context(&(struct pmuk_context_attr){
		.buffer.nr_pages = 1, .format_arg = &format, .format_arg_size = sizeof(format) });

	KUNIT_EXPECT_PTR_EQ(test, ctx, ERR_PTR(-EINVAL));
	ctx = pmuk_ctx_create(test, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_write_pmcs(ctx, &pmc, 1), 0);
	KUNIT_EXPECT_EQ(test, pmc.ret, -EINVAL);
}

static struct kunit_case pmuk_aux_slice_cases[] = {
	KUNIT_CASE_PARAM(newest_bytes_are_sampled, slices_gen_params),
	KUNIT_CASE_PARAM(overflows_of_any_context_have_slices, levels_gen_params),
	PMUK_NMI_CASE(overflows_of_any_context_have_slices),
	KUNIT_CASE(slice_is_perfs_last_field),
	KUNIT_CASE(open_area_has_what_was_not_given_back),
	KUNIT_CASE(open_area_that_overwrites_has_nothing),
	KUNIT_CASE(paused_area_has_what_it_had),
	KUNIT_CASE(slice_fits_into_the_record),
	KUNIT_CASE(slice_fits_into_the_buffer),
	KUNIT_CASE(lost_records_leave_the_area_alone),
	KUNIT_CASE(others_pause_and_read_meanwhile),
	KUNIT_CASE_PARAM(tasks_have_slices_of_their_cpus, tasks_gen_params),
	KUNIT_CASE(driver_copies_what_it_traces),
	KUNIT_CASE(zeroes_follow_what_the_driver_has),
	KUNIT_CASE(copies_do_not_nest),
	KUNIT_CASE(driver_that_cannot_copy_is_refused),
	KUNIT_CASE(drivers_copy_from_flight_recorders_only),
	KUNIT_CASE(driver_that_starts_is_not_asked),
	KUNIT_CASE(stopped_driver_is_not_asked),
	KUNIT_CASE(counters_of_contexts_may_have_no_slices),
	KUNIT_CASE(bad_slices_are_refused),
	KUNIT_CASE(bad_slices_of_contexts_are_refused),
	{}
};

PMUK_SUITE(pmuk_aux_slice, pmuk_test_init, "KUnit tests for pmuk: slices of AUX areas in records");
