/* SPDX-License-Identifier: GPL-2.0 */
/* Packets of PMUK_SCHED_RAW: their encoding and their largest size. */
#ifndef _KERNEL_SCHED_PMUK_STATS_RAW_H
#define _KERNEL_SCHED_PMUK_STATS_RAW_H

#include <linux/compiler.h>
#include <linux/types.h>
#include <linux/unaligned.h>
#include <uapi/linux/pmuk_sched.h>

#include "stats.h"

/* Largest sizes. A switch: first byte, a number of 32 bits, four of 64 bits; 7 bits to a byte. */
#define PMUK_SCHED_RAW_SWITCH_BYTES	(1 + 5 + 4 * 10)
#define PMUK_SCHED_RAW_MARK_BYTES	(1 + 8 + 4 + 8)

/* The most bytes that a switch may write: a mark and a packet. */
#define PMUK_SCHED_RAW_MAX	(PMUK_SCHED_RAW_MARK_BYTES + PMUK_SCHED_RAW_SWITCH_BYTES)

/* The pmuk_sched_raw_put_*() functions return the address after the bytes that they write. */
static __always_inline u8 *pmuk_sched_raw_put_number(u8 *to, u64 number)
{
	for (; number >= 0x80; number >>= 7)
		*to++ = number | 0x80;
	*to++ = number;
	return to;
}

static inline u8 *pmuk_sched_raw_put_switch(u8 *to, const struct pmuk_sched_slice *s)
{
	*to++ = s->misc;
	to = pmuk_sched_raw_put_number(to, s->next_pid);
	to = pmuk_sched_raw_put_number(to, s->run);
	to = pmuk_sched_raw_put_number(to, s->wait);
	to = pmuk_sched_raw_put_number(to, s->counts[0]);
	return pmuk_sched_raw_put_number(to, s->counts[1]);
}

/* A mark has the begin of slice @s, and the @number of switches before the switch that follows. */
static inline u8 *pmuk_sched_raw_put_mark(u8 *to, const struct pmuk_sched_slice *s, u64 number)
{
	*to = PMUK_SCHED_RAW_MARK;
	put_unaligned_le64(s->time - s->run, to + 1);
	put_unaligned_le32(s->prev_pid, to + 9);
	put_unaligned_le64(number, to + 13);
	return to + PMUK_SCHED_RAW_MARK_BYTES;
}

#endif /* _KERNEL_SCHED_PMUK_STATS_RAW_H */
