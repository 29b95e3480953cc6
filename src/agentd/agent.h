/* SPDX-License-Identifier: MIT */
/*
 * The protocol of LTTng-UST's agents (docs/agents.md), for one connection. Pure: bytes in, bytes
 * out.
 *
 * An agent is a library in a Python or Java program that records the messages of the program's
 * loggers as events. It registers its domain, then obeys commands, one at a time.
 */
#ifndef AGENTD_AGENT_H
#define AGENTD_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define AGENT_OUT_MAX 512 /* bytes that agent_command appends at most */

enum agent_state {
	AGENT_NEW,	  /* has not registered */
	AGENT_REGISTERED, /* waits for the end of its registration */
	AGENT_READY,
	AGENT_BUSY,   /* has not replied to a command */
	AGENT_LISTING /* likewise; the command is the one that lists loggers */
};

/* The list of loggers that was requested from an agent. */
enum agent_list {
	AGENT_LIST_NONE, /* none was requested, or it was read */
	AGENT_LIST_DUE,	 /* the command is sent when the agent has replied to the last one */
	AGENT_LIST_ASKED,
	AGENT_LIST_HERE, /* names has it */
	AGENT_LIST_FAILED
};

struct agent {
	enum agent_state state;
	uint32_t domain; /* enum agent_domain, or unknown */
	uint32_t pid;	 /* as the agent reports it */
	bool welcomed;	 /* knows that its registration has ended */
	bool enabled;	 /* records messages */
	enum agent_list list;
	struct ky_buf names; /* of its loggers; each ends with NUL, but for one that is cut */
	uint32_t names_left; /* bytes of the names that are still to come */
	unsigned char in[16];
	size_t n_in;
};

/*
 * Handles received bytes. Returns 0, -EPROTO if these are not of an agent, or -ENOTSUP if the agent
 * speaks another version of the protocol.
 */
int agent_receive(struct agent *a, const unsigned char *p, size_t n);
/*
 * Requests the agent's loggers: names has them when list is AGENT_LIST_HERE. It keeps the first max
 * bytes of their names (not 0), and names.error is set if there are more. Does nothing if a list is
 * under way.
 */
void agent_ask_list(struct agent *a, size_t max);
/* Frees the names of loggers. A list that is still to come is dropped when it comes. */
void agent_end_list(struct agent *a);
/*
 * Stores the next command in out, if one is due and the agent has replied to the last one. wanted:
 * the agent is to record. Returns the number of bytes, or 0. Call it until it returns 0.
 */
size_t agent_command(struct agent *a, bool wanted, unsigned char out[AGENT_OUT_MAX]);

#endif
