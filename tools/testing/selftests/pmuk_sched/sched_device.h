/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests of /dev/pmuk_sched begin with: two workers on its last CPU, and requests to it. */
#ifndef _PMUK_SELFTEST_SCHED_DEVICE_H
#define _PMUK_SELFTEST_SCHED_DEVICE_H

#include <poll.h>

#include "sched.h"
#include "../../../../include/uapi/linux/pmuk_sched.h"

#define DEVICE		"/dev/pmuk_sched"

static inline int bind_stream(int fd, unsigned int cpu, unsigned int pages, unsigned int mode,
			      unsigned int watermark)
{
	struct pmuk_sched_stream what = {
		.cpu = cpu, .nr_pages = pages, .mode = mode, .watermark = watermark,
	};

	return ioctl(fd, PMUK_SCHED_STREAM, &what);
}

static inline bool wakes(int fd, uint64_t patience)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, patience / NSEC_PER_MSEC) == 1 && poll_fd.revents & POLLIN;
}

/* The test itself is on the first CPU. */
static inline bool begin_pair(int *cpu, struct worker *w, struct worker *v)
{
	*cpu = nr_cpus() - 1;
	return !run_on(0) && sched_begin(8, 48) && worker_start(w) && worker_start(v) &&
	       !worker_do(w, ORDER_RUN_ON, *cpu, 0) && !worker_do(v, ORDER_RUN_ON, *cpu, 0);
}

static inline bool end_pair(struct worker *w, struct worker *v)
{
	bool ended = worker_end(w) & worker_end(v);

	return sched_end() && ended;
}

/* In 100 turns @w makes 5050 of the one event, and 5050 times @each of the other. */
static inline bool take_turns(struct worker *w, struct worker *v, uint64_t each)
{
	int i;

	for (i = 1; i <= 100; i++)
		if (worker_add(w, i, i * each) || worker_add(v, 1000, 1000))
			return false;
	return worker_order(v, ORDER_YIELD, 100, 0) && !worker_do(w, ORDER_YIELD, 100, 0) &&
	       !worker_done(v);
}

#endif /* _PMUK_SELFTEST_SCHED_DEVICE_H */
