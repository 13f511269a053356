// SPDX-License-Identifier: GPL-2.0
/*
 * The state that all files of the watchdog share, the settings that ask for a panic or for
 * backtraces, and the level at which each CPU is watched.
 */
#include <linux/cpumask.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/nmi.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched/isolation.h>

#include "wdt.h"

struct pmuk_wdt pmuk_wdt = {
	.lock	= __MUTEX_INITIALIZER(pmuk_wdt.lock),
};

DEFINE_PER_CPU(struct pmuk_wdt_cpu, pmuk_wdt_cpus);

static bool pmuk_wdt_panic;
module_param_named(panic, pmuk_wdt_panic, bool, 0644);
MODULE_PARM_DESC(panic, "Panic when a CPU is stuck, also without kernel.hardlockup_panic (default 0)");

static bool pmuk_wdt_all_backtraces;
module_param_named(all_cpu_backtrace, pmuk_wdt_all_backtraces, bool, 0644);
MODULE_PARM_DESC(all_cpu_backtrace, "Show the stacks of all CPUs with a report, also without kernel.hardlockup_all_cpu_backtrace (default 0)");

/* Returns whether cpusets or the command line isolate @cpu from load balancing or from timers. */
bool pmuk_wdt_is_isolated(int cpu)
{
	guard(rcu)();	/* cpusets replace the mask of HK_TYPE_DOMAIN */
	return !housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN) ||
	       !housekeeping_test_cpu(cpu, HK_TYPE_TIMER);
}

/*
 * Returns whether any of @cpus is online and beats at the full rate. Beats of isolated CPUs are too
 * rare for the watchdog device.
 */
bool pmuk_wdt_has_unisolated(const struct cpumask *cpus)
{
	int cpu;

	for_each_cpu_and(cpu, cpus, cpu_online_mask) {
		if (!cpumask_test_cpu(cpu, &pmuk_wdt.isolated))
			return true;
	}
	return false;
}

bool pmuk_wdt_wants_panic(void)
{
	return READ_ONCE(pmuk_wdt_panic) || hardlockup_wants_panic();
}

bool pmuk_wdt_wants_backtraces(void)
{
	return READ_ONCE(pmuk_wdt_all_backtraces) || hardlockup_wants_backtraces();
}

static const char *const pmuk_wdt_level_names[] = {
	[PMUK_WDT_NONE]			= "none",
	[PMUK_WDT_NEIGHBOUR]		= "neighbour",
	[PMUK_WDT_NEIGHBOUR_NMI]	= "neighbour-nmi",
	[PMUK_WDT_TIMER_NMI]		= "timer-nmi",
	[PMUK_WDT_OWN_NMI]		= "own-nmi",
};

static_assert(ARRAY_SIZE(pmuk_wdt_level_names) == PMUK_WDT_LEVELS);

const char *pmuk_wdt_level_name(enum pmuk_wdt_levels level)
{
	return pmuk_wdt_level_names[level];
}

/* Returns the current level of @cpu. Takes no lock, so any context may call this. */
enum pmuk_wdt_levels pmuk_wdt_level(int cpu)
{
	if (!cpumask_test_cpu(cpu, &pmuk_wdt.watched) || !cpumask_test_cpu(cpu, &pmuk_wdt.cpus))
		return PMUK_WDT_NONE;
	if (READ_ONCE(pmuk_wdt_of(cpu)->own))
		return PMUK_WDT_OWN_NMI;
	if (READ_ONCE(pmuk_wdt_of(cpu)->timer))
		return PMUK_WDT_TIMER_NMI;
	if (cpumask_weight(&pmuk_wdt.watched) < 2)
		return PMUK_WDT_NONE;
	return READ_ONCE(pmuk_wdt.backtraces) ? PMUK_WDT_NEIGHBOUR_NMI : PMUK_WDT_NEIGHBOUR;
}
