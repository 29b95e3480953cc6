/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/trigger-messages.h"

#include <stdarg.h>

#include "sessiond/model/contents.h"
#include "sessiond/peers/peers.h"
#include "svc/log.h"

static struct message *message_free(struct message *m)
{
	ky_list_remove(&m->node);
	free(m->session);
	free(m->trigger);
	free(m->when);
	free(m->text);
	free(m->output);
	free(m);
	return NULL;
}

static bool has_all_texts(const struct message *m)
{
	return m->session && m->trigger && m->when && m->text && m->output;
}

/* Drops the user's oldest messages. */
static void limit_messages(struct peers *p, uid_t uid)
{
	struct message *m, *tmp;
	unsigned n = 0;

	ky_list_foreach (m, &p->messages, node)
		n += m->uid == uid;
	ky_list_foreach_safe (m, tmp, &p->messages, node)
		if (n > USER_MESSAGES_MAX && m->uid == uid) {
			message_free(m);
			n--;
		}
}

void message_add(const struct message_source *from, enum message_kind kind, const char *output,
	const char *fmt, ...)
{
	struct env *e = from->session->env;
	struct message *m = calloc(1, sizeof(*m));
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ky_info("session '%s': trigger '%s': %s", from->session->name, from->trigger, text);
	if (!m)
		return;
	*m = (struct message){.kind = kind,
		.uid = from->session->uid,
		.ns = ky_clock_ns(CLOCK_REALTIME),
		.session = strdup(from->session->name),
		.trigger = strdup(from->trigger),
		.when = strdup(from->when),
		.text = strdup(text),
		.output = strdup(output),
		.n_fired = from->n_fired,
		.n_left_out = from->n_left_out};
	ky_list_init(&m->node);
	if (!has_all_texts(m)) {
		message_free(m);
		return;
	}
	m->number = ++e->peers->last_message;
	ky_list_append(&e->peers->messages, &m->node);
	limit_messages(e->peers, m->uid);
	OBSERVE(e, message_added, e);
}

struct message_source message_source_of(const struct trigger *t)
{
	return (struct message_source){.session = t->session,
		.trigger = t->spec.name,
		.when = t->spec.when,
		.n_fired = t->n_fired,
		.n_left_out = t->n_left_out};
}
