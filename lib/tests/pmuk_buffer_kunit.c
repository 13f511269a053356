// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check whole buffers: bad attributes, each way to wait for a completion, the control
 * page, failing allocations, maps, and a buffer's end while writers and wakeups are under way.
 */
#include <linux/anon_inodes.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/nodemask.h>
#include <linux/perf_local.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/topology.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "pmuk_counters.h"
#include "pmuk_fail.h"
#include "pmuk_levels.h"
#include "pmuk_map.h"
#include "pmuk_probe.h"
#include "pmuk_records.h"
#include "pmuk_suite.h"
#include "pmuk_wait.h"

static void create_refuses_bad_attributes(struct kunit *test)
{
	static const struct {
		struct pmuk_buffer_attr attr;
		const char *what;
	} bad[] = {
		{ { .nr_pages = 1, .flags = PMUK_BUFFER_ACCOUNT << 1 }, "flags" },
		{ { .nr_pages = 1, .flags = 1U << 31 }, "flags" },
		{ { .nr_pages = 1, .mode = PMUK_BUFFER_STOP + 1 }, "mode" },
		{ { .nr_pages = 1, .mode = -1 }, "mode" },
		{ { .nr_pages = 3 }, "nr_pages" },
		{ { .nr_pages = 1 << 20 }, "nr_pages" },
		{ { .nr_pages = U32_MAX }, "nr_pages" },
		{ { .nr_pages = 1, .watermark = 8, .wakeup_events = 1 }, "two watermarks" },
		{ { .nr_pages = 1, .mode = PMUK_BUFFER_OVERWRITE,
		    .flags = PMUK_BUFFER_USER_TAIL }, "overwritten with a tail" },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		pmuk_test_refused_buffer(test, &bad[i].attr, 0, bad[i].what);
	pmuk_test_refused_buffer(test, NULL, 0, "no attributes");
}

static void create_refuses_impossible_cpu(struct kunit *test)
{
	const struct pmuk_buffer_attr attr = { .nr_pages = 1 };
	const struct pmuk_buffer_attr tail = { .flags = PMUK_BUFFER_USER_TAIL };

	pmuk_test_refused_buffer(test, &attr, -1, "pages and no CPU");
	pmuk_test_refused_buffer(test, &tail, -1, "a tail and no CPU");
	pmuk_test_refused_buffer(test, &attr, -2, "CPU -2");
	pmuk_test_refused_buffer(test, &attr, nr_cpu_ids, "too high a CPU");
	pmuk_test_refused_buffer(test, &attr, INT_MAX, "far too high a CPU");
	pmuk_test_refused_buffer(test, &attr, INT_MIN, "far too low a CPU");
}

static void create_takes_good_attributes(struct kunit *test)
{
	static const struct pmuk_buffer_attr good[] = {
		{ .nr_pages = 0 }, { .nr_pages = 1 }, { .nr_pages = 64 },
		{ .nr_pages = 2, .mode = PMUK_BUFFER_OVERWRITE },
		{ .nr_pages = 2, .mode = PMUK_BUFFER_STOP, .watermark = 1 },
		{ .nr_pages = 2, .wakeup_events = 1 },
		{ .nr_pages = 2, .flags = PMUK_BUFFER_USER_TAIL },
	};
	struct pmuk_buffer *b;
	unsigned int i;
	size_t size;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		b = pmuk_buffer_create(&good[i], cpumask_first(cpu_online_mask));
		KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(b), 0);
		KUNIT_EXPECT_EQ(test, pmuk_nr_buffers(), 1);
		KUNIT_EXPECT_NOT_NULL(test, pmuk_buffer_control(b));
		pmuk_buffer_data(b, &size);
		KUNIT_EXPECT_EQ(test, size, good[i].flags ? 0 : good[i].nr_pages * PAGE_SIZE);
		pmuk_buffer_destroy(b);
		KUNIT_EXPECT_EQ(test, pmuk_nr_buffers(), 0);
	}
	b = pmuk_buffer_create(&good[0], -1);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(b), 0);
	pmuk_buffer_destroy(b);
}

static void calls_refuse_no_buffer(struct kunit *test)
{
	struct pmuk_buffer *none[] = { NULL, ERR_PTR(-ENOMEM) };
	struct pmuk_buffer_stat stat;
	struct pmuk_reader r;
	unsigned int i;
	size_t size;

	for (i = 0; i < ARRAY_SIZE(none); i++) {
		size = 1;
		KUNIT_EXPECT_NULL(test, pmuk_buffer_control(none[i]));
		KUNIT_EXPECT_NULL(test, pmuk_buffer_data(none[i], &size));
		KUNIT_EXPECT_EQ(test, size, 0);
		KUNIT_EXPECT_NULL(test, pmuk_buffer_data(none[i], NULL));
		KUNIT_EXPECT_EQ(test, pmuk_buffer_get_stat(none[i], &stat), -EINVAL);
		KUNIT_EXPECT_EQ(test, pmuk_buffer_pause(none[i]), -EINVAL);
		KUNIT_EXPECT_EQ(test, pmuk_buffer_resume(none[i]), -EINVAL);
		KUNIT_EXPECT_EQ(test, pmuk_buffer_restart(none[i]), -EINVAL);
		KUNIT_EXPECT_EQ(test, pmuk_buffer_claim(none[i], &r), -EINVAL);
		KUNIT_EXPECT_EQ(test, pmuk_buffer_mmap(none[i], NULL), -EINVAL);
		KUNIT_EXPECT_EQ(test, (__force u32)pmuk_buffer_poll(none[i], NULL, NULL),
				(__force u32)EPOLLERR);
		pmuk_buffer_destroy(none[i]);
	}
}

static void calls_refuse_no_answer(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_setup_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1 });

	KUNIT_EXPECT_EQ(test, pmuk_buffer_get_stat(tb->b, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_get_stat(tb->b, ERR_PTR(-ENOMEM)), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_claim(tb->b, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_claim(tb->b, ERR_PTR(-ENOMEM)), -EINVAL);
	KUNIT_EXPECT_NOT_NULL(test, pmuk_buffer_data(tb->b, NULL));
}

/* If user space reads a buffer, the kernel does not. */
static void user_buffer_has_no_kernel_reader(struct kunit *test)
{
	struct pmuk_buffer *b = pmuk_test_new_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .flags = PMUK_BUFFER_USER_TAIL }, 0);
	struct pmuk_reader r;

	KUNIT_EXPECT_EQ(test, pmuk_buffer_claim(b, &r), -EPERM);
	KUNIT_EXPECT_NULL(test, pmuk_buffer_data(b, NULL));
}

#define WATERMARK	512

/* A consumer can wait for a completion in one of these ways. */
enum way {
	INTERRUPTIBLE,
	KILLABLE,
	INTERRUPTIBLE_TIMEOUT,
	KILLABLE_TIMEOUT,
};

/* Holds a buffer, and the consumer that waits for it. */
struct waiting {
	struct completion more;		/* the buffer's completion */
	struct pmuk_test_buffer *tb;
	enum way way;
	unsigned int woken;
	unsigned int empty;		/* wakeups that have found no record */
	bool ending;
	long ret;
};

/* Returns a buffer that completes @w->more. */
static struct pmuk_test_buffer *waiting_buffer(struct kunit *test, struct waiting *w)
{
	return pmuk_test_setup_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 4, .watermark = WATERMARK, .completion = &w->more });
}

static struct waiting *new_waiting(struct kunit *test)
{
	struct waiting *w = pmuk_test_zalloc(test, sizeof(*w));

	init_completion(&w->more);
	w->tb = waiting_buffer(test, w);
	return w;
}

static void write_a_watermark(struct pmuk_test_buffer *tb)
{
	unsigned int i;

	for (i = 0; i < WATERMARK / 64; i++)
		pmuk_test_write(tb, 64);
}

static void write_in_context(void *tb)
{
	write_a_watermark(tb);
}

static void consume_until_told(void *data)
{
	struct waiting *w = data;

	for (;;) {
		wait_for_completion(&w->more);
		if (READ_ONCE(w->ending))
			return;
		w->empty += !pmuk_test_drain(w->tb);
		WRITE_ONCE(w->woken, w->woken + 1);
	}
}

/*
 * Each watermark is a wakeup, and a single record is none. The consumer can complete the completion
 * itself to end.
 */
static void consumer_wakes_per_watermark(struct kunit *test)
{
	struct waiting *w = new_waiting(test);
	struct pmuk_job *job = pmuk_job_start(test, consume_until_told, w);
	unsigned int i;

	for (i = 1; i <= 200; i++) {
		write_a_watermark(w->tb);
		if (!pmuk_ctx_comes(READ_ONCE(w->woken) == i))
			break;
	}
	KUNIT_EXPECT_EQ(test, i, 201);
	pmuk_test_write(w->tb, 64);
	usleep_range(5000, 6000);
	KUNIT_EXPECT_EQ(test, w->woken, 200);
	KUNIT_EXPECT_EQ(test, w->empty, 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_stat(w->tb).wakeups, 200);

	WRITE_ONCE(w->ending, true);
	complete(&w->more);
	pmuk_job_end(test, job);
	KUNIT_EXPECT_EQ(test, w->woken, 200);
}

static u32 poll_mask(struct pmuk_test_buffer *tb)
{
	return (__force u32)pmuk_buffer_poll(tb->b, NULL, NULL);
}

/*
 * epoll_ctl(2) polls the file once before epoll_wait(2) does. No wakeup follows while the buffer is
 * full, so both calls get EPOLLIN.
 */
static void full_buffer_is_polled_again(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_setup_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1 });
	u32 in = (__force u32)(EPOLLIN | EPOLLRDNORM);

	KUNIT_EXPECT_EQ(test, poll_mask(tb), 0);
	while (pmuk_test_write(tb, 64))
		;
	irq_work_sync(&tb->b->wake_work);
	KUNIT_EXPECT_EQ(test, poll_mask(tb), in);
	KUNIT_EXPECT_EQ(test, poll_mask(tb), in);
	pmuk_test_drain(tb);
	KUNIT_EXPECT_EQ(test, poll_mask(tb), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_test_write(tb, 64));
	KUNIT_EXPECT_EQ(test, poll_mask(tb), 0);
}

static long wait_for(struct completion *more, enum way way)
{
	switch (way) {
	case INTERRUPTIBLE:
		return wait_for_completion_interruptible(more);
	case KILLABLE:
		return wait_for_completion_killable(more);
	case INTERRUPTIBLE_TIMEOUT:
		return wait_for_completion_interruptible_timeout(more, 20 * HZ);
	default:
		return wait_for_completion_killable_timeout(more, 20 * HZ);
	}
}

static void wait_its_way(void *data)
{
	struct waiting *w = data;

	WRITE_ONCE(w->woken, 1);
	w->ret = wait_for(&w->more, w->way);
}

/* Returns what the wait returned, after a signal if @signal is set, or else after a watermark. */
static long outcome(struct kunit *test, enum way way, int signal)
{
	struct waiting *w = new_waiting(test);
	struct pmuk_job *job;

	w->way = way;
	job = pmuk_job_start(test, wait_its_way, w);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(READ_ONCE(w->woken) == 1));
	usleep_range(1000, 2000);
	KUNIT_EXPECT_FALSE_MSG(test, completion_done(&job->ended), "did not wait");
	if (signal)
		send_sig(signal, job->task, 1);
	else
		write_a_watermark(w->tb);
	pmuk_job_end(test, job);
	complete_all(&w->more);		/* ends the wait whatever went wrong */
	return w->ret;
}

static void waits_end_with_a_signal(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, outcome(test, INTERRUPTIBLE, SIGINT), -ERESTARTSYS);
	KUNIT_EXPECT_EQ(test, outcome(test, KILLABLE, SIGKILL), -ERESTARTSYS);
	KUNIT_EXPECT_EQ(test, outcome(test, INTERRUPTIBLE_TIMEOUT, SIGINT), -ERESTARTSYS);
	KUNIT_EXPECT_EQ(test, outcome(test, KILLABLE_TIMEOUT, SIGKILL), -ERESTARTSYS);
}

/* A wait with a timeout returns the time that is left. */
static void waits_end_with_a_watermark(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, outcome(test, INTERRUPTIBLE, 0), 0);
	KUNIT_EXPECT_EQ(test, outcome(test, KILLABLE, 0), 0);
	KUNIT_EXPECT_GT(test, outcome(test, INTERRUPTIBLE_TIMEOUT, 0), 0);
	KUNIT_EXPECT_GT(test, outcome(test, KILLABLE_TIMEOUT, 0), 0);
}

static void waits_end_with_their_time(struct kunit *test)
{
	struct waiting *w = new_waiting(test);

	pmuk_test_write(w->tb, 64);
	KUNIT_EXPECT_EQ(test, wait_for_completion_timeout(&w->more, 2), 0);
	KUNIT_EXPECT_EQ(test, wait_for_completion_interruptible_timeout(&w->more, 2), 0);
	KUNIT_EXPECT_EQ(test, wait_for_completion_killable_timeout(&w->more, 2), 0);
	write_a_watermark(w->tb);
	KUNIT_EXPECT_GT(test, wait_for_completion_timeout(&w->more, 10 * HZ), 0);
	KUNIT_EXPECT_EQ(test, wait_for_completion_timeout(&w->more, 2), 0);
}

/* The caller owns the completion: completions of its own count beside those of the buffer. */
static void completion_is_shared(struct kunit *test)
{
	struct waiting *w = pmuk_test_zalloc(test, sizeof(*w));

	init_completion(&w->more);
	complete(&w->more);
	w->tb = waiting_buffer(test, w);
	KUNIT_EXPECT_EQ(test, pmuk_test_completions(&w->more), 1);

	write_a_watermark(w->tb);
	complete(&w->more);
	KUNIT_EXPECT_EQ(test, pmuk_test_completions(&w->more), 2);
}

/* Two buffers can share one completion. */
static void completion_is_of_many_buffers(struct kunit *test)
{
	struct waiting *w = new_waiting(test);
	struct pmuk_test_buffer *other = waiting_buffer(test, w);

	write_a_watermark(w->tb);
	KUNIT_EXPECT_EQ(test, pmuk_test_completions(&w->more), 1);
	write_a_watermark(other);
	KUNIT_EXPECT_EQ(test, pmuk_test_completions(&w->more), 1);
}

/* Writers of each context wake the reader. An NMI cannot do so itself. */
static void wakes_from(struct kunit *test)
{
	enum pmuk_irq_level level = pmuk_test_level(test);
	struct waiting *w = new_waiting(test);
	unsigned int i;

	for (i = 0; i < 100; i++) {
		KUNIT_ASSERT_EQ(test, pmuk_irq_run(level, write_in_context, w->tb), 0);
		KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&w->more, 10 * HZ), 0);
		KUNIT_ASSERT_EQ(test, pmuk_test_drain(w->tb), WATERMARK / 64);
	}
	KUNIT_EXPECT_EQ(test, pmuk_test_completions(&w->more), 0);
}

/* No value in here may change once the buffer is destroyed. */
struct end {
	struct completion more;
	struct pmuk_buffer *b;
	struct pmuk_counter *c;		/* keeps the buffer's memory for late accesses */
	bool started, ended;		/* while destroy has to wait */
	int cpu;
};

static struct end *new_end(struct kunit *test)
{
	struct end *e = pmuk_test_zalloc(test, sizeof(*e));

	init_completion(&e->more);
	e->cpu = pmuk_test_other_cpu(test, pmuk_test_pin_first(test));
	e->b = pmuk_test_new_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .mode = PMUK_BUFFER_OVERWRITE, .watermark = 16,
		.completion = &e->more }, e->cpu);
	e->c = pmuk_test_counter(test, &(struct pmuk_attr){
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .buffer = e->b,
		}, e->cpu, NULL);
	return e;
}

/*
 * Destroys the buffer while the writer is active. Nothing may be written or completed after that.
 */
static void destroy_waits_for(struct kunit *test, int (*writer)(void *data))
{
	struct end *e = new_end(test);
	struct task_struct *task = pmuk_test_thread(test, e->cpu, writer, e);
	unsigned int before;

	while (!READ_ONCE(e->started))
		cpu_relax();
	kunit_release_action(test, pmuk_test_end_buffer, e->b);
	KUNIT_EXPECT_TRUE_MSG(test, READ_ONCE(e->ended), "a writer was left");
	before = READ_ONCE(e->more.done);
	KUNIT_EXPECT_EQ(test, before, 1);
	kthread_stop(task);
	usleep_range(10000, 11000);
	KUNIT_EXPECT_EQ(test, READ_ONCE(e->more.done), before);
}

static void let_destroy_wait(struct end *e)
{
	WRITE_ONCE(e->started, true);
	pmuk_test_spin(20 * NSEC_PER_MSEC);
	WRITE_ONCE(e->ended, true);
}

static int write_slowly(void *data)
{
	struct end *e = data;
	struct perf_event_header *rec;

	scoped_guard(preempt) {
		rec = pmuk_output_begin(e->b, PMUK_TEST_RECORD, 64);
		let_destroy_wait(e);
		if (rec)
			pmuk_output_end(e->b, rec);
	}
	return pmuk_test_wait_for_stop();
}

/* The record is committed, and its wakeup is still pending. */
static int wake_late(void *data)
{
	struct end *e = data;

	scoped_guard(irq) {
		pmuk_test_output(e->b, PMUK_TEST_RECORD, 64);
		let_destroy_wait(e);
	}
	return pmuk_test_wait_for_stop();
}

static const struct late {
	const char *name;
	int (*fn)(void *data);
} lates[] = { { "the writer", write_slowly }, { "the wakeup", wake_late } };

KUNIT_ARRAY_PARAM_DESC(lates, lates, name);

static void destroy_waits(struct kunit *test)
{
	const struct late *late = test->param_value;
	unsigned int i;

	for (i = 0; i < 10; i++)
		destroy_waits_for(test, late->fn);
}

struct storm {
	struct pmuk_sim *sim;
	atomic_t overflows;
};

static void note_overflow(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct storm *storm = data;

	atomic_inc(&storm->overflows);
}

static bool storm_goes_on(struct storm *storm, int more)
{
	int from = atomic_read(&storm->overflows);

	return pmuk_ctx_comes(atomic_read(&storm->overflows) - from >= more);
}

/* The counter still has the buffer, so the test may still read the buffer's counts. */
static void destroy_once_in_storm(struct kunit *test, struct storm *storm)
{
	struct end *e = new_end(test);
	struct pmuk_counter *c = pmuk_test_enabled(test, &(struct pmuk_attr){
		.type = pmuk_sim_type(storm->sim), .period = 1, .flags = PMUK_NO_THROTTLE,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME,
		.overflow = note_overflow, .data = storm, .buffer = e->b,
		}, e->cpu, NULL);
	struct pmuk_buffer_stat first, last;
	unsigned int done;

	KUNIT_EXPECT_TRUE(test, storm_goes_on(storm, 20));
	kunit_release_action(test, pmuk_test_end_buffer, e->b);
	done = READ_ONCE(e->more.done);
	pmuk_buffer_get_stat(e->b, &first);
	KUNIT_EXPECT_TRUE(test, storm_goes_on(storm, 20));
	pmuk_buffer_get_stat(e->b, &last);
	KUNIT_EXPECT_GT(test, done, 0);
	KUNIT_EXPECT_EQ(test, READ_ONCE(e->more.done), done);
	KUNIT_EXPECT_GT(test, first.head, 0);
	KUNIT_EXPECT_EQ(test, last.head, first.head);
	KUNIT_EXPECT_EQ(test, last.lost, first.lost);
	KUNIT_EXPECT_GT(test, last.discarded, first.discarded);
	KUNIT_EXPECT_EQ(test, pmuk_nr_buffers(), 1);
	kunit_release_action(test, pmuk_test_put_counter, c);
	kunit_release_action(test, pmuk_test_put_counter, e->c);
	KUNIT_EXPECT_EQ(test, pmuk_nr_buffers(), 0);
}

static void destroy_ends_records(struct kunit *test)
{
	struct storm *s = pmuk_test_zalloc(test, sizeof(*s));
	int other = pmuk_test_other_cpu(test, pmuk_test_pin_first(test));
	struct pmuk_loop *loop;
	unsigned int i;

	s->sim = pmuk_test_sim(test, 1, 16);
	loop = pmuk_loop_start(test, other, pmuk_test_storm, s->sim);
	for (i = 0; i < 50; i++)
		destroy_once_in_storm(test, s);
	pmuk_loop_stop(test, loop);
	KUNIT_EXPECT_GE(test, atomic_read(&s->overflows), 2000);
}

static void expect_page_shows(struct kunit *test, struct pmuk_buffer *b, struct pmuk_counter *c)
{
	const struct perf_event_mmap_page *page = pmuk_buffer_control(b);
	struct pmuk_value value;

	KUNIT_EXPECT_EQ(test, pmuk_counter_snapshot(c, &value), 0);
	KUNIT_EXPECT_EQ(test, page->lock & 1, 0);
	KUNIT_EXPECT_EQ(test, page->index, 0);
	KUNIT_EXPECT_EQ(test, (u64)page->offset, value.count);
	KUNIT_EXPECT_EQ(test, page->time_enabled, value.time_enabled);
	KUNIT_EXPECT_EQ(test, page->time_running, value.time_running);
}

/*
 * The page shows the first counter of the buffer, and the next counter when the first one has gone.
 */
static void page_shows_the_first_counter(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 2, 32);
	struct pmuk_test_buffer *tb = pmuk_test_setup_buffer(test, &(struct pmuk_buffer_attr){});
	const struct perf_event_mmap_page *page = pmuk_buffer_control(tb->b);
	struct pmuk_attr attr = { .type = pmuk_sim_type(sim), .period = 1000, .buffer = tb->b,
				  .flags = PMUK_NO_THROTTLE };
	struct pmuk_counter *first, *second, *third;
	int cpu = pmuk_test_pin_first(test);
	u32 lock;

	KUNIT_EXPECT_EQ(test, page->data_size, 0);
	KUNIT_EXPECT_EQ(test, page->data_offset, PAGE_SIZE);
	first = pmuk_test_enabled(test, &attr, cpu, NULL);
	KUNIT_EXPECT_EQ(test, page->size, offsetof(struct perf_event_mmap_page, __reserved));
	attr.config = 1;
	second = pmuk_test_enabled(test, &attr, cpu, NULL);

	lock = page->lock;
	pmuk_sim_count(sim, 0, 2500);
	expect_page_shows(test, tb->b, first);
	KUNIT_EXPECT_EQ(test, (u64)page->offset, 2000);
	KUNIT_EXPECT_GT(test, page->lock, lock);
	pmuk_sim_count(sim, 1, 7000);
	KUNIT_EXPECT_EQ(test, (u64)page->offset, 2000);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(first), 0);
	expect_page_shows(test, tb->b, first);
	KUNIT_EXPECT_EQ(test, (u64)page->offset, 2500);
	KUNIT_EXPECT_GT(test, page->time_running, 0);

	kunit_release_action(test, pmuk_test_put_counter, first);
	attr.config = 2;
	kunit_release_action(test, pmuk_test_put_counter, second);
	third = pmuk_test_enabled(test, &attr, cpu, NULL);
	expect_page_shows(test, tb->b, third);
	KUNIT_EXPECT_EQ(test, (u64)page->offset, 0);
	pmuk_sim_count(sim, 2, 9999);
	expect_page_shows(test, tb->b, third);
	KUNIT_EXPECT_EQ(test, (u64)page->offset, 9000);
	kunit_release_action(test, pmuk_test_put_counter, third);
	tb->attempts += 2 + 7 + 9;	/* all lost, as there are no data pages */
}

/*
 * perf core calls event_idx() of the CPU's PMU whenever it writes a control page. The test counts
 * these calls.
 */
static struct page_watch {
	struct pmu *pmu;
	struct perf_event *event;
	int (*event_idx)(struct perf_event *event);
	unsigned int updates;
	unsigned int unheld;		/* updates during which the PMU might interrupt */
} page_watch;

static int page_watch_idx(struct perf_event *event)
{
	if (event == page_watch.event) {
		page_watch.updates++;
		page_watch.unheld += !perf_pmu_disabled(event->pmu);
	}
	return page_watch.event_idx(event);
}

static void page_watch_end(void *unused)
{
	WRITE_ONCE(page_watch.pmu->event_idx, page_watch.event_idx);
}

static void page_watch_begin(struct kunit *test, struct pmuk_counter *c)
{
	struct pmu *pmu = c->event->pmu;

	page_watch = (struct page_watch){ .pmu = pmu, .event = c->event,
					  .event_idx = pmu->event_idx };
	KUNIT_ASSERT_EQ(test, kunit_add_action(test, page_watch_end, NULL), 0);
	WRITE_ONCE(pmu->event_idx, page_watch_idx);
}

#define ARM64_USER_READS	2	/* in config1 */

static struct pmuk_counter *count_cycles(struct kunit *test, const struct pmuk_attr *attr, int cpu,
					 struct task_struct *task)
{
	struct pmuk_counter *c = pmuk_counter_create(attr, cpu, task);

	if (c == ERR_PTR(-ENOENT) || c == ERR_PTR(-EOPNOTSUPP))
		kunit_skip(test, "no PMU that counts cycles");
	KUNIT_ASSERT_FALSE(test, IS_ERR(c));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_put_counter, c), 0);
	return c;
}

/*
 * The PMU's interrupt updates the page as well. So a resume updates it with the PMU stopped. x86's
 * driver updates pages shortly before it starts the PMU, which page_watch cannot tell from this.
 */
static void page_is_updated_by_one_at_a_time(struct kunit *test)
{
	struct pmuk_buffer *b = pmuk_test_new_buffer(test, &(struct pmuk_buffer_attr){}, -1);
	struct pmuk_attr attr = { .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,
				  .config1 = ARM64_USER_READS, .buffer = b };
	struct pmuk_counter *c;
	unsigned int i;

	if (!IS_ENABLED(CONFIG_ARM64))
		kunit_skip(test, "only arm64's driver updates pages while the PMU is held");
	pmuk_test_pin_first(test);
	c = count_cycles(test, &attr, -1, current);
	if (c->on_page)
		kunit_skip(test, "perf core keeps no page here");
	KUNIT_ASSERT_EQ(test, pmuk_counter_enable(c), 0);
	page_watch_begin(test, c);
	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, pmuk_counter_pause(c), 0);
		KUNIT_EXPECT_EQ(test, pmuk_counter_resume(c), 0);
	}
	kunit_release_action(test, page_watch_end, NULL);
	KUNIT_EXPECT_GE(test, page_watch.updates, 10);
	KUNIT_EXPECT_EQ(test, page_watch.unheld, 0);
}

/* Pinned counters of the CPU take all registers, until the counter of this task has none. */
static void take_all_registers(struct kunit *test, struct pmuk_counter *c)
{
	const struct pmuk_attr attr = { .type = PERF_TYPE_HARDWARE,
					.config = PERF_COUNT_HW_CPU_CYCLES,
					.flags = PMUK_PINNED | PMUK_PRIVATE };
	struct pmuk_counter *taker;
	unsigned int i;

	for (i = 0; i < 64 && pmuk_counter_state(c) == PMUK_COUNTER_ACTIVE; i++) {
		taker = count_cycles(test, &attr, raw_smp_processor_id(), NULL);
		KUNIT_EXPECT_EQ(test, pmuk_counter_enable(taker), 0);
	}
	KUNIT_ASSERT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_WAITING);
}

/* Returns a counter of this task whose page perf core keeps. */
static struct pmuk_counter *count_live(struct kunit *test, struct pmuk_buffer *b)
{
	const struct pmuk_attr attr = { .type = PERF_TYPE_HARDWARE,
					.config = PERF_COUNT_HW_CPU_CYCLES,
					.config1 = IS_ENABLED(CONFIG_ARM64) ? ARM64_USER_READS : 0,
					.buffer = b };
	struct pmuk_counter *c = count_cycles(test, &attr, -1, current);

	if (c->on_page)
		kunit_skip(test, "perf core keeps no page here");
	return c;
}

/*
 * The counter is enabled while its task runs, with a register or without one. User space adds the
 * time since the latest update, so perf core updates the page after each sleep of the task.
 */
static void page_without_a_register_leaves_sleep_out(struct kunit *test)
{
	struct pmuk_buffer *b = pmuk_test_new_buffer(test, &(struct pmuk_buffer_attr){}, -1);
	const struct perf_event_mmap_page *page = pmuk_buffer_control(b);
	struct pmuk_counter *c;
	u32 lock;

	pmuk_test_pin_first(test);
	c = count_live(test, b);
	KUNIT_ASSERT_EQ(test, pmuk_counter_enable(c), 0);
	take_all_registers(test, c);
	lock = READ_ONCE(page->lock);
	usleep_range(20000, 21000);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(c), PMUK_COUNTER_WAITING);
	KUNIT_EXPECT_EQ(test, READ_ONCE(page->index), 0);
	KUNIT_EXPECT_NE(test, READ_ONCE(page->lock), lock);
}

/* perf core writes the page when the counter first counts. Until then the page has no count. */
static void page_forgets_a_live_counter(struct kunit *test)
{
	struct pmuk_buffer *b = pmuk_test_new_buffer(test, &(struct pmuk_buffer_attr){}, -1);
	const struct perf_event_mmap_page *page = pmuk_buffer_control(b);
	struct pmuk_counter *c;

	pmuk_test_pin_first(test);
	c = count_live(test, b);
	KUNIT_ASSERT_EQ(test, pmuk_counter_enable(c), 0);
	pmuk_test_spin(NSEC_PER_MSEC);
	kunit_release_action(test, pmuk_test_put_counter, c);
	KUNIT_EXPECT_GT(test, (u64)page->offset, 0);
	KUNIT_EXPECT_GT(test, page->time_enabled, 0);

	c = count_live(test, b);
	expect_page_shows(test, b, c);
	KUNIT_EXPECT_EQ(test, (u64)page->offset, 0);
}

/* perf core would write the page seldom. */
static void page_of_a_cpu_is_published(struct kunit *test)
{
	struct pmuk_test_buffer *tb = pmuk_test_setup_buffer(test, &(struct pmuk_buffer_attr){});
	const struct perf_event_mmap_page *page = pmuk_buffer_control(tb->b);
	const struct pmuk_attr attr = { .type = PERF_TYPE_HARDWARE,
					.config = PERF_COUNT_HW_CPU_CYCLES, .buffer = tb->b,
					.flags = PMUK_PINNED | PMUK_PRIVATE };
	struct pmuk_counter *c = count_cycles(test, &attr, pmuk_test_pin_first(test), NULL);
	u64 count;
	u32 lock;

	KUNIT_EXPECT_EQ(test, (u64)page->offset, 0);
	KUNIT_ASSERT_EQ(test, pmuk_counter_enable(c), 0);
	lock = READ_ONCE(page->lock);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(!pmuk_counter_read_local(c, &count) &&
					       READ_ONCE(page->lock) != lock));
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	expect_page_shows(test, tb->b, c);
}

/* A task's buffer has no CPU and no records, only the page that shows the task's counter. */
static void page_shows_a_task(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, 1, 32);
	struct pmuk_buffer *b = pmuk_test_new_buffer(test, &(struct pmuk_buffer_attr){}, -1);
	struct pmuk_counter *c;

	pmuk_test_pin_first(test);
	c = pmuk_test_enabled(test, &(struct pmuk_attr){
		.type = pmuk_sim_type(sim), .period = 1000, .flags = PMUK_NO_THROTTLE,
		.buffer = b }, -1, current);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(sim, 0, 3500), 3500);
	KUNIT_EXPECT_EQ(test, (u64)pmuk_buffer_control(b)->offset, 3000);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(c), 0);
	expect_page_shows(test, b, c);
	KUNIT_EXPECT_EQ(test, (u64)pmuk_buffer_control(b)->offset, 3500);
}

/*
 * A buffer makes at least these allocations: the buffer, its control page, the list of pages, the
 * pages, and their mapping.
 */
static const struct create {
	const char *name;
	u32 nr_pages;
	unsigned int fewest;		/* least number of allocations */
} creates[] = {
	{ "without pages", 0, 2 },
	{ "with pages", 8, 2 + 1 + 8 + 1 },
};

static void each_allocation_fails(struct kunit *test)
{
	const struct create *create = test->param_value;
	const struct pmuk_buffer_attr attr = { .nr_pages = create->nr_pages };
	struct pmuk_sweep s = pmuk_new_sweep(test);
	struct pmuk_buffer *b;

	pmuk_let_any_page_fail(test);
	do {
		pmuk_fail_nth(s.nth);
		b = pmuk_buffer_create(&attr, cpumask_first(cpu_online_mask));
		s.left = pmuk_fail_left();
		if (IS_ERR(b))
			KUNIT_EXPECT_EQ(test, PTR_ERR(b), -ENOMEM);
		pmuk_buffer_destroy(b);
		KUNIT_EXPECT_EQ(test, pmuk_nr_buffers(), 0);
	} while (pmuk_sweep_on(&s, PTR_ERR_OR_ZERO(b)));
	pmuk_sweep_end(&s, create->fewest);
}

KUNIT_ARRAY_PARAM_DESC(creates, creates, name);

/* ---- maps ---- */

/* Holds a consumer's file, and the result of its latest mmap(2). */
struct map_file {
	struct file *file;
	struct pmuk_buffer *b;
	unsigned int nth;		/* the failing allocation, or 0 */
	unsigned int left;		/* 0: that allocation has failed */
	unsigned int mapped;		/* pages that a failed mmap(2) has left mapped */
	unsigned int freed;		/* freed pages among these */
	int ret;
};

#define MAP_DATA	8		/* data pages */

/* The first page table maps three pages, and the next one maps the others. */
#define MAP_AT		(16 * PMD_SIZE - 3 * PAGE_SIZE)

static void count_mapped(struct map_file *f, struct vm_area_struct *vma)
{
	struct follow_pfnmap_args args = { .vma = vma };

	for (args.address = vma->vm_start; args.address < vma->vm_end;
	     args.address += PAGE_SIZE) {
		if (follow_pfnmap_start(&args))
			continue;
		f->mapped++;
		f->freed += !page_count(pfn_to_page(args.pfn));
		follow_pfnmap_end(&args);
	}
}

/* Other threads of the process can read the mapped pages until mmap(2) has returned its error. */
static int map_file_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct map_file *f = file->private_data;

	f->mapped = 0;
	f->freed = 0;
	pmuk_fail_nth(f->nth);
	f->ret = pmuk_buffer_mmap(f->b, vma);
	f->left = pmuk_fail_left();
	if (f->ret)
		count_mapped(f, vma);
	return f->ret;
}

static const struct file_operations map_file_ops = {
	.owner	= THIS_MODULE,
	.mmap	= map_file_mmap,
};

static void put_map_file(void *data)
{
	struct map_file *f = data;

	fput(f->file);
	pmuk_buffer_destroy(f->b);
}

static struct map_file *new_map_file(struct kunit *test, const struct pmuk_buffer_attr *attr)
{
	struct map_file *f = pmuk_test_zalloc(test, sizeof(*f));

	if (kunit_attach_mm())
		kunit_skip(test, "no memory of its own for a thread");
	f->file = anon_inode_getfile("[pmuk_buffer]", &map_file_ops, f, O_RDWR);
	KUNIT_ASSERT_FALSE(test, IS_ERR(f->file));
	f->b = pmuk_buffer_create(attr, pmuk_test_pin_first(test));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_map_file, f), 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(f->b));
	return f;
}

static const struct pmuk_buffer_attr user_pages = {
	.nr_pages = 2, .flags = PMUK_BUFFER_USER_TAIL };

/* @offset and @pages are in units of pages. */
static bool map_file_at(struct map_file *f, unsigned long offset, unsigned long pages)
{
	return vm_mmap(f->file, MAP_AT, pages * PAGE_SIZE, PROT_READ, MAP_SHARED | MAP_FIXED,
		       offset * PAGE_SIZE) == MAP_AT;
}

static bool write_one(const struct map_file *f)
{
	return pmuk_test_output(f->b, PERF_RECORD_SAMPLE, 64);
}

static u64 head_of(const struct map_file *f)
{
	struct pmuk_buffer_stat stat = {};

	pmuk_buffer_get_stat(f->b, &stat);
	return stat.head;
}

/* If the @nth allocation fails, nothing is mapped, and the buffer is unchanged. */
static int map_failing(struct kunit *test, struct map_file *f, unsigned long offset,
		       unsigned long pages)
{
	u64 head = head_of(f), size = pmuk_buffer_control(f->b)->data_size;

	if (map_file_at(f, offset, pages)) {
		pmuk_test_unmap(test, MAP_AT, pages);
		return 0;
	}
	KUNIT_EXPECT_EQ(test, f->ret, -ENOMEM);
	KUNIT_EXPECT_EQ_MSG(test, f->mapped, 0, "%u pages that are mapped have been freed",
			    f->freed);
	KUNIT_EXPECT_EQ(test, head_of(f), head);
	KUNIT_EXPECT_EQ(test, pmuk_buffer_control(f->b)->data_size, size);
	return f->ret;
}

/* The last failures are those of page tables, when some pages are mapped already. */
static void sweep_maps(struct kunit *test, struct map_file *f, unsigned long offset,
		       unsigned long pages, unsigned int fewest)
{
	struct pmuk_sweep s = pmuk_new_sweep(test);
	int ret;

	pmuk_let_any_page_fail(test);
	do {
		f->nth = s.nth;
		ret = map_failing(test, f, offset, pages);
		s.left = f->left;
	} while (pmuk_sweep_on(&s, ret));
	pmuk_sweep_end(&s, fewest);
}

/*
 * A map makes at least these allocations: the map, the list of pages, each page, their mapping, and
 * two page tables.
 */
static void failed_map_leaves_nothing(struct kunit *test)
{
	struct map_file *f = new_map_file(test, &user_pages);

	KUNIT_EXPECT_TRUE(test, write_one(f));
	KUNIT_EXPECT_EQ(test, head_of(f), 64);
	sweep_maps(test, f, 0, 1 + MAP_DATA, 1 + 1 + MAP_DATA + 1 + 2);
}

/* A map of the area makes at least these allocations: the map, and two page tables. */
static void failed_aux_map_leaves_nothing(struct kunit *test)
{
	const struct pmuk_buffer_attr attr = { .nr_pages = 2, .aux.nr_pages = MAP_DATA };
	struct map_file *f = new_map_file(test, &attr);

	sweep_maps(test, f, 1 + 2, MAP_DATA, 1 + 2);
	KUNIT_EXPECT_EQ(test, f->b->aux_maps, 0);
}

#define HOLD_NS	(10 * NSEC_PER_SEC)

/* Lets no grace period end until the thread is stopped, or HOLD_NS is over. */
static int hold_grace_periods(void *data)
{
	u64 end = ktime_get_ns() + HOLD_NS;
	bool late;

	scoped_guard(rcu) {
		complete(data);
		while (!kthread_should_stop() && ktime_get_ns() <= end)
			cpu_relax();
		late = !kthread_should_stop();
	}
	pmuk_test_wait_for_stop();
	return late ? -ETIMEDOUT : 0;
}

static struct task_struct *start_holding(struct kunit *test)
{
	static DECLARE_COMPLETION(holds);
	int cpu = pmuk_test_other_cpu(test, raw_smp_processor_id());
	struct task_struct *task;

	reinit_completion(&holds);
	task = pmuk_test_thread(test, cpu, hold_grace_periods, &holds);
	wait_for_completion(&holds);
	return task;
}

/* munmap(2) holds the mmap_lock, so it must not wait for a grace period. */
static void last_unmap_does_not_wait(struct kunit *test)
{
	struct map_file *f = new_map_file(test, &user_pages);
	struct pmuk_buffer_stat stat;
	struct task_struct *holder;

	KUNIT_ASSERT_TRUE(test, map_file_at(f, 0, 1 + MAP_DATA));
	KUNIT_EXPECT_TRUE(test, write_one(f));
	KUNIT_EXPECT_EQ(test, head_of(f), 64);
	holder = start_holding(test);
	pmuk_test_unmap(test, MAP_AT, 1 + MAP_DATA);
	KUNIT_EXPECT_EQ_MSG(test, kthread_stop(holder), 0, "munmap has waited for a grace period");

	KUNIT_EXPECT_FALSE(test, write_one(f));
	KUNIT_EXPECT_EQ(test, pmuk_buffer_control(f->b)->data_size, 0);
	stat = pmuk_test_buffer_stat(test, f->b);
	KUNIT_EXPECT_EQ(test, stat.discarded, 1);
	KUNIT_EXPECT_EQ(test, stat.lost, 0);
	KUNIT_EXPECT_TRUE(test, map_file_at(f, 0, 1));
	KUNIT_EXPECT_FALSE(test, write_one(f));
	pmuk_test_unmap(test, MAP_AT, 1);
	KUNIT_EXPECT_TRUE(test, map_file_at(f, 0, 1 + MAP_DATA));
	KUNIT_EXPECT_TRUE(test, write_one(f));
	pmuk_test_unmap(test, MAP_AT, 1 + MAP_DATA);
}

/* ---- whose memory it is, and where ---- */

#define PIECES	4			/* pages in a piece of an AUX area */

/* Counts the pages that this task has allocated, and how many while the lock of @b was held. */
struct allocated {
	struct task_struct *task;
	struct pmuk_buffer *b;		/* or NULL */
	unsigned long accounted, others;
	unsigned int locked;
	struct completion grace;	/* no grace period can end from now on */
	bool grace_waits;		/* the task was seen to wait for a grace period, ... */
	bool grace_locked;		/* ... and the lock was held then */
};

static void see_page_alloc(void *data, struct page *page, unsigned int order, gfp_t gfp,
			   int migratetype)
{
	struct allocated *a = data;

	if (current != a->task || !page)
		return;
	if (!(gfp & __GFP_ACCOUNT)) {
		a->others += BIT(order);
		return;
	}
	WRITE_ONCE(a->accounted, a->accounted + BIT(order));
	a->locked += a->b && mutex_is_locked(&a->b->lock);
}

static struct allocated *see_allocations(struct kunit *test)
{
	struct allocated *a = pmuk_test_zalloc(test, sizeof(*a));

	a->task = current;
	pmuk_test_probe(test, "mm_page_alloc", see_page_alloc, a);
	return a;
}

/* PMUK_BUFFER_ACCOUNT charges control page, data and AUX area. Without it, nobody is charged. */
static void pages_are_charged_if_asked(struct kunit *test)
{
	struct pmuk_buffer_attr attr = {
		.nr_pages = 16, .aux = { .nr_pages = 32, .order = ilog2(PIECES), .prefer = true },
	};
	struct allocated *a = see_allocations(test);

	pmuk_test_new_buffer(test, &attr, 0);
	KUNIT_EXPECT_EQ(test, a->accounted, 0);
	KUNIT_EXPECT_GE(test, a->others, 1 + 16 + 32);
	attr.flags = PMUK_BUFFER_ACCOUNT;
	pmuk_test_new_buffer(test, &attr, 0);
	KUNIT_EXPECT_GE(test, a->accounted, 1 + 16 + 32);
}

/*
 * A map that allocates pages charges them to the process that maps, whoever has created the buffer.
 */
static void maps_are_charged(struct kunit *test)
{
	struct map_file *f = new_map_file(test, &user_pages);
	struct allocated *a = see_allocations(test);

	KUNIT_ASSERT_TRUE(test, map_file_at(f, 0, 1 + MAP_DATA));
	KUNIT_EXPECT_GE(test, a->accounted, MAP_DATA);
	pmuk_test_unmap(test, MAP_AT, 1 + MAP_DATA);
}

/*
 * A process that is over its memory.high sleeps while it allocates. The creation of a counter takes
 * the lock, and must not wait for that process.
 */
static void maps_allocate_without_the_lock(struct kunit *test)
{
	const struct pmuk_buffer_attr attr = { .nr_pages = 2, .flags = PMUK_BUFFER_USER_TAIL,
					       .aux.nr_pages = 2 };
	struct map_file *f = new_map_file(test, &attr);
	struct allocated *a = see_allocations(test);

	a->b = f->b;
	KUNIT_EXPECT_TRUE(test, map_file_at(f, 1 + 2, 2));
	pmuk_test_unmap(test, MAP_AT, 2);
	KUNIT_EXPECT_TRUE(test, map_file_at(f, 0, 1 + 2));
	pmuk_test_unmap(test, MAP_AT, 1 + 2);
	KUNIT_EXPECT_TRUE(test, map_file_at(f, 0, 1 + MAP_DATA));
	KUNIT_EXPECT_GE(test, a->accounted, MAP_DATA);
	KUNIT_EXPECT_EQ(test, a->locked, 0);
	pmuk_test_unmap(test, MAP_AT, 1 + MAP_DATA);
}

static bool waits_with_all_pages(const struct allocated *a)
{
	return READ_ONCE(a->accounted) >= MAP_DATA &&
	       READ_ONCE(a->task->__state) == TASK_UNINTERRUPTIBLE;
}

/* Holds up the grace period for which a map waits once it has its pages, and looks at the lock. */
static int see_lock_in_grace_period(void *data)
{
	u64 end = ktime_get_ns() + HOLD_NS;
	struct allocated *a = data;

	scoped_guard(rcu) {
		complete(&a->grace);
		while (!waits_with_all_pages(a) && ktime_get_ns() <= end)
			cpu_relax();
		a->grace_waits = waits_with_all_pages(a);
		a->grace_locked = mutex_is_locked(&a->b->lock);
	}
	return pmuk_test_wait_for_stop();
}

static void maps_wait_without_the_lock(struct kunit *test)
{
	struct map_file *f = new_map_file(test, &user_pages);
	struct allocated *a = see_allocations(test);
	int cpu = pmuk_test_other_cpu(test, raw_smp_processor_id());
	struct task_struct *task;

	a->b = f->b;
	init_completion(&a->grace);
	task = pmuk_test_thread(test, cpu, see_lock_in_grace_period, a);
	wait_for_completion(&a->grace);
	KUNIT_EXPECT_TRUE(test, map_file_at(f, 0, 1 + MAP_DATA));
	kthread_stop(task);
	KUNIT_EXPECT_TRUE(test, a->grace_waits);
	KUNIT_EXPECT_FALSE(test, a->grace_locked);
	pmuk_test_unmap(test, MAP_AT, 1 + MAP_DATA);
}

static void expect_node(struct kunit *test, const void *data, size_t size, int node)
{
	size_t at;

	for (at = 0; at < size; at += PAGE_SIZE)
		KUNIT_EXPECT_EQ(test, page_to_nid(vmalloc_to_page(data + at)), node);
}

/* A buffer is on its CPU's node, wherever it is created. Both nodes have memory left. */
static void memory_is_near_its_cpu(struct kunit *test)
{
	const struct pmuk_buffer_attr attr = { .nr_pages = 16, .aux = { .nr_pages = 32 } };
	struct pmuk_buffer *b;
	const void *data;
	int cpu, node;
	size_t size;

	if (num_online_nodes() < 2)
		kunit_skip(test, "needs two nodes");
	for_each_online_cpu(cpu) {
		b = pmuk_test_new_buffer(test, &attr, cpu);
		node = cpu_to_node(cpu);
		KUNIT_EXPECT_EQ(test, page_to_nid(virt_to_page(b)), node);
		KUNIT_EXPECT_EQ(test, page_to_nid(virt_to_page(pmuk_buffer_control(b))), node);
		data = pmuk_buffer_data(b, &size);
		expect_node(test, data, 2 * size, node);
		data = pmuk_aux_data(b, &size);
		expect_node(test, data, 2 * size, node);
	}
}

/* ---- a wait queue of the caller's ---- */

struct waiter {
	wait_queue_head_t waitq;
	wait_queue_entry_t entry;
	atomic_t woken;
};

static int count_wakeup(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key)
{
	atomic_inc(&container_of(entry, struct waiter, entry)->woken);
	return 0;
}

/*
 * The caller's wait queue may have waiters before the buffer is created, and after it is destroyed.
 */
static void wakes_the_callers_queue(struct kunit *test)
{
	struct waiter *w = pmuk_test_zalloc(test, sizeof(*w));
	const struct pmuk_buffer_attr attr = { .nr_pages = 1, .wakeup_events = 1,
					       .waitq = &w->waitq };
	struct pmuk_buffer *b;

	init_waitqueue_head(&w->waitq);
	init_waitqueue_func_entry(&w->entry, count_wakeup);
	add_wait_queue(&w->waitq, &w->entry);
	b = pmuk_test_new_buffer(test, &attr, pmuk_test_pin_first(test));
	KUNIT_EXPECT_TRUE(test, pmuk_test_output(b, PERF_RECORD_SAMPLE, 64));
	kunit_release_action(test, pmuk_test_end_buffer, b);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->woken), 1);
	KUNIT_EXPECT_FALSE(test, list_empty(&w->waitq.head));
	remove_wait_queue(&w->waitq, &w->entry);
}

static struct kunit_case pmuk_buffer_cases[] = {
	KUNIT_CASE(create_refuses_bad_attributes),
	KUNIT_CASE(create_refuses_impossible_cpu),
	KUNIT_CASE(create_takes_good_attributes),
	KUNIT_CASE(calls_refuse_no_buffer),
	KUNIT_CASE(calls_refuse_no_answer),
	KUNIT_CASE(user_buffer_has_no_kernel_reader),
	KUNIT_CASE_SLOW(consumer_wakes_per_watermark),
	KUNIT_CASE(full_buffer_is_polled_again),
	KUNIT_CASE(waits_end_with_a_signal),
	KUNIT_CASE(waits_end_with_a_watermark),
	KUNIT_CASE(waits_end_with_their_time),
	KUNIT_CASE(completion_is_shared),
	KUNIT_CASE(completion_is_of_many_buffers),
	KUNIT_CASE_PARAM(wakes_from, levels_gen_params),
	PMUK_NMI_CASE(wakes_from),
	KUNIT_CASE_PARAM_ATTR(destroy_waits, lates_gen_params, { .speed = KUNIT_SPEED_SLOW }),
	KUNIT_CASE_SLOW(destroy_ends_records),
	KUNIT_CASE(page_shows_the_first_counter),
	KUNIT_CASE(page_is_updated_by_one_at_a_time),
	KUNIT_CASE(page_without_a_register_leaves_sleep_out),
	KUNIT_CASE(page_forgets_a_live_counter),
	KUNIT_CASE(page_of_a_cpu_is_published),
	KUNIT_CASE(page_shows_a_task),
	KUNIT_CASE_PARAM(each_allocation_fails, creates_gen_params),
	KUNIT_CASE(failed_map_leaves_nothing),
	KUNIT_CASE(failed_aux_map_leaves_nothing),
	KUNIT_CASE(last_unmap_does_not_wait),
	KUNIT_CASE(pages_are_charged_if_asked),
	KUNIT_CASE(maps_are_charged),
	KUNIT_CASE(maps_allocate_without_the_lock),
	KUNIT_CASE(maps_wait_without_the_lock),
	KUNIT_CASE(memory_is_near_its_cpu),
	KUNIT_CASE(wakes_the_callers_queue),
	{}
};

PMUK_SUITE(pmuk_buffer, pmuk_test_init, "KUnit tests of pmuk's buffers");
