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
#include <linux/preempt.h>
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

/* The caller is not preempted: readers wait while the lock is odd. */
static void pmuk_page_lock(struct perf_event_mmap_page *page)
{
	WRITE_ONCE(page->lock, READ_ONCE(page->lock) | 1);	/* user space may have written it */
	smp_wmb();	/* a reader that sees a later store sees that the lock is odd */
}

static void pmuk_page_unlock(struct perf_event_mmap_page *page)
{
	smp_wmb();	/* a reader that sees the lock even again sees the stores before */
	WRITE_ONCE(page->lock, (READ_ONCE(page->lock) | 1) + 1);
}

static void pmuk_page_write(struct perf_event_mmap_page *page, const struct pmuk_value *value)
{
	WRITE_ONCE(page->index, 0);
	WRITE_ONCE(page->offset, value->count);
	WRITE_ONCE(page->time_enabled, value->time_enabled);
	WRITE_ONCE(page->time_running, value->time_running);
}

/* The counter before this one may have left its values, and what perf core told of it. */
static void pmuk_page_begin(struct pmuk_counter *c, struct pmuk_buffer *b) __must_hold(&b->lock)
{
	guard(preempt)();
	pmuk_page_lock(b->ring.page);
	pmuk_buffer_clean_header(b);
	pmuk_page_write(b->ring.page, &c->pub[0]);
	pmuk_page_unlock(b->ring.page);
}

/* The first counter of a buffer is on the buffer's page until that counter is destroyed. */
void pmuk_page_attach(struct pmuk_counter *c)
{
	struct pmuk_buffer *b = c->attr.buffer;

	guard(mutex)(&b->lock);
	if ((c->attr.flags & PMUK_INHERIT) || b->self)
		return;
	b->self = c;
	pmuk_page_begin(c, b);
	/* Let perf core keep the page up to date, if it can. */
	b->reads = c->core && pmuk_page_may_live(c, b) &&
		   perf_event_set_kernel_page(c->event, b->ring.page);
	c->live = b->reads;
	c->on_page = !c->live;
}

/* The event is gone: a process that maps the page from now on need not read registers. */
void pmuk_page_detach(struct pmuk_counter *c)
{
	struct pmuk_buffer *b = c->attr.buffer;

	guard(mutex)(&b->lock);
	if (b->self != c)
		return;
	b->self = NULL;
	b->reads = false;
}

/*
 * Publish where perf core does not. pmuk_counter::publishing lets in one caller at a time, which is
 * not preempted.
 */
void pmuk_page_publish(struct pmuk_counter *c, const struct pmuk_value *value)
{
	struct perf_event_mmap_page *page = c->attr.buffer->ring.page;

	pmuk_page_lock(page);
	pmuk_page_write(page, value);
	pmuk_page_unlock(page);
}

/*
 * Write over what user space has left on a page that it has mapped no longer. pmuk_page_publish()
 * may run at the same time, so only that function moves the lock on: no reader will find the same
 * lock with two values.
 */
void pmuk_page_restore(struct pmuk_counter *c, const struct pmuk_value *value)
{
	struct perf_event_mmap_page *page = c->attr.buffer->ring.page;

	WRITE_ONCE(page->lock, READ_ONCE(page->lock) & ~1U);
	pmuk_page_write(page, value);
}
