/* SPDX-License-Identifier: GPL-2.0 */
/* A loaded context is started and stopped. */
#ifndef _PMU_KAPI_CONTROL_H
#define _PMU_KAPI_CONTROL_H

#include "context.h"

void pmuk_context_halt(struct pmuk_context *ctx) __must_hold(&ctx->lock);

#endif /* _PMU_KAPI_CONTROL_H */
