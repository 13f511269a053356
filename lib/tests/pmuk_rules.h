/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rules of the record ring and of the AUX area, in pmuk_ring_rules.h and pmuk_aux_rules.h,
 * share this base. KUnit runs the rules on buffers of the kernel. Programs in user space run them
 * on ring.c and aux.c under AddressSanitizer, see tools/testing/pmu_kapi/rules.h.
 */
#ifndef _PMUK_RULES_H
#define _PMUK_RULES_H

#ifdef __KERNEL__
#include "pmuk_records.h"

#define RULE_DOSE	20000	/* number of random trials */
#define RULE_RECORD	PMUK_TEST_RECORD

#define rule_report(rig, ...)	KUNIT_FAIL((rig)->test, __VA_ARGS__)
#define rule_cpu(rig)		pmuk_test_pin_first((rig)->test)

/* A writer must stay on its CPU. */
#define rule_enter()		preempt_disable()
#define rule_leave()		preempt_enable()
#define rule_rest()		cond_resched()

#define rule_check_wakes(rig)	((void)(rig))	/* the wakeup is an interrupt, and comes later */

static inline void rule_fill(struct perf_event_header *rec, u64 id)
{
	*(u64 *)(rec + 1) = id;
	pmuk_test_fill_rest(rec);
}

static inline bool rule_is_whole(const struct perf_event_header *rec)
{
	return rec->type == RULE_RECORD && pmuk_test_is_whole(rec);
}
#else
#include "rules.h"
#endif

#define SIZE	((u64)PAGE_SIZE)	/* bytes of most rings */
#define ALL	(~0ULL)
#define ANY	(~0ULL)			/* a count that the rule says nothing about */

/* The first failure ends the rule. */
#define RULE_FAIL(rig, format, ...)					\
	do {								\
		typeof(rig) __rig = (rig);				\
									\
		rule_report(__rig, "step %u: " format, __rig->at, ##__VA_ARGS__); \
		__rig->failed = true;					\
	} while (0)

#define RULE_EXPECT(rig, condition)					\
	do {								\
		if (!(condition))					\
			RULE_FAIL(rig, "%s", #condition);		\
	} while (0)

#define RULE_EQ(rig, got, wanted)					\
	do {								\
		s64 __got = (got), __wanted = (wanted);			\
									\
		if (__got != __wanted)					\
			RULE_FAIL(rig, "%s is %lld, not %lld", #got, __got, __wanted); \
	} while (0)

#define RULE_COUNT(rig, got, wanted)					\
	do {								\
		u64 __got = (got), __count = (wanted);			\
									\
		if (__count != ANY && __got != __count)			\
			RULE_FAIL(rig, "%s is %llu, not %llu", #got, __got, __count); \
	} while (0)

static inline u64 rule_random(u64 *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 16;
}

#endif /* _PMUK_RULES_H */
