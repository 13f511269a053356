// SPDX-License-Identifier: GPL-2.0
/*
 * The tests map the AUX area of a buffer of /dev/pmuk_export: perf's rules for such maps, rights,
 * the end of a map, and the accounting of its pages.
 */
#include <sys/param.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "export.h"
#include "harness.h"

#define AUX_PAGES	16

/* Each variant maps an AUX area in one way, which is refused with .error, or succeeds. */
FIXTURE(geometry)
{
	int fd;
	struct perf_event_mmap_page *page;
};

/* User space first writes .announce_* to the control page, in bytes, unless they are 0. */
FIXTURE_VARIANT(geometry)
{
	unsigned int flags;
	size_t announce_offset;
	size_t announce_size;
	size_t at;
	size_t pages;
	int prot;
	int map;
	int error;
};

#define KIB		1024
#define GEOMETRY(name, ...)			\
	FIXTURE_VARIANT_ADD(geometry, name)	\
	{					\
		.at = PAGES,			\
		.pages = AUX_PAGES,		\
		.prot = PROT_READ,		\
		.map = MAP_SHARED,		\
		__VA_ARGS__			\
	}

GEOMETRY(fixed);
GEOMETRY(fixed_half,			.pages = 8,		.error = EINVAL);
GEOMETRY(fixed_twice,			.pages = 32,		.error = EINVAL);
GEOMETRY(fixed_no_power_of_two,		.pages = 15,		.error = EINVAL);
GEOMETRY(fixed_at_another_offset,	.at = PAGES + 1,	.error = EINVAL);
GEOMETRY(fixed_in_the_data,		.at = PAGES - 1,	.error = EINVAL);
GEOMETRY(fixed_behind_itself,		.at = PAGES + AUX_PAGES, .error = EINVAL);
GEOMETRY(fixed_private,			.map = MAP_PRIVATE,	.error = EINVAL);
GEOMETRY(fixed_executable,		.prot = PROT_READ | PROT_EXEC,	.error = EINVAL);
GEOMETRY(fixed_writable,		.prot = PROT_READ | PROT_WRITE,	.error = EACCES);
GEOMETRY(user_tail,			.flags = USER_TAIL);
GEOMETRY(user_tail_writable,		.flags = USER_TAIL, .prot = PROT_READ | PROT_WRITE);
GEOMETRY(user_tail_private,		.flags = USER_TAIL, .map = MAP_PRIVATE,	.error = EINVAL);
GEOMETRY(user_tail_farther,		.flags = USER_TAIL, .announce_offset = 256 * KIB,
					.at = 64);
GEOMETRY(user_tail_farther_unannounced,	.flags = USER_TAIL, .at = 64,		.error = EINVAL);
GEOMETRY(user_tail_announced_elsewhere,	.flags = USER_TAIL, .announce_offset = 256 * KIB,
					.error = EINVAL);
GEOMETRY(user_tail_in_the_data,		.flags = USER_TAIL, .announce_offset = 16 * KIB,
					.at = 4,				.error = EINVAL);
GEOMETRY(user_tail_no_page,		.flags = USER_TAIL, .announce_offset = 256 * KIB + 8,
					.at = 64,				.error = EINVAL);
GEOMETRY(user_tail_far_away,		.flags = USER_TAIL, .announce_offset = -4096UL,
					.at = 64,				.error = EINVAL);
GEOMETRY(user_tail_half,		.flags = USER_TAIL, .announce_size = 32 * KIB,
					.pages = 8,				.error = EINVAL);
GEOMETRY(user_tail_twice,		.flags = USER_TAIL, .announce_size = 128 * KIB,
					.pages = 32,				.error = EINVAL);
GEOMETRY(user_tail_size_unannounced,	.flags = USER_TAIL, .announce_size = 32 * KIB,
					.error = EINVAL);

FIXTURE_SETUP(geometry)
{
	if (getpagesize() != 4 * KIB)
		SKIP(return, "written for pages of 4 KiB");
	self->fd = export_made(.flags = variant->flags, .aux_pages = AUX_PAGES);
	ASSERT_GE(self->fd, 0);
	self->page = ASSERT_MAP(self->fd, 0, PAGES,
				variant->flags ? PROT_READ | PROT_WRITE : PROT_READ);
	EXPECT_EQ(self->page->aux_offset, PAGES * 4 * KIB);
	EXPECT_EQ(self->page->aux_size, AUX_PAGES * 4 * KIB);
	if (variant->announce_offset)
		self->page->aux_offset = variant->announce_offset;
	if (variant->announce_size)
		self->page->aux_size = variant->announce_size;
}

FIXTURE_TEARDOWN(geometry)
{
	unmap_pages(self->page, PAGES);
	EXPECT_EQ(pinned_pages(), 0);
	close(self->fd);
}

TEST_F(geometry, maps)
{
	size_t page_size = getpagesize();
	void *aux = mmap(NULL, variant->pages * page_size, variant->prot, variant->map, self->fd,
			 variant->at * page_size);

	if (variant->error) {
		EXPECT_EQ(errno_of(aux), variant->error);
		EXPECT_EQ(pinned_pages(), PAGES);
		return;
	}
	ASSERT_NE(aux, MAP_FAILED);
	EXPECT_EQ(pinned_pages(), PAGES + AUX_PAGES);
	EXPECT_EQ(unmap_pages(aux, AUX_PAGES), 0);
	EXPECT_EQ(pinned_pages(), PAGES);
}

TEST(no_area_no_map)
{
	int fd = export_made();

	ASSERT_GE(fd, 0);
	EXPECT_EQ(errno_of(map_at(fd, PAGES, AUX_PAGES, PROT_READ)), EINVAL);
	close(fd);
}

/* The fixture has a buffer of each mode, mapped together with its AUX area. */
FIXTURE(map)
{
	int fd;
	int buffers;		/* number of buffers before the test */
	size_t page_size, size;		/* @size is the area's */
	int prot;			/* protection of the control page and the data */
	struct perf_event_mmap_page *page;
	uint8_t *aux;
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
	self->size = AUX_PAGES * self->page_size;
	self->prot = variant->flags ? PROT_READ | PROT_WRITE : PROT_READ;
	self->fd = export_made(.flags = variant->flags, .aux_pages = AUX_PAGES);
	self->page = export_begin(self->fd, self->prot);
	ASSERT_NE(self->page, MAP_FAILED);
	self->aux = ASSERT_MAP(self->fd, PAGES, AUX_PAGES, PROT_READ);
}

FIXTURE_TEARDOWN(map)
{
	unmap_pages(self->page, PAGES);	/* the test may have unmapped it */
	if (self->aux)
		unmap_pages(self->aux, AUX_PAGES);
	close(self->fd);
	EXPECT_EQ(pinned_pages(), 0);
	EXPECT_EQ(nr_buffers(), self->buffers);
}

TEST_F(map, has_what_is_written)
{
	uint64_t *word = (uint64_t *)self->aux, p;

	EXPECT_EQ(LOAD(self->page->aux_head), 0);
	ASSERT_EQ(export_aux_write(self->fd, 3 * 4096, 512), 3 * 4096);
	EXPECT_EQ(LOAD(self->page->aux_head), 3 * 4096);
	for (p = 0; p < 3 * 4096; p += 8)
		ASSERT_EQ(word[p / 8], pmuk_export_fill(p, 0));
	EXPECT_EQ(word[p / 8], 0);
}

/*
 * User space finds no way to write to the area. Even a process that may write the control page has
 * none.
 */
TEST_F(map, cannot_be_written)
{
	int zero = open("/dev/zero", O_RDONLY), mem = open("/proc/self/mem", O_RDWR);
	size_t i;

	ASSERT_GE(zero, 0);
	ASSERT_GE(mem, 0);
	if (mprotect(self->aux, self->size, PROT_READ | PROT_WRITE))
		EXPECT_EQ(errno, EACCES);
	for (i = 0; i < AUX_PAGES; i++) {
		uint64_t *at = (uint64_t *)(self->aux + i * self->page_size);

		EXPECT_EQ(fault_of_write(at, 1), variant->flags ? SIGBUS : SIGSEGV);
		EXPECT_EQ(read(zero, at, 64), -1);
		EXPECT_EQ(pwrite(mem, "12345678", 8, (uintptr_t)at), -1);
		EXPECT_EQ(fault_of_read(at), 0);
		EXPECT_EQ(*at, 0);
	}
}

TEST_F(map, rights_cannot_be_gained_later)
{
	EXPECT_EQ(errno_of(mprotect(self->aux, self->size, PROT_READ | PROT_EXEC)), EACCES);
	EXPECT_EQ(mprotect(self->aux, self->size, PROT_READ | PROT_WRITE), variant->flags ? 0 : -1);
	EXPECT_EQ(mprotect(self->aux, self->size, PROT_NONE), 0);
	EXPECT_EQ(fault_of_read(self->aux), SIGSEGV);
	EXPECT_EQ(mprotect(self->aux, self->size, PROT_READ), 0);
	EXPECT_EQ(fault_of_read(self->aux), 0);
}

TEST_F(map, splits_for_nobody)
{
	uint8_t *at, *end = self->aux + self->size;

	for (at = self->aux; at < end; at += self->page_size) {
		EXPECT_EQ(errno_of(munmap(at, self->page_size)), EINVAL);
		EXPECT_EQ(mprotect(at, self->page_size, PROT_NONE), -1);
	}
	EXPECT_EQ(mremap(self->aux, self->size, self->page_size, 0), MAP_FAILED);
	EXPECT_EQ(mremap(self->aux, self->size, 2 * self->size, MREMAP_MAYMOVE), MAP_FAILED);
	EXPECT_EQ(pinned_pages(), PAGES + AUX_PAGES);
}

TEST_F(map, moves)
{
	size_t size = self->size;
	void *to = reserve(size);

	ASSERT_NE(to, MAP_FAILED);
	ASSERT_EQ(export_aux_write(self->fd, 64, 64), 64);
	ASSERT_EQ(mremap(self->aux, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to), to);
	EXPECT_EQ(fault_of_read(self->aux), SIGSEGV);
	EXPECT_EQ(pinned_pages(), PAGES + AUX_PAGES);
	self->aux = to;
	EXPECT_EQ(*(uint64_t *)self->aux, pmuk_export_fill(0, 0));
}

TEST_F(map, is_not_inherited)
{
	EXPECT_TRUE(is_not_in_child(self->aux, self->aux));
	EXPECT_EQ(fault_of_read(self->aux), 0);
}

/* Several maps of the area have the same offset, even if the page announces another offset. */
TEST_F(map, others_are_at_its_offset)
{
	void *other = ASSERT_MAP(self->fd, PAGES, AUX_PAGES, PROT_READ);

	EXPECT_EQ(pinned_pages(), PAGES + 2 * AUX_PAGES);
	EXPECT_EQ(unmap_pages(other, AUX_PAGES), 0);
	if (!variant->flags)
		return;
	self->page->aux_offset = 64 * self->page_size;
	EXPECT_EQ(errno_of(map_at(self->fd, 64, AUX_PAGES, PROT_READ)), EINVAL);
	EXPECT_EQ(unmap_pages(self->aux, AUX_PAGES), 0);
	self->aux = ASSERT_MAP(self->fd, 64, AUX_PAGES, PROT_READ);
}

/*
 * Maps @pages pages of data for a moment. The control page then announces the AUX area at page
 * @behind of the file.
 */
static void expect_announced(struct __test_metadata *_metadata, int fd, size_t pages,
			     size_t behind)
{
	struct perf_event_mmap_page *page = ASSERT_MAP(fd, 0, pages, PROT_READ | PROT_WRITE);

	EXPECT_EQ(page->aux_offset, behind * getpagesize());
	EXPECT_EQ(unmap_pages(page, pages), 0);
}

/* If data are mapped again with a larger size, they may not overlap the offset of a mapped area. */
TEST_F(map, is_in_the_way_of_data)
{
	EXPECT_EQ(unmap_pages(self->page, PAGES), 0);
	EXPECT_EQ(map_pages(self->fd, 1 + 16, PROT_READ), MAP_FAILED);
	EXPECT_EQ(errno, variant->flags ? EBUSY : EINVAL);
	if (!variant->flags)
		return;		/* all maps have the same size */
	expect_announced(_metadata, self->fd, 1 + 4, PAGES);
	EXPECT_EQ(unmap_pages(self->aux, AUX_PAGES), 0);
	self->aux = NULL;
	expect_announced(_metadata, self->fd, 1 + 16, 1 + 16);
	self->page = map_pages(self->fd, PAGES, PROT_READ);
}

/* A process may write any positions to the page. The next process finds the true ones. */
TEST_F(map, positions_are_true_again)
{
	if (!variant->flags)
		SKIP(return, "nobody can write this page");
	ASSERT_EQ(export_aux_write(self->fd, 3 * 4096, 4096), 3 * 4096);
	memset(self->page, 0xa5, self->page_size);
	EXPECT_EQ(unmap_pages(self->page, PAGES), 0);
	self->page = ASSERT_MAP(self->fd, 0, PAGES, PROT_READ | PROT_WRITE);
	EXPECT_EQ(LOAD(self->page->aux_head), 3 * 4096);
	EXPECT_EQ(self->page->aux_tail, 3 * 4096);
	EXPECT_EQ(self->page->aux_offset, PAGES * self->page_size);
	ASSERT_EQ(export_aux_write(self->fd, 4096, 4096), 4096);
	EXPECT_EQ(LOAD(self->page->aux_head), 4 * 4096);
}

/* If the area is not mapped, a new map of the data moves the area's announced offset. */
TEST_F(map, is_announced_behind_data)
{
	if (!variant->flags)
		SKIP(return, "these are of one size anyway");
	EXPECT_EQ(unmap_pages(self->aux, AUX_PAGES), 0);
	EXPECT_EQ(unmap_pages(self->page, PAGES), 0);
	self->page = ASSERT_MAP(self->fd, 0, 1 + 1, PROT_READ | PROT_WRITE);
	self->aux = ASSERT_MAP(self->fd, 1 + 1, AUX_PAGES, PROT_READ);
	EXPECT_EQ(unmap_pages(self->page, 1 + 1), 0);
	EXPECT_EQ(unmap_pages(self->aux, AUX_PAGES), 0);
	self->page = ASSERT_MAP(self->fd, 0, PAGES, PROT_READ);
	self->aux = ASSERT_MAP(self->fd, PAGES, AUX_PAGES, PROT_READ);
}

TEST_F(map, outlives_the_buffer)
{
	ASSERT_EQ(export_aux_write(self->fd, 64, 64), 64);
	ASSERT_EQ(ioctl(self->fd, PMUK_EXPORT_DESTROY), 0);
	EXPECT_EQ(export_aux_write(self->fd, 64, 64), -1);
	EXPECT_EQ(map_at(self->fd, PAGES, AUX_PAGES, PROT_READ), MAP_FAILED);
	EXPECT_EQ(((uint64_t *)self->aux)[7], pmuk_export_fill(56, 0));
	EXPECT_EQ(((uint64_t *)self->aux)[8], 0);
	EXPECT_EQ(nr_buffers(), self->buffers + 1);
}

/* If RLIMIT_MEMLOCK does not allow the map, the map fails, and nothing is charged. */
TEST_F(map, is_paid_for)
{
	ASSERT_EQ(be_limited(65534, PAGES + 2 * AUX_PAGES - 1), 0);
	EXPECT_EQ(errno_of(map_at(self->fd, PAGES, AUX_PAGES, PROT_READ)), EPERM);
	EXPECT_EQ(pinned_pages(), PAGES + AUX_PAGES);
	EXPECT_EQ(unmap_pages(self->aux, AUX_PAGES), 0);
	self->aux = ASSERT_MAP(self->fd, PAGES, AUX_PAGES, PROT_READ);
	self->buffers = nr_buffers();	/* -1, as in the teardown: the new user opens no device */
}

/* ---- what perf_event_mlock_kb says is free ---- */

#define EACH_CPU	3		/* pages for each CPU */

FIXTURE(allowance)
{
	int fd;
	long pages;			/* free pages of the user */
};

/*
 * A user of the test's own may pin exactly the pages of data and of one AUX area that are not free.
 */
FIXTURE_SETUP(allowance)
{
	self->pages = EACH_CPU * nr_cpus();
	ASSERT_LT(self->pages, 8 * AUX_PAGES);
	self->fd = export_made(.flags = USER_TAIL, .aux_pages = 8 * AUX_PAGES);
	ASSERT_GE(self->fd, 0);
	ASSERT_TRUE(let_be_free(EACH_CPU));
	ASSERT_EQ(be_limited(65533, PAGES + 8 * AUX_PAGES - self->pages), 0);
}

FIXTURE_TEARDOWN(allowance)
{
	EXPECT_EQ(pinned_pages(), 0);
	close(self->fd);
}

TEST_F(allowance, comes_before_what_is_pinned)
{
	size_t size = 8 * AUX_PAGES * getpagesize();
	long data = MAX(0, PAGES - self->pages);
	long all = PAGES + 8 * AUX_PAGES - self->pages;
	void *page, *aux, *to;
	int i;

	for (i = 0; i < 5; i++) {
		page = ASSERT_MAP(self->fd, 0, PAGES, PROT_READ);
		if (!i && pinned_pages() == PAGES) {
			EXPECT_EQ(unmap_pages(page, PAGES), 0);
			SKIP(return, "this kernel's perf core accounts nobody else's maps");
		}
		EXPECT_EQ(pinned_pages(), data);
		aux = ASSERT_MAP(self->fd, PAGES, 8 * AUX_PAGES, PROT_READ);
		EXPECT_EQ(pinned_pages(), all);
		/* The limit is used up. */
		EXPECT_EQ(errno_of(map_at(self->fd, PAGES, 8 * AUX_PAGES, PROT_READ)), EPERM);
		EXPECT_EQ(pinned_pages(), all);
		/* mremap() charges nothing. */
		to = reserve(size);
		aux = mremap(aux, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to);
		ASSERT_EQ(aux, to);
		EXPECT_EQ(pinned_pages(), all);
		EXPECT_EQ(unmap_pages(aux, 8 * AUX_PAGES), 0);
		EXPECT_EQ(unmap_pages(page, PAGES), 0);
		EXPECT_EQ(pinned_pages(), 0);
	}
}

/* Maps of perf's own buffers use the same allowance. */
TEST_F(allowance, is_shared_with_perf)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
					.config = PERF_COUNT_SW_DUMMY, .exclude_kernel = 1 };
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	void *perf, *page;

	if (fd < 0 && errno == EACCES)
		SKIP(return, "perf is not for everybody here");
	ASSERT_GE(fd, 0);
	perf = ASSERT_MAP(fd, 0, 3, PROT_READ);
	ASSERT_EQ(pinned_pages(), 0);
	page = ASSERT_MAP(self->fd, 0, PAGES, PROT_READ);
	if (pinned_pages() != PAGES) {
		EXPECT_EQ(pinned_pages(), MAX(0, PAGES + 3 - self->pages));
		EXPECT_EQ(unmap_pages(perf, 3), 0);
		EXPECT_EQ(unmap_pages(page, PAGES), 0);
		page = ASSERT_MAP(self->fd, 0, PAGES, PROT_READ);
		EXPECT_EQ(pinned_pages(), MAX(0, PAGES - self->pages));
		EXPECT_EQ(unmap_pages(page, PAGES), 0);
		return;
	}
	EXPECT_EQ(unmap_pages(perf, 3), 0);
	EXPECT_EQ(unmap_pages(page, PAGES), 0);
	SKIP(return, "this kernel's perf core accounts nobody else's maps");
}

/* Returns the errno of a map by a user who may pin no page. */
static int errno_of_poor(int fd)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(be_limited(65532, 0) ? EIO : errno_of(map_pages(fd, PAGES, PROT_READ)));
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static int errno_of_poor_with(int fd, const char *sysctl, int value)
{
	char path[64];
	char before[16];
	int ret = EIO;

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", sysctl);
	if (read_file(path, before, sizeof(before)) > 0 && !write_file(path, "%d", value)) {
		ret = errno_of_poor(fd);
		if (write_file(path, "%s", before))
			ret = EIO;
	}
	return ret;
}

/* Both sysctls lift the limits of perf's own maps when they are -1. */
TEST(limits_are_lifted)
{
	int fd = export_made(.flags = USER_TAIL);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(errno_of_poor(fd), EPERM);
	if (errno_of_poor_with(fd, "perf_event_mlock_kb", 4096) == EPERM)
		SKIP(return, "this kernel's perf core accounts nobody else's maps");
	EXPECT_EQ(errno_of_poor_with(fd, "perf_event_mlock_kb", -1), 0);
	EXPECT_EQ(errno_of_poor_with(fd, "perf_event_paranoid", -1), 0);
	EXPECT_EQ(errno_of_poor(fd), EPERM);
	close(fd);
}

TEST_HARNESS_MAIN
