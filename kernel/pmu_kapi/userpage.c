// SPDX-License-Identifier: GPL-2.0
/*
 * The control page of a buffer describes a counter, as the self-monitoring page of 2009 does: lock,
 * index, offset and the times. Readers read them again if the lock has moved.
 *
 * For a task's counter on the CPU's own PMU, perf core keeps the page up to date where it can. User
 * space that may read registers then adds index's register to offset. On arm64 an attribute of the
 * counter allows that; on x86 a process may read registers while it has the page mapped. For all
 * other counters index is 0, and offset is the value last published.
 */
#include <linux/cleanup.h>
#include <linux/compiler.h>
#include <linux/kconfig.h>
#include <linux/mutex.h>
#include <asm/barrier.h>

#include "buffer.h"
#include "hw.h"

/*
 * A CPU counter's page would be right only for readers on that CPU. perf core writes a page only
 * when it starts or stops the event, so a page without the register would lag behind. On x86 a
 * process that mapped the page before the counter was created was not allowed to read registers.
 */
static bool pmuk_page_may_live(const struct pmuk_counter *c, const struct pmuk_buffer *b)
	__must_hold(&b->lock)
{
	if (c->cpu >= 0 || !perf_local_may_user_read(c->event))
		return false;
	return IS_ENABLED(CONFIG_ARM64) || (IS_ENABLED(CONFIG_X86) && !b->maps);
}

/* The first counter of a buffer is on the buffer's page until that counter is destroyed. */
void pmuk_page_attach(struct pmuk_counter *c)
{
	struct pmuk_buffer *b = c->attr.buffer;

	if ((c->attr.flags & PMUK_INHERIT) || cmpxchg(&b->self, NULL, c))
		return;
	guard(mutex)(&b->lock);
	/* Let perf core keep the page up to date, if it can. */
	b->reads = c->core && pmuk_page_may_live(c, b) &&
		   perf_event_set_kernel_page(c->event, b->ring.page);
	c->on_page = !b->reads;
}

/* The event is gone: a process that maps the page from now on need not read registers. */
void pmuk_page_detach(struct pmuk_counter *c)
{
	struct pmuk_buffer *b = c->attr.buffer;

	guard(mutex)(&b->lock);
	if (cmpxchg(&b->self, c, NULL) == c)
		b->reads = false;
}

/* Publish where perf core does not. pmuk_counter::publishing lets in one caller at a time. */
void pmuk_page_publish(struct pmuk_counter *c, const struct pmuk_value *value)
{
	struct perf_event_mmap_page *page = c->attr.buffer->ring.page;
	u32 lock = READ_ONCE(page->lock) & ~1U;	/* user space may have written it */

	WRITE_ONCE(page->lock, lock + 1);
	smp_wmb();	/* a reader that sees one of the stores below sees that the lock is odd */
	WRITE_ONCE(page->index, 0);
	WRITE_ONCE(page->offset, value->count);
	WRITE_ONCE(page->time_enabled, value->time_enabled);
	WRITE_ONCE(page->time_running, value->time_running);
	smp_wmb();	/* a reader that sees the lock even again sees the stores above */
	WRITE_ONCE(page->lock, lock + 2);
}
