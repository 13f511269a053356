// SPDX-License-Identifier: GPL-2.0
/*
 * Tells readers of a recording how tasks are named and what code they have mapped, as perf record
 * does: the kernel says so in records of a dummy event. present.c tells of what there was before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recording.h"

void track_begin(struct track *t, struct perfdata *file, bool code)
{
	const struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
		.sample_type = RECORDING_ID_TYPE,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_LOST,
		.sample_id_all = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.mmap = code,
		.mmap2 = code,
		.build_id = code,
		.ksymbol = code,
		.watermark = 1,
		.wakeup_watermark = TRACK_PAGES * (u32)sysconf(_SC_PAGESIZE) / 4,
	};

	*t = (struct track) { .file = file, .code = code };
	t->event = perfdata_add_event(file, &attr, "tasks");
	t->buffer = zalloc(TRACK_PAGES * (size_t)sysconf(_SC_PAGESIZE));
}

__noreturn static void cannot(u32 cpu, int error)
{
	if (error == EMFILE)
		die("CPU %u: there are too many open files; see ulimit -n", cpu);
	if (error == EACCES || error == EPERM)
		die("CPU %u: recording the names of tasks takes CAP_PERFMON", cpu);
	die("CPU %u: perf does not tell the names of tasks: %s", cpu, strerror(error));
}

bool track_open(struct track *t, u32 cpu)
{
	struct stream s = { .cpu = cpu, .mode = PMUK_SCHED_DROP };
	u64 id;

	s.fd = (int)syscall(__NR_perf_event_open, &t->file->events[t->event].attr, -1, (int)cpu,
			    -1, PERF_FLAG_FD_CLOEXEC);
	if (s.fd < 0 && (errno == ENODEV || errno == EINVAL))
		return false;
	if (s.fd < 0 || ioctl(s.fd, PERF_EVENT_IOC_ID, &id))
		cannot(cpu, errno);
	perfdata_add_id(t->file, t->event, id);
	stream_map(&s, TRACK_PAGES, "the ring of names of tasks");
	t->streams = grow(t->streams, t->nr, &t->room, sizeof(s));
	t->streams[t->nr++] = s;
	return true;
}

/*
 * Returns the fields of sample_id_all for a record that pmuk makes. The dummy event's id tells perf
 * which fields these are.
 */
struct perfdata_id track_id(const struct track *t, u32 cpu)
{
	const struct perfdata_event *e = &t->file->events[t->event];

	if (!e->nr)
		die("none of these CPUs is online");
	return (struct perfdata_id) { .cpu = cpu, .id = e->ids[0] };
}

/* Records have zeros after a text, at least one, up to a multiple of 8 bytes. */
static size_t padded(size_t length)
{
	return (length / 8 + 1) * 8;
}

void track_put(struct track *t, u32 type, u32 misc, const void *body, size_t size,
	       const char *text)
{
	const struct perfdata_id id = track_id(t, 0);

	perfdata_put_record(t->file, type, misc, body, size + padded(strlen(text)), &id);
}

void track_map(struct track *t, u32 misc, const struct mapping *m, bool has_id)
{
	track_put(t, PERF_RECORD_MMAP2, misc | (has_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0), m,
		  offsetof(struct mapping, path), m->path);
}

void track_belongs(struct track *t, u32 tid, u32 pid)
{
	*map_at(&t->processes, tid) = pid;
}

static void note(struct track *t, const struct perf_event_header *h, const unsigned char *body)
{
	struct { u32 pid, ppid, tid, ptid; } task;
	struct { u32 pid, tid; } named;

	if (h->type == PERF_RECORD_FORK && h->size >= sizeof(*h) + sizeof(task)) {
		memcpy(&task, body, sizeof(task));
		track_belongs(t, task.tid, task.pid);
	}
	if (h->type == PERF_RECORD_COMM && h->size >= sizeof(*h) + sizeof(named)) {
		memcpy(&named, body, sizeof(named));
		track_belongs(t, named.tid, named.pid);
	}
}

static void put_records(struct track *t, const unsigned char *data, size_t size)
{
	struct perf_event_header h;
	size_t at;

	for (at = 0; size - at >= sizeof(h); at += h.size) {
		memcpy(&h, data + at, sizeof(h));
		if (h.size < sizeof(h) || h.size > size - at)
			die("perf's ring has a record of %u bytes where %zu are left", h.size,
			    size - at);
		note(t, &h, data + at + sizeof(h));
	}
	perfdata_put(t->file, data, size);
}

void track_drain(struct track *t)
{
	size_t i;

	for (i = 0; i < t->nr; i++)
		put_records(t, t->buffer, stream_read(&t->streams[i], NONE, t->buffer));
}

/* A thread that has never been mentioned counts as a process from now on. */
u32 track_process(struct track *t, u32 tid)
{
	if (map_find(&t->processes, tid) == MAP_NONE)
		track_drain(t);
	if (map_find(&t->processes, tid) == MAP_NONE)
		track_belongs(t, tid, tid);
	return (u32)map_find(&t->processes, tid);
}

/* A read of a dummy event returns this. */
struct counted {
	u64 value, enabled, lost;
};

static struct counted read_event(const struct stream *s)
{
	struct counted c;

	if (read(s->fd, &c, sizeof(c)) != sizeof(c))
		return (struct counted) {};
	return c;
}

/*
 * An event ends when its CPU goes offline, and it does not come back with the CPU. The time for
 * which the event was enabled then stands still.
 */
static bool has_ended(const struct stream *s)
{
	return read_event(s).enabled == read_event(s).enabled;
}

static const struct stream *stream_of(const struct track *t, u32 cpu)
{
	size_t i;

	for (i = 0; i < t->nr; i++)
		if (t->streams[i].cpu == cpu)
			return &t->streams[i];
	return NULL;
}

struct newcomers {
	const struct track *t;
	bool all;
	size_t nr;
};

static void count_newcomer(void *data, u32 cpu)
{
	struct newcomers *n = data;
	const struct stream *s = stream_of(n->t, cpu);

	n->nr += s ? has_ended(s) : n->all;
}

void track_check_cpus(const struct track *t, bool all)
{
	struct newcomers n = { .t = t, .all = all };
	char list[CPU_LIST_MAX];

	if (read_cpu_list("online", list) && each_cpu(list, count_newcomer, &n) && n.nr)
		warn_user("%zu CPUs came online after the recording had begun: %s", n.nr,
			  "what ran there may be missing");
}

/* The rings tell of a loss only when a record follows, so the events are asked. */
static u64 lost(const struct track *t)
{
	u64 sum = 0;
	size_t i;

	for (i = 0; i < t->nr; i++)
		sum += read_event(&t->streams[i]).lost;
	return sum;
}

void track_end(struct track *t)
{
	u64 records = lost(t);
	size_t i;

	if (records)
		warn_user("%llu records about tasks were lost: %s", (unsigned long long)records,
			  "some tasks may have no name or a wrong one, and code may be missing");
	for (i = 0; i < t->nr; i++)
		stream_close(&t->streams[i]);
	free(t->streams);
	free(t->buffer);
	map_free(&t->processes);
}
