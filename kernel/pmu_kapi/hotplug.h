/* SPDX-License-Identifier: GPL-2.0 */
/* CPUs come and go, and contexts follow. */
#ifndef _PMU_KAPI_HOTPLUG_H
#define _PMU_KAPI_HOTPLUG_H

#include "context.h"

void pmuk_hotplug_work(struct work_struct *work);
void pmuk_hotplug_retry(struct pmuk_context *ctx) __must_hold(&ctx->lock);
unsigned long pmuk_hotplug_retry_in(struct pmuk_context *ctx, unsigned long pause)
	__must_hold(&ctx->lock);
int pmuk_hotplug_add(struct pmuk_context *ctx);
void pmuk_hotplug_remove(struct pmuk_context *ctx);
int pmuk_hotplug_init(void);
void pmuk_hotplug_exit(void);

#endif /* _PMU_KAPI_HOTPLUG_H */
