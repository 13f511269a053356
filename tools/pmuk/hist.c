// SPDX-License-Identifier: GPL-2.0
/*
 * pmuk hist: histograms of waits, of run slices, and of their instructions per cycle, as bars.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "pmuk.h"

#define BAR	40	/* columns of the longest */
#define UNIT	(2 * EVENT_NAME + 8)

static const struct what {
	const char *name, *title;
	enum kind kind;
	int buckets;
} whats[] = {
	{ "wait", "time that tasks waited for a CPU", WAIT_HIST, BUCKETS },
	{ "slice", "time that tasks ran at a stretch", SLICE_HIST, BUCKETS },
	{ "ipc", " of run slices", IPC_HIST, IPC_BUCKETS },
};

struct choice {
	const struct what *what;	/* NULL: all */
	u64 cpu;			/* NONE: all */
	u64 wait;			/* ns between two readings; 0: totals */
	bool json;
};

/* A power of two, also below 1. */
static double power(int exponent)
{
	double p = 1;

	for (; exponent > 0; exponent--)
		p *= 2;
	for (; exponent < 0; exponent++)
		p /= 2;
	return p;
}

/* Where bucket @i begins; also where the one before it ends. */
static double begins(const struct what *w, int i)
{
	if (w->kind == IPC_HIST)
		return i ? power(i - 9) : 0;
	return i ? power(i - 1) : 0;
}

static bool chosen(const struct histogram *h, const struct choice *c, const struct what *w)
{
	return h->kind == w->kind && (c->cpu == NONE || c->cpu == h->cpu);
}

/* Waits need CONFIG_SCHED_INFO, IPC needs two events. */
static bool has(const struct reading *r, const struct choice *c, const struct what *w)
{
	size_t i;

	for (i = 0; i < r->nr_hists; i++)
		if (chosen(&r->hists[i], c, w))
			return true;
	return false;
}

static u64 sum_buckets(const struct reading *r, const struct choice *c, const struct what *w,
		       u64 *sum)
{
	u64 all = 0;
	size_t i;
	int b;

	memset(sum, 0, BUCKETS * sizeof(*sum));
	for (i = 0; i < r->nr_hists; i++) {
		const struct histogram *h = &r->hists[i];

		if (!chosen(h, c, w))
			continue;
		for (b = 0; b < w->buckets; b++) {
			sum[b] += h->bucket[b];
			all += h->bucket[b];
		}
	}
	return all;
}

/* The histogram of @now, less that of @before. NONE: there is no such histogram. */
static u64 histogram_of(const struct reading *before, const struct reading *now,
			const struct choice *c, const struct what *w, u64 *sum)
{
	u64 old[BUCKETS], all;
	int b;

	if (!has(now, c, w))
		return NONE;
	all = sum_buckets(now, c, w, sum);
	if (!same_counting(before, now))
		return all;
	all -= sum_buckets(before, c, w, old);
	for (b = 0; b < w->buckets; b++)
		sum[b] -= old[b];
	return all;
}

/* The module divides its second event by the first one, whatever these are. */
static void ipc_unit(const struct reading *r, const char *by, char *unit, size_t size)
{
	if (r->nr_events < 2 || (!event_index(r, "cycles") && event_index(r, "instructions") == 1))
		snprintf(unit, size, "instructions%scycle", by);
	else
		snprintf(unit, size, "%s%s%s", r->events[1], by, r->events[0]);
}

static char *label(char *cell, const struct what *w, int i)
{
	if (w->kind == IPC_HIST)
		snprintf(cell, CELL, "%.4g", begins(w, i));
	else
		format_ns(cell, (u64)begins(w, i));
	return cell;
}

static void put_bar(const struct what *w, int i, u64 count, u64 most, u64 all)
{
	char from[CELL], to[CELL], number[CELL];
	int length = (int)((double)count / (double)most * BAR + 0.5);

	if (i == w->buckets - 1)
		strcpy(to, "more");
	else
		label(to, w, i + 1);
	printf("%8s .. %-8s %6s %5.1f%%", label(from, w, i), to, format_count(number, count),
	       100.0 * (double)count / (double)all);
	if (count)
		putchar(' ');
	if (count && !length)
		putchar('.');
	for (; length > 0; length--)
		putchar('#');
	putchar('\n');
}

/* Below what so many percent are: the end of a bucket, as more is not known. */
static void put_quantile(const struct what *w, const u64 *sum, u64 all, double part)
{
	double reached = 0;
	char cell[CELL];
	int i;

	for (i = 0; i < w->buckets; i++) {
		reached += (double)sum[i];
		if (reached >= part * (double)all)
			break;
	}
	if (i >= w->buckets - 1)
		printf("  %g%%: beyond", 100 * part);
	else
		printf("  %g%% < %s", 100 * part, label(cell, w, i + 1));
}

static void put_bars(const struct what *w, const u64 *sum, u64 all)
{
	int first = 0, last = w->buckets - 1, i;
	u64 most = 0;

	while (!sum[first])
		first++;
	while (!sum[last])
		last--;
	for (i = first; i <= last; i++)
		most = sum[i] > most ? sum[i] : most;
	for (i = first; i <= last; i++)
		put_bar(w, i, sum[i], most, all);
	put_quantile(w, sum, all, 0.5);
	put_quantile(w, sum, all, 0.9);
	put_quantile(w, sum, all, 0.99);
	putchar('\n');
}

static void put_histogram(const struct reading *r, const struct what *w, const struct choice *c,
			  const u64 *sum, u64 all)
{
	char cell[CELL], unit[UNIT];

	ipc_unit(r, " per ", unit, sizeof(unit));
	printf("%s: %s%s, ", w->name, w->kind == IPC_HIST ? unit : "", w->title);
	if (c->cpu != NONE)
		printf("CPU %llu, ", (unsigned long long)c->cpu);
	printf("%s\n", format_count(cell, all));
	if (all == NONE)
		puts("    not counted, or not known to this kernel");
	else if (all)
		put_bars(w, sum, all);
	else
		puts("    nothing");
}

static void histogram_json(struct json *j, const struct reading *r, const struct what *w,
			   const u64 *sum, u64 all)
{
	char unit[UNIT];
	int i;

	if (all == NONE) {
		json_number(j, w->name, NONE);
		return;
	}
	ipc_unit(r, "/", unit, sizeof(unit));
	json_open(j, w->name, '{');
	json_text(j, "unit", w->kind == IPC_HIST ? unit : "ns");
	json_number(j, "count", all);
	json_open(j, "buckets", '[');
	for (i = 0; i < w->buckets; i++) {
		json_open(j, NULL, '{');
		if (w->kind == IPC_HIST)
			json_real(j, "from", begins(w, i));
		else
			json_number(j, "from", (u64)begins(w, i));
		if (i == w->buckets - 1)
			json_number(j, "below", NONE);
		else if (w->kind == IPC_HIST)
			json_real(j, "below", begins(w, i + 1));
		else
			json_number(j, "below", (u64)begins(w, i + 1));
		json_number(j, "count", sum[i]);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

static void json_begin(struct json *j, const struct reading *before, const struct reading *now,
		       const struct choice *c)
{
	u64 since = same_counting(before, now) ? before->timestamp : now->since;

	json_open(j, NULL, '{');
	json_number(j, "timestamp_ns", now->timestamp);
	json_number(j, "since_ns", now->since);
	json_number(j, "interval_ns", now->timestamp - since);
	json_number(j, "cpu", c->cpu);
}

static void put_all(const struct reading *before, const struct reading *now, const struct choice *c)
{
	struct json j = { .out = stdout };
	u64 sum[BUCKETS], all;
	bool first = true;
	size_t i;

	if (c->json)
		json_begin(&j, before, now, c);
	for (i = 0; i < ARRAY_SIZE(whats); i++) {
		if (c->what && c->what != &whats[i])
			continue;
		all = histogram_of(before, now, c, &whats[i], sum);
		if (!c->json && !first)
			putchar('\n');
		first = false;
		if (c->json)
			histogram_json(&j, now, &whats[i], sum, all);
		else
			put_histogram(now, &whats[i], c, sum, all);
	}
	if (c->json) {
		json_close(&j, '}');
		json_end(&j);
	}
}

static void check_cpu(const struct reading *r, const struct choice *c)
{
	size_t i;

	if (c->cpu == NONE)
		return;
	for (i = 0; i < r->nr_hists; i++)
		if (c->cpu == r->hists[i].cpu)
			return;
	die("there is nothing of CPU %llu", (unsigned long long)c->cpu);
}

static const struct what *what_or_die(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(whats); i++)
		if (!strcmp(whats[i].name, name))
			return &whats[i];
	die("there is no histogram '%s'. There are: wait slice ipc", name);
}

static void parse(struct choice *choice, int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' }, {} };
	int c;

	while ((c = getopt_long(argc, argv, "c:d:j", options, NULL)) != -1) {
		if (c == 'c')
			choice->cpu = number_or_die(optarg, 0, UINT32_MAX, "-c");
		else if (c == 'd')
			choice->wait = seconds_or_die(optarg);
		else if (c == 'j')
			choice->json = true;
		else
			usage();
	}
	if (optind < argc)
		choice->what = what_or_die(argv[optind++]);
	no_more_arguments(argc, argv);
}

int cmd_hist(int argc, char **argv)
{
	struct choice choice = { .cpu = NONE };
	struct reading before = {}, now;

	parse(&choice, argc, argv);
	if (choice.wait) {
		catch_ends();
		read_on("hist", &before);
		wait_ns(choice.wait);
	}
	read_on("hist", &now);
	check_cpu(&now, &choice);
	put_all(&before, &now, &choice);
	forget(&before);
	forget(&now);
	return 0;
}
