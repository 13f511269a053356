// SPDX-License-Identifier: GPL-2.0
/*
 * Writes COMM, MMAP and MMAP2 records for the tasks and the code that exist when a recording
 * begins, as perf record does. What exits while /proc is read is left out.
 */
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "recording.h"

/* Records have zeros after a text, at least one, up to a multiple of 8 bytes. */
static size_t padded(size_t length)
{
	return (length / 8 + 1) * 8;
}

/* @text: zeros follow the text in @body, which has @size bytes before the text */
static void put(struct track *t, u32 type, u32 misc, const void *body, size_t size,
		const char *text)
{
	const struct perfdata_id id = track_id(t, 0);

	perfdata_put_record(t->file, type, misc, body, size + padded(strlen(text)), &id);
}

/* ---- names ---- */

struct name {
	u32 pid, tid;
	char text[80];
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
	put(t, PERF_RECORD_COMM, 0, &name, offsetof(struct name, text), name.text);
}

/* ---- code ---- */

struct mapping {
	u32 pid, tid;
	u64 start, size, offset;
	u32 major, minor;
	u64 inode, generation;
	u32 prot, flags;
	char path[PATH_MAX];
};

/* Puts the map of a line of /proc/PID/maps if it has code. */
static void put_map(struct track *t, u32 pid, const char *line)
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
	put(t, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, &m, offsetof(struct mapping, path),
	    *m.path ? m.path : strcpy(m.path, "//anon"));
}

static void put_maps(struct track *t, u32 pid)
{
	char path[64], line[PATH_MAX + 128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	file = fopen(rooted(path), "re");
	while (file && fgets(line, sizeof(line), file))
		put_map(t, pid, line);
	if (file)
		fclose(file);
}

struct kernel_map {
	u32 pid, tid;
	u64 start, size, offset;
	char name[72];
};

static void put_kernel_map(struct track *t, u64 start, u64 size, const char *name)
{
	struct kernel_map m = { .pid = UINT32_MAX, .start = start, .size = size, .offset = start };

	snprintf(m.name, sizeof(m.name), "%s", name);
	put(t, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL, &m, offsetof(struct kernel_map, name),
	    m.name);
}

/* A line of /proc/modules has the module's size in field 2, and its address at the end. */
static void put_modules(struct track *t)
{
	FILE *file = fopen(rooted("/proc/modules"), "re");
	unsigned long long size, start;
	char line[1024], name[64], bracketed[68];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s %llu %*s %*s %*s 0x%llx", name, &size, &start) != 3)
			continue;
		if (!start)	/* the kernel hides addresses */
			continue;
		snprintf(bracketed, sizeof(bracketed), "[%s]", name);
		put_kernel_map(t, start, size, bracketed);
	}
	if (file)
		fclose(file);
}

/*
 * Puts where the kernel's code lies, by which perf recognizes its addresses. The kernel may hide
 * that: then its addresses have no names.
 */
static void put_kernel(struct track *t)
{
	FILE *file = fopen(rooted("/proc/kallsyms"), "re");
	unsigned long long address, start = 0, end = 0;
	char line[256], name[128];

	while (file && !end && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx %*c %127s", &address, name) != 2)
			continue;
		if (!strcmp(name, "_text"))
			start = address;
		if (!strcmp(name, "_etext"))
			end = address;
	}
	if (file)
		fclose(file);
	if (start && end > start)
		put_kernel_map(t, start, end - start, "[kernel.kallsyms]_text");
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
	if (t->code)
		put_modules(t);
	each_number(t, "/proc", 0, put_process);
}
