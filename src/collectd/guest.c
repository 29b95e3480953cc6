/* SPDX-License-Identifier: MIT */
#include "collectd/guest.h"

#include <dirent.h>
#include <fcntl.h>

#define CMDLINE_MAX (64 << 10)

static ssize_t read_file(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		n = read(fd, buf, size - 1);
	ky_close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n;
}

pid_t guest_process_of(pid_t thread)
{
	char status[1024], *tgid;

	read_file(thread, "status", status, sizeof(status));
	tgid = strstr(status, "\nTgid:");
	return tgid ? (pid_t)strtol(tgid + strlen("\nTgid:"), NULL, 10) : thread;
}

/* The value of "guest=VALUE,..", or of "VALUE,..". */
static void take_name(struct guest *g, const char *value)
{
	const char *guest = strstr(value, "guest=");

	value = guest ? guest + strlen("guest=") : value;
	snprintf(g->name, sizeof(g->name), "%.*s", (int)strcspn(value, ","), value);
}

/* QEMU's -uuid and -name, Firecracker's --id: what is given behind them. */
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
	read_file(pid, "comm", g->process, sizeof(g->process));
	g->process[strcspn(g->process, "\n")] = '\0';
	n = read_file(pid, "cmdline", args, sizeof(args));
	for (option = args; option < args + n; option = value) {
		value = option + strlen(option) + 1;
		if (value < args + n)
			take_argument(g, option, value);
	}
}

/* Opens a directory of the process's; NULL and errno. */
static DIR *open_directory(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return opendir(path);
}

/* "CPU 3/KVM" (QEMU), "fc_vcpu 3" (Firecracker), "vcpu3" (Cloud Hypervisor, crosvm). */
static bool is_vcpu(pid_t pid, const char *thread)
{
	char name[64], comm[32];
	unsigned cpu;
	int end = 0;

	snprintf(name, sizeof(name), "task/%.20s/comm", thread);
	read_file(pid, name, comm, sizeof(comm));
	return (sscanf(comm, "CPU %u/KVM%n", &cpu, &end) == 1 && end) || strstr(comm, "vcpu");
}

static void find_threads(struct guest *g)
{
	DIR *d = open_directory(g->pid, "task");
	const struct dirent *e;

	while (d && (e = readdir(d)) && g->n_threads < GUEST_VCPUS_MAX)
		if (*e->d_name != '.' && is_vcpu(g->pid, e->d_name))
			g->threads[g->n_threads++] = (int32_t)atoi(e->d_name);
	if (d)
		closedir(d);
}

int guest_count(struct guest *g)
{
	DIR *d = open_directory(g->pid, "fd");
	const struct dirent *e;
	char target[64];
	int ret = d ? 0 : errno == EACCES ? -EACCES : -ESRCH;

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

unsigned guests_scan(void (*fn)(pid_t pid))
{
	struct guest g;
	const struct dirent *e;
	unsigned n_hidden = 0;
	DIR *d = opendir("/proc");

	while (d && (e = readdir(d))) {
		g.pid = (pid_t)atoi(e->d_name);
		if (g.pid <= 0)
			continue;
		if (guest_count(&g) == -EACCES)
			n_hidden++;
		else if (g.n_vms)
			fn(g.pid);
	}
	if (d)
		closedir(d);
	return n_hidden;
}
