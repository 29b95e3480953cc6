/* SPDX-License-Identifier: MIT */
/*
 * Events that applications have but cannot record. Sessions whose rules match them have a notice,
 * which does not name the process: so a thousand processes of one program give one.
 */
#include "base/glob.h"
#include "sessiond/peers/app.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/recording.h"

#define EVENT_MAX 256u
#define WHY_MAX	  192u

struct left_out {
	struct ky_list node;
	char event[EVENT_MAX], why[WHY_MAX];
};

/* Copies a text of the application's, for people to read: replaces all but plain characters. */
static void copy_plain(char *to, size_t size, const char *from)
{
	size_t n;

	for (n = 0; from[n] && n < size - 1; n++)
		to[n] = from[n] >= ' ' && from[n] < 0x7f ? from[n] : '?';
	to[n] = '\0';
}

/* event: a name, or the begin of names and a star. */
static bool is_wanted(const struct channel *c, const char *event)
{
	const size_t n = strlen(event);
	const size_t begin = n && event[n - 1] == '*' ? n - 1 : n + 1;
	const struct rule *r;

	ky_list_foreach (r, &c->rules, node)
		if (r->enabled &&
			(ky_glob_match(r->pattern, event) || !strncmp(r->pattern, event, begin)))
			return true;
	return false;
}

static void note_one(const struct app *a, const struct left_out *l, const struct channel *c)
{
	if (is_wanted(c, l->event))
		session_notice(c->session, "application %s: '%s' is not recorded: %s", a->name,
			l->event, l->why);
}

void app_note_left_out(const struct app *a, const struct channel *c)
{
	const struct left_out *l;

	ky_list_foreach (l, &a->left_out, node)
		note_one(a, l, c);
}

static bool is_noted(const struct app *a, const struct left_out *like)
{
	const struct left_out *l;

	ky_list_foreach (l, &a->left_out, node)
		if (!strcmp(l->event, like->event) && !strcmp(l->why, like->why))
			return true;
	return false;
}

int app_add_left_out(struct app *a, const char *event, const char *why)
{
	const struct session *s;
	const struct channel *c;
	struct left_out *l, copy;

	/* Each is matched when a rule is added: that must be quick. */
	if (a->user->n_left_out >= USER_LEFT_OUT_MAX)
		return 0;
	copy_plain(copy.event, sizeof(copy.event), event);
	copy_plain(copy.why, sizeof(copy.why), why);
	if (is_noted(a, &copy))
		return 0;
	if (user_charge(a->user, sizeof(*l)) < 0)
		return -EDQUOT;
	l = malloc(sizeof(*l));
	if (!l) {
		user_discharge(a->user, sizeof(*l));
		return -ENOMEM;
	}
	*l = copy;
	ky_list_append(&a->left_out, &l->node);
	a->user->n_left_out++;
	ky_list_foreach (s, &a->env->sessions, node)
		ky_list_foreach (c, &s->channels, node)
			if (channel_is_active(c) && app_can_be_recorded(a, c->session))
				note_one(a, l, c);
	return 0;
}

void app_free_left_out(struct app *a)
{
	struct left_out *l, *tmp;

	ky_list_foreach_safe (l, tmp, &a->left_out, node) {
		ky_list_remove(&l->node);
		a->user->n_left_out--;
		user_discharge(a->user, sizeof(*l));
		free(l);
	}
}
