// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check the files of the scheduler statistics: their content, and the rights of readers.
 * They check the module's parameters, valid and invalid, and events that cannot be counted.
 */
#include "sched_fixture.h"
#include "../pmu_kapi/rights.h"

/* ---- what files begin with ---- */

/*
 * A task that is dying when accounting begins is in no list, and its last slice is unattributed.
 * The children of earlier tests may be such tasks, so this test begins again when they are gone.
 */
TEST_F(sched, head_is_as_documented)
{
	static const char *const files[] = { "cpus", "tasks", "cgroups", "hist", NULL };
	uint64_t then, since, now;
	char path[64], *text;
	int i;

	usleep(100000);
	ASSERT_EQ(set_parameter("reset", "1"), 0);
	for (i = 0; files[i]; i++) {
		snprintf(path, sizeof(path), SCHED "%s", files[i]);
		text = slurp(path);
		ASSERT_NE(text, NULL);
		EXPECT_EQ(strncmp(text, "pmuk_sched 2\nstate on\ntimestamp ", 32), 0);
		then = number_in(path, "timestamp ");
		now = now_ns();
		since = number_in(path, "since ");
		EXPECT_LT(since, then);
		EXPECT_LE(then, now);
		EXPECT_NE(after(text, "events %u:0 %u:1\n", self->type, self->type), NULL);
		EXPECT_NE(strstr(text, "\nmissing none\n"), NULL);
		EXPECT_EQ(number_in(path, "memory "), 64);
		EXPECT_EQ(number_in(path, "unattributed "), 0);
		free(text);
	}
}

/* Returns whether a line begins as one of the lines that files have. */
static bool is_line(const char *line)
{
	static const char *const begins[] = {
		"cpu ", "idle ", "irq ", "left ", "task ", "group ", "exited ", "stray ", "cgroup ",
		"subtree ", "wait ", "slice ", "ipc ", "pmuk_sched 2\n", "state on\n", "timestamp ",
		"since ", "events ", "missing ", "memory ", "unattributed ", NULL
	};
	int i;

	for (i = 0; begins[i]; i++) {
		if (!strncmp(line, begins[i], strlen(begins[i])))
			return true;
	}
	return false;
}

/* A task's name cannot fake a line. */
TEST_F(sched, names_make_no_lines)
{
	static const char name[] = "x\ncpu 0 1\\";
	const char *line;
	char *text;

	ASSERT_EQ(write_file("/proc/self/comm", name), 0);
	text = slurp(SCHED "tasks");
	ASSERT_NE(text, NULL);
	EXPECT_NE(strstr(text, " x\\012cpu 0 1\\134\n"), NULL);
	for (line = text; *line; line = strchr(line, '\n') + 1)
		EXPECT_TRUE(is_line(line));
	free(text);
}

TEST_F(sched, ipc_needs_both_events)
{
	char *hist;

	ASSERT_EQ(set_parameter("events", "%u:0", self->type), 0);
	hist = slurp(SCHED "hist");
	ASSERT_NE(hist, NULL);
	EXPECT_EQ(after(hist, "ipc "), NULL);
	EXPECT_NE(after(hist, "slice 0 "), NULL);
	free(hist);
}

/* ---- on, off, reset, events ---- */

TEST_F(sched, off_leaves_nothing)
{
	char *text;

	ASSERT_EQ(pace_add(1, 1), 0);
	ASSERT_EQ(set_parameter("enabled", "0"), 0);
	EXPECT_TRUE(parameter_is("enabled", "0"));
	EXPECT_TRUE(comes(pace_events() == 0));
	text = slurp(SCHED "tasks");
	EXPECT_STREQ(text, "pmuk_sched 2\nstate off\n");
	free(text);
	EXPECT_EQ(errno_of(pace_add(1, 1)), ENODATA);
	ASSERT_EQ(set_parameter("enabled", "1"), 0);
	EXPECT_TRUE(parameter_is("enabled", "1"));
	expect_sum(_metadata, 0, 0);
	ASSERT_EQ(pace_add(1, 2), 0);
	expect_sum(_metadata, 1, 2);
}

TEST_F(sched, on_and_off_again_and_again)
{
	struct worker w;
	int i;

	ASSERT_TRUE(worker_start(&w));
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(set_parameter("enabled", "0"), 0);
		ASSERT_EQ(set_parameter("enabled", "1"), 0);
		ASSERT_EQ(worker_add(&w, 5, 6), 0);
		EXPECT_TRUE(task_has(w.pid, 5, 6));
	}
	EXPECT_TRUE(worker_end(&w));
	ASSERT_EQ(set_parameter("enabled", "0"), 0);
	EXPECT_TRUE(comes(pace_events() == 0));
}

TEST_F(sched, reset_begins_at_0)
{
	uint64_t since = number_in(SCHED "cpus", "since ");

	ASSERT_EQ(pace_add(5, 6), 0);
	ASSERT_EQ(set_parameter("reset", "0"), 0);
	EXPECT_TRUE(task_has(getpid(), 5, 6));
	ASSERT_EQ(set_parameter("reset", "1"), 0);
	EXPECT_GT(number_in(SCHED "cpus", "since "), since);
	expect_sum(_metadata, 0, 0);
	ASSERT_TRUE(sum_cpus(&self->t));
	expect_counts(_metadata, &self->t, 0, 0);
	ASSERT_EQ(pace_add(7, 8), 0);
	EXPECT_TRUE(task_has(getpid(), 7, 8));
	ASSERT_EQ(set_parameter("enabled", "0"), 0);
	EXPECT_EQ(set_parameter("reset", "1"), 0);
	EXPECT_TRUE(parameter_is("enabled", "0"));
}

TEST_F(sched, four_events_can_be_counted)
{
	char text[128];
	unsigned int t = self->type;

	snprintf(text, sizeof(text), "%u:3,%u:2,%u:1,%u:0x0", t, t, t, t);
	ASSERT_EQ(set_parameter("events", "%s", text), 0);
	EXPECT_TRUE(parameter_is("events", text));
	EXPECT_GE(number_in(SCHED "tasks", "memory "), 96);	/* kmalloc() has no 80 bytes */
	ASSERT_EQ(write_file(PACE "add", "0 1 1 20 2 300 3 4000"), 0);
	ASSERT_TRUE(task_totals(getpid(), &self->t));
	EXPECT_EQ(self->t.counts[0], 4000);
	EXPECT_EQ(self->t.counts[1], 300);
	EXPECT_EQ(self->t.counts[2], 20);
	EXPECT_EQ(self->t.counts[3], 1);
}

/* An invalid value is refused, and changes nothing. */
TEST_F(sched, bad_parameters_are_refused)
{
	static const struct {
		const char *name, *value;
		int error;
	} bad[] = {
		{ "events", "cycle", EINVAL }, { "events", ",cycles", EINVAL },
		{ "events", "cycles,", EINVAL }, { "events", ",", EINVAL },
		{ "events", "cycles,,instructions", EINVAL }, { "events", "r", EINVAL },
		{ "events", "rxyz", EINVAL }, { "events", "1:", EINVAL },
		{ "events", ":1", EINVAL },
		{ "events", "1:2:3", EINVAL }, { "events", "-1:2", EINVAL },
		{ "events", "cycles instructions", EINVAL }, { "events", " ", EINVAL },
		{ "events", "4294967296:0", EINVAL }, { "events", "1:0x10000000000000000", EINVAL },
		{ "events", "0000000000000000000000000000000000000000:1", EINVAL },
		{ "events", "cycles,cycles,cycles,cycles,cycles", E2BIG },
		{ "enabled", "x", EINVAL }, { "enabled", "2", EINVAL }, { "enabled", "-1", EINVAL },
		{ "reset", "x", EINVAL }, { "reset", "-1", EINVAL }, {}
	};
	int events = pace_events(), i;
	char path[128];

	ASSERT_EQ(pace_add(5, 6), 0);
	for (i = 0; bad[i].name; i++) {
		snprintf(path, sizeof(path), PARAMETERS "%s", bad[i].name);
		errno = 0;
		EXPECT_EQ(write_file(path, "%s", bad[i].value), -1);
		EXPECT_EQ(errno, bad[i].error) {
			TH_LOG("%s = '%s': %s", bad[i].name, bad[i].value, strerror(errno));
		}
		EXPECT_EQ(pace_events(), events);
		EXPECT_TRUE(parameter_is("enabled", "1"));
		EXPECT_TRUE(task_has(getpid(), 5, 6));
	}
}

/* ---- what cannot be counted ---- */

/*
 * If no event or only one of two can be counted, the files name the missing events. The rest is
 * counted.
 */
TEST_F(sched, missing_events_are_told)
{
	unsigned int type = self->type;
	char *cpus;
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(set_parameter("events", "%u:99,%u:%d", type, type, i ? 1 : 98), 0);
		cpus = slurp(SCHED "cpus");
		ASSERT_NE(cpus, NULL);
		EXPECT_NE(i ? after(cpus, "missing %u:99:-2\n", type) :
			      after(cpus, "missing %u:99:-2 %u:98:-2\n", type, type), NULL);
		EXPECT_EQ(nr_events(cpus), i);
		free(cpus);
		EXPECT_EQ(pace_events(), i * nr_cpus());
	}
	ASSERT_EQ(write_file(PACE "add", "1 42"), 0);
	ASSERT_TRUE(task_totals(getpid(), &self->t));
	EXPECT_EQ(self->t.counts[0], 42);
	EXPECT_EQ(self->t.valid, 1);
}

static bool has_run_since(int pid, const struct totals *before, struct totals *t)
{
	return task_totals(pid, t) && t->run > before->run && t->voluntary > before->voluntary;
}

TEST_F(sched, times_need_no_events)
{
	struct worker w;

	ASSERT_EQ(set_parameter("events", "\n"), 0);
	EXPECT_TRUE(parameter_is("events", ""));
	ASSERT_TRUE(worker_start(&w));
	ASSERT_EQ(worker_do(&w, ORDER_YIELD, 10, 0), 0);
	ASSERT_TRUE(comes(task_totals(w.pid, &self->before)));
	ASSERT_EQ(worker_do(&w, ORDER_YIELD, 10, 0), 0);
	EXPECT_TRUE(comes(has_run_since(w.pid, &self->before, &self->t)));
	EXPECT_EQ(number_in(SCHED "tasks", "memory "), 64);
	EXPECT_TRUE(worker_end(&w));
}

static bool is_counted_on(const struct worker *w, uint64_t *added)
{
	if (worker_add(w, 1, 1))
		return false;
	++*added;
	return true;
}

/*
 * While another consumer has the counters of a CPU, tasks on it are not counted, and their lines
 * say so. After the counters come back, tasks are counted again. Other CPUs' counts do not change.
 */
TEST_F(sched, stolen_counters_come_back)
{
	struct totals t, cpu, other;
	struct worker w;
	uint64_t added = 0;

	ASSERT_TRUE(worker_start(&w));
	ASSERT_EQ(worker_add(&w, 100, 200), 0);
	ASSERT_EQ(pace_steal(0, 8), 0);
	EXPECT_EQ(worker_add(&w, 1000, 2000), ENODATA);
	ASSERT_TRUE(task_totals(w.pid, &t));
	expect_counts(_metadata, &t, 100, 200);
	EXPECT_EQ(t.valid, 0);
	ASSERT_TRUE(cpu_totals(0, &cpu));
	EXPECT_EQ(cpu.valid, 0);
	if (nr_cpus() > 1) {
		ASSERT_TRUE(cpu_totals(1, &other));
		EXPECT_EQ(other.valid, 1);
	}
	ASSERT_EQ(pace_steal(0, 0), 0);
	ASSERT_TRUE(comes(is_counted_on(&w, &added)));
	/* Events before the first counted slice belong to no task. */
	ASSERT_TRUE(task_totals(w.pid, &self->before));
	ASSERT_EQ(worker_add(&w, 7, 9), 0);
	expect_task(_metadata, w.pid, self->before.counts[0] + 7, self->before.counts[1] + 9);
	EXPECT_LE(self->before.counts[0], 100 + added);
	ASSERT_EQ(set_parameter("reset", "1"), 0);
	ASSERT_EQ(worker_add(&w, 7, 9), 0);
	ASSERT_TRUE(task_totals(w.pid, &t));
	EXPECT_EQ(t.valid, 1);
	expect_counts(_metadata, &t, 7, 9);
	EXPECT_TRUE(worker_end(&w));
}

/* Returns the number of switches on CPU 1. The reading does not make that CPU update its counts. */
static uint64_t switches_there(void)
{
	char *text __freed = slurp(SCHED "hist");
	uint64_t buckets[40];

	return buckets_of(text, "slice", 1, buckets, 40);
}

/*
 * While a real-time task runs on CPU 1, the scheduler gives ordinary tasks 50 ms there at the end
 * of each such period. Kernels before 6.12 have no such file.
 */
static void set_fair_period(const char *ns)
{
	write_file("/sys/kernel/debug/sched/fair_server/cpu1/period", "%s", ns);
}

/* Takes CPU 1's counters, and gives them back. Returns whether its task @pid has stayed on it. */
static bool come_back_unswitched(struct __test_metadata *_metadata, int pid)
{
	const struct sched_param most = { .sched_priority = 1 }, usual = {};
	struct totals t;
	uint64_t switches;

	set_fair_period("4000000000");
	EXPECT_EQ(sched_setscheduler(pid, SCHED_FIFO, &most), 0);
	/* After two updates, the earlier loss of the counters has no effect any more. */
	EXPECT_TRUE(cpu_totals(1, &t) && cpu_totals(1, &t));
	switches = switches_there();
	EXPECT_EQ(pace_steal(1, 8), 0);
	EXPECT_EQ(pace_add_on(1, 1, 1), -1);
	EXPECT_EQ(pace_steal(1, 0), 0);
	EXPECT_TRUE(comes(!pace_add_on(1, 1, 1)));
	switches -= switches_there();
	EXPECT_EQ(sched_setscheduler(pid, SCHED_OTHER, &usual), 0);
	set_fair_period("1000000000");
	return !switches;
}

/*
 * Counters come back to a CPU even if its task stays on it. The task's line then says that some
 * events were missed.
 *
 * pmuk_sched looks for lost counters each second, and less often after repeated losses. So the test
 * waits between attempts. The context looks each second or two, too, and its message must come
 * first: so counters may take 3 s to come back. In an attempt the task has real-time priority, and
 * the scheduler lets kernel threads run only after 4 s.
 */
TEST_F(sched, stolen_counters_come_back_to_who_stays)
{
	bool unswitched = false;
	int pid, i;

	if (nr_cpus() < 2)
		SKIP(return, "one CPU switches");
	pid = start(spin, (void *)1);
	usleep(100000);
	for (i = 0; i < 100 && !unswitched; i++) {
		if (i) {
			kill(pid, SIGSTOP);
			usleep(2500000);
			kill(pid, SIGCONT);
		}
		unswitched = come_back_unswitched(_metadata, pid);
	}
	TH_LOG("%d attempts", i);
	EXPECT_TRUE(unswitched);
	EXPECT_TRUE(task_totals(pid, &self->t));
	EXPECT_EQ(self->t.valid, 0);
	stop(pid);
}

/*
 * Another context takes the counters of CPU 1 for a moment. They come back before pmuk_sched looks
 * for lost counters, and mostly before the task on CPU 1 leaves. In several rounds, the task's line
 * always says that some events were missed.
 */
TEST_F(sched, counters_that_were_away_are_missed)
{
	int pid, i;

	if (nr_cpus() < 2)
		SKIP(return, "the test needs CPU 1 for a task that stays on it");
	pid = start(spin, (void *)1);
	EXPECT_TRUE(comes(task_totals(pid, &self->t) && self->t.run));
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(set_parameter("reset", "1"), 0);
		EXPECT_TRUE(task_totals(pid, &self->before));
		EXPECT_EQ(self->before.valid, 1);
		EXPECT_EQ(write_file(PACE "take", "1 8"), 0);
		EXPECT_TRUE(comes(!pace_add_on(1, 1, 1)));
		EXPECT_TRUE(task_totals(pid, &self->t));
		EXPECT_EQ(self->t.valid, 0);
	}
	stop(pid);
}

/* Another consumer's pinned counter leaves too few registers, so the second event is missing. */
TEST_F(sched, taken_counters_are_missing)
{
	char *cpus;
	int fd;

	ASSERT_TRUE(sched_begin(2, 48));
	ASSERT_EQ(set_parameter("enabled", "0"), 0);
	ASSERT_TRUE(comes(pace_events() == 0));
	fd = open_counter(pace_type(), 5, 0);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(set_parameter("enabled", "1"), 0);
	cpus = slurp(SCHED "cpus");
	ASSERT_NE(cpus, NULL);
	EXPECT_EQ(nr_events(cpus), 1);
	EXPECT_NE(after(cpus, "missing %u:%d:-", pace_type(), INSNS), NULL);
	free(cpus);
	close(fd);
	ASSERT_EQ(set_parameter("events", "%u:0,%u:1", pace_type(), pace_type()), 0);
	EXPECT_TRUE(comes(pace_events() == 2 * nr_cpus()));
	ASSERT_EQ(pace_add(3, 4), 0);
	EXPECT_TRUE(task_has(getpid(), 3, 4));
}

/* ---- who may look; these tests are processes of their own, and give up what they are ---- */

static const char *const sched_files[] = {
	SCHED "cpus", SCHED "tasks", SCHED "cgroups", SCHED "hist", "/dev/pmuk_sched",
};

static void expect_files(struct __test_metadata *_metadata, int error)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sched_files); i++)
		EXPECT_EQ(errno_of_open(sched_files[i], O_RDONLY), error);
}

TEST(nobody_may_not)
{
	ASSERT_EQ(be_nobody(0), 0);
	expect_files(_metadata, EACCES);
	EXPECT_EQ(errno_of_open(PARAMETERS "enabled", O_WRONLY), EACCES);
	EXPECT_EQ(errno_of_open(PARAMETERS "events", O_WRONLY), EACCES);
	EXPECT_EQ(errno_of_open(PARAMETERS "reset", O_WRONLY), EACCES);
}

TEST(root_without_capabilities_may_not)
{
	ASSERT_EQ(drop(BIT(CAP_PERFMON) | BIT(CAP_SYS_ADMIN)), 0);
	expect_files(_metadata, EACCES);
}

TEST(perfmon_may)
{
	ASSERT_EQ(be_nobody(BIT(CAP_PERFMON)), 0);
	expect_files(_metadata, 0);
}

TEST_HARNESS_MAIN
