// SPDX-License-Identifier: GPL-2.0
/*
 * Writes MMAP2 and KSYMBOL records for the kernel's code that exists when a recording begins: the
 * kernel, its modules, and BPF programs. By these, perf names the kernel's addresses.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "recording.h"

static size_t aligned(u32 size)
{
	return ((size_t)size + 3) & ~(size_t)3;
}

/* Looks for the build id among ELF notes. */
static bool find_build_id(const unsigned char *at, size_t left, struct build_id *id)
{
	struct { u32 name_size, size, type; } note;
	size_t name, all;

	for (; left >= sizeof(note); at += all, left -= all) {
		memcpy(&note, at, sizeof(note));
		name = sizeof(note) + aligned(note.name_size);
		all = name + aligned(note.size);
		if (all > left)
			break;
		if (note.type != NT_GNU_BUILD_ID || note.name_size != sizeof(ELF_NOTE_GNU) ||
		    memcmp(at + sizeof(note), ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) ||
		    note.size > sizeof(id->bytes))
			continue;
		id->size = (unsigned char)note.size;
		memcpy(id->bytes, at + name, note.size);
		return true;
	}
	return false;
}

static bool read_build_id(const char *path, struct build_id *id)
{
	FILE *file = fopen(rooted(path), "re");
	unsigned char notes[4096];
	size_t size = file ? fread(notes, 1, sizeof(notes), file) : 0;

	if (file)
		fclose(file);
	return find_build_id(notes, size, id);
}

/* @notes: the file with the code's ELF notes */
static void put_kernel_map(struct track *t, u64 start, u64 size, const char *name,
			   const char *notes)
{
	struct mapping m = {
		.pid = UINT32_MAX,
		.start = start,
		.size = size,
		.offset = start,
		.prot = PROT_READ | PROT_EXEC,
	};

	strcpy(m.path, name);
	track_map(t, PERF_RECORD_MISC_KERNEL, &m, read_build_id(notes, &m.id));
}

/* ---- /proc/modules and /proc/kallsyms ---- */

#define LONGEST		65536	/* bytes of a BPF program */
#define DRAIN_LINES	4096

struct symbol {
	enum { MODULE_START, PROGRAM, OTHER_START, INSIDE } kind;	/* INSIDE: of a module */
	u64 address;
	u64 size;		/* MODULE_START: bytes, see put_module() */
	char name[128];		/* MODULE_START, PROGRAM */
};

struct symbols {
	bool hidden;		/* the kernel hides its addresses */
	u64 start, end;		/* the kernel's text */
	struct symbol *list;	/* if they are wanted */
	size_t nr, room;
};

static struct symbol *add_symbol(struct symbols *s, u64 address, const char *name)
{
	struct symbol *symbol;

	s->list = grow(s->list, s->nr, &s->room, sizeof(*s->list));
	symbol = &s->list[s->nr++];
	*symbol = (struct symbol) { .address = address };
	snprintf(symbol->name, sizeof(symbol->name), "%.127s", name);
	return symbol;
}

/* A line of /proc/modules has the module's size in field 2, and its address at the end. */
static void read_modules(struct symbols *s)
{
	FILE *file = fopen(rooted("/proc/modules"), "re");
	unsigned long long size, start;
	char line[1024], name[64];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s %llu %*s %*s %*s 0x%llx", name, &size, &start) != 3)
			continue;
		if (start)	/* or else the kernel hides addresses */
			add_symbol(s, start, name)->size = size;
	}
	if (file)
		fclose(file);
}

static void take_symbol(struct symbols *s, u64 address, const char *name, const char *module)
{
	if (!strcmp(name, "_text")) {
		s->start = address;
		s->hidden = !address;
	}
	if (!strcmp(name, "_etext"))
		s->end = address;
	if (!*module)
		return;
	/* The kernel's own trampolines are in the modules "[__builtin__ftrace]" and the like. */
	add_symbol(s, address, name)->kind = !strcmp(module, "[bpf]") ? PROGRAM :
		!strncmp(module, "[__builtin__", 12) ? OTHER_START : INSIDE;
}

/* The file is long, and new tasks go on filling the rings meanwhile. */
static void read_symbols(struct track *t, struct symbols *s)
{
	FILE *file = fopen(rooted("/proc/kallsyms"), "re");
	char line[768], name[512], module[80];
	unsigned long long address;
	size_t lines = 0;

	while (file && !s->hidden && !(s->end && !t->code) && fgets(line, sizeof(line), file)) {
		*module = 0;
		if (sscanf(line, "%llx %*c %511s %79s", &address, name, module) >= 2)
			take_symbol(s, address, name, module);
		if (++lines % DRAIN_LINES == 0)
			track_drain(t);
	}
	if (file)
		fclose(file);
}

static int by_address(const void *one, const void *two)
{
	u64 a = ((const struct symbol *)one)->address, b = ((const struct symbol *)two)->address;

	return a < b ? -1 : a > b;
}

/*
 * The size of a module is that of all its parts, but only the first part begins at its address. The
 * other parts may lie elsewhere, and other code where the size reaches: the map ends before that.
 */
static void put_module(struct track *t, const struct symbols *s, const struct symbol *module)
{
	char bracketed[sizeof(module->name) + 2], notes[sizeof(module->name) + 64];
	const struct symbol *next = module, *end = s->list + s->nr;
	u64 size = module->size;

	while (next < end && (next->kind == INSIDE || next->address == module->address))
		next++;
	if (next < end && next->address - module->address < size)
		size = next->address - module->address;
	snprintf(bracketed, sizeof(bracketed), "[%s]", module->name);
	snprintf(notes, sizeof(notes), "/sys/module/%s/notes/.note.gnu.build-id", module->name);
	put_kernel_map(t, module->address, size, bracketed, notes);
}

/*
 * The kernel does not tell how long a BPF program is. It ends before the next symbol, which may be
 * a module's.
 */
static void put_program(struct track *t, const struct symbols *s, const struct symbol *one)
{
	u64 size = (one + 1 < s->list + s->nr ? one[1].address : NONE) - one->address;
	struct {
		u64 address;
		u32 size;
		uint16_t type, flags;
		char name[sizeof(one->name) + 8];
	} program = {
		.address = one->address,
		.size = (u32)(size < LONGEST ? size : LONGEST),
		.type = PERF_RECORD_KSYMBOL_TYPE_BPF,
	};

	strcpy(program.name, one->name);
	track_put(t, PERF_RECORD_KSYMBOL, 0, &program, 16, program.name);
}

static void put_code(struct track *t, struct symbols *s)
{
	size_t i;

	if (s->nr)
		qsort(s->list, s->nr, sizeof(*s->list), by_address);
	for (i = 0; i < s->nr; i++)
		if (s->list[i].kind == MODULE_START)
			put_module(t, s, &s->list[i]);
	for (i = 0; i < s->nr; i++)
		if (s->list[i].kind == PROGRAM)
			put_program(t, s, &s->list[i]);
}

void put_kernel(struct track *t)
{
	struct symbols s = {};

	if (t->code)
		read_modules(&s);
	read_symbols(t, &s);
	if (s.hidden && t->code)
		warn_user("the kernel hides its addresses, so its functions have no names: %s",
			  "see the sysctl kernel.kptr_restrict");
	if (s.start && s.end > s.start)
		put_kernel_map(t, s.start, s.end - s.start, "[kernel.kallsyms]_text",
			       "/sys/kernel/notes");
	if (t->code)
		put_code(t, &s);
	free(s.list);
}
