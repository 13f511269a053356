// SPDX-License-Identifier: GPL-2.0
/* Prints results as KTAP, and maps the memory of rings. */
#define _GNU_SOURCE
#include <err.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

#define SHOWN	10	/* failures that are printed for a test */

const char *skip_tests;
const struct test *running_test;
static int failures;

void fail(const char *file, int line, const char *format, ...)
{
	char text[256];
	va_list args;

	if (__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED) > SHOWN)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printf("    # %s:%d: %s\n", file, line, text);
}

bool failed(void)
{
	return __atomic_load_n(&failures, __ATOMIC_RELAXED);
}

static bool run_test(const struct test *test, size_t number)
{
	if (skip_tests) {
		printf("    ok %zu %s # SKIP %s\n", number, test->name, skip_tests);
		return true;
	}
	failures = 0;
	running_test = test;
	test->run();
	printf("    %s %zu %s\n", failures ? "not ok" : "ok", number, test->name);
	return !failures;
}

int run_tests(const struct test *tests, size_t nr, int argc, char **argv)
{
	const char *suite = argc > 1 ? argv[1] : "pmuk", *glob = argc > 2 ? argv[2] : "*";
	size_t i, number = 0, wanted = 0, bad = 0;
	bool list = !strcmp(suite, "--list");

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < nr; i++) {
		wanted += !fnmatch(glob, tests[i].name, 0);
		if (list)
			puts(tests[i].name);
	}
	if (!wanted || list)
		return 0;
	printf("KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: %s\n    1..%zu\n",
	       suite, wanted);
	for (i = 0; i < nr; i++)
		if (!fnmatch(glob, tests[i].name, 0))
			bad += !run_test(&tests[i], ++number);
	printf("%s 1 %s\n", bad ? "not ok" : "ok", suite);
	return bad ? 1 : 0;
}

void run_threads(void *(*const functions[MOST_THREADS])(void *))
{
	pthread_t threads[MOST_THREADS];
	int nr;

	for (nr = 0; nr < MOST_THREADS && functions[nr]; nr++)
		if (pthread_create(&threads[nr], NULL, functions[nr], NULL))
			err(2, "pthread_create");
	while (nr--)
		pthread_join(threads[nr], NULL);
}

static bool is_met(const struct goal *goal)
{
	return READ_ONCE(*goal->count) >= goal->least;
}

bool goals_are_met(const struct goal *goals)
{
	for (; goals->name; goals++)
		if (!is_met(goals))
			return false;
	return true;
}

void expect_goals(const struct goal *goals)
{
	for (; goals->name; goals++)
		if (!is_met(goals))
			FAIL("%s is %llu, not at least %llu", goals->name,
			     (unsigned long long)*goals->count, (unsigned long long)goals->least);
}

static void *map(void *at, size_t size, int fd)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	int prot = fd < 0 && !at ? PROT_NONE : PROT_READ | PROT_WRITE;
	void *p = mmap(at, size, prot, flags | (at ? MAP_FIXED : 0), fd, 0);

	if (p == MAP_FAILED)
		err(2, "mmap");
	return p;
}

static void map_twice(u8 *at, size_t size)
{
	int fd = memfd_create("pmuk", 0);

	if (fd < 0 || ftruncate(fd, size))
		err(2, "memfd");
	map(at, size, fd);
	map(at + size, size, fd);
	close(fd);
}

/* Maps the control page, and the data twice. A page that faults is before, between and after. */
void map_ring(struct ring_config *config)
{
	size_t page = sysconf(_SC_PAGESIZE), size = config->size;
	u8 *base = map(NULL, 4 * page + 2 * size, -1);

	config->page = map(base + page, page, -1);
	config->data = size ? base + 3 * page : NULL;
	if (size)
		map_twice(config->data, size);
}

void unmap_ring(const struct ring_config *config)
{
	size_t page = sysconf(_SC_PAGESIZE);

	munmap((u8 *)config->page - page, 4 * page + 2 * config->size);
}

u8 *map_area(size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);
	u8 *area = (u8 *)map(NULL, 2 * page + 2 * size, -1) + page;

	map_twice(area, size);
	return area;
}

void unmap_area(u8 *area, size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);

	munmap(area - page, 2 * page + 2 * size);
}
