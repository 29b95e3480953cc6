/* SPDX-License-Identifier: MIT */
#include "agentd/agent.h"

#include <errno.h>

#include "base/util.h"

#define PROTOCOL_MAJOR 2
#define NAME_LEN       256
#define ALL_LOGGERS    "*"

enum command { COMMAND_ENABLE = 2, COMMAND_DISABLE = 3, COMMAND_REGISTERED = 4 };

static uint32_t load_u32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static unsigned char *store_u32(unsigned char *p, uint32_t value)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		*p++ = (unsigned char)(value >> shift);
	return p;
}

static size_t message_size(const struct agent *a)
{
	return a->state == AGENT_NEW ? 16 : 4;
}

/* Handles a whole message: the registration, or the status of a command, which does not matter. */
static int handle_message(struct agent *a)
{
	if (a->state == AGENT_BUSY) {
		a->state = a->welcomed ? AGENT_READY : AGENT_REGISTERED;
		return 0;
	}
	if (a->state != AGENT_NEW)
		return -EPROTO;
	a->domain = load_u32(a->in);
	a->pid = load_u32(a->in + 4);
	a->state = AGENT_REGISTERED;
	return load_u32(a->in + 8) == PROTOCOL_MAJOR ? 0 : -ENOTSUP;
}

int agent_receive(struct agent *a, const unsigned char *p, size_t n)
{
	int ret = 0;

	for (; n && !ret; n--) {
		a->in[a->n_in++] = *p++;
		if (a->n_in < message_size(a))
			continue;
		a->n_in = 0;
		ret = handle_message(a);
	}
	return ret;
}

static unsigned char *put_header(unsigned char *p, enum command command, uint32_t size)
{
	p = store_u32(p, 0);
	p = store_u32(p, size);
	p = store_u32(p, command);
	return store_u32(p, 0); /* version of the command */
}

static unsigned char *put_name(unsigned char *p)
{
	memset(p, 0, NAME_LEN);
	memcpy(p, ALL_LOGGERS, strlen(ALL_LOGGERS));
	return p + NAME_LEN;
}

/* The agent passes on all messages: the events' filters select loggers and levels. */
static unsigned char *put_enable(unsigned char *p)
{
	p = put_header(p, COMMAND_ENABLE, 4 + 4 + NAME_LEN + 4);
	p = store_u32(p, 0); /* level */
	p = store_u32(p, 0); /* type of the level: all */
	p = put_name(p);
	return store_u32(p, 0); /* length of a filter */
}

size_t agent_command(struct agent *a, bool wanted, unsigned char out[AGENT_OUT_MAX])
{
	unsigned char *end = out;

	if (a->state == AGENT_NEW || a->state == AGENT_BUSY)
		return 0;
	if (wanted != a->enabled) {
		end = wanted ? put_enable(out)
			     : put_name(put_header(out, COMMAND_DISABLE, NAME_LEN));
		a->enabled = wanted;
		a->state = AGENT_BUSY;
	} else if (!a->welcomed) {
		end = put_header(out, COMMAND_REGISTERED, 0);
		a->welcomed = true;
		a->state = AGENT_READY;
	}
	return (size_t)(end - out);
}
