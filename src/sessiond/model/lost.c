/* SPDX-License-Identifier: MIT */
#include "sessiond/model/lost.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sessiond/model/env.h"
#include "svc/log.h"

#define LOST_MAX 16

static void lost_free(struct lost *l)
{
	ky_list_remove(&l->node);
	free(l->name);
	free(l->why);
	free(l);
}

void lost_add(struct env *e, uid_t uid, const char *name, const char *fmt, ...)
{
	struct lost *l = calloc(1, sizeof(*l)), *tmp;
	unsigned n = 0;
	va_list ap;

	va_start(ap, fmt);
	if (!l || vasprintf(&l->why, fmt, ap) < 0) {
		free(l);
		l = NULL;
	}
	va_end(ap);
	ky_error("%s", l ? l->why : "a session is lost");
	if (!l)
		return;
	l->name = strdup(name);
	l->uid = uid;
	ky_list_append(&e->lost, &l->node);
	ky_list_foreach (l, &e->lost, node)
		n++;
	ky_list_foreach_safe (l, tmp, &e->lost, node)
		if (!l->name || n > LOST_MAX) {
			lost_free(l);
			n--;
		}
}

bool lost_is_known_to(const struct lost *l, uid_t uid)
{
	return !uid || uid == l->uid;
}

const struct lost *lost_find(const struct env *e, uid_t uid, const char *name)
{
	const struct lost *l;

	ky_list_foreach (l, &e->lost, node)
		if (lost_is_known_to(l, uid) && !strcmp(l->name, name))
			return l;
	return NULL;
}

void lost_forget(struct env *e, const char *name)
{
	struct lost *l, *tmp;

	ky_list_foreach_safe (l, tmp, &e->lost, node)
		if (!strcmp(l->name, name))
			lost_free(l);
}

void lost_clear(struct env *e)
{
	struct lost *l, *tmp;

	ky_list_foreach_safe (l, tmp, &e->lost, node)
		lost_free(l);
}
