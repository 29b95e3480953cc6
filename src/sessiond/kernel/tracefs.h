/* SPDX-License-Identifier: MIT */
/*
 * The kernel's tracing files. The daemon reaches them below one directory descriptor only, so it
 * needs no mount, and no path of it leads elsewhere. All functions return 0 or -errno, unless a
 * comment differs. Tests replace the file system by a directory with the same names.
 */
#ifndef SESSIOND_KERNEL_TRACEFS_H
#define SESSIOND_KERNEL_TRACEFS_H

#include "base/util.h"
#include "kernel/tracefs-root.h"

#define TRACEFS_PATH_MAX 512
#define TRACEFS_WHY_MAX	 256

struct tracefs_ops {
	/* Of an instance: the kernel fills in its files. */
	int (*make_dir)(int dir, const char *path);
	/* Removes the instance with its files. -EBUSY while a process has one of them open. */
	int (*remove_dir)(int dir, const char *path);
};

struct tracefs {
	int root; /* directory; -1: not open */
	const struct tracefs_ops *ops;
};

/*
 * Opens the file system if it is not open (ky_tracefs_open). Returns -errno with one line in why:
 * the reason, and the remedy.
 */
int tracefs_open(struct tracefs *t, char why[TRACEFS_WHY_MAX]);
void tracefs_close(struct tracefs *t);

/* Writes the text with one call, as these files want it. Replaces what the file has. */
int tracefs_write(int dir, const char *path, const char *text);
/* The same, but adds to the file: the others' lines stay. */
int tracefs_append(int dir, const char *path, const char *text);
/* Returns the whole text, which the caller frees; NULL with errno set. */
char *tracefs_read(int dir, const char *path);
bool tracefs_has(int dir, const char *path);
int tracefs_open_dir(int dir, const char *path);
/*
 * Writes the kernel's last message about a refused definition or filter into buf, with its time; ""
 * if there is none.
 */
void tracefs_last_error(const struct tracefs *t, char *buf, size_t size);

#endif
