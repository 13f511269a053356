// SPDX-License-Identifier: GPL-2.0
/*
 * Measures writing a part of an AUX area, and streaming bytes through an area:
 * <debugfs>/pmuk_bench_aux/run. Reading that file measures, see pmuk_bench.h.
 *
 * aux_begin_end is a producer's own call, aux_pmu_begin_end that of a PMU's driver, which knows
 * perf only. Each ends a part of 64 bytes, with its PERF_RECORD_AUX, and begins the next; what is
 * in it is not written. "N" written to the file lets the driver do that N times, if one of its
 * events is on this CPU: tools/testing/selftests/pmu_kapi/bench_aux.c measures perf's own so. While
 * the file is open, its PMU is pmuk_bench_itrace.
 *
 * stream_aux_ns is the time for 4 KiB that one CPU writes and another one reads, in parts of 4 KiB;
 * stream_rec_ns the same bytes as records of 64.
 */
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>

#include "pmuk_bench.h"
#include "pmuk_itrace.h"
#include "pmuk_packets.h"

#define AREA		SZ_64K
#define PART		64	/* bytes */
#define PIECE		4096ULL	/* bytes of a stream in one part */
#define STREAM		SZ_8M

struct aux_bench {
	struct pmuk_itrace *it;
	struct pmuk_buffer *b;		/* written by calls */
	struct pmuk_buffer *traced;	/* written by ->c's PMU; or NULL */
	struct pmuk_counter *c;
};

/* ---- parts ---- */

static void aux_empty(struct pmuk_buffer *b)
{
	struct pmuk_aux_reader aux;
	struct pmuk_aux_span span;
	struct pmuk_reader records;

	if (!pmuk_aux_claim(b, &aux)) {
		if (pmuk_aux_peek(&aux, &span))
			pmuk_aux_consume(&aux, span.size);
		pmuk_aux_release(&aux);
	}
	if (!pmuk_buffer_claim(b, &records)) {
		while (pmuk_buffer_peek(&records))
			pmuk_buffer_consume(&records);
		pmuk_buffer_release(&records);
	}
}

static int own_empty(void *what)
{
	struct aux_bench *a = what;

	aux_empty(a->b);
	return 0;
}

static int pmu_empty(void *what)
{
	struct aux_bench *a = what;

	aux_empty(a->traced);
	return 0;
}

static int aux_begin_end(void *what, unsigned int n)
{
	struct aux_bench *a = what;
	struct pmuk_aux_handle handle;

	guard(irqsave)();	/* as drivers have them, and as pmuk_itrace_parts() */
	do {
		if (unlikely(!pmuk_aux_output_begin(&handle, a->b)))
			return -ENOSPC;
		pmuk_aux_output_end(&handle, PART);
	} while (--n);
	return 0;
}

static int aux_pmu_begin_end(void *what, unsigned int n)
{
	struct aux_bench *a = what;

	return pmuk_itrace_parts(a->it, n, PART);
}

static const struct bench_way aux_ways[] = {
	{ "empty", NULL, bench_empty },
	{ "aux_begin_end", own_empty, aux_begin_end },
	/* last: without perf core's help it is left out */
	{ "aux_pmu_begin_end", pmu_empty, aux_pmu_begin_end },
};

/* The buffer wakes nobody, and its watermark is as high as it can be. */
static struct pmuk_buffer *aux_buffer(void)
{
	const struct pmuk_buffer_attr attr = {
		.nr_pages	= AREA / PAGE_SIZE,
		.watermark	= S32_MAX,
		.aux		= { .nr_pages = AREA / PAGE_SIZE },
	};

	return pmuk_buffer_create(&attr, raw_smp_processor_id());
}

static int aux_open_traced(struct aux_bench *a)
{
	struct pmuk_attr attr = { .type = pmuk_itrace_type(a->it),
				  .config = PMUK_ITRACE_ALIGN_MIN };

	a->traced = aux_buffer();
	if (IS_ERR(a->traced))
		return PTR_ERR(a->traced);
	attr.buffer = a->traced;
	a->c = pmuk_counter_create(&attr, raw_smp_processor_id(), NULL);
	return IS_ERR(a->c) ? PTR_ERR(a->c) : pmuk_counter_enable(a->c);
}

static void aux_close(struct aux_bench *a)
{
	pmuk_counter_destroy(a->c);
	pmuk_buffer_destroy(a->traced);
	pmuk_buffer_destroy(a->b);
}

/* Bound to one CPU by work_on_cpu(). */
static long aux_measure(void *data)
{
	struct bench *b = data;
	struct aux_bench *a = b->what;
	int ret;

	a->b = aux_buffer();
	if (IS_ERR(a->b))
		return PTR_ERR(a->b);
	ret = aux_open_traced(a);
	if (ret == -EOPNOTSUPP)
		b->nr--;
	if (!ret || ret == -EOPNOTSUPP)
		ret = bench_run(b);
	aux_close(a);
	return ret;
}

/* ---- streams ---- */

struct stream {
	struct pmuk_buffer *b;
	bool aux;
	u64 sum;		/* the sum of all words that the reader has read */
	u64 read;		/* reader: bytes */
	u64 ns;
	struct task_struct *reader;
	struct pmuk_aux_reader bytes;
	struct pmuk_reader records;
};

static void stream_sum(struct stream *s, const u64 *words, u64 bytes)
{
	u64 i;

	for (i = 0; i < bytes / sizeof(u64); i++)
		s->sum += words[i];
	WRITE_ONCE(s->read, s->read + bytes);
}

static void stream_read_aux(struct stream *s)
{
	struct pmuk_aux_span span;

	if (!pmuk_aux_peek(&s->bytes, &span))
		return;
	span.size = min(span.size, PIECE);
	stream_sum(s, span.data, span.size);
	pmuk_aux_consume(&s->bytes, span.size);
}

static void stream_read_records(struct stream *s)
{
	const struct perf_event_header *rec = pmuk_buffer_peek(&s->records);

	if (!rec)
		return;
	if (rec->type == PERF_RECORD_SAMPLE)
		stream_sum(s, (const u64 *)(rec + 1), PART);
	pmuk_buffer_consume(&s->records);
}

static int stream_reader(void *data)
{
	struct stream *s = data;

	while (!kthread_should_stop()) {
		if (s->aux)
			stream_read_aux(s);
		else
			stream_read_records(s);
		cond_resched();
	}
	return 0;
}

static void stream_fill(u64 *words, u64 pos, u64 bytes)
{
	u64 i;

	for (i = 0; i < bytes / sizeof(u64); i++)
		words[i] = pmuk_packet_branch(pos + i);
}

static u64 stream_write_aux(struct stream *s)
{
	struct pmuk_aux_handle handle;
	u64 size;

	guard(preempt)();
	if (!pmuk_aux_output_begin(&handle, s->b))
		return 0;
	size = min(handle.size, PIECE);
	stream_fill(handle.data, handle.head, size);
	pmuk_aux_output_end(&handle, size);
	return size;
}

static u64 stream_write_record(struct stream *s, u64 pos)
{
	struct perf_event_header *rec;

	guard(preempt)();
	rec = pmuk_output_begin(s->b, PERF_RECORD_SAMPLE, sizeof(*rec) + PART);
	if (!rec)
		return 0;
	stream_fill((u64 *)(rec + 1), pos, PART);
	pmuk_output_end(s->b, rec);
	return PART;
}

static void stream_write(struct stream *s)
{
	u64 start = ktime_get_ns(), written = 0, more;

	while (written < STREAM) {
		more = s->aux ? stream_write_aux(s) : stream_write_record(s, written);
		written += more;
		if (!more)
			cond_resched();
	}
	while (READ_ONCE(s->read) < written)
		cond_resched();
	s->ns = ktime_get_ns() - start;
}

static int stream_run(struct stream *s, int other)
{
	int ret = pmuk_aux_claim(s->b, &s->bytes) ?: pmuk_buffer_claim(s->b, &s->records);

	if (ret)
		return ret;
	s->reader = kthread_create_on_cpu(stream_reader, s, other, "pmuk_bench/%u");
	if (IS_ERR(s->reader))
		return PTR_ERR(s->reader);
	wake_up_process(s->reader);
	stream_write(s);
	return kthread_stop(s->reader);
}

static long stream_measure(void *data)
{
	struct stream *s = data;
	int other = cpumask_any_but(cpu_online_mask, raw_smp_processor_id()), ret;

	if (other >= nr_cpu_ids)
		return -ENODEV;
	s->b = aux_buffer();
	if (IS_ERR(s->b))
		return PTR_ERR(s->b);
	ret = stream_run(s, other);
	pmuk_buffer_destroy(s->b);
	return ret;
}

static int stream_show(struct seq_file *m, const char *name, bool aux)
{
	struct stream s = { .aux = aux };
	long ret = bench_alone(stream_measure, &s);

	if (ret)
		return ret;
	bench_print_one(m, name, "ns", s.ns * 1000 / (STREAM / PIECE));
	return 0;
}

static int streams_show(struct seq_file *m)
{
	if (num_online_cpus() < 2) {
		seq_puts(m, "# no stream_aux_ns: needs two CPUs\n");
		return 0;
	}
	return stream_show(m, "stream_aux", true) ?: stream_show(m, "stream_rec", false);
}

/* ---- <debugfs>/pmuk_bench_aux/run ---- */

static int run_show(struct seq_file *m, void *unused)
{
	struct aux_bench a = { .it = m->private };
	struct bench b = { .ways = aux_ways, .nr = ARRAY_SIZE(aux_ways), .what = &a };
	int ret = bench_show(m, &b, aux_measure);

	if (ret)
		return ret;
	if (b.nr < ARRAY_SIZE(aux_ways))
		seq_puts(m, "# no aux_pmu_begin_end: perf core has no AUX output of kernel counters\n");
	return streams_show(m);
}

static ssize_t run_write(struct file *file, const char __user *user, size_t count, loff_t *pos)
{
	struct seq_file *m = file->private_data;
	unsigned int n;
	int ret = kstrtouint_from_user(user, count, 0, &n);

	if (!ret && n)
		ret = pmuk_itrace_parts(m->private, n, PART);
	return ret ?: count;
}

static int run_open(struct inode *inode, struct file *file)
{
	struct pmuk_itrace *it = pmuk_itrace_create("pmuk_bench_itrace", 0);
	int ret;

	if (IS_ERR(it))
		return PTR_ERR(it);
	ret = single_open(file, run_show, it);
	if (ret)
		pmuk_itrace_destroy(it);
	return ret;
}

static int run_release(struct inode *inode, struct file *file)
{
	struct seq_file *m = file->private_data;

	pmuk_itrace_destroy(m->private);
	return single_release(inode, file);
}

BENCH_WRITABLE_FOPS;
BENCH_MODULE(pmuk_bench_aux, 0600, "pmuk benchmark: AUX areas");
