// SPDX-License-Identifier: GPL-2.0
/*
 * Measures a record with 64 bytes of payload in pmuk's ring and in others, each at its leanest:
 * <debugfs>/pmuk_bench_rings/run. Reading that file measures, see pmuk_bench.h. Rings are written
 * by one CPU. They are emptied outside of what is measured, or overwrite, and nobody is woken.
 * pmuk's wants preemption off, which is so where counters overflow; rec_pmuk_task is for writers
 * that have to do that. What other rings want, they do themselves. rec_pmuk_1buf, _16buf and
 * _256buf are records that go to so many of pmuk's buffers in turn.
 *
 * perf's ring is one that user space has mapped: write a perf descriptor's number to
 * the file before reading it. "NUMBER N" also writes N records there, for user space
 * to read. tools/testing/selftests/pmu_kapi/bench_rings.c does, and measures
 * what cannot be reached from here.
 *
 * Clocks: ftrace takes trace_clock_local(), which is sched_clock(), with each record;
 * perf takes local_clock() for PERF_SAMPLE_TIME. So does rec_pmuk_time.
 */
#include <linux/async.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/preempt.h>
#include <linux/relay.h>
#include <linux/ring_buffer.h>
#include <linux/sched/clock.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "pmuk_bench.h"

#define PAYLOAD		64
#define RING_SIZE	(64 * 1024)	/* more than a turn writes */
#define CPUS_MAX	4
#define BUFFERS_MAX	256	/* number of buffers on one CPU */

struct rings {
	u8 payload[PAYLOAD];
	u64 sum;			/* the sum of all words that readers have read */
	struct pmuk_buffer *pmuk;
	struct pmuk_buffer *overwrite;
	struct pmuk_reader reader;	/* the reader of ->pmuk */
	struct trace_buffer *ftrace;
	struct rchan *relay;
	struct perf_event *perf;	/* NULL: perf is not measured */
};

/* ---- pmuk ---- */

static int pmuk_empty(void *what)
{
	struct rings *r = what;

	while (pmuk_buffer_peek(&r->reader))
		pmuk_buffer_consume(&r->reader);
	return 0;
}

static __always_inline bool pmuk_record(struct pmuk_buffer *b, const u8 *payload)
{
	struct perf_event_header *rec;

	rec = pmuk_output_begin(b, PERF_RECORD_SAMPLE, sizeof(*rec) + PAYLOAD);
	if (!rec)
		return false;
	memcpy(rec + 1, payload, PAYLOAD);
	pmuk_output_end(b, rec);
	return true;
}

static __always_inline int pmuk_records(struct pmuk_buffer *b, const u8 *payload, unsigned int n)
{
	guard(preempt)();
	do {
		if (unlikely(!pmuk_record(b, payload)))
			return -ENOSPC;
	} while (--n);
	return 0;
}

static int rec_pmuk(void *what, unsigned int n)
{
	struct rings *r = what;

	return pmuk_records(r->pmuk, r->payload, n);
}

static int rec_pmuk_overwrite(void *what, unsigned int n)
{
	struct rings *r = what;

	return pmuk_records(r->overwrite, r->payload, n);
}

static int rec_pmuk_task(void *what, unsigned int n)
{
	struct rings *r = what;
	struct pmuk_buffer *b = r->pmuk;

	do {
		guard(preempt)();
		if (unlikely(!pmuk_record(b, r->payload)))
			return -ENOSPC;
	} while (--n);
	return 0;
}

static int rec_pmuk_time(void *what, unsigned int n)
{
	struct rings *r = what;
	struct pmuk_buffer *b = r->pmuk;
	struct {
		struct perf_event_header header;
		u64 time;
		u8 payload[PAYLOAD];
	} *rec;

	guard(preempt)();
	do {
		rec = (void *)pmuk_output_begin(b, PERF_RECORD_SAMPLE, sizeof(*rec));
		if (unlikely(!rec))
			return -ENOSPC;
		rec->time = local_clock();
		memcpy(rec->payload, r->payload, PAYLOAD);
		pmuk_output_end(b, &rec->header);
	} while (--n);
	return 0;
}

static int walk_pmuk_fill(void *what)
{
	return pmuk_empty(what) ?: rec_pmuk(what, BENCH_CALLS);
}

static int walk_pmuk(void *what, unsigned int n)
{
	const struct perf_event_header *rec;
	struct rings *r = what;

	do {
		rec = pmuk_buffer_peek(&r->reader);
		if (unlikely(!rec))
			return -ENODATA;
		r->sum += *(const u64 *)(rec + 1);
		pmuk_buffer_consume(&r->reader);
	} while (--n);
	return 0;
}

/* ---- ftrace ---- */

#ifdef CONFIG_RING_BUFFER
static bool ftrace_open(struct rings *r)
{
	r->ftrace = ring_buffer_alloc(RING_SIZE, RB_FL_OVERWRITE);
	return r->ftrace;
}

static void ftrace_close(struct rings *r)
{
	if (r->ftrace)
		ring_buffer_free(r->ftrace);
}

static int rec_ftrace(void *what, unsigned int n)
{
	struct rings *r = what;
	struct ring_buffer_event *event;

	do {
		event = ring_buffer_lock_reserve(r->ftrace, PAYLOAD);
		if (unlikely(!event))
			return -ENOSPC;
		memcpy(ring_buffer_event_data(event), r->payload, PAYLOAD);
		ring_buffer_unlock_commit(r->ftrace);
	} while (--n);
	return 0;
}

static int walk_ftrace_fill(void *what)
{
	struct rings *r = what;

	ring_buffer_reset(r->ftrace);
	return rec_ftrace(what, BENCH_CALLS);
}

static int walk_ftrace(void *what, unsigned int n)
{
	struct rings *r = what;
	struct ring_buffer_event *event;
	u64 time;

	do {
		event = ring_buffer_consume(r->ftrace, smp_processor_id(), &time, NULL);
		if (unlikely(!event))
			return -ENODATA;
		r->sum += *(u64 *)ring_buffer_event_data(event);
	} while (--n);
	return 0;
}
#else
static bool ftrace_open(struct rings *r)
{
	return true;
}

static void ftrace_close(struct rings *r) { }
#endif

/* ---- relay ---- */

#ifdef CONFIG_RELAY
static struct dentry *relay_create_file(const char *name, struct dentry *parent, umode_t mode,
					struct rchan_buf *buf, int *is_global)
{
	return debugfs_create_file(name, mode, parent, buf, &relay_file_operations);
}

static int relay_remove_file(struct dentry *dentry)
{
	debugfs_remove(dentry);
	return 0;
}

static const struct rchan_callbacks relay_callbacks = {
	.create_buf_file	= relay_create_file,
	.remove_buf_file	= relay_remove_file,
};

static bool rings_relay_open(struct rings *r)
{
	r->relay = relay_open("relay", bench_dir, RING_SIZE, 2, &relay_callbacks, NULL);
	return r->relay;
}

static void rings_relay_close(struct rings *r)
{
	if (r->relay)
		relay_close(r->relay);
}

static int rings_relay_empty(void *what)
{
	struct rings *r = what;

	relay_reset(r->relay);
	return 0;
}

static int rec_relay(void *what, unsigned int n)
{
	struct rings *r = what;

	do {
		relay_write(r->relay, r->payload, PAYLOAD);
	} while (--n);
	return 0;
}

/* In place, and lost if an interrupt writes there, too. */
static int rec_relay_reserve(void *what, unsigned int n)
{
	struct rings *r = what;
	void *rec;

	do {
		rec = relay_reserve(r->relay, PAYLOAD);
		if (unlikely(!rec))
			return -ENOSPC;
		memcpy(rec, r->payload, PAYLOAD);
	} while (--n);
	return 0;
}
#else
static bool rings_relay_open(struct rings *r)
{
	return true;
}

static void rings_relay_close(struct rings *r) { }
#endif

/* ---- perf ---- */

#ifndef MODULE	/* not exported */
/* Less than what tracepoints and BPF programs do to get something there. */
static int rec_perf_bare(void *what, unsigned int n)
{
	const struct perf_event_header header = {
		.type = PERF_RECORD_SAMPLE,
		.size = sizeof(header) + PAYLOAD,
	};
	struct perf_output_handle handle;
	struct perf_sample_data data;
	struct rings *r = what;

	perf_sample_data_init(&data, 0, 0);
	do {
		if (unlikely(perf_output_begin(&handle, &data, r->perf, header.size)))
			return -ENOSPC;
		perf_output_put(&handle, header);
		perf_output_copy(&handle, r->payload, PAYLOAD);
		perf_output_end(&handle);
	} while (--n);
	return 0;
}

/* Each record has the time, as perf's records do, and ours in rec_pmuk_time. */
static int rec_perf(void *what, unsigned int n)
{
	struct perf_output_handle handle;
	struct perf_sample_data data;
	struct rings *r = what;
	struct {
		struct perf_event_header header;
		u64 time;
	} begin = {
		.header = { .type = PERF_RECORD_SAMPLE, .size = sizeof(begin) + PAYLOAD },
	};

	perf_sample_data_init(&data, 0, 0);
	do {
		begin.time = local_clock();
		if (unlikely(perf_output_begin(&handle, &data, r->perf, begin.header.size)))
			return -ENOSPC;
		perf_output_put(&handle, begin);
		perf_output_copy(&handle, r->payload, PAYLOAD);
		perf_output_end(&handle);
	} while (--n);
	return 0;
}

/* All the way: a sample with what the event asks for, time and raw data. */
static int rec_perf_sample(void *what, unsigned int n)
{
	struct perf_sample_data data;
	struct rings *r = what;
	struct pt_regs regs = { };

	perf_fetch_caller_regs(&regs);
	do {
		struct perf_raw_record raw = {
			.frag = { .size = PAYLOAD, .data = r->payload },
		};

		perf_sample_data_init(&data, 0, 0);
		perf_sample_save_raw_data(&data, r->perf, &raw);
		if (unlikely(perf_event_output(r->perf, &data, &regs)))
			return -ENOSPC;
	} while (--n);
	return 0;
}
#endif

static const struct bench_way rings_ways[] = {
	{ "empty", NULL, bench_empty },
	{ "rec_pmuk", pmuk_empty, rec_pmuk },
	{ "rec_pmuk_task", pmuk_empty, rec_pmuk_task },
	{ "rec_pmuk_overwrite", NULL, rec_pmuk_overwrite },
	{ "rec_pmuk_time", pmuk_empty, rec_pmuk_time },
	{ "walk_pmuk", walk_pmuk_fill, walk_pmuk },
#ifdef CONFIG_RING_BUFFER
	{ "rec_ftrace", NULL, rec_ftrace },
	{ "walk_ftrace", walk_ftrace_fill, walk_ftrace },
#endif
#ifdef CONFIG_RELAY
	{ "rec_relay", rings_relay_empty, rec_relay },
	{ "rec_relay_reserve", rings_relay_empty, rec_relay_reserve },
#endif
#ifndef MODULE
	/* last: without an event they are left out */
	{ "rec_perf", NULL, rec_perf },
	{ "rec_perf_bare", NULL, rec_perf_bare },
	{ "rec_perf_sample", NULL, rec_perf_sample },
#endif
};

#define PERF_WAYS	(IS_BUILTIN(CONFIG_PMUK_BENCH) ? 3 : 0)

/* A buffer of this CPU that wakes nobody, and that as rarely as can be. */
static struct pmuk_buffer *rings_buffer(enum pmuk_buffer_mode mode)
{
	const struct pmuk_buffer_attr attr = {
		.nr_pages	= RING_SIZE / PAGE_SIZE,
		.mode		= mode,
		.watermark	= S32_MAX,
	};
	struct pmuk_buffer *b = pmuk_buffer_create(&attr, raw_smp_processor_id());

	return IS_ERR(b) ? NULL : b;
}

static void rings_close(struct rings *r)
{
	if (r->reader.ring)
		pmuk_buffer_release(&r->reader);
	pmuk_buffer_destroy(r->pmuk);
	pmuk_buffer_destroy(r->overwrite);
	ftrace_close(r);
	rings_relay_close(r);
}

static int rings_open_pmuk(struct rings *r)
{
	memset(r->payload, 0x5a, sizeof(r->payload));
	r->pmuk = rings_buffer(PMUK_BUFFER_DROP);
	return r->pmuk ? pmuk_buffer_claim(r->pmuk, &r->reader) : -ENOMEM;
}

static int rings_open(struct rings *r)
{
	r->overwrite = rings_buffer(PMUK_BUFFER_OVERWRITE);
	if (!r->overwrite || !ftrace_open(r) || !rings_relay_open(r))
		return -ENOMEM;
	return rings_open_pmuk(r);
}

/* Bound to one CPU by work_on_cpu(). */
static long rings_measure(void *data)
{
	struct bench *b = data;
	int ret = rings_open(b->what) ?: bench_run(b);

	rings_close(b->what);
	return ret;
}

/* ---- one ring per CPU, all written at once ---- */

static const struct bench_way cpus_ways[] = {
	{ "empty", NULL, bench_empty },
	{ "rec_pmuk", pmuk_empty, rec_pmuk },
};

/* A writer. @here and @done are shared by all writers. */
struct writer {
	struct rings rings;
	struct bench bench;
	struct bench_turns turns[ARRAY_SIZE(cpus_ways)];
	struct task_struct *task;
	atomic_t *here;
	atomic_t *done;
	int nr;
	int ret;
};

/* Goes on until all have measured. Whoever fails keeps nobody waiting. */
static int writer_thread(void *data)
{
	struct writer *w = data;
	struct rings *r = &w->rings;

	w->ret = rings_open_pmuk(r);
	atomic_inc(w->here);
	while (atomic_read(w->here) < w->nr)
		cpu_relax();

	if (!w->ret)
		w->ret = bench_run(&w->bench);
	atomic_inc(w->done);
	while (atomic_read(w->done) < w->nr) {
		if (!w->ret && !pmuk_empty(r))
			rec_pmuk(r, BENCH_CALLS);
		cond_resched();
	}
	rings_close(r);

	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

/* The most expensive CPU's. */
static void cpus_print(struct seq_file *m, struct writer *writers, int nr)
{
	u64 ns = 0, insn = 0;
	char name[16];
	int i;

	snprintf(name, sizeof(name), "rec_pmuk_%dcpu", nr);
	for (i = 0; i < nr; i++) {
		struct bench_turns *turns = writers[i].turns;

		ns = max(ns, bench_cost(turns[1].ns, bench_cost(turns[0].ns, 0)));
		insn = max(insn, bench_cost(turns[1].insn, bench_cost(turns[0].insn, 0)));
	}
	bench_print_one(m, name, "ns", ns);
	if (!writers[0].bench.insns_error)
		bench_print_one(m, name, "insn", insn);
}

static int cpus_start(struct writer *writers, int nr)
{
	struct task_struct *task;
	int cpu, i = 0;

	for_each_online_cpu(cpu) {
		struct writer *w = &writers[i];

		if (i == nr)
			break;
		w->bench = (struct bench) {
			.ways	= cpus_ways,
			.nr	= ARRAY_SIZE(cpus_ways),
			.what	= &w->rings,
			.turns	= w->turns,
		};
		w->nr = nr;
		task = kthread_create_on_cpu(writer_thread, w, cpu, "pmuk_bench/%u");
		if (IS_ERR(task))
			return PTR_ERR(task);
		w->task = task;
		i++;
	}
	/* They wait for each other. */
	if (i < nr)
		return -ENODEV;
	for (i = 0; i < nr; i++)
		wake_up_process(writers[i].task);
	return 0;
}

static int cpus_measure(struct seq_file *m, int nr)
{
	struct writer *writers __free(kvfree) = kvcalloc(nr, sizeof(*writers), GFP_KERNEL);
	atomic_t here = ATOMIC_INIT(0), done = ATOMIC_INIT(0);
	int i, ret;

	if (!writers)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		writers[i].here = &here;
		writers[i].done = &done;
	}

	ret = cpus_start(writers, nr);
	while (!ret && atomic_read(&done) < nr)
		schedule_timeout_uninterruptible(1);
	for (i = 0; i < nr; i++) {
		if (writers[i].task)
			kthread_stop(writers[i].task);
		ret = ret ?: writers[i].ret;
	}
	if (!ret)
		cpus_print(m, writers, nr);
	return ret;
}

static int cpus_show(struct seq_file *m)
{
	int nr, ret = 0;

	for (nr = 1; nr <= CPUS_MAX && nr <= num_online_cpus() && !ret; nr *= 2)
		ret = cpus_measure(m, nr);
	return ret;
}

/* ---- many rings of one CPU, written in turn ---- */

struct buffers {
	u8 payload[PAYLOAD];
	unsigned int next;		/* the buffer of the next record */
	unsigned int nr;		/* how many there are */
	struct pmuk_buffer *b[BUFFERS_MAX];
	struct pmuk_reader readers[BUFFERS_MAX];
};

static int buffers_empty(void *what)
{
	struct buffers *bs = what;
	unsigned int i;

	bs->next = 0;
	for (i = 0; i < bs->nr; i++) {
		while (pmuk_buffer_peek(&bs->readers[i]))
			pmuk_buffer_consume(&bs->readers[i]);
	}
	return 0;
}

/* This is not inline, so that the compiler has the same loop for any number of buffers. */
static noinline int buffers_write(struct buffers *bs, unsigned int buffers, unsigned int n)
{
	guard(preempt)();
	do {
		if (unlikely(!pmuk_record(bs->b[bs->next], bs->payload)))
			return -ENOSPC;
		bs->next = bs->next + 1 < buffers ? bs->next + 1 : 0;
	} while (--n);
	return 0;
}

static int rec_pmuk_1buf(void *what, unsigned int n)
{
	return buffers_write(what, 1, n);
}

static int rec_pmuk_16buf(void *what, unsigned int n)
{
	return buffers_write(what, 16, n);
}

static int rec_pmuk_256buf(void *what, unsigned int n)
{
	return buffers_write(what, BUFFERS_MAX, n);
}

static const struct bench_way buffers_ways[] = {
	{ "empty", NULL, bench_empty },
	{ "rec_pmuk_1buf", buffers_empty, rec_pmuk_1buf },
	{ "rec_pmuk_16buf", buffers_empty, rec_pmuk_16buf },
	{ "rec_pmuk_256buf", buffers_empty, rec_pmuk_256buf },
};

static int buffers_open(struct buffers *bs)
{
	int ret;

	memset(bs->payload, 0x5a, sizeof(bs->payload));
	for (; bs->nr < BUFFERS_MAX; bs->nr++) {
		struct pmuk_buffer *b = rings_buffer(PMUK_BUFFER_DROP);

		if (!b)
			return -ENOMEM;
		ret = pmuk_buffer_claim(b, &bs->readers[bs->nr]);
		if (ret) {
			pmuk_buffer_destroy(b);
			return ret;
		}
		bs->b[bs->nr] = b;
	}
	return 0;
}

static ASYNC_DOMAIN_EXCLUSIVE(buffers_ending);

static void buffer_end(void *data, async_cookie_t cookie)
{
	pmuk_buffer_destroy(data);
}

/* Each buffer's end waits for a grace period: so all of them end at the same time. */
static void buffers_close(struct buffers *bs)
{
	while (bs->nr) {
		bs->nr--;
		pmuk_buffer_release(&bs->readers[bs->nr]);
		async_schedule_domain(buffer_end, bs->b[bs->nr], &buffers_ending);
	}
	async_synchronize_full_domain(&buffers_ending);
}

/* Bound to one CPU by work_on_cpu(). */
static long buffers_measure(void *data)
{
	struct bench *b = data;
	int ret = buffers_open(b->what) ?: bench_run(b);

	buffers_close(b->what);
	return ret;
}

static int buffers_show(struct seq_file *m)
{
	struct buffers *bs __free(kvfree) = kvzalloc(sizeof(*bs), GFP_KERNEL);
	struct bench b = {
		.ways	= buffers_ways,
		.nr	= ARRAY_SIZE(buffers_ways),
		.what	= bs,
	};

	return bs ? bench_show(m, &b, buffers_measure) : -ENOMEM;
}

/* ---- <debugfs>/pmuk_bench_rings/run ---- */

static DEFINE_MUTEX(one_at_a_time);

static int run_show(struct seq_file *m, void *unused)
{
	struct rings *rings __free(kfree) = kzalloc(sizeof(*rings), GFP_KERNEL);
	struct file *perf = m->private;
	struct bench b = {
		.ways	= rings_ways,
		.nr	= ARRAY_SIZE(rings_ways) - (perf ? 0 : PERF_WAYS),
		.what	= rings,
	};
	int ret;

	if (!rings)
		return -ENOMEM;

	guard(mutex)(&one_at_a_time);
	rings->perf = perf ? perf->private_data : NULL;
	ret = bench_show(m, &b, rings_measure);
	if (ret)
		return ret;
	if (!perf)
		seq_puts(m, "# no rec_perf: no perf descriptor was written here\n");
	return cpus_show(m) ?: buffers_show(m);
}

#ifndef MODULE	/* perf_event_get() is not exported */
static ssize_t run_write(struct file *file, const char __user *user, size_t count, loff_t *pos)
{
	struct seq_file *m = file->private_data;
	struct rings *r __free(kfree) = kzalloc(sizeof(*r), GFP_KERNEL);
	unsigned int fd, n = 0;
	char text[32] = "";
	struct file *perf;
	int ret = 0;

	if (!r)
		return -ENOMEM;
	if (count >= sizeof(text) || copy_from_user(text, user, count))
		return -EFAULT;
	if (sscanf(text, "%u %u", &fd, &n) < 1)
		return -EINVAL;
	perf = perf_event_get(fd);
	if (IS_ERR(perf))
		return PTR_ERR(perf);

	guard(mutex)(&one_at_a_time);
	if (m->private)
		fput(m->private);
	m->private = perf;
	if (n) {
		r->perf = perf->private_data;
		ret = rec_perf_bare(r, n);
	}
	return ret ?: count;
}
#else
#define run_write	NULL
#endif

static int run_open(struct inode *inode, struct file *file)
{
	return single_open(file, run_show, NULL);
}

static int run_release(struct inode *inode, struct file *file)
{
	struct seq_file *m = file->private_data;

	if (m->private)
		fput(m->private);
	return single_release(inode, file);
}

BENCH_WRITABLE_FOPS;
BENCH_MODULE(pmuk_bench_rings, 0600, "What a record costs: pmuk's ring beside others");
