/* SPDX-License-Identifier: MIT */
/*
 * One kind of state that the collector tells: kymo_NAME:*. main.c has the table of them; docs/collector.md describes their
 * events.
 *
 * Two threads: the main one starts and stops providers and brings uevents, libkymo's tells sessions. What a provider keeps
 * between calls it locks itself; most keep nothing, but look at what the kernel says when they are asked.
 */
#ifndef COLLECTD_PROVIDER_H
#define COLLECTD_PROVIDER_H

#include <libudev.h>

#include "svc/loop.h"

/* Functions may be NULL. */
struct provider {
	const char *name;
	/* Before all else. What it does without is logged. */
	void (*start)(struct ky_loop *loop);
	void (*stop)(void);
	/* Records the state, if anybody records such events; in libkymo's thread. */
	void (*tell)(void);
	/* The uevents that it wants, and takes. */
	const char *subsystem;
	void (*take)(struct udev_device *d);
	/* Some that it wanted were lost. */
	void (*missed)(void);
};

extern const struct provider vm_provider, process_provider, cgroup_provider, block_provider,
	net_provider, cpu_provider, mount_provider;

/* A device's number as the kernel has it, also in its own events. */
static inline uint32_t kernel_dev(unsigned major, unsigned minor)
{
	return major << 20 | minor;
}

#endif
