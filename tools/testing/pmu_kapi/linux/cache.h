/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TEST_LINUX_CACHE_H
#define _TEST_LINUX_CACHE_H

#define ____cacheline_aligned	/* the alignment changes only the speed */

#endif /* _TEST_LINUX_CACHE_H */
