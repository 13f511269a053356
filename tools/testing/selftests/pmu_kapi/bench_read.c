// SPDX-License-Identifier: GPL-2.0
/*
 * What read(2) on a perf file descriptor costs per call, beside what
 * <debugfs>/pmuk_bench/run says of the ways to read a counter in the kernel.
 *
 * Measured as there: cycles, pinned, nothing excluded, on one CPU; the median
 * of many turns; the cost of an empty loop subtracted. Prints lines "name value".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TURNS	41
#define CALLS	500

static int open_counter(uint64_t config)
{
	struct perf_event_attr attr = {
		.type	= PERF_TYPE_HARDWARE,
		.size	= sizeof(attr),
		.config	= config,
		.pinned	= 1,
	};

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* 0 if @fd is no counter */
static uint64_t read_counter(int fd)
{
	uint64_t count;

	return read(fd, &count, sizeof(count)) == sizeof(count) ? count : 0;
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void calls_empty(int fd)
{
	for (int i = 0; i < CALLS; i++)
		asm volatile("" : : "r"(fd) : "memory");
}

static void calls_read(int fd)
{
	uint64_t count;

	for (int i = 0; i < CALLS; i++) {
		if (read(fd, &count, sizeof(count)) == sizeof(count))
			continue;
		fprintf(stderr, "bench_read: lost the counter\n");
		exit(1);
	}
}

static void turn(void (*calls)(int fd), int cycles, int insns, uint64_t *ns, uint64_t *insn)
{
	uint64_t before = read_counter(insns), start = now();

	calls(cycles);
	*ns = now() - start;
	*insn = read_counter(insns) - before;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t median(uint64_t *turns)
{
	qsort(turns, TURNS, sizeof(*turns), compare);
	return turns[TURNS / 2];
}

static void print(const char *name, uint64_t *turns, uint64_t *empty)
{
	printf("%s %.3f\n", name, ((double)median(turns) - (double)median(empty)) / CALLS);
}

static void stay_on_this_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

int main(void)
{
	static uint64_t ns[2][TURNS], insn[2][TURNS];
	int cycles, insns;

	stay_on_this_cpu();
	cycles = open_counter(PERF_COUNT_HW_CPU_CYCLES);
	if (cycles < 0) {
		fprintf(stderr, "bench_read: cannot count cycles: %s\n", strerror(errno));
		return 1;
	}
	insns = open_counter(PERF_COUNT_HW_INSTRUCTIONS);

	for (int i = 0; i < TURNS; i++) {
		turn(calls_empty, cycles, insns, &ns[0][i], &insn[0][i]);
		turn(calls_read, cycles, insns, &ns[1][i], &insn[1][i]);
	}
	print("read_syscall_ns", ns[1], ns[0]);
	if (insns >= 0)
		print("read_syscall_insn", insn[1], insn[0]);
	return 0;
}
