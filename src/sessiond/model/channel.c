/* SPDX-License-Identifier: MIT */
#include "sessiond/model/channel.h"

#include "sessiond/model/session.h"
#include "svc/check.h"

struct channel *channel_new(struct session *s, const char *name)
{
	struct channel *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->name = strdup(name);
	if (!c->name) {
		free(c);
		return NULL;
	}
	c->session = s;
	c->enabled = true;
	c->overwrite = s->snapshot;
	c->buffers = s->env->all_users ? BUFFERS_AUTO : BUFFERS_CPU;
	c->subbuf_size = DEFAULT_SUBBUF_SIZE;
	c->num_subbuf = DEFAULT_NUM_SUBBUF;
	c->burst_size = DEFAULT_BURST_SIZE;
	c->pool_size = DEFAULT_POOL_SIZE;
	c->switch_timer_us = s->switch_us ? s->switch_us : DEFAULT_SWITCH_US;
	ky_list_init(&c->rules);
	ky_list_init(&c->sets);
	ky_list_init(&c->kinds);
	ky_list_init(&c->node);
	return c;
}

void channel_set_kernel(struct channel *c)
{
	c->domain = DOMAIN_KERNEL;
	c->buffers = BUFFERS_CPU;
}

void channel_add(struct channel *c)
{
	ky_list_append(&c->session->channels, &c->node);
	c->session->n_channels++;
	OBSERVE(c->session->env, channel_changed, c);
	if (c->n_contexts)
		OBSERVE(c->session->env, contexts_added, c);
}

void channel_enable(struct channel *c, bool enable)
{
	c->enabled = enable;
	OBSERVE(c->session->env, channel_changed, c);
}

struct channel *channel_find(const struct session *s, const char *name)
{
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

struct rule *channel_find_rule(const struct channel *c, const struct rule *like)
{
	struct rule *r;

	ky_list_foreach (r, &c->rules, node)
		if (rule_equal(r, like))
			return r;
	return NULL;
}

static unsigned count_rules(struct rule *const *rules)
{
	unsigned n = 0;

	while (rules[n])
		n++;
	return n;
}

static void enable_rule(struct channel *c, struct rule *rule)
{
	struct rule *same = channel_find_rule(c, rule);

	if (same) {
		same->enabled = true;
		rule_free(rule);
		rule = same;
	} else {
		ky_list_append(&c->rules, &rule->node);
		c->n_rules++;
	}
	OBSERVE(c->session->env, rule_changed, c, rule);
}

static void free_rule(struct channel *c, struct rule *r)
{
	KY_CHECK(c->n_rules > 0);
	ky_list_remove(&r->node);
	c->n_rules--;
	rule_free(r);
}

void channel_disable_rule(struct channel *c, struct rule *r, bool remove)
{
	r->enabled = false;
	if (!remove) {
		OBSERVE(c->session->env, rule_changed, c, r);
		return;
	}
	OBSERVE(c->session->env, rule_removed, c, r);
	free_rule(c, r);
}

void channel_rules_changed(struct channel *c)
{
	OBSERVE(c->session->env, rules_changed, c);
}

int channel_enable_rules(struct channel *c, struct rule **rules)
{
	unsigned n = count_rules(rules), n_new = 0;

	for (unsigned i = 0; i < n; i++)
		n_new += !channel_find_rule(c, rules[i]);
	if (n_new > RULES_MAX - c->n_rules)
		return -EDQUOT;
	for (unsigned i = 0; i < n; i++) {
		enable_rule(c, rules[i]);
		rules[i] = NULL;
	}
	channel_rules_changed(c);
	return 0;
}

bool channel_is_active(const struct channel *c)
{
	struct rule *r;

	ky_list_foreach (r, &c->rules, node)
		if (c->enabled && r->enabled)
			return true;
	return false;
}

bool channel_wants(const struct channel *c, const struct event_desc *d)
{
	struct rule *r;

	ky_list_foreach (r, &c->rules, node)
		if (c->enabled && r->enabled && rule_wants(r, d))
			return true;
	return false;
}

uint32_t channel_filters(const struct channel *c, const struct event_desc *d,
	const struct filter *ret_filters[RULES_MAX])
{
	struct rule *r;
	uint32_t n = 0;

	ky_list_foreach (r, &c->rules, node) {
		if (!r->enabled || !rule_wants(r, d))
			continue;
		if (!r->filter)
			return 0;
		ret_filters[n++] = r->filter;
	}
	return n;
}

struct channel *channel_free(struct channel *c)
{
	struct rule *r, *tmp;

	if (!c)
		return NULL;
	KY_CHECK(ky_list_empty(&c->sets));
	ky_list_foreach_safe (r, tmp, &c->rules, node)
		free_rule(c, r);
	if (!ky_list_empty(&c->node))
		c->session->n_channels--;
	ky_list_remove(&c->node);
	free(c->contexts);
	free(c->name);
	free(c);
	return NULL;
}

bool session_has_enabled_rule(const struct session *s)
{
	const struct channel *c;
	const struct rule *r;

	ky_list_foreach (c, &s->channels, node)
		ky_list_foreach (r, &c->rules, node)
			if (r->enabled)
				return true;
	return false;
}
