// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/pmuk_sched: each switch of a CPU is a record, or is told as lost, and records add up to what
 * the text files say. And readers that are slow, are killed, or ask for what there is not.
 */
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

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
	EXPECT_EQ(set_parameter("stream_mb", "256"), 0);
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

	ASSERT_TRUE(fd >= 0 && other >= 0);
	EXPECT_EQ(errno_of(ioctl(fd, PMUK_SCHED_STAT, &stat)), ENODEV);
	EXPECT_EQ(errno_of(mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0)), ENODEV);
	EXPECT_EQ(errno_of(bind_stream(fd, 0, 0, PMUK_SCHED_DROP, 0)), EINVAL);
	EXPECT_EQ(errno_of(bind_stream(fd, 0, 3, PMUK_SCHED_DROP, 0)), EINVAL);
	EXPECT_EQ(errno_of(bind_stream(fd, 0, 1 << 20, PMUK_SCHED_DROP, 0)), EINVAL);
	EXPECT_EQ(errno_of(bind_stream(fd, 0, 1, 3, 0)), EINVAL);
	EXPECT_EQ(errno_of(bind_stream(fd, 4096, 1, PMUK_SCHED_DROP, 0)), ENODEV);
	EXPECT_EQ(errno_of(bind_stream(fd, UINT32_MAX, 1, PMUK_SCHED_DROP, 0)), ENODEV);
	EXPECT_EQ(errno_of(ioctl(fd, PMUK_SCHED_STREAM, NULL)), EFAULT);
	ASSERT_EQ(bind_stream(fd, 0, 1, PMUK_SCHED_DROP, 0), 0);
	EXPECT_EQ(errno_of(bind_stream(fd, 0, 1, PMUK_SCHED_DROP, 0)), EBUSY);
	EXPECT_EQ(errno_of(bind_stream(other, 0, 1, PMUK_SCHED_DROP, 0)), EBUSY);
	EXPECT_EQ(errno_of(ioctl(fd, _IO('p', 0xcf))), ENOTTY);
	EXPECT_EQ(errno_of(ioctl(fd, PMUK_SCHED_STAT, NULL)), EFAULT);
	close(fd);
	EXPECT_EQ(bind_stream(other, 0, 1, PMUK_SCHED_OVERWRITE, 0), 0);
	EXPECT_EQ(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0), MAP_FAILED);
	close(other);
}

/* ---- the memory of streams ---- */

#define MIB		(1024 * 1024UL)

static unsigned int pages_of(unsigned long bytes)
{
	return bytes / getpagesize();
}

/* Whatever has memory left, all streams together have no more than stream_mb. */
TEST_F(stream, all_streams_are_limited)
{
	int first = open(DEVICE, O_RDWR | O_CLOEXEC), second = open(DEVICE, O_RDWR | O_CLOEXEC);

	ASSERT_TRUE(first >= 0 && second >= 0);
	EXPECT_EQ(errno_of(bind_stream(first, 0, pages_of(128 * MIB), PMUK_SCHED_DROP, 0)), EINVAL);
	ASSERT_EQ(set_parameter("stream_mb", "2"), 0);
	EXPECT_EQ(errno_of(bind_stream(first, 0, pages_of(4 * MIB), PMUK_SCHED_DROP, 0)), ENOBUFS);
	EXPECT_EQ(bind_stream(first, 0, pages_of(MIB), PMUK_SCHED_DROP, 0), 0);
	EXPECT_EQ(errno_of(bind_stream(second, self->cpu, pages_of(2 * MIB), PMUK_SCHED_RAW,
				       0)), ENOBUFS);
	EXPECT_EQ(errno_of(bind_stream(second, 0, pages_of(MIB), PMUK_SCHED_DROP, 0)), EBUSY);
	EXPECT_EQ(bind_stream(second, self->cpu, pages_of(MIB), PMUK_SCHED_RAW, 0), 0);
	close(first);
	first = open(DEVICE, O_RDWR | O_CLOEXEC);
	EXPECT_EQ(bind_stream(first, 0, pages_of(MIB), PMUK_SCHED_OVERWRITE, 0), 0);
	close(first);
	close(second);
}

FIXTURE(memory)
{
	char root[32];
	char group[64];
	bool had_memory;	/* the machine's services have memory cgroups, which must stay */
};

static int write_in(const char *dir, const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return write_file(path, text);
}

static bool has_in(const char *dir, const char *file, const char *word)
{
	char path[128], text[256];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return read_file(path, text, sizeof(text)) > 0 && strstr(text, word);
}

/* Bytes that are charged to the group. */
static uint64_t charged(const char *dir)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "%s/memory.current", dir);
	return read_file(path, text, sizeof(text)) > 0 ? strtoull(text, NULL, 10) : 0;
}

FIXTURE_SETUP(memory)
{
	strcpy(self->root, "/tmp/memoryXXXXXX");
	ASSERT_NE(mkdtemp(self->root), NULL);
	ASSERT_EQ(mount("none", self->root, "cgroup2", 0, NULL), 0);
	snprintf(self->group, sizeof(self->group), "%s/stream", self->root);
	ASSERT_EQ(mkdir(self->group, 0755), 0);
	self->had_memory = has_in(self->root, "cgroup.subtree_control", "memory");
	write_in(self->root, "cgroup.subtree_control", "+memory");
	ASSERT_EQ(write_in(self->group, "cgroup.procs", "0"), 0);
}

FIXTURE_TEARDOWN(memory)
{
	write_in(self->root, "cgroup.procs", "0");
	EXPECT_TRUE(comes(!rmdir(self->group)));
	if (!self->had_memory)
		write_in(self->root, "cgroup.subtree_control", "-memory");
	umount(self->root);
	rmdir(self->root);
}

static const struct {
	unsigned int mode;
	const char *name;
} modes[] = {
	{ PMUK_SCHED_DROP, "drop" },
	{ PMUK_SCHED_OVERWRITE, "overwrite" },
	{ PMUK_SCHED_RAW, "raw" },
};

/* The memory cgroup of who asks for a stream has its memory, until the stream ends. */
TEST_F(memory, stream_is_charged_to_who_asks)
{
	uint64_t before, with;
	unsigned int i;
	int fd;

	if (!charged(self->group) && write_in(self->group, "memory.max", "max"))
		SKIP(return, "needs MEMCG");
	for (i = 0; i < 3; i++) {
		fd = open(DEVICE, O_RDWR | O_CLOEXEC);
		before = charged(self->group);
		ASSERT_EQ(bind_stream(fd, 0, pages_of(32 * MIB), modes[i].mode, 0), 0);
		with = charged(self->group);
		EXPECT_GE(with, before + 31 * MIB)
			TH_LOG("%s: %lu bytes more", modes[i].name, (unsigned long)(with - before));
		close(fd);
		EXPECT_TRUE(comes(charged(self->group) < before + MIB));
	}
}

/* A group without so much left is refused, and nobody in it is killed. */
TEST_F(memory, stream_obeys_the_limit)
{
	unsigned int i;
	int fd;

	if (write_in(self->group, "memory.max", "8M"))
		SKIP(return, "needs MEMCG");
	for (i = 0; i < 3; i++) {
		fd = open(DEVICE, O_RDWR | O_CLOEXEC);
		EXPECT_EQ(bind_stream(fd, 0, pages_of(32 * MIB), modes[i].mode, 0), -1)
			TH_LOG("%s", modes[i].name);
		EXPECT_EQ(errno, ENOMEM);
		EXPECT_EQ(bind_stream(fd, 0, pages_of(MIB), modes[i].mode, 0), 0);
		close(fd);
	}
}

#define TRACING		"/sys/kernel/tracing/instances/pmuk_stream"

static int node_of(int cpu)
{
	char path[64];
	int node;

	for (node = 0; node < 64; node++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/node%d", cpu, node);
		if (!access(path, F_OK))
			return node;
	}
	return -1;
}

/* From now on @event of this process is traced. */
static int trace_begin(const char *event)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	rmdir(TRACING);		/* of one that did not come to its end */
	return mkdir(TRACING, 0700) || write_in(TRACING, "set_event_pid", pid) ||
	       write_in(TRACING, event, "1") ? -1 : 0;
}

static int trace_end(const char *event)
{
	write_in(TRACING, event, "0");
	return rmdir(TRACING);
}

/* How many times @what was told. */
static int times_told(const char *what)
{
	char *text = slurp(TRACING "/trace"), *at = text;
	int times = 0;

	for (; at && (at = strstr(at, what)); at++)
		times++;
	free(text);
	return times;
}

#define PAGE_ALLOC	"events/kmem/mm_page_alloc/enable"

/* All pages, whatever they are for: this is seen in kernels without memory cgroups, too. */
TEST_F(stream, pages_are_asked_for_as_the_users)
{
	unsigned int i;
	int fd;

	for (i = 0; i < 3; i++) {
		fd = open(DEVICE, O_RDWR | O_CLOEXEC);
		ASSERT_EQ(trace_begin(PAGE_ALLOC), 0);
		EXPECT_EQ(bind_stream(fd, self->cpu, 64, modes[i].mode, 0), 0);
		EXPECT_GE(times_told("gfp_flags=GFP_KERNEL_ACCOUNT|"), 1 + 64)
			TH_LOG("%s", modes[i].name);
		EXPECT_EQ(trace_end(PAGE_ALLOC), 0);
		close(fd);
	}
}

/* Which node the module has asked for in its latest kmalloc(); -2: it was not told. */
static int node_asked_for(void)
{
	char *text = slurp(TRACING "/trace"), *at = text, *node;
	int asked = -2;

	while (at && (at = strstr(at, "call_site=pmuk_sched_"))) {
		node = strstr(at, " node=");
		asked = node ? atoi(node + strlen(" node=")) : -2;
		at++;
	}
	free(text);
	return asked;
}

#define KMALLOC		"events/kmem/kmalloc/enable"

/* What each switch of a CPU writes is in memory of that CPU's node, whoever asks. */
TEST_F(stream, sink_is_near_its_cpu)
{
	int fd, near = node_of(self->cpu);

	if (near < 0 || node_of(0) == near)
		SKIP(return, "needs CPUs of two nodes");
	fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	ASSERT_EQ(trace_begin(KMALLOC), 0);
	EXPECT_EQ(bind_stream(fd, self->cpu, 1, PMUK_SCHED_RAW, 0), 0);
	EXPECT_EQ(node_asked_for(), near);
	EXPECT_EQ(trace_end(KMALLOC), 0);
	close(fd);
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
		ASSERT_TRUE(worker_order(&self->w, ORDER_NAP, 60, 0));
		EXPECT_TRUE(wakes(s->fd, PATIENCE));
		EXPECT_TRUE(i || stream_head(s) >= 20 * RECORD);
		ASSERT_EQ(worker_done(&self->w), 0);
		EXPECT_TRUE(comes(see_everything(s, &self->seen, &self->stat) && !wakes(s->fd, 0)));
	}
	EXPECT_EQ(self->seen.records, self->stat.switches);
}

/* Who waits for a file before it has a stream is woken by the stream. */
TEST_F(stream, waiting_before_it_begins)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC), epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN };

	ASSERT_TRUE(fd >= 0 && epoll >= 0);
	EXPECT_FALSE(wakes(fd, 0));
	ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	EXPECT_EQ(epoll_wait(epoll, &event, 1, 0), 0);
	ASSERT_EQ(bind_stream(fd, self->cpu, 16, PMUK_SCHED_OVERWRITE, 20 * RECORD), 0);
	ASSERT_TRUE(worker_order(&self->w, ORDER_NAP, 60, 0));
	EXPECT_EQ(epoll_wait(epoll, &event, 1, 10000), 1);
	EXPECT_EQ(event.events, EPOLLIN);
	ASSERT_EQ(worker_done(&self->w), 0);
	close(epoll);
	close(fd);
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
	EXPECT_EQ(errno_of(bind_stream(fd, self->cpu, 4, PMUK_SCHED_DROP, 0)), EBUSY);
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

	if (nr_cpus() < 2 || access(CPU1_ONLINE, W_OK))
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
