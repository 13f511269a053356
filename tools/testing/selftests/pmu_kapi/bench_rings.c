// SPDX-License-Identifier: GPL-2.0
/*
 * Measures a record of 64 bytes in pmuk's ring and in others: makes
 * <debugfs>/pmuk_bench_rings/run measure them with a perf ring among them, prints what
 * it says, and measures what user space has a part in:
 *
 * rec_bpf: bpf_ringbuf_output(), called by a program that BPF_PROG_TEST_RUN repeats. Of
 *	that, the cost of an equal program without the call is subtracted: it is
 *	printed as rec_bpf_overhead.
 * walk_perf, walk_bpf: reading the mapped rings in place, per record, each given back
 *	at once.
 * wake_perf: as wake_pmuk of <debugfs>/pmuk_bench_wake/run: from the time in the record
 *	of an overflow until poll(2) has returned to a SCHED_FIFO task on the same CPU,
 *	which is busy with something else.
 */
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>

#include "bench_bpf.h"

#define RUN		"/sys/kernel/debug/pmuk_bench_rings/run"
#define PAYLOAD		64
#define RING_SIZE	(128 * 1024)
#define WAKES		101
#define PERIOD		1000000		/* cycles, as wake_pmuk */

static int cpu, run;
static uint64_t sum;		/* the sum of all words that readers have read */

/* ---- perf ---- */

struct perf_ring {
	int fd;
	struct perf_event_mmap_page *page;
	uint8_t *data;
	uint64_t mask;
};

static struct perf_ring perf;

/* A ring that is mapped for reading only overwrites. */
static void perf_open(struct perf_ring *r, struct perf_event_attr *attr, int pid, int prot)
{
	size_t page_size = sysconf(_SC_PAGESIZE);

	r->fd = need(open_event(attr, pid, cpu), "perf_event_open");
	r->page = need_map(mmap(NULL, page_size + RING_SIZE, prot, MAP_SHARED, r->fd, 0),
			   "mmap of a perf ring");
	r->data = (uint8_t *)r->page + page_size;
	r->mask = RING_SIZE - 1;
}

/* Opens the ring of a dummy event, which writes no records of its own, and wakes no reader. */
static void perf_open_silent(struct perf_ring *r, int prot)
{
	struct perf_event_attr attr = {
		.type			= PERF_TYPE_SOFTWARE,
		.config			= PERF_COUNT_SW_DUMMY,
		.sample_period		= 1,
		.sample_type		= PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
		.watermark		= 1,
		.wakeup_watermark	= RING_SIZE,
	};

	perf_open(r, &attr, -1, prot);
}

/* The kernel measures with this ring, and writes @records to it first. */
static void perf_hand_over(const struct perf_ring *r, int records)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%d %d", r->fd, records);

	if (write(run, text, len) != len)
		fail("no records in a perf ring");
}

static uint64_t perf_head(const struct perf_ring *r)
{
	return __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
}

static void perf_give_back(const struct perf_ring *r, uint64_t tail)
{
	__atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
}

/* The record at @pos, in place; one that wraps, in @copy. */
static const struct perf_event_header *perf_at(const struct perf_ring *r, uint64_t pos, void *copy)
{
	const struct perf_event_header *rec = (void *)(r->data + (pos & r->mask));
	uint64_t first = r->mask + 1 - (pos & r->mask);

	if (rec->size <= first)
		return rec;
	memcpy(copy, rec, first);
	memcpy((uint8_t *)copy + first, r->data, rec->size - first);
	return copy;
}

static void perf_fill(void)
{
	perf_give_back(&perf, perf_head(&perf));
	perf_hand_over(&perf, CALLS);
}

static void calls_walk_perf(void)
{
	uint64_t tail = perf.page->data_tail, copy[1 + PAYLOAD / 8];

	for (int i = 0; i < CALLS; i++) {
		const struct perf_event_header *rec;

		if (perf_head(&perf) == tail)
			fail("a perf ring is empty");
		rec = perf_at(&perf, tail, copy);
		sum += *(const uint64_t *)(rec + 1);
		tail += rec->size;
		perf_give_back(&perf, tail);
	}
}

/* ---- BPF ---- */

static struct {
	int map;
	int output;		/* program that writes a record */
	int overhead;		/* ->output without the call that writes the record */
	uint64_t *consumer;
	uint64_t *producer;
	uint8_t *data;
} bpf;

#define STACK(offset)	INSN(BPF_ST | BPF_MEM | BPF_DW, BPF_REG_10, 0, offset, 0x5a5a5a5a)

static int bpf_load_writer(int is_output)
{
	struct bpf_insn insns[] = {
		STACK(-64), STACK(-56), STACK(-48), STACK(-40),
		STACK(-32), STACK(-24), STACK(-16), STACK(-8),
		LOAD_MAP(BPF_REG_1, bpf.map), LOAD_MAP_END,
		MOV_REG(BPF_REG_2, BPF_REG_10),
		ADD(BPF_REG_2, -PAYLOAD),
		MOV(BPF_REG_3, PAYLOAD),
		MOV(BPF_REG_4, BPF_RB_NO_WAKEUP),
		is_output ? (struct bpf_insn)CALL(ringbuf_output) :
			    (struct bpf_insn)MOV(BPF_REG_0, 0),
		EXIT,
	};

	return bpf_load(BPF_PROG_TYPE_SOCKET_FILTER, insns, sizeof(insns) / sizeof(*insns));
}

static void bpf_open(void)
{
	size_t page_size = sysconf(_SC_PAGESIZE);

	bpf.map = bpf_make_map(BPF_MAP_TYPE_RINGBUF, 0, 0, RING_SIZE);
	bpf.consumer = need_map(mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf.map,
				     0), "mmap of a BPF ring");
	bpf.producer = need_map(mmap(NULL, page_size + 2 * RING_SIZE, PROT_READ, MAP_SHARED,
				     bpf.map, page_size), "mmap of a BPF ring");
	bpf.data = (uint8_t *)bpf.producer + page_size;
	bpf.output = bpf_load_writer(1);
	bpf.overhead = bpf_load_writer(0);
}

static void bpf_run(int program)
{
	uint8_t packet[64] = { 0 };
	union bpf_attr attr = {
		.test = {
			.prog_fd	= program,
			.data_in	= (uintptr_t)packet,
			.data_size_in	= sizeof(packet),
			.repeat		= CALLS,
		},
	};

	need(sys_bpf(BPF_PROG_TEST_RUN, &attr), "BPF_PROG_TEST_RUN");
	if (attr.test.retval)
		fail("bpf_ringbuf_output()");
}

static void bpf_empty(void)
{
	__atomic_store_n(bpf.consumer, __atomic_load_n(bpf.producer, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
}

static void bpf_fill(void)
{
	bpf_empty();
	bpf_run(bpf.output);
}

static void calls_bpf_output(void) { bpf_run(bpf.output); }
static void calls_bpf_overhead(void) { bpf_run(bpf.overhead); }

/* Does the same as libbpf's ring_buffer__consume(), without its callback. */
static void calls_walk_bpf(void)
{
	uint64_t pos = *bpf.consumer;

	for (int i = 0; i < CALLS; i++) {
		const uint32_t *header = (uint32_t *)(bpf.data + (pos & (RING_SIZE - 1)));
		uint32_t len = __atomic_load_n(header, __ATOMIC_ACQUIRE);

		if (len & BPF_RINGBUF_BUSY_BIT)
			fail("a BPF ring is empty");
		if (!(len & BPF_RINGBUF_DISCARD_BIT))
			sum += *(const uint64_t *)(header + 2);
		len &= ~BPF_RINGBUF_DISCARD_BIT;
		pos += (len + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
		__atomic_store_n(bpf.consumer, pos, __ATOMIC_RELEASE);
	}
}

static struct way ways[] = {
	{ .calls = calls_empty },
	{ .calls = calls_bpf_overhead, .name = "rec_bpf_overhead" },
	{ .calls = calls_bpf_output, .name = "rec_bpf", .before = bpf_empty, .base = 1 },
	{ .calls = calls_walk_perf, .name = "walk_perf", .before = perf_fill },
	{ .calls = calls_walk_bpf, .name = "walk_bpf", .before = bpf_fill },
};

/* ---- wakeups ---- */

static pid_t keep_cpu_busy(void)
{
	pid_t child = fork();

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		;
}

static void wake_perf(void)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_HARDWARE,
		.config		= PERF_COUNT_HW_CPU_CYCLES,
		.sample_period	= PERIOD,
		.sample_type	= PERF_SAMPLE_TIME,
		.wakeup_events	= 1,
		.use_clockid	= 1,
		.clockid	= CLOCK_MONOTONIC,
		.pinned		= 1,
	};
	const struct sched_param fifo = { .sched_priority = 50 };
	int64_t ns[WAKES];
	uint64_t copy[8], tail = 0, at;
	pid_t child = keep_cpu_busy();
	struct perf_ring r;
	int nr = 0;

	need(sched_setscheduler(0, SCHED_FIFO, &fifo), "SCHED_FIFO");
	perf_open(&r, &attr, -1, PROT_READ | PROT_WRITE);
	while (nr < WAKES) {
		struct pollfd poll_fd = { .fd = r.fd, .events = POLLIN };

		if (poll(&poll_fd, 1, 10000) != 1)
			fail("no overflow");
		at = now_ns();
		while (tail != perf_head(&r) && nr < WAKES) {
			const struct perf_event_header *rec = perf_at(&r, tail, copy);

			if (rec->type == PERF_RECORD_SAMPLE)
				ns[nr++] = at - *(const uint64_t *)(rec + 1);
			tail += rec->size;
			perf_give_back(&r, tail);
		}
	}
	kill(child, SIGKILL);
	printf("wake_perf_ns %.3f\n", median(ns, WAKES));
}

/* ---- all ---- */

static void measure_in_kernel(void)
{
	struct perf_ring r;

	perf_open_silent(&r, PROT_READ);
	perf_hand_over(&r, 0);
	print_all(run, RUN);
	close(r.fd);
}

int main(void)
{
	cpu = stay_on_this_cpu();
	run = need(open(RUN, O_RDWR), RUN);
	measure_in_kernel();

	perf_open_silent(&perf, PROT_READ | PROT_WRITE);
	bpf_open();
	measure(ways, sizeof(ways) / sizeof(struct way));
	wake_perf();
	return 0;
}
