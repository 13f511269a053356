/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The file of pmuk record: a header, then blocks, all in the byte order of the machine that wrote
 * them. Each block begins at a multiple of 8 bytes. Sizes are multiples of 8, too, except those of
 * packets, which are followed by zeros up to the next multiple.
 *
 *	struct recording_header
 *	struct recording_block with its data, any number of times
 *	a block RECORDING_END, the last one
 */
#ifndef PMUK_RECORDING_H
#define PMUK_RECORDING_H

#include <assert.h>
#include <linux/pmuk_sched.h>

#include "pmuk.h"

#define RECORDING_MAGIC		"PMUKSCHD"
#define RECORDING_ORDER		0x01020304
#define RECORDING_VERSION	2		/* version 1 had fewer reasons, in fewer bits */

struct recording_header {
	char magic[8];			/* RECORDING_MAGIC */
	u32 order;			/* RECORDING_ORDER */
	u32 version;			/* RECORDING_VERSION */
	u32 mode;			/* PMUK_SCHED_DROP, _OVERWRITE or _RAW */
	u32 nr_cpus;
	u64 begun;			/* ns of CLOCK_MONOTONIC */
	char events[MAX_EVENTS][EVENT_NAME];	/* "": no event */
};

enum {
	RECORDING_RECORDS = 1,		/* whole records from the ring of block.cpu */
	RECORDING_STAT = 2,		/* struct pmuk_sched_stat of block.cpu, after its records */
	RECORDING_TASK = 3,		/* struct recording_task; a later name replaces a former */
	RECORDING_END = 4,		/* u64: ns of CLOCK_MONOTONIC */
	RECORDING_RAW = 5,		/* whole packets from the AUX area of block.cpu, in place of
					 * records; then zeros, up to a multiple of 8 bytes
					 */
};

struct recording_block {
	u32 type;
	u32 cpu;
	u64 size;			/* bytes of data that follow, without padding */
};

struct recording_task {
	u32 pid;
	char name[68];			/* NUL-terminated */
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

#define RECORDING_FILE		"pmuk.data"	/* the default name */

/* ---- raw.c: packets ---- */

/* A slice of a task on a CPU, read from a record or a packet of the switch that ended the slice. */
struct slice {
	u32 pid;		/* the task */
	u32 misc;		/* PMUK_SCHED_* */
	u64 run, wait;
	u64 counts[2];
};

/* The state after a CPU's packets so far; zero before the first packet. */
struct raw {
	bool marked;		/* a mark has been read */
	u32 pid;		/* the running task */
	u64 number;		/* switches so far, lost ones included */
	u64 missing;		/* lost switches so far */
};

/*
 * Decodes the packet at @at, where @left (at least 1) bytes are, and returns its length. Sets @s
 * unless the packet is a mark (PMUK_SCHED_RAW_MARK). @fault: why the packet is invalid, or NULL.
 */
size_t raw_packet(struct raw *raw, const unsigned char *at, size_t left, struct slice *s,
		  const char **fault);

/* ---- stream.c: a CPU's ring, or its AUX area ---- */

struct stream {
	int fd;
	u32 cpu;
	u32 mode;
	struct perf_event_mmap_page *page;
	const unsigned char *data;	/* records, or packets */
	u64 size;		/* bytes of data, a power of two */
	size_t mapped;		/* bytes mapped at page */
	u64 position;		/* data before this position were read */
};

/* Returns false if there is no such CPU. */
bool stream_open(struct stream *s, u32 cpu, u32 nr_pages, u32 mode);
void stream_stat(const struct stream *s, struct pmuk_sched_stat *stat);
/* Copies whole records or packets before position @end (NONE: all) to @to. Returns their size. */
size_t stream_read(struct stream *s, u64 end, unsigned char *to);
void stream_close(struct stream *s);

#endif
