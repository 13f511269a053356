// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check the errors that calls on contexts return. Each call has a table that says how an
 * error is provoked, on which kinds of target, and which error is returned. Errors that other
 * suites see on each kind of target are not repeated here.
 */
#include <linux/cpu.h>
#include <linux/cred.h>
#include <linux/perf_event.h>

#include "pmuk_counters.h"
#include "pmuk_place.h"
#include "pmuk_rights.h"
#include "pmuk_suite.h"

#define PERIOD		100
#define COUNTERS	4	/* counters of the PMU of each place */
#define NO_SET		9
#define NO_PERIOD	0	/* number of the counter without a period */
#define WITH_PERIOD	1
#define MORE		5	/* numbers from here on are free */

#define CPU		BIT(PMUK_TARGET_CPU)
#define CPUS		BIT(PMUK_TARGET_CPUS)
#define TASK		BIT(PMUK_TARGET_TASK)
#define TREE		BIT(PMUK_TARGET_TREE)
#define ALL		(CPU | CPUS | TASK | TREE)

/* The state of the context when the call is made. */
enum state {
	NEW,
	LOADED,
	STARTED,
	UNLOADED,
};

struct attempt {
	struct kunit *test;
	struct pmuk_place *p;
	const struct row *row;
	struct pmuk_context *ctx;
	struct completion *more;	/* the context's completion */
	int elsewhere;			/* an online CPU outside of the target */
	int ret;
};

/* Says which CPU the call is about, relative to the target. */
enum which_cpu {
	SUM,
	HERE,
	ELSEWHERE,
	IMPOSSIBLE,
};

struct row {
	int ret;			/* expected return value */
	u32 on;				/* kinds of target that the row applies to */
	enum state state;
	int (*fn)(struct attempt *a);	/* makes the call */
	const char *how;
	struct pmuk_pmd pmd;		/* for calls that take one */
	enum pmuk_irq_level level;	/* context that makes the call */
	u16 set, num;
	enum which_cpu cpu;
	unsigned int n;			/* number of counters to read */
	unsigned long timeout;		/* length of the wait, in jiffies; 0: no timeout */
	bool deferred;			/* ends the context by pmuk_close_deferred() */
	bool completed;			/* the completion is complete before the call */
	bool nowhere;			/* the call gets NULL for its result */
};

/* ---- one attempt ---- */

/* Adds a pinned counter whose event no other counter counts. */
static void add_pinned(struct attempt *a, u16 num)
{
	pmuk_ctx_add(a->test, a->ctx, a->p->sim, 0, num, 2, PMUK_PINNED | PMUK_PRIVATE);
}

static void add_counters(struct attempt *a)
{
	const struct pmuk_pmd pmd = { .num = WITH_PERIOD, .short_reset = PERIOD,
				      .flags = PMUK_PMD_NOTIFY };

	pmuk_ctx_add(a->test, a->ctx, a->p->sim, 0, NO_PERIOD, 0, 0);
	pmuk_ctx_add_pmd(a->test, a->ctx, a->p->sim, 1, &pmd);
}

/* The completion outlives the context, because the actions of a test case are undone in reverse. */
static void new_context(struct attempt *a)
{
	struct pmuk_context_attr attr = { .completion = pmuk_ctx_completion(a->test) };

	a->more = attr.completion;
	a->ctx = pmuk_ctx_create(a->test, &attr);
	add_counters(a);
	if (a->row->state >= LOADED)
		pmuk_place_load(a->p, a->ctx);
	if (a->row->state >= STARTED)
		pmuk_ctx_start(a->test, a->ctx);
	if (a->row->state == UNLOADED)
		KUNIT_EXPECT_EQ(a->test, pmuk_unload_context(a->ctx), 0);
	if (a->row->completed)
		complete(a->more);
}

static void try_row(struct attempt *a)
{
	struct kunit *test = a->test;

	new_context(a);
	KUNIT_EXPECT_EQ_MSG(test, a->row->fn(a), a->row->ret, "%s", a->row->how);
	if (a->ctx)
		kunit_release_action(test, pmuk_ctx_put, a->ctx);
	KUNIT_EXPECT_EQ_MSG(test, pmuk_nr_counters(), 0, "%s", a->row->how);
}

/* PMUK_TARGET_CPUS gets all CPUs but one, so that there is a CPU outside of the target. */
static void try_rows(struct kunit *test, const struct row *rows, unsigned int nr)
{
	struct pmuk_place *p = pmuk_place_of(test);
	int elsewhere = pmuk_test_other_cpu(test, p->cpu);
	unsigned int i, tried = 0;
	static struct cpumask cpus;

	cpumask_copy(&cpus, cpu_possible_mask);
	cpumask_clear_cpu(elsewhere, &cpus);
	if (p->target.type == PMUK_TARGET_CPUS)
		p->target.cpus = &cpus;
	for (i = 0; i < nr; i++) {
		struct attempt a = { .test = test, .p = p, .row = &rows[i],
				     .elsewhere = elsewhere };

		if (!(a.row->on & BIT(p->target.type)))
			continue;
		try_row(&a);
		tried++;
	}
	if (!tried)
		kunit_skip(test, "this call has no such error on this kind of target");
}

/* Defines the test case of a table, which is named after the call that it tries. */
#define TABLE_CASE(name)							\
	static void name(struct kunit *test)					\
	{									\
		try_rows(test, name##_rows, ARRAY_SIZE(name##_rows));		\
	}

static int cpu_of(const struct attempt *a)
{
	const int cpus[] = { [SUM] = -1, [HERE] = a->p->cpu, [ELSEWHERE] = a->elsewhere,
			     [IMPOSSIBLE] = nr_cpu_ids };

	return cpus[a->row->cpu];
}

/* Returns the error of the call, or of the single entry of its vector. */
static int entry(int done, const int *ret)
{
	if (done < 0)
		return done;
	return done ? 0 : *ret;
}

/* Calls @fn in the target's task, or on the target's CPU. */
static int in_place(struct attempt *a, void (*fn)(struct pmuk_place *p))
{
	a->p->data = a;
	if (pmuk_place_is_task(a->p))
		pmuk_place_tell(a->p, fn);
	else
		fn(a->p);
	return a->ret;
}

/* ---- load_context ---- */

static int load(struct attempt *a)
{
	a->p->target.failed_cpu = INT_MIN;
	return pmuk_load_context(a->ctx, &a->p->target);
}

/* The target names this counter as the one that could not be placed. */
static void expect_failed(struct attempt *a, u16 num)
{
	KUNIT_EXPECT_EQ(a->test, a->p->target.failed_cpu,
			pmuk_place_is_task(a->p) ? -1 : a->p->cpu);
	KUNIT_EXPECT_EQ(a->test, a->p->target.failed_set, 0);
	KUNIT_EXPECT_EQ(a->test, a->p->target.failed_num, num);
}

static int load_failing_at(struct attempt *a, u16 num)
{
	int ret = load(a);

	expect_failed(a, num);
	pmuk_ctx_expect_gone(a->test, a->p->sim);
	KUNIT_EXPECT_EQ(a->test, pmuk_unload_context(a->ctx), -ENODEV);
	return ret;
}

static int load_unknown_event(struct attempt *a)
{
	pmuk_ctx_add(a->test, a->ctx, a->p->sim, 0, MORE, PMUK_SIM_EVENTS, 0);
	return load_failing_at(a, MORE);
}

/* Each counter fits alone. The last one does not fit together with the others. */
static int load_too_many(struct attempt *a)
{
	unsigned int i;

	for (i = 0; i <= COUNTERS; i++)
		add_pinned(a, MORE + i);
	return load_failing_at(a, MORE + COUNTERS);
}

static int refuse(const struct perf_event_attr *attr, void *data)
{
	return -EOPNOTSUPP;
}

static int load_on_poor_pmu(struct attempt *a)
{
	const struct pmuk_sim_config config = { .name = "pmuk_sim2", .nr_counters = 1,
						.width = 32, .event_init = refuse };
	struct pmuk_sim *poor = pmuk_test_sim_config(a->test, &config);
	int ret;

	pmuk_ctx_add(a->test, a->ctx, poor, 0, MORE, 0, 0);
	ret = load_failing_at(a, MORE);
	kunit_release_action(a->test, pmuk_test_put_sim, poor);
	return ret;
}

static int load_without_sets(struct attempt *a)
{
	struct pmuk_set_desc set = {};

	KUNIT_EXPECT_EQ(a->test, pmuk_delete_evtsets(a->ctx, &set, 1), 1);
	return load(a);
}

static const struct row load_context_rows[] = {
	{ -EINVAL, ALL, NEW, load_without_sets, "no event set" },
	{ -EBUSY, ALL, STARTED, load, "started already" },
	{ -ENOENT, ALL, NEW, load_unknown_event, "no PMU knows the event" },
	{ -ENOSPC, CPU | CPUS, NEW, load_too_many, "pinned counters that do not fit together" },
	{ -EOPNOTSUPP, ALL, NEW, load_on_poor_pmu, "the PMU lacks a capability" },
};

TABLE_CASE(load_context)

/* The failed load leaves nothing behind, and the context loads once its CPU is online again. */
static int load_offline(struct attempt *a)
{
	struct pmuk_target target = a->p->target;
	void *cpu = (void *)(long)a->elsewhere;
	int ret;

	pmuk_test_keep_online(a->test, a->elsewhere);
	pmuk_test_expect_offline(a->test, a->elsewhere, remove_cpu(a->elsewhere));
	target.cpu = a->elsewhere;
	target.cpus = cpumask_of(a->elsewhere);
	ret = pmuk_load_context(a->ctx, &target);
	KUNIT_EXPECT_EQ(a->test, pmuk_nr_counters(), 0);
	KUNIT_EXPECT_EQ(a->test, pmuk_start(a->ctx, NULL), -ENODEV);
	kunit_release_action(a->test, pmuk_test_put_online, cpu);
	KUNIT_EXPECT_EQ(a->test, pmuk_load_context(a->ctx, &target), 0);
	return ret;
}

static const struct row load_context_offline_rows[] = {
	{ -ENODEV, CPU | CPUS, NEW, load_offline, "its only CPU is offline" },
};

TABLE_CASE(load_context_offline)

/* ---- start, restart, switch_evtset ---- */

static void steal(struct attempt *a, unsigned int n)
{
	KUNIT_EXPECT_EQ(a->test, pmuk_sim_steal(a->p->sim, a->p->cpu, n), 0);
}

/* A task's counters are placed when the task runs next, so the start succeeds. */
static int start_without_room(struct attempt *a)
{
	int ret;

	add_pinned(a, MORE);
	KUNIT_EXPECT_EQ(a->test, load(a), 0);
	steal(a, COUNTERS);
	ret = pmuk_start(a->ctx, &a->p->target);
	if (ret)
		expect_failed(a, MORE);
	steal(a, 0);
	return ret;
}

static const struct row start_rows[] = {
	{ -ENOSPC, CPU | CPUS, NEW, start_without_room, "no room for a pinned counter" },
	{ 0, TASK | TREE, NEW, start_without_room, "no room for a pinned counter yet" },
};

TABLE_CASE(start)

static int restart_one(struct attempt *a)
{
	return pmuk_restart_cpu(a->ctx, cpu_of(a));
}

static const struct row restart_cpu_rows[] = {
	{ -EINVAL, ALL, STARTED, restart_one, "an impossible CPU", .cpu = IMPOSSIBLE },
	{ -EINVAL, ALL, STARTED, restart_one, "no CPU", .cpu = SUM },
	{ -ENODEV, ALL, NEW, restart_one, "not loaded", .cpu = HERE },
	{ -ENODEV, ALL, UNLOADED, restart_one, "not loaded any more", .cpu = HERE },
	{ -ENODEV, TASK | TREE, STARTED, restart_one, "a CPU, of a task", .cpu = HERE },
	{ -ENODEV, ALL, STARTED, restart_one, "a CPU that is not of the target", .cpu = ELSEWHERE },
	{ 0, CPU | CPUS, LOADED, restart_one, "a CPU of the target, stopped", .cpu = HERE },
	{ 0, CPU | CPUS, STARTED, restart_one, "a CPU of the target", .cpu = HERE },
};

TABLE_CASE(restart_cpu)

static int switch_set(struct attempt *a)
{
	return pmuk_switch_evtset(a->ctx, a->row->set);
}

static const struct row switch_evtset_rows[] = {
	{ -ENODEV, ALL, NEW, switch_set, "not loaded" },
	{ -ENODEV, ALL, NEW, switch_set, "not loaded, and no such set", .set = NO_SET },
	{ -ENODEV, ALL, UNLOADED, switch_set, "not loaded any more" },
	{ -ENOENT, ALL, LOADED, switch_set, "no such set, loaded", .set = NO_SET },
	{ -ENOENT, ALL, STARTED, switch_set, "no such set, started", .set = NO_SET },
	{ 0, ALL, LOADED, switch_set, "its turn is first" },
	{ 0, ALL, STARTED, switch_set, "it is its turn" },
};

TABLE_CASE(switch_evtset)

/* ---- getinfo_evtsets ---- */

static int getinfo(struct attempt *a)
{
	struct pmuk_set_info info = { .id = a->row->set, .cpu = cpu_of(a) };

	return entry(pmuk_getinfo_evtsets(a->ctx, &info, 1), &info.ret);
}

static const struct row getinfo_evtsets_rows[] = {
	{ -ENODEV, ALL, NEW, getinfo, "not loaded", .cpu = HERE },
	{ -ENODEV, TASK | TREE, LOADED, getinfo, "CPUs, of a task", .cpu = HERE },
	{ -ENODEV, TASK | TREE, STARTED, getinfo, "CPUs, of a task that counts", .cpu = HERE },
	{ -ENODEV, ALL, LOADED, getinfo, "a CPU that is not of the target", .cpu = ELSEWHERE },
	{ -EINVAL, ALL, LOADED, getinfo, "an impossible CPU", .cpu = IMPOSSIBLE },
	{ -ENOENT, ALL, LOADED, getinfo, "no such set", .set = NO_SET },
	{ 0, CPU | CPUS, LOADED, getinfo, "a CPU of the target", .cpu = HERE },
};

TABLE_CASE(getinfo_evtsets)

/* ---- write_pmds, read_pmds ---- */

/* A failed write leaves the counter's period as it was. */
static void expect_period(struct attempt *a)
{
	bool is_task = pmuk_place_is_task(a->p);
	unsigned int nr = is_task ? a->p->nr : 1;

	pmuk_ctx_start(a->test, a->ctx);
	KUNIT_EXPECT_EQ(a->test, nr * PERIOD,
			is_task ? pmuk_place_feed(a->p, 1, PERIOD) :
				  pmuk_ctx_feed(a->p->sim, a->p->cpu, 1, PERIOD));
	KUNIT_EXPECT_EQ(a->test, pmuk_ctx_next(a->test, a->ctx).count, nr);
}

static int write_pmd(struct attempt *a)
{
	struct pmuk_pmd pmd = a->row->pmd;
	int ret = entry(pmuk_write_pmds(a->ctx, &pmd, 1), &pmd.ret);

	if (ret == -EBUSY && a->row->state == LOADED)
		expect_period(a);
	return ret;
}

static const struct row write_pmds_rows[] = {
	{ -EBUSY, ALL, STARTED, write_pmd, "started" },
	{ -EBUSY, ALL, LOADED, write_pmd, "a period, and there was none",
	  .pmd = { .num = NO_PERIOD, .short_reset = PERIOD } },
	{ -EBUSY, ALL, LOADED, write_pmd, "a long period, and there was none",
	  .pmd = { .num = NO_PERIOD, .long_reset = PERIOD } },
	{ -EBUSY, ALL, LOADED, write_pmd, "no period any more", .pmd = { .num = WITH_PERIOD } },
	{ -EBUSY, ALL, LOADED, write_pmd, "random periods",
	  .pmd = { .num = WITH_PERIOD, .short_reset = PERIOD, .random_mask = 1 } },
	{ -EBUSY, TREE, LOADED, write_pmd, "another period, of children",
	  .pmd = { .num = WITH_PERIOD, .short_reset = 2 * PERIOD } },
	{ -EBUSY, TREE, LOADED, write_pmd, "a long period, of children",
	  .pmd = { .num = WITH_PERIOD, .short_reset = PERIOD, .long_reset = PERIOD } },
	{ -EBUSY, TREE, LOADED, write_pmd, "peers to reset, of children",
	  .pmd = { .num = WITH_PERIOD, .short_reset = PERIOD, .reset_peers = 1 } },
	{ -EBUSY, TREE, LOADED, write_pmd, "peers in records, of children",
	  .pmd = { .num = WITH_PERIOD, .short_reset = PERIOD, .sample_peers = 1 } },
	{ 0, CPU | CPUS | TASK, LOADED, write_pmd, "what children cannot have",
	  .pmd = { .num = WITH_PERIOD, .short_reset = 2 * PERIOD, .long_reset = PERIOD,
		   .reset_peers = 1, .sample_peers = 1 } },
	{ 0, ALL, LOADED, write_pmd, "what is not fixed",
	  .pmd = { .num = WITH_PERIOD, .short_reset = PERIOD, .cookie = 1 } },
	{ -ENOENT, ALL, LOADED, write_pmd, "no such set", .pmd = { .set = NO_SET } },
	{ -EINVAL, ALL, LOADED, write_pmd, "an impossible number",
	  .pmd = { .num = PMUK_SET_COUNTERS } },
};

TABLE_CASE(write_pmds)

static int read_pmd(struct attempt *a)
{
	struct pmuk_pmd_read read = { .set = a->row->set, .num = a->row->num, .cpu = cpu_of(a) };

	return entry(pmuk_read_pmds(a->ctx, &read, 1), &read.ret);
}

/* The counter is pushed out when its CPU, or its task there, finds no room for it. */
static int read_pmd_pushed_out(struct attempt *a)
{
	int ret;

	add_pinned(a, MORE);
	KUNIT_EXPECT_EQ(a->test, load(a), 0);
	pmuk_ctx_start(a->test, a->ctx);
	in_place(a, pmuk_place_count_here);
	steal(a, COUNTERS);
	in_place(a, pmuk_place_count_here);
	ret = read_pmd(a);
	steal(a, 0);
	return ret;
}

static const struct row read_pmds_rows[] = {
	{ -ENOENT, ALL, STARTED, read_pmd, "no such set", .set = NO_SET },
	{ -ENOENT, ALL, STARTED, read_pmd, "no such counter", .num = MORE },
	{ -EINVAL, ALL, STARTED, read_pmd, "an impossible number", .num = PMUK_SET_COUNTERS },
	{ -EINVAL, ALL, STARTED, read_pmd, "an impossible CPU", .cpu = IMPOSSIBLE },
	{ -ENODEV, ALL, STARTED, read_pmd, "a CPU that is not of the target", .cpu = ELSEWHERE },
	{ -EBUSY, ALL, NEW, read_pmd_pushed_out, "a pinned counter, pushed out", .num = MORE },
};

TABLE_CASE(read_pmds)

/* ---- a PMU that is gone ---- */

static void unplug(struct attempt *a)
{
	if (pmuk_sim_unplug(a->p->sim))
		kunit_skip(a->test, "this perf core does not let PMUs with events go");
}

static int start_without_pmu(struct attempt *a)
{
	int ret;

	unplug(a);
	ret = pmuk_start(a->ctx, &a->p->target);
	expect_failed(a, NO_PERIOD);
	return ret;
}

static const struct row start_unplugged_rows[] = {
	{ -ENODEV, ALL, LOADED, start_without_pmu, "its PMU is gone" },
};

TABLE_CASE(start_unplugged)

static int read_pmd_without_pmu(struct attempt *a)
{
	unplug(a);
	return read_pmd(a);
}

static const struct row read_pmds_unplugged_rows[] = {
	{ -ENODEV, ALL, STARTED, read_pmd_without_pmu, "its PMU is gone", .num = NO_PERIOD },
};

TABLE_CASE(read_pmds_unplugged)

/* ---- read, read_timeout ---- */

struct waiter {
	struct pmuk_context *ctx;
	unsigned long timeout;
	bool waiting;
	int ret;
};

static void wait_for_message(void *data)
{
	struct waiter *w = data;
	struct pmuk_msg msg;

	WRITE_ONCE(w->waiting, true);
	w->ret = w->timeout ? pmuk_read_timeout(w->ctx, &msg, w->timeout) :
			      pmuk_read(w->ctx, &msg, false);
}

/* A signal ends the wait, also if it has come before the wait has begun. */
static int interrupt_wait(struct attempt *a)
{
	struct waiter *w = pmuk_test_zalloc(a->test, sizeof(*w));
	struct pmuk_job *job;

	w->ctx = a->ctx;
	w->timeout = a->row->timeout;
	job = pmuk_job_start(a->test, wait_for_message, w);
	KUNIT_EXPECT_TRUE(a->test, pmuk_ctx_comes(READ_ONCE(w->waiting)));
	send_sig(SIGINT, job->task, 1);
	pmuk_job_end(a->test, job);
	return w->ret;
}

static void read_at(void *data)
{
	struct attempt *a = data;
	struct pmuk_msg msg;

	a->ret = pmuk_read(a->ctx, a->row->nowhere ? NULL : &msg, true);
}

static int read_now(struct attempt *a)
{
	KUNIT_EXPECT_EQ(a->test, pmuk_irq_run(a->row->level, read_at, a), 0);
	return a->ret;
}

/* pmuk_read() consumes the message's own completion. After that there is no message. */
static int read_overflow(struct attempt *a)
{
	int ret;

	KUNIT_EXPECT_EQ(a->test, pmuk_ctx_feed(a->p->sim, a->p->cpu, 1, PERIOD), PERIOD);
	KUNIT_EXPECT_TRUE(a->test, pmuk_ctx_comes(completion_done(a->more)));
	ret = read_now(a);
	KUNIT_EXPECT_FALSE(a->test, completion_done(a->more));
	KUNIT_EXPECT_EQ(a->test, read_now(a), -EAGAIN);
	return ret;
}

static const struct row read_rows[] = {
	{ -EAGAIN, ALL, STARTED, read_now, "nothing, in a task" },
	{ -EAGAIN, CPU, STARTED, read_now, "nothing, in softirq", .level = PMUK_IRQ_SOFT },
	{ -EAGAIN, CPU, STARTED, read_now, "nothing, in hardirq", .level = PMUK_IRQ_HARD },
	{ 0, CPU, STARTED, read_now, "completed, in a task", .completed = true },
	{ 0, CPU, STARTED, read_now, "completed, in softirq", .level = PMUK_IRQ_SOFT,
	  .completed = true },
	{ 0, CPU, STARTED, read_now, "completed, in hardirq", .level = PMUK_IRQ_HARD,
	  .completed = true },
	{ 1, CPU, STARTED, read_overflow, "a message, in a task" },
	{ 1, CPU, STARTED, read_overflow, "a message, in softirq", .level = PMUK_IRQ_SOFT },
	{ 1, CPU, STARTED, read_overflow, "a message, in hardirq", .level = PMUK_IRQ_HARD },
	{ -ERESTARTSYS, ALL, STARTED, interrupt_wait, "a signal" },
	{ -EINVAL, CPU, STARTED, read_now, "no message", .nowhere = true },
};

TABLE_CASE(read)

static int wait_for(struct attempt *a)
{
	struct pmuk_msg msg;

	return pmuk_read_timeout(a->ctx, a->row->nowhere ? NULL : &msg, a->row->timeout);
}

static const struct row read_timeout_rows[] = {
	{ -ERESTARTSYS, ALL, STARTED, interrupt_wait, "a signal", .timeout = PMUK_CTX_PATIENCE },
	{ -ETIMEDOUT, ALL, STARTED, wait_for, "the time is over", .timeout = 2 },
	{ -EAGAIN, ALL, STARTED, wait_for, "no time", .timeout = 0 },
	{ 0, CPU, STARTED, wait_for, "completed", .timeout = PMUK_CTX_PATIENCE, .completed = true },
	{ -EINVAL, CPU, STARTED, wait_for, "no message", .timeout = 1, .nowhere = true },
};

TABLE_CASE(read_timeout)

/* ---- read_local, snapshot ---- */

static void read_here(struct pmuk_place *p)
{
	struct attempt *a = p->data;
	u64 counts[3];

	a->ret = pmuk_read_local(a->ctx, counts, a->row->n);
}

static int read_in_place(struct attempt *a)
{
	return in_place(a, read_here);
}

/* Reads on another CPU, or in another task. */
static int read_local_elsewhere(struct attempt *a)
{
	if (!pmuk_place_is_task(a->p))
		pmuk_test_pin(a->test, a->elsewhere);
	a->p->data = a;
	read_here(a->p);
	pmuk_test_pin(a->test, a->p->cpu);
	return a->ret;
}

/* When there is room again, the read returns the count. */
static int read_local_without_room(struct attempt *a)
{
	int ret;

	KUNIT_EXPECT_EQ(a->test, read_in_place(a), 0);
	steal(a, COUNTERS);
	ret = read_in_place(a);
	steal(a, 0);
	KUNIT_EXPECT_TRUE(a->test, pmuk_ctx_comes(!read_in_place(a)));
	return ret;
}

static const struct row read_local_rows[] = {
	{ 0, CPU | CPUS | TASK, STARTED, read_in_place, "where it counts", .n = 2 },
	{ -EINVAL, CPU | CPUS, NEW, read_in_place, "not loaded", .n = 2 },
	{ -EINVAL, CPU | CPUS | TASK, STARTED, read_in_place, "more than the set has", .n = 3 },
	{ -EINVAL, ALL, STARTED, read_local_elsewhere, "not on its CPU, or not its task", .n = 2 },
	{ -EBUSY, ALL, LOADED, read_in_place, "stopped", .n = 2 },
	{ -EBUSY, CPU | CPUS | TASK, STARTED, read_local_without_room, "not on the PMU", .n = 2 },
	{ -EOPNOTSUPP, TREE, STARTED, read_in_place, "children", .n = 2 },
};

TABLE_CASE(read_local)

static int take_snapshot(struct attempt *a)
{
	struct pmuk_value values[3];

	return pmuk_snapshot(a->ctx, a->row->set, a->row->nowhere ? NULL : values, a->row->n);
}

/* Once the context is stopped, any task can read the counts. */
static int snapshot_of_counts(struct attempt *a)
{
	struct pmuk_value values[2] = {};
	int ret;

	a->p->config = 0;
	a->p->n = 7;
	in_place(a, pmuk_place_count_here);
	KUNIT_EXPECT_EQ(a->test, pmuk_stop(a->ctx), 0);
	ret = pmuk_snapshot(a->ctx, 0, values, 2);
	KUNIT_EXPECT_EQ(a->test, values[0].count, 7);
	KUNIT_EXPECT_EQ(a->test, values[1].count, 0);
	KUNIT_EXPECT_GT(a->test, values[0].time_running, 0);
	return ret;
}

static const struct row snapshot_rows[] = {
	{ 0, CPU | CPUS | TASK, STARTED, snapshot_of_counts, "counts" },
	{ 0, CPU | CPUS | TASK, LOADED, take_snapshot, "stopped", .n = 2 },
	{ -EINVAL, CPU | CPUS | TASK, STARTED, take_snapshot, "more than the set has", .n = 3 },
	{ -EINVAL, CPU | CPUS | TASK, STARTED, take_snapshot, "no such set", .set = NO_SET,
	  .n = 1 },
	{ -EINVAL, ALL, STARTED, take_snapshot, "nowhere to put them", .n = 1, .nowhere = true },
	{ -ENODEV, ALL, NEW, take_snapshot, "not loaded yet", .n = 2 },
	{ -ENODEV, ALL, UNLOADED, take_snapshot, "not loaded any more", .n = 2 },
	{ -EOPNOTSUPP, TREE, LOADED, take_snapshot, "children, stopped", .n = 2 },
	{ -EOPNOTSUPP, TREE, STARTED, take_snapshot, "children", .n = 2 },
};

TABLE_CASE(snapshot)

/* ---- close, close_deferred ---- */

/* The deferred close is only pending until interrupts are on again. */
static int close_again(struct attempt *a)
{
	struct completion *done = pmuk_ctx_completion(a->test);
	bool deferred = a->row->deferred;
	int first, again;

	kunit_remove_action(a->test, pmuk_ctx_put, a->ctx);
	scoped_guard(irqsave) {
		first = pmuk_close_deferred(a->ctx, done);
		again = deferred ? pmuk_close_deferred(a->ctx, NULL) : pmuk_close(a->ctx);
	}
	KUNIT_EXPECT_EQ(a->test, first, 0);
	wait_for_completion(done);
	a->ctx = NULL;
	return again;
}

static const struct row close_rows[] = {
	{ -EBUSY, ALL, NEW, close_again, "being closed, not loaded" },
	{ -EBUSY, ALL, STARTED, close_again, "being closed" },
};

TABLE_CASE(close)

static const struct row close_deferred_rows[] = {
	{ -EBUSY, ALL, NEW, close_again, "being closed, not loaded", .deferred = true },
	{ -EBUSY, ALL, STARTED, close_again, "being closed", .deferred = true },
};

TABLE_CASE(close_deferred)

/* ---- machines of two kinds of CPUs ---- */

/*
 * Each kind of CPU has a PMU of its own, as on big.LITTLE and hybrid machines: here, the first CPU
 * and the others.
 */
struct kinds {
	struct cpumask first, others;
	struct pmuk_sim *big, *little;
	int cpu;
};

static struct kinds *new_kinds(struct kunit *test)
{
	struct kinds *k = pmuk_test_zalloc(test, sizeof(*k));
	struct pmuk_sim_config config = { .name = "pmuk_big", .nr_counters = 2, .width = 32,
					  .cpus = &k->first };

	k->cpu = pmuk_test_pin_first(test);
	pmuk_test_other_cpu(test, k->cpu);
	cpumask_copy(&k->first, cpumask_of(k->cpu));
	cpumask_andnot(&k->others, cpu_possible_mask, &k->first);
	k->big = pmuk_test_sim_config(test, &config);
	config.name = "pmuk_little";
	config.cpus = &k->others;
	k->little = pmuk_test_sim_config(test, &config);
	return k;
}

/* No other kind of CPU has the event of one kind's PMU. The load names a CPU where it failed. */
static void load_on_two_kinds(struct kunit *test)
{
	struct kinds *k = new_kinds(test);
	struct pmuk_target machine = { .type = PMUK_TARGET_CPUS };
	struct pmuk_target kind = { .type = PMUK_TARGET_CPUS, .cpus = &k->first };
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);

	pmuk_ctx_add(test, ctx, k->big, 0, 1, 0, 0);
	KUNIT_EXPECT_EQ(test, pmuk_load_context(ctx, &machine), -ENOENT);
	KUNIT_EXPECT_TRUE(test, cpumask_test_cpu(machine.failed_cpu, &k->others));
	KUNIT_EXPECT_EQ(test, machine.failed_num, 1);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
	KUNIT_ASSERT_EQ(test, pmuk_load_context(ctx, &kind), 0);
	pmuk_ctx_start(test, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(k->big, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, ctx, 0, 1, -1), 5);
}

static struct pmuk_context *new_own(struct kunit *test, struct pmuk_sim *a, struct pmuk_sim *b)
{
	struct pmuk_target self = { .type = PMUK_TARGET_TASK, .task = current };
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);

	pmuk_ctx_add(test, ctx, a, 0, 0, 0, 0);
	if (b)
		pmuk_ctx_add(test, ctx, b, 0, 1, 0, 0);
	KUNIT_ASSERT_EQ(test, pmuk_load_context(ctx, &self), 0);
	pmuk_ctx_start(test, ctx);
	return ctx;
}

/* A task runs on one kind of CPU at a time. There the counters of the other kind cannot be read. */
static void read_local_on_two_kinds(struct kunit *test)
{
	struct kinds *k = new_kinds(test);
	struct pmuk_context *both = new_own(test, k->big, k->little);
	struct pmuk_context *big = new_own(test, k->big, NULL);
	struct pmuk_context *little = new_own(test, k->little, NULL);
	u64 counts[2];

	KUNIT_EXPECT_EQ(test, pmuk_read_local(both, counts, 2), -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_read_local(big, counts, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_read_local(little, counts, 1), -EBUSY);
	pmuk_test_pin(test, pmuk_test_other_cpu(test, k->cpu));
	KUNIT_EXPECT_EQ(test, pmuk_read_local(both, counts, 2), -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_read_local(big, counts, 1), -EBUSY);
	KUNIT_EXPECT_EQ(test, pmuk_read_local(little, counts, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(k->little, 0, 3), 2 * 3);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, both, 0, 1, -1), 3);
}

/* ---- rights ---- */

static int try_counter(const struct pmuk_attr *attr, int cpu, struct task_struct *task)
{
	struct pmuk_counter *c = pmuk_counter_create(attr, cpu, task);

	pmuk_counter_destroy(c);
	return PTR_ERR_OR_ZERO(c);
}

/*
 * perf core asks the thread that creates a counter of a CPU for a right. A counter of a task takes
 * none.
 */
static void counting_on_cpus_takes_a_right(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, COUNTERS, 32);
	const struct pmuk_attr attr = { .type = pmuk_sim_type(sim) };
	struct pmuk_context *ctx = pmuk_ctx_create(test, NULL);
	int cpu = pmuk_test_pin_first(test);
	int counter, context, own;
	const struct cred *old;

	pmuk_ctx_add(test, ctx, sim, 0, 0, 0, 0);
	old = override_creds(pmuk_test_no_rights(test, cpu));
	counter = try_counter(&attr, cpu, NULL);
	context = pmuk_ctx_try_load(ctx, cpu);
	own = try_counter(&attr, -1, current);
	revert_creds(old);

	KUNIT_EXPECT_EQ(test, counter, -EACCES);
	KUNIT_EXPECT_EQ(test, context, -EACCES);
	KUNIT_EXPECT_EQ(test, own, 0);
	pmuk_ctx_load(test, ctx, cpu);
}

/* pmuk tries a new event for a counter in error, and for one that joins a register that is off. */
static void enabling_takes_no_right(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim(test, COUNTERS, 32);
	struct pmuk_attr attr = { .type = pmuk_sim_type(sim), .flags = PMUK_PINNED | PMUK_PRIVATE };
	int cpu = pmuk_test_pin_first(test);
	struct pmuk_counter *lost = pmuk_test_enabled(test, &attr, cpu, NULL);
	int lost_is_enabled, second_is_enabled;
	struct pmuk_counter *second;
	const struct cred *old;

	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, COUNTERS), 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(lost), PMUK_COUNTER_ERROR);
	KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, cpu, 0), 0);
	attr.flags = PMUK_PINNED;
	pmuk_test_counter(test, &attr, cpu, NULL);
	second = pmuk_test_counter(test, &attr, cpu, NULL);
	old = override_creds(pmuk_test_no_rights(test, cpu));
	lost_is_enabled = pmuk_counter_enable(lost);
	second_is_enabled = pmuk_counter_enable(second);
	revert_creds(old);

	KUNIT_EXPECT_EQ(test, lost_is_enabled, 0);
	KUNIT_EXPECT_EQ(test, second_is_enabled, 0);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(lost), PMUK_COUNTER_ACTIVE);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(second), PMUK_COUNTER_ACTIVE);
}

/* The context reserves again at its stop. The load has taken the right for that. */
static void stopping_takes_no_right(struct kunit *test)
{
	const struct pmuk_context_attr attr = { .flags = PMUK_CTX_RESERVE };
	struct pmuk_sim *sim = pmuk_test_sim(test, COUNTERS, 32);
	struct pmuk_context *ctx = pmuk_ctx_create(test, &attr);
	int cpu = pmuk_test_pin_first(test);
	int reserved, stopped, counters;
	const struct cred *old;

	pmuk_ctx_add(test, ctx, sim, 0, 0, 0, PMUK_PINNED | PMUK_PRIVATE);
	pmuk_ctx_load(test, ctx, cpu);
	reserved = pmuk_nr_counters();
	pmuk_ctx_start(test, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), reserved - 1);
	old = override_creds(pmuk_test_no_rights(test, cpu));
	stopped = pmuk_stop(ctx);
	counters = pmuk_nr_counters();
	revert_creds(old);

	KUNIT_EXPECT_EQ(test, stopped, 0);
	KUNIT_EXPECT_EQ(test, counters, reserved);
}

KUNIT_ARRAY_PARAM_DESC(places, pmuk_place_kinds, name);

static struct kunit_case pmuk_context_errno_cases[] = {
	KUNIT_CASE_PARAM(load_context, places_gen_params),
	KUNIT_CASE_PARAM(load_context_offline, places_gen_params),
	KUNIT_CASE_PARAM(start, places_gen_params),
	KUNIT_CASE_PARAM(start_unplugged, places_gen_params),
	KUNIT_CASE_PARAM(restart_cpu, places_gen_params),
	KUNIT_CASE_PARAM(switch_evtset, places_gen_params),
	KUNIT_CASE_PARAM(getinfo_evtsets, places_gen_params),
	KUNIT_CASE_PARAM(write_pmds, places_gen_params),
	KUNIT_CASE_PARAM(read_pmds, places_gen_params),
	KUNIT_CASE_PARAM(read_pmds_unplugged, places_gen_params),
	KUNIT_CASE_PARAM(read, places_gen_params),
	KUNIT_CASE_PARAM(read_timeout, places_gen_params),
	KUNIT_CASE_PARAM(read_local, places_gen_params),
	KUNIT_CASE_PARAM(snapshot, places_gen_params),
	KUNIT_CASE_PARAM(close, places_gen_params),
	KUNIT_CASE_PARAM(close_deferred, places_gen_params),
	KUNIT_CASE(load_on_two_kinds),
	KUNIT_CASE(read_local_on_two_kinds),
	KUNIT_CASE(counting_on_cpus_takes_a_right),
	KUNIT_CASE(enabling_takes_no_right),
	KUNIT_CASE(stopping_takes_no_right),
	{}
};

PMUK_SUITE(pmuk_context_errno, pmuk_test_init,
	   "KUnit tests of pmuk's contexts: what each call returns when it fails");
