// SPDX-License-Identifier: GPL-2.0
/*
 * pmuk export: prints totals as OpenMetrics text, for collectors such as Prometheus. The number of
 * series depends on the CPUs and on the cgroups down to some level. Tasks, which come and go, have
 * series only on demand.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "pmuk.h"

#define DEPTH		3	/* levels of cgroups by default */
#define LE_FIRST	8	/* buckets end at 2^8 ns ... */
#define LE_LAST		36	/* ... 2^36 ns, every second power of two */

/* Totals of CPUs, cgroups or tasks: the middle of the metrics' names, their label and help. */
struct scope {
	const char *name, *label, *of;
};

static const struct scope cpu_scope = { "cpu", "cpu", "tasks on each CPU" };
static const struct scope cgroup_scope = { "cgroup", "cgroup", "the tasks of each cgroup" };
static const struct scope subtree_scope = { "subtree", "cgroup",
					    "each cgroup and all below it, also removed ones" };
static const struct scope task_scope = { "task", "task", "each task" };

struct series {
	const struct entry *entry;
	char *label;
};

struct set {
	const struct scope *scope;
	const struct reading *r;
	struct series *series;
	size_t nr, room;
};

/* ---- text ---- */

static void put_label(FILE *out, const char *text)
{
	int length;

	for (; *text; text += length ? length : 1) {
		length = utf8_length(text);
		if (!length)
			fprintf(out, "\\\\x%02x", (unsigned char)*text);
		else if (*text == '\n')
			fputs("\\n", out);
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			fwrite(text, 1, (size_t)length, out);
	}
}

static void put_family(FILE *out, const char *name, const char *type, const char *unit,
		       const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
	if (*unit)
		fprintf(out, "# UNIT %s %s\n", name, unit);
}

/* Prints all digits of @ns; a double would lose some. */
static void put_seconds(FILE *out, u64 ns)
{
	fprintf(out, "%llu.%09llu", (unsigned long long)(ns / NSEC),
		(unsigned long long)(ns % NSEC));
}

static void put_value(FILE *out, u64 value, bool seconds)
{
	if (seconds)
		put_seconds(out, value);
	else
		fprintf(out, "%llu", (unsigned long long)value);
	fputc('\n', out);
}

/* ---- totals ---- */

static void put_sample(FILE *out, const struct set *s, const struct series *one, const char *metric,
		       const char *label, const char *label_value, u64 value, bool seconds)
{
	if (value == NONE)
		return;
	fprintf(out, "pmuk_sched_%s_%s{%s=\"", s->scope->name, metric, s->scope->label);
	put_label(out, one->label);
	fputc('"', out);
	if (label) {
		fprintf(out, ",%s=\"", label);
		put_label(out, label_value);
		fputc('"', out);
	}
	fputs("} ", out);
	put_value(out, value, seconds);
}

static void family_of(FILE *out, const struct set *s, const char *metric, const char *type,
		      const char *unit, const char *help)
{
	char name[64], text[160];

	snprintf(name, sizeof(name), "pmuk_sched_%s_%s", s->scope->name, metric);
	snprintf(text, sizeof(text), "%s %s.", help, s->scope->of);
	put_family(out, name, type, unit, text);
}

static void put_times(FILE *out, const struct set *s)
{
	size_t i;

	family_of(out, s, "run_seconds", "counter", "seconds", "Time run by");
	for (i = 0; i < s->nr; i++)
		put_sample(out, s, &s->series[i], "run_seconds_total", NULL, NULL,
			   s->series[i].entry->t.run, true);
	if (!s->nr || s->series[0].entry->t.wait == NONE)
		return;
	family_of(out, s, "wait_seconds", "counter", "seconds", "Time waited for a CPU by");
	for (i = 0; i < s->nr; i++)
		put_sample(out, s, &s->series[i], "wait_seconds_total", NULL, NULL,
			   s->series[i].entry->t.wait, true);
}

static void put_switches(FILE *out, const struct set *s)
{
	static const char *const kinds[NR_LEFT] = { "voluntary", "same_cgroup", "other_cgroup" };
	size_t i;
	int k;

	family_of(out, s, "switches", "counter", "",
		  "Switches away, by will or preempted by the same or another cgroup, of");
	for (i = 0; i < s->nr; i++)
		for (k = 0; k < NR_LEFT; k++)
			put_sample(out, s, &s->series[i], "switches_total", "kind", kinds[k],
				   s->series[i].entry->t.left[k], false);
}

static void put_events(FILE *out, const struct set *s)
{
	size_t i;
	int e;

	if (!s->r->nr_events)
		return;
	family_of(out, s, "events", "counter", "", "Hardware events counted for");
	for (i = 0; i < s->nr; i++)
		for (e = 0; e < s->r->nr_events; e++)
			if (event_index(s->r, s->r->events[e]) == e)
				put_sample(out, s, &s->series[i], "events_total", "event",
					   s->r->events[e], s->series[i].entry->t.counts[e], false);
	family_of(out, s, "events_complete", "gauge", "", "1 if all slices are in the events of");
	for (i = 0; i < s->nr; i++)
		put_sample(out, s, &s->series[i], "events_complete", NULL, NULL,
			   s->series[i].entry->t.valid, false);
}

static void add_series(struct set *s, const struct entry *e, char *label)
{
	if (!label)
		die("there is no memory left");
	s->series = grow(s->series, s->nr, &s->room, sizeof(*s->series));
	s->series[s->nr++] = (struct series) { e, label };
}

static void put_set(FILE *out, struct set *s)
{
	size_t i;

	if (s->nr) {
		put_times(out, s);
		put_switches(out, s);
		put_events(out, s);
	}
	for (i = 0; i < s->nr; i++)
		free(s->series[i].label);
	free(s->series);
}

/* ---- CPUs ---- */

static char *number_label(u64 number)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	return strdup(text);
}

static void put_idle(FILE *out, const struct reading *r)
{
	size_t i;

	put_family(out, "pmuk_sched_cpu_idle_seconds", "counter", "seconds",
		   "Time of each CPU's idle task.");
	for (i = 0; i < r->nr; i++) {
		if (r->entries[i].kind != IDLE)
			continue;
		fprintf(out, "pmuk_sched_cpu_idle_seconds_total{cpu=\"%llu\"} ",
			(unsigned long long)r->entries[i].id);
		put_value(out, r->entries[i].t.run, true);
	}
}

/* The kernel gives 0 for an unknown time, which gets no series. */
static void put_irq(FILE *out, const struct reading *r)
{
	static const char *const format =
		"pmuk_sched_cpu_irq_seconds_total{cpu=\"%llu\",kind=\"%s\"} ";
	size_t i;

	put_family(out, "pmuk_sched_cpu_irq_seconds", "counter", "seconds",
		   "Time of each CPU in interrupts since boot.");
	for (i = 0; i < r->nr; i++) {
		const struct entry *e = &r->entries[i];

		if (e->kind != IRQ || !(e->hard + e->soft))
			continue;
		fprintf(out, format, (unsigned long long)e->id, "hard");
		put_value(out, e->hard, true);
		fprintf(out, format, (unsigned long long)e->id, "soft");
		put_value(out, e->soft, true);
	}
}

static void put_cpus(FILE *out, const struct reading *r)
{
	struct set s = { .scope = &cpu_scope, .r = r };
	size_t i;

	for (i = 0; i < r->nr; i++)
		if (r->entries[i].kind == CPU)
			add_series(&s, &r->entries[i], number_label(r->entries[i].id));
	put_set(out, &s);
	put_idle(out, r);
	put_irq(out, r);
}

/* ---- histograms ---- */

/* Values are whole ns, and le is "less or equal": the bucket below 2^i ends at 2^i - 1. */
static void put_buckets(FILE *out, const char *name, const struct histogram *h, u64 sum)
{
	u64 count = 0;
	int i;

	for (i = 0; i < BUCKETS; i++) {
		count += h->bucket[i];
		if (i && (i < LE_FIRST || i > LE_LAST || i % 2))
			continue;
		fprintf(out, "pmuk_sched_%s_seconds_bucket{cpu=\"%llu\",le=\"", name,
			(unsigned long long)h->cpu);
		if (i)
			put_seconds(out, (1ULL << i) - 1);
		else
			fputs("0.0", out);
		fprintf(out, "\"} %llu\n", (unsigned long long)count);
	}
	fprintf(out, "pmuk_sched_%s_seconds_bucket{cpu=\"%llu\",le=\"+Inf\"} %llu\n", name,
		(unsigned long long)h->cpu, (unsigned long long)count);
	fprintf(out, "pmuk_sched_%s_seconds_count{cpu=\"%llu\"} %llu\n", name,
		(unsigned long long)h->cpu, (unsigned long long)count);
	fprintf(out, "pmuk_sched_%s_seconds_sum{cpu=\"%llu\"} ", name, (unsigned long long)h->cpu);
	put_value(out, sum, true);
}

static const struct totals *totals_of_cpu(const struct reading *r, u64 cpu)
{
	size_t i;

	for (i = 0; i < r->nr; i++)
		if (r->entries[i].kind == CPU && r->entries[i].id == cpu)
			return &r->entries[i].t;
	return NULL;
}

static void put_histograms(FILE *out, const struct reading *cpus, const struct reading *hists,
			   enum kind kind, const char *name, const char *help)
{
	char family[64];
	size_t i;

	snprintf(family, sizeof(family), "pmuk_sched_%s_seconds", name);
	put_family(out, family, "histogram", "seconds", help);
	for (i = 0; i < hists->nr_hists; i++) {
		const struct histogram *h = &hists->hists[i];
		const struct totals *t = totals_of_cpu(cpus, h->cpu);
		u64 sum = !t ? NONE : kind == WAIT_HIST ? t->wait : t->run;

		if (h->kind == kind && sum != NONE)
			put_buckets(out, name, h, sum);
	}
}

/* ---- cgroups and tasks ---- */

/*
 * The kernel has 1024 bytes for a path and its end, or 4096 if the cgroup is older than the
 * counting, and cuts what is longer. "-" stands for a path for which there was no memory.
 */
static bool is_cut(const char *path)
{
	size_t length = strlen(path);

	return length == 1023 || length == 4095 || !strcmp(path, "-");
}

/* Cgroups may have the same path if it is cut, but not the same number. */
static char *cgroup_label(const struct entry *e)
{
	char *label;

	if (!is_cut(e->name))
		return strdup(e->name);
	if (asprintf(&label, "%s... %llu", e->name, (unsigned long long)e->id) < 0)
		return NULL;
	return label;
}

static u64 depth_of(const char *path)
{
	u64 depth = 0;

	for (; *path; path++)
		depth += path[0] == '/' && path[1];
	return depth;
}

/* A cut path lacks levels, so these are counted up to the nearest parent whose path is whole. */
static u64 level_of(const struct reading *r, const struct map *index, const struct entry *e)
{
	u64 level = 0;
	size_t parent;

	for (; is_cut(e->name) && level < r->nr; level++) {
		parent = map_find(index, e->parent);
		if (parent == MAP_NONE)
			break;
		e = &r->entries[parent];
	}
	return level + depth_of(e->name);
}

/* Two cgroups have one path while the last tasks of a removed cgroup exit: the newer one counts. */
static void add_cgroup(struct set *s, const struct entry *e)
{
	char *label = cgroup_label(e);
	size_t i;

	for (i = 0; label && i < s->nr; i++) {
		if (strcmp(s->series[i].label, label))
			continue;
		s->series[i].entry = e;
		free(label);
		return;
	}
	add_series(s, e, label);
}

static void put_cgroups_of(FILE *out, const struct scope *scope, const struct reading *r,
			   const struct map *index, u64 depth)
{
	u64 whole = scope == &subtree_scope ? 0 : depth;	/* the first level of subtrees */
	struct set s = { .scope = scope, .r = r };
	size_t i;

	for (i = 0; i < r->nr; i++) {
		const struct entry *e = &r->entries[i];
		u64 level = level_of(r, index, e);

		if (e->kind == (level < whole ? CGROUP : SUBTREE) && level <= depth)
			add_cgroup(&s, e);
	}
	put_set(out, &s);
}

/*
 * A cgroup of the lowest level includes all cgroups below it, so that deeper ones are not left out.
 * The totals of removed cgroups are in the subtrees of those above, and only there.
 */
static void put_cgroups(FILE *out, u64 depth)
{
	struct map index = {};
	struct reading r;
	size_t i;

	read_on("cgroups", &r);
	for (i = 0; i < r.nr; i++)
		*map_at(&index, r.entries[i].id) = i;
	put_cgroups_of(out, &cgroup_scope, &r, &index, depth);
	put_cgroups_of(out, &subtree_scope, &r, &index, depth);
	map_free(&index);
	forget(&r);
}

static void put_tasks(FILE *out)
{
	struct set s = { .scope = &task_scope };
	struct reading r;
	char label[256];
	size_t i;

	read_on("tasks", &r);
	s.r = &r;
	for (i = 0; i < r.nr; i++) {
		const struct entry *e = &r.entries[i];

		if (e->kind != TASK)
			continue;
		snprintf(label, sizeof(label), "%llu %s", (unsigned long long)e->id, e->name);
		add_series(&s, e, strdup(label));
	}
	put_set(out, &s);
	forget(&r);
}

/* ---- all ---- */

static void put_gauge(FILE *out, const char *name, const char *unit, const char *help, u64 value)
{
	put_family(out, name, "gauge", unit, help);
	fprintf(out, "%s %llu\n", name, (unsigned long long)value);
}

static void put_module(FILE *out, const struct reading *r)
{
	put_gauge(out, "pmuk_sched_task_memory_bytes", "bytes", "Memory that each task takes.",
		  r->memory.per_task);
	put_gauge(out, "pmuk_sched_cpu_memory_bytes", "bytes", "Memory that each CPU takes.",
		  r->memory.per_cpu);
	put_gauge(out, "pmuk_sched_table_memory_bytes", "bytes", "Memory of the table of tasks.",
		  r->memory.table);
	put_gauge(out, "pmuk_sched_tasks", "", "Tasks in the table.", r->memory.tasks);
	put_family(out, "pmuk_sched_counted_seconds", "gauge", "seconds",
		   "Time since totals were 0.");
	fputs("pmuk_sched_counted_seconds ", out);
	put_value(out, r->timestamp - r->since, true);
	put_family(out, "pmuk_sched_unattributed_slices", "counter", "slices",
		   "Slices of tasks for which there was no memory.");
	fprintf(out, "pmuk_sched_unattributed_slices_total %llu\n",
		(unsigned long long)r->unattributed);
}

static void put_metrics(FILE *out, u64 depth, bool tasks)
{
	struct reading cpus, hists;

	read_any("cpus", &cpus);
	put_gauge(out, "pmuk_sched_counting", "", "1 if anything is counted.", cpus.on);
	if (cpus.on) {
		read_on("hist", &hists);
		put_module(out, &cpus);
		put_cpus(out, &cpus);
		put_histograms(out, &cpus, &hists, WAIT_HIST, "wait", "Waits for a CPU.");
		put_histograms(out, &cpus, &hists, SLICE_HIST, "slice", "Run slices of tasks.");
		put_cgroups(out, depth);
		if (tasks)
			put_tasks(out);
		forget(&hists);
	}
	forget(&cpus);
	fputs("# EOF\n", out);
}

static void export_to(const char *name, u64 depth, bool tasks)
{
	FILE *out;

	catch_ends();	/* signals are blocked until the file is complete */
	out = output_open(name, 0644);
	put_metrics(out, depth, tasks);
	output_finish(out, name);
}

int cmd_export(int argc, char **argv)
{
	static const struct option options[] = {
		{ "depth", required_argument, NULL, 'D' },
		{ "tasks", no_argument, NULL, 'T' },
		{}
	};
	const char *name = NULL;
	u64 depth = DEPTH;
	bool tasks = false;
	int c;

	while ((c = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			name = optarg;
			break;
		case 'D':
			depth = number_or_die(optarg, 0, 100, "--depth");
			break;
		case 'T':
			tasks = true;
			break;
		default:
			usage();
		}
	}
	no_more_arguments(argc, argv);
	if (name)
		export_to(name, depth, tasks);
	else
		put_metrics(stdout, depth, tasks);
	return 0;
}
