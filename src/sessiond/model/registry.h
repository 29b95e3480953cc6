/* SPDX-License-Identifier: MIT */
/*
 * A registry is one CTF trace of a session: that of the applications of one user and ABI. It has
 * the trace's metadata, as a log that consumers copy.
 */
#ifndef SESSIOND_MODEL_REGISTRY_H
#define SESSIOND_MODEL_REGISTRY_H

#include "base/buf.h"
#include "base/list.h"

#define METADATA_MAX (64u << 20) /* bytes of one log */

/*
 * Bytes of descriptions of events that one registry accepts: its user's share of the session's
 * journal.
 */
#define DESCRIPTIONS_MAX (16u << 20)
/*
 * Of all users but the daemon's own in a session: each may have half of what the others leave, so
 * that the journal has room for all. There, a description counts for more than its bytes, because a
 * successor of the daemon needs time for each, however short it is.
 */
#define SESSION_DESCRIPTIONS_MAX (64u << 20)
#define DESCRIPTION_OVERHEAD	 128u /* bytes of a line of the journal, without the description */
#define DESCRIPTION_TIME	 448u /* as many bytes take a successor as long */

#define GAPS_MAX 64u /* comments about missing events in one log */

/*
 * The registry of the kernel's trace has user 0 and this ABI, which no application has.
 */
#define KERNEL_ABI 0u

struct session;

struct registry {
	struct ky_list node; /* in session->registries */
	struct session *session;
	uid_t uid;
	uint32_t abi_bits;
	uint8_t uuid[16];
	int log_fd;
	uint64_t log_size;
	uint64_t set_bytes; /* charged for its ring sets (quota.h) */
	uint64_t n_desc_bytes;
	uint64_t n_session_bytes; /* its part of what all users have in the session */
	uint32_t n_streams, n_gaps;
	/* while a predecessor's session is taken over */
	uint64_t log_file; /* what the log's descriptor must be: an inode's number */
	/* the text that was written last: a set's stream or its last event, a gap, or as it is */
	struct ring_set *last_set;
	char *last_gap, *last_text;
};

/* Returns that of the applications of a UID and an ABI, or NULL. */
struct registry *registry_find(const struct session *s, uid_t uid, uint32_t abi_bits);
/* Finds that registry, or makes a missing one. Returns 0 or -errno. */
int registry_get(struct session *s, uid_t uid, uint32_t abi_bits, struct registry **ret_registry);
/* Makes a registry without a log. Returns NULL if allocation fails. */
struct registry *registry_new(struct session *s, uid_t uid, uint32_t abi_bits);
struct registry *registry_free(struct registry *r); /* NULL */
/* Returns whether the registry may have a description of len bytes more. */
bool registry_has_room(const struct registry *r, size_t len);
/* Returns whether the metadata has no room for another stream. */
bool registry_is_full(const struct registry *r);
/* Charges one. */
void registry_charge(struct registry *r, size_t len);
/*
 * Appends text to the metadata: all of it or nothing. Returns 0, -EOVERFLOW at METADATA_MAX, or
 * another -errno.
 */
int registry_append(struct registry *r, const struct ky_buf *text);
/*
 * Appends a comment that reports missing events to the readers of the trace; text is one line. The
 * time of day is added. After GAPS_MAX of them a last one says that there are more.
 */
void registry_add_gap(struct registry *r, const char *text);
/* Does so for the time without a daemon, if the session records. */
void registry_add_unattended(struct registry *r);
/* Writes the comment. Returns 0 or -errno. */
int registry_write_gap(struct registry *r, const char *text);
/* Sets the text that a predecessor wrote last: one of the two, or neither. Copies the gap. */
void registry_set_last(struct registry *r, struct ring_set *set, const char *gap);
/* Does so for a text of the kernel's trace. Copies it. */
void registry_set_last_text(struct registry *r, const char *text);
/* Appends that text again, at log_size. Returns 0 or -errno. */
int registry_mend_text(struct registry *r);
/* Splits the UUID as messages have it: upper half, lower half. */
void registry_uuid(const struct registry *r, uint64_t ret_uuid[2]);

#endif
