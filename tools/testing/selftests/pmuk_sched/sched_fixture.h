/* SPDX-License-Identifier: GPL-2.0 */
/* The fixture has two events on a simulated PMU, which count from 0. The test runs on CPU 0. */
#ifndef _PMUK_SELFTEST_SCHED_FIXTURE_H
#define _PMUK_SELFTEST_SCHED_FIXTURE_H

#include <sys/stat.h>
#include <sys/syscall.h>

#include "sched.h"

#define CALLS	"/sys/kernel/tracing/instances/pmuk_calls"

/* Starts the trace for calls_on(). Returns whether this kernel traces calls between CPUs. */
static inline bool calls_begin(void)
{
	int fd;

	mkdir(CALLS, 0700);
	fd = open(CALLS "/trace", O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return false;
	close(fd);
	return !write_file(CALLS "/events/csd/csd_queue_cpu/enable", "1");
}

/* Traces only calls to @cpu from now on, so that a long trace loses no entries. */
static inline bool calls_filter(int cpu)
{
	return !write_file(CALLS "/events/csd/csd_queue_cpu/filter", "cpu == %d", cpu);
}

static inline void calls_end(void)
{
	write_file(CALLS "/events/csd/csd_queue_cpu/enable", "0");
	rmdir(CALLS);
}

/* Marks calls since the last mark as counted by calls_on(), or as ignored. */
static inline bool calls_mark(bool count)
{
	return !write_file(CALLS "/trace_marker", count ? "pmuk: count" : "pmuk: forget");
}

/*
 * Returns whether @line of the trace is a cross-CPU call to @cpu of a function of pmuk or of perf.
 * Other calls do not count. For example, the scheduler calls idle CPUs to balance load.
 */
static inline bool is_call_on(int cpu, const char *line)
{
	const char *at = strstr(line, "csd_queue_cpu: cpu=");

	if (!at || atoi(strchr(at, '=') + 1) != cpu)
		return false;
	at = strstr(at, "func=");
	return at && (strstr(at, "pmuk_") || strstr(at, "perf_") || strstr(at, "=remote_function"));
}

/* Returns the number of these calls. UINT64_MAX means that the trace has lost entries. */
static inline uint64_t calls_on(int cpu)
{
	char *text __freed = slurp(CALLS "/trace"), *line, *save = NULL;
	uint64_t calls = 0, counted = 0, kept, written;
	const char *at = after(text, "# entries-in-buffer/entries-written: ");

	if (!at || sscanf(at, "%" SCNu64 "/%" SCNu64, &kept, &written) != 2 || kept != written)
		return UINT64_MAX;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strstr(line, "pmuk: count"))
			counted = calls;
		else if (strstr(line, "pmuk: forget"))
			calls = counted;
		else
			calls += is_call_on(cpu, line);
	}
	return calls;
}

FIXTURE(sched)
{
	unsigned int type;
	struct totals t, before;
};

FIXTURE_SETUP(sched)
{
	ASSERT_TRUE(sched_begin(8, 48));
	self->type = pace_type();
}

FIXTURE_TEARDOWN(sched)
{
	calls_end();
	write_file(CPU1_ONLINE, "1");
	EXPECT_TRUE(sched_end());
}

/* Opens a pinned perf event on @cpu. Returns a file descriptor, or -1 and errno. */
static inline int open_counter(unsigned int type, uint64_t config, int cpu)
{
	struct perf_event_attr attr = {
		.type	= type,
		.size	= sizeof(attr),
		.config	= config,
		.pinned	= 1,
	};

	return syscall(SYS_perf_event_open, &attr, -1, cpu, -1, 0);
}

/* A child of start() spins on a CPU. */
static inline int spin(void *cpu)
{
	if (stay_on((long)cpu))
		return 1;
	for (;;)
		;
}

/* A child of start() spins on a CPU. Only tasks with a higher real-time priority can preempt it. */
static inline int hog(void *cpu)
{
	return stay_on((long)cpu) || be_realtime(1) ? 1 : spin(cpu);
}

/* Holds the scheduler's own numbers of a task. */
struct truth {
	uint64_t voluntary, involuntary, run, wait, times;
};

static inline bool truth_of(int pid, struct truth *truth)
{
	char *status __freed = slurp_of(pid, "status");
	char *schedstat __freed = slurp_of(pid, "schedstat");
	const char *v = after(status, "voluntary_ctxt_switches:");
	const char *i = after(status, "nonvoluntary_ctxt_switches:");

	truth->voluntary = v ? strtoull(v, NULL, 10) : 0;
	truth->involuntary = i ? strtoull(i, NULL, 10) : 0;
	return v && i && schedstat && sscanf(schedstat, "%" SCNu64 " %" SCNu64 " %" SCNu64,
					     &truth->run, &truth->wait, &truth->times) == 3;
}

/* Holds the number of switches for reasons other than sleep and preemption. */
struct reasons {
	uint64_t throttled, yielded, stopped, migrated;
};

static inline bool reasons_on(int cpu, struct reasons *r)
{
	char *text __freed = slurp(SCHED "cpus");
	const char *at = after(text, "left %d ", cpu);

	return at && sscanf(at, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &r->throttled,
			    &r->yielded, &r->stopped, &r->migrated) == 4;
}

#define READS	25

#endif /* _PMUK_SELFTEST_SCHED_FIXTURE_H */
