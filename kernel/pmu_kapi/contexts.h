/* SPDX-License-Identifier: GPL-2.0 */
/* The list of all contexts. */
#ifndef _PMU_KAPI_CONTEXTS_H
#define _PMU_KAPI_CONTEXTS_H

#include "context.h"

int pmuk_contexts_add(struct pmuk_context *ctx);
bool pmuk_context_is_exported(const struct pmuk_context *ctx);
void pmuk_contexts_remove(struct pmuk_context *ctx);
struct pmuk_context *pmuk_view_from(u64 id);
struct pmuk_context *pmuk_view_before(u64 id, enum pmuk_rank rank);
struct pmuk_context *pmuk_view_exported(const char *name);
void pmuk_unview(struct pmuk_context *ctx);

#endif /* _PMU_KAPI_CONTEXTS_H */
