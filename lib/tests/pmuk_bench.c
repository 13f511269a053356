// SPDX-License-Identifier: GPL-2.0
/*
 * What each way to read a counter costs per call: <debugfs>/pmuk_bench/run.
 * Reading that file measures, and gives lines "name value".
 *
 * All ways read the same pinned cycles counter, on its own CPU, with interrupts
 * on. They take turns, so that what disturbs one disturbs all; medians of all
 * turns are printed. The cost of an empty loop is subtracted; that of the call,
 * of its arguments and of what the caller must do around it is not, since
 * whoever reads pays it.
 */
#include <linux/cleanup.h>
#include <linux/debugfs.h>
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/sort.h>
#include <linux/workqueue.h>

#include "../../kernel/pmu_kapi/arch.h"
#include "../../kernel/pmu_kapi/internal.h"

#define TURNS	41
#define CALLS	500	/* per turn; divides 1000 */

static int bench_empty(struct pmuk_counter *c, unsigned int n)
{
	do {
		barrier();
	} while (--n);
	return 0;
}

/* The one instruction that reads the register; which one is known beforehand. */
#if defined(CONFIG_ARM64) && IS_ENABLED(CONFIG_ARM_PMUV3)

#define BENCH_READ_PMEVCNTRN(i)		\
	do {				\
		read_sysreg(pmevcntr##i##_el0);	\
	} while (--n)

static int bench_raw(struct pmuk_counter *c, unsigned int n)
{
	if (c->event->hw.idx != ARMV8_PMU_CYCLE_IDX) {
		PMEVN_SWITCH(c->event->hw.idx, BENCH_READ_PMEVCNTRN);
		return 0;
	}
	do {
		read_pmccntr();
	} while (--n);
	return 0;
}

#else

static int bench_raw(struct pmuk_counter *c, unsigned int n)
{
	const struct perf_event *event = c->event;

	do {
		pmuk_arch_read(event);
	} while (--n);
	return 0;
}

#endif

static int bench_pmuk_local(struct pmuk_counter *c, unsigned int n)
{
	u64 count;
	int ret;

	do {
		ret = pmuk_counter_read_local(c, &count);
	} while (--n);
	return ret;
}

static int bench_pmuk_snapshot(struct pmuk_counter *c, unsigned int n)
{
	struct pmuk_value value;
	int ret;

	do {
		ret = pmuk_counter_snapshot(c, &value);
	} while (--n);
	return ret;
}

static int bench_pmuk(struct pmuk_counter *c, unsigned int n)
{
	struct pmuk_value value;
	int ret;

	do {
		ret = pmuk_counter_read(c, &value);
	} while (--n);
	return ret;
}

/* What modules do today that want it fast. */
static int bench_pmu(struct pmuk_counter *c, unsigned int n)
{
	struct perf_event *event = c->event;
	unsigned long flags;

	do {
		local_irq_save(flags);
		if (READ_ONCE(event->oncpu) == smp_processor_id())
			event->pmu->read(event);
		(void)local64_read(&event->count);
		local_irq_restore(flags);
	} while (--n);
	return 0;
}

#ifndef MODULE	/* not exported */
static int bench_perf_local(struct pmuk_counter *c, unsigned int n)
{
	u64 count;
	int ret;

	do {
		ret = perf_event_read_local(c->event, &count, NULL, NULL);
	} while (--n);
	return ret;
}
#endif

static int bench_perf_value(struct pmuk_counter *c, unsigned int n)
{
	u64 enabled, running;

	do {
		perf_event_read_value(c->event, &enabled, &running);
	} while (--n);
	return 0;
}

static const struct bench_way {
	const char *name;
	int (*calls)(struct pmuk_counter *c, unsigned int n);
} bench_ways[] = {
	{ "empty", bench_empty },	/* first: subtracted from the others */
	{ "read_raw", bench_raw },
	{ "read_pmuk_local", bench_pmuk_local },
	{ "read_pmuk_snapshot", bench_pmuk_snapshot },
	{ "read_pmuk", bench_pmuk },
	{ "read_pmu", bench_pmu },
#ifndef MODULE
	{ "read_perf_local", bench_perf_local },
#endif
	{ "read_perf_value", bench_perf_value },
};

#define WAYS	ARRAY_SIZE(bench_ways)

struct bench {
	struct pmuk_counter *cycles;	/* what is read */
	struct pmuk_counter *insns;	/* what that costs; NULL if it cannot be counted: */
	long insns_error;		/* ... because of this */
	u64 ns[WAYS][TURNS];
	u64 insn[WAYS][TURNS];
};

static struct pmuk_counter *bench_counter(u64 config)
{
	const struct pmuk_attr attr = {
		.type	= PERF_TYPE_HARDWARE,
		.config	= config,
		.flags	= PMUK_PINNED,
	};
	struct pmuk_counter *c __free(pmuk_counter) =
		pmuk_counter_create(&attr, raw_smp_processor_id(), NULL);
	int ret = IS_ERR(c) ? PTR_ERR(c) : pmuk_counter_enable(c);

	return ret ? ERR_PTR(ret) : no_free_ptr(c);
}

/* What surrounds the calls costs the same in each way, the empty one too. */
static int bench_turn(struct bench *b, int way, int turn)
{
	u64 start, before = 0, after = 0;
	int ret;

	pmuk_counter_read_local(b->insns, &before);
	start = ktime_get_ns();
	ret = bench_ways[way].calls(b->cycles, CALLS);
	b->ns[way][turn] = ktime_get_ns() - start;
	pmuk_counter_read_local(b->insns, &after);
	b->insn[way][turn] = after - before;
	return ret;
}

/* Bound to one CPU by work_on_cpu(). */
static long bench_measure(void *data)
{
	struct pmuk_counter *cycles __free(pmuk_counter) = bench_counter(PERF_COUNT_HW_CPU_CYCLES);
	struct pmuk_counter *insns __free(pmuk_counter) = bench_counter(PERF_COUNT_HW_INSTRUCTIONS);
	struct bench *b = data;
	int way, turn, ret;

	if (IS_ERR(cycles))
		return PTR_ERR(cycles);
	b->cycles = cycles;
	b->insns = IS_ERR(insns) ? NULL : insns;
	b->insns_error = PTR_ERR_OR_ZERO(insns);

	for (turn = 0; turn < TURNS; turn++) {
		for (way = 0; way < WAYS; way++) {
			ret = bench_turn(b, way, turn);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static int bench_compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* The median, in thousandths, per call, less @empty. */
static u64 bench_cost(u64 turns[], u64 empty)
{
	u64 cost;

	sort(turns, TURNS, sizeof(turns[0]), bench_compare, NULL);
	cost = turns[TURNS / 2] * (1000 / CALLS);
	return cost > empty ? cost - empty : 0;
}

static void bench_print(struct seq_file *m, const char *unit, u64 turns[][TURNS])
{
	u64 empty = bench_cost(turns[0], 0), cost;
	int way;

	for (way = 1; way < WAYS; way++) {
		cost = bench_cost(turns[way], empty);
		seq_printf(m, "%s_%s %llu.%03llu\n", bench_ways[way].name, unit,
			   cost / 1000, cost % 1000);
	}
}

static int run_show(struct seq_file *m, void *unused)
{
	static DEFINE_MUTEX(one_at_a_time);
	struct bench *b __free(kfree) = kzalloc(sizeof(*b), GFP_KERNEL);
	long ret;

	if (!b)
		return -ENOMEM;

	guard(mutex)(&one_at_a_time);
	ret = work_on_cpu(raw_smp_processor_id(), bench_measure, b);
	if (ret)
		return ret;

	bench_print(m, "ns", b->ns);
	if (b->insns_error)
		seq_printf(m, "# no _insn: instructions cannot be counted here (%ld)\n",
			   b->insns_error);
	else
		bench_print(m, "insn", b->insn);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(run);

static struct dentry *bench_dir;

static int __init pmuk_bench_init(void)
{
	bench_dir = debugfs_create_dir("pmuk_bench", NULL);
	debugfs_create_file("run", 0400, bench_dir, NULL, &run_fops);
	return 0;
}
module_init(pmuk_bench_init);

static void __exit pmuk_bench_exit(void)
{
	debugfs_remove(bench_dir);
}
module_exit(pmuk_bench_exit);

MODULE_DESCRIPTION("What each way to read a counter costs: pmuk beside perf");
MODULE_LICENSE("GPL");
