/* SPDX-License-Identifier: MIT */
/*
 * The hosts of a fleet, and what each of them answers to a request. A host is known by its
 * announcement, so one that does not answer can be named.
 */
#ifndef FLEET_HOSTS_H
#define FLEET_HOSTS_H

#include "fleet/link.h"

struct host {
	char name[FLEET_HOST_MAX + 1];
	int64_t seen_ns;	      /* when it announced itself last; 0: never */
	bool has_identity;	      /* in the directory of the fleet */
	bool is_absent;		      /* has an identity, and has not announced itself */
	struct kymo_value *announced; /* owned, or NULL */
	struct kymo_value *answer;    /* owned, or NULL */
	/* Agents that have answered. One that is restarted has a new number. 0: none yet */
	uint64_t agents[2];
	bool is_double; /* two agents answer in turn */
	/* Its clocks at a moment of our own wall clock, which is right within error_ns. */
	uint64_t counter, monotonic;
	int64_t at_ns, error_ns; /* error_ns -1: not measured */
};

struct hosts {
	struct host *v; /* owned, by name */
	size_t n;
};

/* Reads the announcements. Returns 0 or -errno, with the link's `why`. */
int hosts_load(struct hosts *h, struct link *l);
/*
 * Adds the hosts that `setup` has made, and that have not announced themselves: each has a
 * directory in this one, which need not exist. Requests wait little for them. Returns 0 or -errno.
 */
int hosts_add_absent(struct hosts *h, const char *path);
void hosts_deinit(struct hosts *h);
struct host *hosts_get(struct hosts *h, const char *name);

/*
 * Asks all hosts, until all that are known have answered, or the time is over. The request gets an
 * identifier. A host that missed it is asked again; hosts carry a request out once. Returns 0 or
 * -errno.
 */
int hosts_ask(struct hosts *h, struct link *l, const char *what, struct kymo_value *request,
	uint64_t timeout_us);
/* Measures the clocks of those that have answered. Returns 0 or -errno. */
int hosts_measure(struct hosts *h, struct link *l);

/* The wall clock. */
int64_t hosts_now_ns(void);

#endif
