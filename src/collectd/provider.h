/* SPDX-License-Identifier: MIT */
/*
 * One kind of state that the collector reports: kymo_NAME:*. main.c has the table of them;
 * docs/collector.md describes their events.
 *
 * Two threads: the main one starts and stops providers and delivers uevents; libkymo's thread runs
 * state dumps. A provider locks data that it keeps between calls. Most keep none, and read the
 * kernel's state on request.
 */
#ifndef COLLECTD_PROVIDER_H
#define COLLECTD_PROVIDER_H

#include <libudev.h>

#include "abi/ended.h"
#include "svc/loop.h"

/* Functions may be NULL. */
struct provider {
	const char *name;
	/* Called before all others. It logs what is not available. */
	void (*start)(struct ky_loop *loop);
	void (*stop)(void);
	/* Records the state, if any session records such events. Called in libkymo's thread. */
	void (*record_state)(void);
	/* The subsystem whose uevents it requests, and their handler. */
	const char *subsystem;
	void (*take)(struct udev_device *d);
	/* Called when some of these were lost. */
	void (*missed)(void);
	/* A program that was connected to the session daemon has ended. */
	void (*ended)(const struct ky_ended *ended);
};

extern const struct provider vm_provider, process_provider, cgroup_provider, block_provider,
	net_provider, cpu_provider, mount_provider;

/* Returns a device's number in the kernel's format, which its own events use too. */
static inline uint32_t kernel_dev(unsigned major, unsigned minor)
{
	return major << 20 | minor;
}

#endif
