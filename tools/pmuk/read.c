// SPDX-License-Identifier: GPL-2.0
/*
 * Parses the files of /proc/pmuk_sched. A line of an unknown format is an error: a number with the
 * wrong meaning would be worse than none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pmuk.h"

#define VERSION	"2"

/* The position of the parser in the text. */
struct cursor {
	const char *file;
	int line;
	char *at;		/* the rest of the line */
	char *next;		/* the next line, or NULL */
};

__noreturn static void refuse(const struct cursor *c, const char *wanted,
					     const char *found)
{
	die("%s/%s:%d: expected %s, found '%s'. Is pmuk of the same version as the module?", PROC,
	    c->file, c->line, wanted, found);
}

/* Goes to the next line; returns false at the end. */
static bool next_line(struct cursor *c)
{
	char *end;

	if (!c->next || !*c->next)
		return false;
	c->at = c->next;
	c->line++;
	end = strchr(c->at, '\n');
	if (!end)
		refuse(c, "the end of a line", c->at);
	*end = 0;
	c->next = end + 1;
	return true;
}

static char *rest_of_line(struct cursor *c)
{
	char *text = c->at;

	c->at += strlen(c->at);
	return text;
}

static bool is_octal(const char *text)
{
	return text[0] >= '0' && text[0] <= '3' && text[1] >= '0' && text[1] <= '7' &&
	       text[2] >= '0' && text[2] <= '7';
}

void unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (*text == '\\' && is_octal(text + 1)) {
			*to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 |
				       (text[3] - '0'));
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = 0;
}

static char *name(struct cursor *c)
{
	char *text = rest_of_line(c);

	unescape(text);
	return text;
}

/* Returns the next word, or "" at the end of the line. */
static char *word(struct cursor *c)
{
	char *text = c->at, *end = strchr(text, ' ');

	if (!end)
		return rest_of_line(c);
	*end = 0;
	c->at = end + 1;
	return text;
}

static u64 number(struct cursor *c)
{
	char *text = word(c), *end;
	u64 n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno)
		refuse(c, "a number", text);
	return n;
}

static u64 number_or_none(struct cursor *c)
{
	if (c->at[0] == '-' && (c->at[1] == ' ' || !c->at[1])) {
		word(c);
		return NONE;
	}
	return number(c);
}

static void no_more(struct cursor *c)
{
	if (*c->at)
		refuse(c, "the end of the line", c->at);
}

static void header_line(struct cursor *c, const char *key)
{
	char *found;

	if (!next_line(c))
		refuse(c, key, "the end");
	found = word(c);
	if (strcmp(found, key))
		refuse(c, key, found);
}

static u64 header_number(struct cursor *c, const char *key)
{
	u64 n;

	header_line(c, key);
	n = number(c);
	no_more(c);
	return n;
}

static void read_version(struct cursor *c)
{
	const char *version;

	header_line(c, "pmuk_sched");
	version = word(c);
	if (strcmp(version, VERSION))
		die(PROC "/%s is of version '%s', and this pmuk knows version " VERSION
		    ": use the pmuk that belongs to your kernel", c->file, version);
	no_more(c);
}

static bool read_state(struct cursor *c)
{
	const char *state;

	header_line(c, "state");
	state = word(c);
	no_more(c);
	if (strcmp(state, "on") && strcmp(state, "off"))
		refuse(c, "on or off", state);
	return !strcmp(state, "on");
}

static void read_events(struct cursor *c, struct reading *r)
{
	const char *event;

	header_line(c, "events");
	while (*(event = word(c))) {
		if (r->nr_events == MAX_EVENTS || strlen(event) >= EVENT_NAME)
			refuse(c, "up to four names of events", event);
		strcpy(r->events[r->nr_events++], event);
	}
}

static void read_memory(struct cursor *c, struct memory *m)
{
	header_line(c, "memory");
	m->per_task = number(c);
	m->per_cpu = number(c);
	m->table = number(c);
	m->tasks = number(c);
	no_more(c);
}

/* Returns true if the module counts, so that more lines follow. */
static bool read_header(struct cursor *c, struct reading *r)
{
	read_version(c);
	r->on = read_state(c);
	if (!r->on)
		return false;
	r->timestamp = header_number(c, "timestamp");
	r->since = header_number(c, "since");
	if (r->since > r->timestamp)
		refuse(c, "a time before the timestamp", "a later one");
	read_events(c, r);
	header_line(c, "missing");
	r->missing = rest_of_line(c);
	read_memory(c, &r->memory);
	r->unattributed = header_number(c, "unattributed");
	return true;
}

static void read_counts(struct cursor *c, const struct reading *r, struct totals *t)
{
	int i;

	for (i = 0; i < MAX_EVENTS; i++)
		t->counts[i] = i < r->nr_events ? number_or_none(c) : NONE;
}

static void read_totals(struct cursor *c, const struct reading *r, struct totals *t)
{
	u64 valid;
	int i;

	t->run = number(c);
	t->wait = number_or_none(c);
	for (i = 0; i < NR_LEFT; i++)
		t->left[i] = number(c);
	valid = number(c);
	if (valid > 1)
		refuse(c, "0 or 1 for valid", "something else");
	t->valid = valid;
	read_counts(c, r, t);
}

static void read_cpu(struct cursor *c, struct reading *r, struct entry *e)
{
	e->id = number(c);
	read_totals(c, r, &e->t);
}

static void read_idle(struct cursor *c, struct reading *r, struct entry *e)
{
	e->id = number(c);
	e->t.run = number(c);
	e->t.wait = NONE;
	e->t.left[VOLUNTARY] = number(c);
	e->t.valid = true;
	read_counts(c, r, &e->t);
}

static void read_irq(struct cursor *c, struct reading *r, struct entry *e)
{
	(void)r;
	e->id = number(c);
	e->hard = number(c);
	e->soft = number(c);
}

static void read_rest(struct cursor *c, struct reading *r, struct entry *e)
{
	int i;

	(void)r;
	e->id = number(c);
	for (i = 0; i < NR_REST; i++)
		e->rest[i] = number(c);
}

static void read_task(struct cursor *c, struct reading *r, struct entry *e)
{
	e->id = number(c);
	e->parent = number(c);
	e->cgroup = number(c);
	read_totals(c, r, &e->t);
	e->name = name(c);
}

static void read_group(struct cursor *c, struct reading *r, struct entry *e)
{
	e->id = number(c);
	e->threads = number(c);
	e->cgroup = number(c);
	read_totals(c, r, &e->t);
	e->name = name(c);
}

static void read_sum(struct cursor *c, struct reading *r, struct entry *e)
{
	read_totals(c, r, &e->t);
}

static void read_cgroup(struct cursor *c, struct reading *r, struct entry *e)
{
	e->id = number(c);
	e->parent = number(c);
	read_totals(c, r, &e->t);
	e->name = name(c);
}

static void read_hist(struct cursor *c, struct reading *r, enum kind kind)
{
	struct histogram *h;
	int i;

	r->hists = grow(r->hists, r->nr_hists, &r->hists_room, sizeof(*r->hists));
	h = &r->hists[r->nr_hists++];
	*h = (struct histogram) { .kind = kind, .cpu = number(c) };
	for (i = 0; i < (kind == IPC_HIST ? IPC_BUCKETS : BUCKETS); i++)
		h->bucket[i] = number(c);
}

static const struct line {
	const char *file;
	const char *key;
	enum kind kind;
	/* NULL: the line is a histogram */
	void (*read)(struct cursor *c, struct reading *r, struct entry *e);
} lines[] = {
	{ "cpus", "cpu", CPU, read_cpu },
	{ "cpus", "idle", IDLE, read_idle },
	{ "cpus", "irq", IRQ, read_irq },
	{ "cpus", "left", REST, read_rest },
	{ "tasks", "task", TASK, read_task },
	{ "tasks", "group", GROUP, read_group },
	{ "tasks", "exited", EXITED, read_sum },
	{ "tasks", "stray", STRAY, read_sum },
	{ "cgroups", "cgroup", CGROUP, read_cgroup },
	{ "cgroups", "subtree", SUBTREE, read_cgroup },
	{ "hist", "wait", WAIT_HIST, NULL },
	{ "hist", "slice", SLICE_HIST, NULL },
	{ "hist", "ipc", IPC_HIST, NULL },
};

static const struct line *line_of(struct cursor *c)
{
	const char *key = word(c);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lines); i++)
		if (!strcmp(lines[i].file, c->file) && !strcmp(lines[i].key, key))
			return &lines[i];
	refuse(c, "a line that belongs here", key);
}

static void read_line(struct cursor *c, struct reading *r)
{
	const struct line *l = line_of(c);
	struct entry *e;

	if (!l->read) {
		read_hist(c, r, l->kind);
	} else {
		r->entries = grow(r->entries, r->nr, &r->room, sizeof(*r->entries));
		e = &r->entries[r->nr++];
		*e = (struct entry) { .kind = l->kind };
		l->read(c, r, e);
	}
	no_more(c);
}

void read_any(const char *file, struct reading *r)
{
	struct cursor c = { .file = file };
	char path[64];
	size_t len;

	*r = (struct reading) {};
	snprintf(path, sizeof(path), PROC "/%s", file);
	r->text = read_source(path, &len);
	if (strlen(r->text) != len)
		die("%s has a byte of 0 in it", path);
	c.next = r->text;
	if (!read_header(&c, r))
		return;
	while (next_line(&c))
		read_line(&c, r);
}

void read_on(const char *file, struct reading *r)
{
	read_any(file, r);
	if (!r->on)
		die("pmuk_sched is loaded, but does not count now. As root: pmuk enable");
}

void forget(struct reading *r)
{
	free(r->entries);
	free(r->hists);
	free(r->text);
	*r = (struct reading) {};
}

int event_index(const struct reading *r, const char *name)
{
	int i;

	for (i = 0; i < r->nr_events; i++)
		if (!strcmp(r->events[i], name))
			return i;
	return -1;
}
