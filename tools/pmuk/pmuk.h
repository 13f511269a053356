/* SPDX-License-Identifier: GPL-2.0 */
/* The interfaces between the parts of pmuk, the reader of pmuk_sched's statistics. */
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
#define NONE			UINT64_MAX	/* the kernel does not tell: "-" */
#define NSEC			1000000000ULL	/* per second */
#define MAX_EVENTS		4
#define EVENT_NAME		32
#define BUCKETS			40
#define IPC_BUCKETS		16

#define PROC			"/proc/pmuk_sched"
#define DEVICE			"/dev/pmuk_sched"
#define MODULE			"/sys/module/pmuk_sched"

#ifndef __printf
#define __printf(text, args)	__attribute__((__format__(printf, text, args)))
#endif
#ifndef __noreturn
#define __noreturn		__attribute__((__noreturn__))
#endif

/* ---- main.c: the commands; what they return is the exit status ---- */

int cmd_top(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_hist(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_events(int argc, char **argv);
int cmd_reset(int argc, char **argv);
int cmd_enable(int argc, char **argv);
int cmd_disable(int argc, char **argv);

/* Says how the command that runs is used, and ends with 2. */
__noreturn void usage(void);
/* Ends with a message if there is anything behind the options. */
void no_more_arguments(int argc, char **argv);

/* ---- die.c: ending with a message; memory that is there, or the end ---- */

extern int failed_status;	/* the exit status of die(), 1 but for pmuk stat */

__noreturn __printf(1, 2) void die(const char *format, ...);
__printf(1, 2) void warn_user(const char *format, ...);
void *grow(void *array, size_t nr, size_t *room, size_t size);
void *zalloc(size_t size);
u64 number_or_die(const char *text, u64 least, u64 most, const char *what);
u64 seconds_or_die(const char *text);	/* "1.5" as ns */
/* Writes it out, with a message if that does not work. */
void finish_output(FILE *out, const char *name);
u64 now_ns(void);

/* ---- source.c: files of the kernel, and what to do when they cannot be had ---- */

const char *rooted(const char *path);	/* below $PMUK_ROOT; good until the next call */
int open_source(const char *path, int flags);
char *read_source(const char *path, size_t *len);

/* ---- read.c: what is in /proc/pmuk_sched ---- */

enum left { VOLUNTARY, SAME, OTHER, NR_LEFT };

/* For reasons that are neither waiting nor preemption; CPUs only. */
enum rest { THROTTLED, YIELDED, STOPPED, MIGRATED, NR_REST };

struct totals {
	u64 run, wait;		/* ns; wait may be NONE */
	u64 left[NR_LEFT];	/* how often it has left a CPU */
	bool valid;
	u64 counts[MAX_EVENTS];	/* NONE where there is no such event */
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
	struct totals t;	/* IDLE: run, left[VOLUNTARY], counts */
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
	bool on;		/* if not, there is nothing else */
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
	char *text;		/* names point into it */
};

/* @file: cpus, tasks, cgroups or hist */
void read_any(const char *file, struct reading *r);
/* Reads like read_any(), but ends with a message when nothing is counted. */
void read_on(const char *file, struct reading *r);
void forget(struct reading *r);
/* Newlines, backslashes and the like are \ooo in files of the kernel. */
void unescape(char *text);
/* The first of that name, as one may be asked for twice; -1: is not counted. */
int event_index(const struct reading *r, const char *name);

/* ---- map.c: from numbers to what belongs to them ---- */

struct map {
	struct slot { u64 key; size_t value; } *slots;
	size_t nr, room;
};

#define MAP_NONE	SIZE_MAX

/* Where to keep the value of @key; MAP_NONE is in it at first. Good until the next call. */
size_t *map_at(struct map *m, u64 key);
size_t map_find(const struct map *m, u64 key);	/* or MAP_NONE */
void map_free(struct map *m);

/* ---- delta.c: what happened between two readings ---- */

struct row {
	const struct entry *entry;	/* of the newer reading */
	struct totals d;
	u64 idle;		/* CPU: ns, NONE if not known */
	u64 irq;		/* CPU: ns in interrupts, NONE if not known */
	u64 rest[NR_REST];	/* CPU: NONE if not known */
	const char *cgroup;	/* the path, or NULL */
};

struct delta {
	struct row *rows;
	size_t nr, room;
	u64 interval;		/* ns that it is about */
	bool total;		/* since counting began, not since the older reading */
	size_t gone;		/* in the older reading only */
};

enum view { TASKS, GROUPS, CGROUPS, SUBTREES, CPUS, NR_VIEWS };

/* @before: NULL or nothing read: all since counting began */
void delta_make(struct delta *d, enum view view, const struct reading *before,
		const struct reading *now);
void delta_free(struct delta *d);
void totals_add(struct totals *sum, const struct totals *t);
/* Whether the one goes on where the other was: no reset between them. */
bool same_counting(const struct reading *before, const struct reading *now);

/* ---- format.c: numbers for people, in at most seven columns ---- */

#define CELL	24

struct ratios {
	double ipc, ghz;	/* negative: not known */
};

struct ratios ratios_of(const struct totals *t, int cycles, int instructions);
char *format_ns(char *cell, u64 ns);
char *format_count(char *cell, u64 count);
char *format_ratio(char *cell, double ratio, bool valid);
char *format_percent(char *cell, u64 part, u64 all);
/* Without what a terminal would take for commands; cut to @width columns, 0: not cut. How many. */
int put_text(FILE *out, const char *text, int width);

/* ---- json.c ---- */

struct json {
	FILE *out;
	bool comma;
};

/* @key: NULL in arrays; @bracket: '{' or '[', or the closing one */
void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j, char bracket);
void json_end(struct json *j);		/* of a document */
void json_text(struct json *j, const char *key, const char *text);
void json_number(struct json *j, const char *key, u64 number);	/* NONE: null */
void json_real(struct json *j, const char *key, double real);	/* negative: null */
void json_bool(struct json *j, const char *key, bool value);
/* Members of the object that is open. */
void json_totals(struct json *j, const struct reading *r, const struct totals *t);
void json_events(struct json *j, const struct reading *r);
/* The length of the UTF-8 sequence at @text, 0 if it is none. */
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
	int width;		/* columns there are; 0: no limit */
	size_t first, rows;	/* which to show */
};

enum sort sort_or_die(const char *name);
void table_sort(const struct table *t, struct delta *d);
bool table_with_cgroup(const struct table *t);	/* whether rows show their cgroup */
void table_head(const struct table *t, FILE *out);
void table_rows(const struct table *t, const struct delta *d, FILE *out);
void row_json(const struct table *t, const struct row *row, struct json *j);

/* ---- info.c ---- */

void print_memory(FILE *out, const struct reading *r);
void print_missing(FILE *out, const struct reading *r);

/* ---- term.c: the terminal, given back however pmuk ends ---- */

extern volatile sig_atomic_t resized, suspended;

void term_enter(void);
void term_leave(void);
void term_suspend(void);
void term_size(int *columns, int *lines);
/* The next key within @ns, or 0; an arrow is what vi(1) has for it. */
int term_key(u64 ns);

/* ---- signal.c: those that want an end come while pmuk waits, and at no other time ---- */

struct pollfd;

extern volatile sig_atomic_t signalled;		/* the one that wants an end, or 0 */

void catch_ends(void);
void signal_catch(int signal, void (*handler)(int), int flags);
void signal_hold(const int *signals, size_t nr);
void signal_restore(void);	/* in a child, before it becomes another program */
bool wait_ns(u64 ns);		/* false: a signal wants an end */
/* How many of @fds are ready within @ns; 0 also when a signal, or a child's end, has come. */
int poll_ns(struct pollfd *fds, size_t nr, u64 ns);

/* ---- command.c: running COMMAND ---- */

struct command {
	pid_t pid;
	int go[2];		/* a pipe: a byte, and it may begin; none, and it ends */
	int error;		/* the errno of what went wrong before it began */
	bool ended;
	int status;		/* of wait(2) */
	u64 user, system;	/* ns */
};

/* Makes a process that waits for command_go(); @cgroup: a directory it is to enter, or NULL. */
void command_prepare(struct command *c, char **argv, const char *cgroup);
void command_go(struct command *c);
bool command_poll(struct command *c, bool block);	/* whether it has ended */
int command_exit_status(const struct command *c);

/* ---- cgroup.c: a cgroup of one's own ---- */

struct cgroup {
	char path[4096];	/* its directory; "": there is none */
	u64 id;
};

void cgroup_make(struct cgroup *c);
void cgroup_remove(struct cgroup *c);
/* Waits until all that has ended in it is accounted for; whether it is empty now. */
bool cgroup_settle(const struct cgroup *c);

#endif
