/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PMUK_COMPAT_LINUX_MM_H
#define _PMUK_COMPAT_LINUX_MM_H

#include_next <linux/mm.h>
#include <linux/version.h>

/* 7.1 has another name for it. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 1, 0)
#define zap_special_vma_range	zap_vma_ptes
#endif

#endif /* _PMUK_COMPAT_LINUX_MM_H */
