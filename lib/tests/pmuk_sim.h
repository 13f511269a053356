/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The PMU is made of memory, for tests. It has as many counters as a test wants, of any width. They
 * count the events that the test calls for, and overflow on the test's CPU.
 */
#ifndef _PMUK_SIM_H
#define _PMUK_SIM_H

#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/perf_event.h>
#include <linux/types.h>

/* Events are numbered 0 … PMUK_SIM_EVENTS - 1, in perf_event_attr::config. */
#define PMUK_SIM_EVENTS		8
#define PMUK_SIM_COUNTERS	8

/* An event with this perf_event_attr::config1 also writes a trace to its buffer's AUX area. */
#define PMUK_SIM_TRACE		1

struct pmuk_sim;

/**
 * enum pmuk_sim_point - points between two steps of the driver, where it calls a hook
 * @PMUK_SIM_ENTERED: nothing read yet
 * @PMUK_SIM_READ_PREV: hw.prev_count is read, the register is not
 * @PMUK_SIM_READ_REG: the register is read, hw.prev_count is as it was
 * @PMUK_SIM_MOVED_PREV: hw.prev_count has moved, the count has not
 * @PMUK_SIM_COUNTED: the count has moved, hw.period_left has not
 * @PMUK_SIM_DONE: all is consistent again, and pmu->read() returns
 * @PMUK_SIM_RELOADING: in pmu->start(), hw.prev_count is set, the register is not
 * @PMUK_SIM_POINTS: number of points
 */
enum pmuk_sim_point {
	PMUK_SIM_ENTERED,
	PMUK_SIM_READ_PREV,
	PMUK_SIM_READ_REG,
	PMUK_SIM_MOVED_PREV,
	PMUK_SIM_COUNTED,
	PMUK_SIM_DONE,
	PMUK_SIM_RELOADING,
	PMUK_SIM_POINTS,
};

/**
 * struct pmuk_sim_hook - a function that is called in the middle of the driver
 * @fn: called at each point of the driver, with interrupts off
 * @data: argument of @fn
 */
struct pmuk_sim_hook {
	void (*fn)(struct pmuk_sim *sim, enum pmuk_sim_point point, void *data);
	void *data;
};

/**
 * struct pmuk_sim_config - description of a simulated PMU
 * @name: in /sys/bus/event_source/devices; must outlive the PMU
 * @nr_counters: counters of each CPU, 1 … PMUK_SIM_COUNTERS
 * @width: bits of each, 8 … 62
 * @mux_ms: milliseconds between rotations when over-committed; 0: perf's default
 * @addr: data address reported with each overflow; 0: none
 * @weight: weight reported with each overflow; 0: none
 * @uncore: the PMU is one for the whole machine, and all events are on the first CPU, as on
 *	x86's uncore PMUs in PCI devices
 * @cpus: only these CPUs have the PMU, as on heterogeneous machines; must outlive the PMU; NULL:
 *	all CPUs have it
 * @skids: events happen in user space, and their interrupts come when the kernel runs
 * @capabilities: PERF_PMU_CAP_*
 * @keeps: registers keep their values when perf core ends throttling, as x86's do: only a start
 *	with PERF_EF_RELOAD loads them
 * @silent: the registers count all the time, and hw.state is left alone, as in x86's msr driver
 * @interval: events are in perf's software context, and the rest of a period is written into the
 *	register as it is, as in the SPE driver
 * @exact: on x86, samples are marked as exact
 * @raw: raw data reported with each overflow; NULL: none
 * @regs: registers that each interrupt finds; NULL: those of the code that lets events happen
 * @fill: sets more of what is reported with an overflow, and sample_flags accordingly; NULL:
 *	nothing. A PMU without it records no branches
 * @event_init: sees the attributes of each event that is created, and may refuse
 *	it with -errno; may be NULL
 * @data: argument of @event_init and @fill
 */
struct pmuk_sim_config {
	const char *name;
	unsigned int nr_counters;
	unsigned int width;
	unsigned int mux_ms;
	u64 addr;
	u64 weight;
	const struct perf_raw_record *raw;
	const struct pt_regs *regs;
	bool exact;
	bool uncore;
	const struct cpumask *cpus;
	bool skids;
	int capabilities;
	bool keeps;
	bool silent;
	bool interval;
	void (*fill)(struct perf_event *event, struct perf_sample_data *sample, void *data);
	int (*event_init)(const struct perf_event_attr *attr, void *data);
	void *data;
};

struct pmuk_sim *pmuk_sim_create(const struct pmuk_sim_config *config);
int pmuk_sim_unplug(struct pmuk_sim *sim);
void pmuk_sim_migrate(struct pmuk_sim *sim, int from, int to);
void pmuk_sim_destroy(struct pmuk_sim *sim);
u32 pmuk_sim_type(const struct pmuk_sim *sim);
u64 pmuk_sim_count(struct pmuk_sim *sim, u64 config, u64 n);
u64 pmuk_sim_count_on(struct pmuk_sim *sim, int cpu, u64 config, u64 n);
u64 pmuk_sim_advance(struct pmuk_sim *sim, u64 config, u64 n);
u64 pmuk_sim_write_trace(struct pmuk_sim *sim, u64 branches);
void pmuk_sim_interrupt(struct pmuk_sim *sim);
u64 pmuk_sim_counted(const struct pmuk_sim *sim, u64 config);
int pmuk_sim_steal(struct pmuk_sim *sim, int cpu, unsigned int n);
int pmuk_sim_nr_events(const struct pmuk_sim *sim);
void pmuk_sim_set_hook(struct pmuk_sim *sim, const struct pmuk_sim_hook *hook);

#endif /* _PMUK_SIM_H */
