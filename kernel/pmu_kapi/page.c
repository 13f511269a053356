// SPDX-License-Identifier: GPL-2.0
/*
 * What a control page tells of its counter, as in the self-monitoring page of 2009:
 * lock, index, offset and the times, read again if the lock has moved.
 *
 * On arm64 counters of the CPU's own PMU have theirs kept up to date by perf core, where
 * that can: then user space that may read registers adds index's register to offset. For
 * all others index is 0, and offset is the value last published. So it is on x86, where
 * reading registers is allowed to who has mapped a perf event, which this is not.
 */
#include <linux/compiler.h>
#include <linux/kconfig.h>
#include <asm/barrier.h>

#include "buffer.h"
#include "internal.h"

/* The first one of the buffer is on its page until it ends. */
void pmuk_page_attach(struct pmuk_counter *c)
{
	struct pmuk_buffer *b = c->attr.buffer;

	if ((c->attr.flags & PMUK_INHERIT) || cmpxchg(&b->self, NULL, c))
		return;
	c->on_page = !IS_ENABLED(CONFIG_ARM64) || !c->core ||
		     !perf_event_set_kernel_page(c->event, b->ring.page);
}

/* The event has gone. */
void pmuk_page_detach(struct pmuk_counter *c)
{
	cmpxchg(&c->attr.buffer->self, c, NULL);
}

/* For what perf core leaves to us. One at a time, see pmuk_counter::publishing. */
void pmuk_page_publish(struct pmuk_counter *c, const struct pmuk_value *value)
{
	struct perf_event_mmap_page *page = c->attr.buffer->ring.page;
	u32 lock = READ_ONCE(page->lock) & ~1U;	/* user space may have written it */

	WRITE_ONCE(page->lock, lock + 1);
	smp_wmb();	/* a reader that sees what follows sees that the lock is odd */
	WRITE_ONCE(page->index, 0);
	WRITE_ONCE(page->offset, value->count);
	WRITE_ONCE(page->time_enabled, value->time_enabled);
	WRITE_ONCE(page->time_running, value->time_running);
	smp_wmb();	/* a reader that sees the lock even again sees what is before it */
	WRITE_ONCE(page->lock, lock + 2);
}

/*
 * pmuk has changed perf core's count, and holds the PMU. An interrupt that was under way as the PMU
 * stopped may still land in here: it has moved prev_count then, and the page is updated again.
 */
void pmuk_page_refresh(struct pmuk_counter *c)
{
	struct perf_event *event = c->event;
	u64 prev;

	do {
		prev = local64_read(&event->hw.prev_count);
		perf_event_update_userpage(event);
	} while (local64_read(&event->hw.prev_count) != prev);
}
