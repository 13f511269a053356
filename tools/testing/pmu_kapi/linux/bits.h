/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TEST_LINUX_BITS_H
#define _TEST_LINUX_BITS_H

#define BIT(n)		(1UL << (n))
#define BIT_ULL(n)	(1ULL << (n))

#endif /* _TEST_LINUX_BITS_H */
