/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The file of pmuk record: a header, then blocks, all in the byte order of the machine that wrote
 * it. Sizes and positions are multiples of 8.
 *
 *	struct recording_header
 *	struct recording_block, and as many bytes as its size says; again and again
 *	a block RECORDING_END, behind which there is nothing
 */
#ifndef PMUK_RECORDING_H
#define PMUK_RECORDING_H

#include <assert.h>
#include <linux/pmuk_sched.h>

#include "pmuk.h"

#define RECORDING_MAGIC		"PMUKSCHD"
#define RECORDING_ORDER		0x01020304
#define RECORDING_VERSION	1

struct recording_header {
	char magic[8];			/* RECORDING_MAGIC */
	u32 order;			/* RECORDING_ORDER */
	u32 version;			/* RECORDING_VERSION */
	u32 mode;			/* PMUK_SCHED_DROP or PMUK_SCHED_OVERWRITE */
	u32 nr_cpus;
	u64 begun;			/* ns of CLOCK_MONOTONIC */
	char events[MAX_EVENTS][EVENT_NAME];	/* "": there is none */
};

enum {
	RECORDING_RECORDS = 1,		/* of block.cpu: whole ones, as they were in its ring */
	RECORDING_STAT = 2,		/* struct pmuk_sched_stat of block.cpu, after its records */
	RECORDING_TASK = 3,		/* struct recording_task: a name; a later one replaces it */
	RECORDING_END = 4,		/* u64: ns of CLOCK_MONOTONIC */
};

struct recording_block {
	u32 type;
	u32 cpu;
	u64 size;			/* of what follows */
};

struct recording_task {
	u32 pid;
	char name[68];			/* ends with a 0 */
};

struct recording_lost {			/* a PERF_RECORD_LOST */
	struct perf_event_header header;
	u64 id;
	u64 lost;
};

static_assert(sizeof(struct recording_header) == 160, "an ABI");
static_assert(sizeof(struct recording_block) == 16, "an ABI");
static_assert(sizeof(struct recording_task) == 72, "an ABI");
static_assert(sizeof(struct pmuk_sched_switch) == 48, "an ABI");
static_assert(sizeof(struct pmuk_sched_stream) == 16, "an ABI");
static_assert(sizeof(struct pmuk_sched_stat) == 32, "an ABI");

#define RECORDING_FILE		"pmuk.data"	/* when no other is named */

/* ---- stream.c: a CPU's ring ---- */

struct stream {
	int fd;
	u32 cpu;
	u32 mode;
	struct perf_event_mmap_page *page;
	const unsigned char *data;
	u64 size;		/* of the data, a power of two */
	size_t mapped;
	u64 position;		/* read up to here */
};

/* False if there is no such CPU. */
bool stream_open(struct stream *s, u32 cpu, u32 nr_pages, u32 mode);
void stream_stat(const struct stream *s, struct pmuk_sched_stat *stat);
/* Copies whole records up to position @end, NONE: all there are, to @to; how many bytes. */
size_t stream_read(struct stream *s, u64 end, unsigned char *to);
void stream_close(struct stream *s);

#endif
