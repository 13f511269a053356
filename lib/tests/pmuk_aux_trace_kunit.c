// SPDX-License-Identifier: GPL-2.0
/*
 * The simulated PMU writes trace to AUX areas, on each kind of target. Packets are numbered: the
 * packets that are decoded, and those that are reported as missing, add up to all branches.
 */
#include <kunit/test.h>
#include <linux/cpu.h>
#include <linux/moduleparam.h>
#include <linux/sizes.h>

#include "pmuk_ctx.h"
#include "pmuk_packets.h"
#include "pmuk_place.h"
#include "pmuk_suite.h"

static unsigned int mib = 16;
module_param(mib, uint, 0444);
MODULE_PARM_DESC(mib, "How much is streamed from one CPU to another, in MiB");

/* Holds a context that traces, and a decoder for each CPU's area. */
struct trace {
	struct kunit *test;
	struct pmuk_place *p;
	struct pmuk_context *ctx;
	struct pmuk_packets_in *in;	/* by CPU */
	u64 bytes;			/* bytes that were read */
};

static struct trace *new_loaded_trace(struct kunit *test, struct pmuk_place *p,
				      const struct pmuk_buffer_attr *buffer)
{
	struct pmuk_pmc pmc = { .type = pmuk_sim_type(p->sim), .config1 = PMUK_SIM_TRACE };
	struct trace *t = pmuk_test_zalloc(test, sizeof(*t));

	t->test = test;
	t->p = p;
	t->in = pmuk_test_zalloc(test, nr_cpu_ids * sizeof(*t->in));
	t->ctx = pmuk_ctx_create(test, &(struct pmuk_context_attr){ .buffer = *buffer });
	KUNIT_ASSERT_EQ(test, pmuk_write_pmcs(t->ctx, &pmc, 1), 1);
	pmuk_place_load(p, t->ctx);
	return t;
}

static struct trace *new_trace(struct kunit *test, struct pmuk_place *p,
			       const struct pmuk_buffer_attr *buffer)
{
	struct trace *t = new_loaded_trace(test, p, buffer);

	pmuk_ctx_start(test, t->ctx);
	return t;
}

static struct trace *new_trace_here(struct kunit *test, const struct pmuk_buffer_attr *buffer)
{
	return new_trace(test, pmuk_new_place(test, pmuk_test_sim(test, 2, 32), PMUK_TARGET_CPU),
			 buffer);
}

static void branch_here(struct pmuk_place *p)
{
	p->counted += pmuk_sim_write_trace(p->sim, p->n);
}

/* Lets @n branches happen in each place, and returns how many of them were written. */
static u64 branch(struct pmuk_place *p, u64 n)
{
	return pmuk_place_by_all(p, 0, n, branch_here);
}

static void decode(struct trace *t, int cpu)
{
	struct pmuk_buffer *b = pmuk_context_buffer(t->ctx, cpu);
	struct pmuk_aux_reader r;
	struct pmuk_aux_span span;
	int ret;

	if (!b)
		return;
	ret = pmuk_aux_claim(b, &r);
	KUNIT_EXPECT_EQ(t->test, ret, 0);
	if (ret)
		return;
	while (pmuk_aux_peek(&r, &span)) {
		pmuk_packets_read(&t->in[cpu], span.data, span.size);
		pmuk_aux_consume(&r, span.size);
		t->bytes += span.size;
	}
	pmuk_aux_release(&r);
}

/* Decodes all areas. Returns how many branches were decoded since the test began. */
static u64 decode_all(struct trace *t)
{
	u64 branches = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		decode(t, cpu);
		branches += t->in[cpu].branches;
		KUNIT_EXPECT_EQ_MSG(t->test, t->in[cpu].bad, 0, "CPU %d", cpu);
	}
	return branches;
}

static u64 missing(struct trace *t)
{
	u64 missing = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		missing += t->in[cpu].missing;
	return missing;
}

static struct pmuk_aux_stat stat_of(struct trace *t, int cpu)
{
	return pmuk_test_area_stat(t->test, pmuk_context_buffer(t->ctx, cpu));
}

static const struct pmuk_buffer_attr small = { .nr_pages = 1, .aux = { .nr_pages = 1 } };
static const struct pmuk_buffer_attr large = { .nr_pages = 4, .aux = { .nr_pages = 16 } };

/* ---- each kind of target ---- */

/* The trace of a task and its children goes to the areas of the CPUs where they run. */
static void stream_is_whole(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	struct trace *t = new_trace(test, p, &large);
	u64 written = 0;
	unsigned int i;

	for (i = 1; i <= 50; i++) {
		written += branch(p, 37 * i);
		KUNIT_EXPECT_EQ(test, written, 37 * i * (i + 1) / 2 * p->nr);
		KUNIT_EXPECT_EQ(test, decode_all(t), written);
	}
	KUNIT_EXPECT_EQ(test, missing(t), 0);
}

/* The trace of a task that moves is in the areas of the CPUs where it ran. */
static void task_that_moves_is_followed(struct kunit *test)
{
	struct pmuk_place *p = pmuk_new_place(test, pmuk_test_sim(test, 2, 32), PMUK_TARGET_TASK);
	struct trace *t = new_trace(test, p, &large);
	unsigned int i, rounds = 6;
	u64 before;

	for (i = 0; i < rounds * num_online_cpus(); i++) {
		before = t->in[p->cpu].branches;
		KUNIT_EXPECT_EQ(test, branch(p, 100), 100);
		decode_all(t);
		KUNIT_EXPECT_EQ(test, t->in[p->cpu].branches, before + 100);
		pmuk_place_tell(p, pmuk_place_move_on);
	}
	KUNIT_EXPECT_EQ(test, decode_all(t), 100 * rounds * num_online_cpus());
	KUNIT_EXPECT_EQ(test, missing(t), 0);
}

/* Moves the child to another CPU than its parent's, where it writes that CPU's area. */
static void branch_apart(struct pmuk_place *p)
{
	pmuk_place_apart(p);
	branch_here(p);
}

static void children_write_where_they_are(struct kunit *test)
{
	struct pmuk_place *p = pmuk_new_place(test, pmuk_test_sim(test, 2, 32), PMUK_TARGET_TREE);
	int other = pmuk_test_other_cpu(test, p->cpu);
	struct trace *t = new_trace(test, p, &large);
	unsigned int i;

	pmuk_need_fork(test);
	for (i = 1; i <= 10; i++) {
		KUNIT_EXPECT_EQ(test, pmuk_place_by_tasks(p, 0, 100, branch_apart), 200);
		decode_all(t);
		KUNIT_EXPECT_EQ(test, t->in[p->cpu].branches, 100 * i);
		KUNIT_EXPECT_EQ(test, t->in[other].branches, 100 * i);
	}
	KUNIT_EXPECT_EQ(test, missing(t), 0);
}

/* ---- what is missing ---- */

/*
 * Bytes that did not fit are reported by the area, by records, by messages, and by the trace
 * itself.
 */
static void truncation_is_told(struct kunit *test)
{
	struct trace *t = new_trace_here(test, &small);
	struct pmuk_aux_stat stat;
	u64 happened = 0, written = 0;
	unsigned int i;

	for (i = 1; i < 100; i++) {
		written += branch(t->p, 100 * i);
		happened += 100 * i;
		decode_all(t);
	}
	stat = stat_of(t, t->p->cpu);
	KUNIT_EXPECT_GT(test, stat.truncations, 50);
	KUNIT_EXPECT_EQ(test, stat.truncated, (happened - written) * sizeof(u64));
	KUNIT_EXPECT_EQ(test, decode_all(t), written);
	/* The record of the next part reports the last loss. */
	written += branch(t->p, 1);
	KUNIT_EXPECT_EQ(test, decode_all(t), written);
	KUNIT_EXPECT_EQ(test, missing(t), happened + 1 - written);
	KUNIT_EXPECT_EQ(test, stat_of(t, t->p->cpu).head, t->bytes);
}

struct told {
	u64 bytes;
	u64 truncated;
	u64 others;
};

static struct told read_records(struct trace *t, int cpu)
{
	const struct perf_event_header *rec;
	struct told told = {};
	struct pmuk_reader r;
	const u64 *words;

	KUNIT_ASSERT_EQ(t->test, pmuk_buffer_claim(pmuk_context_buffer(t->ctx, cpu), &r), 0);
	pmuk_for_each_record(rec, &r) {
		words = (const u64 *)(rec + 1);
		if (rec->type != PERF_RECORD_AUX) {
			told.others++;
			continue;
		}
		told.bytes += words[1];
		told.truncated += !!(words[2] & PERF_AUX_FLAG_TRUNCATED);
	}
	pmuk_buffer_release(&r);
	return told;
}

static void records_tell_of_all_bytes(struct kunit *test)
{
	struct trace *t = new_trace_here(test, &small);
	struct told told, sum = {};
	unsigned int i;

	for (i = 0; i < 200; i++) {
		branch(t->p, 300);
		if (i % 4)
			decode_all(t);
		told = read_records(t, t->p->cpu);
		sum.bytes += told.bytes;
		sum.truncated += told.truncated;
		sum.others += told.others;
	}
	KUNIT_EXPECT_EQ(test, sum.bytes, stat_of(t, t->p->cpu).head);
	KUNIT_EXPECT_GE(test, sum.truncated, 40);
	KUNIT_EXPECT_EQ(test, sum.others, 0);
}

/* The PMU writes no trace before the start, while the context is stopped, and after the unload. */
static void nothing_while_stopped(struct kunit *test)
{
	struct pmuk_place *p = pmuk_place_of(test);
	struct trace *t = new_loaded_trace(test, p, &large);
	u64 all = 10 * p->nr;

	KUNIT_EXPECT_EQ(test, branch(p, 10), 0);
	pmuk_ctx_start(test, t->ctx);
	KUNIT_EXPECT_EQ(test, branch(p, 10), all);
	KUNIT_EXPECT_EQ(test, pmuk_stop(t->ctx), 0);
	KUNIT_EXPECT_EQ(test, branch(p, 10), 0);
	pmuk_ctx_start(test, t->ctx);
	KUNIT_EXPECT_EQ(test, branch(p, 10), all);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(t->ctx), 0);
	KUNIT_EXPECT_EQ(test, branch(p, 10), 0);
	KUNIT_EXPECT_EQ(test, decode_all(t), 2 * all);
}

/* A pinned counter that does not fit is refused, whether its buffer has an AUX area or not. */
static void pinned_counters_are_tried(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct pmuk_attr attr = { .type = pmuk_sim_type(sim),
				  .flags = PMUK_PINNED | PMUK_PRIVATE };
	int cpu = pmuk_test_pin_first(test), i;

	attr.buffer = pmuk_test_new_buffer(test, &large, cpu);
	for (i = 0; i < 2; i++)
		pmuk_test_enabled(test, &attr, cpu, NULL);
	pmuk_test_refused(test, &attr, cpu, NULL, -ENOSPC, "one more");
}

/* ---- a flight recorder ---- */

static void pause_in_nmi(void *data)
{
	pmuk_aux_pause(data);
}

/*
 * A snapshot that is frozen from an NMI has the newest bytes. After the snapshot the area goes on.
 */
static void snapshot_has_the_newest(struct kunit *test)
{
	struct trace *t = new_trace_here(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .aux = { .nr_pages = 4, .overwrite = true } });
	struct pmuk_packets_in *in = &t->in[t->p->cpu];
	struct pmuk_buffer *b = pmuk_context_buffer(t->ctx, t->p->cpu);
	struct pmuk_aux_reader r;
	unsigned int i;

	pmuk_test_need_nmi(test);
	for (i = 1; i <= 20; i++) {
		/* Each part may be as large as the area, and the next part is open already. */
		KUNIT_EXPECT_EQ(test, branch(t->p, 1500), 1500);
		KUNIT_EXPECT_EQ(test, branch(t->p, 777), 777);
		KUNIT_EXPECT_EQ(test, pmuk_irq_run(PMUK_IRQ_NMI, pause_in_nmi, b), 0);
		KUNIT_EXPECT_EQ(test, pmuk_aux_claim(b, &r), -EBUSY);
		KUNIT_EXPECT_EQ(test, branch(t->p, 1), 1);
		*in = (struct pmuk_packets_in){};
		decode(t, t->p->cpu);
		KUNIT_EXPECT_EQ(test, in->bad, 0);
		KUNIT_EXPECT_EQ(test, in->number, i * 2278);
		KUNIT_EXPECT_GT(test, in->branches, 1000);
		KUNIT_EXPECT_EQ(test, pmuk_aux_resume(b), 0);
	}
}

/* ---- a CPU that goes ---- */

static void cpu_that_goes_comes_back(struct kunit *test)
{
	struct pmuk_place *p = pmuk_new_place(test, pmuk_test_sim(test, 2, 32), PMUK_TARGET_CPUS);
	struct trace *t = new_trace(test, p, &large);
	int cpu = pmuk_test_other_cpu(test, p->cpu);
	u64 all = num_online_cpus(), written = 0, once;

	written += branch(p, 10);
	KUNIT_EXPECT_EQ(test, written, 10 * all);
	KUNIT_ASSERT_EQ(test, remove_cpu(cpu), 0);
	written += branch(p, 10);
	KUNIT_EXPECT_EQ(test, written, 10 * all + 10 * (all - 1));
	KUNIT_ASSERT_EQ(test, add_cpu(cpu), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes((once = branch(p, 10), written += once,
						once == 10 * all)));
	KUNIT_EXPECT_EQ(test, decode_all(t), written);
	KUNIT_EXPECT_EQ(test, stat_of(t, cpu).nested, 0);
}

/* ---- much ---- */

static void decode_its_cpu(void *data)
{
	struct trace *t = data;

	decode(t, t->p->cpu);
}

#define AT_ONCE		512	/* branches between two checks */

/* Each byte that is produced is consumed, with the right value, or is counted as truncated. */
static void stream_from_cpu_to_cpu(struct kunit *test)
{
	struct trace *t = new_trace_here(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .mode = PMUK_BUFFER_OVERWRITE, .aux = { .nr_pages = 64 } });
	int other = pmuk_test_other_cpu(test, t->p->cpu);
	struct pmuk_loop *reader;
	u64 happened = 0, written = 0, wanted = (u64)mib * SZ_1M / sizeof(u64);
	struct pmuk_test_progress progress = {};

	/* The area overflows, as the reader has not started yet. */
	for (; happened < 100 * AT_ONCE; happened += AT_ONCE)
		written += pmuk_sim_write_trace(t->p->sim, AT_ONCE);
	KUNIT_EXPECT_LT(test, written, happened);
	reader = pmuk_loop_start(test, other, decode_its_cpu, t);
	for (; written < wanted && pmuk_test_goes_on(&progress, written); happened += AT_ONCE) {
		written += pmuk_sim_write_trace(t->p->sim, AT_ONCE);
		cond_resched();
	}
	pmuk_loop_stop(test, reader);
	KUNIT_EXPECT_GE(test, written, wanted);
	KUNIT_EXPECT_EQ(test, decode_all(t), written);
	KUNIT_EXPECT_EQ(test, stat_of(t, t->p->cpu).truncated, (happened - written) * sizeof(u64));
	KUNIT_EXPECT_EQ(test, pmuk_sim_write_trace(t->p->sim, 1), 1);
	KUNIT_EXPECT_EQ(test, decode_all(t), written + 1);
	KUNIT_EXPECT_EQ(test, missing(t), happened - written);
	kunit_info(test, "%llu bytes read, %llu truncated", t->bytes,
		   stat_of(t, t->p->cpu).truncated);
}

KUNIT_ARRAY_PARAM_DESC(places, pmuk_place_kinds, name);

static struct kunit_case pmuk_aux_trace_cases[] = {
	KUNIT_CASE_PARAM(stream_is_whole, places_gen_params),
	KUNIT_CASE(task_that_moves_is_followed),
	KUNIT_CASE(children_write_where_they_are),
	KUNIT_CASE(truncation_is_told),
	KUNIT_CASE(records_tell_of_all_bytes),
	KUNIT_CASE_PARAM(nothing_while_stopped, places_gen_params),
	KUNIT_CASE(pinned_counters_are_tried),
	KUNIT_CASE(snapshot_has_the_newest),
	KUNIT_CASE_SLOW(cpu_that_goes_comes_back),
	KUNIT_CASE_SLOW(stream_from_cpu_to_cpu),
	{}
};

PMUK_SUITE(pmuk_aux_trace, pmuk_test_init, "KUnit tests for pmuk: AUX areas that a PMU writes");
