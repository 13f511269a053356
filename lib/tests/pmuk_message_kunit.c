// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check messages: each kind, that none is lost wherever it comes from, and that there are
 * as many completions as messages, so that a reader is woken for each message and for nothing else.
 */
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>

#include "../../kernel/pmu_kapi/watch.h"
#include "pmuk_aux.h"
#include "pmuk_counters.h"
#include "pmuk_exec.h"
#include "pmuk_levels.h"
#include "pmuk_map.h"
#include "pmuk_place.h"
#include "pmuk_suite.h"

#define PERIOD	10
#define PATIENT	PMUK_CTX_PATIENCE
#define SOON	2			/* jiffies to wait for nothing */

/* Holds a context on all CPUs, with counters of events 0 and 1 whose overflows make messages. */
struct mail {
	struct pmuk_sim *sim;
	struct pmuk_context *ctx;
	struct completion *more;	/* ->own, or another context's, or NULL */
	struct completion own;
	int cpu;
	u64 heard[PMUK_MSG_KINDS];	/* counts of all messages, summed by expect_heard() */
};

static void add_counter(struct kunit *test, struct mail *m, u16 num)
{
	const struct pmuk_pmd pmd = { .num = num, .short_reset = PERIOD,
				      .flags = PMUK_PMD_NOTIFY };

	pmuk_ctx_add_pmd(test, m->ctx, m->sim, num, &pmd);
}

static void start_mail(struct kunit *test, struct mail *m, const struct pmuk_buffer_attr *buffer)
{
	static const struct pmuk_perf_format ip = { .sample_type = PERF_SAMPLE_IP };
	struct pmuk_context_attr attr = { .completion = m->more };

	if (buffer) {
		attr.buffer = *buffer;
		attr.format_arg = &ip;
		attr.format_arg_size = sizeof(ip);
	}
	m->ctx = pmuk_ctx_create(test, &attr);
	add_counter(test, m, 0);
	add_counter(test, m, 1);
	pmuk_ctx_run(test, m->ctx, -1);
}

static struct mail *alloc_mail(struct kunit *test)
{
	struct mail *m = pmuk_test_zalloc(test, sizeof(*m));

	init_completion(&m->own);
	m->more = &m->own;
	m->cpu = pmuk_test_pin_first(test);
	m->sim = pmuk_test_sim(test, 4, 32);
	return m;
}

static struct mail *new_mail_with_buffer(struct kunit *test, const struct pmuk_buffer_attr *buffer)
{
	struct mail *m = alloc_mail(test);

	start_mail(test, m, buffer);
	return m;
}

static struct mail *new_mail(struct kunit *test)
{
	return new_mail_with_buffer(test, NULL);
}

static void overflow(struct mail *m, int cpu, u64 config, u64 times)
{
	pmuk_ctx_feed(m->sim, cpu, config, times * PERIOD);
}

static void expect_silence(struct kunit *test, struct mail *m)
{
	struct pmuk_msg msg;

	KUNIT_EXPECT_EQ(test, pmuk_read(m->ctx, &msg, true), -EAGAIN);
	KUNIT_EXPECT_EQ(test, pmuk_read_timeout(m->ctx, &msg, SOON), -ETIMEDOUT);
	KUNIT_EXPECT_FALSE(test, completion_done(m->more));
}

static void expect_message(struct kunit *test, struct mail *m, const struct pmuk_msg *expected)
{
	struct pmuk_msg msg;

	memset(&msg, 0xa5, sizeof(msg));
	KUNIT_ASSERT_EQ(test, pmuk_read_timeout(m->ctx, &msg, PATIENT), 1);
	KUNIT_EXPECT_EQ(test, msg.kind, expected->kind);
	KUNIT_EXPECT_EQ(test, msg.cpu, expected->cpu);
	KUNIT_EXPECT_EQ(test, msg.count, expected->count);
	KUNIT_EXPECT_EQ(test, msg.counters, expected->counters);
	KUNIT_EXPECT_EQ(test, msg.set, expected->set);
}

static void expect_overflows(struct kunit *test, struct mail *m, int cpu, u64 count, u64 counters)
{
	expect_message(test, m, &(struct pmuk_msg){
		.kind = PMUK_MSG_OVERFLOW, .cpu = cpu, .count = count, .counters = counters });
}

/* ---- reading ---- */

/* pfmk_read() of 2006 never copied the message to the caller. pmuk_read() copies all of it. */
static void message_is_copied_out(struct kunit *test)
{
	struct mail *m = new_mail(test);

	overflow(m, m->cpu, 1, 1);
	expect_overflows(test, m, m->cpu, 1, BIT(1));
	expect_silence(test, m);
}

static void message_names_all_counters(struct kunit *test)
{
	struct mail *m = new_mail(test);

	overflow(m, m->cpu, 0, 3);
	overflow(m, m->cpu, 1, 4);
	expect_overflows(test, m, m->cpu, 7, 3);
	expect_silence(test, m);
	overflow(m, m->cpu, 0, 1);
	expect_overflows(test, m, m->cpu, 1, 1);
}

/*
 * In 2006 a message left its completion behind, so the next wait ended at once; and after 8
 * messages the queue was full. Here a read consumes the message's completion.
 */
static void each_message_has_one_completion(struct kunit *test)
{
	struct mail *m = new_mail(test);
	unsigned int i;

	for (i = 1; i <= 100; i++) {
		overflow(m, m->cpu, 0, i);
		expect_overflows(test, m, m->cpu, i, 1);
		KUNIT_ASSERT_FALSE(test, completion_done(m->more));
	}
	expect_silence(test, m);
}

/* Completions by the caller itself stay, before and after those of messages. */
static void completion_stays_the_callers(struct kunit *test)
{
	struct mail *m = new_mail(test);
	struct pmuk_msg msg;
	unsigned int i;
	int cpu, n = 0;

	complete(m->more);
	complete(m->more);
	for_each_online_cpu(cpu) {
		overflow(m, cpu, 0, 1);
		n++;
	}
	for (i = 0; i < n; i++)
		KUNIT_EXPECT_EQ(test, pmuk_read_timeout(m->ctx, &msg, PATIENT), 1);
	KUNIT_EXPECT_EQ(test, pmuk_read_timeout(m->ctx, &msg, PATIENT), 0);
	KUNIT_EXPECT_EQ(test, pmuk_read(m->ctx, &msg, false), 0);
	expect_silence(test, m);
	complete(m->more);
	KUNIT_EXPECT_EQ(test, pmuk_read(m->ctx, &msg, true), 0);
	expect_silence(test, m);
}

static void no_completion_no_wait(struct kunit *test)
{
	struct mail *m = alloc_mail(test);
	struct pmuk_msg msg;

	m->more = NULL;
	start_mail(test, m, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_read(m->ctx, &msg, true), -EAGAIN);
	KUNIT_EXPECT_EQ(test, pmuk_read(m->ctx, &msg, false), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_read_timeout(m->ctx, &msg, 1), -EINVAL);
	overflow(m, m->cpu, 0, 5);
	KUNIT_EXPECT_EQ(test, pmuk_read(m->ctx, &msg, false), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_read(m->ctx, &msg, true), 1);
	KUNIT_EXPECT_EQ(test, msg.count, 5);
	KUNIT_EXPECT_EQ(test, pmuk_read_timeout(m->ctx, &msg, 0), -EAGAIN);
}

/* The caller waits for the completion by itself, and then reads the messages. */
static void caller_may_wait(struct kunit *test)
{
	struct mail *m = new_mail(test);
	struct pmuk_msg msg;
	unsigned int i;

	for (i = 0; i < 10; i++) {
		overflow(m, m->cpu, 0, 2);
		KUNIT_ASSERT_NE(test, wait_for_completion_timeout(m->more, PATIENT), 0);
		KUNIT_EXPECT_EQ(test, pmuk_read(m->ctx, &msg, true), 1);
		KUNIT_EXPECT_EQ(test, msg.count, 2);
		KUNIT_EXPECT_EQ(test, pmuk_read(m->ctx, &msg, true), -EAGAIN);
	}
	expect_silence(test, m);
}

/*
 * Two contexts share a completion. A read that finds no message of its own context returns 0 or
 * -EAGAIN, and the other context's message stays.
 */
static void contexts_share_a_completion(struct kunit *test)
{
	struct mail *a = new_mail(test), *b = pmuk_test_zalloc(test, sizeof(*b));
	struct pmuk_msg msg;

	b->more = a->more;
	b->sim = a->sim;
	start_mail(test, b, NULL);
	/* The event counts in both contexts. */
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(a->sim, 0, PERIOD), 2 * PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_read_timeout(a->ctx, &msg, PATIENT), 1);
	KUNIT_EXPECT_EQ(test, msg.count, 1);
	KUNIT_EXPECT_EQ(test, pmuk_read_timeout(a->ctx, &msg, PATIENT), 0);
	KUNIT_EXPECT_EQ(test, pmuk_read(a->ctx, &msg, true), -EAGAIN);
	KUNIT_EXPECT_EQ(test, pmuk_read(b->ctx, &msg, true), 1);
	KUNIT_EXPECT_EQ(test, msg.count, 1);
	expect_silence(test, a);
	expect_silence(test, b);
}

/* ---- fairness ---- */

/* Messages of a busy CPU do not keep those of other CPUs from being read. */
static void busy_cpu_hides_no_other(struct kunit *test)
{
	struct mail *m = new_mail(test);
	int quiet = pmuk_test_other_cpu(test, m->cpu);
	unsigned int seen = 0, i;
	struct pmuk_msg msg;

	for (i = 0; i < 100; i++) {
		overflow(m, quiet, 0, 1);
		overflow(m, m->cpu, 0, 1);
		KUNIT_ASSERT_EQ(test, pmuk_read_timeout(m->ctx, &msg, PATIENT), 1);
		seen += msg.cpu == quiet;
		overflow(m, m->cpu, 0, 1);
		KUNIT_ASSERT_EQ(test, pmuk_read_timeout(m->ctx, &msg, PATIENT), 1);
		seen += msg.cpu == quiet;
		KUNIT_ASSERT_EQ(test, seen, i + 1);
	}
}

/* ---- who waits ---- */

struct reader {
	struct mail *m;
	struct pmuk_job *job;
	bool ending, waiting;
	u64 counts, messages, nothing;
	int ret;
};

static void read_until_told(void *data)
{
	struct reader *r = data;
	struct pmuk_msg msg;
	int ret;

	do {
		WRITE_ONCE(r->waiting, true);
		ret = pmuk_read(r->m->ctx, &msg, false);
		if (ret == 1) {
			r->counts += msg.count;
			r->messages++;
		}
		r->nothing += !ret;
	} while (ret >= 0 && !(ret == 0 && READ_ONCE(r->ending)));
	r->ret = ret;
}

static void start_reader(struct kunit *test, struct reader *r, struct mail *m)
{
	r->m = m;
	r->job = pmuk_job_start(test, read_until_told, r);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(READ_ONCE(r->waiting)));
}

/* A signal ends the wait, also if it has come before the wait has begun. */
static void signal_ends_the_wait(struct kunit *test)
{
	struct mail *m = new_mail(test);
	struct reader *r = pmuk_test_zalloc(test, sizeof(*r));

	start_reader(test, r, m);
	send_sig(SIGINT, r->job->task, 1);
	pmuk_job_end(test, r->job);
	KUNIT_EXPECT_EQ(test, r->ret, -ERESTARTSYS);
	KUNIT_EXPECT_EQ(test, r->messages, 0);
	overflow(m, m->cpu, 0, 1);
	expect_overflows(test, m, m->cpu, 1, 1);
	expect_silence(test, m);
}

#define READERS	3

/*
 * Several readers share the messages: each message goes to one of them. At the end the test
 * completes the completion once for each reader.
 */
static void readers_share_the_messages(struct kunit *test)
{
	struct mail *m = new_mail(test);
	struct reader *r = pmuk_test_zalloc(test, READERS * sizeof(*r));
	u64 counts = 0, nothing = 0;
	unsigned int i;
	struct pmuk_msg msg;
	int cpu;

	for (i = 0; i < READERS; i++)
		start_reader(test, &r[i], m);
	for (i = 0; i < 200; i++) {
		for_each_online_cpu(cpu)
			overflow(m, cpu, 0, 1);
	}
	for (i = 0; i < READERS; i++)
		WRITE_ONCE(r[i].ending, true);
	for (i = 0; i < READERS; i++)
		complete(m->more);
	for (i = 0; i < READERS; i++) {
		pmuk_job_end(test, r[i].job);
		counts += r[i].counts;
		nothing += r[i].nothing;
	}
	/* Reads the messages that have come after the readers' last waits. */
	while (pmuk_read_timeout(m->ctx, &msg, SOON) == 1)
		counts += msg.count;
	KUNIT_EXPECT_EQ(test, counts, 200 * num_online_cpus());
	KUNIT_EXPECT_EQ(test, nothing, READERS);
	expect_silence(test, m);
}

/* ---- none is lost ---- */

struct poster {
	struct mail *m;
	struct task_struct *task;
	bool nmi;
	unsigned int did[PMUK_IRQ_LEVELS];
	unsigned int failed;
};

static void overflow_here(void *data)
{
	struct poster *p = data;

	pmuk_sim_count(p->m->sim, 0, PERIOD);
}

#define POSTS	400

/* Lets overflows happen on this CPU, in each context of execution in turn. */
static int post_from_everywhere(void *data)
{
	struct poster *p = data;
	unsigned int i, level;

	for (i = 0; i < POSTS; i++) {
		level = i % (p->nmi ? PMUK_IRQ_LEVELS : PMUK_IRQ_NMI);
		if (pmuk_irq_run(level, overflow_here, p))
			WRITE_ONCE(p->failed, p->failed + 1);
		else
			WRITE_ONCE(p->did[level], p->did[level] + 1);
		if (level == PMUK_IRQ_TASK)
			cond_resched();
	}
	return pmuk_test_wait_for_stop();
}

static void start_posters(struct kunit *test, struct mail *m, struct poster *posters)
{
	bool nmi = pmuk_test_try_nmi(test);
	int cpu;

	for_each_online_cpu(cpu) {
		struct poster *p = &posters[cpu];

		p->m = m;
		p->nmi = nmi;
		p->task = pmuk_test_thread(test, cpu, post_from_everywhere, p);
	}
}

static bool posters_are_done(const struct poster *posters)
{
	unsigned int i, sum;
	int cpu;

	for_each_online_cpu(cpu) {
		sum = READ_ONCE(posters[cpu].failed);
		for (i = 0; i < PMUK_IRQ_LEVELS; i++)
			sum += READ_ONCE(posters[cpu].did[i]);
		if (sum < POSTS)
			return false;
	}
	return true;
}

static void end_posters(struct kunit *test, struct poster *posters)
{
	unsigned int level;
	int cpu;

	for_each_online_cpu(cpu) {
		struct poster *p = &posters[cpu];

		kthread_stop(p->task);
		KUNIT_EXPECT_EQ(test, p->failed, 0);
		for (level = 0; level < (p->nmi ? PMUK_IRQ_LEVELS : PMUK_IRQ_NMI); level++)
			KUNIT_EXPECT_GE(test, p->did[level], POSTS / PMUK_IRQ_LEVELS);
	}
}

/*
 * Returns how many overflows were counted. A throttled counter may miss some, but less than half.
 */
static u64 posted(struct kunit *test, struct mail *m, int cpu)
{
	u64 n = div64_u64(pmuk_ctx_count(test, m->ctx, 0, 0, cpu), PERIOD);

	KUNIT_EXPECT_GE(test, n, POSTS / 2);
	return n;
}

/* Messages are read while they come. The sums are right for each CPU. */
static void none_is_lost(struct kunit *test)
{
	struct mail *m = new_mail(test);
	struct poster *posters = pmuk_test_zalloc(test, nr_cpu_ids * sizeof(*posters));
	u64 *counts = pmuk_test_zalloc(test, nr_cpu_ids * sizeof(*counts));
	unsigned int messages = 0;
	struct pmuk_msg msg;
	bool done;
	int cpu;

	start_posters(test, m, posters);
	do {
		done = posters_are_done(posters);
		while (pmuk_read_timeout(m->ctx, &msg, SOON) == 1) {
			KUNIT_EXPECT_EQ(test, msg.kind, PMUK_MSG_OVERFLOW);
			KUNIT_EXPECT_EQ(test, msg.counters | 1, 1);
			counts[msg.cpu] += msg.count;
			messages++;
		}
	} while (!done);
	end_posters(test, posters);
	for_each_online_cpu(cpu)
		KUNIT_EXPECT_EQ(test, counts[cpu], posted(test, m, cpu));
	KUNIT_EXPECT_GE(test, messages, num_online_cpus());
	expect_silence(test, m);
}

/* Unread overflows of a CPU are one message, with one completion, however many there are. */
static void unread_ones_are_counted(struct kunit *test)
{
	struct mail *m = new_mail(test);
	struct poster *posters = pmuk_test_zalloc(test, nr_cpu_ids * sizeof(*posters));
	int cpu;

	start_posters(test, m, posters);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(posters_are_done(posters)));
	end_posters(test, posters);
	for_each_online_cpu(cpu)
		expect_overflows(test, m, cpu, posted(test, m, cpu), 1);
	expect_silence(test, m);
}

/* ---- of buffers ---- */

#define RECORD	16			/* bytes: a header and PERF_SAMPLE_IP */

/* Reads all messages, and expects @count as the sum of @kind since the beginning. */
static void expect_heard(struct kunit *test, struct mail *m, enum pmuk_msg_kind kind, u64 count)
{
	struct pmuk_msg msg;

	while (pmuk_read_timeout(m->ctx, &msg, SOON) == 1)
		m->heard[msg.kind] += msg.count;
	KUNIT_EXPECT_EQ_MSG(test, m->heard[kind], count, "kind %d", kind);
}

static void watermark_is_told(struct kunit *test)
{
	struct mail *m = new_mail_with_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 4, .wakeup_events = 8 });
	unsigned int i;

	overflow(m, m->cpu, 0, 7);
	expect_heard(test, m, PMUK_MSG_WATERMARK, 0);
	for (i = 1; i <= 5; i++) {
		overflow(m, m->cpu, 0, 8);
		expect_heard(test, m, PMUK_MSG_WATERMARK, i);
		expect_heard(test, m, PMUK_MSG_OVERFLOW, 7 + 8 * i);
	}
	expect_heard(test, m, PMUK_MSG_LOST, 0);
	expect_silence(test, m);
}

/*
 * When user space unmaps a buffer, its data go. The next data begin with the first watermark again.
 */
static void watermark_of_other_data_is_told(struct kunit *test)
{
	struct mail *m = new_mail_with_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .watermark = 4 * RECORD, .flags = PMUK_BUFFER_USER_TAIL });
	unsigned long addr;
	unsigned int i;

	for (i = 1; i <= 3; i++) {
		addr = pmuk_test_map(test, pmuk_context_buffer(m->ctx, m->cpu), 0, 2,
				     PROT_READ | PROT_WRITE);
		overflow(m, m->cpu, 0, 5);
		expect_heard(test, m, PMUK_MSG_WATERMARK, i);
		pmuk_test_unmap(test, addr, 2);
	}
}

/* The first of some losses is reported at once, and the others with the next wakeup. */
static void losses_add_up(struct kunit *test)
{
	struct mail *m = new_mail_with_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .watermark = PAGE_SIZE / 2 });
	struct pmuk_buffer *b = pmuk_context_buffer(m->ctx, m->cpu);
	u64 lost, marks = 0;
	unsigned int i;

	for (i = 0; i < 5; i++) {
		overflow(m, m->cpu, 0, PAGE_SIZE / RECORD + 1);
		lost = pmuk_test_buffer_stat(test, b).lost;
		KUNIT_EXPECT_GT(test, lost, 0);
		expect_heard(test, m, PMUK_MSG_LOST, lost);
		overflow(m, m->cpu, 0, 3);
		pmuk_test_consume(test, b, PERF_RECORD_SAMPLE);
		overflow(m, m->cpu, 0, PAGE_SIZE / RECORD / 2 + 2);
		expect_heard(test, m, PMUK_MSG_LOST, pmuk_test_buffer_stat(test, b).lost);
		KUNIT_EXPECT_GE(test, m->heard[PMUK_MSG_WATERMARK], marks + 2);
		marks = m->heard[PMUK_MSG_WATERMARK];
		pmuk_test_consume(test, b, PERF_RECORD_SAMPLE);
	}
	expect_silence(test, m);
}

/* The watch reports losses that come after the first one. So it checks soon, having rested long. */
static void losses_are_watched_for(struct kunit *test)
{
	struct mail *m = new_mail_with_buffer(test, &(struct pmuk_buffer_attr){ .nr_pages = 1 });

	disable_delayed_work_sync(&m->ctx->watch);
	WRITE_ONCE(m->ctx->watch_pause, PMUK_WATCH_MAX);
	overflow(m, m->cpu, 0, PAGE_SIZE / RECORD + 1);
	expect_heard(test, m, PMUK_MSG_LOST, 1);
	KUNIT_EXPECT_EQ(test, READ_ONCE(m->ctx->watch_pause), 0);
	enable_delayed_work(&m->ctx->watch);
}

/* ---- of what goes away ---- */

/*
 * pmuk looks for lost counters in the tick, which an idle CPU does not have. So each CPU is busy
 * for more than a tick.
 */
static void expect_watch_tells(struct kunit *test, struct mail *m, const struct pmuk_msg *expected)
{
	unsigned long end = jiffies + PATIENT;
	int cpu;

	do {
		for_each_online_cpu(cpu) {
			pmuk_test_pin(test, cpu);
			pmuk_test_spin(2 * TICK_NSEC);
		}
	} while (!completion_done(m->more) && time_before(jiffies, end));
	pmuk_test_pin(test, m->cpu);
	expect_message(test, m, expected);
	expect_silence(test, m);
}

static u64 write_aux(struct pmuk_buffer *b, u64 bytes)
{
	struct pmuk_aux_handle handle;

	guard(preempt)();
	if (!pmuk_aux_output_begin(&handle, b))
		return 0;
	pmuk_aux_output_end(&handle, bytes);
	return bytes;
}

static void aux_is_told(struct kunit *test)
{
	struct mail *m = new_mail_with_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 4, .aux = { .nr_pages = 2 } });
	struct pmuk_buffer *b = pmuk_context_buffer(m->ctx, m->cpu);
	unsigned int i;

	for (i = 0; i < 5; i++) {
		KUNIT_EXPECT_EQ(test, write_aux(b, PAGE_SIZE - 8), PAGE_SIZE - 8);
		KUNIT_EXPECT_TRUE(test, pmuk_test_aux_give_back(test, b));
		expect_heard(test, m, PMUK_MSG_AUX, i);
		KUNIT_EXPECT_EQ(test, write_aux(b, 8), 8);
		KUNIT_EXPECT_TRUE(test, pmuk_test_aux_give_back(test, b));
		expect_heard(test, m, PMUK_MSG_AUX, i + 1);
	}
	KUNIT_EXPECT_EQ(test, write_aux(b, 2 * PAGE_SIZE), 2 * PAGE_SIZE);
	expect_heard(test, m, PMUK_MSG_AUX, 6);
	KUNIT_EXPECT_EQ(test, write_aux(b, 8), 0);
	expect_heard(test, m, PMUK_MSG_AUX, 7);
	expect_heard(test, m, PMUK_MSG_AUX_LOST, 0);
	expect_heard(test, m, PMUK_MSG_WATERMARK, 0);
	expect_silence(test, m);
}

static void lose_aux(struct pmuk_buffer *b)
{
	guard(preempt)();
	pmuk_aux_output_lose(b, 100);
}

/*
 * The first of some losses is reported at once, and the others at the latest when counting ends.
 * The watch may report them before, so it is off.
 */
static void aux_losses_add_up(struct kunit *test)
{
	struct mail *m = new_mail_with_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 4, .aux = { .nr_pages = 2 } });
	struct pmuk_buffer *b = pmuk_context_buffer(m->ctx, m->cpu);

	disable_delayed_work_sync(&m->ctx->watch);
	lose_aux(b);
	expect_heard(test, m, PMUK_MSG_AUX_LOST, 1);
	lose_aux(b);
	lose_aux(b);
	expect_heard(test, m, PMUK_MSG_AUX_LOST, 1);
	KUNIT_EXPECT_EQ(test, pmuk_stop(m->ctx), 0);
	expect_heard(test, m, PMUK_MSG_AUX_LOST, 3);
	expect_heard(test, m, PMUK_MSG_LOST, 0);
	enable_delayed_work(&m->ctx->watch);
}

/* Returns a context with a counter @num of event 0, which is still to be loaded. */
static struct mail *new_mail_of(struct kunit *test, u16 num, u32 flags)
{
	struct mail *m = alloc_mail(test);

	m->ctx = pmuk_ctx_create(test, &(struct pmuk_context_attr){ .completion = m->more });
	pmuk_ctx_add(test, m->ctx, m->sim, 0, num, 0, flags);
	return m;
}

static void lost_place_is_told(struct kunit *test)
{
	struct mail *m = new_mail_of(test, 4, PMUK_PINNED);

	pmuk_ctx_run(test, m->ctx, m->cpu);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(m->sim, m->cpu, 4), 0);
	expect_watch_tells(test, m, &(struct pmuk_msg){
		.kind = PMUK_MSG_COUNTER_LOST, .cpu = m->cpu, .count = 1, .counters = BIT(4) });
}

static void pmu_gone_is_told(struct kunit *test)
{
	struct mail *m = new_mail_of(test, 4, 0);

	pmuk_ctx_run(test, m->ctx, m->cpu);
	if (pmuk_sim_unplug(m->sim))
		kunit_skip(test, "perf core of this kernel takes no events off a PMU that goes");
	expect_watch_tells(test, m, &(struct pmuk_msg){
		.kind = PMUK_MSG_PMU_GONE, .cpu = m->cpu, .count = 1, .counters = BIT(4) });
}

static void exit_is_told(struct kunit *test)
{
	struct mail *m = new_mail_of(test, 0, 0);
	struct pmuk_place *p = pmuk_new_place(test, m->sim, PMUK_TARGET_TASK);

	pmuk_ctx_add(test, m->ctx, m->sim, 0, 1, 1, 0);
	pmuk_place_run(p, m->ctx);
	pmuk_place_dismiss(p);
	expect_watch_tells(test, m, &(struct pmuk_msg){
		.kind = PMUK_MSG_EXIT, .count = 1, .counters = BIT(0) | BIT(1) });
}

/* Loads the context on the task that calls this, and starts it. */
static int run_on_current(void *data)
{
	const struct mail *m = data;
	struct pmuk_target target = { .type = PMUK_TARGET_TASK, .task = current };

	return pmuk_load_context(m->ctx, &target) ?: pmuk_start(m->ctx, NULL);
}

/* perf core takes the counters away from a task that executes a privileged program, and lives. */
static void privileged_program_is_told(struct kunit *test)
{
	struct mail *m = new_mail_of(test, 0, 0);
	struct pmuk_program *p = pmuk_test_zalloc(test, sizeof(*p));

	*p = (struct pmuk_program){ .begin = run_on_current, .data = m };
	pmuk_program_exec(test, p);
	expect_watch_tells(test, m, &(struct pmuk_msg){
		.kind = PMUK_MSG_EXIT, .count = 1, .counters = BIT(0) });
	KUNIT_EXPECT_EQ(test, READ_ONCE(p->task->exit_state), 0);
}

static void hotplug_is_told(struct kunit *test)
{
	struct mail *m = new_mail(test);
	int cpu = pmuk_test_other_cpu(test, m->cpu);

	pmuk_test_keep_online(test, cpu);
	pmuk_test_expect_offline(test, cpu, remove_cpu(cpu));
	expect_message(test, m, &(struct pmuk_msg){
		.kind = PMUK_MSG_CPU_OFFLINE, .cpu = cpu, .count = 1 });
	expect_silence(test, m);
	KUNIT_ASSERT_EQ(test, add_cpu(cpu), 0);
	expect_message(test, m, &(struct pmuk_msg){
		.kind = PMUK_MSG_CPU_ONLINE, .cpu = cpu, .count = 1 });
	expect_silence(test, m);
}

/* ---- the end ---- */

/*
 * A context with buffers is closed, in interrupts too. No message and no completion comes after
 * that.
 */
static void close_ends_messages(struct kunit *test)
{
	enum pmuk_irq_level level = pmuk_test_level(test);
	struct mail *m = new_mail_with_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .wakeup_events = 1 });
	unsigned int done;
	int cpu;

	for_each_online_cpu(cpu)
		overflow(m, cpu, 0, 3);
	pmuk_ctx_close_at(test, m->ctx, level);
	done = READ_ONCE(m->more->done);
	/* Each CPU had overflows and a watermark. */
	KUNIT_EXPECT_EQ(test, done, 2 * num_online_cpus());
	for_each_online_cpu(cpu)
		KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(m->sim, cpu, 0, PERIOD), 0);
	usleep_range(2000, 3000);
	KUNIT_EXPECT_EQ(test, READ_ONCE(m->more->done), done);
}

/* A context that is being closed has no reader of messages, so it reports no more losses. */
static void close_tells_no_losses(struct kunit *test)
{
	struct mail *m = new_mail_with_buffer(test, &(struct pmuk_buffer_attr){ .nr_pages = 1 });
	struct pmuk_msg msg;
	unsigned int done;
	int cpu;

	disable_delayed_work_sync(&m->ctx->watch);
	for_each_online_cpu(cpu)
		overflow(m, cpu, 0, PAGE_SIZE / RECORD + 1);
	while (pmuk_read_timeout(m->ctx, &msg, SOON) == 1)
		;
	for_each_online_cpu(cpu)
		overflow(m, cpu, 0, 1);
	irq_work_sync(&m->ctx->mail.irq_work);
	done = READ_ONCE(m->more->done);
	KUNIT_EXPECT_GT(test, done, 0);
	kunit_release_action(test, pmuk_ctx_put, m->ctx);
	KUNIT_EXPECT_EQ(test, READ_ONCE(m->more->done), done);
}

static struct kunit_case pmuk_message_cases[] = {
	KUNIT_CASE(message_is_copied_out),
	KUNIT_CASE(message_names_all_counters),
	KUNIT_CASE(each_message_has_one_completion),
	KUNIT_CASE(completion_stays_the_callers),
	KUNIT_CASE(no_completion_no_wait),
	KUNIT_CASE(caller_may_wait),
	KUNIT_CASE(contexts_share_a_completion),
	KUNIT_CASE(busy_cpu_hides_no_other),
	KUNIT_CASE(signal_ends_the_wait),
	KUNIT_CASE(readers_share_the_messages),
	KUNIT_CASE(none_is_lost),
	KUNIT_CASE(unread_ones_are_counted),
	KUNIT_CASE(watermark_is_told),
	KUNIT_CASE(watermark_of_other_data_is_told),
	KUNIT_CASE(losses_add_up),
	KUNIT_CASE(losses_are_watched_for),
	KUNIT_CASE(aux_is_told),
	KUNIT_CASE(aux_losses_add_up),
	KUNIT_CASE(lost_place_is_told),
	KUNIT_CASE(pmu_gone_is_told),
	KUNIT_CASE(exit_is_told),
	KUNIT_CASE(privileged_program_is_told),
	KUNIT_CASE(hotplug_is_told),
	KUNIT_CASE_PARAM(close_ends_messages, levels_gen_params),
	PMUK_NMI_CASE(close_ends_messages),
	KUNIT_CASE(close_tells_no_losses),
	{}
};

PMUK_SUITE(pmuk_message, pmuk_test_init, "KUnit tests of pmuk's messages");
