/* SPDX-License-Identifier: GPL-2.0 */
/* Our tests run on kernels without KUnit, too, see kunit/test.h, and need their exports there. */
#ifndef _PMUK_COMPAT_KUNIT_VISIBILITY_H
#define _PMUK_COMPAT_KUNIT_VISIBILITY_H

#include_next <kunit/visibility.h>
#include <linux/export.h>
#include <linux/version.h>

#if !IS_ENABLED(CONFIG_KUNIT)
#undef EXPORT_SYMBOL_IF_KUNIT
/* 6.13 has namespaces as strings. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define EXPORT_SYMBOL_IF_KUNIT(symbol)	EXPORT_SYMBOL_NS_GPL(symbol, EXPORTED_FOR_KUNIT_TESTING)
#else
#define EXPORT_SYMBOL_IF_KUNIT(symbol)	EXPORT_SYMBOL_NS_GPL(symbol, "EXPORTED_FOR_KUNIT_TESTING")
#endif
#endif

#endif /* _PMUK_COMPAT_KUNIT_VISIBILITY_H */
