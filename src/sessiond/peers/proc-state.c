/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/proc-state.h"

#include <fcntl.h>

#include "base/util.h"

bool proc_file_state_is(const char *path, const char *name_and_state)
{
	long before = strchr(name_and_state, ')') - name_and_state;
	char text[64 + 16], *end;
	ssize_t n = -1;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		n = read(fd, text, sizeof(text) - 1);
	ky_close(fd);
	text[n > 0 ? n : 0] = '\0';
	end = strrchr(text, ')');
	return end && end - text >= before &&
	       !strncmp(end - before, name_and_state, strlen(name_and_state));
}

bool proc_state_is(pid_t pid, const char *name_and_state)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return proc_file_state_is(path, name_and_state);
}
