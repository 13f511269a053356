/* SPDX-License-Identifier: GPL-2.0 */
/* The catalogue of event sets of a context. */
#ifndef _PMU_KAPI_SETS_H
#define _PMU_KAPI_SETS_H

#include "context.h"

struct pmuk_set *pmuk_set_find(struct pmuk_context *ctx, u16 id) __must_hold(&ctx->lock);
u16 pmuk_set_first(struct pmuk_context *ctx) __must_hold(&ctx->lock);
int pmuk_set_add(struct pmuk_context *ctx, u16 id, u64 timeout) __must_hold(&ctx->lock);
void pmuk_sets_free(struct pmuk_context *ctx) __must_hold(&ctx->lock);

#endif /* _PMU_KAPI_SETS_H */
