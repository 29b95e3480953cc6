/* SPDX-License-Identifier: MIT */
#include "cli/crash.h"

#include <inttypes.h>
#include <kymo/reader.h>
#include <signal.h>

#include "cli/text.h"

#define N_PARTS	   64u
#define EVENTS_MAX 4000000u /* events that are read, from the end */

const char *cli_signal_name(char *buf, size_t size, int signal)
{
	static const char *const names[] = {[SIGABRT] = "SIGABRT",
		[SIGALRM] = "SIGALRM",
		[SIGBUS] = "SIGBUS",
		[SIGFPE] = "SIGFPE",
		[SIGHUP] = "SIGHUP",
		[SIGILL] = "SIGILL",
		[SIGINT] = "SIGINT",
		[SIGKILL] = "SIGKILL",
		[SIGPIPE] = "SIGPIPE",
		[SIGQUIT] = "SIGQUIT",
		[SIGSEGV] = "SIGSEGV",
		[SIGSYS] = "SIGSYS",
		[SIGTERM] = "SIGTERM",
		[SIGTRAP] = "SIGTRAP",
		[SIGUSR1] = "SIGUSR1",
		[SIGUSR2] = "SIGUSR2",
		[SIGXCPU] = "SIGXCPU",
		[SIGXFSZ] = "SIGXFSZ"};

	if (signal > 0 && (size_t)signal < KY_ARRAY_SIZE(names) && names[signal])
		return names[signal];
	snprintf(buf, size, "signal %d", signal);
	return buf;
}

/* The last events of one thread, or, while none is known, of the program. */
struct ending {
	struct kymo_reader *reader;
	struct kymo_query *parts[N_PARTS];
	size_t n_parts;
	size_t tid_column;
	int64_t tid;   /* -1: not known */
	bool is_known; /* by crash:signal */
	uint64_t n_read;
	struct ky_buf lines[CRASH_EVENTS]; /* the newest last */
	size_t n_lines;
};

static bool is_crash_event(const struct ending *e, uint32_t class_index)
{
	const struct kymo_event_class *c = kymo_reader_class(e->reader, class_index);

	return c && !strcmp(c->name, "crash:signal");
}

static int64_t tid_of(const struct ending *e, const struct kymo_batch *b, size_t row)
{
	if (!kymo_batch_has(b, e->tid_column, row))
		return -1;
	return ((const int64_t *)b->columns[e->tid_column].values)[row];
}

/* Finds the thread of the last crash:signal in the part, or of the last event of the last part. */
static void find_thread(struct ending *e, const struct kymo_batch *b, bool is_last)
{
	for (size_t i = 0; i < b->n; i++) {
		bool is_crash = is_crash_event(e, b->class_index[i]);

		if (is_crash || (is_last && !e->is_known))
			e->tid = tid_of(e, b, i);
		e->is_known |= is_crash;
	}
}

/* Keeps the last lines of the thread in a ring; *n counts all. */
static void keep_lines(
	struct ending *e, const struct kymo_batch *b, struct ky_buf *ring, size_t size, size_t *n)
{
	const char *text;
	size_t len;

	for (size_t i = 0; i < b->n; i++) {
		struct ky_buf *line = &ring[*n % size];

		if (tid_of(e, b, i) != e->tid ||
			kymo_batch_format(b, i, KYMO_FORMAT_TEXT, &text, &len) < 0)
			continue;
		line->len = 0;
		ky_buf_append(line, text, len - (len && text[len - 1] == '\n'));
		ky_buf_append(line, "", 1);
		++*n;
	}
}

/*
 * Calls find_thread, or keep_lines if ring is not NULL, for all events of the part. *n counts the
 * events, or the lines; if it is not 0 before, the part is not the last one with events.
 */
static void read_part(struct ending *e, size_t part, struct ky_buf *ring, size_t size, size_t *n)
{
	const bool is_last = !*n;
	const struct kymo_batch *b;
	struct kymo_cursor *cursor;

	if (kymo_cursor_open(&cursor, e->parts[part]) < 0)
		return;
	while (kymo_cursor_next(cursor, &b) > 0) {
		e->n_read += b->n;
		if (ring)
			keep_lines(e, b, ring, size, n);
		else
			find_thread(e, b, is_last);
		*n += ring ? 0 : b->n;
	}
	kymo_cursor_close(cursor);
}

/* Puts the last lines of the part in front of those that are known. */
static void add_part(struct ending *e, size_t part)
{
	size_t room = CRASH_EVENTS - e->n_lines, n = 0, n_new;
	struct ky_buf ring[CRASH_EVENTS] = {{0}};

	read_part(e, part, ring, room, &n);
	n_new = KY_MIN(n, room);
	memmove(e->lines + n_new, e->lines, e->n_lines * sizeof(*e->lines));
	for (size_t i = 0; i < n_new; i++)
		e->lines[i] = ring[(n - n_new + i) % room];
	e->n_lines += n_new;
}

static bool has_crash_events(const struct ending *e)
{
	for (size_t i = 0; i < kymo_reader_n_classes(e->reader); i++) {
		if (is_crash_event(e, (uint32_t)i))
			return true;
	}
	return false;
}

/*
 * Reads backwards: first for the thread, then until there are enough lines. Other threads may have
 * recorded events after crash:signal, in later parts.
 */
static void read_backwards(struct ending *e)
{
	const bool may_crash = has_crash_events(e);
	size_t n = 0;

	for (size_t i = e->n_parts; i-- > 0 && !e->is_known && (may_crash || !n);) {
		read_part(e, i, NULL, 0, &n);
		if (e->n_read > EVENTS_MAX)
			break;
	}
	e->n_read = 0;
	for (size_t i = e->n_parts; i-- > 0 && n && e->n_lines < CRASH_EVENTS;) {
		add_part(e, i);
		if (e->n_read > EVENTS_MAX)
			break;
	}
}

/* Returns whether events say of which program they are. */
static bool has_programs(const struct kymo_reader *reader)
{
	for (size_t i = 0; i < kymo_reader_n_classes(reader); i++) {
		const struct kymo_event_class *c = kymo_reader_class(reader, i);

		for (size_t k = 0; k < c->n_fields; k++)
			if (c->fields[k].scope != KYMO_SCOPE_FIELDS &&
				!strcmp(c->fields[k].name, "vpid"))
				return true;
	}
	return false;
}

/*
 * Makes the query for the program's events, of which those about its files say nothing about its
 * end. In a trace without contexts, they are all.
 */
static int make_query(struct ending *e, int64_t vpid, struct kymo_query **ret_query)
{
	char filter[64];
	int r = kymo_query_new(ret_query, e->reader);

	snprintf(filter, sizeof(filter), "$ctx.vpid == %" PRId64, vpid);
	if (!r && has_programs(e->reader))
		r = kymo_query_filter(*ret_query, filter, NULL);
	if (!r)
		r = kymo_query_events(*ret_query, "!kymo_statedump:*,!kymo_lib:*");
	if (!r)
		r = kymo_query_column(*ret_query, "$ctx.vtid", KYMO_INT64, &e->tid_column);
	if (!r)
		r = kymo_query_lines(*ret_query, 1);
	return r ? r : kymo_query_split(*ret_query, N_PARTS, e->parts, &e->n_parts);
}

static void find_ending(struct ending *e, int64_t vpid)
{
	struct kymo_query *query = NULL;

	e->tid = -1;
	if (make_query(e, vpid, &query) == 0)
		read_backwards(e);
	for (size_t i = 0; i < e->n_parts; i++)
		kymo_query_free(e->parts[i]);
	e->n_parts = 0;
	kymo_query_free(query);
}

static void print_ending(
	struct cli *cli, const struct ending *e, const char *head, const char *trace)
{
	if (!e->n_lines) {
		cli_warn(cli, "%s; none of its events was recorded", head);
		return;
	}
	if (e->tid >= 0)
		cli_warn(cli, "%s; last events of thread %" PRId64 ":", head, e->tid);
	else
		cli_warn(cli, "%s; last events:", head);
	for (size_t i = 0; i < e->n_lines; i++) {
		struct ky_buf safe = {0};

		cli_escape(&safe, e->lines[i].error ? "" : e->lines[i].data);
		fprintf(stderr, "  %s\n", safe.data ? safe.data : "");
		ky_buf_deinit(&safe);
	}
	if (e->is_known)
		cli_warn(cli, "the stack: kymo view --symbols -e crash:signal %s",
			cli_safe_word(cli, trace));
}

void cli_report_crash(struct cli *cli, const struct crash *c, const char *trace)
{
	struct ending e = {0};
	char head[256], number[32];

	snprintf(head, sizeof(head), "%s (pid %" PRId64 ") ended by %s%s", c->name, c->vpid,
		cli_signal_name(number, sizeof(number), c->signal),
		c->dumped ? ", core dumped" : "");
	if (*trace && kymo_reader_open(&e.reader, &trace, 1, NULL, NULL) == 0)
		find_ending(&e, c->vpid);
	print_ending(cli, &e, head, trace);
	for (size_t i = 0; i < e.n_lines; i++)
		ky_buf_deinit(&e.lines[i]);
	kymo_reader_close(e.reader);
}
