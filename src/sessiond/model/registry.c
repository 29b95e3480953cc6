/* SPDX-License-Identifier: MIT */
#include "sessiond/model/registry.h"

#include <sys/random.h>
#include <time.h>

#include "ctf/tsdl.h"
#include "sessiond/model/memory.h"
#include "sessiond/model/session.h"
#include "svc/log.h"

struct registry *registry_free(struct registry *r)
{
	if (!r)
		return NULL;
	ky_list_remove(&r->node);
	if (r->uid != r->session->env->uid)
		r->session->n_desc_bytes -= r->n_session_bytes;
	registry_set_last(r, NULL, NULL);
	ky_close(r->log_fd);
	free(r);
	return NULL;
}

bool registry_has_room(const struct registry *r, size_t len)
{
	uint64_t others = r->session->n_desc_bytes - r->n_session_bytes;
	uint64_t left = SESSION_DESCRIPTIONS_MAX - KY_MIN(others, SESSION_DESCRIPTIONS_MAX);

	if (r->n_desc_bytes + len + DESCRIPTION_OVERHEAD > DESCRIPTIONS_MAX)
		return false;
	return r->uid == r->session->env->uid ||
	       r->n_session_bytes + len + DESCRIPTION_TIME <= left / 2;
}

/* More than the description of a stream takes (ctf/tsdl.h). */
#define STREAM_TEXT_MAX 4096u

bool registry_is_full(const struct registry *r)
{
	return r->log_size > METADATA_MAX - STREAM_TEXT_MAX;
}

void registry_charge(struct registry *r, size_t len)
{
	r->n_desc_bytes += len + DESCRIPTION_OVERHEAD;
	if (r->uid == r->session->env->uid)
		return;
	r->n_session_bytes += len + DESCRIPTION_TIME;
	r->session->n_desc_bytes += len + DESCRIPTION_TIME;
}

int registry_append(struct registry *r, const struct ky_buf *text)
{
	ssize_t n;

	if (text->error)
		return text->error;
	if (r->log_size + text->len > METADATA_MAX)
		return -EOVERFLOW;
	n = pwrite(r->log_fd, text->data, text->len, (off_t)r->log_size);
	if (n != (ssize_t)text->len) {
		int error = n < 0 ? -errno : -ENOSPC;

		return ftruncate(r->log_fd, (off_t)r->log_size) < 0 ? -errno : error;
	}
	r->log_size += text->len;
	return 0;
}

int registry_write_gap(struct registry *r, const char *text)
{
	struct ky_buf comment = {0};
	int ret;

	ky_tsdl_comment(&comment, text, true);
	ret = registry_append(r, &comment);
	ky_buf_deinit(&comment);
	return ret;
}

void registry_add_gap(struct registry *r, const char *text)
{
	struct ky_buf line = {0};
	time_t now = time(NULL);
	char until[32];
	struct tm tm;

	if (r->log_fd < 0 || r->n_gaps > GAPS_MAX)
		return;
	strftime(until, sizeof(until), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	if (r->n_gaps++ < GAPS_MAX)
		ky_buf_printf(&line, "%s (reported at %s)", text, until);
	else
		ky_buf_printf(&line, "from %s on, more gaps are not listed", until);
	if (!line.error) {
		OBSERVE(r->session->env, gap_added, r, line.data);
		if (registry_write_gap(r, line.data) < 0)
			ky_error("session '%s': cannot record in its metadata that %s",
				r->session->name, line.data);
	}
	ky_buf_deinit(&line);
}

void registry_add_unattended(struct registry *r)
{
	struct ky_buf text = {0};

	if (r->session->state == SESSION_STARTED)
		session_put_unattended(r->session, &text);
	if (text.data && !text.error)
		registry_add_gap(r, text.data);
	ky_buf_deinit(&text);
}

void registry_set_last(struct registry *r, struct ring_set *set, const char *gap)
{
	free(r->last_gap);
	free(r->last_text);
	r->last_gap = gap ? strdup(gap) : NULL;
	r->last_text = NULL;
	r->last_set = set;
}

void registry_set_last_text(struct registry *r, const char *text)
{
	registry_set_last(r, NULL, NULL);
	r->last_text = strdup(text);
}

int registry_mend_text(struct registry *r)
{
	const struct ky_buf text = {.data = r->last_text, .len = strlen(r->last_text)};

	return registry_append(r, &text);
}

static int write_preamble(struct registry *r, const struct session *s)
{
	struct ky_tsdl_trace t = {
		.hostname = s->env->hostname,
		.session = s->name,
		.boot_id = s->env->boot_id,
		.machine_id = s->env->machine_id,
		.product_uuid = s->env->product_uuid,
		.uid = r->uid,
		.abi_bits = r->abi_bits,
		.clock = s->clock,
		.kernel = r->abi_bits == KERNEL_ABI,
		.absolute_clock = s->absolute_clock,
	};
	struct ky_buf text = {0};
	int ret;

	memcpy(t.uuid, r->uuid, sizeof(t.uuid));
	ky_tsdl_trace(&text, &t);
	ret = registry_append(r, &text);
	ky_buf_deinit(&text);
	return ret;
}

/* A random UUID (RFC 9562, version 4). */
static int make_uuid(uint8_t uuid[16])
{
	if (getrandom(uuid, 16, 0) != 16)
		return -EIO;
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
	return 0;
}

struct registry *registry_find(const struct session *s, uid_t uid, uint32_t abi_bits)
{
	struct registry *r;

	ky_list_foreach (r, &s->registries, node)
		if (r->uid == uid && r->abi_bits == abi_bits)
			return r;
	return NULL;
}

struct registry *registry_new(struct session *s, uid_t uid, uint32_t abi_bits)
{
	struct registry *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->session = s;
	r->log_fd = -1;
	r->uid = uid;
	r->abi_bits = abi_bits;
	ky_list_append(&s->registries, &r->node);
	return r;
}

static uint64_t big_endian(const uint8_t *p)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v;
}

void registry_uuid(const struct registry *r, uint64_t ret_uuid[2])
{
	ret_uuid[0] = big_endian(r->uuid);
	ret_uuid[1] = big_endian(r->uuid + 8);
}

static int make_log(struct registry *r, const struct session *s)
{
	uint64_t uuid[2];

	registry_uuid(r, uuid);
	r->log_fd = log_memory_make(s->shm_fd, uuid);
	return KY_MIN(r->log_fd, 0);
}

int registry_get(struct session *s, uid_t uid, uint32_t abi_bits, struct registry **ret_registry)
{
	struct registry *r = registry_find(s, uid, abi_bits);
	int ret;

	*ret_registry = r;
	if (r)
		return 0;
	r = registry_new(s, uid, abi_bits);
	if (!r)
		return -ENOMEM;
	ret = make_uuid(r->uuid);
	if (!ret)
		ret = make_log(r, s);
	if (!ret)
		ret = write_preamble(r, s);
	if (ret < 0) {
		registry_free(r);
		return ret;
	}
	OBSERVE(s->env, registry_added, r);
	registry_add_unattended(r);
	*ret_registry = r;
	return 0;
}
