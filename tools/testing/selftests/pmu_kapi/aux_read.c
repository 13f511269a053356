// SPDX-License-Identifier: GPL-2.0
/*
 * The tests read the AUX area of a buffer of /dev/pmuk_export in user space: its bytes, the records
 * about them, and poll. A hostile reader must not harm the kernel.
 */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>

#include "export.h"
#include "harness.h"

#define AUX_PAGES	16

struct aux_record {
	struct perf_event_header header;
	uint64_t offset;
	uint64_t size;
	uint64_t flags;
};

struct stream {
	int fd;
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	const uint64_t *aux;
	uint64_t size;
	uint64_t tail;		/* position of the next byte to read */
	uint64_t data_tail;
	uint64_t bad;
};

/* Maps a buffer and its AUX area. */
static bool stream_begin(struct stream *s, int fd, int prot)
{
	s->fd = fd;
	s->page = export_begin(fd, prot);
	if (s->page == MAP_FAILED)
		return false;
	s->size = s->page->aux_size;
	s->data = (uint8_t *)s->page + s->page->data_offset;
	s->aux = mmap(NULL, s->size, PROT_READ, MAP_SHARED, s->fd, s->page->aux_offset);
	return s->aux != MAP_FAILED;
}

static void stream_end(struct stream *s)
{
	munmap((void *)s->aux, s->size);
	unmap_pages(s->page, PAGES);
	close(s->fd);
}

FIXTURE(stream)
{
	struct stream s;
};

FIXTURE_SETUP(stream)
{
	int fd = export_made(.flags = USER_TAIL, .aux_pages = AUX_PAGES, .watermark = 16384);

	ASSERT_TRUE(stream_begin(&self->s, fd, PROT_READ | PROT_WRITE));
}

FIXTURE_TEARDOWN(stream)
{
	stream_end(&self->s);
	EXPECT_EQ(self->s.bad, 0);
}

/* Reads all new bytes; returns their number. */
static uint64_t read_bytes(struct stream *s)
{
	uint64_t head = __atomic_load_n(&s->page->aux_head, __ATOMIC_ACQUIRE);
	uint64_t p, read = head - s->tail;

	s->bad += read > s->size;
	for (p = s->tail; p != head; p += 8)
		s->bad += s->aux[p % s->size / 8] != pmuk_export_fill(p, 0);
	s->tail = head;
	__atomic_store_n(&s->page->aux_tail, head, __ATOMIC_RELEASE);
	return read;
}

/* Takes the next record, which must be a PERF_RECORD_AUX. */
static bool next_record(struct stream *s, struct aux_record *rec)
{
	uint64_t head = __atomic_load_n(&s->page->data_head, __ATOMIC_ACQUIRE);

	if (head == s->data_tail)
		return false;
	/* The buffer has only records of 32 bytes, so none wraps. */
	memcpy(rec, s->data + s->data_tail % s->page->data_size, sizeof(*rec));
	if (rec->header.type != PERF_RECORD_AUX || rec->header.size != sizeof(*rec)) {
		s->bad++;
		return false;
	}
	s->data_tail += sizeof(*rec);
	__atomic_store_n(&s->page->data_tail, s->data_tail, __ATOMIC_RELEASE);
	return true;
}

/* The sizes move the position at which a write begins to wrap over the whole area. */
TEST_F(stream, is_what_was_written)
{
	uint64_t size, written = 0;
	struct aux_record rec;

	for (size = 8; size <= 8192; size += 8) {
		ASSERT_EQ(export_aux_write(self->s.fd, size, size), size);
		ASSERT_EQ(read_bytes(&self->s), size);
		ASSERT_TRUE(next_record(&self->s, &rec));
		ASSERT_EQ(rec.offset, written);
		ASSERT_EQ(rec.size, size);
		ASSERT_EQ(rec.flags, 0);
		written += size;
	}
	EXPECT_FALSE(next_record(&self->s, &rec));
	EXPECT_EQ(LOAD(self->s.page->aux_head), written);
	EXPECT_GT(written, 50 * self->s.size);
	EXPECT_EQ(export_aux_stat(self->s.fd).truncated, 0);
}

TEST_F(stream, that_does_not_fit_is_counted)
{
	struct aux_record rec;

	EXPECT_EQ(export_aux_write(self->s.fd, self->s.size + 800, 4096), self->s.size);
	EXPECT_EQ(export_aux_stat(self->s.fd).truncated, 800);
	EXPECT_EQ(export_aux_stat(self->s.fd).full, 1);
	EXPECT_EQ(read_bytes(&self->s), self->s.size);
	while (next_record(&self->s, &rec))
		EXPECT_EQ(rec.flags, 0);
	EXPECT_EQ(export_aux_write(self->s.fd, 64, 64), 64);
	ASSERT_TRUE(next_record(&self->s, &rec));
	EXPECT_EQ(rec.offset, self->s.size);
	EXPECT_EQ(rec.size, 64);
	EXPECT_EQ(rec.flags, PERF_AUX_FLAG_TRUNCATED);
}

/* A reader that takes no records out of the buffer still gets all bytes of the area. */
TEST_F(stream, goes_on_when_records_have_no_room)
{
	uint64_t i, told = 0, end = 0;
	struct aux_record rec;

	for (i = 0; i < 3000; i++) {
		ASSERT_EQ(export_aux_write(self->s.fd, 64, 64), 64);
		ASSERT_EQ(read_bytes(&self->s), 64);
	}
	while (next_record(&self->s, &rec)) {
		EXPECT_EQ(rec.offset, end);
		end += rec.size;
		told++;
	}
	EXPECT_LT(told, 3000);
	self->s.data_tail = self->s.page->data_head;
	STORE(self->s.page->data_tail, self->s.data_tail);
}

/* The reader is woken at each watermark, and not more often. */
TEST_F(stream, can_be_polled)
{
	struct pollfd pfd = { .fd = self->s.fd, .events = POLLIN };
	int i;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(export_aux_write(self->s.fd, self->s.size / 2 - 64, 4096),
			  (int64_t)self->s.size / 2 - 64);
		read_bytes(&self->s);
		ASSERT_EQ(poll(&pfd, 1, 0), 0);
		ASSERT_EQ(export_aux_write(self->s.fd, 64, 64), 64);
		read_bytes(&self->s);
		STORE(self->s.page->data_tail, LOAD(self->s.page->data_head));
		ASSERT_EQ(poll(&pfd, 1, 2000), 1);
		ASSERT_EQ(poll(&pfd, 1, 0), 0);
	}
}

/* An impossible tail leaves no room. Bytes that were written before stay in the area. */
TEST_F(stream, does_not_believe_every_tail)
{
	static const uint64_t lies[] = { 1, 1000000, 1ULL << 32, 1ULL << 63, -1ULL << 32 };
	uint64_t head, size = self->s.size;
	unsigned int i;

	ASSERT_EQ(export_aux_write(self->s.fd, size / 2, 4096), (int64_t)size / 2);
	head = LOAD(self->s.page->aux_head);
	for (i = 0; i < ARRAY_SIZE(lies); i++) {
		STORE(self->s.page->aux_tail, head + lies[i]);
		EXPECT_EQ(export_aux_write(self->s.fd, 64, 64), 0);
	}
	/* The writer believes each possible tail, since only the lying reader loses bytes. */
	STORE(self->s.page->aux_tail, head);
	EXPECT_EQ(export_aux_write(self->s.fd, size + 64, 4096), (int64_t)size);
	EXPECT_EQ(export_aux_write(self->s.fd, 64, 64), 0);
	self->s.tail = head;
	EXPECT_EQ(read_bytes(&self->s), size);
}

/* The writer reads only the tail from the page. A changed head, for example, has no effect. */
TEST_F(stream, does_not_read_the_page)
{
	uint64_t i, head = 0;

	for (i = 0; i < 100; i++) {
		memset(&self->s.page->aux_head, 0xa5 + i, 4 * sizeof(uint64_t));
		STORE(self->s.page->aux_tail, head);
		ASSERT_EQ(export_aux_write(self->s.fd, 4096, 512), 4096);
		head += 4096;
		ASSERT_EQ(LOAD(self->s.page->aux_head), head);
	}
	self->s.tail = head;
}

/*
 * A thread changes the tail, or reads, while the test writes. It is on another CPU if there is one.
 */
struct other {
	pthread_t thread;
	struct stream *s;
	bool stop;
	uint64_t done;		/* number of changes, or of bytes read */
};

static uint64_t other_end(struct other *other)
{
	STORE(other->stop, true);
	pthread_join(other->thread, NULL);
	return other->done;
}

/* Changes the tail all the time, to arbitrary values. */
static void *lie(void *data)
{
	struct other *liar = data;
	struct perf_event_mmap_page *page = liar->s->page;
	uint64_t tail, random = 88172645463325252ULL;

	if (stay_away())
		return NULL;
	while (!LOAD(liar->stop)) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		tail = random % 3 ? LOAD(page->aux_head) - random % 70000 : random;
		STORE(page->aux_tail, tail);
		STORE(liar->done, liar->done + 1);
	}
	return NULL;
}

/* Goes on until there were enough writes and lies, and the area was often full for the writer. */
TEST_F(stream, survives_a_liar)
{
	struct other liar = { .s = &self->s };
	unsigned int writes = 0;
	int64_t written = 0, once;
	uint64_t head;

	ASSERT_EQ(pthread_create(&liar.thread, NULL, lie, &liar), 0);
	while (writes < 100 || LOAD(liar.done) < 10000 || export_aux_stat(self->s.fd).full < 100) {
		once = export_aux_write(self->s.fd, 65536, 777 * 8);
		ASSERT_GE(once, 0);
		written += once;
		writes++;
		STORE(self->s.page->data_tail, LOAD(self->s.page->data_head));
	}
	other_end(&liar);
	TH_LOG("%u writes, %" PRIu64 " lies", writes, liar.done);
	head = export_aux_stat(self->s.fd).head;
	EXPECT_EQ(head, written);
	EXPECT_EQ(head % 8, 0);
}

static void *read_on(void *data)
{
	struct other *r = data;
	bool last;

	if (stay_away())
		return NULL;
	do {
		last = LOAD(r->stop);
		r->done += read_bytes(r->s);
		STORE(r->s->page->data_tail, LOAD(r->s->page->data_head));
	} while (!last);
	return NULL;
}

/* Returns how many bytes to stream: PMUK_STREAMED_MIB, or 32 MiB. */
static uint64_t streamed(void)
{
	const char *mib = getenv("PMUK_STREAMED_MIB");

	return (mib ? strtoul(mib, NULL, 10) : 32) << 20;
}

TEST_F(stream, is_read_while_it_is_written)
{
	struct other r = { .s = &self->s };
	uint64_t tried = 0, written = 0, wanted = streamed();
	int64_t once;

	ASSERT_EQ(pthread_create(&r.thread, NULL, read_on, &r), 0);
	while (written < wanted) {
		once = export_aux_write(self->s.fd, 65536, 1000 * 8);
		ASSERT_GE(once, 0);
		tried += 65536;
		written += once;
		if (once < 65536)
			sched_yield();
	}
	EXPECT_EQ(other_end(&r), written);
	EXPECT_EQ(export_aux_stat(self->s.fd).truncated, tried - written);
	EXPECT_EQ(self->s.bad, 0);
}

/* Old bytes are overwritten, and the newest bytes are in the area. */
TEST(overwriting_is_read_backwards)
{
	int fd = export_made(.aux_pages = AUX_PAGES, .aux_overwrite = 1);
	uint64_t p, head, size;
	struct stream s;

	ASSERT_TRUE(stream_begin(&s, fd, PROT_READ));
	size = 10 * s.size + 808;
	ASSERT_EQ(export_aux_write(s.fd, size, 4096), (int64_t)size);
	head = LOAD(s.page->aux_head);
	EXPECT_EQ(head, size);
	for (p = head - s.size; p != head; p += 8)
		ASSERT_EQ(s.aux[p % s.size / 8], pmuk_export_fill(p, 0));
	EXPECT_EQ(export_aux_stat(s.fd).truncated, 0);
	stream_end(&s);
}

TEST_HARNESS_MAIN
