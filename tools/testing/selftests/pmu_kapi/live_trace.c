// SPDX-License-Identifier: GPL-2.0
/*
 * Tracepoints report the life of a context of /dev/pmuk_live: its begin and end, each turn of its
 * sets, each overflow, and each lost record.
 */
#include <sys/stat.h>

#include "live.h"
#include "harness.h"

#define TRACING		"/sys/kernel/tracing/instances/pmuk_live"
#define EVENTS		TRACING "/events/pmu_kapi/enable"

/* Holds the reports about one CPU. */
struct told_cpu {
	uint64_t switches, overflows, lost;
	int set;		/* latest active set; -1: none yet */
	/* A switch came from another set than @set, or went to the same set, or to none. */
	bool odd;
};

struct told {
	int creates, loads, closes, other;
	uint64_t id;			/* id of the created context */
	int load;		/* value of the load */
	bool in_order;		/* create, load, all others, close */
	struct told_cpu cpus[MAX_CPUS];
};

FIXTURE(trace)
{
	int fd;
	int cpus;
	struct told told;
};

FIXTURE_SETUP(trace)
{
	self->fd = live_open();
	ASSERT_GE(self->fd, 0);
	self->cpus = nr_cpus();
	ASSERT_LE(self->cpus, MAX_CPUS);
	rmdir(TRACING);		/* left by an aborted run */
	ASSERT_EQ(mkdir(TRACING, 0700), 0);
	ASSERT_EQ(write_file(TRACING "/trace_clock", "mono"), 0);
	ASSERT_EQ(write_file(EVENTS, "1"), 0);
}

FIXTURE_TEARDOWN(trace)
{
	write_file(EVENTS, "0");
	close(self->fd);
	EXPECT_EQ(rmdir(TRACING), 0);
}

static bool is_of(const struct told *t, uint64_t id)
{
	return t->creates == 1 && t->id == id;
}

static void take_create(struct told *t, uint64_t id, int value)
{
	t->in_order &= !t->creates && !value;
	t->creates++;
	t->id = id;
}

static void take_load(struct told *t, uint64_t id, int value)
{
	t->in_order &= is_of(t, id) && !t->closes;
	t->loads++;
	t->load = value;
}

static void take_close(struct told *t, uint64_t id, int value)
{
	t->in_order &= is_of(t, id) && t->loads && !value;
	t->closes++;
}

static void take_switch(struct told *t, int cpu, unsigned int from, unsigned int to)
{
	struct told_cpu *at = &t->cpus[cpu];

	at->odd |= from == to || to > 1 || (at->set >= 0 && from != (unsigned int)at->set);
	at->set = to;
	at->switches++;
}

static void take_overflow(struct told *t, int cpu, unsigned int set, unsigned int num)
{
	t->cpus[cpu].odd |= set > 1 || num;
	t->cpus[cpu].overflows++;
}

static void take_of_cpu(struct told *t, const char *line, uint64_t id, uint64_t cpu)
{
	uint64_t a, b;

	t->in_order &= is_of(t, id) && t->loads && !t->closes;
	if (!strncmp(line, "pmuk_switch: ", 13) && number_of(line, "from", &a) &&
	    number_of(line, "to", &b) && strstr(line, " ns="))
		take_switch(t, cpu, a, b);
	else if (!strncmp(line, "pmuk_overflow: ", 15) && number_of(line, "set", &a) &&
		 number_of(line, "counter", &b) && strstr(line, " action=0x"))
		take_overflow(t, cpu, a, b);
	else if (!strncmp(line, "pmuk_lost: ", 11) && number_of(line, "count", &a))
		t->cpus[cpu].lost += a;
	else
		t->other++;
}

static void take_line(struct told *t, const char *line)
{
	uint64_t id, cpu;
	int value;

	line = strstr(line, ": pmuk_");
	if (!line)
		return;
	line += 2;
	if (!number_of(line, "context", &id))
		t->other++;
	else if (sscanf(line, "pmuk_context_create: %*s value=%d", &value) == 1)
		take_create(t, id, value);
	else if (sscanf(line, "pmuk_context_load: %*s value=%d", &value) == 1)
		take_load(t, id, value);
	else if (sscanf(line, "pmuk_context_close: %*s value=%d", &value) == 1)
		take_close(t, id, value);
	else if (number_of(line, "cpu", &cpu) && cpu < MAX_CPUS)
		take_of_cpu(t, line, id, cpu);
	else
		t->other++;
}

/* Ends tracing, and reads all reports. */
static bool take_all(struct told *t)
{
	char line[512];
	FILE *f;
	int i;

	memset(t, 0, sizeof(*t));
	t->in_order = true;
	for (i = 0; i < MAX_CPUS; i++)
		t->cpus[i].set = -1;
	if (write_file(EVENTS, "0"))
		return false;
	f = fopen(TRACING "/trace", "r");
	while (f && fgets(line, sizeof(line), f))
		take_line(t, line);
	if (f)
		fclose(f);
	return f;
}

/* Reads the numbers of the latest context, which is stopped, from <debugfs>/pmuk/contexts. */
static bool shown(int cpu, uint64_t *overflows, uint64_t *lost)
{
	FILE *f = fopen("/sys/kernel/debug/pmuk/contexts", "r");
	char line[512];
	int at, found = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "context ", 8))
			found = 0;
		else if (sscanf(line, "  instance cpu %d", &at) == 1 && at == cpu)
			found += number_of(line, "overflows", overflows);
		else if (sscanf(line, "  buffer cpu %d", &at) == 1 && at == cpu)
			found += number_of(line, "lost", lost);
	}
	if (f)
		fclose(f);
	return found == 2;
}

struct truth {
	uint64_t switches, overflows, lost, messages_lost;
};

/* Returns whether messages have reported at least the first lost records. */
static bool has_lost(const struct pmuk_live_cpu *at, const void *arg)
{
	return at->records_lost;
}

/* A context is created, gets overflows and losses, and is closed. @truth gets its own numbers. */
static void live_and_close(struct __test_metadata *_metadata, int fd, int cpus,
			   struct truth *truth)
{
	struct pmuk_live_cpu at;
	int cpu;

	ASSERT_EQ(live_create(fd, live_clock(2 * NSEC_PER_MSEC)), 0);
	ASSERT_TRUE(comes(live_has_run(fd, cpus, 3) &&
			  live_on_all(fd, 0, cpus, has_lost, NULL)));
	ASSERT_EQ(ioctl(fd, PMUK_LIVE_STOP), 0);
	for (cpu = 0; cpu < cpus; cpu++) {
		ASSERT_EQ(live_look(fd, cpu, &at), 0);
		ASSERT_TRUE(shown(cpu, &truth[cpu].overflows, &truth[cpu].lost));
		truth[cpu].switches = at.runs[0] + at.runs[1] - 1;
		truth[cpu].messages_lost = at.records_lost;
	}
	ASSERT_EQ(ioctl(fd, PMUK_LIVE_CLOSE), 0);
}

TEST_F(trace, tells_a_life)
{
	struct truth truth[MAX_CPUS];
	struct told *t = &self->told;
	int cpu;

	live_and_close(_metadata, self->fd, self->cpus, truth);
	ASSERT_TRUE(take_all(t));
	EXPECT_EQ(t->creates, 1);
	EXPECT_EQ(t->loads, 1);
	EXPECT_EQ(t->load, 0);
	EXPECT_EQ(t->closes, 1);
	EXPECT_EQ(t->other, 0);
	EXPECT_TRUE(t->in_order);
	for (cpu = 0; cpu < self->cpus; cpu++) {
		EXPECT_EQ(t->cpus[cpu].switches, truth[cpu].switches);
		EXPECT_EQ(t->cpus[cpu].overflows, truth[cpu].overflows);
		EXPECT_EQ(t->cpus[cpu].lost, truth[cpu].messages_lost);
		EXPECT_LE(t->cpus[cpu].lost, truth[cpu].lost);
		EXPECT_FALSE(t->cpus[cpu].odd);
	}
}

/* The load of a context fails. The reports are the error and the end of the context. */
TEST_F(trace, tells_why_not)
{
	struct pmuk_live_attr attr = live_clock(0);
	struct told *t = &self->told;
	int why;

	attr.type = 0x7fffffff;
	ASSERT_EQ(live_create(self->fd, attr), -1);
	why = errno;
	ASSERT_TRUE(take_all(t));
	EXPECT_EQ(t->creates, 1);
	EXPECT_EQ(t->loads, 1);
	EXPECT_EQ(t->load, -why);
	EXPECT_EQ(t->closes, 1);
	EXPECT_TRUE(t->in_order);
}

/* The tracepoints report no event while tracing is off. */
TEST_F(trace, is_silent_when_off)
{
	struct told *t = &self->told;

	ASSERT_EQ(write_file(EVENTS, "0"), 0);
	ASSERT_EQ(live_create(self->fd, live_clock(2 * NSEC_PER_MSEC)), 0);
	ASSERT_TRUE(comes(live_has_run(self->fd, self->cpus, 3)));
	ASSERT_EQ(ioctl(self->fd, PMUK_LIVE_CLOSE), 0);
	ASSERT_TRUE(take_all(t));
	EXPECT_EQ(t->creates + t->loads + t->closes + t->other, 0);
}

TEST_HARNESS_MAIN
