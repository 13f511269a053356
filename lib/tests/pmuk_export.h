/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ioctls of /dev/pmuk_export, for tools/testing/selftests/pmu_kapi/. They are for tests: no
 * ABI.
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
 * enum pmuk_export_context - who writes records
 * @PMUK_EXPORT_TASK: a task
 * @PMUK_EXPORT_IRQ: an interrupt, which may come while a task writes
 * @PMUK_EXPORT_CONTEXTS: how many there are
 */
enum pmuk_export_context {
	PMUK_EXPORT_TASK,
	PMUK_EXPORT_IRQ,
	PMUK_EXPORT_CONTEXTS,
};

/**
 * struct pmuk_export_attr - a buffer, and its counter
 * @nr_pages: as in struct pmuk_buffer_attr, as are the next four
 * @mode: see there
 * @watermark: see there
 * @wakeup_events: see there
 * @flags: see there
 * @cpu: which CPU writes it, or -1
 * @event: enum pmuk_export_event, on that CPU
 * @aux_pages: as in struct pmuk_aux_attr, as are the last two
 * @period: as in struct pmuk_attr
 * @aux_watermark: see struct pmuk_aux_attr
 * @aux_overwrite: the same; 0 or 1
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
 * @nr: how many
 * @size: how large, see struct pmuk_export_record
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
 * struct pmuk_export_record - what is written
 * @header: of type PMUK_EXPORT_RECORD
 * @context: who wrote it
 * @pad: 0
 * @seq: how many records @context tried to write into this buffer before this one
 * @fill: up to the end: pmuk_export_fill() of @seq and of the index
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
 * struct pmuk_export_stat - struct pmuk_buffer_stat, as far as it is of interest
 * @lost: see there
 * @discarded: see there
 * @wakeups: see there
 * @head: see there
 */
struct pmuk_export_stat {
	__u64 lost;
	__u64 discarded;
	__u64 wakeups;
	__u64 head;
};

/**
 * struct pmuk_export_value - struct pmuk_value
 * @count: see there
 * @time_enabled: see there
 * @time_running: see there
 */
struct pmuk_export_value {
	__u64 count;
	__u64 time_enabled;
	__u64 time_running;
};

/**
 * struct pmuk_export_aux - bytes to be written to the AUX area
 * @bytes: how many, a multiple of 8. What has no room is lost
 * @piece: how many at a time, the same
 * @written: set to how many there was room for
 *
 * The 8 bytes at position p of the stream are pmuk_export_fill(p, 0).
 */
struct pmuk_export_aux {
	__u64 bytes;
	__u64 piece;
	__u64 written;
};

/**
 * struct pmuk_export_aux_stat - struct pmuk_aux_stat, as far as it is of interest
 * @head: see there
 * @truncated: see there
 * @full: see there
 * @wakeups: see there
 */
struct pmuk_export_aux_stat {
	__u64 head;
	__u64 truncated;
	__u64 full;
	__u64 wakeups;
};

/* Once for each file: create its buffer, and enable its counter. */
#define PMUK_EXPORT_CREATE	_IOW('p', 0xe0, struct pmuk_export_attr)
/*
 * A task on the buffer's CPU writes records; on another CPU, -EXDEV. Returns how many records had
 * room.
 */
#define PMUK_EXPORT_WRITE	_IOW('p', 0xe1, struct pmuk_export_write)
#define PMUK_EXPORT_STAT	_IOR('p', 0xe2, struct pmuk_export_stat)
/* Read the counter. Disabling it publishes its final value. */
#define PMUK_EXPORT_READ	_IOR('p', 0xe3, struct pmuk_export_value)
#define PMUK_EXPORT_DISABLE	_IO('p', 0xe4)
/* End the buffer, not its counter; -EBUSY if it was ever polled. */
#define PMUK_EXPORT_DESTROY	_IO('p', 0xe5)
/* The number of buffers of the whole machine. */
#define PMUK_EXPORT_NR_BUFFERS	_IO('p', 0xe6)
/* By a task on the buffer's CPU, or -EXDEV. */
#define PMUK_EXPORT_AUX_WRITE	_IOWR('p', 0xe7, struct pmuk_export_aux)
#define PMUK_EXPORT_AUX_STAT	_IOR('p', 0xe8, struct pmuk_export_aux_stat)

#endif /* _PMUK_EXPORT_H */
