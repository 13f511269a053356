// SPDX-License-Identifier: GPL-2.0
/*
 * pmuk hist: prints histograms of waits, of slices, and of the slices' instructions per cycle.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "pmuk.h"

#define BAR	40	/* columns of the longest bar */
#define UNIT	(2 * EVENT_NAME + 8)

static const struct hist_type {
	const char *name, *title;
	enum kind kind;
	int buckets;
} types[] = {
	{ "wait", "time that tasks waited for a CPU", WAIT_HIST, BUCKETS },
	{ "slice", "time that tasks ran at a stretch", SLICE_HIST, BUCKETS },
	{ "ipc", " of run slices", IPC_HIST, IPC_BUCKETS },
};

struct choice {
	const struct hist_type *type;	/* NULL: all */
	u64 cpu;			/* NONE: all */
	u64 wait;			/* ns between the two readings; 0: totals */
	bool json;
};

/* Returns 2 to the power of @exponent, which may be negative. */
static double power(int exponent)
{
	double p = 1;

	for (; exponent > 0; exponent--)
		p *= 2;
	for (; exponent < 0; exponent++)
		p /= 2;
	return p;
}

/* Returns the lower limit of bucket @i, which is the upper limit of bucket @i - 1. */
static double begins(const struct hist_type *type, int i)
{
	if (type->kind == IPC_HIST)
		return i ? power(i - 9) : 0;
	return i ? power(i - 1) : 0;
}

static bool chosen(const struct histogram *h, const struct choice *c, const struct hist_type *type)
{
	return h->kind == type->kind && (c->cpu == NONE || c->cpu == h->cpu);
}

/* The kernel gives waits only with CONFIG_SCHED_INFO, and IPC only with two events. */
static bool has(const struct reading *r, const struct choice *c, const struct hist_type *type)
{
	size_t i;

	for (i = 0; i < r->nr_hists; i++)
		if (chosen(&r->hists[i], c, type))
			return true;
	return false;
}

static u64 sum_buckets(const struct reading *r, const struct choice *c,
		       const struct hist_type *type, u64 *sum)
{
	u64 all = 0;
	size_t i;
	int b;

	memset(sum, 0, BUCKETS * sizeof(*sum));
	for (i = 0; i < r->nr_hists; i++) {
		const struct histogram *h = &r->hists[i];

		if (!chosen(h, c, type))
			continue;
		for (b = 0; b < type->buckets; b++) {
			sum[b] += h->bucket[b];
			all += h->bucket[b];
		}
	}
	return all;
}

/*
 * Sets @sum to the histogram of @now less that of @before. Returns the sum of the buckets, or NONE
 * if there is no such histogram.
 */
static u64 histogram_of(const struct reading *before, const struct reading *now,
			const struct choice *c, const struct hist_type *type, u64 *sum)
{
	u64 old[BUCKETS], all;
	int b;

	if (!has(now, c, type))
		return NONE;
	all = sum_buckets(now, c, type, sum);
	if (!same_counting(before, now))
		return all;
	all -= sum_buckets(before, c, type, old);
	for (b = 0; b < type->buckets; b++)
		sum[b] -= old[b];
	return all;
}

/* The module divides the second event by the first, whichever events the user has chosen. */
static void ipc_unit(const struct reading *r, const char *by, char *unit, size_t size)
{
	if (r->nr_events < 2 || (!event_index(r, "cycles") && event_index(r, "instructions") == 1))
		snprintf(unit, size, "instructions%scycle", by);
	else
		snprintf(unit, size, "%s%s%s", r->events[1], by, r->events[0]);
}

static char *label(char *cell, const struct hist_type *type, int i)
{
	if (type->kind == IPC_HIST)
		snprintf(cell, CELL, "%.4g", begins(type, i));
	else
		format_ns(cell, (u64)begins(type, i));
	return cell;
}

static void put_bar(const struct hist_type *type, int i, u64 count, u64 most, u64 all)
{
	char from[CELL], to[CELL], number[CELL];
	int length = (int)((double)count / (double)most * BAR + 0.5);

	if (i == type->buckets - 1)
		strcpy(to, "more");
	else
		label(to, type, i + 1);
	printf("%8s .. %-8s %6s %5.1f%%", label(from, type, i), to, format_count(number, count),
	       100.0 * (double)count / (double)all);
	if (count)
		putchar(' ');
	if (count && !length)
		putchar('.');
	for (; length > 0; length--)
		putchar('#');
	putchar('\n');
}

/* Prints a limit below which @part of all values are. Only the limits of buckets are known. */
static void put_quantile(const struct hist_type *type, const u64 *sum, u64 all, double part)
{
	double reached = 0;
	char cell[CELL];
	int i;

	for (i = 0; i < type->buckets; i++) {
		reached += (double)sum[i];
		if (reached >= part * (double)all)
			break;
	}
	if (i >= type->buckets - 1)
		printf("  %g%%: beyond", 100 * part);
	else
		printf("  %g%% < %s", 100 * part, label(cell, type, i + 1));
}

static void put_bars(const struct hist_type *type, const u64 *sum, u64 all)
{
	int first = 0, last = type->buckets - 1, i;
	u64 most = 0;

	while (!sum[first])
		first++;
	while (!sum[last])
		last--;
	for (i = first; i <= last; i++)
		most = sum[i] > most ? sum[i] : most;
	for (i = first; i <= last; i++)
		put_bar(type, i, sum[i], most, all);
	put_quantile(type, sum, all, 0.5);
	put_quantile(type, sum, all, 0.9);
	put_quantile(type, sum, all, 0.99);
	putchar('\n');
}

static void put_histogram(const struct reading *r, const struct hist_type *type,
			  const struct choice *c, const u64 *sum, u64 all)
{
	char cell[CELL], unit[UNIT];

	ipc_unit(r, " per ", unit, sizeof(unit));
	printf("%s: %s%s, ", type->name, type->kind == IPC_HIST ? unit : "", type->title);
	if (c->cpu != NONE)
		printf("CPU %llu, ", (unsigned long long)c->cpu);
	printf("%s\n", format_count(cell, all));
	if (all == NONE)
		puts("    not counted, or not known to this kernel");
	else if (all)
		put_bars(type, sum, all);
	else
		puts("    nothing");
}

static void histogram_json(struct json *j, const struct reading *r, const struct hist_type *type,
			   const u64 *sum, u64 all)
{
	char unit[UNIT];
	int i;

	if (all == NONE) {
		json_number(j, type->name, NONE);
		return;
	}
	ipc_unit(r, "/", unit, sizeof(unit));
	json_open(j, type->name, '{');
	json_text(j, "unit", type->kind == IPC_HIST ? unit : "ns");
	json_number(j, "count", all);
	json_open(j, "buckets", '[');
	for (i = 0; i < type->buckets; i++) {
		json_open(j, NULL, '{');
		if (type->kind == IPC_HIST)
			json_real(j, "from", begins(type, i));
		else
			json_number(j, "from", (u64)begins(type, i));
		if (i == type->buckets - 1)
			json_number(j, "below", NONE);
		else if (type->kind == IPC_HIST)
			json_real(j, "below", begins(type, i + 1));
		else
			json_number(j, "below", (u64)begins(type, i + 1));
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
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		if (c->type && c->type != &types[i])
			continue;
		all = histogram_of(before, now, c, &types[i], sum);
		if (!c->json && !first)
			putchar('\n');
		first = false;
		if (c->json)
			histogram_json(&j, now, &types[i], sum, all);
		else
			put_histogram(now, &types[i], c, sum, all);
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

static const struct hist_type *type_or_die(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(types[i].name, name))
			return &types[i];
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
		choice->type = type_or_die(argv[optind++]);
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
