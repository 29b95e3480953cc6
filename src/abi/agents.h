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

/*
 * From the daemon: an array of these, which replaces the previous one. An empty array is a message
 * of one byte: kymo-agentd removes its port, and exits. If the connection ends without it, the
 * daemon died: the port's number stays in its file, and the successor's kymo-agentd uses it again.
 */
struct agent_want {
	uint32_t domain;
	uint32_t uid; /* or AGENT_ALL_USERS */
};

/* From kymo-agentd, one message: AGENT_IS_READY, or a text that says why it cannot serve. */
#define AGENT_IS_READY "ready"
#define AGENT_TEXT_MAX 256

#endif
