// SPDX-License-Identifier: GPL-2.0-only
/*
 * Units on devices that do not compute checksums.
 *
 * For such devices the kernel computes the checksums, and first copies data that
 * may be written meanwhile (SKBFL_SHARED_FRAG, for which skb_checksum_help()
 * linearises), since the checksum must match the bytes sent.  Units are immutable
 * and do not need that copy: MSG_NO_SHARED_FRAGS is set for them.  Nor need they be
 * read again if kept checksums are requested: a netfilter hook on the device's
 * egress completes packets from these.  The hook runs last, exists only on devices
 * on which such a send was made, and ignores all packets that it does not fully
 * recognise.
 *
 * Which other code relies on SKBFL_SHARED_FRAG?  It has come to mean "do not edit
 * in place" too.  All code in 6.1 and 6.12 that writes to fragments was checked:
 *   - Outgoing ESP (esp4.c, esp6.c: esp_output_head()) edits only linear data in
 *     place: skb_tailroom() is 0 for skbs with fragments; otherwise it encrypts
 *     into its own pages or calls skb_cow_data(), which copies all fragments.
 *   - Incoming ESP (esp_input(), esp6_input()) decrypts fragments in place if the
 *     skb is not cloned, has no list and is NOT MARKED.  It can get a unit only on
 *     the same machine, over veth and the like, where packets arrive with the
 *     sender's pages, and only if the bytes of a TCP stream are taken for ESP,
 *     which espintcp does.  A process that may send a unit, but not write it,
 *     could have it "decrypted" that way with a key of its choice.  The clones
 *     that espintcp gets from strparser are of skbs that tcp_read_sock() still
 *     has, so they are copied, but that is luck, not a rule: with espintcp in the
 *     kernel (disabled in Debian) the mark is left on.
 *   - AH, IPComp, MACsec, WireGuard, TIPC, mac802154 and CAIF call
 *     skb_cow_data() or decompress into new pages; TLS decrypts into new pages;
 *     rxrpc and SCTP are not carried over TCP.
 *   - netfilter's manglers, IPVS, tc's pedit, netem's corruption and BPF write
 *     only to the linear part, after skb_ensure_writable() or the like, which
 *     copies the necessary bytes into it.
 *   - Generic XDP and veth's XDP copy skbs with fragments before programs run.
 * Sockets whose route goes through xfrm are excluded nevertheless: ESP may behave
 * differently in later kernels.  Keeping the mark would still be correct: the copy
 * makes this module as fast as sendfile() on such devices.
 */
#include <linux/if_vlan.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/netfilter_netdev.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <linux/workqueue.h>
#include <net/checksum.h>
#include <net/dst.h>
#include <net/sock.h>
#include <net/xfrm.h>

#include "compat.h"
#include "nabc.h"

static unsigned int sums = 1;
module_param(sums, uint, 0644);
MODULE_PARM_DESC(sums, "kept checksums: 0 never, 1 if asked for, 2 also at large MTUs");

static bool unshared = true;
module_param(unshared, bool, 0644);
MODULE_PARM_DESC(unshared, "send without a copy on devices that do not compute checksums");

static const bool espintcp = IS_ENABLED(CONFIG_INET_ESPINTCP) || IS_ENABLED(CONFIG_INET6_ESPINTCP);

/* At smaller MTUs, looking checksums up costs more than computing them. */
#define SUMS_MTU 4000

#define HOOKS_MAX 64

struct hook {
	struct list_head link;
	struct net_device *dev; /* held until the hook is registered */
	bool registered;
	struct nf_hook_ops ops;
	struct rcu_head rcu;
};

static LIST_HEAD(hooks); /* changed under hooks_lock, read under RCU */
static DEFINE_SPINLOCK(hooks_lock);
static unsigned int hook_count;

bool nabc_egress_able(void)
{
	return IS_ENABLED(CONFIG_NETFILTER_EGRESS) && READ_ONCE(sums);
}

/* --- completing packets --------------------------------------------------- */

/* Whether the fragment continues the previous one within a chunk: both then need one lookup. */
static bool follows(const skb_frag_t *frag, struct page *page, size_t end)
{
	struct page *next = skb_frag_page(frag);

	return compound_head(next) == compound_head(page) &&
	       ((next - page) << PAGE_SHIFT) + skb_frag_off(frag) == end;
}

static __wsum fragments_sum(const struct sk_buff *skb, struct nabc_sums_near *near, __wsum sum,
			    size_t at)
{
	const struct skb_shared_info *shared = skb_shinfo(skb);
	size_t reused, all_reused = 0, all = 0;
	unsigned int i = 0;

	while (i < shared->nr_frags) {
		struct page *page = skb_frag_page(&shared->frags[i]);
		size_t offset = skb_frag_off(&shared->frags[i]);
		size_t length = skb_frag_size(&shared->frags[i]);

		while (++i < shared->nr_frags && follows(&shared->frags[i], page, offset + length))
			length += skb_frag_size(&shared->frags[i]);
		sum = csum_block_add(sum, nabc_sums_range(near, page, offset, length, &reused), at);
		at += length;
		all += length;
		all_reused += reused;
	}
	nabc_count(NABC_SUM_REUSED, all_reused);
	nabc_count(NABC_SUM_TOUCHED, all - all_reused);
	return sum;
}

/* Does the same as skb_checksum_help(), without a copy.  If false, the kernel must do it. */
static bool packet_complete(struct sk_buff *skb, struct nabc_sums_near *near)
{
	int start = skb_checksum_start_offset(skb);
	int field = start + skb->csum_offset;
	__wsum sum;

	if (skb->ip_summed != CHECKSUM_PARTIAL || start < 0 ||
	    field + (int)sizeof(__sum16) > (int)skb_headlen(skb) ||
	    skb_ensure_writable(skb, field + sizeof(__sum16)))
		return false;
	/* The field contains the checksum of the pseudo header. */
	sum = csum_partial(skb->data + start, skb_headlen(skb) - start, 0);
	sum = fragments_sum(skb, near, sum, skb_headlen(skb) - start);
	*(__sum16 *)(skb->data + field) = csum_fold(sum) ?: CSUM_MANGLED_0;
	skb->ip_summed = CHECKSUM_NONE;
	nabc_count(NABC_SUM_PACKETS, 1);
	return true;
}

static bool device_sums(const struct net_device *dev, const struct sk_buff *skb)
{
	netdev_features_t able = NETIF_F_HW_CSUM;

	switch (vlan_get_protocol(skb)) {
	case htons(ETH_P_IP):
		able |= NETIF_F_IP_CSUM;
		break;
	case htons(ETH_P_IPV6):
		able |= NETIF_F_IPV6_CSUM;
		break;
	default:
		return true;
	}
	return dev->features & able;
}

/*
 * Whether it is plain TCP with readable fragments, at least one of which belongs to
 * a unit with checksums.
 */
static bool packet_is_ours(const struct sk_buff *skb, const struct net_device *dev)
{
	const struct skb_shared_info *shared = skb_shinfo(skb);
	bool ours = false;
	unsigned int i;

	if (skb->ip_summed != CHECKSUM_PARTIAL || !shared->nr_frags || shared->frag_list ||
	    nabc_sums_none() || skb->csum_offset != offsetof(struct tcphdr, check) ||
	    skb->encapsulation || xfrm_offload((struct sk_buff *)skb) || device_sums(dev, skb))
		return false;
	for (i = 0; i < shared->nr_frags; i++) {
		struct page *page = skb_frag_page(&shared->frags[i]);

		/* Device memory. */
		if (!page)
			return false;
		ours = ours || nabc_sums_known(page);
	}
	return ours;
}

#if IS_ENABLED(CONFIG_NETFILTER_EGRESS)
static unsigned int egress(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	netdev_features_t features;
	struct sk_buff *segments, *each, *next;
	struct nabc_sums_near near = {};

	if (!packet_is_ours(skb, state->out))
		return NF_ACCEPT;
	if (!skb_is_gso(skb)) {
		if (!packet_complete(skb, &near))
			nabc_count(NABC_SUM_FALLBACKS, 1);
		return NF_ACCEPT;
	}
	if (!(skb_shinfo(skb)->gso_type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6))) {
		nabc_count(NABC_SUM_FALLBACKS, 1);
		return NF_ACCEPT;
	}
	/* Without NETIF_F_HW_CSUM it would read the bytes, without NETIF_F_SG copy them. */
	features = netif_skb_features(skb) & ~NETIF_F_GSO_MASK;
	segments = skb_gso_segment(skb, features | NETIF_F_SG | NETIF_F_HW_CSUM);
	if (IS_ERR_OR_NULL(segments)) {
		nabc_count(NABC_SUM_FALLBACKS, 1);
		return NF_ACCEPT;
	}
	consume_skb(skb);
	skb_list_walk_safe(segments, each, next) {
		skb_mark_not_on_list(each);
		if (!packet_complete(each, &near))
			nabc_count(NABC_SUM_FALLBACKS, 1);
		nf_skip_egress(each, true);
		dev_queue_xmit(each);
	}
	return NF_STOLEN;
}

/* --- devices with the hook ----------------------------------------------------- */

static void hooks_register(struct work_struct *work)
{
	struct hook *hook, *found;

	rtnl_lock();
	do {
		found = NULL;
		spin_lock_bh(&hooks_lock);
		list_for_each_entry(hook, &hooks, link) {
			if (!hook->registered) {
				found = hook;
				break;
			}
		}
		spin_unlock_bh(&hooks_lock);
		if (!found)
			break;
		/* With RTNL, its unregistration cannot begin before the notifier can be called. */
		if (found->dev->reg_state != NETREG_REGISTERED ||
		    nf_register_net_hook(dev_net(found->dev), &found->ops)) {
			spin_lock_bh(&hooks_lock);
			list_del_rcu(&found->link);
			hook_count--;
			spin_unlock_bh(&hooks_lock);
			dev_put(found->dev);
			kfree_rcu(found, rcu);
		} else {
			atomic_long_inc(&nabc_gauges.hooks);
			dev_put(found->dev);
			WRITE_ONCE(found->registered, true);
		}
	} while (found);
	rtnl_unlock();
}

static DECLARE_WORK(register_work, hooks_register);

/*
 * Called under RCU.  The hook is registered a little later; until then the kernel
 * computes checksums.
 */
static void hook_want(struct net_device *dev)
{
	struct hook *hook, *made;

	list_for_each_entry_rcu(hook, &hooks, link) {
		if (hook->dev == dev)
			return;
	}
	made = kzalloc(sizeof(*made), GFP_ATOMIC | __GFP_NOWARN);
	if (!made)
		return;
	made->dev = dev;
	made->ops.hook = egress;
	made->ops.dev = dev;
	made->ops.pf = NFPROTO_NETDEV;
	made->ops.hooknum = NF_NETDEV_EGRESS;
	made->ops.priority = INT_MAX;
	spin_lock_bh(&hooks_lock);
	list_for_each_entry(hook, &hooks, link) {
		if (hook->dev == dev)
			goto out;
	}
	if (hook_count == HOOKS_MAX)
		goto out;
	dev_hold(dev);
	hook_count++;
	list_add_tail_rcu(&made->link, &hooks);
	made = NULL;
	schedule_work(&register_work);
out:
	spin_unlock_bh(&hooks_lock);
	kfree(made);
}

/* Called with RTNL. */
static void hooks_unregister(const struct net_device *dev, struct net *net)
{
	struct hook *hook, *found;

	do {
		found = NULL;
		spin_lock_bh(&hooks_lock);
		list_for_each_entry(hook, &hooks, link) {
			if (hook->registered && (!dev || hook->dev == dev)) {
				found = hook;
				list_del_rcu(&hook->link);
				hook_count--;
				break;
			}
		}
		spin_unlock_bh(&hooks_lock);
		if (found) {
			nf_unregister_net_hook(net ? net : dev_net(found->dev), &found->ops);
			atomic_long_dec(&nabc_gauges.hooks);
			kfree_rcu(found, rcu);
		}
	} while (found);
}

static int device_event(struct notifier_block *self, unsigned long event, void *data)
{
	struct net_device *dev = netdev_notifier_info_to_dev(data);

	/* Also when the device moves to another network namespace. */
	if (event == NETDEV_UNREGISTER)
		hooks_unregister(dev, dev_net(dev));
	return NOTIFY_DONE;
}

static struct notifier_block device_notifier = {
	.notifier_call = device_event,
};

int nabc_egress_init(void)
{
	return register_netdevice_notifier(&device_notifier);
}

void nabc_egress_exit(void)
{
	cancel_work_sync(&register_work);
	/* Handles those that are still in the queue. */
	hooks_register(NULL);
	unregister_netdevice_notifier(&device_notifier);
	rtnl_lock();
	hooks_unregister(NULL, NULL);
	rtnl_unlock();
	/* Packets may be in the hook. */
	synchronize_net();
}

#else
static void hook_want(struct net_device *dev)
{
}

int nabc_egress_init(void)
{
	return 0;
}

void nabc_egress_exit(void)
{
}
#endif

/*
 * Whether to make checksums for what this socket sends.  Adds the flag that the
 * route allows to the flags of the send.
 */
bool nabc_egress_wants(struct sock *sk, bool asked, int *flags)
{
	struct dst_entry *dst = sk_dst_get(sk);
	unsigned int mode = READ_ONCE(sums);
	struct net_device *dev;
	bool wants = false;

	if (!dst)
		return false;
	/*
	 * A route that is removed changes its device; the old device lives until
	 * rcu_read_unlock().
	 */
	rcu_read_lock();
	dev = READ_ONCE(dst->dev);
	/*
	 * Devices with offload need neither; behind xfrm the bytes are no longer
	 * those of the unit.
	 */
	if (!(dev->features & NETIF_F_CSUM_MASK) && !dst_xfrm(dst)) {
		if (READ_ONCE(unshared) && !espintcp)
			*flags |= MSG_NO_SHARED_FRAGS;
		wants = nabc_egress_able() &&
			((mode && asked) || (mode > 1 && dst_mtu(dst) >= SUMS_MTU));
		if (wants)
			hook_want(dev);
	}
	rcu_read_unlock();
	dst_release(dst);
	return wants;
}
