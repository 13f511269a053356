// SPDX-License-Identifier: GPL-2.0
/*
 * Explorers try all interleavings of calls. A machine is a call that runs in single steps.
 * Before each instruction of a machine, at_each_step() saves memory and both machines, calls a
 * function that may do anything with them, and restores them. That function may call
 * at_each_step() for the other machine, and at_this_step() to try several things in one place:
 * LEVELS is how deep such calls nest.
 *
 * A quiet instruction accesses registers and its machine's own stack only, see quiet.awk. What
 * comes right after it could as well come right before it, and has: so at_each_step() does not call
 * the function there again.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interleave.h"

#define PARTS	4
#define LEVELS	4

struct machine outer = { .done = true }, inner = { .done = true };
u64 explored;

static struct part {
	void *start;
	size_t size;
} parts[PARTS];

static struct image {
	struct machine_image outer, inner;
	void *parts[PARTS];
} images[LEVELS];

static int level;
static u8 quiet[1 << 20];	/* a byte for each address from QUIET_BASE on */

#define QUIET_BASE	0x400000UL	/* the first address of a program without PIE */

void keep_memory(void *start, size_t size)
{
	int part, i;

	for (part = 0; part < PARTS && parts[part].size; part++)
		;
	if (part == PARTS)
		errx(2, "more than %d parts of memory are to be kept", PARTS);
	parts[part] = (struct part){ start, size };
	for (i = 0; i < LEVELS; i++) {
		images[i].parts[part] = malloc(size);
		if (!images[i].parts[part])
			err(2, "memory to save what is explored");
	}
}

void keep_page(struct perf_event_mmap_page *page)
{
	keep_memory(&page->data_head, (u8 *)(&page->aux_size + 1) - (u8 *)&page->data_head);
}

static void save(struct image *image)
{
	int i;

	machine_save(&outer, &image->outer);
	machine_save(&inner, &image->inner);
	for (i = 0; i < PARTS; i++)
		memcpy(image->parts[i], parts[i].start, parts[i].size);
}

static void load(const struct image *image)
{
	int i;

	machine_load(&outer, &image->outer);
	machine_load(&inner, &image->inner);
	for (i = 0; i < PARTS; i++)
		memcpy(parts[i].start, image->parts[i], parts[i].size);
}

void at_this_step(void (*visit)(void *arg), void *arg)
{
	struct image *image = &images[level++];

	save(image);
	visit(arg);
	load(image);
	level--;
}

static bool is_quiet(u64 address)
{
	return address - QUIET_BASE < sizeof(quiet) && quiet[address - QUIET_BASE];
}

/* Reads the list that the Makefile has made beside the program. */
static void read_quiet(const char *program)
{
	char path[4096];
	unsigned long address;
	FILE *list;

	snprintf(path, sizeof(path), "%s.quiet", program);
	list = fopen(path, "r");
	if (!list)
		err(2, "%s", path);
	while (fscanf(list, "%lx", &address) == 1)
		if (address - QUIET_BASE < sizeof(quiet))
			quiet[address - QUIET_BASE] = 1;
	fclose(list);
}

void at_each_step(struct machine *m, void (*visit)(void *arg), void *arg)
{
	bool seen = false;

	do {
		if (!seen)
			at_this_step(visit, arg);
		seen = is_quiet(machine_at(m));
	} while (step(m) && !failed());
}

void explore_calls(struct machine *m, void (*function)(void *), void *function_arg,
		   void (*visit)(void *arg), void *arg)
{
	machine_start(m, function, function_arg);
	at_each_step(m, visit, arg);
}

int run_explorer(const struct test *tests, size_t nr, int argc, char **argv)
{
	int status;

	if (!machine_setup())
		skip_tests = "single steps are for x86_64 only";
	else
		read_quiet(argv[0]);
	status = run_tests(tests, nr, argc, argv);
	if (explored)
		printf("# %llu interleavings\n", explored);
	return status;
}
