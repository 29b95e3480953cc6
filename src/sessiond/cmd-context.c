/* SPDX-License-Identifier: MIT */
/* add-context. */
#include "sessiond/app.h"
#include "sessiond/commands.h"
#include "sessiond/context.h"
#include "sessiond/report.h"

/* One of the first n that readers would show by the same name, but that is another value; or NULL. */
static const struct ky_context *find_other(
	const struct ky_context *contexts, size_t n, const struct ky_context *c)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(contexts[i].name, c->name) && strcmp(contexts[i].argument, c->argument))
			return &contexts[i];
	return NULL;
}

/* What the request asks for, one for each of its texts; NULL when it was refused. Owned by the caller. */
static struct ky_context *parse_contexts(struct request *r, size_t n)
{
	struct json_object *list = request_list(r, "contexts");
	const struct ky_context *other;
	struct ky_context *contexts;
	char why[REQUEST_ERROR_MAX];

	if (!n || n > KY_CTX_MAX) {
		request_refuse(r, "usage", "from 1 to %u contexts at once", KY_CTX_MAX);
		return NULL;
	}
	contexts = calloc(n, sizeof(*contexts));
	for (size_t i = 0; contexts && i < n; i++) {
		const char *text = json_object_get_string(json_object_array_get_idx(list, i));

		if (context_parse(&contexts[i], text, why, sizeof(why)) < 0)
			request_refuse(r, "usage", "%s", why);
		else if (context_probe(&contexts[i], why, sizeof(why)) < 0)
			request_refuse(r, "unsupported", "%s", why);
		else if ((other = find_other(contexts, i, &contexts[i])))
			request_refuse(r, "usage",
				"'%s' and '%s' exclude each other: give one of them", other->spec,
				contexts[i].spec);
		else
			continue;
		free(contexts);
		return NULL;
	}
	if (!contexts)
		request_refuse(r, "failed", "the session daemon has no memory left");
	return contexts;
}

/* False when one could not be added; those before it stay. */
static bool add_contexts(
	struct request *r, struct channel *c, const struct ky_context *contexts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct ky_context *other = find_other(
			c->contexts, c->n_contexts, &contexts[i]);
		int ret = other ? -EBUSY : channel_add_context(c, &contexts[i]);

		if (other)
			request_refuse(r, "exists",
				"channel '%s' records '%s', and so cannot record '%s': use another channel",
				c->name, other->spec, contexts[i].spec);
		else if (ret == -EEXIST)
			reply_note(r, "channel '%s' records '%s' already", c->name,
				channel_context(c, contexts[i].name)->spec);
		else if (ret < 0)
			request_refuse(r, "failed", "channel '%s': '%s' is one too many: %s",
				c->name, contexts[i].spec,
				ret == -EDQUOT
					? "contexts are at most 64, 8 of them counters, and 4096 bytes together"
					: strerror(-ret));
		if (ret < 0 && ret != -EEXIST)
			return false;
	}
	return true;
}

/* Brings the contexts to the programs, now or at the next start; says which. */
static void apply_contexts(struct request *r, struct channel *c)
{
	unsigned n = channel_count_older(c);

	if (!r->session->started && n)
		apps_renew_channel(c);
	else if (n)
		reply_note(r,
			"channel '%s': %u event%s that it knows already ha%s the new contexts from the next 'kymo start' on; others at once",
			c->name, n, n == 1 ? "" : "s", n == 1 ? "s" : "ve");
	reply_add_to(r, "channels", report_channel(c));
}

/* To one channel, or to all; to a first one where there is none. */
void run_add_context(struct request *r)
{
	size_t n = json_object_array_length(request_list(r, "contexts"));
	bool all = !request_string(r, "channel");
	struct ky_context *contexts = parse_contexts(r, n);
	struct channel *c = NULL;

	if (!contexts)
		return;
	if (all && ky_list_empty(&r->session->channels))
		c = request_make_channel(r, DEFAULT_CHANNEL);
	else if (!all)
		c = request_channel(r);
	if (!c && (!all || ky_list_empty(&r->session->channels))) {
		free(contexts);
		return;
	}
	ky_list_foreach (c, &r->session->channels, node) {
		if (!all && strcmp(c->name, request_string(r, "channel")))
			continue;
		if (!add_contexts(r, c, contexts, n)) {
			free(contexts);
			return;
		}
		apply_contexts(r, c);
	}
	free(contexts);
	request_finish(r);
}
