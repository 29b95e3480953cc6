/* SPDX-License-Identifier: MIT */
/*
 * Notices when something below a directory may have changed, by inotify. The caller looks now and
 * then if there is no inotify, or not enough of it.
 */
#ifndef SHIP_WATCH_H
#define SHIP_WATCH_H

#include <stdbool.h>

#include "base/util.h"

struct watch {
	int fd;	    /* readable if something may have changed; -1: there is no inotify */
	bool blind; /* some directory is not watched */
};

void watch_init(struct watch *w);
void watch_deinit(struct watch *w);
/* Watches the entries of a directory, and the files among them. A second time is harmless. */
void watch_add(struct watch *w, int dir, const char *path);
/* Returns whether something may have changed since the last call. Never waits. */
bool watch_take(struct watch *w);

#endif
