/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests of /dev/pmuk_live share: see lib/tests/pmuk_live.h. */
#ifndef _PMUK_SELFTEST_LIVE_H
#define _PMUK_SELFTEST_LIVE_H

#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "../../../../lib/tests/pmuk_live.h"

#define BIT(nr)		((uint64_t)1 << (nr))
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL
#define PATIENCE	(60 * NSEC_PER_SEC)	/* longer than it can take, if it comes */
#define MAX_CPUS	512

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

/* Whether @cond comes true. */
#define comes(cond)							\
({									\
	uint64_t __end = now_ns() + PATIENCE;				\
	bool __came;							\
									\
	while (!(__came = (cond)) && now_ns() < __end)			\
		usleep(5000);						\
	__came;								\
})

static inline int live_open(void)
{
	return open("/dev/pmuk_live", O_RDWR | O_CLOEXEC);
}

/* Nanoseconds, which every machine counts; with @period so many of them overflow. */
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

/* Returns 0 or -1. */
static inline int live_create(int fd, const struct pmuk_live_attr *attr)
{
	return ioctl(fd, PMUK_LIVE_CREATE, attr);
}

/* Returns 0 or -1. */
static inline int live_look(int fd, int cpu, struct pmuk_live_cpu *at)
{
	memset(at, 0, sizeof(*at));
	at->cpu = cpu;
	return ioctl(fd, PMUK_LIVE_LOOK, at);
}

/* Whether both sets have had @n turns on each of @cpus CPUs. */
static inline bool live_has_run(int fd, int cpus, uint64_t n)
{
	struct pmuk_live_cpu at;
	int cpu;

	for (cpu = 0; cpu < cpus; cpu++) {
		if (live_look(fd, cpu, &at) || at.runs[0] < n || at.runs[1] < n)
			return false;
	}
	return true;
}

/* What follows @name in a line of names and numbers, "name 1" or "name=1"; false if nothing. */
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

/* Returns 0, or -1 and errno. */
static inline int write_at(int dir, const char *path, const char *text)
{
	int fd = openat(dir, path, O_WRONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -1;
	ret = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
	if (close(fd))
		ret = -1;
	return ret;
}

static inline int write_file(const char *path, const char *text)
{
	return write_at(AT_FDCWD, path, text);
}

/* As a string, up to @size bytes. Returns its length, or -1 and errno. */
static inline ssize_t read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got = -1;

	if (fd < 0)
		return -1;
	while (len < size - 1 && (got = read(fd, text + len, size - 1 - len)) > 0)
		len += got;
	text[len] = 0;
	close(fd);
	return got < 0 ? -1 : (ssize_t)len;
}

#endif /* _PMUK_SELFTEST_LIVE_H */
