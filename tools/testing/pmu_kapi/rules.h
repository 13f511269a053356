/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User-space versions of the calls that lib/tests/pmuk_*_rules.h make. They do with a ring and an
 * area what kernel/pmu_kapi/buffer.c does in the kernel.
 */
#ifndef _PMUK_TEST_RULES_H
#define _PMUK_TEST_RULES_H

#include <errno.h>
#include <linux/bits.h>
#include <linux/err.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <string.h>

#include "../../../kernel/pmu_kapi/aux.h"
#include "test.h"

#define PAGE_SIZE		4096
#define RULE_DOSE		1000000	/* number of random trials */
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
	struct ring_config config;
	u64 wakes;
	u64 gone;
};

struct pmuk_buffer *pmuk_buffer_create(const struct pmuk_buffer_attr *attr, int cpu);
void pmuk_buffer_destroy(struct pmuk_buffer *b);

#define pmuk_buffer_claim(b, r)		pmuk_ring_claim(&(b)->ring, r)

#define pmuk_aux_output_begin(h, b)	pmuk_area_begin(&(b)->area, h)
#define pmuk_aux_output_lose(b, n)	pmuk_area_lose(&(b)->area, n)
#define pmuk_get_aux(h)			rule_get_aux(h)
#define pmuk_aux_data(b, n)		((void)(n), (const void *)(b)->area.data)
#define pmuk_aux_get_stat(b, s)		({ pmuk_area_stat(&(b)->area, s); 0; })
#define pmuk_aux_pause(b)		({ pmuk_area_pause(&(b)->area); 0; })
#define pmuk_aux_resume(b)		pmuk_area_resume(&(b)->area)
#define pmuk_aux_claim(b, r)		pmuk_area_claim(&(b)->area, r)

#endif /* _PMUK_TEST_RULES_H */
