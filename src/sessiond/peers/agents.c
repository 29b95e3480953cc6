/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/agents.h"

#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "sessiond/model/channel.h"
#include "sessiond/model/session.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/program.h"
#include "sessiond/peers/rundir.h"
#include "svc/log.h"

#define NAME	    "agentd"
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

// ---- the process

static void agents_finish(struct agents *a, enum agents_state state)
{
	a->state = state;
	if (state == AGENTS_READY)
		a->trouble[0] = '\0';
	ticket_done_all(&a->tickets);
}

static void agents_disconnect(struct agents *a)
{
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

static void agents_readable(struct ky_watch *w, uint32_t events)
{
	struct agents *a = ky_container_of(w, struct agents, watch);
	char text[AGENT_TEXT_MAX];
	ssize_t n = recv(a->fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	text[n > 0 ? n : 0] = '\0';
	if (!strcmp(text, AGENT_IS_READY))
		agents_finish(a, AGENTS_READY);
	else
		agents_fail(a, *text ? text : "kymo-" NAME " ended");
}

/* Returns the file where programs of this daemon look for the port. */
static int find_file(const struct env *e, char *buf, size_t size)
{
	const char *home = getenv("LTTNG_HOME");
	int n;

	if (e->run->global && !getenv("KYMO_RUNDIR")) {
		snprintf(buf, size, ROOT_FILE);
		return 0;
	}
	home = home ? home : getenv("HOME");
	n = snprintf(buf, size, "%s" PORT_FILE, home ? home : "");
	return home && n > 0 && (size_t)n < size ? 0 : -ENOENT;
}

static void agents_send(struct agents *a)
{
	size_t size = a->n_wants * sizeof(a->wants[0]);

	/* If the buffer is full, the process hangs: it is killed, and started again. */
	if (a->fd >= 0 && send(a->fd, a->wants, size ? size : 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		kill(a->pid, SIGKILL);
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
		agents_send(a);
	}
}

static void agents_end(struct agents *a)
{
	agents_send(a); /* nothing: it exits */
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
		agents_send(a);
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
		agents_readable(&a->watch, EPOLLIN); /* its last words */
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

// ---- the rules

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

void agents_init(struct agents *a, struct env *e)
{
	*a = (struct agents){.env = e, .fd = -1};
	ky_list_init(&a->tickets);
	ky_timer_init(&a->timer, begin_again);
}

void agents_start(struct agents *a)
{
	a->serving = true;
	agents_review(a);
}

/* The process closes its end when it exits, within milliseconds. */
static void agents_wait(struct agents *a)
{
	struct pollfd p = {.fd = a->fd};

	if (a->fd >= 0 && poll(&p, 1, EXIT_MS) > 0)
		waitpid(a->pid, NULL, 0);
}

void agents_deinit(struct agents *a, bool keep)
{
	a->serving = false;
	a->n_wants = 0;
	ky_timer_cancel(&a->timer);
	if (!keep) {
		agents_send(a);
		agents_wait(a);
	}
	agents_disconnect(a);
	ticket_done_all(&a->tickets);
}
