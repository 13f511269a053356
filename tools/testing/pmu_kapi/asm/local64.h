/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TEST_ASM_LOCAL64_H
#define _TEST_ASM_LOCAL64_H

#include <linux/compiler.h>
#include <linux/types.h>

struct test_local64 {
	s64 a;
};

#define local64_t		struct test_local64

#define local64_read(l)		READ_ONCE((l)->a)
#define local64_set(l, i)	WRITE_ONCE((l)->a, i)
#define local64_add_return(i, l) \
	__atomic_add_fetch(&(l)->a, i, __ATOMIC_RELAXED)
#define local64_add(i, l)	((void)local64_add_return(i, l))
#define local64_sub(i, l)	((void)__atomic_sub_fetch(&(l)->a, i, __ATOMIC_RELAXED))
#define local64_try_cmpxchg(l, old, new) \
	__atomic_compare_exchange_n(&(l)->a, old, new, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)

#endif /* _TEST_ASM_LOCAL64_H */
