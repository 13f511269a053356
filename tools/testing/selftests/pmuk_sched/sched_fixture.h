/* SPDX-License-Identifier: GPL-2.0 */
/* What tests begin with that need nothing but two events which count from 0, and a CPU to be on. */
#ifndef _PMUK_SELFTEST_SCHED_FIXTURE_H
#define _PMUK_SELFTEST_SCHED_FIXTURE_H

#include <sys/syscall.h>

#include "sched.h"

FIXTURE(sched)
{
	unsigned int type;
	struct totals t, before;
};

FIXTURE_SETUP(sched)
{
	ASSERT_EQ(run_on(0), 0);
	ASSERT_TRUE(sched_begin(8, 48));
	self->type = pace_type();
}

FIXTURE_TEARDOWN(sched)
{
	write_file(CPU1_ONLINE, "1");
	EXPECT_TRUE(sched_end());
}

/* Of perf's: pinned, on @cpu. Returns a file descriptor, or -1 and errno. */
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

/* A task that never leaves its CPU by itself, for start(). */
static inline int spin(void *cpu)
{
	if (run_on((long)cpu))
		return 1;
	for (;;)
		;
}

static inline void stop(int pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Function calls that other CPUs have had @cpu make, by interrupt; UINT64_MAX: not told. */
static inline uint64_t calls_on(int cpu)
{
	char *text = slurp("/proc/interrupts"), *line, *save, *at;
	uint64_t calls = UINT64_MAX;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!strcasestr(line, "function call interrupts"))
			continue;
		at = strchr(line, ':') + 1;
		for (; cpu >= 0; cpu--)
			calls = strtoull(at, &at, 10);
		break;
	}
	free(text);
	return calls;
}

#define READS	25

/* Reads one of the files, which take turns by @turn. */
static inline void read_file_of(int turn)
{
	static const char *const files[] = { "cpus", "tasks", "cgroups", "hist" };
	char path[64];

	snprintf(path, sizeof(path), SCHED "%s", files[turn % 4]);
	free(slurp(path));
}

static inline void read_files(int times)
{
	int i;

	for (i = 0; i < times; i++)
		read_file_of(i);
}

#endif /* _PMUK_SELFTEST_SCHED_FIXTURE_H */
