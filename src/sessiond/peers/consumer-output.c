/* SPDX-License-Identifier: MIT */
/* Reports of consumers in the memory of their sessions. */
#include "sessiond/peers/recording.h"

bool consumer_read_memory(const struct consumer *c, struct ky_resume_session *ret_memory)
{
	*ret_memory = (struct ky_resume_session){0};
	return c->memory_fd >= 0 && pread(c->memory_fd, ret_memory, sizeof(*ret_memory), 0) >=
					    (ssize_t)KY_RESUME_SESSION_OLDEST;
}
