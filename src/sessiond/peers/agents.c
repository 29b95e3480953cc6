/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/agents.h"

#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "sessiond/model/channel.h"
#include "sessiond/model/session.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/program.h"
#include "sessiond/peers/rundir.h"
#include "svc/log.h"

#define NAME	    "agentd"
#define ENDED	    "kymo-" NAME " ended"
#define PORT_FILE   "/.lttng/agent.port"
#define ROOT_FILE   "/run/lttng/agent.port"
#define EXIT_MS	    500
#define AT_ONCE_NS  (50 * KY_NS_PER_MS) /* after it was ready */
#define AGAIN_NS    (10000 * KY_NS_PER_MS)
#define ALL_DOMAINS KY_ARRAY_SIZE(domains)

static const struct {
	enum agent_domain number;
	const char *provider;
} domains[] = {
	{AGENT_JUL, "lttng_jul:"},
	{AGENT_LOG4J, "lttng_log4j:"},
	{AGENT_PYTHON, "lttng_python:"},
	{AGENT_LOG4J2, "lttng_log4j2:"},
};

const char *agents_domain_name(uint32_t domain)
{
	static const char *const names[] = {"jul", "log4j", "python", "log4j2"};

	for (size_t i = 0; i < ALL_DOMAINS; i++)
		if (domains[i].number == domain)
			return names[i];
	return NULL;
}

/* Returns the bit of the domain whose events the pattern names, or 0. */
static uint32_t domain_bit(const char *pattern)
{
	for (size_t i = 0; i < ALL_DOMAINS; i++)
		if (!strncmp(pattern, domains[i].provider, strlen(domains[i].provider)))
			return 1u << i;
	return 0;
}

bool agents_is_pattern(const char *pattern)
{
	return domain_bit(pattern) != 0;
}

/* --- the process --- */

static void agents_finish(struct agents *a, enum agents_state state)
{
	a->state = state;
	if (state == AGENTS_READY)
		a->trouble[0] = '\0';
	ticket_done_all(&a->tickets);
}

static void replies_free(struct ky_list *replies)
{
	struct agent_reply *r, *tmp;

	ky_list_foreach_safe (r, tmp, replies, node) {
		ky_list_remove(&r->node);
		free(r);
	}
}

/* The list of loggers has ended: with the process, or because all agents have replied. */
static void listing_ended(struct agents *a)
{
	struct agent_reply *r, *tmp;

	replies_free(&a->replies);
	ky_list_foreach_safe (r, tmp, &a->next_replies, node) {
		ky_list_remove(&r->node);
		ky_list_append(&a->replies, &r->node);
	}
	ticket_done_all(&a->asked);
}

static void agents_disconnect(struct agents *a)
{
	listing_ended(a);
	ky_watch_remove(&a->watch);
	a->fd = ky_close(a->fd);
}

static void agents_fail(struct agents *a, const char *why)
{
	if (strcmp(a->trouble, why) != 0) {
		ky_warning("agents of Python and Java programs cannot connect: %s", why);
		snprintf(a->trouble, sizeof(a->trouble), "%s", why);
	}
	agents_disconnect(a);
	ky_timer_set(&a->env->loop, &a->timer, a->state == AGENTS_READY ? AT_ONCE_NS : AGAIN_NS);
	agents_finish(a, AGENTS_FAILED);
}

static void take_reply(struct agents *a, const struct agent_loggers *head, size_t size)
{
	const size_t n = size - sizeof(*head);
	struct agent_reply *r = malloc(sizeof(*r) + n);

	if (!r)
		return;
	r->head = *head;
	r->n = n;
	memcpy(r->names, head + 1, n);
	ky_list_append(&a->next_replies, &r->node);
}

struct agents_message {
	uint32_t kind;
	union {
		char text[AGENT_TEXT_MAX];
		char loggers[sizeof(struct agent_loggers) + AGENT_NAMES_SIZE];
	};
};

/* size: of what follows the kind. */
static void agents_handle(struct agents *a, struct agents_message *m, size_t size)
{
	struct agent_loggers head;

	if (m->kind == AGENT_IS_READY) {
		agents_finish(a, AGENTS_READY);
	} else if (m->kind == AGENT_LOGGERS && size >= sizeof(head)) {
		take_reply(a, (const struct agent_loggers *)m->loggers, size);
	} else if (m->kind == AGENT_LISTED) {
		listing_ended(a);
	} else {
		m->text[KY_MIN(size, sizeof(m->text) - 1)] = '\0';
		agents_fail(a, m->text);
	}
}

/* Handles a message, or the end. Returns whether there was one. */
static bool agents_receive(struct agents *a)
{
	struct agents_message m;
	ssize_t n = recv(a->fd, &m, sizeof(m), MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return false;
	if (n < (ssize_t)sizeof(m.kind))
		agents_fail(a, ENDED);
	else
		agents_handle(a, &m, (size_t)n - sizeof(m.kind));
	return true;
}

static void agents_readable(struct ky_watch *w, uint32_t events)
{
	agents_receive(ky_container_of(w, struct agents, watch));
}

/* Returns the file where programs of this daemon look for the port. */
static int find_file(const struct env *e, char *buf, size_t size)
{
	const char *home = ky_env("LTTNG_HOME") ?: ky_env("HOME");
	int n;

	if (e->run->global && !ky_env("KYMO_RUNDIR")) {
		snprintf(buf, size, ROOT_FILE);
		return 0;
	}
	n = snprintf(buf, size, "%s" PORT_FILE, home ? home : "");
	return home && n > 0 && (size_t)n < size ? 0 : -ENOENT;
}

static void agents_send(struct agents *a, enum agent_message kind, const void *more, size_t n)
{
	const uint32_t word = kind;
	struct iovec parts[] = {{(void *)&word, sizeof(word)}, {(void *)more, n}};
	const struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};

	/* If the buffer is full, the process hangs: it is killed, and started again. */
	if (a->fd >= 0 && sendmsg(a->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && a->pid)
		kill(a->pid, SIGKILL);
}

static void agents_send_wants(struct agents *a)
{
	agents_send(a, AGENT_WANTS, a->wants, a->n_wants * sizeof(a->wants[0]));
}

static int agents_spawn(struct agents *a)
{
	char path[PATH_MAX], file[PATH_MAX];
	char *argv[] = {(char *)"kymo-" NAME, file, NULL};
	int pair[2], ret;

	if (program_find(NAME, path, sizeof(path)) < 0 || find_file(a->env, file, sizeof(file)) < 0)
		return -ENOENT;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	a->fd = pair[0];
	ret = program_start(path, argv, pair[1], a->env->run->path);
	close(pair[1]);
	if (ret < 0)
		return ret;
	a->pid = ret;
	return ky_watch_add(&a->env->loop, &a->watch, a->fd, EPOLLIN, agents_readable);
}

static void agents_begin(struct agents *a)
{
	int ret = agents_spawn(a);

	ky_timer_cancel(&a->timer);
	a->state = AGENTS_STARTING;
	if (ret < 0) {
		char why[AGENT_TEXT_MAX];

		snprintf(why, sizeof(why), "kymo-" NAME " cannot be started: %s", strerror(-ret));
		agents_fail(a, why);
	} else {
		agents_send_wants(a);
	}
}

static void agents_end(struct agents *a)
{
	agents_send_wants(a); /* nothing: it exits */
	agents_disconnect(a);
	a->trouble[0] = '\0';
	ky_timer_cancel(&a->timer);
	if (a->pid)
		ky_timer_set(&a->env->loop, &a->timer, AGAIN_NS);
	agents_finish(a, a->pid ? AGENTS_ENDING : AGENTS_NONE);
}

static void agents_update(struct agents *a)
{
	const bool has_process = a->state == AGENTS_STARTING || a->state == AGENTS_READY;

	if (!a->serving)
		return;
	if (has_process && a->n_wants)
		agents_send_wants(a);
	else if (a->n_wants && !a->pid && a->state != AGENTS_FAILED)
		agents_begin(a);
	else if (!a->n_wants && a->state != AGENTS_NONE && a->state != AGENTS_ENDING)
		agents_end(a);
}

void agents_reap(struct agents *a)
{
	int status;

	if (!a->pid || waitpid(a->pid, &status, WNOHANG) != a->pid)
		return;
	a->pid = 0;
	if (a->state == AGENTS_ENDING) {
		ky_timer_cancel(&a->timer);
		a->state = AGENTS_NONE;
		agents_update(a);
	} else if (a->state != AGENTS_FAILED && a->state != AGENTS_NONE) {
		while (a->fd >= 0 && agents_receive(a)) /* its last words */
			;
		if (a->fd >= 0)
			agents_fail(a, ENDED);
	}
}

static void begin_again(struct ky_timer *t)
{
	struct agents *a = ky_container_of(t, struct agents, timer);

	if (a->pid)
		kill(a->pid, SIGKILL);
	a->state = AGENTS_ENDING;
	if (!a->pid) {
		a->state = AGENTS_NONE;
		agents_update(a);
	}
}

/* --- the rules --- */

static void add_want(struct agents *a, enum agent_domain domain, uint32_t uid)
{
	for (size_t i = 0; i < a->n_wants; i++)
		if (a->wants[i].domain == domain && a->wants[i].uid == uid)
			return;
	if (a->n_wants < AGENT_WANTS_MAX)
		a->wants[a->n_wants++] = (struct agent_want){domain, uid};
}

static void add_channel(struct agents *a, const struct channel *c)
{
	const struct session *s = c->session;

	for (size_t i = 0; i < ALL_DOMAINS; i++)
		if (c->agent_domains & 1u << i)
			add_want(a, domains[i].number, s->all_uids ? AGENT_ALL_USERS : s->uid);
}

/* Lists what the rules of all sessions want. */
static void agents_review(struct agents *a)
{
	const struct session *s;
	const struct channel *c;

	a->n_wants = 0;
	ky_list_foreach (s, &a->env->sessions, node)
		if (s->state != SESSION_ENDING)
			ky_list_foreach (c, &s->channels, node)
				add_channel(a, c);
	agents_update(a);
}

void agents_rules_changed(struct channel *c)
{
	struct agents *a = c->session->env->peers->agents;
	const struct rule *r;
	uint32_t bits = 0;

	ky_list_foreach (r, &c->rules, node)
		if (r->enabled)
			bits |= domain_bit(r->pattern);
	if (bits == c->agent_domains)
		return;
	c->agent_domains = bits;
	agents_review(a);
}

void agents_session_ends(struct agents *a)
{
	if (a->n_wants)
		agents_review(a);
}

void agents_await(struct agents *a, struct barrier *b)
{
	struct ticket *t = NULL;

	if (a->n_wants && (a->state == AGENTS_STARTING || a->state == AGENTS_ENDING))
		t = ticket_new(&a->tickets, TICKET_ASK, 0, b);
	if (t)
		t->trusted = true;
}

void agents_ask(struct agents *a, struct barrier *b)
{
	const bool under_way = !ky_list_empty(&a->asked);
	struct ticket *t;

	if (a->state != AGENTS_READY) {
		replies_free(&a->replies);
		return;
	}
	t = ticket_new(&a->asked, TICKET_ASK, 0, b);
	if (!t)
		return;
	t->trusted = true;
	if (!under_way) {
		replies_free(&a->next_replies);
		agents_send(a, AGENT_LIST, NULL, 0);
	}
}

void agents_init(struct agents *a, struct env *e)
{
	*a = (struct agents){.env = e, .fd = -1};
	ky_list_init(&a->tickets);
	ky_list_init(&a->asked);
	ky_list_init(&a->replies);
	ky_list_init(&a->next_replies);
	ky_timer_init(&a->timer, begin_again);
}

void agents_start(struct agents *a)
{
	a->serving = true;
	agents_review(a);
}

/* The process exits within milliseconds, unless it is stopped. */
static void agents_wait(const struct agents *a)
{
	for (int ms = 0; a->fd >= 0 && ms < EXIT_MS; ms++)
		if (waitpid(a->pid, NULL, WNOHANG) || poll(NULL, 0, 1) < 0)
			return;
}

void agents_deinit(struct agents *a, bool keep)
{
	a->serving = false;
	a->n_wants = 0;
	ky_timer_cancel(&a->timer);
	if (!keep) {
		agents_send_wants(a);
		agents_wait(a);
	}
	agents_disconnect(a);
	replies_free(&a->replies);
	ticket_done_all(&a->tickets);
}
