// SPDX-License-Identifier: GPL-2.0
/* The rules of a ring, one writer and one reader taking turns: each count is exact. */
#include <errno.h>
#include <string.h>

#include "test.h"

#define SIZE	4096

struct rig {
	struct pmuk_ring ring;
	struct pmuk_ring_config config;
	u64 attempts;		/* each has an id: the attempts before it */
	u64 written;		/* records in the ring since it was made, and their bytes */
	u64 bytes;
	u64 fillers;		/* of them, what stands in for skipped ones */
	u64 next;		/* id that the reader waits for */
	u64 told;		/* sum over the PERF_RECORD_LOST that were read */
	u64 wakes;
};

static struct rig rig;

static void wake(struct pmuk_ring *ring)
{
	EXPECT(ring == &rig.ring);
	rig.wakes++;
}

static void set_up_with(const struct pmuk_ring_config *config)
{
	memset(&rig, 0, sizeof(rig));
	rig.config = *config;
	rig.config.wake = wake;
	map_ring(&rig.config);
	pmuk_ring_init(&rig.ring, &rig.config);
}

static void set_up(enum pmuk_buffer_mode mode)
{
	const struct pmuk_ring_config config = { .mode = mode, .size = SIZE };

	set_up_with(&config);
}

static struct perf_event_header *begin(u32 size)
{
	struct perf_event_header *rec;
	u64 id = rig.attempts++;

	rec = pmuk_output_begin(test_buffer(&rig.ring), TEST_RECORD, size);
	if (!rec)
		return NULL;
	EXPECT((u8 *)rec >= rig.config.data && (u8 *)rec < rig.config.data + rig.config.size);
	EXPECT_EQ(rec->size, size);
	EXPECT_EQ(rec->type, TEST_RECORD);
	EXPECT_EQ(rec->misc, 0);
	test_fill(rec, id, size);
	return rec;
}

static void end(struct perf_event_header *rec)
{
	rig.written++;
	rig.bytes += rec->size;
	pmuk_output_end(test_buffer(&rig.ring), rec);
}

static bool put(u32 size)
{
	struct perf_event_header *rec = begin(size);

	if (rec)
		end(rec);
	return rec;
}

static void fill_up(u32 size)
{
	u64 n;

	for (n = rig.config.size / size; n; n--)
		EXPECT(put(size));
}

static struct pmuk_buffer_stat stat(void)
{
	struct pmuk_buffer_stat s;

	pmuk_ring_stat(&rig.ring, &s);
	return s;
}

/* The PERF_RECORD_LOST that were written: what is there and no record of ours. */
static u64 lost_records(const struct pmuk_buffer_stat *s)
{
	EXPECT_EQ((s->head - rig.bytes) % sizeof(struct test_lost_record), 0);
	return (s->head - rig.bytes) / sizeof(struct test_lost_record);
}

static void conserve(void)
{
	struct pmuk_buffer_stat s = stat();
	u64 pos, there = 0;

	EXPECT_EQ(s.head, rig.ring.head);
	EXPECT_EQ(s.head, rig.ring.commit);
	EXPECT_EQ(s.head, rig.config.page->data_head);
	EXPECT_EQ(s.wakeups, rig.wakes);
	for (pos = s.tail; pos < s.head; there++)
		pos += ((struct perf_event_header *)(rig.config.data +
						     (pos & rig.ring.mask)))->size;
	EXPECT_EQ(pos, s.head);
	EXPECT_EQ(s.consumed + s.overwritten + there, rig.written + lost_records(&s));
	EXPECT_EQ(rig.attempts, rig.written - rig.fillers + s.lost + s.discarded);
}

static void look_at(struct perf_event_header *rec)
{
	if (rec->type == PERF_RECORD_LOST) {
		rig.told += ((struct test_lost_record *)rec)->lost;
		rig.next += ((struct test_lost_record *)rec)->lost;
	} else if (rec->type == PERF_RECORD_LOST_SAMPLES) {
		EXPECT_EQ(((struct test_record *)rec)->id, 0);
		rig.next++;
	} else {
		EXPECT(test_whole(rec));
		EXPECT_EQ(((struct test_record *)rec)->id, rig.next);
		rig.next++;
	}
}

/* Reads @nr records or all there are; returns how many. */
static u64 get(u64 nr)
{
	struct perf_event_header *rec;
	struct pmuk_reader r;
	u64 n;

	EXPECT_EQ(pmuk_ring_claim(&rig.ring, &r), 0);
	for (n = 0; n < nr; n++) {
		rec = pmuk_ring_peek(&r);
		if (!rec)
			break;
		EXPECT(pmuk_ring_peek(&r) == rec);
		look_at(rec);
		pmuk_ring_consume(&r);
	}
	pmuk_ring_release(&r);
	return n;
}

static void tear_down(void)
{
	conserve();
	unmap_ring(&rig.config);
}

static void test_drop(void)
{
	struct pmuk_buffer_stat s;

	set_up(PMUK_BUFFER_DROP);
	fill_up(64);
	EXPECT(!put(16));
	EXPECT(!put(64));
	conserve();
	EXPECT_EQ(stat().lost, 2);

	/* Room for a record is not enough: what was lost has to be told before it. */
	EXPECT_EQ(get(1), 1);
	EXPECT(!put(48));
	EXPECT_EQ(stat().lost, 3);
	EXPECT(put(40));
	conserve();
	s = stat();
	EXPECT_EQ(s.head - s.tail, SIZE);
	EXPECT_EQ(get(-1), 65);
	EXPECT_EQ(rig.told, 3);
	EXPECT_EQ(rig.next, rig.attempts);
	EXPECT(put(64));
	EXPECT_EQ(get(-1), 1);
	tear_down();
}

/* All sizes at all offsets: what is read is what was written, beyond the end of the data, too. */
static void test_wrap(void)
{
	u64 laps = 0, size, n;

	set_up(PMUK_BUFFER_DROP);
	for (n = 0; laps < 50; n++) {
		size = 16 + 8 * (n * 7 % 200);
		EXPECT(put(size));
		laps += (rig.ring.head & rig.ring.mask) < size;
		EXPECT_EQ(get(-1), 1);
	}
	EXPECT_EQ(stat().lost, 0);
	EXPECT_EQ(rig.next, rig.attempts);
	tear_down();
}

/* A ring's only record, at each offset that there is. */
static void test_whole_ring(void)
{
	u64 offset;

	for (offset = 0; offset < SIZE; offset += 8) {
		set_up(PMUK_BUFFER_DROP);
		EXPECT(put(SIZE / 2 + offset / 16 * 8));
		EXPECT_EQ(get(-1), 1);
		EXPECT(put(SIZE / 2 + offset - offset / 16 * 8));
		EXPECT_EQ(get(-1), 1);
		EXPECT(put(SIZE));
		EXPECT(!put(16));
		EXPECT_EQ(get(-1), 1);
		EXPECT(!put(SIZE));	/* with what has to be told before it */
		EXPECT(put(16));
		EXPECT_EQ(get(-1), 2);
		EXPECT(put(SIZE));
		tear_down();
		if (failed())
			break;
	}
}

/* What a reader finds that has the pages mapped, and knows nothing else. */
static u64 records_by_the_page(void)
{
	u64 pos = rig.config.page->data_tail, head = rig.config.page->data_head, n;
	struct perf_event_header *rec;

	for (n = 0; pos < head; n++) {
		rec = (struct perf_event_header *)(rig.config.data + (pos & rig.ring.mask));
		EXPECT(test_whole(rec));
		if (failed())
			break;
		pos += rec->size;
	}
	EXPECT_EQ(pos, head);
	return n;
}

/* A flight recorder is read from data_tail to data_head. */
static void test_overwrite_page(void)
{
	u64 n;

	set_up(PMUK_BUFFER_OVERWRITE);
	for (n = 0; n < 1000 && !failed(); n++) {
		EXPECT(put(16 + 8 * (n % 30)));
		EXPECT_EQ(records_by_the_page(), n + 1 - stat().overwritten);
	}
	EXPECT(stat().overwritten > 500);
	pmuk_ring_pause(&rig.ring);
	rig.next = stat().overwritten;
	n = records_by_the_page();
	EXPECT_EQ(get(3), 3);
	EXPECT_EQ(records_by_the_page(), n - 3);
	tear_down();
}

static void test_overwrite(void)
{
	struct pmuk_buffer_stat s;
	u64 n;

	set_up(PMUK_BUFFER_OVERWRITE);
	for (n = 0; n < 1000; n++) {
		EXPECT(put(16 + 8 * (n % 30)));
		s = stat();
		EXPECT(s.head - s.tail <= SIZE);
		conserve();
	}
	/* Newest whole ones, and not much room wasted. */
	s = stat();
	EXPECT(s.head - s.tail >= SIZE - SIZE / 8);
	EXPECT(s.overwritten > 500);
	EXPECT_EQ(s.lost, 0);
	pmuk_ring_pause(&rig.ring);
	rig.next = s.overwritten;
	EXPECT_EQ(get(-1), 1000 - s.overwritten);
	EXPECT_EQ(rig.next, rig.attempts);
	EXPECT_EQ(pmuk_ring_resume(&rig.ring), 0);

	EXPECT(put(SIZE));
	EXPECT(put(SIZE));
	EXPECT(put(16));
	EXPECT_EQ(stat().overwritten, s.overwritten + 2);
	tear_down();
}

/* What is reserved and not ended is no record to overwrite. */
static void test_overwrite_unfinished(void)
{
	struct perf_event_header *rec, *inner;
	u64 n;

	set_up(PMUK_BUFFER_OVERWRITE);
	fill_up(64);
	rec = begin(1024);
	EXPECT(rec);
	for (n = 0; n < 3; n++) {
		inner = begin(1024);
		EXPECT(inner);
		end(inner);
	}
	EXPECT(!put(16));
	EXPECT_EQ(stat().lost, 1);
	EXPECT_EQ(stat().head, SIZE);
	EXPECT(test_whole(rec));
	end(rec);
	EXPECT_EQ(stat().head, 2 * SIZE);
	EXPECT(put(16));
	conserve();

	pmuk_ring_pause(&rig.ring);
	rig.next = rig.attempts - 5;	/* the outermost had to go for the latest */
	EXPECT_EQ(get(-1), 5);		/* with the one that tells of a loss */
	EXPECT_EQ(rig.told, 1);
	tear_down();
}

static void test_stop(void)
{
	set_up(PMUK_BUFFER_STOP);
	fill_up(64);
	EXPECT(!put(64));
	EXPECT_EQ(get(-1), 64);
	EXPECT(!put(64));
	EXPECT(!put(16));
	EXPECT_EQ(stat().lost, 3);
	conserve();
	pmuk_ring_restart(&rig.ring);
	EXPECT(put(64));
	EXPECT(put(64));
	EXPECT_EQ(get(-1), 3);
	EXPECT_EQ(rig.told, 3);
	EXPECT_EQ(rig.next, rig.attempts);
	tear_down();
}

/* Each stop wakes the consumer, and what is lost for it does not stop the ring again. */
static void test_stop_wakes(void)
{
	set_up(PMUK_BUFFER_STOP);
	fill_up(64);
	EXPECT(!put(64));
	EXPECT_EQ(rig.wakes, 1);
	EXPECT(!put(64));
	EXPECT_EQ(rig.wakes, 1);
	pmuk_ring_restart(&rig.ring);
	EXPECT(!put(64));		/* no room, and nothing told yet */
	EXPECT_EQ(rig.wakes, 2);
	EXPECT(!put(64));
	EXPECT_EQ(rig.wakes, 2);
	EXPECT_EQ(get(-1), 64);
	pmuk_ring_restart(&rig.ring);
	EXPECT(put(64));
	EXPECT_EQ(get(-1), 2);
	EXPECT_EQ(rig.told, 4);
	EXPECT_EQ(rig.wakes, 2);
	tear_down();
}

static void test_revoke(void)
{
	struct pmuk_reader dead, r;

	set_up(PMUK_BUFFER_DROP);
	EXPECT(put(64));
	EXPECT(put(64));
	EXPECT_EQ(pmuk_ring_claim(&rig.ring, &dead), 0);
	EXPECT(pmuk_ring_peek(&dead));
	pmuk_ring_consume(&dead);
	EXPECT(pmuk_ring_peek(&dead));
	EXPECT_EQ(pmuk_ring_claim(&rig.ring, &r), -EBUSY);
	pmuk_ring_revoke(&rig.ring);
	rig.next = 1;
	EXPECT_EQ(get(-1), 1);
	tear_down();
}

static void test_watermark(void)
{
	const struct pmuk_ring_config config = {
		.mode = PMUK_BUFFER_DROP, .size = SIZE, .watermark = 256,
	};
	u64 n;

	set_up_with(&config);
	for (n = 1; n <= 640; n++) {
		EXPECT(put(48));
		EXPECT_EQ(rig.wakes, n * 48 / 256);
		EXPECT_EQ(get(-1), 1);
	}
	n = rig.wakes;
	EXPECT(put(1024));	/* four at once are one */
	EXPECT_EQ(rig.wakes, n + 1);
	EXPECT(put(240));
	EXPECT_EQ(rig.wakes, n + 1);
	EXPECT(put(16));
	EXPECT_EQ(rig.wakes, n + 2);
	tear_down();
}

static void test_wakeup_events(void)
{
	const struct pmuk_ring_config config = {
		.mode = PMUK_BUFFER_DROP, .size = SIZE, .wakeup_events = 3,
	};
	u64 n;

	set_up_with(&config);
	for (n = 1; n <= 64; n++) {
		EXPECT(put(64));
		EXPECT_EQ(rig.wakes, n / 3);
	}
	EXPECT(!put(64));
	EXPECT_EQ(rig.wakes, 22);	/* the first loss wakes, too */
	EXPECT(!put(64));
	EXPECT_EQ(rig.wakes, 22);
	tear_down();
}

static void skip(struct perf_event_header *rec, bool last)
{
	if (!last) {
		rig.written++;
		rig.fillers++;
		rig.bytes += rec->size;
	}
	pmuk_ring_skip(&rig.ring, rec);
}

static void test_skip(void)
{
	struct perf_event_header *outer, *inner;

	set_up(PMUK_BUFFER_DROP);
	outer = begin(64);
	EXPECT_EQ(rig.ring.head, 64);
	skip(outer, true);
	EXPECT_EQ(rig.ring.head, 0);
	rig.next++;
	conserve();
	EXPECT(put(16));
	EXPECT_EQ(get(-1), 1);

	/* Behind a later one, which is still read. */
	outer = begin(64);
	EXPECT(put(48));
	EXPECT_EQ(get(-1), 0);
	skip(outer, false);
	conserve();
	EXPECT_EQ(get(-1), 2);

	/* In between, and the smallest. */
	outer = begin(64);
	inner = begin(16);
	EXPECT(put(16));
	skip(inner, false);
	EXPECT_EQ(get(-1), 0);
	end(outer);
	conserve();
	EXPECT_EQ(get(-1), 3);

	/* The inner one is the latest: nothing of it remains. */
	outer = begin(64);
	inner = begin(16);
	skip(inner, true);
	end(outer);
	EXPECT_EQ(get(-1), 1);
	EXPECT_EQ(stat().discarded, 4);
	tear_down();
}

static void test_pause(void)
{
	struct pmuk_reader r, other;

	set_up(PMUK_BUFFER_OVERWRITE);
	EXPECT(put(64));
	EXPECT_EQ(pmuk_ring_claim(&rig.ring, &r), (u64)-EBUSY);
	pmuk_ring_pause(&rig.ring);
	EXPECT(!put(64));
	EXPECT_EQ(stat().discarded, 1);
	EXPECT_EQ(pmuk_ring_claim(&rig.ring, &r), 0);
	EXPECT_EQ(pmuk_ring_claim(&rig.ring, &other), (u64)-EBUSY);
	EXPECT_EQ(pmuk_ring_resume(&rig.ring), (u64)-EBUSY);
	pmuk_ring_release(&r);
	EXPECT_EQ(pmuk_ring_resume(&rig.ring), 0);
	EXPECT(put(64));
	EXPECT(put(64));
	tear_down();

	set_up(PMUK_BUFFER_DROP);
	EXPECT_EQ(pmuk_ring_claim(&rig.ring, &r), 0);
	pmuk_ring_pause(&rig.ring);
	EXPECT(!put(64));
	EXPECT_EQ(pmuk_ring_resume(&rig.ring), 0);	/* its reader does not mind */
	EXPECT(put(64));
	EXPECT_EQ(pmuk_ring_claim(&rig.ring, &other), (u64)-EBUSY);
	pmuk_ring_release(&r);
	EXPECT_EQ(stat().discarded, 1);
	EXPECT_EQ(stat().lost, 0);
	tear_down();
}

static void test_kill(void)
{
	set_up(PMUK_BUFFER_DROP);
	EXPECT(put(64));
	pmuk_ring_kill(&rig.ring);
	EXPECT(!put(64));
	pmuk_ring_pause(&rig.ring);
	EXPECT_EQ(pmuk_ring_resume(&rig.ring), 0);
	pmuk_ring_restart(&rig.ring);
	EXPECT(!put(64));
	EXPECT_EQ(stat().discarded, 2);
	EXPECT_EQ(get(-1), 1);		/* what is there can be read */
	tear_down();
}

static void test_bad_sizes(void)
{
	static const u32 bad[] = { 0, 8, 15, 17, 20, 65529, 65536, 65544, 1U << 31, -8, -1 };
	const struct pmuk_ring_config large = { .mode = PMUK_BUFFER_DROP, .size = 1 << 18 };
	size_t i;

	set_up(PMUK_BUFFER_DROP);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT(!put(bad[i]));
	EXPECT_EQ(stat().discarded, ARRAY_SIZE(bad));
	EXPECT_EQ(stat().lost, 0);
	EXPECT(!put(SIZE + 8));		/* never fits, which is a loss as any other */
	EXPECT_EQ(stat().lost, 1);
	EXPECT(put(16));
	tear_down();

	set_up_with(&large);
	fill_up(PMUK_RECORD_MAX);
	EXPECT_EQ(get(-1), 4);
	tear_down();
}

static void test_no_data(void)
{
	static const enum pmuk_buffer_mode modes[] = {
		PMUK_BUFFER_DROP, PMUK_BUFFER_OVERWRITE, PMUK_BUFFER_STOP,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		const struct pmuk_ring_config config = { .mode = modes[i] };

		set_up_with(&config);
		EXPECT(!put(16));
		EXPECT(!put(PMUK_RECORD_MAX));
		EXPECT_EQ(stat().lost, 2);
		tear_down();
	}
}

static void tell_tail(u64 tail)
{
	WRITE_ONCE(rig.config.page->data_tail, tail);
}

/* A reader that has the pages mapped, and behaves. */
static void test_user_tail(void)
{
	const struct pmuk_ring_config config = { .size = SIZE, .user_tail = true };
	u64 pos = 0, head;

	set_up_with(&config);
	while (pos < 20 * SIZE) {
		while (put(16 + rig.attempts * 8 % 256))
			;
		/* so that what is read of records is not older */
		head = smp_load_acquire(&rig.config.page->data_head);
		EXPECT(head > pos && head - pos <= SIZE);
		while (pos < head) {
			struct perf_event_header *rec;

			rec = (void *)(rig.config.data + (pos & rig.ring.mask));
			look_at(rec);
			pos += rec->size;
			if (failed())
				break;
		}
		tell_tail(pos);
		if (failed())
			break;
	}
	EXPECT_EQ(rig.told + rig.ring.pending, stat().lost);
	unmap_ring(&rig.config);
}

/* User space that has seen data_head when ->commit was not there yet: nothing is lost. */
static void test_early_tail(void)
{
	const struct pmuk_ring_config config = { .size = SIZE, .user_tail = true };
	struct perf_event_header *rec;

	set_up_with(&config);
	fill_up(64);
	tell_tail(64);
	rec = begin(64);
	EXPECT(rec);
	tell_tail(SIZE + 64);
	rig.attempts++;
	EXPECT(pmuk_output_begin(test_buffer(&rig.ring), TEST_RECORD, 64));
	EXPECT_EQ(rig.ring.limit, SIZE + SIZE);	/* what is reserved stays its writer's */
	EXPECT_EQ(rig.ring.lost, 0);
	unmap_ring(&rig.config);
}

/* With this tail, one record: reserved between commit and a ring's length from it, or lost. */
static void defy(u64 tail, u32 size)
{
	u64 commit = rig.ring.commit, lost = rig.ring.lost;
	struct pmuk_buffer_stat s;

	tell_tail(tail);
	if (!put(size))
		EXPECT_EQ(rig.ring.lost, lost + 1);
	s = stat();
	EXPECT(s.head >= commit && s.head - commit <= size + sizeof(struct test_lost_record));
	EXPECT_EQ(rig.ring.head, s.head);
	EXPECT_EQ(rig.config.page->data_head, s.head);
	EXPECT_EQ(s.discarded, 0);
	EXPECT_EQ(rig.attempts, rig.written + s.lost);
	lost_records(&s);
	/* Only a tail within reach makes room. */
	if (commit - tail > SIZE && rig.ring.limit == 0)
		EXPECT_EQ(s.head, commit);
}

/* The same while a record is reserved: it stays its writer's, and so does the next lap's room. */
static void defy_nested(u64 tail)
{
	struct perf_event_header *outer;
	u64 commit, n;

	tell_tail(rig.ring.commit);
	outer = begin(64);
	if (!outer)
		return;
	commit = rig.ring.commit;	/* behind a record that tells of losses */
	tell_tail(tail);
	for (n = 0; n < SIZE / 48 + 1 && put(48); n++)
		;
	EXPECT_EQ(rig.ring.commit, commit);
	EXPECT(rig.ring.head - commit <= SIZE);
	EXPECT(test_whole(outer));
	end(outer);
	EXPECT_EQ(rig.ring.commit, rig.ring.head);
	EXPECT_EQ(rig.attempts, rig.written + stat().lost);
}

static void test_hostile_tail_nested(void)
{
	const struct pmuk_ring_config config = { .size = SIZE, .user_tail = true };
	s64 delta;

	set_up_with(&config);
	for (delta = -2 * SIZE; delta <= 2 * SIZE && !failed(); delta += 8) {
		tell_tail(rig.ring.commit);
		put(SIZE);		/* the room that was known is used up */
		defy_nested(rig.ring.commit + delta);
	}
	EXPECT(rig.written > 1000);
	unmap_ring(&rig.config);
}

static void test_hostile_tail(void)
{
	static const u64 around[] = { 0, 1ULL << 31, 1ULL << 32, 1ULL << 62, 1ULL << 63, -1ULL };
	const struct pmuk_ring_config config = { .size = SIZE, .user_tail = true };
	u64 random = 1, n, i;
	s64 delta;

	set_up_with(&config);
	for (n = 0; n < 40; n++) {
		for (i = 0; i < ARRAY_SIZE(around); i++)
			for (delta = -24; delta <= 24; delta++)
				defy(around[i] + delta, 16 + 8 * n);
		for (delta = -3 * SIZE; delta <= 3 * SIZE; delta += 1 + n * 8)
			defy(rig.ring.commit + delta, 16 + 8 * n);
		defy(rig.ring.commit, SIZE);
		defy(rig.ring.commit - SIZE, 16);
		if (failed())
			break;
	}
	for (n = 0; n < 1000000 && !failed(); n++) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		defy(n % 3 ? random : rig.ring.commit - (random >> 32) % (2 * SIZE),
		     16 + (n & 0xf8));
	}
	EXPECT(rig.ring.lost > 1000 && rig.written > 1000);
	unmap_ring(&rig.config);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "drop", test_drop },
		{ "wrap", test_wrap },
		{ "whole_ring", test_whole_ring },
		{ "overwrite", test_overwrite },
		{ "overwrite_page", test_overwrite_page },
		{ "overwrite_unfinished", test_overwrite_unfinished },
		{ "stop", test_stop },
		{ "stop_wakes", test_stop_wakes },
		{ "revoke", test_revoke },
		{ "watermark", test_watermark },
		{ "wakeup_events", test_wakeup_events },
		{ "skip", test_skip },
		{ "pause", test_pause },
		{ "kill", test_kill },
		{ "bad_sizes", test_bad_sizes },
		{ "no_data", test_no_data },
		{ "user_tail", test_user_tail },
		{ "early_tail", test_early_tail },
		{ "hostile_tail", test_hostile_tail },
		{ "hostile_tail_nested", test_hostile_tail_nested },
	};

	return run_tests(tests, ARRAY_SIZE(tests), argc, argv);
}
