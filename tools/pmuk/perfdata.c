// SPDX-License-Identifier: GPL-2.0
/*
 * Writes a file that perf report, perf script and other readers of perf.data can read. Records come
 * first, because the ids of events may come while the file is written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "perfdata.h"

#define STRING	64	/* strings in features are padded to a multiple of this */

void perfdata_put(struct perfdata *p, const void *data, size_t size)
{
	if (size && fwrite(data, size, 1, p->out) != 1)
		die("cannot write to %s: %s. An older file stays", p->name, strerror(errno));
	p->bytes += size;
}

void perfdata_open(struct perfdata *p, const char *name)
{
	static const struct perfdata_header empty;	/* readers refuse this until the end */

	p->name = name;
	p->out = output_open(name, 0600);	/* the file has addresses of the kernel */
	perfdata_put(p, &empty, sizeof(empty));
}

size_t perfdata_add_event(struct perfdata *p, const struct perf_event_attr *attr,
			  const char *name)
{
	struct perfdata_event *e;

	p->events = grow(p->events, p->nr, &p->room, sizeof(*p->events));
	e = &p->events[p->nr];
	*e = (struct perfdata_event) { .attr = *attr };
	e->attr.size = sizeof(e->attr);
	snprintf(e->name, sizeof(e->name), "%s", name);
	return p->nr++;
}

void perfdata_add_id(struct perfdata *p, size_t event, u64 id)
{
	struct perfdata_event *e = &p->events[event];

	e->ids = grow(e->ids, e->nr, &e->room, sizeof(*e->ids));
	e->ids[e->nr++] = id;
}

void perfdata_put_record(struct perfdata *p, u32 type, u32 misc, const void *body, size_t size,
			 const struct perfdata_id *id)
{
	struct perf_event_header h = { .type = type, .misc = (uint16_t)misc };
	size_t all = sizeof(h) + size + (id ? sizeof(*id) : 0);

	if (all > UINT16_MAX)
		die("%s: a record of type %u and %zu bytes is too long", p->name, type, all);
	h.size = (uint16_t)all;
	perfdata_put(p, &h, sizeof(h));
	perfdata_put(p, body, size);
	if (id)
		perfdata_put(p, id, sizeof(*id));
}

/* ---- features ---- */

static void put_u32(struct perfdata *p, u32 number) { perfdata_put(p, &number, sizeof(number)); }

static void put_string(struct perfdata *p, const char *text)
{
	static const char zeros[STRING];
	size_t size = strlen(text) + 1, padding = -size % STRING;

	put_u32(p, (u32)(size + padding));
	perfdata_put(p, text, size);
	perfdata_put(p, zeros, padding);
}

static void put_nrcpus(struct perfdata *p)
{
	put_u32(p, (u32)sysconf(_SC_NPROCESSORS_CONF));
	put_u32(p, (u32)sysconf(_SC_NPROCESSORS_ONLN));
}

static void put_cmdline(struct perfdata *p, char **argv)
{
	u32 nr = 0;

	while (argv[nr])
		nr++;
	put_u32(p, 1 + nr);
	put_string(p, "pmuk");
	while (*argv)
		put_string(p, *argv++);
}

static void put_event_desc(struct perfdata *p)
{
	size_t i;

	put_u32(p, (u32)p->nr);
	put_u32(p, sizeof(p->events->attr));
	for (i = 0; i < p->nr; i++) {
		const struct perfdata_event *e = &p->events[i];

		perfdata_put(p, &e->attr, sizeof(e->attr));
		put_u32(p, (u32)e->nr);
		put_string(p, e->name);
		perfdata_put(p, e->ids, e->nr * sizeof(*e->ids));
	}
}

/* ---- the end ---- */

/* Features are made of this. */
struct source {
	char **argv;
	const void *account;
	size_t size;
	struct utsname host;
};

static void put_feature(struct perfdata *p, int feature, const struct source *s)
{
	switch (feature) {
	case PERFDATA_HOSTNAME:
		return put_string(p, s->host.nodename);
	case PERFDATA_OSRELEASE:
		return put_string(p, s->host.release);
	case PERFDATA_ARCH:
		return put_string(p, s->host.machine);
	case PERFDATA_NRCPUS:
		return put_nrcpus(p);
	case PERFDATA_CMDLINE:
		return put_cmdline(p, s->argv);
	case PERFDATA_EVENT_DESC:
		return put_event_desc(p);
	case PERFDATA_ACCOUNT:
		return perfdata_put(p, s->account, s->size);
	}
}

static void put_features(struct perfdata *p, struct perfdata_header *h, const struct source *s)
{
	static const int features[] = {
		PERFDATA_HOSTNAME, PERFDATA_OSRELEASE, PERFDATA_ARCH, PERFDATA_NRCPUS,
		PERFDATA_CMDLINE, PERFDATA_EVENT_DESC, PERFDATA_ACCOUNT,
	};
	size_t i, nr = ARRAY_SIZE(features) - !s->account;
	struct perfdata_section sections[ARRAY_SIZE(features)];
	u64 table = p->bytes;

	perfdata_put(p, sections, nr * sizeof(*sections));	/* to be overwritten */
	for (i = 0; i < nr; i++) {
		sections[i].offset = p->bytes;
		put_feature(p, features[i], s);
		sections[i].size = p->bytes - sections[i].offset;
		h->features[features[i] / 64] |= 1ULL << features[i] % 64;
	}
	if (fseeko(p->out, (off_t)table, SEEK_SET))
		die("%s: %s", p->name, strerror(errno));
	perfdata_put(p, sections, nr * sizeof(*sections));
	p->bytes -= nr * sizeof(*sections);
	if (fseeko(p->out, 0, SEEK_END))
		die("%s: %s", p->name, strerror(errno));
}

static void put_attrs(struct perfdata *p, struct perfdata_header *h)
{
	struct perfdata_section *ids = zalloc((p->nr + 1) * sizeof(*ids));
	size_t i;

	for (i = 0; i < p->nr; i++) {
		ids[i] = (struct perfdata_section) { p->bytes, p->events[i].nr * sizeof(u64) };
		perfdata_put(p, p->events[i].ids, ids[i].size);
	}
	h->attrs.offset = p->bytes;
	for (i = 0; i < p->nr; i++) {
		struct perfdata_attr attr = { p->events[i].attr, ids[i] };

		perfdata_put(p, &attr, sizeof(attr));
	}
	h->attrs.size = p->bytes - h->attrs.offset;
	free(ids);
}

static void perfdata_free(struct perfdata *p)
{
	size_t i;

	for (i = 0; i < p->nr; i++)
		free(p->events[i].ids);
	free(p->events);
}

void perfdata_finish(struct perfdata *p, char **argv, const void *account, size_t size)
{
	struct source s = { .argv = argv, .account = account, .size = size };
	struct perfdata_header h = {
		.magic = PERFDATA_MAGIC,
		.size = sizeof(h),
		.attr_size = sizeof(struct perfdata_attr),
		.data = { sizeof(h), p->bytes - sizeof(h) },
	};
	u64 bytes;

	if (uname(&s.host))
		die("uname: %s", strerror(errno));
	put_features(p, &h, &s);
	put_attrs(p, &h);
	bytes = p->bytes;
	finish_output(p->out, p->name);
	if (fseeko(p->out, 0, SEEK_SET))
		die("%s: %s", p->name, strerror(errno));
	perfdata_put(p, &h, sizeof(h));
	p->bytes = bytes;
	output_finish(p->out, p->name);
	perfdata_free(p);
}
