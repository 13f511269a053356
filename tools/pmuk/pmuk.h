/* SPDX-License-Identifier: GPL-2.0 */
/* The interfaces between the parts of pmuk. */
#ifndef PMUK_H
#define PMUK_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

typedef uint32_t u32;
typedef uint64_t u64;

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#define NONE			UINT64_MAX	/* an unknown value, printed as "-" */
#define NSEC			1000000000ULL	/* per second */
#define MAX_EVENTS		4
#define EVENT_NAME		32
#define BUCKETS			40
#define IPC_BUCKETS		16

#define PROC			"/proc/pmuk_sched"
#define DEVICE			"/dev/pmuk_sched"
#define MODULE			"/sys/module/pmuk_sched"
#define DEBUGFS			"/sys/kernel/debug/pmuk"

#ifndef __printf
#define __printf(text, args)	__attribute__((__format__(printf, text, args)))
#endif
#ifndef __noreturn
#define __noreturn		__attribute__((__noreturn__))
#endif

/* ---- main.c: the commands; each returns the exit status ---- */

int cmd_top(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_hist(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_room(int argc, char **argv);
int cmd_consumers(int argc, char **argv);
int cmd_events(int argc, char **argv);
int cmd_reset(int argc, char **argv);
int cmd_enable(int argc, char **argv);
int cmd_disable(int argc, char **argv);

/* Prints the usage of the running command, and exits with status 2. */
__noreturn void usage(void);
/* Exits with a message if arguments follow the options. */
void no_more_arguments(int argc, char **argv);

/* ---- die.c: die() exits with a message, and so do helpers that fail ---- */

extern int failed_status;	/* the exit status of die(): 125 in pmuk stat, else 1 */

__noreturn __printf(1, 2) void die(const char *format, ...);
__printf(1, 2) void warn_user(const char *format, ...);
void *grow(void *array, size_t nr, size_t *room, size_t size);
void *zalloc(size_t size);
u64 number_or_die(const char *text, u64 least, u64 most, const char *what);
u64 seconds_or_die(const char *text);	/* "1.5" as ns */
/* Flushes @out, and exits with a message if a write has failed. */
void finish_output(FILE *out, const char *name);
u64 now_ns(void);

/* ---- output.c: a file that replaces an older one when it is complete ---- */

/* Exits with a message unless @name is to be a regular file. */
FILE *output_open(const char *name, mode_t mode);
void output_finish(FILE *out, const char *name);

/* ---- source.c: opens the kernel's files; a failure exits with the reason and the remedy ---- */

const char *rooted(const char *path);	/* @path below $PMUK_ROOT, valid until the next call */
/* Exits if the file of debugfs is missing. Other messages here ask for the module pmuk_sched. */
void check_debugfs(const char *path);
int open_source(const char *path, int flags);
char *read_source(const char *path, size_t *len);

#define CPU_LIST_MAX	4096

/* Reads "possible" or "online" CPUs as a list such as 0-3,7. Returns false if there is no list. */
bool read_cpu_list(const char *which, char list[CPU_LIST_MAX]);
/* Calls @found for each CPU of such a list. Returns false at a text that is no such list. */
bool each_cpu(const char *list, void (*found)(void *data, u32 cpu), void *data);

/* ---- read.c: parses the files of /proc/pmuk_sched ---- */

enum left { VOLUNTARY, SAME, OTHER, NR_LEFT };

/* Reasons to leave a CPU other than a wait or a preemption. Only CPUs count them. */
enum rest { THROTTLED, YIELDED, STOPPED, MIGRATED, NR_REST };

struct totals {
	u64 run, wait;		/* ns; wait may be NONE */
	u64 left[NR_LEFT];	/* how often the task has left a CPU */
	bool valid;
	u64 counts[MAX_EVENTS];	/* NONE: no such event */
};

enum kind {
	CPU, IDLE, IRQ, REST, TASK, GROUP, EXITED, STRAY, CGROUP, SUBTREE,
	WAIT_HIST, SLICE_HIST, IPC_HIST
};

struct entry {
	enum kind kind;
	u64 id;			/* CPU, PID, TGID or cgroup */
	u64 parent;		/* TASK: TGID; CGROUP, SUBTREE: the parent's id */
	u64 cgroup;		/* TASK, GROUP */
	u64 threads;		/* GROUP */
	u64 hard, soft;		/* IRQ: ns since boot, 0 if unknown */
	u64 rest[NR_REST];	/* REST: how often a CPU was left for other reasons */
	struct totals t;	/* IDLE: only run, left[VOLUNTARY] and counts */
	const char *name;	/* TASK, GROUP, CGROUP, SUBTREE */
};

struct histogram {
	enum kind kind;
	u64 cpu;
	u64 bucket[BUCKETS];
};

struct memory {
	u64 per_task, per_cpu, table, tasks;
};

struct reading {
	bool on;		/* the module counts; if not, no other field is set */
	u64 timestamp, since;
	int nr_events;
	char events[MAX_EVENTS][EVENT_NAME];
	const char *missing;	/* "none", or NAME:-ERRNO ... */
	struct memory memory;
	u64 unattributed;
	struct entry *entries;
	size_t nr, room;
	struct histogram *hists;
	size_t nr_hists, hists_room;
	char *text;		/* the file's text, which has the names */
};

/* @file: cpus, tasks, cgroups or hist */
void read_any(const char *file, struct reading *r);
/* Reads like read_any(), but ends with a message when nothing is counted. */
void read_on(const char *file, struct reading *r);
void forget(struct reading *r);
/* Decodes \ooo, with which the kernel's files escape newlines, backslashes and the like. */
void unescape(char *text);
/* Returns the first event of this name (a user may list one twice), or -1 if there is none. */
int event_index(const struct reading *r, const char *name);

/* ---- map.c: a hash table from numbers to numbers ---- */

struct map {
	struct slot { u64 key; size_t value; } *slots;
	size_t nr, room;
};

#define MAP_NONE	SIZE_MAX

/* Returns the place of @key's value, at first MAP_NONE. The place is valid until the next call. */
size_t *map_at(struct map *m, u64 key);
size_t map_find(const struct map *m, u64 key);	/* the value of @key, or MAP_NONE */
void map_free(struct map *m);

/* ---- delta.c: the difference of two readings ---- */

struct row {
	const struct entry *entry;	/* in the newer reading */
	struct totals d;
	u64 idle;		/* CPU: ns, NONE if unknown */
	u64 irq;		/* CPU: ns in interrupts, NONE if unknown */
	u64 rest[NR_REST];	/* CPU: NONE if unknown */
	const char *cgroup;	/* the path, or NULL */
};

struct delta {
	struct row *rows;
	size_t nr, room;
	u64 interval;		/* ns that the delta covers */
	bool total;		/* covers all since counting began, not since the older reading */
	size_t gone;		/* rows that only the older reading has */
};

enum view { TASKS, GROUPS, CGROUPS, SUBTREES, CPUS, NR_VIEWS };

#define SELECTED	64

/* The numbers of the tasks and processes that a delta is to have; without a number, all. */
struct selection {
	u64 ids[SELECTED];
	size_t nr;
};

/* @before: NULL or an empty reading: the totals since counting began */
void delta_make(struct delta *d, enum view view, const struct selection *only,
		const struct reading *before, const struct reading *now);
void delta_free(struct delta *d);
void totals_add(struct totals *sum, const struct totals *t);
/* True if no reset came between the readings: the totals of @now include those of @before. */
bool same_counting(const struct reading *before, const struct reading *now);

/* ---- format.c: numbers for people, in at most seven columns ---- */

#define CELL	24

struct ratios {
	double ipc, ghz;	/* negative: unknown */
};

struct ratios ratios_of(const struct totals *t, int cycles, int instructions);
char *format_ns(char *cell, u64 ns);
char *format_count(char *cell, u64 count);
char *format_ratio(char *cell, double ratio, bool valid);
char *format_percent(char *cell, u64 part, u64 all);
/*
 * Prints @text with '?' in place of control characters, which a terminal would obey. Cuts it to
 * @width columns, 0: does not cut. Returns the number of columns.
 */
int put_text(FILE *out, const char *text, int width);

/* ---- json.c ---- */

struct json {
	FILE *out;
	bool comma;
};

/* @key: NULL in arrays; @bracket: '{' or '[' to open, '}' or ']' to close */
void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j, char bracket);
void json_end(struct json *j);		/* ends the line of a document */
void json_text(struct json *j, const char *key, const char *text);
void json_number(struct json *j, const char *key, u64 number);	/* NONE: null */
void json_real(struct json *j, const char *key, double real);	/* negative: null */
void json_bool(struct json *j, const char *key, bool value);
/* Add members to the open object. */
void json_totals(struct json *j, const struct reading *r, const struct totals *t);
void json_events(struct json *j, const struct reading *r);
/* Returns the length of the UTF-8 sequence at @text, or 0 if there is none. */
int utf8_length(const char *text);

/* ---- table.c: rows sorted and printed ---- */

enum sort {
	BY_RUN, BY_WAIT, BY_IPC, BY_GHZ, BY_VOLUNTARY, BY_SAME, BY_OTHER, BY_ID, BY_NAME, NR_SORTS
};

extern const char *const sort_names[NR_SORTS];

struct table {
	const struct reading *r;
	enum view view;
	enum sort sort;
	bool reverse;
	int width;		/* columns of the screen; 0: no limit */
	size_t first, rows;	/* the rows to show */
};

enum sort sort_or_die(const char *name);
void table_sort(const struct table *t, struct delta *d);
bool table_with_cgroup(const struct table *t);	/* true: rows show their cgroup */
void table_head(const struct table *t, FILE *out);
void table_rows(const struct table *t, const struct delta *d, FILE *out);
void row_json(const struct table *t, const struct row *row, struct json *j);

/* ---- info.c ---- */

void print_memory(FILE *out, const struct reading *r);
void print_missing(FILE *out, const struct reading *r);

/* ---- term.c: the terminal, whose state is restored however pmuk ends ---- */

extern volatile sig_atomic_t resized, suspended;

void term_enter(void);
void term_leave(void);
void term_suspend(void);
void term_size(int *columns, int *lines);
/* Returns the key pressed within @ns, or 0; for arrow keys, vi(1)'s j and k. */
int term_key(u64 ns);

/* ---- signal.c: signals that end pmuk arrive only while pmuk waits ---- */

struct pollfd;

extern volatile sig_atomic_t signalled;		/* a signal to end pmuk has come, or 0 */

void catch_ends(void);
void signal_catch(int signal, void (*handler)(int), int flags);
void signal_hold(const int *signals, size_t nr);
void signal_begin(void);	/* a file that gets too large does not kill pmuk: the write fails */
void signal_restore(void);	/* undoes catch_ends() */
void signal_leave(void);	/* for a child, before its exec: undoes both */
void signal_let_in(void);	/* unblocks signals for a moment */
bool wait_ns(u64 ns);		/* false: a signal to end pmuk has come */
/* Returns how many of @fds are ready within @ns; also 0 after a signal or a child's exit. */
int poll_ns(struct pollfd *fds, size_t nr, u64 ns);

/* ---- command.c: running COMMAND ---- */

struct command {
	pid_t pid;
	int go[2];		/* a pipe: a byte starts COMMAND, end of file ends the child */
	int error;		/* errno if COMMAND could not be started */
	bool ended;
	int status;		/* the status that wait(2) returned */
	u64 user, system;	/* ns */
};

/* Forks a child that waits for command_go(). @cgroup: the directory of its cgroup, or NULL. */
void command_prepare(struct command *c, char **argv, const char *cgroup);
/* From now on, an exit of pmuk terminates COMMAND and waits for its end. */
void command_go(struct command *c);
bool command_poll(struct command *c, bool block);	/* true: COMMAND has ended */
/* Passes on a signal to pmuk, but not SIGINT and SIGQUIT: the terminal sends them to COMMAND. */
void command_signal(const struct command *c);
int command_exit_status(const struct command *c);

/* ---- cgroup.c: a cgroup for COMMAND ---- */

struct cgroup {
	char path[4096];	/* the directory */
	u64 id;
};

void cgroup_make(struct cgroup *c);
void cgroup_remove(struct cgroup *c);
/* Waits a moment until the cgroup's last tasks have exited; true: no task is left. */
bool cgroup_settle(const struct cgroup *c);

#endif
