/* SPDX-License-Identifier: MIT */
/*
 * A trace as what happened on the tracks of its threads, in order of time: for viewers. It is read
 * twice: first only the events of spans, to find which begins and ends are pairs; then everything.
 *
 * Begins and ends of one thread are properly nested. Spans that are not (asynchronous ones, and
 * those that end after the span that they began in) have lanes of their own. A begin or an end
 * without its counterpart is an instant.
 */
#ifndef EXPORT_TIMELINE_H
#define EXPORT_TIMELINE_H

#include "tables/tables.h"

enum ky_mark_kind {
	KY_MARK_INSTANT,
	KY_MARK_BEGIN, /* of a span on the track of its thread */
	KY_MARK_END,
	KY_MARK_LANE_BEGIN, /* of a span on a lane of its own: lane */
	KY_MARK_LANE_END,
	KY_MARK_COUNTER,
	KY_MARK_LOST, /* records are missing from ns to end_ns */
};

enum ky_mark_flow { KY_FLOW_NONE, KY_FLOW_BEGIN, KY_FLOW_STEP, KY_FLOW_END };

/* One event. Its texts are valid until the next one. */
struct ky_mark {
	enum ky_mark_kind kind;
	int64_t ns, end_ns;
	const char *name; /* of spans without their ending; name_len bytes */
	size_t name_len;
	size_t stem_len;      /* of the name without _begin, _step or _end: flows have it */
	int64_t pid, tid;     /* -1: not known */
	int64_t cpu;	      /* -1: not known */
	const char *procname; /* procname_len bytes; NULL: not known */
	size_t procname_len;
	const char *lane; /* spans of one lane are nested; lane_len bytes */
	size_t lane_len;
	enum ky_mark_flow flow;
	const char *flow_id; /* digits; flow_id_len bytes */
	size_t flow_id_len;
	enum kymo_column_type value_type; /* of counters: */
	uint64_t number;		  /* KYMO_UINT64, or the bits of KYMO_INT64 */
	double real;			  /* KYMO_DOUBLE: neither infinite nor NaN */
	const char *fields;		  /* a JSON object; fields_len bytes */
	size_t fields_len;
	uint64_t n_lost;  /* 0: not known */
	const char *what; /* is lost */
};

/*
 * Calls put for each mark, until it returns another value than 0, which is then returned. Returns
 * 0 or a negative errno.
 */
int ky_timeline_read(
	const struct ky_tables *t, int (*put)(void *arg, const struct ky_mark *mark), void *arg);

#endif
