// SPDX-License-Identifier: GPL-2.0
/*
 * Measures what a shared register costs, beside a counter that has one of its own:
 * <debugfs>/pmuk_bench_share/run. The bench calls the handler of the register's overflows by
 * itself. No period has ended, so there is no callback in the cost.
 */
#include <linux/irqflags.h>

#include "../../kernel/pmu_kapi/counter.h"
#include "pmuk_bench.h"

#define BENCH_MANY	9	/* samplers in one register, beside one that is alone */

struct bench_share {
	struct pmuk_counter *private, *shared;
	struct pmuk_counter *alone;
	struct pmuk_counter *many[BENCH_MANY];
};

static struct pmuk_counter *bench_pinned(u32 flags, u64 period)
{
	const struct pmuk_attr attr = {
		.type	= PERF_TYPE_HARDWARE,
		.config	= PERF_COUNT_HW_CPU_CYCLES,
		.flags	= PMUK_PINNED | flags,
		.period	= period,
	};
	struct pmuk_counter *c __free(pmuk_counter) =
		pmuk_counter_create(&attr, raw_smp_processor_id(), NULL);
	int ret = IS_ERR(c) ? PTR_ERR(c) : pmuk_counter_enable(c);

	return ret ? ERR_PTR(ret) : no_free_ptr(c);
}

static int bench_read(struct pmuk_counter *c, unsigned int n)
{
	u64 count;
	int ret;

	do {
		ret = pmuk_counter_read_local(c, &count);
	} while (--n);
	return ret;
}

static int bench_read_private(void *what, unsigned int n)
{
	return bench_read(((struct bench_share *)what)->private, n);
}

static int bench_read_shared(void *what, unsigned int n)
{
	return bench_read(((struct bench_share *)what)->shared, n);
}

static int bench_overflow(const struct pmuk_counter *c, unsigned int n)
{
	struct perf_sample_data data = {};
	unsigned long flags;

	local_irq_save(flags);
	do {
		c->hw_event->overflow_handler(c->hw_event, &data, NULL);
	} while (--n);
	local_irq_restore(flags);
	return 0;
}

static int bench_overflow_of_one(void *what, unsigned int n)
{
	return bench_overflow(((struct bench_share *)what)->alone, n);
}

static int bench_overflow_of_many(void *what, unsigned int n)
{
	return bench_overflow(((struct bench_share *)what)->many[0], n);
}

static const struct bench_way bench_ways[] = {
	{ "empty", NULL, bench_empty },	/* first: subtracted from the others */
	{ "share_private", NULL, bench_read_private },
	{ "share_read", NULL, bench_read_shared },
	{ "share_overflow_1", NULL, bench_overflow_of_one },
	{ "share_overflow_9", NULL, bench_overflow_of_many },
};

/* The periods do not end while the bench runs. Excludes that differ give a register each. */
static int bench_make(struct bench_share *s)
{
	int i, ret;

	s->private = bench_pinned(PMUK_PRIVATE, 0);
	s->shared = bench_pinned(0, 0);
	s->alone = bench_pinned(PMUK_EXCLUDE_USER, S64_MAX / 2);
	ret = PTR_ERR_OR_ZERO(s->private) ?: PTR_ERR_OR_ZERO(s->shared) ?:
	      PTR_ERR_OR_ZERO(s->alone);
	if (!ret && !s->shared->host)
		ret = -EOPNOTSUPP;
	for (i = 0; i < BENCH_MANY && !ret; i++) {
		s->many[i] = bench_pinned(PMUK_EXCLUDE_KERNEL, S64_MAX / 2 - i);
		ret = PTR_ERR_OR_ZERO(s->many[i]);
	}
	return ret;
}

static void bench_put(struct bench_share *s)
{
	int i;

	pmuk_counter_destroy(s->private);
	pmuk_counter_destroy(s->shared);
	pmuk_counter_destroy(s->alone);
	for (i = 0; i < BENCH_MANY; i++)
		pmuk_counter_destroy(s->many[i]);
}

/* Bound to one CPU by work_on_cpu(). */
static long bench_measure(void *data)
{
	struct bench_share s = {};
	struct bench *b = data;
	int ret = bench_make(&s);

	b->what = &s;
	if (!ret)
		ret = bench_run(b);
	bench_put(&s);
	return ret;
}

static int run_show(struct seq_file *m, void *unused)
{
	struct bench b = { .ways = bench_ways, .nr = ARRAY_SIZE(bench_ways) };

	return bench_show(m, &b, bench_measure);
}
DEFINE_SHOW_ATTRIBUTE(run);

BENCH_MODULE(pmuk_bench_share, 0400, "What a shared register costs");
