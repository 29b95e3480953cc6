/* SPDX-License-Identifier: MIT */
/*
 * Description of an event as bytes: what a program sends, what the registry keeps, and what the
 * metadata is made from. The encoding is canonical, so two events have the same signature exactly
 * when their descriptions are the same bytes.
 *
 *   description: str provider, str name, i32 loglevel, u32 n_fields, n_fields x bytes field,
 *                and, if there is one: str model_emf_uri
 *   field:       u8 kind, u8 elem, u8 size, u8 flags (enum kymo_field_*), u32 count, str name,
 *                and for an enumeration (kind or elem ENUM): str type name, u32 n_labels,
 *                n_labels x { str label, u64 lo, u64 hi };
 *                for what has fields itself (STRUCT, VARIANT): u32 n_fields, n_fields x bytes field
 *
 * KYMO_FIELD_MEDIA is described as the enumeration that it is, with one label: the media type.
 */
#ifndef PROTO_DESC_H
#define PROTO_DESC_H

#include <kymo/types.h>

#include "proto/wire.h"

#define KY_NAME_MAX   255 /* bytes of "provider:name", and of a field's name */
#define KY_FIELDS_MAX 256 /* of an event, those in fields too */
#define KY_LABELS_MAX 4096
#define KY_DEPTH_MAX  8 /* of fields in fields */
#define KY_URI_MAX    1024

/* Returns the event with the members that only events with a probe have, or NULL. */
static inline const struct kymo_probe_event *ky_event_with_probe(const struct kymo_event *ev)
{
	return ev->size >= sizeof(struct kymo_probe_event) ? (const struct kymo_probe_event *)ev
							   : NULL;
}

static inline const struct kymo_watched_event *ky_event_watched(const struct kymo_event *ev)
{
	return ev->size >= sizeof(struct kymo_watched_event) ? (const struct kymo_watched_event *)ev
							     : NULL;
}

static inline void (*ky_event_probe(const struct kymo_event *ev))(void)
{
	const struct kymo_probe_event *p = ky_event_with_probe(ev);

	return p ? p->probe : NULL;
}

static inline int ky_event_loglevel(const struct kymo_event *ev)
{
	const struct kymo_probe_event *p = ky_event_with_probe(ev);

	return p && p->loglevel ? *p->loglevel : ev->loglevel;
}

/*
 * Number of fields of an event whose description does not fit a message: the program sends its name
 * and level alone. The daemon refuses it, so that it is named, and counted as discarded.
 */
#define KY_DESC_TOO_LARGE UINT32_MAX

/* Appends the description of ev to w; errors are w's. */
void ky_desc_encode(struct ky_writer *w, const struct kymo_event *ev);

/* Borrowed from the bytes it was opened on. */
struct ky_desc {
	const char *provider, *name;
	int32_t loglevel;
	uint32_t n_fields;	 /* fields that ky_desc_next_field has still to return */
	struct ky_reader fields; /* private: of ky_desc_next_field */
};

struct ky_desc_field {
	uint8_t kind, elem, size, flags;
	uint32_t count;
	const char *name;
	const char *enum_name;
	uint32_t n_labels;     /* of an enumeration */
	uint32_t n_fields;     /* of what has fields itself */
	struct ky_reader rest; /* private: the labels, or the fields */
};

/*
 * Checks a whole description from an untrusted peer: lengths, names, kinds, sizes, and that no two
 * fields have one name. Returns 0, or -EBADMSG with *ret_why set to a static explanation (ret_why
 * may be NULL).
 */
int ky_desc_check(struct ky_bytes bytes, const char **ret_why);
/* Opens a checked description. */
void ky_desc_open(struct ky_desc *d, struct ky_bytes bytes);
/* Reads the next field into *f. Returns false at the end. */
bool ky_desc_next_field(struct ky_desc *d, struct ky_desc_field *f);
/* Returns the URI of the event's model; "": none. Call it after the last field. */
const char *ky_desc_model_emf_uri(struct ky_desc *d);
bool ky_field_next_label(struct ky_desc_field *f, struct kymo_enum_label *label);
/* Returns the fields of a field, for ky_desc_next_field. */
struct ky_desc ky_field_fields(const struct ky_desc_field *f);
static inline bool ky_field_is_array(const struct ky_desc_field *f)
{
	return f->kind == KYMO_FIELD_ARRAY || f->kind == KYMO_FIELD_SEQUENCE;
}
/* Returns the field's kind, or that of its elements. */
static inline uint8_t ky_field_basic_kind(const struct ky_desc_field *f)
{
	return ky_field_is_array(f) ? f->elem : f->kind;
}

/* Returns true for a character that names of events may have. */
bool ky_desc_name_char(char c);
/*
 * Checks a "provider" or "name" from an application: 1 to 253 letters, digits or any of "_.-";
 * names may also contain ':'.
 */
bool ky_desc_name_valid(const char *s);

#endif
