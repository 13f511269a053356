/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The file of pmuk record, in the format of perf.data, see perfdata.h. Each switch of a CPU is a
 * sample of the task that has left the CPU. The sample has PERF_SAMPLE_READ with sums of its CPU,
 * from which perf makes samples of several events:
 *
 *	run	ns that the task ran, also in PERF_SAMPLE_PERIOD
 *	wait	ns that it was runnable before that, and waited
 *	idle	ns that the CPU was idle: only the idle task has these, in place of run
 *	EVENT	one or two events that the module counts
 *
 * PERF_SAMPLE_RAW is a struct recording_raw. Records PERF_RECORD_LOST say how many switches were
 * lost. Names of tasks come in PERF_RECORD_COMM and PERF_RECORD_FORK, those of perf's own.
 */
#ifndef PMUK_RECORDING_H
#define PMUK_RECORDING_H

#include <assert.h>
#include <limits.h>
#include <linux/ioctl.h>
#include <linux/pmuk_sched.h>

#include "perfdata.h"

#define RECORDING_ID_TYPE \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)
#define RECORDING_SAMPLE_TYPE \
	(RECORDING_ID_TYPE | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ | PERF_SAMPLE_RAW)
#define RECORDING_READ_FORMAT	(PERF_FORMAT_GROUP | PERF_FORMAT_ID)
#define RECORDING_ID		0x706d756b00000000ULL	/* perf core's ids are lower */
#define RECORDING_COUNTS	2		/* counts in a record of the module */

enum recording_sum {
	SUM_RUN, SUM_WAIT, SUM_IDLE, SUM_COUNTS,
	NR_SUMS = SUM_COUNTS + RECORDING_COUNTS
};

/* The id of an event on a CPU. */
static inline u64 recording_id(u32 cpu, unsigned int sum)
{
	return RECORDING_ID + (u64)cpu * NR_SUMS + sum;
}

/* A sample up to its sums; then come the struct recording_raw and nothing else. */
struct recording_sample {
	struct perf_event_header header;
	u64 id;			/* recording_id() of SUM_RUN */
	u32 pid, tid;
	u64 time;		/* see pmuk_sched_switch.time */
	u32 cpu, zero;
	u64 period;
	u64 nr;
	struct { u64 value, id; } sums[];
};

struct recording_raw {
	u32 size;		/* bytes that follow */
	u32 next_tid;		/* the task that followed on the CPU */
	u32 misc;		/* PMUK_SCHED_*: why the task has left */
	u32 zero;
};

/* The feature PERFDATA_ACCOUNT: what the module says of each CPU's stream. */
struct recording_account {
	u32 version;		/* RECORDING_VERSION */
	u32 mode;		/* PMUK_SCHED_DROP, _OVERWRITE or _RAW */
	u64 begun, ended;	/* ns of CLOCK_MONOTONIC */
	u32 nr_cpus;
	u32 zero;
	struct recording_cpu {
		u32 cpu;
		u32 zero;
		struct pmuk_sched_stat stat;
	} cpus[];
};

#define RECORDING_VERSION	3

static_assert(sizeof(struct recording_sample) == 56, "an ABI");
static_assert(sizeof(struct recording_account) == 32, "an ABI");
static_assert(sizeof(struct recording_cpu) == 40, "an ABI");
static_assert(sizeof(struct pmuk_sched_switch) == 48, "an ABI");
static_assert(sizeof(struct pmuk_sched_stream) == 16, "an ABI");

#define RECORDING_FILE		"pmuk.data"	/* the default name */
#define TASK_NAME		80	/* more than the longest name, a kernel thread's, and a 0 */

/* ---- raw.c: packets ---- */

/* A slice of a task on a CPU, read from a record, a packet or a sample. */
struct slice {
	u32 pid;		/* the task */
	u32 next;		/* the task that follows */
	u32 misc;		/* PMUK_SCHED_* */
	u64 time;		/* when it ended */
	u64 run, wait;
	u64 counts[RECORDING_COUNTS];
};

/* The state after a CPU's packets so far; zero before the first packet. */
struct raw {
	bool marked;		/* a mark has been read */
	u32 pid;		/* the running task */
	u64 time;		/* when the running slice began */
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

/* Maps the ring of @s->fd. @what: names the ring in messages */
void stream_map(struct stream *s, u32 nr_pages, const char *what);
/* Returns false if there is no such CPU. */
bool stream_open(struct stream *s, u32 cpu, u32 nr_pages, u32 mode);
void stream_stat(const struct stream *s, struct pmuk_sched_stat *stat);
/* Copies whole records or packets before position @end (NONE: all) to @to. Returns their size. */
size_t stream_read(struct stream *s, u64 end, unsigned char *to);
void stream_close(struct stream *s);

/* ---- track.c: perf's dummy event, which tells of tasks ---- */

#define TRACK_PAGES	64

struct track {
	struct perfdata *file;
	size_t event;
	bool code;		/* also tells of code, where samples have addresses */
	struct map processes;	/* from a thread to its process */
	struct stream *streams;	/* a ring for each CPU that was online at the beginning */
	size_t nr, room;
	unsigned char *buffer;	/* as large as a ring */
};

struct build_id {
	unsigned char size, zeros[3], bytes[20];
};

/* The body of PERF_RECORD_MMAP2. Zeros follow the path. */
struct mapping {
	u32 pid, tid;
	u64 start, size, offset;
	union {
		struct {
			u32 major, minor;
			u64 inode, generation;
		};
		struct build_id id;
	};
	u32 prot, flags;
	char path[PATH_MAX];
};

static_assert(offsetof(struct mapping, path) == 64, "an ABI");

void track_begin(struct track *t, struct perfdata *file, bool code);
/* Returns false if the CPU is not online. */
bool track_open(struct track *t, u32 cpu);
struct perfdata_id track_id(const struct track *t, u32 cpu);
void track_belongs(struct track *t, u32 tid, u32 pid);
/*
 * Puts a record that pmuk makes. @text: the record's last field in @body, after @size bytes, where
 * up to 8 zeros follow the text
 */
void track_put(struct track *t, u32 type, u32 misc, const void *body, size_t size,
	       const char *text);
/* @has_id: the mapping has a build id */
void track_map(struct track *t, u32 misc, const struct mapping *m, bool has_id);
/* Puts the records of all CPUs, and remembers the processes of new threads. */
void track_drain(struct track *t);
/*
 * Returns the process of a thread. A new thread may have left its CPU before that CPU's ring was
 * read, but after track_drain(): so an unknown thread makes this function call track_drain() again.
 */
u32 track_process(struct track *t, u32 tid);
/*
 * Warns if CPUs are online that were offline when the recording began, or later. @all: not only
 * those with track_open()
 */
void track_check_cpus(const struct track *t, bool all);
/* Warns if records were lost. */
void track_end(struct track *t);

/* ---- present.c: tasks and code that there are at the beginning ---- */

/* A struct procmap_query of linux/fs.h, which headers have from 6.11 on. */
struct map_query {
	u64 all;		/* the size of this struct */
	u64 flags;
	u64 address;		/* in the mapping */
	u64 start, end, rights, page_size, offset, inode;
	u32 major, minor, name_size;
	u32 id_size;		/* room for the build id, and then its size; 0: none */
	u64 name, id;		/* addresses */
};

static_assert(sizeof(struct map_query) == 104, "an ABI");

#define MAP_QUERY	_IOWR('f', 17, struct map_query)

/* Puts their names, and their code if wanted. Call it when track_open() was called for all CPUs. */
void put_present(struct track *t);

/* ---- code.c: the kernel's code that there is at the beginning ---- */

/* Puts where the kernel lies and, if wanted, its modules and BPF programs. */
void put_kernel(struct track *t);

/* ---- buffers.c: what kernel code exports by name ---- */

struct buffers {
	struct perfdata *file;
	const struct track *track;
	const char *name;
	size_t first, nr;	/* the events of the buffers among those of the file */
	struct map ids;		/* the keys are the ids of the events */
};

/* A CPU's buffer so far. */
struct buffer {
	u64 samples;
	u64 unknown;		/* samples of events that the file does not describe */
	u64 lost;		/* records, since the recording began */
	u64 lost_ever;		/* records, since the buffer was made */
};

/*
 * Opens the CPU's buffer, and adds its events to the file. Returns false if there is no buffer of
 * that CPU.
 */
bool buffer_open(struct buffers *b, struct stream *s, u32 cpu, u32 nr_pages);
/* Skips records and losses up to now. Call it when the buffers of all CPUs are open. */
void buffer_begin(const struct buffers *b, struct buffer *c, struct stream *s);
void buffer_records(const struct buffers *b, struct buffer *c, u32 cpu,
		    const unsigned char *data, size_t size);
/* Puts a record of what was lost since the last call. */
void buffer_lost(const struct buffers *b, struct buffer *c, const struct stream *s);

/* ---- switches.c: makes samples of switches ---- */

struct switches {
	struct perfdata *file;
	struct track *track;
	unsigned int nr_sums;	/* 3, and the number of counted events */
};

/* A CPU's switches so far. */
struct cpu_switches {
	u32 cpu;
	u64 lost;		/* switches that records in the file report as lost */
	u64 sums[NR_SUMS];
	struct raw raw;
};

/* Returns perf's name of an event, or its numbers; valid until the next call. */
const char *event_name(u32 type, u64 config);
/* Defines the events. @events: the names of those that the module counts */
void switches_begin(struct switches *s, struct perfdata *file, struct track *track,
		    const struct reading *events);
void switches_add_cpu(const struct switches *s, u32 cpu);
void switches_records(const struct switches *s, struct cpu_switches *c,
		      const unsigned char *data, size_t size);
void switches_packets(const struct switches *s, struct cpu_switches *c,
		      const unsigned char *data, size_t size);
/* Puts a record of all losses that no record has reported, up to @lost since the beginning. */
void switches_lost(const struct switches *s, struct cpu_switches *c, u64 lost);

#endif
