// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs go offline and come back under a context. The counts of a CPU stay, and messages report its
 * going and coming. A CPU of the target then counts and takes turns again. Other CPUs do not.
 */
#include <linux/cpu.h>
#include <linux/log2.h>
#include <linux/workqueue.h>

#include "../../kernel/pmu_kapi/context.h"
#include "pmuk_counters.h"
#include "pmuk_place.h"
#include "pmuk_rights.h"
#include "pmuk_suite.h"

struct plug {
	struct kunit *test;
	struct pmuk_sim *sim;
	struct pmuk_context *ctx;
	int cpu, stays;
	u64 hidden;		/* events that paused counters have missed */
	bool refuse;		/* refuses events 0 and 1 */
	atomic_t refused;
	atomic_t created;	/* created events of config 1 */
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
	struct plug *p = pmuk_test_zalloc(test, sizeof(*p));
	struct pmuk_sim_config config = { .name = "pmuk_sim", .nr_counters = 2, .width = 32,
					  .event_init = refuse_events, .data = p };

	pmuk_test_init(test);
	test->priv = p;
	p->test = test;
	p->stays = pmuk_test_pin_first(test);
	p->cpu = pmuk_test_other_cpu(test, p->stays);
	p->sim = pmuk_test_sim_config(test, &config);
	pmuk_test_keep_online(test, p->cpu);

	p->ctx = pmuk_ctx_create(test, NULL);
	pmuk_ctx_add(test, p->ctx, p->sim, 0, 0, 0, 0);
	pmuk_ctx_add(test, p->ctx, p->sim, 0, 1, 1, PMUK_PINNED);
	return 0;
}

static void expect_told(struct plug *p, enum pmuk_msg_kind kind)
{
	pmuk_ctx_expect_msg(p->test, p->ctx, kind, p->cpu, 0, 1);
}

static void go_offline(struct plug *p)
{
	pmuk_test_expect_offline(p->test, p->cpu, remove_cpu(p->cpu));
}

static void go_online(struct plug *p)
{
	KUNIT_ASSERT_EQ(p->test, add_cpu(p->cpu), 0);
}

static void online_and_told(struct plug *p)
{
	go_online(p);
	expect_told(p, PMUK_MSG_CPU_ONLINE);
}

static void offline_and_told(struct plug *p)
{
	go_offline(p);
	expect_told(p, PMUK_MSG_CPU_OFFLINE);
}

static void bounce(struct plug *p)
{
	offline_and_told(p);
	online_and_told(p);
}

/* Takes the CPU offline and online three times, and calls @fn after each step. */
static void bounce_rapidly(struct plug *p, void (*fn)(struct plug *p))
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < 6; i++) {
		ret |= i % 2 ? add_cpu(p->cpu) : remove_cpu(p->cpu);
		if (fn)
			fn(p);
	}
	KUNIT_EXPECT_EQ(p->test, ret, 0);
}

/* Lets @n events happen on the CPU that comes and goes. Returns 0 if no counter counts there. */
static u64 count_there(struct plug *p, u64 n)
{
	return pmuk_sim_count_on(p->sim, p->cpu, 0, n);
}

static void expect_count(struct plug *p, int cpu, u64 count)
{
	KUNIT_EXPECT_EQ(p->test, pmuk_ctx_count(p->test, p->ctx, 0, 0, cpu), count);
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

static void expect_local_count(struct plug *p, u64 count)
{
	struct local l = { .ctx = p->ctx };

	KUNIT_EXPECT_EQ(p->test, smp_call_function_single(p->cpu, read_local, &l, true), 0);
	KUNIT_EXPECT_EQ(p->test, l.ret, 0);
	KUNIT_EXPECT_EQ(p->test, l.counts[0], count);
}

static void counts_carry_over(struct kunit *test)
{
	struct plug *p = test->priv;
	unsigned int i;

	pmuk_ctx_run(test, p->ctx, -1);
	for (i = 1; i <= 2; i++) {
		KUNIT_EXPECT_EQ(test, count_there(p, 100), 100);
		KUNIT_EXPECT_EQ(test, pmuk_sim_count(p->sim, 0, 7), 7);
		expect_local_count(p, i * 100);
		offline_and_told(p);
		expect_count(p, -1, i * 107);
		expect_count(p, p->cpu, i * 100);
		online_and_told(p);
		expect_local_count(p, i * 100);
		expect_count(p, -1, i * 107);
	}
	pmuk_ctx_silent(test, p->ctx);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(p->ctx), 0);
	expect_count(p, -1, 2 * 107);
}

static void expect_snapshot(struct plug *p, u64 count)
{
	struct pmuk_value value;

	KUNIT_EXPECT_EQ(p->test, pmuk_snapshot(p->ctx, 0, &value, 1), 0);
	KUNIT_EXPECT_EQ(p->test, value.count, count);
}

static void snapshots_carry_over(struct kunit *test)
{
	struct plug *p = test->priv;

	pmuk_ctx_run(test, p->ctx, -1);
	count_there(p, 100);
	bounce(p);
	expect_snapshot(p, 100);
	count_there(p, 50);
	KUNIT_EXPECT_EQ(test, pmuk_stop(p->ctx), 0);
	expect_snapshot(p, 150);
}

/* A value that is written while the CPU is offline replaces what the CPU had counted. */
static void snapshots_forget_what_is_written_over(struct kunit *test)
{
	struct plug *p = test->priv;

	pmuk_ctx_run(test, p->ctx, -1);
	count_there(p, 100);
	KUNIT_EXPECT_EQ(test, pmuk_stop(p->ctx), 0);
	offline_and_told(p);
	flush_work(&p->ctx->hotplug);
	expect_snapshot(p, 100);
	pmuk_ctx_write_pmd(test, p->ctx, &(struct pmuk_pmd){});
	expect_snapshot(p, 0);
	online_and_told(p);
	expect_snapshot(p, 0);
}

/* A context that is stopped when the CPU goes is still stopped when the CPU comes back. */
static void goes_and_comes_while_stopped(struct kunit *test)
{
	struct plug *p = test->priv;

	pmuk_ctx_load(test, p->ctx, -1);
	bounce(p);
	KUNIT_EXPECT_EQ(test, count_there(p, 5), 0);
	pmuk_ctx_start(test, p->ctx);
	KUNIT_EXPECT_EQ(test, count_there(p, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_stop(p->ctx), 0);
	bounce(p);
	KUNIT_EXPECT_EQ(test, count_there(p, 5), 0);
	expect_count(p, -1, 5);
}

static void joins_what_was_started_without_it(struct kunit *test)
{
	struct plug *p = test->priv;

	go_offline(p);
	pmuk_ctx_load(test, p->ctx, -1);
	expect_count(p, p->cpu, 0);
	pmuk_ctx_start(test, p->ctx);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(p->sim, 0, 5), 5);
	pmuk_ctx_silent(test, p->ctx);
	online_and_told(p);
	KUNIT_EXPECT_EQ(test, count_there(p, 5), 5);
	expect_count(p, p->cpu, 5);
	expect_count(p, -1, 10);
}

static void one_cpu_goes_and_comes(struct kunit *test)
{
	struct plug *p = test->priv;

	go_offline(p);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(p->ctx, p->cpu), -ENODEV);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
	go_online(p);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(p->ctx, p->cpu), 0);
	offline_and_told(p);
	pmuk_ctx_start(test, p->ctx);
	online_and_told(p);
	KUNIT_EXPECT_EQ(test, count_there(p, 5), 5);
	offline_and_told(p);
	KUNIT_EXPECT_EQ(test, pmuk_stop(p->ctx), 0);
	online_and_told(p);
	KUNIT_EXPECT_EQ(test, count_there(p, 5), 0);
	expect_count(p, -1, 5);
	pmuk_ctx_silent(test, p->ctx);
}

/* A CPU outside of the target does not join when it comes online. */
static void others_do_not_join(struct kunit *test)
{
	struct plug *p = test->priv;
	struct pmuk_target target = { .type = PMUK_TARGET_CPUS, .cpus = cpumask_of(p->stays) };
	int nr;

	go_offline(p);
	KUNIT_ASSERT_EQ(test, pmuk_load_context(p->ctx, &target), 0);
	pmuk_ctx_start(test, p->ctx);
	nr = pmuk_nr_counters();
	go_online(p);
	go_offline(p);
	go_online(p);
	pmuk_ctx_silent(test, p->ctx);
	KUNIT_EXPECT_EQ(test, count_there(p, 5), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(p->sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), nr);
	expect_count(p, -1, 5);
}

/*
 * A context is unloaded and closed while its CPU is offline, or while a worker is about to handle
 * the CPU's coming or going.
 */
static void unloaded_while_offline(struct kunit *test)
{
	struct plug *p = test->priv;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		pmuk_ctx_run(test, p->ctx, -1);
		KUNIT_EXPECT_EQ(test, count_there(p, 5), 5);
		go_offline(p);
		if (i)
			go_online(p);
		KUNIT_EXPECT_EQ(test, pmuk_unload_context(p->ctx), 0);
		pmuk_ctx_told(p->ctx, PMUK_MSG_OVERFLOW);
		pmuk_ctx_expect_gone(test, p->sim);
		expect_count(p, -1, (i + 1) * 5);
		if (!i)
			go_online(p);
	}
	pmuk_ctx_load(test, p->ctx, -1);
	go_offline(p);
	kunit_release_action(test, pmuk_ctx_put, p->ctx);
	go_online(p);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
}

/* There is room again, and the CPU that has waited for room counts. */
static void expect_placed(struct plug *p)
{
	WRITE_ONCE(p->refuse, false);
	expect_told(p, PMUK_MSG_CPU_ONLINE);
	KUNIT_EXPECT_EQ(p->test, count_there(p, 5), 5);
}

/*
 * A CPU comes online without room for its counters. One message reports that, reads return -EBUSY,
 * and pmuk tries the counters again.
 */
static void cannot_be_placed_when_it_is_back(struct kunit *test)
{
	struct plug *p = test->priv;
	u32 lost;

	pmuk_ctx_run(test, p->ctx, -1);
	KUNIT_EXPECT_EQ(test, count_there(p, 5), 5);
	offline_and_told(p);
	WRITE_ONCE(p->refuse, true);
	go_online(p);
	lost = pmuk_ctx_expect_msg(test, p->ctx, PMUK_MSG_COUNTER_LOST, p->cpu, 0, 1);
	KUNIT_EXPECT_EQ(test, lost, BIT(0));
	KUNIT_EXPECT_EQ(test, count_there(p, 5), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(p->sim, 0, 5), 5);
	pmuk_ctx_expect_pmd(test, p->ctx, 0, -1, -EBUSY, 10);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(atomic_read(&p->refused) > 2));
	pmuk_ctx_silent(test, p->ctx);
	expect_placed(p);
	expect_count(p, -1, 15);
}

/*
 * The CPU has come back, has no room for its counters, and a message has reported that. The worker
 * was queued when the CPU went and when it came, and may have found it online at its first run
 * already: its second run must not come when there is room again.
 */
static void start_without_place(struct plug *p)
{
	pmuk_ctx_run(p->test, p->ctx, -1);
	offline_and_told(p);
	WRITE_ONCE(p->refuse, true);
	go_online(p);
	expect_told(p, PMUK_MSG_COUNTER_LOST);
	flush_work(&p->ctx->hotplug);
}

/* Each try costs as much as a load. So the pauses between tries double. */
static void place_is_tried_ever_more_rarely(struct kunit *test)
{
	struct plug *p = test->priv;
	unsigned long begun = jiffies, tenths;
	int tries;

	start_without_place(p);
	msleep(1500);
	tries = atomic_read(&p->refused);
	tenths = (jiffies - begun) / (HZ / 10);
	KUNIT_EXPECT_GE(test, tries, 2);
	KUNIT_EXPECT_LE(test, tries, 2 + ilog2(tenths + 1));
	expect_placed(p);
}

static void set_missed(struct plug *p)
{
	struct pmuk_inst *inst;

	guard(mutex)(&p->ctx->lock);
	inst = p->ctx->insts[p->cpu];
	lockdep_assert_held(&inst->ctx->lock);
	inst->missed = true;
}

/* A CPU that waits for room fails again in pmuk_start(), and the other CPUs count. */
static void waiting_cpu_keeps_none_from_counting(struct kunit *test)
{
	struct plug *p = test->priv;

	pmuk_ctx_load(test, p->ctx, -1);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(p->sim, p->cpu, 2), 0);
	KUNIT_EXPECT_EQ(test, pmuk_start(p->ctx, NULL), -ENOSPC);
	set_missed(p);
	KUNIT_EXPECT_EQ(test, pmuk_start(p->ctx, NULL), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(p->sim, 0, 5), 5);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(p->sim, p->cpu, 0), 0);
	expect_placed(p);
	expect_count(p, -1, 10);
}

/* The CPU waits for room that it has, and no try comes for an hour. */
static void wait_for_long(struct plug *p)
{
	struct pmuk_inst *inst;

	start_without_place(p);
	disable_delayed_work_sync(&p->ctx->watch);
	scoped_guard(mutex, &p->ctx->lock) {
		inst = p->ctx->insts[p->cpu];
		lockdep_assert_held(&inst->ctx->lock);
		KUNIT_EXPECT_TRUE(p->test, inst->missed);
		inst->retry_at = jiffies + 3600 * HZ;
	}
	WRITE_ONCE(p->refuse, false);
	KUNIT_EXPECT_EQ(p->test, pmuk_stop(p->ctx), 0);
}

/* pmuk_start() does not leave it to the next try to find out that there is room again. */
static void start_tries_the_place_at_once(struct kunit *test)
{
	struct plug *p = test->priv;

	wait_for_long(p);
	pmuk_ctx_start(test, p->ctx);
	expect_placed(p);
	expect_count(p, -1, 5);
}

/* The load has taken the right to count on the CPUs of the target. */
static void start_takes_no_right(struct kunit *test)
{
	struct plug *p = test->priv;
	const struct cred *old;
	int started;

	wait_for_long(p);
	old = override_creds(pmuk_test_no_rights(test, p->cpu));
	started = pmuk_start(p->ctx, NULL);
	revert_creds(old);

	KUNIT_EXPECT_EQ(test, started, 0);
	expect_placed(p);
	expect_count(p, -1, 5);
}

/*
 * Runs the context's watch in this task, on the CPU that waits for room, so that the try meets this
 * task's events. The watch's own worker is off, as it would meet no other task on that CPU.
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

static void handle_hotplug(void *data)
{
	struct plug *p = data;

	p->ctx->hotplug.func(&p->ctx->hotplug);
}

/*
 * A CPU went and came back, and has no place for its counters. The worker ends the old counters and
 * fails to make new ones, and waits for one grace period in all. The next try waits for none.
 */
static void hotplug_waits_once(struct kunit *test)
{
	struct plug *p = test->priv;
	unsigned long one = ULONG_MAX, least = ULONG_MAX;
	unsigned int i;

	pmuk_ctx_need_ordinary_grace(test);
	pmuk_ctx_run(test, p->ctx, -1);
	disable_delayed_work_sync(&p->ctx->watch);
	for (i = 0; i < PMUK_GRACE_TRIES && (one != 1 || least != 1); i++) {
		one = min(one, pmuk_ctx_grace(pmuk_ctx_wait_once, NULL));
		WRITE_ONCE(p->refuse, true);
		atomic_set(&p->ctx->insts[p->cpu]->stale, 1);
		least = min(least, pmuk_ctx_grace(handle_hotplug, p));
		expect_told(p, PMUK_MSG_COUNTER_LOST);
		WRITE_ONCE(p->refuse, false);
		atomic_set(&p->ctx->insts[p->cpu]->stale, 1);
		handle_hotplug(p);
		expect_told(p, PMUK_MSG_CPU_ONLINE);
		KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 2 * num_online_cpus());
	}
	enable_delayed_work(&p->ctx->watch);
	KUNIT_EXPECT_EQ(test, one, 1);
	KUNIT_EXPECT_EQ(test, least, 1);
}

static void expect_not_pushed_out(struct kunit *test, struct perf_event *event)
{
	KUNIT_EXPECT_EQ(test, event->state, PERF_EVENT_STATE_ACTIVE);
	kunit_release_action(test, pmuk_test_put_event, event);
}

/* A task's events occupy all counters of the PMU when the CPU's counters are tried. */
static void retry_pushes_no_task_out(struct kunit *test)
{
	struct plug *p = test->priv;
	struct work_struct *watch = &p->ctx->watch.work;
	struct perf_event *events[2];
	unsigned int i;

	start_without_place(p);
	disable_delayed_work_sync(&p->ctx->watch);
	pmuk_test_pin(test, p->cpu);
	for (i = 0; i < ARRAY_SIZE(events); i++)
		events[i] = pmuk_test_pinned_event(test, p->sim, 2);
	KUNIT_EXPECT_TRUE(test, try_here(p));
	for (i = 0; i < ARRAY_SIZE(events); i++)
		expect_not_pushed_out(test, events[i]);
	enable_delayed_work(&p->ctx->watch);
	watch->func(watch);
	expect_placed(p);
}

/* A CPU keeps its buffer, and the records in it, while it is offline. */
static void buffer_stays(struct kunit *test)
{
	struct plug *p = test->priv;
	const struct pmuk_context_attr attr = { .buffer = { .nr_pages = 1 } };
	const struct pmuk_pmd pmd = { .short_reset = 10 };
	unsigned int i;

	p->ctx = pmuk_ctx_create(test, &attr);
	pmuk_ctx_add_pmd(test, p->ctx, p->sim, 0, &pmd);
	pmuk_ctx_run(test, p->ctx, -1);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, count_there(p, 30), 30);
		bounce(p);
	}
	KUNIT_EXPECT_EQ(test, pmuk_test_consume(test, pmuk_context_buffer(p->ctx, p->cpu),
						PERF_RECORD_SAMPLE), 6);
}

/* A task's context goes on wherever the task runs. */
static void tasks_do_not_mind(struct kunit *test)
{
	struct plug *p = test->priv;
	struct pmuk_place *task = pmuk_new_place(test, p->sim, PMUK_TARGET_TASK);

	pmuk_place_run(task, p->ctx);
	pmuk_place_count(task, 0, 5);
	go_offline(p);
	pmuk_place_count(task, 0, 5);
	go_online(p);
	pmuk_place_count(task, 0, 5);
	expect_count(p, -1, 15);
	pmuk_ctx_silent(test, p->ctx);
}

/* A thread makes all calls on a context over and over again. */
struct busy {
	struct plug *p;
	unsigned int turns;
	u64 last;
	unsigned int wrong;	/* failed calls, and counts that went back */
};

static void be_busy_once(void *data)
{
	struct busy *b = data;
	struct pmuk_context *ctx = b->p->ctx;
	struct pmuk_pmd_read read = { .cpu = -1 };
	struct pmuk_value value;

	b->wrong += pmuk_start(ctx, NULL) != 0;
	b->wrong += pmuk_read_pmds(ctx, &read, 1) != 1 || read.count < b->last;
	b->last = read.count;
	b->wrong += pmuk_snapshot(ctx, 0, &value, 1) != 0;
	b->wrong += pmuk_restart(ctx) != 0;
	if (b->turns++ % 4 == 0)
		b->wrong += pmuk_stop(ctx) != 0;
}

/* Takes the CPU offline and online rapidly while a thread calls @fn, at least @turns times. */
static void bounce_while(struct plug *p, void (*fn)(void *data), struct busy *b,
			 unsigned int turns, void (*between)(struct plug *p))
{
	struct pmuk_loop *loop = pmuk_loop_start(p->test, -1, fn, b);

	bounce_rapidly(p, between);
	while (READ_ONCE(loop->turns) < turns)
		usleep_range(1000, 2000);
	pmuk_loop_stop(p->test, loop);
	KUNIT_EXPECT_EQ(p->test, b->wrong, 0);
}

static struct busy *new_busy(struct plug *p)
{
	struct busy *b = pmuk_test_zalloc(p->test, sizeof(*b));

	b->p = p;
	return b;
}

/*
 * The CPU comes and goes faster than pmuk notices, while calls are made. In the end all CPUs count,
 * and no count is lost.
 */
static void goes_and_comes_rapidly(struct kunit *test)
{
	struct plug *p = test->priv;
	u64 counted;

	pmuk_ctx_load(test, p->ctx, -1);
	bounce_while(p, be_busy_once, new_busy(p), 20, NULL);

	pmuk_ctx_start(test, p->ctx);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(count_there(p, 5)));
	counted = pmuk_sim_counted(p->sim, 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(p->sim, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, count_there(p, 5), 5);
	expect_count(p, -1, counted + 10);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 2 * num_online_cpus());
}

/* A load on the single CPU may return -ENODEV, as the CPU may be offline. */
static void load_once(void *data)
{
	struct busy *b = data;
	struct pmuk_context *ctx = b->p->ctx;
	bool single = b->turns++ & 1;
	int ret = pmuk_ctx_try_load(ctx, single ? b->p->cpu : -1);

	b->wrong += ret && !(single && ret == -ENODEV);
	if (!ret) {
		b->wrong += pmuk_start(ctx, NULL) != 0;
		b->wrong += pmuk_unload_context(ctx) != 0;
	}
}

/* CPUs come and go during a load. Still, all CPUs that are online in the end count. */
static void goes_and_comes_while_loading(struct kunit *test)
{
	struct plug *p = test->priv;

	bounce_while(p, load_once, new_busy(p), 10, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
	pmuk_ctx_run(test, p->ctx, -1);
	KUNIT_EXPECT_EQ(test, count_there(p, 5), 5);
}

/* ---- event sets ---- */

#define PERIOD	100
/* FIRST and SECOND are sets. Both count event 0, and each counts one event of its own. */
#define FIRST	0
#define SECOND	5
#define SHORT	PMUK_SET_TIMEOUT_MIN

static void add_turns(struct plug *p, u16 set, u64 timeout, u64 config, struct pmuk_pmd pmd)
{
	pmd.set = set;
	pmuk_ctx_add_set(p->test, p->ctx, set, timeout);
	pmuk_ctx_add_pmd(p->test, p->ctx, p->sim, 0, &pmd);
	pmuk_ctx_add(p->test, p->ctx, p->sim, set, 1, config, 0);
}

/* Starts a context with two sets on all CPUs. @pmd, if given, is for counter 0 of both. */
static void start_turns(struct plug *p, u64 timeout, u32 flags, const struct pmuk_pmd *pmd)
{
	const struct pmuk_context_attr attr = { .flags = flags };
	const struct pmuk_pmd plain = {};

	p->ctx = pmuk_ctx_create(p->test, &attr);
	add_turns(p, FIRST, timeout, 1, pmd ? *pmd : plain);
	add_turns(p, SECOND, timeout, 2, pmd ? *pmd : plain);
	pmuk_ctx_run(p->test, p->ctx, -1);
}

static const struct pmuk_pmd notify = { .short_reset = PERIOD, .flags = PMUK_PMD_NOTIFY };

/* Returns how many turns the CPU that comes and goes has had. */
static u64 runs_there(struct plug *p)
{
	return pmuk_ctx_info(p->ctx, FIRST, p->cpu).runs +
	       pmuk_ctx_info(p->ctx, SECOND, p->cpu).runs;
}

/* Checks whose turn it is on the CPU that comes and goes, by events that only one set counts. */
static void expect_turn_there(struct plug *p, u16 set)
{
	KUNIT_EXPECT_EQ(p->test, pmuk_sim_count_on(p->sim, p->cpu, 1, 3), set == FIRST ? 3 : 0);
	KUNIT_EXPECT_EQ(p->test, pmuk_sim_count_on(p->sim, p->cpu, 2, 3), set == SECOND ? 3 : 0);
}

static void expect_switch_there(struct plug *p, u16 set)
{
	KUNIT_EXPECT_EQ(p->test, pmuk_switch_evtset(p->ctx, set), 0);
	expect_turn_there(p, set);
}

static u64 count_of(struct plug *p, u16 set, u16 num)
{
	return pmuk_ctx_count(p->test, p->ctx, set, num, -1);
}

/*
 * Each event that the PMU has counted is in the counts of one set, and an event that only one set
 * counts is in that set.
 */
static void expect_turns_conserved(struct plug *p)
{
	KUNIT_EXPECT_EQ(p->test, count_of(p, FIRST, 0) + count_of(p, SECOND, 0),
			pmuk_sim_counted(p->sim, 0) - p->hidden);
	KUNIT_EXPECT_EQ(p->test, count_of(p, FIRST, 1), pmuk_sim_counted(p->sim, 1));
	KUNIT_EXPECT_EQ(p->test, count_of(p, SECOND, 1), pmuk_sim_counted(p->sim, 2));
}

/* Lets some events of each kind happen on all CPUs, in any turn. */
static void count_all_over(struct plug *p)
{
	u64 config;
	int cpu;

	for_each_online_cpu(cpu) {
		for (config = 0; config < 3; config++)
			pmuk_sim_count_on(p->sim, cpu, config, 7);
	}
}

static u64 runs_after_events(struct plug *p, int cpu)
{
	count_all_over(p);
	return pmuk_ctx_info(p->ctx, FIRST, cpu).runs;
}

/* Expects @n more turns on @cpu, and lets events happen in all of them. */
static void expect_turns_go_on(struct plug *p, int cpu, u64 n)
{
	u64 runs = pmuk_ctx_info(p->ctx, FIRST, cpu).runs + n;

	KUNIT_EXPECT_TRUE(p->test, pmuk_ctx_comes(runs_after_events(p, cpu) >= runs));
}

static void expect_not_longer_than(struct plug *p, u64 ns)
{
	u64 sum = pmuk_ctx_info(p->ctx, FIRST, p->cpu).active_duration +
		  pmuk_ctx_info(p->ctx, SECOND, p->cpu).active_duration;

	KUNIT_EXPECT_GT(p->test, sum, 0);
	KUNIT_EXPECT_LE(p->test, sum, ns);
}

/*
 * A CPU that is offline takes no turns, while other CPUs do. Its turn does not last longer by the
 * time that it was offline.
 */
static void offline_in_the_middle_of_a_turn(struct kunit *test)
{
	struct plug *p = test->priv;
	u64 begun = ktime_get_ns(), away, left, runs;
	unsigned int i;

	start_turns(p, SHORT, 0, NULL);
	for (i = 0, away = 0; i < 2; i++) {
		expect_turns_go_on(p, p->cpu, 3);
		offline_and_told(p);
		runs = runs_there(p);
		left = ktime_get_ns();
		expect_turns_go_on(p, p->stays, 10);
		KUNIT_EXPECT_EQ(test, runs_there(p), runs);
		away += ktime_get_ns() - left;
		expect_turns_conserved(p);
		online_and_told(p);
	}
	expect_turns_go_on(p, p->cpu, 10);
	KUNIT_EXPECT_EQ(test, pmuk_stop(p->ctx), 0);
	expect_turns_conserved(p);
	expect_not_longer_than(p, ktime_get_ns() - begun - away);
	pmuk_ctx_silent(test, p->ctx);
}

/*
 * A CPU comes back to the set that pmuk_switch_evtset() has named last, even if the call was made
 * while the CPU was offline.
 */
static void comes_back_to_the_set_called_for(struct kunit *test)
{
	struct plug *p = test->priv;

	start_turns(p, 0, 0, NULL);
	expect_turn_there(p, FIRST);
	expect_switch_there(p, SECOND);
	bounce(p);
	expect_turn_there(p, SECOND);
	offline_and_told(p);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(p->ctx, FIRST), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(p->sim, 1, 3), 3);
	online_and_told(p);
	expect_turn_there(p, FIRST);
	expect_switch_there(p, SECOND);
	expect_turns_conserved(p);
	pmuk_ctx_silent(test, p->ctx);
}

static void expect_overflows(struct plug *p, u64 count, u16 set)
{
	pmuk_ctx_expect_msg(p->test, p->ctx, PMUK_MSG_OVERFLOW, p->cpu, set, count);
}

/*
 * An overflow masks one CPU, and the others count on. When the CPU is back, a restart lets it count
 * and take turns.
 */
static void offline_while_masked(struct kunit *test)
{
	struct plug *p = test->priv;
	u64 runs;

	start_turns(p, SHORT, PMUK_CTX_MASK, &notify);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(count_there(p, PERIOD) &&
					       pmuk_ctx_info(p->ctx, FIRST, p->cpu).overflowed +
					       pmuk_ctx_info(p->ctx, SECOND, p->cpu).overflowed));
	KUNIT_EXPECT_EQ(test, pmuk_ctx_next(test, p->ctx).kind, PMUK_MSG_OVERFLOW);
	p->hidden = count_there(p, 5);
	runs = runs_there(p);
	offline_and_told(p);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_runs(p->ctx, SECOND, p->stays, 10));
	KUNIT_EXPECT_EQ(test, pmuk_restart(p->ctx), 0);
	KUNIT_EXPECT_EQ(test, runs_there(p), runs);
	online_and_told(p);
	KUNIT_EXPECT_EQ(test, pmuk_restart(p->ctx), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(count_there(p, 5)));
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(runs_there(p) > runs + 6));
	KUNIT_EXPECT_EQ(test, pmuk_stop(p->ctx), 0);
	expect_turns_conserved(p);
}

static void advance_here(void *data)
{
	struct plug *p = data;

	pmuk_sim_advance(p->sim, 0, PERIOD + 20);
}

/* Advances the counter beyond its period, and leaves the overflow pending. */
static void advance_there(struct plug *p)
{
	KUNIT_EXPECT_EQ(p->test, smp_call_function_single(p->cpu, advance_here, p, true), 0);
}

/*
 * The PMU may serve the pending overflow while perf core takes the counters off the PMU, one after
 * the other. So there is one overflow message, or none.
 */
static void offline_and_perhaps_overflow(struct plug *p)
{
	struct pmuk_msg msg;

	go_offline(p);
	msg = pmuk_ctx_next(p->test, p->ctx);
	if (msg.kind == PMUK_MSG_OVERFLOW) {
		KUNIT_EXPECT_EQ(p->test, msg.count, 1);
		msg = pmuk_ctx_next(p->test, p->ctx);
	}
	KUNIT_EXPECT_EQ(p->test, msg.kind, PMUK_MSG_CPU_OFFLINE);
	pmuk_ctx_told(p->ctx, PMUK_MSG_OVERFLOW);
}

/*
 * A CPU goes offline while an overflow is pending. The events are counted. As after a stop, no
 * message reports the overflow later, and the next period is a whole one.
 */
static void offline_with_an_overflow_pending(struct kunit *test)
{
	struct plug *p = test->priv;
	unsigned int i;

	start_turns(p, 0, 0, &notify);
	for (i = 0; i < 2; i++) {
		advance_there(p);
		/*
		 * The first overflow is in the active turn, the second one in a turn that has
		 * ended.
		 */
		if (i)
			KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(p->ctx, SECOND), 0);
		offline_and_perhaps_overflow(p);
		online_and_told(p);
		KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(p->ctx, FIRST), 0);
		pmuk_ctx_silent(test, p->ctx);
		KUNIT_EXPECT_EQ(test, count_there(p, PERIOD - 1), PERIOD - 1);
		pmuk_ctx_silent(test, p->ctx);
		KUNIT_EXPECT_EQ(test, count_there(p, 1), 1);
		expect_overflows(p, 1, FIRST);
		expect_count(p, p->cpu, (i + 1) * (2 * PERIOD + 20));
	}
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(p->ctx, FIRST, p->cpu).replayed, 0);
	pmuk_ctx_silent(test, p->ctx);
}

/*
 * Runs the instance's worker on any CPU, as happens when its CPU has gone offline, and the context
 * has not noticed yet.
 */
static void switch_anywhere(struct pmuk_inst *inst, unsigned int nr)
{
	scoped_guard(mutex, &inst->lock)
		inst->wanted = &inst->turns[nr];
	schedule_work(&inst->work);
	flush_work(&inst->work);
}

/* An overflow that was pending on a CPU is not handled on another CPU. */
static void offline_before_a_replay(struct kunit *test)
{
	struct plug *p = test->priv;
	int ret;

	start_turns(p, 0, 0, &notify);
	advance_there(p);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(p->ctx, SECOND), 0);
	pmuk_ctx_silent(test, p->ctx);
	scoped_guard(mutex, &p->ctx->lock) {
		ret = remove_cpu(p->cpu);
		if (!ret)
			switch_anywhere(p->ctx->insts[p->cpu], 0);
	}
	pmuk_test_expect_offline(test, p->cpu, ret);
	expect_told(p, PMUK_MSG_CPU_OFFLINE);
	pmuk_ctx_silent(test, p->ctx);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(p->ctx, FIRST, p->cpu).replayed, 0);
	online_and_told(p);
	expect_count(p, p->cpu, PERIOD + 20);
}

/*
 * The CPU is masked, so the requested switch has to wait. When the CPU is back, it is @then's turn.
 */
static void switch_requested(struct plug *p, const struct pmuk_pmd *pmd, bool call, u16 then)
{
	struct kunit *test = p->test;

	start_turns(p, 0, PMUK_CTX_MASK, pmd);
	KUNIT_EXPECT_EQ(test, count_there(p, 2 * PERIOD), PERIOD);
	if (call)
		KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(p->ctx, SECOND), 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(p->ctx, SECOND, p->cpu).runs, 0);
	expect_overflows(p, 1, FIRST);
	bounce(p);
	KUNIT_EXPECT_EQ(test, pmuk_restart(p->ctx), 0);
	expect_turn_there(p, then);
	expect_switch_there(p, then == FIRST ? SECOND : FIRST);
	expect_turns_conserved(p);
	pmuk_ctx_silent(test, p->ctx);
}

static void offline_with_a_switch_called_for(struct kunit *test)
{
	switch_requested(test->priv, &notify, true, SECOND);
}

/*
 * A CPU that comes back begins with the first set, as after a start. The switch that an overflow
 * has requested is forgotten.
 */
static void offline_with_a_switch_by_overflow(struct kunit *test)
{
	static const struct pmuk_pmd both = { .short_reset = PERIOD, .flags = PMUK_PMD_NOTIFY,
					      .switch_overflows = 1 };

	switch_requested(test->priv, &both, false, FIRST);
}

static void switch_once(void *data)
{
	struct busy *b = data;

	b->wrong += pmuk_switch_evtset(b->p->ctx, b->turns++ % 2 ? FIRST : SECOND) != 0;
}

/*
 * The CPU comes and goes while turns end by time and by call. No event is lost, and in the end the
 * CPU takes turns again.
 */
static void goes_and_comes_while_switching(struct kunit *test)
{
	struct plug *p = test->priv;

	start_turns(p, SHORT, 0, NULL);
	bounce_while(p, switch_once, new_busy(p), 20, count_all_over);
	expect_turns_go_on(p, p->cpu, 3);
	KUNIT_EXPECT_EQ(test, pmuk_stop(p->ctx), 0);
	expect_turns_conserved(p);
}

static struct kunit_case pmuk_context_hotplug_cases[] = {
	KUNIT_CASE_SLOW(counts_carry_over),
	KUNIT_CASE(snapshots_carry_over),
	KUNIT_CASE(snapshots_forget_what_is_written_over),
	KUNIT_CASE_SLOW(goes_and_comes_while_stopped),
	KUNIT_CASE(joins_what_was_started_without_it),
	KUNIT_CASE_SLOW(one_cpu_goes_and_comes),
	KUNIT_CASE_SLOW(others_do_not_join),
	KUNIT_CASE_SLOW(unloaded_while_offline),
	KUNIT_CASE_SLOW(cannot_be_placed_when_it_is_back),
	KUNIT_CASE_SLOW(place_is_tried_ever_more_rarely),
	KUNIT_CASE_SLOW(start_tries_the_place_at_once),
	KUNIT_CASE_SLOW(start_takes_no_right),
	KUNIT_CASE(waiting_cpu_keeps_none_from_counting),
	KUNIT_CASE_SLOW(hotplug_waits_once),
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
