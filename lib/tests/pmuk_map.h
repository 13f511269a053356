/* SPDX-License-Identifier: GPL-2.0 */
/* A test's thread maps a buffer, as user space does through a consumer's file. */
#ifndef _PMUK_MAP_H
#define _PMUK_MAP_H

#include <kunit/test.h>
#include <linux/anon_inodes.h>
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pmu_kapi.h>
#include <linux/uaccess.h>

#if IS_ENABLED(CONFIG_KUNIT)

static inline int pmuk_test_mmap(struct file *file, struct vm_area_struct *vma)
{
	return pmuk_buffer_mmap(file->private_data, vma);
}

static const struct file_operations pmuk_test_map_fops = { .mmap = pmuk_test_mmap };

/*
 * Maps @nr_pages of the buffer, from page @at on. The control page is page 0. Returns the address.
 */
static inline unsigned long pmuk_test_map(struct kunit *test, struct pmuk_buffer *b,
					  unsigned long at, unsigned long nr_pages,
					  unsigned long prot)
{
	struct file *file = anon_inode_getfile("[pmuk_test]", &pmuk_test_map_fops, b, O_RDWR);
	unsigned long addr;

	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	addr = kunit_vm_mmap(test, file, 0, nr_pages * PAGE_SIZE, prot, MAP_SHARED,
			     at * PAGE_SIZE);
	fput(file);
	KUNIT_ASSERT_NE(test, addr, 0);
	KUNIT_ASSERT_FALSE_MSG(test, IS_ERR_VALUE(addr), "map: %ld", (long)addr);
	return addr;
}

#else

static inline unsigned long pmuk_test_map(struct kunit *test, struct pmuk_buffer *b,
					  unsigned long at, unsigned long nr_pages,
					  unsigned long prot)
{
	kunit_skip(test, "this kernel has no KUnit, whose threads could map");
	return 0;
}

#endif

static inline void pmuk_test_unmap(struct kunit *test, unsigned long addr, unsigned long nr_pages)
{
	KUNIT_EXPECT_EQ(test, vm_munmap(addr, nr_pages * PAGE_SIZE), 0);
}

/*
 * Copies the record at @pos of a buffer whose control page and data are mapped at @addr. The data
 * have not wrapped. Returns the record's type, or 0 if there is no record at @pos.
 */
static inline u32 pmuk_test_mapped_record(struct kunit *test, struct pmuk_buffer *b,
					  unsigned long addr, u64 pos, void *to, size_t size)
{
	const struct perf_event_mmap_page *page = pmuk_buffer_control(b);
	const void __user *at = (const void __user *)(addr + PAGE_SIZE + pos);
	struct perf_event_header *rec = to;

	if (pos >= smp_load_acquire(&page->data_head))	/* pairs with pmuk_output_end() */
		return 0;
	KUNIT_ASSERT_EQ(test, copy_from_user(rec, at, sizeof(*rec)), 0);
	KUNIT_ASSERT_EQ(test, copy_from_user(to, at, min_t(size_t, size, rec->size)), 0);
	return rec->type;
}

#endif /* _PMUK_MAP_H */
