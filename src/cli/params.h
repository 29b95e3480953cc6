/* SPDX-License-Identifier: MIT */
/*
 * Converts options to the parameters of a request. All return CLI_OK or, after a report, another
 * exit code. An option that was not given adds nothing.
 */
#ifndef CLI_PARAMS_H
#define CLI_PARAMS_H

#include "cli/cli.h"

/* Makes an object of parameters. Reports an error and returns NULL if there is no memory. */
struct kymo_value *cli_params_new(struct cli *cli);
/* Converts the result of an addition, 0 or -errno, to an exit code. Reports an error. */
int cli_params_added(struct cli *cli, int r);
enum cli_amount {
	CLI_NUMBER,
	CLI_SIZE,    /* bytes; K, M or G may follow */
	CLI_USEC,    /* microseconds; a unit may follow */
	CLI_SECONDS, /* the same, without a unit seconds; read as microseconds */
};
/*
 * Reads the value of an option, of `least` to `most`, into *value. Reports a value that is not.
 * Without the option, *value stays as it is.
 */
int cli_read_amount(struct cli *cli, const char *option, enum cli_amount kind, uint64_t least,
	uint64_t most, uint64_t *value);
/* Adds the value of an option, above 0. */
int cli_params_amount(struct cli *cli, struct kymo_value *params, const char *option,
	enum cli_amount kind, const char *member);
/* Adds --session=NAME as `session`. */
int cli_params_session(struct cli *cli, struct kymo_value *params);
/* Adds [NAME] or --session=NAME as `session`. */
int cli_params_which(struct cli *cli, struct kymo_value *params);
/* Does the same, or adds nothing for --all. */
int cli_params_which_or_all(struct cli *cli, struct kymo_value *params);
/* Adds --no-wait as `no_wait`. */
int cli_params_no_wait(struct cli *cli, struct kymo_value *params);
/*
 * Chooses the session's trace directory: the absolute path of --output, or a new directory, which
 * it makes: SESSION if that is dated, else SESSION-YYYYMMDD-HHMMSS. output: PATH_MAX bytes.
 */
int cli_choose_output(struct cli *cli, const char *session, bool dated, char *output);
/* Appends the elements of text, "a,b,c", to the list `name`. */
int cli_params_list(struct cli *cli, struct kymo_value *params, const char *name, const char *text);
/* Adds PATTERN[,PATTERN]... as `patterns`. --all adds nothing. */
int cli_params_patterns(struct cli *cli, struct kymo_value *params);
/* Adds TYPE[,TYPE]... of a repeatable option as `contexts`. */
int cli_params_contexts(struct cli *cli, struct kymo_value *params, const char *option);
/* Adds --event=PATTERN[,PATTERN]..., which is repeatable, as `patterns`. Default: all events. */
int cli_params_rules(struct cli *cli, struct kymo_value *params);
/*
 * Adds --kernel as `domain`. channel: also the kernel's default channel, if no other is given.
 * Refuses --kernel with --userspace.
 */
int cli_params_domain(struct cli *cli, struct kymo_value *params, bool channel);
/* Adds --filter as `filter`. */
int cli_params_filter(struct cli *cli, struct kymo_value *params);
/* Adds --loglevel or --loglevel-only. */
int cli_params_levels(struct cli *cli, struct kymo_value *params);
/* Replaces each '-' of an option's name by '_', as messages spell it. Returns key. */
char *cli_param_name(char *key);
/* Adds a channel's option, by the name that users write. The daemon checks the value. */
int cli_params_option(
	struct cli *cli, struct kymo_value *params, const char *key, const char *value);
#define CLI_OPTION_ABSOLUTE_CLOCK                                                                       \
	{                                                                                               \
		"absolute-clock", 0, NULL,                                                              \
			"mark the clock, to read the trace together with those of other hosts or boots" \
	}
/* Adds KEY=VALUE, an option of a channel. */
int cli_params_pair(struct cli *cli, struct kymo_value *params, const char *pair);
/* The maximum length of KEY. */
#define CLI_KEY_MAX 64
void cli_pair_key(char key[CLI_KEY_MAX], const char *pair);
/* Adds --shm-path=DIR as `shm_path`, absolute. */
int cli_params_shm_path(struct cli *cli, struct kymo_value *params);
/* Adds --seconds=N. Returns CLI_OK, or CLI_USAGE after a report. */
int cli_params_seconds(struct cli *cli, struct kymo_value *params);
/*
 * Adds --max-disk and --keep-free, and --keep=N|SIZE|AGE if `keep`. *ret_any: any was given.
 */
int cli_params_bounds(struct cli *cli, struct kymo_value *params, bool keep, bool *ret_any);
/* Adds --subbuf-size, --num-subbuf, --buffers and --pool-size. */
int cli_params_buffers(struct cli *cli, struct kymo_value *params);

#define CLI_OPTION_SESSION                                                                         \
	{                                                                                          \
		"session", 's', "SESSION", "session; without it, the current one"                  \
	}
#define CLI_OPTION_ONE_SESSION                                                                     \
	{                                                                                          \
		"session", 's', "SESSION", "this session; without it, all sessions"                \
	}
#define CLI_OPTION_ALL_SESSIONS                                                                    \
	{                                                                                          \
		"all", 'a', NULL, "all sessions of this user"                                      \
	}
#define CLI_OPTION_CHANNEL                                                                         \
	{                                                                                          \
		"channel", 'c', "CHANNEL", "channel; without it, channel0"                         \
	}
#define CLI_OPTION_USERSPACE                                                                       \
	{                                                                                          \
		"userspace", 'u', NULL, "events of applications (default)"                         \
	}
#define CLI_OPTION_KERNEL                                                                          \
	{                                                                                          \
		"kernel", 'k', NULL, "events of the kernel: kymo-kernel(7)"                        \
	}
#define CLI_OPTION_EVENT                                                                           \
	{                                                                                          \
		"event", 'e', "+PATTERN",                                                          \
			"record only events that match PATTERN[,PATTERN]...; may be repeated"      \
	}
#define CLI_OPTION_FILTER                                                                          \
	{                                                                                          \
		"filter", 'f', "EXPR",                                                             \
			"only events whose fields make this true, as in 'size > 4096'"             \
	}
#define CLI_OPTION_SUBBUF_SIZE                                                                     \
	{                                                                                          \
		"subbuf-size", 0, "SIZE",                                                          \
			"bytes of a sub-buffer, a power of two; K, M and G may follow"             \
	}
#define CLI_OPTION_NUM_SUBBUF                                                                      \
	{                                                                                          \
		"num-subbuf", 0, "N", "sub-buffers of each buffer, a power of two"                 \
	}
#define CLI_OPTION_BURST_SIZE                                                                      \
	{                                                                                          \
		"burst-size", 0, "SIZE",                                                           \
			"the size up to which a CPU's buffer grows while the consumer is late"     \
	}
#define CLI_OPTION_BUFFERS                                                                                                                                           \
	{                                                                                                                                                            \
		"buffers", 0, "cpu|thread|process|auto",                                                                                                             \
			"one buffer for each CPU (default), for each thread, or for each CPU of each process; auto: process for root's applications, cpu for others" \
	}
#define CLI_OPTION_POOL_SIZE                                                                       \
	{                                                                                          \
		"pool-size", 0, "N",                                                               \
			"with --buffers=thread: buffers allocated in advance for new threads (10)" \
	}
#define CLI_OPTION_BLOCKING_TIMEOUT                                                                                \
	{                                                                                                          \
		"blocking-timeout", 0, "USEC|inf",                                                                 \
			"how long an event waits for room, in applications with KYMO_ALLOW_BLOCKING=1 (default 0)" \
	}
#define CLI_OPTION_SECONDS                                                                         \
	{                                                                                          \
		"seconds", 0, "N",                                                                 \
			"with --snapshot: let buffers grow until they hold the last N seconds"     \
	}
#define CLI_OPTION_MAX_DISK                                                                        \
	{                                                                                          \
		"max-disk", 0, "SIZE",                                                             \
			"limit of the trace's size on disk: the oldest chunks are removed"         \
	}
#define CLI_OPTION_KEEP_FREE                                                                       \
	{                                                                                          \
		"keep-free", 0, "SIZE",                                                            \
			"remove the oldest chunks while less than this is free on the disk"        \
	}
#define CLI_OPTION_SHM_PATH                                                                          \
	{                                                                                            \
		"shm-path", 0, "DIR",                                                                \
			"keep the buffers in files in DIR, for 'kymo recover'; must be new or empty" \
	}

#endif
