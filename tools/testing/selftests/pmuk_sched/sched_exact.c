// SPDX-License-Identifier: GPL-2.0
/*
 * Where a real PMU counts instructions, and exactly: a loop of known length, and what a switch
 * costs in cgroups that are deep.
 */
#define _GNU_SOURCE
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "sched.h"

#define LOOPS		100000000ULL
#define PER_LOOP	2		/* instructions */

/* PER_LOOP instructions, so many times. */
static void loop(uint64_t times)
{
#if defined(__aarch64__)
	asm volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r" (times) : : "cc");
#elif defined(__x86_64__)
	asm volatile("1: dec %0\n\tjnz 1b" : "+r" (times) : : "cc");
#endif
}

/* When it is told to, and says when it is done. */
static int run_loops(void *arg)
{
	int *pipes = arg;
	char c;

	while (read(pipes[2], &c, 1) == 1) {
		loop(LOOPS);
		if (write(pipes[1], &c, 1) != 1)
			return 1;
	}
	return 0;
}

/* Whether a real PMU counts that much to be called exact. */
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
	ASSERT_EQ(run_on(0), 0);
	self->counts = counts_instructions();
}

FIXTURE_TEARDOWN(exact)
{
	EXPECT_EQ(set_parameter("enabled", "0"), 0);
	EXPECT_EQ(set_parameter("events", "cycles,instructions"), 0);
}

/*
 * No fewer than it has. One instruction takes 1 ns here, so a tick in 4 ms that has 10 000 adds 1
 * in 400; on arm64, a tick of 7.3 has some 4 000. The first time, there is more to do.
 */
TEST_F_TIMEOUT(exact, known_loop_is_counted, 240)
{
	const uint64_t insns = LOOPS * PER_LOOP;
	struct totals before, after;
	int pipes[4], pid, i;
	uint64_t counted;
	char c = 0;

	if (!self->counts)
		SKIP(return, "no PMU counts instructions");
	ASSERT_EQ(pipe(pipes) | pipe(pipes + 2), 0);
	pid = start(run_loops, pipes);
	for (i = 0; i < 3; i++) {
		ASSERT_TRUE(task_totals(pid, &before));
		ASSERT_EQ(write(pipes[3], &c, 1), 1);
		ASSERT_EQ(read(pipes[0], &c, 1), 1);
		ASSERT_TRUE(task_totals(pid, &after));
		counted = after.counts[0] - before.counts[0];
		TH_LOG("%" PRIu64 " of %" PRIu64, counted, insns);
		EXPECT_GE(counted, insns);
		EXPECT_TRUE(!i || counted <= insns + insns / 400);
	}
	EXPECT_EQ(after.valid, 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#define YIELDS	3000

/* What it costs that two tasks, @depth cgroups below the root, give way to each other. */
static uint64_t cost_at(const char *root, int depth)
{
	struct worker w[2];
	char path[512], text[16];
	struct totals before, after;
	int i, len, failed = 0;

	len = snprintf(path, sizeof(path), "%s", root);
	for (i = 0; i < depth; i++) {
		len += snprintf(path + len, sizeof(path) - len, "/d");
		failed |= mkdir(path, 0755) && errno != EEXIST;
	}
	snprintf(path + len, sizeof(path) - len, "/cgroup.procs");
	for (i = 0; i < 2; i++) {
		failed |= !worker_start(&w[i]);
		snprintf(text, sizeof(text), "%d", w[i].pid);
		failed |= write_file(path, text);
	}
	failed |= !cpu_totals(0, &before);
	for (i = 0; i < 2; i++)
		failed |= !worker_order(&w[i], ORDER_YIELD, YIELDS, 0);
	for (i = 0; i < 2; i++)
		failed |= worker_done(&w[i]);
	failed |= !cpu_totals(0, &after);
	for (i = 0; i < 2; i++)
		failed |= !worker_end(&w[i]);
	return failed ? 0 : after.counts[0] - before.counts[0];
}

static void remove_depth(const char *root, int depth)
{
	char path[512];
	int i, len;

	for (; depth; depth--) {
		len = snprintf(path, sizeof(path), "%s", root);
		for (i = 0; i < depth; i++)
			len += snprintf(path + len, sizeof(path) - len, "/d");
		comes(!rmdir(path));
	}
}

/* Depth is for who reads, and no switch needs to know. */
TEST_F_TIMEOUT(exact, depth_costs_nothing, 240)
{
	char root[] = "/tmp/cgroupXXXXXX";
	uint64_t shallow, deep;

	if (!self->counts)
		SKIP(return, "no PMU counts instructions");
	ASSERT_NE(mkdtemp(root), NULL);
	ASSERT_EQ(mount("none", root, "cgroup2", 0, NULL), 0);
	cost_at(root, 10);	/* all is there, and has been used once */
	shallow = cost_at(root, 1);
	deep = cost_at(root, 10);
	remove_depth(root, 10);
	umount(root);
	rmdir(root);
	ASSERT_GT(shallow, 0);
	TH_LOG("%" PRIu64 " instructions at depth 1, %" PRIu64 " at depth 10", shallow, deep);
	EXPECT_LE(deep, shallow + shallow / 100);
	EXPECT_GE(deep, shallow - shallow / 100);
}

TEST_HARNESS_MAIN
