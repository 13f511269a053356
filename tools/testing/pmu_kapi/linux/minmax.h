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

#define min(a, b)				\
	({					\
		__auto_type ___a = (a);		\
		__auto_type ___b = (b);		\
						\
		___a < ___b ? ___a : ___b;	\
	})

#define max(a, b)				\
	({					\
		__auto_type ___a = (a);		\
		__auto_type ___b = (b);		\
						\
		___a > ___b ? ___a : ___b;	\
	})

#define clamp(n, low, high)	min(max(n, low), high)

#endif /* _TEST_LINUX_MINMAX_H */
