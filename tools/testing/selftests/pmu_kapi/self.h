/* SPDX-License-Identifier: GPL-2.0 */
/* What a task needs to read its own counter from a control page, perf's or pmuk's. */
#ifndef _PMUK_SELFTEST_SELF_H
#define _PMUK_SELFTEST_SELF_H

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __x86_64__
#define USER_ACCESS	"/sys/bus/event_source/devices/cpu/rdpmc"
#define USER_ACCESS_WAS	"1"
#else
#define USER_ACCESS	"/proc/sys/kernel/perf_user_access"
#define USER_ACCESS_WAS	"0"
#endif
#define LOAD(x)		__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define barrier()	__atomic_signal_fence(__ATOMIC_SEQ_CST)

#ifdef __aarch64__
/* The counters that machines with a PMUv3 have mostly got, and that of cycles. */
static inline uint64_t read_register(unsigned int i)
{
	uint64_t count;

	switch (i) {
	case 0:
		asm volatile("mrs %0, pmevcntr0_el0" : "=r" (count));
		break;
	case 1:
		asm volatile("mrs %0, pmevcntr1_el0" : "=r" (count));
		break;
	case 2:
		asm volatile("mrs %0, pmevcntr2_el0" : "=r" (count));
		break;
	case 3:
		asm volatile("mrs %0, pmevcntr3_el0" : "=r" (count));
		break;
	case 4:
		asm volatile("mrs %0, pmevcntr4_el0" : "=r" (count));
		break;
	case 5:
		asm volatile("mrs %0, pmevcntr5_el0" : "=r" (count));
		break;
	case 6:
		asm volatile("mrs %0, pmevcntr6_el0" : "=r" (count));
		break;
	case 7:
		asm volatile("mrs %0, pmevcntr7_el0" : "=r" (count));
		break;
	case 31:
		asm volatile("mrs %0, pmccntr_el0" : "=r" (count));
		break;
	default:
		fprintf(stderr, "no code for counter %u\n", i);
		exit(1);
	}
	return count;
}
#elif defined(__x86_64__)
static inline uint64_t read_register(unsigned int i)
{
	uint32_t low, high;

	asm volatile("rdpmc" : "=a" (low), "=d" (high) : "c" (i));
	return (uint64_t)high << 32 | low;
}
#else
static inline uint64_t read_register(unsigned int i)
{
	return 0;
}
#endif

static inline int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), ret;

	if (fd < 0)
		return -1;
	ret = write(fd, text, strlen(text)) < 0;
	close(fd);
	return ret;
}

#endif /* _PMUK_SELFTEST_SELF_H */
