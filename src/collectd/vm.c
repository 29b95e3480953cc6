/* SPDX-License-Identifier: MIT */
/*
 * Virtual machines of KVM: kymo_vm:created and :destroyed when the kernel reports them (uevents of
 * /dev/kvm), kymo_vm:guest for running ones, in a state dump.
 *
 * The kernel reports that a machine was created or destroyed, with the number of the thread that
 * created it. All other data is in /proc while the process lives. So the collector keeps a
 * process's data until its machines are destroyed. It knows the processes with machines from a scan
 * at its start, and from every uevent since. If uevents are missing or were lost, it scans /proc
 * again.
 *
 * Two threads: the main one receives uevents, libkymo's thread runs state dumps. `lock` protects
 * the list of processes.
 */
#include <kymo/tracepoint.h>
#include <pthread.h>

#include "base/list.h"
#include "collectd/guest.h"
#include "collectd/uevents.h"
#include "svc/log.h"

/* A process with machines. */
struct host {
	struct ky_list node;
	pid_t pid, thread; /* thread: named by the kernel in uevents */
	uint32_t n;	   /* existing machines that this thread created */
	char process[sizeof(((struct guest *)0)->process)];
	char uuid[sizeof(((struct guest *)0)->uuid)];
	char name[sizeof(((struct guest *)0)->name)];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ky_list hosts = {&hosts, &hosts};
/* Its last machine was destroyed. It may create another, and exit before /proc is read. */
static struct host *idle;
static bool stale;	  /* `hosts` may lack some */
static unsigned n_hidden; /* processes that could not be examined */

static struct host *find_host(pid_t pid, pid_t thread)
{
	struct host *h;

	ky_list_foreach (h, &hosts, node)
		if (h->pid == pid && (!thread || h->thread == thread))
			return h;
	return NULL;
}

static struct host *find_thread(pid_t thread)
{
	struct host *h;

	ky_list_foreach (h, &hosts, node)
		if (h->thread == thread)
			return h;
	return NULL;
}

static void free_host(struct host *h)
{
	if (h == idle)
		idle = NULL;
	ky_list_remove(&h->node);
	free(h);
}

/* Removes a process whose last machine was destroyed. The last such process is kept in `idle`. */
static void retire_host(struct host *h)
{
	if (idle && idle != h)
		free_host(idle);
	idle = h;
	h->n = 0;
}

/* Collects what is known about the thread's process, which may have exited. */
static void identify_guest(struct guest *g, pid_t thread)
{
	const struct host *h = find_thread(thread);

	guest_identify(g, guest_process_of(thread));
	if (*g->process || !h)
		return;
	g->pid = h->pid;
	memcpy(g->process, h->process, sizeof(g->process));
	memcpy(g->uuid, h->uuid, sizeof(g->uuid));
	memcpy(g->name, h->name, sizeof(g->name));
}

/* Adds a process to the list. Returns NULL if allocation fails. */
static struct host *keep_host(const struct guest *g, pid_t thread)
{
	struct host *h = find_host(g->pid, thread);

	if (!h) {
		h = calloc(1, sizeof(*h));
		if (!h)
			return NULL;
		ky_list_append(&hosts, &h->node);
	}
	if (h == idle)
		idle = NULL;
	h->pid = g->pid;
	h->thread = thread;
	memcpy(h->process, g->process, sizeof(h->process));
	memcpy(h->uuid, g->uuid, sizeof(h->uuid));
	memcpy(h->name, g->name, sizeof(h->name));
	return h;
}

static void keep_found_host(pid_t pid)
{
	struct guest g;
	struct host *h;

	if (find_host(pid, 0))
		return;
	guest_identify(&g, pid);
	guest_count(&g);
	h = keep_host(&g, pid);
	if (h)
		h->n = g.n_vms;
}

/* Called under the lock. */
static void scan(void)
{
	n_hidden = guests_scan(keep_found_host);
	stale = !uevents_heard();
}

/* --- state dump --- */

/* Returns true if it still has machines. */
static bool record_guest(const struct host *h)
{
	struct guest g;
	int ret;

	guest_identify(&g, h->pid);
	ret = guest_count(&g);
	if (ret == -ESRCH || (!ret && !g.n_vms))
		return false;
	if (ret < 0 && !h->n)
		return false;
	if (ret < 0)
		g.n_vms = h->n;
	kymo_event(kymo_vm, guest, kymo_i32(pid, g.pid), kymo_string(process, g.process),
		kymo_string(uuid, g.uuid), kymo_string(name, g.name), kymo_u32(n_vms, g.n_vms),
		kymo_u32(n_vcpus, g.n_vcpus), kymo_seq_i32(vcpu_threads, g.threads, g.n_threads));
	return true;
}

static void record_state(void)
{
	struct host *h, *tmp;
	uint32_t n = 0;

	if (!kymo_event_enabled(kymo_vm, guest) && !kymo_event_enabled(kymo_vm, guests))
		return;
	pthread_mutex_lock(&lock);
	if (stale)
		scan();
	ky_list_foreach_safe (h, tmp, &hosts, node) {
		if (find_host(h->pid, 0) != h)
			continue; /* entry of another thread of the same process */
		if (record_guest(h))
			n++;
		else
			free_host(h);
	}
	kymo_event(kymo_vm, guests, kymo_u32(n, n), kymo_u32(hidden_processes, n_hidden));
	pthread_mutex_unlock(&lock);
}

/* --- uevents --- */

static void record_created(struct udev_device *d, pid_t thread)
{
	struct guest g;
	struct host *h;

	identify_guest(&g, thread);
	h = keep_host(&g, thread);
	if (h)
		h->n++;
	kymo_event(kymo_vm, created, kymo_i32(pid, g.pid), kymo_string(process, g.process),
		kymo_string(uuid, g.uuid), kymo_string(name, g.name),
		kymo_u64(created, uevent_number(d, "CREATED")),
		kymo_u64(count, uevent_number(d, "COUNT")),
		kymo_string(stats_path, uevent_text(d, "STATS_PATH")));
}

static void record_destroyed(struct udev_device *d, pid_t thread)
{
	struct host *h = find_thread(thread);

	/*
	 * A machine from before the collector's start: the thread is not known, but the process is.
	 */
	if (!h)
		h = find_host(guest_process_of(thread), 0);
	kymo_event(kymo_vm, destroyed, kymo_i32(pid, h ? h->pid : thread),
		kymo_string(process, h ? h->process : ""), kymo_string(uuid, h ? h->uuid : ""),
		kymo_string(name, h ? h->name : ""), kymo_u64(created, uevent_number(d, "CREATED")),
		kymo_u64(count, uevent_number(d, "COUNT")),
		kymo_string(stats_path, uevent_text(d, "STATS_PATH")));
	if (h && h->n <= 1)
		retire_host(h);
	else if (h)
		h->n--;
}

static void take_device(struct udev_device *d)
{
	const char *event = uevent_text(d, "EVENT");
	pid_t thread = (pid_t)uevent_number(d, "PID");

	if (strcmp(udev_device_get_sysname(d), "kvm"))
		return;
	pthread_mutex_lock(&lock);
	if (!strcmp(event, "create"))
		record_created(d, thread);
	else if (!strcmp(event, "destroy"))
		record_destroyed(d, thread);
	pthread_mutex_unlock(&lock);
}

static void missed(void)
{
	pthread_mutex_lock(&lock);
	stale = true;
	pthread_mutex_unlock(&lock);
}

static void vm_start(struct ky_loop *loop)
{
	if (geteuid())
		ky_info("not root: virtual machines of other users that run already are not seen");
	pthread_mutex_lock(&lock);
	scan();
	pthread_mutex_unlock(&lock);
}

static void vm_stop(void)
{
	struct host *h, *tmp;

	ky_list_foreach_safe (h, tmp, &hosts, node)
		free_host(h);
}

const struct provider vm_provider = {
	.name = "vm",
	.start = vm_start,
	.stop = vm_stop,
	.record_state = record_state,
	.subsystem = "misc",
	.take = take_device,
	.missed = missed,
};
