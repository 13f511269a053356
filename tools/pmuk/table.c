// SPDX-License-Identifier: GPL-2.0
/*
 * Sorts the rows of pmuk top, and prints them in eighty columns. Wider tables also have the counts
 * of more events, and cgroups.
 */
#include <stdlib.h>
#include <string.h>

#include "pmuk.h"

#define NARROW		80
#define EVENT_COLUMN	7	/* the width of an event's column, with a blank */
#define WITH_CGROUP	110	/* tables of at least this width have a column of cgroups */
#define NAME_COLUMN	24	/* the width of the column of names, if cgroups follow */

const char *const sort_names[NR_SORTS] = {
	[BY_RUN] = "run", [BY_WAIT] = "wait", [BY_IPC] = "ipc", [BY_GHZ] = "ghz",
	[BY_VOLUNTARY] = "voluntary", [BY_SAME] = "same", [BY_OTHER] = "other", [BY_ID] = "id",
	[BY_NAME] = "name",
};

enum sort sort_or_die(const char *name)
{
	int i;

	for (i = 0; i < NR_SORTS; i++)
		if (!strcmp(sort_names[i], name))
			return (enum sort)i;
	die("there is no sort key '%s'; there are: run wait ipc ghz voluntary same other id name",
	    name);
}

/* ---- sorting ---- */

static const struct table *sorted;	/* for compare(), which gets no argument from qsort() */

static double known(u64 n)
{
	return n == NONE ? -1 : (double)n;
}

static double ratio_key(const struct row *row)
{
	struct ratios r = ratios_of(&row->d, event_index(sorted->r, "cycles"),
				    event_index(sorted->r, "instructions"));

	return sorted->sort == BY_IPC ? r.ipc : r.ghz;
}

static double sort_key(const struct row *row)
{
	switch (sorted->sort) {
	case BY_RUN:		return known(row->d.run);
	case BY_WAIT:		return known(row->d.wait);
	case BY_VOLUNTARY:	return known(row->d.left[VOLUNTARY]);
	case BY_SAME:		return known(row->d.left[SAME]);
	case BY_OTHER:		return known(row->d.left[OTHER]);
	default:		return ratio_key(row);
	}
}

static int by_id(const struct row *a, const struct row *b)
{
	return (a->entry->id > b->entry->id) - (a->entry->id < b->entry->id);
}

static const char *name_of(const struct row *row)
{
	return row->entry->name ? row->entry->name : "";
}

static int in_order(const struct row *a, const struct row *b)
{
	double x, y;

	if (sorted->sort == BY_ID)
		return by_id(a, b);
	if (sorted->sort == BY_NAME)
		return strcmp(name_of(a), name_of(b));
	x = sort_key(a);
	y = sort_key(b);
	/* unknown values are last in either direction */
	if (x < 0 && y >= 0)
		return sorted->reverse ? -1 : 1;
	if (x >= 0 && y < 0)
		return sorted->reverse ? 1 : -1;
	return (y > x) - (y < x);
}

static int compare(const void *a, const void *b)
{
	int order = in_order(a, b);

	if (!order)
		return by_id(a, b);
	return sorted->reverse ? -order : order;
}

void table_sort(const struct table *t, struct delta *d)
{
	sorted = t;
	if (d->nr)
		qsort(d->rows, d->nr, sizeof(*d->rows), compare);
}

/* ---- columns ---- */

static bool extra_event(const struct table *t, int event)
{
	int i, before = 0;

	if (!strcmp(t->r->events[event], "cycles") || !strcmp(t->r->events[event], "instructions"))
		return false;
	for (i = 0; i < event; i++)
		before += extra_event(t, i);
	return !t->width || t->width >= NARROW + EVENT_COLUMN * (before + 1);
}

bool table_with_cgroup(const struct table *t)
{
	return (t->view == TASKS || t->view == GROUPS) && (!t->width || t->width >= WITH_CGROUP);
}

/* Cuts the beginning of a long name, because the end says more: cache-misses becomes misses. */
static const char *short_name(const char *event)
{
	size_t len = strlen(event);

	return len < EVENT_COLUMN ? event : event + len - (EVENT_COLUMN - 1);
}

static void put_last(const struct table *t, int used, const char *name, const char *cgroup,
		     FILE *out)
{
	int left = t->width ? t->width - used : 0, columns;

	if (t->width && left < 2)
		left = 2;
	if (!table_with_cgroup(t)) {
		put_text(out, name, left);
		return;
	}
	columns = put_text(out, name, NAME_COLUMN - 1);
	left = t->width ? left - NAME_COLUMN : 0;
	if (!cgroup || (t->width && left <= 0))
		return;
	fprintf(out, "%*s", NAME_COLUMN - columns, "");
	put_text(out, cgroup, left);
}

void table_head(const struct table *t, FILE *out)
{
	static const char *const ids[NR_VIEWS] = { "PID", "TGID", "CGROUP", "CGROUP", "CPU" };
	static const char *const names[NR_VIEWS] = {
		"TASK", "PROCESS", "PATH", "PATH, ALL BELOW", "%IDLE  %IRQ"
	};
	int i, used = fprintf(out, "%7s %6s %7s %7s %5s %5s %5s %5s %5s ", ids[t->view], "%CPU",
			      "RUN", "WAIT", "IPC", "GHZ", "VOL", "SAME", "OTHER");

	for (i = 0; i < t->r->nr_events; i++)
		if (extra_event(t, i))
			used += fprintf(out, "%6s ", short_name(t->r->events[i]));
	put_last(t, used, names[t->view], "CGROUP", out);
}

static int put_counts(const struct table *t, const struct totals *d, FILE *out)
{
	char cell[CELL];
	int i, used = 0;

	for (i = 0; i < NR_LEFT; i++)
		used += fprintf(out, "%5s ", format_count(cell, d->left[i]));
	for (i = 0; i < t->r->nr_events; i++)
		if (extra_event(t, i))
			used += fprintf(out, "%5s%c ", format_count(cell, d->counts[i]),
					d->valid ? ' ' : '?');
	return used;
}

static void describe(const struct row *row, u64 interval, char *text, size_t size)
{
	char idle[CELL], irq[CELL];

	if (row->entry->kind == CPU)
		snprintf(text, size, "%5s %5s", format_percent(idle, row->idle, interval),
			 format_percent(irq, row->irq, interval));
	else if (row->entry->kind == GROUP)
		snprintf(text, size, "%s (%llu)", name_of(row),
			 (unsigned long long)row->entry->threads);
	else
		snprintf(text, size, "%s", name_of(row));
}

static void put_row(const struct table *t, const struct row *row, u64 interval, FILE *out)
{
	struct ratios r = ratios_of(&row->d, event_index(t->r, "cycles"),
				    event_index(t->r, "instructions"));
	char percent[CELL], run[CELL], wait[CELL], ipc[CELL], ghz[CELL], name[4096];
	int used;

	used = fprintf(out, "%7llu %6s %7s %7s %5s %5s ", (unsigned long long)row->entry->id,
		       format_percent(percent, row->d.run, interval), format_ns(run, row->d.run),
		       format_ns(wait, row->d.wait), format_ratio(ipc, r.ipc, row->d.valid),
		       format_ratio(ghz, r.ghz, row->d.valid));
	used += put_counts(t, &row->d, out);
	describe(row, interval, name, sizeof(name));
	put_last(t, used, name, row->cgroup, out);
}

void table_rows(const struct table *t, const struct delta *d, FILE *out)
{
	size_t i;

	for (i = t->first; i < d->nr && i - t->first < t->rows; i++) {
		put_row(t, &d->rows[i], d->interval, out);
		fputc('\n', out);
	}
}

static void json_who(const struct table *t, const struct entry *e, struct json *j)
{
	static const char *const ids[NR_VIEWS] = { "pid", "tgid", "cgroup", "cgroup", "cpu" };

	json_number(j, ids[t->view], e->id);
	if (e->kind == TASK)
		json_number(j, t->view == TASKS ? "tgid" : "threads",
			    t->view == TASKS ? e->parent : 1);
	if (e->kind == GROUP)
		json_number(j, "threads", e->threads);
	if (e->kind == TASK || e->kind == GROUP)
		json_number(j, "cgroup", e->cgroup);
	if (e->kind == CGROUP || e->kind == SUBTREE)
		json_number(j, "parent", e->parent);
	if (e->name)
		json_text(j, e->kind == TASK || e->kind == GROUP ? "name" : "path", e->name);
}

void row_json(const struct table *t, const struct row *row, struct json *j)
{
	json_open(j, NULL, '{');
	json_who(t, row->entry, j);
	if (row->cgroup)
		json_text(j, "cgroup_path", row->cgroup);
	json_totals(j, t->r, &row->d);
	if (row->entry->kind == CPU) {
		json_number(j, "idle_ns", row->idle);
		json_number(j, "irq_ns", row->irq);
		json_number(j, "throttled", row->rest[THROTTLED]);
		json_number(j, "yielded", row->rest[YIELDED]);
		json_number(j, "stopped", row->rest[STOPPED]);
		json_number(j, "migrated", row->rest[MIGRATED]);
	}
	json_close(j, '}');
}
