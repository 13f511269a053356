// SPDX-License-Identifier: GPL-2.0
/*
 * Measures contexts: <debugfs>/pmuk_bench_context/run. Two and four counters read at once;
 * four started, stopped, exchanged for four others, loaded; on one CPU, beside the same done by
 * hand with perf's kernel API. Reads are measured as in pmuk_bench.h, the others one at a time.
 * The context's calls are also measured on two CPUs and more (ctx_load_2cpu), and with eight sets
 * of four and more (ctx_load_8set).
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/log2.h>

#include "../../kernel/pmu_kapi/counter.h"
#include "pmuk_bench.h"

#define COUNTERS	4
#define READS		1000
#define GROWTH_TURNS	5
#define SETS_MAX	128

struct contexts {
	struct pmuk_context *ctx;
	struct pmuk_target target;
	struct perf_event *events[2 * COUNTERS];
	u64 counts[COUNTERS];
	struct seq_file *m;
};

/* ---- reads ---- */

static __always_inline int read_group(struct contexts *c, unsigned int counters, unsigned int n)
{
	int ret;

	guard(preempt)();
	do {
		ret = pmuk_read_local(c->ctx, c->counts, counters);
	} while (--n);
	return ret;
}

static int group_pmuk(void *what, unsigned int n)
{
	return read_group(what, COUNTERS, n);
}

/* Reads as a task that can be preempted, and that is bound to its CPU. */
static int group_task(void *what, unsigned int n)
{
	struct contexts *c = what;
	int ret;

	do {
		ret = pmuk_read_local(c->ctx, c->counts, COUNTERS);
	} while (--n);
	return ret;
}

/* Reads as pmuk_sched does in the scheduler, without checks of the arguments. */
static int group_inline(void *what, unsigned int n)
{
	struct contexts *c = what;
	int ret = 0;

	guard(preempt)();
	do {
		if (!pmuk_group_read(this_cpu_ptr(pmuk_groups(c->ctx)), c->counts, COUNTERS, false))
			ret = pmuk_read_local(c->ctx, c->counts, COUNTERS);
	} while (--n);
	return ret;
}

static int group_perf(void *what, unsigned int n)
{
	struct contexts *c = what;
	u64 enabled, running;
	unsigned int i;

	do {
		for (i = 0; i < COUNTERS; i++)
			c->counts[i] = perf_event_read_value(c->events[i], &enabled, &running);
	} while (--n);
	return 0;
}

static int group_two(void *what, unsigned int n)
{
	return read_group(what, 2, n);
}

/* Not at once: a PMU has no room for all. */
static const struct bench_way ctx_ways[] = {
	{ "empty", NULL, bench_empty },
	{ "group_pmuk", NULL, group_pmuk },
	{ "group_task", NULL, group_task },
	{ "group_inline", NULL, group_inline },
};

static const struct bench_way two_ways[] = {
	{ "empty", NULL, bench_empty },
	{ "group2", NULL, group_two },
};

static const struct bench_way hand_ways[] = {
	{ "empty", NULL, bench_empty },
	{ "group_perf", NULL, group_perf },
};

/* ---- what sleeps ---- */

struct step {
	const char *name;
	int (*call)(struct contexts *c);
};

/* Defines a step that makes one call. */
#define STEP(side, name, call) \
	static int side##_##name(struct contexts *c) { return call; }

STEP(ctx, load, pmuk_load_context(c->ctx, &c->target))
STEP(ctx, start, pmuk_start(c->ctx, NULL))
STEP(ctx, switch, pmuk_switch_evtset(c->ctx, 1))
STEP(ctx, stop, pmuk_stop(c->ctx))
STEP(ctx, unload, pmuk_unload_context(c->ctx))

static int ctx_read(struct contexts *c)
{
	return read_group(c, COUNTERS, READS);
}

static int hand_load(struct contexts *c)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,
		.size = sizeof(attr), .disabled = 1,
	};
	unsigned int i;

	for (i = 0; i < 2 * COUNTERS; i++) {
		c->events[i] = perf_event_create_kernel_counter(&attr, raw_smp_processor_id(),
								NULL, NULL, NULL);
		if (IS_ERR(c->events[i]))
			return PTR_ERR(c->events[i]);
	}
	return 0;
}

static int hand_each(struct contexts *c, unsigned int from, void (*fn)(struct perf_event *event))
{
	unsigned int i;

	for (i = 0; i < COUNTERS; i++)
		fn(c->events[from + i]);
	return 0;
}

STEP(hand, start, hand_each(c, 0, perf_event_enable))
STEP(hand, switch, hand_each(c, 0, perf_event_disable) ?:
		   hand_each(c, COUNTERS, perf_event_enable))
STEP(hand, stop, hand_each(c, COUNTERS, perf_event_disable))

static int hand_unload(struct contexts *c)
{
	unsigned int i;

	for (i = 0; i < 2 * COUNTERS; i++) {
		if (!IS_ERR_OR_NULL(c->events[i]))
			perf_event_release_kernel(c->events[i]);
		c->events[i] = NULL;
	}
	return 0;
}

/* The first steps are the context's, and the others are by hand. Each side ends as it began. */
#define CTX_STEPS	6

static const struct step steps[] = {
	{ "ctx_load", ctx_load }, { "ctx_start", ctx_start }, { "ctx_switch", ctx_switch },
	{ "ctx_read", ctx_read }, { "ctx_stop", ctx_stop }, { "ctx_unload", ctx_unload },
	{ "hand_load", hand_load }, { "hand_start", hand_start }, { "hand_switch", hand_switch },
	{ "hand_stop", hand_stop }, { "hand_unload", hand_unload },
};

/* The first @nr steps, @turns times; @suffix is the end of their names. */
static int measure_steps(struct contexts *c, unsigned int nr, unsigned int turns,
			 const char *suffix)
{
	static u64 ns[ARRAY_SIZE(steps)][BENCH_TURNS];
	unsigned int turn, i;
	char name[32];
	u64 start;
	int ret;

	for (turn = 0; turn < turns; turn++) {
		for (i = 0; i < nr; i++) {
			start = ktime_get_ns();
			ret = steps[i].call(c);
			ns[i][turn] = ktime_get_ns() - start;
			if (ret)
				return ret;
		}
	}
	for (i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "%s%s", steps[i].name, suffix);
		bench_print_one(c->m, name, "ns", 1000 * bench_median(ns[i], turns));
	}
	return 0;
}

static int measure_growth(struct contexts *c, unsigned int size, const char *unit)
{
	char suffix[16];

	snprintf(suffix, sizeof(suffix), "_%u%s", size, unit);
	return measure_steps(c, CTX_STEPS, GROWTH_TURNS, suffix);
}

/* On the first two online CPUs, the first four, and so on. */
static int measure_cpus(struct contexts *c)
{
	const struct pmuk_target one = c->target;
	static struct cpumask cpus;
	unsigned int nr = 0;
	int cpu, ret = 0;

	cpumask_clear(&cpus);
	c->target = (struct pmuk_target){ .type = PMUK_TARGET_CPUS, .cpus = &cpus };
	for_each_online_cpu(cpu) {
		cpumask_set_cpu(cpu, &cpus);
		nr++;
		if (nr > 1 && is_power_of_2(nr))
			ret = measure_growth(c, nr, "cpu");
		if (ret)
			break;
	}
	c->target = one;
	return ret;
}

/* A second in which the whole machine's sets take turns: the worst that has happened. */
static int measure_turns(struct contexts *c)
{
	struct pmuk_target machine = { .type = PMUK_TARGET_CPUS };
	struct pmuk_set_desc sets[] = {
		{ .id = 0, .timeout = NSEC_PER_MSEC }, { .id = 1, .timeout = NSEC_PER_MSEC },
	};
	struct pmuk_set_info info = { .cpu = -1 };
	int ret;

	if (pmuk_create_evtsets(c->ctx, sets, 2) != 2)
		return -EINVAL;
	ret = pmuk_load_context(c->ctx, &machine) ?: pmuk_start(c->ctx, NULL);
	if (!ret) {
		msleep(MSEC_PER_SEC);
		pmuk_getinfo_evtsets(c->ctx, &info, 1);
		bench_print_one(c->m, "ctx_turn_exchange", "ns", 1000 * info.switch_max);
		bench_print_one(c->m, "ctx_turn_late", "ns", 1000 * info.late_max);
	}
	pmuk_unload_context(c->ctx);
	return ret;
}

/*
 * Measures by how much the first read after a tick exceeds the next read: the first one publishes
 * the counts, and finds out whether the counters are still on the PMU.
 */
static int measure_tick(struct contexts *c)
{
	static u64 ns[BENCH_TURNS];
	unsigned int turn;
	u64 start, first;
	int ret = ctx_load(c) ?: ctx_start(c) ?: ctx_read(c);

	for (turn = 0; turn < BENCH_TURNS && !ret; turn++) {
		unsigned long now = jiffies;

		while (READ_ONCE(jiffies) == now)
			cpu_relax();
		guard(irq)();
		start = ktime_get_ns();
		ret = read_group(c, COUNTERS, 1);
		first = ktime_get_ns();
		ret = ret ?: read_group(c, COUNTERS, 1);
		ns[turn] = max_t(s64, 2 * first - start - ktime_get_ns(), 0);
	}
	if (!ret)
		bench_print_one(c->m, "ctx_tick", "ns", 1000 * bench_median(ns, BENCH_TURNS));
	pmuk_unload_context(c->ctx);
	return ret;
}

static int measure_ways(struct contexts *c, const struct bench_way *ways,
			unsigned int nr)
{
	struct bench_turns *turns __free(kfree) = bench_alloc_turns(nr);
	struct bench b = { .ways = ways, .nr = nr, .what = c, .turns = turns };
	int ret = turns ? bench_run(&b) : -ENOMEM;

	if (!ret)
		bench_print(c->m, &b);
	return ret;
}

static int measure_group(struct contexts *c, const struct bench_way *ways,
			 unsigned int nr)
{
	int ret = ctx_load(c) ?: ctx_start(c) ?: measure_ways(c, ways, nr);

	pmuk_unload_context(c->ctx);
	return ret;
}

static int measure_reads(struct contexts *c)
{
	int ret = measure_group(c, ctx_ways, ARRAY_SIZE(ctx_ways));

	if (!ret)
		ret = hand_load(c) ?: hand_start(c) ?:
		      measure_ways(c, hand_ways, ARRAY_SIZE(hand_ways));
	hand_unload(c);
	return ret;
}

static int make_set(struct contexts *c, u16 set, unsigned int nr)
{
	struct pmuk_pmc pmc = {
		.set = set, .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,
	};

	for (; pmc.num < nr; pmc.num++) {
		if (pmuk_write_pmcs(c->ctx, &pmc, 1) != 1)
			return pmc.ret;
	}
	return 0;
}

static int measure_all(struct contexts *c)
{
	struct pmuk_set_desc set = { .id = 1 };

	if (pmuk_create_evtsets(c->ctx, &set, 1) != 1)
		return set.ret;
	return make_set(c, 0, COUNTERS) ?: make_set(c, 1, COUNTERS) ?:
	       measure_steps(c, ARRAY_SIZE(steps), BENCH_TURNS, "") ?: measure_reads(c) ?:
	       measure_tick(c) ?: measure_cpus(c) ?: measure_turns(c);
}

static int measure_sets(struct contexts *c)
{
	struct pmuk_set_desc set = {};
	unsigned int nr;
	int ret = 0;

	for (nr = 8; nr <= SETS_MAX && !ret; nr *= 4) {
		for (; set.id < nr && !ret; set.id++) {
			if (pmuk_create_evtsets(c->ctx, &set, 1) != 1)
				return set.ret;
			ret = make_set(c, set.id, COUNTERS);
		}
		ret = ret ?: measure_growth(c, nr, "set");
	}
	return ret;
}

static int measure_two(struct contexts *c)
{
	return make_set(c, 0, 2) ?: measure_group(c, two_ways, ARRAY_SIZE(two_ways));
}

/* A context that counts and has a buffer. */
static int close_one(struct contexts *c, u64 *ns)
{
	const struct pmuk_context_attr attr = { .buffer.nr_pages = 1 };
	u64 start;
	int ret;

	c->ctx = pmuk_create_context(&attr);
	if (IS_ERR(c->ctx))
		return PTR_ERR(c->ctx);
	ret = make_set(c, 0, COUNTERS) ?: ctx_load(c) ?: ctx_start(c);
	start = ktime_get_ns();
	pmuk_close(c->ctx);
	*ns = ktime_get_ns() - start;
	return ret;
}

static int measure_close(struct contexts *c)
{
	u64 ns[GROWTH_TURNS];
	unsigned int turn;
	int ret;

	for (turn = 0; turn < GROWTH_TURNS; turn++) {
		ret = close_one(c, &ns[turn]);
		if (ret)
			return ret;
	}
	bench_print_one(c->m, "ctx_close", "ns", 1000 * bench_median(ns, GROWTH_TURNS));
	return 0;
}

static int measure_in_context(struct contexts *c, int (*measure)(struct contexts *c))
{
	const struct pmuk_context_attr attr = {};
	int ret;

	c->ctx = pmuk_create_context(&attr);
	if (IS_ERR(c->ctx))
		return PTR_ERR(c->ctx);
	ret = measure(c);
	pmuk_close(c->ctx);
	return ret;
}

/* Bound to one CPU by work_on_cpu(). */
static long measure(void *data)
{
	struct contexts *c = data;

	c->target = (struct pmuk_target){
		.type = PMUK_TARGET_CPU, .cpu = raw_smp_processor_id(),
	};
	return measure_in_context(c, measure_two) ?: measure_in_context(c, measure_all) ?:
	       measure_in_context(c, measure_sets) ?: measure_close(c);
}

static int run_show(struct seq_file *m, void *unused)
{
	struct contexts c = { .m = m };

	return bench_alone(measure, &c);
}
DEFINE_SHOW_ATTRIBUTE(run);

BENCH_MODULE(pmuk_bench_context, 0400, "What contexts cost: pmuk beside perf");
