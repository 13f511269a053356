// SPDX-License-Identifier: GPL-2.0
/*
 * pmuk: shows the scheduler statistics of the module pmuk_sched: which tasks run, wait, and are
 * preempted, and how many instructions they get done. See pmuk(1).
 */
#include <string.h>
#include <stdlib.h>
#include <getopt.h>

#include "pmuk.h"

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *arguments;
	const char *what;
} verbs[] = {
	{ "top", cmd_top,
	  "[-abr] [-d SECONDS] [-n TIMES] [-s KEY] [-v VIEW] [-p PIDS] [-l ROWS] [-w COLUMNS] [--json]",
	  "a table of tasks, processes, cgroups or CPUs, live" },
	{ "stat", cmd_stat, "[-o FILE] [--json] -- COMMAND ...",
	  "totals of a command and its children" },
	{ "hist", cmd_hist, "[wait|slice|ipc] [-c CPU] [-d SECONDS] [--json]",
	  "histograms of waits, run slices, or IPC" },
	{ "record", cmd_record,
	  "[-c CPUS] [-m PAGES] [-o FILE] [--overwrite | --raw | --buffer NAME]\n"
	  "                   [-t SECONDS | -- COMMAND ...]",
	  "each switch, or what kernel code exports, to a file of perf" },
	{ "report", cmd_report, "[-i FILE] [-s KEY] [-c CPU] [--json]",
	  "the contents of such a file" },
	{ "export", cmd_export, "[-o FILE] [--depth LEVELS] [--tasks]",
	  "OpenMetrics text, for Prometheus" },
	{ "info", cmd_info, "[--json]", "what is counted, and how much memory that takes" },
	{ "room", cmd_room, "[--json]", "how many more counters would fit on each CPU" },
	{ "consumers", cmd_consumers, "[-bcm] [-d SECONDS] [-n TIMES] [--json]",
	  "what the consumers of pmuk do and cost, live" },
	{ "events", cmd_events, "[EVENT,...]", "print or change the counted events" },
	{ "reset", cmd_reset, "", "set all totals to 0" },
	{ "enable", cmd_enable, "", "begin to count" },
	{ "disable", cmd_disable, "", "stop counting, and discard all totals" },
};

static const struct verb *running;

static void help(FILE *out)
{
	size_t i;

	fputs("usage: pmuk COMMAND [ARGUMENT]...\n", out);
	for (i = 0; i < ARRAY_SIZE(verbs); i++)
		fprintf(out, "    %-9s %s\n", verbs[i].name, verbs[i].what);
	fputs("pmuk COMMAND --help lists its arguments. The manual is pmuk(1).\n", out);
}

static void help_verb(FILE *out, const struct verb *v)
{
	fprintf(out, "usage: pmuk %s %s\n    %s\n", v->name, v->arguments, v->what);
}

void usage(void)
{
	if (running)
		help_verb(stderr, running);
	else
		help(stderr);
	exit(2);
}

void no_more_arguments(int argc, char **argv)
{
	if (optind >= argc)
		return;
	warn_user("'%s' is one argument too many", argv[optind]);
	usage();
}

static const struct verb *find_verb(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	warn_user("there is no command '%s'", name);
	usage();
}

static bool asks_for_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h");
}

static int run(int argc, char **argv)
{
	if (argc < 2)
		usage();
	if (asks_for_help(argv[1]) || !strcmp(argv[1], "help")) {
		help(stdout);
		return 0;
	}
	running = find_verb(argv[1]);
	if (argc > 2 && asks_for_help(argv[2])) {
		help_verb(stdout, running);
		return 0;
	}
	return running->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	int status;

	signal_begin();
	status = run(argc, argv);
	finish_output(stdout, "standard output");
	return status;
}
