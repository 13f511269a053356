// SPDX-License-Identifier: GPL-2.0
/*
 * The tests need a real PMU with an exact counter of instructions. They count a loop of known
 * length, and the cost of a switch in deep cgroups.
 */
#include "sched_cgroup.h"

#define LOOPS		100000000ULL
#define PER_LOOP	2		/* instructions */

/* Executes PER_LOOP * @times instructions. */
static int loop(uint64_t times)
{
#if defined(__aarch64__)
	asm volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r" (times) : : "cc");
#elif defined(__x86_64__)
	asm volatile("1: dec %0\n\tjnz 1b" : "+r" (times) : : "cc");
#endif
	return 0;
}

/* Returns whether a real PMU counts instructions. */
static bool counts_instructions(void)
{
	char *text;
	bool does;

	if (set_parameter("enabled", "0") || set_parameter("events", "instructions") ||
	    set_parameter("enabled", "1"))
		return false;
	text = slurp(SCHED "cpus");
	does = text && nr_events(text) == 1;
	free(text);
	return does;
}

FIXTURE(exact)
{
	bool counts;
};

FIXTURE_SETUP(exact)
{
	ASSERT_EQ(stay_on(0), 0);
	self->counts = counts_instructions();
}

FIXTURE_TEARDOWN(exact)
{
	EXPECT_EQ(set_parameter("enabled", "0"), 0);
	EXPECT_EQ(set_parameter("events", "cycles,instructions"), 0);
}

/*
 * The count has at least the instructions of the loop, and those of timer ticks besides. Each
 * instruction takes 1 ns here, so a tick of 10 000 instructions every 4 ms adds 1 in 400. On arm64,
 * a tick of Linux 7.3 has some 4 000. The first run has extra work, so it has no upper limit.
 */
TEST_F(exact, known_loop_is_counted)
{
	const uint64_t insns = LOOPS * PER_LOOP;
	struct totals before, after;
	struct worker w;
	uint64_t counted;
	int i;

	if (!self->counts)
		SKIP(return, "no PMU counts instructions");
	ASSERT_TRUE(worker_start(&w));
	for (i = 0; i < 3; i++) {
		ASSERT_TRUE(task_totals(w.pid, &before));
		ASSERT_EQ(worker_call(&w, loop, LOOPS), 0);
		ASSERT_TRUE(task_totals(w.pid, &after));
		counted = after.counts[0] - before.counts[0];
		TH_LOG("%" PRIu64 " of %" PRIu64, counted, insns);
		EXPECT_GE(counted, insns);
		EXPECT_TRUE(!i || counted <= insns + insns / 400);
	}
	EXPECT_EQ(after.valid, 1);
	EXPECT_TRUE(worker_end(&w));
}

#define YIELDS	3000

/*
 * Each switch reads its counters directly, except the first one in each tick. Two tasks take turns
 * 6000 times, within a few dozen ticks of virtual time.
 */
TEST_F(exact, switches_read_in_line)
{
	uint64_t slow, reads;
	struct worker w[2];
	int i;

	if (!self->counts)
		SKIP(return, "no PMU counts instructions");
	ASSERT_EQ(set_parameter("enabled", "0"), 0);
	ASSERT_EQ(set_parameter("events", "cycles,instructions"), 0);
	ASSERT_EQ(set_parameter("enabled", "1"), 0);
	for (i = 0; i < 2; i++)
		ASSERT_TRUE(worker_start(&w[i]));
	slow = parameter_number("slow_switches");
	reads = parameter_number("slow_reads");
	EXPECT_TRUE(workers_do(w, ORDER_YIELD, YIELDS));
	slow = parameter_number("slow_switches") - slow;
	reads = parameter_number("slow_reads") - reads;
	TH_LOG("%" PRIu64 " slow switches, %" PRIu64 " slow reads", slow, reads);
	EXPECT_LT(slow, YIELDS / 10);
	EXPECT_LT(reads, YIELDS / 10);
	EXPECT_GT(reads, 0);
	for (i = 0; i < 2; i++)
		EXPECT_TRUE(worker_end(&w[i]));
}

/* Builds the path of the cgroup that is @depth levels below the root. */
static void path_of(const char *root, int depth, char path[512])
{
	int len = snprintf(path, 512, "%s", root);

	while (depth--)
		len += snprintf(path + len, 512 - len, "/d");
}

/* Makes the cgroups down to @depth, and moves process @pid to the last one. */
static bool descend(const char *root, int depth, int pid)
{
	char path[512];
	int i;

	for (i = 1; i <= depth; i++) {
		path_of(root, i, path);
		if (mkdir(path, 0755) && errno != EEXIST)
			return false;
	}
	return !move(path, pid);
}

#define CALLS		1000
#define MEASUREMENTS	9

/*
 * Returns the cost of CALLS calls of @w, or 0 on an error. Each call has two switches: the caller
 * waits for the worker, and the worker waits for the next call. A measurement may have more, from
 * another task on the CPU, or less, if tasks preempt each other before they wait, so the median
 * counts.
 */
static uint64_t cost_of_calls(const struct worker *w)
{
	struct totals before, after;
	int64_t costs[MEASUREMENTS];
	int i, j;

	for (i = 0; i < MEASUREMENTS; i++) {
		if (!cpu_totals(0, &before))
			return 0;
		for (j = 0; j < CALLS; j++)
			if (worker_do(w, ORDER_YIELD, 0, 0))
				return 0;
		if (!cpu_totals(0, &after))
			return 0;
		costs[i] = after.counts[0] - before.counts[0];
	}
	return median(costs, MEASUREMENTS);
}

/* Returns the cost of calls of a worker that is @depth cgroups below its caller. */
static uint64_t cost_at(const char *root, int depth)
{
	uint64_t cost = 0;
	struct worker w;

	if (!worker_start(&w))
		return 0;
	if (descend(root, depth, w.pid))
		cost = cost_of_calls(&w);
	return worker_end(&w) ? cost : 0;
}

static void remove_depth(const char *root, int depth)
{
	char path[512];

	for (; depth; depth--) {
		path_of(root, depth, path);
		comes(!rmdir(path));
	}
}

/* Only readers need the depth of a cgroup, so a switch costs the same at each depth. */
TEST_F(exact, depth_costs_nothing)
{
	uint64_t shallow, deep;
	char root[32];

	if (!self->counts)
		SKIP(return, "no PMU counts instructions");
	ASSERT_EQ(cgroups_mount(root), 0);
	cost_at(root, 10);	/* makes all cgroups, and warms up */
	shallow = cost_at(root, 1);
	deep = cost_at(root, 10);
	remove_depth(root, 10);
	cgroups_unmount(root);
	ASSERT_GT(shallow, 0);
	TH_LOG("%" PRIu64 " instructions at depth 1, %" PRIu64 " at depth 10", shallow, deep);
	EXPECT_LE(deep, shallow + shallow / 400);
	EXPECT_GE(deep, shallow - shallow / 400);
}

TEST_HARNESS_MAIN
