/* SPDX-License-Identifier: GPL-2.0 */
/* All tests share these helpers: time, CPUs, small files, medians, and accesses that fault. */
#ifndef _PMUK_SELFTEST_BASE_H
#define _PMUK_SELFTEST_BASE_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../kselftest.h"

#define BIT(nr)		((uint64_t)1 << (nr))
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL
#define PATIENCE	(60 * NSEC_PER_SEC)	/* longer than any event takes that does happen */

/* Evaluates to errno if @call returned -1 or MAP_FAILED, and otherwise to 0. */
#define errno_of(call)	((intptr_t)(call) == -1 ? errno : 0)

#define LOAD(x)		__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define STORE(x, v)	__atomic_store_n(&(x), (v), __ATOMIC_RELAXED)

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

/* Waits until @cond is true; returns false after PATIENCE. */
#define comes(cond)							\
({									\
	uint64_t __end = now_ns() + PATIENCE;				\
	bool __came;							\
									\
	while (!(__came = (cond)) && now_ns() < __end)			\
		usleep(5000);						\
	__came;								\
})

static inline int nr_cpus(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN);
}

static inline int stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

/* Writes @text to a file. Returns 0, or -1 and errno. */
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

/* Writes what vprintf() would print. Returns 0, or -1 and errno. */
static inline int write_text(const char *path, const char *format, va_list args)
{
	char text[512];

	if (vsnprintf(text, sizeof(text), format, args) >= (int)sizeof(text))
		return -1;
	return write_at(AT_FDCWD, path, text);
}

/* Writes what printf() would print. Returns 0, or -1 and errno. */
static inline __printf(2, 3)
int write_file(const char *path, const char *format, ...)
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = write_text(path, format, args);
	va_end(args);
	return ret;
}

/* Reads at most @size - 1 bytes as a string. Returns its length, or -1 and errno. */
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

/* Returns whether the file consists of the one line @wanted. */
static inline bool file_is(const char *path, const char *wanted)
{
	char text[256];
	ssize_t len = strlen(wanted);

	return read_file(path, text, sizeof(text)) == len + 1 && !strncmp(text, wanted, len) &&
	       text[len] == '\n';
}

static inline bool file_has(const char *path, const char *word)
{
	char text[4096];

	return read_file(path, text, sizeof(text)) >= 0 && strstr(text, word);
}

/* Returns the number at the beginning of a file; UINT64_MAX if the file does not exist. */
static inline uint64_t number_in_file(const char *path)
{
	char text[32];

	return read_file(path, text, sizeof(text)) < 0 ? UINT64_MAX : strtoull(text, NULL, 10);
}

/* Compares signed values, since a difference can be negative. */
static inline int compare_values(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Returns the median of @values, and sorts them. */
static inline double median(int64_t *values, int nr)
{
	qsort(values, nr, sizeof(*values), compare_values);
	return values[nr / 2];
}

static sigjmp_buf fault_jump;

static inline void fault_handler(int signal)
{
	siglongjmp(fault_jump, signal);
}

#endif /* _PMUK_SELFTEST_BASE_H */
