/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TEST_LINUX_TYPES_H
#define _TEST_LINUX_TYPES_H

#include_next <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

typedef __s8 s8;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

struct test_atomic {
	int counter;
};

struct test_atomic64 {
	s64 counter;
};

struct list_head {
	struct list_head *next, *prev;
};

typedef struct test_atomic atomic_t;
#define atomic64_t		struct test_atomic64

#endif /* _TEST_LINUX_TYPES_H */
