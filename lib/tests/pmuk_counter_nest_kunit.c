// SPDX-License-Identifier: GPL-2.0
/*
 * Counters in every context, and in the middle of each other: an overflow, a
 * read, a pause between any two steps of what they interrupt. Each nesting
 * happens at least NESTINGS times, FEW_NESTINGS where nothing differs, or
 * DESTROYS where each takes a grace period.
 */
#include <linux/completion.h>
#include <linux/jiffies.h>

#include "pmuk_counters.h"
#include "pmuk_levels.h"
#include "pmuk_suite.h"

/* pmuk_share_nest_kunit.c includes this file for counters that share a register. */
#ifndef NEST_SHARED
#define NEST_SHARED	0
#endif
#define NEST_FLAGS	(PMUK_NO_THROTTLE | (NEST_SHARED ? PMUK_PINNED : 0))

#define NESTINGS	1000
#define FEW_NESTINGS	50	/* each in the same place, and the same */
#define DESTROYS	60
#define PERIOD		700

static void need_own_register(struct kunit *test)
{
	if (NEST_SHARED)
		kunit_skip(test, "a shared register is not loaded by this");
}

struct nest {
	struct pmuk_sim *sim;
	struct pmuk_attr attr;
	struct pmuk_counter *c;
	int cpu;
	struct pmuk_sim_hook hook;
	struct completion done;
	enum pmuk_irq_level level;	/* context that ->fn is injected in */
	enum pmuk_sim_point point;	/* point at which ->fn is injected */
	void (*called)(struct nest *nest);	/* the function that run_in() calls */
	void (*fn)(struct nest *nest);	/* the injected function */
	bool armed;			/* inject ->fn at the next ->point */
	unsigned int injected;
	unsigned int overflows;
	unsigned int misplaced;		/* overflows in another context than expected */
	unsigned int wrong;		/* number of wrong results */
	u64 least, count, hidden;
	u64 n;
	int ret;
};

static void note_overflow(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct nest *nest = data;

	nest->overflows++;
	nest->misplaced += !pmuk_irq_is(nest->level);
}

/* Its counter is still to be created. */
static struct nest *alloc_nest(struct kunit *test, enum pmuk_irq_level level,
			       struct pmuk_sim *sim)
{
	struct nest *nest = pmuk_test_zalloc(test, sizeof(*nest));

	pmuk_test_need_level(test, level);
	nest->cpu = pmuk_test_pin_first(test);
	nest->level = level;
	nest->sim = sim;
	nest->attr = (struct pmuk_attr){
		.type = pmuk_sim_type(sim), .period = PERIOD, .flags = NEST_FLAGS,
		.overflow = note_overflow, .data = nest,
	};
	return nest;
}

static struct nest *new_nest_on(struct kunit *test, enum pmuk_irq_level level,
				struct pmuk_sim *sim)
{
	struct nest *nest = alloc_nest(test, level, sim);

	nest->c = pmuk_test_enabled(test, &nest->attr, nest->cpu, NULL);
	return nest;
}

static struct nest *new_nest(struct kunit *test, enum pmuk_irq_level level)
{
	return new_nest_on(test, level, pmuk_test_sim(test, 1, NEST_SHARED ? 32 : 12));
}

static void set_hook(struct nest *nest,
		     void (*fn)(struct pmuk_sim *sim, enum pmuk_sim_point point, void *data))
{
	nest->hook.fn = fn;
	nest->hook.data = nest;
	pmuk_sim_set_hook(nest->sim, &nest->hook);
}

static void expect_exact(struct kunit *test, struct nest *nest)
{
	KUNIT_EXPECT_EQ(test, nest->wrong, 0);
	pmuk_test_expect_count(test, nest->c, pmuk_sim_counted(nest->sim, 0) - nest->hidden);
}

static void run_called(void *data)
{
	struct nest *nest = data;

	nest->called(nest);
}

/* Calls @fn in the context @level. */
static int run_in(struct nest *nest, enum pmuk_irq_level level, void (*fn)(struct nest *nest))
{
	nest->called = fn;
	return pmuk_irq_run(level, run_called, nest);
}

static void call_in(struct kunit *test, struct nest *nest, enum pmuk_irq_level level,
		    void (*fn)(struct nest *nest))
{
	KUNIT_ASSERT_EQ(test, run_in(nest, level, fn), 0);
	KUNIT_ASSERT_EQ(test, nest->ret, 0);
}

/* Defines a function that makes a call, and keeps its result for the test. */
#define NEST_CALL(name, call) \
	static void name(struct nest *nest) { nest->ret = call; }

static void count_and_read(struct nest *nest)
{
	pmuk_sim_count(nest->sim, 0, nest->n);
	nest->ret = pmuk_counter_read_local(nest->c, &nest->count);
	nest->wrong += nest->ret || nest->count != pmuk_sim_counted(nest->sim, 0);
	nest->wrong += pmuk_counter_state(nest->c) != PMUK_COUNTER_ACTIVE;
}

/* Overflows and reads of this context, and a look from the task at each. */
static void nest_counts(struct kunit *test)
{
	struct nest *nest = new_nest(test, pmuk_test_level(test));
	unsigned int i;

	for (i = 0; i < NESTINGS; i++) {
		nest->n = PERIOD + i;
		call_in(test, nest, nest->level, count_and_read);
		KUNIT_ASSERT_EQ(test, nest->count, pmuk_sim_counted(nest->sim, 0));
	}
	KUNIT_EXPECT_EQ(test, nest->overflows, div64_u64(nest->count, PERIOD));
	KUNIT_EXPECT_GE(test, nest->overflows, NESTINGS);
	KUNIT_EXPECT_EQ(test, nest->misplaced, 0);
	expect_exact(test, nest);
}

NEST_CALL(pause_here, pmuk_counter_pause(nest->c))
NEST_CALL(resume_here, pmuk_counter_resume(nest->c))

/* Paused here, there, resumed there, here: what comes between is not counted. */
static void nest_pauses(struct kunit *test)
{
	struct nest *nest = new_nest(test, pmuk_test_level(test));
	unsigned int i;
	u64 total = 0;

	for (i = 0; i < NESTINGS; i++) {
		total += pmuk_sim_count(nest->sim, 0, 333);
		call_in(test, nest, i & 1 ? nest->level : PMUK_IRQ_TASK, pause_here);
		nest->hidden += pmuk_sim_count(nest->sim, 0, 444);
		KUNIT_ASSERT_EQ(test, pmuk_test_local(test, nest->c), total);
		call_in(test, nest, i & 2 ? nest->level : PMUK_IRQ_TASK, resume_here);
		KUNIT_ASSERT_EQ(test, pmuk_test_local(test, nest->c), total);
	}
	KUNIT_EXPECT_EQ(test, total, NESTINGS * 333);
	/* The hardware stood still, at the latest when interrupts were on again, unless shared. */
	KUNIT_EXPECT_EQ(test, nest->hidden, NEST_SHARED ? NESTINGS * 444 : 0);
	expect_exact(test, nest);
}

NEST_CALL(set_period_here, pmuk_counter_set_period(nest->c, nest->n))

static void nest_sets_period(struct kunit *test)
{
	enum pmuk_irq_level level = pmuk_test_level(test);
	struct nest *nest = new_nest(test, level);
	unsigned int i, before;

	nest->level = PMUK_IRQ_TASK;
	for (i = 0; i < NESTINGS; i++) {
		nest->n = 10 + i * 7 % 5000;
		KUNIT_ASSERT_EQ(test, run_in(nest, level, set_period_here), 0);
		KUNIT_ASSERT_EQ(test, nest->ret, level == PMUK_IRQ_NMI ? -EBUSY : 0);
		if (nest->ret)
			continue;
		before = nest->overflows;
		pmuk_sim_count(nest->sim, 0, nest->n - 1);
		KUNIT_ASSERT_EQ(test, nest->overflows, before);
		pmuk_sim_count(nest->sim, 0, 1);
		KUNIT_ASSERT_EQ(test, nest->overflows, before + 1);
	}
	expect_exact(test, nest);
}

static void snapshot_here(struct nest *nest)
{
	struct pmuk_value value = { .count = U64_MAX };

	nest->ret = pmuk_counter_snapshot(nest->c, &value);
	nest->count = value.count;
}

static void nest_snapshots(struct kunit *test)
{
	enum pmuk_irq_level level = pmuk_test_level(test);
	struct nest *nest = new_nest(test, level);
	unsigned int i;

	nest->level = PMUK_IRQ_TASK;
	for (i = 1; i <= NESTINGS; i++) {
		/* Published by its overflow. */
		pmuk_sim_count(nest->sim, 0, PERIOD);
		call_in(test, nest, level, snapshot_here);
		KUNIT_ASSERT_EQ(test, nest->count, i * PERIOD);
	}
	KUNIT_EXPECT_EQ(test, nest->overflows, NESTINGS);
	expect_exact(test, nest);
}

NEST_CALL(destroy_here, pmuk_counter_destroy_deferred(nest->c, &nest->done))

static void nest_destroys(struct kunit *test)
{
	enum pmuk_irq_level level = pmuk_test_level(test);
	struct nest *nest = alloc_nest(test, level, pmuk_test_sim(test, 1, 16));
	unsigned int i, before;

	nest->level = PMUK_IRQ_TASK;
	nest->attr.period = 1;
	for (i = 0; i < DESTROYS; i++) {
		init_completion(&nest->done);
		nest->c = pmuk_counter_create(&nest->attr, nest->cpu, NULL);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, nest->c);
		KUNIT_ASSERT_EQ(test, pmuk_counter_enable(nest->c), 0);
		pmuk_sim_count(nest->sim, 0, 3);
		before = nest->overflows;
		call_in(test, nest, level, destroy_here);
		pmuk_sim_count(nest->sim, 0, 3);
		KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&nest->done, 10 * HZ), 0);
		KUNIT_ASSERT_EQ(test, pmuk_nr_counters(), 0);
		KUNIT_ASSERT_EQ(test, pmuk_sim_count(nest->sim, 0, 3), 0);
		KUNIT_ASSERT_EQ_MSG(test, nest->overflows, before, "called back when doomed");
	}
	KUNIT_EXPECT_EQ(test, nest->overflows, 3 * DESTROYS);
}

/* Runs what is injected, once for each time that the test has armed it. */
static void inject(struct pmuk_sim *sim, enum pmuk_sim_point point, void *data)
{
	struct nest *nest = data;

	if (!nest->armed || point != nest->point)
		return;
	nest->armed = false;
	if (run_in(nest, nest->level, nest->fn))
		nest->wrong++;
	else
		nest->injected++;
}

static void set_injection(struct nest *nest, void (*fn)(struct nest *nest))
{
	nest->fn = fn;
	set_hook(nest, inject);
}

static void count_one_overflow(struct nest *nest)
{
	pmuk_sim_count(nest->sim, 0, PERIOD + 1);
}

/*
 * An overflow, and a read of its own: exact, except where the interrupted read
 * has something in flight; that may be missing, but nothing that was read before.
 */
static void overflow_and_read(struct nest *nest)
{
	u64 count, total;

	count_one_overflow(nest);
	total = pmuk_sim_counted(nest->sim, 0);
	if (pmuk_counter_read_local(nest->c, &count) || count < nest->least || count > total)
		nest->wrong++;
	else if (nest->point != PMUK_SIM_MOVED_PREV && count != total)
		nest->wrong++;
	nest->least = count;
}

/* A read returns a count that was true at one time while the read was going on. */
static void read_in_steps(struct kunit *test, struct nest *nest, void (*fn)(struct nest *nest))
{
	u64 count, before, after;
	unsigned int i;

	set_injection(nest, fn);
	for (nest->point = 0; nest->point <= PMUK_SIM_DONE; nest->point++) {
		nest->injected = 0;
		nest->overflows = 0;
		for (i = 0; i < NESTINGS; i++) {
			pmuk_sim_count(nest->sim, 0, i % 13);
			before = pmuk_sim_counted(nest->sim, 0);
			nest->armed = true;
			KUNIT_ASSERT_EQ(test, pmuk_counter_read_local(nest->c, &count), 0);
			after = pmuk_sim_counted(nest->sim, 0);
			KUNIT_ASSERT_EQ(test, after, before + PERIOD + 1);
			KUNIT_ASSERT_GE(test, count, max(before, nest->least));
			KUNIT_ASSERT_LE(test, count, after);
			KUNIT_ASSERT_EQ(test, pmuk_test_local(test, nest->c), after);
			nest->least = count;
		}
		KUNIT_EXPECT_EQ(test, nest->injected, NESTINGS);
		KUNIT_EXPECT_GE(test, nest->overflows, NESTINGS);
	}
	pmuk_sim_set_hook(nest->sim, NULL);
	KUNIT_EXPECT_EQ(test, nest->point, PMUK_SIM_DONE + 1);
	expect_exact(test, nest);
}

static void read_with_overflow_inside(struct kunit *test)
{
	struct nest *nest = new_nest(test, PMUK_IRQ_TASK);

	read_in_steps(test, nest, count_one_overflow);
}

static void read_with_nmi_inside(struct kunit *test)
{
	struct nest *nest = new_nest(test, PMUK_IRQ_NMI);

	read_in_steps(test, nest, overflow_and_read);
}

/* As long as it is paused nothing counts, and nobody sees otherwise. */
static void pause_and_resume(struct nest *nest)
{
	u64 first, second, third;

	nest->wrong += !!pmuk_counter_read_local(nest->c, &first);
	nest->wrong += !!pmuk_counter_pause(nest->c);
	nest->hidden += pmuk_sim_count(nest->sim, 0, PERIOD + 1);
	nest->wrong += !!pmuk_counter_read_local(nest->c, &second);
	nest->wrong += !!pmuk_counter_resume(nest->c);
	nest->wrong += !!pmuk_counter_read_local(nest->c, &third);
	nest->wrong += first != second || second != third;
}

/*
 * If the register has the same value before an NMI and after it, drivers do not notice that it has
 * counted meanwhile. The period of a shared register goes on during the pause, so these counts must
 * not add up to whole periods.
 */
static void read_with_pause_inside(struct kunit *test)
{
	struct nest *nest = new_nest(test, PMUK_IRQ_NMI);
	unsigned int i, most = NEST_SHARED ? PERIOD - 10 : 1300;

	set_injection(nest, pause_and_resume);
	for (nest->point = 0; nest->point <= PMUK_SIM_DONE; nest->point++) {
		nest->injected = 0;
		for (i = 0; i < NESTINGS; i++) {
			pmuk_sim_count(nest->sim, 0, 1 + i % most);
			nest->armed = true;
			KUNIT_ASSERT_EQ(test, pmuk_test_local(test, nest->c),
					pmuk_sim_counted(nest->sim, 0) - nest->hidden);
		}
		KUNIT_EXPECT_EQ(test, nest->injected, NESTINGS);
	}
	pmuk_sim_set_hook(nest->sim, NULL);
	KUNIT_EXPECT_GE(test, nest->hidden, NESTINGS * PERIOD);
	expect_exact(test, nest);
}

/* An NMI calls @fn whenever the register is loaded. */
static struct nest *new_reload_nest(struct kunit *test, void (*fn)(struct nest *nest))
{
	struct nest *nest = new_nest(test, PMUK_IRQ_NMI);

	nest->point = PMUK_SIM_RELOADING;
	set_injection(nest, fn);
	return nest;
}

static void end_reload_nest(struct kunit *test, struct nest *nest)
{
	pmuk_sim_set_hook(nest->sim, NULL);
	KUNIT_EXPECT_EQ(test, nest->injected, NESTINGS);
	expect_exact(test, nest);
}

/* perf core or pmuk loads the register, so register and count do not belong together. */
static void expect_busy(struct nest *nest)
{
	u64 count = 4711;

	nest->wrong += pmuk_counter_read_local(nest->c, &count) != -EBUSY;
	nest->wrong += count != 4711;
	nest->wrong += pmuk_counter_pause(nest->c) != -EBUSY;
	nest->wrong += pmuk_counter_resume(nest->c) != -EBUSY;
	nest->wrong += pmuk_counter_set_period(nest->c, 1) != -EBUSY;
}

static void nmi_finds_perf_core_at_work(struct kunit *test)
{
	struct nest *nest = new_reload_nest(test, expect_busy);
	unsigned int i;

	for (i = 0; i < NESTINGS; i++) {
		pmuk_sim_count(nest->sim, 0, 333);
		nest->armed = true;
		KUNIT_ASSERT_EQ(test, pmuk_sim_steal(nest->sim, nest->cpu, 0), 0);
	}
	end_reload_nest(test, nest);
}

static void nmi_finds_resume_at_work(struct kunit *test)
{
	struct nest *nest = new_reload_nest(test, expect_busy);
	unsigned int i;

	need_own_register(test);
	for (i = 0; i < NESTINGS; i++) {
		pmuk_sim_count(nest->sim, 0, 333);
		KUNIT_ASSERT_EQ(test, pmuk_counter_pause(nest->c), 0);
		nest->armed = true;
		KUNIT_ASSERT_EQ(test, pmuk_counter_resume(nest->c), 0);
	}
	end_reload_nest(test, nest);
}

/*
 * perf core reschedules a paused counter, whose driver does not show that in hw.state. What the
 * register has counted since the pause is then not known in an NMI that resumes.
 */
static void nmi_believes_no_silent_driver(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim_config(test, &(struct pmuk_sim_config){
		.name = "pmuk_silent", .nr_counters = 1, .width = 32, .silent = true,
		.capabilities = PERF_PMU_CAP_NO_INTERRUPT });
	struct nest *nest = alloc_nest(test, PMUK_IRQ_NMI, sim);
	unsigned int i;

	nest->attr = (struct pmuk_attr){ .type = pmuk_sim_type(sim) };
	nest->c = pmuk_test_enabled(test, &nest->attr, nest->cpu, NULL);
	for (i = 0; i < FEW_NESTINGS; i++) {
		pmuk_sim_count(sim, 0, 10);
		call_in(test, nest, PMUK_IRQ_TASK, pause_here);
		nest->hidden += pmuk_sim_count(sim, 0, 7);
		KUNIT_ASSERT_EQ(test, pmuk_sim_steal(sim, nest->cpu, 0), 0);
		nest->hidden += pmuk_sim_count(sim, 0, 20);
		call_in(test, nest, PMUK_IRQ_NMI, resume_here);
		pmuk_sim_count(sim, 0, 5);
	}
	expect_exact(test, nest);
}

/* Reading, x86's PCI uncore PMUs take pci_config_lock, whose holder an NMI may have interrupted. */
static void note_read_in_nmi(struct pmuk_sim *sim, enum pmuk_sim_point point, void *data)
{
	struct nest *nest = data;

	nest->wrong += point == PMUK_SIM_ENTERED && in_nmi();
}

static void nmi_leaves_uncore_alone(struct kunit *test)
{
	struct pmuk_sim *sim = pmuk_test_sim_config(test, &(struct pmuk_sim_config){
		.name = "pmuk_uncore", .nr_counters = 1, .width = 32, .uncore = true });
	struct nest *nest = new_nest_on(test, PMUK_IRQ_NMI, sim);
	unsigned int i;

	set_hook(nest, note_read_in_nmi);
	for (i = 0; i < FEW_NESTINGS; i++) {
		pmuk_sim_count(nest->sim, 0, 3);
		call_in(test, nest, PMUK_IRQ_NMI, expect_busy);
		call_in(test, nest, PMUK_IRQ_HARD, pause_here);
		call_in(test, nest, PMUK_IRQ_HARD, resume_here);
	}
	pmuk_sim_set_hook(nest->sim, NULL);
	expect_exact(test, nest);
}

/* Paused by an NMI at @point of a read, and resumed after it. */
static void pause_inside(struct kunit *test, struct nest *nest, enum pmuk_sim_point point)
{
	struct pmuk_value value;

	nest->point = point;
	pmuk_sim_count(nest->sim, 0, 5);
	set_injection(nest, pause_here);
	nest->armed = true;
	KUNIT_ASSERT_EQ(test, pmuk_counter_read(nest->c, &value), 0);
	pmuk_sim_set_hook(nest->sim, NULL);
	KUNIT_ASSERT_EQ(test, nest->ret, 0);
	KUNIT_ASSERT_EQ(test, pmuk_counter_resume(nest->c), 0);
}

/* Paused, and resumed by an NMI at @point of a read; the hardware has counted on meanwhile. */
static void resume_inside(struct kunit *test, struct nest *nest, enum pmuk_sim_point point)
{
	unsigned long flags;

	nest->point = point;
	set_injection(nest, resume_here);
	local_irq_save(flags);
	run_in(nest, PMUK_IRQ_NMI, pause_here);
	nest->hidden += pmuk_sim_count(nest->sim, 0, 7);
	nest->armed = true;
	nest->c->event->pmu->read(nest->c->event);	/* as perf core's IPI */
	local_irq_restore(flags);
	pmuk_sim_set_hook(nest->sim, NULL);
	KUNIT_ASSERT_EQ(test, nest->ret, 0);
}

static void nmi_pauses_and_resumes_at(struct kunit *test, struct nest *nest,
				      enum pmuk_sim_point point)
{
	unsigned int i;

	nest->injected = 0;
	for (i = 0; i < FEW_NESTINGS; i++) {
		pause_inside(test, nest, point);
		resume_inside(test, nest, point);
	}
	KUNIT_EXPECT_EQ(test, nest->injected, 2 * FEW_NESTINGS);
}

/* Events before a pause are counted, and events during a pause are not. */
static void nmi_pauses_in_an_update(struct kunit *test)
{
	struct nest *nest = new_nest(test, PMUK_IRQ_NMI);
	enum pmuk_sim_point point;

	for (point = 0; point <= PMUK_SIM_DONE; point++) {
		if (point != PMUK_SIM_MOVED_PREV)
			nmi_pauses_and_resumes_at(test, nest, point);
	}
	expect_exact(test, nest);
}

/*
 * An NMI pauses when perf core has moved hw.prev_count and not yet added to the count. The events
 * in between came before the pause.
 */
static void nmi_pauses_what_is_in_flight(struct kunit *test)
{
	struct nest *nest = new_nest(test, PMUK_IRQ_NMI);

	nmi_pauses_and_resumes_at(test, nest, PMUK_SIM_MOVED_PREV);
	expect_exact(test, nest);
}

/* The PMU reports what happened in it, however deep. */
static void descend(struct nest *nest)
{
	nest->n = 1 + (nest->n * 31 + 7) % 1000;
	count_and_read(nest);
	if (nest->level == PMUK_IRQ_NMI)
		return;
	nest->level++;
	if (run_in(nest, nest->level, descend) == 0)
		nest->injected++;
	nest->level--;
	count_and_read(nest);
}

/* Task, in it softirq, in it hardirq, in it NMI. */
static void nest_all_levels(struct kunit *test)
{
	struct nest *nest = new_nest(test, PMUK_IRQ_NMI);
	unsigned int i;

	nest->level = PMUK_IRQ_TASK;
	for (i = 0; i < NESTINGS; i++)
		descend(nest);
	KUNIT_EXPECT_EQ(test, nest->injected, 3 * NESTINGS);
	KUNIT_EXPECT_GE(test, nest->overflows, NESTINGS);
	KUNIT_EXPECT_EQ(test, nest->misplaced, 0);
	expect_exact(test, nest);
}

static struct kunit_case pmuk_counter_nest_cases[] = {
	KUNIT_CASE_PARAM(nest_counts, levels_gen_params),
	PMUK_NMI_CASE(nest_counts),
	KUNIT_CASE_PARAM(nest_pauses, levels_gen_params),
	PMUK_NMI_CASE(nest_pauses),
	KUNIT_CASE_PARAM(nest_sets_period, levels_gen_params),
	PMUK_NMI_CASE(nest_sets_period),
	KUNIT_CASE_PARAM(nest_snapshots, levels_gen_params),
	PMUK_NMI_CASE(nest_snapshots),
	KUNIT_CASE_PARAM(nest_destroys, levels_gen_params),
	PMUK_NMI_CASE(nest_destroys),
	KUNIT_CASE(read_with_overflow_inside),
	KUNIT_CASE_SLOW(read_with_nmi_inside),
	KUNIT_CASE_SLOW(read_with_pause_inside),
	KUNIT_CASE_SLOW(nmi_finds_perf_core_at_work),
	KUNIT_CASE_SLOW(nmi_finds_resume_at_work),
	KUNIT_CASE_SLOW(nmi_believes_no_silent_driver),
	KUNIT_CASE_SLOW(nmi_leaves_uncore_alone),
	KUNIT_CASE_SLOW(nmi_pauses_in_an_update),
	KUNIT_CASE_SLOW(nmi_pauses_what_is_in_flight),
	KUNIT_CASE_SLOW(nest_all_levels),
	{}
};

#if !NEST_SHARED
PMUK_SUITE(pmuk_counter_nest, pmuk_test_init, "KUnit tests of pmuk's counters in every context");
#endif
