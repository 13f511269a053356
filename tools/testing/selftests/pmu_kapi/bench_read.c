// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the cost of reading a counter from user space, beside what <debugfs>/pmuk_bench/run says
 * of the ways to do it in the kernel: cycles, pinned where perf opens them, nothing excluded.
 *
 * read_syscall: read(2) of a perf descriptor
 * read_user: the register, with all that readers of perf's control page look at
 * read_user_pmuk: the same with pmuk's control page, of /dev/pmuk_self
 *
 * The last two are left out where the kernel lets user space read no register.
 */
#include "bench.h"
#include "self.h"

static int cycles;
static struct perf_event_mmap_page *perf_page, *pmuk_page;

static void calls_read(void)
{
	uint64_t count;

	for (int i = 0; i < CALLS; i++) {
		if (read(cycles, &count, sizeof(count)) != sizeof(count))
			fail("lost the counter");
	}
}

struct value {
	uint64_t count;
	uint64_t enabled;
	uint64_t running;
};

/*
 * Reads as the comment at struct perf_event_mmap_page says, and as perf's own library does: not in
 * line, and with the times. The count of a pinned counter need not be scaled by them.
 */
static __attribute_noinline__ int read_page(struct perf_event_mmap_page *page,
					    struct value *value)
{
	uint32_t lock, index, shift;
	uint64_t count;
	int64_t reg;

	do {
		lock = LOAD(page->lock);
		barrier();
		value->enabled = LOAD(page->time_enabled);
		value->running = LOAD(page->time_running);
		if (page->cap_user_time && value->enabled != value->running)
			return -1;
		index = LOAD(page->index);
		count = LOAD(page->offset);
		if (!page->cap_user_rdpmc || !index)
			return -1;
		shift = 64 - page->pmc_width;
		reg = read_register(index - 1) << shift;
		count += reg >> shift;
		barrier();
	} while (LOAD(page->lock) != lock);
	value->count = count;
	return 0;
}

static void calls_page(struct perf_event_mmap_page *page)
{
	struct value value;

	for (int i = 0; i < CALLS; i++) {
		if (read_page(page, &value))
			fail("lost the register");
	}
}

static void calls_perf_page(void) { calls_page(perf_page); }
static void calls_pmuk_page(void) { calls_page(pmuk_page); }

static struct way ways[] = {
	{ .calls = calls_empty },
	{ .name = "read_syscall", .calls = calls_read },
	{ .name = "read_user", .calls = calls_perf_page },
	{ .name = "read_user_pmuk", .calls = calls_pmuk_page },
};

/* perf's counter that user space may read, on arm64 where it says that it will. */
static int open_for_user(void)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_HARDWARE,
		.config		= PERF_COUNT_HW_CPU_CYCLES,
		.pinned		= 1,
	};

#ifdef __aarch64__
	attr.config1 = 2;
#endif
	return open_event(&attr, 0, -1);
}

/* NULL where no register may be read through it. */
static struct perf_event_mmap_page *map_page(int fd)
{
	struct perf_event_mmap_page *page;
	struct value value;

	if (fd < 0)
		return NULL;
	page = mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED, fd, 0);
	return page != MAP_FAILED && !read_page(page, &value) ? page : NULL;
}

/* The ways that user space has are first. */
static int count_ways(void)
{
	write_file(USER_ACCESS, "1");
	perf_page = map_page(open_for_user());
	if (!perf_page)
		return 2;
	pmuk_page = map_page(open("/dev/pmuk_self", O_RDWR));
	return pmuk_page ? 4 : 3;
}

int main(void)
{
	int nr;

	stay_on_this_cpu();
	cycles = need(open_counter(PERF_COUNT_HW_CPU_CYCLES), "cannot count cycles");
	nr = count_ways();
	measure(ways, nr);
	write_file(USER_ACCESS, USER_ACCESS_WAS);
	return 0;
}
