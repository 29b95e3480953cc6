/* SPDX-License-Identifier: MIT */
/*
 * Docker, Podman, containerd and CRI-O identify containers by 64 hexadecimal digits, and name the
 * control group after these, with their own name before them ("docker-0123...scope") or above them
 * ("/docker/0123.."). LXC and systemd-nspawn use names.
 */
#include "collectd/container.h"

#define ID_DIGITS 64
#define HEX	  "0123456789abcdef"
#define CONMON	  "-conmon" /* monitors a container of the same number */

static const struct {
	const char *prefix, *runtime, *suffix;
} named[] = {
	{"lxc.payload.", "lxc", ""},
	{"systemd-nspawn@", "nspawn", ".service"},
};

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !memcmp(text + len - n, end, n);
}

static bool set_container(
	struct container *c, const char *id, size_t id_len, const char *runtime, size_t len)
{
	snprintf(c->id, sizeof(c->id), "%.*s", (int)id_len, id);
	snprintf(c->runtime, sizeof(c->runtime), "%.*s", (int)len, runtime);
	return true;
}

/* part: one name in a path, with len bytes. */
static bool is_numbered(struct container *c, const char *part, size_t len, bool in_docker)
{
	size_t i = 0;

	while (i + ID_DIGITS <= len && strspn(part + i, HEX) != ID_DIGITS)
		i++;
	if (i + ID_DIGITS > len)
		return false;
	if (!i)
		return set_container(
			c, part, ID_DIGITS, in_docker ? "docker" : "", strlen("docker"));
	return part[i - 1] == '-' && !ends_with(part, i - 1, CONMON) &&
	       set_container(c, part + i, ID_DIGITS, part, i - 1);
}

static bool is_named(struct container *c, const char *part, size_t len)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(named); i++) {
		size_t before = strlen(named[i].prefix), behind = strlen(named[i].suffix);

		if (len > before + behind && !strncmp(part, named[i].prefix, before) &&
			ends_with(part, len, named[i].suffix))
			return set_container(c, part + before, len - before - behind,
				named[i].runtime, strlen(named[i].runtime));
	}
	return false;
}

bool container_of_path(struct container *ret, const char *path)
{
	const char *part = path;
	bool found = false, in_docker = false;
	size_t len;

	for (part += strspn(part, "/"); *part; part += strspn(part, "/")) {
		len = strcspn(part, "/");
		if (is_numbered(ret, part, len, in_docker) || is_named(ret, part, len)) {
			ret->path_len = (size_t)(part + len - path);
			found = true;
		}
		in_docker = len == strlen("docker") && !memcmp(part, "docker", len);
		part += len;
	}
	return found;
}
