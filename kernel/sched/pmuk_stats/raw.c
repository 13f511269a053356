// SPDX-License-Identifier: GPL-2.0
/*
 * Switches as packets in an AUX area. To keep switches cheap, a switch only appends bytes to the
 * open part of the area. The end of a part publishes its packets and writes a PERF_RECORD_AUX: each
 * 4 KiB, or when a reader asks. All functions run on the sink's CPU, with interrupts off; or in its
 * place while the CPU is offline, see pmuk_sched_call_on().
 */
#include <linux/compiler.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/sizes.h>

#include "raw.h"
#include "stats.h"

/*
 * A small area is written in several parts, so that a reader can read the first part before the
 * area is full.
 */
#define PMUK_SCHED_RAW_PARTS	4

/* Ends the open part, if there is one: readers see all packets until now. */
void pmuk_sched_raw_end(struct pmuk_sched_sink *sink)
{
	lockdep_assert_irqs_disabled();
	if (!sink->at)
		return;
	pmuk_aux_output_end(&sink->part, sink->at - (u8 *)sink->part.data);
	sink->at = NULL;
	sink->end = NULL;
}

/*
 * Opens the next part, which has room for at least a mark and a switch: the buffer was created with
 * PMUK_SCHED_RAW_MAX as &pmuk_buffer_attr.aux.least. Returns false if the area is full.
 */
static bool pmuk_sched_raw_begin(struct pmuk_sched_sink *sink)
{
	u64 limit = min_t(u64, SZ_4K, sink->size / PMUK_SCHED_RAW_PARTS);

	pmuk_sched_raw_end(sink);
	if (!pmuk_aux_output_begin(&sink->part, sink->buffer))
		return false;
	sink->at = sink->part.data;
	sink->end = sink->at + min(sink->part.size, limit);
	sink->marked = false;
	return true;
}

/*
 * Ends the open part. If none is open, an empty part still reports what has found no room in the
 * ring before.
 */
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

/*
 * Returns whether a reader can derive prev_pid and time from the packet before. A reader cannot at
 * the beginning of a part, after exec() has exchanged pids, or when accounting has begun again.
 */
static bool pmuk_sched_raw_follows(const struct pmuk_sched_sink *sink,
				   const struct pmuk_sched_slice *s)
{
	return sink->marked && sink->pid == s->prev_pid && sink->time + s->run == s->time;
}

/* Writes switch number ->switches, counted from 1. A mark has the number of switches before it. */
void pmuk_sched_raw_switch(struct pmuk_sched_sink *sink, const struct pmuk_sched_slice *s)
{
	if (unlikely(sink->end - sink->at < PMUK_SCHED_RAW_MAX) && !pmuk_sched_raw_begin(sink)) {
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
