/* SPDX-License-Identifier: MIT */
/* Reports of consumers in the memory of their sessions. */
#include "sessiond/peers/recording.h"

bool consumer_read_memory(const struct consumer *c, struct ky_resume_session *ret_memory)
{
	*ret_memory = (struct ky_resume_session){0};
	return c->memory_fd >= 0 && pread(c->memory_fd, ret_memory, sizeof(*ret_memory), 0) >=
					    (ssize_t)KY_RESUME_SESSION_OLDEST;
}

const struct session *consumer_find_rival(const struct consumer *c)
{
	struct ky_resume_session mine, theirs;
	const struct session *s;

	if (!consumer_read_memory(c, &mine) || !mine.output_file)
		return NULL;
	ky_list_foreach (s, &c->session->env->sessions, node)
		if (c != &recording_of(s)->consumer &&
			consumer_read_memory(&recording_of(s)->consumer, &theirs) &&
			theirs.output_device == mine.output_device &&
			theirs.output_file == mine.output_file)
			return s;
	return NULL;
}
