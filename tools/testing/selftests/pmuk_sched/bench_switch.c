// SPDX-License-Identifier: GPL-2.0
/*
 * Measures how much more a context switch costs when tasks' counters are accounted at it:
 *
 *	bench_switch MODE...
 *
 * Two tasks on one CPU wake each other through pipes. That is done with nothing enabled
 * and in each MODE, by turns; printed are the time of a switch, as switch_none_ns, and by
 * how much that of each mode is longer, as switch_MODE_ns. Where time is counted in
 * instructions, those are instructions. Two counters everywhere: cycles, and instructions
 * or, where the machine does not count them, cycles once more.
 *
 * With on, a task also leaves its CPU to the idle task now and then, as there is no other: by how
 * many instructions more that takes, for each of the two switches, is printed as switch_idle_insn.
 *
 * off: pmuk_sched is there and does nothing
 * on: pmuk_sched
 * stream: and it writes a record of each switch, over the oldest
 * raw: and it writes a packet of each switch, while there is room
 * probe: a probe of the tracepoint sched_switch that does nothing, lib/tests/pmuk_bench_probe.c
 * schedstat: the scheduler's own statistics, which have no counters
 * perf: both tasks have counters of their own
 * perf_inherit: one has got them from the other, so those of one become the other's
 *	instead of being reprogrammed. Sums of each are kept, as inherit_stat asks for
 * bpf: a program on sched_switch reads two counters of the CPU, as
 *	bpf_perf_event_read_value() does it, and adds what they have counted since the
 *	switch before to sums in a hash table, by thread
 * bpf_read: the same with bpf_perf_event_read()
 * bpf_empty: a program that does nothing: what a program costs to call
 *
 * pmuk_sched is loaded and unloaded if it is a module.
 */
#include <linux/pmuk_sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../pmu_kapi/bench_bpf.h"

#define ROUNDS		9
#define ROUND_TURNS	31
#define ROUND_TRIPS	50		/* in a turn, two switches each: most turns see no tick */
#define NAPS		20		/* in a turn: most turns see no tick */

#define PARAMETERS	"/sys/module/pmuk_sched/parameters/"
#define SCHEDSTATS	"/proc/sys/kernel/sched_schedstats"
#define PROBE		"/sys/kernel/debug/pmuk_bench_probe/run"

static int cpu;
static uint64_t second;		/* PERF_COUNT_HW_*, besides cycles */

static void refuse(const char *why)
{
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, why);
	exit(1);
}

static int open_switch_counter(uint64_t config, int pid, int on_cpu, int inherit)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_HARDWARE,
		.config		= config,
		.read_format	= PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.inherit	= inherit,
		.inherit_stat	= inherit,
	};

	return need(open_event(&attr, pid, on_cpu), "perf_event_open");
}

/* Counted, and all the time. */
static void check_counter(int fd)
{
	struct { uint64_t count, enabled, running; } of;

	if (read(fd, &of, sizeof(of)) != sizeof(of))
		fail("read of a counter");
	if (!of.count || of.running != of.enabled)
		refuse("a counter has not counted all the time");
}

/* ---- pmuk_sched ---- */

static struct {
	int fd;
	void *pages;
	size_t size;
} stream;

static int sched_is_there(void)
{
	return !access(PARAMETERS "enabled", W_OK);
}

static void sched_end(void)
{
	put(PARAMETERS "enabled", "0");
}

/* perf keeps what it has enabled for all tasks for a second after the last counter is gone. */
static void none_begin(void)
{
	usleep(1500000);
	if (!sched_is_there())
		return;
	sched_end();
	syscall(SYS_delete_module, "pmuk_sched", O_NONBLOCK);
}

static void off_begin(void)
{
	if (!sched_is_there() && (system("modprobe pmuk_sched") || !sched_is_there()))
		refuse("pmuk_sched is not in this kernel, and no module that can be loaded");
	sched_end();
}

static void on_begin(void)
{
	char text[4096];

	off_begin();
	put(PARAMETERS "events", second == PERF_COUNT_HW_INSTRUCTIONS ? "cycles,instructions" :
									"cycles,cycles");
	put(PARAMETERS "enabled", "1");
	if (read_file("/proc/pmuk_sched/cpus", text, sizeof(text)) < 0)
		fail("/proc/pmuk_sched/cpus");
	if (!strstr(text, "\nstate on\n") || !strstr(text, "\nmissing none\n"))
		refuse("pmuk_sched has not got its counters");
}

static void stream_open(unsigned int nr_pages, unsigned int mode)
{
	struct pmuk_sched_stream attr = { .cpu = cpu, .nr_pages = nr_pages, .mode = mode };

	on_begin();
	stream.fd = need(open("/dev/pmuk_sched", O_RDWR), "/dev/pmuk_sched");
	need(ioctl(stream.fd, PMUK_SCHED_STREAM, &attr), "PMUK_SCHED_STREAM");
	stream.size = (1 + (mode == PMUK_SCHED_RAW ? 1 : nr_pages)) * sysconf(_SC_PAGESIZE);
	stream.pages = need_map(mmap(NULL, stream.size, PROT_READ, MAP_SHARED, stream.fd, 0),
				"mmap of /dev/pmuk_sched");
}

static void stream_begin(void)
{
	stream_open(16, PMUK_SCHED_OVERWRITE);
}

/* Room for all packets of a round. */
static void raw_begin(void)
{
	stream_open(1024, PMUK_SCHED_RAW);
}

static void stream_close(void)
{
	munmap(stream.pages, stream.size);
	close(stream.fd);
	sched_end();
}

static void stream_end(void)
{
	const struct perf_event_mmap_page *page = stream.pages;

	if (!page->data_head)
		refuse("no records in the stream");
	stream_close();
}

static void raw_end(void)
{
	struct pmuk_sched_stat stat;

	if (ioctl(stream.fd, PMUK_SCHED_STAT, &stat) || !stat.head || stat.lost)
		refuse("no packets in the stream, or not all of them");
	stream_close();
}

/* ---- a probe that does nothing ---- */

static int probe;

static void probe_begin(void) { probe = need(open(PROBE, O_RDONLY), PROBE); }
static void probe_end(void) { close(probe); }

/* ---- the scheduler's statistics ---- */

static void schedstat_begin(void) { put(SCHEDSTATS, "1"); }
static void schedstat_end(void) { put(SCHEDSTATS, "0"); }

/* ---- perf ---- */

static int perf[2];

static void perf_begin(void)
{
	perf[0] = open_switch_counter(PERF_COUNT_HW_CPU_CYCLES, 0, -1, 1);
	perf[1] = open_switch_counter(second, 0, -1, 1);
}

static void perf_end(void)
{
	for (int i = 0; i < 2; i++) {
		check_counter(perf[i]);
		close(perf[i]);
	}
}

/* ---- BPF ---- */

static struct {
	int events[2];
	int counters[2];	/* arrays of events, one for each CPU */
	int last;		/* per CPU: what they had counted at the last switch */
	int sums;		/* by thread */
	int program;
	int link;
} bpf;

#define R0	BPF_REG_0
#define R1	BPF_REG_1
#define R2	BPF_REG_2
#define R3	BPF_REG_3
#define R4	BPF_REG_4
#define R6	BPF_REG_6
#define R7	BPF_REG_7
#define FP	BPF_REG_10

/* on its stack */
#define COUNTER(i)	(-24 * ((i) + 1))	/* struct bpf_perf_event_value */
#define ZERO		-52
#define THREAD		-56
#define SUMS		-72			/* two of them */

/* the instruction is known to where it goes when land() is called */
#define JUMP(condition)		INSN(BPF_JMP | (condition) | BPF_K, R0, 0, 0, 0)

static struct bpf_insn program[64];
static int length;

/* Gives the index of the last one. */
static int emit(const struct bpf_insn *insns, int nr)
{
	memcpy(program + length, insns, nr * sizeof(*insns));
	length += nr;
	return length - 1;
}

#define EMIT(...)	\
	emit((struct bpf_insn[]){ __VA_ARGS__ }, sizeof((struct bpf_insn[]){ __VA_ARGS__ }) / \
						 sizeof(struct bpf_insn))

static void land(int jump)
{
	program[jump].off = length - jump - 1;
}

/* Gives the jump that is taken without one; nothing is one if there is no value. */
static int emit_read(int counter, int is_value)
{
	EMIT(LOAD_MAP(R1, bpf.counters[counter]), LOAD_MAP_END,
	     INSN(BPF_ALU | BPF_MOV | BPF_K, R2, 0, 0, -1));	/* BPF_F_CURRENT_CPU */
	if (is_value)
		return EMIT(MOV_REG(R3, FP), ADD(R3, COUNTER(counter)),
			    MOV(R4, sizeof(struct bpf_perf_event_value)),
			    CALL(perf_event_read_value),
			    JUMP(BPF_JNE));
	return EMIT(CALL(perf_event_read),
		    PUT(FP, COUNTER(counter), R0),
		    JUMP(BPF_JSLT));
}

/* Gives the jump that is taken when nothing is found; otherwise R0 points to it. */
static int emit_lookup(int map, int key)
{
	return EMIT(LOAD_MAP(R1, map), LOAD_MAP_END,
		    MOV_REG(R2, FP), ADD(R2, key), CALL(map_lookup_elem),
		    JUMP(BPF_JEQ));
}

/*
 * The task that leaves the CPU is still the current one. Nobody else writes its sums at that
 * time: idle tasks have one number for all, but no counters on other CPUs here.
 */
static void emit_accounting(int is_value)
{
	int leave[3], first;

	EMIT(CALL(get_current_pid_tgid),
	     PUT_W(FP, THREAD, R0),
	     INSN(BPF_ST | BPF_MEM | BPF_W, FP, 0, ZERO, 0));
	leave[0] = emit_read(0, is_value);
	leave[1] = emit_read(1, is_value);

	/* R6, R7: counted since the last switch */
	leave[2] = emit_lookup(bpf.last, ZERO);
	EMIT(GET(R6, FP, COUNTER(0)), GET(R1, R0, 0), PUT(R0, 0, R6), SUB_REG(R6, R1));
	EMIT(GET(R7, FP, COUNTER(1)), GET(R1, R0, 8), PUT(R0, 8, R7), SUB_REG(R7, R1));

	first = emit_lookup(bpf.sums, THREAD);
	EMIT(GET(R1, R0, 0), ADD_REG(R1, R6), PUT(R0, 0, R1));
	EMIT(GET(R1, R0, 8), ADD_REG(R1, R7), PUT(R0, 8, R1));
	EMIT(MOV(R0, 0), EXIT);

	land(first);
	EMIT(PUT(FP, SUMS, R6), PUT(FP, SUMS + 8, R7));
	EMIT(LOAD_MAP(R1, bpf.sums), LOAD_MAP_END,
	     MOV_REG(R2, FP), ADD(R2, THREAD), MOV_REG(R3, FP),
	     ADD(R3, SUMS), MOV(R4, BPF_ANY), CALL(map_update_elem));
	for (int i = 0; i < 3; i++)
		land(leave[i]);
	EMIT(MOV(R0, 0), EXIT);
}

static void bpf_attach(void)
{
	union bpf_attr attr = { 0 };

	bpf.program = bpf_load(BPF_PROG_TYPE_RAW_TRACEPOINT, program, length);
	attr.raw_tracepoint.name = (uintptr_t)"sched_switch";
	attr.raw_tracepoint.prog_fd = bpf.program;
	bpf.link = need(sys_bpf(BPF_RAW_TRACEPOINT_OPEN, &attr), "BPF_RAW_TRACEPOINT_OPEN");
}

static void bpf_detach(void)
{
	close(bpf.link);
	close(bpf.program);
	length = 0;
}

static void bpf_open_counter(int i, uint64_t config)
{
	union bpf_attr attr = { .flags = BPF_ANY };

	bpf.counters[i] = bpf_make_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, cpu + 1);
	bpf.events[i] = open_switch_counter(config, -1, cpu, 0);
	attr.map_fd = bpf.counters[i];
	attr.key = (uintptr_t)&cpu;
	attr.value = (uintptr_t)&bpf.events[i];
	need(sys_bpf(BPF_MAP_UPDATE_ELEM, &attr), "a counter for BPF");
}

static void bpf_begin_accounting(int is_value)
{
	bpf_open_counter(0, PERF_COUNT_HW_CPU_CYCLES);
	bpf_open_counter(1, second);
	bpf.last = bpf_make_map(BPF_MAP_TYPE_PERCPU_ARRAY, 4, 16, 1);
	bpf.sums = bpf_make_map(BPF_MAP_TYPE_HASH, 4, 16, 1024);
	emit_accounting(is_value);
	bpf_attach();
}

static void bpf_begin(void) { bpf_begin_accounting(1); }
static void bpf_read_begin(void) { bpf_begin_accounting(0); }

static void bpf_end(void)
{
	uint64_t sums[2] = { 0 };
	pid_t thread = getpid();
	union bpf_attr attr = {
		.map_fd	= bpf.sums,
		.key	= (uintptr_t)&thread,
		.value	= (uintptr_t)sums,
	};

	bpf_detach();
	if (sys_bpf(BPF_MAP_LOOKUP_ELEM, &attr) || !sums[0] || !sums[1])
		refuse("the BPF program has accounted nothing");
	close(bpf.sums);
	close(bpf.last);
	for (int i = 0; i < 2; i++) {
		check_counter(bpf.events[i]);
		close(bpf.events[i]);
		close(bpf.counters[i]);
	}
}

static void bpf_empty_begin(void)
{
	EMIT(MOV(R0, 0), EXIT);
	bpf_attach();
}

/* ---- two tasks ---- */

/**
 * struct mode - what is enabled while tasks switch
 * @name: on the command line, and in the output
 * @begin: enables it, before the second task is there; or NULL
 * @begin_task: what each of the two does then; or NULL
 * @end: disables it; or NULL
 * @is_wanted: on the command line
 * @ns: of ROUND_TRIPS round trips
 * @naps: instructions of NAPS naps; 0: they are not counted
 */
struct mode {
	const char *name;
	void (*begin)(void);
	void (*begin_task)(void);
	void (*end)(void);

	int is_wanted;
	int64_t ns[ROUNDS][ROUND_TURNS];
	int64_t naps[ROUNDS][ROUND_TURNS];
};

/* The first one is what the others are compared with. Those of perf are last: see none_begin(). */
static struct mode modes[] = {
	{ .name = "none", .begin = none_begin, .is_wanted = 1 },
	{ .name = "off", .begin = off_begin },
	{ .name = "on", .begin = on_begin, .end = sched_end },
	{ .name = "stream", .begin = stream_begin, .end = stream_end },
	{ .name = "raw", .begin = raw_begin, .end = raw_end },
	{ .name = "probe", .begin = probe_begin, .end = probe_end },
	{ .name = "schedstat", .begin = schedstat_begin, .end = schedstat_end },
	{ .name = "bpf", .begin = bpf_begin, .end = bpf_end },
	{ .name = "bpf_read", .begin = bpf_read_begin, .end = bpf_end },
	{ .name = "bpf_empty", .begin = bpf_empty_begin, .end = bpf_detach },
	{ .name = "perf", .begin_task = perf_begin, .end = perf_end },
	{ .name = "perf_inherit", .begin = perf_begin, .end = perf_end },
};

#define MODES	((int)(sizeof(modes) / sizeof(struct mode)))

/* Sends each byte back, until the other end closes the pipe. */
static void echo(int from, int to)
{
	char byte;

	while (read(from, &byte, 1) == 1)
		if (write(to, &byte, 1) != 1)
			break;
}

static uint64_t ping_pong(int from, int to)
{
	uint64_t start = now_ns();
	char byte = 0;

	for (int i = 0; i < ROUND_TRIPS; i++)
		if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
			fail("a pipe");
	return now_ns() - start;
}

/* Each round trip is this task's leaving the CPU once, and the other's. */
static void check_switches(const struct rusage *before)
{
	const long wanted = (ROUND_TURNS + 1) * ROUND_TRIPS;
	struct rusage after;
	long switches;

	getrusage(RUSAGE_SELF, &after);
	switches = after.ru_nvcsw + after.ru_nivcsw - before->ru_nvcsw - before->ru_nivcsw;
	if (switches < wanted || switches > wanted + wanted / 10)
		refuse("the tasks have not switched once for each byte");
}

/* Returns the count of a counter from open_switch_counter(). */
static uint64_t count_of(int fd)
{
	uint64_t of[3];

	if (read(fd, of, sizeof(of)) != sizeof(of))
		fail("read of a counter");
	return of[0];
}

/* Instructions of this CPU, with @counter, in which a task makes room for the idle task. */
static uint64_t take_naps(int counter)
{
	const struct timespec nap = { .tv_nsec = 20000 };
	uint64_t before = count_of(counter);

	for (int i = 0; i < NAPS; i++)
		nanosleep(&nap, NULL);
	return count_of(counter) - before;
}

static void take_naps_in(struct mode *mode, int round)
{
	int counter = open_switch_counter(PERF_COUNT_HW_INSTRUCTIONS, -1, cpu, 0);

	take_naps(counter);
	for (int turn = 0; turn < ROUND_TURNS; turn++)
		mode->naps[round][turn] = take_naps(counter);
	close(counter);
}

static void take_round(struct mode *mode, int round)
{
	int there[2], back[2];
	struct rusage before;
	pid_t child;

	if (mode->begin)
		mode->begin();
	if (pipe(there) || pipe(back))
		fail("pipe");
	child = need(fork(), "fork");
	if (mode->begin_task)
		mode->begin_task();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(there[1]);
		echo(there[0], back[1]);
		_exit(0);
	}
	close(there[0]);
	close(back[1]);

	getrusage(RUSAGE_SELF, &before);
	ping_pong(back[0], there[1]);	/* not measured: makes all ready */
	for (int turn = 0; turn < ROUND_TURNS; turn++)
		mode->ns[round][turn] = ping_pong(back[0], there[1]);
	check_switches(&before);

	close(there[1]);
	close(back[0]);
	waitpid(child, NULL, 0);
	if (second == PERF_COUNT_HW_INSTRUCTIONS && (mode == modes || mode->begin == on_begin))
		take_naps_in(mode, round);
	if (mode->end)
		mode->end();
}

static void want(const char *name)
{
	for (int i = 0; i < MODES; i++) {
		if (!strcmp(modes[i].name, name)) {
			modes[i].is_wanted = 1;
			return;
		}
	}
	fprintf(stderr, "usage: bench_switch MODE...\nmodes:");
	for (int i = 0; i < MODES; i++)
		fprintf(stderr, " %s", modes[i].name);
	fprintf(stderr, "\n");
	exit(2);
}

static uint64_t choose_second(void)
{
	int fd = open_counter(PERF_COUNT_HW_INSTRUCTIONS);

	if (fd < 0)
		return PERF_COUNT_HW_CPU_CYCLES;
	close(fd);
	return PERF_COUNT_HW_INSTRUCTIONS;
}

/* Returns how much more @of took than with nothing enabled in the same round, or the latter. */
static double added(int64_t (*of)[ROUND_TURNS], int64_t (*none)[ROUND_TURNS])
{
	int64_t more[ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		more[round] = median(of[round], ROUND_TURNS);
		if (of != none)
			more[round] -= median(none[round], ROUND_TURNS);
	}
	return median(more, ROUNDS);
}

static void report(struct mode *mode)
{
	printf("switch_%s_ns %.3f\n", mode->name,
	       added(mode->ns, modes->ns) / (2.0 * ROUND_TRIPS));
}

static void report_naps(struct mode *mode)
{
	printf("switch_idle_insn %.3f\n", added(mode->naps, modes->naps) / (2.0 * NAPS));
}

int main(int argc, char **argv)
{
	/* A task that is woken waits until its waker sleeps, so that all round trips are alike. */
	const struct sched_param batch = { 0 };

	for (int i = 1; i < argc; i++)
		want(argv[i]);
	need(sched_setscheduler(0, SCHED_BATCH, &batch), "SCHED_BATCH");
	prctl(PR_SET_TIMERSLACK, 1);
	cpu = stay_on_this_cpu();
	second = choose_second();

	for (int round = 0; round < ROUNDS; round++) {
		printf("bench: ... round %d of %d\n", round + 1, ROUNDS);
		fflush(stdout);
		for (int i = 0; i < MODES; i++)
			if (modes[i].is_wanted)
				take_round(&modes[i], round);
	}

	for (int i = 0; i < MODES; i++)
		if (modes[i].is_wanted)
			report(&modes[i]);
	for (int i = 1; i < MODES; i++)
		if (modes[i].is_wanted && modes[i].naps[0][0])
			report_naps(&modes[i]);
	return 0;
}
