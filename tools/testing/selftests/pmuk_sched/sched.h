/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of the scheduler statistics share: /proc/pmuk_sched as numbers, the module's
 * parameters, the simulated PMU of lib/tests/pmuk_pace.c, and tasks that do as they are told.
 */
#ifndef _PMUK_SELFTEST_SCHED_H
#define _PMUK_SELFTEST_SCHED_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kselftest_harness.h"
#include "../pmu_kapi/live.h"

#define SCHED		"/proc/pmuk_sched/"
#define PARAMETERS	"/sys/module/pmuk_sched/parameters/"
#define PACE		"/sys/kernel/debug/pmuk_pace/"
#define CPU1_ONLINE	"/sys/devices/system/cpu/cpu1/online"

/* On the simulated PMU. */
#define CYCLES		0
#define INSNS		1

#define MAX_EVENTS	4

/* Gives the errno of a call that returned -1 or MAP_FAILED, and 0 of any other. */
#define errno_of(call)	((intptr_t)(call) == -1 ? errno : 0)

/* What each line has of who it is about. */
struct totals {
	uint64_t run, wait, voluntary, same, other, valid;
	uint64_t counts[MAX_EVENTS];
};

/* ---- reading ---- */

/* All of a file, to be freed; NULL and errno. */
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

/* What follows @begin, which a line begins with; NULL: no line does. */
static inline const char *after(const char *text, const char *begin)
{
	size_t len = strlen(begin);

	while (text) {
		if (!strncmp(text, begin, len))
			return text + len;
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return NULL;
}

/* How many events are counted. */
static inline int nr_events(const char *text)
{
	const char *at = after(text, "events"), *end = at ? strchr(at, '\n') : NULL;
	int nr = 0;

	for (; at && at < end; at++)
		nr += *at == ' ';
	return nr;
}

/* The fields of totals, and what follows them; NULL: these are none. */
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

/* After @skip numbers more. */
static inline const char *skip_numbers(const char *at, int skip)
{
	while (at && skip--) {
		if (*at != ' ')
			return NULL;
		at += 1 + strcspn(at + 1, "\n ");
	}
	return at;
}

/* Of the line that begins with @begin, after @skip numbers. */
static inline bool totals_of(const char *text, const char *begin, int skip, struct totals *t)
{
	const char *at = text ? skip_numbers(after(text, begin), skip) : NULL;

	return at && parse_totals(at, nr_events(text), t);
}

/* The same, of a file as it is now. */
static inline bool totals_in(const char *path, const char *begin, int skip, struct totals *t)
{
	char *text = slurp(path);
	bool found = totals_of(text, begin, skip, t);

	free(text);
	return found;
}

static inline bool task_totals(int pid, struct totals *t)
{
	char begin[32];

	snprintf(begin, sizeof(begin), "task %d", pid);
	return totals_in(SCHED "tasks", begin, 2, t);
}

static inline bool group_totals(int tgid, struct totals *t)
{
	char begin[32];

	snprintf(begin, sizeof(begin), "group %d", tgid);
	return totals_in(SCHED "tasks", begin, 2, t);
}

static inline bool exited_totals(struct totals *t)
{
	return totals_in(SCHED "tasks", "exited", 0, t);
}

static inline bool cpu_totals(int cpu, struct totals *t)
{
	char begin[32];

	snprintf(begin, sizeof(begin), "cpu %d", cpu);
	return totals_in(SCHED "cpus", begin, 0, t);
}

/* @what: "cgroup" or "subtree" */
static inline bool cgroup_totals(const char *what, uint64_t id, struct totals *t)
{
	char begin[64];

	snprintf(begin, sizeof(begin), "%s %" PRIu64, what, id);
	return totals_in(SCHED "cgroups", begin, 1, t);
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

/* Of all lines that begin with @begin, but for those @but says are not to count. */
static inline bool sum_lines(const char *text, const char *begin, int skip, struct totals *sum,
			     bool (*but)(const char *text, const char *line))
{
	int nr = nr_events(text);
	const char *line = text;
	struct totals t;

	*sum = (struct totals){ .valid = 1 };
	while ((line = after(line, begin))) {
		const char *at = skip_numbers(line - 1, skip);

		if (!at || !parse_totals(at, nr, &t))
			return false;
		if (!but || !but(text, line))
			add_totals(sum, &t);
	}
	return true;
}

/* Whether a line "task PID TGID ..." is of a process that has a line of its own. */
static inline bool is_grouped(const char *text, const char *line)
{
	char begin[32];
	int tgid;

	if (sscanf(line, "%*d %d", &tgid) != 1)
		return false;
	snprintf(begin, sizeof(begin), "group %d ", tgid);
	return after(text, begin);
}

/* All that tasks have had, those that are no more, and those that nobody knows. */
static inline bool sum_tasks(struct totals *sum)
{
	char *text = slurp(SCHED "tasks");
	struct totals groups, exited, stray;
	bool sound = text && sum_lines(text, "task ", 3, sum, is_grouped) &&
		     sum_lines(text, "group ", 3, &groups, NULL) &&
		     totals_of(text, "exited", 0, &exited) && totals_of(text, "stray", 0, &stray);

	free(text);
	if (!sound)
		return false;
	add_totals(sum, &groups);
	add_totals(sum, &exited);
	add_totals(sum, &stray);
	return true;
}

static inline bool sum_cpus(struct totals *sum)
{
	char *text = slurp(SCHED "cpus");
	bool sound = text && sum_lines(text, "cpu ", 1, sum, NULL);

	free(text);
	return sound;
}

/* What the head of a file has at @name. */
static inline uint64_t head_number(const char *path, const char *name)
{
	char *text = slurp(path);
	const char *at = text ? after(text, name) : NULL;
	uint64_t value = at ? strtoull(at, NULL, 10) : UINT64_MAX;

	free(text);
	return value;
}

/* Buckets of a line of a histogram; returns their sum. */
static inline uint64_t buckets_of(const char *text, const char *what, int cpu, uint64_t *buckets,
				  int nr)
{
	uint64_t sum = 0;
	const char *at;
	char begin[32];
	char *end;
	int i;

	snprintf(begin, sizeof(begin), "%s %d ", what, cpu);
	at = text ? after(text, begin) : NULL;
	for (i = 0; i < nr; i++) {
		buckets[i] = at ? strtoull(at, &end, 10) : 0;
		sum += buckets[i];
		at = at ? end : NULL;
	}
	return at && *at == '\n' ? sum : UINT64_MAX;
}

/* ---- the simulated PMU ---- */

static inline bool pace_look(unsigned int *type, int *nr)
{
	char text[32];

	return read_file(PACE "pmu", text, sizeof(text)) > 0 &&
	       sscanf(text, "%u %d", type, nr) == 2;
}

/* Its type; 0: there is none. */
static inline unsigned int pace_type(void)
{
	unsigned int type;
	int nr;

	return pace_look(&type, &nr) ? type : 0;
}

/* How many perf events there are on it. */
static inline int pace_events(void)
{
	unsigned int type;
	int nr;

	return pace_look(&type, &nr) ? nr : -1;
}

/* Let so much happen to this CPU, in this task. Returns 0, or -1 and errno. */
static inline int pace_add(uint64_t cycles, uint64_t insns)
{
	char text[96];

	snprintf(text, sizeof(text), "%d %" PRIu64 " %d %" PRIu64, CYCLES, cycles, INSNS, insns);
	return write_file(PACE "add", text);
}

static inline int pace_add_on(int cpu, uint64_t cycles, uint64_t insns)
{
	char text[96];

	snprintf(text, sizeof(text), "%d %d %" PRIu64 " %d %" PRIu64, cpu, CYCLES, cycles, INSNS,
		 insns);
	return write_file(PACE "add_on", text);
}

static inline int pace_steal(int cpu, int nr)
{
	char text[32];

	snprintf(text, sizeof(text), "%d %d", cpu, nr);
	return write_file(PACE "steal", text);
}

/* ---- the module ---- */

static inline int set_parameter(const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	return write_file(path, value);
}

static inline bool parameter_is(const char *name, const char *value)
{
	char path[128], text[256];

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	if (read_file(path, text, sizeof(text)) < 0)
		return false;
	text[strcspn(text, "\n")] = 0;
	return !strcmp(text, value);
}

/* UINT64_MAX: there is none of that name. */
static inline uint64_t parameter_number(const char *name)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	return read_file(path, text, sizeof(text)) < 0 ? UINT64_MAX : strtoull(text, NULL, 10);
}

/* Counts both of them, from 0, on a new PMU. What was on the one before may take a while to end. */
static inline bool sched_begin(int counters, int width)
{
	char text[64];

	set_parameter("enabled", "0");
	snprintf(text, sizeof(text), "%d %d", counters, width);
	if (!comes(!write_file(PACE "pmu", text)))
		return false;
	snprintf(text, sizeof(text), "%u:%d,%u:%d", pace_type(), CYCLES, pace_type(), INSNS);
	return !set_parameter("events", text) && !set_parameter("enabled", "1") &&
	       pace_events() > 0;
}

/* As it is when it is loaded, but for that it is off. */
static inline bool sched_end(void)
{
	set_parameter("enabled", "0");
	return !set_parameter("events", "cycles,instructions") &&
	       comes(!write_file(PACE "pmu", "0"));
}

/* What idle has had of the first two events, or of the only one. */
static inline bool idle_counts(const char *text, int cpu, uint64_t counts[2])
{
	const char *at;
	char begin[32];

	snprintf(begin, sizeof(begin), "idle %d ", cpu);
	at = text ? after(text, begin) : NULL;
	counts[1] = 0;
	return at && sscanf(at, "%*u %*u %" SCNu64 " %" SCNu64, &counts[0], &counts[1]) >= 1;
}

/* A task that comes and goes: what was had there meanwhile is accounted, by idle too. */
static inline void visit(int cpu)
{
	cpu_set_t here, there;

	CPU_ZERO(&there);
	CPU_SET(cpu, &there);
	if (!sched_getaffinity(0, sizeof(here), &here) &&
	    !sched_setaffinity(0, sizeof(there), &there))
		sched_setaffinity(0, sizeof(here), &here);
}

/* What all that ran on a CPU, and idle, has had of the first event. */
static inline uint64_t cycles_on(int cpu)
{
	char begin[32], *text;
	uint64_t idle[2];
	struct totals t;
	bool sound;

	visit(cpu);
	text = slurp(SCHED "cpus");
	snprintf(begin, sizeof(begin), "cpu %d", cpu);
	sound = totals_of(text, begin, 0, &t) && idle_counts(text, cpu, idle);
	free(text);
	return sound ? t.counts[0] + idle[0] : 0;
}

/*
 * Whether what happens on a CPU is counted there, as it is not while its counters are away, nor in
 * the slice in which they come back. What was is added to @added.
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

static inline int run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

static inline int run_anywhere(void)
{
	cpu_set_t set;

	memset(&set, 0xff, sizeof(set));
	return sched_setaffinity(0, sizeof(set), &set);
}

static inline int nr_cpus(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN);
}

/* What a worker is to do. */
struct order {
	enum { ORDER_ADD, ORDER_YIELD, ORDER_SPIN, ORDER_NAP, ORDER_RUN_ON, ORDER_END } what;
	uint64_t a, b;
};

/* A process that does one thing after the other, and waits in between. */
struct worker {
	int pid;
	int to, from;		/* pipes */
};

/* Returns 0, errno, or -1: it does not know what to do. */
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
		return run_on(o->a) ? errno : 0;
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

/* Without waiting until it is done. */
static inline bool worker_order(const struct worker *w, int what, uint64_t a, uint64_t b)
{
	struct order o = { .what = what, .a = a, .b = b };

	return write(w->to, &o, sizeof(o)) == sizeof(o);
}

/* 0, or why it could not do the latest order. */
static inline int worker_done(const struct worker *w)
{
	int ret;

	return read(w->from, &ret, sizeof(ret)) == sizeof(ret) ? ret : EPIPE;
}

static inline int worker_do(const struct worker *w, int what, uint64_t a, uint64_t b)
{
	return worker_order(w, what, a, b) ? worker_done(w) : EPIPE;
}

static inline int worker_add(const struct worker *w, uint64_t cycles, uint64_t insns)
{
	return worker_do(w, ORDER_ADD, cycles, insns);
}

/* Whether it ended well. */
static inline bool ended(int pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

static inline bool worker_end(struct worker *w)
{
	bool told = worker_order(w, ORDER_END, 0, 0);

	close(w->to);
	close(w->from);
	return told && ended(w->pid);
}

/* A process that runs @fn, whose result is its exit status. It does not outlive us. */
static inline int start(int (*fn)(void *arg), void *arg)
{
	int pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(fn(arg));
	}
	return pid;
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

/* Those of all processes that have exited, which is told some time after wait(2) has returned. */
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

#endif /* _PMUK_SELFTEST_SCHED_H */
