/* SPDX-License-Identifier: MIT */
#include "collectd/uevents.h"

#include "svc/log.h"

#define BUFFER_BYTES (16 << 20) /* for about ten thousand uevents */

static const struct provider *const *providers;
static size_t n_providers;
static struct udev *udev;
static struct udev_monitor *monitor; /* NULL: uevents are not available */
static struct ky_watch watch;

bool uevents_heard(void)
{
	return monitor;
}

static void dispatch_uevent(struct udev_device *d)
{
	const char *subsystem = udev_device_get_subsystem(d);

	for (size_t i = 0; subsystem && i < n_providers; i++)
		if (providers[i]->subsystem && !strcmp(providers[i]->subsystem, subsystem))
			providers[i]->take(d);
}

static void monitor_readable(struct ky_watch *w, uint32_t events)
{
	struct udev_device *d;

	while ((d = udev_monitor_receive_device(monitor))) {
		dispatch_uevent(d);
		udev_device_unref(d);
	}
	if (errno != ENOBUFS)
		return;
	ky_warning(
		"the kernel reported more devices and virtual machines at once than there was room for: "
		"some that came or went are missing");
	for (size_t i = 0; i < n_providers; i++)
		if (providers[i]->missed)
			providers[i]->missed();
}

/* Selects all requested subsystems: the kernel skips the others. */
static int filter_subsystems(void)
{
	int ret = 0;

	for (size_t i = 0; i < n_providers && ret >= 0; i++)
		if (providers[i]->subsystem)
			ret = udev_monitor_filter_add_match_subsystem_devtype(
				monitor, providers[i]->subsystem, NULL);
	return ret;
}

/*
 * Opens the monitor. udevd reports uevents after handling them; if udevd does not run, the kernel
 * reports them.
 */
static int open_monitor(struct ky_loop *loop)
{
	const char *source = access("/run/udev/control", F_OK) ? "kernel" : "udev";
	int ret;

	udev = udev_new();
	monitor = udev ? udev_monitor_new_from_netlink(udev, source) : NULL;
	if (!monitor)
		return -errno;
	udev_monitor_set_receive_buffer_size(monitor, BUFFER_BYTES);
	ret = filter_subsystems();
	if (ret >= 0)
		ret = udev_monitor_enable_receiving(monitor);
	if (ret >= 0)
		ret = ky_watch_add(
			loop, &watch, udev_monitor_get_fd(monitor), EPOLLIN, monitor_readable);
	if (ret < 0)
		monitor = udev_monitor_unref(monitor);
	return ret;
}

void uevents_start(struct ky_loop *loop, const struct provider *const *wanted, size_t n)
{
	bool any = false;
	int ret = 0;

	providers = wanted;
	n_providers = n;
	for (size_t i = 0; i < n; i++)
		any |= !!wanted[i]->subsystem;
	if (any)
		ret = open_monitor(loop);
	if (ret < 0)
		ky_warning(
			"cannot watch for changes of devices and virtual machines (%s): only those that "
			"exist when a session starts are recorded",
			strerror(-ret));
}

void uevents_stop(void)
{
	ky_watch_remove(&watch);
	monitor = udev_monitor_unref(monitor);
	udev = udev_unref(udev);
}

const char *uevent_text(struct udev_device *d, const char *property)
{
	const char *value = udev_device_get_property_value(d, property);

	return value ? value : "";
}

uint64_t uevent_number(struct udev_device *d, const char *property)
{
	return strtoull(uevent_text(d, property), NULL, 10);
}

static const char *device_text(struct udev_device *d, const char *file)
{
	const char *value = udev_device_get_sysattr_value(d, file);

	return value ? value : "";
}

int64_t device_number(struct udev_device *d, const char *file, int64_t otherwise)
{
	const char *value = device_text(d, file);

	return *value ? strtoll(value, NULL, 0) : otherwise;
}

uint32_t devices_each(const char *subsystem, void (*fn)(struct udev_device *d))
{
	struct udev *own = udev_new(); /* libudev's objects belong to one thread */
	struct udev_enumerate *all = own ? udev_enumerate_new(own) : NULL;
	struct udev_list_entry *e = NULL;
	struct udev_device *d;
	uint32_t n = 0;

	if (all && udev_enumerate_add_match_subsystem(all, subsystem) >= 0 &&
		udev_enumerate_scan_devices(all) >= 0)
		e = udev_enumerate_get_list_entry(all);
	for (; e; e = udev_list_entry_get_next(e)) {
		d = udev_device_new_from_syspath(own, udev_list_entry_get_name(e));
		if (!d)
			continue; /* it was removed */
		fn(d);
		n++;
		udev_device_unref(d);
	}
	udev_enumerate_unref(all);
	udev_unref(own);
	return n;
}
