/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tests of the scheduler statistics share these helpers: numbers from /proc/pmuk_sched, the
 * module's parameters, the simulated PMU of lib/tests/pmuk_pace.c, and tasks that take orders.
 */
#ifndef _PMUK_SELFTEST_SCHED_H
#define _PMUK_SELFTEST_SCHED_H

#include <inttypes.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../pmu_kapi/harness.h"
#include "../pmu_kapi/base.h"

#define SCHED		"/proc/pmuk_sched/"
#define PARAMETERS	"/sys/module/pmuk_sched/parameters/"
#define PACE		"/sys/kernel/debug/pmuk_pace/"
#define CPU1_ONLINE	"/sys/devices/system/cpu/cpu1/online"

/* The simulated PMU has these events. */
#define CYCLES		0
#define INSNS		1

#define MAX_EVENTS	4

/* Holds the totals in each line. */
struct totals {
	uint64_t run, wait, voluntary, same, other, valid;
	uint64_t counts[MAX_EVENTS];
};

/* ---- reading ---- */

/* Reads a whole file into memory that the caller frees. Returns NULL and errno on failure. */
static inline char *slurp(const char *path)
{
	size_t size = 1 << 16, len = 0;
	char *text = malloc(size);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = -1;

	while (fd >= 0 && (got = read(fd, text + len, size - 1 - len)) > 0) {
		len += got;
		if (size - len < 4096) {
			size *= 2;
			text = realloc(text, size);
		}
	}
	if (fd >= 0)
		close(fd);
	if (got < 0) {
		free(text);
		return NULL;
	}
	text[len] = 0;
	return text;
}

static inline void free_text(char **text)
{
	free(*text);
}

/* The result of slurp() is freed at the end of the scope of a variable with __freed. */
#define __freed		__attribute__((cleanup(free_text)))

/* Reads a file of /proc about a process. */
static inline char *slurp_of(int pid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	return slurp(path);
}

/*
 * Finds the line that begins with the formatted text. Returns the rest of the text behind it, or
 * NULL.
 */
static inline __printf(2, 3)
const char *after(const char *text, const char *format, ...)
{
	char begin[64];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(begin, sizeof(begin), format, args);
	va_end(args);
	while (text && strncmp(text, begin, len)) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return text ? text + len : NULL;
}

/* Returns the number of counted events. */
static inline int nr_events(const char *text)
{
	const char *at = after(text, "events"), *end = at ? strchr(at, '\n') : NULL;
	int nr = 0;

	for (; at && at < end; at++)
		nr += *at == ' ';
	return nr;
}

/*
 * Parses the fields of totals. Returns the rest of the text, or NULL if there are no such fields.
 */
static inline const char *parse_totals(const char *at, int nr, struct totals *t)
{
	uint64_t *const fields[] = {
		&t->run, &t->wait, &t->voluntary, &t->same, &t->other, &t->valid,
		&t->counts[0], &t->counts[1], &t->counts[2], &t->counts[3],
	};
	char *end;
	int i;

	memset(t, 0, sizeof(*t));
	for (i = 0; i < 6 + nr; i++) {
		if (*at != ' ')
			return NULL;
		if (fields[i] == &t->wait && at[1] == '-') {
			at += 2;
			continue;
		}
		*fields[i] = strtoull(at + 1, &end, 10);
		if (end == at + 1)
			return NULL;
		at = end;
	}
	return at;
}

/* Skips @skip numbers. */
static inline const char *skip_numbers(const char *at, int skip)
{
	while (at && skip--) {
		if (*at != ' ')
			return NULL;
		at += 1 + strcspn(at + 1, "\n ");
	}
	return at;
}

/* Parses totals at @at, in the rest of a line, after @skip numbers. */
static inline bool totals_at(const char *text, const char *at, int skip, struct totals *t)
{
	at = skip_numbers(at, skip);
	return at && parse_totals(at, nr_events(text), t);
}

/* Reads the totals in the line "@what @id ..." of a file. */
static inline bool totals_in(const char *path, const char *what, uint64_t id, int skip,
			     struct totals *t)
{
	char *text __freed = slurp(path);

	return totals_at(text, after(text, "%s %" PRIu64, what, id), skip, t);
}

static inline bool task_totals(int pid, struct totals *t)
{
	return totals_in(SCHED "tasks", "task", pid, 2, t);
}

static inline bool group_totals(int tgid, struct totals *t)
{
	return totals_in(SCHED "tasks", "group", tgid, 2, t);
}

static inline bool cpu_totals(int cpu, struct totals *t)
{
	return totals_in(SCHED "cpus", "cpu", cpu, 0, t);
}

/* @what is "cgroup" or "subtree". */
static inline bool cgroup_totals(const char *what, uint64_t id, struct totals *t)
{
	return totals_in(SCHED "cgroups", what, id, 1, t);
}

/*
 * Reads the totals of all exited processes for "exited", or of slices whose task is not known for
 * "stray".
 */
static inline bool others_totals(const char *what, struct totals *t)
{
	char *text __freed = slurp(SCHED "tasks");

	return totals_at(text, after(text, "%s", what), 0, t);
}

static inline bool exited_totals(struct totals *t)
{
	return others_totals("exited", t);
}

static inline void add_totals(struct totals *sum, const struct totals *t)
{
	int i;

	sum->run += t->run;
	sum->wait += t->wait;
	sum->voluntary += t->voluntary;
	sum->same += t->same;
	sum->other += t->other;
	sum->valid &= t->valid;
	for (i = 0; i < MAX_EVENTS; i++)
		sum->counts[i] += t->counts[i];
}

/* Adds up all lines that begin with @begin, except those that @but excludes. */
static inline bool sum_lines(const char *text, const char *begin, int skip, struct totals *sum,
			     bool (*but)(const char *text, const char *line))
{
	const char *line = text;
	struct totals t;

	*sum = (struct totals){ .valid = 1 };
	while ((line = after(line, "%s", begin))) {
		if (!totals_at(text, line - 1, skip, &t))
			return false;
		if (!but || !but(text, line))
			add_totals(sum, &t);
	}
	return true;
}

/* Returns whether a line "task PID TGID ..." belongs to a process with a line "group TGID ...". */
static inline bool is_grouped(const char *text, const char *line)
{
	int tgid;

	return sscanf(line, "%*d %d", &tgid) == 1 && after(text, "group %d ", tgid);
}

/* Adds up the totals of all tasks, of exited processes, and of slices whose task is not known. */
static inline bool sum_tasks(struct totals *sum)
{
	char *text __freed = slurp(SCHED "tasks");
	struct totals groups, exited, stray;

	if (!text || !sum_lines(text, "task ", 3, sum, is_grouped) ||
	    !sum_lines(text, "group ", 3, &groups, NULL) ||
	    !totals_at(text, after(text, "exited"), 0, &exited) ||
	    !totals_at(text, after(text, "stray"), 0, &stray))
		return false;
	add_totals(sum, &groups);
	add_totals(sum, &exited);
	add_totals(sum, &stray);
	return true;
}

static inline bool sum_cpus(struct totals *sum)
{
	char *text __freed = slurp(SCHED "cpus");

	return text && sum_lines(text, "cpu ", 1, sum, NULL);
}

/* Returns the number after @name at the beginning of a line, or UINT64_MAX if there is none. */
static inline uint64_t number_in(const char *path, const char *name)
{
	char *text __freed = slurp(path);
	const char *at = after(text, "%s", name);

	return at ? strtoull(at, NULL, 10) : UINT64_MAX;
}

/* Reads the buckets in a line of a histogram. Returns their sum. */
static inline uint64_t buckets_of(const char *text, const char *what, int cpu, uint64_t *buckets,
				  int nr)
{
	const char *at = after(text, "%s %d ", what, cpu);
	uint64_t sum = 0;
	char *end;
	int i;

	for (i = 0; i < nr; i++) {
		buckets[i] = at ? strtoull(at, &end, 10) : 0;
		sum += buckets[i];
		at = at ? end : NULL;
	}
	return at && *at == '\n' ? sum : UINT64_MAX;
}

/* Reads one of the files; a different @turn selects another one. */
static inline void read_file_of(int turn)
{
	static const char *const files[] = {
		SCHED "tasks", SCHED "cpus", SCHED "cgroups", SCHED "hist",
	};

	free(slurp(files[turn % 4]));
}

static inline void read_files(int times)
{
	int i;

	for (i = 0; i < times; i++)
		read_file_of(i);
}

/* ---- the simulated PMU ---- */

static inline bool pace_look(unsigned int *type, int *nr)
{
	char text[32];

	return read_file(PACE "pmu", text, sizeof(text)) > 0 &&
	       sscanf(text, "%u %d", type, nr) == 2;
}

/* Returns the type of the simulated PMU, or 0 if there is none. */
static inline unsigned int pace_type(void)
{
	unsigned int type;
	int nr;

	return pace_look(&type, &nr) ? type : 0;
}

/* Returns the number of perf events on the simulated PMU. */
static inline int pace_events(void)
{
	unsigned int type;
	int nr;

	return pace_look(&type, &nr) ? nr : -1;
}

/* Lets events happen on this CPU, in this task. Returns 0, or -1 and errno. */
static inline int pace_add(uint64_t cycles, uint64_t insns)
{
	return write_file(PACE "add", "%d %" PRIu64 " %d %" PRIu64, CYCLES, cycles, INSNS, insns);
}

static inline int pace_add_on(int cpu, uint64_t cycles, uint64_t insns)
{
	return write_file(PACE "add_on", "%d %d %" PRIu64 " %d %" PRIu64, cpu, CYCLES, cycles,
			  INSNS, insns);
}

static inline int pace_steal(int cpu, int nr)
{
	return write_file(PACE "steal", "%d %d", cpu, nr);
}

/* ---- the module ---- */

/* Writes the formatted text to a parameter. Returns 0, or -1 and errno. */
#define set_parameter(name, ...)	write_file(PARAMETERS name, __VA_ARGS__)
#define parameter_is(name, value)	file_is(PARAMETERS name, value)
#define parameter_number(name)		number_in_file(PARAMETERS name)

/*
 * Creates a new PMU, and counts both of its events from 0. The old PMU may need a while until its
 * events have ended. The caller stays on CPU 0.
 */
static inline bool sched_begin(int counters, int width)
{
	set_parameter("enabled", "0");
	return !stay_on(0) && comes(!write_file(PACE "pmu", "%d %d", counters, width)) &&
	       !set_parameter("events", "%u:%d,%u:%d", pace_type(), CYCLES, pace_type(), INSNS) &&
	       !set_parameter("enabled", "1") && pace_events() > 0;
}

/* Restores the module's default parameters, and turns it off. */
static inline bool sched_end(void)
{
	set_parameter("enabled", "0");
	return !set_parameter("events", "cycles,instructions") &&
	       comes(!write_file(PACE "pmu", "0"));
}

/* Reads idle's counts of the first two events, or of the only one. */
static inline bool idle_counts(const char *text, int cpu, uint64_t counts[2])
{
	const char *at = after(text, "idle %d ", cpu);

	counts[1] = 0;
	return at && sscanf(at, "%*u %*u %" SCNu64 " %" SCNu64, &counts[0], &counts[1]) >= 1;
}

/* Visits a CPU for a moment. The switches account all events on that CPU until now, idle's too. */
static inline void visit(int cpu)
{
	cpu_set_t here, there;

	CPU_ZERO(&there);
	CPU_SET(cpu, &there);
	if (!sched_getaffinity(0, sizeof(here), &here) &&
	    !sched_setaffinity(0, sizeof(there), &there))
		sched_setaffinity(0, sizeof(here), &here);
}

/*
 * Adds up the first event of all tasks and of idle on a CPU. @text is the content of SCHED "cpus".
 */
static inline uint64_t cycles_told(const char *text, int cpu)
{
	uint64_t idle[2];
	struct totals t;

	if (!totals_at(text, after(text, "cpu %d", cpu), 0, &t) || !idle_counts(text, cpu, idle))
		return 0;
	return t.counts[0] + idle[0];
}

/* Adds up the first event of all tasks and of idle on a CPU, from the file. */
static inline uint64_t cycles_on(int cpu)
{
	uint64_t cycles;
	char *text;

	visit(cpu);
	text = slurp(SCHED "cpus");
	cycles = cycles_told(text, cpu);
	free(text);
	return cycles;
}

/*
 * Returns whether events on a CPU are counted now. While other consumers have the CPU's counters,
 * and in the slice in which the counters come back, events are not counted. @added gets the number
 * of counted events.
 */
static inline bool cpu_counts(int cpu, uint64_t *added)
{
	uint64_t before = cycles_on(cpu), counted;
	bool happened = !pace_add_on(cpu, 7, 7);

	counted = cycles_on(cpu) - before;
	*added += counted;
	return happened && counted == 7;
}

/* ---- tasks ---- */

static inline int run_anywhere(void)
{
	cpu_set_t set;

	memset(&set, 0xff, sizeof(set));
	return sched_setaffinity(0, sizeof(set), &set);
}

static inline int be_realtime(int priority)
{
	const struct sched_param param = { .sched_priority = priority };

	return sched_setscheduler(0, SCHED_FIFO, &param);
}

/* An order tells a worker what to do. */
struct order {
	enum { ORDER_ADD, ORDER_YIELD, ORDER_SPIN, ORDER_NAP, ORDER_RUN_ON, ORDER_CALL,
	       ORDER_END } what;
	uint64_t a, b;
};

/*
 * A worker is a process that carries out one order after the other, and sleeps in between, unless
 * the next order comes at once. So a worker that is alone on its CPU may yield without a switch;
 * for switches, let it nap.
 */
struct worker {
	int pid;
	int to, from;		/* pipes */
};

/* Returns 0, errno, or -1 for an unknown order. */
static inline int obey(const struct order *o)
{
	uint64_t i;

	switch (o->what) {
	case ORDER_ADD:
		return pace_add(o->a, o->b) ? errno : 0;
	case ORDER_YIELD:
		for (i = 0; i < o->a; i++)
			sched_yield();
		return 0;
	case ORDER_SPIN:
		for (i = now_ns() + o->a; now_ns() < i;)
			;
		return 0;
	case ORDER_NAP:
		for (i = 0; i < o->a; i++)
			usleep(1000);
		return 0;
	case ORDER_RUN_ON:
		return stay_on(o->a) ? errno : 0;
	case ORDER_CALL:
		return ((int (*)(uint64_t arg))o->a)(o->b);
	default:
		return -1;
	}
}

static inline void worker_main(int from, int to)
{
	struct order o;
	int ret;

	while (read(from, &o, sizeof(o)) == sizeof(o) && o.what != ORDER_END) {
		ret = obey(&o);
		if (write(to, &ret, sizeof(ret)) != sizeof(ret))
			break;
	}
	_exit(0);
}

static inline bool worker_start(struct worker *w)
{
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		return false;
	w->pid = fork();
	if (!w->pid) {
		close(to[1]);
		close(from[0]);
		worker_main(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	w->to = to[1];
	w->from = from[0];
	return w->pid > 0;
}

/* Gives an order, and does not wait for its end. */
static inline bool worker_order(const struct worker *w, int what, uint64_t a, uint64_t b)
{
	struct order o = { .what = what, .a = a, .b = b };

	return write(w->to, &o, sizeof(o)) == sizeof(o);
}

/* Waits for the end of the latest order. Returns 0 or its error. */
static inline int worker_done(const struct worker *w)
{
	int ret;

	return read(w->from, &ret, sizeof(ret)) == sizeof(ret) ? ret : EPIPE;
}

static inline int worker_do(const struct worker *w, int what, uint64_t a, uint64_t b)
{
	return worker_order(w, what, a, b) ? worker_done(w) : EPIPE;
}

/* Lets the worker call @fn with @arg. Returns the result of @fn. */
static inline int worker_call(const struct worker *w, int (*fn)(uint64_t arg), uint64_t arg)
{
	return worker_do(w, ORDER_CALL, (uintptr_t)fn, arg);
}

static inline int worker_add(const struct worker *w, uint64_t cycles, uint64_t insns)
{
	return worker_do(w, ORDER_ADD, cycles, insns);
}

/* Returns whether the process has exited with status 0. */
static inline bool ended(int pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Starts a worker on a CPU. */
static inline bool worker_start_on(struct worker *w, int cpu)
{
	return worker_start(w) && !worker_do(w, ORDER_RUN_ON, cpu, 0);
}

/* Gives both workers the same order, so that they work at the same time. */
static inline bool workers_do(const struct worker w[2], int what, uint64_t a)
{
	return worker_order(&w[0], what, a, 0) && worker_order(&w[1], what, a, 0) &&
	       !worker_done(&w[0]) && !worker_done(&w[1]);
}

static inline bool worker_end(struct worker *w)
{
	bool told = worker_order(w, ORDER_END, 0, 0);

	close(w->to);
	close(w->from);
	return told && ended(w->pid);
}

/*
 * Runs @fn in a child, whose exit status is the result of @fn. The child dies with its parent. If
 * there can be no child, the test ends: kill(2) would take -1 for all processes.
 */
static inline int start(int (*fn)(void *arg), void *arg)
{
	int pid = fork();

	if (pid < 0) {
		perror("fork");
		abort();
	}
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(fn(arg));
	}
	return pid;
}

/* A child of start() adds events once. */
static inline int add_once(void *arg)
{
	return pace_add(7, 70);
}

/* A child of start() reads all files forever, one after the other. */
static inline int read_all(void *arg)
{
	run_anywhere();
	for (;;) {
		read_files(4);
		free(slurp(SCHED "tasks"));
	}
	return 0;
}

/* Kills a child. Returns whether it existed. */
static inline bool stop(int pid)
{
	kill(pid, SIGKILL);
	return waitpid(pid, NULL, 0) == pid;
}

#define ANY_CPU		(-1)
#define SAME_CPU	(-2)	/* CPU of the parent, until the parent moves it */

/* A busy task calls @act again and again, until busy_end(). */
struct busy {
	bool (*act)(void);	/* false: failed */
	int cpu;		/* number of a CPU, or ANY_CPU, or SAME_CPU */
	int pipes[2], pid;
};

static sig_atomic_t busy_ends;

static inline void end_being_busy(int signal)
{
	STORE(busy_ends, 1);
}

/* At its end, the task reports the number of its calls of @act. */
static inline int be_busy(void *arg)
{
	const struct busy *busy = arg;
	uint64_t rounds = 0;

	if (busy->cpu == ANY_CPU)
		run_anywhere();
	else if (busy->cpu != SAME_CPU)
		stay_on(busy->cpu);
	for (; !LOAD(busy_ends); rounds++)
		if (!busy->act())
			return 1;
	return write(busy->pipes[1], &rounds, sizeof(rounds)) != sizeof(rounds);
}

static inline bool busy_start(struct busy *busy)
{
	if (pipe(busy->pipes))
		return false;
	signal(SIGTERM, end_being_busy);	/* the child inherits it */
	busy->pid = start(be_busy, busy);
	signal(SIGTERM, SIG_DFL);
	return true;
}

/* A busy task can use this as @act: a child adds events, and exits. */
static inline bool fork_once(void)
{
	return ended(start(add_once, NULL));
}

/*
 * Ends a busy task. Returns whether it has exited with status 0. @rounds gets the number of calls
 * of @act.
 */
static inline bool busy_end(const struct busy *busy, uint64_t *rounds)
{
	kill(busy->pid, SIGTERM);
	return ended(busy->pid) &&
	       read(busy->pipes[0], rounds, sizeof(*rounds)) == sizeof(*rounds);
}

/* Returns whether the task is in @state, a letter as in ps(1). */
static inline bool is_in_state(int pid, char state)
{
	char *text __freed = slurp_of(pid, "status");
	const char *at = after(text, "State:\t");

	return at && *at == state;
}

static inline bool has_counts(const struct totals *t, uint64_t cycles, uint64_t insns)
{
	return t->counts[0] == cycles && t->counts[1] == insns;
}

static inline bool task_has(int pid, uint64_t cycles, uint64_t insns)
{
	struct totals t;

	return task_totals(pid, &t) && has_counts(&t, cycles, insns);
}

/* Returns whether the totals of exited processes are as given. */
static inline bool exited_has(uint64_t cycles, uint64_t insns)
{
	struct totals t;

	return exited_totals(&t) && has_counts(&t, cycles, insns);
}

static inline void expect_counts(struct __test_metadata *_metadata, const struct totals *t,
				 uint64_t cycles, uint64_t insns)
{
	EXPECT_EQ(t->counts[0], cycles);
	EXPECT_EQ(t->counts[1], insns);
}

static inline void expect_task(struct __test_metadata *_metadata, int pid, uint64_t cycles,
			       uint64_t insns)
{
	struct totals t;

	ASSERT_TRUE(task_totals(pid, &t));
	expect_counts(_metadata, &t, cycles, insns);
}

/* Expects that the totals of all tasks add up to these counts. */
static inline void expect_sum(struct __test_metadata *_metadata, uint64_t cycles, uint64_t insns)
{
	struct totals t;

	ASSERT_TRUE(sum_tasks(&t));
	expect_counts(_metadata, &t, cycles, insns);
}

#endif /* _PMUK_SELFTEST_SCHED_H */
