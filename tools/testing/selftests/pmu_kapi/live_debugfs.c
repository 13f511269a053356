// SPDX-License-Identifier: GPL-2.0
/*
 * The files in <debugfs>/pmuk show a context of /dev/pmuk_live to users with the right to see it.
 * pmuk measures the cost of overflows only on request.
 */
#include <signal.h>
#include <sys/wait.h>

#include "live.h"
#include "rights.h"
#include "harness.h"

#define PMUK		"/sys/kernel/debug/pmuk"
#define CONTEXTS	PMUK "/contexts"
#define MEASURE		PMUK "/measure"
#define ROOM		PMUK "/room"
#define RECORD		24	/* bytes: header, IP, and time */
#define FILE_MAX	65536

/* Holds the lines about one CPU of a context. */
struct shown_cpu {
	bool there;
	char state[16];
	int set;
	uint64_t overflows, overflow_ns, limited, reads;
	uint64_t switches, switch_ns, switch_max_ns, late_max_ns;
	uint64_t pages, head, tail, consumed, lost, discarded, overwritten, wakeups;
	uint64_t aux_pages, aux_head;
};

/* Holds the number of contexts, and the latest context. */
struct shown {
	int nr;
	uint64_t id;
	char name[32], format[32], target[16], state[16];
	bool exported;
	uint64_t sets, counters, messages;
	struct shown_cpu cpus[MAX_CPUS];
};

static bool parse_context(struct shown *s, const char *line)
{
	const char *at = strstr(line, " rank ");

	memset(s->cpus, 0, sizeof(s->cpus));
	s->nr++;
	s->exported = strstr(line, " exported rank ");
	return at && sscanf(line, "context %*u name %31s ", s->name) == 1 &&
		sscanf(at, " rank %*s format %31s target %15s %15s ", s->format, s->target,
		       s->state) == 3 &&
		numbers_of(line, "context", &s->id, "sets", &s->sets, "counters", &s->counters,
			   "messages", &s->messages, NULL);
}

/* Returns the CPU of a line "  @what cpu CPU ...", or NULL for other lines. */
static struct shown_cpu *cpu_of(struct shown *s, const char *line, const char *what)
{
	char found[16];
	int cpu;

	if (sscanf(line, "  %15s cpu %d", found, &cpu) != 2 || strcmp(found, what) || cpu < 0 ||
	    cpu >= MAX_CPUS)
		return NULL;
	return &s->cpus[cpu];
}

static bool parse_instance(struct shown *s, const char *line)
{
	struct shown_cpu *at = cpu_of(s, line, "instance");

	if (!at)
		return false;
	*at = (struct shown_cpu){ .there = true };
	return sscanf(line, "  instance cpu %*d %15s set %d ", at->state, &at->set) == 2 &&
		numbers_of(line, "overflows", &at->overflows, "overflow_ns", &at->overflow_ns,
			   "limited", &at->limited, "reads", &at->reads, "switches",
			   &at->switches, "switch_ns", &at->switch_ns,
			   "switch_max_ns", &at->switch_max_ns, "late_max_ns", &at->late_max_ns,
			   NULL);
}

static bool parse_buffer(struct shown *s, const char *line)
{
	struct shown_cpu *at = cpu_of(s, line, "buffer");

	return at && numbers_of(line, "pages", &at->pages, "head", &at->head, "tail", &at->tail,
				"consumed", &at->consumed, "lost", &at->lost, "discarded",
				&at->discarded, "overwritten", &at->overwritten, "wakeups",
				&at->wakeups, NULL);
}

static bool parse_aux(struct shown *s, const char *line)
{
	static const char *const others[] = { "tail", "truncated", "truncations", "full", "nested",
					      "discarded", "wakeups" };
	struct shown_cpu *at = cpu_of(s, line, "aux");
	uint64_t other;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(others); i++)
		if (!number_of(line, others[i], &other) || other)
			return false;
	return at && numbers_of(line, "pages", &at->aux_pages, "head", &at->aux_head, NULL);
}

static bool parse_line(struct shown *s, const char *line)
{
	if (!strncmp(line, "context ", 8))
		return parse_context(s, line);
	return parse_instance(s, line) || parse_buffer(s, line) || parse_aux(s, line);
}

/* Parses all contexts. Returns whether each line is understood. */
static bool show(struct shown *s)
{
	static char text[FILE_MAX];
	char *line, *rest;

	memset(s, 0, sizeof(*s));
	if (read_file(CONTEXTS, text, sizeof(text)) < 0)
		return false;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (!parse_line(s, line)) {
			printf("# not understood: %s\n", line);
			return false;
		}
	}
	return true;
}

FIXTURE(live)
{
	int fd;
	int cpus;
	struct shown first, second;
};

FIXTURE_SETUP(live)
{
	self->fd = live_open();
	ASSERT_GE(self->fd, 0);
	self->cpus = nr_cpus();
	ASSERT_LE(self->cpus, MAX_CPUS);
	ASSERT_TRUE(show(&self->second));
	ASSERT_EQ(live_create(self->fd, live_clock(NSEC_PER_MSEC)), 0);
	ASSERT_TRUE(show(&self->first));
	ASSERT_EQ(self->first.nr, self->second.nr + 1);
	ASSERT_GT(self->first.id, self->second.id);
}

FIXTURE_TEARDOWN(live)
{
	write_file(MEASURE, "0");
	write_file("/sys/devices/system/cpu/cpu1/online", "1");
	close(self->fd);
}

/* Returns whether each CPU has had overflows, lost records, and turns of sets. */
static bool has_moved(struct shown *s, int cpus)
{
	int cpu;

	if (!show(s))
		return false;
	for (cpu = 0; cpu < cpus; cpu++) {
		if (!s->cpus[cpu].overflows || !s->cpus[cpu].lost || s->cpus[cpu].switches < 3)
			return false;
	}
	return true;
}

/* Returns whether each CPU has had @n more overflows since @then. */
static bool has_overflowed(struct shown *s, const struct shown *then, int cpus, uint64_t n)
{
	int cpu;

	if (!show(s))
		return false;
	for (cpu = 0; cpu < cpus; cpu++) {
		if (s->cpus[cpu].overflows < then->cpus[cpu].overflows + n)
			return false;
	}
	return true;
}

static void expect_sound(struct __test_metadata *_metadata, const struct shown_cpu *at)
{
	EXPECT_TRUE(at->there);
	EXPECT_EQ(at->pages, 1);
	EXPECT_EQ(at->aux_pages, 1);
	EXPECT_EQ(at->aux_head, 0);
	EXPECT_LE(at->head, getpagesize());
	EXPECT_EQ(at->tail, 0);
	EXPECT_EQ(at->consumed, 0);
	EXPECT_EQ(at->overwritten, 0);
	EXPECT_LE(at->switch_max_ns, at->switch_ns);
}

static void expect_later(struct __test_metadata *_metadata, const struct shown_cpu *then,
			 const struct shown_cpu *now)
{
	EXPECT_GE(now->overflows, then->overflows);
	EXPECT_GE(now->overflow_ns, then->overflow_ns);
	EXPECT_GE(now->switches, then->switches);
	EXPECT_GE(now->switch_ns, then->switch_ns);
	EXPECT_GE(now->switch_max_ns, then->switch_max_ns);
	EXPECT_GE(now->late_max_ns, then->late_max_ns);
	EXPECT_GE(now->head, then->head);
	EXPECT_GE(now->lost, then->lost);
	EXPECT_GE(now->wakeups, then->wakeups);
}

/* The context is shown, and its numbers increase. */
TEST_F(live, is_shown)
{
	struct shown *s = &self->first;
	int cpu;

	EXPECT_STREQ(s->name, "pmuk_live");
	EXPECT_FALSE(s->exported);
	EXPECT_STREQ(s->format, "perf");
	EXPECT_STREQ(s->target, "cpus");
	EXPECT_STREQ(s->state, "running");
	EXPECT_EQ(s->sets, 2);
	EXPECT_EQ(s->counters, 2);
	ASSERT_TRUE(comes(has_moved(&self->second, self->cpus)));
	EXPECT_EQ(self->second.id, s->id);
	EXPECT_GT(self->second.messages, s->messages);
	for (cpu = 0; cpu < self->cpus; cpu++) {
		struct shown_cpu *at = &self->second.cpus[cpu];

		EXPECT_STREQ(at->state, "live");
		EXPECT_TRUE(at->set == 0 || at->set == 1);
		EXPECT_GT(at->switch_ns, 0);
		expect_sound(_metadata, at);
		expect_later(_metadata, &s->cpus[cpu], at);
	}
}

/* After a stop nothing changes, and the numbers match those of the context. */
TEST_F(live, adds_up)
{
	struct pmuk_live_cpu at;
	int cpu;

	ASSERT_TRUE(comes(has_moved(&self->first, self->cpus)));
	ASSERT_EQ(ioctl(self->fd, PMUK_LIVE_STOP), 0);
	ASSERT_TRUE(show(&self->first));
	EXPECT_STREQ(self->first.state, "stopped");
	for (cpu = 0; cpu < self->cpus; cpu++) {
		struct shown_cpu *s = &self->first.cpus[cpu];

		ASSERT_EQ(live_look(self->fd, cpu, &at), 0);
		EXPECT_EQ(s->set, -1);
		EXPECT_EQ(s->switches + 1, at.runs[0] + at.runs[1]);
		EXPECT_EQ(s->overflows, s->head / RECORD + s->lost + s->discarded);
		EXPECT_EQ(s->head % RECORD, 0);
	}
	usleep(50000);
	ASSERT_TRUE(show(&self->second));
	for (cpu = 0; cpu < self->cpus; cpu++) {
		EXPECT_EQ(memcmp(&self->first.cpus[cpu], &self->second.cpus[cpu],
				 sizeof(struct shown_cpu)), 0);
	}
}

TEST_F(live, exported_is_marked)
{
	struct pmuk_live_attr attr = live_clock(NSEC_PER_MSEC);
	int fd = live_open();

	attr.flags = EXPORT;
	ASSERT_GE(fd, 0);
	ASSERT_EQ(live_create(fd, attr), 0);
	ASSERT_TRUE(show(&self->second));
	EXPECT_STREQ(self->second.name, "pmuk_live");
	EXPECT_TRUE(self->second.exported);
	close(fd);
}

TEST_F(live, is_gone_when_closed)
{
	ASSERT_EQ(ioctl(self->fd, PMUK_LIVE_CLOSE), 0);
	ASSERT_TRUE(show(&self->second));
	EXPECT_EQ(self->second.nr, self->first.nr - 1);
	EXPECT_TRUE(!self->second.nr || self->second.id < self->first.id);
}

/* Runs @fn, which may block forever, in a process of its own. */
static int run_aside(int (*fn)(void))
{
	int pid = fork();

	if (!pid)
		_exit(fn());
	return pid;
}

static int read_all(void)
{
	static char text[FILE_MAX];

	return read_file(CONTEXTS, text, sizeof(text)) < 0;
}

static int create_another(void)
{
	int fd = live_open();

	return fd < 0 || live_create(fd, live_clock(NSEC_PER_MSEC)) || close(fd);
}

/* Returns whether the process is blocked, or has ended. */
static bool waits(int pid)
{
	char path[64], text[512], *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (read_file(path, text, sizeof(text)) < 0)
		return true;
	state = strrchr(text, ')');
	return state && state[1] && state[2] != 'R';
}

static bool has_ended(int pid, int *status)
{
	return waitpid(pid, status, WNOHANG) == pid;
}

/*
 * A long call on a context delays only readers of this context. Users of other contexts do not
 * wait.
 */
TEST_F(live, busy_context_stops_no_other)
{
	int reader, maker, made = -1, status = -1;
	bool came, killed = false;

	ASSERT_EQ(ioctl(self->fd, PMUK_LIVE_BUSY, 1), 0);
	reader = run_aside(read_all);
	EXPECT_TRUE(comes(waits(reader)));
	maker = run_aside(create_another);
	came = comes(has_ended(maker, &made));
	EXPECT_FALSE(has_ended(reader, &status));
	/* The reader can be killed before that call has ended. */
	kill(reader, SIGKILL);
	if (came)
		killed = comes(has_ended(reader, &status));
	ASSERT_EQ(ioctl(self->fd, PMUK_LIVE_BUSY, 0), 0);
	EXPECT_TRUE(came);
	EXPECT_EQ(made, 0);
	EXPECT_TRUE(killed && WIFSIGNALED(status));
	ASSERT_TRUE(show(&self->second));
	EXPECT_EQ(self->second.id, self->first.id);
}

/* The context is closed while a reader waits for it. */
TEST_F(live, closes_under_who_reads)
{
	int reader, status = -1;

	ASSERT_EQ(ioctl(self->fd, PMUK_LIVE_BUSY, 1), 0);
	reader = run_aside(read_all);
	EXPECT_TRUE(comes(waits(reader)));
	ASSERT_EQ(ioctl(self->fd, PMUK_LIVE_CLOSE), 0);
	EXPECT_TRUE(comes(has_ended(reader, &status)));
	EXPECT_EQ(status, 0);
	ASSERT_TRUE(show(&self->second));
	EXPECT_EQ(self->second.nr, self->first.nr - 1);
}

static bool is_in_state(struct shown *s, int cpu, const char *state)
{
	return show(s) && !strcmp(s->cpus[cpu].state, state);
}

/* Returns on how many CPUs the file has context @id with a single counter, or -1. */
static int held_on(uint64_t id)
{
	static char text[FILE_MAX];
	char *line, *rest, name[32], what[8];
	int cpus = 0, held = 0;
	uint64_t context, counters;

	if (read_file(ROOM, text, sizeof(text)) < 0)
		return -1;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (sscanf(line, "cpu %*d %7[a-z] %*d", what) == 1) {
			cpus++;
			continue;
		}
		if (!cpus || !numbers_of(line, "context", &context, "counters", &counters, NULL) ||
		    sscanf(line, " context %*u name %31s set", name) != 1)
			return -1;
		held += context == id && counters == 1 && !strcmp(name, "pmuk_live");
	}
	return held;
}

/* The file says who holds counters on each CPU, while they count. */
TEST_F(live, room_says_who_holds)
{
	EXPECT_EQ(held_on(self->first.id), self->cpus);
	ASSERT_EQ(ioctl(self->fd, PMUK_LIVE_STOP), 0);
	EXPECT_EQ(held_on(self->first.id), 0);
}

/* Returns on how many CPUs the file has a reservation of one register that nobody has borrowed. */
static int reserved_on(void)
{
	static char text[FILE_MAX];
	char *line, *rest;
	int reserved = 0;
	uint64_t id, counters, lent;

	if (read_file(ROOM, text, sizeof(text)) < 0)
		return -1;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		reserved += numbers_of(line, "reserves", &id, "counters", &counters, "lent", &lent,
				       NULL) && counters == 1 && !lent;
	return reserved;
}

/* The file says who has reserved counters on each CPU, while they do not count. */
TEST_F(live, room_says_who_reserves)
{
	struct pmuk_live_attr attr = live_clock(0);
	int fd = live_open();

	ASSERT_GE(fd, 0);
	attr.flags = 1 << 2;	/* PMUK_CTX_RESERVE */
	ASSERT_EQ(live_create(fd, attr), 0);
	EXPECT_EQ(reserved_on(), 0);
	ASSERT_EQ(ioctl(fd, PMUK_LIVE_STOP), 0);
	EXPECT_EQ(reserved_on(), self->cpus);
	close(fd);
	EXPECT_EQ(reserved_on(), 0);
}

/* A CPU that goes offline is shown as offline, with its last numbers. */
TEST_F(live, shows_hotplug)
{
	ASSERT_TRUE(comes(has_moved(&self->first, self->cpus)));
	if (self->cpus < 2 || write_file("/sys/devices/system/cpu/cpu1/online", "0"))
		SKIP(return, "no CPU can go offline");
	EXPECT_TRUE(comes(is_in_state(&self->second, 1, "offline")));
	EXPECT_STREQ(self->second.cpus[0].state, "live");
	EXPECT_EQ(self->second.cpus[1].set, -1);
	expect_later(_metadata, &self->first.cpus[1], &self->second.cpus[1]);
	ASSERT_EQ(write_file("/sys/devices/system/cpu/cpu1/online", "1"), 0);
	EXPECT_TRUE(comes(is_in_state(&self->first, 1, "live")));
	EXPECT_TRUE(comes(has_overflowed(&self->second, &self->first, self->cpus, 3)));
}

/* The cost of overflows is measured only while a user requests it. */
TEST_F(live, measures_when_asked)
{
	struct shown *a = &self->first, *b = &self->second;
	int cpu;

	EXPECT_TRUE(file_is(MEASURE, "0"));
	ASSERT_TRUE(comes(has_overflowed(b, a, self->cpus, 5)));
	for (cpu = 0; cpu < self->cpus; cpu++)
		EXPECT_EQ(b->cpus[cpu].overflow_ns, 0);

	ASSERT_EQ(write_file(MEASURE, "1"), 0);
	EXPECT_TRUE(file_is(MEASURE, "1"));
	ASSERT_TRUE(show(a));
	ASSERT_TRUE(comes(has_overflowed(b, a, self->cpus, 5)));
	for (cpu = 0; cpu < self->cpus; cpu++)
		EXPECT_GT(b->cpus[cpu].overflow_ns, a->cpus[cpu].overflow_ns);

	/* The latest measured overflow may end when the next overflow begins. */
	ASSERT_EQ(write_file(MEASURE, "0"), 0);
	ASSERT_TRUE(show(b));
	ASSERT_TRUE(comes(has_overflowed(a, b, self->cpus, 5)));
	ASSERT_TRUE(comes(has_overflowed(b, a, self->cpus, 5)));
	for (cpu = 0; cpu < self->cpus; cpu++)
		EXPECT_EQ(b->cpus[cpu].overflow_ns, a->cpus[cpu].overflow_ns);
}

/* A text that is not a number is refused, and changes nothing. */
TEST_F(live, measure_takes_numbers_only)
{
	static const char *const odd[] = {
		"yes", "-1", "1x", "0x", " ", "99999999999999999999", NULL
	};
	int i, on;

	for (on = 0; on < 2; on++) {
		ASSERT_EQ(write_file(MEASURE, on ? "1" : "0"), 0);
		for (i = 0; odd[i]; i++) {
			EXPECT_EQ(write_file(MEASURE, "%s", odd[i]), -1);
			EXPECT_TRUE(errno == EINVAL || errno == ERANGE) {
				TH_LOG("'%s': %s", odd[i], strerror(errno));
			}
		}
		EXPECT_TRUE(file_is(MEASURE, on ? "1" : "0"));
	}
}

/* ---- who may look; these tests are processes of their own, and give up what they are ---- */

#define PERFMON		BIT(CAP_PERFMON)
#define SYS_ADMIN	BIT(CAP_SYS_ADMIN)

/* The user nobody is refused by path, and also by a descriptor of the directory. */
TEST(nobody_may_not)
{
	int dir = open(PMUK, O_PATH | O_DIRECTORY);

	ASSERT_GE(dir, 0);
	ASSERT_EQ(be_nobody(0), 0);
	EXPECT_EQ(errno_of_open(CONTEXTS, O_RDONLY), EACCES);
	EXPECT_EQ(errno_of_open_at(dir, "contexts", O_RDONLY), EACCES);
	EXPECT_EQ(errno_of_open_at(dir, "room", O_RDONLY), EACCES);
	EXPECT_EQ(errno_of_open_at(dir, "measure", O_RDONLY), EACCES);
	EXPECT_EQ(errno_of_open_at(dir, "measure", O_WRONLY), EACCES);
}

TEST(root_without_capabilities_may_not)
{
	ASSERT_EQ(drop(PERFMON | SYS_ADMIN), 0);
	EXPECT_EQ(errno_of_open(CONTEXTS, O_RDONLY), EACCES);
	EXPECT_EQ(errno_of_open(ROOM, O_RDONLY), EACCES);
	EXPECT_EQ(errno_of(write_file(MEASURE, "1")), EACCES);
	EXPECT_EQ(errno_of(write_file(MEASURE, "0")), EACCES);
	EXPECT_TRUE(file_is(MEASURE, "0"));
}

/* Each of the two capabilities is sufficient. */
TEST(perfmon_may)
{
	ASSERT_EQ(drop(SYS_ADMIN), 0);
	EXPECT_EQ(errno_of_open(CONTEXTS, O_RDONLY), 0);
	EXPECT_EQ(errno_of_open(ROOM, O_RDONLY), 0);
	EXPECT_EQ(errno_of(write_file(MEASURE, "0")), 0);
}

TEST(sys_admin_may)
{
	ASSERT_EQ(drop(PERFMON), 0);
	EXPECT_EQ(errno_of_open(CONTEXTS, O_RDONLY), 0);
	EXPECT_EQ(errno_of_open(ROOM, O_RDONLY), 0);
	EXPECT_EQ(errno_of(write_file(MEASURE, "0")), 0);
}

TEST(contexts_is_to_be_read_only)
{
	ASSERT_EQ(drop(BIT(CAP_DAC_OVERRIDE)), 0);
	EXPECT_EQ(errno_of_open(CONTEXTS, O_WRONLY), EACCES);
	EXPECT_EQ(errno_of_open(CONTEXTS, O_RDONLY), 0);
}

TEST_HARNESS_MAIN
