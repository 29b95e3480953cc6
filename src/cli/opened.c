/* SPDX-License-Identifier: MIT */
#include "cli/opened.h"

#include "cli/trace.h"
#include "reader/api.h"

#define MAX_WARNED 1000 /* further lines are not printed */

/* A trace is read several times, and each reading reports the same damage. */
static void warn_once(void *arg, const char *text)
{
	struct cli_opened *o = arg;
	char **more;

	for (size_t i = 0; i < o->n_warned; i++)
		if (!strcmp(o->warned[i], text))
			return;
	if (o->n_warned == MAX_WARNED)
		return;
	more = reallocarray(o->warned, o->n_warned + 1, sizeof(*more));
	if (!more)
		return;
	o->warned = more;
	more[o->n_warned] = strdup(text);
	if (more[o->n_warned])
		o->n_warned++;
	cli_warn(o->cli, "%s", text);
}

int cli_opened_open(struct cli_opened *o, struct cli *cli, char **paths, size_t n)
{
	const struct kymo_reader_options options = {
		.size = sizeof(options), .warn = warn_once, .arg = o};
	struct kymo_reader_error error = {0};
	_cleanup_traces_ struct cli_traces t = {0};
	int r;

	*o = (struct cli_opened){.cli = cli};
	r = cli_traces_find(cli, (const char *const *)paths, n, &t);
	if (r)
		return r;
	r = kymo_reader_open(&o->reader, (const char *const *)t.paths, t.n, &options, &error);
	return r < 0 ? cli_fail(cli, cli_trace_code(r), "%s", error.text) : CLI_OK;
}

void cli_opened_close(struct cli_opened *o)
{
	kymo_reader_close(o->reader);
	for (size_t i = 0; i < o->n_warned; i++)
		free(o->warned[i]);
	free(o->warned);
	*o = (struct cli_opened){0};
}

int cli_opened_part(
	struct cli_opened *o, const struct cli_selection *s, struct ky_tables_part *ret_part)
{
	struct ky_query query = {0};
	int r = cli_select_apply(o->cli, s, ky_reader_inside(o->reader), &query);

	*ret_part = (struct ky_tables_part){.events = s->events,
		.filter = s->filter,
		.from_ns = query.select.from_ns,
		.to_ns = query.select.to_ns};
	ky_query_deinit(&query);
	return r;
}
