/* SPDX-License-Identifier: MIT */
/* fleet.conf: how a host, or a command, reaches the fleet's servers (docs/fleet.md). */
#ifndef FLEET_CONFIG_H
#define FLEET_CONFIG_H

#include <limits.h>
#include <stdbool.h>

#include "base/paths.h"
#include "base/util.h"

#define FLEET_HOST_MAX	  63u
#define FLEET_SERVERS_MAX 8u
#define FLEET_SHARDS_MAX  64u

/* That of a host, and of commands on it. */
#define FLEET_CONFIG KYMO_CONFDIR "/fleet/fleet.conf"

struct fleet_config {
	char servers[1024]; /* nats://ADDRESS:PORT, separated by commas */
	char name[FLEET_HOST_MAX + 1];
	char cert[PATH_MAX], key[PATH_MAX], ca[PATH_MAX]; /* files */
	char hold[PATH_MAX];				  /* directory; "": the default */
	uint64_t hold_size;				  /* bytes of snapshots in it, at most */
	uint64_t hold_us;				  /* for so long */
	uint64_t beat_us;				  /* between two announcements */
	uint64_t rate;	 /* bytes that are shipped a second, at most; 0: no limit */
	uint64_t shards; /* streams that the segments of all hosts are spread over */
};

/* Returns 0, or -errno with one line in why. */
int config_load(struct fleet_config *c, const char *path, char *why, size_t size);

/*
 * Returns the shard of a host, from 0 on: which stream its segments are in. All that know the fleet
 * compute the same one: FNV-1a of the name, modulo the number of shards.
 */
unsigned config_shard(uint64_t shards, const char *host);

/* Is it the name of a host: 1 to FLEET_HOST_MAX letters, digits, '-' and '_'? */
bool config_host_valid(const char *name);

#endif
