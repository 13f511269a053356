/* SPDX-License-Identifier: GPL-2.0 */
/* A task uses these helpers to read its own counter from a control page of perf or of pmuk. */
#ifndef _PMUK_SELFTEST_SELF_H
#define _PMUK_SELFTEST_SELF_H

#include <linux/perf_event.h>

#include "base.h"

#ifdef __x86_64__
#define USER_ACCESS	"/sys/bus/event_source/devices/cpu/rdpmc"
#define USER_ACCESS_WAS	"1"
#else
#define USER_ACCESS	"/proc/sys/kernel/perf_user_access"
#define USER_ACCESS_WAS	"0"
#endif
#define barrier()	__atomic_signal_fence(__ATOMIC_SEQ_CST)

#ifdef __aarch64__
#define READ_COUNTER(nr, name)						\
	case nr:							\
		asm volatile("mrs %0, " #name : "=r" (count));		\
		break

/* Most machines with a PMUv3 have only these counters, and the one for cycles. */
static inline uint64_t read_register(unsigned int i)
{
	uint64_t count;

	switch (i) {
	READ_COUNTER(0, pmevcntr0_el0);
	READ_COUNTER(1, pmevcntr1_el0);
	READ_COUNTER(2, pmevcntr2_el0);
	READ_COUNTER(3, pmevcntr3_el0);
	READ_COUNTER(4, pmevcntr4_el0);
	READ_COUNTER(5, pmevcntr5_el0);
	READ_COUNTER(6, pmevcntr6_el0);
	READ_COUNTER(7, pmevcntr7_el0);
	READ_COUNTER(31, pmccntr_el0);
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

#endif /* _PMUK_SELFTEST_SELF_H */
