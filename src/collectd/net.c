/* SPDX-License-Identifier: MIT */
/*
 * Network interfaces of the collector's network namespace: kymo_net:interface, :address and, last, :interfaces, in a state
 * dump; :added, :removed and :changed when the kernel says so.
 */
#include <ifaddrs.h>
#include <kymo/tracepoint.h>
#include <net/if.h>
#include <netdb.h>
#include <netpacket/packet.h>

#include "collectd/uevents.h"

#define MAC_MAX (3 * sizeof(((struct sockaddr_ll *)0)->sll_addr))

/* clang-format off */
/* Not more than the uevent itself says: what /sys says may be of another network namespace. */
KYMO_EVENT_CLASS(kymo_net, of_device, KYMO_ARGS(struct udev_device *d),
	kymo_u32(ifindex, (uint32_t)uevent_number(d, "IFINDEX")), kymo_string(name, uevent_text(d, "INTERFACE")))
KYMO_EVENT_INSTANCE(kymo_net, of_device, added, KYMO_DEBUG_LINE)
KYMO_EVENT_INSTANCE(kymo_net, of_device, removed, KYMO_DEBUG_LINE)
KYMO_EVENT_INSTANCE(kymo_net, of_device, changed, KYMO_DEBUG_LINE)
/* clang-format on */

/* "02:00:5e:..", "" for an interface without. */
static const char *mac_text(char buf[MAC_MAX + 1], const struct sockaddr_ll *ll)
{
	*buf = '\0';
	for (size_t i = 0; i < KY_MIN(ll->sll_halen, sizeof(ll->sll_addr)); i++)
		sprintf(buf + 3 * i, "%02x:", ll->sll_addr[i]);
	if (*buf)
		buf[strlen(buf) - 1] = '\0';
	return buf;
}

static void tell_interface(const struct ifaddrs *a)
{
	struct sockaddr_ll ll;
	char mac[MAC_MAX + 1];

	memcpy(&ll, a->ifa_addr, sizeof(ll));
	kymo_event(kymo_net, interface, kymo_u32(ifindex, (uint32_t)ll.sll_ifindex),
		kymo_string(name, a->ifa_name), kymo_string(mac, mac_text(mac, &ll)),
		kymo_x32(flags, a->ifa_flags));
}

static void tell_address(const struct ifaddrs *a, socklen_t size)
{
	char text[NI_MAXHOST];

	if (!getnameinfo(a->ifa_addr, size, text, sizeof(text), NULL, 0, NI_NUMERICHOST))
		kymo_event(kymo_net, address, kymo_u32(ifindex, if_nametoindex(a->ifa_name)),
			kymo_string(name, a->ifa_name), kymo_string(address, text));
}

/* Each interface is listed once by itself (AF_PACKET), and with each address. */
static uint32_t tell_list(const struct ifaddrs *a)
{
	uint32_t n = 0;

	for (; a; a = a->ifa_next) {
		int family = a->ifa_addr ? a->ifa_addr->sa_family : AF_UNSPEC;

		if (family == AF_PACKET)
			tell_interface(a);
		else if (family == AF_INET)
			tell_address(a, sizeof(struct sockaddr_in));
		else if (family == AF_INET6)
			tell_address(a, sizeof(struct sockaddr_in6));
		n += family == AF_PACKET;
	}
	return n;
}

static void tell(void)
{
	struct ifaddrs *all;
	uint32_t n;

	if ((!kymo_event_enabled(kymo_net, interface) && !kymo_event_enabled(kymo_net, address) &&
		    !kymo_event_enabled(kymo_net, interfaces)) ||
		getifaddrs(&all) < 0)
		return;
	n = tell_list(all);
	freeifaddrs(all);
	kymo_event(kymo_net, interfaces, kymo_u32(n, n));
}

static void take(struct udev_device *d)
{
	const char *action = uevent_text(d, "ACTION");

	if (!strcmp(action, "add"))
		kymo_trace(kymo_net, added, d);
	else if (!strcmp(action, "remove"))
		kymo_trace(kymo_net, removed, d);
	else
		kymo_trace(kymo_net, changed, d);
}

const struct provider net_provider = {
	.name = "net", .tell = tell, .subsystem = "net", .take = take};
