/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between the supported kernels, 6.1 to 6.12.
 *
 * All version checks are here.  Only the version number identifies features: stable
 * kernels adopt names (MSG_SPLICE_PAGES in 6.1) without the code.
 */
#ifndef NABC_COMPAT_H
#define NABC_COMPAT_H

#include <linux/bvec.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/shrinker.h>
#include <linux/skbuff.h>
#include <linux/socket.h>
#include <linux/uio.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "nabc needs Linux 6.1 or later"
#endif

#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h>

#define NABC_HAVE_SPLICE true

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
/*
 * MSG_SPLICE_PAGES makes a fragment of each page, and the cost depends on the
 * number of fragments; a chunk should be one fragment.  For a zero-copy send, TCP
 * calls a function of the sender's to add fragments, as with io_uring.
 *
 * Appends up to length bytes; bytes that do not fit go to the next skb.
 */
static inline int nabc_append_pages(struct sk_buff *skb, struct iov_iter *from, size_t length)
{
	length = min(length, iov_iter_count(from));
	while (length) {
		const struct bio_vec *pages = from->bvec;
		size_t offset = pages->bv_offset + from->iov_offset;
		size_t part = min_t(size_t, length, pages->bv_len - from->iov_offset);
		int i = skb_shinfo(skb)->nr_frags;

		if (skb_can_coalesce(skb, i, pages->bv_page, offset)) {
			skb_frag_size_add(&skb_shinfo(skb)->frags[i - 1], part);
		} else if (i == MAX_SKB_FRAGS) {
			return -EMSGSIZE;
		} else {
			get_page(pages->bv_page);
			skb_fill_page_desc(skb, i, pages->bv_page, offset, part);
		}
		skb_len_add(skb, part);
		iov_iter_advance(from, part);
		length -= part;
	}
	return 0;
}

/*
 * Returns how much of the pages the socket took, or a negative error.
 *
 * Each fragment has its own reference to its page, so no notification is needed
 * when the packets are freed.  Without SKBFL_ZEROCOPY_ENABLE the kernel neither
 * copies the pages nor follows an skb's pointer to ubuf, which is valid only during
 * this call.
 */
static inline ssize_t nabc_send_pages(struct socket *sock, struct bio_vec *pages,
				      unsigned int count, size_t length, int flags)
{
	static const struct ubuf_info_ops none;
	struct ubuf_info ubuf = {
		.ops = &none,
		.refcnt = REFCOUNT_INIT(1),
		.flags = flags & MSG_NO_SHARED_FRAGS ? 0 : SKBFL_SHARED_FRAG,
	};
	struct msghdr msg = {
		.msg_flags = flags | MSG_ZEROCOPY,
		.msg_ubuf = &ubuf,
		.sg_from_iter = nabc_append_pages,
	};

	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, pages, count, length);
	return sock_sendmsg(sock, &msg);
}

#else
/* Returns how much of the pages the socket took, or a negative error. */
static inline ssize_t nabc_send_pages(struct socket *sock, struct bio_vec *pages,
				      unsigned int count, size_t length, int flags)
{
	struct msghdr msg = {.msg_flags = flags | MSG_SPLICE_PAGES};

	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, pages, count, length);
	return sock_sendmsg(sock, &msg);
}
#endif

static inline int nabc_import(void __user *data, size_t length, struct iovec *room,
			      struct iov_iter *iter)
{
	return import_ubuf(ITER_SOURCE, data, length, iter);
}

#else
#include <linux/netdevice.h>

#define NABC_HAVE_SPLICE false

/*
 * Unlike sendmsg(), sendpage() does not call the security module: the caller has
 * sent the header by sock_sendmsg(), or an empty message.
 */
static inline ssize_t nabc_send_pages(struct socket *sock, struct bio_vec *pages,
				      unsigned int count, size_t length, int flags)
{
	ssize_t sent = 0;
	unsigned int i;

	for (i = 0; i < count; i++) {
		int more = i + 1 < count ? MSG_MORE | MSG_SENDPAGE_NOTLAST : 0;
		int n = kernel_sendpage(sock, pages[i].bv_page, pages[i].bv_offset, pages[i].bv_len,
					flags | more);

		if (n < 0)
			return sent ? sent : n;
		sent += n;
		if (n < pages[i].bv_len)
			break;
	}
	return sent;
}

static inline int nabc_import(void __user *data, size_t length, struct iovec *room,
			      struct iov_iter *iter)
{
	return import_single_range(ITER_SOURCE, data, length, room, iter);
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
static inline struct shrinker *nabc_shrinker_add(const struct shrinker *like)
{
	struct shrinker *shrinker = shrinker_alloc(0, "nabc");

	if (!shrinker)
		return NULL;
	shrinker->count_objects = like->count_objects;
	shrinker->scan_objects = like->scan_objects;
	shrinker->seeks = like->seeks;
	shrinker_register(shrinker);
	return shrinker;
}

static inline void nabc_shrinker_remove(struct shrinker *shrinker)
{
	shrinker_free(shrinker);
}

#else
static inline struct shrinker *nabc_shrinker_add(struct shrinker *like)
{
	return register_shrinker(like, "nabc") ? NULL : like;
}

static inline void nabc_shrinker_remove(struct shrinker *shrinker)
{
	unregister_shrinker(shrinker);
}
#endif

/*
 * Returns the process of a pidfd, without a reference, or NULL.
 *
 * No kernel exports this.  A pidfd is an anonymous inode of that name, which only
 * the kernel can create; from 6.9 on it is an inode of its own file system.
 */
static inline struct pid *nabc_pidfd_pid(struct file *file)
{
	struct inode *inode = file_inode(file);

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
	if (inode->i_sb->s_magic == PID_FS_MAGIC && !S_ISDIR(inode->i_mode))
		return inode->i_private;
#else
	if (inode->i_sb->s_magic == ANON_INODE_FS_MAGIC &&
	    !strcmp(file->f_path.dentry->d_name.name, "[pidfd]"))
		return file->private_data;
#endif
	return NULL;
}

#endif
