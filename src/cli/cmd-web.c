/* SPDX-License-Identifier: MIT */
/*
 * web: serves the page of a trace to a browser on this machine. It reads parts of the trace when
 * the browser asks for them, and follows a running session. It reads files only, so it never delays
 * the recording.
 */
#include "cli/cli.h"

static const struct cli_option options[] = {
	{"listen", 0, "ADDRESS:PORT",
		"listen at this address (default: 127.0.0.1 and any free port)"},
	{"detail", 0, "N",
		"send at most N events for the part that is shown, a tenth of them with their fields (default 3000000)"},
	{0},
};

#ifdef KY_HAVE_WEB

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>

#include "cli/daemon.h"
#include "cli/locate.h"
#include "cli/params.h"
#include "cli/trace.h"
#include "report/page.h"
#include "report/report.h"
#include "web/server.h"

#define DEFAULT_DETAIL 3000000

struct site {
	struct cli *cli;
	char path[PATH_MAX];
	uint64_t detail;   /* events of one reply */
	char session[256]; /* "" if it is a trace that nobody records */
	bool ends;	   /* set atomically: replies that are being made are given up */
	pthread_mutex_t lock;
	struct ky_trace_reader *reader; /* owned; NULL: the session has recorded nothing yet */
	struct kymo_ctl *ctl;		/* owned, or NULL */
};

/* --- what the browser asks for --- */

static int append_page(void *arg, struct ky_buf *to)
{
	static const char policy[] = "connect-src data:", own_policy[] = "connect-src 'self' data:";
	const char *at = strstr(ky_report_page_begin, policy);

	if (!at)
		return -EINVAL;
	ky_buf_append(to, ky_report_page_begin, (size_t)(at - ky_report_page_begin));
	ky_buf_puts(to, own_policy);
	ky_buf_puts(to, at + strlen(policy));
	ky_buf_puts(to, "<script type=\"kymo\" id=\"web\"></script>\n");
	ky_buf_puts(to, ky_report_page_end);
	return 0;
}

static const struct ky_trace_reader_options reader_options = {0};

/* Opens the trace, which a session makes when it records its first event: -ENOENT until then. */
static int open_trace(struct site *s, char *why, size_t why_size)
{
	const char *path = s->path;

	return ky_trace_reader_open(&s->reader, &path, 1, &reader_options, why, why_size);
}

/* Gets the times of the trace as it is now. -ENODATA: there are none yet. */
static int sum_up(struct site *s, struct ky_reader_sums *ret)
{
	char why[PATH_MAX + 256];
	int e = s->reader ? ky_trace_reader_refresh(s->reader) : open_trace(s, why, sizeof(why));

	/* The metadata may be half written. */
	if (!s->reader && e != -ENOMEM && e != -EACCES)
		return -ENODATA;
	if (e >= 0)
		e = ky_trace_reader_sums(s->reader, ret);
	return e < 0 ? e : ret->has_times ? 0 : -ENODATA;
}

static int write_range(struct site *s, FILE *to, int64_t begin_ns, int64_t end_ns)
{
	struct ky_report_options o = {.title = s->path,
		.command = "kymo report",
		.reader = &reader_options,
		.max_events = s->detail / 10,
		.max_read = s->detail,
		.stop = &s->ends,
		.has_origin = true};
	struct ky_report_summary summary;
	struct ky_reader_sums sums;
	struct ky_buf command = {0};
	struct ky_query query;
	int e = sum_up(s, &sums);

	if (e)
		return e;
	ky_buf_puts(&command, "kymo report ");
	ky_buf_put_word(&command, s->path);
	o.command = command.error ? o.command : command.data;
	o.origin_ns = sums.begin_ns;
	ky_query_init(&query, s->reader);
	query.select.from_ns = begin_ns;
	query.select.to_ns = end_ns;
	o.query = &query;
	e = ky_report_write_data(to, &o, &summary);
	ky_query_deinit(&query);
	ky_buf_deinit(&command);
	return e;
}

static int append_data(void *arg, int64_t begin_ns, int64_t end_ns, struct ky_buf *to)
{
	struct site *s = arg;
	char *data = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&data, &size);
	int e;

	if (!f)
		return -ENOMEM;
	pthread_mutex_lock(&s->lock); /* one at a time: each needs memory and processors */
	e = write_range(s, f, begin_ns, end_ns);
	pthread_mutex_unlock(&s->lock);
	if (fclose(f) && !e)
		e = -ENOMEM;
	if (!e)
		ky_buf_append(to, data, size);
	free(data);
	return e;
}

/* Returns true while the session is started. */
static bool is_recording(struct site *s)
{
	_cleanup_value_ struct kymo_value *params = kymo_value_new(), *reply = NULL;

	if (!*s->session || !s->ctl || !params)
		return false;
	kymo_value_set_string(params, "session", s->session);
	if (kymo_ctl_call(s->ctl, "status", params, &reply) < 0) {
		kymo_ctl_reopen(s->ctl);
		return false;
	}
	return !strcmp(kymo_value_string(kymo_value_get(kymo_value_get(reply, "session"), "state")),
		"started");
}

static int append_state(void *arg, struct ky_buf *to)
{
	struct site *s = arg;
	struct ky_reader_sums sums = {0};
	bool recording;
	int e;

	pthread_mutex_lock(&s->lock);
	recording = is_recording(s);
	e = sum_up(s, &sums);
	pthread_mutex_unlock(&s->lock);
	if (e && e != -ENODATA)
		return e;
	ky_buf_printf(to,
		"{\"begin\":\"%" PRId64 "\",\"end\":\"%" PRId64
		"\",\"recording\":%s,\"discarded\":%" PRIu64 ",\"bytes\":%" PRIu64 "}",
		sums.begin_ns, sums.end_ns, recording ? "true" : "false", sums.n_discarded,
		sums.n_bytes);
	return 0;
}

/* --- the command --- */

/* If the argument is a session's name and no directory, finds the trace that it writes. */
static int find_session(struct site *s)
{
	const char *name = cli_arg(s->cli, 0);
	_cleanup_value_ struct kymo_value *params = kymo_value_new(), *reply = NULL;
	const struct kymo_value *session;
	int code;

	if (!name || !cli_may_be_session(name) || !params)
		return CLI_OK;
	code = cli_connect_if_running(s->cli, &s->ctl);
	if (code || !s->ctl)
		return code;
	kymo_value_set_string(params, "session", name);
	if (kymo_ctl_call(s->ctl, "status", params, &reply) < 0 || !kymo_reply_ok(reply))
		return CLI_OK;
	snprintf(s->session, sizeof(s->session), "%s", name);
	session = kymo_value_get(reply, "session");
	snprintf(s->path, sizeof(s->path), "%s",
		kymo_value_string(kymo_value_get(session, "output")));
	if (!*s->path || kymo_value_bool(kymo_value_get(session, "snapshot")))
		return cli_fail(s->cli, "not-found",
			"session '%s' keeps its events in memory: show a snapshot of it ('kymo snapshot record')",
			name);
	return CLI_OK;
}

static int find_trace(struct site *s)
{
	char why[PATH_MAX + 256];
	int e;

	if (!*s->session)
		return cli_trace_open(s->cli, &reader_options, s->path, &s->reader);
	e = open_trace(s, why, sizeof(why));
	if (e < 0 && e != -ENOENT)
		return cli_fail(s->cli, "failed", "cannot read the trace: %s", why);
	return CLI_OK;
}

/* The server stays loaded until kymo exits. */
static int load_server(struct cli *cli, const struct ky_web_ops **ret)
{
	char path[PATH_MAX];
	int e = cli_locate_web(path, sizeof(path));
	void *module;

	if (e < 0)
		return cli_fail(
			cli, "failed", "cannot find the web server, kymo-web.so: %s", strerror(-e));
	module = dlopen(path, RTLD_NOW);
	*ret = module ? dlsym(module, KY_WEB_OPS) : NULL;
	return *ret ? CLI_OK : cli_fail(cli, "failed", "cannot load the web server: %s", dlerror());
}

static void print_link(const struct site *s, const char *link)
{
	if (s->cli->json) {
		_cleanup_value_ struct kymo_value *result = kymo_value_new();

		kymo_value_set_string(result, "link", link);
		cli_result(s->cli, result);
	} else {
		printf("%s%s\nopen this link in a browser of this machine; ^C ends\n",
			*s->session ? "live: " : "", link);
	}
}

/* Serves until a signal comes. */
static int serve_site(struct site *s, const struct ky_web_ops *ops)
{
	const struct ky_web_content content = {
		.page = append_page, .data = append_data, .state = append_state, .arg = s};
	const char *where = cli_has(s->cli, "listen") ? cli_get(s->cli, "listen") : "127.0.0.1:0";
	struct ky_web *web = NULL;
	sigset_t signals;
	int got, e;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	e = ops->start(&web, where, &content);
	if (e == -EINVAL)
		return cli_usage(s->cli,
			"bad address '%s': write a number and a port, as 127.0.0.1:8080", where);
	if (e < 0)
		return cli_fail(s->cli, "failed", "cannot listen on %s: %s", where, strerror(-e));
	print_link(s, ops->link(web));
	/* Without the link, nobody can use the server; cli_main() reports the error. */
	if (!fflush(stdout))
		sigwait(&signals, &got);
	__atomic_store_n(&s->ends, true, __ATOMIC_RELAXED);
	ops->stop(web);
	return CLI_OK;
}

static int run_web(struct cli *cli)
{
	struct site s = {.cli = cli, .lock = PTHREAD_MUTEX_INITIALIZER, .detail = DEFAULT_DETAIL};
	const struct ky_web_ops *ops;
	int code;

	code = cli_read_amount(cli, "detail", CLI_NUMBER, 10, INT64_MAX, &s.detail);
	if (!code)
		code = load_server(cli, &ops);
	if (!code)
		code = find_session(&s);
	if (!code)
		code = find_trace(&s);
	if (!code)
		code = serve_site(&s, ops);
	ky_trace_reader_close(s.reader);
	kymo_ctl_close(s.ctl);
	return code;
}

#else

static int run_web(struct cli *cli)
{
	return cli_fail(cli, "unsupported",
		"web: this build of kymo has no web server (libmicrohttpd was missing when it was built)");
}

#endif

const struct cli_command cmd_web = {
	.name = "web",
	.synopsis = "[TRACE|SESSION] [--listen=ADDRESS:PORT] [--detail=N]",
	.help = "show a trace or a running session in a browser",
	.details =
		"Serves the page that 'kymo report' writes to browsers, and prints the link to it. It reads parts of the\n"
		"trace when a browser shows them, so the trace may be of any size. The page of a running session grows.\n"
		"Only those who have the link can read it. From another machine: ssh -L 8080:127.0.0.1:8080.\n",
	.options = options,
	.max_args = 1,
	.run = run_web,
};
