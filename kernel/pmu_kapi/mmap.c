// SPDX-License-Identifier: GPL-2.0
/*
 * The mmap and poll of a consumer's file, by which user space reads a buffer.
 *
 * The geometry is that of perf's output ABI of 2009: 1 + 2^n pages, or the control
 * page alone, all maps of one size. Data pages are mapped read-only whatever is asked
 * for; the control page is writable if user space gives records back.
 */
#define pr_fmt(fmt) "pmuk: " fmt

#include <linux/capability.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include <linux/workqueue.h>

#include "buffer.h"
#include "counter.h"
#include "work.h"

/* ---- charges, as for perf's maps ---- */

static int pmuk_map_charge(struct pmuk_map *m, struct vm_area_struct *vma)
{
	u64 limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	atomic64_t *pinned = &vma->vm_mm->pinned_vm;

	m->locked = perf_mlock_charge(m->user, vma_pages(vma));
	m->pinned = vma_pages(vma) - m->locked;
	if (!m->pinned || atomic64_add_return(m->pinned, pinned) <= limit || capable(CAP_IPC_LOCK))
		return 0;
	pr_debug("mmap: more than perf_event_mlock_kb and RLIMIT_MEMLOCK allow\n");
	atomic64_sub(m->pinned, pinned);
	perf_mlock_uncharge(m->user, m->locked);
	return -EPERM;
}

static void pmuk_map_free(struct pmuk_map *m)
{
	pmuk_pages_free(&m->data);
	free_uid(m->user);
	kfree(m);
}

/* Runs a grace period after pmuk_mmap_drop(): no writer uses the pages any more. */
static void pmuk_map_free_late(struct work_struct *work)
{
	pmuk_map_free(container_of(to_rcu_work(work), struct pmuk_map, late));
}

/* Makes a map, and charges its pages. Returns -EPERM if the user may not lock so many pages. */
static struct pmuk_map *pmuk_map_make(struct pmuk_buffer *b, struct vm_area_struct *vma)
{
	struct pmuk_map *m = kzalloc_node(sizeof(*m), GFP_KERNEL_ACCOUNT, NUMA_NO_NODE);
	int ret;

	if (!m)
		return ERR_PTR(-ENOMEM);
	m->b = b;
	m->of_aux = vma->vm_pgoff;
	m->user = get_uid(current_user());
	refcount_set(&m->vmas, 1);
	INIT_RCU_WORK(&m->late, pmuk_map_free_late);
	ret = pmuk_map_charge(m, vma);
	if (!ret)
		return m;
	pmuk_map_free(m);
	return ERR_PTR(ret);
}

static void pmuk_map_put(struct pmuk_map *m, struct mm_struct *mm)
{
	if (!refcount_dec_and_test(&m->vmas))
		return;
	if (m->reads)
		perf_forbid_user_reads(mm);
	atomic64_sub(m->pinned, &mm->pinned_vm);
	perf_mlock_uncharge(m->user, m->locked);
	if (m->data.pages)
		queue_rcu_work(pmuk_wq, &m->late);
	else
		pmuk_map_free(m);
}

/* ---- maps of the control page and the data ---- */

/* The checks that need no lock. pmuk_aux_mmap_fault() checks the place of an AUX area. */
static const char *pmuk_mmap_fault(const struct pmuk_buffer *b, struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_MAYSHARE))
		return "not shared";
	if (vma->vm_flags & VM_EXEC)
		return "executable";
	if (vma->vm_pgoff)
		return b->aux ? NULL : "an offset";
	if (!pmuk_pages_nr_ok(vma_pages(vma) - 1))
		return "neither 1 nor 1 + 2^n pages";
	if (b->cpu == -1 && vma_pages(vma) != 1)
		return "data pages of a buffer that has just a control page";
	/* The data pages never change, as ->user_tail is clear. */
	if (!b->user_tail && vma_pages(vma) != 1 + context_unsafe(b->data.nr))
		return "not the size of the buffer";
	return NULL;
}

/*
 * Exchange the buffer's data pages, which nobody has mapped, for those in @data. Writers have
 * preemption off, so no writer uses the old pages after the grace period.
 */
static void pmuk_mmap_swap(struct pmuk_buffer *b, struct pmuk_pages *data)
	__must_hold(&b->map_lock)
{
	u64 size = (u64)data->nr * PAGE_SIZE;

	pmuk_ring_hold(&b->ring);
	synchronize_rcu();
	guard(mutex)(&b->lock);
	swap(b->data, *data);
	b->ring.page->data_size = size;
	pmuk_aux_swap(b);
	pmuk_ring_reset(&b->ring, b->data.map, size, pmuk_buffer_watermark(b, size));
	b->dropped = false;
}

/*
 * The last map, @m, goes. If user space has chosen the number of data pages, these pages and their
 * records go with the map, as nobody is charged for them any more. munmap(2) holds the mmap_lock,
 * so this waits neither for writers nor for memory: the pages are freed later, and the ring refuses
 * records until the next map.
 */
static void pmuk_mmap_drop(struct pmuk_buffer *b, struct pmuk_map *m)
	__must_hold(&b->lock)
{
	if (!b->user_tail)
		return;
	pmuk_ring_hold(&b->ring);
	swap(b->data, m->data);
	WRITE_ONCE(b->ring.page->data_size, 0);
	b->dropped = true;
}

/*
 * Map @page now, so that no fault has to be served later. The page is mapped as a private map's
 * would be, which can be read and not written: the first write asks pmuk_mmap_mkwrite(). After a
 * failure nothing of @vma is mapped: other threads could read there until mmap(2) has failed, and
 * the caller frees the pages before that.
 */
static int pmuk_mmap_insert(struct vm_area_struct *vma, unsigned long at, struct page *page)
{
	pgprot_t prot = vm_get_page_prot(vma->vm_flags & ~VM_SHARED);
	int ret = remap_pfn_range(vma, vma->vm_start + at * PAGE_SIZE, page_to_pfn(page), PAGE_SIZE,
				  prot);

	if (ret)
		zap_special_vma_range(vma, vma->vm_start, vma->vm_end - vma->vm_start);
	return ret;
}

static int pmuk_mmap_insert_pages(struct vm_area_struct *vma, unsigned long at,
				  const struct pmuk_pages *p)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; !ret && i < p->nr; i++)
		ret = pmuk_mmap_insert(vma, at + i, p->pages[i]);
	return ret;
}

static int pmuk_mmap_insert_all(struct pmuk_buffer *b, const struct pmuk_pages *data,
				struct vm_area_struct *vma)
{
	return pmuk_mmap_insert(vma, 0, b->control) ?: pmuk_mmap_insert_pages(vma, 1, data);
}

/* Reset the page to what that of a new buffer has, with the counter's present snapshot. */
static void pmuk_mmap_clean_page(struct pmuk_buffer *b) __must_hold(&b->lock)
{
	pmuk_buffer_describe(b);
	if (b->self && b->self->on_page)
		pmuk_publish_again(b->self);
}

/*
 * Map @nr new pages, which then replace the buffer's data pages. If this fails, the buffer stays as
 * it was.
 */
static int pmuk_mmap_bring(struct pmuk_buffer *b, unsigned int nr, struct vm_area_struct *vma)
	__must_hold(&b->map_lock)
{
	struct pmuk_pages data;
	int ret;

	ret = pmuk_pages_alloc(&data, nr, GFP_KERNEL_ACCOUNT, cpu_to_node(b->cpu), 0, false);
	if (ret)
		return ret;
	ret = pmuk_mmap_insert_all(b, &data, vma);
	if (!ret)
		pmuk_mmap_swap(b, &data);
	pmuk_pages_free(&data);
	return ret;
}

/* Counts the map. Returns whether the map has to bring data pages, or -EBUSY. */
static int pmuk_mmap_begin(struct pmuk_map *m, unsigned int nr)
{
	struct pmuk_buffer *b = m->b;

	guard(mutex)(&b->lock);
	if ((b->maps && nr != b->data.nr) || (b->aux_maps && b->aux_pgoff <= nr)) {
		pr_debug("mmap: other maps are of another size, or of the AUX area there\n");
		return -EBUSY;
	}
	if (b->user_tail && !b->maps)
		pmuk_mmap_clean_page(b);
	m->first = !b->maps++;
	m->reads = b->reads;
	return nr != b->data.nr || b->dropped;
}

/* Other maps may have ended while this one failed. They have left the data pages to this one. */
static void pmuk_mmap_undo(struct pmuk_map *m)
{
	struct pmuk_buffer *b = m->b;

	guard(mutex)(&b->lock);
	if (!--b->maps && !m->first)
		pmuk_mmap_drop(b, m);
}

static int pmuk_mmap_locked(struct pmuk_map *m, struct vm_area_struct *vma)
{
	unsigned int nr = vma_pages(vma) - 1;
	struct pmuk_buffer *b = m->b;
	int ret;

	lockdep_assert_held(&b->map_lock);
	ret = pmuk_mmap_begin(m, nr);
	if (ret < 0)
		return ret;
	if (m->reads)
		perf_allow_user_reads(vma->vm_mm);
	if (ret)
		ret = pmuk_mmap_bring(b, nr, vma);
	else
		/* No other map can bring pages now, and the last map cannot go: the pages stay. */
		ret = pmuk_mmap_insert_all(b, context_unsafe(&b->data), vma);
	if (ret)
		pmuk_mmap_undo(m);
	return ret;
}

/* ---- maps of the AUX area ---- */

/*
 * Returns what is wrong with a map of the AUX area, or NULL. User space may have written the offset
 * and the size that the control page announces, so the map must match the area, too.
 */
static const char *pmuk_aux_mmap_fault(const struct pmuk_buffer *b, struct vm_area_struct *vma)
	__must_hold(&b->lock)
{
	const struct perf_event_mmap_page *page = b->ring.page;
	u64 offset = READ_ONCE(page->aux_offset), size = READ_ONCE(page->aux_size);

	if (vma->vm_pgoff < 1 + (u64)b->data.nr)
		return "an AUX area in the data";
	if (offset % PAGE_SIZE || offset / PAGE_SIZE != vma->vm_pgoff)
		return "not the aux_offset that is announced";
	if (size != (u64)vma_pages(vma) * PAGE_SIZE)
		return "not the aux_size that is announced";
	if (vma_pages(vma) != b->aux->pages.nr)
		return "not the size of the AUX area";
	if (b->aux_maps && b->aux_pgoff != vma->vm_pgoff)
		return "an AUX area that is mapped at another offset";
	return NULL;
}

/* User space may have written an offset that lies in the data: mend it. */
static void pmuk_aux_drop(struct pmuk_buffer *b) __must_hold(&b->lock)
{
	b->aux_maps--;
	if (READ_ONCE(b->ring.page->aux_offset) < (1 + (u64)b->data.nr) * PAGE_SIZE)
		pmuk_aux_announce(b);
}

static int pmuk_aux_mmap_begin(struct pmuk_buffer *b, struct vm_area_struct *vma)
{
	const char *fault;

	guard(mutex)(&b->lock);
	fault = pmuk_aux_mmap_fault(b, vma);
	if (fault) {
		pr_debug("mmap: %s\n", fault);
		return -EINVAL;
	}
	b->aux_maps++;
	b->aux_pgoff = vma->vm_pgoff;
	return 0;
}

static int pmuk_aux_mmap_locked(struct pmuk_map *m, struct vm_area_struct *vma)
{
	struct pmuk_buffer *b = m->b;
	int ret;

	lockdep_assert_held(&b->map_lock);
	ret = pmuk_aux_mmap_begin(b, vma);
	if (ret)
		return ret;
	ret = pmuk_mmap_insert_pages(vma, 0, &b->aux->pages);
	if (ret) {
		guard(mutex)(&b->lock);
		pmuk_aux_drop(b);
	}
	return ret;
}

/* ---- maps of either kind ---- */

static vm_fault_t pmuk_mmap_mkwrite(struct vm_fault *vmf)
{
	return vmf->pgoff ? VM_FAULT_SIGBUS : 0;
}

static int pmuk_mmap_may_split(struct vm_area_struct *vma, unsigned long addr)
{
	return -EINVAL;
}

/* mremap(2) moves a map: the new one is opened, and then the old one is closed. */
static void pmuk_mmap_open(struct vm_area_struct *vma)
{
	struct pmuk_map *m = vma->vm_private_data;

	refcount_inc(&m->vmas);
	pmuk_buffer_get(m->b);
	guard(mutex)(&m->b->lock);
	if (m->of_aux)
		m->b->aux_maps++;
	else
		m->b->maps++;
}

static void pmuk_mmap_close(struct vm_area_struct *vma)
{
	struct pmuk_map *m = vma->vm_private_data;
	struct pmuk_buffer *b = m->b;

	scoped_guard(mutex, &b->lock) {
		if (m->of_aux)
			pmuk_aux_drop(b);
		else if (!--b->maps)
			pmuk_mmap_drop(b, m);
	}
	pmuk_map_put(m, vma->vm_mm);
	pmuk_buffer_put(b);
}

static const struct vm_operations_struct pmuk_mmap_ops = {
	.open		= pmuk_mmap_open,
	.close		= pmuk_mmap_close,
	.may_split	= pmuk_mmap_may_split,
	.pfn_mkwrite	= pmuk_mmap_mkwrite,
};

/*
 * Make @vma a map of the buffer. Children do not inherit it, and it cannot grow. Unless user space
 * gives records back, it cannot be made writable later.
 */
static int pmuk_mmap_make(struct pmuk_buffer *b, struct vm_area_struct *vma)
{
	struct pmuk_map *m = pmuk_map_make(b, vma);
	int ret;

	if (IS_ERR(m))
		return PTR_ERR(m);
	scoped_guard(mutex, &b->map_lock)
		ret = m->of_aux ? pmuk_aux_mmap_locked(m, vma) : pmuk_mmap_locked(m, vma);
	if (ret) {
		pmuk_map_put(m, vma->vm_mm);
		return ret;
	}
	pmuk_buffer_get(b);
	if (!b->user_tail)
		vm_flags_clear(vma, VM_MAYWRITE);
	vm_flags_mod(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP, VM_MAYEXEC);
	vma->vm_private_data = m;
	vma->vm_ops = &pmuk_mmap_ops;
	return 0;
}

/* ---- calls for a consumer's file ---- */

/**
 * pmuk_buffer_mmap() - map a buffer into user space
 * @b: the buffer
 * @vma: what the consumer's file_operations::mmap was given
 *
 * Maps the control page, and the data pages behind it, as perf_event_open(2) describes them. Maps
 * are shared, at offset 0, and are neither inherited by fork(2), nor split, nor grown. With
 * PMUK_BUFFER_USER_TAIL the control page may be written, and the first map decides how many data
 * pages there are. When the last map goes, so do these pages and their records. Records are then
 * discarded until the next map, which may decide differently, and finds a clean control page. A map
 * holds the buffer, and may outlive pmuk_buffer_destroy(): the consumer's file keeps its module
 * until then.
 *
 * Pages are accounted as those of perf's maps, and with them: up to perf_event_mlock_kb for each
 * user and CPU, and in mm_struct::pinned_vm, under RLIMIT_MEMLOCK, beyond that, unless
 * perf_event_paranoid or perf_event_mlock_kb is -1, or the caller has CAP_IPC_LOCK. On stock
 * kernels, all are under RLIMIT_MEMLOCK, except with CAP_IPC_LOCK. Data pages that a map brings
 * with it are charged to the memory cgroup of the caller, too. munmap(2) does not wait, so a map
 * is uncharged at once, as perf's are, and its data pages are freed, and uncharged in that cgroup,
 * an RCU grace period later. The next map of that buffer which brings data waits for a grace
 * period of its own: besides what is mapped, no more than about one map of each buffer is still to
 * be freed.
 *
 * The AUX area is mapped by itself, as a whole, read-only, at the offset and of the size that the
 * control page announces in aux_offset and aux_size, behind the data. User space that may write the
 * control page may choose another offset behind the data before it maps the area; all maps of the
 * area are at one offset. With PMUK_BUFFER_USER_TAIL user space gives bytes back by aux_tail.
 * Follows the AUX area of 2014.
 *
 * Context: May sleep, in file_operations::mmap.
 * Return: 0; -EINVAL if @b is NULL or an ERR_PTR(), or the size, offset or kind of
 * map is wrong; -EACCES if it is writable and user space does not read the buffer;
 * -EBUSY if it is of another size than those that are there, or reaches to where the AUX area is
 * mapped; -EPERM if it exceeds what the user and the process may have locked; -ENOMEM.
 */
int pmuk_buffer_mmap(struct pmuk_buffer *b, struct vm_area_struct *vma)
{
	const char *fault;

	if (IS_ERR_OR_NULL(b))
		return -EINVAL;
	fault = pmuk_mmap_fault(b, vma);
	if (fault) {
		pr_debug("mmap: %s\n", fault);
		return -EINVAL;
	}
	if (!b->user_tail && (vma->vm_flags & VM_WRITE)) {
		pr_debug("mmap: writable, and user space does not read the buffer\n");
		return -EACCES;
	}
	return pmuk_mmap_make(b, vma);
}
EXPORT_SYMBOL_GPL(pmuk_buffer_mmap);

/**
 * pmuk_buffer_poll() - poll a buffer
 * @b: the buffer
 * @file: what the consumer's file_operations::poll was given
 * @wait: the same; NULL if the caller has called poll_wait() on &pmuk_buffer_attr.waitq itself
 *
 * Context: May sleep, in file_operations::poll.
 * Return: EPOLLIN | EPOLLRDNORM if the buffer has woken its consumer, as at its watermark, once or
 * more often since the last call: only the first caller sees that wakeup. Each caller gets the same
 * mask as long as no record reports the latest losses, and the consumer has not given back all
 * records.
 * Each caller also gets the mask from when a producer of the AUX area has found too little room
 * until the reader has made room. A reader that then finds no new record has to read up to
 * &perf_event_mmap_page.aux_head: the record that reports the bytes may be lost.
 * Else 0; EPOLLERR if @b is NULL or an ERR_PTR().
 */
__poll_t pmuk_buffer_poll(struct pmuk_buffer *b, struct file *file, poll_table *wait)
{
	if (IS_ERR_OR_NULL(b))
		return EPOLLERR;
	poll_wait(file, b->waitq, wait);
	if (atomic_xchg(&b->unseen, 0) || pmuk_ring_is_full(&b->ring))
		return EPOLLIN | EPOLLRDNORM;
	if (b->aux && pmuk_area_awaits_reader(&b->aux->area))
		return EPOLLIN | EPOLLRDNORM;
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_buffer_poll);
