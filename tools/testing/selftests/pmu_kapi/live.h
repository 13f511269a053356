/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tests of /dev/pmuk_live share these helpers. The header lib/tests/pmuk_live.h describes the
 * device.
 */
#ifndef _PMUK_SELFTEST_LIVE_H
#define _PMUK_SELFTEST_LIVE_H

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <sys/ioctl.h>

#include "base.h"
#include "../../../../lib/tests/pmuk_live.h"

#define MAX_CPUS	512
#define EXPORT		8	/* PMUK_CTX_EXPORT */

static inline int live_open(void)
{
	return open("/dev/pmuk_live", O_RDWR | O_CLOEXEC);
}

/* Returns attributes of a counter of nanoseconds, which every machine has. */
static inline struct pmuk_live_attr live_clock(uint64_t period)
{
	return (struct pmuk_live_attr){
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_CPU_CLOCK,
		.nr_pages	= 1,
		.period		= period,
		.timeout	= 5 * NSEC_PER_MSEC,
	};
}

/* Creates a context. Returns 0 or -1. */
static inline int live_create(int fd, struct pmuk_live_attr attr)
{
	return ioctl(fd, PMUK_LIVE_CREATE, &attr);
}

/* Reads the state of a CPU. Returns 0 or -1. */
static inline int live_look(int fd, int cpu, struct pmuk_live_cpu *at)
{
	memset(at, 0, sizeof(*at));
	at->cpu = cpu;
	return ioctl(fd, PMUK_LIVE_LOOK, at);
}

/* Returns whether @is, called with @arg, is true for each CPU from @cpu on. */
static inline bool live_on_all(int fd, int cpu, int cpus,
			       bool (*is)(const struct pmuk_live_cpu *at, const void *arg),
			       const void *arg)
{
	struct pmuk_live_cpu at;

	for (; cpu < cpus; cpu++) {
		if (live_look(fd, cpu, &at) || !is(&at, arg))
			return false;
	}
	return true;
}

static inline bool live_has_turned(const struct pmuk_live_cpu *at, const void *turns)
{
	return at->runs[0] >= *(const uint64_t *)turns && at->runs[1] >= *(const uint64_t *)turns;
}

/* Returns whether both sets have had @n turns on each of @cpus CPUs. */
static inline bool live_has_run(int fd, int cpus, uint64_t n)
{
	return live_on_all(fd, 0, cpus, live_has_turned, &n);
}

/*
 * Reads the number after @name in a line such as "name 1" or "name=1". Returns false if there is
 * none.
 */
static inline bool number_of(const char *line, const char *name, uint64_t *value)
{
	const char *at = line;
	size_t len = strlen(name);

	while ((at = strstr(at, name))) {
		bool begins = at == line || at[-1] == ' ';

		at += len;
		if (begins && (*at == ' ' || *at == '='))
			return sscanf(at + 1, "%" SCNu64, value) == 1;
	}
	return false;
}

/* Reads several numbers. The arguments are pairs of a name and an address, then NULL. */
static inline __attribute__((sentinel)) bool numbers_of(const char *line, ...)
{
	const char *name;
	bool found = true;
	va_list args;

	va_start(args, line);
	while (found && (name = va_arg(args, const char *)))
		found = number_of(line, name, va_arg(args, uint64_t *));
	va_end(args);
	return found;
}

#endif /* _PMUK_SELFTEST_LIVE_H */
