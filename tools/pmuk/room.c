// SPDX-License-Identifier: GPL-2.0
/*
 * pmuk room: prints how many more counters of cycles would fit on each CPU, and which consumers of
 * pmuk hold counters there or wait for room.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "pmuk.h"

#define ROOM	DEBUGFS "/room"

/* ->any: a CPU's line has begun, or the CPU's object in JSON. */
struct printer {
	struct json json;
	bool wants_json, any;
};

struct holder {
	unsigned long long context, set, counters, pinned, lent;
	char name[32], rank[16];
	char state[16];			/* counts, waits or reserves */
};

static void begin(struct printer *p)
{
	if (!p->wants_json) {
		puts("CPU  CYCLES LEFT  HELD BY");
		return;
	}
	json_open(&p->json, NULL, '{');
	json_open(&p->json, "cpus", '[');
}

static void end_cpu(struct printer *p)
{
	if (!p->any)
		return;
	if (!p->wants_json) {
		putchar('\n');
		return;
	}
	json_close(&p->json, ']');
	json_close(&p->json, '}');
}

static void end(struct printer *p)
{
	end_cpu(p);
	if (!p->wants_json)
		return;
	json_close(&p->json, ']');
	json_close(&p->json, '}');
	json_end(&p->json);
}

/* @left is NONE if the kernel gives no number; @error is then the reason. */
static void print_cpu(struct printer *p, u64 cpu, u64 left, int error)
{
	end_cpu(p);
	p->any = true;
	if (p->wants_json) {
		json_open(&p->json, NULL, '{');
		json_number(&p->json, "cpu", cpu);
		json_number(&p->json, "cycles_left", left);
		if (error)
			json_text(&p->json, "error", strerror(error));
		json_open(&p->json, "holders", '[');
	} else if (left == NONE) {
		printf("%3llu  %11s  (%s)", (unsigned long long)cpu, "-", strerror(error));
	} else {
		printf("%3llu  %11llu ", (unsigned long long)cpu, (unsigned long long)left);
	}
}

static void print_holder(struct printer *p, const struct holder *h)
{
	if (!p->wants_json) {
		putchar(' ');
		put_text(stdout, h->name, 0);
		printf("[%llu]:%llu", h->context, h->counters);
		if (strcmp(h->rank, "normal"))
			printf(":%s", h->rank);
		if (strcmp(h->state, "counts"))
			printf(":%s", h->state);
		if (h->lent)
			printf(":%llu lent", h->lent);
		return;
	}
	json_open(&p->json, NULL, '{');
	json_text(&p->json, "name", h->name);
	json_number(&p->json, "context", h->context);
	json_text(&p->json, "rank", h->rank);
	json_text(&p->json, "state", h->state);
	json_number(&p->json, "set", h->set);
	json_number(&p->json, "counters", h->counters);
	json_number(&p->json, "pinned", h->pinned);
	json_number(&p->json, "lent", h->lent);
	json_close(&p->json, '}');
}

static bool take_cpu(struct printer *p, const char *line)
{
	unsigned long long cpu, number;
	char what[8];

	if (sscanf(line, "cpu %llu %7s %llu", &cpu, what, &number) != 3)
		return false;
	if (!strcmp(what, "cycles"))
		print_cpu(p, cpu, number, 0);
	else if (!strcmp(what, "errno"))
		print_cpu(p, cpu, NONE, (int)number);
	else
		return false;
	return true;
}

/* Takes what follows the rank. */
static bool take_counters(struct holder *h, const char *line)
{
	if (!strcmp(h->state, "waits"))
		return true;
	if (!strcmp(h->state, "reserves"))
		return sscanf(line, "counters %llu lent %llu", &h->counters, &h->lent) == 2;
	if (strcmp(h->state, "context"))
		return false;
	strcpy(h->state, "counts");
	return sscanf(line, "set %llu counters %llu pinned %llu", &h->set, &h->counters,
		      &h->pinned) == 3;
}

static bool take_holder(struct printer *p, const char *line)
{
	struct holder h = { .set = NONE };
	int at = 0;

	if (!p->any || sscanf(line, "  %15s %llu name %31s rank %15s %n", h.state, &h.context,
			      h.name, h.rank, &at) != 4 || !take_counters(&h, line + at))
		return false;
	if (strcmp(h.state, "counts"))
		h.pinned = h.counters;
	print_holder(p, &h);
	return true;
}

int cmd_room(int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' }, {} };
	struct printer p = { .json.out = stdout };
	char *text, *line, *rest;
	size_t len;
	int c;

	while ((c = getopt_long(argc, argv, "j", options, NULL)) != -1) {
		if (c != 'j')
			usage();
		p.wants_json = true;
	}
	no_more_arguments(argc, argv);
	check_debugfs(ROOM);
	text = read_source(ROOM, &len);
	begin(&p);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (!take_cpu(&p, line) && !take_holder(&p, line))
			die("%s: '%s' is not understood. Do pmuk and the module match?", ROOM,
			    line);
	end(&p);
	free(text);
	return 0;
}
