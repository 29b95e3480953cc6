/* SPDX-License-Identifier: MIT */
/*
 * A connection to the fleet's servers (NATS with JetStream), and the names of what is exchanged
 * there (docs/fleet.md). Messages are JSON objects, except the segments of files.
 *
 * The server knows by its certificate who publishes: HOST in a subject is true.
 */
#ifndef FLEET_LINK_H
#define FLEET_LINK_H

#include <kymo/ctl.h>
#include <nats/nats.h>

#include "fleet/config.h"

#define FLEET_STREAM	   "KYMO"	    /* manifests and notes */
#define FLEET_SHARD	   "KYMO_%u"	    /* segments of the hosts of this shard */
#define FLEET_SEGMENTS	   "kymo.seg.%u.%s" /* their subjects begin with: shard and host */
#define FLEET_HOSTS	   "KV_kymo-hosts"  /* announcements: a key-value store of the engine's */
#define FLEET_HOSTS_PREFIX "$KV.kymo-hosts."
#define FLEET_SERVER_NAME  "nats.kymo"	   /* in the server's certificate */
#define FLEET_ASK	   "kymo.ctl.ask." /* and what is asked */
#define FLEET_SUBJECT_MAX  256u
#define FLEET_STREAM_MAX   16u
#define FLEET_ID_MAX	   40u
#define FLEET_SESSIONS_MAX 64u /* in one request */
#define FLEET_WAIT_MS	   20000
#define FLEET_FILES_MAX	   65535u /* of a host's part of a snapshot */
#define FLEET_WHY_MAX	   512u	  /* of a message that says why something failed */

struct link {
	natsConnection *nc;
	jsCtx *js;
	char name[FLEET_HOST_MAX + 1]; /* ours */
	char why[FLEET_WHY_MAX];       /* of the last failure */
	uint64_t end_ns; /* CLOCK_MONOTONIC: nothing is tried again later; 0: no such end */
	bool has_copies; /* of streams, and we may ask their leader for what a copy lacks */
};

/* A message that a stream keeps. */
struct stored {
	natsMsg *msg;
	uint64_t seq;
	int64_t time_ns; /* when it was stored */
};

/* Connects. Returns 0 or -errno. The connection is made again by itself when it breaks. */
int link_open(struct link *l, const struct fleet_config *c);
void link_close(struct link *l);
/* Notes the failure. Returns -errno: -ETIMEDOUT, -ENOTCONN, or -EIO. */
int link_fail(struct link *l, natsStatus status, const char *what);

/* Allows so much time, in microseconds, and FLEET_WAIT_MS more, until end_ns. */
void link_limit(struct link *l, uint64_t us);
bool link_is_late(const struct link *l);
/* Waits until the server has what was sent, for FLEET_WAIT_MS and not beyond end_ns. */
natsStatus link_flush(struct link *l);

/* Publishes to those who listen now. */
int link_say(struct link *l, const char *subject, const struct kymo_value *v);
/* Publishes to a stream. id: messages with the same one are stored once. Returns when stored. */
int link_store(struct link *l, const char *subject, const char *id, const void *data, size_t n);
int link_store_value(
	struct link *l, const char *subject, const char *id, const struct kymo_value *v);
/*
 * Gets the first message of this subject, which may have wildcards, from number seq on. Returns 0,
 * -ENOENT if there is none, or -errno. The caller destroys ret->msg.
 */
int link_next(
	struct link *l, const char *stream, const char *subject, uint64_t seq, struct stored *ret);
/* Likewise the last one. */
int link_last(struct link *l, const char *stream, const char *subject, struct stored *ret);

/* Returns the JSON object of a message, which the caller frees, or NULL if it is none. */
struct kymo_value *link_value(const natsMsg *msg);
/* Returns the last part of the subject, if it is the name of a host, or NULL. */
const char *link_host(const natsMsg *msg);

/* Returns what is asked: the last part of the subject. */
const char *link_what(const natsMsg *msg);

/* Is it an identifier of a request: 1 to FLEET_ID_MAX letters, digits and '-'? */
bool link_id_valid(const char *id);

static inline void link_cleanup_msg(natsMsg **msg)
{
	natsMsg_Destroy(*msg);
}

#define _cleanup_msg_ __attribute__((cleanup(link_cleanup_msg)))

static inline void link_cleanup_value(struct kymo_value **v)
{
	kymo_value_free(*v);
}

#define _cleanup_value_ __attribute__((cleanup(link_cleanup_value)))

#endif
