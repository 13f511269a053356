// SPDX-License-Identifier: GPL-2.0
/*
 * pmuk report: prints the contents of a file of pmuk record, task by task. A file that is cut short
 * or damaged is refused, because its sums would be wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording.h"

struct task {
	u32 pid;
	u64 slices;
	struct totals t;
	bool saturated;		/* a slice or wait was longer than its record can say */
	struct entry entry;	/* for table_sort(), which sorts rows of pmuk top */
	char *name;
};

struct cpu {
	u32 cpu;
	u64 seen;		/* switches in the file */
	u64 reported;		/* lost switches that records or marks report */
	struct raw raw;
	u64 idle, idle_slices;
	bool closed;		/* the block RECORDING_STAT was read */
	struct pmuk_sched_stat stat;
};

struct report {
	const char *name;	/* the file's name */
	const unsigned char *data;
	size_t size;
	struct reading events;	/* only the names of the events */
	u32 mode, nr_cpus;
	u64 begun, ended;
	u64 only;		/* the CPU to report, NONE: all */
	struct task *tasks;
	size_t nr_tasks, tasks_room;
	struct map index;	/* from a pid to its index in tasks */
	struct cpu *cpus;
	size_t nr, cpus_room;
};

#define BROKEN	"it was cut short, or is damaged. Record again"

__noreturn __printf(3, 4)
static void broken(const struct report *r, const void *at, const char *format, ...)
{
	va_list args;
	char what[256];

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	die("%s: byte %zu: %s: " BROKEN, r->name, (size_t)((const unsigned char *)at - r->data),
	    what);
}

/* ---- what is in the file ---- */

static struct cpu *cpu_of(struct report *r, u32 cpu)
{
	size_t i;

	for (i = 0; i < r->nr; i++)
		if (r->cpus[i].cpu == cpu)
			return &r->cpus[i];
	r->cpus = grow(r->cpus, r->nr, &r->cpus_room, sizeof(*r->cpus));
	r->cpus[r->nr] = (struct cpu) { .cpu = cpu };
	return &r->cpus[r->nr++];
}

static struct task *task_of(struct report *r, u32 pid)
{
	size_t *at = map_at(&r->index, pid);

	if (*at == MAP_NONE) {
		*at = r->nr_tasks;
		r->tasks = grow(r->tasks, r->nr_tasks, &r->tasks_room, sizeof(*r->tasks));
		r->tasks[r->nr_tasks++] = (struct task) { .pid = pid, .t.valid = true };
	}
	return &r->tasks[*at];
}

static void add_slice(struct report *r, struct cpu *cpu, const struct slice *s)
{
	struct task *task;
	size_t i;

	cpu->seen++;
	if (r->only != NONE && r->only != cpu->cpu)
		return;
	if (!s->pid) {
		cpu->idle += s->run;
		cpu->idle_slices++;
		return;
	}
	task = task_of(r, s->pid);
	task->slices++;
	task->t.run += s->run;
	task->t.wait += s->wait;
	if (r->mode != PMUK_SCHED_RAW)
		task->saturated |= s->run == UINT32_MAX || s->wait == UINT32_MAX;
	if ((s->misc & PMUK_SCHED_CLASS_MASK) < NR_LEFT)
		task->t.left[s->misc & PMUK_SCHED_CLASS_MASK]++;
	task->t.valid &= !(s->misc & PMUK_SCHED_INVALID);
	for (i = 0; i < ARRAY_SIZE(s->counts); i++)
		task->t.counts[i] += s->counts[i];
}

static void check_class(const struct report *r, const unsigned char *at, u32 misc)
{
	if ((misc & PMUK_SCHED_CLASS_MASK) > PMUK_SCHED_MIGRATED)
		broken(r, at, "a switch of an unknown class");
}

static void add_switch(struct report *r, struct cpu *cpu, const unsigned char *at, size_t size)
{
	struct pmuk_sched_switch s;

	if (size != sizeof(s))
		broken(r, at, "a switch of %zu bytes", size);
	memcpy(&s, at, sizeof(s));
	check_class(r, at, s.header.misc);
	add_slice(r, cpu, &(struct slice) {
		.pid = s.prev_pid,
		.misc = s.header.misc,
		.run = s.run,
		.wait = s.wait,
		.counts = { s.counts[0], s.counts[1] },
	});
}

static void add_lost(struct report *r, struct cpu *cpu, const unsigned char *at, size_t size)
{
	struct recording_lost lost;

	if (size < sizeof(lost))
		broken(r, at, "a record of loss of %zu bytes", size);
	memcpy(&lost, at, sizeof(lost));
	cpu->reported += lost.lost;
}

static void add_records(struct report *r, u32 cpu_nr, const unsigned char *at, size_t size)
{
	struct cpu *cpu = cpu_of(r, cpu_nr);
	struct perf_event_header h;

	if (cpu->closed)
		broken(r, at, "records of CPU %u after its account", cpu_nr);
	if (r->mode == PMUK_SCHED_RAW)
		broken(r, at, "records in a file of packets");
	for (; size; at += h.size, size -= h.size) {
		memcpy(&h, at, sizeof(h));
		if (h.size < sizeof(h) || h.size % 8 || h.size > size)
			broken(r, at, "a record of %u bytes where %zu are left", h.size, size);
		if (h.type == PMUK_SCHED_RECORD_SWITCH)
			add_switch(r, cpu, at, h.size);
		else if (h.type == PERF_RECORD_LOST)
			add_lost(r, cpu, at, h.size);
		else if (h.type != PERF_RECORD_LOST_SAMPLES)
			broken(r, at, "a record of type %u", h.type);
	}
}

static void add_packets(struct report *r, u32 cpu_nr, const unsigned char *at, size_t size)
{
	struct cpu *cpu = cpu_of(r, cpu_nr);
	const char *fault;
	struct slice s;
	size_t length;

	if (cpu->closed)
		broken(r, at, "packets of CPU %u after its account", cpu_nr);
	if (r->mode != PMUK_SCHED_RAW)
		broken(r, at, "packets in a file of records");
	for (; size; at += length, size -= length) {
		length = raw_packet(&cpu->raw, at, size, &s, &fault);
		if (fault)
			broken(r, at, "%s", fault);
		if (*at == PMUK_SCHED_RAW_MARK)
			continue;
		check_class(r, at, s.misc);
		add_slice(r, cpu, &s);
	}
	cpu->reported = cpu->raw.missing;
}

static void add_stat(struct report *r, u32 cpu_nr, const unsigned char *at, size_t size)
{
	struct cpu *cpu = cpu_of(r, cpu_nr);

	if (size != sizeof(cpu->stat) || cpu->closed)
		broken(r, at, "a bad account of CPU %u", cpu_nr);
	memcpy(&cpu->stat, at, sizeof(cpu->stat));
	cpu->closed = true;
}

static void add_name(struct report *r, const unsigned char *at, size_t size)
{
	struct recording_task named;
	struct task *task;

	if (size != sizeof(named) || at[sizeof(named) - 1])
		broken(r, at, "a bad name");
	memcpy(&named, at, sizeof(named));
	task = task_of(r, named.pid);
	free(task->name);
	task->name = strdup(named.name);
	if (!task->name)
		die("there is no memory left");
}

static void add_block(struct report *r, const struct recording_block *b, const unsigned char *at)
{
	switch (b->type) {
	case RECORDING_RECORDS:
		add_records(r, b->cpu, at, b->size);
		break;
	case RECORDING_RAW:
		add_packets(r, b->cpu, at, b->size);
		break;
	case RECORDING_STAT:
		add_stat(r, b->cpu, at, b->size);
		break;
	case RECORDING_TASK:
		add_name(r, at, b->size);
		break;
	case RECORDING_END:
		if (b->size != sizeof(r->ended))
			broken(r, at, "a bad end");
		memcpy(&r->ended, at, sizeof(r->ended));
		break;
	default:
		broken(r, at, "a block of type %u", b->type);
	}
}

/* Returns how many zeros pad @size bytes at @at to a multiple of 8. @left: bytes after these. */
static size_t padding(const struct report *r, const unsigned char *at, u64 size, size_t left)
{
	size_t i, zeros = -size % 8;

	if (zeros > left)
		broken(r, at, "a block that is not complete");
	for (i = 0; i < zeros; i++)
		if (at[size + i])
			broken(r, at + size + i, "the padding of packets is not zero");
	return zeros;
}

static void read_blocks(struct report *r)
{
	size_t at = sizeof(struct recording_header), left;
	struct recording_block b = {};

	while (b.type != RECORDING_END) {
		left = r->size - at;
		if (left < sizeof(b))
			broken(r, r->data + at, "the file ends without the block of its end");
		memcpy(&b, r->data + at, sizeof(b));
		left -= sizeof(b);
		at += sizeof(b);
		if (b.size > left || (b.size % 8 && b.type != RECORDING_RAW))
			broken(r, r->data + at, "a block of %llu bytes where %zu are left",
			       (unsigned long long)b.size, left);
		add_block(r, &b, r->data + at);
		at += b.size + padding(r, r->data + at, b.size, left - b.size);
	}
	if (at != r->size)
		broken(r, r->data + at, "the file goes on after the block of its end");
}

static void read_names(struct report *r, const struct recording_header *h)
{
	struct reading *names = &r->events;

	memcpy(names->events, h->events, sizeof(names->events));
	while (names->nr_events < MAX_EVENTS && *names->events[names->nr_events])
		if (names->events[names->nr_events++][EVENT_NAME - 1])
			broken(r, r->data, "a bad name of an event");
	/* records have room for two events */
	if (names->nr_events > 2)
		names->nr_events = 2;
}

static void read_start(struct report *r)
{
	struct recording_header h;

	if (r->size < sizeof(h.magic) || memcmp(r->data, RECORDING_MAGIC, sizeof(h.magic)))
		die("%s is not a file of pmuk record", r->name);
	if (r->size < sizeof(h))
		broken(r, r->data + r->size, "the header is not complete");
	memcpy(&h, r->data, sizeof(h));
	if (h.order == __builtin_bswap32(RECORDING_ORDER))
		die("%s is of a machine with the other byte order; look at it there", r->name);
	if (h.order != RECORDING_ORDER)
		broken(r, r->data, "an unknown byte order");
	if (h.version != RECORDING_VERSION)
		die("%s has version %u, and this pmuk knows version %d: use the pmuk that wrote it",
		    r->name, h.version, RECORDING_VERSION);
	if (h.mode > PMUK_SCHED_RAW)
		broken(r, r->data, "mode %u", h.mode);
	r->mode = h.mode;
	r->nr_cpus = h.nr_cpus;
	r->begun = h.begun;
	read_names(r, &h);
}

static void check_accounts(const struct report *r)
{
	size_t i;

	if (r->nr != r->nr_cpus)
		broken(r, r->data, "%zu CPUs where %u are announced", r->nr, r->nr_cpus);
	for (i = 0; i < r->nr; i++)
		if (!r->cpus[i].closed)
			broken(r, r->data, "CPU %u has no account", r->cpus[i].cpu);
	if (r->ended < r->begun)
		broken(r, r->data, "it ended before it began");
}

static void check_only(const struct report *r)
{
	size_t i;

	for (i = 0; i < r->nr; i++)
		if (r->only == r->cpus[i].cpu)
			return;
	if (r->only != NONE)
		die("%s: CPU %llu was not recorded", r->name, (unsigned long long)r->only);
}

static void map_file(struct report *r)
{
	int fd = open(r->name, O_RDONLY | O_CLOEXEC);
	struct stat s;

	if (fd < 0 || fstat(fd, &s))
		die("%s: %s. pmuk record makes such a file", r->name, strerror(errno));
	if (!S_ISREG(s.st_mode) || !s.st_size)
		die("%s is not a file of pmuk record", r->name);
	r->size = (size_t)s.st_size;
	r->data = mmap(NULL, r->size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (r->data == MAP_FAILED)
		die("%s: %s", r->name, strerror(errno));
	close(fd);
}

/* ---- accounts ---- */

static u64 overwritten(const struct report *r, const struct cpu *c)
{
	u64 known = c->seen + c->stat.lost + c->stat.discarded;

	if (r->mode != PMUK_SCHED_OVERWRITE || known > c->stat.switches)
		return 0;
	return c->stat.switches - known;
}

/* Records may report fewer losses than the statistics have: the last ones come in no record. */
static bool adds_up(const struct report *r, const struct cpu *c)
{
	return c->reported <= c->stat.lost &&
	       c->seen + c->stat.lost + c->stat.discarded + overwritten(r, c) == c->stat.switches;
}

static void put_cpu(const struct report *r, const struct cpu *c)
{
	char cell[CELL];

	printf("CPU %u: %llu switches: %llu seen, %llu lost, %llu discarded", c->cpu,
	       (unsigned long long)c->stat.switches, (unsigned long long)c->seen,
	       (unsigned long long)c->stat.lost, (unsigned long long)c->stat.discarded);
	if (r->mode == PMUK_SCHED_OVERWRITE)
		printf(", %llu overwritten", (unsigned long long)overwritten(r, c));
	printf("; idle %s\n", format_ns(cell, c->idle));
	if (!adds_up(r, c))
		printf("CPU %u: these numbers do not add up\n", c->cpu);
}

/* ---- tasks, as rows of pmuk top ---- */

static void make_rows(const struct report *r, struct delta *d)
{
	size_t i;

	for (i = 0; i < r->nr_tasks; i++) {
		struct task *task = &r->tasks[i];

		if (!task->slices)
			continue;
		task->entry = (struct entry) { .kind = TASK, .id = task->pid, .name = task->name };
		d->rows = grow(d->rows, d->nr, &d->room, sizeof(*d->rows));
		d->rows[d->nr++] = (struct row) { .entry = &task->entry, .d = task->t };
	}
}

static const struct task *task_of_row(const struct report *r, const struct row *row)
{
	return &r->tasks[map_find(&r->index, row->entry->id)];
}

/* Returns how often a task left a CPU neither to wait nor preempted. SLICES includes these. */
static u64 other_reasons(const struct task *task)
{
	return task->slices - task->t.left[VOLUNTARY] - task->t.left[SAME] - task->t.left[OTHER];
}

static void put_row(const struct report *r, const struct row *row)
{
	const struct task *task = task_of_row(r, row);
	struct ratios ratios = ratios_of(&row->d, event_index(&r->events, "cycles"),
					 event_index(&r->events, "instructions"));
	char run[CELL], wait[CELL], slices[CELL], ipc[CELL], ghz[CELL], left[NR_LEFT][CELL];
	int i;

	for (i = 0; i < NR_LEFT; i++)
		format_count(left[i], row->d.left[i]);
	printf("%7u %7s%c %6s %7s %5s %5s %5s %5s %5s ", task->pid, format_ns(run, row->d.run),
	       task->saturated ? '+' : ' ', format_count(slices, task->slices),
	       format_ns(wait, row->d.wait), format_ratio(ipc, ratios.ipc, row->d.valid),
	       format_ratio(ghz, ratios.ghz, row->d.valid), left[VOLUNTARY], left[SAME],
	       left[OTHER]);
	put_text(stdout, task->name ? task->name : "-", 17);
	putchar('\n');
}

static void put_marks(const struct report *r)
{
	bool invalid = false, saturated = false;
	size_t i;

	for (i = 0; i < r->nr_tasks; i++) {
		invalid |= !r->tasks[i].t.valid;
		saturated |= r->tasks[i].saturated;
	}
	if (invalid || saturated)
		putchar('\n');
	if (invalid)
		puts("?: not all slices were counted: counts are too low");
	if (saturated)
		puts("+: some slice or wait was longer than 4.29 s, and is counted as 4.29 s");
}

static void put_report(const struct report *r, const struct delta *d)
{
	char cell[CELL];
	size_t i;

	printf("%s: %zu tasks on %zu CPUs in %s, %s\n", r->name, d->nr, r->nr,
	       format_ns(cell, r->ended - r->begun),
	       r->mode == PMUK_SCHED_OVERWRITE ? "the latest switches" : "all switches");
	for (i = 0; i < r->nr; i++)
		if (r->only == NONE || r->only == r->cpus[i].cpu)
			put_cpu(r, &r->cpus[i]);
	printf("\n%7s %7s  %6s %7s %5s %5s %5s %5s %5s %s\n", "PID", "RUN", "SLICES", "WAIT", "IPC",
	       "GHZ", "VOL", "SAME", "OTHER", "TASK");
	for (i = 0; i < d->nr; i++)
		put_row(r, &d->rows[i]);
	put_marks(r);
}

static void json_cpu(const struct report *r, const struct cpu *c, struct json *j)
{
	json_open(j, NULL, '{');
	json_number(j, "cpu", c->cpu);
	json_number(j, "switches", c->stat.switches);
	json_number(j, "seen", c->seen);
	json_number(j, "lost", c->stat.lost);
	json_number(j, "lost_reported", c->reported);
	json_number(j, "discarded", c->stat.discarded);
	json_number(j, "overwritten", overwritten(r, c));
	json_bool(j, "adds_up", adds_up(r, c));
	json_number(j, "idle_ns", c->idle);
	json_number(j, "idle_slices", c->idle_slices);
	json_close(j, '}');
}

static void json_report(const struct report *r, const struct delta *d)
{
	struct json j = { .out = stdout };
	size_t i;

	json_open(&j, NULL, '{');
	json_number(&j, "duration_ns", r->ended - r->begun);
	json_bool(&j, "overwrite", r->mode == PMUK_SCHED_OVERWRITE);
	json_events(&j, &r->events);
	json_open(&j, "cpus", '[');
	for (i = 0; i < r->nr; i++)
		if (r->only == NONE || r->only == r->cpus[i].cpu)
			json_cpu(r, &r->cpus[i], &j);
	json_close(&j, ']');
	json_open(&j, "tasks", '[');
	for (i = 0; i < d->nr; i++) {
		const struct task *task = task_of_row(r, &d->rows[i]);

		json_open(&j, NULL, '{');
		json_number(&j, "pid", task->pid);
		if (task->name)
			json_text(&j, "name", task->name);
		json_number(&j, "slices", task->slices);
		json_number(&j, "other_reasons", other_reasons(task));
		json_bool(&j, "saturated", task->saturated);
		json_totals(&j, &r->events, &task->t);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	json_end(&j);
}

static void report_free(struct report *r)
{
	size_t i;

	for (i = 0; i < r->nr_tasks; i++)
		free(r->tasks[i].name);
	free(r->tasks);
	free(r->cpus);
	map_free(&r->index);
	munmap((void *)r->data, r->size);
}

static void read_file(struct report *r)
{
	map_file(r);
	read_start(r);
	read_blocks(r);
	check_accounts(r);
	check_only(r);
}

int cmd_report(int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' }, {} };
	struct report r = { .name = RECORDING_FILE, .only = NONE };
	struct table table = { .r = &r.events };
	struct delta d = {};
	bool json = false;
	int c;

	while ((c = getopt_long(argc, argv, "c:i:js:", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			r.only = number_or_die(optarg, 0, UINT32_MAX, "-c");
			break;
		case 'i':
			r.name = optarg;
			break;
		case 'j':
			json = true;
			break;
		case 's':
			table.sort = sort_or_die(optarg);
			break;
		default:
			usage();
		}
	}
	no_more_arguments(argc, argv);
	read_file(&r);
	make_rows(&r, &d);
	table_sort(&table, &d);
	if (json)
		json_report(&r, &d);
	else
		put_report(&r, &d);
	delta_free(&d);
	report_free(&r);
	return 0;
}
