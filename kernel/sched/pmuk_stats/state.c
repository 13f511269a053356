// SPDX-License-Identifier: GPL-2.0
/*
 * The state that all files share. A process or cgroup that is about to change during a reading
 * first starts its sums for that reading, see struct pmuk_sched_reading.
 */
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/sched/clock.h>

#include "stats.h"

struct pmuk_sched pmuk_sched = {
	.lock		= __SPIN_LOCK_UNLOCKED(pmuk_sched.lock),
	.on_lock	= __MUTEX_INITIALIZER(pmuk_sched.on_lock),
};

/* Updates the maxima that the parameters show. ->lock was taken at the local_clock() @began. */
void pmuk_sched_note_stretch(unsigned int seen, u64 began) __must_hold(&pmuk_sched.lock)
{
	u64 ns = local_clock() - began;

	lockdep_assert_held(&pmuk_sched.lock);
	pmuk_sched.stretch = max(pmuk_sched.stretch, seen);
	pmuk_sched.stretch_ns = max_t(u64, pmuk_sched.stretch_ns, min(ns, U32_MAX));
}

void pmuk_sched_touch_group(struct pmuk_sched_group *g) __must_hold(&pmuk_sched.lock)
{
	lockdep_assert_held(&pmuk_sched.lock);
	if (!pmuk_sched.reading || g->serial == pmuk_sched.serial)
		return;
	g->serial = pmuk_sched.serial;
	g->shown = false;
	g->copied = false;
	g->sum = g->ended;
}

void pmuk_sched_touch_cgroup(struct pmuk_sched_cgroup *g) __must_hold(&pmuk_sched.lock)
{
	lockdep_assert_held(&pmuk_sched.lock);
	if (!pmuk_sched.reading || g->serial == pmuk_sched.serial)
		return;
	g->serial = pmuk_sched.serial;
	g->copied = false;
	g->own = g->ended;
	g->tree = g->removed;
}
