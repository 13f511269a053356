/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The selftests in tools/testing/selftests/pmu_kapi/ use the ioctls of /dev/pmuk_live. These are
 * for tests, and no ABI.
 */
#ifndef _PMUK_LIVE_H
#define _PMUK_LIVE_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* The context has event sets 0 and 1. Each has one counter, number 0. */
#define PMUK_LIVE_SETS	2

/**
 * struct pmuk_live_attr - a context on the whole machine
 * @type: see struct pmuk_pmc; the same for both counters
 * @nr_pages: see struct pmuk_buffer_attr; records have IP and time, with PMUK_CTX_EXPORT also
 *	identifier, TID, CPU, period and a cookie of 0. There are AUX areas as large, but not with
 *	PMUK_CTX_EXPORT
 * @config: see struct pmuk_pmc; the same for both counters
 * @period: events until a counter overflows; 0: it does not
 * @timeout: nanoseconds of each set's turn
 * @flags: enum pmuk_context_flags; with PMUK_CTX_RESERVE the counters are pinned
 * @pad: 0
 */
struct pmuk_live_attr {
	__u32 type;
	__u32 nr_pages;
	__u64 config;
	__u64 period;
	__u64 timeout;
	__u32 flags;
	__u32 pad;
};

/**
 * struct pmuk_live_cpu - counts and messages of a CPU
 * @cpu: the CPU, set by the caller
 * @pad: 0
 * @counts: counts of its counters, by set
 * @time_running: nanoseconds that the counters have counted, by set
 * @runs: turns, by set
 * @duration: nanoseconds of these turns, by set
 * @online: number of PMUK_MSG_CPU_ONLINE since the context was created
 * @offline: number of PMUK_MSG_CPU_OFFLINE
 * @counter_lost: number of PMUK_MSG_COUNTER_LOST
 * @records_lost: lost records that messages have reported
 */
struct pmuk_live_cpu {
	__s32 cpu;
	__u32 pad;
	__u64 counts[PMUK_LIVE_SETS];
	__u64 time_running[PMUK_LIVE_SETS];
	__u64 runs[PMUK_LIVE_SETS];
	__u64 duration[PMUK_LIVE_SETS];
	__u64 online;
	__u64 offline;
	__u64 counter_lost;
	__u64 records_lost;
};

/* Creates the file's context, loads and starts it. Possible once for each file. */
#define PMUK_LIVE_CREATE	_IOW('p', 0xe8, struct pmuk_live_attr)
#define PMUK_LIVE_LOOK		_IOWR('p', 0xe9, struct pmuk_live_cpu)
#define PMUK_LIVE_STOP		_IO('p', 0xea)
/* Closes the context. */
#define PMUK_LIVE_CLOSE		_IO('p', 0xeb)
/* Wakes the machine from suspend to idle each so many milliseconds. The argument 0 ends that. */
#define PMUK_LIVE_WAKE		_IO('p', 0xec)
/*
 * The argument 1 lets a machine suspend to memory that otherwise cannot, while the module is
 * loaded. The call returns whether it was let before. The argument 0 only returns that.
 */
#define PMUK_LIVE_LEND_SLEEP	_IO('p', 0xed)
/* The argument 1 begins a call on the context that takes long, and 0 ends it. */
#define PMUK_LIVE_BUSY		_IO('p', 0xee)
/* Closes the context by pmuk_close_deferred(), and does not wait for the end of that. */
#define PMUK_LIVE_CLOSE_LATER	_IO('p', 0xef)

#endif /* _PMUK_LIVE_H */
