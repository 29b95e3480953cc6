/* SPDX-License-Identifier: MIT */
/*
 * The events that a report lists with their fields: parts of 65,536 events, in columns and lines of
 * text, each of which the page reads when it shows it.
 */
#ifndef REPORT_LIST_H
#define REPORT_LIST_H

#include "base/vec.h"
#include "reader/format.h"
#include "report/parts.h"

struct ky_listed_event {
	const struct ky_item *item;
	uint64_t number; /* among all events of the report */
	uint32_t name;	 /* of its class */
	uint32_t track;
	int64_t ns; /* from the report's origin */
};

struct ky_event_list {
	struct ky_parts *parts; /* borrowed: receives the parts */
	struct ky_format format;
	uint64_t n_listed;
	uint64_t n_long;	 /* events whose text was left out */
	KY_VEC(uint64_t) blocks; /* of each part: number of its first event, and their number */
	int error;		 /* 0 or -ENOMEM; stays */
	/* the part that is being made */
	struct ky_buf gaps, classes, tracks, lines;
	uint64_t first, n;
	int64_t last_ns;
	uint64_t text_left; /* bytes that events may still have */
};

/* parts: borrowed. format: how fields are shown; what it refers to must live as long. */
void ky_event_list_init(
	struct ky_event_list *l, struct ky_parts *parts, const struct ky_format *format);
/* Numbers of events rise. */
void ky_event_list_add(struct ky_event_list *l, const struct ky_listed_event *e);
/* Completes the last part. */
void ky_event_list_flush(struct ky_event_list *l);
void ky_event_list_deinit(struct ky_event_list *l);

#endif
