/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TEST_LINUX_KCONFIG_H
#define _TEST_LINUX_KCONFIG_H

#define IS_ENABLED(CONFIG_OPTION)	0

#endif /* _TEST_LINUX_KCONFIG_H */
