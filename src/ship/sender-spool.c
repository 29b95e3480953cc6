/* SPDX-License-Identifier: MIT */
#include "ship/files.h"
#include "ship/sender-internal.h"
#include "ship/sender.h"

/*
 * Gives back the space of the packets of a stream that end at `end` or before. The first one does
 * not expire: babeltrace2 counts discarded events from there on.
 */
static int release_packets(struct sender *s, struct sender_file *f, uint64_t end, bool acked)
{
	struct ky_index_entry e;
	struct packets p;
	int ret = 0;

	if (end <= f->released || !packets_open(s, f->path, &p))
		return 0;
	for (uint64_t i = packets_find(&p, f->released);
		!ret && packets_read(&p, i, &e) && e.offset + e.size <= end; i++) {
		ret = i || acked ? spool_punch(p.stream, &e) : 0;
		f->released = e.offset + e.size;
	}
	packets_close(&p);
	return ret < 0 ? sender_fail(s, ret, "%s: its disk space cannot be freed: %s", f->path,
				 strerror(-ret))
		       : 0;
}

int sender_release_acked(struct sender *s, const struct sender_file *index)
{
	struct sender_file *const stream = index->kind == SENDER_INDEX ? index->peer : NULL;
	struct ky_index_entry e;
	uint64_t end = 0, n;
	struct packets p;

	if (!s->spool_max || !stream || index->acked < ky_index_offset(1))
		return 0;
	n = (index->acked - ky_index_offset(0)) / sizeof(e);
	if (!packets_open(s, stream->path, &p))
		return 0;
	if (packets_read(&p, n - 1, &e))
		end = e.offset + e.size;
	packets_close(&p);
	return release_packets(s, stream, end, true);
}

/* Returns when the oldest packet ended that takes space and was not sent on this connection. */
static uint64_t oldest_of(const struct sender *s, const struct sender_file *f, uint64_t *ret_end)
{
	uint64_t ended = UINT64_MAX;
	struct ky_index_entry e;
	struct packets p;

	if (f->lost || f->released >= f->counts || !packets_open(s, f->path, &p))
		return ended;
	if (packets_read(&p, packets_find(&p, KY_MAX(f->released, f->sent)), &e) &&
		e.offset + e.size <= f->counts) {
		ended = e.timestamp_end;
		*ret_end = e.offset + e.size;
	}
	packets_close(&p);
	return ended;
}

/* Lets the oldest packets expire until no more wait than may. */
static int limit_spool(struct sender *s)
{
	uint64_t waiting = 0;
	int ret = 0;

	for (size_t i = 0; s->spool_max && i < s->n_files; i++)
		if (s->files[i]->kind == SENDER_STREAM && !s->files[i]->lost)
			waiting += s->files[i]->counts -
				   KY_MIN(s->files[i]->counts, s->files[i]->released);
	while (!ret && s->spool_max && waiting > s->spool_max) {
		struct sender_file *oldest = NULL;
		uint64_t least = UINT64_MAX, end = 0, oldest_end = 0;

		for (size_t i = 0; i < s->n_files; i++) {
			const uint64_t ended = s->files[i]->kind == SENDER_STREAM
						       ? oldest_of(s, s->files[i], &end)
						       : UINT64_MAX;

			if (ended < least) {
				least = ended;
				oldest = s->files[i];
				oldest_end = end;
			}
		}
		if (!oldest)
			break; /* all that waits is on its way */
		waiting -= KY_MIN(waiting, oldest_end - oldest->released);
		ret = release_packets(s, oldest, oldest_end, false);
	}
	return ret;
}

/* Returns the events of a stream that have expired. */
static uint64_t expired_of(const struct sender *s, const struct sender_file *f)
{
	struct spool_sum sum = {0};
	struct packets p;

	if (!packets_open(s, f->path, &p))
		return 0;
	spool_add_up(&sum, p.stream, p.index, p.n);
	packets_close(&p);
	return sum.events;
}

void sender_add_expired(struct sender *s)
{
	for (size_t i = 0; s->spool_max && i < s->n_files; i++)
		if (s->files[i]->kind == SENDER_STREAM)
			s->n_expired += expired_of(s, s->files[i]);
}

/*
 * Changes n bytes of a stream, which begin with a packet, into what is sent of a spool. They become
 * fewer where a packet has expired, which goes in a segment of its own. Returns how many, 0 if they
 * cannot be read.
 */
static size_t change_packets(
	struct sender_file *f, const struct packets *p, uint8_t *bytes, size_t n, struct segment *g)
{
	struct ky_index_entry e;
	struct ky_ctf_packet h;

	for (uint64_t i = packets_find(p, f->sent);
		packets_read(p, i, &e) && e.offset < f->sent + n; i++) {
		const bool expired = spool_is_hole(p->stream, &e);
		const uint64_t at = e.offset - f->sent;

		if (e.offset < f->sent)
			continue; /* a long packet, whose beginning has been sent */
		if (expired && at)
			return at;
		if (n - at < sizeof(h))
			return at;
		/* Its own events are not among those before, if it has been marked already. */
		if (spool_add_up(&f->expired, p->stream, p->index, i) < 0 ||
			(expired && spool_expire(p->index, i, &e) < 0))
			return 0;
		memcpy(&h, bytes + at, sizeof(h));
		spool_change_packet(&h, f->expired.events, expired);
		memcpy(bytes + at, &h, sizeof(h));
		if (expired) {
			g->codec = SEGMENT_ZEROS;
			g->raw = (uint32_t)(KY_MIN(e.size, (uint64_t)n) - sizeof(h));
			return sizeof(h);
		}
	}
	return n;
}

/* Likewise, bytes of an index. */
static size_t change_entries(
	struct sender_file *f, const struct packets *p, uint8_t *bytes, size_t n)
{
	uint64_t i = f->sent ? (f->sent - ky_index_offset(0)) / sizeof(struct ky_index_entry) : 0;
	struct ky_index_entry e;

	for (size_t at = f->sent ? 0 : ky_index_offset(0); at + sizeof(e) <= n;
		at += sizeof(e), i++) {
		if (spool_add_up(&f->expired, p->stream, p->index, i + 1) < 0)
			return 0;
		memcpy(&e, bytes + at, sizeof(e));
		spool_change_entry(&e, f->expired.events);
		memcpy(bytes + at, &e, sizeof(e));
	}
	return n;
}

size_t sender_change(
	struct sender *s, struct sender_file *f, uint8_t *bytes, size_t n, struct segment *g)
{
	const bool is_index = f->kind == SENDER_INDEX;
	char name[SEGMENT_PATH_MAX];
	struct packets p;

	if (is_index)
		files_stream_of(f->path, name, sizeof(name));
	if (!packets_open(s, is_index ? name : f->path, &p))
		return n; /* no packet */
	n = is_index ? change_entries(f, &p, bytes, n) : change_packets(f, &p, bytes, n, g);
	packets_close(&p);
	return n;
}

int sender_limit(struct sender *s)
{
	int ret = s->final ? 0 : sender_look(s, false, sender_is_moved(s));

	return !s->spool_max ? 0 : ret ? ret : limit_spool(s);
}
