/* SPDX-License-Identifier: MIT */
#include "sessiond/control/selection.h"

struct selection {
	struct ky_list node; /* in daemon->selections */
	uid_t uid;
	struct session *session;
	uint64_t when; /* CLOCK_MONOTONIC */
};

static struct selection *selection_of(const struct daemon *d, uid_t uid)
{
	struct selection *sel;

	ky_list_foreach (sel, &d->selections, node)
		if (sel->uid == uid)
			return sel;
	return NULL;
}

struct session *selection_find(const struct daemon *d, uid_t uid)
{
	struct selection *sel = selection_of(d, uid);

	return sel ? sel->session : NULL;
}

void selection_set(struct daemon *d, uid_t uid, struct session *s, uint64_t when)
{
	struct selection *sel = selection_of(d, uid);

	if (!sel) {
		sel = calloc(1, sizeof(*sel));
		if (!sel)
			return;
		sel->uid = uid;
		ky_list_append(&d->selections, &sel->node);
	}
	if (sel->when <= when) {
		sel->session = s;
		sel->when = when;
	}
}

void selections_forget(struct daemon *d, const struct session *s)
{
	struct selection *sel, *tmp;

	ky_list_foreach_safe (sel, tmp, &d->selections, node) {
		if (sel->session != s)
			continue;
		ky_list_remove(&sel->node);
		free(sel);
	}
}
