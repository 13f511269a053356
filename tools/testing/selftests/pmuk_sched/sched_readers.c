// SPDX-License-Identifier: GPL-2.0
/*
 * What readers of /proc/pmuk_sched cost others: CPUs that are idle are left alone, nobody is asked
 * twice, and what many tasks need is done in short stretches.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "sched_fixture.h"

/* How long tasks ("cpu"), or the idle task ("idle"), have run on a CPU. */
static uint64_t run_of(const char *who, int cpu)
{
	char *text = slurp(SCHED "cpus"), begin[32];
	const char *at;
	uint64_t run;

	snprintf(begin, sizeof(begin), "%s %d ", who, cpu);
	at = text ? after(text, begin) : NULL;
	run = at ? strtoull(at, NULL, 10) : 0;
	free(text);
	return run;
}

/* Returns whether nobody has called a function on @cpu for a second. */
static bool is_left_alone(int cpu)
{
	uint64_t before = calls_on(cpu);

	usleep(1000000);
	return calls_on(cpu) == before;
}

/*
 * A CPU that a task has run on meanwhile was rightly asked: those readings do not count. Each is of
 * one file, so that on a slow machine, too, most come between two turns of the kernel's own tasks.
 */
TEST_F_TIMEOUT(sched, idle_cpus_are_left_alone, 120)
{
	uint64_t before, was, now, calls = 0;
	int last = nr_cpus() - 1, idle = 0;

	if (!last)
		SKIP(return, "one CPU is never idle while it is asked for");
	if (calls_on(last) == UINT64_MAX)
		SKIP(return, "interrupts between CPUs are not told");
	comes(is_left_alone(last));
	for (was = run_of("cpu", last); idle < 4 * READS; was = now) {
		before = calls_on(last);
		read_file_of(idle);
		now = run_of("cpu", last);
		if (now != was)
			continue;
		calls += calls_on(last) - before;
		idle++;
	}
	TH_LOG("%" PRIu64 " calls on CPU %d in %d readings", calls, last, idle);
	EXPECT_LT(calls, READS);
}

/* Idle time goes on while nobody is woken to tell it, and only grows. */
TEST_F_TIMEOUT(sched, idle_time_goes_on, 120)
{
	uint64_t began, first, last, now = 0, i;
	int cpu = nr_cpus() - 1;

	if (!cpu)
		SKIP(return, "one CPU is never idle while it is asked for");
	ASSERT_EQ(run_on(cpu), 0);
	ASSERT_EQ(run_on(0), 0);
	usleep(50000);
	began = now_ns();
	first = run_of("idle", cpu);
	last = first;
	for (i = 0; i < 50; i++) {
		usleep(20000);
		now = run_of("idle", cpu);
		EXPECT_GE(now, last);
		last = now;
	}
	EXPECT_GT(now - first, (now_ns() - began) / 2);
	EXPECT_LT(now - first, now_ns() - began + 20000000);
}

#define CGROUPS	150

/* Each busy CPU is asked once, however much there is to tell. */
TEST_F_TIMEOUT(sched, cgroups_are_read_in_one_pass, 120)
{
	char root[] = "/tmp/cgroupXXXXXX", path[64];
	int i, pid, last = nr_cpus() - 1;
	uint64_t before, calls;

	if (!last)
		SKIP(return, "there is no other CPU to be asked");
	ASSERT_NE(mkdtemp(root), NULL);
	ASSERT_EQ(mount("none", root, "cgroup2", 0, NULL), 0);
	for (i = 0; i < CGROUPS; i++) {
		snprintf(path, sizeof(path), "%s/pass%d", root, i);
		ASSERT_EQ(mkdir(path, 0755), 0);
	}
	pid = start(spin, (void *)(long)last);
	usleep(100000);
	before = calls_on(last);
	for (i = 0; i < READS; i++)
		free(slurp(SCHED "cgroups"));
	calls = calls_on(last) - before;
	TH_LOG("%" PRIu64 " calls in %d readings", calls, READS);
	stop(pid);
	for (i = 0; i < CGROUPS; i++) {
		snprintf(path, sizeof(path), "%s/pass%d", root, i);
		rmdir(path);
	}
	umount(root);
	rmdir(root);
	if (before == UINT64_MAX)
		SKIP(return, "interrupts between CPUs are not told");
	EXPECT_LT(calls, READS * 3 / 2);
}

#define SLEEPERS	320

/* What is looked at before the lock is given to who waits for it, whatever there is. */
TEST_F_TIMEOUT(sched, stretches_are_short, 240)
{
	static int pids[SLEEPERS];
	char text[32];
	int i, nr;

	for (nr = 0; nr < SLEEPERS; nr++) {
		pids[nr] = fork();
		if (!pids[nr]) {
			pause();
			_exit(0);
		}
		if (pids[nr] < 0)
			break;
	}
	EXPECT_GT(nr, 256);
	read_files(4);
	EXPECT_GT(read_file(PARAMETERS "stretch", text, sizeof(text)), 0);
	TH_LOG("%s of %d tasks", text, nr);
	EXPECT_GT(atoi(text), 0);
	EXPECT_LE(atoi(text), 256);
	for (i = 0; i < nr; i++)
		kill(pids[i], SIGKILL);
	for (i = 0; i < nr; i++)
		waitpid(pids[i], NULL, 0);
}

static int add_once(void *arg)
{
	return pace_add(7, 70);
}

static int fork_and_end(void *root)
{
	char text[16];

	run_on(nr_cpus() - 1);
	snprintf(text, sizeof(text), "%d", getpid());
	if (write_file(root, text))
		return 1;
	for (;;)
		ended(start(add_once, NULL));
	return 0;
}

static bool is_between(const struct totals *before, const struct totals *t,
		       const struct totals *after)
{
	return before->counts[0] <= t->counts[0] && t->counts[0] <= after->counts[0] &&
	       before->run <= t->run && t->run <= after->run;
}

static bool reads_all(void)
{
	struct totals before, tasks, tree, after;

	return sum_cpus(&before) && sum_tasks(&tasks) && cgroup_totals("subtree", 1, &tree) &&
	       sum_cpus(&after) && is_between(&before, &tasks, &after) &&
	       is_between(&before, &tree, &after);
}

static void *sleep_on(void *arg)
{
	pause();
	return NULL;
}

static int add_with_thread(void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, sleep_on, NULL) || pace_add(7000, 70000))
		return 1;
	sleep(30);	/* killed before that, but for an orphan */
	return 0;
}

#define TEAMS		32
#define READINGS	100

/*
 * Processes with threads that were read more than once before they end. None begins while others
 * end: its counts would hide that those of another one are missed.
 */
static int end_teams(void *arg)
{
	int pids[TEAMS], i;

	run_on(nr_cpus() - 1);
	for (;;) {
		for (i = 0; i < TEAMS; i++) {
			pids[i] = start(add_with_thread, NULL);
			if (pids[i] < 0)
				return 1;
		}
		usleep(50000);
		for (i = 0; i < TEAMS; i++) {
			stop(pids[i]);
			usleep(1000);
		}
		usleep(50000);
	}
}

/* Tasks that end while others are read are neither missed nor counted twice. */
TEST_F_TIMEOUT(sched, readers_miss_nothing_that_ends, 480)
{
	char root[] = "/tmp/cgroupXXXXXX", group[64], procs[96];
	struct totals after;
	int i, pid, bad = 0;
	uint64_t end;

	ASSERT_NE(mkdtemp(root), NULL);
	ASSERT_EQ(mount("none", root, "cgroup2", 0, NULL), 0);
	snprintf(group, sizeof(group), "%s/forks", root);
	ASSERT_EQ(mkdir(group, 0755), 0);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", group);
	pid = start(fork_and_end, procs);
	ASSERT_TRUE(comes(exited_totals(&after) && after.counts[0] >= 700));
	for (i = 0; i < READINGS; i++)
		bad += !reads_all();
	ASSERT_TRUE(exited_totals(&after));
	TH_LOG("%d of %d readings were wrong, while %" PRIu64 " tasks ended", bad, READINGS,
	       after.counts[0] / 7);
	EXPECT_EQ(bad, 0);
	stop(pid);
	pid = start(end_teams, NULL);
	bad = 0;
	for (end = now_ns() + 5 * NSEC_PER_SEC, i = 0; now_ns() < end; i++)
		bad += !reads_all();
	TH_LOG("%d of %d readings were wrong, while processes with threads ended", bad, i);
	EXPECT_EQ(bad, 0);
	EXPECT_EQ(waitpid(pid, NULL, WNOHANG), 0);
	stop(pid);
	comes(!rmdir(group) || errno != EBUSY);
	umount(root);
	rmdir(root);
}

/*
 * While one CPU's counters stay away, CPUs whose counters are there are seldom disturbed.
 * Cgroups of the test before may still go, which can patch code, and all CPUs are called for that.
 */
TEST_F_TIMEOUT(sched, lost_counters_disturb_no_others, 120)
{
	int last = nr_cpus() - 1, pid;
	uint64_t before, calls, end, added = 0;

	if (!last)
		SKIP(return, "there is no other CPU");
	comes(is_left_alone(last));
	pid = start(spin, (void *)(long)last);
	ASSERT_EQ(pace_steal(0, 8), 0);
	usleep(1500000);
	before = calls_on(last);
	for (end = now_ns() + 8 * NSEC_PER_SEC; now_ns() < end;)
		;	/* what is to be done once a second is done by CPUs that are awake */
	calls = calls_on(last) - before;
	TH_LOG("%" PRIu64 " calls in 8 s", calls);
	stop(pid);
	ASSERT_EQ(pace_steal(0, 0), 0);
	EXPECT_TRUE(comes(cpu_counts(0, &added)));
	if (before == UINT64_MAX)
		SKIP(return, "interrupts between CPUs are not told");
	EXPECT_LT(calls, 4);
}

TEST_HARNESS_MAIN
