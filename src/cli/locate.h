/* SPDX-License-Identifier: MIT */
/*
 * Finds the other parts of this installation, and the directory of traces. A program that runs from
 * a build tree, or from a prefix that was moved, finds the parts that belong to it: the functions
 * search beside the executable first, then in the directories that the build configured.
 */
#ifndef CLI_LOCATE_H
#define CLI_LOCATE_H

#include "base/util.h"

/* Each fills buf. Returns 0, -ENOENT if there is no such file, -ENAMETOOLONG, or -errno. */
int cli_locate_sessiond(char *buf, size_t size);
int cli_locate_consumerd(char *buf, size_t size);
/* Finds the module that has the web server. */
int cli_locate_web(char *buf, size_t size);
/* Finds the program that carries out `kymo fleet`. */
int cli_locate_fleet(char *buf, size_t size);
/* file: for example "libkymo-libc.so". */
int cli_locate_preload(char *buf, size_t size, const char *file);
/* Finds the directory of libkymo.so.0. buf has PATH_MAX bytes, also below. */
int cli_locate_tracer_dir(char *buf);
/* Finds the directory of the replacements for LTTng-UST's libraries. */
int cli_locate_lttng_dir(char *buf);
/* Returns true if the dynamic linker searches this directory by default. */
bool cli_is_system_libdir(const char *dir);

/* Finds the directory of all traces: $KYMO_HOME, or $HOME/kymo-traces. -ENOENT: neither is set. */
int cli_locate_traces(char *buf, size_t size);
/*
 * Makes the default output of a session: a new, empty directory below cli_locate_traces. Its name
 * is the session's, followed by the date unless the name is dated. As it exists from then on, no
 * other session gets the same.
 */
int cli_make_output(char *buf, size_t size, const char *session, bool dated);
/* mkdir -p of an absolute path. */
int cli_make_dirs(const char *path);
/* Makes path absolute, and removes "." and double or trailing slashes. */
int cli_absolute_path(char *buf, size_t size, const char *path);
/* Formats the local time as "20261121-101500". */
void cli_format_date(char *buf, size_t size);

/*
 * Returns whether a name may be that of a session: no directory has it. A file of this name, such
 * as the program that the session records, is no trace.
 */
bool cli_may_be_session(const char *name);

#endif
