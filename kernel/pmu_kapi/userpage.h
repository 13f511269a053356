/* SPDX-License-Identifier: GPL-2.0 */
/* A counter on the control page of its buffer. */
#ifndef _PMU_KAPI_USERPAGE_H
#define _PMU_KAPI_USERPAGE_H

#include "counter.h"

void pmuk_page_attach(struct pmuk_counter *c);
void pmuk_page_detach(struct pmuk_counter *c);
void pmuk_page_publish(struct pmuk_counter *c, const struct pmuk_value *value);

#endif /* _PMU_KAPI_USERPAGE_H */
