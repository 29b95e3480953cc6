/* SPDX-License-Identifier: MIT */
/*
 * A daemon's log: one line for each call, control characters escaped (names come from traced
 * programs). To stderr as "program: text", and to a file, once there is one, with date, process
 * and level. A flood is cut off: at most KY_LOG_BURST lines a second, then one line that counts the
 * rest. Lines that a user causes are cut off first: KY_LOG_USER_BURST in KY_LOG_USER_S seconds.
 */
#ifndef SVC_LOG_H
#define SVC_LOG_H

#include <time.h>

#include "base/util.h"

#define KY_LOG_BURST	  200
#define KY_LOG_MAX	  (4 << 20) /* bytes of a log file: then it begins anew */
#define KY_LOG_USER_BURST 20
#define KY_LOG_USER_S	  60
#define KY_LOG_USERS	  64	     /* more than that count as one user */
#define KY_LOG_NOBODY	  UINT32_MAX /* the daemon itself */

enum ky_log_level {
	KY_LOG_ERROR = 0,
	KY_LOG_WARNING = 1,
	KY_LOG_INFO = 2,
	KY_LOG_DEBUG = 3,
};

/* program: borrowed for ever. Messages above `level` are dropped. */
void ky_log_init(const char *program, enum ky_log_level level);
/* Lines go to fd (owned from now on), with a date; too: to stderr as well. */
void ky_log_to_file(int fd, bool too);
/* Sets the user who causes the lines from now on; KY_LOG_NOBODY at first. */
void ky_log_set_cause(uint32_t uid);
void ky_log(enum ky_log_level level, const char *fmt, ...) KY_PRINTF(2, 3);

/* time(); tests set a clock of their own. */
extern time_t (*ky_log_clock)(time_t *);

#define ky_error(...)	ky_log(KY_LOG_ERROR, __VA_ARGS__)
#define ky_warning(...) ky_log(KY_LOG_WARNING, __VA_ARGS__)
#define ky_info(...)	ky_log(KY_LOG_INFO, __VA_ARGS__)
#define ky_debug(...)	ky_log(KY_LOG_DEBUG, __VA_ARGS__)

/*
 * Copies text to buf so that it can do nothing to a terminal: control characters, the characters
 * that turn the direction of writing, and bytes that are no UTF-8 become \xNN. Cuts it off. Returns
 * buf.
 */
char *ky_log_escape(char *buf, size_t size, const char *text);

#endif
