// SPDX-License-Identifier: GPL-2.0
/*
 * PMUs that trace, and whose drivers know perf only, work in pmuk's contexts: their trace is in the
 * AUX areas of the CPUs where it was written, for a CPU, a task, or its children. Where perf core
 * does not let kernel counters do that, the load is refused.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/smp.h>

#include "../../kernel/pmu_kapi/context.h"
#include "pmuk_aux.h"
#include "pmuk_counters.h"
#include "pmuk_ctx.h"
#include "pmuk_etm.h"
#include "pmuk_irq.h"
#include "pmuk_itrace.h"
#include "pmuk_map.h"
#include "pmuk_packets.h"
#include "pmuk_place.h"
#include "pmuk_suite.h"

#define PARTS_ORDER	6		/* parts begin at multiples of 64 bytes */

struct itrace_test {
	struct kunit *test;
	struct pmuk_itrace *it;
	struct pmuk_place *p;
	struct pmuk_context *ctx;
	struct pmuk_packets_in *in;	/* by CPU */
	u64 branches;			/* number of written ones */
};

KUNIT_DEFINE_ACTION_WRAPPER(put_itrace, pmuk_itrace_destroy, struct pmuk_itrace *);

static struct itrace_test *new_named_pmu(struct kunit *test, const char *name, int capabilities)
{
	struct itrace_test *t = pmuk_test_zalloc(test, sizeof(*t));

	t->test = test;
	t->in = pmuk_test_zalloc(test, nr_cpu_ids * sizeof(*t->in));
	t->it = pmuk_itrace_create(name, capabilities);
	KUNIT_ASSERT_FALSE(test, IS_ERR(t->it));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_itrace, t->it), 0);
	return t;
}

static struct itrace_test *new_pmu(struct kunit *test, int capabilities)
{
	return new_named_pmu(test, "pmuk_itrace", capabilities);
}

static bool perf_core_lets(struct kunit *test)
{
	struct perf_event *event = pmuk_test_zalloc(test, sizeof(*event));

	return perf_event_set_aux_ops(event, NULL);
}

static void need_perf_core(struct kunit *test)
{
	if (!perf_core_lets(test))
		kunit_skip(test, "this kernel's perf core has no AUX output of kernel counters");
}

static void new_context(struct itrace_test *t, const struct pmuk_buffer_attr *buffer)
{
	struct pmuk_pmc pmc = { .type = pmuk_itrace_type(t->it), .config = PARTS_ORDER };

	t->ctx = pmuk_ctx_create(t->test, &(struct pmuk_context_attr){ .buffer = *buffer });
	KUNIT_ASSERT_EQ(t->test, pmuk_write_pmcs(t->ctx, &pmc, 1), 1);
}

static struct itrace_test *new_loaded(struct kunit *test, enum pmuk_target_type type,
				      const struct pmuk_buffer_attr *buffer)
{
	struct itrace_test *t = new_pmu(test, 0);

	need_perf_core(test);
	t->p = pmuk_new_place(test, NULL, type);
	t->p->data = t;
	new_context(t, buffer);
	pmuk_place_load(t->p, t->ctx);
	return t;
}

static struct itrace_test *new_itrace(struct kunit *test, enum pmuk_target_type type,
				      const struct pmuk_buffer_attr *buffer)
{
	struct itrace_test *t = new_loaded(test, type, buffer);

	pmuk_ctx_start(test, t->ctx);
	return t;
}

static void branch_here(struct pmuk_place *p)
{
	struct itrace_test *t = p->data;

	p->counted += pmuk_itrace_branch(t->it, p->n);
}

/* Lets @n branches happen in each place, and returns how many of them were written. */
static u64 branch(struct itrace_test *t, u64 n)
{
	u64 branches = pmuk_place_by_all(t->p, 0, n, branch_here);

	t->branches += branches;
	return branches;
}

/* ---- what was written, by the records that tell of it ---- */

struct seen {
	u64 bytes;
	u64 flags;
	unsigned int parts;
	unsigned int unaligned;
	unsigned int starts;		/* PERF_RECORD_ITRACE_START */
	u32 pid;			/* in the latest of them */
	unsigned int ids;		/* PERF_RECORD_AUX_OUTPUT_HW_ID */
	unsigned int others_ids;	/* ids of other CPUs' tracers */
};

static void see_part(struct itrace_test *t, int cpu, const u64 *words, struct seen *seen)
{
	size_t size;
	const void *area = pmuk_aux_data(pmuk_context_buffer(t->ctx, cpu), &size);

	pmuk_packets_read(&t->in[cpu], area + (words[0] & (size - 1)), words[1]);
	seen->bytes += words[1];
	seen->flags |= words[2];
	seen->unaligned += words[1] && (words[0] & (BIT(PARTS_ORDER) - 1));
	seen->parts++;
}

/* Reads all records of @cpu, and the parts that they report. No record reports skipped bytes. */
static void see(struct itrace_test *t, int cpu, struct seen *seen)
{
	struct pmuk_buffer *b = pmuk_context_buffer(t->ctx, cpu);
	const struct perf_event_header *rec;
	struct pmuk_reader r;

	if (!b)
		return;
	KUNIT_ASSERT_EQ(t->test, pmuk_buffer_claim(b, &r), 0);
	pmuk_for_each_record(rec, &r) {
		if (rec->type == PERF_RECORD_AUX)
			see_part(t, cpu, (const u64 *)(rec + 1), seen);
		if (rec->type == PERF_RECORD_ITRACE_START) {
			seen->starts++;
			seen->pid = *(const u32 *)(rec + 1);
		}
		if (rec->type == PERF_RECORD_AUX_OUTPUT_HW_ID) {
			seen->ids++;
			seen->others_ids += *(const u64 *)(rec + 1) != PMUK_ITRACE_HW_ID + cpu;
		}
	}
	pmuk_buffer_release(&r);
	pmuk_test_aux_give_back(t->test, b);
	KUNIT_EXPECT_EQ_MSG(t->test, t->in[cpu].bad, 0, "CPU %d", cpu);
}

static struct seen see_all(struct itrace_test *t)
{
	struct seen seen = {};
	int cpu;

	for_each_possible_cpu(cpu)
		see(t, cpu, &seen);
	return seen;
}

static u64 decoded(struct itrace_test *t)
{
	u64 branches = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		branches += t->in[cpu].branches;
	return branches;
}

static const struct pmuk_buffer_attr small = { .nr_pages = 1, .aux = { .nr_pages = 1 } };
static const struct pmuk_buffer_attr large = { .nr_pages = 4, .aux = { .nr_pages = 16 } };

/* ---- each kind of target ---- */

KUNIT_ARRAY_PARAM_DESC(places, pmuk_place_kinds, name);

/* A child that inherits the event writes the areas of its parent's context. */
static void stream_is_whole(struct kunit *test)
{
	const struct pmuk_place_kind *kind = test->param_value;
	struct itrace_test *t = new_itrace(test, kind->type, &large);
	struct seen seen;
	unsigned int i;

	for (i = 1; i <= 40; i++) {
		KUNIT_EXPECT_EQ(test, branch(t, 37 * i), 37 * i * t->p->nr);
		seen = see_all(t);
		KUNIT_EXPECT_EQ(test, seen.flags & ~PERF_AUX_FLAG_OVERWRITE, 0);
		KUNIT_EXPECT_EQ(test, seen.unaligned, 0);
		KUNIT_EXPECT_EQ(test, decoded(t), t->branches);
	}
}

static void branch_apart(struct pmuk_place *p)
{
	pmuk_place_apart(p);
	branch_here(p);
}

/* A child's trace is in the area of the CPU where the child ran. */
static void children_write_where_they_are(struct kunit *test)
{
	struct itrace_test *t = new_itrace(test, PMUK_TARGET_TREE, &large);
	int other = pmuk_test_other_cpu(test, t->p->cpu);
	struct seen seen;
	unsigned int i;

	pmuk_need_fork(test);
	for (i = 1; i <= 10; i++) {
		KUNIT_EXPECT_EQ(test, pmuk_place_by_tasks(t->p, 0, 100, branch_apart), 200);
		seen = see_all(t);
		KUNIT_EXPECT_EQ(test, t->in[t->p->cpu].branches, 100 * i);
		KUNIT_EXPECT_EQ(test, t->in[other].branches, 100 * i);
		KUNIT_EXPECT_GE(test, seen.ids, 2);
		KUNIT_EXPECT_EQ(test, seen.others_ids, 0);
	}
}

/*
 * A context that is stopped, or not started yet, has no trace. perf core starts none of its events,
 * and no event of a child.
 */
static void nothing_while_stopped(struct kunit *test)
{
	const struct pmuk_place_kind *kind = test->param_value;
	struct itrace_test *t = new_loaded(test, kind->type, &large);
	unsigned int i, starts;

	for (i = 0; i < 3; i++) {
		starts = pmuk_itrace_starts(t->it);
		KUNIT_EXPECT_EQ(test, branch(t, 10), 0);
		KUNIT_EXPECT_EQ(test, pmuk_itrace_starts(t->it), starts);
		pmuk_ctx_start(test, t->ctx);
		KUNIT_EXPECT_EQ(test, branch(t, 10), 10 * t->p->nr);
		KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
	}
	see_all(t);
	KUNIT_EXPECT_EQ(test, decoded(t), t->branches);
}

static void trace_says_whose_it_is(struct kunit *test)
{
	struct itrace_test *t = new_itrace(test, PMUK_TARGET_TASK, &large);
	struct seen seen;

	branch(t, 1);
	seen = see_all(t);
	KUNIT_EXPECT_EQ(test, seen.starts, 1);
	KUNIT_EXPECT_EQ(test, seen.pid, task_tgid_nr(t->p->task));
	branch(t, 1);
	KUNIT_EXPECT_EQ(test, see_all(t).starts, 0);
}

/*
 * Returns the number of PERF_RECORD_ITRACE_START, and discards all records. Parts that one record
 * reports have gaps between them, so they are not decoded.
 */
static unsigned int starts_told(struct kunit *test, struct pmuk_buffer *b)
{
	return pmuk_test_consume(test, b, PERF_RECORD_ITRACE_START);
}

/* Fills the buffer, so that no other record has room. */
static void fill_records(struct pmuk_buffer *b)
{
	while (pmuk_test_output(b, PERF_RECORD_SAMPLE, sizeof(struct perf_event_header) + 8))
		;
}

/* If the PERF_RECORD_ITRACE_START has no room, it is written before the next part. */
static void whose_it_is_may_be_said_late(struct kunit *test)
{
	struct itrace_test *t = new_loaded(test, PMUK_TARGET_CPU, &large);
	struct pmuk_buffer *b = pmuk_context_buffer(t->ctx, t->p->cpu);

	fill_records(b);
	pmuk_ctx_start(test, t->ctx);
	KUNIT_EXPECT_EQ(test, branch(t, 1), 1);
	KUNIT_EXPECT_EQ(test, starts_told(test, b), 0);
	KUNIT_EXPECT_EQ(test, branch(t, 1), 1);
	KUNIT_EXPECT_EQ(test, branch(t, 1), 1);
	KUNIT_EXPECT_EQ(test, starts_told(test, b), 1);
}

/* ---- no room ---- */

static void restart(struct itrace_test *t)
{
	KUNIT_EXPECT_EQ(t->test, pmuk_stop(t->ctx), 0);
	pmuk_ctx_start(t->test, t->ctx);
}

/*
 * Tracing stops when there is no room, as drivers expect, and goes on after the next start. All
 * written bytes are reported.
 */
static void truncation_stops_until_started(struct kunit *test)
{
	struct itrace_test *t = new_itrace(test, PMUK_TARGET_CPU, &small);
	struct pmuk_packets_in *in = &t->in[t->p->cpu];
	unsigned int i;
	u64 written;

	for (i = 1; i <= 10; i++) {
		written = branch(t, 1000);
		KUNIT_EXPECT_GT(test, written, 400);
		KUNIT_EXPECT_LT(test, written, 512);
		KUNIT_EXPECT_EQ(test, branch(t, 10), 0);
		KUNIT_EXPECT_TRUE(test, see_all(t).flags & PERF_AUX_FLAG_TRUNCATED);
		restart(t);
	}
	KUNIT_EXPECT_EQ(test, branch(t, 1), 1);
	see_all(t);
	KUNIT_EXPECT_EQ(test, decoded(t), t->branches);
	/* Branches while the event was disabled are missing in the trace. */
	KUNIT_EXPECT_EQ(test, in->missing, 10 * 1000 + 1 - t->branches);
}

/*
 * perf core disables children's events with the parent's. Drivers rely on that for user space's
 * events.
 */
static void truncation_disables_children(struct kunit *test)
{
	struct itrace_test *t = new_itrace(test, PMUK_TARGET_TREE, &small);
	unsigned int i;

	for (i = 1; i <= 5; i++) {
		/* The first task that traces leaves no room for the next one. */
		KUNIT_EXPECT_GT(test, branch(t, 1000), 400);
		KUNIT_EXPECT_TRUE(test, see_all(t).flags & PERF_AUX_FLAG_TRUNCATED);
		restart(t);
		KUNIT_EXPECT_EQ(test, branch(t, 10), 10 * t->p->nr);
		see_all(t);
	}
	KUNIT_EXPECT_EQ(test, decoded(t), t->branches);
}

static void room_runs_out_at_the_edge(struct kunit *test)
{
	struct itrace_test *t = new_itrace(test, PMUK_TARGET_CPU, &small);
	struct pmuk_buffer *b = pmuk_context_buffer(t->ctx, t->p->cpu);
	unsigned int i;

	/*
	 * No reader runs meanwhile. Each part is one branch, and begins aligned. Parts are written
	 * until the area has no room left.
	 */
	for (i = 0; branch(t, 1); i++)
		KUNIT_ASSERT_LT(test, i, 1000);
	KUNIT_EXPECT_EQ(test, i, PAGE_SIZE / BIT(PARTS_ORDER));
	KUNIT_EXPECT_LE(test, pmuk_test_area_stat(test, b).head, PAGE_SIZE);
	see_all(t);
	KUNIT_EXPECT_EQ(test, decoded(t), i);
}

/* The first part takes all the room, and begin returns NULL and a size of 0 for the next one. */
static void no_room_is_no_size(struct kunit *test)
{
	struct itrace_test *t = new_itrace(test, PMUK_TARGET_CPU, &small);

	KUNIT_EXPECT_EQ(test, pmuk_itrace_parts(t->it, 1, PAGE_SIZE - 1), -ENOSPC);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_misled(t->it), 0);
}

/* ---- a flight recorder ---- */

static void snapshot_has_the_newest(struct kunit *test)
{
	struct itrace_test *t = new_itrace(test, PMUK_TARGET_CPU, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .aux = { .nr_pages = 4, .overwrite = true } });
	struct pmuk_buffer *b = pmuk_context_buffer(t->ctx, t->p->cpu);
	struct pmuk_packets_in in;
	struct pmuk_aux_reader r;
	struct pmuk_aux_span span;
	unsigned int i;

	for (i = 1; i <= 20; i++) {
		/* The later ones wrap around the area more than once. */
		KUNIT_EXPECT_EQ(test, branch(t, 377 * i), 377 * i);
		KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
		KUNIT_EXPECT_EQ(test, pmuk_aux_pause(b), 0);
		KUNIT_ASSERT_EQ(test, pmuk_aux_claim(b, &r), 0);
		KUNIT_EXPECT_TRUE(test, pmuk_aux_peek(&r, &span));
		KUNIT_EXPECT_LE(test, span.size, 4 * PAGE_SIZE);
		in = (struct pmuk_packets_in){};
		pmuk_packets_read(&in, span.data, span.size);
		KUNIT_EXPECT_EQ(test, in.bad, 0);
		KUNIT_EXPECT_EQ(test, in.number, t->branches);
		pmuk_aux_release(&r);
		KUNIT_EXPECT_EQ(test, pmuk_aux_resume(b), 0);
		pmuk_ctx_start(test, t->ctx);
	}
}

/* Hardware without scatter-gather can overwrite only an area that is one piece. */
static void overwriting_may_need_one_piece(struct kunit *test)
{
	struct itrace_test *t = new_pmu(test, PERF_PMU_CAP_AUX_NO_SG);
	struct pmuk_buffer_attr attr = { .nr_pages = 1,
					 .aux = { .nr_pages = 4, .overwrite = true } };
	int cpu = pmuk_test_pin_first(test);

	need_perf_core(test);
	new_context(t, &attr);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(t->ctx, cpu), -EINVAL);
	attr.aux.order = 2;
	new_context(t, &attr);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(t->ctx, cpu), 0);
}

/* ---- set up and freed ---- */

static void areas_are_freed(struct kunit *test)
{
	struct itrace_test *t = new_itrace(test, PMUK_TARGET_TASK, &large);

	KUNIT_EXPECT_EQ(test, pmuk_itrace_areas(t->it), num_possible_cpus());
	branch(t, 100);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(t->ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_areas(t->it), 0);
	pmuk_place_load(t->p, t->ctx);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_areas(t->it), num_possible_cpus());
	kunit_release_action(test, pmuk_ctx_put, t->ctx);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_areas(t->it), 0);
}

/* If the setup of any area fails, the load frees the areas that are set up already. */
static void failed_setup_is_undone(struct kunit *test)
{
	struct itrace_test *t = new_pmu(test, 0);
	struct pmuk_target target = { .type = PMUK_TARGET_TASK, .cpu = -1, .task = current };
	unsigned int nr;

	need_perf_core(test);
	new_context(t, &large);
	for (nr = 1; nr <= num_possible_cpus(); nr++) {
		pmuk_itrace_fail(t->it, nr);
		KUNIT_EXPECT_EQ(test, pmuk_load_context(t->ctx, &target), -ENOMEM);
		KUNIT_EXPECT_EQ(test, pmuk_itrace_areas(t->it), 0);
	}
	KUNIT_EXPECT_EQ(test, pmuk_load_context(t->ctx, &target), 0);
}

static struct pmuk_attr event_of(struct itrace_test *t, struct pmuk_buffer *b)
{
	return (struct pmuk_attr){ .type = pmuk_itrace_type(t->it), .config = PARTS_ORDER,
				   .buffer = b };
}

static void *setup_own(void *data, int cpu, void **pages, unsigned int nr_pages, bool overwrite)
{
	return data;
}

/*
 * An area has one producer, though there may be several PMUs. The area of a counter's own buffer
 * has one, too.
 */
static void area_has_one_producer(struct kunit *test)
{
	struct itrace_test *t = new_pmu(test, 0), *other = new_named_pmu(test, "pmuk_itrace2", 0);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_buffer *b;
	struct pmuk_counter *c;
	struct pmuk_attr event;

	need_perf_core(test);
	b = pmuk_test_new_buffer(test, &large, cpu);
	event = event_of(t, b);
	c = pmuk_test_counter(test, &event, cpu, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_areas(t->it), 1);
	event = event_of(other, b);
	pmuk_test_refused(test, &event, cpu, NULL, -EBUSY, "another PMU's event");
	KUNIT_EXPECT_EQ(test, pmuk_itrace_areas(other->it), 0);
	kunit_release_action(test, pmuk_test_put_counter, c);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_areas(t->it), 0);
	pmuk_test_counter(test, &event, cpu, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_areas(other->it), 1);
}

static void area_of_its_own_producer_is_refused(struct kunit *test)
{
	static const struct pmuk_aux_ops ops = { .setup = setup_own };
	struct itrace_test *t = new_pmu(test, 0);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_buffer_attr attr = large;
	struct pmuk_attr event;

	need_perf_core(test);
	attr.aux.ops = &ops;
	attr.aux.data = t;
	event = event_of(t, pmuk_test_new_buffer(test, &attr, cpu));
	pmuk_test_refused(test, &event, pmuk_test_next_cpu(cpu), NULL, -EINVAL, "another CPU");
	pmuk_test_refused(test, &event, cpu, NULL, -EBUSY, "another producer");
	KUNIT_EXPECT_EQ(test, pmuk_itrace_areas(t->it), 0);
}

/* A counter without room is disabled. Its state says so, and it can be enabled again. */
static void truncated_counter_is_off(struct kunit *test)
{
	struct itrace_test *t = new_pmu(test, 0);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_aux_stat before, stat;
	struct pmuk_counter *c;
	struct pmuk_attr event;
	struct pmuk_buffer *b;

	need_perf_core(test);
	b = pmuk_test_new_buffer(test, &small, cpu);
	event = event_of(t, b);
	c = pmuk_test_enabled(test, &event, cpu, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_LT(test, pmuk_itrace_branch(t->it, 1000), 512);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_counter_state(c) == PMUK_COUNTER_OFF));
	/* Without room, the driver does not add the event, and perf core disables it again. */
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_OFF);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_branch(t->it, 10), 0);
	pmuk_test_aux_give_back(test, b);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_branch(t->it, 10), 10);
	/* A paused area refuses the writer, too. That disables the counter, and is counted. */
	before = pmuk_test_area_stat(test, b);
	pmuk_aux_pause(b);
	pmuk_itrace_branch(t->it, 10);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(pmuk_counter_state(c) == PMUK_COUNTER_OFF));
	stat = pmuk_test_area_stat(test, b);
	KUNIT_EXPECT_EQ(test, stat.discarded, before.discarded + 1);
	KUNIT_EXPECT_EQ(test, stat.truncations, before.truncations + 1);
}

static void branch_inside(struct pmuk_place *p)
{
	struct itrace_test *t = p->data;

	p->counted += pmuk_itrace_branch_inside(t->it, p->n);
}

static void only_run(struct pmuk_place *p) { }

static struct pmuk_counter *tasks_counter(struct itrace_test *t)
{
	return t->ctx->insts[0]->active->counters[0];
}

/* The task is switched in while its area takes nothing, and then a few times more. */
static void expect_off_from_the_switch(struct itrace_test *t)
{
	unsigned int i, starts;

	KUNIT_EXPECT_EQ(t->test, branch(t, 10), 0);
	KUNIT_EXPECT_EQ(t->test, pmuk_counter_state(tasks_counter(t)), PMUK_COUNTER_OFF);
	starts = pmuk_itrace_starts(t->it);
	for (i = 0; i < 3; i++)
		pmuk_place_tell(t->p, only_run);
	KUNIT_EXPECT_EQ(t->test, pmuk_itrace_starts(t->it), starts);
}

/*
 * The task does not run while the test runs. So its counter is PMUK_COUNTER_WAITING if enabled, and
 * PMUK_COUNTER_OFF if disabled.
 */
static void expect_to_trace_on(struct itrace_test *t)
{
	unsigned int i;

	for (i = 0; i < 5; i++) {
		pmuk_place_tell(t->p, only_run);
		KUNIT_EXPECT_EQ(t->test, branch(t, 10), 10);
		KUNIT_EXPECT_EQ(t->test, pmuk_counter_state(tasks_counter(t)),
				PMUK_COUNTER_WAITING);
	}
}

/*
 * If the area is full or paused when the task is switched in, the driver does not add the event.
 * perf core disables it, as an event whose area becomes full. It can be enabled again, and then no
 * switch disables it.
 */
static void switched_in_without_room_is_off(struct kunit *test)
{
	struct itrace_test *t = new_itrace(test, PMUK_TARGET_TASK, &small);
	struct pmuk_buffer *b = pmuk_context_buffer(t->ctx, t->p->cpu);

	/* The part takes all the room. It ends when the task is switched out. */
	KUNIT_EXPECT_GT(test, pmuk_place_by_all(t->p, 0, 1000, branch_inside), 400);
	expect_off_from_the_switch(t);
	pmuk_test_aux_give_back(test, b);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(tasks_counter(t)), 0);
	expect_to_trace_on(t);

	KUNIT_EXPECT_EQ(test, pmuk_aux_pause(b), 0);
	expect_off_from_the_switch(t);
	KUNIT_EXPECT_EQ(test, pmuk_aux_resume(b), 0);
	restart(t);
	expect_to_trace_on(t);
}

/* An event may have a buffer without an AUX area. Then it does not trace, and nothing fails. */
static void no_area_no_trace(struct kunit *test)
{
	struct itrace_test *t = new_pmu(test, 0);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_attr event = event_of(t, pmuk_test_new_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1 }, cpu));

	pmuk_test_enabled(test, &event, cpu, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_branch(t->it, 10), 0);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_areas(t->it), 0);
}

/* Like Intel PT, the PMU does not have events of CPUs and of tasks at the same time. */
static void cpus_and_tasks_exclude_each_other(struct kunit *test)
{
	struct itrace_test *t = new_pmu(test, 0);
	const struct pmuk_attr event = event_of(t, NULL);
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *c = pmuk_test_counter(test, &event, cpu, NULL);

	pmuk_test_refused(test, &event, -1, current, -EBUSY, "a task's, and a CPU has one");
	kunit_release_action(test, pmuk_test_put_counter, c);
	c = pmuk_test_counter(test, &event, -1, current);
	pmuk_test_refused(test, &event, cpu, NULL, -EBUSY, "a CPU's, and a task has one");
	kunit_release_action(test, pmuk_test_put_counter, c);
	pmuk_test_counter(test, &event, cpu, NULL);
}

/* ---- hardware that CPUs share, and say the id of once: see pmuk_etm.h ---- */

#define ETM_WORDS	20

struct etm_test {
	struct kunit *test;
	struct pmuk_etm *etm;
	int cpu;
	int other;			/* another CPU, or -1 */
	struct pmuk_context *ctx;
	struct completion child_is_there, child_may_trace;
	unsigned int traced;		/* words, by parent and child */
	bool ok;			/* parent and child have succeeded so far */
};

static struct etm_test *new_etm(struct kunit *test, bool two_cpus)
{
	struct etm_test *t = pmuk_test_zalloc(test, sizeof(*t));

	need_perf_core(test);
	t->test = test;
	t->etm = pmuk_etm_get(test);
	t->cpu = pmuk_test_pin_first(test);
	t->other = two_cpus ? pmuk_test_other_cpu(test, t->cpu) : -1;
	init_completion(&t->child_is_there);
	init_completion(&t->child_may_trace);
	return t;
}

static struct pmuk_context *new_etm_context(struct etm_test *t, const struct pmuk_target *target,
					    const struct pmuk_buffer_attr *buffer)
{
	struct pmuk_context *ctx = pmuk_ctx_create(t->test, &(struct pmuk_context_attr){
		.buffer = *buffer });
	struct pmuk_target copy = *target;
	struct pmuk_pmc pmc = { .type = t->etm->pmu.type };

	KUNIT_ASSERT_EQ(t->test, pmuk_write_pmcs(ctx, &pmc, 1), 1);
	KUNIT_ASSERT_EQ(t->test, pmuk_load_context(ctx, &copy), 0);
	return ctx;
}

static struct pmuk_context *new_etm_on_cpu(struct etm_test *t, int cpu,
					   const struct pmuk_buffer_attr *buffer)
{
	return new_etm_context(t, &(struct pmuk_target){ .type = PMUK_TARGET_CPU, .cpu = cpu },
			       buffer);
}

struct etm_job {
	struct pmuk_etm *etm;
	unsigned int traced;
};

static void etm_trace_here(void *data)
{
	struct etm_job *job = data;

	job->traced = pmuk_etm_trace(job->etm, ETM_WORDS);
}

/* Lets the CPU's tracer write, and returns how many words it has written. */
static unsigned int etm_trace_on(struct etm_test *t, int cpu)
{
	struct etm_job job = { .etm = t->etm };

	smp_call_function_single(cpu, etm_trace_here, &job, true);
	return job.traced;
}

static void etm_trace_and_stop(struct etm_test *t)
{
	KUNIT_EXPECT_EQ(t->test, etm_trace_on(t, t->cpu), ETM_WORDS);
	KUNIT_EXPECT_EQ(t->test, pmuk_stop(t->ctx), 0);
}

/* Counts the words that @cpu has written in all areas of @ctx, and consumes all areas. */
static unsigned int etm_words(struct etm_test *t, struct pmuk_context *ctx, int cpu)
{
	struct pmuk_aux_span span;
	struct pmuk_aux_reader r;
	struct pmuk_buffer *b;
	unsigned int words = 0;
	const u64 *word;
	int at;

	for_each_possible_cpu(at) {
		b = pmuk_context_buffer(ctx, at);
		if (!b || pmuk_aux_claim(b, &r))
			continue;
		if (pmuk_aux_peek(&r, &span)) {
			for (word = span.data; (void *)word < span.data + span.size; word++)
				words += (u32)*word == cpu;
		}
		pmuk_aux_release(&r);
	}
	return words;
}

static u64 etm_truncations(struct pmuk_context *ctx)
{
	struct pmuk_aux_stat stat;
	u64 truncations = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		if (!pmuk_aux_get_stat(pmuk_context_buffer(ctx, cpu), &stat))
			truncations += stat.truncations;
	}
	return truncations;
}

/* Each written word is in an area of the context, and none is missing. */
static void etm_expect_whole(struct etm_test *t, struct pmuk_context *ctx)
{
	KUNIT_EXPECT_EQ(t->test, t->etm->mixed, 0);
	KUNIT_EXPECT_EQ(t->test, t->etm->busy, 0);
	KUNIT_EXPECT_EQ(t->test, etm_truncations(ctx), 0);
	KUNIT_EXPECT_EQ(t->test, etm_words(t, ctx, t->cpu), ETM_WORDS);
	KUNIT_EXPECT_EQ(t->test, etm_words(t, ctx, t->other), ETM_WORDS);
}

static int etm_child(void *data)
{
	unsigned long end = jiffies + PMUK_CTX_PATIENCE;
	struct etm_test *t = data;

	set_cpus_allowed_ptr(current, cpumask_of(t->other));
	complete(&t->child_is_there);
	wait_for_completion(&t->child_may_trace);
	t->traced += pmuk_etm_trace(t->etm, ETM_WORDS);
	/* The parent stops first, as it sleeps until this task exits. This task must not sleep. */
	while (pmuk_etm_tracers(t->etm) != 1 && time_before(jiffies, end))
		cpu_relax();
	t->ok = pmuk_etm_tracers(t->etm) == 1;
	pmuk_exit_child();
	return 0;
}

/* The parent's tracer is the first to use the sink, and the child's tracer is the last. */
static void etm_trace_both(struct pmuk_place *p)
{
	struct etm_test *t = p->data;
	pid_t pid;

	pid = pmuk_fork(etm_child, t);
	if (pid < 0)
		return;
	wait_for_completion(&t->child_is_there);
	t->traced += pmuk_etm_trace(t->etm, ETM_WORDS);
	complete(&t->child_may_trace);
	if (!pmuk_reap(pid))
		t->ok = false;
}

/* A task and its child trace on two CPUs into one sink. No word of either is lost. */
static void children_share_a_sink(struct kunit *test)
{
	struct etm_test *t = new_etm(test, true);
	struct pmuk_place *p = pmuk_new_place(test, NULL, PMUK_TARGET_TREE);

	pmuk_need_fork(test);
	p->data = t;
	t->ctx = new_etm_context(t, &p->target, &large);
	pmuk_ctx_start(test, t->ctx);
	pmuk_place_tell(p, etm_trace_both);
	KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
	KUNIT_EXPECT_TRUE(test, t->ok);
	KUNIT_EXPECT_EQ(test, t->traced, 2 * ETM_WORDS);
	etm_expect_whole(t, t->ctx);
}

/*
 * A worker sets up the area of a CPU that comes back. The area belongs to the same session as the
 * others.
 */
static void session_outlives_hotplug(struct kunit *test)
{
	struct etm_test *t = new_etm(test, true);

	t->ctx = new_etm_context(t, &(struct pmuk_target){ .type = PMUK_TARGET_CPUS }, &large);
	pmuk_ctx_start(test, t->ctx);
	pmuk_test_keep_online(test, t->other);
	if (remove_cpu(t->other))
		kunit_skip(test, "CPU %d cannot go offline", t->other);
	KUNIT_EXPECT_EQ(test, add_cpu(t->other), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(etm_trace_on(t, t->other)));
	etm_trace_and_stop(t);
	etm_expect_whole(t, t->ctx);
}

struct etm_pause {
	struct pmuk_counter *c;
	int ret;
};

static void etm_pause_here(void *data)
{
	struct etm_pause *p = data;

	p->ret = pmuk_counter_pause(p->c);
}

static void etm_resume_here(void *data)
{
	struct etm_pause *p = data;

	p->ret = pmuk_counter_resume(p->c);
}

static void etm_expect_call(struct etm_test *t, enum pmuk_irq_level level, void (*fn)(void *data))
{
	struct etm_pause p = { .c = t->ctx->insts[t->cpu]->active->counters[0] };

	KUNIT_EXPECT_EQ(t->test, pmuk_irq_run(level, fn, &p), 0);
	KUNIT_EXPECT_EQ(t->test, p.ret, 0);
}

/* pmuk pauses the counter, and perf core stops it during the pause. The driver must not notice. */
static void tracer_can_be_paused(struct kunit *test)
{
	struct etm_test *t = new_etm(test, false);
	enum pmuk_irq_level level;

	for (level = PMUK_IRQ_TASK; level <= PMUK_IRQ_HARD; level++) {
		t->ctx = new_etm_on_cpu(t, t->cpu, &large);
		pmuk_ctx_start(test, t->ctx);
		etm_expect_call(t, level, etm_pause_here);
		KUNIT_EXPECT_EQ(test, etm_trace_on(t, t->cpu), 0);
		etm_expect_call(t, level, etm_resume_here);
		KUNIT_EXPECT_EQ(test, etm_trace_on(t, t->cpu), ETM_WORDS);
		etm_expect_call(t, level, etm_pause_here);
		KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
		KUNIT_EXPECT_EQ(test, etm_words(t, t->ctx, t->cpu), ETM_WORDS);
		kunit_release_action(test, pmuk_ctx_put, t->ctx);
	}
}

/* Two contexts that one task has made are two sessions, and do not share the sink. */
static void contexts_are_sessions(struct kunit *test)
{
	struct etm_test *t = new_etm(test, true);
	struct pmuk_context *second;

	t->ctx = new_etm_on_cpu(t, t->cpu, &large);
	second = new_etm_on_cpu(t, t->other, &large);
	pmuk_ctx_start(test, t->ctx);
	pmuk_ctx_start(test, second);
	KUNIT_EXPECT_EQ(test, etm_trace_on(t, t->cpu), ETM_WORDS);
	KUNIT_EXPECT_EQ(test, etm_trace_on(t, t->other), 0);
	KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_stop(second), 0);
	KUNIT_EXPECT_EQ(test, t->etm->busy, 1);
	KUNIT_EXPECT_EQ(test, etm_truncations(second), 1);
	KUNIT_EXPECT_EQ(test, etm_words(t, t->ctx, t->cpu), ETM_WORDS);
	KUNIT_EXPECT_EQ(test, etm_words(t, second, t->cpu), 0);
}

/* Gets the types of the oldest records, and consumes all records. */
static void etm_types(struct kunit *test, struct pmuk_buffer *b, u32 *types, unsigned int nr)
{
	const struct perf_event_header *rec;
	struct pmuk_reader r;
	unsigned int n = 0;

	KUNIT_ASSERT_EQ(test, pmuk_buffer_claim(b, &r), 0);
	pmuk_for_each_record(rec, &r) {
		if (n < nr && rec->type != PERF_RECORD_LOST)
			types[n++] = rec->type;
	}
	pmuk_buffer_release(&r);
}

/* The driver reports the id once. The record waits for room, and comes before the trace itself. */
static void hw_id_waits_for_room(struct kunit *test)
{
	struct etm_test *t = new_etm(test, false);
	struct pmuk_buffer *b;
	u32 types[3] = {};

	t->ctx = new_etm_on_cpu(t, t->cpu, &small);
	b = pmuk_context_buffer(t->ctx, t->cpu);
	fill_records(b);
	pmuk_ctx_start(test, t->ctx);
	pmuk_test_consume(test, b, PERF_RECORD_SAMPLE);
	etm_trace_and_stop(t);
	etm_types(test, b, types, ARRAY_SIZE(types));
	KUNIT_EXPECT_EQ(test, types[0], PERF_RECORD_ITRACE_START);
	KUNIT_EXPECT_EQ(test, types[1], PERF_RECORD_AUX_OUTPUT_HW_ID);
	KUNIT_EXPECT_EQ(test, types[2], PERF_RECORD_AUX);
	pmuk_ctx_start(test, t->ctx);
	etm_trace_and_stop(t);
	etm_types(test, b, types, 1);
	KUNIT_EXPECT_EQ(test, types[0], PERF_RECORD_AUX);
}

struct etm_record {
	struct perf_event_header header;
	u64 words[3];
};

/*
 * Traces while the ring is mapped, and expects three records in its data: the start, the id, and
 * @bytes at @offset.
 */
static void etm_trace_mapped(struct etm_test *t, u64 offset, u64 bytes, u64 flags)
{
	static const u32 types[] = {
		PERF_RECORD_ITRACE_START, PERF_RECORD_AUX_OUTPUT_HW_ID, PERF_RECORD_AUX };
	struct pmuk_buffer *b = pmuk_context_buffer(t->ctx, t->cpu);
	unsigned long addr = pmuk_test_map(t->test, b, 0, 2, PROT_READ | PROT_WRITE);
	struct etm_record rec[ARRAY_SIZE(types)] = {};
	unsigned int i;
	u64 pos = 0;

	pmuk_ctx_start(t->test, t->ctx);
	etm_trace_and_stop(t);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		KUNIT_EXPECT_EQ(t->test, pmuk_test_mapped_record(t->test, b, addr, pos, &rec[i],
								 sizeof(rec[i])), types[i]);
		pos += rec[i].header.size;
	}
	KUNIT_EXPECT_EQ(t->test, rec[1].words[0], PMUK_ETM_HW_ID + t->cpu);
	KUNIT_EXPECT_EQ(t->test, rec[2].words[0], offset);
	KUNIT_EXPECT_EQ(t->test, rec[2].words[1], bytes);
	KUNIT_EXPECT_EQ(t->test, rec[2].words[2], flags);
	pmuk_test_unmap(t->test, addr, 2);
}

/*
 * When the data are unmapped, their records are gone. They are written again into the data that are
 * mapped next.
 */
static void unmapped_records_are_told_again(struct kunit *test)
{
	const struct pmuk_buffer_attr attr = { .nr_pages = 1, .flags = PMUK_BUFFER_USER_TAIL,
					       .aux.nr_pages = 4 };
	struct etm_test *t = new_etm(test, false);
	u64 part = ETM_WORDS * sizeof(u64);

	t->ctx = new_etm_on_cpu(t, t->cpu, &attr);
	etm_trace_mapped(t, 0, part, 0);
	etm_trace_mapped(t, 0, 2 * part, PERF_AUX_FLAG_PARTIAL);
}

static void without_perf_core_it_is_refused(struct kunit *test)
{
	struct itrace_test *t = new_pmu(test, 0);

	if (perf_core_lets(test))
		kunit_skip(test, "this kernel's perf core has AUX output of kernel counters");
	new_context(t, &large);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(t->ctx, pmuk_test_pin_first(test)), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, pmuk_itrace_areas(t->it), 0);
}

static struct kunit_case pmuk_itrace_cases[] = {
	KUNIT_CASE_PARAM(stream_is_whole, places_gen_params),
	KUNIT_CASE(children_write_where_they_are),
	KUNIT_CASE_PARAM(nothing_while_stopped, places_gen_params),
	KUNIT_CASE(trace_says_whose_it_is),
	KUNIT_CASE(whose_it_is_may_be_said_late),
	KUNIT_CASE(truncation_stops_until_started),
	KUNIT_CASE(truncation_disables_children),
	KUNIT_CASE(truncated_counter_is_off),
	KUNIT_CASE(switched_in_without_room_is_off),
	KUNIT_CASE(room_runs_out_at_the_edge),
	KUNIT_CASE(no_room_is_no_size),
	KUNIT_CASE(snapshot_has_the_newest),
	KUNIT_CASE(overwriting_may_need_one_piece),
	KUNIT_CASE(areas_are_freed),
	KUNIT_CASE(failed_setup_is_undone),
	KUNIT_CASE(area_has_one_producer),
	KUNIT_CASE(area_of_its_own_producer_is_refused),
	KUNIT_CASE(no_area_no_trace),
	KUNIT_CASE(cpus_and_tasks_exclude_each_other),
	KUNIT_CASE(children_share_a_sink),
	KUNIT_CASE(session_outlives_hotplug),
	KUNIT_CASE(tracer_can_be_paused),
	KUNIT_CASE(contexts_are_sessions),
	KUNIT_CASE(hw_id_waits_for_room),
	KUNIT_CASE(unmapped_records_are_told_again),
	KUNIT_CASE(without_perf_core_it_is_refused),
	{}
};

PMUK_SUITE(pmuk_itrace, pmuk_test_init, "KUnit tests for pmuk: PMUs that trace");
