/* SPDX-License-Identifier: GPL-2.0 */
/* The list of all contexts. */
#ifndef _PMU_KAPI_CONTEXTS_H
#define _PMU_KAPI_CONTEXTS_H

#include <linux/bits.h>

#include "context.h"

/* The part of a context's id that its counters' records have, see pmuk_record_id(). */
#define PMUK_RECORDED_ID	GENMASK_ULL(28, 0)

/*
 * Returns the id of the context that is created after context @last. The recorded part of an id is
 * not 0. It repeats after 2^29 - 1 contexts. No buffer has records of both contexts, so only a
 * reader that merges the records of several buffers takes the two contexts for the same one.
 */
static inline u64 pmuk_next_context_id(u64 last)
{
	u64 id = last + 1;

	return id & PMUK_RECORDED_ID ? id : id + 1;
}

bool pmuk_context_is_exported(const struct pmuk_context *ctx);
int pmuk_contexts_add(struct pmuk_context *ctx);
void pmuk_contexts_remove(struct pmuk_context *ctx);
struct pmuk_context *pmuk_view_from(u64 id);
struct pmuk_context *pmuk_view_before(u64 id, enum pmuk_rank rank);
struct pmuk_context *pmuk_view_exported(const char *name);
void pmuk_unview(struct pmuk_context *ctx);

#endif /* _PMU_KAPI_CONTEXTS_H */
