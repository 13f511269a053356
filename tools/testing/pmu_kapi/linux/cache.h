/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TEST_LINUX_CACHE_H
#define _TEST_LINUX_CACHE_H

#define ____cacheline_aligned	/* changes how fast it is, and nothing else */

#endif /* _TEST_LINUX_CACHE_H */
