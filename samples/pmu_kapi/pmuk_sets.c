// SPDX-License-Identifier: GPL-2.0
/* Counts eight events on the whole machine, in two sets that take turns every ten milliseconds. */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/pmu_kapi.h>

#define SETS	2
#define EACH	4

static const struct {
	const char *name;
	u64 config;
	const char *or_name;
	u64 or_config;
} events[] = {
	{ "cycles", PERF_COUNT_HW_CPU_CYCLES, "cpu-clock", PERF_COUNT_SW_CPU_CLOCK },
	{ "instructions", PERF_COUNT_HW_INSTRUCTIONS, "page-faults", PERF_COUNT_SW_PAGE_FAULTS },
	{ "cache-references", PERF_COUNT_HW_CACHE_REFERENCES, "context-switches",
	  PERF_COUNT_SW_CONTEXT_SWITCHES },
	{ "cache-misses", PERF_COUNT_HW_CACHE_MISSES, "cpu-migrations",
	  PERF_COUNT_SW_CPU_MIGRATIONS },
	{ "branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "minor-faults",
	  PERF_COUNT_SW_PAGE_FAULTS_MIN },
	{ "branch-misses", PERF_COUNT_HW_BRANCH_MISSES, "major-faults",
	  PERF_COUNT_SW_PAGE_FAULTS_MAJ },
	{ "stalled-frontend", PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, "task-clock",
	  PERF_COUNT_SW_TASK_CLOCK },
	{ "stalled-backend", PERF_COUNT_HW_STALLED_CYCLES_BACKEND, "alignment-faults",
	  PERF_COUNT_SW_ALIGNMENT_FAULTS },
};

static struct pmuk_pmc pmcs[SETS * EACH];

static int describe(struct pmuk_context *ctx)
{
	struct pmuk_set_desc sets[SETS] = {
		{ .id = 0, .timeout = 10 * NSEC_PER_MSEC },
		{ .id = 1, .timeout = 10 * NSEC_PER_MSEC },
	};
	int i;

	if (pmuk_create_evtsets(ctx, sets, SETS) != SETS)
		return -ENOMEM;
	for (i = 0; i < SETS * EACH; i++)
		pmcs[i] = (struct pmuk_pmc){
			.set = i / EACH, .num = i % EACH,
			.type = PERF_TYPE_HARDWARE, .config = events[i].config };
	return 0;
}

/* If the PMU lacks an event, the load says which event. Count a software event in its place. */
static int load(struct pmuk_context *ctx)
{
	struct pmuk_target machine = { .type = PMUK_TARGET_CPUS };
	int ret, i;

	do {
		if (pmuk_write_pmcs(ctx, pmcs, SETS * EACH) != SETS * EACH)
			return -EINVAL;
		ret = pmuk_load_context(ctx, &machine);
		i = machine.failed_set * EACH + machine.failed_num;
		if (ret != -ENOENT || pmcs[i].type == PERF_TYPE_SOFTWARE)
			return ret;
		pmcs[i].type = PERF_TYPE_SOFTWARE;
		pmcs[i].config = events[i].or_config;
	} while (1);
}

static void print_results(struct pmuk_context *ctx)
{
	struct pmuk_pmd_read read;
	struct pmuk_set_info info;
	int i;

	for (i = 0; i < SETS * EACH; i++) {
		bool hw = pmcs[i].type == PERF_TYPE_HARDWARE;

		read = (struct pmuk_pmd_read){ .set = i / EACH, .num = i % EACH, .cpu = -1 };
		pmuk_read_pmds(ctx, &read, 1);
		pr_info("%-18s %14llu in %llu of %llu ms\n",
			hw ? events[i].name : events[i].or_name, read.count,
			read.time_running / NSEC_PER_MSEC, read.time_enabled / NSEC_PER_MSEC);
	}
	for (i = 0; i < SETS; i++) {
		info = (struct pmuk_set_info){ .id = i, .cpu = -1 };
		pmuk_getinfo_evtsets(ctx, &info, 1);
		pr_info("set %d: %llu turns, %llu ms\n", i, info.runs,
			info.active_duration / NSEC_PER_MSEC);
	}
}

static int __init pmuk_sets_init(void)
{
	const struct pmuk_context_attr attr = { .name = "pmuk_sets" };
	struct pmuk_context *ctx = pmuk_create_context(&attr);
	int ret;

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	ret = describe(ctx);
	if (!ret)
		ret = load(ctx);
	if (!ret)
		ret = pmuk_start(ctx, NULL);
	if (!ret) {
		msleep(1000);
		pmuk_stop(ctx);
		print_results(ctx);
	}
	pmuk_close(ctx);
	return ret;
}
module_init(pmuk_sets_init);

static void __exit pmuk_sets_exit(void) { }
module_exit(pmuk_sets_exit);
MODULE_DESCRIPTION("pmuk sample: eight events on a whole machine, by turns");
MODULE_LICENSE("GPL");
