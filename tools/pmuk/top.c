// SPDX-License-Identifier: GPL-2.0
/*
 * pmuk top: shows again and again which tasks run, wait and switch. In a terminal the table is
 * live, unless there is to be a single one. Otherwise pmuk top prints text, or with --json an
 * object for each reading.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pmuk.h"

#define FOREVER		UINT64_MAX
#define MIN_DELAY	(NSEC / 10)
#define MAX_DELAY	(3600 * NSEC)
#define SHARE		20		/* tables take at most 1/20 of a CPU's time */

struct top {
	struct table table;
	struct delta delta;		/* the rows of the view */
	struct reading before, now;	/* readings of the view's file */
	struct delta cpus;
	struct reading cpus_before, cpus_now;
	struct reading cgroups;		/* for the names of cgroups */
	u64 delay, iterations;
	u64 woken;			/* CPU time when the latest reading began */
	u64 cost;			/* ns of CPU time, user and system, for the latest table */
	bool batch, json;
	bool delayed;			/* -d was given */
	bool totals;			/* each table covers all since counting began */
	bool help;
	int lines;
	struct selection only;
};

static const char *const view_names[NR_VIEWS] = { "tasks", "groups", "cgroups", "subtrees",
						  "cpus" };

/* ---- reading ---- */

static const char *file_of(enum view view)
{
	static const char *const files[NR_VIEWS] = { "tasks", "tasks", "cgroups", "cgroups",
						     "cpus" };

	return files[view];
}

static void advance(const char *file, struct reading *before, struct reading *now)
{
	forget(before);
	*before = *now;
	read_on(file, now);
}

static void name_cgroups(struct top *top)
{
	struct map names = {};
	size_t i, found;

	if (!table_with_cgroup(&top->table) && !(top->json && top->table.view <= GROUPS))
		return;
	forget(&top->cgroups);
	read_on("cgroups", &top->cgroups);
	for (i = 0; i < top->cgroups.nr; i++)
		*map_at(&names, top->cgroups.entries[i].id) = i;
	for (i = 0; i < top->delta.nr; i++) {
		found = map_find(&names, top->delta.rows[i].entry->cgroup);
		if (found != MAP_NONE)
			top->delta.rows[i].cgroup = top->cgroups.entries[found].name;
	}
	map_free(&names);
}

static void prepare(struct top *top)
{
	delta_free(&top->delta);
	delta_free(&top->cpus);
	delta_make(&top->delta, top->table.view, &top->only, top->totals ? NULL : &top->before,
		   &top->now);
	delta_make(&top->cpus, CPUS, &top->only, top->totals ? NULL : &top->cpus_before,
		   &top->cpus_now);
	top->table.r = &top->now;
	name_cgroups(top);
	table_sort(&top->table, &top->delta);
	if (top->table.first >= top->delta.nr)
		top->table.first = top->delta.nr ? top->delta.nr - 1 : 0;
}

static u64 cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (u64)t.tv_sec * NSEC + (u64)t.tv_nsec;
}

static void read_again(struct top *top)
{
	top->woken = cpu_time();
	advance(file_of(top->table.view), &top->before, &top->now);
	advance("cpus", &top->cpus_before, &top->cpus_now);
	prepare(top);
}

/* Called when a table has been written. */
static void table_done(struct top *top)
{
	top->cost = cpu_time() - top->woken;
}

/* Returns the time until the next reading, longer if a table takes much CPU time. */
static u64 delay_of(const struct top *top)
{
	u64 least = (SHARE - 1) * top->cost;

	return top->delay > least ? top->delay : least;
}

/* ---- text ---- */

static struct totals sum_of(const struct delta *d)
{
	struct totals sum = { .valid = true };
	size_t i;

	for (i = 0; i < d->nr; i++)
		totals_add(&sum, &d->rows[i].d);
	return sum;
}

static void put_title(const struct top *top, FILE *out)
{
	char cell[CELL];

	fprintf(out, "pmuk top: %zu %s by %s%s, ", top->delta.nr, view_names[top->table.view],
		sort_names[top->table.sort], top->table.reverse ? " reversed" : "");
	fprintf(out, top->delta.total ? "in all %s of counting" : "in %s",
		format_ns(cell, top->delta.interval));
	if (top->delta.gone)
		fprintf(out, ", %zu gone", top->delta.gone);
}

/*
 * The kernel lists all possible CPUs. One that was offline all the time has not even idle time.
 * Readers do not interrupt isolated CPUs: without a switch, such a CPU has no time, either.
 */
static u64 nr_cpus(const struct delta *d)
{
	u64 nr = 0;
	size_t i;

	for (i = 0; i < d->nr; i++)
		nr += d->rows[i].d.run || (d->rows[i].idle != NONE && d->rows[i].idle);
	return nr;
}

static void put_machine(const struct top *top, FILE *out)
{
	struct totals sum = sum_of(&top->cpus);
	u64 cpus = nr_cpus(&top->cpus);
	const struct reading *r = &top->cpus_now;
	struct ratios ratios =
		ratios_of(&sum, event_index(r, "cycles"), event_index(r, "instructions"));
	char busy[CELL], wait[CELL], ipc[CELL], ghz[CELL], switches[CELL];

	fprintf(out, "%llu CPUs: %s%% busy, wait %s, IPC %s, %s GHz, %s switches",
		(unsigned long long)cpus,
		format_percent(busy, cpus ? sum.run / cpus : NONE, top->cpus.interval),
		format_ns(wait, sum.wait), format_ratio(ipc, ratios.ipc, sum.valid),
		format_ratio(ghz, ratios.ghz, sum.valid),
		format_count(switches, sum.left[0] + sum.left[1] + sum.left[2]));
}

static bool any_invalid(const struct delta *d)
{
	size_t i;

	for (i = 0; i < d->nr; i++)
		if (!d->rows[i].d.valid)
			return true;
	return false;
}

static bool row_unknown(const struct totals *d)
{
	return d->wait == NONE || d->counts[0] == NONE;
}

static bool any_unknown(const struct top *top)
{
	size_t i;

	for (i = 0; i < top->delta.nr; i++)
		if (row_unknown(&top->delta.rows[i].d))
			return true;
	return event_index(&top->now, "cycles") < 0 || event_index(&top->now, "instructions") < 0;
}

static const char too_low[] =
	"?: some slice since counting began was not counted, so the number may be too low\n";

/* Explains the marks that are in the table. */
static void put_marks(const struct top *top, FILE *out)
{
	if (any_invalid(&top->delta) || any_invalid(&top->cpus))
		fputs(too_low, out);
	if (any_unknown(top))
		fputs("-: not counted, or not known to this kernel\n", out);
	print_missing(out, &top->now);
	if (top->now.unattributed)
		fprintf(out, "%llu slices of tasks for which there was no memory are in no row\n",
			(unsigned long long)top->now.unattributed);
}

static void put_text_table(struct top *top, FILE *out)
{
	put_title(top, out);
	fputc('\n', out);
	put_machine(top, out);
	fputs("\n\n", out);
	table_head(&top->table, out);
	fputc('\n', out);
	table_rows(&top->table, &top->delta, out);
	fputc('\n', out);
	put_marks(top, out);
	print_memory(out, &top->now);
}

static void put_json(struct top *top, FILE *out)
{
	struct json j = { .out = out };
	size_t i;

	json_open(&j, NULL, '{');
	json_number(&j, "timestamp_ns", top->now.timestamp);
	json_number(&j, "since_ns", top->now.since);
	json_number(&j, "interval_ns", top->delta.interval);
	json_bool(&j, "since_beginning", top->delta.total);
	json_text(&j, "view", view_names[top->table.view]);
	json_events(&j, &top->now);
	json_number(&j, "gone", top->delta.gone);
	json_open(&j, "rows", '[');
	for (i = 0; i < top->delta.nr && i < top->table.rows; i++)
		row_json(&top->table, &top->delta.rows[i], &j);
	json_close(&j, ']');
	json_close(&j, '}');
	json_end(&j);
}

static int run_batch(struct top *top)
{
	u64 i;

	catch_ends();
	for (i = 0; i < top->iterations; i++) {
		if (i && !wait_ns(delay_of(top)))
			break;
		read_again(top);
		if (i && !top->json)
			putchar('\n');
		if (top->json)
			put_json(top, stdout);
		else
			put_text_table(top, stdout);
		finish_output(stdout, "standard output");
		table_done(top);
	}
	return signalled ? 128 + signalled : 0;
}

/* ---- live ---- */

static const char help[] =
	"q  end                          h  this help\n"
	"\n"
	"t  tasks                        P  sort by time run\n"
	"g  processes (thread groups)    W  ... time waited for a CPU\n"
	"c  cgroups                      I  ... instructions per cycle\n"
	"b  cgroups with all below       G  ... GHz\n"
	"p  CPUs                         V  ... voluntary switches\n"
	"                                S  ... preemptions by the same cgroup\n"
	"a  since counting began,        O  ... preemptions by others\n"
	"   or since the last table      N  ... PID or other number\n"
	"+  longer delay                 C  ... name\n"
	"-  shorter delay                r  the other way round\n"
	"   blank: now                   j k arrows pages: more rows\n";

/*
 * Writes a line of a frame, cut to the screen. The older line there is erased before, because a
 * line as wide as the screen leaves the cursor on its last character.
 */
static void put_line(const struct top *top, FILE *out, const char *text)
{
	fputs("\033[K", out);
	put_text(out, text, top->table.width);
	fputs("\r\n", out);
}

/* Prints the lines that @put writes, at most @lines. Returns how many more would fit. */
static int put_lines(struct top *top, FILE *out, int lines, void (*put)(struct top *, FILE *))
{
	char *text = NULL, *line, *save;
	size_t size;
	FILE *memory = open_memstream(&text, &size);

	if (!memory)
		die("there is no memory left");
	put(top, memory);
	fclose(memory);
	for (line = strtok_r(text, "\n", &save); line && lines > 0; lines--) {
		put_line(top, out, line);
		line = strtok_r(NULL, "\n", &save);
	}
	free(text);
	return lines;
}

static void live_head(struct top *top, FILE *out)
{
	put_title(top, out);
	fputs("; h: help\n", out);
	put_machine(top, out);
	fputc('\n', out);
	if (!top->help)
		table_head(&top->table, out);
}

static void live_rows(struct top *top, FILE *out)
{
	if (top->help)
		fputs(help, out);
	else
		table_rows(&top->table, &top->delta, out);
}

static void live_foot(struct top *top, FILE *out)
{
	put_marks(top, out);
	print_memory(out, &top->now);
}

static int foot_lines(const struct top *top)
{
	return 1 + (any_invalid(&top->delta) || any_invalid(&top->cpus)) + any_unknown(top) +
	       !!strcmp(top->now.missing, "none") + !!top->now.unattributed;
}

static void draw(struct top *top)
{
	char *frame = NULL;
	size_t size;
	FILE *out = open_memstream(&frame, &size);
	int foot, left;

	if (!out)
		die("there is no memory left");
	foot = foot_lines(top) < top->lines / 2 ? foot_lines(top) : 1;
	fputs("\033[H", out);
	left = put_lines(top, out, top->lines - 1 - foot, live_head);
	top->table.rows = left > 0 ? (size_t)left : 0;
	left = put_lines(top, out, left, live_rows);
	for (; left > 0; left--)
		put_line(top, out, "");
	put_lines(top, out, foot, live_foot);
	fputs("\033[J", out);
	fclose(out);
	fwrite(frame, 1, size, stdout);
	finish_output(stdout, "the terminal");
	free(frame);
}

/* If the new view needs another file, that file has no earlier reading to compare yet. */
static void set_view(struct top *top, enum view view)
{
	bool other = strcmp(file_of(view), file_of(top->table.view));

	top->table.view = view;
	top->table.first = 0;
	if (!other) {
		prepare(top);
		return;
	}
	forget(&top->before);
	forget(&top->now);
	read_again(top);
}

static bool key_view(struct top *top, int key)
{
	static const char keys[NR_VIEWS + 1] = "tgcbp";
	const char *at = strchr(keys, key);

	if (!at)
		return false;
	set_view(top, (enum view)(at - keys));
	return true;
}

static bool key_sort(struct top *top, int key)
{
	static const char keys[NR_SORTS + 1] = "PWIGVSONC";
	const char *at = strchr(keys, key);

	if (!at)
		return false;
	top->table.sort = (enum sort)(at - keys);
	top->table.first = 0;
	table_sort(&top->table, &top->delta);
	return true;
}

static bool key_scroll(struct top *top, int key)
{
	size_t by = key == 'j' || key == 'k' ? 1 : top->table.rows, *first = &top->table.first;

	if (key == 'j' || key == ('f' & 0x1f))
		*first = *first + by < top->delta.nr ? *first + by : *first;
	else if (key == 'k' || key == ('b' & 0x1f))
		*first = *first > by ? *first - by : 0;
	else
		return false;
	return true;
}

static void key_other(struct top *top, int key)
{
	switch (key) {
	case 'r':
		top->table.reverse = !top->table.reverse;
		table_sort(&top->table, &top->delta);
		break;
	case 'a':
		top->totals = !top->totals;
		prepare(top);
		break;
	case '+':
		top->delay = top->delay < MAX_DELAY / 2 ? 2 * top->delay : MAX_DELAY;
		break;
	case '-':
		top->delay = top->delay > 2 * MIN_DELAY ? top->delay / 2 : MIN_DELAY;
		break;
	}
}

static void key_pressed(struct top *top, int key)
{
	bool helped = top->help;

	top->help = !helped && (key == 'h' || key == '?');
	if (!helped && !key_view(top, key) && !key_sort(top, key) && !key_scroll(top, key))
		key_other(top, key);
	draw(top);
}

static void fit_screen(struct top *top)
{
	term_size(&top->table.width, &top->lines);
	prepare(top);	/* the width may have room for cgroups */
}

/* Handles keys until the next reading is due. Returns false if pmuk is to end. */
static bool keys_until(struct top *top, u64 since)
{
	u64 now;
	int key;

	while (!signalled && (now = now_ns()) < since + delay_of(top)) {
		key = term_key(since + delay_of(top) - now);
		if (key == 'q')
			return false;
		if (key == ' ')
			break;
		if (suspended)
			term_suspend();
		if (resized) {
			fit_screen(top);
			draw(top);
		}
		if (key)
			key_pressed(top, key);
	}
	return !signalled;
}

static int run_live(struct top *top)
{
	u64 i, start;

	read_again(top);	/* before term_enter(): errors belong on the shell's screen */
	term_enter();
	fit_screen(top);
	for (i = 1;; i++) {
		draw(top);
		table_done(top);
		start = now_ns();
		if (!keys_until(top, start) || i == top->iterations)
			break;
		read_again(top);
	}
	term_leave();
	return signalled ? 128 + signalled : 0;
}

/* ---- arguments ---- */

static enum view view_or_die(const char *name)
{
	int i;

	for (i = 0; i < NR_VIEWS; i++)
		if (!strcmp(view_names[i], name))
			return (enum view)i;
	die("there is no view '%s'. There are: tasks groups cgroups subtrees cpus", name);
}

static void parse_only(struct selection *only, char *list)
{
	char *save, *item = strtok_r(list, ",", &save);

	if (!item)
		die("-p: numbers of tasks or processes are needed, not '%s'", list);
	for (; item; item = strtok_r(NULL, ",", &save)) {
		if (only->nr == SELECTED)
			die("-p: these are more than %d numbers", SELECTED);
		only->ids[only->nr++] = number_or_die(item, 1, UINT32_MAX, "-p");
	}
}

static void option(struct top *top, int c, char *arg)
{
	switch (c) {
	case 'a':
		top->totals = true;
		break;
	case 'b':
		top->batch = true;
		break;
	case 'd':
		top->delay = seconds_or_die(arg);
		top->delayed = true;
		break;
	case 'j':
		top->json = true;
		break;
	case 'l':
		top->table.rows = number_or_die(arg, 1, 1000000000, "-l");
		break;
	case 'n':
		top->iterations = number_or_die(arg, 1, 1000000000, "-n");
		break;
	case 'p':
		parse_only(&top->only, arg);
		break;
	case 'r':
		top->table.reverse = true;
		break;
	case 's':
		top->table.sort = sort_or_die(arg);
		break;
	case 'v':
		top->table.view = view_or_die(arg);
		break;
	case 'w':
		top->table.width = (int)number_or_die(arg, 0, 10000, "-w");
		if (top->table.width && top->table.width < 70)
			die("-w: less than 70 columns are not enough; 0 stands for no limit");
		break;
	default:
		usage();
	}
}

static void top_free(struct top *top)
{
	delta_free(&top->delta);
	delta_free(&top->cpus);
	forget(&top->before);
	forget(&top->now);
	forget(&top->cpus_before);
	forget(&top->cpus_now);
	forget(&top->cgroups);
}

int cmd_top(int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' }, {} };
	struct top top = {
		.table = { .width = 80, .rows = SIZE_MAX },
		.delay = 2 * NSEC,
	};
	int c, status;

	while ((c = getopt_long(argc, argv, "abd:jl:n:p:rs:v:w:", options, NULL)) != -1)
		option(&top, c, optarg);
	no_more_arguments(argc, argv);
	top.batch |= top.json || top.iterations == 1 || !isatty(STDOUT_FILENO);
	if (!top.iterations)
		top.iterations = top.batch && !top.delayed ? 1 : FOREVER;
	status = top.batch ? run_batch(&top) : run_live(&top);
	top_free(&top);
	return status;
}
