// SPDX-License-Identifier: GPL-2.0
/*
 * Measures readers of the scheduler statistics, and a context switch with the statistics on, where
 * there are many tasks and cgroups:
 *
 *	bench_readers TASKS:CGROUPS|depth:DEPTH...
 *
 * TASKS:CGROUPS: so many processes sleep, in so many cgroups. Printed are, by tasks, the longest
 * time for which interrupts were off in some readings of all tasks and of all cgroups
 * (readers_TASKS), the most entries that were read without a pause (readers_TASKS_entries), the CPU
 * time of a reading of each (read_tasks_TASKS, read_cgroups_TASKS) and of a table of "pmuk top"
 * (top_TASKS), and the time of a switch (switch_among_TASKS), in nanoseconds. Where the memory is
 * too small for so many processes, a remark says so.
 *
 * depth:DEPTH: the two tasks that switch are in a cgroup so many levels below the root. What the
 * statistics add to the time of a switch is printed (switch_depth_DEPTH).
 *
 * If the machine's time counts instructions, the numbers are instructions.
 *
 * Needs pmuk_sched, the tool pmuk, and a kernel that lets so many processes be.
 */
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../pmu_kapi/bench.h"

#define PARAMETERS	"/sys/module/pmuk_sched/parameters/"
#define STACK		2048
#define READS		4
#define TABLES		4
#define TASK_KIB	36	/* memory of a process, most of it the kernel's */
#define DEEPEST		64

#define SWITCH_TURNS	41
#define TRIPS		50	/* in a turn, two switches each: most turns see no tick */

static char root[32];
static char *stacks;

static int sleep_on(void *arg)
{
	for (;;)
		pause();
	return 0;
}

static void go_to(const char *cgroup)
{
	char path[64 + 2 * DEEPEST];

	snprintf(path, sizeof(path), "%s/%s/cgroup.procs", root, cgroup);
	put(path, "0");
}

/* Processes in our memory: they have little of their own. */
static void populate(int tasks, int cgroups)
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

/* Returns the time of some round trips to a task that echoes. */
static uint64_t make_trips(int to, int from)
{
	uint64_t start = now_ns();
	char byte = 0;
	int i;

	for (i = 0; i < TRIPS; i++) {
		if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
			fail("a pipe");
	}
	return now_ns() - start;
}

/* Returns the time in which this task makes room for another one that it has woken. */
static double switch_tasks(void)
{
	int64_t ns[SWITCH_TURNS];
	int there[2], back[2], i;
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
	make_trips(there[1], back[0]);	/* not measured: makes all ready */
	for (i = 0; i < SWITCH_TURNS; i++)
		ns[i] = make_trips(there[1], back[0]);
	close(there[1]);
	waitpid(child, NULL, 0);
	close(there[0]);
	close(back[0]);
	close(back[1]);
	return median(ns, SWITCH_TURNS) / (2.0 * TRIPS);
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

static void show(const char *name, int size, const char *unit, double value)
{
	printf("%s_%d_%s %.3f\n", name, size, unit, value);
	fflush(stdout);
}

static void measure_at(int tasks, int cgroups)
{
	printf("bench: ... %d tasks in %d cgroups\n", tasks, cgroups);
	fflush(stdout);
	populate(tasks, cgroups);
	put(PARAMETERS "reset", "1");
	show("read_tasks", tasks, "ns", read_times("/proc/pmuk_sched/tasks"));
	show("read_cgroups", tasks, "ns", read_times("/proc/pmuk_sched/cgroups"));
	show("readers", tasks, "ns", get_number(PARAMETERS "stretch_ns"));
	show("readers", tasks, "entries", get_number(PARAMETERS "stretch"));
	show("top", tasks, "ns", run_top());
	show("switch_among", tasks, "ns", switch_on_one_cpu());
	depopulate(cgroups);
}

/* The scheduler's own work depends on the level, so subtract a switch without statistics. */
static double added_to_switch(void)
{
	double with = switch_on_one_cpu(), without;

	put(PARAMETERS "enabled", "0");
	without = switch_on_one_cpu();
	put(PARAMETERS "enabled", "1");
	return with - without;
}

static void measure_depth(int depth)
{
	char name[16 + 2 * DEEPEST] = "many", path[sizeof(root) + sizeof(name)];
	int i;

	for (i = 1; i <= depth; i++) {
		if (i > 1)
			strcat(name, "/d");
		snprintf(path, sizeof(path), "%s/%s", root, name);
		if (mkdir(path, 0755) && errno != EEXIST)
			fail(path);
	}
	go_to(name);
	show("switch_depth", depth, "ns", added_to_switch());
	go_to(".");
	for (i = depth; i > 1; i--) {
		snprintf(path, sizeof(path), "%s/%s", root, name);
		rmdir(path);
		name[strlen(name) - 2] = 0;
	}
}

/* Returns whether there is memory for so many processes. */
static int has_room(long tasks)
{
	char text[4096], *line;
	long available = 0;

	if (read_file("/proc/meminfo", text, sizeof(text)) < 0)
		fail("/proc/meminfo");
	line = strstr(text, "MemAvailable:");
	return line && sscanf(line, "MemAvailable: %ld", &available) == 1 &&
	       available > tasks * TASK_KIB;
}

static void show_usage(void)
{
	fprintf(stderr, "usage: bench_readers TASKS:CGROUPS|depth:DEPTH...\n");
	exit(2);
}

static void measure_word(const char *word)
{
	int tasks, cgroups, depth;

	if (sscanf(word, "depth:%d", &depth) == 1 && depth > 0 && depth <= DEEPEST) {
		measure_depth(depth);
	} else if (sscanf(word, "%d:%d", &tasks, &cgroups) != 2 || tasks < 1 || cgroups < 1) {
		show_usage();
	} else if (!has_room(tasks)) {
		printf("# no switch_among_%d: less than %d KiB of memory for each task\n", tasks,
		       TASK_KIB);
	} else {
		stacks = need_map(mmap(NULL, (size_t)tasks * STACK, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "memory");
		measure_at(tasks, cgroups);
		munmap(stacks, (size_t)tasks * STACK);
	}
}

int main(int argc, char **argv)
{
	char path[64];
	int i;

	if (argc < 2)
		show_usage();
	strcpy(root, "/tmp/cgroupXXXXXX");
	if (!mkdtemp(root) || mount("none", root, "cgroup2", 0, NULL))
		fail("cgroups");
	snprintf(path, sizeof(path), "%s/many", root);
	mkdir(path, 0755);
	put("/proc/sys/kernel/threads-max", "200000");
	put("/proc/sys/kernel/pid_max", "200000");
	if (access(PARAMETERS "enabled", W_OK) && system("modprobe pmuk_sched"))
		fail("pmuk_sched");
	put(PARAMETERS "events", "cycles,cycles");
	put(PARAMETERS "enabled", "1");
	for (i = 1; i < argc; i++)
		measure_word(argv[i]);
	put(PARAMETERS "enabled", "0");
	rmdir(path);
	umount(root);
	rmdir(root);
	return 0;
}
