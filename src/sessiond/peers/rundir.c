/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/rundir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "base/rundir.h"
#include "svc/log.h"

#define TAKE_OVER_NS 10000000000u /* another daemon may take so long to end */
#define EXEC_NS	     3000000000u /* a dead daemon's child may take so long to execute its program */
#define NAP_NS	     10000000u

/* Longest name in the directory. */
#define LONGEST "/" KY_RUN_CONTROL

const char *rundir_path(const struct rundir *r, const char *name)
{
	static char path[RUNDIR_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", r->path, name);
	return path;
}

static int log_path_error(int error, const char *path, const char *what, const char *advice)
{
	ky_error("%s %s: %s%s", what, path, strerror(-error), advice);
	return error;
}

static int find_path(struct rundir *r)
{
	int ret = ky_rundir(geteuid(), r->path, sizeof(r->path) - strlen(LONGEST));

	if (ret == -ENOENT)
		ky_error("no run directory: set HOME, XDG_RUNTIME_DIR or KYMO_RUNDIR");
	else if (ret < 0)
		ky_error(
			"run directory's path is too long for a socket's address (%zu bytes): set KYMO_RUNDIR to a shorter one",
			sizeof(r->path) - strlen(LONGEST) - 1);
	else if (r->path[0] != '/') {
		ky_error("run directory %s is not an absolute path: set KYMO_RUNDIR to one",
			r->path);
		ret = -EINVAL;
	}
	return ret;
}

/*
 * Programs of all users must reach root's directory; any other is for one user only. One that is
 * there already keeps its mode, but a directory of somebody else, or that others can write to, is
 * no place for our sockets.
 */
static int check_directory(const struct rundir *r)
{
	struct stat st;

	if (lstat(r->path, &st) < 0)
		return log_path_error(-errno, r->path, "cannot use run directory", "");
	if (!S_ISDIR(st.st_mode))
		return log_path_error(-ENOTDIR, r->path, "cannot use run directory",
			": remove it or set KYMO_RUNDIR");
	if (st.st_uid != geteuid())
		return log_path_error(-EPERM, r->path, "cannot use run directory",
			" (it belongs to another user): set KYMO_RUNDIR");
	if (st.st_mode & 022)
		return log_path_error(-EPERM, r->path, "cannot use run directory",
			" (other users can write to it): set KYMO_RUNDIR or change its mode");
	return 0;
}

static int make_directory(const struct rundir *r)
{
	mode_t mode = r->global ? 0755 : 0700;

	if (mkdir(r->path, 0700) < 0) {
		if (errno == EEXIST)
			return check_directory(r);
		return log_path_error(-errno, r->path, "cannot make run directory",
			errno == ENOENT
				? " (its parent does not exist): create it, or set KYMO_RUNDIR"
				: "");
	}
	if (chmod(r->path, mode) < 0)
		return log_path_error(-errno, r->path, "cannot set the mode of run directory", "");
	return 0;
}

/*
 * Watches for removals. inotify instances are scarce: without one, a daemon stays although nobody
 * can reach it.
 */
static void watch_directory(struct rundir *r)
{
	const uint32_t what = IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF |
			      IN_ONLYDIR;

	r->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (r->watch_fd < 0 || inotify_add_watch(r->watch_fd, r->path, what) < 0)
		ky_debug("run directory %s is not watched: %s", r->path, strerror(errno));
}

static void read_owner(int fd, char *buf, size_t size)
{
	ssize_t n = pread(fd, buf, size - 1, 0);

	buf[n > 0 ? n : 0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
}

/*
 * The daemon whose number is in the lock's file. 0: it has the lock, and has not written its number
 * yet.
 */
static pid_t owner(const struct rundir *r)
{
	char text[24];

	read_owner(r->lock_fd, text, sizeof(text));
	return KY_MAX(atoi(text), 0);
}

/* Asks the daemon that holds the lock to make room. *asked is the process that was asked last. */
static int ask_owner(const struct rundir *r, pid_t *asked)
{
	pid_t pid = owner(r);

	if (!pid || pid == *asked)
		return 0;
	if (kill(pid, SIGUSR2) < 0)
		return errno == ESRCH ? 0 : -errno;
	*asked = pid;
	return 0;
}

/*
 * Returns true if the lock belongs to a daemon that died. A child that it was just starting keeps
 * the lock until it executes its program.
 */
static bool owner_is_dead(const struct rundir *r)
{
	pid_t pid = owner(r);

	return pid && kill(pid, 0) < 0 && errno == ESRCH;
}

/*
 * Waits until the lock is free. take_over: whichever daemon holds it is asked to make room; else
 * waits only for what a dead daemon has left.
 */
static int wait_for_lock(struct rundir *r, bool take_over)
{
	const uint64_t most = take_over ? TAKE_OVER_NS : EXEC_NS;
	const struct timespec nap = {0, NAP_NS};
	pid_t asked = 0;
	int ret;

	for (uint64_t waited = 0; waited < most; waited += NAP_NS) {
		if (!flock(r->lock_fd, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK)
			return -errno;
		ret = take_over ? ask_owner(r, &asked) : 0;
		if (ret < 0)
			return ret;
		if (!take_over && !owner_is_dead(r))
			break;
		nanosleep(&nap, NULL);
	}
	return -EWOULDBLOCK;
}

static int take_lock(struct rundir *r, bool take_over)
{
	const char *path = rundir_path(r, KY_RUN_LOCK);
	char pid[24];
	int n, ret;

	r->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, KY_RUN_PRIVATE);
	if (r->lock_fd < 0)
		return log_path_error(-errno, path, "cannot open", "");
	ret = wait_for_lock(r, take_over);
	if (ret < 0 && ret != -EWOULDBLOCK)
		return log_path_error(ret, path, "cannot lock", "");
	if (ret < 0) {
		read_owner(r->lock_fd, pid, sizeof(pid));
		ky_error(
			"a session daemon with pid %s already serves %s: 'kill' ends it, --take-over replaces it; or set KYMO_RUNDIR",
			pid, r->path);
		return -EBUSY;
	}
	n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (ftruncate(r->lock_fd, 0) < 0 || pwrite(r->lock_fd, pid, (size_t)n, 0) != n)
		return log_path_error(-errno, path, "cannot write", "");
	return 0;
}

static int make_wake(struct rundir *r)
{
	const char *path = rundir_path(r, KY_RUN_WAKE);
	struct stat st;

	if (!lstat(path, &st) && S_ISFIFO(st.st_mode) && st.st_uid == geteuid())
		return 0; /* programs wait on this very one */
	unlink(path);
	if (mkfifo(path, 0600) < 0 || chmod(path, KY_RUN_PUBLIC) < 0)
		return log_path_error(-errno, path, "cannot make", "");
	return 0;
}

static int make_state(struct rundir *r)
{
	const char *path = rundir_path(r, KY_RUN_STATE);

	r->state = (struct ky_state){.magic = KY_STATE_MAGIC, .size = sizeof(r->state)};
	r->state_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (r->state_fd < 0 || fchmod(r->state_fd, KY_RUN_PUBLIC) < 0)
		return log_path_error(-errno, path, "cannot make", "");
	return 0;
}

int rundir_open(struct rundir *r, bool take_over, bool is_made)
{
	int ret;

	r->global = geteuid() == 0;
	r->lock_fd = r->state_fd = r->watch_fd = -1;
	ret = find_path(r);
	if (!ret)
		ret = is_made ? check_directory(r) : make_directory(r);
	if (!ret)
		watch_directory(r);
	if (!ret)
		ret = take_lock(r, take_over);
	if (!ret)
		ret = make_wake(r);
	if (!ret)
		ret = make_state(r);
	return ret;
}

int rundir_publish(struct rundir *r, uint32_t n_active)
{
	r->state.pid = (uint32_t)getpid();
	r->state.n_active = n_active;
	r->state.progress++;
	if (pwrite(r->state_fd, &r->state, sizeof(r->state), 0) != sizeof(r->state))
		return -errno;
	return 0;
}

void rundir_set_managed(const struct rundir *r, bool managed)
{
	const char *path = rundir_path(r, KY_RUN_MANAGED);
	int fd;

	if (!managed) {
		unlink(path);
		return;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, KY_RUN_PUBLIC);
	if (fd < 0)
		ky_warning("cannot make %s: %s", path, strerror(errno));
	ky_close(fd);
}

int rundir_wake(const struct rundir *r)
{
	const char *path = rundir_path(r, KY_RUN_WAKE);
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return log_path_error(-errno, path, "cannot open", "");
	ky_close(fd);
	return 0;
}

bool rundir_leads_to(const char *path, int fd)
{
	struct stat there, ours;

	if (lstat(path, &there) < 0)
		return false;
	return fstat(fd, &ours) < 0 || (there.st_dev == ours.st_dev && there.st_ino == ours.st_ino);
}

bool rundir_is_lost(const struct rundir *r)
{
	char events[4096];

	while (read(r->watch_fd, events, sizeof(events)) > 0)
		;
	return !rundir_leads_to(rundir_path(r, KY_RUN_LOCK), r->lock_fd);
}

static bool is_missing(const struct rundir *r, const char *name)
{
	return access(rundir_path(r, name), F_OK) < 0 && errno == ENOENT;
}

void rundir_mend(struct rundir *r)
{
	const struct ky_state state = r->state;
	int old_fd = r->state_fd;

	if (is_missing(r, KY_RUN_WAKE))
		make_wake(r);
	if (!is_missing(r, KY_RUN_STATE))
		return;
	if (make_state(r) < 0 || pwrite(r->state_fd, &state, sizeof(state), 0) < 0) {
		ky_close(r->state_fd);
		r->state_fd = old_fd;
	} else {
		ky_close(old_fd);
	}
	r->state = state;
}

static void remove_sockets(const struct rundir *r)
{
	unlink(rundir_path(r, KY_RUN_APP));
	unlink(rundir_path(r, KY_RUN_CONTROL));
	unlink(rundir_path(r, KY_RUN_DRAIN));
	rmdir(rundir_path(r, KY_RUN_SESSIONS)); /* unless there is something in it */
}

void rundir_close(struct rundir *r)
{
	if (r->state_fd >= 0) {
		r->state.pid = 0;
		r->state.n_active = 0;
		if (pwrite(r->state_fd, &r->state, sizeof(r->state), 0) < 0)
			ky_warning("cannot write %s: %s", rundir_path(r, KY_RUN_STATE),
				strerror(errno));
		if (rundir_leads_to(rundir_path(r, KY_RUN_LOCK), r->lock_fd))
			remove_sockets(r);
	}
	r->watch_fd = ky_close(r->watch_fd);
	r->state_fd = ky_close(r->state_fd);
	r->lock_fd = ky_close(r->lock_fd); /* last: from here on another daemon may start */
}
