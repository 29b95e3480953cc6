/* SPDX-License-Identifier: MIT */
/*
 * Devices: what the kernel says of those that come, change and go, by libudev; and those that are there.
 */
#ifndef COLLECTD_UEVENTS_H
#define COLLECTD_UEVENTS_H

#include "collectd/provider.h"

/* Brings uevents to those of the n providers (borrowed for ever) that want any. Without uevents, it is logged, and done without. */
void uevents_start(struct ky_loop *loop, const struct provider *const *providers, size_t n);
void uevents_stop(void);
/* Are any heard? */
bool uevents_heard(void);

/* A property of the device, or file in its directory; "" and `otherwise` where there is none. */
const char *uevent_text(struct udev_device *d, const char *property);
uint64_t uevent_number(struct udev_device *d, const char *property);
const char *device_text(struct udev_device *d, const char *file);
int64_t device_number(struct udev_device *d, const char *file, int64_t otherwise);
/* Calls fn with each device that is there; in any thread. Returns how many. */
uint32_t devices_each(const char *subsystem, void (*fn)(struct udev_device *d));

#endif
