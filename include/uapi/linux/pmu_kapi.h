/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/pmuk: records of the kernel's performance counters.
 *
 * Kernel code counts in contexts, each of which has a buffer for the records of each CPU. A context
 * whose owner exports it lets user space read these buffers, by the context's name. Opening the
 * device needs CAP_PERFMON, as records may hold addresses of the kernel.
 *
 * A file reads one buffer: the steps are open(2), PMUK_BUFFER_OPEN, mmap(2), poll(2). The map is
 * that of perf_event_open(2): a control page, then 2^n data pages with perf's records. The reader
 * gives records back by data_tail. Records that are below the watermark wake nobody. The first map
 * decides how many data pages there are. If the kernel code has asked for as many, the map has the
 * records from before the map, too; with another number, the ring begins empty. The last munmap(2)
 * frees the data pages with their records, and the kernel discards new ones until the next map.
 *
 * poll(2) returns POLLIN once after each wakeup of the buffer. If records were lost that no
 * PERF_RECORD_LOST reports yet, each poll(2) returns POLLIN until the reader has given back all
 * records. poll(2) returns POLLHUP when the context has been closed: then no record is added any
 * more. The map stays readable, so records below the watermark can be read then. Before
 * PMUK_BUFFER_OPEN, poll(2) returns POLLERR, and mmap(2) fails with ENODEV. The buffer wakes no
 * epoll(7) to which the file was added before that call, so add the file after it.
 */
#ifndef _UAPI_LINUX_PMU_KAPI_H
#define _UAPI_LINUX_PMU_KAPI_H

#include <linux/ioctl.h>
#include <linux/perf_event.h>
#include <linux/types.h>

/* Bytes of a context's name, with the 0 at its end. */
#define PMUK_DEV_NAME_LEN	32

/* Bytes for a struct perf_event_attr, which later kernels may make longer. */
#define PMUK_DEV_ATTR_LEN	256

/**
 * struct pmuk_dev_buffer - argument of PMUK_BUFFER_OPEN
 * @name: name of the context, with a 0 at its end. Exported contexts have different names
 * @cpu: the CPU whose records the file is to have
 * @flags: 0
 */
struct pmuk_dev_buffer {
	char name[PMUK_DEV_NAME_LEN];
	__u32 cpu;
	__u32 flags;
};

/**
 * struct pmuk_dev_event - argument of PMUK_BUFFER_EVENT
 * @index: set by the caller: which of the counters whose ids records of the buffer may have, from 0
 *	on. These are the counters with a period, and if records hold the values of whole groups,
 *	all counters
 * @set: the counter's event set; sets count one after the other
 * @num: the counter's number in that set
 * @pad: 0 after the call. The call reads @index only
 * @id: the counter's id, in PERF_SAMPLE_IDENTIFIER and wherever else records have an id. The
 *	ids of all contexts, sets, counters and CPUs differ, also from those of
 *	perf_event_open(2), unless 2^29 contexts are created while one exists. An id does not
 *	change as long as the context exists, not when the context stops or is loaded anew, and not
 *	when the CPU goes offline. The counters of a task have one id on all CPUs; an owner that
 *	moves its context between a task and CPUs changes the ids. An owner may define a counter
 *	anew while the context is not loaded: the id stays, the call describes the new counter, and
 *	records from before the change are of the old one
 * @attr: what the counter counts, and the layout of its records, for perf.data. The field size says
 *	how many bytes the kernel knows; the bytes behind these are 0. sample_type is that of
 *	the records. If the owner adds a field of its own, it is the last 8 bytes of a record, and
 *	sample_type does not have it. sample_period is the period that the owner has asked for, or 0
 *	for none; with freq, sample_freq is the frequency. precise_ip is likewise what the owner has
 *	asked for, and the PMU may be less precise. sample_id_all is 0, as PERF_RECORD_LOST and all
 *	others but samples have no such fields
 * @attr_space: the bytes of @attr and those behind it
 */
struct pmuk_dev_event {
	__u32 index;
	__u32 set;
	__u32 num;
	__u32 pad;
	__aligned_u64 id;
	union {
		struct perf_event_attr attr;
		__aligned_u64 attr_space[PMUK_DEV_ATTR_LEN / 8];
	};
};

/**
 * struct pmuk_dev_stat - argument of PMUK_BUFFER_STAT
 * @lost: records for which there was no room since the buffer was made, with and without a reader.
 *	PERF_RECORD_LOST reports the same losses, but only when the next record is written
 * @discarded: records that the buffer has refused since it was made, as while nobody maps the
 *	buffer after the last munmap(2), or because a record was too long
 * @head: bytes written since the data pages were made, as in data_head. A map that replaces these
 *	pages begins at 0 again
 */
struct pmuk_dev_stat {
	__aligned_u64 lost;
	__aligned_u64 discarded;
	__aligned_u64 head;
};

/*
 * Gives the file its buffer, once for each file; the file has it until its release. ENOENT: no
 * context that is exported has that name. ENODEV: the context has no buffer for that CPU, or none
 * before it is loaded. EBUSY: the file has a buffer, or another file has this one. EINVAL: flags,
 * or a name without an end.
 */
#define PMUK_BUFFER_OPEN	_IOW('p', 0xd0, struct pmuk_dev_buffer)
/*
 * Describes a counter. ENOENT: there are not so many. ENODEV: the file has no buffer, or the
 * context has been closed. EINTR: a signal came while the context was busy.
 */
#define PMUK_BUFFER_EVENT	_IOWR('p', 0xd1, struct pmuk_dev_event)
/* Says what has become of the records. ENODEV: the file has no buffer. */
#define PMUK_BUFFER_STAT	_IOR('p', 0xd2, struct pmuk_dev_stat)

#endif /* _UAPI_LINUX_PMU_KAPI_H */
