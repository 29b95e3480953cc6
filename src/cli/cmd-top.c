/* SPDX-License-Identifier: MIT */
/*
 * top: what a session records now. The session daemon reports totals and losses. The names come
 * from the ends of the trace's streams, which the consumer writes every second. A round reads what
 * came since the round before, and forgets it when it was shown. If that is much, the round reads a
 * sample, so that it does not fall behind.
 */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include <kymo/reader.h>

#include "base/clock.h"
#include "base/htab.h"
#include "base/small-file.h"
#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/progress.h"
#include "cli/report.h"

#define NS_PER_S     UINT64_C(1000000000)
#define ROWS_DEFAULT 20
#define MAX_FLUSH_NS                                                                               \
	(10 * NS_PER_S)	 /* the longest time that a stopped session may take to write its buffers */
#define ROWS_OTHER 6	 /* of the screen: heads, problem, keys, number of others, cursor */
#define FILL_WIDTH 8	 /* characters of the bar */
#define MAX_KEYS   10000 /* keys that are shown together; further ones are counted as others */
#define NAMES_MAX  100	 /* counts in JSON that have the name of their process or thread */
#define SAMPLE_MAX 2000000 /* events that a round reads */

enum by { BY_EVENT, BY_PROCESS, BY_THREAD };

static const char *const by_names[] = {"event", "process", "thread"};

/* Events of one name, process and thread in this round; what `by` does not ask for is 0. */
struct count {
	struct ky_hnode node;
	uint32_t class_index;
	int64_t pid, tid;
	bool is_kernel; /* some are the kernel's: the numbers are those of the host */
	uint64_t n;
};

struct top {
	struct cli *cli;
	struct kymo_ctl *ctl;	    /* owned */
	struct kymo_value *params;  /* owned: of status */
	char *output;		    /* owned: the trace */
	struct kymo_reader *reader; /* owned; NULL: nothing is written yet */
	struct kymo_query *query;   /* owned */
	struct kymo_cursor *cursor; /* owned */
	struct ky_htab counts;
	uint64_t n_events, n_others; /* in this round */
	bool is_sample;		     /* there are more */
	uint64_t n_recorded,
		recorded_ns; /* events of the session, as the daemon knew at that time */
	double scale;	     /* what an event of this round stands for */
	enum by by;
	uint64_t began_ns, round_ns; /* of the machine: the command, and this round */
	uint64_t interval_ns, n_rounds;
	int64_t from_ns;     /* since 1970: earlier events are not counted */
	uint64_t stopped_ns; /* when the session was first seen to be stopped; 0: it is not */
	bool is_screen, is_ended;
	struct termios saved;
};

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal)
{
	is_interrupted = 1;
}

/* --- counts --- */

static void forget_counts(struct top *t)
{
	ky_htab_free_all(&t->counts, struct count, node);
	t->n_events = t->n_others = 0;
	t->is_sample = false;
}

/* Stores the count of such events; NULL if there are too many. Returns 0 or -ENOMEM. */
static int get_count(
	struct top *t, uint32_t class_index, int64_t pid, int64_t tid, struct count **ret_count)
{
	const struct count key = {.class_index = t->by == BY_EVENT ? class_index : 0,
		.pid = pid,
		.tid = t->by == BY_THREAD ? tid : 0};
	const int64_t words[] = {key.class_index, key.pid, key.tid};
	uint32_t hash = ky_hash(words, sizeof(words));
	struct count *c;

	*ret_count = NULL;
	for (struct ky_hnode *n = ky_htab_first(&t->counts, hash); n; n = ky_htab_next(n)) {
		c = ky_container_of(n, struct count, node);
		if (c->class_index == key.class_index && c->pid == key.pid && c->tid == key.tid) {
			*ret_count = c;
			return 0;
		}
	}
	if (t->counts.n >= MAX_KEYS)
		return 0;
	c = malloc(sizeof(*c));
	if (!c)
		return -ENOMEM;
	*c = key;
	if (ky_htab_add(&t->counts, &c->node, hash) < 0) {
		free(c);
		return -ENOMEM;
	}
	*ret_count = c;
	return 0;
}

/* --- the trace --- */

enum owner_column { VPID, PID, VTID, TID, SPAN_TID, N_OWNER_COLUMNS };

static const char *const owner_columns[N_OWNER_COLUMNS] = {
	[VPID] = "$ctx.vpid",
	[PID] = "$ctx.pid",
	[VTID] = "$ctx.vtid",
	[TID] = "$ctx.tid",
	[SPAN_TID] = "span_tid",
};

static void close_cursor(struct top *t)
{
	kymo_cursor_close(t->cursor);
	kymo_query_free(t->query);
	t->cursor = NULL;
	t->query = NULL;
}

static int open_cursor(struct top *t, int64_t from_ns)
{
	int r = kymo_query_new(&t->query, t->reader);

	for (size_t i = 0; i < KY_ARRAY_SIZE(owner_columns) && !r; i++)
		r = kymo_query_column(t->query, owner_columns[i], KYMO_INT64, NULL);
	if (!r)
		r = kymo_query_time(t->query, from_ns, INT64_MAX);
	return r ? r : kymo_cursor_open(&t->cursor, t->query);
}

/* Opens the trace once there is one, at the time at which the command began. */
static int open_trace(struct top *t)
{
	const struct kymo_reader_options options = {.size = sizeof(options), .is_growing = 1};
	const char *path = t->output;
	int r = kymo_reader_open(&t->reader, &path, 1, &options, NULL);

	if (r)
		return r == -ENOMEM ? r : 0;
	return open_cursor(t, t->from_ns);
}

/* Leaves out what is there: the next round reads what comes from now on. */
static int skip_events(struct top *t)
{
	struct kymo_reader_totals totals = {.size = sizeof(totals)};
	int r = kymo_reader_refresh(t->reader);

	if (r >= 0)
		r = kymo_reader_get_totals(t->reader, &totals);
	if (r < 0 || !totals.has_times)
		return r < 0 ? r : 0;
	t->is_sample = true;
	close_cursor(t);
	return open_cursor(t, totals.end_ns);
}

static int64_t first_number(const struct kymo_batch *b, size_t row, size_t column, size_t end)
{
	for (; column < end; column++)
		if (kymo_batch_has(b, column, row))
			return ((const int64_t *)b->columns[column].values)[row];
	return -1;
}

static int add_event(struct top *t, const struct kymo_batch *b, size_t row)
{
	struct count *c;
	int r = get_count(t, b->class_index[row], first_number(b, row, VPID, VTID),
		first_number(b, row, VTID, N_OWNER_COLUMNS), &c);

	if (r < 0)
		return r;
	t->n_events++;
	if (!c) {
		t->n_others++;
		return 0;
	}
	c->n++;
	c->is_kernel |= kymo_batch_has(b, PID, row) || kymo_batch_has(b, TID, row);
	return 0;
}

/* Counts what came since the last round. */
static int read_events(struct top *t)
{
	const struct kymo_batch *b;
	int r = 0;

	if (!t->reader)
		r = open_trace(t);
	else
		r = kymo_reader_refresh(t->reader);
	if (r < 0 || !t->cursor)
		return r < 0 ? r : 0;
	while (r >= 0 && t->n_events < SAMPLE_MAX && (r = kymo_cursor_next(t->cursor, &b)) > 0)
		for (size_t i = 0; i < b->n && r >= 0; i++)
			r = add_event(t, b, i);
	return r < 0 || t->n_events < SAMPLE_MAX ? r : skip_events(t);
}

/* Of a sample, the shares count; the daemon knows how many events they are of. */
static void scale_counts(struct top *t, uint64_t recorded, uint64_t now_ns)
{
	double rate = (double)(recorded - KY_MIN(recorded, t->n_recorded)) /
		      (double)KY_MAX(now_ns - t->recorded_ns, UINT64_C(1));

	t->n_recorded = recorded;
	t->recorded_ns = now_ns;
	t->scale = 1;
	if (t->is_sample)
		t->scale = KY_MAX(rate * (double)t->round_ns / (double)t->n_events, 1.0);
}

/* --- output --- */

static int by_count(const void *a, const void *b)
{
	const struct count *x = *(struct count *const *)a, *y = *(struct count *const *)b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	if (x->class_index != y->class_index)
		return x->class_index < y->class_index ? -1 : 1;
	return x->pid != y->pid ? (x->pid < y->pid ? -1 : 1)
				: (x->tid > y->tid) - (x->tid < y->tid);
}

/* The counts, the greatest first; the caller frees the array. */
static struct count **sort_counts(struct top *t, size_t *ret_n)
{
	struct count **all = calloc(t->counts.n + 1, sizeof(struct count *));
	struct ky_hnode *n, *tmp;
	size_t i, k = 0;

	if (!all)
		return NULL;
	ky_htab_foreach(&t->counts, i, n, tmp)
	{
		all[k++] = ky_container_of(n, struct count, node);
	}
	qsort(all, k, sizeof(struct count *), by_count);
	*ret_n = k;
	return all;
}

/*
 * Are the numbers those of the host, and so of /proc? A program's own numbers are those of its PID
 * namespace: they are, if an application has this number for the daemon.
 */
static bool is_of_host(const struct kymo_value *session, const struct count *c)
{
	const struct kymo_value *apps = kymo_value_get(session, "applications");

	for (size_t i = 0; i < kymo_value_count(apps) && !c->is_kernel; i++)
		if (kymo_value_i64(kymo_value_get(kymo_value_at(apps, i), "pid")) == c->pid)
			return true;
	return c->is_kernel;
}

#define COMM_SIZE 32 /* of the kernel's names of processes and threads, with room */

static int64_t number_of(const struct top *t, const struct count *c)
{
	return t->by == BY_THREAD ? c->tid : c->pid;
}

/* Gets the name of a process or thread of the host that still runs. Returns false without one. */
static bool read_name(const struct top *t, const struct kymo_value *session, const struct count *c,
	char name[COMM_SIZE])
{
	char path[64];
	ssize_t n;

	if (number_of(t, c) < 0 || !is_of_host(session, c))
		return false;
	snprintf(path, sizeof(path), "/proc/%" PRId64 "/comm", number_of(t, c));
	n = ky_read_text(AT_FDCWD, path, name, COMM_SIZE);
	if (n < 2)
		return false;
	name[n - 1] = '\0'; /* the line's end */
	return true;
}

static const char *event_name(const struct top *t, const struct count *c)
{
	const struct kymo_event_class *class = kymo_reader_class(t->reader, c->class_index);

	return class ? class->name : "<unknown>";
}

static double rate_of(const struct top *t, uint64_t n)
{
	return (double)n * t->scale * (double)NS_PER_S / (double)KY_MAX(t->round_ns, (uint64_t)1);
}

static void print_count(struct top *t, const struct kymo_value *session, const struct count *c)
{
	char name[COMM_SIZE];

	printf("%12.0f  %5.1f %%  ", rate_of(t, c->n), 100.0 * (double)c->n / (double)t->n_events);
	if (t->by == BY_EVENT)
		printf("%-32s  ", cli_safe(t->cli, event_name(t, c)));
	if (read_name(t, session, c, name))
		printf("%s ", cli_safe(t->cli, name)); /* "redis-server 53095" */
	if (number_of(t, c) >= 0)
		printf("%" PRId64 "\n", number_of(t, c));
	else
		printf("-\n");
}

static size_t count_rows(const struct top *t)
{
	struct winsize size;

	if (!t->is_screen || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row)
		return ROWS_DEFAULT;
	return size.ws_row > ROWS_OTHER ? size.ws_row - ROWS_OTHER : 1;
}

/* How full the fullest buffer is: "▇▇▁▁▁▁▁▁ 21 %". */
static void print_fill(uint64_t percent)
{
	for (uint64_t i = 0; i < FILL_WIDTH; i++)
		fputs(i * 100 < percent * FILL_WIDTH ? "▇" : "▁", stdout);
	printf(" %" PRIu64 " %%", percent);
}

static void print_head(struct top *t, const struct kymo_value *s)
{
	uint64_t seconds = (cli_now_ns() - t->began_ns) / NS_PER_S;

	printf("%s%s%s   %02" PRIu64 ":%02" PRIu64 ":%02" PRIu64
	       "   %.0f events/s   discarded %" PRIu64 "   buffers ",
		cli_style(t->cli, CLI_BOLD), kymo_value_string(kymo_value_get(s, "name")),
		cli_style(t->cli, CLI_PLAIN), seconds / 3600, seconds / 60 % 60, seconds % 60,
		rate_of(t, t->n_events), kymo_value_u64(kymo_value_get(s, "discarded")));
	print_fill(kymo_value_u64(kymo_value_get(s, "fill")));
	printf(", %" PRIu64 " events\n", kymo_value_u64(kymo_value_get(s, "in_buffers")));
	cli_report_problem(t->cli, s, "");
	if (t->is_screen)
		printf("q quit, e by event, p by process, t by thread\n");
	printf("%12s  %7s  ", "events/s", "share");
	if (t->by == BY_EVENT)
		printf("%-32s  ", "name");
	printf("%s\n", t->by == BY_THREAD ? "thread" : "process");
}

static void print_text(struct top *t, const struct kymo_value *s, struct count **all, size_t n)
{
	/* long lines are cut at the right edge: wrapped, they would move the head off the screen */
	if (t->is_screen)
		printf("\033[?7l\033[H\033[J");
	print_head(t, s);
	for (size_t i = 0; i < n && i < count_rows(t); i++)
		print_count(t, s, all[i]);
	if (t->n_others)
		printf("%12.0f  of others\n", rate_of(t, t->n_others));
	fputs(t->is_screen ? "\033[?7h" : "\n", stdout);
	fflush(stdout);
}

static void put_json_count(struct ky_buf *b, const struct top *t, const struct kymo_value *session,
	const struct count *c, bool with_name)
{
	char name[COMM_SIZE];

	ky_buf_puts(b, "{");
	if (t->by == BY_EVENT)
		cli_put_member(b, "name", event_name(t, c));
	if (with_name && read_name(t, session, c, name))
		cli_put_member(b, "procname", name);
	ky_buf_printf(b, "\"events\": %" PRIu64, c->n);
	if (c->pid >= 0)
		ky_buf_printf(b, ", \"pid\": %" PRId64, c->pid);
	if (t->by == BY_THREAD && c->tid >= 0)
		ky_buf_printf(b, ", \"tid\": %" PRId64, c->tid);
	ky_buf_puts(b, "}");
}

/* One object on a line for each round. */
static void print_json(struct top *t, const struct kymo_value *s, struct count **all, size_t n)
{
	struct ky_buf b = {0};
	const char *name = kymo_value_string(kymo_value_get(s, "name"));

	ky_buf_puts(&b, "{\"ok\": true, ");
	cli_put_member(&b, "session", name);
	ky_buf_printf(&b,
		"\"seconds\": %.9f, \"events\": %" PRIu64
		", \"is_sample\": %s, \"discarded\": %" PRIu64 ", \"in_buffers\": %" PRIu64
		", \"fill\": %" PRIu64 ", \"silent_ms\": %" PRIu64 ", ",
		(double)t->round_ns / (double)NS_PER_S, t->n_events,
		t->is_sample ? "true" : "false", kymo_value_u64(kymo_value_get(s, "discarded")),
		kymo_value_u64(kymo_value_get(s, "in_buffers")),
		kymo_value_u64(kymo_value_get(s, "fill")),
		kymo_value_u64(kymo_value_get(s, "silent_ms")));
	cli_put_member(&b, "error", kymo_value_string(kymo_value_get(s, "error")));
	ky_buf_printf(&b, "\"by\": \"%s\", \"counts\": [", by_names[t->by]);
	for (size_t i = 0; i < n; i++) {
		ky_buf_puts(&b, i ? ", " : "");
		put_json_count(&b, t, s, all[i], i < NAMES_MAX);
	}
	ky_buf_puts(&b, "]}\n");
	if (!b.error)
		fwrite(b.data, 1, b.len, stdout);
	fflush(stdout);
	ky_buf_deinit(&b);
	t->cli->printed = true;
}

/* --- rounds --- */

/*
 * A session that was stopped ends once the consumer has written what the buffers hold; that may
 * fail, so it is not awaited for ever.
 */
static bool has_ended(struct top *t, const struct kymo_value *session)
{
	uint64_t now_ns = cli_now_ns();

	if (strcmp(kymo_value_string(kymo_value_get(session, "state")), "stopped") != 0) {
		t->stopped_ns = 0;
		return false;
	}
	t->stopped_ns = t->stopped_ns ? t->stopped_ns : now_ns;
	return !kymo_value_u64(kymo_value_get(session, "in_buffers")) ||
	       now_ns - t->stopped_ns > MAX_FLUSH_NS;
}

/* Asks the daemon. *ret_reply: NULL if the session or the daemon ended since the last round. */
static int fetch_status(struct top *t, struct kymo_value **ret_reply)
{
	const struct kymo_value *session;
	int r = cli_try(t->cli, t->ctl, "status", t->params, ret_reply);

	if (r)
		return r;
	if (kymo_reply_ok(*ret_reply)) {
		session = kymo_value_get(*ret_reply, "session");
		t->is_ended = has_ended(t, session);
		if (!t->output)
			t->output = strdup(kymo_value_string(kymo_value_get(session, "output")));
		return t->output ? CLI_OK : cli_fail(t->cli, "failed", "top: no memory");
	}
	if (!t->output)
		return cli_refused(t->cli, t->params, *ret_reply);
	kymo_value_free(*ret_reply);
	*ret_reply = NULL;
	t->is_ended = true;
	return CLI_OK;
}

/* One round: what came since the last one. *last_ns: when that was. */
static int show_round(struct top *t, uint64_t *last_ns)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	_cleanup_free_ struct count **all = NULL;
	const struct kymo_value *session;
	uint64_t asked_ns;
	size_t n = 0;
	int r = fetch_status(t, &reply), e;

	if (r || !reply)
		return r;
	asked_ns = cli_now_ns();
	e = read_events(t);
	t->round_ns = cli_now_ns() - *last_ns;
	*last_ns += t->round_ns;
	all = e < 0 ? NULL : sort_counts(t, &n);
	if (!all)
		return cli_fail(t->cli, "failed", "top: cannot read the trace: %s",
			strerror(e < 0 ? -e : ENOMEM));
	session = kymo_value_get(reply, "session");
	scale_counts(t, kymo_value_u64(kymo_value_get(session, "recorded")), asked_ns);
	if (t->cli->json)
		print_json(t, session, all, n);
	else
		print_text(t, session, all, n);
	forget_counts(t);
	return CLI_OK;
}

/* Keys come at once and unseen. Again each round: ^Z and fg give the terminal the shell's modes. */
static void set_keys(const struct top *t)
{
	struct termios raw = t->saved;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

/* Waits for the next round, and obeys keys. The end of the terminal ends the command, as q does. */
static void wait_for_round(struct top *t, uint64_t until_ns)
{
	struct pollfd fd = {.fd = t->is_screen ? STDIN_FILENO : -1, .events = POLLIN};
	ssize_t n;
	char key;

	if (t->is_screen)
		set_keys(t);
	while (!is_interrupted && cli_now_ns() < until_ns) {
		int ms = (int)((until_ns - cli_now_ns()) / 1000000) + 1;

		if (poll(&fd, 1, ms) <= 0)
			continue;
		n = read(STDIN_FILENO, &key, 1);
		if (!n || (n < 0 && errno == EIO) || (n > 0 && key == 'q'))
			is_interrupted = 1;
		if (n != 1)
			continue;
		for (enum by by = BY_EVENT; by <= BY_THREAD; by++)
			if (key == by_names[by][0])
				t->by = by;
	}
}

static int show_rounds(struct top *t)
{
	uint64_t last_ns = cli_now_ns(), left = t->n_rounds;
	int r;

	t->began_ns = last_ns;
	t->from_ns = (int64_t)(ky_clock_ns(CLOCK_REALTIME) - t->interval_ns);
	do {
		wait_for_round(t, last_ns + t->interval_ns);
		r = is_interrupted ? CLI_OK : show_round(t, &last_ns);
	} while (!r && !is_interrupted && !t->is_ended && !ferror(stdout) && --left);
	return r;
}

/* --- the terminal --- */

static void begin_screen(struct top *t)
{
	t->is_screen = !t->cli->json && isatty(STDIN_FILENO) && cli_is_screen() &&
		       !tcgetattr(STDIN_FILENO, &t->saved);
}

static void end_screen(struct top *t)
{
	if (t->is_screen)
		tcsetattr(STDIN_FILENO, TCSANOW, &t->saved);
}

/* --- the command --- */

static int parse_options(struct top *t)
{
	const char *by = cli_get(t->cli, "by");
	uint64_t usec = 1000000;
	int code;

	while (by && t->by <= BY_THREAD && strcmp(by, by_names[t->by]))
		t->by++;
	if (t->by > BY_THREAD)
		return cli_usage(t->cli, "bad --by '%s': use event, process or thread", by);
	code = cli_read_amount(t->cli, "delay", CLI_SECONDS, 1, 3600000000, &usec);
	if (!code)
		code = cli_read_amount(t->cli, "rounds", CLI_NUMBER, 1, UINT32_MAX, &t->n_rounds);
	t->interval_ns = usec * 1000;
	return code;
}

/* No name of a session has a slash. A session may write to a directory that is named after it. */
static bool is_trace(const char *path)
{
	struct stat st;

	return strchr(path, '/') && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int run_top(struct cli *cli)
{
	const struct sigaction on_interrupt = {.sa_handler = interrupt};
	struct top t = {.cli = cli};
	_cleanup_value_ struct kymo_value *first = NULL;
	int r = parse_options(&t);

	if (r)
		return r;
	if (cli->args.n_pos && is_trace(cli->args.pos[0]))
		return cli_usage(cli,
			"'%s' is a directory, and top shows a session that records: 'kymo stat %s' counts the events of a trace",
			cli->args.pos[0], cli_safe_word(cli, cli->args.pos[0]));
	t.params = cli_params_new(cli);
	r = t.params ? cli_params_which(cli, t.params) : CLI_FAILED;
	if (!r)
		r = cli_connect(cli, &t.ctl);
	if (!r)
		r = fetch_status(&t, &first);
	if (!r && t.is_ended)
		r = cli_fail(
			cli, "refused", "top: the session does not record: 'kymo start' starts it");
	if (!r) {
		t.recorded_ns = cli_now_ns();
		t.n_recorded = kymo_value_u64(
			kymo_value_get(kymo_value_get(first, "session"), "recorded"));
		sigaction(SIGINT, &on_interrupt, NULL);
		sigaction(SIGTERM, &on_interrupt, NULL);
		begin_screen(&t);
		r = show_rounds(&t);
		end_screen(&t);
	}
	forget_counts(&t);
	close_cursor(&t);
	kymo_reader_close(t.reader);
	kymo_ctl_close(t.ctl);
	kymo_value_free(t.params);
	free(t.output);
	return r;
}

static const struct cli_option options[] = {
	{"session", 's', "SESSION", "session; without it, the current one"},
	{"by", 0, "event|process|thread", "what is counted (default: event)"},
	{"delay", 'd', "TIME", "the time between two rounds (default: 1s)"},
	{"rounds", 0, "N", "end after N rounds"},
	{0},
};

const struct cli_command cmd_top = {
	.name = "top",
	.synopsis = "[[-s] NAME] [--by=event|process|thread] [-d TIME] [--rounds=N]",
	.help = "show what a session records now: events per second by name, process or thread",
	.details =
		"On a terminal, e, p and t choose what is counted, and q ends it. It ends by itself when the\n"
		"session stops. Events are counted when the consumer has written them: about a second later.\n"
		"Processes and threads need the contexts vpid and vtid ('kymo add-context -t vpid,vtid').\n"
		"With --json, each round is an object on a line of its own.\n",
	.options = options,
	.max_args = 1,
	.run = run_top,
};
