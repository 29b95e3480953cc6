/* SPDX-License-Identifier: MIT */
/*
 * A trigger as people write it: a condition, actions, and a limit of their rate
 * (docs/triggers.md). Pure. peers/triggers.h watches the conditions, and peers/trigger-actions.h
 * carries out the actions.
 */
#ifndef SESSIOND_MODEL_TRIGGER_H
#define SESSIOND_MODEL_TRIGGER_H

#include "abi/ring.h"
#include "base/buf.h"
#include "sessiond/model/rule.h"

#define TRIGGER_TEXT_MAX    1024u /* bytes of a condition or of an action */
#define TRIGGER_ACTIONS_MAX 8u
#define TRIGGERS_MAX	    64u	   /* of a session */
#define KEEP_MAX	    10000u /* snapshots of a trigger */
#define USER_TRIGGERS_MAX   256u   /* of one user but the daemon's own */

enum condition_kind {
	WHEN_EVENTS_RATE, /* recorded, in a second */
	WHEN_BYTES_RATE,  /* written, in a second */
	WHEN_DISCARDED,	  /* events, since the trigger fired last */
	WHEN_BUFFERS,	  /* per cent of the fullest buffer */
	WHEN_SIZE,	  /* bytes of the trace */
	WHEN_DISK_FREE,	  /* bytes, or per cent */
	WHEN_FAILING,	  /* the consumer cannot write, or does nothing */
	WHEN_ROTATED,
	WHEN_DIED, /* a program, of a signal */
	/* Applications decide these: */
	WHEN_EVENT, /* matches a rule */
	WHEN_SPAN,  /* lasted longer than the limit, in nanoseconds */
};

struct condition {
	enum condition_kind kind;
	bool below;   /* true: less than the limit; false: more */
	bool percent; /* of the limit */
	uint64_t limit;
	char *subject; /* owned; a pattern of names, or NULL */
	/* of WHEN_EVENT and WHEN_SPAN: of the event, or of the span's end */
	struct rule *rule; /* owned; of WHEN_SPAN, the pattern is that of the span's name */
};

enum action_kind {
	DO_NOTIFY,
	DO_SNAPSHOT,
	DO_START,
	DO_STOP,
	DO_ROTATE,
	DO_RUN,
};

struct trigger_spec {
	char *name, *when, *action; /* owned; as they were written, without spaces around */
	char *rate;		    /* likewise; "": the default */
	char *keep;		    /* likewise; "": all snapshots */
	struct condition condition;
	unsigned n_actions;
	enum action_kind actions[TRIGGER_ACTIONS_MAX];
	char *command;		  /* owned; of DO_RUN, or NULL */
	uint64_t rate_n, rate_ns; /* so often in each such time */
	/* the newest snapshots that stay, or their bytes; 0: no limit */
	uint64_t keep_n, keep_bytes;
	/*
	 * of a condition that applications decide, in messages and in the sets' first pages
	 * (KY_SET_TRIGGERS); KY_SET_TRIGGERS: not given yet
	 */
	uint32_t number;
};

#define TRIGGER_ERROR_MAX 256u

/*
 * Makes a spec of its texts. rate: NULL or "" for the default: once a minute with a snapshot, else
 * once a second. keep: NULL or "" for all. Returns 0; -EINVAL with a line for the user in `why`; or
 * -ENOMEM. The caller calls trigger_spec_deinit() in any case.
 */
int trigger_spec_init(struct trigger_spec *t, const char *name, const char *when,
	const char *action, const char *rate, const char *keep, char why[TRIGGER_ERROR_MAX]);
void trigger_spec_deinit(struct trigger_spec *t);
/* Returns whether the condition has to be looked at again and again. */
bool condition_is_polled(const struct condition *c);
/* Returns whether applications decide the condition. */
bool condition_is_theirs(const struct condition *c);
/*
 * Returns the part that the event has in the spans of this condition, which is WHEN_SPAN: it begins
 * or ends one; KY_SPAN_NONE: neither. *ret_id_size: bytes of the number in its first field.
 */
enum ky_span_role condition_span_role(
	const struct condition *c, const struct event_desc *d, uint32_t *ret_id_size);
/* Returns whether the value meets the condition. */
bool condition_is_met(const struct condition *c, uint64_t value);
bool trigger_has_action(const struct trigger_spec *t, enum action_kind kind);

#endif
