// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/nabc: the device, and the dispatch of its calls.
 *
 * Each ioctl is one row of a table: its number, which contains the size and
 * direction of its structure, and its function.  Structures are copied in as a
 * whole before they are read, and copied out as a whole.
 */
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "nabc.h"

union call {
	struct nabc_info info;
	struct nabc_alloc alloc;
	struct nabc_read read;
	struct nabc_insert insert;
	struct nabc_put put;
	struct nabc_socksend socksend;
	struct nabc_socksendv socksendv;
	struct nabc_copy copy;
	struct nabc_sum sum;
	struct nabc_unit_id unit;
	struct nabc_grant grant;
	struct nabc_stat stat;
	struct nabc_list list;
	struct nabc_statistics statistics;
};

static int call_info(struct nabc_file *file, union call *call)
{
	call->info = (struct nabc_info){
		.version = NABC_ABI_VERSION,
		.features = (nabc_egress_able() ? NABC_FEATURE_SUMS : 0) |
			    (NABC_HAVE_SPLICE ? NABC_FEATURE_SPLICE : 0) | NABC_FEATURE_PUT,
		.arena_size = NABC_ARENA_SIZE,
		.unit_max = NABC_UNIT_MAX,
		.memory_limit = nabc_limit_bytes(),
		.page_size = PAGE_SIZE,
		.chunk_size = NABC_CHUNK_SIZE,
		.sum_grain = NABC_SUM_GRAIN,
		.linger_max = NABC_LINGER_MAX,
		.ranges_max = NABC_RANGES_MAX,
		.header_max = NABC_HEADER_MAX,
	};
	return 0;
}

static int call_alloc(struct nabc_file *file, union call *call)
{
	struct nabc_alloc *alloc = &call->alloc;
	struct nabc_unit *unit;

	if (!alloc->size || alloc->flags || alloc->reserved)
		return -EINVAL;
	if (alloc->size > NABC_UNIT_MAX)
		return -EFBIG;
	unit = nabc_unit_make(file, alloc->size);
	if (IS_ERR(unit))
		return PTR_ERR(unit);
	alloc->id = unit->id;
	alloc->arena_offset = (u64)unit->slot * NABC_CHUNK_SIZE;
	nabc_unit_put(unit);
	return 0;
}

static int call_read(struct nabc_file *file, union call *call)
{
	return nabc_fill(file, &call->read);
}

static int call_insert(struct nabc_file *file, union call *call)
{
	return nabc_unit_insert(file, &call->insert);
}

static int call_socksend(struct nabc_file *file, union call *call)
{
	return nabc_socksend(file, &call->socksend);
}

static int call_socksendv(struct nabc_file *file, union call *call)
{
	return nabc_socksendv(file, &call->socksendv);
}

static int call_copy(struct nabc_file *file, union call *call)
{
	return nabc_copy(file, &call->copy);
}

static int call_sum(struct nabc_file *file, union call *call)
{
	return nabc_sum(file, &call->sum);
}

static int call_destroy(struct nabc_file *file, union call *call)
{
	if (call->unit.flags || call->unit.reserved)
		return -EINVAL;
	return nabc_unit_destroy(file, call->unit.id);
}

static int call_hold(struct nabc_file *file, union call *call)
{
	if (call->unit.flags || call->unit.reserved)
		return -EINVAL;
	return nabc_hold(file, call->unit.id);
}

static int call_release(struct nabc_file *file, union call *call)
{
	if (call->unit.flags || call->unit.reserved)
		return -EINVAL;
	return nabc_release(file, call->unit.id);
}

static int call_grant(struct nabc_file *file, union call *call)
{
	return nabc_grant(file, &call->grant);
}

static int call_revoke(struct nabc_file *file, union call *call)
{
	return nabc_revoke(file, &call->grant);
}

static int call_stat(struct nabc_file *file, union call *call)
{
	return nabc_stat(file, &call->stat);
}

static int call_list(struct nabc_file *file, union call *call)
{
	return nabc_list(file, &call->list);
}

static int call_put(struct nabc_file *file, union call *call)
{
	return nabc_put(file, &call->put);
}

static int call_statistics(struct nabc_file *file, union call *call)
{
	nabc_statistics(file, &call->statistics);
	return 0;
}

static const struct {
	unsigned int cmd;
	int (*run)(struct nabc_file *file, union call *call);
} calls[] = {
	[_IOC_NR(NABC_IOC_INFO)] = {NABC_IOC_INFO, call_info},
	[_IOC_NR(NABC_IOC_ALLOC)] = {NABC_IOC_ALLOC, call_alloc},
	[_IOC_NR(NABC_IOC_READ)] = {NABC_IOC_READ, call_read},
	[_IOC_NR(NABC_IOC_INSERT)] = {NABC_IOC_INSERT, call_insert},
	[_IOC_NR(NABC_IOC_SOCKSEND)] = {NABC_IOC_SOCKSEND, call_socksend},
	[_IOC_NR(NABC_IOC_SOCKSENDV)] = {NABC_IOC_SOCKSENDV, call_socksendv},
	[_IOC_NR(NABC_IOC_COPY)] = {NABC_IOC_COPY, call_copy},
	[_IOC_NR(NABC_IOC_SUM)] = {NABC_IOC_SUM, call_sum},
	[_IOC_NR(NABC_IOC_DESTROY)] = {NABC_IOC_DESTROY, call_destroy},
	[_IOC_NR(NABC_IOC_HOLD)] = {NABC_IOC_HOLD, call_hold},
	[_IOC_NR(NABC_IOC_RELEASE)] = {NABC_IOC_RELEASE, call_release},
	[_IOC_NR(NABC_IOC_GRANT)] = {NABC_IOC_GRANT, call_grant},
	[_IOC_NR(NABC_IOC_REVOKE)] = {NABC_IOC_REVOKE, call_revoke},
	[_IOC_NR(NABC_IOC_STAT)] = {NABC_IOC_STAT, call_stat},
	[_IOC_NR(NABC_IOC_LIST)] = {NABC_IOC_LIST, call_list},
	[_IOC_NR(NABC_IOC_STATISTICS)] = {NABC_IOC_STATISTICS, call_statistics},
	[_IOC_NR(NABC_IOC_PUT)] = {NABC_IOC_PUT, call_put},
};

static long device_ioctl(struct file *open, unsigned int cmd, unsigned long arg)
{
	struct nabc_file *file = open->private_data;
	void __user *user = (void __user *)arg;
	size_t size = _IOC_SIZE(cmd);
	unsigned int nr = _IOC_NR(cmd);
	union call call;
	int ret;

	if (nr >= ARRAY_SIZE(calls) || calls[nr].cmd != cmd)
		return -ENOTTY;
	ret = nabc_file_check(file);
	if (ret)
		return ret;
	if (_IOC_DIR(cmd) & _IOC_WRITE && copy_from_user(&call, user, size))
		return -EFAULT;
	ret = calls[nr].run(file, &call);
	if (!ret && _IOC_DIR(cmd) & _IOC_READ && copy_to_user(user, &call, size)) {
		/* The caller did not get the id. */
		if (cmd == NABC_IOC_ALLOC)
			nabc_unit_destroy(file, call.alloc.id);
		if (cmd == NABC_IOC_PUT)
			nabc_unit_destroy(file, call.put.id);
		ret = -EFAULT;
	}
	return ret;
}

static int device_open(struct inode *inode, struct file *open)
{
	struct nabc_file *file = nabc_file_open(open->f_mapping);

	if (IS_ERR(file))
		return PTR_ERR(file);
	open->private_data = file;
	return nonseekable_open(inode, open);
}

static int device_release(struct inode *inode, struct file *open)
{
	nabc_file_close(open->private_data);
	return 0;
}

static int device_mmap(struct file *open, struct vm_area_struct *vma)
{
	return nabc_arena_mmap(open->private_data, vma);
}

static const struct file_operations device_operations = {
	.owner = THIS_MODULE,
	.open = device_open,
	.release = device_release,
	.unlocked_ioctl = device_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = device_mmap,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "nabc",
	.fops = &device_operations,
	.mode = 0660,
};

static int __init nabc_init(void)
{
	int ret;

	ret = nabc_memory_init();
	if (ret)
		return ret;
	ret = nabc_shrinker_init();
	if (ret)
		goto out_memory;
	ret = nabc_egress_init();
	if (ret)
		goto out_shrinker;
	ret = misc_register(&device);
	if (ret)
		goto out_egress;
	return 0;

out_egress:
	nabc_egress_exit();
out_shrinker:
	nabc_shrinker_exit();
out_memory:
	nabc_memory_exit();
	return ret;
}

/* No file is open: each has a reference to the module. */
static void __exit nabc_exit(void)
{
	misc_deregister(&device);
	nabc_egress_exit();
	nabc_units_exit();
	nabc_shrinker_exit();
	nabc_files_exit();
	nabc_sums_exit();
	nabc_memory_exit();
}

module_init(nabc_init);
module_exit(nabc_exit);

MODULE_DESCRIPTION("Network Aware Data Buffering and Caching");
MODULE_AUTHOR("The nabc authors");
MODULE_LICENSE("GPL");
