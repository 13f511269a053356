// SPDX-License-Identifier: GPL-2.0
/*
 * The AUX area of a buffer: its memory, its producer's callbacks, its life, and the calls on it.
 * The stream in it is in aux.c.
 */
#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/irq_work.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/threads.h>

#include "buffer.h"
#include "work.h"

/* ---- memory ---- */

static bool pmuk_aux_is_none(const struct pmuk_aux_attr *attr)
{
	return !attr->order && !attr->prefer && !attr->overwrite && !attr->watermark &&
	       !attr->least && !attr->ops && !attr->data;
}

const char *pmuk_aux_fault(const struct pmuk_buffer_attr *attr, int cpu)
{
	const struct pmuk_aux_attr *aux = &attr->aux;

	if (!aux->nr_pages)
		return pmuk_aux_is_none(aux) ? NULL : "AUX attributes without pages";
	if (!pmuk_pages_nr_ok(aux->nr_pages))
		return "AUX nr_pages is no power of two";
	if (cpu == -1)
		return "an AUX area needs a CPU that writes it";
	if (aux->order > MAX_PAGE_ORDER || BIT(aux->order) > aux->nr_pages)
		return "AUX pieces are larger than they can be, or than the area";
	if (aux->least > (u64)aux->nr_pages * PAGE_SIZE)
		return "AUX parts are larger than the area";
	if (aux->overwrite && (attr->flags & PMUK_BUFFER_USER_TAIL))
		return "user space cannot give back AUX bytes that are overwritten";
	if (aux->ops && !aux->ops->setup)
		return "AUX ops without setup";
	return NULL;
}

int pmuk_aux_list_pages(struct pmuk_aux *aux)
{
	unsigned int i;

	aux->addresses = kvmalloc_array(aux->pages.nr, sizeof(*aux->addresses),
					aux->pages.gfp | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!aux->addresses)
		return -ENOMEM;
	for (i = 0; i < aux->pages.nr; i++)
		aux->addresses[i] = page_address(aux->pages.pages[i]);
	return 0;
}

static atomic_t pmuk_aux_sessions = ATOMIC_INIT(0);

/* Areas that belong together have one number for perf_event_aux_session(), above all pids. */
pid_t pmuk_aux_new_session(void)
{
	u32 nr = atomic_inc_return(&pmuk_aux_sessions);

	return PID_MAX_LIMIT + 1 + nr % (INT_MAX / 2);
}

/* Announces the area, which @b has, right behind the data, or where it is mapped. */
void pmuk_aux_announce(struct pmuk_buffer *b) __must_hold(&b->lock)
{
	u64 pgoff = b->aux_maps ? b->aux_pgoff : 1 + (u64)b->data.nr;
	struct perf_event_mmap_page *page = b->ring.page;

	WRITE_ONCE(page->aux_offset, pgoff * PAGE_SIZE);
	WRITE_ONCE(page->aux_size, (u64)b->aux->pages.nr * PAGE_SIZE);
}

/*
 * User space may have written any positions while the page was mapped. A writer may publish a head
 * at the same time: then that head stays.
 */
static void pmuk_aux_mend_positions(struct pmuk_area *area)
{
	struct perf_event_mmap_page *page = area->ring->page;
	u64 was, head;

	do {
		was = READ_ONCE(page->aux_head);
		head = READ_ONCE(area->head);
	} while (was != head && cmpxchg(&page->aux_head, was, head) != was);
	if (!area->overwrite && head - READ_ONCE(page->aux_tail) > area->size)
		WRITE_ONCE(page->aux_tail, head);
}

/* The ring gets other data pages, which nobody has mapped yet. The caller holds the ring. */
void pmuk_aux_swap(struct pmuk_buffer *b) __must_hold(&b->lock)
{
	if (!b->aux)
		return;
	pmuk_area_swap(&b->aux->area);
	pmuk_aux_mend_positions(&b->aux->area);
	pmuk_aux_announce(b);
}

/* Returns what begin returns later: the producer's private data, or where the area is mapped. */
static void *pmuk_aux_setup(struct pmuk_aux *aux, const struct pmuk_aux_attr *attr)
{
	void *private;

	if (!attr->ops)
		return aux->pages.map;
	if (pmuk_aux_list_pages(aux))
		return ERR_PTR(-ENOMEM);
	private = attr->ops->setup(attr->data, aux->b->cpu, aux->addresses, aux->pages.nr,
				   attr->overwrite) ?: ERR_PTR(-ENOMEM);
	if (!IS_ERR(private))
		aux->ops = attr->ops;
	return private;
}

/* Called when no writer can come any more. The pages stay as long as they are mapped. */
static void pmuk_aux_teardown(struct pmuk_aux *aux)
{
	const struct pmuk_aux_ops *ops = aux->ops;

	if (!ops)
		return;
	aux->ops = NULL;
	if (ops->free)
		ops->free(aux->area.private);
	if (aux->held)
		module_put(ops->owner);
}

/* ---- life ---- */

/* The area was killed, and is closed. The buffer may be gone after this. */
static void pmuk_aux_finish(struct pmuk_aux *aux)
{
	pmuk_aux_teardown(aux);
	complete(&aux->gone);
	pmuk_buffer_put(aux->b);
}

/* The area was killed while open, and is now closed: do what pmuk_aux_kill() left to the writer. */
static void pmuk_aux_put(struct work_struct *work)
{
	struct pmuk_aux *aux = container_of(work, struct pmuk_aux, gone_work);

	irq_work_sync(&aux->gone_irq);
	pmuk_aux_finish(aux);
}

static void pmuk_aux_gone_irq(struct irq_work *work)
{
	queue_work(pmuk_wq, &container_of(work, struct pmuk_aux, gone_irq)->gone_work);
}

static void pmuk_aux_gone(struct pmuk_area *area)
{
	irq_work_queue(&container_of(area, struct pmuk_aux, area)->gone_irq);
}

static void pmuk_aux_init(struct pmuk_aux *aux, const struct pmuk_aux_attr *attr, void *private)
{
	u64 size = (u64)aux->pages.nr * PAGE_SIZE;

	aux->area = (struct pmuk_area){
		.ring		= &aux->b->ring,
		.data		= aux->pages.map,
		.size		= size,
		.watermark	= min_t(u64, attr->watermark ?: size, size / 2),
		.least		= aux->least,
		.overwrite	= attr->overwrite,
		.records	= aux->b->ring.size || aux->b->user_tail,
		.private	= private,
		.gone		= pmuk_aux_gone,
	};
	pmuk_area_init(&aux->area, aux->b->user_tail);
	init_completion(&aux->gone);
	init_irq_work(&aux->gone_irq, pmuk_aux_gone_irq);
	INIT_WORK(&aux->gone_work, pmuk_aux_put);
}

/* The buffer has its ring already. If this fails, the caller frees the buffer. */
int pmuk_aux_alloc(struct pmuk_buffer *b, const struct pmuk_buffer_attr *attr, gfp_t gfp, int node)
{
	struct pmuk_aux *aux;
	void *private;
	int ret;

	if (!attr->aux.nr_pages)
		return 0;
	aux = kzalloc_node(sizeof(*aux), gfp, node);
	if (!aux)
		return -ENOMEM;
	b->aux = aux;
	aux->b = b;
	aux->session = pmuk_aux_new_session();
	aux->least = attr->aux.least ?: 1;
	ret = pmuk_pages_alloc(&aux->pages, attr->aux.nr_pages, gfp, node, attr->aux.order,
			       attr->aux.prefer);
	if (ret)
		return ret;
	private = pmuk_aux_setup(aux, &attr->aux);
	if (IS_ERR(private))
		return PTR_ERR(private);
	pmuk_aux_init(aux, &attr->aux, private);
	scoped_guard(mutex, &b->lock)
		pmuk_aux_announce(b);
	return 0;
}

void pmuk_aux_free(struct pmuk_buffer *b)
{
	struct pmuk_aux *aux = b->aux;

	if (!aux)
		return;
	kvfree(aux->addresses);
	pmuk_pages_free(&aux->pages);
	kfree(aux);
}

/*
 * From now on no writer can open the area. A writer that has the area open keeps the buffer, and
 * the module whose callback frees what was set up. The caller has a reference to the buffer, and
 * calls pmuk_aux_end() later.
 */
void pmuk_aux_kill(struct pmuk_buffer *b)
{
	struct pmuk_aux *aux = b->aux;

	if (!aux)
		return;
	pmuk_buffer_get(b);
	aux->held = !aux->ops || try_module_get(aux->ops->owner);
	aux->left = pmuk_area_kill(&aux->area);
}

/*
 * The area was killed. Its callback is called here if no writer had the area open then. A module
 * that is being unloaded cannot be held: wait for the writer. So the caller holds no lock that a
 * writer or a callback needs.
 */
void pmuk_aux_end(struct pmuk_buffer *b)
{
	struct pmuk_aux *aux = b->aux;

	if (!aux)
		return;
	if (!aux->left)
		pmuk_aux_finish(aux);
	else if (!aux->held)
		wait_for_completion(&aux->gone);
}

/* ---- the producer's calls ---- */

/**
 * pmuk_aux_output_begin() - begin to write the AUX area of a buffer
 * @handle: the caller's, and not in use; filled, or emptied if this returns NULL
 * @b: the buffer
 *
 * Call this before the hardware writes. After it, up to &pmuk_aux_handle.size bytes may be written
 * from &pmuk_aux_handle.head on. They overwrite no byte that the consumer has not given back. If
 * the area overwrites, they may be all of it. pmuk_aux_output_end() ends this part, at any time
 * later. Until then no other part can begin: such a call is refused, and counted. Records may be
 * written to the buffer meanwhile. Follows the output API of 2015 for AUX areas.
 *
 * Context: Any, NMI too; on the buffer's CPU, with preemption off.
 * Return: What the area's &pmuk_aux_ops.setup has returned, or without ops the area's bytes, mapped
 * twice in a row. NULL if there is no AUX area, or less room than &pmuk_aux_attr.least, or the area
 * is being written, copied into a record that this NMI has interrupted, paused or destroyed.
 */
void *pmuk_aux_output_begin(struct pmuk_aux_handle *handle, struct pmuk_buffer *b)
{
	if (IS_ERR_OR_NULL(b) || !b->aux) {
		handle->area = NULL;
		return NULL;
	}
	return pmuk_area_begin(&b->aux->area, handle);
}
EXPORT_SYMBOL_GPL(pmuk_aux_output_begin);

/**
 * pmuk_aux_output_lose() - report bytes for which there was no room
 * @b: the buffer
 * @bytes: how many
 *
 * May be called whether the area is being written or not. The bytes are counted as truncated, and
 * the next PERF_RECORD_AUX and the next span have PERF_AUX_FLAG_TRUNCATED.
 *
 * Context: Any, NMI too; on the buffer's CPU, with preemption off.
 */
void pmuk_aux_output_lose(struct pmuk_buffer *b, u64 bytes)
{
	if (!IS_ERR_OR_NULL(b) && b->aux)
		pmuk_area_lose(&b->aux->area, bytes);
}
EXPORT_SYMBOL_GPL(pmuk_aux_output_lose);

/**
 * pmuk_get_aux() - the producer's private data of an open part
 * @handle: the handle that pmuk_aux_output_begin() was called with
 *
 * Context: Any, NMI too.
 * Return: What pmuk_aux_output_begin() has returned for @handle; NULL if that was NULL, and after
 * pmuk_aux_output_end().
 */
void *pmuk_get_aux(struct pmuk_aux_handle *handle)
{
	return handle->area ? handle->area->private : NULL;
}
EXPORT_SYMBOL_GPL(pmuk_get_aux);

/* ---- anybody's calls ---- */

static struct pmuk_area *pmuk_aux_area(struct pmuk_buffer *b)
{
	if (IS_ERR_OR_NULL(b))
		return ERR_PTR(-EINVAL);
	return b->aux ? &b->aux->area : ERR_PTR(-ENOENT);
}

/**
 * pmuk_aux_data() - the AUX area of a buffer
 * @b: the buffer
 * @size: where to put its size in bytes; may be NULL
 *
 * What lies at position p of the stream, such as aux_offset of a PERF_RECORD_AUX, is at offset p
 * modulo the size; the pages are mapped twice in a row.
 *
 * Context: Any, NMI too.
 * Return: The area, until @b is destroyed; NULL if @b is NULL or an ERR_PTR(), or has none.
 */
const void *pmuk_aux_data(struct pmuk_buffer *b, size_t *size)
{
	struct pmuk_area *area = pmuk_aux_area(b);

	if (size)
		*size = IS_ERR(area) ? 0 : area->size;
	return IS_ERR(area) ? NULL : area->data;
}
EXPORT_SYMBOL_GPL(pmuk_aux_data);

/**
 * pmuk_aux_get_stat() - what became of the bytes of an AUX area
 * @b: the buffer
 * @stat: where to put it
 *
 * Exact when nobody is writing or reading.
 *
 * Context: Any, NMI too; from any CPU.
 * Return: 0; -EINVAL if @b or @stat is NULL or an ERR_PTR(), -ENOENT if @b has no AUX area.
 */
int pmuk_aux_get_stat(struct pmuk_buffer *b, struct pmuk_aux_stat *stat)
{
	struct pmuk_area *area = pmuk_aux_area(b);

	if (IS_ERR(area))
		return PTR_ERR(area);
	if (IS_ERR_OR_NULL(stat))
		return -EINVAL;
	pmuk_area_stat(area, stat);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_aux_get_stat);

/**
 * pmuk_aux_pause() - refuse to have an AUX area written from now on
 * @b: the buffer
 *
 * Refused writers are counted as discarded. A writer that has begun goes on to its end. Records are
 * not affected: see pmuk_buffer_pause().
 *
 * Context: Any, NMI too; from any CPU.
 * Return: 0; -EINVAL if @b is NULL or an ERR_PTR(), -ENOENT if it has no AUX area.
 */
int pmuk_aux_pause(struct pmuk_buffer *b)
{
	struct pmuk_area *area = pmuk_aux_area(b);

	if (IS_ERR(area))
		return PTR_ERR(area);
	pmuk_area_pause(area);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_aux_pause);

/**
 * pmuk_aux_resume() - let an AUX area be written again, after pmuk_aux_pause()
 * @b: the buffer
 *
 * Context: Any, NMI too; from any CPU.
 * Return: 0; -EINVAL if @b is NULL or an ERR_PTR(), -ENOENT if it has no AUX area, -EBUSY if the
 * area overwrites and has a reader.
 */
int pmuk_aux_resume(struct pmuk_buffer *b)
{
	struct pmuk_area *area = pmuk_aux_area(b);

	return IS_ERR(area) ? PTR_ERR(area) : pmuk_area_resume(area);
}
EXPORT_SYMBOL_GPL(pmuk_aux_resume);

/* ---- the consumer's calls ---- */

/**
 * pmuk_aux_claim() - become the reader of an AUX area
 * @b: the buffer
 * @r: the reader; the caller's, until pmuk_aux_release()
 *
 * The caller first pauses an area that overwrites, and waits until its writer has ended. Such an
 * area cannot be resumed before the release. So a snapshot is: pause, claim, peek for the newest
 * bytes that are there, release, resume.
 *
 * Context: Any, NMI too.
 * Return: 0; -EINVAL if @b or @r is NULL or an ERR_PTR(), -ENOENT if there is no AUX area, -EPERM
 * if user space reads it, -EBUSY if there is a reader already, or if the area overwrites and is
 * not paused, or is still being written, or is being copied into a record.
 */
int pmuk_aux_claim(struct pmuk_buffer *b, struct pmuk_aux_reader *r)
{
	struct pmuk_area *area = pmuk_aux_area(b);

	if (IS_ERR(area))
		return PTR_ERR(area);
	if (IS_ERR_OR_NULL(r))
		return -EINVAL;
	if (b->user_tail)
		return -EPERM;
	return pmuk_area_claim(area, r);
}
EXPORT_SYMBOL_GPL(pmuk_aux_claim);
