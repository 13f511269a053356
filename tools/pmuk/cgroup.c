// SPDX-License-Identifier: GPL-2.0
/*
 * Makes a cgroup for COMMAND below pmuk's own. The totals of that cgroup are those of COMMAND and
 * its children, and of no other task.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pmuk.h"

#define SETTLE		100	/* ms to wait for the last tasks to exit */
#define FIELD_ROOT	3	/* index of the field in a line of mountinfo */
#define FIELD_MOUNT	4

static struct cgroup *made;	/* the cgroup to remove at exit */

static void remove_made(void)
{
	if (made)
		cgroup_remove(made);
}

/* Returns true if a line of mountinfo is of cgroup2: @root is mounted at @mount. */
static bool parse_mount(char *line, char **root, char **mount)
{
	char *type = strstr(line, " - "), *field, *save;
	int i;

	if (!type || strncmp(type, " - cgroup2 ", 11))
		return false;
	for (i = 0, field = strtok_r(line, " ", &save); field;
	     i++, field = strtok_r(NULL, " ", &save)) {
		if (i == FIELD_ROOT)
			*root = field;
		if (i == FIELD_MOUNT) {
			*mount = field;
			unescape(*root);
			unescape(*mount);
			return true;
		}
	}
	return false;
}

/* Returns @path without its leading @root, or NULL if @path is not below @root. */
static const char *below(const char *root, const char *path)
{
	size_t len = strlen(root);

	if (!strcmp(root, "/"))
		return path;
	if (strncmp(path, root, len) || (path[len] && path[len] != '/'))
		return NULL;
	return path + len;
}

/* Finds the directory of the cgroup @own. */
static void find_directory(const char *own, char *directory, size_t size)
{
	size_t len;
	char *text = read_source("/proc/self/mountinfo", &len), *line, *save, *root, *mount;
	const char *rest = NULL;
	bool any = false;

	for (line = strtok_r(text, "\n", &save); line && !rest;
	     line = strtok_r(NULL, "\n", &save)) {
		if (!parse_mount(line, &root, &mount))
			continue;
		any = true;
		rest = below(root, own);
		if (rest && snprintf(directory, size, "%s%s", mount, rest) >= (int)size)
			die("the path of pmuk's own cgroup is too long");
	}
	if (!any)
		die("cgroup2 is not mounted, and pmuk stat needs it. As root: %s",
		    "mount -t cgroup2 none /sys/fs/cgroup");
	if (!rest)
		die("pmuk's own cgroup, %s, is not in any cgroup2 that is mounted here", own);
	free(text);
}

static void own_cgroup(char *path, size_t size)
{
	size_t len;
	char *text = read_source("/proc/self/cgroup", &len), *line, *save;

	*path = 0;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (!strncmp(line, "0::", 3))
			snprintf(path, size, "%s", line + 3);
	free(text);
	if (!*path)
		die("this kernel has no cgroup2, which pmuk stat needs");
}

__noreturn static void cannot_make(const char *path)
{
	if (errno == EACCES || errno == EPERM || errno == EROFS)
		die("%s: cannot make this cgroup: %s. Run pmuk as root, or delegated to: %s",
		    path, strerror(errno),
		    "systemd-run --user --scope -p Delegate=yes pmuk stat ...");
	die("%s: cannot make this cgroup: %s", path, strerror(errno));
}

void cgroup_make(struct cgroup *c)
{
	char own[PATH_MAX], directory[PATH_MAX];
	struct stat s;

	own_cgroup(own, sizeof(own));
	find_directory(own, directory, sizeof(directory));
	if (snprintf(c->path, sizeof(c->path), "%s%spmuk-stat.%d", directory,
		     directory[strlen(directory) - 1] == '/' ? "" : "/",
		     getpid()) >= (int)sizeof(c->path))
		die("the path of pmuk's own cgroup is too long");
	if (mkdir(c->path, 0755))
		cannot_make(c->path);
	made = c;
	atexit(remove_made);
	if (stat(c->path, &s))
		die("%s: %s", c->path, strerror(errno));
	c->id = s.st_ino;
}

static FILE *open_file(const char *directory, const char *name, const char *mode)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return fopen(path, mode);
}

static bool is_empty(const struct cgroup *c)
{
	FILE *events = open_file(c->path, "cgroup.events", "re");
	char line[64];
	bool empty = true;

	while (events && fgets(line, sizeof(line), events))
		empty &= strcmp(line, "populated 1\n") != 0;
	if (events)
		fclose(events);
	return empty;
}

bool cgroup_settle(const struct cgroup *c)
{
	struct timespec ms = { .tv_nsec = 1000000 };
	int i;

	for (i = 0; i < SETTLE && !is_empty(c); i++)
		nanosleep(&ms, NULL);
	return is_empty(c);
}

/* Processes that outlive COMMAND move to the cgroup that COMMAND was started in. */
static void move_out(const struct cgroup *c)
{
	FILE *procs = open_file(c->path, "cgroup.procs", "re"), *parent;
	char line[32];

	while (procs && fgets(line, sizeof(line), procs)) {
		parent = open_file(c->path, "../cgroup.procs", "we");
		if (!parent)
			break;
		fputs(line, parent);
		fclose(parent);
	}
	if (procs)
		fclose(procs);
}

void cgroup_remove(struct cgroup *c)
{
	if (!made)
		return;
	made = NULL;
	if (!rmdir(c->path))
		return;
	move_out(c);
	if (!rmdir(c->path))
		return;
	warn_user("%s stays: %s. When all in it has ended: rmdir %s", c->path, strerror(errno),
		  c->path);
}
