/* SPDX-License-Identifier: GPL-2.0 */
/* A loaded context is started, stopped and watched. */
#ifndef _PMU_KAPI_CONTROL_H
#define _PMU_KAPI_CONTROL_H

#include "context.h"

void pmuk_context_halt(struct pmuk_context *ctx) __must_hold(&ctx->lock);
void pmuk_watch_work(struct work_struct *work);

#endif /* _PMU_KAPI_CONTROL_H */
