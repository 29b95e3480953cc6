/* SPDX-License-Identifier: MIT */
#include "collectd/guest.h"

#include <dirent.h>

#include "collectd/text.h"

#define CMDLINE_MAX (64 << 10)

pid_t guest_process_of(pid_t thread)
{
	char status[1024];
	const char *tgid;

	text_read(status, sizeof(status), "/proc/%d/status", (int)thread);
	tgid = text_value(status, "\nTgid:");
	return tgid ? (pid_t)strtol(tgid, NULL, 10) : thread;
}

/* Reads the value of "guest=VALUE,..", or of "VALUE,..". */
static void take_name(struct guest *g, const char *value)
{
	const char *guest = strstr(value, "guest=");

	value = guest ? guest + strlen("guest=") : value;
	snprintf(g->name, sizeof(g->name), "%.*s", (int)strcspn(value, ","), value);
}

/* Reads the value after an option: QEMU's -uuid and -name, Firecracker's --id. */
static void take_argument(struct guest *g, const char *option, const char *value)
{
	if (*option != '-')
		return;
	option += strspn(option, "-");
	if (!strcmp(option, "uuid"))
		snprintf(g->uuid, sizeof(g->uuid), "%s", value);
	else if (!strcmp(option, "name"))
		take_name(g, value);
	else if (!strcmp(option, "id") && !*g->name)
		take_name(g, value);
}

void guest_identify(struct guest *g, pid_t pid)
{
	char args[CMDLINE_MAX];
	const char *option, *value;
	ssize_t n;

	memset(g, 0, sizeof(*g));
	g->pid = pid;
	text_read_line(g->process, sizeof(g->process), "/proc/%d/comm", (int)pid);
	n = text_read(args, sizeof(args), "/proc/%d/cmdline", (int)pid);
	for (option = args; option < args + n; option = value) {
		value = option + strlen(option) + 1;
		if (value < args + n)
			take_argument(g, option, value);
	}
}

/* Matches "CPU 3/KVM" (QEMU), "fc_vcpu 3" (Firecracker), "vcpu3" (Cloud Hypervisor, crosvm). */
static bool is_vcpu(const char *comm)
{
	unsigned cpu;
	int end = 0;

	return (sscanf(comm, "CPU %u/KVM%n", &cpu, &end) == 1 && end) || strstr(comm, "vcpu");
}

static void look_at_thread(pid_t tid, void *data)
{
	struct guest *g = data;
	char comm[32];

	text_read_line(comm, sizeof(comm), "/proc/%d/task/%d/comm", (int)g->pid, (int)tid);
	if (g->n_threads < GUEST_VCPUS_MAX && is_vcpu(comm))
		g->threads[g->n_threads++] = tid;
}

static void find_threads(struct guest *g)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)g->pid);
	text_each_number(path, look_at_thread, g);
}

int guest_count(struct guest *g)
{
	char path[64], target[64];
	const struct dirent *e;
	DIR *d;
	int ret;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)g->pid);
	d = opendir(path);
	ret = d ? 0 : errno == EACCES ? -EACCES : -ESRCH;
	g->n_vms = g->n_vcpus = g->n_threads = 0;
	while (d && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);

		target[n > 0 ? n : 0] = '\0';
		g->n_vms += !strcmp(target, "anon_inode:kvm-vm");
		g->n_vcpus += !strncmp(target, "anon_inode:kvm-vcpu", 19);
	}
	if (d)
		closedir(d);
	if (!d || g->n_vms)
		find_threads(g);
	g->n_vcpus = KY_MAX(g->n_vcpus, g->n_threads);
	return ret;
}

struct scan {
	void (*fn)(pid_t pid);
	unsigned n_hidden;
};

static void look_at_process(pid_t pid, void *data)
{
	struct guest g = {.pid = pid};
	struct scan *scan = data;

	if (guest_count(&g) == -EACCES)
		scan->n_hidden++;
	else if (g.n_vms)
		scan->fn(pid);
}

unsigned guests_scan(void (*fn)(pid_t pid))
{
	struct scan scan = {fn, 0};

	text_each_number("/proc", look_at_process, &scan);
	return scan.n_hidden;
}
