/* SPDX-License-Identifier: GPL-2.0 */
/* The record formats of contexts. */
#ifndef _PMU_KAPI_REGISTRY_H
#define _PMU_KAPI_REGISTRY_H

#include "context.h"

bool pmuk_format_is_perf(const struct pmuk_format *format);
struct pmuk_format *pmuk_format_find(const uuid_t *uuid, struct pmuk_registered **entry);
void pmuk_format_let_go(struct pmuk_registered *r);
void pmuk_format_put(struct pmuk_registered *r);

int pmuk_histogram_register(void);
void pmuk_histogram_unregister(void);

#endif /* _PMU_KAPI_REGISTRY_H */
