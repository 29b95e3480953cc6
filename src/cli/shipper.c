/* SPDX-License-Identifier: MIT */
#include "cli/shipper.h"

#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/child.h"
#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/progress.h"
#include "ship/archives.h"
#include "ship/sender.h"
#include "ship/spool.h"

#define FIRST_PAUSE_MS 200
#define LAST_PAUSE_MS  5000
#define LIMIT_MS       1000 /* between two looks at the limit of a spool */
#define LOOK_MS	       1000 /* a session may end without a file */

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

struct totals {
	uint64_t bytes, files, lost, recordings, expired;
};

/* One recording of a trace. */
struct shipment {
	struct sender sender;
	struct shipper *shipper; /* borrowed */
	struct connection connection;
};

static void on_progress(struct sender *s)
{
	struct shipment *shipment = ky_container_of(s, struct shipment, sender);

	shipping_progress(&shipment->shipper->note, s->acked, s->size);
	connection_trim(&shipment->connection);
}

/* Warns once of each reason. */
static void report_trouble(
	struct cli *cli, const char *url, const char *why, char *last, size_t size)
{
	if (!strncmp(last, why, size - 1))
		return;
	snprintf(last, size, "%s", why);
	cli_warn(cli, "%s: %s; trying again", url, cli_safe(cli, why));
}

/* The longer the other end is away, the later it is tried again: a tenth of that time. */
static unsigned next_pause_ms(uint64_t broken_ns, unsigned most)
{
	const uint64_t tenth = (cli_now_ns() - broken_ns) / 10000000;

	return (unsigned)KY_MIN(KY_MAX(tenth, (uint64_t)FIRST_PAUSE_MS), (uint64_t)most);
}

/* Sends one recording, however often the connection breaks. Returns 0, -ECANCELED or -errno. */
static int ship_recording(struct cli *cli, struct shipment *shipment)
{
	struct shipper *shipper = shipment->shipper;
	const struct route *r = &shipper->route;
	struct sender *s = &shipment->sender;
	struct connection *c = &shipment->connection;
	const unsigned last_pause = s->spool_max ? LIMIT_MS : LAST_PAUSE_MS;
	uint64_t broken_ns = 0; /* since when nothing has arrived */
	char last[512] = "";
	int ret;

	for (;;) {
		struct ky_buf why = {0};
		const uint64_t before = s->acked;

		*c = (struct connection){.fd = -1, .err = -1};
		s->why[0] = '\0'; /* may be about the last connection */
		ret = sender_limit(s);
		if (!ret)
			ret = connection_open(r, c);
		if (ret < 0) {
			if (*s->why)
				ky_buf_puts(&why, s->why);
			else
				ky_buf_printf(&why, "%s: %s", r->argv[0], strerror(-ret));
			ky_close(c->fd);
			ky_close(c->err);
		} else {
			ret = sender_run(s, c->fd, stop);
			ky_buf_puts(&why, s->why);
			connection_end(c, !ret, &why);
		}
		if (!ret || ret == -ECANCELED || s->is_refused) {
			ky_buf_deinit(&why);
			return ret;
		}
		report_trouble(cli, shipper->url, why.data ? why.data : "", last, sizeof(last));
		shipping_trouble(&shipper->note, last, s->acked, s->size);
		ky_buf_deinit(&why);
		if (!broken_ns || s->acked > before)
			broken_ns = cli_now_ns();
		if (pause_ms(next_pause_ms(broken_ns, last_pause), -1))
			return -ECANCELED;
	}
}

/* Parts that were rotated before the first that a sender of this trace has begun with. */
static void warn_of_archives(struct cli *cli, const struct shipper *s)
{
	const unsigned n = archives_count_new(s->trace);

	if (n)
		cli_warn(cli,
			"%u part%s rotated and never shipped: ship each directory in %s/archives by its own name",
			n, n == 1 ? " was" : "s were", cli_safe(cli, s->path));
}

static int report_shipped(struct cli *cli, const struct totals *t, const char *url)
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
		printf("%s in %" PRIu64 " file%s shipped to %s\n",
			cli_format_size(size, sizeof(size), t->bytes), t->files,
			t->files == 1 ? "" : "s", cli_safe(cli, url));
	}
	if (!t->files)
		cli_warn(cli, "no packets were found to ship");
	if (t->expired)
		cli_warn(cli,
			"%" PRIu64
			" event%s removed before they were sent, to keep the spool within its size; the other host counts them as discarded",
			t->expired, t->expired == 1 ? " was" : "s were");
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
		"interrupted: %s of %s have arrived; the same command sends the rest",
		cli_format_size(there, sizeof(there), s->acked),
		cli_format_size(all, sizeof(all), s->size));
}

static int fail_refused(struct cli *cli, const struct shipper *shipper, const struct sender *s)
{
	return cli_fail(
		cli, "failed", "%s: %s", cli_safe(cli, shipper->path), cli_safe(cli, s->why));
}

/*
 * Waits for the first files of a session that records, or of its next part. Returns whether there
 * may be any.
 */
static bool wait_for_files(const struct shipper *s, struct watch *w)
{
	if (!sender_is_recorded(s->trace) || s->once ||
		pause_ms(w->blind ? FIRST_PAUSE_MS : LOOK_MS, w->fd))
		return false;
	watch_take(w);
	return true;
}

/* Sends one recording. Returns a code. *ret_more: the session may go on with another one. */
static int ship_one(struct cli *cli, struct shipment *shipment, struct totals *t, bool *ret_more)
{
	struct sender *s = &shipment->sender;
	int ret;

	s->progress = on_progress;
	s->spool_max = shipment->shipper->spool_max;
	/* A rotated part has waited without a limit: nothing of it expires when its turn comes. */
	if (s->spool_max && s->trace != shipment->shipper->trace)
		s->spool_max = UINT64_MAX;
	s->pace.rate = shipment->shipper->rate;
	ret = ship_recording(cli, shipment);
	t->bytes += s->acked;
	t->files += s->n_files;
	t->lost += s->n_lost;
	t->expired += s->n_expired;
	t->recordings++;
	*ret_more = s->moved;
	if (!ret && (!s->once || !sender_is_recorded(s->trace)))
		sender_mark_shipped(s);
	if (ret < 0 && s->is_refused)
		return fail_refused(cli, shipment->shipper, s);
	return ret < 0 ? fail_stopped(cli, s) : CLI_OK;
}

/* Sends a part that was rotated, if some of it has not arrived yet. Returns a code. */
static int ship_archive(
	struct cli *cli, struct shipper *s, const struct archive *a, struct totals *t)
{
	const enum archive_state state = archives_state(s->trace, a->name);
	struct shipment shipment = {.shipper = s};
	char path[sizeof(ARCHIVES_NAME) + NAME_MAX + 1];
	_cleanup_close_ int dir = -1;
	int code = CLI_OK, ret;
	bool more;

	if (state != ARCHIVE_NEW && state != ARCHIVE_BEGUN)
		return CLI_OK;
	snprintf(path, sizeof(path), ARCHIVES_NAME "/%s", a->name);
	dir = openat(s->trace, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	ret = dir < 0 ? -errno : sender_init(&shipment.sender, dir, s->name, false);
	shipment.sender.chunk = a->number;
	if (!ret)
		code = ship_one(cli, &shipment, t, &more);
	else if (ret != -ENOENT) /* else the session has removed it */
		code = shipment.sender.is_refused
			       ? fail_refused(cli, s, &shipment.sender)
			       : cli_fail(cli, "failed", "%s/%s: %s", cli_safe(cli, s->path),
					 cli_safe(cli, path), strerror(-ret));
	if (dir >= 0)
		sender_deinit(&shipment.sender);
	return code;
}

/* Sends the parts that were rotated since the last one that was sent. Returns a code. */
static int ship_archives(struct cli *cli, struct shipper *s, struct archive *last, struct totals *t)
{
	int code = CLI_OK;

	while (!s->once && !code && archives_next(s->trace, last))
		code = ship_archive(cli, s, last, t);
	return code;
}

/* Sends the trace, and what follows after each rotation. */
static int ship_all(struct cli *cli, struct shipper *s)
{
	struct totals t = {0};
	struct archive last;
	struct watch watch;
	bool more = true;
	int code;

	watch_init(&watch);
	watch_add(&watch, s->trace, ".");
	archives_begin(s->trace, &last);
	code = ship_archives(cli, s, &last, &t);
	while (more && !code) {
		struct shipment shipment = {.shipper = s};
		const int ret = sender_init(&shipment.sender, s->trace, s->name, s->once);

		if (!ret)
			code = ship_one(cli, &shipment, &t, &more);
		else if (ret == -ENOENT && (t.recordings || sender_is_recorded(s->trace)))
			more = wait_for_files(s, &watch);
		else if (shipment.sender.is_refused)
			code = fail_refused(cli, s, &shipment.sender);
		else
			code = cli_fail(cli, "failed", "%s: %s", cli_safe(cli, s->path),
				ret == -ENOENT ? "there is no trace" : strerror(-ret));
		sender_deinit(&shipment.sender);
		if (!code)
			code = ship_archives(cli, s, &last, &t);
	}
	watch_deinit(&watch);
	if (!code)
		warn_of_archives(cli, s);
	return code ? code : report_shipped(cli, &t, s->url);
}

int shipper_init(struct cli *cli, struct shipper *s, const char *url)
{
	int code;

	*s = (struct shipper){.url = url, .trace = -1, .note.fd = -1};
	code = cli_read_amount(cli, "spool", CLI_SIZE, 1, UINT64_MAX, &s->spool_max);
	if (!code)
		code = cli_read_amount(cli, "ship-rate", CLI_SIZE, PACE_MIN, UINT64_MAX, &s->rate);
	return code ? code : route_parse(cli, url, &s->route);
}

void shipper_deinit(struct shipper *s)
{
	route_deinit(&s->route);
	s->trace = ky_close(s->trace);
}

static int mark_spool(struct cli *cli, const struct shipper *s)
{
	const int ret = spool_mark(s->trace, s->url);

	if (ret == -EEXIST)
		return cli_fail(cli, "failed",
			"%s is a spool for another address: what has arrived there is no longer here",
			cli_safe(cli, s->path));
	if (ret == -EOPNOTSUPP)
		return cli_fail(cli, "failed",
			"%s: its file system cannot give back parts of files: use no --spool",
			cli_safe(cli, s->path));
	return ret < 0 ? cli_fail(cli, "failed", "%s: %s", cli_safe(cli, s->path), strerror(-ret))
		       : CLI_OK;
}

int shipper_open(struct cli *cli, struct shipper *s, const char *trace, const char *name)
{
	char copy[PATH_MAX];

	if (realpath(trace, s->path))
		s->trace = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->trace < 0)
		return cli_fail(cli, "failed", "%s: %s%s", cli_safe(cli, trace), strerror(errno),
			errno == ENOENT
				? ": a trace is named by its directory ('kymo list' shows those of sessions)"
				: "");
	snprintf(copy, sizeof(copy), "%s", s->path);
	snprintf(s->name, sizeof(s->name), "%s", name ? name : basename(copy));
	if (strlen(s->name) > SEGMENT_NAME_MAX || !segment_name_valid(s->name, strlen(s->name)))
		return cli_usage(cli, "'%s' cannot name the directory at the other end: use --name",
			s->name);
	return s->spool_max ? mark_spool(cli, s) : CLI_OK;
}

/* The rest of shipper_run(), after shipping_begin(). */
static int run_begun(struct cli *cli, struct shipper *s)
{
	int code = take_signals() < 0
			   ? cli_fail(cli, "failed", "cannot wait for signals: %s", strerror(errno))
			   : ship_all(cli, s);

	shipping_end(&s->note, s->trace, !code);
	return code;
}

int shipper_run(struct cli *cli, struct shipper *s)
{
	shipping_begin(&s->note, s->trace, s->url);
	return run_begun(cli, s);
}

/* Leaves the terminal and all descriptors but those of the trace. Returns 0 or -errno. */
static int leave_terminal(struct shipper *s)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || setsid() < 0)
		return -errno;
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	child_close_others(3, s->trace, s->note.fd < 0 ? s->trace : s->note.fd);
	return 0;
}

int shipper_detach(struct cli *cli, struct shipper *s)
{
	pid_t pid;

	/* The lock on the note goes with its descriptor to the other process. */
	shipping_begin(&s->note, s->trace, s->url);
	pid = fork();
	if (pid < 0)
		return cli_fail(cli, "failed", "cannot start a process that sends the trace: %s",
			strerror(errno));
	if (!pid)
		_exit(leave_terminal(s) < 0 ? CLI_FAILED : run_begun(cli, s));
	s->note.fd = ky_close(s->note.fd);
	if (!cli->json)
		printf("shipping to %s goes on in the background: 'kymo status' says how far it is\n",
			cli_safe(cli, s->url));
	return CLI_OK;
}
