/* SPDX-License-Identifier: MIT */
/*
 * live: serves traces that grow to viewers that speak LTTng's live protocol, as babeltrace2. It
 * only reads files, so it never delays a recording, and it confines itself to reading these.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/listen.h"
#include "base/vec.h"
#include "cli/daemon.h"
#include "cli/locate.h"
#include "cli/params.h"
#include "confine/confine.h"
#include "live/server.h"

#define DEFAULT_LISTEN "127.0.0.1:5344"
#define DEFAULT_PORT   5344
#define DIR_FLAGS      (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

static const struct cli_option options[] = {
	{"listen", 0, "ADDRESS:PORT",
		"listen at this address (default " DEFAULT_LISTEN "); port 0: any free port"},
	{"from-start", 0, NULL,
		"viewers also get the events that were recorded before they connected"},
	{0},
};

static volatile sig_atomic_t stopped;

static void on_signal(int signo)
{
	stopped = signo;
}

/* Traces, and directories in which traces appear. */
struct served {
	struct cli *cli;
	struct live live;
	KY_VEC(int) dirs; /* owned */
	KY_VEC(int) all;  /* the same, and the roots of sessions; borrowed */
};

static bool is_served(const struct live *live, int root)
{
	struct stat ours, theirs;

	for (size_t i = 0; i < live->n_sessions; i++)
		if (!fstat(root, &ours) && !fstat(live->sessions[i].root, &theirs) &&
			ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev)
			return true;
	return false;
}

static void add_found(struct live *live, int dir, const char *name)
{
	int root = *name == '.' ? -1 : openat(dir, name, DIR_FLAGS | O_NOFOLLOW);

	if (root >= 0 && live_is_trace(root) && !is_served(live, root))
		live_add(live, name, root);
	else
		ky_close(root);
}

static void refresh_traces(struct live *live)
{
	struct served *s = live->context;

	for (size_t i = 0; i < s->dirs.n; i++) {
		int fd = openat(s->dirs.v[i], ".", DIR_FLAGS);
		DIR *d = fd < 0 ? NULL : fdopendir(fd);
		const struct dirent *e;

		if (!d) {
			ky_close(fd);
			continue;
		}
		while ((e = readdir(d)))
			add_found(live, s->dirs.v[i], e->d_name);
		closedir(d);
	}
}

static int add_directory(struct served *s, const char *name, const char *path, bool is_session)
{
	char whole[PATH_MAX];
	int dir = realpath(path, whole) ? open(whole, DIR_FLAGS) : -1, ret;

	if (dir < 0)
		return cli_fail(s->cli, errno == ENOENT ? "not-found" : "failed",
			"cannot read %s: %s", path, strerror(errno));
	ret = ky_vec_add(&s->all, dir);
	if (!ret && (is_session || live_is_trace(dir)))
		ret = live_add(&s->live, name ? name : strrchr(whole, '/') + 1, dir);
	else if (!ret)
		ret = ky_vec_add(&s->dirs, dir);
	return ret < 0 ? cli_fail(s->cli, "failed", "no memory") : CLI_OK;
}

/* Adds the trace that a session writes. */
static int add_session(struct served *s, struct kymo_ctl *ctl, const char *name, bool only)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(s->cli), *reply = NULL;
	const struct kymo_value *session;
	const char *output;
	int code;

	if (!params)
		return CLI_FAILED;
	kymo_value_set_string(params, "session", name);
	code = cli_call(s->cli, ctl, "status", params, &reply);
	if (code)
		return code;
	session = kymo_value_get(reply, "session");
	output = kymo_value_string(kymo_value_get(session, "output"));
	if (*output && !kymo_value_bool(kymo_value_get(session, "snapshot")) &&
		(only || access(output, F_OK) == 0))
		return add_directory(s, name, output, true);
	return only ? cli_fail(s->cli, "not-found",
			      "session '%s' keeps its events in memory: there is nothing to follow",
			      name)
		    : CLI_OK;
}

static int add_all_sessions(struct served *s, struct kymo_ctl *ctl)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(s->cli), *reply = NULL;
	const struct kymo_value *sessions;
	int code = params ? cli_call(s->cli, ctl, "list", params, &reply) : CLI_FAILED;

	sessions = code ? NULL : kymo_value_get(reply, "sessions");
	for (size_t i = 0; !code && i < kymo_value_count(sessions); i++)
		code = add_session(s, ctl,
			kymo_value_string(kymo_value_get(kymo_value_at(sessions, i), "name")),
			false);
	if (!code && !s->live.n_sessions)
		return cli_fail(s->cli, "not-found",
			"no session writes a trace: name a TRACE, or a directory of traces");
	return code;
}

static int add_named(struct served *s, const char *name)
{
	_cleanup_ctl_ struct kymo_ctl *ctl = NULL;
	int code;

	if (!cli_may_be_session(name))
		return add_directory(s, NULL, name, false);
	code = cli_connect_if_running(s->cli, &ctl);
	if (!code && !ctl)
		return cli_no_trace_or_session(s->cli, name);
	return code ? code : add_session(s, ctl, name, true);
}

static int find_served(struct served *s)
{
	_cleanup_ctl_ struct kymo_ctl *ctl = NULL;
	int code = CLI_OK;

	for (size_t i = 0; !code && cli_arg(s->cli, i); i++)
		code = add_named(s, cli_arg(s->cli, i));
	if (code || cli_arg(s->cli, 0))
		return code;
	code = cli_connect(s->cli, &ctl);
	return code ? code : add_all_sessions(s, ctl);
}

static void print_link(
	const struct served *s, struct kymo_value *all, const char *link, const char *note)
{
	if (s->cli->json)
		kymo_value_add_string(all, "links", link);
	else
		printf("babeltrace2 --input-format=lttng-live %s%s\n", cli_safe_word(s->cli, link),
			note);
}

static void print_links(struct served *s, const struct sockaddr_storage *address)
{
	_cleanup_value_ struct kymo_value *all = kymo_value_new();
	struct ky_buf link = {0};
	char host[INET6_ADDRSTRLEN] = "localhost", port[16] = "";
	unsigned number;

	if (address->ss_family == AF_INET6) {
		const struct sockaddr_in6 *a = (const struct sockaddr_in6 *)address;

		number = ntohs(a->sin6_port);
		snprintf(host, sizeof(host), "ip6-localhost");
	} else {
		const struct sockaddr_in *a = (const struct sockaddr_in *)address;

		number = ntohs(a->sin_port);
		if (a->sin_addr.s_addr != htonl(INADDR_LOOPBACK))
			inet_ntop(AF_INET, &a->sin_addr, host, sizeof(host));
	}
	if (number != DEFAULT_PORT)
		snprintf(port, sizeof(port), ":%u", number);
	refresh_traces(&s->live);
	kymo_value_set_list(all, "links");
	for (size_t i = 0; i < s->live.n_sessions; i++) {
		link.len = 0;
		ky_buf_printf(&link, "net://%s%s/host/%s/%s", host, port, s->live.host,
			s->live.sessions[i].name);
		print_link(s, all, link.data ? link.data : "", "");
	}
	if (s->dirs.n) {
		link.len = 0;
		ky_buf_printf(&link, "net://%s%s", host, port);
		print_link(s, all, link.data ? link.data : "", " lists all");
	}
	ky_buf_deinit(&link);
	if (s->cli->json)
		cli_result(s->cli, all);
	else
		printf("^C ends\n");
	fflush(stdout);
}

static void warn_of_server(struct live_server *server, const char *text)
{
	const struct served *s = server->context;

	cli_warn(s->cli, "%s", text);
}

/* Each stream that a viewer reads is an open file. */
static void allow_files(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

static void confine_server(const struct served *s)
{
	const struct ky_confinement c = {.dirs = s->all.v, .n_dirs = s->all.n, .accepts = true};

	ky_confine_files(&c);
	ky_confine_calls(&c);
}

static int serve_traces(struct served *s)
{
	const char *where = cli_has(s->cli, "listen") ? cli_get(s->cli, "listen") : DEFAULT_LISTEN;
	struct live_server server = {.live = &s->live, .report = warn_of_server, .context = s};
	struct sockaddr_storage address;
	sigset_t blocked, before;
	_cleanup_close_ int fd = ky_listen(where, &address);
	int ret;

	if (fd == -EINVAL)
		return cli_usage(s->cli,
			"bad address '%s': write a number and a port, as 127.0.0.1:5344", where);
	if (fd < 0)
		return cli_fail(s->cli, "failed", "cannot listen on %s: %s", where, strerror(-fd));
	server.listener = fd;
	sigemptyset(&blocked);
	for (size_t i = 0; i < 3; i++) {
		static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

		sigaddset(&blocked, signals[i]);
		sigaction(signals[i], &(struct sigaction){.sa_handler = on_signal}, NULL);
	}
	sigprocmask(SIG_BLOCK, &blocked, &before);
	allow_files();
	print_links(s, &address);
	if (ferror(stdout))
		return CLI_FAILED;
	confine_server(s);
	ret = live_serve(&server, &stopped, &before);
	return ret < 0 ? cli_fail(s->cli, "failed", "%s", strerror(-ret)) : CLI_OK;
}

static int run_live(struct cli *cli)
{
	struct served s = {.cli = cli};
	int code;

	s.live.from_start = cli_has(cli, "from-start");
	s.live.refresh = refresh_traces;
	s.live.context = &s;
	gethostname(s.live.host, sizeof(s.live.host) - 1);
	code = find_served(&s);
	if (!code)
		code = serve_traces(&s);
	live_deinit(&s.live);
	for (size_t i = 0; i < s.dirs.n; i++)
		close(s.dirs.v[i]);
	ky_vec_deinit(&s.dirs);
	ky_vec_deinit(&s.all);
	return code;
}

const struct cli_command cmd_live = {
	.name = "live",
	.synopsis = "[TRACE|SESSION]... [--listen=ADDRESS:PORT] [--from-start]",
	.help = "let babeltrace2 and other viewers read sessions while they record",
	.details =
		"Serves traces over LTTng's live protocol while they are recorded, and prints how to read them. TRACE\n"
		"may also be a trace of another host that 'kymo receive' receives, or a directory of traces. Without\n"
		"arguments, it serves all sessions that run now. Everyone who can connect to the port can read the\n"
		"traces. From another machine, use ssh -L 5344:localhost:5344.\n",
	.options = options,
	.max_args = CLI_ANY_ARGS,
	.run = run_live,
};
