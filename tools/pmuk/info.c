// SPDX-License-Identifier: GPL-2.0
/*
 * pmuk info: prints the counted events, the time since counting began, the events that could not be
 * opened, and the memory that counting takes.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "pmuk.h"

static size_t count_kind(const struct reading *r, enum kind kind)
{
	size_t i, n = 0;

	for (i = 0; i < r->nr; i++)
		n += r->entries[i].kind == kind;
	return n;
}

void print_memory(FILE *out, const struct reading *r)
{
	const struct memory *m = &r->memory;

	fprintf(out, "memory: %llu bytes per task (%llu tasks), %llu per CPU, %llu for the table\n",
		(unsigned long long)m->per_task, (unsigned long long)m->tasks,
		(unsigned long long)m->per_cpu, (unsigned long long)m->table);
}

/* Prints NAME:-ERRNO in words. */
static void print_one_missing(FILE *out, char *item)
{
	char *colon = strrchr(item, ':');
	int error = colon ? -atoi(colon + 1) : 0;

	if (!colon || error <= 0) {
		put_text(out, item, 0);
		return;
	}
	*colon = 0;
	put_text(out, item, 0);
	fprintf(out, " (%s)", strerror(error));
}

void print_missing(FILE *out, const struct reading *r)
{
	char *copy, *item, *save;
	const char *before = "missing: ";

	if (!strcmp(r->missing, "none"))
		return;
	copy = strdup(r->missing);
	if (!copy)
		die("there is no memory left");
	for (item = strtok_r(copy, " ", &save); item; item = strtok_r(NULL, " ", &save)) {
		fputs(before, out);
		print_one_missing(out, item);
		before = ", ";
	}
	fputc('\n', out);
	free(copy);
}

static void print_events(const struct reading *r)
{
	int i;

	printf("events:");
	for (i = 0; i < r->nr_events; i++)
		printf(" %s", r->events[i]);
	puts(r->nr_events ? "" : " none");
}

static void print_info(const struct reading *r, size_t cpus)
{
	const struct memory *m = &r->memory;
	char cell[CELL];

	printf("counting for %s\n", format_ns(cell, r->timestamp - r->since));
	print_events(r);
	print_missing(stdout, r);
	print_memory(stdout, r);
	printf("in all: %llu bytes with %zu CPUs\n",
	       (unsigned long long)(m->per_task * m->tasks + m->per_cpu * cpus + m->table), cpus);
	printf("unattributed: %llu slices of tasks for which there was no memory\n",
	       (unsigned long long)r->unattributed);
}

static void info_json(const struct reading *r, size_t cpus)
{
	struct json j = { .out = stdout };

	json_open(&j, NULL, '{');
	json_bool(&j, "counting", r->on);
	if (r->on) {
		json_number(&j, "timestamp_ns", r->timestamp);
		json_number(&j, "since_ns", r->since);
		json_events(&j, r);
		json_text(&j, "missing", r->missing);
		json_open(&j, "memory", '{');
		json_number(&j, "bytes_per_task", r->memory.per_task);
		json_number(&j, "bytes_per_cpu", r->memory.per_cpu);
		json_number(&j, "bytes_of_table", r->memory.table);
		json_number(&j, "tasks", r->memory.tasks);
		json_number(&j, "cpus", cpus);
		json_close(&j, '}');
		json_number(&j, "unattributed_slices", r->unattributed);
	}
	json_close(&j, '}');
	json_end(&j);
}

int cmd_info(int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' }, {} };
	struct reading r;
	bool json = false;
	int c;

	while ((c = getopt_long(argc, argv, "j", options, NULL)) != -1) {
		if (c != 'j')
			usage();
		json = true;
	}
	no_more_arguments(argc, argv);
	read_any("cpus", &r);
	if (json)
		info_json(&r, count_kind(&r, CPU));
	else if (r.on)
		print_info(&r, count_kind(&r, CPU));
	else
		puts("not counting. As root: pmuk enable");
	forget(&r);
	return 0;
}
