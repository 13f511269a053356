/* SPDX-License-Identifier: GPL-2.0 */
/* Counts the calls of pmuk and of perf between CPUs, by a trace of these calls. */
#ifndef _PMUK_SELFTEST_SCHED_CALLS_H
#define _PMUK_SELFTEST_SCHED_CALLS_H

#include <sys/stat.h>

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

#endif /* _PMUK_SELFTEST_SCHED_CALLS_H */
