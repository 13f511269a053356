/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TEST_LINUX_COMPILER_H
#define _TEST_LINUX_COMPILER_H

#include <sys/cdefs.h>

#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
#define barrier()		__atomic_signal_fence(__ATOMIC_SEQ_CST)

/* The compiler knows nothing of the value of @var from here on. */
#define OPTIMIZER_HIDE_VAR(var)	asm("" : "+r" (var))

/* ThreadSanitizer understands only the compiler's own atomics. */
#define READ_ONCE(x)		__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, value)	__atomic_store_n(&(x), value, __ATOMIC_RELAXED)

/* The kernel lets these loads race. ThreadSanitizer has to do so, too. */
#define data_race(x)		READ_ONCE(x)

#endif /* _TEST_LINUX_COMPILER_H */
