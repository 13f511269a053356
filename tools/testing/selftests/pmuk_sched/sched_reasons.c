// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check the reasons for which tasks leave their CPU, as in /proc/pmuk_sched. A task only
 * counts as preempted if another task got the CPU while the first could have run. Throttled time
 * does not count as waiting, and interrupts do not make a CPU seem faster.
 */
#include "sched_cgroup.h"
#include "sched_fixture.h"

#define LAST	(nr_cpus() - 1)

/* ---- throttled ---- */

FIXTURE(quota)
{
	char root[32], group[512];
	bool has_quota;
	int pid;
};

/* A task spins alone on a CPU. In the cgroup with a quota, it may run 2 ms in each 20 ms. */
FIXTURE_SETUP(quota)
{
	char path[512];

	ASSERT_EQ(cgroups_mount(self->root), 0);
	write_in(self->root, "cgroup.subtree_control", "+cpu");
	ASSERT_EQ(make_below(self->root, "quota", self->group), 0);
	self->has_quota = path_in(self->group, "cpu.max", path) && !access(path, W_OK);
	if (self->has_quota)
		ASSERT_EQ(write_file(path, "2000 20000"), 0);
	ASSERT_TRUE(sched_begin(8, 48));
	self->pid = start(spin, (void *)(long)LAST);
}

FIXTURE_TEARDOWN(quota)
{
	stop(self->pid);
	comes(!rmdir(self->group) || errno != EBUSY);
	cgroups_unmount(self->root);
	EXPECT_TRUE(sched_end());
}

TEST_F(quota, throttled_is_neither_preempted_nor_waiting)
{
	struct truth truth, before;
	struct totals t, t_before;
	uint64_t began, passed;
	struct reasons r;

	if (!self->has_quota)
		SKIP(return, "no cgroup has a quota: CFS_BANDWIDTH is not set");
	ASSERT_TRUE(task_totals(self->pid, &t_before));
	ASSERT_TRUE(truth_of(self->pid, &before));
	began = now_ns();
	ASSERT_EQ(move(self->group, self->pid), 0);
	ASSERT_TRUE(comes(truth_of(self->pid, &truth) &&
			  truth.involuntary - before.involuntary >= 20));
	passed = now_ns() - began;
	ASSERT_TRUE(task_totals(self->pid, &t));
	ASSERT_TRUE(truth_of(self->pid, &truth));
	truth.involuntary -= before.involuntary;
	TH_LOG("in %" PRIu64 " ms: same %" PRIu64 " other %" PRIu64 " of %" PRIu64
	       ", wait %" PRIu64 " of %" PRIu64 " ms", passed / 1000000, t.same - t_before.same,
	       t.other - t_before.other, truth.involuntary, (t.wait - t_before.wait) / 1000000,
	       (truth.wait - before.wait) / 1000000);
	EXPECT_LE(t.same - t_before.same + t.other - t_before.other, truth.involuntary / 2);
	EXPECT_LT(t.wait - t_before.wait, passed / 4);
	ASSERT_TRUE(reasons_on(LAST, &r));
	EXPECT_GE(r.throttled, 10);
}

/* Returns how often the kernel has throttled the cgroup's tasks. */
static uint64_t throttled_in(const char *group)
{
	char path[512], *stat __freed = path_in(group, "cpu.stat", path) ? slurp(path) : NULL;
	const char *times = after(stat, "nr_throttled ");

	return times ? strtoull(times, NULL, 10) : 0;
}

/* Waits never become less, whether the task is throttled or runs while they are read. */
TEST_F(quota, waits_of_throttled_only_grow)
{
	uint64_t began, first, last;
	struct totals t;

	if (!self->has_quota)
		SKIP(return, "no cgroup has a quota: CFS_BANDWIDTH is not set");
	ASSERT_TRUE(task_totals(self->pid, &t));
	began = now_ns();
	first = t.wait;
	last = first;
	ASSERT_EQ(move(self->group, self->pid), 0);
	while (throttled_in(self->group) < 50) {
		ASSERT_TRUE(task_totals(self->pid, &t));
		ASSERT_GE(t.wait, last);
		last = t.wait;
	}
	EXPECT_LT(last - first, (now_ns() - began) / 2);
}

static int set_class(int pid, int policy, int priority)
{
	struct sched_param param = { .sched_priority = priority };

	return sched_setscheduler(pid, policy, &param);
}

/* Preempts the tasks of the last CPU some times, also those of SCHED_FIFO with priority 1. */
static int preempt_last(void)
{
	int i, ret = set_class(0, SCHED_FIFO, 2) ?: stay_on(LAST);

	for (i = 0; i < 5; i++)
		usleep(1000);
	return ret ?: stay_on(0) ?: set_class(0, SCHED_OTHER, 0);
}

/* A task that was throttled, and gets a real-time class then, is preempted from then on. */
TEST_F(quota, real_time_is_not_throttled)
{
	struct reasons before, r;
	int i;

	if (!self->has_quota)
		SKIP(return, "no cgroup has a quota: CFS_BANDWIDTH is not set");
	ASSERT_EQ(move(self->group, self->pid), 0);
	for (i = 1; i <= 10; i++) {
		ASSERT_TRUE(comes(throttled_in(self->group) >= 3 * i));
		ASSERT_EQ(set_class(self->pid, SCHED_FIFO, 1), 0);
		ASSERT_TRUE(reasons_on(LAST, &before));
		EXPECT_EQ(preempt_last(), 0);
		ASSERT_TRUE(reasons_on(LAST, &r));
		EXPECT_EQ(r.throttled, before.throttled);
		ASSERT_EQ(set_class(self->pid, SCHED_OTHER, 0), 0);
	}
}

/* ---- yielded, stopped, migrated ---- */

#define YIELDS	500

TEST_F(sched, yielding_is_not_being_preempted)
{
	struct reasons before, r;
	struct worker w[2];
	int i;

	for (i = 0; i < 2; i++)
		ASSERT_TRUE(worker_start(&w[i]));
	ASSERT_TRUE(reasons_on(0, &before));
	ASSERT_TRUE(workers_do(w, ORDER_YIELD, YIELDS));
	ASSERT_TRUE(reasons_on(0, &r));
	ASSERT_TRUE(task_totals(w[0].pid, &self->t) && task_totals(w[1].pid, &self->before));
	TH_LOG("yielded %" PRIu64 ", preempted %" PRIu64, r.yielded - before.yielded,
	       self->t.same + self->t.other + self->before.same + self->before.other);
	EXPECT_GE(r.yielded - before.yielded, YIELDS / 2);
	EXPECT_LT(self->t.same + self->t.other + self->before.same + self->before.other,
		  YIELDS / 4);
	EXPECT_TRUE(worker_end(&w[0]) && worker_end(&w[1]));
}

/* Two spinning tasks preempt each other. */
TEST_F(sched, taking_turns_is_being_preempted)
{
	int pids[2], i;

	for (i = 0; i < 2; i++)
		pids[i] = start(spin, (void *)(long)LAST);
	EXPECT_TRUE(comes(task_totals(pids[0], &self->t) && self->t.same + self->t.other >= 10));
	EXPECT_TRUE(comes(task_totals(pids[1], &self->t) && self->t.same + self->t.other >= 10));
	EXPECT_GT(self->t.wait, 0);
	for (i = 0; i < 2; i++)
		stop(pids[i]);
}

#define MOVES	20

static uint64_t cpu_time(int pid)
{
	struct timespec t = {};
	clockid_t clock;

	if (!clock_getcpuclockid(pid, &clock))
		clock_gettime(clock, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

/* Returns whether the task has run for 20 ms on its new CPU. */
static bool runs_on(int pid)
{
	uint64_t before = cpu_time(pid);

	return comes(cpu_time(pid) > before + 20 * NSEC_PER_MSEC);
}

/* A task is moved away by stopping its CPU. It could not have run on, so it was not preempted. */
TEST_F(sched, moving_on_is_not_being_preempted)
{
	struct reasons r[2], before[2] = {};
	uint64_t moved = 0;
	int pid, i;

	if (nr_cpus() < 2)
		SKIP(return, "there is no other CPU");
	ASSERT_TRUE(reasons_on(0, &before[0]) && reasons_on(1, &before[1]));
	pid = start(spin, (void *)1);
	for (i = 0; i < MOVES; i++) {
		const cpu_set_t there = {{ i % 2 ? 2 : 1 }};

		ASSERT_TRUE(runs_on(pid));
		ASSERT_EQ(sched_setaffinity(pid, sizeof(there), &there), 0);
	}
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(reasons_on(i, &r[i]));
		moved += r[i].migrated - before[i].migrated;
	}
	EXPECT_GE(moved, MOVES / 2);
	EXPECT_LE(moved, MOVES + 5);
	stop(pid);
}

/* While one CPU goes offline, all other CPUs are stopped. */
TEST_F(sched, being_stopped_is_not_being_preempted)
{
	struct reasons r = {}, before;
	int pid;

	if (nr_cpus() < 2 || access(CPU1_ONLINE, W_OK))
		SKIP(return, "no CPU can go offline");
	ASSERT_TRUE(reasons_on(0, &before));
	pid = start(spin, (void *)0);
	ASSERT_EQ(run_anywhere(), 0);
	usleep(20000);
	ASSERT_EQ(write_file(CPU1_ONLINE, "0"), 0);
	ASSERT_EQ(write_file(CPU1_ONLINE, "1"), 0);
	EXPECT_TRUE(reasons_on(0, &r));
	TH_LOG("stopped %" PRIu64, r.stopped - before.stopped);
	EXPECT_GT(r.stopped, before.stopped);
	stop(pid);
}

/* ---- what time is ---- */

/*
 * Returns a spinning task's frequency over half a second, in GHz, or 0 on failure. SIGSTOP causes a
 * switch at both ends.
 */
static double frequency_of(int pid)
{
	struct totals before, t;
	bool sound;

	kill(pid, SIGSTOP);
	sound = comes(is_in_state(pid, 'T')) && task_totals(pid, &before);
	kill(pid, SIGCONT);
	usleep(500000);
	kill(pid, SIGSTOP);
	sound &= comes(is_in_state(pid, 'T')) && task_totals(pid, &t);
	kill(pid, SIGCONT);
	return sound ? (double)(t.counts[0] - before.counts[0]) / (double)(t.run - before.run) : 0;
}

/* Softirqs take 40 % of the CPU. The frequency does not change. */
TEST_F(sched, frequency_is_right_under_interrupts)
{
	double alone, told;
	int fd, pid;

	ASSERT_EQ(set_parameter("events", "cycles"), 0);
	fd = open_counter(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, LAST);
	if (fd < 0)
		SKIP(return, "no PMU counts cycles");
	close(fd);
	pid = start(spin, (void *)(long)LAST);
	alone = frequency_of(pid);
	ASSERT_EQ(write_file(PACE "soft", "%d 40", LAST), 0);
	told = frequency_of(pid);
	ASSERT_EQ(write_file(PACE "soft", "0 0"), 0);
	TH_LOG("%.3f GHz, with softirqs %.3f", alone, told);
	EXPECT_GT(alone, 0);
	EXPECT_LT(told, alone * 1.05);
	EXPECT_GT(told, alone * 0.95);
	stop(pid);
}

TEST_HARNESS_MAIN
