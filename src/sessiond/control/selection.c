/* SPDX-License-Identifier: MIT */
#include "sessiond/control/selection.h"

struct selection {
	struct ky_list node; /* in control->selections */
	uid_t uid;
	struct session *session;
	uint64_t when; /* CLOCK_MONOTONIC */
};

static struct selection *selection_of(const struct control *k, uid_t uid)
{
	struct selection *sel;

	ky_list_foreach (sel, &k->selections, node)
		if (sel->uid == uid)
			return sel;
	return NULL;
}

struct session *selection_find(const struct control *k, uid_t uid)
{
	struct selection *sel = selection_of(k, uid);

	return sel ? sel->session : NULL;
}

void selection_set(struct control *k, uid_t uid, struct session *s, uint64_t when)
{
	struct selection *sel = selection_of(k, uid);

	if (!sel) {
		sel = calloc(1, sizeof(*sel));
		if (!sel)
			return;
		sel->uid = uid;
		ky_list_append(&k->selections, &sel->node);
	}
	if (sel->when > when)
		return;
	sel->session = s;
	sel->when = when;
	OBSERVE(k->env, session_selected, s, uid, when);
}

void selections_report(const struct control *k, struct session *s)
{
	struct selection *sel;

	ky_list_foreach (sel, &k->selections, node)
		if (sel->session == s)
			OBSERVE(k->env, session_selected, s, sel->uid, sel->when);
}

void selections_forget(struct control *k, const struct session *s)
{
	struct selection *sel, *tmp;

	ky_list_foreach_safe (sel, tmp, &k->selections, node) {
		if (sel->session != s)
			continue;
		ky_list_remove(&sel->node);
		free(sel);
	}
}
