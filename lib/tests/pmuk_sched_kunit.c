// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check the arithmetic of the scheduler statistics: the buckets of times and of IPCs, the
 * size of a task's entry, the flags in its key, the wait with which it begins, the chains and paths
 * of cgroups, and the packets of switches.
 */
#include <kunit/test.h>
#include <linux/minmax.h>

#include "../../kernel/sched/pmuk_stats/raw.h"
#include "../../kernel/sched/pmuk_stats/stats.h"
#include "pmuk_suite.h"

/* Returns the number just below, at, or just above a power of two, where buckets begin. */
static u64 around(unsigned int i)
{
	return (1ULL << i / 3) + i % 3 - 1;
}

#define AROUND(bits)	((bits) * 3)

/* Returns the number of @ns's bucket, as user space shows it. */
static unsigned int bucket_of(u64 ns)
{
	return PMUK_SCHED_ZERO - pmuk_sched_time_bucket(ns);
}

static void times_are_in_their_bucket(struct kunit *test)
{
	unsigned int i, bucket;
	u64 ns;

	for (i = 0; i < AROUND(63); i++) {
		ns = around(i);
		bucket = bucket_of(ns);
		KUNIT_ASSERT_LT(test, bucket, PMUK_SCHED_BUCKETS);
		if (bucket)
			KUNIT_EXPECT_GE(test, ns, 1ULL << (bucket - 1));
		KUNIT_EXPECT_LT(test, ns, 1ULL << bucket);
	}
	KUNIT_EXPECT_EQ(test, bucket_of(0), 0);
	KUNIT_EXPECT_EQ(test, bucket_of(1), 1);
	KUNIT_EXPECT_EQ(test, bucket_of(S64_MAX), 63);
	KUNIT_EXPECT_LT(test, pmuk_sched_time_bucket(U64_MAX), PMUK_SCHED_BUCKETS);
}

/* Bucket 9 begins at one instruction per cycle. */
#define IPC_ONE	9

/*
 * Returns the bucket, found by comparisons from the last bucket down. Bucket i begins at 2^(i - 9)
 * instructions per cycle.
 */
static unsigned int compared(u64 cycles, u64 insns)
{
	unsigned int i;

	for (i = PMUK_SCHED_BUCKETS - 1; i > IPC_ONE; i--) {
		if (insns >> (i - IPC_ONE) >= max(cycles, 1ULL))
			return i;
	}
	for (; i; i--) {
		if (insns << (IPC_ONE - i) >= max(cycles, 1ULL))
			return i;
	}
	return 0;
}

static void expect_ipc(struct kunit *test, u64 cycles, u64 insns)
{
	KUNIT_EXPECT_EQ_MSG(test, pmuk_sched_ipc_bucket(cycles, insns), compared(cycles, insns),
			    "%llu instructions in %llu cycles", insns, cycles);
}

static void small_ipcs_are_as_compared(struct kunit *test)
{
	u64 cycles, insns;

	for (cycles = 0; cycles < 200; cycles++) {
		for (insns = 0; insns < 200; insns++)
			expect_ipc(test, cycles, insns);
	}
}

/* Checks slices of up to 2^55 instructions, which take half a year at least. */
static void ipcs_around_powers_are_as_compared(struct kunit *test)
{
	unsigned int i, j;

	for (i = 0; i < AROUND(64); i++) {
		for (j = 0; j < AROUND(55); j++)
			expect_ipc(test, around(i), around(j));
	}
}

static void ipcs_of_extremes_have_a_bucket(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, pmuk_sched_ipc_bucket(1, 1), IPC_ONE);
	KUNIT_EXPECT_EQ(test, pmuk_sched_ipc_bucket(U64_MAX, 0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sched_ipc_bucket(0, 0), 0);
	KUNIT_EXPECT_LT(test, pmuk_sched_ipc_bucket(0, U64_MAX), PMUK_SCHED_BUCKETS);
	KUNIT_EXPECT_LT(test, pmuk_sched_ipc_bucket(1, U64_MAX), PMUK_SCHED_BUCKETS);
}

/* With two events, a task's entry is one cache line. */
static void task_is_a_cache_line(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, offsetof(struct pmuk_sched_task, counts[2]), 64);
}

static void key_has_a_task_and_flags(struct kunit *test)
{
	struct pmuk_sched_task t = { .key = (unsigned long)current };

	KUNIT_EXPECT_PTR_EQ(test, pmuk_sched_task_of(&t), current);
	KUNIT_EXPECT_FALSE(test, pmuk_sched_is_invalid(&t));
	set_bit(PMUK_SCHED_GROUPED_BIT, &t.key);
	KUNIT_EXPECT_FALSE(test, pmuk_sched_is_invalid(&t));
	set_bit(PMUK_SCHED_INVALID_BIT, &t.key);
	KUNIT_EXPECT_TRUE(test, pmuk_sched_is_invalid(&t));
	KUNIT_EXPECT_PTR_EQ(test, pmuk_sched_task_of(&t), current);
}

static void set_run_delay(struct task_struct *p, u64 ns)
{
#ifdef CONFIG_SCHED_INFO
	p->sched_info.run_delay = ns;
#endif
}

/* Waits count from the time when the task gets its entry, but for one that is under way then. */
static void first_wait_counts_from_its_begin(struct kunit *test)
{
	const u64 wait = IS_ENABLED(CONFIG_SCHED_INFO) ? 7 : 0;
	struct task_struct *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct pmuk_sched_task t = {};

	KUNIT_ASSERT_NOT_NULL(test, p);
	set_run_delay(p, 100);
	t.delay = pmuk_sched_first_delay(p);
	KUNIT_EXPECT_EQ(test, pmuk_sched_wait(&t, p), 0);
	set_run_delay(p, 107);
	KUNIT_EXPECT_EQ(test, pmuk_sched_wait(&t, p), wait);
	p->on_rq = 1;
	t.delay = pmuk_sched_first_delay(p);
	KUNIT_EXPECT_EQ(test, pmuk_sched_wait(&t, p), 0);
	set_run_delay(p, 1000);
	KUNIT_EXPECT_EQ(test, pmuk_sched_wait(&t, p), 0);
	p->se.sched_delayed = 1;	/* the task sleeps, and its dequeue is delayed */
	t.delay = pmuk_sched_first_delay(p);
	set_run_delay(p, 1007);
	KUNIT_EXPECT_EQ(test, pmuk_sched_wait(&t, p), wait);
}

/* A task moves at 10 departures before its count wraps. It departs 15 times in its new cgroup. */
static void departures_may_wrap(struct kunit *test)
{
	const u32 moved = U32_MAX - 9, now = moved + 15;

	KUNIT_EXPECT_EQ(test, now, 5);
	KUNIT_EXPECT_EQ(test, pmuk_sched_departures((u64)now - moved), 15);
	KUNIT_EXPECT_EQ(test, pmuk_sched_departures(0), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sched_departures(7ULL << 32), 7ULL << 32);
}

#define MANY_CGROUPS	300000

/* Each cgroup and each of its files has a number, in the order in which they are made. */
static void many_cgroups_make_short_chains(struct kunit *test)
{
	u16 *nr = kunit_kcalloc(test, PMUK_SCHED_CGROUP_CHAINS, sizeof(*nr), GFP_KERNEL);
	u16 longest = 0;
	u32 files, i;

	KUNIT_ASSERT_NOT_NULL(test, nr);
	for (files = 1; files <= 32; files *= 2) {
		memset(nr, 0, PMUK_SCHED_CGROUP_CHAINS * sizeof(*nr));
		for (i = 0; i < MANY_CGROUPS; i++)
			longest = max(longest, ++nr[pmuk_sched_cgroup_chain(1 + i * files)]);
	}
	KUNIT_EXPECT_LE(test, longest, 16);
}

/* A path is copied whole, or not at all, and nothing is written behind the room for paths. */
static void paths_stay_in_their_room(struct kunit *test)
{
	char room[32] = "................";
	struct pmuk_sched_reading r = { .paths = room, .room_paths = 7 };

	KUNIT_EXPECT_STREQ(test, pmuk_sched_copy_path(&r, "/ab"), "/ab");
	KUNIT_EXPECT_NULL(test, pmuk_sched_copy_path(&r, "/cd"));
	KUNIT_EXPECT_STREQ(test, pmuk_sched_copy_path(&r, "/c"), "/c");
	KUNIT_EXPECT_NULL(test, pmuk_sched_copy_path(&r, ""));
	KUNIT_EXPECT_MEMEQ(test, room, "/ab\0/c\0.", 8);
}

/* Returns the number that was written at @at, or U64_MAX if it does not end exactly at @end. */
static u64 number_at(const u8 *at, const u8 *end)
{
	u64 number = 0;
	int shift = 0;

	for (; at < end && shift < 64; at++, shift += 7) {
		number |= (u64)(*at & 0x7f) << shift;
		if (!(*at & 0x80))
			return at + 1 == end ? number : U64_MAX;
	}
	return U64_MAX;
}

static void numbers_are_read_back(struct kunit *test)
{
	unsigned int i;
	u8 bytes[16], *end;
	u64 number;

	for (i = 0; i < AROUND(64); i++) {
		number = around(i);
		memset(bytes, 0xa5, sizeof(bytes));
		end = pmuk_sched_raw_put_number(bytes, number);
		KUNIT_ASSERT_EQ(test, end - bytes, max(DIV_ROUND_UP(fls64(number), 7), 1));
		KUNIT_EXPECT_EQ(test, number_at(bytes, end), number);
		KUNIT_EXPECT_EQ(test, *end, 0xa5);
	}
	end = pmuk_sched_raw_put_number(bytes, U64_MAX);
	KUNIT_EXPECT_EQ(test, end - bytes, 10);
	KUNIT_EXPECT_EQ(test, bytes[9], 1);
}

/* Packets have the layout that the comment in user space's header documents. */
static void packets_are_as_documented(struct kunit *test)
{
	static const u8 mark[] = { PMUK_SCHED_RAW_MARK, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22,
				   0x11, 0xdd, 0xcc, 0xbb, 0x0a, 8, 7, 6, 5, 4, 3, 2, 1 };
	static const u8 packet[] = { PMUK_SCHED_OTHER | PMUK_SCHED_INVALID, 0x80, 1, 0, 0x7f,
				     0xff, 0xff, 3, 0xac, 2 };
	struct pmuk_sched_slice s = {
		.time = 0x1122334455667788ULL, .prev_pid = 0x0abbccdd, .next_pid = 128,
		.wait = 127, .counts = { 65535, 300 },
		.misc = PMUK_SCHED_OTHER | PMUK_SCHED_INVALID,
	};
	u8 bytes[PMUK_SCHED_RAW_MAX];

	KUNIT_ASSERT_EQ(test, pmuk_sched_raw_put_mark(bytes, &s, 0x0102030405060708ULL) - bytes,
			sizeof(mark));
	KUNIT_EXPECT_MEMEQ(test, bytes, mark, sizeof(mark));
	KUNIT_ASSERT_EQ(test, pmuk_sched_raw_put_switch(bytes, &s) - bytes, sizeof(packet));
	KUNIT_EXPECT_MEMEQ(test, bytes, packet, sizeof(packet));
}

/* No packet is longer than the room for it. The mark has the time at which the slice began. */
static void packets_are_never_longer(struct kunit *test)
{
	struct pmuk_sched_slice s = {
		.time = 5, .run = U64_MAX, .wait = U64_MAX, .counts = { U64_MAX, U64_MAX },
		.prev_pid = U32_MAX, .next_pid = U32_MAX,
		.misc = PMUK_SCHED_OTHER | PMUK_SCHED_INVALID,
	};
	u8 bytes[PMUK_SCHED_RAW_MAX], *end = pmuk_sched_raw_put_mark(bytes, &s, U64_MAX);

	KUNIT_EXPECT_EQ(test, end - bytes, PMUK_SCHED_RAW_MARK_BYTES);
	KUNIT_EXPECT_EQ(test, bytes[1], 6);
	KUNIT_EXPECT_EQ(test, pmuk_sched_raw_put_switch(end, &s) - bytes, PMUK_SCHED_RAW_MAX);
	KUNIT_EXPECT_LT(test, s.misc, PMUK_SCHED_RAW_MARK);
}

static struct kunit_case pmuk_sched_cases[] = {
	KUNIT_CASE(times_are_in_their_bucket),
	KUNIT_CASE(small_ipcs_are_as_compared),
	KUNIT_CASE(ipcs_around_powers_are_as_compared),
	KUNIT_CASE(ipcs_of_extremes_have_a_bucket),
	KUNIT_CASE(task_is_a_cache_line),
	KUNIT_CASE(key_has_a_task_and_flags),
	KUNIT_CASE(first_wait_counts_from_its_begin),
	KUNIT_CASE(departures_may_wrap),
	KUNIT_CASE(many_cgroups_make_short_chains),
	KUNIT_CASE(paths_stay_in_their_room),
	KUNIT_CASE(numbers_are_read_back),
	KUNIT_CASE(packets_are_as_documented),
	KUNIT_CASE(packets_are_never_longer),
	{}
};

PMUK_SUITE(pmuk_sched, NULL, "KUnit tests of the scheduler statistics' arithmetic");
