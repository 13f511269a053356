/* SPDX-License-Identifier: GPL-2.0 */
/* Tests that use cgroups share these helpers. Each mounts cgroup2 for itself. */
#ifndef _PMUK_SELFTEST_SCHED_CGROUP_H
#define _PMUK_SELFTEST_SCHED_CGROUP_H

#include <sys/mount.h>
#include <sys/stat.h>

#include "sched.h"

#define ROOT_ID		1

/* Mounts cgroup2, and stores the path in @root, which has 32 bytes. Returns 0 or errno. */
static inline int cgroups_mount(char *root)
{
	strcpy(root, "/tmp/cgroupXXXXXX");
	return mkdtemp(root) && !mount("none", root, "cgroup2", 0, NULL) ? 0 : errno;
}

static inline void cgroups_unmount(const char *root)
{
	umount(root);
	rmdir(root);
}

/* Builds the path of @name in @dir. Returns false if the path is too long. */
static inline bool path_in(const char *dir, const char *name, char path[512])
{
	return snprintf(path, 512, "%s/%s", dir, name) < 512;
}

/* Writes the formatted text to a file of cgroup @dir. Returns 0, or -1 and errno. */
static inline __printf(3, 4)
int write_in(const char *dir, const char *file, const char *format, ...)
{
	char path[512];
	va_list args;
	int ret;

	if (!path_in(dir, file, path))
		return -1;
	va_start(args, format);
	ret = write_text(path, format, args);
	va_end(args);
	return ret;
}

/* Makes a cgroup below @dir, and stores its path in @path. */
static inline int make_below(const char *dir, const char *name, char path[512])
{
	return path_in(dir, name, path) ? mkdir(path, 0755) : -1;
}

/*
 * Moves process @pid, or the caller for 0, to cgroup @dir. A reading before the caller's move ends
 * its slice, so that the old cgroup gets all events until now.
 */
static inline int move(const char *dir, int pid)
{
	if (!pid)
		free(slurp(SCHED "cpus"));
	return write_in(dir, "cgroup.procs", "%d", pid);
}

#endif /* _PMUK_SELFTEST_SCHED_CGROUP_H */
