/* SPDX-License-Identifier: MIT */
/*
 * The connection to one session daemon (docs/protocol.md). Runs in the listener thread, under the
 * lock. Only tracer_conn_new_events is also called by the application's threads.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/small-file.h"
#include "base/sys.h"
#include "tracer/cgroup.h"
#include "tracer/counter.h"
#include "tracer/statedump.h"
#include "tracer/tracer.h"

#define RETRY_BUSY_MS 2u /* if the daemon lives, but its backlog is full */
/* after the start, if no daemon seems to run: the other one may run, whose replies come first */
#define LOOK_LATER_MS 5u
#define RETRY_MIN_MS  100u
#define RETRY_MAX_MS  5000u
/* after a shorter connection, the daemon is not called again at once */
#define SETTLED_MS	1000u
#define SEND_TIMEOUT_MS 1000
#define MAX_FDS		4
/* Events whose descriptions take more are sent only on request. */
#define LISTED_BYTES ((size_t)8 << 10)

/* Aligned: a program that starts touches only their first pages. */
static uint8_t rx[KY_MSG_MAX] __attribute__((aligned(4096)));
static uint8_t tx[KY_MSG_MAX] __attribute__((aligned(4096)));

bool tracer_user_outside(uid_t uid, uid_t *ret_outside)
{
	unsigned long inside, outside, count;
	char text[1024], *line = text;
	ssize_t n = ky_read_text(AT_FDCWD, "/proc/self/uid_map", text, sizeof(text));
	int used;

	*ret_outside = (uid_t)-1;
	for (; sscanf(line, "%lu %lu %lu%n", &inside, &outside, &count, &used) == 3; line += used)
		if (uid >= inside && uid - inside < count) {
			*ret_outside = (uid_t)(outside + (uid - inside));
			return true;
		}
	return n <= 0 || (size_t)n == sizeof(text) - 1;
}

/*
 * Returns true for the daemon of the host's root. In a user namespace it belongs to an unmapped
 * user. The proof is a run directory that no process in the namespace can have made: /run/kymo,
 * owned by an unmapped user, if no user in the namespace has that user's id. If one has, the
 * application's user may confirm the daemon (KYMO_HOST_DAEMON).
 */
static bool is_host_daemon(const struct tracer_conn *conn)
{
	bool asked_for = ky_switch_is_on("KYMO_HOST_DAEMON");
	struct stat st;
	uid_t outside;

	return ky_sys_stat(conn->dir, &st) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_uid == TRACER_OVERFLOW_UID && !(st.st_mode & 022) &&
	       (asked_for || (!strcmp(conn->dir, KY_RUN_GLOBAL) &&
				     !tracer_user_outside(TRACER_OVERFLOW_UID, &outside)));
}

/* Whether it was reported that a run directory is not used, and why. */
static bool reported[TRACER_N_CONNS] KY_WRITTEN_EARLY;

static bool is_first_report(const struct tracer_conn *conn)
{
	return !__atomic_exchange_n(&reported[conn - tracer.conns], true, __ATOMIC_RELAXED);
}

/*
 * Returns true if files of this user, in conn's run directory, belong to a daemon that may trace
 * the application.
 */
static bool trusted(const struct tracer_conn *conn, uid_t uid)
{
	if (uid == 0 || uid == ky_effective_user() ||
		(uid == TRACER_OVERFLOW_UID && is_host_daemon(conn)))
		return true;
	if (is_first_report(conn))
		tracer_debug(
			"%s: not used: it is user %u's, neither root's nor this program's (in a container: docs/containers.md)",
			conn->dir, (unsigned)uid);
	return false;
}

/* The calling thread has its own table of descriptors: nobody else can close one. */
static __thread bool own_table KY_THREAD_TLS;

struct tracer_fd tracer_fd_adopt(int fd, mode_t type)
{
	struct stat st;

	if (fd < 0 || ky_sys_fstat(fd, &st) < 0 || (st.st_mode & S_IFMT) != type)
		return (struct tracer_fd){.fd = ky_close(fd)};
	return (struct tracer_fd){.fd = fd, .apart = own_table, .dev = st.st_dev, .ino = st.st_ino};
}

void tracer_fd_own_table(void)
{
	own_table = true;
}

bool tracer_fd_is_ours(const struct tracer_fd *f)
{
	struct stat st;

	if (own_table || f->apart || f->fd < 0)
		return own_table && f->fd >= 0;
	return ky_sys_fstat(f->fd, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino;
}

void tracer_fd_drop(struct tracer_fd *f)
{
	if (tracer_fd_is_ours(f))
		ky_sys_close(f->fd);
	f->fd = -1;
}

void tracer_conn_init(struct tracer_conn *conn, const char *dir)
{
	*conn = (struct tracer_conn){.socket.fd = -1, .wake.fd = -1};
	if (strlen(dir) < sizeof(conn->dir))
		strcpy(conn->dir, dir);
}

void tracer_conn_reset(struct tracer_conn *conn)
{
	char dir[sizeof(conn->dir)];

	tracer_fd_drop(&conn->socket);
	tracer_fd_drop(&conn->wake);
	memcpy(dir, conn->dir, sizeof(dir));
	tracer_conn_init(conn, dir);
}

/* Writes dir/name to buf. Returns false if it is too long. */
static bool path_of(const struct tracer_conn *conn, const char *name, char *buf, size_t size)
{
	size_t n = strlen(conn->dir), m = strlen(name);

	if (n + 1 + m >= size)
		return false;
	memcpy(buf, conn->dir, n);
	buf[n] = '/';
	memcpy(buf + n + 1, name, m + 1);
	return true;
}

static int open_state(const struct tracer_conn *conn)
{
	char path[128];

	if (!conn->dir[0] || !path_of(conn, KY_RUN_STATE, path, sizeof(path)))
		return -1;
	return ky_sys_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

/* Reads the state page. Closes fd. */
static bool read_state(const struct tracer_conn *conn, int fd, struct ky_state *ret_state)
{
	struct stat st;
	ssize_t n = -1;

	if (ky_sys_fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && trusted(conn, st.st_uid))
		n = ky_sys_pread(fd, ret_state, sizeof(*ret_state), 0);
	ky_sys_close(fd);
	return n == sizeof(*ret_state) && ret_state->magic == KY_STATE_MAGIC && ret_state->pid;
}

bool tracer_conn_state(const struct tracer_conn *conn, struct ky_state *ret_state)
{
	int fd = open_state(conn);

	return fd >= 0 && read_state(conn, fd, ret_state);
}

/*
 * Returns 0 if there is anything to connect to or to wait for, or -errno. A daemon makes the FIFO
 * first.
 */
static int find_rundir(const struct tracer_conn *conn)
{
	char path[128];
	struct stat st;

	errno = ENOENT;
	if ((path_of(conn, KY_RUN_WAKE, path, sizeof(path)) && ky_sys_stat(path, &st) == 0) ||
		(path_of(conn, KY_RUN_APP, path, sizeof(path)) && ky_sys_stat(path, &st) == 0))
		return 0;
	return -errno;
}

/* Returns true if a daemon seems to run. */
static bool has_socket(const struct tracer_conn *conn)
{
	char path[128];

	return conn->dir[0] && path_of(conn, KY_RUN_APP, path, sizeof(path)) &&
	       ky_sys_access(path, W_OK) == 0;
}

bool tracer_conn_is_active(const struct tracer_conn *conn, uint64_t *ret_progress)
{
	struct ky_state state;
	int fd;

	*ret_progress = 0;
	/* After the start, nothing is called that loading an object does not call. */
	if (__atomic_load_n(&conn->tried, __ATOMIC_RELAXED)
			? __atomic_load_n(&conn->socket.fd, __ATOMIC_RELAXED) < 0
			: !has_socket(conn))
		return false;
	fd = open_state(conn);
	/* A container may have only the socket; a sandbox may let a program read no file there. */
	if (fd < 0)
		return errno == ENOENT || errno == EACCES;
	if (!read_state(conn, fd, &state))
		return false;
	*ret_progress = state.progress;
	return state.n_active;
}

void tracer_conn_verify(struct tracer_conn *conn)
{
	if (conn->socket.fd >= 0 && !tracer_fd_is_ours(&conn->socket))
		tracer_conn_close(conn);
	if (conn->wake.fd >= 0 && !tracer_fd_is_ours(&conn->wake))
		conn->wake.fd = -1;
}

bool tracer_conn_is_cut_off(const struct tracer_conn *conn)
{
	char path[128];
	struct stat st;

	if (conn->wake.fd < 0 || !path_of(conn, KY_RUN_WAKE, path, sizeof(path)))
		return false;
	if (ky_sys_stat(path, &st) < 0)
		return errno == ENOENT;
	return st.st_dev != conn->wake.dev || st.st_ino != conn->wake.ino;
}

static void set_unheard(struct tracer_conn *conn, uint64_t ns)
{
	__atomic_store_n(&conn->unheard_ns, ns, __ATOMIC_RELAXED);
}

/* A thread that sees it also sees what the answers have changed. */
static void set_answered(struct tracer_conn *conn, uint32_t n)
{
	__atomic_store_n(&conn->answered, n, __ATOMIC_RELEASE);
}

void tracer_conn_close(struct tracer_conn *conn)
{
	tracer_fd_drop(&conn->socket);
	if (conn->answered == conn->asked)
		set_unheard(conn, ky_clock_ns(CLOCK_MONOTONIC));
	set_answered(conn, conn->asked);
	conn->unsent = 0;
	tracer_statedump_forget_conn(conn);
	tracer_sets_orphan(conn);
	tracer_wake_waiters();
}

/*
 * Sends the message in tx. Waits for room up to a second, without the lock. Returns 0, or -errno
 * and ends the connection.
 */
static int send_tx(struct tracer_conn *conn, int len)
{
	struct pollfd p = {.fd = conn->socket.fd, .events = POLLOUT};
	int r = len < 0 ? len : 0, ready;
	ssize_t n;

	if (!tracer_fd_is_ours(&conn->socket))
		return -ENOTCONN;
	while (len > 0) {
		n = ky_sys_send(conn->socket.fd, tx, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n == len)
			return 0;
		r = n < 0 ? -errno : -EPROTO; /* a filter pretends that it was sent */
		if (r == -EINTR)
			continue;
		if (r != -EAGAIN)
			break;
		tracer_give_lock();
		ready = ky_sys_poll(&p, 1, SEND_TIMEOUT_MS);
		tracer_take_lock();
		if (ready <= 0)
			break;
	}
	tracer_debug("%s: connection given up: %d", conn->dir, -r);
	ky_sys_shutdown(
		conn->socket.fd, SHUT_RDWR); /* the listener sees the hang-up and closes it */
	return r;
}

static struct ky_writer begin_message(void)
{
	return (struct ky_writer){.buf = tx, .cap = sizeof(tx)};
}

static void send_left_out(struct tracer_conn *conn)
{
	struct ky_app_left_out m;

	while (tracer_left_out_get(conn->sent_left_out, &m)) {
		struct ky_writer w = begin_message();

		conn->sent_left_out++;
		send_tx(conn, ky_app_left_out_encode(&w, &m));
	}
}

/* An address space of this size may be too small for buffers that may grow. */
#define SMALL_SPACE (UINT64_C(4) << 30)
/* A control group with less memory has no room for the buffers of KY_CAP_ROOMY. */
#define ROOMY_GROUP (UINT64_C(1) << 30)

/* Returns the size of all that the program maps, or 0. */
static uint64_t mapped_size(void)
{
	char text[32];

	ky_read_text(AT_FDCWD, "/proc/self/statm", text, sizeof(text));
	return strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Returns whether the kernel lets this program lock more than the limit; tries it without pages. */
static bool may_exceed(rlim_t limit)
{
	size_t size = limit < SIZE_MAX ? (size_t)limit + 1 : SIZE_MAX;
	void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	bool may = p != MAP_FAILED && mlock2(p, size, MLOCK_ONFAULT) == 0;

	if (p != MAP_FAILED)
		munmap(p, size);
	return may;
}

/*
 * Returns the capabilities that say how much room the program has: buffers that may grow are mapped
 * for their largest size. mlockall() fails if all that is mapped exceeds the limit. So a program
 * that has mapped more already locks nothing, and one without a limit can lock much for a moment.
 */
static uint32_t room_caps(void)
{
	struct rlimit space, locked;

	if (ky_sys_getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur <= SMALL_SPACE)
		return KY_CAP_FIXED;
	if (!tracer.spare_mappings)
		return 0;
	if (!tracer.may_lock || tracer.filtered || ky_sys_getrlimit(RLIMIT_MEMLOCK, &locked) < 0)
		return KY_CAP_FIXED;
	if (locked.rlim_cur == RLIM_INFINITY || may_exceed(locked.rlim_cur))
		return KY_CAP_FIXED | (tracer_memory_max() > ROOMY_GROUP ? KY_CAP_ROOMY : 0);
	return mapped_size() > locked.rlim_max ? 0 : KY_CAP_FIXED;
}

void tracer_process_name(char *name, size_t size)
{
	ssize_t n;

	if (tracer.name[0] && size >= sizeof(tracer.name)) {
		memcpy(name, tracer.name, sizeof(tracer.name));
		return;
	}
	n = ky_read_text(AT_FDCWD, "/proc/self/comm", name, size);

	name[n > 0 && name[n - 1] == '\n' ? n - 1 : 0] = '\0';
}

static void send_hello(struct tracer_conn *conn)
{
	/* rx has no message while this connection begins. */
	struct ky_writer w = begin_message(), list = {.buf = rx, .cap = LISTED_BYTES};
	char name[17];
	struct ky_app_hello m = {
		.version = KY_PROTO_VERSION,
		.abi_bits = sizeof(void *) * 8,
		.caps = (tracer.has_rseq ? KY_CAP_RSEQ : 0) |
			(ky_clock_of_machine() != KY_CLOCK_MONOTONIC ? KY_CAP_TSC : 0) |
			(tracer.allow_blocking ? KY_CAP_BLOCKING : 0) | KY_CAP_STATEDUMP |
			KY_CAP_TRIGGERS | room_caps(),
		.pid = (uint32_t)ky_process_number(),
		.n_events = tracer.n_events,
		.procname = name,
	};

	tracer_process_name(name, sizeof(name));
	if (!ky_thread_process())
		ky_thread_set_process();
	m.process = ky_thread_process();
	m.n_listed = tracer_events_list(&list);
	m.listed = (struct ky_bytes){rx, m.n_listed ? (uint32_t)list.len : 0};
	conn->asked++;
	send_tx(conn, ky_app_hello_encode(&w, &m));
	conn->sent_left_out = 0;
	send_left_out(conn);
}

bool tracer_conn_new_events(struct tracer_conn *conn)
{
	if (conn->socket.fd < 0)
		return false;
	if (conn->answered == conn->asked)
		set_unheard(conn, 0);
	conn->asked++;
	conn->unsent++;
	return true;
}

static void send_uncounted(struct tracer_conn *conn)
{
	struct ky_app_uncounted m;

	for (uint32_t i = 0; i < COUNTERS_MAX; i++) {
		struct ky_writer w = begin_message();

		if (conn->sent_uncounted >> i & 1 || !counter_failure(i, &m))
			continue;
		conn->sent_uncounted |= 1u << i;
		send_tx(conn, ky_app_uncounted_encode(&w, &m));
	}
}

void tracer_conn_send_unsent(struct tracer_conn *conn)
{
	struct ky_app_new_events m = {.n_events = tracer.n_events};

	if (conn->socket.fd >= 0)
		send_left_out(conn);
	while (conn->unsent && conn->socket.fd >= 0) {
		struct ky_writer w = begin_message();

		conn->unsent--;
		send_tx(conn, ky_app_new_events_encode(&w, &m));
	}
	if (conn->socket.fd >= 0)
		send_uncounted(conn);
}

static void ack(struct tracer_conn *conn, uint32_t cookie, int status)
{
	struct ky_writer w = begin_message();
	struct ky_app_ack m = {.cookie = cookie, .status = status};

	tracer_conn_send_unsent(conn);
	send_tx(conn, ky_app_ack_encode(&w, &m));
}

/* Reports that the application begins to record into the set, and how long it ran without. */
static void send_late(struct tracer_conn *conn, uint32_t set)
{
	struct ky_writer w = begin_message();
	struct ky_app_late m = {.set = set};

	uint64_t since = __atomic_load_n(&conn->unheard_ns, __ATOMIC_RELAXED);

	if (!since || conn->answered == conn->asked || !tracer_set_begins(conn, set))
		return;
	m.ns = ky_clock_ns(CLOCK_MONOTONIC) - since;
	send_tx(conn, ky_app_late_encode(&w, &m));
}

/* Reports that the application ends and waits for what its companion has to write. */
static void send_flush(struct tracer_conn *conn)
{
	struct ky_writer w = begin_message();
	struct ky_app_flush m = {.cookie = 1};

	if (conn != tracer.companion || conn->flushing || conn->socket.fd < 0 ||
		!__atomic_load_n(&tracer.ending, __ATOMIC_RELAXED))
		return;
	conn->flushing = true;
	send_tx(conn, ky_app_flush_encode(&w, &m));
}

void tracer_conn_send_fired(struct tracer_conn *conn)
{
	struct ky_writer w = begin_message();

	if (conn->socket.fd >= 0)
		send_tx(conn, ky_app_fired_encode(&w, &(struct ky_app_fired){0}));
}

void tracer_conn_send_late(struct tracer_conn *conn)
{
	uint32_t cookie;

	tracer_conn_send_unsent(conn);
	send_flush(conn);
	while (conn->socket.fd >= 0 && tracer_statedump_take_done(conn, &cookie))
		ack(conn, cookie, 0);
}

static int connect_app(struct tracer_conn *conn)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);
	int fd;

	if (!path_of(conn, KY_RUN_APP, sun.sun_path, sizeof(sun.sun_path)))
		return -ENAMETOOLONG;
	fd = ky_sys_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (ky_sys_connect(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0) {
		int r = -errno;

		ky_close(fd);
		return r;
	}
	if (ky_sys_getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ||
		!trusted(conn, cred.uid)) {
		ky_close(fd);
		return -EPERM;
	}
	__atomic_store_n(&conn->daemon, cred.pid, __ATOMIC_RELAXED);
	return fd;
}

/* Connects without the lock: an application that ends may take it meanwhile. */
static int connect_unlocked(struct tracer_conn *conn)
{
	int fd;

	tracer_give_lock();
	fd = connect_app(conn);
	tracer_take_lock();
	return fd;
}

/*
 * Opens the FIFO that a starting daemon touches. Another user's FIFO would keep the listener awake.
 */
static void open_wake(struct tracer_conn *conn)
{
	char path[128];
	struct stat st;
	int fd;

	tracer_fd_drop(&conn->wake);
	if (!path_of(conn, KY_RUN_WAKE, path, sizeof(path)))
		return;
	fd = ky_sys_open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && (ky_sys_fstat(fd, &st) < 0 || !trusted(conn, st.st_uid)))
		fd = ky_close(fd);
	conn->wake = tracer_fd_adopt(fd, S_IFIFO);
}

/* Doubles the delay. */
static void retry_later(struct tracer_conn *conn)
{
	conn->backoff_ms = KY_MIN(KY_MAX(conn->backoff_ms * 2, RETRY_MIN_MS), RETRY_MAX_MS);
	conn->retry_ns = ky_clock_ns(CLOCK_MONOTONIC) + (uint64_t)conn->backoff_ms * 1000000;
}

void tracer_conn_renew(struct tracer_conn *conn)
{
	struct ky_writer w = begin_message();

	if (conn->socket.fd >= 0)
		send_tx(conn, ky_app_leave_encode(&w, &(struct ky_app_leave){0}));
	tracer_conn_close(conn);
	tracer_sets_drop_all(conn);
	conn->backoff_ms = 0;
	tracer_conn_try(conn);
}

/* Returns a connected descriptor or -errno. Opens the FIFO if there is no daemon. */
static int find_daemon(struct tracer_conn *conn)
{
	int fd = connect_unlocked(conn);

	if (fd >= 0 || fd == -EAGAIN)
		return fd;
	open_wake(conn);
	/* Again: otherwise a daemon that started just before is missed. */
	return conn->wake.fd < 0 ? fd : connect_unlocked(conn);
}

/* The usual errors mean that no daemon runs there. */
static void report_error(const struct tracer_conn *conn, int error)
{
	if (error != -ENOENT && error != -ECONNREFUSED && error != -EAGAIN && is_first_report(conn))
		tracer_debug("%s: not used: user %u cannot connect to a daemon there: error %d",
			conn->dir, (unsigned)ky_effective_user(), -error);
}

void tracer_conn_try(struct tracer_conn *conn)
{
	int fd;

	if (!conn->dir[0] || conn->socket.fd >= 0) {
		conn->tried = true;
		return;
	}
	/*
	 * Repeated without a daemon, this makes as few calls as possible: meanwhile the application
	 * may install a filter that kills the process for one of them.
	 */
	fd = conn->retry_ns ? find_rundir(conn) : 0;
	if (!fd)
		fd = find_daemon(conn);
	if (fd < 0)
		report_error(conn, fd);
	conn->socket = tracer_fd_adopt(fd, S_IFSOCK);
	conn->retry_ns = 0;
	if (conn->socket.fd >= 0) {
		tracer_fd_drop(&conn->wake);
		conn->connected_ns = ky_clock_ns(CLOCK_MONOTONIC);
		send_hello(conn);
		conn->tried = true;
		return;		    /* waiting threads have no answer yet */
	} else if (fd == -EAGAIN) { /* its backlog is full; not an answer yet */
		conn->retry_ns = ky_clock_ns(CLOCK_MONOTONIC) + RETRY_BUSY_MS * 1000000u;
		return;
	} else if (conn->wake.fd < 0) {
		retry_later(conn);
	} else {
		conn->backoff_ms = 0;
	}
	conn->tried = true;
	if (conn->awaited)
		tracer_wake_waiters();
}

void tracer_conn_begin(struct tracer_conn *conn)
{
	if (!conn->dir[0] || has_socket(conn))
		tracer_conn_try(conn);
	else
		conn->retry_ns = ky_clock_ns(CLOCK_MONOTONIC) + LOOK_LATER_MS * 1000000u;
}

static void answer_query(struct tracer_conn *conn, const struct ky_app_query *q)
{
	static uint8_t list_buf[KY_MSG_MAX - 256];
	uint32_t index = 0;

	do {
		struct ky_writer w = begin_message();
		struct ky_writer list = {.buf = list_buf, .cap = sizeof(list_buf)};
		struct ky_app_events m = {.query = q->query};

		tracer_events_match(q->rules, q->n, &index, &list, &m.n);
		m.list = (struct ky_bytes){list_buf, (uint32_t)list.len};
		m.more = index < tracer.n_events;
		if (send_tx(conn, ky_app_events_encode(&w, &m)) < 0)
			return;
	} while (index < tracer.n_events);
}

static void handle_ring_set(
	struct tracer_conn *conn, struct ky_reader *r, const int *fds, int n_fds)
{
	struct ky_app_ring_set m;
	int err;

	if (ky_app_ring_set_decode(r, &m) < 0)
		return;
	/* Descriptors are missing if the table had no room for them. */
	err = n_fds == 2 ? tracer_set_add(conn, &m, fds[0], fds[1]) : -EMFILE;
	if (err == 0)
		return;
	conn->unmapped_set = m.set;
	conn->unmapped_why = err;
	tracer_debug("%s: ring set not mapped: error %d", conn->dir, -err);
}

/*
 * Starts a set. Answers START of an unknown set with the reason, so that the daemon learns of it.
 */
static void start_set(struct tracer_conn *conn, const struct ky_app_start *m)
{
	int err;

	send_late(conn, m->set);
	err = tracer_set_start(conn, m->set);
	tracer_self_look(); /* what is loaded after the reply is new */
	ack(conn, m->cookie,
		err == -ENOENT && m->set == conn->unmapped_set ? conn->unmapped_why : err);
}

static void dispatch_message(struct tracer_conn *conn, int type, struct ky_reader *r)
{
	union {
		struct ky_app_query query;
		struct ky_app_contexts contexts;
		struct ky_app_filters filters;
		struct ky_app_map map;
		struct ky_app_unmap unmap;
		struct ky_app_start set; /* START, STOP and DROP have the same fields */
		struct ky_app_statedump statedump;
		struct ky_app_done done;
		struct ky_app_blocking blocking;
		struct ky_app_triggers triggers;
	} m;

	switch (type) {
	case KY_APP_QUERY:
		if (ky_app_query_decode(r, &m.query) == 0)
			answer_query(conn, &m.query);
		break;
	case KY_APP_CONTEXTS:
		if (ky_app_contexts_decode(r, &m.contexts) == 0)
			tracer_set_contexts(conn, &m.contexts);
		break;
	case KY_APP_FILTERS:
		if (ky_app_filters_decode(r, &m.filters) == 0)
			tracer_set_filters(conn, &m.filters);
		break;
	case KY_APP_BLOCKING:
		if (ky_app_blocking_decode(r, &m.blocking) == 0)
			tracer_set_blocking(conn, &m.blocking);
		break;
	case KY_APP_TRIGGERS:
		if (ky_app_triggers_decode(r, &m.triggers) == 0)
			tracer_set_triggers(conn, &m.triggers);
		break;
	case KY_APP_MAP:
		if (ky_app_map_decode(r, &m.map) == 0)
			tracer_set_map(conn, &m.map);
		break;
	case KY_APP_UNMAP:
		if (ky_app_unmap_decode(r, &m.unmap) == 0)
			tracer_set_unmap(conn, &m.unmap);
		break;
	case KY_APP_START:
		if (ky_app_start_decode(r, &m.set) == 0)
			start_set(conn, &m.set);
		break;
	case KY_APP_STOP:
		if (ky_app_start_decode(r, &m.set) == 0)
			ack(conn, m.set.cookie, tracer_set_stop(conn, m.set.set));
		break;
	case KY_APP_DROP:
		if (ky_app_start_decode(r, &m.set) == 0)
			ack(conn, m.set.cookie, tracer_set_drop(conn, m.set.set));
		break;
	case KY_APP_STATEDUMP:
		if (ky_app_statedump_decode(r, &m.statedump) == 0 &&
			tracer_statedump(conn, &m.statedump))
			ack(conn, m.statedump.cookie, 0);
		break;
	case KY_APP_DONE:
		if (ky_app_done_decode(r, &m.done) == 0 && conn->answered != conn->asked)
			set_answered(conn, conn->answered + 1);
		if (conn->answered == conn->asked) {
			tracer_sets_settle(conn);
			set_unheard(conn, 0);
		}
		tracer_wake_waiters();
		break;
	case KY_APP_FLUSHED:
		__atomic_store_n(&conn->flushed, true, __ATOMIC_RELAXED);
		tracer_wake_waiters();
		break;
	default:
		break; /* from a newer daemon */
	}
}

/* Stores the descriptors of a message in fds. Returns their number. */
static int take_fds(struct msghdr *msg, int *fds)
{
	int n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t len = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < len / sizeof(int) && n < MAX_FDS; i++)
			memcpy(&fds[n++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
	return n;
}

/*
 * Handles the end of a connection. If the daemon ended, connects again, which finds its successor
 * or the FIFO. If the daemon refuses us, tries again less and less often.
 */
static void hung_up(struct tracer_conn *conn)
{
	uint64_t lasted = ky_clock_ns(CLOCK_MONOTONIC) - conn->connected_ns;

	tracer_conn_close(conn);
	if (lasted >= SETTLED_MS * UINT64_C(1000000)) {
		conn->backoff_ms = 0;
		tracer_conn_try(conn);
	} else {
		open_wake(conn);
		retry_later(conn);
	}
}

bool tracer_conn_receive(struct tracer_conn *conn)
{
	union {
		char buf[CMSG_SPACE(MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = rx, .iov_len = sizeof(rx)};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf)};
	int fds[MAX_FDS], n_fds, type;
	struct ky_reader r;
	ssize_t n = ky_sys_recvmsg(conn->socket.fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		hung_up(conn);
		return false;
	}
	n_fds = take_fds(&msg, fds);
	conn->heard++;
	type = ky_msg_open(&r, rx, (size_t)n);
	if (type == KY_APP_RING_SET)
		handle_ring_set(conn, &r, fds, n_fds);
	else if (type > 0)
		dispatch_message(conn, type, &r);
	for (int i = 0; i < n_fds; i++)
		ky_close(fds[i]);
	return true;
}
