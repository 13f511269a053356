// SPDX-License-Identifier: GPL-2.0
/*
 * The tests read the buffers of a context of /dev/pmuk_live through /dev/pmuk, as a tool that
 * records does: by the context's name, until the context is closed.
 */
#include <poll.h>

#include "export.h"
#include "live.h"
#include "rights.h"
#include "harness.h"
#include "../../../../include/uapi/linux/pmu_kapi.h"

#define DEVICE		"/dev/pmuk"
#define NAME		"pmuk_live"
#define FIELDS		(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |	\
			 PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)
#define PERIOD		NSEC_PER_MSEC

struct sample {
	struct perf_event_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, res;
	uint64_t period, cookie;
};

struct lost {
	struct perf_event_header header;
	uint64_t id, lost;
};

static int device_open(void)
{
	return open(DEVICE, O_RDWR | O_CLOEXEC);
}

/* Takes a buffer for a file. Returns 0 or errno. */
static int device_take(int fd, const char *name, uint32_t cpu)
{
	struct pmuk_dev_buffer req = { .cpu = cpu };

	strncpy(req.name, name, sizeof(req.name) - 1);
	return errno_of(ioctl(fd, PMUK_BUFFER_OPEN, &req));
}

/* Opens a buffer of the live context. Returns the descriptor, or -1. */
static int device_make(uint32_t cpu)
{
	int fd = device_open();

	return fd >= 0 && !device_take(fd, NAME, cpu) ? fd : -1;
}

/* Returns 0 or errno. */
static int device_event(int fd, uint32_t index, struct pmuk_dev_event *event)
{
	memset(event, 0xff, sizeof(*event));
	event->index = index;
	return errno_of(ioctl(fd, PMUK_BUFFER_EVENT, event));
}

static struct pmuk_dev_stat device_stat(int fd)
{
	struct pmuk_dev_stat stat;

	if (ioctl(fd, PMUK_BUFFER_STAT, &stat))
		memset(&stat, 0xff, sizeof(stat));
	return stat;
}

/* Polls for at most PATIENCE. Returns the events. */
static int device_poll(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	poll(&p, 1, PATIENCE / NSEC_PER_MSEC);
	return p.revents;
}

/* Starts a context whose buffers have one page. Returns the descriptor, or -1. */
static int live_make(uint32_t flags)
{
	struct pmuk_live_attr attr = live_clock(PERIOD);
	int fd = live_open();

	attr.flags = flags;
	return fd >= 0 && !live_create(fd, attr) ? fd : -1;
}

/* Holds a map of a buffer, and what its records were. */
struct reader {
	struct perf_event_mmap_page *page;	/* NULL: no map */
	uint8_t *data;
	size_t size;
	uint32_t cpu;
	uint64_t ids[PMUK_LIVE_SETS];
	uint64_t samples[PMUK_LIVE_SETS], told;
	bool bad;
};

/* Maps @pages data pages; the context has created 1. */
static bool reader_map(struct reader *r, int fd, size_t pages)
{
	void *at;

	r->size = (1 + pages) * getpagesize();
	at = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return false;
	r->page = at;
	r->data = at + getpagesize();
	return true;
}

static void reader_unmap(struct reader *r)
{
	if (r->page)
		munmap(r->page, r->size);
	r->page = NULL;
}

static bool reader_begin(struct reader *r, int fd, uint32_t cpu)
{
	struct pmuk_dev_event event;
	int i;

	r->cpu = cpu;
	for (i = 0; i < PMUK_LIVE_SETS; i++) {
		if (device_event(fd, i, &event))
			return false;
		r->ids[i] = event.id;
	}
	return reader_map(r, fd, 1);
}

static void reader_copy(const struct reader *r, void *to, uint64_t from, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		((uint8_t *)to)[i] = r->data[(from + i) % r->page->data_size];
}

static bool reader_take(struct reader *r, const struct sample *s)
{
	int i;

	for (i = 0; i < PMUK_LIVE_SETS; i++) {
		if (s->id != r->ids[i])
			continue;
		r->samples[i]++;
		return s->header.size == sizeof(*s) && s->time && s->cpu == r->cpu &&
		       s->period == PERIOD && !s->cookie;
	}
	return false;
}

/* Returns whether the record is as expected. */
static bool reader_look(struct reader *r, const void *rec)
{
	const struct perf_event_header *header = rec;
	const struct lost *lost = rec;

	if (header->type == PERF_RECORD_SAMPLE)
		return reader_take(r, rec);
	r->told += lost->lost;
	return header->type == PERF_RECORD_LOST && header->size == sizeof(*lost) && lost->lost;
}

/* Reads all new records. Returns whether each is as expected. */
static bool reader_read(struct reader *r)
{
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = r->page->data_tail;
	struct sample rec;

	for (; tail != head && !r->bad; tail += rec.header.size) {
		reader_copy(r, &rec, tail, sizeof(rec.header));
		r->bad = rec.header.size > sizeof(rec) || rec.header.size < sizeof(rec.header) ||
			 rec.header.size > head - tail;
		if (r->bad)
			break;
		reader_copy(r, &rec, tail, rec.header.size);
		r->bad = !reader_look(r, &rec);
	}
	__atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
	return !r->bad;
}

/* Returns whether both sets have had a sample, or a record is bad. */
static bool reader_has_both(struct reader *r)
{
	return !reader_read(r) || (r->samples[0] && r->samples[1]);
}

/* ---- a context that exports its buffers ---- */

FIXTURE(device) {
	int live, fd, buffers;
	struct reader r;
};

FIXTURE_SETUP(device)
{
	self->buffers = nr_buffers();
	ASSERT_GE(self->buffers, 0);
	self->live = live_make(EXPORT);
	ASSERT_GE(self->live, 0);
	self->fd = device_make(0);
	ASSERT_GE(self->fd, 0);
}

/* No buffer is left when the context is closed and no file is open. */
FIXTURE_TEARDOWN(device)
{
	write_file("/sys/devices/system/cpu/cpu1/online", "1");
	reader_unmap(&self->r);
	close(self->live);
	close(self->fd);
	EXPECT_EQ(nr_buffers(), self->buffers);
}

TEST_F(device, finds_by_name)
{
	int fd = device_open();

	ASSERT_GE(fd, 0);
	EXPECT_EQ(device_take(fd, "pmuk_liv", 0), ENOENT);
	EXPECT_EQ(device_take(fd, "pmuk_live2", 0), ENOENT);
	EXPECT_EQ(device_take(fd, "", 0), ENOENT);
	EXPECT_EQ(device_take(fd, NAME, 1 << 20), ENODEV);
	EXPECT_EQ(device_take(fd, NAME, UINT32_MAX), ENODEV);
	close(fd);
}

TEST_F(device, takes_no_bad_argument)
{
	struct pmuk_dev_buffer req = { .name = NAME, .flags = 1 };
	int fd = device_open();

	ASSERT_GE(fd, 0);
	EXPECT_EQ(errno_of(ioctl(fd, PMUK_BUFFER_OPEN, &req)), EINVAL);
	req.flags = 0;
	memset(req.name, 'x', sizeof(req.name));
	EXPECT_EQ(errno_of(ioctl(fd, PMUK_BUFFER_OPEN, &req)), EINVAL);
	EXPECT_EQ(errno_of(ioctl(fd, PMUK_BUFFER_OPEN, NULL)), EFAULT);
	EXPECT_EQ(errno_of(ioctl(self->fd, PMUK_BUFFER_EVENT, NULL)), EFAULT);
	EXPECT_EQ(errno_of(ioctl(self->fd, PMUK_BUFFER_STAT, NULL)), EFAULT);
	EXPECT_EQ(errno_of(ioctl(self->fd, _IO('p', 0xdf))), ENOTTY);
	close(fd);
}

TEST_F(device, has_nothing_before_its_buffer)
{
	struct pmuk_dev_event event;
	struct pmuk_dev_stat stat;
	int fd = device_open();

	ASSERT_GE(fd, 0);
	EXPECT_EQ(device_event(fd, 0, &event), ENODEV);
	EXPECT_EQ(errno_of(ioctl(fd, PMUK_BUFFER_STAT, &stat)), ENODEV);
	EXPECT_EQ(errno_of(mmap(NULL, 2 * getpagesize(), PROT_READ, MAP_SHARED, fd, 0)), ENODEV);
	EXPECT_EQ(device_poll(fd, POLLIN), POLLERR);
	close(fd);
}

/* A file has one buffer, and a buffer has one file. */
TEST_F(device, has_one_reader)
{
	int fd = device_open();

	ASSERT_GE(fd, 0);
	EXPECT_EQ(device_take(fd, NAME, 0), EBUSY);
	EXPECT_EQ(device_take(self->fd, NAME, 0), EBUSY);
	if (nr_cpus() > 1) {
		EXPECT_EQ(device_take(self->fd, NAME, 1), EBUSY);
		EXPECT_EQ(device_take(fd, NAME, 1), 0);
		EXPECT_EQ(device_take(fd, NAME, 0), EBUSY);
		close(fd);
		fd = device_open();
	}
	close(self->fd);
	EXPECT_EQ(device_take(fd, NAME, 0), 0);
	self->fd = fd;
}

TEST_F(device, describes_each_counter)
{
	struct pmuk_dev_event event, other;
	int set, fd = -1;

	if (nr_cpus() > 1)
		fd = device_make(1);
	for (set = 0; set < PMUK_LIVE_SETS; set++) {
		ASSERT_EQ(device_event(self->fd, set, &event), 0);
		EXPECT_EQ(event.set, set);
		EXPECT_EQ(event.num, 0);
		EXPECT_EQ(event.pad, 0);
		EXPECT_NE(event.id, 0);
		EXPECT_GE(event.attr.size, PERF_ATTR_SIZE_VER7);
		EXPECT_EQ(event.attr.type, PERF_TYPE_SOFTWARE);
		EXPECT_EQ(event.attr.config, PERF_COUNT_SW_CPU_CLOCK);
		EXPECT_EQ(event.attr.sample_type, FIELDS);
		EXPECT_EQ(event.attr.sample_period, PERIOD);
		EXPECT_EQ(event.attr.read_format, 0);
		EXPECT_EQ((int)event.attr.sample_id_all, 0);
		EXPECT_EQ(event.attr_space[PMUK_DEV_ATTR_LEN / 8 - 1], 0);
		ASSERT_EQ(device_event(self->fd, !set, &other), 0);
		EXPECT_NE(event.id, other.id);
		if (fd >= 0) {
			ASSERT_EQ(device_event(fd, set, &other), 0);
			EXPECT_NE(event.id, other.id);
		}
	}
	EXPECT_EQ(device_event(self->fd, PMUK_LIVE_SETS, &event), ENOENT);
	EXPECT_EQ(device_event(self->fd, UINT32_MAX, &event), ENOENT);
	close(fd);
}

/* poll(2) returns when there are records, and each has a known id. */
TEST_F(device, gets_records)
{
	struct reader *r = &self->r;

	ASSERT_TRUE(reader_begin(r, self->fd, 0));
	EXPECT_EQ(device_poll(self->fd, POLLIN), POLLIN);
	EXPECT_TRUE(comes(reader_has_both(r)));
	EXPECT_FALSE(r->bad);
	EXPECT_EQ(device_poll(self->fd, POLLIN), POLLIN);
	EXPECT_GT(device_stat(self->fd).head, 0);
}

/* The numbers of lost records are those of PERF_RECORD_LOST. */
TEST_F(device, is_told_of_loss)
{
	struct reader *r = &self->r;

	ASSERT_TRUE(reader_begin(r, self->fd, 0));
	ASSERT_TRUE(comes(device_stat(self->fd).lost >= 10));
	ASSERT_TRUE(comes(!reader_read(r) || r->told >= 10));
	EXPECT_FALSE(r->bad);
	ASSERT_EQ(ioctl(self->live, PMUK_LIVE_STOP), 0);
	EXPECT_TRUE(reader_read(r));
	EXPECT_LE(r->told, device_stat(self->fd).lost);
}

/* Without a map, records are discarded. The next map may have another size. */
TEST_F(device, discards_without_a_map)
{
	struct reader *r = &self->r;
	uint64_t discarded;

	ASSERT_TRUE(reader_begin(r, self->fd, 0));
	reader_unmap(r);
	discarded = device_stat(self->fd).discarded;
	EXPECT_TRUE(comes(device_stat(self->fd).discarded > discarded));
	ASSERT_TRUE(reader_map(r, self->fd, 4));
	EXPECT_EQ(r->page->data_size, 4 * getpagesize());
	EXPECT_TRUE(comes(reader_has_both(r)));
	EXPECT_FALSE(r->bad);
}

/* The counters of a CPU that comes back have the ids that they have had. */
TEST_F(device, ids_stay)
{
	const char *online = "/sys/devices/system/cpu/cpu1/online";
	struct pmuk_dev_event event;
	struct reader *r = &self->r;
	int fd, i;

	if (nr_cpus() < 2)
		SKIP(return, "no CPU can go offline");
	fd = device_make(1);
	ASSERT_GE(fd, 0);
	ASSERT_TRUE(reader_begin(r, fd, 1));
	EXPECT_TRUE(comes(reader_has_both(r)));
	ASSERT_EQ(write_file(online, "0"), 0);
	EXPECT_TRUE(reader_read(r));
	for (i = 0; i < PMUK_LIVE_SETS; i++) {
		EXPECT_EQ(device_event(fd, i, &event), 0);
		EXPECT_EQ(event.id, r->ids[i]);
		r->samples[i] = 0;
	}
	ASSERT_EQ(write_file(online, "1"), 0);
	EXPECT_TRUE(comes(reader_has_both(r)));
	EXPECT_FALSE(r->bad);
	close(fd);	/* the map holds the file, and is unmapped later */
}

/* ---- the end of the context ---- */

/* Closes the context after a while. Returns the child that does, or -1. */
static int close_later(int live, unsigned int how)
{
	int pid = fork();

	if (pid)
		return pid;
	usleep(200000);
	_exit(ioctl(live, how) ? 1 : 0);
}

static bool ends_well(int pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && !status;
}

FIXTURE(end) {
	int live, fd, buffers;
	struct reader r;
};

FIXTURE_VARIANT(end) {
	unsigned int close;
};

FIXTURE_VARIANT_ADD(end, at_once) {
	.close = PMUK_LIVE_CLOSE,
};

FIXTURE_VARIANT_ADD(end, deferred) {
	.close = PMUK_LIVE_CLOSE_LATER,
};

FIXTURE_SETUP(end)
{
	self->buffers = nr_buffers();
	ASSERT_GE(self->buffers, 0);
	self->live = live_make(EXPORT);
	ASSERT_GE(self->live, 0);
	self->fd = device_make(0);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(end)
{
	reader_unmap(&self->r);
	close(self->live);
	close(self->fd);
	EXPECT_TRUE(comes(nr_buffers() == self->buffers));
}

/* The close of the context wakes a process that polls, and leaves the records readable. */
TEST_F(end, wakes_who_polls)
{
	struct pmuk_dev_event event;
	struct pmuk_dev_stat stat;
	struct reader *r = &self->r;
	uint64_t begin;
	int pid, fd;

	ASSERT_TRUE(reader_begin(r, self->fd, 0));
	begin = now_ns();
	pid = close_later(self->live, variant->close);
	ASSERT_GT(pid, 0);
	EXPECT_EQ(device_poll(self->fd, 0), POLLHUP);
	/* A process that nobody wakes finds that out when its time is over. */
	EXPECT_LT(now_ns() - begin, PATIENCE / 2);
	EXPECT_TRUE(ends_well(pid));
	EXPECT_TRUE(comes(device_event(self->fd, 0, &event) == ENODEV));
	stat = device_stat(self->fd);
	EXPECT_EQ(r->page->data_head, stat.head);
	EXPECT_TRUE(reader_read(r));
	EXPECT_GT(r->samples[0] + r->samples[1], 0);
	usleep(20000);
	EXPECT_EQ(device_stat(self->fd).head, stat.head);
	EXPECT_TRUE(device_poll(self->fd, POLLIN) & POLLHUP);
	fd = device_open();
	EXPECT_EQ(device_take(fd, NAME, 0), ENOENT);
	EXPECT_EQ(device_take(self->fd, NAME, 0), EBUSY);
	close(fd);
}

/* A buffer that nobody has mapped before the close can be mapped, and is not written any more. */
TEST_F(end, may_be_mapped_later)
{
	struct reader *r = &self->r;

	ASSERT_TRUE(reader_begin(r, self->fd, 0));
	reader_unmap(r);
	ASSERT_EQ(ioctl(self->live, variant->close), 0);
	EXPECT_EQ(device_poll(self->fd, 0), POLLHUP);
	ASSERT_TRUE(reader_map(r, self->fd, 1));
	usleep(20000);
	EXPECT_EQ(r->page->data_head, 0);
	EXPECT_EQ(device_stat(self->fd).head, 0);
}

/* The file and its map may outlive the context and the descriptor. */
TEST_F(end, map_outlives_all)
{
	struct reader *r = &self->r;

	ASSERT_TRUE(reader_begin(r, self->fd, 0));
	EXPECT_TRUE(comes(reader_has_both(r)));
	ASSERT_EQ(ioctl(self->live, variant->close), 0);
	EXPECT_EQ(device_poll(self->fd, 0), POLLHUP);
	close(self->fd);
	self->fd = -1;
	EXPECT_TRUE(reader_read(r));
	EXPECT_TRUE(comes(nr_buffers() == self->buffers + 1));
	reader_unmap(r);
}

/* ---- other contexts ---- */

/* A context that does not export its buffers is not found. */
TEST(shows_exported_contexts_only)
{
	int live = live_make(0), fd = device_open();

	ASSERT_GE(live, 0);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(device_take(fd, NAME, 0), ENOENT);
	close(live);
	close(fd);
}

/* A second context of one name is refused, until the first is closed. */
TEST(finds_one_of_a_name)
{
	int old = live_make(EXPORT), new = live_open(), fd = device_make(0);
	struct pmuk_live_attr attr = live_clock(PERIOD);
	struct pmuk_dev_event first, second;

	ASSERT_GE(old, 0);
	ASSERT_GE(new, 0);
	ASSERT_GE(fd, 0);
	attr.flags = EXPORT;
	EXPECT_EQ(errno_of(live_create(new, attr)), EEXIST);
	EXPECT_EQ(device_event(fd, 0, &first), 0);
	close(old);
	close(fd);
	EXPECT_EQ(live_create(new, attr), 0);
	fd = device_make(0);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(device_event(fd, 0, &second), 0);
	EXPECT_NE(first.id, second.id);
	close(fd);
	close(new);
}

/* While a file is open, the module cannot be unloaded. */
TEST(file_holds_the_module)
{
	const char *users = "/sys/module/pmu_kapi/refcnt";
	uint64_t before = number_in_file(users);
	int fd;

	if (before == UINT64_MAX)
		SKIP(return, "pmuk is no module");
	fd = device_open();
	ASSERT_GE(fd, 0);
	EXPECT_EQ(number_in_file(users), before + 1);
	close(fd);
}

/* ---- who may open; these tests are processes of their own, and give up what they are ---- */

TEST(nobody_may_not)
{
	ASSERT_EQ(be_nobody(0), 0);
	EXPECT_EQ(errno_of_open(DEVICE, O_RDWR), EACCES);
}

TEST(root_without_capabilities_may_not)
{
	ASSERT_EQ(drop(BIT(CAP_PERFMON) | BIT(CAP_SYS_ADMIN)), 0);
	EXPECT_EQ(errno_of_open(DEVICE, O_RDWR), EACCES);
	EXPECT_EQ(errno_of_open(DEVICE, O_RDONLY), EACCES);
}

/* Each of the two capabilities is sufficient. */
TEST(perfmon_may)
{
	ASSERT_EQ(drop(BIT(CAP_SYS_ADMIN)), 0);
	EXPECT_EQ(errno_of_open(DEVICE, O_RDWR), 0);
}

TEST(nobody_with_perfmon_may)
{
	ASSERT_EQ(be_nobody(BIT(CAP_PERFMON)), 0);
	EXPECT_EQ(errno_of_open(DEVICE, O_RDWR), 0);
}

TEST(sys_admin_may)
{
	ASSERT_EQ(drop(BIT(CAP_PERFMON)), 0);
	EXPECT_EQ(errno_of_open(DEVICE, O_RDWR), 0);
}

TEST_HARNESS_MAIN
