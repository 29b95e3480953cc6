/* SPDX-License-Identifier: MIT */
/*
 * The server of LTTng-UST's agents, kymo-agentd (docs/agents.md): a child that runs while a session
 * has an enabled rule for events of agents. So its port exists only while somebody uses it.
 *
 * The daemon sends it the domains and users of these rules, and never waits for it: a command that
 * enables such a rule has a ticket until the port is ready, or cannot be opened.
 */
#ifndef SESSIOND_PEERS_AGENTS_H
#define SESSIOND_PEERS_AGENTS_H

#include "abi/agents.h"
#include "sessiond/peers/barrier.h"

struct channel;
struct env;

enum agents_state {
	AGENTS_NONE,
	AGENTS_STARTING,
	AGENTS_READY,
	AGENTS_ENDING, /* the process exits; another one may be wanted already */
	AGENTS_FAILED, /* to be started again */
};

/* The loggers of an agent, as it replied to agents_ask(). */
struct agent_reply {
	struct ky_list node;
	struct agent_loggers head;
	size_t n;
	char names[]; /* n bytes: each ends with NUL */
};

struct agents {
	struct env *env;
	bool serving; /* the daemon serves: before that, no process is started */
	enum agents_state state;
	pid_t pid; /* 0: no process */
	int fd;	   /* the other end of its standard input */
	struct ky_watch watch;
	struct ky_timer timer;
	struct ky_list tickets;
	struct ky_list asked; /* tickets of a list of loggers that is under way */
	/* struct agent_reply: of the last list, and of the one that is under way */
	struct ky_list replies, next_replies;
	struct agent_want wants[AGENT_WANTS_MAX];
	size_t n_wants;
	char trouble[AGENT_TEXT_MAX]; /* why agents cannot connect; "": they can */
};

void agents_init(struct agents *a, struct env *e);
/* Starts the process if it is wanted. Called once, when the daemon serves. */
void agents_start(struct agents *a);
/* Ends the process. keep: the port stays, for a successor of the daemon. */
void agents_deinit(struct agents *a, bool keep);
/* Checks whether an exited child was the process. */
void agents_reap(struct agents *a);
/* Handles a change of the channel's rules. */
void agents_rules_changed(struct channel *c);
/* Handles the end of a session. */
void agents_session_ends(struct agents *a);
/* Makes b (not armed yet) wait for the port if it is being opened. */
void agents_await(struct agents *a, struct barrier *b);
/*
 * Requests the loggers of all connected agents, which replies has when b (not armed yet) completes.
 * An agent may have several replies, one after another. If nobody serves agents, replies is empty.
 */
void agents_ask(struct agents *a, struct barrier *b);
/* Returns "python", "jul", "log4j" or "log4j2", or NULL for another number. */
const char *agents_domain_name(uint32_t domain);
/* Returns whether the pattern is for events of agents. */
bool agents_is_pattern(const char *pattern);

#endif
