/* SPDX-License-Identifier: MIT */
/*
 * Network interfaces of the collector's network namespace: kymo_net:interface, :address and, last,
 * :interfaces, in a state dump; :added, :removed and :changed when the kernel reports them by
 * uevents; :flags_changed, :address_added and :address_removed when it reports them by rtnetlink.
 *
 * rtnetlink reports the current state, even if nothing is new (an address was found to be unique, a
 * lifetime), and it does not name interfaces that were removed. So the collector keeps the last
 * state of each interface and address (`known`), and records differences. If messages were lost,
 * the kept state is wrong: then the collector requests it again, on another socket, and records it
 * as in a state dump, after kymo_net:lost. Only the main thread does this.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <kymo/tracepoint.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <search.h>

#include "collectd/uevents.h"
#include "svc/log.h"

#define MAC_MAX	     (3 * sizeof(((struct sockaddr_ll *)0)->sll_addr))
#define BUFFER_BYTES (4 << 20) /* for about two thousand messages */

/* An interface, or one of its addresses. */
struct thing {
	struct {
		uint32_t ifindex;
		uint16_t family; /* AF_UNSPEC: the interface itself */
		uint16_t prefix;
		uint8_t address[16];
	} key;
	uint32_t flags;	     /* of an interface */
	char name[IFNAMSIZ]; /* of an interface */
};

static void *known; /* tree of interfaces and addresses, by their keys */
static struct ky_watch watch;
static int fd = -1; /* -1: not listening */

/* clang-format off */
/* Only the data of the uevent itself: /sys may belong to another network namespace. */
KYMO_EVENT_CLASS(kymo_net, of_device, KYMO_ARGS(struct udev_device *d),
	kymo_u32(ifindex, (uint32_t)uevent_number(d, "IFINDEX")), kymo_string(name, uevent_text(d, "INTERFACE")))
KYMO_EVENT_INSTANCE(kymo_net, of_device, added, KYMO_DEBUG_LINE)
KYMO_EVENT_INSTANCE(kymo_net, of_device, removed, KYMO_DEBUG_LINE)
KYMO_EVENT_INSTANCE(kymo_net, of_device, changed, KYMO_DEBUG_LINE)
KYMO_EVENT_CLASS(kymo_net, of_address, KYMO_ARGS(uint32_t ifindex, const char *name, const char *text),
	kymo_u32(ifindex, ifindex), kymo_string(name, name), kymo_string(address, text))
KYMO_EVENT_INSTANCE(kymo_net, of_address, address, KYMO_DEBUG_LINE)
KYMO_EVENT_INSTANCE(kymo_net, of_address, address_added, KYMO_DEBUG_LINE)
KYMO_EVENT_INSTANCE(kymo_net, of_address, address_removed, KYMO_DEBUG_LINE)
/* clang-format on */

/* Formats "02:00:5e:..", or "" for an interface without an address. */
static const char *mac_text(char buf[MAC_MAX + 1], const struct sockaddr_ll *ll)
{
	*buf = '\0';
	for (size_t i = 0; i < KY_MIN(ll->sll_halen, sizeof(ll->sll_addr)); i++)
		sprintf(buf + 3 * i, "%02x:", ll->sll_addr[i]);
	if (*buf)
		buf[strlen(buf) - 1] = '\0';
	return buf;
}

static void record_interface(const struct ifaddrs *a)
{
	struct sockaddr_ll ll;
	char mac[MAC_MAX + 1];

	memcpy(&ll, a->ifa_addr, sizeof(ll));
	kymo_event(kymo_net, interface, kymo_u32(ifindex, (uint32_t)ll.sll_ifindex),
		kymo_string(name, a->ifa_name), kymo_string(mac, mac_text(mac, &ll)),
		kymo_x32(flags, a->ifa_flags));
}

/* Without the zone of a link-local address, which is `ifindex`. */
static void record_address(const struct ifaddrs *a, const void *address)
{
	char text[INET6_ADDRSTRLEN];

	kymo_trace(kymo_net, address, if_nametoindex(a->ifa_name), a->ifa_name,
		inet_ntop(a->ifa_addr->sa_family, address, text, sizeof(text)));
}

/* The list has each interface once by itself (AF_PACKET), and once with each address. */
static uint32_t record_list(const struct ifaddrs *a)
{
	uint32_t n = 0;

	for (; a; a = a->ifa_next) {
		int family = a->ifa_addr ? a->ifa_addr->sa_family : AF_UNSPEC;

		if (family == AF_PACKET)
			record_interface(a);
		else if (family == AF_INET)
			record_address(a, &((struct sockaddr_in *)a->ifa_addr)->sin_addr);
		else if (family == AF_INET6)
			record_address(a, &((struct sockaddr_in6 *)a->ifa_addr)->sin6_addr);
		n += family == AF_PACKET;
	}
	return n;
}

static void record_state(void)
{
	struct ifaddrs *all;
	uint32_t n;

	if ((!kymo_event_enabled(kymo_net, interface) && !kymo_trace_enabled(kymo_net, address) &&
		    !kymo_event_enabled(kymo_net, interfaces)) ||
		getifaddrs(&all) < 0)
		return;
	n = record_list(all);
	freeifaddrs(all);
	kymo_event(kymo_net, interfaces, kymo_u32(n, n));
}

static void take_device(struct udev_device *d)
{
	const char *action = uevent_text(d, "ACTION");

	if (!strcmp(action, "add"))
		kymo_trace(kymo_net, added, d);
	else if (!strcmp(action, "remove"))
		kymo_trace(kymo_net, removed, d);
	else
		kymo_trace(kymo_net, changed, d);
}

static int compare_keys(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(((struct thing *)0)->key));
}

/* Returns the known state of the interface or address; NULL if there is none. */
static struct thing *find_thing(const struct thing *t)
{
	struct thing **node = tfind(t, &known, compare_keys);

	return node ? *node : NULL;
}

/* Returns the same, and adds it if it is not known. Returns NULL if allocation fails. */
static struct thing *learn_thing(const struct thing *t)
{
	struct thing *mine = find_thing(t);

	if (mine || !(mine = calloc(1, sizeof(*mine))))
		return mine;
	mine->key = t->key;
	if (!tsearch(mine, &known, compare_keys)) {
		free(mine);
		mine = NULL;
	}
	return mine;
}

static void forget_thing(struct thing *mine)
{
	if (mine)
		tdelete(mine, &known, compare_keys);
	free(mine);
}

static const void *attribute(struct rtattr *a, int len, unsigned short type, size_t min)
{
	for (; RTA_OK(a, len); a = RTA_NEXT(a, len))
		if (a->rta_type == type)
			return RTA_PAYLOAD(a) >= min ? RTA_DATA(a) : NULL;
	return NULL;
}

/* A new interface had no flags before. Bridges report their ports in messages of another family. */
static void take_link(struct nlmsghdr *h, bool record)
{
	const struct ifinfomsg *info = NLMSG_DATA(h);
	const char *name = attribute(IFLA_RTA(info), (int)IFLA_PAYLOAD(h), IFLA_IFNAME, 1);
	struct thing t = {.key.ifindex = (uint32_t)info->ifi_index}, *mine;
	uint32_t changed;

	if (info->ifi_family != AF_UNSPEC)
		return;
	if (h->nlmsg_type == RTM_DELLINK) {
		forget_thing(find_thing(&t));
		return;
	}
	mine = learn_thing(&t);
	if (!mine)
		return;
	changed = mine->flags ^ info->ifi_flags;
	mine->flags = info->ifi_flags;
	snprintf(mine->name, sizeof(mine->name), "%s", name ? name : "");
	if (record && changed)
		kymo_event(kymo_net, flags_changed, kymo_u32(ifindex, mine->key.ifindex),
			kymo_string(name, mine->name), kymo_x32(flags, mine->flags),
			kymo_x32(changed, changed));
}

static void record_address_change(const struct thing *t, bool added)
{
	const struct thing *interface = find_thing(&(struct thing){.key.ifindex = t->key.ifindex});
	const char *name = interface ? interface->name : "";
	char text[INET6_ADDRSTRLEN];

	inet_ntop(t->key.family, t->key.address, text, sizeof(text));
	if (added)
		kymo_trace(kymo_net, address_added, t->key.ifindex, name, text);
	else
		kymo_trace(kymo_net, address_removed, t->key.ifindex, name, text);
}

static void take_address(struct nlmsghdr *h, bool record)
{
	const struct ifaddrmsg *info = NLMSG_DATA(h);
	const size_t size = info->ifa_family == AF_INET	   ? sizeof(struct in_addr)
			    : info->ifa_family == AF_INET6 ? sizeof(struct in6_addr)
							   : 0;
	const int len = (int)IFA_PAYLOAD(h);
	const void *address = attribute(IFA_RTA(info), len, IFA_LOCAL, size);
	struct thing t = {.key = {.ifindex = info->ifa_index,
				  .family = info->ifa_family,
				  .prefix = info->ifa_prefixlen}};
	bool added = h->nlmsg_type == RTM_NEWADDR;

	if (!address)
		address = attribute(IFA_RTA(info), len, IFA_ADDRESS, size);
	if (!size || !address)
		return;
	memcpy(t.key.address, address, size);
	if (record && added == !find_thing(&t))
		record_address_change(&t, added);
	if (added)
		learn_thing(&t);
	else
		forget_thing(find_thing(&t));
}

/*
 * Receives messages. Returns 0; 1 at the end of an answer; -errno, with -ENOBUFS if messages were
 * lost.
 */
static int receive_netlink(bool record, int flags)
{
	static char buf[1 << 16] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct sockaddr_nl from;
	socklen_t from_len = sizeof(from);
	ssize_t got = recvfrom(fd, buf, sizeof(buf), flags, (void *)&from, &from_len);
	size_t len = (size_t)got;

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (from_len < sizeof(from) || from.nl_pid)
		return 0; /* not from the kernel */
	for (struct nlmsghdr *h = (void *)buf; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
		if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
			return 1;
		if (h->nlmsg_type == RTM_NEWLINK || h->nlmsg_type == RTM_DELLINK)
			take_link(h, record);
		else if (h->nlmsg_type == RTM_NEWADDR || h->nlmsg_type == RTM_DELADDR)
			take_address(h, record);
	}
	return 0;
}

/* Reads the current state: requests it, and receives messages until the request is answered. */
static int read_current_state(uint16_t what)
{
	struct {
		struct nlmsghdr header;
		struct rtgenmsg body;
	} request = {{.nlmsg_len = sizeof(request),
			     .nlmsg_type = what,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		{.rtgen_family = AF_UNSPEC}};
	int ret = send(fd, &request, sizeof(request), 0) < 0 ? -errno : 0;

	while (!ret)
		ret = receive_netlink(false, 0);
	return KY_MIN(ret, 0);
}

static void close_all(void)
{
	ky_watch_remove(&watch);
	fd = ky_close(fd);
	tdestroy(known, free);
	known = NULL;
}

static void readable(struct ky_watch *w, uint32_t events);

/* Listens before it requests the state, so that no change is missed in between. */
static int open_all(struct ky_loop *loop)
{
	struct sockaddr_nl groups = {.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
	int size = BUFFER_BYTES, ret;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	ret = bind(fd, (void *)&groups, sizeof(groups)) < 0 ? -errno : 0;
	if (!ret)
		ret = read_current_state(RTM_GETLINK);
	if (!ret)
		ret = read_current_state(RTM_GETADDR);
	return ret ? ret : ky_watch_add(loop, &watch, fd, EPOLLIN, readable);
}

static void net_start(struct ky_loop *loop)
{
	int ret;

	while ((ret = open_all(loop)) == -ENOBUFS)
		close_all();
	if (ret < 0) {
		close_all();
		ky_warning(
			"cannot watch for changes of network addresses and flags (%s): only those "
			"that exist when a session starts are recorded",
			strerror(-ret));
	}
}

static void readable(struct ky_watch *w, uint32_t events)
{
	struct ky_loop *loop = w->loop;
	int ret = receive_netlink(true, MSG_DONTWAIT);

	if (ret >= 0)
		return;
	ky_warning("the kernel reported more changes of network interfaces at once than there was "
		   "room for (%s): some are missing, and what there is now is recorded instead",
		strerror(-ret));
	close_all();
	net_start(loop);
	kymo_event(kymo_net, lost);
	record_state();
}

const struct provider net_provider = {
	.name = "net",
	.start = net_start,
	.stop = close_all,
	.record_state = record_state,
	.subsystem = "net",
	.take = take_device,
};
