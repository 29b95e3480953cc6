/* SPDX-License-Identifier: MIT */
#include "svc/unix.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "svc/log.h"

/*
 * As many as the kernel allows by default: if a program forks a thousand children, those that find
 * no room connect again and again, and take the CPU time that the daemon needs to accept them.
 */
#define BACKLOG 4096
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif
#define ACCEPTS_PER_TURN 16
#define RETRY_NS	 (100 * KY_NS_PER_MS)
#define CLOSERS_MAX	 64
#define STACK_WANTED	 ((rlim_t)8 << 20)
#define STACK_MIN	 ((rlim_t)512 << 10)

/*
 * The threads that close foreign descriptors, and the descriptors that wait for them. The mutex
 * protects all but `needed`.
 */
static struct {
	pthread_mutex_t mutex;
	bool needed; /* the kernel cannot refuse descriptors; only the loop's thread uses it */
	unsigned n_threads;
	int *fds; /* owned */
	size_t n_fds, cap;
} closers = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void *run_closer(void *unused)
{
	pthread_mutex_lock(&closers.mutex);
	while (closers.n_fds) {
		int fd = closers.fds[--closers.n_fds];

		pthread_mutex_unlock(&closers.mutex);
		close(fd);
		pthread_mutex_lock(&closers.mutex);
	}
	closers.n_threads--;
	pthread_mutex_unlock(&closers.mutex);
	return NULL;
}

/*
 * Starts a thread for each descriptor, up to a limit, because each close may block for ever. The
 * caller holds the mutex.
 */
static void start_closer(void)
{
	sigset_t all, old;
	pthread_t thread;

	if (closers.n_threads == CLOSERS_MAX)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (!pthread_create(&thread, NULL, run_closer, NULL)) {
		pthread_detach(thread);
		closers.n_threads++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Without memory, the descriptor stays open: it is the safer one of two evils. */
static bool queue_fd(int fd)
{
	size_t cap = closers.cap ? closers.cap * 2 : 64;
	int *fds = closers.fds;

	if (closers.n_fds == closers.cap) {
		fds = realloc(fds, cap * sizeof(*fds));
		if (!fds)
			return false;
		closers.fds = fds;
		closers.cap = cap;
	}
	fds[closers.n_fds++] = fd;
	return true;
}

int ky_close_foreign(int fd)
{
	if (fd < 0 || !closers.needed)
		return ky_close(fd);
	pthread_mutex_lock(&closers.mutex);
	if (queue_fd(fd))
		start_closer();
	pthread_mutex_unlock(&closers.mutex);
	return -1;
}

/* Connections inherit it from their listener. */
static void refuse_fds(int fd)
{
	if (setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){0}, sizeof(int)) < 0)
		closers.needed = true;
}

void ky_unix_allow_fds(int fd)
{
	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){1}, sizeof(int)); /* or they are */
}

static size_t collect_fds(struct msghdr *msg, int fds[KY_UNIX_MAX_FDS])
{
	struct cmsghdr *cmsg;
	size_t n = 0;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		size_t bytes = cmsg->cmsg_len - CMSG_LEN(0);

		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(fds + n, CMSG_DATA(cmsg), bytes);
		n += bytes / sizeof(int);
	}
	return n;
}

/* The kernel would close here what there is no room for. */
ssize_t ky_unix_receive(int fd, void *buf, size_t size, int ret_fds[KY_UNIX_MAX_FDS],
	size_t *ret_n_fds, int *ret_flags)
{
	union {
		char buf[CMSG_SPACE(KY_UNIX_MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = buf, .iov_len = size};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	*ret_n_fds = n < 0 ? 0 : collect_fds(&msg, ret_fds);
	*ret_flags = msg.msg_flags;
	return n >= 0 ? n : errno == EINTR ? -EAGAIN : -errno;
}

bool ky_fd_in_reserve(int fd)
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

static void listener_ready(struct ky_watch *w, uint32_t events);

static void run_again(struct ky_timer *t)
{
	struct ky_listener *l = ky_container_of(t, struct ky_listener, again);

	if (ky_watch_add(l->loop, &l->watch, l->fd, EPOLLIN, listener_ready) < 0)
		ky_timer_set(l->loop, t, RETRY_NS);
}

/* The connection stays ready: the loop would spin. */
static void pause_listener(struct ky_listener *l)
{
	ky_watch_remove(&l->watch);
	ky_timer_set(l->loop, &l->again, RETRY_NS);
}

/* Returns true if there may be more. */
static bool accept_some(struct ky_listener *l)
{
	struct ky_peer peer;

	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
				errno == ENOBUFS)
				pause_listener(l);
			return false;
		}
		peer.uid = KY_LOG_NOBODY;
		if (peer_of(fd, &peer) < 0 || ky_fd_in_reserve(fd)) {
			ky_log_set_cause(peer.uid);
			ky_warning("connection refused: too many open files");
			ky_log_set_cause(KY_LOG_NOBODY);
			ky_close_foreign(fd);
			continue;
		}
		l->accepted(l, fd, &peer);
	}
	return true;
}

static void listener_ready(struct ky_watch *w, uint32_t events)
{
	accept_some(ky_container_of(w, struct ky_listener, watch));
}

void ky_listener_accept_all(struct ky_listener *l, uint64_t max_ns)
{
	uint64_t end = ky_loop_now_ns() + max_ns;

	while (accept_some(l) && ky_loop_now_ns() < end)
		;
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
	l->loop = loop;
	ky_timer_init(&l->again, run_again);
	l->fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return -errno;
	refuse_fds(l->fd);
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
	ky_timer_cancel(&l->again);
	l->fd = ky_close(l->fd);
}

int ky_peer_pidfd(int fd, pid_t pid)
{
	int pidfd = -1;
	socklen_t len = sizeof(pidfd);

	/*
	 * Before Linux 6.5, look the process up by its number. If another process has that number
	 * already, this one has exited.
	 */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) < 0 && pid > 0)
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return pid > 0 ? -errno : -ENOENT;
	fcntl(pidfd, F_SETFD, FD_CLOEXEC);
	if (!ky_fd_in_reserve(pidfd))
		return pidfd;
	ky_close(pidfd);
	return -EMFILE;
}

static void raise_limit(int resource)
{
	struct rlimit lim;

	if (getrlimit(resource, &lim) < 0 || lim.rlim_cur == lim.rlim_max)
		return;
	lim.rlim_cur = lim.rlim_max;
	setrlimit(resource, &lim);
}

/*
 * Some functions that call each other have a message each on the stack, which grows up to the limit
 * that there is then. The hard limit is raised too if the process may do that.
 */
static int raise_stack(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_STACK, &lim) < 0 || lim.rlim_cur >= STACK_WANTED)
		return 0;
	lim = (struct rlimit){STACK_WANTED, KY_MAX(lim.rlim_max, STACK_WANTED)};
	if (!setrlimit(RLIMIT_STACK, &lim))
		return 0;
	raise_limit(RLIMIT_STACK);
	return !getrlimit(RLIMIT_STACK, &lim) && lim.rlim_cur < STACK_MIN ? -ENOMEM : 0;
}

int ky_raise_limits(void)
{
	raise_limit(RLIMIT_NOFILE);
	raise_limit(RLIMIT_FSIZE);
	/* These end a process that has used up so much. */
	raise_limit(RLIMIT_CPU);
	raise_limit(RLIMIT_RTTIME);
	return raise_stack();
}
