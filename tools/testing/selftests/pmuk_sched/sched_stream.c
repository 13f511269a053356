// SPDX-License-Identifier: GPL-2.0
/*
 * The tests read /dev/pmuk_sched. Each switch of a CPU is a record, or is reported as lost, and the
 * records add up to the numbers in the text files. Readers may be slow, may be killed, or may
 * request invalid streams.
 */
#include <sys/epoll.h>

#include "sched_calls.h"
#include "sched_cgroup.h"
#include "sched_device.h"

#define RECORD		sizeof(struct pmuk_sched_switch)

/* Copies @size bytes from position @pos. They may wrap at the end of the ring. */
static void stream_copy(const struct stream *s, uint64_t pos, void *to, size_t size)
{
	uint64_t at = pos % s->size, first = size < s->size - at ? size : s->size - at;

	memcpy(to, s->data + at, first);
	memcpy((char *)to + first, s->data, size - first);
}

/* Reads the header at @pos. Returns false if it cannot be valid. */
static bool stream_header(const struct stream *s, uint64_t pos, struct perf_event_header *header)
{
	stream_copy(s, pos, header, sizeof(*header));
	return header->size >= sizeof(*header) && header->size <= s->size;
}

/* Returns whether record @rec can follow record @last. */
static bool follows(const struct pmuk_sched_switch *last, const struct pmuk_sched_switch *rec)
{
	return rec->prev_pid == last->next_pid && rec->time >= last->time &&
	       (rec->run == UINT32_MAX || rec->time - last->time == rec->run);
}

static void see_switch(struct seen *seen, const struct pmuk_sched_switch *rec)
{
	const uint64_t counts[2] = { rec->counts[0], rec->counts[1] };

	if (seen->switches && !seen->gap && !follows(&seen->last, rec))
		seen->breaks++;
	seen->gap = false;
	see_slice(seen, rec->prev_pid, rec->header.misc, rec->run, rec->wait, counts);
	seen->last = *rec;
}

/* Takes the record at @pos into account. Returns its size, or 0 if it is invalid. */
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

FIXTURE(stream)
{
	struct streaming r;
};

FIXTURE_SETUP(stream)
{
	ASSERT_TRUE(streaming_begin(&self->r, PMUK_SCHED_DROP));
}

FIXTURE_TEARDOWN(stream)
{
	EXPECT_EQ(set_parameter("stream_mb", "256"), 0);
	EXPECT_TRUE(streaming_end(&self->r));
}

static void expect_all(struct __test_metadata *_metadata, const struct streaming *r)
{
	EXPECT_EQ(r->seen.switches + r->stat.lost + r->stat.discarded, r->stat.switches);
}

/* ---- what can be asked for ---- */

TEST_F(stream, bad_requests_are_refused)
{
	struct pmuk_sched_stat stat;
	int fd = open_device(), other = open_device();

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

/* All streams together have at most stream_mb, even if more memory is free. */
TEST_F(stream, all_streams_are_limited)
{
	struct streaming *r = &self->r;
	int first = open_device(), second = open_device();

	ASSERT_TRUE(first >= 0 && second >= 0);
	EXPECT_EQ(errno_of(bind_stream(first, 0, pages_of(128 * MIB), PMUK_SCHED_DROP, 0)), EINVAL);
	ASSERT_EQ(set_parameter("stream_mb", "2"), 0);
	EXPECT_EQ(errno_of(bind_stream(first, 0, pages_of(4 * MIB), PMUK_SCHED_DROP, 0)), ENOBUFS);
	EXPECT_EQ(bind_stream(first, 0, pages_of(MIB), PMUK_SCHED_DROP, 0), 0);
	EXPECT_EQ(errno_of(bind_stream(second, r->cpu, pages_of(2 * MIB), PMUK_SCHED_RAW,
				       0)), ENOBUFS);
	EXPECT_EQ(errno_of(bind_stream(second, 0, pages_of(2 * MIB), PMUK_SCHED_DROP, 0)), EBUSY);
	EXPECT_EQ(bind_stream(second, r->cpu, pages_of(MIB), PMUK_SCHED_RAW, 0), 0);
	close(first);
	first = open_device();
	EXPECT_EQ(bind_stream(first, 0, pages_of(MIB), PMUK_SCHED_OVERWRITE, 0), 0);
	close(first);
	close(second);
}

FIXTURE(memory)
{
	char root[32];
	char group[512];
	bool had_memory;	/* other services use memory cgroups */
};

/* Returns the number of bytes that are charged to a cgroup. */
static uint64_t charged(const char *dir)
{
	char path[512];
	uint64_t bytes = UINT64_MAX;

	if (path_in(dir, "memory.current", path))
		bytes = number_in_file(path);
	return bytes == UINT64_MAX ? 0 : bytes;
}

FIXTURE_SETUP(memory)
{
	char path[512];

	ASSERT_EQ(cgroups_mount(self->root), 0);
	ASSERT_EQ(make_below(self->root, "stream", self->group), 0);
	ASSERT_TRUE(path_in(self->root, "cgroup.subtree_control", path));
	self->had_memory = file_has(path, "memory");
	write_in(self->root, "cgroup.subtree_control", "+memory");
	ASSERT_EQ(write_in(self->group, "cgroup.procs", "0"), 0);
}

FIXTURE_TEARDOWN(memory)
{
	write_in(self->root, "cgroup.procs", "0");
	EXPECT_TRUE(comes(!rmdir(self->group)));
	if (!self->had_memory)
		write_in(self->root, "cgroup.subtree_control", "-memory");
	cgroups_unmount(self->root);
}

static const struct {
	unsigned int mode;
	const char *name;
} modes[] = {
	{ PMUK_SCHED_DROP, "drop" },
	{ PMUK_SCHED_OVERWRITE, "overwrite" },
	{ PMUK_SCHED_RAW, "raw" },
};

/* A stream's memory is charged to the memory cgroup of its creator, until the stream ends. */
TEST_F(memory, stream_is_charged_to_who_asks)
{
	uint64_t before, with;
	unsigned int i;
	int fd;

	if (!charged(self->group) && write_in(self->group, "memory.max", "max"))
		SKIP(return, "needs MEMCG");
	for (i = 0; i < 3; i++) {
		fd = open_device();
		before = charged(self->group);
		ASSERT_EQ(bind_stream(fd, 0, pages_of(32 * MIB), modes[i].mode, 0), 0);
		with = charged(self->group);
		EXPECT_GE(with, before + 31 * MIB)
			TH_LOG("%s: %lu bytes more", modes[i].name, (unsigned long)(with - before));
		close(fd);
		EXPECT_TRUE(comes(charged(self->group) < before + MIB));
	}
}

/* A request beyond the memory limit of a cgroup fails, and no task in the cgroup is killed. */
TEST_F(memory, stream_obeys_the_limit)
{
	unsigned int i;
	int fd;

	if (write_in(self->group, "memory.max", "8M"))
		SKIP(return, "needs MEMCG");
	for (i = 0; i < 3; i++) {
		fd = open_device();
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

/* Traces @event of this process from now on. */
static int trace_begin(const char *event)
{
	rmdir(TRACING);		/* left by an aborted run */
	return mkdir(TRACING, 0700) || write_in(TRACING, "set_event_pid", "%d", getpid()) ||
	       write_in(TRACING, event, "1") ? -1 : 0;
}

static int trace_end(const char *event)
{
	write_in(TRACING, event, "0");
	return rmdir(TRACING);
}

/* Returns how often @what is in the trace. */
static int times_told(const char *what)
{
	char *text __freed = slurp(TRACING "/trace"), *at = text;
	int times = 0;

	for (; at && (at = strstr(at, what)); at++)
		times++;
	return times;
}

#define PAGE_ALLOC	"events/kmem/mm_page_alloc/enable"

/*
 * All pages of a stream are allocated with __GFP_ACCOUNT. The trace shows this even in kernels
 * without memory cgroups.
 */
TEST_F(stream, pages_are_asked_for_as_the_users)
{
	struct streaming *r = &self->r;
	unsigned int i;
	int fd;

	for (i = 0; i < 3; i++) {
		fd = open_device();
		ASSERT_EQ(trace_begin(PAGE_ALLOC), 0);
		EXPECT_EQ(bind_stream(fd, r->cpu, 16, modes[i].mode, 0), 0);
		EXPECT_GE(times_told("gfp_flags=GFP_KERNEL_ACCOUNT|"), 1 + 16)
			TH_LOG("%s", modes[i].name);
		EXPECT_EQ(trace_end(PAGE_ALLOC), 0);
		close(fd);
	}
}

/* Returns the node of the module's latest kmalloc(), or -2 if there was none. */
static int node_asked_for(void)
{
	char *text __freed = slurp(TRACING "/trace"), *at = text, *node;
	int asked = -2;

	while (at && (at = strstr(at, "call_site=pmuk_sched_"))) {
		node = strstr(at, " node=");
		asked = node ? atoi(node + strlen(" node=")) : -2;
		at++;
	}
	return asked;
}

#define KMALLOC		"events/kmem/kmalloc/enable"

/* Records are written to memory of the CPU's own node, no matter on which node the creator runs. */
TEST_F(stream, sink_is_near_its_cpu)
{
	struct streaming *r = &self->r;
	int fd, near = node_of(r->cpu);

	if (near < 0 || node_of(0) == near)
		SKIP(return, "needs CPUs of two nodes");
	fd = open_device();
	ASSERT_EQ(trace_begin(KMALLOC), 0);
	EXPECT_EQ(bind_stream(fd, r->cpu, 1, PMUK_SCHED_RAW, 0), 0);
	EXPECT_EQ(node_asked_for(), near);
	EXPECT_EQ(trace_end(KMALLOC), 0);
	close(fd);
}

/* ---- all of it ---- */

/* Each record continues the one before. */
TEST_F(stream, records_are_the_totals)
{
	expect_totals(_metadata, &self->r, 2);
	EXPECT_EQ(self->r.seen.breaks, 0);
	EXPECT_EQ(self->r.seen.others, 0);
}

/* The reader is woken after the watermark. After it has read all records, it can sleep again. */
TEST_F(stream, reader_is_woken)
{
	struct streaming *r = &self->r;
	struct stream *s = &r->s;
	int i;

	ASSERT_TRUE(stream_open(s, r->cpu, 16, PMUK_SCHED_DROP, 20 * RECORD));
	for (i = 0; i < 5; i++) {
		ASSERT_TRUE(worker_order(&r->w, ORDER_NAP, 60, 0));
		EXPECT_TRUE(wakes(s->fd, PATIENCE));
		EXPECT_TRUE(i || stream_head(s) >= 20 * RECORD);
		ASSERT_EQ(worker_done(&r->w), 0);
		EXPECT_TRUE(comes(see_everything(r) && !wakes(s->fd, 0)));
	}
	EXPECT_EQ(r->seen.switches, r->stat.switches);
}

/* A process that polls a file before it has a stream is woken by the stream. */
TEST_F(stream, waiting_before_it_begins)
{
	struct streaming *r = &self->r;
	int fd = open_device(), epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN };

	ASSERT_TRUE(fd >= 0 && epoll >= 0);
	EXPECT_FALSE(wakes(fd, 0));
	ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	EXPECT_EQ(epoll_wait(epoll, &event, 1, 0), 0);
	ASSERT_EQ(bind_stream(fd, r->cpu, 16, PMUK_SCHED_OVERWRITE, 20 * RECORD), 0);
	ASSERT_TRUE(worker_order(&r->w, ORDER_NAP, 60, 0));
	EXPECT_EQ(epoll_wait(epoll, &event, 1, 10000), 1);
	EXPECT_EQ(event.events, EPOLLIN);
	ASSERT_EQ(worker_done(&r->w), 0);
	close(epoll);
	close(fd);
}

/* ---- readers that do not keep up ---- */

/* The test does not read. The oldest records stay, and later ones are counted as lost. */
TEST_F(stream, slow_reader_is_told_what_it_lost)
{
	struct streaming *r = &self->r;
	struct stream *s = &r->s;

	ASSERT_TRUE(stream_open(s, r->cpu, 1, PMUK_SCHED_DROP, 0));
	ASSERT_TRUE(work(&r->w, 300));
	ASSERT_TRUE(see_everything(r));
	EXPECT_GT(r->stat.lost, 0);
	EXPECT_GE(r->stat.switches, 300);
	expect_all(_metadata, r);
	EXPECT_EQ(r->seen.breaks, 0);
	/* The next records report the number of lost records. */
	ASSERT_TRUE(work(&r->w, 10));
	ASSERT_TRUE(see_everything(r));
	EXPECT_EQ(r->seen.lost, r->stat.lost);
	expect_all(_metadata, r);
}

/*
 * The test reads now and then, while there are switches. At any time, read and lost switches add up
 * to all switches.
 */
TEST_F(stream, seen_and_lost_are_all)
{
	struct streaming *r = &self->r;
	struct stream *s = &r->s;
	int i;

	ASSERT_TRUE(stream_open(s, r->cpu, 1, PMUK_SCHED_DROP, 0));
	for (i = 0; i < 50; i++) {
		ASSERT_TRUE(worker_order(&r->v, ORDER_YIELD, 20 * (i % 8), 0) &&
			    worker_order(&r->w, ORDER_YIELD, 20 * (i % 8), 0));
		ASSERT_TRUE(see_everything(r));
		expect_all(_metadata, r);
		ASSERT_EQ(worker_done(&r->w) | worker_done(&r->v), 0);
	}
	EXPECT_EQ(r->seen.others, 0);
	EXPECT_GT(r->seen.switches, 100);
}

/* The last map takes the ring with it. The next map begins with an empty ring. */
TEST_F(stream, switches_without_a_map_are_discarded)
{
	struct streaming *r = &self->r;
	struct stream *s = &r->s;

	ASSERT_TRUE(stream_open(s, r->cpu, 16, PMUK_SCHED_DROP, 0));
	stream_unmap(s);
	ASSERT_EQ(worker_do(&r->w, ORDER_NAP, 10, 0), 0);
	ASSERT_TRUE(stream_stat(r));
	EXPECT_EQ(r->stat.lost, 0);
	EXPECT_GT(r->stat.discarded, 0);
	ASSERT_TRUE(stream_map(s));
	ASSERT_EQ(worker_do(&r->w, ORDER_NAP, 10, 0), 0);
	ASSERT_TRUE(see_everything(r));
	EXPECT_GT(r->seen.switches, 0);
	EXPECT_EQ(r->seen.switches * RECORD, r->stat.head);
	EXPECT_EQ(r->stat.lost, 0);
}

TEST_F(stream, killed_reader_leaves_its_cpu)
{
	expect_cpu_is_left(_metadata, &self->r);
}

TEST_F(stream, map_keeps_its_stream)
{
	expect_map_keeps(_metadata, &self->r);
}

/* ---- the latest ones ---- */

TEST_F(stream, overwriting_keeps_the_latest)
{
	struct streaming *r = &self->r;
	struct stream *s = &r->s;
	uint64_t head, pos;
	uint32_t size;

	ASSERT_TRUE(stream_open(s, r->cpu, 1, PMUK_SCHED_OVERWRITE, 0));
	ASSERT_TRUE(work(&r->w, 300));
	ASSERT_EQ(worker_add(&r->w, 42, 4242), 0);
	r->seen.pid = r->w.pid;
	/* The order returns after worker @w has left the CPU. */
	ASSERT_EQ(worker_add(&r->v, 1, 1), 0);
	ASSERT_EQ(ioctl(s->fd, PMUK_SCHED_PAUSE), 0);
	ASSERT_TRUE(stream_stat(r));
	head = stream_head(s);
	EXPECT_EQ(head, r->stat.head);
	EXPECT_EQ(head / RECORD + r->stat.lost + r->stat.discarded, r->stat.switches);
	for (pos = head - s->size / RECORD * RECORD; pos < head; pos += size) {
		size = see_one(s, &r->seen, pos);
		ASSERT_EQ(size, RECORD);
	}
	EXPECT_EQ(r->seen.breaks, 0);
	EXPECT_EQ(r->seen.t.counts[0], 42);
	EXPECT_EQ(r->seen.t.counts[1], 4242);
	ASSERT_EQ(worker_do(&r->w, ORDER_NAP, 1, 0), 0);
	EXPECT_EQ(stream_head(s), head);
	ASSERT_EQ(ioctl(s->fd, PMUK_SCHED_RESUME), 0);
	ASSERT_EQ(worker_do(&r->w, ORDER_NAP, 1, 0), 0);
	EXPECT_TRUE(comes(stream_head(s) > head));
	ASSERT_TRUE(stream_stat(r));
	EXPECT_EQ(r->stat.head / RECORD + r->stat.lost + r->stat.discarded,
		  r->stat.switches);
	EXPECT_GT(r->stat.discarded, 0);
}

#define PAUSES	20

/*
 * A recorder pauses the rings of all CPUs one after the other, and they are to end together. So
 * each pause is a call to the CPU, and does not wait for a grace period.
 */
TEST_F(stream, pause_calls_its_cpu)
{
	struct streaming *r = &self->r;
	struct stream *s = &r->s;
	uint64_t calls;
	int i;

	if (nr_cpus() < 2)
		SKIP(return, "there is no other CPU to be asked");
	ASSERT_TRUE(stream_open(s, r->cpu, 1, PMUK_SCHED_OVERWRITE, 0));
	ASSERT_EQ(stay_on(!r->cpu), 0);
	if (!calls_begin())
		SKIP(return, "calls between CPUs are not told");
	for (i = 0; i < PAUSES; i++)
		EXPECT_EQ(ioctl(s->fd, PMUK_SCHED_PAUSE), 0);
	calls = calls_on(r->cpu);
	calls_end();
	EXPECT_GE(calls, PAUSES);
	EXPECT_LE(calls, 2 * PAUSES);
}

/* ---- what happens meanwhile ---- */

TEST_F(stream, stream_survives_off_and_on)
{
	struct streaming *r = &self->r;
	struct stream *s = &r->s;

	ASSERT_TRUE(stream_open(s, r->cpu, 16, PMUK_SCHED_DROP, 0));
	ASSERT_EQ(worker_do(&r->w, ORDER_NAP, 2, 0), 0);
	ASSERT_EQ(set_parameter("enabled", "0"), 0);
	ASSERT_TRUE(see_everything(r));
	EXPECT_GT(r->seen.switches, 0);
	ASSERT_EQ(worker_do(&r->w, ORDER_NAP, 2, 0), 0);
	r->seen.switches = 0;
	ASSERT_TRUE(see_everything(r));
	EXPECT_EQ(r->seen.switches, 0);
	ASSERT_EQ(set_parameter("enabled", "1"), 0);
	ASSERT_EQ(worker_do(&r->w, ORDER_NAP, 2, 0), 0);
	expect_added(_metadata, r);
}

TEST_F(stream, stream_survives_hotplug)
{
	expect_survives_hotplug(_metadata, &self->r);
}

TEST_F(stream, uncounted_slices_are_marked)
{
	expect_uncounted_marked(_metadata, &self->r);
}

TEST_HARNESS_MAIN
