// SPDX-License-Identifier: GPL-2.0
/*
 * Opens the kernel's files. If that fails, a message says why, and what to do.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmuk.h"

#define CHUNK	65536
#define MAX_CPU	65535

const char *rooted(const char *path)
{
	static char full[PATH_MAX];
	const char *root = getenv("PMUK_ROOT");

	if (!root || !*root)
		return path;
	if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int)sizeof(full))
		die("PMUK_ROOT is too long");
	return full;
}

__noreturn static void explain(const char *path, int error)
{
	if (error == EACCES || error == EPERM)
		die("%s: this takes CAP_PERFMON. Run pmuk as root, as in: sudo pmuk ...",
		    path);
	if (error == EMFILE)
		die("%s: there are too many open files; see ulimit -n", path);
	if (error != ENOENT && error != ENXIO && error != ENODEV)
		die("%s: %s", path, strerror(error));
	if (access(rooted(MODULE), F_OK))
		die("the module pmuk_sched is not loaded. As root: modprobe pmuk_sched");
	die("%s is missing, though the module pmuk_sched is loaded: is %s mounted here?", path,
	    strncmp(path, "/dev", 4) ? "/proc" : "devtmpfs on /dev");
}

void check_debugfs(const char *path)
{
	if (!access(rooted(path), R_OK) || errno == EACCES)
		return;
	die("%s: %s. Is debugfs mounted, and the module pmu_kapi loaded?", path, strerror(errno));
}

int open_source(const char *path, int flags)
{
	int fd = open(rooted(path), flags | O_CLOEXEC);

	if (fd < 0)
		explain(path, errno);
	return fd;
}

static ssize_t read_some(int fd, void *to, size_t size)
{
	ssize_t got;

	do {
		got = read(fd, to, size);
	} while (got < 0 && errno == EINTR);
	return got;
}

/* Reads the whole source, and ends it with a 0. */
char *read_source(const char *path, size_t *len)
{
	int fd = open_source(path, O_RDONLY);
	size_t room = CHUNK, nr = 0;
	char *text = zalloc(room + 1);
	ssize_t got;

	while ((got = read_some(fd, text + nr, room - nr)) > 0) {
		nr += (size_t)got;
		if (room - nr >= CHUNK / 2)
			continue;
		room *= 2;
		text = realloc(text, room + 1);
		if (!text)
			die("there is no memory left");
	}
	if (got < 0)
		explain(path, errno);
	close(fd);
	text[nr] = 0;
	*len = nr;
	return text;
}

bool read_cpu_list(const char *which, char list[CPU_LIST_MAX])
{
	char path[64];
	FILE *file;
	bool read;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/%s", which);
	file = fopen(rooted(path), "re");
	read = file && fgets(list, CPU_LIST_MAX, file);
	if (file)
		fclose(file);
	if (read)
		list[strcspn(list, "\n")] = 0;
	return read;
}

/* Reads a number, and moves @list behind it. */
static bool take_cpu(const char **list, u32 *cpu)
{
	char *end;
	unsigned long number = strtoul(*list, &end, 10);

	if (!isdigit((unsigned char)**list) || number > MAX_CPU)
		return false;
	*list = end;
	*cpu = (u32)number;
	return true;
}

static bool take_range(const char **list, u32 *first, u32 *last)
{
	if (!take_cpu(list, first))
		return false;
	*last = *first;
	if (**list != '-')
		return true;
	++*list;
	return take_cpu(list, last) && *last >= *first;
}

bool each_cpu(const char *list, void (*found)(void *data, u32 cpu), void *data)
{
	u32 cpu, last;

	do {
		if (!take_range(&list, &cpu, &last))
			return false;
		for (; cpu <= last; cpu++)
			found(data, cpu);
	} while (*list++ == ',');
	return !list[-1];
}
