// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/pmuk_sched: each switch of a CPU is a record, or is told as lost, and records add up to what
 * the text files say. And readers that are slow, are killed, or ask for what there is not.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "sched_device.h"

#define RECORD		sizeof(struct pmuk_sched_switch)

/* A file, and its ring. */
struct stream {
	int fd, cpu;
	uint64_t size;			/* of the data */
	struct perf_event_mmap_page *page;
	uint64_t tail;
};

static bool stream_open(struct stream *s, int cpu, unsigned int pages, unsigned int mode)
{
	int prot = mode == PMUK_SCHED_DROP ? PROT_READ | PROT_WRITE : PROT_READ;

	*s = (struct stream){ .cpu = cpu, .size = (uint64_t)pages * getpagesize() };
	s->fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (s->fd < 0 || bind_stream(s->fd, cpu, pages, mode, 0))
		return false;
	s->page = mmap(NULL, s->size + getpagesize(), prot, MAP_SHARED, s->fd, 0);
	return s->page != MAP_FAILED;
}

static void stream_close(struct stream *s)
{
	munmap(s->page, s->size + getpagesize());
	close(s->fd);
}

static uint64_t stream_head(const struct stream *s)
{
	return __atomic_load_n(&s->page->data_head, __ATOMIC_ACQUIRE);
}

/* From @pos on, of @size bytes, though it may be split at the end of the ring. */
static void stream_copy(const struct stream *s, uint64_t pos, void *to, size_t size)
{
	const char *data = (const char *)s->page + getpagesize();
	uint64_t at = pos % s->size, first = size < s->size - at ? size : s->size - at;

	memcpy(to, data + at, first);
	memcpy((char *)to + first, data, size - first);
}

/* The header at @pos; false: it cannot be one. */
static bool stream_header(const struct stream *s, uint64_t pos, struct perf_event_header *header)
{
	stream_copy(s, pos, header, sizeof(*header));
	return header->size >= sizeof(*header) && header->size <= s->size;
}

/* What was read. */
struct seen {
	uint64_t records, lost, others, breaks;
	bool gap;			/* there was more, and it is lost */
	uint64_t by_how[3], invalid;
	struct pmuk_sched_switch last;
	uint32_t pid;			/* of these: */
	struct totals t;
};

/* Whether one can be what came after another. */
static bool follows(const struct pmuk_sched_switch *last, const struct pmuk_sched_switch *rec)
{
	return rec->prev_pid == last->next_pid && rec->time >= last->time &&
	       (rec->run == UINT32_MAX || rec->time - last->time == rec->run);
}

static void see_switch(struct seen *seen, const struct pmuk_sched_switch *rec)
{
	unsigned int how = rec->header.misc & PMUK_SCHED_CLASS_MASK;

	if (seen->records && !seen->gap && !follows(&seen->last, rec))
		seen->breaks++;
	seen->gap = false;
	seen->records++;
	seen->invalid += !!(rec->header.misc & PMUK_SCHED_INVALID);
	if (how < 3)
		seen->by_how[how]++;
	if (rec->prev_pid == seen->pid) {
		seen->t.run += rec->run;
		seen->t.wait += rec->wait;
		seen->t.voluntary += how == PMUK_SCHED_VOLUNTARY;
		seen->t.same += how == PMUK_SCHED_SAME;
		seen->t.other += how == PMUK_SCHED_OTHER;
		seen->t.counts[0] += rec->counts[0];
		seen->t.counts[1] += rec->counts[1];
	}
	seen->last = *rec;
}

/* The record at @pos. Returns its size, or 0 if it is none. */
static uint32_t see_one(const struct stream *s, struct seen *seen, uint64_t pos)
{
	struct perf_event_header header;
	struct pmuk_sched_switch rec;
	uint64_t lost[3];

	if (!stream_header(s, pos, &header))
		return 0;
	if (header.type == PMUK_SCHED_RECORD_SWITCH && header.size == RECORD) {
		stream_copy(s, pos, &rec, sizeof(rec));
		see_switch(seen, &rec);
	} else if (header.type == PERF_RECORD_LOST) {
		stream_copy(s, pos, lost, sizeof(lost));
		seen->lost += lost[2];
		seen->gap = true;
	} else {
		seen->others++;
	}
	return header.size;
}

/* All that is there up to @head, which is then free. */
static bool stream_read(struct stream *s, struct seen *seen, uint64_t head)
{
	uint32_t size;

	for (; s->tail < head; s->tail += size) {
		size = see_one(s, seen, s->tail);
		if (!size)
			return false;
	}
	__atomic_store_n(&s->page->data_tail, s->tail, __ATOMIC_RELEASE);
	return s->tail == head;
}

static bool stream_stat(const struct stream *s, struct pmuk_sched_stat *stat)
{
	memset(stat, 0, sizeof(*stat));
	return !ioctl(s->fd, PMUK_SCHED_STAT, stat);
}

FIXTURE(stream)
{
	int cpu;			/* the last one: the test itself is on the first */
	struct stream s;
	struct seen seen;
	struct pmuk_sched_stat stat;
	struct worker w, v;
};

FIXTURE_SETUP(stream)
{
	ASSERT_TRUE(begin_pair(&self->cpu, &self->w, &self->v));
	self->s.fd = -1;
}

FIXTURE_TEARDOWN(stream)
{
	write_file(CPU1_ONLINE, "1");
	if (self->s.fd >= 0)
		close(self->s.fd);
	EXPECT_TRUE(end_pair(&self->w, &self->v));
}

/* ---- what can be asked for ---- */

TEST_F(stream, bad_requests_are_refused)
{
	struct pmuk_sched_stat stat;
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC), other = open(DEVICE, O_RDWR | O_CLOEXEC);
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	ASSERT_TRUE(fd >= 0 && other >= 0);
	EXPECT_EQ(ioctl(fd, PMUK_SCHED_STAT, &stat), -1);
	EXPECT_EQ(errno, ENODEV);
	EXPECT_EQ(mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0), MAP_FAILED);
	EXPECT_EQ(errno, ENODEV);
	EXPECT_EQ(poll(&poll_fd, 1, 0), 1);
	EXPECT_TRUE(poll_fd.revents & POLLERR);
	EXPECT_EQ(bind_stream(fd, 0, 0, PMUK_SCHED_DROP, 0), -1);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(bind_stream(fd, 0, 3, PMUK_SCHED_DROP, 0), -1);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(bind_stream(fd, 0, 1 << 20, PMUK_SCHED_DROP, 0), -1);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(bind_stream(fd, 0, 1, 3, 0), -1);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(bind_stream(fd, 4096, 1, PMUK_SCHED_DROP, 0), -1);
	EXPECT_EQ(errno, ENODEV);
	EXPECT_EQ(bind_stream(fd, UINT32_MAX, 1, PMUK_SCHED_DROP, 0), -1);
	EXPECT_EQ(errno, ENODEV);
	EXPECT_EQ(ioctl(fd, PMUK_SCHED_STREAM, NULL), -1);
	EXPECT_EQ(errno, EFAULT);
	ASSERT_EQ(bind_stream(fd, 0, 1, PMUK_SCHED_DROP, 0), 0);
	EXPECT_EQ(bind_stream(fd, 0, 1, PMUK_SCHED_DROP, 0), -1);
	EXPECT_EQ(errno, EBUSY);
	EXPECT_EQ(bind_stream(other, 0, 1, PMUK_SCHED_DROP, 0), -1);
	EXPECT_EQ(errno, EBUSY);
	EXPECT_EQ(ioctl(fd, _IO('p', 0xcf)), -1);
	EXPECT_EQ(errno, ENOTTY);
	EXPECT_EQ(ioctl(fd, PMUK_SCHED_STAT, NULL), -1);
	EXPECT_EQ(errno, EFAULT);
	close(fd);
	EXPECT_EQ(bind_stream(other, 0, 1, PMUK_SCHED_OVERWRITE, 0), 0);
	EXPECT_EQ(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0), MAP_FAILED);
	close(other);
}

/* ---- all of it ---- */

static int see_everything(struct stream *s, struct seen *seen, struct pmuk_sched_stat *stat)
{
	return stream_stat(s, stat) && stream_read(s, seen, stat->head);
}

/* What records say of a task is what the text says; they follow from one another. */
TEST_F(stream, records_are_the_totals)
{
	struct totals before, after;

	ASSERT_TRUE(stream_open(&self->s, self->cpu, 64, PMUK_SCHED_DROP));
	self->seen.pid = self->w.pid;
	ASSERT_TRUE(task_totals(self->w.pid, &before));
	ASSERT_TRUE(take_turns(&self->w, &self->v, 2));
	ASSERT_TRUE(comes(see_everything(&self->s, &self->seen, &self->stat) &&
			  task_totals(self->w.pid, &after) &&
			  after.voluntary - before.voluntary == self->seen.t.voluntary));
	EXPECT_EQ(self->seen.t.counts[0], 5050);
	EXPECT_EQ(self->seen.t.counts[1], 10100);
	EXPECT_EQ(self->seen.t.same, after.same - before.same);
	EXPECT_EQ(self->seen.t.other, after.other - before.other);
	EXPECT_EQ(self->seen.t.run, after.run - before.run);
	EXPECT_EQ(self->seen.t.wait, after.wait - before.wait);
	EXPECT_GE(self->seen.t.voluntary, 1);
	EXPECT_EQ(self->seen.breaks, 0);
	EXPECT_EQ(self->seen.others, 0);
	EXPECT_EQ(self->seen.invalid, 0);
	EXPECT_EQ(self->seen.records, self->stat.switches);
	EXPECT_EQ(self->stat.lost + self->stat.discarded, 0);
	stream_close(&self->s);
	self->s.fd = -1;
}

/* After so many bytes; and it can sleep again when it has read all. */
TEST_F(stream, reader_is_woken)
{
	struct pmuk_sched_stream what = {
		.cpu = self->cpu, .nr_pages = 16, .mode = PMUK_SCHED_DROP, .watermark = 20 * RECORD,
	};
	struct stream *s = &self->s;
	int i;

	s->fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	ASSERT_GE(s->fd, 0);
	ASSERT_EQ(ioctl(s->fd, PMUK_SCHED_STREAM, &what), 0);
	s->size = 16 * getpagesize();
	s->page = mmap(NULL, s->size + getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	ASSERT_NE(s->page, MAP_FAILED);
	for (i = 0; i < 5; i++) {
		ASSERT_TRUE(worker_order(&self->v, ORDER_YIELD, 60, 0) &&
			    worker_order(&self->w, ORDER_YIELD, 60, 0));
		EXPECT_TRUE(wakes(s->fd, PATIENCE));
		EXPECT_TRUE(i || stream_head(s) >= 20 * RECORD);
		ASSERT_EQ(worker_done(&self->w) | worker_done(&self->v), 0);
		EXPECT_TRUE(comes(see_everything(s, &self->seen, &self->stat) && !wakes(s->fd, 0)));
	}
	EXPECT_EQ(self->seen.records, self->stat.switches);
}

/* ---- readers that do not keep up ---- */

/* Nobody reads: the oldest stay, the rest is counted. */
TEST_F(stream, slow_reader_is_told_what_it_lost)
{
	struct stream *s = &self->s;
	int i;

	ASSERT_TRUE(stream_open(s, self->cpu, 1, PMUK_SCHED_DROP));
	for (i = 0; i < 300; i++)
		ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 1, 0), 0);
	ASSERT_TRUE(see_everything(s, &self->seen, &self->stat));
	EXPECT_GT(self->stat.lost, 0);
	EXPECT_GE(self->stat.switches, 300);
	EXPECT_EQ(self->seen.records + self->stat.lost + self->stat.discarded,
		  self->stat.switches);
	EXPECT_EQ(self->seen.breaks, 0);
	/* what comes next says how many there were */
	for (i = 0; i < 10; i++)
		ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 1, 0), 0);
	ASSERT_TRUE(see_everything(s, &self->seen, &self->stat));
	EXPECT_EQ(self->seen.lost, self->stat.lost);
	EXPECT_EQ(self->seen.records + self->stat.lost + self->stat.discarded,
		  self->stat.switches);
}

/* It reads now and then, while there are switches: seen and lost are all of them, at any time. */
TEST_F_TIMEOUT(stream, seen_and_lost_are_all, 120)
{
	struct stream *s = &self->s;
	int i;

	ASSERT_TRUE(stream_open(s, self->cpu, 1, PMUK_SCHED_DROP));
	for (i = 0; i < 50; i++) {
		ASSERT_TRUE(worker_order(&self->v, ORDER_YIELD, 20 * (i % 8), 0) &&
			    worker_order(&self->w, ORDER_YIELD, 20 * (i % 8), 0));
		ASSERT_TRUE(see_everything(s, &self->seen, &self->stat));
		EXPECT_EQ(self->seen.records + self->stat.lost + self->stat.discarded,
			  self->stat.switches);
		ASSERT_EQ(worker_done(&self->w) | worker_done(&self->v), 0);
	}
	EXPECT_EQ(self->seen.others, 0);
	EXPECT_GT(self->seen.records, 100);
}

/* Opens, maps, says so and is killed. */
static int read_until_killed(void *arg)
{
	int *args = arg;
	struct stream s;

	if (!stream_open(&s, args[0], 4, PMUK_SCHED_DROP) || write(args[1], "", 1) != 1)
		return 1;
	for (;;)
		pause();
}

TEST_F(stream, killed_reader_leaves_its_cpu)
{
	int args[2], pipes[2], pid, i;
	char c;

	ASSERT_EQ(pipe(pipes), 0);
	args[0] = self->cpu;
	args[1] = pipes[1];
	for (i = 0; i < 10; i++) {
		pid = start(read_until_killed, args);
		ASSERT_EQ(read(pipes[0], &c, 1), 1);
		ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 5, 0), 0);
		EXPECT_FALSE(stream_open(&self->s, self->cpu, 4, PMUK_SCHED_DROP));
		EXPECT_EQ(errno, EBUSY);
		close(self->s.fd);
		kill(pid, SIGKILL);
		ASSERT_EQ(waitpid(pid, NULL, 0), pid);
		ASSERT_TRUE(stream_open(&self->s, self->cpu, 4, PMUK_SCHED_DROP));
		ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 5, 0), 0);
		memset(&self->seen, 0, sizeof(self->seen));
		ASSERT_TRUE(see_everything(&self->s, &self->seen, &self->stat));
		EXPECT_GT(self->seen.records, 0);
		EXPECT_EQ(self->seen.records, self->stat.switches);
		stream_close(&self->s);
		self->s.fd = -1;
	}
}

/* Its descriptor may be closed: what is mapped goes on until it is unmapped. */
TEST_F(stream, map_keeps_its_stream)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	ASSERT_TRUE(stream_open(&self->s, self->cpu, 4, PMUK_SCHED_DROP));
	close(self->s.fd);
	self->s.fd = -1;
	ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 5, 0), 0);
	EXPECT_TRUE(comes(stream_head(&self->s)));
	EXPECT_TRUE(stream_read(&self->s, &self->seen, stream_head(&self->s)));
	EXPECT_GT(self->seen.records, 0);
	EXPECT_EQ(bind_stream(fd, self->cpu, 4, PMUK_SCHED_DROP, 0), -1);
	EXPECT_EQ(errno, EBUSY);
	munmap(self->s.page, self->s.size + getpagesize());
	EXPECT_EQ(bind_stream(fd, self->cpu, 4, PMUK_SCHED_DROP, 0), 0);
	close(fd);
}

/* ---- the latest ones ---- */

TEST_F(stream, overwriting_keeps_the_latest)
{
	struct stream *s = &self->s;
	uint64_t head, pos;
	uint32_t size;
	int i;

	ASSERT_TRUE(stream_open(s, self->cpu, 1, PMUK_SCHED_OVERWRITE));
	for (i = 0; i < 300; i++)
		ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 1, 0), 0);
	ASSERT_EQ(worker_add(&self->w, 42, 4242), 0);
	self->seen.pid = self->w.pid;
	/* until the worker has left the CPU after that */
	ASSERT_EQ(worker_add(&self->v, 1, 1), 0);
	ASSERT_EQ(ioctl(s->fd, PMUK_SCHED_PAUSE), 0);
	ASSERT_TRUE(stream_stat(s, &self->stat));
	head = stream_head(s);
	EXPECT_EQ(head, self->stat.head);
	EXPECT_EQ(head / RECORD + self->stat.lost + self->stat.discarded, self->stat.switches);
	for (pos = head - s->size / RECORD * RECORD; pos < head; pos += size) {
		size = see_one(s, &self->seen, pos);
		ASSERT_EQ(size, RECORD);
	}
	EXPECT_EQ(self->seen.breaks, 0);
	EXPECT_EQ(self->seen.t.counts[0], 42);
	EXPECT_EQ(self->seen.t.counts[1], 4242);
	ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 1, 0), 0);
	EXPECT_EQ(stream_head(s), head);
	ASSERT_EQ(ioctl(s->fd, PMUK_SCHED_RESUME), 0);
	ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 1, 0), 0);
	EXPECT_TRUE(comes(stream_head(s) > head));
	ASSERT_TRUE(stream_stat(s, &self->stat));
	EXPECT_EQ(self->stat.head / RECORD + self->stat.lost + self->stat.discarded,
		  self->stat.switches);
	EXPECT_GT(self->stat.discarded, 0);
}

/* ---- what happens meanwhile ---- */

static bool has_record(struct stream *s, struct seen *seen, struct pmuk_sched_stat *stat)
{
	return see_everything(s, seen, stat) && seen->records;
}

TEST_F(stream, stream_survives_off_and_on)
{
	struct stream *s = &self->s;

	ASSERT_TRUE(stream_open(s, self->cpu, 16, PMUK_SCHED_DROP));
	ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 5, 0), 0);
	ASSERT_EQ(set_parameter("enabled", "0"), 0);
	ASSERT_TRUE(see_everything(s, &self->seen, &self->stat));
	EXPECT_GT(self->seen.records, 0);
	ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 5, 0), 0);
	self->seen.records = 0;
	ASSERT_TRUE(see_everything(s, &self->seen, &self->stat));
	EXPECT_EQ(self->seen.records, 0);
	ASSERT_EQ(set_parameter("enabled", "1"), 0);
	ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 5, 0), 0);
	self->seen.pid = self->w.pid;
	ASSERT_EQ(worker_add(&self->w, 17, 18), 0);
	ASSERT_TRUE(comes(has_record(s, &self->seen, &self->stat) && self->seen.t.counts[0]));
	EXPECT_EQ(self->seen.t.counts[0], 17);
	EXPECT_EQ(self->seen.t.counts[1], 18);
}

TEST_F_TIMEOUT(stream, stream_survives_hotplug, 120)
{
	struct stream *s = &self->s;
	uint64_t added = 0;

	if (self->cpu != 1 && (nr_cpus() < 2 || access(CPU1_ONLINE, W_OK)))
		SKIP(return, "no CPU can go offline");
	ASSERT_TRUE(stream_open(s, 1, 64, PMUK_SCHED_DROP));
	ASSERT_EQ(worker_do(&self->w, ORDER_RUN_ON, 1, 0), 0);
	ASSERT_EQ(write_file(CPU1_ONLINE, "0"), 0);
	ASSERT_TRUE(see_everything(s, &self->seen, &self->stat));
	EXPECT_EQ(self->seen.records + self->stat.lost, self->stat.switches);
	ASSERT_EQ(write_file(CPU1_ONLINE, "1"), 0);
	ASSERT_TRUE(comes(cpu_counts(1, &added)));
	ASSERT_EQ(worker_do(&self->w, ORDER_RUN_ON, 1, 0), 0);
	self->seen.pid = self->w.pid;
	self->seen.t = (struct totals){};
	ASSERT_EQ(worker_add(&self->w, 17, 18), 0);
	ASSERT_TRUE(comes(see_everything(s, &self->seen, &self->stat) && self->seen.t.counts[0]));
	EXPECT_EQ(self->seen.t.counts[0], 17);
	EXPECT_EQ(self->seen.records + self->stat.lost, self->stat.switches);
}

/* A slice that was not counted says so, and has no counts. */
TEST_F_TIMEOUT(stream, uncounted_slices_are_marked, 120)
{
	struct stream *s = &self->s;

	ASSERT_TRUE(stream_open(s, self->cpu, 64, PMUK_SCHED_DROP));
	ASSERT_EQ(pace_steal(self->cpu, 8), 0);
	ASSERT_TRUE(see_everything(s, &self->seen, &self->stat));
	memset(&self->seen, 0, sizeof(self->seen));
	self->seen.pid = self->w.pid;
	ASSERT_EQ(worker_add(&self->w, 1, 1), ENODATA);
	ASSERT_TRUE(comes(see_everything(s, &self->seen, &self->stat) &&
			  self->seen.t.voluntary));
	EXPECT_GT(self->seen.invalid, 0);
	EXPECT_EQ(self->seen.invalid, self->seen.records);
	expect_counts(_metadata, &self->seen.t, 0, 0);
	ASSERT_EQ(pace_steal(self->cpu, 0), 0);
}

TEST_HARNESS_MAIN
