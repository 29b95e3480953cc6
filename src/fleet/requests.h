/* SPDX-License-Identifier: MIT */
/*
 * The requests that an agent carries out. A request is from somebody else: each of its members is
 * checked. The session daemon decides what the agent's user may do.
 */
#ifndef FLEET_REQUESTS_H
#define FLEET_REQUESTS_H

#include "fleet/held.h"

#define REQUESTS_KEPT 32u

struct requests {
	const char *host;  /* borrowed */
	struct held *held; /* borrowed */
	/* The last answers: a request that comes again is answered, and not carried out again. */
	struct {
		char id[FLEET_ID_MAX + 1];
		struct kymo_value *answer;
	} kept[REQUESTS_KEPT];
	unsigned next;
	uint64_t agent; /* a random number: two agents of one name have different ones */
};

/*
 * Carries a request out, unless that was done. what: by the subject, which the server has permitted
 * to the command. *ret_answer: borrowed; NULL if it is none that can be answered, or one for
 * another host. Returns its identifier, borrowed from the request, or NULL.
 */
const char *requests_handle(struct requests *r, const char *what, const struct kymo_value *request,
	const struct kymo_value **ret_answer);

/* Returns what this host is and records, for announcements; the caller frees it. */
struct kymo_value *requests_describe(const struct requests *r);

#endif
