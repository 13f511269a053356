// SPDX-License-Identifier: GPL-2.0
/*
 * Scheduler statistics with performance counters: how long each CPU, task, process and cgroup ran
 * and waited, and its cycles, instructions and up to two other events, cheap enough to be left on.
 * See Documentation/admin-guide/pmuk-sched-stats.rst.
 *
 * This file turns the accounting on and off. Tracepoints are looked up by name, so that the module
 * also works on a kernel without this project's patches. While off, static keys skip all of it.
 */
#define pr_fmt(fmt) "pmuk_sched: " fmt

#include <linux/cpuhotplug.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sched/switch_hook.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>
#include <trace/events/cgroup.h>
#include <trace/events/sched.h>
#include <trace/events/task.h>

#include "stats.h"

#define PMUK_SCHED_WATCH	HZ

/* ---- tracepoints ---- */

/*
 * The constants are the indices of the first probe of cgroups, of tasks and of switches. The probes
 * that remove entries are registered before those that add them, so that no entry outlives its
 * task or cgroup.
 */
#define PMUK_SCHED_CGROUP	0
#define PMUK_SCHED_TASK		3
#define PMUK_SCHED_SWITCH	5

static struct {
	const char *name;
	void *probe;
	struct tracepoint *tp;
} pmuk_sched_probes[] = {
	[PMUK_SCHED_CGROUP] = { "cgroup_rmdir", pmuk_sched_cgroup_rmdir },
	{ "cgroup_mkdir", pmuk_sched_cgroup_mkdir },
	{ "cgroup_attach_task", pmuk_sched_cgroup_attach },
	[PMUK_SCHED_TASK] = { "sched_process_free", pmuk_sched_free },
	{ "task_newtask", pmuk_sched_newtask },
#ifndef CONFIG_SCHED_SWITCH_HOOK
	[PMUK_SCHED_SWITCH] = { "sched_switch", pmuk_sched_switch_probe },
#endif
};

#define PMUK_SCHED_PROBES	ARRAY_SIZE(pmuk_sched_probes)

static_assert(PMUK_SCHED_PROBES ==
	      PMUK_SCHED_SWITCH + !IS_ENABLED(CONFIG_SCHED_SWITCH_HOOK));

/*
 * The probe of task_newtask is not checked: its clone_flags are unsigned long or u64, depending on
 * the kernel version, and the probe ignores them.
 */
static void __maybe_unused pmuk_sched_check_probes(void)
{
	check_trace_callback_type_sched_process_free(pmuk_sched_free);
	check_trace_callback_type_cgroup_mkdir(pmuk_sched_cgroup_mkdir);
	check_trace_callback_type_cgroup_rmdir(pmuk_sched_cgroup_rmdir);
	check_trace_callback_type_cgroup_attach_task(pmuk_sched_cgroup_attach);
#ifndef CONFIG_SCHED_SWITCH_HOOK
	check_trace_callback_type_sched_switch(pmuk_sched_switch_probe);
#endif
}

static void pmuk_sched_find_probe(struct tracepoint *tp, void *data)
{
	unsigned int i;

	for (i = 0; i < PMUK_SCHED_PROBES; i++) {
		if (!strcmp(tp->name, pmuk_sched_probes[i].name))
			pmuk_sched_probes[i].tp = tp;
	}
}

/* A kernel without CONFIG_CGROUPS has no tracepoints of cgroups. */
static bool pmuk_sched_needs_probe(unsigned int i)
{
	return IS_ENABLED(CONFIG_CGROUPS) || strncmp(pmuk_sched_probes[i].name, "cgroup", 6);
}

static int pmuk_sched_find_probes(void)
{
	unsigned int i;

	for_each_kernel_tracepoint(pmuk_sched_find_probe, NULL);
	for (i = 0; i < PMUK_SCHED_PROBES; i++) {
		if (!pmuk_sched_probes[i].tp && pmuk_sched_needs_probe(i)) {
			pr_err("this kernel has no tracepoint %s\n", pmuk_sched_probes[i].name);
			return -ENOENT;
		}
	}
	return 0;
}

/* Unregisters the probes [@from, @to) in reverse order. */
static void pmuk_sched_untrace(unsigned int from, unsigned int to)
{
	while (to-- > from) {
		if (pmuk_sched_probes[to].tp)
			tracepoint_probe_unregister(pmuk_sched_probes[to].tp,
						    pmuk_sched_probes[to].probe, NULL);
	}
	tracepoint_synchronize_unregister();
}

static int pmuk_sched_trace(unsigned int from, unsigned int to)
{
	unsigned int i;
	int ret;

	for (i = from; i < to; i++) {
		if (!pmuk_sched_probes[i].tp)
			continue;
		ret = tracepoint_probe_register(pmuk_sched_probes[i].tp,
						pmuk_sched_probes[i].probe, NULL);
		if (ret) {
			pmuk_sched_untrace(from, i);
			return ret;
		}
	}
	return 0;
}

#ifdef CONFIG_SCHED_SWITCH_HOOK

static int pmuk_sched_trace_switches(void)
{
	return sched_switch_hook_set(pmuk_sched_on_switch);
}

static void pmuk_sched_untrace_switches(void)
{
	sched_switch_hook_clear();
}

#else

static int pmuk_sched_trace_switches(void)
{
	return pmuk_sched_trace(PMUK_SCHED_SWITCH, PMUK_SCHED_PROBES);
}

static void pmuk_sched_untrace_switches(void)
{
	pmuk_sched_untrace(PMUK_SCHED_SWITCH, PMUK_SCHED_PROBES);
}

#endif /* CONFIG_SCHED_SWITCH_HOOK */

/* ---- on and off ---- */

static void pmuk_sched_reset_cpus(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		pmuk_sched_reset_cpu(per_cpu_ptr(&pmuk_sched_cpus, cpu));
}

/* Makes entries for the tasks and cgroups that exist, and from then on for new ones. */
static int pmuk_sched_track_tasks(struct pmuk_sched *s) __must_hold(&s->on_lock)
{
	int ret = pmuk_sched_tasks_init();

	if (ret)
		return ret;
	ret = pmuk_sched_cgroups_init();
	if (ret)
		goto err_tasks;
	ret = pmuk_sched_trace(PMUK_SCHED_CGROUP, PMUK_SCHED_TASK);
	if (ret)
		goto err_cgroups;
	pmuk_sched_cgroups_seed();	/* first, because entries of tasks refer to cgroups */
	ret = pmuk_sched_trace(PMUK_SCHED_TASK, PMUK_SCHED_SWITCH);
	if (ret)
		goto err_traced;
	pmuk_sched_tasks_seed();
	return 0;

err_traced:
	pmuk_sched_untrace(PMUK_SCHED_CGROUP, PMUK_SCHED_TASK);
err_cgroups:
	pmuk_sched_cgroups_exit();
err_tasks:
	pmuk_sched_tasks_exit();
	return ret;
}

static void pmuk_sched_untrack_tasks(struct pmuk_sched *s) __must_hold(&s->on_lock)
{
	pmuk_sched_tasks_hide();
	pmuk_sched_untrace(PMUK_SCHED_CGROUP, PMUK_SCHED_SWITCH);
	pmuk_sched_cgroups_exit();
	pmuk_sched_tasks_exit();
}

/*
 * All totals begin at 0. The owner of the hook owns the tasks' pointers, so the hook comes first.
 * CPUs account nothing before pmuk_sched_begin().
 */
static int pmuk_sched_account(struct pmuk_sched *s) __must_hold(&s->on_lock)
{
	int ret;

	pmuk_sched_reset_cpus();
	ret = pmuk_sched_trace_switches();
	if (ret)
		return ret;
	ret = pmuk_sched_track_tasks(s);
	if (ret) {
		pmuk_sched_untrace_switches();
		return ret;
	}
	/* Accounting begins now, as making the entries may have taken long. */
	s->since = ktime_get_ns();
	WRITE_ONCE(s->begun, true);
	on_each_cpu(pmuk_sched_begin, NULL, true);
	return 0;
}

static void pmuk_sched_unaccount(struct pmuk_sched *s) __must_hold(&s->on_lock)
{
	WRITE_ONCE(s->begun, false);
	on_each_cpu(pmuk_sched_end, NULL, true);	/* from here on, a switch returns at once */
	pmuk_sched_untrack_tasks(s);
	pmuk_sched_untrace_switches();
}

static int pmuk_sched_turn_on(struct pmuk_sched *s) __must_hold(&s->on_lock)
{
	int ret;

	if (s->on)
		return 0;
	ret = pmuk_sched_counters_start(s);
	if (ret)
		return ret;
	ret = pmuk_sched_account(s);
	if (ret) {
		pmuk_sched_counters_stop(s);
		return ret;
	}
	s->on = true;
	s->lost = false;
	s->retry_after = 1;
	s->retry_in = 0;
	queue_delayed_work(system_dfl_wq, &s->watch, PMUK_SCHED_WATCH);
	return 0;
}

static void pmuk_sched_turn_off(struct pmuk_sched *s) __must_hold(&s->on_lock)
{
	if (!s->on)
		return;
	s->on = false;
	cancel_delayed_work(&s->watch);	/* if it runs, it waits for ->on_lock and sees ->on */
	pmuk_sched_unaccount(s);
	pmuk_sched_counters_stop(s);
}

static int pmuk_sched_reset(struct pmuk_sched *s) __must_hold(&s->on_lock)
{
	int ret;

	if (!s->on)
		return 0;
	pmuk_sched_unaccount(s);
	ret = pmuk_sched_account(s);
	if (ret) {
		s->on = false;
		pmuk_sched_counters_stop(s);
	}
	return ret;
}

/* ---- work that a switch must not do ---- */

static bool pmuk_sched_is_uncounted(int cpu)
{
	return READ_ONCE(per_cpu(pmuk_sched_cpus, cpu).counted) == PMUK_SCHED_UNCOUNTED;
}

static bool pmuk_sched_any_uncounted(const struct pmuk_sched *s)
{
	int cpu;

	for_each_online_cpu(cpu) {
		if (s->nr && pmuk_sched_is_uncounted(cpu))
			return true;
	}
	return false;
}

/*
 * Tries again to place the counters of CPUs that lack some. A sync lets a CPU that has its counters
 * back use them before its next switch.
 */
static void pmuk_sched_restart_uncounted(struct pmuk_sched *s)
{
	int cpu;

	for_each_online_cpu(cpu) {
		if (!pmuk_sched_is_uncounted(cpu))
			continue;
		pmuk_restart_cpu(s->ctx, cpu);
		smp_call_function_single(cpu, pmuk_sched_sync, NULL, true);
	}
}

/*
 * A CPU notices lost counters when it reads them. If no switch is near, a sync makes the CPU read
 * them now.
 */
static bool pmuk_sched_has_lost(const struct pmuk_sched *s)
{
	bool lost = false;
	struct pmuk_msg msg;

	while (s->nr && pmuk_read(s->ctx, &msg, true) > 0) {
		if (msg.kind != PMUK_MSG_COUNTER_LOST)
			continue;
		lost = true;
		smp_call_function_single(msg.cpu, pmuk_sched_sync, NULL, true);
	}
	return lost;
}

/* Each retry disturbs CPUs that lack counters: so the interval doubles, up to so many seconds. */
#define PMUK_SCHED_RETRY_MAX	16

static void pmuk_sched_retry_counters(struct pmuk_sched *s) __must_hold(&s->on_lock)
{
	s->lost |= pmuk_sched_has_lost(s);
	if ((s->lost || pmuk_sched_any_uncounted(s)) && (!s->retry_in || !--s->retry_in)) {
		s->lost = false;
		pmuk_sched_restart_uncounted(s);
		s->retry_in = s->retry_after;
		s->retry_after = min(2 * s->retry_after, PMUK_SCHED_RETRY_MAX);
	}
	if (!s->lost && !pmuk_sched_any_uncounted(s)) {
		s->retry_after = 1;
		s->retry_in = 0;
	}
}

static bool pmuk_sched_has_strays(struct pmuk_sched *s) __must_hold(&s->on_lock)
{
	u64 strays = pmuk_sched_sum_of(&pmuk_sched_cpus.strays);

	return strays != xchg(&s->strays, strays);
}

/*
 * Retries once a second: another user of a lost counter may have released that counter, and there
 * may be memory now for tasks without an entry.
 *
 * The work is not bound to a CPU, as its timer may expire on any: on a CPU with a real-time task,
 * it would wait for that task, and on others make the CPU switch.
 */
static void pmuk_sched_watch(struct work_struct *work)
{
	struct pmuk_sched *s = container_of(to_delayed_work(work), struct pmuk_sched, watch);

	guard(mutex)(&s->on_lock);
	if (!s->on)
		return;
	if (s->nr)
		pmuk_sched_retry_counters(s);
	if (pmuk_sched_has_strays(s))
		pmuk_sched_tasks_seed();
	queue_delayed_work(system_dfl_wq, &s->watch, PMUK_SCHED_WATCH);
}

static void pmuk_sched_move(struct work_struct *work)
{
	struct pmuk_sched *s = container_of(work, struct pmuk_sched, move);

	guard(mutex)(&s->on_lock);
	if (s->on)
		pmuk_sched_move_rest(s);
}

/*
 * The CPU itself runs these two callbacks. Accounting ends and begins anew with them, so that time
 * offline is not accounted to the idle task. Interrupts are off because pmuk_sched_unaccount()
 * clears ->begun and then interrupts all CPUs: that interrupt must not come between the test of
 * ->begun and pmuk_sched_begin().
 */
static int pmuk_sched_online(unsigned int cpu)
{
	guard(irqsave)();
	this_cpu_write(pmuk_sched_up, true);
	/* pmuk_sched_unaccount() clears this before it interrupts all CPUs. */
	if (context_unsafe(READ_ONCE(pmuk_sched.begun)))
		pmuk_sched_begin(NULL);
	return 0;
}

static int pmuk_sched_offline(unsigned int cpu)
{
	guard(irqsave)();
	pmuk_sched_sync(NULL);
	this_cpu_write(pmuk_sched_up, false);
	pmuk_sched_end(NULL);
	return 0;
}

/* ---- parameters ---- */

static bool pmuk_sched_wanted __guarded_by(&pmuk_sched.on_lock) = true;
static bool pmuk_sched_loaded __guarded_by(&pmuk_sched.on_lock);
static char pmuk_sched_names[PMUK_SCHED_EVENTS * 33] __guarded_by(&pmuk_sched.on_lock) =
	"cycles,instructions";

static int pmuk_sched_set_enabled(const char *val, const struct kernel_param *kp)
{
	bool on;
	int ret = kstrtobool(val, &on);

	if (ret)
		return ret;
	guard(mutex)(&pmuk_sched.on_lock);
	if (on && pmuk_sched_loaded)
		ret = pmuk_sched_turn_on(&pmuk_sched);
	else if (pmuk_sched_loaded)
		pmuk_sched_turn_off(&pmuk_sched);
	if (!ret)
		pmuk_sched_wanted = on;
	return ret;
}

static int pmuk_sched_get_enabled(char *buffer, const struct kernel_param *kp)
{
	guard(mutex)(&pmuk_sched.on_lock);
	return sysfs_emit(buffer, "%d\n", pmuk_sched_loaded ? pmuk_sched.on : pmuk_sched_wanted);
}

static const struct kernel_param_ops pmuk_sched_enabled_ops = {
	.set	= pmuk_sched_set_enabled,
	.get	= pmuk_sched_get_enabled,
};

module_param_cb(enabled, &pmuk_sched_enabled_ops, NULL, 0644);
MODULE_PARM_DESC(enabled, "1: account from now on; 0: stop, and discard all totals (default 1)");

static int pmuk_sched_set_events(const char *val, const struct kernel_param *kp)
{
	struct pmuk_sched_event events[PMUK_SCHED_EVENTS] = {};
	struct pmuk_sched *s = &pmuk_sched;
	int nr = pmuk_sched_parse(val, events);
	bool was;

	if (nr < 0) {
		pr_debug("events: up to %d of perf's names, rHEX or TYPE:CONFIG, with commas\n",
			 PMUK_SCHED_EVENTS);
		return nr;
	}
	guard(mutex)(&s->on_lock);
	was = s->on;
	pmuk_sched_turn_off(s);
	memcpy(s->requested, events, sizeof(events));
	s->nr_requested = nr;
	strscpy(pmuk_sched_names, val);
	return was ? pmuk_sched_turn_on(s) : 0;
}

static int pmuk_sched_get_events(char *buffer, const struct kernel_param *kp)
{
	guard(mutex)(&pmuk_sched.on_lock);
	return sysfs_emit(buffer, "%s\n", strim(pmuk_sched_names));
}

static const struct kernel_param_ops pmuk_sched_events_ops = {
	.set	= pmuk_sched_set_events,
	.get	= pmuk_sched_get_events,
};

module_param_cb(events, &pmuk_sched_events_ops, NULL, 0644);
MODULE_PARM_DESC(events, "What to count: perf's names, rHEX or TYPE:CONFIG, up to four (default cycles,instructions)");

static int pmuk_sched_set_reset(const char *val, const struct kernel_param *kp)
{
	bool reset;
	int ret = kstrtobool(val, &reset);

	if (ret || !reset)
		return ret;
	guard(mutex)(&pmuk_sched.on_lock);
	return pmuk_sched_reset(&pmuk_sched);
}

static const struct kernel_param_ops pmuk_sched_reset_ops = {
	.set	= pmuk_sched_set_reset,
};

module_param_cb(reset, &pmuk_sched_reset_ops, NULL, 0200);
MODULE_PARM_DESC(reset, "1: reset all totals to 0");

static int pmuk_sched_get_slow(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%llu\n", pmuk_sched_sum_of(&pmuk_sched_cpus.slow));
}

static const struct kernel_param_ops pmuk_sched_slow_ops = {
	.get	= pmuk_sched_get_slow,
};

module_param_cb(slow_switches, &pmuk_sched_slow_ops, NULL, 0444);
MODULE_PARM_DESC(slow_switches, "Number of switches that took the slow path");

static int pmuk_sched_get_slow_reads(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%llu\n", pmuk_sched_sum_of(&pmuk_sched_cpus.slow_reads));
}

static const struct kernel_param_ops pmuk_sched_slow_reads_ops = {
	.get	= pmuk_sched_get_slow_reads,
};

module_param_cb(slow_reads, &pmuk_sched_slow_reads_ops, NULL, 0444);
MODULE_PARM_DESC(slow_reads, "Number of other switches that did not read the counters in line");

/* ---- load and unload ---- */

static int pmuk_sched_load(void)
{
	struct pmuk_sched *s = &pmuk_sched;
	int ret;

	guard(mutex)(&s->on_lock);
	if (!s->nr_requested && pmuk_sched_names[0])
		s->nr_requested = pmuk_sched_parse(pmuk_sched_names, s->requested);
	ret = pmuk_sched_wanted ? pmuk_sched_turn_on(s) : 0;
	pmuk_sched_loaded = !ret;
	return ret;
}

static void pmuk_sched_unload(void)
{
	struct pmuk_sched *s = &pmuk_sched;

	scoped_guard(mutex, &s->on_lock) {
		pmuk_sched_turn_off(s);
		pmuk_sched_loaded = false;
	}
	cancel_delayed_work_sync(&s->watch);
	cancel_work_sync(&s->move);
}

static int __init pmuk_sched_init(void)
{
	struct pmuk_sched *s = &pmuk_sched;
	int ret = pmuk_sched_find_probes();

	if (ret)
		return ret;
	INIT_DEFERRABLE_WORK(&s->watch, pmuk_sched_watch);
	INIT_WORK(&s->move, pmuk_sched_move);
	ret = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "pmuk_sched:online",
				pmuk_sched_online, pmuk_sched_offline);
	if (ret < 0)
		return ret;
	s->cpuhp = ret;
	ret = pmuk_sched_load();
	if (ret)	/* a probe may have queued ->move */
		goto err_on;
	ret = pmuk_sched_show_init();
	if (ret)
		goto err_on;
	ret = pmuk_sched_stream_init();
	if (ret)
		goto err_show;
	return 0;

err_show:
	pmuk_sched_show_exit();
err_on:
	pmuk_sched_unload();
	cpuhp_remove_state(s->cpuhp);
	return ret;
}
late_initcall(pmuk_sched_init);	/* PMU drivers have registered by then */

static void __exit pmuk_sched_exit(void)
{
	pmuk_sched_stream_exit();
	pmuk_sched_show_exit();
	pmuk_sched_unload();
	cpuhp_remove_state(pmuk_sched.cpuhp);
}
module_exit(pmuk_sched_exit);

MODULE_DESCRIPTION("Scheduler statistics with performance counters");
MODULE_LICENSE("GPL");
