// SPDX-License-Identifier: GPL-2.0
/*
 * Writes COMM and MMAP2 records for the tasks and their code that exist when a recording begins, as
 * perf record does. What exits while /proc is read is left out.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "recording.h"

/* ---- names ---- */

struct name {
	u32 pid, tid;
	char text[TASK_NAME];
};

/* Reads the first line of the file. */
static bool read_line(const char *path, char *line, int room)
{
	FILE *file = fopen(rooted(path), "re");
	bool got = file && fgets(line, room, file);

	if (file)
		fclose(file);
	if (got)
		line[strcspn(line, "\n")] = 0;
	return got;
}

static void put_name(struct track *t, u32 pid, u32 tid)
{
	struct name name = { .pid = pid, .tid = tid };
	char path[64], line[sizeof(name.text)];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", pid, tid);
	if (!read_line(path, line, sizeof(line)))
		return;
	strcpy(name.text, line);	/* zeros follow */
	track_belongs(t, tid, pid);
	track_put(t, PERF_RECORD_COMM, 0, &name, offsetof(struct name, text), name.text);
}

/* ---- code ---- */

static bool query_build_id(int maps, u64 start, struct build_id *id)
{
	struct map_query q = {
		.all = sizeof(q),
		.address = start,
		.id_size = sizeof(id->bytes),
	};
	struct build_id found = {};

	q.id = (uintptr_t)found.bytes;
	if (ioctl(maps, MAP_QUERY, &q) || !q.id_size || q.start != start)
		return false;
	found.size = (unsigned char)q.id_size;
	*id = found;
	return true;
}

/* Puts the map of a line of the file @maps, /proc/PID/maps, if the map has code. */
static void put_map(struct track *t, u32 pid, const char *line, int maps)
{
	struct mapping m = { .pid = pid, .tid = pid, .prot = 5, .flags = 2 };
	unsigned long long start, end, offset, inode;
	char rights[5];
	int at = 0;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, rights, &offset,
		   &m.major, &m.minor, &inode, &at) != 7 || rights[2] != 'x')
		return;
	m.start = start;
	m.size = end - start;
	m.offset = offset;
	m.inode = inode;
	snprintf(m.path, sizeof(m.path), "%.*s", (int)strcspn(line + at, "\n"), line + at);
	if (!*m.path)
		strcpy(m.path, "//anon");
	track_map(t, PERF_RECORD_MISC_USER, &m, query_build_id(maps, start, &m.id));
}

static void put_maps(struct track *t, u32 pid)
{
	char path[64], line[PATH_MAX + 128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	file = fopen(rooted(path), "re");
	while (file && fgets(line, sizeof(line), file))
		put_map(t, pid, line, fileno(file));
	if (file)
		fclose(file);
}

/* ---- all ---- */

/*
 * Calls @found for each entry of the directory that is a number. New tasks go on filling the rings
 * meanwhile, so each call drains them.
 */
static void each_number(struct track *t, const char *directory, u32 pid,
			void (*found)(struct track *t, u32 pid, u32 number))
{
	DIR *dir = opendir(rooted(directory));
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		found(t, pid, (u32)strtoul(entry->d_name, NULL, 10));
		track_drain(t);
	}
	if (dir)
		closedir(dir);
}

static void put_process(struct track *t, u32 none, u32 pid)
{
	char path[64];

	(void)none;
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	each_number(t, path, pid, put_name);
	if (t->code)
		put_maps(t, pid);
}

void put_present(struct track *t)
{
	put_kernel(t);
	each_number(t, "/proc", 0, put_process);
}
