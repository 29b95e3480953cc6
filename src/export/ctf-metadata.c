/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "base/buf.h"
#include "export/ctf-names.h"
#include "export/ctf.h"
#include "reader/format.h"

#define MAX_DEPTH 64 /* of structures around a field */

/* The surroundings of a type. */
struct writer {
	struct ky_ctf_metadata *m;
	struct ky_buf *b;
	const char *slot_scope; /* "stream.event.header" or "trace.packet.header" */
	uint32_t *n_slots;	/* of that scope */
	const struct ky_node *around[MAX_DEPTH]; /* structures, the outermost first */
	size_t n_around;
	const char *field; /* the last name */
	bool in_array;
};

/* --- text --- */

static void put_quoted(struct ky_buf *b, const char *s)
{
	ky_buf_puts(b, "\"");
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
			ky_buf_printf(b, "\\%03o", c);
		else
			ky_buf_append(b, s, 1);
	}
	ky_buf_puts(b, "\"");
}

static int refuse_node(struct writer *w, const struct ky_node *n, const char *why)
{
	w->m->why = why;
	w->m->why_field = *n->name ? n->name : w->field;
	return -EOPNOTSUPP;
}

static uint32_t hash_node(const struct ky_node *n)
{
	return ky_hash(&n, sizeof(n));
}

/* --- names --- */

/* Members of the packet's context whose names have a meaning. */
static const char *const context_names[] = {"_timestamp_begin", "_timestamp_end", "_content_size",
	"_packet_size", "_packet_seq_num", "_events_discarded"};

static const char *name_of(const struct ky_ctf_metadata *m, const struct ky_node *n)
{
	if (!m->trace->tsdl.is_ctf2)
		return n->full_name;
	for (struct ky_hnode *h = ky_htab_first(&m->names, hash_node(n)); h; h = ky_htab_next(h)) {
		const struct ky_ctf_name *name = ky_container_of(h, struct ky_ctf_name, node);

		if (name->of == n)
			return name->text;
	}
	return "";
}

static int add_name(struct ky_ctf_metadata *m, const struct ky_node *n, const struct ky_buf *text)
{
	struct ky_ctf_name *name = malloc(sizeof(*name) + text->len + 1);

	if (!name || ky_htab_add(&m->names, &name->node, hash_node(n)) < 0) {
		free(name);
		return -ENOMEM;
	}
	name->of = n;
	memcpy(name->text, text->data, text->len + 1);
	/* Readers hide the underscore in front. */
	m->is_renamed |= strcmp(name->text + 1, n->name);
	return 0;
}

/* Chooses the names of the members of a structure of CTF 2. */
static int name_members(struct ky_ctf_metadata *m, const struct ky_node *n, bool is_packet)
{
	struct ky_ctf_names names = {0};
	struct ky_buf text = {0};
	int r = 0;

	if (!m->trace->tsdl.is_ctf2)
		return 0;
	for (size_t i = 0; is_packet && i < KY_ARRAY_SIZE(context_names) && !r; i++)
		r = ky_ctf_names_take(&names, context_names[i]);
	for (uint32_t i = 0; i < n->n && !r; i++) {
		if (!n->children[i].is_shown)
			continue;
		r = ky_ctf_names_choose(&names, &text, "_", n->children[i].name);
		if (!r)
			r = add_name(m, &n->children[i], &text);
	}
	ky_buf_deinit(&text);
	ky_ctf_names_deinit(&names);
	return r;
}

/* --- slots --- */

bool ky_ctf_has_packet_times(const struct ky_stream_class *s)
{
	return s->clock && s->begin_bits && s->end_bits;
}

int ky_ctf_slot_of(const struct ky_ctf_metadata *m, const struct ky_node *n)
{
	for (struct ky_hnode *h = ky_htab_first(&m->slots, hash_node(n)); h; h = ky_htab_next(h)) {
		const struct ky_ctf_slot *s = ky_container_of(h, struct ky_ctf_slot, node);

		if (s->of == n)
			return (int)s->number;
	}
	return -1;
}

static int add_slot(struct writer *w, const struct ky_node *n)
{
	struct ky_ctf_slot *s;

	if (*w->n_slots == KY_CTF_SLOTS_MAX)
		return refuse_node(w, n, "too many sequences and variants");
	s = calloc(1, sizeof(*s));
	if (!s || ky_htab_add(&w->m->slots, &s->node, hash_node(n)) < 0) {
		free(s);
		return -ENOMEM;
	}
	s->of = n;
	s->number = (*w->n_slots)++;
	return 0;
}

/* Appends the name of a new slot. */
static int put_slot(struct writer *w, const struct ky_node *n)
{
	ky_buf_printf(w->b, "%s._n%u", w->slot_scope, *w->n_slots);
	return add_slot(w, n);
}

static bool is_member(const struct ky_node *in, const struct ky_node *field)
{
	return field >= in->children && field < in->children + in->n;
}

/*
 * Finds the members that lead from a structure to a field in it, the field last. Returns how many;
 * 0: it is not there.
 */
static size_t find_path(const struct ky_node *in, const struct ky_node *field,
	const struct ky_node **path, size_t room)
{
	size_t n = 0;

	if (!room)
		return 0;
	if (is_member(in, field)) {
		path[0] = field;
		return 1;
	}
	for (uint32_t i = 0; i < in->n && !n; i++) {
		path[0] = &in->children[i];
		if (path[0]->is_shown && path[0]->kind == KY_NODE_STRUCT)
			n = find_path(path[0], field, path + 1, room - 1);
	}
	return n ? n + 1 : 0;
}

/* Appends the names from a structure to a field in it. Returns false if it is not there. */
static bool put_path(struct writer *w, const struct ky_node *in, const struct ky_node *field)
{
	const struct ky_node *path[MAX_DEPTH];
	size_t n = find_path(in, field, path, KY_ARRAY_SIZE(path));

	for (size_t i = 0; i < n; i++) {
		ky_buf_puts(w->b, i ? "." : "");
		ky_buf_puts(w->b, name_of(w->m, path[i]));
	}
	return n > 0;
}

static bool has_member(const struct writer *w, const struct ky_node *in, const char *name)
{
	for (uint32_t i = 0; i < in->n; i++)
		if (in->children[i].is_shown && !strcmp(name_of(w->m, &in->children[i]), name))
			return true;
	return false;
}

/* True if a structure further inside has a member with the first name of the path at `from`. */
static bool is_shadowed(const struct writer *w, size_t from, size_t around)
{
	const char *path = w->b->data + from;
	char *name = strndup(path, strcspn(path, "."));
	bool found = !name;

	for (size_t i = around + 1; i < w->n_around && !found; i++)
		found = has_member(w, w->around[i], name);
	free(name);
	return found;
}

static bool contains(const struct ky_node *in, const struct ky_node *field)
{
	bool found = is_member(in, field);

	for (uint32_t i = 0; i < in->n && !found; i++)
		found = contains(&in->children[i], field);
	return found;
}

/*
 * Appends the name of a length: that of the field it comes from, if it is in a structure around the
 * sequence. Otherwise it is a slot. Elements of arrays have no slots of their own.
 */
static int put_length(struct writer *w, const struct ky_node *n)
{
	size_t begin = w->b->len;

	for (size_t i = w->n_around; n->depends_on && n->depends_on->is_shown && i-- > 0;) {
		if (!put_path(w, w->around[i], n->depends_on))
			continue;
		ky_buf_append(w->b, "", 1);
		if (w->b->error)
			return -ENOMEM;
		w->b->len--;
		if (!is_shadowed(w, begin, i))
			return 0;
		w->b->len = begin;
		if (w->in_array)
			return refuse_node(w, n, "an array of sequences whose length is hidden");
		break;
	}
	if (w->in_array && n->depends_on && w->n_around && contains(w->around[0], n->depends_on))
		return refuse_node(w, n, "an array of sequences whose length is in an option");
	return put_slot(w, n);
}

/* --- types --- */

static void put_integer(struct ky_buf *b, const struct ky_node *n)
{
	ky_buf_printf(b, "integer { size = %u; align = 8; signed = %d; base = %u; }",
		n->is_leb ? 64 : n->size, n->is_signed, n->base);
}

static void put_label(struct ky_buf *b, const struct ky_node *n, uint32_t i)
{
	const struct ky_range *r = &n->type->ranges[i];

	put_quoted(b, n->type->labels[i]);
	if (n->is_signed)
		ky_buf_printf(b, " = %" PRId64 " ... %" PRId64, (int64_t)r->lo, (int64_t)r->hi);
	else
		ky_buf_printf(b, " = %" PRIu64 " ... %" PRIu64, r->lo, r->hi);
}

static void put_int(struct writer *w, const struct ky_node *n)
{
	w->m->is_approximate |= n->show && n->show < KY_SHOW_ADDRESS;
	if (!n->is_enum || !n->type->n) {
		put_integer(w->b, n);
		return;
	}
	ky_buf_puts(w->b, "enum : ");
	put_integer(w->b, n);
	ky_buf_puts(w->b, " { ");
	for (uint32_t i = 0; i < n->type->n; i++) {
		ky_buf_puts(w->b, i ? ", " : "");
		put_label(w->b, n, i);
	}
	ky_buf_puts(w->b, " }");
}

static bool is_array(const struct ky_node *n)
{
	return (n->kind == KY_NODE_ARRAY || n->kind == KY_NODE_SEQUENCE) && !n->is_text;
}

/* Returns what an array, or an array of arrays, consists of. */
static const struct ky_node *element_of(const struct ky_node *n)
{
	while (is_array(n) && !n->is_blob)
		n = n->children;
	return n;
}

static int put_type(struct writer *w, const struct ky_node *n);
static int put_lengths(struct writer *w, const struct ky_node *n);

/* A declaration: the type of the innermost elements, the name, and the lengths of arrays. */
static int put_field(struct writer *w, const struct ky_node *n)
{
	bool in_array = w->in_array;
	const struct ky_node *type = element_of(n);
	int r;

	w->field = n->name;
	w->in_array |= type != n;
	r = put_type(w, type);
	w->in_array = in_array;
	ky_buf_puts(w->b, " ");
	ky_buf_puts(w->b, name_of(w->m, n));
	if (!r && is_array(n))
		r = put_lengths(w, n);
	ky_buf_puts(w->b, "; ");
	return r;
}

static int put_lengths(struct writer *w, const struct ky_node *n)
{
	int r = 0;

	for (; is_array(n) && !r; n = n->children) {
		ky_buf_puts(w->b, "[");
		if (n->kind == KY_NODE_ARRAY)
			ky_buf_printf(w->b, "%" PRIu64, n->count);
		else
			r = put_length(w, n);
		ky_buf_puts(w->b, "]");
		if (n->is_blob)
			break;
	}
	return r;
}

static int put_struct(struct writer *w, const struct ky_node *n)
{
	int r;

	if (w->n_around == MAX_DEPTH)
		return refuse_node(w, n, "structures nested too deep");
	r = name_members(w->m, n, false);
	w->around[w->n_around++] = n;
	ky_buf_puts(w->b, "struct { ");
	for (uint32_t i = 0; i < n->n && !r; i++)
		if (n->children[i].is_shown)
			r = put_field(w, &n->children[i]);
	ky_buf_puts(w->b, "}");
	w->n_around--;
	return r;
}

/* True if it is a member of a structure around the type: tags have to be. */
static bool is_in_reach(const struct writer *w, const struct ky_node *field)
{
	for (size_t i = w->n_around; i-- > 0;)
		if (is_member(w->around[i], field))
			return true;
	return false;
}

static int put_tagged(struct writer *w, const struct ky_node *n)
{
	int r = 0;

	ky_buf_puts(w->b, "variant <");
	ky_buf_puts(w->b, name_of(w->m, n->depends_on));
	ky_buf_puts(w->b, "> { ");
	for (uint32_t i = 0; i < n->n && !r; i++)
		r = put_field(w, &n->children[i]);
	ky_buf_puts(w->b, "}");
	return r;
}

/* Without a tag: a structure of sequences, of which the option's has one element. */
static int put_untagged(struct writer *w, const struct ky_node *n)
{
	int r = 0;

	if (w->in_array)
		return refuse_node(w, n, "an array of variants whose tag is elsewhere");
	w->m->is_approximate = true;
	ky_buf_puts(w->b, "struct { ");
	for (uint32_t i = 0; i < n->n && !r; i++) {
		const struct ky_node *option = &n->children[i], *type = element_of(option);

		w->in_array = type != option;
		r = put_type(w, type);
		w->in_array = false;
		ky_buf_printf(w->b, " _o%u[", i);
		if (!r)
			r = put_slot(w, option);
		ky_buf_puts(w->b, "]");
		if (!r && is_array(option))
			r = put_lengths(w, option);
		ky_buf_puts(w->b, "; ");
	}
	ky_buf_puts(w->b, "}");
	return r;
}

static int put_variant(struct writer *w, const struct ky_node *n)
{
	bool has_tag = !n->is_optional && !w->m->trace->tsdl.is_ctf2 && n->depends_on &&
		       n->depends_on->is_enum && is_in_reach(w, n->depends_on);

	return has_tag ? put_tagged(w, n) : put_untagged(w, n);
}

static int put_type(struct writer *w, const struct ky_node *n)
{
	if (ky_ctf_is_text(n)) {
		ky_buf_puts(w->b, "string");
		return 0;
	}
	switch ((enum ky_node_kind)n->kind) {
	case KY_NODE_INT:
		put_int(w, n);
		return 0;
	case KY_NODE_FLOAT:
		ky_buf_printf(w->b, "floating_point { exp_dig = %d; mant_dig = %d; align = 8; }",
			n->size == 32 ? 8 : 11, n->size == 32 ? 24 : 53);
		return 0;
	case KY_NODE_STRUCT:
		return put_struct(w, n);
	case KY_NODE_VARIANT:
		return put_variant(w, n);
	default: /* a block of bytes */
		w->m->is_approximate = true;
		ky_buf_puts(w->b, "integer { size = 8; align = 8; base = 16; }");
		return 0;
	}
}

/* --- blocks --- */

static int put_scope(struct writer *w, const char *name, const struct ky_node *n)
{
	int r;

	if (!n || !n->is_shown)
		return 0;
	ky_buf_printf(w->b, "	%s := ", name);
	r = put_struct(w, n);
	ky_buf_puts(w->b, ";\n");
	return r;
}

static void put_slots(struct ky_buf *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		ky_buf_printf(b, "u32 _n%u; ", i);
}

static int put_event(struct writer *w, const struct ky_event_class *e)
{
	uint32_t *most = &w->m->n_event_slots[e->stream - w->m->trace->layout.streams];
	uint32_t before = *w->n_slots;
	int r;

	ky_buf_puts(w->b, "event {\n	name = ");
	put_quoted(w->b, e->name);
	ky_buf_printf(w->b, ";\n	id = %" PRIu64 ";\n	stream_id = %" PRIu64 ";\n", e->id,
		e->stream->id);
	if (e->loglevel >= 0)
		ky_buf_printf(w->b, "	loglevel = %d;\n", e->loglevel);
	r = put_scope(w, "context", e->context);
	if (!r)
		r = put_scope(w, "fields", e->fields);
	ky_buf_puts(w->b, "};\n");
	/* Events share the slots; those of the stream's context come first. */
	*most = KY_MAX(*most, *w->n_slots);
	*w->n_slots = before;
	return r;
}

/* The shown members of a packet's context. */
static int put_context(struct writer *w, const struct ky_node *n)
{
	int r = name_members(w->m, n, true);

	w->around[w->n_around++] = n;
	for (uint32_t i = 0; i < n->n && !r; i++)
		if (n->children[i].is_shown)
			r = put_field(w, &n->children[i]);
	w->n_around--;
	return r;
}

/* The text of a stream class in two parts, because its header depends on its events. */
static int put_stream(struct ky_ctf_metadata *m, struct ky_buf *b, const struct ky_stream_class *s)
{
	uint32_t *most = &m->n_event_slots[s - m->trace->layout.streams], n_slots = 0;
	struct ky_buf contexts = {0}, events = {0};
	struct writer packet = {.m = m,
		.b = &contexts,
		.slot_scope = "trace.packet.header",
		.n_slots = &m->n_header_slots};
	struct writer event = {
		.m = m, .b = &contexts, .slot_scope = "stream.event.header", .n_slots = &n_slots};
	bool has_clock = s->clock;
	int r = 0;

	ky_buf_printf(&contexts, "	packet.context := struct { %s%s%s%s",
		ky_ctf_has_packet_times(s) ? "time_t timestamp_begin; time_t timestamp_end; " : "",
		"u64 content_size; u64 packet_size; ",
		s->discarded_bits ? "u64 events_discarded; " : "",
		s->seq_bits ? "u64 packet_seq_num; " : "");
	if (s->packet_context && s->packet_context->is_shown)
		r = put_context(&packet, s->packet_context);
	ky_buf_puts(&contexts, "};\n");
	if (!r)
		r = put_scope(&event, "event.context", s->event_context);
	*most = n_slots;
	event.b = &events;
	for (size_t i = 0; i < s->n_events && !r; i++)
		r = put_event(&event, &s->events[i]);
	ky_buf_printf(b,
		"stream {\n	id = %" PRIu64 ";\n	event.header := struct { u64 id; %s", s->id,
		has_clock ? "time_t timestamp; " : "");
	put_slots(b, *most);
	ky_buf_puts(b, "};\n");
	ky_buf_append(b, contexts.data, contexts.len);
	ky_buf_puts(b, "};\n");
	ky_buf_append(b, events.data, events.len);
	if (contexts.error || events.error)
		r = -ENOMEM;
	ky_buf_deinit(&contexts);
	ky_buf_deinit(&events);
	return r;
}

static void put_uuid(struct ky_buf *b, const uint8_t uuid[16])
{
	for (int i = 0; i < 16; i++)
		ky_buf_printf(
			b, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

/* Names of CTF 2 that get the same identifier become different. */
static int put_env(struct ky_buf *b, struct ky_ctf_metadata *m)
{
	const struct ky_tsdl *t = &m->trace->tsdl;
	struct ky_ctf_names names = {0};
	struct ky_buf name = {0};
	int r = 0;

	ky_buf_puts(b, t->n_env ? "env {\n" : "");
	for (size_t i = 0; i < t->n_env && !r; i++) {
		if (!t->is_ctf2)
			ky_ctf_names_deinit(&names);
		r = ky_ctf_names_choose(&names, &name, "", t->env[i].name);
		if (r)
			break;
		m->is_renamed |= strcmp(name.data, t->env[i].name);
		ky_buf_printf(b, "	%s = ", name.data);
		if (t->env[i].text)
			put_quoted(b, t->env[i].text);
		else
			ky_buf_printf(b, "%" PRId64, t->env[i].number);
		ky_buf_puts(b, ";\n");
	}
	ky_buf_puts(b, t->n_env ? "};\n" : "");
	ky_buf_deinit(&name);
	ky_ctf_names_deinit(&names);
	return r;
}

/* Times are nanoseconds since 1970, or since the origin of a clock that begins before. */
static int64_t find_origin(const struct ky_tsdl *t)
{
	int64_t origin = 0;

	for (size_t i = 0; i < t->n_clocks; i++)
		origin = KY_MIN(origin, t->clocks[i].base_ns);
	return origin;
}

static int put_clock(struct ky_buf *b, const struct ky_tsdl *t, int64_t origin_ns)
{
	int64_t s = origin_ns / 1000000000, ns = origin_ns % 1000000000;
	struct ky_ctf_names names = {0};
	struct ky_buf name = {0};
	int r = ky_ctf_names_choose(&names, &name, "", t->n_clocks ? t->clocks[0].name : "ns");

	if (!r) {
		ky_buf_printf(b, "clock { name = %s; freq = 1000000000; ", name.data);
		if (origin_ns)
			ky_buf_printf(b, "offset_s = %" PRId64 "; ", ns ? s - 1 : s);
		ky_buf_printf(
			b, "offset = %" PRId64 "; absolute = TRUE; };\n", ns ? ns + 1000000000 : 0);
		ky_buf_printf(b,
			"typealias integer { size = 64; align = 8; map = clock.%s.value; } := time_t;\n",
			name.data);
	}
	ky_buf_deinit(&name);
	ky_ctf_names_deinit(&names);
	return r;
}

static int put_trace(struct ky_buf *b, struct ky_ctf_metadata *m)
{
	const struct ky_tsdl *t = &m->trace->tsdl;
	int r;

	ky_buf_puts(b, "/* CTF 1.8 */\n"
		       "typealias integer { size = 8; align = 8; } := u8;\n"
		       "typealias integer { size = 32; align = 8; } := u32;\n"
		       "typealias integer { size = 64; align = 8; } := u64;\n"
		       "trace {\n	major = 1; minor = 8; byte_order = le;\n");
	if (t->has_uuid) {
		ky_buf_puts(b, "	uuid = \"");
		put_uuid(b, t->uuid);
		ky_buf_puts(b, "\";\n");
	}
	ky_buf_printf(b, "	packet.header := struct { u32 magic; %s%s",
		t->has_uuid ? "u8 uuid[16]; " : "",
		m->has_instance ? "u64 stream_id; u64 stream_instance_id; " : "u64 stream_id; ");
	put_slots(b, m->n_header_slots);
	ky_buf_puts(b, "};\n};\n");
	r = put_env(b, m);
	return r ? r : put_clock(b, t, m->origin_ns);
}

static bool has_role(const struct ky_node *n, enum ky_role role)
{
	bool found = n && (n->role == role || n->second_role == role);

	for (uint32_t i = 0; n && i < n->n && !found; i++)
		found = has_role(&n->children[i], role);
	return found;
}

int ky_ctf_metadata_put(struct ky_ctf_metadata *m, struct ky_buf *b, const struct ky_trace *trace)
{
	struct ky_buf streams = {0};
	int r = 0;

	m->trace = trace;
	m->origin_ns = find_origin(&trace->tsdl);
	/* Files of several directories may be one stream if it has a number, and only then. */
	m->has_instance = has_role(trace->layout.packet_header, KY_ROLE_INSTANCE_ID);
	m->n_event_slots = calloc(trace->layout.n_streams + 1, sizeof(*m->n_event_slots));
	if (!m->n_event_slots)
		return -ENOMEM;
	for (size_t i = 0; i < trace->layout.n_streams && !r; i++)
		r = put_stream(m, &streams, &trace->layout.streams[i]);
	if (!r)
		r = put_trace(b, m);
	ky_buf_append(b, streams.data, streams.len);
	if (!r && (streams.error || b->error))
		r = -ENOMEM;
	ky_buf_deinit(&streams);
	return r;
}

void ky_ctf_metadata_deinit(struct ky_ctf_metadata *m)
{
	ky_htab_free_all(&m->slots, struct ky_ctf_slot, node);
	ky_htab_free_all(&m->names, struct ky_ctf_name, node);
	free(m->n_event_slots);
}
