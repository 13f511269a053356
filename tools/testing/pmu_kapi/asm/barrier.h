/* SPDX-License-Identifier: GPL-2.0 */
/* The compiler's own atomics, since those are what ThreadSanitizer understands. */
#ifndef _TEST_ASM_BARRIER_H
#define _TEST_ASM_BARRIER_H

/* acquire */
#define smp_load_acquire(p)		__atomic_load_n(p, __ATOMIC_ACQUIRE)
/* release */
#define smp_store_release(p, value)	__atomic_store_n(p, value, __ATOMIC_RELEASE)
/* full */
#define smp_mb()			__atomic_thread_fence(__ATOMIC_SEQ_CST)
/* full: atomics without an order of their own have none here */
#define smp_mb__after_atomic()		smp_mb()

#endif /* _TEST_ASM_BARRIER_H */
