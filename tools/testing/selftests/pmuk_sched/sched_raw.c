// SPDX-License-Identifier: GPL-2.0
/*
 * The tests read /dev/pmuk_sched with PMUK_SCHED_RAW. Each switch of a CPU is a packet in the AUX
 * area, or the next mark reports the packet as missing. The packets add up to the numbers in the
 * text files.
 */
#include "sched_device.h"

#define PART		4096

static void stream_give_back(struct stream *s, uint64_t tail)
{
	uint64_t head = __atomic_load_n(&s->page->data_head, __ATOMIC_ACQUIRE);

	s->tail = tail;
	__atomic_store_n(&s->page->aux_tail, tail, __ATOMIC_RELEASE);
	__atomic_store_n(&s->page->data_tail, head, __ATOMIC_RELEASE);
}

/* Holds the rest of a part of the stream. */
struct bytes {
	const struct stream *s;
	uint64_t pos, end;
	bool cut;			/* a packet needed more bytes */
};

static uint8_t take_byte(struct bytes *b)
{
	if (b->pos == b->end) {
		b->cut = true;
		return 0;
	}
	return b->s->data[b->pos++ % b->s->size];
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
	see_slice(seen, seen->now, misc, run, wait, counts);
	see_turn(seen, seen->now);
	seen->time += run;
	seen->now = next;
	seen->number++;
}

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

FIXTURE(raw)
{
	struct streaming r;
};

FIXTURE_SETUP(raw)
{
	ASSERT_TRUE(streaming_begin(&self->r, PMUK_SCHED_RAW));
}

FIXTURE_TEARDOWN(raw)
{
	EXPECT_EQ(self->r.seen.bad, 0);
	EXPECT_TRUE(streaming_end(&self->r));
}

static void expect_all(struct __test_metadata *_metadata, const struct streaming *r)
{
	EXPECT_EQ(r->seen.switches + r->stat.lost, r->stat.switches);
	EXPECT_EQ(r->stat.discarded, 0);
	EXPECT_EQ(r->seen.bad, 0);
	EXPECT_LE(r->seen.missing, r->stat.lost);
	EXPECT_LE(r->seen.by_mark, PART);
}

/* ---- what can be asked for ---- */

TEST_F(raw, bad_requests_are_refused)
{
	int fd = open_device(), other = open_device();
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

/* The first map has the control page and a ring of one page, the second has the area. */
TEST_F(raw, maps_are_as_announced)
{
	struct streaming *r = &self->r;
	int page = getpagesize(), fd;

	ASSERT_TRUE(stream_open(&r->s, 0, 4, PMUK_SCHED_RAW, 0));
	fd = r->s.fd;
	EXPECT_EQ(r->s.page->data_size, (uint64_t)page);
	EXPECT_EQ(r->s.page->aux_offset, 2 * (uint64_t)page);
	EXPECT_EQ(r->s.page->aux_size, 4 * (uint64_t)page);
	EXPECT_EQ(errno_of(mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, fd, 2 * page)), EINVAL);
	EXPECT_EQ(errno_of(mmap(NULL, 4 * page, PROT_READ, MAP_SHARED, fd, 3 * page)), EINVAL);
}

/* ---- all of it ---- */

TEST_F(raw, packets_are_the_totals)
{
	expect_totals(_metadata, &self->r, 2ULL << 32);
	EXPECT_EQ(self->r.seen.jumps, 0);
}

#define PASSES	2000

/* Two tasks pass a byte to and fro. Each byte wakes the other task. */
struct passer {
	int cpu, from, to;
	bool first;
};

static int pass_on(void *arg)
{
	const struct passer *p = arg;
	char c = 0;
	int i;

	if (stay_on(p->cpu) || (p->first && write(p->to, &c, 1) != 1))
		return 1;
	for (i = 0; i < PASSES; i++)
		if (read(p->from, &c, 1) != 1 ||
		    (i < PASSES - p->first && write(p->to, &c, 1) != 1))
			return 1;
	return 0;
}

TEST_F(raw, two_tasks_over_a_pipe_alternate)
{
	struct streaming *r = &self->r;
	struct passer passers[2];
	int i, to[2], from[2];

	ASSERT_TRUE(stream_open(&r->s, r->cpu, 256, PMUK_SCHED_RAW, 0));
	ASSERT_EQ(pipe(to) | pipe(from), 0);
	passers[0] = (struct passer){ r->cpu, to[0], from[1], false };
	passers[1] = (struct passer){ r->cpu, from[0], to[1], true };
	for (i = 0; i < 2; i++)
		r->seen.pair[i] = start(pass_on, &passers[i]);
	for (i = 0; i < 2; i++)
		EXPECT_TRUE(ended(r->seen.pair[i]));
	ASSERT_TRUE(see_everything(r));
	EXPECT_GE(r->seen.turns, 2 * PASSES - 1);
	EXPECT_EQ(r->seen.jumps, 0);
	EXPECT_EQ(r->stat.lost, 0);
	expect_all(_metadata, r);
	TH_LOG("%.1f bytes a switch, marks included", (double)r->seen.bytes / r->seen.switches);
	/* Some switches also need a name, or belong to other tasks, so they take more bytes. */
	EXPECT_LT(r->seen.bytes, 20 * r->seen.switches);
	EXPECT_GE(r->seen.marks, r->seen.bytes / PART);
	EXPECT_LE(r->seen.marks, r->seen.bytes / (PART - 128) + 2);
}

/* ---- when it can be read ---- */

struct aux_record {
	struct perf_event_header header;
	uint64_t offset, size, flags;
};

/* Less than a part is only published by a flush. A record then reports the new bytes. */
TEST_F(raw, flush_publishes)
{
	struct streaming *r = &self->r;
	const struct aux_record *rec;
	uint64_t head = 0, told = 0;
	int i;

	ASSERT_TRUE(stream_open(&r->s, r->cpu, 64, PMUK_SCHED_RAW, 0));
	rec = (void *)((char *)r->s.page + r->s.page->data_offset);
	for (i = 0; i < 5; i++, rec++) {
		ASSERT_EQ(worker_do(&r->w, ORDER_NAP, 1, 0), 0);
		EXPECT_EQ(stream_head(&r->s), head);
		ASSERT_EQ(ioctl(r->s.fd, PMUK_SCHED_FLUSH), 0);
		EXPECT_GT(stream_head(&r->s), head);
		head = stream_head(&r->s);
		EXPECT_EQ(rec->header.type, PERF_RECORD_AUX);
		EXPECT_EQ(rec->offset, told);
		EXPECT_EQ(rec->size, head - told);
		EXPECT_EQ(rec->flags, 0);
		told = head;
		ASSERT_TRUE(stream_read(&r->s, &r->seen, head));
		EXPECT_EQ(r->seen.marks, i + 1);
	}
	ASSERT_TRUE(see_everything(r));
	EXPECT_EQ(r->stat.head, stream_head(&r->s));
	EXPECT_EQ(r->stat.lost, 0);
	expect_all(_metadata, r);
}

/*
 * The writer wakes the reader once, at the end of the part that passes the watermark. The reader
 * does not have to flush.
 */
TEST_F(raw, reader_is_woken)
{
	struct streaming *r = &self->r;
	uint64_t head = 0;
	int i;

	ASSERT_TRUE(stream_open(&r->s, r->cpu, 8, PMUK_SCHED_RAW, PART / 2));
	for (i = 0; i < 5; i++) {
		EXPECT_FALSE(wakes(r->s.fd, 0));
		ASSERT_TRUE(work_until(r, head));
		head = stream_head(&r->s);
		EXPECT_TRUE(wakes(r->s.fd, PATIENCE));
		ASSERT_TRUE(stream_read(&r->s, &r->seen, head));
	}
	EXPECT_GT(head, 5 * (PART - 128));
	EXPECT_LE(head, 5 * PART);
	ASSERT_TRUE(see_everything(r));
	EXPECT_EQ(r->stat.lost, 0);
	expect_all(_metadata, r);
}

/* ---- readers that do not keep up ---- */

/*
 * The test does not read. The oldest packets stay, later switches are counted as lost, and the next
 * mark reports the loss.
 */
TEST_F(raw, slow_reader_is_told_what_it_lost)
{
	struct streaming *r = &self->r;
	struct stream *s = &r->s;
	uint64_t head;

	ASSERT_TRUE(stream_open(s, r->cpu, 1, PMUK_SCHED_RAW, 0));
	ASSERT_TRUE(work(&r->w, 600));
	ASSERT_TRUE(stream_stat(r));
	EXPECT_GT(r->stat.lost, 0);
	EXPECT_GE(r->stat.switches, 600);
	EXPECT_LE(r->stat.head, s->size);
	EXPECT_GT(r->stat.head, s->size - 128);
	head = r->stat.head;
	ASSERT_TRUE(see_everything(r));
	EXPECT_EQ(head, r->stat.head);
	expect_all(_metadata, r);
	EXPECT_EQ(r->seen.missing, 0);
	ASSERT_TRUE(work(&r->w, 10));
	ASSERT_TRUE(see_everything(r));
	EXPECT_EQ(r->seen.missing, r->stat.lost);
	expect_all(_metadata, r);
}

/* Reads all records, and moves the tail. Returns the position behind the latest reported part. */
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
 * A reader that uses only the records finds all bytes. When the area became full, the ring had no
 * room for records. After it has room, the next switch writes the missing record, and wakes the
 * reader.
 */
TEST_F(raw, records_alone_are_enough)
{
	struct streaming *r = &self->r;
	struct stream *s = &r->s;
	int i;

	ASSERT_TRUE(stream_open(s, r->cpu, 4, PMUK_SCHED_RAW, 0));
	for (i = 0; i < 200; i++) {	/* 128 records fill the ring */
		ASSERT_TRUE(work(&r->w, 1));
		ASSERT_EQ(ioctl(s->fd, PMUK_SCHED_FLUSH), 0);
	}
	__atomic_store_n(&s->page->aux_tail, stream_head(s), __ATOMIC_RELEASE);
	for (i = 0; i < 100 && !r->stat.lost; i++)
		ASSERT_TRUE(work(&r->w, 100) && stream_stat(r));
	ASSERT_GT(r->stat.lost, 0);
	EXPECT_LT(told_up_to(s), stream_head(s));
	wakes(s->fd, 0);
	ASSERT_TRUE(work(&r->w, 2));
	EXPECT_TRUE(wakes(s->fd, PATIENCE));
	EXPECT_EQ(told_up_to(s), stream_head(s));
}

/*
 * The test reads now and then, while there are switches. At any time, read and lost switches add up
 * to all switches.
 */
TEST_F(raw, seen_and_lost_are_all)
{
	struct streaming *r = &self->r;
	struct stream *s = &r->s;
	int i;

	ASSERT_TRUE(stream_open(s, r->cpu, 1, PMUK_SCHED_RAW, 0));
	for (i = 0; i < 8; i++) {
		ASSERT_TRUE(worker_order(&r->v, ORDER_YIELD, 1000, 0) &&
			    work(&r->w, 60 * i) &&
			    worker_order(&r->w, ORDER_YIELD, 1000, 0));
		ASSERT_TRUE(see_everything(r));
		EXPECT_EQ(r->seen.switches + r->stat.lost, r->stat.switches);
		EXPECT_EQ(r->seen.number + r->stat.lost - r->seen.missing, r->stat.switches);
		ASSERT_EQ(worker_done(&r->w) | worker_done(&r->v), 0);
	}
	EXPECT_GT(r->seen.switches, 300);
	EXPECT_GT(r->stat.lost, 0);
}

/* The CPU writes a few packets if there is room. PMUK_SCHED_STAT then ends the part. */
static bool write_with_tail(struct streaming *r, uint64_t tail)
{
	__atomic_store_n(&r->s.page->aux_tail, tail, __ATOMIC_RELEASE);
	return !worker_do(&r->w, ORDER_NAP, 2, 0) && stream_stat(r);
}

/* An impossible tail leaves no room. Bytes that were written before stay in the area. */
TEST_F(raw, does_not_believe_every_tail)
{
	static const uint64_t lies[] = { 1, 1000000, 1ULL << 32, 1ULL << 63, -1ULL << 32 };
	struct streaming *r = &self->r;
	struct stream *s = &r->s;
	uint64_t head, lost;
	unsigned int i;

	ASSERT_TRUE(stream_open(s, r->cpu, 4, PMUK_SCHED_RAW, 0));
	ASSERT_EQ(worker_do(&r->w, ORDER_NAP, 2, 0), 0);
	/*
	 * Other switches may have begun a part before the first wrong tail. That part still has
	 * room.
	 */
	ASSERT_TRUE(write_with_tail(r, 1ULL << 62));
	head = r->stat.head;
	lost = r->stat.lost;
	for (i = 0; i < ARRAY_SIZE(lies); i++) {
		ASSERT_TRUE(write_with_tail(r, head + lies[i]));
		EXPECT_EQ(r->stat.head, head);
		EXPECT_GT(r->stat.lost, lost);
		lost = r->stat.lost;
	}
	ASSERT_TRUE(stream_read(s, &r->seen, head));
	ASSERT_EQ(worker_do(&r->w, ORDER_NAP, 2, 0), 0);
	ASSERT_TRUE(see_everything(r));
	EXPECT_EQ(r->seen.missing, r->stat.lost);
	expect_all(_metadata, r);
}

TEST_F(raw, killed_reader_leaves_its_cpu)
{
	expect_cpu_is_left(_metadata, &self->r);
}

TEST_F(raw, map_keeps_its_stream)
{
	expect_map_keeps(_metadata, &self->r);
}

/* ---- what happens meanwhile ---- */

/*
 * Earlier packets are published when accounting is turned off. After it is turned on, a mark
 * precedes the next packets.
 */
TEST_F(raw, stream_survives_off_and_on)
{
	struct streaming *r = &self->r;
	struct stream *s = &r->s;
	uint64_t head;

	ASSERT_TRUE(stream_open(s, r->cpu, 16, PMUK_SCHED_RAW, 0));
	ASSERT_EQ(worker_do(&r->w, ORDER_NAP, 2, 0), 0);
	ASSERT_EQ(set_parameter("enabled", "0"), 0);
	head = stream_head(s);
	EXPECT_GT(head, 0);
	ASSERT_TRUE(see_everything(r));
	EXPECT_EQ(r->stat.head, head);
	EXPECT_GT(r->seen.switches, 0);
	ASSERT_EQ(set_parameter("enabled", "1"), 0);
	expect_added(_metadata, r);
	EXPECT_EQ(r->seen.missing, 0);
	EXPECT_EQ(r->seen.jumps, 1);
	expect_all(_metadata, r);
}

TEST_F(raw, stream_survives_hotplug)
{
	expect_survives_hotplug(_metadata, &self->r);
	EXPECT_EQ(self->r.seen.missing, self->r.stat.lost);
}

/* The stream's CPU is offline when the stream is closed. Another stream then gets the CPU. */
TEST_F(raw, reader_ends_while_its_cpu_is_offline)
{
	struct streaming *r = &self->r;
	struct stream *s = &r->s;

	if (nr_cpus() < 2 || access(CPU1_ONLINE, W_OK))
		SKIP(return, "no CPU can go offline");
	ASSERT_TRUE(stream_open(s, 1, 4, PMUK_SCHED_RAW, 0));
	ASSERT_EQ(worker_do(&r->w, ORDER_RUN_ON, 1, 0), 0);
	ASSERT_EQ(write_file(CPU1_ONLINE, "0"), 0);
	stream_close(s);
	ASSERT_TRUE(stream_open(s, 1, 4, PMUK_SCHED_RAW, 0));
	ASSERT_TRUE(stream_stat(r));
	EXPECT_EQ(r->stat.switches, 0);
	ASSERT_EQ(write_file(CPU1_ONLINE, "1"), 0);
	ASSERT_EQ(worker_do(&r->w, ORDER_RUN_ON, 1, 0), 0);
	ASSERT_EQ(worker_do(&r->w, ORDER_NAP, 2, 0), 0);
	ASSERT_TRUE(comes(see_everything(r) && r->seen.switches));
	expect_all(_metadata, r);
}

TEST_F(raw, uncounted_slices_are_marked)
{
	expect_uncounted_marked(_metadata, &self->r);
}

TEST_HARNESS_MAIN
