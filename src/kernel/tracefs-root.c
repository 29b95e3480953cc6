/* SPDX-License-Identifier: MIT */
#include "kernel/tracefs-root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/small-file.h"
#include "base/util.h"
#include "kernel/format.h"
#include "kernel/pid-ns.h"

#define MOUNTED	 "/sys/kernel/tracing"
#define LOCKDOWN "/sys/kernel/security/lockdown"
/* <linux/mount.h>, which <sys/mount.h> contradicts in some versions */
#define FSOPEN_CLOEXEC_		     1
#define FSCONFIG_CMD_CREATE_	     6
#define FSMOUNT_CLOEXEC_	     1
#define MOUNT_ATTR_NO_SUID_EXEC_DEV_ 14

/* Returns the root of a tracefs that is mounted nowhere, or -errno. */
static int open_unmounted(void)
{
	long fs = syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC_);
	long mount = -1;

	if (fs >= 0 && !syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE_, NULL, NULL, 0))
		mount = syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC_, MOUNT_ATTR_NO_SUID_EXEC_DEV_);
	if (mount < 0)
		mount = -errno;
	if (fs >= 0)
		close((int)fs);
	return (int)mount;
}

static bool file_contains(const char *path, const char *text)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, text))
			return true;
	return false;
}

static struct ky_tracefs_refusal explain_no_tracefs(int error)
{
	struct ky_tracefs_refusal r = {
		.advice = "run the daemon as root, in a container with --privileged"};

	if (error == -EOPNOTSUPP)
		return (struct ky_tracefs_refusal){
			"this kernel's trace buffers have another layout than Kymo reads",
			"use a 64-bit kernel, Linux 5.4 or later"};
	if (!file_contains("/proc/filesystems", "tracefs"))
		return (struct ky_tracefs_refusal){
			"this kernel has no tracing", "use a kernel with CONFIG_FTRACE"};
	if (file_contains(LOCKDOWN, "[confidentiality]"))
		return (struct ky_tracefs_refusal){
			"kernel lockdown forbids tracing", "boot with lockdown=integrity"};
	if (geteuid())
		return (struct ky_tracefs_refusal){"kernel events need root's daemon",
			"'sudo systemctl start kymo-sessiond' starts it, and it serves the members of group 'tracing' ('sudo usermod -aG tracing $USER', then log in again)"};
	snprintf(r.problem, sizeof(r.problem), "no permission for tracefs (%s)", strerror(-error));
	return r;
}

/* Lockdown may come when the file system is there already: then no file of it opens. */
static int check_files(int fd)
{
	char page[4096], event[4096];

	if (faccessat(fd, "instances", W_OK | X_OK, AT_EACCESS) < 0 ||
		ky_read_text(fd, "events/header_page", page, sizeof(page)) < 0 ||
		ky_read_text(fd, "events/header_event", event, sizeof(event)) < 0)
		return -errno;
	return ky_kheader_check(page, event) ? 0 : -EOPNOTSUPP;
}

int ky_tracefs_open(struct ky_tracefs_refusal *ret_refusal)
{
	int fd, ret;

	if (!ky_is_in_initial_pid_ns()) {
		*ret_refusal = (struct ky_tracefs_refusal){
			"kernel events have the process numbers of the initial PID namespace",
			"run the daemon there (in a container: --pid=host)"};
		return -EPERM;
	}
	fd = open_unmounted();
	if (fd < 0) {
		int mounted = open(MOUNTED, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (mounted >= 0 && !faccessat(mounted, "events", F_OK, 0))
			fd = mounted;
		else
			ky_close(mounted);
	}
	ret = fd < 0 ? fd : check_files(fd);
	if (ret < 0) {
		*ret_refusal = explain_no_tracefs(ret);
		ky_close(fd);
	}
	return ret < 0 ? ret : fd;
}
