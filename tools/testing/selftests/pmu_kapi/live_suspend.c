// SPDX-License-Identifier: GPL-2.0
/*
 * The machine suspends while a context of /dev/pmuk_live is started, and resumes. No count
 * decreases, each CPU continues to count, sets take turns, and times match the clock.
 */
#include "live.h"
#include "harness.h"

#define POWER		"/sys/power/"
#define SUSPENDS	POWER "suspend_stats/success"
#define DELAY		"/sys/module/suspend/parameters/pm_test_delay"
#define IDLE_DRIVER	"/sys/devices/system/cpu/cpuidle/current_driver"
#define WAKE_MS_MAX	16000

FIXTURE(suspend)
{
	int fd;
	int cpus;
	uint64_t since;
	struct pmuk_live_cpu before[MAX_CPUS], after[MAX_CPUS];
};

/*
 * Each variant has a sleep state, the test point at which the suspend turns back, and whether CPUs
 * go offline on the way.
 */
FIXTURE_VARIANT(suspend)
{
	const char *state;
	const char *until;
	bool cpus_go;
	bool wake;		/* needs a timer that wakes the machine */
	bool lent;		/* only if pmuk_live provides the sleep */
};

#define SUSPEND(name, ...) FIXTURE_VARIANT_ADD(suspend, name) { __VA_ARGS__ }

SUSPEND(devices,	.state = "freeze", .until = "devices");
SUSPEND(to_idle,	.state = "freeze", .until = "none", .wake = true);
SUSPEND(processors,	.state = "mem", .until = "processors", .cpus_go = true);
SUSPEND(core,		.state = "mem", .until = "core", .cpus_go = true);
SUSPEND(to_memory,	.state = "mem", .until = "none", .cpus_go = true, .lent = true);

static bool is_lent(int fd)
{
	return ioctl(fd, PMUK_LIVE_LEND_SLEEP, 0) == 1;
}

/* Returns whether the machine can suspend to memory on its own. */
static bool has_sleep(int fd)
{
	return file_has(POWER "mem_sleep", "deep") && !is_lent(fd);
}

/*
 * Creates a context that counts cycles, which overflow by the PMU's interrupts. If the machine has
 * no cycles, the context counts nanoseconds.
 */
static int start(int fd)
{
	struct pmuk_live_attr cycles = live_clock(20000000), ns = cycles;

	cycles.type = PERF_TYPE_HARDWARE;
	cycles.config = PERF_COUNT_HW_CPU_CYCLES;
	return live_create(fd, cycles) ? live_create(fd, ns) : 0;
}

FIXTURE_SETUP(suspend)
{
	self->fd = live_open();
	ASSERT_GE(self->fd, 0);
	self->cpus = nr_cpus();
	ASSERT_LE(self->cpus, MAX_CPUS);
	if (access(POWER "pm_test", W_OK))
		SKIP(return, "no suspend, or none that can be tested");
	if (variant->lent && has_sleep(self->fd))
		SKIP(return, "its firmware sleeps, and nobody wakes it");
	if (variant->wake && !access(IDLE_DRIVER, R_OK) && !file_has(IDLE_DRIVER, "none"))
		SKIP(return, "its idle driver stops the timer that is to wake it");
	self->since = now_ns();
	ASSERT_EQ(start(self->fd), 0);
	ASSERT_EQ(write_file(DELAY, "1"), 0);
	ASSERT_EQ(write_file(POWER "pm_test", "%s", variant->until), 0);
}

FIXTURE_TEARDOWN(suspend)
{
	write_file(POWER "pm_test", "none");
	write_file(DELAY, "5");
	if (is_lent(self->fd))
		write_file(POWER "mem_sleep", "s2idle");
	close(self->fd);
}

/* Suspends to memory. Returns 0, or -1 and errno. */
static int to_memory(int fd)
{
	if (!has_sleep(fd))
		ioctl(fd, PMUK_LIVE_LEND_SLEEP, 1);
	if (write_file(POWER "mem_sleep", "deep"))
		return -1;
	return write_file(POWER "state", "mem");
}

/* Suspends to idle, with a wakeup each so many milliseconds. Returns 0, or -1 and errno. */
static int to_idle_for(int fd, unsigned int ms)
{
	int ret, err;

	if (ioctl(fd, PMUK_LIVE_WAKE, ms))
		return -1;
	ret = write_file(POWER "state", "freeze");
	err = errno;
	ioctl(fd, PMUK_LIVE_WAKE, 0);
	errno = err;
	return ret;
}

/* A wakeup during the suspend fails with EBUSY. The machine then tries again, with later ones. */
static int to_idle(int fd)
{
	unsigned int ms;
	int ret = -1;

	for (ms = 250; ret && ms <= WAKE_MS_MAX; ms *= 2) {
		ret = to_idle_for(fd, ms);
		if (ret && errno != EBUSY)
			break;
	}
	return ret;
}

static int go_to_sleep(int fd, const char *state, bool wake)
{
	if (wake)
		return to_idle(fd);
	if (!strcmp(state, "mem"))
		return to_memory(fd);
	return write_file(POWER "state", "%s", state);
}

static bool look_at_all(int fd, int cpus, struct pmuk_live_cpu *at)
{
	int cpu;

	for (cpu = 0; cpu < cpus; cpu++) {
		if (live_look(fd, cpu, &at[cpu]))
			return false;
	}
	return true;
}

static bool is_back(const struct pmuk_live_cpu *at, const void *arg)
{
	return at->online;
}

/* Returns whether messages say that all CPUs but the first are online again. */
static bool are_back(int fd, int cpus)
{
	return live_on_all(fd, 1, cpus, is_back, NULL);
}

/* Returns whether each set has counted and had turns since @then, an array of all CPUs. */
static bool has_gone_on(const struct pmuk_live_cpu *at, const void *then)
{
	const struct pmuk_live_cpu *before = (const struct pmuk_live_cpu *)then + at->cpu;
	int set;

	for (set = 0; set < PMUK_LIVE_SETS; set++) {
		if (at->counts[set] <= before->counts[set] ||
		    at->time_running[set] <= before->time_running[set] ||
		    at->runs[set] < before->runs[set] + 2)
			return false;
	}
	return true;
}

static void expect_not_back(struct __test_metadata *_metadata, const struct pmuk_live_cpu *before,
			    const struct pmuk_live_cpu *after)
{
	int set;

	for (set = 0; set < PMUK_LIVE_SETS; set++) {
		EXPECT_GE(after->counts[set], before->counts[set]);
		EXPECT_GE(after->time_running[set], before->time_running[set]);
		EXPECT_GE(after->runs[set], before->runs[set]);
		EXPECT_GE(after->duration[set], before->duration[set]);
	}
}

/* Messages report exactly once that a CPU goes offline, and once that it comes back. */
static void expect_told(struct __test_metadata *_metadata, const struct pmuk_live_cpu *at,
			bool went)
{
	EXPECT_EQ(at->offline, went);
	EXPECT_EQ(at->online, went);
	EXPECT_EQ(at->counter_lost, 0);
}

TEST_F(suspend, counts_go_on)
{
	int cpu, cpus = self->cpus, fd = self->fd;
	uint64_t suspends = number_in_file(SUSPENDS);

	ASSERT_TRUE(comes(live_has_run(fd, cpus, 3)));
	ASSERT_TRUE(look_at_all(fd, cpus, self->before));
	ASSERT_EQ(go_to_sleep(fd, variant->state, variant->wake), 0) {
		TH_LOG("%s until %s: %s", variant->state, variant->until, strerror(errno));
	}
	ASSERT_EQ(number_in_file(SUSPENDS), suspends + 1);

	ASSERT_TRUE(!variant->cpus_go || comes(are_back(fd, cpus)));
	ASSERT_TRUE(look_at_all(fd, cpus, self->after));
	for (cpu = 0; cpu < cpus; cpu++)
		expect_not_back(_metadata, &self->before[cpu], &self->after[cpu]);
	ASSERT_TRUE(comes(live_on_all(fd, 0, cpus, has_gone_on, self->after)));

	ASSERT_TRUE(look_at_all(fd, cpus, self->after));
	for (cpu = 0; cpu < cpus; cpu++) {
		struct pmuk_live_cpu *at = &self->after[cpu];

		expect_told(_metadata, at, variant->cpus_go && cpu);
		EXPECT_LE(at->duration[0] + at->duration[1], now_ns() - self->since);
	}
}

/* A stopped context keeps its counts over the sleep. */
TEST_F(suspend, stopped_stays_stopped)
{
	int cpu, set, cpus = self->cpus, fd = self->fd;

	ASSERT_TRUE(comes(live_has_run(fd, cpus, 3)));
	ASSERT_EQ(ioctl(fd, PMUK_LIVE_STOP), 0);
	ASSERT_TRUE(look_at_all(fd, cpus, self->before));
	ASSERT_EQ(go_to_sleep(fd, variant->state, variant->wake), 0);
	ASSERT_TRUE(!variant->cpus_go || comes(are_back(fd, cpus)));
	ASSERT_TRUE(look_at_all(fd, cpus, self->after));
	for (cpu = 0; cpu < cpus; cpu++) {
		for (set = 0; set < PMUK_LIVE_SETS; set++) {
			EXPECT_EQ(self->after[cpu].counts[set], self->before[cpu].counts[set]);
			EXPECT_EQ(self->after[cpu].runs[set], self->before[cpu].runs[set]);
			EXPECT_EQ(self->after[cpu].duration[set], self->before[cpu].duration[set]);
		}
	}
}

TEST_HARNESS_MAIN
