// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/pmuk_sched with PMUK_SCHED_RAW: each switch of a CPU is a packet in the AUX area, or the
 * next mark tells that it is missing; and packets add up to what the text files say.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "sched_device.h"

#define PART		4096

/* A file, its ring and its AUX area. */
struct stream {
	int fd;
	struct perf_event_mmap_page *page;
	const uint8_t *aux;
	uint64_t size;			/* of that */
	uint64_t tail;
};

static bool stream_map(struct stream *s)
{
	s->page = mmap(NULL, 2 * getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (s->page == MAP_FAILED)
		return false;
	s->size = s->page->aux_size;
	s->aux = mmap(NULL, s->size, PROT_READ, MAP_SHARED, s->fd, s->page->aux_offset);
	return s->aux != MAP_FAILED;
}

static bool stream_open(struct stream *s, int cpu, unsigned int pages, unsigned int watermark)
{
	*s = (struct stream){ .fd = open(DEVICE, O_RDWR | O_CLOEXEC) };
	return s->fd >= 0 && !bind_stream(s->fd, cpu, pages, PMUK_SCHED_RAW, watermark) &&
	       stream_map(s) && s->size == (uint64_t)pages * getpagesize();
}

static void stream_unmap(struct stream *s)
{
	munmap((void *)s->aux, s->size);
	munmap(s->page, 2 * getpagesize());
}

static void stream_close(struct stream *s)
{
	stream_unmap(s);
	close(s->fd);
	s->fd = -1;
}

static uint64_t stream_head(const struct stream *s)
{
	return __atomic_load_n(&s->page->aux_head, __ATOMIC_ACQUIRE);
}

static void stream_give_back(struct stream *s, uint64_t tail)
{
	uint64_t head = __atomic_load_n(&s->page->data_head, __ATOMIC_ACQUIRE);

	s->tail = tail;
	__atomic_store_n(&s->page->aux_tail, tail, __ATOMIC_RELEASE);
	__atomic_store_n(&s->page->data_tail, head, __ATOMIC_RELEASE);
}

/* What was read. */
struct seen {
	uint64_t switches, marks, missing, invalid;
	uint64_t jumps;			/* marks of something else, with nothing missing */
	uint64_t bad;			/* what is no packet, or cannot follow */
	uint64_t bytes, by_mark;	/* most of them from one mark to the next */
	uint64_t number, time;		/* of the next one; where it begins */
	uint32_t now;			/* who runs in it */
	uint32_t pid;			/* of these: */
	struct totals t;
	uint32_t pair[2], latest;	/* and how often it is the other one's turn: */
	uint64_t turns;
};

/* The bytes that are left of a part of the stream. */
struct bytes {
	const struct stream *s;
	uint64_t pos, end;
	bool cut;			/* there were too few */
};

static uint8_t take_byte(struct bytes *b)
{
	if (b->pos == b->end) {
		b->cut = true;
		return 0;
	}
	return b->s->aux[b->pos++ % b->s->size];
}

static uint64_t take_fixed(struct bytes *b, int size)
{
	uint64_t number = 0;
	int i;

	for (i = 0; i < size; i++)
		number |= (uint64_t)take_byte(b) << 8 * i;
	return number;
}

static uint64_t take_number(struct bytes *b)
{
	uint64_t number = 0;
	int shift = 0;
	uint8_t byte;

	do {
		byte = take_byte(b);
		number |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && shift < 64);
	b->cut |= byte & 0x80;
	return number;
}

static void see_mark(struct seen *seen, struct bytes *b)
{
	uint64_t time = take_fixed(b, 8);
	uint32_t now = take_fixed(b, 4);
	uint64_t number = take_fixed(b, 8);

	if (number < seen->number)
		seen->bad++;
	else if (number == seen->number && seen->marks)
		seen->jumps += time != seen->time || now != seen->now;
	seen->missing += number - seen->number;
	seen->number = number;
	seen->time = time;
	seen->now = now;
	seen->marks++;
}

static void see_slice(struct seen *seen, unsigned int how, uint64_t run, uint64_t wait,
		      const uint64_t *counts)
{
	seen->t.run += run;
	seen->t.wait += wait;
	seen->t.voluntary += how == PMUK_SCHED_VOLUNTARY;
	seen->t.same += how == PMUK_SCHED_SAME;
	seen->t.other += how == PMUK_SCHED_OTHER;
	seen->t.counts[0] += counts[0];
	seen->t.counts[1] += counts[1];
}

static void see_turn(struct seen *seen, uint32_t pid)
{
	if (!pid || (pid != seen->pair[0] && pid != seen->pair[1]))
		return;
	seen->turns += seen->latest && seen->latest != pid;
	seen->latest = pid;
}

static void see_switch(struct seen *seen, unsigned int misc, struct bytes *b)
{
	uint32_t next = take_number(b);
	uint64_t run = take_number(b), wait = take_number(b), counts[2];

	counts[0] = take_number(b);
	counts[1] = take_number(b);
	if (!seen->marks || misc > (PMUK_SCHED_MIGRATED | PMUK_SCHED_INVALID) ||
	    (misc & PMUK_SCHED_CLASS_MASK) > PMUK_SCHED_MIGRATED)
		seen->bad++;
	if (seen->now == seen->pid)
		see_slice(seen, misc & PMUK_SCHED_CLASS_MASK, run, wait, counts);
	see_turn(seen, seen->now);
	seen->invalid += !!(misc & PMUK_SCHED_INVALID);
	seen->time += run;
	seen->now = next;
	seen->number++;
	seen->switches++;
}

/* All that is there up to @head, which is then free. */
static bool stream_read(struct stream *s, struct seen *seen, uint64_t head)
{
	struct bytes b = { .s = s, .pos = s->tail, .end = head };
	uint64_t marked = s->tail;
	uint8_t byte;

	if (head - s->tail > s->size)
		return false;
	while (b.pos < head && !b.cut) {
		byte = take_byte(&b);
		if (byte == PMUK_SCHED_RAW_MARK) {
			marked = b.pos;
			see_mark(seen, &b);
		} else {
			see_switch(seen, byte, &b);
		}
		if (b.pos - marked > seen->by_mark)
			seen->by_mark = b.pos - marked;
	}
	seen->bytes += head - s->tail;
	stream_give_back(s, head);
	return !b.cut && !seen->bad;
}

static bool stream_stat(const struct stream *s, struct pmuk_sched_stat *stat)
{
	memset(stat, 0xff, sizeof(*stat));
	return !ioctl(s->fd, PMUK_SCHED_STAT, stat);
}

static bool see_everything(struct stream *s, struct seen *seen, struct pmuk_sched_stat *stat)
{
	return stream_stat(s, stat) && stream_read(s, seen, stat->head);
}

FIXTURE(raw)
{
	int cpu;			/* the last one: the test itself is on the first */
	struct stream s;
	struct seen seen;
	struct pmuk_sched_stat stat;
	struct worker w, v;
};

FIXTURE_SETUP(raw)
{
	ASSERT_TRUE(begin_pair(&self->cpu, &self->w, &self->v));
	self->s.fd = -1;
}

FIXTURE_TEARDOWN(raw)
{
	write_file(CPU1_ONLINE, "1");
	EXPECT_EQ(self->seen.bad, 0);
	if (self->s.fd >= 0)
		stream_close(&self->s);
	EXPECT_TRUE(end_pair(&self->w, &self->v));
}

/* So many times there is a switch to it, and one from it. Whoever yields alone makes none. */
static bool work(const struct worker *w, int times)
{
	while (times-- > 0)
		if (worker_do(w, ORDER_YIELD, 1, 0))
			return false;
	return true;
}

/* Until more is published than @head. */
static bool work_until(const struct worker *w, const struct stream *s, uint64_t head)
{
	int i;

	for (i = 0; i < PART && stream_head(s) == head; i++)
		if (!work(w, 1))
			return false;
	return stream_head(s) != head;
}

/* Of all there were, none is unknown. */
static void expect_all(struct __test_metadata *_metadata, const struct seen *seen,
		       const struct pmuk_sched_stat *stat)
{
	EXPECT_EQ(seen->switches + stat->lost, stat->switches);
	EXPECT_EQ(stat->discarded, 0);
	EXPECT_EQ(seen->bad, 0);
	EXPECT_LE(seen->missing, stat->lost);
	EXPECT_LE(seen->by_mark, PART);
}

/* ---- what can be asked for ---- */

TEST_F(raw, bad_requests_are_refused)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC), other = open(DEVICE, O_RDWR | O_CLOEXEC);
	static const unsigned int pages[] = { 0, 3, 1 << 20, UINT32_MAX };
	unsigned int i;

	ASSERT_TRUE(fd >= 0 && other >= 0);
	EXPECT_EQ(errno_of(ioctl(fd, PMUK_SCHED_FLUSH)), ENODEV);
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		EXPECT_EQ(errno_of(bind_stream(fd, 0, pages[i], PMUK_SCHED_RAW, 0)), EINVAL);
	EXPECT_EQ(errno_of(bind_stream(fd, 0, 1, PMUK_SCHED_RAW + 1, 0)), EINVAL);
	EXPECT_EQ(errno_of(bind_stream(fd, 4096, 1, PMUK_SCHED_RAW, 0)), ENODEV);
	ASSERT_EQ(bind_stream(fd, 0, 1, PMUK_SCHED_RAW, UINT32_MAX), 0);
	EXPECT_EQ(errno_of(bind_stream(fd, 0, 1, PMUK_SCHED_RAW, 0)), EBUSY);
	EXPECT_EQ(errno_of(bind_stream(other, 0, 1, PMUK_SCHED_RAW, 0)), EBUSY);
	EXPECT_EQ(errno_of(ioctl(fd, PMUK_SCHED_PAUSE)), EINVAL);
	EXPECT_EQ(errno_of(ioctl(fd, PMUK_SCHED_RESUME)), EINVAL);
	EXPECT_EQ(ioctl(fd, PMUK_SCHED_FLUSH), 0);
	close(fd);
	EXPECT_EQ(bind_stream(other, 0, 1, PMUK_SCHED_DROP, 0), 0);
	EXPECT_EQ(ioctl(other, PMUK_SCHED_FLUSH), 0);
	close(other);
}

/* A ring of a page, and behind it the area. */
TEST_F(raw, maps_are_as_announced)
{
	int page = getpagesize(), fd;

	ASSERT_TRUE(stream_open(&self->s, 0, 4, 0));
	fd = self->s.fd;
	EXPECT_EQ(self->s.page->data_size, (uint64_t)page);
	EXPECT_EQ(self->s.page->aux_offset, 2 * (uint64_t)page);
	EXPECT_EQ(self->s.page->aux_size, 4 * (uint64_t)page);
	EXPECT_EQ(errno_of(mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, fd, 2 * page)), EINVAL);
	EXPECT_EQ(errno_of(mmap(NULL, 4 * page, PROT_READ, MAP_SHARED, fd, 3 * page)), EINVAL);
}

/* ---- all of it ---- */

/* What packets say of a task is what the text says. */
TEST_F(raw, packets_are_the_totals)
{
	struct totals before, after;

	ASSERT_TRUE(stream_open(&self->s, self->cpu, 64, 0));
	self->seen.pid = self->w.pid;
	ASSERT_TRUE(task_totals(self->w.pid, &before));
	ASSERT_TRUE(take_turns(&self->w, &self->v, 2ULL << 32));
	ASSERT_TRUE(comes(see_everything(&self->s, &self->seen, &self->stat) &&
			  task_totals(self->w.pid, &after) &&
			  after.voluntary - before.voluntary == self->seen.t.voluntary));
	expect_counts(_metadata, &self->seen.t, 5050, 10100ULL << 32);
	EXPECT_EQ(self->seen.t.same, after.same - before.same);
	EXPECT_EQ(self->seen.t.other, after.other - before.other);
	EXPECT_EQ(self->seen.t.run, after.run - before.run);
	EXPECT_EQ(self->seen.t.wait, after.wait - before.wait);
	EXPECT_GE(self->seen.t.voluntary, 1);
	EXPECT_EQ(self->seen.jumps, 0);
	EXPECT_EQ(self->seen.invalid, 0);
	EXPECT_EQ(self->stat.lost, 0);
	expect_all(_metadata, &self->seen, &self->stat);
}

/* Each byte wakes the other one. */
struct pair {
	int to[2], from[2];
	int cpu;
};

#define PASSES	2000

static int pass_on(void *arg)
{
	struct pair *p = arg;
	char c;
	int i;

	if (run_on(p->cpu))
		return 1;
	for (i = 0; i < PASSES; i++)
		if (read(p->to[0], &c, 1) != 1 || write(p->from[1], &c, 1) != 1)
			return 1;
	return 0;
}

static int pass_first(void *arg)
{
	struct pair *p = arg;
	char c = 0;
	int i;

	if (run_on(p->cpu))
		return 1;
	for (i = 0; i < PASSES; i++)
		if (write(p->to[1], &c, 1) != 1 || read(p->from[0], &c, 1) != 1)
			return 1;
	return 0;
}

TEST_F(raw, two_tasks_over_a_pipe_alternate)
{
	struct pair p = { .cpu = self->cpu };

	ASSERT_TRUE(stream_open(&self->s, self->cpu, 256, 0));
	ASSERT_EQ(pipe(p.to) | pipe(p.from), 0);
	self->seen.pair[0] = start(pass_on, &p);
	self->seen.pair[1] = start(pass_first, &p);
	EXPECT_TRUE(ended(self->seen.pair[0]));
	EXPECT_TRUE(ended(self->seen.pair[1]));
	ASSERT_TRUE(see_everything(&self->s, &self->seen, &self->stat));
	EXPECT_GE(self->seen.turns, 2 * PASSES - 1);
	EXPECT_EQ(self->seen.jumps, 0);
	EXPECT_EQ(self->stat.lost, 0);
	expect_all(_metadata, &self->seen, &self->stat);
	TH_LOG("%.1f bytes a switch, marks included", (double)self->seen.bytes /
	       self->seen.switches);
	/* names, and what else ran, take some switches */
	EXPECT_LT(self->seen.bytes, 20 * self->seen.switches);
	EXPECT_GE(self->seen.marks, self->seen.bytes / PART);
	EXPECT_LE(self->seen.marks, self->seen.bytes / (PART - 128) + 2);
}

/* ---- when it can be read ---- */

struct aux_record {
	struct perf_event_header header;
	uint64_t offset, size, flags;
};

/* Not before somebody asks for it, as it is less than a part; and then it is told. */
TEST_F(raw, flush_publishes)
{
	const struct aux_record *rec;
	uint64_t head = 0, told = 0;
	int i;

	ASSERT_TRUE(stream_open(&self->s, self->cpu, 64, 0));
	rec = (void *)((char *)self->s.page + self->s.page->data_offset);
	for (i = 0; i < 5; i++, rec++) {
		ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 1, 0), 0);
		EXPECT_EQ(stream_head(&self->s), head);
		ASSERT_EQ(ioctl(self->s.fd, PMUK_SCHED_FLUSH), 0);
		EXPECT_GT(stream_head(&self->s), head);
		head = stream_head(&self->s);
		EXPECT_EQ(rec->header.type, PERF_RECORD_AUX);
		EXPECT_EQ(rec->offset, told);
		EXPECT_EQ(rec->size, head - told);
		EXPECT_EQ(rec->flags, 0);
		told = head;
		ASSERT_TRUE(stream_read(&self->s, &self->seen, head));
		EXPECT_EQ(self->seen.marks, i + 1);
	}
	ASSERT_TRUE(see_everything(&self->s, &self->seen, &self->stat));
	EXPECT_EQ(self->stat.head, stream_head(&self->s));
	EXPECT_EQ(self->stat.lost, 0);
	expect_all(_metadata, &self->seen, &self->stat);
}

/* At the end of the part that passes the watermark, without being asked for it; and once. */
TEST_F_TIMEOUT(raw, reader_is_woken, 120)
{
	uint64_t head = 0;
	int i;

	ASSERT_TRUE(stream_open(&self->s, self->cpu, 8, PART / 2));
	for (i = 0; i < 5; i++) {
		EXPECT_FALSE(wakes(self->s.fd, 0));
		ASSERT_TRUE(work_until(&self->w, &self->s, head));
		head = stream_head(&self->s);
		EXPECT_TRUE(wakes(self->s.fd, PATIENCE));
		ASSERT_TRUE(stream_read(&self->s, &self->seen, head));
	}
	EXPECT_GT(head, 5 * (PART - 128));
	EXPECT_LE(head, 5 * PART);
	ASSERT_TRUE(see_everything(&self->s, &self->seen, &self->stat));
	EXPECT_EQ(self->stat.lost, 0);
	expect_all(_metadata, &self->seen, &self->stat);
}

/* ---- readers that do not keep up ---- */

/* Nobody reads: the oldest stay, the rest is counted, and the next mark tells. */
TEST_F(raw, slow_reader_is_told_what_it_lost)
{
	struct stream *s = &self->s;
	uint64_t head;

	ASSERT_TRUE(stream_open(s, self->cpu, 1, 0));
	ASSERT_TRUE(work(&self->w, 600));
	ASSERT_TRUE(stream_stat(s, &self->stat));
	EXPECT_GT(self->stat.lost, 0);
	EXPECT_GE(self->stat.switches, 600);
	EXPECT_LE(self->stat.head, s->size);
	EXPECT_GT(self->stat.head, s->size - 128);
	head = self->stat.head;
	ASSERT_TRUE(see_everything(s, &self->seen, &self->stat));
	EXPECT_EQ(head, self->stat.head);
	expect_all(_metadata, &self->seen, &self->stat);
	EXPECT_EQ(self->seen.missing, 0);
	ASSERT_TRUE(work(&self->w, 10));
	ASSERT_TRUE(see_everything(s, &self->seen, &self->stat));
	EXPECT_EQ(self->seen.missing, self->stat.lost);
	expect_all(_metadata, &self->seen, &self->stat);
}

/* The position behind the latest part that records tell of; they are given back. */
static uint64_t told_up_to(struct stream *s)
{
	const uint64_t *data = (const uint64_t *)((const char *)s->page + getpagesize());
	uint64_t head = __atomic_load_n(&s->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t at, tail = s->page->data_tail, told = 0, words = getpagesize() / 8;
	struct perf_event_header header;

	for (; tail != head; tail += header.size) {
		at = tail / 8;
		memcpy(&header, &data[at % words], sizeof(header));
		if (header.type == PERF_RECORD_AUX)
			told = data[(at + 1) % words] + data[(at + 2) % words];
	}
	__atomic_store_n(&s->page->data_tail, tail, __ATOMIC_RELEASE);
	return told;
}

/*
 * A reader that goes by records is told of all there is, though they had no room when the area
 * became full: when they have, the next switch tells, and wakes it.
 */
TEST_F_TIMEOUT(raw, records_alone_are_enough, 120)
{
	struct stream *s = &self->s;
	int i;

	ASSERT_TRUE(stream_open(s, self->cpu, 4, 0));
	for (i = 0; i < 200; i++) {	/* 128 records fill the ring */
		ASSERT_TRUE(work(&self->w, 1));
		ASSERT_EQ(ioctl(s->fd, PMUK_SCHED_FLUSH), 0);
	}
	__atomic_store_n(&s->page->aux_tail, stream_head(s), __ATOMIC_RELEASE);
	for (i = 0; i < 100 && !self->stat.lost; i++)
		ASSERT_TRUE(work(&self->w, 100) && stream_stat(s, &self->stat));
	ASSERT_GT(self->stat.lost, 0);
	EXPECT_LT(told_up_to(s), stream_head(s));
	wakes(s->fd, 0);
	ASSERT_TRUE(work(&self->w, 2));
	EXPECT_TRUE(wakes(s->fd, PATIENCE));
	EXPECT_EQ(told_up_to(s), stream_head(s));
}

/* It reads now and then, while there are switches: seen and lost are all of them, at any time. */
TEST_F_TIMEOUT(raw, seen_and_lost_are_all, 120)
{
	struct stream *s = &self->s;
	int i;

	ASSERT_TRUE(stream_open(s, self->cpu, 1, 0));
	for (i = 0; i < 24; i++) {
		ASSERT_TRUE(worker_order(&self->v, ORDER_YIELD, 1000, 0) &&
			    work(&self->w, 60 * (i % 8)) &&
			    worker_order(&self->w, ORDER_YIELD, 1000, 0));
		ASSERT_TRUE(see_everything(s, &self->seen, &self->stat));
		EXPECT_EQ(self->seen.switches + self->stat.lost, self->stat.switches);
		EXPECT_EQ(self->seen.number + self->stat.lost - self->seen.missing,
			  self->stat.switches);
		ASSERT_EQ(worker_done(&self->w) | worker_done(&self->v), 0);
	}
	EXPECT_GT(self->seen.switches, 1000);
	EXPECT_GT(self->stat.lost, 0);
}

/* The CPU writes a few packets if there is room, and ends its part. */
static bool write_with_tail(struct stream *s, const struct worker *w, uint64_t tail,
			    struct pmuk_sched_stat *stat)
{
	__atomic_store_n(&s->page->aux_tail, tail, __ATOMIC_RELEASE);
	return !worker_do(w, ORDER_YIELD, 5, 0) && stream_stat(s, stat);
}

/* A tail that cannot be means that there is no room; what was written stays. */
TEST_F(raw, does_not_believe_every_tail)
{
	static const uint64_t lies[] = { 1, 1000000, 1ULL << 32, 1ULL << 63, -1ULL << 32 };
	struct stream *s = &self->s;
	uint64_t head, lost;
	unsigned int i;

	ASSERT_TRUE(stream_open(s, self->cpu, 4, 0));
	ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 5, 0), 0);
	/* Others' switches may have begun a part before the first lie: that one has room. */
	ASSERT_TRUE(write_with_tail(s, &self->w, 1ULL << 62, &self->stat));
	head = self->stat.head;
	lost = self->stat.lost;
	for (i = 0; i < ARRAY_SIZE(lies); i++) {
		ASSERT_TRUE(write_with_tail(s, &self->w, head + lies[i], &self->stat));
		EXPECT_EQ(self->stat.head, head);
		EXPECT_GT(self->stat.lost, lost);
		lost = self->stat.lost;
	}
	ASSERT_TRUE(stream_read(s, &self->seen, head));
	ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 5, 0), 0);
	ASSERT_TRUE(see_everything(s, &self->seen, &self->stat));
	EXPECT_EQ(self->seen.missing, self->stat.lost);
	expect_all(_metadata, &self->seen, &self->stat);
}

/* Opens, maps, says so and is killed. */
static int read_until_killed(void *arg)
{
	int *args = arg;
	struct stream s;

	if (!stream_open(&s, args[0], 4, 0) || write(args[1], "", 1) != 1)
		return 1;
	for (;;)
		pause();
}

TEST_F(raw, killed_reader_leaves_its_cpu)
{
	int args[2], pipes[2], pid, i;
	struct stream *s = &self->s;
	char c;

	ASSERT_EQ(pipe(pipes), 0);
	args[0] = self->cpu;
	args[1] = pipes[1];
	for (i = 0; i < 10; i++) {
		pid = start(read_until_killed, args);
		ASSERT_EQ(read(pipes[0], &c, 1), 1);
		ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 5, 0), 0);
		EXPECT_FALSE(stream_open(s, self->cpu, 4, 0));
		EXPECT_EQ(errno, EBUSY);
		close(s->fd);
		kill(pid, SIGKILL);
		ASSERT_EQ(waitpid(pid, NULL, 0), pid);
		ASSERT_TRUE(stream_open(s, self->cpu, 4, 0));
		ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 5, 0), 0);
		memset(&self->seen, 0, sizeof(self->seen));
		ASSERT_TRUE(see_everything(s, &self->seen, &self->stat));
		EXPECT_GT(self->seen.switches, 0);
		EXPECT_EQ(self->stat.lost, 0);
		expect_all(_metadata, &self->seen, &self->stat);
		stream_close(s);
	}
}

/* Its descriptor may be closed, as long as the area is mapped. */
TEST_F(raw, map_keeps_its_stream)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	struct stream *s = &self->s;

	ASSERT_TRUE(stream_open(s, self->cpu, 4, 0));
	close(s->fd);
	s->fd = -1;
	ASSERT_TRUE(work_until(&self->w, s, 0));
	EXPECT_TRUE(stream_read(s, &self->seen, stream_head(s)));
	EXPECT_GT(self->seen.switches, 0);
	EXPECT_EQ(errno_of(bind_stream(fd, self->cpu, 4, PMUK_SCHED_RAW, 0)), EBUSY);
	stream_unmap(s);
	EXPECT_EQ(bind_stream(fd, self->cpu, 4, PMUK_SCHED_RAW, 0), 0);
	close(fd);
}

/* ---- what happens meanwhile ---- */

/* What was there before is published; and what comes is told by a mark. */
TEST_F(raw, stream_survives_off_and_on)
{
	struct stream *s = &self->s;
	uint64_t head;

	ASSERT_TRUE(stream_open(s, self->cpu, 16, 0));
	ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 5, 0), 0);
	ASSERT_EQ(set_parameter("enabled", "0"), 0);
	head = stream_head(s);
	EXPECT_GT(head, 0);
	ASSERT_TRUE(see_everything(s, &self->seen, &self->stat));
	EXPECT_EQ(self->stat.head, head);
	EXPECT_GT(self->seen.switches, 0);
	ASSERT_EQ(set_parameter("enabled", "1"), 0);
	self->seen.pid = self->w.pid;
	ASSERT_EQ(worker_add(&self->w, 17, 18), 0);
	ASSERT_TRUE(comes(see_everything(s, &self->seen, &self->stat) && self->seen.t.counts[0]));
	expect_counts(_metadata, &self->seen.t, 17, 18);
	EXPECT_EQ(self->seen.missing, 0);
	EXPECT_EQ(self->seen.jumps, 1);
	expect_all(_metadata, &self->seen, &self->stat);
}

TEST_F_TIMEOUT(raw, stream_survives_hotplug, 120)
{
	struct stream *s = &self->s;
	uint64_t added = 0, head;

	if (nr_cpus() < 2 || access(CPU1_ONLINE, W_OK))
		SKIP(return, "no CPU can go offline");
	ASSERT_TRUE(stream_open(s, 1, 64, 0));
	ASSERT_EQ(worker_do(&self->w, ORDER_RUN_ON, 1, 0), 0);
	ASSERT_EQ(write_file(CPU1_ONLINE, "0"), 0);
	head = stream_head(s);
	EXPECT_GT(head, 0);
	ASSERT_EQ(ioctl(s->fd, PMUK_SCHED_FLUSH), 0);
	ASSERT_TRUE(see_everything(s, &self->seen, &self->stat));
	EXPECT_EQ(self->stat.head, head);
	expect_all(_metadata, &self->seen, &self->stat);
	ASSERT_EQ(write_file(CPU1_ONLINE, "1"), 0);
	ASSERT_TRUE(comes(cpu_counts(1, &added)));
	ASSERT_EQ(worker_do(&self->w, ORDER_RUN_ON, 1, 0), 0);
	self->seen.pid = self->w.pid;
	self->seen.t = (struct totals){};
	ASSERT_EQ(worker_add(&self->w, 17, 18), 0);
	ASSERT_TRUE(comes(see_everything(s, &self->seen, &self->stat) && self->seen.t.counts[0]));
	expect_counts(_metadata, &self->seen.t, 17, 18);
	EXPECT_EQ(self->seen.missing, self->stat.lost);
	expect_all(_metadata, &self->seen, &self->stat);
}

/* Its CPU is gone when it ends, and comes back to somebody else. */
TEST_F_TIMEOUT(raw, reader_ends_while_its_cpu_is_offline, 120)
{
	struct stream *s = &self->s;

	if (nr_cpus() < 2 || access(CPU1_ONLINE, W_OK))
		SKIP(return, "no CPU can go offline");
	ASSERT_TRUE(stream_open(s, 1, 4, 0));
	ASSERT_EQ(worker_do(&self->w, ORDER_RUN_ON, 1, 0), 0);
	ASSERT_EQ(write_file(CPU1_ONLINE, "0"), 0);
	stream_close(s);
	ASSERT_TRUE(stream_open(s, 1, 4, 0));
	ASSERT_TRUE(stream_stat(s, &self->stat));
	EXPECT_EQ(self->stat.switches, 0);
	ASSERT_EQ(write_file(CPU1_ONLINE, "1"), 0);
	ASSERT_EQ(worker_do(&self->w, ORDER_RUN_ON, 1, 0), 0);
	ASSERT_EQ(worker_do(&self->w, ORDER_YIELD, 5, 0), 0);
	ASSERT_TRUE(comes(see_everything(s, &self->seen, &self->stat) && self->seen.switches));
	expect_all(_metadata, &self->seen, &self->stat);
}

/* A slice that was not counted says so, and has no counts. */
TEST_F_TIMEOUT(raw, uncounted_slices_are_marked, 120)
{
	struct stream *s = &self->s;

	ASSERT_TRUE(stream_open(s, self->cpu, 64, 0));
	ASSERT_EQ(pace_steal(self->cpu, 8), 0);
	ASSERT_TRUE(see_everything(s, &self->seen, &self->stat));
	self->seen.switches = 0;
	self->seen.invalid = 0;
	self->seen.pid = self->w.pid;
	ASSERT_EQ(worker_add(&self->w, 1, 1), ENODATA);
	ASSERT_TRUE(comes(see_everything(s, &self->seen, &self->stat) &&
			  self->seen.t.voluntary));
	EXPECT_GT(self->seen.invalid, 0);
	EXPECT_EQ(self->seen.invalid, self->seen.switches);
	expect_counts(_metadata, &self->seen.t, 0, 0);
	ASSERT_EQ(pace_steal(self->cpu, 0), 0);
}

TEST_HARNESS_MAIN
