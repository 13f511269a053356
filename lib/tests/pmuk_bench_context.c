// SPDX-License-Identifier: GPL-2.0
/*
 * Measures contexts: <debugfs>/pmuk_bench_context/run. Two and four counters read at once;
 * four started, stopped, exchanged for four others, loaded; on one CPU, beside the same done by
 * hand with perf's kernel API. Reads are measured as in pmuk_bench.h, the others one at a time.
 * The context's calls are also measured on two CPUs and more (ctx_load_2cpu), with eight sets of
 * four and more (ctx_load_8set), and with one counter in a set and more (ctx_load_1counter). A read
 * is also measured beside other contexts on the same CPU (group_pmuk_8ctx).
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/sizes.h>

#include "../../kernel/pmu_kapi/counter.h"
#include "pmuk_bench.h"

#define COUNTERS	4
#define READS		1000
#define GROWTH_TURNS	3
#define SETS_MAX	65536	/* needs more than a GiB of memory */
#define SETS_CLOSED	4096	/* contexts with more sets are not measured at their close */
#define SETS_WAITED	128	/* with more sets, grace periods pass while a call is busy */
#define CROWD		64	/* contexts on one CPU */

/* The shape of a context: its sets, and the one event that all its counters count. */
struct shape {
	unsigned int sets;
	unsigned int counters;		/* number of counters in each set */
	u32 type;
	u64 config;
	u32 flags;			/* the flags of the context */
};

static const struct shape two_sets = {
	.sets = 2, .counters = COUNTERS,
	.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,
};

static const struct shape two_counters = {
	.sets = 1, .counters = 2,
	.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,
};

static const struct shape one_software_counter = {
	.sets = 1, .counters = 1,
	.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY,
};

static const struct shape masking_set = {
	.sets = 1, .counters = COUNTERS,
	.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,
	.flags = PMUK_CTX_MASK,
};

struct contexts {
	struct pmuk_context *ctx;
	const struct shape *shape;	/* the shape of ->ctx */
	char suffix[16];		/* the end of the names that are printed */
	struct pmuk_target target;
	struct perf_event *events[2 * COUNTERS];
	u64 counts[COUNTERS];
	struct seq_file *m;
};

/* ---- reads ---- */

static __always_inline int read_group(struct contexts *c, unsigned int counters, unsigned int n)
{
	u64 counts[COUNTERS];
	int ret;

	guard(preempt)();
	do {
		ret = pmuk_read_local(c->ctx, counts, counters);
		barrier_data(counts);	/* the caller uses them */
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

static const struct bench_way ctx8_ways[] = {
	{ "empty", NULL, bench_empty },
	{ "group_pmuk_8ctx", NULL, group_pmuk },
};

static const struct bench_way ctx64_ways[] = {
	{ "empty", NULL, bench_empty },
	{ "group_pmuk_64ctx", NULL, group_pmuk },
};

/* ---- what sleeps ---- */

struct step {
	const char *name;
	int (*call)(struct contexts *c);
	bool waits;			/* for a grace period */
};

/* Defines a step that makes one call. */
#define STEP(side, name, call) \
	static int side##_##name(struct contexts *c) { return call; }

STEP(ctx, load, pmuk_load_context(c->ctx, &c->target))
STEP(ctx, start, pmuk_start(c->ctx, NULL))
STEP(ctx, switch, pmuk_switch_evtset(c->ctx, 1))
STEP(ctx, restart, pmuk_restart(c->ctx))
STEP(ctx, stop, pmuk_stop(c->ctx))
STEP(ctx, unload, pmuk_unload_context(c->ctx))
STEP(ctx, close, pmuk_close(c->ctx))

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
#define CTX_STEPS	7

static const struct step steps[] = {
	{ "ctx_load", ctx_load }, { "ctx_start", ctx_start }, { "ctx_switch", ctx_switch },
	{ "ctx_read", ctx_read }, { "ctx_restart", ctx_restart }, { "ctx_stop", ctx_stop },
	{ "ctx_unload", ctx_unload, .waits = true },
	{ "hand_load", hand_load }, { "hand_start", hand_start }, { "hand_switch", hand_switch },
	{ "hand_stop", hand_stop }, { "hand_unload", hand_unload },
};

/* Counters of software events are in no register, so their reads would not be comparable. */
static bool is_measured(const struct contexts *c, const struct step *step)
{
	return step->call != ctx_read || c->shape->type == PERF_TYPE_HARDWARE;
}

/*
 * RCU numbers its grace periods, and the numbers of get_state_synchronize_rcu() have two bits of
 * state below that, see RCU_SEQ_CTR_SHIFT in kernel/rcu/rcu.h.
 */
#define GRACE_PERIOD	4

/* Returns how many grace periods have begun and ended since @state was taken. */
static unsigned int grace_periods_since(unsigned long state)
{
	unsigned int nr = 0;

	for (; poll_state_synchronize_rcu(state); state += GRACE_PERIOD)
		nr++;
	return nr;
}

/* Measures one call. Raises @waits to the number of grace periods that passed in the call. */
static int take(struct contexts *c, int (*call)(struct contexts *c), u64 *ns, unsigned int *waits)
{
	unsigned long state = get_state_synchronize_rcu();
	u64 start = ktime_get_ns();
	int ret = call(c);

	*ns = ktime_get_ns() - start;
	*waits = max(*waits, grace_periods_since(state));
	return ret;
}

static void print_cost(struct contexts *c, const char *way, u64 *ns, unsigned int turns)
{
	char name[48];

	snprintf(name, sizeof(name), "%s%s", way, c->suffix);
	bench_print_one(c->m, name, "ns", 1000 * bench_median(ns, turns));
}

static void print_waits(struct contexts *c, const char *way, unsigned int waits)
{
	char name[48];

	if (c->shape->sets > SETS_WAITED)
		return;
	snprintf(name, sizeof(name), "%s%s", way, c->suffix);
	bench_print_one(c->m, name, "grace_periods", 1000ULL * waits);
}

/* The first @nr steps, @turns times. */
static int measure_steps(struct contexts *c, unsigned int nr, unsigned int turns)
{
	static u64 ns[ARRAY_SIZE(steps)][BENCH_TURNS];
	unsigned int waits[ARRAY_SIZE(steps)] = {};
	unsigned int turn, i;
	int ret;

	for (turn = 0; turn < turns; turn++) {
		for (i = 0; i < nr; i++) {
			if (!is_measured(c, &steps[i]))
				continue;
			ret = take(c, steps[i].call, &ns[i][turn], &waits[i]);
			if (ret)
				return ret;
		}
	}
	for (i = 0; i < nr; i++) {
		if (is_measured(c, &steps[i]))
			print_cost(c, steps[i].name, ns[i], turns);
		if (steps[i].waits)
			print_waits(c, steps[i].name, waits[i]);
	}
	return 0;
}

/* ---- contexts of some shape ---- */

static int make_set(struct contexts *c, u16 set)
{
	struct pmuk_pmc pmc = {
		.set = set, .type = c->shape->type, .config = c->shape->config,
	};

	for (; pmc.num < c->shape->counters; pmc.num++) {
		if (pmuk_write_pmcs(c->ctx, &pmc, 1) != 1)
			return pmc.ret;
	}
	return 0;
}

static int make_sets(struct contexts *c)
{
	struct pmuk_set_desc set = {};
	unsigned int id;
	int ret = 0;

	for (id = 0; id < c->shape->sets && !ret; id++) {
		set.id = id;
		if (pmuk_create_evtsets(c->ctx, &set, 1) != 1)
			return set.ret;
		ret = make_set(c, id);
	}
	return ret;
}

/* Creates a context with buffers of @nr_pages, or without buffers. */
static int create(struct contexts *c, const struct shape *shape, unsigned int nr_pages)
{
	const struct pmuk_context_attr attr = {
		.flags = shape->flags, .buffer.nr_pages = nr_pages,
	};
	int ret;

	c->ctx = pmuk_create_context(&attr);
	if (IS_ERR(c->ctx))
		return PTR_ERR(c->ctx);
	c->shape = shape;
	ret = make_sets(c);
	if (ret)
		pmuk_close(c->ctx);
	return ret;
}

static int measure_in_context(struct contexts *c, const struct shape *shape,
			      int (*measure)(struct contexts *c))
{
	int ret = create(c, shape, 0);

	if (ret)
		return ret;
	ret = measure(c);
	pmuk_close(c->ctx);
	return ret;
}

/* Closes a context that counts and has buffers. */
static int close_one(struct contexts *c, const struct shape *shape, u64 *ns, unsigned int *waits)
{
	int ret = create(c, shape, 1), err;

	if (ret)
		return ret;
	ret = ctx_load(c) ?: ctx_start(c);
	err = take(c, ctx_close, ns, waits);
	return ret ?: err;
}

static int measure_close(struct contexts *c, const struct shape *shape)
{
	unsigned int turn, waits = 0;
	u64 ns[GROWTH_TURNS];
	int ret;

	for (turn = 0; turn < GROWTH_TURNS; turn++) {
		ret = close_one(c, shape, &ns[turn], &waits);
		if (ret)
			return ret;
	}
	print_cost(c, "ctx_close", ns, GROWTH_TURNS);
	print_waits(c, "ctx_close", waits);
	return 0;
}

static int measure_calls(struct contexts *c)
{
	return measure_steps(c, CTX_STEPS, c->shape->sets > SETS_CLOSED ? 1 : GROWTH_TURNS);
}

static int measure_growth(struct contexts *c, const struct shape *shape, unsigned int size,
			  const char *unit)
{
	int ret;

	snprintf(c->suffix, sizeof(c->suffix), "_%u%s", size, unit);
	ret = measure_in_context(c, shape, measure_calls);
	if (!ret && shape->sets <= SETS_CLOSED)
		ret = measure_close(c, shape);
	c->suffix[0] = 0;
	return ret;
}

/* On this CPU and the first other one, on this one and the first three others, and so on. */
static int measure_cpus(struct contexts *c)
{
	const struct pmuk_target one = c->target;
	static struct cpumask cpus;
	unsigned int nr = 1;
	int cpu, ret = 0;

	cpumask_copy(&cpus, cpumask_of(one.cpu));
	c->target = (struct pmuk_target){ .type = PMUK_TARGET_CPUS, .cpus = &cpus };
	for_each_online_cpu(cpu) {
		nr += !cpumask_test_and_set_cpu(cpu, &cpus);
		if (cpu != one.cpu && is_power_of_2(nr))
			ret = measure_growth(c, &two_sets, nr, "cpu");
		if (ret)
			break;
	}
	c->target = one;
	return ret;
}

/* A PMU has no room for eight counters, so these are of a software event. */
static int measure_counters(struct contexts *c)
{
	static const unsigned int sizes[] = { 1, 4, 8 };
	struct shape shape = one_software_counter;
	unsigned int i;
	int ret = 0;

	shape.sets = 2;
	for (i = 0; i < ARRAY_SIZE(sizes) && !ret; i++) {
		shape.counters = sizes[i];
		ret = measure_growth(c, &shape, sizes[i], "counter");
	}
	return ret;
}

static int measure_sets(struct contexts *c)
{
	static const unsigned int sizes[] = { 8, 32, 128, SETS_CLOSED, SETS_MAX };
	struct shape shape = two_sets;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < ARRAY_SIZE(sizes) && !ret; i++) {
		if (sizes[i] == SETS_MAX && totalram_pages() < SZ_2G / PAGE_SIZE)
			break;
		shape.sets = sizes[i];
		ret = measure_growth(c, &shape, sizes[i], "set");
	}
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

/* ---- a read beside other contexts ---- */

/* Each of @crowd is a context that counts on the CPU of @c. */
static int join(const struct contexts *c, struct contexts *crowd)
{
	int ret;

	crowd->target = c->target;
	ret = create(crowd, &one_software_counter, 0);
	if (ret)
		return ret;
	ret = ctx_load(crowd) ?: ctx_start(crowd);
	if (ret)
		pmuk_close(crowd->ctx);
	return ret;
}

static void leave(struct contexts *crowd)
{
	pmuk_close(crowd->ctx);
}

static int join_up_to(const struct contexts *c, struct contexts *crowd, unsigned int *nr,
		      unsigned int wanted)
{
	int ret = 0;

	while (*nr < wanted && !ret) {
		ret = join(c, &crowd[*nr]);
		*nr += !ret;
	}
	return ret;
}

/* The context of @c is one of 8, then one of CROWD. */
static int measure_crowd(struct contexts *c)
{
	struct contexts *crowd __free(kfree) = kcalloc(CROWD, sizeof(*crowd), GFP_KERNEL);
	unsigned int nr = 0;
	int ret;

	if (!crowd)
		return -ENOMEM;
	ret = join_up_to(c, crowd, &nr, 8 - 1) ?:
	      measure_group(c, ctx8_ways, ARRAY_SIZE(ctx8_ways)) ?:
	      join_up_to(c, crowd, &nr, CROWD - 1) ?:
	      measure_group(c, ctx64_ways, ARRAY_SIZE(ctx64_ways));
	while (nr)
		leave(&crowd[--nr]);
	return ret;
}

/* ---- a restart after an overflow ---- */

#define MASK_PERIOD	200000		/* cycles */
#define PATIENCE	(10 * HZ)

/* The overflow has stopped all counters before it posts its message. */
static int await_overflow(struct contexts *c)
{
	unsigned long end = jiffies + PATIENCE;
	struct pmuk_msg msg;

	while (pmuk_read(c->ctx, &msg, true) != 1 || msg.kind != PMUK_MSG_OVERFLOW) {
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		cpu_relax();
	}
	return 0;
}

static int measure_masked(struct contexts *c)
{
	struct pmuk_pmd pmd = { .flags = PMUK_PMD_NOTIFY, .short_reset = MASK_PERIOD };
	unsigned int turn, waits = 0;
	u64 ns[GROWTH_TURNS];
	int ret;

	if (pmuk_write_pmds(c->ctx, &pmd, 1) != 1)
		return pmd.ret;
	ret = ctx_load(c) ?: ctx_start(c);
	for (turn = 0; turn < GROWTH_TURNS && !ret; turn++)
		ret = await_overflow(c) ?: take(c, ctx_restart, &ns[turn], &waits);
	if (!ret)
		print_cost(c, "ctx_restart_masked", ns, GROWTH_TURNS);
	return ret;
}

/* ---- all of it ---- */

static int measure_two(struct contexts *c)
{
	return measure_group(c, two_ways, ARRAY_SIZE(two_ways));
}

static int measure_all(struct contexts *c)
{
	return measure_steps(c, ARRAY_SIZE(steps), BENCH_TURNS) ?: measure_reads(c) ?:
	       measure_tick(c) ?: measure_crowd(c) ?: measure_turns(c);
}

/* Bound to one CPU by work_on_cpu(). */
static long measure(void *data)
{
	struct contexts *c = data;

	c->target = (struct pmuk_target){
		.type = PMUK_TARGET_CPU, .cpu = raw_smp_processor_id(),
	};
	return measure_in_context(c, &two_counters, measure_two) ?:
	       measure_in_context(c, &two_sets, measure_all) ?: measure_close(c, &two_sets) ?:
	       measure_in_context(c, &masking_set, measure_masked) ?: measure_cpus(c) ?:
	       measure_counters(c) ?: measure_sets(c);
}

static int run_show(struct seq_file *m, void *unused)
{
	struct contexts c = { .m = m };

	return bench_alone(measure, &c);
}

/* seq_file would call run_show(), which measures, again for text that has no room. */
static int run_open(struct inode *inode, struct file *file)
{
	return single_open_size(file, run_show, NULL, SZ_16K);
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE,
	.open = run_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = single_release,
};

BENCH_MODULE(pmuk_bench_context, 0400, "What contexts cost: pmuk beside perf");
