/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PMUK_COMPAT_LINUX_PANIC_H
#define _PMUK_COMPAT_LINUX_PANIC_H

#include_next <linux/panic.h>
#include <linux/version.h>

/* 7.3 tells modules; before that they have the panic notifier, which comes a little later. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 3, 0)
#define panic_in_progress()	(false)
#endif

#endif /* _PMUK_COMPAT_LINUX_PANIC_H */
