/* SPDX-License-Identifier: GPL-2.0 */
/* The record formats of contexts. */
#ifndef _PMU_KAPI_REGISTRY_H
#define _PMU_KAPI_REGISTRY_H

#include "context.h"

bool pmuk_format_is_perf(const struct pmuk_format *format);
struct pmuk_format *pmuk_format_find(const uuid_t *uuid);
void pmuk_format_let_go(struct pmuk_format *format);
void pmuk_format_put(struct pmuk_format *format);

#endif /* _PMU_KAPI_REGISTRY_H */
