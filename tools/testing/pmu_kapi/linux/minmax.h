/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TEST_LINUX_MINMAX_H
#define _TEST_LINUX_MINMAX_H

#define min_t(type, a, b)		\
	({				\
		type __a = (a);		\
		type __b = (b);		\
					\
		__a < __b ? __a : __b;	\
	})

#define max_t(type, a, b)		\
	({				\
		type __a = (a);		\
		type __b = (b);		\
					\
		__a > __b ? __a : __b;	\
	})

#endif /* _TEST_LINUX_MINMAX_H */
