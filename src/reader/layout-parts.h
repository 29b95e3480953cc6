/* SPDX-License-Identifier: MIT */
/* Parts of the layout compiler, which layout.c calls when the nodes of a scope are made. */
#ifndef READER_LAYOUT_PARTS_H
#define READER_LAYOUT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

struct ky_arena;
struct ky_names;
struct ky_node;
struct ky_short_head;
struct ky_stream_class;

/* --- what is shown: layout-show.c --- */

/* Marks the fields that are shown, and those on which shown fields depend. */
void ky_node_mark_shown(struct ky_node *node);
/* Marks all fields as hidden. */
void ky_node_mark_hidden(struct ky_node *node);
/* Makes the texts before the values of shown members. Returns 0 or -ENOMEM. */
int ky_node_make_leads(struct ky_node *node, struct ky_names *names, struct ky_arena *arena);
/*
 * Gives contexts of a name that a context of an outer scope has, too, names of their own in JSON,
 * which has all contexts in one object. Returns 0 or -ENOMEM.
 */
int ky_stream_class_name_contexts(
	struct ky_stream_class *s, struct ky_names *names, struct ky_arena *arena);

/* --- what is quick to read: layout-quick.c --- */

/* Plain numbers are at equal distances in an array, and nothing depends on them. */
bool ky_node_is_plain(const struct ky_node *elem);
/* Finds runs among a structure's members. */
void ky_node_find_runs(struct ky_node *node);
/* Adds the size of a scope to *bits, or sets KY_NO_BITS if it varies. scope may be NULL. */
void ky_node_add_bits(uint64_t *bits, const struct ky_node *scope);
/*
 * Recognizes struct { INT id; variant <id> { struct { INT time; } first; ... }; }. Leaves *h as it
 * is for other headers. header may be NULL.
 */
void ky_node_find_short_head(struct ky_short_head *h, const struct ky_node *header);

/* --- values of different options of a variant that have the same path: layout-twins.c --- */

/* Links them in a scope (struct ky_node: first, twin). Returns 0 or -ENOMEM. */
int ky_twins_link(struct ky_names *names, struct ky_node *scope);

#endif
