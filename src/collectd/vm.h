/* SPDX-License-Identifier: MIT */
/*
 * Virtual machines of KVM: kymo_vm:created and :destroyed when the kernel says so (uevents of /dev/kvm), kymo_vm:guest for
 * those that run, in a state dump. docs/collector.md describes the events.
 */
#ifndef COLLECTD_VM_H
#define COLLECTD_VM_H

#include "svc/loop.h"

/*
 * Watches from now on, and knows the guests that run. What the kernel does not let this user see is logged, and done
 * without. 0, or -errno when no state dump can be registered.
 */
int vm_start(struct ky_loop *loop);
void vm_stop(void);

#endif
