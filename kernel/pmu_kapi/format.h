/* SPDX-License-Identifier: GPL-2.0 */
/* The built-in record format, perf's own. */
#ifndef _PMU_KAPI_FORMAT_H
#define _PMU_KAPI_FORMAT_H

#include "counter.h"

const char *pmuk_format_fault(const struct pmuk_attr *attr, int cpu);
unsigned int pmuk_format_size(const struct pmuk_counter *c);
u64 pmuk_unsupported_record_fields(u64 sample_type);
u64 pmuk_unsupported_read_format(u64 read_format);
bool pmuk_format_sample(struct pmuk_counter *c, struct pmuk_buffer *b,
			const struct pmuk_sample *sample, const struct perf_sample_data *data);
void pmuk_format_record(struct pmuk_counter *c, const struct pmuk_sample *sample,
			const struct perf_sample_data *data);

#endif /* _PMU_KAPI_FORMAT_H */
