/* SPDX-License-Identifier: MIT */
/*
 * Whether a session's consumer is at work, and what waits for it in the buffers. A consumer that is stopped by a signal, or
 * waits for a disk that does not answer, says nothing itself. It leaves the times of its steps in the session's memory
 * (abi/resume.h), which the daemon reads when it is asked, or when the consumer owes an answer.
 */
#ifndef SESSIOND_PEERS_HEALTH_H
#define SESSIOND_PEERS_HEALTH_H

#include "base/buf.h"
#include "sessiond/peers/consumer.h"

/* Returns for how long the consumer has done nothing although it should, in nanoseconds; 0 if it is at work or idle. */
uint64_t consumer_silence_ns(const struct consumer *c);
/* Returns whether commands should not wait for it any longer: at once if it is stopped, else after some seconds. */
bool consumer_is_stuck(const struct consumer *c);
/* Appends "its consumer (pid 7) has been stopped by a signal for 3 s: ...": what it does, since when, what helps. */
void consumer_put_silence(const struct consumer *c, struct ky_buf *to);

/* Events that programs recorded, or lost, and that the consumer has not reported. */
struct backlog {
	uint64_t recorded, discarded;
};
void session_backlog(const struct session *s, struct backlog *ret_backlog);
/* Appends why what its consumer was asked for is not done: how the consumer is, and how much waits for it. */
void session_put_unfinished(const struct session *s, struct ky_buf *to);

#endif
