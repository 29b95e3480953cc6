/* SPDX-License-Identifier: MIT */
/*
 * A channel of a session: rules that select events, and the options of the buffers into which
 * applications record these events.
 */
#ifndef SESSIOND_MODEL_CHANNEL_H
#define SESSIOND_MODEL_CHANNEL_H

#include "proto/context.h"
#include "sessiond/model/rule.h"

#define RULES_MAX	    1024u /* of a channel */
#define DEFAULT_SUBBUF_SIZE (256u << 10)
#define DEFAULT_NUM_SUBBUF  8u
#define DEFAULT_BURST_SIZE  (64ull << 20) /* where the user's share of the memory allows it */
#define THREAD_SUBBUF_SIZE  (64u << 10)	  /* by default, if each thread has some */
#define DEFAULT_POOL_SIZE   10u
#define DEFAULT_SWITCH_US   1000000u
#define DEFAULT_CHANNEL	    "channel0"
#define KERNEL_CHANNEL	    "kernel0" /* the default for kernel events */

struct kernel_set;
struct session;

/* The sources of a channel's events. */
enum domain {
	DOMAIN_USER,   /* applications */
	DOMAIN_KERNEL, /* the kernel: kernel/kernel.h */
};

/* Each of these has a buffer of its own. */
enum buffers {
	BUFFERS_CPU, /* but threads have, in programs without restartable sequences */
	BUFFERS_THREAD,
	BUFFERS_PROCESS, /* as BUFFERS_CPU, but no others' events come into them */
	BUFFERS_AUTO,	 /* BUFFERS_PROCESS for root's programs, BUFFERS_CPU for others */
};

struct channel {
	struct ky_list node; /* in session->channels, once it was added */
	struct session *session;
	char *name;
	enum domain domain;
	uint64_t kernel_bytes;	   /* of memory that its buffers in the kernel have */
	struct kernel_set *kernel; /* of DOMAIN_KERNEL, from its first rule on; or NULL */
	bool enabled;
	/* another definition of a known name: true: is an event of its own; false: is refused */
	bool separate_conflicts;
	bool overwrite;	  /* the oldest events make room for new ones: only snapshots write them */
	uint32_t buffers; /* enum buffers */
	uint32_t subbuf_size, num_subbuf;
	/* bytes to which a buffer may grow while the consumer is late; less than it has: none */
	uint64_t burst_size;
	uint32_t pool_size; /* buffers that are allocated in advance for new threads */
	/* microseconds; what 0 and UINT64_MAX mean, option.c says */
	uint64_t switch_timer_us, read_timer_us, blocking_timeout_us;
	/* of a stream: bytes of a file; files that stay. 0: no limit */
	uint64_t tracefile_size;
	uint32_t tracefile_count;
	struct ky_list rules, sets; /* sets of processes stand before their kind */
	struct ky_list kinds;	    /* those of the sets that have events */
	unsigned n_rules;
	uint32_t agent_domains;	     /* for peers/agents.c: those that its rules name */
	uint64_t n_ended;	     /* processes that had a set */
	uint32_t n_replaced;	     /* sets that others have replaced */
	struct ky_context *contexts; /* owned; only ever more */
	uint32_t n_contexts;
	/*
	 * while it recorded: applications record such events in a slower way until the next start
	 */
	bool renewed;
};

/*
 * Makes a channel with the default options. The session does not have it yet. Returns NULL if
 * allocation fails.
 */
struct channel *channel_new(struct session *s, const char *name);
/* Makes a new channel one for kernel events: before it was added. */
void channel_set_kernel(struct channel *c);
/* Adds the channel to its session. */
void channel_add(struct channel *c);
/* Frees a channel without ring sets: before it was added, or with its session. Returns NULL. */
struct channel *channel_free(struct channel *c);
struct channel *channel_find(const struct session *s, const char *name);
bool channel_is_active(const struct channel *c);
/*
 * Enables the rules of an array that ends with NULL. If the channel already has a rule of the same
 * text, enables that one. Takes all rules out of the array, and frees those that it does not use.
 * Returns 0, or -EDQUOT at RULES_MAX, and then changes nothing.
 */
int channel_enable_rules(struct channel *c, struct rule **rules);
/*
 * Disables the rule; or frees it, if remove is true. The caller calls channel_rules_changed() after
 * the last one.
 */
void channel_disable_rule(struct channel *c, struct rule *r, bool remove);
void channel_rules_changed(struct channel *c);
void channel_enable(struct channel *c, bool enable);
/* Returns the rule of the same text, or NULL. */
struct rule *channel_find_rule(const struct channel *c, const struct rule *like);
/* Returns whether any enabled rule of an enabled channel matches the event. */
bool channel_wants(const struct channel *c, const struct event_desc *d);
/*
 * Lists the filters of which the event has to pass one. Returns their number; 0: the event is
 * recorded whatever it holds.
 */
uint32_t channel_filters(const struct channel *c, const struct event_desc *d,
	const struct filter *ret_filters[RULES_MAX]);
/* Of any channel. */
bool session_has_enabled_rule(const struct session *s);

#endif
