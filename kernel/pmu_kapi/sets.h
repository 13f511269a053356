/* SPDX-License-Identifier: GPL-2.0 */
/* A context's event sets, and the counters in them. */
#ifndef _PMU_KAPI_SETS_H
#define _PMU_KAPI_SETS_H

#include <linux/err.h>

#include "context.h"

/*
 * Passes the entries of an array to @one, and stores what @one returns in each entry's ret, until
 * an entry fails. Returns the number of entries that succeeded; -EINVAL without a context or an
 * array; -EBUSY if @busy. @busy and @one are evaluated under the context's lock.
 */
#define pmuk_vector_do(ctx, busy, req, count, one)			\
({									\
	struct pmuk_context *__ctx = (ctx);				\
	int __count = (count), __n = -EINVAL;				\
	typeof(req) __req = (req);					\
									\
	if (!IS_ERR_OR_NULL(__ctx) && __count >= 0 && (!__count || __req)) { \
		guard(mutex)(&__ctx->lock);				\
		for (__n = (busy) ? -EBUSY : 0; __n >= 0 && __n < __count; __n++) { \
			__req[__n].ret = one(__ctx, &__req[__n]);	\
			if (__req[__n].ret)				\
				break;					\
		}							\
	}								\
	__n;								\
})

int pmuk_set_add(struct pmuk_context *ctx, const struct pmuk_set_desc *desc)
	__must_hold(&ctx->lock);
void pmuk_sets_free(struct pmuk_context *ctx) __must_hold(&ctx->lock);

/* pmc.c */
void pmuk_pmds_keep(struct pmuk_context *ctx) __must_hold(&ctx->lock);

#endif /* _PMU_KAPI_SETS_H */
