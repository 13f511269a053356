// SPDX-License-Identifier: GPL-2.0
/*
 * Sums of tasks. What is taken off again is counted modulo 2^64, so that sums may be less
 * than nothing in between.
 */
#include "stats.h"

/* ->lock is held, or @t is a CPU's own, which no task_struct stands behind. */
void pmuk_sched_add_task(struct pmuk_sched_totals *sum, const struct pmuk_sched_task *t)
{
	const struct task_struct *p = pmuk_sched_task_of(t);
	unsigned int i;

	sum->run += READ_ONCE(t->run);
	if (p)
		sum->wait += pmuk_sched_wait(t, p);
	for (i = 0; i < PMUK_SCHED_HOWS; i++)
		sum->left[i] += READ_ONCE(t->left[i]);
	for (i = 0; i < pmuk_sched.nr; i++)
		sum->counts[i] += READ_ONCE(t->counts[i]);
	sum->invalid |= pmuk_sched_is_invalid(t);
}

void pmuk_sched_add(struct pmuk_sched_totals *sum, const struct pmuk_sched_totals *other)
{
	unsigned int i;

	sum->run += other->run;
	sum->wait += other->wait;
	for (i = 0; i < PMUK_SCHED_HOWS; i++)
		sum->left[i] += other->left[i];
	for (i = 0; i < PMUK_SCHED_EVENTS; i++)
		sum->counts[i] += other->counts[i];
	sum->invalid |= other->invalid;
}
