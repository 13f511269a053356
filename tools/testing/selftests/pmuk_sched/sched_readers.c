// SPDX-License-Identifier: GPL-2.0
/*
 * Readers of /proc/pmuk_sched disturb other tasks little. They do not interrupt idle CPUs, they
 * interrupt each busy CPU only once, and long work is divided into short stretches.
 */
#include <pthread.h>

#include "sched_cgroup.h"
#include "sched_fixture.h"

/* Returns the run time of tasks ("cpu") or of the idle task ("idle") on a CPU. */
static uint64_t run_of(const char *who, int cpu)
{
	char begin[32];

	snprintf(begin, sizeof(begin), "%s %d ", who, cpu);
	return number_in(SCHED "cpus", begin);
}

/*
 * RCU's kthread wakes up for each grace period. Returns its pid, or 0 if it is not found: it is
 * among the first tasks.
 */
static int find_rcu(void)
{
	char path[32];
	int pid;

	for (pid = 2; pid < 100; pid++) {
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		if (file_is(path, "rcu_preempt") || file_is(path, "rcu_sched"))
			return pid;
	}
	return 0;
}

/* Keeps a task off @cpu. @before gets where it could run. Returns whether it can be done. */
static bool keep_off(int pid, int cpu, cpu_set_t *before)
{
	cpu_set_t set;

	if (!pid || sched_getaffinity(pid, sizeof(*before), before))
		return false;
	set = *before;
	CPU_CLR(cpu, &set);
	return !sched_setaffinity(pid, sizeof(set), &set);
}

#define FEWEST_IDLE	8	/* two readings of each file */

/*
 * A reading must not send an IPI to an idle CPU. If a task has run on the last CPU during a
 * reading, an IPI was allowed, and the reading does not count. Each reading reads one file, so that
 * even on a slow machine most readings end before a kernel thread runs on that CPU again. If few
 * do, the test is content with less.
 */
TEST_F(sched, idle_cpus_are_left_alone)
{
	int last = nr_cpus() - 1, idle = 0, rcu = find_rcu();
	uint64_t was, now, calls, begun = now_ns();
	cpu_set_t rcu_set;
	bool marked = true;

	if (!last)
		SKIP(return, "one CPU is never idle while it is asked for");
	if (!calls_begin())
		SKIP(return, "calls between CPUs are not told");
	ASSERT_TRUE(calls_filter(last));
	if (!keep_off(rcu, last, &rcu_set)) {
		TH_LOG("RCU's kthread may run on CPU %d", last);
		rcu = 0;
	}
	for (was = run_of("cpu", last);
	     marked && idle < 4 * READS &&
	     now_ns() < begun + (idle < FEWEST_IDLE ? 4 : 1) * PATIENCE;
	     was = now) {
		read_file_of(idle);
		now = run_of("cpu", last);
		marked = calls_mark(now == was);
		idle += now == was;
	}
	if (rcu)
		sched_setaffinity(rcu, sizeof(rcu_set), &rcu_set);
	calls = calls_on(last);
	calls_end();
	TH_LOG("%" PRIu64 " calls on CPU %d in %d readings", calls, last, idle);
	EXPECT_TRUE(marked);
	EXPECT_GE(idle, FEWEST_IDLE);
	EXPECT_LT(4 * calls, (uint64_t)idle);
}

/* Idle time increases from reading to reading, although the idle CPU is not woken. */
TEST_F(sched, idle_time_goes_on)
{
	uint64_t began, first, last, now = 0, i;
	int cpu = nr_cpus() - 1;

	if (!cpu)
		SKIP(return, "one CPU is never idle while it is asked for");
	ASSERT_EQ(stay_on(cpu), 0);
	ASSERT_EQ(stay_on(0), 0);
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

/* Each busy CPU is interrupted once for a reading, even with many cgroups. */
TEST_F(sched, cgroups_are_read_in_one_pass)
{
	char root[32], path[512], name[16];
	int i, pid, last = nr_cpus() - 1;
	uint64_t calls;

	if (!last)
		SKIP(return, "there is no other CPU to be asked");
	if (!calls_begin())
		SKIP(return, "calls between CPUs are not told");
	ASSERT_EQ(cgroups_mount(root), 0);
	for (i = 0; i < CGROUPS; i++) {
		snprintf(name, sizeof(name), "pass%d", i);
		ASSERT_EQ(make_below(root, name, path), 0);
	}
	pid = start(spin, (void *)(long)last);
	usleep(100000);
	calls_begin();
	for (i = 0; i < READS; i++)
		free(slurp(SCHED "cgroups"));
	calls = calls_on(last);
	calls_end();
	TH_LOG("%" PRIu64 " calls in %d readings", calls, READS);
	stop(pid);
	for (i = 0; i < CGROUPS; i++) {
		snprintf(name, sizeof(name), "pass%d", i);
		path_in(root, name, path);
		rmdir(path);
	}
	cgroups_unmount(root);
	EXPECT_GE(calls, READS);
	EXPECT_LT(calls, READS * 3 / 2);
}

#define SLEEPERS	320

static int sleep_for_ever(void *arg)
{
	return pause();
}

/* A reading drops its lock after at most 256 tasks, so that other users of the lock can run. */
TEST_F(sched, stretches_are_short)
{
	static int pids[SLEEPERS];
	uint64_t stretch;
	int i, nr;

	for (nr = 0; nr < SLEEPERS; nr++) {
		pids[nr] = start(sleep_for_ever, NULL);
		if (pids[nr] < 0)
			break;
	}
	EXPECT_GT(nr, 256);
	read_files(4);
	stretch = parameter_number("stretch");
	TH_LOG("%" PRIu64 " of %d tasks", stretch, nr);
	EXPECT_GT(stretch, 0);
	EXPECT_LE(stretch, 256);
	for (i = 0; i < nr; i++)
		kill(pids[i], SIGKILL);
	for (i = 0; i < nr; i++)
		waitpid(pids[i], NULL, 0);
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

#define TEAM_COUNTS	7000

static int add_with_thread(void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, sleep_on, NULL) ||
	    pace_add(TEAM_COUNTS, 10 * TEAM_COUNTS))
		return 1;
	sleep(30);	/* only an orphan gets this far */
	return 0;
}

#define TEAMS		32
#define READINGS	50

/*
 * Starts processes of two threads, gives readers time to read them more than once, and kills them
 * one after the other. No process starts while others end, since the counts of a new process could
 * hide that a reading has missed those of one that ended.
 */
static bool end_teams(void)
{
	int pids[TEAMS], i;

	for (i = 0; i < TEAMS; i++) {
		pids[i] = start(add_with_thread, NULL);
		if (pids[i] < 0)
			return false;
	}
	usleep(50000);
	for (i = 0; i < TEAMS; i++) {
		stop(pids[i]);
		usleep(1000);
	}
	usleep(50000);
	return true;
}

/* Tasks that end while others are read are neither missed nor counted twice. */
TEST_F(sched, readers_miss_nothing_that_ends)
{
	struct busy forks = { .act = fork_once, .cpu = nr_cpus() - 1 };
	struct busy ends = { .act = end_teams, .cpu = nr_cpus() - 1 };
	char root[32], group[512];
	struct totals after;
	uint64_t end, goal, rounds;
	int i, bad = 0;

	ASSERT_EQ(cgroups_mount(root), 0);
	ASSERT_EQ(make_below(root, "forks", group), 0);
	ASSERT_TRUE(busy_start(&forks));
	ASSERT_EQ(move(group, forks.pid), 0);
	ASSERT_TRUE(comes(exited_totals(&after) && after.counts[0] >= 700));
	for (i = 0; i < READINGS; i++)
		bad += !reads_all();
	ASSERT_TRUE(exited_totals(&after));
	TH_LOG("%d of %d readings were wrong, while %" PRIu64 " tasks ended", bad, READINGS,
	       after.counts[0] / 7);
	EXPECT_EQ(bad, 0);
	EXPECT_TRUE(busy_end(&forks, &rounds));
	goal = after.counts[0] + 2 * TEAMS * TEAM_COUNTS;
	ASSERT_TRUE(busy_start(&ends));
	bad = 0;
	for (end = now_ns() + 2 * NSEC_PER_SEC, i = 0;
	     now_ns() < end || (after.counts[0] < goal && now_ns() < end + PATIENCE); i++) {
		bad += !reads_all();
		ASSERT_TRUE(exited_totals(&after));
	}
	TH_LOG("%d of %d readings were wrong, while processes with threads ended", bad, i);
	EXPECT_EQ(bad, 0);
	EXPECT_GE(after.counts[0], goal);
	EXPECT_TRUE(busy_end(&ends, &rounds));
	comes(!rmdir(group) || errno != EBUSY);
	cgroups_unmount(root);
}

/* While another consumer has one CPU's counters, the other CPUs are seldom interrupted. */
TEST_F(sched, lost_counters_disturb_no_others)
{
	int last = nr_cpus() - 1, pid;
	uint64_t calls, end, added = 0;

	if (!last)
		SKIP(return, "there is no other CPU");
	if (!calls_begin())
		SKIP(return, "calls between CPUs are not told");
	pid = start(spin, (void *)(long)last);
	ASSERT_EQ(pace_steal(0, 8), 0);
	usleep(1500000);
	calls_begin();
	for (end = now_ns() + 4 * NSEC_PER_SEC; now_ns() < end;)
		;	/* CPUs that are awake do the periodic work */
	calls = calls_on(last);
	calls_end();
	TH_LOG("%" PRIu64 " calls in 4 s", calls);
	stop(pid);
	ASSERT_EQ(pace_steal(0, 0), 0);
	EXPECT_TRUE(comes(cpu_counts(0, &added)));
	EXPECT_LT(calls, 2);
}

static uint64_t idle_run(int cpu)
{
	char *text __freed = slurp(SCHED "cpus");
	const char *at = after(text, "idle %d ", cpu);

	return at ? strtoull(at, NULL, 10) : 0;
}

/* Sets the policy of a sleeping task. The scheduler then updates the clock of the task's CPU. */
static int touch_clock(int pid)
{
	struct sched_param none = {};

	return sched_setscheduler(pid, SCHED_BATCH, &none) ?:
	       sched_setscheduler(pid, SCHED_OTHER, &none);
}

/* A CPU that loses its counters while it is idle is not idle for longer than time passes. */
TEST_F(sched, idle_without_counters_counts_once)
{
	uint64_t before, idle, began, passed = 0;
	int last = nr_cpus() - 1;
	struct worker w;

	if (!last)
		SKIP(return, "there is no other CPU");
	ASSERT_TRUE(worker_start_on(&w, last));
	began = now_ns();
	before = idle_run(last);
	ASSERT_EQ(pace_steal(last, 8), 0);
	for (; passed < 4 * NSEC_PER_SEC; usleep(20000)) {
		ASSERT_EQ(touch_clock(w.pid), 0);
		idle = idle_run(last) - before;
		passed = now_ns() - began;
		ASSERT_LE(idle, passed + 200 * NSEC_PER_MSEC);
	}
	ASSERT_EQ(pace_steal(last, 0), 0);
	EXPECT_TRUE(worker_end(&w));
}

TEST_HARNESS_MAIN
