/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the watchdog share, and who guards it.
 *
 * "Owner" is the CPU itself: its beat, in hardirq, and its NMI, which may interrupt that. Others
 * read what is marked so, without a lock, and make do with what is a moment old. NMIs and beats
 * never wait for anything here.
 */
#ifndef _PMUK_WDT_H
#define _PMUK_WDT_H

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/types.h>
#include <linux/watchdog.h>
#include <linux/workqueue.h>

#include "math.h"

struct pmuk_context;
struct pt_regs;

/* How a CPU is watched. Each is better than the one before. */
enum pmuk_wdt_rung {
	PMUK_WDT_NONE,			/* the only CPU, and no NMI of its own */
	PMUK_WDT_NEIGHBOUR,		/* another CPU notices */
	PMUK_WDT_NEIGHBOUR_NMI,		/* and asks it for its stack by an NMI */
	PMUK_WDT_TIMER_NMI,		/* its own timer notices */
	PMUK_WDT_OWN_NMI,		/* its own counter notices */
	PMUK_WDT_RUNGS,
};

/* What a counter begins with, when its clock is not known: some tenths of a millisecond to some. */
#define PMUK_WDT_TEST_EVENTS	1000000

#define PMUK_WDT_FRAMES		64	/* a third is the NMI's */
#define PMUK_WDT_BUCKETS	17	/* of T/32, from 1.0 T on; the last: all beyond 1.5 T */

struct pmuk_wdt_cpu {
	struct hrtimer beat;		/* started on its CPU, when it comes online or is armed */
	const struct pmuk_wdt_times *times;	/* as ->times of struct pmuk_wdt */
	u64 beat_at;			/* beat writes, others read: the latest */
	struct pmuk_wdt_gaps gaps;	/* beat: between its own */
	struct pmuk_wdt_watch watch;	/* owner: what its NMI goes by */
	u64 beat_count;			/* owner: the counter at the latest beat … */
	bool counted;			/* … if that is known */
	unsigned int touches;		/* whoever looks writes: how often it was touched then */
	u64 touched_at;			/* whoever looks writes: a touch was seen then */

	struct work_struct run;		/* ->lock of struct pmuk_wdt: lets the counter count */
	struct pmuk_wdt_clock clock;	/* NMI writes, others read */
	u64 nmi_at;			/* NMI writes, others read: the latest; 0: none yet */
	u64 nmi_count;			/* owner: the counter then */
	u64 silent_at;			/* NMI: the first to find that no CPU beats */
	unsigned long nmi_ip;		/* NMI writes, others read: what it has interrupted */
	u64 armed_ns;			/* NMI writes, others read: the next one is meant to come */
	u64 armed_events;		/* owner: the same in events */
	bool own;			/* owner writes, others read: its NMI fires */
	unsigned int blind;		/* beat: so many found the counter gone, or silent */
	const char *lost;		/* owner writes, others read: why its NMI does not fire */
	bool timer_on;			/* owner: its timer's interrupt is enabled … */
	bool timer;			/* owner writes, others read: … and has come as an NMI */
	u64 timer_at;			/* owner writes, others read: the next one is meant then */
	u64 timer_nmis;			/* NMI writes, others read */
	enum pmuk_wdt_rung told;	/* the worker: the rung that people know of */

	u64 telling_at;			/* beat writes, others read: it prints since then; or 0 */
	atomic_t reported;		/* whoever moved it from 0 to 1 reports */
	u64 stuck_since;		/* written by that one; 0: it has not yet */
	unsigned long trace[PMUK_WDT_FRAMES];	/* NMI: no room for it on the stack */

	u64 nmis;			/* NMI writes, others read, as are these: */
	u64 cost_ns;
	u64 cost_max_ns;
	atomic_t reports;		/* whoever reports, as is this: */
	atomic_t late[PMUK_WDT_BUCKETS];
};

struct pmuk_wdt_device {
	struct watchdog_device wdd;
	struct mutex lock;		/* user space's calls, and suspend */
	u64 expires;			/* ->lock writes, and whoever claims it; 0: not running */
	u64 pre_at;			/* the same, for the pretimeout */
	atomic64_t credited;		/* the longest stop of the machine since the latest ping */
	u64 held;			/* ->lock: what was left when suspended; 0: did not run */
	u64 held_pre;			/* ->lock: the same until the pretimeout */
	bool suspended;			/* ->lock */
	atomic_t owed;			/* a governor is to be told of a pretimeout */
	struct irq_work notify;
};

struct pmuk_wdt {
	struct mutex lock;		/* arming and disarming */
	struct pmuk_wdt_times times;	/* ->lock writes, and only while disarmed */
	struct pmuk_wdt_times isolated_times;	/* the same, of CPUs that are isolated */
	bool armed;			/* ->lock writes */
	bool suspended;			/* ->lock */
	int thresh;			/* ->lock: watchdog_thresh, or -errno, when last armed */
	int hotplug;			/* ->lock: the state, while armed */
	struct pmuk_context *ctx;	/* ->lock writes, beats read: NULL without counters */
	bool plain;			/* set where an overflow is no NMI, cleared by ->lock */
	cpumask_var_t counted;		/* ->lock: CPUs that the context is loaded on */
	cpumask_var_t wanted;		/* ->lock: the CPUs that the settings name */
	struct cpumask cpus;		/* ->lock writes, and only while disarmed: to be watched */
	struct cpumask beating;		/* as ->cpus: to beat, for the device too */
	struct cpumask isolated;	/* as ->cpus: to be disturbed as little as can be */
	struct cpumask watched;		/* CPU hotplug writes: CPUs that beat */
	bool backtraces;		/* can CPUs be asked for their stacks by NMI? */
	bool timers;			/* the timers have been requested, when loaded */
	bool panicking;			/* the panic notifier writes */

	struct work_struct manage;
	struct delayed_work configure;	/* the settings may have changed */
	atomic64_t manage_at;		/* whoever moves it on starts ->manage */
	atomic64_t alive_at;		/* the latest beat of any CPU */
	atomic64_t report_at;		/* whoever moved it begins a report */
	atomic_t unflushed;		/* lines were printed in NMI: consoles may lack them */
	atomic_t all_wanted;		/* the stacks of all CPUs are to be shown */
	atomic_t dying;			/* a CPU shows all stacks and will panic */
	atomic_t reports;
	atomic_t ended;			/* as many reports have been told as ended */
	struct pmuk_wdt_device dev;
};

extern struct pmuk_wdt pmuk_wdt;
DECLARE_PER_CPU(struct pmuk_wdt_cpu, pmuk_wdt_cpus);

static inline struct pmuk_wdt_cpu *pmuk_wdt_of(int cpu)
{
	return per_cpu_ptr(&pmuk_wdt_cpus, cpu);
}

/* main.c */
bool pmuk_wdt_is_isolated(int cpu);
bool pmuk_wdt_is_lively(const struct cpumask *cpus);
bool pmuk_wdt_wants_panic(void);
bool pmuk_wdt_wants_backtraces(void);
enum pmuk_wdt_rung pmuk_wdt_rung(int cpu);
const char *pmuk_wdt_rung_name(enum pmuk_wdt_rung rung);
int pmuk_wdt_set_threshold(u64 threshold);

/* counters.c */
int pmuk_wdt_counters_init(void);
void pmuk_wdt_counters_exit(void);
int pmuk_wdt_counters_start(struct pmuk_wdt *w);
void pmuk_wdt_counters_stop(struct pmuk_wdt *w);
void pmuk_wdt_counters_test(struct pmuk_wdt *w);
void pmuk_wdt_counters_judge(struct pmuk_wdt *w);
void pmuk_wdt_counters_retry(struct pmuk_wdt *w);

/* nmi.c */
struct pmuk_format_event;

u32 pmuk_wdt_nmi(const struct pmuk_format_event *event);
void pmuk_wdt_timer_nmi(struct pt_regs *regs);
void pmuk_wdt_timer_set(struct pmuk_wdt_cpu *c, u64 now);
bool pmuk_wdt_is_in_kgdb(void);
bool pmuk_wdt_is_quiet(void);

/* beat.c */
u64 pmuk_wdt_touched_at(struct pmuk_wdt_cpu *c, int cpu);
void pmuk_wdt_expect(struct pmuk_wdt_cpu *c, u64 count);
void pmuk_wdt_say_alive(u64 now);
int pmuk_wdt_beats_start(struct pmuk_wdt *w);
void pmuk_wdt_beats_stop(struct pmuk_wdt *w);

/* report.c */
#define PMUK_WDT_TELLING_NS	(60 * NSEC_PER_SEC)

bool pmuk_wdt_is_telling(const struct pmuk_wdt_cpu *c, u64 now);
unsigned int pmuk_wdt_trace(struct pmuk_wdt_cpu *c);
bool pmuk_wdt_is_printing(const struct pmuk_wdt_cpu *c, unsigned int frames);
void pmuk_wdt_show_here(struct pmuk_wdt_cpu *c, struct pt_regs *regs);
void pmuk_wdt_report_own(struct pmuk_wdt_cpu *c, struct pt_regs *regs, u64 now);
void pmuk_wdt_report_other(struct pmuk_wdt_cpu *self, int cpu, u64 now);
void pmuk_wdt_recovered(struct pmuk_wdt_cpu *self, u64 now);
void pmuk_wdt_die(struct pt_regs *regs, const char *why);
void pmuk_wdt_flush(struct pmuk_wdt_cpu *self);

/* device.c */
int pmuk_wdt_device_init(struct pmuk_wdt_device *d);
void pmuk_wdt_device_exit(struct pmuk_wdt_device *d);
void pmuk_wdt_device_check(struct pmuk_wdt_device *d, u64 now, struct pt_regs *regs);
void pmuk_wdt_device_credit(struct pmuk_wdt_device *d, u64 ns, bool kgdb);
void pmuk_wdt_device_pay(struct pmuk_wdt_device *d);
u64 pmuk_wdt_device_next(const struct pmuk_wdt_device *d, u64 now, u64 threshold);
void pmuk_wdt_device_suspend(struct pmuk_wdt_device *d);
void pmuk_wdt_device_resume(struct pmuk_wdt_device *d);

/* sysfs.c */
extern const struct attribute_group *pmuk_wdt_groups[];

void pmuk_wdt_sysfs_init(void);
void pmuk_wdt_sysfs_exit(void);

/* debugfs.c */
void pmuk_wdt_debugfs_init(void);
void pmuk_wdt_debugfs_exit(void);

#endif /* _PMUK_WDT_H */
