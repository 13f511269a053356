// SPDX-License-Identifier: GPL-2.0
/*
 * pmuk record --buffer: records that kernel code writes into buffers which it exports by name. The
 * samples are perf's already. Other records get the fields that perf expects behind them.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/pmu_kapi.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "recording.h"

#define BUFFERS		"/dev/pmuk"

__noreturn static void cannot(const char *name, u32 cpu, int error)
{
	if (error == ENOENT)
		die("no kernel code exports buffers by the name %s", name);
	if (error == EBUSY)
		die("the records of %s on CPU %u are being read by somebody else", name, cpu);
	die("the buffer of %s on CPU %u: %s", name, cpu, strerror(error));
}

static int open_device(void)
{
	int fd = open(rooted(BUFFERS), O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (errno == EACCES || errno == EPERM)
		die("%s: this takes CAP_PERFMON. Run pmuk as root, as in: sudo pmuk ...", BUFFERS);
	if (errno == EMFILE)
		die("%s: there are too many open files; see ulimit -n", BUFFERS);
	die("%s: %s. Is the module pmu_kapi loaded?", BUFFERS, strerror(errno));
}

bool buffer_open(struct stream *s, const char *name, u32 cpu, u32 nr_pages)
{
	struct pmuk_dev_buffer what = { .cpu = cpu };

	if (strlen(name) >= sizeof(what.name))
		cannot(name, cpu, ENOENT);
	memcpy(what.name, name, strlen(name));
	*s = (struct stream) { .fd = open_device(), .cpu = cpu, .mode = PMUK_SCHED_DROP };
	if (ioctl(s->fd, PMUK_BUFFER_OPEN, &what)) {
		if (errno != ENODEV)
			cannot(name, cpu, errno);
		close(s->fd);
		return false;
	}
	stream_map(s, nr_pages);
	return true;
}

/* ---- events ---- */

/*
 * Each CPU has the same events, with ids of its own. Records of losses do not have the fields that
 * perf expects behind them with sample_id_all, but this file adds the fields.
 */
void buffer_events(struct buffers *b, const struct stream *s)
{
	struct pmuk_dev_event e = {};

	for (; !ioctl(s->fd, PMUK_BUFFER_EVENT, &e); e.index++) {
		if (e.index == b->nr) {
			e.attr.sample_id_all = 1;
			perfdata_add_event(b->file, &e.attr, event_name(e.attr.type, e.attr.config));
			b->nr++;
		}
		perfdata_add_id(b->file, b->first + e.index, e.id);
	}
	if (errno != ENOENT)
		cannot(b->name, s->cpu, errno);
}

/* ---- records ---- */

static void put_lost(const struct buffers *b, u32 cpu, u64 lost)
{
	const struct perfdata_event *e = &b->file->events[b->first];
	const struct perfdata_id id = { .cpu = cpu, .id = e->nr ? e->ids[0] : 0 };
	const u64 body[] = { id.id, lost };

	perfdata_put_record(b->file, PERF_RECORD_LOST, 0, body, sizeof(body), &id);
}

static void put_record(const struct buffers *b, struct buffer *c, const unsigned char *at,
		       const struct perf_event_header *h)
{
	const struct perfdata_event *e = &b->file->events[b->first];
	const struct perfdata_id id = { .cpu = c->cpu, .id = e->nr ? e->ids[0] : 0 };
	u64 lost;

	c->records += h->type == PERF_RECORD_SAMPLE;
	if (h->type == PERF_RECORD_SAMPLE) {
		perfdata_put(b->file, at, h->size);
	} else if (h->type == PERF_RECORD_LOST && h->size >= sizeof(*h) + 2 * sizeof(lost)) {
		memcpy(&lost, at + sizeof(*h) + sizeof(lost), sizeof(lost));
		put_lost(b, c->cpu, lost);
		c->lost += lost;
	} else {
		perfdata_put_record(b->file, h->type, h->misc, at + sizeof(*h),
				    h->size - sizeof(*h), &id);
	}
}

void buffer_records(const struct buffers *b, struct buffer *c, const unsigned char *data,
		    size_t size)
{
	struct perf_event_header h;

	for (; size >= sizeof(h); data += h.size, size -= h.size) {
		memcpy(&h, data, sizeof(h));
		if (h.size < sizeof(h) || h.size > size)
			die("%s, CPU %u: a record of %u bytes where %zu are left", b->name, c->cpu,
			    h.size, size);
		put_record(b, c, data, &h);
	}
}

/* The last losses come in no record. */
void buffer_end(const struct buffers *b, struct buffer *c, const struct stream *s)
{
	struct pmuk_dev_stat stat;

	if (ioctl(s->fd, PMUK_BUFFER_STAT, &stat))
		cannot(b->name, c->cpu, errno);
	if (stat.lost > c->lost)
		put_lost(b, c->cpu, stat.lost - c->lost);
	c->lost = stat.lost;
}
