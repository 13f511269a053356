/* SPDX-License-Identifier: GPL-2.0 */
/* Newer kernels let the compiler check which lock guards a list. Can go with 6.12. */
#ifndef _PMUK_COMPAT_LINUX_LIST_H
#define _PMUK_COMPAT_LINUX_LIST_H

#include_next <linux/list.h>

#ifndef LIST_HEAD_GUARDED
#define LIST_HEAD_GUARDED(name, lock)	LIST_HEAD(name)
#endif

#endif /* _PMUK_COMPAT_LINUX_LIST_H */
