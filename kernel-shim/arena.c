// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mapping through which a process fills its units.
 *
 * There is one long-lived VMA per process.  Units take the lowest free slots in it
 * while they are being filled, so that page tables are reused.  All files share the
 * device's i_mapping, so each file has its own range of page offsets there.
 *
 * Pages are inserted by frame number in .fault, with the unit's lock held; not in
 * .mmap, where unmap_mapping_range() cannot see the VMA yet.  VMAs need not be
 * counted, since each holds its struct file, so there is no .open and .close.
 */
#include <linux/bitmap.h>
#include <linux/slab.h>

#include "compat.h"
#include "nabc.h"

/* Chunks that one fault maps, starting with the touched one. */
#define FAULT_AROUND 32

static pgoff_t arena_page(const struct nabc_unit *unit)
{
	return unit->maker->index * NABC_ARENA_PAGES + unit->slot * NABC_CHUNK_PAGES;
}

static void arena_link(struct nabc_file *file, struct nabc_unit *unit)
{
	struct rb_node **at = &file->arena.rb_node, *parent = NULL;

	while (*at) {
		parent = *at;
		at = unit->slot < rb_entry(parent, struct nabc_unit, node)->slot
			     ? &parent->rb_left
			     : &parent->rb_right;
	}
	rb_link_node(&unit->node, parent, at);
	rb_insert_color(&unit->node, &file->arena);
}

/* Returns the unit in that slot, with a reference. */
static struct nabc_unit *arena_find(struct nabc_file *file, unsigned int slot)
{
	struct nabc_unit *unit = NULL;
	struct rb_node *at;

	spin_lock(&file->arena_lock);
	at = file->arena.rb_node;
	while (at) {
		unit = rb_entry(at, struct nabc_unit, node);
		if (slot < unit->slot)
			at = at->rb_left;
		else if (slot - unit->slot >= unit->chunk_count)
			at = at->rb_right;
		else
			break;
	}
	if (!at || !nabc_unit_tryget(unit))
		unit = NULL;
	spin_unlock(&file->arena_lock);
	return unit;
}

/* Takes slots for a new unit that is not published yet. */
int nabc_arena_reserve(struct nabc_file *file, struct nabc_unit *unit)
{
	unsigned long *slots = READ_ONCE(file->slots);
	unsigned long slot;

	if (!slots) {
		slots = kvcalloc(BITS_TO_LONGS(NABC_ARENA_SLOTS), sizeof(*slots),
				 GFP_KERNEL_ACCOUNT);
		if (!slots)
			return -ENOMEM;
		if (cmpxchg(&file->slots, NULL, slots)) {
			kvfree(slots);
			slots = READ_ONCE(file->slots);
		}
	}
	spin_lock(&file->arena_lock);
	slot = bitmap_find_next_zero_area(slots, NABC_ARENA_SLOTS, file->slot_hint,
					  unit->chunk_count, 0);
	if (slot >= NABC_ARENA_SLOTS) {
		spin_unlock(&file->arena_lock);
		return -ENOSPC;
	}
	bitmap_set(slots, slot, unit->chunk_count);
	/* No slot below the hint is free. */
	if (slot == file->slot_hint)
		file->slot_hint += unit->chunk_count;
	unit->slot = slot;
	arena_link(file, unit);
	spin_unlock(&file->arena_lock);
	unit->in_arena = true;
	return 0;
}

/*
 * For a unit that is no longer FILLING: removes its pages from all address spaces,
 * then frees its slots.
 */
void nabc_arena_leave_locked(struct nabc_unit *unit)
{
	struct nabc_file *file = unit->maker;

	lockdep_assert_held(&unit->lock);
	unmap_mapping_range(file->mapping, (loff_t)arena_page(unit) << PAGE_SHIFT,
			    (loff_t)unit->chunk_count * NABC_CHUNK_SIZE, 1);
	spin_lock(&file->arena_lock);
	rb_erase(&unit->node, &file->arena);
	bitmap_clear(file->slots, unit->slot, unit->chunk_count);
	file->slot_hint = min(file->slot_hint, unit->slot);
	spin_unlock(&file->arena_lock);
	unit->in_arena = false;
}

/* Maps the chunk of the fault and those after it. */
static vm_fault_t arena_insert_locked(struct vm_fault *vmf, struct nabc_unit *unit)
{
	struct vm_area_struct *vma = vmf->vma;
	pgoff_t first = arena_page(unit), pgoff;
	unsigned int i = (vmf->pgoff - first) / NABC_CHUNK_PAGES;
	unsigned int end = min(unit->chunk_count, i + FAULT_AROUND);
	vm_fault_t ret = VM_FAULT_SIGBUS;

	/* Past the last chunk's pages, which may be fewer than a whole chunk. */
	if ((vmf->pgoff - first) % NABC_CHUNK_PAGES >= 1ul << unit->chunks[i]->order)
		return VM_FAULT_SIGBUS;
	for (; i < end; i++) {
		unsigned long pfn = page_to_pfn(unit->chunks[i]->page);
		unsigned long n, at, count = 1ul << unit->chunks[i]->order;

		for (n = 0; n < count; n++) {
			pgoff = first + i * NABC_CHUNK_PAGES + n;
			/* A process may map only a part of the arena. */
			if (pgoff < vma->vm_pgoff || pgoff - vma->vm_pgoff >= vma_pages(vma))
				continue;
			at = vma->vm_start + ((pgoff - vma->vm_pgoff) << PAGE_SHIFT);
			ret = vmf_insert_pfn(vma, at, pfn + n);
			if (ret != VM_FAULT_NOPAGE)
				return ret;
		}
	}
	return ret;
}

static vm_fault_t arena_fault(struct vm_fault *vmf)
{
	struct nabc_file *file = vmf->vma->vm_file->private_data;
	pgoff_t page = vmf->pgoff - file->index * NABC_ARENA_PAGES;
	struct nabc_unit *unit;
	vm_fault_t ret = VM_FAULT_SIGBUS;

	if (page >= NABC_ARENA_PAGES)
		return VM_FAULT_SIGBUS;
	unit = arena_find(file, page / NABC_CHUNK_PAGES);
	if (!unit)
		return VM_FAULT_SIGBUS;
	mutex_lock(&unit->lock);
	if (unit->state == NABC_STATE_FILLING && unit->in_arena)
		ret = arena_insert_locked(vmf, unit);
	mutex_unlock(&unit->lock);
	nabc_unit_put(unit);
	return ret;
}

static int arena_may_split(struct vm_area_struct *vma, unsigned long addr)
{
	return -EINVAL;
}

static const struct vm_operations_struct arena_ops = {
	.fault = arena_fault,
	.may_split = arena_may_split,
};

int nabc_arena_mmap(struct nabc_file *file, struct vm_area_struct *vma)
{
	int ret = nabc_file_check(file);

	if (ret)
		return ret;
	if ((vma->vm_flags & (VM_SHARED | VM_EXEC)) != VM_SHARED || vma->vm_pgoff ||
	    vma_pages(vma) > NABC_ARENA_PAGES)
		return -EINVAL;
	vma->vm_pgoff = file->index * NABC_ARENA_PAGES;
	vm_flags_set(vma, VM_PFNMAP | VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP | VM_IO);
	/* mprotect() must not allow more than mmap() did. */
	vm_flags_clear(vma, VM_MAYEXEC);
	vma->vm_ops = &arena_ops;
	return 0;
}
