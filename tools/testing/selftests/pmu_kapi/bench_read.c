// SPDX-License-Identifier: GPL-2.0
/*
 * What read(2) on a perf file descriptor costs per call, beside what
 * <debugfs>/pmuk_bench/run says of the ways to read a counter in the kernel:
 * cycles, pinned, nothing excluded.
 */
#define _GNU_SOURCE
#include "bench.h"

static int cycles;

static void calls_read(void)
{
	uint64_t count;

	for (int i = 0; i < CALLS; i++) {
		if (read(cycles, &count, sizeof(count)) != sizeof(count))
			fail("lost the counter");
	}
}

static struct way ways[] = {
	{ .calls = calls_empty },
	{ .name = "read_syscall", .calls = calls_read },
};

int main(void)
{
	stay_on_this_cpu();
	cycles = open_counter(PERF_COUNT_HW_CPU_CYCLES);
	if (cycles < 0)
		fail("cannot count cycles");
	measure(ways, 2);
	return 0;
}
