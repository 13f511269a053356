// SPDX-License-Identifier: GPL-2.0
/*
 * A read of <debugfs>/pmuk_bench_wake/run measures how long a consumer waits for a record. A
 * counter's overflow writes a record, and each record wakes a kernel thread. The file prints the
 * median time from the time stamp of the record until the thread runs. The thread is SCHED_FIFO,
 * and runs on the counter's CPU, where another task is busy.
 *
 * tools/testing/selftests/pmu_kapi/bench_rings.c measures poll(2) in the same way.
 */
#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>

#include "pmuk_bench.h"

#define WAKES		101
#define PERIOD		1000000		/* cycles */
#define PATIENCE	(10 * HZ)

struct wake {
	struct completion woken;
	struct pmuk_reader reader;
	unsigned int nr;
	bool stop;
	u64 ns[WAKES];
};

/* The counter below asks for records with these fields. */
struct wake_record {
	struct perf_event_header header;
	u64 time;
};

static void wake_take(struct wake *w, u64 now)
{
	const struct perf_event_header *header;

	pmuk_for_each_record(header, &w->reader) {
		const struct wake_record *rec = (const struct wake_record *)header;

		if (header->type == PERF_RECORD_SAMPLE && w->nr < WAKES) {
			w->ns[w->nr] = now - rec->time;
			WRITE_ONCE(w->nr, w->nr + 1);
		}
	}
}

static int wake_consumer(void *data)
{
	struct wake *w = data;
	u64 now;

	for (;;) {
		wait_for_completion(&w->woken);
		now = local_clock();
		if (READ_ONCE(w->stop))
			break;
		wake_take(w, now);
	}
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

static int wake_overflow(struct wake *w, struct pmuk_buffer *b)
{
	const struct pmuk_attr attr = {
		.type		= PERF_TYPE_HARDWARE,
		.config		= PERF_COUNT_HW_CPU_CYCLES,
		.period		= PERIOD,
		.flags		= PMUK_PINNED | PMUK_PRIVATE,
		.sample_type	= PERF_SAMPLE_TIME,
		.buffer		= b,
	};
	struct pmuk_counter *c __free(pmuk_counter) =
		pmuk_counter_create(&attr, raw_smp_processor_id(), NULL);
	unsigned long end = jiffies + PATIENCE;
	int ret = IS_ERR(c) ? PTR_ERR(c) : pmuk_counter_enable(c);

	if (ret)
		return ret;
	while (READ_ONCE(w->nr) < WAKES && time_before(jiffies, end))
		cond_resched();
	return w->nr < WAKES ? -ETIMEDOUT : 0;
}

static int wake_with_consumer(struct wake *w, struct pmuk_buffer *b)
{
	struct task_struct *task;
	int ret = pmuk_buffer_claim(b, &w->reader);

	if (ret)
		return ret;
	task = kthread_create_on_cpu(wake_consumer, w, raw_smp_processor_id(), "pmuk_wake/%u");
	if (IS_ERR(task)) {
		pmuk_buffer_release(&w->reader);
		return PTR_ERR(task);
	}
	sched_set_fifo(task);
	wake_up_process(task);

	ret = wake_overflow(w, b);
	WRITE_ONCE(w->stop, true);
	complete(&w->woken);
	kthread_stop(task);
	pmuk_buffer_release(&w->reader);
	return ret;
}

/* Bound to one CPU by work_on_cpu(). */
static long wake_measure(void *data)
{
	struct wake *w = data;
	const struct pmuk_buffer_attr attr = {
		.nr_pages	= 1,
		.wakeup_events	= 1,
		.completion	= &w->woken,
	};
	struct pmuk_buffer *b __free(pmuk_buffer) =
		pmuk_buffer_create(&attr, raw_smp_processor_id());

	return IS_ERR(b) ? PTR_ERR(b) : wake_with_consumer(w, b);
}

static int run_show(struct seq_file *m, void *unused)
{
	struct wake *w __free(kfree) = kzalloc(sizeof(*w), GFP_KERNEL);
	long ret;

	if (!w)
		return -ENOMEM;

	init_completion(&w->woken);
	ret = bench_alone(wake_measure, w);
	if (ret)
		return ret;
	bench_print_one(m, "wake_pmuk", "ns", bench_median(w->ns, WAKES) * 1000);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(run);

BENCH_MODULE(pmuk_bench_wake, 0400, "How long a consumer waits: pmuk's wakeup");
