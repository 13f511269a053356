/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/pmuk_sched gives user space a record of each switch of a CPU from one task to the next. The
 * ring of these records is mapped like a ring of perf, see perf_event_open(2).
 */
#ifndef _UAPI_LINUX_PMUK_SCHED_H
#define _UAPI_LINUX_PMUK_SCHED_H

#include <linux/ioctl.h>
#include <linux/perf_event.h>
#include <linux/types.h>

/* perf_event_header::type of struct pmuk_sched_switch, above all types of perf */
#define PMUK_SCHED_RECORD_SWITCH	0x70730001

/* perf_event_header::misc: the reason why the previous task has left the CPU */
#define PMUK_SCHED_VOLUNTARY		0	/* waits for something, or has exited */
#define PMUK_SCHED_SAME			1	/* preempted by a task of the same cgroup */
#define PMUK_SCHED_OTHER		2	/* preempted by a task of another cgroup */
#define PMUK_SCHED_THROTTLED		3	/* has used up its own or its cgroup's quota */
#define PMUK_SCHED_YIELDED		4	/* has called sched_yield(2) */
#define PMUK_SCHED_STOPPED		5	/* kernel needs the CPU, as for stop_machine() */
#define PMUK_SCHED_MIGRATED		6	/* must leave this CPU, by its affinity */
#define PMUK_SCHED_CLASS_MASK		7
#define PMUK_SCHED_INVALID		8	/* a flag: @counts are not complete */

/**
 * struct pmuk_sched_switch - record of a switch from one task to the next
 * @header: type is PMUK_SCHED_RECORD_SWITCH, misc has a reason and perhaps PMUK_SCHED_INVALID
 * @time: end of the slice of @prev_pid, in ns on the CPU's clock: interrupts are included, but no
 *	steal time since boot. So in a guest from which a hypervisor takes time, the times of two
 *	CPUs cannot be compared, nor a time with that of perf's records, which include steal time
 * @prev_pid: pid of the task that has left, 0 for the idle task
 * @next_pid: pid of the task that follows, 0 for the idle task
 * @run: length of that slice, in ns; U32_MAX also stands for anything longer
 * @wait: ns that @prev_pid waited, runnable, before that slice; saturated like @run
 * @counts: counts of the first two events in that slice
 */
struct pmuk_sched_switch {
	struct perf_event_header header;
	__u64 time;
	__u32 prev_pid;
	__u32 next_pid;
	__u32 run;
	__u32 wait;
	__u64 counts[2];
};

/* pmuk_sched_stream::mode: the fate of a switch for which there is no room */
#define PMUK_SCHED_DROP		0	/* lost; a PERF_RECORD_LOST has the number */
#define PMUK_SCHED_OVERWRITE	1	/* overwrites the oldest record */
#define PMUK_SCHED_RAW		2	/* lost; switches are packets, see below */

/*
 * With PMUK_SCHED_RAW, switches are packets of some 10 to 16 bytes in an AUX area. The area has
 * aux_size bytes and is mapped at aux_offset; a reader releases packets by writing aux_tail. The
 * ring has a single page, for a PERF_RECORD_AUX of each part of the area. A reader that does not
 * need these records sets data_tail to data_head.
 *
 * The area has whole packets only, without gaps from the beginning of the stream on. The first byte
 * of a packet tells its kind:
 *
 *	PMUK_SCHED_RAW_MARK	a mark: the state before the switch that follows. Little-endian:
 *		u64	begin of the slice that the next switch ends, see pmuk_sched_switch.time
 *		u32	pid of the task that runs in that slice
 *		u64	number of switches before that one, since the stream began
 *	anything less		a switch: the misc of struct pmuk_sched_switch. Then, each as LEB128
 *				(7 bits to a byte, lowest first; bit 7 is set in all bytes but the
 *				last): next_pid, run, wait, counts[0], counts[1]
 *
 * The other fields of a switch follow from the packet before: prev_pid is the next_pid of that
 * switch, or the pid of that mark; time is the time of that packet plus run. run and wait have 64
 * bits, and are never saturated. The first packet is a mark. There is another mark wherever the
 * next switch does not follow from the packet before, as after lost switches: the difference of its
 * number shows how many were lost. And there is at least one mark in each 4 KiB.
 *
 * Packets become readable in parts of up to 4 KiB, or when PMUK_SCHED_FLUSH is called.
 */
#define PMUK_SCHED_RAW_MARK		16

/**
 * struct pmuk_sched_stream - argument of PMUK_SCHED_STREAM
 * @cpu: the CPU whose switches the file is to have
 * @nr_pages: data pages of the ring, a power of two, up to 64 MiB; a map has one page more. With
 *	PMUK_SCHED_RAW, pages of the AUX area
 * @mode: PMUK_SCHED_DROP, PMUK_SCHED_OVERWRITE or PMUK_SCHED_RAW
 * @watermark: bytes after which poll(2) returns; 0: the kernel's choice. With PMUK_SCHED_RAW,
 *	poll(2) returns at the end of a part, at the latest after each half of the area
 */
struct pmuk_sched_stream {
	__u32 cpu;
	__u32 nr_pages;
	__u32 mode;
	__u32 watermark;
};

/**
 * struct pmuk_sched_stat - a CPU's switches since the stream began, all fields of the same moment
 * @lost: switches for which there was no room
 * @discarded: switches that the ring has refused: while it was frozen; with PMUK_SCHED_DROP also
 *	from the end of its last map to the next map, and while a map of another size replaced it
 * @head: bytes written so far, as in data_head; with PMUK_SCHED_RAW, as in aux_head
 * @switches: all switches: those in records or packets up to @head, plus @lost, plus @discarded.
 *	With PMUK_SCHED_OVERWRITE, newer records have overwritten some of the older ones. With
 *	PMUK_SCHED_DROP, a map of another size, or a map after the last one has ended, begins with
 *	an empty ring and a @head of 0: the records before it are in @switches only.
 */
struct pmuk_sched_stat {
	__u64 lost;
	__u64 discarded;
	__u64 head;
	__u64 switches;
};

/*
 * Starts the stream of a file, once for each file. EBUSY: the file has a stream, or another file
 * has that CPU; EINVAL: a wrong argument; ENODEV: there is no such CPU; ENOBUFS: all streams
 * together would have more memory than the module's parameter stream_mb allows; ENOMEM. Before this
 * call, a file may be given to poll(2), and the other calls and mmap(2) fail with ENODEV. open(2)
 * fails with EACCES without CAP_PERFMON.
 */
#define PMUK_SCHED_STREAM	_IOW('p', 0xc0, struct pmuk_sched_stream)
#define PMUK_SCHED_STAT		_IOR('p', 0xc1, struct pmuk_sched_stat)
/*
 * PAUSE freezes the ring, so that the records that PMUK_SCHED_OVERWRITE has left can be read.
 * RESUME lets the ring go on. EINVAL: an area of PMUK_SCHED_RAW cannot be frozen.
 */
#define PMUK_SCHED_PAUSE	_IO('p', 0xc2)
#define PMUK_SCHED_RESUME	_IO('p', 0xc3)
/*
 * Makes all packets until now readable, as PMUK_SCHED_STAT does, too. Records are readable at once.
 */
#define PMUK_SCHED_FLUSH	_IO('p', 0xc4)

#endif /* _UAPI_LINUX_PMUK_SCHED_H */
