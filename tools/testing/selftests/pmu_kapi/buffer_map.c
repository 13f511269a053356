// SPDX-License-Identifier: GPL-2.0
/*
 * The tests map a buffer of /dev/pmuk_export: sizes, rights, the end of a map, and the accounting
 * of its pages.
 */
#include <stddef.h>

#include "load.h"
#include "harness.h"

#define TOO_MANY	(1UL << 20)	/* pages of data */

/* Each variant maps a buffer in one way, which is refused with .error, or succeeds. */
FIXTURE(geometry)
{
	int fd;
};

FIXTURE_VARIANT(geometry)
{
	unsigned int flags;
	int cpu;
	size_t pages;
	int prot;
	int map;
	size_t offset;
	int error;
};

#define GEOMETRY(name, ...)			\
	FIXTURE_VARIANT_ADD(geometry, name)	\
	{					\
		.prot = PROT_READ,		\
		.map = MAP_SHARED,		\
		.pages = PAGES,			\
		__VA_ARGS__			\
	}

GEOMETRY(fixed);
GEOMETRY(fixed_without_data,		.pages = 1,		.error = EINVAL);
GEOMETRY(fixed_half,			.pages = 1 + 4,		.error = EINVAL);
GEOMETRY(fixed_twice,			.pages = 1 + 16,	.error = EINVAL);
GEOMETRY(fixed_without_control,		.pages = 8,		.error = EINVAL);
GEOMETRY(fixed_too_large,		.pages = 1 + TOO_MANY,	.error = EINVAL);
GEOMETRY(fixed_at_offset,		.offset = 1,		.error = EINVAL);
GEOMETRY(fixed_behind_itself,		.offset = PAGES,	.error = EINVAL);
GEOMETRY(fixed_private,			.map = MAP_PRIVATE,	.error = EINVAL);
GEOMETRY(fixed_executable,		.prot = PROT_READ | PROT_EXEC,	.error = EINVAL);
GEOMETRY(fixed_writable,		.prot = PROT_READ | PROT_WRITE,	.error = EACCES);
GEOMETRY(fixed_not_accessible,		.prot = PROT_NONE);
GEOMETRY(user_tail,			.flags = USER_TAIL);
GEOMETRY(user_tail_writable,		.flags = USER_TAIL, .prot = PROT_READ | PROT_WRITE);
GEOMETRY(user_tail_write_only,		.flags = USER_TAIL, .prot = PROT_WRITE);
GEOMETRY(user_tail_without_data,	.flags = USER_TAIL, .pages = 1);
GEOMETRY(user_tail_one_page,		.flags = USER_TAIL, .pages = 1 + 1);
GEOMETRY(user_tail_many_pages,		.flags = USER_TAIL, .pages = 1 + 1024);
GEOMETRY(user_tail_three_pages,		.flags = USER_TAIL, .pages = 1 + 3,	.error = EINVAL);
GEOMETRY(user_tail_five_pages,		.flags = USER_TAIL, .pages = 1 + 5,	.error = EINVAL);
GEOMETRY(user_tail_without_control,	.flags = USER_TAIL, .pages = 16,	.error = EINVAL);
GEOMETRY(user_tail_too_large,		.flags = USER_TAIL, .pages = 1 + TOO_MANY, .error = EINVAL);
GEOMETRY(user_tail_at_offset,		.flags = USER_TAIL, .offset = 1,	.error = EINVAL);
GEOMETRY(user_tail_private,		.flags = USER_TAIL, .map = MAP_PRIVATE,	.error = EINVAL);
GEOMETRY(user_tail_private_writable,	.flags = USER_TAIL, .map = MAP_PRIVATE,
					.prot = PROT_READ | PROT_WRITE,	.error = EINVAL);
GEOMETRY(user_tail_executable,		.flags = USER_TAIL, .prot = PROT_READ | PROT_EXEC,
					.error = EINVAL);
GEOMETRY(page_only,			.cpu = -1, .pages = 1);
GEOMETRY(page_only_and_data,		.cpu = -1, .pages = 1 + 1,	.error = EINVAL);

FIXTURE_SETUP(geometry)
{
	catch_faults();
	self->fd = export_made(.nr_pages = variant->cpu == -1 ? 0 : DATA_PAGES,
			       .flags = variant->flags, .cpu = variant->cpu);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(geometry)
{
	close(self->fd);
}

TEST_F(geometry, maps)
{
	size_t page_size = getpagesize();
	struct perf_event_mmap_page *page;

	page = mmap(NULL, variant->pages * page_size, variant->prot, variant->map, self->fd,
		    variant->offset * page_size);
	if (variant->error) {
		EXPECT_EQ(errno_of(page), variant->error);
		EXPECT_EQ(pinned_pages(), 0);
		return;
	}
	ASSERT_NE(page, MAP_FAILED);
	EXPECT_EQ(pinned_pages(), variant->pages);
	if (variant->prot == PROT_NONE) {
		EXPECT_EQ(fault_of_read(page), SIGSEGV);
		ASSERT_EQ(mprotect(page, variant->pages * page_size, PROT_READ), 0);
	}
	EXPECT_EQ(page->data_offset, page_size);
	EXPECT_EQ(page->data_size, (variant->pages - 1) * page_size);
	EXPECT_EQ(fault_of_write(&page->data_tail, 0), variant->prot & PROT_WRITE ? 0 : SIGSEGV);
	EXPECT_EQ(unmap_pages(page, variant->pages), 0);
	EXPECT_EQ(pinned_pages(), 0);
}

/* The fixture has a mapped buffer of each mode. */
FIXTURE(map)
{
	int fd;
	int buffers;		/* number of buffers before the test */
	size_t page_size;
	size_t size;
	int prot;
	int page_fault, data_fault;	/* expected signals of a write */
	union {
		uint8_t *at;
		struct perf_event_mmap_page *page;
	};
};

FIXTURE_VARIANT(map)
{
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(map, fixed) { .flags = 0 };
FIXTURE_VARIANT_ADD(map, user_tail) { .flags = USER_TAIL };

FIXTURE_SETUP(map)
{
	catch_faults();
	self->buffers = nr_buffers();
	self->page_size = getpagesize();
	self->size = PAGES * self->page_size;
	self->prot = variant->flags ? PROT_READ | PROT_WRITE : PROT_READ;
	self->page_fault = variant->flags ? 0 : SIGSEGV;
	self->data_fault = variant->flags ? SIGBUS : SIGSEGV;
	self->fd = export_made(.flags = variant->flags);
	self->at = export_begin(self->fd, self->prot);
	ASSERT_NE(self->at, MAP_FAILED);
}

FIXTURE_TEARDOWN(map)
{
	if (self->at)
		munmap(self->at, self->size);
	close(self->fd);
	EXPECT_EQ(pinned_pages(), 0);
	EXPECT_EQ(nr_buffers(), self->buffers);
}

TEST_F(map, has_the_geometry_in_its_page)
{
	EXPECT_EQ(self->page->data_offset, self->page_size);
	EXPECT_EQ(self->page->data_size, DATA_PAGES * self->page_size);
	EXPECT_EQ(self->page->data_head, 0);
	EXPECT_EQ(self->page->index, 0);
	EXPECT_EQ(export_write(self->fd, 3, 64, PMUK_EXPORT_TASK), 3);
	EXPECT_EQ(self->page->data_head, 3 * 64);
}

/* User space finds no way to write to the data. The pages do not change. */
TEST_F(map, data_cannot_be_written)
{
	int zero = open("/dev/zero", O_RDONLY), mem = open("/proc/self/mem", O_RDWR);
	uint64_t *data;
	size_t i;

	ASSERT_GE(zero, 0);
	ASSERT_GE(mem, 0);
	ASSERT_EQ(export_write(self->fd, 200, 64, PMUK_EXPORT_TASK), 200);
	for (i = 1; i < PAGES; i++) {
		data = (void *)(self->at + i * self->page_size);
		EXPECT_EQ(fault_of_write(data, 1), self->data_fault);
		EXPECT_EQ(errno_of(read(zero, data, 64)), EFAULT);
		EXPECT_EQ(pwrite(mem, "12345678", 8, (uintptr_t)data), -1);
		EXPECT_EQ(fault_of_read(data), 0);
		if (i <= 200 * 64 / self->page_size)
			EXPECT_EQ(*(uint32_t *)data, PMUK_EXPORT_RECORD);
	}
}

TEST_F(map, page_can_be_written_by_who_reads)
{
	int zero = open("/dev/zero", O_RDONLY);

	EXPECT_EQ(fault_of_write(&self->page->data_tail, 8), self->page_fault);
	EXPECT_EQ(self->page->data_tail, variant->flags ? 8 : 0);
	EXPECT_EQ(read(zero, &self->page->data_tail, 8), variant->flags ? 8 : -1);
	EXPECT_EQ(self->page->data_tail, 0);
}

TEST_F(map, rights_cannot_be_gained_later)
{
	uint8_t *data = self->at + self->page_size;

	EXPECT_EQ(errno_of(mprotect(self->at, self->size, PROT_READ | PROT_EXEC)), EACCES);
	EXPECT_EQ(mprotect(self->at, self->size, PROT_READ), 0);
	EXPECT_EQ(mprotect(self->at, self->size, PROT_READ | PROT_WRITE),
		  variant->flags ? 0 : -1);
	if (!variant->flags)
		EXPECT_EQ(errno, EACCES);
	EXPECT_EQ(fault_of_write(data, 1), self->data_fault);

	/* The rights do not change after the page was written. */
	EXPECT_EQ(fault_of_write(&self->page->data_tail, 8), self->page_fault);
	EXPECT_EQ(mprotect(self->at, self->size, PROT_NONE), 0);
	EXPECT_EQ(fault_of_read(data), SIGSEGV);
	EXPECT_EQ(mprotect(self->at, self->size, self->prot), 0);
	EXPECT_EQ(fault_of_write(&self->page->data_tail, 0), self->page_fault);
	EXPECT_EQ(fault_of_write(data, 1), self->data_fault);
	EXPECT_EQ(fault_of_read(data), 0);
}

TEST_F(map, advice_changes_nothing)
{
	EXPECT_EQ(madvise(self->at, self->size, MADV_DOFORK), -1);
	EXPECT_EQ(madvise(self->at, self->size, MADV_DODUMP), -1);
	EXPECT_EQ(madvise(self->at, self->size, MADV_DONTNEED), -1);
	EXPECT_EQ(madvise(self->at, self->size, MADV_REMOVE), -1);
	EXPECT_EQ(fault_of_read(self->at + self->size - 8), 0);
}

TEST_F(map, splits_for_nobody)
{
	void *to = reserve(self->page_size);
	size_t size = self->page_size;
	uint8_t *at, *end = self->at + self->size;

	ASSERT_NE(to, MAP_FAILED);
	for (at = self->at; at < end; at += size) {
		EXPECT_EQ(errno_of(munmap(at, size)), EINVAL);
		EXPECT_EQ(errno_of(mprotect(at, size, PROT_NONE)), EINVAL);
		EXPECT_EQ(mremap(at, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to), MAP_FAILED);
		EXPECT_EQ(mmap(at, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			       0), MAP_FAILED);
	}
	EXPECT_EQ(errno_of(mremap(self->at, self->size, self->size - self->page_size, 0)), EINVAL);
	EXPECT_EQ(pinned_pages(), PAGES);
	for (at = self->at; at < end; at += size)
		EXPECT_EQ(fault_of_read(at), 0);
}

TEST_F(map, does_not_grow)
{
	EXPECT_EQ(mremap(self->at, self->size, self->size + self->page_size, 0), MAP_FAILED);
	EXPECT_EQ(mremap(self->at, self->size, 2 * self->size, MREMAP_MAYMOVE), MAP_FAILED);
	EXPECT_EQ(mremap(self->at, 0, self->size, MREMAP_MAYMOVE), MAP_FAILED);
	EXPECT_EQ(mremap(self->at, self->size, self->size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0),
		  MAP_FAILED);
	EXPECT_EQ(pinned_pages(), PAGES);
	EXPECT_EQ(fault_of_read(self->at + self->size - 8), 0);
}

TEST_F(map, moves)
{
	uint8_t *place[2] = { self->at };
	int i;

	ASSERT_EQ(export_write(self->fd, 10, 64, PMUK_EXPORT_TASK), 10);
	place[1] = reserve(self->size);
	ASSERT_NE(place[1], MAP_FAILED);
	for (i = 1; i <= 101; i++) {
		ASSERT_EQ(mremap(self->at, self->size, self->size, MREMAP_MAYMOVE | MREMAP_FIXED,
				 place[i % 2]), place[i % 2]);
		EXPECT_EQ(fault_of_read(self->at), SIGSEGV);
		EXPECT_EQ(pinned_pages(), PAGES);
		self->at = place[i % 2];
	}

	/* The moves have not changed the map. */
	EXPECT_EQ(self->page->data_head, 10 * 64);
	EXPECT_EQ(*(uint32_t *)(self->at + self->page_size), PMUK_EXPORT_RECORD);
	EXPECT_EQ(fault_of_write(&self->page->data_tail, 64), self->page_fault);
	EXPECT_EQ(fault_of_write(self->at + self->page_size, 1), self->data_fault);
	EXPECT_EQ(fault_of_write(self->at + self->size - 8, 1), self->data_fault);
	EXPECT_EQ(munmap(self->at, self->size), 0);
	EXPECT_EQ(pinned_pages(), 0);
	self->at = ASSERT_MAP(self->fd, 0, PAGES, self->prot);
}

TEST_F(map, replaces_itself)
{
	int i;

	for (i = 0; i < 20; i++)
		ASSERT_EQ(mmap(self->at, self->size, self->prot, MAP_SHARED | MAP_FIXED, self->fd,
			       0), self->at);
	EXPECT_EQ(pinned_pages(), PAGES);
	EXPECT_EQ(export_write(self->fd, 1, 64, PMUK_EXPORT_TASK), 1);
	EXPECT_EQ(self->page->data_head, 64);
}

TEST_F(map, is_not_inherited)
{
	EXPECT_TRUE(is_not_in_child(self->at, self->at + self->size - 8));
	EXPECT_EQ(fault_of_read(self->at), 0);
	EXPECT_EQ(pinned_pages(), PAGES);
}

TEST_F(map, may_be_there_several_times)
{
	struct perf_event_mmap_page *other[3];
	int i;

	for (i = 0; i < 3; i++) {
		other[i] = ASSERT_MAP(self->fd, 0, PAGES, PROT_READ);
		EXPECT_EQ(pinned_pages(), (2 + i) * PAGES);
	}
	EXPECT_EQ(export_write(self->fd, 1, 64, PMUK_EXPORT_TASK), 1);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(other[i]->data_head, 64);
		EXPECT_EQ(unmap_pages(other[i], PAGES), 0);
	}
	EXPECT_EQ(pinned_pages(), PAGES);
}

TEST_F(map, others_have_its_size)
{
	static const size_t sizes[] = { 1, 1 + 1, 1 + 4, 1 + 16 };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		EXPECT_EQ(map_pages(self->fd, sizes[i], PROT_READ), MAP_FAILED);
		EXPECT_EQ(errno, variant->flags ? EBUSY : EINVAL);
	}
	EXPECT_EQ(pinned_pages(), PAGES);
	EXPECT_EQ(self->page->data_size, DATA_PAGES * self->page_size);
}

/*
 * If user space moves the tail, the first map decides the size. Each size must have room for as
 * many records as fit.
 */
TEST_F(map, next_one_may_have_another_size)
{
	static const size_t sizes[] = { 2, 1, 16, 8, 1, 64, 0, 2 };
	unsigned int i;
	int room, lost;

	for (i = 0; i < 8; i++) {
		if (self->at)
			ASSERT_EQ(munmap(self->at, self->size), 0);
		self->at = map_pages(self->fd, 1 + sizes[i], self->prot);
		if (!variant->flags && sizes[i] != DATA_PAGES) {
			EXPECT_EQ(errno_of(self->at), EINVAL);
			self->at = NULL;
			continue;
		}
		ASSERT_NE(self->at, MAP_FAILED);
		self->size = (1 + sizes[i]) * self->page_size;
		EXPECT_EQ(pinned_pages(), 1 + sizes[i]);
		EXPECT_EQ(self->page->data_size, sizes[i] * self->page_size);
		EXPECT_EQ(self->page->data_head, 0);
		EXPECT_EQ(fault_of_read(self->at + self->size - 8), 0);
		if (!variant->flags)
			continue;

		/* Except in the first map, a PERF_RECORD_LOST takes the room of one record. */
		room = sizes[i] * self->page_size / 64;
		lost = i && room;
		EXPECT_EQ(export_write(self->fd, room, 64, PMUK_EXPORT_TASK), room - lost);
		EXPECT_EQ(export_write(self->fd, 1, 64, PMUK_EXPORT_TASK), 0);
		EXPECT_EQ(self->page->data_head, (room - lost) * 64 + lost * 24);
	}
}

static void expect_clean(struct __test_metadata *_metadata,
			 const struct perf_event_mmap_page *page)
{
	const uint64_t *word = (const uint64_t *)page, *end = word + getpagesize() / sizeof(*word);

	EXPECT_EQ(page->size, offsetof(struct perf_event_mmap_page, __reserved));
	EXPECT_EQ(page->data_offset, getpagesize());
	EXPECT_EQ(page->capabilities, 2);	/* cap_bit0_is_deprecated */
	for (; word < end; word++)
		EXPECT_NE(*word, 0xa5a5a5a5a5a5a5a5);
}

/* A process writes to the whole page. The next process that maps it finds nothing of that. */
TEST_F(map, begins_with_a_clean_page)
{
	if (!variant->flags)
		SKIP(return, "nobody can write this page");
	memset(self->at, 0xa5, self->page_size);
	ASSERT_EQ(munmap(self->at, self->size), 0);
	self->at = ASSERT_MAP(self->fd, 0, PAGES, self->prot);
	EXPECT_EQ(self->page->data_size, DATA_PAGES * self->page_size);
	expect_clean(_metadata, self->page);
}

TEST(page_without_data_is_clean)
{
	int fd = export_made(.nr_pages = 0, .flags = USER_TAIL);
	struct perf_event_mmap_page *page = ASSERT_MAP(fd, 0, 1, PROT_READ | PROT_WRITE);

	memset(page, 0xa5, getpagesize());
	ASSERT_EQ(unmap_pages(page, 1), 0);
	page = ASSERT_MAP(fd, 0, 1, PROT_READ | PROT_WRITE);
	EXPECT_EQ(page->data_size, 0);
	expect_clean(_metadata, page);
	EXPECT_EQ(unmap_pages(page, 1), 0);
	close(fd);
}

/* A counter that stands still publishes nothing. The next process finds its count all the same. */
TEST(page_of_a_counter_is_clean)
{
	int fd = export_made(.flags = USER_TAIL, .event = PMUK_EXPORT_CLOCK);
	struct perf_event_mmap_page *page = ASSERT_MAP(fd, 0, PAGES, PROT_READ | PROT_WRITE);
	struct perf_event_mmap_page before;

	ASSERT_EQ(ioctl(fd, PMUK_EXPORT_DISABLE), 0);
	before = *page;
	EXPECT_GT(before.offset, 0);
	EXPECT_GT(before.time_running, 0);
	memset(page, 0xa5, getpagesize());
	ASSERT_EQ(unmap_pages(page, PAGES), 0);
	page = ASSERT_MAP(fd, 0, PAGES, PROT_READ | PROT_WRITE);
	expect_clean(_metadata, page);
	EXPECT_EQ(page->lock % 2, 0);
	EXPECT_EQ(page->index, 0);
	EXPECT_EQ(page->offset, before.offset);
	EXPECT_EQ(page->time_enabled, before.time_enabled);
	EXPECT_EQ(page->time_running, before.time_running);
	EXPECT_EQ(unmap_pages(page, PAGES), 0);
	close(fd);
}

/*
 * The last unmap ends user space's choice of a size, its tail, and the charge for the pages.
 * Records that are written afterwards are discarded.
 */
TEST_F(map, leaves_nothing_when_unmapped)
{
	uint64_t own = DATA_PAGES * self->page_size;

	ASSERT_EQ(export_write(self->fd, 3, 64, PMUK_EXPORT_TASK), 3);
	ASSERT_EQ(munmap(self->at, self->size), 0);
	if (variant->flags) {
		self->size = (1 + 8 * DATA_PAGES) * self->page_size;
		self->at = ASSERT_MAP(self->fd, 0, 1 + 8 * DATA_PAGES, self->prot);
		EXPECT_EQ(export_stat(self->fd).head, 0);
		EXPECT_EQ(export_write(self->fd, 3, 64, PMUK_EXPORT_TASK), 3);
		ASSERT_EQ(munmap(self->at, self->size), 0);
		EXPECT_EQ(export_write(self->fd, 10, 64, PMUK_EXPORT_TASK), 0);
		EXPECT_EQ(export_stat(self->fd).discarded, 10);
		EXPECT_EQ(export_stat(self->fd).lost, 0);
	}
	self->size = PAGES * self->page_size;
	self->at = ASSERT_MAP(self->fd, 0, PAGES, self->prot);
	EXPECT_EQ(self->page->data_size, own);
	EXPECT_EQ(self->page->data_head, variant->flags ? 0 : 3 * 64);
}

TEST_F(map, outlives_the_descriptor)
{
	EXPECT_EQ(close(self->fd), 0);
	EXPECT_EQ(nr_buffers(), self->buffers + 1);
	EXPECT_EQ(fault_of_read(self->at + self->size - 8), 0);
	EXPECT_EQ(munmap(self->at, self->size), 0);
	EXPECT_EQ(nr_buffers(), self->buffers);
	self->at = NULL;
	self->fd = -1;
}

/* Records stay in the map. Nobody can add records any more, not even a running counter. */
TEST_F(map, outlives_the_buffer)
{
	int i, fd = export_made(.flags = variant->flags, .event = PMUK_EXPORT_CLOCK,
				.period = 100000);
	uint8_t *before = malloc(self->size), *at;
	struct perf_event_mmap_page *page;

	ASSERT_GE(fd, 0);
	at = ASSERT_MAP(fd, 0, PAGES, PROT_READ);
	page = (void *)at;
	for (i = 0; i < 2000 && LOAD(page->data_head) < 5 * 24; i++)
		usleep(1000);
	EXPECT_GE(LOAD(page->data_head), 5 * 24);

	ASSERT_EQ(ioctl(fd, PMUK_EXPORT_DESTROY), 0);
	memcpy(before, at, self->size);
	EXPECT_EQ(errno_of(export_write(fd, 1, 64, PMUK_EXPORT_TASK)), ENODEV);
	EXPECT_EQ(errno_of(map_pages(fd, PAGES, PROT_READ)), ENODEV);
	EXPECT_EQ(nr_buffers(), self->buffers + 2);
	usleep(50000);
	EXPECT_EQ(((struct perf_event_mmap_page *)before)->data_head, page->data_head);
	EXPECT_EQ(memcmp(before + self->page_size, at + self->page_size,
			 self->size - self->page_size), 0);
	EXPECT_EQ(munmap(at, self->size), 0);
	close(fd);
	EXPECT_EQ(nr_buffers(), self->buffers + 1);
	free(before);
}

TEST_F(map, ends_with_its_process)
{
	int status, fd;
	pid_t child = fork();

	ASSERT_GE(child, 0);
	if (!child) {
		fd = export_made(.flags = variant->flags);
		if (fd < 0 || map_pages(fd, PAGES, PROT_READ) == MAP_FAILED ||
		    map_pages(fd, PAGES, PROT_READ) == MAP_FAILED ||
		    map_pages(self->fd, PAGES, PROT_READ) == MAP_FAILED ||
		    pinned_pages() != 3 * PAGES || nr_buffers() != self->buffers + 2)
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	ASSERT_EQ(waitpid(child, &status, 0), child);
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(nr_buffers(), self->buffers + 1);
	EXPECT_EQ(fault_of_read(self->at), 0);
}

/* The user is nobody, whose RLIMIT_MEMLOCK is low. Root has opened the descriptor. */
FIXTURE(limit)
{
	int fd;
	struct perf_event_mmap_page *page;
};

FIXTURE_VARIANT(limit)
{
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(limit, fixed) { .flags = 0 };
FIXTURE_VARIANT_ADD(limit, user_tail) { .flags = USER_TAIL };

FIXTURE_SETUP(limit)
{
	self->fd = export_made(.flags = variant->flags);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(stay_on(0), 0);
	ASSERT_EQ(export_write(self->fd, 5, 64, PMUK_EXPORT_TASK), 5);
	ASSERT_EQ(be_limited(65534, 3 * PAGES - 1), 0);
	self->page = ASSERT_MAP(self->fd, 0, PAGES, PROT_READ);
}

FIXTURE_TEARDOWN(limit)
{
	EXPECT_EQ(unmap_pages(self->page, PAGES), 0);
	EXPECT_EQ(pinned_pages(), 0);
	close(self->fd);
}

TEST_F(limit, counts_each_map)
{
	void *second = ASSERT_MAP(self->fd, 0, PAGES, PROT_READ), *third;

	EXPECT_EQ(pinned_pages(), 2 * PAGES);
	EXPECT_EQ(errno_of(map_pages(self->fd, PAGES, PROT_READ)), EPERM);
	EXPECT_EQ(pinned_pages(), 2 * PAGES);

	EXPECT_EQ(unmap_pages(second, PAGES), 0);
	EXPECT_EQ(pinned_pages(), PAGES);
	third = ASSERT_MAP(self->fd, 0, PAGES, PROT_READ);
	EXPECT_EQ(unmap_pages(third, PAGES), 0);
}

/* The limit is checked before memory is allocated. A refused map keeps the records. */
TEST_F(limit, is_looked_at_first)
{
	size_t many = variant->flags ? 1024 : DATA_PAGES;
	struct rlimit none = { 0, 0 };
	uint64_t head;

	EXPECT_EQ(unmap_pages(self->page, PAGES), 0);
	ASSERT_EQ(export_write(self->fd, 5, 64, PMUK_EXPORT_TASK), variant->flags ? 0 : 5);
	head = export_stat(self->fd).head;
	ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	EXPECT_EQ(errno_of(map_pages(self->fd, 1 + many, PROT_READ)), EPERM);
	EXPECT_EQ(pinned_pages(), 0);
	EXPECT_GT(head, 0);
	EXPECT_EQ(export_stat(self->fd).head, head);
	self->page = reserve(PAGES * getpagesize());
}

/* Waits for the first record, and checks its header. */
static bool begins_well(const uint8_t *at)
{
	const struct perf_event_mmap_page *page = (const void *)at;
	const struct perf_event_header *first = (const void *)(at + getpagesize());
	uint64_t end = now_ns() + PATIENCE;

	while (!__atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE)) {
		if (now_ns() > end)
			return false;
		sched_yield();
	}
	return (first->type == PMUK_EXPORT_RECORD && first->size == 64) ||
		(first->type == PERF_RECORD_LOST && first->size == 24);
}

TEST(maps_come_and_go_under_load)
{
	int i, buffers = nr_buffers(), fd = export_made(.flags = USER_TAIL);
	struct load load[PMUK_EXPORT_CONTEXTS], sum;
	size_t pages;
	uint8_t *at;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(stay_away(), 0);
	ASSERT_EQ(load_start(load, fd), 0);
	for (i = 0; i < 150; i++) {
		pages = 1 + (1 << i % 5);
		at = ASSERT_MAP(fd, 0, pages, PROT_READ | PROT_WRITE);
		EXPECT_TRUE(begins_well(at));
		EXPECT_EQ(unmap_pages(at, pages), 0);
	}
	sum = load_stop(load);
	EXPECT_GT(sum.written, 1000);
	EXPECT_EQ(sum.tried - sum.written, export_stat(fd).lost + export_stat(fd).discarded);
	EXPECT_EQ(pinned_pages(), 0);
	close(fd);
	EXPECT_EQ(nr_buffers(), buffers);
}

static void *remap_run(void *data)
{
	struct load *load = data;
	void *at;

	for (;;) {
		at = map_pages(load->fd, PAGES, PROT_READ);
		if (at == MAP_FAILED)
			return NULL;
		STORE(load->written, load->written + 1);
		unmap_pages(at, PAGES);
	}
}

/*
 * Waits until the writers and the mapper are active. An additional delay makes the buffer end at a
 * different point each @turn.
 */
static void wait_for_load(struct load load[], struct load *mapper, int turn)
{
	uint64_t end = now_ns() + PATIENCE;

	while ((LOAD(mapper->written) < 3 || !LOAD(load[PMUK_EXPORT_TASK].tried) ||
		!LOAD(load[PMUK_EXPORT_IRQ].tried)) && now_ns() < end)
		usleep(500);
	usleep(turn * 50);
}

/* The buffer ends while one thread writes in each of two contexts, and another thread maps it. */
static void end_under_load(struct __test_metadata *_metadata, bool destroy)
{
	struct load load[PMUK_EXPORT_CONTEXTS], mapper, sum;
	int i, fd, buffers = nr_buffers();
	uint64_t tried = 0, maps = 0;

	for (i = 0; i < 40; i++) {
		fd = export_made();
		ASSERT_GE(fd, 0);
		ASSERT_EQ(load_start(load, fd), 0);
		mapper = (struct load){ .fd = fd };
		ASSERT_EQ(pthread_create(&mapper.thread, NULL, remap_run, &mapper), 0);
		wait_for_load(load, &mapper, i);
		EXPECT_EQ(destroy ? ioctl(fd, PMUK_EXPORT_DESTROY) : close(fd), 0);
		sum = load_stop(load);
		pthread_join(mapper.thread, NULL);
		EXPECT_EQ(nr_buffers(), buffers);
		if (destroy)
			close(fd);
		tried += sum.tried;
		maps += mapper.written;
	}
	EXPECT_GE(tried, 40 * 2 * 50);
	EXPECT_GE(maps, 40 * 3);
	EXPECT_EQ(pinned_pages(), 0);
}

TEST(files_are_closed_under_load)
{
	end_under_load(_metadata, false);
}

TEST(buffers_are_destroyed_under_load)
{
	end_under_load(_metadata, true);
}

/*
 * A map that is larger than the memory fails with ENOMEM. The OOM killer kills nobody, and the
 * records stay.
 */
TEST(memory_is_not_used_up)
{
	size_t half = TOO_MANY / 2, physical = sysconf(_SC_PHYS_PAGES);
	int fd = export_made(.flags = USER_TAIL);

	if (physical > half)
		SKIP(return, "there is memory for the largest buffer");
	ASSERT_GE(fd, 0);
	ASSERT_EQ(stay_on(0), 0);
	ASSERT_EQ(export_write(fd, 5, 64, PMUK_EXPORT_TASK), 5);
	EXPECT_EQ(errno_of(map_pages(fd, 1 + half, PROT_READ)), ENOMEM);
	EXPECT_EQ(pinned_pages(), 0);
	EXPECT_EQ(export_stat(fd).head, 5 * 64);
	close(fd);
}

/*
 * A process may map the buffer if it has opened the file for reading only. The map is then
 * read-only, too.
 */
TEST(file_may_be_open_for_reading)
{
	struct pmuk_export_attr attr = { .nr_pages = DATA_PAGES, .flags = USER_TAIL };
	int fd = open("/dev/pmuk_export", O_RDONLY);
	void *at;

	ASSERT_EQ(export_create(fd, &attr), 0);
	EXPECT_EQ(errno_of(map_pages(fd, PAGES, PROT_READ | PROT_WRITE)), EACCES);
	at = ASSERT_MAP(fd, 0, PAGES, PROT_READ);
	EXPECT_EQ(mprotect(at, PAGES * getpagesize(), PROT_READ | PROT_WRITE), -1);
	EXPECT_EQ(unmap_pages(at, PAGES), 0);
	close(fd);
}

TEST_HARNESS_MAIN
