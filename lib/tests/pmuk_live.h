/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ioctls of /dev/pmuk_live, for tools/testing/selftests/pmu_kapi/. They are for tests: no ABI.
 */
#ifndef _PMUK_LIVE_H
#define _PMUK_LIVE_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Event sets 0 and 1, each with one counter, of number 0. */
#define PMUK_LIVE_SETS	2

/**
 * struct pmuk_live_attr - a context on the whole machine
 * @type: as in struct pmuk_pmc, of both counters
 * @nr_pages: as in struct pmuk_buffer_attr; records hold where and when
 * @config: as in struct pmuk_pmc
 * @period: events until a counter overflows; 0: it does not
 * @timeout: nanoseconds of each set's turn
 */
struct pmuk_live_attr {
	__u32 type;
	__u32 nr_pages;
	__u64 config;
	__u64 period;
	__u64 timeout;
};

/**
 * struct pmuk_live_cpu - how a CPU does
 * @cpu: which one; written by who asks
 * @pad: 0
 * @counts: what its counters have counted, by set, as are the next three
 * @time_running: nanoseconds that they have counted
 * @runs: turns of the set
 * @duration: nanoseconds of these
 * @online: messages that it has come online, since the context was created
 * @offline: ... that it went offline
 * @counter_lost: ... that a counter was lost there
 * @records_lost: records of which messages say that they were lost
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

/* Once for each file: create its context, load and start it. */
#define PMUK_LIVE_CREATE	_IOW('p', 0xe8, struct pmuk_live_attr)
#define PMUK_LIVE_LOOK		_IOWR('p', 0xe9, struct pmuk_live_cpu)
#define PMUK_LIVE_STOP		_IO('p', 0xea)
/* End the context. */
#define PMUK_LIVE_CLOSE		_IO('p', 0xeb)
/* Wake the machine from suspend to idle, so many milliseconds from now. */
#define PMUK_LIVE_WAKE		_IO('p', 0xec)
/*
 * 1: let a machine that cannot suspend to memory do so, while the module is loaded. Returns
 * whether it does already; 0: only says that.
 */
#define PMUK_LIVE_LEND_SLEEP	_IO('p', 0xed)
/* 1: a call on the context is under way from now on, as one that takes long; 0: it has ended. */
#define PMUK_LIVE_BUSY		_IO('p', 0xee)

#endif /* _PMUK_LIVE_H */
