/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests share these helpers for an AUX area. Each byte's value follows from its position in the
 * stream, so that a reader can check all that it reads.
 */
#ifndef _PMUK_AUX_H
#define _PMUK_AUX_H

#include <kunit/test.h>
#include <linux/cleanup.h>
#include <linux/completion.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/pmu_kapi.h>
#include <linux/prandom.h>
#include <linux/preempt.h>
#include <linux/string.h>

#include "pmuk_test.h"

/* perf has no record of this type. */
#define PMUK_AUX_OTHER	0x7e57

/* The test's bytes repeat with a prime period, so bytes that are a power of two apart differ. */
#define PMUK_AUX_PERIOD	4093

struct pmuk_test_aux {
	struct kunit *test;
	struct pmuk_buffer *b;
	const u8 *data;			/* the area, mapped twice in a row */
	size_t size;
	struct completion more;		/* the buffer's completion */
	u64 next;			/* position that the reader expects */
	u64 flags;			/* the flags of all spans that were read */
	u64 bad;			/* spans at a wrong position, or with wrong bytes */
	u8 bytes[PMUK_AUX_PERIOD];
};

struct pmuk_test_aux_record {
	struct perf_event_header header;
	u64 offset;
	u64 size;
	u64 flags;
};

static inline void pmuk_test_aux_fill(const struct pmuk_test_aux *a, void *at, u64 pos, u64 size)
{
	u64 n;

	for (; size; at += n, pos += n, size -= n) {
		n = min_t(u64, size, PMUK_AUX_PERIOD - pos % PMUK_AUX_PERIOD);
		memcpy(at, a->bytes + pos % PMUK_AUX_PERIOD, n);
	}
}

/* Returns whether the bytes that @at points to are those that belong at position @pos. */
static inline bool pmuk_test_aux_is(const struct pmuk_test_aux *a, const void *at, u64 pos,
				    u64 size)
{
	u64 n;

	for (; size; at += n, pos += n, size -= n) {
		n = min_t(u64, size, PMUK_AUX_PERIOD - pos % PMUK_AUX_PERIOD);
		if (memcmp(at, a->bytes + pos % PMUK_AUX_PERIOD, n))
			return false;
	}
	return true;
}

/* Returns whether the area has at @pos the bytes that belong there. */
static inline bool pmuk_test_aux_has(const struct pmuk_test_aux *a, u64 pos, u64 size)
{
	return size <= a->size && pmuk_test_aux_is(a, a->data + pos % a->size, pos, size);
}

static inline bool pmuk_test_aux_begin(struct pmuk_test_aux *a, struct pmuk_aux_handle *h)
{
	guard(preempt)();
	return pmuk_aux_output_begin(h, a->b);
}

static inline void pmuk_test_aux_end(struct pmuk_aux_handle *h, u64 size)
{
	guard(preempt)();
	pmuk_aux_output_end(h, size);
}

/*
 * Fills the part with as much of @size as it has room for, and ends it as if all had been written.
 */
static inline void pmuk_test_aux_finish(struct pmuk_test_aux *a, struct pmuk_aux_handle *h,
					u64 size)
{
	pmuk_test_aux_fill(a, h->data, h->head, min(size, h->size));
	pmuk_test_aux_end(h, size);
}

static inline bool pmuk_test_aux_write(struct pmuk_test_aux *a, u64 size)
{
	struct pmuk_aux_handle h;

	if (!pmuk_test_aux_begin(a, &h))
		return false;
	pmuk_test_aux_finish(a, &h, size);
	return true;
}

/* Checks a peeked span. */
static inline void pmuk_test_aux_look(struct pmuk_test_aux *a, const struct pmuk_aux_span *span)
{
	a->bad += span->head != a->next ||
		  !pmuk_test_aux_is(a, span->data, span->head, span->size);
	WRITE_ONCE(a->next, span->head + span->size);	/* the writer checks for progress */
	a->flags |= span->flags;
}

/* Reads all new bytes, in any context. Returns how many bytes it has read. */
static inline u64 pmuk_test_aux_drain(struct pmuk_test_aux *a)
{
	struct pmuk_aux_reader r;
	struct pmuk_aux_span span;
	u64 n = 0;

	if (pmuk_aux_claim(a->b, &r)) {
		a->bad++;
		return 0;
	}
	while (pmuk_aux_peek(&r, &span)) {
		pmuk_test_aux_look(a, &span);
		n += span.size;
		pmuk_aux_consume(&r, span.size);
	}
	pmuk_aux_release(&r);
	return n;
}

/* Consumes the first span of @b without checking it. Returns whether there was a span. */
static inline bool pmuk_test_aux_give_back(struct kunit *test, struct pmuk_buffer *b)
{
	struct pmuk_aux_reader r;
	struct pmuk_aux_span span;
	bool some;

	KUNIT_ASSERT_EQ(test, pmuk_aux_claim(b, &r), 0);
	some = pmuk_aux_peek(&r, &span);
	if (some)
		pmuk_aux_consume(&r, span.size);
	pmuk_aux_release(&r);
	return some;
}

static inline struct pmuk_aux_stat pmuk_test_aux_stat(struct pmuk_test_aux *a)
{
	return pmuk_test_area_stat(a->test, a->b);
}

/* Returns the oldest unread record, or one of type 0 if there is none. */
static inline struct pmuk_test_aux_record pmuk_test_get_aux_record(struct pmuk_test_aux *a)
{
	struct pmuk_test_aux_record rec = {};
	const struct perf_event_header *header;
	struct pmuk_reader r;

	KUNIT_ASSERT_EQ(a->test, pmuk_buffer_claim(a->b, &r), 0);
	header = pmuk_buffer_peek(&r);
	if (header)
		memcpy(&rec, header, min_t(size_t, header->size, sizeof(rec)));
	pmuk_buffer_consume(&r);
	pmuk_buffer_release(&r);
	return rec;
}

/* Returns whether the next record is a PERF_RECORD_AUX with exactly these values. */
static inline bool pmuk_test_aux_told(struct pmuk_test_aux *a, u64 offset, u64 size, u64 flags)
{
	struct pmuk_test_aux_record rec = pmuk_test_get_aux_record(a);

	if (rec.header.type == PERF_RECORD_AUX && rec.header.size == sizeof(rec) &&
	    rec.offset == offset && rec.size == size && rec.flags == flags)
		return true;
	kunit_info(a->test, "type %u: %llu bytes at %llu, flags %#llx", rec.header.type, rec.size,
		   rec.offset, rec.flags);
	return false;
}

static inline bool pmuk_test_aux_told_nothing(struct pmuk_test_aux *a)
{
	return !pmuk_test_get_aux_record(a).header.type;
}

static inline void pmuk_test_put_aux(void *data)
{
	struct pmuk_test_aux *a = data;

	KUNIT_EXPECT_EQ(a->test, a->bad, 0);
	pmuk_buffer_destroy(a->b);
}

/* Destroys the buffer while its writers and readers may still be active. */
static inline void pmuk_test_aux_destroy(struct pmuk_test_aux *a)
{
	struct pmuk_buffer *b = a->b;

	a->b = NULL;
	pmuk_buffer_destroy(b);
}

/* Creates a buffer on the first CPU for the time of a test case, and binds the test to that CPU. */
static inline struct pmuk_test_aux *pmuk_test_new_aux(struct kunit *test,
						      const struct pmuk_buffer_attr *wanted)
{
	struct pmuk_test_aux *a = pmuk_test_zalloc(test, sizeof(*a));
	struct pmuk_buffer_attr attr = *wanted;
	struct rnd_state rnd;

	a->test = test;
	prandom_seed_state(&rnd, 4711);
	prandom_bytes_state(&rnd, a->bytes, sizeof(a->bytes));
	init_completion(&a->more);
	attr.completion = &a->more;
	a->b = pmuk_buffer_create(&attr, pmuk_test_pin_first(test));
	KUNIT_ASSERT_FALSE_MSG(test, IS_ERR(a->b), "create: %pe", a->b);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_put_aux, a), 0);
	a->data = pmuk_aux_data(a->b, &a->size);
	KUNIT_ASSERT_NOT_NULL(test, a->data);
	KUNIT_ASSERT_EQ(test, a->size, attr.aux.nr_pages * PAGE_SIZE);
	return a;
}

/*
 * The producer's callbacks count their calls, and keep the arguments. The area's private data
 * points to this struct.
 */
struct pmuk_test_producer {
	struct kunit *test;
	void *answer;			/* setup returns this, or the producer if NULL */
	unsigned int setups, frees;
	int cpu;
	void **pages;
	unsigned int nr_pages;
	unsigned int pieces;
	unsigned int order;		/* the order of the largest piece */
	bool overwrite;
};

/* Returns the order of the piece that begins at @address. A piece's first page stores its order. */
static inline unsigned int pmuk_test_order(void *address)
{
	struct page *page = virt_to_page(address);

	return PagePrivate(page) ? page_private(page) : 0;
}

/*
 * Checks that a piece is contiguous, and that no other piece begins inside of it. Returns how many
 * pages the piece has.
 */
static inline unsigned int pmuk_test_piece(struct pmuk_test_producer *p, unsigned int at)
{
	unsigned int i, nr = 1U << pmuk_test_order(p->pages[at]);
	unsigned long pfn = page_to_pfn(virt_to_page(p->pages[at]));

	KUNIT_EXPECT_LE(p->test, at + nr, p->nr_pages);
	for (i = 1; i < nr && at + i < p->nr_pages; i++) {
		KUNIT_EXPECT_EQ(p->test, page_to_pfn(virt_to_page(p->pages[at + i])), pfn + i);
		KUNIT_EXPECT_FALSE(p->test, PagePrivate(virt_to_page(p->pages[at + i])));
	}
	return nr;
}

static inline void *pmuk_test_setup(void *data, int cpu, void **pages, unsigned int nr_pages,
				    bool overwrite)
{
	struct pmuk_test_producer *p = data;
	unsigned int at;

	p->setups++;
	p->cpu = cpu;
	p->pages = pages;
	p->nr_pages = nr_pages;
	p->overwrite = overwrite;
	p->pieces = 0;
	p->order = 0;
	for (at = 0; at < nr_pages; at += pmuk_test_piece(p, at)) {
		p->order = max(p->order, pmuk_test_order(pages[at]));
		p->pieces++;
	}
	return p->answer ?: p;
}

static inline void pmuk_test_free(void *private)
{
	struct pmuk_test_producer *p = private;

	p->frees++;
}

static const struct pmuk_aux_ops pmuk_test_ops __maybe_unused = {
	.setup = pmuk_test_setup,
	.free = pmuk_test_free,
};

static inline struct pmuk_test_producer *pmuk_test_new_producer(struct kunit *test)
{
	struct pmuk_test_producer *p = pmuk_test_zalloc(test, sizeof(*p));

	p->test = test;
	return p;
}

#endif /* _PMUK_AUX_H */
