/* SPDX-License-Identifier: GPL-2.0 */
/* ThreadSanitizer understands only the compiler's own atomics. */
#ifndef _TEST_ASM_BARRIER_H
#define _TEST_ASM_BARRIER_H

/* acquire barrier */
#define smp_load_acquire(p)		__atomic_load_n(p, __ATOMIC_ACQUIRE)
/* release barrier */
#define smp_store_release(p, value)	__atomic_store_n(p, value, __ATOMIC_RELEASE)
/* full barrier */
#define smp_mb()			__atomic_thread_fence(__ATOMIC_SEQ_CST)
/* full barrier: atomics without an order of their own have none here */
#define smp_mb__after_atomic()		smp_mb()

#endif /* _TEST_ASM_BARRIER_H */
