/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/proc-state.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "abi/ended.h"
#include "base/small-file.h"
#include "base/util.h"

#define PATH_BYTES 256
#define TASKS_MAX  64 /* of a process: the listener is among the first threads of most */
#define TASKS_NEAR 4  /* behind the listener: the state dump's thread is the next one in most */

const char *proc_dir = "/proc";

static const char *const names[PROC_RUNS] = {"kymo-listener", "kymo-statedump"};

static bool file_state_is(const char *path, const char *name_and_state)
{
	long before = strchr(name_and_state, ')') - name_and_state;
	char text[64 + 16], *end;

	ky_read_text(AT_FDCWD, path, text, sizeof(text));
	end = strrchr(text, ')');
	return end && end - text >= before &&
	       !strncmp(end - before, name_and_state, strlen(name_and_state));
}

bool proc_state_is(pid_t pid, const char *name_and_state)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%d/stat", proc_dir, (int)pid);
	return file_state_is(path, name_and_state);
}

/* A frozen process sleeps, as others do; only the function that it sleeps in says so. */
bool proc_is_held(pid_t pid)
{
	char path[PATH_BYTES], text[64];

	if (proc_state_is(pid, ") T") || proc_state_is(pid, ") t"))
		return true;
	snprintf(path, sizeof(path), "%s/%d/wchan", proc_dir, (int)pid);
	ky_read_text(AT_FDCWD, path, text, sizeof(text));
	return !strcmp(text, "do_freezer_trap") || !strcmp(text, "__refrigerator");
}

/* Reads the thread run->tid. False if that is not possible. */
static bool proc_run_read(struct proc_run *run, pid_t pid)
{
	char path[PATH_BYTES], text[64];

	snprintf(path, sizeof(path), "%s/%d/task/%d/stat", proc_dir, (int)pid, (int)run->tid);
	run->runnable = file_state_is(path, ") R");
	run->waits_for_disk = file_state_is(path, ") D");
	snprintf(path, sizeof(path), "%s/%d/task/%d/schedstat", proc_dir, (int)pid, (int)run->tid);
	return ky_read_text(AT_FDCWD, path, text, sizeof(text)) > 0 &&
	       sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &run->run_ns, &run->delay_ns,
		       &run->n_runs) == 3;
}

static bool was_starved(const struct proc_run *then, pid_t pid, uint64_t elapsed_ns)
{
	struct proc_run now = *then;

	if (!now.tid || !proc_run_read(&now, pid))
		return false;
	if (now.waits_for_disk || now.delay_ns - then->delay_ns >= elapsed_ns / 4 * 3)
		return true;
	return then->runnable && now.runnable && now.n_runs == then->n_runs;
}

bool proc_run_was_starved(const struct proc_run then[PROC_RUNS], pid_t pid, uint64_t elapsed_ns)
{
	for (unsigned i = 0; i < PROC_RUNS; i++)
		if (was_starved(&then[i], pid, elapsed_ns))
			return true;
	return false;
}

/* Returns which thread of libkymo it is, or -1. */
static int kind_of(pid_t pid, pid_t tid)
{
	char path[PATH_BYTES], text[64];

	snprintf(path, sizeof(path), "%s/%d/task/%d/comm", proc_dir, (int)pid, (int)tid);
	ky_read_text(AT_FDCWD, path, text, sizeof(text));
	text[strcspn(text, "\n")] = '\0';
	for (int i = 0; i < PROC_RUNS; i++)
		if (!strcmp(text, names[i]))
			return i;
	return -1;
}

void proc_run_find(struct proc_run ret_runs[PROC_RUNS], pid_t pid, unsigned *n_left)
{
	char path[PATH_BYTES];
	const struct dirent *e;
	DIR *dir = NULL;
	int n = 0, n_found = 0;

	memset(ret_runs, 0, PROC_RUNS * sizeof(*ret_runs));
	snprintf(path, sizeof(path), "%s/%d/task", proc_dir, (int)pid);
	if (*n_left)
		dir = opendir(path);
	while (dir && *n_left && n++ < TASKS_MAX && (e = readdir(dir))) {
		pid_t tid = atoi(e->d_name);

		int kind;

		(*n_left)--;
		kind = tid ? kind_of(pid, tid) : -1;
		if (kind < 0)
			continue;
		ret_runs[kind].tid = tid;
		if (!proc_run_read(&ret_runs[kind], pid))
			ret_runs[kind].tid = 0;
		n = KY_MAX(n, TASKS_MAX - TASKS_NEAR);
		if (++n_found == PROC_RUNS)
			break;
	}
	if (dir)
		closedir(dir);
}

/* <linux/pidfd.h> of Linux 6.15; older headers have neither. */
struct pidfd_info {
	uint64_t mask, cgroup_id;
	uint32_t pid, tgid, ppid, ids[8];
	int32_t exit_code;
	uint32_t unused;
};
#define PIDFD_GET_INFO_OF_EXIT _IOWR(0xFF, 11, struct pidfd_info)
#define INFO_OF_EXIT	       (UINT64_C(1) << 3)

/*
 * Reads the last field of the process's stat file, if it is a zombie, or dead: that is what the
 * kernel calls it while its parent reaps it, when the pidfd has no status yet.
 */
static bool read_zombie(pid_t pid, int *ret_status)
{
	char path[PATH_BYTES], text[1024], *end;

	snprintf(path, sizeof(path), "%s/%d/stat", proc_dir, (int)pid);
	ky_read_text(AT_FDCWD, path, text, sizeof(text));
	end = strrchr(text, ')');
	if (!end || (strncmp(end, ") Z", 3) != 0 && strncmp(end, ") X", 3) != 0) ||
		!(end = strrchr(text, ' ')))
		return false;
	*ret_status = atoi(end);
	return true;
}

/* Asks the pidfd of a process that was reaped. */
static bool ask_pidfd(int pidfd, int *ret_status)
{
	struct pidfd_info info = {.mask = INFO_OF_EXIT};

	if (ioctl(pidfd, PIDFD_GET_INFO_OF_EXIT, &info) < 0 || !(info.mask & INFO_OF_EXIT))
		return false;
	*ret_status = info.exit_code;
	return true;
}

int proc_wait_status(int pidfd, pid_t pid)
{
	int status;

	/* Most were reaped: their parents wait for them. */
	if (ask_pidfd(pidfd, &status))
		return status;
	/* After it was reaped, another process may have its number, but the pidfd refuses. */
	if (pid > 0 && read_zombie(pid, &status) &&
		(syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0 || errno == EPERM))
		return status;
	/* It may have been reaped since. */
	return ask_pidfd(pidfd, &status) ? status : KY_ENDED_UNKNOWN;
}
