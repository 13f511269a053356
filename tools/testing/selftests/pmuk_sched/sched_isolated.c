// SPDX-License-Identifier: GPL-2.0
/*
 * The tests need certain boot parameters. Readers do not disturb isolated CPUs (nohz_full=,
 * isolcpus=). If a task lends its time to the owner of a mutex (sched_proxy_exec=1), the owner's
 * events are not charged to that task.
 */
#include <sys/resource.h>

#include "sched_fixture.h"

/* ---- isolated CPUs ---- */

/* Gets the first and the last isolated CPU. Returns false unless there are two. */
static bool isolated_cpus(int *first, int *last)
{
	char text[64];

	return read_file("/sys/devices/system/cpu/isolated", text, sizeof(text)) > 0 &&
	       sscanf(text, "%d-%d", first, last) == 2;
}

/* Two CPUs are isolated. The first is idle, and the last runs a program without system calls. */
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
	sleep(3);		/* periodic work disturbs neither CPU */
	read_files(8 * READS);
	TH_LOG("%" PRIu64 " calls on the busy one, %" PRIu64 " on the idle one",
	       calls_on(busy), calls_on(idle));
	EXPECT_LT(calls_on(busy), READS);
	EXPECT_LT(calls_on(idle), READS);
	calls_end();
	stop(pid);
}

/* The counts of a task on an isolated CPU are those of its latest switch. These are exact. */
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
#define WATCHED	500		/* number of steps in a measurement */
#define ON	1		/* CPU of all three tasks */

/* Holds a mutex of the kernel for @steps steps. Each step adds events and takes a millisecond. */
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
 * The owner of the mutex has the lowest priority, and a spinning task has a higher one. The owner
 * still makes progress, since it runs for a waiter with an even higher priority.
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

	/* All three tasks exist from the first reading to the second. */
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
