// SPDX-License-Identifier: GPL-2.0
/*
 * die() exits with a message that says what to do. The helpers call die() when they fail.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pmuk.h"

int failed_status = 1;

__printf(1, 0) static void say(const char *format, va_list args)
{
	fflush(stdout);
	fputs("pmuk: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void die(const char *format, ...)
{
	va_list args;

	term_leave();	/* a message on pmuk top's screen would vanish with that screen */
	va_start(args, format);
	say(format, args);
	va_end(args);
	exit(failed_status);
}

void warn_user(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

void *zalloc(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		die("there is no memory left");
	return p;
}

/* Makes room for @nr + 1 elements. */
void *grow(void *array, size_t nr, size_t *room, size_t size)
{
	if (nr < *room)
		return array;
	*room = *room ? 2 * *room : 64;
	array = reallocarray(array, *room, size);
	if (!array)
		die("there is no memory left");
	return array;
}

u64 number_or_die(const char *text, u64 least, u64 most, const char *what)
{
	char *end;
	u64 n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || n < least || n > most)
		die("%s: a number from %llu to %llu is needed, not '%s'", what,
		    (unsigned long long)least, (unsigned long long)most, text);
	return n;
}

u64 seconds_or_die(const char *text)
{
	char *end;
	double s = strtod(text, &end);

	if (end == text || *end || !(s >= 0.01) || !(s <= 1e7))
		die("seconds, from 0.01 on, are needed, not '%s'", text);
	return (u64)(s * NSEC + 0.5);
}

void finish_output(FILE *out, const char *name)
{
	if (fflush(out) || ferror(out))
		die("cannot write to %s: %s", name, strerror(errno));
}

u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * NSEC + (u64)t.tv_nsec;
}
