/* SPDX-License-Identifier: MIT */
/*
 * Perfetto's protobuf, written by hand: docs/export.md lists the few fields of its schema. Names of
 * events and fields are interned: written where they are first used, then referred to by number.
 * All tracks have a number, too: processes, threads, lanes, counters.
 */
#include "base/htab.h"
#include "export/export.h"
#include "export/members.h"
#include "export/out.h"
#include "export/protobuf.h"
#include "export/timeline.h"

enum type { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum table { TABLE_EVENT_NAMES = 2, TABLE_FIELD_NAMES = 3, TABLE_TRACKS };

/* A text with a number. */
struct numbered {
	struct ky_hnode node;
	enum table table;
	uint64_t number;
	size_t len;
	char text[];
};

struct perfetto {
	struct ky_out out;
	struct ky_htab numbers;
	uint64_t n_names[TABLE_TRACKS + 1];
	struct ky_buf interned, event, annotation, track, value; /* messages under construction */
	bool is_begun;
};

/* --- numbers --- */

/* Returns the number of a text; *ret_is_new: it has got one only now. 0: no memory. */
static uint64_t number_of(
	struct perfetto *p, enum table table, const char *text, size_t len, bool *ret_is_new)
{
	uint32_t hash = ky_hash(text, len) + table;
	struct numbered *n;

	*ret_is_new = false;
	for (struct ky_hnode *h = ky_htab_first(&p->numbers, hash); h; h = ky_htab_next(h)) {
		n = ky_container_of(h, struct numbered, node);
		if (n->table == table && n->len == len && !memcmp(n->text, text, len))
			return n->number;
	}
	n = malloc(sizeof(*n) + len);
	if (!n || ky_htab_add(&p->numbers, &n->node, hash) < 0) {
		free(n);
		p->out.error = -ENOMEM;
		return 0;
	}
	n->table = table;
	n->len = len;
	memcpy(n->text, text, len);
	n->number = ++p->n_names[table];
	*ret_is_new = true;
	return n->number;
}

/* Returns the number of a name, which the packet under construction defines if it is new. */
static uint64_t intern_name(struct perfetto *p, enum table table, const char *name, size_t len)
{
	struct ky_buf entry = {0};
	bool is_new;
	uint64_t iid = number_of(p, table, name, len, &is_new);

	if (!is_new)
		return iid;
	ky_pb_number(&entry, 1, iid);
	ky_pb_string(&entry, 2, name, len);
	ky_pb_message(&p->interned, table, &entry);
	ky_buf_deinit(&entry);
	return iid;
}

/* --- fields --- */

static void put_value(struct perfetto *p, const char *text, const char *end)
{
	struct ky_buf *b = &p->annotation;
	char number[40];
	size_t len = (size_t)(end - text);

	p->value.len = 0;
	if (*text == '"') {
		ky_members_unescape(&p->value, text + 1, end - 1);
		ky_pb_string(b, 6, p->value.data ? p->value.data : "", p->value.len);
		return;
	}
	snprintf(number, sizeof(number), "%.*s", (int)KY_MIN(len, sizeof(number) - 1), text);
	if (*text == 't' || *text == 'f')
		ky_pb_number(b, 2, *text == 't');
	else if (*text != '-' && (*text < '0' || *text > '9'))
		ky_pb_bytes(b, 9, text, len);
	else if (strpbrk(number, ".eE"))
		ky_pb_double(b, 5, strtod(number, NULL));
	else if (*text == '-')
		ky_pb_number(b, 4, (uint64_t)strtoll(number, NULL, 10));
	else
		ky_pb_number(b, 3, strtoull(number, NULL, 10));
}

/* The members of a JSON object as annotations of the event. */
static void put_fields(struct perfetto *p, const struct ky_mark *m)
{
	struct ky_members members;

	ky_members_begin(&members, m->fields, m->fields_len);
	while (ky_members_next(&members)) {
		p->annotation.len = 0;
		ky_pb_number(&p->annotation, 1,
			intern_name(p, TABLE_FIELD_NAMES,
				members.name.data ? members.name.data : "", members.name.len));
		put_value(p, members.value, members.value + members.value_len);
		ky_pb_message(&p->event, 4, &p->annotation);
	}
	ky_members_end(&members);
}

/* --- packets --- */

/* Ends a packet: field of the trace. state: bits of sequence_flags. */
static int put_packet(struct perfetto *p, struct ky_buf *packet, unsigned state)
{
	ky_pb_number(packet, 10, 1);
	ky_pb_number(packet, 13, state);
	ky_pb_message(&p->out.buf, 1, packet);
	if (packet->error && !p->out.error)
		p->out.error = packet->error;
	ky_buf_deinit(packet);
	return ky_out_flush(&p->out);
}

/* Writes the description of a track: p->track. */
static void put_track(struct perfetto *p)
{
	struct ky_buf packet = {0};

	ky_pb_message(&packet, 60, &p->track);
	put_packet(p, &packet, 2);
	p->track.len = 0;
}

/* Finds a track by a text that is different for each; returns true if it must be described. */
static bool find_track(struct perfetto *p, const struct ky_buf *key, uint64_t *ret_uuid)
{
	bool is_new;

	*ret_uuid = number_of(p, TABLE_TRACKS, key->data ? key->data : "", key->len, &is_new);
	p->track.len = 0;
	if (is_new)
		ky_pb_number(&p->track, 1, *ret_uuid);
	return is_new;
}

static uint64_t find_process(struct perfetto *p, const struct ky_mark *m)
{
	struct ky_buf key = {0}, process = {0};
	int64_t pid = KY_MAX(m->pid, (int64_t)0);
	uint64_t uuid;

	ky_buf_printf(&key, "p%lld", (long long)pid);
	if (find_track(p, &key, &uuid)) {
		ky_pb_number(&process, 1, (uint64_t)pid);
		if (m->procname)
			ky_pb_string(&process, 6, m->procname, m->procname_len);
		ky_pb_message(&p->track, 3, &process);
		put_track(p);
	}
	ky_buf_deinit(&key);
	ky_buf_deinit(&process);
	return uuid;
}

static uint64_t find_thread(struct perfetto *p, const struct ky_mark *m)
{
	uint64_t process = find_process(p, m), uuid;
	struct ky_buf key = {0}, thread = {0};

	if (m->tid < 0)
		ky_buf_printf(&key, "c%lld", (long long)m->cpu);
	else
		ky_buf_printf(&key, "t%lld/%lld", (long long)m->pid, (long long)m->tid);
	if (find_track(p, &key, &uuid)) {
		ky_pb_number(&p->track, 5, process);
		if (m->tid >= 0) {
			ky_pb_number(&thread, 1, (uint64_t)KY_MAX(m->pid, (int64_t)0));
			ky_pb_number(&thread, 2, (uint64_t)m->tid);
			if (m->procname)
				ky_pb_string(&thread, 5, m->procname, m->procname_len);
			ky_pb_message(&p->track, 4, &thread);
		} else {
			ky_buf_printf(&thread, "CPU %lld", (long long)m->cpu);
			ky_pb_bytes(&p->track, 2, thread.data, thread.len);
		}
		put_track(p);
	}
	ky_buf_deinit(&key);
	ky_buf_deinit(&thread);
	return uuid;
}

/* The track of a lane or a counter, in its process. */
static uint64_t find_named(struct perfetto *p, const struct ky_mark *m, bool is_counter)
{
	uint64_t process = find_process(p, m), uuid;
	struct ky_buf key = {0};

	ky_buf_printf(&key, "%c%lld/%.*s/", is_counter ? 'n' : 'l',
		is_counter ? (long long)m->pid : -1LL, (int)m->lane_len, m->lane ? m->lane : "");
	ky_buf_append(&key, m->name, m->name_len);
	if (find_track(p, &key, &uuid)) {
		ky_pb_string(&p->track, 2, m->name, m->name_len);
		ky_pb_number(&p->track, 5, process);
		if (is_counter)
			ky_pb_bytes(&p->track, 8, "", 0);
		put_track(p);
	}
	ky_buf_deinit(&key);
	return uuid;
}

static uint64_t find_losses(struct perfetto *p)
{
	struct ky_buf key = {0};
	uint64_t uuid;

	ky_buf_puts(&key, "x");
	if (find_track(p, &key, &uuid)) {
		ky_pb_bytes(&p->track, 2, "lost", 4);
		put_track(p);
	}
	ky_buf_deinit(&key);
	return uuid;
}

static uint64_t find_mark_track(struct perfetto *p, const struct ky_mark *m)
{
	switch (m->kind) {
	case KY_MARK_LANE_BEGIN:
	case KY_MARK_LANE_END:
		return find_named(p, m, false);
	case KY_MARK_COUNTER:
		return find_named(p, m, true);
	case KY_MARK_LOST:
		return find_losses(p);
	default:
		return find_thread(p, m);
	}
}

static enum type type_of(enum ky_mark_kind kind)
{
	switch (kind) {
	case KY_MARK_BEGIN:
	case KY_MARK_LANE_BEGIN:
		return TYPE_BEGIN;
	case KY_MARK_END:
	case KY_MARK_LANE_END:
		return TYPE_END;
	case KY_MARK_COUNTER:
		return TYPE_COUNTER;
	default:
		return TYPE_INSTANT;
	}
}

static void put_counter(struct perfetto *p, const struct ky_mark *m)
{
	if (m->value_type == KYMO_DOUBLE)
		ky_pb_double(&p->event, 44, m->real);
	else if (m->value_type == KYMO_UINT64 && m->number > INT64_MAX)
		ky_pb_double(&p->event, 44, (double)m->number);
	else
		ky_pb_number(&p->event, 30, m->number);
}

static void put_lost(struct perfetto *p, const struct ky_mark *m)
{
	struct ky_buf text = {0};

	ky_buf_puts(&text, "lost: ");
	if (m->n_lost)
		ky_buf_printf(&text, "%llu ", (unsigned long long)m->n_lost);
	ky_buf_puts(&text, m->what);
	ky_pb_bytes(&p->event, 23, text.data ? text.data : "", text.len);
	ky_buf_deinit(&text);
}

static void fill_event(struct perfetto *p, const struct ky_mark *m, uint64_t track)
{
	struct ky_buf *b = &p->event;
	char id[32];

	ky_pb_number(b, 9, type_of(m->kind));
	ky_pb_number(b, 11, track);
	if (m->kind == KY_MARK_LOST)
		put_lost(p, m);
	else if (m->kind == KY_MARK_COUNTER)
		put_counter(p, m);
	else if (type_of(m->kind) != TYPE_END)
		ky_pb_number(b, 10, intern_name(p, TABLE_EVENT_NAMES, m->name, m->name_len));
	put_fields(p, m);
	if (m->flow) {
		snprintf(id, sizeof(id), "%.*s", (int)m->flow_id_len, m->flow_id);
		ky_pb_fixed(b, m->flow == KY_FLOW_END ? 48 : 47, strtoull(id, NULL, 10));
	}
}

/* The first packet says that no name is known yet. */
static void put_first_packet(struct perfetto *p)
{
	struct ky_buf packet = {0};

	p->is_begun = true;
	put_packet(p, &packet, 1);
}

static int put_mark(void *arg, const struct ky_mark *m)
{
	struct perfetto *p = arg;
	struct ky_buf packet = {0};
	uint64_t track;

	if (m->ns < 0)
		return -EOPNOTSUPP;
	if (!p->is_begun)
		put_first_packet(p);
	track = find_mark_track(p, m);
	p->event.len = p->interned.len = 0;
	fill_event(p, m, track);
	ky_pb_number(&packet, 8, (uint64_t)m->ns);
	if (p->interned.len)
		ky_pb_message(&packet, 12, &p->interned);
	ky_pb_message(&packet, 11, &p->event);
	return put_packet(p, &packet, 2);
}

static void deinit_perfetto(struct perfetto *p)
{
	ky_htab_free_all(&p->numbers, struct numbered, node);
	ky_buf_deinit(&p->interned);
	ky_buf_deinit(&p->event);
	ky_buf_deinit(&p->annotation);
	ky_buf_deinit(&p->track);
	ky_buf_deinit(&p->value);
}

int ky_export_perfetto(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY])
{
	struct ky_out_room room = ky_out_room(t->n_bytes);
	struct perfetto p = {0};
	int r = ky_out_open(&p.out, path, &room), e;

	why[0] = '\0';
	if (!r)
		r = ky_timeline_read(t, put_mark, &p);
	e = ky_out_close(&p.out, !r);
	if (r == -EOPNOTSUPP)
		snprintf(why, KY_EXPORT_WHY, "%s",
			"Perfetto has no times before 1970: use --to=chrome, or select a part");
	deinit_perfetto(&p);
	return r ? r : e;
}
