/* SPDX-License-Identifier: MIT */
#include "sessiond/daemon.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "sessiond/peers/app.h"
#include "sessiond/control/client.h"
#include "sessiond/peers/process.h"
#include "sessiond/model/quota.h"
#include "sessiond/recover.h"
#include "sessiond/peers/snapshot.h"
#include "svc/log.h"

#define STOP_NS                                                                                    \
	(10000 * KY_NS_PER_MS) /* consumers that have not ended by then finish on their own */
#define MAKE_ROOM_NS                                                                               \
	(5000 * KY_NS_PER_MS) /* for requests that wait; half of what a successor waits */
#define UNUSED_NS                                                                                  \
	(1000 * KY_NS_PER_MS) /* between a program and the one that it becomes, or starts */

uint32_t daemon_next_cookie(struct daemon *d)
{
	if (!++d->last_cookie)
		d->last_cookie = 1;
	return d->last_cookie;
}

uint32_t daemon_next_number(struct daemon *d)
{
	return ++d->last_number;
}

void daemon_publish(struct daemon *d)
{
	struct session *s;
	uint32_t n = 0;
	int ret;

	ky_list_foreach (s, &d->sessions, node)
		n += session_is_active(s);
	ret = rundir_publish(&d->run, n);
	if (ret < 0)
		ky_warning("cannot write the state page: %s", strerror(-ret));
}

static void unused_too_long(struct ky_timer *t)
{
	daemon_stop(ky_container_of(t, struct daemon, unused_timer));
}

void daemon_flush(struct daemon *d, struct barrier *b)
{
	struct session *s;

	ky_list_foreach (s, &d->sessions, node)
		consumer_flush(&s->consumer, b);
}

/* A request that has been read cannot be asked again: it is answered before the sessions are handed over. */
static void hand_over(struct daemon *d)
{
	d->handing_over = true;
	ky_loop_stop(&d->loop);
}

static void make_room(struct daemon *d)
{
	if (d->stopping || d->making_room)
		return;
	ky_info("making room for another session daemon");
	d->making_room = true;
	ky_timer_set(&d->loop, &d->stop_timer, MAKE_ROOM_NS);
}

/* Whoever waited for the last program finds its events in the trace, though the daemon stays a while. */
static void watch_use(struct daemon *d)
{
	bool unused = ky_list_empty(&d->apps) && ky_list_empty(&d->clients);

	if (!d->options.while_used || unused == d->unused)
		return;
	d->unused = unused;
	if (!unused) {
		ky_timer_cancel(&d->unused_timer);
		return;
	}
	ky_timer_set(&d->loop, &d->unused_timer, UNUSED_NS);
	daemon_flush(d, NULL);
}

static void turned(struct ky_loop *loop)
{
	struct daemon *d = ky_container_of(loop, struct daemon, loop);

	watch_use(d);
	daemon_publish(d);
	if (d->making_room && ky_list_empty(&d->requests))
		hand_over(d);
}

void daemon_ready(struct daemon *d)
{
	if (!--d->n_unready)
		d->on_ready(d);
}

void daemon_session_ended(struct daemon *d)
{
	processes_forget(d);
	if (d->stopping && ky_list_empty(&d->sessions))
		ky_loop_stop(&d->loop);
}

static void stop_timed_out(struct ky_timer *t)
{
	struct daemon *d = ky_container_of(t, struct daemon, stop_timer);

	if (d->making_room) {
		hand_over(d);
		return;
	}
	ky_error("sessions did not end in time: their consumers are left to finish alone");
	ky_loop_stop(&d->loop);
}

void daemon_stop(struct daemon *d)
{
	struct session *s, *tmp;

	if (d->stopping)
		return;
	d->stopping = true;
	ky_info("ending");
	ky_timer_set(&d->loop, &d->stop_timer, STOP_NS);
	ky_list_foreach_safe (s, tmp, &d->sessions, node)
		session_destroy(s, NULL); /* a busy one goes on by itself */
	daemon_session_ended(d);
}

static void on_signal(struct ky_loop *loop, int signo)
{
	struct daemon *d = ky_container_of(loop, struct daemon, loop);
	struct session *s, *tmp;
	struct snapshot *sn;

	if (signo == SIGUSR2) {
		make_room(d);
		return;
	}
	if (signo != SIGCHLD) {
		if (!d->options.while_used && !d->making_room)
			daemon_stop(d);
		return;
	}
	ky_list_foreach_safe (s, tmp, &d->sessions, node) {
		ky_list_foreach (sn, &s->snapshots, node)
			consumer_reap(&sn->consumer);
		consumer_reap(&s->consumer); /* may end the session */
	}
	collector_reap(&d->collector);
}

static int watch_signals(struct daemon *d)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR2);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* large memfds count against RLIMIT_FSIZE */
	return ky_loop_signals(&d->loop, &set, on_signal);
}

static void app_accepted(struct ky_listener *l, int fd, const struct ky_peer *peer)
{
	app_accept(ky_container_of(l, struct daemon, app_listener), fd, peer);
}

static void control_accepted(struct ky_listener *l, int fd, const struct ky_peer *peer)
{
	client_accept(ky_container_of(l, struct daemon, control_listener), fd, peer);
}

/* The group that may control root's daemon; -1 where it does not exist or there is nothing to
 * share. */
static gid_t control_group(const struct daemon *d)
{
	struct group *gr = d->run.global ? getgrnam(d->options.group) : NULL;

	if (d->run.global && !gr)
		ky_info("group '%s' does not exist: only root controls this daemon",
			d->options.group);
	return gr ? gr->gr_gid : (gid_t)-1;
}

static int listen_at(struct daemon *d, struct ky_listener *l, const char *name, int type,
	mode_t mode, gid_t group,
	void (*accepted)(struct ky_listener *l, int fd, const struct ky_peer *peer))
{
	const char *path = rundir_path(&d->run, name);
	int ret = ky_listener_init(l, &d->loop, path, type, mode, group, accepted);

	if (ret < 0)
		ky_error("cannot listen on %s: %s", path, strerror(-ret));
	else
		daemon_ready(d);
	return ret;
}

static int open_sockets(struct daemon *d)
{
	int ret = listen_at(d, &d->app_listener, KY_RUN_APP, SOCK_SEQPACKET,
		d->run.global ? 0666 : 0600, (gid_t)-1, app_accepted);

	if (ret < 0)
		return ret;
	return listen_at(d, &d->control_listener, KY_RUN_CONTROL, SOCK_STREAM,
		d->run.global ? 0660 : 0600, control_group(d), control_accepted);
}

static void bound_closed(struct ky_watch *w, uint32_t events)
{
	struct daemon *d = ky_container_of(w, struct daemon, bound_watch);
	char buf[256];

	if (read(w->fd, buf, sizeof(buf)) > 0)
		return;
	ky_watch_remove(w);
	daemon_stop(d);
}

static int watch_bound(struct daemon *d)
{
	int ret;

	if (!d->options.bound)
		return 0;
	ret = ky_watch_add(&d->loop, &d->bound_watch, STDIN_FILENO, EPOLLIN, bound_closed);
	if (ret < 0)
		ky_error("--bound needs a pipe or socket as standard input: %s", strerror(-ret));
	return ret;
}

/*
 * Programs that are connected could go on, but no command would ever come to stop them, and where we were another daemon may be:
 * they are let go, and find that one. Nothing is damaged, but nobody has ordered it either: it is an error.
 */
static void run_changed(struct ky_watch *w, uint32_t events)
{
	struct daemon *d = ky_container_of(w, struct daemon, run_watch);

	if (!rundir_is_lost(&d->run))
		return;
	ky_watch_remove(w);
	ky_error(
		"run directory %s was removed or moved away: nobody can reach this daemon any more, so it completes the traces of its sessions and ends",
		d->run.path);
	d->error = -ESTALE;
	daemon_stop(d);
}

static void watch_run(struct daemon *d)
{
	if (d->run.watch_fd >= 0)
		ky_watch_add(&d->loop, &d->run_watch, d->run.watch_fd, EPOLLIN, run_changed);
}

/* Where the kernel does not tell the counter's frequency, it is measured now and not in the loop.
 */
static void warm_clock(enum ky_clock clock)
{
	struct ky_clock_info info;

	ky_clock_measure(clock, &info);
}

/* Programs find a living daemon from here on. */
static int publish_first(struct daemon *d)
{
	int ret;

	daemon_publish(d);
	ret = rundir_wake(&d->run);
	if (ret < 0)
		ky_error("cannot wake programs in %s: %s", d->run.path, strerror(-ret));
	else
		daemon_ready(d);
	return ret;
}

/* What a predecessor left is ours: others may come. */
static void serve(struct daemon *d)
{
	int ret = open_sockets(d);

	if (!ret)
		ret = publish_first(d);
	if (ret < 0) {
		d->error = ret;
		ky_loop_stop(&d->loop);
	}
}

/* The file's first line; "" where it cannot be read. */
static void read_line(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	ky_close(fd);
	buf[n > 0 ? n : 0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
}

static void read_host(struct daemon *d)
{
	read_line("/proc/sys/kernel/random/boot_id", d->boot_id, sizeof(d->boot_id));
	read_line("/etc/machine-id", d->machine_id, sizeof(d->machine_id));
	/* Root's alone; what a hypervisor tells its guest. */
	read_line("/sys/class/dmi/id/product_uuid", d->product_uuid, sizeof(d->product_uuid));
	if (gethostname(d->hostname, sizeof(d->hostname) - 1) < 0)
		d->hostname[0] = '\0';
}

static int open_loop(struct daemon *d)
{
	int ret = ky_loop_init(&d->loop);

	if (ret < 0)
		ky_error("cannot make an event loop: %s", strerror(-ret));
	d->loop.on_turn = turned;
	return ret;
}

static int write_pidfile(const struct daemon *d)
{
	const char *path = d->options.pidfile;
	_cleanup_fclose_ FILE *f = path ? fopen(path, "we") : NULL;

	if (!path)
		return 0;
	if (!f || fprintf(f, "%d\n", (int)getpid()) < 0 || fflush(f)) {
		ky_error("cannot write pidfile %s: %s", path, strerror(errno));
		return -EIO;
	}
	return 0;
}

/* Of several users none takes all the descriptors that the daemon may have. */
static unsigned user_apps_max(const struct daemon *d)
{
	struct rlimit lim;

	if (d->uid || getrlimit(RLIMIT_NOFILE, &lim) < 0)
		return USER_APPS_MAX;
	return (unsigned)KY_MIN(lim.rlim_cur / 2, (rlim_t)USER_APPS_MAX);
}

int daemon_init(
	struct daemon *d, const struct daemon_options *options, void (*on_ready)(struct daemon *d))
{
	int ret;

	memset(d, 0, sizeof(*d));
	d->options = *options;
	d->on_ready = on_ready;
	d->n_unready = 3; /* two sockets, the state page */
	d->uid = geteuid();
	d->n_cpus = possible_cpus();
	d->clock = ky_clock_choose();
	d->loop.epoll_fd = d->run.lock_fd = d->run.state_fd = d->run.watch_fd = -1;
	ky_list_init(&d->sessions);
	ky_list_init(&d->apps);
	ky_list_init(&d->processes);
	ky_list_init(&d->users);
	ky_list_init(&d->clients);
	ky_list_init(&d->requests);
	ky_list_init(&d->selections);
	ky_timer_init(&d->stop_timer, stop_timed_out);
	ky_job_init(&d->quota_job, quota_run);
	d->user_memory_max = options->user_memory_max ? options->user_memory_max : quota_default();
	ky_timer_init(&d->unused_timer, unused_too_long);
	collector_init(&d->collector, d);
	recover_init(d);
	read_host(d);
	warm_clock(d->clock);
	ky_raise_nofile();
	d->user_apps_max = user_apps_max(d);
	ret = open_loop(d);
	if (!ret)
		ret = watch_signals(d);
	if (!ret)
		ret = watch_bound(d);
	if (!ret)
		ret = rundir_open(&d->run, d->options.bound, d->options.take_over);
	if (!ret)
		watch_run(d);
	if (!ret)
		ret = write_pidfile(d);
	return ret;
}

int daemon_begin(struct daemon *d)
{
	return recover_begin(d, serve);
}

void daemon_deinit(struct daemon *d)
{
	struct request *r, *r_tmp;
	struct client *c, *c_tmp;
	struct session *s, *s_tmp;
	struct app *a, *a_tmp;
	struct process *p, *p_tmp;

	collector_deinit(&d->collector);
	ky_list_foreach_safe (r, r_tmp, &d->requests, node)
		request_free(r);
	ky_list_foreach_safe (c, c_tmp, &d->clients, node)
		client_free(c);
	ky_list_foreach_safe (s, s_tmp, &d->sessions, node)
		session_abandon(s);
	ky_list_foreach_safe (a, a_tmp, &d->apps, node)
		app_free(a);
	ky_list_foreach_safe (p, p_tmp, &d->processes, node)
		process_free(p);
	ky_listener_deinit(&d->app_listener);
	ky_listener_deinit(&d->control_listener);
	recover_deinit(d);
	ky_watch_remove(&d->bound_watch);
	ky_watch_remove(&d->run_watch);
	if (d->options.pidfile && d->run.state_fd >= 0)
		unlink(d->options.pidfile);
	rundir_close(&d->run);
	ky_loop_deinit(&d->loop);
}
