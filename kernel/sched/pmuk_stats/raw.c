// SPDX-License-Identifier: GPL-2.0
/*
 * Switches as packets in an AUX area. A part of it stays open over many switches, each of which
 * adds bytes and publishes nothing: that, and telling, is for the end of the part, each 4 KiB or
 * when somebody asks. All of this is the CPU's own, with interrupts off.
 */
#include <linux/compiler.h>
#include <linux/minmax.h>
#include <linux/sizes.h>

#include "raw.h"
#include "stats.h"

/* Of a small area some parts: what is written can be read before there is no room. */
#define PMUK_SCHED_RAW_PARTS	4

/* Packets until now are the reader's. */
void pmuk_sched_raw_end(struct pmuk_sched_sink *sink)
{
	if (!sink->at)
		return;
	pmuk_aux_output_end(&sink->part, sink->at - (u8 *)sink->part.data);
	sink->at = NULL;
	sink->end = NULL;
}

/* There is room for a packet, or none is begun. */
static bool pmuk_sched_raw_begin(struct pmuk_sched_sink *sink)
{
	u64 most = min_t(u64, SZ_4K, sink->size / PMUK_SCHED_RAW_PARTS);

	pmuk_sched_raw_end(sink);
	if (!pmuk_aux_output_begin(&sink->part, sink->buffer))
		return false;
	sink->at = sink->part.data;
	sink->end = sink->at + min(sink->part.size, most);
	sink->marked = false;
	return true;
}

/* And what could not be told before, as the ring was full, is. */
void pmuk_sched_raw_flush(struct pmuk_sched_sink *sink)
{
	if (sink->raw && !sink->at)
		pmuk_sched_raw_begin(sink);
	pmuk_sched_raw_end(sink);
}

static noinline void
pmuk_sched_raw_lose(struct pmuk_sched_sink *sink, const struct pmuk_sched_slice *s)
{
	u8 packet[PMUK_SCHED_RAW_SWITCH_BYTES];

	WRITE_ONCE(sink->lost, sink->lost + 1);
	pmuk_aux_output_lose(sink->buffer, pmuk_sched_raw_put_switch(packet, s) - packet);
}

/* It does not after exec() has exchanged pids, or when accounting has begun again. */
static bool pmuk_sched_raw_follows(const struct pmuk_sched_sink *sink,
				   const struct pmuk_sched_slice *s)
{
	return sink->marked && sink->pid == s->prev_pid && sink->time + s->run == s->time;
}

/* That of the number ->switches, the first one being 1. */
void pmuk_sched_raw_switch(struct pmuk_sched_sink *sink, const struct pmuk_sched_slice *s)
{
	if (unlikely(sink->end - sink->at < PMUK_SCHED_RAW_MOST) && !pmuk_sched_raw_begin(sink)) {
		pmuk_sched_raw_lose(sink, s);
		return;
	}
	if (unlikely(!pmuk_sched_raw_follows(sink, s)))
		sink->at = pmuk_sched_raw_put_mark(sink->at, s, sink->switches - 1);
	sink->at = pmuk_sched_raw_put_switch(sink->at, s);
	sink->marked = true;
	sink->time = s->time;
	sink->pid = s->next_pid;
}
