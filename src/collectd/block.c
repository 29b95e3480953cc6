/* SPDX-License-Identifier: MIT */
/*
 * Block devices and their partitions: kymo_block:device and, last, :devices, in a state dump;
 * :added, :removed and :changed when the kernel reports it.
 */
#include <kymo/tracepoint.h>
#include <sys/sysmacros.h>

#include "collectd/uevents.h"

#define SECTOR_BYTES 512 /* independent of the device's own sectors */

static uint32_t number_of(dev_t number)
{
	return kernel_dev(major(number), minor(number));
}

/* clang-format off */
KYMO_EVENT_CLASS(kymo_block, of_device, KYMO_ARGS(struct udev_device *d),
	kymo_u32(dev, number_of(udev_device_get_devnum(d))),
	kymo_string(diskname, udev_device_get_sysname(d)),
	kymo_string(type, udev_device_get_devtype(d)),
	kymo_u64(size, (uint64_t)device_number(d, "size", 0) * SECTOR_BYTES))
KYMO_EVENT_INSTANCE(kymo_block, of_device, device, KYMO_DEBUG_LINE)
KYMO_EVENT_INSTANCE(kymo_block, of_device, added, KYMO_DEBUG_LINE)
KYMO_EVENT_INSTANCE(kymo_block, of_device, removed, KYMO_DEBUG_LINE)
KYMO_EVENT_INSTANCE(kymo_block, of_device, changed, KYMO_DEBUG_LINE)
/* clang-format on */

static void record_device(struct udev_device *d)
{
	kymo_trace(kymo_block, device, d);
}

static void record_state(void)
{
	uint32_t n;

	if (!kymo_trace_enabled(kymo_block, device) && !kymo_event_enabled(kymo_block, devices))
		return;
	n = devices_each("block", record_device);
	kymo_event(kymo_block, devices, kymo_u32(n, n));
}

static void take_device(struct udev_device *d)
{
	const char *action = uevent_text(d, "ACTION");

	if (!strcmp(action, "add"))
		kymo_trace(kymo_block, added, d);
	else if (!strcmp(action, "remove"))
		kymo_trace(kymo_block, removed, d);
	else
		kymo_trace(kymo_block, changed, d);
}

const struct provider block_provider = {
	.name = "block", .record_state = record_state, .subsystem = "block", .take = take_device};
