// SPDX-License-Identifier: GPL-2.0
/*
 * All interleavings of three calls that change one counter. A call runs instruction by instruction.
 * Before each instruction events happen, and an NMI makes a second call. A third call interrupts
 * the second one in the same way, or the first one after that. Then all calls are finished, and
 * the counter is checked.
 *
 * No event that a call has left to count is lost, none that it has left out is counted, no read
 * returns less than an earlier one, each call that returns 0 has its effect, and in the end the
 * hardware does what the counter's state says.
 */
#include <string.h>

#include "perf_core.h"
#include "../../../kernel/events/local.c"
#include "../../../kernel/pmu_kapi/hw.c"
#include "../../../kernel/pmu_kapi/local.c"
#include "../../../kernel/pmu_kapi/pause.c"
#include "../../../kernel/pmu_kapi/sample.c"
#include "interleave.h"

/* The counter has no fields in its samples. */
u64 pmuk_fields_fill(struct pmuk_sample *sample, struct perf_event *event, u64 wanted,
		     struct perf_sample_data *data, struct pt_regs *regs)
{
	return 0;
}

u64 pmuk_current_cgroup(void)
{
	return 0;
}

#define MASK		0xffffffffULL	/* the register has 32 bits */
#define PERIOD		1000
#define NEW_PERIOD	300
#define CALLS		3

enum op { NOTHING, READ, PAUSE, RESUME, PERIODS, SETTLE, UPDATE };

static const char *const op_names[] = {
	[READ] = "read", [PAUSE] = "pause", [RESUME] = "resume", [PERIODS] = "set_period",
	[SETTLE] = "settle", [UPDATE] = "perf core's update",
};

static const char *const level_names[] = {
	[TASK] = "task", [OWN_NMI] = "the PMU's NMI", [FOREIGN_NMI] = "another NMI",
};

/* A call, and its result. */
struct call {
	enum op op;
	enum level level;
	bool effective;		/* the call has left its claim, or found nothing to change */
	bool met;		/* while the call ran, the counter was in the state it asks for */
	bool done;
	int ret;
	u64 count;
};

struct cpu cpu;

/* The explorer saves and restores this state, and @cpu. */
static struct live {
	struct call calls[CALLS];
	u64 must;		/* events that a read must count */
	u64 may;		/* events that came while a call was changing the counter */
	u64 seen;		/* the most that a read has returned */
	bool counting;		/* as the latest effective call has left it */
	bool settling;		/* ->settle runs */
	bool settles;		/* ->settle has claimed the counter, but not to resume it */
	bool alone;		/* the driver runs, or a result is noted: no NMI comes */
	bool started;		/* the call that has the claim has started the hardware */
	u64 reported;		/* overflows */
	const char *wrong;
	struct pmuk_counter c;
} live;

/* The start of a scenario. */
struct scenario {
	const char *name;
	void (*arrange)(void);
	bool runs;		/* the hardware may run on though the counter is paused */
};

static const struct scenario *scenario;
static bool warns;	/* the driver of the tests that run now does, see struct cpu */

static void wrong(const char *what)
{
	if (!live.wrong)
		live.wrong = what;
}

/* ---- the PMU's driver. It runs in machines, as all that follows until step() ---- */

static void pmu_read(struct perf_event *event)
{
	s64 prev = local64_read(&event->hw.prev_count), raw;

	do {
		raw = READ_ONCE(cpu.reg);
	} while (!local64_try_cmpxchg(&event->hw.prev_count, &prev, raw));
	local64_add((raw - prev) & MASK, &event->count);
	local64_sub((raw - prev) & MASK, &event->hw.period_left);
}

static void pmu_reload(struct perf_event *event)
{
	struct hw_perf_event *hwc = &event->hw;
	s64 left = local64_read(&hwc->period_left);

	if (left <= 0)
		left = left <= -(s64)hwc->sample_period ? hwc->sample_period
							: left + hwc->sample_period;
	hwc->last_period = hwc->sample_period;
	local64_set(&hwc->period_left, left);
	local64_set(&hwc->prev_count, -left & MASK);
	WRITE_ONCE(cpu.reg, -left & MASK);
}

/*
 * An NMI that is not the PMU's own may have interrupted the driver, so code in the NMI must not
 * program the PMU, except in the handler of an overflow.
 */
static void check_access(void)
{
	if (cpu.level == FOREIGN_NMI && !perf_nmi_pmu)
		wrong("an NMI that is not the PMU's own has programmed the PMU");
}

static void pmu_start(struct perf_event *event, int flags)
{
	check_access();
	if (!(event->hw.state & PERF_HES_STOPPED))
		wrong("what runs was started");
	if ((flags & PERF_EF_RELOAD) && !(event->hw.state & PERF_HES_UPTODATE))
		wrong("the register was loaded before the count was up to date");
	if (flags & PERF_EF_RELOAD)
		pmu_reload(event);
	live.started = pmuk_state_is_claimed(live.c.state);
	WRITE_ONCE(event->hw.state, 0);
}

static void pmu_stop(struct perf_event *event, int flags)
{
	check_access();
	if (event->hw.state & PERF_HES_UPTODATE)
		wrong("a driver was asked twice to stop");
	WRITE_ONCE(event->hw.state, event->hw.state | PERF_HES_STOPPED);
	if (!(flags & PERF_EF_UPDATE) || event->hw.state & PERF_HES_UPTODATE)
		return;
	pmu_read(event);
	WRITE_ONCE(event->hw.state, event->hw.state | PERF_HES_UPTODATE);
}

static void pmu_enable(struct pmu *pmu)
{
	WRITE_ONCE(cpu.enabled, true);
}

static void pmu_disable(struct pmu *pmu)
{
	WRITE_ONCE(cpu.enabled, false);
}

static int pmu_check_period(struct perf_event *event, u64 period)
{
	return 0;
}

static struct pmu pmu = {
	.task_ctx_nr = perf_hw_context,
	.pmu_enable = pmu_enable, .pmu_disable = pmu_disable,
	.start = pmu_start, .stop = pmu_stop, .read = pmu_read,
	.check_period = pmu_check_period,
};

/* ---- calls ---- */

/* The explorer has no reader of published counts. */
bool pmuk_publish(struct pmuk_counter *c, const struct pmuk_value *value)
{
	return true;
}

int pmuk_counter_snapshot(struct pmuk_counter *c, struct pmuk_value *value)
{
	return 0;
}

static void read_counter(struct call *call)
{
	u64 seen = live.seen;

	call->ret = pmuk_counter_read_local(&live.c, &call->count);
	if (call->ret)
		return;
	if (call->count < seen)
		wrong("a count went back");
	if (call->count > live.must + live.may)
		wrong("a read returned events of a pause");
	if (call->count > live.seen)
		live.seen = call->count;
}

static void settle(void)
{
	cpu.queued = false;
	live.settling = true;
	pmuk_settle_irq_work(&live.c.settle);
	live.settling = false;
}

/* Interrupts are on again: what was queued runs at once. */
void irq_restore(unsigned long flags)
{
	cpu.masked = flags;
	while (cpu.queued && !cpu.masked && cpu.level == TASK) {
		cpu.masked = true;
		settle();
		cpu.masked = false;
	}
}

/* perf core's interrupt for a reader on another CPU */
static void update(void)
{
	unsigned long flags;

	local_irq_save(flags);
	cpu.event.tstamp++;
	pmu_read(&cpu.event);
	local_irq_restore(flags);
}

static u64 new_period(const struct call *call)
{
	return NEW_PERIOD + (call - live.calls);
}

static void make_call(struct call *call)
{
	switch (call->op) {
	case READ:
		read_counter(call);
		break;
	case PAUSE:
		call->ret = pmuk_counter_pause(&live.c);
		break;
	case RESUME:
		call->ret = pmuk_counter_resume(&live.c);
		break;
	case PERIODS:
		call->ret = pmuk_counter_set_period(&live.c, new_period(call));
		break;
	case UPDATE:
		update();
		break;
	default:
		settle();
	}
}

static bool wants_counting(const struct call *call)
{
	return call->op == RESUME;
}

/* Calls that run now, and pause or resume, may take effect while the counter is as they want it. */
static void note_counting(void)
{
	struct call *call;

	for (call = live.calls; call < live.calls + CALLS; call++)
		if (!call->done && (call->op == PAUSE || call->op == RESUME))
			call->met |= live.counting == wants_counting(call);
}

static void note_effect(struct call *call)
{
	call->effective = true;
	if (call->op == PAUSE)
		live.counting = false;
	if (call->op == RESUME)
		live.counting = true;
	note_counting();
}

/* After a resume in an NMI, ->settle may have to begin the counting. */
static bool is_paused(void)
{
	return pmuk_state_is_frozen(live.c.state) && live.c.state != PMUK_PAUSED_ENDING;
}

/* A call that has found nothing to change must have met the counter as the call wants it. */
static void note_end(struct call *call)
{
	if (call->ret || call->effective || (call->op != PAUSE && call->op != RESUME))
		return;
	if (is_paused() != wants_counting(call))
		note_effect(call);
	else if (!call->met)
		wrong("a call did nothing");
}

static void note_overflow(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	live.reported++;
}

static bool is_due(void)
{
	return !pmuk_state_is_frozen(live.c.state) || live.started;
}

/* Overflows of a counter that is not paused are reported, or wait for a context to handle them. */
static void report_overflow(void)
{
	struct perf_sample_data data = { .period = cpu.event.hw.last_period };
	u64 reported = live.reported;
	bool due = is_due();

	pmuk_overflow(&cpu.event, &data, NULL);
	if (live.reported == reported && due && is_due())
		wrong("an overflow was dropped");
}

/* The driver serves the counter's overflow, and perf core calls back. */
static void drive(void)
{
	if (cpu.warns && cpu.event.hw.state & PERF_HES_STOPPED)
		wrong("the driver found an overflow of what is stopped");
	live.alone = true;
	pmu_read(&cpu.event);
	pmu_reload(&cpu.event);
	live.alone = false;
	report_overflow();
}

/* Several counters have overflowed, and the handler of another one makes the call. */
static void serve_overflow(struct call *call)
{
	struct pmu *outer;

	cpu.enabled = false;
	if (!cpu.warns)
		drive();
	live.alone = false;
	outer = perf_local_serve(&cpu.event);
	make_call(call);
	perf_local_served(outer);
	if (cpu.warns)
		drive();
	cpu.enabled = !cpu.pmu_disabled;
}

static void run_call(void *arg)
{
	struct call *call = arg;
	enum level level = cpu.level;

	cpu.level = call->level;
	live.alone = true;
	if (call->level != TASK)
		cpu.irqs++;
	note_counting();
	live.alone = false;
	if (call->level == OWN_NMI)
		serve_overflow(call);
	else
		make_call(call);
	live.alone = true;
	note_end(call);
	call->done = true;
	live.alone = false;
	cpu.level = level;
	irq_restore(cpu.masked);
}

/* ---- events ---- */

static bool hardware_counts(void)
{
	return cpu.enabled && !(cpu.event.hw.state & PERF_HES_STOPPED);
}

/* Events that the hardware sees. In a claim they may count, or may not, unless it is settle's. */
static void happen(u64 events)
{
	unsigned long state = live.c.state;

	if (!hardware_counts())
		return;
	cpu.reg = (cpu.reg + events) & MASK;
	if (pmuk_state_is_claimed(state) && !live.settles)
		live.may += events;
	else if (!pmuk_state_is_frozen(state))
		live.must += events;
}

static u64 left(void)
{
	return -cpu.reg & MASK;
}

/* ---- looking at the counter ---- */

static void fail_with(const char *what)
{
	const struct call *a = &live.calls[0], *b = &live.calls[1], *c = &live.calls[2];

	FAIL("%s: %s %d, in it %s %s %d, in that %s %s %d: %s; state %lx, must %llu, may %llu",
	     scenario->name, op_names[a->op], a->ret, level_names[b->level],
	     b->op ? op_names[b->op] : "nothing", b->ret, level_names[c->level],
	     c->op ? op_names[c->op] : "nothing", c->ret, what, live.c.state, live.must, live.may);
}

static u64 look(void)
{
	struct call call = { .op = READ };

	read_counter(&call);
	if (call.ret)
		fail_with("the counter cannot be read");
	return call.count;
}

/* Events count from now on, or not. */
static void check_counting(void)
{
	u64 before = look();

	happen(5);
	if (look() != before + (live.counting ? 5 : 0))
		fail_with(live.counting ? "does not count" : "is not paused");
}

/* The period is that of a call that has succeeded, or as in the beginning if none has. */
static void check_period(void)
{
	u64 period = live.c.attr.period;
	bool changed = false, known = false;
	const struct call *call;

	for (call = live.calls; call < live.calls + CALLS; call++) {
		if (call->op != PERIODS || call->ret)
			continue;
		changed = true;
		known |= period == new_period(call);
	}
	if (changed ? !known : period != PERIOD)
		fail_with("the period is that of a call that was refused");
}

static void check_hardware(void)
{
	const struct hw_perf_event *hwc = &cpu.event.hw;

	if (cpu.pmu_disabled || !cpu.enabled)
		fail_with("the PMU stays disabled");
	if (hwc->interrupts == U64_MAX) {
		if (hardware_counts())
			fail_with("what perf core has throttled was started");
		return;
	}
	if (live.counting && !hardware_counts())
		fail_with("the hardware stands still");
	if (!live.counting && hardware_counts() && !scenario->runs)
		fail_with("the hardware runs on");
	/* If an overflow interrupts an update, the next period may end within a few events. */
	if (live.counting && left() > hwc->sample_period && live.calls[0].op != UPDATE)
		fail_with("the period has become longer");
	if (hwc->sample_period != live.c.attr.period)
		fail_with("the driver has another period");
}

/* perf core starts what it has throttled. */
static void tick(void)
{
	if (cpu.event.hw.interrupts != U64_MAX)
		return;
	cpu.event.hw.interrupts = 0;
	pmu_start(&cpu.event, 0);
}

/* After all have ended. */
static void check(void)
{
	u64 count;

	cpu.masked = true;
	irq_restore(false);
	if (live.wrong)
		fail_with(live.wrong);
	if (pmuk_state_is_claimed(live.c.state))
		fail_with("it stays claimed");
	if (pmuk_state_is_frozen(live.c.state) == live.counting)
		fail_with("a call was lost");
	check_hardware();
	check_period();
	tick();
	count = look();
	if (count < live.must || count > live.must + live.may)
		fail_with("events were lost, or made up");
	check_counting();
	if (!live.counting && pmuk_counter_resume(&live.c))
		fail_with("it cannot be resumed");
	live.counting = true;
	check_hardware();
	check_counting();
	explored++;
}

/* ---- where it starts from ---- */

static void begin_counting(void)
{
}

static void begin_fast(void)
{
	look();
}

static void begin_paused(void)
{
	pmuk_counter_pause(&live.c);
}

/* perf core has rescheduled the counter, which started it. */
static void begin_paused_running(void)
{
	pmuk_counter_pause(&live.c);
	cpu.event.tstamp++;
	pmu_start(&cpu.event, PERF_EF_RELOAD);
	happen(3);
}

/* An overflow in the pause was throttled, and the consumer wants no throttling. */
static void begin_paused_behind(void)
{
	begin_paused_running();
	pmu_stop(&cpu.event, 0);
}

static void from_nmi(int (*function)(struct pmuk_counter *c))
{
	cpu.masked = true;
	cpu.level = FOREIGN_NMI;
	function(&live.c);
	cpu.level = TASK;
}

/* Interrupts are still off, so ->settle has not run. */
static void begin_paused_by_nmi(void)
{
	from_nmi(pmuk_counter_pause);
	happen(3);
}

static void begin_resumed_by_nmi(void)
{
	pmuk_counter_pause(&live.c);
	from_nmi(pmuk_counter_resume);
}

/* perf core starts it again at its next tick. */
static void begin_throttled(void)
{
	cpu.event.hw.interrupts = U64_MAX;
	pmu_stop(&cpu.event, 0);
}

/* An overflow that perf core throttles calls back before the driver stops the counter. */
static void begin_throttled_paused(void)
{
	cpu.event.hw.interrupts = U64_MAX;
	pmuk_counter_pause(&live.c);
}

static const struct scenario scenarios[] = {
	{ "counting", begin_counting },
	{ "fast", begin_fast },
	{ "paused", begin_paused },
	{ "paused, rescheduled", begin_paused_running, true },
	{ "paused, behind the register", begin_paused_behind },
	{ "paused by NMI", begin_paused_by_nmi },
	{ "resumed by NMI", begin_resumed_by_nmi },
	{ "throttled", begin_throttled },
	{ "throttled, paused", begin_throttled_paused },
};

static void start(const struct scenario *s, enum op op)
{
	struct pmuk_counter *c = &live.c;

	scenario = s;
	memset(&live, 0, sizeof(live));
	memset(&cpu, 0, sizeof(cpu));
	cpu.enabled = true;
	cpu.tick = 100;
	cpu.event.pmu = &pmu;
	cpu.event.state = PERF_EVENT_STATE_ACTIVE;
	cpu.event.tstamp = 1;
	cpu.event.hw.sample_period = PERIOD;
	c->event = &cpu.event;
	c->hw_event = &cpu.event;
	c->last_group = &c->last;
	c->mask = MASK;
	c->marks = true;
	c->state = PMUK_COUNTING;
	c->published = 99;
	c->attr.period = PERIOD;
	c->attr.overflow = note_overflow;
	c->settle.func = pmuk_settle_irq_work;
	cpu.event.overflow_handler_context = c;
	cpu.warns = warns;
	pmu_reload(&cpu.event);
	happen(21);
	s->arrange();
	live.counting = !pmuk_state_is_frozen(c->state);
	live.calls[0].op = op;
}

/* ---- tests in one order only ---- */

#ifndef COUNTS_IRQS
/* An NMI that must not stop the counter notes an overflow whose interrupt is still to be served. */
static void test_pause_notes_an_overflow(void)
{
	unsigned int due;

	for (due = 0; due < 2; due++) {
		start(&scenarios[0], NOTHING);
		happen(left() - 1 + due);
		from_nmi(pmuk_counter_pause);
		if (pmuk_state_is_overdue(live.c.state) != due)
			fail_with("a pause takes an overflow for another one's");
	}
	explored++;
}

/*
 * An NMI pauses in the middle of an update, and another NMI resumes after that update. Nobody
 * counts these NMIs, as on most architectures.
 */
static void test_uncounted_nmis_are_told_apart(void)
{
	start(&scenarios[0], NOTHING);
	local64_set(&cpu.event.hw.prev_count, cpu.reg);
	from_nmi(pmuk_counter_pause);
	local64_add(21, &cpu.event.count);
	happen(3);
	from_nmi(pmuk_counter_resume);
	live.counting = true;
	check();
}
#endif

/* ---- exploring ---- */

/* Also sees whether that instruction has left the claim of the machine's call. */
bool step(struct machine *m)
{
	struct call *call = &live.calls[m == &inner];
	unsigned long was = live.c.state;
	bool claimed = pmuk_state_is_claimed(was), more = machine_step(m);
	bool settles = m == &outer && live.settling;

	if (!claimed && pmuk_state_is_claimed(live.c.state))
		live.settles = settles && was != PMUK_PAUSED_ENDING;
	if (!pmuk_state_is_claimed(live.c.state))
		live.started = false;
	if (claimed && !pmuk_state_is_claimed(live.c.state) && !settles)
		note_effect(call);
	return more;
}

static const enum op nmi_ops[] = { READ, PAUSE, RESUME, PERIODS };

/* The driver finds an overflow only where the hardware has counted up to it. */
static bool may_come(enum level level)
{
	if (live.alone)
		return false;
	if (level == FOREIGN_NMI)
		return true;
	if (!hardware_counts())
		return false;
	happen(left() + 2);
	live.alone = true;
	return true;
}

static void finish(void)
{
	machine_finish(&inner);
	happen(2);
	machine_finish(&outer);
	happen(2);
	check();
}

/* A third call, in one more NMI. */
static void nest_one(void *arg)
{
	struct call *call = &live.calls[2];

	*call = (struct call){ .op = *(const enum op *)arg, .level = FOREIGN_NMI };
	happen(1);
	run_call(call);
	happen(1);
	finish();
}

/*
 * Once a call in an NMI has set the period, pmuk cannot know any more that the driver has yet to
 * serve an overflow. So where that matters, no call comes beside set_period.
 */
static bool is_last(enum op op)
{
	return cpu.warns && op == PERIODS;
}

/*
 * An overflow interrupts an update, and another NMI interrupts the driver before pmuk_overflow():
 * if that NMI pauses, the load of the register hides what the update has in flight. So no call
 * comes there.
 */
static bool is_too_deep(void)
{
	return live.calls[0].op == UPDATE && cpu.level == OWN_NMI && !perf_nmi_pmu;
}

static bool may_nest(enum op op)
{
	return !live.alone && !is_too_deep() && !failed() && !is_last(op) &&
	       !is_last(live.calls[1].op);
}

static void nest(void *arg)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(nmi_ops); i++)
		if (may_nest(nmi_ops[i]))
			at_this_step(nest_one, (void *)&nmi_ops[i]);
}

static void nest_in_call(void *arg)
{
	live.calls[1] = *(const struct call *)arg;
	explore_calls(&inner, run_call, &live.calls[1], nest, NULL);
}

/* After the second call, which has changed the counter, the third one interrupts the first, too. */
static void follow_call(void *arg)
{
	inner.done = true;
	live.calls[1] = *(const struct call *)arg;
	happen(1);
	run_call(&live.calls[1]);
	happen(4);
	if (live.calls[1].op == READ || is_last(live.calls[1].op))
		finish();
	else
		at_each_step(&outer, nest, NULL);
}

static void interrupt(void *arg)
{
	const struct call *call = arg;

	if (!may_come(call->level))
		return;
	at_this_step(nest_in_call, arg);
	follow_call(arg);
}

static void explore(enum level level, enum op outer_op)
{
	struct call call = { .level = level };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(scenarios); i++) {
		for (j = 0; j < ARRAY_SIZE(nmi_ops) && !failed(); j++) {
			call.op = nmi_ops[j];
			start(&scenarios[i], outer_op);
			if (outer_op == SETTLE)
				cpu.masked = true;
			explore_calls(&outer, run_call, &live.calls[0], interrupt, &call);
		}
	}
}

/* The counter has overflowed, and its driver has yet to serve that, and warns if it is stopped. */
static void explore_unserved(enum op outer_op)
{
	warns = true;
	explore(OWN_NMI, outer_op);
	warns = false;
}

static void explore_nmi(enum op outer_op)
{
	explore(FOREIGN_NMI, outer_op);
}

static void explore_overflow(enum op outer_op)
{
	explore(OWN_NMI, outer_op);
}

#define TEST_OF(name, function, op) \
	static void test_##name(void) { function(op); }

TEST_OF(nmi_in_read, explore_nmi, READ)
TEST_OF(overflow_in_read, explore_overflow, READ)
TEST_OF(unserved_in_read, explore_unserved, READ)
#ifndef COUNTS_IRQS
TEST_OF(nmi_in_pause, explore_nmi, PAUSE)
TEST_OF(nmi_in_resume, explore_nmi, RESUME)
TEST_OF(nmi_in_set_period, explore_nmi, PERIODS)
TEST_OF(nmi_in_settle, explore_nmi, SETTLE)
TEST_OF(nmi_in_update, explore_nmi, UPDATE)
TEST_OF(overflow_in_update, explore_overflow, UPDATE)
TEST_OF(overflow_in_pause, explore_overflow, PAUSE)
TEST_OF(overflow_in_resume, explore_overflow, RESUME)
TEST_OF(overflow_in_set_period, explore_overflow, PERIODS)
TEST_OF(overflow_in_settle, explore_overflow, SETTLE)
TEST_OF(unserved_in_pause, explore_unserved, PAUSE)
TEST_OF(unserved_in_resume, explore_unserved, RESUME)
TEST_OF(unserved_in_set_period, explore_unserved, PERIODS)
TEST_OF(unserved_in_settle, explore_unserved, SETTLE)
#endif

static const struct test tests[] = {
	TEST(nmi_in_read), TEST(overflow_in_read), TEST(unserved_in_read),
#ifndef COUNTS_IRQS	/* only reads use the number of interrupts */
	TEST(nmi_in_pause), TEST(nmi_in_resume), TEST(nmi_in_set_period),
	TEST(nmi_in_settle), TEST(overflow_in_pause),
	TEST(overflow_in_resume), TEST(overflow_in_set_period), TEST(overflow_in_settle),
	TEST(unserved_in_pause), TEST(unserved_in_resume),
	TEST(unserved_in_set_period), TEST(unserved_in_settle),
	TEST(nmi_in_update), TEST(overflow_in_update),
	TEST(pause_notes_an_overflow), TEST(uncounted_nmis_are_told_apart),
#endif
};

int main(int argc, char **argv)
{
	keep_memory(&live, sizeof(live));
	keep_memory(&cpu, sizeof(cpu));
	keep_memory(&perf_irq_pmu, sizeof(perf_irq_pmu));
	keep_memory(&perf_nmi_pmu, sizeof(perf_nmi_pmu));
	return run_explorer(tests, ARRAY_SIZE(tests), argc, argv);
}
