// SPDX-License-Identifier: GPL-2.0
/*
 * The tests know the counts of all tasks in /proc/pmuk_sched. On the simulated PMU, each event
 * happens in a task that has requested it. So all counts must be exact, no matter which CPUs and
 * counters come and go.
 */
#include "sched_fixture.h"

/* ---- tasks ---- */

TEST_F(sched, counts_are_exact)
{
	struct worker w;
	int i;

	ASSERT_TRUE(worker_start(&w));
	for (i = 1; i <= 20; i++) {
		ASSERT_EQ(worker_add(&w, 1000, 3000), 0);
		ASSERT_TRUE(task_totals(w.pid, &self->t));
		expect_counts(_metadata, &self->t, 1000 * i, 3000 * i);
	}
	EXPECT_EQ(self->t.valid, 1);
	expect_task(_metadata, getpid(), 0, 0);
	EXPECT_TRUE(worker_end(&w));
	EXPECT_TRUE(comes(exited_has(20000, 60000)));
	EXPECT_FALSE(task_totals(w.pid, &self->t));
}

/* The counts of a running task are current, too. Readers need not wait for a switch. */
TEST_F(sched, running_task_is_up_to_date)
{
	int i;

	for (i = 1; i <= 20; i++) {
		ASSERT_EQ(pace_add(7, 11), 0);
		expect_task(_metadata, getpid(), 7 * i, 11 * i);
	}
}

#define ROUNDS	500

/* Two players take turns. A player adds events, and passes the turn to the other. */
struct player {
	int from, to;		/* pipes */
	uint64_t cycles, insns;
	bool looks;		/* reads a file in the same slice */
};

static int play(uint64_t arg)
{
	const struct player *p = (const void *)arg;
	char c;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		if (read(p->from, &c, 1) != 1 || pace_add(p->cycles, p->insns))
			return 1;
		if (p->looks && i % 8 == 0)
			free(slurp(SCHED "cpus"));
		if (write(p->to, &c, 1) != 1)
			return 1;
	}
	return 0;
}

/* A game has two players on one CPU, who pass the turn over pipes. */
struct game {
	int ab[2], ba[2];
	struct player players[2];
	struct worker w[2];
};

/* Returns at the end of the game. The players still exist then. */
static bool game_play(struct game *g, bool looks)
{
	int i;

	if (pipe2(g->ab, O_CLOEXEC) || pipe2(g->ba, O_CLOEXEC))
		return false;
	g->players[0] = (struct player){ g->ba[0], g->ab[1], 1000, 2000, looks };
	g->players[1] = (struct player){ g->ab[0], g->ba[1], 3000, 1000, looks };
	for (i = 0; i < 2; i++) {
		if (!worker_start(&g->w[i]) || !worker_order(&g->w[i], ORDER_CALL, (uintptr_t)play,
							     (uintptr_t)&g->players[i]))
			return false;
	}
	return write(g->ba[1], "", 1) == 1 && !worker_done(&g->w[0]) && !worker_done(&g->w[1]);
}

static bool game_end(struct game *g)
{
	return worker_end(&g->w[0]) && worker_end(&g->w[1]);
}

/* The players' IPCs are 2 and 1/3. Each of their slices is in its bucket. */
static void expect_ipc(struct __test_metadata *_metadata)
{
	char *text __freed = slurp(SCHED "hist");
	uint64_t ipc[16];

	ASSERT_NE(buckets_of(text, "ipc", 0, ipc, 16), UINT64_MAX);
	EXPECT_EQ(ipc[10], ROUNDS);	/* IPC in [2, 4) */
	EXPECT_EQ(ipc[7], ROUNDS);	/* IPC in [1/4, 1/2) */
}

/* No task is charged with events of another task. */
TEST_F(sched, two_tasks_over_a_pipe_keep_their_ipc)
{
	struct game g;

	ASSERT_TRUE(game_play(&g, false));
	EXPECT_TRUE(task_has(g.w[0].pid, ROUNDS * 1000, ROUNDS * 2000));
	EXPECT_TRUE(task_has(g.w[1].pid, ROUNDS * 3000, ROUNDS * 1000));
	ASSERT_TRUE(cpu_totals(0, &self->t));
	expect_counts(_metadata, &self->t, ROUNDS * 4000, ROUNDS * 3000);
	EXPECT_TRUE(game_end(&g));
	expect_ipc(_metadata);
}

/* Readings split slices, which must have no visible effect. */
TEST_F(sched, readers_change_nothing)
{
	int reader = start(read_all, NULL);
	struct game g;

	ASSERT_TRUE(game_play(&g, true));
	EXPECT_TRUE(task_has(g.w[0].pid, ROUNDS * 1000, ROUNDS * 2000));
	EXPECT_TRUE(task_has(g.w[1].pid, ROUNDS * 3000, ROUNDS * 1000));
	EXPECT_TRUE(game_end(&g));
	stop(reader);
	expect_ipc(_metadata);
}

/* ---- sums ---- */

TEST_F(sched, tasks_add_up_to_cpus)
{
	struct worker w[4];
	int i, j;

	for (i = 0; i < 4; i++)
		ASSERT_TRUE(worker_start_on(&w[i], i % nr_cpus()));
	for (i = 0; i < 10; i++) {
		for (j = 0; j < 4; j++)
			ASSERT_EQ(worker_add(&w[j], 1 + i, 100 * j), 0);
	}
	ASSERT_TRUE(worker_end(&w[0]));
	expect_sum(_metadata, 4 * 55, 6000);
	ASSERT_TRUE(sum_cpus(&self->t));
	expect_counts(_metadata, &self->t, 4 * 55, 6000);
	for (i = 1; i < 4; i++)
		EXPECT_TRUE(worker_end(&w[i]));
}

/*
 * Times and switches increase during a reading, so tasks' times lie between two readings of CPUs.
 */
TEST_F(sched, times_add_up_to_cpus)
{
	struct totals tasks, before, after;
	int i;

	for (i = 0; i < 20; i++) {
		ASSERT_TRUE(sum_cpus(&before));
		ASSERT_TRUE(sum_tasks(&tasks));
		ASSERT_TRUE(sum_cpus(&after));
		EXPECT_LE(before.run, tasks.run);
		EXPECT_LE(tasks.run, after.run);
		EXPECT_LE(before.wait, tasks.wait);	/* @after can lack another CPU's waits */
		usleep(1000);
	}
}

/* Events on another CPU belong to the running task or to idle. */
TEST_F(sched, idle_has_its_share)
{
	uint64_t idle[2];
	char *text;
	int i;

	if (nr_cpus() < 2)
		SKIP(return, "one CPU is never idle while it is asked for");
	for (i = 0; i < 100; i++)
		ASSERT_EQ(pace_add_on(1, 3, 5), 0);
	visit(1);
	text = slurp(SCHED "cpus");
	ASSERT_TRUE(idle_counts(text, 1, idle));
	ASSERT_TRUE(totals_at(text, after(text, "cpu 1"), 0, &self->t));
	free(text);
	EXPECT_GT(idle[0], 0);
	EXPECT_EQ(idle[0] + self->t.counts[0], 300);
	EXPECT_EQ(idle[1] + self->t.counts[1], 500);
	expect_sum(_metadata, self->t.counts[0], self->t.counts[1]);
}

static uint64_t count_of(int fd)
{
	uint64_t count = 0;

	return read(fd, &count, sizeof(count)) == sizeof(count) ? count : UINT64_MAX;
}

TEST_F(sched, independent_counter_agrees)
{
	int fd = open_counter(self->type, INSNS, 0), i;
	struct worker w[2];

	ASSERT_GE(fd, 0);
	ASSERT_TRUE(worker_start(&w[0]) && worker_start(&w[1]));
	for (i = 0; i < 100; i++)
		ASSERT_EQ(worker_add(&w[i % 2], 1, 1000 + i), 0);
	ASSERT_EQ(pace_add_on(0, 1, 77), 0);
	ASSERT_TRUE(cpu_totals(0, &self->t));
	EXPECT_EQ(self->t.counts[1], count_of(fd));
	EXPECT_EQ(self->t.counts[1], 100 * 1000 + 4950 + 77);
	close(fd);
	EXPECT_TRUE(worker_end(&w[0]) && worker_end(&w[1]));
}

/* Holds cycles of tasks and idle, and perf's own count before and after the reading. */
struct moment {
	uint64_t before, cpu, after;
};

static bool look_at(int fd, struct moment *m)
{
	char *text;

	m->before = count_of(fd);
	text = slurp(SCHED "cpus");
	m->after = count_of(fd);
	m->cpu = cycles_told(text, 0);
	free(text);
	return m->cpu;
}

static uint64_t width_of(const struct moment *m)
{
	return m->after - m->before;
}

/* Takes the best of several readings, since other tasks may delay a reading. */
static bool look_well(int fd, struct moment *best)
{
	struct moment m;
	int i;

	if (!look_at(fd, best))
		return false;
	for (i = 0; i < 100; i++) {
		if (!look_at(fd, &m))
			return false;
		if (width_of(&m) < width_of(best))
			*best = m;
	}
	return true;
}

/* Returns whether readings are exact to 1 in @parts of the passed cycles. */
static bool is_narrow(int fd, const struct moment *begin, struct moment *end, unsigned int parts)
{
	return look_at(fd, end) && end->cpu > begin->cpu &&
	       (width_of(begin) + width_of(end)) * parts < end->cpu - begin->cpu;
}

/* Readings are exact to 1 in 10 000. After three seconds, 1 in 300 is enough. */
TEST_F(sched, real_counter_agrees)
{
	struct moment begin, end;
	uint64_t soon;
	int fd;

	ASSERT_EQ(set_parameter("events", "cycles"), 0);
	fd = open_counter(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0);
	if (fd < 0)
		SKIP(return, "no PMU counts cycles");
	ASSERT_TRUE(look_well(fd, &begin));
	soon = now_ns() + 3 * NSEC_PER_SEC;
	ASSERT_TRUE(comes(is_narrow(fd, &begin, &end, now_ns() < soon ? 10000 : 300)));
	TH_LOG("readings are exact to 1 in %" PRIu64, (end.cpu - begin.cpu) /
	       (width_of(&begin) + width_of(&end) + 1));
	EXPECT_GE(end.cpu - begin.cpu, end.before - begin.after);
	EXPECT_LE(end.cpu - begin.cpu, end.after - begin.before);
	close(fd);
}

/* ---- how tasks leave their CPU, and for how long they had it ---- */

/* Compares the numbers when the task is asleep. */
static bool agree(int pid, struct totals *t, struct truth *truth)
{
	return is_in_state(pid, 'S') && truth_of(pid, truth) && task_totals(pid, t) &&
	       t->voluntary == truth->voluntary && t->same + t->other <= truth->involuntary;
}

TEST_F(sched, switches_are_the_schedulers)
{
	struct truth truth = {};
	struct worker w, v;
	int i;

	ASSERT_TRUE(worker_start(&w) && worker_start(&v));
	for (i = 0; i < 100; i++)
		ASSERT_EQ(worker_add(&w, 1, 1), 0);
	ASSERT_TRUE(worker_order(&v, ORDER_YIELD, 200, 0) &&
		    worker_order(&w, ORDER_YIELD, 200, 0));
	ASSERT_EQ(worker_done(&w) | worker_done(&v), 0);
	EXPECT_TRUE(comes(agree(w.pid, &self->t, &truth))) {
		TH_LOG("%" PRIu64 " %" PRIu64 " + %" PRIu64 ", but %" PRIu64 " %" PRIu64,
		       self->t.voluntary, self->t.same, self->t.other, truth.voluntary,
		       truth.involuntary);
	}
	EXPECT_GT(self->t.voluntary, 0);
	EXPECT_GT(truth.involuntary, 0);	/* most of these are yields */
	EXPECT_LT(self->t.same + self->t.other, truth.involuntary);
	EXPECT_EQ(self->t.wait, truth.wait);
	EXPECT_GE(self->t.run, truth.run);
	EXPECT_TRUE(worker_end(&w) && worker_end(&v));
}

/* The wait time on one CPU stays with a task that is moved to another CPU. */
TEST_F(sched, waits_go_with_a_task)
{
	const cpu_set_t here = {{ 1 }};
	struct truth truth = {};
	struct worker w;
	int pid, i;

	if (nr_cpus() < 2)
		SKIP(return, "there is no other CPU");
	ASSERT_TRUE(worker_start(&w));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(worker_do(&w, ORDER_RUN_ON, 1, 0), 0);
		pid = start(hog, (void *)1);
		usleep(20000);
		ASSERT_TRUE(worker_order(&w, ORDER_YIELD, 1, 0));
		usleep(20000);
		ASSERT_EQ(sched_setaffinity(w.pid, sizeof(here), &here), 0);
		EXPECT_EQ(worker_done(&w), 0);
		stop(pid);
	}
	EXPECT_TRUE(comes(agree(w.pid, &self->t, &truth)));
	EXPECT_EQ(self->t.wait, truth.wait);
	EXPECT_GE(self->t.wait, 20000000);
	ASSERT_EQ(set_parameter("reset", "1"), 0);
	ASSERT_TRUE(task_totals(w.pid, &self->t));
	EXPECT_EQ(self->t.wait, 0);
	EXPECT_TRUE(worker_end(&w));
}

/*
 * A real-time task keeps worker @w off its CPU before a reset and after it. Returns how long the
 * worker has waited, and writes its totals to @t. The scheduler may let the worker run in between.
 */
static uint64_t wait_over_reset(struct worker *w, struct totals *t)
{
	struct truth truth = {}, before = {};
	int pid;

	if (!comes(is_in_state(w->pid, 'S') && truth_of(w->pid, &before)))
		return 0;
	pid = start(hog, (void *)1);
	if (!comes(sched_getscheduler(pid) == SCHED_FIFO))
		return 0;
	worker_order(w, ORDER_SPIN, 1000, 0);
	usleep(300000);
	set_parameter("reset", "1");
	stop(pid);
	worker_done(w);
	worker_do(w, ORDER_NAP, 1, 0);	/* a departure that can be waited for */
	if (!comes(is_in_state(w->pid, 'S') && task_totals(w->pid, t) && t->voluntary))
		return 0;
	return truth_of(w->pid, &truth) ? truth.wait - before.wait : 0;
}

/*
 * The scheduler adds a wait as a whole when it ends. The totals lack a wait that was under way when
 * they began.
 */
TEST_F(sched, waits_under_way_do_not_count)
{
	struct totals cpus, tasks;
	uint64_t waited = 0;
	struct worker w;
	int tries;

	if (nr_cpus() < 2)
		SKIP(return, "there is no other CPU");
	ASSERT_TRUE(worker_start_on(&w, 1));
	for (tries = 0; tries < 20 && waited < 200 * NSEC_PER_MSEC; tries++)
		waited = wait_over_reset(&w, &self->t);
	TH_LOG("%" PRIu64 " of %" PRIu64 " ms", self->t.wait / 1000000, waited / 1000000);
	EXPECT_GE(waited, 200 * NSEC_PER_MSEC);
	EXPECT_LE(self->t.wait + 100 * NSEC_PER_MSEC, waited);
	ASSERT_TRUE(sum_cpus(&cpus));
	ASSERT_TRUE(sum_tasks(&tasks));
	EXPECT_LE(cpus.wait, tasks.wait);
	EXPECT_TRUE(worker_end(&w));
}

/* ---- histograms ---- */

/* Holds the contents of CPU 1's histograms, and its totals. */
struct histograms {
	uint64_t waits, slices, ipcs;	/* number of slices in each histogram */
	uint64_t left;			/* number of switches away from tasks */
	uint64_t least, most;		/* limits for the sum of the slices */
	uint64_t run;
};

static void add_times(struct histograms *h, const uint64_t *buckets)
{
	int i;

	for (i = 1; i < 40; i++) {
		h->least += buckets[i] << (i - 1);
		h->most += buckets[i] << i;
	}
}

/* Returns false if tasks were switched on CPU 1 during the reading. */
static bool read_histograms(struct histograms *h)
{
	uint64_t buckets[40], times[40];
	struct totals before, now;
	struct reasons r = {};
	char *text;

	memset(h, 0, sizeof(*h));
	if (!cpu_totals(1, &before))
		return false;
	text = slurp(SCHED "hist");
	h->waits = buckets_of(text, "wait", 1, buckets, 40);
	h->slices = buckets_of(text, "slice", 1, times, 40);
	h->ipcs = buckets_of(text, "ipc", 1, buckets, 16);
	free(text);
	add_times(h, times);
	h->left = before.voluntary + before.same + before.other;
	if (!cpu_totals(1, &now) || h->left != now.voluntary + now.same + now.other)
		return false;
	reasons_on(1, &r);
	h->left += r.throttled + r.yielded + r.stopped + r.migrated;
	h->run = now.run;
	return true;
}

static bool counts_agree(const struct histograms *h)
{
	return h->waits == h->left && h->slices == h->left && h->ipcs == h->left;
}

/* The limits allow a factor of two, since the first slices began before the sum. */
static bool buckets_agree(void)
{
	struct histograms h;

	return read_histograms(&h) && counts_agree(&h) && h.least / 2 <= h.run &&
	       h.run <= 2 * h.most;
}

TEST_F(sched, histograms_have_each_slice)
{
	struct worker w;
	int i;

	if (nr_cpus() < 2)
		SKIP(return, "one CPU is never at rest");
	ASSERT_TRUE(worker_start_on(&w, 1));
	for (i = 0; i < 100; i++)
		ASSERT_EQ(worker_add(&w, 1, i), 0);
	EXPECT_TRUE(comes(buckets_agree()));
	ASSERT_TRUE(cpu_totals(1, &self->t));
	EXPECT_GT(self->t.voluntary, 0);
	EXPECT_TRUE(worker_end(&w));
}

/* ---- CPUs that come and go ---- */

/* Adds events, and sleeps now and then. */
static bool add_and_rest(void)
{
	static int rounds;

	if (++rounds % 16 == 0)
		usleep(100);
	return !pace_add(3, 4);
}

#define ADDERS		3
#define HOTPLUGS	5

static bool run_on(const struct busy adders[ADDERS], uint64_t mask)
{
	int i, ret = 0;

	for (i = 0; i < ADDERS; i++)
		ret |= sched_setaffinity(adders[i].pid, sizeof(mask), (void *)&mask);
	return !ret;
}

/* The @added events may belong to a kernel thread that has exited with the CPU. */
static bool exited_have(uint64_t cycles, uint64_t added)
{
	struct totals t;

	return exited_totals(&t) && t.counts[0] >= cycles && t.counts[0] <= cycles + added;
}

/*
 * All events of a CPU that goes offline are kept. The CPU's counters come back some time after the
 * CPU. Until then its tasks are marked as not counted, so the workers do not run on it.
 */
TEST_F(sched, hotplug_loses_nothing)
{
	uint64_t rounds, sum = 0, all = 0, added = 0;
	struct busy adders[ADDERS];
	struct worker w;
	int i, cpus = nr_cpus();

	if (cpus < 2 || access(CPU1_ONLINE, W_OK))
		SKIP(return, "no CPU can go offline");
	ASSERT_TRUE(worker_start(&w));
	for (i = 0; i < ADDERS; i++) {
		adders[i] = (struct busy){ .act = add_and_rest, .cpu = SAME_CPU };
		ASSERT_TRUE(busy_start(&adders[i]));
	}
	for (i = 0; i < HOTPLUGS; i++) {
		ASSERT_TRUE(run_on(adders, 3));
		ASSERT_EQ(worker_do(&w, ORDER_RUN_ON, 1, 0), 0);
		ASSERT_EQ(worker_add(&w, 3, 4), 0);
		ASSERT_EQ(write_file(CPU1_ONLINE, "0"), 0);
		ASSERT_EQ(worker_add(&w, 3, 4), 0);
		ASSERT_TRUE(run_on(adders, 1));
		ASSERT_EQ(worker_do(&w, ORDER_RUN_ON, 0, 0), 0);
		ASSERT_EQ(write_file(CPU1_ONLINE, "1"), 0);
		ASSERT_TRUE(comes(cpu_counts(1, &added)));
	}
	for (i = 0; i < ADDERS; i++) {
		ASSERT_TRUE(busy_end(&adders[i], &rounds));
		sum += rounds;
	}
	EXPECT_TRUE(task_has(w.pid, 6 * HOTPLUGS, 8 * HOTPLUGS));
	EXPECT_TRUE(comes(exited_have(3 * sum, added)));
	for (i = 0; i < cpus; i++)
		all += cycles_on(i);
	EXPECT_EQ(all, 3 * sum + 6 * HOTPLUGS + added);
	EXPECT_TRUE(worker_end(&w));
}

/* The lines of an offline CPU stay, and do not change. */
TEST_F(sched, offline_cpus_stay_as_they_were)
{
	struct histograms h;
	uint64_t added = 0;
	struct totals t;

	if (nr_cpus() < 2 || access(CPU1_ONLINE, W_OK))
		SKIP(return, "no CPU can go offline");
	ASSERT_EQ(pace_add_on(1, 30, 40), 0);
	ASSERT_EQ(write_file(CPU1_ONLINE, "0"), 0);
	ASSERT_TRUE(cpu_totals(1, &self->before));
	ASSERT_TRUE(read_histograms(&h));
	EXPECT_TRUE(counts_agree(&h)) {
		TH_LOG("%" PRIu64 " waits, %" PRIu64 " slices, %" PRIu64 " IPCs of %" PRIu64,
		       h.waits, h.slices, h.ipcs, h.left);
	}
	EXPECT_LE(h.least / 2, h.run);	/* the last slice is in no bucket */
	usleep(20000);
	ASSERT_TRUE(cpu_totals(1, &t));
	EXPECT_EQ(memcmp(&self->before, &t, sizeof(t)), 0);
	ASSERT_EQ(set_parameter("reset", "1"), 0);
	ASSERT_TRUE(cpu_totals(1, &t));
	EXPECT_EQ(t.run, 0);
	EXPECT_EQ(t.voluntary, 0);
	expect_counts(_metadata, &t, 0, 0);
	ASSERT_EQ(write_file(CPU1_ONLINE, "1"), 0);
	EXPECT_TRUE(comes(cpu_counts(1, &added)));
	EXPECT_EQ(cycles_on(1), added);
}

#define NAPS	200

/* A sleeping task leaves its CPU to idle. Switches to and from idle use the fast path. */
TEST_F(sched, idle_takes_the_short_way)
{
	struct totals before;
	struct worker w;
	uint64_t slow;

	ASSERT_TRUE(worker_start_on(&w, nr_cpus() - 1));
	ASSERT_EQ(worker_do(&w, ORDER_NAP, 2, 0), 0);
	ASSERT_TRUE(task_totals(w.pid, &before));
	slow = parameter_number("slow_switches");
	ASSERT_EQ(worker_do(&w, ORDER_NAP, NAPS, 0), 0);
	slow = parameter_number("slow_switches") - slow;
	ASSERT_TRUE(task_totals(w.pid, &self->t));
	TH_LOG("%" PRIu64 " of %" PRIu64 " switches or more were slow", slow,
	       2 * (self->t.voluntary - before.voluntary));
	EXPECT_GE(self->t.voluntary - before.voluntary, NAPS / 2);
	EXPECT_LT(slow, NAPS / 4);
	EXPECT_TRUE(worker_end(&w));
}

/* ---- counters that are narrow ---- */

FIXTURE(width)
{
	struct totals t;
};

FIXTURE_VARIANT(width)
{
	int bits;
};

FIXTURE_VARIANT_ADD(width, bits16) { .bits = 16 };
FIXTURE_VARIANT_ADD(width, bits24) { .bits = 24 };
FIXTURE_VARIANT_ADD(width, bits32) { .bits = 32 };
FIXTURE_VARIANT_ADD(width, bits48) { .bits = 48 };

FIXTURE_SETUP(width)
{
	ASSERT_TRUE(sched_begin(2, variant->bits));
}

FIXTURE_TEARDOWN(width)
{
	EXPECT_TRUE(sched_end());
}

/* Counters wrap within slices, between slices, and several times in one slice. */
TEST_F(width, wraps_are_not_seen)
{
	uint64_t whole = BIT(variant->bits), cycles = 0, insns = 0;
	struct worker w[2];
	int i;

	ASSERT_TRUE(worker_start(&w[0]) && worker_start(&w[1]));
	for (i = 0; i < 40; i++) {
		uint64_t n = whole / 7 * (i % 9) + i, m = whole * (i % 4) + whole / 2 - 20 + i;

		ASSERT_EQ(worker_add(&w[i % 2], n, m), 0);
		if (i % 2)
			continue;
		cycles += n;
		insns += m;
	}
	ASSERT_TRUE(task_totals(w[0].pid, &self->t));
	expect_counts(_metadata, &self->t, cycles, insns);
	EXPECT_EQ(self->t.valid, 1);
	EXPECT_TRUE(worker_end(&w[0]) && worker_end(&w[1]));
}

TEST_HARNESS_MAIN
