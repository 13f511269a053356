/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Buffers: counters write records into them, and kernel code or user space reads these. Consumers
 * include linux/pmu_kapi.h, which includes this header.
 */
#ifndef _LINUX_PMU_KAPI_BUFFER_H
#define _LINUX_PMU_KAPI_BUFFER_H

#include <linux/bits.h>
#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/pmu_kapi_aux.h>
#include <linux/pmu_kapi_ring.h>
#include <linux/poll.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <uapi/linux/perf_event.h>

struct completion;
struct vm_area_struct;

/**
 * enum pmuk_buffer_flags - who reads a buffer, and who is charged for it
 * @PMUK_BUFFER_USER_TAIL: user space reads, through a writable map. It gives records back
 *	by the control page's data_tail, and its first map decides how many pages of
 *	data there are. The kernel does not read such a buffer
 * @PMUK_BUFFER_ACCOUNT: charge the pages of the data, of the AUX area and the control page to the
 *	memory cgroup of the creator. For a creator that acts because a user asks for a
 *	buffer: a map is charged to the process that maps, but the pages are there before
 */
enum pmuk_buffer_flags {
	PMUK_BUFFER_USER_TAIL	= BIT(0),
	PMUK_BUFFER_ACCOUNT	= BIT(1),
};

/**
 * struct pmuk_buffer_attr - the size of a buffer, its mode and its wakeups
 * @nr_pages: pages of data: a power of two up to 2^19, or 0 for a control page only. With
 *	PMUK_BUFFER_USER_TAIL, the number of pages until the first map
 * @mode: what becomes of a record for which there is no room
 * @watermark: wake the consumer each so many bytes; 0: each full page. At most half of
 *	the data. The first of some lost records wakes the consumer, too, and so does the
 *	stop of the buffer
 * @wakeup_events: wake the consumer each so many records instead, if not 0; @watermark is 0 then
 * @flags: enum pmuk_buffer_flags
 * @completion: completed at each wakeup, or NULL. The caller owns and initialises the
 *	completion, waits on it, and may complete it for reasons of its own, too. It must
 *	outlive the buffer
 * @waitq: a wait queue of the caller's, or NULL for one of the buffer's own. pmuk_buffer_poll()
 *	adds a waiter, and each wakeup wakes the waiters. For a file that can be polled before it
 *	has a buffer. Must outlive the buffer
 * @aux: the buffer's AUX area; all zeroes for none
 *
 * pmuk_buffer_create() copies the struct, which need not outlive the call.
 */
struct pmuk_buffer_attr {
	u32 nr_pages;
	enum pmuk_buffer_mode mode;
	u32 watermark;
	u32 wakeup_events;
	u32 flags;
	struct completion *completion;
	wait_queue_head_t *waitq;
	struct pmuk_aux_attr aux;
};

struct pmuk_buffer *pmuk_buffer_create(const struct pmuk_buffer_attr *attr, int cpu);
void pmuk_buffer_destroy(struct pmuk_buffer *b);
const void *pmuk_buffer_data(struct pmuk_buffer *b, size_t *size);
int pmuk_buffer_claim(struct pmuk_buffer *b, struct pmuk_reader *r);
int pmuk_buffer_mmap(struct pmuk_buffer *b, struct vm_area_struct *vma);
__poll_t pmuk_buffer_poll(struct pmuk_buffer *b, struct file *file, poll_table *wait);

DEFINE_FREE(pmuk_buffer, struct pmuk_buffer *, pmuk_buffer_destroy(_T))

/**
 * pmuk_buffer_control() - the control page of a buffer
 * @b: the buffer
 *
 * data_head tells how far records have been written, and data_tail how far the kernel's consumer
 * had come when it last released the buffer. In a PMUK_BUFFER_OVERWRITE buffer data_tail is where
 * the oldest record begins: when the buffer has been paused and its writers have ended, it has
 * whole records from there to data_head. ::lock, ::index, ::offset, ::time_enabled and
 * ::time_running describe the first counter of the buffer. User space that may write its map can
 * write anything here, so kernel code that needs to rely on what it reads calls
 * pmuk_buffer_get_stat().
 *
 * Context: Any, NMI too.
 * Return: The page, until @b is destroyed; NULL if @b is NULL or an ERR_PTR().
 */
static inline const struct perf_event_mmap_page *pmuk_buffer_control(struct pmuk_buffer *b)
{
	return IS_ERR_OR_NULL(b) ? NULL : pmuk_buffer_ring(b)->page;
}

/**
 * pmuk_buffer_next() - give a record back and peek at the one after it
 * @r: the reader
 *
 * Context: Any; the reader calls this.
 * Return: As pmuk_buffer_peek().
 */
static inline const struct perf_event_header *pmuk_buffer_next(struct pmuk_reader *r)
{
	pmuk_buffer_consume(r);
	return pmuk_buffer_peek(r);
}

/**
 * pmuk_for_each_record() - loop over all records of a buffer
 * @rec: the record, in place: const struct perf_event_header *
 * @r: the reader, see pmuk_buffer_claim()
 *
 * The loop gives a record back when it goes on to the next one. After a break, @rec has not been
 * given back.
 */
#define pmuk_for_each_record(rec, r)	for (; ((rec) = pmuk_buffer_next(r)); )

#endif /* _LINUX_PMU_KAPI_BUFFER_H */
