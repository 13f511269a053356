// SPDX-License-Identifier: GPL-2.0
/*
 * Sums of tasks. Arithmetic is modulo 2^64, as the ->ended of a cgroup may be negative: a task that
 * has moved there is subtracted at that time, and added when it exits.
 */
#include <linux/lockdep.h>

#include "stats.h"

/* Adds @t to @sum. The caller holds ->lock, unless @t is a CPU's own entry without a task. */
void pmuk_sched_add_task(struct pmuk_sched_totals *sum, const struct pmuk_sched_task *t)
{
	const struct task_struct *p = pmuk_sched_task_of(t);
	unsigned int i;

	if (p)
		lockdep_assert_held(&pmuk_sched.lock);
	sum->run += READ_ONCE(t->run);
	if (p)
		sum->wait += pmuk_sched_wait(t, p);
	for (i = 0; i < PMUK_SCHED_TASK_REASONS; i++)
		sum->reasons[i] += READ_ONCE(t->reasons[i]);
	for (i = 0; i < pmuk_sched.nr; i++)
		sum->counts[i] += READ_ONCE(t->counts[i]);
	sum->invalid |= pmuk_sched_is_invalid(t);
}

void pmuk_sched_add(struct pmuk_sched_totals *sum, const struct pmuk_sched_totals *other)
{
	unsigned int i;

	sum->run += other->run;
	sum->wait += other->wait;
	for (i = 0; i < PMUK_SCHED_TASK_REASONS; i++)
		sum->reasons[i] += other->reasons[i];
	for (i = 0; i < PMUK_SCHED_EVENTS; i++)
		sum->counts[i] += other->counts[i];
	sum->invalid |= other->invalid;
}
