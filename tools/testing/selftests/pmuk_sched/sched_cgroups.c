// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check cgroups (v2) in the scheduler statistics. Each event belongs to the cgroup of its
 * task at that time, and to all cgroups above. After moves, forks and removals no event is lost,
 * and none is counted twice.
 */
#include <dirent.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "sched_cgroup.h"

FIXTURE(cgroups)
{
	char root[32];
	char top[512];		/* cgroup of the test */
	struct totals t;
};

static uint64_t id_of(const char *dir)
{
	struct stat st;

	return stat(dir, &st) ? 0 : st.st_ino;
}

static bool own_of(const char *dir, struct totals *t)
{
	return cgroup_totals("cgroup", id_of(dir), t);
}

static bool tree_of(const char *dir, struct totals *t)
{
	return cgroup_totals("subtree", id_of(dir), t);
}

static bool own_has(const char *dir, uint64_t cycles, uint64_t insns)
{
	struct totals t;

	return own_of(dir, &t) && has_counts(&t, cycles, insns);
}

static bool tree_has(const char *dir, uint64_t cycles, uint64_t insns)
{
	struct totals t;

	return tree_of(dir, &t) && has_counts(&t, cycles, insns);
}

/* Makes two cgroups side by side. */
static int make_two(const char *dir, char paths[2][512])
{
	return make_below(dir, "a", paths[0]) | make_below(dir, "b", paths[1]);
}

/* Removes a cgroup with all cgroups below. Children come first. */
static void remove_tree(const char *dir)
{
	struct dirent *entry;
	DIR *d = opendir(dir);
	char path[512];

	while (d && (entry = readdir(d))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		if (path_in(dir, entry->d_name, path))
			remove_tree(path);
	}
	if (d)
		closedir(d);
	write_in(dir, "cgroup.kill", "1");
	comes(!rmdir(dir) || errno != EBUSY);
}

FIXTURE_SETUP(cgroups)
{
	ASSERT_EQ(cgroups_mount(self->root), 0);
	ASSERT_EQ(make_below(self->root, "test", self->top), 0);
	ASSERT_TRUE(sched_begin(8, 48));
}

FIXTURE_TEARDOWN(cgroups)
{
	move(self->root, 0);
	remove_tree(self->top);
	cgroups_unmount(self->root);
	EXPECT_TRUE(sched_end());
}

/* ---- trees ---- */

TEST_F(cgroups, lines_are_as_documented)
{
	char path[512], *text;

	ASSERT_EQ(make_below(self->top, "a\\b", path), 0);
	text = slurp(SCHED "cgroups");
	ASSERT_NE(text, NULL);
	EXPECT_EQ(id_of(self->root), ROOT_ID);
	EXPECT_NE(after(text, "cgroup %d 0 ", ROOT_ID), NULL);
	EXPECT_NE(after(text, "cgroup %" PRIu64 " %d ", id_of(self->top), ROOT_ID), NULL);
	EXPECT_NE(after(text, "subtree %" PRIu64 " %" PRIu64 " ", id_of(path), id_of(self->top)),
		  NULL);
	EXPECT_NE(strstr(text, " /test\n"), NULL);
	EXPECT_NE(strstr(text, " /test/a\\134b\n"), NULL);
	free(text);
}

/* Starts a worker in a cgroup. */
static bool worker_start_in(struct worker *w, const char *dir)
{
	return worker_start(w) && !move(dir, w->pid);
}

static bool is_root(const char *text, const char *line)
{
	return !strncmp(line, "1 ", 2);
}

/*
 * The counts of all cgroups add up to those of all tasks. The counts of the root's subtree are the
 * same.
 */
TEST_F(cgroups, cgroups_add_up_to_tasks)
{
	struct totals sum, root;
	char paths[4][512], name[2] = "a";
	struct worker w[4];
	char *text;
	int i;

	for (i = 0; i < 4; i++, name[0]++) {
		ASSERT_EQ(make_below(i < 2 ? self->top : paths[i - 2], name, paths[i]), 0);
		ASSERT_TRUE(worker_start_in(&w[i], paths[i]));
		ASSERT_EQ(worker_add(&w[i], 1 << i, 10 << i), 0);
	}
	ASSERT_EQ(pace_add(100, 1000), 0);
	for (i = 0; i < 4; i++)
		EXPECT_TRUE(own_has(paths[i], 1 << i, 10 << i));
	EXPECT_TRUE(own_has(self->top, 0, 0));
	EXPECT_TRUE(own_has(self->root, 100, 1000));
	EXPECT_TRUE(tree_has(paths[0], 1 + 4, 10 + 40));
	EXPECT_TRUE(tree_has(paths[1], 2 + 8, 20 + 80));
	EXPECT_TRUE(tree_has(self->top, 15, 150));
	text = slurp(SCHED "cgroups");
	ASSERT_TRUE(text && sum_lines(text, "cgroup ", 2, &sum, NULL));
	ASSERT_TRUE(sum_lines(text, "cgroup ", 2, &root, is_root));
	free(text);
	expect_counts(_metadata, &sum, 115, 1150);
	expect_counts(_metadata, &root, 15, 150);
	expect_sum(_metadata, 115, 1150);
	ASSERT_TRUE(tree_of(self->root, &self->t));
	expect_counts(_metadata, &self->t, 115, 1150);
	for (i = 0; i < 4; i++)
		EXPECT_TRUE(worker_end(&w[i]));
	EXPECT_TRUE(comes(exited_has(15, 150)));
	EXPECT_TRUE(own_has(paths[3], 8, 80));
	EXPECT_TRUE(tree_has(self->top, 15, 150));
}

#define DEPTH	10

TEST_F(cgroups, each_level_has_what_is_below)
{
	char paths[DEPTH][512];
	struct worker w[DEPTH];
	int i;

	for (i = 0; i < DEPTH; i++) {
		ASSERT_EQ(make_below(i ? paths[i - 1] : self->top, "d", paths[i]), 0);
		ASSERT_TRUE(worker_start_in(&w[i], paths[i]));
		ASSERT_EQ(worker_add(&w[i], 1, 1 << i), 0);
	}
	for (i = 0; i < DEPTH; i++) {
		EXPECT_TRUE(own_has(paths[i], 1, 1 << i));
		EXPECT_TRUE(tree_has(paths[i], DEPTH - i, (1 << DEPTH) - (1 << i)));
		EXPECT_TRUE(worker_end(&w[i]));
	}
	EXPECT_TRUE(tree_has(self->top, DEPTH, (1 << DEPTH) - 1));
}

#define MANY	70

/* The test removes cgroups in another order than it has made them. */
TEST_F(cgroups, many_come_and_go)
{
	char paths[2][512], name[16];
	int i, j;

	ASSERT_EQ(make_below(self->top, "keep", paths[0]), 0);
	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		ASSERT_EQ(make_below(self->top, name, paths[1]), 0);
		ASSERT_EQ(move(paths[1], 0), 0);
		ASSERT_EQ(pace_add(1, 2), 0);
		ASSERT_EQ(move(paths[0], 0), 0);
	}
	EXPECT_TRUE(own_has(paths[1], 1, 2));
	EXPECT_TRUE(tree_has(self->top, MANY, 2 * MANY));
	for (j = 0; j < 7; j++) {
		for (i = j; i < MANY; i += 7) {
			snprintf(name, sizeof(name), "c%d", i);
			ASSERT_TRUE(path_in(self->top, name, paths[1]));
			ASSERT_EQ(rmdir(paths[1]), 0);
		}
		EXPECT_TRUE(tree_has(self->top, MANY, 2 * MANY));
	}
	EXPECT_TRUE(own_has(paths[0], 0, 0));
}

/* ---- moves ---- */

TEST_F(cgroups, moved_task_keeps_what_it_had)
{
	char paths[2][512];
	struct worker w;
	int i;

	ASSERT_EQ(make_two(self->top, paths), 0);
	ASSERT_TRUE(worker_start(&w));
	for (i = 1; i <= 10; i++) {
		ASSERT_EQ(move(paths[0], w.pid), 0);
		ASSERT_EQ(worker_add(&w, 3, 30), 0);
		ASSERT_EQ(move(paths[1], w.pid), 0);
		ASSERT_EQ(worker_add(&w, 5, 50), 0);
		EXPECT_TRUE(own_has(paths[0], 3 * i, 30 * i));
		EXPECT_TRUE(own_has(paths[1], 5 * i, 50 * i));
	}
	EXPECT_TRUE(task_has(w.pid, 80, 800));
	EXPECT_TRUE(worker_end(&w));
	EXPECT_TRUE(comes(exited_has(80, 800)));
	EXPECT_TRUE(own_has(paths[0], 30, 300));
	EXPECT_TRUE(own_has(paths[1], 50, 500));
}

static bool add_three(void)
{
	return !pace_add(1, 3);
}

/*
 * A running task on another CPU is moved to and fro between two cgroups. Each count is in exactly
 * one of them. Events near a move can be in either, and this may differ between the two counts.
 */
TEST_F(cgroups, running_task_can_be_moved)
{
	struct totals in[2];
	char paths[2][512];
	struct busy adder = { .act = add_three, .cpu = nr_cpus() - 1 };
	uint64_t rounds = 0;
	int i;

	ASSERT_EQ(make_two(self->top, paths), 0);
	ASSERT_EQ(move(paths[1], 0), 0);
	ASSERT_TRUE(busy_start(&adder));
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(move(paths[i % 2], adder.pid), 0);
		ASSERT_TRUE(tree_of(self->top, &self->t));
		EXPECT_GE(self->t.counts[0], rounds);
		rounds = self->t.counts[0];
	}
	ASSERT_TRUE(busy_end(&adder, &rounds));
	EXPECT_TRUE(comes(exited_has(rounds, 3 * rounds)));
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(own_of(paths[i], &in[i]));
		EXPECT_GT(in[i].counts[0], 0);
	}
	EXPECT_EQ(in[0].counts[0] + in[1].counts[0], rounds);
	EXPECT_EQ(in[0].counts[1] + in[1].counts[1], 3 * rounds);
}

/* Run time and the number of switches move with the task, too. */
TEST_F(cgroups, times_move_as_counts_do)
{
	struct totals a, b, task;
	char paths[2][512];
	struct worker w;
	int i;

	ASSERT_EQ(make_two(self->top, paths), 0);
	ASSERT_EQ(set_parameter("reset", "1"), 0);
	ASSERT_TRUE(worker_start_in(&w, paths[0]));
	for (i = 0; i < 50; i++)
		ASSERT_EQ(worker_do(&w, ORDER_NAP, 1, 0), 0);
	ASSERT_EQ(move(paths[1], w.pid), 0);
	ASSERT_EQ(worker_do(&w, ORDER_YIELD, 1, 0), 0);
	ASSERT_TRUE(comes(own_of(paths[1], &b) && b.voluntary));
	ASSERT_TRUE(own_of(paths[0], &a) && own_of(paths[1], &b) && task_totals(w.pid, &task));
	/* The test itself has run in between, on the worker's CPU. */
	EXPECT_GE(a.voluntary + a.same + a.other, 49);
	EXPECT_LE(b.voluntary, 2);
	EXPECT_GT(a.run, 0);
	EXPECT_GT(b.run, 0);
	EXPECT_LT(a.run + b.run, 2 * task.run);
	EXPECT_TRUE(worker_end(&w));
}

/* In a threaded cgroup, single threads can be moved. */
TEST_F(cgroups, threads_can_be_in_cgroups_of_their_own)
{
	char path[512];

	ASSERT_EQ(move(self->top, 0), 0);
	ASSERT_EQ(make_below(self->top, "t", path), 0);
	ASSERT_EQ(write_in(path, "cgroup.type", "threaded"), 0);
	ASSERT_EQ(pace_add(1, 10), 0);
	EXPECT_TRUE(own_has(self->top, 1, 10));
	ASSERT_EQ(write_in(path, "cgroup.threads", "0"), 0);
	ASSERT_EQ(pace_add(2, 20), 0);
	EXPECT_TRUE(own_has(self->top, 1, 10));
	EXPECT_TRUE(own_has(path, 2, 20));
	ASSERT_EQ(write_in(self->top, "cgroup.threads", "0"), 0);
	ASSERT_EQ(pace_add(4, 40), 0);
	EXPECT_TRUE(own_has(self->top, 5, 50));
	EXPECT_TRUE(tree_has(self->top, 7, 70));
}

#define CROWD	300

/* A crowd is a process with many threads. Each thread adds events when it gets an order. */
struct crowd {
	pthread_t threads[CROWD];
	int orders[2], done[2];
};

static void *add_when_told(void *arg)
{
	struct crowd *crowd = arg;
	char c;

	while (read(crowd->orders[0], &c, 1) == 1) {
		if (pace_add(1, 10) || write(crowd->done[1], &c, 1) != 1)
			break;
		usleep(1000);
	}
	return NULL;
}

static int be_many(uint64_t arg)
{
	struct crowd *crowd = (void *)arg;
	int i, error = 0;

	for (i = 0; i < CROWD && !error; i++)
		error = pthread_create(&crowd->threads[i], NULL, add_when_told, crowd);
	return error;
}

static bool all_add(struct crowd *crowd)
{
	char c = 0;
	int i;

	for (i = 0; i < CROWD; i++) {
		if (write(crowd->orders[1], &c, 1) != 1 || read(crowd->done[0], &c, 1) != 1)
			return false;
	}
	return true;
}

/* Returns the number of tasks of process @tgid that are shown in cgroup @id. */
static int nr_in(int tgid, uint64_t id)
{
	char *text __freed = slurp(SCHED "tasks");
	const char *line = text;
	uint64_t cgroup;
	int nr = 0, of;

	while ((line = after(line, "task ")))
		nr += sscanf(line, "%*d %d %" SCNu64, &of, &cgroup) == 2 && of == tgid &&
		      cgroup == id;
	return nr;
}

/*
 * pmuk_sched moves some dozens of the threads at a time. Readers see all threads in the new cgroup
 * nevertheless.
 */
TEST_F(cgroups, crowd_moves_in_short_stretches)
{
	static struct crowd crowd;
	struct worker w;
	int i;

	ASSERT_EQ(pipe(crowd.orders) | pipe(crowd.done), 0);
	ASSERT_TRUE(worker_start(&w));
	ASSERT_EQ(worker_call(&w, be_many, (uintptr_t)&crowd), 0);
	ASSERT_TRUE(all_add(&crowd));
	ASSERT_TRUE(comes(nr_in(w.pid, ROOT_ID) == CROWD + 1));
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(move(i % 2 ? self->root : self->top, w.pid), 0);
		EXPECT_EQ(nr_in(w.pid, i % 2 ? ROOT_ID : id_of(self->top)), CROWD + 1);
	}
	EXPECT_TRUE(own_has(self->top, 0, 0));
	ASSERT_EQ(move(self->top, w.pid), 0);
	EXPECT_TRUE(own_has(self->top, 0, 0));
	ASSERT_TRUE(all_add(&crowd));
	EXPECT_TRUE(comes(own_has(self->top, CROWD, 10 * CROWD)));
	EXPECT_TRUE(own_has(self->root, CROWD, 10 * CROWD));
	TH_LOG("%" PRIu64 " in a row", parameter_number("stretch"));
	EXPECT_LE(parameter_number("stretch"), 128);
	EXPECT_TRUE(worker_end(&w));
}

/* ---- births ---- */

TEST_F(cgroups, child_begins_where_its_parent_is)
{
	int pid;

	ASSERT_EQ(move(self->top, 0), 0);
	pid = start(add_once, NULL);
	EXPECT_TRUE(ended(pid));
	EXPECT_TRUE(own_has(self->top, 7, 70));
	ASSERT_EQ(move(self->root, 0), 0);
	EXPECT_TRUE(comes(exited_has(7, 70)));
	EXPECT_TRUE(own_has(self->top, 7, 70));
	EXPECT_TRUE(own_has(self->root, 0, 0));
}

TEST_F(cgroups, child_can_be_born_elsewhere)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
	char path[512];
	int fd, pid;

	ASSERT_EQ(make_below(self->top, "a", path), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_GE(fd, 0);
	args.cgroup = fd;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (!pid)
		_exit(add_once(NULL));
	ASSERT_GT(pid, 0);
	EXPECT_TRUE(ended(pid));
	EXPECT_TRUE(own_has(path, 7, 70));
	EXPECT_TRUE(own_has(self->root, 0, 0));
	close(fd);
}

/* Children are forked while their parent is moved. */
TEST_F(cgroups, forks_and_moves_race)
{
	struct busy forker = { .act = fork_once, .cpu = ANY_CPU };
	char paths[2][512];
	uint64_t rounds;
	int i;

	ASSERT_EQ(make_two(self->top, paths), 0);
	ASSERT_TRUE(busy_start(&forker));
	for (i = 0; i < 200; i++)
		ASSERT_EQ(move(paths[i % 2], forker.pid), 0);
	ASSERT_TRUE(busy_end(&forker, &rounds));
	EXPECT_TRUE(comes(exited_has(7 * rounds, 70 * rounds)));
	ASSERT_TRUE(tree_of(self->root, &self->t));
	expect_counts(_metadata, &self->t, 7 * rounds, 70 * rounds);
	EXPECT_GT(rounds, 0);
}

/* ---- removals ---- */

TEST_F(cgroups, removed_cgroup_is_its_parents)
{
	char paths[2][512];
	struct worker w;

	ASSERT_EQ(make_below(self->top, "a", paths[0]) | make_below(paths[0], "b", paths[1]), 0);
	ASSERT_TRUE(worker_start_in(&w, paths[1]));
	ASSERT_EQ(worker_add(&w, 9, 90), 0);
	EXPECT_EQ(errno_of(rmdir(paths[1])), EBUSY);
	EXPECT_TRUE(own_has(paths[1], 9, 90));
	ASSERT_EQ(move(paths[0], w.pid), 0);
	ASSERT_EQ(worker_add(&w, 1, 10), 0);
	ASSERT_EQ(rmdir(paths[1]), 0);
	EXPECT_FALSE(own_of(paths[1], &self->t));
	EXPECT_TRUE(own_has(paths[0], 1, 10));
	EXPECT_TRUE(tree_has(paths[0], 10, 100));
	EXPECT_TRUE(worker_end(&w));
	EXPECT_TRUE(comes(!rmdir(paths[0])));
	EXPECT_TRUE(comes(tree_has(self->top, 10, 100)));
	EXPECT_TRUE(own_has(self->top, 0, 0));
	EXPECT_TRUE(tree_has(self->root, 10, 100));
}

/* Moves to cgroup @dir, and forks children that live for a moment. */
static int fork_on_and_on(void *dir)
{
	if (move(dir, 0) || prctl(PR_SET_NAME, "forked"))
		return 1;
	for (;;) {
		if (!fork()) {
			usleep(3000);
			_exit(0);
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

/*
 * Returns the number of shown children that have slept. @elsewhere gets the number of those that
 * are not in cgroup @id. A child that has not run yet may still be in the middle of its fork, so it
 * does not count.
 */
static int count_forked(uint64_t id, int *elsewhere)
{
	char *text __freed = slurp(SCHED "tasks"), comm[17];
	uint64_t cgroup, voluntary;
	const char *line = text;
	int nr = 0;

	while ((line = after(line, "task "))) {
		if (sscanf(line, "%*u %*u %" SCNu64 " %*u %*u %" SCNu64 " %*u %*u %*u %*u %*u %16s",
			   &cgroup, &voluntary, comm) != 3 || strcmp(comm, "forked") || !voluntary)
			continue;
		nr++;
		*elsewhere += cgroup != id;
	}
	return nr;
}

/*
 * A slow machine shows few children. The test has only failed if no child is shown for this long.
 */
#define FORKED_ENOUGH	8
#define FORKED_PATIENCE	(60 * NSEC_PER_SEC)

/*
 * The reset finds a few tasks in the middle of their fork, and must move them, too. These are few,
 * so the test takes at least two seconds.
 */
TEST_F_TIMEOUT(cgroups, forked_while_it_is_turned_on, 600)
{
	uint64_t end = now_ns() + 2 * NSEC_PER_SEC, moved = now_ns();
	int pid = start(fork_on_and_on, self->top), nr = 0, elsewhere = 0, seen;

	ASSERT_TRUE(comes(count_forked(id_of(self->top), &elsewhere) > 0));
	elsewhere = 0;
	while ((now_ns() < end || nr < FORKED_ENOUGH) && now_ns() < moved + FORKED_PATIENCE) {
		ASSERT_EQ(set_parameter("reset", "1"), 0);
		seen = count_forked(id_of(self->top), &elsewhere);
		if (seen)
			moved = now_ns();
		nr += seen;
	}
	EXPECT_GE(nr, FORKED_ENOUGH);
	EXPECT_EQ(elsewhere, 0);
	stop(pid);
}

/* When the cgroup is removed, a dying task can still be in it, which nobody has waited for yet. */
TEST_F(cgroups, cgroup_of_the_dead_can_be_removed)
{
	uint64_t id;
	char path[512];
	struct worker w;

	ASSERT_EQ(make_below(self->top, "a", path), 0);
	ASSERT_TRUE(worker_start_in(&w, path));
	ASSERT_EQ(worker_add(&w, 9, 90), 0);
	id = id_of(path);
	ASSERT_TRUE(worker_order(&w, ORDER_END, 0, 0));
	EXPECT_TRUE(comes(!rmdir(path)));
	EXPECT_TRUE(tree_has(self->top, 9, 90));
	EXPECT_TRUE(ended(w.pid));
	EXPECT_TRUE(comes(exited_has(9, 90)));
	EXPECT_TRUE(comes(!cgroup_totals("cgroup", id, &self->t)));
	EXPECT_TRUE(tree_has(self->top, 9, 90));
}

/* ---- readers without memory ---- */

#define LEAVES		1500
#define LEAF_NAME	"%0220d"

/* Makes cgroups below cgroup @dir. Together their paths have more than 600 KiB. */
static int make_leaves(const char *dir)
{
	char path[512], name[256];
	int i, ret = 0;

	for (i = 0; i < LEAVES && !ret; i++) {
		snprintf(name, sizeof(name), LEAF_NAME, i);
		ret = make_below(dir, name, path);
	}
	return ret;
}

#define FILL		(64UL << 20)
#define FILL_STEP	(1UL << 20)

/*
 * Fills the caller's memory cgroup, which has less room than this, with pages that the kernel may
 * take back at any time. So there is memory only for those who can wait for the kernel to do that.
 * A huge page would leave much room.
 */
static bool fill_memory(void)
{
	char *at = mmap(NULL, FILL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i;

	if (at == MAP_FAILED)
		return false;
	madvise(at, FILL, MADV_NOHUGEPAGE);	/* a kernel without huge pages does not know it */
	for (i = 0; i < FILL; i += FILL_STEP) {
		memset(at + i, 1, FILL_STEP);
		if (madvise(at + i, FILL_STEP, MADV_FREE))
			return false;
	}
	return true;
}

static int times_in(const char *text, const char *what)
{
	int nr = 0;

	for (; text && (text = strstr(text, what)); text++)
		nr++;
	return nr;
}

/* Each path is shown, even if the reader's memory cgroup is full. */
TEST_F_TIMEOUT(cgroups, full_memory_hides_no_path, 900)
{
	char path[512], name[256], *text;
	bool had_memory;

	ASSERT_TRUE(path_in(self->root, "cgroup.subtree_control", path));
	had_memory = file_has(path, "memory");	/* other services use memory cgroups */
	write_in(self->root, "cgroup.subtree_control", "+memory");
	if (write_in(self->top, "memory.max", "32M"))
		SKIP(return, "needs MEMCG");
	snprintf(name, sizeof(name), "%0250d", 0);
	ASSERT_EQ(make_below(self->top, name, path), 0);
	ASSERT_EQ(make_leaves(path), 0);
	ASSERT_EQ(move(self->top, 0), 0);
	ASSERT_TRUE(fill_memory());
	text = slurp(SCHED "cgroups");
	ASSERT_NE(text, NULL);
	strcat(name, "/");
	EXPECT_EQ(times_in(text, name), 2 * LEAVES);
	free(text);
	ASSERT_EQ(move(self->root, 0), 0);
	if (!had_memory)
		write_in(self->root, "cgroup.subtree_control", "-memory");
}

/* ---- who preempts whom ---- */

TEST_F(cgroups, preemption_knows_its_cgroup)
{
	char paths[2][512];
	struct totals t[2];
	struct worker w[2];
	int i, together;

	ASSERT_EQ(make_two(self->top, paths), 0);
	for (together = 0; together < 2; together++) {
		for (i = 0; i < 2; i++)
			ASSERT_TRUE(worker_start_in(&w[i], paths[together ? 0 : i]));
		ASSERT_EQ(set_parameter("reset", "1"), 0);
		ASSERT_TRUE(workers_do(w, ORDER_SPIN, NSEC_PER_SEC / 2));
		ASSERT_TRUE(task_totals(w[0].pid, &t[0]) && task_totals(w[1].pid, &t[1]));
		/*
		 * A task that is alone in its cgroup cannot be preempted by a task of the same
		 * cgroup.
		 */
		if (!together) {
			EXPECT_EQ(t[0].same + t[1].same, 0);
			EXPECT_GT(t[0].other + t[1].other, 0);
		} else {
			EXPECT_GT(t[0].same + t[1].same, 0);
		}
		EXPECT_TRUE(worker_end(&w[0]) && worker_end(&w[1]));
	}
}

TEST_HARNESS_MAIN
