/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The benchmarks measure as lib/tests/pmuk_bench.h does. Each runs on one CPU and compares ways,
 * which take turns. The result is the median of a way's turns minus that of an empty loop. The
 * output has lines "name value".
 */
#ifndef _PMUK_SELFTEST_BENCH_H
#define _PMUK_SELFTEST_BENCH_H

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base.h"

#define TURNS	41
#define CALLS	500

static inline void fail(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(1);
}

/* Returns @ret, unless it is an error, which ends the program. */
static inline int need(int ret, const char *what)
{
	if (ret < 0)
		fail(what);
	return ret;
}

/* Returns @at, unless it is MAP_FAILED, which ends the program. */
static inline void *need_map(void *at, const char *what)
{
	if (at == MAP_FAILED)
		fail(what);
	return at;
}

static inline void put(const char *path, const char *text)
{
	need(write_file(path, "%s", text), path);
}

static inline uint64_t get_number(const char *path)
{
	uint64_t number = number_in_file(path);

	if (number == UINT64_MAX)
		fail(path);
	return number;
}

/* Prints the kernel's measurements from a file in debugfs; @fd stays open. */
static inline void print_all(int fd, const char *path)
{
	char text[4096];
	ssize_t len;

	while ((len = read(fd, text, sizeof(text))) > 0)
		fwrite(text, 1, len, stdout);
	if (len)
		fail(path);
}

static inline int open_event(struct perf_event_attr *attr, int pid, int cpu)
{
	attr->size = sizeof(*attr);
	return syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Opens a pinned counter of this task that excludes nothing. */
static inline int open_counter(uint64_t config)
{
	struct perf_event_attr attr = {
		.type	= PERF_TYPE_HARDWARE,
		.config	= config,
		.pinned	= 1,
	};

	return open_event(&attr, 0, -1);
}

/* Returns the count, or 0 if @fd is no counter. */
static inline uint64_t read_counter(int fd)
{
	uint64_t count;

	return read(fd, &count, sizeof(count)) == sizeof(count) ? count : 0;
}

/**
 * struct way - one of the ways that are compared
 * @name: name in the output; NULL: not printed
 * @before: prepares a turn, is not measured; may be NULL
 * @calls: makes CALLS calls
 * @base: index of the way whose cost is subtracted
 */
struct way {
	const char *name;
	void (*before)(void);
	void (*calls)(void);
	int base;

	int64_t ns[TURNS];
	int64_t insn[TURNS];
};

static inline void calls_empty(void)
{
	for (int i = 0; i < CALLS; i++)
		asm volatile("" : : : "memory");
}

static inline void take_turn(struct way *way, int insns, int turn)
{
	uint64_t before, start;

	if (way->before)
		way->before();
	before = read_counter(insns);
	start = now_ns();
	way->calls();
	way->ns[turn] = now_ns() - start;
	way->insn[turn] = read_counter(insns) - before;
}

/* Prints each way's results. Lines with _insn need a counter of instructions. */
static inline void measure(struct way *ways, int nr)
{
	int insns = open_counter(PERF_COUNT_HW_INSTRUCTIONS);

	for (int turn = 0; turn < TURNS; turn++) {
		for (int i = 0; i < nr; i++)
			take_turn(&ways[i], insns, turn);
	}
	for (int i = 0; i < nr; i++) {
		struct way *way = &ways[i], *base = &ways[way->base];

		if (!way->name)
			continue;
		printf("%s_ns %.3f\n", way->name,
		       (median(way->ns, TURNS) - median(base->ns, TURNS)) / CALLS);
		if (insns >= 0)
			printf("%s_insn %.3f\n", way->name,
			       (median(way->insn, TURNS) - median(base->insn, TURNS)) / CALLS);
	}
	if (insns >= 0)
		close(insns);
}

static inline int stay_on_this_cpu(void)
{
	int cpu = sched_getcpu();

	stay_on(cpu);
	return cpu;
}

#endif /* _PMUK_SELFTEST_BENCH_H */
