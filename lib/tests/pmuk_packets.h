/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The trace is as hardware writes it, for tests. Each branch is a packet of 8 bytes, which follows
 * from the branch's number. At regular distances, and where packets are missing, there is a mark,
 * which a decoder can resynchronise at, and which has the number of the next branch. So a decoder
 * knows how many are missing.
 */
#ifndef _PMUK_PACKETS_H
#define _PMUK_PACKETS_H

#include <linux/types.h>

#define PMUK_PACKET_BRANCH	0x01		/* lowest byte of a branch's packet */
#define PMUK_PACKET_NUMBER	0x03		/* lowest byte of the packet after a mark */
#define PMUK_PACKET_MARK	0x8242018242018202ULL

/* A mark comes after so many branches. */
#define PMUK_PACKETS_SYNC	500

static inline __u64 pmuk_packet_branch(__u64 number)
{
	return (((number + 1) * 0x9e3779b97f4a7c15ULL) & ~0xffULL) | PMUK_PACKET_BRANCH;
}

/**
 * struct pmuk_packets_out - a writer of packets
 * @number: number of the next branch
 * @left: branches before the next mark; 0 in the beginning
 */
struct pmuk_packets_out {
	__u64 number;
	__u32 left;
};

/*
 * Writes up to @branches into @room bytes. Returns how many bytes they take, and in @branches the
 * number of those without room. A mark then comes before the next branch.
 */
static inline __u64 pmuk_packets_write(struct pmuk_packets_out *out, __u64 *to, __u64 room,
				       __u64 *branches)
{
	__u64 *end = to + room / sizeof(*to), *begin = to;

	for (; *branches; (*branches)--) {
		if (end - to < (out->left ? 1 : 3))
			break;
		if (!out->left) {
			*to++ = PMUK_PACKET_MARK;
			*to++ = out->number << 8 | PMUK_PACKET_NUMBER;
			out->left = PMUK_PACKETS_SYNC;
		}
		*to++ = pmuk_packet_branch(out->number++);
		out->left--;
	}
	if (*branches)
		out->left = 0;
	out->number += *branches;
	return (to - begin) * sizeof(*to);
}

/**
 * struct pmuk_packets_in - a decoder of packets
 * @number: number of the expected branch
 * @branches: branches that were found
 * @missing: branches that marks have shown to be missing
 * @marks: marks that were found
 * @bad: unexpected packets
 * @synced: a mark was found
 * @marked: the latest packet was a mark
 */
struct pmuk_packets_in {
	__u64 number;
	__u64 branches;
	__u64 missing;
	__u64 marks;
	__u64 bad;
	bool synced;
	bool marked;
};

static inline void pmuk_packets_mark(struct pmuk_packets_in *in, __u64 packet)
{
	__u64 number = packet >> 8;

	in->bad += (packet & 0xff) != PMUK_PACKET_NUMBER;
	if (in->synced && number < in->number)
		in->bad++;
	else if (in->synced)
		in->missing += number - in->number;
	in->number = number;
	in->synced = true;
	in->marked = false;
	in->marks++;
}

static inline void pmuk_packets_one(struct pmuk_packets_in *in, __u64 packet)
{
	if (in->marked) {
		pmuk_packets_mark(in, packet);
	} else if (packet == PMUK_PACKET_MARK) {
		in->marked = true;
	} else if (in->synced) {
		in->bad += packet != pmuk_packet_branch(in->number);
		in->number++;
		in->branches++;
	}
}

/* Skips bytes before the first mark, because they may begin in the middle of a trace. */
static inline void pmuk_packets_read(struct pmuk_packets_in *in, const void *from, __u64 bytes)
{
	const __u64 *packet = from;
	__u64 i;

	for (i = 0; i < bytes / sizeof(*packet); i++)
		pmuk_packets_one(in, packet[i]);
}

#endif /* _PMUK_PACKETS_H */
