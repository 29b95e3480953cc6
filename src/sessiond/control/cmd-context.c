/* SPDX-License-Identifier: MIT */
/* add-context. */
#include "sessiond/control/commands.h"
#include "sessiond/control/kernel.h"
#include "sessiond/control/report.h"
#include "sessiond/model/context.h"
#include "sessiond/peers/app.h"

/*
 * Finds one of the first n contexts that readers would show by the same name as c, but that is
 * another value. Returns NULL if there is none.
 */
static const struct ky_context *find_other(
	const struct ky_context *contexts, size_t n, const struct ky_context *c)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(contexts[i].name, c->name) && strcmp(contexts[i].argument, c->argument))
			return &contexts[i];
	return NULL;
}

/* Refuses a context of applications, for this reason; it may be one of the kernel's. */
static void refuse_context(struct request *r, const char *text, const char *why)
{
	struct ky_context other;
	char ignored[REQUEST_ERROR_MAX];

	if (kernel_context_parse(&other, text, ignored, sizeof(ignored)) < 0)
		request_refuse(r, "usage", "%s", why);
	else
		request_refuse(r, "usage", "%s (it is one of kernel events: --kernel)", why);
}

/*
 * Returns the contexts that the request asks for, owned by the caller. Returns NULL if it refused
 * the request.
 */
static struct ky_context *parse_contexts(struct request *r, bool kernel, size_t n)
{
	const struct ky_context *other;
	struct ky_context *contexts;
	char why[REQUEST_ERROR_MAX];

	if (!n || n > KY_CTX_MAX) {
		request_refuse(r, "usage", "%zu contexts at once: from 1 to %u are possible", n,
			KY_CTX_MAX);
		return NULL;
	}
	contexts = calloc(n, sizeof(*contexts));
	for (size_t i = 0; contexts && i < n; i++) {
		const char *text = request_list_string(r, "contexts", i);

		if ((kernel ? kernel_context_parse : context_parse)(
			    &contexts[i], text, why, sizeof(why)) < 0)
			refuse_context(r, text, why);
		else if (!kernel && context_probe(&contexts[i], why, sizeof(why)) < 0)
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
		request_no_memory(r);
	return contexts;
}

/* Checks whether the channel could have all of them. Returns false if it refused the request. */
static bool may_add(
	struct request *r, const struct channel *c, const struct ky_context *contexts, size_t n)
{
	const struct ky_context *other = NULL;

	for (size_t i = 0; i < n && !other; i++) {
		other = find_other(c->contexts, c->n_contexts, &contexts[i]);
		if (other)
			request_refuse(r, "exists",
				"channel '%s' records '%s', so it cannot also record '%s': use another channel",
				c->name, other->spec, contexts[i].spec);
	}
	if (!other && channel_check_contexts(c, contexts, n) < 0)
		request_refuse(r, "failed",
			"channel '%s': these are too many: there can be at most 64 contexts, 8 of them counters, and 4096 bytes together",
			c->name);
	return !r->refusal.code;
}

static void note_known(
	struct request *r, const struct channel *c, const struct ky_context *contexts, size_t n)
{
	const struct ky_context *same;

	for (size_t i = 0; i < n; i++) {
		same = channel_context(c, contexts[i].name);
		if (same)
			reply_note(r, "channel '%s' records '%s' already", c->name, same->spec);
	}
}

/* Brings the contexts to the programs. */
static void apply_contexts(struct request *r, struct channel *c)
{
	char why[KERNEL_WHY_MAX];

	if (c->kernel && kernel_events_renew(c->kernel, why) < 0)
		reply_note(r, "channel '%s': %s", c->name, why);
	kernel_channel_apply(c);
	if (channel_count_older(c))
		apps_renew_channel(c, request_barrier(r));
	reply_add_to(r, "channels", report_channel(c));
}

static bool is_target(const struct channel *c, bool kernel, const char *name)
{
	return (c->domain == DOMAIN_KERNEL) == kernel && (!name || !strcmp(c->name, name));
}

/* To all channels (name NULL) or one: to each of them, or to none. */
static enum outcome add_to_channels(struct request *r, bool kernel, const char *name,
	const struct ky_context *contexts, size_t n)
{
	struct channel *c;

	ky_list_foreach (c, &r->session->channels, node)
		if (is_target(c, kernel, name) && !may_add(r, c, contexts, n))
			return REFUSED;
	ky_list_foreach (c, &r->session->channels, node) {
		if (!is_target(c, kernel, name))
			continue;
		note_known(r, c, contexts, n);
		if (channel_add_contexts(c, contexts, n) < 0)
			return request_no_memory(r);
		apply_contexts(r, c);
	}
	return request_await_peers(r, APP_ANSWER_NS, request_outcome);
}

static bool has_channel(const struct session *s, bool kernel)
{
	const struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		if (is_target(c, kernel, NULL))
			return true;
	return false;
}

/* Makes the first channel of its kind, for contexts that are there before any rule. */
static void make_channel(
	struct request *r, bool kernel, const struct ky_context *contexts, size_t n)
{
	struct channel *made = request_make_channel(r, kernel ? KERNEL_CHANNEL : DEFAULT_CHANNEL);

	if (made && kernel)
		kernel_channel_init(made);
	if (made && may_add(r, made, contexts, n))
		channel_add(made);
	else
		channel_free(made);
}

/* Without a channel's name: to all channels, or to a first one where there is none. */
enum outcome run_add_context(struct request *r)
{
	size_t n = request_list_length(r, "contexts");
	const char *name = request_string(r, "channel");
	enum outcome outcome = REFUSED;
	struct ky_context *contexts;
	const struct channel *c;
	bool kernel;

	if (!request_is_kernel(r, &kernel))
		return REFUSED;
	contexts = parse_contexts(r, kernel, n);
	if (contexts && !name && !has_channel(r->session, kernel))
		make_channel(r, kernel, contexts, n);
	else if (contexts && name && (c = request_channel(r)))
		request_channel_is_of(r, c, kernel);
	if (!r->refusal.code)
		outcome = add_to_channels(r, kernel, name, contexts, n);
	free(contexts);
	return outcome;
}
