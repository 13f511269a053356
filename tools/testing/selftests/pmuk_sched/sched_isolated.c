// SPDX-License-Identifier: GPL-2.0
/*
 * These tests depend on how the machine was booted. Readers leave isolated CPUs alone (nohz_full=,
 * isolcpus=). A task that lends its time to the owner of a mutex is not charged with what the owner
 * does (sched_proxy_exec=1).
 */
#include <sys/resource.h>

#include "sched_fixture.h"

/* ---- isolated CPUs ---- */

/* The first and the last one; false: there are not two of them. */
static bool isolated_cpus(int *first, int *last)
{
	char text[64];

	return read_file("/sys/devices/system/cpu/isolated", text, sizeof(text)) > 0 &&
	       sscanf(text, "%d-%d", first, last) == 2;
}

/* An isolated CPU is idle, and another runs a program that makes no system calls. */
TEST_F(sched, isolated_cpus_are_left_alone)
{
	int pid, idle, busy;

	if (!isolated_cpus(&idle, &busy))
		SKIP(return, "no two CPUs are isolated");
	if (!calls_begin())
		SKIP(return, "calls between CPUs are not told");
	pid = start(spin, (void *)(long)busy);
	usleep(500000);
	calls_begin();
	read_files(8 * READS);
	sleep(3);		/* what is done once a second leaves them alone, too */
	read_files(8 * READS);
	TH_LOG("%" PRIu64 " calls on the busy one, %" PRIu64 " on the idle one",
	       calls_on(busy), calls_on(idle));
	EXPECT_LT(calls_on(busy), READS);
	EXPECT_LT(calls_on(idle), READS);
	calls_end();
	stop(pid);
}

/* A task is told as it was at its latest switch, and that is exact. */
TEST_F(sched, isolated_cpus_are_counted)
{
	int first, last;
	struct worker w;

	if (!isolated_cpus(&first, &last))
		SKIP(return, "no two CPUs are isolated");
	ASSERT_TRUE(worker_start_on(&w, last));
	ASSERT_EQ(worker_add(&w, 7, 70), 0);
	EXPECT_TRUE(comes(task_has(w.pid, 7, 70)));
	ASSERT_EQ(worker_add(&w, 1, 10), 0);
	EXPECT_TRUE(comes(task_has(w.pid, 8, 80)));
	ASSERT_TRUE(cpu_totals(last, &self->t));
	EXPECT_GE(self->t.counts[0], 8);
	EXPECT_TRUE(worker_end(&w));
}

/* ---- proxies ---- */

#define STEPS	3000
#define WATCHED	500		/* so many of them are looked at */
#define ON	1		/* the CPU of all of them */

/* Holds a mutex of the kernel while so much happens, which takes as many milliseconds. */
static int hold(int steps)
{
	if (write_file(PACE "mutex", "%d %d 7 %d 70", steps, CYCLES, INSNS))
		return 1;
	for (;;)
		pause();
}

static int hold_long(void *arg)
{
	setpriority(PRIO_PROCESS, 0, 19);
	return stay_on(ON) ? 1 : hold(STEPS);
}

static int hold_too(void *arg)
{
	return be_realtime(2) || stay_on(ON) ? 1 : hold(0);
}

static bool has_taken_steps(int pid, struct totals *t, uint64_t counts)
{
	return comes(task_totals(pid, t) && t->counts[0] >= counts);
}

/*
 * The owner has the lowest priority, and somebody spins who has a higher one: it goes on as it runs
 * for a waiter whose priority is higher still.
 */
TEST_F(sched, owner_is_charged_with_what_it_does)
{
	struct totals owner = {}, owner_before, waiter, spinner, spinner_before;
	int pids[3], i;

	if (!file_has("/proc/cmdline", "sched_proxy_exec=1"))
		SKIP(return, "no task runs for another one");
	pids[0] = start(hold_long, NULL);
	ASSERT_TRUE(comes(task_totals(pids[0], &owner) && owner.counts[0]));
	pids[1] = start(hog, (void *)ON);
	ASSERT_TRUE(comes(task_totals(pids[1], &spinner) && spinner.run > 10000000));
	ASSERT_TRUE(task_totals(pids[0], &owner_before));
	EXPECT_LT(owner_before.counts[0], 7 * (STEPS - 2 * WATCHED));

	/* All are there from the first reading to the second. */
	pids[2] = start(hold_too, NULL);
	ASSERT_TRUE(has_taken_steps(pids[0], &owner, owner_before.counts[0] + 7 * 100));
	owner_before = owner;
	ASSERT_TRUE(task_totals(pids[1], &spinner_before));
	EXPECT_TRUE(has_taken_steps(pids[0], &owner, owner_before.counts[0] + 7 * WATCHED));
	ASSERT_TRUE(task_totals(pids[1], &spinner));
	ASSERT_TRUE(task_totals(pids[2], &waiter));
	TH_LOG("ms meanwhile: owner %" PRIu64 ", waiter %" PRIu64 " and waited %" PRIu64
	       ", spinner %" PRIu64, (owner.run - owner_before.run) / 1000000, waiter.run / 1000000,
	       waiter.wait / 1000000, (spinner.run - spinner_before.run) / 1000000);
	EXPECT_GT(owner.run - owner_before.run, spinner.run - spinner_before.run);
	EXPECT_GT(owner.run - owner_before.run, waiter.run);

	EXPECT_TRUE(has_taken_steps(pids[0], &owner, 7 * STEPS));
	ASSERT_TRUE(task_totals(pids[2], &waiter));
	for (i = 0; i < 3; i++)
		stop(pids[i]);
	expect_counts(_metadata, &owner, 7 * STEPS, 70 * STEPS);
	expect_counts(_metadata, &waiter, 0, 0);
}

TEST_HARNESS_MAIN
