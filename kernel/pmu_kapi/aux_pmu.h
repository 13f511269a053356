/* SPDX-License-Identifier: GPL-2.0 */
/* PMUs that write AUX areas. */
#ifndef _PMU_KAPI_AUX_PMU_H
#define _PMU_KAPI_AUX_PMU_H

#include "counter.h"

int pmuk_aux_attach(struct pmuk_counter *c);
void pmuk_aux_detach(struct pmuk_counter *c);

#endif /* _PMU_KAPI_AUX_PMU_H */
