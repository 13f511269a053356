/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What user space reads from /dev/pmuk_sched: each switch of a CPU from one task to the next, in
 * a ring that is mapped as perf's are, see perf_event_open(2).
 */
#ifndef _UAPI_LINUX_PMUK_SCHED_H
#define _UAPI_LINUX_PMUK_SCHED_H

#include <linux/ioctl.h>
#include <linux/perf_event.h>
#include <linux/types.h>

/* perf_event_header::type of struct pmuk_sched_switch, above all that perf has */
#define PMUK_SCHED_RECORD_SWITCH	0x70730001

/* perf_event_header::misc: why the previous task has left the CPU */
#define PMUK_SCHED_VOLUNTARY		0	/* it waits for something, or has ended */
#define PMUK_SCHED_SAME			1	/* preempted by a task of the same cgroup */
#define PMUK_SCHED_OTHER		2	/* preempted by a task of another cgroup */
#define PMUK_SCHED_THROTTLED		3	/* its cgroup, or itself, has used up its quota */
#define PMUK_SCHED_YIELDED		4	/* it has given way, by sched_yield(2) */
#define PMUK_SCHED_STOPPED		5	/* the kernel needs the CPU for itself */
#define PMUK_SCHED_MIGRATED		6	/* it may not run on this CPU any more */
#define PMUK_SCHED_CLASS_MASK		7
#define PMUK_SCHED_INVALID		8	/* counts are not complete */

/**
 * struct pmuk_sched_switch - a CPU went from one task to the next
 * @header: type PMUK_SCHED_RECORD_SWITCH, the size of this, and PMUK_SCHED_* in misc
 * @time: ns on the CPU's task clock; differences are run slices
 * @prev_pid: of the task that has left, 0 if that is the idle task
 * @next_pid: of the task that follows, 0 if that is the idle task
 * @run: ns of the slice of @prev_pid that ends here; U32_MAX stands for more, too
 * @wait: ns that @prev_pid was ready before that slice, saturated likewise
 * @counts: of the first two events in that slice, of @prev_pid alone
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

/* pmuk_sched_stream::mode: what becomes of a switch for which there is no room */
#define PMUK_SCHED_DROP		0	/* lost; a PERF_RECORD_LOST tells how many */
#define PMUK_SCHED_OVERWRITE	1	/* takes the place of the oldest */
#define PMUK_SCHED_RAW		2	/* lost; and switches are packets, see below */

/*
 * With PMUK_SCHED_RAW, switches are packets of some 10 to 16 bytes in an AUX area, which is mapped
 * at aux_offset, of aux_size bytes; whoever reads them gives them back by aux_tail. The ring has
 * one page, for the PERF_RECORD_AUX that tell of them; who does without these sets data_tail to
 * data_head.
 *
 * Packets are whole, and in a row from the beginning of the stream on. The first byte of each is
 *
 *	PMUK_SCHED_RAW_MARK	a mark, which says where the next switch begins. Little-endian:
 *		u64	time, as in struct pmuk_sched_switch, when its slice has begun
 *		u32	pid of who runs in it
 *		u64	its number: so many switches there were before, since the stream began
 *	anything less		a switch: what struct pmuk_sched_switch has in misc. Each as LEB128,
 *				7 bits to a byte, the lowest first, bit 7 in all but the last one:
 *		next_pid, run, wait, counts[0], counts[1]
 *
 * A switch follows from the packet before: its prev_pid is the next_pid there, or the mark's pid,
 * and its time is the time there, plus run. run and wait have 64 bits, and are never saturated. The
 * first packet is a mark. So is one wherever what comes would not follow, as after lost switches:
 * its number tells how many they were. And there is one each 4 KiB, at least.
 *
 * Packets can be read in parts of up to 4 KiB, or when PMUK_SCHED_FLUSH asks for them.
 */
#define PMUK_SCHED_RAW_MARK		16

/**
 * struct pmuk_sched_stream - which switches a file is to have
 * @cpu: of this CPU
 * @nr_pages: data pages of the ring, a power of two, up to 64 MiB; what is mapped is one page
 *	more. With PMUK_SCHED_RAW these are pages of the AUX area
 * @mode: PMUK_SCHED_DROP, PMUK_SCHED_OVERWRITE or PMUK_SCHED_RAW
 * @watermark: bytes after which poll(2) returns; 0: the kernel's choice. With PMUK_SCHED_RAW it
 *	returns where a part ends, at each half of the area at the latest
 */
struct pmuk_sched_stream {
	__u32 cpu;
	__u32 nr_pages;
	__u32 mode;
	__u32 watermark;
};

/**
 * struct pmuk_sched_stat - what became of a CPU's switches, all taken at one moment
 * @lost: for which there was no room, or while nothing was mapped
 * @discarded: refused while the ring was frozen
 * @head: bytes written until then, as data_head; with PMUK_SCHED_RAW as aux_head
 * @switches: of that CPU since the stream began: records, or packets, up to @head, plus @lost,
 *	plus @discarded. (With PMUK_SCHED_OVERWRITE not all of these records are still there.)
 */
struct pmuk_sched_stat {
	__u64 lost;
	__u64 discarded;
	__u64 head;
	__u64 switches;
};

/*
 * Once for each file. EBUSY: another file has that CPU; EINVAL; ENODEV: there is no such CPU;
 * ENOBUFS: all streams would have more memory than the module's stream_mb allows. poll(2) may wait
 * for a file before this.
 */
#define PMUK_SCHED_STREAM	_IOW('p', 0xc0, struct pmuk_sched_stream)
#define PMUK_SCHED_STAT		_IOR('p', 0xc1, struct pmuk_sched_stat)
/*
 * Freezes the ring, to read what PMUK_SCHED_OVERWRITE has left in it; and lets it go on. EINVAL:
 * with PMUK_SCHED_RAW there is nothing to freeze.
 */
#define PMUK_SCHED_PAUSE	_IO('p', 0xc2)
#define PMUK_SCHED_RESUME	_IO('p', 0xc3)
/* All packets until now can be read, as they can after PMUK_SCHED_STAT. Records always can. */
#define PMUK_SCHED_FLUSH	_IO('p', 0xc4)

#endif /* _UAPI_LINUX_PMUK_SCHED_H */
