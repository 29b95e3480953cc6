/* SPDX-License-Identifier: MIT */
/* A list that a message has, while it is being written. */
#ifndef SESSIOND_PEERS_MESSAGE_LIST_H
#define SESSIOND_PEERS_MESSAGE_LIST_H

#include "proto/wire.h"

/* Room for lists in a message, beside its other fields. */
#define LIST_MAX (KY_MSG_MAX - 64)

/* A message to be, and the list in it. */
struct list {
	uint8_t buf[LIST_MAX];
	struct ky_writer w;
	uint32_t n;
};

static inline void list_clear(struct list *l)
{
	l->w = (struct ky_writer){.buf = l->buf, .cap = sizeof(l->buf)};
	l->n = 0;
}

static inline struct ky_bytes list_bytes(const struct list *l)
{
	return (struct ky_bytes){.data = l->buf, .len = (uint32_t)l->w.len};
}

#endif
