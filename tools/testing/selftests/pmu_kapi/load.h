/* SPDX-License-Identifier: GPL-2.0 */
/* The threads write to a buffer all the time, while the test reads or maps it. */
#ifndef _PMUK_SELFTEST_LOAD_H
#define _PMUK_SELFTEST_LOAD_H

#include <pthread.h>

#include "export.h"

/* Writes to a buffer from one context, on the buffer's CPU, until @stop. */
struct load {
	pthread_t thread;
	int fd;
	uint32_t context;
	bool stop;
	uint64_t tried;
	uint64_t written;
};

static inline void *load_run(void *data)
{
	struct load *load = data;
	int ret;

	if (stay_on(0))
		return NULL;
	while (!LOAD(load->stop)) {
		ret = export_write(load->fd, 50, 64, load->context);
		if (ret < 0)
			break;
		STORE(load->tried, load->tried + 50);
		load->written += ret;
	}
	return NULL;
}

/* Starts a thread for each context. */
static inline int load_start(struct load load[], int fd)
{
	uint32_t i;

	for (i = 0; i < PMUK_EXPORT_CONTEXTS; i++) {
		load[i] = (struct load){ .fd = fd, .context = i };
		if (pthread_create(&load[i].thread, NULL, load_run, &load[i]))
			return -1;
	}
	return 0;
}

/* Stops the threads, and returns the sum of their counts. */
static inline struct load load_stop(struct load load[])
{
	struct load sum = {};
	uint32_t i;

	for (i = 0; i < PMUK_EXPORT_CONTEXTS; i++) {
		STORE(load[i].stop, true);
		pthread_join(load[i].thread, NULL);
		sum.tried += load[i].tried;
		sum.written += load[i].written;
	}
	return sum;
}

#endif /* _PMUK_SELFTEST_LOAD_H */
