/* SPDX-License-Identifier: MIT */
/*
 * Messages between the session daemon and its child kymo-agentd (docs/agents.md), through a
 * SOCK_SEQPACKET pair. Both are of one build.
 */
#ifndef ABI_AGENTS_H
#define ABI_AGENTS_H

#include <stdint.h>

/* LTTng's numbers of domains. */
enum agent_domain { AGENT_JUL = 3, AGENT_LOG4J = 4, AGENT_PYTHON = 5, AGENT_LOG4J2 = 6 };

#define AGENT_ALL_USERS UINT32_MAX
#define AGENT_WANTS_MAX 4096u

/* Each message begins with its kind, 4 bytes. */
enum agent_message {
	/*
	 * From the daemon: struct agent_want follow, which replace the previous ones. None:
	 * kymo-agentd removes its port, and exits. If the connection ends without that, the daemon
	 * died: the port's number stays in its file, and the successor's kymo-agentd uses it again.
	 */
	AGENT_WANTS,
	/* From the daemon, without more: requests the loggers of all agents. */
	AGENT_LIST,
	/* From kymo-agentd, once: its port is open. Or a text follows: why it cannot serve. */
	AGENT_IS_READY,
	AGENT_CANNOT_SERVE,
	/* From kymo-agentd: struct agent_loggers follows. An agent has one or more. */
	AGENT_LOGGERS,
	AGENT_LISTED /* the end of the list */
};

struct agent_want {
	uint32_t domain;
	uint32_t uid; /* or AGENT_ALL_USERS */
};

#define AGENT_NAMES_SIZE 16384u /* of the names in a message */
#define AGENT_TEXT_MAX	 256
/* How long kymo-agentd waits for an agent's list. */
#define AGENT_LIST_MS 1000u

/* An agent's answer to the request for its loggers. */
enum agent_answer {
	AGENT_ANSWERED,
	AGENT_ANSWERED_MORE, /* names were left out, because there are too many */
	AGENT_SILENT
};

/* The names follow, each with NUL, as many as have room. */
struct agent_loggers {
	uint32_t domain;
	uint32_t uid;
	uint32_t pid;	 /* as the agent reports it */
	uint32_t answer; /* enum agent_answer */
};

#endif
