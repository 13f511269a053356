/* SPDX-License-Identifier: GPL-2.0 */
/* The states of a counter on its own CPU, and the only ways from one state to another. */
#ifndef _PMU_KAPI_STATE_H
#define _PMU_KAPI_STATE_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/types.h>

/**
 * DOC: The state of a counter
 *
 * pmuk_counter::state is one word. It says which value a read returns, and who lets the hardware
 * count. While the counter counts and its reads are fast, the word is the value of jiffies until
 * whose end they are. Otherwise it is one of these:
 *
 * ==========================  =========  ======================================================
 * state                       reads get  the hardware
 * ==========================  =========  ======================================================
 * jiffies                     register   counts whenever perf core lets it
 * PMUK_COUNTING               register   the same; the next read may be fast again
 * PMUK_COUNTING_HELD          register   pmuk stopped it, and ->settle starts it
 * PMUK_STOPPING               -EBUSY     is being stopped or started; overflows are reported
 * PMUK_PAUSED                 ->frozen   counts whenever perf core lets it, but for nobody
 * PMUK_PAUSED_OVERDUE         ->frozen   the same; it has overflowed, and nobody handled that
 * PMUK_PAUSED_HELD            ->frozen   pmuk stopped it, and has to start it
 * PMUK_PAUSED_HELD_OVERDUE    ->frozen   the same; it has overflowed, and nobody handled that
 * PMUK_PAUSED_ENDING          ->frozen   counts for nobody until ->settle resumes the counter
 * PMUK_RESUMING               ->frozen   is being stopped or loaded, or its count corrected
 * ==========================  =========  ======================================================
 *
 * STOPPING and RESUMING are claims: a compare-and-exchange leads there from each other state, and
 * only the caller who made it leaves it again. A pause of a paused counter, and a resume of one
 * that counts, have nothing to change and claim nothing. Nobody waits for a claim, except
 * pmuk_counter_rearm(), which may sleep.
 *
 * ENDING is for an NMI that resumes a counter which perf core has started during the pause, or may
 * have. That NMI may have interrupted an update of the count, so the events of the pause are not
 * known before the NMI has ended.
 *
 * ==========================  ==========================  =====================================
 * from                        to                          who
 * ==========================  ==========================  =====================================
 * COUNTING, jiffies           jiffies                     a slow read on the owner
 * jiffies                     COUNTING                    an overflow that perf core throttles, a
 *                                                         slow read after one, a new period of 1
 * jiffies, COUNTING[_HELD]    STOPPING                    pause, set_period, settle, rearm
 * STOPPING                    PAUSED...                   pause: ->frozen is written
 * STOPPING                    RESUMING                    set_period: ->frozen is written
 * PAUSED...                   RESUMING                    resume, rearm, set_period, settle
 * RESUMING                    PAUSED...                   set_period; settle: it is held now, and
 *                                                         ->frozen complete; pause: it was ENDING
 * RESUMING                    PAUSED_ENDING               resume in an NMI; set_period
 * PAUSED_ENDING               RESUMING                    pause, set_period, settle, rearm
 * RESUMING                    STOPPING                    resume, rearm, set_period: the count is
 *                                                         right, the hardware may be started
 * STOPPING                    COUNTING                    resume, rearm, set_period, settle
 * STOPPING                    COUNTING_HELD               resume in an NMI not the PMU's own
 * PAUSED..._OVERDUE           PAUSED, PAUSED_HELD         that overflow is handled or dropped
 * COUNTING_HELD               COUNTING                    settle: perf core has it off the PMU
 * ==========================  ==========================  =====================================
 *
 * Pause, resume, set_period and the reads run on the owner, with interrupts off or in NMI; settle
 * is an irq_work there. rearm runs on any CPU while the counter is disabled. So only an NMI comes
 * between two steps. It finds either a state that holds, or a claim: then pause, resume and
 * set_period return -EBUSY, and reads get what the table says.
 */
#define PMUK_STATE(n)			(ULONG_MAX - 8 + (n))	/* jiffies does not get there */
#define PMUK_COUNTING			PMUK_STATE(0)
#define PMUK_COUNTING_HELD		PMUK_STATE(1)
#define PMUK_STOPPING			PMUK_STATE(2)
#define PMUK_PAUSED			PMUK_STATE(3)
#define PMUK_PAUSED_OVERDUE		PMUK_STATE(4)
#define PMUK_PAUSED_HELD		PMUK_STATE(5)
#define PMUK_PAUSED_HELD_OVERDUE	PMUK_STATE(6)
#define PMUK_PAUSED_ENDING		PMUK_STATE(7)
#define PMUK_RESUMING			PMUK_STATE(8)

static inline bool pmuk_state_is_claimed(unsigned long state)
{
	return state == PMUK_STOPPING || state == PMUK_RESUMING;
}

/* Returns true if reads get ->frozen. */
static inline bool pmuk_state_is_frozen(unsigned long state)
{
	return state >= PMUK_PAUSED;
}

static inline bool pmuk_state_is_held(unsigned long state)
{
	return state == PMUK_COUNTING_HELD || state == PMUK_PAUSED_HELD ||
	       state == PMUK_PAUSED_HELD_OVERDUE || state == PMUK_PAUSED_ENDING;
}

static inline bool pmuk_state_is_overdue(unsigned long state)
{
	return state == PMUK_PAUSED_OVERDUE || state == PMUK_PAUSED_HELD_OVERDUE;
}

static inline unsigned long pmuk_state_paused(bool held, bool overdue)
{
	if (held)
		return overdue ? PMUK_PAUSED_HELD_OVERDUE : PMUK_PAUSED_HELD;
	return overdue ? PMUK_PAUSED_OVERDUE : PMUK_PAUSED;
}

/* A claim starts from one of these kinds of states, or from several. */
#define PMUK_FROM_COUNTING	BIT(0)
#define PMUK_FROM_PAUSED	BIT(1)	/* any paused state except PMUK_PAUSED_ENDING */
#define PMUK_FROM_ENDING	BIT(2)
#define PMUK_FROM_ANY		(PMUK_FROM_COUNTING | PMUK_FROM_PAUSED | PMUK_FROM_ENDING)

static inline unsigned long pmuk_state_kind(unsigned long state)
{
	if (state == PMUK_PAUSED_ENDING)
		return PMUK_FROM_ENDING;
	return pmuk_state_is_frozen(state) ? PMUK_FROM_PAUSED : PMUK_FROM_COUNTING;
}

/*
 * Claims a counter for the caller. @was becomes the state before, which the caller replaces with
 * the next state in the end. Returns 0; -EBUSY if somebody else has claimed the counter, or
 * -EALREADY if @from has no states of the counter's kind.
 */
static inline int pmuk_state_claim(unsigned long *state, unsigned long *was, unsigned long from)
{
	unsigned long claim;

	*was = READ_ONCE(*state);
	do {
		if (pmuk_state_is_claimed(*was))
			return -EBUSY;
		if (!(from & pmuk_state_kind(*was)))
			return -EALREADY;
		claim = pmuk_state_is_frozen(*was) ? PMUK_RESUMING : PMUK_STOPPING;
	} while (!try_cmpxchg(state, was, claim));
	return 0;
}

/* Ends a claim. Readers who see @next also see what the caller has written before. */
static inline void pmuk_state_leave(unsigned long *state, unsigned long next)
{
	smp_store_release(state, next);	/* pairs with pmuk_counter_value() */
}

/* Makes reads fast until @tick ends, if the counter counts and pmuk does not hold it. */
static inline void pmuk_state_open(unsigned long *state, unsigned long tick)
{
	unsigned long was = READ_ONCE(*state);

	if (was <= PMUK_COUNTING)
		try_cmpxchg(state, &was, tick);
}

/* Sends the next read to the slow path. */
static inline void pmuk_state_close(unsigned long *state)
{
	unsigned long was = READ_ONCE(*state);

	while (was < PMUK_COUNTING && !try_cmpxchg(state, &was, PMUK_COUNTING))
		;
}

/* Does what ->settle has to, for a counter that perf core has taken off the PMU, or starts. */
static inline void pmuk_state_settle_off(unsigned long *state)
{
	unsigned long was = PMUK_COUNTING_HELD;

	try_cmpxchg(state, &was, PMUK_COUNTING);
}

/* Returns true to the one caller who has to handle the overdue overflow. */
static inline bool pmuk_state_take_overdue(unsigned long *state)
{
	unsigned long was = READ_ONCE(*state);

	return pmuk_state_is_overdue(was) &&
	       try_cmpxchg(state, &was, pmuk_state_paused(pmuk_state_is_held(was), false));
}

#endif /* _PMU_KAPI_STATE_H */
