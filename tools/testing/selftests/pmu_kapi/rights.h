/* SPDX-License-Identifier: GPL-2.0 */
/* Tests of rights share these helpers. Each test is a process of its own, and gives up rights. */
#ifndef _PMUK_SELFTEST_RIGHTS_H
#define _PMUK_SELFTEST_RIGHTS_H

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base.h"

#define NOBODY		65534

static inline int errno_of_open_at(int dir, const char *path, int flags)
{
	int fd = openat(dir, path, flags | O_CLOEXEC);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static inline int errno_of_open(const char *path, int flags)
{
	return errno_of_open_at(AT_FDCWD, path, flags);
}

/* Keeps only the capabilities @caps, in the effective set. */
static inline int keep(uint64_t caps)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	int i;

	if (syscall(SYS_capget, &header, data))
		return -1;
	for (i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(caps >> (32 * i));
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data);
}

/* Root gives up only the capabilities @caps. */
static inline int drop(uint64_t caps)
{
	return keep(~caps);
}

/* Turns this process into the user nobody, with the capabilities @caps. */
static inline int be_nobody(uint64_t caps)
{
	if (prctl(PR_SET_KEEPCAPS, 1) || setgroups(0, NULL) ||
	    setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
		return -1;
	return keep(caps);
}

#endif /* _PMUK_SELFTEST_RIGHTS_H */
