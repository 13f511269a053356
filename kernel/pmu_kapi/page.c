// SPDX-License-Identifier: GPL-2.0
/*
 * What a control page tells of its counter, as in the self-monitoring page of 2009:
 * lock, index, offset and the times, read again if the lock has moved.
 *
 * Without help from perf core, index is 0: the register is not to be read, and offset
 * is the value last published.
 */
#include <asm/barrier.h>

#include "buffer.h"
#include "internal.h"

/* Called by one at a time, see pmuk_counter::publishing. */
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
