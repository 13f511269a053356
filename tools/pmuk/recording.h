/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The file of pmuk record: a header, then blocks, all in the byte order of the machine that wrote
 * it. Positions are multiples of 8, and so are sizes, but for that of packets: zeros follow these.
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
#define RECORDING_VERSION	2		/* 1 had fewer reasons, in fewer bits */

struct recording_header {
	char magic[8];			/* RECORDING_MAGIC */
	u32 order;			/* RECORDING_ORDER */
	u32 version;			/* RECORDING_VERSION */
	u32 mode;			/* PMUK_SCHED_DROP, _OVERWRITE or _RAW */
	u32 nr_cpus;
	u64 begun;			/* ns of CLOCK_MONOTONIC */
	char events[MAX_EVENTS][EVENT_NAME];	/* "": there is none */
};

enum {
	RECORDING_RECORDS = 1,		/* of block.cpu: whole ones, as they were in its ring */
	RECORDING_STAT = 2,		/* struct pmuk_sched_stat of block.cpu, after its records */
	RECORDING_TASK = 3,		/* struct recording_task: a name; a later one replaces it */
	RECORDING_END = 4,		/* u64: ns of CLOCK_MONOTONIC */
	RECORDING_RAW = 5,		/* of block.cpu, instead of records: whole packets, as they
					 * were in its AUX area; then zeros, up to a multiple of 8
					 */
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

/* ---- raw.c: packets ---- */

/* A switch, as a record or a packet has it. */
struct slice {
	u32 pid;		/* who ran in it */
	u32 misc;		/* PMUK_SCHED_* */
	u64 run, wait;
	u64 counts[2];
};

/* State from the packets before; 0 at first. */
struct raw {
	bool marked;		/* there was a mark */
	u32 pid;		/* who runs */
	u64 number;		/* so many switches there were */
	u64 missing;		/* of which these were lost */
};

/*
 * The packet at @at, in @left bytes, which are not 0: how long it is. @s: the switch, but for
 * PMUK_SCHED_RAW_MARK. @fault: why it is none, or NULL.
 */
size_t raw_packet(struct raw *raw, const unsigned char *at, size_t left, struct slice *s,
		  const char **fault);

/* ---- stream.c: a CPU's ring, or its AUX area ---- */

struct stream {
	int fd;
	u32 cpu;
	u32 mode;
	struct perf_event_mmap_page *page;
	const unsigned char *data;	/* or packets */
	u64 size;		/* of that, a power of two */
	size_t mapped;		/* of the page, and what comes with it */
	u64 position;		/* read up to here */
};

/* False if there is no such CPU. */
bool stream_open(struct stream *s, u32 cpu, u32 nr_pages, u32 mode);
void stream_stat(const struct stream *s, struct pmuk_sched_stat *stat);
/* Copies whole records, or packets, up to position @end, NONE: all, to @to; how many bytes. */
size_t stream_read(struct stream *s, u64 end, unsigned char *to);
void stream_close(struct stream *s);

#endif
