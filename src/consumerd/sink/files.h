/* SPDX-License-Identifier: MIT */
/*
 * The sink that writes a trace directory (docs/trace-format.md). Each trace has a directory with
 * its metadata, the files of its streams (stream-file.h) and their indexes.
 */
#ifndef CONSUMERD_SINK_FILES_H
#define CONSUMERD_SINK_FILES_H

#include "consumerd/sink/sink.h"

/* Writes below the directory root_fd, which stays the caller's. Returns NULL without memory. */
struct sink *files_sink_new(int root_fd);

#endif
