/* SPDX-License-Identifier: GPL-2.0 */
/* Each operation is as weak as the kernel's: it orders only what the kernel's operation orders. */
#ifndef _TEST_LINUX_ATOMIC_H
#define _TEST_LINUX_ATOMIC_H

#include <asm/barrier.h>
#include <linux/compiler.h>
#include <linux/types.h>

#define try_cmpxchg_local(p, old, new) \
	__atomic_compare_exchange_n(p, old, new, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#define try_cmpxchg_release(p, old, new) \
	__atomic_compare_exchange_n(p, old, new, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)

#define atomic64_fetch_add_relaxed(i, v) \
	__atomic_fetch_add(&(v)->counter, i, __ATOMIC_RELAXED)

#define atomic_set(v, i)		__atomic_store_n(&(v)->counter, i, __ATOMIC_RELAXED)
#define atomic_read(v)			__atomic_load_n(&(v)->counter, __ATOMIC_RELAXED)
#define atomic_read_acquire(v)		__atomic_load_n(&(v)->counter, __ATOMIC_ACQUIRE)
#define atomic_or(i, v)			__atomic_fetch_or(&(v)->counter, i, __ATOMIC_RELAXED)
#define atomic_andnot(i, v)		__atomic_fetch_and(&(v)->counter, ~(i), __ATOMIC_RELAXED)
#define atomic_fetch_or(i, v)		__atomic_fetch_or(&(v)->counter, i, __ATOMIC_SEQ_CST)
#define atomic_fetch_or_release(i, v)	__atomic_fetch_or(&(v)->counter, i, __ATOMIC_RELEASE)
#define atomic_fetch_andnot(i, v)	__atomic_fetch_and(&(v)->counter, ~(i), __ATOMIC_SEQ_CST)
#define atomic_xchg_acquire(v, i)	__atomic_exchange_n(&(v)->counter, i, __ATOMIC_ACQUIRE)
#define atomic_fetch_andnot_release(i, v) \
	__atomic_fetch_and(&(v)->counter, ~(i), __ATOMIC_RELEASE)
#define atomic_try_cmpxchg_acquire(v, old, new) \
	__atomic_compare_exchange_n(&(v)->counter, old, new, false, __ATOMIC_ACQUIRE, \
				    __ATOMIC_RELAXED)
#define atomic_try_cmpxchg_release(v, old, new) \
	__atomic_compare_exchange_n(&(v)->counter, old, new, false, __ATOMIC_RELEASE, \
				    __ATOMIC_RELAXED)

#endif /* _TEST_LINUX_ATOMIC_H */
