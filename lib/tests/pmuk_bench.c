// SPDX-License-Identifier: GPL-2.0
/*
 * Measures each way to read a counter, per call: <debugfs>/pmuk_bench/run.
 * Reading that file measures, see pmuk_bench.h. All ways read the same pinned
 * cycles counter, on its own CPU.
 */
#include <linux/irqflags.h>
#include <linux/perf_local.h>

#include "../../kernel/pmu_kapi/counter.h"
#include "pmuk_bench.h"

/* The one instruction that reads the register; which one is known beforehand. */
#if defined(CONFIG_ARM64) && IS_ENABLED(CONFIG_ARM_PMUV3)

#define BENCH_READ_PMEVCNTRN(i)		\
	do {				\
		read_sysreg(pmevcntr##i##_el0);	\
	} while (--n)

static int bench_raw(void *what, unsigned int n)
{
	const struct pmuk_counter *c = what;

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

static int bench_raw(void *what, unsigned int n)
{
	const struct pmuk_counter *c = what;

	if (!c->mask)	/* the register cannot be read directly */
		return -EOPNOTSUPP;
	do {
		perf_arch_read(c->event);
	} while (--n);
	return 0;
}

#endif

/* Defines a loop of @n calls of @fn, which reads a counter into a value of @type. */
#define BENCH_READ(name, fn, type)				\
static int bench_##name(void *what, unsigned int n)		\
{								\
	struct pmuk_counter *c = what;				\
	type value;						\
	int ret;						\
								\
	do {							\
		ret = fn(c, &value);				\
	} while (--n);						\
	return ret;						\
}

BENCH_READ(pmuk_local, pmuk_counter_read_local, u64)
BENCH_READ(pmuk_snapshot, pmuk_counter_snapshot, struct pmuk_value)
BENCH_READ(pmuk, pmuk_counter_read, struct pmuk_value)

/* Modules that want a fast read do this today. */
static int bench_pmu(void *what, unsigned int n)
{
	struct perf_event *event = ((struct pmuk_counter *)what)->event;
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

#ifndef MODULE	/* Linux 7.3 does not export it */
static int bench_perf_local(void *what, unsigned int n)
{
	struct pmuk_counter *c = what;
	u64 count;
	int ret;

	do {
		ret = perf_event_read_local(c->event, &count, NULL, NULL);
	} while (--n);
	return ret;
}
#endif

static int bench_perf_value(void *what, unsigned int n)
{
	struct pmuk_counter *c = what;
	u64 enabled, running;

	do {
		perf_event_read_value(c->event, &enabled, &running);
	} while (--n);
	return 0;
}

static const struct bench_way bench_ways[] = {
	{ "empty", NULL, bench_empty },	/* first: subtracted from the others */
	{ "read_raw", NULL, bench_raw },
	{ "read_pmuk_local", NULL, bench_pmuk_local },
	{ "read_pmuk_snapshot", NULL, bench_pmuk_snapshot },
	{ "read_pmuk", NULL, bench_pmuk },
	{ "read_pmu", NULL, bench_pmu },
#ifndef MODULE
	{ "read_perf_local", NULL, bench_perf_local },
#endif
	{ "read_perf_value", NULL, bench_perf_value },
};

/* Bound to one CPU by work_on_cpu(). */
static long bench_measure(void *data)
{
	struct pmuk_counter *cycles __free(pmuk_counter) = bench_counter(PERF_COUNT_HW_CPU_CYCLES);
	struct bench *b = data;

	if (IS_ERR(cycles))
		return PTR_ERR(cycles);
	b->what = cycles;
	return bench_run(b);
}

static int run_show(struct seq_file *m, void *unused)
{
	struct bench b = { .ways = bench_ways, .nr = ARRAY_SIZE(bench_ways) };

	return bench_show(m, &b, bench_measure);
}
DEFINE_SHOW_ATTRIBUTE(run);

BENCH_MODULE(pmuk_bench, 0400, "What each way to read a counter costs: pmuk beside perf");
