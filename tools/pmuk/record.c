// SPDX-License-Identifier: GPL-2.0
/*
 * pmuk record: writes each context switch of the CPUs to a file, until COMMAND ends, the time is
 * over, or the user presses ^C. With --overwrite, a flight recorder, the rings are read only then.
 * With --raw, the module writes packets, which are smaller than records.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "recording.h"

#define PAGES		64
#define MAX_PAGES	16384	/* the module's limit */
#define DRAIN_NS	(NSEC / 5)	/* the longest time between two reads of a ring */

struct recorder {
	const char *name;
	FILE *out;
	u32 mode, nr_pages;
	u64 duration;			/* ns, NONE: no end */
	char *cpu_list;			/* NULL: all */
	struct stream *streams;
	struct pollfd *fds;
	size_t nr, room;
	unsigned char *buffer;		/* as large as a ring */
	struct command command;
	char **argv;			/* COMMAND and its arguments, or NULL */
	u64 bytes;
};

/* ---- which CPUs ---- */

static void add_cpu(struct recorder *rec, u64 cpu, bool wanted)
{
	struct stream s;
	size_t i;

	for (i = 0; i < rec->nr; i++)
		if (rec->streams[i].cpu == cpu)
			return;
	if (!stream_open(&s, (u32)cpu, rec->nr_pages, rec->mode)) {
		if (wanted)
			die("there is no CPU %llu, or it is offline", (unsigned long long)cpu);
		return;
	}
	rec->streams = grow(rec->streams, rec->nr, &rec->room, sizeof(*rec->streams));
	rec->streams[rec->nr++] = s;
}

/* Adds the CPUs of a list such as 0-3,7. */
static void add_list(struct recorder *rec, char *list)
{
	char *item, *save, *dash;
	u64 from, to;

	for (item = strtok_r(list, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
		dash = strchr(item, '-');
		if (dash)
			*dash = 0;
		from = number_or_die(item, 0, 65535, "-c");
		to = dash ? number_or_die(dash + 1, from, 65535, "-c") : from;
		for (; from <= to; from++)
			add_cpu(rec, from, true);
	}
}

static void add_cpus(struct recorder *rec, const struct reading *cpus)
{
	size_t i;

	if (rec->cpu_list)
		add_list(rec, rec->cpu_list);
	else
		for (i = 0; i < cpus->nr; i++)
			if (cpus->entries[i].kind == CPU)
				add_cpu(rec, cpus->entries[i].id, false);
	if (!rec->nr)
		die("there is no CPU to record");
}

/* ---- writing ---- */

static void put(struct recorder *rec, const void *data, size_t size)
{
	if (size && fwrite(data, size, 1, rec->out) != 1)
		die("%s: %s. The file is not complete", rec->name, strerror(errno));
	rec->bytes += size;
}

static void put_block(struct recorder *rec, u32 type, u32 cpu, const void *data, size_t size)
{
	struct recording_block block = { .type = type, .cpu = cpu, .size = size };

	put(rec, &block, sizeof(block));
	put(rec, data, size);
}

static void put_header(struct recorder *rec, const struct reading *cpus)
{
	struct recording_header h = {
		.magic = RECORDING_MAGIC,
		.order = RECORDING_ORDER,
		.version = RECORDING_VERSION,
		.mode = rec->mode,
		.nr_cpus = (u32)rec->nr,
		.begun = now_ns(),
	};

	memcpy(h.events, cpus->events, sizeof(h.events));
	put(rec, &h, sizeof(h));
}

/*
 * Writes the names of all tasks. Called before the recording and after it, because tasks exit and
 * begin meanwhile.
 */
static void put_names(struct recorder *rec)
{
	struct reading tasks;
	size_t i;

	read_on("tasks", &tasks);
	for (i = 0; i < tasks.nr; i++) {
		struct recording_task task = { .pid = (u32)tasks.entries[i].id };

		if (tasks.entries[i].kind != TASK)
			continue;
		snprintf(task.name, sizeof(task.name), "%s", tasks.entries[i].name);
		put_block(rec, RECORDING_TASK, 0, &task, sizeof(task));
	}
	forget(&tasks);
}

static void drain(struct recorder *rec, struct stream *s, u64 end)
{
	static const unsigned char zeros[8];
	size_t size = stream_read(s, end, rec->buffer);

	if (!size)
		return;
	put_block(rec, s->mode == PMUK_SCHED_RAW ? RECORDING_RAW : RECORDING_RECORDS, s->cpu,
		  rec->buffer, size);
	put(rec, zeros, -size % sizeof(zeros));
}

/*
 * Switches go on while this function runs. So for each CPU it first takes the statistics, and then
 * reads records only up to the head in these statistics: the two agree exactly.
 */
static void finish(struct recorder *rec)
{
	struct pmuk_sched_stat stat;
	u64 end, ended = now_ns(), switches = 0, lost = 0;
	size_t i;

	for (i = 0; i < rec->nr; i++) {
		struct stream *s = &rec->streams[i];

		stream_stat(s, &stat);
		end = stat.head > s->position ? stat.head : s->position;
		drain(rec, s, end);
		put_block(rec, RECORDING_STAT, s->cpu, &stat, sizeof(stat));
		switches += stat.switches;
		lost += stat.lost + stat.discarded;
		stream_close(s);
	}
	put_names(rec);
	put_block(rec, RECORDING_END, 0, &ended, sizeof(ended));
	finish_output(rec->out, rec->name);
	fprintf(stderr, "pmuk: %llu switches of %zu CPUs, %llu of them dropped; %llu bytes in %s\n",
		(unsigned long long)switches, rec->nr, (unsigned long long)lost,
		(unsigned long long)rec->bytes, rec->name);
}

/* ---- until the end ---- */

static void drain_all(struct recorder *rec)
{
	size_t i;

	for (i = 0; rec->mode != PMUK_SCHED_OVERWRITE && i < rec->nr; i++)
		drain(rec, &rec->streams[i], NONE);
}

static bool goes_on(struct recorder *rec, u64 begun)
{
	if (rec->argv) {
		/* COMMAND gets ^C from the terminal, too: wait until COMMAND ends */
		if (signalled == SIGTERM || signalled == SIGHUP)
			kill(rec->command.pid, signalled);
		signalled = 0;
		return !command_poll(&rec->command, false);
	}
	return !signalled && (rec->duration == NONE || now_ns() - begun < rec->duration);
}

static u64 patience(const struct recorder *rec, u64 begun)
{
	u64 gone = now_ns() - begun;

	if (rec->duration == NONE || rec->duration > gone + DRAIN_NS)
		return DRAIN_NS;
	return rec->duration > gone ? rec->duration - gone : 0;
}

/* Rings that overwrite are not read before the end, so they need not wake pmuk. */
static void loop(struct recorder *rec)
{
	u64 begun = now_ns();

	while (goes_on(rec, begun)) {
		if (rec->mode == PMUK_SCHED_OVERWRITE)
			poll_ns(NULL, 0, patience(rec, begun));
		else
			poll_ns(rec->fds, rec->nr, patience(rec, begun));
		drain_all(rec);
	}
}

/* Each CPU's stream takes a file. COMMAND, which was forked before, keeps the old limit. */
static void allow_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static void prepare(struct recorder *rec)
{
	struct reading cpus;
	size_t i;

	allow_files();
	read_on("cpus", &cpus);
	add_cpus(rec, &cpus);
	rec->out = fopen(rec->name, "we");
	if (!rec->out)
		die("%s: %s", rec->name, strerror(errno));
	rec->fds = zalloc(rec->nr * sizeof(*rec->fds));
	for (i = 0; i < rec->nr; i++)
		rec->fds[i] = (struct pollfd) { .fd = rec->streams[i].fd, .events = POLLIN };
	rec->buffer = zalloc(rec->streams[0].size);
	put_header(rec, &cpus);
	put_names(rec);
	forget(&cpus);
}

static int record(struct recorder *rec)
{
	catch_ends();
	if (rec->argv)
		command_prepare(&rec->command, rec->argv, NULL);
	prepare(rec);
	if (rec->argv)
		command_go(&rec->command);
	if (rec->command.error)
		warn_user("%s: %s", rec->argv[0], strerror(rec->command.error));
	loop(rec);
	finish(rec);
	fclose(rec->out);
	free(rec->streams);
	free(rec->fds);
	free(rec->buffer);
	return rec->argv ? command_exit_status(&rec->command) : 0;
}

static void set_mode(struct recorder *rec, u32 mode)
{
	if (rec->mode != PMUK_SCHED_DROP && rec->mode != mode)
		die("--overwrite keeps the latest switches, --raw the first ones; choose one");
	rec->mode = mode;
}

static void option(struct recorder *rec, int c, char *arg)
{
	switch (c) {
	case 'c':
		rec->cpu_list = arg;
		break;
	case 'm':
		rec->nr_pages = (u32)number_or_die(arg, 1, MAX_PAGES, "-m");
		if (rec->nr_pages & (rec->nr_pages - 1))
			die("-m: pages are a power of two, such as 64, not %s", arg);
		break;
	case 'o':
		rec->name = arg;
		break;
	case 't':
		rec->duration = seconds_or_die(arg);
		break;
	case 'O':
		set_mode(rec, PMUK_SCHED_OVERWRITE);
		break;
	case 'R':
		set_mode(rec, PMUK_SCHED_RAW);
		break;
	default:
		usage();
	}
}

int cmd_record(int argc, char **argv)
{
	static const struct option options[] = {
		{ "overwrite", no_argument, NULL, 'O' },
		{ "raw", no_argument, NULL, 'R' },
		{}
	};
	struct recorder rec = {
		.name = RECORDING_FILE,
		.nr_pages = PAGES,
		.duration = NONE,
	};
	int c;

	while ((c = getopt_long(argc, argv, "+c:m:o:t:", options, NULL)) != -1)
		option(&rec, c, optarg);
	if (optind < argc)
		rec.argv = argv + optind;
	if (rec.argv && rec.duration != NONE)
		die("-t is for recording without a COMMAND; otherwise the end of COMMAND counts");
	return record(&rec);
}
