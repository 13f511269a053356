// SPDX-License-Identifier: GPL-2.0
/* The last published value of a counter, which any CPU may read from any context. */
#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/preempt.h>
#include <linux/seqlock.h>
#include <linux/timekeeping.h>
#include <asm/barrier.h>

#include "counter.h"

/**
 * DOC: The snapshot of a counter
 *
 * pmuk_publish() moves the latch, then writes the control page. pmuk_publish_again() writes the
 * page, then reads the latch.
 *
 * LMM(pmuk_publish:A) / LMM(pmuk_publish_again:A)
 *	The later one of both writes the newest value. page-again.litmus
 */

/*
 * Make @value the snapshot. If another context is publishing, drop @value, and return false: an NMI
 * that waited for the code that it has interrupted would wait for ever. An older value does not
 * replace a newer one. Other CPUs may wait until this ends, so it is not preempted.
 */
bool pmuk_publish(struct pmuk_counter *c, const struct pmuk_value *value)
{
	struct pmuk_value pub = *value;

	guard(preempt)();
	if (atomic_cmpxchg_acquire(&c->publishing, 0, 1))
		return false;

	pub.age = ktime_get_mono_fast_ns();
	if (value->count >= c->pub[0].count) {
		write_seqcount_latch_begin(&c->latch);
		c->pub[0] = pub;
		write_seqcount_latch(&c->latch);
		c->pub[1] = pub;
		write_seqcount_latch_end(&c->latch);
	}
	if (c->on_page) {
		smp_mb();	/* LMM(pmuk_publish:A) */
		pmuk_page_publish(c, &c->pub[0]);
	}
	atomic_set_release(&c->publishing, 0);
	return true;
}

/* Copies the snapshot to @value. Returns the latch's sequence number under which it was read. */
static unsigned int pmuk_read_snapshot(struct pmuk_counter *c, struct pmuk_value *value)
{
	unsigned int seq;

	do {
		seq = read_seqcount_latch(&c->latch);
		*value = c->pub[seq & 1];
	} while (read_seqcount_latch_retry(&c->latch, seq));
	return seq;
}

/*
 * Write the snapshot to the control page, which no process has mapped, once more. Do not take
 * ->publishing: while it is held, pmuk_publish() drops its value, which may be the final one of a
 * counter that is being disabled. So pmuk_publish() may write the page at the same time. If it has
 * moved the latch, do it again: this may have overwritten its value.
 */
void pmuk_publish_again(struct pmuk_counter *c)
{
	struct pmuk_value value;
	unsigned int seq;

	do {
		seq = pmuk_read_snapshot(c, &value);
		pmuk_page_restore(c, &value);
		smp_mb();	/* LMM(pmuk_publish_again:A) */
	} while (read_seqcount_latch_retry(&c->latch, seq));
}

/**
 * pmuk_counter_snapshot() - last published value of a counter
 * @c: the counter
 * @value: where to put the value and its age in nanoseconds
 *
 * This call takes a few loads, sends no IPI and never waits. The value is published at each
 * overflow, when the counter is paused or disabled, and by the first pmuk_counter_read_local() in
 * each tick. So the value is no older than one tick plus the time since the owner's last local
 * read, or than one period, whichever is less; a counter that is neither read locally nor overflows
 * is published only when it stops. @value->age says how old the value is.
 *
 * Context: Any, NMI too; from any CPU.
 * Return: 0; -EINVAL if @c or @value is NULL, -EOPNOTSUPP with PMUK_INHERIT.
 */
int pmuk_counter_snapshot(struct pmuk_counter *c, struct pmuk_value *value)
{
	u64 now;

	if (IS_ERR_OR_NULL(c) || !value)
		return -EINVAL;
	if (c->attr.flags & PMUK_INHERIT)
		return -EOPNOTSUPP;

	pmuk_read_snapshot(c, value);
	now = ktime_get_mono_fast_ns();
	value->age = now > value->age ? now - value->age : 0;
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_counter_snapshot);
