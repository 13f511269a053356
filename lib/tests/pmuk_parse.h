/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parser reads PERF_RECORD_SAMPLE as user space would. It is written from the layout in
 * include/uapi/linux/perf_event.h and perf_event_open(2). Of pmuk it knows only the place of the
 * cookie.
 */
#ifndef _PMUK_PARSE_H
#define _PMUK_PARSE_H

#include <kunit/test.h>
#include <linux/pmu_kapi.h>
#include <linux/string.h>
#include <linux/types.h>
#include <uapi/linux/perf_event.h>

#define PMUK_PARSE_MEMBERS	32	/* largest group */

/* The attributes on which the layout of a record depends. */
struct pmuk_layout {
	u64 type;			/* PERF_SAMPLE_* */
	u64 format;			/* PERF_FORMAT_* */
	u64 branch_type;		/* PERF_SAMPLE_BRANCH_* */
	u64 regs_user, regs_intr;	/* masks of registers */
};

struct pmuk_parsed_regs {
	u64 abi;
	const u64 *values;			/* in the record; NULL if there is no ABI */
};

struct pmuk_parsed {
	u16 misc;
	u64 identifier, ip, time, addr, id, stream_id, period, weight;
	u64 data_src, txn, phys_addr, cgroup, data_page_size, code_page_size;
	u32 pid, tid, cpu, cpu_reserved;
	u64 enabled, running;			/* times in PERF_SAMPLE_READ */
	u64 nr;					/* counters in the group, or 1 */
	u64 values[PMUK_PARSE_MEMBERS];
	u64 ids[PMUK_PARSE_MEMBERS];
	u64 nr_ips;
	const u64 *ips;				/* in the record */
	u32 raw_size;
	const u8 *raw;				/* in the record */
	u64 nr_branches;
	u64 branch_index;			/* PERF_SAMPLE_BRANCH_HW_INDEX */
	const struct perf_branch_entry *branches;	/* in the record */
	struct pmuk_parsed_regs regs_user, regs_intr;
	u64 aux_size;
	const void *aux;			/* in the record */
	u64 cookie;				/* after perf's own fields */
};

/* A cursor is a position in the record. After a read beyond the end, all further reads fail. */
struct pmuk_cursor {
	const u8 *at, *end;
	bool bad;
};

static inline const void *pmuk_parse_bytes(struct pmuk_cursor *cur, u64 n)
{
	const void *at = cur->at;

	if (cur->bad || n > cur->end - cur->at) {
		cur->bad = true;
		return NULL;
	}
	cur->at += n;
	return at;
}

static inline u64 pmuk_parse_u64(struct pmuk_cursor *cur)
{
	const void *at = pmuk_parse_bytes(cur, sizeof(u64));
	u64 value = 0;

	if (at)
		memcpy(&value, at, sizeof(value));
	return value;
}

static inline u32 pmuk_parse_u32(struct pmuk_cursor *cur)
{
	const void *at = pmuk_parse_bytes(cur, sizeof(u32));
	u32 value = 0;

	if (at)
		memcpy(&value, at, sizeof(value));
	return value;
}

/*
 * struct read_format is { u64 value; u64 enabled; u64 running; u64 id; }, or with PERF_FORMAT_GROUP
 * { u64 nr; u64 enabled; u64 running; { u64 value; u64 id; } [nr]; }. Fields that the event does
 * not have are left out.
 */
static inline void pmuk_parse_read(struct pmuk_cursor *cur, u64 format, struct pmuk_parsed *p)
{
	bool group = format & PERF_FORMAT_GROUP;
	unsigned int i;

	p->nr = 1;
	if (group)
		p->nr = pmuk_parse_u64(cur);
	else
		p->values[0] = pmuk_parse_u64(cur);
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		p->enabled = pmuk_parse_u64(cur);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		p->running = pmuk_parse_u64(cur);
	if (p->nr > PMUK_PARSE_MEMBERS)
		cur->bad = true;
	for (i = 0; !cur->bad && i < p->nr; i++) {
		if (group)
			p->values[i] = pmuk_parse_u64(cur);
		if (format & PERF_FORMAT_ID)
			p->ids[i] = pmuk_parse_u64(cur);
	}
}

static inline void pmuk_parse_fixed(struct pmuk_cursor *cur, u64 type, struct pmuk_parsed *p)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		p->identifier = pmuk_parse_u64(cur);
	if (type & PERF_SAMPLE_IP)
		p->ip = pmuk_parse_u64(cur);
	if (type & PERF_SAMPLE_TID) {
		p->pid = pmuk_parse_u32(cur);
		p->tid = pmuk_parse_u32(cur);
	}
	if (type & PERF_SAMPLE_TIME)
		p->time = pmuk_parse_u64(cur);
	if (type & PERF_SAMPLE_ADDR)
		p->addr = pmuk_parse_u64(cur);
	if (type & PERF_SAMPLE_ID)
		p->id = pmuk_parse_u64(cur);
	if (type & PERF_SAMPLE_STREAM_ID)
		p->stream_id = pmuk_parse_u64(cur);
	if (type & PERF_SAMPLE_CPU) {
		p->cpu = pmuk_parse_u32(cur);
		p->cpu_reserved = pmuk_parse_u32(cur);
	}
	if (type & PERF_SAMPLE_PERIOD)
		p->period = pmuk_parse_u64(cur);
}

/* Between the number and the branches is the index, if @branch_type asks for it. */
static inline void pmuk_parse_branches(struct pmuk_cursor *cur, u64 branch_type,
				       struct pmuk_parsed *p)
{
	p->nr_branches = pmuk_parse_u64(cur);
	if (branch_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		p->branch_index = pmuk_parse_u64(cur);
	p->branches = pmuk_parse_bytes(cur, p->nr_branches * sizeof(*p->branches));
}

/* The ABI comes first. If there is one, a u64 for each bit of the mask follows. */
static inline void pmuk_parse_regs(struct pmuk_cursor *cur, u64 mask, struct pmuk_parsed_regs *regs)
{
	unsigned int bit, nr = 0;

	regs->abi = pmuk_parse_u64(cur);
	if (regs->abi == PERF_SAMPLE_REGS_ABI_NONE)
		return;
	for (bit = 0; bit < 64; bit++)
		nr += (mask >> bit) & 1;
	regs->values = pmuk_parse_bytes(cur, nr * sizeof(u64));
}

/* The fields behind the branches. */
static inline void pmuk_parse_memory(struct pmuk_cursor *cur, const struct pmuk_layout *layout,
				     struct pmuk_parsed *p)
{
	u64 type = layout->type;

	if (type & PERF_SAMPLE_REGS_USER)
		pmuk_parse_regs(cur, layout->regs_user, &p->regs_user);
	if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
		p->weight = pmuk_parse_u64(cur);
	if (type & PERF_SAMPLE_DATA_SRC)
		p->data_src = pmuk_parse_u64(cur);
	if (type & PERF_SAMPLE_TRANSACTION)
		p->txn = pmuk_parse_u64(cur);
	if (type & PERF_SAMPLE_REGS_INTR)
		pmuk_parse_regs(cur, layout->regs_intr, &p->regs_intr);
	if (type & PERF_SAMPLE_PHYS_ADDR)
		p->phys_addr = pmuk_parse_u64(cur);
	if (type & PERF_SAMPLE_CGROUP)
		p->cgroup = pmuk_parse_u64(cur);
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		p->data_page_size = pmuk_parse_u64(cur);
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		p->code_page_size = pmuk_parse_u64(cur);
}

/* Returns 0, or -EINVAL if @rec is not exactly a sample of that layout. */
static inline int pmuk_parse_layout(const struct perf_event_header *rec,
				    const struct pmuk_layout *layout, struct pmuk_parsed *p)
{
	u64 type = layout->type;
	struct pmuk_cursor cur = {
		.at = (const u8 *)(rec + 1), .end = (const u8 *)rec + rec->size };

	*p = (struct pmuk_parsed){ .misc = rec->misc };
	if (rec->type != PERF_RECORD_SAMPLE || rec->size % 8)
		return -EINVAL;
	pmuk_parse_fixed(&cur, type, p);
	if (type & PERF_SAMPLE_READ)
		pmuk_parse_read(&cur, layout->format, p);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		p->nr_ips = pmuk_parse_u64(&cur);
		p->ips = pmuk_parse_bytes(&cur, p->nr_ips * sizeof(u64));
	}
	if (type & PERF_SAMPLE_RAW) {
		p->raw_size = pmuk_parse_u32(&cur);
		p->raw = pmuk_parse_bytes(&cur, p->raw_size);
	}
	if (type & PERF_SAMPLE_BRANCH_STACK)
		pmuk_parse_branches(&cur, layout->branch_type, p);
	pmuk_parse_memory(&cur, layout, p);
	if (type & PERF_SAMPLE_AUX) {
		p->aux_size = pmuk_parse_u64(&cur);
		p->aux = pmuk_parse_bytes(&cur, p->aux_size);
	}
	if (type & PMUK_SAMPLE_COOKIE)
		p->cookie = pmuk_parse_u64(&cur);
	return cur.bad || cur.at != cur.end ? -EINVAL : 0;
}

/* The records of most tests have no registers, and no branches, or branches without the index. */
static inline int pmuk_parse_sample(const struct perf_event_header *rec, u64 type, u64 format,
				    struct pmuk_parsed *p)
{
	return pmuk_parse_layout(rec, &(struct pmuk_layout){ .type = type, .format = format }, p);
}

/*
 * Reads all records of a buffer, and keeps the last @max samples. Returns how many samples there
 * were. Adds the number of lost records to *@lost, unless @lost is NULL.
 */
static inline unsigned int pmuk_parse_buffer(struct kunit *test, struct pmuk_buffer *b,
					     const struct pmuk_perf_format *format,
					     struct pmuk_parsed *samples, unsigned int max,
					     u64 *lost)
{
	const struct perf_event_header *rec;
	struct pmuk_reader r;
	unsigned int n = 0;

	KUNIT_ASSERT_EQ(test, pmuk_buffer_claim(b, &r), 0);
	pmuk_for_each_record(rec, &r) {
		if (rec->type == PERF_RECORD_LOST && lost) {
			*lost += ((const u64 *)(rec + 1))[1];
			continue;
		}
		KUNIT_EXPECT_EQ(test, pmuk_parse_sample(rec, format->sample_type,
							format->read_format,
							&samples[n % max]), 0);
		n++;
	}
	pmuk_buffer_release(&r);
	return n;
}

#endif /* _PMUK_PARSE_H */
