/* SPDX-License-Identifier: MIT */
/*
 * Some files continue each other: a stream that was cut into several files or chunks. This module
 * finds them by trace UUID, host, stream class and instance, and numbers streams and classes of
 * events. The number of a stream decides the order of records with equal times. Streams are
 * numbered by trace UUID, trace name, class, and path of the first file, which is also
 * babeltrace2's order.
 */
#ifndef READER_JOIN_H
#define READER_JOIN_H

#include "reader/state.h"

/*
 * Joins the files that were found to streams, numbers streams and classes, and sets how much of
 * each file is read. Streams and classes that had a number keep it. Returns 0 or -ENOMEM.
 */
int ky_join(struct ky_trace_reader *r);

#endif
