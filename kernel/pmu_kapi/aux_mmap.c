// SPDX-License-Identifier: GPL-2.0
/*
 * The AUX area of a buffer handed to user space, behind the control page and the data. The rules
 * are those of the AUX area of 2014: the control page announces an offset, beyond the data, and
 * the size; a map is at the one and of the other; all are alike; pages are accounted.
 */
#define pr_fmt(fmt) "pmuk: " fmt

#include <linux/mm.h>

#include "buffer.h"

/* Right behind the data. While it is mapped, it stays where it is. */
void pmuk_aux_announce(struct pmuk_buffer *b)
{
	struct perf_event_mmap_page *page = b->ring.page;

	if (!b->aux || b->aux->maps)
		return;
	WRITE_ONCE(page->aux_offset, (1 + (u64)b->data.nr) * PAGE_SIZE);
	WRITE_ONCE(page->aux_size, (u64)b->aux->pages.nr * PAGE_SIZE);
}

/* Whether that is in the first @nr pages, which are to be the control page and data. */
bool pmuk_aux_is_mapped_in(const struct pmuk_buffer *b, unsigned long nr)
{
	return b->aux && b->aux->maps && b->aux->pgoff < nr;
}

/* What is announced user space may have written. */
static const char *pmuk_aux_mmap_fault(const struct pmuk_buffer *b, struct vm_area_struct *vma)
{
	const struct perf_event_mmap_page *page = b->ring.page;
	u64 offset = READ_ONCE(page->aux_offset), size = READ_ONCE(page->aux_size);
	const struct pmuk_aux *aux = b->aux;

	if (!(vma->vm_flags & VM_MAYSHARE))
		return "not shared";
	if (vma->vm_flags & VM_EXEC)
		return "executable";
	if (vma->vm_pgoff < 1 + (u64)b->data.nr)
		return "an AUX area in the data";
	if (offset % PAGE_SIZE || offset / PAGE_SIZE != vma->vm_pgoff)
		return "not the aux_offset that is announced";
	if (size != (u64)vma_pages(vma) * PAGE_SIZE)
		return "not the aux_size that is announced";
	if (vma_pages(vma) != aux->pages.nr)
		return "not the size of the AUX area";
	if (aux->maps && aux->pgoff != vma->vm_pgoff)
		return "an AUX area that is mapped at another offset";
	return NULL;
}

static int pmuk_aux_insert(struct pmuk_aux *aux, struct vm_area_struct *vma)
{
	unsigned long i;
	int ret = 0;

	for (i = 0; !ret && i < aux->pages.nr; i++)
		ret = pmuk_mmap_insert(vma, i, aux->pages.pages[i]);
	return ret;
}

static void pmuk_aux_open(struct vm_area_struct *vma)
{
	struct pmuk_map *m = vma->vm_private_data;

	refcount_inc(&m->vmas);
	pmuk_buffer_get(m->b);
	guard(mutex)(&m->b->lock);
	m->b->aux->maps++;
}

static void pmuk_aux_close(struct vm_area_struct *vma)
{
	struct pmuk_map *m = vma->vm_private_data;
	struct pmuk_buffer *b = m->b;

	pmuk_map_put(m, vma->vm_mm);
	scoped_guard(mutex, &b->lock) {
		b->aux->maps--;
		/* user space may have announced a place in the data */
		if (READ_ONCE(b->ring.page->aux_offset) < (1 + (u64)b->data.nr) * PAGE_SIZE)
			pmuk_aux_announce(b);
	}
	pmuk_buffer_put(b);
}

static const struct vm_operations_struct pmuk_aux_ops = {
	.open		= pmuk_aux_open,
	.close		= pmuk_aux_close,
	.may_split	= pmuk_mmap_may_split,
	.pfn_mkwrite	= pmuk_mmap_mkwrite,
};

static int pmuk_aux_mmap_locked(struct pmuk_map *m, struct vm_area_struct *vma)
{
	struct pmuk_buffer *b = m->b;
	const char *fault = pmuk_aux_mmap_fault(b, vma);
	int ret;

	if (fault) {
		pr_debug("mmap: %s\n", fault);
		return -EINVAL;
	}
	ret = pmuk_aux_insert(b->aux, vma);
	if (ret)
		return ret;
	b->aux->maps++;
	b->aux->pgoff = vma->vm_pgoff;
	return 0;
}

/* The AUX area's part of pmuk_buffer_mmap(). */
int pmuk_aux_mmap(struct pmuk_buffer *b, struct vm_area_struct *vma)
{
	if (!b->user_tail && (vma->vm_flags & VM_WRITE)) {
		pr_debug("mmap: writable, and user space does not read the buffer\n");
		return -EACCES;
	}
	return pmuk_mmap_make(b, vma, pmuk_aux_mmap_locked, &pmuk_aux_ops);
}
