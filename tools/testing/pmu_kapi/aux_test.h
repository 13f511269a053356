/* SPDX-License-Identifier: GPL-2.0 */
/* The programs for an AUX area share these: its bytes, and the records about them. */
#ifndef _PMUK_AUX_TEST_H
#define _PMUK_AUX_TEST_H

#include "../../../kernel/pmu_kapi/aux.h"
#include "test.h"

/* Each word is its own position, so an old one is known to be old, and how old. */
#define TEST_AUX_WORD	0x5a5aa5a5c3c33c3cULL

struct test_aux_record {
	struct perf_event_header header;
	u64 offset;
	u64 size;
	u64 flags;
};

/* @pos and @size are multiples of 8. */
static inline void test_aux_fill(void *data, u64 pos, u64 size)
{
	u64 *words = data, n;

	for (n = 0; n < size / 8; n++)
		words[n] = (pos + 8 * n) ^ TEST_AUX_WORD;
}

/* Writes that many bytes, for which there is room. False: the area was not to be had. */
static inline bool test_aux_put(struct pmuk_area *area, u64 size)
{
	struct pmuk_aux_handle handle;

	if (!pmuk_area_begin(area, &handle))
		return false;
	test_aux_fill(handle.data, handle.head, size);
	pmuk_area_end(&handle, size);
	return true;
}

/* How many bytes the word at @pos is too old. */
static inline u64 test_aux_age(const u8 *area, u64 size, u64 pos)
{
	return pos - (*(const u64 *)(area + (pos & (size - 1))) ^ TEST_AUX_WORD);
}

#endif /* _PMUK_AUX_TEST_H */
