/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state that the files of the watchdog share, and what guards each field.
 *
 * "Owner" is the CPU itself: its beat, in hardirq, and its NMI, which may interrupt the beat. Other
 * CPUs read the fields marked "others read" without a lock, and accept values that are a moment
 * old. NMIs and beats take no lock and never wait.
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

struct perf_branch_stack;
struct pmuk_context;
struct pt_regs;

/* The levels at which a CPU is watched, from the worst to the best. */
enum pmuk_wdt_levels {
	PMUK_WDT_NONE,			/* the only CPU, and without an NMI of its own */
	PMUK_WDT_NEIGHBOUR,		/* another CPU reports a lockup */
	PMUK_WDT_NEIGHBOUR_NMI,		/* another CPU reports it, and its stack by NMI */
	PMUK_WDT_TIMER_NMI,		/* the NMI of the CPU's timer reports a lockup */
	PMUK_WDT_OWN_NMI,		/* the NMI of the CPU's cycle counter reports a lockup */
	PMUK_WDT_LEVELS,
};

/*
 * The first period of a counter, while the rate of its clock is not known: this many cycles take
 * some tenths of a millisecond to some milliseconds.
 */
#define PMUK_WDT_TEST_EVENTS	1000000

struct pmuk_wdt_device {
	struct watchdog_device wdd;
	struct mutex lock;		/* held in calls from user space, and to suspend */
	/* ->credit comes on top of the next two times; 0: there is none. cmpxchg claims a time. */
	u64 expires;			/* time of the restart */
	u64 pre_at;			/* time of the pretimeout */
	atomic64_t credit;		/* the longest stop of the machine since the latest ping */
	u64 held __guarded_by(&lock);	/* time left at suspend; 0: the device did not run */
	u64 pre_held __guarded_by(&lock);	/* time left to the pretimeout then; 0: none */
	bool suspended __guarded_by(&lock);
	atomic_t notify_pending;	/* the pretimeout governor has yet to be called */
	struct irq_work notify;		/* calls the pretimeout governor */
};

struct pmuk_wdt {
	struct mutex lock;		/* held to arm and to disarm */
	struct pmuk_wdt_times times;	/* ->lock writes, and only while disarmed */
	struct pmuk_wdt_times isolated_times;	/* ->lock writes likewise: for isolated CPUs */
	bool armed __guarded_by(&lock);
	bool suspended __guarded_by(&lock);
	int thresh __guarded_by(&lock);	/* watchdog_thresh, or -errno, when last armed */
	int next_thresh __guarded_by(&lock);	/* watchdog_thresh, or -errno, when last read */
	int hotplug __guarded_by(&lock);	/* the CPU hotplug state, while armed */
	struct pmuk_context *ctx __guarded_by(&lock);	/* NULL: no counters; beats read it, too */
	bool unplaced __guarded_by(&lock);	/* no CPU of ->cpus was online to count on */
	/* An overflow was no NMI: pmuk_wdt_counters_judge() will free the counters. */
	bool no_nmi;
	struct cpumask counted __guarded_by(&lock);	/* the CPUs that ->ctx counts on */
	struct cpumask wanted __guarded_by(&lock);	/* CPUs that the settings name */
	struct cpumask cpus;		/* ->lock writes, and only while disarmed: CPUs to watch */
	struct cpumask beating;		/* ->lock writes likewise: CPUs with a beat */
	struct cpumask isolated;	/* ->lock writes likewise: CPUs with few beats and NMIs */
	struct cpumask watched;		/* ->lock or CPU hotplug writes: CPUs that beat now */
	bool backtraces;		/* an NMI can make other CPUs print their stacks */
	bool timers;			/* const once loaded: the timers were requested */
	bool panicking;			/* the panic notifier writes */

	struct work_struct manage;	/* logs levels, and gets counters back */
	struct delayed_work configure;	/* the settings may have changed */
	atomic64_t manage_at;		/* time at which a beat queues ->manage; cmpxchg to claim */
	atomic64_t alive_at;		/* time of the latest beat of any CPU */
	atomic64_t report_at;		/* time of the latest report; cmpxchg to claim */
	atomic64_t aborted_at;		/* time at which sched_ext aborted a scheduler; 0: never */
	atomic_t unflushed;		/* lines printed in NMI may not be on the consoles yet */
	atomic_t all_wanted;		/* the next beat shows the stacks of all CPUs */
	atomic_t panic_claimed;		/* a CPU shows all stacks and will panic */
	atomic_t reports;
	atomic_t ended;			/* ->reports at the latest hardlockup_report_end() */
	struct pmuk_wdt_device dev;
};

extern struct pmuk_wdt pmuk_wdt;

/* The depth of a saved stack. The functions of the NMI itself take about a third of it. */
#define PMUK_WDT_FRAMES		64

/* Reports are counted by how late they come: T/32 a bucket, from 1.0 T on, the last from 1.5 T. */
#define PMUK_WDT_BUCKETS	17

/*
 * The holder of ->lock writes the fields of "owner" and "beat" while the CPU is not in ->watched.
 */
struct pmuk_wdt_cpu {
	struct hrtimer beat;		/* owner starts, any cancels: runs while in ->watched */
	const struct pmuk_wdt_times *times;	/* written while disarmed: normal, or isolated */
	u64 beat_at;			/* beat writes, others read: time of the latest beat */
	struct pmuk_wdt_gaps gaps;	/* beat: gaps between the CPU's own beats */
	struct pmuk_wdt_watch watch;	/* owner: what the NMI knows of the CPU */
	u64 beat_count;			/* owner: the counter at the latest beat, if ->counted */
	bool counted;			/* owner: the latest beat could read the counter */
	unsigned int touches;		/* any CPU writes: touches at the latest check */
	u64 touched_at;			/* any CPU writes: when the latest touch was noticed */

	struct work_struct run __guarded_by(&pmuk_wdt.lock);	/* keeps the CPU busy */
	struct pmuk_wdt_clock clock;	/* NMI writes, others read */
	u64 nmi_at;			/* NMI writes, others read: the latest NMI; 0: none yet */
	u64 nmi_count;			/* owner: the counter at the latest NMI */
	u64 silent_at;			/* NMI: time of the first NMI that found no CPU beating */
	unsigned long nmi_ip;		/* NMI writes, others read: the interrupted code */
	const struct perf_branch_stack *branches;	/* NMI: of the present overflow, or NULL */
	u64 armed_ns;			/* NMI writes, others read: time to the next NMI */
	u64 armed_events;		/* owner: events to the next NMI */
	bool own;			/* owner writes, others read: the counter's NMI fires */
	unsigned int failed_checks;	/* beat: checks in a row that found no working NMI */
	const char *lost_reason;	/* owner writes, others read: why the NMI does not fire */
	bool timer_on;			/* owner: the timer's interrupt is enabled */
	bool timer;			/* owner writes, others read: that interrupt is an NMI */
	u64 timer_at;			/* owner writes, others read: when the timer expires */
	u64 timer_nmis;			/* NMI writes, others read: their number */
	enum pmuk_wdt_levels reported_level __guarded_by(&pmuk_wdt.lock);	/* as last logged */

	u64 reporting_since;		/* beat writes, others read: prints since then; 0: no */
	atomic_t reported;		/* the CPU that changes this from 0 to 1 reports */
	u64 stuck_since;		/* the CPU that reports writes; 0: not reported yet */
	unsigned long trace[PMUK_WDT_FRAMES];	/* NMI: the saved stack */

	/* NMIs write these three fields, others read them. */
	u64 nmis;			/* the number of NMIs, without those of the timer */
	u64 cost_ns;			/* the time that all of them have taken */
	u64 cost_max_ns;		/* the time of the longest */
	atomic_t reports;		/* reports of this CPU */
	atomic_t late[PMUK_WDT_BUCKETS];	/* reports by how late they came */
};

DECLARE_PER_CPU(struct pmuk_wdt_cpu, pmuk_wdt_cpus);

static inline struct pmuk_wdt_cpu *pmuk_wdt_of(int cpu)
{
	return per_cpu_ptr(&pmuk_wdt_cpus, cpu);
}

/* The files are in the order of their calls: each calls only files further down. */

/* sysfs.c */
extern const struct attribute_group *pmuk_wdt_groups[];

void pmuk_wdt_sysfs_init(void);
void pmuk_wdt_sysfs_exit(void);

/* debugfs.c */
void pmuk_wdt_debugfs_init(void);
void pmuk_wdt_debugfs_exit(void);

/* arm.c */
int pmuk_wdt_set_threshold(u64 threshold);
int pmuk_wdt_first_threshold(struct pmuk_wdt *w);
void pmuk_wdt_disarm_all(struct pmuk_wdt *w) __must_hold(&w->lock);
void pmuk_wdt_manage(struct work_struct *work);
void pmuk_wdt_configure(struct work_struct *work);
int pmuk_wdt_suspend(struct pmuk_wdt *w);
void pmuk_wdt_resume(struct pmuk_wdt *w);

/* counters.c */
int pmuk_wdt_counters_init(void);
void pmuk_wdt_counters_exit(void);
int pmuk_wdt_counters_start(struct pmuk_wdt *w) __must_hold(&w->lock);
void pmuk_wdt_counters_stop(struct pmuk_wdt *w) __must_hold(&w->lock);
void pmuk_wdt_counters_test(struct pmuk_wdt *w) __must_hold(&w->lock);
void pmuk_wdt_counters_judge(struct pmuk_wdt *w) __must_hold(&w->lock);
bool pmuk_wdt_beats(int cpu);
void pmuk_wdt_counters_retry(struct pmuk_wdt *w) __must_hold(&w->lock);

/* beat.c */
int pmuk_wdt_beats_start(struct pmuk_wdt *w) __must_hold(&w->lock);
void pmuk_wdt_beats_stop(struct pmuk_wdt *w) __must_hold(&w->lock);

/* nmi.c */
struct pmuk_format_event;

u32 pmuk_wdt_nmi(const struct pmuk_format_event *event);
void pmuk_wdt_timer_nmi(struct pt_regs *regs);
void pmuk_wdt_timer_set(struct pmuk_wdt_cpu *c, u64 now);
void pmuk_wdt_expect(struct pmuk_wdt_cpu *c, u64 count);

/* device.c */
int pmuk_wdt_device_init(struct pmuk_wdt_device *d, const struct attribute_group **groups);
void pmuk_wdt_device_exit(struct pmuk_wdt_device *d);
void pmuk_wdt_device_check(struct pmuk_wdt_device *d, u64 now, struct pt_regs *regs);
void pmuk_wdt_mark_alive(u64 now);
void pmuk_wdt_mark_kgdb(u64 now);
void pmuk_wdt_device_queue_notify(struct pmuk_wdt_device *d);
u64 pmuk_wdt_device_next(const struct pmuk_wdt_device *d, u64 now, u64 threshold);
void pmuk_wdt_device_suspend(struct pmuk_wdt_device *d);
void pmuk_wdt_device_resume(struct pmuk_wdt_device *d);

/* report.c */
#define PMUK_WDT_PRINT_NS	(60 * NSEC_PER_SEC)

bool pmuk_wdt_is_reporting(const struct pmuk_wdt_cpu *c, u64 now);
unsigned int pmuk_wdt_trace(struct pmuk_wdt_cpu *c);
bool pmuk_wdt_is_printing(const struct pmuk_wdt_cpu *c, unsigned int frames);
void pmuk_wdt_show_here(struct pmuk_wdt_cpu *c, struct pt_regs *regs);
void pmuk_wdt_report_own(struct pmuk_wdt_cpu *c, struct pt_regs *regs, u64 now);
void pmuk_wdt_report_other(struct pmuk_wdt_cpu *self, int cpu, u64 now);
void pmuk_wdt_recovered(struct pmuk_wdt_cpu *self, u64 now);
void pmuk_wdt_do_panic(struct pt_regs *regs, const char *message);
void pmuk_wdt_flush(struct pmuk_wdt_cpu *self);

/* quiet.c */
bool pmuk_wdt_is_in_kgdb(void);
bool pmuk_wdt_is_quiet(void);
u64 pmuk_wdt_touched_at(struct pmuk_wdt_cpu *c, int cpu);

/* state.c */
bool pmuk_wdt_is_isolated(int cpu);
bool pmuk_wdt_has_unisolated(const struct cpumask *cpus);
bool pmuk_wdt_wants_panic(void);
bool pmuk_wdt_wants_backtraces(void);
enum pmuk_wdt_levels pmuk_wdt_level(int cpu);
const char *pmuk_wdt_level_name(enum pmuk_wdt_levels level);

#endif /* _PMUK_WDT_H */
