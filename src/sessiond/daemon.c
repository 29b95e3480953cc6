/* SPDX-License-Identifier: MIT */
#include "sessiond/daemon.h"

#include <grp.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/small-file.h"
#include "base/standard-files.h"
#include "sessiond/control/client.h"
#include "sessiond/journal.h"
#include "sessiond/model/lost.h"
#include "sessiond/model/quota.h"
#include "sessiond/model/seconds.h"
#include "sessiond/model/surplus.h"
#include "sessiond/peers/app.h"
#include "sessiond/peers/process.h"
#include "sessiond/peers/program-places.h"
#include "sessiond/peers/recording.h"
#include "sessiond/peers/snapshot.h"
#include "sessiond/peers/steps.h"
#include "sessiond/peers/trigger-actions.h"
#include "sessiond/preset.h"
#include "svc/log.h"

#define DEFAULT_GROUP "tracing"
#define STOP_NS                                                                                    \
	(10000 * KY_NS_PER_MS) /* consumers that have not ended by then finish on their own */
#define MAKE_ROOM_NS                                                                               \
	(5000 * KY_NS_PER_MS) /* for requests that wait; half of what a successor waits */
/*
 * Between a program and the one that it becomes, or starts: a second. The first program waits
 * longer for its companion. In looks, because nobody can connect while the machine stands still.
 */
#define UNUSED_LOOKS 10
#define FIRST_LOOKS  50
#define UNUSED_NS    (100 * KY_NS_PER_MS)
#define PUBLISH_NS   KY_NS_PER_MS
#define MEND_NS	     (10 * KY_NS_PER_MS)
/* Not at once: if the whole directory is being removed, a new file in it would prevent that. */
#define MEND_LATER_NS (1000 * KY_NS_PER_MS)
#define FILES_MIN     32 /* a session of one program takes some 20 */

/*
 * Brings the state page up to date. Counts turns once in a millisecond: programs that wait for the
 * daemon look at the page after 40 ms.
 */
static void publish_state(struct daemon *d)
{
	uint64_t now = ky_loop_now_ns();
	struct session *s;
	uint32_t n = 0;
	int ret;

	ky_list_foreach (s, &d->env.sessions, node)
		n += session_is_active(s);
	if (n == d->run.state.n_active && now - d->published_ns < PUBLISH_NS)
		return;
	d->published_ns = now;
	ret = rundir_publish(&d->run, n);
	if (ret < 0)
		ky_warning("cannot write the state page: %s", strerror(-ret));
}

static void unused_still(struct ky_timer *t)
{
	struct daemon *d = ky_container_of(t, struct daemon, unused_timer);

	if (++d->n_unused < (d->was_used ? UNUSED_LOOKS : FIRST_LOOKS))
		ky_timer_set(&d->env.loop, t, UNUSED_NS);
	else
		daemon_stop(d);
}

/*
 * Hands the sessions over after it has answered the requests that it has read: a client cannot send
 * them again.
 */
static void hand_over(struct daemon *d)
{
	d->env.handing_over = true;
	ky_loop_stop(&d->env.loop);
}

static void make_room(struct daemon *d)
{
	if (d->env.stopping || d->making_room)
		return;
	ky_info("making room for another session daemon");
	d->making_room = true;
	ky_timer_set(&d->env.loop, &d->stop_timer, MAKE_ROOM_NS);
}

/*
 * Writes out the events of the last application when it has exited, although the daemon stays a
 * while.
 */
static void watch_use(struct daemon *d)
{
	bool unused = ky_list_empty(&d->peers.apps) && ky_list_empty(&d->control.clients);

	d->was_used |= !ky_list_empty(&d->peers.apps);
	if (!d->options.while_used || unused == d->unused)
		return;
	d->unused = unused;
	if (!unused) {
		ky_timer_cancel(&d->unused_timer);
		return;
	}
	d->n_unused = 0;
	ky_timer_set(&d->env.loop, &d->unused_timer, UNUSED_NS);
	sessions_flush(&d->env, NULL);
}

/* Returns whether a consumer has exited and is to be started again: its journal names no other. */
static bool lacks_consumer(const struct daemon *d)
{
	const struct session *s;

	ky_list_foreach (s, &d->env.sessions, node)
		if (!recording_of(s)->consumer.connected && !recording_of(s)->consumer.awaited)
			return true;
	return false;
}

static void loop_turned(struct ky_loop *loop)
{
	struct daemon *d = ky_container_of(loop, struct daemon, env.loop);

	watch_use(d);
	publish_state(d);
	if (d->making_room || d->env.stopping)
		watches_answer(&d->control, true);
	if (d->making_room && ky_list_empty(&d->control.requests) && !lacks_consumer(d))
		hand_over(d);
}

/* A part of the daemon can be served. */
static void part_ready(struct daemon *d)
{
	if (!--d->n_unready)
		op_done(d->ready, 0, "");
}

static struct daemon *daemon_of(struct env *e)
{
	return ky_container_of(e, struct daemon, env);
}

/* A daemon that ends has waited for its last session. */
static void end_if_due(struct daemon *d)
{
	if (d->env.stopping && ky_list_empty(&d->env.sessions))
		ky_loop_stop(&d->env.loop);
}

/* Applications must find a session active before a reply says so. */
static void session_changed(struct session *s)
{
	if (!s->env->loop.stopped)
		publish_state(daemon_of(s->env));
}

static void channel_changed(struct channel *c)
{
	session_changed(c->session);
}

static void session_freed(struct session *s)
{
	session_changed(s);
	end_if_due(daemon_of(s->env));
}

static void stop_timed_out(struct ky_timer *t)
{
	struct daemon *d = ky_container_of(t, struct daemon, stop_timer);

	if (d->making_room) {
		hand_over(d);
		return;
	}
	ky_error(
		"some sessions did not end in time: their consumers complete the traces without the session daemon");
	ky_loop_stop(&d->env.loop);
}

void daemon_stop(struct daemon *d)
{
	struct session *s, *tmp;

	if (d->env.stopping)
		return;
	d->env.stopping = true;
	ky_info("ending");
	ky_timer_set(&d->env.loop, &d->stop_timer, STOP_NS);
	ky_list_foreach_safe (s, tmp, &d->env.sessions, node)
		session_destroy(s, NULL); /* a busy one goes on by itself */
	watches_answer(&d->control, true);
	end_if_due(d);
}

static void on_signal(struct ky_loop *loop, int signo)
{
	struct daemon *d = ky_container_of(loop, struct daemon, env.loop);
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
	ky_list_foreach_safe (s, tmp, &d->env.sessions, node) {
		ky_list_foreach (sn, &recording_of(s)->snapshots, node)
			consumer_reap(&sn->consumer);
		consumer_reap(&recording_of(s)->consumer); /* may end the session */
	}
	collector_reap(&d->collector);
	agents_reap(&d->agents);
	preset_reap();
	triggers_reap(&d->env);
	program_places_reap(&d->peers);
	consumers_reap_abandoned();
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
	return ky_loop_signals(&d->env.loop, &set, on_signal);
}

static void app_accepted(struct ky_listener *l, int fd, const struct ky_peer *peer)
{
	app_accept(&ky_container_of(l, struct daemon, app_listener)->env, fd, peer);
}

static void control_accepted(struct ky_listener *l, int fd, const struct ky_peer *peer)
{
	client_accept(&ky_container_of(l, struct daemon, control_listener)->control, fd, peer);
}

/* A command's daemon is for that command alone. */
static bool is_shared(const struct daemon *d)
{
	return d->run.global && !d->options.bound;
}

/*
 * Returns the group that may control root's daemon; -1 if it does not exist or there is nothing to
 * share. Without a group, all works for root: only one that was asked for is missed.
 */
static gid_t control_group(const struct daemon *d)
{
	const char *name = d->options.group ? d->options.group : DEFAULT_GROUP;
	struct group *gr = is_shared(d) ? getgrnam(name) : NULL;

	if (is_shared(d) && !gr)
		ky_log(d->options.group ? KY_LOG_WARNING : KY_LOG_DEBUG,
			"group '%s' does not exist: only root controls this daemon", name);
	return gr ? gr->gr_gid : (gid_t)-1;
}

static int listen_at(struct daemon *d, struct ky_listener *l, const char *name, int type,
	mode_t mode, gid_t group,
	void (*accepted)(struct ky_listener *l, int fd, const struct ky_peer *peer))
{
	const char *path = rundir_path(&d->run, name);
	int ret = ky_listener_init(l, &d->env.loop, path, type, mode, group, accepted);

	if (ret < 0)
		ky_error("cannot listen on %s: %s", path, strerror(-ret));
	return ret;
}

static int listen_for_apps(struct daemon *d)
{
	return listen_at(d, &d->app_listener, KY_RUN_APP, SOCK_SEQPACKET,
		d->run.global ? 0666 : 0600, (gid_t)-1, app_accepted);
}

static int listen_for_clients(struct daemon *d)
{
	return listen_at(d, &d->control_listener, KY_RUN_CONTROL, SOCK_STREAM,
		is_shared(d) ? 0660 : 0600, control_group(d), control_accepted);
}

static int open_sockets(struct daemon *d)
{
	int ret = listen_for_apps(d);

	if (ret < 0)
		return ret;
	part_ready(d);
	ret = listen_for_clients(d);
	if (!ret)
		part_ready(d);
	return ret;
}

/* Listens again if somebody has removed the socket. Those who have connected are served first. */
static void mend_socket(struct daemon *d, struct ky_listener *l, const char *name,
	int (*listen_again)(struct daemon *d))
{
	if (!access(rundir_path(&d->run, name), F_OK) || errno != ENOENT)
		return;
	ky_warning("%s was removed: making it again", rundir_path(&d->run, name));
	ky_listener_accept_all(l, MEND_NS);
	ky_listener_deinit(l);
	listen_again(d);
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
	ret = ky_watch_add(&d->env.loop, &d->bound_watch, STDIN_FILENO, EPOLLIN, bound_closed);
	if (ret < 0)
		ky_error("--bound needs a pipe or socket as standard input: %s", strerror(-ret));
	return ret;
}

/*
 * Stops the daemon if its run directory was removed or moved away. Connected applications could
 * continue, but no command could ever stop them, and another daemon may serve the same path. So the
 * daemon disconnects them, and they find the other one. Nothing is damaged, but nobody requested
 * the end either: it is an error. Returns whether it was so.
 */
static bool stop_if_lost(struct daemon *d)
{
	if (!rundir_is_lost(&d->run))
		return false;
	ky_watch_remove(&d->run_watch);
	ky_error(
		"run directory %s was removed or moved away: nobody can reach this daemon any more, so it completes the traces of its sessions and ends",
		d->run.path);
	d->error = -ESTALE;
	daemon_stop(d);
	return true;
}

/* Makes the files again that others need to reach this daemon, and that somebody has removed. */
static void mend_run(struct ky_timer *t)
{
	struct daemon *d = ky_container_of(t, struct daemon, mend_timer);

	if (d->n_unready || d->env.stopping || stop_if_lost(d))
		return;
	mend_socket(d, &d->app_listener, KY_RUN_APP, listen_for_apps);
	mend_socket(d, &d->control_listener, KY_RUN_CONTROL, listen_for_clients);
	rundir_mend(&d->run);
}

static void run_changed(struct ky_watch *w, uint32_t events)
{
	struct daemon *d = ky_container_of(w, struct daemon, run_watch);

	(void)events;
	if (!stop_if_lost(d))
		ky_timer_set(&d->env.loop, &d->mend_timer, MEND_LATER_NS);
}

static void watch_run(struct daemon *d)
{
	if (d->run.watch_fd >= 0)
		ky_watch_add(&d->env.loop, &d->run_watch, d->run.watch_fd, EPOLLIN, run_changed);
}

/* If the kernel does not provide the counter's frequency, it is measured now and not in the loop.
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

	publish_state(d);
	rundir_set_managed(&d->run, d->managed);
	ret = rundir_wake(&d->run);
	if (ret < 0)
		ky_error("cannot wake applications in %s: %s", d->run.path, strerror(-ret));
	else
		part_ready(d);
	return ret;
}

/* The predecessor's sessions are taken over: applications and clients may connect. */
static void serve_peers(struct op *op, int status, const char *message)
{
	struct daemon *d = ky_container_of(op, struct daemon, served);
	int ret = open_sockets(d);

	if (!ret)
		ret = publish_first(d);
	if (ret < 0) {
		d->error = ret;
		ky_loop_stop(&d->env.loop);
	}
}

/* The file's first line; "" where it cannot be read. */
static void read_line(const char *path, char *buf, size_t size)
{
	ky_read_text(AT_FDCWD, path, buf, size);
	buf[strcspn(buf, "\n")] = '\0';
}

static void read_host(struct env *e)
{
	read_line("/proc/sys/kernel/random/boot_id", e->boot_id, sizeof(e->boot_id));
	read_line("/etc/machine-id", e->machine_id, sizeof(e->machine_id));
	/* A hypervisor's name for its guest. Only root can read it. */
	read_line("/sys/class/dmi/id/product_uuid", e->product_uuid, sizeof(e->product_uuid));
	if (gethostname(e->hostname, sizeof(e->hostname) - 1) < 0)
		e->hostname[0] = '\0';
}

static int open_loop(struct daemon *d)
{
	int ret = ky_loop_init(&d->env.loop);

	if (ret < 0)
		ky_error("cannot make an event loop: %s", strerror(-ret));
	d->env.loop.on_turn = loop_turned;
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

/*
 * No user, nor all users together, may take all descriptors that the daemon can have. An
 * application has two: of its connection, and of its process.
 */
static void limit_apps(struct daemon *d)
{
	struct rlimit lim = {.rlim_cur = RLIM_INFINITY};

	d->peers.user_apps_max = USER_APPS_MAX;
	d->peers.users_apps_max = UINT_MAX;
	if (d->env.uid || getrlimit(RLIMIT_NOFILE, &lim) < 0)
		return;
	d->peers.user_apps_max = (unsigned)KY_MIN(lim.rlim_cur / 2, (rlim_t)USER_APPS_MAX);
	d->peers.users_apps_max = (unsigned)KY_MIN(lim.rlim_cur / 8 * 3, (rlim_t)UINT_MAX);
}

static void init_env(struct env *e, const struct daemon_options *options)
{
	env_init(e);
	e->bound = options->bound;
	e->uid = e->cause = geteuid();
	e->n_cpus = possible_cpus();
	e->clock = ky_clock_choose();
	e->loop.epoll_fd = -1;
	surplus_init(e);
	seconds_init(e);
	quota_init(e, options->user_memory_max ? options->user_memory_max : quota_default());
}

static void init_parts(struct daemon *d)
{
	d->run.lock_fd = d->run.state_fd = d->run.watch_fd = -1;
	peers_init(&d->peers, &d->env, &d->run, &d->collector, &d->agents);
	d->peers.arrivals = &d->app_listener;
	kernel_init(&d->kernel, &d->env);
	control_init(&d->control, &d->env);
	journal_init(&d->env);
	d->observer = (struct observer){.session_state = session_changed,
		.channel_changed = channel_changed,
		.rules_changed = channel_changed,
		.session_freed = session_freed};
	ky_list_append(&d->env.observers, &d->observer.node);
	d->collector.wanted = !d->options.no_collectd;
	d->collector.without = d->options.without;
	d->peers.while_used = d->options.while_used;
	d->peers.allows_commands = d->options.allow_commands;
}

static int need_files(void)
{
	const char *advice, *missing = ky_missing_file(&advice);

	if (!missing)
		return 0;
	ky_error("%s: %s", missing, advice);
	return -ENOENT;
}

/* With fewer descriptors, a session could begin, and not serve a program or write its trace. */
static int need_descriptors(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur >= FILES_MIN)
		return 0;
	ky_error("the limit of open files, %llu, is too low: raise it, 'ulimit -n 1024'",
		(unsigned long long)lim.rlim_cur);
	return -EMFILE;
}

int daemon_init(struct daemon *d, const struct daemon_options *options)
{
	int ret;

	memset(d, 0, sizeof(*d));
	d->options = *options;
	d->n_unready = 3; /* two sockets, the state page */
	init_env(&d->env, options);
	init_parts(d);
	ky_timer_init(&d->stop_timer, stop_timed_out);
	ky_timer_init(&d->unused_timer, unused_still);
	ky_timer_init(&d->mend_timer, mend_run);
	recover_init(&d->recovery, &d->env);
	d->managed = secure_getenv("NOTIFY_SOCKET") != NULL;
	read_host(&d->env);
	warm_clock(d->env.clock);
	ret = ky_raise_limits();
	if (ret < 0)
		ky_error("the limit of the stack is too low: raise it, 'ulimit -s 8192'");
	limit_apps(d);
	if (!ret)
		ret = need_descriptors();
	if (!ret)
		ret = need_files();
	if (!ret)
		ret = open_loop(d);
	if (!ret)
		ret = watch_signals(d);
	if (!ret)
		ret = watch_bound(d);
	if (!ret)
		ret = rundir_open(&d->run, d->options.take_over, d->options.bound);
	d->env.all_users = d->run.global && !ky_env("KYMO_RUNDIR");
	if (!ret)
		watch_run(d);
	if (!ret)
		ret = write_pidfile(d);
	return ret;
}

int daemon_begin(struct daemon *d, struct op *op)
{
	d->ready = op;
	d->served.done = serve_peers;
	kernel_begin(&d->kernel);
	return recover_begin(&d->recovery, &d->served);
}

void daemon_deinit(struct daemon *d)
{
	struct request *r, *r_tmp;
	struct client *c, *c_tmp;
	struct session *s, *s_tmp;
	struct app *a, *a_tmp;
	struct process *p, *p_tmp;

	collector_deinit(&d->collector);
	agents_deinit(&d->agents, d->env.handing_over);
	ky_list_foreach_safe (r, r_tmp, &d->control.requests, node)
		request_free(r);
	program_places_cancel(&d->peers);
	ky_list_foreach_safe (c, c_tmp, &d->control.clients, node)
		client_free(c);
	ky_list_foreach_safe (s, s_tmp, &d->env.sessions, node)
		session_abandon(s);
	lost_clear(&d->env);
	ky_list_foreach_safe (a, a_tmp, &d->peers.apps, node)
		app_free(a);
	ky_list_foreach_safe (p, p_tmp, &d->peers.processes, node)
		process_free(p);
	ky_listener_deinit(&d->app_listener);
	ky_listener_deinit(&d->control_listener);
	kernel_deinit(&d->kernel);
	recover_deinit(&d->recovery);
	ky_watch_remove(&d->bound_watch);
	ky_watch_remove(&d->run_watch);
	if (d->options.pidfile && d->run.state_fd >= 0)
		unlink(d->options.pidfile);
	if (d->run.state_fd >= 0 && !d->env.handing_over)
		rundir_set_managed(&d->run, false);
	rundir_close(&d->run);
	ky_loop_deinit(&d->env.loop);
}
