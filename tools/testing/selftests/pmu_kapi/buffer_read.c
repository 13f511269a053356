// SPDX-License-Identifier: GPL-2.0
/*
 * The tests read a buffer of /dev/pmuk_export in user space, by perf's ABI: records, lost records,
 * poll, and the counter on the control page. A hostile reader must not harm the kernel.
 */
#include <poll.h>

#include "load.h"
#include "harness.h"

#define SIZE		64	/* bytes of a record, where the size does not matter */

struct lost_record {
	struct perf_event_header header;
	uint64_t id;
	uint64_t lost;
};

/* Reads records as perf does. Each is copied first, since it may wrap. */
struct reader {
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	uint64_t next[PMUK_EXPORT_CONTEXTS];	/* lowest next @seq of each context */
	uint64_t records;
	uint64_t missing;			/* records that were not found */
	uint64_t told;				/* lost records by PERF_RECORD_LOST */
};

static void reader_copy(const struct reader *r, void *to, uint64_t pos, size_t size)
{
	size_t at = pos % r->page->data_size, first = r->page->data_size - at;

	if (first > size)
		first = size;
	memcpy(to, r->data + at, first);
	memcpy((uint8_t *)to + first, r->data, size - first);
}

/* Returns whether the record is complete, and newer than all before of its context. */
static bool reader_take(struct reader *r, const struct pmuk_export_record *rec)
{
	size_t i, words = (rec->header.size - sizeof(*rec)) / sizeof(rec->fill[0]);

	if (rec->context >= PMUK_EXPORT_CONTEXTS || rec->seq < r->next[rec->context])
		return false;
	for (i = 0; i < words; i++) {
		if (rec->fill[i] != pmuk_export_fill(rec->seq, i))
			return false;
	}
	r->missing += rec->seq - r->next[rec->context];
	r->next[rec->context] = rec->seq + 1;
	r->records++;
	return true;
}

static bool reader_look(struct reader *r, const struct perf_event_header *rec)
{
	const struct lost_record *lost = (const void *)rec;

	if (rec->type == PMUK_EXPORT_RECORD && rec->size >= RECORD_MIN && rec->size % 8 == 0)
		return reader_take(r, (const void *)rec);
	if (rec->type != PERF_RECORD_LOST || rec->size != sizeof(*lost) || lost->id || !lost->lost)
		return false;
	r->told += lost->lost;
	return true;
}

/* Reads the next record out of @left bytes. Returns its size, or 0 if it is bad. */
static uint32_t reader_next(struct reader *r, uint64_t tail, uint64_t left)
{
	static _Alignas(8) uint8_t buffer[1 << 16];
	struct perf_event_header *rec = (void *)buffer;

	reader_copy(r, rec, tail, sizeof(*rec));
	if (rec->size >= sizeof(*rec) && rec->size <= left) {
		reader_copy(r, rec, tail, rec->size);
		if (reader_look(r, rec))
			return rec->size;
	}
	printf("# bad record of type %u, size %u at %llu\n", rec->type, rec->size,
	       (unsigned long long)tail);
	return 0;
}

/* Reads all new records. Returns whether they are as expected. */
static bool reader_read(struct reader *r)
{
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = r->page->data_tail;
	uint32_t size;

	if (head - tail > r->page->data_size)
		return false;
	while (tail != head) {
		size = reader_next(r, tail, head - tail);
		if (!size)
			return false;
		tail += size;
		__atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
	}
	return true;
}

/* Starts again after all records that writers have tried to write so far. */
static void reader_resume(struct reader *r, const struct load w[])
{
	uint32_t i;

	for (i = 0; i < PMUK_EXPORT_CONTEXTS; i++)
		r->next[i] = w[i].tried;
	r->records = 0;
	r->missing = 0;
	r->told = 0;
	__atomic_store_n(&r->page->data_tail, r->page->data_head, __ATOMIC_RELEASE);
}

/* Starts to read a new buffer. */
static bool reader_begin(struct reader *r, int *fd)
{
	*fd = export_made(.flags = USER_TAIL);
	r->page = export_begin(*fd, PROT_READ | PROT_WRITE);
	if (r->page == MAP_FAILED)
		return false;
	r->data = (uint8_t *)r->page + r->page->data_offset;
	return true;
}

/* Reads the new records, and expects @records, none of them missing. */
static void expect_read(struct __test_metadata *_metadata, struct reader *r, uint64_t records)
{
	EXPECT_TRUE(reader_read(r));
	EXPECT_EQ(r->records, records);
	EXPECT_EQ(r->missing, 0);
}

/* The fixture has a buffer that user space reads, and its reader. */
FIXTURE(records)
{
	int fd;
	struct reader reader;
};

FIXTURE_SETUP(records)
{
	ASSERT_TRUE(reader_begin(&self->reader, &self->fd));
}

FIXTURE_TEARDOWN(records)
{
	unmap_pages(self->reader.page, PAGES);
	close(self->fd);
}

TEST_F(records, are_what_was_written)
{
	struct reader *r = &self->reader;
	uint64_t written = 0;
	uint32_t size;

	/* The records have all sizes, and so begin to wrap at all positions in the buffer. */
	for (size = RECORD_MIN; size <= 4096; size += 8) {
		ASSERT_EQ(export_write(self->fd, 5, size, size / 8 % 2), 5);
		written += 5 * size;
		ASSERT_TRUE(reader_read(r));
	}
	EXPECT_EQ(r->records, 5 * ((4096 - RECORD_MIN) / 8 + 1));
	EXPECT_EQ(r->missing, 0);
	EXPECT_EQ(r->told, 0);
	EXPECT_EQ(r->page->data_head, written);
	EXPECT_GT(r->page->data_head, 100 * r->page->data_size);
}

TEST_F(records, of_bad_sizes_are_refused)
{
	EXPECT_EQ(export_write(self->fd, 1, RECORD_MIN + 4, PMUK_EXPORT_TASK), 0);
	EXPECT_EQ(export_write(self->fd, 1, 1 << 16, PMUK_EXPORT_TASK), 0);
	EXPECT_EQ(export_stat(self->fd).discarded, 2);
	EXPECT_EQ(export_write(self->fd, 1, 0xfff8, PMUK_EXPORT_TASK), 0);
	EXPECT_EQ(export_stat(self->fd).lost, 1);
	EXPECT_EQ(self->reader.page->data_head, 0);
}

TEST_F(records, that_were_lost_are_told)
{
	struct reader *r = &self->reader;
	const int room = r->page->data_size / SIZE;
	int i;

	for (i = 1; i <= 5; i++) {
		/* From the second time on, a PERF_RECORD_LOST takes the room of one record. */
		ASSERT_EQ(export_write(self->fd, room + 7, SIZE, PMUK_EXPORT_TASK),
			  room - (i > 1));
		EXPECT_EQ(export_stat(self->fd).lost, i * 7 + i - 1);
		ASSERT_TRUE(reader_read(r));
		EXPECT_EQ(r->told, (i - 1) * 7 + (i > 1 ? i - 2 : 0));
		EXPECT_EQ(r->missing, r->told);
	}
	ASSERT_EQ(export_write(self->fd, 1, SIZE, PMUK_EXPORT_TASK), 1);
	ASSERT_TRUE(reader_read(r));
	EXPECT_EQ(r->told, export_stat(self->fd).lost);
	EXPECT_EQ(r->missing, r->told);
	EXPECT_EQ(r->records + r->missing, 5 * (room + 7) + 1);
}

TEST_F(records, are_read_while_they_are_written)
{
	uint64_t written, end = now_ns() + PATIENCE;
	struct load w[PMUK_EXPORT_CONTEXTS];
	struct reader *r = &self->reader;
	bool good = true;

	ASSERT_EQ(stay_away(), 0);
	ASSERT_EQ(load_start(w, self->fd), 0);
	while (good && r->page->data_head < 50 * r->page->data_size && now_ns() < end)
		good = reader_read(r);
	written = load_stop(w).written;
	EXPECT_TRUE(good);
	EXPECT_GE(r->page->data_head, 50 * r->page->data_size);

	/*
	 * The losses at the end are only reported before the next records, so the test writes two
	 * more.
	 */
	ASSERT_EQ(stay_on(0), 0);
	ASSERT_TRUE(reader_read(r));
	EXPECT_EQ(export_write(self->fd, 1, SIZE, PMUK_EXPORT_TASK), 1);
	EXPECT_EQ(export_write(self->fd, 1, SIZE, PMUK_EXPORT_IRQ), 1);
	ASSERT_TRUE(reader_read(r));
	EXPECT_EQ(r->next[PMUK_EXPORT_TASK], w[PMUK_EXPORT_TASK].tried + 1);
	EXPECT_EQ(r->next[PMUK_EXPORT_IRQ], w[PMUK_EXPORT_IRQ].tried + 1);
	EXPECT_EQ(r->records, written + 2);
	EXPECT_EQ(r->missing, export_stat(self->fd).lost);
	EXPECT_EQ(r->told, r->missing);
	EXPECT_GT(w[PMUK_EXPORT_TASK].tried, 0);
	EXPECT_GT(w[PMUK_EXPORT_IRQ].tried, 0);
}

/*
 * Each variant sets an invalid tail, absolute or relative to the head. .room is set if there is
 * room in the buffer nevertheless.
 */
FIXTURE(hostile)
{
	int fd;
	struct reader reader;
	struct load w[PMUK_EXPORT_CONTEXTS];	/* only counts what the test writes */
};

FIXTURE_VARIANT(hostile)
{
	bool absolute;
	int64_t tail;
	bool room;
};

#define HOSTILE(name, ...) FIXTURE_VARIANT_ADD(hostile, name) { __VA_ARGS__ }

HOSTILE(ahead,			.tail = 8);
HOSTILE(ahead_by_a_record,	.tail = SIZE);
HOSTILE(ahead_by_a_buffer,	.tail = DATA_PAGES * 4096);
HOSTILE(far_ahead,		.tail = 1LL << 40);
HOSTILE(behind_by_a_buffer,	.tail = -DATA_PAGES * 4096 - 8);
HOSTILE(far_behind,		.tail = -(1LL << 40));
HOSTILE(far_away,		.tail = 1LL << 62);
HOSTILE(odd_ahead,		.tail = 1);
HOSTILE(zero,			.absolute = true, .tail = 0);
HOSTILE(all_ones,		.absolute = true, .tail = -1);
HOSTILE(highest_bit,		.absolute = true, .tail = 1LL << 63);
HOSTILE(highest_positive,	.absolute = true, .tail = (1ULL << 63) - 1);
HOSTILE(in_a_record,		.tail = -SIZE - 24,	.room = true);
HOSTILE(odd,			.tail = -SIZE - 3,	.room = true);

FIXTURE_SETUP(hostile)
{
	struct reader *r = &self->reader;

	if (getpagesize() != 4096)
		SKIP(return, "tails are for pages of 4096 bytes");
	ASSERT_TRUE(reader_begin(r, &self->fd));
	/* The buffer has wrapped more than once, so 0 is no valid tail. It is full, too. */
	while (export_stat(self->fd).head < 2 * r->page->data_size) {
		ASSERT_GT(export_write(self->fd, 64, SIZE, PMUK_EXPORT_TASK), 0);
		ASSERT_TRUE(reader_read(r));
	}
	self->w[PMUK_EXPORT_TASK].tried = r->next[PMUK_EXPORT_TASK] + r->page->data_size / SIZE;
	ASSERT_EQ(export_write(self->fd, r->page->data_size / SIZE, SIZE, PMUK_EXPORT_TASK),
		  r->page->data_size / SIZE);
}

FIXTURE_TEARDOWN(hostile)
{
	unmap_pages(self->reader.page, PAGES);
	close(self->fd);
}

TEST_F(hostile, tail_only_loses)
{
	struct reader *r = &self->reader;
	uint64_t head = r->page->data_head;
	int written;

	STORE(r->page->data_tail, variant->absolute ? variant->tail : head + variant->tail);
	written = export_write(self->fd, 1000, SIZE, PMUK_EXPORT_TASK);
	self->w[PMUK_EXPORT_TASK].tried += 1000;
	EXPECT_EQ(written > 0, variant->room);
	EXPECT_EQ(export_stat(self->fd).lost, 1000 - written);
	EXPECT_EQ(r->page->data_head - head, (uint64_t)written * SIZE);
	EXPECT_LE(r->page->data_head - head, r->page->data_size);

	/* A valid tail follows. The losses are reported, and records are complete again. */
	reader_resume(r, self->w);
	EXPECT_EQ(export_write(self->fd, 100, SIZE, PMUK_EXPORT_TASK), 100);
	expect_read(_metadata, r, 100);
	EXPECT_EQ(r->told, 1000 - written);
}

/* Returns a tail that is arbitrary, near the head, or valid, by turns. */
static uint64_t some_tail(struct perf_event_mmap_page *page, int i)
{
	uint64_t head = LOAD(page->data_head), random = ((uint64_t)rand() << 40) ^
		((uint64_t)rand() << 20) ^ rand();

	switch (i % 5) {
	case 0:
		return random;
	case 1:
		return head - random % (2 * page->data_size);
	case 2:
		return head + random % (2 * page->data_size);
	case 3:
		return head - random % page->data_size / 8 * 8;
	default:
		return head;
	}
}

/* Writers end, after they have written and lost much. From now on only the test writes. */
static void expect_wild(struct __test_metadata *_metadata, struct load w[], int fd)
{
	struct load sum = load_stop(w);
	uint64_t lost = export_stat(fd).lost;

	EXPECT_EQ(sum.tried, sum.written + lost);
	EXPECT_GT(sum.written, 1000);
	EXPECT_GT(lost, 1000);
	ASSERT_EQ(stay_on(0), 0);
}

TEST_F(records, go_on_under_a_random_tail)
{
	struct load w[PMUK_EXPORT_CONTEXTS];
	struct reader *r = &self->reader;
	int i;

	srand(1);
	ASSERT_EQ(stay_away(), 0);
	ASSERT_EQ(load_start(w, self->fd), 0);
	for (i = 0; i < 10000; i++) {
		STORE(r->page->data_tail, some_tail(r->page, i));
		if (i % 7 == 0)
			usleep(200);	/* keeps each kind for a while */
	}
	expect_wild(_metadata, w, self->fd);
	reader_resume(r, w);
	EXPECT_EQ(export_write(self->fd, 100, SIZE, PMUK_EXPORT_TASK), 100);
	EXPECT_EQ(export_write(self->fd, 100, SIZE, PMUK_EXPORT_IRQ), 100);
	expect_read(_metadata, r, 200);
}

/* The kernel reads only the tail from the page. */
TEST_F(records, go_on_under_a_scribbled_page)
{
	struct load w[PMUK_EXPORT_CONTEXTS];
	struct reader *r = &self->reader;
	struct perf_event_mmap_page sane = *r->page;
	int i;

	ASSERT_EQ(stay_away(), 0);
	ASSERT_EQ(load_start(w, self->fd), 0);
	for (i = 0; i < 200; i++) {
		memset(r->page, i % 2 ? 0xff : rand(), getpagesize());
		usleep(1000);
		STORE(r->page->data_tail, export_stat(self->fd).head);
		usleep(1000);
	}
	expect_wild(_metadata, w, self->fd);
	*r->page = sane;
	r->page->data_tail = export_stat(self->fd).head;
	EXPECT_GE(export_write(self->fd, 1, SIZE, PMUK_EXPORT_TASK), 1);
	w[PMUK_EXPORT_TASK].tried++;
	reader_resume(r, w);
	EXPECT_EQ(export_write(self->fd, 100, SIZE, PMUK_EXPORT_TASK), 100);
	expect_read(_metadata, r, 100);
	EXPECT_EQ(r->told, 0);
}

/* A reader polls for records. Each .records records make one event. */
FIXTURE(poll)
{
	int fd;
	struct perf_event_mmap_page *page;
};

FIXTURE_VARIANT(poll)
{
	uint32_t watermark;
	uint32_t wakeup_events;
	int records;
};

FIXTURE_VARIANT_ADD(poll, full_page) { .records = 4096 / SIZE };
FIXTURE_VARIANT_ADD(poll, watermark) { .watermark = 10 * SIZE, .records = 10 };
FIXTURE_VARIANT_ADD(poll, small_watermark) { .watermark = 1, .records = 1 };
FIXTURE_VARIANT_ADD(poll, wakeup_events) { .wakeup_events = 3, .records = 3 };

FIXTURE_SETUP(poll)
{
	if (getpagesize() != 4096)
		SKIP(return, "a page is thought to have 4096 bytes");
	self->fd = export_made(.flags = USER_TAIL, .watermark = variant->watermark,
			       .wakeup_events = variant->wakeup_events);
	self->page = export_begin(self->fd, PROT_READ | PROT_WRITE);
	ASSERT_NE(self->page, MAP_FAILED);
}

FIXTURE_TEARDOWN(poll)
{
	unmap_pages(self->page, PAGES);
	close(self->fd);
}

/* Returns the events within @ms milliseconds. */
static int poll_for(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int ret = poll(&p, 1, ms);

	return ret == 1 ? p.revents : ret;
}

/* Moves the tail to the head, as a reader does after it has read all records. */
static void give_back(struct perf_event_mmap_page *page)
{
	__atomic_store_n(&page->data_tail, page->data_head, __ATOMIC_RELEASE);
}

TEST_F(poll, tells_each_event_once)
{
	int i;

	EXPECT_EQ(poll_for(self->fd, 0), 0);
	for (i = 1; i <= 40; i++) {
		if (variant->records > 1) {
			EXPECT_EQ(export_write(self->fd, variant->records - 1, SIZE, i % 2),
				  variant->records - 1);
			EXPECT_EQ(poll_for(self->fd, i < 5 ? 20 : 0), 0);
		}
		EXPECT_EQ(export_write(self->fd, 1, SIZE, i % 2), 1);
		EXPECT_EQ(poll_for(self->fd, 5000), POLLIN);
		EXPECT_EQ(poll_for(self->fd, i < 5 ? 20 : 0), 0);
		EXPECT_EQ(export_stat(self->fd).wakeups, i);
		give_back(self->page);
	}
}

TEST_F(poll, tells_several_as_one_if_late)
{
	EXPECT_EQ(export_write(self->fd, 5 * variant->records, SIZE, PMUK_EXPORT_TASK),
		  5 * variant->records);
	EXPECT_EQ(export_stat(self->fd).wakeups, 5);
	EXPECT_EQ(poll_for(self->fd, 5000), POLLIN);
	EXPECT_EQ(poll_for(self->fd, 20), 0);
}

TEST_F(poll, tells_of_loss)
{
	int room = self->page->data_size / SIZE;

	EXPECT_EQ(export_write(self->fd, room, SIZE, PMUK_EXPORT_TASK), room);
	while (poll_for(self->fd, 20))
		;
	EXPECT_EQ(export_write(self->fd, 5, SIZE, PMUK_EXPORT_TASK), 0);
	EXPECT_EQ(poll_for(self->fd, 5000), POLLIN);
	EXPECT_EQ(export_write(self->fd, 5, SIZE, PMUK_EXPORT_TASK), 0);
	EXPECT_EQ(poll_for(self->fd, 20), POLLIN);	/* as long as the ring is full */
	give_back(self->page);
	EXPECT_EQ(poll_for(self->fd, 20), 0);
}

struct poller {
	pthread_t thread;
	int fd;
	bool *stop;
	int *told;
};

static void *poller_run(void *data)
{
	struct poller *p = data;

	while (!LOAD(*p->stop)) {
		if (poll_for(p->fd, 100) == POLLIN)
			__atomic_add_fetch(p->told, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Each event wakes one of the waiting readers, no matter which. */
TEST_F(poll, tells_one_of_several_readers)
{
	struct poller pollers[4];
	bool stop = false;
	int i, told = 0;
	uint64_t end;

	for (i = 0; i < 4; i++) {
		pollers[i] = (struct poller){ .fd = self->fd, .stop = &stop, .told = &told };
		ASSERT_EQ(pthread_create(&pollers[i].thread, NULL, poller_run, &pollers[i]), 0);
	}
	for (i = 1; i <= 50; i++) {
		EXPECT_EQ(export_write(self->fd, variant->records, SIZE, i % 2), variant->records);
		for (end = now_ns() + PATIENCE; LOAD(told) < i && now_ns() < end; )
			usleep(100);
		EXPECT_EQ(LOAD(told), i);
		give_back(self->page);
	}
	STORE(stop, true);
	for (i = 0; i < 4; i++)
		pthread_join(pollers[i].thread, NULL);
	EXPECT_EQ(told, 50);
}

TEST_F(poll, keeps_the_buffer)
{
	EXPECT_EQ(poll_for(self->fd, 0), 0);
	EXPECT_EQ(errno_of(ioctl(self->fd, PMUK_EXPORT_DESTROY)), EBUSY);
}

TEST(poll_without_a_buffer)
{
	int fd = export_open();

	EXPECT_EQ(poll_for(fd, 0), POLLERR);
	close(fd);
}

/* The control page shows a counter. */
FIXTURE(page)
{
	int fd;
	struct perf_event_mmap_page *page;
};

FIXTURE_VARIANT(page)
{
	uint32_t event;
	uint64_t period;
};

FIXTURE_VARIANT_ADD(page, clock) { .event = PMUK_EXPORT_CLOCK, .period = 200000 };
FIXTURE_VARIANT_ADD(page, cycles) { .event = PMUK_EXPORT_CYCLES, .period = 1000000 };

FIXTURE_SETUP(page)
{
	struct pmuk_export_attr attr = {
		.nr_pages = 1,
		.flags = USER_TAIL,
		.event = variant->event,
		.period = variant->period,
	};

	self->page = NULL;
	self->fd = export_open();
	ASSERT_GE(self->fd, 0);
	if (export_create(self->fd, &attr)) {
		ASSERT_EQ(errno, ENOENT);
		SKIP(return, "no PMU that counts cycles");
	}
	self->page = ASSERT_MAP(self->fd, 0, 1 + 1, PROT_READ | PROT_WRITE);
}

FIXTURE_TEARDOWN(page)
{
	if (self->page)
		unmap_pages(self->page, 1 + 1);
	close(self->fd);
}

/*
 * Reads the page by the protocol of struct perf_event_mmap_page, but with an even lock and
 * barriers, as another CPU writes it.
 */
static uint32_t read_page(const struct perf_event_mmap_page *page,
			  struct pmuk_export_value *value)
{
	uint32_t lock, index;

	do {
		while ((lock = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE)) & 1)
			;
		index = LOAD(page->index);
		value->count = LOAD(page->offset);
		value->time_enabled = LOAD(page->time_enabled);
		value->time_running = LOAD(page->time_running);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (LOAD(page->lock) != lock);
	return index;
}

static void *busy_run(void *stop)
{
	if (!stay_on(0)) {
		while (!LOAD(*(bool *)stop))
			;
	}
	return NULL;
}

/*
 * The kernel does not allow user space to read registers here. So the index is 0, and the page has
 * the complete count.
 */
TEST_F(page, follows_the_counter)
{
	struct pmuk_export_value value = {}, last = {}, final;
	uint64_t end = now_ns() + PATIENCE;
	int changes = 0, bad = 0;
	bool stop = false;
	pthread_t busy;

	ASSERT_EQ(stay_away(), 0);
	ASSERT_EQ(pthread_create(&busy, NULL, busy_run, &stop), 0);
	while (changes < 200 && now_ns() < end) {
		bad += read_page(self->page, &value) != 0;
		bad += value.count < last.count;
		bad += value.time_enabled < last.time_enabled;
		bad += value.time_running > value.time_enabled;
		changes += value.count != last.count;
		last = value;
	}
	STORE(stop, true);
	pthread_join(busy, NULL);
	EXPECT_EQ(bad, 0);
	EXPECT_EQ(changes, 200);

	ASSERT_EQ(ioctl(self->fd, PMUK_EXPORT_DISABLE), 0);
	ASSERT_EQ(ioctl(self->fd, PMUK_EXPORT_READ, &final), 0);
	EXPECT_EQ(read_page(self->page, &value), 0);
	EXPECT_EQ(value.count, final.count);
	EXPECT_GE(final.count, last.count);
	if (variant->event != PMUK_EXPORT_CLOCK)
		return;		/* perf core updates this page, at another time than pmuk reads */
	EXPECT_EQ(value.time_enabled, final.time_enabled);
	EXPECT_EQ(value.time_running, final.time_running);
}

/*
 * The reader overwrites members of the page. The next update repairs them, and the count is not
 * affected.
 */
TEST(page_is_put_right)
{
	struct pmuk_export_attr attr = { .flags = USER_TAIL, .event = PMUK_EXPORT_CLOCK };
	struct pmuk_export_value value, final;
	struct perf_event_mmap_page *page;
	int fd = export_make(&attr);

	ASSERT_GE(fd, 0);
	page = ASSERT_MAP(fd, 0, 1, PROT_READ | PROT_WRITE);
	STORE(page->lock, 0xffffffff);
	STORE(page->index, 77);
	STORE(page->offset, 1ULL << 62);
	ASSERT_EQ(ioctl(fd, PMUK_EXPORT_DISABLE), 0);
	ASSERT_EQ(ioctl(fd, PMUK_EXPORT_READ, &final), 0);
	EXPECT_EQ(LOAD(page->lock) % 2, 0);
	EXPECT_EQ(read_page(page, &value), 0);
	EXPECT_EQ(value.count, final.count);
	EXPECT_LT(final.count, 1ULL << 62);
	unmap_pages(page, 1);
	close(fd);
}

TEST_HARNESS_MAIN
