/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes what an agent sends: registration, replies, lists of loggers. The first bytes steer: how
 * the rest is divided, and what is requested in between. The result must not depend on how bytes
 * were divided, the bounds hold, and a command follows only the reply to the last one.
 */
#include "agentd/agent.h"

#include <stdlib.h>

#define STEER 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* Sends what is due. Returns whether the agent has to reply. */
static bool command(struct agent *a, bool wanted)
{
	unsigned char out[AGENT_OUT_MAX];
	size_t n;
	bool waits = false;

	while ((n = agent_command(a, wanted, out))) {
		require(!waits && n >= 16 && n <= sizeof(out) && a->state != AGENT_NEW);
		waits = a->state == AGENT_BUSY || a->state == AGENT_LISTING;
		require(out[11] >= 1 && out[11] <= 4 && waits == (out[11] != 4));
	}
	return waits;
}

/* Requests according to a byte of the input, before its byte at this place arrives. */
static void steer(struct agent *a, const uint8_t *steering, size_t at)
{
	const uint8_t s = steering[at % STEER];

	if (at % (1u + s % 16u))
		return;
	if (s & 64)
		agent_ask_list(a, 1 + s);
	if (s & 128)
		agent_end_list(a);
	command(a, s & 32);
}

static int receive(struct agent *a, const uint8_t *data, size_t size, size_t part)
{
	int ret = 0;

	/* A request may come between any two bytes: so the first run receives one at a time. */
	for (size_t i = STEER, n; i < size && !ret; i += n) {
		n = 1;
		steer(a, data, i);
		while (part && n < part && i + n < size &&
			(i + n) % (1u + data[(i + n) % STEER] % 16u))
			n++;
		ret = agent_receive(a, data + i, n);
		require(a->names.len <= (a->names.max ? a->names.max : 0));
		require(a->list == AGENT_LIST_NONE || a->names.max);
	}
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct agent a = {0}, b = {0};
	int ret_a, ret_b;

	if (size < STEER)
		return 0;
	ret_a = receive(&a, data, size, 0);
	ret_b = receive(&b, data, size, 7);
	require((ret_a < 0) == (ret_b < 0));
	if (!ret_a) {
		require(a.state == b.state && a.list == b.list && a.names_left == b.names_left);
		require(a.names.len == b.names.len && a.names.error == b.names.error);
		require(!a.names.len || !memcmp(a.names.data, b.names.data, a.names.len));
	}
	agent_end_list(&a);
	agent_end_list(&b);
	return 0;
}
