/* SPDX-License-Identifier: GPL-2.0 */
/* Events, periods and counts of event sets. */
#ifndef _PMU_KAPI_PMC_H
#define _PMU_KAPI_PMC_H

#include "context.h"

void pmuk_pmds_keep(struct pmuk_context *ctx) __must_hold(&ctx->lock);

#endif /* _PMU_KAPI_PMC_H */
