// SPDX-License-Identifier: GPL-2.0
/*
 * The counters: a single context for all CPUs. Its events are pinned, so that a count is either
 * complete or missing, and never scaled. Events that cannot be opened are left out one by one, and
 * reported in the log and in /proc/pmuk_sched.
 */
#define pr_fmt(fmt) "pmuk_sched: " fmt

#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/printk.h>
#include <linux/string.h>

#include "stats.h"

static const struct {
	const char *name;
	u64 config;
} pmuk_sched_names[] = {
	{ "cycles",			PERF_COUNT_HW_CPU_CYCLES },
	{ "instructions",		PERF_COUNT_HW_INSTRUCTIONS },
	{ "cache-references",		PERF_COUNT_HW_CACHE_REFERENCES },
	{ "cache-misses",		PERF_COUNT_HW_CACHE_MISSES },
	{ "branches",			PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
	{ "branch-misses",		PERF_COUNT_HW_BRANCH_MISSES },
	{ "bus-cycles",			PERF_COUNT_HW_BUS_CYCLES },
	{ "stalled-cycles-frontend",	PERF_COUNT_HW_STALLED_CYCLES_FRONTEND },
	{ "stalled-cycles-backend",	PERF_COUNT_HW_STALLED_CYCLES_BACKEND },
	{ "ref-cycles",			PERF_COUNT_HW_REF_CPU_CYCLES },
};

static int pmuk_sched_parse_raw(struct pmuk_sched_event *e)
{
	e->type = PERF_TYPE_RAW;
	return kstrtou64(e->name + 1, 16, &e->config);
}

/* Parses an event that is given as TYPE:CONFIG. */
static int pmuk_sched_parse_pair(struct pmuk_sched_event *e)
{
	char type[sizeof(e->name)];
	char *config;

	strscpy(type, e->name);
	config = strchr(type, ':');
	if (!config)
		return -EINVAL;
	*config++ = '\0';
	return kstrtou32(type, 0, &e->type) ?: kstrtou64(config, 0, &e->config);
}

static int pmuk_sched_parse_one(struct pmuk_sched_event *e)
{
	unsigned int i;

	e->missing = 0;
	e->type = PERF_TYPE_HARDWARE;
	for (i = 0; i < ARRAY_SIZE(pmuk_sched_names); i++) {
		if (!strcmp(e->name, pmuk_sched_names[i].name)) {
			e->config = pmuk_sched_names[i].config;
			return 0;
		}
	}
	if (e->name[0] == 'r' && !pmuk_sched_parse_raw(e))
		return 0;
	return pmuk_sched_parse_pair(e);
}

/* Parses up to PMUK_SCHED_EVENTS names, separated by commas. Returns their number, or -errno. */
int pmuk_sched_parse(const char *names, struct pmuk_sched_event *events)
{
	unsigned int nr = 0;
	size_t len;

	if (!names[0] || names[0] == '\n')
		return 0;
	for (;; names += len + 1) {
		len = strcspn(names, ",\n");
		if (nr == PMUK_SCHED_EVENTS)
			return -E2BIG;
		if (!len || len >= sizeof(events->name))
			return -EINVAL;
		memcpy(events[nr].name, names, len);
		events[nr].name[len] = '\0';
		if (pmuk_sched_parse_one(&events[nr]))
			return -EINVAL;
		nr++;
		if (names[len] != ',')
			return nr;
	}
}

/* Selects the events that are not missing, in the order of the parameter. */
static void pmuk_sched_select_events(struct pmuk_sched *s) __must_hold(&s->on_lock)
{
	unsigned int i;

	s->nr = 0;
	for (i = 0; i < s->nr_requested; i++) {
		if (!s->requested[i].missing)
			s->order[s->nr++] = i;
	}
	s->ipc = s->nr >= 2 && s->order[1] == 1;
}

static int pmuk_sched_write_events(struct pmuk_sched *s, u32 flags) __must_hold(&s->on_lock)
{
	unsigned int i;

	for (i = 0; i < s->nr; i++) {
		struct pmuk_pmc pmc = {
			.num	= i,
			.type	= s->requested[s->order[i]].type,
			.config	= s->requested[s->order[i]].config,
			.flags	= PMUK_PINNED | flags,
		};

		if (pmuk_write_pmcs(s->ctx, &pmc, 1) != 1)
			return pmc.ret ?: -EBUSY;
	}
	return 0;
}

/* Starts the events on all CPUs. @num: the event that failed, or PMUK_SET_COUNTERS if unknown. */
static int pmuk_sched_start_events(struct pmuk_sched *s, u32 flags, u16 *num)
	__must_hold(&s->on_lock)
{
	struct pmuk_target target = { .type = PMUK_TARGET_CPUS, .failed_cpu = -1 };
	int ret = pmuk_sched_write_events(s, flags);

	*num = PMUK_SET_COUNTERS;
	if (ret)
		return ret;
	ret = pmuk_load_context(s->ctx, &target);
	if (!ret) {
		ret = pmuk_start(s->ctx, &target);
		if (ret)
			pmuk_unload_context(s->ctx);
	}
	if (ret && target.failed_cpu >= 0)
		*num = target.failed_num;
	return ret;
}

void pmuk_sched_counters_stop(struct pmuk_sched *s) __must_hold(&s->on_lock)
{
	if (s->ctx)
		pmuk_close(s->ctx);
	s->ctx = NULL;
}

static bool pmuk_sched_yield;
module_param_named(yield, pmuk_sched_yield, bool, 0644);
MODULE_PARM_DESC(yield, "1: counters are given to events of perf that wait for them (default 0)");

/* If perf core does not tell that events wait, the statistics keep their counters. */
static struct pmuk_context *pmuk_sched_create_context(void)
{
	struct pmuk_context_attr attr = {
		.name = "pmuk_sched", .rank = PMUK_RANK_BACKGROUND,
		.flags = READ_ONCE(pmuk_sched_yield) ? PMUK_CTX_YIELD : 0,
	};
	struct pmuk_context *ctx = pmuk_create_context(&attr);

	if (ctx != ERR_PTR(-EOPNOTSUPP))
		return ctx;
	pr_notice("yield=1 has no effect on this kernel\n");
	attr.flags = 0;
	return pmuk_create_context(&attr);
}

static int pmuk_sched_try(struct pmuk_sched *s, u32 flags, u16 *num) __must_hold(&s->on_lock)
{
	int ret;

	s->ctx = pmuk_sched_create_context();
	if (IS_ERR(s->ctx)) {
		ret = PTR_ERR(s->ctx);
		s->ctx = NULL;
		*num = PMUK_SET_COUNTERS;
		return ret;
	}
	s->groups_shown = pmuk_groups(s->ctx);
	ret = pmuk_sched_start_events(s, flags, num);
	if (ret)
		pmuk_sched_counters_stop(s);
	return ret;
}

/*
 * Leave guests out, unless the PMU cannot (-EINVAL): perf core without the patch that lets counters
 * yield refuses counters that count guests, or the guests.
 */
static int pmuk_sched_try_host_first(struct pmuk_sched *s, u16 *num) __must_hold(&s->on_lock)
{
	int ret = pmuk_sched_try(s, PMUK_EXCLUDE_GUEST, num);

	return ret == -EINVAL ? pmuk_sched_try(s, 0, num) : ret;
}

/* Leaves out the event that failed, or the last event if the failure names none. */
static void pmuk_sched_drop_event(struct pmuk_sched *s, u16 num, int error)
	__must_hold(&s->on_lock)
{
	struct pmuk_sched_event *e = &s->requested[s->order[min_t(u16, num, s->nr - 1)]];

	e->missing = error;
	pr_notice("%s cannot be counted: %d\n", e->name, error);
	pmuk_sched_select_events(s);
}

/* Starts as many of the requested events as possible. Without any, times alone are accounted. */
int pmuk_sched_counters_start(struct pmuk_sched *s) __must_hold(&s->on_lock)
{
	unsigned int i;
	u16 num;
	int ret;

	for (i = 0; i < s->nr_requested; i++)
		s->requested[i].missing = 0;
	pmuk_sched_select_events(s);
	while (s->nr) {
		ret = pmuk_sched_try_host_first(s, &num);
		if (ret == -ENOMEM)
			return ret;
		if (!ret)
			return 0;
		pmuk_sched_drop_event(s, num, ret);
	}
	return 0;
}
