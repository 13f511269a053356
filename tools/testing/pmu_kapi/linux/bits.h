/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TEST_LINUX_BITS_H
#define _TEST_LINUX_BITS_H

#define BIT(n)	(1UL << (n))

#endif /* _TEST_LINUX_BITS_H */
