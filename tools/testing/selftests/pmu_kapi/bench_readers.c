// SPDX-License-Identifier: GPL-2.0
/*
 * Measures readers of the scheduler statistics where there are many tasks and cgroups:
 *
 *	bench_readers TASKS:CGROUPS...
 *
 * So many processes that sleep, in so many cgroups, for each of these. Printed are, by tasks, the
 * longest time for which interrupts were off in four readings of all tasks and of all cgroups
 * (readers_TASKS), the CPU time of a reading of each (read_tasks_TASKS, read_cgroups_TASKS) and of
 * a table of "pmuk top" (top_TASKS), and the time of a context switch with the statistics on
 * (switch_among_TASKS), in nanoseconds. From the last two sizes, the program extrapolates to
 * 100 000 tasks. If the machine's time counts instructions, the numbers are instructions.
 *
 * Needs pmuk_sched, the tool pmuk, and a kernel that lets so many processes be.
 */
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "bench.h"

#define PARAMETERS	"/sys/module/pmuk_sched/parameters/"
#define STACK		2048
#define READS		4
#define TABLES		4
#define MANY		100000
#define SIZES		8

#define TRIPS		2000

enum { STRETCH, TASKS, CGROUPS, TOP, SWITCH, NR_COSTS };

static const char *const names[NR_COSTS] = {
	"readers", "read_tasks", "read_cgroups", "top", "switch_among",
};

static char root[32];

static int sleep_on(void *arg)
{
	for (;;)
		pause();
	return 0;
}

static void go_to(const char *cgroup)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s/cgroup.procs", root, cgroup);
	put(path, "0");
}

/* Processes in our memory: they have little of their own. */
static void populate(int tasks, int cgroups, char *stacks)
{
	char name[32], path[64];
	int i, in = -1;

	for (i = 0; i < tasks; i++) {
		if (i * (long)cgroups / tasks != in) {
			in = i * (long)cgroups / tasks;
			snprintf(name, sizeof(name), "many/%d", in);
			snprintf(path, sizeof(path), "%s/%s", root, name);
			need(mkdir(path, 0755), path);
			go_to(name);
		}
		need(clone(sleep_on, stacks + (i + 1L) * STACK,
			   CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, NULL), "clone");
	}
	go_to(".");
}

static void depopulate(int cgroups)
{
	char path[64];
	int i;

	snprintf(path, sizeof(path), "%s/many/cgroup.kill", root);
	put(path, "1");
	while (wait(NULL) > 0)
		;
	for (i = 0; i < cgroups; i++) {
		snprintf(path, sizeof(path), "%s/many/%d", root, i);
		rmdir(path);
	}
}

static uint64_t used(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return 1000ULL * (1000000 * (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
			  usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Returns the CPU time of one reading. */
static double read_times(const char *path)
{
	static char text[1 << 16];
	uint64_t before = used(RUSAGE_SELF);
	int fd, i;

	for (i = 0; i < READS; i++) {
		fd = need(open(path, O_RDONLY), path);
		while (read(fd, text, sizeof(text)) > 0)
			;
		close(fd);
	}
	return (used(RUSAGE_SELF) - before) / (double)READS;
}

static double run_top(void)
{
	uint64_t before = used(RUSAGE_CHILDREN);
	char command[64];

	snprintf(command, sizeof(command), "pmuk top -b -d 0.1 -l 20 -n %d >/dev/null", TABLES);
	if (system(command))
		fail("pmuk top");
	return (used(RUSAGE_CHILDREN) - before) / (double)TABLES;
}

static int bounce(int from, int to)
{
	char byte;

	return read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1;
}

/* Returns the time in which this task makes room for another one that it has woken. */
static double switch_tasks(void)
{
	int there[2], back[2], i;
	uint64_t start = 0;
	char byte = 0;
	pid_t child;

	if (pipe(there) || pipe(back))
		fail("pipe");
	child = need(fork(), "fork");
	if (!child) {
		close(there[1]);
		while (bounce(there[0], back[1]))
			;
		_exit(0);
	}
	for (i = 0; i <= TRIPS; i++) {
		if (i == 1)	/* the first trip makes all ready */
			start = now_ns();
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			fail("a pipe");
	}
	start = now_ns() - start;
	close(there[1]);
	waitpid(child, NULL, 0);
	close(there[0]);
	close(back[0]);
	close(back[1]);
	return start / (2.0 * TRIPS);
}

static double switch_on_one_cpu(void)
{
	cpu_set_t all, one;
	double cost;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_getaffinity(0, sizeof(all), &all) || sched_setaffinity(0, sizeof(one), &one))
		fail("affinity");
	cost = switch_tasks();
	if (sched_setaffinity(0, sizeof(all), &all))
		fail("affinity");
	return cost;
}

static void measure_at(int tasks, int cgroups, char *stacks, double costs[NR_COSTS])
{
	int i;

	populate(tasks, cgroups, stacks);
	put(PARAMETERS "reset", "1");
	costs[TASKS] = read_times("/proc/pmuk_sched/tasks");
	costs[CGROUPS] = read_times("/proc/pmuk_sched/cgroups");
	costs[STRETCH] = get_number(PARAMETERS "stretch_ns");
	printf("bench: ... %d tasks in %d cgroups: %d in a row at most\n", tasks, cgroups,
	       (int)get_number(PARAMETERS "stretch"));
	costs[TOP] = run_top();
	costs[SWITCH] = switch_on_one_cpu();
	for (i = 0; i < NR_COSTS; i++)
		printf("%s_%d_ns %.3f\n", names[i], tasks, costs[i]);
	fflush(stdout);
	depopulate(cgroups);
}

/* Takes costs to grow on as they grow from @few to @more tasks, or to stay. */
static void extrapolate(const double few[NR_COSTS], int nr_few, const double more[NR_COSTS],
			int nr_more)
{
	double by;
	int i;

	for (i = 0; i < NR_COSTS; i++) {
		by = (more[i] - few[i]) / (nr_more - nr_few);
		printf("%s_%d_ns %.3f\n", names[i], MANY,
		       more[i] + (by > 0 ? by : 0) * (MANY - nr_more));
	}
}

static void show_usage(void)
{
	fprintf(stderr, "usage: bench_readers TASKS:CGROUPS...\n");
	exit(2);
}

int main(int argc, char **argv)
{
	int tasks[SIZES], cgroups[SIZES], nr = argc - 1, most = 0, i;
	double costs[SIZES][NR_COSTS];
	char path[64], *stacks;

	for (i = 0; i < nr; i++) {
		if (i == SIZES || sscanf(argv[i + 1], "%d:%d", &tasks[i], &cgroups[i]) != 2 ||
		    tasks[i] < 1 || cgroups[i] < 1)
			show_usage();
		most = tasks[i] > most ? tasks[i] : most;
	}
	if (!nr)
		show_usage();
	strcpy(root, "/tmp/cgroupXXXXXX");
	stacks = mmap(NULL, (size_t)most * STACK, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stacks == MAP_FAILED || !mkdtemp(root) || mount("none", root, "cgroup2", 0, NULL))
		fail("memory, or cgroups");
	snprintf(path, sizeof(path), "%s/many", root);
	mkdir(path, 0755);
	put("/proc/sys/kernel/threads-max", "200000");
	put("/proc/sys/kernel/pid_max", "200000");
	if (access(PARAMETERS "enabled", W_OK) && system("modprobe pmuk_sched"))
		fail("pmuk_sched");
	put(PARAMETERS "events", "cycles,cycles");
	put(PARAMETERS "enabled", "1");
	for (i = 0; i < nr; i++)
		measure_at(tasks[i], cgroups[i], stacks, costs[i]);
	if (nr > 1 && tasks[nr - 1] > tasks[nr - 2])
		extrapolate(costs[nr - 2], tasks[nr - 2], costs[nr - 1], tasks[nr - 1]);
	put(PARAMETERS "enabled", "0");
	rmdir(path);
	umount(root);
	rmdir(root);
	return 0;
}
