/* SPDX-License-Identifier: MIT */
/* The inside of libkymo-reader's objects, for the parts of the library in other folders. */
#ifndef READER_API_H
#define READER_API_H

#include <kymo/reader.h>

#include "reader/query.h"

struct ky_trace_reader *ky_reader_inside(const struct kymo_reader *reader);
struct ky_query *ky_query_inside(struct kymo_query *query);

#endif
