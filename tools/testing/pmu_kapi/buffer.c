// SPDX-License-Identifier: GPL-2.0
/* Makes buffers in user space, as kernel/pmu_kapi/buffer.c and aux_area.c do in the kernel. */
#include <linux/minmax.h>
#include <stdlib.h>

#include "rules.h"

static void buffer_wake(struct pmuk_ring *ring)
{
	((struct pmuk_buffer *)ring)->wakes++;
}

static void area_gone(struct pmuk_area *area)
{
	((struct pmuk_buffer *)area->ring)->gone++;
}

static void init_area(struct pmuk_buffer *b, const struct pmuk_aux_attr *aux)
{
	u64 size = aux->nr_pages * PAGE_SIZE;

	b->area = (struct pmuk_area){
		.ring = &b->ring,
		.data = map_area(size),
		.size = size,
		.watermark = min_t(u64, aux->watermark ?: size, size / 2),
		.least = aux->least ?: 1,
		.overwrite = aux->overwrite,
		.records = b->config.size,
		.private = b,
		.gone = area_gone,
	};
	pmuk_area_init(&b->area, b->config.user_tail);
}

struct pmuk_buffer *pmuk_buffer_create(const struct pmuk_buffer_attr *attr, int cpu)
{
	u64 size = attr->nr_pages * PAGE_SIZE;
	struct pmuk_buffer *b = calloc(1, sizeof(*b));

	if (!b || cpu)
		return NULL;
	b->config = (struct ring_config){
		.size = size,
		.mode = attr->mode,
		.watermark = min_t(u64, attr->watermark ?: PAGE_SIZE, size / 2),
		.wakeup_events = attr->wakeup_events,
		.user_tail = attr->flags & PMUK_BUFFER_USER_TAIL,
		.wake = buffer_wake,
	};
	map_ring(&b->config);
	init_ring(&b->ring, &b->config);
	if (attr->aux.nr_pages)
		init_area(b, &attr->aux);
	return b;
}

void pmuk_buffer_destroy(struct pmuk_buffer *b)
{
	if (b->area.data)
		unmap_area(b->area.data, b->area.size);
	unmap_ring(&b->config);
	free(b);
}
