/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TEST_LINUX_COMPILER_H
#define _TEST_LINUX_COMPILER_H

#include <sys/cdefs.h>

#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
#define barrier()		__atomic_signal_fence(__ATOMIC_SEQ_CST)

/* The compiler's own atomics, since those are what ThreadSanitizer understands. */
#define READ_ONCE(x)		__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, value)	__atomic_store_n(&(x), value, __ATOMIC_RELAXED)

/* The kernel marks races with interrupts of the same CPU. ThreadSanitizer sees no interrupts. */
#define data_race(x)		(x)

#endif /* _TEST_LINUX_COMPILER_H */
