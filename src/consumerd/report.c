/* SPDX-License-Identifier: MIT */
#include "consumerd/report.h"

#include <stdarg.h>

#include "consumerd/stream/stream-set.h"
#include "svc/log.h"

void report_send(struct consumerd *c, const void *buf, int len)
{
	if (c->connected)
		ky_msg_conn_send(&c->conn, buf, len, NULL, 0);
}

static void send_error(struct consumerd *c)
{
	struct ky_cons_error m = {.status = c->status, .message = c->message};
	uint8_t buf[KY_MSG_MAX];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};

	report_send(c, buf, ky_cons_error_encode(&w, &m));
}

void report_stats(struct consumerd *c, uint32_t cookie)
{
	struct ky_cons_stats m = {.cookie = cookie,
		.status = c->status,
		.message = c->message,
		.fullest = c->fullest,
		.expired_chunks = c->expired_chunks,
		.expired_events = c->expired_events,
		.expired_bytes = c->expired_bytes,
		.disk_bytes = c->disk_bytes};
	uint8_t buf[KY_MSG_MAX];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	const struct stream_set *set;

	ky_list_foreach (set, &c->sets, node)
		stream_set_add_stats(set, &m);
	report_send(c, buf, ky_cons_stats_encode(&w, &m));
}

void report_set_status(struct consumerd *c, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	c->status = status;
	vsnprintf(c->message, sizeof(c->message), fmt, ap);
	va_end(ap);
}

static const char *advice(int error)
{
	switch (error) {
	case -ENOSPC:
		return "free some space";
	case -EDQUOT:
		return "free some space, the user's quota is used up";
	case -ENOENT:
		return "if it was removed, 'kymo destroy' and 'kymo create' begin a new trace";
	case -EMFILE:
		return "raise the limit of open files (ulimit -n)";
	default:
		return "the consumer keeps trying to write";
	}
}

/*
 * Finds the first present failure to write events or their description. Returns 0, or -errno and
 * the path.
 */
static int find_write_fault(const struct consumerd *c, char *path, size_t size)
{
	const struct trace *t;
	const struct stream_set *set;

	ky_list_foreach (t, &c->traces, node) {
		if (!t->fault.error)
			continue;
		snprintf(path, size, "%s/%s/metadata", c->output, t->dir);
		return t->fault.error;
	}
	ky_list_foreach (set, &c->sets, node) {
		if (!set->error)
			continue;
		snprintf(path, size, "%s/%s/%s_%u", c->output, set->trace->dir, set->name,
			set->failed);
		return set->error;
	}
	return 0;
}

/*
 * Finds the first present failure, and reports it to the daemon if it changed, or if it was only
 * the watermark's before.
 */
void report_faults(struct consumerd *c)
{
	char path[CONSUMER_MESSAGE_MAX / 2] = "";
	const char *effect = ": events wait in the ring buffers until these are full";
	int error = find_write_fault(c, path, sizeof(path));
	bool minor = !error && c->watermark.fault.error;

	if (minor) {
		error = c->watermark.fault.error;
		effect = ": readers of the running session do not see new events";
		snprintf(path, sizeof(path), "%s/" KY_WATERMARK_NAME, c->output);
	}
	if (error == c->status && (minor || !c->status_is_minor))
		return;
	c->status_is_minor = minor;
	if (error)
		report_set_status(c, error, "cannot write %s: %s%s; %s", path, strerror(-error),
			c->snapshot ? "" : effect, advice(error));
	else
		report_set_status(c, 0, "%s", "");
	if (error)
		ky_warning("%s", c->message);
	else
		ky_info("writing works again");
	send_error(c);
}

void report_damage(struct consumerd *c, struct stream_set *set)
{
	struct ky_cons_damaged m = {.set = set->id};
	uint8_t buf[64];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};

	if (set->damage_reported || !c->connected || !stream_set_is_spoiled(set))
		return;
	set->damage_reported = true;
	report_send(c, buf, ky_cons_damaged_encode(&w, &m));
}

void report_marker(struct consumerd *c, struct stream_set *set)
{
	struct ky_kmarker *marker = &set->sources->marker;
	struct ky_cons_kernel_clock m = {set->id, marker->before, marker->at, marker->after};
	uint8_t buf[64];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};

	if (!marker->at || !c->connected)
		return;
	marker->at = 0;
	report_send(c, buf, ky_cons_kernel_clock_encode(&w, &m));
}

/* The daemon examines memory for longer than that. */
#define GROWN_NS (1000 * KY_NS_PER_MS)

void report_growth(struct consumerd *c, struct stream_set *set, uint64_t now_ns)
{
	struct ky_cons_grown m = {.set = set->id};
	uint8_t buf[64];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};

	if (!set->sources->grown || !c->connected || now_ns - set->grown_ns < GROWN_NS)
		return;
	set->sources->grown = false;
	set->grown_ns = now_ns;
	report_send(c, buf, ky_cons_grown_encode(&w, &m));
}

void report_damage_again(struct consumerd *c)
{
	struct stream_set *set;

	ky_list_foreach (set, &c->sets, node)
		set->damage_reported = false;
}
