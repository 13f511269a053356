// SPDX-License-Identifier: GPL-2.0
/*
 * Probes in the kernel hear the tracepoints of contexts. Each overflow, lost record and turn is
 * reported exactly once, with the right context, CPU, set and counter.
 */
#include <linux/notifier.h>
#include <linux/tracepoint.h>
#include <trace/events/pmu_kapi.h>

#include "pmuk_ctx.h"
#include "pmuk_parse.h"
#include "pmuk_suite.h"

#define PERIOD		100
#define COUNTERS	2
#define RECORD		16	/* size: a header and the IP */

/*
 * Holds what the tracepoints reported about a CPU. The CPU's overflows write it, or the holder of
 * the lock of the CPU's instance.
 */
struct heard_cpu {
	atomic64_t overflows[COUNTERS];
	atomic64_t lost;
	u64 switches;
	u64 switch_ns;
	u16 from, to;		/* sets of the latest switch */
};

/* Holds what the tracepoints reported about the first context that the test case creates. */
struct ear {
	struct task_struct *task;	/* creates the context */
	u64 id;
	unsigned int creates, loads, closes;
	int flags, load, close;		/* latest values from tracepoints */
	atomic_t odd;			/* overflows with wrong arguments */
	struct heard_cpu *cpus;
};

/* ---- probes ---- */

static void hear_create(void *data, u64 id, int value)
{
	struct ear *e = data;

	if (current != e->task || e->creates++)
		return;
	e->id = id;
	e->flags = value;
}

static void hear_value(struct ear *e, u64 id, int value, unsigned int *times, int *latest)
{
	if (id != e->id)
		return;
	(*times)++;
	*latest = value;
}

static void hear_load(void *data, u64 id, int value)
{
	struct ear *e = data;

	hear_value(e, id, value, &e->loads, &e->load);
}

static void hear_close(void *data, u64 id, int value)
{
	struct ear *e = data;

	hear_value(e, id, value, &e->closes, &e->close);
}

static void hear_switch(void *data, u64 id, int cpu, u16 from, u16 to, u64 ns)
{
	struct ear *e = data;

	if (id != e->id)
		return;
	e->cpus[cpu].switches++;
	e->cpus[cpu].switch_ns += ns;
	e->cpus[cpu].from = from;
	e->cpus[cpu].to = to;
}

static void hear_overflow(void *data, u64 id, int cpu, u16 set, u16 num, u32 action)
{
	struct ear *e = data;

	if (id != e->id)
		return;
	if (cpu != raw_smp_processor_id() || set || num >= COUNTERS ||
	    action != (PMUK_FORMAT_NOTIFY | PMUK_FORMAT_RESET))
		atomic_inc(&e->odd);
	else
		atomic64_inc(&e->cpus[cpu].overflows[num]);
}

static void hear_lost(void *data, u64 id, int cpu, u64 count)
{
	struct ear *e = data;

	if (id == e->id)
		atomic64_add(count, &e->cpus[cpu].lost);
}

static struct {
	const char *name;
	void *probe;
	struct tracepoint *tp;
} points[] = {
	{ "pmuk_context_create", hear_create },
	{ "pmuk_context_load", hear_load },
	{ "pmuk_context_close", hear_close },
	{ "pmuk_switch", hear_switch },
	{ "pmuk_overflow", hear_overflow },
	{ "pmuk_lost", hear_lost },
};

/* The function does not compile unless each probe takes the arguments of its tracepoint. */
static void __maybe_unused probes_fit(void)
{
	check_trace_callback_type_pmuk_context_create(hear_create);
	check_trace_callback_type_pmuk_context_load(hear_load);
	check_trace_callback_type_pmuk_context_close(hear_close);
	check_trace_callback_type_pmuk_switch(hear_switch);
	check_trace_callback_type_pmuk_overflow(hear_overflow);
	check_trace_callback_type_pmuk_lost(hear_lost);
}

/* ---- where they are: in the kernel, or in a module ---- */

static void find_point(struct tracepoint *tp, void *unused)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(points); i++) {
		if (!strcmp(tp->name, points[i].name))
			points[i].tp = tp;
	}
}

#ifdef CONFIG_MODULES

static int find_in_module(struct notifier_block *nb, unsigned long action, void *data)
{
	struct tp_module *found = data;
	unsigned int i;

	for (i = 0; action == MODULE_STATE_COMING && i < found->mod->num_tracepoints; i++)
		find_point(tracepoint_ptr_deref(&found->mod->tracepoints_ptrs[i]), NULL);
	return NOTIFY_OK;
}

/* Registering the notifier calls it for each module that is loaded. */
static void find_in_modules(struct kunit *test)
{
	struct notifier_block nb = { .notifier_call = find_in_module };

	KUNIT_ASSERT_EQ(test, register_tracepoint_module_notifier(&nb), 0);
	unregister_tracepoint_module_notifier(&nb);
}

#else /* !CONFIG_MODULES */

static void find_in_modules(struct kunit *test) { }

#endif /* CONFIG_MODULES */

static void find_points(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(points); i++)
		points[i].tp = NULL;
	for_each_kernel_tracepoint(find_point, NULL);
	find_in_modules(test);
	for (i = 0; i < ARRAY_SIZE(points); i++)
		KUNIT_ASSERT_NOT_NULL_MSG(test, points[i].tp, "%s", points[i].name);
}

/* ---- a test case listens ---- */

static void stop_listening(void *data)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(points); i++)
		tracepoint_probe_unregister(points[i].tp, points[i].probe, data);
	tracepoint_synchronize_unregister();
}

static struct ear *listen(struct kunit *test)
{
	struct ear *e = pmuk_test_zalloc(test, sizeof(*e));
	int ret = 0;
	unsigned int i;

	e->task = current;
	e->cpus = pmuk_test_zalloc(test, nr_cpu_ids * sizeof(*e->cpus));
	find_points(test);
	for (i = 0; i < ARRAY_SIZE(points); i++)
		ret = ret ?: tracepoint_probe_register(points[i].tp, points[i].probe, e);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, stop_listening, e), 0);
	KUNIT_ASSERT_EQ(test, ret, 0);
	return e;
}

static const struct pmuk_perf_format format = { .sample_type = PERF_SAMPLE_IP };

/* Returns a started context on the whole machine. Each overflow makes a record and a message. */
static struct pmuk_context *new_sampler(struct kunit *test, struct pmuk_sim *sim)
{
	const struct pmuk_context_attr attr = {
		.buffer = { .nr_pages = 1 },
		.format_arg = &format,
		.format_arg_size = sizeof(format),
	};
	struct pmuk_pmd pmd = { .short_reset = PERIOD, .flags = PMUK_PMD_NOTIFY };
	struct pmuk_context *ctx = pmuk_ctx_create(test, &attr);

	for (pmd.num = 0; pmd.num < COUNTERS; pmd.num++)
		pmuk_ctx_add_pmd(test, ctx, sim, pmd.num, &pmd);
	pmuk_ctx_run(test, ctx, -1);
	return ctx;
}

static void feed(struct kunit *test, struct pmuk_sim *sim, int cpu, u16 num, u64 overflows)
{
	u64 n = overflows * PERIOD;

	KUNIT_EXPECT_EQ(test, pmuk_ctx_feed(sim, cpu, num, n), n);
}

/*
 * Each counter of each CPU has another number of overflows. Tracepoints, records and messages
 * agree.
 */
static void overflows_are_told(struct kunit *test)
{
	struct ear *e = listen(test);
	struct pmuk_sim *sim = pmuk_test_sim(test, 4, 32);
	struct pmuk_context *ctx = new_sampler(test, sim);
	struct pmuk_buffer_stat stat;
	u64 n, all = 0;
	int cpu;

	for_each_online_cpu(cpu) {
		n = 3 * cpu + 1;
		feed(test, sim, cpu, 0, n);
		feed(test, sim, cpu, 1, n + 1);
		KUNIT_EXPECT_EQ(test, atomic64_read(&e->cpus[cpu].overflows[0]), n);
		KUNIT_EXPECT_EQ(test, atomic64_read(&e->cpus[cpu].overflows[1]), n + 1);
		stat = pmuk_ctx_stat(test, ctx, cpu);
		KUNIT_EXPECT_EQ(test, stat.head, (2 * n + 1) * RECORD);
		KUNIT_EXPECT_EQ(test, stat.lost, 0);
		KUNIT_EXPECT_EQ(test, atomic64_read(&e->cpus[cpu].lost), 0);
		all += 2 * n + 1;
	}
	KUNIT_EXPECT_EQ(test, pmuk_ctx_told(ctx, PMUK_MSG_OVERFLOW), all);
	KUNIT_EXPECT_EQ(test, atomic_read(&e->odd), 0);
}

/* Each context's overflows are reported with its own id. */
static void contexts_are_told_apart(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 4, 32);
	struct ear *e = listen(test), *other = listen(test);
	struct pmuk_context *ctx = new_sampler(test, sim), *second;
	int cpu = cpumask_first(cpu_online_mask);

	KUNIT_EXPECT_EQ(test, other->id, e->id);
	feed(test, sim, cpu, 0, 5);
	KUNIT_EXPECT_EQ(test, pmuk_stop(ctx), 0);
	other->creates = 0;
	second = new_sampler(test, sim);
	KUNIT_EXPECT_GT(test, other->id, e->id);
	feed(test, sim, cpu, 0, 2);
	KUNIT_EXPECT_EQ(test, pmuk_stop(second), 0);
	pmuk_ctx_start(test, ctx);
	feed(test, sim, cpu, 0, 3);
	KUNIT_EXPECT_EQ(test, atomic64_read(&e->cpus[cpu].overflows[0]), 8);
	KUNIT_EXPECT_EQ(test, atomic64_read(&other->cpus[cpu].overflows[0]), 5 + 2);
}

/* Reads all records of a buffer. Returns how many lost records they report. */
static u64 empty(struct kunit *test, struct pmuk_context *ctx, int cpu)
{
	struct pmuk_parsed last;
	u64 lost = 0;

	pmuk_parse_buffer(test, pmuk_context_buffer(ctx, cpu), &format, &last, 1, &lost);
	return lost;
}

/*
 * The first of some lost records is reported at once, and the others with the next wakeup. Then
 * tracepoint, messages, records and the buffer agree.
 */
static void lost_records_are_told(struct kunit *test)
{
	struct ear *e = listen(test);
	struct pmuk_sim *sim = pmuk_test_sim(test, 4, 32);
	struct pmuk_context *ctx = new_sampler(test, sim);
	unsigned int fits = PAGE_SIZE / RECORD;
	u64 lost, all = 0;
	int cpu;

	for_each_online_cpu(cpu) {
		atomic64_t *heard = &e->cpus[cpu].lost;

		lost = 5 * cpu + 7;
		feed(test, sim, cpu, 0, fits + lost);
		KUNIT_EXPECT_EQ(test, pmuk_ctx_stat(test, ctx, cpu).lost, lost);
		KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(atomic64_read(heard)));
		KUNIT_EXPECT_EQ(test, empty(test, ctx, cpu), 0);
		feed(test, sim, cpu, 0, fits / 2 + 1);
		KUNIT_EXPECT_EQ(test, empty(test, ctx, cpu), lost);
		KUNIT_EXPECT_EQ(test, pmuk_ctx_stat(test, ctx, cpu).lost, lost);
		KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes((u64)atomic64_read(heard) == lost));
		KUNIT_EXPECT_EQ(test, atomic64_read(&e->cpus[cpu].overflows[0]),
				fits + lost + fits / 2 + 1);
		all += lost;
	}
	KUNIT_EXPECT_EQ(test, pmuk_ctx_told(ctx, PMUK_MSG_LOST), all);
}

static void life_is_told(struct kunit *test)
{
	const struct pmuk_context_attr attr = { .flags = PMUK_CTX_MASK };
	struct ear *e = listen(test);
	struct pmuk_sim *sim = pmuk_test_sim(test, 4, 32);
	struct pmuk_context *ctx = pmuk_ctx_create(test, &attr);

	KUNIT_EXPECT_EQ(test, e->creates, 1);
	KUNIT_EXPECT_GT(test, e->id, 0);
	KUNIT_EXPECT_EQ(test, e->flags, PMUK_CTX_MASK);
	KUNIT_EXPECT_EQ(test, e->loads, 0);

	pmuk_ctx_add(test, ctx, sim, 0, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(ctx, -1), 0);
	KUNIT_EXPECT_EQ(test, e->loads, 1);
	KUNIT_EXPECT_EQ(test, e->load, 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(ctx, -1), -EBUSY);
	KUNIT_EXPECT_EQ(test, e->loads, 2);
	KUNIT_EXPECT_EQ(test, e->load, -EBUSY);

	KUNIT_EXPECT_EQ(test, e->closes, 0);
	kunit_release_action(test, pmuk_ctx_put, ctx);
	KUNIT_EXPECT_EQ(test, e->closes, 1);
	KUNIT_EXPECT_EQ(test, e->close, 0);
	KUNIT_EXPECT_EQ(test, e->creates, 1);
}

/*
 * Each switch is reported with its CPU and both sets. All switches of a CPU take no longer than the
 * test.
 */
static void turns_are_told(struct kunit *test)
{
	static const u16 turns[] = { 7, 3, 0, 7 };
	struct ear *e = listen(test);
	struct pmuk_sim *sim = pmuk_test_sim(test, 4, 32);
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	u64 start;
	unsigned int i;
	int cpu;

	pmuk_ctx_add_set(test, ctx, 3, 0);
	pmuk_ctx_add_set(test, ctx, 7, 0);
	for (i = 0; i < 3; i++)
		pmuk_ctx_add(test, ctx, sim, turns[i], 0, 0, 0);
	pmuk_ctx_run(test, ctx, -1);
	start = ktime_get_ns();
	for (i = 0; i < ARRAY_SIZE(turns); i++) {
		KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(ctx, turns[i]), 0);
		for_each_online_cpu(cpu) {
			KUNIT_EXPECT_EQ(test, e->cpus[cpu].switches, i + 1);
			KUNIT_EXPECT_EQ(test, e->cpus[cpu].from, i ? turns[i - 1] : 0);
			KUNIT_EXPECT_EQ(test, e->cpus[cpu].to, turns[i]);
		}
	}
	for_each_online_cpu(cpu) {
		KUNIT_EXPECT_GT(test, e->cpus[cpu].switch_ns, 0);
		KUNIT_EXPECT_LE(test, e->cpus[cpu].switch_ns, ktime_get_ns() - start);
	}
}

static struct kunit_case pmuk_trace_cases[] = {
	KUNIT_CASE(overflows_are_told),
	KUNIT_CASE(contexts_are_told_apart),
	KUNIT_CASE(lost_records_are_told),
	KUNIT_CASE(life_is_told),
	KUNIT_CASE(turns_are_told),
	{}
};

PMUK_SUITE(pmuk_trace, pmuk_test_init, "KUnit tests of pmuk's tracepoints");
