/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tests of /dev/pmuk_export share these helpers. The header lib/tests/pmuk_export.h describes
 * the device.
 */
#ifndef _PMUK_SELFTEST_EXPORT_H
#define _PMUK_SELFTEST_EXPORT_H

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base.h"
#include "../../../../lib/tests/pmuk_export.h"

/* Headers of the kernel that user space cannot include define these values. */
#define USER_TAIL	1	/* PMUK_BUFFER_USER_TAIL */
#define RECORD_MIN	sizeof(struct pmuk_export_record)

/* Most tests have a buffer with DATA_PAGES pages of data, and one control page. */
#define DATA_PAGES	8
#define PAGES		(1 + DATA_PAGES)

/* Sets the number of pages that each user may map for each CPU without a charge. */
static inline bool let_be_free(size_t pages)
{
	return !write_file("/proc/sys/kernel/perf_event_mlock_kb", "%zu",
			   pages * getpagesize() / 1024);
}

/*
 * Opens the device. Root first sets the free pages to 0, so that each mapped page is charged as
 * pinned.
 */
static inline int export_open(void)
{
	if (!geteuid() && !let_be_free(0))
		return -1;
	return open("/dev/pmuk_export", O_RDWR | O_CLOEXEC);
}

static inline int export_create(int fd, const struct pmuk_export_attr *attr)
{
	return ioctl(fd, PMUK_EXPORT_CREATE, attr);
}

/* Opens the device and creates a buffer. Returns the descriptor, or -1. */
static inline int export_make(const struct pmuk_export_attr *attr)
{
	int fd = export_open();

	return fd >= 0 && !export_create(fd, attr) ? fd : -1;
}

/* Does the same with DATA_PAGES pages, and the attributes in the arguments. */
#define export_made(...)	\
	export_make(&(struct pmuk_export_attr){ .nr_pages = DATA_PAGES, __VA_ARGS__ })

/* Writes records on the caller's CPU. Returns their number, or -1. */
static inline int export_write(int fd, uint32_t nr, uint32_t size, uint32_t context)
{
	struct pmuk_export_write what = { .nr = nr, .size = size, .context = context };

	return ioctl(fd, PMUK_EXPORT_WRITE, &what);
}

static inline struct pmuk_export_stat export_stat(int fd)
{
	struct pmuk_export_stat stat;

	if (ioctl(fd, PMUK_EXPORT_STAT, &stat))
		memset(&stat, 0xff, sizeof(stat));
	return stat;
}

/* Writes bytes to the AUX area on the caller's CPU. Returns their number, or -1. */
static inline int64_t export_aux_write(int fd, uint64_t bytes, uint64_t piece)
{
	struct pmuk_export_aux what = { .bytes = bytes, .piece = piece };

	return ioctl(fd, PMUK_EXPORT_AUX_WRITE, &what) ? -1 : (int64_t)what.written;
}

static inline struct pmuk_export_aux_stat export_aux_stat(int fd)
{
	struct pmuk_export_aux_stat stat;

	if (ioctl(fd, PMUK_EXPORT_AUX_STAT, &stat))
		memset(&stat, 0xff, sizeof(stat));
	return stat;
}

static inline int nr_buffers(void)
{
	int fd = export_open(), nr = ioctl(fd, PMUK_EXPORT_NR_BUFFERS);

	close(fd);
	return nr;
}

/* Moves the caller to another CPU than CPU 0, if there is one. */
static inline int stay_away(void)
{
	return stay_on(nr_cpus() > 1);
}

/* Maps @pages pages of a file, starting at page @at. Returns the address, or MAP_FAILED. */
static inline void *map_at(int fd, size_t at, size_t pages, int prot)
{
	size_t page_size = getpagesize();

	return mmap(NULL, pages * page_size, prot, MAP_SHARED, fd, at * page_size);
}

static inline void *map_pages(int fd, size_t pages, int prot)
{
	return map_at(fd, 0, pages, prot);
}

/* Maps a buffer of CPU 0, and moves the caller to that CPU. Returns the address, or MAP_FAILED. */
static inline void *export_begin(int fd, int prot)
{
	return stay_on(0) ? MAP_FAILED : map_pages(fd, PAGES, prot);
}

/* Evaluates to the address from map_at(); the test ends if it is MAP_FAILED. */
#define ASSERT_MAP(fd, at, pages, prot)			\
({							\
	void *__there = map_at(fd, at, pages, prot);	\
							\
	ASSERT_NE(__there, MAP_FAILED);			\
	__there;					\
})

/* Turns this process into user @uid, who may pin @pages pages. Returns 0 or -1. */
static inline int be_limited(uid_t uid, size_t pages)
{
	const size_t size = pages * getpagesize();
	const struct rlimit limit = { size, size };

	return setrlimit(RLIMIT_MEMLOCK, &limit) ? -1 : setresuid(uid, uid, uid);
}

static inline int unmap_pages(void *at, size_t pages)
{
	return munmap(at, pages * getpagesize());
}

/* Reserves an unused range of addresses. */
static inline void *reserve(size_t size)
{
	return mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Returns VmPin of /proc/self/status, in pages. */
static inline long pinned_pages(void)
{
	char text[4096], *line;
	long kib;

	if (read_file("/proc/self/status", text, sizeof(text)) < 0)
		return -1;
	line = strstr(text, "VmPin:");
	return line && sscanf(line, "VmPin: %ld kB", &kib) == 1 ? kib * 1024 / getpagesize() : -1;
}

static inline void catch_faults(void)
{
	signal(SIGSEGV, fault_handler);
	signal(SIGBUS, fault_handler);
}

/* Returns the signal that an access raises, or 0. */
static inline int fault_of_read(const void *at)
{
	int sig = sigsetjmp(fault_jump, 1);

	if (!sig)
		(void)*(const volatile uint64_t *)at;
	return sig;
}

static inline int fault_of_write(void *at, uint64_t value)
{
	int sig = sigsetjmp(fault_jump, 1);

	if (!sig)
		*(volatile uint64_t *)at = value;
	return sig;
}

/* Returns whether a child of this process has no map there, and no pinned pages. */
static inline bool is_not_in_child(const void *first, const void *last)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(fault_of_read(first) != SIGSEGV || fault_of_read(last) != SIGSEGV ||
		      pinned_pages());
	return child > 0 && waitpid(child, &status, 0) == child && !status;
}

#endif /* _PMUK_SELFTEST_EXPORT_H */
