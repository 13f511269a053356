/* SPDX-License-Identifier: GPL-2.0 */
/* A context's event sets, and the counters in them. */
#ifndef _PMU_KAPI_SETS_H
#define _PMU_KAPI_SETS_H

#include <linux/err.h>

#include "context.h"

static inline bool pmuk_vector_ok(const struct pmuk_context *ctx, const void *req, int count)
{
	return !IS_ERR_OR_NULL(ctx) && count >= 0 && (!count || req);
}

/*
 * Passes the entries of a vector to @one, and stores what @one returns in each entry's ret, until
 * an entry fails. The result is the number of entries before that one.
 */
#define pmuk_vector_do(ctx, req, count, one)				\
({									\
	typeof(req) __req = (req);					\
	int __n;							\
									\
	for (__n = 0; __n < (count); __n++) {				\
		__req[__n].ret = one(ctx, &__req[__n]);			\
		if (__req[__n].ret)					\
			break;						\
	}								\
	__n;								\
})

struct pmuk_set *pmuk_set_find(struct pmuk_context *ctx, u16 id) __must_hold(&ctx->lock);
int pmuk_set_add(struct pmuk_context *ctx, const struct pmuk_set_desc *desc)
	__must_hold(&ctx->lock);
void pmuk_sets_free(struct pmuk_context *ctx) __must_hold(&ctx->lock);

/* pmc.c */
void pmuk_pmds_keep(struct pmuk_context *ctx) __must_hold(&ctx->lock);

#endif /* _PMU_KAPI_SETS_H */
