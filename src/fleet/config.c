/* SPDX-License-Identifier: MIT */
#include "fleet/config.h"

#include <ctype.h>

#include "base/hash.h"
#include "base/text.h"
#include "ship/pace.h"

#define DEFAULT_HOLD_SIZE ((uint64_t)1 << 30)
#define DEFAULT_HOLD_US	  (3600 * (uint64_t)1000000)
#define DEFAULT_BEAT_US	  (10 * (uint64_t)1000000)
#define SHORTEST_BEAT_US  ((uint64_t)100000)
#define LONGEST_US	  ((uint64_t)365 * 86400 * 1000000)

bool config_host_valid(const char *name)
{
	const size_t n = strspn(
		name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

	return n && n <= FLEET_HOST_MAX && !name[n] && name[0] != '-';
}

unsigned config_shard(uint64_t shards, const char *host)
{
	return (unsigned)(ky_hash_add(KY_HASH_BASIS, host, strlen(host)) % shards);
}

/* A path in the file is relative to the file's directory. */
static bool set_path(char to[PATH_MAX], const char *path, const char *value)
{
	const char *slash = strrchr(path, '/');
	const int n = *value == '/' || !slash
			      ? snprintf(to, PATH_MAX, "%s", value)
			      : snprintf(to, PATH_MAX, "%.*s/%s", (int)(slash - path), path, value);

	return *value && n > 0 && n < PATH_MAX;
}

static bool set_text(char *to, size_t size, const char *value)
{
	const int n = snprintf(to, size, "%s", value);

	return n > 0 && (size_t)n < size;
}

static bool set_time(uint64_t *to, uint64_t least, const char *value)
{
	return !ky_parse_usec(value, to) && *to >= least && *to <= LONGEST_US;
}

/* Returns whether there is such a key with such a value. */
static bool set_config_value(
	struct fleet_config *c, const char *path, const char *key, const char *value)
{
	if (!strcmp(key, "servers"))
		return set_text(c->servers, sizeof(c->servers), value);
	if (!strcmp(key, "name"))
		return config_host_valid(value) && set_text(c->name, sizeof(c->name), value);
	if (!strcmp(key, "cert"))
		return set_path(c->cert, path, value);
	if (!strcmp(key, "key"))
		return set_path(c->key, path, value);
	if (!strcmp(key, "ca"))
		return set_path(c->ca, path, value);
	if (!strcmp(key, "hold"))
		return set_path(c->hold, path, value);
	if (!strcmp(key, "hold-size"))
		return !ky_parse_size(value, &c->hold_size) && c->hold_size;
	if (!strcmp(key, "rate"))
		return !ky_parse_size(value, &c->rate) && c->rate >= PACE_MIN;
	if (!strcmp(key, "shards"))
		return !ky_parse_number(value, FLEET_SHARDS_MAX, &c->shards) && c->shards;
	if (!strcmp(key, "hold-time"))
		return set_time(&c->hold_us, 1, value);
	if (!strcmp(key, "beat"))
		return set_time(&c->beat_us, SHORTEST_BEAT_US, value);
	return false;
}

static char *trim_blanks(char *text)
{
	size_t n;

	text += strspn(text, " \t");
	for (n = strlen(text); n && isspace((unsigned char)text[n - 1]); n--)
		text[n - 1] = '\0';
	return text;
}

/* Returns whether the line is empty, a comment, or KEY = VALUE. */
static bool read_line(struct fleet_config *c, const char *path, char *line)
{
	char *text = trim_blanks(line), *equals;

	if (!*text || *text == '#')
		return true;
	equals = strchr(text, '=');
	if (!equals)
		return false;
	*equals = '\0';
	return set_config_value(c, path, trim_blanks(text), trim_blanks(equals + 1));
}

static const char *missing(const struct fleet_config *c)
{
	return !*c->servers ? "servers"
	       : !*c->name  ? "name"
	       : !*c->cert  ? "cert"
	       : !*c->key   ? "key"
	       : !*c->ca    ? "ca"
			    : NULL;
}

int config_load(struct fleet_config *c, const char *path, char *why, size_t size)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char line[2 * PATH_MAX];

	*c = (struct fleet_config){.hold_size = DEFAULT_HOLD_SIZE,
		.hold_us = DEFAULT_HOLD_US,
		.beat_us = DEFAULT_BEAT_US,
		.shards = 1};
	if (!f) {
		const int error = errno;

		snprintf(why, size, "cannot read %s: %s%s", path, strerror(error),
			error == ENOENT ? ": 'kymo fleet setup' makes it, for each host" : "");
		return -error;
	}
	for (unsigned n = 1; fgets(line, sizeof(line), f); n++) {
		if (read_line(c, path, line))
			continue;
		snprintf(why, size, "%s:%u: this is no setting of a fleet", path, n);
		return -EINVAL;
	}
	if (missing(c)) {
		snprintf(why, size, "%s: '%s' is missing", path, missing(c));
		return -EINVAL;
	}
	return 0;
}
