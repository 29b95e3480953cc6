/* SPDX-License-Identifier: MIT */
/*
 * Where the other parts of this installation are, and where traces go. A program that was started
 * from a build tree, or from a prefix that was moved, finds the parts that belong to it: they are
 * looked for beside the executable first, then where the build was told to install.
 */
#ifndef CLI_LOCATE_H
#define CLI_LOCATE_H

#include "base/util.h"

/* Each fills buf and returns 0, -ENOENT when there is no such file, -ENAMETOOLONG, or -errno. */
int cli_locate_sessiond(char *buf, size_t size);
int cli_locate_consumerd(char *buf, size_t size);
/* "libkymo-libc.so" and the like. */
int cli_locate_preload(char *buf, size_t size, const char *file);
/* Directories; buf has PATH_MAX bytes. Of libkymo.so.0: */
int cli_locate_tracer_dir(char *buf);
/* Of what stands in for LTTng-UST's libraries. */
int cli_locate_lttng_dir(char *buf);
/* True if the dynamic linker looks there by itself. */
bool cli_is_system_libdir(const char *dir);

/* Directory of all traces: $KYMO_HOME, or $HOME/kymo-traces. -ENOENT when neither is set. */
int cli_locate_traces(char *buf, size_t size);
/*
 * The output of a session by default: a new directory of the session's name, with the date behind
 * it unless dated, below cli_locate_traces. It is made here, empty, so that nobody else gets the
 * same.
 */
int cli_make_output(char *buf, size_t size, const char *session, bool dated);
/* mkdir -p of an absolute path. */
int cli_make_dirs(const char *path);
/* path, or the current directory and path, without "." and double or trailing slashes. */
int cli_absolute_path(char *buf, size_t size, const char *path);
/* "20261121-101500", local time. */
void cli_format_date(char *buf, size_t size);

#endif
