/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tests of /dev/pmuk_sched share these helpers: two workers on the last CPU, streams of records
 * and of packets, the totals of a stream, and the tests that are the same for both kinds.
 */
#ifndef _PMUK_SELFTEST_SCHED_DEVICE_H
#define _PMUK_SELFTEST_SCHED_DEVICE_H

#include <poll.h>
#include <sys/mman.h>

#include "sched.h"
#include "../../../../include/uapi/linux/pmuk_sched.h"

#define DEVICE		"/dev/pmuk_sched"

static inline int bind_stream(int fd, unsigned int cpu, unsigned int pages, unsigned int mode,
			      unsigned int watermark)
{
	struct pmuk_sched_stream what = {
		.cpu = cpu, .nr_pages = pages, .mode = mode, .watermark = watermark,
	};

	return ioctl(fd, PMUK_SCHED_STREAM, &what);
}

static inline bool wakes(int fd, uint64_t patience)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, patience / NSEC_PER_MSEC) == 1 && poll_fd.revents & POLLIN;
}

static inline int open_device(void)
{
	return open(DEVICE, O_RDWR | O_CLOEXEC);
}

/* ---- streams ---- */

/*
 * A stream is a file and its maps. The first map is a control page with a ring of records. A stream
 * of packets has a ring of one page, and an AUX area in a second map.
 */
struct stream {
	int fd;
	unsigned int mode;
	struct perf_event_mmap_page *page;
	size_t mapped;			/* bytes of the control page and the ring */
	const uint8_t *data;		/* records or packets */
	uint64_t size;			/* bytes of @data */
	uint64_t tail;			/* position of the next byte to read */
};

static inline bool stream_map_packets(struct stream *s)
{
	s->data = mmap(NULL, s->page->aux_size, PROT_READ, MAP_SHARED, s->fd, s->page->aux_offset);
	return s->data != MAP_FAILED && s->page->aux_size == s->size;
}

static inline bool stream_map(struct stream *s)
{
	int prot = s->mode == PMUK_SCHED_OVERWRITE ? PROT_READ : PROT_READ | PROT_WRITE;

	s->page = mmap(NULL, s->mapped, prot, MAP_SHARED, s->fd, 0);
	if (s->page == MAP_FAILED)
		return false;
	s->data = (const uint8_t *)s->page + getpagesize();
	return s->mode != PMUK_SCHED_RAW || stream_map_packets(s);
}

static inline bool stream_open(struct stream *s, int cpu, unsigned int pages, unsigned int mode,
			       unsigned int watermark)
{
	*s = (struct stream){
		.fd = open_device(),
		.mode = mode,
		.mapped = (1 + (mode == PMUK_SCHED_RAW ? 1 : pages)) * getpagesize(),
		.size = (uint64_t)pages * getpagesize(),
	};
	return s->fd >= 0 && !bind_stream(s->fd, cpu, pages, mode, watermark) && stream_map(s);
}

static inline void stream_unmap(struct stream *s)
{
	if (s->mode == PMUK_SCHED_RAW)
		munmap((void *)s->data, s->size);
	munmap(s->page, s->mapped);
}

static inline void stream_close(struct stream *s)
{
	stream_unmap(s);
	close(s->fd);
	s->fd = -1;
}

static inline uint64_t stream_head(const struct stream *s)
{
	__u64 *head = s->mode == PMUK_SCHED_RAW ? &s->page->aux_head : &s->page->data_head;

	return __atomic_load_n(head, __ATOMIC_ACQUIRE);
}

/* ---- what was read ---- */

struct seen {
	uint64_t switches, invalid;
	uint32_t pid;			/* task whose slices @t adds up */
	struct totals t;

	/* Only streams of records have these members. */
	uint64_t lost;			/* lost records by PERF_RECORD_LOST */
	uint64_t others;		/* records of any other type */
	uint64_t breaks;		/* records that do not continue the one before */
	bool gap;			/* PERF_RECORD_LOST came after @last */
	struct pmuk_sched_switch last;

	/* Only streams of packets have these members. */
	uint64_t marks, missing;	/* marks; switches that the marks' numbers skip */
	uint64_t jumps;			/* marks with another time or task, no switch missing */
	uint64_t bad;			/* packets that are malformed or out of order */
	uint64_t bytes, by_mark;	/* all bytes; most bytes between two marks */
	uint64_t number, time;		/* next switch; begin of the slice before it */
	uint32_t now;			/* task that runs in that slice */
	uint32_t pair[2], latest;	/* two tasks; the one that has run last */
	uint64_t turns;			/* switches from one of @pair to the other */
};

/*
 * Adds up one slice of @pid. @misc comes from a record's header, or is the first byte of a packet.
 */
static inline void see_slice(struct seen *seen, uint32_t pid, unsigned int misc, uint64_t run,
			     uint64_t wait, const uint64_t counts[2])
{
	unsigned int how = misc & PMUK_SCHED_CLASS_MASK;
	const struct totals slice = {
		.run = run,
		.wait = wait,
		.voluntary = how == PMUK_SCHED_VOLUNTARY,
		.same = how == PMUK_SCHED_SAME,
		.other = how == PMUK_SCHED_OTHER,
		.counts = { counts[0], counts[1] },
	};

	seen->switches++;
	seen->invalid += !!(misc & PMUK_SCHED_INVALID);
	if (pid == seen->pid)
		add_totals(&seen->t, &slice);
}

/* ---- two workers ---- */

/* Both fixtures have this state. */
struct streaming {
	int cpu;			/* the last CPU, while the test is on the first */
	unsigned int mode;		/* mode of streams in the shared tests */
	struct stream s;
	struct seen seen;
	struct pmuk_sched_stat stat;
	struct worker w, v;
};

/*
 * The files sched_stream.c and sched_raw.c each define these two functions. stream_read() reads the
 * stream up to @head, and gives the space back to the writer. expect_all() expects that each switch
 * of the CPU has been read, or is counted as lost or discarded.
 */
static bool stream_read(struct stream *s, struct seen *seen, uint64_t head);
static void expect_all(struct __test_metadata *_metadata, const struct streaming *r);

static inline bool streaming_begin(struct streaming *r, unsigned int mode)
{
	r->mode = mode;
	r->cpu = nr_cpus() - 1;
	r->s.fd = -1;
	return sched_begin(8, 48) && worker_start_on(&r->w, r->cpu) &&
	       worker_start_on(&r->v, r->cpu);
}

static inline bool streaming_end(struct streaming *r)
{
	bool ended;

	write_file(CPU1_ONLINE, "1");
	if (r->s.fd >= 0)
		stream_close(&r->s);
	ended = worker_end(&r->w) & worker_end(&r->v);
	return sched_end() && ended;
}

static inline bool stream_stat(struct streaming *r)
{
	memset(&r->stat, 0xff, sizeof(r->stat));
	return !ioctl(r->s.fd, PMUK_SCHED_STAT, &r->stat);
}

static inline bool see_everything(struct streaming *r)
{
	return stream_stat(r) && stream_read(&r->s, &r->seen, r->stat.head);
}

/* Worker @w adds 5050 of the first event in 100 slices, and @each times as many of the second. */
static inline bool take_turns(struct streaming *r, uint64_t each)
{
	int i;

	for (i = 1; i <= 100; i++)
		if (worker_add(&r->w, i, i * each) || worker_add(&r->v, 1000, 1000))
			return false;
	return worker_order(&r->v, ORDER_YIELD, 100, 0) &&
	       !worker_do(&r->w, ORDER_YIELD, 100, 0) && !worker_done(&r->v);
}

/*
 * Wakes worker @w @times times. Each time, its CPU switches to the worker and away from it. A
 * single order for all would not do, since sched_yield() of the only runnable task causes no
 * switch.
 */
static inline bool work(const struct worker *w, int times)
{
	while (times-- > 0)
		if (worker_do(w, ORDER_YIELD, 1, 0))
			return false;
	return true;
}

/* Causes switches until the head is no longer @head. */
static inline bool work_until(const struct streaming *r, uint64_t head)
{
	int i;

	for (i = 0; i < 4096 && stream_head(&r->s) == head; i++)
		if (!work(&r->w, 1))
			return false;
	return stream_head(&r->s) != head;
}

/* ---- tests of either kind of stream ---- */

/* Expects events that are added from now on in the stream. */
static inline void expect_added(struct __test_metadata *_metadata, struct streaming *r)
{
	r->seen.pid = r->w.pid;
	r->seen.t = (struct totals){};
	ASSERT_EQ(worker_add(&r->w, 17, 18), 0);
	ASSERT_TRUE(comes(see_everything(r) && r->seen.t.counts[0]));
	expect_counts(_metadata, &r->seen.t, 17, 18);
}

/* Expects the same totals of a task from the stream as from the text files. */
static inline void expect_totals(struct __test_metadata *_metadata, struct streaming *r,
				 uint64_t each)
{
	const struct totals *t = &r->seen.t;
	struct totals before, after;

	ASSERT_TRUE(stream_open(&r->s, r->cpu, 64, r->mode, 0));
	r->seen.pid = r->w.pid;
	ASSERT_TRUE(task_totals(r->w.pid, &before));
	ASSERT_TRUE(take_turns(r, each));
	ASSERT_TRUE(comes(see_everything(r) && task_totals(r->w.pid, &after) &&
			  after.voluntary - before.voluntary == t->voluntary));
	expect_counts(_metadata, t, 5050, 5050 * each);
	EXPECT_EQ(t->same, after.same - before.same);
	EXPECT_EQ(t->other, after.other - before.other);
	EXPECT_EQ(t->run, after.run - before.run);
	EXPECT_EQ(t->wait, after.wait - before.wait);
	EXPECT_GE(t->voluntary, 1);
	EXPECT_EQ(r->seen.invalid, 0);
	EXPECT_EQ(r->seen.switches, r->stat.switches);
	EXPECT_EQ(r->stat.lost + r->stat.discarded, 0);
	expect_all(_metadata, r);
}

/* A worker opens a stream, and keeps it until it is killed. */
static inline int keep_stream(uint64_t arg)
{
	const struct streaming *r = (const void *)arg;
	struct stream s;

	return stream_open(&s, r->cpu, 4, r->mode, 0) ? 0 : errno;
}

static inline void expect_cpu_is_left(struct __test_metadata *_metadata, struct streaming *r)
{
	struct worker doomed;
	int i;

	for (i = 0; i < 10; i++) {
		ASSERT_TRUE(worker_start(&doomed));
		ASSERT_EQ(worker_call(&doomed, keep_stream, (uintptr_t)r), 0);
		ASSERT_EQ(worker_do(&r->w, ORDER_YIELD, 5, 0), 0);
		EXPECT_FALSE(stream_open(&r->s, r->cpu, 4, r->mode, 0));
		EXPECT_EQ(errno, EBUSY);
		close(r->s.fd);
		ASSERT_TRUE(stop(doomed.pid));
		close(doomed.to);
		close(doomed.from);
		ASSERT_TRUE(stream_open(&r->s, r->cpu, 4, r->mode, 0));
		ASSERT_EQ(worker_do(&r->w, ORDER_YIELD, 5, 0), 0);
		memset(&r->seen, 0, sizeof(r->seen));
		ASSERT_TRUE(see_everything(r));
		EXPECT_GT(r->seen.switches, 0);
		EXPECT_EQ(r->seen.switches, r->stat.switches);
		expect_all(_metadata, r);
		stream_close(&r->s);
	}
}

/* The map keeps the stream alive after the descriptor is closed. */
static inline void expect_map_keeps(struct __test_metadata *_metadata, struct streaming *r)
{
	int fd = open_device();
	bool works;

	ASSERT_TRUE(stream_open(&r->s, r->cpu, 4, r->mode, 0));
	close(r->s.fd);
	r->s.fd = -1;
	if (r->mode == PMUK_SCHED_DROP)		/* publishes each record at once */
		works = work(&r->w, 1) && comes(stream_head(&r->s));
	else
		works = work_until(r, 0);
	ASSERT_TRUE(works);
	EXPECT_TRUE(stream_read(&r->s, &r->seen, stream_head(&r->s)));
	EXPECT_GT(r->seen.switches, 0);
	EXPECT_EQ(errno_of(bind_stream(fd, r->cpu, 4, r->mode, 0)), EBUSY);
	stream_unmap(&r->s);
	EXPECT_EQ(bind_stream(fd, r->cpu, 4, r->mode, 0), 0);
	close(fd);
}

/* Tests the stream of CPU 1, which goes offline and comes back. */
static inline void expect_survives_hotplug(struct __test_metadata *_metadata, struct streaming *r)
{
	uint64_t added = 0, head;

	if (nr_cpus() < 2 || access(CPU1_ONLINE, W_OK))
		SKIP(return, "no CPU can go offline");
	ASSERT_TRUE(stream_open(&r->s, 1, 64, r->mode, 0));
	ASSERT_EQ(worker_do(&r->w, ORDER_RUN_ON, 1, 0), 0);
	ASSERT_EQ(write_file(CPU1_ONLINE, "0"), 0);
	head = stream_head(&r->s);
	EXPECT_GT(head, 0);
	ASSERT_EQ(ioctl(r->s.fd, PMUK_SCHED_FLUSH), 0);
	ASSERT_TRUE(see_everything(r));
	EXPECT_EQ(r->stat.head, head);
	expect_all(_metadata, r);
	ASSERT_EQ(write_file(CPU1_ONLINE, "1"), 0);
	ASSERT_TRUE(comes(cpu_counts(1, &added)));
	ASSERT_EQ(worker_do(&r->w, ORDER_RUN_ON, 1, 0), 0);
	expect_added(_metadata, r);
	expect_all(_metadata, r);
	EXPECT_EQ(r->stat.discarded, 0);
}

/* A slice that was not counted is marked so, and has no counts. */
static inline void expect_uncounted_marked(struct __test_metadata *_metadata, struct streaming *r)
{
	ASSERT_TRUE(stream_open(&r->s, r->cpu, 64, r->mode, 0));
	ASSERT_EQ(pace_steal(r->cpu, 8), 0);
	ASSERT_TRUE(see_everything(r));
	r->seen.switches = 0;
	r->seen.invalid = 0;
	r->seen.t = (struct totals){};
	r->seen.pid = r->w.pid;
	ASSERT_EQ(worker_add(&r->w, 1, 1), ENODATA);
	ASSERT_TRUE(comes(see_everything(r) && r->seen.t.voluntary));
	EXPECT_GT(r->seen.invalid, 0);
	EXPECT_EQ(r->seen.invalid, r->seen.switches);
	expect_counts(_metadata, &r->seen.t, 0, 0);
	ASSERT_EQ(pace_steal(r->cpu, 0), 0);
}

#endif /* _PMUK_SELFTEST_SCHED_DEVICE_H */
