// SPDX-License-Identifier: GPL-2.0-only
/* Copies bytes into units from descriptors, and out of units into memory. */
#include <linux/bvec.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "nabc.h"

/* Maximum number of chunks that one NABC_IOC_READ fills: it may read less than requested. */
#define FILL_CHUNKS 128u

/*
 * Stores the pages of a range within the unit, as many as fit.  Returns the number
 * of elements; covered: how many bytes they contain.
 */
unsigned int nabc_unit_pages(const struct nabc_unit *unit, u64 offset, u64 length,
			     struct bio_vec *pages, unsigned int room, u64 *covered)
{
	unsigned int n = 0;

	*covered = 0;
	while (length && n < room) {
		u64 at = offset % NABC_CHUNK_SIZE;
		u64 part = min_t(u64, length, NABC_CHUNK_SIZE - at);

		pages[n].bv_page = unit->chunks[offset / NABC_CHUNK_SIZE]->page;
		pages[n].bv_offset = at;
		pages[n].bv_len = part;
		n++;
		offset += part;
		length -= part;
		*covered += part;
	}
	return n;
}

/* Keeps the unit FILLING, so that its pages may be written, until fill_end(). */
static int fill_begin(struct nabc_file *file, u64 id, struct nabc_unit **found)
{
	struct nabc_unit *unit = nabc_unit_get(id);
	int ret;

	if (!unit)
		return -ENOENT;
	mutex_lock(&unit->lock);
	ret = nabc_fillable_locked(unit, file);
	if (!ret)
		unit->fills++;
	mutex_unlock(&unit->lock);
	if (ret)
		nabc_unit_put(unit);
	else
		*found = unit;
	return ret;
}

static void fill_end(struct nabc_unit *unit)
{
	mutex_lock(&unit->lock);
	unit->fills--;
	mutex_unlock(&unit->lock);
	nabc_unit_put(unit);
}

static ssize_t fill_from(struct file *in, struct nabc_unit *unit, const struct nabc_read *call)
{
	unsigned int room = min_t(u64, FILL_CHUNKS, call->length / NABC_CHUNK_SIZE + 2);
	struct bio_vec *pages = kmalloc_array(room, sizeof(*pages), GFP_KERNEL);
	bool own = call->position == -1;
	loff_t position = own ? in->f_pos : call->position;
	struct iov_iter iter;
	unsigned int n;
	ssize_t ret;
	u64 length;

	if (!pages)
		return -ENOMEM;
	n = nabc_unit_pages(unit, call->offset, call->length, pages, room, &length);
	iov_iter_bvec(&iter, ITER_DEST, pages, n, length);
	/* Like sendfile(): processes that share the position must serialise. */
	ret = vfs_iter_read(in, &iter, in->f_mode & FMODE_STREAM ? NULL : &position, 0);
	if (ret > 0 && own && !(in->f_mode & FMODE_STREAM))
		in->f_pos = position;
	kfree(pages);
	return ret;
}

int nabc_fill(struct nabc_file *file, struct nabc_read *call)
{
	struct nabc_unit *unit;
	struct file *in;
	ssize_t ret;

	if (call->flags || call->position < -1 || !call->length)
		return -EINVAL;
	in = fget(call->fd);
	if (!in)
		return -EBADF;
	ret = fill_begin(file, call->id, &unit);
	if (ret)
		goto out;
	if (!nabc_within(unit, call->offset, call->length))
		ret = -ERANGE;
	else if (S_ISDIR(file_inode(in)->i_mode))
		ret = -EISDIR;
	else if (call->position != -1 && !(in->f_mode & FMODE_PREAD))
		ret = -ESPIPE;
	else
		ret = fill_from(in, unit, call);
	fill_end(unit);
	if (ret >= 0) {
		call->done = ret;
		nabc_count(NABC_READ_BYTES, ret);
		ret = 0;
	}
out:
	fput(in);
	return ret;
}

int nabc_copy(struct nabc_file *file, const struct nabc_copy *call)
{
	char __user *to = u64_to_user_ptr(call->data);
	struct nabc_unit *unit;
	u64 offset = call->offset, left = call->length;
	int ret;

	ret = nabc_access(file, call->id, NABC_RIGHT_SEND, &unit);
	if (ret)
		return ret;
	if (!nabc_within(unit, call->offset, call->length))
		ret = -ERANGE;
	while (!ret && left) {
		struct bio_vec part;
		u64 length;

		nabc_unit_pages(unit, offset, left, &part, 1, &length);
		/* 64 bits: all memory is mapped, and a chunk is contiguous. */
		if (copy_to_user(to, page_address(part.bv_page) + part.bv_offset, length))
			ret = -EFAULT;
		to += length;
		offset += length;
		left -= length;
		if (fatal_signal_pending(current))
			ret = -EINTR;
		cond_resched();
	}
	nabc_unit_put(unit);
	return ret;
}
