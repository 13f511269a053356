// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check formats: which of them registration refuses, when each callback is called and
 * with what, that each callback may fail, and that pmuk does what a handler returns. They also
 * check the histogram of samples/pmu_kapi.
 */
#include <linux/perf_local.h>
#include <linux/workqueue.h>

#include "../../kernel/pmu_kapi/context.h"
#include "pmuk_counters.h"
#include "pmuk_ctx.h"
#include "pmuk_levels.h"
#include "pmuk_suite.h"
#include "../../samples/pmu_kapi/histogram.h"

#define PERIOD	100
#define LONG	350
#define AREA	200			/* bytes of an area */
#define COOKIE	0xc00c1eULL

/*
 * The probe says what the test's format shall do, and records the calls that the format has had.
 * Only a single test uses the probe at a time.
 */
static struct probe {
	int validate_ret, init_ret;
	unsigned int init_fails_at;	/* number of the init() that fails; 0: none */
	size_t size;
	u32 action;
	enum pmuk_irq_level level;	/* context in which handlers must run, ... */
	bool any_level;			/* ... unless this is set */

	struct completion *let_exit;	/* exit() waits for this if not NULL */
	struct completion *let_validate;	/* validate() waits for this if not NULL */

	unsigned int validated, sized, inits, exits, restarts;
	cpumask_t inited, exited;
	atomic_t handled;
	unsigned int wrong;		/* number of failed checks */
	u64 period;			/* the handler sets this period, unless 0 */
	bool pauses;			/* the handler pauses its counter, with an overflow due */
	bool destroys;			/* the handler destroys its counter */
	int destroyed;
	struct pmuk_format_event event;	/* latest event */
	struct pmuk_sample sample;
	const void *arg;
} probe;

static int probe_validate(const void *arg, size_t size, const struct pmuk_context_attr *attr)
{
	probe.validated++;
	if (probe.let_validate)
		wait_for_completion(probe.let_validate);
	probe.arg = arg;
	probe.wrong += (size && size != sizeof(u64)) || !attr->format;
	return probe.validate_ret;
}

static size_t probe_getsize(const void *arg, size_t size)
{
	probe.sized++;
	probe.wrong += size && *(const u64 *)arg != COOKIE;
	return probe.size;
}

static int probe_init(void *area, int cpu, const void *arg, size_t size)
{
	probe.wrong += !!memchr_inv(area, 0, probe.size);
	probe.wrong += size && *(const u64 *)arg != COOKIE;
	if (++probe.inits == probe.init_fails_at)
		return probe.init_ret;
	probe.wrong += cpumask_test_and_set_cpu(cpu, &probe.inited);
	memset(area, cpu + 1, probe.size);
	return 0;
}

static void probe_exit(void *area, int cpu)
{
	if (probe.let_exit)
		wait_for_completion(probe.let_exit);
	probe.exits++;
	probe.wrong += !cpumask_test_cpu(cpu, &probe.inited);
	probe.wrong += cpumask_test_and_set_cpu(cpu, &probe.exited);
	probe.wrong += !!memchr_inv(area, cpu + 1, probe.size);
}

static void probe_restart(void *area, int cpu)
{
	probe.restarts++;
	probe.wrong += *(u8 *)area != (u8)(cpu + 1);
}

/* Some hardware counts on while the handler runs, here to the end of the next period and beyond. */
static void probe_pause(struct pmuk_counter *c)
{
	perf_local_set_left(c->event, -5);
	probe.wrong += pmuk_counter_pause(c) != 0;
}

static u32 probe_handler(const struct pmuk_format_event *event)
{
	atomic_inc(&probe.handled);
	probe.wrong += event->cpu != smp_processor_id();
	probe.wrong += cpumask_test_cpu(event->cpu, &probe.exited);
	probe.wrong += !event->area != !probe.size;
	probe.wrong += event->area && *(u8 *)event->area != (u8)(event->cpu + 1);
	probe.wrong += !probe.any_level && !pmuk_irq_is(probe.level);
	probe.event = *event;
	probe.sample = *event->sample;
	if (probe.period)
		probe.wrong += pmuk_counter_set_period(event->counter, probe.period) != 0;
	if (probe.pauses)
		probe_pause(event->counter);
	if (probe.destroys)
		probe.destroyed = pmuk_counter_destroy_deferred(event->counter, NULL);
	return probe.action;
}

static struct pmuk_format probe_format = {
	.name		= "probe",
	.uuid		= UUID_INIT(0x0ddba11, 0x1234, 0x5678, 1, 2, 3, 4, 5, 6, 7, 8),
	.owner		= THIS_MODULE,
	.validate	= probe_validate,
	.getsize	= probe_getsize,
	.init		= probe_init,
	.handler	= probe_handler,
	.restart	= probe_restart,
	.exit		= probe_exit,
};

static const struct pmuk_context_attr with_probe = { .format = &probe_format.uuid };

#define OTHER_UUID	UUID_INIT(0x0ddba11, 0x1234, 0x5678, 8, 7, 6, 5, 4, 3, 2, 1)

static const uuid_t other_uuid = OTHER_UUID;

/* Runs after the format is unregistered, and expects that no callback has failed a check. */
static void expect_nothing_wrong(void *data)
{
	struct kunit *test = data;

	KUNIT_EXPECT_EQ(test, probe.wrong, 0);
}

static int registry_init(struct kunit *test)
{
	pmuk_test_init(test);
	probe = (struct probe){ .size = AREA, .action = PMUK_FORMAT_RESET };
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, expect_nothing_wrong, test), 0);
	pmuk_ctx_format(test, &probe_format);
	pmuk_ctx_format(test, &pmuk_histogram_format);
	return 0;
}

/* Unregisters the format. pmuk_ctx_format() can register it again. */
static void put_probe(struct kunit *test)
{
	kunit_release_action(test, pmuk_ctx_put_format, &probe_format);
}

/*
 * Holds a context whose counter 3 overflows every PERIOD events 0, and LONG events after a restart.
 */
struct ctx {
	struct pmuk_sim *sim;
	struct pmuk_context *ctx;
	int cpu;
};

static struct ctx *alloc_ctx(struct kunit *test)
{
	struct ctx *c = pmuk_test_zalloc(test, sizeof(*c));

	c->cpu = pmuk_test_pin_first(test);
	c->sim = pmuk_test_sim(test, 2, 32);
	return c;
}

static void add_counters(struct kunit *test, struct ctx *c, const struct pmuk_context_attr *attr,
			 u32 flags)
{
	const struct pmuk_pmd pmd = { .num = 3, .short_reset = PERIOD, .long_reset = LONG,
				      .flags = flags, .cookie = COOKIE };

	c->ctx = pmuk_ctx_create(test, attr);
	pmuk_ctx_add_pmd(test, c->ctx, c->sim, 0, &pmd);
	pmuk_ctx_add(test, c->ctx, c->sim, 0, 4, 1, 0);
}

static void start_ctx(struct kunit *test, struct ctx *c, const struct pmuk_context_attr *attr,
		      u32 flags, int cpu)
{
	add_counters(test, c, attr, flags);
	pmuk_ctx_run(test, c->ctx, cpu);
}

static struct ctx *new_ctx(struct kunit *test)
{
	struct ctx *c = alloc_ctx(test);

	start_ctx(test, c, &with_probe, 0, c->cpu);
	return c;
}

/*
 * Returns a context whose handler returns @action. Writes @pmd, or adds a second set if it is NULL.
 */
static struct ctx *new_ctx_with(struct kunit *test, u32 action, const struct pmuk_pmd *pmd)
{
	struct ctx *c = alloc_ctx(test);

	probe.action = action;
	add_counters(test, c, &with_probe, 0);
	if (pmd)
		pmuk_ctx_write_pmd(test, c->ctx, pmd);
	else
		pmuk_ctx_add_set(test, c->ctx, 1, 0);
	pmuk_ctx_run(test, c->ctx, c->cpu);
	return c;
}

static void feed(struct ctx *c, u64 n)
{
	pmuk_ctx_feed(c->sim, c->cpu, 0, n);
}

static int handled(void)
{
	return atomic_read(&probe.handled);
}

/* Lets @n events happen, and expects that the handler was called @overflows times in all. */
static void expect_handled(struct kunit *test, struct ctx *c, u64 n, int overflows)
{
	feed(c, n);
	KUNIT_EXPECT_EQ_MSG(test, handled(), overflows, "after %llu events", n);
}

/* ---- the registry ---- */

static const struct bad_format {
	const char *what;
	struct pmuk_format format;
} bad_formats[] = {
	{ "no name", { .handler = probe_handler, .uuid = OTHER_UUID } },
	{ "an empty name", { .name = "", .handler = probe_handler, .uuid = OTHER_UUID } },
	{ "no handler", { .name = "x", .uuid = OTHER_UUID } },
	{ "no uuid", { .name = "x", .handler = probe_handler } },
	{ "init without exit", { .name = "x", .uuid = OTHER_UUID, .handler = probe_handler,
				 .init = probe_init } },
	{ "exit without init", { .name = "x", .uuid = OTHER_UUID, .handler = probe_handler,
				 .exit = probe_exit } },
	{ "a sample type", { .name = "x", .uuid = OTHER_UUID, .handler = probe_handler,
			     .sample_type = PERF_SAMPLE_STACK_USER } },
	{ "an unknown sample type", { .name = "x", .uuid = OTHER_UUID, .handler = probe_handler,
				      .sample_type = 1ULL << 63 } },
};

KUNIT_ARRAY_PARAM_DESC(bad_formats, bad_formats, what);

static void register_refuses_bad_formats(struct kunit *test)
{
	const struct bad_format *bad = test->param_value;
	struct pmuk_format f = bad->format;

	KUNIT_EXPECT_EQ(test, pmuk_register_format(&f), -EINVAL);
}

static void register_refuses_no_format(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, pmuk_register_format(NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_register_format(ERR_PTR(-ENOMEM)), -EINVAL);
}

static void names_and_uuids_are_unique(struct kunit *test)
{
	const struct pmuk_format taken[] = {
		{ .name = "perf", .uuid = other_uuid, .handler = probe_handler },
		{ .name = "histogram", .uuid = other_uuid, .handler = probe_handler },
		{ .name = "probe", .uuid = other_uuid, .handler = probe_handler },
		{ .name = "another", .uuid = probe_format.uuid, .handler = probe_handler },
		{ .name = "another", .uuid = pmuk_histogram_format.uuid, .handler = probe_handler },
	};
	struct pmuk_format f;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, pmuk_register_format(&probe_format), -EEXIST);
	for (i = 0; i < ARRAY_SIZE(taken); i++) {
		f = taken[i];
		KUNIT_EXPECT_EQ_MSG(test, pmuk_register_format(&f), -EEXIST, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, pmuk_unregister_format(&f), -ENOENT, "row %u", i);
	}
	f.uuid = other_uuid;
	KUNIT_EXPECT_EQ(test, pmuk_register_format(&f), 0);
	KUNIT_EXPECT_EQ(test, pmuk_unregister_format(&f), 0);
}

static void expect_no_probe(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, pmuk_unregister_format(&probe_format), -ENOENT);
	KUNIT_EXPECT_EQ(test, PTR_ERR(pmuk_create_context(&with_probe)), -ENOENT);
}

static void unregister_knows_who_is_there(struct kunit *test)
{
	struct pmuk_context *a, *b;

	KUNIT_EXPECT_EQ(test, pmuk_unregister_format(NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_unregister_format(ERR_PTR(-ENOMEM)), -EINVAL);
	put_probe(test);
	expect_no_probe(test);
	pmuk_ctx_format(test, &probe_format);
	a = pmuk_ctx_create(test, &with_probe);
	b = pmuk_ctx_create(test, &with_probe);
	KUNIT_EXPECT_EQ(test, pmuk_unregister_format(&probe_format), -EBUSY);
	kunit_release_action(test, pmuk_ctx_put, a);
	KUNIT_EXPECT_EQ(test, pmuk_unregister_format(&probe_format), -EBUSY);
	kunit_release_action(test, pmuk_ctx_put, b);
	KUNIT_EXPECT_EQ(test, pmuk_unregister_format(&probe_format), 0);
	expect_no_probe(test);
}

/*
 * Holds a completion that a callback of the format waits for, and a delayed work that completes it.
 */
struct gate {
	struct work_struct work;	/* creates a context and closes it */
	struct delayed_work later;
	struct completion open;
};

static void open_gate(struct work_struct *work)
{
	complete_all(&container_of(to_delayed_work(work), struct gate, later)->open);
}

static void create_and_close(struct work_struct *work)
{
	pmuk_close(pmuk_create_context(&with_probe));
}

static void put_gate(void *data)
{
	struct gate *g = data;

	complete_all(&g->open);
	flush_delayed_work(&g->later);
	flush_work(&g->work);
}

static struct gate *new_gate(struct kunit *test)
{
	struct gate *g = pmuk_test_zalloc(test, sizeof(*g));

	init_completion(&g->open);
	INIT_WORK(&g->work, create_and_close);
	INIT_DELAYED_WORK(&g->later, open_gate);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_gate, g), 0);
	return g;
}

/*
 * A format without an owner does not hold its module, which may be unloaded while contexts use the
 * format. The module can close these contexts from an interrupt, without a completion.
 * pmuk_unregister_format() then waits until they are closed.
 */
static void unregister_waits_for_who_closes(struct kunit *test)
{
	struct gate *g = new_gate(test);
	struct pmuk_context *ctx = pmuk_create_context(&with_probe);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ctx);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(ctx, -1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_unregister_format(&probe_format), -EBUSY);
	probe.let_exit = &g->open;
	KUNIT_EXPECT_EQ(test, pmuk_close_deferred(ctx, NULL), 0);
	schedule_delayed_work(&g->later, HZ / 20);
	KUNIT_EXPECT_EQ(test, pmuk_unregister_format(&probe_format), 0);
	KUNIT_EXPECT_EQ(test, probe.exits, probe.inits);
	expect_no_probe(test);
}

static void unregister_probe(void *ret)
{
	*(int *)ret = pmuk_unregister_format(&probe_format);
}

/*
 * A context that is being created uses its format. pmuk_unregister_format() returns -EBUSY, and
 * does not wait until that context is closed.
 */
static void unregister_meets_a_create(struct kunit *test)
{
	int *ret = pmuk_test_zalloc(test, sizeof(*ret));
	struct gate *g = new_gate(test);
	struct pmuk_job *job;

	probe.let_validate = &g->open;
	schedule_work(&g->work);
	KUNIT_ASSERT_TRUE(test, pmuk_ctx_comes(READ_ONCE(probe.validated)));
	job = pmuk_job_start(test, unregister_probe, ret);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(completion_done(&job->ended)));
	complete_all(&g->open);
	pmuk_job_end(test, job);
	KUNIT_EXPECT_EQ(test, *ret, -EBUSY);
	flush_work(&g->work);
	KUNIT_EXPECT_EQ(test, pmuk_unregister_format(&probe_format), 0);
}

static void users_hold_the_module(struct kunit *test)
{
#ifdef MODULE
	struct pmuk_context *ctx;
	int before;

	put_probe(test);
	before = module_refcount(THIS_MODULE);
	pmuk_ctx_format(test, &probe_format);
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), before);
	ctx = pmuk_ctx_create(test, &with_probe);
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), before + 1);
	kunit_release_action(test, pmuk_ctx_put, ctx);
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), before);
	probe.validate_ret = -EDOM;
	KUNIT_EXPECT_EQ(test, PTR_ERR(pmuk_create_context(&with_probe)), -EDOM);
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), before);
#else
	kunit_skip(test, "built in: there is no module to hold");
#endif
}

/* ---- each step may fail ---- */

static const u64 cookie = COOKIE;

static const struct pmuk_context_attr with_cookie = {
	.format = &probe_format.uuid, .format_arg = &cookie, .format_arg_size = sizeof(cookie),
};

static void validate_may_refuse(struct kunit *test)
{
	probe.validate_ret = -EDOM;
	KUNIT_EXPECT_EQ(test, PTR_ERR(pmuk_create_context(&with_cookie)), -EDOM);
	KUNIT_EXPECT_EQ(test, probe.validated, 1);
	KUNIT_EXPECT_PTR_EQ(test, probe.arg, (const void *)&cookie);
	KUNIT_EXPECT_EQ(test, pmuk_unregister_format(&probe_format), 0);
}

/* A format without validate() takes no argument. */
static void argument_needs_a_validate(struct kunit *test)
{
	struct pmuk_format f = { .name = "plain", .uuid = other_uuid, .handler = probe_handler };
	struct pmuk_context_attr attr = with_cookie;
	struct pmuk_context *ctx;

	attr.format = &other_uuid;
	KUNIT_ASSERT_EQ(test, pmuk_register_format(&f), 0);
	KUNIT_EXPECT_EQ(test, PTR_ERR(pmuk_create_context(&attr)), -EINVAL);
	attr.format_arg_size = 0;
	KUNIT_EXPECT_EQ(test, PTR_ERR(pmuk_create_context(&attr)), -EINVAL);
	attr.format_arg = NULL;
	ctx = pmuk_create_context(&attr);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(ctx), 0);
	pmuk_close(ctx);
	KUNIT_EXPECT_EQ(test, pmuk_unregister_format(&f), 0);
}

static void impossible_size_is_no_memory(struct kunit *test)
{
	struct pmuk_context *ctx = pmuk_ctx_create(test, &with_probe);

	probe.size = SIZE_MAX;
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(ctx, -1), -ENOMEM);
	KUNIT_EXPECT_NULL(test, pmuk_format_area(ctx, 0));
	probe.size = AREA;
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(ctx, -1), 0);
	kunit_release_action(test, pmuk_ctx_put, ctx);
	KUNIT_EXPECT_EQ(test, probe.inits, num_possible_cpus());
	KUNIT_EXPECT_EQ(test, probe.exits, num_possible_cpus());
}

/*
 * init() fails on each CPU in turn. CPUs that were done before stay initialised, and are not done
 * twice.
 */
static void init_may_fail(struct kunit *test)
{
	unsigned int n = num_possible_cpus(), i;
	struct pmuk_context *ctx;

	for (i = 1; i <= n; i++) {
		probe = (struct probe){ .size = AREA, .init_fails_at = i, .init_ret = -EDOM };
		ctx = pmuk_ctx_create(test, &with_cookie);
		KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(ctx, -1), -EDOM);
		KUNIT_EXPECT_EQ(test, probe.inits, i);
		KUNIT_EXPECT_EQ(test, probe.exits, 0);
		if (i & 1) {
			KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(ctx, -1), 0);
			KUNIT_EXPECT_EQ(test, probe.inits, n + 1);
		}
		kunit_release_action(test, pmuk_ctx_put, ctx);
		KUNIT_EXPECT_TRUE(test, cpumask_equal(&probe.inited, &probe.exited));
		KUNIT_EXPECT_EQ(test, cpumask_weight(&probe.exited), i & 1 ? n : i - 1);
		KUNIT_EXPECT_EQ(test, probe.wrong, 0);
		KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
	}
	KUNIT_EXPECT_EQ(test, pmuk_unregister_format(&probe_format), 0);
}

/* ---- areas ---- */

static void areas_are_of_their_cpus(struct kunit *test)
{
	struct ctx *c = new_ctx(test);
	int cpu;

	KUNIT_EXPECT_NOT_NULL(test, pmuk_format_area(c->ctx, c->cpu));
	KUNIT_EXPECT_EQ(test, probe.inits, 1);
	KUNIT_EXPECT_NULL(test, pmuk_format_area(c->ctx, -1));
	KUNIT_EXPECT_NULL(test, pmuk_format_area(c->ctx, nr_cpu_ids));
	KUNIT_EXPECT_NULL(test, pmuk_format_area(NULL, 0));
	KUNIT_EXPECT_NULL(test, pmuk_format_area(ERR_PTR(-ENOMEM), 0));
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(c->ctx), 0);
	KUNIT_EXPECT_EQ(test, probe.exits, 0);
	pmuk_ctx_run(test, c->ctx, -1);
	KUNIT_EXPECT_EQ(test, probe.inits, num_possible_cpus());
	for_each_online_cpu(cpu) {
		KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(c->sim, cpu, 0, PERIOD), PERIOD);
		KUNIT_EXPECT_PTR_EQ(test, probe.event.area, pmuk_format_area(c->ctx, cpu));
		KUNIT_EXPECT_EQ(test, probe.event.cpu, cpu);
		/* A CPU that is about to sleep runs an IPI's function without an interrupt. */
		probe.any_level = true;
	}
	kunit_release_action(test, pmuk_ctx_put, c->ctx);
	KUNIT_EXPECT_EQ(test, probe.exits, num_possible_cpus());
	KUNIT_EXPECT_EQ(test, handled(), num_online_cpus());
}

/*
 * Contexts are closed while their counters overflow. No handler gets an area after exit(), see
 * probe_handler().
 */
static void exit_comes_after_the_last_handler(struct kunit *test)
{
	struct ctx *c = alloc_ctx(test);
	int from, other = pmuk_test_other_cpu(test, c->cpu);
	struct pmuk_loop *storm = pmuk_loop_start(test, other, pmuk_test_storm, c->sim);
	unsigned int i;

	for (i = 1; i <= 8; i++) {
		from = handled();
		cpumask_clear(&probe.exited);
		cpumask_clear(&probe.inited);
		start_ctx(test, c, &with_probe, 0, other);
		KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(handled() - from > 20));
		kunit_release_action(test, pmuk_ctx_put, c->ctx);
		KUNIT_EXPECT_EQ(test, probe.exits, i);
	}
	pmuk_loop_stop(test, storm);
}

/* ---- the arguments of a handler ---- */

static void handler_is_told(struct kunit *test)
{
	const struct pmuk_context_attr attr = { .format = &probe_format.uuid,
		.flags = PMUK_CTX_MASK, .buffer = { .nr_pages = 1 } };
	struct ctx *c = alloc_ctx(test);

	start_ctx(test, c, &attr, PMUK_PMD_NOTIFY, c->cpu);
	expect_handled(test, c, PERIOD, 1);
	KUNIT_EXPECT_EQ(test, probe.event.set, 0);
	KUNIT_EXPECT_EQ(test, probe.event.num, 3);
	KUNIT_EXPECT_EQ(test, probe.event.cookie, COOKIE);
	KUNIT_EXPECT_TRUE(test, probe.event.notify);
	KUNIT_EXPECT_TRUE(test, probe.event.mask);
	KUNIT_EXPECT_PTR_EQ(test, probe.event.buffer, pmuk_context_buffer(c->ctx, c->cpu));
	KUNIT_EXPECT_EQ(test, probe.sample.valid & (PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD),
			PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD);
	KUNIT_EXPECT_EQ(test, probe.sample.period, PERIOD);
	KUNIT_EXPECT_NE(test, probe.sample.ip, 0);
}

/* The sample has the fields that the format's sample_type names. */
static void handler_is_told_what_it_wants(struct kunit *test)
{
	struct ctx *c = alloc_ctx(test);

	put_probe(test);
	probe_format.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_READ;
	pmuk_ctx_format(test, &probe_format);
	start_ctx(test, c, &with_probe, 0, c->cpu);
	feed(c, 3 * PERIOD);
	probe_format.sample_type = 0;
	KUNIT_EXPECT_EQ(test, handled(), 3);
	KUNIT_EXPECT_TRUE(test, probe.sample.valid & PERF_SAMPLE_TIME);
	KUNIT_EXPECT_TRUE(test, probe.sample.valid & PERF_SAMPLE_READ);
	KUNIT_EXPECT_EQ(test, probe.sample.value.count, 3 * PERIOD);
	KUNIT_EXPECT_NE(test, probe.sample.time, 0);
}

/* The context owns the counter. The handler cannot destroy it, and it counts on. */
static void handler_cannot_destroy(struct kunit *test)
{
	struct ctx *c = new_ctx(test);
	int nr = pmuk_nr_counters();

	probe.destroys = true;
	expect_handled(test, c, PERIOD, 1);
	probe.destroys = false;
	KUNIT_EXPECT_EQ(test, probe.destroyed, -EINVAL);
	/* A pointer that the handler has kept does not end the counter, either. */
	pmuk_counter_destroy(probe.event.counter);
	KUNIT_ASSERT_EQ(test, pmuk_nr_counters(), nr);
	expect_handled(test, c, PERIOD, 2);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, c->ctx, 0, 3, c->cpu), 2 * PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(c->ctx), 0);
}

static void overflow_here(void *data)
{
	struct ctx *c = data;

	pmuk_sim_count(c->sim, 0, PERIOD);
}

static void overflow_at(struct kunit *test, struct ctx *c, enum pmuk_irq_level level)
{
	unsigned int i;

	for (i = 0; i < 100; i++)
		KUNIT_ASSERT_EQ(test, pmuk_irq_run(level, overflow_here, c), 0);
}

/* The handler runs in the PMU's interrupt. */
static void handler_runs_in(struct kunit *test)
{
	enum pmuk_irq_level level = pmuk_test_level(test);
	struct ctx *c = new_ctx(test);

	probe.level = level;
	overflow_at(test, c, level);
	KUNIT_EXPECT_EQ(test, (u64)handled() * PERIOD,
			pmuk_ctx_count(test, c->ctx, 0, 3, -1));
	KUNIT_EXPECT_GE(test, handled(), 50);
}

/* ---- what it says ---- */

static void expect_messages(struct kunit *test, struct ctx *c, u64 n)
{
	struct pmuk_msg msg = {};

	KUNIT_EXPECT_EQ(test, pmuk_read(c->ctx, &msg, true), n ? 1 : -EAGAIN);
	KUNIT_EXPECT_EQ(test, msg.count, n);
}

/* With PMUK_FORMAT_RESET, each short period overflows, and all counters count. */
static void expect_reset(struct kunit *test, struct ctx *c)
{
	expect_handled(test, c, 5 * PERIOD + 10, 5);
	expect_messages(test, c, probe.action & PMUK_FORMAT_NOTIFY ? 5 : 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(c->sim, 1, 7), 7);
	/* No counter waits for this restart. */
	KUNIT_EXPECT_EQ(test, pmuk_restart(c->ctx), 0);
	KUNIT_EXPECT_EQ(test, probe.restarts, 1);
	expect_handled(test, c, PERIOD - 10, 6);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, c->ctx, 0, 3, -1), 6 * PERIOD);
}

/*
 * Expects the next overflow at the end of @period and not before. @overflows have come until now.
 */
static void expect_period(struct kunit *test, struct ctx *c, u64 period, int overflows)
{
	expect_handled(test, c, period - 1, overflows);
	expect_handled(test, c, 1, overflows + 1);
}

/* The first overflow after a restart comes after a long period, later ones after short periods. */
static void expect_long_period(struct kunit *test, struct ctx *c)
{
	KUNIT_EXPECT_EQ(test, pmuk_restart(c->ctx), 0);
	KUNIT_EXPECT_EQ(test, probe.restarts, 1);
	probe.action = PMUK_FORMAT_RESET;
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(c->sim, 1, 7), 7);
	expect_period(test, c, LONG, 1);
	expect_period(test, c, PERIOD, 2);
	expect_handled(test, c, PERIOD, 4);
}

/* Without PMUK_FORMAT_RESET, the counter counts on, and no overflow is handled until a restart. */
static void expect_silent(struct kunit *test, struct ctx *c)
{
	expect_handled(test, c, 20 * PERIOD + 10, 1);
	expect_messages(test, c, !!(probe.action & PMUK_FORMAT_NOTIFY));
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, c->ctx, 0, 3, -1), 20 * PERIOD + 10);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(c->sim, 1, 7), 7);
	expect_long_period(test, c);
}

/* With PMUK_FORMAT_MASK, nothing counts until a restart. */
static void expect_masked(struct kunit *test, struct ctx *c)
{
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(c->sim, 0, 3 * PERIOD), PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(c->sim, 0, PERIOD), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(c->sim, 1, 7), 0);
	KUNIT_EXPECT_EQ(test, handled(), 1);
	expect_messages(test, c, !!(probe.action & PMUK_FORMAT_NOTIFY));
	expect_long_period(test, c);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_count(test, c->ctx, 0, 3, -1), LONG + 3 * PERIOD);
}

static const struct pmuk_test_value decisions[] = {
	{ "nothing", 0 },
	{ "notify", PMUK_FORMAT_NOTIFY },
	{ "reset", PMUK_FORMAT_RESET },
	{ "reset, notify", PMUK_FORMAT_RESET | PMUK_FORMAT_NOTIFY },
	{ "mask", PMUK_FORMAT_MASK },
	{ "mask, notify", PMUK_FORMAT_MASK | PMUK_FORMAT_NOTIFY },
	{ "mask, reset", PMUK_FORMAT_MASK | PMUK_FORMAT_RESET },
	{ "all", PMUK_FORMAT_MASK | PMUK_FORMAT_RESET | PMUK_FORMAT_NOTIFY },
};

KUNIT_ARRAY_PARAM_DESC(decisions, decisions, name);

static void handler_decides(struct kunit *test)
{
	struct ctx *c = new_ctx(test);

	probe.action = pmuk_test_param(test);
	if (probe.action & PMUK_FORMAT_MASK)
		expect_masked(test, c);
	else if (probe.action & PMUK_FORMAT_RESET)
		expect_reset(test, c);
	else
		expect_silent(test, c);
}

/* A period that the handler sets stays, also at the end of a long period. */
static void handler_sets_the_period(struct kunit *test)
{
	struct ctx *c = new_ctx(test);

	probe.action = 0;
	feed(c, PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_restart(c->ctx), 0);
	probe.action = PMUK_FORMAT_RESET;
	probe.period = 2 * PERIOD;
	expect_period(test, c, LONG, 1);
	probe.period = 0;
	expect_period(test, c, 2 * PERIOD, 2);
	expect_period(test, c, 2 * PERIOD, 3);
}

/* A restart restarts the counters of all sets, not only those of the active set. */
static void restart_reaches_other_sets(struct kunit *test)
{
	struct ctx *c = new_ctx_with(test, 0, NULL);

	feed(c, PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(c->ctx, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_restart(c->ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(c->ctx, 0), 0);
	expect_period(test, c, LONG, 1);
}

/*
 * A counter with a freq goes on to overflow while it waits for a restart. These overflows are
 * dropped, also one that is pending when the turn of the counter's set ends. The next sample has
 * the period that follows the dropped overflow.
 */
static void waiting_counter_is_not_replayed(struct kunit *test)
{
	const struct pmuk_pmd adapts = { .num = 3, .short_reset = PERIOD, .freq = 100000 };
	struct ctx *c = alloc_ctx(test);

	add_counters(test, c, &with_probe, 0);
	pmuk_ctx_write_pmd(test, c->ctx, &adapts);
	pmuk_ctx_add_set(test, c->ctx, 1, 0);
	pmuk_ctx_run(test, c->ctx, c->cpu);
	probe.action = 0;
	expect_handled(test, c, PERIOD, 1);
	perf_local_set_next_period(probe.event.counter->event, 3 * PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_sim_advance(c->sim, 0, PERIOD + 5), PERIOD + 5);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(c->ctx, 1), 0);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(c->ctx, 0), 0);
	KUNIT_EXPECT_EQ(test, handled(), 1);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(c->ctx, 0, c->cpu).replayed, 0);
	KUNIT_EXPECT_EQ(test, pmuk_restart(c->ctx), 0);
	expect_period(test, c, 3 * PERIOD - 5, 1);
	KUNIT_EXPECT_EQ(test, probe.sample.period, 3 * PERIOD);
}

/* The handler pauses its counter when the next overflow is due. That overflow is not reported. */
static void paused_counter_is_not_replayed(struct kunit *test)
{
	struct ctx *c = new_ctx_with(test, PMUK_FORMAT_RESET, NULL);
	unsigned int i;

	probe.pauses = true;
	expect_handled(test, c, PERIOD, 1);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(c->ctx, 1), 0);
		KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(c->ctx, 0), 0);
	}
	KUNIT_EXPECT_EQ(test, pmuk_ctx_info(c->ctx, 0, c->cpu).replayed, 0);
	KUNIT_EXPECT_EQ(test, pmuk_restart(c->ctx), 0);
	expect_period(test, c, PERIOD - 5, 1);
}

/* After the pause, another counter masks. The mask does not report that overflow, either. */
static void mask_leaves_a_paused_counter_alone(struct kunit *test)
{
	const struct pmuk_pmd another = { .num = 4, .short_reset = PERIOD };
	struct ctx *c = new_ctx_with(test, PMUK_FORMAT_RESET, &another);

	probe.pauses = true;
	expect_handled(test, c, PERIOD, 1);
	probe.pauses = false;
	probe.action = PMUK_FORMAT_MASK;
	KUNIT_EXPECT_EQ(test, pmuk_ctx_feed(c->sim, c->cpu, 1, PERIOD), PERIOD);
	KUNIT_EXPECT_EQ(test, handled(), 2);
	KUNIT_EXPECT_EQ(test, probe.event.num, 4);
}

/*
 * A counter in its long period is masked by another counter. The next restart does not give it a
 * second long period.
 */
static void restart_of_another_keeps_the_long_period(struct kunit *test)
{
	const struct pmuk_pmd another = { .num = 4, .short_reset = PERIOD };
	struct ctx *c = new_ctx_with(test, PMUK_FORMAT_MASK, &another);

	feed(c, PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_restart(c->ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_feed(c->sim, c->cpu, 1, PERIOD), PERIOD);
	KUNIT_EXPECT_EQ(test, handled(), 2);
	KUNIT_EXPECT_EQ(test, pmuk_restart(c->ctx), 0);
	probe.action = PMUK_FORMAT_RESET;
	expect_period(test, c, LONG, 2);
	expect_period(test, c, PERIOD, 3);
}

/* Lets counter 4 overflow and mask, while the restart has stopped a counter of another PMU. */
static void mask_once(struct pmuk_sim *other, enum pmuk_sim_point point, void *data)
{
	struct ctx *c = data;

	if (probe.action == PMUK_FORMAT_MASK)
		return;
	probe.action = PMUK_FORMAT_MASK;
	pmuk_sim_count(c->sim, 1, PERIOD);
}

/*
 * An overflow masks in the middle of a restart. The restart undoes that mask, too, and no counter
 * counts while masked.
 */
static void restart_meets_an_overflow(struct kunit *test)
{
	const struct pmuk_sim_config config = {
		.name = "pmuk_sim_other", .nr_counters = 2, .width = 32 };
	const struct pmuk_pmd first = { .num = 0, .short_reset = PERIOD };
	const struct pmuk_pmd last = { .num = 4, .short_reset = PERIOD };
	struct pmuk_sim *other = pmuk_test_sim_config(test, &config);
	struct ctx *c = alloc_ctx(test);
	const struct pmuk_sim_hook hook = { .fn = mask_once, .data = c };

	add_counters(test, c, &with_probe, 0);
	pmuk_ctx_add_pmd(test, c->ctx, other, 0, &first);
	pmuk_ctx_write_pmd(test, c->ctx, &last);
	probe.action = 0;	/* counter 0 waits for a restart, and does not mask */
	pmuk_ctx_run(test, c->ctx, c->cpu);
	pmuk_ctx_feed(other, c->cpu, 0, PERIOD);
	KUNIT_EXPECT_EQ(test, handled(), 1);

	pmuk_sim_set_hook(other, &hook);
	KUNIT_EXPECT_EQ(test, pmuk_restart(c->ctx), 0);
	pmuk_sim_set_hook(other, NULL);
	KUNIT_EXPECT_EQ(test, handled(), 2);
	pmuk_ctx_feed(c->sim, c->cpu, 1, PERIOD);
	KUNIT_EXPECT_EQ(test, handled(), 3);
}

/*
 * An overflow that was pending between two turns is handled with the fields that are still known.
 */
static void replayed_overflow_has_no_place(struct kunit *test)
{
	struct ctx *c = new_ctx_with(test, PMUK_FORMAT_RESET, NULL);

	pmuk_sim_advance(c->sim, 0, PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(c->ctx, 1), 0);
	KUNIT_EXPECT_EQ(test, handled(), 0);
	probe.sample.valid = 1;
	KUNIT_EXPECT_EQ(test, pmuk_switch_evtset(c->ctx, 0), 0);
	KUNIT_EXPECT_EQ(test, handled(), 1);
	KUNIT_EXPECT_EQ(test, probe.sample.valid, PERF_SAMPLE_PERIOD);
	KUNIT_EXPECT_EQ(test, probe.sample.period, PERIOD);
	KUNIT_EXPECT_EQ(test, probe.sample.value.count, PERIOD);
	KUNIT_EXPECT_EQ(test, probe.event.num, 3);
}

/* ---- the histogram ---- */

static int try_histogram(const struct pmuk_histogram_arg *arg, size_t size, u32 nr_pages)
{
	const struct pmuk_context_attr attr = { .format = &pmuk_histogram_format.uuid,
		.format_arg = arg, .format_arg_size = size, .buffer.nr_pages = nr_pages };
	struct pmuk_context *ctx = pmuk_create_context(&attr);

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	pmuk_close(ctx);
	return 0;
}

static void histogram_checks_its_argument(struct kunit *test)
{
	static const struct {
		struct pmuk_histogram_arg arg;
		int ret;
	} tries[] = {
		{ { .base = 0, .size = 1 }, 0 },
		{ { .base = U64_MAX, .size = 1 }, 0 },
		{ { .base = 1, .size = U64_MAX, .shift = 63 }, 0 },
		{ { .base = 0, .size = 1 << 21 }, 0 },
		{ { .base = 0, .size = (1 << 21) + 1 }, -E2BIG },
		{ { .base = 0, .size = U64_MAX }, -E2BIG },
		{ { .base = 0, .size = 0 }, -EINVAL },
		{ { .base = 2, .size = U64_MAX, .shift = 63 }, -EINVAL },
		{ { .base = U64_MAX, .size = 2 }, -EINVAL },
		{ { .base = 0, .size = 1, .shift = 64 }, -EINVAL },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tries); i++)
		KUNIT_EXPECT_EQ_MSG(test, try_histogram(&tries[i].arg, sizeof(tries[i].arg), 0),
				    tries[i].ret, "try %u", i);
	KUNIT_EXPECT_EQ(test, try_histogram(&tries[0].arg, 1, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, try_histogram(NULL, 0, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, try_histogram(&tries[0].arg, sizeof(tries[0].arg), 1), -EINVAL);
}

static struct ctx *new_histogram(struct kunit *test, const struct pmuk_histogram_arg *arg,
				 int cpu)
{
	const struct pmuk_context_attr attr = { .format = &pmuk_histogram_format.uuid,
		.format_arg = arg, .format_arg_size = sizeof(*arg) };
	struct ctx *c = alloc_ctx(test);

	start_ctx(test, c, &attr, 0, cpu);
	return c;
}

static noinline void overflow_once(struct ctx *c)
{
	pmuk_sim_count(c->sim, 0, PERIOD);
}

/* Returns the instruction pointer of the simulated PMU's overflows. It is always the same. */
static u64 ip_of_overflow(struct kunit *test)
{
	struct ctx *c = new_ctx(test);

	overflow_once(c);
	KUNIT_ASSERT_EQ(test, handled(), 1);
	kunit_release_action(test, pmuk_ctx_put, c->ctx);
	kunit_release_action(test, pmuk_test_put_sim, c->sim);
	return probe.sample.ip;
}

static u64 sum_but(const struct pmuk_histogram *h, u64 but)
{
	u64 i, sum = 0;

	for (i = 0; i < h->nr; i++)
		sum += i == but ? 0 : atomic64_read(&h->counts[i]);
	return sum;
}

/*
 * Expects a histogram of @nr buckets, which counts all overflows in @bucket, or as out of range if
 * there is no such bucket.
 */
static void expect_bucket(struct kunit *test, const struct pmuk_histogram_arg *arg, u64 nr,
			  u64 bucket)
{
	struct ctx *c = new_histogram(test, arg, pmuk_test_pin_first(test));
	struct pmuk_histogram *h = pmuk_format_area(c->ctx, c->cpu);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, h);
	KUNIT_EXPECT_EQ(test, h->nr, nr);
	for (i = 0; i < 7; i++)
		overflow_once(c);
	KUNIT_EXPECT_EQ(test, sum_but(h, bucket), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&h->other), bucket < nr ? 0 : 7);
	if (bucket < nr)
		KUNIT_EXPECT_EQ(test, atomic64_read(&h->counts[bucket]), 7);
	kunit_release_action(test, pmuk_ctx_put, c->ctx);
	kunit_release_action(test, pmuk_test_put_sim, c->sim);
}

static void histogram_has_linear_buckets(struct kunit *test)
{
	u64 ip = ip_of_overflow(test);
	const struct {
		struct pmuk_histogram_arg arg;
		u64 nr, bucket;
	} each[] = {
		{ { ip, 1, 0 }, 1, 0 },
		{ { ip, 64, 4 }, 4, 0 },
		{ { ip - 15, 64, 4 }, 4, 0 },
		{ { ip - 16, 64, 4 }, 4, 1 },
		{ { ip - 63, 64, 4 }, 4, 3 },
		{ { ip - 64, 65, 4 }, 5, 4 },
		{ { ip - 64, 64, 4 }, 4, U64_MAX },
		{ { ip + 1, 64, 4 }, 4, U64_MAX },
		{ { 0, U64_MAX, 60 }, 16, ip >> 60 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(each); i++)
		expect_bucket(test, &each[i].arg, each[i].nr, each[i].bucket);
}

/* The histogram counts each overflow, from each context and on each CPU. */
static void histogram_is_exact_in(struct kunit *test)
{
	enum pmuk_irq_level level = pmuk_test_level(test);
	const struct pmuk_histogram_arg arg = { .base = 0, .size = U64_MAX, .shift = 60 };
	struct ctx *c = new_histogram(test, &arg, -1);
	struct pmuk_histogram *h;
	int cpu;

	for_each_online_cpu(cpu) {
		pmuk_test_pin(test, cpu);
		overflow_at(test, c, level);
		h = pmuk_format_area(c->ctx, cpu);
		KUNIT_ASSERT_NOT_NULL(test, h);
		KUNIT_EXPECT_EQ(test, sum_but(h, U64_MAX) * PERIOD,
				pmuk_ctx_count(test, c->ctx, 0, 3, cpu));
		KUNIT_EXPECT_EQ(test, atomic64_read(&h->other), 0);
		KUNIT_EXPECT_GE(test, sum_but(h, U64_MAX), 50);
	}
}

/*
 * The histogram makes a message if the counter has PMUK_PMD_NOTIFY, and then masks if the context
 * has PMUK_CTX_MASK.
 */
static void histogram_notifies_and_masks(struct kunit *test)
{
	const struct pmuk_histogram_arg arg = { .base = 0, .size = U64_MAX, .shift = 60 };
	const struct pmuk_context_attr attr = { .format = &pmuk_histogram_format.uuid,
		.format_arg = &arg, .format_arg_size = sizeof(arg), .flags = PMUK_CTX_MASK };
	struct ctx *c = alloc_ctx(test);

	start_ctx(test, c, &attr, PMUK_PMD_NOTIFY, c->cpu);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(c->sim, 0, 2 * PERIOD), PERIOD);
	expect_messages(test, c, 1);
	KUNIT_EXPECT_EQ(test, pmuk_restart(c->ctx), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(c->sim, 0, 2 * LONG), LONG);
	expect_messages(test, c, 1);
	KUNIT_EXPECT_EQ(test, sum_but(pmuk_format_area(c->ctx, c->cpu), U64_MAX), 2);
}

static struct kunit_case pmuk_registry_cases[] = {
	KUNIT_CASE(register_refuses_no_format),
	KUNIT_CASE_PARAM(register_refuses_bad_formats, bad_formats_gen_params),
	KUNIT_CASE(names_and_uuids_are_unique),
	KUNIT_CASE(unregister_knows_who_is_there),
	KUNIT_CASE(unregister_meets_a_create),
	KUNIT_CASE(unregister_waits_for_who_closes),
	KUNIT_CASE(users_hold_the_module),
	KUNIT_CASE(validate_may_refuse),
	KUNIT_CASE(argument_needs_a_validate),
	KUNIT_CASE(impossible_size_is_no_memory),
	KUNIT_CASE(init_may_fail),
	KUNIT_CASE(areas_are_of_their_cpus),
	KUNIT_CASE(exit_comes_after_the_last_handler),
	KUNIT_CASE(handler_is_told),
	KUNIT_CASE(handler_is_told_what_it_wants),
	KUNIT_CASE(handler_cannot_destroy),
	KUNIT_CASE_PARAM(handler_runs_in, levels_gen_params),
	PMUK_NMI_CASE(handler_runs_in),
	KUNIT_CASE_PARAM(handler_decides, decisions_gen_params),
	KUNIT_CASE(handler_sets_the_period),
	KUNIT_CASE(restart_reaches_other_sets),
	KUNIT_CASE(waiting_counter_is_not_replayed),
	KUNIT_CASE(paused_counter_is_not_replayed),
	KUNIT_CASE(mask_leaves_a_paused_counter_alone),
	KUNIT_CASE(restart_of_another_keeps_the_long_period),
	KUNIT_CASE(restart_meets_an_overflow),
	KUNIT_CASE(replayed_overflow_has_no_place),
	KUNIT_CASE(histogram_checks_its_argument),
	KUNIT_CASE(histogram_has_linear_buckets),
	KUNIT_CASE_PARAM(histogram_is_exact_in, levels_gen_params),
	PMUK_NMI_CASE(histogram_is_exact_in),
	KUNIT_CASE(histogram_notifies_and_masks),
	{}
};

PMUK_SUITE(pmuk_registry, registry_init, "KUnit tests of pmuk's formats");
