// SPDX-License-Identifier: GPL-2.0
/*
 * The built-in record format, perf's own: PERF_RECORD_SAMPLE as perf_event_open(2)
 * and the UAPI header describe it, with the fields that the counter's attributes ask
 * for. This code runs in the overflow handler, in NMI too.
 */
#include <linux/bitops.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/stacktrace.h>
#include <linux/string.h>

#include "buffer.h"
#include "format.h"

/* The variable parts of a record, which are worked out before its size is known. */
struct pmuk_extras {
	unsigned int nr_ips;		/* entries of ips[] to write, the first at ips[first] */
	unsigned int first;
	unsigned int nr_chain;		/* all u64 of the callchain, but for their number */
	unsigned int raw;		/* bytes of the PMU's raw data */
	unsigned int nr_branches;
	struct pmuk_slice slice;
	unsigned long ips[PMUK_CALLCHAIN_MAX];
};

/* Records can have these fields. */
#define PMUK_RECORD_TYPE	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |	\
				 PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |		\
				 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |	\
				 PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |	\
				 PMUK_SAMPLE_DRIVER | PMUK_SAMPLE_CORE | PERF_SAMPLE_CGROUP |	\
				 PERF_SAMPLE_AUX | PMUK_SAMPLE_COOKIE)
#define PMUK_READ_FORMAT	(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | \
				 PERF_FORMAT_ID | PERF_FORMAT_GROUP)

/* Returns the bits of fields that records cannot have. */
u64 pmuk_unsupported_record_fields(u64 sample_type)
{
	u64 own = sample_type & PERF_SAMPLE_CALLCHAIN;	/* pmuk can unwind the kernel's stack */
	u64 regs = PMUK_SAMPLE_UNSUPPORTED ? sample_type & PERF_SAMPLE_REGS_INTR : 0;

	return regs | pmuk_unsupported_fields(sample_type & ~own, PMUK_RECORD_TYPE);
}

u64 pmuk_unsupported_read_format(u64 read_format)
{
	return read_format & ~PMUK_READ_FORMAT;
}

/* Returns what is wrong with the record that @attr asks for, or NULL. */
const char *pmuk_format_fault(const struct pmuk_attr *attr, int cpu)
{
	unsigned int i;

	if (!attr->buffer && (attr->nr_peers || attr->read_format))
		return "peers or read_format without a buffer";
	if (!attr->buffer)
		return NULL;
	if (IS_ERR(attr->buffer) || attr->buffer->cpu != cpu)
		return "a buffer of another CPU";
	if (cpu != -1 && (attr->sample_type & PERF_SAMPLE_REGS_INTR) && !attr->sample_regs_intr)
		return "PERF_SAMPLE_REGS_INTR in records without sample_regs_intr";
	if (cpu != -1 && (attr->sample_type & PERF_SAMPLE_AUX) && !attr->buffer->aux)
		return "PERF_SAMPLE_AUX, and the buffer has no AUX area";
	if (cpu == -1 && (attr->read_format || attr->nr_peers))
		return "peers or read_format for a task counter, whose buffer has no records";
	if (attr->nr_peers > PMUK_PEERS_MAX || (attr->nr_peers && !attr->peers))
		return "too many peers, or no array of peers";
	if (attr->nr_peers && (!(attr->sample_type & PERF_SAMPLE_READ) ||
			       !(attr->read_format & PERF_FORMAT_GROUP)))
		return "peers need PERF_SAMPLE_READ and PERF_FORMAT_GROUP";
	for (i = 0; i < attr->nr_peers; i++) {
		if (IS_ERR_OR_NULL(attr->peers[i]) || perf_local_cpu(attr->peers[i]->event) != cpu)
			return "a peer is no counter, or one of another CPU";
	}
	return NULL;
}

static unsigned int pmuk_format_read_size(const struct pmuk_counter *c)
{
	u64 format = c->attr.read_format;
	unsigned int each = 1 + !!(format & PERF_FORMAT_ID);
	unsigned int times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			     !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);

	if (!(format & PERF_FORMAT_GROUP))
		return (each + times) * sizeof(u64);
	return (1 + times + each * (1 + c->nr_peers)) * sizeof(u64);
}

#define PMUK_VARIABLE	(PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |		\
			 PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_INTR |			\
			 PERF_SAMPLE_REGS_USER | PERF_SAMPLE_AUX)

/*
 * Returns the size of a counter's record without callchain, raw data, branches, registers, and its
 * slice of the AUX area.
 */
unsigned int pmuk_format_size(const struct pmuk_counter *c)
{
	u64 fixed = c->attr.sample_type & ~(u64)PMUK_VARIABLE;
	unsigned int size = sizeof(struct perf_event_header) + hweight64(fixed) * sizeof(u64);

	if (c->attr.sample_type & PERF_SAMPLE_READ)
		size += pmuk_format_read_size(c);
	return size;
}

/*
 * The unwinder walks the host's kernel stack; it cannot reach a guest's stack. It begins with the
 * functions of the interrupt. Skip these up to sample->ip, where the interrupted code and its
 * callers begin. If sample->ip is not found, it is the whole callchain.
 */
static void pmuk_format_unwind(const struct pmuk_counter *c, struct pmuk_extras *x,
			       const struct pmuk_sample *sample)
{
	unsigned int nr, mode = sample->misc & PERF_RECORD_MISC_CPUMODE_MASK;

	if (!sample->regs || mode != PERF_RECORD_MISC_KERNEL)
		return;
	nr = stack_trace_save(x->ips, PMUK_CALLCHAIN_MAX, 0);
	while (x->first < nr && x->ips[x->first] != sample->ip)
		x->first++;
	if (x->first == nr) {
		x->first = 0;
		x->ips[0] = sample->ip;
		nr = 1;
	}
	x->nr_ips = min_t(unsigned int, nr - x->first, c->max_ips);
}

static unsigned int pmuk_format_chain_size(const struct pmuk_counter *c, struct pmuk_extras *x,
					   const struct pmuk_sample *sample)
{
	if (c->attr.flags & PMUK_CALLCHAIN_USER) {
		x->nr_chain = sample->callchain ? sample->callchain->nr : 0;
	} else {
		pmuk_format_unwind(c, x, sample);
		x->nr_chain = !!x->nr_ips + x->nr_ips;
	}
	return (1 + x->nr_chain) * sizeof(u64);
}

/*
 * The record says how to read the registers before it has them. PERF_SAMPLE_REGS_ABI_NONE says that
 * none follow.
 */
static unsigned int pmuk_format_regs_size(u64 mask, u16 abi)
{
	unsigned int nr = abi == PERF_SAMPLE_REGS_ABI_NONE ? 0 : hweight64(mask);

	return (1 + nr) * sizeof(u64);
}

static unsigned int pmuk_format_raw_size(const struct perf_sample_data *data)
{
	const struct perf_raw_frag *frag;
	unsigned int size = 0;

	if (!(data->sample_flags & PERF_SAMPLE_RAW) || !data->raw)
		return 0;
	for (frag = &data->raw->frag; ; frag = frag->next) {
		size += frag->size;
		if (perf_raw_frag_last(frag))
			return size;
	}
}

/* A u32 before the raw data says how many bytes follow. Both are padded to a multiple of 8. */
static unsigned int pmuk_format_raw_total(unsigned int raw)
{
	return round_up(sizeof(u32) + raw, sizeof(u64));
}

static bool pmuk_format_has_branch_index(const struct pmuk_counter *c)
{
	return c->hw_event->attr.branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX;
}

/* The slice is measured last, and cut so that the record fits into the empty buffer. */
static unsigned int pmuk_format_slice_size(const struct pmuk_counter *c, struct pmuk_extras *x,
					   struct pmuk_buffer *b, unsigned int others)
{
	unsigned int before = others + sizeof(u64);
	unsigned int most = pmuk_ring_record_max(&b->ring);
	unsigned int room = before < most ? most - before : 0;

	pmuk_slice_begin(&x->slice, b, min_t(unsigned int, c->max_slice, room));
	return sizeof(u64) + x->slice.size;
}

static unsigned int pmuk_format_extras(const struct pmuk_counter *c, struct pmuk_extras *x,
				       struct pmuk_buffer *b,
				       const struct pmuk_sample *sample,
				       const struct perf_sample_data *data)
{
	const struct perf_event_attr *attr = &c->hw_event->attr;
	unsigned int size = 0;

	x->nr_ips = 0;
	x->first = 0;
	if (c->attr.sample_type & PERF_SAMPLE_CALLCHAIN)
		size += pmuk_format_chain_size(c, x, sample);
	if (c->attr.sample_type & PERF_SAMPLE_RAW) {
		x->raw = pmuk_format_raw_size(data);
		size += pmuk_format_raw_total(x->raw);
	}
	if (c->attr.sample_type & PERF_SAMPLE_BRANCH_STACK) {
		x->nr_branches = sample->branches ? sample->branches->nr : 0;
		size += sizeof(u64) + x->nr_branches * sizeof(struct perf_branch_entry);
		size += pmuk_format_has_branch_index(c) ? sizeof(u64) : 0;
	}
	if (c->attr.sample_type & PERF_SAMPLE_REGS_USER)
		size += pmuk_format_regs_size(attr->sample_regs_user, sample->regs_user_abi);
	if (c->attr.sample_type & PERF_SAMPLE_REGS_INTR)
		size += pmuk_format_regs_size(attr->sample_regs_intr, sample->regs_abi);
	if (c->attr.sample_type & PERF_SAMPLE_AUX)
		size += pmuk_format_slice_size(c, x, b, c->record_size + size);
	return size;
}

/* Returns the peer's present count if the peer is on its PMU, or else the last published count. */
static u64 pmuk_format_peer(struct pmuk_counter *peer)
{
	struct pmuk_value value = {};
	u64 count;

	if (!READ_ONCE(peer->quiet) && !pmuk_counter_read_local(peer, &count))
		return count;
	pmuk_counter_snapshot(peer, &value);
	return value.count;
}

static u64 *pmuk_format_read(u64 *p, struct pmuk_counter *c, const struct pmuk_value *value)
{
	u64 format = c->attr.read_format;
	unsigned int i;

	*p++ = format & PERF_FORMAT_GROUP ? 1 + c->nr_peers : value->count;
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		*p++ = value->time_enabled;
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		*p++ = value->time_running;
	if (format & PERF_FORMAT_GROUP)
		*p++ = value->count;
	if (format & PERF_FORMAT_ID)
		*p++ = c->id;
	for (i = 0; i < c->nr_peers; i++) {
		*p++ = pmuk_format_peer(c->peers[i]);
		if (format & PERF_FORMAT_ID)
			*p++ = c->peers[i]->id;
	}
	return p;
}

/* perf core's callchain has the marks. */
static u64 *pmuk_format_callchain(u64 *p, const struct pmuk_extras *x,
				  const struct pmuk_sample *sample)
{
	unsigned int i;

	*p++ = x->nr_chain;
	if (x->nr_chain && sample->callchain) {
		memcpy(p, sample->callchain->ip, x->nr_chain * sizeof(u64));
		return p + x->nr_chain;
	}
	if (x->nr_ips)
		*p++ = PERF_CONTEXT_KERNEL;
	for (i = 0; i < x->nr_ips; i++)
		*p++ = x->ips[x->first + i];
	return p;
}

static void *pmuk_format_frag(void *to, const struct perf_raw_frag *frag)
{
	if (frag->copy)
		frag->copy(to, frag->data, 0, frag->size);
	else
		memcpy(to, frag->data, frag->size);
	return to + frag->size;
}

static u64 *pmuk_format_raw(u64 *p, const struct pmuk_extras *x,
			    const struct perf_sample_data *data)
{
	unsigned int total = pmuk_format_raw_total(x->raw);
	void *end = (void *)p + total, *to = p;
	const struct perf_raw_frag *frag;

	*(u32 *)to = total - sizeof(u32);
	to += sizeof(u32);
	for (frag = x->raw ? &data->raw->frag : NULL; frag;
	     frag = perf_raw_frag_last(frag) ? NULL : frag->next)
		to = pmuk_format_frag(to, frag);
	memset(to, 0, end - to);
	return end;
}

/*
 * Write hw_idx even if there are no branches: the ABI's layout has it, and decoders expect it. perf
 * core leaves it out then.
 */
static u64 *pmuk_format_branches(u64 *p, const struct pmuk_counter *c, const struct pmuk_extras *x,
				 const struct perf_branch_stack *branches)
{
	size_t size = x->nr_branches * sizeof(struct perf_branch_entry);

	*p++ = x->nr_branches;
	if (pmuk_format_has_branch_index(c))
		*p++ = branches ? branches->hw_idx : -1ULL;
	if (size)
		memcpy(p, branches->entries, size);
	return (void *)p + size;
}

/* Writes the registers in the order of the mask's bits. */
static u64 *pmuk_format_regs(u64 *p, u64 mask, u16 abi, struct pt_regs *regs)
{
	*p++ = abi;
	if (abi == PERF_SAMPLE_REGS_ABI_NONE)
		return p;
	for (; mask; mask &= mask - 1)
		*p++ = pmuk_reg_value(regs, __ffs64(mask));
	return p;
}

static u64 *pmuk_format_slice(u64 *p, const struct pmuk_extras *x, struct pmuk_buffer *b)
{
	*p++ = x->slice.size;
	pmuk_slice_copy(&x->slice, b, p);
	return (void *)p + x->slice.size;
}

static u64 pmuk_format_pair(u32 first, u32 second)
{
	u32 both[] = { first, second };
	u64 pair;

	memcpy(&pair, both, sizeof(pair));
	return pair;
}

static u64 pmuk_format_task(struct task_struct *task)
{
	return task ? pmuk_format_pair(task_tgid_nr(task), task_pid_nr(task)) : 0;
}

static u64 *pmuk_format_fields(u64 *p, struct pmuk_counter *c, const struct pmuk_sample *sample)
{
	const u64 type = c->attr.sample_type;

	if (type & PERF_SAMPLE_IDENTIFIER)
		*p++ = c->id;
	if (type & PERF_SAMPLE_IP)
		*p++ = sample->ip;
	if (type & PERF_SAMPLE_TID)
		*p++ = pmuk_format_task(sample->task);
	if (type & PERF_SAMPLE_TIME)
		*p++ = sample->time;
	if (type & PERF_SAMPLE_ADDR)
		*p++ = sample->addr;
	if (type & PERF_SAMPLE_ID)
		*p++ = c->id;
	if (type & PERF_SAMPLE_STREAM_ID)
		*p++ = c->id;
	if (type & PERF_SAMPLE_CPU)
		*p++ = pmuk_format_pair(raw_smp_processor_id(), 0);
	if (type & PERF_SAMPLE_PERIOD)
		*p++ = sample->period;
	return p;
}

/* The fields after the branch stack. PERF_MEM_NA tells decoders that the source is not known. */
static u64 *pmuk_format_memory(u64 *p, const struct pmuk_counter *c,
			       const struct pmuk_sample *sample)
{
	const struct perf_event_attr *attr = &c->hw_event->attr;
	const u64 type = c->attr.sample_type;

	if (type & PERF_SAMPLE_REGS_USER)
		p = pmuk_format_regs(p, attr->sample_regs_user, sample->regs_user_abi,
				     sample->regs_user);
	if (type & PERF_SAMPLE_WEIGHT_TYPE)
		*p++ = sample->weight;
	if (type & PERF_SAMPLE_DATA_SRC)
		*p++ = sample->valid & PERF_SAMPLE_DATA_SRC ? sample->data_src : PERF_MEM_NA;
	if (type & PERF_SAMPLE_TRANSACTION)
		*p++ = sample->txn;
	if (type & PERF_SAMPLE_REGS_INTR)
		p = pmuk_format_regs(p, attr->sample_regs_intr, sample->regs_abi, sample->regs);
	if (type & PERF_SAMPLE_PHYS_ADDR)
		*p++ = sample->phys_addr;
	if (type & PERF_SAMPLE_CGROUP)
		*p++ = sample->cgroup;
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		*p++ = sample->data_page_size;
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		*p++ = sample->code_page_size;
	return p;
}

/* The ABI gives the order of the fields. If no field was asked for, a record has one u64. */
static void pmuk_format_fill(struct perf_event_header *rec, struct pmuk_counter *c,
			     struct pmuk_buffer *b, const struct pmuk_extras *x,
			     const struct pmuk_sample *sample, const struct perf_sample_data *data)
{
	u64 *p = (u64 *)(rec + 1);

	rec->misc = sample->misc;
	*p = 0;
	p = pmuk_format_fields(p, c, sample);
	if (c->attr.sample_type & PERF_SAMPLE_READ)
		p = pmuk_format_read(p, c, &sample->value);
	if (c->attr.sample_type & PERF_SAMPLE_CALLCHAIN)
		p = pmuk_format_callchain(p, x, sample);
	if (c->attr.sample_type & PERF_SAMPLE_RAW)
		p = pmuk_format_raw(p, x, data);
	if (c->attr.sample_type & PERF_SAMPLE_BRANCH_STACK)
		p = pmuk_format_branches(p, c, x, sample->branches);
	p = pmuk_format_memory(p, c, sample);
	if (c->attr.sample_type & PERF_SAMPLE_AUX)
		p = pmuk_format_slice(p, x, b);
	if (c->attr.sample_type & PMUK_SAMPLE_COOKIE)
		*p = c->attr.cookie;
}

/*
 * Writes @sample as a record into a buffer of this CPU. If there is no room, the buffer counts
 * that, and this function returns false.
 */
bool pmuk_format_sample(struct pmuk_counter *c, struct pmuk_buffer *b,
			const struct pmuk_sample *sample, const struct perf_sample_data *data)
{
	struct perf_event_header *rec;
	struct pmuk_extras x;
	unsigned int size;

	size = c->record_size + pmuk_format_extras(c, &x, b, sample, data);
	rec = pmuk_output_begin(b, PERF_RECORD_SAMPLE, max_t(unsigned int, size, PMUK_RECORD_MIN));
	if (rec) {
		pmuk_format_fill(rec, c, b, &x, sample, data);
		pmuk_output_end(b, rec);
	}
	if (c->attr.sample_type & PERF_SAMPLE_AUX)
		pmuk_slice_end(&x.slice, b);
	return rec;
}

/* The handler of a counter that has a buffer of its own. */
void pmuk_format_record(struct pmuk_counter *c, const struct pmuk_sample *sample,
			const struct perf_sample_data *data)
{
	pmuk_format_sample(c, c->attr.buffer, sample, data);
}
