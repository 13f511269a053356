// SPDX-License-Identifier: GPL-2.0
/*
 * A record's slice of the AUX area: a copy of the area's newest bytes, for PERF_SAMPLE_AUX. If a
 * PMU has an area open that overwrites, its driver copies what the hardware has written until now,
 * see pmu::snapshot_aux(). Otherwise the slice has published bytes only.
 *
 * This code runs on the buffer's CPU, in the overflow handler, in NMI too.
 */
#include <linux/compiler.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/perf_local_state.h>
#include <linux/string.h>

#include "buffer.h"

/*
 * Returns the event whose driver copies the slice, or NULL. Drivers copy only from areas that
 * overwrite.
 */
static struct perf_event *pmuk_slice_event(const struct pmuk_aux *aux)
{
	struct perf_event *event = READ_ONCE(aux->tracer);

	if (!event || !aux->area.overwrite || !perf_local_can_snapshot_aux(event))
		return NULL;
	return event;
}

/*
 * Finds the slice, whose size is a multiple of 8 and at most @most. It is empty if this overflow
 * has interrupted another one that is taking a slice by the driver: the driver's copies do not
 * nest.
 */
void pmuk_slice_begin(struct pmuk_slice *s, struct pmuk_buffer *b, unsigned int most)
{
	struct pmuk_aux *aux = b->aux;

	*s = (struct pmuk_slice){};
	if (!aux || READ_ONCE(aux->slicing))
		return;
	s->event = pmuk_slice_event(aux);
	if (s->event) {
		WRITE_ONCE(aux->slicing, true);
		s->size = round_down(min_t(u64, most, aux->area.size), sizeof(u64));
		return;
	}
	s->frozen = pmuk_area_freeze(&aux->area);
	s->size = round_down(pmuk_area_newest(&aux->area, s->frozen, most), sizeof(u64));
}

/*
 * The driver may have less than the slice, or an NMI has ended the hardware's part since: then
 * zeroes follow, as in perf's records.
 */
static void pmuk_slice_copy_by_driver(const struct pmuk_slice *s, struct pmuk_aux *aux, void *to)
{
	long copied = 0;

	if (READ_ONCE(aux->tracer) == s->event)
		copied = perf_local_snapshot_aux(s->event, to, s->size);
	copied = clamp(copied, 0L, (long)s->size);
	memset(to + copied, 0, s->size - copied);
}

void pmuk_slice_copy(const struct pmuk_slice *s, struct pmuk_buffer *b, void *to)
{
	if (s->event)
		pmuk_slice_copy_by_driver(s, b->aux, to);
	else if (s->size)
		pmuk_area_copy(&b->aux->area, to, s->size);
}

/* The slice was copied, or its record has found no room. */
void pmuk_slice_end(const struct pmuk_slice *s, struct pmuk_buffer *b)
{
	if (s->event)
		WRITE_ONCE(b->aux->slicing, false);
	if (s->frozen)
		pmuk_area_thaw(&b->aux->area);
}
