/* SPDX-License-Identifier: MIT */
#include "report/list.h"

#include "report/column.h"

#define BLOCK	   65536      /* events of a part */
#define BLOCK_TEXT (16 << 20) /* bytes of text after which a part ends, too */
/*
 * Names are repeated with each element of an array, so a small hostile trace may have any amount of
 * text. An event may have LINE_MAX bytes of it; all of them TEXT_MIN, and TEXT_PER_BYTE for each
 * byte of their records.
 */
#define LINE_MAX      ((uint64_t)1 << 20)
#define TEXT_MIN      ((uint64_t)64 << 20)
#define TEXT_PER_BYTE 1024

void ky_event_list_init(
	struct ky_event_list *l, struct ky_parts *parts, const struct ky_format *format)
{
	*l = (struct ky_event_list){.parts = parts, .format = *format, .text_left = TEXT_MIN};
}

void ky_event_list_flush(struct ky_event_list *l)
{
	const struct ky_buf *const columns[] = {&l->gaps, &l->classes, &l->tracks};
	size_t number = l->blocks.n / 2;
	struct ky_buf part = {0};

	if (!l->n)
		return;
	ky_columns_join(&part, columns, KY_ARRAY_SIZE(columns));
	l->gaps.len = l->classes.len = l->tracks.len = 0;
	ky_parts_add(l->parts, "e", number, &part);
	ky_parts_add(l->parts, "p", number, &l->lines);
	if (ky_vec_add(&l->blocks, l->first) < 0 || ky_vec_add(&l->blocks, l->n) < 0)
		l->error = -ENOMEM;
	l->n = 0;
}

/* Adds the fields of an event, unless they have too much text. */
static void put_line(struct ky_event_list *l, const struct ky_item *item)
{
	struct ky_buf *b = &l->lines;
	size_t begin = b->len;

	l->text_left += item->bits / 8 * TEXT_PER_BYTE;
	b->max = begin + KY_MIN(l->text_left, LINE_MAX);
	ky_format_fields(&l->format, b, item);
	b->max = 0;
	if (b->error == -EMSGSIZE) {
		b->error = 0;
		b->len = begin;
		ky_buf_puts(b, "(too much text: left out)");
		l->n_long++;
	}
	l->text_left -= KY_MIN(l->text_left, (uint64_t)(b->len - begin));
	ky_buf_append(b, "\n", 1);
}

void ky_event_list_add(struct ky_event_list *l, const struct ky_listed_event *e)
{
	if (l->n == BLOCK || l->lines.len >= BLOCK_TEXT || (l->n && l->first + l->n != e->number))
		ky_event_list_flush(l);
	if (!l->n) {
		l->first = e->number;
		l->last_ns = 0;
	}
	ky_column_put(&l->gaps, (uint64_t)KY_MAX(e->ns - l->last_ns, 0));
	ky_column_put(&l->classes, e->name);
	ky_column_put(&l->tracks, e->track);
	put_line(l, e->item);
	l->last_ns = e->ns;
	l->n++;
	l->n_listed++;
}

void ky_event_list_deinit(struct ky_event_list *l)
{
	struct ky_buf *const bufs[] = {&l->gaps, &l->classes, &l->tracks, &l->lines};

	for (size_t i = 0; i < KY_ARRAY_SIZE(bufs); i++)
		ky_buf_deinit(bufs[i]);
	ky_vec_deinit(&l->blocks);
}
