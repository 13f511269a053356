/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the test programs of an AUX area: its bytes, and the records that report them. */
#ifndef _PMUK_AUX_TEST_H
#define _PMUK_AUX_TEST_H

#include "../../../kernel/pmu_kapi/aux.h"
#include "test.h"

/* Each word is XORed from its position, which shows the age of an old word. */
#define TEST_AUX_WORD	0x5a5aa5a5c3c33c3cULL

struct test_aux_record {
	struct perf_event_header header;
	u64 offset;
	u64 size;
	u64 flags;
};

/* Writes the words of @pos. Both @pos and @size are multiples of 8. */
static inline void test_aux_fill(void *data, u64 pos, u64 size)
{
	u64 *words = data, n;

	for (n = 0; n < size / 8; n++)
		words[n] = (pos + 8 * n) ^ TEST_AUX_WORD;
}

/* Writes @size bytes, for which there is room. Returns false if the area was refused. */
static inline bool test_aux_put(struct pmuk_area *area, u64 size)
{
	struct pmuk_aux_handle handle;

	if (!pmuk_area_begin(area, &handle))
		return false;
	test_aux_fill(handle.data, handle.head, size);
	pmuk_aux_output_end(&handle, size);
	return true;
}

/* Returns how old the word at @pos is, in bytes written since; 0 if it is right. */
static inline u64 test_aux_age(const u8 *area, u64 size, u64 pos)
{
	return pos - (*(const u64 *)(area + (pos & (size - 1))) ^ TEST_AUX_WORD);
}

#endif /* _PMUK_AUX_TEST_H */
