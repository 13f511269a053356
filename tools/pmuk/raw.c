// SPDX-License-Identifier: GPL-2.0
/*
 * Decodes packets of PMUK_SCHED_RAW, which linux/pmuk_sched.h describes. The file that they come
 * from may be damaged, so each field is checked.
 */
#include "recording.h"

/* The bytes that are not decoded yet. */
struct bytes {
	const unsigned char *at, *end;
	const char *fault;	/* the first fault found, or NULL */
};

static void fail(struct bytes *b, const char *fault)
{
	if (!b->fault)
		b->fault = fault;
}

static unsigned char byte(struct bytes *b)
{
	if (b->at < b->end)
		return *b->at++;
	fail(b, "a packet that is not complete");
	return 0;
}

static u64 fixed(struct bytes *b, unsigned int size)
{
	u64 number = 0;
	unsigned int i;

	for (i = 0; i < size; i++)
		number |= (u64)byte(b) << 8 * i;
	return number;
}

/* Decodes LEB128. A tenth byte may have only one bit: the highest of 64. */
static u64 number(struct bytes *b)
{
	unsigned int shift = 0;
	u64 sum = 0, bits;

	do {
		bits = byte(b);
		if (shift == 63 && bits > 1)
			fail(b, "a number of more than 64 bits");
		sum |= (bits & 0x7f) << shift;
		shift += 7;
	} while (bits & 0x80 && !b->fault);
	return sum;
}

static void mark(struct raw *raw, struct bytes *b)
{
	u64 next;

	raw->time = fixed(b, 8);
	raw->pid = (u32)fixed(b, 4);
	next = fixed(b, 8);
	if (next < raw->number)
		fail(b, "a mark that goes back");
	raw->missing += next - raw->number;
	raw->number = next;
	raw->marked = true;
}

static void one_switch(struct raw *raw, struct bytes *b, u32 misc, struct slice *s)
{
	u64 next = number(b);

	*s = (struct slice) { .pid = raw->pid, .next = (u32)next, .misc = misc };
	s->run = number(b);
	s->wait = number(b);
	s->counts[0] = number(b);
	s->counts[1] = number(b);
	if (misc > (PMUK_SCHED_CLASS_MASK | PMUK_SCHED_INVALID))
		fail(b, "a packet of an unknown kind");
	if (next > UINT32_MAX)
		fail(b, "an impossible pid");
	if (!raw->marked)
		fail(b, "a switch before the first mark");
	raw->pid = s->next;
	raw->time += s->run;
	s->time = raw->time;
	raw->number++;
}

size_t raw_packet(struct raw *raw, const unsigned char *at, size_t left, struct slice *s,
		  const char **fault)
{
	struct bytes b = { .at = at, .end = at + left };
	unsigned char first = byte(&b);

	if (first == PMUK_SCHED_RAW_MARK)
		mark(raw, &b);
	else
		one_switch(raw, &b, first, s);
	*fault = b.fault;
	return (size_t)(b.at - at);
}
