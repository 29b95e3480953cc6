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

static void explain_no_tracefs(int error, char why[KY_TRACEFS_WHY_MAX])
{
	if (!file_contains("/proc/filesystems", "tracefs"))
		snprintf(why, KY_TRACEFS_WHY_MAX, "this kernel has no tracing (CONFIG_FTRACE)");
	else if (file_contains(LOCKDOWN, "[confidentiality]"))
		snprintf(why, KY_TRACEFS_WHY_MAX,
			"kernel lockdown forbids tracing: boot with lockdown=integrity");
	else if (geteuid())
		snprintf(why, KY_TRACEFS_WHY_MAX,
			"kernel events need root's daemon: 'sudo systemctl start kymo-sessiond' starts it, and it serves the members of group 'tracing' ('sudo usermod -aG tracing $USER', then log in again)");
	else
		snprintf(why, KY_TRACEFS_WHY_MAX,
			"no permission for tracefs (%s): run the daemon as root, in a container with --privileged",
			strerror(-error));
}

/* Lockdown may come when the file system is there already: then no file of it opens. */
static int check_access(int fd)
{
	char text[64];

	if (faccessat(fd, "instances", W_OK | X_OK, AT_EACCESS) < 0)
		return -errno;
	return ky_read_text(fd, "events/header_page", text, sizeof(text)) < 0 ? -errno : 0;
}

int ky_tracefs_open(char why[KY_TRACEFS_WHY_MAX])
{
	int fd, ret;

	if (!ky_is_in_initial_pid_ns()) {
		snprintf(why, KY_TRACEFS_WHY_MAX,
			"kernel events have the process numbers of the initial PID namespace: run the daemon there (in a container: --pid=host)");
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
	ret = fd < 0 ? fd : check_access(fd);
	if (ret < 0) {
		explain_no_tracefs(ret, why);
		ky_close(fd);
	}
	return ret < 0 ? ret : fd;
}
