/* SPDX-License-Identifier: MIT */
/* Names of the log levels of <kymo/types.h>. */
#ifndef BASE_LOGLEVEL_H
#define BASE_LOGLEVEL_H

#define KY_N_LOGLEVELS 15

/* In order of their numbers, then NULL. */
extern const char *const ky_loglevel_names[KY_N_LOGLEVELS + 1];

#endif
