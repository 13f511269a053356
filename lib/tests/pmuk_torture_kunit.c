// SPDX-License-Identifier: GPL-2.0
/*
 * The test makes all calls, and all that can disturb them, happen at once. Threads make every call
 * on contexts at random, with valid and invalid arguments. Calls that are allowed anywhere are made
 * from softirq, hardirq and NMI, too. Meanwhile, counters overflow, CPUs and a format come and go,
 * and tasks fork and exit. In the end no object is left, and each record, each overflow with a
 * message, and each counted event is accounted for.
 *
 * The seed is printed; pmuk_torture_kunit.seed=N repeats a run. With .seconds=N the run is longer.
 * It ends when each call was made, and each event has happened, often enough.
 */
#include <linux/cpu.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/uuid.h>

#include "pmuk_hw.h"
#include "pmuk_place.h"
#include "pmuk_suite.h"

static unsigned int seconds = 2;
module_param(seconds, uint, 0644);
MODULE_PARM_DESC(seconds, "how long");

static ulong seed;
module_param(seed, ulong, 0644);
MODULE_PARM_DESC(seed, "of all that is random; 0: another one each time");

#define SLOTS		4	/* replaced again and again; one more slot is kept */
#define ACTORS		6
#define CALLS		3	/* least number of calls of each kind in each context */
#define EVENTS		2	/* 0 and 1 for all contexts, 2 for the kept one */
#define KEPT_EVENT	2
#define KEPT_LEAST	1000	/* events that the PMU has to count for the kept one */
#define HW_NUM		4	/* counts cycles if a PMU can, with a cookie ... */
#define HW_COOKIE	3
#define HW_SCALE	20000	/* ... and periods that leave time for others */
#define RECORD		1000	/* no type of perf's */
#define RECORD_SIZE	64
#define STARTED		BIT(6)	/* a new context is loaded and started at once, ... */
#define ALONE		BIT(12)	/* ... and its pinned counter takes a register of its own */

enum op {
	/* The following calls may sleep. */
	OP_REPLACE, OP_WRITE_PMCS, OP_WRITE_PMDS, OP_READ_PMDS, OP_LOAD, OP_UNLOAD, OP_START,
	OP_STOP, OP_RESTART, OP_CREATE_SETS, OP_DELETE_SETS, OP_GETINFO, OP_SWITCH, OP_WAIT,
	OP_CONSUME, OP_FORMAT,
	/* The following calls are allowed anywhere. */
	OP_ANYWHERE,
	OP_READ_LOCAL = OP_ANYWHERE, OP_SNAPSHOT, OP_OUTPUT, OP_COUNT, OP_PAUSE, OP_RESUME,
	OP_CLOSE_DEFERRED,
	OP_READ,	/* not allowed in NMI */
	OPS,
};

/* Events that have to happen, besides calls. */
enum event {
	EVENT_REPLACE, EVENT_OVERFLOW, EVENT_HARDWARE, EVENT_TOLD, EVENT_HOTPLUG, EVENT_EXIT,
	EVENT_FORK, EVENT_CREATE_OTHER, EVENT_KEEP_OTHER, EVENT_END_OTHER, EVENT_KEPT_READ,
	EVENT_GAVE_WAY,
	EVENT_LIMITED,
	EVENT_KINDS,
};

static const struct {
	const char *name;
	unsigned int least;
} events[] = {
	[EVENT_REPLACE]		= { "contexts", 10 },
	[EVENT_OVERFLOW]	= { "overflows", 100 },
	[EVENT_HARDWARE]	= { "overflows of the machine's PMU", 100 },
	[EVENT_TOLD]		= { "told", 100 },
	[EVENT_HOTPLUG]		= { "hotplugs", CALLS },
	[EVENT_EXIT]		= { "exits", CALLS },
	[EVENT_FORK]		= { "forks", CALLS },
	[EVENT_CREATE_OTHER]	= { "of the other format", CALLS },
	[EVENT_KEEP_OTHER]	= { "it was in use", 1 },
	[EVENT_END_OTHER]	= { "it went", CALLS },
	[EVENT_KEPT_READ]	= { "kept counts read", CALLS },
	[EVENT_GAVE_WAY]	= { "gave way", 1 },
	[EVENT_LIMITED]		= { "limited", 1 },
};

static_assert(ARRAY_SIZE(events) == EVENT_KINDS);

/*
 * Holds a context, and the test's account of it. Many users share the context, and one user
 * replaces it.
 */
struct slot {
	atomic_t users;			/* -1: is being replaced */
	struct pmuk_context *ctx;
	bool kept;			/* never replaced */
	bool counted;			/* the format counts attempts to write records */
	struct completion more, closed;
	struct mutex lock;		/* protects the kept context's count */
	u64 count;			/* ->lock: the latest count that was read */

	/* The following fields belong to the context, and are cleared with it. */
	atomic64_t told_overflows;	/* in messages */
	u64 seen[NR_CPUS];		/* records that were read, by CPU */
	u64 made[NR_CPUS];		/* records of the ring's own among these */
	u64 told[NR_CPUS];		/* losses that records have reported */
};

struct torture {
	struct kunit *test;
	struct pmuk_sim *sim;
	struct slot slots[SLOTS + 1];
	bool has_nmi;
	bool has_pmu;			/* the machine's own PMU counts cycles */
	bool late;			/* the time is up: actors prefer missing calls */
	atomic64_t done[OPS][PMUK_IRQ_LEVELS];
	atomic64_t events[EVENT_KINDS];
	atomic64_t bad;
	struct mutex other_lock;	/* registration of the other format */
	bool other_is_there;		/* written under ->other_lock: may be used */
	atomic_t other_areas;
};

static struct torture *torture;		/* the running instance */

struct actor {
	struct rnd_state rnd;
	struct pmuk_loop *loop;
	struct task_struct *victim;	/* latest task of a context */
	u32 n;				/* number of events it counts, roughly */
	struct completion done;		/* the victim is about to exit */
};

struct act {
	struct actor *actor;
	struct slot *slot;
	enum op op;
	u32 a, b;
};

static void happened(enum event event)
{
	atomic64_inc(&torture->events[event]);
}

static void bad(const char *what)
{
	if (atomic64_inc_return(&torture->bad) <= 10)
		kunit_err(torture->test, "%s", what);
}

/* ---- our formats ---- */

struct area {
	atomic64_t attempts;
	atomic64_t told;		/* overflows with a message */
};

/* Writes a record on the CPU of buffer and area. Preemption is off. */
static void output(struct pmuk_buffer *b, struct area *area)
{
	struct perf_event_header *rec;

	if (area)
		atomic64_inc(&area->attempts);
	rec = pmuk_output_begin(b, RECORD, RECORD_SIZE);
	if (!rec)
		return;
	memset64((u64 *)(rec + 1), (unsigned long)rec, RECORD_SIZE / 8 - 1);
	pmuk_output_end(b, rec);
}

static size_t format_size(const void *arg, size_t size)
{
	return sizeof(struct area);
}

/*
 * When perf core reschedules a CPU, masked counters count events that no context counts. So the
 * kept context, which is known by its cookie, is never masked: its count has to agree with the
 * PMU's.
 */
static u32 action_of(u64 n, u64 cookie)
{
	if (n % 509 == 0 && cookie != KEPT_EVENT)
		return PMUK_FORMAT_NOTIFY | PMUK_FORMAT_MASK;
	if (n % 127 == 0)
		return PMUK_FORMAT_NOTIFY;
	return PMUK_FORMAT_RESET | (n % 3 ? 0 : PMUK_FORMAT_NOTIFY);
}

static u32 format_handler(const struct pmuk_format_event *event)
{
	struct area *area = event->area;
	u32 action = action_of(atomic64_read(&area->attempts), event->cookie);

	happened(EVENT_OVERFLOW);
	if (event->cookie == HW_COOKIE)
		happened(EVENT_HARDWARE);
	if (event->buffer)
		output(event->buffer, area);
	if (action & PMUK_FORMAT_NOTIFY)
		atomic64_inc(&area->told);
	return action;
}

static struct pmuk_format torture_format = {
	.name		= "torture",
	.uuid		= UUID_INIT(0x1f8e5cd0, 0x8f0e, 0x4e0b, 0x9c, 0x4d, 0x10, 0x3b, 0x57, 0x22,
				    0x5e, 0x01),
	.owner		= THIS_MODULE,
	.getsize	= format_size,
	.handler	= format_handler,
};

/* No callback comes while the format is not registered. */
static void other_is_used(void)
{
	if (!READ_ONCE(torture->other_is_there))
		bad("a format is used that has gone");
}

static int other_init(void *area, int cpu, const void *arg, size_t size)
{
	other_is_used();
	atomic_inc(&torture->other_areas);
	return 0;
}

static u32 other_handler(const struct pmuk_format_event *event)
{
	other_is_used();
	return format_handler(event);
}

static void other_exit(void *area, int cpu)
{
	other_is_used();
	atomic_dec(&torture->other_areas);
}

static struct pmuk_format other_format = {
	.name		= "torture, too",
	.uuid		= UUID_INIT(0x1f8e5cd0, 0x8f0e, 0x4e0b, 0x9c, 0x4d, 0x10, 0x3b, 0x57, 0x22,
				    0x5e, 0x02),
	.owner		= THIS_MODULE,
	.getsize	= format_size,
	.init		= other_init,
	.handler	= other_handler,
	.exit		= other_exit,
};

static void register_other(void)
{
	bool was_there = torture->other_is_there;
	int ret;

	WRITE_ONCE(torture->other_is_there, true);
	ret = pmuk_register_format(&other_format);
	if (ret != (was_there ? -EEXIST : 0))
		bad("register_format");
}

static void unregister_other(void)
{
	int ret = pmuk_unregister_format(&other_format);

	if (ret == -EBUSY && torture->other_is_there) {
		happened(EVENT_KEEP_OTHER);
	} else if (ret != (torture->other_is_there ? 0 : -ENOENT)) {
		bad("unregister_format");
	} else if (!ret) {
		WRITE_ONCE(torture->other_is_there, false);
		if (atomic_read(&torture->other_areas))
			bad("areas of a format that has gone");
		happened(EVENT_END_OTHER);
	}
}

static void act_format(u32 a)
{
	guard(mutex)(&torture->other_lock);
	if (a & BIT(0))
		register_other();
	else
		unregister_other();
}

/* ---- reading ---- */

static bool is_whole(const struct perf_event_header *rec)
{
	const u64 *word = (const u64 *)(rec + 1);
	unsigned int i;

	if (rec->size < 16 || rec->size % 8)
		return false;
	for (i = 1; rec->type == RECORD && i < RECORD_SIZE / 8 - 1; i++) {
		if (word[i] != word[0])
			return false;
	}
	return true;
}

static void look_at(struct slot *slot, int cpu, const struct perf_event_header *rec)
{
	slot->seen[cpu]++;
	switch (rec->type) {
	case PERF_RECORD_LOST:
		slot->told[cpu] += ((const u64 *)(rec + 1))[1];
		slot->made[cpu]++;
		break;
	case PERF_RECORD_LOST_SAMPLES:
		slot->made[cpu]++;
		break;
	case RECORD:
	case PERF_RECORD_SAMPLE:
		break;
	default:
		bad("a record that nobody writes");
	}
	if (!is_whole(rec))
		bad("a record that is not whole");
}

static void consume(struct slot *slot, int cpu)
{
	struct pmuk_buffer *b = pmuk_context_buffer(slot->ctx, cpu);
	const struct perf_event_header *rec;
	struct pmuk_reader r;

	if (!b || pmuk_buffer_claim(b, &r))
		return;
	pmuk_for_each_record(rec, &r)
		look_at(slot, cpu, rec);
	pmuk_buffer_release(&r);
}

static void take(struct slot *slot, const struct pmuk_msg *msg)
{
	if (msg->kind == PMUK_MSG_OVERFLOW)
		atomic64_add(msg->count, &slot->told_overflows);
	if (msg->by)
		happened(EVENT_GAVE_WAY);
	if (msg->kind == PMUK_MSG_LIMIT)
		happened(EVENT_LIMITED);
}

/* ---- contexts come and go ---- */

static bool get(struct slot *slot)
{
	return atomic_inc_unless_negative(&slot->users);
}

static void put(struct slot *slot)
{
	atomic_dec(&slot->users);
}

/* Accounts for all records, when no other user has the context. */
static void account_records(struct slot *slot, int cpu)
{
	struct pmuk_buffer *b = pmuk_context_buffer(slot->ctx, cpu);
	struct area *area = pmuk_format_area(slot->ctx, cpu);
	struct pmuk_buffer_stat stat;
	u64 attempts;

	if (!b)
		return;
	pmuk_buffer_pause(b);
	consume(slot, cpu);
	pmuk_buffer_get_stat(b, &stat);
	if (stat.head != stat.tail || stat.consumed != slot->seen[cpu])
		bad("what is there is not what was consumed");
	if (slot->told[cpu] > stat.lost)
		bad("more losses told than there are");
	attempts = area ? atomic64_read(&area->attempts) : 0;
	if (!slot->counted || attempts + slot->made[cpu] ==
			      stat.consumed + stat.overwritten + stat.lost + stat.discarded)
		return;
	bad("attempts are not accounted for");
	kunit_err(torture->test, "CPU %d, slot %ld: attempts %llu and %llu; %llu %llu %llu %llu",
		  cpu, (long)(slot - torture->slots), attempts, slot->made[cpu],
		  stat.consumed, stat.overwritten, stat.lost, stat.discarded);
}

static void account_overflows(struct slot *slot)
{
	struct pmuk_msg msg;
	struct area *area;
	u64 sum = 0;
	int cpu;

	while (pmuk_read(slot->ctx, &msg, true) == 1)
		take(slot, &msg);
	for_each_possible_cpu(cpu) {
		area = pmuk_format_area(slot->ctx, cpu);
		sum += area ? atomic64_read(&area->told) : 0;
	}
	atomic64_add(sum, &torture->events[EVENT_TOLD]);
	if (slot->counted && atomic64_read(&slot->told_overflows) != sum)
		bad("overflows that were to be told are not those that were");
}

/*
 * No other context counts this event, so its count agrees with the PMU's, however often the context
 * was stopped or unloaded, and its CPUs went offline.
 */
static void account_count(struct slot *slot)
{
	struct pmuk_pmd_read read = { .cpu = -1 };
	u64 counted = pmuk_sim_counted(torture->sim, KEPT_EVENT);

	KUNIT_EXPECT_EQ(torture->test, pmuk_read_pmds(slot->ctx, &read, 1), 1);
	KUNIT_EXPECT_EQ(torture->test, read.count, counted);
	KUNIT_EXPECT_GE(torture->test, counted, KEPT_LEAST);
}

static void close_context(struct slot *slot, bool deferred)
{
	int cpu;

	if (!slot->ctx)
		return;
	pmuk_unload_context(slot->ctx);
	for_each_possible_cpu(cpu)
		account_records(slot, cpu);
	account_overflows(slot);
	if (slot->kept)
		account_count(slot);
	if (!deferred) {
		if (pmuk_close(slot->ctx))
			bad("close");
	} else if (pmuk_close_deferred(slot->ctx, &slot->closed)) {
		bad("close_deferred");
	} else {
		wait_for_completion(&slot->closed);
	}
	slot->ctx = NULL;
}

/* Gives a new context its first counters. */
static void set_up(struct pmuk_context *ctx, u32 a, u64 config)
{
	struct pmuk_pmc pmc[] = {
		{ .type = pmuk_sim_type(torture->sim), .config = config },
		{ .num = HW_NUM, .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES },
	};
	struct pmuk_pmd pmd[] = {
		{ .short_reset = 7, .long_reset = 20, .flags = PMUK_PMD_NOTIFY, .cookie = config },
		{ .num = HW_NUM, .short_reset = 10 * HW_SCALE, .long_reset = 50 * HW_SCALE,
		  .flags = PMUK_PMD_NOTIFY, .cookie = HW_COOKIE },
	};
	struct pmuk_target target = { .type = PMUK_TARGET_CPUS };
	/* The trial of a pinned counter discards counts, which the kept context must not. */
	bool pinned = config != KEPT_EVENT && (a & (ALONE | BIT(13)));
	unsigned int n = torture->has_pmu && config != KEPT_EVENT && (a & BIT(9)) ? 2 : 1;

	if (pinned)
		pmc[0].flags = PMUK_PINNED | (a & ALONE ? PMUK_PRIVATE : 0);
	pmuk_write_pmcs(ctx, pmc, n);
	pmuk_write_pmds(ctx, pmd, n);
	if ((a & STARTED) && !pmuk_load_context(ctx, &target))
		pmuk_start(ctx, NULL);
}

static void open_context(struct slot *slot, u32 a)
{
	static const struct pmuk_perf_format perf = {
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_READ,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID,
	};
	struct pmuk_context_attr attr = {
		.flags = (a & BIT(0) ? PMUK_CTX_MASK : 0) | (a & BIT(16) ? PMUK_CTX_RESERVE : 0),
		.rank = (int)((a >> 10) % 3) + PMUK_RANK_BACKGROUND,
		.limit_ns = (a >> 18) % 4 ? 0 : (a >> 14) % (20 * NSEC_PER_USEC),
		.completion = &slot->more,
		.buffer.nr_pages = 1 << (a >> 1) % 3,
	};
	bool other = !slot->kept && (a & BIT(7));
	struct pmuk_context *ctx;

	if (PMUK_SEES_WAITERS && attr.rank == PMUK_RANK_BACKGROUND && (a & BIT(17))) {
		attr.flags &= ~PMUK_CTX_RESERVE;	/* a context that yields reserves nothing */
		attr.flags |= PMUK_CTX_YIELD;
	}
	slot->counted = a & BIT(4);
	attr.buffer.mode = slot->counted && (a & BIT(5)) ? PMUK_BUFFER_STOP : PMUK_BUFFER_DROP;
	if (slot->counted) {
		attr.format = other ? &other_format.uuid : &torture_format.uuid;
	} else {
		attr.format_arg = &perf;
		attr.format_arg_size = sizeof(perf);
	}
	memset_startat(slot, 0, told_overflows);
	ctx = pmuk_create_context(&attr);
	slot->ctx = IS_ERR(ctx) ? NULL : ctx;
	if (!slot->ctx && !(slot->counted && other && PTR_ERR(ctx) == -ENOENT))
		bad("create_context");
	if (!slot->ctx)
		return;
	if (slot->counted && other)
		happened(EVENT_CREATE_OTHER);
	set_up(ctx, a, slot->kept ? KEPT_EVENT : 0);
}

static void replace(struct slot *slot, u32 a)
{
	if (slot->kept || atomic_cmpxchg(&slot->users, 0, -1))
		return;
	close_context(slot, a & BIT(8));
	open_context(slot, a);
	happened(EVENT_REPLACE);
	atomic64_inc(&torture->done[OP_REPLACE][PMUK_IRQ_TASK]);
	atomic_set(&slot->users, 0);
}

/* ---- the calls ---- */

static void count_some(u32 n)
{
	pmuk_sim_count(torture->sim, n % (EVENTS + 1), n % 300);
}

static int child(void *data)
{
	struct actor *actor = data;

	count_some(actor->n);
	usleep_range(100, 1000);
	count_some(actor->n / 3);
	happened(EVENT_FORK);
	pmuk_exit_child();
	return 0;
}

/* A context's task counts, forks a child that counts if it can, and exits. */
static int victim(void *data)
{
	struct actor *actor = data;

	count_some(actor->n);
	if (PMUK_CAN_FORK && !pmuk_reap(pmuk_fork(child, actor)))
		bad("a task has no child");
	usleep_range(500, 5000);
	happened(EVENT_EXIT);
	complete(&actor->done);
	return 0;
}

static void end_victim(struct actor *actor)
{
	if (!actor->victim)
		return;
	/* kthread_stop() would end the task's wait for its child, so wait for the task first. */
	wait_for_completion(&actor->done);
	kthread_stop(actor->victim);
	put_task_struct(actor->victim);
	actor->victim = NULL;
}

static struct task_struct *new_victim(struct actor *actor, u32 n)
{
	struct task_struct *task;

	end_victim(actor);
	actor->n = n;
	task = kthread_create(victim, actor, "pmuk_victim");
	if (IS_ERR(task))
		return NULL;
	actor->victim = get_task_struct(task);
	return task;
}

static void load(struct act *act)
{
	struct pmuk_context *ctx = act->slot->ctx;
	u32 a = act->a, b = act->b;
	struct pmuk_target target = {
		.type = a % (PMUK_TARGET_TREE + 2), .cpu = b % (nr_cpu_ids + 1), .task = current };
	struct task_struct *task = NULL;

	/* Children of a stopped tree count events that no context counts. */
	if (act->slot->kept)
		target.type = a % PMUK_TARGET_TREE;
	if (target.type > PMUK_TARGET_CPUS && (b & BIT(8)))
		task = new_victim(act->actor, a >> 4);
	if (task)
		target.task = task;
	pmuk_load_context(ctx, &target);
	pmuk_start(ctx, &target);
	if (task)
		wake_up_process(task);
}

/* The count of the kept context never goes back. */
static void read_kept(struct slot *slot)
{
	struct pmuk_pmd_read read = { .cpu = -1 };

	guard(mutex)(&slot->lock);
	if (pmuk_read_pmds(slot->ctx, &read, 1) != 1)
		return;
	if (read.count < slot->count)
		bad("a count went back");
	slot->count = read.count;
	happened(EVENT_KEPT_READ);
}

/* A quarter of the counters is for the machine's own PMU. */
static bool is_hardware(u32 b)
{
	return torture->has_pmu && !(b & (BIT(15) | BIT(16)));
}

static void write_pmcs(struct slot *slot, u32 a, u32 b)
{
	struct pmuk_pmc pmc[2] = {
		{ .set = a % 3, .num = b % 4, .type = pmuk_sim_type(torture->sim),
		  .config = a % EVENTS },
		{ .set = a % 3, .num = b % 33 == HW_NUM ? 0 : b % 33, .type = PERF_TYPE_SOFTWARE,
		  .config = PERF_COUNT_SW_CPU_CLOCK },
	};

	if (b & BIT(9))
		pmc[0].flags = PMUK_PINNED | (b & BIT(8) ? PMUK_PRIVATE : 0);
	if (is_hardware(b)) {
		pmc[0].num = HW_NUM;
		pmc[0].type = PERF_TYPE_HARDWARE;
		pmc[0].config = PERF_COUNT_HW_CPU_CYCLES;
	}
	pmuk_write_pmcs(slot->ctx, pmc, 1 + (b & BIT(10) ? 1 : 0));
}

static void write_pmds(struct slot *slot, u32 a, u32 b)
{
	struct pmuk_pmd pmd = {
		.set = a % 3, .num = b % 4, .flags = a >> 8 & PMUK_PMD_NOTIFY,
		.short_reset = b & BIT(11) ? 0 : 7 + a % 100, .long_reset = b & BIT(12) ? 1000 : 0,
		.random_mask = b & BIT(13) ? 15 : 0, .random_seed = a,
		.reset_peers = a >> 4 & 15, .sample_peers = a >> 8 & 15,
		.switch_overflows = b & BIT(14) ? 3 : 0,
	};

	if (is_hardware(b)) {
		pmd.num = HW_NUM;
		pmd.cookie = HW_COOKIE;
		pmd.short_reset *= HW_SCALE;
		pmd.long_reset *= HW_SCALE;
	}
	pmuk_write_pmds(slot->ctx, &pmd, 1);
}

static void read_pmds(struct slot *slot, u32 a, u32 b)
{
	struct pmuk_pmd_read read[2] = {
		{ .set = a % 3, .num = b % 4, .cpu = (int)(a % (nr_cpu_ids + 2)) - 1 },
		{ .set = b % 3, .num = a % 4, .cpu = -1 },
	};

	pmuk_read_pmds(slot->ctx, read, 2);
	if (slot->kept)
		read_kept(slot);
}

static void sets(struct slot *slot, enum op op, u32 a)
{
	struct pmuk_set_desc desc = {
		.id = a % 3, .timeout = a & BIT(9) ? PMUK_SET_TIMEOUT_MIN : 0 };
	struct pmuk_set_info info = { .id = a % 3, .cpu = (int)(a >> 8) % 4 - 1 };

	if (op == OP_CREATE_SETS)
		pmuk_create_evtsets(slot->ctx, &desc, 1);
	else if (op == OP_DELETE_SETS)
		pmuk_delete_evtsets(slot->ctx, &desc, 1);
	else
		pmuk_getinfo_evtsets(slot->ctx, &info, 1);
}

static void act_asleep(struct act *act)
{
	struct slot *slot = act->slot;
	u32 a = act->a, b = act->b;
	struct pmuk_msg msg;

	switch (act->op) {
	case OP_WRITE_PMCS:
		return write_pmcs(slot, a, b);
	case OP_WRITE_PMDS:
		return write_pmds(slot, a, b);
	case OP_READ_PMDS:
		return read_pmds(slot, a, b);
	case OP_LOAD:
		return load(act);
	case OP_UNLOAD:
		pmuk_unload_context(slot->ctx);
		break;
	case OP_START:
		pmuk_start(slot->ctx, NULL);
		break;
	case OP_STOP:
		pmuk_stop(slot->ctx);
		break;
	case OP_RESTART:
		pmuk_restart(slot->ctx);
		break;
	case OP_SWITCH:
		pmuk_switch_evtset(slot->ctx, a % 3);
		break;
	case OP_WAIT:
		if (pmuk_read_timeout(slot->ctx, &msg, 1) == 1)
			take(slot, &msg);
		break;
	case OP_CONSUME:
		return consume(slot, a % nr_cpu_ids);
	case OP_FORMAT:
		return act_format(a);
	default:
		return sets(slot, act->op, a);
	}
}

/*
 * Writes a record on this CPU, and counts the attempt. The buffer may exist before the area does.
 */
static void output_here(struct slot *slot)
{
	int cpu = smp_processor_id();
	struct pmuk_buffer *b = pmuk_context_buffer(slot->ctx, cpu);
	struct area *area = pmuk_format_area(slot->ctx, cpu);

	if (b && (area || !slot->counted))
		output(b, area);
}

/*
 * Makes the call in the given context of execution. With preemption off, this CPU's objects stay
 * valid.
 */
static void act_anywhere(void *data)
{
	struct act *act = data;
	struct pmuk_context *ctx = act->slot->ctx;
	struct pmuk_buffer *b = pmuk_context_buffer(ctx, act->a % nr_cpu_ids);
	struct pmuk_value values[4];
	struct pmuk_msg msg;
	u64 counts[4];

	guard(preempt)();
	switch (act->op) {
	case OP_READ_LOCAL:
		pmuk_read_local(ctx, counts, act->a % 5);
		break;
	case OP_SNAPSHOT:
		pmuk_snapshot(ctx, act->a % 4, values, act->b % 5);
		break;
	case OP_OUTPUT:
		output_here(act->slot);
		break;
	case OP_COUNT:
		pmuk_sim_count(torture->sim, act->a % (EVENTS + 1), act->b % 300);
		break;
	case OP_PAUSE:
		if (act->a % 8 == 0)
			pmuk_buffer_pause(b);
		break;
	case OP_RESUME:
		pmuk_buffer_resume(b);
		break;
	default:
		if (pmuk_read(ctx, &msg, true) == 1)
			take(act->slot, &msg);
	}
}

/* The last user of a context closes it from any context of execution. */
static void close_anywhere(void *data)
{
	struct act *act = data;
	struct slot *slot = act->slot;

	if (pmuk_close_deferred(slot->ctx, &slot->closed))
		bad("close_deferred");
}

static void act_close(struct act *act, enum pmuk_irq_level level)
{
	struct slot *slot = act->slot;

	if (slot->kept || act->a % 4 || atomic_cmpxchg(&slot->users, 0, -1))
		return;
	if (slot->ctx) {
		if (pmuk_irq_run(level, close_anywhere, act)) {
			level = PMUK_IRQ_TASK;
			close_anywhere(act);
		}
		wait_for_completion(&slot->closed);
		slot->ctx = NULL;
		atomic64_inc(&torture->done[OP_CLOSE_DEFERRED][level]);
	}
	open_context(slot, act->b);
	atomic_set(&slot->users, 0);
}

/*
 * The kept context counts its one event from the beginning to the end, so its events and sets stay.
 */
static bool is_spared(const struct act *act)
{
	return act->slot->kept && (act->op == OP_WRITE_PMCS || act->op == OP_WRITE_PMDS ||
				   act->op == OP_DELETE_SETS);
}

static void act_once(struct act *act, enum pmuk_irq_level level)
{
	int ret = 0;

	if (!act->slot->ctx || is_spared(act))
		return;
	if (act->op < OP_ANYWHERE)
		act_asleep(act);
	else
		ret = pmuk_irq_run(level, act_anywhere, act);
	if (!ret)
		atomic64_inc(&torture->done[act->op][level]);
}

/* Returns whether the call is allowed at @level. */
static bool is_allowed(enum op op, enum pmuk_irq_level level)
{
	if (op < OP_ANYWHERE)
		return level == PMUK_IRQ_TASK;
	return level < PMUK_IRQ_NMI || (op != OP_READ && torture->has_nmi);
}

static u64 calls(enum op op, enum pmuk_irq_level level)
{
	return atomic64_read(&torture->done[op][level]);
}

/* Returns true if a call was not made often enough, and which. */
static bool misses_call(enum op *op, enum pmuk_irq_level *level)
{
	for (*op = 0; *op < OPS; (*op)++) {
		for (*level = 0; *level < PMUK_IRQ_LEVELS; (*level)++) {
			if (is_allowed(*op, *level) && calls(*op, *level) < CALLS)
				return true;
		}
	}
	return false;
}

/*
 * Half of the calls of late actors are those that are still missing. When each call was made often
 * enough, but no context has given way, actors mostly wait for messages, so that the contexts that
 * they start now and then live for long enough to meet others.
 */
static void hurry(struct act *act, enum pmuk_irq_level *level)
{
	enum pmuk_irq_level rare_level;
	enum op rare;

	if (misses_call(&rare, &rare_level)) {
		if (act->a & BIT(21)) {
			act->op = rare;
			*level = rare_level;
		}
	} else if (!atomic64_read(&torture->events[EVENT_GAVE_WAY])) {
		act->op = (act->a >> 21) % 128 ? OP_WAIT : OP_REPLACE;
		act->a |= STARTED | ALONE;
	}
}

static void act_at_random(void *data)
{
	struct actor *actor = data;
	struct act act = {
		.actor = actor,
		.slot = &torture->slots[prandom_u32_state(&actor->rnd) % (SLOTS + 1)],
		.op = prandom_u32_state(&actor->rnd) % OPS,
		.a = prandom_u32_state(&actor->rnd), .b = prandom_u32_state(&actor->rnd),
	};
	enum pmuk_irq_level level = prandom_u32_state(&actor->rnd) % PMUK_IRQ_LEVELS;

	if (act.a & BIT(20))
		act.op = OP_COUNT;
	if (READ_ONCE(torture->late))
		hurry(&act, &level);
	if (!is_allowed(act.op, level))
		level = act.op < OP_ANYWHERE ? PMUK_IRQ_TASK : PMUK_IRQ_HARD;
	if (act.op == OP_REPLACE) {
		replace(act.slot, act.a);
	} else if (act.op == OP_CLOSE_DEFERRED) {
		act_close(&act, level);
	} else if (get(act.slot)) {
		act_once(&act, level);
		put(act.slot);
	}
}

/* ---- the machine ---- */

/* A CPU that comes back has no NMI if the NMI is the interrupt of its PMU. */
static bool can_plug(void)
{
	return IS_ENABLED(CONFIG_HOTPLUG_CPU) && num_possible_cpus() > 1 &&
	       (IS_ENABLED(CONFIG_X86) || !torture->has_nmi);
}

static void plug_once(struct rnd_state *rnd)
{
	int cpu = 1 + prandom_u32_state(rnd) % max(1U, num_possible_cpus() - 1);

	if (!cpu_possible(cpu) || remove_cpu(cpu))
		return;
	usleep_range(1000, 20000);
	if (add_cpu(cpu))
		bad("a CPU does not come back");
	happened(EVENT_HOTPLUG);
}

static void plug(void *rnd)
{
	if (can_plug())
		plug_once(rnd);
	usleep_range(20000, 100000);
}

static u64 least(enum event event)
{
	if ((event == EVENT_HOTPLUG && !can_plug()) ||
	    (event == EVENT_FORK && !PMUK_CAN_FORK) ||
	    (event == EVENT_HARDWARE && !torture->has_pmu))
		return 0;
	return events[event].least;
}

static u64 misses(u64 least, u64 there)
{
	return there < least ? least - there : 0;
}

/* Returns how many calls and events are still to come. */
static u64 all_misses(void)
{
	u64 sum = misses(KEPT_LEAST, pmuk_sim_counted(torture->sim, KEPT_EVENT));
	enum pmuk_irq_level level;
	enum event event;
	enum op op;

	for (op = 0; op < OPS; op++) {
		for (level = 0; level < PMUK_IRQ_LEVELS; level++)
			sum += is_allowed(op, level) ? misses(CALLS, calls(op, level)) : 0;
	}
	for (event = 0; event < EVENT_KINDS; event++)
		sum += misses(least(event), atomic64_read(&torture->events[event]));
	return sum;
}

/* A machine that is slow gets more time as long as something that is missing comes. */
static void torment(void)
{
	unsigned long end = jiffies + seconds * HZ;
	struct pmuk_test_progress progress = {};

	while (time_before(jiffies, end))
		msleep(50);
	WRITE_ONCE(torture->late, true);
	while (all_misses() && pmuk_test_goes_on(&progress, all_misses()))
		msleep(50);
}

static void expect_stress(struct kunit *test)
{
	enum pmuk_irq_level level;
	enum event event;
	enum op op;

	for (level = 0; level < PMUK_IRQ_LEVELS; level++) {
		u64 sum = 0;

		for (op = 0; op < OPS; op++) {
			sum += calls(op, level);
			if (is_allowed(op, level))
				KUNIT_EXPECT_GE_MSG(test, calls(op, level), CALLS,
						    "call %d at level %d", op, level);
		}
		kunit_info(test, "calls at level %d: %llu", level, sum);
		if (level < PMUK_IRQ_NMI || torture->has_nmi)
			KUNIT_EXPECT_GE(test, sum, 100);
	}
	for (event = 0; event < EVENT_KINDS; event++) {
		u64 n = atomic64_read(&torture->events[event]);

		kunit_info(test, "%s: %llu", events[event].name, n);
		KUNIT_EXPECT_GE_MSG(test, n, least(event), "%s", events[event].name);
	}
}

static void put_formats(void *data)
{
	struct kunit *test = data;

	KUNIT_EXPECT_EQ(test, pmuk_unregister_format(&torture_format), 0);
	KUNIT_EXPECT_EQ(test, pmuk_unregister_format(&other_format),
			torture->other_is_there ? 0 : -ENOENT);
	KUNIT_EXPECT_EQ(test, atomic_read(&torture->other_areas), 0);
}

static void set_up_slots(void)
{
	struct slot *slot;
	u32 a;

	for (slot = torture->slots; slot <= &torture->slots[SLOTS]; slot++) {
		a = (slot - torture->slots) * 0x11;
		init_completion(&slot->more);
		init_completion(&slot->closed);
		mutex_init(&slot->lock);
		slot->kept = slot == &torture->slots[SLOTS];
		open_context(slot, slot->kept ? BIT(4) | STARTED : a);
	}
}

static void set_up_torture(struct kunit *test, u64 start)
{
	torture = pmuk_test_zalloc(test, sizeof(*torture));
	torture->test = test;
	mutex_init(&torture->other_lock);
	torture->sim = pmuk_test_sim(test, 2, 20);
	KUNIT_ASSERT_EQ(test, pmuk_register_format(&torture_format), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_formats, test), 0);
	kunit_info(test, "seed %llu, %u seconds", start, seconds);
	torture->has_nmi = !pmuk_irq_get_nmi();
	torture->has_pmu = !pmuk_hw_try(cpumask_first(cpu_online_mask));
	set_up_slots();
	KUNIT_ASSERT_NOT_NULL(test, torture->slots[SLOTS].ctx);
}

static void all_at_once(struct kunit *test)
{
	static struct actor actors[ACTORS];
	static struct rnd_state rnd;
	u64 start = seed ?: get_random_u32();
	struct pmuk_loop *plugger;
	unsigned int i;

	set_up_torture(test, start);
	for (i = 0; i < ACTORS; i++) {
		prandom_seed_state(&actors[i].rnd, start + i);
		init_completion(&actors[i].done);
		actors[i].loop = pmuk_loop_start(test, -1, act_at_random, &actors[i]);
	}
	prandom_seed_state(&rnd, start);
	plugger = pmuk_loop_start(test, -1, plug, &rnd);

	torment();

	pmuk_loop_stop(test, plugger);
	for (i = 0; i < ACTORS; i++) {
		pmuk_loop_stop(test, actors[i].loop);
		end_victim(&actors[i]);
	}
	for (i = 0; i <= SLOTS; i++)
		close_context(&torture->slots[i], false);
	if (torture->has_nmi)
		pmuk_irq_put_nmi();
	expect_stress(test);
	KUNIT_EXPECT_EQ(test, atomic64_read(&torture->bad), 0);
	pmuk_ctx_expect_gone(test, torture->sim);
}

static struct kunit_case pmuk_torture_cases[] = {
	KUNIT_CASE_SLOW(all_at_once),
	{}
};

PMUK_SUITE(pmuk_torture, pmuk_test_init, "Torture of pmuk's contexts");
