/* SPDX-License-Identifier: MIT */
#include "svc/unix.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "svc/log.h"

#define BACKLOG 512
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#define ACCEPTS_PER_TURN 16

static bool in_reserve(int fd)
{
	struct rlimit lim;

	return !getrlimit(RLIMIT_NOFILE, &lim) && lim.rlim_cur > 2 * KY_LISTENER_RESERVE &&
	       (rlim_t)fd >= lim.rlim_cur - KY_LISTENER_RESERVE;
}

static int peer_of(int fd, struct ky_peer *ret_peer)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	*ret_peer = (struct ky_peer){.uid = cred.uid, .gid = cred.gid, .pid = cred.pid};
	return 0;
}

static void listener_ready(struct ky_watch *w, uint32_t events)
{
	struct ky_listener *l = ky_container_of(w, struct ky_listener, watch);
	struct ky_peer peer;

	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		if (in_reserve(fd) || peer_of(fd, &peer) < 0) {
			ky_warning("connection refused: too many open files");
			ky_close(fd);
			continue;
		}
		l->accepted(l, fd, &peer);
	}
}

/* A name can be bound once only, so a socket appears with its mode: others cannot connect before
 * chmod. */
static int bind_at(int fd, const char *path, mode_t mode, gid_t group)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	mode_t mask;
	int ret;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	mask = umask(0177);
	ret = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
	umask(mask);
	if (ret < 0)
		return ret;
	if (group != (gid_t)-1 && chown(path, (uid_t)-1, group) < 0)
		return -errno;
	return chmod(path, mode) < 0 ? -errno : 0;
}

int ky_listener_init(struct ky_listener *l, struct ky_loop *loop, const char *path, int type,
	mode_t mode, gid_t group,
	void (*accepted)(struct ky_listener *l, int fd, const struct ky_peer *peer))
{
	int ret;

	memset(l, 0, sizeof(*l));
	l->accepted = accepted;
	l->fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return -errno;
	ret = bind_at(l->fd, path, mode, group);
	if (!ret && listen(l->fd, BACKLOG) < 0)
		ret = -errno;
	if (!ret)
		ret = ky_watch_add(loop, &l->watch, l->fd, EPOLLIN, listener_ready);
	if (ret < 0)
		l->fd = ky_close(l->fd);
	return ret;
}

void ky_listener_deinit(struct ky_listener *l)
{
	if (!l->accepted)
		return;
	ky_watch_remove(&l->watch);
	l->fd = ky_close(l->fd);
}

int ky_peer_pidfd(int fd, pid_t pid)
{
	int pidfd = -1;
	socklen_t len = sizeof(pidfd);

	/* Before Linux 6.5, by number: should that be another process's already, this one has ended. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) < 0 && pid > 0)
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return pid > 0 ? -errno : -ENOENT;
	fcntl(pidfd, F_SETFD, FD_CLOEXEC);
	if (!in_reserve(pidfd))
		return pidfd;
	ky_close(pidfd);
	return -EMFILE;
}

void ky_raise_nofile(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur == lim.rlim_max)
		return;
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim);
}
