/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The calls of linux/pmu_kapi.h that lib/tests/pmuk_*_rules.h make, on a ring and an area in user
 * space: kernel/pmu_kapi/buffer.c without a kernel.
 */
#ifndef _PMUK_TEST_RULES_H
#define _PMUK_TEST_RULES_H

#include <errno.h>
#include <linux/bits.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <string.h>

#include "../../../kernel/pmu_kapi/aux.h"
#include "test.h"

#define PAGE_SIZE		4096
#define RULE_DOSE		1000000	/* of random trials */
#define RULE_OFFSETS		8192	/* at which a part of an area is tried */
#define RULE_RECORD		TEST_RECORD
#define PMUK_BUFFER_USER_TAIL	1

#define rule_report(rig, ...)	((void)(rig), FAIL(__VA_ARGS__))
#define rule_cpu(rig)		((void)(rig), 0)
#define rule_enter()		do { } while (0)
#define rule_leave()		do { } while (0)
#define rule_rest()		do { } while (0)
#define rule_is_whole(rec)	test_whole(rec)
#define rule_check_wakes(rig)							\
	do {									\
		typeof(rig) __r = (rig);					\
										\
		RULE_EQ(__r, __r->b->wakes, __r->b->ring.wakeups + __r->b->area.wakeups); \
	} while (0)

#define IS_ERR(p)		(!(p))
#define PTR_ERR_OR_ZERO(p)	(IS_ERR(p) ? -ENOMEM : 0)

static inline void rule_fill(struct perf_event_header *rec, u64 id)
{
	test_fill(rec, id, rec->size);
}

static inline void *rule_get_aux(const struct pmuk_aux_handle *h)
{
	return h->area ? h->area->private : NULL;
}

struct pmuk_buffer_attr {
	u32 nr_pages;
	enum pmuk_buffer_mode mode;
	u32 watermark;
	u32 wakeup_events;
	u32 flags;
	struct pmuk_aux_attr aux;
};

struct pmuk_buffer {
	struct pmuk_ring ring;
	struct pmuk_area area;
	struct pmuk_ring_config config;
	u64 wakes;
	u64 gone;
};

struct pmuk_buffer *pmuk_buffer_create(const struct pmuk_buffer_attr *attr, int cpu);
void pmuk_buffer_destroy(struct pmuk_buffer *b);

#define pmuk_buffer_get_stat(b, s)		({ pmuk_ring_stat(&(b)->ring, s); 0; })
#define pmuk_buffer_pause(b)		({ pmuk_ring_pause(&(b)->ring); 0; })
#define pmuk_buffer_resume(b)		pmuk_ring_resume(&(b)->ring)
#define pmuk_buffer_restart(b)		({ pmuk_ring_restart(&(b)->ring); 0; })
#define pmuk_buffer_revoke(b)		({ pmuk_ring_revoke(&(b)->ring); 0; })
#define pmuk_buffer_claim(b, r)		pmuk_ring_claim(&(b)->ring, r)
#define pmuk_buffer_peek(r)		pmuk_ring_peek(r)
#define pmuk_buffer_consume(r)		pmuk_ring_consume(r)
#define pmuk_buffer_release(r)		pmuk_ring_release(r)
#define pmuk_output_skip(b, rec)	pmuk_ring_skip(&(b)->ring, rec)

#define pmuk_aux_output_begin(h, b)	pmuk_area_begin(&(b)->area, h)
#define pmuk_aux_output_end(h, n)	pmuk_area_end(h, n)
#define pmuk_aux_output_skip(h, n)	pmuk_area_skip(h, n)
#define pmuk_aux_output_flag(h, f)	pmuk_area_flag(h, f)
#define pmuk_aux_output_lose(b, n)	pmuk_area_lose(&(b)->area, n)
#define pmuk_get_aux(h)			rule_get_aux(h)
#define pmuk_aux_data(b, n)		((void)(n), (const void *)(b)->area.data)
#define pmuk_aux_get_stat(b, s)		({ pmuk_area_stat(&(b)->area, s); 0; })
#define pmuk_aux_pause(b)		({ pmuk_area_pause(&(b)->area); 0; })
#define pmuk_aux_resume(b)		pmuk_area_resume(&(b)->area)
#define pmuk_aux_revoke(b)		({ pmuk_area_revoke(&(b)->area); 0; })
#define pmuk_aux_claim(b, r)		pmuk_area_claim(&(b)->area, r)
#define pmuk_aux_peek(r, span)		pmuk_area_peek(r, span)
#define pmuk_aux_consume(r, n)		pmuk_area_consume(r, n)
#define pmuk_aux_release(r)		pmuk_area_release(r)

#endif /* _PMUK_TEST_RULES_H */
