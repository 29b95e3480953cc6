/* SPDX-License-Identifier: MIT */
#include "svc/precedence.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>

#include "svc/log.h"

#define PRECEDENCE (-10) /* nice value */

/* With CONFIG_SCHED_AUTOGROUP, nice values count among the processes of one session only. */
static void raise_session(int nice)
{
	_cleanup_close_ int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && dprintf(fd, "%d", nice) < 0)
		ky_debug("no precedence among sessions: %s", strerror(errno));
}

bool ky_precedence_init(bool is_wanted, bool own_session)
{
	const struct sched_param none = {0};
	int nice = getpriority(PRIO_PROCESS, 0);

	if (nice == 0 && is_wanted) {
		if (setpriority(PRIO_PROCESS, 0, PRECEDENCE) < 0)
			ky_debug("no precedence: %s", strerror(errno));
		nice = getpriority(PRIO_PROCESS, 0);
	}
	if (nice >= 0)
		return false;
	if (sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none) < 0)
		ky_warning("the processes that this daemon starts get its nice value: %s",
			strerror(errno));
	if (own_session)
		raise_session(nice);
	return true;
}
