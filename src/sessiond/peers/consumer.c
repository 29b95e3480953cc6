/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/consumer.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "sessiond/peers/kernel-orders.h"
#include "sessiond/peers/orders.h"
#include "sessiond/peers/program.h"
#include "sessiond/peers/rundir.h"
#include "svc/check.h"
#include "svc/log.h"
#include "svc/unix.h"

#define PROGRAM	       "kymo-consumerd"
#define CONSUMER_FD    3
#define QUEUE_MAX      (16u << 20)
#define FIRST_DELAY_MS 20u   /* after the second death in a row */
#define READY_DELAY_MS 160u  /* at most, after one that could work */
#define LAST_DELAY_MS  5000u /* at most, after one that could not even begin */
#define HEALTHY_NS                                                                                 \
	(10000 * KY_NS_PER_MS) /* having lived so long, it is no longer failing in a row */
#define WATCH_NS     (100 * KY_NS_PER_MS)
#define FAILURES_MAX 3 /* in a row, when it is only to end */

KY_CONS_MESSAGES(KY_MSG_SENDER)

static const struct ky_msg_conn_ops conn_ops;

/*
 * In the child: never returns. A process group of its own, so that a client's Ctrl-C spares it. The
 * program becomes the session's owner itself: if the child did so before it executes the program,
 * other processes of the owner could trace it, and have its precedence and its descriptors.
 */
static void __attribute__((noreturn)) run_child(const char *path, int fd, const struct consumer *c)
{
	const struct session *s = c->session;
	struct timespec rest = {.tv_nsec = (long)(c->rest_ms * KY_NS_PER_MS)};
	char owner[sizeof("--owner=4294967295:4294967295")];
	char *argv[] = {PROGRAM, owner, NULL};
	int null = open("/dev/null", O_RDONLY);

	ky_signals_reset();
	setsid();
	if (null < 0 || dup2(null, STDIN_FILENO) < 0)
		_exit(126);
	/* dup2 onto itself would leave it close-on-exec. */
	if (fd == CONSUMER_FD ? fcntl(fd, F_SETFD, 0) < 0 : dup2(fd, CONSUMER_FD) < 0)
		_exit(126);
	syscall(SYS_close_range, CONSUMER_FD + 1, ~0u, 0);
	snprintf(owner, sizeof(owner), "--owner=%u:%u", (unsigned)s->uid, (unsigned)s->gid);
	prctl(PR_SET_NAME, PROGRAM);
	while (nanosleep(&rest, &rest) < 0 && errno == EINTR)
		;
	execv(path, argv);
	_exit(127);
}

static void send_init(struct consumer *c)
{
	const struct ky_cons_init m = {
		.version = KY_PROTO_VERSION,
		.session = c->session->name,
		.output = c->output,
		.resume = c->ready,
		.rendezvous = c->snapshot || c->session->env->bound
				      ? ""
				      : rundir_path(c->session->env->run, KY_RUN_DRAIN),
		.place = c->session->snapshot && !c->snapshot,
	};

	ky_cons_init_send(&c->conn, &m, &c->memory_fd, 1);
}

static void send_retire(struct consumer *c, const struct ring_set *set)
{
	ky_cons_retire_send(&c->conn, &(struct ky_cons_retire){.set = set->number}, NULL, 0);
}

static void send_timers(struct consumer *c, const struct ring_set *set)
{
	const struct ky_cons_timers m = {
		.set = set->number,
		.switch_us = set->channel->switch_timer_us,
		.read_us = set->channel->read_timer_us,
	};

	ky_cons_timers_send(&c->conn, &m, NULL, 0);
}

static void send_set(struct consumer *c, const struct ring_set *set)
{
	_cleanup_close_ int rings = memory_open_read_only(set->memory.rings_fd);
	_cleanup_close_ int consumed = memory_open_read_only(set->memory.consumed_fd);
	_cleanup_close_ int log = memory_open_read_only(set->registry->log_fd);
	const int fds[] = {rings, c->snapshot ? consumed : set->memory.consumed_fd, log};
	int error = KY_MIN(KY_MIN(rings, consumed), KY_MIN(log, 0));
	uint8_t buf[1024];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};

	if (error < 0) {
		ky_msg_conn_fail(&c->conn, error);
		return;
	}
	ky_msg_conn_send(&c->conn, buf, order_ring_set(&w, set), fds, KY_ARRAY_SIZE(fds));
	if (c->snapshot)
		return;
	send_timers(c, set);
	if (set->state == SET_RETIRED)
		send_retire(c, set);
}

/*
 * Gives the consumer precedence over ordinary processes, as far as the daemon may. The kernel's
 * buffers hold a fraction of a second of what a busy system does, and an ordinary process may wait
 * longer for a processor if the load is in another session or control group. The consumer does no
 * more than the events require.
 */
static void make_prompt(const struct consumer *c)
{
	const struct sched_param lowest = {.sched_priority = 1};

	if (c->process > 0 &&
		sched_setscheduler(c->process, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) < 0)
		ky_debug("session '%s': its consumer has no precedence: %s", c->session->name,
			strerror(errno));
}

static void send_kernel_set(struct consumer *c, const struct kernel_set *set)
{
	if (!c->snapshot && !set->channel->overwrite)
		make_prompt(c);
	kernel_order_set(&c->conn, set);
	if (!c->snapshot)
		kernel_order_timers(&c->conn, set);
}

/*
 * A trace may have no set now. If its log is the daemon's alone, and the daemon is killed, nobody
 * can continue the trace.
 */
static void send_logs(struct consumer *c)
{
	const struct registry *r;
	uint64_t uuid[2];

	ky_list_foreach (r, &c->session->registries, node) {
		_cleanup_close_ int log = memory_open_read_only(r->log_fd);

		if (log < 0) {
			ky_msg_conn_fail(&c->conn, log);
			return;
		}
		registry_uuid(r, uuid);
		ky_cons_adopt_log_send(&c->conn,
			&(struct ky_cons_adopt_log){.uuid_hi = uuid[0], .uuid_lo = uuid[1]}, &log,
			1);
	}
}

/* The queue has room for all of them: a consumer that lacks one could not do its work. */
static void send_sets(struct consumer *c)
{
	const struct channel *channel;
	const struct ring_set *set;

	c->conn.max_queued_bytes = SIZE_MAX;
	if (!c->snapshot)
		send_logs(c);
	ky_list_foreach (channel, &c->session->channels, node) {
		ky_list_foreach (set, &channel->sets, node)
			if (ring_set_is_made(set))
				send_set(c, set);
		if (channel->kernel && (!c->snapshot || channel->kernel->may_map))
			send_kernel_set(c, channel->kernel);
	}
	if (c->session->samples && !c->snapshot)
		kernel_order_samples(&c->conn, c->session->samples);
	c->conn.max_queued_bytes = c->conn.n_queued_bytes + QUEUE_MAX;
}

static uint64_t count_sets(const struct session *s)
{
	const struct channel *channel;
	const struct ring_set *set;
	uint64_t n = 0;

	ky_list_foreach (channel, &s->channels, node)
		ky_list_foreach (set, &channel->sets, node)
			n += ring_set_is_made(set);
	return n;
}

/*
 * Announces to the consumer that it knows, or is being sent, so many sets (abi/resume.h). Without
 * that, the watermark could miss the records of a set whose order waits for room in the socket.
 */
static void announce_sets(struct consumer *c, uint64_t n)
{
	off_t at = offsetof(struct ky_resume_session, n_sets);

	c->n_sets = n;
	if (pwrite(c->memory_fd, &n, sizeof(n), at) != (ssize_t)sizeof(n))
		ky_error(
			"session '%s': cannot write to the memory that it shares with its consumer: %s",
			c->session->name, strerror(errno));
}

static void send_flush(struct consumer *c, uint32_t cookie)
{
	if (c->connected)
		ky_cons_flush_send(&c->conn, &(struct ky_cons_flush){cookie}, NULL, 0);
}

static void send_quit(struct consumer *c)
{
	if (c->connected)
		ky_cons_quit_send(&c->conn, &(struct ky_cons_quit){c->quit_cookie}, NULL, 0);
}

static bool owes_answer(const struct consumer *c)
{
	return !ky_list_empty(&c->tickets) || c->rotate_cookie ||
	       (c->quit_cookie && !c->quit_answered);
}

/* After each order: the consumer owes an answer. */
static void expect_answer(struct consumer *c)
{
	struct ky_loop *loop = &c->session->env->loop;

	if (c->asked_ns)
		return;
	c->asked_ns = ky_loop_time_ns(loop);
	c->seemed_stuck = false;
	ky_timer_set(loop, &c->watch, WATCH_NS);
}

void consumer_note_answer(struct consumer *c)
{
	c->asked_ns = owes_answer(c) ? ky_loop_time_ns(&c->session->env->loop) : 0;
	if (!c->asked_ns)
		ky_timer_cancel(&c->watch);
}

/*
 * Commands do not wait for a consumer that is stuck: at two looks, because if it was the daemon
 * that had no CPU, the answer is there before the second one.
 */
static void run_watch(struct ky_timer *t)
{
	struct consumer *c = ky_container_of(t, struct consumer, watch);
	uint64_t now = ky_loop_time_ns(&c->session->env->loop);
	bool seems_stuck = consumer_is_stuck(c), stuck = seems_stuck && c->seemed_stuck;
	struct ticket *ticket, *tmp;

	c->seemed_stuck = seems_stuck;
	ky_timer_set(&c->session->env->loop, t, WATCH_NS);
	ky_list_foreach_safe (ticket, tmp, &c->tickets, node)
		if (stuck)
			ticket_give_up(ticket);
	if (!c->quit_cookie || c->quit_given_up || c->snapshot ||
		(!stuck && now - c->quit_ns < CONSUMER_ANSWER_NS))
		return;
	c->quit_given_up = true;
	c->ops->stuck(c);
}

static void send_rotate(struct consumer *c)
{
	const struct ky_cons_rotate m = {
		.cookie = c->rotate_cookie, .chunk = c->rotate_chunk, .archive = c->rotate_archive};

	if (c->connected)
		ky_cons_rotate_send(&c->conn, &m, NULL, 0);
}

/* Sends the orders that no consumer has carried out yet. */
static void send_orders(struct consumer *c)
{
	struct ticket *t, *tmp;

	ky_list_foreach_safe (t, tmp, &c->tickets, node) {
		if (t->kind == TICKET_FLUSH)
			send_flush(c, t->key);
		else if (t->kind != TICKET_ROTATE)
			ticket_done(t);
	}
	if (c->rotate_cookie)
		send_rotate(c);
	if (c->quit_cookie)
		send_quit(c);
}

/* Sends all that a new consumer must know. */
static void send_everything(struct consumer *c)
{
	send_init(c);
	if (!c->snapshot) {
		ky_cons_bounds_send(&c->conn, &c->bounds, NULL, 0);
		send_sets(c);
	}
	send_orders(c);
}

static int spawn_process(struct consumer *c, int fd)
{
	char path[PATH_MAX];

	if (program_find("consumerd", path, sizeof(path)) < 0) {
		ky_error("cannot find " PROGRAM
			 ": install it beside the session daemon or set KYMO_LIBEXECDIR");
		return -ENOENT;
	}
	c->pid = c->process = fork();
	if (c->pid < 0) {
		c->pid = 0;
		return -errno;
	}
	if (!c->pid)
		run_child(path, fd, c);
	return 0;
}

/* Killed processes that have not ended yet: a disk that does not answer may hold one for ever. */
static struct {
	pid_t *pids; /* owned */
	size_t n;
} abandoned;

void consumers_reap_abandoned(void)
{
	for (size_t i = 0; i < abandoned.n;) {
		if (waitpid(abandoned.pids[i], NULL, WNOHANG))
			abandoned.pids[i] = abandoned.pids[--abandoned.n];
		else
			i++;
	}
}

/* Kills the process without waiting for it: SIGCHLD reports its exit. */
static void kill_process(struct consumer *c)
{
	pid_t *grown;

	if (!c->pid)
		return;
	kill(c->pid, SIGKILL);
	grown = realloc(abandoned.pids, (abandoned.n + 1) * sizeof(*grown));
	if (grown) {
		abandoned.pids = grown;
		abandoned.pids[abandoned.n++] = c->pid;
	}
	c->pid = 0;
	consumers_reap_abandoned();
}

int consumer_spawn(struct consumer *c)
{
	int fds[2], ret;

	c->started_ns = ky_loop_time_ns(&c->session->env->loop);
	c->asked_ns = c->asked_ns ? c->started_ns : 0;
	c->answered = false;
	if (c->memory_fd < 0)
		c->memory_fd = session_memory_make(c->snapshot ? -1 : c->session->shm_fd);
	if (c->memory_fd < 0)
		return c->memory_fd;
	announce_sets(c, count_sets(c->session));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return -errno;
	ret = spawn_process(c, fds[1]);
	ky_close(fds[1]);
	if (ret < 0) {
		ky_close(fds[0]);
		return ret;
	}
	ret = ky_msg_conn_init(&c->conn, &c->session->env->loop, fds[0], &conn_ops, QUEUE_MAX, 0);
	if (ret < 0) {
		kill_process(c);
		return ret;
	}
	c->connected = true;
	if (!c->snapshot)
		OBSERVE(c->session->env, consumer_started, c->session);
	send_everything(c);
	return 0;
}

void consumer_adopt(struct consumer *c, int fd)
{
	int ret;

	if (c->connected) {
		ky_close_foreign(fd);
		return;
	}
	ret = ky_msg_conn_init(
		&c->conn, &c->session->env->loop, fd, &conn_ops, QUEUE_MAX, KY_MSG_CONN_MAX_FDS);
	if (ret < 0)
		ky_error("session '%s': cannot take over its consumer: %s", c->session->name,
			strerror(-ret)); /* it will call again */
	c->connected = !ret;
	c->process = c->awaited;
	c->ready = c->answered = true;
	c->started_ns = ky_loop_time_ns(&c->session->env->loop);
	if (c->connected)
		send_orders(c);
}

static void process_ended(struct consumer *c);

static void forget_adopted(struct consumer *c)
{
	ky_watch_remove(&c->exit);
	c->pidfd = ky_close(c->pidfd);
}

static void adopted_exited(struct ky_watch *w, uint32_t events)
{
	struct consumer *c = ky_container_of(w, struct consumer, exit);

	(void)events;
	forget_adopted(c);
	if (!c->connected)
		process_ended(c);
}

int consumer_watch_adopted(struct consumer *c)
{
	int ret = c->pidfd = ky_peer_pidfd(c->conn.fd, c->process);

	if (ret >= 0)
		ret = ky_watch_add(
			&c->session->env->loop, &c->exit, c->pidfd, EPOLLIN, adopted_exited);
	if (ret < 0)
		c->pidfd = ky_close(c->pidfd);
	return KY_MIN(ret, 0);
}

static void run_restart(struct ky_timer *t)
{
	struct consumer *c = ky_container_of(t, struct consumer, restart);

	if (consumer_spawn(c) < 0)
		process_ended(c);
}

void consumer_init(
	struct consumer *c, struct session *s, const char *output, const struct consumer_ops *ops)
{
	memset(c, 0, sizeof(*c));
	c->session = s;
	c->output = output;
	c->ops = ops;
	c->memory_fd = c->pidfd = -1;
	ky_list_init(&c->tickets);
	ky_timer_init(&c->restart, run_restart);
	ky_timer_init(&c->watch, run_watch);
}

void consumer_deinit(struct consumer *c)
{
	ky_timer_cancel(&c->restart);
	ky_timer_cancel(&c->watch);
	ticket_done_all(&c->tickets);
	kill_process(c);
	forget_adopted(c);
	if (c->connected)
		ky_msg_conn_deinit(&c->conn);
	c->connected = false;
	c->memory_fd = ky_close(c->memory_fd);
}

void consumer_add_set(struct consumer *c, const struct ring_set *set)
{
	if (!c->connected)
		return;
	announce_sets(c, c->n_sets + 1);
	send_set(c, set);
}

void consumer_add_kernel_set(struct consumer *c, const struct kernel_set *set)
{
	if (c->connected)
		send_kernel_set(c, set);
}

void consumer_retire(struct consumer *c, const struct ring_set *set)
{
	if (c->connected)
		send_retire(c, set);
}

void consumer_add_retired(
	struct consumer *c, const struct event_counts *counts, uint64_t chunk, uint64_t kept)
{
	event_counts_add(&c->retired, counts);
	c->retired_kept[chunk & 1] += kept;
}

void consumer_chunk_ended(struct consumer *c, uint64_t chunk, bool cleared)
{
	uint64_t *kept = &c->retired_kept[chunk & 1];

	if (cleared) {
		c->retired.cleared += *kept;
		c->counts.cleared += *kept;
	}
	*kept = 0;
}

void consumer_send_timers(struct consumer *c, const struct channel *channel)
{
	const struct ring_set *set;

	if (c->connected && channel->kernel)
		kernel_order_timers(&c->conn, channel->kernel);
	ky_list_foreach (set, &channel->sets, node)
		if (c->connected && ring_set_is_made(set) && !channel->overwrite)
			send_timers(c, set);
}

void consumer_set_bounds(struct consumer *c, const struct ky_cons_bounds *bounds)
{
	c->bounds = *bounds;
	if (c->connected && !c->awaited)
		ky_cons_bounds_send(&c->conn, bounds, NULL, 0);
}

void consumer_snapshot(
	struct consumer *c, uint64_t max_size, const char *reason, struct barrier *copied)
{
	struct ky_cons_snapshot m = {.max_size = max_size, .reason = reason};

	ky_cons_snapshot_send(&c->conn, &m, NULL, 0);
	send_sets(c);
	if (copied)
		consumer_ask(c, copied);
	consumer_quit(c);
}

void consumer_flush(struct consumer *c, struct barrier *b)
{
	uint32_t cookie = env_next_cookie(c->session->env);

	if (!ticket_new(&c->tickets, TICKET_FLUSH, cookie, b))
		return;
	send_flush(c, cookie);
	expect_answer(c);
}

void consumer_ask(struct consumer *c, struct barrier *b)
{
	uint32_t cookie = env_next_cookie(c->session->env);

	if (!c->connected || !ticket_new(&c->tickets, TICKET_ASK, cookie, b))
		return;
	ky_cons_ask_send(&c->conn, &(struct ky_cons_ask){cookie}, NULL, 0);
	expect_answer(c);
}

void consumer_rotate(
	struct consumer *c, uint64_t chunk, const char *archive, struct op *op, struct barrier *b)
{
	c->rotate_cookie = env_next_cookie(c->session->env);
	KY_CHECK(chunk >= c->rotate_chunk); /* the same, if it could not be begun */
	c->rotate_chunk = chunk;
	c->rotate_archive = archive;
	c->rotated = op;
	ticket_new(&c->tickets, TICKET_ROTATE, c->rotate_cookie, b);
	send_rotate(c);
	expect_answer(c);
}

void consumer_quit(struct consumer *c)
{
	c->quit_cookie = env_next_cookie(c->session->env);
	c->quit_ns = ky_loop_time_ns(&c->session->env->loop);
	send_quit(c);
	expect_answer(c);
}

static void conn_message(
	struct ky_msg_conn *conn, const void *buf, size_t len, int *fds, size_t n_fds)
{
	int ret = consumer_handle(
		ky_container_of(conn, struct consumer, conn), buf, len, fds, n_fds);

	if (ret < 0)
		ky_msg_conn_fail(conn, ret);
}

static uint64_t restart_delay_ms(const struct consumer *c)
{
	const uint64_t most_ms = c->answered ? READY_DELAY_MS : LAST_DELAY_MS;

	if (!c->n_failures)
		return 0;
	return KY_MIN((uint64_t)FIRST_DELAY_MS << KY_MIN(c->n_failures - 1, 16u), most_ms);
}

/*
 * Until another process has the descriptors, the session would not outlive this daemon: so a
 * consumer that could work is replaced at once, and it is the new process that waits.
 */
static void restart_later(struct consumer *c)
{
	const uint64_t delay_ms = restart_delay_ms(c);

	c->rest_ms = c->answered ? delay_ms : 0;
	ky_timer_set(&c->session->env->loop, &c->restart, (delay_ms - c->rest_ms) * KY_NS_PER_MS);
	c->n_failures++;
}

/* The process has exited, and its connection is closed. */
static void process_ended(struct consumer *c)
{
	if (c->quit_answered || !c->ready) {
		c->ops->ended(c, false);
		return;
	}
	if (ky_loop_time_ns(&c->session->env->loop) - c->started_ns > HEALTHY_NS)
		c->n_failures = 0;
	if (c->snapshot || (c->quit_cookie && c->n_failures >= FAILURES_MAX)) {
		c->ops->ended(c, true);
		return;
	}
	c->ops->trouble(c, "the consumer died and is started again");
	restart_later(c);
}

static void conn_closed(struct ky_msg_conn *conn, int error)
{
	struct consumer *c = ky_container_of(conn, struct consumer, conn);

	if (error)
		ky_error("session '%s': the connection to its consumer failed: %s",
			c->session->name, strerror(-error));
	ky_msg_conn_deinit(conn);
	c->connected = false;
	if (error && c->pid)
		kill(c->pid, SIGKILL);
	if (error && c->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
	if (!c->pid && c->pidfd < 0 && !c->awaited)
		process_ended(c);
}

void consumer_reap(struct consumer *c)
{
	int status;

	if (!c->pid || waitpid(c->pid, &status, WNOHANG) != c->pid)
		return;
	c->pid = 0;
	if (WIFSIGNALED(status))
		ky_error("session '%s': its consumer was killed by signal %d", c->session->name,
			WTERMSIG(status));
	else if (WEXITSTATUS(status))
		ky_error("session '%s': its consumer exited with status %d", c->session->name,
			WEXITSTATUS(status));
	if (!c->connected)
		process_ended(c);
}

static const struct ky_msg_conn_ops conn_ops = {
	.message = conn_message,
	.closed = conn_closed,
};
