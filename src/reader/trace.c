/* SPDX-License-Identifier: MIT */
#include "reader/trace.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "reader/chunks.h"
#include "reader/format.h"
#include "reader/tsdl.h"
#include "reader/values.h"

/* docs/trace-format.md */
#define GAP	    "\n/* gap: "
#define TRIGGER	    "\n/* trigger: "
#define END	    " */"
#define GAPS_MAX    256	 /* of all traces */
#define GAP_LEN_MAX 1000 /* bytes */

static void free_description(struct ky_trace *t)
{
	struct ky_outdated *o = t->outdated, *next;

	ky_tsdl_deinit(&t->tsdl);
	for (; o; o = next) {
		next = o->next;
		ky_tsdl_deinit(&o->tsdl);
		free(o);
	}
}

struct ky_trace *ky_trace_free(struct ky_trace *t)
{
	if (t) {
		free_description(t);
		free(t->dir);
		free(t->name);
		free(t->origin);
		free(t->json_origin);
		free(t);
	}
	return NULL;
}

static const char *host_of(const struct ky_tsdl *t)
{
	const struct ky_env *host = ky_tsdl_env(t, "hostname");

	return host && host->text ? host->text : "";
}

static char *make_name(const char *host, const char *dir, size_t root_len)
{
	const char *below = dir + root_len;
	char *name;

	while (*below == '/')
		below++;
	if (asprintf(&name, "%s%s%s", host, *host && *below ? "/" : "", below) < 0)
		return NULL;
	return name;
}

/* Makes the text that babeltrace2 prints before an event's name. */
static char *make_origin(const struct ky_tsdl *t)
{
	const struct ky_env *host = ky_tsdl_env(t, "hostname");
	const struct ky_env *process = ky_tsdl_env(t, "procname");
	const struct ky_env *pid = ky_tsdl_env(t, "vpid");
	bool has_host = host && host->text, has_process = process && process->text;
	bool has_pid = pid && !pid->text;
	struct ky_buf b = {0};

	if (has_host)
		ky_buf_puts(&b, host->text);
	if (has_process)
		ky_buf_printf(&b, "%s%s", has_host ? ":" : "", process->text);
	if (has_pid)
		ky_buf_printf(
			&b, "%s(%lld)", has_host || has_process ? ":" : "", (long long)pid->number);
	ky_buf_puts(&b, has_host || has_process || has_pid ? " " : "");
	if (b.error)
		ky_buf_deinit(&b);
	return b.data;
}

/*
 * Names the trace by its path below the directory that was opened. If it is that directory itself,
 * names it by the last part of its path.
 */
static char *make_json_origin(const struct ky_tsdl *t, const char *dir, size_t root_len)
{
	const struct ky_env *host = ky_tsdl_env(t, "hostname");
	const char *name = dir + root_len;
	struct ky_buf b = {0};

	while (*name == '/')
		name++;
	if (!*name)
		name = strrchr(dir, '/') ? strrchr(dir, '/') + 1 : dir;
	if (host && host->text) {
		ky_buf_puts(&b, "\"host\": ");
		ky_format_json_string(&b, host->text, strlen(host->text));
		ky_buf_puts(&b, ", ");
	}
	ky_buf_puts(&b, "\"trace\": ");
	ky_format_json_string(&b, name, strlen(name));
	ky_buf_puts(&b, ", ");
	if (b.error)
		ky_buf_deinit(&b);
	return b.data;
}

static bool is_kymo(const struct ky_tsdl *t)
{
	const struct ky_env *tracer = ky_tsdl_env(t, "tracer_name");

	return tracer && tracer->text && !strcmp(tracer->text, "kymo");
}

static bool has_gap(const struct ky_trace_reader *r, const char *text)
{
	for (size_t i = 0; i < r->n_gaps; i++)
		if (!strcmp(r->gaps[i], text))
			return true;
	return false;
}

int ky_trace_add_gap(struct ky_trace_reader *r, const char *dir, const char *text, size_t len)
{
	char *copy = strndup(text, KY_MIN(len, (size_t)GAP_LEN_MAX)), **at;

	for (char *c = copy; c && *c; c++)
		*c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
	if (copy && has_gap(r, copy)) {
		free(copy);
		return 0;
	}
	at = copy ? ky_reader_grow(&r->gaps, &r->n_gaps, sizeof(*r->gaps)) : NULL;
	if (!at) {
		free(copy);
		return ky_reader_fail_memory(r);
	}
	*at = copy;
	if (r->n_gaps <= KY_GAPS_REPORTED)
		ky_reader_warn(r, "%s: %s", dir, copy);
	return 0;
}

int ky_trace_find_removed(struct ky_trace_reader *r, const char *dir)
{
	uint64_t n_chunks = 0, n_events = 0;
	char counts[256] = "", text[128];
	struct ky_buf path = {0};
	struct stat st;
	int fd, n;

	ky_buf_printf(&path, "%s/archives/.removed", dir);
	fd = path.error ? -1 : open(path.data, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	ky_buf_deinit(&path);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		read(fd, counts, sizeof(counts) - 1) > 0)
		sscanf(counts, "chunks %" SCNu64 "\nevents %" SCNu64, &n_chunks, &n_events);
	ky_close(fd);
	if (!n_chunks)
		return 0;
	n = snprintf(text, sizeof(text),
		"%" PRIu64 " recorded event%s removed with the oldest %" PRIu64
		" chunk%s, for --keep, --max-disk or --keep-free",
		n_events, n_events == 1 ? " was" : "s were", n_chunks, n_chunks == 1 ? "" : "s");
	return ky_trace_add_gap(r, dir, text, (size_t)n);
}

/*
 * Reports the comments of the metadata that begin so; `skip` bytes of it are not shown. A comment
 * has no others in it: each byte is searched once.
 */
static int find_comments(struct ky_trace_reader *r, const char *dir, const struct ky_buf *text,
	const char *begin, size_t skip)
{
	const char *at = text->data, *end = at + text->len, *close;
	int e = 0;

	for (; !e && text->len; at = close + strlen(END)) {
		at = memmem(at, (size_t)(end - at), begin, strlen(begin));
		if (!at)
			break;
		at += skip;
		close = memmem(at, (size_t)(end - at), END, strlen(END));
		if (!close || r->n_gaps == GAPS_MAX)
			break;
		e = ky_trace_add_gap(r, dir, at, (size_t)(close - at));
	}
	return e;
}

int ky_trace_find_gaps(struct ky_trace_reader *r, const char *dir, const struct ky_buf *text)
{
	int e = find_comments(r, dir, text, GAP, sizeof(GAP) - 1);

	return e ? e : find_comments(r, dir, text, TRIGGER, strlen("\n/* "));
}

int ky_trace_parse(struct ky_trace_reader *r, struct ky_tsdl *tsdl, struct ky_layout *layout,
	const struct ky_buf *text, const char *dir)
{
	struct ky_tsdl_error error;
	char why[160] = "no memory";
	int e = ky_tsdl_parse(tsdl, text->data ? text->data : "", text->len, &error);

	if (e < 0) {
		ky_reader_fail(r, e, "cannot read the trace: %s/metadata:%u:%u: %s", dir,
			error.line, error.column, error.text);
	} else {
		e = ky_layout_compile(layout, tsdl, why, sizeof(why));
		if (e >= 0 && r->options.show)
			ky_layout_choose_show(layout, r->options.show, r->options.show_arg);
		if (e >= 0 && r->options.names)
			e = ky_values_choose(layout, &tsdl->arena, dir);
		if (e >= 0) {
			ky_layout_find_steps(layout, &tsdl->arena);
			return 0;
		}
		ky_reader_fail(r, e, "cannot read the trace: %s/metadata: %s", dir, why);
	}
	ky_tsdl_deinit(tsdl);
	*tsdl = (struct ky_tsdl){0};
	return e;
}

int ky_trace_describe(
	struct ky_trace_reader *r, struct ky_trace *t, const struct ky_buf *text, size_t root_len)
{
	int e = ky_trace_parse(r, &t->tsdl, &t->layout, text, t->dir);

	if (e < 0)
		return e;
	t->host = host_of(&t->tsdl);
	t->name = make_name(t->host, t->dir, root_len);
	t->origin = make_origin(&t->tsdl);
	t->json_origin = make_json_origin(&t->tsdl, t->dir, root_len);
	if (!t->name || !t->origin || !t->json_origin)
		return ky_reader_fail_memory(r);
	t->origin_len = strlen(t->origin);
	t->json_origin_len = strlen(t->json_origin);
	t->is_kymo = is_kymo(&t->tsdl);
	for (size_t i = 0; i < t->tsdl.n_clocks; i++) {
		if (ky_trace_clock_is_beyond(&t->tsdl.clocks[i]))
			ky_reader_warn(r,
				"%s: the clock begins before 1677 or after 2262: times are wrong",
				t->dir);
	}
	if (t->tsdl.is_cut && !r->options.is_growing)
		ky_reader_warn(r,
			"%s/metadata ends within a block or comment: what is complete is used",
			t->dir);
	return ky_trace_find_gaps(r, t->dir, text);
}

struct ky_trace *ky_trace_new(struct ky_trace_reader *r, const char *dir)
{
	struct ky_trace *t = calloc(1, sizeof(*t));

	if (t)
		t->dir = strdup(dir);
	if (t && t->dir)
		return t;
	ky_reader_fail_memory(r);
	return ky_trace_free(t);
}

int ky_trace_compare_uuids(const struct ky_tsdl *x, const struct ky_tsdl *y)
{
	if (x->has_uuid != y->has_uuid)
		return x->has_uuid ? -1 : 1;
	return x->has_uuid ? memcmp(x->uuid, y->uuid, sizeof(x->uuid)) : 0;
}

int ky_trace_keep(struct ky_trace_reader *r, struct ky_trace *t)
{
	struct ky_trace **at = ky_reader_grow(&r->traces, &r->n_traces, sizeof(struct ky_trace *));

	if (!at) {
		ky_trace_free(t);
		return ky_reader_fail_memory(r);
	}
	*at = t;
	t->group = r->n_traces - 1;
	for (size_t i = 0; i + 1 < r->n_traces && t->tsdl.has_uuid; i++) {
		struct ky_trace *other = r->traces[i];

		if (!ky_chunks_are_of_session(other, t))
			continue;
		t->group = other->group;
		if (!ky_trace_compare_uuids(&other->tsdl, &t->tsdl)) {
			t->is_chunk = other->is_chunk = true;
			break;
		}
	}
	return 0;
}
