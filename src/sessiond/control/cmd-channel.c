/* SPDX-License-Identifier: MIT */
/* enable-channel, disable-channel, set. */
#include <inttypes.h>

#include "sessiond/control/commands.h"
#include "sessiond/control/json.h"
#include "sessiond/control/explain.h"
#include "sessiond/control/kernel.h"
#include "sessiond/control/report.h"
#include "sessiond/model/option.h"
#include "sessiond/peers/app.h"

/*
 * The options that the request gives. False when it was refused. Sizes are rounded, which is noted.
 */
static bool take_options(struct request *r, struct option_values *ret_values)
{
	memset(ret_values, 0, sizeof(*ret_values));
	json_object_object_foreach(r->params, name, value)
	{
		const struct option *o = option_find(name);
		/* NULL without memory: the text of a number is allocated. */
		const char *text = json_object_get_string(value);
		struct ky_buf allowed = {0};
		int ret;

		if (!text) {
			request_no_memory(r);
			return false;
		}
		ret = o ? option_take(ret_values, o, text) : 0;
		if (ret)
			option_describe(&allowed, o);
		if (ret < 0)
			request_refuse(r, "usage", "%s cannot be '%s': it is %s", o->key, text,
				allowed.data ? allowed.data : "");
		else if (ret)
			reply_note(r, "%s %s became %" PRIu64 ": it is %s", o->key, text,
				ret_values->value[o - channel_options],
				allowed.data ? allowed.data : "");
		ky_buf_deinit(&allowed);
		if (ret < 0)
			return false;
	}
	return true;
}

/* Checks the options. Refuses the request and returns false if the channel cannot have them. */
static bool may_have_options(
	struct request *r, const struct channel *c, const struct option_values *values)
{
	struct ky_buf why = {0};
	int ret = options_check(c, values, &why);

	if (ret < 0)
		request_refuse(r, "usage", "%s", why.data ? why.data : strerror(-ret));
	ky_buf_deinit(&why);
	return !ret;
}

/* Returns whether the name ends like the names of some channels' files after the channel's name. */
static bool has_files_ending(const char *name)
{
	static const char digits[] = "0123456789";
	const char *p = strrchr(name, '-');
	size_t n = p ? strspn(p + 1, digits) : 0;

	if (p && !strcmp(p, "-thread"))
		return true;
	if (!n || p[1 + n])
		return false;
	while (p > name && strchr(digits, p[-1]))
		p--;
	return p - name >= 2 && p[-1] == 'p' && p[-2] == '-' && *p != '-';
}

struct channel *request_make_channel(struct request *r, const char *name)
{
	static const struct option_values none;
	struct session *s = r->session;
	struct channel *c;

	if (!ky_name_valid(name) || has_files_ending(name)) {
		request_refuse(r, "usage",
			"'%s' cannot name a channel: use up to 128 letters, digits, '.', '_' and '-', no '.' first, no '-thread' and nothing like '-p1-2' last",
			name);
		return NULL;
	}
	if (s->n_channels >= CHANNELS_MAX) {
		request_refuse(r, "failed", "session '%s' has %u channels, and cannot have more",
			s->name, CHANNELS_MAX);
		return NULL;
	}
	c = channel_new(s, name);
	if (!c)
		request_no_memory(r);
	else if (!may_have_options(r, c, &none))
		c = channel_free(c);
	return c;
}

static enum outcome reenable_channel(struct request *r, struct channel *c, bool has_options)
{
	if (c->enabled)
		return request_refuse(r, "exists",
			"channel '%s' exists already in session '%s': 'kymo set -c %s' changes its options",
			c->name, r->session->name, c->name);
	if (has_options)
		return request_refuse(r, "usage",
			"channel '%s' exists already, disabled: enable it without options; 'kymo set -c %s' changes them",
			c->name, c->name);
	channel_enable(c, true);
	return answer_with_rules(r, c);
}

static bool gives(const struct option_values *values, const char *key)
{
	return values->given >> (option_find(key) - channel_options) & 1;
}

/* Notes effects of the options that the user may not expect. */
static void note_options(
	struct request *r, const struct channel *c, const struct option_values *values)
{
	if (gives(values, "mode") && c->overwrite && !c->session->snapshot)
		reply_note(r,
			"channel '%s' is in overwrite mode: its events are not in the session's trace, only in snapshots ('kymo snapshot record')",
			c->name);
	if (gives(values, "pool-size") && c->buffers != BUFFERS_THREAD)
		reply_note(r,
			"channel '%s': a pool-size is for buffers of threads: make another channel with --buffers=thread",
			c->name);
	if (gives(values, "blocking-timeout") && c->blocking_timeout_us)
		reply_note(r,
			"channel '%s': only applications that are started with KYMO_ALLOW_BLOCKING=1 in their environment wait for room; others discard",
			c->name);
}

bool request_channel_is_of(struct request *r, const struct channel *c, bool kernel)
{
	if ((c->domain == DOMAIN_KERNEL) == kernel)
		return true;
	request_refuse(r, "usage", "channel '%s' records %s", c->name,
		kernel ? "applications: leave --kernel out" : "the kernel: add --kernel");
	return false;
}

bool request_channel_is_meant(struct request *r, const struct channel *c)
{
	bool kernel;

	return request_is_kernel(r, &kernel) &&
	       (!request_string(r, "domain") || request_channel_is_of(r, c, kernel));
}

enum outcome run_enable_channel(struct request *r)
{
	const char *name = request_string(r, "channel");
	struct channel *c = channel_find(r->session, name);
	struct option_values values;
	bool kernel;

	if (!request_is_kernel(r, &kernel) || !take_options(r, &values) ||
		(kernel && !request_kernel_opens(r)))
		return REFUSED;
	if (c)
		return request_channel_is_meant(r, c) ? reenable_channel(r, c, values.given)
						      : REFUSED;
	c = request_make_channel(r, name);
	if (!c)
		return REFUSED;
	if (kernel)
		kernel_channel_init(c);
	if (!may_have_options(r, c, &values)) {
		channel_free(c);
		return REFUSED;
	}
	options_apply(c, &values);
	if (c->buffers == BUFFERS_THREAD && !gives(&values, "subbuf-size"))
		c->subbuf_size = THREAD_SUBBUF_SIZE;
	/* A size that the user gives is the size of the buffers. */
	if ((gives(&values, "subbuf-size") || gives(&values, "num-subbuf")) &&
		!gives(&values, "burst-size"))
		c->burst_size = 0;
	channel_add(c);
	note_options(r, c, &values);
	reply_add(r, "channel", report_channel(c));
	return DONE;
}

const char *request_channel_meant(const struct session *s, const char *name)
{
	const struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		if (strcmp(c->name, name) && name_is_meant(name, c->name))
			return c->name;
	return NULL;
}

struct channel *request_channel(struct request *r)
{
	const char *name = request_string(r, "channel"), *near;
	struct channel *c;

	name = name ? name : DEFAULT_CHANNEL;
	c = channel_find(r->session, name);
	if (c)
		return c;
	near = request_channel_meant(r->session, name);
	request_refuse(r, "not-found", "session '%s' has no channel '%s'%s%s%s", r->session->name,
		name, near ? ": did you mean '" : "", near ? near : ": 'kymo status' shows them",
		near ? "'?" : "");
	return NULL;
}

enum outcome answer_when_unmapped(struct request *r, struct channel *c)
{
	if (c->domain == DOMAIN_KERNEL)
		return answer_when_kernel_ended(r, c);
	apps_unmap_unwanted(c, request_barrier(r));
	return request_await_peers(r, APP_ANSWER_NS, request_outcome);
}

enum outcome run_disable_channel(struct request *r)
{
	struct channel *c = request_channel(r);

	if (!c || !request_channel_is_meant(r, c))
		return REFUSED;
	channel_enable(c, false);
	reply_add(r, "channel", report_channel(c));
	return answer_when_unmapped(r, c);
}

/* Returns for which buffers an option is that existing buffers do not follow. */
static const char *later_buffers(const struct channel *c)
{
	if (c->domain == DOMAIN_KERNEL)
		return "a channel of kernel events makes no others: make another channel";
	return c->buffers == BUFFERS_PROCESS
		       ? "it is for buffers that are made from now on, as each application that starts has its own"
		       : "it is for buffers that are made from now on, as applications of other users need them";
}

/* Applies options, and sends what has changed to applications and consumer. */
static void set_options(struct request *r, struct channel *c, const struct option_values *values)
{
	bool was_separate = c->separate_conflicts;

	for (const struct option *o = channel_options; o->key; o++)
		if (o->effect == OPTION_NEW_BUFFERS && option_is_changed(c, o, values) &&
			channel_has_buffers(c))
			reply_note(r, "channel '%s': its buffers keep the %s that they have; %s",
				c->name, o->key, later_buffers(c));
	channel_set_options(c, values);
	note_options(r, c, values);
	apps_send_blocking(c);
	if (c->separate_conflicts && !was_separate)
		apps_renew_channel(c, request_barrier(r)); /* what was refused is recorded now */
	consumer_send_timers(&recording_of(c->session)->consumer, c);
}

/* Sets options of one channel, or of all. Without options, the reply has their values. */
enum outcome run_set(struct request *r)
{
	const struct channel *only = NULL;
	struct option_values values;
	struct json_object *report;
	struct channel *c;

	if (!take_options(r, &values))
		return REFUSED;
	if (request_string(r, "channel") && !(only = request_channel(r)))
		return REFUSED;
	if (ky_list_empty(&r->session->channels))
		return request_refuse(r, "not-found",
			"session '%s' has no channel yet: 'kymo enable-channel NAME' makes one",
			r->session->name);
	ky_list_foreach (c, &r->session->channels, node)
		if ((!only || c == only) && !may_have_options(r, c, &values))
			return REFUSED;
	ky_list_foreach (c, &r->session->channels, node) {
		if (only && c != only)
			continue;
		if (values.given)
			set_options(r, c, &values);
		report = report_channel(c);
		json_add(report, "options", report_options(c));
		reply_add_to(r, "channels", report);
	}
	return request_await_peers(r, APP_ANSWER_NS, request_outcome);
}
