/* SPDX-License-Identifier: MIT */
/*
 * Perfetto's protobuf, written by hand: docs/export.md lists the few fields of its schema. Names of
 * events and fields are interned: written where they are first used, then referred to by number.
 * All tracks have a number, too: processes, threads, lanes, counters.
 */
#include <endian.h>

#include "base/htab.h"
#include "base/utf8.h"
#include "export/export.h"
#include "export/out.h"
#include "export/timeline.h"

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2 };
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

/* --- protobuf --- */

static void put_varint(struct ky_buf *b, uint64_t v)
{
	char bytes[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (char)(v | 0x80);
	bytes[n++] = (char)v;
	ky_buf_append(b, bytes, n);
}

static void put_tag(struct ky_buf *b, unsigned field, enum wire wire)
{
	put_varint(b, (uint64_t)field << 3 | wire);
}

static void put_number(struct ky_buf *b, unsigned field, uint64_t v)
{
	put_tag(b, field, WIRE_VARINT);
	put_varint(b, v);
}

static void put_fixed(struct ky_buf *b, unsigned field, uint64_t v)
{
	put_tag(b, field, WIRE_64);
	v = htole64(v);
	ky_buf_append(b, &v, sizeof(v));
}

static void put_double(struct ky_buf *b, unsigned field, double d)
{
	uint64_t v;

	memcpy(&v, &d, sizeof(v));
	put_fixed(b, field, v);
}

static void put_bytes(struct ky_buf *b, unsigned field, const char *text, size_t len)
{
	put_tag(b, field, WIRE_BYTES);
	put_varint(b, len);
	ky_buf_append(b, text, len);
}

static void put_message(struct ky_buf *b, unsigned field, const struct ky_buf *message)
{
	put_bytes(b, field, message->data, message->len);
}

/* A string of protobuf is UTF-8: U+FFFD replaces each other byte. */
static void put_string(struct ky_buf *b, unsigned field, const char *text, size_t len)
{
	struct ky_buf valid = {0};
	bool harmless;
	uint32_t code;

	if (ky_utf8_valid(text, len)) {
		put_bytes(b, field, text, len);
		return;
	}
	for (size_t i = 0, n; i < len; i += n ? n : 1) {
		n = ky_utf8_length(text + i, len - i, &code, &harmless);
		ky_buf_append(&valid, n ? text + i : "\xef\xbf\xbd", n ? n : 3);
	}
	put_bytes(b, field, valid.data, valid.len);
	ky_buf_deinit(&valid);
}

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
static uint64_t intern(struct perfetto *p, enum table table, const char *name, size_t len)
{
	struct ky_buf entry = {0};
	bool is_new;
	uint64_t iid = number_of(p, table, name, len, &is_new);

	if (!is_new)
		return iid;
	put_number(&entry, 1, iid);
	put_string(&entry, 2, name, len);
	put_message(&p->interned, table, &entry);
	ky_buf_deinit(&entry);
	return iid;
}

/* --- fields --- */

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == ',' || *p == ':'))
		p++;
	return p;
}

static const char *skip_string(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		p += *p == '\\';
	return p < end ? p + 1 : end;
}

/* Returns the end of a JSON value. */
static const char *skip_value(const char *p, const char *end)
{
	int depth = 0;

	do {
		if (*p == '"') {
			p = skip_string(p, end);
			continue;
		}
		depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
		p++;
	} while (p < end && (depth > 0 || (*p != ',' && *p != '}' && *p != ']')));
	return p;
}

static void put_utf8(struct ky_buf *to, uint32_t c)
{
	char bytes[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = n; i-- > 1; c >>= 6)
		bytes[i] = (char)(0x80 | (c & 0x3f));
	bytes[0] = (char)(n == 1 ? c : (0xf0 << (4 - n) & 0xff) | c);
	ky_buf_append(to, bytes, n);
}

static uint32_t hex4(const char *p)
{
	char digits[5] = {p[0], p[1], p[2], p[3], 0};

	return (uint32_t)strtoul(digits, NULL, 16);
}

/* Appends the contents of a JSON string from p to before end, without its quotes. */
static void put_unescaped(struct ky_buf *to, const char *p, const char *end)
{
	static const char names[] = "bfnrt", chars[] = "\b\f\n\r\t";
	const char *at;

	for (; p < end; p++) {
		if (*p != '\\') {
			ky_buf_append(to, p, 1);
		} else if (*++p == 'u' && end - p > 4) {
			uint32_t c = hex4(p + 1);

			p += 4;
			if (c >= 0xd800 && c < 0xdc00 && end - p > 6) {
				c = 0x10000 + ((c - 0xd800) << 10) + (hex4(p + 3) - 0xdc00);
				p += 6;
			}
			put_utf8(to, c);
		} else {
			at = strchr(names, *p);
			ky_buf_append(to, at && *at ? &chars[at - names] : p, 1);
		}
	}
}

static void put_value(struct perfetto *p, const char *text, const char *end)
{
	struct ky_buf *b = &p->annotation;
	char number[40];
	size_t len = (size_t)(end - text);

	p->value.len = 0;
	if (*text == '"') {
		put_unescaped(&p->value, text + 1, end - 1);
		put_string(b, 6, p->value.data ? p->value.data : "", p->value.len);
		return;
	}
	snprintf(number, sizeof(number), "%.*s", (int)KY_MIN(len, sizeof(number) - 1), text);
	if (*text == 't' || *text == 'f')
		put_number(b, 2, *text == 't');
	else if (*text != '-' && (*text < '0' || *text > '9'))
		put_bytes(b, 9, text, len);
	else if (strpbrk(number, ".eE"))
		put_double(b, 5, strtod(number, NULL));
	else if (*text == '-')
		put_number(b, 4, (uint64_t)strtoll(number, NULL, 10));
	else
		put_number(b, 3, strtoull(number, NULL, 10));
}

/* The members of a JSON object as annotations of the event. */
static void put_fields(struct perfetto *p, const struct ky_mark *m)
{
	const char *at = m->fields, *end = at + m->fields_len, *name_end, *value_end;

	if (!m->fields)
		return;
	for (at = skip_blanks(at + 1, end); at < end && *at == '"';
		at = skip_blanks(value_end, end)) {
		struct ky_buf name = {0};

		name_end = skip_string(at, end);
		put_unescaped(&name, at + 1, name_end - 1);
		at = skip_blanks(name_end, end);
		value_end = skip_value(at, end);
		p->annotation.len = 0;
		put_number(&p->annotation, 1,
			intern(p, TABLE_FIELD_NAMES, name.data ? name.data : "", name.len));
		put_value(p, at, value_end);
		put_message(&p->event, 4, &p->annotation);
		ky_buf_deinit(&name);
	}
}

/* --- packets --- */

/* Ends a packet: field of the trace. state: bits of sequence_flags. */
static int put_packet(struct perfetto *p, struct ky_buf *packet, unsigned state)
{
	put_number(packet, 10, 1);
	put_number(packet, 13, state);
	put_message(&p->out.buf, 1, packet);
	if (packet->error && !p->out.error)
		p->out.error = packet->error;
	ky_buf_deinit(packet);
	return ky_out_flush(&p->out);
}

/* Writes the description of a track: p->track. */
static void put_track(struct perfetto *p)
{
	struct ky_buf packet = {0};

	put_message(&packet, 60, &p->track);
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
		put_number(&p->track, 1, *ret_uuid);
	return is_new;
}

static uint64_t find_process(struct perfetto *p, const struct ky_mark *m)
{
	struct ky_buf key = {0}, process = {0};
	int64_t pid = KY_MAX(m->pid, (int64_t)0);
	uint64_t uuid;

	ky_buf_printf(&key, "p%lld", (long long)pid);
	if (find_track(p, &key, &uuid)) {
		put_number(&process, 1, (uint64_t)pid);
		if (m->procname)
			put_string(&process, 6, m->procname, m->procname_len);
		put_message(&p->track, 3, &process);
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
		put_number(&p->track, 5, process);
		if (m->tid >= 0) {
			put_number(&thread, 1, (uint64_t)KY_MAX(m->pid, (int64_t)0));
			put_number(&thread, 2, (uint64_t)m->tid);
			if (m->procname)
				put_string(&thread, 5, m->procname, m->procname_len);
			put_message(&p->track, 4, &thread);
		} else {
			ky_buf_printf(&thread, "CPU %lld", (long long)m->cpu);
			put_bytes(&p->track, 2, thread.data, thread.len);
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
		put_string(&p->track, 2, m->name, m->name_len);
		put_number(&p->track, 5, process);
		if (is_counter)
			put_bytes(&p->track, 8, "", 0);
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
		put_bytes(&p->track, 2, "lost", 4);
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
	char number[64];

	snprintf(number, sizeof(number), "%.*s", (int)m->value_len, m->value);
	if (strpbrk(number, ".eE"))
		put_double(&p->event, 44, strtod(number, NULL));
	else
		put_number(&p->event, 30, (uint64_t)strtoll(number, NULL, 10));
}

static void put_lost(struct perfetto *p, const struct ky_mark *m)
{
	struct ky_buf text = {0};

	ky_buf_puts(&text, "lost: ");
	if (m->n_lost)
		ky_buf_printf(&text, "%llu ", (unsigned long long)m->n_lost);
	ky_buf_puts(&text, m->what);
	put_bytes(&p->event, 23, text.data ? text.data : "", text.len);
	ky_buf_deinit(&text);
}

static void fill_event(struct perfetto *p, const struct ky_mark *m, uint64_t track)
{
	struct ky_buf *b = &p->event;
	char id[32];

	put_number(b, 9, type_of(m->kind));
	put_number(b, 11, track);
	if (m->kind == KY_MARK_LOST)
		put_lost(p, m);
	else if (m->kind == KY_MARK_COUNTER)
		put_counter(p, m);
	else if (type_of(m->kind) != TYPE_END)
		put_number(b, 10, intern(p, TABLE_EVENT_NAMES, m->name, m->name_len));
	put_fields(p, m);
	if (m->flow) {
		snprintf(id, sizeof(id), "%.*s", (int)m->flow_id_len, m->flow_id);
		put_fixed(b, m->flow == KY_FLOW_END ? 48 : 47, strtoull(id, NULL, 10));
	}
}

/* The first packet says that no name is known yet. */
static void begin(struct perfetto *p)
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

	if (!p->is_begun)
		begin(p);
	track = find_mark_track(p, m);
	p->event.len = p->interned.len = 0;
	fill_event(p, m, track);
	put_number(&packet, 8, (uint64_t)m->ns);
	if (p->interned.len)
		put_message(&packet, 12, &p->interned);
	put_message(&packet, 11, &p->event);
	return put_packet(p, &packet, 2);
}

static void deinit(struct perfetto *p)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&p->numbers, i, n, tmp)
	{
		free(ky_container_of(n, struct numbered, node));
	}
	ky_htab_deinit(&p->numbers);
	ky_buf_deinit(&p->interned);
	ky_buf_deinit(&p->event);
	ky_buf_deinit(&p->annotation);
	ky_buf_deinit(&p->track);
	ky_buf_deinit(&p->value);
}

int ky_export_perfetto(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY])
{
	struct perfetto p = {0};
	int r = ky_out_open(&p.out, path), e;

	why[0] = '\0';
	if (!r)
		r = ky_timeline_read(t, put_mark, &p);
	e = ky_out_close(&p.out, !r);
	deinit(&p);
	return r ? r : e;
}
