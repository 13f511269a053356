// SPDX-License-Identifier: GPL-2.0
/*
 * Reads a CPU's switches from a mapped ring or AUX area. The layout is perf's: the kernel advances
 * data_head or aux_head when it has written data. Unless the ring overwrites, pmuk advances
 * data_tail or aux_tail when it has read them.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recording.h"

__noreturn static void cannot_have(u32 cpu, const char *what, int error)
{
	if (error == EACCES || error == EPERM)
		die("CPU %u: %s takes CAP_PERFMON, and memory that may be locked (ulimit -l). %s",
		    cpu, what, "Run pmuk as root, as in: sudo pmuk record ...");
	if (error == ENOMEM)
		die("CPU %u: there is no memory for %s; try a smaller -m", cpu, what);
	die("CPU %u: %s: %s", cpu, what, strerror(error));
}

/* The call of pmuk_sched for a stream of switches has failed. */
__noreturn static void cannot(u32 cpu, const char *what, int error)
{
	if (error == EBUSY)
		die("the switches of CPU %u are being recorded by somebody else; only one can",
		    cpu);
	if (error == EINVAL)
		die("CPU %u: the module refuses %s. Is anything counted? See: pmuk info", cpu,
		    what);
	if (error == ENOBUFS)
		die("CPU %u: all streams together would exceed %s; try a smaller -m", cpu,
		    MODULE "/parameters/stream_mb");
	cannot_have(cpu, what, error);
}

void stream_map(struct stream *s, u32 nr_pages, const char *what)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int prot = s->mode == PMUK_SCHED_OVERWRITE ? PROT_READ : PROT_READ | PROT_WRITE;

	s->mapped = (1 + (size_t)nr_pages) * page;
	s->page = mmap(NULL, s->mapped, prot, MAP_SHARED, s->fd, 0);
	if (s->page == MAP_FAILED)
		cannot_have(s->cpu, what, errno);
	s->data = (const unsigned char *)s->page + page;
	s->size = nr_pages * page;
}

/*
 * Maps the AUX area. A ring of one page has to be mapped before; the kernel writes into it that
 * packets have come, which pmuk sees by aux_head.
 */
static void map_area(struct stream *s, u32 nr_pages)
{
	stream_map(s, 1, "the ring of switches");
	s->size = nr_pages * (u64)sysconf(_SC_PAGESIZE);
	s->data = mmap(NULL, s->size, PROT_READ, MAP_SHARED, s->fd, (off_t)s->page->aux_offset);
	if (s->data == MAP_FAILED)
		cannot_have(s->cpu, "the AUX area of switches", errno);
}

bool stream_open(struct stream *s, u32 cpu, u32 nr_pages, u32 mode)
{
	struct pmuk_sched_stream attr = {
		.cpu = cpu,
		.nr_pages = nr_pages,
		.mode = mode,
		.watermark = nr_pages * (u32)sysconf(_SC_PAGESIZE) / 4,
	};

	*s = (struct stream) { .cpu = cpu, .mode = mode };
	s->fd = open_source(DEVICE, O_RDWR);
	if (ioctl(s->fd, PMUK_SCHED_STREAM, &attr)) {
		if (errno != ENODEV)
			cannot(cpu, "the stream", errno);
		close(s->fd);
		return false;
	}
	if (mode == PMUK_SCHED_RAW)
		map_area(s, nr_pages);
	else
		stream_map(s, nr_pages, "the ring of switches");
	return true;
}

void stream_close(struct stream *s)
{
	if (s->mode == PMUK_SCHED_RAW)
		munmap((void *)s->data, s->size);
	munmap(s->page, s->mapped);
	close(s->fd);
}

/* Pauses a ring that overwrites first, so that its records stay until they are read. */
void stream_stat(const struct stream *s, struct pmuk_sched_stat *stat)
{
	if (s->mode == PMUK_SCHED_OVERWRITE && ioctl(s->fd, PMUK_SCHED_PAUSE))
		cannot(s->cpu, "the end of the recording", errno);
	if (ioctl(s->fd, PMUK_SCHED_STAT, stat))
		cannot(s->cpu, "the account of what was lost", errno);
}

/* Load-acquire: data that are read after the head are at least as new as the head. */
static u64 head(const struct stream *s)
{
	if (s->mode == PMUK_SCHED_RAW)
		return __atomic_load_n(&s->page->aux_head, __ATOMIC_ACQUIRE);
	return __atomic_load_n(&s->page->data_head, __ATOMIC_ACQUIRE);
}

/*
 * Lets the kernel overwrite what was read. Records about an AUX area are skipped unread, as its
 * head says the same.
 */
static void give_back(struct stream *s)
{
	u64 tail = s->position;

	if (s->mode == PMUK_SCHED_RAW) {
		__atomic_store_n(&s->page->aux_tail, tail, __ATOMIC_RELEASE);
		tail = __atomic_load_n(&s->page->data_head, __ATOMIC_ACQUIRE);
	}
	__atomic_store_n(&s->page->data_tail, tail, __ATOMIC_RELEASE);
}

static void copy(const struct stream *s, u64 from, size_t size, void *to)
{
	size_t at = from & (s->size - 1), first = s->size - at;

	if (first > size)
		first = size;
	memcpy(to, s->data + at, first);
	memcpy((unsigned char *)to + first, s->data, size - first);
}

/* A ring that overwrites is paused by now. Its data_tail is where the oldest record begins. */
size_t stream_read(struct stream *s, u64 end, unsigned char *to)
{
	bool overwrites = s->mode == PMUK_SCHED_OVERWRITE;
	u64 size;

	if (overwrites)
		s->position = s->page->data_tail;
	size = (end == NONE ? head(s) : end) - s->position;
	if (size > s->size)
		die("CPU %u: its ring is not what it should be: %llu bytes in %llu", s->cpu,
		    (unsigned long long)size, (unsigned long long)s->size);
	copy(s, s->position, size, to);
	s->position += size;
	if (!overwrites)
		give_back(s);
	return size;
}
