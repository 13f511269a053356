// SPDX-License-Identifier: GPL-2.0
/*
 * pmuk stat: runs COMMAND in a cgroup of its own, and prints the totals of that cgroup.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pmuk.h"

#define FAILED	125	/* the exit status if pmuk fails, as with env(1) and timeout(1) */

struct job {
	char **argv;
	struct command command;
	struct cgroup cgroup;
	struct reading r;
	const struct totals *t;
	u64 elapsed;
	bool left;		/* some processes of COMMAND go on */
};

static void run(struct job *job)
{
	u64 begun;

	command_prepare(&job->command, job->argv, job->cgroup.path);
	begun = now_ns();
	command_go(&job->command);
	while (!command_poll(&job->command, false)) {
		poll_ns(NULL, 0, NSEC);
		command_signal(&job->command);
	}
	job->elapsed = now_ns() - begun;
}

static const struct totals *find_subtree(const struct reading *r, u64 id)
{
	size_t i;

	for (i = 0; i < r->nr; i++)
		if (r->entries[i].kind == SUBTREE && r->entries[i].id == id)
			return &r->entries[i].t;
	die(PROC "/cgroups does not have the cgroup of the command");
}

static void measure(struct job *job)
{
	struct reading before;

	read_on("cgroups", &before);
	catch_ends();
	cgroup_make(&job->cgroup);
	run(job);
	job->left = !cgroup_settle(&job->cgroup);
	read_on("cgroups", &job->r);
	if (!job->command.error)
		job->t = find_subtree(&job->r, job->cgroup.id);
	cgroup_remove(&job->cgroup);
	if (!same_counting(&before, &job->r))
		warn_user("counting began again meanwhile: these are totals of the end only");
	forget(&before);
}

static void put_ms(FILE *out, u64 ns, const char *what)
{
	if (ns == NONE)
		fprintf(out, "%18s     %s", "-", what);
	else
		fprintf(out, "%18.2f ms  %s", (double)ns / 1e6, what);
}

static void put_switches(FILE *out, const struct totals *t)
{
	static const char *const names[NR_LEFT] = {
		"voluntary switches", "preemptions by the same cgroup",
		"preemptions by other cgroups",
	};
	int i;

	for (i = 0; i < NR_LEFT; i++)
		fprintf(out, "%18llu     %s\n", (unsigned long long)t->left[i], names[i]);
}

static void put_ratio(FILE *out, const char *event, const struct ratios *r)
{
	if (!strcmp(event, "cycles") && r->ghz >= 0)
		fprintf(out, "   # %.3f GHz", r->ghz);
	if (!strcmp(event, "instructions") && r->ipc >= 0)
		fprintf(out, "   # %.2f per cycle", r->ipc);
}

static void put_counts(FILE *out, const struct reading *r, const struct totals *t)
{
	struct ratios ratios =
		ratios_of(t, event_index(r, "cycles"), event_index(r, "instructions"));
	int i;

	for (i = 0; i < r->nr_events; i++) {
		if (t->counts[i] == NONE)
			fprintf(out, "%18s     %-18s", "-", r->events[i]);
		else
			fprintf(out, "%18llu%c    %-18s", (unsigned long long)t->counts[i],
				t->valid ? ' ' : '?', r->events[i]);
		put_ratio(out, r->events[i], &ratios);
		fputc('\n', out);
	}
}

static void put_command(FILE *out, char **argv)
{
	fputs("\n of", out);
	for (; *argv; argv++) {
		fputc(' ', out);
		put_text(out, *argv, 0);
	}
	fputs(", with its children:\n\n", out);
}

static void put_totals(FILE *out, const struct job *job)
{
	const struct totals *t = job->t;

	put_command(out, job->argv);
	put_ms(out, t->run, "run");
	if (job->elapsed)
		fprintf(out, "                   # %.3f CPUs",
			(double)t->run / (double)job->elapsed);
	fputc('\n', out);
	put_ms(out, t->wait, "wait for a CPU\n");
	put_switches(out, t);
	put_counts(out, &job->r, t);
	fprintf(out, "\n%18.6f s   elapsed\n", (double)job->elapsed / 1e9);
	fprintf(out, "%18.6f s   user\n", (double)job->command.user / 1e9);
	fprintf(out, "%18.6f s   system\n\n", (double)job->command.system / 1e9);
	if (!t->valid)
		fputs(" ?: not all slices were counted: counts are too low\n", out);
	print_missing(out, &job->r);
	if (job->left)
		fputs(" Some processes of the command go on, and that is not in here.\n", out);
}

static void put_json(FILE *out, const struct job *job)
{
	struct json j = { .out = out };
	char **arg;

	json_open(&j, NULL, '{');
	json_open(&j, "command", '[');
	for (arg = job->argv; *arg; arg++)
		json_text(&j, NULL, *arg);
	json_close(&j, ']');
	json_number(&j, "exit_status", (u64)command_exit_status(&job->command));
	json_totals(&j, &job->r, job->t);
	json_text(&j, "missing", job->r.missing);
	json_number(&j, "elapsed_ns", job->elapsed);
	json_number(&j, "user_ns", job->command.user);
	json_number(&j, "system_ns", job->command.system);
	json_bool(&j, "processes_left", job->left);
	json_close(&j, '}');
	json_end(&j);
}

/* Appends: an older file keeps its contents until there is a report. */
static FILE *open_output(const char *name)
{
	FILE *out = name ? fopen(name, "ae") : stderr;

	if (!out)
		die("%s: %s", name, strerror(errno));
	return out;
}

/* Returns true if the file is pmuk's output or error output, so that COMMAND writes to it, too. */
static bool is_shared(FILE *out)
{
	struct stat file, own;
	int fd;

	if (fstat(fileno(out), &file))
		return false;
	for (fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
		if (!fstat(fd, &own) && own.st_dev == file.st_dev && own.st_ino == file.st_ino)
			return true;
	return false;
}

/* Empties the file, unless it is a pipe or the like, which cannot be emptied. */
static void report(FILE *out, const char *name, const struct job *job, bool json)
{
	if (name && !is_shared(out) && ftruncate(fileno(out), 0) && errno != EINVAL)
		die("%s: %s", name, strerror(errno));
	if (json)
		put_json(out, job);
	else
		put_totals(out, job);
}

int cmd_stat(int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' }, {} };
	const char *name = NULL;
	struct job job = {};
	bool json = false;
	FILE *out;
	int c;

	failed_status = FAILED;
	while ((c = getopt_long(argc, argv, "+jo:", options, NULL)) != -1) {
		if (c == 'o')
			name = optarg;
		else if (c == 'j')
			json = true;
		else
			usage();
	}
	if (optind == argc)
		usage();
	job.argv = argv + optind;
	out = open_output(name);
	measure(&job);
	if (job.command.error)
		warn_user("%s: %s", job.argv[0], strerror(job.command.error));
	else
		report(out, name, &job, json);
	finish_output(out, name ? name : "standard error");
	if (name)
		fclose(out);
	forget(&job.r);
	return command_exit_status(&job.command);
}
