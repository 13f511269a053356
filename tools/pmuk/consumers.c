// SPDX-License-Identifier: GPL-2.0
/*
 * pmuk consumers: prints what the contexts of pmuk have done between two readings, and what that
 * has cost.
 */
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmuk.h"

#define CONTEXTS	DEBUGFS "/contexts"
#define MEASURE		DEBUGFS "/measure"
#define HOME		"\033[H\033[J"

struct work {
	u64 overflows, overflow_ns, records, bytes, lost, reads, limited;
};

/* A row: a context on a CPU. ->cpu is NONE for the context of a task, and for a sum of all CPUs. */
struct consumer {
	u64 id, cpu, counters, limit_ns;
	char name[32], rank[16];
	bool exported;
	struct work w;
};

struct sight {
	struct consumer *consumers;
	size_t nr, room;
	bool measured;
	u64 when;
};

struct watch {
	u64 delay, times;
	bool batch, each_cpu, json, measure;
	struct sight before, now;
};

/* ---- reading ---- */

/* Returns the number behind @name in a line of words, or @none. */
static u64 number_or(const char *line, const char *name, u64 none)
{
	char word[32];
	const char *at;

	snprintf(word, sizeof(word), " %s ", name);
	at = strstr(line, word);
	return at ? strtoull(at + strlen(word), NULL, 10) : none;
}

static u64 number_of(const char *line, const char *name)
{
	return number_or(line, name, 0);
}

static struct consumer *add(struct sight *s, const struct consumer *c)
{
	s->consumers = grow(s->consumers, s->nr, &s->room, sizeof(*c));
	s->consumers[s->nr] = *c;
	return &s->consumers[s->nr++];
}

/* "exported" is the only word that may be missing behind the name. */
static bool take_context(struct consumer *c, const char *line)
{
	static const char exported[] = "exported ";
	struct consumer found = {};
	const char *at = line;
	int rest = 0;

	if (sscanf(line, "context %*u name %31s %n", found.name, &rest) != 1 || !rest)
		return false;
	at += rest;
	found.exported = !strncmp(at, exported, strlen(exported));
	at += found.exported ? strlen(exported) : 0;
	rest = 0;
	if (sscanf(at, "rank %15s format %*s %n", found.rank, &rest) != 1 || !rest)
		return false;
	found.id = strtoull(line + strlen("context "), NULL, 10);
	found.counters = number_of(at + rest - 1, "counters");
	found.limit_ns = number_of(at + rest - 1, "limit_ns");
	*c = found;
	return true;
}

/*
 * Returns the row of the CPU, or a new one. The buffers of a task have CPUs, and all belong to the
 * only row of its context.
 */
static struct consumer *of_cpu(struct sight *s, const struct consumer *context, u64 cpu)
{
	struct consumer *c = s->nr ? &s->consumers[s->nr - 1] : NULL;

	if (c && c->id == context->id && (c->cpu == cpu || c->cpu == NONE))
		return c;
	c = add(s, context);
	c->cpu = cpu;
	return c;
}

/* A line about the instance, the buffer or the AUX area of @context on a CPU. */
static bool take_part(struct sight *s, const struct consumer *context, const char *line)
{
	struct work *w;
	char what[16];
	int cpu;

	if (!context->id || sscanf(line, "  %15s cpu %d ", what, &cpu) != 2)
		return false;
	w = &of_cpu(s, context, cpu < 0 ? NONE : (u64)cpu)->w;
	if (!strcmp(what, "instance")) {
		w->overflows = number_of(line, "overflows");
		w->overflow_ns = number_of(line, "overflow_ns");
		w->records = number_or(line, "records", NONE);
		w->limited = number_of(line, "limited");
		w->reads = number_of(line, "reads");
	} else {
		w->bytes += number_of(line, "head");
	}
	if (!strcmp(what, "buffer"))	/* an AUX area discards no records */
		w->lost += number_of(line, "lost") + number_of(line, "discarded");
	return true;
}

/* An exported context has a row even if it is not loaded, and has no parts. */
static void end_context(struct sight *s, const struct consumer *context)
{
	struct consumer idle = *context;

	idle.cpu = NONE;
	if (idle.exported && (!s->nr || s->consumers[s->nr - 1].id != idle.id))
		add(s, &idle);
}

static bool take_line(struct sight *s, struct consumer *context, const char *line)
{
	struct consumer next;

	if (!take_context(&next, line))
		return take_part(s, context, line);
	end_context(s, context);
	*context = next;
	return true;
}

static void look(struct sight *s)
{
	struct consumer context = {};
	char *text, *line, *rest;
	size_t len;

	*s = (struct sight){ .when = now_ns() };
	text = read_source(CONTEXTS, &len);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (!take_line(s, &context, line))
			die("%s: '%s' is not understood. Do pmuk and the module match?", CONTEXTS,
			    line);
	end_context(s, &context);
	free(text);
	text = read_source(MEASURE, &len);
	s->measured = *text == '1';
	free(text);
}

/* ---- what was done between two readings ---- */

/* The kernel's numbers begin at 0 when a context is loaded again. */
static void subtract(u64 *now, u64 before)
{
	if (*now != NONE && *now >= before)
		*now -= before;
}

static void subtract_work(struct work *now, const struct work *before)
{
	subtract(&now->overflows, before->overflows);
	subtract(&now->overflow_ns, before->overflow_ns);
	subtract(&now->records, before->records);
	subtract(&now->bytes, before->bytes);
	subtract(&now->lost, before->lost);
	subtract(&now->reads, before->reads);
	subtract(&now->limited, before->limited);
}

static const struct consumer *find(const struct sight *s, const struct consumer *c)
{
	size_t i;

	for (i = 0; i < s->nr; i++)
		if (s->consumers[i].id == c->id && s->consumers[i].cpu == c->cpu)
			return &s->consumers[i];
	return NULL;
}

static void add_work(struct work *sum, const struct work *w)
{
	sum->overflows += w->overflows;
	sum->overflow_ns += w->overflow_ns;
	sum->records = w->records == NONE ? NONE : sum->records + w->records;
	sum->bytes += w->bytes;
	sum->lost += w->lost;
	sum->reads += w->reads;
	sum->limited += w->limited;
}

/* Adds up the CPUs of each context, whose rows follow one another. */
static void sum_up(struct sight *s)
{
	size_t i, nr = 0;

	for (i = 0; i < s->nr; i++) {
		if (nr && s->consumers[nr - 1].id == s->consumers[i].id) {
			add_work(&s->consumers[nr - 1].w, &s->consumers[i].w);
			continue;
		}
		s->consumers[nr] = s->consumers[i];
		s->consumers[nr++].cpu = NONE;
	}
	s->nr = nr;
}

/* Returns what was done between the readings. The caller frees its consumers. */
static struct sight difference(const struct watch *watch)
{
	struct sight d = { .measured = watch->now.measured && watch->before.measured };
	const struct consumer *before;
	size_t i;

	d.when = watch->now.when - watch->before.when;
	for (i = 0; i < watch->now.nr; i++) {
		struct consumer *c = add(&d, &watch->now.consumers[i]);

		before = find(&watch->before, c);
		if (before)
			subtract_work(&c->w, &before->w);
	}
	return d;
}

static void forget_unmeasured(struct sight *d)
{
	size_t i;

	for (i = 0; i < d->nr && !d->measured; i++) {
		d->consumers[i].w.reads = NONE;
		if (!d->consumers[i].limit_ns)
			d->consumers[i].w.overflow_ns = NONE;
	}
}

/* ---- printing ---- */

static const char *rate(char *cell, u64 n, u64 interval)
{
	if (n == NONE || !interval)
		return format_count(cell, NONE);
	return format_count(cell, (u64)((double)n * (double)NSEC / (double)interval + 0.5));
}

static void put_row(FILE *out, const struct consumer *c, u64 interval, bool each_cpu)
{
	char overflows[CELL], cost[CELL], records[CELL], bytes[CELL], lost[CELL], reads[CELL];
	char cpu[CELL];

	fprintf(out, "%7llu  %-10s %8llu ", (unsigned long long)c->id, c->rank,
		(unsigned long long)c->counters);
	if (each_cpu)
		fprintf(out, "%5s ", format_count(cpu, c->cpu));
	fprintf(out, "%11s %7s %9s %8s %7s %7s %8llu  ", rate(overflows, c->w.overflows, interval),
		format_percent(cost, c->w.overflow_ns, interval),
		rate(records, c->w.records, interval), rate(bytes, c->w.bytes, interval),
		rate(lost, c->w.lost, interval), rate(reads, c->w.reads, interval),
		(unsigned long long)c->w.limited);
	put_text(out, c->name, 0);
	fputs(c->exported ? " (exported)\n" : "\n", out);
}

static void put_table(FILE *out, const struct watch *watch, const struct sight *d)
{
	size_t i;

	fprintf(out, "CONTEXT  RANK       COUNTERS %s", watch->each_cpu ? "  CPU " : "");
	fputs("OVERFLOWS/s    %CPU RECORDS/s  BYTES/s  LOST/s READS/s  LIMITED  NAME\n", out);
	for (i = 0; i < d->nr; i++)
		put_row(out, &d->consumers[i], d->when, watch->each_cpu);
}

/* Returns the rows of lines. A narrow terminal shows a line in several rows. */
static int rows_of(const char *text, int columns)
{
	int rows = 0;
	size_t size;

	for (; *text; text += size + !!text[size]) {
		size = strcspn(text, "\n");
		rows += ((int)size + columns - 1) / columns;
	}
	return rows;
}

/* Prints the lines for which the terminal has room, and how many there are besides. */
static void print_fitting(char *text)
{
	static const char others[] = "and %d more; pmuk consumers -b prints all\n";
	int columns, left, more = 0;
	char *rest, *line;

	term_size(&columns, &left);
	left--;		/* for the cursor */
	if (rows_of(text, columns) > left)
		left -= rows_of(others, columns);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		left -= rows_of(line, columns);
		if (left >= 0)
			puts(line);
		else
			more++;
	}
	if (more)
		printf(others, more);
}

static void print_live(const struct watch *watch, const struct sight *d)
{
	char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);

	if (!memory)
		die("there is no memory left");
	put_table(memory, watch, d);
	fclose(memory);
	fputs(HOME, stdout);
	print_fitting(text);
	free(text);
}

static void print_table(const struct watch *watch, const struct sight *d)
{
	if (!watch->batch) {
		print_live(watch, d);
		return;
	}
	put_table(stdout, watch, d);
	putchar('\n');
}

static void print_json(const struct watch *watch, const struct sight *d)
{
	struct json j = { .out = stdout };
	const struct consumer *c;
	size_t i;

	json_open(&j, NULL, '{');
	json_number(&j, "interval_ns", d->when);
	json_bool(&j, "measured", d->measured);
	json_open(&j, "consumers", '[');
	for (i = 0; i < d->nr; i++) {
		c = &d->consumers[i];
		json_open(&j, NULL, '{');
		json_number(&j, "context", c->id);
		json_text(&j, "name", c->name);
		json_bool(&j, "exported", c->exported);
		json_text(&j, "rank", c->rank);
		json_number(&j, "counters", c->counters);
		json_number(&j, "limit_ns", c->limit_ns ? c->limit_ns : NONE);
		if (watch->each_cpu)
			json_number(&j, "cpu", c->cpu);
		json_number(&j, "overflows", c->w.overflows);
		json_number(&j, "overflow_ns", c->w.overflow_ns);
		json_number(&j, "records", c->w.records);
		json_number(&j, "bytes", c->w.bytes);
		json_number(&j, "lost", c->w.lost);
		json_number(&j, "reads", c->w.reads);
		json_number(&j, "limited", c->w.limited);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	json_end(&j);
}

static void show(const struct watch *watch)
{
	struct sight d = difference(watch);

	if (!watch->each_cpu)
		sum_up(&d);
	forget_unmeasured(&d);
	if (watch->json)
		print_json(watch, &d);
	else
		print_table(watch, &d);
	finish_output(stdout, "standard output");
	free(d.consumers);
}

static int run(struct watch *watch)
{
	u64 i;

	look(&watch->before);
	for (i = 0; i != watch->times && wait_ns(watch->delay); i++) {
		look(&watch->now);
		show(watch);
		free(watch->before.consumers);
		watch->before = watch->now;
	}
	free(watch->before.consumers);
	return signalled ? 128 + signalled : 0;
}

/* ---- with -m, the kernel measures while pmuk runs ---- */

static void measure(const char *value)
{
	int fd = open_source(MEASURE, O_WRONLY | O_TRUNC);

	if (write(fd, value, strlen(value)) < 0)
		warn_user("%s cannot be written", MEASURE);
	close(fd);
}

static void measure_no_more(void)
{
	measure("0\n");
}

/*
 * catch_ends() holds signals that end pmuk. SIGPIPE and SIGXFSZ are ignored: the failed write ends
 * pmuk by exit(), which calls measure_no_more().
 */
static void begin_to_measure(void)
{
	size_t len;
	char *text = read_source(MEASURE, &len);

	if (*text != '1') {
		signal_catch(SIGPIPE, SIG_IGN, 0);
		measure("1\n");
		atexit(measure_no_more);
	}
	free(text);
}

static void option(struct watch *watch, int c, char *arg)
{
	switch (c) {
	case 'b':
		watch->batch = true;
		break;
	case 'c':
		watch->each_cpu = true;
		break;
	case 'd':
		watch->delay = seconds_or_die(arg);
		break;
	case 'j':
		watch->json = true;
		break;
	case 'm':
		watch->measure = true;
		break;
	case 'n':
		watch->times = number_or_die(arg, 1, 1000000000, "-n");
		break;
	default:
		usage();
	}
}

int cmd_consumers(int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' }, {} };
	struct watch watch = { .delay = 2 * NSEC, .times = NONE };
	int c;

	while ((c = getopt_long(argc, argv, "bcd:jmn:", options, NULL)) != -1)
		option(&watch, c, optarg);
	no_more_arguments(argc, argv);
	watch.batch |= watch.json || !isatty(STDOUT_FILENO);
	check_debugfs(CONTEXTS);
	catch_ends();
	if (watch.measure)
		begin_to_measure();
	return run(&watch);
}
