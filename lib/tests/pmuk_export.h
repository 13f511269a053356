/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The selftests in tools/testing/selftests/pmu_kapi/ use the ioctls of /dev/pmuk_export. These are
 * for tests, and no ABI.
 */
#ifndef _PMUK_EXPORT_H
#define _PMUK_EXPORT_H

#include <linux/ioctl.h>
#include <linux/perf_event.h>
#include <linux/types.h>

/**
 * enum pmuk_export_event - what the counter of a buffer counts
 * @PMUK_EXPORT_NOTHING: no counter
 * @PMUK_EXPORT_CLOCK: nanoseconds
 * @PMUK_EXPORT_CYCLES: the CPU's cycles
 */
enum pmuk_export_event {
	PMUK_EXPORT_NOTHING,
	PMUK_EXPORT_CLOCK,
	PMUK_EXPORT_CYCLES,
};

/**
 * enum pmuk_export_context - the context that writes records
 * @PMUK_EXPORT_TASK: a task
 * @PMUK_EXPORT_IRQ: an interrupt, which may come while a task writes
 * @PMUK_EXPORT_CONTEXTS: number of contexts
 */
enum pmuk_export_context {
	PMUK_EXPORT_TASK,
	PMUK_EXPORT_IRQ,
	PMUK_EXPORT_CONTEXTS,
};

/**
 * struct pmuk_export_attr - a buffer, and its counter
 * @nr_pages: see struct pmuk_buffer_attr
 * @mode: see struct pmuk_buffer_attr
 * @watermark: see struct pmuk_buffer_attr
 * @wakeup_events: see struct pmuk_buffer_attr
 * @flags: see struct pmuk_buffer_attr
 * @cpu: the CPU that writes the buffer, or -1
 * @event: enum pmuk_export_event, counted on @cpu
 * @aux_pages: see &pmuk_aux_attr.nr_pages
 * @period: see struct pmuk_attr
 * @aux_watermark: see &pmuk_aux_attr.watermark
 * @aux_overwrite: see &pmuk_aux_attr.overwrite; 0 or 1
 */
struct pmuk_export_attr {
	__u32 nr_pages;
	__u32 mode;
	__u32 watermark;
	__u32 wakeup_events;
	__u32 flags;
	__s32 cpu;
	__u32 event;
	__u32 aux_pages;
	__u64 period;
	__u32 aux_watermark;
	__u32 aux_overwrite;
};

/**
 * struct pmuk_export_write - records to be written
 * @nr: number of records
 * @size: bytes of each, see struct pmuk_export_record
 * @context: enum pmuk_export_context
 * @pad: 0
 */
struct pmuk_export_write {
	__u32 nr;
	__u32 size;
	__u32 context;
	__u32 pad;
};

/**
 * struct pmuk_export_record - a record as it is in the buffer
 * @header: of type PMUK_EXPORT_RECORD
 * @context: enum pmuk_export_context that wrote the record
 * @pad: 0
 * @seq: number of records that @context has tried to write into this buffer before
 * @fill: pmuk_export_fill() of @seq and of the index, up to the end of the record
 */
struct pmuk_export_record {
	struct perf_event_header header;
	__u32 context;
	__u32 pad;
	__u64 seq;
	__u64 fill[];
};

#define PMUK_EXPORT_RECORD	1000

static inline __u64 pmuk_export_fill(__u64 seq, __u64 i)
{
	return (seq + 1) * 0x9e3779b97f4a7c15ULL + i;
}

/**
 * struct pmuk_export_stat - some members of struct pmuk_buffer_stat
 * @lost: see struct pmuk_buffer_stat
 * @discarded: see struct pmuk_buffer_stat
 * @wakeups: see struct pmuk_buffer_stat
 * @head: see struct pmuk_buffer_stat
 */
struct pmuk_export_stat {
	__u64 lost;
	__u64 discarded;
	__u64 wakeups;
	__u64 head;
};

/**
 * struct pmuk_export_value - some members of struct pmuk_value
 * @count: see struct pmuk_value
 * @time_enabled: see struct pmuk_value
 * @time_running: see struct pmuk_value
 */
struct pmuk_export_value {
	__u64 count;
	__u64 time_enabled;
	__u64 time_running;
};

/**
 * struct pmuk_export_aux - bytes to be written to the AUX area
 * @bytes: number of bytes, a multiple of 8. Bytes without room are lost
 * @piece: bytes of each part, a multiple of 8
 * @written: set to the number of bytes that had room
 *
 * The 8 bytes at position p of the stream are pmuk_export_fill(p, 0).
 */
struct pmuk_export_aux {
	__u64 bytes;
	__u64 piece;
	__u64 written;
};

/**
 * struct pmuk_export_aux_stat - some members of struct pmuk_aux_stat
 * @head: see struct pmuk_aux_stat
 * @truncated: see struct pmuk_aux_stat
 * @full: see struct pmuk_aux_stat
 * @wakeups: see struct pmuk_aux_stat
 */
struct pmuk_export_aux_stat {
	__u64 head;
	__u64 truncated;
	__u64 full;
	__u64 wakeups;
};

/* Creates the file's buffer, and enables its counter. Possible once for each file. */
#define PMUK_EXPORT_CREATE	_IOW('p', 0xe0, struct pmuk_export_attr)
/*
 * A task on the buffer's CPU writes records; on another CPU the call returns -EXDEV. Returns how
 * many records had room.
 */
#define PMUK_EXPORT_WRITE	_IOW('p', 0xe1, struct pmuk_export_write)
#define PMUK_EXPORT_STAT	_IOR('p', 0xe2, struct pmuk_export_stat)
/* Reads the counter. PMUK_EXPORT_DISABLE publishes its final value. */
#define PMUK_EXPORT_READ	_IOR('p', 0xe3, struct pmuk_export_value)
#define PMUK_EXPORT_DISABLE	_IO('p', 0xe4)
/* Destroys the buffer, but not its counter. Returns -EBUSY if the buffer was ever polled. */
#define PMUK_EXPORT_DESTROY	_IO('p', 0xe5)
/* Returns the number of buffers of the whole machine. */
#define PMUK_EXPORT_NR_BUFFERS	_IO('p', 0xe6)
/* A task on the buffer's CPU writes bytes; on another CPU the call returns -EXDEV. */
#define PMUK_EXPORT_AUX_WRITE	_IOWR('p', 0xe7, struct pmuk_export_aux)
#define PMUK_EXPORT_AUX_STAT	_IOR('p', 0xe8, struct pmuk_export_aux_stat)

#endif /* _PMUK_EXPORT_H */
