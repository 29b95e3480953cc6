/* SPDX-License-Identifier: MIT */
/*
 * The compiler makes two passes over each scope. The first one goes forwards: it makes nodes, and
 * finds lengths and tags among the fields that were decoded before. The second one goes backwards:
 * it marks the fields that are shown. A field with a role is hidden, unless a shown field depends
 * on it. The rules are those of babeltrace2, so that both show the same.
 */
#include "reader/layout.h"

#include <stdarg.h>

#include "base/bisect.h"
#include "reader/layout-parts.h"

#define MAX_DEPTH   (2 * KY_TSDL_MAX_DEPTH)
#define MAX_LOCATED (1u << 22) /* fields that are looked at for all locations of CTF 2 */

/* Scopes in the order in which they are decoded. A path of TSDL may begin with a scope's name. */
enum {
	SCOPE_PACKET_HEADER,
	SCOPE_PACKET_CONTEXT,
	SCOPE_EVENT_HEADER,
	SCOPE_EVENT_CONTEXT,
	SCOPE_SPECIFIC_CONTEXT,
	SCOPE_FIELDS,
	N_SCOPES,
};

static const char *const scope_names[N_SCOPES][3] = {{"trace", "packet", "header"},
	{"stream", "packet", "context"}, {"stream", "event", "header"},
	{"stream", "event", "context"}, {"event", "context"}, {"event", "fields"}};

struct compiler {
	struct ky_tsdl *t;
	char *why;
	size_t why_size;
	bool failed;
	struct ky_node *scopes[N_SCOPES];
	int scope; /* being compiled */
	/* Nodes under construction, outermost first; n counts the children begun. */
	struct ky_node *frames[MAX_DEPTH];
	int depth;
	uint32_t n_slots, max_slots, n_located;
	const struct ky_trace_clock *clock; /* of the stream being compiled, or NULL */
	const struct ky_choices **choices;  /* all so far, found by their types; owned */
	size_t n_choices;
};

static void KY_PRINTF(2, 3) fail_compiling(struct compiler *c, const char *fmt, ...)
{
	va_list ap;

	if (c->failed)
		return;
	c->failed = true;
	va_start(ap, fmt);
	vsnprintf(c->why, c->why_size, fmt, ap);
	va_end(ap);
}

static void *alloc_layout(struct compiler *c, size_t n, size_t size)
{
	void *p = n <= SIZE_MAX / size ? ky_arena_alloc(&c->t->arena, n * size) : NULL;

	if (!p)
		fail_compiling(c, "the metadata is too large");
	return p;
}

/* --- references --- */

/*
 * Follows a path from a structure through structures. words ends with NULL. Returns NULL if it
 * leads nowhere.
 */
static struct ky_node *follow_words(
	const struct compiler *c, struct ky_node *s, const char *const *words)
{
	for (; s && s->kind == KY_NODE_STRUCT && *words; words++) {
		uint32_t i = ky_names_find(&c->t->names, s, *words);

		s = i < s->n ? &s->children[i] : NULL;
	}
	return s && !*words ? s : NULL;
}

/*
 * Returns the number of words that the path spends on the name of this scope; 0 if it names
 * another.
 */
static unsigned scope_words(int scope, const char *const *words)
{
	unsigned n = 0;

	for (; n < 3 && scope_names[scope][n]; n++) {
		if (!words[n] || strcmp(words[n], scope_names[scope][n]))
			return 0;
	}
	return words[n] ? n : 0;
}

static struct ky_node *find_absolute(
	struct compiler *c, const char *const *words, bool *is_absolute)
{
	for (int i = 0; i < N_SCOPES; i++) {
		unsigned n = scope_words(i, words);

		if (!n)
			continue;
		*is_absolute = true;
		if (i == c->scope)
			return follow_words(c, c->frames[0], words + n);
		return i < c->scope ? follow_words(c, c->scopes[i], words + n) : NULL;
	}
	return NULL;
}

/* Searches from the innermost structure outwards, then in earlier scopes, the nearest first. */
static struct ky_node *find_by_name(struct compiler *c, const char *const *words)
{
	bool is_absolute = false;
	struct ky_node *found = find_absolute(c, words, &is_absolute);

	for (int i = c->depth - 1; i >= 0 && !found && !is_absolute; i--)
		found = follow_words(c, c->frames[i], words);
	for (int i = c->scope - 1; i >= 0 && !found && !is_absolute; i--)
		found = follow_words(c, c->scopes[i], words);
	return found;
}

static bool is_in_frames(const struct compiler *c, const struct ky_node *n)
{
	int i = c->depth - 1;

	while (i >= 0 && c->frames[i] != n)
		i--;
	return i >= 0;
}

/* Gives the integer a slot: that of the first one that has the same location. */
static void add_located(struct compiler *c, struct ky_node *n, struct ky_node **first)
{
	if (!*first) {
		if (n->slot == KY_NO_SLOT)
			n->slot = c->n_slots++;
		*first = n;
	} else if (n->is_signed != (*first)->is_signed ||
		   (n->is_asked && n->slot != (*first)->slot)) {
		fail_compiling(c, "field '%.64s': options of a variant differ in it", n->full_name);
	}
	n->slot = (*first)->slot;
	n->is_asked = true;
}

/*
 * Follows a location of CTF 2 from a field. It leads through arrays to their element that is being
 * compiled, and through optional fields and variants to the option that is there when a record is
 * decoded: so it may name a field in each option. *first: the first integer that it leads to.
 */
static void follow_location(
	struct compiler *c, struct ky_node *n, const char *const *words, struct ky_node **first)
{
	uint32_t at;

	if (++c->n_located > MAX_LOCATED)
		fail_compiling(c, "the locations of fields lead through too many fields");
	while (n && ky_node_is_list(n) && is_in_frames(c, n))
		n = n->children;
	if (!n || c->failed)
		return;
	for (uint32_t i = 0; n->kind == KY_NODE_VARIANT && i < n->n; i++)
		follow_location(c, &n->children[i], words, first);
	if (n->kind == KY_NODE_INT && !*words)
		add_located(c, n, first);
	if (n->kind != KY_NODE_STRUCT || !*words)
		return;
	at = ky_names_find(&c->t->names, n, *words);
	if (at < n->n)
		follow_location(c, &n->children[at], words + 1, first);
}

/* Returns the n_up-th structure around the current field; 0: the one that holds it. Or NULL. */
static struct ky_node *structure_around(const struct compiler *c, uint32_t n_up)
{
	for (int i = c->depth - 1; i >= 0; i--) {
		if (c->frames[i]->kind == KY_NODE_STRUCT && !n_up--)
			return c->frames[i];
	}
	return NULL;
}

static struct ky_node *find_field(struct compiler *c, const struct ky_type *type)
{
	int scope = type->origin - KY_FROM_SCOPE;
	struct ky_node *from, *found = NULL;

	if (!type->path)
		return NULL;
	if (type->origin == KY_FROM_NAME)
		return find_by_name(c, type->path);
	if (type->origin == KY_FROM_HERE)
		from = structure_around(c, type->n_up);
	else
		from = scope == c->scope ? c->frames[0] : c->scopes[scope];
	follow_location(c, from, type->path, &found);
	return found;
}

/* Writes the path as a.b.c for a message. */
static const char *join_words(char *text, size_t size, const char *const *words)
{
	size_t len = 0;

	text[0] = '\0';
	for (; words && *words && len < size; words++)
		len += (size_t)snprintf(text + len, size - len, "%s%s", len ? "." : "", *words);
	return text;
}

static bool can_depend(const struct ky_node *on, const struct ky_type *type)
{
	if (!on || on->kind != KY_NODE_INT)
		return false;
	if (type->kind == KY_TYPE_VARIANT)
		return type->n_ranges || on->is_enum;
	return !on->is_signed;
}

/* Makes node depend on the integer that its type names, and gives that integer a slot. */
static void depend(struct compiler *c, struct ky_node *node, const struct ky_type *type)
{
	struct ky_node *on = find_field(c, type), *first = NULL;
	char text[80];

	if (!can_depend(on, type)) {
		fail_compiling(c, "field '%.64s': '%s' is no %s before it", node->full_name,
			join_words(text, sizeof(text), type->path),
			type->kind != KY_TYPE_VARIANT ? "unsigned integer"
			: type->n_ranges	      ? "integer"
						      : "enumeration");
		return;
	}
	add_located(c, on, &first);
	node->depends_on = on;
	node->from = on->slot;
}

/*
 * Handles [env.NAME], an array whose length is in the environment. Returns false for other lengths.
 */
static bool find_env_count(struct compiler *c, const struct ky_node *node, const char *const *path,
	uint64_t *ret_count)
{
	const struct ky_tsdl *t = c->t;
	uint32_t i;

	if (t->is_ctf2 || !path || strcmp(path[0], "env") || !path[1] || path[2])
		return false;
	i = ky_names_find(&t->names, &t->n_env, path[1]);
	if (i >= t->n_env || t->env[i].text || t->env[i].number < 0)
		fail_compiling(c, "field '%.64s': the environment has no length '%.64s'",
			node->full_name, path[1]);
	else
		*ret_count = (uint64_t)t->env[i].number;
	return true;
}

/* --- roles --- */

static const struct {
	int scope;
	const char *name;
	enum ky_role role;
} roles[] = {
	{SCOPE_PACKET_HEADER, "magic", KY_ROLE_MAGIC},
	{SCOPE_PACKET_HEADER, "stream_id", KY_ROLE_STREAM_ID},
	{SCOPE_PACKET_HEADER, "stream_instance_id", KY_ROLE_INSTANCE_ID},
	{SCOPE_PACKET_CONTEXT, "timestamp_begin", KY_ROLE_TIMESTAMP_BEGIN},
	{SCOPE_PACKET_CONTEXT, "timestamp_end", KY_ROLE_TIMESTAMP_END},
	{SCOPE_PACKET_CONTEXT, "content_size", KY_ROLE_CONTENT_SIZE},
	{SCOPE_PACKET_CONTEXT, "packet_size", KY_ROLE_PACKET_SIZE},
	{SCOPE_PACKET_CONTEXT, "packet_seq_num", KY_ROLE_PACKET_SEQ},
	{SCOPE_PACKET_CONTEXT, "events_discarded", KY_ROLE_DISCARDED},
	{SCOPE_PACKET_CONTEXT, "cpu_id", KY_ROLE_CPU},
	{SCOPE_FIELDS, "span_tid", KY_ROLE_SPAN_TID},
	{SCOPE_FIELDS, "async_id", KY_ROLE_ASYNC_ID},
};

/*
 * Returns the role that CTF 2 declares for a field; it depends on the scope, too. *ret_second: the
 * next one, of a field that has two, such as the numbers of a stream and of its class.
 */
static enum ky_role explicit_role(
	const struct compiler *c, const struct ky_type *type, enum ky_role *ret_second)
{
	static const struct {
		int scope;
		enum ky_tsdl_role from;
		enum ky_role role;
	} meanings[] = {
		{SCOPE_PACKET_HEADER, KY_TSDL_ROLE_MAGIC, KY_ROLE_MAGIC},
		{SCOPE_PACKET_HEADER, KY_TSDL_ROLE_UUID, KY_ROLE_UUID},
		{SCOPE_PACKET_HEADER, KY_TSDL_ROLE_STREAM_CLASS, KY_ROLE_STREAM_ID},
		{SCOPE_PACKET_HEADER, KY_TSDL_ROLE_STREAM, KY_ROLE_INSTANCE_ID},
		{SCOPE_PACKET_CONTEXT, KY_TSDL_ROLE_TIME, KY_ROLE_TIMESTAMP_BEGIN},
		{SCOPE_PACKET_CONTEXT, KY_TSDL_ROLE_END_TIME, KY_ROLE_TIMESTAMP_END},
		{SCOPE_PACKET_CONTEXT, KY_TSDL_ROLE_CONTENT_SIZE, KY_ROLE_CONTENT_SIZE},
		{SCOPE_PACKET_CONTEXT, KY_TSDL_ROLE_PACKET_SIZE, KY_ROLE_PACKET_SIZE},
		{SCOPE_PACKET_CONTEXT, KY_TSDL_ROLE_SEQ, KY_ROLE_PACKET_SEQ},
		{SCOPE_PACKET_CONTEXT, KY_TSDL_ROLE_DISCARDED, KY_ROLE_DISCARDED},
		{SCOPE_EVENT_HEADER, KY_TSDL_ROLE_EVENT_CLASS, KY_ROLE_EVENT_ID},
	};
	enum ky_role found = KY_ROLE_NONE;

	*ret_second = KY_ROLE_NONE;
	for (size_t i = 0; type->roles && i < KY_ARRAY_SIZE(meanings); i++) {
		if (meanings[i].scope != c->scope || !(type->roles & 1u << meanings[i].from))
			continue;
		*ret_second = found ? meanings[i].role : KY_ROLE_NONE;
		if (found)
			break;
		found = meanings[i].role;
	}
	return found;
}

/*
 * Returns the role of a field by its name. In an event header, `id` may be in any structure; other
 * names count at the top of their scope only.
 */
static enum ky_role role_of(
	const struct compiler *c, const struct ky_node *node, enum ky_role *ret_second)
{
	const struct ky_node *parent = c->frames[c->depth - 1];
	enum ky_role explicit = explicit_role(c, node->type, ret_second);

	if (explicit != KY_ROLE_NONE)
		return explicit;
	if (c->t->is_ctf2 && c->scope <= SCOPE_EVENT_HEADER && strcmp(node->name, "cpu_id"))
		return KY_ROLE_NONE;
	if (c->scope == SCOPE_EVENT_HEADER && parent->kind == KY_NODE_STRUCT &&
		!strcmp(node->name, "id"))
		return KY_ROLE_EVENT_ID;
	for (size_t i = 0; i < KY_ARRAY_SIZE(roles) && c->depth == 1; i++) {
		if (c->scope == roles[i].scope && !strcmp(node->name, roles[i].name))
			return roles[i].role;
	}
	return KY_ROLE_NONE;
}

static bool is_uuid_of_packet(const struct compiler *c, const struct ky_node *node)
{
	if (c->scope != SCOPE_PACKET_HEADER)
		return false;
	return c->t->is_ctf2 ? node->type->roles & 1u << KY_TSDL_ROLE_UUID
			     : !strcmp(node->name, "uuid");
}

/* Refuses fields with a role that are not unsigned integers, and UUIDs that are not 16 bytes. */
static void check_role(struct compiler *c, const struct ky_node *node)
{
	const struct ky_node *elem = node->children;
	bool is_uuid = is_uuid_of_packet(c, node);
	enum ky_role second, role = is_uuid ? KY_ROLE_UUID : role_of(c, node, &second);
	bool ok = node->kind == KY_NODE_INT && !node->is_signed;

	if (role == KY_ROLE_NONE || role >= KY_ROLE_CPU)
		return;
	if (is_uuid)
		ok = node->kind == KY_NODE_ARRAY && node->count == 16 &&
		     elem->kind == KY_NODE_INT && elem->size == 8 && elem->align == 8 &&
		     !elem->is_signed;
	if (role == KY_ROLE_MAGIC)
		ok = ok && node->size == 32 && node == c->frames[0]->children;
	if (!ok)
		fail_compiling(c, "field '%.64s' has a type or place that is not allowed for it",
			node->full_name);
}

/* --- clocks --- */

/*
 * Recognizes times that have no clock. They use the only clock, or one that counts nanoseconds
 * from 0.
 */
static bool is_unmapped_time(const struct compiler *c, const struct ky_node *node)
{
	for (int i = 0; i < c->depth; i++) {
		if (c->frames[i]->kind != KY_NODE_STRUCT && c->frames[i]->kind != KY_NODE_VARIANT)
			return false;
	}
	if (c->scope == SCOPE_EVENT_HEADER)
		return !strcmp(node->name, "timestamp");
	return c->scope == SCOPE_PACKET_CONTEXT &&
	       (!strcmp(node->name, "timestamp_begin") || !strcmp(node->name, "timestamp_end"));
}

static const struct ky_trace_clock *default_clock(struct compiler *c, const struct ky_node *node)
{
	struct ky_tsdl *t = c->t;

	if (t->n_clocks > 1) {
		fail_compiling(c, "field '%.64s' needs a map: the metadata has %zu clocks",
			node->full_name, t->n_clocks);
		return NULL;
	}
	if (!t->n_clocks) {
		t->clocks = alloc_layout(c, 1, sizeof(*t->clocks));
		if (!t->clocks)
			return NULL;
		t->clocks[0] = (struct ky_trace_clock){.name = "default", .freq = 1000000000};
		t->n_clocks = 1;
	}
	return &t->clocks[0];
}

static const struct ky_trace_clock *clock_by_name(
	struct compiler *c, const char *name, const char *field)
{
	uint32_t i = ky_names_find(&c->t->names, &c->t->n_clocks, name);

	if (i < c->t->n_clocks)
		return &c->t->clocks[i];
	fail_compiling(c, "field '%.64s': the clock '%.64s' is not described", field, name);
	return NULL;
}

/* Only the scopes that are decoded before an event's time is known have times. */
static bool has_role_of_time(const struct compiler *c, const struct ky_type *type)
{
	const unsigned times = 1u << KY_TSDL_ROLE_TIME | 1u << KY_TSDL_ROLE_END_TIME;

	return type->roles & times &&
	       (c->scope == SCOPE_PACKET_CONTEXT || c->scope == SCOPE_EVENT_HEADER);
}

static void find_clock(struct compiler *c, struct ky_node *node, const struct ky_type *type)
{
	const struct ky_trace_clock *clock = NULL;

	if (type->clock) {
		clock = clock_by_name(c, type->clock, node->full_name);
	} else if (c->t->is_ctf2) {
		if (has_role_of_time(c, type))
			clock = c->clock;
	} else if (is_unmapped_time(c, node)) {
		clock = default_clock(c, node);
	}
	if (!clock)
		return;
	if (c->clock && c->clock != clock)
		fail_compiling(c, "field '%.64s': its stream has two clocks, '%.64s' and '%.64s'",
			node->full_name, c->clock->name, clock->name);
	c->clock = clock;
	node->is_mapped = true;
	/* The decoder meets the end time of a packet before its events. */
	node->is_clock = !node->is_signed && node->role != KY_ROLE_TIMESTAMP_END;
}

/* --- nodes --- */

static void build(struct compiler *c, struct ky_node *node, const struct ky_type *type);

static bool is_big_endian(const struct compiler *c, const struct ky_type *type)
{
	return type->byte_order == KY_ORDER_NATIVE ? c->t->big_endian
						   : type->byte_order == KY_ORDER_BE;
}

static void build_integer(struct compiler *c, struct ky_node *node, const struct ky_type *type)
{
	enum ky_role second;

	node->kind = KY_NODE_INT;
	node->size = type->size;
	node->base = type->base;
	node->is_signed = type->is_signed;
	node->big_endian = is_big_endian(c, type);
	node->is_enum = type->kind == KY_TYPE_ENUM;
	node->is_leb = type->is_leb;
	node->show = type->show;
	node->is_number = !node->is_enum && !node->show;
	node->role = role_of(c, node, &second);
	node->second_role = second;
	if (c->scope <= SCOPE_EVENT_CONTEXT)
		node->slot = c->n_slots++; /* an event may depend on it */
	find_clock(c, node, type);
}

static void build_array(struct compiler *c, struct ky_node *node, const struct ky_type *type)
{
	const struct ky_type *e = type->elem;
	bool sequence;

	node->count = type->count;
	sequence = type->kind == KY_TYPE_SEQUENCE &&
		   !find_env_count(c, node, type->path, &node->count);
	node->kind = sequence ? KY_NODE_SEQUENCE : KY_NODE_ARRAY;
	if (sequence)
		depend(c, node, type);
	node->children = alloc_layout(c, 1, sizeof(*node->children));
	if (!node->children)
		return;
	node->n = 1;
	node->children->full_name = "";
	build(c, node->children, e);
	node->align = KY_MAX(node->align, node->children->align);
	node->is_blob = type->is_blob;
	node->is_text = (e->kind == KY_TYPE_INT || e->kind == KY_TYPE_ENUM) && e->is_text &&
			e->size == 8 && e->align == 8;
	node->is_scalars = ky_node_is_plain(node->children);
	node->is_text = node->is_text && node->is_scalars;
	if (c->depth == 2 && is_uuid_of_packet(c, node))
		node->role = KY_ROLE_UUID;
}

static void build_children(struct compiler *c, struct ky_node *node, const struct ky_type *type)
{
	c->frames[c->depth++] = node;
	node->children = alloc_layout(c, KY_MAX(type->n, 1u), sizeof(*node->children));
	for (uint32_t i = 0; i < type->n && !c->failed; i++) {
		struct ky_node *child = &node->children[i];
		uint32_t *index = ky_names_at(&c->t->names, node, type->members[i].name);

		if (!index) {
			fail_compiling(c, "the metadata is too large");
			break;
		}
		*index = i;
		node->n = i + 1;
		child->full_name = type->members[i].name;
		build(c, child, type->members[i].type);
		node->align = KY_MAX(node->align, child->align);
	}
	c->depth--;
}

/*
 * Collects the ranges of the tag whose labels name options, in their order. Returns false without
 * memory.
 */
static bool make_choices(struct compiler *c, struct ky_choices *to, const struct ky_type *tag,
	const struct ky_node *variant)
{
	struct ky_range *ranges = calloc(KY_MAX(tag->n, 1u), sizeof(*ranges));
	uint32_t *options = alloc_layout(c, KY_MAX(tag->n, 1u), sizeof(*options)), n = 0;
	bool ok;

	to->options = options;
	for (uint32_t i = 0; ranges && options && i < tag->n; i++) {
		uint32_t option = ky_names_find(&c->t->names, variant, tag->labels[i]);

		if (option == UINT32_MAX)
			continue;
		ranges[n] = tag->ranges[i];
		options[n++] = option;
	}
	ok = ranges && options &&
	     !ky_segments_build(&to->segments, &c->t->arena, ranges, n, tag->is_signed, 1);
	free(ranges);
	return ok;
}

/* Makes the choices of a variant that has ranges of its own. Returns false without memory. */
static bool copy_choices(
	struct compiler *c, struct ky_choices *to, const struct ky_type *type, bool is_signed)
{
	to->options = type->options;
	return !ky_segments_build(
		&to->segments, &c->t->arena, type->ranges, type->n_ranges, is_signed, 1);
}

/* Returns the choices of a variant; variants of the same types share them. NULL after an error. */
static const struct ky_choices *find_choices(
	struct compiler *c, const struct ky_node *variant, const struct ky_type *type)
{
	const struct ky_type *tag = variant->depends_on->type;
	const void *options = type->n ? (const void *)type->members : type;
	/* The table of names works for any pair of pointers. */
	uint32_t *at = ky_names_at(&c->t->names, tag, options);
	struct ky_choices *made = NULL;

	if (at && *at != UINT32_MAX)
		return c->choices[*at];
	if (at && ky_is_pow2(c->n_choices + 1)) {
		const struct ky_choices **more = reallocarray(
			c->choices, 2 * (c->n_choices + 1), sizeof(*more));

		c->choices = more ? more : c->choices;
		at = more ? at : NULL;
	}
	if (at)
		made = alloc_layout(c, 1, sizeof(*made));
	if (!made || !(type->n_ranges ? copy_choices(c, made, type, tag->is_signed)
				      : make_choices(c, made, tag, variant))) {
		fail_compiling(c, "the metadata is too large");
		return NULL;
	}
	c->choices[c->n_choices] = made;
	*at = (uint32_t)c->n_choices++;
	return made;
}

static void build_variant(struct compiler *c, struct ky_node *node, const struct ky_type *type)
{
	node->kind = KY_NODE_VARIANT;
	node->is_optional = type->is_optional;
	depend(c, node, type);
	if (c->failed)
		return;
	build_children(c, node, type);
	if (!c->failed)
		node->choices = find_choices(c, node, type);
	node->align = 1; /* the chosen option aligns itself */
}

static void build(struct compiler *c, struct ky_node *node, const struct ky_type *type)
{
	node->type = type;
	node->slot = node->from = KY_NO_SLOT;
	node->align = type->align ? type->align : 1;
	node->encoding = type->encoding;
	node->name = node->full_name + (!c->t->is_ctf2 && node->full_name[0] == '_');
	if (c->depth >= MAX_DEPTH - 1) {
		fail_compiling(c, "field '%s': types are nested too deeply", node->full_name);
		return;
	}
	switch ((enum ky_type_kind)type->kind) {
	case KY_TYPE_INT:
	case KY_TYPE_ENUM:
		build_integer(c, node, type);
		break;
	case KY_TYPE_FLOAT:
		node->kind = KY_NODE_FLOAT;
		node->size = type->size;
		node->big_endian = is_big_endian(c, type);
		break;
	case KY_TYPE_STRING:
		node->kind = KY_NODE_STRING;
		break;
	case KY_TYPE_ARRAY:
	case KY_TYPE_SEQUENCE:
		c->frames[c->depth++] = node;
		build_array(c, node, type);
		c->depth--;
		break;
	case KY_TYPE_STRUCT:
		node->kind = KY_NODE_STRUCT;
		build_children(c, node, type);
		break;
	case KY_TYPE_VARIANT:
		build_variant(c, node, type);
		break;
	}
	if (!c->failed && c->depth == 1)
		check_role(c, node);
}

static struct ky_node *build_scope(struct compiler *c, int scope, const struct ky_type *type)
{
	struct ky_node *node = type ? alloc_layout(c, 1, sizeof(*node)) : NULL;

	c->scope = scope;
	c->depth = 0;
	if (node) {
		node->full_name = "";
		build(c, node, type);
	}
	c->scopes[scope] = c->failed ? NULL : node;
	return c->scopes[scope];
}

/* --- the trace --- */

/* Completes a scope. All fields that may depend on its fields are compiled. */
static void finish_scope(struct compiler *c, struct ky_node *node)
{
	if (!node || c->failed)
		return;
	ky_node_mark_shown(node);
	if (ky_node_make_leads(node, &c->t->names, &c->t->arena) < 0)
		fail_compiling(c, "the metadata is too large");
	ky_node_find_runs(node);
	if (ky_twins_link(&c->t->names, node) < 0)
		fail_compiling(c, "no memory");
}

static bool has_role(const struct ky_node *node, enum ky_role role)
{
	if (!node || node->role == role || node->second_role == role)
		return node;
	for (uint32_t i = 0; i < node->n; i++) {
		if (has_role(&node->children[i], role))
			return true;
	}
	return false;
}

/* Returns the size of the field with this role, also in a structure of the scope; 0: none. */
static unsigned width_of(const struct ky_node *n, enum ky_role role)
{
	unsigned width = 0;

	if (n && (n->role == role || n->second_role == role))
		return n->size;
	for (uint32_t i = 0; n && i < n->n && !width; i++)
		width = width_of(&n->children[i], role);
	return width;
}

/* Events share slots, because the decoder decodes one at a time. */
static void compile_event(
	struct compiler *c, struct ky_event_class *e, const struct ky_tsdl_event *from)
{
	uint32_t n_common = c->n_slots;

	e->id = from->id;
	e->name = from->name && *from->name ? from->name : "<unknown>";
	e->name_len = strlen(e->name);
	e->loglevel = from->loglevel;
	c->scopes[SCOPE_FIELDS] = NULL;
	e->context = build_scope(c, SCOPE_SPECIFIC_CONTEXT, from->context);
	e->fields = build_scope(c, SCOPE_FIELDS, from->fields);
	c->max_slots = KY_MAX(c->max_slots, c->n_slots);
	c->n_slots = n_common;
	finish_scope(c, e->fields);
	finish_scope(c, e->context);
	e->is_span = width_of(e->fields, KY_ROLE_SPAN_TID) || width_of(e->fields, KY_ROLE_ASYNC_ID);
}

static void compile_stream(struct compiler *c, struct ky_stream_class *s,
	const struct ky_tsdl_stream *from, const struct ky_tsdl_event *events, size_t n_events)
{
	uint32_t n_common = c->n_slots;

	s->id = from->id;
	c->clock = from->clock ? clock_by_name(c, from->clock, "default clock") : NULL;
	memset(&c->scopes[SCOPE_PACKET_CONTEXT], 0,
		(N_SCOPES - SCOPE_PACKET_CONTEXT) * sizeof(c->scopes[0]));
	s->packet_context = build_scope(c, SCOPE_PACKET_CONTEXT, from->packet_context);
	s->event_header = build_scope(c, SCOPE_EVENT_HEADER, from->event_header);
	s->event_context = build_scope(c, SCOPE_EVENT_CONTEXT, from->event_context);
	if (n_events > 1 && !c->failed && !has_role(s->event_header, KY_ROLE_EVENT_ID))
		fail_compiling(c, "several events, and no 'id' in the event header");
	s->default_id = n_events == 1 ? events[0].id : 0;
	s->discarded_bits = width_of(s->packet_context, KY_ROLE_DISCARDED);
	s->seq_bits = width_of(s->packet_context, KY_ROLE_PACKET_SEQ);
	s->begin_bits = width_of(s->packet_context, KY_ROLE_TIMESTAMP_BEGIN);
	s->end_bits = width_of(s->packet_context, KY_ROLE_TIMESTAMP_END);
	s->events = alloc_layout(c, KY_MAX(n_events, (size_t)1), sizeof(*s->events));
	s->n_events = n_events;
	for (size_t i = 0; i < n_events && !c->failed; i++) {
		s->events[i].stream = s;
		compile_event(c, &s->events[i], &events[i]);
	}
	s->clock = c->clock;
	c->max_slots = KY_MAX(c->max_slots, c->n_slots);
	c->n_slots = n_common;
	finish_scope(c, s->event_context);
	finish_scope(c, s->packet_context);
	if (c->failed)
		return;
	if (ky_stream_class_name_contexts(s, &c->t->names, &c->t->arena) < 0)
		fail_compiling(c, "no memory");
	if (s->event_header)
		ky_node_mark_hidden(s->event_header);
	ky_node_find_short_head(&s->short_head, s->event_header);
	for (size_t i = 0; i < n_events; i++) {
		struct ky_event_class *e = &s->events[i];

		ky_node_add_bits(&e->body_bits, s->event_context);
		ky_node_add_bits(&e->body_bits, e->context);
		ky_node_add_bits(&e->body_bits, e->fields);
	}
}

int ky_layout_compile(struct ky_layout *l, struct ky_tsdl *t, char *why, size_t why_size)
{
	struct compiler c = {.t = t, .why = why, .why_size = why_size};
	size_t first = 0;

	memset(l, 0, sizeof(*l));
	l->packet_header = build_scope(&c, SCOPE_PACKET_HEADER, t->packet_header);
	l->streams = alloc_layout(&c, KY_MAX(t->n_streams, (size_t)1), sizeof(*l->streams));
	l->n_streams = t->n_streams;
	if (t->n_streams > 1 && !has_role(l->packet_header, KY_ROLE_STREAM_ID))
		fail_compiling(&c, "several streams, and no 'stream_id' in the packet header");
	for (size_t i = 0; i < t->n_streams && !c.failed; i++) {
		size_t n = 0;

		while (first + n < t->n_events &&
			t->events[first + n].stream_id == t->streams[i].id)
			n++;
		compile_stream(&c, &l->streams[i], &t->streams[i], n ? &t->events[first] : NULL, n);
		first += n;
	}
	if (!c.failed && l->packet_header)
		ky_node_mark_hidden(l->packet_header);
	l->n_slots = KY_MAX(c.max_slots, c.n_slots);
	free(c.choices);
	ky_names_deinit(&t->names);
	return c.failed ? -EINVAL : 0;
}

struct ky_stream_class *ky_layout_stream(const struct ky_layout *l, uint64_t id)
{
	size_t first;

	ky_bisect(first, l->n_streams, k, l->streams[k].id < id);
	return first < l->n_streams && l->streams[first].id == id ? &l->streams[first] : NULL;
}

struct ky_event_class *ky_stream_class_event_slow(const struct ky_stream_class *s, uint64_t id)
{
	size_t first;

	ky_bisect(first, s->n_events, k, s->events[k].id < id);
	return first < s->n_events && s->events[first].id == id ? &s->events[first] : NULL;
}
