/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TEST_LINUX_ERR_H
#define _TEST_LINUX_ERR_H

#define IS_ERR(p)		(!(p))
#define IS_ERR_OR_NULL(p)	(!(p))

#endif /* _TEST_LINUX_ERR_H */
