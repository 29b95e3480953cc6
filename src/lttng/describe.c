/* SPDX-License-Identifier: MIT */
/* Kymo's descriptions of LTTng-UST's fields. */
#include <stdlib.h>

#include "lttng/lttng.h"

static bool describe_integer(struct kymo_field *f, const struct abi_type *type)
{
	const struct abi_integer *t = (const struct abi_integer *)type;
	bool known = t->bits == 8 || t->bits == 16 || t->bits == 32 || t->bits == 64;

	f->kind = t->is_signed ? KYMO_FIELD_INT : KYMO_FIELD_UINT;
	f->size = (uint8_t)(t->bits / 8);
	f->flags = (uint8_t)((t->base == 16 ? KYMO_FIELD_HEX : 0) |
			     (t->swapped ? KYMO_FIELD_NETWORK : 0));
	return known && (!t->swapped || __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
}

static bool describe_float(struct kymo_field *f, const struct abi_type *type)
{
	const struct abi_float *t = (const struct abi_float *)type;
	unsigned bits = t->exponent_bits + t->mantissa_bits;

	f->kind = KYMO_FIELD_FLOAT;
	f->size = (uint8_t)(bits / 8);
	return (bits == 32 || bits == 64) && !t->swapped;
}

static struct kymo_enum_type *copy_enum(const struct abi_enum_desc *desc)
{
	struct kymo_enum_type *type = calloc(1, sizeof(*type));
	struct kymo_enum_label *labels = calloc(desc->n_entries + 1, sizeof(*labels));

	if (!type || !labels) {
		free(type);
		free(labels);
		return NULL;
	}
	for (unsigned i = 0; i < desc->n_entries; i++) {
		const struct abi_enum_entry *entry = desc->entries[i];
		const struct kymo_enum_label automatic = {entry->label, KYMO_LABEL_AUTO};
		const struct kymo_enum_label range = {
			entry->label, entry->first.value, entry->last.value};

		labels[i] = entry->options & 1 ? automatic : range;
	}
	type->name = desc->name;
	type->labels = labels;
	type->n_labels = desc->n_entries;
	return type;
}

static bool describe_enum(struct kymo_field *f, const struct abi_type *type)
{
	const struct abi_enum *t = (const struct abi_enum *)type;

	if (t->container->kind != ABI_INTEGER || !describe_integer(f, t->container))
		return false;
	f->flags = f->kind == KYMO_FIELD_INT ? KYMO_FIELD_SIGNED : 0;
	f->kind = KYMO_FIELD_ENUM;
	f->ext = copy_enum(t->desc);
	return f->ext != NULL;
}

static bool describe_elements(struct kymo_field *f, const struct abi_type *element, bool text)
{
	if (element->kind != ABI_INTEGER || !describe_integer(f, element))
		return false;
	f->elem = text ? 0 : f->kind;
	f->flags = text ? 0 : f->flags;
	return !text || f->size == 1;
}

static bool describe_array(struct kymo_field *f, const struct abi_type *type)
{
	const struct abi_array *t = (const struct abi_array *)type;
	bool known = describe_elements(f, t->element, t->encoding);

	f->kind = t->encoding ? KYMO_FIELD_TEXT : KYMO_FIELD_ARRAY;
	f->count = t->length;
	return known;
}

static bool describe_sequence(struct kymo_field *f, const struct abi_type *type)
{
	const struct abi_sequence *t = (const struct abi_sequence *)type;
	bool known = describe_elements(f, t->element, t->encoding);

	f->kind = t->encoding ? KYMO_FIELD_TEXT_SEQUENCE : KYMO_FIELD_SEQUENCE;
	return known;
}

static bool describe_blob(struct kymo_field *f, const struct abi_type *type)
{
	f->kind = type->kind == ABI_FIXED_BLOB ? KYMO_FIELD_ARRAY : KYMO_FIELD_SEQUENCE;
	f->elem = KYMO_FIELD_UINT;
	f->size = 1;
	f->flags = KYMO_FIELD_HEX;
	if (type->kind == ABI_FIXED_BLOB)
		f->count = ((const struct abi_fixed_blob *)type)->length;
	return true;
}

static bool describe_field(struct kymo_field *f, const struct abi_field *from)
{
	f->name = from->name;
	switch (from->type->kind) {
	case ABI_INTEGER:
		return describe_integer(f, from->type);
	case ABI_FLOAT:
		return describe_float(f, from->type);
	case ABI_STRING:
		f->kind = KYMO_FIELD_STRING;
		f->size = 1;
		return true;
	case ABI_ENUM:
		return describe_enum(f, from->type);
	case ABI_ARRAY:
		return describe_array(f, from->type);
	case ABI_SEQUENCE:
		return describe_sequence(f, from->type);
	case ABI_FIXED_BLOB:
	case ABI_VARIABLE_BLOB:
		return describe_blob(f, from->type);
	default:
		return false;
	}
}

static bool is_sequence(const struct kymo_field *f)
{
	return f->kind == KYMO_FIELD_SEQUENCE || f->kind == KYMO_FIELD_TEXT_SEQUENCE;
}

/* Bytes of a value among those that a probe passes to a filter. */
static size_t filter_size(const struct kymo_field *f)
{
	switch (f->kind) {
	case KYMO_FIELD_STRING:
		return sizeof(void *);
	case KYMO_FIELD_ARRAY:
	case KYMO_FIELD_TEXT:
	case KYMO_FIELD_SEQUENCE:
	case KYMO_FIELD_TEXT_SEQUENCE:
		return sizeof(unsigned long) + sizeof(void *);
	default:
		return sizeof(uint64_t);
	}
}

/* The length of a sequence has a field of its own before it, which filters do not see. */
static bool is_length(const struct abi_class *cls, size_t i)
{
	int next = i + 1 < cls->n_fields ? cls->fields[i + 1]->type->kind : ABI_STRING;

	return cls->fields[i]->not_filtered && (next == ABI_SEQUENCE || next == ABI_VARIABLE_BLOB);
}

void lttng_describe_free(struct event *e)
{
	for (struct kymo_field *f = e->fields; f && f->kind; f++) {
		if (f->kind != KYMO_FIELD_ENUM || !f->ext)
			continue;
		free((void *)(uintptr_t)((const struct kymo_enum_type *)f->ext)->labels);
		free((void *)(uintptr_t)f->ext);
	}
	free(e->fields);
	free(e->steps);
	free(e->asides);
}

bool lttng_describe(struct event *e, const struct abi_class *cls)
{
	size_t n = cls->n_fields, n_fields = 0, n_steps = 0, offset = 0;

	e->fields = calloc(n + 1, sizeof(*e->fields));
	e->steps = calloc(n + 1, 1);
	e->asides = calloc(n + 1, sizeof(*e->asides));
	if (!e->fields || !e->steps || !e->asides)
		goto fail;
	for (size_t i = 0; i < n; i++) {
		struct kymo_field f = {0};

		if (is_length(cls, i))
			continue;
		if (!describe_field(&f, cls->fields[i]))
			goto fail;
		e->n_sequences += is_sequence(&f);
		if (cls->fields[i]->not_written) {
			f.flags |= KYMO_FIELD_ASIDE;
			e->asides[e->n_asides++] = (struct aside){offset, f};
		} else {
			e->fields[n_fields++] = f;
			if (is_sequence(&f))
				e->steps[n_steps++] = STEP_LENGTH;
			e->steps[n_steps++] = STEP_COPY;
		}
		if (!cls->fields[i]->not_filtered)
			offset += filter_size(&f);
	}
	for (size_t i = 0; i < e->n_asides; i++)
		e->fields[n_fields++] = e->asides[i].field;
	return true;

fail:
	lttng_describe_free(e);
	return false;
}
