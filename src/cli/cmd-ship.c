/* SPDX-License-Identifier: MIT */
/* ship: sends a trace to another host, also while it is recorded. */
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/shipping.h"
#include "ship/sender.h"

#define FIRST_PAUSE_MS 200
#define LAST_PAUSE_MS  5000
#define LIMIT_MS       1000 /* between two looks at the limit of a spool */
#define LOOK_MS	       1000 /* a session may end without a file */
#define ARGS_MAX       20

static const struct cli_option options[] = {
	{"once", 0, NULL, "send what is there, and do not wait for the end of the recording"},
	{"spool", 0, "SIZE",
		"give back the space of what has arrived; keep at most SIZE that has not"},
	{"name", 0, "NAME", "name of the directory at the other end (default: that of TRACE)"},
	{0},
};

/* Readable when a signal has come that ends the command: such are blocked. */
static int stop = -1;

static int take_signals(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	stop = signalfd(-1, &set, SFD_CLOEXEC);
	return stop < 0 ? -errno : 0;
}

/* Waits, or until `other` (-1: none) is readable. Returns whether the command is to end. */
static bool pause_ms(unsigned ms, int other)
{
	struct pollfd fds[] = {{.fd = stop, .events = POLLIN}, {.fd = other, .events = POLLIN}};

	return poll(fds, 2, (int)ms) > 0 && fds[0].revents;
}

/* The command that leads to the receiver. */
struct route {
	char *argv[ARGS_MAX];		   /* the last ones point into the texts; ends with NULL */
	char host[256], port[8], *command; /* owned */
};

static void route_deinit(struct route *r)
{
	free(r->command);
}

/* ssh://[USER@]HOST[:PORT]/DIR: DIR is below the user's home, or absolute behind "//". */
static int parse_ssh(struct cli *cli, const char *url, struct route *r)
{
	static const char *const ssh[] = {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5",
		"-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"};
	const char *rest = url + strlen("ssh://"), *slash = strchr(rest, '/');
	struct ky_buf command = {0};
	size_t n = KY_ARRAY_SIZE(ssh);
	char *colon;

	if (!slash || slash == rest || !slash[1] || *rest == '-' ||
		(size_t)(slash - rest) >= sizeof(r->host))
		return cli_usage(cli, "'%s' is not ssh://[USER@]HOST[:PORT]/DIR", url);
	memcpy(r->host, rest, (size_t)(slash - rest));
	ky_buf_puts(&command, "kymo receive ");
	ky_buf_put_word(&command, slash + 1);
	if (command.error)
		return cli_fail(cli, "failed", "no memory");
	r->command = command.data;
	memcpy(r->argv, ssh, sizeof(ssh));
	colon = strrchr(r->host, ':');
	if (colon) {
		*colon = '\0';
		snprintf(r->port, sizeof(r->port), "%s", colon + 1);
		r->argv[n++] = (char *)"-p";
		r->argv[n++] = r->port;
	}
	r->argv[n++] = (char *)"--";
	r->argv[n++] = r->host;
	r->argv[n] = r->command;
	return CLI_OK;
}

static int parse_url(struct cli *cli, const char *url, struct route *r)
{
	if (!strncmp(url, "ssh://", 6))
		return parse_ssh(cli, url, r);
	if (strncmp(url, "exec:", 5) != 0 || !url[5])
		return cli_usage(cli,
			"'%s' is no address: use ssh://[USER@]HOST[:PORT]/DIR or exec:COMMAND",
			url);
	r->argv[0] = (char *)"/bin/sh";
	r->argv[1] = (char *)"-c";
	r->argv[2] = (char *)url + 5;
	return CLI_OK;
}

struct connection {
	pid_t pid;
	int fd;	 /* its standard input and output */
	int err; /* what it says on its standard error */
};

static int connect_to(const struct route *r, struct connection *c)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none;
	int pair[2], ret;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	c->fd = pair[0];
	c->err = memfd_create("kymo-ship", MFD_CLOEXEC);
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	/* A group of its own, so that all of it can be ended. */
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, pair[1], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, pair[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, c->err, STDERR_FILENO);
	ret = posix_spawnp(&c->pid, r->argv[0], &files, &attr, r->argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	close(pair[1]);
	return -ret;
}

/* Ends the connection. Appends the last line that its command printed to `why`. */
static void disconnect(struct connection *c, bool done, struct ky_buf *why)
{
	char said[1024];
	ssize_t n;
	int status;

	close(c->fd);
	if (!done)
		kill(-c->pid, SIGTERM);
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	n = lseek(c->err, 0, SEEK_END);
	n = pread(
		c->err, said, sizeof(said) - 1, KY_MAX(n - (ssize_t)sizeof(said) + 1, (ssize_t)0));
	said[n > 0 ? n : 0] = '\0';
	said[strcspn(said, "\r")] = '\0'; /* ssh ends its lines with both */
	if (*cli_last_line(said))
		ky_buf_printf(why, ": %s", cli_last_line(said));
	close(c->err);
}

struct totals {
	uint64_t spool_max; /* 0: the trace is no spool */
	uint64_t bytes, files, lost, recordings, expired;
};

/* A recording, and what kymo status says of it. */
struct shipment {
	struct sender sender;
	struct shipping_note *note; /* borrowed */
};

static void on_progress(struct sender *s)
{
	shipping_progress(ky_container_of(s, struct shipment, sender)->note, s->acked, s->size);
}

/* Warns once of each reason. */
static void report_trouble(
	struct cli *cli, const char *url, const char *why, char *last, size_t size)
{
	if (!strcmp(last, why))
		return;
	snprintf(last, size, "%s", why);
	cli_warn(cli, "%s: %s; trying again", url, cli_safe(cli, why));
}

/* Sends one recording, however often the connection breaks. Returns 0, -ECANCELED or -errno. */
static int ship(struct cli *cli, struct shipment *shipment, const struct route *r, const char *url)
{
	struct sender *s = &shipment->sender;
	const unsigned last_pause = s->spool_max ? LIMIT_MS : LAST_PAUSE_MS;
	unsigned pause = FIRST_PAUSE_MS;
	char last[512] = "";
	int ret;

	for (;;) {
		struct connection c = {.fd = -1, .err = -1};
		struct ky_buf why = {0};
		const uint64_t before = s->acked;

		ret = sender_limit(s);
		if (!ret)
			ret = connect_to(r, &c);
		if (ret < 0) {
			if (*s->why)
				ky_buf_puts(&why, s->why);
			else
				ky_buf_printf(&why, "%s: %s", r->argv[0], strerror(-ret));
			ky_close(c.fd);
			ky_close(c.err);
		} else {
			ret = sender_run(s, c.fd, stop);
			ky_buf_puts(&why, s->why);
			disconnect(&c, !ret, &why);
		}
		if (!ret || ret == -ECANCELED) {
			ky_buf_deinit(&why);
			return ret;
		}
		report_trouble(cli, url, why.data ? why.data : "", last, sizeof(last));
		shipping_trouble(shipment->note, last);
		ky_buf_deinit(&why);
		pause = s->acked > before ? FIRST_PAUSE_MS : KY_MIN(pause * 2, last_pause);
		if (pause_ms(pause, -1))
			return -ECANCELED;
	}
}

static int report(struct cli *cli, const struct totals *t, const char *url)
{
	_cleanup_value_ struct kymo_value *o = NULL;
	char size[32];

	if (cli->json) {
		o = cli_params_new(cli);
		if (!o)
			return CLI_FAILED;
		kymo_value_set_u64(o, "bytes", t->bytes);
		kymo_value_set_u64(o, "files", t->files);
		kymo_value_set_u64(o, "recordings", t->recordings);
		kymo_value_set_u64(o, "files_removed_before", t->lost);
		kymo_value_set_u64(o, "events_expired", t->expired);
		cli_result(cli, o);
	} else {
		printf("%s in %" PRIu64 " files shipped to %s\n",
			cli_format_size(size, sizeof(size), t->bytes), t->files,
			cli_safe(cli, url));
	}
	if (t->expired)
		cli_warn(cli,
			"%" PRIu64
			" events expired before they were sent, by the limit of the spool; they are discarded events there",
			t->expired);
	if (t->lost)
		cli_warn(cli,
			"%" PRIu64 " file%s removed from the trace before all of them was sent",
			t->lost, t->lost == 1 ? " was" : "s were");
	return CLI_OK;
}

static int fail_stopped(struct cli *cli, const struct sender *s)
{
	char there[32], all[32];

	return cli_fail(cli, "failed",
		"interrupted: %s of %s are there, and the same command goes on behind them",
		cli_format_size(there, sizeof(there), s->acked),
		cli_format_size(all, sizeof(all), s->size));
}

/*
 * Waits for the first files of a session that records, or of its next part. Returns whether there
 * may be any.
 */
static bool wait_for_files(struct cli *cli, int trace, struct watch *w)
{
	if (!sender_is_recorded(trace) || cli_has(cli, "once") ||
		pause_ms(w->blind ? FIRST_PAUSE_MS : LOOK_MS, w->fd))
		return false;
	watch_take(w);
	return true;
}

/* Sends one recording. Returns a code. *ret_more: the session may go on with another one. */
static int ship_one(struct cli *cli, struct shipment *shipment, const struct route *r,
	const char *url, struct totals *t, bool *ret_more)
{
	struct sender *s = &shipment->sender;
	int ret;

	s->progress = on_progress;
	s->spool_max = t->spool_max;
	ret = ship(cli, shipment, r, url);
	t->bytes += s->acked;
	t->files += s->n_files;
	t->lost += s->n_lost;
	t->expired += s->n_expired;
	t->recordings++;
	*ret_more = s->moved;
	return ret < 0 ? fail_stopped(cli, s) : CLI_OK;
}

/* Sends the trace, and what follows after each rotation. */
static int ship_all(struct cli *cli, int trace, const char *name, const struct route *r,
	const char *url, uint64_t spool_max, struct shipping_note *note)
{
	struct totals t = {.spool_max = spool_max};
	struct watch watch;
	bool more = true;
	int code = CLI_OK;

	watch_init(&watch);
	watch_add(&watch, trace, ".");
	while (more && !code) {
		struct shipment shipment = {.note = note};
		const int ret = sender_init(&shipment.sender, trace, name, cli_has(cli, "once"));

		if (!ret)
			code = ship_one(cli, &shipment, r, url, &t, &more);
		else if (ret == -ENOENT && (t.recordings || sender_is_recorded(trace)))
			more = wait_for_files(cli, trace, &watch);
		else
			code = cli_fail(cli, "failed", "%s: %s", cli_arg(cli, 0),
				ret == -ENOENT ? "there is no trace" : strerror(-ret));
		sender_deinit(&shipment.sender);
	}
	watch_deinit(&watch);
	return code ? code : report(cli, &t, url);
}

/* Stores the limit of the spool, 0 if the trace is none. */
static int get_spool(struct cli *cli, int trace, const char *url, uint64_t *ret_max)
{
	const char *text = cli_get(cli, "spool");
	int ret;

	*ret_max = 0;
	if (!text)
		return CLI_OK;
	if (cli_has(cli, "once"))
		return cli_usage(cli, "--once sends a copy: there is no --spool");
	if (ky_parse_size(text, ret_max) < 0 || !*ret_max)
		return cli_usage(cli, "--spool: '%s' is no size", text);
	ret = spool_mark(trace, url);
	if (ret == -EEXIST)
		return cli_fail(cli, "failed",
			"%s is a spool for another address: what has arrived there is no longer here",
			cli_arg(cli, 0));
	if (ret == -EOPNOTSUPP)
		return cli_fail(cli, "failed",
			"%s: its file system cannot give back parts of files: use no --spool",
			cli_arg(cli, 0));
	return ret < 0 ? cli_fail(cli, "failed", "%s: %s", cli_arg(cli, 0), strerror(-ret))
		       : CLI_OK;
}

static int run(struct cli *cli)
{
	const char *given = cli_get(cli, "name"), *url = cli_arg(cli, 1);
	char path[PATH_MAX], *name;
	_cleanup_close_ int trace = -1;
	struct route r = {0};
	struct shipping_note note;
	uint64_t spool_max;
	int code;

	if (!realpath(cli_arg(cli, 0), path))
		return cli_fail(cli, "failed", "%s: %s", cli_arg(cli, 0), strerror(errno));
	trace = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (trace < 0)
		return cli_fail(cli, "failed", "%s: %s", cli_arg(cli, 0), strerror(errno));
	name = given ? (char *)given : basename(path);
	if (strlen(name) > SEGMENT_NAME_MAX || !segment_name_valid(name, strlen(name)))
		return cli_usage(
			cli, "'%s' cannot name the directory at the other end: use --name", name);
	code = parse_url(cli, url, &r);
	if (!code)
		code = get_spool(cli, trace, url, &spool_max);
	if (!code && take_signals() < 0)
		code = cli_fail(cli, "failed", "no descriptor for signals");
	if (!code) {
		shipping_begin(&note, trace, url);
		code = ship_all(cli, trace, name, &r, url, spool_max, &note);
		shipping_end(&note, trace, !code);
	}
	route_deinit(&r);
	return code;
}

const struct cli_command cmd_ship = {
	.name = "ship",
	.synopsis = "TRACE URL [--spool=SIZE] [--name=NAME] [--once]",
	.help = "send a trace to another host, also while it is recorded",
	.details =
		"URL is ssh://[USER@]HOST[:PORT]/DIR, or exec:COMMAND that leads to 'kymo receive\n"
		"DIR' by its standard input and output. The trace can be read there at any time.\n"
		"If the connection breaks, it is made again, and goes on where the other end is;\n"
		"so does the command when it is run again. It ends when the recording has ended\n"
		"and all has arrived. After a rotation the next part goes to a directory of its own.\n"
		"With --spool the trace here is but a spool: it cannot be read.\n",
	.options = options,
	.min_args = 2,
	.max_args = 2,
	.run = run,
};
