/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PMUK_COMPAT_LINUX_MODULE_H
#define _PMUK_COMPAT_LINUX_MODULE_H

#include_next <linux/module.h>
#include <linux/version.h>

/* 6.13 has namespaces as strings. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#undef MODULE_IMPORT_NS
#define MODULE_IMPORT_NS(ns)	MODULE_INFO(import_ns, ns)
#endif

#endif /* _PMUK_COMPAT_LINUX_MODULE_H */
