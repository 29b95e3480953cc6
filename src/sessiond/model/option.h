/* SPDX-License-Identifier: MIT */
/*
 * Options of a channel: `enable-channel` and `set` accept them, `status` shows them. A row of the
 * table describes one: its key, its possible values, its member of struct channel, and whether it
 * can change. Times are microseconds.
 */
#ifndef SESSIOND_MODEL_OPTION_H
#define SESSIOND_MODEL_OPTION_H

#include "base/buf.h"
#include "sessiond/model/channel.h"

#define OPTIONS_MAX	 32
#define OPTION_PARAM_MAX 32
#define OPTION_TIME_MIN	 100u	     /* microseconds, of a timer */
#define OPTION_TIME_MAX	 3600000000u /* an hour */

enum option_kind {
	OPTION_NUMBER,
	OPTION_SIZE, /* K, M or G may follow */
	OPTION_TIME, /* us, ms, s, m or h may follow */
	OPTION_WORD, /* one of `words`: the value is its place */
};

/* When a change is in effect. */
enum option_effect {
	OPTION_AT_ONCE,
	OPTION_NEW_BUFFERS, /* those that exist stay as they are */
	OPTION_NO_BUFFERS,  /* only possible while there are none */
};

struct option {
	const char *key; /* as people write it; in messages with '_' for '-' */
	enum option_kind kind;
	enum option_effect effect;
	bool pow2;	     /* others are rounded up */
	size_t offset, size; /* of the member of struct channel */
	uint64_t min, max;
	const char *zero;     /* what 0 means, if it is allowed below min; else NULL */
	const char *infinite; /* what "inf", UINT64_MAX, means; NULL: not allowed */
	const char *words[6]; /* ends with NULL */
	const char *help;
	bool not_kernel; /* the kernel's buffers have no such option */
};

/* Ends with a row without key. */
extern const struct option channel_options[];

/* Values that a request gives, by row of the table. */
struct option_values {
	uint64_t given; /* 1 << row */
	uint64_t value[OPTIONS_MAX];
};

/* Returns the option of a message's member of this name, or NULL. */
const struct option *option_find(const char *param);
/* Appends an error message for a name that no option has. */
void option_explain_unknown(struct ky_buf *to, const char *param);
/* Writes the option's name in messages into buf, and returns buf. */
const char *option_param(const struct option *o, char buf[OPTION_PARAM_MAX]);
/* Appends the possible values: "a power of two from 2 to 4096" and the like. */
void option_describe(struct ky_buf *to, const struct option *o);
/* Returns when a change of it is in effect, in words for users. */
const char *option_effect(const struct option *o);

/*
 * Parses a value as people write it. Returns 0, 1 if it was rounded, or -EINVAL if the option
 * cannot have it.
 */
int option_take(struct option_values *values, const struct option *o, const char *text);
/*
 * Checks whether the channel could have these values, together, and with its other properties.
 * Returns 0, or -EINVAL with the reason in `why`.
 */
int options_check(const struct channel *c, const struct option_values *values, struct ky_buf *why);
/* Applies checked values to a channel that no session has yet. */
void options_apply(struct channel *c, const struct option_values *values);
/* Applies checked values to a channel that a session has. */
void channel_set_options(struct channel *c, const struct option_values *values);
/* Returns whether the values have the option, with another value than the channel has. */
bool option_is_changed(
	const struct channel *c, const struct option *o, const struct option_values *values);
/* Returns the value that the channel has. */
uint64_t option_get(const struct channel *c, const struct option *o);

#endif
