/* SPDX-License-Identifier: MIT */
/*
 * The state of a consumer, which all its parts share. Comments name the part that sets a member.
 *
 * After a SNAPSHOT, a consumer copies the rings instead, as each ring set arrives, and writes the
 * copies when the daemon ends it. Only the daemon notices this.
 */
#ifndef CONSUMERD_STATE_H
#define CONSUMERD_STATE_H

#include "abi/resume.h"
#include "consumerd/sink/archives.h"
#include "consumerd/stream/fault.h"
#include "ctf/watermark.h"
#include "proto/consumer.h"
#include "svc/msg-conn.h"

struct sink;

#define CONSUMER_MESSAGE_MAX 1024

struct consumerd {
	struct ky_loop loop;
	bool quitting;
	int exit_status;
	/* requests.h: what the session daemon sent */
	char *output; /* the trace directory, "" for none; NULL before INIT */
	int root_fd;  /* of the trace directory; -1: none */
	bool resume, snapshot;
	uint64_t snapshot_max; /* bytes of its packets; 0: no limit */
	char *reason;	       /* what triggered it; owned */
	struct sink *sink;
	struct ky_resume_session *session; /* mapping, from INIT on; `chunk` is the present one */
	int session_fd;			   /* of that memory; -1: none */
	struct ky_list traces, sets;
	uint64_t n_sets; /* RING_SET orders */
	/* report.h: the present failure, as it was reported to the daemon */
	int status;
	bool status_is_minor; /* only the watermark cannot be written */
	char message[CONSUMER_MESSAGE_MAX];
	/* round.h */
	struct ky_timer timer;
	uint64_t room_ns; /* when the room on the file system was looked at last */
	uint32_t fullest; /* thousandths of a buffer that were full at any look, at most */
	/* watermark.h */
	struct watermark {
		/* the clock at a round's begin when no set was unknown, and when that was */
		uint64_t clock, read_ns;
		uint64_t published; /* the clock DELAY_NS before; 0: not known yet */
		struct ky_watermark stored;
		struct fault fault;
	} watermark;
	/* bounds.h; the counts are of removed chunks */
	struct ky_cons_bounds bounds;
	uint64_t bounds_ns; /* when they were checked last */
	int bounds_error;
	struct archives archives; /* as they were then */
	uint64_t expired_chunks, expired_events, expired_bytes, disk_bytes;
	/* connection.h, kept.h */
	struct ky_msg_conn conn; /* to the daemon, while that lives */
	bool connected;
	char rendezvous[108]; /* a successor's socket; "": there will be no successor */
	struct ky_timer caller;
	struct ky_list kept, kept_logs;
	struct ky_list kernel_sets; /* kernel.h */
	/* retirement.h: sets whose process exited */
	struct ky_list retired;
	/* recovery.h */
	bool recovers; /* nobody else writes the buffers in overwrite mode */
	/* of a recovery: no record of its next ring sets is later; 0: than the present time */
	uint64_t latest_clock;
	int source_fd; /* directory of all that the recovery reads and removes; borrowed; -1 */
};

#endif
