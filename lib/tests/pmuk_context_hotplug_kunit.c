// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs go offline and come back under a context: what they have counted stays, it is told, and
 * those of the target count again, and have turns again, and no others.
 */
#include <linux/cpu.h>
#include <linux/kthread.h>
#include <linux/log2.h>
#include <linux/workqueue.h>

#include "../../kernel/pmu_kapi/context.h"
#include "pmuk_counters.h"
#include "pmuk_place.h"
#include "pmuk_suite.h"

struct plug {
	struct pmuk_sim *sim;
	struct pmuk_context *ctx;
	int cpu, stays;
	u64 hidden;		/* what paused counters have seen, see pmuk_counter_pause() */
	bool refuse;		/* events 0 and 1 */
	atomic_t refused;
	atomic_t created;	/* events 1 */
};

static int refuse_events(const struct perf_event_attr *attr, void *data)
{
	struct plug *p = data;

	if (READ_ONCE(p->refuse) && attr->config < 2) {
		atomic_inc(&p->refused);
		return -ENXIO;
	}
	if (attr->config == 1)
		atomic_inc(&p->created);
	return 0;
}

static int plug_init(struct kunit *test)
{
	struct plug *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct pmuk_sim_config config = { .name = "pmuk_sim", .nr_counters = 2, .width = 32,
					  .event_init = refuse_events, .data = p };
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, p);
	ret = pmuk_test_init(test);
	if (ret)
		return ret;
	test->priv = p;
	p->stays = pmuk_test_pin_first(test);
	p->cpu = pmuk_test_other_cpu(test, p->stays);
	p->sim = pmuk_test_sim_config(test, &config);
	pmuk_test_keep_online(test, p->cpu);

	p->ctx = pmuk_ctx_create(test, NULL);
	pmuk_ctx_add(test, p->ctx, p->sim, 0, 0, 0, 0);
	pmuk_ctx_add(test, p->ctx, p->sim, 0, 1, 1, PMUK_PINNED);
	return 0;
}

static void expect_told(struct kunit *test, enum pmuk_msg_kind kind)
{
	struct plug *p = test->priv;
	struct pmuk_msg msg = pmuk_ctx_next(test, p->ctx);

	KUNIT_EXPECT_EQ(test, msg.kind, kind);
	KUNIT_EXPECT_EQ(test, msg.cpu, p->cpu);
	KUNIT_EXPECT_EQ(test, msg.count, 1);
}

static void expect_silence(struct kunit *test)
{
	struct plug *p = test->priv;

	pmuk_ctx_silent(test, p->ctx);
}

static void drain(struct kunit *test)
{
	struct plug *p = test->priv;
	struct pmuk_msg msg;

	while (pmuk_read(p->ctx, &msg, true) == 1)
		;
}

static void go_offline(struct kunit *test)
{
	struct plug *p = test->priv;
	int ret = remove_cpu(p->cpu);

	/* Some machines cannot, and tell when it is tried. */
	if (ret == -EOPNOTSUPP || ret == -EPERM)
		kunit_skip(test, "CPU %d cannot go offline: %d", p->cpu, ret);
	KUNIT_ASSERT_EQ(test, ret, 0);
}

static void go_online(struct kunit *test)
{
	struct plug *p = test->priv;

	KUNIT_ASSERT_EQ(test, add_cpu(p->cpu), 0);
}

static void online_and_told(struct kunit *test)
{
	go_online(test);
	expect_told(test, PMUK_MSG_CPU_ONLINE);
}

static void offline_and_told(struct kunit *test)
{
	go_offline(test);
	expect_told(test, PMUK_MSG_CPU_OFFLINE);
}

/* On the CPU that comes and goes; 0 if nobody counts there. */
static u64 count_there(struct kunit *test, u64 n)
{
	struct plug *p = test->priv;

	return pmuk_sim_count_on(p->sim, p->cpu, 0, n);
}

static void expect_count(struct kunit *test, int cpu, u64 count)
{
	struct plug *p = test->priv;

	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, p->ctx, 0, 0, cpu), count);
}

struct local {
	struct pmuk_context *ctx;
	u64 counts[2];
	int ret;
};

static void read_local(void *data)
{
	struct local *l = data;

	l->ret = pmuk_read_local(l->ctx, l->counts, 2);
}

static void expect_local_count(struct kunit *test, u64 count)
{
	struct plug *p = test->priv;
	struct local l = { .ctx = p->ctx };

	KUNIT_EXPECT_EQ(test, smp_call_function_single(p->cpu, read_local, &l, true), 0);
	KUNIT_EXPECT_EQ(test, l.ret, 0);
	KUNIT_EXPECT_EQ(test, l.counts[0], count);
}

static void counts_carry_over(struct kunit *test)
{
	struct plug *p = test->priv;
	unsigned int i;

	pmuk_ctx_load(test, p->ctx, -1);
	pmuk_ctx_start(test, p->ctx);
	for (i = 1; i <= 2; i++) {
		KUNIT_EXPECT_EQ(test, count_there(test, 100), 100);
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(p->sim, 0, 7), 7);
		expect_local_count(test, i * 100);
		offline_and_told(test);
		expect_count(test, -1, i * 107);
		expect_count(test, p->cpu, i * 100);
		online_and_told(test);
		expect_local_count(test, i * 100);
		expect_count(test, -1, i * 107);
	}
	expect_silence(test);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(p->ctx), 0);
	expect_count(test, -1, 2 * 107);
}

static void snapshots_carry_over(struct kunit *test)
{
	struct plug *p = test->priv;
	struct pmuk_value value;

	pmuk_ctx_load(test, p->ctx, -1);
	pmuk_ctx_start(test, p->ctx);
	count_there(test, 100);
	offline_and_told(test);
	online_and_told(test);
	KUNIT_EXPECT_EQ(test, pmuk_snapshot(p->ctx, 0, &value, 1), 0);
	KUNIT_EXPECT_EQ(test, value.count, 100);
	count_there(test, 50);
	KUNIT_EXPECT_EQ(test, pmuk_stop(p->ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_snapshot(p->ctx, 0, &value, 1), 0);
	KUNIT_EXPECT_EQ(test, value.count, 150);
}

/* Stopped before, it is stopped afterwards. */
static void goes_and_comes_while_stopped(struct kunit *test)
{
	struct plug *p = test->priv;

	pmuk_ctx_load(test, p->ctx, -1);
	offline_and_told(test);
	online_and_told(test);
	KUNIT_EXPECT_EQ(test, count_there(test, 5), 0);
	pmuk_ctx_start(test, p->ctx);
	KUNIT_EXPECT_EQ(test, count_there(test, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_stop(p->ctx), 0);
	offline_and_told(test);
	online_and_told(test);
	KUNIT_EXPECT_EQ(test, count_there(test, 5), 0);
	expect_count(test, -1, 5);
}

static void joins_what_was_started_without_it(struct kunit *test)
{
	struct plug *p = test->priv;

	go_offline(test);
	pmuk_ctx_load(test, p->ctx, -1);
	expect_count(test, p->cpu, 0);
	pmuk_ctx_start(test, p->ctx);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(p->sim, 0, 5), 5);
	expect_silence(test);
	online_and_told(test);
	KUNIT_EXPECT_EQ(test, count_there(test, 5), 5);
	expect_count(test, p->cpu, 5);
	expect_count(test, -1, 10);
}

static void one_cpu_goes_and_comes(struct kunit *test)
{
	struct plug *p = test->priv;
	struct pmuk_target target = { .type = PMUK_TARGET_CPU, .cpu = p->cpu };

	go_offline(test);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(p->ctx, &target), -ENODEV);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
	go_online(test);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(p->ctx, &target), 0);
	offline_and_told(test);
	pmuk_ctx_start(test, p->ctx);
	online_and_told(test);
	KUNIT_EXPECT_EQ(test, count_there(test, 5), 5);
	offline_and_told(test);
	KUNIT_EXPECT_EQ(test, pmuk_stop(p->ctx), 0);
	online_and_told(test);
	KUNIT_EXPECT_EQ(test, count_there(test, 5), 0);
	expect_count(test, -1, 5);
	expect_silence(test);
}

/* What is not of the target is none of its business. */
static void others_do_not_join(struct kunit *test)
{
	struct plug *p = test->priv;
	struct pmuk_target target = { .type = PMUK_TARGET_CPUS, .cpus = cpumask_of(p->stays) };
	int nr;

	go_offline(test);
	KUNIT_ASSERT_EQ(test, pmuk_load_context(p->ctx, &target), 0);
	pmuk_ctx_start(test, p->ctx);
	nr = pmuk_nr_counters();
	go_online(test);
	go_offline(test);
	go_online(test);
	expect_silence(test);
	KUNIT_EXPECT_EQ(test, count_there(test, 5), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(p->sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), nr);
	expect_count(test, -1, 5);
}

/* Closed and unloaded while it is away, or is about to be seen to. */
static void unloaded_while_offline(struct kunit *test)
{
	struct plug *p = test->priv;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		pmuk_ctx_load(test, p->ctx, -1);
		pmuk_ctx_start(test, p->ctx);
		KUNIT_EXPECT_EQ(test, count_there(test, 5), 5);
		go_offline(test);
		if (i)
			go_online(test);
		KUNIT_EXPECT_EQ(test, pmuk_unload_context(p->ctx), 0);
		drain(test);
		KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
		KUNIT_EXPECT_EQ(test, pmuk_sim_nr_events(p->sim), 0);
		expect_count(test, -1, (i + 1) * 5);
		if (!i)
			go_online(test);
	}
	pmuk_ctx_load(test, p->ctx, -1);
	go_offline(test);
	kunit_release_action(test, pmuk_ctx_put, p->ctx);
	go_online(test);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
}

/* One that cannot be placed is told of once, reads say so, and it is tried again. */
static void cannot_be_placed_when_it_is_back(struct kunit *test)
{
	struct pmuk_pmd_read all = { .cpu = -1 };
	struct plug *p = test->priv;
	struct pmuk_msg msg;

	pmuk_ctx_load(test, p->ctx, -1);
	pmuk_ctx_start(test, p->ctx);
	KUNIT_EXPECT_EQ(test, count_there(test, 5), 5);
	offline_and_told(test);
	WRITE_ONCE(p->refuse, true);
	go_online(test);
	msg = pmuk_ctx_next(test, p->ctx);
	KUNIT_EXPECT_EQ(test, msg.kind, PMUK_MSG_COUNTER_LOST);
	KUNIT_EXPECT_EQ(test, msg.counters, BIT(0));
	KUNIT_EXPECT_EQ(test, count_there(test, 5), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(p->sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_read_pmds(p->ctx, &all, 1), 0);
	KUNIT_EXPECT_EQ(test, all.ret, -EBUSY);
	KUNIT_EXPECT_EQ(test, all.count, 10);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(atomic_read(&p->refused) > 2));
	expect_silence(test);
	WRITE_ONCE(p->refuse, false);
	expect_told(test, PMUK_MSG_CPU_ONLINE);
	KUNIT_EXPECT_EQ(test, count_there(test, 5), 5);
	expect_count(test, -1, 15);
}

/* Its CPU has no place for it, and that was told. */
static void start_without_place(struct kunit *test)
{
	struct plug *p = test->priv;

	pmuk_ctx_load(test, p->ctx, -1);
	pmuk_ctx_start(test, p->ctx);
	offline_and_told(test);
	WRITE_ONCE(p->refuse, true);
	go_online(test);
	expect_told(test, PMUK_MSG_COUNTER_LOST);
}

/* Each try makes counters and waits for a grace period: the pauses between tries double. */
static void place_is_tried_ever_more_rarely(struct kunit *test)
{
	struct plug *p = test->priv;
	unsigned long begun = jiffies, tenths;
	int tries;

	start_without_place(test);
	msleep(1500);
	tries = atomic_read(&p->refused);
	tenths = (jiffies - begun) / (HZ / 10);
	KUNIT_EXPECT_GE(test, tries, 2);
	KUNIT_EXPECT_LE(test, tries, 2 + ilog2(tenths + 1));
	WRITE_ONCE(p->refuse, false);
	expect_told(test, PMUK_MSG_CPU_ONLINE);
	KUNIT_EXPECT_EQ(test, count_there(test, 5), 5);
}

/*
 * The watch runs in this task, on the CPU that waits for a place, so the try meets this task's
 * events. No worker tries beside it: a worker on that CPU would meet no task but itself.
 */
static bool try_here(struct plug *p)
{
	struct work_struct *watch = &p->ctx->watch.work;
	unsigned long end = jiffies + PMUK_CTX_PATIENCE;
	int before = atomic_read(&p->created);

	WRITE_ONCE(p->refuse, false);
	while (atomic_read(&p->created) == before && time_before(jiffies, end)) {
		watch->func(watch);
		msleep(20);
	}
	return atomic_read(&p->created) != before;
}

static void expect_not_pushed_out(struct kunit *test, struct perf_event *event)
{
	KUNIT_EXPECT_EQ(test, event->state, PERF_EVENT_STATE_ACTIVE);
	kunit_release_action(test, pmuk_test_put_event, event);
}

/* A task has all counters for itself when the CPU's are tried. */
static void retry_pushes_no_task_out(struct kunit *test)
{
	struct plug *p = test->priv;
	struct work_struct *watch = &p->ctx->watch.work;
	struct perf_event *events[2];
	unsigned int i;

	start_without_place(test);
	disable_delayed_work_sync(&p->ctx->watch);
	pmuk_test_pin(test, p->cpu);
	for (i = 0; i < ARRAY_SIZE(events); i++)
		events[i] = pmuk_test_pinned_event(test, p->sim, 2);
	KUNIT_EXPECT_TRUE(test, try_here(p));
	for (i = 0; i < ARRAY_SIZE(events); i++)
		expect_not_pushed_out(test, events[i]);
	enable_delayed_work(&p->ctx->watch);
	watch->func(watch);
	expect_told(test, PMUK_MSG_CPU_ONLINE);
	KUNIT_EXPECT_EQ(test, count_there(test, 5), 5);
}

/* A buffer is its CPU's for as long as there is the context. */
static void buffer_stays(struct kunit *test)
{
	struct plug *p = test->priv;
	const struct pmuk_context_attr attr = { .buffer = { .nr_pages = 1 } };
	const struct pmuk_pmd pmd = { .short_reset = 10 };
	const struct perf_event_header *rec;
	struct pmuk_reader r;
	unsigned int i, n = 0;

	p->ctx = pmuk_ctx_create(test, &attr);
	pmuk_ctx_add(test, p->ctx, p->sim, 0, 0, 0, PMUK_NO_THROTTLE);
	pmuk_ctx_write_pmd(test, p->ctx, &pmd);
	pmuk_ctx_load(test, p->ctx, -1);
	pmuk_ctx_start(test, p->ctx);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, count_there(test, 30), 30);
		offline_and_told(test);
		online_and_told(test);
	}
	KUNIT_ASSERT_EQ(test, pmuk_buffer_claim(pmuk_buffer(p->ctx, p->cpu), &r), 0);
	pmuk_for_each_record(rec, &r)
		n += rec->type == PERF_RECORD_SAMPLE;
	pmuk_buffer_release(&r);
	KUNIT_EXPECT_EQ(test, n, 6);
}

/* A task's context goes on wherever the task does. */
static void tasks_do_not_mind(struct kunit *test)
{
	struct plug *p = test->priv;
	struct pmuk_place *task = pmuk_place(test, p->sim, PMUK_TARGET_TASK);

	pmuk_place_load(task, p->ctx);
	pmuk_ctx_start(test, p->ctx);
	pmuk_place_count(task, 0, 5);
	go_offline(test);
	pmuk_place_count(task, 0, 5);
	go_online(test);
	pmuk_place_count(task, 0, 5);
	expect_count(test, -1, 15);
	expect_silence(test);
}

/* A thread that does all that a context can at one time. */
struct busy {
	struct plug *p;
	unsigned int turns;
	u64 last;
	unsigned int wrong;	/* calls that failed, or counts that went back */
};

static void be_busy_once(struct busy *b)
{
	struct pmuk_context *ctx = b->p->ctx;
	struct pmuk_pmd_read read = { .cpu = -1 };
	struct pmuk_value value;

	b->wrong += pmuk_start(ctx, NULL) != 0;
	b->wrong += pmuk_read_pmds(ctx, &read, 1) != 1 || read.count < b->last;
	b->last = read.count;
	b->wrong += pmuk_snapshot(ctx, 0, &value, 1) != 0;
	b->wrong += pmuk_restart(ctx) != 0;
	if (b->turns % 4 == 0)
		b->wrong += pmuk_stop(ctx) != 0;
	WRITE_ONCE(b->turns, b->turns + 1);
}

static int busy_thread(void *data)
{
	while (!kthread_should_stop()) {
		be_busy_once(data);
		cond_resched();
	}
	return 0;
}

/* Faster than anybody looks, while calls are made: all count in the end, and nothing is lost. */
static void goes_and_comes_rapidly(struct kunit *test)
{
	struct plug *p = test->priv;
	struct busy b = { .p = p };
	struct task_struct *task;
	unsigned int i;
	int ret = 0;
	u64 counted;

	pmuk_ctx_load(test, p->ctx, -1);
	task = kthread_run(busy_thread, &b, "pmuk_busy");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	for (i = 0; i < 3; i++) {
		ret |= remove_cpu(p->cpu);
		ret |= add_cpu(p->cpu);
	}
	while (READ_ONCE(b.turns) < 20)
		usleep_range(50, 100);
	kthread_stop(task);
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_EQ(test, b.wrong, 0);

	pmuk_ctx_start(test, p->ctx);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(count_there(test, 5)));
	counted = pmuk_sim_counted(p->sim, 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(p->sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, count_there(test, 5), 5);
	expect_count(test, -1, counted + 10);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 2 * num_online_cpus());
}

struct loader {
	struct plug *p;
	unsigned int loads, wrong;
};

/* -ENODEV is for a single CPU that is just away. */
static int load_thread(void *data)
{
	struct loader *l = data;
	struct pmuk_target one = { .type = PMUK_TARGET_CPU, .cpu = l->p->cpu };
	struct pmuk_target all = { .type = PMUK_TARGET_CPUS };

	while (!kthread_should_stop()) {
		bool single = l->loads & 1;
		int ret = pmuk_load_context(l->p->ctx, single ? &one : &all);

		l->wrong += ret && !(single && ret == -ENODEV);
		if (!ret) {
			l->wrong += pmuk_start(l->p->ctx, NULL) != 0;
			l->wrong += pmuk_unload_context(l->p->ctx) != 0;
		}
		WRITE_ONCE(l->loads, l->loads + 1);
		cond_resched();
	}
	return 0;
}

/* Loading is not atomic, and yet all CPUs that are there in the end count. */
static void goes_and_comes_while_loading(struct kunit *test)
{
	struct plug *p = test->priv;
	struct loader l = { .p = p };
	struct task_struct *task = kthread_run(load_thread, &l, "pmuk_loader");
	unsigned int i;
	int ret = 0;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	for (i = 0; i < 3; i++) {
		ret |= remove_cpu(p->cpu);
		ret |= add_cpu(p->cpu);
	}
	while (READ_ONCE(l.loads) < 10)
		usleep_range(50, 100);
	kthread_stop(task);
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_EQ(test, l.wrong, 0);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
	pmuk_ctx_load(test, p->ctx, -1);
	pmuk_ctx_start(test, p->ctx);
	KUNIT_EXPECT_EQ(test, count_there(test, 5), 5);
}

/* ---- event sets ---- */

#define PERIOD	100
#define FIRST	0			/* sets, with events 0 and one that only each has */
#define SECOND	5
#define SHORT	PMUK_SET_TIMEOUT_MIN

static void add_turns(struct kunit *test, u16 set, u64 config, const struct pmuk_pmd *pmd)
{
	struct plug *p = test->priv;
	struct pmuk_pmd copy = *pmd;

	pmuk_ctx_add(test, p->ctx, p->sim, set, 0, 0, PMUK_NO_THROTTLE);
	pmuk_ctx_add(test, p->ctx, p->sim, set, 1, config, 0);
	copy.set = set;
	pmuk_ctx_write_pmd(test, p->ctx, &copy);
}

/* A context with two sets on all CPUs, started; its counters 0 are as @pmd says. */
static void start_turns(struct kunit *test, u64 timeout, u32 flags, const struct pmuk_pmd *pmd)
{
	const struct pmuk_context_attr attr = { .flags = flags };
	const struct pmuk_pmd plain = {};
	struct plug *p = test->priv;

	p->ctx = pmuk_ctx_create(test, &attr);
	pmuk_ctx_add_set(test, p->ctx, FIRST, timeout);
	pmuk_ctx_add_set(test, p->ctx, SECOND, timeout);
	add_turns(test, FIRST, 1, pmd ?: &plain);
	add_turns(test, SECOND, 2, pmd ?: &plain);
	pmuk_ctx_load(test, p->ctx, -1);
	pmuk_ctx_start(test, p->ctx);
}

static const struct pmuk_pmd notify = { .short_reset = PERIOD, .flags = PMUK_PMD_NOTIFY };

static u64 runs_there(struct kunit *test, u16 set)
{
	struct plug *p = test->priv;

	return pmuk_ctx_info(p->ctx, set, p->cpu).runs;
}

/* Events that only one set has, on the CPU that comes and goes. */
static void expect_turn_there(struct kunit *test, u16 set)
{
	struct plug *p = test->priv;

	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(p->sim, p->cpu, 1, 3), set == FIRST ? 3 : 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(p->sim, p->cpu, 2, 3), set == SECOND ? 3 : 0);
}

/* Each event that the PMU has counted is in one set, and what only one has is in that. */
static void expect_turns_conserved(struct kunit *test)
{
	struct plug *p = test->priv;

	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, p->ctx, FIRST, 0, -1) +
			pmuk_ctx_count(test, p->ctx, SECOND, 0, -1),
			pmuk_sim_counted(p->sim, 0) - p->hidden);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, p->ctx, FIRST, 1, -1),
			pmuk_sim_counted(p->sim, 1));
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, p->ctx, SECOND, 1, -1),
			pmuk_sim_counted(p->sim, 2));
}

/* Some events of each kind on all CPUs, in whatever turn. */
static void count_all_over(struct kunit *test)
{
	struct plug *p = test->priv;
	u64 config;
	int cpu;

	for_each_online_cpu(cpu) {
		for (config = 0; config < 3; config++)
			pmuk_sim_count_on(p->sim, cpu, config, 7);
	}
}

static u64 runs_after_events(struct kunit *test, int cpu)
{
	struct plug *p = test->priv;

	count_all_over(test);
	return pmuk_ctx_info(p->ctx, FIRST, cpu).runs;
}

/* So many turns more on @cpu, with events in all of them. */
static void expect_turns_go_on(struct kunit *test, int cpu, u64 n)
{
	struct plug *p = test->priv;
	u64 runs = pmuk_ctx_info(p->ctx, FIRST, cpu).runs + n;

	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(runs_after_events(test, cpu) >= runs));
}

static void expect_not_longer_than(struct kunit *test, u64 ns)
{
	struct plug *p = test->priv;
	u64 sum = pmuk_ctx_info(p->ctx, FIRST, p->cpu).active_duration +
		  pmuk_ctx_info(p->ctx, SECOND, p->cpu).active_duration;

	KUNIT_EXPECT_GT(test, sum, 0);
	KUNIT_EXPECT_LE(test, sum, ns);
}

/* No turn comes where no CPU is, the others' come; none has lasted meanwhile. */
static void offline_in_the_middle_of_a_turn(struct kunit *test)
{
	struct plug *p = test->priv;
	u64 begun = ktime_get_ns(), away, left, runs;
	unsigned int i;

	start_turns(test, SHORT, 0, NULL);
	for (i = 0, away = 0; i < 2; i++) {
		expect_turns_go_on(test, p->cpu, 3);
		offline_and_told(test);
		runs = runs_there(test, FIRST) + runs_there(test, SECOND);
		left = ktime_get_ns();
		expect_turns_go_on(test, p->stays, 10);
		KUNIT_EXPECT_EQ(test, runs_there(test, FIRST) + runs_there(test, SECOND), runs);
		away += ktime_get_ns() - left;
		expect_turns_conserved(test);
		online_and_told(test);
	}
	expect_turns_go_on(test, p->cpu, 10);
	KUNIT_EXPECT_EQ(test, pmuk_stop(p->ctx), 0);
	expect_turns_conserved(test);
	expect_not_longer_than(test, ktime_get_ns() - begun - away);
	expect_silence(test);
}

/* It comes back to the set that was called for, be that while it is away. */
static void comes_back_to_the_set_called_for(struct kunit *test)
{
	struct plug *p = test->priv;

	start_turns(test, 0, 0, NULL);
	expect_turn_there(test, FIRST);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(p->ctx, SECOND), 0);
	expect_turn_there(test, SECOND);
	offline_and_told(test);
	online_and_told(test);
	expect_turn_there(test, SECOND);
	offline_and_told(test);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(p->ctx, FIRST), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(p->sim, 1, 3), 3);
	online_and_told(test);
	expect_turn_there(test, FIRST);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(p->ctx, SECOND), 0);
	expect_turn_there(test, SECOND);
	expect_turns_conserved(test);
	expect_silence(test);
}

static void expect_overflows(struct kunit *test, u64 count, u16 set)
{
	struct plug *p = test->priv;
	struct pmuk_msg msg = pmuk_ctx_next(test, p->ctx);

	KUNIT_EXPECT_EQ(test, msg.kind, PMUK_MSG_OVERFLOW);
	KUNIT_EXPECT_EQ(test, msg.cpu, p->cpu);
	KUNIT_EXPECT_EQ(test, msg.count, count);
	KUNIT_EXPECT_EQ(test, msg.set, set);
}

/* Stopped by its overflow, the others are not; after a restart all count and have turns. */
static void offline_while_masked(struct kunit *test)
{
	struct plug *p = test->priv;
	u64 runs;

	start_turns(test, SHORT, PMUK_CTX_MASK, &notify);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(count_there(test, PERIOD) &&
					       pmuk_ctx_info(p->ctx, FIRST, p->cpu).overflowed +
					       pmuk_ctx_info(p->ctx, SECOND, p->cpu).overflowed));
	KUNIT_EXPECT_EQ(test, pmuk_ctx_next(test, p->ctx).kind, PMUK_MSG_OVERFLOW);
	p->hidden = count_there(test, 5);
	runs = runs_there(test, FIRST) + runs_there(test, SECOND);
	offline_and_told(test);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_runs(p->ctx, SECOND, p->stays, 10));
	KUNIT_EXPECT_EQ(test, pmuk_restart(p->ctx), 0);
	KUNIT_EXPECT_EQ(test, runs_there(test, FIRST) + runs_there(test, SECOND), runs);
	online_and_told(test);
	KUNIT_EXPECT_EQ(test, pmuk_restart(p->ctx), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(count_there(test, 5)));
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(runs_there(test, FIRST) +
					       runs_there(test, SECOND) > runs + 6));
	KUNIT_EXPECT_EQ(test, pmuk_stop(p->ctx), 0);
	expect_turns_conserved(test);
}

static void advance_there(void *data)
{
	struct plug *p = data;

	pmuk_sim_advance(p->sim, 0, PERIOD + 20);
}

/* The PMU may serve it while perf core takes one counter after the other off it. */
static void offline_and_perhaps_overflow(struct kunit *test)
{
	struct plug *p = test->priv;
	struct pmuk_msg msg;

	go_offline(test);
	msg = pmuk_ctx_next(test, p->ctx);
	if (msg.kind == PMUK_MSG_OVERFLOW) {
		KUNIT_EXPECT_EQ(test, msg.count, 1);
		msg = pmuk_ctx_next(test, p->ctx);
	}
	KUNIT_EXPECT_EQ(test, msg.kind, PMUK_MSG_CPU_OFFLINE);
	drain(test);
}

/* It is counted and, as with a stop, not told of later; the next period is a whole one. */
static void offline_with_an_overflow_pending(struct kunit *test)
{
	struct plug *p = test->priv;
	unsigned int i;

	start_turns(test, 0, 0, &notify);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, smp_call_function_single(p->cpu, advance_there, p, true), 0);
		/* Of the turn that is, and of one that has ended. */
		if (i)
			KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(p->ctx, SECOND), 0);
		offline_and_perhaps_overflow(test);
		online_and_told(test);
		KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(p->ctx, FIRST), 0);
		expect_silence(test);
		KUNIT_EXPECT_EQ(test, count_there(test, PERIOD - 1), PERIOD - 1);
		expect_silence(test);
		KUNIT_EXPECT_EQ(test, count_there(test, 1), 1);
		expect_overflows(test, 1, FIRST);
		expect_count(test, p->cpu, (i + 1) * (2 * PERIOD + 20));
	}
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(p->ctx, FIRST, p->cpu).replayed, 0);
	expect_silence(test);
}

/* As a worker does whose CPU has gone, before the context's own has seen to that. */
static void switch_anywhere(struct pmuk_inst *inst, unsigned int nr)
{
	scoped_guard(mutex, &inst->lock)
		inst->wanted = &inst->turns[nr];
	schedule_work(&inst->work);
	flush_work(&inst->work);
}

/* What was pending on a CPU is no other's to handle. */
static void offline_before_a_replay(struct kunit *test)
{
	struct plug *p = test->priv;
	struct pmuk_msg msg;
	int ret;

	start_turns(test, 0, 0, &notify);
	KUNIT_EXPECT_EQ(test, smp_call_function_single(p->cpu, advance_there, p, true), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(p->ctx, SECOND), 0);
	expect_silence(test);
	scoped_guard(mutex, &p->ctx->lock) {
		ret = remove_cpu(p->cpu);
		if (!ret)
			switch_anywhere(p->ctx->insts[p->cpu], 0);
	}
	if (ret == -EOPNOTSUPP || ret == -EPERM)
		kunit_skip(test, "CPU %d cannot go offline: %d", p->cpu, ret);
	KUNIT_ASSERT_EQ(test, ret, 0);
	msg = pmuk_ctx_next(test, p->ctx);
	KUNIT_EXPECT_EQ(test, msg.kind, PMUK_MSG_CPU_OFFLINE);
	KUNIT_EXPECT_EQ(test, msg.cpu, p->cpu);
	expect_silence(test);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(p->ctx, FIRST, p->cpu).replayed, 0);
	online_and_told(test);
	expect_count(test, p->cpu, PERIOD + 20);
}

/* Of a CPU that is masked, and so has to wait. When that is back, its turn is @then's. */
static void switch_requested(struct kunit *test, const struct pmuk_pmd *pmd, bool call, u16 then)
{
	struct plug *p = test->priv;
	u16 other = then == FIRST ? SECOND : FIRST;

	start_turns(test, 0, PMUK_CTX_MASK, pmd);
	KUNIT_EXPECT_EQ(test, count_there(test, 2 * PERIOD), PERIOD);
	if (call)
		KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(p->ctx, SECOND), 0);
	KUNIT_EXPECT_EQ(test, runs_there(test, SECOND), 0);
	expect_overflows(test, 1, FIRST);
	offline_and_told(test);
	online_and_told(test);
	KUNIT_EXPECT_EQ(test, pmuk_restart(p->ctx), 0);
	expect_turn_there(test, then);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(p->ctx, other), 0);
	expect_turn_there(test, other);
	expect_turns_conserved(test);
	expect_silence(test);
}

static void offline_with_a_switch_called_for(struct kunit *test)
{
	switch_requested(test, &notify, true, SECOND);
}

/* It begins again with the first set, as a start does. */
static void offline_with_a_switch_by_overflow(struct kunit *test)
{
	static const struct pmuk_pmd both = { .short_reset = PERIOD, .flags = PMUK_PMD_NOTIFY,
					      .switch_overflows = 1 };

	switch_requested(test, &both, false, FIRST);
}

struct switcher {
	struct plug *p;
	unsigned int calls, wrong;
};

static int switch_thread(void *data)
{
	struct switcher *s = data;

	while (!kthread_should_stop()) {
		s->wrong += pmuk_switch_evtset(s->p->ctx, s->calls % 2 ? FIRST : SECOND) != 0;
		WRITE_ONCE(s->calls, s->calls + 1);
		cond_resched();
	}
	return 0;
}

/* While turns end by time and by call: none is lost, and they go on in the end. */
static void goes_and_comes_while_switching(struct kunit *test)
{
	struct plug *p = test->priv;
	struct switcher s = { .p = p };
	struct task_struct *task;
	unsigned int i;
	int ret = 0;

	start_turns(test, SHORT, 0, NULL);
	task = kthread_run(switch_thread, &s, "pmuk_switch");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	for (i = 0; i < 3; i++) {
		ret |= remove_cpu(p->cpu);
		count_all_over(test);
		ret |= add_cpu(p->cpu);
		count_all_over(test);
	}
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(READ_ONCE(s.calls) >= 20));
	kthread_stop(task);
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_EQ(test, s.wrong, 0);
	expect_turns_go_on(test, p->cpu, 3);
	KUNIT_EXPECT_EQ(test, pmuk_stop(p->ctx), 0);
	expect_turns_conserved(test);
}

static struct kunit_case pmuk_context_hotplug_cases[] = {
	KUNIT_CASE_SLOW(counts_carry_over),
	KUNIT_CASE(snapshots_carry_over),
	KUNIT_CASE_SLOW(goes_and_comes_while_stopped),
	KUNIT_CASE(joins_what_was_started_without_it),
	KUNIT_CASE_SLOW(one_cpu_goes_and_comes),
	KUNIT_CASE_SLOW(others_do_not_join),
	KUNIT_CASE_SLOW(unloaded_while_offline),
	KUNIT_CASE_SLOW(cannot_be_placed_when_it_is_back),
	KUNIT_CASE_SLOW(place_is_tried_ever_more_rarely),
	KUNIT_CASE_SLOW(retry_pushes_no_task_out),
	KUNIT_CASE_SLOW(buffer_stays),
	KUNIT_CASE_SLOW(tasks_do_not_mind),
	KUNIT_CASE_SLOW(goes_and_comes_rapidly),
	KUNIT_CASE_SLOW(goes_and_comes_while_loading),
	KUNIT_CASE_SLOW(offline_in_the_middle_of_a_turn),
	KUNIT_CASE_SLOW(comes_back_to_the_set_called_for),
	KUNIT_CASE_SLOW(offline_while_masked),
	KUNIT_CASE_SLOW(offline_with_an_overflow_pending),
	KUNIT_CASE_SLOW(offline_before_a_replay),
	KUNIT_CASE_SLOW(offline_with_a_switch_called_for),
	KUNIT_CASE_SLOW(offline_with_a_switch_by_overflow),
	KUNIT_CASE_SLOW(goes_and_comes_while_switching),
	{}
};

PMUK_SUITE(pmuk_context_hotplug, plug_init, "KUnit tests of pmuk's contexts and CPU hotplug");
