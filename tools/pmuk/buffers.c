// SPDX-License-Identifier: GPL-2.0
/*
 * pmuk record --buffer: records that kernel code writes into buffers which it exports by name. The
 * kernel writes samples in perf's format, and pmuk copies them as they are. To each other record,
 * pmuk appends the fields of sample_id_all, which perf expects.
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
		die("no kernel code exports buffers by the name %s. To list the names: %s", name,
		    "pmuk consumers -n 1 -d 0.1");
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

/* Returns how many records were lost, or refused as too long, since the buffer was made. */
static u64 lost_ever(const struct buffers *b, const struct stream *s)
{
	struct pmuk_dev_stat stat;

	if (ioctl(s->fd, PMUK_BUFFER_STAT, &stat))
		cannot(b->name, s->cpu, errno);
	return stat.lost + stat.discarded;
}

static void add_event(struct buffers *b, const struct perf_event_attr *attr)
{
	perfdata_add_event(b->file, attr, event_name(attr->type, attr->config));
	b->nr++;
}

static bool differs(const struct buffers *b, const struct pmuk_dev_event *e)
{
	return memcmp(&b->file->events[b->first + e->index].attr, &e->attr, sizeof(e->attr));
}

/*
 * Each CPU has the same events, with ids of its own. Records other than samples lack the fields of
 * sample_id_all, and put_record() appends them. Returns false if the context of earlier CPUs'
 * buffers was closed meanwhile.
 */
static bool add_events(struct buffers *b, const struct stream *s)
{
	struct pmuk_dev_event e = {};
	bool first = !b->nr;

	for (; !ioctl(s->fd, PMUK_BUFFER_EVENT, &e); e.index++) {
		e.attr.size = sizeof(e.attr);
		e.attr.sample_id_all = 1;
		if (first)
			add_event(b, &e.attr);
		else if (e.index >= b->nr || differs(b, &e))
			die("%s was closed and made anew just now; try again", b->name);
		perfdata_add_id(b->file, b->first + e.index, e.id);
		*map_at(&b->ids, e.id) = e.index;
	}
	if (errno == ENODEV && !first)
		return false;
	if (errno == ENODEV || !b->nr)
		die("%s has no events, or was closed just now", b->name);
	if (errno != ENOENT)
		cannot(b->name, s->cpu, errno);
	return true;
}

/*
 * Returns false if the CPU has no buffer. If the buffers of other CPUs were opened, and nobody has
 * the name now, their context was closed just now: returns false, too.
 */
static bool choose(const struct buffers *b, const struct stream *s, struct pmuk_dev_buffer *what)
{
	if (!ioctl(s->fd, PMUK_BUFFER_OPEN, what))
		return true;
	if (errno != ENODEV && (errno != ENOENT || !b->nr))
		cannot(b->name, s->cpu, errno);
	return false;
}

bool buffer_open(struct buffers *b, struct stream *s, u32 cpu, u32 nr_pages)
{
	struct pmuk_dev_buffer what = { .cpu = cpu };
	char ring[64];

	if (strlen(b->name) >= sizeof(what.name))
		cannot(b->name, cpu, ENOENT);
	memcpy(what.name, b->name, strlen(b->name));
	*s = (struct stream) { .fd = open_device(), .cpu = cpu, .mode = PMUK_SCHED_DROP };
	if (!choose(b, s, &what) || !add_events(b, s)) {
		close(s->fd);
		return false;
	}
	snprintf(ring, sizeof(ring), "the ring of %s", what.name);
	stream_map(s, nr_pages, ring);
	return true;
}

void buffer_begin(const struct buffers *b, struct buffer *c, struct stream *s)
{
	s->position = __atomic_load_n(&s->page->data_head, __ATOMIC_ACQUIRE);
	__atomic_store_n(&s->page->data_tail, s->position, __ATOMIC_RELEASE);
	*c = (struct buffer) { .lost_ever = lost_ever(b, s) };
}

/* ---- records ---- */

void buffer_lost(const struct buffers *b, struct buffer *c, const struct stream *s)
{
	const struct perfdata_id id = track_id(b->track, s->cpu);
	u64 lost = lost_ever(b, s) - c->lost_ever;
	const u64 body[] = { b->file->events[b->first].ids[0], lost };

	if (lost)
		perfdata_put_record(b->file, PERF_RECORD_LOST, 0, body, sizeof(body), &id);
	c->lost += lost;
	c->lost_ever += lost;
}

/*
 * perf refuses a whole file for a sample whose id the file does not describe. Such samples come
 * when the context's owner has added counters since add_events().
 */
static void put_sample(const struct buffers *b, struct buffer *c, const unsigned char *at,
		       size_t size)
{
	struct { struct perf_event_header header; u64 id; } sample;

	if (size >= sizeof(sample))
		memcpy(&sample, at, sizeof(sample));
	if (size < sizeof(sample) || map_find(&b->ids, sample.id) == MAP_NONE) {
		c->unknown++;
		return;
	}
	perfdata_put(b->file, at, size);
	c->samples++;
}

/*
 * Leaves PERF_RECORD_LOST out, as the first one may have losses from before the recording.
 * buffer_lost() writes its own.
 */
static void put_record(const struct buffers *b, struct buffer *c, u32 cpu,
		       const unsigned char *at, const struct perf_event_header *h)
{
	const struct perfdata_id id = track_id(b->track, cpu);

	if (h->type == PERF_RECORD_SAMPLE)
		put_sample(b, c, at, h->size);
	else if (h->type != PERF_RECORD_LOST)
		perfdata_put_record(b->file, h->type, h->misc, at + sizeof(*h),
				    h->size - sizeof(*h), &id);
}

void buffer_records(const struct buffers *b, struct buffer *c, u32 cpu,
		    const unsigned char *data, size_t size)
{
	struct perf_event_header h;

	for (; size >= sizeof(h); data += h.size, size -= h.size) {
		memcpy(&h, data, sizeof(h));
		if (h.size < sizeof(h) || h.size > size)
			die("%s, CPU %u: a record of %u bytes where %zu are left", b->name, cpu,
			    h.size, size);
		put_record(b, c, cpu, data, &h);
	}
}
