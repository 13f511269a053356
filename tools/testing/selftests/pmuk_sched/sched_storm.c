// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks that come and go: what each has had becomes its process's, and in the end part of what has
 * exited, to the last event, however many there are, whoever reads, and whatever pids they have.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "sched.h"

#define PID_MAX		"/proc/sys/kernel/pid_max"

FIXTURE(storm)
{
	char pid_max[32];
	struct totals t;
};

FIXTURE_SETUP(storm)
{
	ASSERT_EQ(run_on(0), 0);
	ASSERT_GT(read_file(PID_MAX, self->pid_max, sizeof(self->pid_max)), 0);
	ASSERT_TRUE(sched_begin(8, 48));
}

FIXTURE_TEARDOWN(storm)
{
	write_file(PID_MAX, self->pid_max);
	EXPECT_TRUE(sched_end());
}

/* ---- threads and processes ---- */

#define THREADS	4

struct team {
	pthread_t threads[THREADS];
	pthread_barrier_t added, leave;
};

static void *team_member(void *arg)
{
	struct team *team = arg;

	if (pace_add(10, 100))
		return team;
	pthread_barrier_wait(&team->added);
	pthread_barrier_wait(&team->leave);
	return NULL;
}

/* Adds 4 times 10 and 100 in threads, and 1 and 2 itself; says so; again when they have ended. */
static int team_main(void *arg)
{
	const int *pipes = arg;
	static struct team team;
	void *failed = NULL;
	char c = 0;
	int i;

	pthread_barrier_init(&team.added, NULL, THREADS + 1);
	pthread_barrier_init(&team.leave, NULL, THREADS + 1);
	for (i = 0; i < THREADS; i++)
		pthread_create(&team.threads[i], NULL, team_member, &team);
	pthread_barrier_wait(&team.added);
	if (pace_add(1, 2) || write(pipes[3], &c, 1) != 1 || read(pipes[0], &c, 1) != 1)
		return 1;
	pthread_barrier_wait(&team.leave);
	for (i = 0; i < THREADS && !failed; i++)
		pthread_join(team.threads[i], &failed);
	return failed || write(pipes[3], &c, 1) != 1 || read(pipes[0], &c, 1) != 1;
}

static bool group_has(int tgid, int threads, uint64_t cycles, uint64_t insns)
{
	char *text = slurp(SCHED "tasks"), begin[32];
	const char *at;
	struct totals t;
	bool has;

	snprintf(begin, sizeof(begin), "group %d", tgid);
	at = text ? after(text, begin) : NULL;
	has = at && atoi(at) == threads && totals_of(text, begin, 2, &t) &&
	      has_counts(&t, cycles, insns);
	free(text);
	return has;
}

/* Of the threads of @tgid, as they are there. */
static bool threads_have(int tgid, uint64_t cycles, uint64_t insns)
{
	struct totals sum = {}, t;
	char *text = slurp(SCHED "tasks");
	const char *line = text;
	int of;

	while ((line = after(line, "task "))) {
		if (sscanf(line, "%*d %d", &of) == 1 && of == tgid &&
		    parse_totals(skip_numbers(line - 1, 3), nr_events(text), &t))
			add_totals(&sum, &t);
	}
	free(text);
	return has_counts(&sum, cycles, insns);
}

TEST_F(storm, threads_are_folded_into_their_process)
{
	int pipes[4], pid;
	char c;

	ASSERT_EQ(pipe(pipes) | pipe(pipes + 2), 0);
	pid = start(team_main, pipes);
	ASSERT_EQ(read(pipes[2], &c, 1), 1);
	EXPECT_TRUE(group_has(pid, THREADS + 1, 41, 402));
	EXPECT_TRUE(threads_have(pid, 41, 402));
	EXPECT_TRUE(task_has(pid, 1, 2));
	ASSERT_EQ(write(pipes[1], &c, 1), 1);
	ASSERT_EQ(read(pipes[2], &c, 1), 1);
	EXPECT_TRUE(comes(group_has(pid, 1, 41, 402)));
	EXPECT_TRUE(threads_have(pid, 1, 2));
	EXPECT_TRUE(exited_has(0, 0));
	ASSERT_TRUE(sum_tasks(&self->t));
	expect_counts(_metadata, &self->t, 41, 402);
	ASSERT_EQ(write(pipes[1], &c, 1), 1);
	EXPECT_TRUE(ended(pid));
	EXPECT_TRUE(comes(exited_has(41, 402)));
	EXPECT_FALSE(group_totals(pid, &self->t));
}

/* ---- a thread that becomes the process ---- */

#define SPIN_MS	500	/* some grace periods */

static void spin_for(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	while (now_ns() < end)
		;
}

/* In the program that was exec'd, before anything else is done there. */
static void __attribute__((constructor)) begin_anew(int argc, char **argv)
{
	static const char text[] = "0 1000 1 2000";

	if (argc != 3 || strcmp(argv[1], "--add-anew"))
		return;
	spin_for(SPIN_MS * NSEC_PER_MSEC);
	_exit(write(atoi(argv[2]), text, strlen(text)) != (ssize_t)strlen(text));
}

/* Nobody runs in between who need not; the leader comes to its end on another CPU. */
static void *exec_anew(void *arg)
{
	const struct sched_param first = { .sched_priority = 1 };
	int fd = open(PACE "add", O_WRONLY);
	char number[16];

	snprintf(number, sizeof(number), "%d", fd);
	if (!run_on(nr_cpus() - 1) && !pace_add(10, 20) &&
	    !sched_setscheduler(0, SCHED_FIFO, &first))
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

/* The leader is gone, and its pid is the thread's: what was under either goes on being counted. */
TEST_F_TIMEOUT(storm, exec_in_a_thread_loses_nothing, 120)
{
	int pid = start(exec_in_a_thread, NULL);

	ASSERT_GT(pid, 0);
	EXPECT_TRUE(ended(pid));
	EXPECT_TRUE(comes(exited_has(1011, 2022)));
	ASSERT_TRUE(sum_tasks(&self->t));
	expect_counts(_metadata, &self->t, 1011, 2022);
	ASSERT_TRUE(totals_in(SCHED "tasks", "stray", 0, &self->t));
	EXPECT_EQ(self->t.run, 0);
}

/* ---- many ---- */

#define FORKERS		4

#define STACK		16384

struct storm {
	int forks;	/* of each forker */
};

/* In its parent's memory, which waits. Where nobody counts, that is no fault of its own. */
static int add_and_exit(void *arg)
{
	_exit(pace_add(3, 5) && errno != ENODATA);
}

/* Each of its children adds, and is gone. */
static int fork_many(const struct storm *s)
{
	char *stack = malloc(STACK);
	int i, pid;

	run_anywhere();
	for (i = 0; i < s->forks; i++) {
		pid = clone(add_and_exit, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
		if (pid < 0 || !ended(pid))
			return 1;
	}
	return 0;
}

static int read_all(void *arg)
{
	static const char *const files[] = { "tasks", "cpus", "tasks", "cgroups", "hist" };
	char path[64];
	int i;

	run_anywhere();
	for (i = 0;; i++) {
		snprintf(path, sizeof(path), SCHED "%s", files[i % 5]);
		free(slurp(path));
	}
	return 0;
}

static bool storm_run(const struct storm *s)
{
	int pids[FORKERS], readers[2], i;
	bool sound = true;

	for (i = 0; i < 2; i++)
		readers[i] = start(read_all, NULL);
	for (i = 0; i < FORKERS; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(fork_many(s));
	}
	for (i = 0; i < FORKERS; i++)
		sound &= ended(pids[i]);
	for (i = 0; i < 2; i++) {
		kill(readers[i], SIGKILL);
		waitpid(readers[i], NULL, 0);
	}
	return sound;
}

static void expect_all(struct __test_metadata *_metadata, uint64_t tasks)
{
	struct totals t;

	EXPECT_TRUE(comes(exited_has(3 * tasks, 5 * tasks)));
	ASSERT_TRUE(exited_totals(&t));
	expect_counts(_metadata, &t, 3 * tasks, 5 * tasks);
	ASSERT_TRUE(sum_tasks(&t));
	expect_counts(_metadata, &t, 3 * tasks, 5 * tasks);
	EXPECT_EQ(head_number(SCHED "tasks", "unattributed "), 0);
}

/* 10 000; fewer where the environment says so, as machines are that look at each access. */
static int nr_tasks(int share)
{
	const char *tasks = getenv("PMUK_SCHED_TASKS");

	return (tasks ? atoi(tasks) : 10000) / share;
}

/* Many are born and die, while others read. */
TEST_F_TIMEOUT(storm, tasks_are_counted, 900)
{
	struct storm s;

	s.forks = nr_tasks(FORKERS);
	ASSERT_GT(s.forks, 0);
	ASSERT_TRUE(storm_run(&s));
	expect_all(_metadata, FORKERS * s.forks);
}

/* Who comes may have the pid of somebody who has only just gone. */
TEST_F_TIMEOUT(storm, pids_are_used_again, 900)
{
	struct storm s;

	if (access(PID_MAX, W_OK))
		SKIP(return, "pids cannot be made scarce");
	s.forks = nr_tasks(5 * FORKERS);
	ASSERT_EQ(write_file(PID_MAX, "330"), 0);
	ASSERT_TRUE(storm_run(&s));
	expect_all(_metadata, FORKERS * s.forks);
}

/* Each task that is shown. */
static bool all_have_a_cgroup(void)
{
	char *text = slurp(SCHED "tasks");
	const char *line = text;
	bool all = text;
	uint64_t id;

	while ((line = after(line, "task ")))
		all &= sscanf(line, "%*u %*u %" SCNu64, &id) == 1 && id;
	free(text);
	return all;
}

/* Those who are there when it is turned on, and those who come and go meanwhile. */
TEST_F_TIMEOUT(storm, on_and_off_while_tasks_come_and_go, 900)
{
	struct storm s;
	int pid, i, status;

	s.forks = nr_tasks(8 * FORKERS);
	pid = fork();
	if (!pid)
		_exit(!storm_run(&s));
	for (i = 0; !waitpid(pid, &status, WNOHANG); i++) {
		ASSERT_EQ(set_parameter(i % 3 ? "reset" : "enabled", i % 3 ? "1" : "0"), 0);
		ASSERT_EQ(set_parameter("enabled", "1"), 0);
		ASSERT_TRUE(all_have_a_cgroup());
	}
	ASSERT_EQ(set_parameter("reset", "1"), 0);
	ASSERT_EQ(pace_add(3, 5), 0);
	ASSERT_TRUE(sum_tasks(&self->t));
	expect_counts(_metadata, &self->t, 3, 5);
	EXPECT_GT(i, 0);
}

/* ---- no memory ---- */

#define FAILSLAB	"/sys/kernel/debug/failslab/"

/* From here on, what this task, or a child of it, allocates without waiting fails. */
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

/* Adds when it is told to, which it is twice. */
static int add_twice(void *arg)
{
	int *pipes = arg, i;
	char c;

	write_file("/proc/self/make-it-fail", "0");
	for (i = 0; i < 2; i++) {
		if (read(pipes[0], &c, 1) != 1 || pace_add(3, 5) || write(pipes[3], &c, 1) != 1)
			return 1;
	}
	return read(pipes[0], &c, 1) != 1;
}

/* Whose slices they are is not known; they are counted, and before long it is. */
TEST_F_TIMEOUT(storm, tasks_without_memory_are_strays, 120)
{
	struct totals stray;
	int pipes[4], pid;
	char c = 0;

	if (access(FAILSLAB, F_OK))
		SKIP(return, "needs FAILSLAB and FAULT_INJECTION_DEBUG_FS");
	ASSERT_EQ(pipe(pipes) | pipe(pipes + 2), 0);
	ASSERT_TRUE(fail_allocations());
	pid = start(add_twice, pipes);
	allocations_succeed();
	ASSERT_GT(pid, 0);
	ASSERT_EQ(write(pipes[1], &c, 1), 1);
	ASSERT_EQ(read(pipes[2], &c, 1), 1);
	ASSERT_TRUE(totals_in(SCHED "tasks", "stray", 0, &stray));
	EXPECT_GT(stray.run, 0);
	EXPECT_GT(head_number(SCHED "tasks", "unattributed "), 0);
	ASSERT_TRUE(sum_tasks(&self->t));
	expect_counts(_metadata, &self->t, 3, 5);
	EXPECT_TRUE(comes(task_totals(pid, &self->t)));
	ASSERT_EQ(write(pipes[1], &c, 1), 1);
	ASSERT_EQ(read(pipes[2], &c, 1), 1);
	ASSERT_TRUE(sum_tasks(&self->t));
	expect_counts(_metadata, &self->t, 6, 10);
	ASSERT_EQ(write(pipes[1], &c, 1), 1);
	EXPECT_TRUE(ended(pid));
	EXPECT_TRUE(comes(!task_totals(pid, &self->t)));
	ASSERT_TRUE(sum_tasks(&self->t));
	expect_counts(_metadata, &self->t, 6, 10);
}

TEST_HARNESS_MAIN
