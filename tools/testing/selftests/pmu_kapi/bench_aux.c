// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the cost of a part of an AUX area: prints what <debugfs>/pmuk_bench_aux/run says, and
 * measures what user space has a part in:
 *
 * aux_perf_begin_end: the same driver, with an event that perf_event_open(2) has opened. Of that,
 *	the cost of a write to the same file which does nothing is subtracted.
 * stream_aux_user, stream_rec_user: as stream_aux and stream_rec there, with user space reading
 *	what /dev/pmuk_export writes.
 */
#include <pthread.h>

#include "bench.h"
#include "export.h"

#define RUN		"/sys/kernel/debug/pmuk_bench_aux/run"
#define TYPE		"/sys/bus/event_source/devices/pmuk_bench_itrace/type"
#define ALIGN_ORDER	3	/* the alignment of parts, which is the PMU's config */
#define RING_SIZE	(128 * 1024)
#define AREA		(64 * 1024)
#define STREAM		(8 << 20)
#define PIECE		4096
#define PART		64

static int cpu, run;

/* ---- perf ---- */

static struct perf_event_mmap_page *page;

static void perf_open(void)
{
	struct perf_event_attr attr = {
		.type			= get_number(TYPE),
		.config			= ALIGN_ORDER,
		.watermark		= 1,
		.wakeup_watermark	= RING_SIZE,
		.disabled		= 1,
	};
	size_t page_size = sysconf(_SC_PAGESIZE);
	int fd = need(open_event(&attr, -1, cpu), "perf_event_open");

	page = need_map(mmap(NULL, page_size + RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			     0), "mmap of a perf ring");
	page->aux_offset = page_size + RING_SIZE;
	page->aux_size = AREA;
	need_map(mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_SHARED, fd, page->aux_offset),
		 "mmap of perf's AUX area");
	need(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), "PERF_EVENT_IOC_ENABLE");
}

static void perf_empty(void)
{
	STORE(page->aux_tail, LOAD(page->aux_head));
	STORE(page->data_tail, LOAD(page->data_head));
}

static void calls_nothing(void)
{
	if (write(run, "0", 1) != 1)
		fail(RUN);
}

static void calls_parts(void)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", CALLS);

	if (write(run, text, len) != len)
		fail("no room in perf's AUX area");
}

static struct way ways[] = {
	{ .calls = calls_nothing },
	{ .calls = calls_parts, .name = "aux_perf_begin_end", .before = perf_empty },
};

/* ---- a stream to user space ---- */

struct stream {
	int fd;
	struct perf_event_mmap_page *page;
	const uint64_t *area;
	uint64_t sum;		/* the sum of all words that were read */
	uint64_t read;		/* bytes, of records */
};

static void *stream_reader(void *data)
{
	struct stream *s = data;
	uint64_t tail = 0, head;

	need(stay_on(!cpu), "two CPUs");
	while (tail < STREAM) {
		head = __atomic_load_n(&s->page->aux_head, __ATOMIC_ACQUIRE);
		for (; tail != head; tail += 8)
			s->sum += s->area[tail % AREA / 8];
		__atomic_store_n(&s->page->aux_tail, tail, __ATOMIC_RELEASE);
		STORE(s->page->data_tail, LOAD(s->page->data_head));
	}
	return NULL;
}

/* Reads records, and what is behind their headers. */
static void *records_reader(void *data)
{
	struct stream *s = data;
	const uint64_t *words = (const void *)((const char *)s->page + s->page->data_offset);
	uint64_t mask = s->page->data_size / 8 - 1, at = 0, head, end;
	struct perf_event_header header;

	need(stay_on(!cpu), "two CPUs");
	while (s->read < STREAM) {
		head = __atomic_load_n(&s->page->data_head, __ATOMIC_ACQUIRE) / 8;
		while (at != head) {
			memcpy(&header, &words[at++ & mask], sizeof(header));
			end = at + header.size / 8 - 1;
			if (header.type == PMUK_EXPORT_RECORD)
				STORE(s->read, s->read + PART);
			for (; at != end; at++)
				s->sum += words[at & mask];
		}
		__atomic_store_n(&s->page->data_tail, at * 8, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void stream_open(struct stream *s)
{
	struct pmuk_export_attr attr = { .nr_pages = RING_SIZE / 4096, .flags = USER_TAIL,
					 .cpu = cpu, .aux_pages = AREA / 4096,
					 .watermark = RING_SIZE };

	s->fd = need(export_make(&attr), "/dev/pmuk_export");
	s->page = need_map(map_pages(s->fd, 1 + attr.nr_pages, PROT_READ | PROT_WRITE),
			   "mmap of a buffer");
	s->area = need_map(mmap(NULL, AREA, PROT_READ, MAP_SHARED, s->fd, s->page->aux_offset),
			   "mmap of an AUX area");
}

/* Writes the whole stream in parts. */
static void write_parts(struct stream *s)
{
	uint64_t left;
	int64_t once;

	for (left = STREAM; left; left -= once) {
		once = export_aux_write(s->fd, left < AREA ? left : AREA, PIECE);
		if (once < 0)
			fail("a stream");
	}
}

/* Writes records that have no room again. */
static void write_records(struct stream *s)
{
	while (LOAD(s->read) < STREAM)
		need(export_write(s->fd, AREA / PART, 8 + PART, PMUK_EXPORT_TASK), "records");
}

static void stream_measure(const char *name, void *(*reader)(void *),
			   void (*writer)(struct stream *s))
{
	struct stream s = {};
	pthread_t thread;
	uint64_t start;

	stream_open(&s);
	if (pthread_create(&thread, NULL, reader, &s))
		fail("a thread");
	start = now_ns();
	writer(&s);
	pthread_join(thread, NULL);
	printf("%s_ns %.3f\n", name, (double)(now_ns() - start) / (STREAM / PIECE));
	close(s.fd);
}

int main(void)
{
	cpu = stay_on_this_cpu();
	run = need(open(RUN, O_RDWR), RUN);
	print_all(run, RUN);
	perf_open();
	measure(ways, sizeof(ways) / sizeof(struct way));
	if (nr_cpus() > 1) {
		stream_measure("stream_aux_user", stream_reader, write_parts);
		stream_measure("stream_rec_user", records_reader, write_records);
	}
	return 0;
}
