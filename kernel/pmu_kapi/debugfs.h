/* SPDX-License-Identifier: GPL-2.0 */
/* debugfs shows what is live, who holds it, and what it costs. */
#ifndef _PMU_KAPI_DEBUGFS_H
#define _PMU_KAPI_DEBUGFS_H

void pmuk_debugfs_init(void);
void pmuk_debugfs_exit(void);

#endif /* _PMU_KAPI_DEBUGFS_H */
