/* SPDX-License-Identifier: MIT */
/*
 * Devices: the kernel's reports of those that appear, change and disappear, by libudev; and the
 * list of existing ones.
 */
#ifndef COLLECTD_UEVENTS_H
#define COLLECTD_UEVENTS_H

#include "collectd/provider.h"

/*
 * Delivers uevents to those of the n providers that request any. The providers are borrowed
 * permanently. If uevents are not available, this is logged, and providers work without.
 */
void uevents_start(struct ky_loop *loop, const struct provider *const *providers, size_t n);
void uevents_stop(void);
/* Returns true if uevents are received. */
bool uevents_heard(void);

/*
 * Returns a property of the device, or a file in its directory; "" or `otherwise` if there is none.
 */
const char *uevent_text(struct udev_device *d, const char *property);
uint64_t uevent_number(struct udev_device *d, const char *property);
int64_t device_number(struct udev_device *d, const char *file, int64_t otherwise);
/* Calls fn with each existing device, in any thread. Returns how many. */
uint32_t devices_each(const char *subsystem, void (*fn)(struct udev_device *d));

#endif
