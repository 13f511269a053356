// SPDX-License-Identifier: GPL-2.0
/*
 * A task reads its own cycles from the control page of /dev/pmuk_self, by the protocol of perf's
 * self-monitoring page. If it may read the register, it needs no system call.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "harness.h"
#include "self.h"

/* Reads the page as the comment in struct perf_event_mmap_page says. */
static uint64_t read_self(struct perf_event_mmap_page *page, int *direct)
{
	uint64_t count, reg;
	uint32_t lock, index;

	do {
		lock = LOAD(page->lock);
		barrier();
		count = LOAD(page->offset);
		index = LOAD(page->index);
		*direct = page->cap_user_rdpmc && index;
		if (*direct) {
			reg = read_register(index - 1) << (64 - page->pmc_width);
			count += (int64_t)reg >> (64 - page->pmc_width);
		}
		barrier();
	} while (LOAD(page->lock) != lock || (lock & 1));
	return count;
}

FIXTURE(self)
{
	int fd;
	int direct;		/* the register can be read directly */
	struct perf_event_mmap_page *page;
};

FIXTURE_SETUP(self)
{
	write_file(USER_ACCESS, "1");
	self->page = NULL;
	self->fd = open("/dev/pmuk_self", O_RDWR);
	if (self->fd < 0 && errno == ENOENT)
		SKIP(return, "no PMU that counts cycles, or no /dev/pmuk_self");
	ASSERT_GE(self->fd, 0);
	self->page = mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED, self->fd, 0);
	ASSERT_NE(self->page, MAP_FAILED);
	read_self(self->page, &self->direct);
}

FIXTURE_TEARDOWN(self)
{
	if (self->page)
		munmap(self->page, getpagesize());
	if (self->fd >= 0)
		close(self->fd);
	write_file(USER_ACCESS, USER_ACCESS_WAS);
}

static uint64_t read_call(int fd)
{
	uint64_t count = 0;

	return read(fd, &count, sizeof(count)) == sizeof(count) ? count : ~0ULL;
}

/* Counts from the page lie between those of two system calls, and never decrease. */
static int check_reads(int fd, struct perf_event_mmap_page *page, int n, uint64_t *last,
		       int *direct)
{
	uint64_t before, self, after;

	while (n--) {
		before = read_call(fd);
		self = read_self(page, direct);
		after = read_call(fd);
		if (!*direct)
			continue;
		if (self < before || self > after || self < *last) {
			printf("# %llu, then %llu, then %llu; before these %llu\n",
			       (unsigned long long)before, (unsigned long long)self,
			       (unsigned long long)after, (unsigned long long)*last);
			return 0;
		}
		*last = self;
	}
	return 1;
}

TEST_F(self, reads_its_own_counter)
{
	uint64_t last = 0;

	if (!self->direct)
		SKIP(return, "this kernel lets nobody read registers: index is 0");
	EXPECT_TRUE(check_reads(self->fd, self->page, 20000, &last, &self->direct));
	EXPECT_TRUE(self->direct);
}

TEST_F(self, reads_across_migration)
{
	int i, cpus = nr_cpus(), moves = 0;
	uint64_t last = 0;

	if (!self->direct)
		SKIP(return, "this kernel lets nobody read registers: index is 0");
	for (i = 0; i < 500; i++) {
		ASSERT_EQ(stay_on(i % cpus), 0);
		moves += sched_getcpu() == i % cpus;
		ASSERT_TRUE(check_reads(self->fd, self->page, 5, &last, &self->direct));
		ASSERT_TRUE(self->direct);
	}
	EXPECT_EQ(moves, 500);
}

#ifdef __x86_64__
/* Returns whether this process may read a register. */
static bool may_read(void)
{
	int sig;

	signal(SIGSEGV, fault_handler);
	sig = sigsetjmp(fault_jump, 1);
	if (!sig)
		read_register(0);
	signal(SIGSEGV, SIG_DFL);
	return !sig;
}

TEST_F(self, child_has_no_map_and_may_not_read)
{
	int status;
	pid_t pid;

	if (!self->direct)
		SKIP(return, "this kernel lets nobody read registers: index is 0");
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(may_read());
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	EXPECT_TRUE(may_read());
}

TEST_F(self, unmapped_page_allows_nothing)
{
	if (!self->direct)
		SKIP(return, "this kernel lets nobody read registers: index is 0");
	munmap(self->page, getpagesize());
	self->page = NULL;
	EXPECT_FALSE(may_read());
}
#endif

/*
 * If user space may not read registers, the index is 0, and the page still has a consistent count.
 */
TEST_F(self, page_is_consistent_anyway)
{
	uint64_t count, before;

	write_file(USER_ACCESS, "0");
	close(self->fd);
	munmap(self->page, getpagesize());
	self->fd = open("/dev/pmuk_self", O_RDWR);
	ASSERT_GE(self->fd, 0);
	self->page = mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED, self->fd, 0);
	ASSERT_NE(self->page, MAP_FAILED);

	before = read_call(self->fd);
	count = read_self(self->page, &self->direct);
	EXPECT_EQ(self->direct, 0);
	EXPECT_EQ(self->page->index, 0);
	EXPECT_LE(count, read_call(self->fd));
	EXPECT_GT(before, 0);
}

TEST_HARNESS_MAIN
