/* SPDX-License-Identifier: GPL-2.0 */
/* Buffers and format areas of a context. */
#ifndef _PMU_KAPI_STORAGE_H
#define _PMU_KAPI_STORAGE_H

#include "context.h"

int pmuk_context_make_storage(struct pmuk_context *ctx) __must_hold(&ctx->lock);
void pmuk_context_free_storage(struct pmuk_context *ctx);
void pmuk_context_restart_storage(struct pmuk_context *ctx, int cpu) __must_hold(&ctx->lock);
void pmuk_context_report_lost(struct pmuk_context *ctx);

#endif /* _PMU_KAPI_STORAGE_H */
