/* SPDX-License-Identifier: GPL-2.0 */
/* The fixture has two events on a simulated PMU, which count from 0. The test runs on CPU 0. */
#ifndef _PMUK_SELFTEST_SCHED_FIXTURE_H
#define _PMUK_SELFTEST_SCHED_FIXTURE_H

#include <sys/stat.h>
#include <sys/syscall.h>

#include "sched_calls.h"

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
