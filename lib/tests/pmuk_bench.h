/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pmuk_bench*.c compare several ways to do the same job. The ways take turns on one CPU, with
 * interrupts on, so that a disturbance of the CPU affects all of them. Each way's median over all
 * turns is printed, as a line "name value". The first way is an empty loop, whose cost is
 * subtracted. The cost of a call, of its arguments, and of the work that a caller must do around
 * the call is not subtracted, since every caller pays this cost.
 */
#ifndef _PMUK_BENCH_H
#define _PMUK_BENCH_H

#include <linux/cleanup.h>
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pmu_kapi.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/sort.h>
#include <linux/workqueue.h>

#define BENCH_TURNS	41
#define BENCH_CALLS	500	/* per turn; divides 1000 */

/**
 * struct bench_way - one of the ways that are compared
 * @name: in the output, with _ns or _insn
 * @before: makes ready for a turn, not measured; or NULL
 * @calls: does it @n times; 0, or an error that ends the measurement
 */
struct bench_way {
	const char *name;
	int (*before)(void *what);
	int (*calls)(void *what, unsigned int n);
};

struct bench_turns {
	u64 ns[BENCH_TURNS];
	u64 insn[BENCH_TURNS];
};

/**
 * struct bench - a measurement
 * @ways: what is compared; the first is bench_empty()
 * @nr: how many
 * @what: handed to them
 * @turns: the result, for each way
 * @insns_error: why instructions could not be counted, or 0
 */
struct bench {
	const struct bench_way *ways;
	unsigned int nr;
	void *what;
	struct bench_turns *turns;
	long insns_error;
};

static inline int bench_empty(void *what, unsigned int n)
{
	do {
		barrier();
	} while (--n);
	return 0;
}

/* The counter is not pinned: perf core would place it before the counters that are measured. */
static inline struct pmuk_counter *bench_counter(u64 config)
{
	const struct pmuk_attr attr = {
		.type	= PERF_TYPE_HARDWARE,
		.config	= config,
	};
	struct pmuk_counter *c __free(pmuk_counter) =
		pmuk_counter_create(&attr, raw_smp_processor_id(), NULL);
	int ret = IS_ERR(c) ? PTR_ERR(c) : pmuk_counter_enable(c);

	return ret ? ERR_PTR(ret) : no_free_ptr(c);
}

/* The code around the calls costs the same in each way, the empty way too. */
static inline int bench_turn(struct bench *b, struct pmuk_counter *insns, int way, int turn)
{
	struct bench_turns *turns = &b->turns[way];
	u64 start, before = 0, after = 0;
	int ret;

	ret = b->ways[way].before ? b->ways[way].before(b->what) : 0;
	if (ret)
		return ret;
	pmuk_counter_read_local(insns, &before);
	start = ktime_get_ns();
	ret = b->ways[way].calls(b->what, BENCH_CALLS);
	turns->ns[turn] = ktime_get_ns() - start;
	pmuk_counter_read_local(insns, &after);
	turns->insn[turn] = after - before;
	return ret;
}

/* The caller is bound to one CPU. */
static inline int bench_run(struct bench *b)
{
	struct pmuk_counter *insns __free(pmuk_counter) = bench_counter(PERF_COUNT_HW_INSTRUCTIONS);
	int way, turn, ret;

	b->insns_error = PTR_ERR_OR_ZERO(insns);
	for (turn = 0; turn < BENCH_TURNS; turn++) {
		for (way = 0; way < b->nr; way++) {
			ret = bench_turn(b, b->insns_error ? NULL : insns, way, turn);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static inline struct bench_turns *bench_alloc_turns(unsigned int nr)
{
	return kcalloc(nr, sizeof(struct bench_turns), GFP_KERNEL);
}

static inline int bench_compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static inline u64 bench_median(u64 values[], unsigned int nr)
{
	sort(values, nr, sizeof(values[0]), bench_compare, NULL);
	return values[nr / 2];
}

/* The median, in thousandths, per call, less @empty. */
static inline u64 bench_cost(u64 turns[], u64 empty)
{
	u64 cost = bench_median(turns, BENCH_TURNS) * (1000 / BENCH_CALLS);

	return cost > empty ? cost - empty : 0;
}

static inline void bench_print_one(struct seq_file *m, const char *name, const char *unit,
				   u64 cost)
{
	seq_printf(m, "%s_%s %llu.%03llu\n", name, unit, cost / 1000, cost % 1000);
}

static inline void bench_print(struct seq_file *m, struct bench *b)
{
	u64 empty = bench_cost(b->turns[0].ns, 0);
	int way;

	for (way = 1; way < b->nr; way++)
		bench_print_one(m, b->ways[way].name, "ns", bench_cost(b->turns[way].ns, empty));
	if (b->insns_error) {
		seq_printf(m, "# no _insn: instructions cannot be counted here (%ld)\n",
			   b->insns_error);
		return;
	}
	empty = bench_cost(b->turns[0].insn, 0);
	for (way = 1; way < b->nr; way++)
		bench_print_one(m, b->ways[way].name, "insn",
				bench_cost(b->turns[way].insn, empty));
}

/* Calls @measure, bound to one CPU, while no other call of this is under way. */
static inline long bench_alone(long (*measure)(void *data), void *data)
{
	static DEFINE_MUTEX(one_at_a_time);

	guard(mutex)(&one_at_a_time);
	return work_on_cpu(raw_smp_processor_id(), measure, data);
}

/* @measure is bound to one CPU, is handed @b, and calls bench_run(). What comes out is printed. */
static inline int bench_show(struct seq_file *m, struct bench *b, long (*measure)(void *b))
{
	struct bench_turns *turns __free(kfree) = bench_alloc_turns(b->nr);
	long ret;

	if (!turns)
		return -ENOMEM;

	b->turns = turns;
	ret = bench_alone(measure, b);
	if (!ret)
		bench_print(m, b);
	return ret;
}

static struct dentry *bench_dir;

static inline void bench_open_dir(const char *name, umode_t mode, const struct file_operations *run)
{
	bench_dir = debugfs_create_dir(name, NULL);
	debugfs_create_file("run", mode, bench_dir, NULL, run);
}

/* A module whose file is written, too, has run_open(), run_write() and run_release() for this. */
#define BENCH_WRITABLE_FOPS						\
	static const struct file_operations run_fops = {		\
		.owner = THIS_MODULE,					\
		.open = run_open,					\
		.read = seq_read,					\
		.write = run_write,					\
		.llseek = seq_lseek,					\
		.release = run_release,					\
	}

/* The end of a module with a file <debugfs>/@name/run, which is served by run_fops. */
#define BENCH_MODULE(name, mode, description)			\
	static int __init name##_init(void)				\
	{								\
		bench_open_dir(#name, mode, &run_fops);			\
		return 0;						\
	}								\
	module_init(name##_init);					\
	static void __exit name##_exit(void)				\
	{								\
		debugfs_remove(bench_dir);				\
	}								\
	module_exit(name##_exit);					\
	MODULE_DESCRIPTION(description);				\
	MODULE_LICENSE("GPL")

#endif /* _PMUK_BENCH_H */
