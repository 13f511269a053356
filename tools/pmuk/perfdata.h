/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A file of perf, as tools/perf/Documentation/perf.data-file-format.txt of the kernel describes it:
 *
 *	struct perfdata_header
 *	records, as the kernel's and perf's ABIs define them
 *	a struct perfdata_section for each feature, and then the features
 *	the ids of the events
 *	a struct perfdata_attr for each event
 *
 * All is in the byte order of the machine that has written the file.
 */
#ifndef PMUK_PERFDATA_H
#define PMUK_PERFDATA_H

#include <linux/perf_event.h>

#include "pmuk.h"

#define PERFDATA_MAGIC		"PERFILE2"

/* Bits of perfdata_header.features, and the order of the features in the file. */
enum {
	PERFDATA_HOSTNAME	= 3,
	PERFDATA_OSRELEASE	= 4,
	PERFDATA_ARCH		= 6,
	PERFDATA_NRCPUS		= 7,
	PERFDATA_CMDLINE	= 11,
	PERFDATA_EVENT_DESC	= 12,
	PERFDATA_ACCOUNT	= 255,	/* pmuk's own, see recording.h; perf ignores it */
	PERFDATA_FEATURES	= 256,
};

/*
 * A type of record that perf has for itself, the end of a round: no record after this mark is older
 * than the newest record before the previous mark.
 */
#define PERFDATA_FINISHED_ROUND	68

struct perfdata_section {
	u64 offset, size;
};

struct perfdata_header {
	char magic[8];
	u64 size;		/* bytes of this header */
	u64 attr_size;		/* bytes of a struct perfdata_attr */
	struct perfdata_section attrs, data, event_types;
	u64 features[PERFDATA_FEATURES / 64];
};

struct perfdata_attr {
	struct perf_event_attr attr;
	struct perfdata_section ids;
};

/*
 * This follows each record that is no sample, with sample_type TID | TIME | CPU | IDENTIFIER. In a
 * sample, the id comes first.
 */
struct perfdata_id {
	u32 pid, tid;
	u64 time;
	u32 cpu, zero;
	u64 id;
};

/* ---- perfdata.c: writes such a file ---- */

struct perfdata_event {
	struct perf_event_attr attr;
	char name[64];
	u64 *ids;
	size_t nr, room;
};

struct perfdata {
	const char *name;	/* the file has this name */
	FILE *out;
	u64 bytes;		/* written so far */
	struct perfdata_event *events;
	size_t nr, room;
};

/* Creates the file. An older one of that name stays until perfdata_finish(). */
void perfdata_open(struct perfdata *p, const char *name);
/* Adds an event, and returns its number. */
size_t perfdata_add_event(struct perfdata *p, const struct perf_event_attr *attr,
			  const char *name);
void perfdata_add_id(struct perfdata *p, size_t event, u64 id);
void perfdata_put(struct perfdata *p, const void *data, size_t size);
/* Puts a record with @size bytes of @body, and then @id, unless that is NULL. */
void perfdata_put_record(struct perfdata *p, u32 type, u32 misc, const void *body, size_t size,
			 const struct perfdata_id *id);
/* @argv: pmuk's arguments; @account: the feature PERFDATA_ACCOUNT, or NULL */
void perfdata_finish(struct perfdata *p, char **argv, const void *account, size_t size);

#endif
