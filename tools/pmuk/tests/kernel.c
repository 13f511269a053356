// SPDX-License-Identifier: GPL-2.0
/*
 * Simulates the kernel for tests of pmuk that need more than files: pmuk-test's system calls and
 * its calls of stream_read() are linked to the wrappers below.
 *
 * The devices have CPUs 0 and 1. Their rings are always ready. Each ppoll() adds a burst of
 * switches to them, and each PMUK_SCHED_STAT adds some right after its statistics are taken. While
 * a ring is closed, the other one gets a burst; while a file is mapped, exported rings get one.
 * Packets are published in parts, and before the statistics. perf's dummy event of a CPU tells once
 * that thread 200 of process 100 has begun, and how it is named: at the beginning, or right before
 * the statistics with PMUK_TEST=late-task, or with PMUK_TEST=between right before the first read of
 * a ring of switches. With PMUK_TEST=new-tasks, it tells that again and again while /proc is read.
 * Below PMUK_ROOT, a cgroup is a directory that has a cgroup's files. With PMUK_TEST=begins,
 * ppoll() adds no switches before the file "begun" exists. PMUK_TEST=eacces and other values make
 * calls fail.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/pmu_kapi.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recording.h"

#define RINGS	2
#define BURST	700		/* switches; two pages hold less */
#define AFTER	50		/* switches right after the statistics */
#define PART	1000		/* bytes of packets to publish at once */
#define MOST	67		/* the most bytes that a mark and a switch take */

int __real_open(const char *path, int flags, ...);
int __real_ppoll(struct pollfd *fds, nfds_t nr, const struct timespec *timeout,
		 const sigset_t *mask);
int __real_mkdir(const char *path, mode_t mode);
int __real_rmdir(const char *path);
int __real_ioctl(int fd, unsigned long request, ...);
DIR *__real_opendir(const char *path);
FILE *__real_fopen(const char *path, const char *mode);
void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
ssize_t __real_read(int fd, void *to, size_t size);
ssize_t __real_write(int fd, const void *from, size_t size);
int __real_close(int fd);
int __real_stat(const char *path, struct stat *s);
size_t __real_stream_read(struct stream *s, u64 end, unsigned char *to);
long __wrap_syscall(long number, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_ppoll(struct pollfd *fds, nfds_t nr, const struct timespec *timeout,
		 const sigset_t *mask);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_rmdir(const char *path);
int __wrap_ioctl(int fd, unsigned long request, ...);
DIR *__wrap_opendir(const char *path);
FILE *__wrap_fopen(const char *path, const char *mode);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
ssize_t __wrap_read(int fd, void *to, size_t size);
ssize_t __wrap_write(int fd, const void *from, size_t size);
int __wrap_close(int fd);
int __wrap_stat(const char *path, struct stat *s);
size_t __wrap_stream_read(struct stream *s, u64 end, unsigned char *to);

static struct ring {
	int fd;			/* 0: not open */
	u32 cpu, mode;
	struct perf_event_mmap_page *page;
	unsigned char *data;
	u64 size, head, pending;
	u64 published;		/* packets before this position are published */
	bool marked;		/* the packets since then have a mark */
	bool paused;
	bool exported;		/* has samples of kernel code, and no switches */
	struct pmuk_sched_stat stat;
} rings[RINGS];

static bool test_is(const char *what)
{
	const char *test = getenv("PMUK_TEST");

	return test && !strcmp(test, what);
}

static int refuse(int error)
{
	errno = error;
	return -1;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

/* ---- the device ---- */

static struct ring *ring_of(int fd)
{
	int i;

	for (i = 0; i < RINGS; i++)
		if (rings[i].fd == fd)
			return &rings[i];
	return NULL;
}

static void put_bytes(struct ring *r, const void *from, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		r->data[(r->head + i) & (r->size - 1)] = ((const unsigned char *)from)[i];
	r->head += size;
}

/* A new record overwrites whole old ones, and some more, so that the next records need not. */
static void make_room(struct ring *r, size_t size)
{
	struct perf_event_header oldest;

	while (r->head + size + r->size / 16 - r->page->data_tail > r->size) {
		memcpy(&oldest, r->data + (r->page->data_tail & (r->size - 1)), sizeof(oldest));
		r->page->data_tail += oldest.size;
	}
}

static void put(struct ring *r, const void *rec, size_t size)
{
	if (r->mode == PMUK_SCHED_OVERWRITE)
		make_room(r, size);
	put_bytes(r, rec, size);
	__atomic_store_n(&r->page->data_head, r->head, __ATOMIC_RELEASE);
}

static u64 tail(const struct ring *r)
{
	if (r->mode == PMUK_SCHED_RAW)
		return __atomic_load_n(&r->page->aux_tail, __ATOMIC_ACQUIRE);
	return __atomic_load_n(&r->page->data_tail, __ATOMIC_ACQUIRE);
}

static bool has_room(const struct ring *r, size_t size)
{
	return r->mode == PMUK_SCHED_OVERWRITE || r->head + size - tail(r) <= r->size;
}

/* ---- packets ---- */

/*
 * Publishes packets: advances the head of the area, and that of the ring as if by a record of AUX
 * data. pmuk does not read that record, so none is written.
 */
static void publish(struct ring *r)
{
	if (r->mode != PMUK_SCHED_RAW || r->published == r->head)
		return;
	r->published = r->head;
	r->marked = false;
	__atomic_store_n(&r->page->aux_head, r->head, __ATOMIC_RELEASE);
	__atomic_store_n(&r->page->data_head, r->page->data_head + 32, __ATOMIC_RELEASE);
}

static void put_number(struct ring *r, u64 number)
{
	unsigned char byte;

	do {
		byte = (number & 0x7f) | (number > 0x7f ? 0x80 : 0);
		put_bytes(r, &byte, 1);
		number >>= 7;
	} while (number);
}

static void put_mark(struct ring *r, const struct pmuk_sched_switch *s, u64 number)
{
	const unsigned char first = PMUK_SCHED_RAW_MARK;
	const u64 time = s->time - s->run;

	put_bytes(r, &first, 1);
	put_bytes(r, &time, sizeof(time));
	put_bytes(r, &s->prev_pid, sizeof(s->prev_pid));
	put_bytes(r, &number, sizeof(number));
}

static void put_packet(struct ring *r, const struct pmuk_sched_switch *s, u64 number)
{
	const unsigned char misc = (unsigned char)s->header.misc;

	if (!has_room(r, MOST)) {
		publish(r);
		r->stat.lost++;
		r->marked = false;
		return;
	}
	if (!r->marked)
		put_mark(r, s, number);
	r->marked = true;
	put_bytes(r, &misc, 1);
	put_number(r, s->next_pid);
	put_number(r, s->run);
	put_number(r, s->wait);
	put_number(r, s->counts[0]);
	put_number(r, s->counts[1]);
	if (r->head - r->published > PART)
		publish(r);
}

struct lost {
	struct perf_event_header header;
	u64 id, lost;
};

static void put_lost(struct ring *r)
{
	struct lost lost = {
		.header = { .type = PERF_RECORD_LOST, .size = sizeof(lost) },
		.lost = r->pending,
	};

	if (r->pending)
		put(r, &lost, sizeof(lost));
	r->pending = 0;
}

/*
 * Puts a sample of IDENTIFIER, IP and TIME. With PMUK_TEST=added, every other sample is of a
 * counter that was added after pmuk had asked for the counters.
 */
static void put_sample(struct ring *r, u64 n)
{
	const struct { struct perf_event_header header; u64 id, ip, time; } sample = {
		.header = { PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, sizeof(sample) },
		.id = 9 + r->cpu + (test_is("added") && n % 2 ? 100 : 0),
		.ip = 0x1000,
		.time = 1000 * n,
	};

	if (!has_room(r, sizeof(sample) + (r->pending ? sizeof(struct lost) : 0))) {
		r->pending++;
		r->stat.lost++;
		return;
	}
	put_lost(r);
	put(r, &sample, sizeof(sample));
}

/* Tasks 100 and 200 take turns, and each runs for 1000 ns. */
static void one_switch(struct ring *r)
{
	u64 n = r->stat.switches++;
	struct pmuk_sched_switch s = {
		.header = {
			.type = PMUK_SCHED_RECORD_SWITCH,
			.size = sizeof(s),
			.misc = (uint16_t)(n % 3),
		},
		.time = 1000 * n,
		.prev_pid = n % 2 ? 100 : 200,
		.next_pid = n % 2 ? 200 : 100,
		.run = 1000,
		.wait = 10,
		.counts = { 2000, 3000 },
	};

	if (r->exported) {
		put_sample(r, n);
		return;
	}
	if (r->mode == PMUK_SCHED_RAW) {
		put_packet(r, &s, n);
		return;
	}
	if (r->paused) {
		r->stat.discarded++;
		return;
	}
	if (!has_room(r, sizeof(s) + (r->pending ? sizeof(struct lost) : 0))) {
		r->pending++;
		r->stat.lost++;
		return;
	}
	put_lost(r);
	put(r, &s, sizeof(s));
}

static void burst(struct ring *r, int switches)
{
	int i;

	for (i = 0; r->page && i < switches; i++)
		one_switch(r);
}

/* ---- perf's dummy event ---- */

static struct ring dummies[RINGS];
static u64 read_format;		/* set by perf_event_open() */

struct fork {
	struct perf_event_header header;
	u32 pid, ppid, tid, ptid;
	u64 time;
	struct perfdata_id id;
};

struct comm {
	struct perf_event_header header;
	u32 pid, tid;
	char name[24];
	struct perfdata_id id;
};

struct gap {
	struct perf_event_header header;
	u64 id, lost;
	struct perfdata_id after;
};

static u64 dummy_id(const struct ring *r)
{
	return 7 + r->cpu;
}

static void put_gap(struct ring *r)
{
	const struct gap gap = {
		{ PERF_RECORD_LOST, 0, sizeof(gap) }, dummy_id(r), r->pending, { .id = dummy_id(r) }
	};

	if (r->pending)
		put(r, &gap, sizeof(gap));
	r->pending = 0;
}

/* Only the event's count of losses tells of these, until a record follows. */
static void lose(struct ring *r, u64 records)
{
	r->pending += records;
	r->stat.lost += records;
}

static void put_task(struct ring *r)
{
	const struct { struct fork fork; struct comm comm; } records = {
		.fork = { { PERF_RECORD_FORK, 0, sizeof(struct fork) }, 100, 100, 200, 100, 0,
			  { .id = dummy_id(r) } },
		.comm = { { PERF_RECORD_COMM, 0, sizeof(struct comm) }, 100, 200,
			  "a name (with) blanks", { .id = dummy_id(r) } },
	};

	if (!has_room(r, sizeof(records) + sizeof(struct gap))) {
		lose(r, 2);
		return;
	}
	put_gap(r);
	put(r, &records, sizeof(records));
}

/* Maps the ring that pmuk will map, too. */
static void map_dummy(struct ring *r)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	r->size = TRACK_PAGES * page;
	if (ftruncate(r->fd, (off_t)(page + r->size)))
		abort();
	r->page = __real_mmap(NULL, page + r->size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	r->data = (unsigned char *)r->page + page;
}

static int open_dummy(u32 cpu)
{
	struct ring *r;

	if (test_is("no-perf") || cpu >= RINGS)
		return refuse(cpu >= RINGS ? ENODEV : EACCES);
	r = &dummies[cpu];
	*r = (struct ring) { .fd = memfd_create("dummy", MFD_CLOEXEC), .cpu = cpu };
	if (r->fd < 0)
		return -1;
	map_dummy(r);
	lose(r, test_is("lost-tasks") ? 3 : 0);
	if (!test_is("late-task") && !test_is("between"))
		put_task(r);
	lose(r, test_is("lost-last") ? 2 : 0);
	return r->fd;
}

static void new_tasks(int tasks)
{
	int i;

	for (i = 0; test_is("new-tasks") && i < tasks; i++)
		put_task(&dummies[0]);
}

/* Many tasks begin while pmuk reads /proc, and some for each name that pmuk reads. */
DIR *__wrap_opendir(const char *path)
{
	new_tasks(BURST);
	return __real_opendir(path);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	new_tasks(ends_with(path, "/comm") ? BURST / 10 : 0);
	return __real_fopen(path, mode);
}

long __wrap_syscall(long number, ...)
{
	va_list args;
	int cpu;

	if (number != __NR_perf_event_open)
		abort();
	va_start(args, number);
	read_format = va_arg(args, struct perf_event_attr *)->read_format;
	va_arg(args, int);
	cpu = va_arg(args, int);
	va_end(args);
	return open_dummy((u32)cpu);
}

static int give_id(int fd, u64 *id)
{
	int i;

	for (i = 0; i < RINGS; i++)
		if (dummies[i].fd == fd)
			*id = dummy_id(&dummies[i]);
	return 0;
}

/*
 * The count of a dummy event is 0. With PMUK_TEST=cpu-returns, CPU 1 was offline, so that its event
 * is enabled no longer.
 */
static ssize_t read_dummy(const struct ring *r, u64 *to)
{
	static u64 clock;
	size_t nr = 0;

	to[nr++] = 0;
	if (read_format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		to[nr++] = test_is("cpu-returns") && r->cpu ? 1 : ++clock;
	if (read_format & PERF_FORMAT_LOST)
		to[nr++] = r->stat.lost;
	return (ssize_t)(nr * sizeof(*to));
}

ssize_t __wrap_read(int fd, void *to, size_t size)
{
	int i;

	for (i = 0; i < RINGS; i++)
		if (fd > 0 && dummies[i].fd == fd && size >= 3 * sizeof(u64))
			return read_dummy(&dummies[i], to);
	return __real_read(fd, to, size);
}

static int open_device(void)
{
	int i;

	for (i = 0; i < RINGS && rings[i].fd; i++)
		;
	if (i == RINGS)
		i = RINGS - 1;		/* a test asks for a CPU that does not exist */
	rings[i] = (struct ring) { .fd = memfd_create("ring", MFD_CLOEXEC) };
	return rings[i].fd;
}

/* Maps the ring's page. In raw mode, the AUX area follows a ring of one page. */
static int begin(struct ring *r, const struct pmuk_sched_stream *attr)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t before = (attr->mode == PMUK_SCHED_RAW ? 2 : 1) * page;
	size_t all = before + attr->nr_pages * page;

	if (test_is("busy"))
		return refuse(EBUSY);
	if (test_is("enomem"))
		return refuse(ENOMEM);
	if (test_is("enobufs"))
		return refuse(ENOBUFS);
	if (test_is("interrupted"))
		raise(SIGINT);
	if (attr->cpu >= RINGS) {
		r->fd = 0;
		return refuse(ENODEV);
	}
	r->cpu = attr->cpu;
	r->mode = attr->mode;
	r->size = attr->nr_pages * page;
	if (ftruncate(r->fd, (off_t)all))
		return -1;
	r->page = __real_mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	r->data = (unsigned char *)r->page + before;
	r->page->aux_offset = before;
	r->page->aux_size = r->size;
	return 0;
}

/*
 * Kernel code exports buffers of four pages by the name "exported". With PMUK_TEST=closed, their
 * context is closed when the first one has been opened. With closing, it is closed when the second
 * one has been opened, and with anew, that one belongs to another context.
 */
static int choose(struct ring *r, const struct pmuk_dev_buffer *what)
{
	const struct pmuk_sched_stream stream = { .cpu = what->cpu, .nr_pages = 4 };

	if (strcmp(what->name, "exported") || (test_is("closed") && what->cpu))
		return refuse(ENOENT);
	r->exported = true;
	return begin(r, &stream);
}

static int describe(const struct ring *r, struct pmuk_dev_event *e)
{
	if (e->index)
		return refuse(ENOENT);
	if (test_is("closing") && r->cpu)
		return refuse(ENODEV);
	e->attr = (struct perf_event_attr) {
		.type = PERF_TYPE_HARDWARE,
		.sample_period = test_is("anew") && r->cpu ? 2000 : 1000,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TIME,
		.exclude_kernel = 1,
	};
	e->id = 9 + r->cpu;
	return 0;
}

static int about_exported(struct ring *r, unsigned long request, void *arg)
{
	struct pmuk_dev_stat *stat = arg;

	if (request == PMUK_BUFFER_OPEN)
		return choose(r, arg);
	if (request == PMUK_BUFFER_EVENT)
		return describe(r, arg);
	stat->lost = r->stat.lost;
	stat->discarded = 0;
	stat->head = r->head;
	return 0;
}

/* The file mapped at 0x400000 has a build id, and those at other addresses have none. */
static int about_map(struct map_query *q)
{
	static const unsigned char id[] = { 0xa1, 0xa2, 0xa3, 0xa4 };

	q->start = q->address;
	q->id_size = q->address == 0x400000 ? sizeof(id) : 0;
	memcpy((void *)(uintptr_t)q->id, id, q->id_size);
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	struct ring *r = ring_of(fd);
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (request == PERF_EVENT_IOC_ID)
		return give_id(fd, arg);
	if (request == MAP_QUERY)
		return about_map(arg);
	if (r && (request == PMUK_BUFFER_OPEN || request == PMUK_BUFFER_EVENT ||
		  request == PMUK_BUFFER_STAT))
		return about_exported(r, request, arg);
	if (!r || (request != PMUK_SCHED_STREAM && request != PMUK_SCHED_STAT &&
		   request != PMUK_SCHED_PAUSE))
		return __real_ioctl(fd, request, arg);
	if (request == PMUK_SCHED_PAUSE) {
		r->paused = true;
		return 0;
	}
	if (request == PMUK_SCHED_STREAM)
		return begin(r, arg);
	if (test_is("late-task"))
		put_task(&dummies[r->cpu]);
	publish(r);
	r->stat.head = r->head;
	memcpy(arg, &r->stat, sizeof(r->stat));
	burst(r, AFTER);
	return 0;
}

int __wrap_ppoll(struct pollfd *fds, nfds_t nr, const struct timespec *timeout,
		 const sigset_t *mask)
{
	bool waits = test_is("begins") && access("begun", F_OK);
	int i;

	for (i = 0; !waits && i < RINGS; i++)
		burst(&rings[i], BURST);
	new_tasks(1);
	if (rings[0].page)
		usleep(10000);		/* a memfd is always ready, so nothing else waits */
	return __real_ppoll(fds, nr, timeout, mask);
}

int __wrap_open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (test_is("eacces") && (strstr(path, "pmuk_sched") || ends_with(path, "/dev/pmuk")))
		return refuse(EACCES);
	if ((ends_with(path, "/dev/pmuk_sched") || ends_with(path, "/dev/pmuk")) &&
	    !access(path, F_OK))
		return open_device();
	return __real_open(path, flags, mode);
}

/* pmuk is in the initial pid namespace, or in another one with PMUK_TEST=container. */
int __wrap_stat(const char *path, struct stat *s)
{
	int ret = __real_stat(path, s);

	if (!ret && ends_with(path, "/proc/self/ns/pid"))
		s->st_ino = 0xeffffffc - test_is("container");
	return ret;
}

/* The module answers E2BIG to more than four events. */
ssize_t __wrap_write(int fd, const void *from, size_t size)
{
	return test_is("e2big") ? refuse(E2BIG) : __real_write(fd, from, size);
}

/* The real call waits for grace periods. */
int __wrap_close(int fd)
{
	struct ring *r = fd > 0 ? ring_of(fd) : NULL;
	int i;

	for (i = 0; r && i < RINGS; i++)
		burst(&rings[i], &rings[i] == r ? 0 : BURST);
	return __real_close(fd);
}

static bool is_dummy(int fd)
{
	return fd > 0 && (fd == dummies[0].fd || fd == dummies[1].fd);
}

size_t __wrap_stream_read(struct stream *s, u64 end, unsigned char *to)
{
	static bool began;

	if (test_is("between") && !began && !is_dummy(s->fd)) {
		began = true;
		put_task(&dummies[0]);
	}
	return __real_stream_read(s, end, to);
}

/* The real call waits for a grace period. */
static void burst_exported(void)
{
	int i;

	for (i = 0; i < RINGS; i++)
		burst(&rings[i], rings[i].exported ? BURST : 0);
}

/* With PMUK_TEST=shrinks, another program empties the file that pmuk report has just mapped. */
static void *map_file(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	void *data = __real_mmap(at, size, prot, flags, fd, offset);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (test_is("shrinks") && flags == MAP_PRIVATE && truncate(path, 0))
		abort();
	return data;
}

/* PMUK_TEST=map-WHICH-ERROR: the maps of rings of names, or of others, fail. */
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	burst_exported();
	if (is_dummy(fd) && test_is("map-names-eperm"))
		errno = EPERM;
	else if (ring_of(fd) && test_is("map-ring-eperm"))
		errno = EPERM;
	else if (ring_of(fd) && test_is("map-ring-enomem"))
		errno = ENOMEM;
	else if (ring_of(fd) && test_is("map-ring-einval"))
		errno = EINVAL;
	else
		return map_file(at, size, prot, flags, fd, offset);
	return MAP_FAILED;
}

/* ---- cgroups ---- */

static void make_file(const char *directory, const char *name, const char *text)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	if (!file)
		abort();
	fputs(text, file);
	fclose(file);
}

/* Appends the lines of a new cgroup, with the totals that the next reading shall have. */
static void make_lines(const char *path)
{
	FILE *file = fopen(rooted(PROC "/cgroups"), "a");
	struct stat s;

	if (!file || stat(path, &s))
		abort();
	fprintf(file, "cgroup %llu 1 0 0 0 0 0 1 0 0 /cgroup\n", (unsigned long long)s.st_ino);
	fprintf(file,
		"subtree %llu 1 1500000000 250000000 30 4 5 %d 3000000000 4500000000 /cgroup\n",
		(unsigned long long)s.st_ino, !test_is("invalid"));
	fclose(file);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	if (test_is("eacces-cgroup"))
		return refuse(EACCES);
	if (__real_mkdir(path, mode))
		return -1;
	make_file(path, "cgroup.procs", "");
	make_file(path, "cgroup.events", test_is("populated") ? "populated 1\n" : "populated 0\n");
	make_lines(path);
	return 0;
}

int __wrap_rmdir(const char *path)
{
	char file[4096];

	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	unlink(file);
	snprintf(file, sizeof(file), "%s/cgroup.events", path);
	unlink(file);
	return __real_rmdir(path);
}
