// SPDX-License-Identifier: GPL-2.0
/*
 * The tests create many short-lived tasks. A thread's counts are added to its process, and those of
 * a process to the exited total. The total is exact, no matter how many tasks, readers, and reused
 * pids there are.
 */
#include <pthread.h>

#include "sched.h"

#define PID_MAX		"/proc/sys/kernel/pid_max"

FIXTURE(storm)
{
	char pid_max[32];
	struct totals t;
};

FIXTURE_SETUP(storm)
{
	ASSERT_GT(read_file(PID_MAX, self->pid_max, sizeof(self->pid_max)), 0);
	ASSERT_TRUE(sched_begin(8, 48));
}

FIXTURE_TEARDOWN(storm)
{
	write_file(PID_MAX, "%s", self->pid_max);
	EXPECT_TRUE(sched_end());
}

/* ---- threads and processes ---- */

#define THREADS	4

/* A worker has these threads. */
static struct {
	pthread_t threads[THREADS];
	pthread_barrier_t added, leave;
} team;

static void *team_member(void *arg)
{
	if (pace_add(10, 100))
		return &team;
	pthread_barrier_wait(&team.added);
	pthread_barrier_wait(&team.leave);
	return NULL;
}

/* Adds 10 and 100 in each of 4 threads, then 1 and 2 in the worker itself. */
static int team_add(uint64_t arg)
{
	int i;

	pthread_barrier_init(&team.added, NULL, THREADS + 1);
	pthread_barrier_init(&team.leave, NULL, THREADS + 1);
	for (i = 0; i < THREADS; i++)
		pthread_create(&team.threads[i], NULL, team_member, NULL);
	pthread_barrier_wait(&team.added);
	return pace_add(1, 2);
}

/* The threads of the worker exit. */
static int team_leave(uint64_t arg)
{
	void *failed = NULL;
	int i;

	pthread_barrier_wait(&team.leave);
	for (i = 0; i < THREADS && !failed; i++)
		pthread_join(team.threads[i], &failed);
	return failed ? -1 : 0;
}

static bool group_has(int tgid, int threads, uint64_t cycles, uint64_t insns)
{
	char *text __freed = slurp(SCHED "tasks");
	const char *at = after(text, "group %d", tgid);
	struct totals t;

	return at && atoi(at) == threads && totals_at(text, at, 2, &t) &&
	       has_counts(&t, cycles, insns);
}

/* Returns whether the living threads of @tgid have these counts in total. */
static bool threads_have(int tgid, uint64_t cycles, uint64_t insns)
{
	struct totals sum = {}, t;
	char *text __freed = slurp(SCHED "tasks");
	const char *line = text;
	int of;

	while ((line = after(line, "task "))) {
		if (sscanf(line, "%*d %d", &of) == 1 && of == tgid &&
		    totals_at(text, line - 1, 3, &t))
			add_totals(&sum, &t);
	}
	return has_counts(&sum, cycles, insns);
}

TEST_F(storm, threads_are_folded_into_their_process)
{
	struct worker w;

	ASSERT_TRUE(worker_start(&w));
	ASSERT_EQ(worker_call(&w, team_add, 0), 0);
	EXPECT_TRUE(group_has(w.pid, THREADS + 1, 41, 402));
	EXPECT_TRUE(threads_have(w.pid, 41, 402));
	EXPECT_TRUE(task_has(w.pid, 1, 2));
	ASSERT_EQ(worker_call(&w, team_leave, 0), 0);
	EXPECT_TRUE(comes(group_has(w.pid, 1, 41, 402)));
	EXPECT_TRUE(threads_have(w.pid, 1, 2));
	EXPECT_TRUE(exited_has(0, 0));
	expect_sum(_metadata, 41, 402);
	EXPECT_TRUE(worker_end(&w));
	EXPECT_TRUE(comes(exited_has(41, 402)));
	EXPECT_FALSE(group_totals(w.pid, &self->t));
}

#define REAPED	20

/*
 * A task that has been waited for is at once in the exited total, and in no line, although RCU
 * keeps the task for a while.
 */
TEST_F(storm, reaped_tasks_have_no_lines)
{
	int i, pid;

	for (i = 1; i <= REAPED; i++) {
		pid = start(add_once, NULL);
		EXPECT_TRUE(ended(pid));
		EXPECT_FALSE(task_totals(pid, &self->t));
		EXPECT_TRUE(exited_has(7 * i, 70 * i));
	}
	expect_sum(_metadata, 7 * REAPED, 70 * REAPED);
}

TEST_F(storm, reaped_processes_have_no_lines)
{
	struct worker w;
	int i;

	for (i = 1; i <= REAPED; i++) {
		ASSERT_TRUE(worker_start(&w));
		ASSERT_EQ(worker_call(&w, team_add, 0), 0);
		EXPECT_TRUE(group_totals(w.pid, &self->t));
		ASSERT_EQ(worker_call(&w, team_leave, 0), 0);
		EXPECT_TRUE(worker_end(&w));
		EXPECT_FALSE(group_totals(w.pid, &self->t));
		EXPECT_TRUE(exited_has(41 * i, 402 * i));
	}
	expect_sum(_metadata, 41 * REAPED, 402 * REAPED);
}

/* ---- a thread that becomes the process ---- */

#define SPIN_MS	500	/* some grace periods */

static void spin_for(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	while (now_ns() < end)
		;
}

/* In the new program, the constructor runs before anything else. */
static void __attribute__((constructor)) begin_anew(int argc, char **argv)
{
	static const char text[] = "0 1000 1 2000";

	if (argc != 3 || strcmp(argv[1], "--add-anew"))
		return;
	spin_for(SPIN_MS * NSEC_PER_MSEC);
	_exit(write(atoi(argv[2]), text, strlen(text)) != (ssize_t)strlen(text));
}

/*
 * The real-time priority keeps other tasks from running on the CPU in between. The thread group's
 * leader exits on another CPU.
 */
static void *exec_anew(void *arg)
{
	int fd = open(PACE "add", O_WRONLY);
	char number[16];

	snprintf(number, sizeof(number), "%d", fd);
	if (!stay_on(nr_cpus() - 1) && !pace_add(10, 20) && !be_realtime(1))
		execl("/proc/self/exe", "anew", "--add-anew", number, NULL);
	_exit(1);
}

static int exec_in_a_thread(void *arg)
{
	pthread_t thread;

	if (pace_add(1, 2))
		return 1;
	pthread_create(&thread, NULL, exec_anew, NULL);
	for (;;)
		pause();
}

/*
 * The thread takes over the leader's pid, and the leader is gone. Events of both pids are counted.
 */
TEST_F(storm, exec_in_a_thread_loses_nothing)
{
	int pid = start(exec_in_a_thread, NULL);

	ASSERT_GT(pid, 0);
	EXPECT_TRUE(ended(pid));
	EXPECT_TRUE(comes(exited_has(1011, 2022)));
	expect_sum(_metadata, 1011, 2022);
	ASSERT_TRUE(others_totals("stray", &self->t));
	EXPECT_EQ(self->t.run, 0);
}

/* ---- many ---- */

#define FORKERS		4

#define STACK		16384

/*
 * The child runs in the memory of its waiting parent. ENODATA is no failure, since accounting may
 * be off.
 */
static int add_and_exit(void *arg)
{
	_exit(pace_add(3, 5) && errno != ENODATA);
}

/* Forks @forks children, which add events and exit. */
static int fork_many(void *forks)
{
	char *stack = malloc(STACK);
	int i, pid;

	run_anywhere();
	for (i = 0; i < *(const int *)forks; i++) {
		pid = clone(add_and_exit, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
		if (pid < 0 || !ended(pid))
			return 1;
	}
	return 0;
}

static bool storm_run(int forks)
{
	int pids[FORKERS], readers[2], i;
	bool sound = true;

	for (i = 0; i < 2; i++)
		readers[i] = start(read_all, NULL);
	for (i = 0; i < FORKERS; i++)
		pids[i] = start(fork_many, &forks);
	for (i = 0; i < FORKERS; i++)
		sound &= ended(pids[i]);
	for (i = 0; i < 2; i++)
		stop(readers[i]);
	return sound;
}

static void expect_all(struct __test_metadata *_metadata, uint64_t tasks)
{
	struct totals t;

	EXPECT_TRUE(comes(exited_has(3 * tasks, 5 * tasks)));
	ASSERT_TRUE(exited_totals(&t));
	expect_counts(_metadata, &t, 3 * tasks, 5 * tasks);
	expect_sum(_metadata, 3 * tasks, 5 * tasks);
	EXPECT_EQ(number_in(SCHED "tasks", "unattributed "), 0);
}

/*
 * Returns 3 000, or the number that the environment has for slow kernels, such as those with KASAN,
 * divided by @share.
 */
static int nr_tasks(int share)
{
	const char *tasks = getenv("PMUK_SCHED_TASKS");

	return (tasks ? atoi(tasks) : 3000) / share;
}

/* Many tasks start and exit while others read. */
TEST_F_TIMEOUT(storm, tasks_are_counted, 900)
{
	int forks = nr_tasks(FORKERS);

	ASSERT_GT(forks, 0);
	ASSERT_TRUE(storm_run(forks));
	expect_all(_metadata, FORKERS * forks);
}

/* A new task may have the pid of a task that has just exited. */
TEST_F_TIMEOUT(storm, pids_are_used_again, 900)
{
	int forks = nr_tasks(5 * FORKERS);

	if (access(PID_MAX, W_OK))
		SKIP(return, "pids cannot be made scarce");
	ASSERT_EQ(write_file(PID_MAX, "330"), 0);
	ASSERT_TRUE(storm_run(forks));
	expect_all(_metadata, FORKERS * forks);
}

/* Returns whether each shown task has a cgroup. */
static bool all_have_a_cgroup(void)
{
	char *text __freed = slurp(SCHED "tasks");
	const char *line = text;
	bool all = text;
	uint64_t id;

	while ((line = after(line, "task ")))
		all &= sscanf(line, "%*u %*u %" SCNu64, &id) == 1 && id;
	return all;
}

/* Some tasks exist when accounting is turned on. Others start and exit meanwhile. */
TEST_F_TIMEOUT(storm, on_and_off_while_tasks_come_and_go, 900)
{
	int forks = nr_tasks(4 * FORKERS);
	int pid, i, status;

	pid = fork();
	if (!pid)
		_exit(!storm_run(forks));
	for (i = 0; !waitpid(pid, &status, WNOHANG); i++) {
		ASSERT_EQ(i % 3 ? set_parameter("reset", "1") : set_parameter("enabled", "0"), 0);
		ASSERT_EQ(set_parameter("enabled", "1"), 0);
		ASSERT_TRUE(all_have_a_cgroup());
	}
	EXPECT_EQ(status, 0);
	ASSERT_EQ(set_parameter("reset", "1"), 0);
	ASSERT_EQ(pace_add(3, 5), 0);
	expect_sum(_metadata, 3, 5);
	EXPECT_GT(i, 0);
}

/* ---- no memory ---- */

#define FAILSLAB	"/sys/kernel/debug/failslab/"

/* Atomic allocations of this task and its children fail from now on. */
static bool fail_allocations(void)
{
	return !write_file(FAILSLAB "ignore-gfp-wait", "Y") &&
	       !write_file(FAILSLAB "task-filter", "Y") && !write_file(FAILSLAB "verbose", "0") &&
	       !write_file(FAILSLAB "times", "-1") && !write_file(FAILSLAB "interval", "1") &&
	       !write_file(FAILSLAB "probability", "100") &&
	       !write_file("/proc/self/make-it-fail", "1");
}

static void allocations_succeed(void)
{
	write_file("/proc/self/make-it-fail", "0");
	write_file(FAILSLAB "probability", "0");
	write_file(FAILSLAB "ignore-gfp-wait", "N");
	write_file(FAILSLAB "task-filter", "N");
}

/*
 * For lack of memory, the tasks of some slices are not known. The slices are counted nevertheless,
 * and the tasks become known soon.
 */
TEST_F(storm, tasks_without_memory_are_strays)
{
	struct totals stray, cpus, tasks;
	struct worker w;
	bool started;

	if (access(FAILSLAB, F_OK))
		SKIP(return, "needs FAILSLAB and FAULT_INJECTION_DEBUG_FS");
	ASSERT_TRUE(fail_allocations());
	started = worker_start(&w);
	allocations_succeed();
	ASSERT_TRUE(started);
	ASSERT_EQ(worker_add(&w, 3, 5), 0);
	ASSERT_TRUE(others_totals("stray", &stray));
	EXPECT_GT(stray.run, 0);
	EXPECT_GT(number_in(SCHED "tasks", "unattributed "), 0);
	expect_sum(_metadata, 3, 5);
	ASSERT_TRUE(sum_cpus(&cpus));
	ASSERT_TRUE(sum_tasks(&tasks));
	EXPECT_LE(cpus.wait, tasks.wait);	/* the waits of strays are in neither */
	EXPECT_TRUE(comes(task_totals(w.pid, &self->t)));
	ASSERT_EQ(worker_add(&w, 3, 5), 0);
	expect_sum(_metadata, 6, 10);
	EXPECT_TRUE(worker_end(&w));
	EXPECT_TRUE(comes(!task_totals(w.pid, &self->t)));
	expect_sum(_metadata, 6, 10);
}

/*
 * Accounting is turned off, and on again without memory for entries. No task keeps the entry that
 * it had before, which is freed: all tasks are strays, until there is memory.
 */
TEST_F(storm, entries_end_with_their_accounting)
{
	struct totals stray;
	struct worker w;
	bool on;

	if (access(FAILSLAB, F_OK))
		SKIP(return, "needs FAILSLAB and FAULT_INJECTION_DEBUG_FS");
	ASSERT_TRUE(worker_start(&w));
	ASSERT_EQ(worker_add(&w, 3, 5), 0);
	ASSERT_EQ(set_parameter("enabled", "0"), 0);
	ASSERT_TRUE(fail_allocations());
	on = !set_parameter("enabled", "1");
	allocations_succeed();
	ASSERT_TRUE(on);
	ASSERT_EQ(worker_add(&w, 3, 5), 0);
	ASSERT_TRUE(others_totals("stray", &stray));
	EXPECT_GT(stray.run, 0);
	expect_sum(_metadata, 3, 5);
	EXPECT_TRUE(comes(task_totals(w.pid, &self->t)));
	ASSERT_EQ(worker_add(&w, 3, 5), 0);
	expect_sum(_metadata, 6, 10);
	EXPECT_TRUE(worker_end(&w));
}

TEST_HARNESS_MAIN
