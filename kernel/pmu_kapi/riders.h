/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The periods of counters that share a register. Nothing here knows perf, so the file also compiles
 * in user space.
 *
 * A rider counts what its host counts, from a start to a stop. While it runs, its period ends at a
 * deadline, a value of the host's count, and the host has to overflow at the nearest deadline or
 * earlier. An overflow before the deadline is harmless: it finds no rider whose deadline is
 * reached.
 *
 * The host's CPU sets and clears deadlines, with interrupts off or in NMI. An NMI sees the old or
 * the new value of a deadline. If an NMI and the code under it both clear a deadline,
 * pmuk_riders_end() returns the deadline to the first one, and PMUK_NEVER to the second.
 */
#ifndef _PMU_KAPI_RIDERS_H
#define _PMU_KAPI_RIDERS_H

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/types.h>

#define PMUK_RIDERS	32	/* the riders of a host; a bit of pmuk_host::seats each */
#define PMUK_NEVER	U64_MAX	/* no deadline: the rider does not run, or has no period */

struct pmuk_riders {
	unsigned int nr;		/* seats from here on were never taken */
	u64 deadlines[PMUK_RIDERS];	/* owner: by seat */
};

/* A seat that was taken before has PMUK_NEVER already. ->nr hides a new one until it has. */
static inline void pmuk_riders_take(struct pmuk_riders *riders, unsigned int seat)
{
	WRITE_ONCE(riders->deadlines[seat], PMUK_NEVER);
	if (seat >= riders->nr)
		smp_store_release(&riders->nr, seat + 1);	/* pairs with pmuk_riders_nr() */
}

static inline unsigned int pmuk_riders_nr(const struct pmuk_riders *riders)
{
	return smp_load_acquire(&riders->nr);	/* pairs with pmuk_riders_take() */
}

static inline u64 pmuk_riders_deadline(const struct pmuk_riders *riders, unsigned int seat)
{
	return READ_ONCE(riders->deadlines[seat]);
}

/*
 * Sets the deadline of a rider that has @left events to go. If @left is negative or 0, the period
 * has ended, and the next one counts from that end. If a whole period has passed since that end,
 * the next one counts from @now. Periods of hardware do the same.
 */
static inline void pmuk_riders_begin(struct pmuk_riders *riders, unsigned int seat, u64 now,
				     s64 left, u64 period)
{
	if (left <= -(s64)period)
		left = period;
	else if (left <= 0)
		left += period;
	WRITE_ONCE(riders->deadlines[seat], now + left);
}

/* Ends the period of a rider that stops. Returns the deadline, or PMUK_NEVER if there is none. */
static inline u64 pmuk_riders_end(struct pmuk_riders *riders, unsigned int seat)
{
	return xchg(&riders->deadlines[seat], PMUK_NEVER);
}

/*
 * Returns the nearest deadline, and sets @seat to its rider's. If there is none, returns
 * PMUK_NEVER, and leaves @seat alone. Sets @second to the nearest deadline of all other riders.
 */
static inline u64 pmuk_riders_nearest(const struct pmuk_riders *riders, unsigned int *seat,
				      u64 *second)
{
	unsigned int i, nr = pmuk_riders_nr(riders);
	u64 deadline, nearest = PMUK_NEVER;

	*second = PMUK_NEVER;
	for (i = 0; i < nr; i++) {
		deadline = pmuk_riders_deadline(riders, i);
		if (deadline < nearest) {
			*second = nearest;
			nearest = deadline;
			*seat = i;
		} else if (deadline < *second) {
			*second = deadline;
		}
	}
	return nearest;
}

#endif /* _PMU_KAPI_RIDERS_H */
