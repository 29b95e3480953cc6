/* SPDX-License-Identifier: MIT */
/*
 * Probes: events that the kernel makes on request, in dynamic_events. Those of the instance
 * "kymo-D-C" are in the group "kymo_D_C", so two sessions may probe one place.
 */
#ifndef SESSIOND_KERNEL_PROBES_H
#define SESSIOND_KERNEL_PROBES_H

#include <sys/stat.h>

#include "base/buf.h"
#include "sessiond/kernel/tracefs.h"

#define PROBES_GROUP_MAX 64
#define PROBES_LINE_MAX	 4000u /* bytes of a definition: the kernel takes 4095 at once */
#define PROBES_MAX	 256u  /* definitions of a rule */

#define PROBES_FILE_MAX 96u

/*
 * Writes which file this is, with its contents: "<DEVICE:INODE:CHANGED>". A definition may have it
 * in front of its path. Then it is about this file only, whatever the path leads to later.
 */
void probes_identify(const struct statx *st, char buf[PROBES_FILE_MAX]);
bool probes_is_identity(const char *text);
/* Writes the group of an instance into buf, and returns buf. */
const char *probes_group(const char *instance, char buf[PROBES_GROUP_MAX]);
/* Returns whether one of the lines defines an event of this name. */
bool probes_is_of(const char *lines, const char *name);
/*
 * Appends the lines that define the entry and exit of the kernel's functions that match, "%s_entry"
 * and "%s_exit". Returns their number, or -errno with one line in why.
 */
int probes_of_functions(const struct tracefs *t, const char *pattern, struct ky_buf *lines,
	char *why, size_t why_size);
/*
 * Returns 0 if the kernel can have probes as the line defines one, else -EOPNOTSUPP with one line
 * in why.
 */
int probes_check(const struct tracefs *t, const char *line, char *why, size_t why_size);
/* Lines "-:GROUP/NAME": each removes the definitions of a name, and concerns no others. */
struct probes_removal {
	struct ky_buf lines; /* owned */
	struct ky_buf
		used;	 /* owned: those that the kernel kept, because another program uses them */
	const void *arg; /* while they are listed: of the function that chooses them */
};

/* Lists the probes of the instance's group, to remove them. */
void probes_list_group(const struct tracefs *t, const char *instance, struct probes_removal *r);
/* Lists the probes of groups of ours that have no instance. */
void probes_list_orphans(const struct tracefs *t, int instances, struct probes_removal *r);
/*
 * Disables the listed probes in the instance, and removes them, until this time of CLOCK_MONOTONIC.
 * Returns whether none is left.
 */
bool probes_remove_some(
	const struct tracefs *t, int dir, struct probes_removal *r, uint64_t until_ns);
/* Lists those again that another program used. Returns whether there are any. */
bool probes_list_used(struct probes_removal *r);
/* Returns whether all of a rule's lines are known; known: or NULL. */
bool probes_are_known(const char *known, const char *lines);
/* Adds those of a rule's lines to `known` that the group has already. Returns 0 or -ENOMEM. */
int probes_find(const struct tracefs *t, const char *instance, const char *lines, char **known);
/*
 * Defines the probes of a rule: lines without the letter's group, as "p:NAME PLACE ARGUMENTS".
 * known: the lines that the group has already, to which the new ones are added. A name means one
 * place as long as the group exists. Returns 0, or -errno with one line in why: then the rule has
 * no new probe.
 */
int probes_define(const struct tracefs *t, const char *instance, const char *lines, char **known,
	char *why, size_t why_size);

/* The programs that have probes: a probe stays in the file in which it was defined. */
struct probes_files {
	struct probes_file {
		char name[PROBES_GROUP_MAX]; /* of the event */
		char *path;		     /* owned */
		uint32_t major, minor;	     /* of the device */
		uint64_t inode;
	} * v; /* owned */
	size_t n;
};

/* Notes in which files the lines' probes are, if that is not noted yet. Returns 0 or -ENOMEM. */
int probes_note_files(struct probes_files *files, const char *lines);
/*
 * Returns the path of the event's probe if it leads to another file since that was noted, and notes
 * this one; else NULL.
 */
const char *probes_replaced(struct probes_files *files, const char *name);
void probes_forget_files(struct probes_files *files);

#endif
