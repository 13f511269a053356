// SPDX-License-Identifier: GPL-2.0
/*
 * pmuk report: prints the contents of a file of pmuk record, task by task. A file that is cut short
 * or damaged is refused, because its sums would be wrong. See recording.h for the format.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
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
	u64 first_end;		/* when the first task with this PID exited, or NONE */
	u64 last_begin;		/* when the last one began, or 0 */
	struct entry entry;	/* for table_sort(), which sorts rows of pmuk top */
	char *name;
};

struct cpu {
	u32 cpu;
	u64 seen;		/* switches in the file */
	u64 reported;		/* lost switches that records report */
	u64 sums[NR_SUMS];	/* the latest sample has these */
	u64 idle, idle_slices;
	struct pmuk_sched_stat stat;
};

struct report {
	const char *name;	/* the file's name */
	const unsigned char *data;
	size_t size;
	struct perfdata_header header;
	struct reading events;	/* only the names of the events */
	u64 only;		/* the CPU to report, NONE: all */
	struct task *tasks;
	size_t nr_tasks, tasks_room;
	struct map index;	/* from a pid to its index in tasks */
	struct cpu *cpus;	/* from the account */
	size_t nr;
	struct recording_account account;	/* without its CPUs */
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

static struct cpu *cpu_of(struct report *r, const void *at, u32 cpu)
{
	size_t i;

	for (i = 0; i < r->nr; i++)
		if (r->cpus[i].cpu == cpu)
			return &r->cpus[i];
	broken(r, at, "CPU %u has no account", cpu);
}

static struct task *task_of(struct report *r, u32 pid)
{
	size_t *at = map_at(&r->index, pid);

	if (*at == MAP_NONE) {
		*at = r->nr_tasks;
		r->tasks = grow(r->tasks, r->nr_tasks, &r->tasks_room, sizeof(*r->tasks));
		r->tasks[r->nr_tasks++] =
			(struct task) { .pid = pid, .t.valid = true, .first_end = NONE };
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
	if (r->account.mode != PMUK_SCHED_RAW)
		task->saturated |= s->run == UINT32_MAX || s->wait == UINT32_MAX;
	if ((s->misc & PMUK_SCHED_CLASS_MASK) < NR_LEFT)
		task->t.left[s->misc & PMUK_SCHED_CLASS_MASK]++;
	task->t.valid &= !(s->misc & PMUK_SCHED_INVALID);
	for (i = 0; i < ARRAY_SIZE(s->counts); i++)
		task->t.counts[i] += s->counts[i];
}

/* Copies @size bytes from @at, of which @left are there. */
static void take(const struct report *r, const void *at, u64 left, void *to, size_t size)
{
	if (left < size)
		broken(r, at, "%zu bytes are needed where %llu are left", size,
		       (unsigned long long)left);
	memcpy(to, at, size);
}

/* Returns how much the sum has grown since the sample before. */
static u64 growth(const struct report *r, const void *at, struct cpu *c, unsigned int i, u64 sum)
{
	u64 before = c->sums[i];

	if (sum < before)
		broken(r, at, "a sum of CPU %u that shrinks", c->cpu);
	c->sums[i] = sum;
	return sum - before;
}

static void read_sums(struct report *r, struct cpu *c, const unsigned char *at, struct slice *s)
{
	unsigned int i, nr = SUM_COUNTS + (unsigned int)r->events.nr_events;
	u64 grown[NR_SUMS] = {}, sum[2];

	for (i = 0; i < nr; i++) {
		memcpy(sum, at + i * sizeof(sum), sizeof(sum));
		if (sum[1] != recording_id(c->cpu, i))
			broken(r, at, "a sum of another event");
		grown[i] = growth(r, at, c, i, sum[0]);
	}
	s->run = grown[s->pid ? SUM_RUN : SUM_IDLE];
	s->wait = grown[SUM_WAIT];
	for (i = 0; i < RECORDING_COUNTS; i++)
		s->counts[i] = grown[SUM_COUNTS + i];
}

static void add_sample(struct report *r, const unsigned char *at, size_t size)
{
	size_t sums = (SUM_COUNTS + (size_t)r->events.nr_events) * 2 * sizeof(u64);
	struct recording_sample sample;
	struct recording_raw raw;
	struct slice slice;
	struct cpu *cpu;

	if (size != sizeof(sample) + sums + sizeof(raw))
		broken(r, at, "a switch of %zu bytes", size);
	memcpy(&sample, at, sizeof(sample));
	memcpy(&raw, at + sizeof(sample) + sums, sizeof(raw));
	if (sample.nr * sizeof(*sample.sums) != sums || raw.size != sizeof(raw) - sizeof(raw.size))
		broken(r, at, "a switch of another layout");
	cpu = cpu_of(r, at, sample.cpu);
	if (sample.id != recording_id(sample.cpu, SUM_RUN))
		broken(r, at, "a sample of an unknown event");
	if ((raw.misc & PMUK_SCHED_CLASS_MASK) > PMUK_SCHED_MIGRATED)
		broken(r, at, "a switch of an unknown class");
	slice = (struct slice) { .pid = sample.tid, .misc = raw.misc };
	read_sums(r, cpu, at + sizeof(sample), &slice);
	if (slice.run != sample.period)
		broken(r, at, "a slice of two lengths");
	add_slice(r, cpu, &slice);
}

/* Adds lost switches of the CPU. Losses of perf's records about tasks have another id. */
static void add_lost(struct report *r, const unsigned char *at, size_t size)
{
	struct { u64 id, lost; } lost;
	struct perfdata_id id;

	take(r, at, size, &lost, sizeof(lost));
	if (lost.id < RECORDING_ID)
		return;
	take(r, at + sizeof(lost), size - sizeof(lost), &id, sizeof(id));
	cpu_of(r, at, id.cpu)->reported += lost.lost;
}

/* Children take over the name, so a long one in a file would take much memory. */
static void set_name(struct task *task, const char *name, size_t most)
{
	free(task->name);
	task->name = strndup(name, most < TASK_NAME ? most : TASK_NAME - 1);
	if (!task->name)
		die("there is no memory left");
}

static void add_name(struct report *r, const unsigned char *at, size_t size)
{
	struct { u32 pid, tid; } id;

	take(r, at, size, &id, sizeof(id));
	set_name(task_of(r, id.tid), (const char *)at + sizeof(id), size - sizeof(id));
}

/* The body of PERF_RECORD_FORK and PERF_RECORD_EXIT. */
struct life {
	u32 pid, ppid, tid, ptid;
	u64 time;
};

/* A task is named like its parent, until a record of its own says otherwise. */
static void add_fork(struct report *r, const unsigned char *at, size_t size)
{
	struct life begin;
	struct task *child;
	const char *name;

	take(r, at, size, &begin, sizeof(begin));
	child = task_of(r, begin.tid);
	name = task_of(r, begin.ptid)->name;
	child = task_of(r, begin.tid);	/* the call before may have moved it */
	/* All tasks of other pid namespaces have number 0. */
	if (name && begin.tid != begin.ptid)
		set_name(child, name, strlen(name));
	if (begin.time > child->last_begin)
		child->last_begin = begin.time;
}

static void add_exit(struct report *r, const unsigned char *at, size_t size)
{
	struct life end;
	struct task *task;

	take(r, at, size, &end, sizeof(end));
	task = task_of(r, end.tid);
	if (end.time < task->first_end)
		task->first_end = end.time;
}

/* The records of different CPUs are in no order, so their times count. */
static bool is_reused(const struct task *task)
{
	return task->first_end < task->last_begin;
}

static void add_record(struct report *r, const unsigned char *at,
		       const struct perf_event_header *h)
{
	const unsigned char *body = at + sizeof(*h);
	size_t size = h->size - sizeof(*h);

	switch (h->type) {
	case PERF_RECORD_SAMPLE:
		return add_sample(r, at, h->size);
	case PERF_RECORD_LOST:
		return add_lost(r, body, size);
	case PERF_RECORD_COMM:
		return add_name(r, body, size);
	case PERF_RECORD_FORK:
		return add_fork(r, body, size);
	case PERF_RECORD_EXIT:
		return add_exit(r, body, size);
	case PERF_RECORD_MMAP:	/* in files of older pmuk */
	case PERF_RECORD_MMAP2:
	case PERFDATA_FINISHED_ROUND:
		return;
	default:
		broken(r, at, "a record of type %u", h->type);
	}
}

static void read_records(struct report *r)
{
	const unsigned char *at = r->data + r->header.data.offset;
	u64 size = r->header.data.size;
	struct perf_event_header h;

	for (; size; at += h.size, size -= h.size) {
		take(r, at, size, &h, sizeof(h));
		if (h.size < sizeof(h) || h.size % 8 || h.size > size)
			broken(r, at, "a record of %u bytes where %llu are left", h.size,
			       (unsigned long long)size);
		add_record(r, at, &h);
	}
}

/* ---- what the file says about itself ---- */

static void check_section(const struct report *r, const void *at, const struct perfdata_section *s)
{
	if (s->offset > r->size || s->size > r->size - s->offset)
		broken(r, at, "a section that does not lie in the file");
}

static bool has_feature(const struct report *r, int feature)
{
	return r->header.features[feature / 64] >> feature % 64 & 1;
}

/* Returns the place of a feature, which has @size bytes. */
static const unsigned char *feature_of(const struct report *r, int feature, u64 *size)
{
	struct perfdata_section section;
	const unsigned char *at;
	u64 table = r->header.data.offset + r->header.data.size;
	int i;

	for (i = 0; i < feature; i++)
		table += has_feature(r, i) ? sizeof(section) : 0;
	at = r->data + table;
	take(r, at, table < r->size ? r->size - table : 0, &section, sizeof(section));
	check_section(r, at, &section);
	*size = section.size;
	return r->data + section.offset;
}

static void read_account(struct report *r)
{
	const unsigned char *at;
	struct recording_cpu cpu;
	u64 size;
	size_t i;

	if (!has_feature(r, PERFDATA_ACCOUNT))
		die("%s has no switches of pmuk record; perf(1) may be able to read it", r->name);
	at = feature_of(r, PERFDATA_ACCOUNT, &size);
	take(r, at, size, &r->account, sizeof(r->account));
	if (r->account.version != RECORDING_VERSION)
		die("%s has version %u, and this pmuk knows version %d: use the pmuk that wrote it",
		    r->name, r->account.version, RECORDING_VERSION);
	if (r->account.mode > PMUK_SCHED_RAW)
		broken(r, at, "mode %u", r->account.mode);
	if (size != sizeof(r->account) + (u64)r->account.nr_cpus * sizeof(cpu))
		broken(r, at, "an account of %u CPUs in %llu bytes", r->account.nr_cpus,
		       (unsigned long long)size);
	r->nr = r->account.nr_cpus;
	r->cpus = zalloc((r->nr + 1) * sizeof(*r->cpus));
	for (i = 0; i < r->nr; i++) {
		memcpy(&cpu, at + sizeof(r->account) + i * sizeof(cpu), sizeof(cpu));
		r->cpus[i] = (struct cpu) { .cpu = cpu.cpu, .stat = cpu.stat };
	}
	if (r->account.ended < r->account.begun)
		broken(r, at, "it ended before it began");
}

/* The event at @at of the feature, which has @size bytes. Returns where the next event begins. */
static u64 read_event(struct report *r, const unsigned char *desc, u64 at, u64 size, bool counted)
{
	struct reading *names = &r->events;
	struct { u32 ids, length; } event;
	u64 length;

	take(r, desc + at, size - at, &event, sizeof(event));
	at += sizeof(event);
	length = event.length + (u64)event.ids * sizeof(u64);
	if (length > size - at)
		broken(r, desc, "an event that is not complete");
	if (counted)
		snprintf(names->events[names->nr_events++], EVENT_NAME, "%.*s",
			 event.length < EVENT_NAME ? (int)event.length : EVENT_NAME,
			 (const char *)desc + at);
	return at + length;
}

/* Reads the names of the counted events, which come after run, wait and idle, and before tasks. */
static void read_events(struct report *r)
{
	struct { u32 nr, attr_size; } head;
	const unsigned char *desc;
	u64 size, at = sizeof(head);
	u32 i;

	desc = feature_of(r, PERFDATA_EVENT_DESC, &size);
	take(r, desc, size, &head, sizeof(head));
	if (head.nr < SUM_COUNTS + 1 || head.nr > NR_SUMS + 1)
		broken(r, desc, "%u events", head.nr);
	for (i = 0; i < head.nr - 1; i++) {
		if (head.attr_size > size - at)
			broken(r, desc, "an event that is not complete");
		at = read_event(r, desc, at + head.attr_size, size, i >= SUM_COUNTS);
	}
}

static void read_start(struct report *r)
{
	struct perfdata_header *h = &r->header;
	u64 magic;

	if (r->size < sizeof(magic))
		die("%s is not a file of pmuk record", r->name);
	memcpy(&magic, r->data, sizeof(magic));
	magic = __builtin_bswap64(magic);
	if (!memcmp(&magic, PERFDATA_MAGIC, sizeof(magic)))
		die("%s is of a machine with the other byte order; look at it there", r->name);
	if (memcmp(r->data, PERFDATA_MAGIC, sizeof(magic)))
		die("%s is not a file of pmuk record", r->name);
	take(r, r->data, r->size, h, sizeof(*h));
	check_section(r, r->data, &h->attrs);
	check_section(r, r->data, &h->data);
	if (!h->data.size || h->attrs.offset + h->attrs.size != r->size)
		broken(r, r->data + r->size, "the file does not end where its header says");
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

static const struct report *mapped;	/* for on_bus_error() */
static char unreadable[PATH_MAX + 128];

/* The kernel sends SIGBUS when a page of the file lies behind its end, or cannot be read. */
static void on_bus_error(int signal, siginfo_t *info, void *context)
{
	const unsigned char *at = info->si_addr;
	ssize_t ignored;

	(void)context;
	if (info->si_code == BUS_ADRERR && at >= mapped->data && at < mapped->data + mapped->size) {
		ignored = write(STDERR_FILENO, unreadable, strlen(unreadable));
		(void)ignored;
		_exit(failed_status);
	}
	raise(signal);		/* ends pmuk, as SA_RESETHAND has removed this handler */
}

static void catch_bus_error(const struct report *r)
{
	struct sigaction action = {
		.sa_sigaction = on_bus_error,
		.sa_flags = (int)(SA_SIGINFO | SA_RESETHAND),
	};

	mapped = r;
	snprintf(unreadable, sizeof(unreadable),
		 "pmuk: %s: it became shorter meanwhile, or cannot be read. Record again\n",
		 r->name);
	sigaction(SIGBUS, &action, NULL);
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
	catch_bus_error(r);
}

/* ---- accounts ---- */

static u64 overwritten(const struct report *r, const struct cpu *c)
{
	u64 known = c->seen + c->stat.lost + c->stat.discarded;

	if (r->account.mode != PMUK_SCHED_OVERWRITE || known > c->stat.switches)
		return 0;
	return c->stat.switches - known;
}

static bool adds_up(const struct report *r, const struct cpu *c)
{
	return c->reported == c->stat.lost &&
	       c->seen + c->stat.lost + c->stat.discarded + overwritten(r, c) == c->stat.switches;
}

static void put_cpu(const struct report *r, const struct cpu *c)
{
	char cell[CELL];

	printf("CPU %u: %llu switches: %llu seen, %llu lost, %llu discarded", c->cpu,
	       (unsigned long long)c->stat.switches, (unsigned long long)c->seen,
	       (unsigned long long)c->stat.lost, (unsigned long long)c->stat.discarded);
	if (r->account.mode == PMUK_SCHED_OVERWRITE)
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
	printf("%7u%c%7s%c %6s %7s %5s %5s %5s %5s %5s ", task->pid, is_reused(task) ? '*' : ' ',
	       format_ns(run, row->d.run), task->saturated ? '+' : ' ',
	       format_count(slices, task->slices),
	       format_ns(wait, row->d.wait), format_ratio(ipc, ratios.ipc, row->d.valid),
	       format_ratio(ghz, ratios.ghz, row->d.valid), left[VOLUNTARY], left[SAME],
	       left[OTHER]);
	put_text(stdout, task->name ? task->name : "-", 17);
	putchar('\n');
}

static void put_marks(const struct report *r, const struct delta *d)
{
	bool invalid = false, saturated = false, reused = false;
	size_t i;

	for (i = 0; i < d->nr; i++) {
		const struct task *task = task_of_row(r, &d->rows[i]);

		invalid |= !task->t.valid;
		saturated |= task->saturated;
		reused |= is_reused(task);
	}
	if (invalid || saturated || reused)
		putchar('\n');
	if (invalid)
		puts("?: not all slices were counted: counts are too low");
	if (saturated)
		puts("+: some slice or wait was longer than 4.29 s, and is counted as 4.29 s");
	if (reused)
		puts("*: tasks had this PID one after the other, and the row has the sum of these");
}

static void put_report(const struct report *r, const struct delta *d)
{
	char cell[CELL];
	size_t i;

	printf("%s: %zu tasks on %zu CPUs in %s, %s\n", r->name, d->nr, r->nr,
	       format_ns(cell, r->account.ended - r->account.begun),
	       r->account.mode == PMUK_SCHED_OVERWRITE ? "the latest switches" : "all switches");
	for (i = 0; i < r->nr; i++)
		if (r->only == NONE || r->only == r->cpus[i].cpu)
			put_cpu(r, &r->cpus[i]);
	printf("\n%7s %7s  %6s %7s %5s %5s %5s %5s %5s %s\n", "PID", "RUN", "SLICES", "WAIT", "IPC",
	       "GHZ", "VOL", "SAME", "OTHER", "TASK");
	for (i = 0; i < d->nr; i++)
		put_row(r, &d->rows[i]);
	put_marks(r, d);
}

static void json_cpu(const struct report *r, const struct cpu *c, struct json *j)
{
	json_open(j, NULL, '{');
	json_number(j, "cpu", c->cpu);
	json_number(j, "switches", c->stat.switches);
	json_number(j, "seen", c->seen);
	json_number(j, "lost", c->stat.lost);
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
	json_number(&j, "duration_ns", r->account.ended - r->account.begun);
	json_bool(&j, "overwrite", r->account.mode == PMUK_SCHED_OVERWRITE);
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
		json_bool(&j, "reused", is_reused(task));
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
	read_account(r);
	read_events(r);
	check_only(r);
	read_records(r);
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
