/* SPDX-License-Identifier: GPL-2.0 */
/* Newer kernels let the compiler check which lock guards a variable. Can go with 6.12. */
#ifndef _PMUK_COMPAT_LINUX_MUTEX_H
#define _PMUK_COMPAT_LINUX_MUTEX_H

#include_next <linux/mutex.h>

#ifndef __guarded_by
#define __guarded_by(...)
#endif

#ifndef __assumes_ctx_lock
#define __assumes_ctx_lock(...)
#endif

/* The compiler does not check the expressions in here. */
#ifndef context_unsafe
#define context_unsafe(...)	({ __VA_ARGS__; })	/* the value of the last one */
#endif

#endif /* _PMUK_COMPAT_LINUX_MUTEX_H */
