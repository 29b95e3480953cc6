/* SPDX-License-Identifier: MIT */
#include "agentd/agent.h"

#include <errno.h>

#include "base/util.h"
#include "svc/check.h"

#define PROTOCOL_MAJOR 2
#define NAME_LEN       256
#define ALL_LOGGERS    "*"

#define SUCCESS 1

enum command { COMMAND_LIST = 1, COMMAND_ENABLE, COMMAND_DISABLE, COMMAND_REGISTERED };

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

/* A list has a head: status, size of the names, their number. If it failed, only the status. */
static size_t message_size(const struct agent *a)
{
	if (a->state == AGENT_NEW)
		return 16;
	return a->state == AGENT_LISTING && (a->n_in < 4 || load_u32(a->in) == SUCCESS) ? 12 : 4;
}

static void command_ended(struct agent *a)
{
	a->state = a->welcomed ? AGENT_READY : AGENT_REGISTERED;
}

static void list_ended(struct agent *a, enum agent_list list)
{
	if (a->list == AGENT_LIST_ASKED)
		a->list = list;
	command_ended(a);
}

static void handle_list(struct agent *a)
{
	if (load_u32(a->in) != SUCCESS) {
		list_ended(a, AGENT_LIST_FAILED);
		return;
	}
	a->names_left = load_u32(a->in + 4);
	if (!a->names_left)
		list_ended(a, AGENT_LIST_HERE);
}

/* Handles a whole message: the registration, or the reply to a command. */
static int handle_message(struct agent *a)
{
	if (a->state == AGENT_BUSY) { /* the status does not matter */
		command_ended(a);
		return 0;
	}
	if (a->state == AGENT_LISTING) {
		handle_list(a);
		return 0;
	}
	if (a->state != AGENT_NEW)
		return -EPROTO;
	a->domain = load_u32(a->in);
	a->pid = load_u32(a->in + 4);
	a->state = AGENT_REGISTERED;
	return load_u32(a->in + 8) == PROTOCOL_MAJOR ? 0 : -ENOTSUP;
}

/* Keeps names, while there is room for them. Returns the number of bytes that were names. */
static size_t receive_names(struct agent *a, const unsigned char *p, size_t n)
{
	const size_t used = KY_MIN(n, (size_t)a->names_left);

	if (a->list == AGENT_LIST_ASKED && !a->names.error) {
		const size_t room = a->names.max - a->names.len, kept = KY_MIN(used, room);

		ky_buf_append(&a->names, p, kept);
		if (kept < used)
			a->names.error = -EMSGSIZE;
	}
	KY_CHECK(used <= a->names_left);
	a->names_left -= (uint32_t)used;
	if (!a->names_left)
		list_ended(a, AGENT_LIST_HERE);
	return used;
}

int agent_receive(struct agent *a, const unsigned char *p, size_t n)
{
	int ret = 0;

	while (n && !ret) {
		size_t used = 1;

		if (a->names_left) {
			used = receive_names(a, p, n);
		} else {
			KY_CHECK(a->n_in < sizeof(a->in));
			a->in[a->n_in++] = *p;
			if (a->n_in >= message_size(a)) {
				a->n_in = 0;
				ret = handle_message(a);
			}
		}
		p += used;
		n -= used;
	}
	return ret;
}

void agent_ask_list(struct agent *a, size_t max)
{
	if (a->list == AGENT_LIST_DUE || a->list == AGENT_LIST_ASKED)
		return;
	ky_buf_deinit(&a->names);
	a->names.max = max;
	a->list = AGENT_LIST_DUE;
}

void agent_end_list(struct agent *a)
{
	ky_buf_deinit(&a->names);
	a->list = AGENT_LIST_NONE;
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

	if (a->state != AGENT_REGISTERED && a->state != AGENT_READY)
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
	} else if (a->list == AGENT_LIST_DUE) {
		end = put_header(out, COMMAND_LIST, 0);
		a->list = AGENT_LIST_ASKED;
		a->state = AGENT_LISTING;
	}
	return (size_t)(end - out);
}
