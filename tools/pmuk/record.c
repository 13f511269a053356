// SPDX-License-Identifier: GPL-2.0
/*
 * pmuk record: writes each context switch of the CPUs to a file, until COMMAND ends, the time is
 * over, or the user presses ^C. With --overwrite, a flight recorder, the rings are read only then.
 * With --raw, the module writes packets, which are smaller than records. With --buffer, samples of
 * an exported context come in place of switches. See recording.h.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording.h"

#define RING_BYTES	(256U << 10)
#define RING_BYTES_MAX	(64U << 20)	/* the limit of pmuk_sched */
#define DRAIN_NS	(NSEC / 5)	/* the longest time between two reads of a ring */
#define INITIAL_PIDS	0xeffffffc	/* the inode of the initial pid namespace */

struct recorded_cpu {
	struct stream stream;		/* the switches */
	struct cpu_switches switches;
	struct buffer buffer;		/* in place of switches, but for their CPU */
};

struct recorder {
	const char *name;
	u32 mode, nr_pages;
	u64 duration;			/* ns, NONE: no end */
	u64 begun;			/* ns of CLOCK_MONOTONIC */
	const char *cpu_list;		/* NULL: all */
	struct recorded_cpu *cpus;
	struct pollfd *fds;		/* track has the first ones, cpus the rest */
	size_t nr, room;
	unsigned char *buffer;		/* as large as a ring */
	struct command command;
	char **argv;			/* COMMAND and its arguments, or NULL */
	char **all;			/* all arguments of pmuk */
	struct perfdata file;
	struct track track;
	struct switches switches;
	struct reading counting;	/* at the beginning */
	struct buffers buffers;		/* unless its name is NULL */
};

/* ---- which CPUs ---- */

static void add_cpu(void *data, u32 cpu)
{
	struct recorded_cpu c = { .switches.cpu = cpu };
	struct recorder *rec = data;
	size_t i;

	for (i = 0; i < rec->nr; i++)
		if (rec->cpus[i].switches.cpu == cpu)
			return;
	if (!track_open(&rec->track, cpu) && rec->cpu_list && !rec->buffers.name)
		die("there is no CPU %u, or it is offline", cpu);
	rec->cpus = grow(rec->cpus, rec->nr, &rec->room, sizeof(*rec->cpus));
	rec->cpus[rec->nr++] = c;
}

static void add_list(struct recorder *rec, const char *list, const char *source)
{
	if (!each_cpu(list, add_cpu, rec))
		die("%s: a list of CPUs such as 0-3,7 is needed, not '%s'", source, list);
}

static void add_counted(struct recorder *rec, const struct reading *cpus)
{
	size_t i;

	for (i = 0; i < cpus->nr; i++)
		if (cpus->entries[i].kind == CPU)
			add_cpu(rec, (u32)cpus->entries[i].id);
}

static void add_possible(struct recorder *rec)
{
	char list[CPU_LIST_MAX];

	if (!read_cpu_list("possible", list))
		die("the kernel does not list its CPUs; is /sys mounted?");
	add_list(rec, list, "the kernel's list of CPUs");
}

/* Adds the CPUs that the user wants, those of pmuk_sched, or all whose buffers may exist. */
static void add_cpus(struct recorder *rec, const struct reading *cpus)
{
	if (rec->cpu_list)
		add_list(rec, rec->cpu_list, "-c");
	else if (cpus)
		add_counted(rec, cpus);
	else
		add_possible(rec);
}

static bool open_stream(struct recorder *rec, struct recorded_cpu *c)
{
	u32 cpu = c->switches.cpu;

	if (rec->buffers.name)
		return buffer_open(&rec->buffers, &c->stream, cpu, rec->nr_pages);
	if (!stream_open(&c->stream, cpu, rec->nr_pages, rec->mode))
		return false;
	switches_add_cpu(&rec->switches, cpu);
	return true;
}

/* A map may wait for a grace period, so the buffers of the first CPUs have filled meanwhile. */
static void begin_buffers(struct recorder *rec)
{
	size_t i;

	for (i = 0; rec->buffers.name && i < rec->nr; i++)
		buffer_begin(&rec->buffers, &rec->cpus[i].buffer, &rec->cpus[i].stream);
}

/* An offline CPU has no switches, but a buffer may have been made for it. */
static void open_streams(struct recorder *rec)
{
	size_t i, nr = 0;

	for (i = 0; i < rec->nr; i++) {
		struct recorded_cpu c = rec->cpus[i];

		if (open_stream(rec, &c)) {
			rec->cpus[nr++] = c;
			continue;
		}
		if (rec->cpu_list)
			die("there is no CPU %u, or it has no buffer, or none any more",
			    c.switches.cpu);
	}
	rec->nr = nr;
	if (!nr && rec->buffers.name)
		die("%s has no buffers yet", rec->buffers.name);
	if (!nr)
		die("there is no CPU to record");
	begin_buffers(rec);
}

/* ---- writing ---- */

static void drain(struct recorder *rec, struct recorded_cpu *c, u64 end)
{
	size_t size = stream_read(&c->stream, end, rec->buffer);

	if (rec->buffers.name)
		buffer_records(&rec->buffers, &c->buffer, c->switches.cpu, rec->buffer, size);
	else if (rec->mode == PMUK_SCHED_RAW)
		switches_packets(&rec->switches, &c->switches, rec->buffer, size);
	else
		switches_records(&rec->switches, &c->switches, rec->buffer, size);
}

/*
 * At the mark of a round, perf prints all up to the newest time of the round before. That is right
 * if each round reads all that is in each ring. A packet may become readable much later than its
 * switch, so packets have no marks. Names come first, because a switch is written with the process
 * of its thread.
 */
static void drain_all(struct recorder *rec)
{
	size_t i;

	track_drain(&rec->track);
	for (i = 0; rec->mode != PMUK_SCHED_OVERWRITE && i < rec->nr; i++) {
		drain(rec, &rec->cpus[i], NONE);
		if (rec->buffers.name)
			buffer_lost(&rec->buffers, &rec->cpus[i].buffer, &rec->cpus[i].stream);
	}
	if (rec->mode == PMUK_SCHED_DROP)
		perfdata_put_record(&rec->file, PERFDATA_FINISHED_ROUND, 0, NULL, 0, NULL);
}

/* Takes the statistics of all CPUs, one right after the other: the CPUs end together. */
static void end_cpus(const struct recorder *rec, struct recording_account *account)
{
	size_t i;

	for (i = 0; i < rec->nr; i++) {
		account->cpus[i].cpu = rec->cpus[i].switches.cpu;
		stream_stat(&rec->cpus[i].stream, &account->cpus[i].stat);
	}
	account->ended = now_ns();
}

/*
 * Switches go on while this function runs. It reads records only up to the head in the statistics:
 * the two agree exactly.
 */
static void finish_cpu(struct recorder *rec, struct recorded_cpu *c,
		       const struct pmuk_sched_stat *stat)
{
	drain(rec, c, stat->head > c->stream.position ? stat->head : c->stream.position);
	switches_lost(&rec->switches, &c->switches, stat->lost);
}

static void finish_buffers(struct recorder *rec)
{
	u64 samples = 0, unknown = 0, lost = 0;
	size_t i;

	drain_all(rec);
	for (i = 0; i < rec->nr; i++) {
		samples += rec->cpus[i].buffer.samples;
		unknown += rec->cpus[i].buffer.unknown;
		lost += rec->cpus[i].buffer.lost;
	}
	perfdata_finish(&rec->file, rec->all, NULL, 0);
	fprintf(stderr, "pmuk: %llu samples of %zu CPUs, and %llu lost; %llu bytes in %s\n",
		(unsigned long long)samples, rec->nr, (unsigned long long)lost,
		(unsigned long long)rec->file.bytes, rec->name);
	if (unknown)
		warn_user("%llu samples are left out: %s changed its counters during the recording",
			  (unsigned long long)unknown, rec->buffers.name);
	map_free(&rec->buffers.ids);
}

/* The open streams keep the module, so its file is there. */
static void check_counting(const struct recorder *rec)
{
	struct reading now;

	read_any("cpus", &now);
	if (!same_counting(&rec->counting, &now))
		warn_user("pmuk_sched stopped or restarted counting during the recording: %s",
			  "switches may be missing, or have counts of other events");
	forget(&now);
}

static void finish(struct recorder *rec)
{
	size_t i, size = sizeof(struct recording_account) + rec->nr * sizeof(struct recording_cpu);
	struct recording_account *account = zalloc(size);
	u64 switches = 0, lost = 0;

	*account = (struct recording_account) {
		.version = RECORDING_VERSION,
		.mode = rec->mode,
		.begun = rec->begun,
		.nr_cpus = (u32)rec->nr,
	};
	end_cpus(rec, account);
	track_drain(&rec->track);	/* all tasks that have run until now have names in there */
	for (i = 0; i < rec->nr; i++) {
		finish_cpu(rec, &rec->cpus[i], &account->cpus[i].stat);
		switches += account->cpus[i].stat.switches;
		lost += account->cpus[i].stat.lost + account->cpus[i].stat.discarded;
	}
	perfdata_finish(&rec->file, rec->all, account, size);
	free(account);
	fprintf(stderr, "pmuk: %llu switches of %zu CPUs, %llu of them dropped; %llu bytes in %s\n",
		(unsigned long long)switches, rec->nr, (unsigned long long)lost,
		(unsigned long long)rec->file.bytes, rec->name);
	check_counting(rec);
}

/* A close may wait for several RCU grace periods, so this comes when all has been written. */
static void close_streams(struct recorder *rec)
{
	size_t i;

	for (i = 0; i < rec->nr; i++)
		stream_close(&rec->cpus[i].stream);
}

/* ---- until the end ---- */

/* Stops polling buffers that were closed, as poll(2) would not wait. Returns false if all were. */
static bool has_streams(struct recorder *rec)
{
	size_t i, left = 0;

	for (i = 0; i < rec->nr; i++) {
		struct pollfd *fd = &rec->fds[rec->track.nr + i];

		if (fd->revents & POLLHUP)
			fd->fd = -1;
		left += fd->fd >= 0;
	}
	return left;
}

static bool goes_on(struct recorder *rec, u64 begun)
{
	bool there = has_streams(rec);

	if (rec->argv) {
		command_signal(&rec->command);
		return !command_poll(&rec->command, false);
	}
	return !signalled && there && (rec->duration == NONE || now_ns() - begun < rec->duration);
}

static u64 patience(const struct recorder *rec, u64 begun)
{
	u64 gone = now_ns() - begun;

	if (rec->duration == NONE || rec->duration > gone + DRAIN_NS)
		return DRAIN_NS;
	return rec->duration > gone ? rec->duration - gone : 0;
}

/* Rings that overwrite are not read before the end, so only names need to wake pmuk. */
static void loop(struct recorder *rec)
{
	size_t nr = rec->track.nr + (rec->mode == PMUK_SCHED_OVERWRITE ? 0 : rec->nr);
	u64 begun = now_ns();

	while (goes_on(rec, begun)) {
		poll_ns(rec->fds, nr, patience(rec, begun));
		drain_all(rec);
	}
}

/* Each CPU takes two files. COMMAND, which was forked before, keeps the old limit. */
static void allow_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static void prepare_loop(struct recorder *rec)
{
	struct pollfd *fds = zalloc((rec->track.nr + rec->nr) * sizeof(*fds));
	size_t i;

	rec->buffer = zalloc(rec->cpus[0].stream.size);
	rec->fds = fds;
	for (i = 0; i < rec->track.nr; i++)
		*fds++ = (struct pollfd) { rec->track.streams[i].fd, POLLIN, 0 };
	for (i = 0; i < rec->nr; i++)
		*fds++ = (struct pollfd) { rec->cpus[i].stream.fd, POLLIN, 0 };
}

static void define_events(struct recorder *rec, const struct reading *cpus)
{
	if (cpus)
		switches_begin(&rec->switches, &rec->file, &rec->track, cpus);
	track_begin(&rec->track, &rec->file, !cpus);
	rec->buffers.file = &rec->file;
	rec->buffers.track = &rec->track;
	rec->buffers.first = rec->track.event + 1;
}

/* Opens streams last: reading /proc takes long, and their rings would overflow meanwhile. */
static void prepare_for(struct recorder *rec, const struct reading *cpus)
{
	perfdata_open(&rec->file, rec->name);
	define_events(rec, cpus);
	add_cpus(rec, cpus);
	put_present(&rec->track);
	rec->begun = now_ns();
	open_streams(rec);
	prepare_loop(rec);
}

static void prepare(struct recorder *rec)
{
	allow_files();
	if (rec->buffers.name) {
		prepare_for(rec, NULL);
		return;
	}
	read_on("cpus", &rec->counting);
	prepare_for(rec, &rec->counting);
}

/* The module knows tasks by their numbers in the initial pid namespace, perf by those in pmuk's. */
static void check_namespace(void)
{
	struct stat s;

	if (!stat(rooted("/proc/self/ns/pid"), &s) && s.st_ino != INITIAL_PIDS)
		die("tasks would have wrong names, as pmuk runs in a pid namespace of its own: %s",
		    "record in the initial one, as with docker run --pid=host");
}

static int record(struct recorder *rec)
{
	check_namespace();
	catch_ends();
	if (rec->argv)
		command_prepare(&rec->command, rec->argv, NULL);
	prepare(rec);
	signal_let_in();
	if (signalled)
		exit(128 + signalled);	/* the recording has not begun: an older one stays */
	if (rec->argv)
		command_go(&rec->command);
	if (rec->command.error) {
		warn_user("%s: %s", rec->argv[0], strerror(rec->command.error));
		command_poll(&rec->command, true);
		exit(command_exit_status(&rec->command));	/* an older recording stays */
	}
	loop(rec);
	if (rec->buffers.name)
		finish_buffers(rec);
	else
		finish(rec);
	track_check_cpus(&rec->track, !rec->cpu_list);
	track_end(&rec->track);
	close_streams(rec);
	forget(&rec->counting);
	free(rec->cpus);
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

static u32 pages_of(u32 bytes)
{
	return bytes / (u32)sysconf(_SC_PAGESIZE);
}

static void option(struct recorder *rec, int c, char *arg)
{
	switch (c) {
	case 'c':
		rec->cpu_list = arg;
		break;
	case 'm':
		rec->nr_pages = (u32)number_or_die(arg, 1, pages_of(RING_BYTES_MAX), "-m");
		if (rec->nr_pages & (rec->nr_pages - 1))
			die("-m: pages are a power of two, such as 64, not %s", arg);
		break;
	case 'o':
		rec->name = arg;
		break;
	case 't':
		rec->duration = seconds_or_die(arg);
		break;
	case 'B':
		rec->buffers.name = arg;
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
		{ "buffer", required_argument, NULL, 'B' },
		{ "overwrite", no_argument, NULL, 'O' },
		{ "raw", no_argument, NULL, 'R' },
		{}
	};
	struct recorder rec = {
		.name = RECORDING_FILE,
		.nr_pages = pages_of(RING_BYTES),
		.duration = NONE,
		.all = argv,
	};
	int c;

	while ((c = getopt_long(argc, argv, "+c:m:o:t:", options, NULL)) != -1)
		option(&rec, c, optarg);
	if (rec.buffers.name && rec.mode != PMUK_SCHED_DROP)
		die("--overwrite and --raw are for switches, not with --buffer");
	if (optind < argc)
		rec.argv = argv + optind;
	if (rec.argv && rec.duration != NONE)
		die("-t is for recording without a COMMAND; otherwise the end of COMMAND counts");
	return record(&rec);
}
